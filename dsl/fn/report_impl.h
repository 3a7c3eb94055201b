/* What report.c, report_graph.c and fnreport.c share: tables about one executable. */
#ifndef DC_DSL_FN_REPORT_IMPL_H
#define DC_DSL_FN_REPORT_IMPL_H

#include "dsl/base/binding.h"
#include "dsl/fn/fn.h"

typedef struct dc_report_holder {
    dc_uhead head;
    dc_exec *exec;
    dc_exec_graph graph; /* while its tables are made */
    uint32_t **number;   /* by part, by ref: of the nodes that are told, from 1; in graph.mem */
} dc_report_holder;

typedef enum dc_report_graph {
    DC_REPORT_NO_GRAPH,
    DC_REPORT_TRACED,  /* as it was traced */
    DC_REPORT_COMPILED /* as it was simplified and split, with what each command computes */
} dc_report_graph;

/* Pushes a userdata that retains the executable. */
dc_report_holder *dc_report_holder_push(lua_State *L, dc_exec *e);
/* Fields of the table on top. */
void dc_report_set_executable(lua_State *L, dc_dsl *d, dc_report_holder *h, dc_report_graph graph);
/* Of one that has no commands, since it was refused. */
void dc_report_set_refused(lua_State *L, dc_dsl *d, dc_report_holder *h);
/* Nodes and parts alone; finds the graph. */
void dc_report_set_graph(lua_State *L, dc_dsl *d, dc_report_holder *h, dc_report_graph graph);

/* Pushes the text of a kernel. */
void dc_report_push_source(lua_State *L, dc_dsl *d, dc_exec *e, uint32_t kernel, dc_form form);

/* Of a free parameter. */
static inline const char *dc_report_role(const dc_exec_desc *d, uint32_t param)
{
    const uint32_t captured = d->nfree - d->nfixed;
    return param < captured - d->nsize ? "argument" : param < captured ? "size" : "captured";
}

static inline void dc_report_set_text(lua_State *L, const char *name, const char *text)
{
    lua_pushstring(L, text);
    lua_setfield(L, -2, name);
}

static inline void dc_report_set_number(lua_State *L, const char *name, double v)
{
    if (v == (double)(lua_Integer)v)
        lua_pushinteger(L, (lua_Integer)v);
    else
        lua_pushnumber(L, v);
    lua_setfield(L, -2, name);
}

static inline void dc_report_set_flag(lua_State *L, const char *name, bool on)
{
    if (on) {
        lua_pushboolean(L, true);
        lua_setfield(L, -2, name);
    }
}

static inline void dc_report_append(lua_State *L)
{
    lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
}

static inline void dc_report_append_number(lua_State *L, double v)
{
    lua_pushinteger(L, (lua_Integer)v);
    dc_report_append(L);
}

static inline void dc_report_set_type(lua_State *L, const dc_type *t)
{
    char text[DC_TYPE_TEXT];
    dc_type_print(t, text, sizeof text);
    dc_report_set_text(L, "type", text);
}

#endif
