#include "tests/memory/failing_allocator.h"

/* The headers' parameter names are reserved for them.
 * NOLINTBEGIN(readability-inconsistent-declaration-parameter-name) */

#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static atomic_bool is_armed;
static atomic_long allocations;
static long fails_at;
static bool fails_on;
static bool is_traced;

void failing_allocator_arm(long at, bool on)
{
    fails_at = at;
    fails_on = on;
    atomic_store(&allocations, 0);
    atomic_store(&is_armed, true);
}

long failing_allocator_disarm(void)
{
    atomic_store(&is_armed, false);
    return atomic_load(&allocations);
}

void failing_allocator_trace(void)
{
    is_traced = true;
}

/* ---- the allocator ---- */

/* What stands behind: the sanitizer's, else the C library's. */
#pragma weak __interceptor_malloc
#pragma weak __interceptor_calloc
#pragma weak __interceptor_realloc
#pragma weak __interceptor_memalign
#pragma weak __sanitizer_print_stack_trace
void *__interceptor_malloc(size_t bytes);
void *__interceptor_calloc(size_t count, size_t bytes);
void *__interceptor_realloc(void *block, size_t bytes);
void *__interceptor_memalign(size_t alignment, size_t bytes);
void __sanitizer_print_stack_trace(void);
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *block, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);

/* The sanitizer asks this of each new thread, and takes no failure for an answer. */
static _Thread_local bool is_sanitizer;

int pthread_getattr_np(pthread_t thread, pthread_attr_t *attributes)
{
    void *found = dlsym(RTLD_NEXT, "pthread_getattr_np");
    int (*call)(pthread_t, pthread_attr_t *);
    int code;

    if (found == NULL)
        abort();
    memcpy(&call, &found, sizeof call);
    is_sanitizer = true;
    code = call(thread, attributes);
    is_sanitizer = false;
    return code;
}

static void note_failure(bool is_first)
{
    if (!is_traced || !is_first || __sanitizer_print_stack_trace == NULL)
        return;
    atomic_store(&is_armed, false); /* printing allocates */
    __sanitizer_print_stack_trace();
    atomic_store(&is_armed, true);
}

static bool fails_now(void)
{
    long number;

    if (!atomic_load(&is_armed) || is_sanitizer)
        return false;
    number = atomic_fetch_add(&allocations, 1) + 1;
    if (number < fails_at || (number > fails_at && !fails_on) || fails_at == 0)
        return false;
    note_failure(number == fails_at);
    errno = ENOMEM;
    return true;
}

void *malloc(size_t bytes)
{
    if (fails_now())
        return NULL;
    return __interceptor_malloc != NULL ? __interceptor_malloc(bytes) : __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
    if (fails_now())
        return NULL;
    return __interceptor_calloc != NULL ? __interceptor_calloc(count, bytes)
                                        : __libc_calloc(count, bytes);
}

void *realloc(void *block, size_t bytes)
{
    if (bytes > 0 && fails_now())
        return NULL;
    return __interceptor_realloc != NULL ? __interceptor_realloc(block, bytes)
                                         : __libc_realloc(block, bytes);
}

void *memalign(size_t alignment, size_t bytes)
{
    if (fails_now())
        return NULL;
    return __interceptor_memalign != NULL ? __interceptor_memalign(alignment, bytes)
                                          : __libc_memalign(alignment, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
    return memalign(alignment, bytes);
}

int posix_memalign(void **block, size_t alignment, size_t bytes)
{
    void *made = memalign(alignment, bytes);

    if (made == NULL)
        return ENOMEM;
    *block = made;
    return 0;
}

/* The sanitizer's own would not come by here. */
char *strndup(const char *text, size_t len)
{
    size_t const copied = strnlen(text, len);
    char *copy = malloc(copied + 1);

    if (copy == NULL)
        return NULL;
    memcpy(copy, text, copied);
    copy[copied] = '\0';
    return copy;
}

char *strdup(const char *text)
{
    return strndup(text, strlen(text));
}

/* NOLINTEND(readability-inconsistent-declaration-parameter-name) */
