/* SPDX-License-Identifier: Apache-2.0 */
/* manifest: a checkpoint's files with their sizes and SHA-256, in one JSON file kept beside them:
 *
 *   {"schema": "faultrank.manifest/1",
 *    "files":   [{"path": "model.safetensors", "size": 887, "sha256": "9f86..."}],
 *    "tensors": [{"name": "model.norm.weight", "file": "model.safetensors",
 *                 "offset": 704, "bytes": 60, "sha256": "..."}]}                      optional
 *
 * Paths are relative to the manifest's folder. The hashes of tensors say, when a file differs,
 * which tensors do. */
#ifndef FR_TENSOR_MANIFEST_H
#define FR_TENSOR_MANIFEST_H

#include "base/buf.h"
#include "tensor/checkpoint.h"

#define FR_MANIFEST_NAME "faultrank.manifest.json"

/* Appends the manifest of the checkpoint's files (leftovers of interrupted saves are left out) for
 * a manifest in folder `root`: paths of files below it become relative. Reads every file whole.
 * -FR_IO when one cannot be read, -FR_ARG when a path is not UTF-8, -FR_ABSENT, -FR_NOMEM. */
int fr_manifest_write(const struct fr_checkpoint *c, fr_sv root, bool tensors, struct fr_buf *out,
                      struct fr_err *err);

/* Reads the manifest at `path` and compares. Differences are problems in the arena: MISSING (a
 * file it lists is not there), TRUNCATED (other size), CHECKSUM (other bytes; of tensors too,
 * where it lists them), EXTRA (not fatal: a file of the checkpoint that it does not list). Files
 * that it lists and the checkpoint does not have are opened as well. An error only when the
 * manifest itself cannot be read. */
int fr_manifest_verify(const struct fr_checkpoint *c, const char *path, struct fr_arena *arena,
                       struct fr_problem **ret, uint32_t *ret_n, struct fr_err *err);

#endif
