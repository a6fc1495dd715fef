/* SPDX-License-Identifier: Apache-2.0 */
/* stamp: every shape in which logs print a time, to struct fr_when with an honest basis and
 * resolution. Each function takes a time at the cursor: true = *ret filled and the cursor is behind
 * it; false = nothing moved. Two rules from experience: the fraction of a c10 line is another clock
 * (so its resolution is one second), and its date is month*100+day without padding (808 = 8
 * August). */
#ifndef FR_FORMAT_STAMP_H
#define FR_FORMAT_STAMP_H

#include "base/view.h"
#include "model/record.h"

/* "2026-11-30 15:04:05,123" and its kin: separators '-' '/' '.' in the date, ' ' 'T' '_' ',' before
 * the time, fraction after
 * '.' or ',', zone Z, +hh:mm, +hhmm or " UTC"/" GMT". */
bool fr_stamp_iso(fr_sv *s, struct fr_when *ret);
/* Behind a severity letter: "808 04:21:41.160918398" (c10), "1130 14:52:02.024000" (glog, torch
 * logging, absl), "20261130 15:04:38.416581" (glog with year), "0000 00:00:1746036466.123456" (absl
 * before init: epoch seconds). */
bool fr_stamp_glog(fr_sv *s, int year, struct fr_when *ret);
/* "Nov 25 12:34:56[.123456]", "Nov  5 2025 12:34:56", "Nov 25 12:34:56 2025". */
bool fr_stamp_syslog(fr_sv *s, int year, struct fr_when *ret);
/* "Sun Feb 23 16:24:18 2025" (dmesg -T, date), "Tue 2025-11-25 12:34:56 UTC" (journalctl
 * short-full). */
bool fr_stamp_ctime(fr_sv *s, int year, struct fr_when *ret);
/* "10/30 22:48:02", "08-14 09:51:09", "05/16/2023 11:54:12", month first. */
bool fr_stamp_month_day(fr_sv *s, int year, struct fr_when *ret);
/* "6781741.548779" seconds since boot: at least three decimals. */
bool fr_stamp_boot(fr_sv *s, struct fr_when *ret);
/* "15:04:05[.123]": no date. */
bool fr_stamp_clock(fr_sv *s, struct fr_when *ret);
/* A number since 1970 whose unit follows from its size: s, ms, us or ns; decimals allowed for
 * seconds. */
bool fr_stamp_epoch(fr_sv *s, struct fr_when *ret);
/* Any of iso, syslog, ctime, month-day: for brackets and JSON values. */
bool fr_stamp_any(fr_sv *s, int year, struct fr_when *ret);

#endif
