/* SPDX-License-Identifier: Apache-2.0 */
/* time: days from civil and back, after Howard Hinnant's published algorithms (proleptic Gregorian, eras of 400 years). */
#include "base/time.h"

#include <stdio.h>

static int64_t days_from_civil(int y, int m, int d)
{
    y -= m <= 2;
    int64_t era = (y >= 0 ? y : y - 399) / 400;
    int64_t yoe = y - era * 400;
    int64_t doy = (153 * (m + (m > 2 ? -3 : 9)) + 2) / 5 + d - 1;
    int64_t doe = yoe * 365 + yoe / 4 - yoe / 100 + doy;
    return era * 146097 + doe - 719468;
}

int fr_time_days_in_month(int year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    return month == 2 && leap ? 29 : days[month - 1];
}

int64_t fr_time_from_civil(const struct fr_civil *c)
{
    if (c->year < 1700 || c->year > 2200 || c->month < 1 || c->month > 12 || c->day < 1 || c->hour < 0 || c->hour > 23 ||
        c->minute < 0 || c->minute > 59 || c->second < 0 || c->second > 60 || c->nanos < 0 || c->nanos > 999999999) {
        return FR_TIME_NONE;
    }
    if (c->day > fr_time_days_in_month(c->year, c->month)) {
        return FR_TIME_NONE;
    }
    int64_t s = days_from_civil(c->year, c->month, c->day) * 86400 + c->hour * 3600 + c->minute * 60 + c->second;
    if (c->has_zone) {
        s -= c->zone_s;
    }
    return s * FR_NS_PER_S + c->nanos;
}

void fr_time_to_civil(int64_t ns, struct fr_civil *ret)
{
    int64_t s = ns / FR_NS_PER_S, nanos = ns % FR_NS_PER_S;
    if (nanos < 0) {
        nanos += FR_NS_PER_S;
        s--;
    }
    int64_t days = s / 86400, rem = s % 86400;
    if (rem < 0) {
        rem += 86400;
        days--;
    }
    int64_t z = days + 719468;
    int64_t era = (z >= 0 ? z : z - 146096) / 146097;
    int64_t doe = z - era * 146097;
    int64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
    int64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    int64_t mp = (5 * doy + 2) / 153;
    *ret = (struct fr_civil){.day = (int)(doy - (153 * mp + 2) / 5 + 1), .month = (int)(mp < 10 ? mp + 3 : mp - 9),
                             .hour = (int)(rem / 3600), .minute = (int)(rem / 60 % 60), .second = (int)(rem % 60),
                             .nanos = (int32_t)nanos};
    ret->year = (int)(yoe + era * 400) + (ret->month <= 2);
}

size_t fr_time_iso(int64_t ns, int digits, char *ret)
{
    struct fr_civil c;
    fr_time_to_civil(ns, &c);
    int n = snprintf(ret, 40, "%04d-%02d-%02dT%02d:%02d:%02d", c.year, c.month, c.day, c.hour, c.minute, c.second);
    if (digits > 0 && digits <= 9) {
        int32_t f = c.nanos;
        for (int i = digits; i < 9; i++) {
            f /= 10;
        }
        n += snprintf(ret + n, 40 - (size_t)n, ".%0*d", digits, f);
    }
    return (size_t)n;
}
