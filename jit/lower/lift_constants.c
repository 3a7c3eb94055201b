#include "jit/lower/lift_constants.h"

#include "jit/base/tuning.h"

#include <string.h>

enum { MOST = 64 }; /* constants of a kernel */

/* A kernel and its constants, in the order in which they are met. */
typedef struct numbered {
    dc_kernel *k;
    const char *text; /* with numbers in the place of constants */
    uint32_t n, next; /* next of the same text, + 1 */
    dc_vx at[MOST];
} numbered;

typedef struct lifting {
    dc_job *j;
    dc_text *work;
    numbered *of; /* by kernel; text NULL: it is left alone */
    dc_lifted *out;
    uint32_t n;
} lifting;

/* ---- which there are ------------------------------------------------------------------------- */

static bool find_constants(numbered *x, dc_vx v, bool *seen)
{
    const dc_vx_node *n = &x->k->vx.at[v];
    if (seen[v])
        return true;
    seen[v] = true;
    const int lifted = n->kind == DC_VX_OP && n->op == DC_OP_POWER ? 1 : n->n; /* of an exponent the code is made */
    for (int i = 0; i < lifted; i++)
        if (!find_constants(x, n->in[i], seen))
            return false;
    if (n->kind != DC_VX_CONST || !dc_dtype_is_float((dc_dtype)n->dtype))
        return true;
    if (x->n == MOST)
        return false;
    x->at[x->n++] = v;
    return true;
}

static bool stmts_are_maps(numbered *x, const dc_stmt *first, bool *seen)
{
    for (const dc_stmt *s = first; s != NULL; s = s->next) {
        if (s->kind == DC_STMT_TILE || s->reduces ||
            (s->kind == DC_STMT_LOOP && !stmts_are_maps(x, s->body, seen)))
            return false;
        for (uint32_t i = 0; s->kind == DC_STMT_SET && i < s->nput; i++)
            if (!find_constants(x, s->put[i].value, seen))
                return false;
    }
    return true;
}

/* The text of the kernel without its name, constant i being the number i. */
static const char *print_numbered(lifting *w, numbered *x)
{
    char name[sizeof x->k->name];
    uint64_t bits[MOST];
    memcpy(name, x->k->name, sizeof name);
    for (uint32_t i = 0; i < x->n; i++) {
        dc_vx_node *c = &x->k->vx.at[x->at[i]];
        bits[i] = c->bits;
        c->bits = dc_bits_of((dc_dtype)c->dtype, i);
    }
    w->work->n = 0;
    memcpy(x->k->name, "kernel", sizeof "kernel");
    dc_nest_print(x->k, w->work);
    memcpy(x->k->name, name, sizeof name);
    for (uint32_t i = 0; i < x->n; i++)
        x->k->vx.at[x->at[i]].bits = bits[i];
    return dc_arena_strdup(&w->j->scratch, w->work->s);
}

static void number_constants(lifting *w, numbered *x)
{
    bool *seen = DC_NEW_ARRAY(&w->j->scratch, bool, x->k->vx.n);
    if (!dc_ix_any_value(x->k) && stmts_are_maps(x, x->k->root, seen) && x->n > 0)
        x->text = print_numbered(w, x);
}

/* ---- which differ ---------------------------------------------------------------------------- */

static uint64_t bits_of(const numbered *x, uint32_t i)
{
    return x->k->vx.at[x->at[i]].bits;
}

static dc_dtype type_of(const numbered *x, uint32_t i)
{
    return (dc_dtype)x->k->vx.at[x->at[i]].dtype;
}

static bool same_constants(const numbered *x, const numbered *y)
{
    for (uint32_t i = 0; i < x->n; i++)
        if (bits_of(x, i) != bits_of(y, i))
            return false;
    return true;
}

/* Are there more than a few different ones among those of one text? */
static bool are_many(const lifting *w, uint32_t first)
{
    const numbered *found[DC_TUNE_LIFT_KERNELS];
    uint32_t n = 0;
    for (uint32_t m = first + 1; m != 0; m = w->of[m - 1].next) {
        uint32_t i = 0;
        while (i < n && !same_constants(found[i], &w->of[m - 1]))
            i++;
        if (i == DC_TUNE_LIFT_KERNELS)
            return true;
        if (i == n)
            found[n++] = &w->of[m - 1];
    }
    return false;
}

/* By constant: does it differ? How many do; 0 where they are not of one dtype. */
static uint32_t find_differing(const lifting *w, uint32_t first, bool *differs)
{
    const numbered *x = &w->of[first];
    uint32_t n = 0, some = 0;
    for (uint32_t i = 0; i < x->n; i++) {
        differs[i] = false;
        for (uint32_t m = first + 1; m != 0 && !differs[i]; m = w->of[m - 1].next)
            differs[i] = bits_of(&w->of[m - 1], i) != bits_of(x, i);
        if (differs[i] && n++ > 0 && type_of(x, i) != type_of(x, some))
            return 0;
        some = differs[i] ? i : some;
    }
    return n;
}

/* ---- to memory ------------------------------------------------------------------------------- */

static dc_lifted lift(lifting *w, numbered *x, const bool *differs, uint32_t n)
{
    dc_kernel *k = x->k;
    uint64_t *bits = DC_NEW_ARRAY(&w->j->scratch, uint64_t, n);
    dc_lifted out = {.n = n, .bits = bits};
    uint32_t at = 0;
    for (uint32_t i = 0; i < x->n; i++)
        if (differs[i]) {
            out.dtype = type_of(x, i);
            bits[at++] = bits_of(x, i);
        }
    const uint32_t buf = dc_buffer_new(k, "numbers", out.dtype, n, DC_SCOPE_PARAM, DC_MODE_IN);
    dc_ix *place = DC_NEW_ARRAY(&w->j->scratch, dc_ix, n);
    dc_vx *load = DC_NEW_ARRAY(&w->j->scratch, dc_vx, n);
    for (uint32_t i = 0; i < n; i++) {
        place[i] = dc_ix_const(k, i);
        load[i] = dc_vx_load(k, buf, place[i], (dc_pred){0});
    }
    dc_subst s = dc_subst_axis(k, DC_NO_AXIS, dc_ix_const(k, 0));
    for (uint32_t i = 0, to = 0; i < x->n; i++)
        if (differs[i])
            s.vxmap[x->at[i]] = load[to++];
    dc_subst_stmt(&s, k->root);
    return out;
}

static void lift_all(lifting *w, uint32_t first, uint32_t buffers)
{
    bool differs[MOST];
    const uint32_t n = are_many(w, first) ? find_differing(w, first, differs) : 0;
    if (n == 0 || (buffers != 0 && w->of[first].k->nparam >= buffers))
        return;
    for (uint32_t m = first + 1; m != 0; m = w->of[m - 1].next)
        w->out[m - 1] = lift(w, &w->of[m - 1], differs, n);
}

/* The first of each text, by number + 1: open addressing. */
static void chain_equal(lifting *w, uint32_t *first)
{
    uint32_t nslot = 16;
    while (nslot < 2 * w->n)
        nslot *= 2;
    uint32_t *slot = DC_NEW_ARRAY(&w->j->scratch, uint32_t, nslot);
    for (uint32_t i = 0; i < w->n; i++) {
        if (w->of[i].text == NULL)
            continue;
        uint64_t h = 1;
        for (const char *c = w->of[i].text; *c != '\0'; c++)
            h = h * 1099511628211u ^ (uint8_t)*c;
        uint32_t at = (uint32_t)(h ^ h >> 32) & (nslot - 1);
        while (slot[at] != 0 && strcmp(w->of[slot[at] - 1].text, w->of[i].text) != 0)
            at = (at + 1) & (nslot - 1);
        if (slot[at] == 0)
            slot[at] = i + 1;
        first[i] = slot[at];
        if (slot[at] != i + 1) {
            w->of[i].next = w->of[slot[at] - 1].next;
            w->of[slot[at] - 1].next = i + 1;
        }
    }
}

const dc_lifted *dc_lift_constants(dc_job *j, dc_kernel *const *kernel, uint32_t n,
                                   uint32_t buffers)
{
    lifting w = {.j = j, .work = dc_job_text(j), .n = n};
    w.of = DC_NEW_ARRAY(&j->scratch, numbered, n);
    w.out = DC_NEW_ARRAY(&j->scratch, dc_lifted, n);
    uint32_t *first = DC_NEW_ARRAY(&j->scratch, uint32_t, n);
    for (uint32_t i = 0; i < n && n > DC_TUNE_LIFT_KERNELS; i++) {
        w.of[i].k = kernel[i];
        if (kernel[i] != NULL)
            number_constants(&w, &w.of[i]);
    }
    chain_equal(&w, first);
    for (uint32_t i = 0; i < n; i++)
        if (first[i] == i + 1)
            lift_all(&w, i, buffers);
    dc_job_text_end(j, w.work);
    return w.out;
}
