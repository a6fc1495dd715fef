/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_settings: any bytes as config.json, DeepSpeed or TrainingArguments JSON, or Megatron
 * arguments. */
#include "fuzz/fuzz_tensor.h"
#include "tensor/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fr_arena arena = FR_ARENA_INIT(0);
    struct fr_config c;
    struct fr_err err = {0};
    fr_config_init(&c);
    const int rc = fr_config_read(&c, fuzz_write("settings", data, size), &arena, &err);
    CHECK(rc == 0 || err.msg[0] != '\0');
    CHECK(c.settings_n <= FR_CONFIG_FILES);
    (void)touch(c.model.model_type);
    fr_arena_release(&arena);
    return 0;
}
