/* SPDX-License-Identifier: Apache-2.0 */
/* yaml: events instead of libyaml's document API, because only the event marks tell a duplicate
 * key's line and because limits must be checked before memory is spent, not after. */
#include "failure/yaml.h"

#include <yaml.h>

struct loader {
    yaml_parser_t parser;
    struct fr_arena *arena;
    struct fr_err *err;
    uint32_t nodes;
};

static int fail(struct loader *l, uint32_t line, const char *why)
{
    const int rc = fr_err_set(l->err, FR_SYNTAX, "%s", why);
    if (l->err != NULL) {
        l->err->pos = line;
    }
    return rc;
}

static int next_event(struct loader *l, yaml_event_t *event)
{
    if (!yaml_parser_parse(&l->parser, event)) {
        const char *why = l->parser.problem != NULL ? l->parser.problem : "not YAML";
        return fail(l, (uint32_t)l->parser.problem_mark.line + 1, why);
    }
    return 0;
}

static int new_node(struct loader *l, const yaml_event_t *event, struct fr_yaml **ret)
{
    const uint32_t line = (uint32_t)event->start_mark.line + 1;
    if (++l->nodes > FR_YAML_NODES) {
        return fail(l, line, "too many values in one file");
    }
    struct fr_yaml *node = FR_NEW(l->arena, struct fr_yaml);
    if (node == NULL) {
        return fr_err_set(l->err, FR_NOMEM, "out of memory");
    }
    node->line = line;
    *ret = node;
    return 0;
}

static int load(struct loader *l, yaml_event_t *event, int depth, struct fr_yaml **ret);

/* The children of a list or map whose start event was just read. */
static int load_children(struct loader *l, struct fr_yaml *parent, int depth)
{
    struct fr_yaml **at = &parent->first;
    for (;;) {
        yaml_event_t event;
        fr_sv key = FR_SV_NONE;
        int rc = next_event(l, &event);
        if (rc < 0) {
            return rc;
        }
        if (event.type == YAML_SEQUENCE_END_EVENT || event.type == YAML_MAPPING_END_EVENT) {
            yaml_event_delete(&event);
            return 0;
        }
        if (parent->kind == FR_YAML_MAP) {
            if (event.type != YAML_SCALAR_EVENT) {
                const uint32_t line = (uint32_t)event.start_mark.line + 1;
                yaml_event_delete(&event);
                return fail(l, line, "a key must be a plain word");
            }
            key = fr_arena_dup(
                l->arena, (fr_sv){(const char *)event.data.scalar.value, event.data.scalar.length});
            const uint32_t line = (uint32_t)event.start_mark.line + 1;
            yaml_event_delete(&event);
            if (key.p == NULL) {
                return fr_err_set(l->err, FR_NOMEM, "out of memory");
            }
            if (fr_yaml_get(parent, key.p) != NULL) {
                char why[128];
                snprintf(why, sizeof why, "key '%.60s' is given twice", key.p);
                return fail(l, line, why);
            }
            rc = next_event(l, &event);
            if (rc < 0) {
                return rc;
            }
        }
        rc = load(l, &event, depth + 1, at);
        if (rc < 0) {
            return rc;
        }
        (*at)->key = key;
        at = &(*at)->next;
        parent->n++;
    }
}

/* Takes the event over. */
static int load(struct loader *l, yaml_event_t *event, int depth, struct fr_yaml **ret)
{
    struct fr_yaml *node = NULL;
    const uint32_t line = (uint32_t)event->start_mark.line + 1;
    int rc = depth > FR_YAML_DEPTH ? fail(l, line, "nested too deeply") : new_node(l, event, &node);
    if (rc == 0 && event->type == YAML_SCALAR_EVENT) {
        const fr_sv text = {(const char *)event->data.scalar.value, event->data.scalar.length};
        node->kind = FR_YAML_SCALAR;
        if (event->data.scalar.anchor != NULL) {
            rc = fail(l, line, "anchors are not allowed");
        } else if (memchr(text.p, 0, text.n) != NULL) {
            rc = fail(l, line, "a NUL byte is not allowed");
        } else {
            node->text = fr_arena_dup(l->arena, text);
            rc = node->text.p == NULL ? fr_err_set(l->err, FR_NOMEM, "out of memory") : 0;
        }
        yaml_event_delete(event);
    } else if (rc == 0 && (event->type == YAML_SEQUENCE_START_EVENT ||
                           event->type == YAML_MAPPING_START_EVENT)) {
        const bool is_map = event->type == YAML_MAPPING_START_EVENT;
        const bool anchored =
            (is_map ? event->data.mapping_start.anchor : event->data.sequence_start.anchor) != NULL;
        node->kind = is_map ? FR_YAML_MAP : FR_YAML_LIST;
        yaml_event_delete(event);
        rc = anchored ? fail(l, line, "anchors are not allowed") : load_children(l, node, depth);
    } else {
        yaml_event_delete(event);
        if (rc == 0) {
            rc = fail(l, line, "aliases are not allowed");
        }
    }
    if (rc == 0) {
        *ret = node;
    }
    return rc;
}

int fr_yaml_parse(fr_sv text, struct fr_arena *arena, struct fr_yaml **ret, struct fr_err *err)
{
    struct loader l = {.arena = arena, .err = err};
    struct fr_yaml *root = NULL;
    if (!yaml_parser_initialize(&l.parser)) {
        return fr_err_set(err, FR_NOMEM, "out of memory");
    }
    yaml_parser_set_encoding(&l.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&l.parser, (const unsigned char *)(text.p ? text.p : ""), text.n);
    int rc = 0;
    bool end = false;
    while (rc == 0 && !end) {
        yaml_event_t event;
        rc = next_event(&l, &event);
        if (rc < 0) {
            break;
        }
        const yaml_event_type_t type = event.type;
        if (type == YAML_STREAM_START_EVENT || type == YAML_DOCUMENT_START_EVENT ||
            type == YAML_DOCUMENT_END_EVENT || type == YAML_STREAM_END_EVENT) {
            end = type == YAML_STREAM_END_EVENT;
            yaml_event_delete(&event);
        } else if (root != NULL) {
            const uint32_t line = (uint32_t)event.start_mark.line + 1;
            yaml_event_delete(&event);
            rc = fail(&l, line, "only one document is allowed");
        } else {
            rc = load(&l, &event, 0, &root);
        }
    }
    yaml_parser_delete(&l.parser);
    if (rc == 0 && root == NULL) {
        rc = fail(&l, 1, "empty");
    }
    if (rc == 0) {
        *ret = root;
    }
    return rc;
}

const struct fr_yaml *fr_yaml_get(const struct fr_yaml *map, const char *key)
{
    if (map == NULL || map->kind != FR_YAML_MAP) {
        return NULL;
    }
    const fr_sv want = fr_sv_z(key);
    for (const struct fr_yaml *c = map->first; c != NULL; c = c->next) {
        if (fr_sv_eq(c->key, want)) {
            return c;
        }
    }
    return NULL;
}
