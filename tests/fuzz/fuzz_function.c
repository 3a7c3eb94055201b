/*
 * Function files. The input is the text of a variant: it is parsed, then a file is made of it with the tensors that it
 * names, loaded on the interpreter or on a simulated device, and called. Another input, a whole file, is loaded as it is.
 */
#include "core/runtime/rt.h"
#include "formats/fnfile.h"
#include "formats/json.h"
#include "formats/safetensors.h"
#include "vm/deepc.h"

#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"

enum { LIMIT = 16 << 20, ARRAYS = 64, ROOM = 1 << 16 };

/* ---- a file round a variant ------------------------------------------------------------------- */

typedef struct making {
    const char *text;
    dc_text *header, *data;
    const char **name; /* tensors that are in it */
    uint32_t n;
    bool made;
} making;

static bool is_there(const making *m, const char *name)
{
    for (uint32_t i = 0; i < m->n; i++)
        if (strcmp(m->name[i], name) == 0)
            return true;
    return strcmp(name, "__metadata__") == 0;
}

static bool add_tensor(dc_job *j, making *m, const char *name, const dc_type *t)
{
    uint64_t state = m->n;
    const size_t at = m->data->n, bytes = dc_type_bytes(t);
    if (is_there(m, name))
        return true;
    dc_text_puts(m->header, m->n > 0 ? "," : "");
    if (!dc_json_print(m->header, name))
        return false;
    dc_text_printf(m->header, ":{\"dtype\":\"%s\",\"shape\":[",
                   dc_safetensors_dtype((dc_dtype)t->dtype));
    for (int i = 0; i < t->rank; i++)
        dc_text_printf(m->header, "%s%lld", i > 0 ? "," : "", (long long)t->dim[i]);
    dc_text_printf(m->header, "],\"data_offsets\":[%zu,%zu]}", at, at + bytes);
    dc_text_put(m->data, fuzz_value(&j->scratch, t, &state), bytes);
    m->name[m->n++] = name;
    return true;
}

static bool add_metadata(making *m)
{
    dc_text_printf(m->header,
                   "%s\"__metadata__\":{\"deepc.function\":\"1\",\"name\":\"f\","
                   "\"signature\":\"f()\",\"variant.1\":",
                   m->n > 0 ? "," : "");
    const bool well = dc_json_print(m->header, m->text);
    dc_text_puts(m->header, "}}");
    return well;
}

static bool make_file(dc_job *j, making *m, const dc_fnfile_variant *v)
{
    const uint32_t named = v->ncaptured + v->ncell;
    const dc_func *f = v->fn;
    if (!fuzz_is_small(f, 6000) || v->narg + named != f->param.n || f->node.n > 200)
        return false;
    m->header = dc_job_text(j);
    m->data = dc_job_text(j);
    m->name = DC_NEW_ARRAY(&j->scratch, const char *, named);
    dc_text_puts(m->header, "{");
    for (uint32_t i = 0; i < named; i++) {
        const dc_type t = dc_node_type(f, f->param.at[v->narg + i]);
        if (!add_tensor(j, m, i < v->ncaptured ? v->captured[i] : v->cell[i - v->ncaptured], &t))
            return false;
    }
    return add_metadata(m);
}

static dc_status make(dc_job *j, void *arg)
{
    making *m = arg;
    dc_fnfile_variant v;
    dc_module *module;
    DC_TRY(dc_fnfile_parse(j, &j->scratch, m->text, &v, &module));
    dc_module_defer(j, module);
    if (make_file(j, m, &v)) {
        dc_text *all = dc_job_text(j);
        const uint64_t length = m->header->n;
        dc_text_put(all, (const char *)&length, sizeof length);
        dc_text_put(all, m->header->s, m->header->n);
        if (m->data->n > 0)
            dc_text_put(all, m->data->s, m->data->n);
        fuzz_file(all->s, all->n);
        m->made = true;
    }
    return DC_OK;
}

/* ---- loaded and called ------------------------------------------------------------------------- */

static char room[ROOM];

static void call(dc_rt *rt, dc_function *f)
{
    dc_array in[ARRAYS], out[ARRAYS];
    size_t nin = 0, nout = 0;
    for (; nin < ARRAYS && dc_function_argument(f, 0, nin, NULL, &in[nin]); nin++) {
        in[nin].data = room;
        if (in[nin].bytes > sizeof room)
            return;
    }
    while (nout < ARRAYS && dc_function_result(f, 0, nout, &out[nout]))
        out[nout++].data = NULL;
    for (int times = 0; times < 2; times++) {
        const dc_status s = dc_call(f, in, nin, out, nout);
        if (s == DC_E_BUG)
            fuzz_finding("call: %s", dc_errmsg(rt));
        for (size_t i = 0; s == DC_OK && i < nout; i++) { /* all of it is there */
            void *copy = malloc(out[i].bytes + 1);
            if (copy != NULL && out[i].bytes > 0)
                memcpy(copy, out[i].data, out[i].bytes);
            free(copy);
        }
    }
}

static void read_cells(dc_rt *rt, dc_function *f)
{
    static char copy[ROOM];
    const char *name;
    dc_array c;
    for (size_t i = 0; dc_function_cell(f, i, &name, &c); i++) {
        c.data = copy;
        c.bytes = sizeof copy;
        if (dc_function_get(f, name, &c) == DC_E_BUG)
            fuzz_finding("get: %s", dc_errmsg(rt));
    }
}

static void load(const char *path, size_t n)
{
    static const char *const device[] = {"eval", "sim:cpu", "sim:cuda"};
    dc_config cfg = DC_CONFIG_INIT;
    dc_rt *rt;
    dc_function *f;
    cfg.device = device[n % DC_COUNTOF(device)];
    cfg.threads = 1;
    cfg.memory_limit = LIMIT;
    cfg.cache = "off";
    if (dc_open(&cfg, &rt) != DC_OK)
        fuzz_finding("open: %s", dc_errmsg(rt));
    const dc_status s = dc_load(rt, path, &f);
    if (s == DC_E_BUG)
        fuzz_finding("load: %s", dc_errmsg(rt));
    if (s == DC_OK) {
        call(rt, f);
        read_cells(rt, f);
    }
    dc_close(rt);
}

void fuzz_one(const fuzz_input *in)
{
    making m = {.text = in->text};
    if (in->n > 8 && in->at[8] == '{') { /* a whole file */
        load(fuzz_file(in->at, in->n), in->n);
        return;
    }
    fuzz_protect(make, &m);
    if (m.made)
        load(fuzz_path(), in->n);
}
