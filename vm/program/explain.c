/*
 * deepc explain CODE: the page of docs/errors/ about a code, as it is. Without a code, the list of
 * all codes of core/base/err.def, each with the title of its page.
 *
 * A code is read generously: DC0301, dc0301, 0301, 301.
 */
#include "vm/program/explain.h"

#include "core/base/digits.h"
#include "core/base/err.h"
#include "vm/program/pages.h"
#include "vm/program/say.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h> /* abs */
#include <string.h>

enum { NEAREST = 3 };

/* The codes of the table, sorted, each once; returns how many. */
static int list_codes(int code[DC_ERR__COUNT])
{
    int n = 0;
    for (int id = 0; id < DC_ERR__COUNT; id++) {
        const int c = dc_err_row_of((dc_err_id)id)->code;
        int at = n;
        while (at > 0 && code[at - 1] > c)
            at--;
        if (c == 0 || (at > 0 && code[at - 1] == c))
            continue;
        memmove(code + at + 1, code + at, (size_t)(n - at) * sizeof *code);
        code[at] = c;
        n++;
    }
    return n;
}

/* -1: no code at all */
static int read_code(const char *text)
{
    uint64_t code;
    if (tolower((unsigned char)text[0]) == 'd' && tolower((unsigned char)text[1]) == 'c')
        text += 2;
    while (text[0] == '0' && text[1] != '\0')
        text++;
    return dc_digits_whole(text, 999999, &code) ? (int)code : -1;
}

static const struct dc_page *page_of(int code)
{
    for (const struct dc_page *p = dc_pages; p->code != NULL; p++)
        if (read_code(p->code) == code)
            return p;
    return NULL;
}

/* What the first line of the page says behind "# DC0301: ". */
static void print_title(int code)
{
    const struct dc_page *p = page_of(code);
    const char *title = p != NULL ? strchr(p->text, ':') : NULL;
    if (title != NULL)
        printf("DC%04d %.*s\n", code, (int)strcspn(title + 1, "\n"), title + 1);
    else
        printf("DC%04d  (no page)\n", code);
}

static int print_list(void)
{
    int code[DC_ERR__COUNT];
    const int n = list_codes(code);
    for (int i = 0; i < n; i++)
        print_title(code[i]);
    puts("deepc explain CODE tells more, with an example and how to mend it.");
    return 0;
}

static int unknown_code(const char *text, int wanted)
{
    int code[DC_ERR__COUNT];
    const int n = list_codes(code);
    dc_sayf(stderr, "deepc: no error has the code '%s'", text);
    if (wanted < 0) {
        fputs("; codes look like DC0301, deepc explain lists them\n", stderr);
        return 1;
    }
    int at = 0; /* where NEAREST codes in a row are nearest */
    while (at + NEAREST < n && abs(code[at + NEAREST] - wanted) < abs(code[at] - wanted))
        at++;
    fputs("; the nearest are", stderr);
    for (int i = at; i < at + NEAREST && i < n; i++)
        dc_sayf(stderr, "%s DC%04d", i > at ? "," : "", code[i]);
    fputs("; deepc explain lists all\n", stderr);
    return 1;
}

static int print_page(const char *text)
{
    int code[DC_ERR__COUNT];
    const int wanted = read_code(text), n = list_codes(code);
    int i = 0;
    while (i < n && code[i] != wanted)
        i++;
    if (i == n)
        return unknown_code(text, wanted);
    const struct dc_page *p = page_of(wanted);
    if (p != NULL)
        fwrite(p->text, 1, p->size, stdout);
    else
        printf("DC%04d has no page yet\n", wanted);
    return p == NULL;
}

int dc_vm_explain(int argc, char **argv)
{
    int status = argc == 0 ? print_list() : 0;
    for (int i = 0; i < argc; i++) {
        if (i > 0)
            putchar('\n');
        status |= print_page(argv[i]);
    }
    return status;
}
