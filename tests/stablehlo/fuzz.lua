-- Programs of StableHLO that are mostly right: those of a folder, text (*.mlir) and portable artifacts (*.bc), with a
-- few changes that keep what they are made of. Each is read and made a typed function, or refused in a sentence:
--
--   deepc tests/stablehlo/fuzz.lua FOLDER SECONDS [SEED]
--
-- Tokens of text are left out, doubled, exchanged, taken from another program, or are other numbers; of an artifact a
-- section is changed and its length with it: numbers, ranges, strings, indices. The input is in FOLDER/fuzz-input while
-- it is read. What is found: an error of Lua, an error without a code, more than ten seconds, and what sanitizers see.
-- Ends with how many were read, how many were functions, and "N passed, N failed".
local dc = require "deepc"
local stablehlo = require "deepc.stablehlo"

local folder, seconds, seed = arg[1], tonumber(arg[2]), tonumber(arg[3] or os.time())
math.randomseed(seed)
print("seed " .. seed)

local function read_file(path)
  local f <close> = assert(io.open(path, "rb"))
  return f:read "a"
end

local texts, artifacts = {}, {}
for path in io.popen(("ls %s/*.mlir %s/*.bc"):format(folder, folder)):lines() do
  local list = path:find "%.bc$" and artifacts or texts
  list[#list + 1] = read_file(path)
end

local function one_of(list)
  return list[math.random(#list)]
end

local numbers <const> = { "0", "1", "-1", "2", "127", "128", "255", "256", "65535", "2147483647", "2147483648",
  "-2147483648", "4294967295", "9223372036854775807", "9223372036854775808", "-9223372036854775808", "1.0e400",
  "0xFF800000", "0x", "1e-400" }

-- ---- text ----------------------------------------------------------------------------------------

-- Words, numbers, strings and single signs, with the blanks before them.
local function split(text)
  local list, at = {}, 1
  while at <= #text do
    local _, stop = text:find("^%s*[%w_.%%@#!^$]+", at)
    if not stop then
      _, stop = text:find('^%s*"[^"\n]*"', at)
    end
    stop = stop or select(2, text:find("^%s*%S", at)) or #text
    list[#list + 1] = text:sub(at, stop)
    at = stop + 1
  end
  return list
end

local function range(n, longest)
  local first = math.random(n)
  return first, math.min(n, first + math.random(0, longest))
end

local text_changes = {
  function(t) table.remove(t, math.random(#t)) end,
  function(t) table.insert(t, math.random(#t), one_of(t)) end,
  function(t)
    local a, b = math.random(#t), math.random(#t)
    t[a], t[b] = t[b], t[a]
  end,
  function(t) t[math.random(#t)] = " " .. one_of(numbers) end,
  function(t)
    for _ = 1, 50 do
      local i = math.random(#t)
      if t[i]:find "%d" then
        t[i] = t[i]:gsub("%d+", one_of(numbers), 1)
        return
      end
    end
  end,
  function(t)
    local first, last = range(#t, 60)
    local part = table.move(t, first, last, 1, {})
    table.move(t, first, #t, last + 1)
    table.move(part, 1, #part, first, t)
  end,
  function(t)
    local other = split(one_of(texts))
    local first, last = range(#other, 20)
    local at = math.random(#t)
    for i = last, first, -1 do
      table.insert(t, at, other[i])
    end
  end,
  function(t)
    local first, last = range(#t, 15)
    for _ = first, last do
      table.remove(t, first)
    end
  end,
}

local function changed_text()
  local t = split(one_of(texts))
  for _ = 1, math.random(3) do
    if #t > 0 then
      one_of(text_changes)(t)
    end
  end
  return table.concat(t)
end

-- ---- artifacts -----------------------------------------------------------------------------------

local function varint(v)
  if v < 0 then
    return "\0" .. ("<i8"):pack(v)
  elseif v < 0x80 then
    return string.char(v << 1 | 1)
  elseif v < 0x4000 then
    return ("<I2"):pack(v << 2 | 2)
  elseif v < 0x20000000 then
    return ("<I4"):pack(v << 3 | 4)
  end
  return "\0" .. ("<i8"):pack(v)
end

local function read_varint(data, at)
  local first = data:byte(at)
  if not first then
    return nil
  elseif first == 0 then
    return ("<i8"):unpack(data .. ("\0"):rep(9), at + 1), at + 9
  end
  local extra = 0
  while first >> extra & 1 == 0 do
    extra = extra + 1
  end
  local v = ("<I8"):unpack(data .. ("\0"):rep(9), at) & ((1 << 8 * (extra + 1)) - 1)
  return v >> (extra + 1), at + extra + 1
end

-- The head of an artifact, and its sections as { id, bytes }; sections with an alignment keep their place alone.
local function sections_of(data)
  local zero = data:find("\0", 6, true)
  if not zero then
    return nil
  end
  local list, at = {}, zero + 1
  while at <= #data do
    local id = data:byte(at)
    local length, from = read_varint(data, at + 1)
    if not length or id >= 0x80 or from + length - 1 > #data then
      return nil
    end
    list[#list + 1] = { id, data:sub(from, from + length - 1) }
    at = from + length
  end
  return data:sub(1, zero), list
end

local edges <const> = { 0, 1, 2, 3, 63, 64, 127, 128, 255, 16383, 16384, 1 << 28, 1 << 29, (1 << 31) - 1, 1 << 32,
  math.maxinteger, -1 }

local function put(s, at, v)
  local _, after = read_varint(s, at)
  return s:sub(1, at - 1) .. varint(v) .. s:sub(after or at + 1)
end

local byte_changes = {
  function(s, at) return put(s, at, math.random(0, 40)) end,
  function(s, at) return put(s, at, one_of(edges)) end,
  function(s, at) return s:sub(1, at - 1) .. string.char(math.random(0, 255)) .. s:sub(at + 1) end,
  function(s, at) return s:sub(1, at - 1) .. string.char(s:byte(at) ~ (1 << math.random(0, 7))) .. s:sub(at + 1) end,
  function(s, at) return s:sub(1, at - 1) .. s:sub(at + math.random(8)) end,
  function(s, at) return s:sub(1, at) .. s:sub(at, at + math.random(0, 30)) .. s:sub(at + 1) end,
  function(s, at)
    local from = math.random(#s)
    return s:sub(1, at - 1) .. s:sub(from, from + math.random(0, 12)) .. s:sub(at + 1)
  end,
}

local function changed_artifact()
  local head, list = sections_of(one_of(artifacts))
  if not head then
    return one_of(artifacts):sub(1, math.random(2000))
  end
  for _ = 1, math.random(3) do
    local s = one_of(list)
    if #s[2] > 0 then
      s[2] = one_of(byte_changes)(s[2], math.random(#s[2]))
    end
  end
  if math.random(40) == 1 then -- a section of another program
    local _, other = sections_of(one_of(artifacts))
    if other then
      local i = math.random(#list)
      for _, s in ipairs(other) do
        list[i] = s[1] == list[i][1] and s or list[i]
      end
    end
  end
  local out = { head }
  for _, s in ipairs(list) do
    out[#out + 1] = string.char(s[1]) .. varint(#s[2]) .. s[2]
  end
  return table.concat(out)
end

-- ---- what is tried -------------------------------------------------------------------------------

local function nothing() end

local custom = { ["check.expect_eq"] = nothing, ["check.expect_close"] = nothing, ["check.expect_almost_eq"] = nothing }

-- Whether it is a function, and the error if it is none.
local function try(input)
  local module = stablehlo.read(input)
  local made, err = pcall(stablehlo.load, module, { custom = custom })
  return made, not made and err or nil
end

local tried, read, functions, failed = 0, 0, 0, 0
local begun = os.clock()
while os.clock() - begun < seconds do
  local input = math.random(2) == 1 and changed_text() or changed_artifact()
  local f <close> = assert(io.open(folder .. "/fuzz-input", "wb"))
  f:write(input)
  f:flush()
  local at = os.clock()
  local ok, made, err = pcall(try, input)
  tried = tried + 1
  if ok then
    read = read + 1
    functions = functions + (made and 1 or 0)
  else
    err = made
  end
  local bad = err ~= nil and (type(err) ~= "table" or err.code == nil) or os.clock() - at > 10
  if bad then
    failed = failed + 1
    local name = ("%s/finding-%d"):format(folder, tried)
    local copy <close> = assert(io.open(name, "wb"))
    copy:write(input)
    print(name, ("%.1f s"):format(os.clock() - at), (tostring(err):gsub("\n.*", "")))
  end
  if tried % 200 == 0 then
    collectgarbage()
  end
end
print(("%d inputs, %d were read, %d were functions"):format(tried, read, functions))
print(("%d passed, %d failed"):format(tried - failed, failed))
dc.stats()
os.exit(failed == 0)
