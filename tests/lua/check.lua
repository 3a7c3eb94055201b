-- Checks that test files share, beside LuaUnit's: local check = require "tests.lua.check"
local lu = require "luaunit"

local check = {}

---f(...) raises, and the text has `pattern` in it, letter by letter; returns the error.
function check.fails(pattern, f, ...)
  local ok, err = pcall(f, ...)
  lu.assertFalse(ok)
  lu.assertStrContains(tostring(err), pattern)
  return err
end

---f(...) raises; without the place in front, the first line is `want` and the code is `code`. Returns the
---error.
function check.raises(want, code, f, ...)
  local ok, err = pcall(f, ...)
  lu.assertFalse(ok)
  lu.assertEquals((err.message:match "^[^\n]*":gsub("^[%w_./-]+:%d+: ", "")), want)
  lu.assertEquals(err.code, code)
  return err
end

---Lists of numbers, also of lists, are equal within the tolerance (1e-6).
function check.close(got, want, tolerance, what)
  lu.assertEquals(#got, #want, what)
  for i = 1, #want do
    if type(want[i]) == "table" then
      check.close(got[i], want[i], tolerance, what)
    else
      lu.assertAlmostEquals(got[i], want[i], tolerance or 1e-6, what)
    end
  end
end

-- One value of JSON at `at`, and where what follows begins. Objects and lists are tables, null is nil.
local function json_value(s, at)
  at = s:find("%S", at)
  local c = s:sub(at, at)
  if c == '"' then
    local stop = at
    repeat
      stop = assert(s:find('"', stop + 1, true), "a text without end")
      local slashes = #s:sub(at, stop - 1):match "\\*$"
    until slashes % 2 == 0
    local text = s:sub(at + 1, stop - 1):gsub("\\(.)(%x?%x?%x?%x?)", function(sign, hex)
      if sign == "u" then
        return utf8.char(tonumber(hex, 16))
      end
      return (({ n = "\n", t = "\t", r = "\r", b = "\b", f = "\f" })[sign] or sign) .. hex
    end)
    return text, stop + 1
  elseif c == "{" or c == "[" then
    local t, is_list = {}, c == "["
    at = s:find("%S", at + 1)
    while s:sub(at, at) ~= (is_list and "]" or "}") do
      local value
      local key = #t + 1
      if not is_list then
        key, at = json_value(s, at)
        at = assert(s:match("^%s*:()", at), "a colon is missing")
      end
      value, at = json_value(s, at)
      t[key] = value
      at = s:match("^%s*,%s*()", at) or s:match("^%s*()", at)
    end
    return t, at + 1
  end
  local word, after = s:match("^([%w+.-]+)()", at)
  local known = { ["true"] = true, ["false"] = false }
  if known[word] ~= nil or word == "null" then
    return known[word], after
  end
  return assert(tonumber(word), "no value of JSON: " .. tostring(word)), after
end

---The value of a text of JSON.
function check.json(text)
  local value, after = json_value(text, 1)
  lu.assertNil(text:find("%S", after), "something follows the value")
  return value
end

---The bytes of a file.
function check.read(path)
  local f <close> = assert(io.open(path, "rb"))
  return f:read "a"
end

return check
