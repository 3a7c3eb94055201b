/*
 * The table of compiled kernels (jit/exec/kernel_table.h): chains by digest of the text. One mutex guards all
 * of it; nothing that can unwind happens while it is held.
 */
#include "jit/exec/kernel_table.h"

#include <pthread.h>
#include <string.h>

enum { NCHAIN = 1024 };

typedef enum state { COMPILING, READY, ABANDONED } state;

struct dc_compiled {
    dc_cache_key text, disk; /* digests: of its text; of its program on disk */
    bool on_disk;
    state state;
    uint32_t users;
    dc_kernel_needs *needs;
    dc_program *program; /* freed with the last of its kernels */
    uint32_t entry;
    dc_compiled *sibling;       /* the next kernel of the program, in a ring */
    dc_compiled *next;          /* in its chain */
    dc_compiled *older, *newer; /* among the unused */
};

struct dc_kernels {
    dc_device *device;
    pthread_mutex_t lock;
    pthread_cond_t settled; /* something is compiling no more */
    dc_compiled *chain[NCHAIN];
    dc_compiled *oldest, *newest; /* unused ones, by when they became so */
    uint32_t unused;
};

dc_kernels *dc_kernels_new(dc_device *d)
{
    dc_kernels *t = dc_xalloc(sizeof *t);
    t->device = d;
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->settled, NULL);
    return t;
}

static void free_compiled(dc_compiled *c)
{
    if (c != NULL)
        dc_xfree(c->needs);
    dc_xfree(c);
}

/* ---- with the lock held ---------------------------------------------------------------------- */

static void leave_unused(dc_kernels *t, dc_compiled *c)
{
    *(c->older != NULL ? &c->older->newer : &t->oldest) = c->newer;
    *(c->newer != NULL ? &c->newer->older : &t->newest) = c->older;
    c->older = c->newer = NULL;
    t->unused--;
}

static void enter_unused(dc_kernels *t, dc_compiled *c)
{
    c->older = t->newest;
    *(c->older != NULL ? &c->older->newer : &t->oldest) = c;
    t->newest = c;
    t->unused++;
}

static dc_compiled **chain_of(dc_kernels *t, dc_cache_key text)
{
    return &t->chain[text.word[0] % NCHAIN];
}

static dc_compiled *find_kernel(dc_kernels *t, dc_cache_key text)
{
    dc_compiled *c = *chain_of(t, text);
    while (c != NULL && memcmp(&c->text, &text, sizeof text) != 0)
        c = c->next;
    return c;
}

static void enter_kernel(dc_kernels *t, dc_compiled *c)
{
    dc_compiled **chain = chain_of(t, c->text);
    c->next = *chain;
    *chain = c;
}

static void unchain(dc_kernels *t, const dc_compiled *c)
{
    dc_compiled **at = chain_of(t, c->text);
    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
}

/* ---- claiming and compiling ------------------------------------------------------------------ */

dc_compiled *dc_kernels_claim(dc_kernels *t, dc_cache_key text, bool *mine)
{
    dc_compiled *fresh = dc_xalloc(sizeof *fresh); /* now, since it may unwind */
    fresh->text = text;
    pthread_mutex_lock(&t->lock);
    dc_compiled *c = find_kernel(t, text);
    *mine = c == NULL;
    if (c == NULL) {
        c = fresh;
        enter_kernel(t, c);
    } else if (c->users == 0) {
        leave_unused(t, c);
    }
    c->users++;
    pthread_mutex_unlock(&t->lock);
    if (c != fresh)
        dc_xfree(fresh);
    return c;
}

void dc_kernels_describe(dc_compiled *c, dc_kernel_needs *needs)
{
    dc_xfree(c->needs);
    c->needs = needs;
}

void dc_kernels_publish(dc_kernels *t, dc_compiled *const *c, uint32_t n, dc_program *program,
                        const dc_cache_key *disk)
{
    pthread_mutex_lock(&t->lock);
    for (uint32_t i = 0; i < n; i++) {
        c[i]->program = program;
        c[i]->entry = i;
        c[i]->sibling = c[(i + 1) % n];
        c[i]->state = READY;
        c[i]->on_disk = disk != NULL && n == 1;
        if (disk != NULL)
            c[i]->disk = *disk;
    }
    pthread_cond_broadcast(&t->settled);
    pthread_mutex_unlock(&t->lock);
}

/* Out of the table; the last of its users frees it. */
void dc_kernels_abandon(dc_kernels *t, dc_compiled *c)
{
    pthread_mutex_lock(&t->lock);
    c->state = ABANDONED;
    unchain(t, c);
    const bool last = --c->users == 0;
    pthread_cond_broadcast(&t->settled);
    pthread_mutex_unlock(&t->lock);
    if (last)
        free_compiled(c);
}

bool dc_kernels_wait(dc_kernels *t, dc_compiled *c)
{
    pthread_mutex_lock(&t->lock);
    while (c->state == COMPILING)
        pthread_cond_wait(&t->settled, &t->lock);
    const bool ready = c->state == READY;
    const bool last = !ready && --c->users == 0;
    pthread_mutex_unlock(&t->lock);
    if (last)
        free_compiled(c);
    return ready;
}

dc_program *dc_compiled_program(const dc_compiled *c)
{
    return c->program;
}

uint32_t dc_compiled_entry(const dc_compiled *c)
{
    return c->entry;
}

const dc_kernel_needs *dc_compiled_needs(const dc_compiled *c)
{
    return c->needs;
}

dc_cache_key dc_compiled_text(const dc_compiled *c)
{
    return c->text;
}

bool dc_compiled_on_disk(const dc_compiled *c, dc_cache_key *disk)
{
    *disk = c->disk;
    return c->on_disk;
}

/* ---- letting go ------------------------------------------------------------------------------ */

void dc_kernels_release(dc_kernels *t, dc_compiled *c)
{
    pthread_mutex_lock(&t->lock);
    const bool last = --c->users == 0, abandoned = c->state == ABANDONED;
    if (last && !abandoned)
        enter_unused(t, c);
    pthread_mutex_unlock(&t->lock);
    if (last && abandoned)
        free_compiled(c);
}

/* Takes c, which has no users, from its siblings; gives its program back if it had none.
 */
static dc_program *leave_program(dc_compiled *c)
{
    dc_compiled *before = c;
    while (before->sibling != c)
        before = before->sibling;
    before->sibling = c->sibling;
    return before == c ? c->program : NULL;
}

/* The oldest unused kernel leaves; false when there are no more than `spare`. */
static bool drop_one(dc_kernels *t, uint32_t spare)
{
    pthread_mutex_lock(&t->lock);
    dc_compiled *c = t->unused > spare ? t->oldest : NULL;
    dc_program *program = NULL;
    if (c != NULL) {
        leave_unused(t, c);
        unchain(t, c);
        program = leave_program(c);
    }
    pthread_mutex_unlock(&t->lock);
    if (program != NULL)
        t->device->ops->program_free(t->device, program);
    free_compiled(c);
    return c != NULL;
}

void dc_kernels_trim(dc_kernels *t, uint32_t spare)
{
    while (drop_one(t, spare))
        ;
}

void dc_kernels_free(dc_kernels *t)
{
    if (t == NULL)
        return;
    dc_kernels_trim(t, 0);
    pthread_cond_destroy(&t->settled);
    pthread_mutex_destroy(&t->lock);
    dc_xfree(t);
}
