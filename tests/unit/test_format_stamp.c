/* SPDX-License-Identifier: Apache-2.0 */
/* Every time shape, its basis and resolution, and what is no time. */
#include "format/stamp.h"
#include "support/t.h"

typedef bool (*take_fn)(fr_sv *s, int year, struct fr_when *ret);
static bool iso(fr_sv *s, int year, struct fr_when *ret)
{
    (void)year;
    return fr_stamp_iso(s, ret);
}
static bool boot(fr_sv *s, int year, struct fr_when *ret)
{
    (void)year;
    return fr_stamp_boot(s, ret);
}
static bool hours(fr_sv *s, int year, struct fr_when *ret)
{
    (void)year;
    return fr_stamp_clock(s, ret);
}
static bool epoch(fr_sv *s, int year, struct fr_when *ret)
{
    (void)year;
    return fr_stamp_epoch(s, ret);
}

static const struct {
    take_fn take;
    const char *text, *want, *rest;
    uint8_t basis;
    int64_t resolution;
} good[] = {
    {iso, "2026-11-30 15:04:05,123 x", "2026-11-30T15:04:05.123000000", " x", FR_TIME_BASIS_WALL,
     1000000},
    {iso, "2026-11-30T15:04:05.123456789Z|", "2026-11-30T15:04:05.123456789", "|",
     FR_TIME_BASIS_UTC, 1},
    {iso, "2026-11-30T15:04:05+05:30", "2026-11-30T09:34:05.000000000", "", FR_TIME_BASIS_UTC,
     FR_NS_PER_S},
    {iso, "2026-11-30T15:04:05-0800]", "2026-11-30T23:04:05.000000000", "]", FR_TIME_BASIS_UTC,
     FR_NS_PER_S},
    {iso, "2026-11-30 15:04:05 UTC host", "2026-11-30T15:04:05.000000000", " host",
     FR_TIME_BASIS_UTC, FR_NS_PER_S},
    {iso, "2026-11-30_15:04:05", "2026-11-30T15:04:05.000000000", "", FR_TIME_BASIS_WALL,
     FR_NS_PER_S},
    {iso, "2026/11/30 15:04:05.5", "2026-11-30T15:04:05.500000000", "", FR_TIME_BASIS_WALL,
     100000000},
    {iso, "2026-11-30 15:04:05 - INFO", "2026-11-30T15:04:05.000000000", " - INFO",
     FR_TIME_BASIS_WALL, FR_NS_PER_S},
    {fr_stamp_glog, "808 04:21:41.160918398 f", "2026-08-08T04:21:41.000000000", " f",
     FR_TIME_BASIS_NOYEAR, FR_NS_PER_S},
    {fr_stamp_glog, "1206 04:21:41.160918398", "2026-12-06T04:21:41.000000000", "",
     FR_TIME_BASIS_NOYEAR, FR_NS_PER_S},
    {fr_stamp_glog, "129 04:21:41.160918398", "2026-01-29T04:21:41.000000000", "",
     FR_TIME_BASIS_NOYEAR, FR_NS_PER_S},
    {fr_stamp_glog, "105 04:21:41.160918398", "2026-01-05T04:21:41.000000000", "",
     FR_TIME_BASIS_NOYEAR, FR_NS_PER_S},
    {fr_stamp_glog, "1130 14:52:02.024000 2", "2026-11-30T14:52:02.024000000", " 2",
     FR_TIME_BASIS_NOYEAR, 1000000},
    {fr_stamp_glog, "1125 14:52:02.416581 2", "2026-11-25T14:52:02.416581000", " 2",
     FR_TIME_BASIS_NOYEAR, 1000},
    {fr_stamp_glog, "20261130 15:04:38.416581", "2026-11-30T15:04:38.416581000", "",
     FR_TIME_BASIS_WALL, 1000},
    {fr_stamp_glog, "0000 00:00:1746036466.123456 1", "2025-04-30T18:07:46.123456000", " 1",
     FR_TIME_BASIS_UTC, 1000},
    {fr_stamp_syslog, "Nov 25 12:34:56 h", "2026-11-25T12:34:56.000000000", " h",
     FR_TIME_BASIS_NOYEAR, FR_NS_PER_S},
    {fr_stamp_syslog, "Nov  5 12:34:56.123456 h", "2026-11-05T12:34:56.123456000", " h",
     FR_TIME_BASIS_NOYEAR, 1000},
    {fr_stamp_syslog, "Nov  5 2025 12:34:56", "2025-11-05T12:34:56.000000000", "",
     FR_TIME_BASIS_WALL, FR_NS_PER_S},
    {fr_stamp_syslog, "Feb 29 12:34:56 2024]", "2024-02-29T12:34:56.000000000", "]",
     FR_TIME_BASIS_WALL, FR_NS_PER_S},
    {fr_stamp_ctime, "Sun Feb 23 16:24:18 2025]", "2025-02-23T16:24:18.000000000", "]",
     FR_TIME_BASIS_WALL, FR_NS_PER_S},
    {fr_stamp_ctime, "Tue 2025-11-25 12:34:56 UTC h", "2025-11-25T12:34:56.000000000", " h",
     FR_TIME_BASIS_UTC, FR_NS_PER_S},
    {fr_stamp_month_day, "10/30 22:48:02 -", "2026-10-30T22:48:02.000000000", " -",
     FR_TIME_BASIS_NOYEAR, FR_NS_PER_S},
    {fr_stamp_month_day, "08-14 09:51:09 [", "2026-08-14T09:51:09.000000000", " [",
     FR_TIME_BASIS_NOYEAR, FR_NS_PER_S},
    {fr_stamp_month_day, "05/16/2023 11:54:12", "2023-05-16T11:54:12.000000000", "",
     FR_TIME_BASIS_WALL, FR_NS_PER_S},
    {boot, "6781741.548779]", "1970-03-20T11:49:01.548779000", "]", FR_TIME_BASIS_BOOT, 1000},
    {hours, "15:04:05.25 x", "1970-01-01T15:04:05.250000000", " x", FR_TIME_BASIS_CLOCK, 10000000},
    {epoch, "1700000000", "2023-11-14T22:13:20.000000000", "", FR_TIME_BASIS_UTC, FR_NS_PER_S},
    {epoch, "1700000000.25", "2023-11-14T22:13:20.250000000", "", FR_TIME_BASIS_UTC, 10000000},
    {epoch, "1700000000123", "2023-11-14T22:13:20.123000000", "", FR_TIME_BASIS_UTC, 1000000},
    {epoch, "1700000000123456", "2023-11-14T22:13:20.123456000", "", FR_TIME_BASIS_UTC, 1000},
    {epoch, "1700000000123456789", "2023-11-14T22:13:20.123456789", "", FR_TIME_BASIS_UTC, 1}};

T_TEST(shapes)
{
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        struct fr_when w = FR_WHEN_NONE;
        char text[48];
        fr_sv s = fr_sv_z(good[i].text);
        if (!good[i].take(&s, 2026, &w)) {
            T_FAIL("not taken: %s", good[i].text);
            continue;
        }
        fr_time_iso(w.ns, 9, text);
        T_EQ_STR(text, good[i].want);
        T_EQ_SV(s, fr_sv_z(good[i].rest));
        T_EQ_INT(w.basis, good[i].basis);
        T_EQ_INT(w.resolution_ns, good[i].resolution);
    }
}

T_TEST(not_times)
{
    static const struct {
        take_fn take;
        const char *text;
    } bad[] = {{iso, "2026-13-30 15:04:05"},
               {iso, "2026-02-30 15:04:05"},
               {iso, "2026-11-30 25:04:05"},
               {iso, "2026-11-30"},
               {iso, "0000-01-01 00:00:00"},
               {iso, "2026-11-30x15:04:05"},
               {fr_stamp_glog, "8 04:21:41.1"},
               {fr_stamp_glog, "1340 04:21:41.1"},
               {fr_stamp_glog, "12345 04:21:41.1"},
               {fr_stamp_glog, "1130 4:21:41"},
               {fr_stamp_glog, "99999999 04:21:41.1"},
               {fr_stamp_syslog, "Nob 25 12:34:56"},
               {fr_stamp_syslog, "Nov 31 12:34:56"},
               {fr_stamp_ctime, "Xxx Feb 23 16:24:18 2025"},
               {fr_stamp_month_day, "30/10 22:48:02"},
               {boot, "12.5"},
               {boot, "1234567890123.123456"},
               {hours, "24:00:00"},
               {epoch, "123"},
               {epoch, "17000000001"},
               {epoch, "9999999999999999999"},
               {epoch, "9999999999"},
               {epoch, ""},
               {iso, ""},
               {fr_stamp_glog, ""}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct fr_when w = FR_WHEN_NONE;
        fr_sv s = fr_sv_z(bad[i].text);
        if (bad[i].take(&s, 2026, &w)) {
            T_FAIL("taken: %s", bad[i].text);
        }
        T_EQ_SV(s, fr_sv_z(bad[i].text)); /* a refusal moves nothing */
    }
}

T_TEST(unknown_year)
{
    struct fr_when w = FR_WHEN_NONE;
    fr_sv s = FR_SV("229 04:21:41.160918398");
    T_OK(fr_stamp_glog(&s, 0, &w)); /* 29 February exists in some year */
    T_EQ_INT(w.basis, FR_TIME_BASIS_NOYEAR);
}

T_TEST(every_prefix_is_safe)
{
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        size_t len = strlen(good[i].text);
        for (size_t n = 0; n < len; n++) {
            struct fr_when w = FR_WHEN_NONE;
            char *copy = malloc(n + 1);
            memcpy(copy, good[i].text, n);
            fr_sv s = {copy, n};
            bool took = good[i].take(&s, 2026, &w);
            if (took && s.n > n) {
                T_FAIL("moved backwards on a prefix of %s", good[i].text);
            }
            free(copy);
        }
    }
}

int main(void)
{
    return t_run();
}
