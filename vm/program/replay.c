/*
 * Replay: a file about a bug to a call of its function, on the device and on the interpreter.
 *
 * A file is not trusted. So it decides what is computed and how, but no setting of it
 * that names a file, a library or a command is used; and the environment goes before the file, so
 * that other settings can be tried: DEEPC_OPT=0 deepc --replay FILE.
 */
#define _POSIX_C_SOURCE 200809L /* setenv */
#include "vm/program/replay.h"

#include "core/base/digits.h"
#include "core/base/file.h"
#include "core/ir/gtext.h"
#include "core/runtime/rt.h"
#include "core/runtime/storage.h"
#include "jit/jit.h"
#include "vm/deepc.h"
#include "vm/program/say.h"
#include "vm/sink.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_BYTES = 64 << 20, MOST_VALUES = 999999 };

/* Sums of floats in another order differ; a wrong kernel differs by more. */
static const double tolerance = 1e-3;

typedef struct story { /* what the file tells */
    char *text;        /* cut into lines */
    const char *name, *error, *version, *module;
    dc_exec_desc desc; /* but fn */
    char *sets;        /* numbers of cells, in words */
    uint32_t *set;
} story;

typedef struct outcome { /* of one run */
    dc_status status;
    char why[1100];
    dc_fault fault;
    uint32_t n; /* results and cells */
    dc_type *type;
    void **value; /* on the host */
} outcome;

/* ---- the file -------------------------------------------------------------------------------- */

static char *read_text(const char *path)
{
    char *text = dc_file_read(path, MOST_BYTES);
    if (text == NULL && (errno == EFBIG || errno == ENOMEM))
        dc_sayf(stderr, "deepc: %s is too large\n", path);
    else if (text == NULL)
        dc_sayf(stderr, "deepc: %s: %s\n", path, strerror(errno));
    return text;
}

/* Settings that decide what is compiled, and name nothing outside of deepc. */
static void use_setting(char *text)
{
    static const char *const known[] = {"DEEPC_DEVICE", "DEEPC_MATH",    "DEEPC_CHECK",
                                        "DEEPC_OPT",    "DEEPC_TARGET",  "DEEPC_THREADS",
                                        "DEEPC_SKIP",   "DEEPC_COMPILE", "DEEPC_COMPARE"};
    char *value = strchr(text, '=');
    if (value == NULL)
        return;
    *value++ = '\0';
    for (size_t i = 0; i < DC_COUNTOF(known); i++)
        if (strcmp(text, known[i]) == 0) {
            setenv(text, value, 0);
            dc_sayf(stdout, "with %s=%s\n", text, value);
            return;
        }
    dc_sayf(stdout, "without %s=%s, which the bug was found with\n", text, value);
}

/* "0 2 3"; not before the counts are known, which may come later. */
static bool read_sets(story *s)
{
    const char *text = s->sets;
    s->desc.set = s->set = calloc((size_t)s->desc.nset + 1, sizeof *s->set);
    for (uint32_t n = 0; s->set != NULL && n < s->desc.nset; n++) {
        uint64_t cell;
        if ((n > 0 && *text++ != ' ') ||
            dc_digits_unsigned(&text, NULL, MOST_VALUES, &cell) != DC_DIGITS_OK)
            return false;
        s->set[n] = (uint32_t)cell;
    }
    return s->set != NULL && *text == '\0';
}

static bool read_counts(story *s, const char *text)
{
    dc_exec_desc *d = &s->desc;
    uint32_t once = 0;
    const struct {
        const char *word;
        uint32_t *to;
    } row[] = {{"nfree", &d->nfree}, {"ncell", &d->ncell},   {"nresult", &d->nresult},
               {"nset", &d->nset},   {"ncheck", &d->ncheck}, {"nfixed", &d->nfixed},
               {"once", &once}};
    for (size_t i = 0; i < DC_COUNTOF(row); i++) {
        if (i == 5 && *text == '\0') /* older files end there */
            break;
        if ((i > 0 && *text++ != ' ') ||
            !dc_digits_after(&text, row[i].word, MOST_VALUES, row[i].to))
            return false;
    }
    d->once = once != 0;
    return *text == '\0' && d->nfixed <= d->nfree;
}

/* "word: text"; false if it makes no sense. */
static bool read_line(story *s, char *line)
{
    char *text = strstr(line, ": ");
    if (line[0] == '#' || line[0] == '\0' || strcmp(line, "set:") == 0)
        return true;
    if (text == NULL)
        return false;
    *text = '\0';
    text += 2;
    if (strcmp(line, "error") == 0)
        s->error = text;
    else if (strcmp(line, "version") == 0)
        s->version = text;
    else if (strcmp(line, "name") == 0)
        s->name = text;
    else if (strcmp(line, "setting") == 0)
        use_setting(text);
    else if (strcmp(line, "counts") == 0)
        return read_counts(s, text);
    else if (strcmp(line, "set") == 0)
        s->sets = text;
    return true;
}

static bool read_story(const char *path, story *s)
{
    static char no_sets[] = "";
    *s = (story){.text = read_text(path), .error = "none", .version = "unknown", .sets = no_sets};
    char *line = s->text, *end;
    for (int n = 1; line != NULL && (end = strchr(line, '\n')) != NULL; line = end + 1, n++) {
        *end = '\0';
        if (strcmp(line, "module:") == 0) {
            s->module = end + 1;
            break;
        }
        if (!read_line(s, line)) {
            dc_sayf(stderr, "deepc: %s:%d: not a line of a file about a bug\n", path, n);
            return false;
        }
    }
    const bool whole = s->module != NULL && s->name != NULL && read_sets(s);
    if (s->text != NULL && !whole)
        dc_sayf(stderr, "deepc: %s: no file about a bug, or not all of it\n", path);
    return whole;
}

/* ---- values ---------------------------------------------------------------------------------- */

static uint64_t next(uint64_t *state)
{
    return dc_hash_mix(*state += 0x9e3779b97f4a7c15u, 1);
}

/* Floats in -1..1, small integers; the same for the same number of the parameter. */
static void draw_values(const dc_type *t, uint32_t number, char *at)
{
    const dc_dtype dtype = (dc_dtype)t->dtype;
    const int64_t n = dc_type_count(t);
    uint64_t state = number;
    for (int64_t i = 0; i < n; i++) {
        const uint64_t draw = next(&state) >> 40;
        const double v = dc_dtype_is_float(dtype) ? (double)draw / (1 << 23) - 1
                                                  : (double)(draw % (dtype == DC_BOOL ? 2 : 10));
        dc_bits_store(dtype, at + (size_t)i * dc_dtype_size(dtype), dc_bits_of(dtype, v));
    }
}

static dc_status make_tensor(dc_rt *rt, dc_job *j, const dc_type *t, uint32_t number,
                             dc_tensor **out)
{
    const size_t bytes = dc_type_bytes(t);
    void *host = dc_arena_alloc(&j->scratch, bytes);
    draw_values(t, number, host);
    DC_TRY(dc_tensor_new(rt, j, t, out));
    return rt->device->ops->upload(rt->device, j, dc_tensor_mem(*out), host, bytes);
}

/* ---- one run --------------------------------------------------------------------------------- */

typedef struct playing {
    const story *s;
    dc_rt *rt;
    dc_module *module;
    dc_exec *exec;
    dc_inst *inst;
    dc_tensor **in, **out;
    dc_cell **cell;
    outcome *result;
} playing;

static dc_status build_function(playing *p, dc_job *j)
{
    dc_exec_desc d = p->s->desc;
    DC_TRY(dc_module_parse(j, p->s->module, &p->module));
    if (p->module->func.n == 0)
        return dc_failf(j, DC_ERR_FORMAT, "replay", "no function");
    d.fn = p->module->func.at[0];
    d.name = p->s->name;
    DC_TRY(dc_exec_desc_check(j, &d, "replay"));
    return dc_exec_build(p->rt, j, &d, &p->exec);
}

static dc_status make_values(playing *p, dc_job *j, const dc_func *fn)
{
    const dc_exec_desc *d = &p->s->desc;
    p->in = calloc(fn->param.n + 1, sizeof *p->in);
    p->cell = calloc(d->ncell + 1, sizeof *p->cell);
    p->out = calloc(d->nresult + 1, sizeof *p->out);
    if (p->in == NULL || p->cell == NULL || p->out == NULL)
        return dc_fail(j, DC_ERR_NOMEM, NULL);
    for (uint32_t i = 0; i < fn->param.n; i++) {
        const dc_type t = dc_node_type(fn, fn->param.at[i]);
        DC_TRY(make_tensor(p->rt, j, &t, i, &p->in[i]));
        if (i < d->nfree)
            continue;
        dc_cell **cell = &p->cell[i - d->nfree];
        DC_TRY(dc_cell_new(p->rt, j, &t, fn->label.at[i], true, cell));
        DC_TRY(dc_cell_write(*cell, j, p->in[i]));
    }
    return DC_OK;
}

static dc_status read_value(playing *p, dc_job *j, const dc_type *t, const void *mem)
{
    outcome *o = p->result;
    const size_t bytes = dc_type_bytes(t);
    o->type[o->n] = *t;
    o->value[o->n] = malloc(bytes + 1);
    if (o->value[o->n] == NULL)
        return dc_fail(j, DC_ERR_NOMEM, NULL);
    return p->rt->device->ops->download(p->rt->device, j, o->value[o->n++], mem, bytes);
}

static dc_status read_values(playing *p, dc_job *j)
{
    const dc_exec_desc *d = &p->s->desc;
    outcome *o = p->result;
    o->type = calloc(d->nresult + d->ncell + 1, sizeof *o->type);
    o->value = calloc(d->nresult + d->ncell + 1, sizeof *o->value);
    if (o->type == NULL || o->value == NULL)
        return dc_fail(j, DC_ERR_NOMEM, NULL);
    for (uint32_t r = 0; r < d->nresult; r++)
        DC_TRY(read_value(p, j, &p->out[r]->type, dc_tensor_mem(p->out[r])));
    for (uint32_t c = 0; c < d->ncell; c++)
        DC_TRY(read_value(p, j, &p->cell[c]->type, p->cell[c]->store->mem));
    return DC_OK;
}

static dc_status play_body(dc_job *j, void *arg)
{
    playing *p = arg;
    DC_TRY(build_function(p, j));
    const dc_func *fn = p->module->func.at[0];
    DC_TRY(make_values(p, j, fn));
    dc_arg *value = DC_NEW_ARRAY(&j->scratch, dc_arg, fn->param.n + 1);
    for (uint32_t i = 0; i < p->s->desc.nfree; i++)
        value[i].tensor = p->in[i];
    DC_TRY(dc_inst_new(p->rt, j, p->exec, p->cell, &p->inst));
    DC_TRY(dc_inst_call(p->inst, j, value, p->out, &p->result->fault));
    return read_values(p, j);
}

static void release_playing(playing *p)
{
    const dc_exec_desc *d = &p->s->desc;
    const uint32_t nin =
        p->module != NULL && p->module->func.n > 0 ? p->module->func.at[0]->param.n : 0;
    for (uint32_t i = 0; p->in != NULL && i < nin; i++)
        dc_tensor_release(p->in[i]);
    for (uint32_t r = 0; p->out != NULL && r < d->nresult; r++)
        dc_tensor_release(p->out[r]);
    dc_inst_free(p->inst);
    for (uint32_t c = 0; p->cell != NULL && c < d->ncell; c++)
        if (p->cell[c] != NULL)
            dc_cell_release(p->cell[c]);
    dc_exec_release(p->exec);
    if (p->module != NULL)
        dc_module_free(p->module);
    free(p->in);
    free(p->out);
    free(p->cell);
}

static void play(const story *s, const char *device, outcome *o)
{
    dc_config cfg = DC_CONFIG_INIT;
    playing p = {.s = s, .result = o};
    *o = (outcome){.fault = {.check = -1}};
    cfg.device = device;
    cfg.log = dc_sink_stderr;
    o->status = dc_open(&cfg, &p.rt);
    if (o->status == DC_OK) {
        p.rt->job.on_bug = NULL; /* there is a file about it already */
        o->status = dc_protect(&p.rt->job, play_body, &p);
    }
    snprintf(o->why, sizeof o->why, "%s", dc_errmsg(p.rt));
    if (o->fault.check >= 0) /* of the values, not of deepc */
        o->status = DC_OK;
    release_playing(&p);
    dc_close(p.rt);
}

static void drop(outcome *o)
{
    for (uint32_t i = 0; i < o->n; i++)
        free(o->value[i]);
    free(o->value);
    free(o->type);
}

/* ---- comparing ------------------------------------------------------------------------------- */

/* The largest difference, of floats as a part of the largest magnitude; NaN equals NaN. */
static double difference(const dc_type *t, const char *a, const char *b)
{
    const dc_dtype dtype = (dc_dtype)t->dtype;
    const int64_t n = dc_type_count(t);
    double most = 0, apart = 0;
    for (int64_t i = 0; i < n; i++) {
        const size_t at = (size_t)i * dc_dtype_size(dtype);
        const uint64_t x = dc_bits_load(dtype, a + at), y = dc_bits_load(dtype, b + at);
        const double v = dc_value_of(dtype, x), w = dc_value_of(dtype, y);
        if (x == y || (isnan(v) && isnan(w)))
            continue;
        if (!dc_dtype_is_float(dtype) || !isfinite(v) || !isfinite(w))
            return INFINITY;
        apart = fmax(apart, fabs(v - w));
    }
    for (int64_t i = 0; i < n && apart > 0; i++)
        most = fmax(most, fabs(dc_value_of(
                              dtype, dc_bits_load(dtype, b + (size_t)i * dc_dtype_size(dtype)))));
    return apart > 0 ? apart / fmax(most, 1) : 0;
}

static bool compare(const story *s, const outcome *got, const outcome *want)
{
    bool same = got->fault.check == want->fault.check && got->n == want->n;
    if (got->fault.check >= 0 || want->fault.check >= 0)
        dc_sayf(stdout, "checks: %d on the device, %d on the interpreter\n", got->fault.check,
                want->fault.check);
    for (uint32_t i = 0; i < got->n && i < want->n; i++) {
        const double by = difference(&want->type[i], got->value[i], want->value[i]);
        const bool is_result = i < s->desc.nresult;
        char type[DC_TYPE_TEXT];
        dc_type_print(&want->type[i], type, sizeof type);
        dc_sayf(stdout, "%s %u, %s: differs by %g%s\n", is_result ? "result" : "cell",
                is_result ? i + 1 : i - s->desc.nresult + 1, type, by,
                by <= tolerance ? "" : ", too much");
        same = same && by <= tolerance;
    }
    return same;
}

static bool report_outcome(const story *s, const outcome *got, const outcome *want)
{
    if (got->status != DC_OK)
        dc_sayf(stdout, "it fails: %s\n", got->why);
    if (want->status != DC_OK)
        dc_sayf(stdout, "it fails on the interpreter: %s\n", want->why);
    if (got->status != DC_OK || want->status != DC_OK)
        return false;
    const bool same = compare(s, got, want);
    dc_sayf(stdout, "%s\n",
            same ? "no failure" : "it fails: the results are not the interpreter's");
    return same;
}

int dc_replay(const char *path)
{
    story s;
    outcome got = {0}, want = {0};
    bool well = read_story(path, &s);
    if (well) {
        dc_sayf(stdout, "%s: %s\nfound by version %s, this is %s\n", s.name, s.error, s.version,
                DC_VERSION);
        play(&s, NULL, &got);
        play(&s, "eval", &want);
        well = report_outcome(&s, &got, &want);
        drop(&got);
        drop(&want);
    }
    dc_xfree(s.text);
    free(s.set);
    return well ? 0 : 1;
}
