/*
 * Numbers are words of 8 bytes, texts their length and their bytes. Reading checks every count and
 * number that something is indexed with: a sound checksum is no proof of sound bytes.
 */
#include "jit/exec/exec_pack.h"

#include "jit/exec/kernel_table.h"

#include <string.h>

/* Whoever adds a field writes it below, or says in this line why not. */
_Static_assert(sizeof(void *) != 8 || (sizeof(struct dc_exec) == 536 && sizeof(dc_command) == 112 &&
                                       sizeof(dc_command_fact) == 64 && sizeof(dc_kept) == 32 &&
                                       sizeof(dc_exec_choice) == 72 && sizeof(dc_exec_info) == 72 &&
                                       sizeof(dc_guarded) == 24 && sizeof(dc_derived_value) == 40),
               "jit/exec/exec_pack.c packs all fields");

enum { WHERES = DC_COUNTOF(((dc_command_fact *)0)->where) };

/* Of what no kernel has a name for; NULL: the pipeline makes none. */
static const char *const labels[DC_COMMAND_BUNDLE + 1] = {
    [DC_COMMAND_COPY] = "copy", [DC_COMMAND_CHECK] = "check", [DC_COMMAND_BUNDLE] = "bundle"};

/* ---- writing --------------------------------------------------------------------------------- */

static void put(dc_text *out, uint64_t v)
{
    dc_text_put(out, (const char *)&v, sizeof v);
}

static void put_real(dc_text *out, double v)
{
    dc_text_put(out, (const char *)&v, sizeof v);
}

static void put_text(dc_text *out, const char *s)
{
    const size_t n = strlen(s);
    put(out, n);
    dc_text_put(out, s, n);
}

static void put_key(dc_text *out, dc_cache_key key)
{
    put(out, key.word[0]);
    put(out, key.word[1]);
}

static void put_bind(dc_text *out, dc_bind b)
{
    put(out, b.slot);
    put(out, b.offset);
}

static void put_info(dc_text *out, const dc_exec_info *info)
{
    put(out, info->launches);
    put(out, info->copies);
    put(out, info->arena_bytes);
    put(out, info->arena_lower_bound);
    put(out, info->donated);
    put(out, info->denied);
    put(out, info->nodes);
    put(out, info->derived_bytes);
    put(out, info->prologue_launches);
}

static bool put_kernels(dc_text *out, const dc_exec *e)
{
    put(out, e->nkernel);
    for (uint32_t i = 0; i < e->nkernel; i++) {
        const dc_kept *k = &e->kept[i];
        dc_cache_key disk;
        if (!dc_compiled_on_disk(e->kernel[i], &disk))
            return false;
        put_key(out, dc_compiled_text(e->kernel[i]));
        put_key(out, disk);
        put_text(out, k->name);
        put_text(out, k->nest);
        put(out, k->nmove);
        for (uint32_t m = 0; m < k->nmove; m++)
            put_text(out, k->move[m]);
    }
    return true;
}

/* The first origin with these words; words are the same in the graph and in what was made of it. */
static uint64_t origin_of(const dc_func *fn, const char *where)
{
    for (uint32_t o = 1; where != NULL && o < fn->origins.n; o++)
        if (fn->origins.at[o].where == where)
            return o;
    return 0;
}

static void put_choices(dc_text *out, const dc_exec *e)
{
    put(out, e->nchoice);
    for (uint32_t i = 0; i < e->nchoice; i++) {
        const dc_exec_choice *c = &e->choice[i];
        put_text(out, c->op);
        put_text(out, c->type);
        put_text(out, c->times_of);
        put(out, origin_of(e->desc.fn, c->where));
        put_text(out, c->but != NULL ? c->but : "");
        put(out, c->stored);
        put(out, (uint64_t)c->times);
        put_real(out, c->again);
        put_real(out, c->moved);
    }
}

static void put_fact(dc_text *out, const dc_exec *e, const dc_command_fact *f)
{
    for (int i = 0; i < WHERES; i++)
        put(out, origin_of(e->desc.fn, f->where[i]));
    put(out, (uint64_t)f->flops);
    put(out, (uint64_t)f->bytes);
    put(out, f->nout);
    put(out, f->check);
    put_bind(out, f->value);
}

static void put_item(dc_text *out, const dc_exec *e, uint32_t i)
{
    const dc_command *x = &e->command[i];
    put(out, x->kind);
    put(out, x->kind == DC_COMMAND_LAUNCH ? dc_exec_packed_kernel(e, i) : 0);
    put(out, (uint64_t)x->grid);
    put(out, x->threads);
    put(out, x->scratch);
    put(out, x->cost_ns);
    put(out, x->bytes);
    put(out, x->nbody);
    put(out, x->nbind);
    for (uint32_t b = 0; b < x->nbind; b++)
        put_bind(out, x->bind[b]);
    put(out, x->ndep);
    for (uint32_t d = 0; d < x->ndep; d++)
        put(out, x->dep[d]);
    put_fact(out, e, &e->fact[i]);
}

static void put_memory(dc_text *out, const dc_exec *e)
{
    put(out, e->constant_bytes);
    if (e->constant_bytes > 0)
        dc_text_put(out, e->constant, e->constant_bytes);
    put(out, e->untouched);
    put(out, e->guard);
    put(out, e->ntemp);
    for (uint32_t t = 0; t < e->ntemp; t++) {
        put(out, e->temp[t].offset);
        put(out, e->temp[t].bytes);
        put(out, e->temp[t].first);
        put(out, e->temp[t].last);
    }
    for (uint32_t c = 0; c < e->desc.ncell; c++) {
        put_text(out, e->denied_why[c] != NULL ? e->denied_why[c] : "");
        put(out, e->in_part[c]);
    }
}

static void put_derived(dc_text *out, const dc_exec *e)
{
    put(out, e->nprologue);
    put(out, e->nderived);
    for (uint32_t i = 0; i < e->nderived; i++) {
        const dc_derived_value *x = &e->derived[i];
        put_text(out, x->op);
        put_text(out, x->type);
        put(out, origin_of(e->desc.fn, x->where));
        put(out, x->offset);
        put(out, x->bytes);
    }
    for (uint32_t i = 0; e->nderived > 0 && i < e->desc.nfree + e->desc.ncell; i++)
        put(out, e->derived_from[i]);
}

bool dc_exec_pack(const dc_exec *e, dc_text *out)
{
    put_info(out, &e->info);
    if (!put_kernels(out, e))
        return false;
    put(out, e->ncommand);
    for (uint32_t i = 0; i < e->ncommand; i++) {
        const dc_command_kind kind = e->command[i].kind;
        if (kind != DC_COMMAND_LAUNCH && labels[kind] == NULL)
            return false;
        put_item(out, e, i);
    }
    put_choices(out, e);
    put_memory(out, e);
    put_derived(out, e);
    return true;
}

uint32_t dc_exec_packed_kernel(const dc_exec *e, uint32_t command)
{
    uint32_t k = 0;
    while (k < e->nkernel && strcmp(e->kept[k].name, e->command[command].label) != 0)
        k++;
    return k;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Once `bad`, everything is 0 and nothing is read any more. */
typedef struct reader {
    dc_exec *e;
    const char *at;
    size_t left;
    bool bad;
} reader;

static uint64_t get(reader *r)
{
    uint64_t v = 0;
    if (r->bad || r->left < sizeof v) {
        r->bad = true;
        return 0;
    }
    memcpy(&v, r->at, sizeof v);
    r->at += sizeof v;
    r->left -= sizeof v;
    return v;
}

/* A number of at most `most`. */
static uint64_t get_upto(reader *r, uint64_t most)
{
    const uint64_t v = get(r);
    r->bad = r->bad || v > most;
    return r->bad ? 0 : v;
}

/* How many there are of something that takes `each` bytes at least; so many are left. */
static uint32_t get_count_of(reader *r, size_t each)
{
    const uint64_t n = get(r);
    r->bad = r->bad || n > r->left / each;
    return r->bad ? 0 : (uint32_t)n;
}

static uint32_t get_count(reader *r)
{
    return get_count_of(r, sizeof(uint64_t));
}

static char *get_text(reader *r)
{
    const uint32_t n = get_count_of(r, 1);
    char *s = dc_arena_alloc(&r->e->mem, n + 1);
    memcpy(s, r->at, n);
    r->at += n;
    r->left -= n;
    return s;
}

static const char *get_optional(reader *r)
{
    const char *s = get_text(r);
    return s[0] != '\0' ? s : NULL;
}

static double get_real(reader *r)
{
    const uint64_t bits = get(r);
    double v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

/* A line of the script, or NULL. */
static const char *get_line(reader *r)
{
    const dc_func *fn = r->e->desc.fn;
    const uint64_t o = get_upto(r, fn->origins.n - 1);
    return o > 0 ? fn->origins.at[o].where : NULL;
}

static dc_cache_key get_key(reader *r)
{
    dc_cache_key key;
    key.word[0] = get(r);
    key.word[1] = get(r);
    return key;
}

static dc_bind get_bind(reader *r)
{
    dc_bind b;
    b.slot = (uint32_t)get_upto(r, dc_slot_count(r->e) - 1);
    b.offset = get(r);
    return b;
}

static void get_info(reader *r, dc_exec_info *info)
{
    *info = (dc_exec_info){0};
    info->launches = (uint32_t)get(r);
    info->copies = (uint32_t)get(r);
    info->arena_bytes = get(r);
    info->arena_lower_bound = get(r);
    info->donated = (uint32_t)get(r);
    info->denied = (uint32_t)get(r);
    info->nodes = get(r);
    info->derived_bytes = get(r);
    info->prologue_launches = (uint32_t)get(r);
}

static uint32_t get_kernels(reader *r, dc_kept **kept, dc_packed_kernel **kernel)
{
    dc_arena *a = &r->e->mem;
    const uint32_t n = get_count(r);
    *kept = DC_NEW_ARRAY(a, dc_kept, n);
    *kernel = DC_NEW_ARRAY(a, dc_packed_kernel, n);
    for (uint32_t i = 0; i < n && !r->bad; i++) {
        dc_kept *k = &(*kept)[i];
        (*kernel)[i].text = get_key(r);
        (*kernel)[i].disk = get_key(r);
        k->name = get_text(r);
        k->nest = get_text(r);
        k->nmove = get_count(r);
        k->move = DC_NEW_ARRAY(a, const char *, k->nmove);
        for (uint32_t m = 0; m < k->nmove; m++)
            k->move[m] = get_text(r);
    }
    return n;
}

static void get_fact(reader *r, dc_command_fact *f)
{
    int n = 0;
    for (int i = 0; i < WHERES; i++) {
        f->where[n] = get_line(r);
        n += f->where[n] != NULL;
    }
    f->flops = (int64_t)get(r);
    f->bytes = (int64_t)get(r);
    f->nout = (uint32_t)get(r);
    f->check = (uint32_t)get(r);
    f->value = get_bind(r);
}

static bool is_sound(const reader *r, const dc_command *x, const dc_command_fact *f)
{
    switch (x->kind) {
    case DC_COMMAND_LAUNCH:
        return f->nout <= x->nbind && x->grid >= 0;
    case DC_COMMAND_COPY:
        return x->nbind == 2;
    case DC_COMMAND_CHECK:
        return x->nbind == 1 && f->check < r->e->desc.ncheck;
    case DC_COMMAND_BUNDLE:
        return x->nbind == 0 && x->nbody > 0;
    case DC_COMMAND_LOOP:
    case DC_COMMAND_BRANCH:
        break;
    }
    return false;
}

static void get_item(reader *r, const dc_kept *kept, uint32_t nkernel, uint32_t number,
                     dc_command *x, dc_command_fact *f)
{
    dc_arena *a = &r->e->mem;
    x->kind = (dc_command_kind)get_upto(r, DC_COMMAND_BUNDLE);
    const uint64_t k = get(r);
    const bool launch = x->kind == DC_COMMAND_LAUNCH;
    r->bad = r->bad || (launch && k >= nkernel);
    if (r->bad)
        return;
    x->label = launch ? kept[k].name : labels[x->kind];
    x->grid = (int64_t)get(r);
    x->threads = (uint32_t)get(r);
    x->scratch = get(r);
    x->cost_ns = get(r);
    x->bytes = get(r);
    x->nbody = (uint32_t)get(r);
    x->nbind = get_count(r);
    dc_bind *bind = DC_NEW_ARRAY(a, dc_bind, x->nbind);
    for (uint32_t b = 0; b < x->nbind; b++)
        bind[b] = get_bind(r);
    x->bind = bind;
    x->ndep = get_count(r);
    uint32_t *dep = DC_NEW_ARRAY(a, uint32_t, x->ndep);
    for (uint32_t d = 0; d < x->ndep; d++) {
        dep[d] = (uint32_t)get(r);
        r->bad = r->bad || dep[d] >= number;
    }
    x->dep = dep;
    get_fact(r, f);
    r->bad = r->bad || !is_sound(r, x, f);
}

/* The launches of a bundle follow it. */
static bool bundles_are_sound(const dc_command *x, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (x[i].kind != DC_COMMAND_BUNDLE)
            continue;
        if (x[i].nbody >= n - i)
            return false;
        for (uint32_t k = 1; k <= x[i].nbody; k++)
            if (x[i + k].kind != DC_COMMAND_LAUNCH)
                return false;
    }
    return true;
}

static void get_choices(reader *r, dc_exec *into)
{
    into->nchoice = get_count(r);
    into->choice = DC_NEW_ARRAY(&r->e->mem, dc_exec_choice, into->nchoice);
    for (uint32_t i = 0; i < into->nchoice && !r->bad; i++) {
        dc_exec_choice *c = &into->choice[i];
        c->op = get_text(r);
        c->type = get_text(r);
        c->times_of = get_text(r);
        c->where = get_line(r);
        c->but = get_optional(r);
        c->stored = get(r) != 0;
        c->times = (int64_t)get(r);
        c->again = get_real(r);
        c->moved = get_real(r);
    }
}

static void get_memory(reader *r, dc_exec *into)
{
    dc_arena *a = &r->e->mem;
    into->constant_bytes = get_count_of(r, 1);
    into->constant = dc_arena_alloc(a, into->constant_bytes);
    if (into->constant_bytes > 0)
        memcpy(into->constant, r->at, into->constant_bytes);
    r->at += into->constant_bytes;
    r->left -= into->constant_bytes;
    into->untouched = (uint32_t)get(r);
    into->guard = get(r);
    into->ntemp = get_count(r);
    into->temp = DC_NEW_ARRAY(a, dc_guarded, into->ntemp);
    for (uint32_t t = 0; t < into->ntemp; t++) {
        dc_guarded *g = &into->temp[t];
        g->offset = get(r);
        g->bytes = get(r);
        g->first = (uint32_t)get(r);
        g->last = (uint32_t)get(r);
    }
    into->denied_why = DC_NEW_ARRAY(a, const char *, r->e->desc.ncell);
    into->in_part = DC_NEW_ARRAY(a, bool, r->e->desc.ncell);
    for (uint32_t c = 0; c < r->e->desc.ncell; c++) {
        into->denied_why[c] = get_optional(r);
        into->in_part[c] = get_upto(r, 1) != 0;
    }
}

static void get_derived(reader *r, dc_exec *into)
{
    dc_arena *a = &r->e->mem;
    const dc_exec_desc *d = &r->e->desc;
    into->nprologue = (uint32_t)get_upto(r, into->ncommand);
    into->nderived = into->info.derived = get_count(r);
    into->derived = DC_NEW_ARRAY(a, dc_derived_value, into->nderived);
    for (uint32_t i = 0; i < into->nderived && !r->bad; i++) {
        dc_derived_value *x = &into->derived[i];
        x->op = get_text(r);
        x->type = get_text(r);
        x->where = get_line(r);
        x->offset = get(r);
        x->bytes = get(r);
    }
    into->derived_from = DC_NEW_ARRAY(a, bool, d->nfree + d->ncell);
    for (uint32_t i = 0; into->nderived > 0 && i < d->nfree + d->ncell; i++)
        into->derived_from[i] = get_upto(r, 1) != 0;
}

static void fill(dc_exec *e, const dc_exec *from)
{
    e->info = from->info;
    e->kept = from->kept;
    e->choice = from->choice;
    e->nchoice = from->nchoice;
    e->ncommand = from->ncommand;
    e->command = from->command;
    e->fact = from->fact;
    e->untouched = from->untouched;
    e->guard = from->guard;
    e->ntemp = from->ntemp;
    e->temp = from->temp;
    e->denied_why = from->denied_why;
    e->constant = from->constant;
    e->constant_bytes = from->constant_bytes;
    e->in_part = from->in_part;
    e->nprologue = from->nprologue;
    e->derived = from->derived;
    e->nderived = from->nderived;
    e->derived_from = from->derived_from;
}

void dc_exec_unpack_nothing(dc_exec *e)
{
    fill(e, &(dc_exec){0});
}

bool dc_exec_unpack(dc_exec *e, const void *bytes, size_t n, dc_packed_kernel **kernel)
{
    reader r = {.e = e, .at = bytes, .left = n};
    dc_exec into = {0}; /* only what is packed */
    get_info(&r, &into.info);
    const uint32_t nkernel = get_kernels(&r, &into.kept, kernel);
    into.info.kernels = nkernel;
    into.ncommand = get_count(&r);
    into.command = DC_NEW_ARRAY(&e->mem, dc_command, into.ncommand);
    into.fact = DC_NEW_ARRAY(&e->mem, dc_command_fact, into.ncommand);
    for (uint32_t i = 0; i < into.ncommand && !r.bad; i++)
        get_item(&r, into.kept, nkernel, i, &into.command[i], &into.fact[i]);
    get_choices(&r, &into);
    get_memory(&r, &into);
    get_derived(&r, &into);
    if (r.bad || r.left > 0 || !bundles_are_sound(into.command, into.ncommand))
        return false;
    fill(e, &into);
    e->kernel = DC_NEW_ARRAY(&e->mem, dc_compiled *, nkernel);
    e->nkernel = nkernel; /* what is not NULL has to be released */
    return true;
}
