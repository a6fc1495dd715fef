/* SPDX-License-Identifier: Apache-2.0 */
/* report_fixtures: hand-built reports, one per shape that a writer has to survive. Free with fr_report_release. */
#ifndef FR_TESTS_REPORT_FIXTURES_H
#define FR_TESTS_REPORT_FIXTURES_H

#include "model/diagnosis.h"

struct fixture {
    const char *name;
    void (*make)(struct fr_report *r);
};
extern const struct fixture fixtures[];
extern const unsigned fixtures_count;
/* By name; aborts when there is none. */
void fixture_make(const char *name, struct fr_report *r);

/* A text with everything that terminals, HTML, Markdown, XML and workflow commands react to. */
extern const char fixture_hostile[];

#endif
