/*
 * Sets of code points, and what Oniguruma calls them: properties, POSIX brackets, \w and its like, by the facts of unicode.h,
 * which are the package's own. Names are compared without case, spaces, - and _.
 */
#include "extras/llm/tokenizer/impl.h"

#include <string.h>

enum { WORDS = DC_CHARSET_CODES / 64, MOST_NAME = 32 };

void dc_charset_set(dc_charset *s, uint32_t from, uint32_t to, bool in)
{
    const uint64_t all = UINT64_MAX;
    for (uint32_t i = from / 64; i <= to / 64; i++) {
        const uint64_t word = (i == from / 64 ? all << from % 64 : all) &
                              (i == to / 64 ? all >> (63 - to % 64) : all);
        s->bit[i] = in ? s->bit[i] | word : s->bit[i] & ~word;
    }
}

void dc_charset_add(dc_charset *s, uint32_t from, uint32_t to)
{
    dc_charset_set(s, from, to, true);
}

void dc_charset_flip(dc_charset *s)
{
    for (uint32_t i = 0; i < WORDS; i++)
        s->bit[i] = ~s->bit[i];
}

void dc_charset_join(dc_charset *s, const dc_charset *other)
{
    for (uint32_t i = 0; i < WORDS; i++)
        s->bit[i] |= other->bit[i];
}

void dc_charset_meet(dc_charset *s, const dc_charset *other)
{
    for (uint32_t i = 0; i < WORDS; i++)
        s->bit[i] &= other->bit[i];
}

/* The first code point from c on that is in the set, or is not; DC_CHARSET_CODES: there is none. */
static uint32_t find(const dc_charset *s, uint32_t c, bool in)
{
    const uint64_t flip = in ? 0 : UINT64_MAX;
    for (uint32_t i = c / 64; i < WORDS; i++) {
        uint64_t word = s->bit[i] ^ flip;
        if (i == c / 64)
            word &= UINT64_MAX << c % 64;
        if (word != 0)
            return i * 64 + (uint32_t)__builtin_ctzll(word);
    }
    return DC_CHARSET_CODES;
}

enum { SURROGATES = 0xd800, BEHIND_SURROGATES = 0xe000 };

bool dc_charset_run(const dc_charset *s, uint32_t *from, uint32_t *to)
{
    uint32_t a = find(s, *to, true);
    if (a >= SURROGATES && a < BEHIND_SURROGATES)
        a = find(s, BEHIND_SURROGATES, true);
    if (a >= DC_CHARSET_CODES)
        return false;
    const uint32_t b = find(s, a, false);
    *from = a;
    *to = a < SURROGATES && b > SURROGATES ? SURROGATES : b;
    return true;
}

/* Of a row, is one of its flags there, or its category in the mask? */
static void add_rows(const dc_unicode *u, dc_charset *s, uint32_t categories, uint32_t flags)
{
    for (uint32_t i = 0; i < u->nrange; i++) {
        const uint32_t row = u->row[u->of[i]];
        if ((categories >> dc_unicode_category(row) & 1) != 0 || (row & flags) != 0)
            dc_charset_add(s, u->from[i],
                           i + 1 < u->nrange ? u->from[i + 1] - 1 : DC_CHARSET_CODES - 1);
    }
}

void dc_charset_categories(const dc_unicode *u, dc_charset *s, uint32_t categories)
{
    add_rows(u, s, categories, 0);
}

uint32_t dc_charset_within(const dc_unicode *u, const dc_charset *s)
{
    uint32_t within = (uint32_t)(1 << DC_CATEGORIES) - 1;
    for (uint32_t i = 0; i < u->nrange; i++) {
        const uint32_t bit = (uint32_t)1 << dc_unicode_category(u->row[u->of[i]]);
        const uint32_t end = i + 1 < u->nrange ? u->from[i + 1] : DC_CHARSET_CODES;
        uint32_t c = (within & bit) != 0 ? find(s, u->from[i], false) : end;
        if (c >= SURROGATES && c < BEHIND_SURROGATES)
            c = find(s, BEHIND_SURROGATES, false);
        if (c < end)
            within &= ~bit;
    }
    return within;
}

/* ---- cases ------------------------------------------------------------------------------------ */

/* Those whose lower case is not what they fold to. */
static const uint16_t folds[][2] = {
    {0xb5, 0x3bc},    {0x17f, 0x73},   {0x345, 0x3b9},  {0x3c2, 0x3c3},  {0x3d0, 0x3b2},
    {0x3d1, 0x3b8},   {0x3d5, 0x3c6},  {0x3d6, 0x3c0},  {0x3f0, 0x3ba},  {0x3f1, 0x3c1},
    {0x3f5, 0x3b5},   {0x1c80, 0x432}, {0x1c81, 0x434}, {0x1c82, 0x43e}, {0x1c83, 0x441},
    {0x1c84, 0x442},  {0x1c85, 0x442}, {0x1c86, 0x44a}, {0x1c87, 0x463}, {0x1c88, 0xa64b},
    {0x1e9b, 0x1e61}, {0x1fbe, 0x3b9}, {0x1fd3, 0x390}, {0x1fe3, 0x3b0}, {0xfb05, 0xfb06}};

/* Those that fold to several. */
static const uint16_t several[][2] = {
    {0xdf, 0xdf},     {0x130, 0x130},   {0x149, 0x149},   {0x1f0, 0x1f0},   {0x390, 0x390},
    {0x3b0, 0x3b0},   {0x587, 0x587},   {0x1e96, 0x1e9a}, {0x1e9e, 0x1e9e}, {0x1f50, 0x1f50},
    {0x1f52, 0x1f52}, {0x1f54, 0x1f54}, {0x1f56, 0x1f56}, {0x1f80, 0x1faf}, {0x1fb2, 0x1fb4},
    {0x1fb6, 0x1fb7}, {0x1fbc, 0x1fbc}, {0x1fc2, 0x1fc4}, {0x1fc6, 0x1fc7}, {0x1fcc, 0x1fcc},
    {0x1fd2, 0x1fd3}, {0x1fd6, 0x1fd7}, {0x1fe2, 0x1fe4}, {0x1fe6, 0x1fe7}, {0x1ff2, 0x1ff4},
    {0x1ff6, 0x1ff7}, {0x1ffc, 0x1ffc}, {0xfb00, 0xfb06}, {0xfb13, 0xfb17}};

/* Edge i of the cases: from a code point to what it folds to. Lower cases are of a later Unicode than Oniguruma. */
static bool edge(const dc_unicode *u, uint32_t i, uint32_t *from, uint32_t *to)
{
    if (i < DC_COUNTOF(folds)) {
        *from = folds[i][0];
        *to = folds[i][1];
        return true;
    }
    i -= DC_COUNTOF(folds);
    if (i >= u->nlower)
        return false;
    *from = u->upper[i];
    *to = dc_unicode_category(dc_unicode_row(u, *from)) != DC_CAT_CN ? u->lower[i] : *from;
    return true;
}

uint32_t dc_charset_folded(const dc_unicode *u, uint32_t c)
{
    for (size_t i = 0; i < DC_COUNTOF(folds); i++)
        if (folds[i][0] == c)
            return folds[i][1];
    return dc_unicode_category(dc_unicode_row(u, c)) != DC_CAT_CN ? dc_unicode_lower(u, c) : c;
}

void dc_charset_fold(const dc_unicode *u, dc_charset *s)
{
    uint32_t from, to;
    for (uint32_t i = 0; edge(u, i, &from, &to); i++)
        if (dc_charset_has(s, from))
            dc_charset_add(s, to, to);
    for (uint32_t i = 0; edge(u, i, &from, &to); i++)
        if (dc_charset_has(s, to))
            dc_charset_add(s, from, from);
}

bool dc_charset_folds_to_several(const dc_charset *s)
{
    for (size_t i = 0; i < DC_COUNTOF(several); i++)
        for (uint32_t c = several[i][0]; c <= several[i][1]; c++)
            if (dc_charset_has(s, c))
                return true;
    return false;
}

/* ---- names ------------------------------------------------------------------------------------ */

#define CAT(name) ((uint32_t)1 << DC_CAT_##name)
enum {
    LETTERS = CAT(LU) | CAT(LL) | CAT(LT) | CAT(LM) | CAT(LO),
    MARKS = CAT(MN) | CAT(MC) | CAT(ME),
    NUMBERS = CAT(ND) | CAT(NL) | CAT(NO),
    BLANKS = CAT(ZS) | CAT(ZL) | CAT(ZP),
    PUNCTUATION = CAT(PC) | CAT(PD) | CAT(PS) | CAT(PE) | CAT(PI) | CAT(PF) | CAT(PO),
    SYMBOLS = CAT(SM) | CAT(SC) | CAT(SK) | CAT(SO),
    OTHERS = CAT(CC) | CAT(CF) | CAT(CS) | CAT(CO) | CAT(CN),
    SEEN = LETTERS | MARKS | NUMBERS | PUNCTUATION | SYMBOLS | CAT(CF) | CAT(CO)
};

typedef struct named {
    const char *name;
    uint32_t categories, flags;
    uint32_t from, to; /* besides, where to is not 0 */
} named;

static const named names[] = {
    {.name = "any", .to = DC_CHARSET_CODES - 1},
    {.name = "ascii", .to = 0x7f},
    {"assigned", SEEN | BLANKS | CAT(CC), 0, 0, 0},
    {"alpha", 0, DC_UC_ALPHA, 0, 0},
    {"alphabetic", 0, DC_UC_ALPHA, 0, 0},
    {"alnum", CAT(ND), DC_UC_ALPHA, 0, 0},
    {"word", LETTERS | MARKS | CAT(ND) | CAT(NL) | CAT(PC), DC_UC_ALPHA, 0, 0},
    {"upper", 0, DC_UC_UPPERCASE, 0, 0},
    {"uppercase", 0, DC_UC_UPPERCASE, 0, 0},
    {"lower", 0, DC_UC_LOWERCASE, 0, 0},
    {"lowercase", 0, DC_UC_LOWERCASE, 0, 0},
    {"space", 0, DC_UC_SPACE, 0, 0},
    {"whitespace", 0, DC_UC_SPACE, 0, 0},
    {"blank", CAT(ZS), 0, '\t', '\t'},
    {"cntrl", CAT(CC), 0, 0, 0},
    {"digit", CAT(ND), 0, 0, 0},
    {"graph", SEEN, 0, 0, 0},
    {"print", SEEN | CAT(ZS), 0, 0, 0},
    {"punct", PUNCTUATION, 0, 0, 0},
    {"posixpunct", PUNCTUATION | SYMBOLS, 0, 0, 0},
    {"l", LETTERS, 0, 0, 0},
    {"letter", LETTERS, 0, 0, 0},
    {"lc", CAT(LU) | CAT(LL) | CAT(LT), 0, 0, 0},
    {"casedletter", CAT(LU) | CAT(LL) | CAT(LT), 0, 0, 0},
    {"m", MARKS, 0, 0, 0},
    {"mark", MARKS, 0, 0, 0},
    {"combiningmark", MARKS, 0, 0, 0},
    {"n", NUMBERS, 0, 0, 0},
    {"number", NUMBERS, 0, 0, 0},
    {"z", BLANKS, 0, 0, 0},
    {"separator", BLANKS, 0, 0, 0},
    {"p", PUNCTUATION, 0, 0, 0},
    {"punctuation", PUNCTUATION, 0, 0, 0},
    {"s", SYMBOLS, 0, 0, 0},
    {"symbol", SYMBOLS, 0, 0, 0},
    {"c", OTHERS, 0, 0, 0},
    {"other", OTHERS, 0, 0, 0},
};

/* By dc_category. */
static const char *const categories[DC_CATEGORIES][2] = {{"cn", "unassigned"},
                                                         {"lu", "uppercaseletter"},
                                                         {"ll", "lowercaseletter"},
                                                         {"lt", "titlecaseletter"},
                                                         {"lm", "modifierletter"},
                                                         {"lo", "otherletter"},
                                                         {"mn", "nonspacingmark"},
                                                         {"mc", "spacingmark"},
                                                         {"me", "enclosingmark"},
                                                         {"nd", "decimalnumber"},
                                                         {"nl", "letternumber"},
                                                         {"no", "othernumber"},
                                                         {"zs", "spaceseparator"},
                                                         {"zl", "lineseparator"},
                                                         {"zp", "paragraphseparator"},
                                                         {"cc", "control"},
                                                         {"cf", "format"},
                                                         {"cs", "surrogate"},
                                                         {"co", "privateuse"},
                                                         {"pc", "connectorpunctuation"},
                                                         {"pd", "dashpunctuation"},
                                                         {"ps", "openpunctuation"},
                                                         {"pe", "closepunctuation"},
                                                         {"pi", "initialpunctuation"},
                                                         {"pf", "finalpunctuation"},
                                                         {"po", "otherpunctuation"},
                                                         {"sm", "mathsymbol"},
                                                         {"sc", "currencysymbol"},
                                                         {"sk", "modifiersymbol"},
                                                         {"so", "othersymbol"}};

/* In the order of SCRIPTS in scripts/unicode.py. */
static const char *const scripts[] = {
    "arabic",   "armenian",   "bengali",  "bopomofo",  "cherokee",  "common",   "coptic",
    "cyrillic", "devanagari", "ethiopic", "georgian",  "greek",     "gujarati", "gurmukhi",
    "han",      "hangul",     "hebrew",   "hiragana",  "inherited", "kannada",  "katakana",
    "khmer",    "lao",        "latin",    "malayalam", "mongolian", "myanmar",  "oriya",
    "sinhala",  "syriac",     "tamil",    "telugu",    "thaana",    "thai",     "tibetan"};

static bool add_script(const dc_unicode *u, dc_charset *s, const char *name)
{
    for (uint32_t k = 0; k < DC_COUNTOF(scripts); k++) {
        if (strcmp(scripts[k], name) != 0)
            continue;
        for (uint32_t i = 0; i < u->nscript; i++)
            if (u->script[i] == k + 1)
                dc_charset_add(s, u->script_from[i],
                               i + 1 < u->nscript ? u->script_from[i + 1] - 1
                                                  : DC_CHARSET_CODES - 1);
        return true;
    }
    return false;
}

bool dc_charset_name(const dc_unicode *u, dc_charset *s, dc_span text, bool posix)
{
    char name[MOST_NAME];
    size_t n = 0;
    for (size_t i = 0; i < text.n; i++) {
        const char c = text.at[i];
        if (c == ' ' || c == '-' || c == '_')
            continue;
        if (n + 1 >= sizeof name || (unsigned char)c >= 0x80)
            return false;
        name[n++] = c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
    }
    name[n] = '\0';
    if (strcmp(name, "xdigit") == 0) {
        dc_charset_add(s, '0', '9');
        dc_charset_add(s, 'A', 'F');
        dc_charset_add(s, 'a', 'f');
        return true;
    }
    const char *wanted = posix && strcmp(name, "punct") == 0 ? "posixpunct" : name;
    for (size_t i = 0; i < DC_COUNTOF(names); i++) {
        if (strcmp(names[i].name, wanted) != 0)
            continue;
        add_rows(u, s, names[i].categories, names[i].flags);
        if (names[i].to != 0)
            dc_charset_add(s, names[i].from, names[i].to);
        return true;
    }
    for (uint32_t k = 0; k < DC_CATEGORIES; k++)
        if (strcmp(categories[k][0], wanted) == 0 || strcmp(categories[k][1], wanted) == 0) {
            add_rows(u, s, (uint32_t)1 << k, 0);
            return true;
        }
    return add_script(u, s, wanted);
}
