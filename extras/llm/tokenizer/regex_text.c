/*
 * A regular expression as Oniguruma reads it, which the package uses, written for PCRE2.
 *
 * The same text is another expression there: $ and ^ are of lines, (?m) is (?s), (?i) holds for the rest of its group with all
 * its alternatives, {2}+ is repeated and {2}? optional, \h is a hexadecimal digit, \w has marks, classes have classes in them.
 * So every item is read and written anew, and an item that is not known is refused. Characters are written as sets of code
 * points that unicode.h knows, with the categories that PCRE2 has for it where that is shorter; case is written out, too.
 * PCRE2 sees no option, and none of its words for characters but \p{category}.
 */
#include "extras/llm/tokenizer/impl.h"

#include <string.h>
#include <strings.h>

enum {
    MOST_LEVELS = 200, /* of groups; PCRE2 has 250 */
    MOST_CLASSES = 16, /* in each other */
    MOST_SETS = 2 * MOST_CLASSES + 12,
    MANY_RUNS = 256,     /* they are not counted further */
    MOST_WRAPS = 16,     /* repeats of repeats */
    MOST_TEXT = 1 << 20, /* bytes of what is written */
    CATEGORY_COSTS = 12, /* ranges of code points */
    IGNORE_CASE = 1,     /* (?i) */
    DOT_ALL = 2,         /* (?m) */
    EXTENDED = 4         /* (?x) */
};

#define NOTHING SIZE_MAX

typedef struct level {
    size_t from;    /* where it is written */
    unsigned extra; /* groups besides, for options that hold to its end */
    unsigned flags; /* of what is around it */
    bool assertion;
} level;

typedef struct reading {
    dc_tokenizer *t;
    dc_job *job;
    dc_regex_text *out;
    dc_text *to;
    dc_span s;
    size_t at;
    unsigned flags;
    bool exact;
    size_t atom;     /* where that is written which a repeat would be of; NOTHING: there is none */
    bool repeated;   /* it has one */
    unsigned wraps;  /* and so many groups for more */
    uint32_t before; /* the character before, folded, where case is ignored; 0: there is none */
    dc_charset *set[MOST_SETS];
    unsigned nset;
    level level[MOST_LEVELS];
    unsigned nlevel, groups, named, highest;
} reading;

static void refuse(reading *p, const char *why)
{
    if (p->out->wrong == NULL)
        p->out->wrong = why;
}

static bool more(const reading *p)
{
    return p->out->wrong == NULL && p->at < p->s.n;
}

static bool follows(const reading *p, const char *what)
{
    const size_t n = strlen(what);
    return p->s.n - p->at >= n && memcmp(p->s.at + p->at, what, n) == 0;
}

static bool take(reading *p, const char *what)
{
    const bool there = follows(p, what);
    p->at += there ? strlen(what) : 0;
    return there;
}

/* The next character; 0 with a refusal where there is none. */
static uint32_t next_char(reading *p)
{
    size_t length = 0;
    const uint32_t c =
        p->at < p->s.n ? dc_utf8_next(p->s.at + p->at, p->s.n - p->at, &length) : DC_RAW_BYTE;
    p->at += length;
    if (c < DC_RAW_BYTE)
        return c;
    refuse(p, p->at < p->s.n ? "it is no UTF-8" : "it ends too early");
    return 0;
}

static bool is_name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* ---- writing ---------------------------------------------------------------------------------- */

static void begin_atom(reading *p)
{
    p->atom = p->to->n;
    p->repeated = false;
    p->wraps = 0;
    p->before = 0;
}

static void no_atom(reading *p)
{
    p->atom = NOTHING;
    p->before = 0;
}

static void put_char(reading *p, uint32_t c)
{
    char s[4];
    if (c < 0x80 && !is_name_char((char)c))
        dc_text_printf(p->to, "\\x{%x}", c);
    else
        dc_text_put(p->to, s, dc_utf8_put(c, s));
}

/* An empty one, until p->nset is what it was before. */
static dc_charset *new_set(reading *p)
{
    if (p->nset == MOST_SETS) {
        refuse(p, "its classes are too deep in each other");
        return p->set[MOST_SETS - 1];
    }
    dc_charset **s = &p->set[p->nset++];
    if (*s == NULL)
        *s = DC_NEW(&p->job->scratch, dc_charset);
    memset(*s, 0, sizeof **s);
    return *s;
}

/* Names of PCRE2, each with the categories that it has; the first that fits. */
static const struct {
    char name[3];
    uint32_t mask;
} properties[] = {
    {"L", 0x3e},       {"M", 0x1c0},    {"N", 0xe00},    {"Z", 0x7000},   {"P", 0x3f80000},
    {"S", 0x3c000000}, {"Cn", 1},       {"Lu", 1 << 1},  {"Ll", 1 << 2},  {"Lt", 1 << 3},
    {"Lm", 1 << 4},    {"Lo", 1 << 5},  {"Mn", 1 << 6},  {"Mc", 1 << 7},  {"Me", 1 << 8},
    {"Nd", 1 << 9},    {"Nl", 1 << 10}, {"No", 1 << 11}, {"Zs", 1 << 12}, {"Zl", 1 << 13},
    {"Zp", 1 << 14},   {"Cc", 1 << 15}, {"Cf", 1 << 16}, {"Co", 1 << 18}, {"Pc", 1 << 19},
    {"Pd", 1 << 20},   {"Ps", 1 << 21}, {"Pe", 1 << 22}, {"Pi", 1 << 23}, {"Pf", 1 << 24},
    {"Po", 1 << 25},   {"Sm", 1 << 26}, {"Sc", 1 << 27}, {"Sk", 1 << 28}, {"So", 1 << 29}};

static unsigned count_runs(const dc_charset *s)
{
    unsigned n = 0;
    for (uint32_t from, to = 0; n < MANY_RUNS && dc_charset_run(s, &from, &to);)
        n++;
    return n;
}

static unsigned count_properties(uint32_t mask)
{
    unsigned n = 0;
    for (size_t i = 0; i < DC_COUNTOF(properties); i++)
        if ((mask & properties[i].mask) == properties[i].mask) {
            mask &= ~properties[i].mask;
            n++;
        }
    return n;
}

/* A way to write a set. */
typedef struct way {
    const dc_charset *all;        /* that it matches, */
    uint32_t mask;                /* by these categories as PCRE2 has them, */
    const dc_charset *add, *less; /* by these, and without those; less NULL: there are none */
    unsigned cost;
} way;

static way by_ranges(const dc_charset *s)
{
    return (way){.all = s, .add = s, .cost = count_runs(s)};
}

static way by_categories(reading *p, const dc_charset *s)
{
    way w = {.all = s, .mask = dc_charset_within(p->t->u, s) & ~((uint32_t)1 << DC_CAT_CS)};
    dc_charset *theirs = new_set(p), *add = new_set(p), *less = new_set(p);
    if (!p->exact) {
        dc_charset_categories(p->t->u, theirs, w.mask);
    } else {
        dc_regex_categories(p->t, w.mask, theirs);
    }
    *less = *theirs;
    dc_charset_flip(theirs);
    *add = *s;
    dc_charset_meet(add, theirs);
    *theirs = *s;
    dc_charset_flip(theirs);
    dc_charset_meet(less, theirs);
    const unsigned without = count_runs(less);
    w.add = add;
    w.less = without > 0 ? less : NULL;
    w.cost =
        CATEGORY_COSTS * (count_properties(w.mask) + (without > 0)) + count_runs(add) + without;
    return w;
}

static void put_runs(reading *p, const dc_charset *s, uint32_t least, uint32_t most)
{
    for (uint32_t from, to = least; dc_charset_run(s, &from, &to) && from <= most;) {
        const uint32_t last = to - 1 < most ? to - 1 : most;
        put_char(p, from);
        if (last > from) {
            dc_text_puts(p->to, last > from + 1 ? "-" : "");
            put_char(p, last);
        }
    }
}

static void put_way(reading *p, const way *w, bool negated)
{
    enum { ASCII = 0x7f, LAST = DC_CHARSET_CODES - 1 };
    if (w->less != NULL) {
        dc_text_puts(p->to, negated ? "(?:[" : "(?:(?![");
        put_runs(p, w->less, 0, LAST);
        dc_text_puts(p->to, negated ? "]|" : "])");
    }
    dc_text_puts(p->to, negated ? "[^" : "[");
    p->out->categories = p->out->categories || w->mask != 0;
    if (w->mask != 0) /* a map of bits has the first ones */
        put_runs(p, w->all, 0, ASCII);
    uint32_t mask = w->mask;
    for (size_t i = 0; i < DC_COUNTOF(properties); i++)
        if ((mask & properties[i].mask) == properties[i].mask) {
            dc_text_printf(p->to, "\\p{%s}", properties[i].name);
            mask &= ~properties[i].mask;
        }
    put_runs(p, w->add, w->mask != 0 ? ASCII + 1 : 0, LAST);
    dc_text_puts(p->to, w->less != NULL ? "])" : "]");
}

static void put_set(reading *p, const dc_charset *set, bool negated)
{
    uint32_t from = 0, to = 0;
    dc_job_look();
    if (p->to->n > MOST_TEXT)
        refuse(p, "it is too long for PCRE2");
    if (!negated && dc_charset_run(set, &from, &to) && to == from + 1 &&
        !dc_charset_run(set, &from, &to)) {
        put_char(p, from);
        return;
    }
    const unsigned sets = p->nset;
    dc_charset *rest = new_set(p);
    *rest = *set;
    dc_charset_flip(rest);
    const dc_charset *of[] = {negated ? rest : set, negated ? set : rest};
    way best = {.cost = UINT32_MAX};
    for (int i = 0; i < 2; i++) {
        const way w = by_ranges(of[i]);
        best = w.cost < best.cost ? w : best;
    }
    for (int i = 0; best.cost > CATEGORY_COSTS && i < 2; i++) {
        const way w = by_categories(p, of[i]);
        best = w.cost < best.cost ? w : best;
    }
    if (best.cost == 0) /* nothing, or all */
        dc_text_puts(p->to, best.all == of[0] ? "[^\\x{0}-\\x{10ffff}]" : "(?s:.)");
    else
        put_way(p, &best, best.all != of[0]);
    p->nset = sets;
}

/* A set that the pattern asks for by itself, or as a class: characters that are the same without case count, too. */
static void put_class(reading *p, dc_charset *set, bool negated)
{
    if ((p->flags & IGNORE_CASE) != 0) {
        dc_charset_fold(p->t->u, set);
        if (!negated && dc_charset_folds_to_several(set))
            refuse(p,
                   "a class without case that has characters like \xc3\x9f, which are two letters, "
                   "is not known");
    }
    begin_atom(p);
    put_set(p, set, negated);
}

/* The first two characters of what one character folds to. */
static bool folds_together(uint32_t a, uint32_t b)
{
    static const char pairs[][3] = {"ss", "st", "ff", "fi", "fl"};
    enum { IOTA = 0x3b9, RING = 0x2be, APOSTROPHE = 0x2bc };
    for (size_t i = 0; i < DC_COUNTOF(pairs); i++)
        if (a == (unsigned char)pairs[i][0] && b == (unsigned char)pairs[i][1])
            return true;
    return (b >= 0x300 && b < 0x370) || b == IOTA || b == RING || a == APOSTROPHE ||
           (a >= 0x530 && a < 0x590 && b >= 0x530 && b < 0x590);
}

static void put_literal(reading *p, uint32_t c)
{
    const uint32_t folded = (p->flags & IGNORE_CASE) != 0 ? dc_charset_folded(p->t->u, c) : 0,
                   before = p->before;
    begin_atom(p);
    if ((p->flags & IGNORE_CASE) == 0) {
        put_char(p, c);
        return;
    }
    p->before = folded;
    if (before != 0 && folds_together(before, folded))
        refuse(p, "letters without case that one character stands for, like ss, st and fi, are not "
                  "known");
    if (c < 0x80 && !(c >= 'A' && c <= 'Z') && !(c >= 'a' && c <= 'z')) {
        put_char(p, c);
        return;
    }
    const unsigned sets = p->nset;
    dc_charset *set = new_set(p);
    dc_charset_add(set, c, c);
    put_class(p, set, false);
    p->before = folded;
    p->nset = sets;
}

/* What is written from a place on becomes a group. */
static void wrap(reading *p, size_t from)
{
    static const char open[] = "(?:";
    dc_text_puts(p->to, open);
    memmove(p->to->s + from + 3, p->to->s + from, p->to->n - 3 - from);
    memcpy(p->to->s + from, open, 3);
    dc_text_puts(p->to, ")");
    if (++p->wraps > MOST_WRAPS || p->to->n > MOST_TEXT)
        refuse(p, "it repeats repeats too often");
}

/* ---- characters by escapes ---------------------------------------------------------------------- */

static int digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : 99;
}

/* A number of at most so many digits; how many there were. */
static unsigned read_digits(reading *p, unsigned base, unsigned most, uint32_t *out)
{
    unsigned n = 0;
    for (*out = 0; n < most && p->at < p->s.n; n++, p->at++) {
        const unsigned d = (unsigned)digit(p->s.at[p->at]);
        if (d >= base)
            break;
        *out = *out * base + d;
    }
    return n;
}

static uint32_t checked_char(reading *p, uint32_t c, uint32_t most)
{
    if (c <= most && (c < 0xd800 || c >= 0xe000))
        return c;
    refuse(p, most < 0x80 ? "bytes by their numbers, above 7f, are not known"
                          : "there is no character of one of its numbers");
    return 0;
}

/* Behind \x, \u, \o and \ with digits, whose first character was taken. */
static uint32_t read_number(reading *p, char c)
{
    enum { ASCII = 0x7f, LAST = DC_CHARSET_CODES - 1 };
    uint32_t v;
    if (c == 'u') {
        if (read_digits(p, 16, 4, &v) < 4)
            refuse(p, "\\u needs four digits");
        return checked_char(p, v, LAST);
    }
    if ((c == 'x' || c == 'o') && take(p, "{")) {
        if (read_digits(p, c == 'x' ? 16 : 8, 8, &v) == 0 || !take(p, "}"))
            refuse(p, "\\x{ and \\o{ need the number of one character");
        return checked_char(p, v, LAST);
    }
    if (c == 'x') {
        if (read_digits(p, 16, 2, &v) == 0)
            refuse(p, "\\x needs digits");
        return checked_char(p, v, ASCII);
    }
    p->at--; /* octal */
    read_digits(p, 8, 3, &v);
    return checked_char(p, v, ASCII);
}

/* The character that a letter behind \ stands for; 0: for itself, or for something else. */
static uint32_t control(char c)
{
    return c == 'n'   ? '\n'
           : c == 't' ? '\t'
           : c == 'r' ? '\r'
           : c == 'f' ? '\f'
           : c == 'v' ? '\v'
           : c == 'a' ? 7
           : c == 'e' ? 0x1b
                      : 0;
}

/* What \w has by itself, and has not in a class: Oniguruma asks a table of its own for Latin-1. */
static void add_latin_words(dc_charset *set)
{
    dc_charset_add(set, 0xb2, 0xb3);
    dc_charset_add(set, 0xb9, 0xb9);
    dc_charset_add(set, 0xbc, 0xbe);
}

/* {...} behind \p or \P. */
static bool read_property(reading *p, bool negated, bool alone, dc_charset *set)
{
    static const dc_span word = {"word", 4};
    p->at++;
    negated ^= take(p, "^");
    const char *end = memchr(p->s.at + p->at, '}', p->s.n - p->at);
    const dc_span name = {p->s.at + p->at, end != NULL ? (size_t)(end - p->s.at) - p->at : 0};
    if (end == NULL || !dc_charset_name(p->t->u, set, name, false)) {
        refuse(p, "one of its properties (\\p) is not known");
        return false;
    }
    p->at += name.n + 1;
    if (alone && name.n == word.n && strncasecmp(name.at, word.at, word.n) == 0)
        add_latin_words(set);
    return negated;
}

static bool is_set(const reading *p, char c)
{
    return (c != '\0' && strchr("wWdDsShH", c) != NULL) ||
           ((c == 'p' || c == 'P') && follows(p, "{"));
}

/* Adds \w and its like, whose letter was taken; is it negated? `alone`: not in a class. */
static bool read_set(reading *p, char c, bool alone, dc_charset *set)
{
    static const dc_span word = {"word", 4}, digits = {"digit", 5}, space = {"space", 5},
                         hex = {"xdigit", 6};
    const char kind = (char)(c | 0x20);
    if (kind == 'p')
        return read_property(p, c == 'P', alone, set);
    dc_charset_name(p->t->u, set,
                    kind == 'w'   ? word
                    : kind == 'd' ? digits
                    : kind == 's' ? space
                                  : hex,
                    true);
    if (kind == 'w' && alone)
        add_latin_words(set);
    return c < 'a';
}

/* ---- classes ---------------------------------------------------------------------------------- */

/* A character of a class behind \; false: a set, which was added. */
static bool read_class_escape(reading *p, dc_charset *set, uint32_t *c)
{
    const uint32_t letter = next_char(p);
    const char l = letter < 0x80 ? (char)letter : '\0';
    if (is_set(p, l)) {
        const unsigned sets = p->nset;
        dc_charset *one = new_set(p);
        if (read_set(p, l, false, one))
            dc_charset_flip(one);
        dc_charset_join(set, one);
        p->nset = sets;
        return false;
    }
    if (l != '\0' && strchr("cCM", l) != NULL)
        refuse(p, "\\c, \\C- and \\M- are not known");
    const bool octal = l >= '0' && l <= '7';
    *c = l == 'b'                                           ? '\b'
         : control(l) != 0                                  ? control(l)
         : octal || (l != '\0' && strchr("xuo", l) != NULL) ? read_number(p, l)
                                                            : letter;
    return true;
}

/* [:name:] with [ at p->at; false: it is a class. */
static bool read_posix(reading *p, dc_charset *set)
{
    size_t end = p->at + 2;
    const bool negated = end < p->s.n && p->s.at[end] == '^';
    const size_t begin = end + negated;
    for (end = begin; end < p->s.n && p->s.at[end] >= 'a' && p->s.at[end] <= 'z';)
        end++;
    if (p->s.n - end < 2 || memcmp(p->s.at + end, ":]", 2) != 0)
        return false;
    const unsigned sets = p->nset;
    dc_charset *one = new_set(p);
    if (!dc_charset_name(p->t->u, one, (dc_span){p->s.at + begin, end - begin}, true))
        refuse(p, "one of its classes [:name:] is not known");
    if (negated)
        dc_charset_flip(one);
    dc_charset_join(set, one);
    p->nset = sets;
    p->at = end + 2;
    return true;
}

/* The end of a range that began with c, which is added. */
static void read_range(reading *p, dc_charset *set, uint32_t c)
{
    uint32_t last = 0;
    p->at++;
    if (follows(p, "[") || follows(p, "&&") || follows(p, "-")) {
        refuse(p, "a range in a class needs a character at its end");
        return;
    }
    if (take(p, "\\")) {
        if (!read_class_escape(p, set, &last))
            refuse(p, "a range in a class needs a character at its end");
    } else
        last = next_char(p);
    if (last < c)
        refuse(p, "a range in a class ends before it begins");
    else
        dc_charset_add(set, c, last);
}

/* Behind [, to behind its ]; true: it began with ^. */
static bool read_class(reading *p, dc_charset *all, int depth)
{
    const bool negated = take(p, "^");
    bool first = true, cut = false, after_set = false;
    if (depth >= MOST_CLASSES) {
        refuse(p, "it has more than 16 classes in each other");
        return false;
    }
    dc_charset *now = new_set(p);
    for (; more(p) && (first || !follows(p, "]")); first = false) {
        uint32_t c = 0;
        const bool had_set = after_set;
        after_set = false;
        dc_job_look();
        if (take(p, "&&")) {
            if (cut)
                dc_charset_meet(all, now);
            else
                *all = *now;
            cut = true;
            memset(now, 0, sizeof *now);
            continue;
        }
        if (follows(p, "[:") && read_posix(p, now)) {
            after_set = true;
            continue;
        }
        if (take(p, "[")) {
            const unsigned sets = p->nset;
            dc_charset *inner = new_set(p);
            if (read_class(p, inner, depth + 1))
                dc_charset_flip(inner);
            dc_charset_join(now, inner);
            p->nset = sets;
            after_set = true;
            continue;
        }
        if (take(p, "\\")) {
            if (!read_class_escape(p, now, &c)) {
                after_set = true;
                continue;
            }
        } else {
            const bool dash = follows(p, "-");
            c = next_char(p);
            if (dash && (follows(p, "-") || (had_set && !follows(p, "]"))))
                refuse(p, "a - in a class that may be a range or not is not known");
        }
        if (follows(p, "-") && p->s.n - p->at > 1 && p->s.at[p->at + 1] != ']')
            read_range(p, now, c);
        else
            dc_charset_add(now, c, c);
    }
    if (!take(p, "]"))
        refuse(p, "a class has no end");
    if (cut)
        dc_charset_meet(all, now);
    else
        *all = *now;
    return negated;
}

/* ---- groups, repeats ---------------------------------------------------------------------------- */

/* \b: between what \w is and what it is not. */
static void put_boundary(reading *p, bool negated)
{
    const unsigned sets = p->nset;
    dc_charset *word = new_set(p);
    const size_t from = p->to->n;
    read_set(p, 'w', true, word);
    put_set(p, word, false);
    dc_text *one = dc_job_text(p->job);
    dc_text_put(one, p->to->s + from, p->to->n - from);
    p->to->n = from;
    dc_text_printf(p->to,
                   negated ? "(?:(?<=%s)(?=%s)|(?<!%s)(?!%s))" : "(?:(?<=%s)(?!%s)|(?<!%s)(?=%s))",
                   one->s, one->s, one->s, one->s);
    dc_job_text_end(p->job, one);
    p->nset = sets;
    no_atom(p);
}

/* A name behind \k, with what is around it. */
static void read_name_of_group(reading *p)
{
    const char close = take(p, "<") ? '>' : take(p, "'") ? '\'' : '\0';
    const size_t from = p->at;
    while (p->at < p->s.n && is_name_char(p->s.at[p->at]))
        p->at++;
    if (close == '\0' || p->at == from || p->at >= p->s.n || p->s.at[p->at] != close ||
        digit(p->s.at[from]) < 10) {
        refuse(p, "\\k is known with a name of ASCII letters, digits and _ alone");
        return;
    }
    dc_text_printf(p->to, "\\k<%.*s>", (int)(p->at - from), p->s.at + from);
    p->named |= 2;
    p->at++;
}

static void read_reference(reading *p, char c)
{
    begin_atom(p);
    p->out->repeat = true;
    if ((p->flags & IGNORE_CASE) != 0)
        refuse(p, "what was matched before, without case, is not known");
    if (c == 'k') {
        read_name_of_group(p);
        return;
    }
    const unsigned n = (unsigned)(c - '0');
    p->highest = n > p->highest ? n : p->highest;
    dc_text_printf(p->to, "\\g{%u}", n);
    if (p->at < p->s.n && digit(p->s.at[p->at]) < 10)
        refuse(p, "a number of a group above 9 is not known");
}

static void read_escape(reading *p)
{
    const uint32_t letter = next_char(p);
    const char c = letter < 0x80 ? (char)letter : '\0';
    const unsigned sets = p->nset;
    if (is_set(p, c)) {
        dc_charset *set = new_set(p);
        const unsigned flags = p->flags;
        const bool negated = read_set(p, c, true, set);
        p->flags &= (c | 0x20) == 'p' || (c | 0x20) == 'h' ? ~0u : ~(unsigned)IGNORE_CASE;
        put_class(p, set, negated);
        p->flags = flags;
    } else if (c == 'N' || c == 'O') {
        dc_charset *set = new_set(p);
        if (c == 'N')
            dc_charset_add(set, '\n', '\n');
        begin_atom(p);
        put_set(p, set, true);
    } else if (c == 'R') {
        begin_atom(p);
        dc_text_puts(p->to, "(?>\\x{d}\\x{a}|[\\x{a}-\\x{d}\\x{85}\\x{2028}\\x{2029}])");
    } else if (c == 'b' || c == 'B') {
        put_boundary(p, c == 'B');
    } else if (c == 'A' || c == 'z' || c == 'G' || c == 'K') {
        dc_text_printf(p->to, "\\%c", c);
        p->out->whole = p->out->whole || c == 'G';
        no_atom(p);
    } else if (c == 'Z') {
        dc_text_puts(p->to, "(?=\\x{a}?\\z)");
        no_atom(p);
    } else if (c == 'k' || (c >= '1' && c <= '9')) {
        read_reference(p, c);
    } else if (c != '\0' && strchr("gXyYcCM", c) != NULL) {
        refuse(p, "\\g, \\X, \\y, \\Y, \\c, \\C- and \\M- are not known");
    } else if (c != '\0' && strchr("0xuo", c) != NULL) {
        put_literal(p, read_number(p, c));
    } else {
        put_literal(p, control(c) != 0 ? control(c) : letter);
    }
    p->nset = sets;
}

static void open_group(reading *p, const char *text, bool assertion)
{
    if (p->nlevel == MOST_LEVELS) {
        refuse(p, "it has more than 200 groups in each other");
        return;
    }
    p->level[p->nlevel++] = (level){.from = p->to->n, .flags = p->flags, .assertion = assertion};
    dc_text_puts(p->to, text);
    no_atom(p);
}

/* Letters of (?imx-imx. */
static void read_options(reading *p)
{
    unsigned flags = p->flags;
    bool on = true;
    for (; more(p) && !follows(p, ")") && !follows(p, ":"); p->at++) {
        const char c = p->s.at[p->at];
        const unsigned flag = c == 'i' ? IGNORE_CASE : c == 'm' ? DOT_ALL : c == 'x' ? EXTENDED : 0;
        if (c == '-')
            on = false;
        else if (flag == 0)
            refuse(p, "one of its groups (?...) is not known");
        flags = on ? flags | flag : flags & ~flag;
    }
    if (take(p, ":")) {
        open_group(p, "(?:", false);
    } else if (take(p, ")")) { /* to the end of the group around it */
        if (p->nlevel == 0 || p->level[p->nlevel - 1].extra >= MOST_LEVELS)
            refuse(p, "it has too many options");
        else
            p->level[p->nlevel - 1].extra++;
        dc_text_puts(p->to, "(?:");
        no_atom(p);
    } else
        refuse(p, "a group has no end");
    p->flags = flags;
}

/* (?<name> or (?'name', whose first three characters were taken. */
static void read_named_group(reading *p, char close)
{
    const size_t from = p->at;
    while (p->at < p->s.n && is_name_char(p->s.at[p->at]))
        p->at++;
    const size_t n = p->at - from;
    if (n == 0 || n > 32 || digit(p->s.at[from]) < 10 || p->at >= p->s.n ||
        p->s.at[p->at] != close) {
        refuse(p, "names of groups are known of at most 32 ASCII letters, digits and _");
        return;
    }
    open_group(p, "", false);
    dc_text_printf(p->to, "(?<%.*s>", (int)n, p->s.at + from);
    p->named |= 1;
    p->at++;
}

static void read_group(reading *p)
{
    static const struct {
        const char *open;
        bool assertion;
    } known[] = {{"(?:", false}, {"(?>", false}, {"(?=", true},
                 {"(?!", true},  {"(?<=", true}, {"(?<!", true}};
    if (take(p, "(?#")) {
        for (; more(p) && !follows(p, ")"); p->at++)
            p->at += follows(p, "\\");
        if (!take(p, ")"))
            refuse(p, "a comment has no end");
        return;
    }
    for (size_t i = 0; i < DC_COUNTOF(known); i++)
        if (take(p, known[i].open)) {
            open_group(p, known[i].open, known[i].assertion);
            return;
        }
    if (follows(p, "(*"))
        refuse(p, "verbs and calls, which begin with (*, are not known");
    else if (take(p, "(?<"))
        read_named_group(p, '>');
    else if (take(p, "(?'"))
        read_named_group(p, '\'');
    else if (take(p, "(?"))
        read_options(p);
    else {
        p->at++;
        p->groups++;
        open_group(p, "(", false);
    }
}

static void close_group(reading *p)
{
    if (p->nlevel <= 1) {
        refuse(p, "it has a ) without its (");
        return;
    }
    const level l = p->level[--p->nlevel];
    for (unsigned i = 0; i <= l.extra; i++)
        dc_text_puts(p->to, ")");
    p->at++;
    p->flags = l.flags;
    no_atom(p);
    p->atom = l.assertion ? NOTHING : l.from;
    p->repeated = false;
    p->wraps = 0;
}

/* {n,m} at p->at: *least *most, *most UINT32_MAX for none; `exact`: {n}. false: it is no repeat, and a { stands for itself. */
static bool read_interval(reading *p, uint32_t *least, uint32_t *most, bool *exact)
{
    const size_t begin = p->at++;
    const unsigned a = read_digits(p, 10, 6, least);
    *exact = !take(p, ",");
    const unsigned b = *exact ? 0 : read_digits(p, 10, 6, most);
    if (take(p, "}") && a + b > 0) {
        *most = *exact ? *least : b == 0 ? UINT32_MAX : *most;
        if (*least > *most || *least > 65535 || (*most > 65535 && *most != UINT32_MAX))
            refuse(p, "a repeat {n,m} has n above m, or above 65535");
        return true;
    }
    p->at = begin;
    return false;
}

/* false: what is there is no repeat. */
static bool read_repeat(reading *p)
{
    const char c = p->s.at[p->at];
    uint32_t least = 0, most = 0;
    const bool interval = c == '{';
    bool exact = false;
    if (interval && !read_interval(p, &least, &most, &exact))
        return false;
    p->at += !interval;
    if (p->atom == NOTHING) {
        refuse(p, "a repeat has nothing that it could be of");
        return true;
    }
    if (p->repeated)
        wrap(p, p->atom);
    p->repeated = true;
    p->before = 0;
    if (!interval)
        dc_text_printf(p->to, "%c", c);
    else if (most == UINT32_MAX)
        dc_text_printf(p->to, "{%u,}", least);
    else
        dc_text_printf(p->to, "{%u,%u}", least, most);
    if (!exact && take(p, "?"))
        dc_text_puts(p->to, "?");
    else if (!interval && take(p, "+"))
        dc_text_puts(p->to, "+");
    return true;
}

static bool skip_extended(reading *p)
{
    static const char blank[] = " \t\n\r\f";
    if ((p->flags & EXTENDED) == 0)
        return false;
    if (follows(p, "#")) {
        while (p->at < p->s.n && p->s.at[p->at] != '\n')
            p->at++;
        return true;
    }
    const bool is_blank = strchr(blank, p->s.at[p->at]) != NULL && p->s.at[p->at] != '\0';
    p->at += is_blank;
    return is_blank;
}

static void read_item(reading *p)
{
    const char c = p->s.at[p->at];
    const unsigned sets = p->nset;
    if (skip_extended(p) || (c != '\0' && strchr("*+?{", c) != NULL && read_repeat(p)))
        return;
    if (take(p, "\\")) {
        read_escape(p);
    } else if (c == '(') {
        read_group(p);
    } else if (c == ')') {
        close_group(p);
    } else if (take(p, "[")) {
        dc_charset *set = new_set(p);
        const bool negated = read_class(p, set, 0);
        put_class(p, set, negated);
    } else if (take(p, "|")) {
        dc_text_puts(p->to, "|");
        no_atom(p);
    } else if (take(p, "^")) { /* of each line but an empty last one */
        dc_text_puts(p->to, "(?:\\A|(?<=\\x{a})(?!\\z))");
        no_atom(p);
    } else if (take(p, "$")) {
        dc_text_puts(p->to, "(?=\\x{a}|\\z)");
        no_atom(p);
    } else if (take(p, ".")) {
        dc_charset *set = new_set(p);
        if ((p->flags & DOT_ALL) == 0)
            dc_charset_add(set, '\n', '\n');
        begin_atom(p);
        put_set(p, set, true);
    } else {
        put_literal(p, next_char(p));
    }
    p->nset = sets;
}

dc_regex_text dc_regex_translate(dc_tokenizer *t, dc_job *j, dc_span pattern, bool exact)
{
    dc_regex_text out = {.to = dc_job_text(j)};
    const dc_mark mark = dc_arena_mark(&j->scratch);
    reading p = {
        .t = t, .job = j, .out = &out, .to = out.to, .s = pattern, .atom = NOTHING, .exact = exact};
    p.nlevel = 1; /* the whole */
    while (more(&p))
        read_item(&p);
    if (p.nlevel > 1)
        refuse(&p, "a group has no end");
    for (unsigned i = 0; i < p.level[0].extra; i++)
        dc_text_puts(p.to, ")");
    if (p.highest > 0 && ((p.named & 1) != 0 || p.highest > p.groups))
        refuse(&p, "a number is of no group; beside groups with names none has a number");
    dc_arena_rewind(&j->scratch, mark);
    return out;
}
