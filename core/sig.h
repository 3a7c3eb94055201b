/*
 * Signatures of typed functions: "step(x: u8[64, 28, 28], lr: f32[]) -> f32[]".
 *
 *   sig   = [name] "(" [param {"," param}] ")" ["->" ("()" | type {"," type})]
 *   param = name ":" type
 *   type  = dtype "[" [dim {"," dim}] "]"
 *   dim   = number | name "=" number | name
 *
 * A bare name stands for a size that is bound later. A dc_oldsig owns nothing: names are interned.
 */
#ifndef DC_CORE_SIG_H
#define DC_CORE_SIG_H

#include "core/type.h"

enum { DC_OLDSIG_PARAMS = 32, DC_OLDSIG_RESULTS = 8, DC_OLDSIG_VARS = 16 };

/* dim[i] < 0: not a size but variable ~dim[i]; its name stands in the type, too. */
typedef struct dc_oldsig_param {
    const char *name;
    dc_type type;
} dc_oldsig_param;

typedef struct dc_oldsig {
    const char *name; /* or NULL */
    int nparam, nresult, nvar;
    bool any_result; /* no "->": the results are what they are */
    dc_oldsig_param param[DC_OLDSIG_PARAMS];
    dc_type result[DC_OLDSIG_RESULTS];
    const char *var[DC_OLDSIG_VARS]; /* names of dims */
    int64_t size[DC_OLDSIG_VARS];    /* -1: unknown until a call */
} dc_oldsig;

struct dc_job;

/* SIGNATURE quotes the place; TYPE_TEXT a type that cannot be read. */
dc_status dc_oldsig_parse(struct dc_job *j, dc_names *intern, const char *text, dc_oldsig *out);

/* The type with sizes put in for variables; false if one of them has no size. */
bool dc_oldsig_resolve(const dc_type *t, const int64_t *size, dc_type *out);

/*
 * Takes the sizes of variables that have none yet from an argument. False where dtype, rank or a
 * size differ; *axis is then the first axis at fault, or -1.
 */
bool dc_oldsig_match(const dc_type *declared, const dc_type *given, int64_t *size, int *axis);

/* "f32[batch, 784]", with names where no size is known. */
int dc_oldsig_type_print(const dc_type *t, const int64_t *size, char *out, size_t room);

#endif
