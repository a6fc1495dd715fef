/* SPDX-License-Identifier: Apache-2.0 */
/* series: names of metrics and findings. */
#include "model/series.h"

const char *fr_metric_name(enum fr_metric m)
{
    static const char *const names[] = {
#define FR_X(name, text) text,
        FR_METRICS(FR_X)
#undef FR_X
    };
    return names[m];
}

const char *fr_finding_name(enum fr_finding_kind k)
{
    static const char *const names[] = {
#define FR_X(name, text) text,
        FR_FINDINGS(FR_X)
#undef FR_X
    };
    return names[k];
}
