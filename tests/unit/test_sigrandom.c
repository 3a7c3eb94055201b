/*
 * Random signatures: printed and read again they are the same; with random sizes put in, a call
 * with these types is taken and says the same types again, and a call with one size changed is
 * refused or agrees in another way. Damaged texts are read or refused, nothing else.
 */
#include "core/base/job.h"
#include "core/signature/signature.h"

#include <stdio.h>
#include <string.h>

#include "tests/t.h"
#include "tests/unit/rng.h"

static dc_job job;
static dc_names *names;
static rng dice;

typedef struct reading {
    const char *text;
    dc_sig *out;
    dc_sig_bind *b;
} reading;

static dc_status body(dc_job *j, void *arg)
{
    const reading *r = arg;
    if (r->b != NULL)
        return dc_sig_check(j, r->out, r->b);
    return dc_sig_parse(j, names, r->text, r->out);
}

static bool parse(const char *text, dc_sig *out)
{
    return dc_protect(&job, body, &(reading){text, out, NULL}) == DC_OK;
}

/* ---- the same structure ---- */

static bool same_expr(const dc_expr *a, const dc_expr *b)
{
    if (a->n != b->n)
        return false;
    for (int i = 0; i < a->n; i++) {
        const dc_expr_node *x = &a->node[i], *y = &b->node[i];
        if (x->op != y->op || x->v != y->v || x->left != y->left || x->right != y->right)
            return false;
    }
    return true;
}

static bool same_dim(const dc_dim *a, const dc_dim *b)
{
    if (a->kind != b->kind || a->size != b->size || a->var != b->var || a->name != b->name)
        return false;
    return a->expr == NULL ? b->expr == NULL : b->expr != NULL && same_expr(a->expr, b->expr);
}

static bool same_type(const dc_sig_type *a, const dc_sig_type *b)
{
    if (a == NULL || b == NULL)
        return a == b;
    if (a->kind != b->kind || a->dtype != b->dtype || a->ndim != b->ndim || a->rest != b->rest ||
        a->nfield != b->nfield)
        return false;
    for (int k = 0; k < a->ndim; k++)
        if (!same_dim(&a->dim[k], &b->dim[k]))
            return false;
    for (int i = 0; i < a->nfield; i++)
        if (a->field[i].name != b->field[i].name || !same_type(a->field[i].type, b->field[i].type))
            return false;
    return same_type(a->of, b->of);
}

static bool same_sig(const dc_sig *a, const dc_sig *b)
{
    const dc_sig_def *d = a->def, *e = b->def;
    if (a->name != b->name || a->nparam != b->nparam || a->nresult != b->nresult ||
        a->nvar != b->nvar || a->any_result != b->any_result || a->has_rest != b->has_rest ||
        a->rest_at != b->rest_at || memcmp(a->var, b->var, sizeof a->var) != 0 ||
        memcmp(a->size, b->size, sizeof a->size) != 0)
        return false;
    for (; d != NULL && e != NULL; d = d->next, e = e->next)
        if (d->var != e->var || !same_expr(d->expr, e->expr))
            return false;
    if (d != e)
        return false;
    for (int i = 0; i < a->nparam; i++)
        if (a->param[i].name != b->param[i].name || a->param[i].optional != b->param[i].optional ||
            !same_type(a->param[i].type, b->param[i].type))
            return false;
    for (int i = 0; i < a->nresult; i++)
        if (!same_type(a->result[i], b->result[i]))
            return false;
    return true;
}

/* ---- random texts ---- */

static char text[8000];
static size_t used;

static void add(const char *s)
{
    used += (size_t)snprintf(text + used, sizeof text - used, "%s", s);
}

static void blank(void)
{
    static const char *const blanks[] = {"", "", "", " ", "  ", "\n"};
    add(blanks[rng_below(&dice, 6)]);
}

static void random_name(void)
{
    static const char *const name[] = {"n", "m", "batch", "h", "w_2", "_c", "f32", "head"};
    blank();
    add(name[rng_below(&dice, 8)]);
    blank();
}

static void random_number(void)
{
    char digits[8];
    snprintf(digits, sizeof digits, "%d", rng_below(&dice, 5));
    add(digits);
}

static void random_expr(int depth)
{
    static const char *const sign[] = {"+", "-", "*", "*", "//", "%"};
    const int kind = rng_below(&dice, depth > 0 ? 4 : 2);
    if (kind == 0) {
        random_number();
    } else if (kind == 1) {
        random_name();
    } else {
        const bool closed = rng_below(&dice, 3) == 0;
        add(closed ? "(" : "");
        random_expr(depth - 1);
        add(sign[rng_below(&dice, 6)]);
        blank();
        random_expr(depth - 1);
        add(closed ? ")" : "");
    }
}

static void random_dim(bool *rest)
{
    const int kind = rng_below(&dice, 10);
    blank();
    if (kind < 4) {
        random_name();
    } else if (kind < 6) {
        random_number();
    } else if (kind == 6 && !*rest) {
        add("...");
        *rest = true;
    } else {
        if (rng_below(&dice, 4) == 0) {
            random_name();
            add("=");
        }
        random_expr(3);
    }
    blank();
}

static void random_type(int depth)
{
    static const char *const dtype[] = {"f32", "u8", "bool", "i32"};
    const int kind = rng_below(&dice, depth > 0 ? 6 : 4);
    bool rest = false;
    blank();
    if (kind < 4) {
        add(dtype[kind]);
        blank();
        add("[");
        for (int i = 0, n = rng_below(&dice, 5); i < n; i++) {
            add(i ? "," : "");
            random_dim(&rest);
        }
        add("]");
    } else {
        add("{");
        for (int i = 0, n = kind == 4 ? 1 : 1 + rng_below(&dice, 3); i < n; i++) {
            char field[24];
            snprintf(field, sizeof field, "%sf%d:", i ? ", " : "", i);
            add(kind == 4 ? "" : field);
            random_type(depth - 1);
        }
        add("}");
    }
    blank();
}

static void random_text(void)
{
    used = 0;
    text[0] = '\0';
    if (rng_below(&dice, 2))
        random_name();
    add("(");
    for (int i = 0, n = rng_below(&dice, 5); i < n; i++) {
        char param[24];
        snprintf(param, sizeof param, "%sp%d", i ? ", " : "", i);
        add(param);
        blank();
        add(rng_below(&dice, 5) == 0 ? "?" : "");
        if (rng_below(&dice, 8) > 0) {
            add(":");
            random_type(2);
        }
    }
    add(")");
    blank();
    const int results = rng_below(&dice, 5);
    if (results == 4)
        return;
    add("->");
    add(results == 0 ? "()" : "");
    for (int i = 0; i < results; i++) {
        add(i ? "," : "");
        random_type(1);
    }
}

/* What is read is a fixed point of printing. */
static void check_print(const dc_sig *s)
{
    static dc_sig again;
    static char first[16000], second[16000];
    dc_sig_print(s, NULL, first, sizeof first);
    if (!CHECK(parse(first, &again))) {
        printf("    %s\n", first);
        return;
    }
    dc_sig_print(&again, NULL, second, sizeof second);
    CHECK_STR(first, second);
    if (!CHECK(same_sig(s, &again)))
        printf("    %s\n", first);
    dc_sig_fini(&again);
}

/* ---- random calls ---- */

enum { LEAVES = 128 };

static dc_sig_leaf leaf[LEAVES];
static int nleaf;

static bool collect(const dc_sig *s, const dc_sig_bind *b, const dc_sig_type *t)
{
    if (t == NULL)
        return true;
    if (t->kind == DC_SHAPE_TENSOR && nleaf < LEAVES) {
        leaf[nleaf].declared = t;
        return dc_sig_resolve(b, t, &leaf[nleaf++].given);
    }
    for (int i = 0; i < t->nfield; i++)
        if (!collect(s, b, t->field[i].type))
            return false;
    for (int i = rng_below(&dice, 3); t->of != NULL && i >= 0; i--)
        if (!collect(s, b, t->of))
            return false;
    return true;
}

static bool says_the_same(const dc_sig_bind *b)
{
    for (int i = 0; i < nleaf; i++) {
        dc_type t;
        if (!dc_sig_resolve(b, leaf[i].declared, &t)) {
            for (int k = 0; k < leaf[i].declared->ndim; k++)
                if (leaf[i].declared->dim[k].kind == DC_DIM_EXPR)
                    return true; /* n - n + 2 tells no n */
            return false;
        }
        if (!dc_type_same(&t, &leaf[i].given))
            return false;
    }
    return true;
}

static long taken, refused, changed, others;

static void check_call(const dc_sig *s, const dc_sig_bind *sizes)
{
    dc_sig_bind b;
    dc_sig_miss miss;
    char words[300];
    dc_sig_begin(s, &b);
    const bool ok = dc_sig_match(s, &b, leaf, nleaf, &miss);
    if (ok) {
        taken++;
        CHECK(says_the_same(&b));
        for (int v = 0; v < s->nvar; v++)
            CHECK(b.size[v] < 0 || b.size[v] == sizes->size[v]);
    } else {
        refused++;
        dc_sig_miss_print(s, &miss, 1, words, sizeof words);
        if (!CHECK(miss.kind == DC_MISS_OPEN))
            printf("    %s: %s\n", text, words);
    }
    const int i = rng_below(&dice, nleaf), rank = leaf[i].given.rank;
    if (rank == 0)
        return;
    leaf[i].given.dim[rng_below(&dice, rank)] += 1 + rng_below(&dice, 3);
    dc_sig_begin(s, &b);
    if (dc_sig_match(s, &b, leaf, nleaf, &miss)) {
        others++;
        CHECK(says_the_same(&b));
    } else {
        changed++;
        CHECK(miss.kind != DC_MISS_NONE && miss.leaf < nleaf);
        CHECK(dc_sig_miss_print(s, &miss, 1, words, sizeof words) > 5);
    }
}

/* Sizes for all names, such that what is said of them (n = 2*m) holds. */
static bool random_sizes(dc_sig *s, dc_sig_bind *b)
{
    dc_sig_begin(s, b);
    for (int v = 0; v < s->nvar; v++)
        if (b->size[v] < 0) {
            dc_sig_bind more = *b;
            more.size[v] = 1 + rng_below(&dice, 6);
            if (dc_protect(&job, body, &(reading){NULL, s, &more}) == DC_OK)
                *b = more;
            else
                b->size[v] = more.size[v];
        }
    b->rest = rng_below(&dice, 3);
    for (int k = 0; k < b->rest; k++)
        b->rest_size[k] = rng_below(&dice, 4);
    return dc_protect(&job, body, &(reading){NULL, s, b}) == DC_OK;
}

static void check_calls(dc_sig *s)
{
    dc_sig_bind b, given;
    dc_sig_begin(s, &b);
    if (dc_protect(&job, body, &(reading){NULL, s, &b}) != DC_OK)
        return;
    for (int turn = 0; turn < 8; turn++) {
        if (!random_sizes(s, &given))
            continue;
        bool ok = true;
        nleaf = 0;
        for (int i = 0; i < s->nparam && ok; i++)
            ok = collect(s, &given, s->param[i].type);
        if (ok && nleaf > 0)
            check_call(s, &given);
    }
}

/* ---- damage ---- */

static void damage(void)
{
    static const char bytes[] = "()[]{},:=->?.*/%+-0123456789abn_ \n\xc3";
    for (int n = 1 + rng_below(&dice, 3); n > 0 && used > 0; n--) {
        const size_t at = rng_next(&dice) % used;
        const char c = bytes[rng_below(&dice, (int)sizeof bytes - 1)];
        switch (rng_below(&dice, 3)) {
        case 0:
            text[at] = c;
            break;
        case 1:
            memmove(text + at, text + at + 1, used - at);
            used--;
            break;
        default:
            if (used + 2 > sizeof text)
                break;
            memmove(text + at + 1, text + at, used - at + 1);
            text[at] = c;
            used++;
        }
    }
}

int main(int argc, char **argv)
{
    static const dc_opts opts;
    static dc_sig s;
    long read = 0, damaged = 0;
    dice.state = rng_seed(argc, argv, 402);
    dc_job_init(&job, &opts, NULL);
    names = dc_names_new();
    for (int i = 0; i < 4000; i++) {
        random_text();
        if (parse(text, &s)) {
            read++;
            check_print(&s);
            check_calls(&s);
            dc_sig_fini(&s);
        } else {
            CHECK(job.err.id == DC_ERR_SIGNATURE && s.arena.top == NULL);
        }
        damage();
        if (parse(text, &s)) {
            damaged++;
            check_print(&s);
            dc_sig_fini(&s);
        } else {
            CHECK(job.err.id == DC_ERR_SIGNATURE || job.err.id == DC_ERR_TYPE_TEXT);
        }
    }
    printf("%ld read, %ld damaged ones; calls: %ld taken, %ld open; one size changed: %ld refused,"
           " %ld taken otherwise\n",
           read, damaged, taken, refused, changed, others);
    CHECK(read > 1000 && damaged > 100 && taken > 500 && changed > 200 && others > 50);
    dc_names_free(names);
    dc_job_fini(&job);
    return t_done();
}
