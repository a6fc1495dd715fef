/* SPDX-License-Identifier: Apache-2.0 */
#include "faultrank/numerics.h"
#include "unit/tensor_open.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

static volatile sig_atomic_t others;

static void other_handler(int sig)
{
    (void)sig;
    others = others + 1;
}

static void other_info(int sig, siginfo_t *info, void *context)
{
    (void)context;
    others = others + (sig == SIGBUS && info != NULL ? 10 : 0);
}

static int walk_in_child(bool info)
{
    struct opened o;
    struct sigaction act = {0};
    if (info) {
        act.sa_sigaction = other_info;
        act.sa_flags = SA_SIGINFO;
    } else {
        act.sa_handler = other_handler;
    }
    (void)sigaction(SIGBUS, &act, NULL);
    opened_begin(&o, FIXTURE("safetensors/small.safetensors"));
    struct fr_spans *spans = NULL;
    struct bytes b = {.n = 0};
    int rc = fr_spans_open(&o.c, 0, &spans, NULL);
    rc = rc == 0 ? fr_spans_walk(spans, &o.c.tensors[3], opened_add, &b, NULL) : rc;
    fr_spans_close(&spans);
    (void)raise(SIGBUS); /* not about a window: theirs */
    opened_end(&o);
    return rc == 0 && b.n == 48 ? (int)others : 99;
}

/* First: the handler is installed once, by the first walk. */
T_TEST(a_sigbus_that_is_not_ours_goes_to_whoever_had_it)
{
    for (int info = 0; info < 2; info++) {
        int status = 0;
        fflush(NULL);
        pid_t pid = fork();
        if (pid == 0) {
            _exit(walk_in_child(info == 1));
        }
        T_OK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == (info == 1 ? 10 : 1));
    }
}

/* A safetensors file of a header and `data` bytes of data; `claim` 0 = the header's true length. */
static const char *made(const char *header, size_t data, uint64_t claim)
{
    static unsigned char b[8192];
    uint64_t n = strlen(header), says = claim != 0 ? claim : n;
    memset(b, 0, sizeof b);
    memcpy(b, &says, 8);
    memcpy(b + 8, header, n);
    return written("x.safetensors", b, 8 + n + data);
}

T_TEST(what_the_library_wrote)
{
    struct opened o;
    struct bytes b;
    opened_begin(&o, FIXTURE("safetensors/small.safetensors"));
    T_EQ_INT(o.rc, 0);
    T_EQ_INT(o.c.tensors_n, 9);
    T_EQ_INT(o.c.problems_n, 0);
    T_EQ_INT(o.c.steps_n, 1);
    T_OK(o.c.steps[0].complete && o.c.files[0].complete);
    const struct fr_tensor *t = opened_tensor(&o, "model.layers.0.mlp.weight");
    T_OK(t != NULL && t->dtype == FR_F16 && t->dims == 2 && t->shape[0] == 4 && t->shape[1] == 6 && t->bytes == 48);
    T_OK(t != NULL && opened_bytes(&o, t, &b) == 0 && b.n == 48 && b.p[1] == 0xCA); /* -12 */
    T_OK((t = opened_tensor(&o, "w8")) != NULL && t->dtype == FR_F8_E4M3FN);
    T_OK((t = opened_tensor(&o, "w8_scale")) != NULL && t->role == FR_ROLE_SCALE);
    T_OK((t = opened_tensor(&o, "scalar")) != NULL && t->dims == 0 && t->elements == 1);
    T_OK((t = opened_tensor(&o, "empty")) != NULL && t->elements == 0 && opened_bytes(&o, t, &b) == 0 && b.n == 0);
    T_EQ_SV(o.c.tensors[4].name, FR_SV("model.layers.2.mlp.weight")); /* natural order: 2 before 10 */
    opened_end(&o);
}

T_TEST(laws_of_the_header)
{
    static const struct { const char *header; size_t data; uint64_t claim; uint8_t kind; const char *words; } rows[] = {
        {"{}", 0, (uint64_t)1 << 60, FR_PROBLEM_HEADER, "claims a header of 1152921504606846976 bytes at byte 0"},
        {"{}", 0, 500, FR_PROBLEM_TRUNCATED, "inside its header of 500 bytes"},
        {"[]", 0, 0, FR_PROBLEM_HEADER, "does not start with '{'"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}", 4, 0, FR_PROBLEM_HEADER, "at byte 61: the JSON ends early"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 4, 0, FR_PROBLEM_TRUNCATED, "4 bytes before what its header promises"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[2,6]}}", 6, 0,
         FR_PROBLEM_OVERLAP, "'b' and 'a' claim the same bytes"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}", 8, 0, FR_PROBLEM_HOLE, "belong to no tensor"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 9, 0, FR_PROBLEM_HOLE, "5 bytes from byte"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,4]}}", 4, 0, FR_PROBLEM_SIZE, "3 elements of F32, but its offsets hold 4 bytes"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,4]}}", 4, 0, FR_PROBLEM_SIZE, "more elements than 64 bits"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4611686018427387904],\"data_offsets\":[0,4]}}", 4, 0, FR_PROBLEM_SIZE, "but its offsets hold 4 bytes"},
        {"{\"a\":{\"dtype\":\"Q9\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, 0, FR_PROBLEM_DTYPE, "has the type 'Q9'"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]}}", 2, 0,
         FR_PROBLEM_DUPLICATE, "the key 'a' comes twice"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1]}}", 0, 0, FR_PROBLEM_HEADER, "lacks its dtype, shape or data_offsets"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[9,1]}}", 9, 0, FR_PROBLEM_HEADER, "ends before it begins"},
        {"{\"a\":{\"dtype\":\"F4\",\"shape\":[3],\"data_offsets\":[0,2]}}", 2, 0, FR_PROBLEM_SIZE, "3 elements of F4"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[-1],\"data_offsets\":[0,1]}}", 1, 0, FR_PROBLEM_HEADER, "a whole number"},
        {"{\"a\":[[[[[[[[]]]]]]]]}", 0, 0, FR_PROBLEM_HEADER, "an object was expected"},
        {"{\"\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1, 0, FR_PROBLEM_HEADER, "without a name"},
        {"{\"a\\q\":{}}", 0, 0, FR_PROBLEM_HEADER, "unknown escape"},
        {"{\"a\xff\":{}}", 0, 0, FR_PROBLEM_HEADER, "not UTF-8"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct opened o;
        opened_begin(&o, made(rows[i].header, rows[i].data, rows[i].claim));
        T_EQ_INT(o.rc, 0);
        const struct fr_problem *p = opened_problem(&o, rows[i].kind, rows[i].words);
        T_OK(p != NULL);
        if (p == NULL) {
            fprintf(stderr, "row %zu: wanted '%s'\n", i, rows[i].words);
            opened_show(&o);
        } else {
            T_OK(p->fatal == (rows[i].kind != FR_PROBLEM_DTYPE) && p->offset != UINT64_MAX && o.c.files[0].complete == !p->fatal);
        }
        opened_end(&o);
    }
}

T_TEST(escapes_and_a_good_f4)
{
    struct opened o;
    opened_begin(&o, made("{ \"\\u0061\\n\\ud83d\\ude00\" : {\"shape\":[4], \"data_offsets\":[0,2], \"dtype\":\"F4\", \"more\":{\"x\":[1,null]}},"
                          " \"__metadata__\":{\"a\":\"b\"} }   ", 2, 0));
    T_EQ_INT(o.c.problems_n, 0);
    T_EQ_INT(o.c.tensors_n, 1);
    T_EQ_SV(o.c.tensors[0].name, FR_SV("a\n\xf0\x9f\x98\x80"));
    T_EQ_INT(o.c.tensors[0].dtype, FR_F4_E2M1);
    opened_end(&o);
}

T_TEST(every_prefix_is_a_problem)
{
    static unsigned char all[4096];
    size_t n = slurp(FIXTURE("safetensors/small.safetensors"), all, sizeof all);
    for (size_t i = 0; i < n; i++) {
        struct opened o;
        opened_begin(&o, written("cut.safetensors", all, i));
        T_EQ_INT(o.rc, 0);
        T_OK(o.c.problems_n > 0 && !o.c.files[0].complete && !o.c.steps[0].complete);
        opened_end(&o);
    }
}

/* ---- spans ---- */

struct shrinking {
    const char *path;
    uint64_t sum, pieces;
};

static int shrink_then_read(void *ctx, const void *p, size_t n)
{
    struct shrinking *s = ctx;
    if (s->pieces++ == 1 && truncate(s->path, 8192) != 0) {
        return 7;
    }
    for (size_t i = 0; i < n; i++) {
        s->sum += ((const unsigned char *)p)[i];
    }
    return 0;
}

T_TEST(a_file_that_shrinks_while_mapped)
{
    static char header[200];
    struct opened o;
    struct fr_spans *spans = NULL;
    struct fr_err err = {0};
    size_t data = (size_t)40 << 20;
    int n = snprintf(header, sizeof header, "{\"a\":{\"dtype\":\"U8\",\"shape\":[%zu],\"data_offsets\":[0,%zu]}}", data, data);
    struct shrinking s = {.path = made(header, 0, 0)};
    T_EQ_INT(truncate(s.path, (off_t)(8 + (size_t)n + data)), 0);
    opened_begin(&o, s.path);
    T_EQ_INT(o.c.problems_n, 0);
    T_EQ_INT(fr_spans_open(&o.c, 0, &spans, &err), 0);
    T_EQ_INT(fr_spans_walk(spans, &o.c.tensors[0], shrink_then_read, &s, &err), -FR_IO);
    T_OK(strstr(err.msg, "became shorter while it was read") != NULL && err.pos > 0);
    T_EQ_INT(s.pieces, 2);
    fr_spans_close(&spans);
    opened_end(&o);
}

static int check_piece(void *ctx, const void *p, size_t n)
{
    uint64_t *at = ctx;
    for (size_t i = 0; i < n; i += 997) {
        if (((const unsigned char *)p)[i] != (unsigned char)((*at + i) * 7 >> 3)) {
            return 1;
        }
    }
    *at += n;
    return n % 64 != 0 && *at != ((uint64_t)35 << 20) + 3 ? 2 : 0;
}

static void *walk_all(void *ctx)
{
    const struct fr_checkpoint *c = ctx;
    struct fr_spans *spans = NULL;
    uint64_t at = 0;
    int rc = fr_spans_open(c, 0, &spans, NULL);
    rc = rc == 0 ? fr_spans_walk(spans, &c->tensors[0], check_piece, &at, NULL) : rc;
    fr_spans_close(&spans);
    return rc == 0 && at == c->tensors[0].bytes ? NULL : ctx;
}

T_TEST(pieces_are_whole_and_in_order_in_every_thread)
{
    static char header[200];
    size_t data = ((size_t)35 << 20) + 3;
    struct opened o;
    snprintf(header, sizeof header, "{\"a\":{\"dtype\":\"U8\",\"shape\":[%zu],\"data_offsets\":[0,%zu]}}", data, data);
    const char *path = made(header, 0, 0);
    unsigned char *all = malloc(data);
    for (size_t i = 0; i < data; i++) {
        all[i] = (unsigned char)(i * 7 >> 3);
    }
    FILE *f = fopen(path, "ab");
    T_EQ_INT(fwrite(all, 1, data, f), data);
    fclose(f);
    free(all);
    opened_begin(&o, path);
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) {
        T_EQ_INT(pthread_create(&threads[i], NULL, walk_all, &o.c), 0);
    }
    for (int i = 0; i < 3; i++) {
        void *bad = NULL;
        pthread_join(threads[i], &bad);
        T_OK(bad == NULL);
    }
    opened_end(&o);
    T_EQ_INT(truncate(path, 0), 0);
}

int main(void)
{
    return t_run();
}
