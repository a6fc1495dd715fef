/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_check: any bytes as a safetensors file, checked, compared with itself, and written in every
 * format: inert on a terminal and in HTML. */
#include "base/buf.h"
#include "fuzz/fuzz_tensor.h"
#include "report/check_writer.h"
#include "tensor/check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *path = fuzz_write("any.safetensors", data, size);
    const struct fr_check_options o = {.step = -1, .threads = 1, .compare = path};
    const struct fr_check_write_options w = {.width = 80, .all = true};
    struct fr_check r;
    struct fr_err err = {0};
    if (fr_check_paths(&path, 1, &o, &r, &err) != 0) {
        CHECK(err.msg[0] != '\0');
        return 0;
    }
    for (unsigned i = 0; i < fr_check_writers_count; i++) {
        FR_AUTO(fr_buf) out = FR_BUF_INIT(0);
        CHECK(fr_check_writers[i]->write(&r, &w, &out, &err) == 0);
        CHECK(fr_sv_chr(fr_buf_sv(&out), '\033') == FR_NPOS);
        CHECK(strcmp(fr_check_writers[i]->name, "html") != 0 ||
              !fr_sv_has(fr_buf_sv(&out), FR_SV("<script")));
    }
    fr_check_release(&r);
    return 0;
}
