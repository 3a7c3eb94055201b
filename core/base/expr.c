/*
 * Expressions of sizes: text to nodes and back, values, and linear forms to solve for one variable.
 *
 * The reader goes down one function for each level of the grammar; parentheses are counted, so that
 * no text makes it go deeper than DC_EXPR_NEST. Printing sets only the parentheses that the order of
 * the nodes needs: what it writes is read to the same nodes.
 */
#include "core/base/expr.h"

#include "core/base/digits.h"
#include "core/base/extent.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- reading ---- */

bool dc_expr_starts_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

size_t dc_expr_name_length(const char *s)
{
    size_t n = 0;
    if (dc_expr_starts_name(*s))
        while (dc_expr_starts_name(s[n]) || is_digit(s[n]))
            n++;
    return n;
}

const char *dc_expr_skip_blanks(const char *s)
{
    while (*s == ' ' || (*s >= '\t' && *s <= '\r'))
        s++;
    return s;
}

static dc_expr_fault add_node(dc_expr_reader *r, dc_expr_op op, int64_t v, int left, int right)
{
    if (r->n == DC_EXPR_NODES)
        return DC_EXPR_LONG;
    r->node[r->n++] = (dc_expr_node){v, (uint8_t)op, (uint8_t)left, (uint8_t)right};
    return DC_EXPR_OK;
}

static dc_expr_fault read_sum(dc_expr_reader *r);

static dc_expr_fault read_number(dc_expr_reader *r)
{
    const char *s = r->at;
    uint64_t v = 0;
    const dc_digits d = dc_digits_unsigned(&s, NULL, INT64_MAX, &v);
    if (d != DC_DIGITS_OK)
        return d == DC_DIGITS_ZEROS ? DC_EXPR_ZEROS : DC_EXPR_LARGE;
    if (dc_expr_starts_name(*s))
        return DC_EXPR_WORD;
    r->at = s;
    return add_node(r, DC_EXPR_NUM, dc_extent_number((int64_t)v), 0, 0);
}

static dc_expr_fault read_factor(dc_expr_reader *r)
{
    r->at = dc_expr_skip_blanks(r->at);
    const size_t n = dc_expr_name_length(r->at);
    if (n > 0) {
        const int v = r->var != NULL ? r->var(r->ctx, r->at, n) : -1;
        if (v < 0)
            return DC_EXPR_NAME;
        r->at += n;
        return add_node(r, DC_EXPR_VAR, v, 0, 0);
    }
    if (is_digit(*r->at))
        return read_number(r);
    if (*r->at != '(')
        return DC_EXPR_OPERAND;
    if (r->nest == DC_EXPR_NEST)
        return DC_EXPR_DEEP;
    r->at++;
    r->nest++;
    const dc_expr_fault fault = read_sum(r);
    if (fault != DC_EXPR_OK)
        return fault;
    r->nest--;
    r->at = dc_expr_skip_blanks(r->at);
    if (*r->at != ')')
        return *r->at == '/' ? DC_EXPR_SLASH : DC_EXPR_CLOSE;
    r->at++;
    return DC_EXPR_OK;
}

/* Is there an operator of this level at the cursor? Takes it. */
static bool take_operator(dc_expr_reader *r, bool product, dc_expr_op *op)
{
    const char *s = r->at = dc_expr_skip_blanks(r->at);
    if (product && s[0] == '/' && s[1] == '/') {
        *op = DC_EXPR_DIV;
        r->at += 2;
        return true;
    }
    if (*s == '\0' || strchr(product ? "*%" : "+-", *s) == NULL || (s[0] == '-' && s[1] == '>'))
        return false;
    *op = *s == '*' ? DC_EXPR_MUL : *s == '%' ? DC_EXPR_MOD : *s == '+' ? DC_EXPR_ADD : DC_EXPR_SUB;
    r->at++;
    return true;
}

static dc_expr_fault read_level(dc_expr_reader *r, bool product)
{
    dc_expr_op op;
    dc_expr_fault fault = product ? read_factor(r) : read_level(r, true);
    while (fault == DC_EXPR_OK && take_operator(r, product, &op)) {
        const int left = r->n - 1;
        fault = product ? read_factor(r) : read_level(r, true);
        if (fault == DC_EXPR_OK)
            fault = add_node(r, op, 0, left, r->n - 1);
    }
    return fault;
}

static dc_expr_fault read_sum(dc_expr_reader *r)
{
    return read_level(r, false);
}

dc_expr_fault dc_expr_read(dc_expr_reader *r)
{
    r->n = r->nest = 0;
    const dc_expr_fault fault = read_sum(r);
    if (fault == DC_EXPR_OK && *r->at == '/')
        return DC_EXPR_SLASH;
    return fault;
}

/* ---- values ---- */

static dc_expr_fault divide(int64_t a, int64_t b, int64_t *quotient, int64_t *rest)
{
    if (b == 0)
        return DC_EXPR_ZERO;
    if (b == -1) { /* the processor faults at INT64_MIN / -1 */
        *rest = 0;
        return __builtin_sub_overflow((int64_t)0, a, quotient) ? DC_EXPR_LARGE : DC_EXPR_OK;
    }
    *quotient = a / b;
    *rest = a % b;
    if (*rest != 0 && (*rest < 0) != (b < 0)) {
        *rest += b;
        --*quotient;
    }
    return DC_EXPR_OK;
}

static dc_expr_fault apply_op(dc_expr_op op, int64_t a, int64_t b, int64_t *out)
{
    int64_t other;
    switch (op) {
    case DC_EXPR_ADD:
        return dc_add_ok(a, b, out) ? DC_EXPR_OK : DC_EXPR_LARGE;
    case DC_EXPR_SUB:
        return __builtin_sub_overflow(a, b, out) ? DC_EXPR_LARGE : DC_EXPR_OK;
    case DC_EXPR_MUL:
        return dc_mul_ok(a, b, out) ? DC_EXPR_OK : DC_EXPR_LARGE;
    case DC_EXPR_DIV:
        return divide(a, b, out, &other);
    case DC_EXPR_MOD: {
        const dc_expr_fault fault = divide(a, b, &other, out);
        return b == -1 ? DC_EXPR_OK
                       : fault; /* the rest of that is 0 even where the quotient is none */
    }
    case DC_EXPR_NUM:
    case DC_EXPR_VAR:
        break;
    }
    DC_BUG("operator %d", (int)op);
}

/* Of operands of which one is a code. A remainder is what the quotient leaves. */
static dc_expr_fault apply_extents(dc_extents *x, dc_expr_op op, int64_t a, int64_t b, int64_t *out)
{
    if ((op == DC_EXPR_DIV || op == DC_EXPR_MOD) && b == 0)
        return DC_EXPR_ZERO;
    switch (op) {
    case DC_EXPR_ADD:
        *out = dc_extent_add(x, a, b);
        break;
    case DC_EXPR_SUB:
        *out = dc_extent_sub(x, a, b);
        break;
    case DC_EXPR_MUL:
        *out = dc_extent_mul(x, a, b);
        break;
    case DC_EXPR_DIV:
        *out = dc_extent_div(x, a, b);
        break;
    default:
        *out = dc_extent_sub(x, a, dc_extent_mul(x, dc_extent_div(x, a, b), b));
        break;
    }
    return *out == DC_EXTENT_NONE ? DC_EXPR_LARGE : DC_EXPR_OK;
}

dc_expr_fault dc_expr_eval(const dc_expr *e, const int64_t *size, int64_t *out)
{
    return dc_expr_eval_in(NULL, e, size, out);
}

dc_expr_fault dc_expr_eval_in(dc_extents *xs, const dc_expr *e, const int64_t *size, int64_t *out)
{
    int64_t value[DC_EXPR_NODES];
    for (int i = 0; i < e->n; i++) {
        const dc_expr_node *x = &e->node[i];
        dc_expr_fault fault = DC_EXPR_OK;
        if (x->op == DC_EXPR_NUM)
            value[i] = x->v;
        else if (x->op == DC_EXPR_VAR)
            fault = (value[i] = size[x->v]) < 0 ? DC_EXPR_UNKNOWN : DC_EXPR_OK;
        else if (dc_extent_is(value[x->left]) || dc_extent_is(value[x->right]))
            fault =
                apply_extents(xs, (dc_expr_op)x->op, value[x->left], value[x->right], &value[i]);
        else
            fault = apply_op((dc_expr_op)x->op, value[x->left], value[x->right], &value[i]);
        if (fault != DC_EXPR_OK)
            return fault;
    }
    *out = value[e->n - 1];
    return DC_EXPR_OK;
}

static bool is_constant(const dc_expr_linear *l)
{
    for (int v = 0; v < DC_EXPR_VARS; v++)
        if (l->a[v] != 0)
            return false;
    return true;
}

static dc_expr_fault add_linear(const dc_expr_linear *a, dc_expr_op op, const dc_expr_linear *b,
                                dc_expr_linear *out)
{
    for (int v = 0; v < DC_EXPR_VARS; v++)
        if (apply_op(op, a->a[v], b->a[v], &out->a[v]) != DC_EXPR_OK)
            return DC_EXPR_LARGE;
    return apply_op(op, a->c, b->c, &out->c);
}

static dc_expr_fault scale_linear(const dc_expr_linear *a, int64_t by, dc_expr_linear *out)
{
    for (int v = 0; v < DC_EXPR_VARS; v++)
        if (!dc_mul_ok(a->a[v], by, &out->a[v]))
            return DC_EXPR_LARGE;
    return dc_mul_ok(a->c, by, &out->c) ? DC_EXPR_OK : DC_EXPR_LARGE;
}

static dc_expr_fault apply_linear(dc_expr_op op, const dc_expr_linear *a, const dc_expr_linear *b,
                                  dc_expr_linear *out)
{
    if (op == DC_EXPR_ADD || op == DC_EXPR_SUB)
        return add_linear(a, op, b, out);
    const bool left = is_constant(a), right = is_constant(b);
    if (left && right)
        return apply_op(op, a->c, b->c, &out->c);
    if (op == DC_EXPR_MUL && left)
        return scale_linear(b, a->c, out);
    if (op == DC_EXPR_MUL && right)
        return scale_linear(a, b->c, out);
    if (op != DC_EXPR_MUL && right && b->c == 0)
        return DC_EXPR_ZERO;
    return DC_EXPR_NOT_LINEAR;
}

dc_expr_fault dc_expr_linearize(const dc_expr *e, const int64_t *size, dc_expr_linear *out)
{
    dc_expr_linear value[DC_EXPR_NODES];
    for (int i = 0; i < e->n; i++) {
        const dc_expr_node *x = &e->node[i];
        value[i] = (dc_expr_linear){0};
        if (x->op == DC_EXPR_NUM) {
            value[i].c = x->v;
        } else if (x->op == DC_EXPR_VAR) {
            if (size[x->v] >= 0)
                value[i].c = size[x->v];
            else
                value[i].a[x->v] = 1;
        } else {
            const dc_expr_fault fault =
                apply_linear((dc_expr_op)x->op, &value[x->left], &value[x->right], &value[i]);
            if (fault != DC_EXPR_OK)
                return fault;
        }
    }
    *out = value[e->n - 1];
    return DC_EXPR_OK;
}

/* ---- what occurs ---- */

unsigned dc_expr_vars(const dc_expr *e)
{
    unsigned set = 0;
    for (int i = 0; i < e->n; i++)
        if (e->node[i].op == DC_EXPR_VAR)
            set |= 1u << e->node[i].v;
    return set;
}

int dc_expr_solvable(const dc_expr *e, unsigned known)
{
    bool open[DC_EXPR_NODES]; /* does a variable without value occur in it? */
    int var = -1;
    for (int i = 0; i < e->n; i++) {
        const dc_expr_node *x = &e->node[i];
        if (x->op == DC_EXPR_NUM) {
            open[i] = false;
        } else if (x->op == DC_EXPR_VAR) {
            open[i] = (known >> x->v & 1) == 0;
            if (open[i] && var >= 0 && var != x->v)
                return -1;
            if (open[i])
                var = (int)x->v;
        } else {
            const bool left = open[x->left], right = open[x->right];
            open[i] = left || right;
            if (open[i] && (x->op == DC_EXPR_DIV || x->op == DC_EXPR_MOD ||
                            (x->op == DC_EXPR_MUL && left && right)))
                return -1;
        }
    }
    return var;
}

/* ---- printing ---- */

typedef struct printer {
    const dc_expr *e;
    const char *const *var;
    char *out;
    size_t room, n;
} printer;

static void put_text(printer *p, const char *s)
{
    for (; *s != '\0'; s++, p->n++)
        if (p->n + 1 < p->room)
            p->out[p->n] = *s;
}

static int level_of(int op)
{
    return op == DC_EXPR_NUM || op == DC_EXPR_VAR   ? 3
           : op == DC_EXPR_ADD || op == DC_EXPR_SUB ? 1
                                                    : 2;
}

/* As deep as the nodes are, so at most DC_EXPR_NODES. */
static void put_node(printer *p, int i, int level)
{
    static const char *const sign[] = {"", "", " + ", " - ", "*", "//", "%"};
    const dc_expr_node *x = &p->e->node[i];
    const int own = level_of(x->op);
    if (x->op == DC_EXPR_NUM) {
        char digits[24];
        snprintf(digits, sizeof digits, "%" PRId64, x->v);
        put_text(p, digits);
    } else if (x->op == DC_EXPR_VAR) {
        put_text(p, p->var[x->v]);
    } else {
        put_text(p, own < level ? "(" : "");
        put_node(p, x->left, own);
        put_text(p, sign[x->op]);
        put_node(p, x->right, own + 1);
        put_text(p, own < level ? ")" : "");
    }
}

int dc_expr_print(const dc_expr *e, const char *const *var, char *out, size_t room)
{
    printer p = {e, var, out, room, 0};
    put_node(&p, e->n - 1, 0);
    if (room > 0)
        out[p.n < room ? p.n : room - 1] = '\0';
    return (int)p.n;
}
