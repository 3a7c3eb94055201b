/* The op table as data, and the scalar meanings that its rows use. */
#ifndef DC_CORE_IR_OP_H
#define DC_CORE_IR_OP_H

#include "core/base/bits.h"
#include "core/base/type.h"

typedef enum dc_op {
#define EW(id, ...)  DC_OP_##id,
#define RED(id, ...) DC_OP_##id,
#define MOV(id, ...) DC_OP_##id,
#define SRC(id, ...) DC_OP_##id,
#define CON(id, ...) DC_OP_##id,
#define IDX(id, ...) DC_OP_##id,
#define HST(id, ...) DC_OP_##id,
#define FFT(id, ...) DC_OP_##id,
#define SAME(id, ...) DC_OP_##id,
#define PART(id, ...) DC_OP_##id,
#define COM(id, ...) DC_OP_##id,
#define MSG(id, ...) DC_OP_##id,
#define CTL(id, ...) DC_OP_##id,
#include "core/ir/ops.def"
    DC_OP__COUNT
} dc_op;

typedef enum dc_op_class {
    DC_CLASS_EW,
    DC_CLASS_RED,
    DC_CLASS_MOV,
    DC_CLASS_SRC,
    DC_CLASS_CON,
    DC_CLASS_IDX,
    DC_CLASS_HST,
    DC_CLASS_FFT,
    DC_CLASS_SAME,
    DC_CLASS_PART,
    DC_CLASS_COM,
    DC_CLASS_CTL
} dc_op_class;

enum { DC_OPF_COMM = 1, DC_OPF_ASSOC = 2, DC_OPF_IDEM = 4, DC_OPF_CMP = 8, DC_OPF_COSTLY = 16, DC_OPF_NEAR = 32 };

typedef struct dc_op_row {
    const char *name;
    uint8_t cls;     /* dc_op_class */
    uint8_t n;       /* operands; 0 of class FFT, SAME, PART or CTL: any number */
    uint8_t flags;
    uint8_t combine; /* of a reduction or a scatter: the element-wise op that combines, or 0 */
    double lo, hi;   /* operands of generated tests */
} dc_op_row;

const dc_op_row *dc_op_row_of(dc_op op);
const char *dc_op_class_name(dc_op op); /* "element-wise", as dc.ops and pages say it */
bool dc_op_find(const char *name, size_t n, dc_op *out);
static inline bool dc_op_is(dc_op op, dc_op_class cls)
{
    return dc_op_row_of(op)->cls == cls;
}

/* Is it a scatter that combines what is there with what is put? */
static inline bool dc_op_accumulates(dc_op op)
{
    return dc_op_is(op, DC_CLASS_IDX) && dc_op_row_of(op)->combine != 0;
}

/* Does it take any number of operands, one at least? */
static inline bool dc_op_any_number(dc_op op)
{
    const dc_op_row *row = dc_op_row_of(op);
    return row->n == 0 && (row->cls == DC_CLASS_FFT || row->cls == DC_CLASS_SAME ||
                           row->cls == DC_CLASS_PART || row->cls == DC_CLASS_CTL);
}

/* Does the host compute it, or exchange it with other ranks (core/ir/host_call.h)? */
static inline bool dc_op_for_host(dc_op op)
{
    return dc_op_is(op, DC_CLASS_HST) || dc_op_is(op, DC_CLASS_COM);
}

/* Of class COM: does a rank do it with another one, or by itself, and not all members of a group together? */
static inline bool dc_op_is_message(dc_op op)
{
    return op == DC_OP_SEND || op == DC_OP_RECV || op == DC_OP_ARRIVED;
}

/* The reduction that combines so. */
dc_op dc_op_reduction(dc_op combine);
/* Identity of a reduction as a pattern of the dtype: 0, the smallest, the largest, 1. */
uint64_t dc_op_identity(dc_op reduction, dc_dtype t);

/* One element-wise operation on patterns. t is the dtype of the last operand, rt of the result. */
uint64_t dc_op_eval(dc_op op, dc_dtype t, dc_dtype rt, const uint64_t *in);
/* The same of `count` elements, of integers or where patterns are moved as they are; not DC_OP_CAST. */
void dc_op_eval_many(dc_op op, dc_dtype t, dc_dtype rt, int64_t count, const uint64_t *const *in,
                     uint64_t *out);
/* The float meaning without rounding, for the wide interpreter. */
double dc_op_evalf(dc_op op, double a, double b, double c);

uint32_t dc_threefry(uint64_t k0, uint64_t k1, uint64_t c0, uint64_t c1);

#endif
