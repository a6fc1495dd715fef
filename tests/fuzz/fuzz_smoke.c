/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_smoke: any bytes as settings, and every smoke test that they allow. */
#include "cli/model_config.h"
#include "fuzz/fuzz_tensor.h"
#include "repro/smoke.h"
#include "tensor/config.h"

#include <string.h>

static void play(const struct fr_repro *p, const struct fr_smoke *s)
{
    struct fr_result r;
    struct fr_err err = {0};
    fr_result_init(&r);
    CHECK(fr_smoke_run(p, s, &r, &err) == 0);
    CHECK(r.claims > 0 && r.held + r.unknown <= r.claims);
    const int status = fr_smoke_exit(&r);
    CHECK(status >= 0 && status <= 2 && (status == 0) == (r.held == r.claims));
    for (uint32_t i = 0; i < r.n; i++) {
        if (r.item[i].kind == FR_ITEM_CLAIM) {
            CHECK(r.item[i].claim->measured.n > 0);
            (void)touch(r.item[i].claim->measured);
        }
    }
    fr_result_release(&r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fr_smoke s;
    struct fr_err err = {0};
    fr_smoke_defaults(&s);
    const int rc = fr_model_config(fuzz_write("settings", data, size), &s, &err);
    CHECK(rc == 0 || err.msg[0] != '\0');
    for (unsigned i = 0; rc == 0 && i < fr_repros_count; i++) {
        const char *id = fr_repros[i]->id; /* attention and norms cost seconds at the largest sizes */
        if (fr_repros[i]->smoke != NULL && strncmp(id, "attention-", 10) != 0 &&
            strncmp(id, "rmsnorm-", 8) != 0 && strncmp(id, "moe-", 4) != 0) {
            play(fr_repros[i], &s);
        }
    }
    return 0;
}
