---@meta _

-- Functions that arrange elements (annotations; see values.lua).

---@class deepc
local dc = {}

---@class deepc.Tensor
local Tensor = {}

-- ---- Arranging elements ----

---Of a vector a matrix of zeros with the vector on a diagonal; of a matrix its diagonal (torch.diag, np.diag).
---
---    dc.tensor({ 1, 2 }):diag()     dc.zeros "f32[3, 4]":diag(1)
---
---Errors: DC0301 for other ranks.
---@param offset? integer 0; above the main diagonal, negative below it
---@return deepc.Tensor
function Tensor:diag(offset) end
dc.diag = Tensor.diag

---The elements on a diagonal of two axes, as a new last axis (torch.diagonal, np.diagonal).
---
---    dc.zeros "f32[8, 3, 3]":diagonal(0, 2, 3)
---
---Errors: DC0103 for axes, DC0101 for fewer than two, DC0311 for sizes that are known at run time.
---@param offset? integer 0; above the main diagonal, negative below it
---@param axis1? deepc.Axis 1
---@param axis2? deepc.Axis 2
---@return deepc.Tensor
function Tensor:diagonal(offset, axis1, axis2) end
dc.diagonal = Tensor.diagonal

---The sum of a diagonal of two axes (torch.trace, np.trace).
---
---    dc.eye "f32[3, 3]":trace()
---
---Errors: as x:diagonal.
---@param offset? integer 0
---@param axis1? deepc.Axis 1
---@param axis2? deepc.Axis 2
---@return deepc.Tensor
function Tensor:trace(offset, axis1, axis2) end

---All products of elements of two vectors (torch.outer, np.outer).
---
---    dc.outer(dc.tensor { 1, 2 }, dc.tensor { 3, 4, 5 })
---
---Errors: DC0301 for what is no vector, DC0201 where dtypes differ.
---@param b deepc.Tensor
---@return deepc.Tensor
function Tensor:outer(b) end
dc.outer = Tensor.outer

---The sum of the products of two vectors (torch.dot, np.dot). Integers of 8 and 16 bits are added as they are.
---
---    dc.dot(dc.tensor { 1, 2 }, dc.tensor { 3, 4 })
---
---Errors: DC0301 for what is no vector and for sizes that differ, DC0202 where dtypes do.
---@param b deepc.Tensor
---@return deepc.Tensor
function Tensor:dot(b) end
dc.dot = Tensor.dot

---x:dot(b), of complex numbers with the conjugates of x (torch.vdot, np.vdot).
---
---    dc.vdot(dc.tensor { 1, 2 }, dc.tensor { 3, 4 })
---
---Errors: as x:dot.
---@param b deepc.Tensor
---@return deepc.Tensor
function Tensor:vdot(b) end
dc.vdot = Tensor.vdot

---The sums of products over the last axis of both; the result has the other axes of x, then those of b (torch.inner,
---np.inner).
---
---    dc.inner(dc.ones "f32[2, 3]", dc.ones "f32[4, 3]")
---
---Errors: DC0301 where the last axes differ, DC0202 where dtypes do.
---@param b deepc.Tensor
---@return deepc.Tensor
function Tensor:inner(b) end
dc.inner = Tensor.inner

---Of each element of x a copy of b times it, side by side (torch.kron, np.kron).
---
---    dc.kron(dc.eye "f32[2, 2]", dc.ones "f32[2, 2]")
---
---Errors: DC0101 for more than 4 axes, DC0202 where dtypes differ.
---@param b deepc.Tensor
---@return deepc.Tensor
function Tensor:kron(b) end
dc.kron = Tensor.kron

---The vector product along an axis of 3 elements (torch.linalg.cross, np.cross).
---
---    dc.cross(dc.tensor { 1, 0, 0 }, dc.tensor { 0, 1, 0 })
---
---Errors: DC0301 where the axis has another size, DC0103 for the axis.
---@param b deepc.Tensor
---@param axis? deepc.Axis -1
---@return deepc.Tensor
function Tensor:cross(b, axis) end
dc.cross = Tensor.cross

---Vectors as the axes of a grid: of each a tensor with one axis for each vector, along whose own axis its elements
---go (torch.meshgrid, np.meshgrid).
---
---    local y, x = dc.meshgrid { dc.linspace(0, 1, 3), dc.linspace(0, 1, 4) }
---
---indexing = "xy" exchanges the first two axes, which is the default of NumPy.
---
---Errors: DC0101 for what is no list, DC0301 for what is no vector.
---@param list deepc.Tensor[] vectors
---@param options? { indexing?: "ij"|"xy" } "ij"
---@return deepc.Tensor ... # as many as there are vectors
function dc.meshgrid(list, options) end

---The whole again and again along each axis (torch.tile, x.repeat of PyTorch, np.tile). Fewer numbers than axes are
---for the last ones; more make new axes in front.
---
---    dc.iota(3):tile(2)     dc.iota(3):tile(2, 1)
---
---Errors: DC0101 for what is no number of times.
---@param ... integer|integer[] how often along each axis
---@return deepc.Tensor
function Tensor:tile(...) end
dc.tile = Tensor.tile

---Each element again and again (torch.repeat_interleave, np.repeat).
---
---    dc.iota(3):repeat_interleave(2)     dc.zeros "f32[2, 3]":repeat_interleave({ 1, 0, 2 }, 2)
---
---Errors: DC0301 where the counts are not as many as the elements, DC0103 for the axis.
---@param times integer|integer[] how often, or how often each
---@param axis? deepc.Axis without one x is flattened before
---@return deepc.Tensor
function Tensor:repeat_interleave(times, axis) end
dc.repeat_interleave = Tensor.repeat_interleave

---Some axes at other places; the rest keeps its order (torch.movedim, np.moveaxis).
---
---    dc.zeros "f32[8, 3, 32, 32]":movedim(2, -1)
---
---Errors: DC0103, DC0101 for axes.
---@param from deepc.Axis|deepc.Axis[]
---@param to deepc.Axis|deepc.Axis[] where they are afterwards
---@return deepc.Tensor
function Tensor:movedim(from, to) end
dc.movedim = Tensor.movedim

---Turned by quarters from the first axis towards the second one (torch.rot90, np.rot90).
---
---    dc.iota "i32[2, 3]":rot90()
---
---Errors: DC0103, DC0101 for axes.
---@param times? integer 1; negative the other way round
---@param axes? deepc.Axis[] { 1, 2 }
---@return deepc.Tensor
function Tensor:rot90(times, axes) end
dc.rot90 = Tensor.rot90

---Sliding windows along an axis, whose elements are a new last axis (x.unfold of PyTorch,
---np.lib.stride_tricks.sliding_window_view). What does not fill a window at the end is left out.
---
---    dc.iota(5):unfold(1, 3)     dc.zeros "f32[8, 100]":unfold(2, 10, 5)
---
---Errors: DC0301 for a window larger than the axis, DC0103 for the axis.
---@param axis deepc.Axis
---@param size integer of a window
---@param step? integer from one window to the next; 1
---@return deepc.Tensor
function Tensor:unfold(axis, size, step) end
dc.unfold = Tensor.unfold

-- ---- Distances ----

---The distances of all pairs of rows: of x[..., n, size] and y[..., m, size] a tensor [..., n, m] (torch.cdist,
---scipy.spatial.distance.cdist). Differences are taken before they are squared, so those of near rows are exact. At
---distance 0 the gradient is 0. For vectors of one pair of rows each: nn.pairwise_distance.
---
---    dc.cdist(dc.tensor { { 0, 0 }, { 1, 1 } }, dc.tensor { { 3, 4 } })
---
---p is the order of the norm: 2, 1, math.huge (the largest difference), 0 (how many differ), or any other.
---
---Errors: DC0301 where sizes do not fit, DC0202 for dtypes, DC0101 for p, DC0305 where both rows have one name.
---@param x deepc.Tensor floats
---@param y deepc.Tensor of the dtype of x
---@param options? { p?: number } 2
---@return deepc.Tensor
function dc.cdist(x, y, options) end

-- ---- Numbers in a row ----

---Numbers from one to another in equal steps, both included (torch.linspace, np.linspace).
---
---    dc.linspace(0, 1, 5)
---
---Errors: DC0101 for ends that are no numbers, for the count, for a dtype that is no float.
---@param first number|deepc.Tensor a number or a scalar
---@param last number|deepc.Tensor
---@param n integer how many
---@param dtype? string "f32", or that of the scalars
---@return deepc.Tensor
function dc.linspace(first, last, n, dtype) end

---Powers of a base, whose exponents go from one number to another in equal steps (torch.logspace, np.logspace).
---
---    dc.logspace(-3, 0, 4)
---
---Errors: as dc.linspace.
---@param first number|deepc.Tensor the first exponent
---@param last number|deepc.Tensor the last one
---@param n integer how many
---@param options? { base?: number, dtype?: string } 10, "f32"
---@return deepc.Tensor
function dc.logspace(first, last, n, options) end

---Numbers from one to another, which is not reached, in steps (torch.arange, np.arange): of whole numbers i32, else
---f32. dc.iota is for positions along an axis of any type.
---
---    dc.arange(5)     dc.arange(2, 10, 2)     dc.arange(0, 1, 0.25)     dc.arange(0, 5, 1, "f64")
---
---Errors: DC0101 for a step of 0 and for numbers that the dtype does not hold.
---@param first integer|number 0 if it is the only number, which then is the end
---@param stop? number
---@param step? number 1
---@param dtype? string
---@return deepc.Tensor
function dc.arange(first, stop, step, dtype) end

---Powers of the elements of a vector, each row those of one element (np.vander, torch.vander).
---
---    dc.vander(dc.tensor { 1, 2, 3 })
---
---Errors: DC0301 for what is no vector.
---@param n? integer how many columns; as many as there are elements
---@param options? { increasing?: boolean } false: the highest power first, as NumPy; PyTorch the same
---@return deepc.Tensor
function Tensor:vander(n, options) end
dc.vander = Tensor.vander
