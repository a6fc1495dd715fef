/* SPDX-License-Identifier: Apache-2.0 */
/* Failure pages against reproductions: each names the other. */
#include "support/t.h"

#include "failure/library.h"
#include "repro/repro.h"

T_TEST(pages_and_reproductions_name_each_other)
{
    const struct fr_library *lib = fr_library_builtin();
    for (unsigned i = 0; i < fr_repros_count; i++) {
        const int at = fr_library_find(lib, fr_sv_z(fr_repros[i]->id));
        T_OK(at >= 0 && lib->failures[at].repro != NULL &&
             strcmp(lib->failures[at].repro, fr_repros[i]->id) == 0);
    }
    for (uint32_t i = 0; i < lib->n_failures; i++) {
        const char *repro = lib->failures[i].repro;
        if (repro != NULL &&
            (strcmp(repro, lib->failures[i].id) != 0 || fr_repro_find(fr_sv_z(repro)) == NULL)) {
            T_FAIL("%s: there is no reproduction '%s' of it", lib->failures[i].id, repro);
        }
    }
}

int main(void)
{
    return t_run();
}
