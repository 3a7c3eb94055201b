---@meta _

-- What works element by element (annotations; see values.lua).

---@class deepc
local dc = {}

---@class deepc.Tensor
local Tensor = {}

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

---a ^ b, as IEEE 754 has it: at most 1 ulp off, exact where the power is a float, the same bits on every device;
---x ^ 3 is x * x * x, at most 1.5 ulp off. Exponents that are numbers, whole ones to 127 and quarters below 3, of both
---signs, are products and roots, faster and at most 0.51 ulp off, 0.76 where the power is no normal number. A negative
---base has whole powers, others are NaN. Integers become f32; x:integer_pow stays with integers.
---
---    dc.tensor { 1, 2, 3 } ^ 2
---
---The gradient of a negative base with respect to the exponent is NaN.
---
---Errors: as x:add, but for booleans, which become f32, too.
---@param b deepc.Operand of the same dtype; a number takes it
---@return deepc.Tensor
function Tensor:pow(b) end
dc.pow = Tensor.pow

---a to the power of b, of integers, by multiplication: it wraps, as `*` does. a to the power of 0 is 1. With a
---negative exponent it is 1 divided by the power of -b, as :rem's division truncates: 0, but 1 or -1 for the bases 1
---and -1; -1 for the base 0, as 1 // 0.
---
---    dc.tensor({ 3, -3 }, "i64"):integer_pow(39)
---
---Errors: DC0202 for floats and booleans, which `^` takes; as x:add.
---@param b deepc.Operand integers of the same dtype; a number takes it
---@return deepc.Tensor of the dtype of a
function Tensor:integer_pow(b) end
dc.integer_pow = Tensor.integer_pow

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

---c plus the products of the four unsigned bytes of a by the four signed bytes of b, below 2^32: what CUDA's __dp4a and
---x86's vpdpbusd do in one instruction. Shapes broadcast.
---
---    dc.tensor({ 0x04030201 }, "u32"):dp4a(dc.tensor({ 0x01010101 }, "u32"), 0)
---
---Errors: DC0201, DC0301, DC0305 as x:add; DC0202 for other dtypes than u32.
---@param b deepc.Operand u32
---@param c deepc.Operand u32
---@return deepc.Tensor # u32
function Tensor:dp4a(b, c) end
dc.dp4a = Tensor.dp4a

---The numbers that 16 bits mean as f16: f32 of u16. What is packed more tightly becomes such bits by shifts.
---
---    dc.tensor({ 0x3c00, 0xc000, 0x0001 }, "u16"):half_float()
---
---Errors: DC0202 for another dtype than u16.
---@return deepc.Tensor # f32
function Tensor:half_float() end
dc.half_float = Tensor.half_float

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
