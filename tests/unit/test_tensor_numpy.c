/* SPDX-License-Identifier: Apache-2.0 */
#include "faultrank/numerics.h"
#include "unit/tensor_open.h"

T_TEST(what_numpy_wrote)
{
    struct opened o;
    const struct fr_tensor *t;
    opened_begin(&o, FIXTURE("numpy"));
    T_EQ_INT(o.rc, 0);
    T_OK((t = opened_tensor(&o, "plain")) != NULL && t->dtype == FR_F32 && t->shape[0] == 3 && t->shape[1] == 4 && t->packed_rows);
    T_OK(opened_float(&o, "plain", 11) == 11.0);
    T_OK((t = opened_tensor(&o, "fortran")) != NULL && t->dtype == FR_F64 && !t->packed_rows);
    T_OK((t = opened_tensor(&o, "big_endian")) != NULL && t->swapped && t->dtype == FR_F32);
    T_OK((t = opened_tensor(&o, "scalar")) != NULL && t->dims == 0 && opened_float(&o, "scalar", 0) == 2.5);
    T_OK((t = opened_tensor(&o, "empty")) != NULL && t->elements == 0);
    T_OK(opened_problem(&o, FR_PROBLEM_REFUSED, "holds Python objects") != NULL);
    T_OK(opened_problem(&o, FR_PROBLEM_DTYPE, "'structured'") != NULL);
    T_EQ_SV(o.c.steps[0].layout, FR_SV("numpy"));
    opened_end(&o);
}

T_TEST(stored_and_deflated_archives)
{
    static const char *const paths[] = {FIXTURE("numpy/stored.npz"), FIXTURE("numpy/deflated.npz")};
    for (int i = 0; i < 2; i++) {
        struct opened o;
        opened_begin(&o, paths[i]);
        T_EQ_INT(o.c.problems_n, 0);
        T_EQ_INT(o.c.tensors_n, 2);
        T_OK(opened_float(&o, "w", 0) == 0.0 && opened_float(&o, "w", 11) == 11.0);
        T_EQ_INT(o.c.tensors[0].member >= 0, i);
        opened_end(&o);
    }
}

static const char *npy(const char *literal, size_t data)
{
    static unsigned char b[4096];
    size_t n = strlen(literal);
    memset(b, 0, sizeof b);
    memcpy(b, "\x93NUMPY\1\0", 8);
    b[8] = (unsigned char)n;
    b[9] = (unsigned char)(n >> 8);
    memcpy(b + 10, literal, n);
    return written("x.npy", b, 10 + n + data);
}

T_TEST(headers_that_lie)
{
    static const struct { const char *literal; size_t data; uint8_t kind; const char *words; } rows[] = {
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }", 8, FR_PROBLEM_TRUNCATED, "4 bytes before what its header promises"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }", 8, FR_PROBLEM_HOLE, "4 bytes follow the array"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296), }", 8, FR_PROBLEM_SIZE, "more elements than 64 bits"},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (4611686018427387904,), }", 8, FR_PROBLEM_SIZE, "more bytes than 64 bits"},
        {"{'descr': '<f4', 'fortran_order': maybe, 'shape': (1,), }", 4, FR_PROBLEM_HEADER, "malformed numpy header"},
        {"{'descr': '<f4', 'fortran_order': False}", 4, FR_PROBLEM_HEADER, "malformed numpy header"},
        {"{'descr': __import__('os'), 'fortran_order': False, 'shape': (1,)}", 4, FR_PROBLEM_HEADER, "malformed numpy header"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }", 4, FR_PROBLEM_HEADER, "malformed numpy header"},
        {"{'descr': '|V2', 'fortran_order': False, 'shape': (2,), }", 4, FR_PROBLEM_DTYPE, "'|V2'"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1), }", 4, FR_PROBLEM_LIMIT, "17 dimensions"},
        {"{  ", 0, FR_PROBLEM_HEADER, "malformed numpy header"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct opened o;
        opened_begin(&o, npy(rows[i].literal, rows[i].data));
        T_OK(o.rc == 0 && opened_problem(&o, rows[i].kind, rows[i].words) != NULL);
        if (opened_problem(&o, rows[i].kind, rows[i].words) == NULL) {
            fprintf(stderr, "row %zu\n", i);
            opened_show(&o);
        }
        opened_end(&o);
    }
}

T_TEST(every_prefix)
{
    static const struct { const char *path, *name; } rows[] = {
        {FIXTURE("numpy/plain.npy"), "cut.npy"}, {FIXTURE("numpy/stored.npz"), "cut.npz"}, {FIXTURE("numpy/deflated.npz"), "cut.npz"},
        {FIXTURE("numpy/structured.npy"), "cut.npy"},
    };
    static unsigned char all[4096];
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
        size_t n = slurp(rows[k].path, all, sizeof all);
        for (size_t i = 0; i < n; i++) {
            struct opened o;
            opened_begin(&o, written(rows[k].name, all, i));
            T_OK(o.rc == 0 && o.c.problems_n > 0);
            opened_end(&o);
        }
    }
}

int main(void)
{
    return t_run();
}
