/*
 * core/walk: lists with loops and branches run as a recursive reference says, in one piece and in
 * slices; malformed lists are refused; shuffled lists compute what the list computed.
 */
#include "core/runtime/walk.h"

#include <stdlib.h>

#include "tests/t.h"
#include "tests/unit/rng.h"
#include "tests/unit/shuffle.h"

enum { MOST = 64, NMEM = 24, TRACE = 60000 };

/* A device of integers: slots do not matter, offsets are indices into mem. */
typedef struct machine {
    const dc_command *command;
    const dc_walk *walk; /* that says how far binds have moved; NULL: `element` does */
    int64_t element[DC_LOOP_DEPTH];
    uint32_t loops;
    int32_t mem[NMEM];
    uint32_t trace[TRACE]; /* what ran: command and what it saw */
    uint32_t ntrace, bundles;
    uint32_t fail_at; /* trace position at which a launch fails; 0 never */
} machine;

static int32_t *at(machine *m, uint32_t i, uint32_t bind)
{
    const dc_command *x = &m->command[i];
    size_t offset = x->bind[bind].offset;
    for (uint32_t k = 0; k < x->nmove; k++)
        if (x->move[k].bind == bind && x->move[k].loop < m->loops)
            offset += x->move[k].step * (size_t)m->element[x->move[k].loop];
    if (m->walk != NULL)
        offset = dc_walk_offset(m->walk, i, bind);
    return &m->mem[offset % NMEM];
}

static void note(machine *m, uint32_t what, int32_t value)
{
    if (m->ntrace + 2 <= TRACE) {
        m->trace[m->ntrace++] = what;
        m->trace[m->ntrace++] = (uint32_t)value;
    }
}

/* mem[bind 0] from all the others and itself, so that order matters. */
static dc_status launch(void *ctx, uint32_t i)
{
    machine *m = ctx;
    uint32_t h = (uint32_t)*at(m, i, 0) * 31 + m->command[i].entry;
    for (uint32_t b = 1; b < m->command[i].nbind; b++)
        h = (h ^ (uint32_t)*at(m, i, b)) * 2654435761u;
    *at(m, i, 0) = (int32_t)(h >> 1);
    note(m, i, *at(m, i, 0));
    return m->fail_at != 0 && m->ntrace >= m->fail_at ? DC_E_DEVICE : DC_OK;
}

static dc_status copy(void *ctx, uint32_t i)
{
    machine *m = ctx;
    *at(m, i, 0) = *at(m, i, 1);
    note(m, i, *at(m, i, 0));
    return DC_OK;
}

/* One value in eight is a fault. */
static dc_status check(void *ctx, uint32_t i, int32_t *out, uint64_t *bits)
{
    machine *m = ctx;
    *bits = i;
    const int32_t x = *at(m, i, 0);
    note(m, i, x);
    *out = x % 8 == 5 ? x : -1;
    return DC_OK;
}

static dc_status test(void *ctx, uint32_t i, bool *out)
{
    machine *m = ctx;
    const int32_t x = *at(m, i, 0);
    note(m, i, x);
    *out = m->command[i].kind == DC_COMMAND_LOOP ? x % 5 != 0 : x % 2 == 0;
    return DC_OK;
}

static dc_status count(void *ctx, uint32_t i, int32_t iteration)
{
    machine *m = ctx;
    *at(m, i, 1) = iteration;
    note(m, i, iteration);
    return DC_OK;
}

static dc_status limit(void *ctx, uint32_t i, int32_t *out)
{
    machine *m = ctx;
    *out = *at(m, i, 2) % 8 - 2;
    note(m, i, *out);
    return DC_OK;
}

static dc_status bundle(void *ctx, uint32_t first, uint32_t n)
{
    machine *m = ctx;
    m->bundles++;
    for (uint32_t i = 0; i < n; i++)
        DC_TRY(launch(m, first + i));
    return DC_OK;
}

static const dc_walk_ops ops = {launch, copy, check, test, count, NULL, limit, launch},
                         together = {launch, copy, check, test, count, bundle, limit, launch};

static int64_t reference(machine *m, uint32_t begin, uint32_t end);

static int64_t reference_loop(machine *m, uint32_t i)
{
    const dc_command *x = &m->command[i];
    int64_t fault = -1, most = x->grid;
    int32_t n = 0;
    bool yes = true;
    if (x->nbind > 2) {
        limit(m, i, &n);
        most = n < most ? n : most;
    }
    m->element[m->loops++] = 0;
    for (int64_t k = 0; k < most && fault < 0; k++) {
        if (x->nbind > 0 && !x->untested)
            test(m, i, &yes);
        if (!yes)
            break;
        m->element[m->loops - 1] = x->reverse ? most - 1 - k : k;
        if (x->nbind > 1)
            count(m, i, (int32_t)m->element[m->loops - 1]);
        fault = reference(m, i + 1, i + 1 + x->nbody);
    }
    m->loops--;
    return fault;
}

/* The reference: recursion. Returns the fault, or -1. */
static int64_t reference(machine *m, uint32_t begin, uint32_t end)
{
    for (uint32_t i = begin; i < end; i += 1 + m->command[i].nbody + m->command[i].nelse) {
        const dc_command *x = &m->command[i];
        const uint32_t body = i + 1, other = body + x->nbody;
        int64_t fault = -1;
        int32_t found = -1;
        bool yes = true;
        switch (x->kind) {
        case DC_COMMAND_HOST:
        case DC_COMMAND_LAUNCH:
            launch(m, i);
            break;
        case DC_COMMAND_COPY:
            copy(m, i);
            break;
        case DC_COMMAND_CHECK:
            check(m, i, &found, &(uint64_t){0});
            fault = found >= 0 ? (int64_t)i : -1;
            break;
        case DC_COMMAND_LOOP:
            fault = reference_loop(m, i);
            break;
        case DC_COMMAND_BRANCH:
            test(m, i, &yes);
            fault = yes ? reference(m, body, other) : reference(m, other, other + x->nelse);
            break;
        case DC_COMMAND_BUNDLE:
            reference(m, body, other);
            break;
        }
        if (fault >= 0)
            return fault;
    }
    return -1;
}

/* ---- random lists ---------------------------------------------------------------------------- */

typedef struct making {
    rng r;
    dc_command command[MOST];
    dc_bind bind[MOST][3];
    dc_bind_move move[MOST][3];
    uint32_t dep[MOST][MOST];
    uint32_t n;
    bool checks;
} making;

static void make_list(making *m, int depth, uint32_t room);

static uint32_t body_of(making *m, int depth, uint32_t room)
{
    const uint32_t before = m->n;
    make_list(m, depth + 1, room);
    return m->n - before;
}

/* Launches that touch memory of their own. */
static uint32_t bundle_of(making *m, uint32_t room)
{
    const uint32_t n = (uint32_t)dc_min_i64(1 + rng_below(&m->r, NMEM), room);
    for (uint32_t k = 0; k < n; k++, m->n++) {
        m->bind[m->n][0] = (dc_bind){0, k};
        m->command[m->n] = (dc_command){
            .kind = DC_COMMAND_LAUNCH, .entry = m->n, .nbind = 1, .bind = m->bind[m->n]};
    }
    return n;
}

static void make_item(making *m, int depth, uint32_t end)
{
    static const dc_command_kind kinds[] = {DC_COMMAND_LAUNCH, DC_COMMAND_HOST,   DC_COMMAND_COPY,
                                            DC_COMMAND_CHECK,  DC_COMMAND_BUNDLE, DC_COMMAND_LOOP,
                                            DC_COMMAND_BRANCH};
    static const int64_t no_numbers;
    const uint32_t i = m->n++;
    dc_command x = {.kind = kinds[rng_below(&m->r, depth < 4 ? 7 : 5)], .bind = m->bind[i]};
    for (int b = 0; b < 3; b++)
        m->bind[i][b] = (dc_bind){0, (size_t)rng_below(&m->r, NMEM)};
    if (x.kind == DC_COMMAND_CHECK && !m->checks)
        x.kind = DC_COMMAND_LAUNCH;
    switch (x.kind) {
    case DC_COMMAND_HOST:
        x.host = &no_numbers;
        x.nhost = 1;
        x.nbind = 2 + (uint32_t)rng_below(&m->r, 2);
        x.entry = i;
        break;
    case DC_COMMAND_LAUNCH:
        x.nbind = 1 + (uint32_t)rng_below(&m->r, 3);
        x.entry = i;
        break;
    case DC_COMMAND_COPY:
        x.nbind = 2;
        break;
    case DC_COMMAND_CHECK:
        x.nbind = 1;
        break;
    case DC_COMMAND_LOOP:
        x.nbind = (uint32_t)rng_below(&m->r, 4);
        x.grid = rng_below(&m->r, 5);
        x.untested = x.nbind > 1 && rng_below(&m->r, 3) == 0;
        x.reverse = x.nbind > 1 && rng_below(&m->r, 3) == 0;
        x.nbody = body_of(m, depth, end - m->n);
        break;
    case DC_COMMAND_BRANCH:
        x.nbind = 1;
        x.nbody = body_of(m, depth, (end - m->n) / 2);
        x.nelse = body_of(m, depth, end - m->n);
        break;
    case DC_COMMAND_BUNDLE:
        x.nbody = bundle_of(m, end - m->n);
        break;
    }
    x.move = m->move[i];
    for (; x.nbind > 0 && x.nmove < 3 && rng_below(&m->r, 3) == 0; x.nmove++)
        m->move[i][x.nmove] =
            (dc_bind_move){(uint32_t)rng_below(&m->r, x.nbind), (uint32_t)rng_below(&m->r, 4),
                           (size_t)rng_below(&m->r, 5)};
    m->command[i] = x;
}

static void make_list(making *m, int depth, uint32_t room)
{
    const uint32_t most = (uint32_t)rng_below(&m->r, 7), end = m->n + room;
    for (uint32_t k = 0; (depth == 0 || k < most) && m->n < end; k++)
        make_item(m, depth, end);
}

static void make(making *m, uint64_t seed, bool checks)
{
    memset(m, 0, sizeof *m);
    m->r.state = seed;
    m->checks = checks;
    make_list(m, 0, 1 + (uint32_t)rng_below(&m->r, MOST));
}

static void start(machine *m, const dc_command *command, uint64_t seed)
{
    rng r = {seed};
    memset(m, 0, sizeof *m);
    m->command = command;
    for (int i = 0; i < NMEM; i++)
        m->mem[i] = (int32_t)(rng_next(&r) >> 40);
}

static bool same(const machine *a, const machine *b)
{
    return a->ntrace == b->ntrace && a->ntrace < TRACE &&
           memcmp(a->trace, b->trace, a->ntrace * sizeof a->trace[0]) == 0 &&
           memcmp(a->mem, b->mem, sizeof a->mem) == 0;
}

/* Pauses `many` times, as early as can be; then to the end. Returns how many slices it took. */
static uint32_t run_sliced(dc_walk *w, const dc_walk_ops *by, machine *m, uint32_t many,
                           dc_run_info *info)
{
    uint32_t slices = 0;
    do {
        const uint32_t before = m->ntrace;
        info->deadline_ns = slices < many ? 1 : 0;
        CHECK_EQ(dc_walk_run(w, NULL, by, m, info), DC_OK);
        slices++;
        if (info->next != 0 && m->ntrace == before && info->fault_command < 0)
            many = many > 0 ? many - 1 : 0; /* an iteration that did nothing */
    } while (info->next != 0 && slices < 100000);
    return slices;
}

static machine want, got;

static const char *said(const dc_job *j)
{
    static char text[700];
    dc_err_render(&j->err, 0, text, sizeof text);
    return text;
}

static void try_list(const dc_command *command, uint32_t n, const dc_walk_ops *by, uint64_t seed)
{
    dc_walk *w = dc_walk_new(command, n);
    dc_run_info info = {0};
    start(&want, command, seed);
    const int64_t fault = reference(&want, 0, n);

    start(&got, command, seed);
    got.walk = w;
    CHECK_EQ(dc_walk_run(w, NULL, by, &got, &info), DC_OK);
    CHECK_EQ(info.fault_command, fault);
    CHECK_EQ(info.next, 0);
    CHECK(same(&want, &got));

    start(&got, command, seed);
    got.walk = w;
    const uint32_t slices = run_sliced(w, by, &got, UINT32_MAX, &info);
    CHECK_EQ(info.fault_command, fault);
    CHECK(same(&want, &got));
    for (uint32_t k = 1; k < slices && k < 40; k++) {
        start(&got, command, seed);
        got.walk = w;
        info = (dc_run_info){0};
        run_sliced(w, by, &got, k, &info);
        CHECK_EQ(info.fault_command, fault);
        if (!CHECK(same(&want, &got)))
            break;
    }
    dc_walk_free(w);
}

static void test_random(uint64_t seed)
{
    static making m;
    uint32_t loops = 0, branches = 0, bundles = 0;
    for (uint64_t k = 0; k < 600; k++) {
        make(&m, seed + k, k % 3 == 0);
        for (uint32_t i = 0; i < m.n; i++) {
            loops += m.command[i].kind == DC_COMMAND_LOOP;
            branches += m.command[i].kind == DC_COMMAND_BRANCH;
        }
        try_list(m.command, m.n, k % 2 == 0 ? &ops : &together, seed ^ k);
        bundles += got.bundles;
    }
    CHECK(loops > 300 && branches > 300 && bundles > 300);
}

/* ---- by hand --------------------------------------------------------------------------------- */

#define LAUNCH(to)                                                       \
    {                                                                    \
        .kind = DC_COMMAND_LAUNCH, .nbind = 1, .bind = (const dc_bind[]) \
        {                                                                \
            {                                                            \
                0, to                                                    \
            }                                                            \
        }                                                                \
    }
#define CHECKED(from)                                                   \
    {                                                                   \
        .kind = DC_COMMAND_CHECK, .nbind = 1, .bind = (const dc_bind[]) \
        {                                                               \
            {                                                           \
                0, from                                                 \
            }                                                           \
        }                                                               \
    }
#define FOR(times, body)                                      \
    {                                                         \
        .kind = DC_COMMAND_LOOP, .grid = times, .nbody = body \
    }
#define WHILE(cond, times, body)                                           \
    {                                                                      \
        .kind = DC_COMMAND_LOOP, .grid = times, .nbody = body, .nbind = 2, \
        .bind = (const dc_bind[])                                          \
        {                                                                  \
            {0, cond},                                                     \
            {                                                              \
                0, 1                                                       \
            }                                                              \
        }                                                                  \
    }
#define IF(cond, yes, no)                                                 \
    {                                                                     \
        .kind = DC_COMMAND_BRANCH, .nbody = yes, .nelse = no, .nbind = 1, \
        .bind = (const dc_bind[])                                         \
        {                                                                 \
            {                                                             \
                0, cond                                                   \
            }                                                             \
        }                                                                 \
    }

static uint32_t launches(const machine *m, uint32_t command)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < m->ntrace; i += 2)
        n += m->trace[i] == command;
    return n;
}

static void run_once(const dc_command *command, uint32_t n, int32_t first, dc_run_info *info)
{
    dc_walk *w = dc_walk_new(command, n);
    start(&got, command, 1);
    got.mem[0] = first;
    CHECK_EQ(dc_walk_run(w, NULL, &ops, &got, info), DC_OK);
    dc_walk_free(w);
}

static void test_counts(void)
{
    const dc_command nested[] = {FOR(7, 4), FOR(0, 1), LAUNCH(2), FOR(3, 1), LAUNCH(3), LAUNCH(4)};
    run_once(nested, DC_COUNTOF(nested), 1, NULL);
    CHECK_EQ(launches(&got, 2), 0);
    CHECK_EQ(launches(&got, 4), 21);
    CHECK_EQ(launches(&got, 5), 1);

    const dc_command empty[] = {FOR(1000, 0), IF(0, 0, 0), FOR(5, 1), FOR(0, 0)};
    run_once(empty, DC_COUNTOF(empty), 1, NULL);
    CHECK_EQ(got.ntrace, 2); /* the test of the branch */
    run_once(NULL, 0, 1, NULL);
    CHECK_EQ(got.ntrace, 0);

    const dc_command loop[] = {WHILE(0, 100, 1), LAUNCH(2), LAUNCH(3)};
    run_once(loop, DC_COUNTOF(loop), 5, NULL); /* 5: false */
    CHECK_EQ(launches(&got, 1), 0);
    CHECK_EQ(launches(&got, 2), 1);
    run_once(loop, DC_COUNTOF(loop), 6, NULL); /* never false: the limit */
    CHECK_EQ(launches(&got, 1), 100);
    CHECK_EQ(got.mem[1], 99);

    const dc_command branch[] = {IF(0, 2, 1), LAUNCH(2), LAUNCH(3), LAUNCH(4), LAUNCH(5)};
    run_once(branch, DC_COUNTOF(branch), 2, NULL);
    CHECK_EQ(launches(&got, 1) + launches(&got, 2), 2);
    CHECK_EQ(launches(&got, 3), 0);
    CHECK_EQ(launches(&got, 4), 1);
    run_once(branch, DC_COUNTOF(branch), 3, NULL);
    CHECK_EQ(launches(&got, 1) + launches(&got, 2), 0);
    CHECK_EQ(launches(&got, 3), 1);
    CHECK_EQ(launches(&got, 4), 1);
}

/* Those of all commands follow one another; the list may go. */
static void test_binds(void)
{
    dc_bind bind[3] = {{1, 64}, {2, 128}, {3, 192}};
    const dc_command list[] = {{.kind = DC_COMMAND_LAUNCH, .nbind = 2, .bind = bind},
                               {.kind = DC_COMMAND_LAUNCH},
                               {.kind = DC_COMMAND_CHECK, .nbind = 1, .bind = bind + 2}};
    dc_walk *w = dc_walk_new(list, DC_COUNTOF(list)), *none = dc_walk_new(NULL, 0);
    memset(bind, 0, sizeof bind);
    CHECK_EQ(dc_walk_bind_count(w), 3);
    CHECK_EQ(dc_walk_binds(w, 0)[1].offset, 128);
    CHECK(dc_walk_binds(w, 2) == dc_walk_binds(w, 0) + 2);
    CHECK_EQ(dc_walk_binds(w, 2)->slot, 3);
    CHECK_EQ(dc_walk_bind_count(none), 0);
    dc_walk_free(w);
    dc_walk_free(none);
}

static void test_faults(void)
{
    dc_job j;
    dc_opts opt = {0};
    dc_job_init(&j, &opt, NULL);
    const dc_command list[] = {FOR(9, 3), IF(1, 1, 1), CHECKED(0), CHECKED(0), LAUNCH(2)};
    dc_run_info info = {0};
    dc_walk *w = dc_walk_new(list, DC_COUNTOF(list));
    start(&got, list, 1);
    got.mem[0] = 13; /* a fault, whichever side runs */
    got.mem[1] = 2;
    CHECK_EQ(dc_walk_run(w, &j, &ops, &got, &info), DC_OK);
    CHECK_EQ(info.fault_command, 2);
    CHECK_EQ(info.fault_value, 13);
    CHECK_EQ(info.next, 0);
    got.mem[1] = 3;
    CHECK_EQ(dc_walk_run(w, &j, &ops, &got, &info), DC_OK); /* the other side, from the begin */
    CHECK_EQ(info.fault_command, 3);
    CHECK_EQ(launches(&got, 4), 0);
    CHECK_EQ(dc_walk_run(w, &j, &ops, &got, NULL), DC_E_DEVICE);
    CHECK(strstr(said(&j), "check 3 of a run found 13") != NULL);
    got.mem[0] = 1;
    CHECK_EQ(dc_walk_run(w, &j, &ops, &got, &info), DC_OK);
    CHECK_EQ(info.fault_command, -1);
    CHECK_EQ(launches(&got, 4), 1);
    dc_walk_free(w);
    dc_job_fini(&j);
}

/* A launch that fails ends the run; the next one begins at the begin. */
static void test_failure(void)
{
    const dc_command list[] = {LAUNCH(2), FOR(5, 1), LAUNCH(3), LAUNCH(4)};
    dc_run_info info = {0};
    dc_walk *w = dc_walk_new(list, DC_COUNTOF(list));
    start(&got, list, 1);
    got.fail_at = 8;
    CHECK_EQ(dc_walk_run(w, NULL, &ops, &got, &info), DC_E_DEVICE);
    CHECK_EQ(got.ntrace, 8);
    CHECK_EQ(info.next, 0);
    start(&got, list, 1);
    CHECK_EQ(dc_walk_run(w, NULL, &ops, &got, &info), DC_OK);
    CHECK_EQ(launches(&got, 0), 1);
    CHECK_EQ(launches(&got, 2), 5);
    CHECK_EQ(launches(&got, 3), 1);
    dc_walk_free(w);
}

static dc_status slow_launch(void *ctx, uint32_t i)
{
    const uint64_t until = dc_clock_ns() + 200000;
    while (dc_clock_ns() < until)
        ;
    return launch(ctx, i);
}

static void test_times(void)
{
    const dc_command list[] = {LAUNCH(2), FOR(3, 1), LAUNCH(3), IF(0, 0, 1), LAUNCH(4)};
    const dc_walk_ops slow = {slow_launch, copy, check, test, count, bundle, limit, launch};
    uint64_t ns[5] = {0}, times[5] = {0};
    const dc_run_watch watch = {.ns = ns, .runs = times};
    dc_run_info info = {.watch = &watch};
    dc_walk *w = dc_walk_new(list, DC_COUNTOF(list));
    start(&got, list, 1);
    got.mem[0] = 2;
    CHECK_EQ(dc_walk_run(w, NULL, &slow, &got, &info), DC_OK);
    CHECK(times[0] == 1 && times[1] == 1 && times[2] == 3 && times[3] == 1 && times[4] == 0);
    CHECK(ns[0] >= 200000);
    CHECK(ns[2] >= 600000);
    CHECK_EQ(ns[4], 0);
    /* A deadline that lies in the second launch. */
    info = (dc_run_info){.deadline_ns = dc_clock_ns() + 300000};
    CHECK_EQ(dc_walk_run(w, NULL, &slow, &got, &info), DC_OK);
    CHECK(info.next != 0);
    info.deadline_ns = 0;
    CHECK_EQ(dc_walk_run(w, NULL, &slow, &got, &info), DC_OK);
    CHECK_EQ(info.next, 0);
    CHECK_EQ(launches(&got, 2), 6);
    dc_walk_free(w);
}

/* ---- refused lists --------------------------------------------------------------------------- */

typedef struct listing {
    const dc_command *command;
    uint32_t n;
} listing;

static dc_status make_walk(dc_job *j, void *arg)
{
    const listing *l = arg;
    DC_UNUSED(j);
    dc_walk_free(dc_walk_new(l->command, l->n));
    return DC_OK;
}

static void refused(const dc_command *command, uint32_t n, const char *part)
{
    dc_job j;
    dc_opts opt = {0};
    dc_job_init(&j, &opt, NULL);
    CHECK_EQ(dc_protect(&j, make_walk, &(listing){command, n}), DC_E_BUG);
    if (!CHECK(strstr(said(&j), part) != NULL))
        printf("said: %s\n", said(&j));
    dc_job_fini(&j);
}

static void test_refusals(void)
{
    static const dc_bind b[4];
    static const uint32_t zero[] = {0}, one[] = {1}, two[] = {2};
    refused((dc_command[]){FOR(1, 1)}, 1, "leave its list");
    refused((dc_command[]){FOR(1, 1), FOR(1, 1), LAUNCH(0)}, 3, "leave its list");
    refused((dc_command[]){IF(0, UINT32_MAX, 2), LAUNCH(0)}, 2, "leave its list");
    refused((dc_command[]){{.kind = DC_COMMAND_COPY, .nbind = 1, .bind = b}}, 1, "1 binds");
    refused((dc_command[]){{.kind = DC_COMMAND_CHECK, .nbind = 3, .bind = b}}, 1, "3 binds");
    refused((dc_command[]){{.kind = DC_COMMAND_CHECK, .nbind = 2, .bytes = 9, .bind = b}}, 1,
            "2 binds");
    refused((dc_command[]){{.kind = DC_COMMAND_BRANCH}}, 1, "0 binds");
    refused((dc_command[]){{.kind = DC_COMMAND_LOOP, .nbind = 4, .bind = b}}, 1, "4 binds");
    refused((dc_command[]){{.kind = DC_COMMAND_LOOP, .nbind = 1, .bind = b, .reverse = true}}, 1,
            "1 binds");
    refused((dc_command[]){{.nbind = 1, .bind = b, .nmove = 1, .move = &(dc_bind_move){1, 0, 4}}},
            1, "moves bind 1 with loop 0");
    refused((dc_command[]){{.kind = DC_COMMAND_LAUNCH, .grid = -1}}, 1, "grid -1");
    refused((dc_command[]){{.kind = DC_COMMAND_LAUNCH, .nbody = 1}, LAUNCH(0)}, 2, "has a body");
    refused((dc_command[]){{.kind = DC_COMMAND_LOOP, .nelse = 1}, LAUNCH(0)}, 2, "has an else");
    refused((dc_command[]){{.ndep = 1, .dep = zero}}, 1, "waits for 0");
    refused((dc_command[]){{0}, {.ndep = 1, .dep = one}}, 2, "waits for 1");
    refused((dc_command[]){FOR(2, 1), LAUNCH(0), {.ndep = 1, .dep = one}}, 3, "waits for 1");
    refused((dc_command[]){{0}, FOR(2, 1), {.ndep = 1, .dep = zero}}, 3, "waits for 0");
    refused((dc_command[]){{0}, FOR(2, 1), LAUNCH(0), {.ndep = 1, .dep = two}}, 4, "waits for 2");
    refused((dc_command[]){{.kind = DC_COMMAND_BUNDLE, .nbind = 1, .bind = b}}, 1, "1 binds");
    refused((dc_command[]){{.kind = DC_COMMAND_BUNDLE, .nbody = 1}, FOR(1, 0)}, 2, "of a bundle");
    refused((dc_command[]){{.kind = DC_COMMAND_BUNDLE, .nbody = 2},
                           LAUNCH(0),
                           {.ndep = 1, .dep = zero}},
            3, "of a bundle");
    /* and these are fine */
    const dc_command good[] = {
        LAUNCH(0), FOR(2, 2), LAUNCH(1), {.ndep = 1, .dep = zero}, {.ndep = 1, .dep = one}};
    dc_walk_free(dc_walk_new(good, DC_COUNTOF(good)));
}

/* ---- shuffled lists -------------------------------------------------------------------------- */

/* Bit k: some command of the unit may touch mem[k]; `written` the same for changes. */
static void touched_by(const dc_command *command, uint32_t i, uint32_t *touched, uint32_t *written)
{
    const dc_command *x = &command[i];
    for (uint32_t b = 0; b < x->nbind; b++)
        *touched |= 1u << x->bind[b].offset;
    if (x->kind == DC_COMMAND_LAUNCH || x->kind == DC_COMMAND_HOST || x->kind == DC_COMMAND_COPY)
        *written |= 1u << x->bind[0].offset;
    if (x->kind == DC_COMMAND_LOOP && x->nbind > 1)
        *written |= 1u << x->bind[1].offset;
    for (uint32_t k = i + 1; k < i + 1 + x->nbody + x->nelse; k++)
        touched_by(command, k, touched, written);
}

static void find_deps(making *m, uint32_t begin, uint32_t end)
{
    for (uint32_t i = begin; i < end; i += 1 + m->command[i].nbody + m->command[i].nelse) {
        dc_command *x = &m->command[i];
        uint32_t touched = 0, written = 0;
        touched_by(m->command, i, &touched, &written);
        x->dep = m->dep[i];
        for (uint32_t k = begin; k < i; k += 1 + m->command[k].nbody + m->command[k].nelse) {
            uint32_t t = 0, v = 0;
            touched_by(m->command, k, &t, &v);
            if ((t & written) != 0 || (v & touched) != 0)
                m->dep[i][x->ndep++] = k - begin;
        }
        find_deps(m, i + 1, i + 1 + x->nbody);
        find_deps(m, i + 1 + x->nbody, i + 1 + x->nbody + x->nelse);
    }
}

static bool runs_alike(const dc_command *a, const dc_command *b, uint32_t n, uint64_t seed)
{
    dc_walk *w = dc_walk_new(a, n), *v = dc_walk_new(b, n);
    start(&want, a, seed);
    start(&got, b, seed);
    CHECK_EQ(dc_walk_run(w, NULL, &ops, &want, NULL), DC_OK);
    CHECK_EQ(dc_walk_run(v, NULL, &ops, &got, NULL), DC_OK);
    dc_walk_free(w);
    dc_walk_free(v);
    return memcmp(want.mem, got.mem, sizeof want.mem) == 0;
}

static void test_shuffled(uint64_t seed)
{
    static making m;
    uint32_t order[MOST], moved = 0, caught = 0, illegal = 0;
    dc_arena a = {0};
    for (uint64_t k = 0; k < 300; k++) {
        make(&m, seed + k, false);
        find_deps(&m, 0, m.n);
        const dc_command *other = shuffle_items(&a, m.command, m.n, seed + 3 * k, order);
        uint64_t seen = 0;
        for (uint32_t i = 0; i < m.n; i++) {
            moved += order[i] != i;
            seen |= (uint64_t)1 << order[i];
            CHECK(other[i].kind == m.command[order[i]].kind &&
                  other[i].bind == m.command[order[i]].bind);
        }
        CHECK_EQ(__builtin_popcountll(seen), m.n);
        CHECK(shuffle_is_legal(m.command, m.n, order));
        CHECK(runs_alike(m.command, other, m.n, seed ^ k));
        for (uint32_t i = 0; i < m.n; i++) /* and a list that says too little is found out */
            m.command[i].ndep = 0;
        other = shuffle_items(&a, m.command, m.n, seed + 3 * k, order);
        CHECK(shuffle_is_legal(m.command, m.n, order));
        find_deps(&m, 0, m.n);
        illegal += !shuffle_is_legal(m.command, m.n, order);
        caught += !runs_alike(m.command, other, m.n, seed ^ k);
    }
    CHECK(moved > 1000);
    CHECK(caught > 100);
    CHECK(illegal >= caught);
    dc_arena_free(&a);
}

int main(int argc, char **argv)
{
    const uint64_t seed = rng_seed(argc, argv, dc_clock_ns());
    test_counts();
    test_binds();
    test_faults();
    test_failure();
    test_times();
    test_refusals();
    test_random(seed);
    test_shuffled(seed);
    return t_done();
}
