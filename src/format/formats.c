/* SPDX-License-Identifier: Apache-2.0 */
/* formats: the table of dialects, and which of them can peel a text that begins with a given byte. */
#include "format/peel.h"

#define X(name, begin) extern const struct fr_format fr_format_##name;
#include "format/formats.def"
#undef X

const struct fr_format *const fr_formats[] = {
#define X(name, begin) &fr_format_##name,
#include "format/formats.def"
#undef X
};
const unsigned fr_formats_count = sizeof fr_formats / sizeof *fr_formats;

enum {
#define X(name, begin) INDEX_##name,
#include "format/formats.def"
#undef X
    INDEX_COUNT
};
_Static_assert(INDEX_COUNT <= 64, "a format is one bit of a 64-bit mask");

/* Bit per format, for each way to begin: bit i of a row's second column. */
#define X(name, begin) | ((begin) & FR_MASK_BIT ? 1ull << INDEX_##name : 0)
static const uint64_t begins[] = {
#define FR_MASK_BIT (1 << 0)
    0
#include "format/formats.def"
    ,
#undef FR_MASK_BIT
#define FR_MASK_BIT (1 << 1)
    0
#include "format/formats.def"
    ,
#undef FR_MASK_BIT
#define FR_MASK_BIT (1 << 2)
    0
#include "format/formats.def"
    ,
#undef FR_MASK_BIT
#define FR_MASK_BIT (1 << 3)
    0
#include "format/formats.def"
    ,
#undef FR_MASK_BIT
#define FR_MASK_BIT (1 << 4)
    0
#include "format/formats.def"
    ,
#undef FR_MASK_BIT
#define FR_MASK_BIT (1 << 5)
    0
#include "format/formats.def"
    ,
#undef FR_MASK_BIT
#define FR_MASK_BIT (1 << 6)
    0
#include "format/formats.def"
    ,
#undef FR_MASK_BIT
#define FR_MASK_BIT (1 << 7)
    0
#include "format/formats.def"
    ,
#undef FR_MASK_BIT
#define FR_MASK_BIT (1 << 8)
    0
#include "format/formats.def"
    ,
#undef FR_MASK_BIT
#define FR_MASK_BIT (1 << 9)
    0
#include "format/formats.def"
    ,
#undef FR_MASK_BIT
#define FR_MASK_BIT (1 << 10)
    0
#include "format/formats.def"
};
#undef X

uint64_t fr_formats_beginning(fr_sv text)
{
    return begins[__builtin_ctz((unsigned)fr_begin_of(text))];
}
