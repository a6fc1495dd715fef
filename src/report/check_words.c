/* SPDX-License-Identifier: Apache-2.0 */
#include "report/check_words.h"

#include "report/words.h"

#include <inttypes.h>
#include <math.h>

const char *fr_check_words_verdict(uint8_t verdict)
{
    return verdict == FR_CHECK_PROMOTE  ? "Promote"
           : verdict == FR_CHECK_DO_NOT ? "Do not promote"
                                        : "Cannot tell";
}

void fr_check_words_headline(struct fr_buf *b, const struct fr_check *c)
{
    fr_buf_printf(b, "%s: ", fr_check_words_verdict(c->verdict));
    fr_utf8_clean(b, c->headline, 600);
}

static void step_name(struct fr_buf *b, const struct fr_check_step *s)
{
    if (s->step >= 0) {
        fr_buf_printf(b, "step %" PRId64 " in ", s->step);
    }
    fr_words_add(b, s->path);
}

void fr_check_words_input(struct fr_buf *b, const struct fr_check *c)
{
    if (c->chosen >= 0) {
        const struct fr_check_step *s = &c->steps.v[c->chosen];
        step_name(b, s);
        fr_buf_addz(b, ", ");
        if (s->layout.n > 0 && !fr_sv_eq(s->layout, FR_SV("unknown"))) {
            fr_words_add(b, s->layout);
            fr_buf_addz(b, ", ");
        }
    }
    fr_words_count(b, c->files, "file", "files");
    fr_buf_addz(b, ", ");
    fr_words_bytes(b, c->bytes);
    fr_buf_addz(b, ", ");
    fr_words_count(b, c->tensors.n, "tensor", "tensors");
    fr_buf_addz(b, ", ");
    fr_words_count(b, c->elements, "element", "elements");
}

bool fr_check_step_shown(const struct fr_check_step *s)
{
    return s->tensors > 0 || s->verdict == FR_CHECK_DO_NOT;
}

void fr_check_words_last_good(struct fr_buf *b, const struct fr_check *c)
{
    uint32_t shown = 0;
    for (uint32_t i = 0; i < c->steps.n; i++) {
        shown += fr_check_step_shown(&c->steps.v[i]);
    }
    if (shown < 2 || c->last_good == c->chosen) {
        return;
    }
    if (c->last_good < 0) {
        fr_buf_addz(b, c->verdict == FR_CHECK_PROMOTE ? "" : "no good step was found before it");
        return;
    }
    fr_buf_addz(b, "the last good one is ");
    step_name(b, &c->steps.v[c->last_good]);
}

void fr_check_words_where(struct fr_buf *b, const struct fr_check_finding *f)
{
    const size_t before = b->n;
    fr_words_add(b, f->tensor);
    if (f->rank >= 0) {
        fr_buf_printf(b, "%srank %" PRId32, b->n > before ? ", " : "", f->rank);
    }
    if (f->file.n > 0) {
        fr_buf_addz(b, b->n > before ? ", in " : "");
        fr_words_add(b, f->file);
    }
    if (f->offset != FR_CHECK_NOWHERE) {
        fr_buf_printf(b, " at byte %" PRIu64, f->offset);
    }
}

void fr_check_words_number(struct fr_buf *b, double d)
{
    fr_buf_printf(b, "%.3g", d);
}

const char *fr_check_words_heading(uint8_t weight)
{
    static const char *const headings[] = {[FR_CHECK_BLOCKS] = "What forbids it",
                                           [FR_CHECK_HIDES] = "What could not be looked at",
                                           [FR_CHECK_RISK] = "What may go wrong",
                                           [FR_CHECK_NOTE] = "Worth knowing"};
    return weight < FR_CHECK_WEIGHTS ? headings[weight] : "";
}

/* ---- the picture ---- */

static bool is_plain(const struct fr_check_layer *l)
{
    return l->first >= 0 && l->worst > FR_CHECK_RISK;
}

uint32_t fr_check_rows(const struct fr_check *c, struct fr_check_row *ret)
{
    uint32_t rows = 0, plain = 0;
    for (uint32_t i = 0; i < c->layers.n; i++) {
        plain += is_plain(&c->layers.v[i]);
    }
    const uint32_t others = c->layers.n - plain,
                   room = others + 8 < FR_CHECK_ROWS ? FR_CHECK_ROWS - others : 8;
    const uint32_t each = plain > room ? (plain + room - 1) / room : 1;
    for (uint32_t i = 0; i < c->layers.n; i++) {
        struct fr_check_row *last = rows > 0 ? &ret[rows - 1] : NULL;
        if (last != NULL && is_plain(&c->layers.v[i]) && is_plain(&c->layers.v[last->from]) &&
            last->n < each && c->layers.v[i].first == c->layers.v[i - 1].first + 1) {
            last->n++;
            last->shared = true;
        } else {
            ret[rows++] = (struct fr_check_row){i, 1, false};
        }
    }
    return rows;
}

struct fr_check_scale fr_check_scale_of(const struct fr_check *c)
{
    struct fr_check_scale s = {0, 0};
    for (uint32_t i = 0; i < c->tensors.n; i++) {
        const struct fr_check_tensor *t = &c->tensors.v[i];
        if (t->scanned && t->is_float && t->abs_max > 0) {
            s.low = s.low == 0 || t->abs_max < s.low ? t->abs_max : s.low;
            s.high = t->abs_max > s.high ? t->abs_max : s.high;
        }
    }
    return s;
}

unsigned fr_check_height(const struct fr_check_scale *s, const struct fr_check_tensor *t)
{
    if (!t->scanned || !t->is_float || !(t->abs_max > 0)) {
        return 0;
    }
    if (!(s->high > s->low)) {
        return 4;
    }
    return 1 + (unsigned)(7.0 * log(t->abs_max / s->low) / log(s->high / s->low) + 0.5);
}
