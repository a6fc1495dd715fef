/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_npz: any bytes as a numpy archive. */
#include "fuzz/fuzz_tensor.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_open(fuzz_write("x.npz", data, size));
    return 0;
}
