/* SPDX-License-Identifier: Apache-2.0 */
/* explosion: a recurrent net whose step enlarges: gradients grow with every step they pass. Trained
 * with and without clipping. */
#include "repro/lab.h"
#include "repro/smoke.h"

#include <math.h>

#define STEPS  140
#define NOISE  1.0
#define PAST   15 /* steps that a median is taken of */
#define BATCH  32
#define WARMUP 100 /* steps over which the learning rate rises along a line */
#define MOST   32  /* hidden units */

static const char *const policies[] = {"none", "clip", NULL};

static const struct fr_repro_param params[] = {
    {"hidden", 12, 2, MOST, true, NULL, "hidden units"},
    {"scale", 1.1, 0.1, 3, false, NULL,
     "by how much the recurrent step enlarges a vector at the start"},
    {"policy", 0, 0, 0, true, policies, "clipping of the run that fails"},
    {"length", 16, 2, 200, true, NULL, "steps of a sequence"},
    {"rate", 0.4, 0, 10, false, NULL, "learning rate at the end of the warm-up"},
    {"clip", 0.2, 1e-6, 1e6, false, NULL, "global norm that gradients are clipped at"},
    FR_REPRO_SEED,
    FR_REPRO_END,
};

struct net {
    uint32_t n, length;
    double *w, *in, *out; /* n x n, n, n */
    double *gw, *gin, *gout;
    double *x, *h;     /* length; (length + 1) x n */
    double *dh, *next; /* n */
    double *by_step;   /* length: norm of dh */
};

static void build(struct fr_lab *lab, struct net *m)
{
    const uint32_t n = m->n = fr_lab_count(lab, "hidden");
    double **rows[] = {&m->in, &m->out, &m->gin, &m->gout, &m->dh, &m->next};
    m->length = fr_lab_count(lab, "length");
    m->w = fr_lab_vector(lab, n * n);
    m->gw = fr_lab_vector(lab, n * n);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        *rows[i] = fr_lab_vector(lab, n);
    }
    m->x = fr_lab_vector(lab, m->length);
    m->h = fr_lab_vector(lab, (m->length + 1) * n);
    m->by_step = fr_lab_vector(lab, m->length);
}

/* The recurrent matrix is scale times a rotation of pairs of units: it enlarges every vector by scale. */
static void fill(struct fr_lab *lab, struct net *m, double scale)
{
    lab->rng.state = (uint64_t)fr_lab_get(lab, "seed");
    memset(m->w, 0, m->n * m->n * sizeof *m->w);
    for (uint32_t i = 0; i + 1 < m->n; i += 2) {
        const double t = fr_rng_uniform(&lab->rng), c = (1 - t * t) / (1 + t * t),
                     s = 2 * t / (1 + t * t);
        m->w[i * m->n + i] = m->w[(i + 1) * m->n + i + 1] = (float)(scale * c);
        m->w[i * m->n + i + 1] = (float)(-scale * s);
        m->w[(i + 1) * m->n + i] = (float)(scale * s);
    }
    if (m->n % 2 == 1) {
        m->w[m->n * m->n - 1] = (float)scale;
    }
    fr_rng_fill(&lab->rng, m->in, m->n, 0.3, FR_F32);
    fr_rng_fill(&lab->rng, m->out, m->n, 0.1, FR_F32);
}

/* One sequence; its target is a decaying sum of its inputs and noise that nobody can learn: the
 * loss has a floor, as that of a language model has. Gradients are added up. */
static double sequence(struct fr_lab *lab, struct net *m)
{
    double target = 0;
    const uint32_t n = m->n;
    memset(m->h, 0, n * sizeof *m->h);
    for (uint32_t t = 0; t < m->length; t++) {
        double *h = m->h + t * n;
        m->x[t] = fr_rng_normal(&lab->rng);
        target = 0.8 * target + 0.3 * m->x[t];
        fr_lab_matvec(FR_F32, m->w, h, n, n, h + n);
        for (uint32_t i = 0; i < n; i++) {
            h[n + i] = (float)(h[n + i] + m->in[i] * m->x[t]);
        }
    }
    const double *last = m->h + m->length * n;
    const double e =
        (float)(fr_lab_sum_products(m->out, last, n) - target - NOISE * fr_rng_normal(&lab->rng));
    for (uint32_t i = 0; i < n; i++) {
        m->gout[i] += 2 * e * last[i] / BATCH;
        m->dh[i] = (float)(2 * e * m->out[i] / BATCH);
    }
    for (uint32_t t = m->length; t-- > 0;) {
        m->by_step[t] = fr_lab_look(m->dh, n).norm;
        for (uint32_t i = 0; i < n; i++) {
            m->gin[i] += m->dh[i] * m->x[t];
            for (uint32_t k = 0; k < n; k++) {
                m->gw[i * n + k] += m->dh[i] * m->h[t * n + k];
            }
        }
        fr_lab_matvec_t(FR_F32, m->w, m->dh, n, n, m->next);
        memcpy(m->dh, m->next, n * sizeof *m->dh);
    }
    return (float)(e * e);
}

/* Loss of a batch; gradients into the g vectors, their global norm to ret_norm. */
static double batch(struct fr_lab *lab, struct net *m, double *ret_norm)
{
    double loss = 0;
    memset(m->gw, 0, m->n * m->n * sizeof *m->gw);
    memset(m->gin, 0, m->n * sizeof *m->gin);
    memset(m->gout, 0, m->n * sizeof *m->gout);
    for (int b = 0; b < BATCH; b++) {
        loss += sequence(lab, m) / BATCH;
    }
    const double a = fr_lab_look(m->gw, m->n * m->n).norm, b = fr_lab_look(m->gin, m->n).norm,
                 c = fr_lab_look(m->gout, m->n).norm;
    *ret_norm = (float)sqrt(a * a + b * b + c * c);
    return loss;
}

static void update(struct net *m, double rate)
{
    for (uint32_t i = 0; i < m->n * m->n; i++) {
        m->w[i] = (float)(m->w[i] - rate * m->gw[i]);
    }
    for (uint32_t i = 0; i < m->n; i++) {
        m->in[i] = (float)(m->in[i] - rate * m->gin[i]);
        m->out[i] = (float)(m->out[i] - rate * m->gout[i]);
    }
}

struct outcome {
    double head, last, tail,
        norm; /* losses: mean of the first five, the last one, mean of the last twenty */
    int norm_at, loss_at,
        broke; /* steps: ten times the median of the steps before; first Inf or NaN; -1 never */
};

static double median(const double *v, int n)
{
    double sorted[PAST];
    for (int i = 0; i < n; i++) {
        int k = i;
        for (; k > 0 && sorted[k - 1] > v[i]; k--) {
            sorted[k] = sorted[k - 1];
        }
        sorted[k] = v[i];
    }
    return sorted[n / 2];
}

static bool leaps(const double *v, int i)
{
    return i >= PAST && !(v[i] <= 10 * median(v + i - PAST, PAST));
}

static void train(struct fr_lab *lab, struct net *m, double scale, double rate, double clip,
                  struct outcome *o)
{
    struct fr_curve *loss = fr_result_curve(lab->result, "loss", "step", true);
    struct fr_curve *norm = fr_result_curve(lab->result, "gradient norm, unclipped", "step", true);
    double losses[STEPS], norms[STEPS];
    fill(lab, m, scale);
    *o = (struct outcome){.norm_at = -1, .loss_at = -1, .broke = -1};
    for (int i = 0; i < STEPS; i++) {
        o->last = losses[i] = batch(lab, m, &o->norm);
        norms[i] = o->norm;
        o->head += i < 5 ? o->last / 5 : 0;
        o->tail += i >= STEPS - 20 ? o->last / 20 : 0;
        o->norm_at = o->norm_at < 0 && leaps(norms, i) ? i : o->norm_at;
        o->loss_at = o->loss_at < 0 && leaps(losses, i) ? i : o->loss_at;
        o->broke = !isfinite(o->last) && o->broke < 0 ? i : o->broke;
        fr_curve_add(loss, o->last);
        fr_curve_add(norm, o->norm);
        const double now = i < WARMUP ? rate * (i + 1) / WARMUP : rate;
        update(m, clip > 0 && o->norm > clip ? now * clip / o->norm : now);
    }
}

static void why(struct fr_lab *lab, struct net *m, double scale)
{
    struct fr_result *r = lab->result;
    double norm = 0;
    fr_result_act(r, FR_ACT_WHY, "every step backward multiplies by the same matrix");
    fill(lab, m, scale);
    batch(lab, m, &norm);
    struct fr_curve *by_step = fr_result_curve(r, "gradient, going back", "step", true);
    for (uint32_t t = m->length; t-- > 0;) {
        fr_curve_add(by_step, m->by_step[t]);
    }
    const double grown = m->by_step[0] / m->by_step[m->length - 1];
    double want = 1;
    for (uint32_t t = 1; t < m->length; t++) {
        want *= scale;
    }
    fr_result_claim(
        r, "geometric", scale > 1 && fabs(grown / want - 1) < 0.01,
        "the gradient grows by the factor of the matrix at each step: geometrically with depth",
        "%.4g over %u steps, %g ** %u = %.4g", grown, m->length - 1, scale, m->length - 1, want);
    struct fr_chain *c = fr_result_chain(r, "one sequence, first to last gradient");
    fr_chain_input(c, "h, all steps", FR_F32, m->h, m->length + 1, m->n);
    fr_chain_add(c, "dw", FR_F32, m->gw, m->n, m->n);
    fr_chain_add(c, "d input weights", FR_F32, m->gin, 1, m->n);
    fr_result_claim(r, "finite-at-first", c->first < 0,
                    "nothing is Inf or NaN yet: it begins in range, and the norm is the only sign",
                    "first bad step: %s, norm %.4g", fr_chain_first(c), norm);
}

static int run(struct fr_lab *lab, struct fr_err *err)
{
    struct fr_result *r = lab->result;
    struct net m;
    struct outcome bad, clipped, small;
    build(lab, &m);
    if (!fr_lab_ok(lab)) {
        return fr_lab_nomem(err);
    }
    const double scale = fr_lab_get(lab, "scale"), rate = fr_lab_get(lab, "rate"),
                 clip = fr_lab_get(lab, "clip");
    fr_result_act(r, FR_ACT_FAILS, "the norm goes first, the loss follows, then NaN");
    fr_result_say(r,
                  "A linear recurrent net over %u steps, its recurrent matrix enlarging by %g, "
                  "learning rate rising to %g over %d "
                  "steps.",
                  m.length, scale, rate, WARMUP);
    train(lab, &m, scale, rate, fr_lab_get(lab, "policy") == 1 ? clip : 0, &bad);
    fr_result_claim(r, "breaks", bad.broke > 0, "the loss ends in Inf or NaN",
                    "at step %d, loss then %g", bad.broke, bad.last);
    fr_result_claim(r, "norm-first", bad.norm_at >= 0 && bad.norm_at <= bad.loss_at,
                    "the norm is ten times its running median no later than the loss is",
                    "norm at step %d, loss at step %d", bad.norm_at, bad.loss_at);
    why(lab, &m, scale);
    fr_result_act(r, FR_ACT_FIX, "clip the global norm at %g, or lower the peak learning rate",
                  clip);
    train(lab, &m, scale, rate, clip, &clipped);
    fr_result_claim(
        r, "clipped-survives",
        clipped.broke < 0 && clipped.tail < clipped.head && clipped.tail < 2 * NOISE * NOISE,
        "with the norm clipped the same run stays finite and learns",
        "loss %.3g to %.3g, of which %g is noise", clipped.head, clipped.tail, NOISE * NOISE);
    train(lab, &m, scale, rate / 20, 0, &small);
    fr_result_claim(r, "low-rate-learns", small.broke < 0 && small.tail < small.head,
                    "with a twentieth of the rate no clipping is needed", "loss %.3g to %.3g",
                    small.head, small.tail);
    return 0;
}

/* ---- smoke test: the user's clipping ---- */

#define SPIKE    100 /* times the usual norm */
#define ELEMENTS 1024

/* The norm that is left of a gradient, as torch.nn.utils.clip_grad_norm_ clips it. */
static double clipped_norm(double *g, double clip)
{
    const double norm = (float)fr_lab_look(g, ELEMENTS).norm, by = clip / (norm + 1e-6);
    for (int i = 0; by < 1 && i < ELEMENTS; i++) {
        g[i] = (float)(g[i] * by);
    }
    return fr_lab_look(g, ELEMENTS).norm;
}

static void spike(struct fr_lab *lab, double *g)
{
    static const char says[] =
        "a gradient of 100 times the usual norm is cut to at most ten times";
    const struct fr_smoke *s = lab->smoke;
    if (!fr_smoke_needs(lab, "spike-is-cut", says, "grad-norm")) {
        return;
    }
    fr_rng_fill(&lab->rng, g, ELEMENTS, 1, FR_F64);
    const double by = SPIKE * s->grad_norm / fr_lab_look(g, ELEMENTS).norm;
    for (int i = 0; i < ELEMENTS; i++) {
        g[i] = (float)(g[i] * by);
    }
    const double left = clipped_norm(g, s->clip);
    fr_result_claim(lab->result, "spike-is-cut", left <= 10 * s->grad_norm, says,
                    "%g of %g, usual is %g", left, SPIKE * s->grad_norm, s->grad_norm);
}

/* A gradient on its way back through the user's layers. */
static void depth(struct fr_lab *lab)
{
    static const char says[] = "a gradient enlarged by every layer still fits";
    const struct fr_smoke *s = lab->smoke;
    if (!fr_smoke_said(s, "gain") ||
        !fr_smoke_needs(lab, "depth-fits", says, "dtype layers grad-max")) {
        return;
    }
    const double scale = s->dtype != FR_F16 || s->scaler == 0 ? 1
                         : s->loss_scale > 0                  ? s->loss_scale
                         : isnan(s->initial_scale)            ? 1
                                                              : s->initial_scale;
    double g = fr_lab_to(s->dtype, s->grad_max * scale);
    double layer = 0;
    for (; layer < s->layers && isfinite(g); layer++) {
        g = fr_lab_to(s->dtype, g * s->gain);
    }
    fr_result_claim(lab->result, "depth-fits", isfinite(g), says,
                    "%g at loss scale %g, enlarged by %g: %.4g in %s, %g layers down", s->grad_max,
                    scale, s->gain, g, fr_smoke_dtype(s->dtype), layer);
}

static int smoke(struct fr_lab *lab, struct fr_err *err)
{
    static const char says[] = "gradients are clipped";
    const struct fr_smoke *s = lab->smoke;
    double *g = fr_lab_vector(lab, ELEMENTS);
    if (!fr_lab_ok(lab)) {
        return fr_lab_nomem(err);
    }
    fr_smoke_inputs(lab, "clip grad-norm dtype layers gain grad-max loss-scale initial-scale");
    const bool off = s->policy == 0 || (fr_smoke_said(s, "clip") && s->clip == 0);
    if (off) {
        fr_result_claim(lab->result, "clipped", false, says, "never (%s)",
                        s->policy == 0 ? "option" : s->from.clip);
    } else if (fr_smoke_needs(lab, "clipped", says, "clip")) {
        fr_result_claim(lab->result, "clipped", true, says, "at %g (%s)", s->clip, s->from.clip);
        spike(lab, g);
    }
    depth(lab);
    return 0;
}

const struct fr_repro fr_repro_explosion = {
    .id = "gradient-explosion",
    .summary =
        "a recurrent net that enlarges: the norm explodes first; clipping, and a smaller start",
    .params = params,
    .run = run,
    .smoke = smoke,
    .smoke_policies = policies,
};
