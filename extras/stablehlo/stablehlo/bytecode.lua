-- StableHLO's portable artifacts (MLIR bytecode of the dialect vhlo), and plain bytecode of stablehlo and func, as the
-- tables that the reader of text gives. Values are named "%0", "%1", ... through each function; the line of an op is
-- 0 and its column the byte where it begins.

local vhlo = require "deepc.stablehlo.vhlo"

local bytecode = {}

local unpack = string.unpack
local byte_at = string.byte

local magic = "ML\xEFR"
local newest_container = 6
local deepest = 100
local heaviest = 1 << 24 -- parts of one attribute, counted as often as a walk through it would meet them

-- What the sections of a file hold.
local section_ids = { strings = 0, dialects = 1, entries = 2, offsets = 3, code = 4, properties = 8 }

-- Parts of an operation that its mask announces.
local has = { attributes = 0x01, results = 0x02, operands = 0x04, successors = 0x08, regions = 0x10, use_orders = 0x20,
  properties = 0x40 }

-- Cursors -------------------------------------------------------------------------------------------------------------

-- A cursor is a range of the data: { file =, data =, pos =, stop =, depth = }.

local function fail(c, what, ...)
  error(("%s: byte %d: %s"):format(c.file.name, c.pos - 1, select("#", ...) > 0 and what:format(...) or what), 0)
end

local function left(c)
  return c.stop - c.pos + 1
end

-- Work that the bytes at hand do not pay for: what is shared by many is copied for each only so often.
local function spend(c, n)
  local file = c.file
  file.budget = file.budget - n
  if file.budget < 0 then
    fail(c, "the file unfolds to far more than its size")
  end
end

local function take(c)
  local pos = c.pos
  if pos > c.stop then
    fail(c, "the data end too early")
  end
  c.pos = pos + 1
  return byte_at(c.data, pos)
end

-- How many bytes follow the first one of a number: as many as zero bits stand at its low end.
local extra_bytes = { [0] = 8 }
for first = 1, 255 do
  local extra = 0
  while first >> extra & 1 == 0 do
    extra = extra + 1
  end
  extra_bytes[first] = extra
end

local number_codes = {}
for bytes = 1, 8 do
  number_codes[bytes] = "<I" .. bytes
end

local function long_varint(c, pos, extra)
  if extra >= left(c) then
    fail(c, "the data end within a number")
  end
  c.pos = pos + extra + 1
  if extra == 8 then
    return (unpack("<i8", c.data, pos + 1))
  end
  return (unpack(number_codes[extra + 1], c.data, pos)) >> (extra + 1)
end

-- A number of 64 bits, which may come out as negative: whoever means a count or an index checks it.
local function varint(c)
  local pos = c.pos
  if pos > c.stop then
    fail(c, "the data end where a number is due")
  end
  local first = byte_at(c.data, pos)
  if first & 1 == 1 then
    c.pos = pos + 1
    return first >> 1
  end
  return long_varint(c, pos, extra_bytes[first])
end

local function signed(c)
  local v = varint(c)
  return (v >> 1) ~ -(v & 1)
end

-- A count of things that take at least one byte each of what is left.
local function count(c, what)
  local n = varint(c)
  if n < 0 or n > left(c) then
    fail(c, "%s: %u are announced, and %d bytes are left", what, n, left(c))
  end
  return n
end

-- An index from 0 into a list of n things, as one from 1.
local function check_index(c, i, n, what)
  if i < 0 or i >= n then
    fail(c, "%s %u is used, and there are %d", what, i, n)
  end
  return i + 1
end

local function index(c, n, what)
  return check_index(c, varint(c), n, what)
end

-- The next bytes as a range of their own.
local function part(c, length)
  local p = { file = c.file, data = c.data, pos = c.pos, stop = c.pos + length - 1, depth = c.depth }
  c.pos = c.pos + length
  return p
end

local function list_of(c, what, one)
  local list = {}
  for i = 1, count(c, what) do
    list[i] = one(c)
  end
  return list
end

local function signed_list(c)
  return list_of(c, "a list of integers", signed)
end

local function string_at(c, i)
  return c.file.strings[check_index(c, i, #c.file.strings, "string")]
end

local function read_string(c)
  return string_at(c, varint(c))
end

-- Attributes and types, read when they are first used ---------------------------------------------------------------

local articles = { attribute = "an attribute", type = "a type" }

local readers -- by kind ("attribute", "type") and dialect: what reads an entry by its code

-- An entry that is written as text.
local function text_entry(c, kind)
  local text = c.data:sub(c.pos, c.stop):match("^[^\0]*")
  return kind == "type" and { kind = "other", text = text:gsub("^!?", "", 1) } or { opaque = text }
end

local function decode(c, kind, entry)
  if not entry.custom then
    return text_entry(c, kind)
  end
  local codes = readers[kind][entry.dialect]
  if not codes then
    local text = ("%s of the dialect %s"):format(kind, entry.dialect)
    return kind == "type" and { kind = "other", text = text } or { opaque = text }
  end
  local code = varint(c)
  local reader = codes[code]
  if not reader then
    fail(c, "%s code %u of the dialect %s is not known", kind, code, entry.dialect)
  end
  return reader(c)
end

local function load_entry(c, kind, entry)
  if entry.open then
    fail(c, "%s that contains itself", articles[kind])
  elseif c.depth >= deepest then
    fail(c, "%ss nest deeper than %d", kind, deepest)
  end
  local file = c.file
  local outer = file.weight
  file.weight = 1
  entry.open = true
  entry.value = decode({ file = file, data = c.data, pos = entry.pos, stop = entry.stop, depth = c.depth + 1 }, kind,
    entry)
  entry.open = nil
  entry.weight = file.weight
  if kind == "type" then
    file.known_types[entry.value] = true
  end
  file.weight = outer
end

local function resolve(c, kind, i)
  local entries = c.file[kind]
  local entry = entries[check_index(c, i, #entries, kind)]
  if not entry.weight then
    load_entry(c, kind, entry)
  end
  c.file.weight = c.file.weight + entry.weight
  if c.file.weight > heaviest then
    fail(c, "%s unfolds to far more than its size", articles[kind])
  end
  return entry.value
end

local function attribute(c)
  return resolve(c, "attribute", varint(c))
end

local function type_of(c)
  return resolve(c, "type", varint(c))
end

-- An attribute that may be absent: its index carries a flag.
local function optional_attribute(c)
  local v = varint(c)
  if v & 1 == 1 then
    return resolve(c, "attribute", v >> 1)
  end
  return nil
end

-- A list in whose place nothing is left out: lists of attributes, lists of types.
local function attributes_list(c)
  return list_of(c, "a list of attributes", attribute)
end

local function types_list(c)
  return list_of(c, "a list of types", type_of)
end

local function text_attribute(c, what)
  local v = attribute(c)
  if type(v) ~= "string" then
    fail(c, "%s is not a string", what)
  end
  return v
end

local function dictionary(c)
  local d = {}
  for _ = 1, count(c, "a dictionary") do
    local key = text_attribute(c, "a key of a dictionary")
    d[key] = attribute(c)
  end
  return d
end

local function unit()
  return true
end

-- Types ---------------------------------------------------------------------------------------------------------------

local dtypes = { f64 = "f64", f32 = "f32", f16 = "f16", bf16 = "bf16", f8E4M3FN = "f8e4m3fn", f8E5M2 = "f8e5m2",
  i64 = "i64", i32 = "i32", i16 = "i16", i8 = "i8", ui64 = "u64", ui32 = "u32", ui16 = "u16", ui8 = "u8", i1 = "bool",
  ["complex<f32>"] = "c64", ["complex<f64>"] = "c128" }

-- Types without parameters.
local function plain(text)
  local t = { kind = "other", text = text }
  return function()
    return t
  end
end

-- The text of a type within the text of another: short, so that no nest of types makes a long one.
local function element_text(c, t, longest)
  if t.kind ~= "other" or #t.text > longest then
    fail(c, "a type that is no element of a tensor")
  end
  return t.text
end

local function complex_type(c)
  return { kind = "other", text = ("complex<%s>"):format(element_text(c, type_of(c), 40)) }
end

-- A dimension: what is not known is the least integer, in the first versions -1.
local function dimension(c)
  local v = signed(c)
  if v < 0 and v ~= -1 and v ~= math.mininteger then
    fail(c, "a dimension of %d", v)
  end
  return v < 0 and -1 or v
end

local function tensor_type(c)
  local shape = list_of(c, "a shape", dimension)
  local element = element_text(c, type_of(c), 4000)
  return { kind = "tensor", element = element, dtype = dtypes[element], shape = shape }
end

-- The encoding of a tensor's type: the bounds of its dimensions, or what another dialect says.
local function encoded_tensor_type(c)
  local encoding = attribute(c)
  local t = tensor_type(c)
  t.encoding = encoding
  return t
end

local function unranked_type(c)
  return { kind = "other", text = ("tensor<*x%s>"):format(element_text(c, type_of(c), 40)) }
end

local function function_type(c)
  local inputs = types_list(c)
  return { kind = "function", inputs = inputs, results = types_list(c) }
end

local function tuple_type(c)
  return { kind = "tuple", types = types_list(c) }
end

local function token_type()
  return { kind = "token" }
end

local function future_type(c)
  types_list(c)
  return { kind = "other", text = "!stablehlo.future" }
end

local function buffer_type(c)
  local t = tensor_type(c)
  spend(c, #t.shape)
  local sizes = {}
  for i, size in ipairs(t.shape) do
    sizes[i] = (size < 0 and "?" or size) .. "x"
  end
  return { kind = "other", text = ("memref<%s%s>"):format(table.concat(sizes), t.element) }
end

local function double(c)
  return (unpack("<d", string.pack("<i8", signed(c))))
end

-- A float as MLIR prints it: short where that is exact.
local function float_text(v)
  local short = ("%.6e"):format(v)
  return tonumber(short) == v and short or ("%.17g"):format(v)
end

-- The storage of a quantized type: with its range, where that is not the whole one.
local function storage_text(text, is_signed, least, most)
  local bits = tonumber(text:match "^i(%d%d?)$") or 64
  local half = 1 << (bits - 1 & 63)
  text = is_signed and text or text:gsub("^i", "u")
  if least == (is_signed and -half or 0) and most == (is_signed and half or 2 * half) - 1 then
    return text
  end
  return ("%s<%d:%d>"):format(text, least, most)
end

local function quantized_head(c)
  local is_signed = varint(c) & 1 == 1
  local storage = element_text(c, type_of(c), 40)
  return is_signed, storage, element_text(c, type_of(c), 40)
end

local function quantized_type(c)
  local is_signed, storage, expressed = quantized_head(c)
  local scale, zero, least = double(c), signed(c), signed(c)
  storage = storage_text(storage, is_signed, least, signed(c))
  return { kind = "other",
    text = ("!quant.uniform<%s:%s, %s%s>"):format(storage, expressed, float_text(scale),
      zero ~= 0 and ":" .. zero or "") }
end

local function axis_quantized_type(c)
  local is_signed, storage, expressed = quantized_head(c)
  local axis, least = varint(c), signed(c)
  storage = storage_text(storage, is_signed, least, signed(c))
  local scales = list_of(c, "scales", double)
  local zeros = signed_list(c)
  local parts = {}
  for i, scale in ipairs(scales) do
    local zero = zeros[i] or 0
    parts[i] = float_text(scale) .. (zero ~= 0 and ":" .. zero or "")
  end
  return { kind = "other",
    text = ("!quant.uniform<%s:%s:%d, {%s}>"):format(storage, expressed, axis, table.concat(parts, ",")) }
end

local type_readers = { complex = complex_type, ["function"] = function_type, tensor = tensor_type,
  encoded_tensor = encoded_tensor_type, token = token_type, tuple = tuple_type, quantized = quantized_type,
  unranked_tensor = unranked_type, axis_quantized = axis_quantized_type, buffer = buffer_type, future = future_type }
local vhlo_types = {}
for code = 0, #vhlo.types do
  local name = vhlo.types[code]
  vhlo_types[code] = type_readers[name] or plain(name)
end

-- An integer of the builtin dialect: its width, and in the low two bits its sign.
local function builtin_integer(c)
  local v = varint(c)
  local sign = ({ [0] = "i", "si", "ui" })[v & 3] or fail(c, "a sign of an integer that is not known")
  return { kind = "other", text = sign .. (v >> 2) }
end

local builtin_types = { [0] = builtin_integer, [1] = plain "index", [2] = function_type, [3] = plain "bf16",
  [4] = plain "f16", [5] = plain "f32", [6] = plain "f64", [7] = plain "f80", [8] = plain "f128", [9] = complex_type,
  [12] = plain "none", [13] = tensor_type, [14] = encoded_tensor_type, [15] = tuple_type, [18] = unranked_type,
  [21] = plain "tf32", [22] = plain "f8E5M2", [23] = plain "f8E4M3", [24] = plain "f8E4M3FN",
  [25] = plain "f8E5M2FNUZ", [26] = plain "f8E4M3FNUZ", [27] = plain "f8E4M3B11FNUZ", [28] = plain "f8E3M4",
  [29] = plain "f4E2M1FN", [30] = plain "f6E2M3FN", [31] = plain "f6E3M2FN", [32] = plain "f8E8M0FNU" }

-- Numbers of an element type ------------------------------------------------------------------------------------------

local function integer_reader(code)
  return function(data, pos)
    return (unpack(code, data, pos))
  end
end

local function float_reader(code, pattern)
  return function(data, pos)
    local v = unpack(code, data, pos)
    return v == v and v or { bits = (unpack(pattern, data, pos)) }
  end
end

-- Floats that string.unpack does not know, by their bits of exponent and mantissa; `finite`: without infinities.
local function small_float_reader(code, exponent_bits, mantissa_bits, finite)
  local top, one = (1 << exponent_bits) - 1, 1 << mantissa_bits
  local bias = top >> 1
  return function(data, pos)
    local bits = unpack(code, data, pos)
    local e, m = bits >> mantissa_bits & top, bits & one - 1
    local v = e == 0 and m / one * 2.0 ^ (1 - bias) or (1 + m / one) * 2.0 ^ (e - bias)
    if e == top and finite and m == one - 1 or e == top and not finite and m > 0 then
      return { bits = bits }
    elseif e == top and not finite then
      v = math.huge
    end
    return bits >> (mantissa_bits + exponent_bits) & 1 == 1 and -v or v
  end
end

local function pattern_reader(data, pos)
  return { bits = byte_at(data, pos) }
end

-- Of an element type: its bytes in a constant, its bits, and what reads one.
local elements = {
  i1 = { 1, 1, function(data, pos)
    return byte_at(data, pos) ~= 0
  end },
  i2 = { 1, 2, integer_reader "<i1" }, i4 = { 1, 4, integer_reader "<i1" }, i8 = { 1, 8, integer_reader "<i1" },
  i16 = { 2, 16, integer_reader "<i2" }, i32 = { 4, 32, integer_reader "<i4" }, i64 = { 8, 64, integer_reader "<i8" },
  ui2 = { 1, 2, integer_reader "<I1" }, ui4 = { 1, 4, integer_reader "<I1" }, ui8 = { 1, 8, integer_reader "<I1" },
  ui16 = { 2, 16, integer_reader "<I2" }, ui32 = { 4, 32, integer_reader "<I4" },
  ui64 = { 8, 64, integer_reader "<i8" }, index = { 8, 64, integer_reader "<i8" },
  f64 = { 8, 64, float_reader("<d", "<i8") }, f32 = { 4, 32, float_reader("<f", "<I4") },
  f16 = { 2, 16, small_float_reader("<I2", 5, 10) }, bf16 = { 2, 16, small_float_reader("<I2", 8, 7) },
  f8E5M2 = { 1, 8, small_float_reader("<I1", 5, 2) }, f8E4M3FN = { 1, 8, small_float_reader("<I1", 4, 3, true) },
}
for name in ("f8E4M3FNUZ f8E5M2FNUZ f8E4M3B11FNUZ f8E4M3 f8E3M4 f4E2M1FN f6E2M3FN f6E3M2FN f8E8M0FNU"):gmatch "%S+" do
  elements[name] = { 1, 8, pattern_reader }
end
for name, size in pairs { ["complex<f32>"] = 4, ["complex<f64>"] = 8 } do
  local one = elements[size == 4 and "f32" or "f64"][3]
  elements[name] = { 2 * size, 16 * size, function(data, pos)
    return { one(data, pos), one(data, pos + size) }
  end }
end

-- Integers and floats are numbers of one byte where they have at most 8 bits, else zigzag numbers of their pattern.
local function scalar_bytes(c, row)
  if row[2] <= 8 then
    return string.char(take(c))
  end
  return string.pack("<i8", signed(c))
end

-- An integer of fewer bits than its byte has, with its sign.
local function narrow(v, element, bits)
  if bits >= 8 then
    return v
  end
  v = v & (1 << bits) - 1
  return element:sub(1, 1) == "i" and v >= 1 << bits - 1 and v - (1 << bits) or v
end

local function number(c)
  local element = element_text(c, type_of(c), 40)
  local row = elements[element]
  if not row or row[2] > 64 then
    fail(c, "a number of the type %s", element)
  end
  local v = row[3](scalar_bytes(c, row), 1)
  if math.type(v) == "integer" then
    return narrow(v, element, row[2])
  end
  return v
end

-- Constants -----------------------------------------------------------------------------------------------------------

local function volume(c, shape)
  local n = 1
  for _, size in ipairs(shape) do
    if size < 0 or size > 0 and n > (1 << 53) // size then
      fail(c, "a constant whose shape has no size")
    end
    n = n * size
  end
  return n
end

local eight_bits -- a byte of eight booleans -> a byte each

local function unpacked(data, n)
  if not eight_bits then
    eight_bits = {}
    for v = 0, 255 do
      local bits = {}
      for i = 0, 7 do
        bits[i + 1] = string.char(v >> i & 1)
      end
      eight_bits[string.char(v)] = table.concat(bits)
    end
  end
  return (data:gsub(".", eight_bits):sub(1, n))
end

-- Booleans: eight to a byte, or (in old files) a byte each, or one byte for all.
local function fill_booleans(c, out, n, data)
  if #data == 1 and data == "\xFF" and n > 0 then
    out.splat = true
  elseif #data == (n + 7) // 8 and #data ~= n then
    out.bytes = unpacked(data, n)
  elseif #data == 1 and n > 0 then
    out.splat = data ~= "\0"
  elseif #data == n and n > 0 then
    out.bytes = data
  elseif n == 0 and #data <= 1 then
    out.values = {}
  else
    fail(c, "a constant of %d booleans in %d bytes", n, #data)
  end
end

local function fill_elements(c, out, n, data)
  local row = elements[out.type.element]
  if n == 0 and (#data == 0 or row and #data == row[1]) then
    out.values = {}
  elseif not row then
    out.bytes = data
  elseif #data == row[1] then
    local v = row[3](data, 1)
    out.splat = math.type(v) == "integer" and narrow(v, out.type.element, row[2]) or v
  elseif #data // row[1] == n and #data % row[1] == 0 then
    out.bytes = data
  else
    fail(c, "a constant of %d elements of %s in %d bytes", n, out.type.element, #data)
  end
end

local function blob(c)
  local n = count(c, "a constant")
  local data = c.data:sub(c.pos, c.pos + n - 1)
  c.pos = c.pos + n
  return data
end

local function constant(c)
  local t = type_of(c)
  if t.kind ~= "tensor" then
    fail(c, "a constant that is no tensor")
  end
  local out = { dense = true, type = t }
  local data = blob(c)
  local fill = t.element == "i1" and fill_booleans or fill_elements
  fill(c, out, volume(c, t.shape), data)
  c.file.constants[out] = true
  return out
end

-- The elements of a constant as a list; each constant is unfolded once.
local function values_of(c, a)
  local lists = c.file.lists
  if lists[a] then
    return lists[a]
  end
  local n = volume(c, a.type.shape)
  spend(c, n)
  local list = a.values or {}
  local row = elements[a.type.element]
  for i = #list + 1, n do
    list[i] = a.splat
    if a.bytes then
      list[i] = row[3](a.bytes, (i - 1) * row[1] + 1)
    end
  end
  lists[a] = list
  return list
end

-- A list of pairs, from a constant of so many rows of two.
local function pairs_of(c, a)
  local lists = c.file.pairs
  if not lists[a] then
    local flat = values_of(c, a)
    local list = {}
    for i = 1, #flat, 2 do
      list[#list + 1] = { flat[i], flat[i + 1] }
    end
    lists[a] = list
  end
  return lists[a]
end

-- array<i64: ...> of the builtin dialect.
local function dense_array(c)
  local element = element_text(c, type_of(c), 40)
  local n = varint(c)
  local data = blob(c)
  local row = elements[element]
  if not row or n < 0 or #data // row[1] ~= n or #data % row[1] ~= 0 then
    fail(c, "an array of %u elements of %s in %d bytes", n, element, #data)
  end
  local list = {}
  for i = 1, n do
    list[i] = row[3](data, (i - 1) * row[1] + 1)
  end
  return list
end

-- Attributes ----------------------------------------------------------------------------------------------------------

-- Enumerations.
local enums = {}
for name, words in pairs(vhlo.enums) do
  enums[name] = function(c)
    local v = varint(c)
    return words[v] or fail(c, "%u is no %s", v, name)
  end
end

-- The interface of a custom call, which text writes as a number.
local function api_version(c)
  local v = varint(c)
  return v >= 0 and v <= 4 and v or fail(c, "%u is no version of an interface", v)
end

-- The mesh of replica groups: the symbol of one, or the mesh itself.
local function mesh_of(c)
  local v = attribute(c)
  return type(v) == "string" and { symbol = v } or v
end

-- Attributes of several fields: { name, reader, name, reader, ... }.
local function fields(row)
  return function(c)
    local t = {}
    for i = 1, #row, 2 do
      t[row[i]] = row[i + 1](c)
    end
    return t
  end
end

local function boolean(c)
  return varint(c) ~= 0
end

local function flag_byte(c)
  return take(c) ~= 0
end

local function type_attribute(c)
  return { type = type_of(c) }
end

-- An attribute after a number that says whether it is there; `flag` reads that number.
local function attribute_after(flag)
  return function(c)
    if flag(c) then
      return attribute(c)
    end
    return nil
  end
end

local alias = fields { "output_tuple_indices", signed_list, "operand_index", signed, "operand_tuple_indices",
  signed_list }

local attribute_readers = { array = attributes_list, boolean = boolean, api_version = api_version,
  dictionary = dictionary, float = number, integer = number, alias = alias, string = read_string, tensor = constant,
  type = type_attribute, bounds = fields { "bounds", signed_list },
  accuracy = fields { "atol", double, "rtol", double, "ulps", signed, "mode", attribute },
  sub_axis = fields { "pre_size", signed, "size", signed },
  axis = fields { "name", attribute, "sub_axis_info", attribute_after(boolean) },
  replica_groups = fields { "mesh", mesh_of, "axes", attribute },
  mesh_axis = fields { "name", attribute, "size", signed },
  mesh = fields { "axes", attribute, "device_ids", optional_attribute } }
local vhlo_attributes = {}
for code, name in ipairs(vhlo.attributes) do
  vhlo_attributes[code] = attribute_readers[name] or enums[name]
end

local function symbol(c)
  return { symbol = text_attribute(c, "the name of a symbol") }
end

local function nested_symbol(c)
  local s = symbol(c)
  attributes_list(c)
  return s
end

local function string_and_type(c)
  local s = read_string(c)
  type_of(c)
  return s
end

local function location_attribute()
  return { opaque = "a location" }
end

local function resource(c)
  type_of(c)
  return { opaque = "a dense resource" }
end

local function opaque(text)
  return function()
    return { opaque = text }
  end
end

local builtin_attributes = { [0] = attributes_list, dictionary, read_string, string_and_type, symbol, nested_symbol,
  type_attribute, unit, number, number, location_attribute, location_attribute, location_attribute, location_attribute,
  location_attribute, location_attribute, resource, dense_array, constant, opaque "a constant of strings",
  opaque "a sparse constant", opaque "a distinct attribute", location_attribute }

-- The letters of a convolution's dimensions: `first` and `second` stand where they say, 0, 1, ... in the others.
local function letters(c, spatial, first, at_first, second, at_second)
  local rank = #spatial + 2
  spend(c, rank)
  local list = {}
  local function set(at, letter)
    if math.type(at) ~= "integer" or list[check_index(c, at, rank, "dimension")] then
      fail(c, "a convolution whose dimensions are not all different")
    end
    list[at + 1] = letter
  end
  set(at_first, first)
  set(at_second, second)
  for i = 1, rank - 2 do
    set(spatial[i], i - 1)
  end
  return list
end

local function conv_dimensions(c)
  local t = {}
  for _, row in ipairs { { "lhs", "b", "f" }, { "rhs", "i", "o" }, { "out", "b", "f" } } do
    local at_first, at_second = signed(c), signed(c)
    t[row[1]] = letters(c, signed_list(c), row[2], at_first, row[3], at_second)
  end
  return t
end

local stablehlo_attributes = { fields { "handle", signed, "type", signed }, enums.direction, enums.compare_type,
  conv_dimensions,
  fields { "lhs_batching_dimensions", signed_list, "rhs_batching_dimensions", signed_list,
    "lhs_contracting_dimensions", signed_list, "rhs_contracting_dimensions", signed_list },
  enums.fft_type,
  fields { "offset_dims", signed_list, "collapsed_slice_dims", signed_list, "operand_batching_dims", signed_list,
    "start_indices_batching_dims", signed_list, "start_index_map", signed_list, "index_vector_dim", signed },
  enums.precision, enums.rng_algorithm, enums.rng_distribution,
  fields { "update_window_dims", signed_list, "inserted_window_dims", signed_list, "input_batching_dims", signed_list,
    "scatter_indices_batching_dims", signed_list, "scatter_dims_to_operand_dims", signed_list, "index_vector_dim",
    signed },
  enums.transpose, fields { "bounds", signed_list }, alias,
  fields { "lhs_precision_type", type_attribute, "rhs_precision_type", type_attribute, "accumulation_type",
    type_attribute, "lhs_component_count", signed, "rhs_component_count", signed, "num_primitive_operations", signed,
    "allow_imprecise_accumulation", flag_byte },
  enums.accuracy_mode, fields { "atol", double, "rtol", double, "ulps", signed, "mode", attribute },
  fields { "mesh", attribute, "axes", attributes_list }, fields { "pre_size", signed, "size", signed },
  fields { "name", read_string, "sub_axis_info", attribute_after(flag_byte) },
  fields { "name", read_string, "size", signed },
  fields { "axes", attribute, "device_ids", attribute_after(flag_byte) } }

readers = {
  attribute = { vhlo = vhlo_attributes, builtin = builtin_attributes, stablehlo = stablehlo_attributes },
  type = { vhlo = vhlo_types, builtin = builtin_types, stablehlo = { [0] = token_type, [1] = future_type } },
}

-- Locations -----------------------------------------------------------------------------------------------------------

local location

-- The name of a place; what is longer is cut, for many places may share a name.
local function place_name(c)
  return text_attribute(c, "a name of a location"):sub(1, 200)
end

local function place(c)
  local file = place_name(c)
  local line = varint(c)
  return ("%s:%u:%u"):format(file, line, varint(c))
end

-- A range in a file: how many numbers there are, the first two being the line and the column where it begins.
local function range_place(c)
  local file = place_name(c)
  local list = list_of(c, "the numbers of a place", varint)
  return list[1] and ("%s:%u:%u"):format(file, list[1], list[2] or 0) or file
end

local function fused(c)
  return count(c, "locations") > 0 and location(c) or nil
end

local function named(c)
  local name = place_name(c)
  local child = location(c)
  return child and ("%s (%s)"):format(name, child) or name
end

-- Of nested calls the innermost place is told.
local location_codes = { [10] = function(c)
  return location(c)
end, [11] = place, [12] = fused, [13] = fused, [14] = named, [22] = range_place }

-- The text of a location, or nil; nests deeper than others end in nil.
function location(c)
  local entries = c.file.attribute
  local entry = entries[index(c, #entries, "attribute")]
  if entry.where == nil then
    local p = { file = c.file, data = c.data, pos = entry.pos, stop = entry.stop, depth = c.depth + 1 }
    local reader = entry.custom and entry.dialect == "builtin" and c.depth < deepest and location_codes[varint(p)]
    local text = reader and reader(p)
    entry.where = text and text:sub(1, 300) or false
  end
  return entry.where or nil
end

-- Operations: the names of their attributes -------------------------------------------------------------------------

local vhlo_rows = vhlo.operations

-- The same of stablehlo's operations; a name with "?" may be absent, and then its index carries a flag.
local stablehlo_rows = {
  all_gather = "all_gather_dim channel_handle? replica_groups use_global_device_ids?",
  all_reduce = "channel_handle? replica_groups use_global_device_ids?",
  all_to_all = "channel_handle? concat_dimension replica_groups split_count split_dimension",
  batch_norm_grad = "epsilon feature_index",
  batch_norm_inference = "epsilon feature_index",
  batch_norm_training = "epsilon feature_index",
  broadcast_in_dim = "broadcast_dimensions",
  broadcast = "broadcast_sizes",
  cholesky = "lower?",
  collective_broadcast = "channel_handle? has_dynamic_root? replica_groups|channel_handle? replica_groups",
  collective_permute = "channel_handle? source_target_pairs",
  compare = "compare_type? comparison_direction",
  composite = "composite_attributes? decomposition name version?",
  concatenate = "dimension",
  constant = "value",
  convolution = "batch_group_count dimension_numbers feature_group_count lhs_dilation? padding? precision_config? "
    .. "rhs_dilation? window_reversal? window_strides?",
  ["cross-replica-sum"] = "replica_groups",
  custom_call = "api_version? backend_config? call_target_name called_computations? has_side_effect? operand_layouts? "
    .. "output_operand_aliases? result_layouts? result_tilings?|api_version? backend_config? call_target_name "
    .. "called_computations? has_side_effect? operand_layouts? output_operand_aliases? result_layouts?",
  dot = "precision_config?",
  dot_general = "algorithm? dot_dimension_numbers precision_config?|dot_dimension_numbers precision_config?",
  dynamic_broadcast_in_dim = "broadcast_dimensions known_expanding_dimensions? known_nonexpanding_dimensions?",
  dynamic_conv = "batch_group_count dimension_numbers feature_group_count lhs_dilation? precision_config? "
    .. "rhs_dilation? window_reversal? window_strides?",
  dynamic_gather = "dimension_numbers indices_are_sorted?",
  dynamic_iota = "iota_dimension",
  dynamic_slice = "slice_sizes",
  einsum = "einsum_config",
  fft = "fft_length fft_type",
  gather = "dimension_numbers indices_are_sorted? slice_sizes",
  get_dimension_size = "dimension",
  get_tuple_element = "index",
  infeed = "infeed_config? layout?",
  iota = "iota_dimension",
  map = "dimensions",
  outfeed = "outfeed_config?",
  pad = "edge_padding_high edge_padding_low interior_padding",
  recv = "channel_handle is_host_transfer? source_target_pairs?|channel_handle is_host_transfer?",
  reduce = "dimensions",
  reduce_precision = "exponent_bits mantissa_bits",
  reduce_scatter = "channel_handle? replica_groups scatter_dimension use_global_device_ids?",
  reduce_window = "base_dilations? padding? window_dilations? window_dimensions window_strides?",
  reverse = "dimensions",
  rng = "rng_distribution",
  rng_bit_generator = "rng_algorithm",
  scatter = "indices_are_sorted? scatter_dimension_numbers unique_indices?",
  select_and_scatter = "padding? window_dimensions? window_strides?",
  send = "channel_handle is_host_transfer? source_target_pairs?|channel_handle is_host_transfer?",
  set_dimension_size = "dimension",
  slice = "limit_indices start_indices strides",
  sort = "dimension? is_stable?",
  torch_index_select = "batch_dims dim",
  transpose = "permutation",
  triangular_solve = "left_side lower transpose_a unit_diagonal",
  unary_einsum = "einsum_config",
}
for name in ("cbrt cosine exponential exponential_minus_one log log_plus_one logistic rsqrt sine sqrt tan tanh")
  :gmatch "%S+" do
  stablehlo_rows[name] = "result_accuracy?"
end

local rows = {
  vhlo = vhlo_rows,
  stablehlo = stablehlo_rows,
  chlo = { top_k = "k", constant = "value", constant_like = "value" },
  builtin = { module = "sym_name? sym_visibility?" },
  func = {
    func = "arg_attrs? function_type no_inline? res_attrs? sym_name sym_visibility?"
      .. "|arg_attrs? function_type res_attrs? sym_name sym_visibility?",
    call = "arg_attrs? callee no_inline? res_attrs?|callee no_inline?|callee",
  },
}

-- The rows of an operation as lists of { name =, optional = }, by their lengths.
local function parsed_rows(text)
  local by_length = {}
  for row in text:gmatch "[^|]+" do
    local list = {}
    for name, mark in row:gmatch "([%w_]+)(%??)" do
      list[#list + 1] = { name = name, optional = mark == "?" }
    end
    by_length[#list] = list
  end
  return by_length
end

-- A version of a vhlo operation that is not known has the attributes of another one, if they are as many.
local function unknown_version(base)
  local texts = {}
  for version = 1, 9 do
    texts[#texts + 1] = vhlo_rows[base .. "_v" .. version]
  end
  return table.concat(texts, "|")
end

local in_func = { func = "func.func", call = "func.call" }

-- What is known of an operation: its name in the result, and the rows of its attributes.
local function described(dialect, name, registered)
  local known = rows[dialect] and rows[dialect][name]
  local op = { name = dialect .. "." .. name, base = name, exact = known ~= nil, registered = registered }
  if name == "" then
    op.name = dialect
  elseif dialect == "vhlo" then
    op.base = name:gsub("_v%d+$", "")
    op.name = in_func[op.base] or "stablehlo." .. op.base
    known = known or unknown_version(op.base)
  end
  op.vhlo = dialect == "vhlo"
  op.rows = parsed_rows(known or "")
  op.names = {}
  for _, row in pairs(op.rows) do
    for _, one in ipairs(row) do
      op.names[one.name] = true
    end
  end
  return op
end

-- Operations: their attributes in the form of the text ---------------------------------------------------------------

local function is(v)
  return function(_, x)
    return x == v
  end
end

local function empty(c, x)
  if type(x) ~= "table" then
    return x == ""
  elseif c.file.constants[x] then
    return x.values ~= nil and #x.values == 0
  end
  return next(x) == nil
end

local function all(v)
  local function same(c, list)
    if type(list) ~= "table" then
      return false
    end
    spend(c, #list)
    for _, x in ipairs(list) do
      if not (x == v or type(x) == "table" and x[1] == v and x[2] == v) then
        return false
      end
    end
    return next(list) == nil or list[1] ~= nil
  end
  return same
end

local function no_accuracy(_, x)
  return type(x) == "table" and x.atol == 0 and x.rtol == 0 and x.ulps == 0 and x.mode == "DEFAULT"
end

local channel_defaults = { channel_id = is(0), use_global_device_ids = is(false), has_dynamic_root = is(false) }
local conv_defaults = { window_strides = all(1), padding = all(0), lhs_dilation = all(1), rhs_dilation = all(1),
  window_reversal = all(false), precision_config = all "DEFAULT" }
local transfer_defaults = { is_host_transfer = is(false), source_target_pairs = empty }

-- What vhlo writes always, and text only where it is another value.
local defaults = {
  all_gather = channel_defaults, all_reduce = channel_defaults, reduce_scatter = channel_defaults,
  all_to_all = channel_defaults, collective_permute = channel_defaults, collective_broadcast = channel_defaults,
  collective_reduce = channel_defaults,
  cholesky = { lower = is(false) },
  compare = { compare_type = is "NOTYPE" },
  composite = { version = is(0), composite_attributes = empty },
  convolution = conv_defaults, dynamic_conv = conv_defaults,
  custom_call = { has_side_effect = is(false), backend_config = empty, api_version = is(1),
    called_computations = empty, output_operand_aliases = empty, result_tilings = empty },
  dot = { precision_config = all "DEFAULT" }, dot_general = { precision_config = all "DEFAULT" },
  dynamic_broadcast_in_dim = { known_expanding_dimensions = empty, known_nonexpanding_dimensions = empty },
  dynamic_gather = { indices_are_sorted = is(false) }, gather = { indices_are_sorted = is(false) },
  infeed = { infeed_config = empty, layout = empty }, outfeed = { outfeed_config = empty },
  recv = transfer_defaults, send = transfer_defaults,
  reduce_window = { window_strides = all(1), base_dilations = all(1), window_dilations = all(1), padding = all(0) },
  scatter = { indices_are_sorted = is(false), unique_indices = is(false) },
  select_and_scatter = { window_strides = all(1), padding = all(0) },
  sort = { dimension = is(-1), is_stable = is(false) },
}
for name in ("cbrt cosine exponential exponential_minus_one log log_plus_one logistic rsqrt sine sqrt tan tanh")
  :gmatch "%S+" do
  defaults[name] = { result_accuracy = no_accuracy }
end

-- A list of integers, empty if there is none.
local function integers(c, v, name)
  if v == nil then
    return {}
  elseif type(v) ~= "table" or c.file.constants[v] then
    fail(c, "%s is not a list of integers", name)
  end
  spend(c, #v)
  for _, x in ipairs(v) do
    if math.type(x) ~= "integer" then
      fail(c, "%s is not a list of integers", name)
    end
  end
  return v
end

-- Moves lists of integers from among the attributes into one table.
local function gathered(c, a, names)
  local t = {}
  for name in names:gmatch "%S+" do
    t[name], a[name] = integers(c, a[name], name), nil
  end
  return t
end

local function conv_side(c, a, side, first, second)
  local at_first, at_second = side .. "_" .. first .. "_dimension", side .. "_" .. second .. "_dimension"
  local spatial = side .. "_spatial_dimensions"
  local kernel = side == "kernel"
  local list = letters(c, integers(c, a[spatial], spatial), kernel and "i" or "b", a[at_first], kernel and "o" or "f",
    a[at_second])
  a[at_first], a[at_second], a[spatial] = nil, nil, nil
  return list
end

local rewrites = {} -- what in vhlo is written another way than in stablehlo

function rewrites.convolution(c, a)
  a.dimension_numbers = { lhs = conv_side(c, a, "input", "batch", "feature"),
    rhs = conv_side(c, a, "kernel", "input_feature", "output_feature"),
    out = conv_side(c, a, "output", "batch", "feature") }
end

local function channel(a, type)
  if a.channel_id ~= nil then
    a.channel_handle = { handle = a.channel_id, type = type }
    a.channel_id = nil
  end
end

for name in ("all_gather all_reduce reduce_scatter all_to_all collective_permute collective_broadcast "
  .. "collective_reduce"):gmatch "%S+" do
  rewrites[name] = function(_, a)
    channel(a, 0)
  end
end

function rewrites.send(_, a)
  channel(a, a.channel_type)
  a.channel_type = nil
end

rewrites.recv = rewrites.send

local algorithm_names = { "lhs_precision_type", "rhs_precision_type", "accumulation_type", "lhs_component_count",
  "rhs_component_count", "num_primitive_operations", "allow_imprecise_accumulation" }

function rewrites.dot_general(c, a)
  a.dot_dimension_numbers = gathered(c, a, "lhs_batching_dimensions rhs_batching_dimensions "
    .. "lhs_contracting_dimensions rhs_contracting_dimensions")
  local algorithm = {}
  for _, name in ipairs(algorithm_names) do
    algorithm[name], a[name] = a[name], nil
  end
  if math.type(algorithm.lhs_component_count) == "integer" then
    a.algorithm = algorithm
  end
end

function rewrites.gather(c, a)
  local t = gathered(c, a, "offset_dims collapsed_slice_dims operand_batching_dims start_indices_batching_dims "
    .. "start_index_map")
  t.index_vector_dim, a.index_vector_dim = a.index_vector_dim, nil
  a.dimension_numbers = t
end

function rewrites.scatter(c, a)
  local t = gathered(c, a, "update_window_dims inserted_window_dims input_batching_dims "
    .. "scatter_indices_batching_dims scatter_dims_to_operand_dims")
  t.index_vector_dim, a.index_vector_dim = a.index_vector_dim, nil
  a.scatter_dimension_numbers = t
end

local function as_symbol(v)
  return type(v) == "string" and { symbol = v } or v
end

function rewrites.call(_, a)
  a.callee = as_symbol(a.callee)
end

function rewrites.composite(_, a)
  a.decomposition = as_symbol(a.decomposition)
end

function rewrites.custom_call(c, a)
  if type(a.called_computations) == "table" then
    spend(c, #a.called_computations)
    local list = {}
    for i, v in ipairs(a.called_computations) do
      list[i] = as_symbol(v)
    end
    a.called_computations = list
  end
  if empty(c, a.operand_layouts) and empty(c, a.result_layouts) then
    a.operand_layouts, a.result_layouts = nil, nil
  end
end

function rewrites.dynamic_conv(c, a)
  a.padding = nil -- an attribute of the first version, of which an operand says the same
  rewrites.convolution(c, a)
end

rewrites.dynamic_gather = rewrites.gather

-- Lists of integers and booleans are constants in the file; so is the padding, as pairs.
local function list_form(c, name, v)
  if not c.file.constants[v] then
    return v
  end
  local shape, element = v.type.shape, v.type.element
  if not elements[element] or not element:find("^u?i%d+$") then
    return v
  elseif #shape == 1 then
    return values_of(c, v)
  elseif name == "padding" and #shape == 2 and (shape[2] == 2 or shape[1] == 0) then
    return pairs_of(c, v)
  end
  return v
end

local function in_text_form(c, op, a)
  if op.name == "stablehlo.constant" then
    if not c.file.constants[a.value] then
      fail(c, "a constant without a value")
    end
  else
    for name in pairs(op.names) do
      a[name] = list_form(c, name, a[name])
    end
  end
  for name, is_default in pairs(defaults[op.base] or {}) do
    if a[name] ~= nil and is_default(c, a[name]) then
      a[name] = nil
    end
  end
  if op.vhlo and rewrites[op.base] then
    rewrites[op.base](c, a)
  end
end

-- Operations: their records -------------------------------------------------------------------------------------------

local function merge(c, into, d)
  if type(d) ~= "table" then
    fail(c, "the attributes of an operation are not a dictionary")
  end
  for name, v in pairs(d) do
    if type(name) ~= "string" then
      fail(c, "the attributes of an operation are not a dictionary")
    end
    spend(c, 1)
    into[name] = v
  end
end

local function property_numbers(p)
  local list = {}
  while p.pos <= p.stop do
    list[#list + 1] = varint(p)
  end
  return list
end

local function property(c, v, optional)
  if not optional then
    return resolve(c, "attribute", v)
  elseif v & 1 == 1 then
    return resolve(c, "attribute", v >> 1)
  end
  return nil
end

-- What is known of no row: of vhlo the attributes without their names, of other dialects not even where they are.
local function unnamed_properties(c, op, numbers)
  if not op.vhlo then
    return { opaque = "properties of " .. op.name }
  end
  local list = {}
  for i, v in ipairs(numbers) do
    list[i] = resolve(c, "attribute", v)
  end
  return list
end

-- The properties of an operation are the attributes of its row, in that order.
local function read_properties(c, op, a)
  local file = c.file
  local range = file.properties[index(c, #file.properties, "property")]
  local numbers = property_numbers { file = file, data = c.data, pos = range[1], stop = range[2], depth = 0 }
  spend(c, #numbers)
  local row = op.rows[#numbers]
  if not row and op.exact then
    fail(c, "%s has %d properties, which is not their number", op.name, #numbers)
  elseif not row then
    a.properties = unnamed_properties(c, op, numbers)
    return
  end
  for i, v in ipairs(numbers) do
    a[row[i].name] = property(c, v, row[i].optional)
  end
end

-- Orders of uses, which say nothing about the program.
local function skip_use_orders(c, values)
  local n = 1
  if values ~= 1 then
    n = count(c, "orders of uses")
  end
  for _ = 1, n do
    if values ~= 1 then
      varint(c)
    end
    local uses = varint(c) >> 1
    if uses < 0 or uses > left(c) then
      fail(c, "%u uses are announced, and %d bytes are left", uses, left(c))
    end
    for _ = 1, uses do
      varint(c)
    end
  end
end

-- The next value of a scope: its name.
local function define(c, scope, t)
  local id = scope.next
  if id >= scope.size then
    fail(c, "a value beyond the %d that are announced", scope.size)
  end
  local file = c.file
  local name = "%" .. file.number
  file.number = file.number + 1
  scope.next = id + 1
  scope.names[id], scope.types[id] = name, t
  return name
end

local function read_operands(c, op, scope)
  for i = 1, count(c, "operands") do
    local id = varint(c)
    local name = scope.names[id]
    if not name then
      fail(c, "value %u is used and not defined", id)
    end
    op.operands[i], op.operand_types[i] = name, scope.types[id]
  end
end

local function section(c)
  local id = take(c)
  local length = varint(c)
  if id & 0x80 ~= 0 then
    local alignment = varint(c)
    if alignment <= 0 or alignment & alignment - 1 ~= 0 or alignment > 1 << 30 then
      fail(c, "an alignment of %u", alignment)
    end
    c.pos = c.pos + -(c.pos - 1) % alignment
  end
  if length < 0 or length > left(c) then
    fail(c, "a section of %u bytes, and %d are left", length, left(c))
  end
  return id & 0x7F, part(c, length)
end

local read_op

local function block_argument(c, scope)
  local t
  local located = true
  if c.file.version >= 4 then
    local v = varint(c)
    located = v & 1 == 1
    t = resolve(c, "type", v >> 1)
  else
    t = type_of(c)
  end
  if located then
    index(c, #c.file.attribute, "attribute")
  end
  return { name = define(c, scope, t), type = t }
end

local function block_arguments(c, scope, region)
  for i = 1, count(c, "arguments of a block") do
    region.args[i] = block_argument(c, scope)
  end
  if c.file.version >= 3 and take(c) ~= 0 then
    skip_use_orders(c, #region.args)
  end
end

local function read_block(c, scope, region, parent, depth)
  local v = varint(c)
  local ops = v >> 1
  if ops > left(c) then
    fail(c, "%u operations are announced, and %d bytes are left", ops, left(c))
  end
  if v & 1 == 1 then
    block_arguments(c, scope, region)
  end
  for i = 1, ops do
    c.file.weight = 0
    region.ops[i] = read_op(c, scope, parent, depth)
  end
end

-- A region of one block; its values are those after the ones of the regions around it.
local function read_region(c, scope, parent, depth)
  local region = { args = {}, ops = {} }
  local blocks = varint(c)
  if blocks == 0 then
    region.absent = true
    return region
  elseif blocks ~= 1 then
    fail(c, "a region of %u blocks", blocks)
  end
  local first, after = scope.size, scope.next
  scope.size = first + count(c, "values of a region")
  scope.next = first
  read_block(c, scope, region, parent, depth)
  for id = first, scope.next - 1 do
    scope.names[id], scope.types[id] = nil, nil
  end
  scope.size, scope.next = first, after
  return region
end

local function new_scope()
  return { names = {}, types = {}, size = 0, next = 0 }
end

-- What is isolated from the values around it has, since version 2, a section of its own.
local function isolated_part(c)
  if c.file.version < 2 then
    return c
  end
  local id, range = section(c)
  if id ~= section_ids.code then
    fail(c, "section %d where a region is due", id)
  end
  return range
end

local function read_regions(c, op, scope, known, depth)
  local v = varint(c)
  local n = v >> 1
  if depth >= deepest then
    fail(c, "regions nest deeper than %d", deepest)
  elseif n > left(c) then
    fail(c, "%u regions are announced, and %d bytes are left", n, left(c))
  end
  if v & 1 == 1 then
    scope, c = new_scope(), isolated_part(c)
  end
  for i = 1, n do
    op.regions[i] = read_region(c, scope, known, depth + 1)
  end
end

local function read_results(c, op)
  for i = 1, count(c, "results") do
    op.types[i] = type_of(c)
  end
end

local function op_head(c, known, mask, op)
  op.where = location(c)
  if mask & has.attributes ~= 0 then
    merge(c, op.attributes, attribute(c))
  end
  if mask & has.properties ~= 0 and known.registered then
    read_properties(c, known, op.attributes)
  elseif mask & has.properties ~= 0 then
    merge(c, op.attributes, attribute(c))
  end
  if mask & has.results ~= 0 then
    read_results(c, op)
  end
end

local function is_function(known)
  return known.name == "func.func"
end

local function op_tail(c, known, mask, op, scope, depth)
  if mask & has.successors ~= 0 then
    fail(c, "%s has successors", op.name)
  elseif mask & has.use_orders ~= 0 then
    skip_use_orders(c, #op.types)
  end
  for i, t in ipairs(op.types) do
    op.results[i] = define(c, scope, t)
  end
  if is_function(known) then
    c.file.number = 0
  end
  if mask & has.regions ~= 0 then
    read_regions(c, op, scope, known, depth)
  end
end

-- One operation within the regions of `parent`.
function read_op(c, scope, parent, depth)
  local start = c.pos
  local ops = c.file.ops
  local known = ops[index(c, #ops, "operation")]
  local mask = take(c)
  local op = { name = known.name, operands = {}, operand_types = {}, results = {}, types = {}, attributes = {},
    regions = {}, line = 0, column = start - 1 }
  if known.vhlo and known.base == "return" and parent and is_function(parent) then
    op.name = "func.return"
  end
  op_head(c, known, mask, op)
  if mask & has.operands ~= 0 then
    read_operands(c, op, scope)
  end
  op_tail(c, known, mask, op, scope, depth)
  in_text_form(c, known, op.attributes)
  return op
end

-- The module ----------------------------------------------------------------------------------------------------------

local function part_attributes(list, i)
  local a = type(list) == "table" and list[i]
  return type(a) == "table" and a or {}
end

local function function_args(c, op, inputs)
  local region = op.regions[1]
  local body = region and not region.absent and region or nil
  if body and #body.args ~= #inputs then
    fail(c, "a function of %d arguments whose body has %d", #inputs, #body.args)
  end
  local args = {}
  for i, t in ipairs(inputs) do
    args[i] = { name = body and body.args[i].name or "%" .. (i - 1), type = t,
      attributes = part_attributes(op.attributes.arg_attrs, i) }
  end
  return args, body
end

local function to_function(c, op)
  local a = op.attributes
  local t = type(a.function_type) == "table" and a.function_type.type
  if type(a.sym_name) ~= "string" or not c.file.known_types[t] or t.kind ~= "function" then
    fail(c, "a function without a name or a type")
  end
  spend(c, #t.inputs + #t.results)
  local f = { name = a.sym_name, results = {}, private = a.sym_visibility == "private", line = op.line,
    column = op.column }
  f.args, f.body = function_args(c, op, t.inputs)
  for i, result in ipairs(t.results) do
    f.results[i] = { type = result, attributes = part_attributes(a.res_attrs, i) }
  end
  return f
end

local function add_function(c, module, op)
  local f = to_function(c, op)
  if module.functions[f.name] then
    fail(c, "two functions named @%s", f.name)
  end
  module.functions[f.name] = f
  module.order[#module.order + 1] = f.name
end

-- What stands beside the functions (meshes of shardings) is no part of the program.
local function add_ops(c, module, ops)
  for _, op in ipairs(ops) do
    if op.name == "func.func" then
      add_function(c, module, op)
    elseif op.name == "builtin.module" then
      fail(c, "a module within a module")
    end
  end
end

local function to_module(c, ops)
  local module = { functions = {}, order = {}, attributes = {} }
  local outer = ops[1]
  if #ops == 1 and outer.name == "builtin.module" then
    module.attributes, module.symbol = outer.attributes, outer.attributes.sym_name
    add_ops(c, module, outer.regions[1] and outer.regions[1].ops or {})
  else
    add_ops(c, module, ops)
  end
  return module
end

-- Sections ------------------------------------------------------------------------------------------------------------

-- Strings: the lengths of all from the last to the first, each with its final zero, then their bytes.
local function read_strings(c)
  local n = count(c, "strings")
  local lengths = {}
  for i = 1, n do
    lengths[i] = varint(c)
  end
  local strings = {}
  for i = 1, n do
    local length = lengths[n + 1 - i]
    if length < 1 or length > left(c) then
      fail(c, "a string of %u bytes, and %d are left", length, left(c))
    end
    strings[i] = c.data:sub(c.pos, c.pos + length - 2)
    c.pos = c.pos + length
  end
  return strings
end

-- A name of a dialect or an operation: short, for it is copied wherever it is used.
local function short_string(c, i)
  local s = string_at(c, i)
  if #s > 200 then
    fail(c, "a name of %d characters", #s)
  end
  return s
end

local function read_dialect(c)
  local v = varint(c)
  if c.file.version < 1 then
    return short_string(c, v)
  end
  local name = short_string(c, v >> 1)
  if v & 1 == 1 then
    section(c)
  end
  return name
end

-- Since version 5 a name carries a flag: whether whoever wrote the file knew the operation.
local function read_op_name(c, dialect)
  local file = c.file
  local v = varint(c)
  local name = short_string(c, file.version < 5 and v or v >> 1)
  local registered = file.version < 5 or v & 1 == 1
  local key = ("%s.%s %s"):format(dialect, name, registered)
  file.known_ops[key] = file.known_ops[key] or described(dialect, name, registered)
  return file.known_ops[key]
end

local function read_dialects(c)
  local file = c.file
  file.dialects = list_of(c, "dialects", read_dialect)
  if file.version >= 4 then
    varint(c)
  end
  file.ops = {}
  while c.pos <= c.stop do
    local dialect = file.dialects[index(c, #file.dialects, "dialect")]
    for _ = 1, count(c, "operations") do
      file.ops[#file.ops + 1] = read_op_name(c, dialect)
    end
  end
end

-- The place of an entry after those before it, which `data` has left behind.
local function read_entry(c, data, dialect)
  local v = varint(c)
  local size = v >> 1
  if size > left(data) then
    fail(c, "an attribute of %u bytes, and %d are left", size, left(data))
  end
  local entry = { pos = data.pos, stop = data.pos + size - 1, dialect = dialect, custom = v & 1 == 1 }
  data.pos = data.pos + size
  return entry
end

-- Groups of entries of one dialect each, until there are n.
local function read_entries(c, n, data)
  local dialects = c.file.dialects
  local entries = {}
  while #entries < n do
    local dialect = dialects[index(c, #dialects, "dialect")]
    local members = count(c, "attributes")
    if members > n - #entries then
      fail(c, "a group of %d attributes where %d are due", members, n - #entries)
    end
    for _ = 1, members do
      entries[#entries + 1] = read_entry(c, data, dialect)
    end
  end
  return entries
end

local function read_offsets(c, data)
  local n, types = count(c, "attributes"), count(c, "types")
  c.file.attribute = read_entries(c, n, data)
  c.file.type = read_entries(c, types, data)
end

local function read_property_ranges(c)
  local ranges = {}
  for i = 1, count(c, "properties") do
    local size = count(c, "a property")
    ranges[i] = { c.pos, c.pos + size - 1 }
    c.pos = c.pos + size
  end
  return ranges
end

local function read_sections(c)
  local sections = {}
  while c.pos <= c.stop do
    local id, range = section(c)
    if sections[id] then
      fail(c, "section %d is there twice", id)
    end
    sections[id] = range
  end
  for id = section_ids.strings, section_ids.code do
    if not sections[id] then
      fail(c, "section %d is missing", id)
    end
  end
  return sections
end

local function read_header(c)
  if not bytecode.is(c.data) then
    fail(c, "this is not MLIR bytecode")
  end
  c.pos = #magic + 1
  c.file.version = varint(c)
  if c.file.version < 0 or c.file.version > newest_container then
    fail(c, "bytecode of version %u; known are 0 to %d", c.file.version, newest_container)
  end
  local zero = c.data:find("\0", c.pos, true)
  if not zero then
    fail(c, "the name of the producer has no end")
  end
  c.file.producer = c.data:sub(c.pos, zero - 1)
  c.pos = zero + 1
end

local function read_code(c)
  local region = { args = {}, ops = {} }
  read_block(c, new_scope(), region, nil, 0)
  return region.ops
end

---Whether data are MLIR bytecode.
---@param data string
---@return boolean
function bytecode.is(data)
  return data:sub(1, #magic) == magic
end

---The module that MLIR bytecode holds; errors are strings "NAME: byte 123: what".
---@param data string
---@param name? string name of the file, for errors
---@return table
function bytecode.read(data, name)
  local file = { name = name or "bytecode", weight = 0, number = 0, budget = 16 * #data + 100000, lists = {},
    pairs = {}, properties = {}, constants = {}, known_types = {}, known_ops = {} }
  local c = { file = file, data = data, pos = 1, stop = #data, depth = 0 }
  read_header(c)
  local sections = read_sections(c)
  file.strings = read_strings(sections[section_ids.strings])
  if sections[section_ids.properties] then
    file.properties = read_property_ranges(sections[section_ids.properties])
  end
  read_dialects(sections[section_ids.dialects])
  read_offsets(sections[section_ids.offsets], sections[section_ids.entries])
  local ops = read_code(sections[section_ids.code])
  return to_module(c, ops)
end

return bytecode
