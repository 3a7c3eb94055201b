/*
 * Signatures in full: what is read and how it is printed again, what is refused and in which words,
 * how sizes and names bind, and what a call that does not fit is told.
 */
#include "core/base/job.h"
#include "core/signature/signature.h"

#include <stdio.h>
#include <string.h>

#include "tests/t.h"

static dc_job job;
static dc_names *names;

typedef struct reading {
    const char *text;
    dc_sig *out;
    dc_sig_bind *b; /* to check; NULL: only read */
} reading;

/* Is every size that a type of this signature mentions known, "..." included? */
static bool is_bound(const dc_sig *s, const dc_sig_bind *b)
{
    for (int v = 0; v < s->nvar; v++)
        if (b->size[v] < 0)
            return false;
    return !s->has_rest || b->rest >= 0;
}

static dc_status body(dc_job *j, void *arg)
{
    const reading *r = arg;
    if (r->b != NULL)
        return dc_sig_check(j, r->out, r->b);
    return dc_sig_parse(j, names, r->text, r->out);
}

static dc_status parse(const char *text, dc_sig *out)
{
    return dc_protect(&job, body, &(reading){text, out, NULL});
}

static dc_status check(dc_sig *s, dc_sig_bind *b)
{
    return dc_protect(&job, body, &(reading){NULL, s, b});
}

static const char *sentence(void)
{
    static char text[700];
    dc_err_render(&job.err, 1, text, sizeof text);
    return text;
}

static const char *printed(const dc_sig *s, const dc_sig_bind *b)
{
    static char text[4000];
    CHECK(dc_sig_print(s, b, text, sizeof text) < (int)sizeof text);
    return text;
}

typedef struct giving {
    const dc_sig *s;
    dc_sig_bind *b;
    const char *name;
    int64_t size;
} giving;

static dc_status give_body(dc_job *j, void *arg)
{
    const giving *g = arg;
    return dc_sig_give(j, g->s, g->b, g->name, g->size);
}

/* ---- texts ---- */

static void test_good(void)
{
    static dc_sig s, again;
    static const char *const cases[][2] = {
        {"f()", "f()"},
        {"  f ( )  -> ( ) ", "f() -> ()"},
        {"(x: f32[n])", "(x: f32[n])"},
        {"(k)", "(k)"},
        {"f(k?, x ?: f32[])->f32[]", "f(k?, x?: f32[]) -> f32[]"},
        {"step(x:u8[64,28,28],y:i32[batch=64],lr:f32[])->f32[],f32[batch]",
         "step(x: u8[64, 28, 28], y: i32[batch=64], lr: f32[]) -> f32[], f32[batch]"},
        {"attend(q: f32[batch, head, t, d], k: f32[batch, head, s, d]) -> f32[batch, head, t, d]",
         "attend(q: f32[batch, head, t, d], k: f32[batch, head, s, d]) -> f32[batch, head, t, d]"},
        {"f(x: f32[n, n])", "f(x: f32[n, n])"},
        {"f(x: f32[2*3+1])", "f(x: f32[7])"},
        {"f(x: f32[h=2*3])", "f(x: f32[h=6])"},
        {"f(x: f32[(0-7)//2 + 10, 7//(0-2) + 10])", "f(x: f32[6, 6])"}, /* floors, as in Lua */
        {"f(x: f32[(0-7)%3, 7%(0-3) + 10, (0-6)%3])", "f(x: f32[2, 8, 0])"},
        {"f(x: f32[(0-9223372036854775807-1)%(0-1)])", "f(x: f32[0])"},
        {"f(x: f32[2*n+1])", "f(x: f32[2*n + 1])"},
        {"f(x: f32[(n)])", "f(x: f32[n])"},
        {"f(x: f32[(2*n)+(1)])", "f(x: f32[2*n + 1])"},
        {"f(x: f32[2*(n+1)])", "f(x: f32[2*(n + 1)])"},
        {"f(x: f32[a-(b-c)])", "f(x: f32[a - (b - c)])"},
        {"f(x: f32[(a-b)-c])", "f(x: f32[a - b - c])"},
        {"f(x: f32[a*(b*c)])", "f(x: f32[a*(b*c)])"},
        {"f(x: f32[a//(b//c)%d])", "f(x: f32[a//(b//c)%d])"},
        {"f(x: f32[n], y: f32[m=2*n]) -> f32[m, (n-1)//2+1]",
         "f(x: f32[n], y: f32[m=2*n]) -> f32[m, (n - 1)//2 + 1]"},
        {"f(x: f32[n], y: f32[m=n])", "f(x: f32[n], y: f32[m=n])"},
        {"f(x: f32[..., c]) -> f32[...]", "f(x: f32[..., c]) -> f32[...]"},
        {"f(x: f32[a,...,c])", "f(x: f32[a, ..., c])"},
        {"f(p: {w: f32[n], b: f32[]}) -> {w: f32[n]}",
         "f(p: {w: f32[n], b: f32[]}) -> {w: f32[n]}"},
        {"f(p: {f32[n]}) -> {f32[n]}, f32[]", "f(p: {f32[n]}) -> {f32[n]}, f32[]"},
        {"f(p?: {{a: {u8[]}}})", "f(p?: {{a: {u8[]}}})"},
        {"f(p: {f32: f32[]})", "f(p: {f32: f32[]})"},
        {"f(x: bool[1], a: i32[2], b: u8[3], c: u32[0])",
         "f(x: bool[1], a: i32[2], b: u8[3], c: u32[0])"},
        {"f(x: f32[1,2,3,4,5,6,7,8])", "f(x: f32[1, 2, 3, 4, 5, 6, 7, 8])"},
        {"f(x: f32[1,2,3,4,...,5,6,7,8])", "f(x: f32[1, 2, 3, 4, ..., 5, 6, 7, 8])"},
        {"f(\n  x: f32[n],\n  y: f32[n]\n)\n  -> f32[n]\n", "f(x: f32[n], y: f32[n]) -> f32[n]"},
    };
    for (size_t i = 0; i < DC_COUNTOF(cases); i++) {
        char first[4000];
        if (!CHECK_EQ(parse(cases[i][0], &s), DC_OK)) {
            printf("    %s\n", sentence());
            continue;
        }
        snprintf(first, sizeof first, "%s", printed(&s, NULL));
        CHECK_STR(first, cases[i][1]);
        if (CHECK_EQ(parse(first, &again), DC_OK))
            CHECK_STR(printed(&again, NULL), first);
        dc_sig_fini(&again);
        dc_sig_fini(&s);
    }
}

static void test_parts(void)
{
    static dc_sig s;
    CHECK_EQ(
        parse("step(x: u8[64, w, ...], k, p?: {w: f32[w + 1], v: {f32[]}}) -> f32[], f32[w=3]", &s),
        DC_OK);
    CHECK_STR(s.name, "step");
    CHECK_EQ(s.nparam, 3);
    CHECK_EQ(s.nresult, 2);
    CHECK_EQ(s.nvar, 1);
    CHECK(s.var[1] == NULL);
    CHECK_EQ(s.size[0], 3);
    CHECK(!s.any_result);
    CHECK(s.has_rest);
    const dc_sig_type *x = s.param[0].type, *p = s.param[2].type;
    CHECK_EQ(x->ndim, 3);
    CHECK_EQ(x->rest, 2);
    CHECK_EQ(x->dtype, DC_U8);
    CHECK_EQ(x->dim[0].kind, DC_DIM_SIZE);
    CHECK_EQ(x->dim[0].var, -1);
    CHECK_EQ(x->dim[1].kind, DC_DIM_VAR);
    CHECK_STR(x->dim[1].name, "w");
    CHECK(s.param[1].type == NULL && !s.param[1].optional);
    CHECK(s.param[2].optional);
    CHECK_EQ(p->kind, DC_SHAPE_RECORD);
    CHECK_EQ(p->nfield, 2);
    CHECK_STR(p->field[1].name, "v");
    CHECK_EQ(p->field[0].type->dim[0].kind, DC_DIM_EXPR);
    CHECK_EQ(p->field[1].type->kind, DC_SHAPE_LIST);
    CHECK_EQ(p->field[1].type->of->ndim, 0);
    CHECK_EQ(dc_sig_var(&s, "w"), 0);
    CHECK_EQ(dc_sig_var(&s, "v"), -1);
    dc_sig_fini(&s);
    dc_sig_fini(&s); /* empty now */
}

static void test_refusals(void)
{
    static dc_sig s;
    static const char *const cases[][2] = {
        {"", "'(' expected at its end"},
        {"3(x: f32[])", "'(' expected before '3(x: f32[])'"},
        {"f(x: f32[2)", "',' or ']' expected before ')'"},
        {"f(x: f32[2]", "',' or ')' expected at its end"},
        {"f(x: f32)", "f32 without dims; a scalar is f32[]"},
        {"f(: f32[])", "a parameter's name expected before ': f32[])'"},
        {"f(x: f32[],)", "a parameter's name expected before ')'"},
        {"f(...)", "a parameter's name expected before '...)'"},
        {"f(x: f32[], x: f32[])", "parameter 'x' is given twice"},
        {"f(x: )", "a type expected before ')'"},
        {"f(x: f32[n=2, n=3])", "'n' is 2 and 3"},
        {"f(x: f32[n=n+1])", "'n' is told by itself"},
        {"f(x: f32[n=n])", "'n' is told by itself"},
        {"f(x: f32[n=])", "a size expected before '])'"},
        {"f(x: f32[n=...])", "a size expected before '...])'"},
        {"f(x: f32[2=n])", "',' or ']' expected before '=n])'"},
        {"f(x: f32[..., 2, ...])", "'...' stands twice in a type"},
        {"f(x: f32[-1])", "a size is 0 or more, not '-1])'"},
        {"f(x: f32[2-3])", "a size is 0 or more, not -1"},
        {"f(x: f32[n+])", "a size expected before '])'"},
        {"f(x: f32[(n])", "')' expected before '])'"},
        {"f(x: f32[n)])", "',' or ']' expected before ')])'"},
        {"f(x: f32[2n])", "'2n])' is neither a size nor a name; a product is 2*n"},
        {"f(x: f32[n/2])", "sizes are divided by '//', not '/'"},
        {"f(x: f32[(n/2)])", "sizes are divided by '//', not '/'"},
        {"f(x: f32[n^2])", "',' or ']' expected before '^2])'"},
        {"f(x: f32[1//0])", "a size divides by zero"},
        {"f(x: f32[1%0])", "a size divides by zero"},
        {"f(x: f32[9223372036854775807+1])", "a size is too large"},
        {"f(x: f32[(0-9223372036854775807-1)//(0-1)])", "a size is too large"},
        {"f(x: f32[99999999999999999999])", "a size is too large"},
        {"f(x: f32[08])", "a size has a leading zero"},
        {"f(x: f32[1,1,1,1,1,1,1,1,1])", "a type has more than 8 axes"},
        {"f(x: f32[...,1,1,1,1,1,1,1,1,1])", "a type has more than 8 axes"},
        {"f(x: {})", "'{}' holds nothing; a record is {w: f32[n]}, a list {f32[n]}"},
        {"f(x: {a: f32[], a: f32[]})", "field 'a' is given twice"},
        {"f(x: {a: f32[], f32[]})", "':' expected before '[]})'"},
        {"f(x: {f32[], a: f32[]})", "'}' expected before ', a: f32[]})'"},
        {"f(x: {a: f32[)", "a size expected before ')'"},
        {"f(x: {a: f32[])", "',' or '}' expected before ')'"},
        {"f(x: {a: })", "a type expected before '})'"},
        {"f() ->", "a type expected at its end"},
        {"f() -> (f32[], f32[])", "results stand without parentheses; '()' is none"},
        {"f() -> f32[] x", "its end expected before 'x'"},
        {"f() - > f32[]", "'->' or its end expected before '- > f32[]'"},
        {"f(x: f32[n\xc3\xa4])", "',' or ']' expected before '\xc3\xa4])'"},
        {"f(x: f32[], 123456789012345\xc3\xa4\xc3\xa4)",
         "a parameter's name expected before '123456789012345'"},
    };
    for (size_t i = 0; i < DC_COUNTOF(cases); i++) {
        char whole[400];
        snprintf(whole, sizeof whole, "signature '%s': %s", cases[i][0], cases[i][1]);
        CHECK_EQ(parse(cases[i][0], &s), DC_E_TYPE);
        CHECK_STR(sentence(), whole);
        CHECK(s.arena.top == NULL);
    }
    CHECK_EQ(parse("f(x: g32[2])", &s), DC_E_TYPE);
    CHECK(strstr(sentence(), "type 'g32[2]': unknown dtype 'g32'; known are ") == sentence());
}

/* Many of everything; what is refused late is quoted around the place. */
static char many[80000];

/* `each` n times, with its number for '#'. */
static void repeat(const char *begin, const char *each, int n, const char *end)
{
    size_t used = strlen(strcpy(many, begin));
    for (int i = 0; i < n; i++)
        for (const char *c = each; *c != '\0'; c++)
            if (*c == '#')
                used += (size_t)sprintf(many + used, "%d", i);
            else
                many[used++] = *c;
    strcpy(many + used, end);
}

static const char *reason(void)
{
    const char *s = sentence(), *colon = strstr(s, "': ");
    while (colon != NULL && strstr(colon + 1, "': ") != NULL)
        colon = strstr(colon + 1, "': ");
    return colon != NULL ? colon + 3 : s;
}

static void test_limits(void)
{
    static dc_sig s;
    static const struct {
        const char *begin, *each, *end;
        int n; /* so many are too many, one less is not */
        const char *reason;
    } cases[] = {
        {"f(a", ", p#", ")", 32, "more than 32 parameters"},
        {"f() -> u8[]", ", f32[#]", "", 8, "more than 8 results"},
        {"f(x: {a: f32[]", ", n#: f32[]", "})", 4096, "more than 4096 tensors"},
        {"f(x: f32[0", " + n#", "])", 17, "more than 16 names of dims"},
        {"f(x: f32[n", " + #", "])", 32, "an expression has more than 64 parts"},
        {"f(x: f32[", "(", "n]", 17, "more than 16 parentheses in each other"},
        {"f(x: ", "{", "f32[]", 17, "more than 16 records and lists in each other"},
    };
    for (size_t i = 0; i < DC_COUNTOF(cases); i++) {
        repeat(cases[i].begin, cases[i].each, cases[i].n, cases[i].end);
        CHECK_EQ(parse(many, &s), DC_E_TYPE);
        CHECK_STR(reason(), cases[i].reason);
        repeat(cases[i].begin, cases[i].each, cases[i].n - 1, cases[i].end);
        if (parse(many, &s) == DC_OK)
            dc_sig_fini(&s);
        else
            CHECK(strcmp(reason(), cases[i].reason) != 0);
    }
    repeat("f(a", ", parameter_#: f32[]", 20, ", x: f32[-1], \n  \n  more)");
    CHECK_EQ(parse(many, &s), DC_E_TYPE);
    CHECK_STR(sentence(), "signature '.. 6: f32[], parameter_17: f32[], parameter_18: f32[], "
                          "parameter_19: f32[], x: f32[-1], more)': a size is 0 or more, not "
                          "'-1], more)'");
    repeat("f(a: f32[-1]", ", parameter_#: f32[]", 20, ")");
    CHECK_EQ(parse(many, &s), DC_E_TYPE);
    CHECK_STR(sentence(), "signature 'f(a: f32[-1], parameter_0: f32[], parameter_1: f32[], "
                          "parameter_2: f32[], parameter_3: f32[], parameter_4: f32[], parameter_5:"
                          " f32[], parameter_6: f32[], parame ..': a size is 0 or more, not '-1], "
                          "parameter_0'");
    repeat("f(x: f32[", "nnnnnnnnnn", 3000, "/2])"); /* one name of 30000 letters */
    CHECK_EQ(parse(many, &s), DC_E_TYPE);
    CHECK_STR(reason(), "sizes are divided by '//', not '/'");
    repeat("f(", "(", 30000, "");
    CHECK_EQ(parse(many, &s), DC_E_TYPE);
    repeat("f(x: f32[", "(", 30000, "");
    CHECK_EQ(parse(many, &s), DC_E_TYPE);
    repeat("f(x: ", "{", 30000, "");
    CHECK_EQ(parse(many, &s), DC_E_TYPE);
    repeat("f(x: ", "{a:", 10000, "");
    CHECK_EQ(parse(many, &s), DC_E_TYPE);
}

/* ---- binding ---- */

/*
 * A call: given types of all tensors in order, as texts, and after "->" those of the results inside.
 * What comes out: the binding and the results' types inside and outside, or the miss.
 */
typedef struct call_row {
    const char *sig, *given, *result, *out;
} call_row;

static dc_status type_body(dc_job *j, void *arg)
{
    dc_type *t = arg;
    const char **text = (const char **)(void *)t->name[0];
    return dc_type_parse(j, names, text, t);
}

/* Reads a type at *text and steps over ", "; false at the end. */
static bool next_type(const char **text, dc_type *t)
{
    if (**text == '\0')
        return false;
    *t = (dc_type){.name = {(const char *)(const void *)text}};
    if (!CHECK_EQ(dc_protect(&job, type_body, t), DC_OK)) {
        printf("    %s\n", sentence());
        return false;
    }
    *text += strspn(*text, ", ");
    return true;
}

static void collect(const dc_sig_type *t, dc_sig_leaf *leaf, int *n, const char **given)
{
    if (t == NULL || **given == '\0')
        return;
    if (t->kind == DC_SHAPE_TENSOR) {
        leaf[*n].declared = t;
        if (**given == '-') /* absent */
            *given += 1 + strspn(*given + 1, ", ");
        else if (next_type(given, &leaf[*n].given))
            ++*n;
    }
    for (int i = 0; i < t->nfield; i++)
        collect(t->field[i].type, leaf, n, given);
    if (t->kind == DC_SHAPE_LIST)
        while (**given != '\0' && **given != ';')
            collect(t->of, leaf, n, given);
    *given += strspn(*given, "; ");
}

static bool call(const dc_sig *s, dc_sig_bind *b, const char *given, dc_sig_miss *miss)
{
    static dc_sig_leaf leaf[64];
    int n = 0;
    for (int i = 0; i < s->nparam; i++)
        collect(s->param[i].type, leaf, &n, &given);
    return dc_sig_match(s, b, leaf, n, miss);
}

/* "batch=2 | f32[batch=2] | f32[b=2]": binding, results inside and outside. */
static void add_results(const dc_sig *s, const dc_sig_bind *b, char *out, size_t room)
{
    for (int outside = 0; outside < 2; outside++)
        for (int i = 0; i < s->nresult; i++) {
            dc_type t;
            const bool ok = outside ? dc_sig_resolve_outside(b, s->result[i], &t)
                                    : dc_sig_resolve(b, s->result[i], &t);
            const size_t n = strlen(out);
            snprintf(out + n, room - n, "%s", i ? ", " : " | ");
            if (ok)
                dc_type_print(&t, out + strlen(out), room - strlen(out));
            else
                snprintf(out + strlen(out), room - strlen(out), "none");
        }
}

static void run_row(const call_row *row)
{
    static dc_sig s;
    dc_sig_bind b;
    dc_sig_miss miss;
    char out[600];
    if (!CHECK_EQ(parse(row->sig, &s), DC_OK))
        printf("    %s\n", sentence());
    dc_sig_begin(&s, &b);
    if (!CHECK_EQ(check(&s, &b), DC_OK))
        printf("    %s\n", sentence());
    bool ok = call(&s, &b, row->given, &miss);
    const char *result = row->result;
    for (int i = 0; i < s.nresult && ok && *result != '\0'; i++) {
        dc_type t;
        ok = next_type(&result, &t) && dc_sig_match_result(&s, &b, s.result[i], &t, &miss);
        CHECK(ok || miss.leaf <= 0);
    }
    if (ok) {
        dc_sig_bind_print(&s, &b, out, sizeof out);
        add_results(&s, &b, out, sizeof out);
        CHECK(is_bound(&s, &b));
    } else {
        dc_sig_miss_print(&s, &miss, 1, out, sizeof out);
    }
    if (!CHECK_STR(out, row->out))
        printf("    of %s for %s\n", row->sig, row->given);
    dc_sig_fini(&s);
}

static void test_calls(void)
{
    static const call_row rows[] = {
        /* bare names */
        {"f(x: f32[batch, 3], y: f32[3, n]) -> f32[batch, n]", "f32[2, 3], f32[3, 5]", "",
         "batch=2, n=5 | f32[batch=2, n=5] | f32[2, 5]"},
        {"f(x: f32[n, n]) -> f32[n]", "f32[4, 4]", "", "n=4 | f32[n=4] | f32[4]"},
        {"f(x: f32[n, n]) -> f32[n]", "f32[4, 5]", "", "axis 2 = 5 against 4 (n)"},
        {"f(x: f32[a, w], y: f32[w])", "f32[2, 28], f32[30]", "", "axis 1 = 30 against 28 (w)"},
        {"f(x: f32[2, 28])", "f32[2, 30]", "", "axis 2 = 30 against 28"},
        {"f(x: f32[w=28])", "f32[30]", "", "axis 1 = 30 against 28 (w)"},
        {"f(x: f32[w]) -> f32[w=28]", "f32[30]", "", "axis 1 = 30 against 28 (w)"},
        {"f(x: f32[n])", "u8[3]", "", "u8 against f32"},
        {"f(x: f32[n])", "f32[3, 4]", "", "2 dims against 1"},
        {"f(x: f32[n, ...])", "f32[]", "", "0 dims against at least 1"},
        {"f(x: f32[])", "f32[1]", "", "1 dim against 0"},
        /* names of the caller's dims */
        {"f(x: f32[batch, t], y: f32[t]) -> f32[t, batch]", "f32[b=2, 3], f32[time=3]", "",
         "batch=2, t=3 | f32[t=3, batch=2] | f32[time=3, b=2]"},
        {"f(x: f32[a], y: f32[a])", "f32[time=3], f32[batch=3]", "",
         "axis 1: 'batch' against 'time' (a)"},
        {"f(x: f32[a=3], y: f32[a])", "f32[time=3], f32[batch=3]", "",
         "axis 1: 'batch' against 'time' (a)"},
        {"f(x: f32[3], y: f32[3])", "f32[time=3], f32[batch=3]", "", ""},
        {"f(x: f32[a, b]) -> f32[b, a]", "f32[b=1, a=2]", "",
         "a=1, b=2 | f32[b=2, a=1] | f32[a=2, b=1]"},
        {"f(x: f32[n]) -> f32[class=3]", "f32[m=2]", "", "n=2, class=3 | f32[class=3] | f32[3]"},
        /* expressions */
        {"f(x: f32[2*n + 1]) -> f32[n]", "f32[7]", "", "n=3 | f32[n=3] | f32[3]"},
        {"f(x: f32[2*n + 1]) -> f32[n]", "f32[6]", "", "axis 1 = 6 is not 2*n + 1 for a whole n"},
        {"f(x: f32[n + 3])", "f32[1]", "", "axis 1 = 1 is n + 3 only for n = -2"},
        {"f(x: f32[3 - n]) -> f32[n]", "f32[1]", "", "n=2 | f32[n=2] | f32[2]"},
        {"f(x: f32[3 - n])", "f32[4]", "", "axis 1 = 4 is 3 - n only for n = -1"},
        {"f(x: f32[2*n + 1], y: f32[n])", "f32[7], f32[4]", "", "axis 1 = 7 against 2*n + 1 = 9"},
        {"f(x: f32[n*m], y: f32[n]) -> f32[m]", "f32[12], f32[4]", "",
         "n=4, m=3 | f32[m=3] | f32[3]"},
        {"f(x: f32[n*m], y: f32[n])", "f32[12], f32[5]", "",
         "axis 1 = 12 is not n*m for a whole m"},
        {"f(x: f32[n*m], y: f32[n])", "f32[12], f32[0]", "", "axis 1 = 12 against n*m = 0"},
        {"f(x: f32[a + b], y: f32[a + 2], z: f32[b - a + c]) -> f32[a, b, c]",
         "f32[10], f32[6], f32[3]", "", "a=4, b=6, c=1 | f32[a=4, b=6, c=1] | f32[4, 6, 1]"},
        {"f(x: f32[h], y: f32[(h - 3)//2 + 1])", "f32[28], f32[13]", "", "h=28"},
        {"f(x: f32[h], y: f32[(h - 3)//2 + 1])", "f32[28], f32[14]", "",
         "axis 1 = 14 against (h - 3)//2 + 1 = 13"},
        {"f(x: f32[h], y: f32[h%4])", "f32[7], f32[3]", "", "h=7"},
        {"f(x: f32[h], s: f32[k], y: f32[h//k])", "f32[7], f32[0], f32[3]", "",
         "axis 1: h//k divides by zero"},
        {"f(x: f32[n], y: f32[9223372036854775807*n])", "f32[2], f32[2]", "",
         "axis 1: 9223372036854775807*n is too large"},
        {"f(x: f32[n]) -> f32[n - 3]", "f32[2]", "", "n=2 | none | none"},
        {"f(x: f32[n]) -> f32[4611686018427387904*n]", "f32[1]", "", "n=1 | none | none"},
        {"f(x: f32[n - n + 2], y: f32[n])", "f32[3], f32[1]", "",
         "axis 1 = 3 against n - n + 2 = 2"},
        /* statements */
        {"f(x: f32[n=2*m]) -> f32[m, n]", "f32[six=6]", "",
         "n=6, m=3 | f32[m=3, n=6] | f32[3, six=6]"},
        {"f(x: f32[n=2*m])", "f32[5]", "", "axis 1 = 5 is not 2*m for a whole m"},
        {"f(x: f32[m]) -> f32[n=2*m]", "f32[5]", "", "m=5, n=10 | f32[n=10] | f32[10]"},
        {"f(x: f32[m], y: f32[n]) -> f32[n=2*m]", "f32[5], f32[6]", "", "n = 6 against 2*m = 10"},
        {"f(x: f32[m], y: f32[n]) -> f32[n=2*k]", "f32[5], f32[7]", "",
         "n = 7 is not 2*k for a whole k"},
        {"f(x: f32[m]) -> f32[n=m - 8]", "f32[5]", "", "n: m - 8 is -3; a size is 0 or more"},
        /* "..." */
        {"f(x: f32[..., c]) -> f32[..., 1], f32[...]", "f32[2, t=3, 4]", "",
         "...=[2, 3], c=4 | f32[2, 3, 1], f32[2, 3] | f32[2, t=3, 1], f32[2, t=3]"},
        {"f(x: f32[a, ..., c]) -> f32[c, ..., a]", "f32[2, 4]", "",
         "a=2, ...=[], c=4 | f32[c=4, a=2] | f32[4, 2]"},
        {"f(x: f32[...], y: f32[..., 3])", "f32[2, 5], f32[2, 4, 3]", "",
         "axis 2 = 4 against 5 (...)"},
        {"f(x: f32[..., 3], y: f32[...])", "f32[2, 5, 3], f32[2]", "", "'...' is 1 dim against 2"},
        {"f(x: f32[...], y: f32[...])", "f32[a=2], f32[b=2]", "", "axis 1: 'b' against 'a' (...)"},
        {"f(x: f32[...], y: f32[...]) -> f32[...]", "f32[2], f32[b=2]", "",
         "...=[2] | f32[2] | f32[b=2]"},
        {"f(x: f32[...]) -> f32[..., 3]", "f32[1,1,1,1,1,1,1,1]", "",
         "...=[1, 1, 1, 1, 1, 1, 1, 1] | none | none"},
        /* records, lists, what is absent */
        {"f(p: {w: f32[n, m], b: f32[m]}, x: f32[n])", "f32[3, 4], f32[4], f32[3]", "", "n=3, m=4"},
        {"f(p: {w: f32[n, m], b: f32[m]}, x: f32[n])", "f32[3, 4], f32[4], f32[2]", "",
         "axis 1 = 2 against 3 (n)"},
        {"f(p: {f32[n]}, x: f32[n])", "f32[3], f32[3]; f32[3]", "", "n=3"},
        {"f(p: {f32[n]}, x: f32[2*n])", "f32[3], f32[4]; f32[3]", "", "axis 1 = 4 against 3 (n)"},
        {"f(x?: f32[n], y: f32[2*n]) -> f32[n]", "-, f32[6]", "", "n=3 | f32[n=3] | f32[3]"},
        {"f(x?: f32[n], y: f32[n*n])", "-, f32[9]", "",
         "axis 1 = 9: the size of 'n' cannot be found from n*n"},
        {"f(x?: f32[n]) -> f32[n]", "-", "f32[3]", "n=3 | f32[n=3] | f32[3]"},
        /* results */
        {"f(x: f32[n]) -> f32[m]", "f32[2]", "f32[3]", "n=2, m=3 | f32[m=3] | f32[3]"},
        {"f(x: f32[n]) -> f32[m], f32[2*m]", "f32[2]", "f32[3], f32[7]",
         "axis 1 = 7 against 2*m = 6"},
        {"f(x: f32[n]) -> f32[2*m], f32[m]", "f32[2]", "f32[6], f32[3]",
         "n=2, m=3 | f32[6], f32[m=3] | f32[6], f32[3]"},
        {"f(x: f32[n]) -> f32[n]", "f32[2]", "f32[n=2]", "n=2 | f32[n=2] | f32[2]"},
        {"f(x: f32[n], y: f32[m]) -> f32[n]", "f32[2], f32[2]", "f32[m=2]",
         "axis 1: 'm' against 'n' (n)"},
        {"f(x: f32[n]) -> f32[n]", "f32[2]", "f32[2, 2]", "2 dims against 1"},
        {"f(x: f32[n]) -> f32[n]", "f32[2]", "u8[2]", "u8 against f32"},
        {"f(x: f32[..., n]) -> f32[...]", "f32[a=2, 5]", "f32[2]",
         "...=[2], n=5 | f32[2] | f32[a=2]"},
        {"f(x: f32[]) -> f32[...]", "f32[]", "f32[q=2, 3]", "...=[2, 3] | f32[2, 3] | f32[2, 3]"},
    };
    for (size_t i = 0; i < DC_COUNTOF(rows); i++)
        run_row(&rows[i]);
}

/* ---- definitions ---- */

/* With these sizes given: "" if it is a definition, then *out is what is known; else the reason. */
static void test_check(void)
{
    static const struct {
        const char *sig, *give, *out;
    } rows[] = {
        {"f(x: f32[2], y: f32[3]) -> f32[]", "", "f(x: f32[2], y: f32[3]) -> f32[]"},
        {"f(x: f32[n])", "", "f(x: f32[n])"},
        {"f(x: f32[n, 2*n])", "n=3", "f(x: f32[n=3, 6])"},
        {"f(x: f32[n=2*m])", "m=3", "f(x: f32[n=6])"},
        {"f(x: f32[n=2*m], y: f32[m])", "n=6", "f(x: f32[n=6], y: f32[m=3])"},
        {"f(x: f32[n=6]) -> f32[n=2*m]", "", "f(x: f32[n=6]) -> f32[n=6]"},
        {"f(x: f32[a=2*b], y: f32[b=c + 1], z: f32[c])", "c=1",
         "f(x: f32[a=4], y: f32[b=2], z: f32[c=1])"},
        {"f(x: f32[n*n])", "", "the size of 'n' cannot be found from n*n"},
        {"f(x: f32[n*n])", "n=3", "f(x: f32[9])"},
        {"f(x: f32[n*n], y: f32[n])", "", "f(x: f32[n*n], y: f32[n])"},
        {"f(x: f32[n*n], y?: {a: {f32[n + 1]}})", "", "f(x: f32[n*n], y?: {a: {f32[n + 1]}})"},
        {"f(x: f32[n + m])", "", "the size of 'n' cannot be found from n + m"},
        {"f(x: f32[n + m], y: f32[n + m + k], z: f32[k])", "",
         "the size of 'n' cannot be found from n + m"},
        {"f(x: f32[n + m])", "m=3", "f(x: f32[n + m])"},
        {"f(x: f32[n//2])", "", "the size of 'n' cannot be found from n//2"},
        {"f(x: f32[n%2])", "", "the size of 'n' cannot be found from n%2"},
        {"f(x: f32[2*(n//k)], y: f32[k])", "", "the size of 'n' cannot be found from 2*(n//k)"},
        {"f(x: f32[n=m*m])", "", "the size of 'm' cannot be found from m*m"},
        {"f(x: f32[n]) -> f32[2*m]", "", "f(x: f32[n]) -> f32[2*m]"},
        {"f(x: f32[n]) -> f32[m*m]", "", "the size of 'm' cannot be found from m*m"},
        {"f(x: f32[n]) -> f32[m*k], f32[m]", "", "the size of 'm' cannot be found from m*k"},
        {"f(x: f32[n]) -> f32[m], f32[m*k]", "", "f(x: f32[n]) -> f32[m], f32[m*k]"},
        {"f(x: f32[n]) -> {a: f32[m], b: {f32[m*m]}}", "",
         "f(x: f32[n]) -> {a: f32[m], b: {f32[m*m]}}"},
        {"f(x: f32[n=8]) -> f32[n - 9]", "", "n - 9 is -1; a size is 0 or more"},
        {"f(x: f32[n=8], y: f32[k=0]) -> f32[n//k]", "", "n//k divides by zero"},
        {"f(x: f32[n=2*m], y: f32[m=4], z: f32[n=7])", "", "n = 7 against 2*m = 8"},
        {"f(x: f32[n=2*m], z: f32[n=7])", "", "n = 7 is not 2*m for a whole m"},
        {"f(x: f32[n=2*m + 9, m])", "n=7", "n = 7 is 2*m + 9 only for m = -1"},
        {"f(x: f32[n=m - 9, m])", "m=7", "n: m - 9 is -2; a size is 0 or more"},
        {"f(x: f32[9999999999, 9999999999])", "", "a type is too large to address"},
        {"f(x: f32[n, n])", "n=9999999999", "a type is too large to address"},
        {"f(x: f32[n, n*n])", "n=9999999999", "a type is too large to address"},
        {"f(x: f32[m, n=m*m])", "m=9999999999", "n: m*m is too large"},
        {"f(k, x: f32[n])", "n=-1", "'n' = -1: a size is 0 or more"},
        {"f(k, x: f32[n])", "k=1", "no dim is called 'k'; there are n"},
        {"f(k)", "k=1", "no dim is called 'k'; no dim has a name"},
        {"f(x: f32[n=4, m])", "n=1", "'n' is 4 and cannot be 1"},
        {"f(x: f32[n=4, m])", "n=4", "f(x: f32[n=4, m])"},
    };
    for (size_t i = 0; i < DC_COUNTOF(rows); i++) {
        static dc_sig s;
        dc_sig_bind b;
        char name[20] = "";
        long long size = 0;
        const char *out;
        if (!CHECK_EQ(parse(rows[i].sig, &s), DC_OK))
            printf("    %s\n", sentence());
        dc_sig_begin(&s, &b);
        dc_status status = DC_OK;
        if (sscanf(rows[i].give, "%19[a-z]=%lld", name, &size) == 2)
            status = dc_protect(&job, give_body, &(giving){&s, &b, name, size});
        if (status == DC_OK)
            status = check(&s, &b);
        out = status == DC_OK ? printed(&s, &b) : job.err.fact.word[job.err.id == DC_ERR_SIGNATURE];
        if (!CHECK_STR(out, rows[i].out))
            printf("    of %s\n", rows[i].sig);
        dc_sig_fini(&s);
    }
}

static void test_printed_with_sizes(void)
{
    static dc_sig s;
    dc_sig_bind b;
    char text[40];
    CHECK_EQ(parse("f(x: f32[batch=64, ..., 2*n + 1], y: {u8[n, k=n - 2]}) -> f32[m, ...]", &s),
             DC_OK);
    dc_sig_begin(&s, &b);
    CHECK_EQ(dc_sig_bind_print(&s, &b, text, sizeof text), 8);
    CHECK_STR(text, "batch=64");
    CHECK(!is_bound(&s, &b));
    CHECK_STR(printed(&s, &b),
              "f(x: f32[batch=64, ..., 2*n + 1], y: {u8[n, k=n - 2]}) -> f32[m, ...]");
    b.size[dc_sig_var(&s, "n")] = 4;
    b.rest = 2;
    b.rest_size[0] = 8;
    b.rest_size[1] = 9;
    CHECK_STR(printed(&s, &b), "f(x: f32[batch=64, 8, 9, 9], y: {u8[n=4, k=2]}) -> f32[m, 8, 9]");
    dc_sig_bind_print(&s, &b, text, sizeof text);
    CHECK_STR(text, "batch=64, ...=[8, 9], n=4");
    b.rest = 0;
    CHECK_STR(printed(&s, &b), "f(x: f32[batch=64, 9], y: {u8[n=4, k=2]}) -> f32[m]");
    CHECK_EQ(dc_sig_type_print(&s, &b, s.param[0].type, text, 8), 16);
    CHECK_STR(text, "f32[bat");
    CHECK_EQ(dc_sig_type_print(&s, NULL, s.param[0].type, NULL, 0), 27);
    for (size_t room = 0; room < sizeof text; room++) {
        memset(text, 'x', sizeof text);
        dc_sig_print(&s, NULL, text, room);
        CHECK(text[room] == 'x' && (room == 0 || text[room - 1] == '\0'));
    }
    dc_sig_fini(&s);
}

int main(void)
{
    static const dc_opts opts;
    dc_job_init(&job, &opts, NULL);
    names = dc_names_new();
    test_good();
    test_parts();
    test_refusals();
    test_calls();
    test_limits();
    test_check();
    test_printed_with_sizes();
    dc_names_free(names);
    dc_job_fini(&job);
    return t_done();
}
