/*
 * Graph text. print and parse are inverses: parse(print(m)) prints the same.
 *
 *   func step(%1: f32[64, 784] "x", %2: f32[784, 10] "net.1.weight") {
 *     %3 = dot %1, %2 {0, 1, 1, 0} : f32[64, 10]
 *     %4 = const {1056964608} : f32[]
 *     ...
 *     return %9, %4
 *   }
 *
 * Nodes not reachable from the results are not printed. Numbers of printed nodes are dense.
 */
#ifndef DC_CORE_IR_GTEXT_H
#define DC_CORE_IR_GTEXT_H

#include "core/ir/graph.h"

void dc_func_print(const dc_func *f, dc_text *out);
void dc_module_print(const dc_module *m, dc_text *out);
/* Replaces nothing on failure: *out stays as it was. PARSE names the line. */
dc_status dc_module_parse(dc_job *j, const char *text, dc_module **out);

/* Is this graph legal? Types inferred again, operands before users, results present. */
dc_status dc_func_check(dc_job *j, const dc_func *f);

#endif
