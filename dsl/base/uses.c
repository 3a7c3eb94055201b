#include "dsl/base/uses.h"

#include "dsl/base/run.h"
#include "dsl/base/trace.h"

#include <stdlib.h>
#include <string.h>

void dc_uses_add(dc_uses *u, dc_handle *h, const char *op, const char *where, bool test)
{
    const dc_uses_watch *watch = h->d->watch;
    if (where == NULL || u->folded)
        return;
    if (watch != NULL && watch->made != NULL)
        watch->made(watch->arg, h, op, where);
    DC_PUSH(u->at, ((dc_use){where, op, u->at.n, 1, test, false}));
    h->use = u->at.n;
}

void dc_uses_add_argument(dc_uses *u, dc_handle *h, const char *what, const char *where)
{
    if (where == NULL || what == NULL || u->folded)
        return;
    DC_PUSH(u->at, ((dc_use){where, what, u->at.n, 1, false, false}));
    h->use = u->at.n;
}

/* Where the results that h is one of are noted; NULL nowhere, or no more. */
static dc_uses *uses_of(const dc_handle *h)
{
    if (h->kind != DC_HANDLE_TRACED)
        return &h->d->watch->lazy;
    for (dc_trace *t = h->d->trace; t != NULL; t = t->outer)
        if (t->serial == h->serial)
            return &t->uses;
    return NULL;
}

void dc_uses_mark(dc_handle *h)
{
    if ((h->kind != DC_HANDLE_TRACED && h->d->watch == NULL) || h->use == 0)
        return;
    dc_uses *u = uses_of(h);
    if (u != NULL && !u->folded && h->use <= u->at.n)
        u->at.at[h->use - 1].used = true;
}

bool dc_uses_is_known(dc_dsl *d, const char *place, const char *what)
{
    enum { NEAR = 8 };
    dc_uses_places *p = &d->places;
    const uintptr_t key = (uintptr_t)place ^ ((uintptr_t)what << 1);
    const size_t hash = (size_t)((key * UINT64_C(0x9E3779B97F4A7C15)) >> 40);
    for (size_t i = 0; i < NEAR; i++) {
        const size_t at = (hash + i) % DC_USES_PLACES;
        if (p->known[at].place == place && p->known[at].what == what)
            return true;
        if (p->known[at].place == NULL) {
            p->known[at].place = place;
            p->known[at].what = what;
            return false;
        }
    }
    return true;
}

typedef struct noted {
    const dc_uses_watch *watch;
    const char *place, *op, *sentence, *hint;
} noted;

static dc_status note_body(dc_job *j, void *arg)
{
    const noted *a = arg;
    DC_UNUSED(j);
    a->watch->note(a->watch->arg, a->place, a->op, a->sentence, a->hint);
    return DC_OK;
}

void dc_uses_note(dc_dsl *d, const char *place, const char *what, const char *op,
                  const char *sentence, const char *hint)
{
    noted a = {d->watch, place, op, sentence, hint};
    if (place == NULL || dc_uses_is_known(d, place, what))
        return;
    if (d->watch != NULL)
        dc_run_once(d, note_body, &a);
    else
        dc_logf(&d->rt->log, DC_CH_NOTE, "%s: %s; %s", place, sentence, hint);
}

void dc_uses_unread(dc_handle *h, const char *op)
{
    if (h->origin == NULL || h->d->places.silent)
        return;
    h->test = op;
    h->unread = true;
}

void dc_uses_read(dc_handle *h)
{
    h->unread = false;
    dc_uses_is_known(h->d, h->origin, h->test);
}

/* The place in "made at train.lua:3" and "result of f, train.lua:3". */
static const char *place_in(const dc_handle *h)
{
    static const char made[] = "made at ", result[] = "result of ";
    const char *origin = h->origin;
    if (strncmp(origin, made, sizeof made - 1) == 0)
        return origin + sizeof made - 1;
    const size_t skip = sizeof result - 1 + strlen(h->test) + 2;
    return h->kind == DC_HANDLE_VALUE && strlen(origin) > skip ? origin + skip : origin;
}

void dc_uses_tell_unread(dc_handle *h)
{
    h->unread = false;
    if (!h->d->places.silent && !dc_uses_is_known(h->d, h->origin, h->test))
        dc_logf(&h->d->rt->log, DC_CH_NOTE,
                "%s: nothing uses the value of %s; as a condition a tensor is always true, "
                "x:item() asks for one value",
                place_in(h), h->test);
}

void dc_uses_finish(dc_dsl *d, bool failed)
{
    dc_handle *h = d->live;
    while (h != NULL && h->next != NULL)
        h = h->next;
    for (; h != NULL && !failed; h = h->prev) /* in the order of the script */
        if (h->unread)
            dc_uses_tell_unread(h);
    d->places.silent = true;
}

void dc_uses_free(dc_uses *u)
{
    DC_VEC_FREE(u->at);
}

static int by_place(const void *x, const void *y)
{
    const dc_use *a = x, *b = y;
    const uintptr_t p = (uintptr_t)a->where, q = (uintptr_t)b->where;
    const uintptr_t v = (uintptr_t)a->op, w = (uintptr_t)b->op;
    return p != q ? (p > q) - (p < q) : (v > w) - (v < w);
}

static int by_order(const void *x, const void *y)
{
    const dc_use *a = x, *b = y;
    return (a->order > b->order) - (a->order < b->order);
}

static void sort(dc_uses *u, int (*order)(const void *, const void *))
{
    if (u->at.n > 1)
        qsort(u->at.at, u->at.n, sizeof *u->at.at, order);
}

static void fold(dc_uses *u)
{
    uint32_t n = 0;
    sort(u, by_place);
    for (uint32_t i = 0; i < u->at.n; i++) {
        const dc_use use = u->at.at[i];
        dc_use *last = n > 0 ? &u->at.at[n - 1] : NULL;
        if (last == NULL || by_place(last, &use) != 0) {
            u->at.at[n++] = use;
            continue;
        }
        last->n += use.n;
        last->used = last->used || use.used;
        last->test = last->test && use.test;
        last->order = use.order < last->order ? use.order : last->order;
    }
    u->at.n = n;
    u->folded = true;
}

static bool is_known(const dc_uses *seen, uint32_t n, const dc_use *use)
{
    return n > 0 && bsearch(use, seen->at.at, n, sizeof *use, by_place) != NULL;
}

void dc_uses_end(dc_uses *u, dc_uses *seen, dc_uses_tell *tell, void *arg)
{
    const uint32_t known = seen->at.n;
    fold(u);
    sort(u, by_order);
    for (uint32_t i = 0; i < u->at.n; i++) {
        const dc_use *use = &u->at.at[i];
        if (is_known(seen, known, use))
            continue;
        if (!use->used)
            tell(arg, use);
        DC_PUSH(seen->at, *use);
    }
    sort(seen, by_place);
    DC_VEC_FREE(u->at);
}
