/* SPDX-License-Identifier: Apache-2.0 */
/* hook: a literal that must be found by the gate on behalf of a format, a metric dialect or the trace joiner. */
#ifndef FR_MATCH_HOOK_H
#define FR_MATCH_HOOK_H

#include <stdint.h>

enum fr_hook_kind { FR_HOOK_FACT, FR_HOOK_METRIC, FR_HOOK_TRACE };
struct fr_hook {
    const char *literal; /* at least 4 bytes; the line must hold it */
    uint8_t kind;        /* enum fr_hook_kind */
    uint8_t module;      /* index into fr_formats (FACT), fr_dialects (METRIC), or of the trace opener (TRACE) */
};

#endif
