#include "vm/program/dot_main.h"

#include "vm/program/check_main.h"
#include "vm/program/say.h"

#include <lauxlib.h>

#include <stdio.h>
#include <string.h>

typedef struct drawing {
    const char *function, *by; /* NULL: all; "layer" or "group" */
    bool found;
} drawing;

/* What stdlib/dot.lua makes of it. */
static int draw(lua_State *L, void *ctx)
{
    drawing *a = ctx;
    size_t n;
    lua_settop(L, 0);
    lua_getglobal(L, "require");
    lua_pushliteral(L, "deepc.dot");
    lua_call(L, 1, 1);
    lua_getfield(L, 1, "all");
    lua_pushstring(L, a->function);
    lua_pushstring(L, a->by);
    lua_call(L, 2, 2);
    const char *text = lua_tolstring(L, 2, &n), *names = lua_tostring(L, 3);
    a->found = n > 0;
    if (n > 0)
        fwrite(text, 1, n, stdout);
    else if (*names == '\0')
        fputs("deepc: the script has traced no typed function\n", stderr);
    else
        dc_sayf(stderr, "deepc: no typed function '%s' was traced; there are %s\n", a->function,
                names);
    return 0;
}

int dc_dot_main(int argc, char **argv)
{
    static const char usage[] =
        "usage: deepc dot [--by layer|group] [--function NAME] [-t SECONDS] FILE [ARGS]\n"
        "The graphs of a script's typed functions, for Graphviz: deepc dot train.lua | dot -Tsvg "
        ">train.svg\n"
        "The script runs as for deepc check: nothing is computed. Clusters are layers and colours "
        "kernels, or clusters\n"
        "are kernels (--by group).\n";
    drawing a = {.by = "layer"};
    dc_check_run run = {.device = NULL, .seconds = "60", .aside = true, .finish = draw, .ctx = &a};
    int i = 0;
    for (; i + 1 < argc && argv[i][0] == '-'; i += 2) {
        const char *value = argv[i + 1];
        if (strcmp(argv[i], "--by") == 0 &&
            (strcmp(value, "layer") == 0 || strcmp(value, "group") == 0))
            a.by = value;
        else if (strcmp(argv[i], "--function") == 0)
            a.function = value;
        else if (strcmp(argv[i], "-t") == 0)
            run.seconds = value;
        else
            break;
    }
    if (i >= argc || argv[i][0] == '-') {
        fputs(usage, stderr);
        return 1;
    }
    run.argc = argc - i;
    run.argv = argv + i;
    const int status = dc_check_script(&run);
    return status != 0 || !a.found;
}
