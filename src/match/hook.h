/* SPDX-License-Identifier: Apache-2.0 */
/* hook: a literal that the gate must find on behalf of a format, a metric dialect or the trace
 * joiner. */
#ifndef FR_MATCH_HOOK_H
#define FR_MATCH_HOOK_H

#include <stdint.h>

enum fr_hook_kind { FR_HOOK_FACT, FR_HOOK_METRIC, FR_HOOK_TRACE };
struct fr_hook {
    const char *literal; /* 5 to 255 bytes, better 9 or more: short ones stop the gate more often */
    uint8_t kind;        /* enum fr_hook_kind */
    uint8_t module;      /* index into fr_formats (FACT), fr_dialects (METRIC) or openers (TRACE) */
};

#endif
