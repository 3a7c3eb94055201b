/*
 * Function files, mostly valid (made.h): one or two variants, each a random graph, with or without loops, whose parameters
 * are arguments, captured tensors and states, whose results are set, printed and checked. All of a file is read: it is
 * loaded on the interpreter or a simulated device and called. What loops compute is exact, so results have to be those
 * of the interpreter, and states what they are set to or, where a check fails, what they were. A lie is any number of
 * the file: of its header, its counts, its checks or its graphs.
 */
#include "core/eval/eval.h"
#include "formats/fnfile.h"
#include "formats/safetensors.h"
#include "vm/deepc.h"

#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/made.h"
#include "tests/unit/graphgen.h"
#include "tests/unit/loopgen.h"

enum { LIMIT = 16 << 20, VARIANTS = 2, ROOM = 1 << 16, CLASSES = 5, DEVICES = 3, INPUTS = 200 };

/* A parameter that the file has a tensor for. */
typedef struct value {
    const char *name;
    dc_type type;
    void *bytes;
    bool is_cell;
} value;

typedef struct variant {
    dc_fnfile_variant file;
    dc_func *fn;
    void **in; /* of every parameter */
    bool exact, fails;
} variant;

typedef struct making {
    made m;
    dc_module *module;
    variant variant[VARIANTS];
    uint32_t nvariant;
    DC_VEC(value) value; /* in the arena */
    int device;
} making;

/* ---- variants --------------------------------------------------------------------------------- */

static const char **names(making *k, const char *prefix, uint32_t from, uint32_t n)
{
    const char **name = DC_NEW_ARRAY(k->m.arena, const char *, n + 1);
    for (uint32_t i = 0; i < n; i++)
        name[i] = made_name(&k->m, prefix, from + i);
    return name;
}

static void choose_parameters(making *k, variant *v)
{
    made *m = &k->m;
    const uint32_t all = v->fn->param.n;
    v->file.narg = made_below(m, all + 1);
    v->file.ncaptured = made_below(m, all - v->file.narg + 1);
    v->file.ncell = all - v->file.narg - v->file.ncaptured;
    v->file.arg = names(k, "x", 0, v->file.narg);
    v->file.captured = names(k, "captured", k->value.n, v->file.ncaptured);
    v->file.cell = names(k, "state.", k->value.n + v->file.ncaptured, v->file.ncell);
}

static void choose_sets(making *k, variant *v)
{
    dc_func *f = v->fn;
    v->file.set = DC_NEW_ARRAY(k->m.arena, uint32_t, v->file.ncell + 1);
    for (uint32_t i = 0; i < v->file.ncell; i++) {
        const dc_ref p = f->param.at[v->file.narg + v->file.ncaptured + i];
        const dc_type want = dc_node_type(f, p);
        if (!made_once_in(&k->m, 2))
            continue;
        dc_ref r = p;
        for (uint32_t n = 0; n < v->file.nresult && r == p; n++) {
            const dc_type t = dc_node_type(f, f->result.at[n]);
            r = dc_type_same(&t, &want) ? f->result.at[n] : p;
        }
        v->file.set[v->file.nset++] = i;
        DC_PUSH(f->result, r);
    }
}

/* What is checked are constants: the place of the first that is wrong, or -1, and what it is. */
static void choose_checks(making *k, variant *v)
{
    static const char *const role[] = {"index", "singular", "not definite", "no factors"};
    const dc_type number = dc_type_scalar(DC_I32);
    const int64_t dim[] = {7};
    v->file.check = DC_NEW_ARRAY(k->m.arena, dc_fnfile_check, 3);
    for (; v->file.ncheck < 3 && made_below(&k->m, 4) == 3; v->file.ncheck++) {
        const bool fails = made_once_in(&k->m, 4);
        v->file.check[v->file.ncheck] =
            (dc_fnfile_check){made_once_in(&k->m, 2),
                              (int)made_below(&k->m, DC_MAX_RANK),
                              CLASSES,
                              made_once_in(&k->m, 2) ? dc_type_make(DC_I32, 1, dim) : number,
                              "take",
                              role[made_below(&k->m, DC_COUNTOF(role))]};
        DC_PUSH(v->fn->result, dc_graph_const(v->fn, &number, fails ? 3 : -1));
        DC_PUSH(v->fn->result, dc_graph_const(v->fn, &number, fails ? CLASSES + 2 : 0));
        v->fails = v->fails || fails;
    }
}

static void choose_values(making *k, variant *v)
{
    rng r = {made_below(&k->m, 256)};
    v->in = DC_NEW_ARRAY(k->m.arena, void *, v->fn->param.n + 1);
    for (uint32_t i = 0; i < v->fn->param.n; i++) {
        const dc_type t = dc_node_type(v->fn, v->fn->param.at[i]);
        v->in[i] = dc_arena_alloc(k->m.arena, dc_type_bytes(&t) + 1);
        if (v->exact)
            loopgen_input(&r, &t, v->in[i]);
        else
            graphgen_input(&r, &t, true, v->in[i]);
        if (i < v->file.narg)
            continue;
        const uint32_t named = i - v->file.narg;
        const bool is_cell = named >= v->file.ncaptured;
        const value add = {is_cell ? v->file.cell[named - v->file.ncaptured]
                                   : v->file.captured[named],
                           t, v->in[i], is_cell};
        DC_PUSH_IN(k->m.arena, k->value, add);
    }
}

/* False: too much would be computed. */
static bool choose_variant(making *k, variant *v)
{
    made *m = &k->m;
    v->exact = made_once_in(m, 2);
    const uint64_t seed = made_below(m, 1 << 16);
    const int size = 1 + (int)made_below(m, 8);
    v->fn = v->exact ? loopgen_func(k->module, seed, size) : graphgen_func(k->module, seed, size);
    if (!fuzz_is_small(v->fn, 20000))
        return false;
    choose_parameters(k, v);
    v->file.nresult = v->fn->result.n;
    choose_sets(k, v);
    choose_checks(k, v);
    choose_values(k, v);
    if (made_once_in(m, 4)) { /* the last of the results are printed */
        v->file.nprinted = made_below(m, v->file.nresult + 1);
        v->file.nresult -= v->file.nprinted;
    }
    v->file.fn = v->fn;
    return true;
}

/* Do both take the same arguments? Then no call reaches the second one. */
static bool are_alike(const variant *a, const variant *b)
{
    bool same = a->file.narg == b->file.narg;
    for (uint32_t i = 0; same && i < a->file.narg; i++) {
        const dc_type s = dc_node_type(a->fn, a->fn->param.at[i]);
        const dc_type t = dc_node_type(b->fn, b->fn->param.at[i]);
        same = dc_type_same(&s, &t);
    }
    return same;
}

/* ---- the file --------------------------------------------------------------------------------- */

static void put_tensors(making *k)
{
    uint64_t at = 0;
    for (uint32_t i = 0; i < k->value.n; i++) {
        const value *v = &k->value.at[i];
        const uint64_t bytes = dc_type_bytes(&v->type);
        made_st_entry(&k->m, v->name, "", dc_safetensors_dtype((dc_dtype)v->type.dtype), &v->type,
                      at, bytes);
        made_text(&k->m, ",");
        at += bytes;
    }
}

static void put_variants(dc_job *j, making *k)
{
    for (uint32_t i = 0; i < k->nvariant; i++) {
        dc_text *t = dc_job_text(j);
        dc_fnfile_print(&k->variant[i].file, t);
        made_printf(&k->m, ",\"variant.%u\":", i + 1);
        made_quoted(&k->m, made_lies_in(&k->m, t->s));
        dc_job_text_end(j, t);
    }
}

static void put_file(dc_job *j, making *k)
{
    const made file = made_part_begin(&k->m);
    made_text(&k->m, "{");
    put_tensors(k);
    made_printf(
        &k->m, "\"__metadata__\":{\"deepc.function\":\"%llu\",\"name\":\"f\",\"signature\":\"f()\"",
        (unsigned long long)made_number(&k->m, 1));
    put_variants(j, k);
    made_text(&k->m, "}}");
    made_align(&k->m, 8, ' ');
    const made head = made_part_end(&k->m, &file);
    made_le(&k->m, made_number(&k->m, head.n), 8);
    made_put(&k->m, head.at, head.n);
    for (uint32_t i = 0; i < k->value.n; i++)
        made_put(&k->m, k->value.at[i].bytes, dc_type_bytes(&k->value.at[i].type));
}

/* ---- what is computed ------------------------------------------------------------------------- */

static bool intact(const making *k)
{
    return made_is_intact(&k->m);
}

static void check_cells(const making *k, dc_rt *rt, dc_function *f, void *const *want)
{
    char *room = malloc(ROOM);
    uint32_t seen = 0;
    const char *name;
    dc_array a;
    for (size_t i = 0; dc_function_cell(f, i, &name, &a); i++) {
        a.data = room;
        a.bytes = ROOM;
        if (dc_function_get(f, name, &a) != DC_OK)
            fuzz_finding("get '%s': %s", name, dc_errmsg(rt));
        for (uint32_t n = 0; n < k->value.n; n++)
            if (intact(k) && k->value.at[n].is_cell && strcmp(k->value.at[n].name, name) == 0) {
                seen++;
                if (memcmp(room, want[n], dc_type_bytes(&k->value.at[n].type)) != 0)
                    fuzz_finding("state '%s' has another value", name);
            }
    }
    uint32_t cells = 0;
    for (uint32_t n = 0; n < k->value.n; n++)
        cells += k->value.at[n].is_cell;
    if (intact(k) && seen != cells)
        fuzz_finding("%u states of %u", seen, cells);
    free(room);
}

/* Calls variant n; its results, in memory of the function. */
static dc_status call(making *k, dc_rt *rt, dc_function *f, uint32_t n, dc_array *out, size_t *nout)
{
    dc_array in[16];
    size_t nin = 0;
    *nout = 0;
    for (; nin < DC_COUNTOF(in) && dc_function_argument(f, n, nin, NULL, &in[nin]); nin++) {
        void *bytes = dc_arena_alloc(k->m.arena, in[nin].bytes + 1);
        if (intact(k))
            memcpy(bytes, k->variant[n].in[nin], in[nin].bytes);
        in[nin].data = bytes;
    }
    while (*nout < 16 && dc_function_result(f, n, *nout, &out[*nout]))
        out[(*nout)++].data = NULL;
    const dc_status s = dc_call(f, in, nin, out, *nout);
    if (s == DC_E_BUG)
        fuzz_finding("call: %s", dc_errmsg(rt));
    for (size_t i = 0; s == DC_OK && i < *nout; i++) /* all of it is there */
        memcpy(dc_arena_alloc(k->m.arena, out[i].bytes + 1), out[i].data, out[i].bytes);
    return s;
}

/* What is in `now` by number of a value becomes what the variant sets. */
static void **evaluate(dc_job *j, making *k, const variant *v, void **now, uint32_t first)
{
    const dc_func *f = v->fn;
    void **result = DC_NEW_ARRAY(k->m.arena, void *, f->result.n + 1);
    for (uint32_t i = 0; i < f->result.n; i++) {
        const dc_type t = dc_node_type(f, f->result.at[i]);
        result[i] = dc_arena_alloc(k->m.arena, dc_type_bytes(&t) + 1);
    }
    if (dc_eval(j, f, DC_EVAL_ROUND, (const void *const *)v->in, result) != DC_OK)
        fuzz_finding("the interpreter refuses it");
    for (uint32_t i = 0; i < v->file.nset && !v->fails; i++)
        now[first + v->file.ncaptured + v->file.set[i]] =
            result[v->file.nresult + v->file.nprinted + i];
    return result;
}

static void check_call(dc_job *j, making *k, dc_rt *rt, dc_function *f, uint32_t n)
{
    dc_array out[16];
    size_t nout;
    uint32_t first = 0;
    void **now = DC_NEW_ARRAY(k->m.arena, void *, k->value.n + 1);
    const variant *v = &k->variant[n];
    const dc_status s = call(k, rt, f, n, out, &nout);
    if (!intact(k) || !v->exact) {
        if (intact(k) && (s != DC_OK) != v->fails)
            fuzz_finding("call: status %d, %s", (int)s, dc_errmsg(rt));
        return;
    }
    for (uint32_t i = 0; i < k->value.n; i++)
        now[i] = k->value.at[i].bytes;
    for (uint32_t i = 0; i < n; i++)
        first += k->variant[i].file.ncaptured + k->variant[i].file.ncell;
    void **result = evaluate(j, k, v, now, first);
    if ((s != DC_OK) != v->fails || nout != v->file.nresult)
        fuzz_finding("call: status %d, %zu results: %s", (int)s, nout, dc_errmsg(rt));
    for (size_t i = 0; s == DC_OK && i < nout; i++)
        if (memcmp(out[i].data, result[i], out[i].bytes) != 0)
            fuzz_finding("result %zu of variant %u is another one", i, n + 1);
    check_cells(k, rt, f, now);
}

/* A context of the device, a new one now and then: opening one takes longer than most inputs. */
static dc_rt *context_of(int device, bool *last)
{
    static const char *const name[DEVICES] = {"eval", "sim:cpu", "sim:cuda"};
    static dc_rt *open[DEVICES];
    static int calls[DEVICES];
    dc_rt *rt = open[device];
    if (rt == NULL) {
        dc_config cfg = DC_CONFIG_INIT;
        cfg.device = name[device];
        cfg.threads = 1;
        cfg.memory_limit = LIMIT;
        cfg.cache = "off";
        if (dc_open(&cfg, &rt) != DC_OK)
            fuzz_finding("open: %s", dc_errmsg(rt));
    }
    *last = ++calls[device] % INPUTS == 0;
    open[device] = *last ? NULL : rt;
    return rt;
}

static dc_status load(dc_job *j, making *k, const char *path)
{
    dc_function *f;
    bool last;
    dc_rt *rt = context_of(k->device, &last);
    const dc_status s = dc_load(rt, path, &f);
    if (s == DC_E_BUG || (s != DC_OK && intact(k)))
        fuzz_finding("load: %s", dc_errmsg(rt));
    if (s == DC_OK) {
        void **was = DC_NEW_ARRAY(k->m.arena, void *, k->value.n + 1);
        for (uint32_t i = 0; i < k->value.n; i++)
            was[i] = k->value.at[i].bytes;
        const size_t variants = dc_function_variants(f);
        if (intact(k) && variants != k->nvariant)
            fuzz_finding("%zu variants of %u", variants, k->nvariant);
        check_cells(k, rt, f, was);
        if (intact(k) || variants > 0)
            check_call(j, k, rt, f, intact(k) ? made_below(&k->m, k->nvariant) : 0);
        dc_unload(f);
    }
    if (last)
        dc_close(rt);
    return s == DC_OK ? DC_OK : dc_failf(j, DC_ERR_FORMAT_TEXT, NULL, "it is refused");
}

static dc_status body(dc_job *j, void *arg)
{
    making *k = DC_NEW(&j->scratch, making);
    made_begin(&k->m, &j->scratch, arg);
    k->device = (int)made_below(&k->m, DEVICES);
    k->module = dc_module_new();
    dc_module_defer(j, k->module);
    for (uint32_t n = 1 + made_below(&k->m, VARIANTS); k->nvariant < n; k->nvariant++)
        if (!choose_variant(k, &k->variant[k->nvariant]))
            return dc_failf(j, DC_ERR_FORMAT_TEXT, NULL, "too much is computed");
    if (k->nvariant == VARIANTS && are_alike(&k->variant[0], &k->variant[1]))
        return dc_failf(j, DC_ERR_FORMAT_TEXT, NULL, "the second variant is never called");
    put_file(j, k);
    made_end(&k->m);
    return load(j, k, fuzz_file(k->m.at, k->m.n));
}

void fuzz_one(const fuzz_input *in)
{
    fuzz_protect(body, (void *)in);
}
