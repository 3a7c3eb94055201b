-- Operations of deepc, element by element, as operations of StableHLO: those that have one, and what is a few of them.

local build = require "deepc.stablehlo.build"

local rows = {}

-- ---- constants -----------------------------------------------------------------------------------

-- The pattern of a node's attribute as a value of its dtype.
local function number(dtype, bits)
  local width = build.width(dtype)
  if dtype == "bool" then
    return bits ~= 0
  elseif dtype == "f64" or dtype == "f32" then
    local v = string.unpack(dtype == "f64" and "<d" or "<f", string.pack("<i8", bits))
    return v == v and v or { bits = width == 64 and bits or bits & 0xFFFFFFFF }
  elseif build.is_float(dtype) then
    return { bits = bits & (1 << width) - 1 }
  elseif width == 64 then
    return bits
  end
  bits = bits & (1 << width) - 1
  return not build.is_unsigned(dtype) and bits >= 1 << width - 1 and bits - (1 << width) or bits
end

function rows.const(w, n)
  return w:const(n.dtype, n.shape, number(n.dtype, n.attributes[1]))
end

-- Where no gradient put anything.
function rows.hole(w, n)
  return w:const(n.dtype, n.shape, n.dtype ~= "bool" and 0)
end

function rows.iota(w, n)
  local axis = n.attributes[1]
  if n.dtype == "bool" then
    return (w:iota("i32", n.shape, axis) & 1):ne(0)
  end
  return w:iota(n.dtype, n.shape, axis)
end

-- ---- one operation each --------------------------------------------------------------------------

for op, name in pairs { neg = "negate", exp = "exponential", log = "log", sqrt = "sqrt", floor = "floor",
  round = "round_nearest_even", expm1 = "exponential_minus_one", log1p = "log_plus_one", sin = "sine", cos = "cosine",
  cbrt = "cbrt", sigmoid = "logistic", ["not"] = "not", add = "add", sub = "subtract", mul = "multiply",
  div = "divide", rem = "remainder", maximum = "maximum", minimum = "minimum", atan2 = "atan2", pow = "power",
  power = "power", bit_and = "and", bit_or = "or", bit_xor = "xor", shift_left = "shift_left", where = "select",
  bitcast = "bitcast_convert" } do
  rows[op] = function(w, n, ...)
    return w:one(name, { ... }, n.dtype, n.shape)
  end
end

function rows.abs(_, n, x)
  return build.is_unsigned(n.dtype) and x or x:abs()
end

function rows.shift_right(w, n, a, b)
  local name = build.is_unsigned(n.dtype) and "shift_right_logical" or "shift_right_arithmetic"
  return w:one(name, { a, b }, n.dtype, n.shape)
end

for op, direction in pairs { lt = "LT", le = "LE", eq = "EQ", ne = "NE" } do
  rows[op] = function(_, _, a, b)
    return a:compare(direction, b)
  end
end

function rows.cast(_, n, x)
  return x:convert(n.dtype)
end

-- ---- what passes values on -----------------------------------------------------------------------

local function first(_, _, x)
  return x
end

for _, op in ipairs { "stop_gradient", "custom_grad", "barrier", "reshard" } do
  rows[op] = first
end

-- ---- patterns ------------------------------------------------------------------------------------

function rows.copysign(_, n, a, b)
  local bits = build.width(n.dtype)
  local integer = "i" .. bits
  local least = bits == 64 and math.mininteger or -(1 << bits - 1)
  local size, sign = a:bitcast(integer) & ~least, b:bitcast(integer) & least
  return (size | sign):bitcast(n.dtype)
end

function rows.half_float(_, _, x)
  return x:bitcast("f16"):convert("f32")
end

local function rotate(x, by)
  return x:shift_left(by) | x:shift_right(32 - by)
end

-- Threefry-2x32, its first word (core/ir/op.c).
function rows.threefry(_, _, a, b, x0, x1)
  local c = a ~ b ~ 0x1bd11bda
  local keys = { [0] = a, b, c }
  x0, x1 = x0 + a, x1 + b
  for round = 1, 5 do
    for _, by in ipairs(round % 2 == 1 and { 13, 15, 26, 6 } or { 17, 29, 16, 24 }) do
      x0 = x0 + x1
      x1 = rotate(x1, by) ~ x0
    end
    x0, x1 = x0 + keys[round % 3], x1 + keys[(round + 1) % 3] + round
  end
  return x0
end

-- Unsigned bytes of a by signed ones of b.
function rows.dp4a(_, _, a, b, c)
  for at = 0, 24, 8 do
    local signed = ((b:shift_right(at) & 255) ~ 128) - 128
    c = c + (a:shift_right(at) & 255) * signed
  end
  return c
end

return rows
