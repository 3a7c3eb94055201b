-- Wrong programs say what they are expected to say, to the letter, and leave the context usable.
-- scripts/golden writes the expected texts again, for review.
local lu = require "luaunit"
local golden = require "tests.lua.golden"
local check = require "tests.lua.check"
local lapack = require "tests.lua.lapack"

TestGolden = {}

for _, name in ipairs(golden.names()) do
  TestGolden["test_" .. name] = function()
    lu.skipIf(golden.pending[name], golden.pending[name])
    lu.skipIf(name:match "^linalg_" and lapack.missing, lapack.missing)
    local text, state = golden.run(name)
    lu.assertEquals(text, golden.expected(name))
    lu.assertEquals(state, "usable")
  end
end

TestAll = {}

-- Codes that no script can provoke, and why.
local without = {
  DC0308 = "indexing finds it first, as DC0106",
  DC0609 = "scripts start no jobs yet",
  DC0610 = "the device has to fail",
  DC0708 = "somebody has to interrupt",
  DC0803 = "these texts are read by the program, not by scripts",
  DC1001 = "how much memory there is depends on the machine",
  DC1006 = "there is no limit unless one is set",
  DC1003 = "a compiler has to fail; tests/lua/test_cli.lua",
  DC1004 = "settings are read before the script runs; tests/lua/test_cli.lua",
  DC1005 = "a kernel has to be wrong",
  DC1007 = "several processes have to run; tests/program/test_ranks.sh",
  DC1009 = "deepc has to be wrong",
}

local read = check.read

-- Every row of core/base/err.def is used somewhere, and every code has a program or a reason.
function TestAll:test_every_row()
  local p = assert(io.popen "find core jit backends formats dsl vm -name '*.c' -exec cat {} +")
  local sources = p:read "a"
  p:close()
  local said = {}
  for _, name in ipairs(golden.names()) do
    for code in golden.expected(name):gmatch "DC%d%d%d%d" do
      said[code] = true
    end
  end
  local rows = 0
  for id, code in read "core/base/err.def":gmatch "\nERR%(([%w_]+), *(%d+)," do
    rows = rows + 1
    code = ("DC%04d"):format(code)
    if id ~= "NONE" then
      lu.assertNotNil(sources:match("DC_ERR_" .. id .. "[^%w_]"), id .. " is not used")
      lu.assertTrue((said[code] or without[code]) ~= nil, code .. " has no program")
      lu.assertFalse(said[code] ~= nil and without[code] ~= nil, code .. " has a program and a reason for none")
    end
  end
  lu.assertTrue(rows > 50)
end

-- At least three programs for each class of codes that scripts can reach.
function TestAll:test_every_class()
  local count = {}
  for _, name in ipairs(golden.names()) do
    local class = golden.expected(name):match "DC(%d%d)%d%d"
    if class then -- what deepc check says of the syntax has none
      count[class] = (count[class] or 0) + 1
    end
  end
  for class = 1, 9 do
    lu.assertTrue((count[("%02d"):format(class)] or 0) >= 3, ("class %02d"):format(class))
  end
end
