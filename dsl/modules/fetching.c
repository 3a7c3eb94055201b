/*
 * Files by URL, for stdlib/data/fetch.lua:
 *
 *   fetch(url, path, sha256 or nil)
 *   fetch_digest(path)      the SHA-256 of a file, nil where there is none
 *   fetch_key(text)         that of a text
 *   fetch_folder()          where fetched files are kept
 */
#include "dsl/base/args.h"
#include "dsl/base/error.h"
#include "dsl/base/run.h"
#include "dsl/modules/modules.h"
#include "formats/fetch.h"

#include <string.h>

typedef struct fetching {
    dc_rt *rt;
    const char *url, *path, *sha256;
    bool there;
    char digest[DC_SHA256_TEXT], folder[1024];
} fetching;

static void run(lua_State *L, dc_dsl *d, dc_run_body *body, fetching *a)
{
    if (dc_run_once(d, body, a) != DC_OK)
        dc_error_raise(L, d, &(dc_blame){.op = "fetch"});
}

static dc_status fetch_body(dc_job *j, void *arg)
{
    const fetching *a = arg;
    return a->rt->check ? DC_OK : dc_fetch(j, a->url, a->path, a->sha256);
}

static int l_fetch(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    fetching a = {.rt = d->rt, .url = dc_args_text(L, d, 1, "fetch")};
    a.path = dc_args_text(L, d, 2, "fetch");
    a.sha256 = lua_isnoneornil(L, 3) ? NULL : dc_args_text(L, d, 3, "fetch");
    run(L, d, fetch_body, &a);
    return 0;
}

static dc_status digest_body(dc_job *j, void *arg)
{
    fetching *a = arg;
    return dc_fetch_digest(j, a->path, &a->there, a->digest);
}

static int l_digest(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    fetching a = {.path = dc_args_text(L, d, 1, "fetch")};
    run(L, d, digest_body, &a);
    if (a.there)
        lua_pushstring(L, a.digest);
    return a.there;
}

static int l_key(lua_State *L)
{
    size_t n;
    const char *text = luaL_checklstring(L, 1, &n);
    char digest[DC_SHA256_TEXT];
    dc_sha256 sha;
    dc_sha256_init(&sha);
    dc_sha256_add(&sha, text, n);
    dc_sha256_end(&sha, digest);
    lua_pushstring(L, digest);
    return 1;
}

static dc_status folder_body(dc_job *j, void *arg)
{
    fetching *a = arg;
    const char *path;
    DC_TRY(dc_fetch_folder(j, &path));
    if (strlen(path) < sizeof a->folder)
        memcpy(a->folder, path, strlen(path) + 1);
    return DC_OK;
}

static int l_folder(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    fetching a = {.there = false};
    run(L, d, folder_body, &a);
    lua_pushstring(L, a.folder);
    return 1;
}

static const dc_binding bindings[] = {
    {"fetch", l_fetch, DC_ANY, DC_IN_LIBRARY},
    {"fetch_digest", l_digest, DC_ANY, DC_IN_LIBRARY},
    {"fetch_key", l_key, DC_ANY, DC_IN_LIBRARY},
    {"fetch_folder", l_folder, DC_ANY, DC_IN_LIBRARY},
};

const dc_bindings dc_fetch_bindings = DC_BINDINGS(bindings);
