/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz: what fuzz targets share: the entry point, a check that stays in every build, and a view read to its end (so that the
 * sanitizers see it). */
#ifndef FR_TESTS_FUZZ_H
#define FR_TESTS_FUZZ_H

#include "base/view.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(cond)  \
    do {             \
        if (!(cond)) \
            abort(); \
    } while (0)

static inline unsigned touch(fr_sv s)
{
    unsigned sum = 0;
    CHECK(s.n == 0 || s.p != NULL);
    for (size_t i = 0; i < s.n; i++) {
        sum += (unsigned char)s.p[i];
    }
    return sum;
}

#endif
