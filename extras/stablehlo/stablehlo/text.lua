-- The reader of StableHLO's text: a scanner over the string by anchored patterns, and a parser by recursive descent.
-- No tokens are kept. A reader state `p` has the source `s` and the position `at`, which is always at the start of a
-- token: whoever takes a token goes past the white space and the comments behind it.

local text = {}

local find, sub, byte = string.find, string.sub, string.byte

local most_deep = 100 -- types, attributes, regions and brackets inside each other
local most_elements = 2 ^ 53
local most_listed = 65536 -- integers of a dense attribute that becomes a list
local most_digits = 1000 -- of one number

-- ---- positions and errors ----------------------------------------------------------------------------------------

-- Line and column of a position. Positions mostly grow, so that counting goes on from the last one.
local function position(p, at)
  if at < p.line_start then
    p.line, p.line_start, p.line_stop = 1, 1, nil
  end
  while true do
    p.line_stop = p.line_stop or find(p.s, "\n", p.line_start, true) or #p.s + 1
    if p.line_stop >= at then
      return p.line, at - p.line_start + 1
    end
    p.line, p.line_start, p.line_stop = p.line + 1, p.line_stop + 1, nil
  end
end

local function fail_at(p, at, format, ...)
  local line, column = position(p, at)
  error(("%s:%d:%d: %s"):format(p.name, line, column, format:format(...)), 0)
end

local function fail(p, format, ...)
  fail_at(p, p.at, format, ...)
end

-- What stands at the position, for messages.
local function shown(p)
  local c = byte(p.s, p.at)
  if not c then
    return "the end"
  elseif c < 32 or c > 126 then
    return ("the byte 0x%02X"):format(c)
  end
  local _, stop = find(p.s, "^[%w_.$#%%@!^]+", p.at)
  return "'" .. sub(p.s, p.at, math.min(stop or p.at, p.at + 39)) .. "'"
end

local function missing(p, what)
  fail(p, "%s is needed, not %s", what, shown(p))
end

local function enter(p)
  p.depth = p.depth + 1
  if p.depth > most_deep then
    fail(p, "this is nested more than %d deep", most_deep)
  end
end

local function leave(p)
  p.depth = p.depth - 1
end

-- ---- tokens ------------------------------------------------------------------------------------------------------

-- Goes to `at` and on to the next token.
local function move(p, at)
  local s = p.s
  while true do
    local _, stop = find(s, "^[ \n\t\r]*", at)
    at = stop + 1
    if byte(s, at) ~= 47 or byte(s, at + 1) ~= 47 then
      break
    end
    at = find(s, "\n", at, true) or #s + 1
  end
  p.at = at
end

local function is(p, mark)
  return sub(p.s, p.at, p.at + #mark - 1) == mark
end

local function accept(p, mark)
  if is(p, mark) then
    move(p, p.at + #mark)
    return true
  end
  return false
end

local function need(p, mark)
  if not accept(p, mark) then
    missing(p, "'" .. mark .. "'")
  end
end

-- The capture of an anchored pattern that ends with "()", and the position moved behind it.
local function take(p, pattern)
  local _, _, word, stop = find(p.s, pattern, p.at)
  if word then
    move(p, stop)
  end
  return word
end

local word_pattern = "^([%a_][%w_$.]*)()"

local function word_here(p)
  local _, _, word = find(p.s, word_pattern, p.at)
  return word
end

local function accept_word(p, word)
  if word_here(p) == word then
    move(p, p.at + #word)
    return true
  end
  return false
end

-- The position of the quote that ends the string which starts at `at`.
local function string_end(p, at)
  local stop = at
  while true do
    stop = find(p.s, '["\\\n]', stop + 1)
    local c = stop and byte(p.s, stop)
    if c == 34 then
      return stop
    elseif c ~= 92 then
      fail_at(p, at, "this string has no end")
    end
    stop = stop + 1
  end
end

local escapes = { n = "\n", t = "\t", ["\\"] = "\\", ['"'] = '"' }

local function unescape(body)
  return (body:gsub("\\(.)(%x?)", function(first, second)
    if second ~= "" and find(first, "%x") then
      return string.char(tonumber(first .. second, 16))
    elseif escapes[first] then
      return escapes[first] .. second
    end
    return nil
  end))
end

local function string_literal(p)
  if byte(p.s, p.at) ~= 34 then
    missing(p, "a string")
  end
  local stop = string_end(p, p.at)
  local body = sub(p.s, p.at + 1, stop - 1)
  move(p, stop + 1)
  return find(body, "\\", 1, true) and unescape(body) or body
end

local closing = { ["("] = ")", ["["] = "]", ["{"] = "}", ["<"] = ">" }

-- One bracket of text that nobody needs: where it stands in the stack, and the position behind it.
local function bracket(p, stack, at)
  local c = sub(p.s, at, at)
  if stack[#stack] == ")" and find(p.s, "^[<>]=", at) then
    return at + 1 -- a comparison
  elseif c == '"' then
    return string_end(p, at) + 1
  elseif closing[c] then
    stack[#stack + 1] = closing[c]
    if #stack + p.depth > most_deep then
      fail_at(p, at, "this is nested more than %d deep", most_deep)
    end
  elseif c == ">" and sub(p.s, at - 1, at - 1) == "-" then
    return at + 1 -- an arrow
  elseif stack[#stack] == c then
    stack[#stack] = nil
  else
    fail_at(p, at, "'%s' is needed, not '%s'", stack[#stack], c)
  end
  return at + 1
end

-- The text in brackets that start here, with the brackets.
local function balanced(p)
  local start, at, stack = p.at, p.at, {}
  repeat
    at = find(p.s, '["%[%](){}<>]', at)
    if not at then
      fail(p, "this '%s' has no end", sub(p.s, start, start))
    end
    at = bracket(p, stack, at)
  until #stack == 0
  move(p, at)
  return sub(p.s, start, at - 1)
end

local function symbol(p)
  if byte(p.s, p.at) ~= 64 then
    missing(p, "a symbol")
  end
  if byte(p.s, p.at + 1) == 34 then
    p.at = p.at + 1
    return string_literal(p)
  end
  return take(p, "^@([%a_][%w_$.%-]*)()") or missing(p, "a symbol")
end

-- A value as an operand: "%0" or "%0#1".
local function use(p)
  local name = take(p, "^(%%[%w_$.%-]+)()") or missing(p, "a value")
  local index = take(p, "^#(%d+)()")
  index = index and index:gsub("^0+", "") or ""
  return index == "" and name or name .. "#" .. index
end

-- Reads `read(p)` as often as there are commas, up to the closing mark.
local function list_until(p, close, read, ...)
  local list = {}
  while not accept(p, close) do
    list[#list + 1] = read(p, ...)
    if not accept(p, ",") then
      need(p, close)
      break
    end
  end
  return list
end

-- Aliases and splats mean more than they are long: what they unfold to is counted.
local function count_weight(p, weight)
  p.weight = p.weight + weight
  if p.weight > p.most_weight then
    fail(p, "this file unfolds to too much")
  end
end

-- ---- aliases -----------------------------------------------------------------------------------------------------

local attribute, read_type -- functions, defined below

-- Finds the definitions at the starts of lines: an alias may be used before it is defined.
local function scan_aliases(p)
  local aliases = {}
  for _, mark in ipairs { "\n#", "\n!" } do
    local at = 0
    repeat
      local _, _, name, value = find(p.s, "^([#!][%w_.$%-]+)[ \t]*=[ \t]*()", at + 1)
      if name then
        aliases[name] = aliases[name] or { at = value }
      end
      at = find(p.s, mark, at + 1, true)
    until not at
  end
  return aliases
end

-- What an alias means, which is used at `from`. It is read once, where it is defined, and the position stays.
local function alias(p, name, from)
  local a = p.aliases[name] or fail_at(p, from, "%s is not defined", sub(name, 1, 60))
  if a.open then
    fail_at(p, from, "%s is defined by itself", sub(name, 1, 60))
  elseif a.stop then
    count_weight(p, a.weight)
    return a
  end
  local at, weight = p.at, p.weight
  a.open = true
  move(p, a.at)
  a.value = (byte(name) == 33 and read_type or attribute)(p)
  a.stop, a.weight, a.open = p.at, p.weight - weight, nil
  p.at = at
  return a
end

local function skip_definition(p)
  local start = p.at
  local name = take(p, "^([#!][%w_.$%-]+)()") or missing(p, "an operation")
  need(p, "=")
  local a = p.aliases[name] or { at = p.at }
  if a.passed then
    fail_at(p, start, "%s is defined twice", sub(name, 1, 60))
  end
  p.aliases[name], a.passed = a, true
  p.at = alias(p, name, start).stop
end

-- ---- types -------------------------------------------------------------------------------------------------------

local dtypes = { f64 = "f64", f32 = "f32", f16 = "f16", bf16 = "bf16", f8E4M3FN = "f8e4m3fn", f8E5M2 = "f8e5m2",
  i64 = "i64", i32 = "i32", i16 = "i16", i8 = "i8", ui64 = "u64", ui32 = "u32", ui16 = "u16", ui8 = "u8", i1 = "bool",
  ["complex<f32>"] = "c64", ["complex<f64>"] = "c128" }

local containers = { memref = true, vector = true, opaque = true }
local type_words = { tensor = true, tuple = true, complex = true, index = true, none = true, memref = true,
  vector = true, tf32 = true, token = true }

local function is_type_word(word)
  return type_words[word] or find(word, "^[su]?i%d+$") ~= nil or find(word, "^b?f%d+[%w]*$") ~= nil
end

local function type_list(p, close)
  return list_until(p, close, read_type)
end

-- The sizes of a tensor: "2x?x" before its element type.
local function sizes(p)
  local shape, n = {}, 1.0
  while true do
    local start = p.at
    local size = take(p, "^(%d+)%s*x()") or take(p, "^(%?)%s*x()")
    if not size then
      return shape
    end
    local number = size == "?" and -1 or tonumber(size)
    n = n * (number < 0 and 1 or number)
    if number > most_elements or n > most_elements then
      fail_at(p, start, "this tensor has more than 2^53 elements")
    end
    shape[#shape + 1] = math.tointeger(number)
  end
end

local function tensor_type(p)
  local shape = sizes(p)
  local element = read_type(p)
  if element.kind ~= "other" then
    fail(p, "an element type is needed before this")
  end
  local t = { kind = "tensor", element = element.text, dtype = dtypes[element.text], shape = shape }
  if accept(p, ",") then
    t.encoding = attribute(p)
  end
  need(p, ">")
  return t
end

local function other(text_)
  return { kind = "other", text = text_ }
end

-- A type after "!": an alias, or one of a dialect.
local function named_type(p)
  local start = p.at
  local name = take(p, "^(![%w_.$%-]+)()") or missing(p, "a type")
  if name == "!stablehlo.token" or name == "!mhlo.token" then
    return { kind = "token" }
  elseif is(p, "<") then
    return other(name .. balanced(p))
  elseif p.aliases[name] or not find(name, ".", 1, true) then
    return alias(p, name, start).value
  end
  return other(name)
end

-- A list of result types in parentheses, or one type.
local function result_types(p)
  if accept(p, "(") then
    return type_list(p, ")")
  end
  return { read_type(p) }
end

local function function_type(p)
  need(p, "(")
  local inputs = type_list(p, ")")
  need(p, "->")
  local t = { kind = "function", inputs = inputs, results = result_types(p) }
  p.made[t] = "function"
  return t
end

local function word_type(p)
  local word = word_here(p)
  if not word or not is_type_word(word) and not containers[word] then
    missing(p, "a type")
  end
  move(p, p.at + #word)
  if word == "tensor" and not find(p.s, "^<%s*%*", p.at) then
    need(p, "<")
    return tensor_type(p)
  elseif word == "tuple" then
    need(p, "<")
    return { kind = "tuple", types = type_list(p, ">") }
  elseif word == "complex" or word == "tensor" or containers[word] then
    if not is(p, "<") then
      missing(p, "'<'")
    end
    return other((word .. balanced(p)):gsub("%s", ""))
  end
  return other(word)
end

function read_type(p)
  enter(p)
  count_weight(p, 1)
  local c = byte(p.s, p.at)
  local t
  if c == 40 then
    t = function_type(p)
  elseif c == 33 then
    t = named_type(p)
  else
    t = word_type(p)
  end
  leave(p)
  return t
end

-- ---- elements ----------------------------------------------------------------------------------------------------

-- What a written element may be: { class = "float", "integer", "boolean" or "complex", width =, ... }, or nil.
local function element_class(element)
  if element == "i1" then
    return { class = "boolean", width = 1, bytes = 1 }
  elseif element == "index" then
    return { class = "integer", width = 64, bytes = 8, sign = "s" }
  end
  local part = element:match "^complex<(.*)>$"
  part = part and element_class(part)
  if part and (part.class == "float" or part.class == "integer") then
    return { class = "complex", part = part, bytes = 2 * part.bytes }
  end
  local sign, bits = element:match "^([su]?)i(%d%d?)$"
  local width = tonumber(bits)
  if width and width >= 1 and width <= 64 then
    return { class = "integer", width = width, bytes = (width + 7) // 8, sign = sign }
  end
  width = tonumber(element == "tf32" and "32" or element:match "^b?f(%d+)")
  if width and width >= 4 and width <= 64 then
    return { class = "float", width = width, bytes = (width + 7) // 8 }
  end
  return nil
end

-- The bits of digits, without a sign, or nil if there are more than 64.
local function unsigned(digits)
  digits = digits:gsub("^0+(.)", "%1")
  if #digits <= 18 then
    return tonumber(digits)
  elseif #digits > 20 then
    return nil
  end
  local high, last = math.tointeger(tonumber(digits:sub(1, -2))), tonumber(digits:sub(-1))
  if not high or high > 1844674407370955161 or high == 1844674407370955161 and last > 5 then
    return nil
  end
  return high * 10 + last
end

local function hexadecimal(word)
  local digits = word:match "^0x0*(%x*)$"
  if digits and #word > 2 and #digits <= 16 then
    return digits == "" and 0 or tonumber("0x" .. digits)
  end
  return nil
end

local function fits(v, width)
  return width == 64 or math.ult(v, 1 << width)
end

local function negative_integer(row, digits)
  local v = find(digits, "^%d+$") and unsigned(digits)
  local lowest = 1 << (row.width - 1)
  if not v or v ~= 0 and row.sign == "u" or v ~= lowest and not math.ult(v, lowest) then
    return nil
  end
  return -v
end

-- As MLIR reads them: signless integers may be written as unsigned ones, and then wrap.
local function integer(row, word)
  if byte(word) == 45 then
    return negative_integer(row, sub(word, 2))
  end
  local hex = hexadecimal(word)
  local v = hex or find(word, "^%d+$") and unsigned(word)
  if not v or not fits(v, row.width) then
    return nil
  end
  local half = 1 << (row.width - 1)
  if math.ult(v, half) or row.sign == "u" then
    return v
  elseif row.sign == "s" and not hex then
    return nil
  end
  return row.width == 64 and v or v - (half << 1)
end

local function float(row, word)
  if find(word, "^0x") then
    local bits = hexadecimal(word)
    return bits and fits(bits, row.width) and { bits = bits } or nil
  elseif not find(word, "^%-?%d+%.?%d*[eE]?[-+]?%d*$") then
    return nil
  end
  local v = tonumber(word)
  if math.type(v) == "integer" then
    v = tonumber(word .. ".0")
  end
  return v
end

-- A word, or a pair of words, as an element; nil if it is none.
local function convert(row, word)
  if #word > most_digits then
    return nil
  elseif type(word) == "table" then
    if row.class ~= "complex" then
      return nil
    end
    local re, im = convert(row.part, word[1]), convert(row.part, word[2])
    return re and im and { re, im } or nil
  elseif row.class == "float" then
    return float(row, word)
  elseif row.class == "integer" then
    return integer(row, word)
  elseif row.class == "boolean" then
    if word == "true" or word == "false" then
      return word == "true"
    end
    local v = integer({ width = 1, sign = "" }, word)
    return v and v ~= 0
  end
  return nil
end

local function converted(p, at, row, element, word)
  local v = convert(row, word)
  if v == nil then
    local written = type(word) == "table" and ("(%s, %s)"):format(word[1], word[2]) or word
    fail_at(p, at, "'%s' is not an element of type %s", sub(written, 1, 60), sub(element, 1, 60))
  end
  return v
end

-- ---- bytes -------------------------------------------------------------------------------------------------------

local byte_of = {}
for v = 0, 255 do
  local low = ("%02x"):format(v)
  local first, second = low:sub(1, 1), low:sub(2)
  for _, digits in ipairs { low, low:upper(), first:upper() .. second, first .. second:upper() } do
    byte_of[digits] = string.char(v)
  end
end

local bits_of = {} -- a byte as eight bytes of 0 and 1, its lowest bit first
for v = 0, 255 do
  local list = {}
  for i = 0, 7 do
    list[i + 1] = string.char(v >> i & 1)
  end
  bits_of[string.char(v)] = table.concat(list)
end

-- The bytes of "0x...".
local function decode(p, at, body)
  local hex = sub(body, 3)
  if sub(body, 1, 2) ~= "0x" or #hex % 2 ~= 0 or find(hex, "%X") then
    fail_at(p, at, "this string is not an even number of hexadecimal digits after 0x")
  end
  return (hex:gsub("%x%x", byte_of))
end

local function one_of_bytes(row, bytes)
  if row.class == "complex" then
    local half = #bytes // 2
    return { one_of_bytes(row.part, sub(bytes, 1, half)), one_of_bytes(row.part, sub(bytes, half + 1)) }
  elseif row.class == "boolean" then
    return byte(bytes) ~= 0
  end
  local is_unsigned = row.class == "float" or row.sign == "u"
  local v = string.unpack((is_unsigned and "<I" or "<i") .. #bytes, bytes)
  return row.class == "float" and { bits = v } or v
end

-- Booleans come as one byte of each, or as one bit of each.
local function boolean_bytes(bytes, n)
  if #bytes == n then
    return find(bytes, "[^\0\1]") and bytes:gsub("[^\0]", "\1") or bytes
  elseif #bytes == (n + 7) // 8 then
    return bytes:gsub(".", bits_of):sub(1, n)
  end
  return nil
end

local function count(shape)
  local n = 1
  for _, size in ipairs(shape) do
    n = size < 0 and -1 or n * size
    if n < 0 then
      return nil
    end
  end
  return n
end

-- Fills in the elements of a constant from the bytes of a string.
local function set_bytes(p, at, a, row, bytes)
  local n = count(a.type.shape)
  local whole = n and row.class == "boolean" and boolean_bytes(bytes, n)
  if whole and n ~= 1 then
    a.bytes = whole
  elseif n and #bytes == row.bytes and n > 0 then
    a.splat = one_of_bytes(row, bytes)
  elseif n and row.class ~= "boolean" and #bytes == n * row.bytes then
    a.bytes = bytes
  else
    fail_at(p, at, "%d bytes do not fit the type of this constant", #bytes)
  end
end

-- ---- dense -------------------------------------------------------------------------------------------------------

local element_pattern = "^([%w.+-]+)()"

local function element_word(p)
  if accept(p, "(") then
    local re = take(p, element_pattern) or missing(p, "a number")
    need(p, ",")
    local im = take(p, element_pattern) or missing(p, "a number")
    need(p, ")")
    return { re, im }
  end
  return take(p, element_pattern) or missing(p, "an element")
end

-- Elements that are single words with commas behind them, as many as there are.
local function plain_elements(p, words)
  local s, at, n = p.s, p.at, #words
  while true do
    local _, stop, word = find(s, "^([%w.+-]+),[ \n\t\r]*", at)
    if not word then
      break
    end
    n = n + 1
    words[n] = word
    at = stop + 1
  end
  if at > p.at then
    move(p, at)
  end
end

local elements_in

-- One more item of a list: a list of the level below, or elements.
local function elements_item(p, literal, level)
  if is(p, "[") then
    if literal.rank then
      level = level < literal.rank and level or fail(p, "an element is needed, not a list")
    end
    elements_in(p, literal, level + 1)
    return 1
  end
  if (literal.rank or level) ~= level or literal[level + 1] then
    fail(p, "a list is needed, not an element")
  end
  literal.rank = level
  local before = #literal.words
  plain_elements(p, literal.words)
  literal.words[#literal.words + 1] = element_word(p)
  return #literal.words - before
end

-- Reads "[...]" of a dense constant: words of all levels into one list, the length of each level into `literal`.
function elements_in(p, literal, level)
  enter(p)
  local start, n = p.at, 0
  need(p, "[")
  if not accept(p, "]") then
    repeat
      n = n + elements_item(p, literal, level)
    until not accept(p, ",")
    need(p, "]")
  end
  if (literal[level] or n) ~= n then
    fail_at(p, start, "this list has %d elements, and others %d", n, literal[level])
  end
  literal[level] = n
  leave(p)
end

-- What stands in dense<...>, before its type is known.
local function dense_literal(p)
  local literal = { words = {}, at = p.at }
  if is(p, '"') then
    literal.blob = string_literal(p)
  elseif is(p, "[") then
    elements_in(p, literal, 1)
  elseif not is(p, ">") then
    literal.splat = element_word(p)
  end
  return literal
end

local function check_shape(p, literal, shape)
  local same = literal[#shape + 1] == nil and #shape > 0
  for i, size in ipairs(shape) do
    same = same and (literal[i] == size or literal[i] == nil and count(shape) == 0)
  end
  if not same then
    fail_at(p, literal.at, "the lists of this constant do not have the sizes of its type")
  end
end

local function set_elements(p, a, row, literal)
  local element = a.type.element
  if literal.blob then
    set_bytes(p, literal.at, a, row, decode(p, literal.at, literal.blob))
  elseif literal.splat then
    a.splat = converted(p, literal.at, row, element, literal.splat)
  elseif literal[1] then
    check_shape(p, literal, a.type.shape)
    local values = literal.words
    for i, word in ipairs(values) do
      values[i] = converted(p, literal.at, row, element, word)
    end
    a.values = values
  elseif count(a.type.shape) ~= 0 then
    fail_at(p, literal.at, "this constant has no elements, and its type has some")
  else
    a.values = {}
  end
end

local function constant_type(p)
  need(p, ":")
  local t = read_type(p)
  if t.kind == "tensor" and count(t.shape) == nil then
    fail(p, "the type of a constant has a size that is not known")
  end
  return t, t.kind == "tensor" and element_class(t.element)
end

local function dense(p)
  need(p, "<")
  local start = p.at
  local literal = dense_literal(p)
  local stop = p.at
  need(p, ">")
  local t, row = constant_type(p)
  if not row then
    return { opaque = "dense<" .. sub(p.s, start, stop) }
  end
  local a = { dense = true, type = t }
  set_elements(p, a, row, literal)
  p.made[a] = "constant"
  return a
end

-- Its bytes come at the end of the file.
local function dense_resource(p)
  local at = p.at
  need(p, "<")
  local name = is(p, '"') and string_literal(p) or take(p, "^([%w_$.%-]+)()") or missing(p, "the name of a resource")
  need(p, ">")
  local t, row = constant_type(p)
  if not row then
    return { opaque = "dense_resource<" .. name .. ">" }
  end
  local a = { dense = true, type = t, resource = name, elided = true }
  p.pending[#p.pending + 1] = { constant = a, row = row, at = at }
  p.made[a] = "constant"
  return a
end

-- ---- attributes --------------------------------------------------------------------------------------------------

-- Modes of attribute(): in generic form (nil) a type may follow after a colon. In "pretty" form a colon ends the
-- attributes of the operation, and bare words are those of enumerations.

local function key(p)
  if is(p, '"') then
    return string_literal(p)
  end
  return take(p, "^([%a_][%w_$.%-]*)()") or missing(p, "the name of an attribute")
end

local function dictionary_item(p, into, mode)
  local name = key(p)
  if not accept(p, "=") then
    into[name] = true
  else
    into[name] = attribute(p, mode)
  end
end

local function dictionary_until(p, close, into, mode)
  enter(p)
  while not accept(p, close) do
    dictionary_item(p, into, mode)
    if not accept(p, ",") then
      need(p, close)
      break
    end
  end
  leave(p)
  return into
end

local function dictionary(p, into, mode)
  need(p, "{")
  return dictionary_until(p, "}", into or {}, mode)
end

local number_patterns = { "^(%-?0x%x+)()", "^(%-?%d+%.%d*[eE][-+]?%d+)()", "^(%-?%d+%.%d*)()", "^(%-?%d+)()" }

local function number_word(p)
  for _, pattern in ipairs(number_patterns) do
    local word = take(p, pattern)
    if word then
      return word
    end
  end
  return missing(p, "a number")
end

-- A pattern of bits as the number that it is, where Lua knows the format.
local function plain_number(row, v)
  if type(v) == "table" and row.width == 32 then
    return (string.unpack("<f", string.pack("<I4", v.bits)))
  elseif type(v) == "table" and row.width == 64 then
    return (string.unpack("<d", string.pack("<i8", v.bits)))
  end
  return v
end

local function number(p, mode)
  local at = p.at
  local word = number_word(p)
  local element = find(word, ".", 1, true) and "f64" or "i64"
  if mode ~= "pretty" and accept(p, ":") then
    local t = read_type(p)
    element = t.text or element
  end
  local row = element_class(element)
  if not row then
    return { opaque = word .. " : " .. element }
  end
  return plain_number(row, converted(p, at, row, element, word))
end

local function array(p)
  need(p, "<")
  local t = read_type(p)
  local element = t.text or ""
  local row = element_class(element) or fail(p, "numbers of this type cannot be in an array")
  local list = {}
  if accept(p, ":") then
    local at = p.at
    repeat
      plain_elements(p, list)
      list[#list + 1] = take(p, element_pattern) or missing(p, "a number")
    until not accept(p, ",")
    for i, word in ipairs(list) do
      list[i] = plain_number(row, converted(p, at, row, element, word))
    end
  end
  need(p, ">")
  return list
end

local function conv_letter(p)
  local digits = take(p, "^(%d+)()")
  if digits then
    return math.tointeger(tonumber(digits)) or fail(p, "this dimension is too large")
  end
  return take(p, "^([%a?])()") or missing(p, "a dimension")
end

local function conv_side(p)
  need(p, "[")
  return list_until(p, "]", conv_letter)
end

local function conv(p)
  local lhs = conv_side(p)
  need(p, "x")
  local rhs = conv_side(p)
  need(p, "->")
  return { lhs = lhs, rhs = rhs, out = conv_side(p) }
end

-- One side of #stablehlo.conv<raw ...>.
local function raw_side(fields, side, first, first_name, second, second_name)
  local list = {}
  list[(fields[side .. first_name] or 0) + 1] = first
  list[(fields[side .. second_name] or 0) + 1] = second
  local spatial = fields[side .. "spatial_dimensions"]
  for i, at in ipairs(type(spatial) == "table" and spatial or {}) do
    list[at + 1] = i - 1
  end
  return list
end

-- The fields of #stablehlo.conv<raw ...> are integers, and lists of them.
local function check_raw(p, fields)
  for name, v in pairs(fields) do
    for _, at in ipairs(find(name, "spatial_dimensions$") and type(v) == "table" and v or { v }) do
      if math.type(at) ~= "integer" or at < 0 or at > most_deep then
        fail(p, "a field of these dimension numbers is not the number of a dimension")
      end
    end
  end
end

local function conv_attribute(p)
  if not accept_word(p, "raw") then
    local t = conv(p)
    need(p, ">")
    return t
  end
  local fields = dictionary_until(p, ">", {})
  check_raw(p, fields)
  return { lhs = raw_side(fields, "input_", "b", "batch_dimension", "f", "feature_dimension"),
    rhs = raw_side(fields, "kernel_", "i", "input_feature_dimension", "o", "output_feature_dimension"),
    out = raw_side(fields, "output_", "b", "batch_dimension", "f", "feature_dimension") }
end

-- Lists that are always there; the printer leaves empty ones out.
local field_lists = {
  gather = { "offset_dims", "collapsed_slice_dims", "operand_batching_dims", "start_indices_batching_dims",
    "start_index_map" },
  scatter = { "update_window_dims", "inserted_window_dims", "input_batching_dims", "scatter_indices_batching_dims",
    "scatter_dims_to_operand_dims" },
  dot = { "lhs_batching_dimensions", "rhs_batching_dimensions", "lhs_contracting_dimensions",
    "rhs_contracting_dimensions" },
}

local function with_lists(kind, fields)
  for _, name in ipairs(field_lists[kind] or {}) do
    fields[name] = fields[name] or {}
  end
  if kind == "gather" or kind == "scatter" then
    fields.index_vector_dim = fields.index_vector_dim or 0
  end
  return fields
end

local function bound(p)
  return accept(p, "?") and -1 or number(p, "pretty")
end

local our_dialects = { stablehlo = true, mhlo = true, chlo = true }

-- An attribute of our dialects after its name; nil if it has an unknown form.
local function our_attribute(p, kind)
  local enumeration = take(p, "^<%s*[%a_][%w_]*%s+([%u][%w_]*)%s*>()") or take(p, "^<%s*([%u][%w_]*)%s*>()")
  if enumeration then
    return enumeration
  elseif kind == "conv" then
    need(p, "<")
    return conv_attribute(p)
  elseif kind == "bounds" then
    need(p, "<")
    return { bounds = list_until(p, ">", bound) }
  elseif find(p.s, "^<%s*[%a_][%w_]*%s*=", p.at) or field_lists[kind] then
    need(p, "<")
    return with_lists(kind, dictionary_until(p, ">", {}))
  end
  return nil
end

-- An attribute after "#": an alias, or one of a dialect.
local function named_attribute(p)
  local start = p.at
  local name = take(p, "^(#[%w_.$%-]+)()") or missing(p, "an attribute")
  if not is(p, "<") then
    if p.aliases[name] or not find(name, ".", 1, true) then
      return alias(p, name, start).value
    end
    return { opaque = name }
  end
  local dialect, kind = name:match "^#([^.]*)%.?(.*)$"
  local a = our_dialects[dialect] and our_attribute(p, kind)
  return a or { opaque = name .. balanced(p) }
end

local words = {} -- attributes that start with a word
words["true"] = function() return true end
words["false"] = function() return false end
words.unit = function() return true end
words.dense = dense
words.dense_resource = dense_resource
words.array = array
for _, word in ipairs { "affine_map", "affine_set", "sparse", "opaque", "strided", "loc", "distinct" } do
  words[word] = function(p)
    if not is(p, "<") and not is(p, "(") and not is(p, "[") then
      missing(p, "a bracket")
    end
    return { opaque = word .. balanced(p) }
  end
end

local function word_attribute(p, mode)
  local word = word_here(p)
  if word and words[word] then
    move(p, p.at + #word)
    return words[word](p)
  elseif word and not is_type_word(word) and mode == "pretty" then
    move(p, p.at + #word)
    return word
  elseif not word or not is_type_word(word) then
    missing(p, "an attribute")
  end
  return { type = read_type(p) }
end

local function typed_string(p, mode)
  local v = string_literal(p)
  if mode ~= "pretty" and accept(p, ":") then
    read_type(p)
  end
  return v
end

local function nested_symbol(p)
  local name = symbol(p)
  while is(p, "::") do
    move(p, p.at + 2)
    name = name .. "::" .. symbol(p)
  end
  return { symbol = name }
end

local starts = { -- attributes by their first characters
  ['"'] = typed_string,
  ["@"] = nested_symbol,
  ["#"] = named_attribute,
  ["{"] = function(p, mode) return dictionary(p, nil, mode) end,
  ["["] = function(p, mode)
    need(p, "[")
    return list_until(p, "]", attribute, mode)
  end,
  ["<"] = function(p, mode)
    need(p, "<")
    return dictionary_until(p, ">", {}, mode)
  end,
  ["!"] = function(p) return { type = read_type(p) } end,
  ["("] = function(p) return { type = read_type(p) } end,
  ["-"] = number,
}
for digit = 0, 9 do
  starts[tostring(digit)] = number
end

function attribute(p, mode)
  enter(p)
  count_weight(p, 1)
  local read = starts[sub(p.s, p.at, p.at)] or word_attribute
  local v = read(p, mode)
  leave(p)
  return v
end

-- ---- locations ---------------------------------------------------------------------------------------------------

-- Goes past "loc(...)", if there is one, and gives its text, shortened.
local function location(p)
  if not find(p.s, "^loc%s*%(", p.at) then
    return nil
  end
  local start = p.at
  accept_word(p, "loc")
  local inside = balanced(p)
  local name = inside:match "^%(%s*(#[%w_.$%-]+)%s*%)$"
  if name and p.aliases[name] then
    local v = alias(p, name, start).value
    inside = type(v) == "table" and type(v.opaque) == "string" and sub(v.opaque, 1, 205):gsub("^loc", "") or ""
  end
  inside = sub(inside, 2, 201):gsub("%)$", "")
  return inside ~= "unknown" and inside ~= "" and inside or nil
end

-- ---- regions -----------------------------------------------------------------------------------------------------

local operation

local function block_argument(p)
  local a = { name = take(p, "^(%%[%w_$.%-]+)()") or missing(p, "an argument") }
  need(p, ":")
  a.type = read_type(p)
  if is(p, "{") then
    dictionary(p)
  end
  location(p)
  return a
end

local function operations(p)
  local ops = {}
  while not is(p, "}") do
    if is(p, "^") then
      fail(p, "a region of several blocks cannot be read")
    elseif p.at > #p.s then
      missing(p, "'}'")
    end
    ops[#ops + 1] = operation(p)
  end
  return ops
end

local function check_terminator(p, ops)
  if #ops > 0 and not find(ops[#ops].name, "return$") then
    fail(p, "a return is needed, not %s", shown(p))
  end
end

-- A region in braces. Its arguments are those given, or of its block.
local function region(p, args)
  enter(p)
  need(p, "{")
  local r = { args = args or {} }
  if not args and take(p, "^(%^[%w_$.%-]+)()") then
    if accept(p, "(") then
      r.args = list_until(p, ")", block_argument)
    end
    need(p, ":")
  end
  r.ops = operations(p)
  if not p.free then
    check_terminator(p, r.ops)
  end
  need(p, "}")
  leave(p)
  return r
end

-- ---- operations: what all of them have ---------------------------------------------------------------------------

local function result_name(p)
  local name = take(p, "^(%%[%w_$.%-]+)()") or missing(p, "the name of a result")
  local n = 1
  if accept(p, ":") then
    n = take(p, "^(%d%d?%d?%d?%d?%d?%d?)%f[%D]()") or missing(p, "a number of results")
    n = math.tointeger(tonumber(n))
  end
  return { name = name, n = n }
end

local function result_names(p)
  local list = {}
  if not is(p, "%") then
    return list
  end
  repeat
    list[#list + 1] = result_name(p)
  until not accept(p, ",")
  need(p, "=")
  return list
end

-- Names the results, when it is known how many there are.
local function name_results(p, op, names)
  local n = 0
  for _, row in ipairs(names) do
    n = n + row.n
  end
  if #names > 0 and n ~= #op.types then
    fail_at(p, op.at, "%s has %d results, and %d are named", op.name, #op.types, n)
  end
  for _, row in ipairs(names) do
    for i = 0, row.n - 1 do
      op.results[#op.results + 1] = i == 0 and row.name or row.name .. "#" .. i
    end
  end
end

local function check_operands(p, op)
  if #op.operand_types ~= #op.operands then
    fail_at(p, op.at, "%s has %d operands, and types of %d", op.name, #op.operands, #op.operand_types)
  end
end

-- The elements of a constant of integers or booleans as a list.
local function dense_list(p, op, a)
  local n = count(a.type.shape)
  if n > most_listed then
    fail_at(p, op.at, "an attribute of %s is a list of more than %d elements", op.name, most_listed)
  end
  local list = a.values or {}
  local row = element_class(a.type.element)
  count_weight(p, n)
  for i = 1, a.values and 0 or n do
    list[i] = a.splat
    if a.bytes then
      list[i] = one_of_bytes(row, sub(a.bytes, (i - 1) * row.bytes + 1, i * row.bytes))
    end
  end
  return list
end

local function pairs_of(list)
  local out = {}
  for i = 1, #list, 2 do
    out[#out + 1] = { list[i], list[i + 1] }
  end
  return out
end

-- Dense attributes of one dimension become lists, and the padding pairs.
local function plain_list(p, op, name, a)
  local row = element_class(a.type.element)
  local shape = a.type.shape
  if row.class ~= "integer" and row.class ~= "boolean" then
    return a
  elseif #shape == 1 then
    return dense_list(p, op, a)
  elseif name == "padding" and #shape == 2 and shape[2] == 2 then
    return pairs_of(dense_list(p, op, a))
  end
  return a
end

local function tidy_attributes(p, op)
  if not find(op.name, "^stablehlo%.") and not find(op.name, "^chlo%.") then
    return
  end
  for name, v in pairs(op.attributes) do
    if name ~= "value" and p.made[v] == "constant" and not v.elided then
      op.attributes[name] = plain_list(p, op, name, v)
    end
  end
end

-- ---- operations: the generic form --------------------------------------------------------------------------------

local function generic_name(p)
  local name = string_literal(p)
  if not find(name, "^[%w_$.%-]+$") then
    fail(p, "the name of an operation is needed before this")
  end
  return name
end

local free_regions = { ["builtin.module"] = true }

local function regions_in(p, op)
  local free = p.free
  p.free = free_regions[op.name]
  op.regions = list_until(p, ")", region)
  p.free = free
end

local function set_function_type(p, op)
  local t = read_type(p)
  if t.kind ~= "function" then
    fail_at(p, op.at, "the type of %s is not one of a function", op.name)
  end
  op.operand_types, op.types = t.inputs, t.results
end

local function generic_operation(p, op)
  op.name = generic_name(p)
  need(p, "(")
  op.operands = list_until(p, ")", use)
  if accept(p, "<") then
    dictionary(p, op.attributes)
    need(p, ">")
  end
  if accept(p, "(") then
    regions_in(p, op)
  end
  if is(p, "{") then
    dictionary(p, op.attributes)
  end
  need(p, ":")
  set_function_type(p, op)
end

-- ---- operations: the pretty forms --------------------------------------------------------------------------------

local function precision(format)
  local exponent, mantissa = tostring(format):match "^e(%d%d?)m(%d%d?)$"
  return math.tointeger(tonumber(exponent)), math.tointeger(tonumber(mantissa))
end

local readers = {} -- values after keywords that have a form of their own

-- batching_dims = [0] x [0]
local function dot_pair(p, op, first, second)
  local numbers = op.dot_numbers or {}
  op.dot_numbers = numbers
  op.attributes.dot_dimension_numbers = numbers
  numbers[first] = attribute(p, "pretty")
  need(p, "x")
  numbers[second] = attribute(p, "pretty")
end

function readers.batching_dims(p, op)
  dot_pair(p, op, "lhs_batching_dimensions", "rhs_batching_dimensions")
end

function readers.contracting_dims(p, op)
  dot_pair(p, op, "lhs_contracting_dimensions", "rhs_contracting_dimensions")
end

function readers.format(p, op)
  local at = p.at
  local exponent, mantissa = precision(attribute(p, "pretty"))
  if not exponent or not mantissa then
    fail_at(p, at, "a format like e5m10 is needed")
  end
  op.attributes.exponent_bits, op.attributes.mantissa_bits = exponent, mantissa
end

function readers.dim_numbers(p, op)
  op.attributes.dimension_numbers = conv(p)
end

local window_names = { stride = "window_strides", pad = "padding", lhs_dilate = "lhs_dilation",
  rhs_dilate = "rhs_dilation", reverse = "window_reversal" }

function readers.window(p, op)
  local window = dictionary(p, {}, "pretty")
  for name, v in pairs(window) do
    op.attributes[window_names[name] or name] = v
  end
  local reversal = op.attributes.window_reversal
  for i, v in ipairs(type(reversal) == "table" and reversal or {}) do
    reversal[i] = v ~= false and v ~= 0
  end
end

-- Rows of the pretty forms. `names`: attributes of keywords; `words`: of bare words, in their order; `symbol` and
-- `string`: of those; `brackets`: what they hold; `value`: a constant has its type with it; `readers`: keywords with a
-- reader of their own; `types`: what the types after the colon mean, "same" (one for all), "list" (of the operands, no
-- results), "each" (of the operands, and the results are like them), "select", "complex" or "tuple".
local forms = {
  constant = { value = true },
  iota = { names = { dim = "iota_dimension" } },
  dynamic_iota = { names = { dim = "iota_dimension" } },
  compare = { words = { "comparison_direction", "compare_type" } },
  select = { types = "select" },
  complex = { types = "complex" },
  tuple = { types = "tuple" },
  broadcast_in_dim = { names = { dims = "broadcast_dimensions" } },
  dynamic_broadcast_in_dim = { names = { dims = "broadcast_dimensions" } },
  broadcast = { names = { sizes = "broadcast_sizes" } },
  transpose = { names = { dims = "permutation" } },
  reverse = { names = { dims = "dimensions" } },
  concatenate = { names = { dim = "dimension" } },
  get_dimension_size = { names = { dim = "dimension" } },
  set_dimension_size = { names = { dim = "dimension" } },
  slice = { brackets = "ranges" },
  get_tuple_element = { brackets = "index" },
  dynamic_slice = { names = { sizes = "slice_sizes" } },
  pad = { names = { low = "edge_padding_low", high = "edge_padding_high", interior = "interior_padding" } },
  dot = { names = { precision = "precision_config" } },
  dot_general = { names = { precision = "precision_config" }, readers = { "batching_dims", "contracting_dims" } },
  convolution = { readers = { "dim_numbers", "window" } },
  dynamic_conv = { readers = { "dim_numbers", "window" } },
  reduce_precision = { readers = { "format" } },
  fft = { names = { type = "fft_type", length = "fft_length" } },
  rng = { names = { distribution = "rng_distribution" } },
  rng_bit_generator = { names = { algorithm = "rng_algorithm" } },
  einsum = { names = { config = "einsum_config" } },
  unary_einsum = { names = { config = "einsum_config" } },
  optimization_barrier = { types = "each" },
  custom_call = { symbol = "call_target_name", plain_symbol = true },
  composite = { string = "name" },
  ["return"] = { types = "list" },
}
local by_name = { ["func.call"] = { symbol = "callee" }, ["func.return"] = { types = "list" },
  ["interpreter.print"] = { types = "list" }, ["sdy.return"] = { types = "list" } }
for name, row in pairs(forms) do
  by_name["stablehlo." .. name] = row
end
for _, row in pairs(by_name) do
  local set = {}
  for _, keyword in ipairs(row.readers or {}) do
    set[keyword] = readers[keyword]
  end
  row.reader_of = set
end
local check_form = { types = "list", reader_of = {} }
local plain_form = { reader_of = {} }

local function form_of(name)
  return by_name[name] or find(name, "^check%.") and check_form or plain_form
end

local function index(p)
  local at = p.at
  local v = number(p, "pretty")
  return math.type(v) == "integer" and v or fail_at(p, at, "an integer is needed")
end

local function range(p)
  local start = index(p)
  need(p, ":")
  local limit = index(p)
  return { start, limit, accept(p, ":") and index(p) or 1 }
end

-- Brackets after operands: the ranges of a slice, or the index of a tuple's element.
local function brackets(p, op, row)
  if not row.brackets then
    op.attributes.brackets = { opaque = balanced(p) }
    return
  end
  need(p, "[")
  if row.brackets == "ranges" then
    local ranges = list_until(p, "]", range)
    for i, name in ipairs { "start_indices", "limit_indices", "strides" } do
      local list = {}
      for k, one in ipairs(ranges) do
        list[k] = one[i]
      end
      op.attributes[name] = list
    end
  else
    op.attributes.index = index(p)
    need(p, "]")
  end
end

local function keyword(p, op, row, word)
  local read = row.reader_of[word]
  if read then
    read(p, op)
  else
    local name = row.names and row.names[word] or word
    op.attributes[name] = attribute(p, "pretty")
  end
end

local function positional(p, op, row, word)
  local list = row.words
  op.positional = op.positional + 1
  local name = list and list[op.positional]
  if not name then
    fail_at(p, p.at, "%s does not take the word '%s'", op.name, sub(word, 1, 60))
  end
  op.attributes[name] = word
end

-- Words that are no keyword and no operand, but followed by a bracket.
local leading = { attributes = "^%s*{", inits = "^%s*%(" }

local function leading_word(p, op, word)
  move(p, p.at + #word)
  if word == "attributes" then
    dictionary(p, op.attributes)
  else
    op.inits = #op.operands
  end
end

-- An item that starts with a word; false if it belongs to what comes behind the operation.
local function word_item(p, op, row, fresh)
  local word = word_here(p)
  if not word then
    return false
  elseif fresh and (word == "dense" or word == "dense_resource") then
    op.attributes.value = attribute(p)
  elseif leading[word] and find(p.s, leading[word], p.at + #word) then
    leading_word(p, op, word)
  elseif find(p.s, "^%s*=", p.at + #word) then
    move(p, p.at + #word)
    need(p, "=")
    keyword(p, op, row, word)
  elseif fresh and row.words then
    positional(p, op, row, word)
    move(p, p.at + #word)
  else
    return false
  end
  return true
end

local items -- the loop

local item_starts = {}

item_starts["%"] = function(p, op, _, fresh)
  if not fresh then
    return false
  end
  op.operands[#op.operands + 1] = use(p)
  return true
end

item_starts["("] = function(p, op, row)
  enter(p)
  need(p, "(")
  if is(p, "{") then
    regions_in(p, op)
  else
    items(p, op, row)
    need(p, ")")
  end
  leave(p)
  return true
end

item_starts["["] = function(p, op, row)
  brackets(p, op, row)
  return true
end

-- These may be followed by operands without a comma.
item_starts["{"] = function(p, op)
  if find(p.s, "^{%s*%^", p.at) then
    op.regions[#op.regions + 1] = region(p)
    return true
  end
  dictionary(p, op.attributes)
  return true, true
end

item_starts["@"] = function(p, op, row)
  local v = nested_symbol(p)
  op.attributes[row.symbol or "symbol"] = row.plain_symbol and v.symbol or v
  return true, true
end

item_starts['"'] = function(p, op, row)
  op.attributes[row.string or "string"] = string_literal(p)
  return true, true
end

item_starts["#"] = function(p, op, _, fresh)
  if fresh then
    op.attributes.value = attribute(p)
  end
  return fresh
end

item_starts["<"] = function(p, op)
  op.attributes.brackets = { opaque = balanced(p) }
  return true, true
end

-- The common loop of the pretty forms: operands, keywords with values, words, brackets. `fresh` says that an operand or
-- a word may come, since nothing or a comma is before it.
function items(p, op, row)
  local fresh = true
  while true do
    local read = item_starts[sub(p.s, p.at, p.at)] or word_item
    local found, next_fresh = read(p, op, row, fresh)
    if not found then
      return
    end
    fresh = accept(p, ",") or next_fresh or false
  end
end

-- ---- types of the pretty forms -----------------------------------------------------------------------------------

local function repeated(t, n)
  local list = {}
  for i = 1, n do
    list[i] = t
  end
  return list
end

-- For results that have a type of their own: operand types of the rule, or nil if they do not fit.
local rules = {}

function rules.same(list, op)
  if #list == 1 then
    return repeated(list[1], #op.operands), { list[1] }
  end
  return nil
end

function rules.list(list, op)
  return #list == 1 and repeated(list[1], #op.operands) or list, {}
end

function rules.each(list)
  return list, list
end

function rules.select(list)
  if #list == 2 then
    return { list[1], list[2], list[2] }, { list[2] }
  end
  return nil
end

-- The operands of complex are the parts of its result.
function rules.complex(list, op)
  local t = list[1]
  local part = t.kind == "tensor" and t.element:match "^complex<(.*)>$"
  if not part or #list > 1 then
    return nil
  end
  local operand = { kind = "tensor", element = part, dtype = dtypes[part], shape = t.shape }
  return repeated(operand, #op.operands), { t }
end

function rules.tuple(list)
  if #list == 1 and list[1].kind == "tuple" then
    return list[1].types, list
  end
  return nil
end

-- The types after the colon of a pretty form.
local function pretty_types(p, op, row)
  local list = {}
  repeat
    list[#list + 1] = read_type(p)
  until not accept(p, ",")
  if accept(p, "->") then
    op.operand_types, op.types = #list == 1 and repeated(list[1], #op.operands) or list, result_types(p)
  elseif #list == 1 and list[1].kind == "function" then
    op.operand_types, op.types = list[1].inputs, list[1].results
  else
    op.operand_types, op.types = rules[row.types or "same"](list, op)
  end
  if not op.operand_types then
    fail_at(p, op.at, "the types of %s do not fit its form", op.name)
  end
end

local function set_constant_type(p, op, value)
  if p.made[value] ~= "constant" then
    fail_at(p, op.at, "a constant of tensor type is needed")
  end
  op.operand_types, op.types = {}, { value.type }
end

-- Types of check operations that end with a constant are those of the constant.
local function types_of_value(p, op, value)
  op.types = {}
  op.operand_types = repeated(p.made[value] and value.type, #op.operands)
end

-- Four lists always, and the parts of a scan.
local function complete(op)
  if op.name == "stablehlo.dot_general" then
    op.attributes.dot_dimension_numbers = with_lists("dot", op.dot_numbers or {})
    op.dot_numbers = nil
  end
  if op.inits then
    op.attributes.operandSegmentSizes = { op.inits, #op.operands - op.inits }
    op.inits = nil
  end
end

local function common_operation(p, op)
  local row = form_of(op.name)
  op.positional = 0
  items(p, op, row)
  local value = op.attributes.value
  if accept(p, ":") then
    pretty_types(p, op, row)
  elseif row.value and value ~= nil then
    set_constant_type(p, op, value)
  elseif row == check_form and value ~= nil then
    types_of_value(p, op, value)
  elseif #op.operands > 0 then
    missing(p, "':'")
  else
    op.operand_types, op.types = {}, {}
  end
  if is(p, "{") then
    dictionary(p, op.attributes)
  end
  op.positional = nil
  complete(op)
end

-- ---- reduce ------------------------------------------------------------------------------------------------------

local function reduce_operands(p, op)
  local inits = {}
  repeat
    need(p, "(")
    op.operands[#op.operands + 1] = use(p)
    if not accept_word(p, "init") then
      missing(p, "'init'")
    end
    need(p, ":")
    inits[#inits + 1] = use(p)
    need(p, ")")
  until not accept(p, ",")
  table.move(inits, 1, #inits, #op.operands + 1, op.operands)
  return #inits
end

-- The region of "applies stablehlo.add".
local function compact_region(op, name, t)
  local function made(values)
    for k, v in pairs { regions = {}, attributes = {}, line = op.line, column = op.column } do
      values[k] = v
    end
    return values
  end
  return { args = { { name = "%lhs", type = t }, { name = "%rhs", type = t } }, ops = {
    made { name = name, operands = { "%lhs", "%rhs" }, operand_types = { t, t }, results = { "%res" }, types = { t } },
    made { name = "stablehlo.return", operands = { "%res" }, operand_types = { t }, results = {}, types = {} },
  } }
end

local function dimensions(p, op)
  if not accept_word(p, "across") then
    missing(p, "'across'")
  elseif not accept_word(p, "dimensions") then
    missing(p, "'dimensions'")
  end
  need(p, "=")
  op.attributes.dimensions = attribute(p, "pretty")
  if is(p, "{") then
    dictionary(p, op.attributes)
  end
  need(p, ":")
  set_function_type(p, op)
end

-- reducer(%a: t, %b: t) (%c: u, %d: u) {...}: the region has the first of all groups, then the second of all.
local function reducer(p, n)
  local args = {}
  for i = 1, n do
    need(p, "(")
    args[i] = block_argument(p)
    need(p, ",")
    args[n + i] = block_argument(p)
    need(p, ")")
  end
  if accept_word(p, "attributes") then
    dictionary(p)
  end
  return region(p, args)
end

local function reduce(p, op)
  local n = reduce_operands(p, op)
  local name
  if accept_word(p, "applies") then
    name = take(p, word_pattern) or missing(p, "the name of an operation")
  end
  dimensions(p, op)
  if not name then
    if not accept_word(p, "reducer") then
      missing(p, "'reducer'")
    end
    op.regions[1] = reducer(p, n)
  elseif n ~= 1 or #op.operand_types ~= 2 then
    fail_at(p, op.at, "a reduction of one operand is needed before 'applies'")
  else
    op.regions[1] = compact_region(op, name, op.operand_types[2])
  end
end

-- ---- while -------------------------------------------------------------------------------------------------------

local function assignment(p, op)
  local name = take(p, "^(%%[%w_$.%-]+)()") or missing(p, "an argument")
  need(p, "=")
  op.operands[#op.operands + 1] = use(p)
  return name
end

local function region_after(p, word, names, types)
  if not accept_word(p, word) then
    missing(p, "'" .. word .. "'")
  end
  local args = {}
  for i, name in ipairs(names) do
    args[i] = { name = name, type = types[i] }
  end
  return region(p, args)
end

local function while_loop(p, op)
  need(p, "(")
  local names = list_until(p, ")", assignment, op)
  local types = {}
  if accept(p, ":") then
    repeat
      types[#types + 1] = read_type(p)
    until not accept(p, ",")
  end
  op.operand_types, op.types = types, types
  check_operands(p, op)
  if accept_word(p, "attributes") then
    dictionary(p, op.attributes)
  end
  op.regions[1] = region_after(p, "cond", names, types)
  op.regions[2] = region_after(p, "do", names, types)
end

-- ---- operations --------------------------------------------------------------------------------------------------

local short_names = { call = "func.call", ["return"] = "func.return" }
local special = { ["stablehlo.reduce"] = reduce, ["stablehlo.while"] = while_loop }

local function pretty_operation(p, op)
  local word = word_here(p)
  op.name = short_names[word] or word
  if not word or not find(op.name, ".", 1, true) then
    missing(p, "an operation")
  end
  move(p, p.at + #word)
  local read = special[op.name] or common_operation
  read(p, op)
end

function operation(p)
  local op = { operands = {}, results = {}, attributes = {}, regions = {}, at = p.at }
  op.line, op.column = position(p, p.at)
  local names = result_names(p)
  if is(p, '"') then
    generic_operation(p, op)
  else
    pretty_operation(p, op)
  end
  check_operands(p, op)
  name_results(p, op, names)
  tidy_attributes(p, op)
  op.where = location(p)
  op.at = nil
  return op
end

-- ---- functions and modules ---------------------------------------------------------------------------------------

local function add_function(p, module, f, at)
  if module.functions[f.name] then
    fail_at(p, at, "the function @%s is defined twice", f.name)
  end
  module.functions[f.name] = f
  module.order[#module.order + 1] = f.name
end

-- An argument of a function; one of a declaration has only a type.
local function function_argument(p)
  local a = { attributes = {} }
  if is(p, "%") then
    a.name = take(p, "^(%%[%w_$.%-]+)()") or missing(p, "an argument")
    need(p, ":")
  end
  a.type = read_type(p)
  if is(p, "{") then
    dictionary(p, a.attributes)
  end
  location(p)
  return a
end

local function function_results(p)
  if not accept(p, "->") then
    return {}
  elseif accept(p, "(") then
    return list_until(p, ")", function_argument)
  end
  return { { type = read_type(p), attributes = {} } }
end

local function name_arguments(p, f)
  for i, a in ipairs(f.args) do
    if f.body and not a.name then
      fail(p, "the function @%s has an argument without a name", f.name)
    end
    a.name = a.name or "%arg" .. i - 1
  end
end

local function body_of(p, f)
  local body = region(p, {})
  for i, a in ipairs(f.args) do
    body.args[i] = { name = a.name, type = a.type }
  end
  if #body.ops == 0 then
    fail(p, "the function @%s has no return", f.name)
  end
  return body
end

local function read_function(p, module, at)
  local f = { private = false }
  f.line, f.column = position(p, at)
  local visibility = word_here(p)
  if visibility == "public" or visibility == "private" or visibility == "nested" then
    move(p, p.at + #visibility)
    f.private = visibility == "private"
  end
  f.name = symbol(p)
  need(p, "(")
  f.args = list_until(p, ")", function_argument)
  f.results = function_results(p)
  if accept_word(p, "attributes") then
    f.attributes = dictionary(p)
  end
  if is(p, "{") then
    f.body = body_of(p, f)
  end
  name_arguments(p, f)
  location(p)
  add_function(p, module, f, at)
end

local function attributes_at(list, i)
  local a = type(list) == "table" and list[i]
  return type(a) == "table" and a or {}
end

local function described(types, list, args)
  local out = {}
  for i, t in ipairs(types) do
    out[i] = { type = t, attributes = attributes_at(list, i), name = args and (args[i] and args[i].name
      or "%arg" .. i - 1) }
  end
  return out
end

-- A function that was written in the generic form.
local function generic_function(p, module, op, at)
  local a = op.attributes
  local t = type(a.function_type) == "table" and a.function_type.type
  if type(a.sym_name) ~= "string" or p.made[t] ~= "function" then
    fail_at(p, at, "a function has no name or no type")
  end
  local body = op.regions[1]
  body = body and #body.ops > 0 and body or nil
  if body and #body.args ~= #t.inputs then
    fail_at(p, at, "the function @%s has %d arguments, and its type %d", a.sym_name, #body.args, #t.inputs)
  end
  add_function(p, module, { name = a.sym_name, private = a.sym_visibility == "private", line = op.line,
    column = op.column, args = described(t.inputs, a.arg_attrs, body and body.args or {}),
    results = described(t.results, a.res_attrs), body = body }, at)
end

local function generic_top(p, module, op, at)
  if op.name == "func.func" then
    generic_function(p, module, op, at)
  elseif op.name == "builtin.module" then
    for _, inner in ipairs(op.regions[1] and op.regions[1].ops or {}) do
      generic_top(p, module, inner, at)
    end
    for name, v in pairs(op.attributes) do
      module.attributes[name] = v
    end
  end
end

local top_items

local function read_module(p, module)
  enter(p)
  if is(p, "@") then
    local name = symbol(p)
    module.symbol = module.symbol or name
  end
  if accept_word(p, "attributes") then
    dictionary(p, module.attributes)
  end
  need(p, "{")
  top_items(p, module)
  need(p, "}")
  location(p)
  leave(p)
end

-- A mesh of devices, which nobody needs.
local function read_mesh(p)
  symbol(p)
  need(p, "=")
  if not is(p, "<") then
    missing(p, "'<'")
  end
  balanced(p)
  location(p)
end

local top_words = { module = read_module, ["builtin.module"] = read_module, func = read_function,
  ["func.func"] = read_function, ["sdy.mesh"] = read_mesh }

local function top_item(p, module)
  local at = p.at
  local word = word_here(p)
  if word and top_words[word] then
    move(p, at + #word)
    top_words[word](p, module, at)
  elseif is(p, "#") or is(p, "!") then
    skip_definition(p)
  elseif is(p, '"') then
    generic_top(p, module, operation(p), at)
  else
    missing(p, "a function or a module")
  end
end

-- What stands in a file or a module.
function top_items(p, module)
  while p.at <= #p.s and not is(p, "}") and not is(p, "{-#") do
    top_item(p, module)
  end
end

-- ---- resources ---------------------------------------------------------------------------------------------------

local function resource_section(p, into)
  enter(p)
  need(p, "{")
  while not accept(p, "}") do
    local name = key(p)
    need(p, ":")
    if is(p, "{") then
      resource_section(p, into)
    elseif is(p, '"') then
      into[name] = { at = p.at, text = string_literal(p) }
    else
      attribute(p, "pretty")
    end
    if not accept(p, ",") then
      need(p, "}")
      break
    end
  end
  leave(p)
end

local function resources(p)
  local found = {}
  if accept(p, "{-#") then
    while not accept(p, "#-}") do
      key(p)
      need(p, ":")
      resource_section(p, found)
      accept(p, ",")
    end
  end
  return found
end

-- Gives constants their bytes: 4 bytes of an alignment come before them.
local function bind_resources(p, found)
  for _, row in ipairs(p.pending) do
    local a = row.constant
    local resource = found[a.resource]
    if resource then
      resource.bytes = resource.bytes or sub(decode(p, resource.at, resource.text), 5)
      count_weight(p, row.row.class == "boolean" and #resource.bytes or 0)
      set_bytes(p, row.at, a, row.row, resource.bytes)
      a.elided = nil
    end
  end
end

-- ---- the module --------------------------------------------------------------------------------------------------

---The programs of a file that has several: its parts between lines "// -----".
function text.split(source)
  local list, start, at = {}, 1, 1
  while at do
    local _, stop = find(source, "^// %-%-%-%-%-[^\n]*", at)
    if stop then
      list[#list + 1] = sub(source, start, at - 1)
      start = stop + 1
    end
    at = find(source, "\n", at, true)
    at = at and at + 1
  end
  list[#list + 1] = sub(source, start)
  return list
end

---Reads one module. Errors are strings "NAME:LINE:COLUMN: what".
function text.read(source, name)
  local p = { s = source, name = name or "stablehlo", at = 1, depth = 0, line = 1, line_start = 1, weight = 0,
    most_weight = #source + 1000000, pending = {}, made = {} }
  p.aliases = scan_aliases(p)
  local module = { functions = {}, order = {}, attributes = {}, name = name }
  move(p, 1)
  top_items(p, module)
  bind_resources(p, resources(p))
  if p.at <= #source then
    missing(p, "the end")
  end
  return module
end

return text
