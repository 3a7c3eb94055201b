/*
 * A host that runs a script it did not write. The script computes, reads files beneath one folder, and prints
 * through the host; it finds nothing else.
 *
 *     sandbox_host SCRIPT [FOLDER]
 */
#include <lauxlib.h>
#include <lua.h>

#include <deepc.h>
#include <stdio.h>
#include <stdlib.h>

static void on_print(void *file, const char *text, size_t n)
{
    fwrite(text, 1, n, file);
}

/* The script's text; NULL where it cannot be read. */
static char *read_script(const char *path, size_t *n)
{
    enum { MOST = 1 << 20 };
    FILE *f = fopen(path, "rb");
    char *text = f != NULL ? malloc(MOST) : NULL;
    if (text != NULL)
        *n = fread(text, 1, MOST, f);
    if (f != NULL)
        fclose(f);
    return text;
}

/* A state for the script, or NULL; folder may be NULL. */
static lua_State *open_sandbox(const char *folder)
{
    lua_State *L = luaL_newstate();
    dc_config cfg = DC_CONFIG_INIT;
    cfg.memory_limit = (size_t)256 << 20;
    const char *const folders[] = {folder, NULL};
    dc_sandbox_options o = DC_SANDBOX_INIT;
    o.read = folders;
    o.memory_limit = (size_t)64 << 20;
    o.print = on_print;
    o.print_ctx = stdout;
    if (L != NULL && dc_open(&cfg, &o.context) == DC_OK && dc_sandbox(L, &o) == DC_OK)
        return L;
    fprintf(stderr, "sandbox_host: %s\n", dc_errmsg(o.context));
    dc_close(o.context);
    if (L != NULL)
        lua_close(L);
    return NULL;
}

int main(int argc, char **argv)
{
    size_t n = 0;
    char *text = argc > 1 ? read_script(argv[1], &n) : NULL;
    if (text == NULL) {
        fprintf(stderr, "sandbox_host SCRIPT [FOLDER]\n");
        return EXIT_FAILURE;
    }
    lua_State *L = open_sandbox(argc > 2 ? argv[2] : NULL);
    int result = EXIT_FAILURE;
    if (L != NULL) {
        if (dc_sandbox_run(L, "script", text, n, 10000) == DC_OK) /* ms */
            result = EXIT_SUCCESS;
        else
            fprintf(stderr, "sandbox_host: %s\n", lua_tostring(L, -1));
        lua_close(L);
    }
    free(text);
    return result;
}
