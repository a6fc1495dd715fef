/* SPDX-License-Identifier: Apache-2.0 */
/* stamp: see stamp.h. Written by hand because strptime knows the locale and the time zone, and we
 * want neither. */
#include "format/stamp.h"

#include "format/lex.h"

static const int64_t EPOCH_MIN = 631152000,
                     EPOCH_MAX = 7258118400; /* 1990 to 2200: other numbers are no times */
static const int64_t decimal_ns[] = {1000000000, 100000000, 10000000, 1000000, 100000,
                                     10000,      1000,      100,      10,      1};

/* HH:MM:SS with an optional fraction; *ret_resolution from the number of decimals. */
static bool take_clock(fr_sv *s, struct fr_civil *c, int64_t *ret_resolution)
{
    fr_sv at = *s;
    if (!fr_lex_fixed(&at, 2, &c->hour) || !fr_lex_char(&at, ':') ||
        !fr_lex_fixed(&at, 2, &c->minute) || !fr_lex_char(&at, ':') ||
        !fr_lex_fixed(&at, 2, &c->second)) {
        return false;
    }
    if (c->hour > 23 || c->minute > 59 || c->second > 60) {
        return false;
    }
    *ret_resolution = FR_NS_PER_S;
    c->nanos = 0;
    char dot = fr_lex_peek(at, 0);
    if ((dot == '.' || dot == ',') && fr_is_digit(fr_lex_peek(at, 1))) {
        at = fr_sv_skip(at, 1);
        size_t digits = 0;
        int64_t nanos = 0;
        while (at.n > 0 && fr_is_digit(at.p[0])) {
            if (digits < 9) {
                nanos = nanos * 10 + (at.p[0] - '0');
                digits++;
            }
            at = fr_sv_skip(at, 1);
        }
        c->nanos = (int32_t)(nanos * decimal_ns[digits]);
        *ret_resolution = decimal_ns[digits];
    }
    *s = at;
    return true;
}

/* Z, +hh:mm, +hhmm, +hh, " UTC", " GMT"; none is fine too. */
static void take_zone(fr_sv *s, struct fr_civil *c)
{
    fr_sv at = *s;
    int hour = 0, minute = 0;
    if (fr_lex_char(&at, 'Z') || fr_lex_lit(&at, " UTC") || fr_lex_lit(&at, " GMT")) {
        if (at.n == 0 || !fr_is_word(at.p[0])) {
            c->has_zone = true;
            *s = at;
        }
        return;
    }
    char sign = fr_lex_peek(at, 0);
    if (sign != '+' && sign != '-') {
        return;
    }
    at = fr_sv_skip(at, 1);
    if (!fr_lex_fixed(&at, 2, &hour) || hour > 14) {
        return;
    }
    (void)fr_lex_char(&at, ':');
    if (!fr_lex_fixed(&at, 2, &minute)) {
        minute = 0;
    }
    if (minute > 59 || (at.n > 0 && fr_is_digit(at.p[0]))) {
        return;
    }
    c->has_zone = true;
    c->zone_s = (hour * 3600 + minute * 60) * (sign == '-' ? -1 : 1);
    *s = at;
}

static bool finish(const struct fr_civil *c, int64_t resolution, uint8_t basis, struct fr_when *ret)
{
    struct fr_civil sane = *c;
    if (sane.year < 1970) {
        if (basis != FR_TIME_BASIS_NOYEAR) {
            return false;
        }
        sane.year = 1972; /* nobody knows the year: a leap year takes every date */
    }
    int64_t ns = fr_time_from_civil(&sane);
    if (ns == FR_TIME_NONE) {
        return false;
    }
    *ret = (struct fr_when){ns, resolution, basis};
    return true;
}

bool fr_stamp_iso(fr_sv *s, struct fr_when *ret)
{
    fr_sv at = *s;
    struct fr_civil c = {0};
    int64_t resolution = 0;
    if (!fr_lex_fixed(&at, 4, &c.year) || c.year < 1990 || c.year > 2199) {
        return false;
    }
    char sep = fr_lex_peek(at, 0);
    if ((sep != '-' && sep != '/' && sep != '.') || !fr_lex_char(&at, sep) ||
        !fr_lex_fixed(&at, 2, &c.month) || !fr_lex_char(&at, sep) ||
        !fr_lex_fixed(&at, 2, &c.day)) {
        return false;
    }
    char gap = fr_lex_peek(at, 0);
    if (gap != ' ' && gap != 'T' && gap != '_' && gap != ',' && gap != '-') {
        return false;
    }
    at = fr_sv_skip(at, 1);
    if (gap == ',' && fr_lex_peek(at, 0) == ' ') {
        at = fr_sv_skip(at, 1);
    }
    if (!take_clock(&at, &c, &resolution)) {
        return false;
    }
    take_zone(&at, &c);
    if (!finish(&c, resolution, c.has_zone ? FR_TIME_BASIS_UTC : FR_TIME_BASIS_WALL, ret)) {
        return false;
    }
    *s = at;
    return true;
}

/* absl before initialisation prints the epoch in the place of a time of day. */
static bool take_absl_epoch(fr_sv *s, struct fr_when *ret)
{
    fr_sv at = *s;
    return fr_lex_lit(&at, "0000 00:00:") && fr_stamp_epoch(&at, ret) && (*s = at, true);
}

bool fr_stamp_glog(fr_sv *s, int year, struct fr_when *ret)
{
    fr_sv at = *s;
    struct fr_civil c = {.year = year};
    uint64_t date = 0;
    int64_t resolution = 0;
    if (take_absl_epoch(s, ret)) {
        return true;
    }
    if (!fr_lex_digits(&at, 3, 8, &date) || !fr_lex_char(&at, ' ')) {
        return false;
    }
    size_t date_digits = (size_t)(at.p - s->p) - 1;
    if (date_digits == 8) {
        c.year = (int)(date / 10000);
    } else if (date_digits > 4) {
        return false;
    }
    c.month = (int)(date / 100 % 100);
    c.day = (int)(date % 100);
    if (!take_clock(&at, &c, &resolution)) {
        return false;
    }
    if (resolution == 1) { /* nine digits: c10, whose fraction is CLOCK_MONOTONIC */
        resolution = FR_NS_PER_S;
        c.nanos = 0;
    } else if (resolution == 1000 && c.nanos % 1000000 == 0) {
        resolution = 1000000; /* torch logging prints milliseconds and three zeros */
    }
    if (!finish(&c, resolution, date_digits == 8 ? FR_TIME_BASIS_WALL : FR_TIME_BASIS_NOYEAR,
                ret)) {
        return false;
    }
    *s = at;
    return true;
}

static int take_month(fr_sv *s)
{
    static const char names[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    if (s->n < 3 || !fr_is_upper(s->p[0]) || !fr_is_lower(s->p[1]) || !fr_is_lower(s->p[2])) {
        return 0;
    }
    for (int i = 0; i < 12; i++) {
        if (memcmp(s->p, names + 3 * i, 3) == 0) {
            *s = fr_sv_skip(*s, 3);
            return i + 1;
        }
    }
    return 0;
}

bool fr_stamp_syslog(fr_sv *s, int year, struct fr_when *ret)
{
    fr_sv at = *s;
    struct fr_civil c = {.year = year};
    int64_t resolution = 0;
    uint64_t day = 0;
    uint8_t basis = FR_TIME_BASIS_NOYEAR;
    c.month = take_month(&at);
    if (c.month == 0 || fr_lex_spaces(&at) == 0 || !fr_lex_digits(&at, 1, 2, &day) ||
        fr_lex_spaces(&at) == 0) {
        return false;
    }
    c.day = (int)day;
    fr_sv behind = at;
    int full = 0;
    if (fr_lex_fixed(&behind, 4, &full) && fr_lex_char(&behind, ' ')) {
        c.year = full;
        at = behind;
        basis = FR_TIME_BASIS_WALL;
    }
    if (!take_clock(&at, &c, &resolution)) {
        return false;
    }
    behind = at;
    if (basis == FR_TIME_BASIS_NOYEAR && fr_lex_char(&behind, ' ') &&
        fr_lex_fixed(&behind, 4, &full) && full >= 1990 && full <= 2199 &&
        (behind.n == 0 || !fr_is_word(behind.p[0]))) {
        c.year = full;
        at = behind;
        basis = FR_TIME_BASIS_WALL;
    }
    if (!finish(&c, resolution, basis, ret)) {
        return false;
    }
    *s = at;
    return true;
}

bool fr_stamp_ctime(fr_sv *s, int year, struct fr_when *ret)
{
    static const char days[] = "MonTueWedThuFriSatSun";
    fr_sv at = *s;
    bool is_day = false;
    if (at.n < 5 || !fr_is_upper(at.p[0]) || at.p[3] != ' ') {
        return false;
    }
    for (int i = 0; i < 7; i++) {
        is_day = is_day || memcmp(at.p, days + 3 * i, 3) == 0;
    }
    if (!is_day) {
        return false;
    }
    at = fr_sv_skip(at, 4);
    if (!fr_stamp_iso(&at, ret) && !fr_stamp_syslog(&at, year, ret)) {
        return false;
    }
    *s = at;
    return true;
}

bool fr_stamp_month_day(fr_sv *s, int year, struct fr_when *ret)
{
    fr_sv at = *s;
    struct fr_civil c = {.year = year};
    int64_t resolution = 0;
    uint8_t basis = FR_TIME_BASIS_NOYEAR;
    if (!fr_lex_fixed(&at, 2, &c.month)) {
        return false;
    }
    char sep = fr_lex_peek(at, 0);
    if ((sep != '/' && sep != '-') || !fr_lex_char(&at, sep) || !fr_lex_fixed(&at, 2, &c.day)) {
        return false;
    }
    if (fr_lex_peek(at, 0) == sep) {
        at = fr_sv_skip(at, 1);
        if (!fr_lex_fixed(&at, 4, &c.year)) {
            return false;
        }
        basis = FR_TIME_BASIS_WALL;
    }
    if (!fr_lex_char(&at, ' ') || !take_clock(&at, &c, &resolution)) {
        return false;
    }
    if (!finish(&c, resolution, basis, ret)) {
        return false;
    }
    *s = at;
    return true;
}

bool fr_stamp_boot(fr_sv *s, struct fr_when *ret)
{
    fr_sv at = *s;
    uint64_t seconds = 0;
    if (!fr_lex_digits(&at, 1, 9, &seconds) || !fr_lex_char(&at, '.')) {
        return false;
    }
    size_t digits = 0;
    int64_t nanos = 0;
    while (digits < 9 && at.n > 0 && fr_is_digit(at.p[0])) {
        nanos = nanos * 10 + (at.p[0] - '0');
        at = fr_sv_skip(at, 1);
        digits++;
    }
    if (digits < 3 || (at.n > 0 && fr_is_digit(at.p[0]))) {
        return false;
    }
    *ret = (struct fr_when){(int64_t)seconds * FR_NS_PER_S + nanos * decimal_ns[digits],
                            decimal_ns[digits], FR_TIME_BASIS_BOOT};
    *s = at;
    return true;
}

bool fr_stamp_clock(fr_sv *s, struct fr_when *ret)
{
    fr_sv at = *s;
    struct fr_civil c = {.year = 1970, .month = 1, .day = 1};
    int64_t resolution = 0;
    if (!take_clock(&at, &c, &resolution) || !finish(&c, resolution, FR_TIME_BASIS_CLOCK, ret)) {
        return false;
    }
    *s = at;
    return true;
}

bool fr_stamp_epoch(fr_sv *s, struct fr_when *ret)
{
    fr_sv at = *s;
    size_t digits = 0;
    int64_t v = 0;
    while (at.n > 0 && fr_is_digit(at.p[0]) && digits < 19) {
        if (digits == 18 && v >= INT64_MAX / 10) {
            return false;
        }
        v = v * 10 + (at.p[0] - '0');
        at = fr_sv_skip(at, 1);
        digits++;
    }
    int64_t unit = digits == 10   ? FR_NS_PER_S
                   : digits == 13 ? 1000000
                   : digits == 16 ? 1000
                   : digits == 19 ? 1
                                  : 0;
    if (unit == 0 || v >= INT64_MAX / unit || (at.n > 0 && fr_is_digit(at.p[0]))) {
        return false;
    }
    int64_t resolution = unit, nanos = 0;
    if (unit == FR_NS_PER_S && at.n > 1 && at.p[0] == '.' && fr_is_digit(at.p[1])) {
        at = fr_sv_skip(at, 1);
        size_t decimals = 0;
        while (at.n > 0 && fr_is_digit(at.p[0])) {
            if (decimals < 9) {
                nanos = nanos * 10 + (at.p[0] - '0');
                decimals++;
            }
            at = fr_sv_skip(at, 1);
        }
        nanos *= decimal_ns[decimals];
        resolution = decimal_ns[decimals];
    }
    int64_t seconds = v / (FR_NS_PER_S / unit);
    if (seconds < EPOCH_MIN || seconds >= EPOCH_MAX) {
        return false;
    }
    *ret = (struct fr_when){v * unit + nanos, resolution, FR_TIME_BASIS_UTC};
    *s = at;
    return true;
}

bool fr_stamp_any(fr_sv *s, int year, struct fr_when *ret)
{
    return fr_stamp_iso(s, ret) || fr_stamp_syslog(s, year, ret) || fr_stamp_ctime(s, year, ret) ||
           fr_stamp_month_day(s, year, ret);
}
