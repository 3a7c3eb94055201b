/*
 * Weights in the layout in which a function reads them. A convolution reads its kernel with the channels of
 * the result last (jit/rewrite/conv_layout.h), the script declares it with them first. A function that trains the
 * kernel would transpose it at each call, and the gradient back. So the cell's memory is laid out as the
 * convolution reads it (dc_cell.layout) until the cell is read or written elsewhere: see dc_cell_check.
 *
 * Only cells that the function itself sets are laid out so, and with them those of the same type that are
 * updated together with them, such as momentum. For cells that it only reads there are derived values
 * (jit/rewrite/prologue.h).
 */
#ifndef DC_JIT_REWRITE_WEIGHT_LAYOUT_H
#define DC_JIT_REWRITE_WEIGHT_LAYOUT_H

#include "core/runtime/storage.h"
#include "jit/base/exec_desc.h"

/*
 * The layouts of the cells of d, in `mem`, and a function of the same module whose parameters and set results
 * have the types of such memory. NULL: all stay as they are.
 */
const dc_func *dc_weight_layout(dc_arena *mem, dc_arena *scratch, const dc_exec_desc *d,
                                dc_cell_layout **layout);

#endif
