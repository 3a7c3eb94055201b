/*
 * A failure record and what stands around it, as the text that is reported:
 *
 *   train.lua:15: matmul: inner dims differ: axis 3 = 28 against axis 1 = 784
 *       left   f32[batch=32, 28, 28]   argument 'img' of step, train.lua:12
 *       right  f32[784, 10]            parameter net.2.weight
 *       in     net.2 (nn.Linear 784 -> 10)
 *       dims   batch=32
 *     hint: 28 * 28 = 784; :flatten(2) first?
 *     [DC0301; deepc explain DC0301]
 *
 * Scripts, the program and hosts in C get the same lines; a caller that knows less of what is around leaves
 * lines out. Hints that follow from the types are worked out here.
 */
#include "core/base/err.h"
#include "core/base/extent.h"
#include "core/base/number.h"
#include "core/base/shown.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef struct sink {
    char *out;
    size_t size, n; /* n: wanted so far, written or not */
} sink;

static void put_n(sink *s, const char *text, size_t n)
{
    const size_t room = s->n + 1 < s->size ? s->size - 1 - s->n : 0;
    if (room > 0)
        memcpy(s->out + s->n, text, n < room ? n : room);
    s->n += n;
}

static void put_text(sink *s, const char *text)
{
    put_n(s, text, strlen(text));
}

/* What may be of others. `lines`: line feeds stay. */
static void put_lines(sink *s, const char *text, bool lines)
{
    char piece[DC_SHOWN_PIECE];
    size_t m;
    for (size_t at = 0, n = strlen(text); at < n; put_n(s, piece, m))
        at += dc_shown_next(text + at, n - at, lines, piece, &m);
}

static void put_shown(sink *s, const char *text)
{
    put_lines(s, text, false);
}

static void DC_PRINTF(2, 3) putf(sink *s, const char *fmt, ...)
{
    char text[64];
    va_list ap;
    va_start(ap, fmt);
    dc_number_vformat(text, sizeof text, fmt, ap);
    va_end(ap);
    put_text(s, text);
}

static int end(const sink *s)
{
    if (s->size > 0)
        s->out[s->n < s->size ? s->n : s->size - 1] = '\0';
    return (int)s->n;
}

/* ---- the sentence ---------------------------------------------------------------------------- */

static void put_field(sink *s, const dc_fact *f, int base, char kind, int i)
{
    char text[DC_TYPE_TEXT];
    switch (kind) {
    case 'a':
        putf(s, "%d", f->axis[i & 1] + base);
        break;
    case 'n':
        putf(s, "%s%" PRId64, dc_extent_is(f->num[i & 3]) ? "up to " : "",
             dc_extent_bound(f->num[i & 3]));
        break;
    case 't':
        dc_type_print(&f->type[i & 1], text, sizeof text);
        put_shown(s, text);
        break;
    default:
        put_lines(s, f->word[i & 1] ? f->word[i & 1] : "", f->lines);
        break;
    }
}

static void put_sentence(sink *s, const dc_err *e, int base)
{
    if (e->fact.op != NULL && strcmp(e->fact.op, "index") != 0) { /* a[k] has no such word */
        put_shown(s, e->fact.op);
        put_text(s, ": ");
    }
    for (const char *t = dc_err_row_of(e->id)->text; *t != '\0'; t++) {
        if (t[0] == '{' && t[1] != '\0' && t[2] >= '0' && t[2] <= '3' && t[3] == '}') {
            put_field(s, &e->fact, base, t[1], t[2] - '0');
            t += 3;
        } else {
            put_n(s, t, 1);
        }
    }
}

int dc_err_render(const dc_err *e, int axis_base, char *out, size_t size)
{
    sink s = {out, size, 0};
    put_sentence(&s, e, axis_base);
    return end(&s);
}

/* ---- hints ----------------------------------------------------------------------------------- */

/* The first axis from which the dims of t multiply to n; 0-based, -1 none. */
static int flat_from(const dc_type *t, int64_t n)
{
    int64_t product = 1;
    for (int k = t->rank - 1; k >= 0; k--)
        if (!dc_mul_ok(product, t->dim[k], &product))
            return -1;
        else if (product == n && k < t->rank - 1)
            return k;
    return -1;
}

static bool hint_for_product(const dc_err *e, sink *s)
{
    const dc_type *a = &e->fact.type[0], *b = &e->fact.type[1];
    const int from = flat_from(a, e->fact.num[1]);
    if (from >= 0) {
        for (int k = from; k < a->rank; k++)
            putf(s, "%s%" PRId64, k > from ? " * " : "", a->dim[k]);
        putf(s, " = %" PRId64 "; :flatten(%d) first?", e->fact.num[1], from + 1);
        return true;
    }
    if (b->rank == 2 && b->dim[1] == e->fact.num[0])
        put_text(s, "the right one :transpose()d would fit");
    else if (b->rank > 2 && b->dim[b->rank - 1] == e->fact.num[0])
        putf(s, "the right one with :transpose(%d, %d) would fit", b->rank - 1, b->rank);
    return s->n > 0;
}

/* Names are longer than putf has room for. */
static bool hint_for_names(const dc_err *e, sink *s)
{
    if (e->fact.word[0] == NULL || e->fact.word[1] == NULL)
        return false;
    put_text(s, "if they are the same: :rename { ");
    put_text(s, e->fact.word[1]);
    put_text(s, " = \"");
    put_text(s, e->fact.word[0]);
    put_text(s, "\" }");
    return true;
}

static bool hint_for_stretch(const dc_err *e, sink *s)
{
    put_text(s, "only an unnamed axis of size 1 stretches; :rename { ");
    put_text(s, e->fact.word[0]);
    put_text(s, " = false } drops the name");
    return true;
}

/* The type of the second one with the axes behind its own that bring the name to where the first one has it. */
static bool hint_for_twice(const dc_err *e, sink *s)
{
    const dc_type *b = &e->fact.type[1];
    const int more = e->fact.axis[1] - e->fact.axis[0];
    if (b->rank > 0 && b->rank + more <= e->fact.type[0].rank) {
        char type[DC_TYPE_TEXT];
        dc_type_print(b, type, sizeof type);
        put_text(s, "element by element: ");
        put_text(s, type);
        put_text(s, " as :reshape \"[");
        for (int k = 0; k < b->rank; k++) {
            put_text(s, k > 0 ? ", " : "");
            if (b->name[k] != NULL)
                put_text(s, b->name[k]);
            else
                putf(s, "%" PRId64, b->dim[k]);
        }
        for (int i = 0; i < more; i++)
            put_text(s, ", 1");
        put_text(s, "]\"; ");
    }
    put_text(s, "all pairs: one of them with :rename { ");
    put_text(s, e->fact.word[0]);
    put_text(s, " = false }");
    return true;
}

/* One of one axis beside one that has that size elsewhere: [64, 10] and [64]. */
static bool hint_for_column(const dc_type *a, const dc_type *b, sink *s)
{
    const dc_type *one = b->rank == 1 ? b : a, *more = b->rank == 1 ? a : b;
    if (one->rank != 1 || more->rank < 2)
        return false;
    for (int k = more->rank - 2; k >= 0; k--) {
        if (more->dim[k] != one->dim[0])
            continue;
        char type[DC_TYPE_TEXT];
        dc_type_print(one, type, sizeof type);
        put_text(s, "axes align from the right: ");
        put_text(s, type);
        for (int i = k; i < more->rank; i++)
            putf(s, "%s%" PRId64, i > k ? ", " : " as :reshape(", i > k ? 1 : one->dim[0]);
        put_text(s, ")");
        return true;
    }
    return false;
}

static bool is_op(const dc_err *e, const char *name)
{
    return e->fact.op != NULL && strcmp(e->fact.op, name) == 0;
}

static bool hint_for_dims(const dc_err *e, sink *s)
{
    const dc_type *a = &e->fact.type[0], *b = &e->fact.type[1];
    if (is_op(e, "expand")) {
        put_text(s, "only an axis of size 1 stretches");
        return true;
    }
    if (is_op(e, "mul") && a->rank > 0 && b->rank == 2 && a->dim[a->rank - 1] == b->dim[0]) {
        put_text(s, "* is element-wise, the product is x:matmul(w)");
        return true;
    }
    return hint_for_column(a, b, s);
}

/* Of two dtypes, the one that more values of the other fit into. */
static dc_dtype wider(dc_dtype a, dc_dtype b)
{
    if (dc_dtype_is_complex(a) != dc_dtype_is_complex(b))
        return dc_dtype_is_complex(a) ? a : b;
    if (dc_dtype_is_float(a) != dc_dtype_is_float(b))
        return dc_dtype_is_float(a) ? a : b;
    return dc_dtype_bits(b) > dc_dtype_bits(a) ? b : a;
}

static bool hint_for_dtypes(const dc_err *e, sink *s)
{
    const dc_dtype a = (dc_dtype)e->fact.type[0].dtype, b = (dc_dtype)e->fact.type[1].dtype;
    const dc_dtype to = is_op(e, "put") ? a : wider(a, b);
    putf(s, "dtypes never mix; :cast \"%s\" converts", dc_dtype_name(to));
    return true;
}

static bool hint_for_dtype(const dc_err *e, sink *s)
{
    const char *wanted = e->fact.word[0] != NULL ? e->fact.word[0] : "";
    if (strcmp(wanted, "a float") == 0)
        put_text(s, ":cast \"f32\" converts");
    else if (strcmp(wanted, "bool") == 0)
        put_text(s, "a comparison gives bool, as :ne(0) does");
    else if (strcmp(wanted, "an integer") == 0)
        put_text(s, ":cast \"i32\" converts");
    else if (strcmp(wanted, "a real number") == 0)
        put_text(s, "z:abs() is the size, z:real() and z:imag() are the parts; complex numbers "
                    "have no order");
    else if (e->fact.type[0].dtype == DC_BOOL && strcmp(wanted, "a number") == 0)
        put_text(s, ":cast \"f32\" makes 0 and 1 of it");
    return s->n > 0;
}

/* Dtypes as wide as the operand. */
static bool hint_for_pattern(const dc_err *e, sink *s)
{
    static const char *const alike[] = {[1] = "i8, u8, f8e4m3fn, f8e5m2",
                                        [2] = "i16, u16, f16, bf16",
                                        [4] = "i32, u32, f32",
                                        [8] = "i64, u64, f64"};
    const dc_dtype from = (dc_dtype)e->fact.type[0].dtype, to = (dc_dtype)e->fact.type[1].dtype;
    if (!is_op(e, "bitcast"))
        return false;
    putf(s, "as wide: %s; :cast \"%s\" converts", alike[dc_dtype_size(from)], dc_dtype_name(to));
    return true;
}

/* Images whose channels are the last axis. */
static bool hint_for_channels(const dc_err *e, sink *s)
{
    const dc_type *x = &e->fact.type[0];
    const int64_t groups = e->fact.num[2] > 0 ? e->fact.num[2] : 1;
    const int last = x->rank - 1, second = e->fact.axis[0];
    if (second != 1 || last < 2 || x->dim[last] / groups != e->fact.num[1])
        return false;
    putf(s, "images have their channels as axis 2: x:permute(1, %d", last + 1);
    for (int k = 1; k < last; k++)
        putf(s, ", %d", k + 1);
    put_text(s, ")");
    return true;
}

const char *dc_err_hint(const dc_err *e, char *room, size_t size)
{
    sink s = {room, size, 0};
    bool found = false;
    if (e->hint[0] != '\0')
        return e->hint;
    switch ((int)e->id) { /* most have only that of their row */
    case DC_ERR_INNER:
        found = hint_for_product(e, &s);
        break;
    case DC_ERR_DIMS:
    case DC_ERR_DIMS_ALIGN:
        found = hint_for_dims(e, &s);
        break;
    case DC_ERR_DTYPE_MIX:
        found = hint_for_dtypes(e, &s);
        break;
    case DC_ERR_NAMES:
        found = hint_for_names(e, &s);
        break;
    case DC_ERR_CHANNELS:
    case DC_ERR_CONV_GROUPED:
        found = hint_for_channels(e, &s);
        break;
    case DC_ERR_STRETCH:
        found = hint_for_stretch(e, &s);
        break;
    case DC_ERR_NAME_TWICE:
        found = hint_for_twice(e, &s);
        break;
    case DC_ERR_DTYPE:
        found = hint_for_dtype(e, &s);
        break;
    case DC_ERR_DTYPE_TEXT:
        found = hint_for_pattern(e, &s);
        break;
    case DC_ERR_GRAD_SCALAR:
        found = e->fact.type[0].rank == 0;
        if (found)
            put_text(&s, "integers have no gradient; :cast \"f32\" what the loss is made of");
        break;
    case DC_ERR_INDEX:
        found = e->fact.num[0] != 0; /* the row's is about 0 */
        break;
    default:
        break;
    }
    end(&s);
    return found ? room : dc_err_row_of(e->id)->hint;
}

/* ---- the whole text -------------------------------------------------------------------------- */

static size_t longest(size_t least, const char *text)
{
    const size_t n = strlen(text);
    return n > least ? n : least;
}

static void pad(sink *s, size_t n)
{
    while (n-- > 0)
        put_n(s, " ", 1);
}

static void put_head(sink *s, const char *role, size_t width)
{
    put_text(s, "\n    ");
    put_text(s, role);
    pad(s, width - strlen(role) + 1);
}

static void put_scene(sink *s, const dc_err_scene *c)
{
    size_t role = 6, type = 0;
    for (int i = 0; i < c->n; i++) {
        role = longest(role, c->in[i].role);
        type = longest(type, c->in[i].type);
    }
    for (int i = 0; i < c->n; i++) {
        const dc_err_in *in = &c->in[i];
        put_head(s, in->role, role);
        put_shown(s, in->type);
        if (in->origin == NULL || *in->origin == '\0')
            continue;
        pad(s, type - strlen(in->type) + 3);
        put_shown(s, in->origin);
    }
    if (c->path != NULL) {
        put_head(s, "in", role);
        put_shown(s, c->path);
    }
    if (c->dims != NULL && *c->dims != '\0') {
        put_head(s, "dims", role);
        put_shown(s, c->dims);
    }
}

int dc_err_print(const dc_err *e, const dc_err_scene *scene, int axis_base, char *out, size_t size)
{
    char room[480];
    sink s = {out, size, 0};
    const char *hint = scene->hint != NULL ? scene->hint : dc_err_hint(e, room, sizeof room);
    const int code = dc_err_row_of(e->id)->code;
    if (scene->where != NULL) {
        put_shown(&s, scene->where);
        put_text(&s, ": ");
    }
    put_sentence(&s, e, axis_base);
    put_scene(&s, scene);
    if (*hint != '\0') {
        put_text(&s, "\n  hint: ");
        put_shown(&s, hint);
    }
    if (code != 0)
        putf(&s, "\n  [DC%04d; deepc explain DC%04d]", code, code);
    return end(&s);
}
