#include "tests/unit/hostgen.h"

#include "core/host/lapack.h"

bool hostgen_is_square(dc_op op)
{
    return op > DC_OP_RUN && op != DC_OP_QR && op != DC_OP_SVD && op != DC_OP_SVDVALS &&
           op != DC_OP_LSTSQ && op != DC_OP_PINV;
}

int hostgen_attrs(dc_op op)
{
    switch ((int)op) {
    case DC_OP_TRSOLVE:
    case DC_OP_RUN:
        return 3;
    case DC_OP_TOPK:
    case DC_OP_LUSOLVE:
    case DC_OP_DET:
        return 2;
    case DC_OP_SORT:
    case DC_OP_ARGSORT:
    case DC_OP_LU:
    case DC_OP_QR:
    case DC_OP_LSTSQ:
    case DC_OP_PINV:
        return 1;
    }
    return 0;
}

static bool open_library(void)
{
    dc_opts opts;
    const char *bad;
    dc_lapack lib;
    dc_opts_init(&opts, &bad);
    dc_job j = {.opt = &opts};
    return dc_lapack_open(&j, &lib) == DC_OK;
}

const char *hostgen_missing(void)
{
    static enum { UNKNOWN, THERE, MISSING } state;
    if (state == UNKNOWN)
        state = open_library() ? THERE : MISSING;
    return state == THERE ? NULL
                          : "operations of linear algebra: no LAPACK (Debian: libopenblas0-serial)";
}

bool hostgen_can(dc_op op)
{
    if (dc_op_is_message(op)) /* tests/unit/test_exchange.c: there is no other rank */
        return false;
    return !dc_op_is(op, DC_CLASS_HST) || op <= DC_OP_RUN || hostgen_missing() == NULL;
}
