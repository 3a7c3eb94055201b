/*
 * Index expressions and values of the text of a nest. What is made goes through the constructors of
 * jit/nest/nest.h and is canonical; its size and depth are bounded here, before something overflows.
 */
#include "jit/nest/nest_parse_impl.h"

#include <string.h>

enum { MAX_NESTED = 250, MAX_TERMS = 32, MAX_DEPTH = 4000 };

static bool enter(dc_np *p)
{
    return ++p->nested <= MAX_NESTED || dc_np_refuse(p, "nested too deeply");
}
static uint32_t max_u32(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

static uint32_t pred_depth(const dc_np *p, dc_pred pred)
{
    uint32_t d = 0;
    for (uint32_t i = 0; i < pred.n; i++)
        d = max_u32(d, p->idepth.at[pred.range[i].ix]);
    return d;
}

static bool measure_vx(dc_np *p, const dc_vx_node *n)
{
    uint32_t d = max_u32(p->idepth.at[n->at], pred_depth(p, n->pred));
    for (int i = 0; i < n->n; i++)
        d = max_u32(d, p->vdepth.at[n->in[i]]);
    DC_PUSH_IN(&p->scan.j->scratch, p->vdepth, (uint16_t)(d + 1));
    return d < MAX_DEPTH;
}

static bool measure_ix(dc_np *p, const dc_ix_node *x)
{
    uint32_t d = 0;
    for (uint32_t i = 0; i < x->n; i++) {
        const dc_atom_node *a = &p->k->atom.at[x->term[i].atom];
        if (a->kind == DC_ATOM_VALUE)
            d = max_u32(d, p->vdepth.at[a->value]);
        else if (a->kind != DC_ATOM_AXIS)
            d = max_u32(d, p->idepth.at[a->of]);
    }
    DC_PUSH_IN(&p->scan.j->scratch, p->idepth, (uint16_t)(d + 1));
    return d < MAX_DEPTH;
}

bool dc_np_measure(dc_np *p)
{
    bool fits = true;
    while (p->vdepth.n < p->k->vx.n || p->idepth.n < p->k->ix.n) {
        if (p->idepth.n < p->k->ix.n)
            fits &= measure_ix(p, &p->k->ix.at[p->idepth.n]);
        else
            fits &= measure_vx(p, &p->k->vx.at[p->vdepth.n]);
    }
    return fits || dc_np_refuse(p, "expressions nested too deeply");
}

static int64_t distance(int64_t v)
{
    return v == INT64_MIN ? INT64_MAX : v < 0 ? -v : v;
}

/* How far from 0 any part of the sum can be; INT64_MAX is that or more. */
static int64_t magnitude(const dc_np *p, dc_ix a)
{
    const dc_ix_node *x = &p->k->ix.at[a];
    int64_t sum = distance(x->c);
    for (uint32_t i = 0; i < x->n; i++) {
        const dc_atom_node *at = &p->k->atom.at[x->term[i].atom];
        const int64_t most = dc_max_i64(distance(at->lo), distance(at->hi));
        int64_t part;
        if (!dc_mul_ok(distance(x->term[i].coef), most, &part) || !dc_add_ok(sum, part, &sum))
            return INT64_MAX;
    }
    return sum;
}

static bool finish_ix(dc_np *p, dc_ix *out, dc_ix made)
{
    *out = made;
    if (magnitude(p, made) > DC_NP_MAX_INDEX || p->k->ix.at[made].n > MAX_TERMS)
        return dc_np_refuse(p, "an index expression that is too large");
    return dc_np_measure(p);
}

static bool add_ix(dc_np *p, dc_ix *a, dc_ix b)
{
    if (p->k->ix.at[*a].n + p->k->ix.at[b].n > MAX_TERMS)
        return dc_np_refuse(p, "an index expression of more than %d terms", MAX_TERMS);
    return finish_ix(p, a, dc_ix_add(p->k, *a, b));
}

static bool mul_ix(dc_np *p, dc_ix *a, int64_t c)
{
    int64_t most;
    if (!dc_mul_ok(magnitude(p, *a), c < 0 ? -c : c, &most) || most > DC_NP_MAX_INDEX)
        return dc_np_refuse(p, "an index expression that is too large");
    return finish_ix(p, a, dc_ix_mul(p->k, *a, c));
}

/* Index expressions -------------------------------------------------------------------------- */

static bool parse_int(dc_np *p, dc_ix *out)
{
    dc_vx v;
    if (!dc_np_open(p, '(') || !dc_np_value(p, &v))
        return false;
    if (dc_dtype_is_float((dc_dtype)p->k->vx.at[v].dtype))
        return dc_np_refuse(p, "a float as index");
    return finish_ix(p, out, dc_ix_value(p->k, v)) && dc_np_close(p, ')');
}

static bool parse_factor(dc_np *p, dc_ix *out)
{
    int64_t c;
    dc_np_skip(p);
    if (dc_np_digit(*p->scan.at)) {
        if (!dc_np_want_integer(p, DC_NP_MAX_INDEX, &c))
            return false;
        *out = dc_ix_const(p->k, c);
        return dc_np_measure(p);
    }
    if (*p->scan.at == '(')
        return dc_np_open(p, '(') && dc_np_index(p, out) && dc_np_close(p, ')');
    dc_np_token w = dc_np_word(p);
    if (dc_np_is(w, "int") && dc_np_behind(w) == '(') {
        p->scan.at += w.n;
        return parse_int(p, out);
    }
    if (!dc_np_want_label(p, "an index", &w))
        return false;
    for (uint32_t i = 0; i < p->k->axis.n; i++)
        if (dc_np_is(w, p->k->axis.at[i].name)) {
            *out = dc_ix_axis(p->k, i);
            return dc_np_measure(p);
        }
    return dc_np_refuse(p, "no loop over '%.*s'", w.n, w.s);
}

static bool parse_product(dc_np *p, dc_ix *out)
{
    if (!parse_factor(p, out))
        return false;
    for (;;) {
        dc_ix right;
        int64_t c;
        dc_np_skip(p);
        const char op = *p->scan.at;
        if (op != '*' && op != '/' && op != '%')
            return true;
        p->scan.at++;
        if (!parse_factor(p, &right))
            return false;
        if (op == '*' && dc_ix_is_const(p->k, *out, &c))
            *out = right;
        else if (!dc_ix_is_const(p->k, right, &c))
            return dc_np_refuse(p, "a constant expected beside %c", op);
        if (op != '*' && c <= 0)
            return dc_np_refuse(p, "a division by %lld", (long long)c);
        const bool fits = op == '*'   ? mul_ix(p, out, c)
                          : op == '/' ? finish_ix(p, out, dc_ix_div(p->k, *out, c))
                                      : finish_ix(p, out, dc_ix_mod(p->k, *out, c));
        if (!fits)
            return false;
    }
}

static bool parse_sum(dc_np *p, dc_ix *out)
{
    const bool negative = dc_np_accept_char(p, '-');
    if (!parse_product(p, out) || (negative && !mul_ix(p, out, -1)))
        return false;
    for (;;) {
        dc_ix b;
        dc_np_skip(p);
        const char op = *p->scan.at;
        if (op != '+' && op != '-')
            return true;
        p->scan.at++;
        if (!parse_product(p, &b) || (op == '-' && !mul_ix(p, &b, -1)) || !add_ix(p, out, b))
            return false;
    }
}

bool dc_np_index(dc_np *p, dc_ix *out)
{
    const bool parsed = enter(p) && parse_sum(p, out);
    p->nested--;
    return parsed;
}

/* The ranges as they stand, those that always hold included. */
static bool parse_tests(dc_np *p, dc_pred *out)
{
    DC_VEC(dc_range) range = {0};
    do {
        dc_range r;
        if (!dc_np_index(p, &r.ix) || !dc_np_want_word(p, "in") ||
            !dc_np_want_integer(p, DC_NP_MAX_INDEX, &r.n))
            return false;
        DC_PUSH_IN(&p->k->arena, range, r);
        dc_np_skip(p);
        if (strncmp(p->scan.at, "&&", 2) != 0)
            break;
        p->scan.at += 2;
    } while (true);
    *out = (dc_pred){range.n, range.at};
    return true;
}

bool dc_np_guard(dc_np *p, dc_pred *out)
{
    *out = (dc_pred){0};
    return !dc_np_accept_word(p, "if") || parse_tests(p, out);
}

/* Values ------------------------------------------------------------------------------------- */

bool dc_np_buffer(dc_np *p, uint32_t *out)
{
    dc_np_token w;
    if (!dc_np_want_label(p, "a buffer", &w))
        return false;
    for (uint32_t i = 0; i < p->k->buf.n; i++)
        if (dc_np_is(w, p->k->buf.at[i].name)) {
            *out = i;
            return true;
        }
    return dc_np_refuse(p, "no buffer '%.*s'", w.n, w.s);
}

static bool parse_load(dc_np *p, dc_vx *out)
{
    uint32_t buf;
    dc_ix at;
    dc_pred pred;
    if (!dc_np_buffer(p, &buf) || !dc_np_open(p, '[') || !dc_np_index(p, &at) ||
        !dc_np_guard(p, &pred) || !dc_np_close(p, ']'))
        return false;
    *out = dc_vx_load(p->k, buf, at, pred);
    return true;
}

static bool parse_op(dc_np *p, dc_op op, bool cast, dc_dtype to, dc_vx *out)
{
    const dc_op_row *row = dc_op_row_of(op);
    dc_vx in[4] = {0};
    if (!dc_np_open(p, '('))
        return false;
    for (int i = 0; i < row->n; i++)
        if ((i > 0 && !dc_np_want_char(p, ',')) || !dc_np_value(p, &in[i]))
            return false;
    if (!dc_np_close(p, ')'))
        return false;
    if (!cast && !dc_nest_op_dtype(p->k, op, in, &to))
        return dc_np_refuse(p, "%s does not take operands of these dtypes", row->name);
    *out = dc_vx_op(p->k, op, to, in, row->n);
    return true;
}

static bool parse_index_value(dc_np *p, dc_dtype t, dc_vx *out)
{
    dc_ix at;
    if (!dc_np_open(p, '(') || !dc_np_index(p, &at) || !dc_np_close(p, ')'))
        return false;
    *out = dc_vx_index(p->k, at, t);
    return true;
}

static bool parse_test_value(dc_np *p, dc_vx *out)
{
    dc_pred pred = {0};
    if (!dc_np_open(p, '('))
        return false;
    dc_np_skip(p);
    if ((*p->scan.at != ')' && !parse_tests(p, &pred)) || !dc_np_close(p, ')'))
        return false;
    *out = dc_vx_test(p->k, pred);
    return true;
}

/* cast.f32  bitcast.u16 */
static bool is_conversion(dc_np_token w, dc_op *op, dc_dtype *t)
{
    const char *dot = memchr(w.s, '.', (size_t)w.n);
    return dot != NULL && dc_op_find(w.s, (size_t)(dot - w.s), op) && dc_nest_op_converts(*op) &&
           dc_dtype_find(dot + 1, (size_t)(w.s + w.n - dot - 1), t);
}

static bool parse_call(dc_np *p, dc_vx *out)
{
    const dc_np_token w = dc_np_word(p);
    dc_dtype t = DC_BOOL;
    dc_op op;
    p->scan.at += w.n;
    if (dc_np_is(w, "test"))
        return parse_test_value(p, out);
    if (dc_dtype_find(w.s, (size_t)w.n, &t))
        return parse_index_value(p, t, out);
    if (is_conversion(w, &op, &t))
        return parse_op(p, op, true, t, out);
    if (dc_op_find(w.s, (size_t)w.n, &op) && dc_op_is(op, DC_CLASS_EW) && !dc_nest_op_converts(op))
        return parse_op(p, op, false, t, out);
    return dc_np_refuse(p, "no operation '%.*s'", w.n < 40 ? w.n : 40, w.s);
}

bool dc_np_is_temp(dc_np_token w)
{
    bool digits = w.n > 1 && w.s[0] == 't';
    for (int i = 1; i < w.n; i++)
        digits = digits && dc_np_digit(w.s[i]);
    return digits;
}

bool dc_np_temp_number(dc_np *p, int64_t *number)
{
    p->scan.at++;
    return dc_np_want_integer(p, UINT32_MAX, number);
}

static bool parse_temp(dc_np *p, dc_vx *out)
{
    int64_t number;
    if (!dc_np_temp_number(p, &number))
        return false;
    if (number >= p->temp.n)
        return dc_np_refuse(p, "no value t%lld before this line", (long long)number);
    *out = p->temp.at[number];
    return true;
}

static bool parse_const(dc_np *p, dc_vx *out)
{
    const char *why;
    uint64_t bits;
    dc_dtype t;
    if (!dc_const_parse(&p->scan.at, &t, &bits, &why))
        return dc_np_refuse(p, "%s", why);
    *out = dc_vx_const(p->k, t, bits);
    return true;
}

static bool parse_atom(dc_np *p, dc_vx *out)
{
    const dc_np_token w = dc_np_word(p);
    const char next = dc_np_behind(w);
    if (dc_np_digit(*w.s) || *w.s == '-')
        return parse_const(p, out);
    if (w.n == 0)
        return dc_np_expected(p, "a value");
    if (next == '[')
        return parse_load(p, out);
    if (next == ':' || dc_np_is(w, "nan"))
        return parse_const(p, out);
    if (next == '(')
        return parse_call(p, out);
    if (dc_np_is_temp(w))
        return parse_temp(p, out);
    if (!dc_np_is(w, "true") && !dc_np_is(w, "false"))
        return dc_np_expected(p, "a value");
    *out = dc_vx_const(p->k, DC_BOOL, dc_np_is(w, "true"));
    p->scan.at += w.n;
    return true;
}

bool dc_np_value(dc_np *p, dc_vx *out)
{
    const bool parsed = enter(p) && parse_atom(p, out) && dc_np_measure(p);
    p->nested--;
    return parsed;
}
