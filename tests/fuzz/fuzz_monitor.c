/* Answers of a monitor as `deepc top` reads and draws them: two of them, so that there are rates. */
#include "vm/top_draw.h"
#include "vm/top_snapshot.h"

#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"

static bool read_part(dc_arena *a, const unsigned char *at, size_t n, dc_top_snapshot *out)
{
    char why[96] = "";
    char *copy = dc_arena_alloc(a, n + 1);
    memcpy(copy, at, n);
    if (dc_top_read(out, copy, n, why))
        return true;
    if (why[0] == '\0')
        fuzz_finding("refused without a reason");
    return false;
}

/* No line is longer than the screen, nothing is a control character but what we put there. */
static void check_frame(const dc_text *t, const dc_top_look *look)
{
    uint32_t column = 0;
    for (size_t i = 0; i < t->n; i++) {
        const unsigned char c = (unsigned char)t->s[i];
        if (c != '\n' && (c < ' ' || c == 0x7f))
            fuzz_finding("byte %u on the screen", c);
        column = c == '\n' ? 0 : column + ((c & 0xc0) != 0x80);
        if (column > look->columns)
            fuzz_finding("a line is longer than %u columns", look->columns);
    }
}

static dc_status body(dc_job *j, void *arg)
{
    const fuzz_input *in = arg;
    const unsigned char *half = in->n > 0 ? memchr(in->at, '\n', in->n) : NULL;
    const size_t n = half != NULL ? (size_t)(half - in->at) : in->n;
    dc_top_snapshot *now = dc_arena_alloc(&j->scratch, sizeof *now),
                    *last = dc_arena_alloc(&j->scratch, sizeof *last);
    dc_top_clients *all = dc_arena_alloc(&j->scratch, sizeof *all);
    if (in->n == 0 || !read_part(&j->scratch, in->at, n, now))
        return DC_OK;
    all->n = 1;
    all->at[0].now = now;
    if (half != NULL && read_part(&j->scratch, half + 1, in->n - n - 1, last)) {
        all->n = 2;
        all->at[0].last = last;
        all->at[1].now = last;
    }
    for (uint32_t i = 0; i < 4; i++) {
        static const uint32_t size[][2] = {{80, 24}, {30, 0}, {200, 60}, {3, 3}};
        dc_text t = {0};
        dc_top_look look = {.columns = size[i][0],
                            .rows = size[i][1],
                            .sort = (dc_top_sort)i,
                            .unicode = i > 1,
                            .scroll = i};
        dc_top_draw(&t, all, &look);
        check_frame(&t, &look);
        dc_text_free(&t);
        dc_top_draw_line(&t, &all->at[0]);
        dc_text_free(&t);
    }
    return DC_OK;
}

void fuzz_one(const fuzz_input *in)
{
    fuzz_protect(body, (void *)in);
}
