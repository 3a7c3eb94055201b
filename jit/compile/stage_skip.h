/* What DEEPC_SKIP leaves out: stages (jit/compile/stages.def) and passes (jit/flat/passes.def) by name. */
#ifndef DC_JIT_COMPILE_STAGE_SKIP_H
#define DC_JIT_COMPILE_STAGE_SKIP_H

#include "core/base/job.h"

typedef enum dc_stage {
#define STAGE(id, help) DC_STAGE_##id,
#include "jit/compile/stages.def"
    DC_STAGE__COUNT
} dc_stage;

typedef struct dc_skip {
    uint32_t stages; /* bit by dc_stage */
    uint32_t passes; /* bit by position in jit/flat/passes.def: dc_flatten_for */
} dc_skip;

static inline bool dc_skips(dc_skip s, dc_stage stage)
{
    return (s.stages >> stage & 1) != 0;
}

/* From a comma list, or "all". OPTION with the words there are. */
dc_status dc_skip_parse(dc_job *j, const char *words, dc_skip *out);

/* By position, stages first and then passes; NULL past the last. */
const char *dc_skip_word(uint32_t n);

#endif
