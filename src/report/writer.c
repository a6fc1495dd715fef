/* SPDX-License-Identifier: Apache-2.0 */
/* writer: the table of outputs, made from writers.def. */
#include "report/writer.h"

#define X(name) extern const struct fr_writer fr_writer_##name;
#include "report/writers.def"
#undef X

const struct fr_writer *const fr_writers[] = {
#define X(name) &fr_writer_##name,
#include "report/writers.def"
#undef X
};
const unsigned fr_writers_count = sizeof fr_writers / sizeof *fr_writers;

const struct fr_writer *fr_writer_find(fr_sv name)
{
    for (unsigned i = 0; i < fr_writers_count; i++) {
        if (fr_sv_eq(name, fr_sv_z(fr_writers[i]->name))) {
            return fr_writers[i];
        }
    }
    return NULL;
}
