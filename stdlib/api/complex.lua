---@meta _

-- Complex tensors (annotations; see values.lua).

---@class deepc
local dc = {}

---@class deepc.Tensor
local Tensor = {}

-- ---- Complex numbers ----

---The complex tensor re + i im (torch.complex): c64 of f32, c128 of f64. Shapes align as those of x:add.
---
---    dc.complex(dc.tensor { 1, 2 }, dc.tensor { 0, -1 })
---
---Errors: DC0201 where the dtypes differ, DC0202 for others than f32 and f64, DC0307 for more than 7 axes,
---and as x:add.
---@param re deepc.Operand the real part, of f32 or f64
---@param im deepc.Operand the imaginary part, of the same dtype
---@return deepc.Tensor
function dc.complex(re, im) end

---The complex tensor of this size and angle: size * (cos(angle) + i sin(angle)) (torch.polar).
---
---    dc.polar(dc.tensor { 1, 2 }, dc.tensor { 0, math.pi / 2 })
---
---Errors: as dc.complex.
---@param size deepc.Operand of f32 or f64
---@param angle deepc.Operand of the same dtype, in radians
---@return deepc.Tensor
function dc.polar(size, angle) end

---The real part (np.real, z.real of PyTorch); a real tensor as it is.
---
---    dc.complex(1, 2):real()
---@return deepc.Tensor
function Tensor:real() end
dc.real = Tensor.real

---The imaginary part (np.imag, z.imag of PyTorch); zeros for a real tensor.
---
---    dc.complex(1, 2):imag()
---@return deepc.Tensor
function Tensor:imag() end
dc.imag = Tensor.imag

---The conjugate: the imaginary part with the other sign (torch.conj, np.conj); a real tensor as it is.
---
---    dc.complex(1, 2):conj()
---@return deepc.Tensor
function Tensor:conj() end
dc.conj = Tensor.conj

---The angle in radians, from -pi to pi (torch.angle, np.angle): atan2 of imaginary and real part. Of a real
---tensor 0 or pi.
---
---    dc.complex(0, 1):angle()
---
---Errors: DC0202 for integers and booleans.
---@return deepc.Tensor
function Tensor:angle() end
dc.angle = Tensor.angle

---Real and imaginary parts along a last axis of 2 (torch.view_as_real); nothing is copied.
---
---    dc.complex(1, 2):view_as_real()
---
---Errors: DC0202 for a real tensor.
---@return deepc.Tensor
function Tensor:view_as_real() end
dc.view_as_real = Tensor.view_as_real

---The complex tensor whose parts lie along the last axis, of 2 (torch.view_as_complex); nothing is copied.
---
---    dc.tensor({ { 1, 2 }, { 3, 4 } }):view_as_complex()
---
---Errors: DC0101 where the last axis is another one, DC0202 for others than f32 and f64.
---@return deepc.Tensor
function Tensor:view_as_complex() end
dc.view_as_complex = Tensor.view_as_complex
