/* SPDX-License-Identifier: Apache-2.0 */
/* user: rules for a library that is not built in. Keys and tables are made anew each time
 * (milliseconds); the Vectorscan databases are what takes long, so they alone are kept in a file
 * whose name and header say what it was made from. A file that is damaged, of another version or
 * cannot be written is as good as none. */
#include "match/rules.h"

#include "base/alloc.h"
#include "base/buf.h"

#include <errno.h>
#include <fcntl.h>
#include <hs/hs_runtime.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define CACHE_MAX (256u << 20)

struct cache_header {
    char magic[8];
    uint64_t key;    /* regexes and Vectorscan version */
    uint64_t sum;    /* of what follows: group_of, groups, the databases */
    uint64_t groups; /* their number */
    uint64_t size;   /* of the databases */
};
static const char magic[8] = {'f', 'r', 'r', 'u', 'l', 'e', 's', '3'};

static uint64_t mix(uint64_t key, fr_sv s)
{
    return (key ^ fr_sv_hash(s)) * 0x9e3779b97f4a7c15ull;
}

static uint64_t cache_key(const struct fr_library *lib)
{
    uint64_t key = mix(0, fr_sv_z(hs_version()));
    for (uint32_t i = 0; i < lib->n_signals; i++) {
        key = mix(
            key,
            fr_sv_z(lib->signals[i].regex)); /* the index counts too: patterns are numbered by it */
    }
    return key;
}

static bool read_all(int fd, void *to, size_t n)
{
    for (size_t at = 0; at < n;) {
        const ssize_t got = read(fd, (char *)to + at, n - at);
        if (got == 0 || (got < 0 && errno != EINTR)) {
            return false;
        }
        at += got > 0 ? (size_t)got : 0;
    }
    return true;
}

static bool write_all(int fd, const void *from, size_t n)
{
    for (size_t at = 0; at < n;) {
        const ssize_t put = write(fd, (const char *)from + at, n - at);
        if (put < 0 && errno != EINTR) {
            return false;
        }
        at += put > 0 ? (size_t)put : 0;
    }
    return true;
}

static uint64_t sum_of(const struct fr_rules *r)
{
    uint64_t sum =
        mix(0, (fr_sv){(const char *)r->group_of, r->library->n_signals * sizeof r->group_of[0]});
    sum = mix(sum, (fr_sv){(const char *)r->groups, r->n_groups * sizeof r->groups[0]});
    return mix(sum, (fr_sv){(const char *)r->databases, r->databases_size});
}

static bool is_whole(const struct fr_rules *r)
{
    for (uint32_t i = 0; i < r->library->n_signals; i++) {
        const bool has_regex = r->library->signals[i].regex != NULL;
        if (has_regex ? r->group_of[i] >= r->n_groups : r->group_of[i] != FR_GROUP_NONE) {
            return false;
        }
    }
    for (uint32_t i = 0; i < r->n_groups; i++) {
        if ((uint64_t)r->groups[i].at + r->groups[i].n > r->databases_size) {
            return false;
        }
    }
    return true;
}

/* The body after a good header, into *r. */
static bool read_body(int fd, const struct cache_header *head, struct fr_arena *arena,
                      struct fr_rules *r)
{
    const size_t n_signals = r->library->n_signals;
    uint16_t *group_of = FR_NEW_N(arena, uint16_t, n_signals + 1);
    struct fr_group *groups = FR_NEW_N(arena, struct fr_group, head->groups + 1);
    char *bytes = fr_arena_alloc(arena, head->size + 1);
    if (group_of == NULL || groups == NULL || bytes == NULL ||
        !read_all(fd, group_of, n_signals * sizeof group_of[0]) ||
        !read_all(fd, groups, head->groups * sizeof groups[0]) ||
        !read_all(fd, bytes, head->size)) {
        return false;
    }
    r->group_of = group_of;
    r->groups = groups;
    r->n_groups = (uint32_t)head->groups;
    r->databases = (const unsigned char *)bytes;
    r->databases_size = head->size;
    return true;
}

static bool cache_read(const char *path, uint64_t key, struct fr_arena *arena, struct fr_rules *r)
{
    struct cache_header head;
    struct fr_rules found = *r;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    const bool good = fd >= 0 && read_all(fd, &head, sizeof head) &&
                      memcmp(head.magic, magic, sizeof magic) == 0 && head.key == key &&
                      head.size <= CACHE_MAX && head.groups <= r->library->n_signals &&
                      read_body(fd, &head, arena, &found) && sum_of(&found) == head.sum &&
                      is_whole(&found);
    if (fd >= 0) {
        close(fd);
    }
    if (good) {
        *r = found;
    }
    return good;
}

/* Written beside and renamed, so that a reader sees a whole file or none. */
static void cache_write(const char *path, uint64_t key, const struct fr_rules *r,
                        struct fr_arena *arena)
{
    const size_t n_signals = r->library->n_signals;
    struct cache_header head = {
        .key = key, .sum = sum_of(r), .groups = r->n_groups, .size = r->databases_size};
    memcpy(head.magic, magic, sizeof magic);
    const fr_sv part = fr_arena_printf(arena, "%s.%ld", path, (long)getpid());
    const int fd = part.p == NULL
                       ? -1
                       : open(part.p, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        return;
    }
    const bool good = write_all(fd, &head, sizeof head) &&
                      write_all(fd, r->group_of, n_signals * sizeof r->group_of[0]) &&
                      write_all(fd, r->groups, r->n_groups * sizeof r->groups[0]) &&
                      write_all(fd, r->databases, r->databases_size);
    if (close(fd) != 0 || !good || rename(part.p, path) != 0) {
        unlink(part.p);
    }
}

static int get_regexes(const char *cache_dir, struct fr_arena *arena, struct fr_rules *r,
                       struct fr_err *err)
{
    const uint64_t key = cache_key(r->library);
    fr_sv path = FR_SV_NONE;
    if (cache_dir != NULL) {
        path = fr_arena_printf(arena, "%s/rules-%016llx.bin", cache_dir, (unsigned long long)key);
        if (path.p != NULL && cache_read(path.p, key, arena, r)) {
            return 0;
        }
    }
    const int rc = fr_rules_compile_regexes(r, arena, NULL, err);
    if (rc == 0 && path.p != NULL) {
        cache_write(path.p, key, r, arena);
    }
    return rc;
}

int fr_rules_compile(const struct fr_library *lib, struct fr_hooks hooks, const char *cache_dir,
                     struct fr_rules **ret, struct fr_err *err)
{
    struct fr_arena arena = FR_ARENA_INIT(0);
    struct fr_arena *own = FR_NEW(&arena, struct fr_arena);
    struct fr_rules *r = FR_NEW(&arena, struct fr_rules);
    struct fr_rules_state *state = FR_NEW(&arena, struct fr_rules_state);
    struct fr_rules built = {0};
    void **unpacked = FR_NEW_N(&arena, void *, lib->n_signals / FR_GROUP_SIZE + 2);
    int rc = own == NULL || r == NULL || state == NULL || unpacked == NULL
                 ? fr_err_set(err, FR_NOMEM, "out of memory")
                 : 0;
    rc = rc < 0 ? rc : fr_rules_build(lib, hooks, &arena, &built, err);
    rc = rc < 0 ? rc : get_regexes(cache_dir, &arena, &built, err);
    if (rc < 0) {
        fr_arena_release(&arena);
        return rc;
    }
    pthread_mutex_init(&state->lock, NULL);
    state->unpacked = unpacked;
    *r = built;
    r->state = state;
    r->arena = own;
    *own = arena;
    *ret = r;
    return 0;
}
