/* SPDX-License-Identifier: Apache-2.0 */
/* junit: for CI systems that know tests. Every check is a test case, every incident a failed one; "cannot tell" is an error,
 * because a green tick would claim a healthy run. */
#include "report/escape.h"
#include "report/words.h"

#include "failure/library.h"

#include <inttypes.h>

static void incident(const struct fr_report *r, const struct fr_incident *in, struct fr_buf *out, struct fr_buf *scratch)
{
    const char *tag = r->verdict == FR_VERDICT_FAILURE ? "failure" : "error";
    fr_buf_addz(out, "    <testcase classname=\"faultrank.diagnose\" name=\"");
    fr_words_add(scratch, in->cls);
    if (in->attempt >= 0) {
        fr_buf_printf(scratch, " (attempt %" PRId32 ")", in->attempt);
    }
    fr_escape_flush(out, scratch);
    fr_buf_printf(out, "\" time=\"0\">\n      <%s type=\"", tag);
    fr_escape(out, in->cls, 200);
    fr_buf_addz(out, "\" message=\"");
    fr_words_headline(scratch, r, in);
    fr_escape_flush(out, scratch);
    fr_buf_addz(out, "\">");
    for (uint32_t i = 0; i < in->evidence.n && i < 5; i++) {
        fr_words_place(scratch, &in->evidence.v[i]);
        fr_buf_addz(scratch, ": ");
        fr_words_add(scratch, in->evidence.v[i].text);
        fr_buf_addc(scratch, '\n');
    }
    if (in->why_first.n > 0) {
        fr_buf_addz(scratch, "Why this one first: ");
        fr_words_add(scratch, in->why_first);
        fr_buf_addc(scratch, '\n');
    }
    if (in->collateral.n > 0) {
        fr_words_count(scratch, in->collateral.n, "other rank is a victim", "other ranks are victims");
        fr_buf_addz(scratch, ".\n");
    }
    fr_buf_addz(scratch, "Do now: ");
    fr_words_action(scratch, r, in);
    fr_buf_addc(scratch, ' ');
    fr_words_addz(scratch, in->failure->fix_primary);
    fr_buf_addz(scratch, "\nConfidence: ");
    fr_words_confidence(scratch, in);
    fr_escape_flush(out, scratch);
    fr_buf_printf(out, "</%s>\n    </testcase>\n", tag);
}

static int write_junit(const struct fr_report *r, const struct fr_write_options *o, struct fr_buf *out,
                       struct fr_err *err)
{
    struct fr_buf scratch = FR_BUF_INIT(0);
    bool bare = r->incidents.n == 0 && r->verdict == FR_VERDICT_INCONCLUSIVE;
    uint32_t bad = r->incidents.n + (bare ? 1 : 0);
    uint32_t cases = bad + r->checked.n + (bad + r->checked.n == 0);
    uint32_t failed = r->verdict == FR_VERDICT_FAILURE ? bad : 0;
    double seconds = o->timings ? r->timings.read_s + r->timings.decide_s : 0;
    fr_buf_addz(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    for (int level = 0; level < 2; level++) {
        fr_buf_printf(out, "%s name=\"faultrank\" tests=\"%" PRIu32 "\" failures=\"%" PRIu32 "\" errors=\"%" PRIu32
                      "\"%s time=\"%.3f\">\n", level == 0 ? "<testsuites" : "  <testsuite", cases, failed, bad - failed,
                      level == 0 ? "" : " skipped=\"0\"", seconds);
    }
    for (uint32_t i = 0; i < r->incidents.n; i++) {
        incident(r, &r->incidents.v[i], out, &scratch);
    }
    if (bare) {
        fr_buf_addz(out, "    <testcase classname=\"faultrank.diagnose\" name=\"verdict\" time=\"0\">\n"
                         "      <error type=\"inconclusive\" message=\"Cannot tell from these logs what failed first.\"/>\n"
                         "    </testcase>\n");
    }
    for (uint32_t i = 0; i < r->checked.n || (i == 0 && cases == 1 && bad == 0); i++) {
        fr_buf_addz(out, "    <testcase classname=\"faultrank.checked\" name=\"");
        fr_escape(out, i < r->checked.n ? r->checked.v[i] : FR_SV("no failure found"), 200);
        fr_buf_addz(out, "\" time=\"0\"/>\n");
    }
    fr_buf_addz(out, "  </testsuite>\n</testsuites>\n");
    out->failed |= !fr_buf_ok(&scratch);
    fr_buf_release(&scratch);
    return fr_words_finish(out, err);
}

const struct fr_writer fr_writer_junit = {
    .name = "junit",
    .summary = "JUnit XML: every incident is a failed test case",
    .mime = "application/xml",
    .extension = "xml",
    .write = write_junit,
};
