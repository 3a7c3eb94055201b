/*
 * The tables say which fields are packed, once for writing and for reading. Numbers are words of 8 bytes, texts
 * and lists begin with their length. Reading checks every count and every number that something is indexed
 * with: a correct checksum does not prove correct bytes.
 */
#include "jit/exec/exec_pack.h"

#include "jit/exec/kernel_table.h"

#include <stdlib.h>
#include <string.h>

/* A new field needs a row below, or a reason here why it has none: `sets` is found again, counters begin at zero,
 * `work` is for the compiler alone. */
_Static_assert(sizeof(void *) != 8 || (sizeof(struct dc_exec) == 664 &&
                                       sizeof(dc_memory_value) == 40 && sizeof(dc_command) == 160 &&
                                       sizeof(dc_command_fact) == 64 && sizeof(dc_kept) == 48 &&
                                       sizeof(dc_exec_choice) == 72 && sizeof(dc_exec_info) == 72 &&
                                       sizeof(dc_guarded) == 24 && sizeof(dc_derived_value) == 40),
               "jit/exec/exec_pack.c packs all fields");

/* ---- tables ---------------------------------------------------------------------------------- */

typedef enum form {
    NUMBER, /* an integer or a double */
    TEXT,
    OPTIONAL, /* a text or NULL */
    LINE,     /* a line of the script or NULL, as the number of an origin of the graph */
    LAYER,    /* the same of a layer */
    LIST      /* of structures, or of bytes */
} form;

typedef struct record record;

typedef struct field {
    form form;
    bool slot;        /* NUMBER: a slot of the recording */
    bool own;         /* LIST: its count is packed in front of it */
    uint64_t most;    /* NUMBER: the largest; 0: what fits `size` */
    size_t at, size;  /* in the structure */
    const record *of; /* LIST: elements; NULL: bytes */
    size_t count_at, count_size;
    size_t more_at; /* LIST: what is added to the count; 0: nothing */
} field;

struct record {
    size_t size; /* of the structure */
    uint32_t n;
    const field *field;
};

#define SIZE(type, name)      sizeof(((type *)0)->name)
#define AT(type, name)        .at = offsetof(type, name), .size = SIZE(type, name)
#define F(type, name)         .form = NUMBER, AT(type, name)
#define UPTO(type, name, max) F(type, name), .most = (max)
#define SLOT(type, name)      F(type, name), .slot = true
#define AS(how, type, name)   .form = how, AT(type, name)
#define COUNT(type, name)     .count_at = offsetof(type, name), .count_size = SIZE(type, name)
#define KNOWN(type, name, count, elements) \
    .form = LIST, AT(type, name), COUNT(type, count), .of = (elements)
#define OWN(type, name, count, elements) KNOWN(type, name, count, elements), .own = true
#define RECORD(name, type) \
    static const record name = {sizeof(type), DC_COUNTOF(name##_fields), name##_fields}

static const field texts_fields[] = {{.form = TEXT, .size = sizeof(char *)}};
RECORD(texts, char *);
static const field reasons_fields[] = {{.form = OPTIONAL, .size = sizeof(char *)}};
RECORD(reasons, char *);
static const field flags_fields[] = {{.form = NUMBER, .size = sizeof(bool), .most = 1}};
RECORD(flags, bool);
static const field numbers_fields[] = {{.form = NUMBER, .size = sizeof(uint32_t)}};
RECORD(numbers, uint32_t);

static const field words_fields[] = {{.form = NUMBER, .size = sizeof(int64_t)}};
RECORD(words, int64_t);

static const field bind_fields[] = {{SLOT(dc_bind, slot)}, {F(dc_bind, offset)}};
RECORD(bind, dc_bind);

static const field move_fields[] = {
    {F(dc_bind_move, bind)},
    {UPTO(dc_bind_move, loop, DC_LOOP_DEPTH - 1)},
    {F(dc_bind_move, step)},
};
RECORD(move, dc_bind_move);

static const field digest_fields[] = {
    {F(dc_packed_kernel, text.word[0])},
    {F(dc_packed_kernel, text.word[1])},
    {F(dc_packed_kernel, disk.word[0])},
    {F(dc_packed_kernel, disk.word[1])},
};
RECORD(digest, dc_packed_kernel);

static const record parts;
static const field kept_fields[] = {
    {AS(TEXT, dc_kept, name)},
    {AS(TEXT, dc_kept, nest)},
    {F(dc_kept, nout)},
    {F(dc_kept, nin)},
    {OWN(dc_kept, move, nmove, &texts)},
    {OWN(dc_kept, part, npart, &parts)},
};
RECORD(kept, dc_kept);
/* Parts have none themselves. */
static const record parts = {sizeof(dc_kept), DC_COUNTOF(kept_fields) - 1, kept_fields};

static const field command_fields[] = {
    {UPTO(dc_command, kind, DC_COMMAND_BUNDLE)},
    {AS(TEXT, dc_command, label)}, /* of a launch: its kernel's name */
    {UPTO(dc_command, grid, INT64_MAX)},
    {F(dc_command, threads)},
    {F(dc_command, shared)},
    {F(dc_command, scratch)},
    {F(dc_command, cost_ns)},
    {F(dc_command, bytes)},
    {F(dc_command, nbody)},
    {F(dc_command, nelse)},
    {UPTO(dc_command, untested, 1)},
    {UPTO(dc_command, reverse, 1)},
    {OWN(dc_command, bind, nbind, &bind)},
    {OWN(dc_command, move, nmove, &move)},
    {OWN(dc_command, dep, ndep, &numbers)},
    {OWN(dc_command, host, nhost, &words)},
};
RECORD(command, dc_command);

static const field fact_fields[] = {
    {AS(LINE, dc_command_fact, where[0])}, {AS(LINE, dc_command_fact, where[1])},
    {AS(LINE, dc_command_fact, where[2])}, {AS(LAYER, dc_command_fact, layer[0])},
    {AS(LAYER, dc_command_fact, layer[1])}, {F(dc_command_fact, flops)},
    {F(dc_command_fact, bytes)},           {F(dc_command_fact, nout)},
    {F(dc_command_fact, check)},
};
RECORD(fact, dc_command_fact);

static const field choice_fields[] = {
    {AS(TEXT, dc_exec_choice, op)},       {AS(TEXT, dc_exec_choice, type)},
    {AS(TEXT, dc_exec_choice, times_of)}, {AS(LINE, dc_exec_choice, where)},
    {AS(OPTIONAL, dc_exec_choice, but)},  {UPTO(dc_exec_choice, stored, 1)},
    {F(dc_exec_choice, times)},           {F(dc_exec_choice, again)},
    {F(dc_exec_choice, moved)},
};
RECORD(choice, dc_exec_choice);

static const field temp_fields[] = {
    {F(dc_guarded, offset)},
    {F(dc_guarded, bytes)},
    {F(dc_guarded, first)},
    {F(dc_guarded, last)},
};
RECORD(temp, dc_guarded);

static const field derived_fields[] = {
    {AS(TEXT, dc_derived_value, op)},    {AS(TEXT, dc_derived_value, type)},
    {AS(LINE, dc_derived_value, where)}, {F(dc_derived_value, offset)},
    {F(dc_derived_value, bytes)},
};
RECORD(derived, dc_derived_value);

static const field value_fields[] = {
    {F(dc_memory_value, bytes)},     {AS(TEXT, dc_memory_value, type)},
    {AS(TEXT, dc_memory_value, op)}, {AS(LINE, dc_memory_value, where)},
    {F(dc_memory_value, param)},
};
RECORD(value, dc_memory_value);

static const field exec_fields[] = {
    {F(dc_exec, info.launches)},
    {F(dc_exec, info.copies)},
    {F(dc_exec, info.kernels)},
    {F(dc_exec, info.derived)},
    {F(dc_exec, info.prologue_launches)},
    {F(dc_exec, info.derived_bytes)},
    {F(dc_exec, info.arena_bytes)},
    {F(dc_exec, info.arena_lower_bound)},
    {F(dc_exec, info.donated)},
    {F(dc_exec, info.denied)},
    {F(dc_exec, info.nodes)},
    {OWN(dc_exec, kept, nkernel, &kept)},
    {OWN(dc_exec, command, ncommand, &command)},
    {KNOWN(dc_exec, fact, ncommand, &fact)},
    {OWN(dc_exec, choice, nchoice, &choice)},
    {OWN(dc_exec, constant, constant_bytes, NULL)},
    {F(dc_exec, untouched)},
    {F(dc_exec, guard)},
    {OWN(dc_exec, temp, ntemp, &temp)},
    {F(dc_exec, needs.temps)},
    {F(dc_exec, needs.cells)},
    {F(dc_exec, needs.arguments)},
    {F(dc_exec, needs.results)},
    {OWN(dc_exec, needs.value, needs.nvalue, &value)},
    {KNOWN(dc_exec, denied_why, desc.ncell, &reasons)},
    {KNOWN(dc_exec, in_part, desc.ncell, &flags)},
    {F(dc_exec, nprologue)},
    {OWN(dc_exec, derived, nderived, &derived)},
    {KNOWN(dc_exec, derived_from, desc.nfree, &flags), .more_at = offsetof(dc_exec, desc.ncell)},
};
RECORD(exec, dc_exec);

/* ---- what holds ------------------------------------------------------------------------------ */

uint32_t dc_exec_packed_kernel(const dc_exec *e, uint32_t item_at)
{
    uint32_t k = 0;
    while (k < e->nkernel && strcmp(e->kept[k].name, e->command[item_at].label) != 0)
        k++;
    return k;
}

/* The launches of a bundle follow it. */
static bool bundle_is_sound(const dc_exec *e, uint32_t at)
{
    const uint32_t n = e->command[at].nbody;
    if (e->command[at].nbind > 0 || n == 0 || n >= e->ncommand - at)
        return false;
    for (uint32_t k = 1; k <= n; k++)
        if (e->command[at + k].kind != DC_COMMAND_LAUNCH)
            return false;
    return true;
}

/* Its parts have all its parameters. */
static bool kernel_is_sound(const dc_kept *k)
{
    uint64_t nout = 0, nin = 0;
    for (uint32_t i = 0; i < k->npart; i++) {
        nout += k->part[i].nout;
        nin += k->part[i].nin;
    }
    return k->npart == 0 || (nout == k->nout && nin == k->nin);
}

/* A launch has the parameters that its kernel is kept with. */
static bool launch_is_sound(const dc_exec *e, uint32_t at)
{
    const dc_command *x = &e->command[at];
    const uint32_t k = dc_exec_packed_kernel(e, at);
    return k < e->nkernel && e->fact[at].nout == e->kept[k].nout &&
           x->nbind == (uint64_t)e->kept[k].nout + e->kept[k].nin;
}

/* Bodies follow their head. */
static bool bodies_are_sound(const dc_exec *e, uint32_t at)
{
    const dc_command *x = &e->command[at];
    const uint32_t left = e->ncommand - at - 1;
    return x->nbody <= left && x->nelse <= left - x->nbody;
}

static bool moves_are_sound(const dc_command *x)
{
    for (uint32_t m = 0; m < x->nmove; m++)
        if (x->move[m].bind >= x->nbind || x->move[m].loop >= DC_LOOP_DEPTH)
            return false;
    return true;
}

static bool item_is_sound(const dc_exec *e, uint32_t at)
{
    const dc_command *x = &e->command[at];
    const dc_command_fact *f = &e->fact[at];
    if (!moves_are_sound(x))
        return false;
    switch (x->kind) {
    case DC_COMMAND_LAUNCH:
        return launch_is_sound(e, at);
    case DC_COMMAND_COPY:
        return x->nbind == 2;
    case DC_COMMAND_CHECK:
        return x->nbind == 2 && f->check < e->desc.ncheck;
    case DC_COMMAND_HOST:
        return x->nhost > 0 && x->nbind > 1 && f->nout == 1;
    case DC_COMMAND_BUNDLE:
        return bundle_is_sound(e, at);
    case DC_COMMAND_LOOP:
        return (x->nbind == 2 || x->nbind == 3) && x->nelse == 0 && x->grid <= INT32_MAX &&
               bodies_are_sound(e, at);
    case DC_COMMAND_BRANCH:
        return x->nbind == 1 && bodies_are_sound(e, at);
    }
    return false;
}

static bool is_sound(const dc_exec *e)
{
    for (uint32_t i = 0; i < e->ncommand; i++)
        if (!item_is_sound(e, i))
            return false;
    for (uint32_t k = 0; k < e->nkernel; k++)
        if (!kernel_is_sound(&e->kept[k]))
            return false;
    return e->nprologue <= e->ncommand && e->info.kernels == e->nkernel &&
           e->info.derived == e->nderived;
}

/* Of a list of the structure x. */
static uint64_t count_of(const field *f, const char *x)
{
    uint64_t n = 0;
    uint32_t more = 0;
    memcpy(&n, x + f->count_at, f->count_size);
    if (f->more_at > 0)
        memcpy(&more, x + f->more_at, sizeof more);
    return n + more;
}

/* ---- writing --------------------------------------------------------------------------------- */

typedef struct writer {
    const dc_exec *e;
    dc_text *out;
} writer;

static void put_number(writer *w, uint64_t v)
{
    dc_text_put(w->out, (const char *)&v, sizeof v);
}

static void put_text(writer *w, const char *s)
{
    const size_t n = s != NULL ? strlen(s) : 0;
    put_number(w, n);
    if (n > 0)
        dc_text_put(w->out, s, n);
}

/* The function and the bodies of its module: their origins are counted one behind the other. NULL: no more. */
static const dc_func *part_of(const dc_func *fn, uint32_t i)
{
    const dc_module *m = fn->module;
    return i == 0 ? fn : i <= m->body.n ? m->body.at[i - 1].fn : NULL;
}

static const char *words_at(const dc_origin *o, form what)
{
    return what == LAYER ? o->path : o->where;
}

/* The first origin with these words; words are the same in the graph and in what was made of it. */
static uint64_t origin_of(const dc_func *fn, const char *text, form what)
{
    const dc_func *f;
    uint64_t before = 0;
    for (uint32_t i = 0; text != NULL && (f = part_of(fn, i)) != NULL; i++) {
        for (uint32_t o = 1; o < f->origins.n; o++)
            if (words_at(&f->origins.at[o], what) == text)
                return before + o;
        before += f->origins.n;
    }
    return 0;
}

static const char *words_of(const dc_func *fn, uint64_t origin, form what)
{
    const dc_func *f;
    for (uint32_t i = 0; origin > 0 && (f = part_of(fn, i)) != NULL; i++) {
        if (origin < f->origins.n)
            return words_at(&f->origins.at[origin], what);
        origin -= f->origins.n;
    }
    return NULL;
}

typedef struct word {
    const char *text;
    uint32_t origin; /* counted as above */
} word;

static int by_text(const void *a, const void *b)
{
    const word *x = a, *y = b;
    const uintptr_t s = (uintptr_t)x->text, t = (uintptr_t)y->text;
    return s != t ? (s < t ? -1 : 1) : (x->origin > y->origin) - (x->origin < y->origin);
}

/* Equal words are one string; they are sorted by its address, which says nothing itself. */
static void put_first_origins(dc_job *j, const dc_func *fn, form what, dc_text *out)
{
    const dc_func *f;
    uint32_t n = 0, k = 0;
    for (uint32_t i = 0; (f = part_of(fn, i)) != NULL; i++)
        n += f->origins.n;
    word *sorted = DC_NEW_ARRAY(&j->scratch, word, n);
    uint32_t *first = DC_NEW_ARRAY(&j->scratch, uint32_t, n);
    for (uint32_t i = 0; (f = part_of(fn, i)) != NULL; i++)
        for (uint32_t o = 0; o < f->origins.n; o++, k++)
            sorted[k] = (word){words_at(&f->origins.at[o], what), k};
    qsort(sorted, n, sizeof *sorted, by_text);
    for (uint32_t i = 0; i < n; i++) {
        const bool again = i > 0 && sorted[i].text == sorted[i - 1].text;
        first[sorted[i].origin] = again ? first[sorted[i - 1].origin] : sorted[i].origin;
    }
    dc_text_put(out, (const char *)first, n * sizeof *first);
}

void dc_exec_put_words(dc_job *j, const dc_func *fn, dc_text *out)
{
    put_first_origins(j, fn, LINE, out);
    put_first_origins(j, fn, LAYER, out);
}

static void put_record(writer *w, const record *rec, const char *x);

static void put_list(writer *w, const field *f, const char *x, const char *list)
{
    const uint64_t n = count_of(f, x);
    if (f->own)
        put_number(w, n);
    if (f->of == NULL && n > 0)
        dc_text_put(w->out, list, n);
    for (uint64_t i = 0; f->of != NULL && i < n; i++)
        if (list != NULL)
            put_record(w, f->of, list + i * f->of->size);
        else
            put_number(w, 0); /* derived_from: without prologue */
}

static void put_record(writer *w, const record *rec, const char *x)
{
    for (const field *f = rec->field; f < rec->field + rec->n; f++) {
        uint64_t number = 0;
        const char *to = NULL;
        memcpy(f->form == NUMBER ? (void *)&number : (void *)&to, x + f->at, f->size);
        if (f->form == NUMBER)
            put_number(w, number);
        else if (f->form == LINE || f->form == LAYER)
            put_number(w, origin_of(w->e->desc.fn, to, f->form));
        else if (f->form == LIST)
            put_list(w, f, x, to);
        else
            put_text(w, to);
    }
}

bool dc_exec_pack(const dc_exec *e, dc_text *out)
{
    writer w = {e, out};
    put_record(&w, &exec, (const char *)e);
    for (uint32_t i = 0; i < e->nkernel; i++) {
        dc_packed_kernel k = {.text = dc_compiled_text(e->kernel[i])};
        if (!dc_compiled_on_disk(e->kernel[i], &k.disk))
            return false;
        put_record(&w, &digest, (const char *)&k);
    }
    return is_sound(e);
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Once `bad`, everything is 0 and nothing is read any more. */
typedef struct reader {
    const dc_exec_desc *desc;
    uint64_t slots;
    dc_arena *mem;
    const char *at;
    size_t left;
    bool bad;
} reader;

/* A number of at most `most`. */
static uint64_t get(reader *r, uint64_t most)
{
    uint64_t v = 0;
    r->bad = r->bad || r->left < sizeof v;
    if (r->bad)
        return 0;
    memcpy(&v, r->at, sizeof v);
    r->at += sizeof v;
    r->left -= sizeof v;
    r->bad = v > most;
    return r->bad ? 0 : v;
}

/* How many there are of something that takes `each` bytes at least; so many are left. */
static uint64_t get_count(reader *r, size_t each)
{
    const uint64_t n = get(r, UINT32_MAX);
    r->bad = r->bad || n > r->left / each;
    return r->bad ? 0 : n;
}

static uint64_t get_number(reader *r, const field *f)
{
    const uint64_t fits = UINT64_MAX >> (64 - 8 * f->size);
    return get(r, f->slot ? r->slots - 1 : f->most > 0 ? f->most : fits);
}

/* The next n bytes, and a 0 behind them. */
static char *get_bytes(reader *r, uint64_t n)
{
    char *s = dc_arena_alloc(r->mem, n + 1);
    memcpy(s, r->at, n);
    r->at += n;
    r->left -= n;
    return s;
}

static const char *get_words(reader *r, form what)
{
    const dc_func *f;
    uint64_t n = 0;
    for (uint32_t i = 0; (f = part_of(r->desc->fn, i)) != NULL; i++)
        n += f->origins.n;
    return words_of(r->desc->fn, get(r, n - 1), what);
}

static void get_record(reader *r, const record *rec, char *x);

static void *get_list(reader *r, const field *f, char *x)
{
    if (f->own) {
        const uint64_t own = get_count(r, f->of != NULL ? f->of->n * sizeof(uint64_t) : 1);
        memcpy(x + f->count_at, &own, f->count_size);
    }
    const uint64_t n = count_of(f, x);
    if (f->of == NULL)
        return get_bytes(r, n);
    char *list = dc_arena_alloc(r->mem, n * f->of->size);
    for (uint64_t i = 0; i < n && !r->bad; i++)
        get_record(r, f->of, list + i * f->of->size);
    return list;
}

static void get_record(reader *r, const record *rec, char *x)
{
    for (const field *f = rec->field; f < rec->field + rec->n && !r->bad; f++) {
        const uint64_t number = f->form == NUMBER ? get_number(r, f) : 0;
        const void *to = NULL;
        if (f->form == LINE || f->form == LAYER)
            to = get_words(r, f->form);
        else if (f->form == LIST)
            to = get_list(r, f, x);
        else if (f->form != NUMBER)
            to = get_bytes(r, get_count(r, 1));
        if (f->form == OPTIONAL && *(const char *)to == '\0')
            to = NULL;
        memcpy(x + f->at, f->form == NUMBER ? (const void *)&number : (const void *)&to, f->size);
    }
}

/* What the table has of an executable, and no more. */
static void copy_fields(dc_exec *to, const dc_exec *from)
{
    for (const field *f = exec_fields; f < exec_fields + exec.n; f++) {
        memcpy((char *)to + f->at, (const char *)from + f->at, f->size);
        if (f->own)
            memcpy((char *)to + f->count_at, (const char *)from + f->count_at, f->count_size);
    }
}

void dc_exec_unpack_nothing(dc_exec *e)
{
    copy_fields(e, &(dc_exec){0});
}

bool dc_exec_unpack(dc_exec *e, const void *bytes, size_t n, dc_packed_kernel **kernel)
{
    dc_exec read = {.desc = e->desc};
    reader r = {&e->desc, dc_slot_count(e), &e->mem, bytes, n, false};
    get_record(&r, &exec, (char *)&read);
    *kernel = DC_NEW_ARRAY(&e->mem, dc_packed_kernel, read.nkernel);
    for (uint32_t i = 0; i < read.nkernel; i++)
        get_record(&r, &digest, (char *)&(*kernel)[i]);
    if (r.bad || r.left > 0 || !is_sound(&read))
        return false;
    dc_compiled **none = DC_NEW_ARRAY(&e->mem, dc_compiled *, read.nkernel);
    dc_exec_find_sets(&read);
    copy_fields(e, &read);
    e->kernel = none; /* what is not NULL has to be released */
    return true;
}
