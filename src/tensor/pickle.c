/* SPDX-License-Identifier: Apache-2.0 */
/* One small function per opcode in one table: what is not in the table is refused. */
#include "tensor/pickle.h"

#include "base/alloc.h"
#include "tensor/zipdir.h"

#define MARK UINT32_MAX

struct vm {
    const char *p;
    size_t n, at, op_at;
    struct fr_pickle *k;
    FR_VEC(uint32_t) stack;
    FR_VEC(uint32_t) memo; /* node + 1; 0 = not put */
    uint32_t marks;
    int code;              /* 0, or why it ended */
    const char *why;
    bool stopped;
};

static bool fail(struct vm *m, int code, const char *why)
{
    if (m->code == 0) {
        m->code = code;
        m->why = why;
    }
    return false;
}

static bool need(struct vm *m, uint64_t n)
{
    if (n <= m->n - m->at) {
        return true;
    }
    m->op_at = m->n; /* where more was expected */
    return fail(m, FR_SYNTAX, "the pickle is cut short");
}

static bool push(struct vm *m, uint32_t node)
{
    if (m->stack.n >= FR_PK_NODES_MAX) {
        return fail(m, FR_LIMIT, "the pickle's stack is too deep");
    }
    uint32_t *slot = FR_PUSH(&m->stack);
    if (slot == NULL) {
        return fail(m, FR_NOMEM, "out of memory");
    }
    *slot = node;
    m->marks += node == MARK;
    return true;
}

static bool pop(struct vm *m, uint32_t *ret)
{
    if (m->stack.n == 0 || m->stack.v[m->stack.n - 1] == MARK) {
        return fail(m, FR_SYNTAX, "the pickle takes from an empty stack");
    }
    *ret = m->stack.v[--m->stack.n];
    return true;
}

static struct fr_pk_node *node_new(struct vm *m, uint8_t kind, uint32_t *ret)
{
    if (m->k->nodes.n >= FR_PK_NODES_MAX) {
        fail(m, FR_LIMIT, "the pickle has too many objects");
        return NULL;
    }
    struct fr_pk_node *d = FR_PUSH(&m->k->nodes);
    if (d == NULL) {
        fail(m, FR_NOMEM, "out of memory");
        return NULL;
    }
    d->kind = kind;
    d->at = (uint32_t)m->op_at;
    *ret = m->k->nodes.n - 1;
    return d;
}

static struct fr_pk_node *push_new(struct vm *m, uint8_t kind)
{
    uint32_t i;
    struct fr_pk_node *d = node_new(m, kind, &i);
    return d != NULL && push(m, i) ? d : NULL;
}

/* Room for `more` elements in a list node. */
static bool list_room(struct vm *m, struct fr_pk_node *d, uint32_t more)
{
    if (more > FR_PK_SLOTS_MAX - m->k->slots) {
        return fail(m, FR_LIMIT, "the pickle's lists have too many elements");
    }
    m->k->slots += more;
    uint32_t want = d->u.list.n + more, cap = d->u.list.cap;
    if (want <= cap) {
        return true;
    }
    cap = cap * 2 > want ? cap * 2 : want;
    uint32_t *v = FR_NEW_N(&m->k->arena, uint32_t, cap);
    if (v == NULL) {
        return fail(m, FR_NOMEM, "out of memory");
    }
    if (d->u.list.n > 0) {
        memcpy(v, d->u.list.v, d->u.list.n * sizeof *v);
    }
    d->u.list.v = v;
    d->u.list.cap = cap;
    return true;
}

static bool list_add(struct vm *m, uint32_t list, const uint32_t *v, uint32_t n)
{
    struct fr_pk_node *d = &m->k->nodes.v[list];
    if (!list_room(m, d, n)) {
        return false;
    }
    if (n > 0) {
        memcpy(d->u.list.v + d->u.list.n, v, n * sizeof *v);
    }
    d->u.list.n += n;
    return true;
}

/* Number of stack elements above the last mark. */
static bool above_mark(struct vm *m, uint32_t *ret)
{
    if (m->marks == 0) {
        return fail(m, FR_SYNTAX, "the pickle misses a mark");
    }
    uint32_t i = m->stack.n;
    while (m->stack.v[i - 1] != MARK) {
        i--;
    }
    *ret = m->stack.n - i;
    return true;
}

static void drop_to_mark(struct vm *m, uint32_t n)
{
    m->stack.n -= n + 1;
    m->marks--;
}

/* What APPENDS, SETITEMS and ADDITEMS fill: the node itself, or what a call gathers. */
static bool target(struct vm *m, uint32_t node, uint8_t kind, uint32_t *ret)
{
    uint32_t made;
    struct fr_pk_node *d = &m->k->nodes.v[node];
    if (d->kind == kind) {
        *ret = node;
        return true;
    }
    if (d->kind != FR_PK_CALL) {
        return fail(m, FR_SYNTAX, "the pickle fills what is no container");
    }
    if (d->u.call.items == FR_PK_NONE) {
        if (node_new(m, kind, &made) == NULL) {
            return false;
        }
        m->k->nodes.v[node].u.call.items = made;
    }
    *ret = m->k->nodes.v[node].u.call.items;
    return m->k->nodes.v[*ret].kind == kind ||
           fail(m, FR_SYNTAX, "the pickle fills one object as a list and as a dict");
}

/* Whether the n topmost elements are values. */
static bool are_values(const struct vm *m, uint32_t n)
{
    bool good = m->stack.n >= n;
    for (uint32_t i = 0; good && i < n; i++) {
        good = m->stack.v[m->stack.n - 1 - i] != MARK;
    }
    return good;
}

/* The n topmost elements. */
static const uint32_t *top(const struct vm *m, uint32_t n)
{
    return n > 0 ? m->stack.v + m->stack.n - n : NULL;
}

static bool fill(struct vm *m, uint8_t kind, uint32_t n, bool marked)
{
    uint32_t under = n + (marked ? 1 : 0), into;
    if (m->stack.n <= under || m->stack.v[m->stack.n - under - 1] == MARK ||
        (!marked && !are_values(m, n))) {
        return fail(m, FR_SYNTAX, "the pickle takes from an empty stack");
    }
    if (kind == FR_PK_DICT && n % 2 != 0) {
        return fail(m, FR_SYNTAX, "the pickle has a key without a value");
    }
    if (!target(m, m->stack.v[m->stack.n - under - 1], kind, &into) ||
        !list_add(m, into, top(m, n), n)) {
        return false;
    }
    m->stack.n -= under;
    m->marks -= marked;
    return true;
}

/* ---- opcodes; the opcode itself is taken ---- */

static bool op_proto(struct vm *m)
{
    return need(m, 1) &&
           ((unsigned char)m->p[m->at++] <= 5 || fail(m, FR_SYNTAX, "a pickle protocol above 5"));
}

static bool op_frame(struct vm *m)
{
    if (!need(m, 8)) {
        return false;
    }
    m->at += 8;
    return need(m, fr_le64(m->p + m->at - 8));
}

static bool op_stop(struct vm *m)
{
    m->stopped = true;
    return pop(m, &m->k->root);
}

static bool op_mark(struct vm *m) { return push(m, MARK); }

static bool op_pop(struct vm *m)
{
    uint32_t dropped;
    if (m->stack.n > 0 && m->stack.v[m->stack.n - 1] == MARK) {
        drop_to_mark(m, 0);
        return true;
    }
    return pop(m, &dropped);
}

static bool op_dup(struct vm *m)
{
    uint32_t node;
    return pop(m, &node) && push(m, node) && push(m, node);
}

static bool op_none(struct vm *m) { return push_new(m, FR_PK_NIL) != NULL; }

static bool push_int(struct vm *m, uint8_t kind, int64_t v)
{
    struct fr_pk_node *d = push_new(m, kind);
    if (d != NULL) {
        d->u.i = v;
    }
    return d != NULL;
}

static bool op_true(struct vm *m) { return push_int(m, FR_PK_BOOL, 1); }
static bool op_false(struct vm *m) { return push_int(m, FR_PK_BOOL, 0); }

static bool op_int1(struct vm *m)
{
    return need(m, 1) && push_int(m, FR_PK_INT, (unsigned char)m->p[m->at++]);
}

static bool op_int2(struct vm *m)
{
    if (!need(m, 2)) {
        return false;
    }
    m->at += 2;
    return push_int(m, FR_PK_INT, fr_le16(m->p + m->at - 2));
}

static bool op_int4(struct vm *m)
{
    if (!need(m, 4)) {
        return false;
    }
    m->at += 4;
    return push_int(m, FR_PK_INT, (int32_t)fr_le32(m->p + m->at - 4));
}

static bool push_long(struct vm *m, uint64_t n)
{
    if (!need(m, n)) {
        return false;
    }
    const unsigned char *p = (const unsigned char *)m->p + m->at;
    m->at += n;
    if (n > 8) {
        return push_int(m, FR_PK_BIG, 0);
    }
    uint64_t v = n > 0 && p[n - 1] >= 0x80 ? UINT64_MAX : 0;
    for (uint64_t i = n; i-- > 0;) {
        v = v << 8 | p[i];
    }
    return push_int(m, FR_PK_INT, (int64_t)v);
}

/* A length field of `width` bytes, taken. */
static bool length(struct vm *m, unsigned width, uint64_t *ret)
{
    if (!need(m, width)) {
        return false;
    }
    const char *p = m->p + m->at;
    *ret = width == 1 ? (unsigned char)*p : width == 4 ? fr_le32(p) : fr_le64(p);
    m->at += width;
    return true;
}

static bool op_long1(struct vm *m)
{
    uint64_t n;
    return length(m, 1, &n) && push_long(m, n);
}

static bool op_long4(struct vm *m)
{
    uint64_t n;
    return length(m, 4, &n) && push_long(m, n);
}

static bool op_float(struct vm *m)
{
    uint64_t v = 0;
    if (!need(m, 8)) {
        return false;
    }
    for (int i = 0; i < 8; i++) {
        v = v << 8 | (unsigned char)m->p[m->at++];
    }
    struct fr_pk_node *d = push_new(m, FR_PK_FLOAT);
    if (d != NULL) {
        memcpy(&d->u.f, &v, sizeof v);
    }
    return d != NULL;
}

static bool text(struct vm *m, uint8_t kind, unsigned width)
{
    uint64_t n;
    if (!length(m, width, &n) || !need(m, n)) {
        return false;
    }
    struct fr_pk_node *d = push_new(m, kind);
    if (d != NULL) {
        d->u.s = (fr_sv){m->p + m->at, (size_t)n};
        m->at += (size_t)n;
    }
    return d != NULL;
}

static bool op_str1(struct vm *m) { return text(m, FR_PK_STR, 1); }
static bool op_str4(struct vm *m) { return text(m, FR_PK_STR, 4); }
static bool op_str8(struct vm *m) { return text(m, FR_PK_STR, 8); }
static bool op_bytes1(struct vm *m) { return text(m, FR_PK_BYTES, 1); }
static bool op_bytes4(struct vm *m) { return text(m, FR_PK_BYTES, 4); }
static bool op_bytes8(struct vm *m) { return text(m, FR_PK_BYTES, 8); }
static bool op_list(struct vm *m) { return push_new(m, FR_PK_LIST) != NULL; }
static bool op_dict(struct vm *m) { return push_new(m, FR_PK_DICT) != NULL; }
static bool op_set(struct vm *m) { return push_new(m, FR_PK_SET) != NULL; }

/* The n topmost elements (and a mark under them) become one tuple or set. */
static bool gather(struct vm *m, uint8_t kind, uint32_t n, bool marked)
{
    uint32_t made;
    if (!marked && !are_values(m, n)) {
        return fail(m, FR_SYNTAX, "the pickle takes from an empty stack");
    }
    if (node_new(m, kind, &made) == NULL || !list_add(m, made, top(m, n), n)) {
        return false;
    }
    m->stack.n -= n + (marked ? 1 : 0);
    m->marks -= marked;
    return push(m, made);
}

static bool gather_marked(struct vm *m, uint8_t kind)
{
    uint32_t n;
    return above_mark(m, &n) && gather(m, kind, n, true);
}

static bool op_tuple0(struct vm *m) { return gather(m, FR_PK_TUPLE, 0, false); }
static bool op_tuple1(struct vm *m) { return gather(m, FR_PK_TUPLE, 1, false); }
static bool op_tuple2(struct vm *m) { return gather(m, FR_PK_TUPLE, 2, false); }
static bool op_tuple3(struct vm *m) { return gather(m, FR_PK_TUPLE, 3, false); }
static bool op_tuple(struct vm *m) { return gather_marked(m, FR_PK_TUPLE); }
static bool op_frozenset(struct vm *m) { return gather_marked(m, FR_PK_SET); }

static bool fill_marked(struct vm *m, uint8_t kind)
{
    uint32_t n;
    return above_mark(m, &n) && fill(m, kind, n, true);
}

static bool op_append(struct vm *m) { return fill(m, FR_PK_LIST, 1, false); }
static bool op_appends(struct vm *m) { return fill_marked(m, FR_PK_LIST); }
static bool op_setitem(struct vm *m) { return fill(m, FR_PK_DICT, 2, false); }
static bool op_setitems(struct vm *m) { return fill_marked(m, FR_PK_DICT); }
static bool op_additems(struct vm *m) { return fill_marked(m, FR_PK_SET); }

static bool push_global(struct vm *m, fr_sv module, fr_sv name)
{
    struct fr_pk_node *d = push_new(m, FR_PK_GLOBAL);
    if (d != NULL) {
        d->u.global.module = module.p;
        d->u.global.name = name.p;
        d->u.global.module_n = (uint32_t)module.n;
        d->u.global.name_n = (uint32_t)name.n;
    }
    return d != NULL;
}

static bool line(struct vm *m, fr_sv *ret)
{
    fr_sv rest = {m->p + m->at, m->n - m->at};
    size_t end = fr_sv_chr(rest, '\n');
    if (end == FR_NPOS) {
        return fail(m, FR_SYNTAX, "the pickle is cut short");
    }
    *ret = fr_sv_head(rest, end);
    m->at += end + 1;
    return true;
}

static bool op_global(struct vm *m)
{
    fr_sv module, name;
    return line(m, &module) && line(m, &name) && push_global(m, module, name);
}

static bool op_stack_global(struct vm *m)
{
    uint32_t name, module;
    if (!pop(m, &name) || !pop(m, &module)) {
        return false;
    }
    const struct fr_pk_node *a = &m->k->nodes.v[module], *b = &m->k->nodes.v[name];
    if (a->kind != FR_PK_STR || b->kind != FR_PK_STR) {
        return fail(m, FR_SYNTAX, "the pickle names a global by something that is no text");
    }
    return push_global(m, a->u.s, b->u.s);
}

static bool call(struct vm *m, uint32_t callable, uint32_t args)
{
    struct fr_pk_node *d = push_new(m, FR_PK_CALL);
    if (d != NULL) {
        d->u.call.callable = callable;
        d->u.call.args = args;
        d->u.call.state = d->u.call.items = FR_PK_NONE;
    }
    return d != NULL;
}

static bool op_reduce(struct vm *m)
{
    uint32_t args, callable;
    return pop(m, &args) && pop(m, &callable) && call(m, callable, args);
}

/* A second BUILD keeps the first state beside its own: nothing may be hidden by it. */
static bool op_build(struct vm *m)
{
    uint32_t state, object, both, pair[2];
    if (!pop(m, &state) || !pop(m, &object) || !push(m, object)) {
        return false;
    }
    if (m->k->nodes.v[object].kind != FR_PK_CALL) {
        return fail(m, FR_SYNTAX, "the pickle gives a state to what is no object");
    }
    pair[0] = m->k->nodes.v[object].u.call.state;
    pair[1] = state;
    if (pair[0] != FR_PK_NONE) {
        if (node_new(m, FR_PK_TUPLE, &both) == NULL || !list_add(m, both, pair, 2)) {
            return false;
        }
        state = both;
    }
    m->k->nodes.v[object].u.call.state = state;
    return true;
}

static bool op_persid(struct vm *m)
{
    uint32_t id;
    struct fr_pk_node *d = pop(m, &id) ? push_new(m, FR_PK_PERSID) : NULL;
    if (d != NULL) {
        d->u.id = id;
    }
    return d != NULL;
}

static bool put(struct vm *m, uint32_t at)
{
    if (m->stack.n == 0 || m->stack.v[m->stack.n - 1] == MARK) {
        return fail(m, FR_SYNTAX, "the pickle remembers nothing");
    }
    if (at >= FR_PK_NODES_MAX) {
        return fail(m, FR_LIMIT, "the pickle's memo is too large");
    }
    while (m->memo.n <= at) {
        if (FR_PUSH(&m->memo) == NULL) {
            return fail(m, FR_NOMEM, "out of memory");
        }
    }
    m->memo.v[at] = m->stack.v[m->stack.n - 1] + 1;
    return true;
}

static bool get(struct vm *m, uint64_t at)
{
    if (at >= m->memo.n || m->memo.v[at] == 0) {
        return fail(m, FR_SYNTAX, "the pickle recalls what it has not put");
    }
    return push(m, m->memo.v[at] - 1);
}

static bool op_put1(struct vm *m) { return need(m, 1) && put(m, (unsigned char)m->p[m->at++]); }
static bool op_get1(struct vm *m) { return need(m, 1) && get(m, (unsigned char)m->p[m->at++]); }
static bool op_memoize(struct vm *m) { return put(m, m->memo.n); }

static bool op_put4(struct vm *m)
{
    uint64_t at;
    return length(m, 4, &at) && put(m, (uint32_t)at);
}

static bool op_get4(struct vm *m)
{
    uint64_t at;
    return length(m, 4, &at) && get(m, at);
}

static bool (*const ops[256])(struct vm *) = {
    [0x80] = op_proto,    [0x95] = op_frame,     ['.'] = op_stop,       ['('] = op_mark,
    ['0'] = op_pop,       ['2'] = op_dup,        ['N'] = op_none,
    [0x88] = op_true,     [0x89] = op_false,     ['J'] = op_int4,       ['K'] = op_int1,
    ['M'] = op_int2,      [0x8a] = op_long1,     [0x8b] = op_long4,     ['G'] = op_float,
    ['X'] = op_str4,      [0x8c] = op_str1,      [0x8d] = op_str8,      ['U'] = op_str1,
    ['T'] = op_str4,      ['B'] = op_bytes4,     ['C'] = op_bytes1,     [0x8e] = op_bytes8,
    [']'] = op_list,      ['a'] = op_append,     ['e'] = op_appends,    ['}'] = op_dict,
    ['s'] = op_setitem,   ['u'] = op_setitems,   [')'] = op_tuple0,     ['t'] = op_tuple,
    [0x85] = op_tuple1,   [0x86] = op_tuple2,    [0x87] = op_tuple3,    [0x8f] = op_set,
    [0x90] = op_additems, [0x91] = op_frozenset, ['c'] = op_global,     [0x93] = op_stack_global,
    ['R'] = op_reduce,    [0x81] = op_reduce,    ['b'] = op_build,
    ['Q'] = op_persid,    ['q'] = op_put1,       ['r'] = op_put4,       ['h'] = op_get1,
    ['j'] = op_get4,      [0x94] = op_memoize,
};

static int report(const struct vm *m, struct fr_err *err)
{
    int rc;
    if (m->code == FR_ARG) {
        unsigned char op = (unsigned char)m->p[m->op_at];
        rc = fr_err_set(
            err, FR_ARG,
            "the pickle opcode 0x%02x (%s) at byte %zu is not one that checkpoints need: refused",
            op, fr_pk_op_name(op), m->op_at);
    } else {
        rc = fr_err_set(err, m->code, "%s (byte %zu of it)", m->why, m->op_at);
    }
    if (err != NULL) {
        err->pos = m->op_at;
    }
    return rc;
}

int fr_pickle_read(const char *p, size_t n, struct fr_pickle *ret, struct fr_err *err)
{
    struct fr_pickle k = {.root = FR_PK_NONE, .arena = FR_ARENA_INIT(0)};
    struct vm m = {.p = p, .n = n, .k = &k};
    if (n > UINT32_MAX) {
        return fr_err_set(err, FR_LIMIT, "a pickle of %zu bytes", n);
    }
    while (!m.stopped && m.code == 0) {
        m.op_at = m.at;
        if (!need(&m, 1)) {
            break;
        }
        unsigned char op = (unsigned char)p[m.at++];
        if (ops[op] == NULL) {
            fail(&m, FR_ARG, "");
        } else {
            (void)ops[op](&m);
        }
    }
    fr_vec_free(m.stack.v);
    fr_vec_free(m.memo.v);
    k.end = m.at;
    if (m.code != 0) {
        fr_pickle_release(&k);
        return report(&m, err);
    }
    *ret = k;
    return 0;
}
