/* SPDX-License-Identifier: Apache-2.0 */
/* kubectl: "kubectl logs --prefix": "[pod/NAME/CONTAINER] text". The pod is the node as far as we
 * can know. */
#include "format/dialect.h"

static bool peel(const struct fr_peel_ctx *ctx, struct fr_record *rec)
{
    (void)ctx;
    fr_sv at = fr_sv_skip(rec->text, 1), pod, container;
    if (!fr_lex_lit(&at, "pod/") || !fr_lex_until(&at, ']', &container) ||
        !fr_sv_cut(container, '/', &pod, &container) || pod.n == 0) {
        return false;
    }
    rec->who.node = pod;
    fr_rec_move(rec, at);
    return true;
}

static const struct fr_format_sample samples[] = {
    {"[pod/train-worker-3/pytorch] 2025-11-25T12:34:56Z [rank24]: KeyError: 'x'",
     "node=train-worker-3 outer=2025-11-25T12:34:56 rank=24"},
    {"[pod/] x", "node=-"},
    {NULL, NULL}};

const struct fr_format fr_format_kubectl = {
    .name = "kubectl", .summary = "kubectl logs --prefix", .peel = peel, .samples = samples};
