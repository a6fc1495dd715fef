/* SPDX-License-Identifier: Apache-2.0 */
/* rmsnorm: the square of one large activation is Inf in half, its row becomes zeros, and nothing is
 * NaN until a loss scale makes a gradient overflow. A toy model around it: tokens (trained), blocks
 * that are damped low-rank maps, a final norm, a frozen head, cross entropy. */
#include "repro/norms.h"
#include "repro/smoke.h"

#include <math.h>
#include <stdio.h>

#define H           FR_F16
#define TOKENS      2
#define LAYERS      2
#define RANK        16
#define STEPS       8
#define EPS         1e-5
#define LEANING     2.0 /* logits of the right answers, above the others */
#define RATE        100.0
#define SCALE_START 65536.0

static const struct fr_repro_param params[] = {
    {"hidden", 4096, 64, 16384, true, NULL, "elements of a row"},
    {"scale", 300, 0, 65504, false, NULL,
     "the outlier: one element of each row has this value, the others are normal"},
    {"policy", 3, 0, 0, true, fr_norm_names, "the norm as it is written"},
    {"loss-scale", 65536, 1, 16777216, false, NULL, "factor on the loss in backward"},
    {"vocab", 64, 2, 4096, true, NULL, "outputs of the head"},
    FR_REPRO_SEED,
    FR_REPRO_END,
};

struct model {
    uint32_t n, vocab;
    const struct fr_norm_form *norm;
    double *x;         /* TOKENS rows: the stream before the first block */
    double *stream;    /* TOKENS rows: what reaches the final norm */
    double *down, *up; /* RANK x n, and the same transposed: a block */
    double *head;      /* vocab x n */
    double *y, *dx;    /* of the final norm */
    double *logits, *dlogits;
    double *dy, *work, *row, *dw, *inner;
};

static void build(struct fr_lab *lab, struct model *m)
{
    const uint32_t n = m->n = fr_lab_count(lab, "hidden");
    m->vocab = fr_lab_count(lab, "vocab");
    m->norm = &fr_norm_forms[fr_lab_count(lab, "policy")];
    m->x = fr_lab_vector(lab, TOKENS * n);
    m->stream = fr_lab_vector(lab, TOKENS * n);
    m->down = fr_lab_vector(lab, RANK * n);
    m->up = fr_lab_vector(lab, RANK * n);
    m->head = fr_lab_vector(lab, (size_t)m->vocab * n);
    m->y = fr_lab_vector(lab, TOKENS * n);
    m->dx = fr_lab_vector(lab, TOKENS * n);
    m->logits = fr_lab_vector(lab, (size_t)TOKENS * m->vocab);
    m->dlogits = fr_lab_vector(lab, m->vocab);
    m->dy = fr_lab_vector(lab, n);
    m->work = fr_lab_vector(lab, FR_WORK_ROWS * n);
    m->dw = fr_lab_vector(lab, n);
    m->row = fr_lab_vector(lab, n);
    m->inner = fr_lab_vector(lab, RANK);
}

/* Tokens are normal but for one channel, the same in every row, as in trained language models; the
 * head already leans towards the right answers, as of a model that was trained in bf16 so far. */
static void fill(struct fr_lab *lab, struct model *m)
{
    const uint32_t n = m->n;
    fr_rng_fill(&lab->rng, m->x, TOKENS * n, 1, H);
    fr_rng_fill(&lab->rng, m->down, RANK * n, 1 / sqrt((double)n), H);
    fr_rng_fill(&lab->rng, m->up, RANK * n, 0.1, H);
    fr_rng_fill(&lab->rng, m->head, (size_t)m->vocab * n, 1 / sqrt((double)n), H);
    for (uint32_t t = 0; t < TOKENS; t++) {
        m->x[t * n + n / 3] = fr_lab_to(H, fr_lab_get(lab, "scale"));
        double *target = m->head + (size_t)(t % m->vocab) * n;
        fr_norm_apply(&fr_norm_forms[FR_NORM_FLOAT], m->x + t * n, n, EPS, m->row, m->work, NULL);
        for (uint32_t k = 0; k < n; k++) {
            target[k] = fr_lab_to(H, target[k] + LEANING * m->row[k] / n);
        }
    }
}

/* Blocks, final norm, head; the loss. zeros (LAYERS entries, may be NULL): norm outputs that are 0. */
static double forward(struct model *m, const struct fr_norm_form *norm, uint32_t zeros[LAYERS])
{
    const uint32_t n = m->n;
    float loss = 0;
    memcpy(m->stream, m->x, TOKENS * n * sizeof *m->x);
    for (uint32_t t = 0; t < TOKENS; t++) {
        double *s = m->stream + t * n, *y = m->y + t * n;
        for (uint32_t l = 0; l < LAYERS; l++) {
            fr_norm_apply(norm, s, n, EPS, m->row, m->work, NULL);
            if (zeros != NULL) {
                zeros[l] += fr_lab_look(m->row, n).zeros;
            }
            fr_lab_matvec(H, m->down, m->row, RANK, n, m->inner);
            fr_lab_matvec_t(H, m->up, m->inner, RANK, n, m->row);
            for (uint32_t k = 0; k < n; k++) {
                s[k] = fr_lab_to(H, s[k] + m->row[k]);
            }
        }
        fr_norm_apply(norm, s, n, EPS, y, m->work, NULL);
        fr_lab_matvec(H, m->head, y, m->vocab, n, m->logits + (size_t)t * m->vocab);
        loss +=
            (float)fr_lab_cross_entropy(m->logits + (size_t)t * m->vocab, m->vocab, t % m->vocab) /
            TOKENS;
    }
    return loss;
}

/* Gradient of the final norm's input for token t, into m->dx, with every operation rounded to half
 * as autograd runs them. The gradient through the blocks is left out: the stream passes it on. */
static struct fr_lab_stats backward(struct model *m, const struct fr_norm_form *norm, double scale,
                                    uint32_t t, struct fr_chain *chain)
{
    const uint32_t n = m->n;
    const double *x = m->stream + t * n, *logits = m->logits + (size_t)t * m->vocab;
    double *dx = m->dx + t * n;
    fr_lab_softmax(FR_F32, logits, m->vocab, m->dlogits);
    for (uint32_t k = 0; k < m->vocab; k++) {
        m->dlogits[k] =
            fr_lab_to(H, (float)(scale / TOKENS) * (m->dlogits[k] - (k == t % m->vocab)));
    }
    fr_lab_matvec_t(H, m->head, m->dlogits, m->vocab, n, m->dy);
    fr_norm_backward(norm, x, m->dy, n, EPS, dx, m->dw, m->work, chain);
    return fr_lab_look(dx, n);
}

/* ---- act 1 ---- */

static double fails(struct fr_lab *lab, struct model *m)
{
    struct fr_result *r = lab->result;
    uint32_t zeros[LAYERS] = {0};
    fr_result_act(r, FR_ACT_FAILS, "a row with one element of %g leaves the norm as zeros",
                  fr_lab_get(lab, "scale"));
    const double loss = forward(m, m->norm, zeros), want = fr_lab_log(m->vocab);
    const struct fr_lab_stats in = fr_lab_look(m->x, m->n), out = fr_lab_look(m->y, TOKENS * m->n);
    const struct fr_lab_stats logits = fr_lab_look(m->logits, (size_t)TOKENS * m->vocab);
    fr_result_say(r,
                  "%d tokens of %u channels in fp16, root mean square %.3g, largest %.4g, through "
                  "%d blocks with a residual "
                  "stream, a final norm and a head of %u outputs. The norm is `x * rsqrt(v + eps)` "
                  "with v = `%s` (%s).",
                  TOKENS, m->n, fr_lab_rms(m->x, m->n), in.most, LAYERS, m->vocab,
                  m->norm->expression, m->norm->where);
    struct fr_curve *c = fr_result_curve(r, "zeros in the norm's output", "block", false);
    uint32_t dead = 0;
    for (int l = 0; l < LAYERS; l++) {
        fr_curve_add(c, (double)zeros[l] / TOKENS);
        dead += zeros[l] == TOKENS * m->n;
    }
    fr_result_claim(r, "rows-are-zero", out.zeros == TOKENS * m->n,
                    "every element of every row is 0", "%u of %u are", out.zeros, TOKENS * m->n);
    fr_result_claim(r, "no-nan-forward", out.nans + out.infs + logits.nans + logits.infs == 0,
                    "nothing in the forward pass is NaN or Inf after the norm", "%u NaN, %u Inf",
                    out.nans + logits.nans, out.infs + logits.infs);
    fr_result_claim(
        r, "dead-in-every-block", dead == LAYERS,
        "the residual stream keeps the outlier, so the token is dead in every later block",
        "zeros in %u of %d blocks", dead, LAYERS);
    fr_result_claim(r, "loss-is-ln-vocab", fabs(loss - want) < 1e-3,
                    "logits are 0 and the loss is ln(vocab)", "loss %.4f, ln %u = %.4f", loss,
                    m->vocab, want);
    return loss;
}

/* ---- act 2 ---- */

static void forward_steps(struct fr_lab *lab, struct model *m)
{
    struct fr_result *r = lab->result;
    struct fr_chain *t = fr_result_chain(r, "one row, forward");
    fr_norm_apply(m->norm, m->x, m->n, EPS, m->row, m->work, t);
    const char *first = fr_chain_first(t);
    const bool is_sum = strcmp(first, "sum") == 0 || strcmp(first, "running half sum") == 0 ||
                        strcmp(first, "x.norm(2)") == 0;
    const bool is_square = strcmp(first, "x.pow(2)") == 0 || strcmp(first, "x*x") == 0 ||
                           strcmp(first, "__hmul(x, x)") == 0;
    fr_result_claim(r, "square-or-sum-first", is_sum || is_square,
                    "the first number that does not fit is the square, or the sum of squares",
                    "first: %s", first);
    fr_result_claim(r, "inf-becomes-zero",
                    t->n > 0 && t->row[t->n - 1].zero_rows == 1 && t->row[t->n - 1].nans == 0,
                    "1 / sqrt(Inf) is 0 and 0 times a finite channel is 0: zeros, not NaN",
                    "last step: %u zeros, %u NaN", t->row[t->n - 1].zeros, t->row[t->n - 1].nans);
}

static const char *limit(double v, char ret[32])
{
    snprintf(ret, 32, isinf(v) ? "never" : "%.6g", v);
    return ret;
}

static void limits(struct fr_lab *lab, struct model *m)
{
    static const char *const heads[] = {"expression", "computed so by", "one element from",
                                        "all elements from", NULL};
    struct fr_result *r = lab->result;
    struct fr_table *t = fr_result_table(
        r, "where each expression gives up (the smallest half that makes the row zeros)", heads);
    double element = 0, sum = 0, safe = INFINITY;
    for (unsigned i = 0; i < fr_norm_forms_count; i++) {
        const struct fr_norm_form *f = &fr_norm_forms[i];
        char a[32], b[32];
        if (i > 0 && f->safe) {
            continue; /* the safe ones are one computation */
        }
        const double one = fr_norm_limit(f, m->n, false, m->row, m->work);
        const double all = fr_norm_limit(f, m->n, true, m->row, m->work);
        fr_table_cell(t, "%s", f->safe ? "x.float()..., F.rms_norm, fused" : f->expression);
        fr_table_cell(t, "%s", f->safe ? "HF Llama/Qwen/T5, TE, apex, Liger" : f->where);
        fr_table_cell(t, "%s", limit(one, a));
        fr_table_cell(t, "%s", limit(all, b));
        element = strcmp(f->name, "pow-mean") == 0 ? one : element;
        sum = strcmp(f->name, "sum-div") == 0 ? all : sum;
        safe = f->safe && one < safe ? one : safe;
    }
    fr_result_claim(r, "element-limit", element == 256,
                    "an element overflows from 256 up (255.875 squares to 65472)", "from %.6g",
                    element);
    const double rms = sqrt(65520.0 / m->n);
    fr_result_claim(r, "sum-limit", fabs(sum - rms) <= rms / 512,
                    "a sum stored in half overflows at a root mean square of sqrt(65520 / N), "
                    "which is ordinary",
                    "from %.5g, sqrt(65520 / %u) = %.5g", sum, m->n, rms);
    fr_result_claim(r, "float-never", isinf(safe),
                    "squares in fp32 never overflow for any half input", "%s",
                    isinf(safe) ? "finite up to 65504" : "it did");
}

/* Two things that are not overflow: a half sum that stops growing, and a row that holds Inf already. */
static void relatives(struct fr_lab *lab, struct model *m)
{
    struct fr_result *r = lab->result;
    const struct fr_norm_form *half_sum = &fr_norm_forms[FR_NORM_HALF_SUM];
    for (uint32_t i = 0; i < m->n; i++) {
        m->dy[i] = 1;
    }
    fr_norm_apply(half_sum, m->dy, m->n, 0, m->row, m->work, NULL);
    const double want = m->n > 2048 ? sqrt(m->n / 2048.0) : 1;
    fr_result_claim(r, "half-sum-stagnates", fabs(m->row[0] - want) < 0.005 * want,
                    "a running half sum of ones stops at 2048, so a longer row comes out too large "
                    "instead of overflowing",
                    "ones leave as %.4g, sqrt(max(N, 2048) / 2048) = %.4g", m->row[0], want);
    memcpy(m->dy, m->x, m->n * sizeof *m->dy);
    m->dy[0] = INFINITY;
    fr_norm_apply(&fr_norm_forms[FR_NORM_FLOAT], m->dy, m->n, EPS, m->row, m->work, NULL);
    const uint32_t rms = fr_lab_look(m->row, m->n).nans;
    const struct fr_array x = {m->dy, m->n, H};
    struct fr_array y = {m->row, m->n, H};
    fr_layer_norm(fr_policy_find("torch-cuda"), 0, &x, NULL, NULL, EPS, m->work, &y, NULL);
    const uint32_t layer = fr_lab_look(m->row, m->n).nans;
    fr_result_claim(r, "inf-in-nan-out", rms == 1 && layer == m->n,
                    "a row that holds Inf already is another story: RMSNorm gives NaN in that "
                    "channel, LayerNorm in all",
                    "%u and %u of %u NaN", rms, layer, m->n);
}

static void gradients(struct fr_lab *lab, struct model *m)
{
    struct fr_result *r = lab->result;
    const double scale = fr_lab_get(lab, "loss-scale");
    forward(m, m->norm, NULL);
    const struct fr_lab_stats plain = backward(m, m->norm, 1, 0, NULL);
    fr_result_say(r, "The usual story goes on: mean Inf, so backward is NaN. It is not: autograd "
                     "differentiates rsqrt through its "
                     "result, which is 0, and 0 times a finite number is 0. Only when the sum that "
                     "reaches rsqrt overflows itself, as it "
                     "does under a loss scale, Inf * 0 is NaN.");
    fr_result_claim(r, "backward-is-zero", plain.zeros == m->n && plain.nans == 0,
                    "without loss scale the row's gradient is exactly 0", "%u of %u zeros, %u NaN",
                    plain.zeros, m->n, plain.nans);
    struct fr_chain *t = fr_result_chain(r, "the same row, backward, with the loss scale");
    const struct fr_lab_stats scaled = backward(m, m->norm, scale, 0, t);
    fr_result_claim(r, "backward-scaled-is-nan", scaled.nans == m->n,
                    "with the loss scale the whole row of dx is NaN",
                    "loss scale %g: %u of %u NaN, first NaN by %s", scale, scaled.nans, m->n,
                    t->row[t->n - 1].nans > 0 ? "Inf * 0" : "nobody");
}

struct history {
    double loss[STEPS], scale[STEPS];
    uint32_t skipped;
    double settled; /* the scale of the last step that was taken; 0 none */
};

/* A dynamic scaler and plain gradient descent on the tokens. */
static void train(struct model *m, const struct fr_norm_form *norm, struct history *h)
{
    double scale = SCALE_START;
    *h = (struct history){.skipped = 0};
    for (int step = 0; step < STEPS; step++) {
        h->loss[step] = forward(m, norm, NULL);
        h->scale[step] = scale;
        uint32_t bad = 0;
        for (uint32_t t = 0; t < TOKENS; t++) {
            const struct fr_lab_stats s = backward(m, norm, scale, t, NULL);
            bad += s.nans + s.infs;
        }
        if (bad > 0) {
            scale /= 2;
            h->skipped++;
            continue;
        }
        h->settled = scale;
        for (uint32_t i = 0; i < TOKENS * m->n; i++) {
            m->x[i] = fr_lab_to(H, m->x[i] - RATE * (m->dx[i] / scale));
        }
    }
}

static void show_history(struct fr_lab *lab, const struct history *h)
{
    struct fr_curve *loss = fr_result_curve(lab->result, "loss", "step", false);
    struct fr_curve *scale = fr_result_curve(lab->result, "loss scale", "step", true);
    for (int i = 0; i < STEPS; i++) {
        fr_curve_add(loss, h->loss[i]);
        fr_curve_add(scale, h->scale[i]);
    }
}

static void hides(struct fr_lab *lab, struct model *m)
{
    struct fr_result *r = lab->result;
    struct history h;
    const double want = fr_lab_log(m->vocab);
    fr_result_say(r, "Under a dynamic loss scale that begins at %g:", SCALE_START);
    train(m, m->norm, &h);
    show_history(lab, &h);
    fr_result_claim(r, "scaler-hides-it",
                    h.skipped > 0 && h.settled > 0 && fabs(h.loss[STEPS - 1] - want) < 1e-3,
                    "the scaler skips and halves until the NaN is gone, then steps are taken and "
                    "nothing is learnt",
                    "%u skipped, settled at %g, loss %.4f before and %.4f after", h.skipped,
                    h.settled, h.loss[0], h.loss[STEPS - 1]);
}

/* ---- act 3 ---- */

static double worst_difference(const double *a, const double *b, uint32_t n)
{
    double worst = 0, most = fr_lab_look(b, n).most;
    for (uint32_t i = 0; i < n; i++) {
        worst = fabs(a[i] - b[i]) > worst || isnan(a[i]) ? fabs(a[i] - b[i]) : worst;
    }
    return most > 0 ? worst / most : INFINITY;
}

/* The emergency measure: the row divided by its largest magnitude before it is squared in half. */
static void scaled_first(const struct model *m, const double *x, double *out)
{
    double top = fr_lab_look(x, m->n).most;
    top = top < 1 ? 1 : top;
    for (uint32_t i = 0; i < m->n; i++) {
        m->dy[i] = fr_lab_to(H, x[i] / top);
    }
    fr_norm_apply(&fr_norm_forms[FR_NORM_POW_MEAN], m->dy, m->n, EPS / (top * top), out, m->work,
                  NULL);
}

static void eps_traps(struct fr_lab *lab, struct model *m)
{
    static const char *const heads[] = {"eps", "stored in half", "row of zeros, norm in half",
                                        "row of zeros, norm in fp32", NULL};
    static const double eps[] = {1e-5, 1e-6, 1e-8, 1e-12};
    struct fr_table *t =
        fr_result_table(lab->result, "eps, and a row of zeros such as padding", heads);
    uint32_t nan_half[4], nan_float[4];
    memset(m->row, 0, m->n * sizeof *m->row);
    for (int i = 0; i < 4; i++) {
        fr_norm_apply(&fr_norm_forms[FR_NORM_POW_MEAN], m->row, m->n, eps[i], m->dy, m->work, NULL);
        nan_half[i] = fr_lab_look(m->dy, m->n).nans;
        fr_norm_apply(&fr_norm_forms[FR_NORM_FLOAT], m->row, m->n, eps[i], m->dy, m->work, NULL);
        nan_float[i] = fr_lab_look(m->dy, m->n).nans;
        fr_table_cell(t, "%g", eps[i]);
        fr_table_cell(t, "%.4g", fr_lab_to(H, eps[i]));
        fr_table_cell(t, "%s", nan_half[i] > 0 ? "NaN: rsqrt(0) is Inf, 0 * Inf" : "0");
        fr_table_cell(t, "%s", nan_float[i] > 0 ? "NaN" : "0");
    }
    fr_result_claim(
        lab->result, "eps-vanishes",
        nan_half[0] + nan_half[1] == 0 && nan_half[2] == m->n && nan_float[2] + nan_float[3] == 0,
        "an eps of 1e-8 is 0 in half and a row of zeros NaN; 1e-6 survives; in fp32 both do",
        "1e-6: %u NaN, 1e-8: %u NaN; in fp32 %u", nan_half[1], nan_half[2], nan_float[2]);
}

static void fix(struct fr_lab *lab, struct model *m, double broken)
{
    struct fr_result *r = lab->result;
    const struct fr_norm_form *safe = &fr_norm_forms[FR_NORM_FLOAT];
    struct history h;
    fr_result_act(r, FR_ACT_FIX,
                  "square and average in fp32: v = x.float().pow(2).mean(-1, keepdim=True)");
    struct fr_chain *t = fr_result_chain(r, "the same row");
    fr_norm_apply(safe, m->x, m->n, EPS, m->y, m->work, t);
    const double rms = fr_lab_rms(m->y, m->n);
    fr_result_claim(r, "row-is-normal", fabs(rms - 1) < 0.01 && t->first < 0,
                    "the same row leaves with a root mean square of 1", "%.4f, first bad step: %s",
                    rms, fr_chain_first(t));
    scaled_first(m, m->x, m->row);
    const double apart = worst_difference(m->row, m->y, m->n);
    fr_result_claim(r, "absmax-first", apart < 0.01,
                    "dividing the row by its largest magnitude first, all in half, gives the same "
                    "(the emergency measure)",
                    "worst difference %.2g of the largest", apart);
    train(m, safe, &h);
    show_history(lab, &h);
    fr_result_claim(
        r, "it-learns", h.loss[STEPS - 1] < 0.5 * h.loss[0] && h.loss[STEPS - 1] < 0.5 * broken,
        "the same training run learns", "loss %.4f before and %.4f after %d steps, %u skipped",
        h.loss[0], h.loss[STEPS - 1], STEPS, h.skipped);
    eps_traps(lab, m);
}

/* ---- smoke test: the user's sizes ---- */

static int smoke(struct fr_lab *lab, struct fr_err *err)
{
    const struct fr_smoke *s = lab->smoke;
    struct fr_result *r = lab->result;
    const uint32_t n = (uint32_t)s->hidden;
    const unsigned form =
        s->policy < 0 ? (s->upcasts ? FR_NORM_FLOAT : FR_NORM_POW_MEAN) : (unsigned)s->policy;
    const struct fr_norm_form *f = &fr_norm_forms[form];
    struct fr_policy p = *fr_policy_find(f->policy);
    struct fr_array x = {fr_lab_vector(lab, n), n, s->dtype},
                    y = {fr_lab_vector(lab, n), n, s->dtype};
    double *work = fr_lab_vector(lab, FR_WORK_ROWS * n);
    if (!fr_lab_ok(lab)) {
        return fr_lab_nomem(err);
    }
    p.element = s->dtype;
    fr_result_say(r, "hidden size %u, %s, eps %g, largest activation %g, norm '%s' (%s)", n,
                  fr_dtype_info(s->dtype)->name, s->eps, s->scale, f->expression, f->name);
    fr_rng_fill(&lab->rng, x.v, n, 1, s->dtype);
    x.v[n / 2] = fr_round(s->dtype, s->scale, FR_OVERFLOW_IEEE);
    fr_rms_norm(&p, f->form, &x, NULL, s->eps, work, &y, NULL, NULL);
    struct fr_lab_stats out = fr_lab_look(y.v, n);
    fr_result_claim(r, "outlier-row", out.zeros < n && out.nans + out.infs == 0,
                    "a row with one element as large as that is not zeroed",
                    "%u of %u zeros, %u NaN", out.zeros, n, out.nans);
    const double even = s->scale < 8 ? s->scale : 8;
    for (uint32_t i = 0; i < n; i++) {
        x.v[i] = fr_round(s->dtype, even, FR_OVERFLOW_IEEE);
    }
    fr_rms_norm(&p, f->form, &x, NULL, s->eps, work, &y, NULL, NULL);
    out = fr_lab_look(y.v, n);
    fr_result_claim(r, "even-row", fabs(y.v[0] - 1) < 0.02 && out.nans == 0,
                    "a row of equal ordinary elements leaves as ones", "%g becomes %.4g", even,
                    y.v[0]);
    memset(x.v, 0, n * sizeof *x.v);
    fr_rms_norm(&p, f->form, &x, NULL, s->eps, work, &y, NULL, NULL);
    out = fr_lab_look(y.v, n);
    fr_result_claim(r, "zero-row", out.nans == 0,
                    "a row of zeros, as padding is, gives no NaN with your eps", "%u of %u NaN",
                    out.nans, n);
    return 0;
}

static int run(struct fr_lab *lab, struct fr_err *err)
{
    struct model m;
    build(lab, &m);
    if (!fr_lab_ok(lab)) {
        return fr_lab_nomem(err);
    }
    fill(lab, &m);
    double *x = fr_lab_vector(lab, TOKENS * m.n);
    if (x == NULL) {
        return fr_lab_nomem(err);
    }
    memcpy(x, m.x, TOKENS * m.n * sizeof *x);
    const double broken = fails(lab, &m);
    fr_result_act(lab->result, FR_ACT_WHY, "the square does not fit, and what follows hides it");
    forward_steps(lab, &m);
    limits(lab, &m);
    relatives(lab, &m);
    gradients(lab, &m);
    hides(lab, &m);
    memcpy(m.x, x, TOKENS * m.n * sizeof *x);
    fix(lab, &m, broken);
    return 0;
}

const struct fr_repro fr_repro_rmsnorm = {
    .id = "rmsnorm-fp16-variance-overflow",
    .summary = "one large activation makes a row of zeros; loss scaling hides it; eps traps",
    .params = params,
    .run = run,
    .smoke = smoke,
    .smoke_policies = fr_norm_names,
};
