/* core/base/shown.c: what is escaped, what stays, where texts are cut. */
#include "core/base/shown.h"

#include <string.h>

#include "tests/t.h"

static const struct {
    const char *text, *shown, *lines;
} rows[] = {{"weight.0 \xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80 \\ \"'", NULL, NULL},
            {"a\nb\tc\rd", "a\\nb\\tc\\rd", "a\nb\tc\\rd"},
            {"\x1b[31m\x7f", "\\x1b[31m\\x7f", NULL},
            {"\xc2\x9b"
             "31m \xc2\xa0",
             "\\u{9b}31m \xc2\xa0", NULL},
            {"\xe2\x80\xae \xe2\x81\xa6 \xe2\x81\xa9 \xe2\x80\xa8 \xe2\x80\x8f \xd8\x9c",
             "\\u{202e} \\u{2066} \\u{2069} \\u{2028} \\u{200f} \\u{61c}", NULL},
            {"\xff \xc3 \xc0\xaf \xed\xa0\x80 \xf4\x90\x80\x80 \xe2\x82",
             "\\xff \\xc3 \\xc0\\xaf \\xed\\xa0\\x80 \\xf4\\x90\\x80\\x80 \\xe2\\x82", NULL}};

static void check_row(const char *text, const char *wanted, bool lines)
{
    char out[200], again[200];
    const size_t n = strlen(text), m = dc_shown_put(out, sizeof out, text, n, lines);
    CHECK_STR(out, wanted);
    CHECK_EQ(m, strlen(wanted));
    CHECK_EQ(dc_shown_is_plain(text, n, lines), strcmp(text, wanted) == 0);
    dc_shown_put(again, sizeof again, out, m, lines); /* what has been escaped stays */
    CHECK_STR(again, out);
    for (size_t size = 0; size <= m; size++) { /* cut anywhere it is whole characters */
        memset(again, 'x', sizeof again);
        CHECK_EQ(dc_shown_put(again, size, text, n, lines), m);
        CHECK(again[size] == 'x' && (size == 0 || strlen(again) < size));
        CHECK(size == 0 || (memcmp(again, out, strlen(again)) == 0 &&
                            dc_shown_is_plain(again, strlen(again), lines)));
    }
}

int main(void)
{
    char out[20];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *shown = rows[i].shown != NULL ? rows[i].shown : rows[i].text;
        check_row(rows[i].text, shown, false);
        check_row(rows[i].text, rows[i].lines != NULL ? rows[i].lines : shown, true);
    }
    CHECK_EQ(dc_shown_put(out, sizeof out, "a\0b", 3, false), 6);
    CHECK_STR(out, "a\\x00b");
    CHECK_STR(dc_show_name("x").s, "x");
    char text[301];
    memset(text, '\x1b', 300);
    text[300] = '\0';
    const dc_shown_name name = dc_show_name(text);
    CHECK(strlen(name.s) < sizeof name.s && strcmp(name.s + strlen(name.s) - 7, "\\x1b...") == 0);
    return t_done();
}
