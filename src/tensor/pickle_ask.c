/* SPDX-License-Identifier: Apache-2.0 */
/* Questions to a pickle that was read, and its end. */
#include "tensor/pickle.h"

enum { ATTRIBUTES = 64 };

bool fr_pk_is(const struct fr_pickle *k, uint32_t node, fr_sv module, fr_sv name)
{
    const struct fr_pk_node *d = fr_pk_at(k, node);
    d = d->kind == FR_PK_CALL ? fr_pk_at(k, d->u.call.callable) : d;
    return d->kind == FR_PK_GLOBAL && fr_sv_eq(fr_pk_module(d), module) &&
           fr_sv_eq(fr_pk_name(d), name);
}

/* The elements behind a node: its own, or those of torch.Size((1, 2)), tuple([..]), list(..).
 * Never a cycle: one step. */
static const struct fr_pk_node *elements(const struct fr_pickle *k, uint32_t node)
{
    const struct fr_pk_node *d = fr_pk_at(k, node);
    if (d->kind != FR_PK_CALL) {
        return d;
    }
    if (d->u.call.items != FR_PK_NONE) {
        return fr_pk_at(k, d->u.call.items);
    }
    if (fr_pk_is(k, node, FR_SV("torch"), FR_SV("Size")) ||
        fr_pk_is(k, node, FR_SV("builtins"), FR_SV("tuple")) ||
        fr_pk_is(k, node, FR_SV("builtins"), FR_SV("list"))) {
        const struct fr_pk_node *args = fr_pk_at(k, d->u.call.args);
        return args->kind == FR_PK_TUPLE && args->u.list.n == 1 ? fr_pk_at(k, args->u.list.v[0])
                                                                : d;
    }
    return d;
}

uint32_t fr_pk_count(const struct fr_pickle *k, uint32_t node)
{
    const struct fr_pk_node *d = elements(k, node);
    return d->kind == FR_PK_TUPLE || d->kind == FR_PK_LIST || d->kind == FR_PK_SET ? d->u.list.n
           : d->kind == FR_PK_DICT                                                 ? d->u.list.n / 2
                                                                                   : 0;
}

uint32_t fr_pk_item(const struct fr_pickle *k, uint32_t node, uint32_t i)
{
    const struct fr_pk_node *d = elements(k, node);
    bool is_list = d->kind == FR_PK_TUPLE || d->kind == FR_PK_LIST || d->kind == FR_PK_SET;
    return is_list && i < d->u.list.n ? d->u.list.v[i] : FR_PK_NONE;
}

/* At most `most` pairs are looked at: objects have few attributes, and a million hostile ones may
 * share one dict. */
static uint32_t in_dict(const struct fr_pickle *k, const struct fr_pk_node *d, fr_sv key,
                        uint32_t most)
{
    fr_sv s;
    uint32_t found = FR_PK_NONE;
    for (uint32_t i = 0; d->kind == FR_PK_DICT && i + 1 < d->u.list.n && i < 2 * most; i += 2) {
        if (fr_pk_str(k, d->u.list.v[i], &s) && fr_sv_eq(s, key)) {
            found = d->u.list.v[i + 1]; /* the last counts, as in Python */
        }
    }
    return found;
}

uint32_t fr_pk_get(const struct fr_pickle *k, uint32_t node, fr_sv key)
{
    const struct fr_pk_node *d = fr_pk_at(k, node), *state;
    if (d->kind != FR_PK_CALL) {
        return in_dict(k, d, key, UINT32_MAX / 2);
    }
    uint32_t found = in_dict(k, fr_pk_at(k, d->u.call.items), key, ATTRIBUTES);
    state = fr_pk_at(k, d->u.call.state);
    for (uint32_t i = 0;
         found == FR_PK_NONE && state->kind == FR_PK_TUPLE && i < state->u.list.n && i < 2;
         i++) { /* (dict, slots) */
        found = in_dict(k, fr_pk_at(k, state->u.list.v[i]), key, ATTRIBUTES);
    }
    return found != FR_PK_NONE ? found : in_dict(k, state, key, ATTRIBUTES);
}

bool fr_pk_str(const struct fr_pickle *k, uint32_t node, fr_sv *ret)
{
    const struct fr_pk_node *d = fr_pk_at(k, node);
    if (d->kind == FR_PK_STR) {
        *ret = d->u.s;
    }
    return d->kind == FR_PK_STR;
}

bool fr_pk_u64(const struct fr_pickle *k, uint32_t node, uint64_t *ret)
{
    const struct fr_pk_node *d = fr_pk_at(k, node);
    bool is_count = d->kind == FR_PK_INT && d->u.i >= 0;
    if (is_count) {
        *ret = (uint64_t)d->u.i;
    }
    return is_count;
}

const char *fr_pk_op_name(unsigned char op)
{
    static const struct { unsigned char op; const char *name;
    } names[] = {
        {'i', "INST"},        {'o', "OBJ"},          {'P', "PERSID"},
        {0x82, "EXT1"},       {0x83, "EXT2"},        {0x84, "EXT4"},
        {'I', "INT"},         {'L', "LONG"},         {'F', "FLOAT"},
        {'S', "STRING"},      {'V', "UNICODE"},      {'p', "PUT"},
        {'g', "GET"},         {'l', "LIST"},         {'d', "DICT"},
        {0x96, "BYTEARRAY8"}, {0x97, "NEXT_BUFFER"}, {0x98, "READONLY_BUFFER"},
        {'1', "POP_MARK"},    {0x92, "NEWOBJ_EX"},
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (names[i].op == op) {
            return names[i].name;
        }
    }
    return "of no pickle";
}

void fr_pickle_release(struct fr_pickle *k)
{
    fr_vec_free(k->nodes.v);
    k->nodes.v = NULL;
    k->nodes.n = 0;
    fr_arena_release(&k->arena);
}
