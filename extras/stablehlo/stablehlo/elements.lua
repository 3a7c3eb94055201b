-- Elements of StableHLO's constants as tensors: lists of numbers, of patterns in their place, raw bytes, one for all.

local dc = require "deepc"

local elements = {}

local integer_codes = { i8 = "<i1", i16 = "<i2", i32 = "<i4", i64 = "<i8", u8 = "<i1", u16 = "<i2", u32 = "<i4",
  u64 = "<i8" }
local part_of = { c64 = "f32", c128 = "f64" }

function elements.type_text(t)
  return ("%s[%s]"):format(t.dtype, table.concat(t.shape, ", "))
end

local function count(shape)
  local n = 1
  for _, size in ipairs(shape) do
    n = n * size
  end
  return n
end

-- An integer with so many bits of it, as string.pack wants a signed one.
local function wrapped(v, bytes)
  if bytes == 8 then
    return v
  end
  local bits = 8 * bytes
  v = v & ((1 << bits) - 1)
  return v >= 1 << (bits - 1) and v - (1 << bits) or v
end

local layouts = { f16 = { 5, 10 }, f8e5m2 = { 5, 2 }, f8e4m3fn = { 4, 3 } }

-- The number that a pattern of a short float means; f8e4m3fn has no infinities, and one NaN of each sign.
local function short_number(dtype, bits)
  local exponents, fraction = table.unpack(layouts[dtype])
  local top = (1 << exponents) - 1
  local e, m = bits >> fraction & top, bits & ((1 << fraction) - 1)
  local sign = bits >> (exponents + fraction) & 1 == 1 and -1 or 1
  if dtype == "f8e4m3fn" and e == top and m == 7 or dtype ~= "f8e4m3fn" and e == top and m > 0 then
    return 0 / 0
  elseif dtype ~= "f8e4m3fn" and e == top then
    return sign * math.huge
  end
  local bias = (1 << (exponents - 1)) - 1
  local whole = e == 0 and m or m + (1 << fraction)
  return sign * whole * 2.0 ^ (math.max(e, 1) - bias - fraction)
end

-- The number that a pattern of a float means.
local function number_of(dtype, v)
  if type(v) ~= "table" then
    return v
  elseif dtype == "f64" then
    return (string.unpack("<d", string.pack("<i8", v.bits)))
  elseif layouts[dtype] then
    return short_number(dtype, v.bits)
  end
  local bits = dtype == "bf16" and v.bits << 16 or v.bits
  return (string.unpack("<f", string.pack("<I4", bits & 0xFFFFFFFF)))
end

-- The bytes of one element, and of which dtype they are: what is shorter than f32 is rounded once, from f64.
local function packer(dtype)
  local code = integer_codes[dtype]
  if code then
    local size = string.packsize(code)
    return function(v)
      return string.pack(code, wrapped(type(v) == "table" and v.bits or math.tointeger(v), size))
    end, dtype
  elseif dtype == "bool" then
    return function(v)
      return v ~= 0 and v ~= false and "\1" or "\0"
    end, dtype
  elseif part_of[dtype] then
    local part = part_of[dtype]
    local format = dtype == "c64" and "<ff" or "<dd"
    return function(v)
      return string.pack(format, number_of(part, v[1]), number_of(part, v[2]))
    end, dtype
  elseif dtype == "f32" then
    return function(v)
      return type(v) == "table" and string.pack("<I4", v.bits & 0xFFFFFFFF) or string.pack("<f", v)
    end, dtype
  end
  return function(v)
    return string.pack("<d", number_of(dtype, v))
  end, "f64"
end

local function bytes_of(values, dtype)
  local pack, as = packer(dtype)
  local parts = {}
  for i, v in ipairs(values) do
    parts[i] = pack(v)
  end
  return table.concat(parts), as
end

local function is_complex(dtype)
  return part_of[dtype] ~= nil
end

---The number that all elements of a constant are, where Lua has it; else nil.
function elements.number(a)
  local t = a.type
  local v = a.splat
  if v == nil or is_complex(t.dtype) or t.dtype == "u64" then
    return nil
  elseif type(v) == "boolean" then
    return v
  elseif t.dtype == "bool" then
    return v ~= 0
  elseif integer_codes[t.dtype] then
    v = type(v) == "table" and v.bits or v
    return t.dtype:sub(1, 1) == "u" and v or wrapped(v, string.packsize(integer_codes[t.dtype]))
  end
  return number_of(t.dtype, v) + 0.0
end

---The elements of a short list of integers, which sizes are, as Lua numbers; else nil.
function elements.list(a)
  local t = a.type
  if #t.shape ~= 1 or t.shape[1] > 100 or not integer_codes[t.dtype] then
    return nil
  elseif a.splat ~= nil then
    local out = {}
    for i = 1, t.shape[1] do
      out[i] = a.splat
    end
    return out
  elseif a.bytes then
    local code, out = integer_codes[t.dtype], {}
    for i = 1, t.shape[1] do
      out[i] = code:unpack(a.bytes, (i - 1) * string.packsize(code) + 1)
    end
    return out
  end
  return a.values
end

local function from_bytes(bytes, dtype, t)
  local as = { dtype = dtype, shape = t.shape }
  local x = dc.frombytes(bytes, elements.type_text(as))
  return dtype == t.dtype and x or x:cast(t.dtype)
end

---A tensor of a constant: { dense = true, type =, splat | values | bytes }.
function elements.tensor(a)
  local t = a.type
  local n = count(t.shape)
  if a.bytes then
    return from_bytes(a.bytes, t.dtype, t)
  elseif a.splat == nil or n == 0 then
    local bytes, as = bytes_of(a.values or {}, t.dtype)
    return from_bytes(bytes, as, t)
  end
  local v = elements.number(a)
  if v ~= nil then
    return dc.full(elements.type_text(t), v)
  end
  local bytes, as = bytes_of({ a.splat }, t.dtype)
  local one = from_bytes(bytes, as, { dtype = t.dtype, shape = {} })
  return #t.shape == 0 and one or one:expand(table.unpack(t.shape))
end

elements.count = count
elements.is_complex = is_complex

return elements
