/* SPDX-License-Identifier: Apache-2.0 */
/* progress: see progress.h. At most ten lines a second; nothing at all for runs that are over within the first. */
#include "cli/progress.h"

#include <stdatomic.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static _Atomic int64_t next_ms;
static _Atomic int shown;

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

void fr_progress(void *ctx, uint64_t done, uint64_t total)
{
    (void)ctx;
    int64_t now = now_ms(), due = atomic_load(&next_ms);
    if (due == 0) {
        atomic_compare_exchange_strong(&next_ms, &due, now + 500);
        return;
    }
    if (now < due || !atomic_compare_exchange_strong(&next_ms, &due, now + 100)) {
        return; /* another thread has this turn */
    }
    char line[96];
    int n = total > 0 ? snprintf(line, sizeof line, "\r\033[Kreading %.0f of %.0f MB (%d %%)", (double)done / 1e6,
                                 (double)total / 1e6, (int)(100.0 * (double)done / (double)total))
                      : snprintf(line, sizeof line, "\r\033[Kreading %.0f MB", (double)done / 1e6);
    (void)!write(STDERR_FILENO, line, (size_t)n);
    atomic_store(&shown, 1);
}

void fr_progress_end(void)
{
    if (atomic_exchange(&shown, 0) != 0) {
        (void)!write(STDERR_FILENO, "\r\033[K", 4);
    }
}
