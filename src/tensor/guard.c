/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor/guard.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

static _Thread_local struct {
    char *volatile at;
    volatile size_t n;
    volatile sig_atomic_t lost;
} window;

static struct sigaction before;
static bool installed;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Not ours: to the handler that was there, or back to what the system does. */
static void pass_on(int sig, siginfo_t *info, void *context)
{
    if ((before.sa_flags & SA_SIGINFO) != 0 && before.sa_sigaction != NULL) {
        before.sa_sigaction(sig, info, context);
    } else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN &&
               before.sa_handler != NULL) {
        before.sa_handler(sig);
    } else {
        struct sigaction dfl = {.sa_handler = SIG_DFL};
        (void)sigaction(sig, &dfl, NULL); /* the access is repeated, and ends the process */
        if (info->si_code <= 0) {
            (void)raise(sig); /* sent by kill(): nothing is repeated */
        }
    }
}

static void on_sigbus(int sig, siginfo_t *info, void *context)
{
    int saved = errno;
    char *at = window.at, *hit = info->si_addr;
    size_t page = 4096;
    if (at == NULL || info->si_code <= 0 || hit < at || hit >= at + window.n) {
        pass_on(sig, info, context);
        errno = saved;
        return;
    }
    size_t from = (size_t)(hit - at) & ~(page - 1);
    if (mmap(at + from, window.n - from, PROT_READ,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) == MAP_FAILED) {
        window.at = NULL; /* the access is repeated and passed on */
    }
    window.lost = 1;
    errno = saved;
}

static void install(void)
{
    struct sigaction act = {.sa_sigaction = on_sigbus, .sa_flags = SA_SIGINFO | SA_NODEFER};
    (void)sigemptyset(&act.sa_mask);
    installed = sysconf(_SC_PAGESIZE) == 4096 && sigaction(SIGBUS, &act, &before) == 0;
}

bool fr_guard_enter(void *p, size_t n)
{
    if (pthread_once(&once, install) != 0 || !installed) {
        return false;
    }
    window.lost = 0;
    window.n = n;
    window.at = p;
    return true;
}

bool fr_guard_leave(void)
{
    window.at = NULL;
    return window.lost != 0;
}
