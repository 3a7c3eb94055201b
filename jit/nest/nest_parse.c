/*
 * The text of a nest back to a kernel.
 *
 *   kernel    = "kernel" name "(" [param {"," param}] ")" ["strict"] ["tf32"] "{" {memory} {statement} "}"
 *   param     = name ":" dtype "[" count "]" ["out" | "inout"] ["align" n] ["uncached"] ["nontemporal"]
 *   memory    = ("local" | "group" | "thread") name ":" dtype "[" count "]" ["swizzle" n ["atoms"]] ["fixed"]
 *               ["stages" n]
 *   statement = "for" name [":" role] "in" extent ["reduce"] [kind] {traffic} ["from" index] ["to" index]
 *               and statements on deeper lines
 *             | {"t" number "=" value} (store {"&" store} | tile) ["if" tests] ["needed" limits]
 *   kind      = "grid" | "block" | "lane" | "vector" | "unroll"
 *   traffic   = "pipeline" | "prefetch" name name number     a buffer, the axis over whose iterations, a cache
 *   role      = "batch" | "m" | "n" | "k" | "spatial" | "window" | "row" | "column" | "lane"
 *   store     = name "[" index "]" "=" value | name "[" index "]" op "=" value   (the first only)
 *   tile      = name "(" operand "," operand "," operand ")"
 *   operand   = name "[" index "by" integer "," integer "]"
 *   value     = constant | "t" number | name "[" index ["if" tests] "]"
 *             | op "(" value {"," value} ")" | ("cast." | "bitcast.") dtype "(" value ")"
 *             | dtype "(" index ")" | "test" "(" [tests] ")"
 *   tests     = index "in" integer {"&&" index "in" integer}
 *   limits    = index "<" name {"&&" index "<" name}     a parameter of type i32
 *   index     = ["-"] product {("+" | "-") product}
 *   product   = factor {("*" | "/" | "%") factor}     one side of * and the right of / % constant
 *   factor    = integer | name of an axis | "int" "(" value ")" | "(" index ")"
 *
 * One statement, declaration or line of a store to a line, except inside parentheses and brackets;
 * "#" starts a comment. Loops of one name are over one axis.
 *
 * Takes any bytes. What could overflow or go too deep later is refused here: extents and counts
 * beyond 2^48, index expressions that can leave +-2^56 or have more than 32 terms, nesting. All else
 * that is not legal is left to dc_nest_check.
 */
#include "jit/nest/matrix_tile.h"
#include "jit/nest/nest_parse_impl.h"
#include "jit/nest/nest_roles.h"
#include "jit/nest/nest_stage.h"

#include <string.h>

enum { MAX_LOOPS = 60, MAX_NAMES = 4096 };

/* Statements --------------------------------------------------------------------------------- */

static bool parse_statements(dc_np *p, int64_t outside, dc_stmt **out);

static void parse_axis_words(dc_np *p, dc_axis *a)
{
    static const char *const kinds[] = {"serial", "grid", "vector", "unroll", "block", "lane"};
    a->reduce = dc_np_accept_word(p, "reduce");
    for (uint8_t i = 1; i < DC_COUNTOF(kinds); i++)
        if (a->kind == DC_AXIS_SERIAL && dc_np_accept_word(p, kinds[i]))
            a->kind = i;
    a->pipeline = dc_np_accept_word(p, "pipeline");
}

/* ":" and a role, or nothing. */
static bool parse_role(dc_np *p, dc_axis *a)
{
    if (!dc_np_accept_char(p, ':'))
        return true;
    const dc_np_token w = dc_np_word(p);
    const int role = dc_role_find(w.s, (size_t)w.n);
    if (role < 0)
        return dc_np_expected(p, "a role of an axis");
    p->scan.at += w.n;
    a->role = (uint8_t)role;
    return true;
}

/* "prefetch x0 i 1" of a loop over `within`, inside one over i or that loop itself. */
static bool parse_prefetch(dc_np *p, uint32_t within)
{
    uint32_t buf;
    dc_np_token over;
    int64_t level;
    if (!dc_np_buffer(p, &buf) || !dc_np_want_label(p, "the name of an axis", &over) ||
        !dc_np_want_integer(p, UINT8_MAX, &level))
        return false;
    const char *name = dc_arena_printf(&p->k->arena, "%.*s", over.n, over.s);
    const int axis = dc_axis_find(p->k, name);
    dc_buffer *b = &p->k->buf.at[buf];
    if (axis < 0)
        return dc_np_refuse(p, "no loop over '%s' here", name);
    if (b->prefetch != 0 &&
        (b->prefetch != level || b->over != (uint32_t)axis || b->within != within))
        return dc_np_refuse(p, "%s is prefetched elsewhere", b->name);
    b->prefetch = (uint8_t)level;
    b->over = (uint32_t)axis;
    b->within = within;
    return true;
}

static bool parse_traffic(dc_np *p, uint32_t axis)
{
    while (dc_np_accept_word(p, "prefetch"))
        if (!parse_prefetch(p, axis))
            return false;
    return true;
}

static bool find_axis(dc_np *p, const dc_axis *a, uint32_t *out)
{
    const int known = dc_axis_find(p->k, a->name);
    if (known < 0) {
        if (p->k->axis.n == MAX_NAMES)
            return dc_np_refuse(p, "more than %d axes", MAX_NAMES);
        *out = dc_axis_new(p->k, a->name, a->extent, a->reduce);
        p->k->axis.at[*out].kind = a->kind;
        p->k->axis.at[*out].role = a->role;
        p->k->axis.at[*out].pipeline = a->pipeline;
        return true;
    }
    const dc_axis *b = &p->k->axis.at[known];
    *out = (uint32_t)known;
    if (a->extent != b->extent || a->kind != b->kind || a->role != b->role ||
        a->reduce != b->reduce || a->pipeline != b->pipeline)
        return dc_np_refuse(p, "loops over '%s' differ", a->name);
    return true;
}

static bool parse_loop(dc_np *p, dc_stmt **out)
{
    dc_axis a = {.extent = 0};
    dc_np_token name;
    uint32_t axis = 0;
    const int64_t indent = p->indent;
    const uint32_t line = (uint32_t)p->scan.line;
    if (!dc_np_want_word(p, "for") || !dc_np_want_label(p, "the name of an axis", &name) ||
        !parse_role(p, &a) || !dc_np_want_word(p, "in") ||
        !dc_np_want_integer(p, DC_NP_MAX_COUNT, &a.extent))
        return false;
    a.name = dc_arena_printf(&p->k->arena, "%.*s", name.n, name.s);
    parse_axis_words(p, &a);
    if (!find_axis(p, &a, &axis) || !parse_traffic(p, axis))
        return false;
    *out = dc_stmt_loop(p->k, axis, NULL);
    (*out)->line = line;
    (*out)->ranges = axis;
    if ((dc_np_accept_word(p, "from") && !dc_np_index(p, &(*out)->from)) ||
        (dc_np_accept_word(p, "to") && !dc_np_index(p, &(*out)->to)) || !dc_np_next_line(p))
        return false;
    return parse_statements(p, indent, &(*out)->body);
}

/* "=", or an operation and "=": then *op is that operation. */
static bool parse_assign(dc_np *p, bool first, dc_op *op)
{
    *op = DC_OP__COUNT;
    const dc_np_token w = dc_np_word(p);
    if (w.n > 0) {
        if (!first || !dc_op_find(w.s, (size_t)w.n, op) ||
            (dc_op_row_of(*op)->flags & DC_OPF_ASSOC) == 0)
            return dc_np_expected(p, first ? "'=' or an operation that accumulates" : "'='");
        p->scan.at += w.n;
    }
    return dc_np_want_char(p, '=');
}

static bool parse_put(dc_np *p, bool first, dc_put *put, bool *reduces)
{
    dc_op op;
    if (!dc_np_buffer(p, &put->buf) || !dc_np_open(p, '[') || !dc_np_index(p, &put->at) ||
        !dc_np_close(p, ']') || !parse_assign(p, first, &op) || !dc_np_value(p, &put->value))
        return false;
    const dc_dtype have = (dc_dtype)p->k->vx.at[put->value].dtype;
    const dc_buffer *b = &p->k->buf.at[put->buf];
    if (have != b->dtype)
        return dc_np_refuse(p, "%s holds %s, not %s", b->name, dc_dtype_name((dc_dtype)b->dtype),
                            dc_dtype_name(have));
    *reduces = op != DC_OP__COUNT;
    if (!*reduces)
        return true;
    const dc_vx in[2] = {dc_vx_load(p->k, put->buf, put->at, (dc_pred){0}), put->value};
    dc_dtype t;
    if (!dc_nest_op_dtype(p->k, op, in, &t) || t != have)
        return dc_np_refuse(p, "%s does not accumulate %s", dc_op_row_of(op)->name,
                            dc_dtype_name(have));
    put->value = dc_vx_op(p->k, op, t, in, 2);
    return dc_np_measure(p);
}

static bool parse_limits(dc_np *p, dc_stmt *t)
{
    bool more = dc_np_accept_word(p, "needed");
    while (more) {
        dc_limit limit;
        if (!dc_np_index(p, &limit.ix) || !dc_np_want_char(p, '<') || !dc_np_buffer(p, &limit.buf))
            return false;
        dc_stmt_add_limit(p->k, t, limit);
        dc_np_skip(p);
        more = strncmp(p->scan.at, "&&", 2) == 0;
        p->scan.at += more ? 2 : 0;
    }
    return true;
}

static bool parse_set(dc_np *p, dc_stmt **out)
{
    DC_VEC(dc_put) put = {0};
    dc_stmt *t = *out = dc_stmt_set(p->k, 0);
    t->line = (uint32_t)p->scan.line;
    const int64_t indent = p->indent;
    bool reduces = false;
    do {
        dc_put one = {0};
        if (t->pred.n > 0 || t->nlimit > 0)
            return dc_np_refuse(p, "the tests stand behind the last store");
        if (!parse_put(p, put.n == 0, &one, &reduces) || !dc_np_guard(p, &t->pred) ||
            !parse_limits(p, t))
            return false;
        t->reduces |= reduces;
        DC_PUSH_IN(&p->k->arena, put, one);
        if (!dc_np_next_line(p))
            return false;
    } while (p->indent == indent && dc_np_accept_char(p, '&'));
    t->put = put.at;
    t->nput = put.n;
    return true;
}

static bool want_signed(dc_np *p, int64_t *out)
{
    const bool negative = dc_np_accept_char(p, '-');
    if (!dc_np_want_integer(p, DC_NP_MAX_COUNT, out))
        return false;
    *out = negative ? -*out : *out;
    return true;
}

static bool parse_operand(dc_np *p, dc_tile_operand *o)
{
    return dc_np_buffer(p, &o->buf) && dc_np_open(p, '[') && dc_np_index(p, &o->at) &&
           dc_np_want_word(p, "by") && want_signed(p, &o->row) && dc_np_want_char(p, ',') &&
           want_signed(p, &o->col) && dc_np_close(p, ']');
}

static bool parse_tile(dc_np *p, dc_stmt **out)
{
    char name[32];
    if (!dc_np_want_name(p, "a matrix instruction", name, sizeof name))
        return false;
    const int which = dc_tile_find(name);
    if (which < 0)
        return dc_np_refuse(p, "no matrix instruction '%s'", name);
    dc_stmt *t = *out = dc_stmt_set(p->k, 0);
    t->kind = DC_STMT_TILE;
    t->line = (uint32_t)p->scan.line;
    t->tile = DC_NEW(&p->k->arena, dc_tile);
    t->tile->which = (uint32_t)which;
    return dc_np_open(p, '(') && parse_operand(p, &t->tile->c) && dc_np_want_char(p, ',') &&
           parse_operand(p, &t->tile->a) && dc_np_want_char(p, ',') &&
           parse_operand(p, &t->tile->b) && dc_np_close(p, ')') && dc_np_guard(p, &t->pred) &&
           parse_limits(p, t) && dc_np_next_line(p);
}

static bool parse_temp_line(dc_np *p)
{
    int64_t number;
    dc_vx v;
    if (!dc_np_temp_number(p, &number))
        return false;
    if (number != p->temp.n)
        return dc_np_refuse(p, "t%u is the next value", p->temp.n);
    if (!dc_np_want_char(p, '=') || !dc_np_value(p, &v) || !dc_np_next_line(p))
        return false;
    DC_PUSH_IN(&p->scan.j->scratch, p->temp, v);
    return true;
}

static bool parse_statement(dc_np *p, dc_stmt **out)
{
    p->temp.n = 0;
    const int64_t indent = p->indent;
    dc_np_token w = dc_np_word(p);
    if (dc_np_is(w, "for") && dc_np_behind(w) != '[')
        return parse_loop(p, out);
    while (dc_np_is_temp(w) && dc_np_behind(w) == '=') {
        if (!parse_temp_line(p))
            return false;
        w = dc_np_word(p);
        if (p->indent != indent || *p->scan.at == '}')
            return dc_np_refuse(p, "a store expected on the line after t%u", p->temp.n - 1);
    }
    return w.n > 0 && dc_np_behind(w) == '(' ? parse_tile(p, out) : parse_set(p, out);
}

/* Those on lines that are indented more than `outside`, all alike. */
static bool parse_statements(dc_np *p, int64_t outside, dc_stmt **out)
{
    const int64_t indent = p->indent;
    bool parsed = true;
    if (p->indent <= outside || *p->scan.at == '}' || *p->scan.at == '\0')
        return true;
    if (++p->nested > MAX_LOOPS)
        return dc_np_refuse(p, "loops nested too deeply");
    while (parsed && p->indent > outside && *p->scan.at != '}' && *p->scan.at != '\0') {
        if (p->indent != indent)
            return dc_np_refuse(p, "indented unlike the lines above");
        parsed = parse_statement(p, out);
        if (parsed)
            out = &(*out)->next;
    }
    p->nested--;
    return parsed;
}

/* Kernels ------------------------------------------------------------------------------------ */

static bool parse_buffer(dc_np *p, dc_scope scope)
{
    dc_np_token name;
    dc_mode mode = scope == DC_SCOPE_PARAM ? DC_MODE_IN : DC_MODE_OUT;
    dc_dtype t;
    int64_t count, align = 0, swizzle = 0, stages = 0;
    if (!dc_np_want_label(p, "the name of a buffer", &name) || !dc_np_want_char(p, ':') ||
        !dc_np_want_dtype(p, &t) || !dc_np_open(p, '[') ||
        !dc_np_want_integer(p, DC_NP_MAX_COUNT, &count) || !dc_np_close(p, ']'))
        return false;
    if (scope == DC_SCOPE_PARAM && dc_np_accept_word(p, "out"))
        mode = DC_MODE_OUT;
    else if (scope == DC_SCOPE_PARAM && dc_np_accept_word(p, "inout"))
        mode = DC_MODE_INOUT;
    if (scope == DC_SCOPE_PARAM && dc_np_accept_word(p, "align") &&
        !dc_np_want_integer(p, DC_BUFFER_ALIGN, &align))
        return false;
    if ((align & (align - 1)) != 0 || (align != 0 && align < (int64_t)dc_dtype_size(t)))
        return dc_np_refuse(p, "an alignment of %d bytes", (int)align);
    if (scope != DC_SCOPE_PARAM && dc_np_accept_word(p, "swizzle") &&
        !dc_np_want_integer(p, UINT32_MAX, &swizzle))
        return false;
    if (swizzle != 0 && !dc_nest_may_swizzle(t, swizzle))
        return dc_np_refuse(p, "rows of %d elements are not swizzled", (int)swizzle);
    const bool atoms = swizzle != 0 && dc_np_accept_word(p, "atoms");
    if (atoms && !dc_nest_has_atoms(t, swizzle, count))
        return dc_np_refuse(p, "rows of %d elements make no atoms", (int)swizzle);
    const bool fixed = scope == DC_SCOPE_GROUP && dc_np_accept_word(p, "fixed");
    if (scope != DC_SCOPE_PARAM && dc_np_accept_word(p, "stages") &&
        !dc_np_want_integer(p, DC_NEST_STAGES, &stages))
        return false;
    const bool uncached = scope == DC_SCOPE_PARAM && dc_np_accept_word(p, "uncached");
    const bool nontemporal =
        mode == DC_MODE_OUT && scope == DC_SCOPE_PARAM && dc_np_accept_word(p, "nontemporal");
    for (uint32_t i = 0; i < p->k->buf.n; i++)
        if (dc_np_is(name, p->k->buf.at[i].name))
            return dc_np_refuse(p, "two buffers '%.*s'", name.n, name.s);
    if (p->k->buf.n == MAX_NAMES)
        return dc_np_refuse(p, "more than %d buffers", MAX_NAMES);
    const uint32_t buf = dc_buffer_new(p->k, dc_arena_printf(&p->k->arena, "%.*s", name.n, name.s),
                                       t, count, scope, mode);
    p->k->buf.at[buf].align = (uint8_t)align;
    p->k->buf.at[buf].swizzle = (uint32_t)swizzle;
    p->k->buf.at[buf].atoms = atoms;
    p->k->buf.at[buf].fixed = fixed;
    p->k->buf.at[buf].stages = (uint32_t)stages;
    p->k->buf.at[buf].uncached = uncached;
    p->k->buf.at[buf].nontemporal = nontemporal;
    return true;
}

static bool parse_params(dc_np *p)
{
    dc_np_skip(p);
    if (*p->scan.at == ')')
        return dc_np_close(p, ')');
    do
        if (!parse_buffer(p, DC_SCOPE_PARAM))
            return false;
    while (dc_np_accept_char(p, ','));
    return dc_np_close(p, ')');
}

static bool parse_head(dc_np *p)
{
    dc_np_skip(p);
    if ((*p->scan.at == '\n' && !dc_np_next_line(p)) || !dc_np_want_word(p, "kernel") ||
        !dc_np_want_name(p, "the name of a kernel", p->k->name, sizeof p->k->name) ||
        !dc_np_open(p, '('))
        return false;
    if (!parse_params(p))
        return false;
    p->k->strict = dc_np_accept_word(p, "strict");
    p->k->tf32 = dc_np_accept_word(p, "tf32");
    return dc_np_want_char(p, '{') && dc_np_next_line(p);
}

static bool parse_memory(dc_np *p)
{
    static const struct {
        const char *word;
        dc_scope scope;
    } scopes[] = {
        {"local", DC_SCOPE_LOCAL}, {"group", DC_SCOPE_GROUP}, {"thread", DC_SCOPE_THREAD}};
    for (;;) {
        const dc_np_token w = dc_np_word(p);
        const dc_scope none = DC_SCOPE_PARAM;
        dc_scope scope = none;
        for (size_t i = 0; i < DC_COUNTOF(scopes); i++)
            if (dc_np_is(w, scopes[i].word) && dc_np_behind(w) != '[')
                scope = scopes[i].scope;
        if (scope == none)
            return true;
        p->scan.at += w.n;
        if (!parse_buffer(p, scope) || !dc_np_next_line(p))
            return false;
    }
}

static bool parse_kernel(dc_np *p)
{
    if (!parse_head(p) || !parse_memory(p) || !parse_statements(p, -1, &p->k->root) ||
        !dc_np_want_char(p, '}') || !dc_np_next_line(p))
        return false;
    return *p->scan.at == '\0' || dc_np_expected(p, "the end of the text");
}

static void release_kernel(void *k)
{
    dc_kernel_free(k);
}

dc_status dc_nest_parse(dc_job *j, const char *text, dc_kernel **out)
{
    const dc_mark mark = dc_arena_mark(&j->scratch);
    dc_np p = {.scan = {j, text, 1, dc_np_word_length}, .k = dc_kernel_new("")};
    *out = NULL;
    dc_job_defer(j, release_kernel, p.k);
    dc_np_measure(&p);
    const dc_status status = dc_job_settle(j, p.k, parse_kernel(&p) ? DC_OK : j->err.status);
    dc_arena_rewind(&j->scratch, mark);
    DC_TRY(status);
    p.k->kind = (uint8_t)dc_kind_of_loops(p.k);
    *out = p.k;
    return DC_OK;
}
