/*
 * Tensors as text: a scalar is its number, with the fewest digits that read back; anything else is
 * columns of one width and the type below. Long axes show their ends.
 */
#include "dsl/impl.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EDGE = 3, WHOLE = 1000, CELL = 32 };

typedef struct table {
    const dc_type *type;
    const char *data;
    char style; /* of floats: 'i' whole numbers, 'f' four places, 'e' with exponents */
    bool cut;
    int width;
} table;

static void shortest(float v, char *out)
{
    const float size = fabsf(v);
    int digits = 1;
    for (float ten = 10; ten <= size && size < 1e9f; ten *= 10)
        digits++; /* 20000.0, not 2e+04 */
    for (; digits <= 9; digits++) {
        snprintf(out, CELL, "%.*g", digits, (double)v);
        if (strtof(out, NULL) == v)
            break;
    }
    if (isfinite(v) && strpbrk(out, ".e") == NULL)
        strcat(out, ".0");
}

static double element(const table *t, int64_t i)
{
    const dc_dtype dtype = (dc_dtype)t->type->dtype;
    return dc_value_of(dtype, dc_bits_load(dtype, t->data + (size_t)i * dc_dtype_size(dtype)));
}

static void show(const table *t, int64_t i, char *out)
{
    const double v = element(t, i);
    if (t->type->dtype == DC_BOOL)
        snprintf(out, CELL, "%s", v != 0 ? "true" : "false");
    else if (!dc_dtype_is_float((dc_dtype)t->type->dtype))
        snprintf(out, CELL, "%.0f", v);
    else if (isnan(v))
        snprintf(out, CELL, "nan"); /* its sign is an accident */
    else if (t->style == 's')
        shortest((float)v, out);
    else
        snprintf(out, CELL, t->style == 'i' ? "%.1f" : t->style == 'f' ? "%.4f" : "%.4e", v);
}

/* Calls see(t, element) for what is shown of the axes from `axis` on, whose first element is at. */
static void each(table *t, int axis, int64_t at, void (*see)(table *t, int64_t i))
{
    if (axis == t->type->rank) {
        see(t, at);
        return;
    }
    int64_t stride = 1;
    const int64_t n = t->type->dim[axis];
    for (int k = axis + 1; k < t->type->rank; k++)
        stride *= t->type->dim[k];
    for (int64_t i = 0; i < n; i++) {
        if (t->cut && n > 2 * EDGE && i == EDGE)
            i = n - EDGE;
        each(t, axis + 1, at + i * stride, see);
    }
}

static void see_style(table *t, int64_t i)
{
    const double v = fabs(element(t, i));
    if (!isfinite(v) || v == 0)
        return;
    if (v >= 1e5 || v < 1e-3)
        t->style = 'e';
    else if (v != floor(v) && t->style == 'i')
        t->style = 'f';
}

static void see_width(table *t, int64_t i)
{
    char text[CELL];
    show(t, i, text);
    if ((int)strlen(text) > t->width)
        t->width = (int)strlen(text);
}

static void add_row(luaL_Buffer *b, const table *t, int64_t at)
{
    char text[CELL], cell[CELL + 8];
    const int64_t n = t->type->dim[t->type->rank - 1];
    for (int64_t i = 0; i < n; i++) {
        if (t->cut && n > 2 * EDGE && i == EDGE) {
            luaL_addstring(b, "  ...");
            i = n - EDGE;
        }
        show(t, at + i, text);
        snprintf(cell, sizeof cell, "  %*s", t->width, text);
        luaL_addstring(b, cell);
    }
    luaL_addchar(b, '\n');
}

/* One matrix (or vector) at a time; `heading` is "[2][1]" for those of higher ranks. */
static void add_block(luaL_Buffer *b, const table *t, int axis, int64_t at, const char *heading)
{
    const int rank = t->type->rank;
    int64_t stride = 1;
    if (axis == rank - 1) {
        add_row(b, t, at);
        return;
    }
    for (int k = axis + 1; k < rank; k++)
        stride *= t->type->dim[k];
    const int64_t n = t->type->dim[axis];
    if (axis == rank - 2 && *heading != '\0') {
        luaL_addstring(b, heading);
        luaL_addchar(b, '\n');
    }
    for (int64_t i = 0; i < n; i++) {
        char deeper[DC_MAX_RANK * 24];
        if (t->cut && n > 2 * EDGE && i == EDGE) {
            luaL_addstring(b, "  ...\n");
            i = n - EDGE;
        }
        snprintf(deeper, sizeof deeper, "%.160s[%" PRId64 "]", heading, i + 1);
        add_block(b, t, axis + 1, at + i * stride, deeper);
    }
}

static void push_traced(lua_State *L, const dc_handle *h)
{
    char type[DC_TYPE_TEXT];
    dc_type_print(&h->val.type, type, sizeof type);
    const char *origin = h->origin != NULL ? h->origin : "";
    if (strncmp(origin, "made at ", 8) == 0)
        origin += 8;
    lua_pushfstring(L, "%s (traced%s%s)", type, *origin ? ", " : "", origin);
}

int dc_print_value(lua_State *L, dc_dsl *d, dc_handle *h)
{
    if (h->kind == DC_HANDLE_TRACED) {
        push_traced(L, h);
        return 1;
    }
    const dc_type type = *dc_handle_type(h);
    char text[DC_TYPE_TEXT];
    if (h->kind == DC_HANDLE_CELL && dc_trace_here(L, d) != NULL) {
        dc_type_print(&type, text, sizeof text);
        lua_pushfstring(L, "%s (%s)", text, h->cell->label != NULL ? h->cell->label : "a cell");
        return 1;
    }
    table t = {.type = &type, .data = dc_handle_read(L, d, h, "tostring"), .style = 's'};
    if (type.rank == 0) {
        show(&t, 0, text);
        lua_pushstring(L, text);
        return 1;
    }
    t.cut = dc_type_count(&type) > WHOLE;
    t.style = 'i';
    each(&t, 0, 0, see_style);
    each(&t, 0, 0, see_width);
    luaL_Buffer b;
    luaL_buffinit(L, &b);
    if (dc_type_count(&type) > 0)
        add_block(&b, &t, 0, 0, "");
    dc_type_print(&type, text, sizeof text);
    luaL_addstring(&b, text);
    luaL_pushresult(&b);
    return 1;
}
