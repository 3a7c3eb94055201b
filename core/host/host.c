#include "core/host/host_impl.h"

#include <string.h>

static const dc_host_row *row_of(dc_op op)
{
    switch ((int)op) {
    case DC_OP_SORT:
        return &dc_host_sort;
    case DC_OP_ARGSORT:
        return &dc_host_argsort;
    case DC_OP_TOPK:
        return &dc_host_topk;
    case DC_OP_RUN:
        return &dc_host_running;
    case DC_OP_CHOLESKY:
        return &dc_host_cholesky;
    case DC_OP_LU:
        return &dc_host_lu;
    case DC_OP_QR:
        return &dc_host_qr;
    case DC_OP_EIGH:
        return &dc_host_eigh;
    case DC_OP_SVD:
        return &dc_host_svd;
    case DC_OP_TRSOLVE:
        return &dc_host_trsolve;
    case DC_OP_LUSOLVE:
        return &dc_host_lusolve;
    case DC_OP_DET:
        return &dc_host_det;
    case DC_OP_EIGVALSH:
        return &dc_host_eigvalsh;
    case DC_OP_SVDVALS:
        return &dc_host_svdvals;
    case DC_OP_LSTSQ:
        return &dc_host_lstsq;
    case DC_OP_PINV:
        return &dc_host_pinv;
    case DC_OP_EIG:
        return &dc_host_eig;
    case DC_OP_EIGVALS:
        return &dc_host_eigvals;
    case DC_OP_MATRIX_EXP:
        return &dc_host_matrix_exp;
    }
    DC_BUG("%s is no operation of the host", dc_op_row_of(op)->name);
}

static int64_t batch_of(const dc_host_call *c)
{
    int64_t rows = 1;
    for (int k = 0; k < c->in[0].rank - dc_host_call_axes(c->op, c->attr); k++)
        rows *= c->in[0].dim[k];
    return dc_type_count(&c->out) == 0 ? 0 : rows;
}

static bool is_exchange(const dc_host_call *c)
{
    return dc_op_is(c->op, DC_CLASS_COM);
}

int64_t dc_host_rows(const dc_host_call *c)
{
    if (is_exchange(c))
        return 1;
    const dc_host_row *row = row_of(c->op);
    const int64_t batch = batch_of(c);
    return batch > 0 && row->pieces != NULL ? batch * row->pieces(c) : batch;
}

static int64_t share(const dc_type *t, int64_t rows)
{
    return rows > 0 ? dc_type_count(t) / rows : 0;
}

int64_t dc_host_operand_count(const dc_host_call *c, int i)
{
    return share(&c->in[i], batch_of(c));
}

int64_t dc_host_result_count(const dc_host_call *c)
{
    return share(&c->out, batch_of(c));
}

static size_t exchange_scratch(const dc_host_call *c)
{
    return dc_op_is_message(c->op) ? 0 : dc_exchange_scratch(c->op, c->attr, &c->in[0]);
}

size_t dc_host_scratch(const dc_host_call *c)
{
    return dc_align_up(is_exchange(c) ? exchange_scratch(c) : row_of(c->op)->scratch(c), 64);
}

uint64_t dc_host_cost_ns(const dc_host_call *c)
{
    if (is_exchange(c))
        return 10000 + dc_type_bytes(dc_host_call_moved(c)) / 4;
    const double ns = 1 + (double)dc_host_rows(c) * row_of(c->op)->cost(c);
    return ns < 1e15 ? (uint64_t)ns : (uint64_t)1e15;
}

dc_status dc_host_open(dc_job *j, const dc_host_call *c, dc_lapack *lib)
{
    *lib = (dc_lapack){0};
    return !is_exchange(c) && row_of(c->op)->needs_lapack ? dc_lapack_open(j, lib) : DC_OK;
}

static void run_rows(const dc_host_call *c, const dc_lapack *lib, const dc_look *look, void *out,
                     const void *const *in, void *scratch, int64_t begin, int64_t end)
{
    const dc_host_row *row = row_of(c->op);
    size_t step[DC_HOST_OPERANDS];
    if (row->run_range != NULL) {
        row->run_range(c, look, out, in[0], begin, end);
        return;
    }
    const size_t result = (size_t)dc_host_result_count(c) * dc_dtype_size((dc_dtype)c->out.dtype);
    for (int i = 0; i < c->nin; i++)
        step[i] = (size_t)dc_host_operand_count(c, i) * dc_dtype_size((dc_dtype)c->in[i].dtype);
    const dc_look *const between = row->run_long != NULL ? NULL : look;
    for (int64_t r = begin; r < end && !dc_look_ends(between); r++) {
        const void *at[DC_HOST_OPERANDS];
        for (int i = 0; i < c->nin; i++)
            at[i] = (const char *)in[i] + (size_t)r * step[i];
        char *const to = (char *)out + (size_t)r * result;
        if (row->run_long != NULL)
            row->run_long(c, look, to, at[0], scratch);
        else
            row->run(c, lib, to, at, scratch);
    }
}

dc_status dc_host_run(dc_job *j, const dc_host_call *c, const dc_lapack *lib, const dc_look *look,
                      void *out, const void *const *in, void *scratch, int64_t begin, int64_t end)
{
    if (dc_op_is_message(c->op) && c->op != DC_OP_RECV)
        memset(out, 0, dc_type_bytes(&c->out));
    if (c->op == DC_OP_ARRIVED)
        return DC_OK;
    if (is_exchange(c))
        return dc_exchange_run(j, c->op, c->attr, dc_host_call_moved(c), c->label, c->where, out,
                               in[0], scratch);
    const bool several = row_of(c->op)->needs_lapack && dc_host_rows(c) > 1;
    if (several)
        dc_lapack_enter_single(lib);
    run_rows(c, lib, look, out, in, scratch, begin, end);
    if (several)
        dc_lapack_leave_single(lib);
    return DC_OK;
}
