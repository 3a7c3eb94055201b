/*
 * Schedule moves as data. dc_move_apply checks its own legality: a move that does not fit leaves the
 * kernel as it was and returns false with the reason. Names of the new axes are in jit/moves.def.
 */
#ifndef DC_JIT_MOVE_H
#define DC_JIT_MOVE_H

#include "jit/nest.h"

typedef enum dc_move_kind {
#define MOVE(id, ...) DC_MOVE_##id,
#include "jit/moves.def"
    DC_MOVE__COUNT
} dc_move_kind;

typedef struct dc_move {
    dc_move_kind kind;
    char axis[24];
    char other[24]; /* REORDER */
    int64_t count;  /* SPLIT, SPLIT_REDUCE */
} dc_move;

bool dc_move_apply(dc_kernel *k, const dc_move *m, const char **why);

/* From text, printf-like; applies it and appends the text to k->moves. */
bool dc_move_do(dc_kernel *k, const char **why, const char *fmt, ...) DC_PRINTF(3, 4);
bool dc_move_parse(const char *text, dc_move *out, const char **why);
bool dc_move_reassociates(dc_move_kind kind);

#endif
