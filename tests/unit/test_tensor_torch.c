/* SPDX-License-Identifier: Apache-2.0 */
#include "faultrank/numerics.h"
#include "unit/tensor_open.h"
#include "unit/tensor_zip.h"

static const char *zip_written(struct zip *z, const char *name, unsigned claimed)
{
    zip_end(z, claimed);
    return written(name, z->p, z->n);
}

static const char *torch_made(const char *pickle, size_t n)
{
    const struct zip *z = torch_zip(pickle, n);
    return written("x.pt", z->p, z->n);
}

/* Pickle pieces. A tensor of storage "0": shape (n) or any, one dimension, stride 1. */
#define GLOBAL_(module, name) "c" module "\n" name "\n"
#define TEXT1(n, s) "X" n "\0\0\0" s
#define PERSID_4 "(X\7\0\0\0storage" GLOBAL_("torch", "FloatStorage") TEXT1("\1", "0") TEXT1("\3", "cpu") "K\4tQ"
#define ARGS(offset, size, stride) "(" PERSID_4 offset size stride "\x89)" GLOBAL_("collections", "OrderedDict") ")Rt"
#define TENSOR_OF(callable, offset, size, stride) callable ARGS(offset, size, stride) "R"
#define V2 GLOBAL_("torch._utils", "_rebuild_tensor_v2")
#define TENSOR TENSOR_OF(V2, "K\0", "K\4\x85", "K\1\x85")
#define ROW(bytes) bytes, sizeof(bytes) - 1

T_TEST(a_file_of_a_current_torch)
{
    struct opened o;
    const struct fr_tensor *t, *tied;
    struct bytes b;
    opened_begin(&o, FIXTURE("torch/modern.pt"));
    T_EQ_INT(o.rc, 0);
    T_EQ_INT(o.c.problems_n, 0);
    T_OK((t = opened_tensor(&o, "model.layers.0.weight")) != NULL && t->dtype == FR_F32 && t->elements == 24 && t->packed_rows);
    T_OK((tied = opened_tensor(&o, "model.tied")) != NULL && t != NULL && tied->storage == t->storage && tied->offset == t->offset);
    T_OK(opened_float(&o, "model.layers.0.weight", 0) == -12.0);
    T_OK(opened_float(&o, "model.view", 0) == -6.0);
    T_OK((t = opened_tensor(&o, "model.transposed")) != NULL && !t->packed_rows && t->shape[0] == 6 && t->bytes == 96);
    T_OK((t = opened_tensor(&o, "model.strided")) != NULL && !t->packed_rows && t->elements == 12 && t->bytes == 92);
    T_OK((t = opened_tensor(&o, "model.fp8")) != NULL && t->dtype == FR_F8_E4M3FN && opened_bytes(&o, t, &b) == 0 && b.n == 8);
    T_OK((t = opened_tensor(&o, "model.u16")) != NULL && t->dtype == FR_U16 && t->bytes == 6);
    T_OK((t = opened_tensor(&o, "model.empty")) != NULL && t->elements == 0 && t->bytes == 0);
    T_OK((t = opened_tensor(&o, "model.param")) != NULL && t->elements == 6);
    T_OK((t = opened_tensor(&o, "optimizer.state.0.exp_avg")) != NULL && t->role == FR_ROLE_OPTIMIZER);
    opened_end(&o);
}

T_TEST(what_else_people_save)
{
    struct opened o;
    const struct fr_tensor *t;
    opened_begin(&o, FIXTURE("torch/odd.pt"));
    T_OK((t = opened_tensor(&o, "sparse.1.1")) != NULL && t->elements == 3);
    T_OK((t = opened_tensor(&o, "complex")) != NULL && t->dtype == FR_C64);
    T_OK((t = opened_tensor(&o, "f4")) != NULL && t->dtype == FR_F4_E2M1 && t->elements == 8 && t->bytes == 4);
    T_OK((t = opened_tensor(&o, "expand")) != NULL && t->elements == 12 && t->bytes == 16 && !t->packed_rows);
    T_OK(opened_tensor(&o, "typed") != NULL && opened_tensor(&o, "per_tensor") != NULL && opened_tensor(&o, "per_channel.1") != NULL);
    T_OK(opened_tensor(&o, "meta") == NULL && opened_problem(&o, FR_PROBLEM_STORAGE, "the device 'meta'") != NULL);
    T_OK(o.c.problems_n == 1 && o.c.steps[0].complete);
    opened_end(&o);
    opened_begin(&o, FIXTURE("torch/objects.pt"));
    T_OK(opened_tensor(&o, "ns.a") != NULL && opened_tensor(&o, "od.a") != NULL && opened_tensor(&o, "dd.x.0") != NULL && opened_tensor(&o, "tuple.1.0") != NULL);
    T_OK(opened_problem(&o, FR_PROBLEM_OBJECTS, "functools.partial") != NULL && o.c.problems_n == 1 && o.c.steps[0].complete);
    opened_end(&o);
}

T_TEST(a_module_that_was_pickled_whole)
{
    struct opened o;
    opened_begin(&o, FIXTURE("torch/whole_module.pt"));
    T_OK(opened_tensor(&o, "0.weight") != NULL && opened_tensor(&o, "1.bias") != NULL);
    const struct fr_problem *p = opened_problem(&o, FR_PROBLEM_OBJECTS, "torch.nn.modules.linear.Linear");
    T_OK(p != NULL && !p->fatal);
    opened_end(&o);
}

T_TEST(deflated_by_another_zip)
{
    struct opened o;
    opened_begin(&o, FIXTURE("torch/deflated.pt"));
    T_EQ_INT(o.c.problems_n, 0);
    const struct fr_tensor *t = opened_tensor(&o, "bias");
    T_OK(t != NULL && t->member >= 0);
    T_OK(opened_float(&o, "bias", 0) == -1.0 && opened_float(&o, "bias", 2) == 1.0);
    opened_end(&o);
}

T_TEST(what_came_before_is_refused_with_the_way_out)
{
    static const struct { const char *path, *words; } rows[] = {
        {FIXTURE("torch/legacy.pt"), "save it again with torch.save("}, {FIXTURE("torch/ancient.pt"), "a tar archive"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct opened o;
        opened_begin(&o, rows[i].path);
        const struct fr_problem *p = opened_problem(&o, FR_PROBLEM_FORMAT, rows[i].words);
        T_OK(p != NULL && p->fatal && o.c.tensors_n == 0);
        opened_end(&o);
    }
}

struct hostile {
    const char *pickle;
    size_t n;
    uint8_t kind;
    bool fatal;
    const char *words, *tensor; /* a tensor that is found all the same */
};

static const struct hostile hostile[] = {
    {ROW("\x80\2}(X\1\0\0\0a" GLOBAL_("os", "system") "X\2\0\0\0ls\x85RX\1\0\0\0b" TENSOR "u."), FR_PROBLEM_CODE, true, "'os.system'", "b"},
    {ROW("\x80\4}(\x8c\1a\x8c\5torch\x8c\x09os.system\x93\x8c\2ls\x85R\x8c\1b" TENSOR "u."), FR_PROBLEM_CODE, true, "'torch.os.system'", "b"},
    {ROW("\x80\2" GLOBAL_("__builtin__", "eval") "X\1\0\0\0" "1\x85R."), FR_PROBLEM_CODE, true, "'__builtin__.eval'", NULL},
    {ROW("\x80\2" GLOBAL_("posix", "system") "."), FR_PROBLEM_CODE, true, "'posix.system'", NULL},
    {ROW("\x80\2" GLOBAL_("torch.storage", "_load_from_bytes") "B\1\0\0\0x\x85R."), FR_PROBLEM_CODE, true, "_load_from_bytes", NULL},
    {ROW("\x80\2}X\1\0\0\0a" TENSOR_OF(GLOBAL_("mine", "make"), "K\0", "K\4\x85", "K\1\x85") "s."), FR_PROBLEM_REFUSED, true, "'a' (byte", NULL},
    {ROW("\x80\2}X\1\0\0\0a" TENSOR_OF(GLOBAL_("mine", "make"), "K\0", "K\4\x85", "K\1\x85") "s."), FR_PROBLEM_REFUSED, true, "built by 'mine.make'", NULL},
    {ROW("\x80\2" GLOBAL_("argparse", "Namespace") ")\x81}X\1\0\0\0w" TENSOR "sb."), FR_PROBLEM_KINDS, false, NULL, "w"},
    {ROW("\x80\2" GLOBAL_("my.code", "State") ")\x81}X\1\0\0\0w" TENSOR "sb."), FR_PROBLEM_OBJECTS, false, "my.code.State", "w"},
    {ROW("\x80\2" GLOBAL_("my.code", "State") ")\x81}X\1\0\0\0w" TENSOR "sb}X\1\0\0\0v" TENSOR "sb."), FR_PROBLEM_OBJECTS, false, "my.code.State", NULL},
    {ROW("\x80\2" GLOBAL_("builtins", "getattr") GLOBAL_("my", "Color") "X\3\0\0\0RED\x86R."), FR_PROBLEM_OBJECTS, false, "builtins.getattr", NULL}, /* an enum */
    {ROW("\x80\2" GLOBAL_("builtins", "getattr") GLOBAL_("my", "Color") "X\3\0\0\0run\x86RX\2\0\0\0ls\x85R."), FR_PROBLEM_CODE, true, "what is no name", NULL},
    {ROW("\x80\2(ios\nsystem\n."), FR_PROBLEM_REFUSED, true, "0x69 (INST) at byte", NULL},
    {ROW("\x80\2}X\1\0\0\0a" "K\1s"), FR_PROBLEM_HEADER, true, "cut short", NULL},
    {ROW("\x80\2h\7."), FR_PROBLEM_HEADER, true, "recalls what it has not put", NULL},
    {ROW("\x80\2u."), FR_PROBLEM_HEADER, true, "misses a mark", NULL},
    {ROW("\x80\2K\1K\1a."), FR_PROBLEM_HEADER, true, "fills what is no container", NULL},
    {ROW("\x80\2}K\1b."), FR_PROBLEM_HEADER, true, "gives a state to what is no object", NULL},
    {ROW("\x80\2X\xff\xff\xff\xff" "a."), FR_PROBLEM_HEADER, true, "cut short", NULL},
    {ROW("\x80\2}X\1\0\0\0aK\1Qs."), FR_PROBLEM_HEADER, true, "that is no storage", NULL},
    {ROW("\x80\2}X\1\0\0\0a" TENSOR_OF(V2, "K\2", "K\4\x85", "K\1\x85") "s."), FR_PROBLEM_OUTSIDE, true, "reaches beyond its storage of 16 bytes", "a"},
    {ROW("\x80\2}X\1\0\0\0a" TENSOR_OF(V2, "K\0", "\x8a\10\0\0\0\0\0\0\0\x7f\x85", "\x8a\10\0\0\0\0\0\0\0\x7f\x85") "s."), FR_PROBLEM_OUTSIDE, true, "reaches beyond", "a"},
    {ROW("\x80\2}X\1\0\0\0a" TENSOR_OF(V2, "K\0", "\x8a\10\0\0\0\0\0\0\0\x7f\x8a\10\0\0\0\0\0\0\0\x7f\x86", "K\1K\1\x86") "s."), FR_PROBLEM_SIZE, true,
     "more elements than 64 bits", "a"},
    {ROW("\x80\2}X\1\0\0\0a" TENSOR_OF(V2, "K\0", "J\xff\xff\xff\xff\x85", "K\1\x85") "s."), FR_PROBLEM_HEADER, true, "arguments that are no tensor's", NULL},
    {ROW("\x80\2}X\1\0\0\0a" GLOBAL_("torch._utils", "_rebuild_tensor_v2") "((X\7\0\0\0storage" GLOBAL_("torch", "FloatStorage") TEXT1("\1", "9") TEXT1("\3", "cpu")
         "K\4tQK\0K\4\x85K\1\x85\x89NtRs."), FR_PROBLEM_STORAGE, true, "storage '9' of 'a' is not in the zip", "a"},
    {ROW("\x80\2]q\0h\0a."), FR_PROBLEM_KINDS, false, NULL, NULL}, /* a list in itself */
    {ROW("\x80\2]q\0" GLOBAL_("torch._utils", "_rebuild_parameter") "h\0Rq\1h\0h\1a."), FR_PROBLEM_KINDS, false, NULL, NULL},
};

T_TEST(hostile_pickles)
{
    for (size_t i = 0; i < sizeof hostile / sizeof hostile[0]; i++) {
        const struct hostile *h = &hostile[i];
        struct opened o;
        opened_begin(&o, torch_made(h->pickle, h->n));
        T_EQ_INT(o.rc, 0);
        const struct fr_problem *p = opened_problem(&o, h->kind, h->words);
        bool good = h->kind == FR_PROBLEM_KINDS || (p != NULL && p->fatal == h->fatal && (h->words == NULL || p->offset != UINT64_MAX));
        good = good && (h->tensor == NULL || opened_tensor(&o, h->tensor) != NULL) && (o.c.steps[0].complete != h->fatal);
        T_OK(good);
        if (!good) {
            fprintf(stderr, "row %zu: %s\n", i, h->words != NULL ? h->words : "");
            opened_show(&o);
        }
        opened_end(&o);
    }
}

T_TEST(a_list_of_lists_of_lists)
{
    static char p[70000];
    size_t n = 2;
    struct opened o;
    memcpy(p, "\x80\2", 2);
    for (int i = 0; i < 20000; i++) {
        p[n++] = ']';
    }
    for (int i = 0; i < 19999; i++) {
        p[n++] = 'a';
    }
    p[n++] = '.';
    opened_begin(&o, torch_made(p, n));
    T_OK(opened_problem(&o, FR_PROBLEM_LIMIT, "nested more than 512 deep") != NULL);
    opened_end(&o);
    n = 2;
    memcpy(p + n, "]q\0", 3); /* each list holds the one before it twice: 2^60 paths, 60 lists */
    n += 3;
    for (int i = 0; i < 60; i++) {
        memcpy(p + n, "](h\0h\0eq\1", 9);
        p[n + 3] = (char)i;
        p[n + 5] = (char)i;
        p[n + 8] = (char)(i + 1);
        n += 9;
    }
    p[n++] = '.';
    opened_begin(&o, torch_made(p, n));
    T_OK(o.rc == 0 && opened_problem(&o, FR_PROBLEM_HEADER, NULL) == NULL);
    opened_end(&o);
}

T_TEST(zips_that_lie)
{
    static struct zip z;
    struct opened o;
    z.n = z.dir_n = z.members = 0;
    zip_add(&z, "a/data.pkl", "\x80\2}.", 4);
    opened_begin(&o, zip_written(&z, "x.pt", 65535));
    T_OK(opened_problem(&o, FR_PROBLEM_HEADER, "more members than its directory has room for") != NULL);
    opened_end(&o);

    z.n = z.dir_n = z.members = 0;
    zip_add(&z, "a/data.pkl", "\x80\2}.", 4);
    zip_add(&z, "a/data/0", "1234", 4);
    put32(z.dir + 46 + 10 + 42, 0); /* the second member is the first */
    opened_begin(&o, zip_written(&z, "x.pt", 2));
    T_OK(opened_problem(&o, FR_PROBLEM_HEADER, "two members claim the same bytes") != NULL);
    opened_end(&o);

    z.n = z.dir_n = z.members = 0;
    zip_add(&z, "a/data.pkl", "\x80\2}.", 4);
    put32(z.dir + 20, 0xfffffff0);
    opened_begin(&o, zip_written(&z, "x.pt", 1));
    T_OK(opened_problem(&o, FR_PROBLEM_HEADER, "a member reaches into the directory or beyond") != NULL);
    opened_end(&o);

    z.n = z.dir_n = z.members = 0;
    zip_add(&z, "readme.txt", "hello", 5);
    opened_begin(&o, zip_written(&z, "x.pt", 1));
    T_OK(opened_problem(&o, FR_PROBLEM_HEADER, "a zip without data.pkl") != NULL);
    opened_end(&o);
}

/* Zip64 as for members and offsets beyond 4 GiB, though this one is small; big-endian by its byteorder. */
T_TEST(zip64_and_big_endian)
{
    static struct zip z;
    static const char pickle[] = "\x80\2}X\1\0\0\0a" TENSOR "s.";
    struct opened o;
    z.n = z.dir_n = z.members = 0;
    zip_add(&z, "a/data.pkl", pickle, sizeof pickle - 1);
    zip_add(&z, "a/byteorder", "big", 3);
    size_t local = z.n;
    zip_add(&z, "a/data/0", "1234567812345678", 16);
    unsigned char *central = z.dir + z.dir_n - 46 - 8, *extra = z.dir + z.dir_n;
    put32(central + 20, 0xffffffff);
    put32(central + 24, 0xffffffff);
    put16(central + 30, 28);
    put32(central + 42, 0xffffffff);
    memset(extra, 0, 28);
    put16(extra, 1);
    put16(extra + 2, 24);
    put32(extra + 4, 16);
    put32(extra + 12, 16);
    put32(extra + 20, local);
    z.dir_n += 28;
    opened_begin(&o, zip_written(&z, "x.pt", 3));
    T_EQ_INT(o.c.problems_n, 0);
    const struct fr_tensor *t = opened_tensor(&o, "a");
    T_OK(t != NULL && t->swapped && t->offset == local + 30 + 8 && t->bytes == 16);
    opened_end(&o);
}

static void every_prefix(const char *fixture, const char *name)
{
    static unsigned char all[16384];
    size_t n = slurp(fixture, all, sizeof all);
    for (size_t i = 0; i < n; i++) {
        struct opened o;
        opened_begin(&o, written(name, all, i));
        T_OK(o.rc == 0 && o.c.problems_n > 0 && !o.c.steps[0].complete);
        opened_end(&o);
    }
}

T_TEST(every_prefix_is_a_problem)
{
    every_prefix(FIXTURE("torch/modern.pt"), "cut.pt");
    every_prefix(FIXTURE("torch/deflated.pt"), "cut.pt");
}

/* Any byte changed: problems or none, never worse; and what is listed can be walked or says why not. */
T_TEST(every_byte_changed)
{
    static unsigned char all[16384];
    size_t n = slurp(FIXTURE("torch/old.bin"), all, sizeof all);
    for (size_t i = 0; i < n; i++) {
        struct opened o;
        struct bytes b;
        all[i] ^= 0x41;
        opened_begin(&o, written("bent.pt", all, n));
        all[i] ^= 0x41;
        T_EQ_INT(o.rc, 0);
        for (uint32_t k = 0; k < o.c.tensors_n; k++) {
            int rc = opened_bytes(&o, &o.c.tensors[k], &b);
            T_OK(rc == 0 || rc == 1 || rc == -FR_IO || rc == -FR_SYNTAX);
        }
        opened_end(&o);
    }
}

int main(void)
{
    return t_run();
}
