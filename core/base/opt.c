#include "core/base/opt.h"

#include "core/base/digits.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool read_INT(const char *text, int64_t *field)
{
    int64_t v;
    if (dc_digits_signed(&text, NULL, INT64_MIN, INT64_MAX, &v) != DC_DIGITS_OK || *text != '\0')
        return false;
    *field = v;
    return true;
}

/* 1048576, 1024K, 1M, 1G, 1T. */
static bool read_SIZE(const char *text, int64_t *field)
{
    static const char unit[] = "KMGT";
    int64_t v;
    if (dc_digits_signed(&text, NULL, 0, INT64_MAX, &v) != DC_DIGITS_OK)
        return false;
    const char *u = *text != '\0' ? strchr(unit, *text) : NULL;
    if (*text != '\0' && (u == NULL || text[1] != '\0'))
        return false;
    for (const char *k = unit; u != NULL && k <= u; k++)
        if (!dc_mul_ok(v, 1024, &v))
            return false;
    *field = v;
    return true;
}

enum { NUMBERS = 1 << 8 };

/* "2", "nan", "nan,2": the number, and NUMBERS. */
static bool read_CHECK(const char *text, int64_t *field)
{
    const bool numbers = strncmp(text, "nan", 3) == 0 && (text[3] == ',' || text[3] == '\0');
    int64_t level = 0;
    if (numbers)
        text += text[3] == ',' ? 4 : 3;
    if ((*text != '\0' || !numbers) && !read_INT(text, &level))
        return false;
    if (level < 0 || level >= NUMBERS)
        level = NUMBERS - 1; /* no such level; the check of the settings reports it */
    *field = level | (numbers ? NUMBERS : 0);
    return true;
}

static bool read_TEXT(const char *text, char (*field)[256])
{
    if (strlen(text) >= sizeof *field)
        return false;
    strcpy(*field, text);
    return true;
}

static void set_INT(int64_t dflt, int64_t *field)
{
    *field = dflt;
}

static void set_CHECK(int64_t dflt, int64_t *field)
{
    *field = dflt;
}

static void set_SIZE(int64_t dflt, int64_t *field)
{
    *field = dflt;
}

static void set_TEXT(const char *dflt, char (*field)[256])
{
    strcpy(*field, dflt);
}

static const char *env_of(const char *name)
{
    return getenv(name);
}

/* Variables of other programs are taken if they fit, else ignored; a wrong one of ours is an error. */
static bool is_ours(const char *name)
{
    return strncmp(name, "DEEPC_", 6) == 0;
}

void dc_opts_init(dc_opts *o, const char **bad)
{
    const char *text;
    *bad = NULL;
    o->heap = NULL;
    o->stream = NULL;
#define OPT(id, env, kind, dflt, help)                                               \
    set_##kind(dflt, &o->id);                                                        \
    text = env_of(env);                                                              \
    if (text != NULL && *text != '\0' && !read_##kind(text, &o->id) && is_ours(env)) \
        *bad = env;
#include "core/base/opt.def"
    o->numbers = (o->check & NUMBERS) != 0;
    o->check &= NUMBERS - 1;
    o->flush = dc_opts_math(o, "ftz");
}

bool dc_opts_files(const dc_opts *o)
{
    return strcmp(o->allow, "compute") != 0;
}

/* How often `word` is between commas. */
static int count_word(const char *list, const char *word)
{
    const size_t size = strlen(word);
    int n = 0;
    for (const char *at = list; *at != '\0'; at += *at == ',') {
        const size_t len = strcspn(at, ",");
        n += len == size && memcmp(at, word, size) == 0;
        at += len;
    }
    return n;
}

bool dc_opts_math(const dc_opts *o, const char *word)
{
    return count_word(o->math, word) > 0;
}

bool dc_opts_math_known(const dc_opts *o)
{
    const int strict = count_word(o->math, "strict"), tf32 = count_word(o->math, "tf32"),
              ftz = count_word(o->math, "ftz");
    if (strict > 1 || tf32 > 1 || ftz > 1 || strict + tf32 > 1)
        return false;
    const size_t letters = (size_t)(strict * 6 + tf32 * 4 + ftz * 3),
                 words = (size_t)(strict + tf32 + ftz);
    return strlen(o->math) == letters + (words > 0 ? words - 1 : 0);
}

/* "l2=512K", or a word: each once. */
static bool read_part(const char *word, size_t n, dc_machine *out)
{
    static const char *const names[] = {"l1=", "l2=", "l3=", "cores="};
    int64_t *const field[] = {&out->l1, &out->l2, &out->l3, &out->cores};
    static const int64_t least[] = {1024, 1024, 0, 1},
                         most[] = {1 << 30, 1 << 30, INT64_C(1) << 40, 1024};
    char value[32];
    for (size_t i = 0; i < DC_COUNTOF(names); i++) {
        const size_t at = strlen(names[i]);
        if (n <= at || n - at >= sizeof value || strncmp(word, names[i], at) != 0)
            continue;
        snprintf(value, sizeof value, "%.*s", (int)(n - at), word + at);
        return *field[i] < 0 && (i < 3 ? read_SIZE(value, field[i]) : read_INT(value, field[i])) &&
               *field[i] >= least[i] && *field[i] <= most[i];
    }
    if (out->set[0] != '\0' || n >= sizeof out->set || memchr(word, '=', n) != NULL)
        return false;
    snprintf(out->set, sizeof out->set, "%.*s", (int)n, word);
    return n > 0;
}

bool dc_opts_machine(const dc_opts *o, dc_machine *out)
{
    *out = (dc_machine){-1, -1, -1, -1, ""};
    for (const char *at = o->machine; *at != '\0';) {
        const size_t n = strcspn(at, ",");
        if (!read_part(at, n, out) || (at[n] == ',' && at[n + 1] == '\0'))
            return false;
        at += n + (at[n] == ',');
    }
    return true;
}

bool dc_opts_compile_known(const dc_opts *o)
{
    static const char *const words[] = {"", "now", "cache", "process", "off"};
    for (size_t i = 0; i < DC_COUNTOF(words); i++)
        if (strcmp(o->compile, words[i]) == 0)
            return true;
    return false;
}

static const char wants_INT[] = "a whole number",
                  wants_SIZE[] = "a number of bytes, which may end in K, M, G or T",
                  wants_TEXT[] = "a text of at most 255 bytes",
                  wants_CHECK[] = "0, 1 or 2, nan, or nan and one of them: nan,1";

const char *dc_opts_wants(const char *name)
{
#define OPT(id, env, kind, dflt, help) \
    if (strcmp(name, env) == 0)        \
        return wants_##kind;
#include "core/base/opt.def"
    return "known";
}

const char *dc_opts_temporary(void)
{
    const char *folder = env_of("TMPDIR");
    return folder != NULL && *folder != '\0' ? folder : "/tmp";
}

const char *dc_opts_system(const char *name)
{
    const char *text = env_of(name);
    return text != NULL ? text : "";
}

static const char *show_INT(int64_t v, char *room, size_t size)
{
    snprintf(room, size, "%" PRId64, v);
    return room;
}

static const char *show_CHECK(int64_t v, char *room, size_t size)
{
    if ((v & NUMBERS) == 0)
        return show_INT(v, room, size);
    snprintf(room, size, v == NUMBERS ? "nan" : "nan,%" PRId64, v - NUMBERS);
    return room;
}

static const char *show_SIZE(int64_t v, char *room, size_t size)
{
    return show_INT(v, room, size);
}

static const char *show_TEXT(const char *v, char *room, size_t size)
{
    (void)room, (void)size;
    return v;
}

void dc_opts_each(const dc_opts *o,
                  void (*see)(void *ctx, const char *env, const char *dflt, const char *now,
                              const char *help),
                  void *ctx)
{
    char a[32], b[32];
    dc_opts shown = *o;
    shown.check |= o->numbers ? NUMBERS : 0;
#define OPT(id, env, kind, dflt, help) \
    see(ctx, env, show_##kind(dflt, a, sizeof a), show_##kind(shown.id, b, sizeof b), help);
#include "core/base/opt.def"
}
