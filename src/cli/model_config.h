/* SPDX-License-Identifier: Apache-2.0 */
/* model_config: what a model's config.json and the settings of its training (DeepSpeed JSON,
 * TrainingArguments JSON, Megatron arguments: tensor/config.h) say that smoke tests need. */
#ifndef FR_CLI_MODEL_CONFIG_H
#define FR_CLI_MODEL_CONFIG_H

#include "repro/smoke.h"

struct fr_config; /* tensor/config.h */

/* Reads the files (names separated by commas) into *s; settings override the model's file, a later
 * file an earlier one. What no file says becomes the default of a framework whose file is there, or
 * stays as it is. -FR_ABSENT, -FR_IO, -FR_SYNTAX with a sentence that names the file. */
int fr_model_config(const char *paths, struct fr_smoke *s, struct fr_err *err);
/* The same from what was read. */
int fr_model_take(const struct fr_config *c, struct fr_smoke *s, struct fr_err *err);
/* "float16", "torch.bfloat16", "fp32", ...; false when it is none of the three. */
bool fr_model_dtype(const char *name, struct fr_smoke *s);

#endif
