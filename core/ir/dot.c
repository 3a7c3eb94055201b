#include "core/ir/dot.h"

#include <string.h>

int dc_dot_nattr(const int64_t *attr, int nattr)
{
    if (nattr < 2 || attr[0] < 0 || attr[1] < 0 || attr[0] > DC_MAX_RANK || attr[1] > DC_MAX_RANK)
        return -1;
    return (int)(2 + 2 * (attr[0] + attr[1]));
}

static bool is_among(const int64_t *list, int n, int64_t axis)
{
    for (int i = 0; i < n; i++)
        if (list[i] == axis)
            return true;
    return false;
}

static void find_free(dc_dot *d, int side, int rank)
{
    for (int i = 0; i < rank; i++)
        if (!is_among(d->batch[side], d->nbatch, i) &&
            !is_among(d->contract[side], d->ncontract, i))
            d->free[side][d->nfree[side]++] = i;
}

dc_dot dc_dot_read(const int64_t *attr, int left_rank, int right_rank)
{
    dc_dot d = {.nbatch = (int)attr[0], .ncontract = (int)attr[1]};
    const int64_t *at = attr + 2;
    for (int side = 0; side < 2; side++, at += d.nbatch)
        memcpy(d.batch[side], at, (size_t)d.nbatch * sizeof *at);
    for (int side = 0; side < 2; side++, at += d.ncontract)
        memcpy(d.contract[side], at, (size_t)d.ncontract * sizeof *at);
    find_free(&d, 0, left_rank);
    find_free(&d, 1, right_rank);
    return d;
}

int dc_dot_write(const dc_dot *d, int64_t attr[DC_DOT_ATTRS])
{
    int n = 0;
    attr[n++] = d->nbatch;
    attr[n++] = d->ncontract;
    for (int side = 0; side < 2; side++)
        for (int i = 0; i < d->nbatch; i++)
            attr[n++] = d->batch[side][i];
    for (int side = 0; side < 2; side++)
        for (int i = 0; i < d->ncontract; i++)
            attr[n++] = d->contract[side][i];
    return n;
}

dc_dot dc_dot_of(const dc_func *f, const dc_node *n)
{
    DC_ASSERT(dc_dot_nattr(n->attr, n->nattr) == n->nattr, "%d attributes", n->nattr);
    return dc_dot_read(n->attr, dc_node_at(f, n->in[0])->rank, dc_node_at(f, n->in[1])->rank);
}

dc_ref dc_dot_make(dc_func *f, dc_ref left, dc_ref right, const dc_dot *d)
{
    int64_t attr[DC_DOT_ATTRS];
    const int n = dc_dot_write(d, attr);
    return dc_graph_make(f, DC_OP_DOT, (dc_ref[]){left, right}, 2, attr, n, NULL);
}

dc_ref dc_graph_dot(dc_func *f, dc_ref a, dc_ref b, int nb, const int64_t *lb, const int64_t *rb,
                    int nc, const int64_t *lc, const int64_t *rc)
{
    dc_dot d = {.nbatch = nb, .ncontract = nc};
    for (int i = 0; i < nb; i++) {
        d.batch[0][i] = lb[i];
        d.batch[1][i] = rb[i];
    }
    for (int i = 0; i < nc; i++) {
        d.contract[0][i] = lc[i];
        d.contract[1][i] = rc[i];
    }
    return dc_dot_make(f, a, b, &d);
}
