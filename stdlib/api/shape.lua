---@meta _

-- Shapes of tensors (annotations; see values.lua).

---@class deepc
local dc = {}

---@class deepc.Tensor
local Tensor = {}

-- ---- Shape ----

---The same elements in order, in another shape. One size may be -1: what is left. Text gives names,
---too: "t=8" with a size, "batch" alone with that of the axis of this name, or of the axis at its
---place. Names stay along the longest common run of sizes from the left, then from the right.
---
---    dc.iota(6):reshape(2, -1)     dc.iota(6):reshape "[rows=2, 3]"
---    dc.zeros "f32[4, 40]":reshape "[batch, head=5, t]"
---
---Errors: DC0303 where the counts of elements differ.
---@param ... integer|integer[]|string sizes, a list of them, or "[2, 3]"
---@return deepc.Tensor
function Tensor:reshape(...) end

---Axes from one to another become one.
---
---    dc.zeros "f32[64, 28, 28]":flatten(2)
---
---Errors: DC0103 for axes, DC0101 where one is behind the other.
---@param from? deepc.Axis the first
---@param to? deepc.Axis the last
---@return deepc.Tensor
function Tensor:flatten(from, to) end

---Exchanges two axes, the last two unless given.
---
---    dc.zeros "f32[2, 3]":transpose()
---
---Errors: DC0103 for axes, DC0101 for fewer than two.
---@param a? deepc.Axis
---@param b? deepc.Axis
---@return deepc.Tensor
function Tensor:transpose(a, b) end

---Axes in another order, all of them.
---
---    dc.zeros "f32[2, 3, 4]":permute(3, 1, 2)
---
---Errors: DC0103, DC0104 for axes, DC0302 where they are not all listed.
---@param ... deepc.Axis|deepc.Axis[]
---@return deepc.Tensor
function Tensor:permute(...) end

---Repeats along unnamed axes of size 1.
---
---    dc.zeros "f32[2, 1]":expand(2, 3)
---
---Errors: DC0301 for an axis whose size is neither 1 nor that, DC0302 for fewer axes.
---@param ... integer|integer[]|string sizes, a list of them, or "[2, 3]"
---@return deepc.Tensor
function Tensor:expand(...) end

---Ranges of positions by axis, with both ends; the other axes stay whole.
---
---    dc.zeros "f32[batch=32, 784]":slice { batch = { 1, 16 } }
---    dc.iota(5):slice { { 5, 1, -2 } }
---
---Errors: DC0106, DC0308 for positions outside.
---@param ranges table<deepc.Axis, integer[]> { first, last } or { first, last, step }
---@return deepc.Tensor
function Tensor:slice(ranges) end

---A new tensor with other values in one part.
---
---    dc.zeros "f32[3]":put({ 2 }, 5)     dc.zeros "f32[2, 3]":put({ {}, { 2, 3 } }, 1)
---
---Errors: as x[index]: DC0106; DC0701 for an integer outside; DC0201, DC0301 for the value.
---@param index table|integer|deepc.Tensor as in x[index]; or integers along an axis, which count from 0
---@param value deepc.Operand of the shape of the part, or one that stretches to it
---@param axis? deepc.Axis of integers; 1
---@return deepc.Tensor
function Tensor:put(index, value, axis) end

---The same values in another dtype. Floats to integers truncate and saturate, NaN gives 0; integers
---wrap. Floats are rounded once, to the nearest, ties to even; what is beyond the largest number becomes infinity, or
---NaN in f8e4m3fn, which has no infinity; with saturate = true that number.
---
---    dc.tensor { 1.7 }:cast "i32"
---    dc.tensor { 1000 }:cast("f8e4m3fn", { saturate = true })
---
---Errors: DC0101 for what is no dtype; for saturate where there is no float to saturate to.
---@param dtype string "f32"
---@param options? { saturate?: boolean }
---@return deepc.Tensor
function Tensor:cast(dtype, options) end
dc.cast = Tensor.cast

---The pattern of each element, read as another dtype of the same width: f32 as i32 or u32, f64 as i64 or u64, f16 and
---bf16 as i16 or u16, f8e4m3fn and f8e5m2 as i8 or u8, and back; of those that are as wide, any as any. x:cast keeps
---the number instead. Exact for all patterns in memory, the payload of a NaN and the sign of a zero, too; which NaN
---arithmetic gives is not said. A float shorter than f32 that was just computed is rounded first, as where it is
---stored. There is no gradient.
---
---    dc.tensor { 1, -0.0 }:bitcast "u32"
---    (dc.tensor({ 1 << 31 }, "u32") >> 9 | 0x3f800000):bitcast "f32" - 1     -- 32 random bits to a number from 0 to 1
---
---Errors: DC0101 for what is no dtype; DC0202 for bool, complex numbers and another width.
---@param dtype string "u32"
---@return deepc.Tensor
function Tensor:bitcast(dtype) end
dc.bitcast = Tensor.bitcast

---Other names of dims; false takes one away.
---
---    dc.zeros "f32[a=2, b=3]":rename { a = "n" }     dc.zeros "f32[2, 3]":rename { "a", "b" }
---
---Errors: DC0103, DC0104 for axes.
---@param names table<deepc.Axis, string|false>|deepc.Axis by axis; or one axis, whose name follows
---@param name? string|false
---@return deepc.Tensor
function Tensor:rename(names, name) end

---More elements before and after, along some axes; those axes lose their names (F.pad of PyTorch, np.pad).
---
---    dc.zeros "f32[2, 3]":pad { [2] = { 1, 1 } }     dc.zeros "f32[n=2]":pad({ n = { 0, 3 } }, -1)
---    dc.iota(4):pad({ { 2, 1 } }, { mode = "reflect" })
---
---Modes: "constant", "reflect" (backwards from the last element on, which is not repeated), "symmetric" (which is),
---"replicate" (the last element again and again, "edge" of NumPy), "circular" (the other end, "wrap" of NumPy).
---
---Errors: DC0103 for axes, DC0101 for margins and modes, DC0203 for a value that the dtype does not hold, DC0301 for a
---margin that an axis has not enough elements for, DC0311 where that is so for a size that a dim may have.
---@param margins table<deepc.Axis, integer|integer[]> { before, after }, or one number for both
---@param value? number|boolean|{ mode?: string, value?: number|boolean } 0
---@return deepc.Tensor
function Tensor:pad(margins, value) end
dc.pad = Tensor.pad

---Backwards along axes.
---
---    dc.iota(3):flip()
---
---Errors: DC0103, DC0104 for axes.
---@param axes? deepc.Axis|deepc.Axis[] all
---@return deepc.Tensor
function Tensor:flip(axes) end
dc.flip = Tensor.flip

---Moves elements by so many positions along an axis, round the end.
---
---    dc.iota(5):roll(2, 1)
---
---Errors: DC0103 for the axis.
---@param by integer towards the end; negative towards the start
---@param axis deepc.Axis
---@return deepc.Tensor
function Tensor:roll(by, axis) end
dc.roll = Tensor.roll

---Several tensors, parts along an axis; it loses its name.
---
---    local left, right = dc.iota(6):split(2)
---
---Errors: DC0101 where the sizes do not add up, DC0311 where they do not for each size that a dim may have, DC0103.
---@param parts integer|integer[] how many equal ones, or their sizes
---@param axis? deepc.Axis 1
---@return deepc.Tensor ... # the parts
function Tensor:split(parts, axis) end
dc.split = Tensor.split

---One behind the other along an axis, which loses its name.
---
---    dc.concat({ dc.zeros "f32[2, 3]", dc.ones "f32[1, 3]" }, 1)
---
---Errors: DC0301 where other sizes differ, DC0201 where dtypes do, DC0101 for an empty list, DC0103 for the
---axis.
---@param list deepc.Tensor[] at least one, of one dtype
---@param axis? deepc.Axis 1
---@return deepc.Tensor
function dc.concat(list, axis) end

---Side by side along a new axis.
---
---    dc.stack({ dc.zeros "f32[3]", dc.ones "f32[3]" }, 1)
---
---Errors: DC0301 where sizes differ, DC0201 where dtypes do, DC0101 for an empty list or the axis.
---@param list deepc.Tensor[] at least one, of one type
---@param axis? integer where the new axis is; 1
---@return deepc.Tensor
function dc.stack(list, axis) end
