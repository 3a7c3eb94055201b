#include "jit/exec/red_zone.h"

#include <string.h>

enum { GUARD_BYTE = 0x5a, ZONE_MOST = DC_RED_ZONE_BYTES + 64 };

typedef struct zone {
    size_t at, bytes;
} zone;

/* Before the temporary, and behind it with the bytes that its alignment left. */
static void zones_of(const dc_exec *e, const dc_guarded *t, zone *z)
{
    const size_t end = t->offset + t->bytes;
    z[0] = (zone){t->offset - e->guard, e->guard};
    z[1] = (zone){end, dc_align_up(end, 64) - end + e->guard};
}

dc_status dc_red_zone_fill(dc_inst *i, dc_job *j, char *arena, uint32_t n)
{
    const dc_exec *e = i->exec;
    dc_device *d = i->rt->device;
    char pattern[ZONE_MOST];
    memset(pattern, GUARD_BYTE, sizeof pattern);
    for (uint32_t t = 0; t < e->ntemp; t++) {
        zone z[2];
        if (e->temp[t].first != n)
            continue;
        zones_of(e, &e->temp[t], z);
        for (int k = 0; k < 2; k++)
            DC_TRY(d->ops->upload(d, j, arena + z[k].at, pattern, z[k].bytes));
    }
    return DC_OK;
}

static dc_status check_zone(dc_inst *i, dc_job *j, const char *at, size_t bytes, bool *whole)
{
    dc_device *d = i->rt->device;
    unsigned char seen[ZONE_MOST];
    DC_TRY(d->ops->download(d, j, seen, at, bytes));
    for (size_t b = 0; b < bytes; b++)
        if (seen[b] != GUARD_BYTE)
            *whole = false;
    return DC_OK;
}

dc_status dc_red_zone_check(dc_inst *i, dc_job *j, char *arena, uint32_t n)
{
    const dc_exec *e = i->exec;
    const char *label = e->command[n].label;
    for (uint32_t t = 0; t < e->ntemp; t++) {
        zone z[2];
        bool whole = true;
        if (e->temp[t].first > n || e->temp[t].last < n)
            continue;
        zones_of(e, &e->temp[t], z);
        for (int k = 0; k < 2; k++)
            DC_TRY(check_zone(i, j, arena + z[k].at, z[k].bytes, &whole));
        if (!whole)
            return dc_fail(j, DC_ERR_GUARD,
                           &(dc_fact){.num = {(int64_t)e->temp[t].bytes}, .word = {label}});
    }
    return dc_storage_guards(i->rt, j, label);
}
