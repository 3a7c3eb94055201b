/*
 * Complex tensors and their parts:
 *
 *   dc.complex(re, im)   dc.polar(size, angle)   z:real()   z:imag()   z:conj()   z:angle()
 *   z:view_as_real()     of type f32[..., 2]     x:view_as_complex()   back
 *
 * What else takes complex tensors does so by itself (core/build/complex.h).
 */
#include "core/build/complex.h"

#include "dsl/base/args.h"
#include "dsl/base/binding.h"
#include "dsl/ops/apply.h"
#include "dsl/ops/ops.h"

static bool is_part(const dc_type *t)
{
    return t->dtype == DC_F32 || t->dtype == DC_F64;
}

static dc_status need(dc_job *j, const dc_val *v, int operand, bool ok, const char *what)
{
    if (ok)
        return DC_OK;
    return dc_fail(j, DC_ERR_DTYPE,
                   &(dc_fact){.type = {v->type}, .word = {what}, .operand = operand});
}

/* Both stretched to the dims that they have together. */
static dc_status join(dc_job *j, dc_func *f, const dc_val *in, dc_val *out)
{
    dc_val part[2], both;
    for (int i = 0; i < 2; i++)
        DC_TRY(need(j, &in[i], i + 1, is_part(&in[i].type), "f32 or f64"));
    DC_TRY(dc_ops_2(j, f, DC_OP_EQ, in[0], in[1], &both));
    for (int i = 0; i < 2; i++)
        DC_TRY(dc_build_expand(j, f, in[i], &both.type, &part[i]));
    return dc_complex_join(j, f, part[0], part[1], out);
}

static dc_status build_complex(dc_job *j, dc_func *f, const void *arg, const dc_val *in,
                               dc_val *out)
{
    DC_UNUSED(arg);
    return join(j, f, in, out);
}

static dc_status build_polar(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    dc_val part[2];
    DC_UNUSED(arg);
    for (int i = 0; i < 2; i++)
        DC_TRY(need(j, &in[i], i + 1, is_part(&in[i].type), "f32 or f64"));
    DC_TRY(dc_ops_1(j, f, DC_OP_COS, in[1], &part[0]));
    DC_TRY(dc_ops_1(j, f, DC_OP_SIN, in[1], &part[1]));
    for (int i = 0; i < 2; i++)
        DC_TRY(dc_ops_2(j, f, DC_OP_MUL, in[0], part[i], &part[i]));
    return dc_complex_join(j, f, part[0], part[1], out);
}

static dc_status build_real(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    DC_UNUSED(j);
    DC_UNUSED(arg);
    *out = dc_complex_part(f, in[0], 0);
    return DC_OK;
}

static dc_status build_imag(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    DC_UNUSED(j);
    DC_UNUSED(arg);
    *out = dc_complex_part(f, in[0], 1);
    return DC_OK;
}

static dc_status build_conj(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    dc_val im;
    DC_UNUSED(arg);
    *out = in[0];
    if (!dc_complex_is(&in[0]))
        return DC_OK;
    DC_TRY(dc_ops_1(j, f, DC_OP_NEG, dc_complex_part(f, in[0], 1), &im));
    return dc_complex_join(j, f, dc_complex_part(f, in[0], 0), im, out);
}

static dc_status build_angle(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    DC_UNUSED(arg);
    DC_TRY(need(j, &in[0], 1, dc_dtype_is_smooth((dc_dtype)in[0].type.dtype), "a float"));
    *out = dc_complex_part(f, in[0], 0);
    out->ref = dc_complex_angle(j, f, out->ref, dc_complex_part(f, in[0], 1).ref);
    return DC_OK;
}

static dc_status build_as_real(dc_job *j, dc_func *f, const void *arg, const dc_val *in,
                               dc_val *out)
{
    DC_UNUSED(f);
    DC_UNUSED(arg);
    DC_TRY(need(j, &in[0], 1, dc_complex_is(&in[0]), "c64 or c128"));
    *out = (dc_val){in[0].ref, dc_type_parts(&in[0].type)};
    return DC_OK;
}

static dc_status build_as_complex(dc_job *j, dc_func *f, const void *arg, const dc_val *in,
                                  dc_val *out)
{
    dc_type t = in[0].type;
    DC_UNUSED(f);
    DC_UNUSED(arg);
    DC_TRY(need(j, &in[0], 1, is_part(&t), "f32 or f64"));
    if (t.rank == 0 || t.dim[t.rank - 1] != 2)
        return dc_failf(j, DC_ERR_ARG, "view_as_complex",
                        "a last axis of 2 is needed, for real and imaginary part");
    t.rank--;
    t.dtype = t.dtype == DC_F64 ? DC_C128 : DC_C64;
    *out = (dc_val){in[0].ref, t};
    return DC_OK;
}

static const dc_composite rows[] = {
    {{"complex", dc_ops_composite, 2, DC_IN_MODULE}, build_complex, false, false},
    {{"polar", dc_ops_composite, 2, DC_IN_MODULE}, build_polar, false, false},
    {{"real", dc_ops_composite, 1, DC_IN_BOTH}, build_real, false, false},
    {{"imag", dc_ops_composite, 1, DC_IN_BOTH}, build_imag, false, false},
    {{"conj", dc_ops_composite, 1, DC_IN_BOTH}, build_conj, false, false},
    {{"angle", dc_ops_composite, 1, DC_IN_BOTH}, build_angle, false, true},
    {{"view_as_real", dc_ops_composite, 1, DC_IN_BOTH}, build_as_real, false, false},
    {{"view_as_complex", dc_ops_composite, 1, DC_IN_BOTH}, build_as_complex, false, false},
};

const dc_bindings dc_complex_bindings = {&rows[0].bound, DC_COUNTOF(rows), sizeof rows[0]};
