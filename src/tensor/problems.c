/* SPDX-License-Identifier: Apache-2.0 */
/* problems: what the readers complained about, as findings. Which rule depends on the kind of
 * complaint, and the page that explains it on the format of the file and the layout of the step. */
#include "tensor/build.h"
#include "tensor/checking.h"

static bool is_safetensors(const struct fr_checking *k, const struct fr_problem *p)
{
    return p->file < k->c->files_n && fr_sv_eq(k->c->files[p->file].format, FR_SV("safetensors"));
}

static enum fr_rule missing(fr_sv layout)
{
    return fr_sv_has(layout, FR_SV("sharded"))     ? FR_RULE_MISSING_SHARD
           : fr_sv_has(layout, FR_SV("dcp"))       ? FR_RULE_MISSING_DCP
           : fr_sv_has(layout, FR_SV("deepspeed")) ? FR_RULE_MISSING_ZERO
                                                   : FR_RULE_MISSING;
}

/* The pointer itself says whose it is; without it the layout does. */
static enum fr_rule pointer(const struct fr_checking *k, const struct fr_problem *p, fr_sv layout)
{
    const fr_sv path = p->file < k->c->files_n ? k->c->files[p->file].path : FR_SV_NONE;
    const bool megatron = path.n > 0 ? fr_sv_ends(path, FR_SV(".txt"))
                                     : !fr_sv_has(layout, FR_SV("deepspeed"));
    return p->fatal ? (megatron ? FR_RULE_WRONG_TRACKER : FR_RULE_WRONG_LATEST)
                    : (megatron ? FR_RULE_NO_TRACKER : FR_RULE_NO_LATEST);
}

static fr_sv name_of(const struct fr_checking *k, const struct fr_problem *p)
{
    return p->file < k->c->files_n ? fr_path_name(k->c->files[p->file].path) : FR_SV_NONE;
}

static bool is_zip(const struct fr_checking *k, const struct fr_problem *p)
{
    const fr_sv format = p->file < k->c->files_n ? k->c->files[p->file].format : FR_SV_NONE;
    return fr_sv_eq(format, FR_SV("torch")) || fr_sv_eq(format, FR_SV("npz")) ||
           fr_sv_eq(format, FR_SV("distcp"));
}

const char *fr_page_of_error(fr_sv text)
{
    static const struct {
        fr_sv words;
        const char *page;
    } rows[] = {{FR_SV("Permission denied"), "permission-denied"},
                {FR_SV("Input/output error"), "storage-io-error"},
                {FR_SV("Stale file handle"), "storage-stale-nfs"},
                {FR_SV("No such file or directory"), "file-not-found"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (fr_sv_has(text, rows[i].words)) {
            return rows[i].page;
        }
    }
    return "";
}

/* The page of a finding for which its row has none. */
static const char *page_of(const struct fr_checking *k, const struct fr_problem *p)
{
    switch (p->kind) {
    case FR_PROBLEM_UNREADABLE:
        return fr_page_of_error(p->text);
    case FR_PROBLEM_OVERLAP:
    case FR_PROBLEM_HOLE:
        return is_safetensors(k, p) ? "safetensors-header" : "";
    case FR_PROBLEM_STORAGE:
        return p->fatal ? "corrupt-zip-checkpoint" : "";
    case FR_PROBLEM_RANK:
        return fr_sv_has(name_of(k, p), FR_SV("rng_state")) ||
                       fr_sv_has(name_of(k, p), FR_SV("random_states"))
                   ? "rng-or-sampler-state-missing"
                   : "";
    case FR_PROBLEM_HEADER:
    case FR_PROBLEM_OUTSIDE:
    case FR_PROBLEM_SIZE:
    case FR_PROBLEM_DUPLICATE:
        return is_zip(k, p) ? "corrupt-zip-checkpoint" : "";
    default:
        return "";
    }
}

static enum fr_rule rule_of(const struct fr_checking *k, const struct fr_problem *p, fr_sv layout)
{
    const bool safetensors = is_safetensors(k, p);
    switch (p->kind) {
    case FR_PROBLEM_TRUNCATED:
        return safetensors ? FR_RULE_SAFETENSORS : FR_RULE_TRUNCATED;
    case FR_PROBLEM_HEADER:
    case FR_PROBLEM_OUTSIDE:
    case FR_PROBLEM_SIZE:
    case FR_PROBLEM_DUPLICATE:
        return safetensors ? FR_RULE_SAFETENSORS : FR_RULE_HEADER;
    case FR_PROBLEM_OVERLAP:
        return FR_RULE_OVERLAP;
    case FR_PROBLEM_HOLE:
        return p->fatal && safetensors ? FR_RULE_SAFETENSORS : FR_RULE_HOLE;
    case FR_PROBLEM_MISSING:
        return missing(layout);
    case FR_PROBLEM_RANK:
        return fr_sv_has(name_of(k, p), FR_SV("zero_pp_rank_")) ? FR_RULE_MISSING_ZERO
                                                                : FR_RULE_MISSING;
    case FR_PROBLEM_TRAINER:
    case FR_PROBLEM_STORAGE:
        return FR_RULE_MISSING;
    case FR_PROBLEM_EXTRA:
        return FR_RULE_EXTRA;
    case FR_PROBLEM_LEFTOVER:
        return FR_RULE_LEFTOVER;
    case FR_PROBLEM_UNFINISHED:
        return fr_sv_has(layout, FR_SV("dcp")) ? FR_RULE_MISSING_DCP : FR_RULE_UNFINISHED;
    case FR_PROBLEM_POINTER:
        return pointer(k, p, layout);
    case FR_PROBLEM_CODE:
        return FR_RULE_CODE;
    case FR_PROBLEM_OBJECTS:
        return FR_RULE_OBJECTS;
    case FR_PROBLEM_REFUSED:
        return FR_RULE_REFUSED;
    case FR_PROBLEM_FORMAT:
        return FR_RULE_OLD_FORMAT;
    case FR_PROBLEM_DTYPE:
        return FR_RULE_DTYPE;
    case FR_PROBLEM_CHECKSUM:
        return FR_RULE_CHECKSUM;
    case FR_PROBLEM_DAMAGED:
        return FR_RULE_DAMAGED;
    case FR_PROBLEM_UNREADABLE:
        return FR_RULE_UNREADABLE;
    default:
        return FR_RULE_LIMIT;
    }
}

void fr_check_problem(struct fr_checking *k, const struct fr_problem *p, fr_sv layout)
{
    struct fr_check_finding *f =
        fr_found(k, rule_of(k, p, layout), NULL,
                 p->file < k->c->files_n ? k->c->files[p->file].path : FR_SV_NONE, "%.*s",
                 (int)fr_sv_head(p->text, 1000).n, p->text.p);
    if (f == NULL) {
        return;
    }
    if (p->kind == FR_PROBLEM_UNFINISHED && fr_sv_has(name_of(k, p), FR_SV("latest"))) {
        fr_found_page(f, fr_sv_eq(name_of(k, p), FR_SV("latest"))
                             ? "deepspeed-latest-missing"
                             : "checkpoint-corrupt-latest-pointer");
    }
    if (f->cls.n == 0) {
        fr_found_page(f, page_of(k, p));
    }
    f->offset = p->offset;
    f->tensor = fr_arena_dup(k->arena, p->tensor);
    if (!p->fatal && f->weight == FR_CHECK_BLOCKS) {
        f->weight = FR_CHECK_RISK; /* the reader knows better: worth knowing, nothing is lost */
    } else if (p->fatal && f->weight > FR_CHECK_HIDES) {
        f->weight = FR_CHECK_BLOCKS;
    }
}

/* The step that a problem without a file speaks of: its sentence begins with a path in quotes.
 * UINT32_MAX: of all. */
static uint32_t step_of(const struct fr_checkpoint *c, const struct fr_problem *p)
{
    uint32_t best = UINT32_MAX;
    size_t longest = 0;
    for (uint32_t s = 0; s < c->steps_n && p->text.n > 1 && p->text.p[0] == '\''; s++) {
        const fr_sv path = c->steps[s].path, rest = fr_sv_skip(p->text, 1);
        if (path.n > longest && fr_sv_starts(rest, path) && rest.n > path.n &&
            strchr("/'", rest.p[path.n]) != NULL) {
            best = s;
            longest = path.n;
        }
    }
    return best;
}

void fr_check_problems(struct fr_checking *k, const bool *steps, fr_sv layout)
{
    for (uint32_t i = 0; i < k->c->problems_n; i++) {
        const struct fr_problem *p = &k->c->problems[i];
        const uint32_t step =
            p->file < k->c->files_n ? k->c->files[p->file].step_index : step_of(k->c, p);
        if (step == UINT32_MAX || steps[step]) {
            fr_check_problem(k, p, layout);
        }
    }
}
