/* The numbers of jit/base/tuning.def as DC_TUNE_<name>. */
#ifndef DC_JIT_BASE_TUNING_H
#define DC_JIT_BASE_TUNING_H

enum {
#define TUNE(name, value, unit, meaning) DC_TUNE_##name = (value),
#include "jit/base/tuning.def"
#undef TUNE
};

#endif
