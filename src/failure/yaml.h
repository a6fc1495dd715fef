/* SPDX-License-Identifier: Apache-2.0 */
/* yaml: a small tree over libyaml's events, with a line number on every node.
 * Nodes and texts live in the caller's arena. Bounded: FR_YAML_DEPTH levels, FR_YAML_NODES nodes;
 * anchors, aliases, tags and a second document are refused, so a file cannot expand into more than
 * it shows. */
#ifndef FR_FAILURE_YAML_H
#define FR_FAILURE_YAML_H

#include "base/arena.h"
#include "base/err.h"

#define FR_YAML_DEPTH 6
#define FR_YAML_NODES 20000

enum fr_yaml_kind { FR_YAML_SCALAR, FR_YAML_LIST, FR_YAML_MAP };

struct fr_yaml {
    uint8_t kind;                 /* enum fr_yaml_kind */
    uint32_t line;                /* from 1, in the text given */
    fr_sv key;                    /* of a map's child */
    fr_sv text;                   /* of a scalar; NUL-terminated */
    struct fr_yaml *first, *next; /* children, siblings */
    uint32_t n;                   /* number of children */
};

/* On a syntax error err->pos is the line it was found on. */
int fr_yaml_parse(fr_sv text, struct fr_arena *arena, struct fr_yaml **ret, struct fr_err *err);
const struct fr_yaml *fr_yaml_get(const struct fr_yaml *map, const char *key);

#endif
