/*
 * Loops most of whose iterations do nothing, and of which all threads of a warp know that alike: as the updates of a
 * scatter that lie in the range of a warp. A dialect that can ask a warp lets each thread look at an iteration of its
 * own, and all of them carry out those that do something, one after the other.
 */
#ifndef DC_JIT_RENDER_WARP_LOOP_H
#define DC_JIT_RENDER_WARP_LOOP_H

#include "jit/flat/flat.h"

enum { DC_WARP_TESTS = 4 };

typedef struct dc_warp_loop {
    int n;                     /* 0: it is no such loop */
    dc_fv test[DC_WARP_TESTS]; /* an iteration in which one of them fails does nothing */
} dc_warp_loop;

/*
 * By value, of loops with long constant bounds. What their tests are made of, as far as it is computed in the loop, is
 * values and loads of inputs. All threads of a warp come by the loop together; NULL: there is none.
 */
const dc_warp_loop *dc_warp_loops_find(const dc_flat *f, dc_arena *a);

/* Sets in `needed` what the loop at `loop` computes for the tests, by value. */
void dc_warp_loop_needs(const dc_flat *f, dc_fv loop, const dc_warp_loop *x, bool *needed);

#endif
