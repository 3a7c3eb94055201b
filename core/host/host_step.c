#include "core/host/host_step.h"

#include <stdio.h>

/* One block: the structure, then, each aligned, what is staged. */
dc_status dc_host_step_new(dc_job *j, const int64_t *at, uint32_t n, const char *label, bool staged,
                           dc_host_step **out)
{
    dc_host_step s = {0};
    if (!dc_host_call_unpack(j, at, n, &s.call))
        DC_BUG("a command for the host of %u numbers", n);
    DC_TRY(dc_host_open(j, &s.call, &s.lib));
    s.rows = dc_host_rows(&s.call);
    s.scratch = dc_host_scratch(&s.call);
    s.bytes[0] = dc_type_bytes(&s.call.out);
    size_t all = dc_align_up(sizeof s, 64) + 64 + s.scratch;
    for (int i = 0; i <= s.call.nin; i++) {
        if (i > 0)
            s.bytes[i] = dc_type_bytes(&s.call.in[i - 1]);
        all += dc_align_up(s.bytes[i], 64);
    }
    dc_host_step *to = dc_xalloc(staged ? all : sizeof s);
    *to = s;
    snprintf(to->label, sizeof to->label, "%s", label != NULL ? label : s.call.label);
    to->call.label = to->label;
    char *next = (char *)dc_align_up((uintptr_t)(to + 1), 64);
    for (int i = 0; i <= s.call.nin && staged; i++) {
        to->place[i] = next;
        next += dc_align_up(s.bytes[i], 64);
    }
    to->work = staged ? next : NULL;
    *out = to;
    return DC_OK;
}

dc_status dc_host_step_run(const dc_host_step *s, dc_job *j, const dc_look *look,
                           void *const *place, void *scratch, int64_t begin, int64_t end)
{
    const void *in[DC_HOST_OPERANDS];
    for (int i = 0; i < s->call.nin; i++)
        in[i] = place[1 + i];
    return dc_host_run(j, &s->call, &s->lib, look, place[0], in, scratch, begin, end);
}
