/*
 * Counts allocations: loaded before the C library's (LD_PRELOAD), it stands in for malloc and its like
 * and for mmap; required from Lua as "count", it tells how many there were. What the Lua state asks
 * for through its lua_Alloc is counted apart.
 */
#define _GNU_SOURCE
#include <lauxlib.h>
#include <lua.h>

#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);

static _Thread_local int inside;                /* a lua_Alloc */
static unsigned long long outside, lua, mapped; /* of all threads; off by one now and then */

static void see(void)
{
    if (!inside)
        __atomic_fetch_add(&outside, 1, __ATOMIC_RELAXED);
}

void *malloc(size_t n)
{
    see();
    return __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
    see();
    return __libc_calloc(n, size);
}

void *realloc(void *p, size_t n)
{
    see();
    return __libc_realloc(p, n);
}

void *memalign(size_t align, size_t n)
{
    see();
    return __libc_memalign(align, n);
}

void *aligned_alloc(size_t align, size_t n)
{
    return memalign(align, n);
}

int posix_memalign(void **p, size_t align, size_t n)
{
    *p = memalign(align, n);
    return *p != NULL ? 0 : ENOMEM;
}

void *mmap(void *at, size_t n, int protection, int flags, int fd, off_t offset)
{
    static void *(*next)(void *, size_t, int, int, int, off_t);
    if (next == NULL) {
        void *found = dlsym(RTLD_NEXT, "mmap");
        memcpy(&next, &found, sizeof next);
    }
    __atomic_fetch_add(&mapped, 1, __ATOMIC_RELAXED);
    return next(at, n, protection, flags, fd, offset);
}

typedef struct hook {
    lua_Alloc alloc;
    void *ctx;
} hook;

static void *counted(void *ctx, void *block, size_t had, size_t want)
{
    const hook *h = ctx;
    lua += want > had || block == NULL;
    inside++;
    void *p = h->alloc(h->ctx, block, had, want);
    inside--;
    return p;
}

/* count(): allocations outside of lua_Alloc, mappings, allocations inside, so far. */
static int l_count(lua_State *L)
{
    lua_pushinteger(L, (lua_Integer)outside);
    lua_pushinteger(L, (lua_Integer)mapped);
    lua_pushinteger(L, (lua_Integer)lua);
    return 3;
}

int luaopen_count(lua_State *L)
{
    static hook h; /* one state */
    h.alloc = lua_getallocf(L, &h.ctx);
    lua_setallocf(L, counted, &h);
    lua_pushcfunction(L, l_count);
    return 1;
}
