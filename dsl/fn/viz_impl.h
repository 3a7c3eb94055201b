/* What the files viz.c and viz_graph.c share: tables about one executable. */
#ifndef DC_DSL_FN_VIZ_IMPL_H
#define DC_DSL_FN_VIZ_IMPL_H

#include "dsl/base/binding.h"
#include "dsl/fn/fn.h"

typedef struct dc_viz_holder {
    dc_uhead head;
    dc_exec *exec;
    dc_exec_graph graph; /* while its tables are made */
    uint32_t **number;   /* by part, by ref: of the nodes that are told; in graph.mem */
} dc_viz_holder;

/* Finds the graph of the executable and numbers its nodes; arg is the holder. */
dc_status dc_viz_number_body(dc_job *j, void *arg);
/* Fields of the table on top. */
void dc_viz_set_nodes(lua_State *L, const dc_viz_holder *h);
void dc_viz_set_parts(lua_State *L, const dc_viz_holder *h);

/* Of a free parameter. */
static inline const char *dc_viz_role(const dc_exec_desc *d, uint32_t param)
{
    const uint32_t captured = d->nfree - d->nfixed;
    return param < captured - d->nsize ? "argument" : param < captured ? "size" : "captured";
}

static inline void dc_viz_set_text(lua_State *L, const char *name, const char *text)
{
    lua_pushstring(L, text);
    lua_setfield(L, -2, name);
}

static inline void dc_viz_set_number(lua_State *L, const char *name, double v)
{
    if (v == (double)(lua_Integer)v)
        lua_pushinteger(L, (lua_Integer)v);
    else
        lua_pushnumber(L, v);
    lua_setfield(L, -2, name);
}

static inline void dc_viz_set_flag(lua_State *L, const char *name, bool on)
{
    if (on) {
        lua_pushboolean(L, true);
        lua_setfield(L, -2, name);
    }
}

static inline void dc_viz_append(lua_State *L)
{
    lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
}

static inline void dc_viz_append_number(lua_State *L, double v)
{
    lua_pushinteger(L, (lua_Integer)v);
    dc_viz_append(L);
}

static inline void dc_viz_set_type(lua_State *L, const dc_type *t)
{
    char text[DC_TYPE_TEXT];
    dc_type_print(t, text, sizeof text);
    dc_viz_set_text(L, "type", text);
}

static inline double dc_viz_type_bytes(const dc_type *t)
{
    return (double)dc_type_bytes(t);
}

#endif
