/*
 * Regular expressions by libpcre2, opened when one is met. Both the pattern and the text are of others, and a pattern may
 * take any time for a text. So PCRE2 is never asked about a text in one go:
 *
 *   It is given a part of the text, and asked to say where it came to the end of it (PARTIAL_HARD), in which case what is
 *   behind may matter. Every other answer holds for the whole text.
 *   At first the part is short, and so is what PCRE2 may do with it: machine code, where there is any, with a small limit
 *   of steps, which cannot be ended meanwhile. All that usual texts have is found so.
 *   Where that is not enough, a second form of the pattern is used, which calls us back at each of its items, on parts
 *   that grow. The call looks at the job and counts work, of which there is so much for each byte of a text.
 *
 * Without machine code PCRE2 interprets both forms, and does not say where it came to the end of a text that is not all
 * UTF-8. It gets no bytes that are none then.
 *
 * What PCRE2 says of places is read by read_places alone, which refuses what is out of order.
 */
#include "core/base/path.h"
#include "extras/llm/tokenizer/impl.h"

#include <dlfcn.h>
#include <string.h>

enum {
    PART = 256,             /* bytes of text for machine code, */
    STEPS = 256,            /* and steps from each place of it */
    LONG_PART = 1024,       /* bytes for the other form, at first */
    GROWTH = 4,             /* and how many times as many then */
    MOST_PATTERN = 1 << 15, /* bytes of a pattern */
    MOST_KIB = 1 << 15,     /* memory of one match */
    BYTES_A_WORK = 16       /* that count as one call */
};

/* What is used of libpcre2-8.so.0, whose numbers and functions are an ABI. */
enum {
    PCRE2_AUTO_CALLOUT = 0x00000004,
    PCRE2_UTF = 0x00080000,
    PCRE2_NEVER_BACKSLASH_C = 0x00100000,
    PCRE2_MATCH_INVALID_UTF = 0x04000000,
    PCRE2_NOTEOL = 0x00000002,
    PCRE2_NO_JIT = 0x00002000,
    PCRE2_PARTIAL_HARD = 0x00000020,
    PCRE2_JIT_COMPLETE = 1,
    PCRE2_JIT_PARTIAL_HARD = 4,
    PCRE2_NOMATCH = -1,
    PCRE2_PARTIAL = -2,
    PCRE2_CALLOUT = -37,
    PCRE2_JIT_STACKLIMIT = -46,
    PCRE2_HEAPLIMIT = -63
};

typedef struct pcre_block { /* the beginning of a pcre2_callout_block */
    uint32_t version, number, capture_top, capture_last;
    size_t *places;
    const unsigned char *mark, *subject;
    size_t length, start, at;
} pcre_block;

/* Code points from here on, to the next run. */
typedef struct category_run {
    uint32_t from, category;
} category_run;

typedef struct pcre_lib {
    void *handle, *stack;      /* stack: of machine code that calls back; NULL: there is none yet */
    DC_VEC(category_run) runs; /* its categories; n = 0: not asked yet */
    const dc_charset *odd;     /* characters of which they are not the package's */
    bool odd_start[0x1000];    /* these begin with such two bytes */
    void *(*compile)(const unsigned char *, size_t, uint32_t, int *, size_t *, void *);
    int (*jit)(void *code, uint32_t options);
    void *(*make)(const void *code, void *general);
    void *(*make_context)(void *general);
    int (*set_steps)(void *context, uint32_t most);
    int (*set_heap)(void *context, uint32_t kib);
    int (*set_call)(void *context, int (*call)(pcre_block *, void *), void *arg);
    void *(*make_stack)(size_t least, size_t most, void *general);
    void (*set_stack)(void *context, void *callback, void *stack);
    int (*match)(const void *code, const unsigned char *, size_t, size_t, uint32_t, void *data,
                 void *context);
    size_t *(*places)(void *data);
    int (*message)(int code, unsigned char *, size_t);
    void (*free_code)(void *);
    void (*free_data)(void *);
    void (*free_context)(void *);
    void (*free_stack)(void *);
} pcre_lib;

/* A form of a pattern. */
typedef struct form {
    void *code, *data, *context;
    const size_t *place; /* the data's */
    bool compiled;       /* to machine code */
} form;

/* The two of a pattern. */
typedef struct forms {
    form quick, slow;
} forms;

struct dc_regex {
    struct dc_regex *next; /* of the tokenizer's */
    pcre_lib *lib;
    dc_span text;
    forms plain, exact; /* exact: compiled when it is needed */
    const forms *now;   /* for the text that is looked through */
    bool categories; /* it has some by their names, so that plain is not exact for odd characters */
    bool whole;      /* where a search begins matters: no part is searched by itself */
    bool repeat;     /* it compares with what was matched before, which counts as no movement */
    dc_tokenizer *of;
    size_t last, part; /* of a match that calls back: where it was, the bytes that it has */
};

static bool find(const pcre_lib *c, const char *symbol, void *at)
{
    void *found = dlsym(c->handle, symbol);
    memcpy(at, &found, sizeof found);
    return found != NULL;
}

static dc_status open_library(dc_tokenizer *t, dc_job *j, const char *name)
{
    pcre_lib *c = DC_NEW(&t->keep, pcre_lib);
    c->handle = dlopen("libpcre2-8.so.0", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (c->handle == NULL)
        return dc_path_fail(
            j, DC_ERR_FILE, name,
            "cuts texts by a regular expression, which needs PCRE2 (libpcre2-8.so.0; Debian: "
            "apt-get install libpcre2-8-0)");
    if (!find(c, "pcre2_compile_8", &c->compile) || !find(c, "pcre2_jit_compile_8", &c->jit) ||
        !find(c, "pcre2_match_data_create_from_pattern_8", &c->make) ||
        !find(c, "pcre2_match_context_create_8", &c->make_context) ||
        !find(c, "pcre2_set_match_limit_8", &c->set_steps) ||
        !find(c, "pcre2_set_heap_limit_8", &c->set_heap) ||
        !find(c, "pcre2_set_callout_8", &c->set_call) || !find(c, "pcre2_match_8", &c->match) ||
        !find(c, "pcre2_get_ovector_pointer_8", &c->places) ||
        !find(c, "pcre2_get_error_message_8", &c->message) ||
        !find(c, "pcre2_code_free_8", &c->free_code) ||
        !find(c, "pcre2_match_data_free_8", &c->free_data) ||
        !find(c, "pcre2_match_context_free_8", &c->free_context) ||
        !find(c, "pcre2_jit_stack_create_8", &c->make_stack) ||
        !find(c, "pcre2_jit_stack_assign_8", &c->set_stack) ||
        !find(c, "pcre2_jit_stack_free_8", &c->free_stack))
        return dc_path_fail(j, DC_ERR_FILE, name, "libpcre2-8.so.0 is too old");
    t->regex_library = c;
    return DC_OK;
}

/* ---- the pattern ------------------------------------------------------------------------------ */

static dc_status fail_pattern(dc_job *j, const char *name, const struct dc_regex *r,
                              const char *why)
{
    return dc_path_fail(j, DC_ERR_FORMAT, name, "the regular expression '%.*s': %s",
                        (int)(r->text.n < 100 ? r->text.n : 100), r->text.at, why);
}

static dc_status compile(dc_job *j, const char *name, struct dc_regex *r, dc_span text,
                         uint32_t options, form *out)
{
    const pcre_lib *c = r->lib;
    int why = 0;
    size_t where = 0;
    out->code = c->compile((const unsigned char *)text.at, text.n,
                           options | PCRE2_UTF | PCRE2_NEVER_BACKSLASH_C | PCRE2_MATCH_INVALID_UTF,
                           &why, &where, NULL);
    if (out->code == NULL) {
        unsigned char words[128] = "";
        c->message(why, words, sizeof words - 1);
        return fail_pattern(j, name, r, (const char *)words);
    }
    out->data = c->make(out->code, NULL);
    out->context = c->make_context(NULL);
    if (out->data == NULL || out->context == NULL)
        return dc_fail(j, DC_ERR_NOMEM, NULL);
    out->place = c->places(out->data);
    c->set_heap(out->context, MOST_KIB);
    return DC_OK;
}

static int called(pcre_block *b, void *arg);

static void to_machine_code(const pcre_lib *c, form *f)
{
    f->compiled = c->jit(f->code, PCRE2_JIT_COMPLETE | PCRE2_JIT_PARTIAL_HARD) == 0;
}

static dc_status ask_categories(dc_tokenizer *t, dc_job *j);

static dc_status compile_forms(dc_job *j, const char *name, struct dc_regex *r, dc_span text,
                               forms *out)
{
    pcre_lib *c = r->lib;
    DC_TRY(compile(j, name, r, text, 0, &out->quick));
    DC_TRY(compile(j, name, r, text, PCRE2_AUTO_CALLOUT, &out->slow));
    c->set_steps(out->quick.context, STEPS);
    c->set_steps(out->slow.context, UINT32_MAX); /* calls count instead */
    c->set_call(out->slow.context, called, r);
    to_machine_code(c, &out->quick);
    to_machine_code(c, &out->slow);
    if (c->stack == NULL && out->slow.compiled)
        c->stack = c->make_stack(1 << 15, (size_t)MOST_KIB << 10, NULL);
    out->slow.compiled = out->slow.compiled && c->stack != NULL;
    if (out->slow.compiled)
        c->set_stack(out->slow.context, NULL, c->stack);
    return DC_OK;
}

dc_status dc_regex_new(dc_tokenizer *t, dc_job *j, const char *name, dc_span text,
                       struct dc_regex **out)
{
    if (t->regex_library == NULL)
        DC_TRY(open_library(t, j, name));
    struct dc_regex *r = DC_NEW(&t->keep, struct dc_regex);
    *r = (struct dc_regex){.next = t->regexes, .lib = t->regex_library, .text = text, .of = t};
    t->regexes = r;
    if (text.n > MOST_PATTERN)
        return fail_pattern(j, name, r, "it has more than 32768 bytes");
    const dc_regex_text plain = dc_regex_translate(t, j, text, false);
    if (plain.wrong != NULL)
        return fail_pattern(j, name, r, plain.wrong);
    r->whole = plain.whole;
    r->repeat = plain.repeat;
    DC_TRY(compile_forms(j, name, r, (dc_span){plain.to->s, plain.to->n}, &r->plain));
    r->categories = plain.categories;
    if (plain.categories)
        DC_TRY(ask_categories(t, j));
    dc_job_text_end(j, plain.to);
    *out = r;
    return DC_OK;
}

static void close_form(const pcre_lib *c, const form *f)
{
    if (f->data != NULL)
        c->free_data(f->data);
    if (f->context != NULL)
        c->free_context(f->context);
    if (f->code != NULL)
        c->free_code(f->code);
}

void dc_regex_close(dc_tokenizer *t)
{
    const pcre_lib *c = t->regex_library;
    for (struct dc_regex *r = t->regexes; r != NULL; r = r->next) {
        close_form(c, &r->plain.quick);
        close_form(c, &r->plain.slow);
        close_form(c, &r->exact.quick);
        close_form(c, &r->exact.slow);
    }
    if (c != NULL && c->stack != NULL)
        c->free_stack(c->stack);
}

/* ---- categories --------------------------------------------------------------------------------- */

/* Where versions of Unicode differ: the planes of characters, and the tags. */
enum { CHUNK = 0x1000, PLANES = 0x40000, TAGS = 0xe0000, UNKNOWN = DC_CATEGORIES };

static bool read_places(const struct dc_regex *r, const form *f, size_t least, size_t most,
                        size_t *from, size_t *to);

static void add_run(dc_tokenizer *t, pcre_lib *c, uint32_t from, uint32_t category)
{
    if (c->runs.n == 0 || c->runs.at[c->runs.n - 1].category != category)
        DC_PUSH_IN(&t->keep, c->runs, ((category_run){from, category}));
}

/* The runs of so many code points. */
static dc_status ask_chunk(dc_tokenizer *t, const struct dc_regex *r, uint32_t first, uint32_t n,
                           char *text)
{
    size_t bytes = 0, from, to;
    for (uint32_t c = first; c < first + n; c++)
        bytes += dc_utf8_put(c, text + bytes);
    for (size_t at = 0; at < bytes; at = to) {
        size_t length;
        const int code = r->lib->match(r->plain.quick.code, (const unsigned char *)text, bytes, at,
                                       r->plain.quick.compiled ? 0 : PCRE2_NO_JIT,
                                       r->plain.quick.data, r->plain.quick.context);
        if (!read_places(r, &r->plain.quick, at, bytes, &from, &to))
            return t->job->err.status;
        if (code < 2 || code > DC_CATEGORIES + 1 || from != at || to == from)
            return dc_failf(t->job, DC_ERR_FORMAT_TEXT, NULL, "PCRE2 knows no category of U+%04X",
                            dc_utf8_next(text + at, bytes - at, &length));
        add_run(t, r->lib, dc_utf8_next(text + at, bytes - at, &length), (uint32_t)code - 2);
    }
    return DC_OK;
}

/* What the first two bytes of a character are in a table. */
static inline size_t start_of(const char *s)
{
    return ((unsigned char)s[0] & 0x3fu) << 6 | ((unsigned char)s[1] & 0x3fu);
}

/* Runs of both are gone through at once. */
static void find_odd(dc_tokenizer *t, pcre_lib *c)
{
    const dc_unicode *u = t->u;
    dc_charset *odd = DC_NEW(&t->keep, dc_charset);
    memset(odd, 0, sizeof *odd);
    for (uint32_t i = 0, k = 0; i + 1 < c->runs.n && k < u->nrange;) {
        const uint32_t end = c->runs.at[i + 1].from,
                       other = k + 1 < u->nrange ? u->from[k + 1] : DC_CHARSET_CODES,
                       from = c->runs.at[i].from > u->from[k] ? c->runs.at[i].from : u->from[k];
        if (c->runs.at[i].category != UNKNOWN &&
            dc_unicode_category(u->row[u->of[k]]) != c->runs.at[i].category)
            dc_charset_add(odd, from, (end < other ? end : other) - 1);
        i += end <= other;
        k += other <= end;
    }
    for (uint32_t from, to = 0x80; dc_charset_run(odd, &from, &to);)
        for (uint32_t x = from; x < to; x++) {
            char s[4];
            dc_utf8_put(x, s);
            c->odd_start[start_of(s)] = true;
        }
    c->odd = odd;
}

/*
 * PCRE2 follows another version of Unicode than the package. So it is asked, once for a tokenizer, and one character is not
 * asked for: what a category has is looked at here, as far as characters may be added in the next years.
 */
static dc_status ask_categories(dc_tokenizer *t, dc_job *j)
{
    static const char names[] = "CnLuLlLtLmLoMnMcMeNdNlNoZsZlZpCcCfCsCoPcPdPsPePiPfPoSmScSkSo";
    pcre_lib *c = t->regex_library;
    if (c->runs.n > 0)
        return DC_OK;
    dc_job *before = t->job;
    t->job = j; /* for what read_places says */
    struct dc_regex *r = DC_NEW(&t->keep, struct dc_regex);
    *r = (struct dc_regex){.next = t->regexes, .lib = c, .text = {"\\p{...}", 7}, .of = t};
    t->regexes = r;
    dc_text *pattern = dc_job_text(j);
    for (int k = 0; k < DC_CATEGORIES; k++)
        dc_text_printf(pattern, "%s(\\p{%.2s}+)", k > 0 ? "|" : "", names + 2 * k);
    DC_TRY(compile(j, "PCRE2", r, (dc_span){pattern->s, pattern->n}, 0, &r->plain.quick));
    dc_job_text_end(j, pattern);
    to_machine_code(c, &r->plain.quick);
    const dc_mark mark = dc_arena_mark(&j->scratch);
    char *text = dc_arena_alloc(&j->scratch, (size_t)CHUNK * 4);
    for (uint32_t first = 0; first <= TAGS; first = first == PLANES ? TAGS : first + CHUNK) {
        dc_job_look();
        if (first == PLANES)
            add_run(t, c, PLANES, UNKNOWN);
        else
            DC_TRY(ask_chunk(t, r, first, first == 0xd000 ? 0x800 : CHUNK, text));
    }
    add_run(t, c, TAGS + CHUNK, UNKNOWN);
    dc_arena_rewind(&j->scratch, mark);
    find_odd(t, c);
    t->job = before;
    return DC_OK;
}

void dc_regex_categories(dc_tokenizer *t, uint32_t mask, dc_charset *out)
{
    const pcre_lib *c = t->regex_library;
    dc_charset_categories(t->u, out, mask); /* where it was not asked */
    for (uint32_t i = 0; i < c->runs.n; i++) {
        const uint32_t end = i + 1 < c->runs.n ? c->runs.at[i + 1].from : DC_CHARSET_CODES;
        if (c->runs.at[i].category != UNKNOWN)
            dc_charset_set(out, c->runs.at[i].from, end - 1,
                           (mask >> c->runs.at[i].category & 1) != 0);
    }
}

/* ---- matching --------------------------------------------------------------------------------- */

uint64_t dc_regex_work(size_t bytes)
{
    enum { BASE = 1 << 24, A_BYTE = 256 };
    return BASE + (uint64_t)A_BYTE * bytes;
}

static dc_status refuse_places(const struct dc_regex *r, size_t from, size_t to, size_t least,
                               size_t most)
{
    return dc_failf(
        r->of->job, DC_ERR_FORMAT_TEXT, NULL,
        "the regular expression '%.*s' of the tokenizer has a match from byte %zu to %zu of a text "
        "in which it is to be looked for from %zu to %zu",
        (int)(r->text.n < 100 ? r->text.n : 100), r->text.at, from, to, least, most);
}

/* The one place where places are read: of a match, or of one that came to the end of the text. */
static bool read_places(const struct dc_regex *r, const form *f, size_t least, size_t most,
                        size_t *from, size_t *to)
{
    *from = f->place[0];
    *to = f->place[1];
    return (*from >= least && *from <= *to && *to <= most) ||
           refuse_places(r, *from, *to, least, most) == DC_OK;
}

/* So many bytes behind a place, or fewer: no character is cut. */
static size_t end_of(const char *s, size_t n, size_t at, size_t part)
{
    if (n - at <= part)
        return n;
    const size_t end = at + part;
    size_t back = 0;
    while (((unsigned char)s[end - back] & 0xc0) == 0x80 && back < 3)
        back++;
    return end - back;
}

static bool is_char(const char *s, size_t n, size_t at, size_t *length)
{
    return dc_utf8_next(s + at, n - at, length) < DC_RAW_BYTE;
}

/* Where bytes that are no UTF-8 begin. */
static size_t end_of_chars(const char *s, size_t at, size_t end)
{
    size_t length;
    while (at < end && is_char(s, end, at, &length))
        at += length;
    return at;
}

/* A part of a text, and what is found in it. */
typedef struct part {
    const char *s;
    size_t n, at, end; /* looked at from at to end */
    size_t from, to;
} part;

typedef enum answer {
    FOUND,
    ABSENT, /* there is none from at to end */
    AT_END, /* the end was come to: of a match that begins at `from`, none before */
    MORE,   /* the quick form cannot tell */
    FAILED  /* the job says why */
} answer;

static answer fail_match(const struct dc_regex *r, const part *p, int code)
{
    dc_job_look();
    dc_failf(r->of->job, DC_ERR_FORMAT_TEXT, NULL,
             "the regular expression '%.*s' of the tokenizer %s for a text of %zu bytes",
             (int)(r->text.n < 100 ? r->text.n : 100), r->text.at,
             code == PCRE2_CALLOUT ? "takes too long"
             : code == PCRE2_HEAPLIMIT || code == PCRE2_JIT_STACKLIMIT
                 ? "needs more than 32 MiB of memory"
                 : "cannot be matched",
             p->n);
    return FAILED;
}

static inline answer look(const struct dc_regex *r, const form *f, part *p, bool slow)
{
    const size_t end = f->compiled ? p->end : end_of_chars(p->s, p->at, p->end);
    const bool partial = end == p->end && end < p->n;
    const uint32_t options = partial ? PCRE2_PARTIAL_HARD : end < p->end ? PCRE2_NOTEOL : 0;
    const int code = r->lib->match(f->code, (const unsigned char *)p->s, end, p->at,
                                   options | (f->compiled ? 0 : PCRE2_NO_JIT), f->data, f->context);
    p->end = end;
    if (code >= 0 || (code == PCRE2_PARTIAL && partial))
        return !read_places(r, f, p->at, end, &p->from, &p->to) ? FAILED
               : code >= 0                                      ? FOUND
                                                                : AT_END;
    return code == PCRE2_NOMATCH ? ABSENT : slow ? fail_match(r, p, code) : MORE;
}

static void count_work(dc_tokenizer *t, size_t bytes)
{
    const uint64_t work = 1 + bytes / BYTES_A_WORK;
    t->work -= work < t->work ? work : t->work;
}

/* PCRE2 before an item of the pattern, at a place of the text. */
static int called(pcre_block *b, void *arg)
{
    struct dc_regex *r = arg;
    const size_t moved = b->at > r->last ? b->at - r->last : r->last - b->at;
    r->last = b->at;
    count_work(r->of, moved + (r->repeat ? r->part : 0));
    return r->of->work == 0 || dc_job_cancelled(r->of->job) ? PCRE2_CALLOUT : 0;
}

static answer look_slowly(struct dc_regex *r, part *p)
{
    for (size_t bytes = r->whole ? p->n : LONG_PART;; bytes *= GROWTH) {
        p->end = end_of(p->s, p->n, p->at, bytes);
        r->part = p->end - p->at;
        r->last = p->at;
        count_work(r->of, r->part);
        const answer a = look(r, &r->now->slow, p, true);
        if (a != AT_END || p->from > p->at)
            return a;
    }
}

/* The next match, which may be of nothing. */
static bool match(struct dc_regex *r, part *p)
{
    for (;;) {
        size_t length;
        if (dc_job_cancelled(r->of->job))
            dc_job_look();
        while (!r->now->quick.compiled && p->at < p->n && !is_char(p->s, p->n, p->at, &length))
            p->at++;
        p->end = end_of(p->s, p->n, p->at, PART);
        answer a = r->whole ? MORE : look(r, &r->now->quick, p, false);
        if (a == MORE || (a == AT_END && p->from == p->at))
            a = look_slowly(r, p);
        if (a == FOUND || a == FAILED || (a == ABSENT && p->end == p->n))
            return a == FOUND;
        p->at = a == ABSENT ? p->end : p->from; /* no match begins before */
    }
}

/* Has the text a character that PCRE2 does not know as the package does? Hardly any has. */
static bool has_odd(const pcre_lib *c, const char *s, size_t n)
{
    for (size_t at = 0; at + 1 < n;) {
        const unsigned char b = (unsigned char)s[at];
        uint64_t eight;
        size_t length;
        if (b < 0x80) {
            while (n - at > sizeof eight &&
                   (memcpy(&eight, s + at, sizeof eight), (eight & 0x8080808080808080u) == 0))
                at += sizeof eight;
            at++;
        } else if (b < 0xc0) {
            at++;
        } else {
            const uint32_t x =
                c->odd_start[start_of(s + at)] ? dc_utf8_next(s + at, n - at, &length) : 0;
            if (x < DC_RAW_BYTE && dc_charset_has(c->odd, x))
                return true;
            at += 2;
        }
    }
    return false;
}

/* Which forms a text is looked through with. */
static void choose_forms(dc_tokenizer *t, struct dc_regex *r, const char *s, size_t n)
{
    r->now = &r->plain;
    if (!r->categories || !has_odd(r->lib, s, n))
        return;
    r->now = &r->exact;
    if (r->exact.slow.context == NULL) {
        close_form(r->lib, &r->exact.quick); /* of a try that failed */
        close_form(r->lib, &r->exact.slow);
        r->exact = (forms){0};
        const dc_regex_text exact = dc_regex_translate(t, t->job, r->text, true);
        if (exact.wrong != NULL)
            fail_pattern(t->job, "PCRE2", r, exact.wrong);
        else
            compile_forms(t->job, "PCRE2", r, (dc_span){exact.to->s, exact.to->n}, &r->exact);
        dc_job_text_end(t->job, exact.to);
    }
}

bool dc_regex_next(dc_tokenizer *t, struct dc_regex *r, const char *s, size_t n, size_t at,
                   bool behind, size_t *from, size_t *to)
{
    part p = {.s = s, .n = n, .at = at};
    if (at == 0 && !behind)
        choose_forms(t, r, s, n);
    if (t->job->err.status != DC_OK || at > n || !match(r, &p))
        return false;
    if (behind && p.to == at) { /* so it is of nothing */
        size_t length = 1;
        if (at < n)
            dc_utf8_next(s + at, n - at, &length);
        p = (part){.s = s, .n = n, .at = at + length};
        if (p.at > n || !match(r, &p))
            return false;
    }
    *from = p.from;
    *to = p.to;
    return true;
}
