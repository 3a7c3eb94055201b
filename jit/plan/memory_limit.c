#include "jit/plan/memory_limit.h"

#include "core/base/number.h"
#include "core/base/shown.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN = 4 };

/* Memory that the function needs, for a sentence. */
typedef struct buffer {
    size_t bytes;
    dc_ref ref;
    uint32_t number; /* of the first among equals, so that texts do not depend on a sort */
} buffer;

typedef struct need {
    dc_arena *a; /* of `buffers` */
    const dc_exec_desc *d;
    const dc_func *fn;
    dc_memory_needs of; /* its values are found last */
    DC_VEC(buffer) buffers;
} need;

static size_t node_bytes(const dc_func *fn, dc_ref r)
{
    const dc_type t = dc_node_type(fn, r);
    return dc_type_bytes(&t);
}

/* Sums stay where they are when they are too large to count. */
static void add_bytes(size_t *sum, size_t bytes)
{
    *sum = bytes > SIZE_MAX - *sum ? SIZE_MAX : *sum + bytes;
}

static void note(need *n, dc_ref r)
{
    const buffer b = {node_bytes(n->fn, r), r, n->buffers.n};
    DC_PUSH_IN(n->a, n->buffers, b);
}

/* What every function has: arguments and cells, results. */
static void add_interface(need *n)
{
    const dc_exec_desc *d = n->d;
    for (uint32_t i = 0; i < d->nfree + d->ncell; i++) {
        add_bytes(i < d->nfree ? &n->of.arguments : &n->of.cells,
                  node_bytes(n->fn, n->fn->param.at[i]));
        note(n, n->fn->param.at[i]);
    }
    for (uint32_t i = 0; i < d->nresult; i++) {
        add_bytes(&n->of.results, node_bytes(n->fn, n->fn->result.at[i]));
        note(n, n->fn->result.at[i]);
    }
}

static int by_bytes(const void *x, const void *y)
{
    const buffer *a = x, *b = y;
    if (a->bytes != b->bytes)
        return a->bytes < b->bytes ? 1 : -1;
    return a->number < b->number ? -1 : a->number > b->number;
}

static dc_memory_value value_of(const need *n, dc_arena *a, const buffer *b)
{
    const dc_node *node = dc_node_at(n->fn, b->ref);
    const dc_type t = dc_node_type(n->fn, b->ref);
    char type[DC_TYPE_TEXT];
    dc_type_print(&t, type, sizeof type);
    dc_memory_value v = {.bytes = b->bytes,
                         .type = dc_arena_strdup(a, type),
                         .op = dc_op_row_of((dc_op)node->op)->name,
                         .where = node->origin != 0 ? n->fn->origins.at[node->origin].where : NULL};
    for (uint32_t i = 0; i < n->d->nfree + n->d->ncell && v.param == 0; i++)
        v.param = n->fn->param.at[i] == b->ref ? i + 1 : 0;
    return v;
}

static void find_values(need *n, dc_arena *a)
{
    dc_ref last = 0;
    if (n->buffers.n > 0)
        qsort(n->buffers.at, n->buffers.n, sizeof *n->buffers.at, by_bytes);
    n->of.value = DC_NEW_ARRAY(a, dc_memory_value, SHOWN);
    for (uint32_t i = 0; i < n->buffers.n && n->of.nvalue < SHOWN; i++) {
        const buffer *b = &n->buffers.at[i];
        if (b->ref != last) /* a result that is a temporary, too */
            n->of.value[n->of.nvalue++] = value_of(n, a, b);
        last = b->ref;
    }
}

/* ---- in words -------------------------------------------------------------------------------- */

/* "mul, train.lua:15"; "net.1.weight"; "argument 'x'". */
static void describe(const dc_memory_value *v, const dc_exec_desc *d, const dc_func *fn, char *out,
                     size_t room)
{
    const uint32_t i = v->param - 1;
    const bool named = v->param > 0 && i < d->nfree + d->ncell;
    const char *label = named && fn->label.at[i] != NULL ? fn->label.at[i] : "?";
    if (named)
        snprintf(out, room, i < d->nfree ? "argument '%.60s'" : "%.60s", label);
    else if (v->param > 0)
        snprintf(out, room, "a derived value");
    else
        snprintf(out, room, "%.40s%s%.80s", v->op, v->where != NULL ? ", " : "",
                 v->where != NULL ? v->where : "");
}

/* The sentence as it grows; what does not fit any more is left out. */
typedef struct sentence {
    char *text; /* MEMORY_TEXT of it */
    size_t n;
} sentence;

static bool put_text(sentence *s, const char *text)
{
    const size_t n = strlen(text);
    if (n >= DC_MEMORY_TEXT - s->n)
        return false;
    memcpy(s->text + s->n, text, n + 1);
    s->n += n;
    return true;
}

static void put_bytes(sentence *s, uint64_t bytes, const char *behind)
{
    char size[DC_NUMBER_TEXT];
    put_text(s, dc_number_bytes(bytes, size));
    put_text(s, behind);
}

static void put_parts(sentence *s, const dc_memory_needs *n)
{
    const struct {
        size_t bytes;
        const char *what;
    } part[] = {{n->temps, " between its operations"},
                {n->cells, " in parameters and states"},
                {n->arguments, " in arguments"},
                {n->results, " in results"}};
    const char *before = ": ";
    for (size_t i = 0; i < DC_COUNTOF(part); i++)
        if (part[i].bytes > 0) {
            put_text(s, before);
            put_bytes(s, part[i].bytes, part[i].what);
            before = ", ";
        }
}

/* A line for each. */
static void put_values(sentence *s, const dc_memory_needs *n, const dc_exec_desc *d,
                       const dc_func *fn)
{
    bool room = true;
    for (uint32_t i = 0; i < n->nvalue && room; i++) {
        const dc_memory_value *v = &n->value[i];
        char size[DC_NUMBER_TEXT], what[130], shown[130], line[DC_TYPE_TEXT + 200];
        describe(v, d, fn, what, sizeof what);
        dc_shown_put(shown, sizeof shown, what, strlen(what), false);
        snprintf(line, sizeof line, "\n    %-10s %.*s  %s", dc_number_bytes(v->bytes, size),
                 DC_TYPE_TEXT, v->type, shown);
        room = put_text(s, line);
    }
}

static size_t total_of(const dc_memory_needs *n)
{
    size_t total = n->temps;
    add_bytes(&total, n->cells);
    add_bytes(&total, n->arguments);
    add_bytes(&total, n->results);
    return total;
}

void dc_memory_needs_print(const dc_memory_needs *n, const dc_exec_desc *d, const dc_func *fn,
                           char text[DC_MEMORY_TEXT])
{
    sentence s = {text, 0};
    put_text(&s, "the function needs ");
    put_bytes(&s, total_of(n), " of memory");
    put_parts(&s, n);
    put_values(&s, n, d, fn);
}

/* ---- the limit ------------------------------------------------------------------------------- */

static dc_status check(dc_job *j, need *n)
{
    const size_t total = total_of(&n->of);
    char text[DC_MEMORY_TEXT];
    sentence s = {text, 0};
    if (total <= (uint64_t)j->opt->memory)
        return DC_OK;
    find_values(n, &j->scratch);
    put_text(&s, "needs ");
    put_bytes(&s, total, " of memory, the limit is ");
    put_bytes(&s, (uint64_t)j->opt->memory, "");
    put_parts(&s, &n->of);
    put_values(&s, &n->of, n->d, n->fn);
    return dc_fail(j, DC_ERR_MEMORY, &(dc_fact){.op = n->d->name, .word = {text}, .lines = true});
}

bool dc_memory_limit_allows(dc_job *j, const dc_exec_desc *d, const dc_func *fn, size_t bytes)
{
    need n = {.a = &j->scratch, .d = d, .fn = fn, .of.temps = bytes};
    if (j->opt->memory == 0)
        return true;
    add_interface(&n);
    return total_of(&n.of) <= (uint64_t)j->opt->memory;
}

/* ---- a plan ---------------------------------------------------------------------------------- */

/* The step at which most of the arena is in use: the temporaries of then are what counts. */
static uint32_t peak_of(need *n, const dc_plan *plan)
{
    size_t *begun =
        DC_NEW_ARRAY(n->a, size_t, plan->nstep + 1); /* by step: bytes alive from it on */
    size_t *ended = DC_NEW_ARRAY(n->a, size_t, plan->nstep + 1); /* and until it */
    size_t alive = 0, most = 0;
    uint32_t peak = 0;
    for (uint32_t t = 0; t < plan->ntemp; t++)
        if (plan->temp[t].first < plan->nstep) {
            begun[plan->temp[t].first] += plan->temp[t].bytes;
            ended[plan->temp[t].last] += plan->temp[t].bytes;
        }
    for (uint32_t s = 0; s < plan->nstep; s++) {
        alive += begun[s];
        if (alive > most) {
            most = alive;
            peak = s;
        }
        alive -= ended[s];
    }
    return peak;
}

static need need_of(dc_job *j, const dc_exec_desc *d, const dc_func *fn, const dc_plan *plan)
{
    need n = {.a = &j->scratch, .d = d, .fn = fn, .of.temps = plan->bytes};
    const uint32_t peak = peak_of(&n, plan);
    for (uint32_t t = 0; t < plan->ntemp; t++)
        if (plan->temp[t].first <= peak && peak <= plan->temp[t].last)
            note(&n, plan->temp[t].ref);
    add_interface(&n);
    return n;
}

dc_status dc_memory_limit_plan(dc_job *j, const dc_exec_desc *d, const dc_func *fn,
                               const dc_plan *plan)
{
    if (j->opt->memory == 0)
        return DC_OK;
    need n = need_of(j, d, fn, plan);
    return check(j, &n);
}

dc_memory_needs dc_memory_needs_of(dc_job *j, dc_arena *a, const dc_exec_desc *d, const dc_func *fn,
                                   const dc_plan *plan)
{
    need n = need_of(j, d, fn, plan);
    find_values(&n, a);
    return n.of;
}

/* ---- the interpreter ------------------------------------------------------------------------- */

/* By ref: the last node that reads it. Results are kept to the end. */
static dc_ref *last_uses(need *n, const bool *live)
{
    dc_ref *last = DC_NEW_ARRAY(n->a, dc_ref, n->fn->node.n);
    for (dc_ref r = 1; r < n->fn->node.n; r++)
        for (int i = 0; live[r] && i < dc_node_at(n->fn, r)->nin; i++)
            last[dc_node_at(n->fn, r)->in[i]] = r;
    for (uint32_t i = 0; i < n->fn->result.n; i++)
        last[n->fn->result.at[i]] = n->fn->node.n;
    return last;
}

/* Nodes run in their order: what is alive is the sum so far without what was read for the last time. */
static dc_ref peak_of_eval(need *n, const bool *live, const dc_ref *last)
{
    const uint32_t count = n->fn->node.n;
    dc_ref *ends = DC_NEW_ARRAY(n->a, dc_ref, count + 1); /* by last use: the first of a list */
    dc_ref *next = DC_NEW_ARRAY(n->a, dc_ref, count);
    size_t alive = 0;
    dc_ref peak = 0;
    for (dc_ref r = 1; r < count && alive < SIZE_MAX; r++) {
        if (!live[r] || dc_node_at(n->fn, r)->op == DC_OP_PARAM)
            continue;
        add_bytes(&alive, node_bytes(n->fn, r));
        next[r] = ends[last[r]];
        ends[last[r]] = r;
        if (alive > n->of.temps) {
            n->of.temps = alive;
            peak = r;
        }
        for (dc_ref end = ends[r]; end != 0 && alive < SIZE_MAX; end = next[end])
            alive -= node_bytes(n->fn, end);
    }
    return peak;
}

dc_status dc_memory_limit_eval(dc_job *j, const dc_exec_desc *d)
{
    need n = {.a = &j->scratch, .d = d, .fn = d->fn};
    if (j->opt->memory == 0)
        return DC_OK;
    const bool *live = dc_func_live(d->fn, n.a);
    const dc_ref *last = last_uses(&n, live);
    const dc_ref peak = peak_of_eval(&n, live, last);
    for (dc_ref r = 1; r <= peak; r++)
        if (live[r] && dc_node_at(d->fn, r)->op != DC_OP_PARAM && last[r] >= peak)
            note(&n, r);
    add_interface(&n);
    return check(j, &n);
}
