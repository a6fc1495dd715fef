/* SPDX-License-Identifier: Apache-2.0 */
/* t: a tiny test harness. T_TEST(name) { T_EQ_INT(1 + 1, 2); }  int main(void) { return t_run(); }
 * Prints both values on failure, evaluates arguments once, exits non-zero when anything failed. */
#ifndef FR_TESTS_T_H
#define FR_TESTS_T_H

#include "base/view.h"
#include <stdio.h>
#include <stdlib.h>

struct t_case { const char *name; void (*fn)(void); struct t_case *next; };
static struct t_case *t_first_, **t_last_ = &t_first_;
static int t_failed_, t_checks_;

#define T_TEST(name_)                                                                     \
    static void t_fn_##name_(void);                                                       \
    static struct t_case t_case_##name_ = {#name_, t_fn_##name_, NULL};                   \
    __attribute__((constructor)) static void t_reg_##name_(void)                          \
    {                                                                                     \
        *t_last_ = &t_case_##name_;                                                       \
        t_last_ = &t_case_##name_.next;                                                   \
    }                                                                                     \
    static void t_fn_##name_(void)

#define T_FAIL(...)                                                \
    do {                                                           \
        t_failed_++;                                               \
        fprintf(stderr, "%s:%d: ", __FILE__, __LINE__);            \
        fprintf(stderr, __VA_ARGS__);                              \
        fputc('\n', stderr);                                       \
    } while (0)
#define T_OK(cond)                                                 \
    do {                                                           \
        t_checks_++;                                               \
        if (!(cond)) T_FAIL("not true: %s", #cond);                \
    } while (0)
#define T_EQ_INT(got_, want_)                                                                         \
    do {                                                                                              \
        long long g_ = (long long)(got_), w_ = (long long)(want_);                                    \
        t_checks_++;                                                                                  \
        if (g_ != w_) T_FAIL("%s: got %lld, want %lld", #got_, g_, w_);                               \
    } while (0)
#define T_EQ_SV(got_, want_)                                                                          \
    do {                                                                                              \
        fr_sv g_ = (got_), w_ = (want_);                                                              \
        t_checks_++;                                                                                  \
        if (!fr_sv_eq(g_, w_)) T_FAIL("%s: got '%.*s', want '%.*s'", #got_, FR_SV_ARG(g_), FR_SV_ARG(w_)); \
    } while (0)
#define T_EQ_STR(got_, want_) T_EQ_SV(fr_sv_z(got_), fr_sv_z(want_))

__attribute__((unused)) static int t_run(void)
{
    for (struct t_case *c = t_first_; c != NULL; c = c->next) {
        int before = t_failed_;
        c->fn();
        printf("%s - %s\n", t_failed_ == before ? "ok" : "not ok", c->name);
    }
    printf("# %d checks, %d failed\n", t_checks_, t_failed_);
    return t_failed_ != 0;
}

#endif
