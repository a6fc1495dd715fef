/* SPDX-License-Identifier: Apache-2.0 */
/* digest: SHA-256, as sha256sum and the Hugging Face hub print it, so that a manifest can be
 * checked without us. OpenSSL's libcrypto, which uses the CPU's SHA instructions; loaded when a
 * manifest is first written or verified, like the libraries of ADR 4. Thread-safe; one digest per
 * thread. */
#ifndef FR_TENSOR_DIGEST_H
#define FR_TENSOR_DIGEST_H

#include "base/err.h"

#include <stddef.h>

#define FR_DIGEST_HEX 64

struct fr_digest;
/* -FR_ABSENT when libcrypto is not installed (the sentence names the package), -FR_NOMEM. */
int fr_digest_new(struct fr_digest **ret, struct fr_err *err);
void fr_digest_begin(struct fr_digest *d);
void fr_digest_add(struct fr_digest *d, const void *p, size_t n);
void fr_digest_end(struct fr_digest *d, char hex[FR_DIGEST_HEX + 1]);
void fr_digest_free(struct fr_digest **d);

#endif
