/* SPDX-License-Identifier: Apache-2.0 */
#include "support/kernel_oracle.h"

#include <math.h>
#include <string.h>

static const double u = 0x1p-24, tiny = 0x1p-148;

const char *oracle_fill_name(int fill)
{
    static const char *const names[] = {
#define X(constant, name) name,
        ORACLE_FILLS(X)
#undef X
    };
    return names[fill];
}

uint32_t oracle_random(struct oracle_rng *g)
{
    g->s ^= g->s << 13;
    g->s ^= g->s >> 7;
    g->s ^= g->s << 17;
    return (uint32_t)(g->s >> 16);
}

uint32_t oracle_below(struct oracle_rng *g, uint32_t n)
{
    return (uint32_t)((uint64_t)oracle_random(g) * n >> 32);
}

static double normal(struct oracle_rng *g)
{
    double sum = -6;
    for (int i = 0; i < 12; i++) {
        sum += oracle_random(g) * 0x1p-32;
    }
    return sum;
}

static double sign(struct oracle_rng *g)
{
    return oracle_random(g) & 1 ? 1 : -1;
}

static double value(int fill, const struct fr_dtype_info *t, size_t i, size_t n, size_t special,
                    struct oracle_rng *g)
{
    const int least = ilogb(t->min_subnormal), span = ilogb(t->max) - least;
    switch (fill) {
    case FILL_NORMAL: return normal(g);
    case FILL_WIDE:
        return sign(g) * ldexp(1 + oracle_random(g) * 0x1p-32, least + (int)oracle_below(g, (uint32_t)span));
    case FILL_ONE_300: return i == special ? 300 : normal(g) * 0.01;
    case FILL_ONE_MOST: return i == special ? t->max : normal(g);
    case FILL_EDGE: return 255.875;
    case FILL_MOST_LEAST: return i & 1 ? t->min_subnormal : sign(g) * t->max;
    case FILL_CANCEL: return 1000 * (1 + t->eps * oracle_below(g, 2));
    case FILL_SUBNORMAL: return sign(g) * t->min_normal * (oracle_random(g) * 0x1p-32);
    case FILL_EQUAL: return -3.14159;
    case FILL_OPPOSITE: return i & 1 ? -t->max : t->max;
    case FILL_LAST: return i + 1 == n ? 1 : 0;
    case FILL_PLUS_ONE: return i == special ? 1 + t->eps : 1;
    default: return 0;
    }
}

void oracle_encode(struct oracle_row *r)
{
    const size_t size = fr_packed_size(r->type, 1);
    for (size_t i = 0; i < r->n; i++) {
        const uint32_t code = r->type == FR_BOOL ? r->v[i] != 0 : fr_encode(r->type, r->v[i], FR_OVERFLOW_IEEE);
        memcpy(r->codes + i * size, &code, size);
    }
}

void oracle_blank(struct oracle_row *r, uint32_t type, size_t n, bool odd)
{
    r->type = type;
    r->n = n;
    memset(r->room, 0xa5, sizeof r->room);
    r->codes = r->room + odd;
}

void oracle_fill(struct oracle_row *r, int fill, uint32_t type, size_t n, bool odd,
                 struct oracle_rng *g)
{
    oracle_blank(r, type, n, odd);
    const size_t special = oracle_below(g, (uint32_t)n);
    for (size_t i = 0; i < n; i++) {
        r->v[i] = fr_round(type, value(fill, fr_dtype_info(type), i, n, special, g), FR_OVERFLOW_SATURATE);
    }
    oracle_encode(r);
}

struct fr_in oracle_in(const struct oracle_row *r)
{
    return r != NULL ? (struct fr_in){r->codes, r->type, r->n} : (struct fr_in){NULL, 0, 0};
}

struct fr_out oracle_out(struct oracle_row *r)
{
    return (struct fr_out){r->codes, r->type, r->n};
}

/* ---- results --------------------------------------------------------------------------------- */

static double reciprocal(double v)
{
    return v == 0 ? 0 : 1 / sqrt(v);
}

static double at(const struct oracle_row *r, size_t i, double otherwise)
{
    return r != NULL ? r->v[i] : otherwise;
}

static double rms_root(const struct oracle_row *x, double eps)
{
    double sum = 0;
    for (size_t i = 0; i < x->n; i++) {
        sum += x->v[i] * x->v[i];
    }
    return reciprocal(sum / (double)x->n + eps);
}

void oracle_rms(const struct oracle_row *x, const struct oracle_row *w, double eps,
                struct oracle_want *y)
{
    const double r = rms_root(x, eps);
    for (size_t i = 0; i < x->n; i++) {
        y->v[i] = x->v[i] * r * at(w, i, 1);
        y->bound[i] = 9 * u * fabs(y->v[i]) + tiny * (1 + fabs(at(w, i, 1)));
    }
}

static double mean_of(const struct oracle_row *x)
{
    double sum = 0;
    for (size_t i = 0; i < x->n; i++) {
        sum += x->v[i];
    }
    return sum / (double)x->n;
}

static double layer_root(const struct oracle_row *x, double mean, double eps)
{
    double sum = 0;
    for (size_t i = 0; i < x->n; i++) {
        sum += (x->v[i] - mean) * (x->v[i] - mean);
    }
    return reciprocal(sum / (double)x->n + eps);
}

void oracle_layer(const struct oracle_row *x, const struct oracle_row *w,
                  const struct oracle_row *b, double eps, struct oracle_want *y)
{
    const double mean = mean_of(x), r = layer_root(x, mean, eps);
    for (size_t i = 0; i < x->n; i++) {
        const double x_hat = (x->v[i] - mean) * r, weight = at(w, i, 1), bias = at(b, i, 0);
        y->v[i] = x_hat * weight + bias;
        y->bound[i] = 40 * u * (fabs(weight) * (fabs(x_hat) + 1) + fabs(bias)) + tiny * (1 + fabs(weight));
    }
}

/* The mean of g, of |g|, of g x_hat, of |g x_hat|. */
struct means {
    double g, abs_g, gx, abs_gx;
};

static struct means means_of(const struct oracle_row *x, const struct oracle_row *w,
                             const struct oracle_row *dy, double mean, double r)
{
    struct means m = {0, 0, 0, 0};
    for (size_t i = 0; i < x->n; i++) {
        const double g = dy->v[i] * at(w, i, 1), gx = g * ((x->v[i] - mean) * r);
        m.g += g;
        m.abs_g += fabs(g);
        m.gx += gx;
        m.abs_gx += fabs(gx);
    }
    const double n = (double)x->n;
    return (struct means){m.g / n, m.abs_g / n, m.gx / n, m.abs_gx / n};
}

void oracle_rms_backward(const struct oracle_row *x, const struct oracle_row *w,
                         const struct oracle_row *dy, double eps, struct oracle_want *dx,
                         struct oracle_want *dw)
{
    const double r = rms_root(x, eps);
    const struct means m = means_of(x, w, dy, 0, r);
    for (size_t i = 0; i < x->n; i++) {
        const double x_hat = x->v[i] * r, g = dy->v[i] * at(w, i, 1);
        dx->v[i] = r * (g - x_hat * m.gx);
        dx->bound[i] = 24 * u * r * (fabs(g) + fabs(x_hat) * m.abs_gx) + tiny * (1 + r);
        dw->v[i] = dy->v[i] * x_hat;
        dw->bound[i] = 9 * u * fabs(dw->v[i]) + tiny * (1 + fabs(dy->v[i]));
    }
}

void oracle_layer_backward(const struct oracle_row *x, const struct oracle_row *w,
                           const struct oracle_row *dy, double eps, struct oracle_want *dx,
                           struct oracle_want *dw)
{
    const double mean = mean_of(x), r = layer_root(x, mean, eps);
    const struct means m = means_of(x, w, dy, mean, r);
    for (size_t i = 0; i < x->n; i++) {
        const double x_hat = (x->v[i] - mean) * r, g = dy->v[i] * at(w, i, 1);
        dx->v[i] = r * (g - m.g - x_hat * m.gx);
        dx->bound[i] = 60 * u * r * (fabs(g) + m.abs_g + (1 + fabs(x_hat)) * m.abs_gx + m.abs_g * fabs(x_hat)) +
                       tiny * (1 + r);
        dw->v[i] = dy->v[i] * x_hat;
        dw->bound[i] = 40 * u * fabs(dy->v[i]) * (fabs(x_hat) + 1) + tiny * (1 + fabs(dy->v[i]));
    }
}

void oracle_softmax(const struct oracle_row *x, const struct oracle_row *mask, struct oracle_want *y)
{
    double top = -INFINITY, sum = 0;
    for (size_t i = 0; i < x->n; i++) {
        double s = x->v[i];
        if (mask != NULL && mask->type == FR_BOOL) {
            s = mask->v[i] != 0 ? s : -INFINITY;
        } else if (mask != NULL) {
            s = (double)(float)(s + mask->v[i]);
        }
        y->v[i] = s;
        top = s > top ? s : top;
    }
    for (size_t i = 0; i < x->n; i++) {
        sum += exp(y->v[i] - top);
    }
    for (size_t i = 0; i < x->n; i++) {
        const double d = y->v[i] - top;
        y->v[i] = top == -INFINITY ? 0 : exp(d) / sum;
        y->bound[i] = (isinf(d) || isnan(d) ? 0 : (20 + 2 * fabs(d)) * u * y->v[i]) + tiny;
    }
}

/* ---- comparing ------------------------------------------------------------------------------- */

static double half_unit(uint32_t type, double v)
{
    const struct fr_dtype_info *t = fr_dtype_info(type);
    const double a = fabs(v) > t->min_normal ? fabs(v) : t->min_normal;
    return ldexp(1, ilogb(a) - t->mantissa_bits - 1);
}

double oracle_off(uint32_t type, double got, double want, double bound)
{
    const struct fr_dtype_info *t = fr_dtype_info(type);
    if (isnan(want) || isnan(got)) {
        return isnan(want) && isnan(got) ? 0 : INFINITY;
    }
    if (isinf(want)) {
        return got == want ? 0 : INFINITY;
    }
    if (isinf(got)) { /* right where what is allowed rounds to it */
        const double most = t->max + half_unit(type, t->max);
        return (got > 0) == (want > 0) && fabs(want) + bound >= most ? 0 : INFINITY;
    }
    const double reach = half_unit(type, fabs(want) + bound);
    return fabs(got - want) / (reach + bound);
}

double oracle_worst(const struct oracle_row *got, const struct oracle_want *want, size_t *ret_at)
{
    double worst = 0;
    const size_t size = fr_packed_size(got->type, 1);
    for (size_t i = 0; i < got->n; i++) {
        uint32_t code = 0;
        memcpy(&code, got->codes + i * size, size);
        float f;
        fr_decode_n(got->type, &code, 1, &f);
        const double off = oracle_off(got->type, (double)f, want->v[i], want->bound[i]);
        if (off > worst) {
            worst = off;
            *ret_at = i;
        }
    }
    return worst;
}
