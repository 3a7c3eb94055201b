-- Texts of documents: their lines, positions of clients as bytes, names at a place, functions as ranges of lines.
--
-- Lines and bytes count from 1 here; the protocol's lines from 0, its characters from 0 in units of UTF-16, or bytes
-- where the client can take them.

local text = {}

---@param s string
---@return string[]
function text.lines(s)
  local lines, at = {}, 1
  while true do
    local stop = s:find("\n", at, true)
    local line = s:sub(at, (stop or #s + 1) - 1)
    lines[#lines + 1] = line:sub(-1) == "\r" and line:sub(1, -2) or line
    if not stop then
      return lines
    end
    at = stop + 1
  end
end

-- ---- characters ----

-- Units of UTF-16 in a character of so many bytes; a byte that is none counts as one.
local function size_at(line, at)
  local c = line:byte(at)
  local n = c < 0xc2 and 1 or c < 0xe0 and 2 or c < 0xf0 and 3 or c < 0xf5 and 4 or 1
  if n > 1 and not utf8.len(line, at, at) then
    n = 1
  end
  return n, n == 4 and 2 or 1
end

-- From the beginning of a line to byte `at` or unit `character`, whichever comes first: both of the place there.
local function go(line, at, character)
  local i, units = 1, 0
  while i < at and units < character and i <= #line do
    local n, more = size_at(line, i)
    i, units = i + n, units + more
  end
  return i, units
end

---The character, from 0, at byte `at` of the line.
function text.character(line, at, utf16)
  if not utf16 or not line:find "[\x80-\xff]" then
    return at - 1
  end
  local _, units = go(line, at, math.huge)
  return units
end

---The byte at which this character begins; behind the end of the line that of its end.
function text.byte(line, character, utf16)
  if not utf16 or not line:find "[\x80-\xff]" then
    return math.min(character, #line) + 1
  end
  local i = go(line, math.huge, character)
  return i
end

-- ---- names ----

---Is the byte inside a comment or a string of this line? Long ones are not seen.
function text.is_no_code(line, at)
  local i, quote = 1, nil
  while i < at do
    local c = line:sub(i, i)
    if quote and c == "\\" then
      i = i + 1
    elseif quote then
      quote = c ~= quote and quote or nil
    elseif c == '"' or c == "'" then
      quote = c
    elseif c == "-" and line:sub(i, i + 1) == "--" then
      return true
    end
    i = i + 1
  end
  return quote ~= nil
end

---How far back names are looked for: patterns that try each byte of a line for a begin take its square.
text.NEAR = 300

---@class deepc.language.Name
---@field word string
---@field from integer its first byte
---@field to integer its last
---@field chain string? what stands before it and the sign: "self.first"
---@field sign "."|":"|nil
---@field full string the chain with the word, where the sign is no colon

---The name at byte `at`, or that ends before it.
---@return deepc.language.Name?
function text.name_at(line, at)
  local from, to = at, at - 1
  while from > 1 and line:find("^[%w_]", from - 1) do
    from = from - 1
  end
  while line:find("^[%w_]", to + 1) do
    to = to + 1
  end
  local word = line:sub(from, to)
  if not word:find "^[%a_]" or text.is_no_code(line, from) then
    return nil
  end
  local before = line:sub(math.max(1, from - text.NEAR), from - 1)
  local chain, sign = before:match "([%a_][%w_.]*)%s*([.:])$"
  if not sign then -- the value of a call has a method: f(x):sum
    sign = before:match "[^.]%s*([.:])$" or before:match "^%s*([.:])$"
  end
  return {
    word = word, from = from, to = to, chain = chain, sign = sign,
    full = sign == "." and chain and chain .. "." .. word or word,
  }
end

---Is the name set where it stands: local x =, x, y =, for x in, function(x)?
function text.is_set(line, name)
  local before, after = line:sub(1, name.from - 1), line:sub(name.to + 1)
  if after:find "^%s*=[^=]" or after:find "^%s*=$" or after:find "^%s*<%w+>" then
    return true
  elseif before:find "%f[%w_]local%s+[%w_%s,<>]*$" or before:find "%f[%w_]for%s+[%w_%s,]*$" then
    return true
  elseif before:find "%f[%w_]function%s*[%w_.:]*%([%w_%s,]*$" then
    return true
  end
  return before:find "^%s*[%w_.,%s]*$" ~= nil and after:find "^%s*,[%w_.,%s]*=[^=]" ~= nil
end

-- ---- functions ----

local openers = { ["function"] = true, ["if"] = true, ["do"] = true, ["repeat"] = true }

-- Words outside of strings and comments, each with its line: see(word, line).
local function each_word(s, see)
  local at, line = 1, 1
  local function skip_to(stop)
    local _, n = s:sub(at, stop):gsub("\n", "")
    line, at = line + n, stop + 1
  end
  while at <= #s do
    local from, to = s:find("^[%a_][%w_]*", at)
    local level = s:match("^%[(=*)%[", at) or s:match("^%-%-%[(=*)%[", at)
    if from then
      see(s:sub(from, to), line)
      at = to + 1
    elseif level then
      local _, stop = s:find("]" .. level .. "]", at, true)
      skip_to(stop or #s)
    elseif s:find("^%-%-", at) then
      skip_to((s:find("\n", at, true) or #s + 1) - 1)
    elseif s:find("^[\"']", at) then
      local quote, i = s:sub(at, at), at + 1
      while i <= #s and s:sub(i, i) ~= quote and s:sub(i, i) ~= "\n" do
        i = i + (s:sub(i, i) == "\\" and 2 or 1)
      end
      skip_to(math.min(i, #s))
    else
      skip_to(at)
    end
  end
end

---The functions of a script, inner ones behind those that they stand in: { from, to }, lines.
---@param s string
---@return { [1]: integer, [2]: integer }[]
function text.functions(s)
  local found, open = {}, {}
  each_word(s, function(word, line)
    if openers[word] then
      local block = { line, math.huge, word = word }
      open[#open + 1] = block
      if word == "function" then
        found[#found + 1] = block
      end
    elseif (word == "end" or word == "until") and #open > 0 then
      table.remove(open)[2] = line
    end
  end)
  return found
end

return text
