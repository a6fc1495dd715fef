/* SPDX-License-Identifier: Apache-2.0 */
/* A failure file of any bytes: parsed, linted and rendered. What leaves for a terminal holds no
 * control characters. */
#include "base/utf8.h"
#include "failure/lint.h"
#include "failure/render.h"

#include <stdlib.h>

static void render(const struct fr_library *lib, int width, bool color)
{
    const struct fr_page_options options = {.width = width, .color = color};
    FR_AUTO(fr_buf) text = FR_BUF_INIT(16u << 20);
    FR_AUTO(fr_buf) md = FR_BUF_INIT(16u << 20);
    fr_page_text(lib, lib->failures, &options, &text);
    fr_page_markdown(lib, lib->failures, &md);
    for (size_t i = 0; i < text.n && !color; i++) {
        if ((unsigned char)text.p[i] < ' ' && text.p[i] != '\n' && text.p[i] != '\t') {
            abort();
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fr_arena arena = FR_ARENA_INIT(64u << 20);
    struct fr_complain complain = {0};
    struct fr_parsed p = {0};
    const int rc =
        fr_failure_parse((fr_sv){(const char *)data, size}, "memory/x.md", &arena, &complain, &p);
    if (rc == -FR_SYNTAX && complain.errors == 0) {
        abort(); /* an error nobody can see */
    }
    if (rc == 0) {
        const struct fr_library lib = {&p.failure, 1, p.signals, p.failure.n_signals};
        fr_library_lint(&lib, NULL, NULL, NULL, &complain);
        render(&lib, (int)(size % 130), false);
        render(&lib, 80, true);
    }
    fr_arena_release(&arena);
    return 0;
}
