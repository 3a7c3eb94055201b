-- On a device of 20 MB (CUDA_STANDIN_MEMORY): a function that needs more is refused with what it needs, by its largest
-- values; nothing is lost, and smaller ones go on.
local lu = require "luaunit"
local dc = require "deepc"
local program = require "tests.lua.program"

TestMemory = {}

function TestMemory:test_what_there_is_no_memory_for()
  local weight = dc.param("f32[1000]", dc.ones "f32[1000]")
  local small = dc.fn("small(x: f32[1000]) -> f32[]", function(x)
    weight:set(weight + x)
    return weight:sum()
  end)
  lu.assertEquals(small(dc.ones "f32[1000]"):item(), 2000)

  local large = dc.fn("large(x: f32[2000]) -> f32[]", function(x)
    local m = x:reshape "[2000, 1]" * x:reshape "[1, 2000]"
    return m:matmul(m):tanh():matmul(m):square():sum()
  end)
  for n = 1, 2 do
    local ok, said = pcall(large, dc.ones "f32[2000]")
    said = tostring(said)
    lu.assertFalse(ok) -- 48 MB of 20
    lu.assertStrMatches(said, ".*out of memory: the function needs %d+%.%d MiB of memory: "
      .. "%d+%.%d MiB between its operations.*")
    lu.assertStrContains(said, "f32[2000, 2000]")
    lu.assertStrMatches(said, ".*memory%.lua:%d+.*")
    lu.assertEquals(small(dc.ones "f32[1000]"):item(), 2000 + 1000 * n)
  end
end

-- Derived values of 4 MB and a parameter of as many leave no room for 11 MB: they go, and are computed again.
function TestMemory:test_derived_values_make_room_for_temporaries()
  local weight = dc.param("f32[1000, 1000]", dc.ones "f32[1000, 1000]")
  local keeps = dc.fn("keeps(x: f32[1, 1000]) -> f32[]", function(x) return x:matmul(weight:softmax(2)):sum() end)
  local large = dc.fn("large(x: f32[1200]) -> f32[]", function(x)
    local m = x:reshape "[1200, 1]" * x:reshape "[1, 1200]"
    return m:softmax(1):softmax(2):softmax(1):sum()
  end)
  local x, want = dc.ones "f32[1, 1000]", 1000
  lu.assertAlmostEquals(keeps(x):item(), want, 1e-2)
  lu.assertEquals(keeps:info()[1].derived, 1)
  lu.assertAlmostEquals(large(dc.zeros "f32[1200]"):item(), 1200, 1e-2)
  lu.assertAlmostEquals(keeps(x):item(), want, 1e-2)
end

local script = [[
local dc = require "deepc"
local weight = dc.param("f32[2000]", dc.ones "f32[2000]")
local f = dc.fn("large(v: f32[2000]) -> f32[]", function(v)
  local m = (v + weight):reshape "[2000, 1]" * v:reshape "[1, 2000]"
  return m:matmul(m):tanh():matmul(m):square():sum()
end)
local _, said = pcall(f, dc.ones "f32[2000]")
print(said)
print(dc.stats().kernels, "compiled")
]]

-- What is found on disk says the same, with the script's names and lines.
function TestMemory:test_of_another_process()
  local path, folder = program.script(script), os.tmpname()
  os.remove(folder)
  local function run()
    local text, status = program.run(path, "DEEPC_CACHE=" .. program.quote(folder))
    lu.assertEquals(status, 0, text)
    return text:match "^(.*)\n(%d+)\tcompiled\n$"
  end
  local first, compiled = run()
  local second, again = run()
  lu.assertStrMatches(first, ".*out of memory: the function needs %d+%.%d MiB of memory: .*")
  lu.assertStrContains(first, ":4") -- the line of m
  lu.assertNotEquals(compiled, "0")
  lu.assertEquals(again, "0")
  lu.assertEquals(second, first)
  os.remove(path)
  os.execute("rm -r " .. program.quote(folder))
end
