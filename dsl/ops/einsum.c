/*
 * dc.einsum("b i, i o -> b o", a, b): products over letters.
 *
 * A letter is a word; blanks separate letters and commas operands. Letters are local to the text:
 * equal ones have equal sizes, and names that do not differ. What the result lacks is summed; a
 * letter twice in one operand is its diagonal; "..." stands for the axes that are left, which
 * broadcast as those of element-wise operations do and stay in the result. Results have the names
 * of the operands' dims.
 *
 * Everything is checked first, on the operands as they are. Then they are multiplied from left to
 * right, two at a time, each product summed over the letters that nothing behind it reads.
 */
#include "core/base/expr.h"
#include "core/base/extent.h"
#include "dsl/base/args.h"
#include "dsl/base/binding.h"
#include "dsl/ops/apply.h"
#include "dsl/ops/ops.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define BLANKS "blanks separate letters: \"b i, i o -> b o\""

enum { LETTERS = 64, OPERANDS = 32 };

typedef struct letter {
    const char *text; /* in the script's string */
    int len;
    int64_t size; /* -1 not known yet */
    const char *name;
    int owner; /* operand that gave the size, from 0 */
    bool rest; /* one of "...": an unnamed 1 stretches */
} letter;

typedef struct list {
    int n, letter[DC_MAX_RANK];
    int rest; /* where "..." stands, -1 nowhere */
} list;

typedef struct spec {
    dc_dsl *d;
    const char *text;
    int n, nletter;
    int rest[DC_MAX_RANK]; /* letters of "...", from the right; -1 none yet */
    letter letter[LETTERS];
    list in[OPERANDS], out;
    dc_type type[OPERANDS];
} spec;

static uint64_t mask_of(const list *l)
{
    uint64_t mask = 0;
    for (int i = 0; i < l->n; i++)
        mask |= (uint64_t)1 << l->letter[i];
    return mask;
}

/* ---- reading the text ------------------------------------------------------------------------- */

DC_NORETURN static void bad_text(lua_State *L, const spec *s, const char *what)
{
    dc_error_raisef(L, s->d, DC_ERR_ARG, "einsum", "'%.120s': %s", s->text, what);
}

static int add_letter(lua_State *L, spec *s, const char *text, int len, bool rest)
{
    if (s->nletter == LETTERS)
        bad_text(L, s, "more letters than 64");
    s->letter[s->nletter] = (letter){text, len, -1, NULL, -1, rest};
    return s->nletter++;
}

static int find_letter(const spec *s, const char *text, int len)
{
    for (int i = 0; i < s->nletter; i++)
        if (!s->letter[i].rest && s->letter[i].len == len &&
            memcmp(s->letter[i].text, text, (size_t)len) == 0)
            return i;
    return -1;
}

static int word_length(const char *at)
{
    int n = 0;
    while (isalnum((unsigned char)at[n]) || at[n] == '_')
        n++;
    return n;
}

static void read_rest(lua_State *L, const spec *s, const char **at, list *l)
{
    if (strncmp(*at, "...", 3) != 0) {
        char what[60];
        snprintf(what, sizeof what, "a letter expected, not '%.10s'", *at);
        bad_text(L, s, what);
    }
    if (l->rest >= 0)
        bad_text(L, s, "'...' twice in one list");
    l->rest = l->n;
    *at += 3;
}

static void read_word(lua_State *L, spec *s, const char **at, list *l)
{
    const int len = word_length(*at);
    if (len == 0 || isdigit((unsigned char)**at)) {
        read_rest(L, s, at, l);
        return;
    }
    if (l->n == DC_MAX_RANK)
        bad_text(L, s, "more than 8 letters in one list");
    int found = find_letter(s, *at, len);
    if (found < 0)
        found = add_letter(L, s, *at, len, false);
    l->letter[l->n++] = found;
    *at += len;
}

/* Up to a comma, an arrow or the end. */
static void read_list(lua_State *L, spec *s, const char **at, list *l)
{
    *l = (list){.rest = -1};
    for (;;) {
        *at = dc_expr_skip_blanks(*at);
        if (**at == '\0' || **at == ',' || strncmp(*at, "->", 2) == 0)
            return;
        read_word(L, s, at, l);
    }
}

DC_NORETURN static void no_operand(lua_State *L, const spec *s, const letter *l)
{
    char what[300];
    snprintf(what, sizeof what, "'%.120s': '%.*s' of the result is in no operand", s->text, l->len,
             l->text);
    dc_error_fact(L, s->d, DC_ERR_ARG, &(dc_fact){.op = "einsum", .word = {what}},
                  &(dc_blame){.hint = l->len > 1 ? BLANKS : NULL});
}

static void read_out(lua_State *L, spec *s, const char *at)
{
    const int known = s->nletter;
    char what[100];
    read_list(L, s, &at, &s->out);
    if (*at != '\0')
        bad_text(L, s, "nothing expected behind the result");
    for (int i = 0; i < s->out.n; i++) {
        const letter *l = &s->letter[s->out.letter[i]];
        if (s->out.letter[i] >= known)
            no_operand(L, s, l);
        for (int k = 0; k < i; k++)
            if (s->out.letter[k] == s->out.letter[i]) {
                snprintf(what, sizeof what, "'%.*s' is twice in the result", l->len, l->text);
                bad_text(L, s, what);
            }
    }
}

static void read_text(lua_State *L, spec *s)
{
    const char *at = s->text;
    memset(s->rest, -1, sizeof s->rest);
    for (;;) {
        if (s->n == OPERANDS)
            bad_text(L, s, "more operands than 32");
        read_list(L, s, &at, &s->in[s->n++]);
        if (*at != ',')
            break;
        at++;
    }
    if (*at == '\0')
        bad_text(L, s, "-> and the letters of the result are missing");
    read_out(L, s, at + 2);
}

/* ---- checking it against the operands --------------------------------------------------------- */

/* Raises with one or two operands as the blame; they are at 2 and up of the stack. */
DC_NORETURN static void blame(lua_State *L, const spec *s, dc_err_id id, const dc_fact *fact, int a,
                              int b, const char *hint)
{
    dc_operand in[2];
    const int which[2] = {a, b};
    int n = 0;
    luaL_checkstack(L, 4, "an error");
    for (int i = 0; i < (a == b ? 1 : 2); i++) {
        in[n] = (dc_operand){.h = dc_handle_test(L, which[i] + 2), .type = s->type[which[i]]};
        in[n++].role = lua_pushfstring(L, "%d", which[i] + 1);
    }
    dc_error_fact(L, s->d, id, fact, &(dc_blame){.in = in, .n = n, .hint = hint});
}

static void check_rank(lua_State *L, const spec *s, int i)
{
    const list *l = &s->in[i];
    const dc_type *t = &s->type[i];
    char words[80], hint[80] = "";
    if (l->rest >= 0 ? t->rank >= l->n : t->rank == l->n)
        return;
    const letter *only = &s->letter[l->letter[0]];
    if (l->n == 1 && l->rest < 0 && only->len == t->rank)
        snprintf(hint, sizeof hint, "%s", BLANKS);
    snprintf(words, sizeof words, "operand %d has %d letter%s%s", i + 1, l->n, l->n == 1 ? "" : "s",
             l->rest >= 0 ? " beside '...'" : "");
    blame(L, s, DC_ERR_RANK,
          &(dc_fact){.op = "einsum", .num = {t->rank}, .type = {*t}, .word = {words}}, i, i,
          *hint ? hint : NULL);
}

/* Operand i has this size and name at a letter. */
static void join(lua_State *L, spec *s, int i, int which, int64_t size, const char *name)
{
    letter *l = &s->letter[which];
    char words[DC_TYPE_TEXT];
    const bool left_grows = l->rest && l->size == 1 && l->name == NULL;
    const bool right_grows = l->rest && size == 1 && name == NULL;
    if (l->size >= 0 && l->size != size && !left_grows && !right_grows) {
        snprintf(words, sizeof words,
                 "'%.*s' is %" PRId64 " in operand %d and %" PRId64 " in operand %d", l->len,
                 l->text, l->size, l->owner + 1, size, i + 1);
        blame(L, s, DC_ERR_DIMS_TEXT, &(dc_fact){.op = "einsum", .word = {words}}, l->owner, i,
              NULL);
    }
    if (l->name != NULL && name != NULL && l->name != name) {
        snprintf(words, sizeof words,
                 "'%.*s' is the dim '%.60s' of operand %d and '%.60s' of operand %d", l->len,
                 l->text, l->name, l->owner + 1, name, i + 1);
        blame(L, s, DC_ERR_NAMES_TEXT, &(dc_fact){.op = "einsum", .word = {words}}, l->owner, i,
              NULL);
    }
    if (l->size < 0 || (l->name == NULL && name != NULL) || (left_grows && size != 1))
        l->owner = i;
    if (l->size < 0 || left_grows)
        l->size = size;
    if (l->name == NULL)
        l->name = name;
}

/* Has an operand this name at both letters? */
static bool has_both(const spec *s, int p, int q)
{
    for (int i = 0; i < s->n; i++) {
        bool at[2] = {false, false};
        for (int k = 0; k < s->in[i].n; k++) {
            const bool named = s->type[i].name[k] == s->letter[p].name;
            at[0] = at[0] || (named && s->in[i].letter[k] == p);
            at[1] = at[1] || (named && s->in[i].letter[k] == q);
        }
        if (at[0] && at[1])
            return true;
    }
    return false;
}

/* Axes of "..." broadcast: as in x + y, no name comes to stand at two of them. */
static void check_names(lua_State *L, const spec *s)
{
    for (int p = 0; p < s->nletter; p++)
        for (int q = p + 1; q < s->nletter; q++) {
            const letter *a = &s->letter[p], *b = &s->letter[q];
            char words[DC_TYPE_TEXT];
            if (!a->rest || !b->rest || a->name == NULL || a->name != b->name || has_both(s, p, q))
                continue;
            snprintf(words, sizeof words, "two axes of '...' would both be '%.60s'", a->name);
            blame(L, s, DC_ERR_NAMES_TEXT, &(dc_fact){.op = "einsum", .word = {words}}, 0, s->n - 1,
                  NULL);
        }
}

/* Puts letters of its own in the place of "..."; n of them. */
static void fill_rest(lua_State *L, spec *s, list *l, int n)
{
    if (l->rest < 0)
        return;
    memmove(&l->letter[l->rest + n], &l->letter[l->rest],
            (size_t)(l->n - l->rest) * sizeof l->letter[0]);
    for (int k = 0; k < n; k++) {
        if (s->rest[k] < 0)
            s->rest[k] = add_letter(L, s, "...", 3, true);
        l->letter[l->rest + n - 1 - k] = s->rest[k];
    }
    l->n += n;
}

static void check_rests(lua_State *L, spec *s)
{
    int most = 0;
    bool any = false;
    for (int i = 0; i < s->n; i++) {
        const int n = s->type[i].rank - s->in[i].n;
        any = any || s->in[i].rest >= 0;
        if (s->in[i].rest >= 0 && n > most)
            most = n;
        fill_rest(L, s, &s->in[i], n);
    }
    if (any != (s->out.rest >= 0))
        bad_text(L, s,
                 any ? "'...' is missing in the result" : "'...' of the result is in no operand");
    if (s->out.n + most > DC_MAX_RANK)
        dc_error_fact(L, s->d, DC_ERR_TOO_MANY_AXES,
                      &(dc_fact){.op = "einsum", .num = {s->out.n + most, DC_MAX_RANK}}, NULL);
    fill_rest(L, s, &s->out, most);
}

static void check_dtypes(lua_State *L, const spec *s)
{
    for (int i = 0; i < s->n; i++) {
        dc_fact fact = {.op = "einsum", .type = {s->type[i]}, .word = {"a number"}};
        if (s->n > 1 && s->type[i].dtype == DC_BOOL)
            blame(L, s, DC_ERR_DTYPE, &fact, i, i, NULL);
        fact = (dc_fact){.op = "einsum", .type = {s->type[0], s->type[i]}};
        if (s->type[i].dtype != s->type[0].dtype)
            blame(L, s, DC_ERR_DTYPE_MIX, &fact, 0, i, NULL);
    }
}

/* Letters of a product that are kept: in both, in the left one alone, in the right one alone. */
static void product_letters(const list *l, uint64_t keep, list *out)
{
    const uint64_t both = mask_of(&l[0]) & mask_of(&l[1]);
    uint64_t seen = 0;
    *out = (list){.rest = -1};
    for (int pass = 0; pass < 3; pass++) {
        const list *side = &l[pass == 2];
        for (int k = 0; k < side->n && out->n < DC_MAX_RANK; k++) {
            const uint64_t bit = (uint64_t)1 << side->letter[k];
            if ((keep & ~seen & bit) == 0 || ((both & bit) != 0) != (pass == 0))
                continue;
            out->letter[out->n++] = side->letter[k];
            seen |= bit;
        }
    }
}

/* ---- acting ----------------------------------------------------------------------------------- */

/* One product, or one operand alone. */
typedef struct step {
    const spec *s;
    list in[2];
    int n;
    uint64_t keep; /* letters that something behind reads */
    list order;    /* of the result */
} step;

static void take_out(list *l, int axis)
{
    memmove(&l->letter[axis], &l->letter[axis + 1],
            (size_t)(l->n - axis - 1) * sizeof l->letter[0]);
    l->n--;
}

/* Axes a < b of equal size become one, which is their diagonal, behind the others. */
static dc_status diagonal(dc_job *j, dc_func *f, dc_val *v, list *l, int a, int b)
{
    const int rank = v->type.rank, which = l->letter[a];
    const int64_t n = v->type.dim[a];
    if (dc_extent_is(n))
        return dc_fail(j, DC_ERR_EXTENT, &(dc_fact){.axis = {a}, .type = {v->type}});
    const char *name = v->type.name[a] != NULL ? v->type.name[a] : v->type.name[b];
    int64_t perm[DC_MAX_RANK], first[DC_MAX_RANK], last[DC_MAX_RANK], by[DC_MAX_RANK];
    int to = 0;
    for (int k = 0; k < rank; k++)
        if (k != a && k != b)
            perm[to++] = k;
    perm[to] = a;
    perm[to + 1] = b;
    DC_TRY(dc_build_permute(j, f, *v, perm, rank, v));
    dc_type flat = v->type;
    flat.rank = (uint8_t)(rank - 1);
    flat.dim[to] = n * n;
    flat.name[to] = NULL;
    *v = dc_build_as(f, *v, &flat);
    for (int k = 0; k <= to; k++) {
        first[k] = 0;
        last[k] = dc_extent_sub(j->extents, flat.dim[k], 1);
        by[k] = k == to ? n + 1 : 1;
    }
    DC_TRY(dc_build_slice(j, f, *v, first, last, by, v));
    v->type.name[to] = name;
    take_out(l, b);
    take_out(l, a);
    l->letter[l->n++] = which;
    return DC_OK;
}

/* Without axes that broadcast, without repetitions, summed over letters that no other operand and no result has. */
static dc_status prepare(dc_job *j, dc_func *f, const step *st, int side, dc_val *v, list *l)
{
    const uint64_t read = st->keep | (st->n == 2 ? mask_of(&st->in[1 - side]) : 0);
    uint32_t axes = 0;
    *l = st->in[side];
    for (int k = l->n - 1; k >= 0; k--)
        if (v->type.dim[k] != st->s->letter[l->letter[k]].size) {
            DC_TRY(dc_build_drop(j, f, *v, 1u << k, v));
            take_out(l, k);
        }
    for (int a = 0; a < l->n; a++)
        for (int b = a + 1; b < l->n; b++)
            if (l->letter[a] == l->letter[b]) {
                DC_TRY(diagonal(j, f, v, l, a, b));
                a = -1;
                break;
            }
    for (int k = 0; k < l->n; k++)
        if ((read >> l->letter[k] & 1) == 0)
            axes |= 1u << k;
    if (axes == 0)
        return DC_OK;
    for (int k = l->n - 1; k >= 0; k--)
        if (axes >> k & 1)
            take_out(l, k);
    if (v->type.dtype == DC_BOOL) /* as a count */
        return dc_build_reduce(j, f, DC_OP_SUM, *v, axes, false, v);
    return dc_build_sum(j, f, *v, axes, false, v);
}

static int place_of(const list *l, int which)
{
    for (int k = 0; k < l->n; k++)
        if (l->letter[k] == which)
            return k;
    return -1;
}

/* Axes in the order of `to`, with size 1 for letters that v lacks. */
static dc_status align(dc_job *j, dc_func *f, dc_val *v, const list *l, const list *to)
{
    int64_t perm[DC_MAX_RANK];
    dc_type t = dc_type_scalar((dc_dtype)v->type.dtype);
    int n = 0;
    for (int k = 0; k < to->n; k++) {
        const int at = place_of(l, to->letter[k]);
        t.dim[t.rank] = at < 0 ? 1 : v->type.dim[at];
        t.name[t.rank++] = at < 0 ? NULL : v->type.name[at];
        if (at >= 0)
            perm[n++] = at;
    }
    DC_TRY(dc_build_permute(j, f, *v, perm, n, v));
    *v = dc_build_as(f, *v, &t);
    return DC_OK;
}

static dc_status contract(dc_job *j, dc_func *f, const dc_val *v, const list *l, uint64_t both,
                          uint64_t keep, dc_val *out)
{
    dc_dot d = {0};
    for (int k = 0; k < l[0].n; k++) {
        const int which = l[0].letter[k];
        if ((both >> which & 1) == 0)
            continue;
        const bool batch = keep >> which & 1;
        int64_t(*axes)[DC_MAX_RANK] = batch ? d.batch : d.contract;
        const int i = batch ? d.nbatch++ : d.ncontract++;
        axes[0][i] = k;
        axes[1][i] = place_of(&l[1], which);
    }
    return dc_build_dot(j, f, v[0], v[1], &d, out);
}

static dc_status product(dc_job *j, dc_func *f, const step *st, dc_val *v, const list *l,
                         dc_val *out, list *result)
{
    const uint64_t both = mask_of(&l[0]) & mask_of(&l[1]);
    const int rank = __builtin_popcountll((mask_of(&l[0]) | mask_of(&l[1])) & ~(both & ~st->keep));
    const int most = dc_dtype_is_complex((dc_dtype)v->type.dtype) ? DC_MAX_RANK - 1 : DC_MAX_RANK;
    if (rank > most)
        return dc_fail(j, DC_ERR_TOO_MANY_AXES, &(dc_fact){.num = {rank, most}});
    double terms = 1;
    for (int k = 0; k < l[0].n; k++)
        if ((both & ~st->keep) >> l[0].letter[k] & 1)
            terms *= (double)dc_extent_bound(v[0].type.dim[k]);
    DC_TRY(dc_build_factors(j, f, &v[0], &v[1], terms));
    product_letters(l, st->keep, result);
    if ((both & ~st->keep) != 0)
        return contract(j, f, v, l, both, st->keep, out);
    for (int i = 0; i < 2; i++)
        DC_TRY(align(j, f, &v[i], &l[i], result));
    return dc_ops_2(j, f, DC_OP_MUL, v[0], v[1], out);
}

static dc_status build_step(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    const step *st = arg;
    dc_val v[2];
    list l[2], result;
    for (int i = 0; i < st->n; i++) {
        v[i] = in[i];
        DC_TRY(prepare(j, f, st, i, &v[i], &l[i]));
    }
    *out = v[0];
    result = l[0];
    if (st->n == 2)
        DC_TRY(product(j, f, st, v, l, out, &result));
    return align(j, f, out, &result, &st->order);
}

/* ---- the binding ------------------------------------------------------------------------------ */

/* From left to right; what is made so far replaces operand 1, at 2 of the stack. */
static void run_steps(lua_State *L, dc_dsl *d, spec *s)
{
    step st = {.s = s, .n = 1, .in = {s->in[0]}, .keep = mask_of(&s->out), .order = s->out};
    if (s->n == 1)
        dc_apply_to(L, d, "einsum", (const int[]){2}, st.n, build_step, &st);
    st.n = 2;
    for (int i = 1; i < s->n; i++) {
        st.in[1] = s->in[i];
        st.keep = mask_of(&s->out);
        for (int k = i + 1; k < s->n; k++)
            st.keep |= mask_of(&s->in[k]);
        product_letters(st.in, st.keep, &st.order);
        if (i == s->n - 1)
            st.order = s->out;
        dc_apply a = {.product = true, .build = build_step, .arg = &st, .step = i < s->n - 1};
        dc_apply_operands(L, d, &a, "einsum", (const int[]){2, i + 2}, st.n);
        dc_apply_run(L, d, &a);
        lua_replace(L, 2);
        st.in[0] = st.order;
    }
    lua_settop(L, s->n == 1 ? 3 : 2);
}

static int l_einsum(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    if (lua_type(L, 1) != LUA_TSTRING)
        dc_error_raisef(L, d, DC_ERR_ARG, "einsum",
                        "a text such as \"b i, i o -> b o\" is needed, not %s",
                        dc_handle_describe(L, 1));
    spec s = {.d = d, .text = dc_args_text(L, d, 1, "einsum")};
    read_text(L, &s);
    if (lua_gettop(L) - 1 != s.n)
        dc_error_raisef(L, d, DC_ERR_ARG, "einsum", "'%.120s' is for %d tensor%s, %d given", s.text,
                        s.n, s.n == 1 ? "" : "s", lua_gettop(L) - 1);
    for (int i = 0; i < s.n; i++)
        s.type[i] = *dc_handle_type(dc_handle_check(L, d, i + 2, "einsum"));
    for (int i = 0; i < s.n; i++)
        check_rank(L, &s, i);
    check_dtypes(L, &s);
    check_rests(L, &s);
    for (int i = 0; i < s.n; i++)
        for (int k = 0; k < s.in[i].n; k++)
            join(L, &s, i, s.in[i].letter[k], s.type[i].dim[k], s.type[i].name[k]);
    check_names(L, &s);
    run_steps(L, d, &s);
    return 1;
}

static const dc_binding bindings[] = {
    {"einsum", l_einsum, DC_ANY, DC_IN_MODULE},
};

const dc_bindings dc_einsum_bindings = DC_BINDINGS(bindings);
