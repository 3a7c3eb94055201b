/*
 * Graph text: printer, parser and the verifier.
 *
 *   module = { ("func" name | "body" integer) "(" [param {"," param}] ")" "{" { node } return "}" }
 *   param  = %n ":" type [string]
 *   node   = %n "=" op [%n {"," %n}] ["{" integer {"," integer} "}"] ":" type
 *   return = "return" [%n {"," %n}]
 *   name   = word | string;  "#" starts a comment;  numbers of a function are 1, 2, 3 ...
 *            bodies, which loops and branches name by their first attributes, are 0, 1, 2 ...
 *
 * The parser takes any bytes: it makes every node through dc_make, so what it accepts is legal.
 */
#include "core/ir/gtext.h"

#include "core/base/digits.h"
#include "core/base/scan.h"
#include "core/ir/control.h"
#include "core/ir/conv.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- print ---- */

static bool starts_word(char c)
{
    return isalpha((unsigned char)c) || c == '_';
}

static size_t word_length(const char *s)
{
    size_t n = 0;
    if (starts_word(*s))
        while (starts_word(s[n]) || isdigit((unsigned char)s[n]))
            n++;
    return n;
}

static void print_string(dc_text *out, const char *s)
{
    dc_text_puts(out, "\"");
    for (; *s != '\0'; s++) {
        const unsigned char c = (unsigned char)*s;
        if (c == '"' || c == '\\')
            dc_text_printf(out, "\\%c", c);
        else if (c < 0x20 || c == 0x7f)
            dc_text_printf(out, "\\x%02x", c);
        else
            dc_text_printf(out, "%c", c);
    }
    dc_text_puts(out, "\"");
}

static void print_type(dc_text *out, const dc_func *f, dc_ref r)
{
    char text[DC_TYPE_TEXT];
    const dc_type t = dc_node_type(f, r);
    dc_type_print(&t, text, sizeof text);
    dc_text_puts(out, text);
}

/* Bodies are numbered in the order in which they are printed, before what names them. */
typedef struct printer {
    dc_text *out;
    dc_arena *a;
    const dc_module *m;
    uint32_t *body; /* by body of the module: its number in the text; NO_NUMBER: not printed yet */
    uint32_t nbody;
} printer;

#define NO_NUMBER UINT32_MAX

static printer start_printing(const dc_module *m, dc_arena *a, dc_text *out)
{
    printer p = {.out = out, .a = a, .m = m, .body = DC_NEW_ARRAY(a, uint32_t, m->body.n)};
    for (uint32_t i = 0; i < m->body.n; i++)
        p.body[i] = NO_NUMBER;
    return p;
}

static void print_name(dc_text *out, const dc_func *f)
{
    const size_t n = strlen(f->name);
    dc_text_puts(out, "func ");
    if (n > 0 && word_length(f->name) == n)
        dc_text_puts(out, f->name);
    else
        print_string(out, f->name);
}

static void print_params(dc_text *out, const dc_func *f, const uint32_t *number)
{
    dc_text_puts(out, "(");
    for (uint32_t i = 0; i < f->param.n; i++) {
        dc_text_printf(out, "%s%%%u: ", i ? ", " : "", number[f->param.at[i]]);
        print_type(out, f, f->param.at[i]);
        if (f->label.at[i] != NULL) {
            dc_text_puts(out, " ");
            print_string(out, f->label.at[i]);
        }
    }
}

static void print_node(const printer *p, const dc_func *f, const uint32_t *number, dc_ref r)
{
    dc_text *out = p->out;
    const dc_node *n = dc_node_at(f, r);
    uint32_t in[DC_MAX_OPERANDS];
    dc_node_operands(f, number, r, in);
    dc_text_printf(out, "  %%%u = %s", number[r], dc_op_row_of((dc_op)n->op)->name);
    for (int i = 0; i < n->nin; i++)
        dc_text_printf(out, "%s%%%u", i ? ", " : " ", in[i]);
    for (int i = 0; i < n->nattr; i++)
        dc_text_printf(out, "%s%" PRId64, i ? ", " : " {",
                       i < dc_node_bodies(n) ? (int64_t)p->body[n->attr[i]] : n->attr[i]);
    dc_text_puts(out, n->nattr ? "} : " : " : ");
    print_type(out, f, r);
    if (n->op == DC_OP_CONST && dc_dtype_is_float((dc_dtype)n->dtype))
        dc_text_printf(out, " # %.*g", dc_dtype_bits((dc_dtype)n->dtype) == 64 ? 17 : 9,
                       dc_value_of((dc_dtype)n->dtype, (uint64_t)n->attr[0]));
    dc_text_puts(out, "\n");
}

static void print_nodes(const printer *p, const dc_func *f, const uint32_t *number)
{
    dc_text_puts(p->out, ") {\n");
    for (dc_ref r = 1; r < f->node.n; r++)
        if (number[r] > f->param.n)
            print_node(p, f, number, r);
    dc_text_puts(p->out, "  return");
    for (uint32_t i = 0; i < f->result.n; i++)
        dc_text_printf(p->out, "%s%%%u", i ? ", " : " ", number[f->result.at[i]]);
    dc_text_puts(p->out, "\n}\n");
}

static void print_body(printer *p, uint32_t body);

/* Those that f names, and theirs. */
static void print_bodies(printer *p, const dc_func *f, const uint32_t *number)
{
    for (dc_ref r = 1; r < f->node.n; r++) {
        const dc_node *n = dc_node_at(f, r);
        for (int i = 0; number[r] != 0 && i < dc_node_bodies(n); i++)
            if (p->body[n->attr[i]] == NO_NUMBER)
                print_body(p, (uint32_t)n->attr[i]);
    }
}

static void print_body(printer *p, uint32_t body)
{
    const dc_func *f = p->m->body.at[body].fn;
    const uint32_t *number = dc_func_numbers(f, p->a);
    print_bodies(p, f, number);
    p->body[body] = p->nbody++;
    dc_text_printf(p->out, "body %u", p->body[body]);
    print_params(p->out, f, number);
    print_nodes(p, f, number);
    dc_text_puts(p->out, "\n");
}

static void print_func(printer *p, const dc_func *f)
{
    const uint32_t *number = dc_func_numbers(f, p->a);
    print_bodies(p, f, number);
    print_name(p->out, f);
    print_params(p->out, f, number);
    print_nodes(p, f, number);
}

void dc_func_print(const dc_func *f, dc_text *out)
{
    dc_scratch scratch;
    dc_arena *a = dc_scratch_begin(&scratch);
    printer p = start_printing(f->module, a, out);
    print_func(&p, f);
    dc_scratch_end(&scratch);
}

void dc_module_print(const dc_module *m, dc_text *out)
{
    dc_text_puts(out, "");
    if (m->func.n == 0)
        return;
    dc_scratch scratch;
    dc_arena *a = dc_scratch_begin(&scratch);
    printer p = start_printing(m, a, out);
    for (uint32_t i = 0; i < m->func.n; i++) {
        if (i > 0)
            dc_text_puts(out, "\n");
        print_func(&p, m->func.at[i]);
    }
    dc_scratch_end(&scratch);
}

/* ---- parse ---- */

enum { MAX_ATTRS = DC_CONV_ATTRS }; /* those of conv are the most */

typedef struct parser {
    dc_scan scan;
    dc_module *m;
    dc_func *f;
    DC_VEC(dc_ref) ref;    /* number - 1 to ref, of the function being read */
    DC_VEC(uint32_t) body; /* by number in the text: in the module */
} parser;

/* The failure of a job made for one call becomes one with a line; axes from 0, as attributes. */
static dc_status refuse_as(parser *p, const dc_job *inner)
{
    char text[400];
    dc_err_render(&inner->err, 0, text, sizeof text);
    return dc_scan_refuse(&p->scan, "%s", text);
}

static dc_status read_integer(parser *p, int64_t *out)
{
    dc_scan_skip(&p->scan);
    const dc_digits d = dc_digits_signed(&p->scan.at, NULL, INT64_MIN, INT64_MAX, out);
    if (d == DC_DIGITS_NONE)
        return dc_scan_expected(&p->scan, "an integer");
    return d == DC_DIGITS_OK ? DC_OK : dc_scan_refuse(&p->scan, "an integer %s", dc_digits_why(d));
}

static int hex_digit(char c)
{
    return isdigit((unsigned char)c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* One character of a string, escapes resolved. */
static dc_status read_char(parser *p, char *out)
{
    const char *s = p->scan.at;
    int width = 1;
    *out = *s;
    if (*s == '\0' || *s == '\n')
        return dc_scan_refuse(&p->scan, "a string has no end");
    if (*s == '\\' && (s[1] == '"' || s[1] == '\\')) {
        *out = s[1];
        width = 2;
    } else if (*s == '\\') {
        const int high = s[1] == 'x' ? hex_digit(s[2]) : -1;
        const int low = high >= 0 ? hex_digit(s[3]) : -1;
        if (low < 0 || high + low == 0)
            return dc_scan_refuse(&p->scan, "a string has an unknown escape");
        *out = (char)(unsigned char)(high * 16 + low);
        width = 4;
    }
    p->scan.at += width;
    return DC_OK;
}

/* The cursor stands on its first quote. */
static dc_status read_string(parser *p, const char **out)
{
    size_t n = 0, room = 1;
    for (const char *s = ++p->scan.at; *s != '\0' && *s != '"' && *s != '\n'; s++, room++)
        s += s[0] == '\\' && s[1] != '\0';
    char *text = dc_arena_alloc(&p->m->arena, room);
    while (*p->scan.at != '"')
        DC_TRY(read_char(p, &text[n++]));
    p->scan.at++;
    *out = text; /* zeroed: it ends in '\0' */
    return DC_OK;
}

static dc_status read_type(parser *p, dc_type *out)
{
    dc_job inner = {.opt = p->scan.j->opt, .log = p->scan.j->log};
    dc_scan_skip(&p->scan);
    const char *from = p->scan.at;
    if (dc_type_parse(&inner, NULL, &p->scan.at, out) != DC_OK)
        return refuse_as(p, &inner);
    if (dc_dtype_is_complex((dc_dtype)out->dtype))
        return dc_scan_refuse(&p->scan, "no node is complex: f32 or f64, with a last axis of 2");
    for (; from < p->scan.at; from++)
        p->scan.line += *from == '\n';
    return DC_OK;
}

/* %n, the next number of the function. */
static dc_status read_new_number(parser *p)
{
    int64_t n;
    DC_TRY(dc_scan_expect(&p->scan, "%"));
    DC_TRY(read_integer(p, &n));
    if (n != (int64_t)p->ref.n + 1)
        return dc_scan_refuse(&p->scan, "%%%u comes next, not %%%" PRId64, p->ref.n + 1, n);
    return DC_OK;
}

static dc_status read_ref(parser *p, dc_ref *out)
{
    int64_t n;
    DC_TRY(dc_scan_expect(&p->scan, "%"));
    DC_TRY(read_integer(p, &n));
    if (n < 1 || n > (int64_t)p->ref.n)
        return dc_scan_refuse(&p->scan, "there is no %%%" PRId64 " yet", n);
    *out = p->ref.at[n - 1];
    return DC_OK;
}

static dc_status read_param(parser *p)
{
    dc_type t;
    const char *label = NULL;
    DC_TRY(read_new_number(p));
    DC_TRY(dc_scan_expect(&p->scan, ":"));
    DC_TRY(read_type(p, &t));
    dc_scan_skip(&p->scan);
    if (*p->scan.at == '"')
        DC_TRY(read_string(p, &label));
    const dc_ref r = dc_graph_param(p->f, &t, label);
    DC_PUSH_IN(&p->m->arena, p->ref, r);
    return DC_OK;
}

static dc_status read_attrs(parser *p, int64_t *attr, int *n)
{
    if (!dc_scan_accept(&p->scan, "{"))
        return DC_OK;
    do {
        if (*n == MAX_ATTRS)
            return dc_scan_refuse(&p->scan, "more than %d attributes", MAX_ATTRS);
        DC_TRY(read_integer(p, &attr[(*n)++]));
    } while (dc_scan_accept(&p->scan, ","));
    return dc_scan_expect(&p->scan, "}");
}

static dc_status read_op(parser *p, dc_op *out)
{
    dc_scan_skip(&p->scan);
    const size_t n = word_length(p->scan.at);
    if (n == 0)
        return dc_scan_expected(&p->scan, "an operation");
    if (!dc_op_find(p->scan.at, n, out))
        return dc_scan_refuse(&p->scan, "unknown operation '%.*s'", (int)(n < 40 ? n : 40),
                              p->scan.at);
    if (*out == DC_OP_PARAM)
        return dc_scan_refuse(&p->scan, "parameters stand in the head");
    p->scan.at += n;
    return DC_OK;
}

static dc_status make_node(parser *p, dc_op op, const dc_ref *in, int nin, const int64_t *attr,
                           int nattr, const dc_type *t)
{
    dc_job inner = {.opt = p->scan.j->opt, .log = p->scan.j->log};
    dc_ref r = 0;
    if (dc_make(&inner, p->f, op, in, nin, attr, nattr, t, &r) != DC_OK)
        return refuse_as(p, &inner);
    const dc_type made = dc_node_type(p->f, r);
    if (!dc_type_same(&made, t)) {
        char is[DC_TYPE_TEXT], says[DC_TYPE_TEXT];
        dc_type_print(&made, is, sizeof is);
        dc_type_print(t, says, sizeof says);
        return dc_scan_refuse(&p->scan, "%s gives %.120s, not %.120s", dc_op_row_of(op)->name, is,
                              says);
    }
    DC_PUSH_IN(&p->m->arena, p->ref, r);
    return DC_OK;
}

/* Of a loop there may be none. */
static dc_status read_operands(parser *p, dc_op op, dc_ref *in, int *nin)
{
    const bool any = dc_op_any_number(op);
    const int most = op == DC_OP_LOOP || op == DC_OP_BRANCH ? DC_MAX_OPERANDS : DC_MAX_TYPED;
    dc_scan_skip(&p->scan);
    if (op == DC_OP_LOOP && *p->scan.at != '%')
        return DC_OK;
    for (int n = any ? 1 : dc_op_row_of(op)->n; *nin < n; (*nin)++) {
        if (*nin > 0)
            DC_TRY(dc_scan_expect(&p->scan, ","));
        DC_TRY(read_ref(p, &in[*nin]));
    }
    while (any && *nin < most && dc_scan_accept(&p->scan, ","))
        DC_TRY(read_ref(p, &in[(*nin)++]));
    return DC_OK;
}

/* Attributes that number bodies: what these are in the module. */
static dc_status find_bodies(parser *p, dc_op op, int64_t *attr, int nattr)
{
    const int n = dc_node_bodies(&(dc_node){.op = (uint8_t)op});
    for (int i = 0; i < n && i < nattr; i++) {
        if (attr[i] < 0 || attr[i] >= (int64_t)p->body.n)
            return dc_scan_refuse(&p->scan, "there is no body %" PRId64 " yet", attr[i]);
        attr[i] = p->body.at[attr[i]];
    }
    return DC_OK;
}

static dc_status read_node(parser *p)
{
    dc_op op;
    dc_ref in[DC_MAX_OPERANDS];
    int64_t attr[MAX_ATTRS];
    int nin = 0, nattr = 0;
    dc_type t;
    DC_TRY(read_new_number(p));
    DC_TRY(dc_scan_expect(&p->scan, "="));
    DC_TRY(read_op(p, &op));
    DC_TRY(read_operands(p, op, in, &nin));
    DC_TRY(read_attrs(p, attr, &nattr));
    DC_TRY(find_bodies(p, op, attr, nattr));
    DC_TRY(dc_scan_expect(&p->scan, ":"));
    DC_TRY(read_type(p, &t));
    return make_node(p, op, in, nin, attr, nattr, &t);
}

static dc_status read_results(parser *p)
{
    dc_ref r;
    dc_scan_skip(&p->scan);
    if (*p->scan.at != '%')
        return DC_OK;
    do {
        DC_TRY(read_ref(p, &r));
        DC_PUSH(p->f->result, r);
    } while (dc_scan_accept(&p->scan, ","));
    return DC_OK;
}

/* Parameters, nodes and results of p->f. */
static dc_status read_inside(parser *p)
{
    p->ref.n = 0;
    DC_TRY(dc_scan_expect(&p->scan, "("));
    if (!dc_scan_accept(&p->scan, ")")) {
        do {
            DC_TRY(read_param(p));
        } while (dc_scan_accept(&p->scan, ","));
        DC_TRY(dc_scan_expect(&p->scan, ")"));
    }
    DC_TRY(dc_scan_expect(&p->scan, "{"));
    while (!dc_scan_accept(&p->scan, "return"))
        DC_TRY(read_node(p));
    DC_TRY(read_results(p));
    return dc_scan_expect(&p->scan, "}");
}

/* Behind the word `body`. */
static dc_status read_body(parser *p)
{
    int64_t n;
    DC_TRY(read_integer(p, &n));
    if (n != (int64_t)p->body.n)
        return dc_scan_refuse(&p->scan, "body %u comes next, not %" PRId64, p->body.n, n);
    p->f = dc_func_new(p->m, "");
    DC_TRY(read_inside(p));
    const uint32_t body = dc_body_add(p->m, p->f);
    dc_func_drop(p->f);
    DC_PUSH_IN(&p->m->arena, p->body, body);
    return DC_OK;
}

static dc_status read_func(parser *p)
{
    const char *name;
    if (dc_scan_accept(&p->scan, "body"))
        return read_body(p);
    DC_TRY(dc_scan_expect(&p->scan, "func"));
    dc_scan_skip(&p->scan);
    const size_t n = word_length(p->scan.at);
    if (n > 0) {
        name = dc_name_intern(p->m->names, p->scan.at, n);
        p->scan.at += n;
    } else if (*p->scan.at == '"') {
        DC_TRY(read_string(p, &name));
    } else {
        return dc_scan_expected(&p->scan, "a name");
    }
    p->f = dc_func_new(p->m, name);
    return read_inside(p);
}

dc_status dc_module_parse(dc_job *j, const char *text, dc_module **out)
{
    parser p = {.scan = {j, text, 1, word_length}, .m = dc_module_new()};
    dc_status status = DC_OK;
    dc_module_defer(j, p.m);
    for (dc_scan_skip(&p.scan); *p.scan.at != '\0' && status == DC_OK; dc_scan_skip(&p.scan))
        status = read_func(&p);
    dc_job_keep(j, p.m);
    if (status == DC_OK)
        *out = p.m;
    else
        dc_module_free(p.m);
    return status;
}

/* ---- check ---- */

static dc_status illegal(dc_job *j, const dc_func *f, dc_ref r, const char *fmt, ...)
    DC_PRINTF(4, 5);

static dc_status illegal(dc_job *j, const dc_func *f, dc_ref r, const char *fmt, ...)
{
    char text[300];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return dc_fail(j, DC_ERR_BUG, &(dc_fact){.num = {r}, .word = {f->name, text}});
}

/* A parameter has the index of its place in the list. */
static dc_status check_param(dc_job *j, const dc_func *f, dc_ref r)
{
    const dc_node *n = &f->node.at[r];
    if (n->nattr != 1 || n->attr[0] < 0 || n->attr[0] >= (int64_t)f->param.n ||
        f->param.at[n->attr[0]] != r)
        return illegal(j, f, r, "a parameter that is not in the list");
    if (!dc_dims_fit(n->rank, n->dim, dc_dtype_size((dc_dtype)n->dtype)))
        return illegal(j, f, r, "too large to address");
    return DC_OK;
}

static dc_status check_node(dc_job *j, const dc_func *f, dc_ref r)
{
    const dc_node *n = &f->node.at[r];
    dc_type in[DC_MAX_TYPED], is, want;
    const bool control = n->op < DC_OP__COUNT && dc_op_is((dc_op)n->op, DC_CLASS_CTL);
    dc_job inner = {.opt = j->opt, .log = j->log, .extents = j->extents};
    if (n->op >= DC_OP__COUNT || n->dtype >= DC_DTYPE__COUNT || n->rank > DC_MAX_RANK ||
        n->nin > (control ? DC_MAX_OPERANDS : DC_MAX_TYPED) ||
        (n->nin != dc_op_row_of((dc_op)n->op)->n && !dc_op_any_number((dc_op)n->op)))
        return illegal(j, f, r, "op %d, dtype %d, rank %d, %d operands", n->op, n->dtype, n->rank,
                       n->nin);
    if (n->op == DC_OP_PARAM)
        return check_param(j, f, r);
    for (int i = 0; i < n->nin; i++) {
        if (n->in[i] == 0 || n->in[i] >= r)
            return illegal(j, f, r, "operand %d is %u, not an earlier node", i + 1, n->in[i]);
        if (!control)
            in[i] = dc_node_type(f, n->in[i]);
    }
    want = dc_node_type(f, r);
    if ((control ? dc_control_infer(&inner, f, (dc_op)n->op, n->in, n->nin, n->attr, n->nattr, &is)
                 : dc_infer(&inner, (dc_op)n->op, in, n->nin, n->attr, n->nattr, &want, &is)) !=
        DC_OK) {
        char text[256];
        dc_err_render(&inner.err, 0, text, sizeof text);
        return illegal(j, f, r, "%s", text);
    }
    if (!dc_type_same(&is, &want))
        return illegal(j, f, r, "%s has another type", dc_op_row_of((dc_op)n->op)->name);
    return DC_OK;
}

static dc_status check_func(dc_job *j, const dc_func *f)
{
    if (f->node.n == 0 || f->label.n != f->param.n)
        return illegal(j, f, 0, "%u nodes, %u parameters, %u labels", f->node.n, f->param.n,
                       f->label.n);
    for (dc_ref r = 1; r < f->node.n; r++)
        DC_TRY(check_node(j, f, r));
    for (uint32_t i = 0; i < f->param.n; i++) {
        const dc_ref r = f->param.at[i];
        if (r == 0 || r >= f->node.n || f->node.at[r].op != DC_OP_PARAM ||
            f->node.at[r].attr[0] != (int64_t)i)
            return illegal(j, f, r, "parameter %u is no parameter", i + 1);
    }
    for (uint32_t i = 0; i < f->result.n; i++)
        if (f->result.at[i] == 0 || f->result.at[i] >= f->node.n)
            return illegal(j, f, f->result.at[i], "result %u is no node", i + 1);
    return DC_OK;
}

/* Bodies are checked once, however often they are named. */
dc_status dc_func_check(dc_job *j, const dc_func *f)
{
    bool any = false;
    DC_TRY(check_func(j, f));
    for (dc_ref r = 1; r < f->node.n && !any; r++)
        any = dc_node_bodies(dc_node_at(f, r)) > 0;
    for (uint32_t i = 0; any && i < f->module->body.n; i++)
        DC_TRY(check_func(j, f->module->body.at[i].fn));
    return DC_OK;
}
