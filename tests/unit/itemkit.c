#include "tests/unit/itemkit.h"

#include "core/ir/gtext.h"

#include <stdio.h>
#include <stdlib.h>

static void must(bool ok, const char *what)
{
    if (ok)
        return;
    printf("failed: %s\n", what);
    exit(1);
}

uint32_t itemkit_kernel(itemkit *k, const char *text)
{
    dc_module *m = NULL;
    must(dc_module_parse(k->w->j, text, &m) == DC_OK, text);
    const dc_func *fn = m->func.at[0];
    const signature s = {.nfree = fn->param.n, .nresult = fn->result.n};
    dc_module_free(m);
    must(k->nkernel < ITEMKIT_MANY, "room for a kernel");
    dc_exec *e = world_build(k->w, text, &s);
    must(e->ncommand == 1 && e->command[0].kind == DC_COMMAND_LAUNCH, text);
    k->kernel[k->nkernel] = e;
    return k->nkernel++;
}

static uint32_t push(itemkit *k, dc_command command)
{
    must(k->desc.ncommand < ITEMKIT_MANY, "room for a command");
    k->command[k->desc.ncommand] = command;
    return k->desc.ncommand++;
}

static dc_bind *copy_binds(itemkit *k, const dc_bind *bind, uint32_t n)
{
    dc_bind *copy = DC_NEW_ARRAY(&k->mem, dc_bind, n);
    for (uint32_t i = 0; i < n; i++)
        copy[i] = bind[i];
    return copy;
}

/* The parameter of the kernel's function that one of its binds stands for. */
static uint32_t param_of(const dc_exec *e, dc_bind at)
{
    for (uint32_t p = 0; p < e->desc.nfree; p++)
        if (at.slot == dc_slot_free(p))
            return p;
    must(false, "a bind of a kernel is one of its parameters");
    return 0;
}

uint32_t itemkit_launch(itemkit *k, uint32_t kernel, const dc_bind *to, const dc_bind *from)
{
    const dc_exec *e = k->kernel[kernel];
    dc_command command = e->command[0];
    dc_bind *bind = DC_NEW_ARRAY(&k->mem, dc_bind, command.nbind);
    dc_use *use = DC_NEW_ARRAY(&k->mem, dc_use, command.nbind);
    for (uint32_t b = 0; b < command.nbind; b++) {
        const dc_bind at = command.bind[b];
        const bool out = at.slot >= dc_slot_result(e, 0);
        const uint32_t n = out ? at.slot - dc_slot_result(e, 0) : param_of(e, at);
        bind[b] = out ? to[n] : from[n];
        use[b] = (dc_use){dc_type_bytes(out ? &e->result[n] : &e->param[n]), !out, out};
    }
    command.bind = bind;
    command.dep = NULL;
    command.ndep = 0;
    const uint32_t at = push(k, command);
    k->use[at] = use;
    return at;
}

uint32_t itemkit_copy(itemkit *k, dc_bind to, dc_bind from, size_t bytes)
{
    return push(k, (dc_command){.kind = DC_COMMAND_COPY,
                                .nbind = 2,
                                .bind = copy_binds(k, (dc_bind[]){to, from}, 2),
                                .bytes = bytes,
                                .label = "copy"});
}

uint32_t itemkit_check(itemkit *k, uint32_t number, dc_bind position, dc_bind value)
{
    const uint32_t at = push(k, (dc_command){.kind = DC_COMMAND_CHECK,
                                             .nbind = 2,
                                             .bind = copy_binds(k, (dc_bind[]){position, value}, 2),
                                             .bytes = sizeof(int32_t),
                                             .label = "check"});
    k->fact[at] = (dc_command_fact){.check = number};
    return at;
}

uint32_t itemkit_loop(itemkit *k, int64_t most, const dc_bind *bind, uint32_t nbind)
{
    return push(k, (dc_command){.kind = DC_COMMAND_LOOP,
                                .grid = most,
                                .nbind = nbind,
                                .bind = copy_binds(k, bind, nbind),
                                .label = "loop"});
}

uint32_t itemkit_branch(itemkit *k, dc_bind which)
{
    return push(k, (dc_command){.kind = DC_COMMAND_BRANCH,
                                .nbind = 1,
                                .bind = copy_binds(k, &which, 1),
                                .label = "branch"});
}

void itemkit_end(itemkit *k, uint32_t command)
{
    k->command[command].nbody = k->desc.ncommand - command - 1;
}

void itemkit_else(itemkit *k, uint32_t branch)
{
    k->command[branch].nelse = k->desc.ncommand - branch - 1 - k->command[branch].nbody;
}

static dc_status make(itemkit *k, dc_job *j, dc_exec **out)
{
    k->desc.command = k->command;
    k->desc.use = k->use;
    k->desc.fact = k->fact;
    return dc_exec_from_commands(k->w->rt, j, &k->desc, out);
}

dc_exec *itemkit_exec(itemkit *k)
{
    dc_exec *e = NULL;
    must(make(k, k->w->j, &e) == DC_OK, "an executable of commands");
    return e;
}

dc_status itemkit_try(dc_job *j, void *kit)
{
    dc_exec *e;
    DC_TRY(make(kit, j, &e));
    dc_exec_release(e);
    return DC_OK;
}

void itemkit_free(itemkit *k)
{
    for (uint32_t i = 0; i < k->nkernel; i++)
        dc_exec_release(k->kernel[i]);
    dc_arena_free(&k->mem);
}
