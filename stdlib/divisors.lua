-- The greatest common divisor and the least common multiple of integers, element by element. Their annotations are in
-- api/numbers.lua.

local dc = require "deepc"
local _, core = ...
require "deepc.operands"

local divisors = {}

local unsigned = { i8 = "u8", i16 = "u16", i32 = "u32", i64 = "u64", u8 = "u8", u16 = "u16", u32 = "u32", u64 = "u64" }

local function check(op, what, x)
  if math.type(x) == "integer" then
    return
  end
  core.check_tensor(op, x, what)
  if not unsigned[x.dtype] then
    core.fail("DTYPE", op, ("%s is %s, integers are needed"):format(what, core.describe(x)), nil, what, x)
  end
end

-- |x| as an unsigned integer of its width: of the most negative number, too.
local function magnitude(x)
  return (x.dtype:sub(1, 1) == "i" and x:abs() or x):cast(unsigned[x.dtype])
end

-- The zeros behind the last bit that is set; x is not 0.
local function trailing_zeros(x)
  return ((x & (~x + 1)) - 1):popcount()
end

-- J. Stein, "Computational problems associated with Racah algebra", 1967: odd numbers are subtracted, and halved until
-- they are odd again, so there is no division. All elements go on until the last one is there.
local function odd_gcd(a, b)
  local c = dc.loop(function(c) return c.a:ne(c.b):any() end, function(c)
    local less = c.a:minimum(c.b)
    local difference = c.a:maximum(c.b) - less
    local same = difference:eq(0)
    difference = dc.where(same, 1, difference)
    return { a = less, b = dc.where(same, less, difference >> trailing_zeros(difference)) }
  end, { a = a, b = b })
  return c.a
end

local function operands(op, a, b)
  if not (core.kind(a) or core.kind(b)) then
    core.check_tensor(op, a, "a")
  end
  check(op, "a", a)
  check(op, "b", b)
  local zero = (a | b) * 0 -- of the shape and dtype of the result
  return zero + a, zero + b
end

local function gcd(a, b)
  local dtype = a.dtype
  a, b = magnitude(a), magnitude(b)
  local none = (a | b):eq(0)
  a, b = dc.where(a:eq(0), b, a), dc.where(b:eq(0), a, b)
  a, b = dc.where(none, 1, a), dc.where(none, 1, b)
  local twos = trailing_zeros(a | b)
  local odd = odd_gcd(a >> trailing_zeros(a), b >> trailing_zeros(b))
  return dc.where(none, 0, odd << twos):cast(dtype)
end

function divisors.gcd(a, b)
  local y = gcd(operands("gcd", a, b))
  return y
end

function divisors.lcm(a, b)
  a, b = operands("lcm", a, b)
  local divisor = gcd(a, b)
  local y = (a // dc.where(divisor:eq(0), 1, divisor) * b):abs()
  return y
end

return core.entries(divisors)
