/* core/base/type.c: the dtype table, printing and parsing types, what a refused type is told, names. */
#include "core/base/job.h"
#include "core/base/type.h"

#include <stdlib.h>

#include "tests/t.h"

static dc_job job;
static dc_names *names;
static char text[1024];

/* The sentence that a type is refused with, or what it prints as. */
static const char *parse(const char *s)
{
    dc_type t;
    const char *at = s;
    job.err = (dc_err){0};
    if (dc_type_parse(&job, names, &at, &t) != DC_OK) {
        CHECK(at == s); /* the cursor stays */
        dc_err_render(&job.err, 1, text, sizeof text);
    } else {
        dc_type_print(&t, text, sizeof text);
    }
    return text;
}

static void test_table(void)
{
    dc_dtype t;
    for (int i = 0; i < DC_DTYPE__COUNT; i++) {
        const char *name = dc_dtype_name((dc_dtype)i);
        CHECK(dc_dtype_find(name, strlen(name), &t) && (int)t == i);
        CHECK_EQ(dc_dtype_size((dc_dtype)i) * 8, dc_dtype_bits((dc_dtype)i));
    }
    CHECK(!dc_dtype_find("f3", 2, &t));
    CHECK(!dc_dtype_find("f32x", 4, &t));
    CHECK(dc_dtype_find("f32x", 3, &t) && t == DC_F32);
    CHECK(dc_dtype_is_float(DC_F32) && !dc_dtype_is_float(DC_I32));
}

static void test_accepted(void)
{
    CHECK_STR(parse("f32[]"), "f32[]");
    CHECK_STR(parse("f32[64, 784]"), "f32[64, 784]");
    CHECK_STR(parse("f32[2*3, n=(7 - 1)//2]"), "f32[6, n=3]");
    CHECK_STR(parse("  u8 [ batch = 64 ,28,0 ]  "), "u8[batch=64, 28, 0]");
    CHECK_STR(parse("bool[n=3, n=3]"), "bool[n=3, n=3]");
    CHECK_STR(parse("i32[1,2,3,4,5,6,7,8]"), "i32[1, 2, 3, 4, 5, 6, 7, 8]");
    CHECK_STR(parse("i32[2], rest"), "i32[2]");
    CHECK_STR(parse("f32[9223372036854775807, 0]"),
              "type 'f32[9223372036854775807, 0]': too large to address");
    const char *at = "f32[2] -> x";
    dc_type t;
    CHECK(dc_type_parse(&job, names, &at, &t) == DC_OK);
    CHECK_STR(at, " -> x");
    CHECK_EQ(dc_type_count(&t), 2);
    CHECK_EQ(dc_type_bytes(&t), 8);
}

/* A complex type and the real one of its parts have the same bytes. */
static void test_complex(void)
{
    const char *at = "c128[rows=3, 4]";
    char shown[DC_TYPE_TEXT];
    dc_type t;
    CHECK(dc_type_parse(&job, names, &at, &t) == DC_OK);
    const dc_type parts = dc_type_parts(&t), same = dc_type_parts(&parts);
    dc_type_print(&parts, shown, sizeof shown);
    CHECK_STR(shown, "f64[rows=3, 4, 2]");
    CHECK(dc_type_same(&parts, &same));
    CHECK_EQ(dc_type_bytes(&parts), dc_type_bytes(&t));
    CHECK_EQ(dc_type_count(&t), 12);
    CHECK(dc_dtype_is_smooth(DC_C64) && dc_dtype_is_smooth(DC_F16) && !dc_dtype_is_smooth(DC_I64));
    CHECK(dc_dtype_is_complex(DC_C64) && !dc_dtype_is_float(DC_C64));
}

static void test_refused(void)
{
    CHECK_STR(parse("f3[2]"), "type 'f3[2]': unknown dtype 'f3'; known are bool, i8, i16, i32, "
                              "i64, u8, u16, u32, u64, f16, bf16, "
                              "f32, f64, f8e4m3fn, f8e5m2, c64, c128");
    CHECK_STR(parse("c64[1, 1, 1, 1, 1, 1, 1, 1]"),
              "type 'c64[1, 1, 1, 1, 1, 1, 1, 1]': more than 7 axes of complex numbers");
    CHECK_STR(parse("f32"), "type 'f32': '[' expected at its end");
    CHECK_STR(parse("f32(2)"), "type 'f32': '[' expected, not '('");
    CHECK_STR(parse("f32[2"), "type 'f32[2': ',' or ']' expected at its end");
    CHECK_STR(parse("f32[2 3]"), "type 'f32[2 3]': ',' or ']' expected, not '3'");
    CHECK_STR(parse("f32[2,]"), "type 'f32[2,]': a size expected, not ']'");
    CHECK_STR(parse("f32[batch]"),
              "type 'f32[batch]': dim 'batch' has no size; batch=64 gives it one");
    CHECK_STR(parse("f32[batch=]"), "type 'f32[batch=]': a size expected, not ']'");
    CHECK_STR(parse("f32[-1]"), "type 'f32[-1]': a size is 0 or more, not '-'");
    CHECK_STR(parse("f32[2x]"), "type 'f32[2x]': '2x' is neither a size nor a name");
    CHECK_STR(parse("f32[2*x]"), "type 'f32[2*x]': 'x' has no size here");
    CHECK_STR(parse("f32[...]"), "type 'f32[...]': '...' has no sizes here");
    CHECK_STR(parse("f32[4/2]"), "type 'f32[4/2]': sizes are divided by '//', not '/'");
    CHECK_STR(parse("f32[4//0]"), "type 'f32[4//0]': a size divides by zero");
    CHECK_STR(parse("f32[2-3]"), "type 'f32[2-3]': a size is 0 or more, not -1");
    CHECK_STR(parse("f32[(2]"), "type 'f32[(2]': ')' expected, not ']'");
    CHECK_STR(parse("f32[4294967296*4294967296]"),
              "type 'f32[4294967296*4294967296]': a size is too large");
    CHECK_STR(parse("f32[99999999999999999999]"),
              "type 'f32[99999999999999999999]': size '99999999999999999999' is too large");
    CHECK_STR(parse("f32[2, 08]"), "type 'f32[2, 08]': size '08' has a leading zero");
    CHECK_STR(parse("f32[1,1,1,1,1,1,1,1,1]"), "type 'f32[1,1,1,1,1,1,1,1,1]': more than 8 axes");
    CHECK_STR(parse("f32[4294967296, 4294967296]"),
              "type 'f32[4294967296, 4294967296]': too large to address");
    CHECK_STR(parse(""), "type '': a dtype expected at its end");
    CHECK_STR(parse("[2]"), "type '[2]': a dtype expected, not '['");
    CHECK_EQ(job.err.id, DC_ERR_TYPE_TEXT);
    dc_names *kept = names;
    names = NULL;
    CHECK_STR(parse("f32[n=2]"), "type 'f32[n=2]': dim 'n' may have no name here");
    names = kept;
}

/* Any prefix, and any byte in any place, gives a type or a sentence. */
static void test_damaged(void)
{
    const char *whole = "f32[batch=64, 784, x=1]";
    char s[64];
    for (size_t n = 0; n < strlen(whole); n++) {
        memcpy(s, whole, n);
        s[n] = '\0';
        CHECK(strncmp(parse(s), "type '", 6) == 0);
    }
    for (size_t i = 0; i < strlen(whole); i++)
        for (int c = 1; c < 256; c++) {
            strcpy(s, whole);
            s[i] = (char)c;
            CHECK(strlen(parse(s)) > 4);
        }
}

static void test_print_cut(void)
{
    const dc_type t = dc_type_make(DC_F32, 2, (const int64_t[]){64, 784});
    char small[8];
    CHECK_EQ(dc_type_print(&t, small, sizeof small), 12);
    CHECK_STR(small, "f32[64,");
    CHECK_EQ(dc_type_print(&t, NULL, 0), 12);
}

static void test_same(void)
{
    dc_type a = dc_type_make(DC_F32, 2, (const int64_t[]){2, 3}), b = a;
    b.name[0] = dc_name_intern(names, "n", 1);
    CHECK(dc_type_same(&a, &b));
    b.dtype = DC_I32;
    CHECK(!dc_type_same(&a, &b) && dc_type_same_shape(&a, &b));
    b.dim[1] = 4;
    CHECK(!dc_type_same_shape(&a, &b));
    CHECK(!dc_dims_fit(1, (const int64_t[]){-1}, 4));
    CHECK(dc_dims_fit(1, (const int64_t[]){INT64_MAX / 4}, 4));
    CHECK(!dc_dims_fit(1, (const int64_t[]){INT64_MAX / 4 + 1}, 4));
}

static void test_names(void)
{
    enum { N = 1000 };
    static const char *seen[N];
    char s[16];
    for (int i = 0; i < N; i++) {
        snprintf(s, sizeof s, "n%d", i);
        seen[i] = dc_name_intern(names, s, strlen(s));
    }
    for (int i = 0; i < N; i++) {
        snprintf(s, sizeof s, "n%dx", i);
        CHECK(dc_name_intern(names, s, strlen(s) - 1) == seen[i]);
        s[strlen(s) - 1] = '\0';
        CHECK_STR(seen[i], s);
    }
    CHECK_STR(dc_name_intern(names, "", 0), "");
}

int main(void)
{
    dc_job_init(&job, NULL, NULL);
    names = dc_names_new();
    test_table();
    test_accepted();
    test_complex();
    test_refused();
    test_damaged();
    test_print_cut();
    test_same();
    test_names();
    dc_names_free(names);
    dc_job_fini(&job);
    return t_done();
}
