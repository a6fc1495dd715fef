/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_npy: any bytes as a numpy array. */
#include "fuzz/fuzz_tensor.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_open(fuzz_write("x.npy", data, size));
    return 0;
}
