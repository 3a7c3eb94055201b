-- dc.save of GGUF files: metadata as they stand there, types of tensors. The table of internals gets it as `gguf`.

require "deepc.operands"
local _, core = ...
require "deepc.cells"

local plain, describe = core.cells.plain, core.describe
local gguf = {}

-- ---- metadata ----

-- Kinds of values: their numbers in files, and how string.pack writes them.
local KINDS = {
  u8 = { 0, "<B", 0, 255 }, i8 = { 1, "<b", -128, 127 },
  u16 = { 2, "<I2", 0, 65535 }, i16 = { 3, "<i2", -32768, 32767 },
  u32 = { 4, "<I4", 0, 4294967295 }, i32 = { 5, "<i4", -2147483648, 2147483647 }, f32 = { 6, "<f" },
  bool = { 7, "<B" }, text = { 8, "<s8" }, list = { 9 }, u64 = { 10, "<I8", 0, math.maxinteger },
  i64 = { 11, "<i8", math.mininteger, math.maxinteger }, f64 = { 12, "<d" },
}

local LARGEST = string.unpack("<f", "\xff\xff\x7f\x7f") -- f32

-- What a value is written as where nothing says it; nil: it is none that has a place.
local function kind_of(v)
  if type(v) == "string" then
    return "text"
  elseif type(v) == "boolean" then
    return "bool"
  elseif math.type(v) == "integer" then
    return v >= 0 and v <= KINDS.u32[4] and "u32" or v >= KINDS.i32[3] and v < 0 and "i32" or "i64"
  elseif math.type(v) == "float" then
    return (v ~= v or v == math.huge or v == -math.huge or math.abs(v) <= LARGEST) and "f32" or "f64"
  end
  return plain(v) and "list" or nil
end

-- That of all elements: integers are i32 or i64, with floats among them f32 or f64.
local function kind_of_list(list)
  local kinds = {}
  for _, v in ipairs(list) do
    kinds[kind_of(v) or "none"] = true
  end
  local wide = kinds.i64
  for _, v in ipairs(kinds.u32 and list or {}) do
    wide = wide or math.type(v) == "integer" and v > KINDS.i32[4]
  end
  local whole, float = kinds.u32 or kinds.i32 or kinds.i64, kinds.f32 or kinds.f64
  local other = (kinds.text and 1 or 0) + (kinds.bool and 1 or 0) + (kinds.list and 1 or 0)
    + ((whole or float) and 1 or 0)
  if kinds.none or other > 1 then
    return nil
  elseif float then
    return kinds.f64 and "f64" or "f32"
  end
  return kinds.text and "text" or kinds.bool and "bool" or kinds.list and "list" or wide and "i64" or "i32"
end

local function refuse(key, v)
  core.fail("ARG", "save", ("metadata '%s' is %s"):format(key, describe(v)),
    "integers, floats, booleans, texts and lists of one of these are kept; { type = \"u64\", value = 3 } says its type")
end

local function fits(kind, v)
  local row = KINDS[kind]
  if kind == "text" then
    return type(v) == "string"
  elseif kind == "bool" then
    return type(v) == "boolean"
  elseif kind == "f32" or kind == "f64" then
    return type(v) == "number"
  end
  return math.type(v) == "integer" and v >= row[3] and v <= row[4]
end

local function pack(key, kind, v)
  if not fits(kind, v) then
    core.fail("ARG", "save", ("metadata '%s' is %s, which is no %s"):format(key, describe(v), kind))
  end
  return string.pack(KINDS[kind][2], kind == "bool" and (v and 1 or 0) or v)
end

-- A list without its kind of value; `kind` is that of its elements, or nil.
local function pack_list(key, list, kind, depth)
  local n = #list
  for k in pairs(list) do
    if math.type(k) ~= "integer" or k < 1 or k > n then
      core.fail("ARG", "save", ("metadata '%s' is a table with the key %s; lists are kept"):format(key, core.shown(k)))
    end
  end
  kind = kind or kind_of_list(list)
  if not kind or depth > 4 then
    refuse(key, list)
  end
  local parts = { string.pack("<I4I8", KINDS[kind][1], n) }
  for i, v in ipairs(list) do
    parts[i + 1] = kind == "list" and pack_list(key, v, nil, depth + 1) or pack(key, kind, v)
  end
  return table.concat(parts)
end

local function pack_value(key, v)
  local kind
  if plain(v) and v.type ~= nil then
    kind, v = v.type, v.value
    if not KINDS[kind] or kind == "list" then
      core.fail("ARG", "save", ("metadata '%s' has the type %s"):format(key, core.shown(kind)),
        "u8 to u64, i8 to i64, f32, f64, bool, text; of a list that of its elements")
    end
  end
  if plain(v) then
    return string.pack("<I4", KINDS.list[1]) .. pack_list(key, v, kind, 1)
  end
  kind = kind or kind_of(v)
  if not kind then
    refuse(key, v)
  end
  return string.pack("<I4", KINDS[kind][1]) .. pack(key, kind, v)
end

-- How many there are, and all of them as they stand in a file.
function gguf.entries(metadata)
  local keys, parts = {}, {}
  for key in pairs(metadata) do
    keys[#keys + 1] = key
  end
  table.sort(keys)
  for i, key in ipairs(keys) do
    if key == "general.alignment" then
      core.fail("ARG", "save", "metadata 'general.alignment' is set by what is written")
    end
    parts[i] = string.pack("<s8", key) .. pack_value(key, metadata[key])
  end
  return #keys, table.concat(parts)
end

-- ---- types of tensors ----

local TYPES = { f32 = 1, f16 = 1, bf16 = 1, q8_0 = 32, q4_0 = 32 }

local function refuse_type(v)
  core.fail("ARG", "save", ("type is %s"):format(describe(v)), "'f32', 'f16', 'bf16', 'q8_0', 'q4_0', or a function")
end

-- The type of a tensor in the file, or false: its own. `wanted` is for floats of two axes and more: rows that are no
-- whole blocks, which a note tells, and what has one axis, are f32.
local function type_of(name, value, wanted)
  local chosen = wanted
  if type(wanted) == "function" then
    chosen = wanted(name, value)
    if chosen ~= nil and not TYPES[chosen] then
      refuse_type(chosen)
    end
  end
  local shape = value.shape
  local row = shape[#shape] or 1
  if not chosen or not core.is_float(value.dtype) then
    return false
  elseif #shape < 2 and type(wanted) ~= "function" then
    return "f32"
  elseif row % TYPES[chosen] ~= 0 then
    core.note(("save: '%s' is f32: its rows of %d elements are no blocks of %s"):format(name, row, chosen))
    return "f32"
  end
  return chosen
end

function gguf.types(names, values, wanted)
  if wanted ~= nil and not TYPES[wanted] and type(wanted) ~= "function" then
    refuse_type(wanted)
  end
  local types = {}
  for i, name in ipairs(names) do
    types[i] = type_of(name, values[i], wanted)
  end
  return types
end

core.gguf = gguf

return {}
