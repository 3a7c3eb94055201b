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
#include "formats/tokenizer/impl.h"

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
    PCRE2_UCP = 0x00020000,
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

typedef struct pcre_lib {
    void *handle, *stack; /* stack: of machine code that calls back; NULL: there is none yet */
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

struct dc_regex {
    struct dc_regex *next; /* of the tokenizer's */
    pcre_lib *lib;
    dc_span text;
    form quick, slow;
    bool whole;  /* where a search begins matters: no part is searched by itself */
    bool repeat; /* it compares with what was matched before, which counts as no movement */
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

/* \s as Unicode's White_Space, which is what Oniguruma takes it for; PCRE2 has U+180E besides. */
static const char white[] =
    "\\x{9}-\\x{d}\\x{20}\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}"
    "\\x{205f}\\x{3000}";

typedef struct reading {
    struct dc_regex *r;
    dc_text *to;
    dc_span s;
    size_t at;
    bool in_class, begun; /* begun: a class, of which nothing was read but a ^ */
    const char *wrong;
} reading;

static bool follows(const reading *p, const char *what)
{
    const size_t n = strlen(what);
    return p->s.n - p->at >= n && memcmp(p->s.at + p->at, what, n) == 0;
}

static void copy(reading *p, size_t n)
{
    dc_text_put(p->to, p->s.at + p->at, n);
    p->at += n;
}

static void read_escape(reading *p)
{
    const char c = p->at + 1 < p->s.n ? p->s.at[p->at + 1] : '\0';
    if (c == 's' || (c == 'S' && !p->in_class)) {
        dc_text_printf(p->to, p->in_class ? "%s%s" : "[%s%s]", c == 'S' ? "^" : "", white);
        p->at += 2;
        return;
    }
    p->r->whole = p->r->whole || (c == 'G' && !p->in_class);
    p->r->repeat = p->r->repeat || (c >= '1' && c <= '9') || c == 'k' || c == 'g';
    copy(p, c != '\0' ? 2 : 1);
}

/* A class has other classes in it for Oniguruma, and not for PCRE2. */
static void read_in_class(reading *p)
{
    const bool first = p->begun;
    p->begun = false;
    if (follows(p, "[:")) {
        const char *end = memchr(p->s.at + p->at + 2, ']', p->s.n - p->at - 2);
        if (end == NULL || end[-1] != ':')
            p->wrong = "a class in a class is not known";
        copy(p, end != NULL ? (size_t)(end + 1 - p->s.at) - p->at : 2);
    } else if (follows(p, "[")) {
        p->wrong = "a class in a class is not known";
    } else if (follows(p, "&&")) {
        p->wrong = "&& in a class is not known";
    } else {
        p->in_class = first || p->s.at[p->at] != ']';
        copy(p, 1);
    }
}

static void read_outside(reading *p)
{
    if (follows(p, "(*")) {
        p->wrong = "options and verbs, which begin with (*, are not known";
    } else if (follows(p, "(?C")) {
        p->wrong = "(?C is not known";
    } else if (follows(p, "(?#")) {
        const char *end = memchr(p->s.at + p->at, ')', p->s.n - p->at);
        copy(p, end != NULL ? (size_t)(end + 1 - p->s.at) - p->at : 3);
    } else {
        p->in_class = p->begun = p->s.at[p->at] == '[';
        p->r->repeat = p->r->repeat || follows(p, "(?P=");
        copy(p, follows(p, "[^") ? 2 : 1);
    }
}

/* The pattern for PCRE2; NULL: *wrong says why not. */
static dc_text *translate(dc_job *j, struct dc_regex *r, const char **wrong)
{
    reading p = {.r = r, .to = dc_job_text(j), .s = r->text};
    while (p.at < p.s.n && p.wrong == NULL) {
        if (p.s.at[p.at] == '\\') {
            p.begun = false;
            read_escape(&p);
        } else if (p.in_class)
            read_in_class(&p);
        else
            read_outside(&p);
    }
    *wrong = p.wrong;
    return p.to;
}

static dc_status fail_pattern(dc_job *j, const char *name, const struct dc_regex *r,
                              const char *why)
{
    return dc_path_fail(j, DC_ERR_FORMAT, name, "the regular expression '%.*s': %s",
                        (int)(r->text.n < 100 ? r->text.n : 100), r->text.at, why);
}

static dc_status compile(dc_job *j, const char *name, struct dc_regex *r, const dc_text *text,
                         uint32_t options, form *out)
{
    const pcre_lib *c = r->lib;
    int why = 0;
    size_t where = 0;
    out->code = c->compile((const unsigned char *)text->s, text->n,
                           options | PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C |
                               PCRE2_MATCH_INVALID_UTF,
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

dc_status dc_regex_new(dc_tokenizer *t, dc_job *j, const char *name, dc_span text,
                       struct dc_regex **out)
{
    const char *wrong;
    if (t->regex_library == NULL)
        DC_TRY(open_library(t, j, name));
    struct dc_regex *r = DC_NEW(&t->keep, struct dc_regex);
    *r = (struct dc_regex){.next = t->regexes, .lib = t->regex_library, .text = text, .of = t};
    t->regexes = r;
    if (text.n > MOST_PATTERN)
        return fail_pattern(j, name, r, "it has more than 32768 bytes");
    dc_text *to = translate(j, r, &wrong);
    if (wrong != NULL)
        return fail_pattern(j, name, r, wrong);
    DC_TRY(compile(j, name, r, to, 0, &r->quick));
    DC_TRY(compile(j, name, r, to, PCRE2_AUTO_CALLOUT, &r->slow));
    dc_job_text_end(j, to);
    r->lib->set_steps(r->quick.context, STEPS);
    r->lib->set_steps(r->slow.context, UINT32_MAX); /* calls count instead */
    r->lib->set_call(r->slow.context, called, r);
    to_machine_code(r->lib, &r->quick);
    to_machine_code(r->lib, &r->slow);
    if (r->lib->stack == NULL && r->slow.compiled)
        r->lib->stack = r->lib->make_stack(1 << 15, (size_t)MOST_KIB << 10, NULL);
    r->slow.compiled = r->slow.compiled && r->lib->stack != NULL;
    if (r->slow.compiled)
        r->lib->set_stack(r->slow.context, NULL, r->lib->stack);
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
        close_form(c, &r->quick);
        close_form(c, &r->slow);
    }
    if (c != NULL && c->stack != NULL)
        c->free_stack(c->stack);
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
static inline bool read_places(const struct dc_regex *r, const form *f, size_t least, size_t most,
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
        const answer a = look(r, &r->slow, p, true);
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
        while (!r->quick.compiled && p->at < p->n && !is_char(p->s, p->n, p->at, &length))
            p->at++;
        p->end = end_of(p->s, p->n, p->at, PART);
        answer a = r->whole ? MORE : look(r, &r->quick, p, false);
        if (a == MORE || (a == AT_END && p->from == p->at))
            a = look_slowly(r, p);
        if (a == FOUND || a == FAILED || (a == ABSENT && p->end == p->n))
            return a == FOUND;
        p->at = a == ABSENT ? p->end : p->from; /* no match begins before */
    }
}

bool dc_regex_next(dc_tokenizer *t, struct dc_regex *r, const char *s, size_t n, size_t at,
                   size_t *from, size_t *to)
{
    part p = {.s = s, .n = n, .at = at};
    while (p.at <= n && t->job->err.status == DC_OK && match(r, &p)) {
        *from = p.from;
        *to = p.to;
        if (p.to > p.from)
            return true;
        p.at = p.to + 1; /* of nothing: from the next character on */
        while (p.at < n && ((unsigned char)s[p.at] & 0xc0) == 0x80)
            p.at++;
    }
    return false;
}
