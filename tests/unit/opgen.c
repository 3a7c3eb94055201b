#include "tests/unit/opgen.h"

#include "core/ir/conv.h"
#include "core/ir/dft.h"
#include "core/ir/exchange.h"
#include "core/ir/running.h"

#include <string.h>

#include "tests/unit/hostgen.h"

/* Attributes for a unary movement or reduction of a rank-3 operand; fills the type wanted. */
static int attributes(dc_op op, const int64_t *dim, int64_t *attr, dc_type *want)
{
    switch ((int)op) {
    case DC_OP_PERMUTE:
        memcpy(attr, (const int64_t[]){2, 0, 1}, 3 * sizeof *attr);
        return 3;
    case DC_OP_RESHAPE:
        want->rank = 2;
        want->dim[0] = dim[0] * dim[1];
        want->dim[1] = dim[2];
        return 0;
    case DC_OP_SLICE:
        for (int i = 0; i < 3; i++) {
            attr[i] = dim[i] / 3;
            attr[3 + i] = 1 + i % 2;
            want->dim[i] = (dim[i] - attr[i] + attr[3 + i] - 1) / attr[3 + i];
        }
        return 6;
    case DC_OP_PAD:
        for (int i = 0; i < 3; i++) {
            attr[i] = i;
            attr[3 + i] = 1 + i % 2;
            want->dim[i] = attr[i] + (dim[i] - 1) * attr[3 + i] + 1 + 2;
        }
        attr[6] = 1;
        return 7;
    case DC_OP_FLIP:
    case DC_OP_SUM:
    case DC_OP_MAXR:
    case DC_OP_MINR:
    case DC_OP_PROD:
        attr[0] = 5;
        return 1;
    default:
        return 0;
    }
}

/* The other operands of gather and scatter along axis 1: integers of dtype `to`, what is put. */
static void index_operand(dc_type *t, int i, dc_dtype to, int64_t nb)
{
    const dc_type x = *t;
    if (i == 1) {
        *t = dc_type_make(to, 2, (int64_t[]){nb > 0 ? x.dim[0] : 3, 5});
    } else if (i == 2) {
        t->rank = (uint8_t)(4 - nb);
        t->dim[1] = nb > 0 ? 5 : 3;
        t->dim[2] = nb > 0 ? x.dim[2] : 5;
        t->dim[3] = x.dim[2];
    }
}

dc_func *opgen_func(dc_job *j, dc_module *m, dc_op op, dc_dtype t, dc_dtype to, const int64_t *dim)
{
    const dc_op_row *row = dc_op_row_of(op);
    if (!hostgen_can(op))
        return NULL;
    dc_func *f = dc_func_new(m, row->name);
    dc_type type = dc_type_make(t, 3, dim), want = type;
    int64_t attr[DC_CONV_ATTRS] = {0};
    dc_ref in[4], out;
    int nattr = 0;
    if (op == DC_OP_DFT && (t == DC_F32 || t == DC_F64)) {
        type = dc_type_make(t, 4, (int64_t[]){dim[0], 3 * dim[1], dim[2], 2});
        out = dc_graph_dft(f, dc_graph_param(f, &type, "x"), dim[0] == 3 ? 1 : 2,
                           dim[0] % 2 ? 1 : -1);
        DC_PUSH(f->result, out);
        return f;
    }
    if (op == DC_OP_DFT)
        return NULL;
    const int nin = op == DC_OP_CUSTOM ? 3 : op == DC_OP_SET_SIZE ? 1 : row->n;
    for (int i = 0; i < nin; i++) {
        dc_type ti = type;
        if (op == DC_OP_WHERE && i == 0)
            ti.dtype = DC_BOOL;
        if (op == DC_OP_EXPAND)
            ti.dim[1] = 1;
        if (op == DC_OP_DOT && i == 1) {
            ti.dim[0] = 6;
            ti.dim[1] = dim[2];
            ti.dim[2] = dim[1];
        }
        if (op == DC_OP_CONV && i == 1) { /* of axis 1 to as many channels, over 2 of axis 2 */
            ti.dim[0] = ti.dim[1];
            ti.dim[2] = 2;
        }
        if (row->cls == DC_CLASS_HST && hostgen_is_square(op) && i == 0)
            ti.dim[2] = ti.dim[1];
        if ((op == DC_OP_LUSOLVE || op == DC_OP_DET) && i == 1) { /* factors */
            ti.dim[2] = ti.dim[1];
            ti.dim[1]++;
        }
        if (row->cls == DC_CLASS_IDX)
            index_operand(&ti, i, to, dim[0] % 2);
        in[i] = dc_graph_param(f, &ti, "x");
    }
    if (op == DC_OP_SET_SIZE) { /* all there are: results are compared */
        const dc_type size = dc_type_scalar(DC_I32);
        in[1] = dc_graph_const(f, &size, (double)dim[0]);
    }
    if (op == DC_OP_DOT) { /* contracts axes 1, 2 with 2, 1 */
        memcpy(attr, (const int64_t[]){0, 2, 1, 2, 2, 1}, 6 * sizeof *attr);
        nattr = 6;
    } else if (op == DC_OP_CONV) {
        dc_conv c = dc_conv_plain(1);
        c.dim[0].lo = c.dim[0].hi = 1;
        nattr = dc_conv_write(&c, attr);
    } else if (row->cls == DC_CLASS_IDX) {
        attr[0] = 1;
        attr[1] = dim[0] % 2;
        nattr = 2;
    } else if (row->cls == DC_CLASS_HST) {
        attr[op == DC_OP_TOPK] = dim[0] % 2; /* descending; upper */
        if (op == DC_OP_TOPK)
            attr[0] = (dim[2] + 1) / 2;
        if (op == DC_OP_RUN) { /* kind, reverse, axes behind */
            attr[0] = dim[0] % DC_RUN__COUNT;
            attr[1] = dim[1] % 2;
            attr[2] = dim[2] % 3;
        }
        nattr = hostgen_attrs(op);
    } else if (row->cls == DC_CLASS_COM) { /* a group of one */
        nattr = dc_exchange_write(&(dc_exchange_attr){.group = {1, 1, {1}}}, attr);
    } else if (op == DC_OP_RESHARD) { /* the first axis along the first axis of a mesh */
        attr[0] = 1;
        nattr = DC_MESH_AXES;
    } else if (op == DC_OP_CUSTOM) { /* the value, one input, its gradient */
        memcpy(attr, (const int64_t[]){1, 0, 1}, 3 * sizeof *attr);
        nattr = 3;
    } else if (op == DC_OP_HOLE || op == DC_OP_BARRIER || op == DC_OP_SET_SIZE) {
        nattr = op == DC_OP_HOLE ? 2 : 1;
    } else if (op == DC_OP_IOTA) {
        attr[0] = 1;
        nattr = 1;
    } else if (op == DC_OP_CONST) {
        attr[0] = (int64_t)dc_bits_of(t, 3);
        nattr = 1;
    } else {
        nattr = attributes(op, dim, attr, &want);
    }
    if (op == DC_OP_CAST || op == DC_OP_BITCAST)
        want.dtype = (uint8_t)to;
    const dc_status s =
        dc_make(j, f, op, in, op == DC_OP_SET_SIZE ? 2 : nin, attr, nattr, &want, &out);
    j->err = (dc_err){0};
    if (s != DC_OK)
        return NULL;
    DC_PUSH(f->result, out);
    return f;
}
