-- Functions of very many parameters: what tracing, compiling, calling and exporting them takes grows as their number
-- does. Counted in seconds of the processor: four times as many may take ten times as long, where the square would take
-- sixteen.
local lu = require "luaunit"
local dc, optim = require "deepc", require "deepc.optim"

TestMany = {}

-- A step of training over n parameters; the seconds of tracing and compiling, and of exporting.
local function train(n, path)
  local params = {}
  for i = 1, n do
    params[i] = dc.param "f32[4]"
  end
  local opt = optim.SGD(params, { lr = 0.25 })
  local before = os.clock()
  local step = dc.fn("step(x: f32[4]) -> f32[]", function(x)
    local loss
    for i = 1, n do
      local one = (params[i] - x * (i % 3)):square():sum()
      loss = loss and loss + one or one
    end
    opt:step(loss)
    return loss
  end)
  local first, compiled = step(dc.ones "f32[4]"):item(), os.clock() - before
  local want = 0
  for i = 1, n do
    want = want + 4 * (i % 3) ^ 2
  end
  lu.assertAlmostEquals(first, want, want * 1e-5)
  for _, i in ipairs { 1, n // 2, n } do
    lu.assertEquals(params[i]:totable(), { 0.5 * (i % 3), 0.5 * (i % 3), 0.5 * (i % 3), 0.5 * (i % 3) })
  end
  before = os.clock()
  step:export(path)
  return compiled, os.clock() - before
end

local function file_text(path)
  local f = assert(io.open(path, "rb"))
  local text = f:read "a"
  f:close()
  return text
end

function TestMany:test_what_it_takes_grows_as_their_number()
  lu.skipIf(os.getenv "DEEPC_DEVICE" ~= nil, "of the device that kernels are compiled for")
  local path = os.tmpname()
  local ratios
  for _ = 1, 3 do -- another process may be in the way
    local compile, export = train(500, path)
    local compile4, export4 = train(2000, path)
    ratios = { compile4 / compile, export4 / export }
    if ratios[1] < 10 and ratios[2] < 10 then
      break
    end
  end
  os.remove(path)
  lu.assertTrue(ratios[1] < 10 and ratios[2] < 10, ("compiling %.1f, exporting %.1f times as long"):format(
    ratios[1], ratios[2]))
end

-- Tensors without a name are numbered, and no name is given twice.
function TestMany:test_names_in_a_file()
  local params = {}
  for i = 1, 40 do
    params[i] = dc.param "f32[1]"
  end
  local f = dc.fn("f() -> f32[1]", function()
    local sum = params[1]
    for i = 2, #params do
      sum = sum + params[i]
    end
    return sum * 1
  end)
  local path = os.tmpname()
  f:export(path, {})
  local text, seen = file_text(path), {}
  os.remove(path)
  for name in text:gmatch '"([^"]+)":{"dtype"' do
    lu.assertNil(seen[name], name)
    seen[name] = true
  end
  lu.assertTrue(seen["parameter"] and seen["parameter#2"] and seen["parameter#40"])
  lu.assertNil(seen["parameter#41"])
end
