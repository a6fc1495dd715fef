/* SPDX-License-Identifier: Apache-2.0 */
/* Kinds of content are told by looking, not by names: the first 64 KiB of every stream pass through here. What follows goes
 * straight from the stream below into the caller's buffer, so a large file pays for one 64 KiB copy. */
#include "base/alloc.h"
#include "read/stream.h"

static int64_t peek_read(struct fr_stream *s, char *p, size_t n, struct fr_err *err)
{
    struct fr_peek *k = (struct fr_peek *)s;
    if (k->at < k->n) {
        size_t have = k->n - k->at;
        size_t take = have < n ? have : n;
        memcpy(p, k->buf + k->at, take);
        k->at += take;
        s->ended = k->at == k->n && k->failed == 0 && k->under->ended;
        return (int64_t)take;
    }
    if (k->failed != 0) {
        if (err != NULL) {
            *err = k->err;
        }
        return k->failed;
    }
    if (k->under->ended) {
        s->ended = true;
        return 0;
    }
    int64_t got = k->under->read(k->under, p, n, err);
    s->ended = k->under->ended || got == 0;
    k->under->ended = s->ended;
    return got;
}

int fr_peek_start(struct fr_peek *k, struct fr_stream *under, struct fr_err *err)
{
    k->s = (struct fr_stream){.read = peek_read};
    k->under = under;
    k->at = k->n = 0;
    k->failed = 0;
    if (k->buf == NULL) {
        k->buf = fr_malloc(FR_PEEK_MAX);
        if (k->buf == NULL) {
            return fr_err_set(err, FR_NOMEM, "out of memory");
        }
    }
    while (k->n < FR_PEEK_MAX && !under->ended) {
        int64_t got = under->read(under, k->buf + k->n, FR_PEEK_MAX - k->n, &k->err);
        if (got < 0) {
            k->failed = (int)got;
            break;
        }
        if (got == 0) {
            under->ended = true;
            break;
        }
        k->n += (size_t)got;
    }
    if (k->failed == -FR_NOMEM) {
        return fr_err_set(err, FR_NOMEM, "out of memory");
    }
    k->s.ended = k->n == 0 && k->failed == 0 && under->ended;
    return 0;
}

void fr_peek_release(struct fr_peek *k)
{
    fr_free(k->buf);
    k->buf = NULL;
}

int fr_cost_check(const struct fr_cost *c, struct fr_err *err)
{
    const uint64_t free_bytes = (uint64_t)64 << 20, slack = (uint64_t)256 << 10; /* slack: input that sits in buffers */
    if (c->out > free_bytes && c->out / c->max_ratio > c->in + slack) {
        return fr_err_set(err, FR_LIMIT, "unpacks to more than %llu times its size: the rest is left unread",
                          (unsigned long long)c->max_ratio);
    }
    if (c->out > c->max_out) {
        return fr_err_set(err, FR_LIMIT, "unpacks to more than %llu bytes: the rest is left unread",
                          (unsigned long long)c->max_out);
    }
    return 0;
}
