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
