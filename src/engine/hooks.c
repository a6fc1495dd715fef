/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/hooks.h"

#include "format/format.h"
#include "series/series.h"

enum { HOOKS_MAX = 2048 };

/* "RuntimeError: text" without its traceback: a log that was cut, or a program that prints only the
 * last line. */
static const char *const bare_exceptions[] = {"Error: ", "Exception: ", NULL};

static struct fr_hook table[HOOKS_MAX];

static unsigned add(unsigned n, const char *const *literals, uint8_t kind, unsigned module)
{
    for (; literals != NULL && *literals != NULL && n < HOOKS_MAX; literals++) {
        table[n++] = (struct fr_hook){*literals, kind, (uint8_t)module};
    }
    return n;
}

struct fr_hooks fr_engine_hooks(void)
{
    static unsigned n;
    if (n == 0) {
        for (unsigned i = 0; i < fr_formats_count; i++) {
            n = add(n, fr_formats[i]->literals, FR_HOOK_FACT, i);
        }
        for (unsigned i = 0; i < fr_dialects_count; i++) {
            n = add(n, fr_dialects[i]->literals, FR_HOOK_METRIC, i);
        }
        n = add(n, fr_trace_openers, FR_HOOK_TRACE, 0);
        n = add(n, bare_exceptions, FR_HOOK_TRACE, 1);
    }
    return (struct fr_hooks){table, n};
}
