/* SPDX-License-Identifier: Apache-2.0 */
/* markers: what a save writes last, or leaves when it did not finish: `latest`,
 * latest_checkpointed_iteration.txt, UNFINISHED, trainer_state.json, Megatron's metadata.json; and
 * files of ranks: 0 to the highest, none left out. */
#include "base/alloc.h"
#include "tensor/folder.h"
#include "tensor/json.h"

#include <stdio.h>

/* A small text file whole, without white space around it; empty when it cannot be read. */
static fr_sv small_text(struct fr_ckpt *c, uint32_t file)
{
    FR_AUTO(fr_blob) b = FR_BLOB_INIT;
    char text[256];
    if (fr_blob_open(&b, c->files.v[file].path.p, NULL) != 0 || b.size > sizeof text ||
        fr_blob_read(&b, 0, text, (size_t)b.size, NULL) != 0) {
        return FR_SV_NONE;
    }
    return fr_ckpt_dup(c, fr_sv_trim((fr_sv){text, (size_t)b.size}));
}

/* The step that a tag speaks of; -1 none. Megatron writes a bare number. */
static int64_t tag_step(fr_sv tag)
{
    int64_t step;
    fr_sv rest = tag;
    return (fr_sv_take_i64(&rest, &step) && rest.n == 0) || fr_step_number(tag, &step) ? step : -1;
}

static bool has_step(const struct fr_ckpt *c, fr_sv folder, fr_sv name)
{
    char path[4400];
    uint32_t known;
    int n = snprintf(path, sizeof path, "%.*s%s%.*s", FR_SV_ARG(folder), folder.n > 0 ? "/" : "",
                     FR_SV_ARG(name));
    return n > 0 && (size_t)n < sizeof path &&
           fr_map_get(&c->by_step, (fr_sv){path, (size_t)n}, &known);
}

/* Whether what a marker names is there: a step of that name, Megatron's folder of that number, or
 * a part of the step that the marker is in (checkpoint-100/global_step100). */
static bool is_there(const struct fr_ckpt *c, uint32_t file, fr_sv folder, fr_sv tag, int64_t step)
{
    char iter[40];
    int n = snprintf(iter, sizeof iter, "iter_%07lld", (long long)step);
    if (has_step(c, folder, tag) || (step >= 0 && has_step(c, folder, (fr_sv){iter, (size_t)n}))) {
        return true;
    }
    for (uint32_t i = fr_ckpt_first(c, c->files.v[file].step_index); i != FR_NO_FILE;
         i = c->notes.v[i].next) {
        fr_sv rest = c->files.v[i].path;
        if (fr_sv_take(&rest, folder) && (folder.n == 0 || fr_sv_take(&rest, FR_SV("/"))) &&
            fr_sv_take(&rest, tag) && fr_sv_starts(rest, FR_SV("/"))) {
            return true;
        }
    }
    return false;
}

/* The marker itself, once: it must name what is there. */
static void check_marker(struct fr_ckpt *c, uint32_t file)
{
    fr_sv tag = small_text(c, file), folder = fr_path_folder(c->files.v[file].path);
    if (tag.n == 0) {
        fr_ckpt_say(c, FR_PROBLEM_UNFINISHED, true, file, 0, FR_SV_NONE,
                    "is empty or no tag: the save that was to write it did not finish");
    } else if (!is_there(c, file, folder, tag, tag_step(tag))) {
        fr_ckpt_say(c, FR_PROBLEM_POINTER, true, file, 0, FR_SV_NONE,
                    "names '%.*s', which is not there", FR_SHOWN(tag));
    }
}

/* A step beyond the one that the marker around it names was not finished. */
static void check_beyond(struct fr_ckpt *c, uint32_t step, const char *marker)
{
    const struct fr_ckpt_step *s = &c->steps.v[step];
    uint32_t file = fr_ckpt_sibling(c, s->path, fr_sv_z(marker));
    if (file == FR_NO_FILE || s->step < 0) {
        return;
    }
    fr_sv tag = small_text(c, file);
    int64_t named = tag_step(tag);
    if (named >= 0 && named < s->step) {
        fr_ckpt_say_step(c, FR_PROBLEM_UNFINISHED, true, step, s->path,
                         "step %lld, but '%s' beside it, which is written last, still names step "
                         "%lld: the save did not finish",
                         (long long)s->step, marker, (long long)named);
    }
}

/* The folder that was named holds tags of DeepSpeed or iterations of Megatron: who resumes from it
 * without naming one looks for the pointer. */
static const char *pointer_of(struct fr_ckpt *c, uint32_t step)
{
    const struct fr_ckpt_step *s = &c->steps.v[step];
    fr_sv rest = fr_path_name(s->path);
    uint64_t number;
    uint32_t first = fr_ckpt_first(c, step);
    if (first == FR_NO_FILE || s->path.n == 0 ||
        fr_path_folder(s->path).n != c->notes.v[first].root) {
        return NULL; /* the tag itself was named, or a folder further up */
    }
    if (fr_sv_take(&rest, FR_SV("global_step"))) {
        return fr_sv_take_u64(&rest, &number) && rest.n == 0 &&
                       fr_sv_eq(s->layout, FR_SV("deepspeed"))
                   ? "latest"
                   : NULL;
    }
    return fr_sv_take(&rest, FR_SV("iter_")) && rest.n >= 7 && fr_sv_take_u64(&rest, &number) &&
                   rest.n == 0 &&
                   (fr_sv_eq(s->layout, FR_SV("megatron")) ||
                    fr_ckpt_sibling(c, c->files.v[first].path, FR_SV("metadata.json")) !=
                        FR_NO_FILE)
               ? "latest_checkpointed_iteration.txt"
               : NULL;
}

/* No pointer at all; told once for a folder, by its first step. */
static void check_pointer(struct fr_ckpt *c, uint32_t step)
{
    const fr_sv path = c->steps.v[step].path, folder = fr_path_folder(path);
    const char *pointer = pointer_of(c, step);
    if (pointer == NULL || fr_ckpt_sibling(c, path, fr_sv_z(pointer)) != FR_NO_FILE) {
        return;
    }
    for (uint32_t i = 0; i < step; i++) {
        if (!fr_ckpt_work(c, 1) || (fr_sv_eq(fr_path_folder(c->steps.v[i].path), folder) &&
                                    pointer_of(c, i) == pointer)) {
            return;
        }
    }
    fr_ckpt_say_step(c, FR_PROBLEM_POINTER, false, UINT32_MAX, folder,
                     strcmp(pointer, "latest") == 0
                         ? "has no file 'latest': load_checkpoint without a tag warns, loads "
                           "nothing and returns None"
                         : "has no latest_checkpointed_iteration.txt: Megatron finds nothing to "
                           "load and starts from random weights, unless --ckpt-step names an "
                           "iteration");
}

/* ---- one file per rank ---- */

/* Where the digits of the rank begin in a name, and their number. */
static size_t rank_digits(fr_sv name, size_t *n)
{
    static const fr_sv words[] = {FR_SV("zero_pp_rank_"), FR_SV("_rank_"),         FR_SV("rank_"),
                                  FR_SV("rng_state_"),    FR_SV("random_states_"), FR_SV("rank")};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        size_t at = fr_sv_find(name, words[i]);
        for (*n = 0; at != FR_NPOS && at + words[i].n + *n < name.n &&
                     name.p[at + words[i].n + *n] >= '0' && name.p[at + words[i].n + *n] <= '9';) {
            ++*n;
        }
        if (at != FR_NPOS && *n > 0) {
            return at + words[i].n;
        }
    }
    return FR_NPOS;
}

enum { LOOK_BACK = 64 };

/* Whether the file of the same name for rank r is there. */
static bool has_rank(struct fr_ckpt *c, fr_sv path, fr_sv name, size_t at, size_t digits, int64_t r)
{
    char other[300];
    int n = snprintf(other, sizeof other, "%.*s%0*lld%.*s", (int)at, name.p,
                     name.p[at] == '0' ? (int)digits : 1, (long long)r, (int)(name.n - at - digits),
                     name.p + at + digits);
    return fr_ckpt_sibling(c, path, (fr_sv){other, (size_t)n}) != FR_NO_FILE;
}

/* A file of rank 3 wants those of ranks 0 to 2; told by the first one that follows a gap. */
static void check_rank(struct fr_ckpt *c, uint32_t file)
{
    size_t digits = 0;
    fr_sv path = c->files.v[file].path, name = fr_path_name(path);
    size_t at = rank_digits(name, &digits);
    int64_t rank, r;
    fr_sv number = at == FR_NPOS ? FR_SV_NONE : fr_sv_skip(name, at);
    if (at == FR_NPOS || digits > 6 || name.n > 255 || !fr_sv_take_i64(&number, &rank) ||
        rank == 0) {
        return;
    }
    if (!fr_sv_has(name, FR_SV("zero_pp_rank_")) && !has_rank(c, path, name, at, digits, 0)) {
        return; /* not a series of processes: lora_rank16.pt */
    }
    for (r = rank - 1; r >= 0 && r >= rank - LOOK_BACK && fr_ckpt_work(c, 20); r--) {
        if (has_rank(c, path, name, at, digits, r)) {
            break;
        }
    }
    /* Training goes on without the state of random numbers: not on the same ones. */
    const bool fatal = !fr_sv_has(name, FR_SV("rng_state_")) &&
                       !fr_sv_has(name, FR_SV("random_states_"));
    if (r < rank - 1 && !c->full_work && !c->nomem) {
        if (r == rank - 2) {
            fr_ckpt_say(c, FR_PROBLEM_RANK, fatal, file, FR_NO_POS, FR_SV_NONE,
                        "rank %lld left no file like this one", (long long)rank - 1);
            return;
        }
        fr_ckpt_say(c, FR_PROBLEM_RANK, fatal, file, FR_NO_POS, FR_SV_NONE,
                    "ranks %lld to %lld left no file like this one", (long long)r + 1,
                    (long long)rank - 1);
    }
}

/* ---- Megatron's metadata.json, HF Trainer's state ---- */

static bool valid_json(struct fr_ckpt *c, uint32_t file, bool fatal)
{
    FR_AUTO(fr_blob) b = FR_BLOB_INIT;
    struct fr_err err = {0};
    char *text = NULL;
    if (!c->files.v[file].complete) {
        return false; /* that it cannot be opened was told */
    }
    int rc = fr_blob_open(&b, c->files.v[file].path.p, &err);
    rc = rc == 0 && b.size > c->limits.header_bytes ? fr_err_set(&err, FR_LIMIT, "too large") : rc;
    rc = rc == 0 ? fr_blob_load(&b, 0, (size_t)b.size, &text, &err) : rc;
    if (rc != 0) {
        fr_ckpt_say_err(c, FR_PROBLEM_UNREADABLE, true, file, rc, &err);
        return false;
    }
    struct fr_js j = fr_js_of(text, (size_t)b.size);
    bool good = fr_js_skip(&j) && fr_js_end(&j);
    if (!good) {
        fr_ckpt_say(c, FR_PROBLEM_HEADER, fatal, file, j.at, FR_SV_NONE,
                    "malformed JSON at byte %zu: %s", j.at,
                    j.why != NULL ? j.why : "something follows its end");
    }
    fr_free(text);
    return good;
}

/* What HF Trainer saves beside trainer_state.json: a model, an optimizer, a scheduler. Only a folder
 * that has the others and not the one lacks it: weights alone are saved on purpose. */
static void check_trainer(struct fr_ckpt *c, uint32_t step, uint32_t file)
{
    const fr_sv path = c->files.v[file].path, folder = fr_path_folder(path);
    const bool scheduler = fr_ckpt_sibling(c, path, FR_SV("scheduler.pt")) != FR_NO_FILE;
    bool model = false, optimizer = false;
    for (uint32_t i = fr_ckpt_first(c, step); i != FR_NO_FILE; i = c->notes.v[i].next) {
        const fr_sv name = fr_path_name(c->files.v[i].path), format = c->files.v[i].format;
        const bool state = fr_sv_has(name, FR_SV("optim"));
        if (!fr_ckpt_work(c, 1)) {
            return;
        }
        optimizer |= state || fr_sv_eq(format, FR_SV("distcp"));
        model |= !state && !fr_sv_starts(name, FR_SV("rng_state")) &&
                 !fr_sv_eq(name, FR_SV("scheduler.pt")) && !fr_sv_eq(name, FR_SV("scaler.pt")) &&
                 !fr_sv_eq(name, FR_SV("training_args.bin")) && !fr_sv_eq(format, FR_SV("other")) &&
                 !fr_sv_eq(format, FR_SV("config"));
    }
    if (optimizer && !model) {
        fr_ckpt_say_step(c, FR_PROBLEM_TRAINER, true, step, folder.n > 0 ? folder : FR_SV("."),
                         "holds the optimizer and the Trainer's state, but no model");
    } else if (scheduler && model && !optimizer) {
        fr_ckpt_say_step(c, FR_PROBLEM_TRAINER, false, step, folder.n > 0 ? folder : FR_SV("."),
                         "holds the scheduler, but not the optimizer it was saved with: the Trainer "
                         "resumes with a fresh one and does not say so");
    }
}

static void check_file(struct fr_ckpt *c, uint32_t step, uint32_t file)
{
    fr_sv path = c->files.v[file].path, name = fr_path_name(path);
    if (fr_sv_eq(name, FR_SV("latest")) ||
        fr_sv_eq(name, FR_SV("latest_checkpointed_iteration.txt"))) {
        check_marker(c, file);
    } else if (fr_sv_has(name, FR_SV("UNFINISHED")) || fr_sv_eq(name, FR_SV("INCOMPLETE"))) {
        fr_ckpt_say(c, FR_PROBLEM_UNFINISHED, true, file, FR_NO_POS, FR_SV_NONE,
                    "says that the save did not finish");
    } else if (fr_sv_eq(name, FR_SV("metadata.json")) || fr_sv_eq(name, FR_SV("config.json")) ||
               fr_sv_eq(name, FR_SV("model_index.json"))) {
        (void)valid_json(c, file, true); /* who loads the folder begins here */
    } else if (fr_sv_eq(name, FR_SV("trainer_state.json"))) {
        (void)valid_json(c, file, false);
        check_trainer(c, step, file);
    } else if (fr_sv_eq(name, FR_SV("common.pt")) &&
               fr_ckpt_sibling(c, path, FR_SV("metadata.json")) == FR_NO_FILE) {
        c->steps.v[step].layout = FR_SV("megatron");
        fr_ckpt_say(
            c, FR_PROBLEM_UNFINISHED, true, file, FR_NO_POS, FR_SV_NONE,
            "has no metadata.json beside it, which is written last: the save was interrupted");
    } else if (fr_sv_eq(name, FR_SV("optimizer.pt")) &&
               fr_sv_has(c->steps.v[step].path, FR_SV("checkpoint-")) &&
               fr_ckpt_sibling(c, path, FR_SV("trainer_state.json")) == FR_NO_FILE) {
        fr_ckpt_say(c, FR_PROBLEM_UNFINISHED, false, file, FR_NO_POS, FR_SV_NONE,
                    "has no trainer_state.json beside it: training cannot be resumed from here");
    } else if (fr_sv_eq(name, FR_SV(".zarray"))) {
        c->steps.v[step].layout = FR_SV("zarr");
        fr_ckpt_say(c, FR_PROBLEM_UNREADABLE, false, file, FR_NO_POS, FR_SV_NONE,
                    "zarr checkpoints (old Megatron) are not read: convert to torch_dist");
    } else if (c->files.v[file].rank > 0 && !fr_sv_eq(c->files.v[file].format, FR_SV("distcp"))) {
        check_rank(c, file);
    }
}

static void check(struct fr_ckpt *c, uint32_t step)
{
    for (uint32_t i = fr_ckpt_first(c, step); i != FR_NO_FILE && !c->nomem;
         i = c->notes.v[i].next) {
        check_file(c, step, i);
    }
    check_beyond(c, step, "latest");
    check_beyond(c, step, "latest_checkpointed_iteration.txt");
    check_pointer(c, step);
}

const struct fr_ckpt_layout fr_ckpt_layout_markers = {
    .name = "markers",
    .summary = "markers of finished and unfinished saves, files of ranks",
    .check = check,
};
