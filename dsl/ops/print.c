/*
 * Tensors as text. A scalar is its number, with the fewest digits that read back; anything else is
 * aligned columns, one block per matrix, and below them the type:
 *
 *   [2, :, :]
 *      0.5  12.25
 *     -1.0   3.0
 *   f32[batch=2, 2, 2]
 *
 * Floats of one tensor have the same number of decimals, at most four and no more than they need;
 * with exponents where sizes differ too much for that. Long axes show their ends, and only what is
 * shown is read: it is gathered into a small dense copy first. A complex number is 1.5-2.0j, in the form of its parts.
 */
#include "core/base/number.h"
#include "dsl/ops/ops.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    LINE = 80,    /* columns of text that a row may take */
    ROWS = 10,    /* rows that are shown whole, else EDGE and EDGE */
    COLUMNS = 26, /* the same for columns, if they fit into LINE */
    BLOCKS = 4,   /* the same for axes before those, else BLOCK_EDGE twice */
    EDGE = 3,
    BLOCK_EDGE = 2,
    MATRICES = 16, /* more of them than this, and the first axes show their first and last */
    PLACES = 4
};

/* Whole numbers, with decimals, or with exponents. */
typedef enum style { STYLE_OWN, STYLE_FIXED, STYLE_SCI } style;

typedef struct table {
    const dc_type *type;
    int64_t shown[DC_MAX_RANK]; /* positions of each axis that are shown */
    const char *data;           /* of these, dense */
    style style;
    int places, width;
} table;

/* ---- what is shown --------------------------------------------------------------------------- */

static bool is_cut(const table *t, int axis)
{
    return t->shown[axis] < t->type->dim[axis];
}

/* The position in the tensor of the i-th that is shown. */
static int64_t position(const table *t, int axis, int64_t i)
{
    return i < t->shown[axis] / 2 ? i : i + t->type->dim[axis] - t->shown[axis];
}

static bool at_gap(const table *t, int axis, int64_t i)
{
    return is_cut(t, axis) && i == t->shown[axis] / 2;
}

static int64_t count_from(const int64_t *dim, int axis, int rank)
{
    int64_t n = 1;
    for (; axis < rank; axis++)
        n *= dim[axis];
    return n;
}

/* column_edge 0: columns are shown whole. */
static void choose_shown(table *t, int column_edge)
{
    const int rank = t->type->rank;
    for (int k = 0; k < rank; k++) {
        const int whole = k == rank - 1   ? (column_edge == 0 ? COLUMNS : 2 * column_edge)
                          : k == rank - 2 ? ROWS
                                          : BLOCKS;
        const int edge = k == rank - 1   ? (column_edge == 0 ? EDGE : column_edge)
                         : k == rank - 2 ? EDGE
                                         : BLOCK_EDGE;
        t->shown[k] = t->type->dim[k] <= whole ? t->type->dim[k] : 2 * edge;
    }
    for (int k = 0; k < rank - 2 && count_from(t->shown, 0, rank - 2) > MATRICES; k++)
        t->shown[k] = t->shown[k] < 2 ? t->shown[k] : 2;
}

/* The stretches of memory that hold it; returns how many. */
static int list_parts(const table *t, dc_part *part)
{
    const dc_type *type = t->type;
    const int rank = type->rank, last = rank - 1;
    const int64_t rows = count_from(t->shown, 0, last);
    int n = 0;
    for (int64_t row = 0; row < rows; row++) {
        int64_t rest = row, at = 0, stride = type->dim[last];
        for (int k = last - 1; k >= 0; k--) {
            at += position(t, k, rest % t->shown[k]) * stride;
            rest /= t->shown[k];
            stride *= type->dim[k];
        }
        const int64_t half = is_cut(t, last) ? t->shown[last] / 2 : t->shown[last];
        part[n++] = (dc_part){at, half};
        if (is_cut(t, last))
            part[n++] = (dc_part){at + type->dim[last] - half, half};
    }
    return n;
}

/* Leaves two userdata on the stack. */
static void read_shown(lua_State *L, dc_dsl *d, dc_handle *h, table *t)
{
    const int64_t rows = count_from(t->shown, 0, t->type->rank - 1);
    dc_part *part = lua_newuserdatauv(L, (size_t)rows * 2 * sizeof *part + 1, 0);
    t->data = dc_handle_read_parts(L, d, h, part, list_parts(t, part), "tostring");
}

/* ---- how it is shown ------------------------------------------------------------------------- */

enum { CELL = 2 * DC_NUMBER_TEXT + 2 };

/* Of real numbers elements, of complex ones their parts. */
static dc_dtype part_dtype(const table *t)
{
    return dc_dtype_part((dc_dtype)t->type->dtype);
}

static bool is_complex(const table *t)
{
    return dc_dtype_is_complex((dc_dtype)t->type->dtype);
}

static uint64_t element(const table *t, int64_t i)
{
    const dc_dtype dtype = part_dtype(t);
    return dc_bits_load(dtype, t->data + (size_t)i * dc_dtype_size(dtype));
}

static const char *show_part(const table *t, int64_t i, char *out)
{
    const dc_dtype dtype = part_dtype(t);
    switch (t->style) {
    case STYLE_FIXED:
        return dc_number_fixed(dc_value_of(dtype, element(t, i)), t->places, out);
    case STYLE_SCI:
        return dc_number_sci(dc_value_of(dtype, element(t, i)), t->places, out);
    case STYLE_OWN:
        break;
    }
    return dc_number_print(dtype, element(t, i), out);
}

/* "1.5-2.0j" of its parts. */
static const char *join_parts(const char *re, const char *im, char *out)
{
    snprintf(out, CELL, "%s%s%sj", re, *im == '-' ? "" : "+", im);
    return out;
}

static const char *show(const table *t, int64_t i, char *out)
{
    char re[DC_NUMBER_TEXT], im[DC_NUMBER_TEXT];
    if (!is_complex(t))
        return show_part(t, i, out);
    return join_parts(show_part(t, 2 * i, re), show_part(t, 2 * i + 1, im), out);
}

/* What the finite floats among them are like. */
typedef struct range {
    double low, high; /* sizes, of those that are not 0 */
    int fixed, sci;   /* decimals that show all of each */
} range;

static range range_of(const table *t, int64_t n)
{
    const dc_dtype dtype = part_dtype(t);
    range r = {.low = INFINITY};
    for (int64_t i = 0; i < n; i++) {
        const double v = fabs(dc_value_of(dtype, element(t, i)));
        if (!isfinite(v) || v == 0)
            continue;
        const dc_decimal d = dc_number_decimal(dtype, element(t, i));
        r.low = v < r.low ? v : r.low;
        r.high = v > r.high ? v : r.high;
        r.fixed = d.n - 1 - d.exp > r.fixed ? d.n - 1 - d.exp : r.fixed;
        r.sci = d.n - 1 > r.sci ? d.n - 1 : r.sci;
    }
    return r;
}

static int between(int v, int low, int high)
{
    return v < low ? low : v > high ? high : v;
}

static void choose_style(table *t)
{
    const int64_t n = count_from(t->shown, 0, t->type->rank);
    char text[CELL];
    t->style = STYLE_OWN;
    if (dc_dtype_is_float(part_dtype(t))) {
        const range r = range_of(t, is_complex(t) ? 2 * n : n);
        const bool whole = r.fixed == 0;
        const bool sci = r.high >= 1e8 || (!whole && (r.low < 1e-4 || r.high / r.low > 1e5));
        t->style = sci ? STYLE_SCI : STYLE_FIXED;
        t->places = between(sci ? r.sci : r.fixed, 1, PLACES);
    }
    t->width = 0;
    for (int64_t i = 0; i < n; i++) {
        const int width = (int)strlen(show(t, i, text));
        t->width = width > t->width ? width : t->width;
    }
}

static bool too_wide(const table *t)
{
    const int last = t->type->rank - 1;
    return t->shown[last] * (t->width + 2) + (is_cut(t, last) ? 5 : 0) > LINE;
}

/* ---- text ------------------------------------------------------------------------------------ */

static void add_row(luaL_Buffer *b, const table *t, int64_t at)
{
    char text[CELL], cell[2 * CELL];
    const int last = t->type->rank - 1;
    for (int64_t i = 0; i < t->shown[last]; i++) {
        if (at_gap(t, last, i))
            luaL_addstring(b, "  ...");
        snprintf(cell, sizeof cell, "  %*s", t->width, show(t, at + i, text));
        luaL_addstring(b, cell);
    }
    luaL_addchar(b, '\n');
}

static void add_rows(luaL_Buffer *b, const table *t, int64_t at)
{
    const int axis = t->type->rank - 2;
    for (int64_t i = 0; i < t->shown[axis]; i++) {
        if (at_gap(t, axis, i))
            luaL_addstring(b, "  ...\n");
        add_row(b, t, at + i * t->shown[axis + 1]);
    }
}

/* One matrix at a time; `head` has the positions before `axis`: "2, 1, ". */
static void add_blocks(luaL_Buffer *b, const table *t, int axis, int64_t at, const char *head)
{
    const int rank = t->type->rank;
    if (axis == rank - 2) {
        luaL_addchar(b, '[');
        luaL_addstring(b, head);
        luaL_addstring(b, ":, :]\n");
        add_rows(b, t, at);
        return;
    }
    for (int64_t i = 0; i < t->shown[axis]; i++) {
        char deeper[DC_MAX_RANK * 24];
        if (at_gap(t, axis, i))
            luaL_addstring(b, "...\n");
        snprintf(deeper, sizeof deeper, "%.160s%" PRId64 ", ", head, position(t, axis, i) + 1);
        add_blocks(b, t, axis + 1, at + i * count_from(t->shown, axis + 1, rank), deeper);
    }
}

static void add_type(luaL_Buffer *b, const dc_handle *h, const dc_type *type)
{
    char text[DC_TYPE_TEXT];
    if (h->kind == DC_HANDLE_CELL) {
        luaL_addstring(b, h->cell->trainable ? "parameter " : "state ");
        if (h->cell->label != NULL) {
            luaL_addstring(b, h->cell->label);
            luaL_addchar(b, ' ');
        }
    }
    dc_type_print(type, text, sizeof text);
    luaL_addstring(b, text);
}

/* ---- entry ----------------------------------------------------------------------------------- */

static void push_traced(lua_State *L, const dc_handle *h)
{
    char type[DC_TYPE_TEXT];
    dc_type_print(&h->val.type, type, sizeof type);
    const char *origin = h->origin != NULL ? h->origin : "";
    if (strncmp(origin, "made at ", 8) == 0)
        origin += 8;
    lua_pushfstring(L, "%s (traced%s%s)", type, *origin ? ", " : "", origin);
}

static void push_scalar(lua_State *L, dc_dsl *d, dc_handle *h, dc_dtype dtype)
{
    char text[DC_NUMBER_TEXT], more[DC_NUMBER_TEXT], all[CELL];
    const char *at = dc_handle_read(L, d, h, "tostring");
    if (dc_dtype_is_complex(dtype)) {
        const dc_dtype part = dc_dtype_part(dtype);
        dc_number_print(part, dc_bits_load(part, at), text);
        dc_number_print(part, dc_bits_load(part, at + dc_dtype_size(part)), more);
        lua_pushstring(L, join_parts(text, more, all));
        return;
    }
    lua_pushstring(L, dc_number_print(dtype, dc_bits_load(dtype, at), text));
}

static void push_table(lua_State *L, dc_dsl *d, dc_handle *h, const dc_type *type)
{
    table t = {.type = type};
    luaL_Buffer b;
    const bool empty = dc_type_count(type) == 0;
    if (!empty) {
        const int top = lua_gettop(L);
        int edge = 0;
        do {
            lua_settop(L, top);
            choose_shown(&t, edge);
            read_shown(L, d, h, &t);
            choose_style(&t);
            edge = edge == 0 ? EDGE : edge - 1;
        } while (too_wide(&t) && edge > 0);
    }
    luaL_buffinit(L, &b);
    if (!empty && type->rank == 1)
        add_row(&b, &t, 0);
    else if (!empty && type->rank == 2)
        add_rows(&b, &t, 0);
    else if (!empty)
        add_blocks(&b, &t, 0, 0, "");
    add_type(&b, h, type);
    luaL_pushresult(&b);
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
    luaL_checkstack(L, 8, "text of a tensor");
    if (type.rank == 0)
        push_scalar(L, d, h, (dc_dtype)type.dtype);
    else
        push_table(L, d, h, &type);
    return 1;
}
