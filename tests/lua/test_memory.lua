-- Memory of compiled functions: arenas as small as can be, cells updated in place.
local lu = require "luaunit"
local dc = require "deepc"
local nn = require "deepc.nn"
local optim = require "deepc.optim"

local function mlp_step(make)
  local net = nn.Sequential { nn.Linear(20, 32), nn.ReLU(), nn.Linear(32, 24), nn.ReLU(), nn.Linear(24, 10) }
  local opt = make(net:parameters())
  return dc.fn("step(x: f32[16, 20], y: i32[16]) -> f32[]", function(x, y)
    local loss = nn.cross_entropy(net(x), y)
    opt:step(loss)
    return loss
  end)
end

local function skip_without_arena(info)
  lu.skipIf(info.interpreted, "the interpreter has no plan")
end

TestMemory = {}

function TestMemory:test_an_mlp_step_needs_what_is_alive_at_once()
  for _, make in ipairs {
    function(p) return optim.SGD(p, { lr = 0.1 }) end,
    function(p) return optim.Adam(p, { lr = 0.1 }) end,
  } do
    local info = mlp_step(make):info()[1]
    skip_without_arena(info)
    lu.assertTrue(info.arena_bytes > 0)
    lu.assertEquals(info.arena_bytes, info.arena_lower_bound)
    lu.assertEquals(info.arena_ratio, 1.0)
    lu.assertEquals(info.denied, 0)
  end
end

function TestMemory:test_nothing_to_keep_is_a_ratio_of_one()
  local f = dc.fn("f(x: f32[4]) -> f32[4]", function(x) return x + 1 end)
  local info = f:info()[1]
  lu.assertEquals(info.arena_bytes, 0)
  lu.assertEquals(info.arena_ratio, 1.0)
end

-- Unreachable values of 4 MiB each: how much of them is kept.
TestHuge = {}

-- With a cache on disk, where a recording is judged as one that comes from there.
function TestHuge:test_a_tensor_that_no_memory_holds_is_a_message()
  local script, folder = os.tmpname(), os.tmpname()
  os.remove(folder)
  local f <close> = assert(io.open(script, "w"))
  f:write [[
    local dc = require "deepc"
    print(pcall(function() return tostring(dc.ones("f32[4]"):pad { { 10 ^ 18 // 1 | 0, 10 ^ 18 // 1 | 0 } }) end))
    print(dc.ones("f32[2]"):sum():item())
  ]]
  f:close()
  local p <close> = assert(io.popen(("DEEPC_CACHE='%s' '%s' '%s' 2>&1"):format(folder, arg[-1], script)))
  local out = p:read "a"
  os.remove(script)
  os.execute(("rm -rf '%s'"):format(folder))
  lu.assertStrContains(out, "out of memory")
  lu.assertStrContains(out, "\n2.0\n")
end

TestGarbage = {}

local MIB <const> = 1 << 20
local FEW <const> = 40 -- calls; all their results together are more than what may be kept

local function live()
  collectgarbage()
  collectgarbage()
  return dc.stats().bytes_live
end

-- Runs step again and again with the collector in this mode. Returns how much was alive at most, beside
-- what is alive at the end.
local function most(mode, step)
  local before = collectgarbage(mode)
  local peak, start = 0, live()
  local ok, err = pcall(function()
    for i = 1, FEW do
      step(i)
      peak = math.max(peak, dc.stats().bytes_live)
    end
  end)
  collectgarbage(before)
  lu.assertTrue(ok, err)
  return peak - math.max(start, live())
end

local function in_both_modes(body)
  for _, mode in ipairs { "generational", "incremental" } do
    body(mode)
  end
end

local halve = dc.fn("halve(x: f32[1048576]) -> f32[1048576]", function(x) return x * 0.5 + 1 end)

function TestGarbage:test_results_that_feed_back()
  in_both_modes(function(mode)
    local y = dc.ones "f32[1048576]"
    halve(y)
    local over = most(mode, function() y = halve(y) end)
    lu.assertTrue(over <= 16 * MIB, mode .. ": " .. over) -- each dies young
  end)
end

function TestGarbage:test_results_that_are_held_until_the_next()
  in_both_modes(function(mode)
    local x, y = dc.ones "f32[1048576]", nil
    local over = most(mode, function()
      y = halve(x)
      return y
    end)
    lu.assertTrue(over <= 16 * MIB, mode .. ": " .. over)
  end)
end

function TestGarbage:test_lazy_values_and_data()
  in_both_modes(function(mode)
    local y = dc.ones "f32[1048576]"
    local over = most(mode, function(i)
      y = (y * 0.5 + i):clone()
    end)
    lu.assertTrue(over <= 64 * MIB + 24 * MIB, mode .. ": " .. over)
  end)
end

-- A queue: each value lives through several collections, so that none of the young finds it.
function TestGarbage:test_values_that_died_old()
  in_both_modes(function(mode)
    local queue, x = {}, dc.ones "f32[1048576]"
    local over = most(mode, function(i) queue[i % 5 + 1] = halve(x) end)
    lu.assertEquals(#queue, 5)
    lu.assertTrue(over <= 20 * MIB + 64 * MIB + 8 * MIB, mode .. ": " .. over)
  end)
end

-- What was alive once and is dropped is found, though little is held besides.
function TestGarbage:test_much_that_was_dropped()
  in_both_modes(function(mode)
    local before = collectgarbage(mode)
    local x, many = dc.ones "f32[16384]", {} -- of 64 KiB
    local start = live()
    for i = 1, 1600 do
      many[i] = x:clone()
    end
    lu.assertTrue(dc.stats().bytes_live - start >= 100 * MIB)
    lu.assertEquals(#many, 1600)
    many = nil
    local calls = 0
    while dc.stats().bytes_live - start > 16 * MIB and calls < 40000 do
      x = x:clone()
      calls = calls + 1
    end
    lu.assertNil(many)
    lu.assertTrue(dc.stats().bytes_live - start <= 16 * MIB, mode)
    lu.assertTrue(calls > 0)
    collectgarbage(before)
  end)
end

-- Whole collections are as many as doublings of what is alive, not as many as calls.
function TestGarbage:test_what_is_alive_is_not_walked_again_and_again()
  in_both_modes(function(mode)
    local before = collectgarbage(mode)
    live()
    local x, many, whole = dc.ones "f32[16384]", {}, dc.stats().collections
    for i = 1, 6400 do -- 400 MiB
      many[i] = x:clone()
    end
    lu.assertEquals(#many, 6400)
    lu.assertTrue(dc.stats().collections - whole <= 6, mode)
    collectgarbage(before)
  end)
end

function TestGarbage:test_a_collector_that_was_stopped_stays_stopped()
  local gone = 0
  live()
  collectgarbage "stop"
  local x, y = dc.ones "f32[1048576]", nil
  setmetatable({}, { __gc = function() gone = gone + 1 end })
  for _ = 1, FEW do
    y = halve(x)
  end
  lu.assertFalse(collectgarbage "isrunning")
  lu.assertEquals(gone, 0)
  collectgarbage "restart"
  lu.assertEquals(y[1]:item(), 1.5)
  live()
  lu.assertEquals(gone, 1)
end

-- In a finalizer, where no collection can run, operations work as anywhere.
function TestGarbage:test_operations_in_finalizers()
  local x, sum = dc.ones "f32[1048576]", 0
  setmetatable({}, { __gc = function()
    for _ = 1, 3 do
      sum = sum + halve(x)[1]:item()
    end
  end })
  live()
  lu.assertEquals(sum, 4.5)
end
