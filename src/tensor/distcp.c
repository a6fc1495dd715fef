/* SPDX-License-Identifier: Apache-2.0 */
/* distcp: the data of a DCP checkpoint, one writer's blobs one after the other. What they are
 * called is in .metadata, so the layout dcp reads them, by it or without it. */
#include "tensor/build.h"

static void read_file(struct fr_ckpt *c, uint32_t file, const struct fr_blob *b)
{
    if (b->size == 0) {
        fr_ckpt_say(c, FR_PROBLEM_TRUNCATED, true, file, 0, FR_SV_NONE, "is empty");
    }
}

static bool sniff(fr_sv name, fr_sv head)
{
    (void)head;
    return fr_sv_ends(name, FR_SV(".distcp"));
}

const struct fr_ckpt_format fr_ckpt_format_distcp = {
    .name = "distcp",
    .summary = "data of torch.distributed.checkpoint",
    .sniff = sniff,
    .read = read_file,
};
