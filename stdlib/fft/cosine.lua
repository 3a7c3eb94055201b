-- Discrete cosine and sine transforms of real tensors: each is one Fourier transform of real numbers, or of half as
-- many complex ones, between permutations and turns (Makhoul, 1980, for types 2 and 3).

local dc = require "deepc"
local fft = require "deepc.fft.transforms"
local _, core = ...

local parts = core.transforms
local counted = parts.counted

---@class deepc.fft.CosineOptions
---@field type? 1|2|3|4 2
---@field axis? deepc.Axis the last one without
---@field n? integer the size that the axis is cut to, or filled up to with zeros, before
---@field norm? "backward"|"ortho"|"forward" of "ortho" the matrix of the transform is orthogonal

-- ---- parts of an axis ----

-- Positions first to last, from 1; nothing where there is none.
local function range(x, axis, first, last, step)
  return x:slice { [axis] = { first, last, step } }
end

-- Elements of a and b in turns; a may have one more.
local function in_turns(a, b, axis)
  local n = a.shape[axis] + b.shape[axis]
  if n == 1 then
    return a
  end
  local shape = a.shape
  shape[axis] = 2 * shape[axis]
  if a.shape[axis] > b.shape[axis] then
    b = b:pad { [axis] = { 0, 1 } }
  end
  local y = dc.stack({ a, b }, axis + 1):reshape(shape)
  return shape[axis] > n and range(y, axis, 1, n) or y
end

-- exp(i pi (a k + b) / (4 n)) for k = 0 ... count - 1.
local function turned(x, axis, n, count, a, b, dtype)
  return core.turns(counted(#x.shape, axis, count) * a + b, 8 * n, dtype)
end

local function complex_of(x)
  return x.dtype == "f64" and "c128" or "c64"
end

-- ---- the types, without factors ----

local function type_1(x, axis, op)
  local n = x.shape[axis]
  local whole = n == 2 and x or dc.concat({ x, range(x, axis, n - 1, 2, -1) }, axis)
  return (parts.of_real(whole, axis, op):real())
end

-- Of the transform V of x with its odd elements behind, in reverse, Z = V exp(-i pi k / 2 n) has the halves of y[k] and
-- -y[n - k] as its parts.
local function type_2(x, axis, op)
  local n = x.shape[axis]
  local v = x
  if n > 2 then
    v = dc.concat({ range(x, axis, 1, n, 2), range(x, axis, n - n % 2, 2, -2) }, axis)
  end
  local half = parts.of_real(v, axis, op)
  local z = half * turned(x, axis, n, n // 2 + 1, 2, 0, half.dtype):conj() * 2
  if n < 3 then
    return (z:real())
  end
  return dc.concat({ z:real(), -range(z, axis, (n - 1) // 2 + 1, 2, -1):imag() }, axis)
end

local function type_3(y, axis, op)
  local n = y.shape[axis]
  local m = n // 2 + 1
  local re, im = range(y, axis, 1, m), range(y, axis, 1, 1) * 0
  if n > 1 then
    im = dc.concat({ im, -range(y, axis, n, n - m + 2, -1) }, axis)
  end
  local z = dc.complex(re, im) * turned(y, axis, n, m, 2, 0, complex_of(y))
  local v = parts.to_real(z, axis, n, op)
  if n < 3 then
    return v
  end
  local evens = (n + 1) // 2
  return in_turns(range(v, axis, 1, evens), range(v, axis, n, evens + 1, -1), axis)
end

-- Of an even size: half as many complex numbers. Else the first half of a transform of twice as many.
local function type_4(x, axis, op)
  local n, dtype = x.shape[axis], complex_of(x)
  if n % 2 == 1 then
    local z = dc.complex(x, 0) * turned(x, axis, n, n, 2, 0, dtype):conj()
    local y = parts.transform(z:pad { [axis] = { 0, n } }, axis, -1, op)
    return (range(y, axis, 1, n) * turned(x, axis, n, n, 2, 1, dtype):conj()):real() * 2
  end
  local m = n // 2
  local z = dc.complex(range(x, axis, 1, n - 1, 2), range(x, axis, n, 2, -2))
  z = z * turned(x, axis, n, m, 4, 1, dtype):conj()
  z = parts.transform(z, axis, -1, op) * turned(x, axis, n, m, 4, 0, dtype):conj() * 2
  return in_turns(z:real(), -z:imag():flip(axis), axis)
end

local types = { type_1, type_2, type_3, type_4 }

-- The sine transform of type 1, of x with its reverse, negative, behind it.
local function sine_1(x, axis, op)
  local n = x.shape[axis]
  local none = range(x, axis, 1, 1) * 0
  local z = parts.of_real(dc.concat({ none, x, none, -x:flip(axis) }, axis), axis, op)
  return -range(z, axis, 2, n + 1):imag()
end

-- With every other sign turned.
local function alternated(x, axis)
  local k = counted(#x.shape, axis, x.shape[axis])
  return dc.where((k % 2):eq(0), x, -x)
end

-- ---- factors ----

-- By which numbers the ends of an axis are multiplied: the first one, and of type 1 the last one, too.
local function weighted(x, axis, kind, by)
  local n = x.shape[axis]
  local k = counted(#x.shape, axis, n)
  local ends = kind == 1 and k % (n - 1) or k
  return x * dc.where(ends:eq(0), dc.full(x.dtype .. "[]", by), 1)
end

local function factor(norm, period, inverse)
  if norm == "ortho" then
    return 1 / math.sqrt(period)
  end
  return (norm == "forward") ~= inverse and 1 / period or 1
end

local function read(op, x, options)
  parts.check_tensor(op, x)
  core.options(op, options, "type", "axis", "n", "norm")
  options = options or {}
  local kind = options.type == nil and 2 or options.type
  if not types[kind] then
    core.fail("ARG", op, ("type is 1, 2, 3 or 4, not %s"):format(core.shown(kind)))
  end
  local axis, norm = core.control_axis(x, options.axis or -1, op), parts.check_norm(op, options.norm)
  x = parts.sized(op, parts.check_real(op, x), axis, options.n)
  local n = x.shape[axis]
  if math.type(n) ~= "integer" then
    core.fail("EXTENT", op, ("axis %d of %s has a size known at run time, and a fixed size is needed"):format(axis,
      core.describe(x)), nil, "x", x)
  end
  return x, axis, kind, norm
end

local inverses = { 1, 3, 2, 4 }

local function cosines(op, x, axis, kind, norm, inverse)
  local n = x.shape[axis]
  if kind == 1 and n < 2 then
    core.fail("ARG", op, ("type 1 needs 2 elements at least; axis %d of %s has one"):format(axis, core.describe(x)),
      "n = 2 fills it up", "x", x)
  end
  local ortho = norm == "ortho"
  if ortho and (kind == 1 or kind == 3) then
    x = weighted(x, axis, kind, math.sqrt(2))
  end
  local y = parts.scaled(types[kind](x, axis, op), factor(norm, kind == 1 and 2 * (n - 1) or 2 * n, inverse))
  return ortho and (kind == 1 or kind == 2) and weighted(y, axis, kind, math.sqrt(0.5)) or y
end

local function cosine(op, x, options, inverse)
  local axis, kind, norm
  x, axis, kind, norm = read(op, x, options)
  return cosines(op, x, axis, inverse and inverses[kind] or kind, norm, inverse)
end

-- Types from 2 on are cosine transforms, in reverse on one side, of alternating signs on the other.
local function sine(op, x, options, inverse)
  local axis, kind, norm
  x, axis, kind, norm = read(op, x, options)
  kind = inverse and inverses[kind] or kind
  if kind == 1 then
    return parts.scaled(sine_1(x, axis, op), factor(norm, 2 * (x.shape[axis] + 1), inverse))
  elseif kind == 2 then
    return cosines(op, alternated(x, axis), axis, kind, norm, inverse):flip(axis)
  end
  return alternated(cosines(op, x:flip(axis), axis, kind, norm, inverse), axis)
end

-- ---- public ----

---The discrete cosine transform along an axis (scipy.fft.dct). Of type 2
---y[k] = 2 sum of x[j] cos(pi k (2 j + 1) / 2 n); of type 3
---y[k] = x[0] + 2 sum from 1 of x[j] cos(pi (2 k + 1) j / 2 n); of type 1
---y[k] = x[0] + (-1)^k x[n - 1] + 2 sum between of x[j] cos(pi k j / (n - 1)); of type 4
---y[k] = 2 sum of x[j] cos(pi (2 k + 1) (2 j + 1) / 4 n).
---
---    local fft = require "deepc.fft"
---    fft.dct(dc.tensor { 1, 2, 3, 4 }, { norm = "ortho" })
---
---Options: type (2), axis (the last one), n, norm ("backward").
---
---Errors: as fft.rfft; DC0101 for another type, and for type 1 of one element.
---@param x deepc.Tensor of real numbers
---@param options? deepc.fft.CosineOptions
---@return deepc.Tensor
function fft.dct(x, options)
  local y = cosine("dct", x, options, false)
  return y
end

---The inverse of fft.dct with the same type and norm (scipy.fft.idct).
---
---    local fft = require "deepc.fft"
---    fft.idct(fft.dct(dc.tensor { 1, 2, 3, 4 }))
---
---Errors: as fft.dct.
---@param x deepc.Tensor of real numbers
---@param options? deepc.fft.CosineOptions
---@return deepc.Tensor
function fft.idct(x, options)
  local y = cosine("idct", x, options, true)
  return y
end

---The discrete sine transform along an axis (scipy.fft.dst). Of type 2
---y[k] = 2 sum of x[j] sin(pi (k + 1) (2 j + 1) / 2 n); of type 3
---y[k] = (-1)^k x[n - 1] + 2 sum before of x[j] sin(pi (2 k + 1) (j + 1) / 2 n); of type 1
---y[k] = 2 sum of x[j] sin(pi (k + 1) (j + 1) / (n + 1)); of type 4
---y[k] = 2 sum of x[j] sin(pi (2 k + 1) (2 j + 1) / 4 n).
---
---    local fft = require "deepc.fft"
---    fft.dst(dc.tensor { 1, 2, 3, 4 })
---
---Options: those of fft.dct.
---
---Errors: as fft.rfft; DC0101 for another type.
---@param x deepc.Tensor of real numbers
---@param options? deepc.fft.CosineOptions
---@return deepc.Tensor
function fft.dst(x, options)
  local y = sine("dst", x, options, false)
  return y
end

---The inverse of fft.dst with the same type and norm (scipy.fft.idst).
---
---    local fft = require "deepc.fft"
---    fft.idst(fft.dst(dc.tensor { 1, 2, 3, 4 }))
---
---Errors: as fft.dst.
---@param x deepc.Tensor of real numbers
---@param options? deepc.fft.CosineOptions
---@return deepc.Tensor
function fft.idst(x, options)
  local y = sine("idst", x, options, true)
  return y
end

return fft
