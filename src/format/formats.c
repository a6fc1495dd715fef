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

uint64_t fr_formats_beginning(char c)
{
    switch (fr_begin_of(c)) {
#define X(name, begin) | (((begin) & FR_MASK_OF) != 0 ? 1ull << INDEX_##name : 0)
#define FR_MASK_OF FR_BEGIN_BRACKET
    case FR_BEGIN_BRACKET:
        return 0
#include "format/formats.def"
            ;
#undef FR_MASK_OF
#define FR_MASK_OF FR_BEGIN_PAREN
    case FR_BEGIN_PAREN:
        return 0
#include "format/formats.def"
            ;
#undef FR_MASK_OF
#define FR_MASK_OF FR_BEGIN_BRACE
    case FR_BEGIN_BRACE:
        return 0
#include "format/formats.def"
            ;
#undef FR_MASK_OF
#define FR_MASK_OF FR_BEGIN_ANGLE
    case FR_BEGIN_ANGLE:
        return 0
#include "format/formats.def"
            ;
#undef FR_MASK_OF
#define FR_MASK_OF FR_BEGIN_SPACE
    case FR_BEGIN_SPACE:
        return 0
#include "format/formats.def"
            ;
#undef FR_MASK_OF
#define FR_MASK_OF FR_BEGIN_DIGIT
    case FR_BEGIN_DIGIT:
        return 0
#include "format/formats.def"
            ;
#undef FR_MASK_OF
#define FR_MASK_OF FR_BEGIN_UPPER
    case FR_BEGIN_UPPER:
        return 0
#include "format/formats.def"
            ;
#undef FR_MASK_OF
#define FR_MASK_OF FR_BEGIN_LOWER
    case FR_BEGIN_LOWER:
        return 0
#include "format/formats.def"
            ;
#undef FR_MASK_OF
#undef X
    default:
        return 0;
    }
}
