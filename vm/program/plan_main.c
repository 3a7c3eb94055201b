#include "vm/program/plan_main.h"

#include "core/base/digits.h"
#include "core/base/heap.h"
#include "core/base/vec.h"
#include "core/transform/partition.h"
#include "core/world/engine.h"
#include "vm/program/check_main.h"
#include "vm/program/say.h"

#include <lauxlib.h>

#include <stdio.h>
#include <string.h>

typedef struct plan {
    dc_mesh mesh;
    char name[DC_MESH_AXES][40];
    const char *link[DC_MESH_AXES];
    int nlink;
    /* Where ranks send to each other, the script runs for each place along an axis. */
    int64_t place, places, step; /* of this run; how many; ranks from one to the next */
    DC_VEC(char *) before;       /* what the runs before gave */
} plan;

static const plan *asked; /* by open_world; set once, before anything runs */

enum { MOST_RANKS = 1 << 24, MOST_PLACES = 256 };

/* "data=512,model=8" */
static bool read_mesh(const char *text, plan *p)
{
    uint64_t all = 1;
    while (*text != '\0') {
        const size_t n = strcspn(text, "=");
        const uint32_t a = p->mesh.naxis;
        uint64_t size;
        if (a == DC_MESH_AXES || n == 0 || n >= sizeof p->name[0] || text[n] != '=')
            return false;
        snprintf(p->name[a], sizeof p->name[a], "%.*s", (int)n, text);
        text += n + 1;
        if (dc_digits_unsigned(&text, NULL, MOST_RANKS, &size) != DC_DIGITS_OK || size == 0 ||
            (all *= size) > MOST_RANKS || (*text != ',' && *text != '\0'))
            return false;
        text += *text == ',';
        p->mesh.name[a] = p->name[a];
        p->mesh.size[p->mesh.naxis++] = (int64_t)size;
    }
    return p->mesh.naxis > 0;
}

static dc_status open_world(dc_rt *rt, dc_job *j, dc_world **out)
{
    DC_UNUSED(rt);
    return dc_world_pretend(j, (int)(asked->place * asked->step), (int)dc_mesh_size(&asked->mesh),
                            out);
}

static void prepare(dc_rt *rt, void *ctx)
{
    const plan *p = ctx;
    rt->planned = &p->mesh;
    rt->open_world = open_world;
    rt->measure = true;
}

/* The other places along the axis of this name are to run, too. */
static void ask_for_places(lua_State *L, plan *p, const char *axis)
{
    p->step = 1;
    for (uint32_t a = p->mesh.naxis; a-- > 0; p->step *= p->mesh.size[a])
        if (strcmp(p->name[a], axis) == 0) {
            p->places = p->mesh.size[a];
            if (p->places > MOST_PLACES)
                luaL_error(L, "plan: %d places along '%s' are more than %d", (int)p->places, axis,
                           MOST_PLACES);
            return;
        }
}

/* What stdlib/plan.lua makes of it. */
static int tell(lua_State *L, void *ctx)
{
    plan *p = ctx;
    lua_settop(L, 0);
    lua_getglobal(L, "require");
    lua_pushliteral(L, "deepc.plan");
    lua_call(L, 1, 1);
    lua_newtable(L);
    for (int i = 0; i < p->nlink; i++) {
        lua_pushstring(L, p->link[i]);
        lua_rawseti(L, -2, i + 1);
    }
    lua_newtable(L);
    for (uint32_t i = 0; i < p->before.n; i++) {
        lua_pushstring(L, p->before.at[i]);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    lua_pushboolean(L, p->place > 0 && p->place + 1 == p->places);
    lua_call(L, 3, 3);
    if (lua_isstring(L, 1)) {
        dc_say(stdout, lua_tostring(L, 1), lua_rawlen(L, 1));
        return 0;
    }
    if (p->place == 0)
        ask_for_places(L, p, luaL_checkstring(L, 3));
    size_t bytes;
    const char *text = luaL_checklstring(L, 2, &bytes);
    DC_PUSH(p->before, memcpy(dc_xalloc(bytes + 1), text, bytes + 1));
    return 0;
}

static void forget(plan *p)
{
    for (uint32_t i = 0; i < p->before.n; i++)
        dc_xfree(p->before.at[i]);
    DC_VEC_FREE(p->before);
}

int dc_plan_main(int argc, char **argv)
{
    static const char usage[] =
        "usage: deepc plan --mesh data=512,model=8 [--link [AXIS=]50GB/s[,5us]] [-t SECONDS] FILE "
        "[ARGS]\n"
        "Time and memory of a step on a mesh of ranks that are not there: the script runs as one "
        "of them, its\n"
        "kernels are timed here, what ranks exchange is added by formulas. --link says what a rank "
        "gives to others\n"
        "in a second, and the latency of a message: of all axes, or of one. Of stages of a "
        "pipeline each runs it.\n";
    static plan p;
    dc_check_run run = {
        .device = NULL, .seconds = "60", .prepare = prepare, .finish = tell, .ctx = &p};
    int i = 0;
    for (; i + 1 < argc && argv[i][0] == '-'; i += 2) {
        if (strcmp(argv[i], "--mesh") == 0 && p.mesh.naxis == 0 && read_mesh(argv[i + 1], &p))
            continue;
        if (strcmp(argv[i], "--link") == 0 && p.nlink < DC_MESH_AXES)
            p.link[p.nlink++] = argv[i + 1];
        else if (strcmp(argv[i], "-t") == 0)
            run.seconds = argv[i + 1];
        else
            break;
    }
    if (i >= argc || argv[i][0] == '-' || p.mesh.naxis == 0) {
        fputs(usage, stderr);
        return 1;
    }
    asked = &p;
    run.argc = argc - i;
    run.argv = argv + i;
    p.places = 1;
    int status = 0;
    for (; p.place < p.places && status == 0; p.place++)
        status = dc_check_script(&run);
    forget(&p);
    return status;
}
