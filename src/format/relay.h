/* SPDX-License-Identifier: Apache-2.0 */
/* relay: what a program puts in front of every line that it passes on for another one: its own level, and maybe a fixed text ("INFO -
 * [base] ", "INFO stdout: ", "Task run 'fit-0' - "). No single line proves it; it is learned from the head of a source. */
#ifndef FR_FORMAT_RELAY_H
#define FR_FORMAT_RELAY_H

#include "format/format.h"

enum { FR_RELAY_BYTES = 48 };

struct fr_relay {
    uint8_t level; /* says nothing about the lines that bear it; FR_LEVEL_NONE: there is none such */
    uint8_t n;     /* bytes of the text behind all known prefixes */
    char text[FR_RELAY_BYTES];
};

/* Learns from whole lines, best the first tens of KiB of a source. False: its program speaks for itself, and *ret is empty.
 * ctx->own and ctx->relay are not looked at; its scratch is used. */
bool fr_relay_learn(const struct fr_peel_ctx *ctx, fr_sv head, struct fr_relay *ret);

#endif
