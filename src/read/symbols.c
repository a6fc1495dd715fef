/* SPDX-License-Identifier: Apache-2.0 */
/* One table per library, filled once. A missing library or symbol makes the whole table absent: half a library is of no use. */
#include "read/symbols.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>

static struct fr_archive_lib archive_lib;
static struct fr_isal_lib isal_lib;
static bool have_archive, have_isal;
static pthread_once_t archive_once = PTHREAD_ONCE_INIT, isal_once = PTHREAD_ONCE_INIT;

static bool load(void *so, const char *name, void *slot)
{
    void *at = dlsym(so, name);
    *(void **)slot = at;
    return at != NULL;
}

static void load_archive(void)
{
    void *so = dlopen("libarchive.so.13", RTLD_LAZY | RTLD_LOCAL);
    bool ok = so != NULL;
#define FR_X(name) ok = ok && load(so, #name, &archive_lib.name);
    FR_ARCHIVE_SYMBOLS(FR_X)
#undef FR_X
    have_archive = ok;
}

static void load_isal(void)
{
    void *so = dlopen("libisal.so.2", RTLD_LAZY | RTLD_LOCAL);
    bool ok = so != NULL;
#define FR_X(name) ok = ok && load(so, #name, &isal_lib.name);
    FR_ISAL_SYMBOLS(FR_X)
#undef FR_X
    have_isal = ok;
}

const struct fr_archive_lib *fr_archive_lib(struct fr_err *err)
{
    pthread_once(&archive_once, load_archive);
    if (!have_archive) {
        fr_err_set(err, FR_ABSENT, "libarchive is not installed: install the package libarchive13 to read archives");
        return NULL;
    }
    return &archive_lib;
}

const struct fr_isal_lib *fr_isal_lib(struct fr_err *err)
{
    pthread_once(&isal_once, load_isal);
    if (!have_isal) {
        fr_err_set(err, FR_ABSENT, "ISA-L is not installed: install the package libisal2 to read gzip files");
        return NULL;
    }
    return &isal_lib;
}
