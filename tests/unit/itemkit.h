/*
 * Lists of commands by hand, for jit/exec/exec_commands.h. Kernels come from small functions, each an executable of
 * one launch whose program is borrowed; what a kernel reads and writes is said by place.
 *
 *   itemkit k = {.w = &w};
 *   const uint32_t twice = itemkit_kernel(&k, "func twice(%1: f32[4]) { ... }");
 *   itemkit_launch(&k, twice, (dc_bind[]){to}, (dc_bind[]){from});
 *   const uint32_t loop = itemkit_loop(&k, 10, binds, 2); ...; itemkit_end(&k, loop);
 *   k.desc.nresult = 1; ...; dc_exec *e = itemkit_exec(&k);
 *   itemkit_free(&k);        when e is gone
 */
#ifndef DC_TESTS_ITEMKIT_H
#define DC_TESTS_ITEMKIT_H

#include "jit/exec/exec_commands.h"

#include "tests/unit/world.h"

enum { ITEMKIT_MANY = 32 };

typedef struct itemkit {
    world *w;
    dc_command_list desc; /* what the kit does not know: name, params, results, arena_bytes ... */
    dc_arena mem;
    dc_exec *kernel[ITEMKIT_MANY];
    uint32_t nkernel;
    dc_command command[ITEMKIT_MANY];
    const dc_use *use[ITEMKIT_MANY];
    dc_command_fact fact[ITEMKIT_MANY];
} itemkit;

/* Of one group; all parameters are free. Returns its number. */
uint32_t itemkit_kernel(itemkit *k, const char *text);

/* by result and by parameter of the function; they return the command's position */
uint32_t itemkit_launch(itemkit *k, uint32_t kernel, const dc_bind *to, const dc_bind *from);
uint32_t itemkit_copy(itemkit *k, dc_bind to, dc_bind from, size_t bytes);
uint32_t itemkit_check(itemkit *k, uint32_t number, dc_bind position, dc_bind value);
uint32_t itemkit_loop(itemkit *k, int64_t most, const dc_bind *bind, uint32_t nbind);
uint32_t itemkit_branch(itemkit *k, dc_bind which);

/* Items since then are its body; of a branch: the first call ends the body, the second the else. */
void itemkit_end(itemkit *k, uint32_t command);
void itemkit_else(itemkit *k, uint32_t branch);

/* Exits on failure. try: for lists that are refused. */
dc_exec *itemkit_exec(itemkit *k);
dc_status itemkit_try(dc_job *j, void *kit);
void itemkit_free(itemkit *k);

static inline dc_bind in_arena(size_t offset)
{
    return (dc_bind){DC_SLOT_ARENA, offset};
}

#endif
