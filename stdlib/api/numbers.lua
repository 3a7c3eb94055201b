---@meta _

-- Functions of numbers beside those of elements.lua (annotations; see values.lua).

---@class deepc
local dc = {}

---@class deepc.Tensor
local Tensor = {}

-- ---- Functions of one tensor ----

---The arcsine, in radians; NaN outside -1 .. 1 (torch.asin, np.arcsin).
---
---    dc.tensor { 0, 0.5, 1 }:asin()
---
---Errors: DC0202 for integers and booleans.
---@return deepc.Tensor of the shape and dtype of x, a float
function Tensor:asin() end
dc.asin = Tensor.asin

---The arccosine, in radians; NaN outside -1 .. 1 (torch.acos, np.arccos).
---
---    dc.tensor { 0, 0.5, 1 }:acos()
---
---Errors: DC0202 for integers and booleans.
---@return deepc.Tensor of the shape and dtype of x, a float
function Tensor:acos() end
dc.acos = Tensor.acos

---The arctangent, in radians (torch.atan, np.arctan); dc.atan2 knows the quadrant.
---
---    dc.tensor { -1, 0, 1 }:atan()
---
---Errors: DC0202 for integers and booleans.
---@return deepc.Tensor of the shape and dtype of x, a float
function Tensor:atan() end
dc.atan = Tensor.atan

---The hyperbolic sine.
---
---    dc.tensor { -1, 0, 1 }:sinh()
---
---Errors: DC0202 for integers and booleans.
---@return deepc.Tensor of the shape and dtype of x, a float
function Tensor:sinh() end
dc.sinh = Tensor.sinh

---The hyperbolic cosine.
---
---    dc.tensor { -1, 0, 1 }:cosh()
---
---Errors: DC0202 for integers and booleans.
---@return deepc.Tensor of the shape and dtype of x, a float
function Tensor:cosh() end
dc.cosh = Tensor.cosh

---The inverse of the hyperbolic sine (torch.asinh, np.arcsinh).
---
---    dc.tensor { -1, 0, 1 }:asinh()
---
---Errors: DC0202 for integers and booleans.
---@return deepc.Tensor of the shape and dtype of x, a float
function Tensor:asinh() end
dc.asinh = Tensor.asinh

---The inverse of the hyperbolic cosine; NaN below 1 (torch.acosh, np.arccosh).
---
---    dc.tensor { 1, 2, 3 }:acosh()
---
---Errors: DC0202 for integers and booleans.
---@return deepc.Tensor of the shape and dtype of x, a float
function Tensor:acosh() end
dc.acosh = Tensor.acosh

---The inverse of the hyperbolic tangent; NaN outside -1 .. 1 (torch.atanh, np.arctanh).
---
---    dc.tensor { -0.5, 0, 0.5 }:atanh()
---
---Errors: DC0202 for integers and booleans.
---@return deepc.Tensor of the shape and dtype of x, a float
function Tensor:atanh() end
dc.atanh = Tensor.atanh

---2 to the power of x.
---
---    dc.tensor { -1, 0, 10 }:exp2()
---
---Errors: DC0202 for integers and booleans.
---@return deepc.Tensor of the shape and dtype of x, a float
function Tensor:exp2() end
dc.exp2 = Tensor.exp2

---The logarithm to base 2; whole for powers of 2.
---
---    dc.tensor { 0.5, 1, 1024 }:log2()
---
---Errors: DC0202 for integers and booleans.
---@return deepc.Tensor of the shape and dtype of x, a float
function Tensor:log2() end
dc.log2 = Tensor.log2

---The logarithm to base 10.
---
---    dc.tensor { 0.1, 1, 1000 }:log10()
---
---Errors: DC0202 for integers and booleans.
---@return deepc.Tensor of the shape and dtype of x, a float
function Tensor:log10() end
dc.log10 = Tensor.log10

---The cube root, of negative numbers, too (np.cbrt). Its slope at 0 is infinite.
---
---    dc.tensor { -8, 0, 27 }:cbrt()
---
---Errors: DC0202 for integers and booleans.
---@return deepc.Tensor of the shape and dtype of x, a float
function Tensor:cbrt() end
dc.cbrt = Tensor.cbrt

---1 - erf(x), with all digits for large x (torch.erfc, scipy.special.erfc).
---
---    dc.tensor { 0, 1, 5 }:erfc()
---
---Errors: DC0202 for integers and booleans.
---@return deepc.Tensor of the shape and dtype of x, a float
function Tensor:erfc() end
dc.erfc = Tensor.erfc

---The inverse of the error function; NaN outside -1 .. 1 (torch.erfinv, scipy.special.erfinv).
---
---    dc.tensor { -0.5, 0, 0.5 }:erf_inv()
---
---Errors: DC0202 for integers and booleans.
---@return deepc.Tensor of the shape and dtype of x, a float
function Tensor:erf_inv() end
dc.erf_inv = Tensor.erf_inv

---log |gamma(x)|, infinite at 0, -1, -2 ... (torch.lgamma, scipy.special.gammaln). Its slope is x:digamma().
---
---    dc.tensor { 0.5, 1, 10 }:lgamma()
---
---Errors: DC0202 for integers and booleans.
---@return deepc.Tensor of the shape and dtype of x, a float
function Tensor:lgamma() end
dc.lgamma = Tensor.lgamma

---The slope of x:lgamma(); infinite at 0, NaN at -1, -2 ... (torch.digamma, scipy.special.psi). It has derivatives of
---every order, as polygamma functions.
---
---    dc.tensor { 0.5, 1, 10 }:digamma()
---
---Errors: DC0202 for integers and booleans.
---@return deepc.Tensor of the shape and dtype of x, a float
function Tensor:digamma() end
dc.digamma = Tensor.digamma

---sin(pi x) / (pi x), 1 at 0, and exactly 0 at the other whole numbers (torch.sinc, np.sinc).
---
---    dc.tensor { 0, 0.5, 1 }:sinc()
---
---Errors: DC0202 for integers and booleans.
---@return deepc.Tensor of the shape and dtype of x, a float
function Tensor:sinc() end
dc.sinc = Tensor.sinc

---log(x / (1 - x)), the inverse of x:sigmoid(); NaN outside 0 .. 1 (torch.logit).
---
---    dc.tensor { 0.1, 0.5, 0.9 }:logit()
---
---Errors: DC0202 for integers and booleans.
---@return deepc.Tensor of the shape and dtype of x, a float
function Tensor:logit() end
dc.logit = Tensor.logit

---What x is more than x:trunc(), of the sign of x (torch.frac).
---
---    dc.tensor { 1.25, -1.25 }:frac()
---
---Errors: DC0202 for integers and booleans.
---@return deepc.Tensor of the shape and dtype of x, a float
function Tensor:frac() end
dc.frac = Tensor.frac

---Degrees to radians: x pi / 180. Integers become f32.
---
---    dc.tensor { 90, 180 }:deg2rad()
---
---Errors: none.
---@return deepc.Tensor a float
function Tensor:deg2rad() end
dc.deg2rad = Tensor.deg2rad

---Radians to degrees: x 180 / pi. Integers become f32.
---
---    dc.tensor { 1, 3.1415927 }:rad2deg()
---
---Errors: none.
---@return deepc.Tensor a float
function Tensor:rad2deg() end
dc.rad2deg = Tensor.rad2deg

---How many bits of an integer are set (np.bitwise_count, jax.lax.population_count).
---
---    dc.tensor({ 0, 7, -1 }, "i8"):popcount()
---
---Errors: DC0202 for floats and booleans.
---@return deepc.Tensor of the shape and dtype of x
function Tensor:popcount() end
dc.popcount = Tensor.popcount

---The greatest common divisor of two integers, not negative; of 0 and 0 it is 0 (torch.gcd, np.gcd). Where it is
---2^(w-1), which w bits with a sign do not hold, it is the most negative number, as in NumPy.
---
---    dc.tensor { 12, 18, 0 }:cast "i32":gcd(8)
---
---By Stein's algorithm, in as many steps as the slowest element needs: some 1.4 for each bit.
---Errors: DC0202 for floats and booleans, DC0301 for shapes that do not go together.
---@param b deepc.Tensor|integer
---@return deepc.Tensor of the dtype that a + b has
function Tensor:gcd(b) end
dc.gcd = Tensor.gcd

---The least common multiple of two integers, not negative; 0 where one of them is 0 (torch.lcm, np.lcm). It wraps
---round where the dtype does not hold it.
---
---    dc.tensor { 4, 6 }:cast "i32":lcm(10)
---
---Errors: DC0202 for floats and booleans, DC0301 for shapes that do not go together.
---@param b deepc.Tensor|integer
---@return deepc.Tensor of the dtype that a + b has
function Tensor:lcm(b) end
dc.lcm = Tensor.lcm

---How many bits of an integer are 0 before the first that is set (jax.lax.clz).
---
---    dc.tensor({ 0, 1, 255 }, "u8"):clz()
---
---Errors: DC0202 for floats and booleans.
---@return deepc.Tensor of the shape and dtype of x
function Tensor:clz() end
dc.clz = Tensor.clz

---True where x is 0, or false.
---
---    dc.tensor { 0, 1, 2 }:logical_not()
---
---Errors: none.
---@return deepc.Tensor # bool
function Tensor:logical_not() end
dc.logical_not = Tensor.logical_not

-- ---- Of two ----

---The angle of the point (b, a) from the first axis, in -pi .. pi: atan(a / b) that knows the quadrant, and of zeros
---and infinities what C has. Its gradient at (0, 0) is 0.
---
---    dc.tensor { 1, -1 }:atan2(-1)
---
---Errors: as x:add, and DC0202 for integers and booleans.
---@param b deepc.Operand of the same dtype; a number takes it
---@return deepc.Tensor
function Tensor:atan2(b) end
dc.atan2 = Tensor.atan2

---|a| with the sign of b, whose zeros have signs, too.
---
---    dc.tensor { 1, 2 }:copysign(-0.0)
---
---Errors: as x:add, and DC0202 for integers and booleans.
---@param b deepc.Operand of the same dtype; a number takes it
---@return deepc.Tensor
function Tensor:copysign(b) end
dc.copysign = Tensor.copysign

---sqrt(a^2 + b^2) without overflow. Its gradient at (0, 0) is 0.
---
---    dc.tensor { 3, 5 }:hypot(4)
---
---Errors: as x:add, and DC0202 for integers and booleans.
---@param b deepc.Operand of the same dtype; a number takes it
---@return deepc.Tensor
function Tensor:hypot(b) end
dc.hypot = Tensor.hypot

---log(exp(a) + exp(b)), which never overflows.
---
---    dc.tensor { 0, 1000 }:logaddexp(0)
---
---Errors: as x:add, and DC0202 for integers and booleans.
---@param b deepc.Operand of the same dtype; a number takes it
---@return deepc.Tensor
function Tensor:logaddexp(b) end
dc.logaddexp = Tensor.logaddexp

---log2(2^a + 2^b), which never overflows.
---
---    dc.tensor { 0, 1000 }:logaddexp2(0)
---
---Errors: as x:add, and DC0202 for integers and booleans.
---@param b deepc.Operand of the same dtype; a number takes it
---@return deepc.Tensor
function Tensor:logaddexp2(b) end
dc.logaddexp2 = Tensor.logaddexp2

---a log(b), 0 where a is 0 and b no NaN (torch.xlogy, scipy.special.xlogy).
---
---    dc.tensor { 0, 2 }:xlogy(0)
---
---Errors: as x:add, and DC0202 for integers and booleans.
---@param b deepc.Operand of the same dtype; a number takes it
---@return deepc.Tensor
function Tensor:xlogy(b) end
dc.xlogy = Tensor.xlogy

---0 where a is negative, 1 where it is positive, b at 0; NaN stays (np.heaviside).
---
---    dc.tensor { -1, 0, 1 }:heaviside(0.5)
---
---Errors: as x:add.
---@param b deepc.Operand of the same dtype; a number takes it
---@return deepc.Tensor
function Tensor:heaviside(b) end
dc.heaviside = Tensor.heaviside

---True where neither a nor b is 0, or false.
---
---    dc.tensor { 0, 1, 2 }:logical_and(1)
---
---Errors: DC0201, DC0301, DC0305 as x:add.
---@param b deepc.Operand of the same dtype; a number takes it
---@return deepc.Tensor # bool
function Tensor:logical_and(b) end
dc.logical_and = Tensor.logical_and

---True where a or b is not 0, or true.
---
---    dc.tensor { 0, 1, 2 }:logical_or(0)
---
---Errors: DC0201, DC0301, DC0305 as x:add.
---@param b deepc.Operand of the same dtype; a number takes it
---@return deepc.Tensor # bool
function Tensor:logical_or(b) end
dc.logical_or = Tensor.logical_or

---True where one of a and b is 0, or false, and the other is not.
---
---    dc.tensor { 0, 1, 2 }:logical_xor(1)
---
---Errors: DC0201, DC0301, DC0305 as x:add.
---@param b deepc.Operand of the same dtype; a number takes it
---@return deepc.Tensor # bool
function Tensor:logical_xor(b) end
dc.logical_xor = Tensor.logical_xor

---a + w (b - a), b itself where w is 1 (torch.lerp).
---
---    dc.tensor { 0, 10 }:lerp(20, 0.25)
---
---Errors: as x:add.
---@param b deepc.Operand of the same dtype; a number takes it
---@param w deepc.Operand the weight of b, of the same dtype; a number takes it
---@return deepc.Tensor
function Tensor:lerp(b, w) end
dc.lerp = Tensor.lerp

-- ---- With options ----

---True where a is b, or off by atol + rtol |b| at most; infinities only where they are equal. NaN is close to nothing,
---or with equal_nan to NaN (torch.isclose, np.isclose).
---
---    dc.tensor { 1, 2 }:isclose(1.000001)
---
---Errors: DC0201, DC0301, DC0305 as x:add; DC0101 for negative tolerances.
---@param b deepc.Operand of the same dtype; a number takes it
---@param options? { rtol?: number, atol?: number, equal_nan?: boolean } 1e-5, 1e-8, false
---@return deepc.Tensor # bool
function Tensor:isclose(b, options) end
dc.isclose = Tensor.isclose

---Whether all elements are close, as x:isclose says (torch.allclose, np.allclose): a boolean, for conditions. A tensor,
---also in a typed function, is x:isclose(b):all().
---
---    assert(dc.tensor { 1, 2 }:allclose(dc.tensor { 1, 2.00001 }, { rtol = 1e-4 }))
---
---Errors: as x:isclose; DC0602 in a typed function.
---@param b deepc.Operand of the same dtype; a number takes it
---@param options? { rtol?: number, atol?: number, equal_nan?: boolean } 1e-5, 1e-8, false
---@return boolean
function Tensor:allclose(b, options) end
dc.allclose = Tensor.allclose

---Numbers for NaN and infinities: 0, the largest and the smallest finite one, unless others are given. Integers stay
---(torch.nan_to_num, np.nan_to_num).
---
---    dc.tensor { 0 / 0, 1 / 0, 1 }:nan_to_num { posinf = 100 }
---
---Errors: DC0203 for a number that the dtype cannot hold.
---@param options? { nan?: number, posinf?: number, neginf?: number }
---@return deepc.Tensor of the shape and dtype of x
function Tensor:nan_to_num(options) end
dc.nan_to_num = Tensor.nan_to_num
