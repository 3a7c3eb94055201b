-- Results that nothing uses: notes where a function is traced, once for each line (dsl/base/uses.h).
-- What `deepc check` makes of them: check_finds_* of tests/mistakes/check.txt.
local lu = require "luaunit"

-- The notes of a program, without their times.
local function notes(text)
  local name, program = os.tmpname(), arg[-1]
  local file = assert(io.open(name, "w"))
  file:write('local dc = require "deepc"\nlocal nn = require "deepc.nn"\n', text)
  file:close()
  local pipe = assert(io.popen(("DEEPC_PROGRESS=off %s %s 2>&1 >/dev/null"):format(program, name)))
  local lines = {}
  for line in pipe:lines() do
    lines[#lines + 1] = line:gsub("^%[note%] ", ""):gsub("[%w/_.]*lua_%w+:", "")
  end
  pipe:close()
  os.remove(name)
  return lines
end

TestUses = {}

local always = "; as a condition a tensor is always true"

function TestUses:test_conditions_of_a_trace()
  lu.assertEquals(notes [[
local f = dc.fn("f(x: f32[4]) -> f32[4]", function(x)
  if x:sum():gt(0) then x = x * 2 end
  local y = not x:lt(0):any() and x or -x
  return x:gt(1) and y or x
end)
f(dc.ones "f32[4]")
f(dc.ones "f32[4]")
]], { "f, 4: nothing uses the value of gt" .. always, "f, 5: nothing uses the value of any" .. always,
    "f, 6: nothing uses the value of gt" .. always })
end

function TestUses:test_other_operations()
  lu.assertEquals(notes [[
local f = dc.fn("f(x: f32[4]) -> f32[]", function(x)
  local left = x:tanh() -- luacheck: ignore
  x:add(1)
  if x:eq(1):mean() == 1 then return x:mean() end
  return x:sum()
end)
f(dc.ones "f32[4]")
]], { "f, 4: nothing uses the value of tanh", "f, 5: nothing uses the value of add",
    "f, 6: nothing uses the value of mean" })
end

-- Of several results one is enough; a record is not looked into.
function TestUses:test_results_of_recurrent_layers()
  lu.assertEquals(notes [[
local lstm, gru = nn.LSTM(2, 3), nn.GRU(2, 3)
local f = dc.fn("f(x: f32[4, 2]) -> f32[]", function(x)
  local _, state = lstm(x)
  local _, h = gru(x)
  local y = gru(x) -- luacheck: ignore
  return state.h:sum() + h:sum()
end)
f(dc.ones "f32[4, 2]")
]], { "f, 7: nothing uses the value of gru (nn.GRU 2 -> 3)" })
end

function TestUses:test_functions_of_the_library_and_layers()
  lu.assertEquals(notes [[
local net = nn.Sequential { nn.Linear(4, 4), nn.ReLU() }
local f = dc.fn("f(x: f32[4, 4], labels: i32[4]) -> f32[]", function(x, labels)
  nn.layer_norm(x, 4)
  local loss = nn.cross_entropy(x, labels) -- luacheck: ignore
  net(x)
  dc.stack { x, x, x }
  dc.concat { x, x, x }
  dc.einsum("i j, j k, k l -> i l", x, x, x)
  x:clamp(0, 1)
  return x:sum()
end)
f(dc.ones "f32[4, 4]", dc.zeros "i32[4]")
]], { "f, 5: nothing uses the value of nn.layer_norm", "f, 6: nothing uses the value of nn.cross_entropy",
    "f, 7: nothing uses the value of net (nn.Sequential)", "f, 8: nothing uses the value of stack",
    "f, 9: nothing uses the value of concat", "f, 10: nothing uses the value of einsum",
    "f, 11: nothing uses the value of clamp" })
end

-- What sets cells has done something; what gives back an argument has made nothing.
function TestUses:test_calls_for_what_they_do()
  lu.assertEquals(notes [[
local optim = require "deepc.optim"
local net, norm, drop = nn.Linear(4, 4), nn.BatchNorm2d(3), nn.Dropout(0.5):eval()
local opt = optim.SGD(net:parameters(), { lr = 0.1, clip_norm = 1 })
local f = dc.fn("f(x: f32[4, 4], image: f32[1, 3, 2, 2]) -> f32[]", function(x, image)
  local y = net(x)
  drop(y)
  norm(image)
  local loss = nn.mse_loss(y, x)
  opt:step(loss)
  return loss
end)
f(dc.ones "f32[4, 4]", dc.ones "f32[1, 3, 2, 2]")
]], {})
end

function TestUses:test_what_is_used()
  lu.assertEquals(notes [[
local s = dc.state("f32[]", 0)
local g = dc.fn("g(x: f32[n]) -> f32[n], f32[]", function(x) return x * 2, x:sum() end)
local twice = dc.custom_grad(function(x) return x * 2 end, function(dy) return dy * 2 end)
local net = nn.Sequential { nn.Linear(4, 4), nn.BatchNorm2d(4), nn.Dropout(0.5) }
local f = dc.fn("f(x: f32[4]) -> f32[4], { m: bool[4] }", function(x)
  local first, _ = x:split(2)
  print(x:gt(0))
  dc.print(x:max())
  s:set(x:mean())
  local y = g(x) + twice(x) + net[1](x)
  for i = 1, (x + 1):size(1) do
    local mask = x:ge(i)
    if i == 4 then y = y * mask:cast "f32" end
  end
  return y + first:sum(), { m = y:gt(0) }
end)
f(dc.ones "f32[4]")
f(dc.ones "f32[4]")
]], {})
end

function TestUses:test_a_line_is_told_once()
  local lines = notes [[
local f = dc.fn("f(x: f32[n], k) -> f32[]", function(x, k)
  local mask = x:gt(0)
  return k and dc.where(mask, x, 0):sum() or x:sum()
end)
f(dc.ones "f32[4]", false)
f(dc.ones "f32[5]", false)
]]
  lu.assertEquals(lines[1], "f, 4: nothing uses the value of gt" .. always)
  lu.assertStrContains(lines[2], "specialisation 2")
  lu.assertEquals(#lines, 2)
end

-- A value that one specialisation uses is no mistake in another.
function TestUses:test_a_mode_that_needs_less()
  local lines = notes [[
local f = dc.fn("f(x: f32[4], train) -> f32[]", function(x, train)
  local mask = x:gt(0)
  return train and dc.where(mask, x, 0):sum() or x:sum()
end)
f(dc.ones "f32[4]", true)
f(dc.ones "f32[4]", false)
]]
  lu.assertEquals(#lines, 1)
  lu.assertStrContains(lines[1], "specialisation 2")
end
