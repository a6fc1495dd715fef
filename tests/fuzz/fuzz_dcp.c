/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_dcp: any bytes as the .metadata of a real DCP checkpoint. */
#include "fuzz/fuzz_tensor.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (fuzz_dir[0] == '\0') {
        fuzz_fixture("dcp2/__0_0.distcp", "__0_0.distcp");
        fuzz_fixture("dcp2/__1_0.distcp", "__1_0.distcp");
    }
    (void)fuzz_write(".metadata", data, size);
    fuzz_open(fuzz_folder());
    return 0;
}
