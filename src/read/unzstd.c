/* SPDX-License-Identifier: Apache-2.0 */
/* zstd with libzstd itself: through libarchive the same bytes took a third longer. Frames may follow one another (logs that
 * were appended to, pzstd); a window over 128 MiB is refused, as the zstd tool does by default. */
#include "base/alloc.h"
#include "read/stream.h"

#include <zstd.h>

#define IN_BYTES ((size_t)128 << 10)

struct fr_unzstd {
    struct fr_stream s;
    struct fr_stream *under;
    struct fr_cost cost;
    ZSTD_DCtx *ctx;
    ZSTD_inBuffer in;
    bool in_frame; /* the input may not end here */
    char buf[IN_BYTES];
};

static int64_t unzstd_read(struct fr_stream *s, char *p, size_t n, struct fr_err *err)
{
    struct fr_unzstd *u = (struct fr_unzstd *)s;
    ZSTD_outBuffer out = {p, n, 0};
    bool drained = false;
    for (;;) {
        if (u->in.pos == u->in.size && drained) {
            int64_t got = u->under->ended ? 0 : u->under->read(u->under, u->buf, sizeof u->buf, err);
            if (got < 0) {
                return got;
            }
            if (got == 0) {
                s->ended = true;
                return u->in_frame ? fr_err_set(err, FR_SYNTAX, "cut short: the zstd data end early") : 0;
            }
            u->in = (ZSTD_inBuffer){u->buf, (size_t)got, 0};
            u->cost.in += (uint64_t)got;
        }
        if (u->in.pos < u->in.size || u->in_frame) {
            size_t rc = ZSTD_decompressStream(u->ctx, &out, &u->in);
            if (ZSTD_isError(rc)) {
                return fr_err_set(err, FR_SYNTAX, "damaged zstd data: %s", ZSTD_getErrorName(rc));
            }
            u->in_frame = rc != 0;
        }
        if (out.pos > 0) {
            u->cost.out += out.pos;
            int rc = fr_cost_check(&u->cost, err);
            return rc != 0 ? rc : (int64_t)out.pos;
        }
        drained = u->in.pos == u->in.size;
    }
}

int fr_unzstd_start(struct fr_unzstd **ret_u, struct fr_stream *under, const struct fr_cost *cost, struct fr_stream **ret,
                    struct fr_err *err)
{
    struct fr_unzstd *u = *ret_u;
    if (u == NULL) {
        u = fr_malloc(sizeof *u);
        if (u == NULL || (u->ctx = ZSTD_createDCtx()) == NULL) {
            fr_free(u);
            return fr_err_set(err, FR_NOMEM, "out of memory");
        }
        *ret_u = u;
    }
    (void)ZSTD_DCtx_reset(u->ctx, ZSTD_reset_session_only);
    u->s = (struct fr_stream){.read = unzstd_read};
    u->under = under;
    u->cost = *cost;
    u->in = (ZSTD_inBuffer){u->buf, 0, 0};
    u->in_frame = false;
    *ret = &u->s;
    return 0;
}

void fr_unzstd_free(struct fr_unzstd **u)
{
    if (*u != NULL) {
        ZSTD_freeDCtx((*u)->ctx);
        fr_free(*u);
        *u = NULL;
    }
}
