/*
 * Schedule moves as data (jit/moves/moves.def). Applying one checks that it is legal: a move that does not
 * fit leaves the kernel as it was, with the reason.
 *
 * A move names axes and buffers by their index in the kernel. These stay valid: moves append to k->axis and
 * k->buf and rename nothing. Where a move replaces a loop, the old axis stays without a loop over it, and
 * is refused from then on. Text is for files, dumps and messages.
 */
#ifndef DC_JIT_MOVES_MOVE_H
#define DC_JIT_MOVES_MOVE_H

#include "jit/nest/nest.h"

typedef enum dc_move_kind {
#define MOVE(id, ...) DC_MOVE_##id,
#include "jit/moves/moves.def"
    DC_MOVE__COUNT
} dc_move_kind;

enum { DC_MOVE_AXES = 7 };

typedef enum dc_move_effect {
    DC_MOVE_EXACT,        /* every result keeps its bits */
    DC_MOVE_REASSOCIATES, /* additions may be in another order */
    DC_MOVE_TRAFFIC       /* results keep their bits; comes after all moves of the other two */
} dc_move_effect;

typedef struct dc_move { /* what the kind has no argument for is 0 */
    dc_move_kind kind;
    uint32_t buf;
    uint32_t naxis, axis[DC_MOVE_AXES]; /* in the order of the text */
    int64_t count;
    dc_scope scope;
    uint32_t tile; /* dc_tile_id */
} dc_move;

const char *dc_move_name(dc_move_kind kind);
const char *dc_move_args(dc_move_kind kind); /* "axis count" */
dc_move_effect dc_move_effect_of(dc_move_kind kind);
bool dc_move_reassociates(dc_move_kind kind);

/*
 * Applies a move and appends it to k->moves. The axes that it makes are those from the old k->axis.n on, in
 * the order in which its meaning in moves.def names them; false with the reason, which is static or in
 * the kernel.
 */
bool dc_move_apply(dc_kernel *k, const dc_move *m, const char **why);
typedef struct dc_move_state { /* a kernel before moves */
    dc_stmt *root;
    dc_axis *axis;
    dc_buffer *buf;
    uint32_t naxis, nbuf, nmoves;
} dc_move_state;

/* In tmp. */
dc_move_state dc_move_save(dc_kernel *k, dc_arena *tmp);
/* The kernel as it was, without the moves since then. */
void dc_move_restore(dc_kernel *k, const dc_move_state *s);

/* As dc_move_apply, from text. */
bool dc_move_apply_text(dc_kernel *k, const char *text, const char **why);

/*
 * A move from any bytes; *why as above. k NULL: the form is checked, axes and buffers are not looked up
 * and stay 0.
 */
bool dc_move_parse(dc_kernel *k, const char *text, dc_move *out, const char **why);
/* A move of the kernel as text; the same in an arena. */
void dc_move_print(const dc_kernel *k, const dc_move *m, dc_text *out);
const char *dc_move_text(const dc_kernel *k, const dc_move *m, dc_arena *a);

#endif
