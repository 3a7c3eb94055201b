/* What an exchange is, told to the other members, so that those who disagree hear of it; and exchanges made of others. */
#define _POSIX_C_SOURCE 200809L /* strnlen */
#include "core/world/world_impl.h"

#include <stdio.h>
#include <string.h>

/* ---- heads ------------------------------------------------------------------------------------------- */

static uint64_t mix(uint64_t h, int64_t v)
{
    return dc_hash_mix(h, (uint64_t)v);
}

/* Both ends of a message have lines of their own, and arrays; only what is sent has to agree. */
static uint64_t digest_of(const dc_exchange *x, int64_t elements)
{
    const bool pair = x->kind == DC_SEND || x->kind == DC_RECV;
    uint64_t h = mix(mix(1, pair ? DC_SEND : x->kind), x->dtype);
    if (pair)
        return mix(dc_hash_mix(h, x->shape), elements);
    if (x->kind == DC_ALL_REDUCE || x->kind == DC_REDUCE_SCATTER)
        h = mix(h, x->combine);
    if (x->kind == DC_BROADCAST)
        h = mix(h, x->peer);
    h = mix(dc_hash_mix(h, x->shape), x->axes.mask);
    for (uint32_t a = 0; a < x->axes.naxis; a++)
        h = mix(h, x->axes.size[a]);
    for (uint32_t i = 0; i < x->n; i++)
        h = mix(mix(h, x->at[i].outer), x->at[i].inner);
    return dc_hash_bytes(h, x->label, strlen(x->label));
}

static int64_t elements_of(const dc_exchange *x)
{
    int64_t n = 0;
    for (uint32_t i = 0; i < x->n; i++)
        n += x->at[i].outer * x->at[i].inner;
    return n;
}

void dc_exchange_name(const dc_exchange *x, char *out, size_t size)
{
    snprintf(out, size, "%s%s%s", x->label, x->where != NULL ? ", " : "",
             x->where != NULL ? x->where : "");
}

/* Of an exchange, or of what is said about one: that differs from it, and among itself. */
static void fill_head(dc_head *head, const dc_exchange *said)
{
    const dc_exchange *x = said->about != NULL ? said->about : said;
    const bool aside = said->about != NULL;
    head->elements = elements_of(x);
    head->digest = digest_of(x, head->elements);
    if (aside)
        head->digest = mix(mix(head->digest, 1 + said->kind), elements_of(said));
    head->dtype = (int32_t)x->dtype;
    head->kind = (int32_t)x->kind;
    head->how = x->kind == DC_BROADCAST ? x->peer : (int32_t)x->combine;
    head->aside = aside;
    head->number = x->kind == DC_SEND || x->kind == DC_RECV ? 0 : (int64_t)x->shape;
    dc_exchange_name(x, head->label, sizeof head->label);
}

dc_call dc_call_of(dc_world *w, const dc_exchange *x, const dc_team *team, dc_job *job)
{
    dc_call c = {.w = w, .x = x, .team = team, .job = job, .size = dc_dtype_size(x->dtype)};
    c.elements = elements_of(x);
    fill_head(&c.head, x);
    return c;
}

bool dc_call_run(dc_call *c)
{
    if (dc_world_failed(c->w))
        return false;
    return c->team->nlocal == c->team->n ? dc_shared_run(c) : dc_messages_run(c);
}

/* What the kind of an exchange leaves open. */
static void print_how(const dc_head *head, char *out, size_t size)
{
    static const char *const combines[] = {"", ", product", ", maximum", ", minimum"};
    out[0] = '\0';
    if (head->kind == DC_BROADCAST)
        snprintf(out, size, ", from rank %d", (int)head->how);
    else if ((head->kind == DC_ALL_REDUCE || head->kind == DC_REDUCE_SCATTER) &&
             (uint32_t)head->how < DC_COUNTOF(combines))
        snprintf(out, size, "%s", combines[head->how]);
}

/* "all_reduce f32 x 1000, maximum, a.lua:3": the label with what else is known behind its first word. */
static void print_head(const dc_head *head, char *out, size_t size)
{
    char how[40];
    print_how(head, how, sizeof how);
    const size_t n = strnlen(head->label, sizeof head->label); /* it may be another rank's */
    const char *comma = memchr(head->label, ',', n);
    const size_t word = comma != NULL ? (size_t)(comma - head->label) : n;
    const bool known = head->dtype >= 0 && head->dtype < DC_DTYPE__ALL;
    snprintf(out, size, "%.*s %s x %lld%s%.*s", (int)(word < n ? word : n), head->label,
             known ? dc_dtype_name((dc_dtype)head->dtype) : "?", (long long)head->elements, how,
             (int)(word < n ? n - word : 0), head->label + (word < n ? word : n));
}

/* One has come to its end, and the other waits for it. */
static bool fail_at_end(dc_world *w, int ended, int waits, const char *in)
{
    return dc_world_break(w, false, "rank %d (%s) has ended, and rank %d waits for it in %s", ended,
                          dc_world_host(w, ended), waits, in);
}

/* What their texts do not say. */
static const char *how_they_differ(const dc_head *a, const dc_head *b, bool texts)
{
    const bool sent =
        (a->kind == DC_SEND && b->kind == DC_RECV) || (a->kind == DC_RECV && b->kind == DC_SEND);
    if (sent && a->dtype == b->dtype && a->elements == b->elements)
        return ": of other shapes";
    if (texts && a->aside != b->aside)
        return ": on devices of other kinds";
    if (texts && a->number != b->number)
        return ": not the same one of the function";
    return texts ? ": of other arrays, or over other axes" : "";
}

bool dc_call_agrees(dc_call *c, const dc_head *other, int rank)
{
    char here[DC_TEXT_BYTES / 2], there[DC_TEXT_BYTES / 2];
    if (other->digest == c->head.digest)
        return true;
    const int me = c->w->rank;
    print_head(&c->head, here, sizeof here);
    print_head(other, there, sizeof there);
    if (other->end != c->head.end)
        return other->end != 0 ? fail_at_end(c->w, rank, me, here)
                               : fail_at_end(c->w, me, rank, there);
    const bool before = me < rank;
    return dc_world_break(c->w, true, "ranks disagree: rank %d: %s; rank %d: %s%s",
                          before ? me : rank, before ? here : there, before ? rank : me,
                          before ? there : here,
                          how_they_differ(&c->head, other, strcmp(here, there) == 0));
}

/* ---- exchanges made of others ------------------------------------------------------------------------ */

static dc_exchange among_all(const dc_world *w, const dc_job *j, dc_exchange_kind kind,
                             dc_dtype dtype, const char *label, const dc_transfer *at)
{
    return (dc_exchange){.kind = kind,
                         .where = j->meeting,
                         .dtype = dtype,
                         .axes = {.naxis = 1, .mask = 1, .size = {w->size}},
                         .label = label,
                         .n = 1,
                         .at = at};
}

dc_status dc_world_barrier(dc_world *w, dc_job *j, const char *what)
{
    uint8_t here = 1, all;
    const dc_transfer at = {&here, &all, 1, 1};
    const dc_exchange x = among_all(w, j, DC_ALL_REDUCE, DC_U8, what, &at);
    return dc_world_run(w, j, &x);
}

enum { SAID = 1024 }; /* bytes of a text that others get */

/* From the first line that differs on: so much of both texts is the same. */
static size_t same_lines(const char *a, const char *b)
{
    size_t line = 0;
    for (size_t i = 0; a[i] != '\0' && a[i] == b[i]; i++)
        if (a[i] == '\n')
            line = i + 1;
    return line;
}

/* A line, without its end. */
static int line_of(const char *text)
{
    const size_t n = strcspn(text, "\n");
    return n < 150 ? (int)n : 150;
}

/* What two ranks say, which all hear. */
static dc_status tell_difference(dc_world *w, dc_job *j, const char *what, const char *text,
                                 int rank)
{
    char said[2][SAID] = {"", ""};
    for (int i = 0; i < 2; i++) {
        const dc_transfer at = {said[i], said[i], 1, SAID};
        dc_exchange x = among_all(w, j, DC_BROADCAST, DC_U8, what, &at);
        x.peer = i == 0 ? 0 : rank;
        if (w->rank == x.peer)
            snprintf(said[i], sizeof said[i], "%s", text);
        DC_TRY(dc_world_run(w, j, &x));
        said[i][SAID - 1] = '\0';
    }
    const size_t from = same_lines(said[0], said[1]);
    const char *a = said[0] + from, *b = said[1] + from;
    if (strcmp(said[0], said[1]) == 0)
        return dc_failf(j, DC_ERR_WORLD, NULL,
                        "%s differs between ranks: rank 0 and rank %d both have '%.*s'", what, rank,
                        line_of(text), text);
    return dc_failf(j, DC_ERR_WORLD, NULL,
                    "%s differs between ranks: rank 0 has '%.*s', rank %d '%.*s'", what, line_of(a),
                    a, rank, line_of(b), b);
}

dc_status dc_world_agree(dc_world *w, dc_job *j, const char *what, uint64_t digest,
                         const char *text)
{
    uint64_t *all = dc_arena_alloc(&j->scratch, (size_t)w->size * sizeof *all);
    const dc_transfer at = {&digest, all, 1, 1};
    const dc_exchange x = among_all(w, j, DC_ALL_GATHER, DC_U64, what, &at);
    DC_TRY(dc_world_run(w, j, &x));
    for (int r = 1; r < w->size; r++)
        if (all[r] != all[0])
            return tell_difference(w, j, what, text, r);
    return DC_OK;
}
