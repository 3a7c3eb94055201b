#define _POSIX_C_SOURCE 200809L /* uselocale */
/*
 * Elements as text. The C library formats and reads the digits; whatever it puts between them
 * (the locale's decimal point) never leaves this file.
 */
#include "core/base/number.h"

#include "core/base/bits.h"

#include <inttypes.h>
#include <langinfo.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* "+05" */
static int exponent(const char *text)
{
    const bool negative = *text == '-';
    int v = 0;
    for (text += negative || *text == '+'; is_digit(*text); text++)
        v = v * 10 + (*text - '0');
    return negative ? -v : v;
}

/* The text of printf's %e, of some locale, taken apart. */
static dc_decimal take_apart(const char *text)
{
    dc_decimal d = {.negative = *text == '-'};
    for (text += d.negative; *text != '\0' && *text != 'e'; text++)
        if (is_digit(*text) && d.n < DC_NUMBER_DIGITS)
            d.digit[d.n++] = *text;
    d.exp = *text == 'e' ? exponent(text + 1) : 0;
    while (d.n > 1 && d.digit[d.n - 1] == '0')
        d.digit[--d.n] = '\0';
    return d;
}

dc_decimal dc_number_decimal(dc_dtype t, uint64_t bits)
{
    const double v = dc_value_of(t, bits);
    char text[DC_NUMBER_TEXT];
    for (int places = 0; places < DC_NUMBER_DIGITS; places++) {
        snprintf(text, sizeof text, "%.*e", places, v);
        if (dc_bits_of(t, strtod(text, NULL)) == bits)
            break;
    }
    return take_apart(text);
}

double dc_number_value(const char *text)
{
    return strtod(text, NULL);
}

/* As Lua does it: plain digits from 1e-4 to below 1e14. */
static void print_decimal(const dc_decimal *d, char *out)
{
    char *at = out;
    if (d->negative)
        *at++ = '-';
    if (d->exp < -4 || d->exp >= 14) {
        at += sprintf(at, "%c%s%s", d->digit[0], d->n > 1 ? "." : "", d->digit + 1);
        sprintf(at, "e%c%02d", d->exp < 0 ? '-' : '+', abs(d->exp));
        return;
    }
    for (int place = d->exp < 0 ? 0 : d->exp; place >= d->exp - d->n + 1 || place >= -1; place--) {
        const int k = d->exp - place;
        if (place == -1)
            *at++ = '.';
        *at++ = k >= 0 && k < d->n ? d->digit[k] : '0';
    }
    *at = '\0';
}

/* Not finite: nan has no sign to see, it is an accident. */
static bool print_special(double v, char *out)
{
    if (isfinite(v))
        return false;
    strcpy(out, isnan(v) ? "nan" : v < 0 ? "-inf" : "inf");
    return true;
}

const char *dc_number_print(dc_dtype t, uint64_t bits, char *out)
{
    switch (dc_dtype_kind(t)) {
    case DC_KIND_BOOL:
        return strcpy(out, bits != 0 ? "true" : "false");
    case DC_KIND_UINT:
        snprintf(out, DC_NUMBER_TEXT, "%" PRIu64, bits);
        return out;
    case DC_KIND_SINT:
        snprintf(out, DC_NUMBER_TEXT, "%" PRId64, (int64_t)bits);
        return out;
    case DC_KIND_FLOAT:
        break;
    case DC_KIND_COMPLEX:
        return dc_number_print(dc_dtype_part(t), bits, out);
    }
    if (print_special(dc_value_of(t, bits), out))
        return out;
    const dc_decimal d = dc_number_decimal(t, bits);
    print_decimal(&d, out);
    return out;
}

/* One '.' for whatever stands between digits. */
static void plain_point(const char *text, char *out)
{
    bool between = false;
    for (; *text != '\0'; text++) {
        const bool ours = is_digit(*text) || *text == '-' || *text == '+' || *text == 'e';
        if (ours)
            *out++ = *text;
        else if (!between)
            *out++ = '.';
        between = !ours;
    }
    *out = '\0';
}

const char *dc_number_fixed(double v, int places, char *out)
{
    char text[DC_NUMBER_TEXT];
    if (print_special(v, out))
        return out;
    snprintf(text, sizeof text, "%.*f", places, v);
    plain_point(text, out);
    return out;
}

const char *dc_number_sci(double v, int places, char *out)
{
    char text[DC_NUMBER_TEXT];
    if (print_special(v, out))
        return out;
    snprintf(text, sizeof text, "%.*e", places, v);
    plain_point(text, out);
    return out;
}

/* Of this thread alone, and only where there is a difference. */
int dc_number_vformat(char *out, size_t size, const char *fmt, va_list ap)
{
    if (strcmp(nl_langinfo(RADIXCHAR), ".") == 0)
        return vsnprintf(out, size, fmt, ap);
    const locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (plain == (locale_t)0)
        return vsnprintf(out, size, fmt, ap);
    const locale_t before = uselocale(plain);
    const int n = vsnprintf(out, size, fmt, ap);
    uselocale(before);
    freelocale(plain);
    return n;
}

int dc_number_format(char *out, size_t size, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    const int n = dc_number_vformat(out, size, fmt, ap);
    va_end(ap);
    return n;
}

const char *dc_number_bytes(uint64_t bytes, char *out)
{
    static const char *const unit[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double n = (double)bytes / 1024;
    size_t u = 0;
    if (bytes < 10240) {
        snprintf(out, DC_NUMBER_TEXT, "%" PRIu64 " bytes", bytes);
        return out;
    }
    for (; n >= 10240 && u + 1 < DC_COUNTOF(unit); u++)
        n /= 1024;
    dc_number_fixed(n, 1, out);
    const size_t at = strlen(out);
    snprintf(out + at, DC_NUMBER_TEXT - at, " %s", unit[u]);
    return out;
}
