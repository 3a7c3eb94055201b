/*
 * Arguments of moves as axes and buffers of the kernel, and names of those that moves make
 * (jit/moves/move_impl.h).
 */
#include "jit/moves/move_impl.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool dc_move_axis(dc_nest_edit *v, const dc_move *m, int i, uint32_t *axis)
{
    const int found = dc_axis_find(v->k, m->arg[i]);
    if (found < 0 || !dc_nest_has_loop(v->k->root, (uint32_t)found))
        return dc_nest_refuse(v, "there is no loop over %s", m->arg[i]);
    *axis = (uint32_t)found;
    return true;
}

bool dc_move_serial_axis(dc_nest_edit *v, const dc_move *m, int i, uint32_t *axis)
{
    static const char *const kinds[] = {"serial",   "the grid",          "vectorized",
                                        "unrolled", "threads (a block)", "threads (lanes)"};
    if (!dc_move_axis(v, m, i, axis))
        return false;
    const dc_axis *a = &v->k->axis.at[*axis];
    return a->kind == DC_AXIS_SERIAL ||
           dc_nest_refuse(v, "%s takes a serial axis, %s is %s", dc_move_name(m->kind), a->name,
                          kinds[a->kind]);
}

bool dc_move_buffer(dc_nest_edit *v, const dc_move *m, int i, uint32_t *buf)
{
    for (uint32_t b = 0; b < v->k->buf.n; b++)
        if (strcmp(v->k->buf.at[b].name, m->arg[i]) == 0) {
            *buf = b;
            return true;
        }
    return dc_nest_refuse(v, "there is no buffer %s", m->arg[i]);
}

static bool fits_axis(dc_nest_edit *v, const char *name)
{
    const size_t room = sizeof v->k->axis.at->name;
    return strlen(name) < room ||
           dc_nest_refuse(v, "the name %s of an axis would be longer than %d", name, (int)room - 1);
}

bool dc_move_new_axis(dc_nest_edit *v, uint32_t *axis, int64_t extent, bool reduce, const char *fmt,
                      ...)
{
    char name[80];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(name, sizeof name, fmt, ap);
    va_end(ap);
    if (!fits_axis(v, name))
        return false;
    if (dc_axis_find(v->k, name) >= 0)
        return dc_nest_refuse(v, "there is an axis %s already", name);
    *axis = dc_axis_new(v->k, name, extent, reduce);
    return true;
}

bool dc_move_copy_axis(dc_nest_edit *v, uint32_t *axis, uint32_t buf, uint32_t of)
{
    char name[80];
    const dc_axis a = v->k->axis.at[of];
    const char *prefix = v->k->buf.at[buf].name;
    snprintf(name, sizeof name, "%s.%s", prefix, a.name);
    for (unsigned n = 2; dc_axis_find(v->k, name) >= 0; n++)
        snprintf(name, sizeof name, "%s.%s%u", prefix, a.name, n);
    if (!fits_axis(v, name))
        return false;
    *axis = dc_axis_new(v->k, name, a.extent, false);
    return true;
}

static bool buffer_exists(const dc_kernel *k, const char *name)
{
    for (uint32_t b = 0; b < k->buf.n; b++)
        if (strcmp(k->buf.at[b].name, name) == 0)
            return true;
    return false;
}

bool dc_move_new_buffer(dc_nest_edit *v, uint32_t *buf, uint32_t like, const char *suffix,
                        int64_t count)
{
    char name[80];
    dc_kernel *k = v->k;
    const dc_buffer b = k->buf.at[like];
    snprintf(name, sizeof name, "%s%s", b.name, suffix);
    for (unsigned n = 2; buffer_exists(k, name); n++)
        snprintf(name, sizeof name, "%s%s%u", b.name, suffix, n);
    if (strlen(name) >= sizeof b.name)
        return dc_nest_refuse(v, "the name %s of a buffer would be longer than %d", name,
                              (int)sizeof b.name - 1);
    *buf = dc_buffer_new(k, name, (dc_dtype)b.dtype, count, DC_SCOPE_LOCAL, DC_MODE_OUT);
    return true;
}
