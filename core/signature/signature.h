/*
 * Signatures of typed functions, and types whose sizes are not all known.
 *
 *   sig   = [name] "(" [param {"," param}] ")" ["->" ("()" | type {"," type})]
 *   param = name ["?"] [":" type]      "?": may be absent; no type: static
 *   type  = dtype "[" [dim {"," dim}] "]" | "{" name ":" type {"," name ":" type} "}" | "{" type "}"
 *   dim   = "..." | [number "<="] name "<=" number | (name "=" expr | expr) ["@" axis {"+" axis}]
 *   expr  = numbers and names with + - * // % ( )
 *
 * A name of a dim is a variable of the signature: the same size everywhere in it, local to it as
 * parameters are. It takes size and name from the caller's tensors (dc_sig_bind). "..." stands for
 * any number of dims, the same ones everywhere; at most one in a type.
 *
 * `name = expr` gives the axis that name and the variable that value: two statements about one size.
 *
 * `name <= 512` bounds a variable: its size is from 1 to the bound and known when the function runs;
 * `0 <= name <= 512` says where it begins. dc_sig_bound puts codes (core/base/extent.h) into a binding.
 *
 * `@ data` splits an axis among the ranks along that axis of the mesh (core/ir/sharding.h): the size is that of all
 * parts together, which is what dims say everywhere. Parts are a matter of dc_sig_sharding.
 *
 * Solving: bare names (and names before "=") first, in all arguments; then expressions that are
 * linear in one name without a size, as often as that finds something; what is then left over must
 * agree. A name that this cannot find is an error of the definition unless the caller gives its
 * size: after the last size (dc_sig_give) the caller asks dc_sig_check. Names that only results have
 * are found in the same way, result by result.
 *
 * Names of dims outside: a variable has the name that the caller's dims have in its place; a dim
 * without a name agrees with any; two different names for one variable are a miss. Inside, a dim is
 * called as the signature calls it, and those of "..." have no name, so that one trace serves all
 * callers.
 *
 * A dc_sig owns its arena; names are interned elsewhere. It is immutable after dc_sig_parse.
 */
#ifndef DC_CORE_SIGNATURE_SIGNATURE_H
#define DC_CORE_SIGNATURE_SIGNATURE_H

#include "core/base/arena.h"
#include "core/base/expr.h"
#include "core/base/type.h"
#include "core/ir/sharding.h"

enum {
    DC_SIG_PARAMS = 32,
    DC_SIG_RESULTS = 8,
    DC_SIG_VARS = DC_EXPR_VARS,
    DC_SIG_MOST = INT32_MAX, /* the largest bound: sizes are i32 in kernels */
    DC_SIG_LEAVES = 4096,    /* tensor types in the text; so many tensors of a call, with lists */
    DC_SIG_SPLITS = 4,       /* axes of a mesh that split an axis */
    DC_SIG_NEST = 16,        /* records and lists in each other */
    DC_SIG_TEXT = 1000       /* room that most printed signatures fit in; printers cut */
};

typedef enum dc_dim_kind {
    DC_DIM_SIZE, /* a number, or an expression of numbers */
    DC_DIM_VAR,  /* a bare name */
    DC_DIM_EXPR,
    DC_DIM_REST /* "..." */
} dc_dim_kind;

typedef struct dc_dim {
    dc_dim_kind kind;
    int64_t size;        /* SIZE */
    int var;             /* VAR: its number. Of `name = expr`: the number of `name`. Else -1 */
    const char *name;    /* of the axis: of VAR and `name = expr`; else NULL */
    const dc_expr *expr; /* EXPR */
    int nsplit;          /* axes of the mesh, in the order written */
    const char *split[DC_SIG_SPLITS];
} dc_dim;

typedef enum dc_shape_kind { DC_SHAPE_TENSOR, DC_SHAPE_RECORD, DC_SHAPE_LIST } dc_shape_kind;

typedef struct dc_sig_type dc_sig_type;

typedef struct dc_sig_field {
    const char *name;
    const dc_sig_type *type;
} dc_sig_field;

struct dc_sig_type {
    dc_shape_kind kind;
    dc_dtype dtype; /* TENSOR, as the next two */
    int ndim;
    dc_dim dim[DC_MAX_RANK + 1];
    int rest;   /* index of "..." in dim, or -1 */
    int nfield; /* RECORD, in the order written */
    const dc_sig_field *field;
    const dc_sig_type *of; /* LIST */
};

typedef struct dc_sig_param {
    const char *name;
    bool optional;
    const dc_sig_type *type; /* NULL: static */
} dc_sig_param;

/* `name = expr`, wherever it stands: holds in every call. */
typedef struct dc_sig_def {
    int var;
    const dc_expr *expr;
    const struct dc_sig_def *next;
} dc_sig_def;

typedef struct dc_sig {
    dc_arena arena;
    const char *name; /* or NULL */
    int nparam, nresult, nvar;
    bool any_result; /* no "->": the results are what they are */
    bool has_rest;   /* "..." stands somewhere */
    dc_sig_param param[DC_SIG_PARAMS];
    const dc_sig_type *result[DC_SIG_RESULTS];
    const char *var[DC_SIG_VARS + 1]; /* names of dims; NULL-terminated */
    int64_t size[DC_SIG_VARS];        /* where the text itself gives the size (batch=64), else -1 */
    int64_t least[DC_SIG_VARS], most[DC_SIG_VARS]; /* of bounded names; most is -1 of the others */
    int rest_at; /* has_rest: variables that stand before it, for lists in order of the text */
    const dc_sig_def *def; /* in the order of the text */
} dc_sig;

/* What the variables of a signature stand for. */
typedef struct dc_sig_bind {
    int64_t size[DC_SIG_VARS];     /* -1: not known */
    const char *name[DC_SIG_VARS]; /* the caller's name of that dim; NULL none */
    int rest;                      /* number of dims that "..." stands for; -1 not known */
    int64_t rest_size[DC_MAX_RANK];
    const char *rest_name[DC_MAX_RANK];
    struct dc_extents *extents; /* sizes may be codes of it; NULL: all are numbers */
} dc_sig_bind;

struct dc_job;

/* SIGNATURE quotes the place; TYPE_TEXT a type that cannot be read. On failure nothing is owned. */
dc_status dc_sig_parse(struct dc_job *j, dc_names *intern, const char *text, dc_sig *out);
void dc_sig_fini(dc_sig *s);

/* What the text itself says; everything else unknown. */
void dc_sig_begin(const dc_sig *s, dc_sig_bind *b);
/* A size given for a name (third argument of dc.fn). ARG for an unknown name, another size, < 0. */
dc_status dc_sig_give(struct dc_job *j, const dc_sig *s, dc_sig_bind *b, const char *name,
                      int64_t size);
/* Bounds a name, as "n <= 64" in the text does. ARG for an unknown name, another bound, a range without sizes. */
dc_status dc_sig_limit(struct dc_job *j, dc_sig *s, const char *name, int64_t least, int64_t most);
/* Which bounded names become codes, of which bound. */
typedef enum dc_bound_mode {
    DC_BOUND_CALL,  /* all, whatever size they have */
    DC_BOUND_EXACT, /* all; the bound is the size that they have, so that nothing lies behind it */
    DC_BOUND_OPEN   /* those without a size */
} dc_bound_mode;

/*
 * Bounded names of *b become codes, and with them what follows from them. False where the size of one is out of
 * its range: *var.
 */
bool dc_sig_bound(const dc_sig *s, struct dc_extents *x, dc_sig_bind *b, dc_bound_mode mode,
                  int *var);

/*
 * No more sizes are given. Puts those into *b that follow from them (n=2*m), and fails with SIGNATURE
 * where calls could never find a name, where two statements contradict each other and where a type
 * that is known by now has no size (negative, too large to address). For every definition.
 */
dc_status dc_sig_check(struct dc_job *j, const dc_sig *s, dc_sig_bind *b);

/* A tensor of the caller's, for a type declared as TENSOR. */
typedef struct dc_sig_leaf {
    const dc_sig_type *declared;
    dc_type given; /* with the caller's names */
} dc_sig_leaf;

typedef enum dc_sig_miss_kind {
    DC_MISS_NONE,
    DC_MISS_DTYPE,
    DC_MISS_RANK,
    DC_MISS_SIZE,  /* axis: `got` where `want` is bound or written */
    DC_MISS_NAME,  /* axis: the caller's name `got_name`, bound before to `want_name` */
    DC_MISS_WHOLE, /* axis: no whole size of `var` gives `got`; or only `want`, which is < 0 */
    DC_MISS_RANGE, /* the value of an expression is too large; or `want`, which is < 0 */
    DC_MISS_ZERO,  /* an expression divides by zero */
    DC_MISS_OPEN   /* the size of `var` cannot be found: what would tell it is absent */
} dc_sig_miss_kind;

typedef struct dc_sig_miss {
    dc_sig_miss_kind kind;
    int leaf; /* -1: a statement `name = expr` that is not about one tensor */
    int axis; /* 0-based, of the given type; -1 none */
    /* SIZE: sizes; DTYPE: dc_dtype; RANK: numbers of dims, those of "..." if axis >= 0 */
    int64_t want, got;
    int var;                          /* or -1 */
    const char *want_name, *got_name; /* of NAME; want_name, too, where leaf is -1 */
    char text[120]; /* what is declared there: "2*n + 1"; "..."; "" if a number or a name is */
} dc_sig_miss;

/* Binds all leaves of a call at once. False where they do not fit; *b is then worth nothing. */
bool dc_sig_match(const dc_sig *s, dc_sig_bind *b, const dc_sig_leaf *leaf, int n,
                  dc_sig_miss *miss);
/* "axis 2 = 30 against 28 (w)", with axes counted from axis_base; returns what snprintf would. */
int dc_sig_miss_print(const dc_sig *s, const dc_sig_miss *miss, int axis_base, char *out,
                      size_t room);

/* The type with sizes put in; names are the signature's own. False if one is not known or wrong. */
bool dc_sig_resolve(const dc_sig_bind *b, const dc_sig_type *t, dc_type *out);
/*
 * The same under the caller's names: what results are returned as. A name that no dim of the caller's
 * gave is none: names of the signature do not leave it.
 */
bool dc_sig_resolve_outside(const dc_sig_bind *b, const dc_sig_type *t, dc_type *out);

/*
 * Checks a result, under the signature's names, against its declared type: a name is none or the
 * declared one. Sizes that only results have are bound by it, the first result first. False where it
 * does not fit; *b then stays as it was.
 */
bool dc_sig_match_result(const dc_sig *s, dc_sig_bind *b, const dc_sig_type *t,
                         const dc_type *given, dc_sig_miss *miss);

/* Is an axis of the type split, of one in it, or of any type of the signature? */
bool dc_sig_is_split(const dc_sig_type *t);
bool dc_sig_any_split(const dc_sig *s);
/*
 * How a tensor of the type lies on the ranks, where "..." stands for `rest` axes. False: the mesh has no axis *name, or it
 * stands twice (*twice).
 */
bool dc_sig_sharding(const dc_sig_type *t, int rest, const dc_mesh *m, dc_sharding *out,
                     const char **name, bool *twice);

/* The number of the variable called so, or -1. */
int dc_sig_var(const dc_sig *s, const char *name);
/* "batch=64, t=128": what is known, in order of the text; "..." as "...=[8, 4]". */
int dc_sig_bind_print(const dc_sig *s, const dc_sig_bind *b, char *out, size_t room);

/*
 * Canonical text, which dc_sig_parse reads again to the same: "f(x: f32[batch, 2*n + 1], p?: {w:
 * f32[n]}, k) -> f32[batch]". With a binding, known sizes are put in: f32[batch=64, 9].
 */
int dc_sig_print(const dc_sig *s, const dc_sig_bind *b, char *out, size_t room);
int dc_sig_type_print(const dc_sig *s, const dc_sig_bind *b, const dc_sig_type *t, char *out,
                      size_t room);
int dc_sig_dim_print(const dc_sig *s, const dc_sig_bind *b, const dc_dim *d, char *out,
                     size_t room);

#endif
