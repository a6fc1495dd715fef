/* SPDX-License-Identifier: Apache-2.0 */
/* pickle: a closed interpreter. It reads the opcodes of formats.md 7.2, 9.3 and 9.4 into nodes and
 * executes nothing: GLOBAL is a name, REDUCE, NEWOBJ and BUILD are nodes that say what would be
 * called with what. Every other opcode is refused by its name and offset.
 *
 * Strings are views into the caller's bytes, which must outlive the pickle; nodes are on the heap,
 * their lists in `arena`; fr_pickle_release() frees both. Bounded: bytes by the caller, nodes,
 * list slots, stack and memo by FR_PK_*; no recursion. */
#ifndef FR_TENSOR_PICKLE_H
#define FR_TENSOR_PICKLE_H

#include "base/arena.h"
#include "base/err.h"
#include "base/vec.h"

#define FR_PK_NODES_MAX (4u << 20)  /* also of the stack and the memo */
#define FR_PK_SLOTS_MAX (16u << 20) /* elements of all lists, tuples, dicts and sets */
#define FR_PK_NONE UINT32_MAX       /* no node */

enum fr_pk_kind {
    FR_PK_NIL,
    FR_PK_BOOL,
    FR_PK_INT,
    FR_PK_BIG,
    FR_PK_FLOAT,
    FR_PK_STR,
    FR_PK_BYTES,
    FR_PK_TUPLE,
    FR_PK_LIST,
    FR_PK_DICT,
    FR_PK_SET,
    FR_PK_GLOBAL, /* module and name */
    FR_PK_CALL,   /* callable(args), with state, and what was appended or set afterwards */
    FR_PK_PERSID  /* a persistent id, for PyTorch a storage */
};

struct fr_pk_node {
    uint8_t kind,
        mark; /* mark: of the reader; GLOBAL: fr_global_kind() + 1 once fr_torch_globals() saw it */
    uint32_t at; /* offset of its opcode */
    union {
        int64_t i; /* INT, BOOL */
        double f;
        fr_sv s;                                       /* STR, BYTES */
        struct {
            uint32_t *v, n, cap;
        } list; /* TUPLE LIST SET; DICT: key, value, key, value */
        struct { const char *module, *name; uint32_t module_n, name_n; } global;
        struct {
            uint32_t callable, args, state, items;
        } call; /* items: a LIST or DICT node, or FR_PK_NONE, as may be state */
        uint32_t id;                                   /* PERSID: the node of the id */
    } u;
};

struct fr_pickle {
    FR_VEC(struct fr_pk_node) nodes;
    uint32_t root;
    size_t end;     /* bytes read, STOP included */
    uint32_t slots;
    struct fr_arena arena;
};

/* 0; -FR_SYNTAX malformed or cut short, -FR_ARG an opcode that is refused, -FR_LIMIT, -FR_NOMEM;
 * err->pos is the offset in the pickle. On failure nothing is to be released. */
int fr_pickle_read(const char *p, size_t n, struct fr_pickle *ret, struct fr_err *err);
void fr_pickle_release(struct fr_pickle *k);

static inline const struct fr_pk_node *fr_pk_at(const struct fr_pickle *k, uint32_t node)
{
    static const struct fr_pk_node none = {.kind = FR_PK_NIL};
    return node < k->nodes.n ? &k->nodes.v[node] : &none;
}
static inline fr_sv fr_pk_module(const struct fr_pk_node *g)
{
    return (fr_sv){g->u.global.module, g->u.global.module_n};
}
static inline fr_sv fr_pk_name(const struct fr_pk_node *g)
{
    return (fr_sv){g->u.global.name, g->u.global.name_n};
}

/* Element i of a TUPLE, LIST or SET; FR_PK_NONE when there is none. A call of torch.Size, list or
 * tuple is looked through. */
uint32_t fr_pk_item(const struct fr_pickle *k, uint32_t node, uint32_t i);
uint32_t fr_pk_count(const struct fr_pickle *k, uint32_t node);
/* The value of a string key in a DICT, in what was set on a call (OrderedDict), or in a call's
 * state; FR_PK_NONE. */
uint32_t fr_pk_get(const struct fr_pickle *k, uint32_t node, fr_sv key);
bool fr_pk_str(const struct fr_pickle *k, uint32_t node, fr_sv *ret);
bool fr_pk_u64(const struct fr_pickle *k, uint32_t node, uint64_t *ret);
/* Whether a node is a call of, or is, the global module.name. */
bool fr_pk_is(const struct fr_pickle *k, uint32_t node, fr_sv module, fr_sv name);
const char *fr_pk_op_name(unsigned char op); /* of an opcode that is refused */

#endif
