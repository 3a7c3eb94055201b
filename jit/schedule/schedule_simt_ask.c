/*
 * What a search may ask of contractions in tiles (jit/schedule/schedule_simt_tile.h): other tiles than the model's, of a group
 * and of a warp. Whatever is asked for, warps fill the group's tile, sums fit in registers and two stages in shared
 * memory; what does not, is not done.
 */
#include "jit/schedule/schedule_simt_tile.h"

enum { GROUP_ROWS = 1000, WARP_ROWS = 100 }; /* in the numbers of knobs */

static bool fits(const dc_simt_product *q, const dc_tile_form *f, const dc_tile_size *t)
{
    const dc_target *on = q->s->t;
    if (t->m < 1 || t->n < 1 || t->down < 1 || t->across < 1 || t->m % (f->rows * t->down) != 0 ||
        t->n % (f->columns * t->across) != 0 || t->down * t->across > f->most)
        return false;
    const int64_t warps = t->m / (f->rows * t->down) * (t->n / (f->columns * t->across));
    return warps * 32 <= on->group_threads && (t->m + t->n) * f->bytes <= (int64_t)on->group_bytes;
}

void dc_simt_rank_tile(dc_tile_choice *c, const dc_tile_size *t, int64_t time)
{
    int at = c->n;
    if (c->n == DC_KNOB_VALUES)
        return;
    for (c->n++; at > 0 && c->time[at - 1] > time; at--) {
        c->tile[at] = c->tile[at - 1];
        c->time[at] = c->time[at - 1];
    }
    c->tile[at] = *t;
    c->time[at] = time;
}

dc_tile_choice dc_simt_rank_matrices(const dc_simt_product *q, bool warpgroups, int64_t bytes)
{
    dc_tile_choice all = {.n = 0};
    for (int i = 0; i < DC_GPU_TILES; i++) {
        const dc_gpu_tile *t = &dc_gpu_tiles[i];
        const dc_gpu_tiling *by = warpgroups ? &t->warpgroups : &t->matrices;
        const int64_t rounds = dc_simt_rounds(q, t->m, t->n);
        if (by->down > 0 && (t->m + t->n) * bytes <= (int64_t)q->s->t->group_bytes)
            dc_simt_rank_tile(&all, &(dc_tile_size){t->m, t->n, by->down, by->across},
                              rounds * t->m * t->n * 100 / (rounds > 1 ? by->busy : by->alone));
    }
    return all;
}

/* The warp's tile of the first one in the table for such a group, which fits. */
static bool find_group(const dc_simt_product *q, const dc_tile_form *f, dc_tile_size *t)
{
    for (int i = 0; i < f->n; i++)
        if (f->tile[i].m == t->m && f->tile[i].n == t->n && fits(q, f, &f->tile[i])) {
            *t = f->tile[i];
            return true;
        }
    return false;
}

static dc_tile_size ask_group(const dc_simt_product *q, const dc_tile_form *f, dc_tile_size t)
{
    int32_t others[DC_KNOB_VALUES + 1];
    int n = 0;
    for (int i = 0; i < f->n && n < DC_KNOB_VALUES; i++)
        if (fits(q, f, &f->tile[i]))
            others[n++] = (int32_t)(GROUP_ROWS * f->tile[i].m + f->tile[i].n);
    others[n] = 0;
    const int64_t rule = GROUP_ROWS * t.m + t.n;
    const int64_t asked = dc_sketch_knob(q->s, DC_KNOB_GROUP_TILE, rule, others, INT32_MAX);
    dc_tile_size other = {.m = asked / GROUP_ROWS, .n = asked % GROUP_ROWS};
    return asked != rule && find_group(q, f, &other) ? other : t;
}

static dc_tile_size ask_warp(const dc_simt_product *q, const dc_tile_form *f, dc_tile_size t)
{
    static const int64_t sides[] = {4, 2, 8, 1};
    int32_t others[DC_COUNTOF(sides) * DC_COUNTOF(sides) + 1];
    int n = 0;
    for (size_t i = 0; i < DC_COUNTOF(sides) * DC_COUNTOF(sides); i++) {
        const dc_tile_size other = {t.m, t.n, sides[i / DC_COUNTOF(sides)],
                                    sides[i % DC_COUNTOF(sides)]};
        if (fits(q, f, &other) && 16 * other.down * other.across >= f->most)
            others[n++] = (int32_t)(WARP_ROWS * other.down + other.across);
    }
    others[n] = 0;
    const int64_t asked =
        dc_sketch_knob(q->s, DC_KNOB_WARP_TILE, WARP_ROWS * t.down + t.across, others, INT32_MAX);
    const dc_tile_size other = {t.m, t.n, asked / WARP_ROWS, asked % WARP_ROWS};
    return fits(q, f, &other) ? other : t;
}

dc_tile_size dc_simt_ask_tile(const dc_simt_product *q, const dc_tile_form *f, dc_tile_size rule)
{
    return ask_warp(q, f, ask_group(q, f, rule));
}

/* Half or double, as long as two stages have room and matrices divide it. */
int64_t dc_simt_ask_depth(const dc_simt_product *q, const dc_tile_size *t, int64_t rule,
                          int64_t least, int64_t size)
{
    const int64_t most = (int64_t)q->s->t->group_bytes / ((t->m + t->n) * size);
    const int32_t others[] = {(int32_t)(2 * rule), rule > least ? (int32_t)(rule / 2) : 0, 0};
    const int64_t asked =
        dc_sketch_knob(q->s, DC_KNOB_DEPTH, rule, most >= 2 * rule ? others : others + 1, most);
    return asked <= most && asked % least == 0 ? asked : rule;
}

int64_t dc_simt_ask_stages(const dc_simt_product *q, int64_t rule)
{
    static const int32_t others[] = {2, 3, 4, 5, 6, 1, 0};
    return dc_sketch_knob(q->s, DC_KNOB_STAGES, rule, others, INT32_MAX);
}
