-- Memory of results whose sizes are bounded, counted exactly.
local lu = require "luaunit"
local dc = require "deepc"

TestBoundedMemory = {}

-- Results that are held have memory of their own size, and calls whose results are dropped allocate none.
function TestBoundedMemory:test_small_results_do_not_keep_the_bound()
  local f = dc.fn("f(x: f32[t <= 10000, 16]) -> f32[t, 16], f32[t]", function(x) return x * 2, x:sum(2) end)
  f(dc.ones "f32[4, 16]")
  local function run(n)
    local x, held = dc.iota(("f32[%d, 16]"):format(n)), {}
    for i = 1, 20 do
      local y, sum = f(x + i)
      held[i] = { y, sum }
    end
    for i = 1, 20 do
      lu.assertEquals(held[i][1]:totable(), ((x + i) * 2):totable())
      lu.assertEquals(held[i][2]:totable(), (x + i):sum(2):totable())
    end
    return held
  end
  collectgarbage()
  local before = dc.stats().bytes_live
  local held = run(3)
  lu.assertTrue(dc.stats().bytes_live - before < 2 * 10000 * 16 * 4)
  lu.assertEquals(#held, 20)
  run(0x1000)
  local x = dc.ones "f32[5, 16]"
  local function calls()
    for _ = 1, 50 do
      f(x)
    end
    collectgarbage()
    return dc.stats().allocs
  end
  calls()
  lu.assertEquals(calls(), calls())
end
