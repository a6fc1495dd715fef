/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_pickle: any bytes as a pickle: read alone, and as the data.pkl of a file of torch.save() with one storage. */
#include "fuzz/fuzz_tensor.h"
#include "tensor/pickle.h"
#include "unit/tensor_zip.h"

static void ask(const struct fr_pickle *k)
{
    fr_sv s;
    uint64_t v;
    for (uint32_t i = 0; i < k->nodes.n && i < 2000; i++) {
        const struct fr_pk_node *d = fr_pk_at(k, i);
        (void)fr_pk_get(k, i, FR_SV("storage_data"));
        (void)fr_pk_item(k, i, fr_pk_count(k, i));
        (void)fr_pk_u64(k, i, &v);
        if (fr_pk_str(k, i, &s)) {
            (void)touch(s);
        }
        if (d->kind == FR_PK_GLOBAL) {
            (void)(touch(fr_pk_module(d)) + touch(fr_pk_name(d)));
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fr_pickle k;
    struct fr_err err = {0};
    int rc = fr_pickle_read((const char *)data, size, &k, &err);
    CHECK(rc == 0 || (rc == -err.code && err.msg[0] != '\0' && err.pos <= size));
    if (rc == 0) {
        CHECK(k.end <= size && k.root < k.nodes.n);
        ask(&k);
        fr_pickle_release(&k);
    }
    if (size < 60000) {
        const struct zip *z = torch_zip((const char *)data, size);
        fuzz_open(fuzz_write("x.pt", z->p, z->n));
    }
    return 0;
}
