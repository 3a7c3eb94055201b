/*
 * The rule for memory traffic (jit/schedule/schedule_impl.h), last of all, where the plan found that large parameters do
 * not stay in the caches (dc_buffer.uncached):
 *
 *   nontemporal  stores to such outputs pass by the caches, which keep what is still needed.
 *   pipeline     a kernel that goes through rows computes with a row in the caches and then stores it: in bursts, memory
 *                idle in between, arithmetic idle meanwhile. So a row is stored while the next one is computed.
 *   prefetch     a row is also read in a burst, and what the machine prefetches by itself ends with the row. So does what
 *                it prefetches of rows that integers choose. One part of the work on a row fetches the next one.
 */
#include "core/base/job.h"
#include "jit/base/tuning.h"
#include "jit/nest/nest_traffic.h"
#include "jit/schedule/schedule_impl.h"

/* Stores ---------------------------------------------------------------------------------------- */

/* Only parameters are uncached. */
static bool bypasses(const dc_buffer *b)
{
    return b->uncached && b->mode == DC_MODE_OUT;
}

bool dc_sketch_bypasses(const dc_sketch *s)
{
    for (uint32_t b = 0; b < s->k->buf.n; b++)
        if (bypasses(&s->k->buf.at[b]))
            return true;
    return false;
}

/* How many assignments of a part store past the caches, and how many do not. */
static void count_stores(const dc_kernel *k, const dc_stmt *t, int *past, int *others)
{
    for (const dc_stmt *i = t->kind == DC_STMT_LOOP ? t->body : NULL; i != NULL; i = i->next)
        count_stores(k, i, past, others);
    for (uint32_t n = 0; t->kind == DC_STMT_SET && n < t->nput; n++)
        ++*(k->buf.at[t->put[n].buf].nontemporal ? past : others);
    *others += t->kind == DC_STMT_TILE;
}

static bool stores_past_only(const dc_kernel *k, const dc_stmt *t)
{
    int past = 0, others = 0;
    count_stores(k, t, &past, &others);
    return past > 0 && others == 0;
}

static void schedule_stores(dc_sketch *s, dc_arena *scratch)
{
    dc_kernel *k = s->k;
    dc_overlap overlap;
    if (!dc_sketch_bypasses(s) ||
        dc_sketch_knob(s, DC_KNOB_NONTEMPORAL, 2, (const int32_t[]){1, 0}, 2) == 1)
        return;
    for (uint32_t b = 0; b < k->buf.n; b++)
        if (bypasses(&k->buf.at[b]))
            dc_do_nontemporal(s, b);
    for (uint32_t a = 0; a < k->axis.n; a++) {
        const dc_stmt *t = k->root;
        while (t != NULL && (t->kind != DC_STMT_LOOP || t->axis != a))
            t = t->next;
        if (t != NULL && k->axis.at[a].kind == DC_AXIS_GRID &&
            dc_nest_overlap(k, scratch, t, &overlap) == NULL && stores_past_only(k, overlap.late) &&
            dc_sketch_knob(s, DC_KNOB_PIPELINE, 2, (const int32_t[]){1, 0}, 2) == 2)
            dc_do_pipeline(s, a);
    }
}

/* Rows that are read ---------------------------------------------------------------------------- */

static bool is_uncached_input(const dc_buffer *b)
{
    return b->uncached && b->mode == DC_MODE_IN;
}

static bool is_row_worth(const dc_buffer *b, int64_t elements)
{
    const int64_t bytes = elements * (int64_t)dc_dtype_size((dc_dtype)b->dtype);
    return bytes >= DC_TUNE_PREFETCH_LEAST && bytes <= DC_TUNE_PREFETCH_MOST;
}

/* Elements from one row of an input to the next, where all loads of it go from row to row alike; 0. */
static int64_t row_of(const dc_kernel *k, uint32_t buf, uint32_t rows)
{
    int64_t row = 0;
    for (dc_vx v = 1; v < k->vx.n; v++) {
        bool affine = true;
        if (k->vx.at[v].kind != DC_VX_LOAD || k->vx.at[v].buf != buf)
            continue;
        const int64_t step = dc_ix_stride(k, k->vx.at[v].at, rows, &affine);
        if (!affine || (row != 0 && step != row))
            return 0;
        row = step;
    }
    return row;
}

/* Is an input read in rows that lie anywhere, each step of axis `rows` another one? */
static bool jumps(const dc_kernel *k, uint32_t buf, uint32_t rows, uint32_t columns)
{
    bool any = false;
    for (dc_vx v = 1; v < k->vx.n; v++) {
        bool along = true, down = true;
        if (k->vx.at[v].kind != DC_VX_LOAD || k->vx.at[v].buf != buf)
            continue;
        dc_ix_stride(k, k->vx.at[v].at, rows, &down);
        if (dc_ix_stride(k, k->vx.at[v].at, columns, &along) != 1 || !along || down)
            return false;
        any = true;
    }
    return any;
}

/* The innermost of the loops round all parts; of row blocks the one over the rows of a block, inside it. */
static const dc_stmt *loop_over_rows(const dc_kernel *k)
{
    const dc_stmt *rows = NULL, *s = k->root;
    for (; s != NULL && s->kind == DC_STMT_LOOP && s->next == NULL && !k->axis.at[s->axis].reduce;
         s = s->body)
        rows = s;
    for (; s != NULL && rows != NULL; s = s->next)
        if (s->kind == DC_STMT_LOOP && s->body->next != NULL)
            return s;
    return rows;
}

/* The innermost of perfectly nested loops; NULL where there are not two of them. */
static const dc_stmt *innermost(const dc_stmt *root)
{
    const dc_stmt *s = root;
    while (s != NULL && s->kind == DC_STMT_LOOP && s->body->kind == DC_STMT_LOOP && s->next == NULL)
        s = s->body;
    return s == NULL || s == root || s->kind != DC_STMT_LOOP ? NULL : s;
}

static void add_input(dc_row_inputs *in, uint32_t buf, bool is)
{
    if (is && in->n < DC_COUNTOF(in->buf))
        in->buf[in->n++] = buf;
}

dc_row_inputs dc_sketch_row_inputs(const dc_sketch *s)
{
    const dc_kernel *k = s->k;
    dc_row_inputs in = {.rows = DC_NO_AXIS, .chosen = !dc_roles_has(k, DC_ROLE_ROW)};
    const dc_stmt *rows = in.chosen ? k->root : loop_over_rows(k);
    const dc_stmt *columns = in.chosen ? innermost(k->root) : NULL;
    if (rows == NULL || rows->kind != DC_STMT_LOOP || (in.chosen && columns == NULL))
        return in;
    in.rows = rows->axis;
    for (uint32_t b = 0; b < k->buf.n; b++) {
        const dc_buffer *x = &k->buf.at[b];
        if (!is_uncached_input(x))
            continue;
        if (in.chosen)
            add_input(&in, b,
                      is_row_worth(x, k->axis.at[columns->axis].extent) &&
                          jumps(k, b, rows->axis, columns->axis));
        else
            add_input(&in, b, is_row_worth(x, row_of(k, b, rows->axis)));
    }
    return in;
}

/* Prefetches ------------------------------------------------------------------------------------ */

static const dc_stmt *find_loop(const dc_stmt *first, uint32_t axis)
{
    for (const dc_stmt *t = first; t != NULL; t = t->next) {
        if (t->kind != DC_STMT_LOOP)
            continue;
        const dc_stmt *found = t->axis == axis ? t : find_loop(t->body, axis);
        if (found != NULL)
            return found;
    }
    return NULL;
}

typedef struct parts { /* of the work on a row, by number in order */
    const dc_stmt *rows,
        *late;    /* late: of a pipelined loop the part that runs in the next iteration */
    int busy[64]; /* how much memory has to do in each, so far */
} parts;

/* Numbers of stores past the caches count where several inputs compete with them. */
static parts parts_of(const dc_sketch *s, dc_arena *scratch, const dc_stmt *rows, bool several)
{
    parts p = {.rows = rows};
    dc_overlap overlap;
    uint32_t n = 0;
    if (s->k->axis.at[rows->axis].pipeline &&
        dc_nest_overlap(s->k, scratch, rows, &overlap) == NULL)
        p.late = overlap.late;
    for (const dc_stmt *t = rows->body; t != NULL && n < DC_COUNTOF(p.busy); t = t->next, n++) {
        int others = 0;
        if (several && t != p.late)
            count_stores(s->k, t, &p.busy[n], &others);
    }
    return p;
}

/* The part, of those that read the buffer in vectors, in which memory has least to do; of equals the last. */
static const dc_stmt *idlest_part(parts *p, const dc_sketch *s, dc_arena *scratch, uint32_t buf)
{
    const dc_stmt *best = NULL;
    uint32_t n = 0, at = 0;
    for (const dc_stmt *t = p->rows->body; t != NULL && n < DC_COUNTOF(p->busy); t = t->next, n++)
        if (t->kind == DC_STMT_LOOP && t != p->late &&
            (best == NULL || p->busy[n] <= p->busy[at]) &&
            dc_nest_loads_vectors(s->k, scratch, t, buf)) {
            best = t;
            at = n;
        }
    if (best != NULL)
        p->busy[at]++;
    return best;
}

/*
 * Of several inputs, what is fetched and what is stored past the caches shall come one after the other, while the rest of
 * the row is computed, and into cache 2, since not all of it fits cache 1 beside the row. A single one is
 * fetched by the last part, since memory reads and writes at the same time.
 */
static void prefetch_rows(dc_sketch *s, dc_arena *scratch, const dc_row_inputs *in, int level)
{
    const dc_stmt *rows = find_loop(s->k->root, in->rows);
    if (rows == NULL)
        return;
    parts p = parts_of(s, scratch, rows, in->n > 1);
    for (uint32_t i = 0; i < in->n; i++) {
        const dc_stmt *part = idlest_part(&p, s, scratch, in->buf[i]);
        if (part != NULL)
            dc_do_prefetch(s, in->buf[i], in->rows, part->axis, level);
    }
}

/* Of the next work item, wherever its rows are. */
static void prefetch_chosen(dc_sketch *s, const dc_row_inputs *in, int level)
{
    const dc_stmt *root = s->k->root;
    for (uint32_t i = 0; i < in->n && root->kind == DC_STMT_LOOP; i++)
        dc_do_prefetch(s, in->buf[i], root->axis, root->axis, level);
}

/* The cache that rows are fetched into; 0: none. */
static int prefetch_level(const dc_sketch *s, const dc_row_inputs *in)
{
    return dc_sketch_level(s, !in->chosen && in->n > 1 ? 2 : 1);
}

void dc_schedule_memory(dc_sketch *s, const dc_row_inputs *inputs)
{
    dc_job *j = dc_job_here();
    dc_arena own = {0}, *scratch = j != NULL ? &j->scratch : &own;
    const dc_mark mark = dc_arena_mark(scratch);
    schedule_stores(s, scratch);
    const int level = inputs->n > 0 ? prefetch_level(s, inputs) : 0;
    if (level > 0 && inputs->chosen)
        prefetch_chosen(s, inputs, level);
    else if (level > 0)
        prefetch_rows(s, scratch, inputs, level);
    dc_arena_rewind(scratch, mark);
    dc_arena_free(&own);
}
