/* SPDX-License-Identifier: Apache-2.0 */
/* event: looking captured values up. */
#include "model/event.h"

static const char *const key_names[FR_KEY_COUNT_] = {
#define FR_X(name, text) text,
    FR_KEYS(FR_X)
#undef FR_X
};

const char *fr_key_name(enum fr_key k)
{
    return key_names[k];
}

enum fr_key fr_key_from(fr_sv name)
{
    for (int i = 0; i < FR_KEY_COUNT_; i++) {
        if (fr_sv_eq(name, fr_sv_z(key_names[i]))) {
            return (enum fr_key)i;
        }
    }
    return FR_KEY_OTHER;
}

const struct fr_cap *fr_event_cap(const struct fr_event *e, enum fr_key key)
{
    for (unsigned i = 0; i < e->n_caps; i++) {
        if (e->caps[i].key == key) {
            return &e->caps[i];
        }
    }
    return NULL;
}

int64_t fr_event_num(const struct fr_event *e, enum fr_key key, int64_t otherwise)
{
    const struct fr_cap *c = fr_event_cap(e, key);
    return c != NULL && c->is_num ? c->num : otherwise;
}

fr_sv fr_event_text(const struct fr_event *e, enum fr_key key)
{
    const struct fr_cap *c = fr_event_cap(e, key);
    return c != NULL ? c->text : FR_SV_NONE;
}
