/* SPDX-License-Identifier: Apache-2.0 */
/* inflate: a deflated member of a zip as a stream that only goes forward. zlib, linked statically:
 * no library is loaded at start for it (ADR 4), and there is one decoder of checkpoints whatever
 * is installed. Memory: one state of about 110 KiB. */
#ifndef FR_TENSOR_INFLATE_H
#define FR_TENSOR_INFLATE_H

#include "tensor/blob.h"

struct fr_inflate;
/* Member bytes at [at, at + packed) of the file; the blob must outlive it. -FR_NOMEM. */
int fr_inflate_open(const struct fr_blob *b, uint64_t at, uint64_t packed, struct fr_inflate **ret,
                    struct fr_err *err);
/* Exactly n unpacked bytes (p NULL: passed over). -FR_SYNTAX when the data are damaged or end
 * early; -FR_IO. err->pos is in the file. */
int fr_inflate_read(struct fr_inflate *f, void *p, uint64_t n, struct fr_err *err);
uint64_t fr_inflate_at(const struct fr_inflate *f); /* unpacked bytes so far */
void fr_inflate_close(struct fr_inflate **f);

#endif
