/* SPDX-License-Identifier: Apache-2.0 */
/* torchzip: what torch.save() writes since PyTorch 1.6, as a file or as a range of one (a DCP
 * blob): a zip with a pickle and storages. */
#ifndef FR_TENSOR_TORCHZIP_H
#define FR_TENSOR_TORCHZIP_H

#include "tensor/build.h"
#include "tensor/pickle.h"
#include "tensor/zipdir.h"

/* The archive and its pickle. Release what was opened; the blob must outlive it. */
struct fr_torch {
    struct fr_zip zip;
    fr_sv root;           /* "archive/": what member names begin with */
    char *text;           /* the bytes of data.pkl */
    uint64_t pickle_at;   /* where they lie in the file; 0 when they are deflated */
    const struct fr_zip_member *damaged; /* the pickle when its bytes are not those that were
                                            written; NULL */
    uint32_t damaged_crc;                /* what its bytes have */
    bool big_endian;
    bool objects;         /* its pickle makes objects of classes that are not known */
    struct fr_pickle pickle;
    struct fr_arena scratch;
};

/* 0; else *err is a sentence and *ret_kind the problem it is. */
int fr_torch_open(const struct fr_blob *b, uint64_t base, uint64_t size,
                  const struct fr_ckpt_limits *limits, struct fr_torch *ret, uint8_t *ret_kind,
                  struct fr_err *err);
void fr_torch_release(struct fr_torch *t);

/* Appends the tensors of [base, base + size) of the file, named `prefix` and the path of keys;
 * problems too. */
void fr_torch_read(struct fr_ckpt *c, uint32_t file, const struct fr_blob *b, uint64_t base,
                   uint64_t size, fr_sv prefix);

/* Problems of the names in a pickle whose first byte is at `at` of the file: what would run code,
 * and classes that are not known, which are a problem of the kind `objects`. true if there are
 * such classes. */
bool fr_torch_globals(struct fr_ckpt *c, uint32_t file, struct fr_pickle *k, uint64_t at,
                      enum fr_problem_kind objects);

/* torch_tensors.c: the tensors of an archive that is open. */
void fr_torch_tensors(struct fr_ckpt *c, uint32_t file, const struct fr_torch *t, fr_sv prefix);

#endif
