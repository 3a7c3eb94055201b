/* The numbers of jit/tuning.def as DC_TUNE_<name>. */
#ifndef DC_JIT_TUNING_H
#define DC_JIT_TUNING_H

enum {
#define TUNE(name, value, unit, meaning) DC_TUNE_##name = (value),
#include "jit/tuning.def"
#undef TUNE
};

#endif
