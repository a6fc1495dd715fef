/* SPDX-License-Identifier: Apache-2.0 */
/* The table of findings: every page it names exists, every id is one of its own. */
#include "failure/library.h"
#include "support/t.h"

static const struct row {
    const char *id, *cls;
} rows[] = {
#define X(constant, id, weight, cls, title) {id, cls},
#include "tensor/findings.def"
#undef X
};
enum { ROWS = sizeof rows / sizeof rows[0] };

T_TEST(every_class_has_a_page)
{
    const struct fr_library *lib = fr_library_builtin();
    for (int i = 0; i < ROWS; i++) {
        bool known = rows[i].cls[0] == '\0';
        for (uint32_t k = 0; k < lib->n_failures; k++) {
            known |= strcmp(lib->failures[k].id, rows[i].cls) == 0;
        }
        t_checks_++;
        if (!known) {
            T_FAIL("findings.def names '%s', which has no page", rows[i].cls);
        }
    }
}

T_TEST(ids_are_unique)
{
    for (int i = 0; i < ROWS; i++) {
        for (int k = 0; k < i; k++) {
            T_OK(strcmp(rows[i].id, rows[k].id) != 0);
        }
    }
}

int main(void)
{
    return t_run();
}
