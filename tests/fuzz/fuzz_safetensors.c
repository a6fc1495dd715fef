/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_safetensors: any bytes as a safetensors file. */
#include "fuzz/fuzz_tensor.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_open(fuzz_write("x.safetensors", data, size));
    return 0;
}
