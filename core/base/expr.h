/*
 * Sizes of dims as expressions: 2*n + 1, (h - 1)//s + 1.
 *
 *   expr   = term {("+" | "-") term}
 *   term   = factor {("*" | "//" | "%") factor}
 *   factor = number | name | "(" expr ")"
 *
 * "//" and "%" floor, as in Lua. Values are int64_t; what overflows or divides by zero is a fault,
 * never a value. An expression is a list of nodes in which operands come before what uses them, so
 * that it is evaluated from front to back; the last node is the whole.
 */
#ifndef DC_CORE_BASE_EXPR_H
#define DC_CORE_BASE_EXPR_H

#include "core/base/base.h"

enum {
    DC_EXPR_NODES = 64, /* numbers, names and operators of one expression */
    DC_EXPR_VARS = 16,  /* variables are numbered 0..15 */
    DC_EXPR_NEST = 16,  /* parentheses in parentheses */
    DC_EXPR_TEXT = 1024 /* room that most printed expressions fit in; the printer cuts */
};

typedef enum dc_expr_op {
    DC_EXPR_NUM,
    DC_EXPR_VAR,
    DC_EXPR_ADD,
    DC_EXPR_SUB,
    DC_EXPR_MUL,
    DC_EXPR_DIV,
    DC_EXPR_MOD
} dc_expr_op;

typedef struct dc_expr_node {
    int64_t v; /* NUM: the value; VAR: the number of the variable */
    uint8_t op, left, right;
} dc_expr_node;

typedef struct dc_expr {
    int n;
    const dc_expr_node *node;
} dc_expr;

typedef enum dc_expr_fault {
    DC_EXPR_OK,
    DC_EXPR_OPERAND,   /* a number, a name or "(" is needed at the cursor */
    DC_EXPR_CLOSE,     /* ")" is needed at the cursor */
    DC_EXPR_NAME,      /* the name at the cursor is not taken */
    DC_EXPR_WORD,      /* neither number nor name: 2n */
    DC_EXPR_SLASH,     /* "/" */
    DC_EXPR_ZEROS,     /* a number with leading zeros */
    DC_EXPR_LARGE,     /* a number or a value that int64_t does not hold */
    DC_EXPR_ZERO,      /* division by zero */
    DC_EXPR_LONG,      /* more than DC_EXPR_NODES */
    DC_EXPR_DEEP,      /* more than DC_EXPR_NEST */
    DC_EXPR_UNKNOWN,   /* a variable has no value */
    DC_EXPR_NOT_LINEAR /* in what has no value */
} dc_expr_fault;

/* The number of the variable with this name, or < 0: not taken. */
typedef int dc_expr_var(void *ctx, const char *name, size_t n);

typedef struct dc_expr_reader {
    const char *at;   /* read up to here; at a fault, where it is */
    dc_expr_var *var; /* NULL: no name is taken */
    void *ctx;
    int n, nest;
    dc_expr_node node[DC_EXPR_NODES];
} dc_expr_reader;

/* Reads one expression from r->at into r->node. */
dc_expr_fault dc_expr_read(dc_expr_reader *r);

/* Letters are those of ASCII, whatever the locale. */
bool dc_expr_starts_name(char c);
size_t dc_expr_name_length(const char *s); /* 0: none stands there */
const char *dc_expr_skip_blanks(const char *s);

/* Sizes of variables < 0 are unknown. */
dc_expr_fault dc_expr_eval(const dc_expr *e, const int64_t *size, int64_t *out);
/* The same where sizes may be codes of the table (core/base/extent.h); NULL: none are. */
struct dc_extents;
dc_expr_fault dc_expr_eval_in(struct dc_extents *x, const dc_expr *e, const int64_t *size,
                              int64_t *out);

/*
 * c + the sum of a[v] * v over the variables without a size. NOT_LINEAR where the product, quotient or
 * remainder of such is asked for.
 */
typedef struct dc_expr_linear {
    int64_t c, a[DC_EXPR_VARS];
} dc_expr_linear;

dc_expr_fault dc_expr_linearize(const dc_expr *e, const int64_t *size, dc_expr_linear *out);

/* The one variable that `known` (a set of bits) lacks and in which e is linear; -1 where there are
 * none or several, or e is not linear in it. What is known may have any value. */
int dc_expr_solvable(const dc_expr *e, unsigned known);
/* The variables that occur, as bits. */
unsigned dc_expr_vars(const dc_expr *e);

/* "2*n + 1"; var[v] are the names. Returns what snprintf would. */
int dc_expr_print(const dc_expr *e, const char *const *var, char *out, size_t room);

#endif
