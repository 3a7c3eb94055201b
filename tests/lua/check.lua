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

---The bytes of a file.
function check.read(path)
  local f <close> = assert(io.open(path, "rb"))
  return f:read "a"
end

return check
