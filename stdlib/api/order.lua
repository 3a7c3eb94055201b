---@meta _

-- Order along an axis (annotations; see values.lua).

---@class deepc
local dc = {}

---@class deepc.Tensor
local Tensor = {}

-- ---- Order ----

---The elements along an axis in ascending order (np.sort; torch.sort without the positions, which are x:argsort).
---Equal elements keep their order, -0 is equal to 0, NaN comes behind everything, in descending order before
---everything. The gradient goes back to where each element was. Computed on the host, on every device.
---
---    dc.tensor { 3, 1, 2 }:sort()     dc.zeros "f32[2, 3]":sort { axis = 1, descending = true }
---
---Errors: DC0103 for axes, DC0101 for a tensor without any.
---@param axis? integer|string|{ axis?: integer|string, descending?: boolean } the last one
---@return deepc.Tensor of the type of x
function Tensor:sort(axis) end
dc.sort = Tensor.sort

---The positions, from 0, that put the elements along an axis in order, as x:sort does (np.argsort with
---kind="stable", torch.argsort).
---
---    dc.tensor { 3, 1, 2 }:argsort()
---
---Errors: as x:sort.
---@param axis? integer|string|{ axis?: integer|string, descending?: boolean } the last one
---@return deepc.Tensor i32, of the shape of x
function Tensor:argsort(axis) end
dc.argsort = Tensor.argsort

---The k largest elements along an axis, the largest first, and their positions from 0 (torch.topk, jax.lax.top_k); with
---largest = false the smallest. Of equal elements the first ones; NaN is the largest of all.
---
---    dc.tensor { 3, 1, 2 }:top_k(2)     dc.zeros "f32[2, 3]":top_k(1, { axis = 1, largest = false })
---
---Errors: DC0103 for axes, DC0101 for more than there are.
---@param k integer
---@param axis? integer|string|{ axis?: integer|string, largest?: boolean } the last one
---@return deepc.Tensor values of the dtype of x, with k elements along the axis
---@return deepc.Tensor positions i32
function Tensor:top_k(k, axis) end
dc.top_k = Tensor.top_k

---What is taken of two elements between which a quantile lies.
---@alias deepc.Interpolation "linear"|"lower"|"higher"|"nearest"|"midpoint"

---The axes of a quantile, all unless told; { axis = 2, keep = true, interpolation = "lower" }.
---@alias deepc.QuantileAxes deepc.Axes|{ interpolation?: deepc.Interpolation }

---The element that a share q of the elements along the axes are below, as torch.quantile and np.quantile have it; of a
---list of shares one after the other along a new first axis. NaN where one of the elements is NaN. Of integers f32.
---
---    dc.tensor { 1, 2, 3, 4 }:quantile(0.5)     dc.zeros "f32[2, 3]":quantile({ 0.25, 0.75 }, { axis = 2 })
---
---Errors: DC0101 for q and the options, DC0103 for axes.
---@param q number|number[] from 0 to 1
---@param axis? deepc.QuantileAxes
---@return deepc.Tensor
function Tensor:quantile(q, axis) end
dc.quantile = Tensor.quantile

---x:quantile(q / 100). np.percentile.
---
---    dc.tensor { 1, 2, 3, 4 }:percentile(90)
---
---Errors: as x:quantile.
---@param q number|number[] from 0 to 100
---@param axis? deepc.QuantileAxes
---@return deepc.Tensor
function Tensor:percentile(q, axis) end
dc.percentile = Tensor.percentile

---The same of the elements that are not NaN; NaN where there are none. torch.nanquantile.
---
---    dc.tensor { 1, 0 / 0, 3 }:nanquantile(0.5)
---
---Errors: as x:quantile.
---@param q number|number[] from 0 to 1
---@param axis? deepc.QuantileAxes
---@return deepc.Tensor
function Tensor:nanquantile(q, axis) end
dc.nanquantile = Tensor.nanquantile

---The one in the middle along the axes, or the mean of both: np.median. torch.median takes the lower one, which is
---x:quantile(0.5, { interpolation = "lower" }).
---
---    dc.tensor { 3, 1, 2 }:median()
---
---Errors: DC0103 for axes.
---@param axis? deepc.Axes all
---@return deepc.Tensor
function Tensor:median(axis) end
dc.median = Tensor.median

---The same of the elements that are not NaN; NaN where there are none. np.nanmedian.
---
---    dc.tensor { 1, 0 / 0, 3 }:nanmedian()
---
---Errors: as x:median.
---@param axis? deepc.Axes all
---@return deepc.Tensor
function Tensor:nanmedian(axis) end
dc.nanmedian = Tensor.nanmedian

---The k-th smallest along an axis, from 1, and its position, from 0. torch.kthvalue.
---
---    dc.tensor { 3, 1, 2 }:kthvalue(2)
---
---Errors: DC0101 for k, DC0103 for the axis.
---@param k integer
---@param axis? deepc.Axis|{ axis?: deepc.Axis, keep?: boolean } the last one
---@return deepc.Tensor value
---@return deepc.Tensor position i32
function Tensor:kthvalue(k, axis) end
dc.kthvalue = Tensor.kthvalue

---The value that occurs most often along an axis, of several the smallest, and where it comes last, from 0. All NaN are
---one value, larger than the others. torch.mode, scipy.stats.mode.
---
---    dc.tensor { 3, 1, 3, 2 }:mode()     dc.zeros "i32[2, 3]":mode { axis = 1, keep = true }
---
---The gradient goes to the element that the position tells.
---
---Errors: DC0103 for the axis, DC0101 where it has no element.
---@param axis? deepc.Axis|{ axis?: deepc.Axis, keep?: boolean } the last one
---@return deepc.Tensor value
---@return deepc.Tensor position i32
function Tensor:mode(axis) end
dc.mode = Tensor.mode

---Each value once, in ascending order, with room for `bound` of them (as many as x has elements), how many there are,
---and for each element of x the number of its value, from 0, and for each value how often it occurs. All NaN are one
---value. np.unique, torch.unique, jnp.unique(size=).
---
---    local values, count, inverse, counts = dc.tensor { 3, 1, 3 }:unique { bound = 2 }
---    print(values, count, inverse, counts)
---
---Errors: DC0701 for more values than the bound, at run time; DC0101 for the options.
---@param options? deepc.CompactOptions
---@return deepc.Tensor values
---@return deepc.Tensor count an i32[]
---@return deepc.Tensor inverse i32, of the shape of x
---@return deepc.Tensor counts i32
function Tensor:unique(options) end
dc.unique = Tensor.unique
