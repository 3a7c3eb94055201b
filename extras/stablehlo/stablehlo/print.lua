-- Modules, as the readers and write.lua give them, as text: operations in the generic form, which MLIR of any version
-- reads.

local attributes = require "deepc.stablehlo.attributes"
local elements = require "deepc.stablehlo.elements"

local print = {}

-- ---- types and strings ---------------------------------------------------------------------------

local function type_text(t)
  if t.kind == "tensor" then
    local sizes = {}
    for i, n in ipairs(t.shape) do
      sizes[i] = (n < 0 and "?" or n) .. "x"
    end
    return ("tensor<%s%s>"):format(table.concat(sizes), t.element)
  elseif t.kind == "token" then
    return "!stablehlo.token"
  end
  return t.text
end

local function types_text(list)
  local out = {}
  for i, t in ipairs(list) do
    out[i] = type_text(t)
  end
  return table.concat(out, ", ")
end

local function results_text(list)
  local text = types_text(list)
  return #list == 1 and text or ("(%s)"):format(text)
end

local function quoted(s)
  return '"' .. s:gsub('[%c"\\\128-\255]', function(c) return ("\\%02X"):format(c:byte()) end) .. '"'
end

-- ---- elements ------------------------------------------------------------------------------------

local digits = { f64 = 17, f32 = 9, f16 = 6, bf16 = 5, f8E4M3FN = 4, f8E5M2 = 4 }
local infinity = { f64 = { 0x7FF0000000000000, 1 << 63 }, f32 = { 0x7F800000, 1 << 31 }, f16 = { 0x7C00, 1 << 15 },
  bf16 = { 0x7F80, 1 << 15 }, f8E5M2 = { 0x7C, 1 << 7 } }
local width = { f64 = 16, f32 = 8, f16 = 4, bf16 = 4, f8E5M2 = 2, f8E4M3FN = 2 }

local function hex(element, bits)
  return ("0x%0" .. width[element] .. "X"):format(bits)
end

local function float_text(element, v)
  if v ~= v then
    return hex(element, attributes.nan[element])
  elseif v == math.huge or v == -math.huge then
    local pair = infinity[element]
    return hex(element, v < 0 and pair[1] | pair[2] or pair[1])
  end
  local text = ("%." .. digits[element] .. "g"):format(v)
  if not text:find("[.]") then -- the grammar wants a point
    text = text:gsub("^(-?%d+)", "%1.0")
  end
  return text
end

local function element_text(t, v)
  local part = t.element:match "^complex<(.*)>$"
  if part then
    return ("(%s, %s)"):format(element_text({ element = part }, v[1]), element_text({ element = part }, v[2]))
  elseif type(v) == "table" then
    return hex(t.element, v.bits)
  elseif type(v) == "boolean" then
    return tostring(v)
  elseif t.element == "i1" then
    return tostring(v ~= 0)
  elseif digits[t.element] then
    return float_text(t.element, v)
  elseif t.element == "ui64" and v < 0 then
    local tens = (v >> 1) // 5
    return ("%d%d"):format(tens, v - tens * 10)
  end
  return ("%d"):format(v)
end

-- Elements from number `at` on in brackets; gives the text and how many there were.
local function nested(t, list, axis, at)
  if axis > #t.shape then
    return element_text(t, list[at]), at + 1
  end
  local out = {}
  for i = 1, t.shape[axis] do
    out[i], at = nested(t, list, axis + 1, at)
  end
  return ("[%s]"):format(table.concat(out, ", ")), at
end

local hex_of = {}
for v = 0, 255 do
  hex_of[string.char(v)] = ("%02X"):format(v)
end

local function hex_bytes(bytes)
  return '"0x' .. bytes:gsub(".", hex_of) .. '"'
end

local function booleans(bytes)
  local list = {}
  for i = 1, #bytes do
    list[i] = bytes:byte(i) ~= 0
  end
  return list
end

-- Patterns of a constant in text, which an equal pattern for all shortens; those of bool have no form in bytes.
local function dense_body(a)
  local t = a.type
  if a.splat ~= nil then
    return element_text(t, a.splat)
  elseif elements.count(t.shape) == 0 then
    return ""
  elseif a.bytes and t.element ~= "i1" then
    return hex_bytes(a.bytes)
  end
  return (nested(t, a.bytes and booleans(a.bytes) or a.values, 1, 1))
end

local function dense_text(a)
  return ("dense<%s> : %s"):format(dense_body(a), type_text(a.type))
end

-- ---- attributes ----------------------------------------------------------------------------------

local function list_text(list)
  return ("[%s]"):format(table.concat(list, ", "))
end

local function array(element)
  return function(list)
    local parts = {}
    for i, v in ipairs(list) do
      parts[i] = tostring(v)
    end
    return #parts == 0 and ("array<%s>"):format(element) or ("array<%s: %s>"):format(element, table.concat(parts, ", "))
  end
end

local function pairs_text(list)
  local rows = {}
  for i, p in ipairs(list) do
    rows[i] = list_text(p)
  end
  return #rows == 0 and "dense<> : tensor<0x2xi64>"
    or ("dense<%s> : tensor<%dx2xi64>"):format(list_text(rows), #rows)
end

local function enumeration(name)
  return function(v)
    return ("#stablehlo<%s %s>"):format(name, v)
  end
end

-- Lists of integers under names in the order given, without those that are empty; index_vector_dim is a number.
local function numbers(name, order)
  return function(t)
    local parts = {}
    for field in order:gmatch "%S+" do
      local v = t[field]
      if math.type(v) == "integer" and v ~= 0 or type(v) == "table" and #v > 0 then
        parts[#parts + 1] = ("%s = %s"):format(field, type(v) == "table" and list_text(v) or v)
      end
    end
    return ("#stablehlo.%s<%s>"):format(name, table.concat(parts, ", "))
  end
end

local function precisions_text(list)
  local parts = {}
  for i, v in ipairs(list) do
    parts[i] = ("#stablehlo<precision %s>"):format(v)
  end
  return list_text(parts)
end

local function conv_text(t)
  return ("#stablehlo.conv<%sx%s->%s>"):format(list_text(t.lhs), list_text(t.rhs), list_text(t.out))
end

local forms = {
  integers = array "i64", booleans = array "i1", pairs = pairs_text, conv = conv_text, precision = precisions_text,
  direction = enumeration "comparison_direction", compare_type = enumeration "comparison_type",
  fft_type = enumeration "fft_type", transpose = enumeration "transpose",
  dot = numbers("dot", attributes.dot), gather = numbers("gather", attributes.gather),
  scatter = numbers("scatter", attributes.scatter), dense = dense_text,
}

local function attribute_text(op, name, v)
  local form = forms[attributes.kind(op, name)]
  if form then
    return form(v)
  elseif type(v) == "boolean" then
    return tostring(v)
  elseif math.type(v) == "integer" then
    return v .. " : i64"
  elseif type(v) == "string" then
    return quoted(v)
  elseif v.integer then
    return ("%d : %s"):format(v.integer, v.element)
  elseif v.symbol then
    return "@" .. v.symbol
  end
  error(("the attribute %s of %s has no form"):format(name, op), 0)
end

local function dictionary(op, t)
  local parts = {}
  for _, name in ipairs(attributes.names(t)) do
    if not attributes.is_default(op, name, t[name]) then
      parts[#parts + 1] = ("%s = %s"):format(name, attribute_text(op, name, t[name]))
    end
  end
  return #parts > 0 and (" {%s}"):format(table.concat(parts, ", ")) or ""
end

-- ---- places --------------------------------------------------------------------------------------

-- "train.lua:15" is a line of a file; what is none is a name.
local function line_text(where)
  local file, line = where:match "^(.*):(%d+)$"
  return file and ("loc(%s:%s:0)"):format(quoted(file), line) or ("loc(%s)"):format(quoted(where))
end

-- Each place once, under a name.
local function place(p, where, path)
  if not p.places or not where then
    return ""
  end
  local key = where .. "\0" .. (path or "")
  local text = line_text(where)
  if path and path ~= "" then
    text = ("loc(%s(%s))"):format(quoted(path), text:sub(5, -2))
  end
  if not p.known[key] then
    p.list[#p.list + 1] = text
    p.known[key] = #p.list
  end
  return (" loc(#loc%d)"):format(p.known[key])
end

-- ---- operations ----------------------------------------------------------------------------------

local function put(p, format, ...)
  p[#p + 1] = format:format(...)
end

local put_ops

local function argument_list(args)
  local list = {}
  for i, a in ipairs(args) do
    list[i] = ("%s: %s"):format(a.name, type_text(a.type))
  end
  return table.concat(list, ", ")
end

local function put_regions(p, op, indent)
  for i, region in ipairs(op.regions) do
    put(p, i == 1 and " ({\n" or ", {\n")
    if #region.args > 0 then
      put(p, "%s^bb0(%s):\n", indent, argument_list(region.args))
    end
    put_ops(p, region.ops, indent .. "  ")
    put(p, "%s}", indent)
  end
  put(p, #op.regions > 0 and ")" or "")
end


local function put_op(p, op, indent)
  put(p, "%s", indent)
  if #op.results > 0 then
    put(p, "%s = ", table.concat(op.results, ", "))
  end
  put(p, "%s(%s)", quoted(op.name), table.concat(op.operands, ", "))
  put_regions(p, op, indent)
  put(p, "%s : (%s) -> %s%s\n", dictionary(op.name, op.attributes), types_text(op.operand_types),
    results_text(op.types), place(p, op.where, op.path))
end

function put_ops(p, ops, indent)
  for _, op in ipairs(ops) do
    put_op(p, op, indent)
  end
end

local function put_function(p, f)
  local args, results = {}, {}
  for i, a in ipairs(f.args) do
    args[i] = ("%s: %s%s%s"):format(a.name, type_text(a.type), dictionary("func.func", a.attributes),
      p.places and a.label and (" loc(%s)"):format(quoted(a.label)) or "")
  end
  for i, r in ipairs(f.results) do
    results[i] = type_text(r.type) .. dictionary("func.func", r.attributes)
  end
  put(p, "  func.func %s @%s(%s) -> (%s) {\n", f.private and "private" or "public", f.name,
    table.concat(args, ", "), table.concat(results, ", "))
  put_ops(p, f.body.ops, "    ")
  put(p, "  }%s\n", place(p, f.where))
end

---The text of a module, without an end of its last line. options: places = false leaves out the lines of the script.
function print.module(module, options)
  local p = { places = options.places ~= false, known = {}, list = {} }
  for _, name in ipairs(module.order) do
    put_function(p, module.functions[name])
  end
  local head = {}
  for i, text in ipairs(p.list) do
    head[i] = ("#loc%d = %s\n"):format(i, text)
  end
  return ("%smodule @%s {\n%s}"):format(table.concat(head), module.name, table.concat(p))
end

return print
