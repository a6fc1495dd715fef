/* SPDX-License-Identifier: Apache-2.0 */
/* check_writer: the table of outputs, made from check_writers.def. */
#include "report/check_writer.h"

#define X(name) extern const struct fr_check_writer fr_check_writer_##name;
#include "report/check_writers.def"
#undef X

const struct fr_check_writer *const fr_check_writers[] = {
#define X(name) &fr_check_writer_##name,
#include "report/check_writers.def"
#undef X
};
const unsigned fr_check_writers_count = sizeof fr_check_writers / sizeof *fr_check_writers;

const struct fr_check_writer *fr_check_writer_find(fr_sv name)
{
    for (unsigned i = 0; i < fr_check_writers_count; i++) {
        if (fr_sv_eq(name, fr_sv_z(fr_check_writers[i]->name))) {
            return fr_check_writers[i];
        }
    }
    return NULL;
}
