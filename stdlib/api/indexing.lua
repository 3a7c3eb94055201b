---@meta _

-- Elements at integers that are data, what a mask selects, counts, what is sorted (annotations; see values.lua).

---@class deepc
local dc = {}

---@class deepc.Tensor
local Tensor = {}

-- ---- Indexing with data ----

---How values are combined with what is there: "set" (of equal integers the last one wins), "add", "mul", "max", "min",
---"mean". With include_self = false what is there does not take part where values come to.
---@alias deepc.ScatterOptions { reduce?: "set"|"add"|"mul"|"max"|"min"|"mean", include_self?: boolean }

---x with one index along an axis for each element: out[i, j] = x[index[i, j], j] along axis 1, x[i, index[i, j]] along
---axis 2. The index has as many axes as x; beside the axis sizes are equal, or an unnamed 1 stretches, of x too. This
---is torch.gather and np.take_along_axis; rows as a whole are x:take(idx, axis).
---
---    dc.tensor { { 1, 2 }, { 3, 4 } }:gather({ { 1 }, { 0 } }, 2)
---
---Errors: DC0701 for an integer outside, at run time; DC0301, DC0305 for sizes and names; DC0202 for other dtypes.
---@param index deepc.Tensor|table integers that count from 0
---@param axis? deepc.Axis 1
---@return deepc.Tensor of the dtype of x and the shape of the index
function Tensor:gather(index, axis) end
dc.gather = Tensor.gather

---x with values at one index along an axis for each of them: out[index[i, j], j] = values[i, j] along axis 1. Beside
---the axis the index has the sizes of x, or 1. Equal integers are combined in their order, so results are the same in
---every run. torch.scatter, torch.scatter_reduce, np.put_along_axis; "mean" of integers is f32.
---
---    dc.zeros "f32[2, 3]":scatter({ { 0, 2 }, { 1, 1 } }, 1, 2, { reduce = "add" })
---
---Gradients of "max" and "min" are shared equally by those that are equal, as in PyTorch.
---
---Errors: as x:gather; DC0101 for the options.
---@param index deepc.Tensor|table integers that count from 0
---@param values deepc.Operand of the shape of the index, or a number
---@param axis? deepc.Axis 1
---@param options? deepc.ScatterOptions { reduce = "set" }
---@return deepc.Tensor like x
function Tensor:scatter(index, values, axis, options) end
dc.scatter = Tensor.scatter

---x:scatter(index, values, axis, { reduce = "add" }).
---
---    dc.zeros "f32[3]":scatter_add({ 0, 2, 2 }, dc.ones "f32[3]")
---
---Errors: as x:scatter.
---@param index deepc.Tensor|table
---@param values deepc.Operand
---@param axis? deepc.Axis 1
---@return deepc.Tensor
function Tensor:scatter_add(index, values, axis) end
dc.scatter_add = Tensor.scatter_add

---x with rows added at integers along an axis; equal integers add up, in their order. torch.index_add, np.add.at.
---
---    dc.zeros "f32[3, 2]":index_add({ 1, 1 }, dc.ones "f32[2, 2]")
---
---Errors: DC0701 for an integer outside, at run time; DC0301 for sizes.
---@param index deepc.Tensor|table integers that count from 0
---@param values deepc.Operand with the axes of the index in the place of the axis; unnamed 1 stretches
---@param axis? deepc.Axis 1
---@param options? { alpha?: number } what the values are multiplied by
---@return deepc.Tensor
function Tensor:index_add(index, values, axis, options) end
dc.index_add = Tensor.index_add

---x with rows replaced at integers along an axis; of equal integers the last one wins. As x:put(index, values, axis).
---
---    dc.zeros "f32[3, 2]":index_copy({ 2, 0 }, dc.ones "f32[2, 2]")
---
---Errors: as x:index_add.
---@param index deepc.Tensor|table
---@param values deepc.Operand
---@param axis? deepc.Axis 1
---@return deepc.Tensor
function Tensor:index_copy(index, values, axis) end
dc.index_copy = Tensor.index_copy

---x with one value in all rows at integers along an axis.
---
---    dc.zeros "f32[3, 2]":index_fill({ 0, 2 }, -1)
---
---Errors: as x:index_add; DC0301 for more than one value.
---@param index deepc.Tensor|table
---@param value deepc.Operand a number or a scalar
---@param axis? deepc.Axis 1
---@return deepc.Tensor
function Tensor:index_fill(index, value, axis) end
dc.index_fill = Tensor.index_fill

---x with rows combined at integers along an axis. torch.index_reduce.
---
---    dc.zeros "f32[3]":index_reduce({ 1, 1 }, dc.tensor { 2, 5 }, 1, { reduce = "max" })
---
---Errors: as x:index_add; DC0101 for the options.
---@param index deepc.Tensor|table
---@param values deepc.Operand
---@param axis? deepc.Axis 1
---@param options? deepc.ScatterOptions { reduce = "add" }
---@return deepc.Tensor
function Tensor:index_reduce(index, values, axis, options) end
dc.index_reduce = Tensor.index_reduce

---Elements at coordinates, a tensor of integers for each of the first axes, which stretch to one shape: x[i, j] of
---PyTorch and NumPy with tensors i and j.
---
---    dc.iota "f32[4, 4]":take_nd { { 0, 2 }, { 1, 3 } }
---
---Errors: DC0701 for an integer outside, at run time; DC0101 for more coordinates than axes.
---@param index (deepc.Tensor|table)[] integers that count from 0
---@return deepc.Tensor the shape of the integers, then the axes of x that are left
function Tensor:take_nd(index) end
dc.take_nd = Tensor.take_nd

---Elements at coordinates, which are the last axis of the index. tf.gather_nd; x:take_nd has a tensor for each axis.
---
---    dc.iota "f32[4, 4]":gather_nd { { 0, 1 }, { 2, 3 } }
---
---Errors: as x:take_nd.
---@param index deepc.Tensor|table integers that count from 0
---@return deepc.Tensor
function Tensor:gather_nd(index) end
dc.gather_nd = Tensor.gather_nd

---x with values at coordinates as x:take_nd has them. torch.index_put, and with { reduce = "add" } accumulate = True.
---
---    dc.zeros "f32[4, 4]":put_nd({ { 0, 2 }, { 1, 3 } }, 7)
---
---Errors: as x:take_nd; DC0301 for sizes of values.
---@param index (deepc.Tensor|table)[]
---@param values deepc.Operand
---@param options? deepc.ScatterOptions { reduce = "set" }
---@return deepc.Tensor
function Tensor:put_nd(index, values, options) end
dc.put_nd = Tensor.put_nd

---x with values at coordinates as x:gather_nd has them. tf.tensor_scatter_nd_update, tf.tensor_scatter_nd_add.
---
---    dc.zeros "f32[4, 4]":scatter_nd({ { 0, 1 }, { 2, 3 } }, 7, { reduce = "add" })
---
---Errors: as x:put_nd.
---@param index deepc.Tensor|table
---@param values deepc.Operand
---@param options? deepc.ScatterOptions { reduce = "set" }
---@return deepc.Tensor
function Tensor:scatter_nd(index, values, options) end
dc.scatter_nd = Tensor.scatter_nd

---Sums of the rows of x that have the same number, of integers in i64 or u64. jax.ops.segment_sum. Numbers need no
---order.
---
---    dc.tensor { 1, 2, 3 }:segment_sum({ 0, 0, 2 }, 3)
---
---Errors: DC0701 for a number outside 0..count-1, at run time; DC0301 where the numbers are not of the first axes.
---@param segments deepc.Tensor|table integers of the sizes of the first axes of x
---@param count integer how many segments there are
---@param options? { fill?: number } of segments without rows: 0
---@return deepc.Tensor
function Tensor:segment_sum(segments, count, options) end
dc.segment_sum = Tensor.segment_sum

---Means of the rows of x that have the same number; of integers f32.
---
---    dc.tensor { 1, 2, 3 }:segment_mean({ 0, 0, 2 }, 3)
---
---Errors: as x:segment_sum.
---@param segments deepc.Tensor|table
---@param count integer
---@param options? { fill?: number } of segments without rows: 0
---@return deepc.Tensor
function Tensor:segment_mean(segments, count, options) end
dc.segment_mean = Tensor.segment_mean

---The largest of the rows of x that have the same number. jax.ops.segment_max.
---
---    dc.tensor { 1, 2, 3 }:segment_max({ 0, 0, 2 }, 3, { fill = 0 })
---
---Errors: as x:segment_sum.
---@param segments deepc.Tensor|table
---@param count integer
---@param options? { fill?: number } of segments without rows: -inf, of integers the least one
---@return deepc.Tensor
function Tensor:segment_max(segments, count, options) end
dc.segment_max = Tensor.segment_max

---The smallest of the rows of x that have the same number. jax.ops.segment_min.
---
---    dc.tensor { 1, 2, 3 }:segment_min({ 0, 0, 2 }, 3, { fill = 0 })
---
---Errors: as x:segment_sum.
---@param segments deepc.Tensor|table
---@param count integer
---@param options? { fill?: number } of segments without rows: inf, of integers the largest one
---@return deepc.Tensor
function Tensor:segment_min(segments, count, options) end
dc.segment_min = Tensor.segment_min

---Products of the rows of x that have the same number. jax.ops.segment_prod.
---
---    dc.tensor { 1, 2, 3 }:segment_prod({ 0, 0, 2 }, 3)
---
---Errors: as x:segment_sum.
---@param segments deepc.Tensor|table
---@param count integer
---@param options? { fill?: number } of segments without rows: 1
---@return deepc.Tensor
function Tensor:segment_prod(segments, count, options) end
dc.segment_prod = Tensor.segment_prod

-- ---- Selection and counts ----

---Room for what a mask selects: `bound` elements (as many as the mask has), `fill` behind those that there are (0).
---More than the bound are an error at run time, or with more = "drop" left out.
---@alias deepc.CompactOptions { bound?: integer, fill?: number|boolean, more?: "drop" }

---The elements where a mask is true, one behind the other in their order, and how many there are. A mask of the first
---axes of x selects rows. torch.masked_select, x[mask] in NumPy; their results have as many elements as there are true
---ones, which is known when the data is: here the size is the bound.
---
---    local positive, count = dc.tensor { 3, -1, 2 }:compact(dc.tensor { 3, -1, 2 }:gt(0))
---    print(positive, count)
---
---Errors: DC0701 for more elements than the bound, at run time; DC0202 for a mask that is no bool, DC0301 for its
---sizes.
---@param mask deepc.Tensor bool, of the sizes of the first axes of x
---@param options? deepc.CompactOptions
---@return deepc.Tensor values
---@return deepc.Tensor count an i32[]
function Tensor:compact(mask, options) end
dc.compact = Tensor.compact

---The positions of what is not 0, row by row, and how many there are: i32[bound, axes of x], which count from 0; -1
---behind them. torch.nonzero, np.argwhere; jnp.nonzero(size=).
---
---    local at, count = dc.tensor { { 0, 2 }, { 3, 0 } }:nonzero { bound = 3 }
---    print(at, count)
---
---Errors: as x:compact.
---@param options? deepc.CompactOptions fill: -1
---@return deepc.Tensor positions
---@return deepc.Tensor count an i32[]
function Tensor:nonzero(options) end
dc.nonzero = Tensor.nonzero

---How often each integer from 0 to bins - 1 occurs, or the sum of its weights.
---
---    dc.tensor({ 0, 1, 1, 3 }, "i32"):bincount { bins = 4 }
---
---Errors: DC0701 for an integer outside, at run time; DC0101 without bins; DC0301 for weights of another size.
---@param options { bins: integer, weights?: deepc.Tensor }
---@return deepc.Tensor i32[bins], or of the dtype of the weights
function Tensor:bincount(options) end
dc.bincount = Tensor.bincount

---How many elements are in each bin, and the edges. Bins have their lower edge and not the upper one, but the last,
---which has both; what is outside counts nowhere, nor do NaN and infinities. torch.histc, np.histogram.
---
---    local counts, edges = dc.tensor { 1, 2, 2, 4 }:histogram(3, { range = { 1, 4 } })
---    print(counts, edges)
---
---Errors: DC0101 for bins and range; DC0301 for weights of another size.
---@param bins? integer|deepc.Tensor|number[] how many of equal width (10), or the edges, which ascend
---@param options? { range?: number[], weights?: deepc.Tensor, density?: boolean } range: of what is finite
---@return deepc.Tensor counts i32, or of the dtype of the weights; with density of the edges
---@return deepc.Tensor edges one more than bins
function Tensor:histogram(bins, options) end
dc.histogram = Tensor.histogram

---Is each element one of these values? np.isin, torch.isin.
---
---    dc.tensor { 1, 2, 3 }:isin { 2, 3 }
---
---Errors: DC0201 for another dtype.
---@param values deepc.Tensor|table
---@param options? { invert?: boolean } is it none of them?
---@return deepc.Tensor bool
function Tensor:isin(values, options) end
dc.isin = Tensor.isin

-- ---- Search ----

---How many elements of a sorted axis are less than each value: where it belongs. With { right = true } those that are
---equal count, too. NaN is behind all numbers, as dc.sort has it. With a sorted axis for each row of the values, the
---last one is searched. np.searchsorted, torch.searchsorted. What is not sorted gives positions without meaning.
---
---    dc.tensor { 1, 3, 5 }:searchsorted { 0, 3, 9 }
---
---Errors: DC0202 for other dtypes, DC0301 for rows that differ.
---@param values deepc.Operand|table
---@param options? { right?: boolean, sorter?: deepc.Tensor } sorter: positions that sort x
---@return deepc.Tensor i32
function Tensor:searchsorted(values, options) end
dc.searchsorted = Tensor.searchsorted

---The number of the interval between sorted edges that each element is in: edges[k - 1] < x <= edges[k]; with
---{ right = true } edges[k - 1] <= x < edges[k]. torch.bucketize; np.digitize has it the other way round.
---
---    dc.tensor { 1, 2, 9 }:bucketize { 2, 4 }
---
---Errors: DC0202 for other dtypes, DC0301 for more than one axis.
---@param edges deepc.Tensor|table
---@param options? { right?: boolean }
---@return deepc.Tensor i32, from 0 to the number of edges
function Tensor:bucketize(edges, options) end
dc.bucketize = Tensor.bucketize

---The number of the interval between sorted edges that each element is in: edges[k - 1] <= x < edges[k]; with
---{ right = true } edges[k - 1] < x <= edges[k]. np.digitize, which finds out by itself whether edges descend.
---
---    dc.tensor { 1, 2, 9 }:digitize { 2, 4 }
---
---Errors: DC0202 for other dtypes, DC0301 for more than one axis.
---@param edges deepc.Tensor|table
---@param options? { right?: boolean, descending?: boolean } descending: so are the edges
---@return deepc.Tensor i32, from 0 to the number of edges
function Tensor:digitize(edges, options) end
dc.digitize = Tensor.digitize

---Piecewise linear interpolation between points (xp, fp), whose xp ascend; beyond them the first and the last value, or
---left and right. np.interp. Gradients go to x, xp and fp.
---
---    dc.tensor { 0.5, 1.5 }:interp({ 0, 1, 2 }, { 0, 10, 40 })
---
---Errors: DC0202 for other dtypes, DC0301 for points of several axes or different sizes.
---@param xp deepc.Tensor|table
---@param fp deepc.Tensor|table
---@param options? { left?: number, right?: number }
---@return deepc.Tensor
function Tensor:interp(xp, fp, options) end
dc.interp = Tensor.interp
