/* A recording as a CUDA graph: a node for each command, edges where one waits for another. */
#include "backends/cuda/cu_impl.h"
#include "core/runtime/walk.h"

#include <string.h>

enum { WORD = sizeof(uint64_t), STOP_ALIGN = 64, MOST_COPY_GROUPS = 1024 };

void dc_cu_graph_free(dc_recording *r)
{
    if (r->exec != NULL) {
        r->cu->lib.fn.GraphExecDestroy(r->exec);
        atomic_fetch_sub(&r->cu->objects, 1);
    }
    r->exec = NULL;
    dc_cu_give(r->cu, r->mem);
    r->mem = 0;
    r->any_sent = false;
}

bool dc_cu_graph_fits(const dc_recording *r, void *const *slot, size_t block_bytes)
{
    if (r->exec == NULL || r->block_bytes != block_bytes)
        return false;
    for (uint32_t i = 0; i < r->nslot; i++)
        if (!r->moves[i] && slot[i] != r->at[i])
            return false;
    return true;
}

/* --- words -------------------------------------------------------------------------------------- */

/* Slots that are told to move, those that have moved, and numbers in the argument block: their binds are words. */
static void find_words(dc_recording *r, void *const *slot, const bool *moves, size_t block_bytes)
{
    r->nword = r->checks > 0;
    for (uint32_t i = 0; i < r->nslot; i++) {
        const bool number = i > 0 && (uintptr_t)slot[i] - (uintptr_t)slot[0] < block_bytes;
        r->moves[i] |=
            number || (moves != NULL && moves[i]) || (r->builds > 0 && slot[i] != r->at[i]);
        r->at[i] = slot[i];
    }
    for (uint32_t i = 0; i < r->nstep; i++)
        for (uint32_t b = 0; b < r->step[i].nbind; b++) {
            const dc_bind *x = &dc_walk_binds(r->walk, i)[b];
            const uint32_t n = r->step[i].first + b;
            r->word_of[n] = 0;
            if (!r->moves[x->slot])
                continue;
            r->word[r->nword++] = (dc_cu_word){x->slot, x->offset};
            r->word_of[n] = r->nword;
        }
}

static size_t stop_at(const dc_recording *r)
{
    return dc_align_up(r->sent_bytes, STOP_ALIGN);
}

static dc_status take_memory(dc_recording *r, dc_job *j, size_t block_bytes)
{
    const size_t bytes = dc_align_up(r->nword * WORD, STOP_ALIGN) + block_bytes;
    if (r->sent == NULL || bytes > r->send_room) { /* which may unwind */
        r->sent = NULL;
        r->send = dc_arena_alloc(&r->own, bytes);
        r->sent = dc_arena_alloc(&r->own, bytes);
        r->send_room = bytes;
    }
    r->block_bytes = block_bytes;
    r->sent_bytes = bytes;
    return dc_cu_take(r->cu, j, stop_at(r) + WORD, &r->mem);
}

/* The parameter of a kernel that stands for a word. */
static uint64_t word_parameter(const dc_recording *r, uint32_t word)
{
    return (r->mem + word * WORD) | UINT64_C(1) << 63;
}

/* That which stands for a bind. */
static uint64_t parameter(const dc_recording *r, uint32_t step, uint32_t bind)
{
    const uint32_t word = r->word_of[r->step[step].first + bind];
    const dc_bind *x = &dc_walk_binds(r->walk, step)[bind];
    if (word > 0)
        return word_parameter(r, word - 1);
    return dc_cu_at((const char *)r->at[x->slot] + x->offset);
}

/* --- nodes -------------------------------------------------------------------------------------- */

typedef struct building {
    dc_recording *r;
    dc_job *j;
    cu_graph graph;
    cu_node *dep;
    uint64_t *value; /* of parameters */
    void **argument;
    uint32_t checks; /* so far */
} building;

static void destroy_graph(void *what)
{
    const building *g = what;
    if (g->graph != NULL)
        g->r->cu->lib.fn.GraphDestroy(g->graph);
}

static uint64_t stop_of(const building *g, const dc_cu_step *s)
{
    return s->sets && g->checks > 0 ? g->r->mem + stop_at(g->r) : 0;
}

static dc_status add_kernel(building *g, dc_cu_step *s, cu_function fn, unsigned groups,
                            unsigned threads)
{
    dc_cu *cu = g->r->cu;
    const cu_kernel_node node = {.fn = fn,
                                 .grid = {groups, 1, 1},
                                 .block = {threads, 1, 1},
                                 .shared = s->shared,
                                 .argument = g->argument};
    for (uint32_t d = 0; d < s->ndep; d++)
        g->dep[d] = g->r->step[s->dep[d]].node;
    DC_CU_TRY(cu, g->j, s->label, GraphAddKernelNode(&s->node, g->graph, g->dep, s->ndep, &node));
    return DC_OK;
}

static dc_status add_nothing(building *g, dc_cu_step *s)
{
    for (uint32_t d = 0; d < s->ndep; d++)
        g->dep[d] = g->r->step[s->dep[d]].node;
    DC_CU_TRY(g->r->cu, g->j, s->label, GraphAddEmptyNode(&s->node, g->graph, g->dep, s->ndep));
    return DC_OK;
}

static dc_status add_copy(building *g, dc_cu_step *s)
{
    const size_t each = DC_CU_COPY_THREADS * 16;
    const size_t groups = (s->bytes + each - 1) / each;
    g->value[4] = s->bytes;
    return add_kernel(g, s, g->r->cu->copy_kernel,
                      (unsigned)(groups < MOST_COPY_GROUPS ? groups : MOST_COPY_GROUPS),
                      DC_CU_COPY_THREADS);
}

static dc_status add_check(building *g, uint32_t i, dc_cu_step *s)
{
    dc_recording *r = g->r;
    const uint32_t numbers[] = {s->nbind > 1 ? (uint32_t)s->bytes : 0, i + 1, g->checks == 0};
    g->value[1] = r->mem + stop_at(r);
    g->value[3] = s->nbind > 1 ? g->value[3] : g->value[2];
    g->value[4] = word_parameter(r, 0);
    for (size_t n = 0; n < DC_COUNTOF(numbers); n++)
        memcpy(&g->value[5 + n], &numbers[n], sizeof numbers[n]);
    g->checks++;
    return add_kernel(g, s, r->cu->check_kernel, 1, DC_CU_CHECK_THREADS);
}

static dc_status add_step(building *g, uint32_t i)
{
    dc_cu_step *s = &g->r->step[i];
    g->value[0] = 0;
    g->value[1] = stop_of(g, s);
    for (uint32_t b = 0; b < s->nbind; b++)
        g->value[2 + b] = parameter(g->r, i, b);
    switch (s->kind) {
    case DC_COMMAND_LAUNCH:
        return s->grid > 0 ? add_kernel(g, s, s->fn, s->grid, s->threads) : add_nothing(g, s);
    case DC_COMMAND_COPY:
        return s->bytes > 0 ? add_copy(g, s) : add_nothing(g, s);
    case DC_COMMAND_CHECK:
        return add_check(g, i, s);
    case DC_COMMAND_HOST:
    case DC_COMMAND_LOOP:
    case DC_COMMAND_BRANCH:
    case DC_COMMAND_BUNDLE:
        break;
    }
    DC_BUG("a command of kind %d in a graph", s->kind);
}

static dc_status add_steps(building *g)
{
    dc_cu *cu = g->r->cu;
    cu_graph_exec exec = NULL;
    DC_CU_TRY(cu, g->j, "a graph", GraphCreate(&g->graph, 0));
    for (uint32_t i = 0; i < g->r->nstep; i++)
        DC_TRY(add_step(g, i));
    DC_CU_TRY_ROOM(cu, g->j, "a graph", GraphInstantiate(&exec, g->graph, 0));
    g->r->exec = exec;
    atomic_fetch_add(&cu->objects, 1);
    DC_CU_TRY_ROOM(cu, g->j, "a graph", GraphUpload(g->r->exec, cu->stream));
    return DC_OK;
}

static building *begin_building(dc_recording *r, dc_job *j)
{
    building *g = dc_arena_alloc(&j->scratch, sizeof *g);
    uint32_t ndep = 0, nvalue = 8; /* of a check */
    for (uint32_t i = 0; i < r->nstep; i++) {
        const dc_cu_step *s = &r->step[i];
        ndep = s->ndep > ndep ? s->ndep : ndep;
        nvalue = s->nbind + 2 > nvalue ? s->nbind + 2 : nvalue;
    }
    *g = (building){.r = r,
                    .j = j,
                    .dep = DC_NEW_ARRAY(&j->scratch, cu_node, ndep),
                    .value = DC_NEW_ARRAY(&j->scratch, uint64_t, nvalue),
                    .argument = DC_NEW_ARRAY(&j->scratch, void *, nvalue)};
    for (uint32_t n = 0; n < nvalue; n++)
        g->argument[n] = &g->value[n];
    return g;
}

dc_status dc_cu_graph_build(dc_recording *r, dc_job *j, void *const *slot, const bool *moves,
                            size_t block_bytes)
{
    const dc_mark mark = dc_arena_mark(&j->scratch);
    DC_TRY(dc_cu_settle(r->cu, j, "a graph")); /* the one there was may be running */
    dc_cu_graph_free(r);
    find_words(r, slot, moves, block_bytes);
    DC_TRY(take_memory(r, j, block_bytes));
    building *g = begin_building(r, j);
    dc_job_defer(j, destroy_graph, g);
    const dc_status status = add_steps(g);
    dc_job_keep(j, g);
    destroy_graph(g);
    dc_arena_rewind(&j->scratch, mark);
    r->builds++;
    if (status != DC_OK)
        dc_cu_graph_free(r);
    return status;
}
