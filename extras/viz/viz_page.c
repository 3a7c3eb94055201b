/*
 * What extras/viz/viz.lua needs beside the executables (dsl/fn/report.c):
 *
 *   viz_check(path)    raises where no file could be written there
 *   viz_file(name)     a file of extras/viz/
 *   viz_machine()      { device, rank, interpreted, simulated }
 */
#include "extras/viz/viz_page.h"

#include "core/base/outfile.h"
#include "dsl/base/binding.h"
#include "dsl/base/run.h"
#include "dsl/fn/report_impl.h"
#include "extras/viz/viz_files.h"

#include <string.h>

static int l_file(lua_State *L)
{
    const char *name = luaL_checkstring(L, 1);
    for (const struct dc_viz_file *f = dc_viz_files; f->name != NULL; f++)
        if (strcmp(f->name, name) == 0) {
            lua_pushlstring(L, f->text, f->size);
            return 1;
        }
    return luaL_error(L, "no file '%s' of extras/viz/", name);
}

static int l_machine(lua_State *L)
{
    const dc_dsl *d = dc_dsl_of(L);
    lua_newtable(L);
    dc_report_set_text(L, "device", d->rt->device_name);
    dc_report_set_number(L, "rank", d->rt->launched);
    dc_report_set_flag(L, "interpreted", d->rt->interpret);
    dc_report_set_flag(L, "simulated", dc_sim_is(d->rt->opt.device));
    return 1;
}

typedef struct opening {
    const char *path;
} opening;

/* It is given up when the body ends: what stands there stays. */
static dc_status check_body(dc_job *j, void *arg)
{
    dc_outfile *f;
    return dc_outfile_open(j, ((const opening *)arg)->path, &f);
}

/* Raises where no file could be written there. */
static int l_check(lua_State *L)
{
    opening a = {luaL_checkstring(L, 1)};
    dc_run(L, dc_dsl_of(L), check_body, &a);
    return 0;
}

static const dc_binding rows[] = {
    {"viz_check", l_check, DC_ANY, DC_IN_LIBRARY},
    {"viz_file", l_file, DC_ANY, DC_IN_LIBRARY},
    {"viz_machine", l_machine, DC_ANY, DC_IN_LIBRARY},
};

const dc_bindings dc_viz_page_bindings = DC_BINDINGS(rows);
