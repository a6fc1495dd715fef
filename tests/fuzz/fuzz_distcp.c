/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_distcp: any bytes as the data of a DCP checkpoint without its index: blobs are looked for. */
#include "fuzz/fuzz_tensor.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_open(fuzz_write("__0_0.distcp", data, size));
    return 0;
}
