-- On a device of 20 MB (CUDA_STANDIN_MEMORY): a function that needs more is refused with what it needs, by its largest
-- values; nothing is lost, and smaller ones go on.
local lu = require "luaunit"
local dc = require "deepc"

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
