-- Operations of StableHLO element by element, constants, and what only passes values on.

local dc = require "deepc"
local elements = require "deepc.stablehlo.elements"
local lapack = require "deepc.stablehlo.lapack_calls"
local shapes = require "deepc.stablehlo.shapes"

local rows = {}

local function is_bool(x)
  return x.dtype == "bool"
end

local function is_integer(x)
  return x.dtype:find "^[iu]%d" ~= nil
end

local function is_unsigned(x)
  return x.dtype:find "^u" ~= nil
end

local function is_complex(x)
  return elements.is_complex(x.dtype)
end

-- ---- constants -----------------------------------------------------------------------------------

rows["stablehlo.constant"] = function(o)
  local a = o.attributes.value
  if type(a) ~= "table" or not a.dense then
    o:fail("a constant of this form is not supported")
  elseif a.elided then
    o:fail("the elements of resource %s were left out when the text was printed", a.resource)
  end
  local cache = o.run.options.constants
  local x = cache and cache(o.op) or elements.tensor(a)
  o.run.known[x], o.run.lists[x] = elements.number(a), elements.list(a)
  return x
end

rows["stablehlo.iota"] = function(o)
  local t = o.types[1]
  local axis = o.attributes.iota_dimension + 1
  if t.dtype == "bool" then
    return dc.iota(elements.type_text { dtype = "i32", shape = t.shape }, axis):bit_and(1):ne(0)
  end
  return dc.iota(o:type_text(), axis)
end

-- ---- of one --------------------------------------------------------------------------------------

for name, method in pairs { abs = "abs", cbrt = "cbrt", ceil = "ceil", cosine = "cos", exponential = "exp",
  exponential_minus_one = "expm1", floor = "floor", log = "log", log_plus_one = "log1p", negate = "neg",
  round_nearest_even = "round", rsqrt = "rsqrt", sign = "sign", sine = "sin", sqrt = "sqrt", tan = "tan", tanh = "tanh",
  is_finite = "isfinite", popcnt = "popcount", count_leading_zeros = "clz" } do
  rows["stablehlo." .. name] = function(_, x)
    return x[method](x)
  end
end

-- Integers have no method of some names, since their values do not change, or one that gives another dtype.
local function with(name, when, f)
  local plain = rows[name]
  rows[name] = function(o, x, ...)
    if when(x) then
      return f(x, ...)
    end
    return plain(o, x, ...)
  end
end

with("stablehlo.abs", is_unsigned, function(x) return x end)
with("stablehlo.sign", is_complex, function(x)
  local size = x:abs()
  local safe = dc.where(size:eq(0), 1, size)
  return dc.complex(x:real() / safe, x:imag() / safe)
end)

-- exp(z) - 1 and log(1 + z) of a complex z, without the loss of what is near 0.
with("stablehlo.exponential_minus_one", is_complex, function(z)
  local re, im = z:real(), z:imag()
  local half = (im * 0.5):sin()
  local grown = re:exp()
  return dc.complex(re:expm1() * im:cos() - half * half * 2, grown * im:sin())
end)

with("stablehlo.log_plus_one", is_complex, function(z)
  local re, im = z:real(), z:imag()
  return dc.complex((re * (re + 2) + im * im):log1p() * 0.5, dc.atan2(im, re + 1))
end)

-- tanh is odd: of -z where the real part is positive, exp(2 z) is at most 1.
with("stablehlo.tanh", is_complex, function(z)
  local sign = dc.where(z:real():gt(0), -1, z:real() * 0 + 1)
  local e = (z * dc.complex(sign, sign * 0) * 2):exp()
  local y = (e - 1) / (e + 1)
  return dc.complex(y:real() * sign, y:imag() * sign)
end)

rows["stablehlo.logistic"] = function(_, x)
  if is_complex(x) then
    return 1 / (1 + (-x):exp())
  end
  return x:sigmoid()
end

rows["stablehlo.not"] = function(_, x)
  return x:bit_not()
end

rows["stablehlo.real"] = function(_, x)
  return is_complex(x) and x:real() or x
end

rows["stablehlo.imag"] = function(_, x)
  return is_complex(x) and x:imag() or x:mul(0)
end

-- Halves go away from zero. The fraction is exact.
rows["stablehlo.round_nearest_afz"] = function(_, x)
  local size = x:abs()
  local whole = size:floor()
  local up = (size - whole):ge(0.5)
  return dc.where(up, whole + 1, whole):copysign(x)
end

local function convert(x, dtype)
  if x.dtype == dtype then
    return x
  elseif dtype == "bool" then
    return x:ne(0)
  elseif is_complex(x) and not elements.is_complex(dtype) then
    return x:real():cast(dtype)
  end
  return x:cast(dtype)
end

rows["stablehlo.convert"] = function(o, x)
  return convert(x, o.types[1].dtype)
end

-- ---- of two and three ----------------------------------------------------------------------------

-- Of bool, add and maximum are or, multiply and minimum are and.
local function arithmetic(name, f, logic)
  rows["stablehlo." .. name] = function(_, a, b)
    if is_bool(a) then
      return logic(a, b)
    end
    return f(a, b)
  end
end

local function either(a, b) return a:bit_or(b) end
local function both(a, b) return a:bit_and(b) end
local function one_of(a, b) return a:bit_xor(b) end

-- Complex numbers in the order of their real parts, equal ones of their imaginary parts.
local function complex_less(a, b)
  local p, q = a:real(), b:real()
  return p:lt(q) | (p:eq(q) & a:imag():lt(b:imag()))
end

local function larger(a, b)
  return is_complex(a) and dc.where(complex_less(b, a), a, b) or dc.maximum(a, b)
end

local function smaller(a, b)
  return is_complex(a) and dc.where(complex_less(a, b), a, b) or dc.minimum(a, b)
end

arithmetic("add", function(a, b) return a + b end, either)
arithmetic("subtract", function(a, b) return a - b end, one_of)
arithmetic("multiply", function(a, b) return a * b end, both)
arithmetic("maximum", larger, either)
arithmetic("minimum", smaller, both)

-- Integers are cut towards 0: what is left over has gone before.
arithmetic("divide", function(a, b)
  return is_integer(a) and (a - a:rem(b)):floor_div(b) or a / b
end, both)

rows["stablehlo.remainder"] = function(_, a, b)
  return a:rem(b)
end

rows["stablehlo.power"] = function(_, a, b)
  if is_integer(a) then
    return a:integer_pow(b)
  elseif is_complex(a) then
    return dc.where(b:real():eq(0) & b:imag():eq(0), 1, (b * a:log()):exp())
  end
  return a ^ b
end

rows["stablehlo.atan2"] = function(_, a, b)
  return dc.atan2(a, b)
end

rows["stablehlo.complex"] = function(_, a, b)
  return dc.complex(a, b)
end

rows["stablehlo.and"] = function(_, a, b) return both(a, b) end
rows["stablehlo.or"] = function(_, a, b) return either(a, b) end
rows["stablehlo.xor"] = function(_, a, b) return one_of(a, b) end

rows["stablehlo.shift_left"] = function(_, a, b)
  return a:shift_left(b)
end

rows["stablehlo.shift_right_arithmetic"] = function(_, a, b)
  if is_unsigned(a) then
    local signed = a.dtype:gsub("^u", "i")
    return a:cast(signed):shift_right(b:cast(signed)):cast(a.dtype)
  end
  return a:shift_right(b)
end

rows["stablehlo.shift_right_logical"] = function(_, a, b)
  if not is_unsigned(a) then
    local unsigned = a.dtype:gsub("^i", "u")
    return a:cast(unsigned):shift_right(b:cast(unsigned)):cast(a.dtype)
  end
  return a:shift_right(b)
end

rows["stablehlo.select"] = function(_, p, a, b)
  return dc.where(p, a, b)
end

rows["stablehlo.clamp"] = function(_, low, x, high)
  return smaller(larger(x, low), high)
end

local comparisons = { EQ = "eq", NE = "ne", LT = "lt", LE = "le", GT = "gt", GE = "ge" }
rows["stablehlo.compare"] = function(o, a, b)
  if o.attributes.compare_type == "TOTALORDER" and shapes.has_pattern[a.dtype] then
    a, b = shapes.in_total_order(a), shapes.in_total_order(b)
  elseif is_complex(a) and o.attributes.comparison_direction ~= "EQ" and o.attributes.comparison_direction ~= "NE" then
    local direction = o.attributes.comparison_direction
    if direction == "LT" or direction == "GE" then
      local less = complex_less(a, b)
      return direction == "LT" and less or less:bit_not()
    end
    local less = complex_less(b, a)
    return direction == "GT" and less or less:bit_not()
  end
  return a[comparisons[o.attributes.comparison_direction]](a, b)
end

-- ---- patterns ------------------------------------------------------------------------------------

local width = { f64 = 64, f32 = 32, f16 = 16, bf16 = 16, i64 = 64, u64 = 64, i32 = 32, u32 = 32, i16 = 16, u16 = 16,
  i8 = 8, u8 = 8, f8e4m3fn = 8, f8e5m2 = 8 }

-- An integer as several shorter ones along a new last axis, from the lowest bits on.
local function cut_up(x, bits)
  local whole = "u" .. width[x.dtype]
  local part = "u" .. bits
  x = x.dtype == whole and x or x:bitcast(whole)
  local list = {}
  for at = 0, width[whole] - bits, bits do
    list[#list + 1] = x:shift_right(dc.full(whole .. "[]", at)):cast(part)
  end
  return dc.stack(list, #x.shape + 1)
end

local function put_together(x, bits)
  local whole = "u" .. bits
  local step = width[x.dtype]
  local axis = #x.shape
  x = x:bitcast("u" .. step):cast(whole)
  local out
  for i = 1, x.shape[axis] do
    local part = x:slice({ [axis] = { i, i } }):shift_left(dc.full(whole .. "[]", (i - 1) * step))
    out = out and out:bit_or(part) or part
  end
  local shape = table.pack(table.unpack(x.shape, 1, axis - 1))
  return out:reshape(("[%s]"):format(table.concat(shape, ", ")))
end

rows["stablehlo.bitcast_convert"] = function(o, x)
  local to = o.types[1].dtype
  if x.dtype == to then
    return x
  elseif to == "bool" or is_bool(x) or not width[to] or not width[x.dtype] then
    o:fail("bits of %s as %s are not supported", x.dtype, to)
  elseif width[x.dtype] > width[to] then
    x = cut_up(x, width[to])
  elseif width[x.dtype] < width[to] then
    x = put_together(x, width[to])
  end
  return x.dtype == to and x or x:bitcast(to)
end

-- ---- what passes values on -----------------------------------------------------------------------

rows["stablehlo.optimization_barrier"] = function(_, ...)
  return ...
end

-- What is said of devices says nothing on one; a cast between dialects leaves the value as it is.
for _, name in ipairs { "sdy.sharding_constraint", "sdy.reshard", "builtin.unrealized_conversion_cast" } do
  rows[name] = rows["stablehlo.optimization_barrier"]
end

rows["stablehlo.after_all"] = function()
  return true
end
rows["stablehlo.create_token"] = rows["stablehlo.after_all"]

rows["stablehlo.tuple"] = function(_, ...)
  return { ... }
end

rows["stablehlo.get_tuple_element"] = function(o, list)
  return list[o.attributes.index + 1]
end

rows["func.call"] = function(o, ...)
  return o:call(o.attributes.callee.symbol, ...)
end

rows["stablehlo.composite"] = function(o, ...)
  return o:call(o.attributes.decomposition.symbol, ...)
end

local identities = { Sharding = true, SPMDFullToShardShape = true, SPMDShardToFullShape = true,
  annotate_device_placement = true, ["xla.sdy.FuncResultSharding"] = true }

rows["stablehlo.custom_call"] = function(o, ...)
  local target = o.attributes.call_target_name
  local custom = o.run.options.custom and o.run.options.custom[target] or lapack[target]
  if custom then
    return custom(o, ...)
  elseif identities[target] then
    return ...
  elseif target == "dce_sink" then -- what others are not to remove; nothing depends on it here
    return
  end
  o:fail("there is no function for the target '%s'", target)
end

return rows
