/*
 * Random small steps of training, in place and not (tests/random/calls.h): networks, losses, optimisers and
 * what scripts do with gradients, as nets.lua puts them together.
 *
 *   train DEVICE STEPS SIZE [SEED]      (tests/random/suite.h; SIZE: of the largest axis)
 *
 * Each step is written in Lua, runs once or twice on the interpreter there and is exported, its graph as it
 * was written (without `simplify`). Here it is compiled, with the values of its cells where the script left them.
 */
#define _POSIX_C_SOURCE 200809L
#include "core/base/outfile.h"
#include "formats/fnfile.h"
#include "formats/safetensors.h"
#include "vm/deepc.h"

#include <lauxlib.h>
#include <lualib.h>

#include <math.h>
#include <unistd.h>

#include "tests/random/calls.h"

typedef struct step {
    calls c; /* first: refill gets it */
    dc_fnfile_variant v;
    dc_st_file *file;
} step;

/* The script ------------------------------------------------------------------------------------- */

typedef struct script {
    lua_State *L;
    char path[300];
} script;

static bool open_script(script *s)
{
    dc_config cfg = DC_CONFIG_INIT;
    dc_rt *rt = NULL;
    const char *tmp = getenv("TMPDIR");
    snprintf(s->path, sizeof s->path, "%s/deepc-train-%ld.fn", tmp != NULL ? tmp : "/tmp",
             (long)getpid());
    cfg.compile = "off";
    cfg.cache = "off";
    cfg.device = "eval";
    setenv("DEEPC_SKIP", "simplify", 1); /* of this context: the suite's has its settings */
    s->L = luaL_newstate();
    if (!CHECK(s->L != NULL && dc_open(&cfg, &rt) == DC_OK))
        return false;
    luaL_openlibs(s->L);
    return CHECK(dc_attach(s->L, rt) == DC_OK);
}

static void close_script(script *s)
{
    lua_close(s->L);
    remove(s->path);
}

static bool write_step(script *s, uint64_t seed, int size)
{
    const bool done = luaL_loadfile(s->L, "tests/random/nets.lua") == LUA_OK &&
                      (lua_pushinteger(s->L, (lua_Integer)seed), lua_pushinteger(s->L, size),
                       lua_pushstring(s->L, s->path), lua_pcall(s->L, 3, 0, 0) == LUA_OK);
    if (!CHECK(done))
        printf("step %llu %d: %s\n", (unsigned long long)seed, size,
               luaL_tolstring(s->L, -1, NULL));
    lua_settop(s->L, 0);
    lua_gc(s->L, LUA_GCCOLLECT);
    return done;
}

/* Values --------------------------------------------------------------------------------------- */

/* Arguments: integers below what the name says, else 2; floats that lie like measurements. */
static void draw(step *s, uint32_t i)
{
    const dc_type *t = &s->c.type[i];
    const dc_dtype dtype = (dc_dtype)t->dtype;
    const char *bound = strstr(s->v.arg[i], "_below");
    const int below = bound != NULL ? atoi(bound + strlen("_below")) : 2;
    const double rate = t->rank == 0 ? 0.01 : 2;
    for (int64_t k = 0; k < dc_type_count(t); k++) {
        const double v = dc_dtype_is_float(dtype)
                             ? rng_uniform(&s->c.rnd, t->rank == 0 ? 0 : -rate, rate)
                             : rng_below(&s->c.rnd, below);
        dc_bits_store(dtype, (char *)s->c.param[i] + (size_t)k * dc_dtype_size(dtype),
                      dc_bits_of(dtype, v));
    }
}

/* Captured tensors and cells are in the file. */
static dc_status read_value(step *s, dc_job *j, uint32_t i)
{
    const dc_fnfile_variant *v = &s->v;
    const char *name =
        i < v->narg + v->ncaptured ? v->captured[i - v->narg] : v->cell[i - v->narg - v->ncaptured];
    const dc_st_tensor *t = dc_safetensors_find(s->file, name);
    if (!CHECK(t != NULL && dc_type_same(&t->type, &s->c.type[i])))
        return dc_failf(j, DC_ERR_FORMAT, "train", "tensor of a function file");
    return dc_safetensors_read(s->file, j, t, 0, dc_type_bytes(&t->type), s->c.param[i]);
}

static void refill(calls *c, uint32_t i)
{
    step *s = (step *)c;
    if (i < s->v.narg)
        draw(s, i);
    else if (read_value(s, c->j, i) != DC_OK)
        CHECK(false);
}

/* The function --------------------------------------------------------------------------------- */

/*
 * Results, what is printed and what checks found, then what is set: without checks as items, the values
 * that they would look at are compared.
 */
static void order_results(step *s)
{
    const dc_fnfile_variant *v = &s->v;
    dc_func *f = s->c.f;
    const uint32_t nresult = v->nresult + v->nprinted, ncheck = 2 * v->ncheck;
    dc_ref *old = DC_NEW_ARRAY(&s->c.j->scratch, dc_ref, f->result.n + 1);
    memcpy(old, f->result.at, f->result.n * sizeof *old);
    memcpy(f->result.at + nresult, old + nresult + v->nset, ncheck * sizeof *old);
    memcpy(f->result.at + nresult + ncheck, old + nresult, v->nset * sizeof *old);
}

static dc_status describe(step *s, dc_job *j, dc_module **m)
{
    const dc_fnfile_variant *v = &s->v;
    calls *c = &s->c;
    const char *text = dc_safetensors_text(s->file, "variant.1");
    if (!CHECK(text != NULL))
        return dc_failf(j, DC_ERR_FORMAT, "train", "no variant");
    DC_TRY(dc_fnfile_parse(j, &j->scratch, text, &s->v, m));
    c->f = (*m)->func.at[0];
    c->plain = (dc_exec_desc){
        .fn = c->f, .name = "plain", .nfree = c->f->param.n, .nresult = c->f->result.n};
    c->donating = (dc_exec_desc){.fn = c->f,
                                 .name = "donating",
                                 .nfree = v->narg + v->ncaptured,
                                 .ncell = v->ncell,
                                 .nresult = v->nresult + v->nprinted,
                                 .nset = v->nset,
                                 .relayout_small = true,
                                 .ncheck = v->ncheck,
                                 .set = v->set};
    if (rng_below(&c->rnd, 2) == 0) {
        order_results(s);
        c->donating.nresult += 2 * v->ncheck;
        c->donating.ncheck = 0;
    }
    calls_params(c);
    for (uint32_t i = 0; i < c->f->param.n; i++)
        refill(c, i);
    return DC_OK;
}

static dc_status try_step(dc_job *j, suite *s, const char *path, uint64_t seed, calls_totals *all)
{
    const dc_mark mark = dc_arena_mark(&j->scratch);
    step *x = DC_NEW(&j->scratch, step);
    dc_module *m = NULL;
    *x = (step){.c = {.s = s, .rt = s->rt, .j = j, .rnd = {seed}, .seed = seed, .print = true}};
    x->c.refill = refill;
    DC_TRY(dc_safetensors_open(j, path, &x->file));
    DC_TRY(describe(x, j, &m));
    const dc_status status = calls_run(&x->c, all);
    dc_safetensors_close(x->file);
    dc_module_free(m);
    dc_arena_rewind(&j->scratch, mark);
    return status;
}

static dc_status body(dc_job *j, suite *s)
{
    calls_totals all = {0};
    script lua = {0};
    dc_status status = DC_OK;
    if (!open_script(&lua))
        return DC_OK;
    for (long n = 0; n < s->graphs && t_failed == 0 && status == DC_OK; n++)
        if (write_step(&lua, s->seed + (uint64_t)n, s->batch))
            status = try_step(j, s, lua.path, s->seed + (uint64_t)n, &all);
    close_script(&lua);
    DC_TRY(status);
    CHECK(all.donated > 0 || s->interpret);
    CHECK(all.bounded * 4 > all.compared || s->graphs < 100); /* four fifths, of many */
    printf("%s: %ld steps, %llu laid out, %llu cells in place, %llu by copy, %ld elements, %.1f%% "
           "to three digits, "
           "%llu kernels, %llu fallbacks\n",
           s->device, s->graphs, (unsigned long long)all.laid_out, (unsigned long long)all.donated,
           (unsigned long long)all.denied, all.compared,
           100.0 * (double)all.bounded / (double)all.compared,
           (unsigned long long)s->rt->stats.kernels, (unsigned long long)s->rt->stats.fallbacks);
    return DC_OK;
}

int main(int argc, char **argv)
{
    return suite_main(argc, argv, body);
}
