/* SPDX-License-Identifier: Apache-2.0 */
/* view: a borrowed run of bytes. Never owns; valid until its owner's documented event. p may be NULL when n is 0. */
#ifndef FR_BASE_VIEW_H
#define FR_BASE_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct fr_sv {
    const char *p;
    size_t n;
} fr_sv;

#define FR_SV(lit) ((fr_sv){(lit), sizeof(lit) - 1}) /* of a string literal */
#define FR_SV_NONE ((fr_sv){NULL, 0})
#define FR_SV_ARG(s) (int)(s).n, (s).p               /* for "%.*s" */
#define FR_NPOS ((size_t)-1)

static inline fr_sv fr_sv_z(const char *z) { return (fr_sv){z, z ? strlen(z) : 0}; }
static inline fr_sv fr_sv_range(const char *b, const char *e) { return (fr_sv){b, (size_t)(e - b)}; }
static inline bool fr_sv_eq(fr_sv a, fr_sv b) { return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0); }
/* A view of nothing has no place: to its NULL nothing may be added, not even 0. */
static inline bool fr_sv_starts(fr_sv s, fr_sv with)
{
    return with.n == 0 || (s.n >= with.n && memcmp(s.p, with.p, with.n) == 0);
}
static inline bool fr_sv_ends(fr_sv s, fr_sv with)
{
    return with.n == 0 || (s.n >= with.n && memcmp(s.p + (s.n - with.n), with.p, with.n) == 0);
}
static inline fr_sv fr_sv_skip(fr_sv s, size_t n)
{
    n = n < s.n ? n : s.n;
    return n == 0 ? s : (fr_sv){s.p + n, s.n - n};
}
static inline fr_sv fr_sv_head(fr_sv s, size_t n) { return (fr_sv){s.p, n < s.n ? n : s.n}; }

int fr_sv_cmp(fr_sv a, fr_sv b);                        /* byte order, shorter first on a tie */
int fr_sv_cmp_natural(fr_sv a, fr_sv b);                /* digit runs by value: rank2 < rank10 */
size_t fr_sv_find(fr_sv s, fr_sv what);                 /* offset or FR_NPOS */
size_t fr_sv_find_ci(fr_sv s, fr_sv what);              /* ASCII case ignored */
size_t fr_sv_chr(fr_sv s, char c);
static inline bool fr_sv_has(fr_sv s, fr_sv what) { return fr_sv_find(s, what) != FR_NPOS; }
fr_sv fr_sv_trim(fr_sv s);                              /* ASCII white space at both ends */
bool fr_sv_take(fr_sv *s, fr_sv prefix);                /* if *s starts with prefix: drop it */
bool fr_sv_cut(fr_sv s, char at, fr_sv *left, fr_sv *right); /* at the first `at`; false: left = s, right empty */

/* Numbers at the START of *s; on success *s moves past them, on failure nothing changes. Saturate never: overflow fails. */
bool fr_sv_take_u64(fr_sv *s, uint64_t *ret);
bool fr_sv_take_i64(fr_sv *s, int64_t *ret);
/* [-+]digits[.digits][e[-+]dd], also 1,234 thousands, nan NaN NAN inf Inf Infinity -inf (ret gets NAN / +-INFINITY). */
bool fr_sv_take_double(fr_sv *s, double *ret);
uint64_t fr_sv_hash(fr_sv s); /* FNV-1a 64: stable across runs and machines */

#endif
