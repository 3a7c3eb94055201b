/* How the types of a signature say that values lie on the ranks of a mesh. */
#include "core/signature/signature.h"

#include <string.h>

bool dc_sig_is_split(const dc_sig_type *t)
{
    bool is = t->kind == DC_SHAPE_LIST && dc_sig_is_split(t->of);
    for (int i = 0; i < t->nfield; i++)
        is |= dc_sig_is_split(t->field[i].type);
    for (int k = 0; k < t->ndim; k++)
        is |= t->dim[k].nsplit > 0;
    return is;
}

bool dc_sig_any_split(const dc_sig *s)
{
    for (int i = 0; i < s->nparam; i++)
        if (s->param[i].type != NULL && dc_sig_is_split(s->param[i].type))
            return true;
    for (int i = 0; i < s->nresult; i++)
        if (dc_sig_is_split(s->result[i]))
            return true;
    return false;
}

static int axis_of(const dc_mesh *m, const char *name)
{
    for (uint32_t a = 0; a < m->naxis; a++)
        if (strcmp(m->name[a], name) == 0)
            return (int)a;
    return -1;
}

bool dc_sig_sharding(const dc_sig_type *t, int rest, const dc_mesh *m, dc_sharding *out,
                     const char **name, bool *twice)
{
    *out = (dc_sharding){0};
    for (int k = 0; k < t->ndim; k++)
        for (int i = 0; i < t->dim[k].nsplit; i++) {
            const int at = t->rest >= 0 && k > t->rest ? k - 1 + rest : k;
            const int a = axis_of(m, t->dim[k].split[i]);
            *name = t->dim[k].split[i];
            *twice = a >= 0 && out->dim[a] != 0;
            if (a < 0 || *twice)
                return false;
            out->dim[a] = (uint8_t)(1 + at);
        }
    return true;
}
