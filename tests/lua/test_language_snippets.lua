-- The snippets that the language was designed with, whole, and what they print.
local lu = require "luaunit"
local dc = require "deepc"
local nn = require "deepc.nn"
local optim = require "deepc.optim"
local data = require "deepc.data"

-- Runs a chunk named train.lua whose first line is the given one; returns what it prints.
local function run(text, given, line)
  local printed = {}
  local env = setmetatable({
    print = function(...)
      local t = table.pack(...)
      for i = 1, t.n do
        t[i] = tostring(t[i])
      end
      printed[#printed + 1] = table.concat(t, "\t")
    end,
  }, { __index = _G })
  for key, value in pairs(given or {}) do
    env[key] = value
  end
  assert(load(("\n"):rep((line or 1) - 1) .. text, "@train.lua", "t", env))()
  return table.concat(printed, "\n")
end

-- What a chunk raises.
local function raised(text, given, line)
  local ok, err = pcall(run, text, given, line)
  lu.assertFalse(ok, text)
  return err
end

TestSnippets = {}

function TestSnippets:test_tensors()
  local printed = run [[
local dc = require "deepc"
local a = dc.tensor { { 1, 2, 3 }, { 4, 5, 6 } }       -- f32[2, 3]
local z = dc.zeros "f32[batch=32, 784]"
local w = dc.randn("f32[784, 128]", { seed = 42, std = 0.02 })
local y = dc.tensor({ 7, 2, 1 }, "i32[3]")
print(a[2][3])                                         --> 6.0
print(a[{ {}, { 2, 3 } }])                             -- all rows, columns 2..3
print(z:slice { batch = { 1, 16 } })
print((a * 2 + 1):sum(2), a:sum { axis = 2, keep = true })
print(a:matmul(dc.ones "f32[3, 4]"), dc.einsum("b i, i o -> b o", z, w))
print(a, y)
]]
  local rows = ("  0.0  0.0  0.0  ...  0.0  0.0  0.0\n"):rep(3)
  local zeros = rows .. "  ...\n" .. rows
  lu.assertEquals(printed, table.concat({
    "6.0",
    "  2.0  3.0\n  5.0  6.0\nf32[2, 2]",
    zeros .. "f32[16, 784]",
    "  15.0  33.0\nf32[2]\t   6.0\n  15.0\nf32[2, 1]",
    "   6.0   6.0   6.0   6.0\n  15.0  15.0  15.0  15.0\nf32[2, 4]\t" ..
      zeros .. "f32[batch=32, 128]",
    "  1.0  2.0  3.0\n  4.0  5.0  6.0\nf32[2, 3]\t  7  2  1\ni32[3]",
  }, "\n"))
end

-- Attention against the same sums in Lua.
function TestSnippets:test_attend()
  local printed = run([==[
local dc = require "deepc"
local attend = dc.fn([[
  attend(q: f32[batch, head, t, d], k: f32[batch, head, s, d], v: f32[batch, head, s, d]) -> f32[batch, head, t, d]
]], function(q, k, v)
  local score = dc.einsum("b h t d, b h s d -> b h t s", q, k) / dc.dim "d" ^ 0.5
  return score:softmax(4):matmul(v)
end)

local q = dc.randn("f32[batch=2, head=1, 3, 4]", { seed = 1 })
local k, v = dc.randn("f32[2, 1, 5, 4]", { seed = 2 }), dc.randn("f32[2, 1, 5, 4]", { seed = 3 })
local y = attend(q, k, v)
print(y:size "batch", y:size "head", y:size(3), y:size(4))
q, k, v, y = q:totable(), k:totable(), v:totable(), y:totable()
local worst = 0
for b = 1, 2 do
  for t = 1, 3 do
    local weight, total = {}, 0
    for s = 1, 5 do
      local dot = 0
      for d = 1, 4 do
        dot = dot + q[b][1][t][d] * k[b][1][s][d]
      end
      weight[s] = math.exp(dot / 2)
      total = total + weight[s]
    end
    for d = 1, 4 do
      local sum = 0
      for s = 1, 5 do
        sum = sum + weight[s] / total * v[b][1][s][d]
      end
      worst = math.max(worst, math.abs(sum - y[b][1][t][d]))
    end
  end
end
print(worst < 1e-5)
]==])
  lu.assertEquals(printed, "2\t1\t3\t4\ntrue")
end

-- Every production of the grammar, as a signature and as it is printed.
function TestSnippets:test_grammar()
  local anything = setmetatable({}, { __call = function() end })
  local function check(signature, printed)
    local text = dc.fn(signature, anything):explain()
    lu.assertEquals(text:sub(1, #printed + 1), printed .. ",", signature)
  end
  check("(x: f32[n])", "(x: f32[n])")
  check("f(x: f32[n]) -> f32[n]", "f(x: f32[n]) -> f32[n]")
  check("f(x: i8[n]) -> ()", "f(x: i8[n]) -> ()")
  check("f(x: f32[n], b?: f32[], mode?, k) -> f32[n], u8[]", "f(x: f32[n], b?: f32[], mode?, k) -> f32[n], u8[]")
  check("f( p : { x:f32[n],y : i32[ n ] } , l:{f32[n]})", "f(p: {x: f32[n], y: i32[n]}, l: {f32[n]})")
  check("f(x: f32[..., batch=64, n]) -> { f32[m=2*n+1, (n-1)//2, n%2] }",
    "f(x: f32[..., batch=64, n]) -> {f32[m=2*n + 1, (n - 1)//2, n%2]}")
end

-- The example as it stands, on 192 images of noise; dc.progress and dc.save are not part of it yet.
function TestSnippets:test_training()
  dc.seed(0)
  local train = data.set(dc.rand("f32[192, 28, 28]", { high = 256, seed = 1 }):cast "u8", dc.iota "i32[192]" % 10)
  local printed = run([[
local dc = require "deepc"
local nn, optim = require "deepc.nn", require "deepc.optim"

local net = nn.Sequential { nn.Flatten(), nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10) }
local opt = optim.Adam(net:parameters(), { lr = 1e-3 })

local step = dc.fn("step(x: u8[64, 28, 28], y: i32[64], lr: f32[]) -> f32[]", function(x, y, lr)
  local loss = nn.cross_entropy(net(x:cast "f32" / 255), y)
  opt:step(loss, { lr = lr })         -- gradients and update are part of the same graph
  return loss
end)

for epoch = 1, 5 do
  local loss
  for x, y in train:batches { size = 64, shuffle = true, last = "drop" } do
    loss = step(x, y, 1e-3 * 0.9 ^ (epoch - 1))
  end
  print(("epoch %d  loss %.4f"):format(epoch, loss:item()))
end
print(#step:info())
]], { train = train })
  local epochs, losses = {}, {}
  for epoch, loss in printed:gmatch "epoch (%d)  loss (%d+%.%d%d%d%d)\n" do
    epochs[#epochs + 1], losses[#losses + 1] = epoch, tonumber(loss)
  end
  lu.assertEquals(table.concat(epochs, " "), "1 2 3 4 5")
  lu.assertTrue(losses[5] < losses[1])
  lu.assertEquals(printed:match "[^\n]*$", "1")
end

function TestSnippets:test_error()
  local err = raised([[
local net = nn.Sequential { function(x) return x end, nn.Linear(784, 10) }
local step = dc.fn("step(img: f32[batch=32, 28, 28]) -> f32[32, 10]", function(img)


  return net(img) + 0
end)]], { dc = dc, nn = nn }, 11)
  lu.assertEquals(tostring(err), [==[
train.lua:15: matmul: inner dims differ: axis 3 = 28 against axis 1 = 784
    left   f32[batch=32, 28, 28]   argument 'img' of step, train.lua:12
    right  f32[784, 10]            parameter net.2.weight
    in     net.2 (nn.Linear 784 -> 10)
  hint: 28 * 28 = 784; :flatten(2) first?
  [DC0301; deepc explain DC0301]]==])
  lu.assertEquals({ err.code, err.op, err.at }, { "DC0301", "matmul", "train.lua:15" })
  lu.assertStrContains(err.traceback, "train.lua:15")
end

-- Mistakes of newcomers: script, sentence, hint, code. Whole messages: tests/mistakes/newcomers.txt.
local mistakes = {
  { "local x, w = dc.zeros 'f32[64, 784]', dc.zeros 'f32[784, 10]' local _ = x * w",
    "mul: axis 2: 784 against 10", "* is element-wise, the product is x:matmul(w)", "DC0301" },
  { "local a = dc.zeros 'f32[10, 3]' local _ = a[0]", "index 0 outside 1..10 of axis 1 of f32[10, 3]",
    "positions start at 1, values of argmax and labels at 0", "DC0106" },
  { "dc.zeros 'f32[64, 10]':sum(0)",
    "sum: axis 0 of f32[64, 10]: axes are 1 to 2, -1 is the last, or a name", nil, "DC0103" },
  { "local v = dc.zeros 'f32[5]' local _ = v[{2,3}]", "2 indices for f32[5]", "a range is v[{ {2, 3} }]", "DC0106" },
  { "dc.zeros 'f32[5]':view(5)", "a tensor has no 'view'", ":reshape", "DC0110" },
  { "dc.zeros 'f32[5]':unsqueeze(1)", "a tensor has no 'unsqueeze'", ":reshape", "DC0110" },
  { "local loss, best = dc.tensor(1), dc.tensor(2) if loss < best then best = loss end",
    "order comparison of tensors: Lua makes it true or false",
    "loss:item() for the value, x:lt :le :gt :ge element by element", "DC0204" },
  { "local x = dc.tensor(1) local _ = x > 0", "order comparison of tensors: Lua makes it true or false",
    "loss:item() for the value, x:lt :le :gt :ge element by element", "DC0204" },
  { "local pred, y = dc.tensor(1), dc.tensor(2) local _ = pred == y", "== of two tensors",
    "pred:eq(y), rawequal for identity", "DC0204" },
  { "local a = dc.zeros 'f32[3]' a[1] = 5", "tensors are immutable", "b = a:put({1}, 5); cells have :set", "DC0206" },
  { "local x = dc.zeros 'f32[3]' x:add_(1)", "tensors are immutable", "b = a:put({1}, 5); cells have :set", "DC0206" },
  { "local loss = dc.tensor(1) loss:backward()", "a tensor has no 'backward'",
    "opt:step(loss) takes the gradients, or dc.grad(loss, params)", "DC0110" },
  { "dc.fn('step(x: f32[])', function(x) local loss = x * x return loss:item() end)",
    "item: f32[] has no value while 'step' is traced",
    "return it; dc.print shows it at each call; dc.where(condition, a, b) chooses by values", "DC0602" },
  { "local total = 0 dc.fn('step(x: f32[])', function(x) local loss = x * x total = total + loss end)",
    "captured local 'total' is assigned while 'step' is traced, which happens once",
    "return the value or keep it in a dc.state", "DC0608" },
  { "local cfg = { lr = 0.1 } local step = dc.fn('step(x: f32[])', function(x) return x * cfg.lr end) " ..
      "step(1) step(1) cfg.lr = 0.05 for _ = 1, 16 do step(1) end",
    "captured field 'cfg.lr' changed from 0.1 to 0.05 and changes the graph of 'step'",
    "argument lr: f32[], or dc.static", "DC0605" },
  { "local state = { h = dc.zeros 'f32[64, 128]' } local x = dc.ones 'f32[64, 128]' " ..
      "local rnn = dc.fn('rnn(x: f32[64, 128]) -> f32[64, 128]', function(x) return x + state.h end) " ..
      "for _ = 1, 18 do state.h = rnn(x) end",
    "captured tensor 'state.h' was replaced after 'rnn' was traced",
    'pass it as an argument, or h = dc.state("f32[64, 128]")', "DC0606" },
  { "local p = dc.param 'f32[]' local forward = dc.fn('forward(x: f32[])', function(x) return x * p end) " ..
      "dc.grad(forward(1), { p })",
    "grad: loss is a result of compiled 'forward' and carries no graph", "take the gradient inside it", "DC0502" },
  { "nn.cross_entropy(dc.zeros 'f32[64, 10]', dc.zeros 'f32[64]')",
    "cross_entropy: labels are f32[64]; class numbers are integers from 0", 'dc.tensor(t, "i32[64]")', "DC0202" },
  { "local t = {} for i = 1, 64 do t[i] = i == 17 and 10 or 0 end " ..
      "local _ = nn.cross_entropy(dc.zeros 'f32[64, 10]', dc.tensor(t, 'i32')):item()",
    "cross_entropy: class 10 outside 0..9 at row 17", "labels are class numbers from 0", "DC0701" },
}

function TestSnippets:test_mistakes()
  for _, row in ipairs(mistakes) do
    local script, sentence, hint, code = table.unpack(row, 1, 4)
    local err = raised(script, { dc = dc, nn = nn, optim = optim })
    local text = tostring(err)
    lu.assertEquals(text:match "^train%.lua:1: ([^\n]*)", sentence, script)
    lu.assertEquals(text:match "\n  hint: ([^\n]*)", hint, script)
    lu.assertEquals(err.code, code, script)
  end
end
