/* Signatures: what is read, what is refused and in which words, how sizes bind. */
#include "core/job.h"
#include "core/sig.h"

#include <stdio.h>
#include <string.h>

#include "tests/t.h"

typedef struct reading {
    dc_names *names;
    const char *text;
    dc_oldsig *out;
} reading;

static dc_job job;
static dc_names *names;

static dc_status body(dc_job *j, void *arg)
{
    const reading *r = arg;
    return dc_oldsig_parse(j, r->names, r->text, r->out);
}

static dc_status parse(const char *text, dc_oldsig *out)
{
    reading r = {names, text, out};
    return dc_protect(&job, body, &r);
}

static const char *sentence(void)
{
    static char text[700];
    dc_err_render(&job.err, 1, text, sizeof text);
    return text;
}

static void test_parts(void)
{
    static dc_oldsig s;
    CHECK_EQ(parse("step(x: u8[64, 28, 28], y: i32[batch=64], lr: f32[]) -> f32[], f32[batch]", &s),
             DC_OK);
    CHECK_STR(s.name, "step");
    CHECK_EQ(s.nparam, 3);
    CHECK_EQ(s.nresult, 2);
    CHECK(!s.any_result);
    CHECK_STR(s.param[1].name, "y");
    CHECK_EQ(s.param[0].type.rank, 3);
    CHECK_EQ(s.param[0].type.dim[2], 28);
    CHECK_EQ(s.param[2].type.rank, 0);
    CHECK_EQ(s.result[1].dim[0], 64); /* a name that has a size elsewhere */
    CHECK_STR(s.param[1].type.name[0], "batch");
    CHECK_EQ(parse("  f ( )  -> ( ) ", &s), DC_OK);
    CHECK_EQ(s.nparam, 0);
    CHECK_EQ(s.nresult, 0);
    CHECK(!s.any_result);
    CHECK_EQ(parse("(x: f32[n])", &s), DC_OK);
    CHECK(s.name == NULL);
    CHECK(s.any_result);
}

static void test_binding(void)
{
    static dc_oldsig s;
    int axis;
    char text[DC_TYPE_TEXT];
    dc_type t;
    CHECK_EQ(parse("f(x: f32[batch, n], y: f32[n, 3]) -> f32[batch]", &s), DC_OK);
    CHECK_EQ(s.nvar, 2);
    CHECK(!dc_oldsig_resolve(&s.param[0].type, s.size, &t));
    dc_oldsig_type_print(&s.param[0].type, s.size, text, sizeof text);
    CHECK_STR(text, "f32[batch, n]");
    const dc_type x = dc_type_make(DC_F32, 2, (const int64_t[]){5, 7});
    const dc_type y = dc_type_make(DC_F32, 2, (const int64_t[]){8, 3});
    CHECK(dc_oldsig_match(&s.param[0].type, &x, s.size, &axis));
    CHECK(!dc_oldsig_match(&s.param[1].type, &y, s.size, &axis));
    CHECK_EQ(axis, 0);
    CHECK(dc_oldsig_resolve(&s.result[0], s.size, &t));
    CHECK_EQ(t.dim[0], 5);
    dc_oldsig_type_print(&s.param[0].type, s.size, text, sizeof text);
    CHECK_STR(text, "f32[batch=5, n=7]");
    const dc_type other = dc_type_make(DC_I32, 2, (const int64_t[]){5, 7});
    CHECK(!dc_oldsig_match(&s.param[0].type, &other, s.size, &axis));
    CHECK_EQ(axis, -1);
}

static void test_refusals(void)
{
    static dc_oldsig s;
    static const char *const cases[][2] = {
        {"", "signature '': '(' expected at its end"},
        {"f(x: f32[2)", "signature 'f(x: f32[2)': ']' expected before ')'"},
        {"f(x: f32[2]", "signature 'f(x: f32[2]': ')' expected at its end"},
        {"f(x)", "signature 'f(x)': parameter 'x' needs a type, as in x: f32[]"},
        {"f(: f32[])", "signature 'f(: f32[])': a parameter's name expected before ': f32[])'"},
        {"f(x: f32[], x: f32[])",
         "signature 'f(x: f32[], x: f32[])': parameter 'x' is given twice"},
        {"f(x?: f32[])", "signature 'f(x?: f32[])': optional parameters are not supported yet"},
        {"f(x: {f32[]})", "signature 'f(x: {f32[]})': records and lists are not supported yet"},
        {"f(x: f32[...])", "signature 'f(x: f32[...])': '...' is not supported yet"},
        {"f(x: f32[2*n])", "signature 'f(x: f32[2*n])': arithmetic on sizes is not supported yet"},
        {"f(x: f32[n=2, n=3])", "signature 'f(x: f32[n=2, n=3])': 'n' is 2 and 3"},
        {"f() ->", "signature 'f() ->': a type expected before ''"},
        {"f() -> f32[] x", "signature 'f() -> f32[] x': nothing expected behind 'x'"},
        {"f(x: f32[99999999999999999999])",
         "signature 'f(x: f32[99999999999999999999])': a size is too large"},
        {"f(x: f32[9999999999, 9999999999])",
         "signature 'f(x: f32[9999999999, 9999999999])': a type is too large to address"},
        {"f(x: f32[1,1,1,1,1,1,1,1,1])",
         "signature 'f(x: f32[1,1,1,1,1,1,1,1,1])': a type has more than 8 axes"},
    };
    for (size_t i = 0; i < DC_COUNTOF(cases); i++) {
        CHECK_EQ(parse(cases[i][0], &s), DC_E_TYPE);
        CHECK_STR(sentence(), cases[i][1]);
    }
    CHECK_EQ(parse("f(x: g32[2])", &s), DC_E_TYPE);
    CHECK(strstr(sentence(), "unknown dtype 'g32'") != NULL);
}

/* Every prefix, and every text with one character replaced, is read or refused, nothing else. */
static void test_damaged(void)
{
    static dc_oldsig s;
    static const char whole[] = "step(x: u8[64, 28], y: i32[batch=64]) -> f32[], f32[batch]";
    static const char other[] = "()[],:=->?{}.*0a ";
    char text[sizeof whole];
    int read = 0;
    for (size_t n = 0; n < sizeof whole; n++) {
        memcpy(text, whole, n);
        text[n] = '\0';
        read += parse(text, &s) == DC_OK;
        for (size_t k = 0; k < sizeof other - 1 && n + 1 < sizeof whole; k++) {
            memcpy(text, whole, sizeof whole);
            text[n] = other[k];
            read += parse(text, &s) == DC_OK;
        }
    }
    CHECK(read > 0);
    char many[4000] = "f(";
    for (int i = 0; i < 40; i++)
        snprintf(many + strlen(many), 60, "%sp%d: f32[]", i ? ", " : "", i);
    strcat(many, ")");
    CHECK_EQ(parse(many, &s), DC_E_TYPE);
    CHECK(strstr(sentence(), "more than 32 parameters") != NULL);
}

int main(void)
{
    static const dc_opts opts;
    dc_job_init(&job, &opts, NULL);
    names = dc_names_new();
    test_parts();
    test_binding();
    test_refusals();
    test_damaged();
    dc_names_free(names);
    dc_job_fini(&job);
    return t_done();
}
