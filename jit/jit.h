/*
 * The interface of jit/ for the rest of deepc: a checked function becomes an executable, an executable is
 * bound to memory as an instance, an instance is called.
 */
#ifndef DC_JIT_JIT_H
#define DC_JIT_JIT_H

#include "jit/base/exec_desc.h"
#include "jit/cache/disk_cache.h"
#include "jit/compile/compile.h"
#include "jit/compile/exec_graph.h"
#include "jit/compile/kernel_forms.h"
#include "jit/exec/executable.h"
#include "jit/exec/instance.h"
#include "jit/sim/sim.h"
#include "jit/tune/tune.h"

#endif
