/*
 * Graphs. A launch takes a copy of the parameters as they are, and runs its nodes one by one, each
 * time any of those whose dependencies have run (with CUDA_STANDIN_STREAMS=eager the first of them).
 */
#include <stdlib.h>
#include <string.h>

#include "standin.h"

typedef struct node {
    handle h;
    command c;
    struct graph *g;
    unsigned index, ndep;
    struct node **dep;
} node;

typedef struct graph {
    handle h;
    node **at;
    unsigned n, room;
} graph;

typedef struct graph_exec {
    handle h;
    command *c;
    node **from;
    unsigned n, ndep;
    unsigned (*dep)[2]; /* what waits, for what: indices */
} graph_exec;

struct graph_run {
    command *c; /* with parameters of their own */
    unsigned n, left, ndep;
    unsigned (*dep)[2];
    bool *done;
};

/* Nodes ------------------------------------------------------------------------------------- */

EXPORT CUresult cuGraphCreate(CUgraph *out, unsigned flags)
{
    ENTER_CONTEXT;
    if (flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    *out = new_handle(GRAPH, sizeof(graph), ctx->device, CALLER);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuGraphDestroy(CUgraph x)
{
    graph *g = (graph *)(void *)x;
    ENTER_CONTEXT;
    WANT(g, GRAPH);
    g->h.alive = false;
    for (unsigned i = 0; i < g->n; i++)
        g->at[i]->h.alive = false;
    return CUDA_SUCCESS;
}

static CUresult add_dep(const char *entry, node *x, CUgraphNode dep)
{
    node *d = (node *)(void *)dep;
    TRY(want(entry, d, NODE));
    if (d->g != x->g || d == x)
        return misuse(entry, "a dependency on a node of another graph, or on itself");
    for (unsigned i = 0; i < x->ndep; i++)
        if (x->dep[i] == d)
            return misuse(entry, "a dependency is named twice");
    x->dep = realloc(x->dep, (x->ndep + 1) * sizeof *x->dep);
    x->dep[x->ndep++] = d;
    return CUDA_SUCCESS;
}

static CUresult add_node(const char *entry, CUgraphNode *out, CUgraph into, const CUgraphNode *dep,
                         size_t ndep, const command *c, const void *where)
{
    graph *g = (graph *)(void *)into;
    node *x = new_handle(NODE, sizeof *x, g->h.device, where);
    x->c = *c;
    x->g = g;
    x->index = g->n;
    for (size_t i = 0; i < ndep; i++) {
        const CUresult e = add_dep(entry, x, dep[i]);
        if (e != CUDA_SUCCESS) {
            x->h.alive = false;
            return e;
        }
    }
    if (g->n == g->room)
        g->at = realloc(g->at, (g->room = 2 * g->room + 16) * sizeof *g->at);
    g->at[g->n++] = x;
    *out = (CUgraphNode)(void *)x;
    return CUDA_SUCCESS;
}

static CUresult launch_of(const char *entry, const CUDA_KERNEL_NODE_PARAMS *p, command *c)
{
    if (p->func == NULL || p->extra != NULL)
        return misuse(entry, "the stand-in wants `func` and `kernelParams`");
    return make_launch(entry, p->func, (unsigned[]){p->gridDimX, p->gridDimY, p->gridDimZ},
                       (unsigned[]){p->blockDimX, p->blockDimY, p->blockDimZ}, p->sharedMemBytes,
                       p->kernelParams, c);
}

static CUresult side_of(const char *entry, CUmemorytype type, const void *host, CUdeviceptr at,
                        int on, size_t bytes, char **p)
{
    *p = type == CU_MEMORYTYPE_HOST ? (char *)(uintptr_t)host : (char *)at;
    if (type != CU_MEMORYTYPE_HOST && type != CU_MEMORYTYPE_DEVICE && type != CU_MEMORYTYPE_UNIFIED)
        return misuse(entry, "memory of type %d", type);
    const char *why = in_region(*p) ? memory_wrong(*p, bytes, on) : NULL;
    if (type == CU_MEMORYTYPE_DEVICE && (!in_region(*p) || is_pinned(*p)))
        why = "it is no memory of the device";
    return why == NULL ? CUDA_SUCCESS : misuse(entry, "%s", why);
}

static CUresult copy_of(const char *entry, const CUDA_MEMCPY3D *p, int on, command *c)
{
    char *to, *from;
    if (p->Height != 1 || p->Depth != 1 || p->WidthInBytes == 0)
        return misuse(entry, "a copy of %zu x %zu x %zu", p->WidthInBytes, p->Height, p->Depth);
    if (p->srcY != 0 || p->srcZ != 0 || p->srcLOD != 0 || p->dstY != 0 || p->dstZ != 0 ||
        p->dstLOD != 0 || p->srcArray != NULL || p->dstArray != NULL)
        return misuse(entry, "a copy with fields set that a copy of bytes has not");
    TRY(side_of(entry, p->dstMemoryType, p->dstHost, p->dstDevice, on,
                p->dstXInBytes + p->WidthInBytes, &to));
    TRY(side_of(entry, p->srcMemoryType, p->srcHost, p->srcDevice, on,
                p->srcXInBytes + p->WidthInBytes, &from));
    *c = (command){.op = COPY,
                   .to = to + p->dstXInBytes,
                   .from = from + p->srcXInBytes,
                   .bytes = p->WidthInBytes};
    return CUDA_SUCCESS;
}

static CUresult fill_of(const char *entry, const CUDA_MEMSET_NODE_PARAMS *p, int on, command *c)
{
    if (p->height != 1 || (p->elementSize != 1 && p->elementSize != 2 && p->elementSize != 4))
        return misuse(entry, "elements of %u bytes, %zu rows", p->elementSize, p->height);
    const char *why = memory_wrong((char *)p->dst, p->width * p->elementSize, on);
    if (why != NULL)
        return misuse(entry, "%s", why);
    *c = (command){.op = FILL,
                   .to = (char *)p->dst,
                   .bytes = p->width * p->elementSize,
                   .pattern = p->value,
                   .width = p->elementSize};
    return CUDA_SUCCESS;
}

EXPORT CUresult cuGraphAddKernelNode_v2(CUgraphNode *x, CUgraph g, const CUgraphNode *dep, size_t n,
                                        const CUDA_KERNEL_NODE_PARAMS *p)
{
    command c;
    ENTER_CONTEXT;
    WANT(g, GRAPH);
    TRY(launch_of(__func__, p, &c));
    (void)ctx;
    return add_node(__func__, x, g, dep, n, &c, CALLER);
}

EXPORT CUresult cuGraphAddMemcpyNode(CUgraphNode *x, CUgraph g, const CUgraphNode *dep, size_t n,
                                     const CUDA_MEMCPY3D *p, CUcontext of)
{
    command c;
    ENTER_CONTEXT;
    WANT(g, GRAPH);
    WANT(of, CONTEXT);
    TRY(copy_of(__func__, p, ctx->device, &c));
    return add_node(__func__, x, g, dep, n, &c, CALLER);
}

EXPORT CUresult cuGraphAddMemsetNode(CUgraphNode *x, CUgraph g, const CUgraphNode *dep, size_t n,
                                     const CUDA_MEMSET_NODE_PARAMS *p, CUcontext of)
{
    command c;
    ENTER_CONTEXT;
    WANT(g, GRAPH);
    WANT(of, CONTEXT);
    TRY(fill_of(__func__, p, ctx->device, &c));
    return add_node(__func__, x, g, dep, n, &c, CALLER);
}

EXPORT CUresult cuGraphAddEmptyNode(CUgraphNode *x, CUgraph g, const CUgraphNode *dep, size_t n)
{
    ENTER_CONTEXT;
    WANT(g, GRAPH);
    (void)ctx;
    return add_node(__func__, x, g, dep, n, &(command){.op = EMPTY}, CALLER);
}

static CUresult add_event_node(const char *entry, command_op op, CUgraphNode *x, CUgraph g,
                               const CUgraphNode *dep, size_t n, CUevent e, const void *where)
{
    TRY(want(entry, g, GRAPH));
    TRY(want(entry, e, EVENT));
    return add_node(entry, x, g, dep, n, &(command){.op = op, .e = (event *)(void *)e}, where);
}

EXPORT CUresult cuGraphAddEventRecordNode(CUgraphNode *x, CUgraph g, const CUgraphNode *dep,
                                          size_t n, CUevent e)
{
    ENTER_CONTEXT;
    (void)ctx;
    return add_event_node(__func__, RECORD, x, g, dep, n, e, CALLER);
}

EXPORT CUresult cuGraphAddEventWaitNode(CUgraphNode *x, CUgraph g, const CUgraphNode *dep, size_t n,
                                        CUevent e)
{
    ENTER_CONTEXT;
    (void)ctx;
    return add_event_node(__func__, WAIT, x, g, dep, n, e, CALLER);
}

EXPORT CUresult cuGraphAddDependencies(CUgraph g, const CUgraphNode *from, const CUgraphNode *to,
                                       size_t n)
{
    ENTER_CONTEXT;
    (void)ctx;
    WANT(g, GRAPH);
    for (size_t i = 0; i < n; i++) {
        WANT(to[i], NODE);
        TRY(add_dep(__func__, (node *)(void *)to[i], from[i]));
    }
    return CUDA_SUCCESS;
}

/* Executable graphs ------------------------------------------------------------------------- */

static int ready_node(const bool *done, unsigned n, unsigned (*dep)[2], unsigned ndep,
                      unsigned start)
{
    for (unsigned k = 0; k < n; k++) {
        const unsigned i = (start + k) % n;
        bool may = !done[i];
        for (unsigned d = 0; may && d < ndep; d++)
            may = dep[d][0] != i || done[dep[d][1]];
        if (may)
            return (int)i;
    }
    return -1;
}

static bool has_cycle(const graph_exec *e)
{
    bool *done = calloc(e->n + 1, 1);
    unsigned left = e->n;
    for (int i; left > 0 && (i = ready_node(done, e->n, e->dep, e->ndep, 0)) >= 0; left--)
        done[i] = true;
    free(done);
    return left > 0;
}

EXPORT CUresult cuGraphInstantiateWithFlags(CUgraphExec *out, CUgraph x, unsigned long long flags)
{
    graph *g = (graph *)(void *)x;
    ENTER_CONTEXT;
    WANT(g, GRAPH);
    if (flags != 0)
        return misuse(__func__, "the stand-in does not know flags %llu", flags);
    graph_exec *e = new_handle(EXEC, sizeof *e, ctx->device, CALLER);
    e->n = g->n;
    e->c = calloc(g->n + 1, sizeof *e->c);
    e->from = calloc(g->n + 1, sizeof *e->from);
    for (unsigned i = 0; i < g->n; i++)
        e->ndep += g->at[i]->ndep;
    e->dep = calloc(e->ndep + 1, sizeof *e->dep);
    e->ndep = 0;
    for (unsigned i = 0; i < g->n; i++) {
        e->c[i] = g->at[i]->c;
        e->from[i] = g->at[i];
        for (unsigned d = 0; d < g->at[i]->ndep; d++) {
            e->dep[e->ndep][0] = i;
            e->dep[e->ndep++][1] = g->at[i]->dep[d]->index;
        }
    }
    if (has_cycle(e)) {
        e->h.alive = false;
        return misuse(__func__, "the graph has a cycle");
    }
    *out = (CUgraphExec)(void *)e;
    return CUDA_SUCCESS;
}

/* The command of a node; the graph that the node was made in may be gone. */
static CUresult node_in(const char *entry, CUgraphExec x, CUgraphNode y, command_op op,
                        command **out)
{
    graph_exec *e = (graph_exec *)(void *)x;
    const node *n = (const node *)(const void *)y;
    TRY(want(entry, e, EXEC));
    if (!is_handle(n) || n->h.kind != NODE || n->index >= e->n || e->from[n->index] != n)
        return misuse(entry, "the node is not of this graph");
    *out = &e->c[n->index];
    return (*out)->op == op ? CUDA_SUCCESS : misuse(entry, "the node is of another kind");
}

EXPORT CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec x, CUgraphNode y,
                                                  const CUDA_KERNEL_NODE_PARAMS *p)
{
    command *c, fresh;
    ENTER_CONTEXT;
    TRY(node_in(__func__, x, y, LAUNCH, &c));
    TRY(launch_of(__func__, p, &fresh));
    if (fresh.f->h.device != ctx->device)
        return misuse(__func__, "the function is of another context");
    *c = fresh; /* what it had is still the node's */
    return CUDA_SUCCESS;
}

EXPORT CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec x, CUgraphNode y, const CUDA_MEMCPY3D *p,
                                               CUcontext of)
{
    command *c, fresh;
    ENTER_CONTEXT;
    WANT(of, CONTEXT);
    TRY(node_in(__func__, x, y, COPY, &c));
    TRY(copy_of(__func__, p, ctx->device, &fresh));
    if (in_region(fresh.to) != in_region(c->to) || is_pinned(fresh.to) != is_pinned(c->to) ||
        in_region(fresh.from) != in_region(c->from) || is_pinned(fresh.from) != is_pinned(c->from))
        return misuse(__func__, "the kind of memory changes");
    *c = fresh;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec x, CUgraphNode y,
                                               const CUDA_MEMSET_NODE_PARAMS *p, CUcontext of)
{
    command *c, fresh;
    ENTER_CONTEXT;
    WANT(of, CONTEXT);
    TRY(node_in(__func__, x, y, FILL, &c));
    TRY(fill_of(__func__, p, ctx->device, &fresh));
    *c = fresh;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuGraphExecDestroy(CUgraphExec x)
{
    graph_exec *e = (graph_exec *)(void *)x;
    ENTER_CONTEXT;
    (void)ctx;
    WANT(e, EXEC);
    e->h.alive = false;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuGraphUpload(CUgraphExec x, CUstream s)
{
    ENTER_CONTEXT;
    WANT(x, EXEC);
    WANT(stream_of(s, ctx->device), STREAM);
    return CUDA_SUCCESS;
}

/* Launches ---------------------------------------------------------------------------------- */

/* Events count as recorded from the launch on, so that waiting for one runs the graph that far. */
EXPORT CUresult cuGraphLaunch(CUgraphExec x, CUstream y)
{
    const graph_exec *e = (const graph_exec *)(const void *)x;
    ENTER_CONTEXT;
    stream *s = stream_of(y, ctx->device);
    WANT(e, EXEC);
    WANT(s, STREAM);
    graph_run *r = calloc(1, sizeof *r);
    r->n = r->left = e->n;
    r->ndep = e->ndep;
    r->dep = memcpy(calloc(e->ndep + 1, sizeof *r->dep), e->dep, e->ndep * sizeof *r->dep);
    r->c = memcpy(calloc(e->n + 1, sizeof *r->c), e->c, e->n * sizeof *r->c);
    r->done = calloc(e->n + 1, 1);
    for (unsigned i = 0; i < r->n; i++) {
        command *c = &r->c[i];
        if ((c->op == RECORD || c->op == WAIT) && !c->e->h.alive)
            misuse(__func__, "an event of node %u has been destroyed", i);
        if (c->op == RECORD) {
            c->e->s = s;
            c->generation = ++c->e->asked;
        } else if (c->op == WAIT)
            c->generation = c->e->asked;
        note_source(c);
    }
    return push(s, &(command){.op = RUN_GRAPH, .g = r});
}

bool graph_run_step(int on, graph_run *r)
{
    if (r->left == 0)
        return false;
    const unsigned start = set.streams == EAGER ? 0 : coin(r->n);
    const int i = ready_node(r->done, r->n, r->dep, r->ndep, start);
    r->done[i] = true;
    r->left--;
    run_command(on, &r->c[i]);
    return true;
}

bool graph_run_uses(const graph_run *r, const module *m)
{
    for (unsigned i = 0; i < r->n; i++)
        if (!r->done[i] && r->c[i].op == LAUNCH && r->c[i].f->m == m)
            return true;
    return false;
}

/* Parameters stay: they are the nodes'. */
void graph_run_free(graph_run *r)
{
    for (unsigned i = 0; i < r->n; i++) /* after an error events are over, too */
        if (r->c[i].op == RECORD && r->c[i].e->done < r->c[i].generation)
            r->c[i].e->done = r->c[i].generation;
    free(r->c);
    free(r->dep);
    free(r->done);
    free(r);
}
