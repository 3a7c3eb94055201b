#include "vm/plan_main.h"

#include "core/base/digits.h"
#include "core/graph/partition.h"
#include "core/world/engine.h"
#include "vm/check_main.h"

#include <lauxlib.h>

#include <stdio.h>
#include <string.h>

typedef struct plan {
    dc_mesh mesh;
    char name[DC_MESH_AXES][40];
    const char *link[DC_MESH_AXES];
    int nlink;
} plan;

static const plan
    *asked; /* by open_world, which is given no context; set once, before anything runs */

enum { MOST_RANKS = 1 << 24 };

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

static dc_status open_world(dc_job *j, dc_world **out)
{
    return dc_world_pretend(j, 0, (int)dc_mesh_size(&asked->mesh), out);
}

static void prepare(dc_rt *rt, void *ctx)
{
    const plan *p = ctx;
    rt->planned = &p->mesh;
    rt->open_world = open_world;
    rt->measure = true;
}

/* What stdlib/plan.lua makes of it. */
static int tell(lua_State *L, void *ctx)
{
    const plan *p = ctx;
    lua_settop(L, 0);
    lua_getglobal(L, "require");
    lua_pushliteral(L, "deepc.plan");
    lua_call(L, 1, 1);
    lua_newtable(L);
    for (int i = 0; i < p->nlink; i++) {
        lua_pushstring(L, p->link[i]);
        lua_rawseti(L, -2, i + 1);
    }
    lua_call(L, 1, 1);
    fputs(luaL_checkstring(L, -1), stdout);
    return 0;
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
        "in a second, and the latency of a message: of all axes, or of one.\n";
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
    return dc_check_script(&run);
}
