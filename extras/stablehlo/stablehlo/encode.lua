-- Modules, as write.lua gives them, as portable artifacts: MLIR bytecode (container of version 6) of the dialect vhlo
-- of StableHLO 1.1.0, the first one whose gather and scatter have batches. What reads 1.1.0 or newer reads them.

local attributes = require "deepc.stablehlo.attributes"
local vhlo = require "deepc.stablehlo.vhlo"

local encode = {}

local pack = string.pack

local magic <const>, container <const>, producer <const> = "ML\xEFR", 6, "StableHLO_v1.1.0"
local section_ids = { strings = 0, dialects = 1, entries = 2, offsets = 3, code = 4, properties = 8 }
local dialects <const> = { "builtin", "vhlo" }
local BUILTIN <const>, VHLO <const> = 0, 1

-- What the dialect builtin calls its attributes: texts and places.
local builtin <const> = { string = 2, line = 11, name = 14, unknown = 15 }

-- Versions of operations other than the first.
local versions <const> = { gather = 2, scatter = 2 }

-- Parts of an operation that its mask announces.
local has <const> = { results = 0x02, operands = 0x04, regions = 0x10, properties = 0x40 }

-- ---- numbers -------------------------------------------------------------------------------------

-- A number of 64 bits: as many zero bits at the low end of the first byte as bytes follow it.
local function varint(v)
  for n = 1, 8 do
    if v >= 0 and v < 1 << 7 * n then
      return pack("<I" .. n, v << n | 1 << n - 1)
    end
  end
  return "\0" .. pack("<i8", v)
end

local function signed(v)
  return varint(v << 1 ~ (v < 0 and -1 or 0))
end

-- ---- tables of the file --------------------------------------------------------------------------

-- A list without duplicates: the numbers of its entries, from 0, by key.
local function new_list()
  return { number = {} }
end

-- The number of the entry of this key, which make() makes where it is new.
local function number_of(list, key, make)
  local n = list.number[key]
  if not n then
    local entry = make and make() or key
    n = #list
    list[n + 1], list.number[key] = entry, n
  end
  return n
end

local function string_number(e, s)
  return number_of(e.strings, s)
end

-- An attribute or a type by its bytes: { dialect, bytes }.
local function entry(list, dialect, bytes)
  return number_of(list, dialect .. bytes, function()
    return { dialect, bytes }
  end)
end

-- ---- types ---------------------------------------------------------------------------------------

local type_codes = {}
for code = 0, #vhlo.types do
  type_codes[vhlo.types[code]] = code
end

local type_number

local function numbers(list, f, e)
  local parts = { varint(#list) }
  for i, v in ipairs(list) do
    parts[i + 1] = varint(f(e, v))
  end
  return table.concat(parts)
end

local function element_number(e, element)
  local part = element:match "^complex<(.*)>$"
  if part then
    return entry(e.types, VHLO, varint(type_codes.complex) .. varint(element_number(e, part)))
  end
  return entry(e.types, VHLO, varint(type_codes[element]))
end

function type_number(e, t)
  if t.kind == "function" then
    return entry(e.types, VHLO, varint(type_codes["function"]) .. numbers(t.inputs, type_number, e)
      .. numbers(t.results, type_number, e))
  end
  local parts = { varint(type_codes.tensor), varint(#t.shape) }
  for _, n in ipairs(t.shape) do
    parts[#parts + 1] = signed(n)
  end
  parts[#parts + 1] = varint(element_number(e, t.element))
  return entry(e.types, VHLO, table.concat(parts))
end

-- ---- elements ------------------------------------------------------------------------------------

local packing = { f64 = "<d", f32 = "<f", i8 = "<i1", i16 = "<i2", i32 = "<i4", i64 = "<i8", ui8 = "<I1", ui16 = "<I2",
  ui32 = "<I4", ui64 = "<i8" }
local patterns = { f64 = "<i8", f32 = "<I4", f16 = "<I2", bf16 = "<I2", f8E4M3FN = "<I1", f8E5M2 = "<I1" }

-- Numbers of short floats: what text writes is read again as their patterns.
local function pattern_of(element, v)
  local single = string.unpack("<I4", pack("<f", v))
  if element == "bf16" then
    return single >> 16
  end
  local sign, exponent, fraction = single >> 31, single >> 23 & 0xFF, single & 0x7FFFFF
  local bits, top = table.unpack(({ f16 = { 10, 0x1F }, f8E5M2 = { 2, 0x1F }, f8E4M3FN = { 3, 0xF } })[element])
  local e = exponent - 127 + (top >> 1)
  if exponent == 0 then
    e, fraction = 0, 0
  elseif exponent == 0xFF then
    e, fraction = top, element == "f8E4M3FN" and 0x7FFFFF or fraction
  end
  local width = bits == 10 and 16 or 8
  return sign << width - 1 | e << bits | fraction >> 23 - bits
end

local function element_bytes(element, v)
  local part = element:match "^complex<(.*)>$"
  if part then
    return element_bytes(part, v[1]) .. element_bytes(part, v[2])
  elseif v ~= v or type(v) == "table" then
    return pack(patterns[element], v ~= v and attributes.nan[element] or v.bits)
  elseif packing[element] then
    return pack(packing[element], v)
  end
  return pack(patterns[element], pattern_of(element, v))
end

-- Booleans, eight to a byte.
local function packed(list)
  local out = {}
  for at = 1, #list, 8 do
    local v = 0
    for i = 0, 7 do
      v = list[at + i] and v | 1 << i or v
    end
    out[#out + 1] = string.char(v)
  end
  return table.concat(out)
end

local function is_true(v)
  return v ~= 0 and v ~= false
end

local function booleans_of(a)
  local list = {}
  for i = 1, a.bytes and #a.bytes or #a.values do
    list[i] = is_true(a.bytes and a.bytes:byte(i) or not a.bytes and a.values[i])
  end
  return list
end

local function dense_bytes(a)
  local element = a.type.element
  if element == "i1" and a.splat ~= nil then
    return is_true(a.splat) and "\xFF" or "\0"
  elseif a.splat ~= nil then
    return element_bytes(element, a.splat)
  elseif element == "i1" then
    return packed(booleans_of(a))
  elseif a.bytes then
    return a.bytes
  end
  local parts = {}
  for i, v in ipairs(a.values) do
    parts[i] = element_bytes(element, v)
  end
  return table.concat(parts)
end

-- ---- attributes ----------------------------------------------------------------------------------

local attribute_codes, enum_numbers = {}, {}
for code, name in ipairs(vhlo.attributes) do
  attribute_codes[name] = code
end
for name, words in pairs(vhlo.enums) do
  enum_numbers[name] = {}
  for number, word in pairs(words) do
    enum_numbers[name][word] = number
  end
end

local function attribute(e, kind, bytes)
  return entry(e.attributes, VHLO, varint(attribute_codes[kind]) .. bytes)
end

local function text_number(e, s)
  return attribute(e, "string", varint(string_number(e, s)))
end

local function tensor_number(e, a)
  local data = dense_bytes(a)
  return attribute(e, "tensor", varint(type_number(e, a.type)) .. varint(#data) .. data)
end

local function constant(element, shape, values)
  return { type = { kind = "tensor", element = element, shape = shape }, values = values }
end

local function flat(list)
  local out = {}
  for _, p in ipairs(list) do
    table.move(p, 1, #p, #out + 1, out)
  end
  return out
end

local function integer_number(e, v, element)
  local bytes = element == "i8" and pack("<i1", v) or signed(v)
  return attribute(e, "integer", varint(element_number(e, element)) .. bytes)
end

local function enumeration(name)
  return function(e, v)
    return attribute(e, name, varint(enum_numbers[name][v]))
  end
end

local writers = {
  dense = tensor_number,
  booleans = function(e, v) return tensor_number(e, constant("i1", { #v }, v)) end,
  pairs = function(e, v) return tensor_number(e, constant("i64", { #v, 2 }, flat(v))) end,
  direction = enumeration "direction", compare_type = enumeration "compare_type", fft_type = enumeration "fft_type",
  transpose = enumeration "transpose",
  precision = function(e, v) return attribute(e, "array", numbers(v, enumeration "precision", e)) end,
}

-- An attribute of an operation; lists of integers are constants.
local function value_number(e, op, name, v)
  local write = writers[attributes.kind(op, name)]
  if write then
    return write(e, v)
  elseif type(v) == "boolean" then
    return attribute(e, "boolean", varint(v and 1 or 0))
  elseif math.type(v) == "integer" then
    return integer_number(e, v, "i64")
  elseif type(v) == "string" then
    return text_number(e, v)
  elseif v.integer then
    return integer_number(e, v.integer, v.element)
  elseif v.symbol then
    return text_number(e, v.symbol)
  end
  return tensor_number(e, constant("i64", { #v }, v))
end

local function dictionary_number(e, t)
  local parts, names = {}, attributes.names(t)
  for i, name in ipairs(names) do
    parts[i] = varint(text_number(e, name)) .. varint(value_number(e, "func.func", name, t[name]))
  end
  return attribute(e, "dictionary", varint(#names) .. table.concat(parts))
end

-- Dictionaries of arguments or results, where one of them has something.
local function dictionaries_number(e, list)
  local any, out = false, {}
  for i, a in ipairs(list) do
    any, out[i] = any or next(a.attributes) ~= nil, a.attributes
  end
  return attribute(e, "array", numbers(any and out or {}, dictionary_number, e))
end

-- ---- what vhlo writes in another way --------------------------------------------------------------

local function places_of(letters, list)
  local at = {}
  for i, letter in ipairs(list) do
    at[letter] = i - 1
  end
  local spatial = {}
  for i = 0, #list - 3 do
    spatial[i + 1] = at[i]
  end
  return at[letters:sub(1, 1)], at[letters:sub(2, 2)], spatial
end

local rewrites = {}

function rewrites.convolution(a)
  local d = a.dimension_numbers
  a.input_batch_dimension, a.input_feature_dimension, a.input_spatial_dimensions = places_of("bf", d.lhs)
  a.kernel_input_feature_dimension, a.kernel_output_feature_dimension, a.kernel_spatial_dimensions =
    places_of("io", d.rhs)
  a.output_batch_dimension, a.output_feature_dimension, a.output_spatial_dimensions = places_of("bf", d.out)
  a.precision_config = a.precision_config or { "DEFAULT", "DEFAULT" }
end

local function with(a, fields)
  for name, v in pairs(fields) do
    a[name] = v
  end
end

function rewrites.dot_general(a)
  with(a, a.dot_dimension_numbers)
  a.precision_config = a.precision_config or { "DEFAULT", "DEFAULT" }
end

function rewrites.gather(a)
  with(a, a.dimension_numbers)
end

function rewrites.scatter(a)
  with(a, a.scatter_dimension_numbers)
end

-- ---- places --------------------------------------------------------------------------------------

local function builtin_number(e, code, bytes)
  return entry(e.attributes, BUILTIN, varint(code) .. bytes)
end

local function builtin_text(e, s)
  return builtin_number(e, builtin.string, varint(string_number(e, s)))
end

local function named(e, name, place)
  return builtin_number(e, builtin.name, varint(builtin_text(e, name)) .. varint(place))
end

local function place(e, where, path)
  local unknown = builtin_number(e, builtin.unknown, "")
  if not e.places or not where then
    return unknown
  end
  local file, line = where:match "^(.*):(%d+)$"
  local at = file and builtin_number(e, builtin.line, varint(builtin_text(e, file)) .. varint(math.tointeger(line))
    .. varint(0)) or named(e, where, unknown)
  return path and path ~= "" and named(e, path, at) or at
end

-- ---- operations ----------------------------------------------------------------------------------

local function op_number(e, dialect, name)
  return number_of(e.ops, dialect .. name, function()
    return { dialect, name }
  end)
end

local function property_number(e, bytes)
  return number_of(e.properties, bytes)
end

local short = { ["func.return"] = "return", ["func.call"] = "call", ["stablehlo.return"] = "return" }

-- The properties of an operation: its attributes in the order of its row.
local function properties_of(e, op, base, name)
  local row = vhlo.operations[name]
  if not row then
    return nil
  end
  local a, parts = setmetatable({}, { __index = op.attributes }), {}
  if rewrites[base] then
    rewrites[base](a)
  end
  for field in row:gmatch "%S+" do
    if a[field] == nil then
      error(("%s needs the attribute %s"):format(op.name, field), 0)
    end
    parts[#parts + 1] = varint(value_number(e, op.name, field, a[field]))
  end
  return property_number(e, table.concat(parts))
end

local region_bytes

local function regions_bytes(e, op, env, next)
  local parts = { varint(#op.regions << 1) }
  for i, region in ipairs(op.regions) do
    parts[i + 1] = region_bytes(e, region, env, next)
  end
  return table.concat(parts)
end

local function named_numbers(env, list)
  local parts = { varint(#list) }
  for i, name in ipairs(list) do
    parts[i + 1] = varint(env[name])
  end
  return table.concat(parts)
end

-- One operation of a region whose values end before `next`.
local function op_bytes(e, op, env, next)
  local base = short[op.name] or op.name:match "^stablehlo%.(.*)$"
  local name = ("%s_v%d"):format(base, versions[base] or 1)
  local property = properties_of(e, op, base, name)
  local mask = (property and has.properties or 0) | (#op.results > 0 and has.results or 0)
    | (#op.operands > 0 and has.operands or 0) | (#op.regions > 0 and has.regions or 0)
  return table.concat { varint(op_number(e, VHLO, name)), string.char(mask), varint(place(e, op.where, op.path)),
    property and varint(property) or "", #op.results > 0 and numbers(op.types, type_number, e) or "",
    #op.operands > 0 and named_numbers(env, op.operands) or "",
    #op.regions > 0 and regions_bytes(e, op, env, next) or "" }
end

local function arguments_bytes(e, args)
  if #args == 0 then
    return ""
  end
  local parts = { varint(#args) }
  for i, a in ipairs(args) do
    local at = a.label and e.places and named(e, a.label, place(e)) or place(e)
    parts[i + 1] = varint(type_number(e, a.type) << 1 | 1) .. varint(at)
  end
  return table.concat(parts) .. "\0" -- uses stand in their order
end

-- A region of one block; its values come after those of the regions around it, from `first` on.
function region_bytes(e, region, outer, first)
  local env, next = setmetatable({}, { __index = outer }), first
  local function define(name)
    env[name], next = next, next + 1
  end
  for _, a in ipairs(region.args) do
    define(a.name)
  end
  for _, op in ipairs(region.ops) do
    for _, name in ipairs(op.results) do
      define(name)
    end
  end
  local parts = { varint(1), varint(next - first), varint(#region.ops << 1 | (#region.args > 0 and 1 or 0)),
    arguments_bytes(e, region.args) }
  for _, op in ipairs(region.ops) do
    parts[#parts + 1] = op_bytes(e, op, env, next)
  end
  return table.concat(parts)
end

local function section(id, bytes)
  return string.char(id) .. varint(#bytes) .. bytes
end

-- The one region of what is isolated from the values around it.
local function isolated(region)
  return varint(1 << 1 | 1) .. section(section_ids.code, region)
end

local function function_bytes(e, f)
  local t = { kind = "function", inputs = {}, results = {} }
  for i, a in ipairs(f.args) do
    t.inputs[i] = a.type
  end
  for i, r in ipairs(f.results) do
    t.results[i] = r.type
  end
  local property = { varint(dictionaries_number(e, f.args)), varint(attribute(e, "type", varint(type_number(e, t)))),
    varint(dictionaries_number(e, f.results)), varint(text_number(e, f.name)),
    varint(text_number(e, f.private and "private" or "public")) }
  return varint(op_number(e, VHLO, "func_v1")) .. string.char(has.properties | has.regions)
    .. varint(place(e, f.where)) .. varint(property_number(e, table.concat(property)))
    .. isolated(region_bytes(e, f.body, nil, 0))
end

local function module_bytes(e, module)
  local functions = {}
  for i, name in ipairs(module.order) do
    functions[i] = function_bytes(e, module.functions[name])
  end
  local name = property_number(e, varint(builtin_text(e, module.name) << 1 | 1) .. varint(0))
  local region = varint(1) .. varint(0) .. varint(#functions << 1) .. table.concat(functions)
  return varint(1 << 1) .. varint(op_number(e, BUILTIN, "module")) .. string.char(has.properties | has.regions)
    .. varint(place(e)) .. varint(name) .. isolated(region)
end

-- ---- sections ------------------------------------------------------------------------------------

-- The lengths of all from the last to the first, each with its final zero, then their bytes.
local function strings_bytes(list)
  local lengths, parts = { varint(#list) }, {}
  for i = #list, 1, -1 do
    lengths[#lengths + 1] = varint(#list[i] + 1)
  end
  for i, s in ipairs(list) do
    parts[i] = s .. "\0"
  end
  return table.concat(lengths) .. table.concat(parts)
end

-- Calls put(dialect, list) for each run of entries of one dialect.
local function each_group(entries, put)
  local at = 1
  while at <= #entries do
    local group = {}
    local dialect = entries[at][1]
    while entries[at] and entries[at][1] == dialect do
      group[#group + 1], at = entries[at][2], at + 1
    end
    put(dialect, group)
  end
end

local function dialects_bytes(e)
  local parts = { varint(#dialects) }
  for _, name in ipairs(dialects) do
    parts[#parts + 1] = varint(string_number(e, name) << 1)
  end
  parts[#parts + 1] = varint(#e.ops)
  each_group(e.ops, function(dialect, names)
    parts[#parts + 1] = varint(dialect) .. varint(#names)
    for _, name in ipairs(names) do
      parts[#parts + 1] = varint(string_number(e, name) << 1 | 1)
    end
  end)
  return table.concat(parts)
end

local function entries_bytes(e)
  local data, offsets = {}, { varint(#e.attributes), varint(#e.types) }
  for _, list in ipairs { e.attributes, e.types } do
    each_group(list, function(dialect, group)
      offsets[#offsets + 1] = varint(dialect) .. varint(#group)
      for _, bytes in ipairs(group) do
        data[#data + 1], offsets[#offsets + 1] = bytes, varint(#bytes << 1 | 1)
      end
    end)
  end
  return table.concat(data), table.concat(offsets)
end

local function properties_bytes(e)
  local parts = { varint(#e.properties) }
  for i, bytes in ipairs(e.properties) do
    parts[i + 1] = varint(#bytes) .. bytes
  end
  return table.concat(parts)
end

---The portable artifact of a module. options: places = false leaves out the lines of the script.
function encode.module(module, options)
  local e = { places = options.places ~= false, strings = new_list(), attributes = new_list(), types = new_list(),
    ops = new_list(), properties = new_list() }
  local code = module_bytes(e, module)
  local names = dialects_bytes(e)
  local data, offsets = entries_bytes(e)
  return magic .. varint(container) .. producer .. "\0" .. section(section_ids.strings, strings_bytes(e.strings))
    .. section(section_ids.dialects, names) .. section(section_ids.entries, data)
    .. section(section_ids.offsets, offsets) .. section(section_ids.code, code)
    .. section(section_ids.properties, properties_bytes(e))
end

return encode
