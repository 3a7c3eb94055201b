---@meta deepc

-- What scripts see of the module and its values, as annotations: the one source of the completion in
-- editors (library/), of the pages in docs/reference/ and of :help at the prompt. Nothing of it runs.
--
-- A doc comment says what a function does, then shows a line of code (indented by four), then names
-- the errors of its own; dtypes and shapes stand with parameters and results. The modules of stdlib/
-- carry theirs themselves.

---Tensors, typed functions that are traced and compiled, gradients. Everything raises, nothing
---returns nil and a message.
---
---    local dc = require "deepc"
---@class deepc
---@field _VERSION string "0.1.0"
local dc = {}

---The type of a tensor as text: a dtype (bool i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64) and
---sizes, each with a name if wanted: "f32[batch=64, 784]", "i32[10]", "f32[]" for a scalar.
---@alias deepc.Type string

---An axis: from 1, from the end if negative, or its name.
---@alias deepc.Axis integer|string

---Some axes: one, a list of them, or a table that says more. Without, all axes. `keep` leaves them
---with size 1.
---@alias deepc.Axes deepc.Axis|deepc.Axis[]|{ axis?: deepc.Axis|deepc.Axis[], keep?: boolean }

---What an operation takes: a tensor, a cell, or a number (or boolean), which gets the dtype of the
---tensor beside it.
---@alias deepc.Operand deepc.Tensor|deepc.Cell|number|boolean

-- ---- Values ----

---Numbers in a regular grid, of one dtype. Immutable: operations make new ones. Axes and positions
---count from 1. `#x` is the size of axis 1, `..` makes text, `+ - * / // % ^ & | ~ << >>` work element
---by element, `x[...]` takes parts:
---
---    x[2]  x[-1]                drops axis 1
---    x[{ 2, 3 }]                one position per axis
---    x[{ {}, { 2, 3 } }]        all of axis 1, positions 2 to 3 of axis 2
---    x[{ { 1, 9, 2 } }]         with a step
---
---`==` of two tensors and `<` raise: Lua makes them true or false. See x:eq and x:lt.
---@class deepc.Tensor
---@field shape integer[] sizes of the axes, a new list each time
---@field dtype string "f32"
---@operator add(deepc.Operand): deepc.Tensor
---@operator sub(deepc.Operand): deepc.Tensor
---@operator mul(deepc.Operand): deepc.Tensor
---@operator div(deepc.Operand): deepc.Tensor
---@operator idiv(deepc.Operand): deepc.Tensor
---@operator mod(deepc.Operand): deepc.Tensor
---@operator pow(deepc.Operand): deepc.Tensor
---@operator unm: deepc.Tensor
---@operator band(deepc.Operand): deepc.Tensor
---@operator bor(deepc.Operand): deepc.Tensor
---@operator bxor(deepc.Operand): deepc.Tensor
---@operator bnot: deepc.Tensor
---@operator shl(deepc.Operand): deepc.Tensor
---@operator shr(deepc.Operand): deepc.Tensor
---@operator len: integer
---@operator concat(any): string
---@field [any] deepc.Tensor
local Tensor = {}

---A parameter or a state: a place whose value changes and whose type does not. It stands wherever a
---tensor may and has the methods of one.
---@class deepc.Cell: deepc.Tensor
local Cell = {}

---A typed function: its body is traced once for each set of sizes, checked, compiled, and replayed by
---calls.
---@class deepc.Function
---@field name string from its signature
---@overload fun(...: any): any
local Function = {}

---A value that typed functions depend on; see dc.static.
---@class deepc.Static
---@field value any
local Static = {} -- luacheck: ignore

---Tensors that are freed together; see dc.scope.
---@class deepc.Scope
local Scope = {}

---What deepc raises. It reads as text with tostring, `..` and the string methods.
---@class deepc.Error
---@field code string "DC0301"; `deepc explain DC0301` tells more
---@field op? string the operation, as the script calls it
---@field at? string "train.lua:15"
---@field path? string the layer: "net.2 (nn.Linear 784 -> 10)"
---@field message string all of it
---@field hint? string what may help
---@field operands table[] types and origins of what it was given
---@field expected? string a type
---@field got? string a type
---@field traceback string of Lua, where it was raised
local Error = {} -- luacheck: ignore

-- ---- Making tensors ----

---A tensor of the numbers (or booleans) in a table, in tables of tables, or of one number. f32 unless
---the type says otherwise; with a whole type, sizes are checked.
---
---    dc.tensor { { 1, 2, 3 }, { 4, 5, 6 } }     dc.tensor({ 7, 2, 1 }, "i32")
---
---Errors: DC0112 where it is no regular grid, DC0203 for a value that the dtype does not hold, each
---with the place: "[2][3]".
---@param values table|number|boolean nested to one depth, of equal lengths, without holes
---@param type? deepc.Type or the name of a dtype; "f32"
---@return deepc.Tensor
function dc.tensor(values, type) end

---Zeros (false for bool).
---
---    dc.zeros "f32[batch=32, 784]"     dc.zeros(x)
---
---Errors: DC0401 where the text is no type.
---@param type deepc.Type|deepc.Tensor a tensor stands for its type
---@return deepc.Tensor
function dc.zeros(type) end

---Ones (true for bool).
---
---    dc.ones "f32[3]"
---
---Errors: as dc.zeros.
---@param type deepc.Type|deepc.Tensor a tensor stands for its type
---@return deepc.Tensor
function dc.ones(type) end

---One value everywhere.
---
---    dc.full("f32[3]", 0.5)
---
---Errors: as dc.zeros; DC0203 for a value that the dtype does not hold.
---@param type deepc.Type|deepc.Tensor a tensor stands for its type
---@param value number|boolean
---@return deepc.Tensor
function dc.full(type, value) end

---Positions 0, 1, 2 ... along an axis.
---
---    dc.iota(5)     dc.iota("f32[2, 3]", 1)
---
---Errors: as dc.zeros; DC0202 for bool, DC0101 for a scalar, DC0103 for the axis.
---@param type deepc.Type|deepc.Tensor|integer a size n is short for i32[n]
---@param axis? deepc.Axis the last
---@return deepc.Tensor
function dc.iota(type, axis) end

---Ones where the number of the row is that of the column, zeros elsewhere.
---
---    dc.eye "f32[3, 3]"
---
---Errors: as dc.zeros; DC0302 for another number of axes.
---@param type deepc.Type|deepc.Tensor of two axes
---@return deepc.Tensor
function dc.eye(type) end

-- ---- Random numbers ----

---Uniform numbers in [low, high).
---
---    dc.rand("f32[2, 3]", { low = -1, high = 1, seed = 42 })
---
---Errors: DC0202 for a dtype that is no float, DC0101 for options.
---@param type deepc.Type|deepc.Tensor of floats; a tensor stands for its type
---@param options? { low?: number, high?: number, seed?: integer } 0, 1; without seed the generator's next
---@return deepc.Tensor
function dc.rand(type, options) end

---Normal numbers.
---
---    dc.randn("f32[784, 128]", { std = 0.02, seed = 42 })
---
---Errors: as dc.rand.
---@param type deepc.Type|deepc.Tensor of floats; a tensor stands for its type
---@param options? { mean?: number, std?: number, seed?: integer } 0, 1; without seed the generator's next
---@return deepc.Tensor
function dc.randn(type, options) end

---Whole numbers from low to high - 1.
---
---    dc.randint("i32[64]", { high = 10 })
---
---Errors: DC0202 for a dtype that has no integers, DC0101 for options, and where nothing is between low and
---high.
---@param type deepc.Type|deepc.Tensor of integers
---@param options { low?: integer, high: integer, seed?: integer } low is 0; without seed the generator's next
---@return deepc.Tensor
function dc.randint(type, options) end

---True with probability p.
---
---    dc.bernoulli("bool[64]", { p = 0.1 })
---
---Errors: DC0202 for a dtype that is not bool, DC0101 for options.
---@param type deepc.Type|deepc.Tensor of bool
---@param options? { p?: number, seed?: integer } 0.5; without seed the generator's next
---@return deepc.Tensor
function dc.bernoulli(type, options) end

---The state of the generator, u32[4]: a key and how often it has advanced. Kept and set again, it
---gives the same numbers again; checkpoints have it.
---
---    local before = dc.generator():clone()
---@return deepc.Cell
function dc.generator() end

---Starts the generator again. It starts with DEEPC_SEED, or 0.
---
---    dc.seed(7)
---
---Errors: DC0101 for what is no integer.
---@param seed integer
function dc.seed(seed) end

-- ---- Values out of tensors ----

---The value of a tensor with one element: a float, an integer or a boolean, exactly.
---
---    dc.tensor(2.5):item()
---
---Errors: DC0101 for more elements, DC0602 while a function is traced, DC0203 for a u64 from 2^63 on.
---@return number|boolean
function Tensor:item() end

---All elements, in tables of tables; of a scalar the value itself.
---
---    dc.iota(3):totable()
---
---Errors: as x:item.
---@return table|number|boolean
function Tensor:totable() end

---The size of an axis.
---
---    dc.zeros "f32[batch=32, 784]":size "batch"
---
---Errors: DC0103 for an axis that is not there.
---@param axis deepc.Axis
---@return integer
function Tensor:size(axis) end

---A copy with memory of its own; keeps a batch that is on loan.
---
---    local kept = x:clone()
---@return deepc.Tensor
function Tensor:clone() end

---Frees its memory now. Later use is an error; `local x <close> = ...` does it where the block ends.
---
---    dc.zeros "f32[1000]":close()
function Tensor:close() end

-- ---- Memory ----

---Without arguments a scope, open from now on: when it is closed, what the coroutine made since is
---freed, but for cells and what was kept. With a function, calls it in a scope and keeps its results.
---
---    local s <close> = dc.scope()
---    local y = dc.scope(function(k) return dc.ones "f32[9]" * k end, 2)
---@param f? fun(...): ... may yield
---@param ... any its arguments
---@return deepc.Scope|any ... # a scope; or the results of f
function dc.scope(f, ...) end

---These outlive the scope; they belong to the one around it, if any.
---
---    total = s:keep(x:sum())
---
---Errors: DC0107 once it is closed.
---@param ... any tensors, tables of tensors
---@return any ... # the same
function Scope:keep(...) end

---Frees what was made since it was opened, but for these.
---
---    return s:close(y)
---@param ... any tensors, tables of tensors
---@return any ... # the same
function Scope:close(...) end

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
---wrap.
---
---    dc.tensor { 1.7 }:cast "i32"
---
---Errors: DC0101 for what is no dtype.
---@param dtype string "f32"
---@return deepc.Tensor
function Tensor:cast(dtype) end
dc.cast = Tensor.cast

---Other names of dims; false takes one away.
---
---    dc.zeros "f32[a=2, b=3]":rename { a = "n" }     dc.zeros "f32[2, 3]":rename { "a", "b" }
---
---Errors: DC0103, DC0104 for axes.
---@param names table<deepc.Axis, string|false>|deepc.Axis by axis; or one axis, whose name follows
---@param name? string|false
---@return deepc.Tensor
function Tensor:rename(names, name) end

---More elements before and after, along some axes; those axes lose their names.
---
---    dc.zeros "f32[2, 3]":pad { [2] = { 1, 1 } }     dc.zeros "f32[n=2]":pad({ n = { 0, 3 } }, -1)
---
---Errors: DC0103 for axes, DC0101 for margins, DC0203 for a value that the dtype does not hold.
---@param margins table<deepc.Axis, integer|integer[]> { before, after }, or one number for both
---@param value? number|boolean 0
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
---Errors: DC0101 where the sizes do not add up, DC0103 for the axis.
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

-- ---- Arithmetic ----

---a + b. Shapes align from the right; unnamed axes of size 1 stretch.
---
---    dc.tensor { 1, 2 } + 1
---
---Errors: DC0201 for other dtypes, DC0202 for booleans, DC0301 for other sizes, DC0305 for other names.
---@param b deepc.Operand of the same dtype; a number takes it
---@return deepc.Tensor
function Tensor:add(b) end
dc.add = Tensor.add

---a - b.
---
---    dc.tensor { 1, 2 } - 1
---
---Errors: as x:add.
---@param b deepc.Operand of the same dtype; a number takes it
---@return deepc.Tensor
function Tensor:sub(b) end
dc.sub = Tensor.sub

---a * b, element by element; the product of matrices is a:matmul(b).
---
---    dc.tensor { 1, 2 } * 2
---
---Errors: as x:add.
---@param b deepc.Operand of the same dtype; a number takes it
---@return deepc.Tensor
function Tensor:mul(b) end
dc.mul = Tensor.mul

---a / b. Integers become f32.
---
---    dc.tensor({ 7, 8 }, "i32") / 2
---
---Errors: as x:add, but for booleans, which become f32, too.
---@param b deepc.Operand of the same dtype; a number takes it
---@return deepc.Tensor
function Tensor:div(b) end
dc.div = Tensor.div

---a // b, rounded down as in Lua; of integers x // 0 is -1.
---
---    dc.tensor({ 7, -7 }, "i32") // 2
---
---Errors: as x:add.
---@param b deepc.Operand of the same dtype; a number takes it
---@return deepc.Tensor
function Tensor:floor_div(b) end
dc.floor_div = Tensor.floor_div

---a % b, with the sign of b as in Lua; of integers x % 0 is x.
---
---    dc.tensor({ 7, -7 }, "i32") % 3
---
---Errors: as x:add.
---@param b deepc.Operand of the same dtype; a number takes it
---@return deepc.Tensor
function Tensor:mod(b) end
dc.mod = Tensor.mod

---The remainder of a division that truncates, with the sign of a.
---
---    dc.tensor({ 7, -7 }, "i32"):rem(3)
---
---Errors: as x:add.
---@param b deepc.Operand of the same dtype; a number takes it
---@return deepc.Tensor
function Tensor:rem(b) end
dc.rem = Tensor.rem

---a ^ b. Integers become f32; a negative base has whole powers, others are NaN.
---
---    dc.tensor { 1, 2, 3 } ^ 2
---
---Errors: as x:add, but for booleans, which become f32, too.
---@param b deepc.Operand of the same dtype; a number takes it
---@return deepc.Tensor
function Tensor:pow(b) end
dc.pow = Tensor.pow

----x.
---
---    -dc.tensor { 1, 2 }
---
---Errors: DC0202 for booleans.
---@return deepc.Tensor of the shape and dtype of x
function Tensor:neg() end
dc.neg = Tensor.neg

---|x|.
---
---    dc.tensor { -1, 2 }:abs()
---
---Errors: DC0202 for booleans.
---@return deepc.Tensor of the shape and dtype of x
function Tensor:abs() end
dc.abs = Tensor.abs

---The largest whole number that is not above x.
---
---    dc.tensor { 1.5, -1.5 }:floor()
---
---Errors: DC0202 for integers and booleans.
---@return deepc.Tensor of the shape and dtype of x, a float
function Tensor:floor() end
dc.floor = Tensor.floor

---The larger of a and b; NaN where either is.
---
---    dc.tensor { 1, 5 }:maximum(3)
---
---Errors: DC0201, DC0301, DC0305 as x:add; of booleans false is the smaller one.
---@param b deepc.Operand of the same dtype; a number takes it
---@return deepc.Tensor
function Tensor:maximum(b) end
dc.maximum = Tensor.maximum

---The smaller of a and b; NaN where either is.
---
---    dc.tensor { 1, 5 }:minimum(3)
---
---Errors: DC0201, DC0301, DC0305 as x:add; of booleans false is the smaller one.
---@param b deepc.Operand of the same dtype; a number takes it
---@return deepc.Tensor
function Tensor:minimum(b) end
dc.minimum = Tensor.minimum

-- ---- Bits ----

---a & b; of booleans, both.
---
---    dc.tensor({ 6, 5 }, "i32") & 3
---
---Errors: DC0201, DC0301, DC0305 as x:add; DC0202 for floats.
---@param b deepc.Operand integers, or booleans
---@return deepc.Tensor
function Tensor:bit_and(b) end
dc.bit_and = Tensor.bit_and

---a | b; of booleans, either.
---
---    dc.tensor({ 6, 5 }, "i32") | 3
---
---Errors: DC0201, DC0301, DC0305 as x:add; DC0202 for floats.
---@param b deepc.Operand integers, or booleans
---@return deepc.Tensor
function Tensor:bit_or(b) end
dc.bit_or = Tensor.bit_or

---a ~ b; of booleans, one alone.
---
---    dc.tensor({ 6, 5 }, "i32") ~ 3
---
---Errors: DC0201, DC0301, DC0305 as x:add; DC0202 for floats.
---@param b deepc.Operand integers, or booleans
---@return deepc.Tensor
function Tensor:bit_xor(b) end
dc.bit_xor = Tensor.bit_xor

---~x; of booleans, the other one.
---
---    ~dc.tensor({ true, false }, "bool")
---
---Errors: DC0202 for floats.
---@return deepc.Tensor of the shape and dtype of x
function Tensor:bit_not() end
dc.bit_not = Tensor.bit_not

---a << b; 0 where b is the width or more.
---
---    dc.tensor({ 1, 2 }, "i32") << 3
---
---Errors: as x:add; DC0202 for floats, too.
---@param b deepc.Operand integers
---@return deepc.Tensor
function Tensor:shift_left(b) end
dc.shift_left = Tensor.shift_left

---a >> b, with the sign where the dtype has one.
---
---    dc.tensor({ 16, -16 }, "i32") >> 2
---
---Errors: as x:add; DC0202 for floats, too.
---@param b deepc.Operand integers
---@return deepc.Tensor
function Tensor:shift_right(b) end
dc.shift_right = Tensor.shift_right

-- ---- Functions ----

---e ^ x.
---
---    dc.tensor { 0, 1 }:exp()
---
---Errors: DC0202 for integers and booleans.
---@return deepc.Tensor of the shape and dtype of x, a float
function Tensor:exp() end
dc.exp = Tensor.exp

---The natural logarithm; -inf of 0, NaN below.
---
---    dc.tensor { 1, 2 }:log()
---
---Errors: DC0202 for integers and booleans.
---@return deepc.Tensor of the shape and dtype of x, a float
function Tensor:log() end
dc.log = Tensor.log

---The square root; NaN below 0.
---
---    dc.tensor { 4, 9 }:sqrt()
---
---Errors: DC0202 for integers and booleans.
---@return deepc.Tensor of the shape and dtype of x, a float
function Tensor:sqrt() end
dc.sqrt = Tensor.sqrt

---The hyperbolic tangent.
---
---    dc.tensor { 0, 1 }:tanh()
---
---Errors: DC0202 for integers and booleans.
---@return deepc.Tensor of the shape and dtype of x, a float
function Tensor:tanh() end
dc.tanh = Tensor.tanh

---1 / (1 + exp(-x)).
---
---    dc.tensor { 0, 1 }:sigmoid()
---
---Errors: DC0202 for integers and booleans.
---@return deepc.Tensor of the shape and dtype of x, a float
function Tensor:sigmoid() end
dc.sigmoid = Tensor.sigmoid

---The larger of x and 0. Its gradient at 0 is 0.
---
---    dc.tensor { -1, 1 }:relu()
---@return deepc.Tensor of the shape and dtype of x
function Tensor:relu() end
dc.relu = Tensor.relu

---x * x.
---
---    dc.tensor { 1, -2 }:square()
---
---Errors: DC0202 for booleans.
---@return deepc.Tensor of the shape and dtype of x
function Tensor:square() end
dc.square = Tensor.square

---1 / sqrt(x).
---
---    dc.tensor { 4, 9 }:rsqrt()
---
---Errors: DC0202 for integers and booleans.
---@return deepc.Tensor of the shape and dtype of x, a float
function Tensor:rsqrt() end
dc.rsqrt = Tensor.rsqrt

---1 / x. Integers become f32.
---
---    dc.tensor { 4, 8 }:reciprocal()
---@return deepc.Tensor a float
function Tensor:reciprocal() end
dc.reciprocal = Tensor.reciprocal

---1, -1, or the value itself where it is 0 or NaN.
---
---    dc.tensor { 3, -3, 0 }:sign()
---
---Errors: DC0202 for booleans.
---@return deepc.Tensor of the shape and dtype of x
function Tensor:sign() end
dc.sign = Tensor.sign

---The smallest whole number that is not below x.
---
---    dc.tensor { 1.5, -1.5 }:ceil()
---
---Errors: DC0202 for integers and booleans.
---@return deepc.Tensor of the shape and dtype of x, a float
function Tensor:ceil() end
dc.ceil = Tensor.ceil

---The whole number next to x towards 0.
---
---    dc.tensor { 1.5, -1.5 }:trunc()
---
---Errors: DC0202 for integers and booleans.
---@return deepc.Tensor of the shape and dtype of x, a float
function Tensor:trunc() end
dc.trunc = Tensor.trunc

---Between two bounds, one of which may be nil: min(max(x, low), high).
---
---    dc.tensor { 1, 5, 9 }:clamp(2, 6)     dc.tensor { 1, 5, 9 }:clamp(nil, 6)
---
---Errors: DC0101 without a bound; otherwise as x:maximum.
---@param low? deepc.Operand
---@param high? deepc.Operand
---@return deepc.Tensor of the dtype of x
function Tensor:clamp(low, high) end
dc.clamp = Tensor.clamp

---The nearest integer, as a float; of two the even one.
---
---    dc.tensor { 0.5, 1.5, -2.4 }:round()
---
---Errors: DC0202 for integers and booleans.
---@return deepc.Tensor of the shape and dtype of x, a float
function Tensor:round() end
dc.round = Tensor.round

---exp(x) - 1, exact for small x, too.
---
---    dc.tensor { 1e-6 }:expm1()
---
---Errors: DC0202 for integers and booleans.
---@return deepc.Tensor of the shape and dtype of x, a float
function Tensor:expm1() end
dc.expm1 = Tensor.expm1

---log(1 + x), exact for small x, too.
---
---    dc.tensor { 1e-6 }:log1p()
---
---Errors: DC0202 for integers and booleans.
---@return deepc.Tensor of the shape and dtype of x, a float
function Tensor:log1p() end
dc.log1p = Tensor.log1p

---The error function.
---
---    dc.tensor { 0, 1 }:erf()
---
---Errors: DC0202 for integers and booleans.
---@return deepc.Tensor of the shape and dtype of x, a float
function Tensor:erf() end
dc.erf = Tensor.erf

---The sine, for arguments of any size.
---
---    dc.tensor { 0, 1 }:sin()
---
---Errors: DC0202 for integers and booleans.
---@return deepc.Tensor of the shape and dtype of x, a float
function Tensor:sin() end
dc.sin = Tensor.sin

---The cosine, for arguments of any size.
---
---    dc.tensor { 0, 1 }:cos()
---
---Errors: DC0202 for integers and booleans.
---@return deepc.Tensor of the shape and dtype of x, a float
function Tensor:cos() end
dc.cos = Tensor.cos

---The tangent.
---
---    dc.tensor { 0, 1 }:tan()
---
---Errors: DC0202 for integers and booleans.
---@return deepc.Tensor of the shape and dtype of x, a float
function Tensor:tan() end
dc.tan = Tensor.tan

---x * sigmoid(x).
---
---    dc.tensor { -1, 1 }:silu()
---
---Errors: DC0202 for integers and booleans.
---@return deepc.Tensor of the shape and dtype of x, a float
function Tensor:silu() end
dc.silu = Tensor.silu

---log(1 + exp(x)), which never overflows.
---
---    dc.tensor { -1, 1 }:softplus()
---
---Errors: DC0202 for integers and booleans.
---@return deepc.Tensor of the shape and dtype of x, a float
function Tensor:softplus() end
dc.softplus = Tensor.softplus

---x times the normal distribution function of x; or, faster, with tanh in its place.
---
---    dc.tensor { -1, 1 }:gelu { approximate = "tanh" }
---
---Errors: DC0202 for integers and booleans.
---@param options? { approximate?: "tanh"|"none" } "none"
---@return deepc.Tensor of the shape and dtype of x, a float
function Tensor:gelu(options) end
dc.gelu = Tensor.gelu

-- ---- Comparisons and choice ----

---True where a is b; false where either is NaN.
---
---    dc.tensor { 1, 2, 3 }:eq(2)
---
---Errors: DC0201, DC0301, DC0305 as x:add; of booleans false is the smaller one.
---@param b deepc.Operand of the same dtype; a number takes it
---@return deepc.Tensor # bool
function Tensor:eq(b) end
dc.eq = Tensor.eq

---True where a is not b; also where either is NaN.
---
---    dc.tensor { 1, 2, 3 }:ne(2)
---
---Errors: DC0201, DC0301, DC0305 as x:add; of booleans false is the smaller one.
---@param b deepc.Operand of the same dtype; a number takes it
---@return deepc.Tensor # bool
function Tensor:ne(b) end
dc.ne = Tensor.ne

---True where a is less than b; false where either is NaN.
---
---    dc.tensor { 1, 2, 3 }:lt(2)
---
---Errors: DC0201, DC0301, DC0305 as x:add; of booleans false is the smaller one.
---@param b deepc.Operand of the same dtype; a number takes it
---@return deepc.Tensor # bool
function Tensor:lt(b) end
dc.lt = Tensor.lt

---True where a is less than b or the same; false where either is NaN.
---
---    dc.tensor { 1, 2, 3 }:le(2)
---
---Errors: DC0201, DC0301, DC0305 as x:add; of booleans false is the smaller one.
---@param b deepc.Operand of the same dtype; a number takes it
---@return deepc.Tensor # bool
function Tensor:le(b) end
dc.le = Tensor.le

---True where a is greater than b; false where either is NaN.
---
---    dc.tensor { 1, 2, 3 }:gt(2)
---
---Errors: DC0201, DC0301, DC0305 as x:add; of booleans false is the smaller one.
---@param b deepc.Operand of the same dtype; a number takes it
---@return deepc.Tensor # bool
function Tensor:gt(b) end
dc.gt = Tensor.gt

---True where a is greater than b or the same; false where either is NaN.
---
---    dc.tensor { 1, 2, 3 }:ge(2)
---
---Errors: DC0201, DC0301, DC0305 as x:add; of booleans false is the smaller one.
---@param b deepc.Operand of the same dtype; a number takes it
---@return deepc.Tensor # bool
function Tensor:ge(b) end
dc.ge = Tensor.ge

---a where the condition is true, b elsewhere.
---
---    dc.where(x:gt(0), x, 0)
---
---Errors: DC0202 where the condition is no bool; otherwise as x:add, booleans allowed.
---@param condition deepc.Tensor bool
---@param a deepc.Operand
---@param b deepc.Operand of the dtype of a
---@return deepc.Tensor
function dc.where(condition, a, b) end
Tensor.where = dc.where

---True where x is NaN.
---
---    dc.tensor { 1, 0 / 0 }:isnan()
---@return deepc.Tensor # bool
function Tensor:isnan() end
dc.isnan = Tensor.isnan

---True where x is inf or -inf.
---
---    dc.tensor { 1, 1 / 0 }:isinf()
---@return deepc.Tensor # bool
function Tensor:isinf() end
dc.isinf = Tensor.isinf

---True where x is neither inf nor -inf nor NaN.
---
---    dc.tensor { 1, 1 / 0 }:isfinite()
---@return deepc.Tensor # bool
function Tensor:isfinite() end
dc.isfinite = Tensor.isfinite

---Elements at positions along an axis, which gives way to the axes of the positions. They are data and
---count from 0.
---
---    dc.tensor { 5, 6, 7 }:take({ 2, 0, 0 }, 1)
---
---Errors: DC0701 for a position outside, which it names; DC0202 for positions that are no integers, DC0103
---for the axis.
---@param positions deepc.Tensor|integer[] integers
---@param axis? deepc.Axis 1
---@return deepc.Tensor of the dtype of x
function Tensor:take(positions, axis) end
dc.take = Tensor.take

---A new last axis of n with 1 at the position that an integer gives, from 0, and 0 elsewhere.
---
---    dc.tensor({ 2, 0 }, "i32"):one_hot(3)
---
---Errors: DC0701 for an integer outside 0..n-1, DC0202 where x has no integers.
---@param n integer
---@param dtype? string "f32"
---@return deepc.Tensor of the dtype asked for, x's axes and one more
function Tensor:one_hot(n, dtype) end
dc.one_hot = Tensor.one_hot

---The lower triangle of the last two axes, with k diagonals above the main one; 0 elsewhere.
---
---    dc.ones "f32[3, 3]":tril()
---
---Errors: DC0101 for fewer than two axes.
---@param k? integer 0
---@return deepc.Tensor of the shape and dtype of x
function Tensor:tril(k) end
dc.tril = Tensor.tril

---The upper triangle of the last two axes, from the k-th diagonal on; 0 elsewhere.
---
---    dc.ones "f32[3, 3]":triu(1)
---
---Errors: DC0101 for fewer than two axes.
---@param k? integer 0
---@return deepc.Tensor of the shape and dtype of x
function Tensor:triu(k) end
dc.triu = Tensor.triu

-- ---- Reductions ----

---The sum, of all elements or along axes; of bool and 8/16-bit integers in i32.
---
---    dc.zeros "f32[2, 3]":sum(2)     dc.zeros "f32[2, 3]":sum { axis = 2, keep = true }
---
---Errors: DC0103, DC0104 for axes.
---@param axes? deepc.Axes all
---@return deepc.Tensor of the dtype of x, or i32
function Tensor:sum(axes) end
dc.sum = Tensor.sum

---The mean; of integers and bool in f32, NaN of no elements.
---
---    dc.zeros "f32[2, 3]":mean()
---
---Errors: DC0103, DC0104 for axes.
---@param axes? deepc.Axes all
---@return deepc.Tensor of the dtype of x, a float; f32 of integers and bool
function Tensor:mean(axes) end
dc.mean = Tensor.mean

---The largest; NaN if one is.
---
---    dc.zeros "f32[2, 3]":max(1)
---
---Errors: DC0103, DC0104 for axes.
---@param axes? deepc.Axes all
---@return deepc.Tensor of the dtype of x
function Tensor:max(axes) end
dc.max = Tensor.max

---The smallest; NaN if one is.
---
---    dc.zeros "f32[2, 3]":min(1)
---
---Errors: DC0103, DC0104 for axes.
---@param axes? deepc.Axes all
---@return deepc.Tensor of the dtype of x
function Tensor:min(axes) end
dc.min = Tensor.min

---The product; of bool and integers of 8 and 16 bits in i32.
---
---    dc.tensor { 2, 3 }:prod()
---
---Errors: DC0103, DC0104 for axes.
---@param axes? deepc.Axes all
---@return deepc.Tensor of the dtype of x, or i32
function Tensor:prod(axes) end
dc.prod = Tensor.prod

---Are all true? Of a bool tensor; x:ne(0) makes one.
---
---    dc.tensor { 1, 2 }:gt(0):all()
---
---Errors: DC0202 for other dtypes; DC0103, DC0104 for axes.
---@param axes? deepc.Axes all
---@return deepc.Tensor # bool
function Tensor:all(axes) end
dc.all = Tensor.all

---Is any true? Of a bool tensor; x:ne(0) makes one.
---
---    dc.tensor { 1, 2 }:gt(1):any()
---
---Errors: DC0202 for other dtypes; DC0103, DC0104 for axes.
---@param axes? deepc.Axes all
---@return deepc.Tensor # bool
function Tensor:any(axes) end
dc.any = Tensor.any

---The variance: squares of the distances from the mean, by their count less the correction (0).
---
---    dc.tensor { 1, 2, 4 }:var { correction = 1 }
---
---Errors: DC0103, DC0104 for axes.
---@param axes? deepc.Axis|deepc.Axis[]|{ axis?: deepc.Axis|deepc.Axis[], keep?: boolean, correction?: number } all
---@return deepc.Tensor of the dtype of x, a float; f32 of integers and bool
function Tensor:var(axes) end
dc.var = Tensor.var

---The standard deviation, the root of x:var; its gradient is 0 where all are equal.
---
---    dc.tensor { 1, 2, 4 }:std()
---
---Errors: DC0103, DC0104 for axes.
---@param axes? deepc.Axis|deepc.Axis[]|{ axis?: deepc.Axis|deepc.Axis[], keep?: boolean, correction?: number } all
---@return deepc.Tensor of the dtype of x, a float; f32 of integers and bool
function Tensor:std(axes) end
dc.std = Tensor.std

---The root of the sum of squares; its gradient at 0 is 0.
---
---    dc.tensor { 3, 4 }:norm()
---
---Errors: DC0103, DC0104 for axes.
---@param axes? deepc.Axes all
---@return deepc.Tensor of the dtype of x, a float; f32 of integers and bool
function Tensor:norm(axes) end
dc.norm = Tensor.norm

---log(sum(exp(x))), safe for large x.
---
---    dc.tensor { 1000, 1000 }:logsumexp()
---
---Errors: DC0202 for integers and booleans; DC0103, DC0104 for axes.
---@param axes? deepc.Axes all
---@return deepc.Tensor of the dtype of x, a float
function Tensor:logsumexp(axes) end
dc.logsumexp = Tensor.logsumexp

---Running sums along an axis: at each position the sum up to it. The work grows with the square of the
---axis.
---
---    dc.tensor { 1, 2, 3 }:cumsum(1)
---
---Errors: DC0101 without an axis, DC0103 for the axis.
---@param axis deepc.Axis may be left out where there is one
---@return deepc.Tensor of the shape of x; of bool and 8/16-bit integers i32
function Tensor:cumsum(axis) end
dc.cumsum = Tensor.cumsum

---The position of the largest along an axis, from 0; the first if several are.
---
---    dc.tensor { 3, 1, 4 }:argmax(1)
---
---Errors: DC0101 without an axis, or where it has no elements; DC0103 for the axis.
---@param axis deepc.Axis may be left out where there is one
---@return deepc.Tensor # i32
function Tensor:argmax(axis) end
dc.argmax = Tensor.argmax

---The position of the smallest along an axis, from 0; the first if several are.
---
---    dc.tensor { 3, 1, 4 }:argmin(1)
---
---Errors: as x:argmax.
---@param axis deepc.Axis may be left out where there is one
---@return deepc.Tensor # i32
function Tensor:argmin(axis) end
dc.argmin = Tensor.argmin

---exp(x) divided by its sum along an axis; safe for large x.
---
---    dc.zeros "f32[2, 3]":softmax(2)
---
---Errors: DC0202 for integers and booleans, DC0101 without an axis, DC0103 for the axis.
---@param axis deepc.Axis may be left out where there is one
---@return deepc.Tensor of the shape and dtype of x, a float
function Tensor:softmax(axis) end
dc.softmax = Tensor.softmax

---The logarithm of softmax, computed at once.
---
---    dc.zeros "f32[2, 3]":log_softmax(2)
---
---Errors: DC0202 for integers and booleans, DC0101 without an axis, DC0103 for the axis.
---@param axis deepc.Axis may be left out where there is one
---@return deepc.Tensor of the shape and dtype of x, a float
function Tensor:log_softmax(axis) end
dc.log_softmax = Tensor.log_softmax

-- ---- Products ----

---The product of matrices: the last two axes; axes before those align and stretch as in a + b.
---
---    dc.zeros "f32[64, 784]":matmul(dc.zeros "f32[784, 10]")
---
---Errors: DC0301 where the inner sizes differ, DC0201 for other dtypes, DC0202 for booleans, DC0302 for a
---scalar.
---@param b deepc.Tensor|deepc.Cell of the same dtype
---@return deepc.Tensor of the dtype of both; of 8/16-bit integers i32
function Tensor:matmul(b) end
dc.matmul = Tensor.matmul

---Products over letters, which blanks separate: what the result lacks is summed. A letter twice in
---one operand is its diagonal; "..." stands for the axes that are left. Results have the names of
---the operands' dims.
---
---    dc.einsum("b i, i o -> b o", dc.zeros "f32[2, 3]", dc.zeros "f32[3, 4]")
---
---Errors: DC0101 in the text, DC0301 where sizes of a letter differ, DC0302 for counts of axes.
---@param text string "b i, i o -> b o"
---@param ... deepc.Tensor|deepc.Cell as many as the text has
---@return deepc.Tensor
function dc.einsum(text, ...) end

-- ---- Convolutions and pools ----

---@alias deepc.PerDim integer|integer[] one for all dims of the window, or a list

---Each result is a sum of products over a window of x and all its channels; the kernel is not turned
---round. x is [batch, channels, height, width], w [channels of the result, channels / groups, height, width
---of the window], the result [batch, channels, height, width].
---
---    dc.conv2d(dc.zeros "f32[8, 3, 28, 28]", dc.zeros "f32[16, 3, 3, 3]", { padding = 1 })
---
---Options: stride (1), dilation (1, the distance of elements of the window), groups (1), padding (0): zeros
---round x, as a number, a list of one for each dim, a list of lists with both sides, or "same".
---
---Errors: DC0301 where channels differ, DC0302, DC0309 for a window larger than x, DC0310 for groups.
---@param x deepc.Tensor|deepc.Cell
---@param w deepc.Tensor|deepc.Cell of the same dtype
---@param options? { stride?: deepc.PerDim, padding?: deepc.PerDim|string, dilation?: deepc.PerDim, groups?: integer }
---@return deepc.Tensor of the dtype of both; of 8/16-bit integers i32
function dc.conv2d(x, w, options) end

---dc.conv2d for one dim: x is [batch, channels, length].
---
---    dc.conv1d(dc.zeros "f32[8, 3, 28]", dc.zeros "f32[16, 3, 5]", { padding = "same" })
---
---Errors: as dc.conv2d.
---@param x deepc.Tensor|deepc.Cell
---@param w deepc.Tensor|deepc.Cell
---@param options? { stride?: deepc.PerDim, padding?: deepc.PerDim|string, dilation?: deepc.PerDim, groups?: integer }
---@return deepc.Tensor
function dc.conv1d(x, w, options) end

---dc.conv2d for three dims: x is [batch, channels, depth, height, width].
---
---    dc.conv3d(dc.zeros "f32[1, 2, 8, 8, 8]", dc.zeros "f32[4, 2, 3, 3, 3]")
---
---Errors: as dc.conv2d.
---@param x deepc.Tensor|deepc.Cell
---@param w deepc.Tensor|deepc.Cell
---@param options? { stride?: deepc.PerDim, padding?: deepc.PerDim|string, dilation?: deepc.PerDim, groups?: integer }
---@return deepc.Tensor
function dc.conv3d(x, w, options) end

---The largest element of each window, NaN where there is one. The gradient goes to the first of equal
---elements, the last axis counting fastest.
---
---    dc.max_pool2d(dc.zeros "f32[8, 16, 28, 28]", 2)
---
---Options: stride (that of the window), padding (0; what is outside is never the largest), dilation (1).
---
---Errors: DC0302, DC0309 for a window larger than x.
---@param x deepc.Tensor|deepc.Cell [batch, channels, height, width]
---@param window deepc.PerDim
---@param options? { stride?: deepc.PerDim, padding?: deepc.PerDim, dilation?: deepc.PerDim }
---@return deepc.Tensor of the dtype of x, with one element for each place of the window
function dc.max_pool2d(x, window, options) end

---dc.max_pool2d for one dim.
---
---    dc.max_pool1d(dc.zeros "f32[8, 16, 28]", 2)
---
---Errors: as dc.max_pool2d.
---@param x deepc.Tensor|deepc.Cell
---@param window deepc.PerDim
---@param options? { stride?: deepc.PerDim, padding?: deepc.PerDim, dilation?: deepc.PerDim }
---@return deepc.Tensor
function dc.max_pool1d(x, window, options) end

---dc.max_pool2d for three dims.
---
---    dc.max_pool3d(dc.zeros "f32[1, 2, 8, 8, 8]", 2)
---
---Errors: as dc.max_pool2d.
---@param x deepc.Tensor|deepc.Cell
---@param window deepc.PerDim
---@param options? { stride?: deepc.PerDim, padding?: deepc.PerDim, dilation?: deepc.PerDim }
---@return deepc.Tensor
function dc.max_pool3d(x, window, options) end

---The mean of each window; of integers f32.
---
---    dc.avg_pool2d(dc.zeros "f32[8, 16, 28, 28]", 2)
---
---Options: stride (that of the window), padding (0), count_padding (true: padding counts as zeros; false:
---not at all).
---
---Errors: DC0302, DC0309 for a window larger than x.
---@param x deepc.Tensor|deepc.Cell [batch, channels, height, width]
---@param window deepc.PerDim
---@param options? { stride?: deepc.PerDim, padding?: deepc.PerDim, count_padding?: boolean }
---@return deepc.Tensor as dc.max_pool2d; of integers f32
function dc.avg_pool2d(x, window, options) end

---dc.avg_pool2d for one dim.
---
---    dc.avg_pool1d(dc.zeros "f32[8, 16, 28]", 2)
---
---Errors: as dc.avg_pool2d.
---@param x deepc.Tensor|deepc.Cell
---@param window deepc.PerDim
---@param options? { stride?: deepc.PerDim, padding?: deepc.PerDim, count_padding?: boolean }
---@return deepc.Tensor
function dc.avg_pool1d(x, window, options) end

---dc.avg_pool2d for three dims.
---
---    dc.avg_pool3d(dc.zeros "f32[1, 2, 8, 8, 8]", 2)
---
---Errors: as dc.avg_pool2d.
---@param x deepc.Tensor|deepc.Cell
---@param window deepc.PerDim
---@param options? { stride?: deepc.PerDim, padding?: deepc.PerDim, count_padding?: boolean }
---@return deepc.Tensor
function dc.avg_pool3d(x, window, options) end

-- ---- Typed functions ----

---A typed function: the signature, then a body that is traced. Given all sizes, it is traced and
---checked here; otherwise at the first call with each set of sizes. The body runs then, and once more
---at the second call; not at calls.
---
---A type of the signature is "f32[n, 784]" (also with expressions such as 2*n+1, and "..."), a record
---"{ x: f32[n], y: i32[n] }" or a list "{ f32[n] }". A parameter "x?: type" may be nil; one without a
---type is static: each value is a specialisation of its own.
---
---What the body captures - locals, fields, globals, tensors - may not change unseen: a call compares,
---and traces again where something did.
---
---    local f = dc.fn("f(x: f32[n, 784]) -> f32[n]", function(x) return x:sum(2) end)
---
---Errors: DC0401, DC0402 in the signature; whatever the body raises; DC0405, DC0406 for its results;
---DC0403, DC0404 for the arguments of a call; DC0605 to DC0608 for what is captured.
---@param signature string "name(x: type, ...) -> type, ..."
---@param body function|table what is traced; anything that can be called
---@param sizes? table<string, integer|integer[]> of names: { batch = 64 }, { batch = { 64, 32 } }
---@param options? { limit?: integer } how many specialisations there may be; 8
---@return deepc.Function
function dc.fn(signature, body, sizes, options) end

---Traces and checks it for some sizes, without a device.
---
---    dc.fn("f(x: f32[n]) -> f32[]", function(x) return x:sum() end):check { n = 64 }
---
---Errors: as dc.fn.
---@param sizes? table<string, any> of the dims; static parameters and lengths of lists by name
function Function:check(sizes) end

---Writes it to a file, with its parameters and what it captured, for hosts in C that call it without Lua
---(dc_load in deepc.h). The file has a variant for each table of sizes; without one, for each specialisation
---that there is.
---
---    local net = nn.Linear(4, 2)
---    local policy = dc.fn("policy(x: f32[n, 4]) -> f32[n, 2]", function(x) return net(x):softmax(2) end)
---    policy:export(os.tmpname(), { n = 1 }, { n = 64 })
---
---Errors: DC0101 without sizes where nothing has been compiled, or where two variants have the same types of
---arguments; DC0801 for the file.
---@param path string
---@param ... table<string, any> sizes, as f:check takes them
function Function:export(path, ...) end

---Starts a call that is carried on piece by piece, a job, for hosts with other things to do between two frames.
---From here to its end the function's parameters and states that it sets are the job's own: reading or setting
---them is an error, and so is another call with the same sizes. What it only reads may change; the job goes on
---with the old values. Nothing has changed before the first of them is written.
---
---    local f = dc.fn("f(x: f32[1000]) -> f32[]", function(x) return x:sum() end)
---    local job = f:start(dc.ones "f32[1000]")
---    while not job:poll { ms = 2 } do end
---    print(job:result())
---
---Errors: as a call; DC0604 while a typed function is traced, or while a job of the same call has not ended.
---@param ... any the arguments
---@return deepc.Job
function Function:start(...) end

---A call in slices. One that is closed or forgotten before its end is cancelled: nothing has changed, or, if it
---had begun to write parameters, these are to be set again before they are read (DC0610).
---@class deepc.Job
local Job = {}

---Carries it on for about so many milliseconds, at least one kernel.
---
---    local job = dc.fn("f(x: f32[3]) -> f32[]", function(x) return x:sum() end):start { 1, 2, 3 }
---    while not job:poll { ms = 2 } do end
---
---Errors: what the call would raise, which ends the job.
---@param options? { ms?: number } 0 without: one kernel
---@return boolean # has it ended?
function Job:poll(options) end

---What the call returns, after what is left of it; once.
---
---    print(dc.fn("f(x: f32[3]) -> f32[]", function(x) return x:sum() end):start({ 1, 2, 3 }):result())
---
---Errors: what the call would raise.
---@return any ...
function Job:result() end

---Cancels it. Jobs are closed by `local job <close> = f:start(x)` too.
---
---    dc.fn("f(x: f32[3]) -> f32[]", function(x) return x:sum() end):start({ 1, 2, 3 }):close()
function Job:close() end

---A value that typed functions read while they are traced: `k.value`. It is assigned outside; each
---value is a specialisation of its own.
---
---    local k = dc.static(2)
---@param value any
---@return deepc.Static
function dc.static(value) end

---The size of a dim of the innermost typed function that is traced.
---
---    dc.fn("f(x: f32[n, d]) -> f32[n, d]", function(x) return x / dc.dim "d" ^ 0.5 end):check { n = 2, d = 4 }
---
---Errors: DC0408 outside, or for a dim that the signature lacks.
---@param name string
---@return integer
function dc.dim(name) end

---Prints at each call of the typed function that it stands in; outside as print does.
---
---    dc.print("x is", x)
---@param ... any
function dc.print(...) end

---What has been compiled of it, one table for each set of sizes.
---Counts: kernels, launches, copies, nodes of the graph, cells set in place (donated) and copied (denied).
---Bytes: arena_bytes, of temporaries, and arena_lower_bound, the least that any order would need; arena_ratio
---is one by the other; derived_bytes, of the `derived` values that are kept from call to call. `interpreted`
---tells whether it runs on the interpreter.
---
---    f:info()[1].launches
---@return table[] counts and bytes
function Function:info() end

---A text about it: its specialisations with their calls, kernels with their lines, temporaries, which
---cells are set in place and why others are not, which values are kept from call to call, which are stored
---and which computed again.
---
---    print(f:explain())
---@return string
function Function:explain() end

---Its kernels, numbered through all specialisations. They are timed from the first f:kernels() on, at
---the prompt always. `calls` are those that were timed, `ms` is what they took together in
---milliseconds, `gflops` is 10^9 operations a second, `gbs` 10^9 bytes a second; 0 before the first.
---
---    for n, k in ipairs(f:kernels()) do print(n, k.name, k.ms) end
---@return table[] name, lines, specialisation, launches, flops and bytes per call; calls, ms, gflops, gbs
function Function:kernels() end

---The text of a kernel.
---
---    for n in ipairs(f:kernels()) do print(f:source(n, "flat")) end
---
---Errors: DC0101 where there is no such kernel or form.
---@param n? integer of f:kernels(); 1
---@param form? "nest"|"schedule"|"flat"|"text" "text" is what a compiler is given; "nest"
---@return string
function Function:source(n, form) end

---A text: what runs in which order, what it writes and reads. `+64` is a temporary at that place; what
---stands below a launch with a `+` is part of it.
---
---    print(f:plan())
---@return string
function Function:plan() end

-- ---- Parameters, states, gradients ----

---A parameter: a cell that is trained.
---
---    local w = dc.param("f32[784, 10]", dc.randn("f32[784, 10]", { std = 0.02 }))
---    local b = dc.param(dc.zeros "f32[10]")
---
---Errors: DC0202 for a dtype that is no float, DC0407 for an initial value of another type, DC0101 for a
---table that does not fit.
---@param type deepc.Type|deepc.Tensor of floats; a tensor stands for its type
---@param init? deepc.Tensor|table|number without: the tensor in the place of the type, or zeros
---@return deepc.Cell
function dc.param(type, init) end

---A state: a cell that is not trained, as running statistics and caches are.
---
---    local count = dc.state("i32[]", 0)
---    local mean = dc.state(dc.ones "f32[10]")     -- with these values
---
---Errors: DC0407 for an initial value of another type, DC0112 for a table that does not fit.
---@param type deepc.Type|deepc.Tensor a tensor stands for its type
---@param init? deepc.Tensor|table|number without: the tensor in the place of the type, or zeros
---@return deepc.Cell
function dc.state(type, init) end

---Gives a cell another value; reads after it see that. In a typed function it changes when the call
---ends, and not at all if the call fails.
---
---    dc.state("i32[]", 0):set(7)
---
---Errors: DC0407 for another type, DC0206 for what is no cell.
---@param value deepc.Operand|table of exactly the cell's type; a number fills it
function Tensor:set(value) end

---The gradient of a scalar, taken in the typed function that makes it. Of the same form as `wrt`.
---
---    dc.fn("f(x: f32[3]) -> f32[3]", function(x) return dc.grad((x * x):sum(), x) end)
---
---Errors: DC0501 where loss is no scalar, DC0502 where it carries no graph, DC0503 where it does not
---depend on one.
---@param loss deepc.Tensor
---@param wrt deepc.Cell|deepc.Tensor|(deepc.Cell|deepc.Tensor)[]
---@param options? { unused?: "zero" } zeros instead of an error
---@return deepc.Tensor|deepc.Tensor[]
function dc.grad(loss, wrt, options) end

---The same values, a constant for gradients.
---
---    dc.stop_gradient(x)
---@return deepc.Tensor
function Tensor:stop_gradient() end
dc.stop_gradient = Tensor.stop_gradient

---The same values as a start of gradients, for code outside typed functions: what is computed from it keeps
---its recipe for dc.grad, printed or not, up to 10,000 operations. Nothing is kept of what is behind x.
---
---    local x = dc.rand("f32[3]"):watch()
---    dc.grad((x * x):sum(), x)
---
---Errors: DC0202 for integers.
---@return deepc.Tensor
function Tensor:watch() end
dc.watch = Tensor.watch

---A function with a gradient of its own. forward takes tensors, or anything else, and returns one
---tensor; backward takes the gradient of that tensor, the tensor and the arguments, and returns a
---gradient for each argument, nil for one that has none. Both run when the result is called in a typed
---function. forward reads its arguments alone: the gradient of anything else would be lost.
---
---    local clip = dc.custom_grad(function(x) return x * 1 end,
---                                function(dy, y, x) return dy:maximum(-1):minimum(1) end)
---    dc.fn("f(x: f32[3]) -> f32[3]", function(x) return dc.grad(clip(x):sum(), x) end)
---
---Errors: DC0505 where forward reads a tensor that is no argument, DC0506 for a wrong number or type of
---gradients, and outside typed functions.
---@param forward fun(...): deepc.Tensor
---@param backward fun(dy: deepc.Tensor, y: deepc.Tensor, ...): ...
---@return fun(...): deepc.Tensor
function dc.custom_grad(forward, backward) end

---The same function and gradient, for less memory: what it computes on the way is not kept for the
---gradient, but computed again from its arguments. What it reads besides has its gradient as well.
---
---    local block = dc.remat(function(x) return (x * x):exp() end)
---    dc.fn("f(x: f32[3]) -> f32[3]", function(x) return dc.grad(block(x):sum(), x) end)
---
---Errors: DC0506 where it does not return one tensor.
---@param f fun(...): deepc.Tensor
---@return fun(...): deepc.Tensor
function dc.remat(f) end

-- ---- Files ----

---Writes a safetensors file, whole or not at all. Names are paths from what is saved; a cell that stands
---in several places is stored once. Equal content gives equal bytes.
---
---    dc.save(os.tmpname(), net, { epoch = "5" })
---
---Errors: DC0801 where the file cannot be written; the old one is as it was.
---@param path string
---@param what deepc.nn.Layer|deepc.optim.Optimizer|table of tensors, cells, layers, optimisers, tables of these
---@param metadata? table<string, string>
function dc.save(path, what, metadata) end

---The tensors of a safetensors file by name, and its metadata. With `into`, sets the cells of a layer, an
---optimiser or a table instead: all names, dtypes and sizes are compared before anything is changed.
---`partial` loads what has the same name on both sides. `linear` says how the file keeps the weights of linear
---layers, "in, out" or, as PyTorch does, "out, in", where it does not say so itself.
---
---    local path = os.tmpname()
---    dc.save(path, net)
---    dc.load(path, net)
---
---Errors: DC0801 where the file cannot be read, DC0802 where it is damaged, DC0804 where it does not fit.
---@param path string
---@param into? deepc.nn.Layer|deepc.optim.Optimizer|table
---@param options? { partial?: boolean, linear?: string } as above
---@return table<string, deepc.Tensor>|table<string, string> # tensors by name; with `into`, metadata
---@return table<string, string>|string[] # metadata; with `into`, the names of cells that got nothing
---@return table<string, string>? # without `into`: dtypes that are not read, by the names of tensors left out
function dc.load(path, into, options) end

---All that training needs to go on exactly as if it had not been interrupted, in one file; see
---dc.checkpoint.
---@class deepc.Checkpoint
---@field path string
local Checkpoint = {}

---A file for parts by name: layers, optimisers, cells and tables of these, whose values it keeps, and data
---sets, whose positions it keeps. The generator of random numbers is kept as well.
---
---    local ckpt = dc.checkpoint("/tmp/run.safetensors", { model = net, optimizer = opt, data = set })
---@param path string
---@param parts table<string, any>
---@return deepc.Checkpoint
function dc.checkpoint(path, parts) end

---Writes the file, whole or not at all; the one before it stays until then.
---
---    local ckpt = dc.checkpoint(os.tmpname(), { model = net })
---    ckpt:save { step = 1200, best = 0.91 }
---
---Errors: DC0801 where it cannot be written.
---@param values? table<string, number|boolean|string> kept exactly
function Checkpoint:save(values) end

---Sets every part to what the file has, after all of it has been compared, and gives the values that were
---saved; nil where there is no file.
---
---    local ckpt = dc.checkpoint("/tmp/none.safetensors", { model = net })
---    local at = ckpt:load() or { step = 0 }
---
---Errors: as dc.load.
---@return table<string, number|boolean|string>?
function Checkpoint:load() end

-- ---- Scripts ----

---What a script was given on its command line: `--name value`, `--name=value`, `--flag`, `--no-flag`.
---Each row is a name, a default and a text; the default tells the type: integer, number, string, flag.
---More by name: `type` where there is no default, `choices`, `min`, `max`, `required`, `value`, what --help
---calls it. `about` stands above the list in --help, which prints and ends the script; `rest` allows
---arguments without a name. Dashes in names are `_` in the result.
---
---    local options, files = dc.options({
---      about = "Trains a network.", rest = "[FILE...]",
---      { "epochs", 5, "passes over the data", min = 1 },
---      { "lr", 1e-3, "learning rate" },
---      { "model", "mlp", "what to train", choices = { "mlp", "cnn" } },
---      { "resume", false, "go on where the last run stopped" },
---      { "loss-log", nil, "where to write losses", value = "FILE" },
---    }, { "--epochs", "3", "--resume", "a.idx" })
---    print(options.epochs, options.lr, options.loss_log, files[1])
---
---Errors: DC0101 for an option that is not known or a value that does not fit; DC0110 for reading a name
---that is no option.
---@param list table rows in order, about, rest
---@param args? string[] `arg`
---@return table # values by name
---@return string[] # arguments without a name
function dc.options(list, args) end

---A loop that shows on stderr how far it is, how long it takes and how fast it is: a bar on a terminal,
---else a line now and then. `metrics` is a table that the loop fills, or a function that returns one; what
---is in it is read, tensors included, when a line is written and at no other time.
---
---    local shown = {}
---    for i in dc.progress(3, { title = "steps", metrics = shown, show = "off" }) do
---      shown.loss = dc.tensor(1 / i)
---    end
---
---`total` is how many values there are, `size` how many items each is, where the iterator does not tell;
---`every` so many seconds a line; `show` is "auto", "bar", "lines" or "off", and DEEPC_PROGRESS what auto is.
---@param source function|table|integer an iterator such as set:batches(...), a list, or how often
---@param options? table title, metrics, total, size, every, show
---@return function # and what `for` needs besides
function dc.progress(source, options) end

-- ---- Looking at it ----

---Counters since the context was opened: traces, compiles and compile_ns (nanoseconds), kernels, kernels_shared
---(found compiled already), kernels_cached (found on disk), launches, prologues (times that values kept from call
---to call were computed), calls, fallbacks and interpreted (calls and programs on the interpreter); realized,
---lazy_programs, lazy_nodes (now) of code outside typed functions;
---bytes_live and bytes_peak (of tensors, now and at most), allocs, handles (now), moved_out (values of cells
---copied because somebody held them); collections (whole ones of Lua's collector, for memory of tensors); compare_max
---(of DEEPC_COMPARE). And `device`, its name.
---
---    dc.stats().launches
---@return table<string, number|string>
function dc.stats() end

---Whether operations that make infinities or NaN are errors from now on, as with `DEEPC_CHECK=nan`: a call
---whose results or cells hold some is run again on the interpreter, which names the operation, its line and its
---layer; cells keep their old values. Without an argument nothing changes.
---
---    dc.check_numbers(true)
---    local ok, err = pcall(function() return tostring(dc.zeros "f32[2]":log()) end)
---    print(err.code, err.op)
---    dc.check_numbers(false)
---
---Errors: DC0702 where such an operation is found.
---@param on? boolean
---@return boolean # whether they were before
function dc.check_numbers(on) end

---The table of operations: name, class, operands, and the range of generated tests.
---
---    dc.ops()[1].name
---@return table[]
function dc.ops() end

return dc
