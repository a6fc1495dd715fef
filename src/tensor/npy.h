/* SPDX-License-Identifier: Apache-2.0 */
/* npy: the header of a numpy array, which is a Python literal: {'descr': '<f4', 'fortran_order':
 * False, 'shape': (3, 4), }. */
#ifndef FR_TENSOR_NPY_H
#define FR_TENSOR_NPY_H

#include "tensor/build.h"

#define FR_NPY_HEADER_MAX ((size_t)1 << 20)

/* Bytes of the header (magic included) by its first 12 bytes; 0 when they are no npy header. */
size_t fr_npy_header_length(fr_sv first);
/* Appends the array whose header is `header`; `at` is where the header begins in the file or
 * member, `size` the bytes of header and data there. member as in fr_tensor. */
void fr_npy_add(struct fr_ckpt *c, uint32_t file, fr_sv name, fr_sv header, uint64_t at,
                uint64_t size, int32_t member);

#endif
