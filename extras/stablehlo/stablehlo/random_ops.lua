-- rng_bit_generator: the bits that XLA makes of a state (Salmon and others, "Parallel random numbers: as easy as 1, 2,
-- 3", SC 2011), which programs keep and files expect. The state is a key of 64 bits, then a counter of 64 (Threefry) or
-- 128 bits (Philox, which is the default on CPUs).

local dc = require "deepc"
local elements = require "deepc.stablehlo.elements"
local shapes = require "deepc.stablehlo.shapes"

local rows = {}

local function low_half(x)
  return x:cast "u32"
end

local function high_half(x)
  return x:shift_right(32):cast "u32"
end

local function joined(low, high)
  return low:cast "u64":bit_or(high:cast "u64":shift_left(32))
end

local function scalar(state, i)
  return state:slice { [1] = { i, i } }:reshape "[]"
end

-- ---- Threefry ------------------------------------------------------------------------------------

local rotations <const> = { { 13, 15, 26, 6 }, { 17, 29, 16, 24 } }
local parity <const> = 0x1BD11BDA

local function threefry(x, y, key)
  local keys = { low_half(key), high_half(key) }
  keys[3] = keys[1]:bit_xor(keys[2]):bit_xor(parity)
  x, y = x + keys[1], y + keys[2]
  for group = 0, 4 do
    for _, by in ipairs(rotations[group % 2 + 1]) do
      x = x + y
      y = x:bit_xor(y:shift_left(by):bit_or(y:shift_right(32 - by)))
    end
    x = x + keys[(group + 1) % 3 + 1]
    y = y + keys[(group + 2) % 3 + 1] + (group + 1)
  end
  return x, y
end

-- The counter from a state on, along the axes from the last to the first, those of one element left out.
local function counters(from, shape)
  local x, stride = from:expand(shape), 1
  for axis = #shape, 1, -1 do
    if shape[axis] > 1 then
      x = x + shapes.positions("i64", shape, axis - 1):cast "u64" * stride
      stride = stride * shape[axis]
    end
  end
  return x
end

-- The axis whose halves are made together: the first of even size, else the first of the largest.
local function split_axis(shape)
  local best = 1
  for axis, n in ipairs(shape) do
    if n % 2 == 0 then
      return axis
    elseif n > shape[best] then
      best = axis
    end
  end
  return best
end

local function threefry_32(key, counter, shape)
  local of = #shape == 0 and { 1 } or shape
  local axis, half = split_axis(of), table.pack(table.unpack(of))
  half[axis] = (of[axis] + 1) // 2
  table.insert(half, axis + 1, 1)
  local at = counters(counter, half)
  local x, y = threefry(low_half(at), high_half(at), key)
  if #shape == 0 then
    return x:reshape "[]", elements.count(half)
  end
  local both = table.pack(table.unpack(of))
  both[axis] = 2 * half[axis]
  local bits = shapes.reshape(dc.concat({ x, y }, axis + 1), both)
  return bits:slice { [axis] = { 1, of[axis] } }, elements.count(half)
end

local function threefry_bits(width, key, counter, shape)
  if width < 64 then
    return threefry_32(key, counter, shape)
  end
  local at = counters(counter, shape)
  return joined(threefry(low_half(at), high_half(at), key)), elements.count(shape)
end

-- ---- Philox --------------------------------------------------------------------------------------

local factors <const> = { 0xD2511F53, 0xCD9E8D57 }
local raises <const> = { 0x9E3779B9, 0xBB67AE85 }

local function philox(x, key)
  local keys = { low_half(key), high_half(key) }
  for _ = 1, 10 do
    local a, b = x[1]:cast "u64" * factors[1], x[3]:cast "u64" * factors[2]
    x = { high_half(b):bit_xor(x[2]):bit_xor(keys[1]), low_half(b), high_half(a):bit_xor(x[4]):bit_xor(keys[2]),
      low_half(a) }
    keys = { keys[1] + raises[1], keys[2] + raises[2] }
  end
  return x
end

-- A counter of two numbers with what is added to the lower one carried over.
local function added(low, high, n)
  local sum = low + n
  return sum, high + sum:lt(low):cast "u64"
end

local function side_by_side(list, n, shape)
  for i, x in ipairs(list) do
    list[i] = x:reshape(-1, 1)
  end
  return shapes.reshape(dc.concat(list, 2):reshape(-1):slice { [1] = { 1, n } }, shape)
end

local function philox_bits(width, key, low, high, shape)
  local n = elements.count(shape)
  local blocks = (n * (width == 64 and 2 or 1) + 3) // 4
  local numbers = dc.iota(("i64[%d]"):format(blocks)):cast "u64"
  local from, above = added(low:expand { blocks }, high:expand { blocks }, numbers)
  local x = philox({ low_half(from), high_half(from), low_half(above), high_half(above) }, key)
  if width == 64 then
    x = { joined(x[1], x[2]), joined(x[3], x[4]) }
  end
  return side_by_side(x, n, shape), blocks
end

-- ---- the operation -------------------------------------------------------------------------------

local widths = { i8 = 8, u8 = 8, i16 = 16, u16 = 16, f16 = 16, bf16 = 16, i32 = 32, u32 = 32, f32 = 32, i64 = 64,
  u64 = 64, f64 = 64 }

-- Bits of 32 or 64 as elements of a type; of shorter ones the lower bits.
local function as_type(bits, dtype)
  local width = widths[dtype]
  if width < 32 then
    bits = bits:cast("u" .. width)
  end
  return bits.dtype == dtype and bits or bits:bitcast(dtype)
end

local function generate(state, algorithm, width, shape)
  local key, low = scalar(state, 1), scalar(state, 2)
  local with_high = state.shape[1] == 3
  if algorithm == "THREE_FRY" then
    local bits, n = threefry_bits(width, key, low, shape)
    return bits, { key, low + n, with_high and scalar(state, 3) or nil }
  end
  local high = with_high and scalar(state, 3) or key -- as XLA has it
  local bits, n = philox_bits(width, key, low, high, shape)
  low, high = added(low, high, n)
  return bits, { key, low, with_high and high or nil }
end

rows["stablehlo.rng_bit_generator"] = function(o, state)
  local t = o.types[2]
  local algorithm = o.attributes.rng_algorithm
  local most, n = algorithm == "THREE_FRY" and 2 or 3, #state.shape == 1 and state.shape[1] or 0
  if state.dtype ~= "u64" or n < 2 or n > most or not widths[t.dtype] then
    o:fail("a state of %s, and %s of it, is not supported", elements.type_text(state), elements.type_text(t))
  elseif elements.count(t.shape) == 0 then
    return state, dc.zeros(o:type_text(2))
  end
  local bits, parts = generate(state, algorithm, widths[t.dtype], t.shape)
  for i, x in ipairs(parts) do
    parts[i] = x:reshape(1)
  end
  return dc.concat(parts, 1), as_type(bits, t.dtype)
end

return rows
