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
