/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor/digest.h"

#include "base/alloc.h"

#include <dlfcn.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#define SYMBOLS(X)                                       \
    X(EVP_MD_CTX_new) X(EVP_MD_CTX_free) X(EVP_sha256)   \
    X(EVP_DigestInit_ex) X(EVP_DigestUpdate) X(EVP_DigestFinal_ex)

static struct {
#define FR_X(name) __typeof__(&name) name;
    SYMBOLS(FR_X)
#undef FR_X
} lib;
static bool have_lib;
static pthread_once_t once = PTHREAD_ONCE_INIT;

struct fr_digest {
    EVP_MD_CTX *ctx;
    bool ok;
};

static bool load(void *so, const char *name, void *slot)
{
    void *at = dlsym(so, name);
    *(void **)slot = at;
    return at != NULL;
}

static void load_lib(void)
{
    void *so = dlopen("libcrypto.so.3", RTLD_LAZY | RTLD_LOCAL);
    bool ok = so != NULL;
#define FR_X(name) ok = ok && load(so, #name, &lib.name);
    SYMBOLS(FR_X)
#undef FR_X
    have_lib = ok;
}

int fr_digest_new(struct fr_digest **ret, struct fr_err *err)
{
    pthread_once(&once, load_lib);
    if (!have_lib) {
        return fr_err_set(err, FR_ABSENT,
                          "libcrypto is not installed: install the package libssl3 to write and "
                          "verify manifests");
    }
    struct fr_digest *d = fr_calloc(1, sizeof *d);
    if (d == NULL || (d->ctx = lib.EVP_MD_CTX_new()) == NULL) {
        fr_free(d);
        return fr_err_set(err, FR_NOMEM, "out of memory");
    }
    *ret = d;
    return 0;
}

void fr_digest_begin(struct fr_digest *d)
{
    d->ok = lib.EVP_DigestInit_ex(d->ctx, lib.EVP_sha256(), NULL) == 1;
}

void fr_digest_add(struct fr_digest *d, const void *p, size_t n)
{
    d->ok = d->ok && lib.EVP_DigestUpdate(d->ctx, p, n) == 1;
}

/* A digest that failed inside OpenSSL is all zeros: it never equals a real one. */
void fr_digest_end(struct fr_digest *d, char hex[FR_DIGEST_HEX + 1])
{
    static const char digits[] = "0123456789abcdef";
    unsigned char raw[EVP_MAX_MD_SIZE] = {0};
    unsigned n = 0;
    if (!d->ok || lib.EVP_DigestFinal_ex(d->ctx, raw, &n) != 1) {
        memset(raw, 0, sizeof raw);
    }
    for (int i = 0; i < FR_DIGEST_HEX; i++) {
        hex[i] = digits[i % 2 == 0 ? raw[i / 2] >> 4 : raw[i / 2] & 15];
    }
    hex[FR_DIGEST_HEX] = '\0';
}

void fr_digest_free(struct fr_digest **d)
{
    if (*d != NULL) {
        lib.EVP_MD_CTX_free((*d)->ctx);
        fr_free(*d);
    }
    *d = NULL;
}
