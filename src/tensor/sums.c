/* SPDX-License-Identifier: Apache-2.0 */
/* sums: the checksums that zips hold of their members. zlib's CRC-32 takes some five times as long
 * as the scan of the same bytes (1 GiB in the cache: 0.35 s against 0.06), and PyTorch itself never
 * looks at them; so of a large checkpoint large members wait for --crc, and the report says so. The
 * pickle is compared where it is read (torch.c). */
#include "tensor/checking.h"

#include <inttypes.h>

enum { NAMED_MAX = 100 }; /* damaged members whose tensor is looked for */

bool fr_sums_list(struct fr_checking *k, uint32_t from, uint32_t to, struct fr_arena *scratch,
                  struct fr_survey_sum **ret, uint32_t *ret_n)
{
    const struct fr_checkpoint *c = k->c;
    struct fr_survey_sum *list = FR_NEW_N(scratch, struct fr_survey_sum, c->sums_n + 1);
    uint32_t n = 0, all = 0;
    uint64_t bytes = 0;
    for (uint32_t i = 0; list != NULL && i < c->sums_n; i++) {
        const uint32_t step = c->files[c->sums[i].file].step_index;
        if (step >= from && step <= to) {
            list[all++].of = i;
            bytes += c->sums[i].bytes < FR_SUM_WHOLE ? c->sums[i].bytes : FR_SUM_WHOLE + 1;
        }
    }
    for (uint32_t i = 0; i < all; i++) {
        if (k->o->crc || bytes <= FR_SUM_WHOLE || c->sums[list[i].of].bytes <= FR_SUM_SMALL) {
            list[n++].of = list[i].of;
        }
    }
    k->sums_reckoned = n;
    k->sums_passed = all - n;
    *ret = list;
    *ret_n = n;
    return list != NULL;
}

/* The first tensor that lies in a member; empty: none does. */
static fr_sv held_by(const struct fr_checkpoint *c, const struct fr_ckpt_sum *s)
{
    for (uint32_t i = 0; i < c->tensors_n; i++) {
        const struct fr_tensor *t = &c->tensors[i];
        if (t->file == s->file && t->member == s->member && t->offset >= s->offset &&
            t->offset - s->offset < s->bytes) {
            return t->name;
        }
    }
    return FR_SV_NONE;
}

void fr_sums_say(struct fr_checking *k, const struct fr_survey_sum *sums, uint32_t n)
{
    uint32_t told = 0;
    for (uint32_t i = 0; i < n; i++) {
        const struct fr_ckpt_sum *s = &k->c->sums[sums[i].of];
        if (sums[i].rc != 0 || sums[i].crc == s->crc) {
            continue; /* what cannot be read is told of the tensors in it */
        }
        const fr_sv tensor = told++ < NAMED_MAX ? held_by(k->c, s) : FR_SV_NONE;
        const bool plain = s->member < 0;
        struct fr_check_finding *f = fr_found(
            k, FR_RULE_DAMAGED, NULL, k->c->files[s->file].path,
            "The bytes of '%.*s' (%" PRIu64 " from byte %" PRIu64 "%s) have the CRC-32 %08" PRIx32
            ", the zip was written with %08" PRIx32 ": at least one of them was changed since.",
            (int)fr_sv_head(s->name, 200).n, s->name.p, s->bytes,
            plain ? s->offset : k->c->members[s->member].offset, plain ? "" : ", unpacked",
            sums[i].crc, s->crc);
        if (f != NULL) {
            f->offset = plain ? s->offset : k->c->members[s->member].offset;
            f->tensor = fr_arena_dup(k->arena, tensor);
        }
    }
}
