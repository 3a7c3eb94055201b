/* Numbers: the reader of digits beside the C library's, settings of the environment, types, constants of kernels. */
#define _POSIX_C_SOURCE 200809L /* setenv */
#include "core/base/digits.h"
#include "core/base/type.h"
#include "jit/nest/nest_print.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"

/* Of what is taken, strtoll and strtoull say the same, and printf prints it. */
static void compare(const char *text)
{
    const char *at = text;
    char print[40], *end;
    uint64_t u;
    int64_t i;
    errno = 0;
    if (dc_digits_unsigned(&at, NULL, UINT64_MAX, &u) == DC_DIGITS_OK) {
        snprintf(print, sizeof print, "%" PRIu64, u);
        if (strtoull(text, &end, 10) != u || end != at || errno != 0 ||
            strncmp(print, text, strlen(print)) != 0)
            fuzz_finding("%s is read as %" PRIu64, text, u);
    }
    at = text;
    if (dc_digits_signed(&at, NULL, INT64_MIN, INT64_MAX, &i) == DC_DIGITS_OK) {
        snprintf(print, sizeof print, "%" PRId64, i);
        if (strtoll(text, &end, 10) != i || end != at || errno != 0 ||
            strncmp(print, text, strlen(print)) != 0)
            fuzz_finding("%s is read as %" PRId64, text, i);
    }
    at = text;
    if (dc_digits_signed(&at, NULL, -100, 1000, &i) == DC_DIGITS_OK && (i < -100 || i > 1000))
        fuzz_finding("%s is read as %" PRId64 ", beyond a bound", text, i);
}

static void read_settings(const char *text)
{
    static const char *const name[] = {"DEEPC_MEMORY", "DEEPC_THREADS", "DEEPC_CHECK",
                                       "DEEPC_SEED"};
    dc_opts o;
    const char *bad;
    for (size_t i = 0; i < DC_COUNTOF(name); i++)
        setenv(name[i], text, 1);
    dc_opts_init(&o, &bad);
    if (o.memory < 0 || o.check < 0)
        fuzz_finding("%s is read as a size of %" PRId64 " bytes", text, o.memory);
    for (size_t i = 0; i < DC_COUNTOF(name); i++)
        unsetenv(name[i]);
}

static dc_status body(dc_job *j, void *arg)
{
    const fuzz_input *in = arg;
    const char *at = in->text, *why = "";
    dc_dtype dtype;
    uint64_t bits;
    dc_type t, again;
    char text[DC_TYPE_TEXT];
    if (dc_const_parse(&at, &dtype, &bits, &why)) {
        dc_text *out = dc_job_text(j);
        dc_const_print(dtype, bits, out);
        dc_dtype as;
        uint64_t back;
        at = out->s;
        if (!dc_const_parse(&at, &as, &back, &why) || as != dtype || back != bits)
            fuzz_finding("a constant is printed as %s", out->s);
        dc_job_text_end(j, out);
    }
    at = in->text;
    DC_TRY(dc_type_parse(j, NULL, &at, &t));
    dc_type_print(&t, text, sizeof text);
    at = text;
    if (dc_type_parse(j, NULL, &at, &again) != DC_OK || !dc_type_same(&t, &again))
        fuzz_finding("type '%s' does not read back", text);
    return DC_OK;
}

void fuzz_one(const fuzz_input *in)
{
    compare(in->text);
    read_settings(in->text);
    fuzz_protect(body, (void *)in);
}
