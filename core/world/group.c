/* Who is a member of a group: places in a mesh, and on which hosts they are. */
#include "core/base/heap.h"
#include "core/world/world_impl.h"

/* Of each axis the step from one rank to the next along it. */
static void steps_of(const dc_group_axes *g, int64_t step[DC_MESH_AXES])
{
    int64_t n = 1;
    for (uint32_t a = g->naxis; a-- > 0;) {
        step[a] = n;
        n *= g->size[a];
    }
}

/* How many ranks the mesh has; more than there can be at all: -1. */
static int64_t mesh_size(const dc_group_axes *g)
{
    int64_t n = 1;
    for (uint32_t a = 0; a < g->naxis; a++)
        if (g->size[a] < 1 || !dc_mul_ok(n, g->size[a], &n))
            return -1;
    return n;
}

static bool varies(const dc_group_axes *g, uint32_t axis)
{
    return (g->mask >> axis & 1) != 0;
}

int64_t dc_group_size(const dc_group_axes *g)
{
    int64_t n = 1;
    for (uint32_t a = 0; a < g->naxis; a++)
        if (varies(g, a))
            n *= g->size[a];
    return n;
}

int64_t dc_group_member(const dc_group_axes *g, int rank)
{
    int64_t step[DC_MESH_AXES], member = 0;
    steps_of(g, step);
    for (uint32_t a = 0; a < g->naxis; a++)
        if (varies(g, a))
            member = member * g->size[a] + rank / step[a] % g->size[a];
    return member;
}

int dc_group_rank(const dc_group_axes *g, int rank, int64_t member)
{
    int64_t step[DC_MESH_AXES], other = 0;
    steps_of(g, step);
    for (uint32_t a = g->naxis; a-- > 0;) {
        int64_t place = rank / step[a] % g->size[a];
        if (varies(g, a)) {
            place = member % g->size[a];
            member /= g->size[a];
        }
        other += place * step[a];
    }
    return (int)other;
}

/* ---- teams ------------------------------------------------------------------------------------------- */

static int host_of(const dc_world *w, const dc_team *t, int member)
{
    return w->engine != NULL ? w->engine->host[t->rank[member]] : 0;
}

static void find_local(const dc_world *w, dc_team *t)
{
    const int here = host_of(w, t, t->me);
    for (int m = 0; m < t->n; m++)
        if (host_of(w, t, m) == here) {
            if (m == t->me)
                t->place = t->nlocal;
            t->local[t->nlocal++] = m;
        }
}

/* Members by place, where all hosts have as many as this one. `count` has a zero for each host. */
static void find_beside(const dc_world *w, dc_team *t, int *count)
{
    const int nhost = t->n / t->nlocal;
    int first = 0;
    for (int m = 0; m < t->n; m++) {
        const int place = count[host_of(w, t, m)]++;
        if (place >= t->nlocal || (place == 0 && ++first > nhost))
            return;
    }
    if (nhost * t->nlocal != t->n)
        return;
    for (int h = 0; h < w->size; h++)
        count[h] = 0;
    int *filled = count + w->size; /* of each place */
    for (int m = 0; m < t->n; m++) {
        const int place = count[host_of(w, t, m)]++;
        if (m == t->me)
            t->at_host = filled[place];
        t->beside[place * nhost + filled[place]++] = m;
    }
    t->nhost = nhost;
}

bool dc_group_is_same(const dc_group_axes *a, const dc_group_axes *b)
{
    if (a->naxis != b->naxis || a->mask != b->mask)
        return false;
    for (uint32_t k = 0; k < a->naxis; k++)
        if (a->size[k] != b->size[k])
            return false;
    return true;
}

static const dc_team *find_team(dc_world *w, const dc_group_axes *axes)
{
    pthread_mutex_lock(&w->lock);
    const dc_team *t = w->team;
    while (t != NULL && !dc_group_is_same(&t->axes, axes))
        t = t->next;
    pthread_mutex_unlock(&w->lock);
    return t;
}

dc_status dc_team_of(dc_job *j, dc_world *w, const dc_exchange *x, const dc_team **out)
{
    *out = find_team(w, &x->axes);
    if (*out != NULL)
        return DC_OK;
    const int64_t mesh = mesh_size(&x->axes);
    if (mesh < 0 || mesh > w->size || w->rank >= mesh)
        return dc_failf(j, DC_ERR_WORLD, NULL, "%s: a mesh of %lld ranks, where rank %d of %d is",
                        x->label, (long long)mesh, w->rank, w->size);
    const int64_t n = dc_group_size(&x->axes);
    const size_t bytes = sizeof(dc_team) + (size_t)(n * 3) * sizeof(int);
    dc_team *t = dc_try_alloc(bytes);
    int *count = dc_try_alloc((size_t)w->size * 2 * sizeof *count);
    if (t == NULL || count == NULL) {
        dc_xfree(t);
        dc_xfree(count);
        return dc_fail_memory(j, bytes);
    }
    *t = (dc_team){.axes = x->axes, .n = (int)n, .me = (int)dc_group_member(&x->axes, w->rank)};
    t->rank = (int *)(t + 1);
    t->local = t->rank + n;
    t->beside = t->local + n;
    for (int m = 0; m < t->n; m++)
        t->rank[m] = dc_group_rank(&x->axes, w->rank, m);
    find_local(w, t);
    find_beside(w, t, count);
    dc_xfree(count);
    pthread_mutex_lock(&w->lock);
    t->next = w->team;
    w->team = t;
    pthread_mutex_unlock(&w->lock);
    *out = t;
    return DC_OK;
}

void dc_team_free(dc_team *t)
{
    while (t != NULL) {
        dc_team *next = t->next;
        dc_xfree(t);
        t = next;
    }
}
