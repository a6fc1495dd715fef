/* SPDX-License-Identifier: Apache-2.0 */
/* trace_build: see trace_build.h. Library or user: by the installed-packages folder in the path,
 * since that is what separates "your line" from "their line" on every system. */
#include "format/trace_build.h"

#include "base/buf.h"
#include "base/err.h"
#include "format/lex.h"

/* Who speaks in a traceback: whoever is named in its header, or in the logger's line above a header that names nobody. */
static const struct fr_who *speaker(const struct fr_record *header)
{
    const struct fr_who *w = &header->who;
    bool nobody = w->rank < 0 && w->local_rank < 0 && w->task < 0 && w->pid < 0 && w->node.n == 0 && w->role.n == 0;
    return nobody && header->teller != NULL ? &header->teller->who : w;
}

void fr_trace_build_begin(struct fr_trace_build *b, const struct fr_record *header, uint8_t kind)
{
    *b = (struct fr_trace_build){.arena = FR_ARENA_INIT(FR_TRACE_BYTES),
                                 .kind = kind,
                                 .n_links = 1,
                                 .hash = 14695981039346656037u};
    const struct fr_who *who = speaker(header);
    b->who = *who;
    b->who.node = fr_arena_dup(&b->arena, who->node);
    b->who.role = fr_arena_dup(&b->arena, who->role);
    b->when = header->when.basis == FR_TIME_BASIS_NONE && who != &header->who ? header->teller->when : header->when;
    b->outer = header->outer;
    b->mild = header->above == FR_LEVEL_WARN;
    b->in_thread = header->in_thread;
    b->offset = b->exc_offset = header->offset;
    b->line = b->exc_line = header->lineno;
}

void fr_trace_build_release(struct fr_trace_build *b)
{
    fr_arena_release(&b->arena);
}

struct fr_trace_link *fr_trace_build_link(struct fr_trace_build *b)
{
    return b->n_links > 1 ? &b->last : &b->first;
}

void fr_trace_build_next(struct fr_trace_build *b)
{
    b->n_links++;
    b->chained = true;
    b->has_outer = false;
    b->last = (struct fr_trace_link){0};
}

void fr_trace_build_inner(struct fr_trace_build *b)
{
    struct fr_trace_link *link = fr_trace_build_link(b);
    if (!b->has_outer) {
        b->outer_type = link->type;
        b->outer_message = link->message;
    }
    b->has_outer = true;
    b->chained = true;
    b->n_links = 1;
    b->first = (struct fr_trace_link){0};
    b->last = (struct fr_trace_link){0};
}

static fr_sv base_name(fr_sv path)
{
    for (size_t i = path.n; i > 0; i--) {
        if (path.p[i - 1] == '/' || path.p[i - 1] == '\\') {
            return fr_sv_skip(path, i);
        }
    }
    return path;
}

static void hash_more(uint64_t *hash, fr_sv s)
{
    for (size_t i = 0; i < s.n; i++) {
        *hash = (*hash ^ (unsigned char)s.p[i]) * 1099511628211u;
    }
    *hash = (*hash ^ 0xff) * 1099511628211u;
}

void fr_trace_build_frame(struct fr_trace_build *b, const struct fr_line_parts *p)
{
    struct fr_trace_link *link = fr_trace_build_link(b);
    bool newest_first = b->kind != FR_TRACE_PYTHON;
    b->n_frames++;
    hash_more(&b->hash, base_name(p->file));
    hash_more(&b->hash, p->func);
    if (link->n == FR_TRACE_FRAMES) {
        if (newest_first) {
            return; /* what follows is further out */
        }
        memmove(link->frames, link->frames + 1, sizeof link->frames - sizeof *link->frames);
        link->n--;
    }
    struct fr_frame f = {fr_arena_dup(&b->arena, fr_sv_head(p->file, 512)),
                         fr_arena_dup(&b->arena, fr_sv_head(p->func, 256)), p->line};
    if (f.file.p == NULL || f.func.p == NULL) {
        b->truncated = true;
        return;
    }
    link->frames[link->n++] = f;
}

void fr_trace_build_exception(struct fr_trace_build *b, const struct fr_line_parts *p,
                              const struct fr_record *rec)
{
    struct fr_trace_link *link = fr_trace_build_link(b);
    link->type = fr_arena_dup(&b->arena, fr_sv_head(p->type, 200));
    link->message = fr_arena_dup(&b->arena, fr_sv_head(p->message, FR_TRACE_MESSAGE));
    link->text = fr_arena_dup(&b->arena, fr_sv_head(rec->text, FR_EVENT_TEXT_MAX));
    link->line = rec->lineno;
    link->offset = rec->offset;
    if (!b->has_outer) {
        b->exc_offset = rec->offset;
        b->exc_line = rec->lineno;
        b->exc_text = fr_arena_dup(&b->arena, fr_sv_head(rec->text, FR_EVENT_TEXT_MAX));
    }
}

void fr_trace_build_more(struct fr_trace_build *b, fr_sv text)
{
    struct fr_trace_link *link = fr_trace_build_link(b);
    text = fr_sv_trim(text);
    if (link->message.n >= FR_TRACE_MESSAGE || text.n == 0) {
        return;
    }
    text = fr_sv_head(text, FR_TRACE_MESSAGE - link->message.n);
    fr_sv joined =
        link->message.n == 0
            ? fr_arena_dup(&b->arena, text)
            : fr_arena_printf(&b->arena, "%.*s\n%.*s", FR_SV_ARG(link->message), FR_SV_ARG(text));
    if (joined.p == NULL) {
        b->truncated = true;
        return;
    }
    link->message = joined;
}

/* "torch" of ".../site-packages/torch/x.py"; "python" for the standard library; empty for user
 * code. */
static fr_sv library_of(fr_sv file)
{
    fr_sv rest, name;
    if (fr_lex_find(file, "site-packages", &rest) || fr_lex_find(file, "dist-packages", &rest)) {
        rest = fr_sv_skip(rest, 1);
        size_t end = 0;
        while (end < rest.n && rest.p[end] != '/' && rest.p[end] != '\\') {
            end++;
        }
        name = fr_sv_head(rest, end);
        return fr_sv_ends(name, FR_SV(".py")) ? fr_sv_head(name, name.n - 3) : name;
    }
    if (fr_sv_starts(file, FR_SV("<frozen")) || fr_lex_find(file, "/lib/python", &rest) ||
        fr_lex_find(file, "/lib64/python", &rest) || fr_sv_has(file, FR_SV("\\lib\\"))) {
        return FR_SV("python");
    }
    if (fr_sv_has(file, FR_SV("/bin/")) && !fr_sv_ends(file, FR_SV(".py"))) {
        return base_name(file); /* an installed launcher: torchrun, accelerate, vllm */
    }
    return FR_SV_NONE;
}

/* Innermost last. */
static const struct fr_frame *frame_at(const struct fr_trace_build *b,
                                       const struct fr_trace_link *link, uint32_t i)
{
    return &link->frames[b->kind == FR_TRACE_PYTHON ? i : link->n - 1 - i];
}

static fr_sv render_frames(const struct fr_trace_build *b, const struct fr_trace_link *link,
                           struct fr_arena *out)
{
    enum { LIMIT = 512 };
    FR_AUTO(fr_buf) text = FR_BUF_INIT(4 * LIMIT);
    uint32_t from = link->n;
    size_t bytes = 0;
    while (from > 0) {
        const struct fr_frame *f = frame_at(b, link, from - 1);
        size_t need = fr_sv_head(f->func, 80).n + fr_sv_head(base_name(f->file), 80).n + 18;
        if (bytes + need > LIMIT) {
            break;
        }
        bytes += need;
        from--;
    }
    for (uint32_t i = from; i < link->n; i++) {
        const struct fr_frame *f = frame_at(b, link, i);
        fr_sv file = fr_sv_head(base_name(f->file), 80), func = fr_sv_head(f->func, 80);
        fr_buf_addz(&text, i > from ? " > " : "");
        if (f->line >= 0) {
            fr_buf_printf(&text, "%.*s (%.*s:%d)", FR_SV_ARG(func), FR_SV_ARG(file), (int)f->line);
        } else {
            fr_buf_printf(&text, "%.*s (%.*s)", FR_SV_ARG(func), FR_SV_ARG(file));
        }
    }
    return fr_arena_dup(out, fr_sv_head(fr_buf_sv(&text), LIMIT));
}

static void choose_place(const struct fr_trace_build *b, const struct fr_trace_link *link,
                         struct fr_arena *out, struct fr_trace *t)
{
    if (link->n == 0) {
        t->line = -1;
        return;
    }
    const struct fr_frame *inner = frame_at(b, link, link->n - 1), *place = inner;
    if (b->kind != FR_TRACE_CPP) {
        for (uint32_t i = link->n; i > 0; i--) {
            const struct fr_frame *f = frame_at(b, link, i - 1);
            if (library_of(f->file).n == 0) {
                place = f;
                break;
            }
        }
    }
    if (b->kind == FR_TRACE_CPP) { /* the source line where it was raised, else the first frame
                                      behind the error's own constructor */
        for (uint32_t i = link->n;
             i > 0 && place->line < 0 && fr_sv_starts(place->func, FR_SV("c10::")); i--) {
            place = frame_at(b, link, i - 1);
        }
        for (uint32_t i = link->n;
             i > 0 && (inner->line >= 0 || fr_sv_starts(inner->func, FR_SV("c10::Error"))); i--) {
            inner = frame_at(b, link, i - 1);
        }
    }
    t->file = fr_arena_dup(out, place->file);
    t->func = fr_arena_dup(out, place->func);
    t->line = place->line;
    t->library = fr_arena_dup(out, b->kind == FR_TRACE_CPP ? base_name(inner->file)
                                                           : library_of(inner->file));
    t->frames = render_frames(b, link, out);
}

int fr_trace_build_finish(struct fr_trace_build *b, struct fr_arena *out, struct fr_trace_done *ret)
{
    const struct fr_trace_link *end = b->n_links > 1 && b->last.type.n > 0 ? &b->last : &b->first;
    const struct fr_trace_link *place = b->first.n > 0 ? &b->first : end;
    fr_sv type = b->has_outer ? b->outer_type : end->type,
          message = b->has_outer ? b->outer_message : end->message;
    bool has_origin = b->chained && b->first.type.n > 0;
    *ret = (struct fr_trace_done){.who = b->who,
                                  .when = b->when,
                                  .outer = b->outer,
                                  .offset = b->offset,
                                  .line = b->line,
                                  .exc_offset = b->exc_offset,
                                  .exc_line = b->exc_line,
                                  .ignored = b->ignored};
    ret->who.node = fr_arena_dup(out, b->who.node);
    ret->who.role = fr_arena_dup(out, b->who.role);
    ret->exc_text = fr_arena_dup(out, b->exc_text);
    struct fr_trace *t = &ret->trace;
    t->exception = fr_arena_dup(out, type);
    t->message = fr_arena_dup(out, fr_sv_head(message, FR_TRACE_MESSAGE));
    if (has_origin && !(fr_sv_eq(b->first.type, type) && fr_sv_eq(b->first.message, message))) {
        t->origin_exception = fr_arena_dup(out, b->first.type);
        t->origin_message = fr_arena_dup(out, fr_sv_head(b->first.message, FR_TRACE_MESSAGE));
        t->origin_text = fr_arena_dup(out, b->first.text);
        t->origin_line = b->first.line;
        t->origin_offset = b->first.offset;
    }
    choose_place(b, place, out, t);
    t->kind = b->kind;
    t->chained = b->chained;
    t->mild = b->mild;
    t->in_thread = b->in_thread;
    t->truncated = b->truncated || type.n == 0;
    t->first_line = b->line;
    t->last_line = b->exc_line;
    t->frames_hash = b->n_frames > 0 ? b->hash : 0;
    return t->exception.p == NULL || t->message.p == NULL ? -FR_NOMEM : 1;
}
