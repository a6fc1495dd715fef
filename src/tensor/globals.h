/* SPDX-License-Identifier: Apache-2.0 */
/* globals: what a name in a pickle means to us. Nothing is ever called; the kind decides what is
 * said about it. */
#ifndef FR_TENSOR_GLOBALS_H
#define FR_TENSOR_GLOBALS_H

#include "base/view.h"

enum fr_global_kind {
    FR_GLOBAL_TENSOR,    /* of the closed list that makes tensors: understood */
    FR_GLOBAL_PLAIN,     /* containers, numbers, dtypes: kept closed, harmless,
                            torch.load(weights_only=True) knows most of them */
    FR_GLOBAL_UNKNOWN,   /* some class: kept closed */
    FR_GLOBAL_FORBIDDEN, /* would run code when it is loaded: nothing a checkpoint needs */
};

uint8_t fr_global_kind(fr_sv module, fr_sv name);
/* The dtype behind a storage class ("FloatStorage") or dtype word of torch; 0 = FR_DTYPE_UNKNOWN.
 * UntypedStorage: *ret_untyped. */
uint8_t fr_storage_dtype(fr_sv name, bool *ret_untyped);

#endif
