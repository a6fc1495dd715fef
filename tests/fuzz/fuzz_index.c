/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_index: any bytes as the index.json of real shards. */
#include "fuzz/fuzz_tensor.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (fuzz_dir[0] == '\0') {
        fuzz_fixture("sharded/model-00001-of-00002.safetensors", "model-00001-of-00002.safetensors");
        fuzz_fixture("sharded/model-00002-of-00002.safetensors", "model-00002-of-00002.safetensors");
    }
    (void)fuzz_write("model.safetensors.index.json", data, size);
    fuzz_open(fuzz_folder());
    return 0;
}
