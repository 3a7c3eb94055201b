/*
 * Checkpoints, mostly valid (made.h): what training of several kinds has saved, with its tensors in any order, of other
 * values, and with other values and positions of data sets; read by a script that has the same layers, optimisers and
 * data sets. What was read is saved again, and has to be what was in the file, byte by byte. A lie is any number of it:
 * of its header, its tensors' sizes and places, its positions and values.
 */
#define _POSIX_C_SOURCE 200809L /* strdup */
#include "formats/safetensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/fuzz/fuzz_lua.h"
#include "tests/fuzz/made.h"

/* make(kind): a checkpoint; values: what is saved besides; ends with a function of path, kind and where it is saved again. */
static const char code[] =
    "local dc, nn = require 'deepc', require 'deepc.nn'\n"
    "local optim, data = require 'deepc.optim', require 'deepc.data'\n"
    "local make = {\n"
    "  function()\n"
    "    local net = nn.Linear(2, 3)\n"
    "    local opt = optim.Adam(net:parameters(), { lr = 0.1 })\n"
    "    return { net = net, opt = opt, rows = data.set(dc.iota 'f32[8, 2]', dc.iota 'i32[8]') }\n"
    "  end,\n"
    "  function()\n"
    "    local net = nn.Sequential { nn.Linear(3, 3), nn.LayerNorm(3), nn.Linear(3, 1) }\n"
    "    local opt = optim.SGD(net:parameters(), { lr = 0.1, momentum = 0.9 })\n"
    "    return { net = net, opt = opt, mean = optim.EMA(net, 0.9) }\n"
    "  end,\n"
    "  function()\n"
    "    local net = nn.Embedding(5, 2)\n"
    "    local opt = optim.AdamW(net:parameters(), { lr = 0.1 })\n"
    "    return { net = net, opt = opt, scaler = optim.GradScaler(), count = dc.state('i64[2]', "
    "dc.zeros 'i64[2]'),\n"
    "      a = data.set(dc.iota 'f32[8, 2]'), b = data.set(dc.iota 'f32[3]') }\n"
    "  end,\n"
    "}\n"
    "local ready = {}\n"
    "return function(path, kind, again)\n"
    "  ready[kind] = ready[kind] or make[kind]()\n"
    "  local parts = ready[kind]\n"
    "  if not path then return dc.checkpoint(again, parts):save { step = 3, name = 'x y', on = "
    "true, lr = 0.5 } end\n"
    "  local values = dc.checkpoint(path, parts):load()\n"
    "  for _, name in ipairs { 'rows', 'a', 'b' } do\n"
    "    local set = parts[name]\n"
    "    if set then pcall(function() for _ in set:batches(2) do end end) end\n"
    "  end\n"
    "  dc.checkpoint(path, parts):load()\n"
    "  dc.checkpoint(again, parts):save(values)\n"
    "  return true\n"
    "end\n";

enum { KINDS = 3, MOST = 64 };

/* ---- what such a script saves ------------------------------------------------------------------ */

typedef struct saved {
    dc_st_tensor tensor[MOST];
    dc_st_text text[MOST];
    uint32_t ntensor, ntext;
} saved;

static saved known[KINDS];
static char again[200];
static lua_State *L;
static dc_rt *rt;

static void remove_again(void)
{
    unlink(again);
}

static const char *keep(const char *s)
{
    char *copy = strdup(s);
    if (copy == NULL)
        abort();
    return copy;
}

static dc_status learn(dc_job *j, void *arg)
{
    saved *s = arg;
    dc_st_file *f;
    uint32_t n;
    DC_TRY(dc_safetensors_open(j, again, &f));
    dc_safetensors_defer(j, f);
    const dc_st_tensor *t = dc_safetensors_tensors(f, &n);
    for (; s->ntensor < n && s->ntensor < MOST; s->ntensor++) {
        s->tensor[s->ntensor] = t[s->ntensor];
        s->tensor[s->ntensor].name = keep(t[s->ntensor].name);
    }
    const dc_st_text *x = dc_safetensors_texts(f, &n);
    for (; s->ntext < n && s->ntext < MOST; s->ntext++)
        s->text[s->ntext] = (dc_st_text){keep(x[s->ntext].key), keep(x[s->ntext].value)};
    return DC_OK;
}

/* Calls the function; false: an error, which is on the stack. A broken promise is a finding. */
static bool run(const char *path, int kind)
{
    lua_settop(L, 1);
    lua_pushvalue(L, 1);
    lua_pushstring(L, path);
    lua_pushinteger(L, kind + 1);
    lua_pushstring(L, again);
    const bool good = lua_pcall(L, 3, 0, 0) == LUA_OK;
    if (rt->broken)
        fuzz_finding("%s", luaL_tolstring(L, -1, NULL));
    return good;
}

static void begin(void)
{
    const char *folder = getenv("TMPDIR");
    snprintf(again, sizeof again, "%s/fuzz-checkpoint-%ld", folder != NULL ? folder : "/tmp",
             (long)getpid());
    atexit(remove_again);
    L = fuzz_lua_open(code, &rt);
    for (int i = 0; i < KINDS; i++) {
        if (!run(NULL, i))
            fuzz_finding("%s", luaL_tolstring(L, -1, NULL));
        if (fuzz_protect(learn, &known[i]) != DC_OK || known[i].ntensor == 0)
            fuzz_finding("%s", fuzz_error());
    }
}

/* ---- the file ---------------------------------------------------------------------------------- */

typedef struct making {
    made m;
    int kind;
    const saved *of;
    const unsigned char *bytes[MOST];
    const char *text[MOST];
} making;

static void choose_bytes(making *k)
{
    for (uint32_t i = 0; i < k->of->ntensor; i++) {
        const dc_st_tensor *t = &k->of->tensor[i];
        k->bytes[i] = made_data(&k->m, (dc_dtype)t->type.dtype, (size_t)t->bytes);
    }
}

/* Values are anything; of what stands at a position the batch is one that there is. */
static void choose_texts(making *k)
{
    static const char *const value[] = {"1", "true", "\"a \\ \n", "0x1p-3", "-7", "false", "\""};
    made *m = &k->m;
    for (uint32_t i = 0; i < k->of->ntext; i++) {
        const char *key = k->of->text[i].key;
        k->text[i] = k->of->text[i].value;
        if (strncmp(key, "deepc.value:", 12) == 0)
            k->text[i] = value[made_below(m, DC_COUNTOF(value))];
        else if (strncmp(key, "deepc.data:", 11) == 0 && strstr(key, ":epoch") != NULL)
            k->text[i] = dc_arena_printf(m->arena, "%u", made_below(m, 100));
        k->text[i] = made_lies_in(m, k->text[i]);
    }
}

static void put_tensors(making *k, const uint32_t *order)
{
    uint64_t at = 0;
    for (uint32_t i = 0; i < k->of->ntensor; i++) {
        const dc_st_tensor *t = &k->of->tensor[order[i]];
        made_st_entry(&k->m, t->name, "", dc_safetensors_dtype((dc_dtype)t->type.dtype), &t->type,
                      at, (uint64_t)t->bytes);
        made_text(&k->m, i + 1 < k->of->ntensor ? "," : "");
        at += (uint64_t)t->bytes;
    }
}

static void put_texts(making *k)
{
    made_text(&k->m, "\"__metadata__\":{");
    for (uint32_t i = 0; i < k->of->ntext; i++) {
        made_quoted(&k->m, k->of->text[i].key);
        made_text(&k->m, ":");
        made_quoted(&k->m, k->text[i]);
        made_text(&k->m, i + 1 < k->of->ntext ? "," : "},");
    }
}

static void put_file(making *k)
{
    made *m = &k->m;
    uint32_t order[MOST];
    for (uint32_t i = 0; i < k->of->ntensor; i++) {
        const uint32_t at = made_below(m, i + 1);
        order[i] = order[at];
        order[at] = i;
    }
    made_le(m, 0, 8);
    made_text(m, "{");
    put_texts(k);
    put_tensors(k, order);
    made_text(m, "}");
    made_align(m, 8, ' ');
    const uint64_t length = made_number(m, m->n - 8);
    for (int i = 0; i < 8; i++)
        m->at[i] = (unsigned char)(length >> 8 * i);
    for (uint32_t i = 0; i < k->of->ntensor; i++)
        made_put(m, k->bytes[order[i]], (size_t)k->of->tensor[order[i]].bytes);
}

/* ---- what is read ------------------------------------------------------------------------------ */

/* Of one that is intact: what was saved again is what was in it. */
static dc_status compare(dc_job *j, making *k)
{
    dc_st_file *f;
    DC_TRY(dc_safetensors_open(j, again, &f));
    dc_safetensors_defer(j, f);
    for (uint32_t i = 0; i < k->of->ntensor; i++) {
        const dc_st_tensor *want = &k->of->tensor[i], *t = dc_safetensors_find(f, want->name);
        if (t == NULL || !dc_type_same(&t->type, &want->type))
            fuzz_finding("tensor '%s' is gone, or has another type", want->name);
        unsigned char *got = dc_arena_alloc(&j->scratch, (size_t)t->bytes + 1);
        DC_TRY(dc_safetensors_read(f, j, t, 0, (size_t)t->bytes, got));
        if (memcmp(got, k->bytes[i], (size_t)t->bytes) != 0)
            fuzz_finding("tensor '%s' has other values", want->name);
    }
    for (uint32_t i = 0; i < k->of->ntext; i++) {
        const char *text = dc_safetensors_text(f, k->of->text[i].key);
        if (text == NULL || strcmp(text, k->text[i]) != 0)
            fuzz_finding("'%s' is '%s', not '%s'", k->of->text[i].key, text != NULL ? text : "",
                         k->text[i]);
    }
    return DC_OK;
}

static dc_status body(dc_job *j, void *arg)
{
    making *k = DC_NEW(&j->scratch, making);
    made_begin(&k->m, &j->scratch, arg);
    k->kind = (int)made_below(&k->m, KINDS);
    k->of = &known[k->kind];
    choose_bytes(k);
    choose_texts(k);
    put_file(k);
    made_end(&k->m);
    const bool good = run(fuzz_file(k->m.at, k->m.n), k->kind);
    if (!good && made_is_intact(&k->m))
        fuzz_finding("a valid file is refused: %s", luaL_tolstring(L, -1, NULL));
    if (!good)
        return dc_failf(j, DC_ERR_FORMAT_TEXT, NULL, "it is refused");
    return made_is_intact(&k->m) ? compare(j, k) : DC_OK;
}

void fuzz_one(const fuzz_input *in)
{
    static int calls;
    if (L == NULL)
        begin();
    fuzz_protect(body, (void *)in);
    lua_settop(L, 1);
    if (++calls % FUZZ_LUA_INPUTS == 0) {
        lua_close(L);
        L = fuzz_lua_open(code, &rt);
    }
}
