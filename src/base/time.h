/* SPDX-License-Identifier: Apache-2.0 */
/* time: civil time arithmetic without the C library's time zone. All times are int64 nanoseconds. */
#ifndef FR_BASE_TIME_H
#define FR_BASE_TIME_H

#include "base/view.h"

#define FR_NS_PER_S 1000000000LL
#define FR_TIME_NONE INT64_MIN

struct fr_civil {
    int year, month, day, hour, minute, second; /* month 1-12; year 0 = unknown */
    int32_t nanos;
    int32_t zone_s; /* seconds east of UTC */
    bool has_zone;
};

/* ns since 1970 of that civil time read as UTC (minus zone_s when has_zone); FR_TIME_NONE if a field is out of range
 * (years 1700 to 2200: int64 nanoseconds hold 1678 to 2262). */
int64_t fr_time_from_civil(const struct fr_civil *c);
void fr_time_to_civil(int64_t ns, struct fr_civil *ret);
/* "2026-11-30T15:04:05.123" into ret (>= 40 bytes); no zone letter: the caller knows the basis. Returns its length. */
size_t fr_time_iso(int64_t ns, int digits, char *ret);
int fr_time_days_in_month(int year, int month);

#endif
