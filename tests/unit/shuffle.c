#include "tests/unit/shuffle.h"

#include "tests/unit/rng.h"

typedef struct shuffling {
    dc_arena *mem;
    const dc_command *command;
    rng r;
    uint32_t *order; /* by new place: the old one */
    uint32_t *place; /* by old place: the new one */
    uint32_t at;     /* next new place */
} shuffling;

static uint32_t unit_size(const dc_command *x)
{
    return 1 + x->nbody + x->nelse;
}

/* The unit that begins at `i` of a list beginning at `begin` waits for nothing that is not done. */
static bool is_ready(const dc_command *command, uint32_t begin, uint32_t i, const bool *done)
{
    for (uint32_t d = 0; d < command[i].ndep; d++)
        if (!done[begin + command[i].dep[d]])
            return false;
    return true;
}

static void place_list(shuffling *s, uint32_t begin, uint32_t end);

static void place_unit(shuffling *s, uint32_t i)
{
    const dc_command *x = &s->command[i];
    s->order[s->at] = i;
    s->place[i] = s->at++;
    place_list(s, i + 1, i + 1 + x->nbody);
    place_list(s, i + 1 + x->nbody, i + unit_size(x));
}

/* Again and again one of those that are ready. */
static void place_list(shuffling *s, uint32_t begin, uint32_t end)
{
    bool *done = DC_NEW_ARRAY(s->mem, bool, end + 1);
    for (;;) {
        uint32_t nready = 0, chosen = 0;
        for (uint32_t i = begin; i < end; i += unit_size(&s->command[i]))
            if (!done[i] && is_ready(s->command, begin, i, done) &&
                rng_below(&s->r, (int)++nready) == 0)
                chosen = i;
        if (nready == 0)
            return;
        done[chosen] = true;
        place_unit(s, chosen);
    }
}

/* Deps count from the begin of their list, old and new. */
static void renumber(const shuffling *s, dc_command *out, uint32_t begin, uint32_t end)
{
    for (uint32_t i = begin; i < end; i += unit_size(&s->command[i])) {
        const dc_command *x = &s->command[i];
        uint32_t *dep = DC_NEW_ARRAY(s->mem, uint32_t, x->ndep);
        uint32_t first = UINT32_MAX;
        for (uint32_t k = begin; k < end; k += unit_size(&s->command[k]))
            first = s->place[k] < first ? s->place[k] : first;
        for (uint32_t d = 0; d < x->ndep; d++)
            dep[d] = s->place[begin + x->dep[d]] - first;
        out[s->place[i]] = *x;
        out[s->place[i]].dep = dep;
        renumber(s, out, i + 1, i + 1 + x->nbody);
        renumber(s, out, i + 1 + x->nbody, i + unit_size(x));
    }
}

dc_command *shuffle_items(dc_arena *a, const dc_command *command, uint32_t n, uint64_t seed,
                          uint32_t *order)
{
    shuffling s = {.mem = a, .command = command, .r = {seed}};
    s.order = order != NULL ? order : DC_NEW_ARRAY(a, uint32_t, n + 1);
    s.place = DC_NEW_ARRAY(a, uint32_t, n + 1);
    dc_command *out = DC_NEW_ARRAY(a, dc_command, n + 1);
    place_list(&s, 0, n);
    renumber(&s, out, 0, n);
    return out;
}

static bool is_unit(const dc_command *command, uint32_t begin, uint32_t end, uint32_t unit)
{
    uint32_t i = begin;
    while (i < end && i < unit)
        i += unit_size(&command[i]);
    return i == unit && i < end;
}

static bool stands_in(const uint32_t *order, uint32_t begin, uint32_t end, uint32_t i)
{
    for (uint32_t k = begin; k < end; k++)
        if (order[k] == i)
            return true;
    return false;
}

/* The list [begin, end) stands at the same number of places from `at` on. */
static bool list_is_legal(const dc_command *command, uint32_t begin, uint32_t end,
                          const uint32_t *order, uint32_t at)
{
    const uint32_t first = at;
    while (at < first + (end - begin)) {
        const uint32_t i = order[at];
        if (!is_unit(command, begin, end, i) || stands_in(order, first, at, i))
            return false;
        for (uint32_t d = 0; d < command[i].ndep; d++)
            if (!stands_in(order, first, at, begin + command[i].dep[d]))
                return false;
        const uint32_t body = i + 1, other = body + command[i].nbody;
        if (!list_is_legal(command, body, other, order, at + 1) ||
            !list_is_legal(command, other, other + command[i].nelse, order,
                           at + 1 + command[i].nbody))
            return false;
        at += unit_size(&command[i]);
    }
    return true;
}

bool shuffle_is_legal(const dc_command *command, uint32_t n, const uint32_t *order)
{
    return list_is_legal(command, 0, n, order, 0);
}
