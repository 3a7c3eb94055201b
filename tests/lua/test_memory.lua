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
