/*
 * Tokenizers for extras/llm/tokenizers/:
 *
 *   tokenizer_new(op, name, json, list)   of a description, and a vocabulary beside it: nil or a table of tokens, scores,
 *                                         merges, charsmap, sentencepiece, find_special
 *   tokenizer_encode(t, text, pair, options, packed)
 *       options: special, parse_special, offsets, max -> a list of ids, and with offsets lists of first and last bytes;
 *       packed: the ids, and their types, as bytes of i32, and how many
 *   tokenizer_decode(t, ids, skip_special)
 *   tokenizer_id(t, token)   tokenizer_token(t, id)   tokenizer_is_special(t, id)
 *   tokenizer_about(t)       a table: size, unknown, max, pad, pad_left
 */
#include "extras/llm/tokenizers.h"

#include "dsl/base/args.h"
#include "dsl/base/error.h"
#include "dsl/base/interrupt.h"
#include "dsl/base/run.h"
#include "extras/llm/tokenizer/tokenizer.h"

#include <string.h>

typedef struct tokenizer {
    dc_uhead head;
    dc_tokenizer *t;
} tokenizer;

static void drop_tokenizer(void *node)
{
    tokenizer *a = node;
    dc_tokenizer_free(a->t);
    a->t = NULL;
}

const dc_utype dc_tokenizer_type = {.name = "deepc.tokenizer", .drop = drop_tokenizer};

static dc_tokenizer *tokenizer_at(lua_State *L)
{
    const tokenizer *a = dc_udata_check(L, 1, &dc_tokenizer_type);
    luaL_argcheck(L, a->t != NULL, 1, "closed");
    return a->t;
}

/* ---- making ----------------------------------------------------------------------------------- */

typedef struct making {
    const char *name;
    dc_span json;
    dc_token_list list;
    bool lists;
    tokenizer *out;
} making;

static dc_status make_body(dc_job *j, void *arg)
{
    const making *a = arg;
    char *copy = dc_arena_alloc(&j->scratch, a->json.n + 1);
    memcpy(copy, a->json.at, a->json.n);
    return dc_tokenizer_new(j, a->name, copy, a->json.n, a->lists ? &a->list : NULL, &a->out->t);
}

/* The texts of a list, which keeps them; an array in memory that is left on the stack. NULL: there is no such list. */
static dc_span *read_texts(lua_State *L, dc_dsl *d, const char *op, const char *field, size_t *n)
{
    if (lua_getfield(L, 4, field) != LUA_TTABLE)
        return NULL;
    *n = lua_rawlen(L, -1);
    dc_span *to = lua_newuserdatauv(L, *n * sizeof *to + 1, 0);
    for (size_t i = 0; i < *n; i++) {
        if (lua_rawgeti(L, -2, (lua_Integer)i + 1) != LUA_TSTRING)
            dc_error_raisef(L, d, DC_ERR_ARG, op, "%s %d is %s, not a text", field, (int)i + 1,
                            luaL_typename(L, -1));
        to[i].at = lua_tolstring(L, -1, &to[i].n);
        lua_pop(L, 1);
    }
    return to;
}

static double *read_scores(lua_State *L, dc_dsl *d, const char *op, size_t n)
{
    if (lua_getfield(L, 4, "scores") != LUA_TTABLE)
        return NULL;
    if (lua_rawlen(L, -1) != n)
        dc_error_raisef(L, d, DC_ERR_ARG, op, "%d scores are given for %d tokens",
                        (int)lua_rawlen(L, -1), (int)n);
    double *to = lua_newuserdatauv(L, n * sizeof *to + 1, 0);
    for (size_t i = 0; i < n; i++) {
        if (lua_rawgeti(L, -2, (lua_Integer)i + 1) != LUA_TNUMBER)
            dc_error_raisef(L, d, DC_ERR_ARG, op, "score %d is %s, not a number", (int)i + 1,
                            luaL_typename(L, -1));
        to[i] = lua_tonumber(L, -1);
        lua_pop(L, 1);
    }
    return to;
}

static int l_new(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    const char *op = luaL_checkstring(L, 1);
    making a = {.name = luaL_checkstring(L, 2), .lists = lua_istable(L, 4)};
    a.json.at = luaL_checklstring(L, 3, &a.json.n);
    if (a.lists) {
        a.list.token = read_texts(L, d, op, "tokens", &a.list.n);
        a.list.merge = read_texts(L, d, op, "merges", &a.list.nmerge);
        a.list.score = read_scores(L, d, op, a.list.n);
        if (lua_getfield(L, 4, "charsmap") == LUA_TSTRING)
            a.list.charsmap.at = lua_tolstring(L, -1, &a.list.charsmap.n);
        lua_getfield(L, 4, "sentencepiece");
        a.list.sentencepiece = lua_toboolean(L, -1);
        lua_getfield(L, 4, "find_special");
        a.list.find_special = lua_toboolean(L, -1);
    }
    a.out = dc_udata_new(L, &dc_tokenizer_type, sizeof *a.out, 0);
    dc_error_check_of(L, d, dc_run_once(d, make_body, &a), op);
    return 1;
}

/* ---- encoding --------------------------------------------------------------------------------- */

typedef struct encoding {
    dc_tokenizer *t;
    dc_encode in;
    dc_encoded out;
} encoding;

static dc_status encode_body(dc_job *j, void *arg)
{
    encoding *a = arg;
    return dc_tokenizer_encode(a->t, j, &a->in, &a->out);
}

static bool flag(lua_State *L, const char *name)
{
    lua_getfield(L, 4, name);
    const bool set = lua_toboolean(L, -1);
    lua_pop(L, 1);
    return set;
}

static void push_list(lua_State *L, dc_dsl *d, const dc_encoded *e)
{
    uint32_t looks = 0;
    lua_createtable(L, (int)e->n, 0);
    for (size_t i = 0; i < e->n; i++) {
        dc_interrupt_poll_often(L, d, &looks);
        lua_pushinteger(L, e->id[i]);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
}

/* The first byte of each token, from 1, or the last one. */
static void push_places(lua_State *L, const dc_encoded *e, bool last)
{
    lua_createtable(L, (int)e->n, 0);
    for (size_t i = 0; i < e->n; i++) {
        lua_pushinteger(L, last ? (lua_Integer)e->range[i].to : (lua_Integer)e->range[i].from + 1);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
}

static int push_packed(lua_State *L, const dc_encoded *e)
{
    luaL_Buffer b;
    int32_t *to = (int32_t *)(void *)luaL_buffinitsize(L, &b, e->n * sizeof *to + 1);
    for (size_t i = 0; i < e->n; i++)
        to[i] = (int32_t)e->id[i];
    luaL_pushresultsize(&b, e->n * sizeof *to);
    to = (int32_t *)(void *)luaL_buffinitsize(L, &b, e->n * sizeof *to + 1);
    for (size_t i = 0; i < e->n; i++)
        to[i] = e->type[i];
    luaL_pushresultsize(&b, e->n * sizeof *to);
    lua_pushinteger(L, (lua_Integer)e->n);
    return 3;
}

static int l_encode(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    encoding a = {.t = tokenizer_at(L)};
    lua_settop(L, 5);
    a.in.text.at = luaL_checklstring(L, 2, &a.in.text.n);
    if (!lua_isnoneornil(L, 3))
        a.in.pair.at = luaL_checklstring(L, 3, &a.in.pair.n);
    luaL_checktype(L, 4, LUA_TTABLE);
    a.in.special = flag(L, "special");
    a.in.parse_special = flag(L, "parse_special");
    a.in.offsets = flag(L, "offsets");
    lua_getfield(L, 4, "max");
    a.in.most = luaL_optinteger(L, -1, -1);
    dc_error_check_of(L, d, dc_run_once(d, encode_body, &a), "encode");
    if (lua_toboolean(L, 5))
        return push_packed(L, &a.out);
    push_list(L, d, &a.out);
    if (!a.in.offsets)
        return 1;
    push_places(L, &a.out, false);
    push_places(L, &a.out, true);
    return 3;
}

/* ---- decoding --------------------------------------------------------------------------------- */

typedef struct decoding {
    dc_tokenizer *t;
    uint32_t *id;
    size_t n;
    bool skip;
    dc_span out;
} decoding;

static dc_status decode_body(dc_job *j, void *arg)
{
    decoding *a = arg;
    return dc_tokenizer_decode(a->t, j, a->id, a->n, a->skip, &a->out);
}

static int l_decode(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    decoding a = {.t = tokenizer_at(L), .skip = lua_toboolean(L, 3)};
    luaL_checktype(L, 2, LUA_TTABLE);
    a.n = lua_rawlen(L, 2);
    a.id = lua_newuserdatauv(L, a.n * sizeof *a.id + 1, 0);
    for (size_t i = 0; i < a.n; i++) {
        lua_rawgeti(L, 2, (lua_Integer)i + 1);
        const lua_Integer id = lua_isinteger(L, -1) ? lua_tointeger(L, -1) : -1;
        if (id < 0 || id >= (lua_Integer)dc_tokenizer_size(a.t))
            dc_error_raisef(L, d, DC_ERR_ARG, "decode", "id %d is %s: ids are 0 to %d", (int)i + 1,
                            luaL_tolstring(L, -1, NULL), (int)dc_tokenizer_size(a.t) - 1);
        a.id[i] = (uint32_t)id;
        lua_pop(L, 1);
    }
    dc_error_check_of(L, d, dc_run_once(d, decode_body, &a), "decode");
    lua_pushlstring(L, a.out.at, a.out.n);
    return 1;
}

/* ---- tokens ----------------------------------------------------------------------------------- */

static int l_id(lua_State *L)
{
    const dc_tokenizer *t = tokenizer_at(L);
    dc_span s;
    s.at = luaL_checklstring(L, 2, &s.n);
    const uint32_t id = dc_tokenizer_id(t, s);
    if (id == DC_TOKEN_NONE)
        return 0;
    lua_pushinteger(L, id);
    return 1;
}

static int l_token(lua_State *L)
{
    const dc_tokenizer *t = tokenizer_at(L);
    const lua_Integer id = luaL_checkinteger(L, 2);
    const dc_span s = id >= 0 && id < (lua_Integer)dc_tokenizer_size(t)
                          ? dc_tokenizer_token(t, (uint32_t)id)
                          : (dc_span){NULL, 0};
    if (s.at == NULL)
        return 0;
    lua_pushlstring(L, s.at, s.n);
    return 1;
}

static int l_is_special(lua_State *L)
{
    const dc_tokenizer *t = tokenizer_at(L);
    const lua_Integer id = luaL_checkinteger(L, 2);
    lua_pushboolean(L, id >= 0 && id < (lua_Integer)dc_tokenizer_size(t) &&
                           dc_tokenizer_is_special(t, (uint32_t)id));
    return 1;
}

static int l_about(lua_State *L)
{
    const dc_tokenizer *t = tokenizer_at(L);
    const dc_tokenizer_info info = dc_tokenizer_about(t);
    const uint32_t unknown = dc_tokenizer_unknown(t);
    lua_createtable(L, 0, 5);
    dc_binding_set_number(L, "size", dc_tokenizer_size(t));
    if (unknown != DC_TOKEN_NONE)
        dc_binding_set_number(L, "unknown", unknown);
    if (info.most >= 0)
        dc_binding_set_number(L, "max", (uint64_t)info.most);
    if (info.pad >= 0)
        dc_binding_set_number(L, "pad", (uint64_t)info.pad);
    lua_pushboolean(L, info.pad_left);
    lua_setfield(L, -2, "pad_left");
    return 1;
}

static const dc_binding bindings[] = {
    {"tokenizer_new", l_new, DC_ANY, DC_IN_LIBRARY},
    {"tokenizer_encode", l_encode, DC_ANY, DC_IN_LIBRARY},
    {"tokenizer_decode", l_decode, DC_ANY, DC_IN_LIBRARY},
    {"tokenizer_id", l_id, DC_ANY, DC_IN_LIBRARY},
    {"tokenizer_token", l_token, DC_ANY, DC_IN_LIBRARY},
    {"tokenizer_is_special", l_is_special, DC_ANY, DC_IN_LIBRARY},
    {"tokenizer_about", l_about, DC_ANY, DC_IN_LIBRARY},
};

const dc_bindings dc_tokenizer_bindings = DC_BINDINGS(bindings);
