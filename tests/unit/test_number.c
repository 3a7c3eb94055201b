/* core/base/number.c: the fewest digits that read back, aligned forms, no trace of the locale. */
#define _POSIX_C_SOURCE 200809L

#include "core/base/number.h"
#include "core/ir/op.h"

#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/t.h"

static char text[DC_NUMBER_TEXT];

static const char *print(dc_dtype t, double v)
{
    return dc_number_print(t, dc_bits_of(t, v), text);
}

static void test_shortest(void)
{
    CHECK_STR(print(DC_F32, 0), "0.0");
    CHECK_STR(print(DC_F32, -0.0), "-0.0");
    CHECK_STR(print(DC_F32, 6), "6.0");
    CHECK_STR(print(DC_F32, 0.1), "0.1");
    CHECK_STR(print(DC_F32, -1.5), "-1.5");
    CHECK_STR(print(DC_F32, 1.0 / 3), "0.33333334");
    CHECK_STR(print(DC_F32, 20000), "20000.0");
    CHECK_STR(print(DC_F32, 16777216), "16777216.0");
    CHECK_STR(print(DC_F32, 1e14), "1e+14");
    CHECK_STR(print(DC_F32, 1e-4), "0.0001");
    CHECK_STR(print(DC_F32, 1.25e-5), "1.25e-05");
    CHECK_STR(print(DC_F32, 3.4028234663852886e38), "3.4028235e+38");
    CHECK_STR(print(DC_F32, 1e-45), "1e-45");
    CHECK_STR(print(DC_F32, INFINITY), "inf");
    CHECK_STR(print(DC_F32, -INFINITY), "-inf");
    CHECK_STR(print(DC_F32, NAN), "nan");
    CHECK_STR(print(DC_F32, copysign(NAN, -1)), "nan");
    CHECK_STR(print(DC_I32, -2147483648.0), "-2147483648");
    CHECK_STR(print(DC_U32, 4294967295.0), "4294967295");
    CHECK_STR(print(DC_BOOL, 1), "true");
    CHECK_STR(print(DC_BOOL, 0), "false");
}

/* Patterns of every float type at random: the text reads back, and no shorter one does. */
static void test_reads_back(void)
{
    uint64_t state = 1;
    for (int t = 0; t < DC_DTYPE__COUNT; t++)
        for (int i = 0; i < 2000 && dc_dtype_is_float((dc_dtype)t); i++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            const uint64_t bits = state >> (64 - dc_dtype_bits((dc_dtype)t));
            const double v = dc_value_of((dc_dtype)t, bits);
            if (!isfinite(v))
                continue;
            dc_number_print((dc_dtype)t, bits, text);
            CHECK_EQ(dc_bits_of((dc_dtype)t, strtod(text, NULL)), bits);
            const dc_decimal d = dc_number_decimal((dc_dtype)t, bits);
            char shorter[DC_NUMBER_TEXT];
            if (d.n > 1) {
                snprintf(shorter, sizeof shorter, "%.*e", d.n - 2, v);
                CHECK(dc_bits_of((dc_dtype)t, strtod(shorter, NULL)) != bits);
            }
        }
}

static void test_forms(void)
{
    CHECK_STR(dc_number_fixed(12.5, 2, text), "12.50");
    CHECK_STR(dc_number_fixed(-0.00004, 4, text), "-0.0000");
    CHECK_STR(dc_number_fixed(NAN, 2, text), "nan");
    CHECK_STR(dc_number_sci(12345, 4, text), "1.2345e+04");
    CHECK_STR(dc_number_sci(-INFINITY, 4, text), "-inf");
    CHECK_STR(dc_number_sci(1e-300, 1, text), "1.0e-300");
}

/* A locale with a decimal comma, made for this test. */
static bool set_comma(void)
{
    char dir[] = "/tmp/deepc-locale-XXXXXX", command[200];
    if (mkdtemp(dir) == NULL)
        return false;
    snprintf(command, sizeof command, "localedef -i de_DE -f UTF-8 %s/de_DE.UTF-8 >/dev/null 2>&1",
             dir);
    bool set = system(command) == 0 && setenv("LOCPATH", dir, 1) == 0 &&
               setlocale(LC_ALL, "de_DE.UTF-8") != NULL;
    snprintf(command, sizeof command, "rm -r %s", dir);
    if (system(command) != 0)
        printf("%s stays\n", dir);
    return set && *localeconv()->decimal_point == ',';
}

int main(void)
{
    test_shortest();
    test_reads_back();
    test_forms();
    if (set_comma()) {
        snprintf(text, sizeof text, "%.1f", 1.5);
        CHECK_STR(text, "1,5");
        test_shortest();
        test_forms();
    } else {
        T_SKIP("no locale with a decimal comma (localedef and its sources: Debian's locales)");
    }
    return t_done();
}
