-- Checks of data whose answer comes after the call: on devices that run ahead of the host, with DEEPC_CHECKS=later.
-- Elsewhere the call itself raises; what a script can rely on either way is the same.
local lu = require "luaunit"
local dc, nn, optim = require "deepc", require "deepc.nn", require "deepc.optim"

local late = (os.getenv "DEEPC_DEVICE" or ""):match "^cuda" ~= nil and os.getenv "DEEPC_CHECKS" ~= "now"

local function trainer()
  local net = nn.Sequential { nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3) }
  local opt = optim.Adam(net:parameters(), { lr = 1e-2 })
  local step = dc.fn("step(x: f32[5, 4], y: i32[5]) -> f32[]", function(x, y)
    local loss = nn.cross_entropy(net(x), y)
    opt:step(loss)
    return loss
  end)
  local x, good = dc.randn "f32[5, 4]", dc.tensor({ 0, 1, 2, 0, 1 }, "i32[5]")
  for _ = 1, 3 do step(x, good) end
  return step, x, good, dc.tensor({ 0, 1, 7, 0, 1 }, "i32[5]"), net:parameters()[1]
end

local what = "class 7 outside 0..2 at row 3"

TestLate = {}

function TestLate:test_a_read_tells()
  local step, x, _, bad, w = trainer()
  local before = tostring(w)
  local ok, result = pcall(step, x, bad)
  lu.assertEquals(ok, late)
  if late then
    lu.assertErrorMsgContains(what, tostring, w)
    lu.assertErrorMsgContains("was not computed", function() return result:item() end)
    lu.assertErrorMsgContains("was not computed", function() return (result * 2):item() end)
  else
    lu.assertStrContains(tostring(result), what)
  end
  lu.assertEquals(tostring(w), before)
end

function TestLate:test_a_later_call_tells()
  local step, x, good, bad = trainer()
  local ok, e = pcall(function()
    step(x, bad)
    for _ = 1, 40 do step(x, good) end
  end)
  lu.assertFalse(ok)
  lu.assertStrContains(tostring(e), what)
  if late then lu.assertStrContains(tostring(e), "in a call of 'step' before this line") end
  lu.assertTrue(step(x, good):item() > 0) -- it goes on
end

function TestLate:test_calls_after_it_count()
  local step, x, good, bad, w = trainer()
  pcall(step, x, bad)
  pcall(step, x, good)
  pcall(function() return w:totable() end)
  local before = tostring(w)
  step(x, good)
  lu.assertNotEquals(tostring(w), before)
end

function TestLate:test_a_result_as_argument()
  local step, x, _, bad = trainer()
  local twice = dc.fn("twice(v: f32[]) -> f32[]", function(v) return v * 2 end)
  local ok, result = pcall(step, x, bad)
  if not ok then return end
  lu.assertErrorMsgContains("was not computed", twice, result)
  pcall(function() return x:totable() end) -- tells of the call
end

function TestLate:test_a_function_that_is_gone()
  local step, x, _, bad, w = trainer()
  local ok = pcall(step, x, bad)
  step = nil -- luacheck: ignore
  collectgarbage()
  collectgarbage()
  if ok then lu.assertErrorMsgContains(late and "'step'" or "", tostring, w) end
end

function TestLate:test_many_results_held()
  local step, x, good = trainer()
  local held = {}
  for i = 1, 50 do held[i] = step(x, good) end
  for i = 2, 50 do lu.assertTrue(held[i]:item() <= held[1]:item()) end
end
