-- Numbers in a row: linspace, logspace, arange, and powers of a vector. Their annotations are in api/arrange.lua.

local dc = require "deepc"
local _, core = ...
require "deepc.operands"

local ranges = {}

local MOST = 2147483647

local function fail(row, op, hint, text, ...)
  core.fail(row, op, text:format(...), hint)
end

local function check_count(op, n)
  if math.type(n) ~= "integer" or n < 0 or n > MOST then
    fail("ARG", op, nil, "how many numbers is an integer from 0 on, not %s", core.shown(n))
  end
end

-- ---- in equal steps, both ends included ----

-- A number that is finite, or a scalar of floats.
local function check_end(op, what, v)
  local good
  if core.kind(v) then
    good = #v.shape == 0 and core.is_float(v.dtype)
  else
    good = type(v) == "number" and v == v and math.abs(v) < math.huge
  end
  if not good then
    fail("ARG", op, nil, "the %s is a number or a scalar of floats, not %s", what,
      type(v) == "number" and core.shown(v) or core.describe(v))
  end
end

local function dtype_of(op, first, last, dtype)
  local own = core.kind(first) and first.dtype or core.kind(last) and last.dtype or nil
  dtype = dtype or own or "f32"
  if not core.is_float(dtype) then
    fail("ARG", op, nil, "a dtype of floats is needed, not %s", core.shown(dtype))
  end
  for what, v in pairs { first = first, last = last } do
    if core.kind(v) and v.dtype ~= dtype then
      core.fail("DTYPE", op, ("the %s number is %s, the dtype %s"):format(what, core.describe(v), dtype), nil, what, v)
    end
  end
  return dtype
end

-- The half before the middle from the first number on, the other from the last one back, so that both are exact.
local function steps(op, first, last, n, dtype)
  check_end(op, "first number", first)
  check_end(op, "last number", last)
  check_count(op, n)
  dtype = dtype_of(op, first, last, dtype)
  local wide = core.is_short(dtype) and "f32" or dtype
  local function widened(v) return core.kind(v) and v:cast(wide) or v end
  first, last = widened(first), widened(last)
  local i = dc.iota(("%s[%d]"):format(wide, n))
  local step = n > 1 and (last - first) / (n - 1) or 0
  local near, far = i * step + first, last - (n - 1 - i) * step
  return n > 1 and dc.where(i:lt(n // 2), near, far) or near, dtype
end

function ranges.linspace(first, last, n, dtype)
  local y, own = steps("linspace", first, last, n, dtype)
  y = y:cast(own)
  return y
end

function ranges.logspace(first, last, n, options)
  local op = "logspace"
  core.options(op, options, "base", "dtype")
  options = options or {}
  local base = options.base or 10
  if type(base) ~= "number" then
    fail("ARG", op, nil, "the base is a number, not %s", core.shown(base))
  end
  local exponents, own = steps(op, first, last, n, options.dtype)
  local y = (base ^ exponents):cast(own)
  return y
end

-- ---- up to an end ----

local function check_number(op, what, v)
  if type(v) ~= "number" or v ~= v or math.abs(v) == math.huge then
    fail("ARG", op, nil, "%s is a number, not %s", what, core.shown(v))
  end
end

-- Refuses numbers that an integer dtype does not hold.
local function check_fits(op, dtype, numbers)
  local sign, bits = tostring(dtype):match "^([iu])(%d+)$"
  for _, v in ipairs(sign and numbers or {}) do
    local low = sign == "u" and 0 or -2.0 ^ (bits - 1)
    local high = 2.0 ^ (sign == "u" and bits or bits - 1)
    if v < low or v >= high then
      fail("ARG", op, nil, "%s does not fit %s", core.shown(v), dtype)
    end
  end
end

function ranges.arange(first, stop, step, dtype)
  local op = "arange"
  if core.is_size(first) and stop == nil then
    local y = dc.iota(first)
    return y:cast(dtype or "i32")
  elseif stop == nil then
    first, stop = 0, first
  end
  step = step == nil and 1 or step
  check_number(op, "the start", first)
  check_number(op, "the end", stop)
  check_number(op, "the step", step)
  if step == 0 then
    fail("ARG", op, nil, "steps of 0 never come to %s", core.shown(stop))
  end
  local n = math.max(0, math.ceil((stop - first) / step))
  local whole = math.type(first) == "integer" and math.type(stop) == "integer" and math.type(step) == "integer"
  dtype = dtype or whole and "i32" or "f32"
  check_count(op, n)
  local wide = core.is_short(dtype) and "f32" or dtype
  local i = dc.iota(("%s[%d]"):format(core.is_float(dtype) and wide or "i64", n))
  local y = i * step + first
  check_fits(op, dtype, n > 0 and { first, first + (n - 1) * step } or {})
  y = y:cast(dtype)
  return y
end

-- ---- powers ----

function ranges.vander(x, n, options)
  local op = "vander"
  core.check_tensor(op, x)
  core.options(op, options, "increasing")
  if #x.shape ~= 1 then
    core.fail("DIMS", op, ("a vector is needed, not %s"):format(core.describe(x)), nil, "of", x)
  end
  n = n == nil and #x or n
  check_count(op, n)
  local increasing = options ~= nil and options.increasing ~= nil and core.unless_false(op, options, "increasing")
  local columns = {}
  for k = 1, n do
    columns[k] = k == 1 and dc.ones(x) or columns[k - 1] * x
  end
  local y = n > 0 and dc.stack(columns, 2) or dc.zeros(("%s[%d, 0]"):format(x.dtype, #x))
  return n > 0 and not increasing and y:flip(2) or y
end

return core.entries(ranges)
