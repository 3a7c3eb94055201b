/*
 * Schedules found by timing (jit/cache/tuned_schedules.h), and their text, which is what lies on disk:
 *
 *   schedules 1
 *   kernel 0123456789abcdef0123456789abcdef 52100 40300 moves 2
 *   split i 4
 *   vectorize i.i
 *   kernel 00112233445566778899aabbccddeeff 1200 1200 rules 0
 *
 * After the digest of a kernel: nanoseconds of a launch, with the rules' schedule and with this one.
 */
#include "jit/cache/tuned_schedules.h"

#include "core/base/digits.h"

#include <inttypes.h>
#include <string.h>

static const char heading[] = "schedules 1\n";
static const char *const kinds[] = {
    [DC_TUNED_NOTHING] = "nothing", [DC_TUNED_RULES] = "rules", [DC_TUNED_MOVES] = "moves"};
enum { MOST_MOVES = 4096 };

/* ---- lists ----------------------------------------------------------------------------------- */

static bool same_key(dc_cache_key a, dc_cache_key b)
{
    return a.word[0] == b.word[0] && a.word[1] == b.word[1];
}

/* The newest entry of the kernel, of any kind. */
static const dc_tuned *entry_of(const dc_tuned *list, dc_cache_key kernel)
{
    while (list != NULL && !same_key(list->kernel, kernel))
        list = list->older;
    return list;
}

const dc_tuned *dc_tuned_find(const dc_tuned *list, dc_cache_key kernel)
{
    const dc_tuned *e = entry_of(list, kernel);
    return e != NULL && e->kind != DC_TUNED_NOTHING ? e : NULL;
}

/* What an entry adds to the fingerprint, and what takes it out again. */
static uint64_t print_of(const dc_tuned *e)
{
    if (e == NULL || e->kind != DC_TUNED_MOVES)
        return 0;
    uint64_t h = e->kernel.word[0] ^ dc_hash_mix(e->kernel.word[1], e->nmove);
    for (uint32_t i = 0; i < e->nmove; i++) {
        const dc_cache_key move = dc_cache_key_of(e->move[i], strlen(e->move[i]));
        h = dc_hash_mix(h, move.word[0] ^ i);
    }
    return h;
}

const dc_tuned *dc_tuned_add(dc_arena *mem, const dc_tuned *list, const dc_tuned *entry)
{
    dc_tuned *e = DC_NEW(mem, dc_tuned);
    const char **move = DC_NEW_ARRAY(mem, const char *, entry->nmove);
    *e = *entry;
    for (uint32_t i = 0; i < e->nmove; i++)
        move[i] = dc_arena_strdup(mem, entry->move[i]);
    e->move = move;
    e->older = list;
    e->fingerprint = dc_tuned_fingerprint(list) ^ print_of(entry_of(list, e->kernel)) ^ print_of(e);
    return e;
}

/* ---- text ------------------------------------------------------------------------------------ */

static void print_entry(const dc_tuned *e, dc_text *out)
{
    dc_text_printf(out, "kernel %016" PRIx64 "%016" PRIx64 " %" PRIu64 " %" PRIu64 " %s %u\n",
                   e->kernel.word[0], e->kernel.word[1], e->rules_ns, e->best_ns, kinds[e->kind],
                   e->nmove);
    for (uint32_t i = 0; i < e->nmove; i++)
        dc_text_printf(out, "%s\n", e->move[i]);
}

/* `but`: kernels that it says something of, be it that nothing is known, are left out. */
static void print_list(const dc_tuned *list, const dc_tuned *but, dc_text *out)
{
    for (const dc_tuned *e = list; e != NULL; e = e->older)
        if (e->kind != DC_TUNED_NOTHING && entry_of(list, e->kernel) == e &&
            entry_of(but, e->kernel) == NULL)
            print_entry(e, out);
}

void dc_tuned_print(const dc_tuned *list, dc_text *out)
{
    dc_text_puts(out, heading);
    print_list(list, NULL, out);
}

/* A line without its end, copied; NULL where there is none. */
static const char *take_line(dc_arena *mem, const char **at, const char *end)
{
    const char *from = *at, *stop = from < end ? memchr(from, '\n', (size_t)(end - from)) : NULL;
    if (stop == NULL || memchr(from, '\0', (size_t)(stop - from)) != NULL)
        return NULL;
    char *line = dc_arena_alloc(mem, (size_t)(stop - from) + 1);
    memcpy(line, from, (size_t)(stop - from));
    line[stop - from] = '\0';
    *at = stop + 1;
    return line;
}

static bool take_key(const char **at, dc_cache_key *key)
{
    for (int i = 0; i < 2; i++) {
        const char *from = *at;
        if (memchr(from, '\0', 16) != NULL ||
            dc_digits_hex(at, from + 16, &key->word[i]) != DC_DIGITS_OK || *at != from + 16)
            return false;
    }
    return true;
}

/* A blank and a number. */
static bool take_number(const char **at, uint64_t most, uint64_t *out)
{
    return *(*at)++ == ' ' && dc_digits_unsigned(at, NULL, most, out) == DC_DIGITS_OK;
}

static bool parse_head(const char *line, dc_tuned *e)
{
    static const char word[] = "kernel ";
    const char *at = line + sizeof word - 1;
    uint64_t n;
    if (strncmp(line, word, sizeof word - 1) != 0 || !take_key(&at, &e->kernel) ||
        !take_number(&at, UINT64_MAX, &e->rules_ns) || !take_number(&at, UINT64_MAX, &e->best_ns))
        return false;
    e->kind = strncmp(at, " moves", 6) == 0 ? DC_TUNED_MOVES : DC_TUNED_RULES;
    if (e->kind == DC_TUNED_RULES && strncmp(at, " rules", 6) != 0)
        return false;
    at += 6;
    if (!take_number(&at, e->kind == DC_TUNED_MOVES ? MOST_MOVES : 0, &n) || *at != '\0')
        return false;
    e->nmove = (uint32_t)n;
    return true;
}

static bool parse_entry(dc_arena *mem, const char **at, const char *end, dc_tuned *e)
{
    const char *line = take_line(mem, at, end);
    *e = (dc_tuned){.kind = DC_TUNED_RULES};
    if (line == NULL || !parse_head(line, e))
        return false;
    const char **move = DC_NEW_ARRAY(mem, const char *, e->nmove);
    e->move = move;
    for (uint32_t i = 0; i < e->nmove; i++) {
        move[i] = take_line(mem, at, end);
        if (move[i] == NULL || move[i][0] == '\0')
            return false;
    }
    return true;
}

bool dc_tuned_parse(dc_arena *mem, const char *text, size_t n, const dc_tuned **list)
{
    const char *at = text + sizeof heading - 1, *end = text + n;
    const dc_tuned *all = *list;
    if (n < sizeof heading - 1 || memcmp(text, heading, sizeof heading - 1) != 0)
        return false;
    while (at < end) {
        dc_tuned e;
        if (!parse_entry(mem, &at, end, &e))
            return false;
        all = dc_tuned_add(mem, all, &e);
    }
    *list = all;
    return true;
}

/* ---- the store ------------------------------------------------------------------------------- */

static const dc_cache_maker no_toolchain; /* there is no compiler's work in it */

dc_tuned_store *dc_tuned_store_new(void)
{
    return dc_xalloc(sizeof(dc_tuned_store));
}

void dc_tuned_store_free(dc_tuned_store *s)
{
    if (s == NULL)
        return;
    dc_arena_free(&s->mem);
    dc_xfree(s);
}

/* What is on disk now, in any arena; NULL where there is nothing of use. */
static const dc_tuned *read_list(dc_tuned_store *s, dc_cache *cache, dc_job *j, dc_arena *mem)
{
    const void *text;
    size_t n;
    const dc_tuned *list = NULL;
    if (dc_cache_find_optional(cache, j, s->key, no_toolchain, &text, &n))
        dc_tuned_parse(mem, text, n, &list);
    return list;
}

void dc_tuned_store_open(dc_tuned_store *s, dc_cache *cache, dc_job *j, dc_cache_key key)
{
    s->key = key;
    s->kept = cache != NULL;
    if (s->kept)
        s->newest = read_list(s, cache, j, &s->mem);
    s->opened = true;
}

void dc_tuned_store_set(dc_tuned_store *s, dc_cache *cache, dc_job *j, const dc_tuned *list)
{
    if (s->kept && list != s->newest) {
        const dc_mark mark = dc_arena_mark(&j->scratch);
        dc_text *text = dc_job_text(j);
        dc_tuned_print(list, text);
        print_list(read_list(s, cache, j, &j->scratch), list, text);
        dc_cache_store(cache, j, s->key, no_toolchain, text->s, text->n);
        dc_job_text_end(j, text);
        dc_arena_rewind(&j->scratch, mark);
    }
    s->newest = list;
}
