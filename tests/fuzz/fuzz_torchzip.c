/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_torchzip: any bytes as a file of torch.save(): zip, pickle, storages. */
#include "fuzz/fuzz_tensor.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_open(fuzz_write("x.pt", data, size));
    return 0;
}
