/* SPDX-License-Identifier: Apache-2.0 */
/* model_config: what a Hugging Face config.json says that smoke tests need. */
#ifndef FR_CLI_MODEL_CONFIG_H
#define FR_CLI_MODEL_CONFIG_H

#include "repro/smoke.h"

/* Reads path into *s; what the file does not say stays as it is. At most 16 MiB. -FR_ABSENT, -FR_IO,
 * -FR_SYNTAX with a sentence that names file and, for JSON, line. */
int fr_model_config(const char *path, struct fr_smoke *s, struct fr_err *err);
/* "float16", "torch.bfloat16", "fp32", ...; false when it is none of the three. */
bool fr_model_dtype(const char *name, struct fr_smoke *s);

#endif
