-- Discrete Fourier transforms of complex and of real tensors. One of complex numbers along an axis whose size has small
-- prime factors is an operation (core.dft); here are other sizes, real tensors, several axes, norms.

local dc = require "deepc"
local _, core = ...

---Discrete Fourier transforms, as in torch.fft and numpy.fft.
---
---    local fft = require "deepc.fft"
---@class deepc.fft
local fft = {}

---@class deepc.fft.Options
---@field axis? deepc.Axis the last one without
---@field n? integer the size that the axis is cut to, or filled up to with zeros, before
---@field norm? "backward"|"ortho"|"forward" of "backward" the inverse is divided by n, of "ortho" both by its root

---@class deepc.fft.AxesOptions
---@field axes? deepc.Axis[]
---@field s? integer[] sizes for these axes, as n
---@field norm? "backward"|"ortho"|"forward"

-- ---- arguments ----

local norms = { backward = true, ortho = true, forward = true }

local function check_norm(op, norm)
  if norm ~= nil and not norms[norm] then
    core.fail("ARG", op, ('norm is "backward", "ortho" or "forward", not %s'):format(core.shown(norm)))
  end
  return norm or "backward"
end

local function check_tensor(op, x)
  if not core.kind(x) then
    core.fail("ARG", op, "a tensor is needed, not " .. core.describe(x))
  elseif #x.shape == 0 then
    core.fail("ARG", op, "a scalar has no axis to transform along", nil, "of", x)
  end
end

local function check_size(op, n, what)
  if math.type(n) ~= "integer" or n < 1 then
    core.fail("ARG", op, ("%s is a whole number of at least 1, not %s"):format(what, core.shown(n)))
  end
  return n
end

-- x with so many elements along the axis: the first ones, or zeros behind them.
local function sized(op, x, axis, n)
  local had = x.shape[axis]
  if n == nil then
    n = had
  end
  if n ~= had then
    check_size(op, n, "n")
    if math.type(had) ~= "integer" then
      core.fail("EXTENT_TEXT", op, "the axis has a size known at run time, and n is another one", nil, "of", x)
    elseif n > had then
      return x:pad { [axis] = { 0, n - had } }
    end
    return (x:split({ n, had - n }, axis))
  elseif had == 0 then
    core.fail("ARG", op, ("axis %d of %s has no elements"):format(axis, core.describe(x)), "n = 8 fills it up", "of", x)
  end
  return x
end

local function as_float(x)
  local dtype = x.dtype
  if dtype == "f32" or dtype == "f64" or dtype == "c64" or dtype == "c128" then
    return x
  end
  return x:cast "f32"
end

local function is_complex(x)
  return x.dtype == "c64" or x.dtype == "c128"
end

local function as_complex(x)
  x = as_float(x)
  return is_complex(x) and x or x:cast(x.dtype == "f64" and "c128" or "c64")
end

local function check_real(op, x)
  if is_complex(x) then
    core.fail("DTYPE", op, ("%s: a real number is needed"):format(core.describe(x)), "fft takes complex numbers",
      "of", x)
  end
  return as_float(x)
end

-- What the result of a transform of n numbers is multiplied by.
local function factor(norm, n, inverse)
  if norm == "ortho" then
    return 1 / math.sqrt(n)
  end
  return (norm == "forward") ~= inverse and 1 / n or 1
end

local function scaled(x, by)
  return by == 1 and x or x * by
end

-- 0 ... n - 1 along one axis of so many.
local function counted(rank, axis, n)
  local shape = {}
  for k = 1, rank do
    shape[k] = k == axis and n or 1
  end
  return dc.iota(("i64[%s]"):format(table.concat(shape, ", ")), axis)
end

-- ---- one axis ----

-- Bluestein (1970): jk = (j^2 + k^2 - (k - j)^2) / 2, so the transform is a convolution with numbers of size 1, of a
-- length that has small factors. j^2 is taken modulo 2 n, as a whole number.
local function by_convolution(z, axis, sign, op)
  local n, rank = z.shape[axis], #z.shape
  local m = 1
  while m < 2 * n - 1 do
    m = m * 2
  end
  local j = counted(rank, axis, n)
  local chirp = core.turns((j * j) % (2 * n), 2 * n, z.dtype)
  local back = chirp:conj()
  if sign < 0 then
    chirp, back = back, chirp
  end
  local ring = back
  if n > 1 then
    local _, rest = back:split({ 1, n - 1 }, axis)
    ring = dc.concat({ back:pad { [axis] = { 0, m - 2 * n + 1 } }, rest:flip(axis) }, axis)
  end
  local a = core.dft((z * chirp):pad { [axis] = { 0, m - n } }, axis, -1, op)
  local b = core.dft(ring, axis, -1, op)
  local c = core.dft(a * b, axis, 1, op)
  return (c:split({ n, m - n }, axis)) * chirp * (1 / m)
end

local function transform(z, axis, sign, op)
  local n = z.shape[axis]
  if math.type(n) ~= "integer" or core.dft_has_radices(n) then
    return core.dft(z, axis, sign, op)
  end
  return by_convolution(z, axis, sign, op)
end

-- Real numbers in pairs are half as many complex ones, whose transform is that of the even and that of the odd ones.
local function of_real(x, axis, op)
  local n, rank = x.shape[axis], #x.shape
  if math.type(n) ~= "integer" or n % 2 == 1 or n == 2 then
    local z = transform(as_complex(x), axis, -1, op)
    local half = math.type(n) == "integer" and n // 2 + 1
    return half and half < n and (z:split({ half, n - half }, axis)) or z
  end
  local m = n // 2
  local shape, order = {}, {}
  for k, size in ipairs(x.shape) do
    shape[#shape + 1] = k == axis and m or size
    order[k] = k <= axis and k or k + 1
    if k == axis then
      shape[#shape + 1] = 2
    end
  end
  order[rank + 1] = axis + 1
  local z = transform(x:reshape(shape):permute(order):view_as_complex(), axis, -1, op)
  local a = dc.concat({ z, (z:split({ 1, m - 1 }, axis)) }, axis)
  local b = a:flip(axis):conj()
  local w = core.turns(counted(rank, axis, m + 1), n, z.dtype):conj() * dc.complex(0, -0.5):cast(z.dtype)
  return (a + b) * 0.5 + (a - b) * w
end

-- The reverse of it, without a factor; n is the size of the result.
local function to_real(z, axis, n, op)
  local rank = #z.shape
  local m = n // 2
  if n % 2 == 1 or n == 2 then
    local half = n // 2 + 1
    local first, rest = z:split({ 1, half - 1 }, axis)
    first = dc.complex(first:real(), 0)
    if n == 2 then
      rest = dc.complex(rest:real(), 0)
    end
    local all = n == 1 and first or dc.concat({ first, rest }, axis)
    if n > 2 then
      all = dc.concat({ all, rest:flip(axis):conj() }, axis)
    end
    return transform(all, axis, 1, op):real()
  end
  local first, middle, last = z:split({ 1, m - 1, 1 }, axis)
  local ends = { dc.complex(first:real(), 0), middle, dc.complex(last:real(), 0) }
  local a = dc.concat(ends, axis)
  local b = a:flip(axis):conj()
  local w = core.turns(counted(rank, axis, m + 1), n, z.dtype) * dc.complex(0, 1):cast(z.dtype)
  local pairs_of = transform(((a + b + (a - b) * w):split({ m, 1 }, axis)), axis, 1, op):view_as_real()
  local order, shape = {}, {}
  for k = 1, rank do
    order[#order + 1] = k
    if k == axis then
      order[#order + 1] = rank + 1
    end
    shape[k] = k == axis and n or z.shape[k]
  end
  return pairs_of:permute(order):reshape(shape)
end

-- ---- public, one axis ----

local function options_of(op, x, options)
  check_tensor(op, x)
  core.options(op, options, "axis", "n", "norm")
  options = options or {}
  local axis = core.control_axis(x, options.axis or -1, op)
  return axis, options.n, check_norm(op, options.norm)
end

local function complex_transform(op, x, options, sign)
  local axis, n, norm = options_of(op, x, options)
  local z = transform(sized(op, as_complex(x), axis, n), axis, sign, op)
  return scaled(z, factor(norm, z.shape[axis], sign > 0))
end

---The discrete Fourier transform along an axis: y[k] = sum of x[j] exp(-2 pi i j k / n) (torch.fft.fft, np.fft.fft).
---A real tensor becomes complex before; of one rfft takes half the time.
---
---    fft.fft(dc.tensor { 1, 0, 0, 0 }, { norm = "ortho" })
---
---Any size: sizes with prime factors up to 31 by their factors (Cooley and Tukey, 1965; Stockham's order), others by a
---convolution (Bluestein, 1970). Its gradient is a transform, too.
---
---Errors: DC0101 for unknown options, DC0103 for an axis that is not there, DC0311 for an axis whose size is known at
---run time.
---@param x deepc.Tensor of f32 or f64, or complex; other numbers become f32
---@param options? deepc.fft.Options
---@return deepc.Tensor
function fft.fft(x, options)
  local y = complex_transform("fft", x, options, -1)
  return y
end

---The inverse of fft (torch.fft.ifft): y[j] = 1/n sum of x[k] exp(2 pi i j k / n).
---
---    fft.ifft(fft.fft(dc.tensor { 1, 2, 3 })):real()
---
---Errors: as fft.fft.
---@param x deepc.Tensor
---@param options? deepc.fft.Options
---@return deepc.Tensor
function fft.ifft(x, options)
  local y = complex_transform("ifft", x, options, 1)
  return y
end

---The first n // 2 + 1 numbers of the transform of n real ones; the others are their conjugates (torch.fft.rfft).
---
---    fft.rfft(dc.tensor { 1, 2, 3, 4 })
---
---Errors: as fft.fft; DC0202 for a complex tensor.
---@param x deepc.Tensor of real numbers
---@param options? deepc.fft.Options
---@return deepc.Tensor
function fft.rfft(x, options)
  local axis, n, norm = options_of("rfft", x, options)
  x = sized("rfft", check_real("rfft", x), axis, n)
  return scaled(of_real(x, axis, "rfft"), factor(norm, x.shape[axis], false))
end

-- The size of what a half came from.
local function whole_size(op, z, axis, n)
  return check_size(op, n or 2 * (z.shape[axis] - 1), "n")
end

local function real_inverse(op, z, axis, n, norm)
  n = whole_size(op, z, axis, n)
  z = sized(op, as_complex(z), axis, n // 2 + 1)
  return scaled(to_real(z, axis, n, op), factor(norm, n, true))
end

---The inverse of rfft: n real numbers, 2 (m - 1) of m without `n` (torch.fft.irfft). Imaginary parts of the first
---number, and of the last one of an even n, do not count.
---
---    fft.irfft(fft.rfft(dc.tensor { 1, 2, 3 }), { n = 3 })
---
---Errors: as fft.fft.
---@param z deepc.Tensor
---@param options? deepc.fft.Options
---@return deepc.Tensor
function fft.irfft(z, options)
  local axis, n, norm = options_of("irfft", z, options)
  return real_inverse("irfft", z, axis, n, norm)
end

local turned_norm = { backward = "forward", forward = "backward", ortho = "ortho" }

---The transform, real, of a signal that is the conjugate of its reverse, of which half is given (torch.fft.hfft).
---
---    fft.hfft(dc.tensor({ 1, 2, 1 }, "c64"))
---
---Errors: as fft.fft.
---@param z deepc.Tensor
---@param options? deepc.fft.Options
---@return deepc.Tensor
function fft.hfft(z, options)
  local axis, n, norm = options_of("hfft", z, options)
  return real_inverse("hfft", as_complex(z):conj(), axis, n, turned_norm[norm])
end

---The inverse of hfft (torch.fft.ihfft).
---
---    fft.ihfft(dc.tensor { 1, 2, 3, 4 })
---
---Errors: as fft.rfft.
---@param x deepc.Tensor of real numbers
---@param options? deepc.fft.Options
---@return deepc.Tensor
function fft.ihfft(x, options)
  local axis, n, norm = options_of("ihfft", x, options)
  x = sized("ihfft", check_real("ihfft", x), axis, n)
  return scaled(of_real(x, axis, "ihfft"):conj(), factor(turned_norm[norm], x.shape[axis], false))
end

-- ---- several axes ----

local function axes_of(op, x, options, all)
  check_tensor(op, x)
  core.options(op, options, "axes", "s", "norm")
  options = options or {}
  local axes, sizes, seen = options.axes, options.s, {}
  if sizes ~= nil and type(sizes) ~= "table" then
    core.fail("ARG", op, "s is a list of sizes, not " .. core.describe(sizes))
  end
  if axes == nil then
    axes = {}
    for k = all and not sizes and -#x.shape or -(sizes and #sizes or 2), -1 do
      axes[#axes + 1] = k
    end
  elseif type(axes) ~= "table" then
    core.fail("ARG", op, "axes is a list of axes, not " .. core.describe(axes))
  end
  local list = {}
  for i, axis in ipairs(axes) do
    list[i] = core.control_axis(x, axis, op)
    if seen[list[i]] then
      core.fail("ARG", op, ("axis %d is given twice"):format(list[i]))
    end
    seen[list[i]] = true
  end
  if #list == 0 then
    core.fail("ARG", op, "at least one axis is needed")
  elseif sizes and #sizes ~= #list then
    core.fail("ARG", op, ("%d sizes for %d axes"):format(#sizes, #list))
  end
  return list, sizes or {}, check_norm(op, options.norm)
end

-- From the last of the axes to the first.
local function along(op, x, list, sizes, norm, sign, from)
  local z = as_complex(x)
  for i = from, 1, -1 do
    z = transform(sized(op, z, list[i], sizes[i]), list[i], sign, op)
    z = scaled(z, factor(norm, z.shape[list[i]], sign > 0))
  end
  return z
end

local function complex_axes(op, x, options, sign, all)
  local list, sizes, norm = axes_of(op, x, options, all)
  return along(op, x, list, sizes, norm, sign, #list)
end

local function real_axes(op, x, options, all)
  local list, sizes, norm = axes_of(op, x, options, all)
  local last = list[#list]
  x = sized(op, check_real(op, x), last, sizes[#list])
  local z = scaled(of_real(x, last, op), factor(norm, x.shape[last], false))
  return along(op, z, list, sizes, norm, -1, #list - 1)
end

local function real_inverse_axes(op, z, options, all)
  local list, sizes, norm = axes_of(op, z, options, all)
  z = along(op, z, list, sizes, norm, 1, #list - 1)
  return real_inverse(op, z, list[#list], sizes[#list], norm)
end

---The transform along two axes, the last two without `axes` (torch.fft.fft2).
---
---    fft.fft2(dc.ones "f32[4, 4]")
---
---Errors: as fft.fft.
---@param x deepc.Tensor
---@param options? deepc.fft.AxesOptions
---@return deepc.Tensor
function fft.fft2(x, options)
  local y = complex_axes("fft2", x, options, -1, false)
  return y
end

---The inverse of fft2 (torch.fft.ifft2).
---
---    fft.ifft2(dc.ones "c64[4, 4]")
---
---Errors: as fft.fft.
---@param x deepc.Tensor
---@param options? deepc.fft.AxesOptions
---@return deepc.Tensor
function fft.ifft2(x, options)
  local y = complex_axes("ifft2", x, options, 1, false)
  return y
end

---rfft along the last of two axes, then fft along the other one (torch.fft.rfft2).
---
---    fft.rfft2(dc.ones "f32[4, 4]")
---
---Errors: as fft.rfft.
---@param x deepc.Tensor of real numbers
---@param options? deepc.fft.AxesOptions
---@return deepc.Tensor
function fft.rfft2(x, options)
  local y = real_axes("rfft2", x, options, false)
  return y
end

---The inverse of rfft2 (torch.fft.irfft2); `s` gives the sizes of the result, where the last one is odd.
---
---    fft.irfft2(fft.rfft2(dc.ones "f32[4, 4]"))
---
---Errors: as fft.fft.
---@param z deepc.Tensor
---@param options? deepc.fft.AxesOptions
---@return deepc.Tensor
function fft.irfft2(z, options)
  local y = real_inverse_axes("irfft2", z, options, false)
  return y
end

---The transform along several axes, all of them without `axes` (torch.fft.fftn).
---
---    fft.fftn(dc.ones "f32[2, 4, 4]")
---
---Errors: as fft.fft.
---@param x deepc.Tensor
---@param options? deepc.fft.AxesOptions
---@return deepc.Tensor
function fft.fftn(x, options)
  local y = complex_axes("fftn", x, options, -1, true)
  return y
end

---The inverse of fftn (torch.fft.ifftn).
---
---    fft.ifftn(dc.ones "c64[2, 4, 4]")
---
---Errors: as fft.fft.
---@param x deepc.Tensor
---@param options? deepc.fft.AxesOptions
---@return deepc.Tensor
function fft.ifftn(x, options)
  local y = complex_axes("ifftn", x, options, 1, true)
  return y
end

---rfft along the last of the axes, then fft along the others (torch.fft.rfftn).
---
---    fft.rfftn(dc.ones "f32[2, 4, 4]")
---
---Errors: as fft.rfft.
---@param x deepc.Tensor of real numbers
---@param options? deepc.fft.AxesOptions
---@return deepc.Tensor
function fft.rfftn(x, options)
  local y = real_axes("rfftn", x, options, true)
  return y
end

---The inverse of rfftn (torch.fft.irfftn).
---
---    fft.irfftn(fft.rfftn(dc.ones "f32[2, 4, 4]"))
---
---Errors: as fft.fft.
---@param z deepc.Tensor
---@param options? deepc.fft.AxesOptions
---@return deepc.Tensor
function fft.irfftn(z, options)
  local y = real_inverse_axes("irfftn", z, options, true)
  return y
end

-- ---- frequencies ----

---The frequencies that the numbers of fft belong to, in cycles: 0, 1, ... -1 times 1 / (n d) (torch.fft.fftfreq).
---
---    fft.fftfreq(8, 0.1)
---
---Errors: DC0101 where n is no whole number of at least 1.
---@param n integer
---@param d? number the distance of two samples, 1
---@return deepc.Tensor # f32[n]
function fft.fftfreq(n, d)
  check_size("fftfreq", n, "n")
  local k = dc.iota(n):cast "f32"
  return dc.where(k:lt((n + 1) // 2), k, k - n) / (n * (d or 1))
end

---The same of rfft: 0, 1, ... n // 2 times 1 / (n d) (torch.fft.rfftfreq).
---
---    fft.rfftfreq(8)
---
---Errors: as fft.fftfreq.
---@param n integer
---@param d? number the distance of two samples, 1
---@return deepc.Tensor # f32[n // 2 + 1]
function fft.rfftfreq(n, d)
  check_size("rfftfreq", n, "n")
  return dc.iota(n // 2 + 1):cast "f32" / (n * (d or 1))
end

local function rolled(op, x, axes, back)
  check_tensor(op, x)
  if axes == nil then
    axes = {}
    for k = 1, #x.shape do
      axes[k] = k
    end
  elseif type(axes) ~= "table" then
    axes = { axes }
  end
  for _, name in ipairs(axes) do
    local axis = core.control_axis(x, name, op)
    local n = x.shape[axis]
    x = x:roll(back and -(n // 2) or n // 2, axis)
  end
  return x
end

---Frequency 0 to the middle of each axis (torch.fft.fftshift).
---
---    fft.fftshift(fft.fftfreq(8))
---
---Errors: DC0103 for an axis that is not there.
---@param x deepc.Tensor
---@param axes? deepc.Axis|deepc.Axis[] all without
---@return deepc.Tensor
function fft.fftshift(x, axes)
  local y = rolled("fftshift", x, axes, false)
  return y
end

---The reverse of fftshift (torch.fft.ifftshift).
---
---    fft.ifftshift(fft.fftshift(fft.fftfreq(8)))
---
---Errors: as fft.fftshift.
---@param x deepc.Tensor
---@param axes? deepc.Axis|deepc.Axis[] all without
---@return deepc.Tensor
function fft.ifftshift(x, axes)
  local y = rolled("ifftshift", x, axes, true)
  return y
end

core.transforms = {
  check_norm = check_norm, check_tensor = check_tensor, check_real = check_real, sized = sized, scaled = scaled,
  counted = counted, transform = transform, of_real = of_real, to_real = to_real,
}

return fft
