/*
 * Names of the dims of results, one rule for each word of the column in core/ir/ops.def (language.md):
 * different names at one position are an error, an unnamed dim takes the other's name, a dim whose
 * extent changes loses its name. dtype and dims of the result are there and right.
 */
#include "core/ir/conv.h"
#include "core/ir/infer_impl.h"

#include <string.h>

/* The name that two agreeing dims have together. */
static dc_status join_names(const dc_site *s, int left, int right, int operand, const char **out)
{
    const char *a = s->in[0].name[left], *b = s->in[operand - 1].name[right];
    if (a != NULL && b != NULL && a != b)
        return dc_fail(s->j, DC_ERR_NAMES,
                       &(dc_fact){.op = dc_site_name(s),
                                  .axis = {left, right},
                                  .type = {s->in[0], s->in[operand - 1]},
                                  .word = {a, b},
                                  .operand = operand});
    *out = a != NULL ? a : b;
    return DC_OK;
}

static dc_status names_agree(const dc_site *s)
{
    for (int k = 0; k < s->out->rank; k++) {
        const char *seen = s->in[0].name[k];
        for (int i = 1; i < s->nin; i++) {
            const char *b = s->in[i].name[k];
            if (seen != NULL && b != NULL && seen != b)
                return dc_fail(s->j, DC_ERR_NAMES,
                               &(dc_fact){.op = dc_site_name(s),
                                          .axis = {k, k},
                                          .type = {s->in[0], s->in[i]},
                                          .word = {seen, b},
                                          .operand = i + 1});
            seen = seen != NULL ? seen : b;
        }
        s->out->name[k] = seen;
    }
    return DC_OK;
}

static dc_status names_none(const dc_site *s)
{
    memcpy(s->out->name, s->want->name, sizeof s->out->name);
    return DC_OK;
}

static dc_status names_message(const dc_site *s)
{
    return s->op == DC_OP_RECV ? names_none(s) : DC_OK;
}

static dc_status names_perm(const dc_site *s)
{
    for (int i = 0; i < s->out->rank; i++)
        s->out->name[i] = s->in[0].name[s->attr[i]];
    return DC_OK;
}

static dc_status names_drop(const dc_site *s)
{
    int to = 0;
    for (int i = 0; i < s->in[0].rank; i++)
        if ((s->attr[0] >> i & 1) == 0)
            s->out->name[to++] = s->in[0].name[i];
    return DC_OK;
}

static dc_status names_keep(const dc_site *s)
{
    const dc_type *a = &s->in[0];
    for (int i = 0; i < s->out->rank; i++) {
        if (a->dim[i] == s->out->dim[i])
            s->out->name[i] = a->name[i];
        else if (s->op == DC_OP_EXPAND && a->name[i] != NULL)
            return dc_fail(s->j, DC_ERR_STRETCH,
                           &(dc_fact){.op = dc_site_name(s),
                                      .axis = {i},
                                      .num = {s->out->dim[i]},
                                      .type = {*a},
                                      .word = {a->name[i]},
                                      .operand = 1});
    }
    return DC_OK;
}

static bool has_name(const dc_type *t, const char *name)
{
    for (int i = 0; i < t->rank; i++)
        if (t->name[i] == name)
            return true;
    return false;
}

/*
 * Names that are given; at axes without one, those of the longest common run of sizes from the left,
 * then from the right. A name given to one axis is not kept at another.
 */
static dc_status names_reshape(const dc_site *s)
{
    const dc_type *a = &s->in[0];
    dc_type *out = s->out;
    const int common = a->rank < out->rank ? a->rank : out->rank;
    int left = 0;
    while (left < common && a->dim[left] == out->dim[left]) {
        out->name[left] = a->name[left];
        left++;
    }
    for (int back = 1; back <= common - left; back++) {
        if (a->dim[a->rank - back] != out->dim[out->rank - back])
            break;
        out->name[out->rank - back] = a->name[a->rank - back];
    }
    for (int i = 0; i < out->rank; i++)
        if (s->want->name[i] != NULL || (out->name[i] != NULL && has_name(s->want, out->name[i])))
            out->name[i] = s->want->name[i];
    return DC_OK;
}

static dc_status names_dot(const dc_site *s)
{
    dc_dot d;
    int to = 0;
    DC_TRY(dc_infer_dot(s, &d));
    for (int i = 0; i < d.nbatch; i++)
        DC_TRY(join_names(s, (int)d.batch[0][i], (int)d.batch[1][i], 2, &s->out->name[to++]));
    for (int i = 0; i < d.ncontract; i++) {
        const char *inner;
        DC_TRY(join_names(s, (int)d.contract[0][i], (int)d.contract[1][i], 2, &inner));
    }
    for (int side = 0; side < 2; side++)
        for (int i = 0; i < d.nfree[side]; i++)
            s->out->name[to++] = s->in[side].name[d.free[side][i]];
    return DC_OK;
}

/* Channels that are added up agree where there is one group; dims under the window lose their names. */
static dc_status names_conv(const dc_site *s)
{
    dc_conv c;
    const char *inner;
    if (!dc_conv_read(s->attr, s->nattr, &c))
        DC_BUG("a convolution without attributes");
    if (c.groups == 1)
        DC_TRY(join_names(s, (int)c.in[1], (int)c.kernel[1], 2, &inner));
    if (c.batch_groups == 1)
        s->out->name[c.out[0]] = s->in[0].name[c.in[0]];
    s->out->name[c.out[1]] = s->in[1].name[c.kernel[0]];
    return DC_OK;
}

/* Batch axes agree; the integers' own axes stand in the place of the axis. */
static dc_status names_GATHER(const dc_site *s)
{
    const dc_type *x = &s->in[0], *i = &s->in[1];
    const int axis = (int)s->attr[0], nb = (int)s->attr[1];
    int to = 0;
    for (int k = 0; k < nb; k++)
        DC_TRY(join_names(s, k, k, 2, &s->out->name[to++]));
    for (int k = nb; k < axis; k++)
        s->out->name[to++] = x->name[k];
    for (int k = nb; k < i->rank; k++)
        s->out->name[to++] = i->name[k];
    for (int k = axis + 1; k < x->rank; k++)
        s->out->name[to++] = x->name[k];
    return DC_OK;
}

/* Names of operand 1; what else has a name has to agree with what is picked from it. */
static dc_status names_scatter(const dc_site *s)
{
    dc_type picked = {0};
    dc_site gather = *s;
    gather.out = &picked;
    DC_TRY(names_GATHER(&gather));
    for (int k = 0; k < s->in[2].rank; k++) {
        const char *a = picked.name[k], *b = s->in[2].name[k];
        if (a != NULL && b != NULL && a != b)
            return dc_fail(s->j, DC_ERR_NAMES,
                           &(dc_fact){.op = dc_site_name(s),
                                      .axis = {k, k},
                                      .type = {s->in[0], s->in[2]},
                                      .word = {a, b},
                                      .operand = 3});
    }
    memcpy(s->out->name, s->in[0].name, sizeof s->out->name);
    return DC_OK;
}

static dc_status names_first(const dc_site *s)
{
    memcpy(s->out->name, s->in[0].name, sizeof s->out->name);
    return DC_OK;
}

/* Of other axes than the operand has. */
static dc_status names_STAGE(const dc_site *s)
{
    memset(s->out->name, 0, sizeof s->out->name);
    return DC_OK;
}

#define names_DFT         names_first
#define names_SCATTER     names_scatter
#define names_SCATTER_ADD names_scatter
#define names_SCATTER_MUL names_scatter
#define names_SCATTER_MAX names_scatter
#define names_SCATTER_MIN names_scatter

/* ---- the table ---- */

dc_status dc_infer_names(const dc_site *s)
{
    static dc_status (*const rules[])(const dc_site *s) = {
/* clang-format off */
#define EW(id, lua, n, flags, type, names, shape, grad, evalf, evali, expand, lo, hi) \
    [DC_OP_##id] = names_##names,
#define RED(id, lua, combine, type, names, grad, lo, hi) [DC_OP_##id] = names_##names,
#define MOV(id, lua, names, grad)                        [DC_OP_##id] = names_##names,
#define SRC(id, lua)                                     [DC_OP_##id] = names_none,
#define CON(id, lua, type, names, grad, lo, hi)          [DC_OP_##id] = names_##names,
#define IDX(id, lua, n, combine, type, grad, lo, hi)     [DC_OP_##id] = names_##id,
#define HST(id, lua, n, rule, grad, lo, hi)              [DC_OP_##id] = dc_infer_host_names,
#define FFT(id, lua, grad)                               [DC_OP_##id] = names_##id,
#define SAME(id, lua, n, grad)                           [DC_OP_##id] = names_first,
#define PART(id, lua, n)                                 [DC_OP_##id] = names_first,
#define COM(id, lua, grad, lo, hi)                       [DC_OP_##id] = names_first,
#define MSG(id, lua, n, grad)                            [DC_OP_##id] = names_message,
#define CTL(id, lua, n)                                  [DC_OP_##id] = names_none,
#include "core/ir/ops.def"
        /* clang-format on */
    };
    return rules[s->op](s);
}
