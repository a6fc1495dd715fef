/* SPDX-License-Identifier: Apache-2.0 */
/* check: a step is looked at in this order: what the readers complained about, what its tensors
 * hold, what they say together, what settings say about them. Earlier steps are looked at only when
 * the one asked for is not good, newest first, until one is. */
#include "tensor/check.h"

#include "base/buf.h"
#include "tensor/build.h"
#include "tensor/checking.h"
#include "tensor/manifest.h"
#include "tensor/place.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

/* ---- tensors of a step ---- */

static fr_sv role_name(uint8_t role)
{
    static const char *const names[] = {
        [FR_ROLE_WEIGHT] = "weight", [FR_ROLE_OPTIMIZER] = "optimizer", [FR_ROLE_SCALE] = "scale",
        [FR_ROLE_PACKED] = "packed", [FR_ROLE_BUFFER] = "buffer",       [FR_ROLE_OTHER] = "other"};
    return fr_sv_z(role < sizeof names / sizeof names[0] ? names[role] : "other");
}

static struct fr_check_tensor fact(const struct fr_checkpoint *c, uint32_t i,
                                   const struct fr_survey *s, struct fr_arena *arena)
{
    const struct fr_tensor *t = &c->tensors[i];
    const struct fr_dtype_info *info = fr_dtype_info(t->dtype);
    const struct fr_tally *y = &s->tally;
    struct fr_check_tensor r = {
        .name = fr_arena_dup(arena, t->name),
        .file = fr_arena_dup(arena, c->files[t->file].path),
        .role = role_name(t->role),
        .rank = t->rank,
        .worst = FR_CHECK_WEIGHTS,
        .dims = t->dims,
        .scanned = s->done && s->rc == 0,
        .is_float = info != NULL && info->is_float,
        .elements = t->elements,
        .nan = y->nan,
        .inf = y->inf,
        .zero = y->zero,
        .subnormal = y->subnormal,
        .abs_max = y->abs_max,
        .rows = s->rows,
        .zero_rows = s->zero_rows,
        .equal_rows = s->equal_rows,
        .first_zero_row = s->first_zero_row,
        .first_equal_row = s->first_equal_row,
        .zero_rows_at_end = s->zero_rows_at_end,
        .file_index = t->file,
        .source = i,
    };
    const uint64_t finite = y->elements - y->nan - y->inf;
    r.dtype = info != NULL ? fr_sv_z(info->name) : fr_arena_dup(arena, t->dtype_word);
    r.rms = finite > 0 && r.is_float ? sqrt(y->sum_squares / (double)finite) : 0;
    memcpy(r.shape, t->shape, sizeof r.shape);
    memcpy(r.beyond, y->beyond, sizeof r.beyond);
    fr_place(&r);
    return r;
}

/* Elements of a tied weight are read once for each name; they lie in the page cache, and ties are
 * few. */
static int survey_step(struct fr_checking *k, uint32_t from, uint32_t to, struct fr_err *err)
{
    const struct fr_checkpoint *c = k->c;
    struct fr_arena scratch = FR_ARENA_INIT(0);
    uint32_t *which = FR_NEW_N(&scratch, uint32_t, c->tensors_n + 1), n = 0;
    struct fr_survey *found = FR_NEW_N(&scratch, struct fr_survey, c->tensors_n + 1);
    struct fr_survey_options o = {
        .threads = k->o->threads, .progress = k->o->progress, .ctx = k->o->ctx};
    const bool sums = fr_sums_list(k, from, to, &scratch, &o.sums, &o.sums_n);
    int rc = which == NULL || found == NULL || !sums ? fr_err_set(err, FR_NOMEM, "out of memory")
                                                     : 0;
    for (uint32_t i = 0; rc == 0 && i < c->tensors_n; i++) {
        const uint32_t step = c->files[c->tensors[i].file].step_index;
        if (step >= from && step <= to) {
            which[n++] = i;
        }
    }
    rc = rc == 0 ? fr_survey(c, which, n, &o, k->arena, found, err) : rc;
    for (uint32_t i = 0; rc == 0 && i < n; i++) {
        struct fr_check_tensor *t = FR_PUSH(&k->r->tensors);
        if (t == NULL) {
            rc = fr_err_set(err, FR_NOMEM, "out of memory");
            break;
        }
        *t = fact(c, which[i], &found[i], k->arena);
        k->r->elements += t->elements;
    }
    if (rc == 0 && k->r->tensors.n > 1) {
        qsort(k->r->tensors.v, k->r->tensors.n, sizeof *k->r->tensors.v, fr_place_cmp);
    }
    for (uint32_t i = 0; rc == 0 && i < n; i++) {
        if (found[i].rc != 0) {
            struct fr_check_finding *f =
                fr_found(k, FR_RULE_UNREADABLE, NULL, c->files[c->tensors[which[i]].file].path,
                         "%s.", found[i].why != NULL ? found[i].why : "out of memory");
            if (f != NULL) {
                f->tensor = fr_arena_dup(k->arena, c->tensors[which[i]].name);
                f->offset = found[i].at;
                fr_found_page(f, fr_page_of_error(f->text));
            }
        }
    }
    if (rc == 0) {
        fr_sums_say(k, o.sums, o.sums_n);
    }
    fr_arena_release(&scratch);
    return rc;
}

/* ---- verdict ---- */

static uint8_t verdict_of(const struct fr_check *r)
{
    bool hidden = r->tensors.n == 0;
    for (uint32_t i = 0; i < r->findings.n; i++) {
        if (r->findings.v[i].weight == FR_CHECK_BLOCKS) {
            return FR_CHECK_DO_NOT;
        }
        hidden |= r->findings.v[i].weight == FR_CHECK_HIDES;
    }
    return hidden ? FR_CHECK_CANNOT_TELL : FR_CHECK_PROMOTE;
}

static uint32_t count(const struct fr_check *r, uint8_t weight)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < r->findings.n; i++) {
        n += r->findings.v[i].weight == weight;
    }
    return n;
}

/* The optimizer is hit and the weights are not: the state is what the next step is computed from.
 */
static bool one_step_old(const struct fr_check *r)
{
    bool optimizer = false;
    for (uint32_t i = 0; i < r->findings.n; i++) {
        optimizer |= fr_sv_eq(r->findings.v[i].rule, FR_SV("nan-in-optimizer-state"));
        if (fr_sv_eq(r->findings.v[i].rule, FR_SV("nan-in-weights")) ||
            fr_sv_eq(r->findings.v[i].rule, FR_SV("inf-in-weights"))) {
            return false;
        }
    }
    return optimizer;
}

/* What a finding is about: of one about the whole the step, which "." does not name. */
static fr_sv place_of(const struct fr_check *r, const struct fr_check_finding *f)
{
    const fr_sv step = r->chosen >= 0 ? r->steps.v[r->chosen].path : FR_SV_NONE;
    const fr_sv where = f->tensor.n > 0 ? f->tensor : f->file.n > 0 ? f->file : step;
    return fr_sv_eq(where, FR_SV(".")) ? FR_SV_NONE : fr_sv_head(where, 300);
}

static fr_sv headline(const struct fr_check *r, struct fr_arena *arena)
{
    const struct fr_check_finding *f = r->findings.n > 0 ? &r->findings.v[0] : NULL;
    const uint32_t risks = count(r, FR_CHECK_RISK), same = f != NULL ? count(r, f->weight) : 0;
    if (r->verdict == FR_CHECK_DO_NOT && f != NULL) {
        const fr_sv where = place_of(r, f);
        const char *colon = where.n > 0 ? ": " : "";
        if (one_step_old(r)) {
            return fr_arena_printf(arena,
                                   "the optimizer's state holds NaN or Inf while the weights are "
                                   "finite, so the failure is one step old%s%.*s",
                                   colon, FR_SV_ARG(where));
        }
        return same == 1
                   ? fr_arena_printf(arena, "%.*s%s%.*s", FR_SV_ARG(f->title), colon,
                                     FR_SV_ARG(where))
                   : fr_arena_printf(arena, "%u findings forbid it, the worst: %.*s%s%.*s", same,
                                     FR_SV_ARG(f->title), colon, FR_SV_ARG(where));
    }
    if (r->verdict == FR_CHECK_CANNOT_TELL && f != NULL) {
        return fr_arena_printf(arena, "%.*s", FR_SV_ARG(f->title));
    }
    if (r->verdict == FR_CHECK_CANNOT_TELL) {
        return FR_SV("no tensor was found");
    }
    return fr_arena_printf(arena, "%u tensor%s, no NaN, no Inf, nothing missing%s", r->tensors.n,
                           r->tensors.n == 1 ? "" : "s",
                           risks == 0   ? ""
                           : risks == 1 ? "; one risk"
                                        : "; some risks");
}

/* ---- layers ---- */

static void layers(struct fr_checking *k)
{
    struct fr_check *r = k->r;
    struct fr_check_layer *l = NULL;
    for (uint32_t i = 0; i < r->tensors.n; i++) {
        const struct fr_check_tensor *t = &r->tensors.v[i];
        const fr_sv label = fr_place_label(t, k->arena);
        if (l == NULL || !fr_sv_eq(l->label, label)) {
            l = FR_PUSH(&r->layers);
            if (l == NULL) {
                k->nomem = true;
                return;
            }
            *l = (struct fr_check_layer){.label = label,
                                         .first = t->layer,
                                         .last = t->layer,
                                         .from = i,
                                         .worst = FR_CHECK_WEIGHTS};
        }
        l->n++;
        l->nan += t->nan;
        l->inf += t->inf;
        l->abs_max = t->is_float && t->scanned && t->abs_max > l->abs_max ? t->abs_max : l->abs_max;
        l->rms = t->is_float && t->scanned && t->rms > l->rms ? t->rms : l->rms;
        l->worst = t->worst < l->worst ? t->worst : l->worst;
    }
}

/* ---- settings ---- */

/* config.json beside the tensors, unless the user named one. */
static void read_beside(struct fr_checking *k, uint32_t step)
{
    const fr_sv beside = k->c->steps[step].config;
    struct fr_err why = {0};
    if (k->config.model.path.n > 0 || beside.n == 0 ||
        fr_config_read(&k->config, beside.p, k->arena, &why) == 0) {
        return;
    }
    for (uint32_t i = 0; i < k->c->files_n; i++) {
        if (fr_sv_eq(k->c->files[i].path, beside) && !k->c->files[i].complete) {
            return; /* told as damage of the checkpoint */
        }
    }
    fr_found(k, FR_RULE_CONFIG_UNREAD, NULL, beside, "%s. No risk was reckoned from it.", why.msg);
}

static int read_settings(struct fr_checking *k, uint32_t step, struct fr_err *err)
{
    struct fr_arena scratch = FR_ARENA_INIT(0);
    fr_sv rest = fr_sv_z(k->o->config), path;
    int rc = 0;
    fr_config_init(&k->config);
    while (rc == 0 && rest.n > 0) {
        (void)fr_sv_cut(rest, ',', &path, &rest);
        if (path.n > 0) {
            rc = fr_config_read(&k->config, fr_arena_dup(&scratch, path).p, k->arena, err);
        }
    }
    fr_arena_release(&scratch);
    if (rc == 0) {
        read_beside(k, step);
    }
    return rc;
}

/* ---- steps ---- */

static void list_steps(struct fr_checking *k)
{
    const struct fr_checkpoint *c = k->c;
    for (uint32_t i = 0; i < c->steps_n; i++) {
        struct fr_check_step *s = FR_PUSH(&k->r->steps);
        if (s == NULL) {
            k->nomem = true;
            return;
        }
        *s = (struct fr_check_step){.path = fr_arena_dup(k->arena, c->steps[i].path),
                                    .layout = fr_arena_dup(k->arena, c->steps[i].layout),
                                    .step = c->steps[i].step,
                                    .verdict = FR_CHECK_CANNOT_TELL};
        s->why =
            c->steps[i].complete ? FR_SV("only its structure was looked at") : FR_SV("incomplete");
        s->verdict = c->steps[i].complete ? FR_CHECK_CANNOT_TELL : FR_CHECK_DO_NOT;
    }
    for (uint32_t i = 0; i < c->files_n; i++) {
        struct fr_check_step *s = &k->r->steps.v[c->files[i].step_index];
        s->files++;
        s->bytes += c->files[i].size;
    }
    for (uint32_t i = 0; i < c->tensors_n; i++) {
        k->r->steps.v[c->files[c->tensors[i].file].step_index].tensors++;
    }
}

/* The steps with the number of step `last` are one: a folder for each rank, or files that were
 * named one by one. */
static uint32_t first_of(const struct fr_checkpoint *c, uint32_t last)
{
    uint32_t from = last;
    while (from > 0 && c->steps[from - 1].step == c->steps[last].step) {
        from--;
    }
    return from;
}

/* A folder around the step that holds no tensors of its own: its pointer file ("latest") speaks of
 * this step, too. */
static bool is_around(const struct fr_checking *k, uint32_t outer, uint32_t step)
{
    const fr_sv in = k->c->steps[step].path, out = k->c->steps[outer].path;
    for (uint32_t i = 0; i < k->c->tensors_n; i++) {
        if (k->c->files[k->c->tensors[i].file].step_index == outer) {
            return false;
        }
    }
    return fr_sv_starts(in, out) && in.n > out.n && in.p[out.n] == '/';
}

static void nothing(struct fr_checking *k, uint32_t step)
{
    const fr_sv path = k->c->steps[step].path;
    if (fr_sv_ends(path, FR_SV(".json"))) {
        fr_found_page(fr_found(k, FR_RULE_NOTHING, NULL, path,
                               "A file of settings holds no tensors: name the checkpoint's "
                               "folder, in which config.json is found by itself."),
                      "");
        return;
    }
    fr_found(k, FR_RULE_NOTHING, NULL, path, "No tensor was found.");
}

static void look(struct fr_checking *k, uint32_t from, uint32_t to)
{
    struct fr_arena scratch = FR_ARENA_INIT(0);
    bool *mine = FR_NEW_N(&scratch, bool, k->c->steps_n + 1);
    for (uint32_t s = 0; mine != NULL && s < k->c->steps_n; s++) {
        mine[s] = (s >= from && s <= to) || is_around(k, s, to);
    }
    k->nomem |= mine == NULL;
    if (mine != NULL) {
        fr_check_problems(k, mine, k->c->steps[to].layout);
    }
    fr_arena_release(&scratch);
    fr_check_values(k);
    fr_check_tails(k);
    fr_check_peers(k);
    fr_check_risk(k);
    fr_check_settings(k);
    if (k->r->tensors.n == 0) {
        nothing(k, to);
    }
}

static void set_verdict(struct fr_check *r, uint32_t from, uint32_t to, uint8_t verdict, fr_sv why)
{
    for (uint32_t s = from; s <= to; s++) {
        r->steps.v[s].checked = true;
        r->steps.v[s].verdict = verdict;
        r->steps.v[s].why = why;
    }
}

/* Whether an earlier step is good, without its findings. */
static int try_step(struct fr_checking *k, uint32_t from, uint32_t to, struct fr_err *err)
{
    struct fr_check r = {.arena = FR_ARENA_INIT(0)};
    struct fr_check_options o = *k->o;
    o.compare = NULL;
    struct fr_checking one = {.o = &o, .c = k->c, .r = &r, .arena = &r.arena};
    fr_config_init(&one.config);
    int rc = survey_step(&one, from, to, err);
    if (rc == 0) {
        look(&one, from, to);
        fr_findings_sort(&r);
        const uint8_t verdict = verdict_of(&r);
        set_verdict(k->r, from, to, verdict,
                    r.findings.n > 0 && verdict != FR_CHECK_PROMOTE
                        ? r.findings.v[0].title
                        : FR_SV("no NaN, no Inf, nothing missing"));
    }
    k->nomem |= one.nomem;
    fr_check_release(&r);
    return rc;
}

static int find_last_good(struct fr_checking *k, uint32_t from, uint32_t to, struct fr_err *err)
{
    int rc = 0;
    uint32_t last = to;
    k->r->last_good = -1;
    while (rc == 0 && k->r->steps.v[last].verdict != FR_CHECK_PROMOTE && from > 0) {
        last = from - 1;
        from = first_of(k->c, last);
        if (k->c->steps[last].step < 0 || !k->c->steps[last].complete) {
            continue;
        }
        rc = try_step(k, from, last, err);
    }
    if (rc == 0 && k->r->steps.v[last].verdict == FR_CHECK_PROMOTE) {
        k->r->last_good = last;
    }
    return rc;
}

static int choose(const struct fr_checking *k, uint32_t *ret, struct fr_err *err)
{
    for (uint32_t i = k->c->steps_n; i-- > 0;) {
        if (k->o->step < 0 || k->c->steps[i].step == k->o->step) {
            *ret = i;
            return 0;
        }
    }
    return fr_err_set(err, FR_ARG, "there is no step %" PRId64 " here", k->o->step);
}

static int hold_against_manifest(struct fr_checking *k, struct fr_err *err)
{
    struct fr_problem *p = NULL;
    uint32_t n = 0;
    struct fr_arena scratch = FR_ARENA_INIT(0);
    const int rc = fr_manifest_verify(k->c, k->o->manifest, &scratch, &p, &n, err);
    for (uint32_t i = 0; rc == 0 && i < n; i++) {
        fr_check_problem(k, &p[i], FR_SV("manifest"));
    }
    fr_arena_release(&scratch);
    return rc;
}

static void checked(struct fr_checking *k)
{
    static const char *const said[] = {
        "structure: headers, offsets, indexes, missing and unfinished files",
        "each element: NaN, Inf, zero, subnormal, largest magnitude, what a cast to a smaller type "
        "would lose",
        "rows: zero or of one value; tensors with equal contents; layers out of line",
    };
    for (size_t i = 0; i < sizeof said / sizeof said[0]; i++) {
        fr_sv *s = FR_PUSH(&k->r->checked);
        if (s == NULL) {
            k->nomem = true;
            return;
        }
        *s = fr_sv_z(said[i]);
    }
    fr_sv *s = k->sums_reckoned + k->sums_passed > 0 ? FR_PUSH(&k->r->checked) : NULL;
    if (s != NULL) {
        *s = k->sums_passed > 0
                 ? fr_arena_printf(k->arena,
                                   "checksums inside zips: of %" PRIu32 " members; not of %" PRIu32
                                   " larger than 64 KiB, which --crc compares as well",
                                   k->sums_reckoned, k->sums_passed)
                 : FR_SV("checksums inside zips: of all members that tensors are read from");
    }
    s = FR_PUSH(&k->r->checked);
    if (s != NULL) {
        *s = k->config.model.path.n > 0
                 ? fr_arena_printf(k->arena, "overflow risks of fp16, with %.*s",
                                   (int)fr_sv_head(k->config.model.path, 300).n,
                                   k->config.model.path.p)
                 : FR_SV("no config.json: overflow risks were not reckoned");
    }
}

static int check_step(struct fr_checking *k, const char *const *replicas, uint32_t n,
                      struct fr_err *err)
{
    uint32_t last = 0;
    int rc = choose(k, &last, err);
    if (rc != 0) {
        return rc;
    }
    const uint32_t from = first_of(k->c, last);
    list_steps(k);
    if (k->nomem) {
        return fr_err_set(err, FR_NOMEM, "out of memory");
    }
    k->r->chosen = last;
    for (uint32_t s = from; s <= last; s++) {
        k->r->files += k->r->steps.v[s].files;
        k->r->bytes += k->r->steps.v[s].bytes;
    }
    rc = read_settings(k, last, err);
    rc = rc == 0 ? survey_step(k, from, last, err) : rc;
    if (rc != 0) {
        return rc;
    }
    look(k, from, last);
    rc = k->o->manifest != NULL ? hold_against_manifest(k, err) : 0;
    rc = rc == 0 ? fr_check_compare(k, replicas, n, err) : rc;
    if (k->full) {
        k->full = false;
        k->r->findings.n--;
        fr_found(k, FR_RULE_LIMIT, NULL, FR_SV_NONE,
                 "More than %d findings: the rest is not listed.", FR_FINDINGS_MAX);
    }
    fr_findings_sort(k->r);
    layers(k);
    checked(k);
    k->r->verdict = verdict_of(k->r);
    k->r->headline = headline(k->r, k->arena);
    set_verdict(k->r, from, last, k->r->verdict,
                k->r->findings.n > 0 && k->r->verdict != FR_CHECK_PROMOTE
                    ? k->r->findings.v[0].title
                    : FR_SV("no NaN, no Inf, nothing missing"));
    return rc == 0 ? find_last_good(k, from, last, err) : rc;
}

static bool is_anything(const struct fr_checkpoint *c)
{
    for (uint32_t i = 0; i < c->files_n; i++) {
        if (c->files[i].format.n > 0 && !fr_sv_eq(c->files[i].format, FR_SV("other"))) {
            return true;
        }
    }
    return c->tensors_n > 0;
}

int fr_check_paths(const char *const *paths, uint32_t n, const struct fr_check_options *o,
                   struct fr_check *ret, struct fr_err *err)
{
    struct fr_arena arena = FR_ARENA_INIT(0); /* the reader's, which the report does not keep */
    struct fr_checkpoint c;
    struct fr_check r = {.arena = FR_ARENA_INIT(0), .chosen = -1, .last_good = -1};
    const uint32_t opened = o->replicas && n > 1 ? 1 : n;
    int rc = fr_checkpoint_open(paths, opened, NULL, &arena, &c, err);
    if (rc == 0 && !is_anything(&c)) {
        rc = c.problems_n > 0
                 ? fr_err_set(err, FR_SYNTAX, "%.*s", (int)fr_sv_head(c.problems[0].text, 250).n,
                              c.problems[0].text.p)
                 : fr_err_set(err, FR_SYNTAX, "'%.200s' holds no checkpoint%s", paths[0],
                              fr_sv_ends(fr_sv_z(paths[0]), FR_SV(".json"))
                                  ? ": settings go with --config, beside the checkpoint's PATH"
                                  : "");
    }
    if (rc == 0) {
        struct fr_checking k = {.o = o, .c = &c, .r = &r, .arena = &r.arena};
        rc = check_step(&k, paths + opened, n - opened, err);
        if (rc == 0 && k.nomem) {
            rc = fr_err_set(err, FR_NOMEM, "out of memory");
        }
    }
    fr_arena_release(&arena);
    if (rc != 0) {
        fr_check_release(&r);
        return rc;
    }
    *ret = r;
    return 0;
}

int fr_check_manifest(const char *const *paths, uint32_t n, const char *manifest,
                      struct fr_buf *out, struct fr_err *err)
{
    struct fr_arena arena = FR_ARENA_INIT(0);
    struct fr_checkpoint c;
    int rc = fr_checkpoint_open(paths, n, NULL, &arena, &c, err);
    rc = rc == 0 ? fr_manifest_write(&c, fr_path_folder(fr_sv_z(manifest)), true, out, err) : rc;
    fr_arena_release(&arena);
    return rc;
}
