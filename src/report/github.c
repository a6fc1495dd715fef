/* SPDX-License-Identifier: Apache-2.0 */
/* github: workflow commands, so that a failed run annotates the job that ran it. A line that begins with "::" is obeyed, so
 * everything foreign is escaped the way the runner unescapes it. */
#include "report/words.h"

#include "failure/library.h"

#include <inttypes.h>

static void add_escaped(struct fr_buf *out, struct fr_buf *scratch, bool property)
{
    fr_sv s = fr_buf_sv(scratch);
    for (size_t i = 0; i < s.n; i++) {
        switch (s.p[i]) {
        case '%':
            fr_buf_addz(out, "%25");
            break;
        case '\r':
            fr_buf_addz(out, "%0D");
            break;
        case '\n':
            fr_buf_addz(out, "%0A");
            break;
        case ':':
            fr_buf_addz(out, property ? "%3A" : ":");
            break;
        case ',':
            fr_buf_addz(out, property ? "%2C" : ",");
            break;
        default:
            fr_buf_addc(out, s.p[i]);
        }
    }
    out->failed |= !fr_buf_ok(scratch);
    fr_buf_clear(scratch);
}

static void incident(const struct fr_report *r, const struct fr_incident *in, struct fr_buf *out, struct fr_buf *scratch)
{
    const struct fr_quote *q = in->evidence.n > 0 ? &in->evidence.v[0] : NULL;
    fr_buf_addz(out, r->verdict == FR_VERDICT_FAILURE ? "::error " : "::warning ");
    if (q != NULL && q->source.n > 0) {
        fr_words_add(scratch, q->source);
        fr_buf_addz(out, "file=");
        add_escaped(out, scratch, true);
        fr_buf_printf(out, ",line=%" PRIu64 ",", q->line > 0 ? q->line : 1);
    }
    fr_buf_addz(out, "title=");
    fr_words_headline(scratch, r, in);
    add_escaped(out, scratch, true);
    fr_buf_addz(out, "::");
    if (q != NULL) {
        fr_utf8_clean(scratch, q->text, 400);
        fr_buf_addc(scratch, '\n');
    }
    fr_words_action(scratch, r, in);
    if (fr_has(in->failure->fix_primary)) {
        fr_buf_addc(scratch, ' ');
        fr_words_addz(scratch, in->failure->fix_primary);
    }
    fr_buf_addz(scratch, "\nConfidence: ");
    fr_words_confidence(scratch, in);
    if (in->collateral.n > 0) {
        fr_buf_addz(scratch, "; ");
        fr_words_count(scratch, in->collateral.n, "other rank is a victim", "other ranks are victims");
    }
    fr_buf_addz(scratch, ". More: faultrank explain ");
    fr_words_add(scratch, in->cls);
    add_escaped(out, scratch, false);
    fr_buf_addc(out, '\n');
}

static int write_github(const struct fr_report *r, const struct fr_write_options *o, struct fr_buf *out,
                        struct fr_err *err)
{
    struct fr_buf scratch = FR_BUF_INIT(0);
    (void)o;
    if (r->verdict == FR_VERDICT_HEALTHY) {
        fr_buf_addz(out, "::notice title=faultrank::No failure found. Read ");
        fr_words_input(&scratch, r);
        add_escaped(out, &scratch, false);
        fr_buf_addz(out, ".\n");
    } else if (r->verdict == FR_VERDICT_INCONCLUSIVE && r->incidents.n == 0) {
        fr_buf_addz(out, "::warning title=faultrank::Cannot tell from these logs what failed first.\n");
    }
    for (uint32_t i = 0; i < r->incidents.n; i++) {
        incident(r, &r->incidents.v[i], out, &scratch);
    }
    if (r->input.skipped.n > 0) {
        fr_words_add(&scratch, r->input.skipped.v[0].source);
        fr_buf_addz(&scratch, ": ");
        fr_words_add(&scratch, r->input.skipped.v[0].why);
        fr_buf_printf(out, "::notice title=faultrank::%" PRIu32 " not read, e.g. ", r->input.skipped.n);
        add_escaped(out, &scratch, false);
        fr_buf_addc(out, '\n');
    }
    out->failed |= !fr_buf_ok(&scratch);
    fr_buf_release(&scratch);
    return fr_words_finish(out, err);
}

const struct fr_writer fr_writer_github = {
    .name = "github",
    .summary = "GitHub Actions annotations",
    .mime = "text/plain; charset=utf-8",
    .extension = "txt",
    .write = write_github,
};
