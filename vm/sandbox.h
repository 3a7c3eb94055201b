/* What a script of others finds as its globals (sandbox.c puts them together). */
#ifndef DC_VM_SANDBOX_H
#define DC_VM_SANDBOX_H

#include "dsl/dsl.h"
#include "vm/deepc.h"

#include <lua.h>

/* Of one sandbox; a userdata that its functions have as first upvalue. */
typedef struct dc_sandbox_state {
    dc_rt *rt;
    void (*print)(void *ctx, const char *text, size_t n);
    void *print_ctx;
    const char *(*require)(void *ctx, const char *name, size_t *n);
    void *require_ctx;
} dc_sandbox_state;

enum {
    DC_SANDBOX_TEXT =
        1 << 20, /* most bytes of a text that is loaded: the parser is not interrupted */
    DC_SANDBOX_COUNT = 1 << 24, /* most elements that one call of the table library goes over */
};

/*
 * Sets the functions of ours in the globals at `globals`, whose libraries are there already; `state` is the
 * index of the userdata, a dc_sandbox_state. Raises.
 */
void dc_sandbox_base(lua_State *L, int globals, int state);

/* Loads text under a name that says nothing of files, never bytecode. As luaL_loadbufferx; raises nothing more. */
int dc_sandbox_load_text(lua_State *L, const char *text, size_t n, const char *name);

#endif
