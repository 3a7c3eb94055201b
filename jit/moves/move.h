/*
 * Schedule moves as data (jit/moves/moves.def). dc_move_do checks legality: a move that does not fit
 * leaves the kernel as it was and returns false with the reason, which lives as long as the kernel.
 */
#ifndef DC_JIT_MOVES_MOVE_H
#define DC_JIT_MOVES_MOVE_H

#include "jit/nest/nest.h"

typedef enum dc_move_kind {
#define MOVE(id, ...) DC_MOVE_##id,
#include "jit/moves/moves.def"
    DC_MOVE__COUNT
} dc_move_kind;

enum { DC_MOVE_ARGS = 7 };

typedef struct dc_move {
    dc_move_kind kind;
    int n;                      /* arguments */
    char arg[DC_MOVE_ARGS][24]; /* as written: axes, a buffer, ... */
    int64_t count;              /* the one that is a number */
} dc_move;

/* From text, printf-like; applies it and appends the text to k->moves. */
bool dc_move_do(dc_kernel *k, const char **why, const char *fmt, ...) DC_PRINTF(3, 4);
/* Any bytes will do; *why is static. */
bool dc_move_parse(const char *text, dc_move *out, const char **why);
const char *dc_move_name(dc_move_kind kind);
bool dc_move_reassociates(dc_move_kind kind);

#endif
