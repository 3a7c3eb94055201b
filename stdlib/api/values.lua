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

---The type of a tensor as text: a dtype (bool i8 i16 i32 i64 u8 u16 u32 u64 f8e4m3fn f8e5m2 f16 bf16 f32
---f64 c64 c128) and sizes, each with a name if wanted: "f32[batch=64, 784]", "i32[10]", "f32[]" for a scalar.
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
---@field shape integer[] sizes of the axes, a new list each time; == compares it with another one or a list
---@field dtype string "f32"
---@field device string where it lies: "cpu", "opencl:0"
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

---A tensor of the bytes of a string: elements in row-major order, little-endian, without padding, as
---x:bytes() gives them (numpy.frombuffer, torch.frombuffer). With a dtype alone one axis of as many elements
---as there are. The bytes are copied; a bool is a byte of 0 or 1.
---
---    dc.frombytes(string.pack("<fff", 1, 2, 3), "f32[3]")
---    dc.frombytes("\0\255", "u8")
---
---Errors: DC0101 for another number of bytes, DC0401 where the text is no type, DC0112 for a bool of
---another byte.
---@param bytes string
---@param type deepc.Type or the name of a dtype
---@return deepc.Tensor
function dc.frombytes(bytes, type) end

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

---Uniform numbers in [low, high); of complex numbers both parts.
---
---    dc.rand("f32[2, 3]", { low = -1, high = 1, seed = 42 })
---
---Errors: DC0202 for a dtype that is no float, DC0101 for options.
---@param type deepc.Type|deepc.Tensor of floats or complex; a tensor stands for its type
---@param options? { low?: number, high?: number, seed?: integer } 0, 1; without seed the generator's next
---@return deepc.Tensor
function dc.rand(type, options) end

---Normal numbers. Of complex ones each part has half of the variance, as torch.randn has them; the mean is added to the
---real part.
---
---    dc.randn("f32[784, 128]", { std = 0.02, seed = 42 })
---
---Errors: as dc.rand.
---@param type deepc.Type|deepc.Tensor of floats or complex; a tensor stands for its type
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
---@return number? im of a complex number the imaginary part
function Tensor:item() end

---All elements, in tables of tables; of a scalar the value itself. A complex number is a table { re, im }.
---
---    dc.iota(3):totable()
---
---Errors: as x:item.
---@return table|number|boolean
function Tensor:totable() end

---All elements as the bytes of a string: row-major, little-endian, without padding (numpy.ndarray.tobytes).
---dc.frombytes makes a tensor of them again.
---
---    dc.frombytes(x:bytes(), "f32")
---
---Errors: as x:item.
---@return string
function Tensor:bytes() end

---The size of an axis.
---
---    dc.zeros "f32[batch=32, 784]":size "batch"
---
---Errors: DC0103 for an axis that is not there.
---@param axis deepc.Axis
---@return integer
function Tensor:size(axis) end

---The tensor on another device, which is opened at its first use: a copy, or the tensor itself where it lies there. Of
---a parameter or a state a tensor with its value. torch.Tensor.to(device).
---
---    local there = x:to "eval"
---
---Errors: DC1002 for a device that is not there, DC0604 in a typed function, which computes on one device.
---@param device string "cpu", "cuda:0", "opencl:0"; `deepc --devices` lists what there is
---@return deepc.Tensor
function Tensor:to(device) end

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
