#include "tests/unit/trainstep.h"

#include "core/autodiff/grad.h"

static const float x_values[STEP_ROWS * STEP_WIDTH] = {
    -2.5f, -1.5f, -0.5f, 0.5f,  1.5f,  2.5f, 3.5f, -2.5f, -1.5f, -0.5f, 0.5f, 1.5f,
    2.5f,  3.5f,  -2.5f, -1.5f, -0.5f, 0.5f, 1.5f, 2.5f,  3.5f,  -2.5f, 0.0f, 1.0f};
static const int32_t y_values[STEP_ROWS] = {0, 2, 1, 1};
static const float lr_value = 0.5f;
static const float w_values[STEP_WIDTH * STEP_CLASSES] = {
    -0.5f, -0.25f, 0.0f, 0.25f, 0.5f, -0.5f, -0.25f, 0.0f, 0.25f,
    0.5f,  -0.5f,  0.1f, 0.0f,  0.3f, 0.5f,  -0.5f,  0.2f, 0.0f};
static const float b_values[STEP_CLASSES] = {0.0f, 0.125f, 0.0f};

const void *const trainstep_value[] = {x_values, y_values, &lr_value, w_values, b_values};
const size_t trainstep_bytes[] = {sizeof(float),   sizeof(float) * STEP_ROWS *STEP_CLASSES,
                                  sizeof w_values, sizeof b_values,
                                  sizeof(int32_t), sizeof(int32_t)};

static dc_status ew1(dc_job *j, trainstep *s, dc_op op, dc_val a, dc_val *out)
{
    return dc_build_ew(j, s->fn, op, &a, 1, out);
}

static dc_status ew2(dc_job *j, trainstep *s, dc_op op, dc_val a, dc_val b, dc_val *out)
{
    return dc_build_ew(j, s->fn, op, (dc_val[]){a, b}, 2, out);
}

static dc_status ew3(dc_job *j, trainstep *s, dc_op op, dc_val a, dc_val b, dc_val c, dc_val *out)
{
    return dc_build_ew(j, s->fn, op, (dc_val[]){a, b, c}, 3, out);
}

static dc_status make_params(dc_job *j, trainstep *s)
{
    static const struct {
        const char *type, *label;
    } params[] = {{"f32[4, feature=6]", "x"},
                  {"i32[4]", "y"},
                  {"f32[]", "lr"},
                  {"f32[6, 3]", "net.1.weight"},
                  {"f32[3]", "net.1.bias"}};
    for (size_t i = 0; i < DC_COUNTOF(params); i++) {
        const char *text = params[i].type;
        DC_TRY(dc_type_parse(j, s->module->names, &text, &s->param[i].type));
        s->param[i].ref = dc_graph_param(s->fn, &s->param[i].type, params[i].label);
    }
    return DC_OK;
}

/* Where column numbers equal the row's class. */
static dc_status make_hits(dc_job *j, trainstep *s, dc_val *hit)
{
    const dc_type ids = dc_type_make(DC_I32, 2, (int64_t[]){STEP_ROWS, STEP_CLASSES});
    const dc_type upright = dc_type_make(DC_I32, 2, (int64_t[]){STEP_ROWS, 1});
    dc_val column, y;
    DC_TRY(dc_build_iota(j, s->fn, &ids, 1, &column));
    DC_TRY(dc_build_reshape(j, s->fn, s->param[1], &upright, &y));
    return ew2(j, s, DC_OP_EQ, y, column, hit);
}

static dc_status make_loss(dc_job *j, trainstep *s)
{
    dc_val v, sum, shifted, hit, zero;
    DC_TRY(dc_build_reduce(j, s->fn, DC_OP_MAXR, s->logits, 2, true, &v));
    DC_TRY(ew2(j, s, DC_OP_SUB, s->logits, v, &shifted));
    DC_TRY(ew1(j, s, DC_OP_EXP, shifted, &v));
    DC_TRY(dc_build_reduce(j, s->fn, DC_OP_SUM, v, 2, true, &v));
    DC_TRY(ew1(j, s, DC_OP_LOG, v, &sum));
    DC_TRY(ew2(j, s, DC_OP_SUB, sum, shifted, &v));
    DC_TRY(make_hits(j, s, &hit));
    DC_TRY(dc_build_const(j, s->fn, &(dc_type){.dtype = DC_F32}, 0, &zero));
    DC_TRY(ew3(j, s, DC_OP_WHERE, hit, v, zero, &v));
    DC_TRY(dc_build_reduce(j, s->fn, DC_OP_SUM, v, 2, false, &v));
    DC_TRY(dc_build_mean(j, s->fn, v, 1, false, &v));
    s->loss = v.ref;
    return DC_OK;
}

dc_status trainstep_forward(dc_job *j, trainstep *s)
{
    dc_val v;
    s->fn = dc_func_new(s->module, "step");
    DC_TRY(make_params(j, s));
    dc_func_from(s->fn, "train.lua:7", "net.1");
    DC_TRY(dc_build_matmul(j, s->fn, s->param[0], s->param[3], &v));
    DC_TRY(ew2(j, s, DC_OP_ADD, v, s->param[4], &s->logits));
    dc_func_from(s->fn, "train.lua:8", NULL);
    return make_loss(j, s);
}

/* Position of the last class below 0 or -1, and the least class. */
static dc_status make_check(dc_job *j, trainstep *s)
{
    const dc_type row = dc_type_make(DC_I32, 1, (int64_t[]){STEP_ROWS});
    dc_val zero, none, bad, at, least;
    DC_TRY(dc_build_const(j, s->fn, &(dc_type){.dtype = DC_I32}, 0, &zero));
    DC_TRY(dc_build_const(j, s->fn, &(dc_type){.dtype = DC_I32}, -1, &none));
    DC_TRY(ew2(j, s, DC_OP_LT, s->param[1], zero, &bad));
    DC_TRY(dc_build_iota(j, s->fn, &row, 0, &at));
    DC_TRY(ew3(j, s, DC_OP_WHERE, bad, at, none, &at));
    DC_TRY(dc_build_reduce(j, s->fn, DC_OP_MAXR, at, 1, false, &at));
    DC_TRY(dc_build_reduce(j, s->fn, DC_OP_MINR, s->param[1], 1, false, &least));
    DC_PUSH(s->fn->result, at.ref);
    DC_PUSH(s->fn->result, least.ref);
    return DC_OK;
}

dc_status trainstep_build(dc_job *j, trainstep *s)
{
    DC_TRY(trainstep_forward(j, s));
    const dc_ref wrt[STEP_NCELL] = {s->param[3].ref, s->param[4].ref};
    DC_TRY(dc_grad(j, s->fn, s->loss, wrt, STEP_NCELL, s->grad));
    DC_PUSH(s->fn->result, s->loss);
    DC_PUSH(s->fn->result, s->logits.ref);
    for (int i = 0; i < STEP_NCELL; i++) {
        const dc_val old = s->param[STEP_NFREE + i];
        dc_val v = {s->grad[i], old.type};
        DC_TRY(ew2(j, s, DC_OP_MUL, v, s->param[2], &v));
        DC_TRY(ew2(j, s, DC_OP_SUB, old, v, &v));
        DC_PUSH(s->fn->result, v.ref);
    }
    return make_check(j, s);
}

dc_status trainstep_make(dc_job *j, void *step)
{
    trainstep *s = step;
    s->module = dc_module_new();
    return trainstep_build(j, s);
}

dc_exec_desc trainstep_desc(const trainstep *s)
{
    static const uint32_t set[STEP_NCELL] = {0, 1};
    return (dc_exec_desc){.fn = s->fn,
                          .name = "step",
                          .nfree = STEP_NFREE,
                          .ncell = STEP_NCELL,
                          .nresult = STEP_NRESULT,
                          .nset = STEP_NCELL,
                          .ncheck = 1,
                          .set = set};
}
