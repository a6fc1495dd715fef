/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_wide: rows whose sums leave fp32's comfort, again in double, whose range holds products of
 * four floats. Rare, so plain; shared by all variants, so the same everywhere. */
#include "numerics/kernel.h"

#include <math.h>

static double get(const uint8_t *p, uint32_t type, size_t i)
{
    return (double)fr_element_get(type, p, i);
}

static double weight(const struct fr_kernel_row *r, size_t i)
{
    return r->w != NULL ? get(r->w, r->w_type, i) : 1;
}

static void put(const struct fr_kernel_row *r, size_t i, double value)
{
    fr_element_put(r->y_type, r->y, i, (float)value);
}

/* 1 / sqrt(v); 0 for a row of zeros with eps 0, which then gives zeros and not 0 * Inf. */
static double reciprocal_root(double v)
{
    return v == 0 ? 0 : 1 / sqrt(v);
}

static double rms_root(const struct fr_kernel_row *r)
{
    double sum = 0;
    for (size_t i = 0; i < r->n; i++) {
        const double x = get(r->x, r->x_type, i);
        sum += x * x;
    }
    return reciprocal_root(sum / (double)r->n + (double)r->eps);
}

void fr_wide_rms_norm(const struct fr_kernel_row *r)
{
    const double root = rms_root(r);
    for (size_t i = 0; i < r->n; i++) {
        put(r, i, get(r->x, r->x_type, i) * root * weight(r, i));
    }
}

/* What both backwards share: dx = root * (g - c1 - x_hat * c2), x_hat = (x - mean) * root. */
static void gradients(const struct fr_kernel_row *r, double mean, double root, double c1, double c2)
{
    for (size_t i = 0; i < r->n; i++) {
        const double x_hat = (get(r->x, r->x_type, i) - mean) * root;
        const double dy = get(r->dy, r->dy_type, i);
        if (r->dw != NULL) {
            r->dw[i] += (float)(dy * x_hat);
        }
        if (r->db != NULL) {
            r->db[i] += (float)dy;
        }
        if (r->y != NULL) {
            put(r, i, root * (dy * weight(r, i) - c1 - x_hat * c2));
        }
    }
}

void fr_wide_rms_norm_backward(const struct fr_kernel_row *r)
{
    const double root = rms_root(r);
    double sum = 0;
    for (size_t i = 0; i < r->n; i++) {
        sum += get(r->dy, r->dy_type, i) * weight(r, i) * (get(r->x, r->x_type, i) * root);
    }
    gradients(r, 0, root, 0, sum / (double)r->n);
}

static double layer_root(const struct fr_kernel_row *r, double *ret_mean)
{
    double sum = 0, squares = 0;
    for (size_t i = 0; i < r->n; i++) {
        sum += get(r->x, r->x_type, i);
    }
    *ret_mean = sum / (double)r->n;
    for (size_t i = 0; i < r->n; i++) {
        const double d = get(r->x, r->x_type, i) - *ret_mean;
        squares += d * d;
    }
    return reciprocal_root(squares / (double)r->n + (double)r->eps);
}

void fr_wide_layer_norm(const struct fr_kernel_row *r)
{
    double mean;
    const double root = layer_root(r, &mean);
    for (size_t i = 0; i < r->n; i++) {
        const double x_hat = (get(r->x, r->x_type, i) - mean) * root;
        put(r, i, x_hat * weight(r, i) + (r->b != NULL ? get(r->b, r->b_type, i) : 0));
    }
}

void fr_wide_layer_norm_backward(const struct fr_kernel_row *r)
{
    double mean, g_sum = 0, sum = 0;
    const double root = layer_root(r, &mean);
    for (size_t i = 0; i < r->n; i++) {
        const double g = get(r->dy, r->dy_type, i) * weight(r, i);
        g_sum += g;
        sum += g * ((get(r->x, r->x_type, i) - mean) * root);
    }
    gradients(r, mean, root, g_sum / (double)r->n, sum / (double)r->n);
}

double fr_wide_dot(const struct fr_kernel_row *r)
{
    double sum = 0;
    for (size_t i = 0; i < r->n; i++) {
        sum += get(r->x, r->x_type, i) * get(r->dy, r->dy_type, i);
    }
    return sum;
}
