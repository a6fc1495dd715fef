/* SPDX-License-Identifier: Apache-2.0 */
/* What paths of checkpoints say, before a file is opened: steps, ranks, leftovers. The conventions
 * are those of HF Trainer (checkpoint-N), DeepSpeed (global_stepN), Megatron (iter_N, release),
 * Lightning (epoch=E-step=S.ckpt), torchtitan (step-N), accelerate (checkpoint_N). */
#include "tensor/folder.h"

#include <ctype.h>
#include <stdlib.h>
#include <strings.h>

static bool is_letter(char c) { return isalpha((unsigned char)c) != 0; }
static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* "<word>[-_=.]?<digits>" with nothing but the word's own letters around it. */
static bool word_number(fr_sv name, const char *word, int64_t *ret)
{
    size_t n = strlen(word);
    for (size_t i = 0; i + n < name.n; i++) {
        if (strncasecmp(name.p + i, word, n) != 0 || (i > 0 && is_letter(name.p[i - 1]))) {
            continue;
        }
        fr_sv rest = fr_sv_skip(name, i + n);
        if (rest.n > 1 && strchr("-_=.", rest.p[0]) != NULL) {
            rest = fr_sv_skip(rest, 1);
        }
        if (fr_sv_take_i64(&rest, ret) && *ret >= 0 && (rest.n == 0 || !is_letter(rest.p[0]))) {
            return true;
        }
    }
    return false;
}

bool fr_step_number(fr_sv name, int64_t *ret)
{
    static const char *const words[] = {"step",       "steps", "iter",  "iteration",
                                        "checkpoint", "ckpt",  "epoch", NULL};
    for (int i = 0; words[i] != NULL; i++) {
        if (word_number(name, words[i], ret)) {
            return true;
        }
    }
    return false;
}

/* "<word><digits>"; the word does not go on to the left: "lowrank8" is no rank. */
static bool rank_after(fr_sv name, fr_sv word, int32_t *ret)
{
    size_t i = fr_sv_find(name, word);
    int64_t v;
    fr_sv rest = i == FR_NPOS || (i > 0 && is_letter(name.p[i - 1]) && is_letter(word.p[0]))
                     ? FR_SV_NONE
                     : fr_sv_skip(name, i + word.n);
    if (rest.n == 0 || !is_digit(rest.p[0]) || !fr_sv_take_i64(&rest, &v) || v > INT32_MAX) {
        return false;
    }
    *ret = (int32_t)v;
    return true;
}

int32_t fr_rank_of(fr_sv path)
{
    fr_sv name = fr_path_name(path), up = fr_path_name(fr_path_folder(path));
    int32_t rank;
    if (fr_sv_ends(name, FR_SV(".distcp"))) {
        return fr_sv_starts(name, FR_SV("__")) && rank_after(name, FR_SV("__"), &rank) ? rank : -1;
    }
    bool is_lora = fr_sv_ends(
        name, FR_SV(".safetensors")); /* "lora_rank_16.safetensors" is of no process */
    if (rank_after(name, FR_SV("zero_pp_rank_"), &rank) ||
        rank_after(name, FR_SV("mp_rank_"), &rank) ||
        (!is_lora &&
         (rank_after(name, FR_SV("rank_"), &rank) || rank_after(name, FR_SV("rank"), &rank))) ||
        rank_after(name, FR_SV("rng_state_"), &rank) ||
        rank_after(name, FR_SV("random_states_"), &rank)) {
        return rank;
    }
    return rank_after(up, FR_SV("mp_rank_"), &rank) || rank_after(up, FR_SV("rank_"), &rank) ? rank
                                                                                             : -1;
}

static bool any(fr_sv s, bool (*test)(fr_sv, fr_sv), const fr_sv *words, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (test(s, words[i])) {
            return true;
        }
    }
    return false;
}

bool fr_is_leftover(fr_sv name)
{
    static const fr_sv ends[] = {FR_SV(".tmp"),       FR_SV(".temp"),    FR_SV(".incomplete"),
                                 FR_SV(".part"),      FR_SV(".partial"), FR_SV(".writing"),
                                 FR_SV("-tmp"),       FR_SV("_tmp"),     FR_SV(".lock.tmp"),
                                 FR_SV(".unfinished")};
    static const fr_sv starts[] = {FR_SV(".tmp-"), FR_SV(".tmp_"), FR_SV(".tmp."),
                                   FR_SV("tmp_"),  FR_SV("tmp-"),  FR_SV(".incomplete-"),
                                   FR_SV("tmp.")};
    return any(name, fr_sv_ends, ends, sizeof ends / sizeof ends[0]) ||
           any(name, fr_sv_starts, starts, sizeof starts / sizeof starts[0]) ||
           fr_sv_has(name, FR_SV(".part.")) || fr_sv_has(name, FR_SV(".tmp.")) ||
           fr_sv_has(name, FR_SV(".orbax-checkpoint-tmp-"));
}

bool fr_is_part(fr_sv name)
{
    static const fr_sv ends[] = {FR_SV(".safetensors"), FR_SV(".pt"),     FR_SV(".pth"),
                                 FR_SV(".bin"),         FR_SV(".ckpt"),   FR_SV(".npy"),
                                 FR_SV(".npz"),         FR_SV(".distcp"), FR_SV(".index.json"),
                                 FR_SV(".gguf"),        FR_SV(".h5"),     FR_SV(".msgpack"),
                                 FR_SV(".onnx")};
    static const fr_sv whole[] = {FR_SV(".metadata"),
                                  FR_SV("config.json"),
                                  FR_SV("metadata.json"),
                                  FR_SV("latest"),
                                  FR_SV("model_index.json"),
                                  FR_SV("latest_checkpointed_iteration.txt"),
                                  FR_SV("trainer_state.json"),
                                  FR_SV("UNFINISHED"),
                                  FR_SV(".zarray"),
                                  FR_SV("_UNFINISHED"),
                                  FR_SV("INCOMPLETE")};
    for (size_t i = 0; i < sizeof whole / sizeof whole[0]; i++) {
        if (fr_sv_eq(name, whole[i])) {
            return true;
        }
    }
    return any(name, fr_sv_ends, ends, sizeof ends / sizeof ends[0]) || fr_is_leftover(name);
}

/* ---- which step a file belongs to ---- */

/* Folders that are parts of the checkpoint around them. */
static bool is_part_folder(fr_sv name)
{
    static const fr_sv starts[] = {FR_SV("mp_rank_"),           FR_SV("tp_rank_"),
                                   FR_SV("pytorch_model_fsdp"), FR_SV("optimizer"),
                                   FR_SV("model_weights"),      FR_SV("weights")};
    static const fr_sv whole[] = {FR_SV("unet"),          FR_SV("vae"),
                                  FR_SV("text_encoder"),  FR_SV("text_encoder_2"),
                                  FR_SV("transformer"),   FR_SV("safety_checker"),
                                  FR_SV("image_encoder"), FR_SV("checkpoint")};
    for (size_t i = 0; i < sizeof whole / sizeof whole[0]; i++) {
        if (fr_sv_eq(name, whole[i])) {
            return true;
        }
    }
    return any(name, fr_sv_starts, starts, sizeof starts / sizeof starts[0]);
}

static bool is_step_name(fr_sv name, int64_t *step)
{
    *step = -1;
    return fr_step_number(name, step) || fr_sv_eq(name, FR_SV("release"));
}

/* The outermost folder below the argument that is named after a step: its end in the path, 0 when
 * there is none. */
static size_t step_folder(const struct fr_found *f, int64_t *step)
{
    fr_sv folder = fr_path_folder(f->path);
    size_t at = f->root;
    while (at < folder.n) {
        size_t from = at + (folder.p[at] == '/'), to = from;
        while (to < folder.n && folder.p[to] != '/') {
            to++;
        }
        if (is_step_name(fr_sv_range(folder.p + from, folder.p + to), step)) {
            return to;
        }
        at = to > at ? to : at + 1;
    }
    return 0;
}

/* Whether all files below the argument are one step, named by the argument itself. */
static bool argument_is_step(const struct fr_found_list *all, const struct fr_found *f,
                             int64_t *step)
{
    fr_sv root = fr_sv_head(f->path, f->root), seen = FR_SV_NONE;
    int64_t own, other;
    if (!is_step_name(fr_path_name(root), &own)) {
        return false;
    }
    for (uint32_t i = 0; i < all->list.n; i++) {
        const struct fr_found *g = &all->list.v[i];
        size_t end = g->root == f->root && fr_sv_eq(fr_sv_head(g->path, g->root), root)
                         ? step_folder(g, &other)
                         : 0;
        fr_sv inner = fr_sv_head(g->path, end);
        if (end > 0 && seen.n > 0 && !fr_sv_eq(inner, seen)) {
            return false;
        }
        seen = end > 0 ? inner : seen;
    }
    *step = own;
    return true;
}

static bool is_weights(fr_sv name)
{
    static const fr_sv ends[] = {FR_SV(".safetensors"), FR_SV(".pt"),  FR_SV(".pth"), FR_SV(".bin"),
                                 FR_SV(".ckpt"),        FR_SV(".npy"), FR_SV(".npz")};
    return any(name, fr_sv_ends, ends, sizeof ends / sizeof ends[0]);
}

struct place {
    fr_sv path; /* the step's */
    int64_t step;
    bool alone; /* a file that is a step */
};

/* No folder is named after a step: the file's own name, or its folder less the parts. */
static struct place place_plain(const struct fr_found *f)
{
    fr_sv name = fr_path_name(f->path), folder = fr_path_folder(f->path);
    int64_t step = -1;
    bool is_shard = fr_sv_has(name, FR_SV("-of-")) || fr_rank_of(f->path) >= 0;
    if (is_weights(name) && !is_shard && fr_step_number(name, &step)) {
        return (struct place){f->path, step, true};
    }
    if (f->root == f->path.n && !fr_sv_has(name, FR_SV("-of-"))) {
        return (struct place){f->path, -1, true};
    }
    while (folder.n > f->root && is_part_folder(fr_path_name(folder))) {
        folder = fr_path_folder(folder);
    }
    return (struct place){folder.n == 0 ? FR_SV(".") : folder, -1, false};
}

/* The folders around a new step, up to the argument's. */
static void note_folders(struct fr_ckpt *c, fr_sv path, uint32_t step)
{
    for (int i = 0; i < 40 && !c->nomem; i++) {
        fr_sv up = fr_path_folder(path);
        if (up.n == 0 || up.n >= path.n) {
            break;
        }
        c->nomem = !fr_map_put(&c->by_folder, up, step);
        path = up;
    }
    c->nomem = c->nomem || !fr_map_put(&c->by_folder, FR_SV("."), step);
}

static uint32_t step_of(struct fr_ckpt *c, const struct place *p)
{
    bool is_new = false;
    uint32_t *slot = fr_map_slot(&c->by_step, p->path, &is_new);
    if (slot == NULL) {
        c->nomem = true;
        return 0;
    }
    if (is_new) {
        *slot = c->steps.n;
        struct fr_ckpt_step *s = FR_PUSH(&c->steps);
        if (s == NULL) {
            c->nomem = true;
            return 0;
        }
        note_folders(c, p->path, *slot);
        *s = (struct fr_ckpt_step){.path = fr_ckpt_dup(c, p->path),
                                   .step = p->step,
                                   .layout = FR_SV("unknown"),
                                   .complete = true};
    }
    return *slot;
}

/* Files that speak of the checkpoints beside them and are none. */
static bool is_marker(fr_sv name)
{
    static const fr_sv whole[] = {FR_SV("config.json"),
                                  FR_SV("latest"),
                                  FR_SV("latest_checkpointed_iteration.txt"),
                                  FR_SV("model_index.json"),
                                  FR_SV("trainer_state.json"),
                                  FR_SV("metadata.json")};
    for (size_t i = 0; i < sizeof whole / sizeof whole[0]; i++) {
        if (fr_sv_eq(name, whole[i])) {
            return true;
        }
    }
    return false;
}

/* What of the argument decides for all files below it; kept from one file to the next. */
struct root {
    const char *p;
    uint32_t n;
    bool whole; /* all is one step */
    int64_t step;
};

static struct place place_of(const struct fr_found_list *found, const struct fr_found *f,
                             struct root *r)
{
    struct place p = {.step = -1};
    if (f->root == f->path.n) {
        return place_plain(f);
    }
    if (r->p == NULL || r->n != f->root || memcmp(r->p, f->path.p, f->root) != 0) {
        *r = (struct root){.p = f->path.p, .n = f->root, .step = -1};
        r->whole = argument_is_step(found, f, &r->step);
    }
    if (r->whole) {
        return (struct place){fr_sv_head(f->path, f->root), r->step, false};
    }
    size_t end = step_folder(f, &p.step);
    if (end == 0) {
        return place_plain(f);
    }
    p.path = fr_sv_head(f->path, end);
    return p;
}

/* A marker joins the last step inside its folder, when the folder is no step itself. */
static void join_inner(const struct fr_ckpt *c, struct place *p)
{
    uint32_t known;
    if (!fr_map_get(&c->by_step, p->path, &known) && fr_map_get(&c->by_folder, p->path, &known)) {
        p->path = c->steps.v[known].path;
    }
}

/* Lists of the files of each step. */
static void link_files(struct fr_ckpt *c)
{
    c->first_of_step = FR_NEW_N(c->arena, uint32_t, c->steps.n);
    if (c->first_of_step == NULL) {
        c->nomem = true;
        return;
    }
    for (uint32_t i = 0; i < c->steps.n; i++) {
        c->first_of_step[i] = FR_NO_FILE;
    }
    for (uint32_t i = c->files.n; i-- > 0;) {
        uint32_t *first = &c->first_of_step[c->files.v[i].step_index];
        c->notes.v[i].next = *first;
        *first = i;
    }
}

void fr_steps_make(struct fr_ckpt *c, const struct fr_found_list *found)
{
    for (int markers = 0; markers < 2; markers++) {
        struct root r = {0};
        for (uint32_t i = 0; i < found->list.n && !c->nomem; i++) {
            const struct fr_found *f = &found->list.v[i];
            uint32_t file;
            if (is_marker(fr_path_name(f->path)) != (markers == 1) ||
                fr_ckpt_find(c, f->path) != FR_NO_FILE) {
                continue;
            }
            struct place p = place_of(found, f, &r);
            if (markers == 1 && f->root < f->path.n) {
                join_inner(c, &p);
            }
            uint32_t step = step_of(c, &p);
            if (!c->nomem &&
                (file = fr_ckpt_new_file(c, f->path, step, f->root == f->path.n)) != FR_NO_FILE) {
                c->files.v[file].rank = fr_rank_of(f->path);
                c->notes.v[file].root = f->root;
            }
        }
    }
    if (!c->nomem) {
        link_files(c);
    }
}
