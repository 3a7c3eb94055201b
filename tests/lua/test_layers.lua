-- Layers of stdlib/nn/ beside the same formulas in Lua's doubles; gradients beside central differences.
local lu = require "luaunit"
local dc = require "deepc"
local nn = require "deepc.nn"
local check = require "tests.lua.check"

local fails = check.fails

local function close(got, want, tolerance, what)
  check.close(got, want, tolerance or 2e-6, what)
end

local X = { { 0.5, -2, 3 }, { 1.25, 0.25, -0.75 } }

local function map(x, f)
  local y = {}
  for i, v in ipairs(x) do
    y[i] = type(v) == "table" and map(v, f) or f(v)
  end
  return y
end

local function sigmoid(x)
  return 1 / (1 + math.exp(-x))
end

local function tanh(x)
  return 2 * sigmoid(2 * x) - 1
end

-- The error function by its series, for small arguments.
local function erf(x)
  local term, total = x, x
  for n = 1, 60 do
    term = -term * x * x / n
    total = total + term / (2 * n + 1)
  end
  return total * 2 / math.sqrt(math.pi)
end

local activations = {
  { nn.ReLU(), function(x) return math.max(x, 0) end },
  { nn.LeakyReLU(), function(x) return x > 0 and x or 0.01 * x end },
  { nn.LeakyReLU(0.3), function(x) return x > 0 and x or 0.3 * x end },
  { nn.ELU(), function(x) return x > 0 and x or math.exp(x) - 1 end },
  { nn.ELU(0.5), function(x) return x > 0 and x or 0.5 * (math.exp(x) - 1) end },
  { nn.SiLU(), function(x) return x * sigmoid(x) end },
  { nn.Tanh(), tanh },
  { nn.Sigmoid(), sigmoid },
  { nn.Softplus(), function(x) return math.log(1 + math.exp(x)) end },
  { nn.Identity(), function(x) return x end },
  { nn.GELU(), function(x) return x * (1 + erf(x / math.sqrt(2))) / 2 end },
  { nn.GELU { approximate = "tanh" }, function(x)
    return x * (1 + tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ^ 3))) / 2
  end },
}

TestActivations = {}

function TestActivations:test_values_and_gradients()
  local step = 1e-5
  for _, row in ipairs(activations) do
    local layer, f = row[1], row[2]
    close(layer(dc.tensor(X)):totable(), map(X, f), 3e-6, tostring(layer))
    local g = dc.fn("g(x: f32[2, 3]) -> f32[2, 3]", function(x) return dc.grad(layer(x):sum(), x) end)
    close(g(X):totable(), map(X, function(x) return (f(x + step) - f(x - step)) / (2 * step) end), 1e-4,
      tostring(layer))
  end
end

function TestActivations:test_far_out()
  for _, row in ipairs(activations) do
    local layer = row[1]
    local g = dc.fn("g(x: f32[2]) -> f32[2], f32[2]", function(x)
      local y = layer(x)
      return y, dc.grad(y:sum(), x)
    end)
    local y, slope = g { -500, 500 }
    lu.assertTrue(y:isfinite():all():item(), tostring(layer))
    lu.assertTrue(slope:isfinite():all():item(), tostring(layer))
  end
end

function TestActivations:test_softmax()
  local function rows(x, f)
    local list = {}
    for i, row in ipairs(x) do
      local z = 0
      for _, v in ipairs(row) do
        z = z + math.exp(v)
      end
      list[i] = map(row, function(v) return f(math.exp(v) / z) end)
    end
    return list
  end
  local x = dc.tensor(X)
  close(nn.Softmax()(x):totable(), rows(X, function(p) return p end))
  close(nn.LogSoftmax()(x):totable(), rows(X, math.log))
  close(nn.Softmax(1)(x:transpose()):transpose():totable(), rows(X, function(p) return p end))
  close(nn.Softmax "class"(x:rename { [2] = "class" }):totable(), rows(X, function(p) return p end))
end

function TestActivations:test_names_and_mistakes()
  lu.assertEquals(tostring(nn.GELU { approximate = "tanh" }), "nn.GELU tanh")
  lu.assertEquals(tostring(nn.LeakyReLU()), "nn.LeakyReLU 0.01")
  lu.assertEquals(tostring(nn.Softmax(2)), "nn.Softmax 2")
  lu.assertEquals(tostring(nn.SiLU()), "nn.SiLU")
  fails('approximate is "tanh" or "none", not \'erf\'', nn.GELU, { approximate = "erf" })
  fails("nn.LeakyReLU: slope is a number, not 'steep'", nn.LeakyReLU, "steep")
  fails("nn.Softmax: an axis is an integer or a name", nn.Softmax, 1.5)
  fails("leaky_relu: a tensor is needed, not the number 3", nn.leaky_relu, 3)
  fails("elu: a tensor is needed, not nil", nn.elu)
end

TestNorms = {}

-- One row normalised in doubles.
local function normal(row, eps, centre)
  local mean, squares = 0, 0
  for _, v in ipairs(row) do
    mean = mean + v / #row
  end
  mean = centre and mean or 0
  for _, v in ipairs(row) do
    squares = squares + (v - mean) ^ 2 / #row
  end
  return map(row, function(v) return (v - mean) / math.sqrt(squares + eps) end)
end

local function rows_of(x, eps, centre, weight, bias)
  local y = {}
  for i, row in ipairs(x) do
    y[i] = normal(row, eps, centre)
    for k in ipairs(row) do
      y[i][k] = y[i][k] * (weight and weight[k] or 1) + (bias and bias[k] or 0)
    end
  end
  return y
end

function TestNorms:test_values()
  local w, b = { 1, 2, -0.5 }, { 0.5, 0, 1 }
  local layer = nn.LayerNorm(3)
  close(layer(dc.tensor(X)):totable(), rows_of(X, 1e-5, true))
  layer.weight:set(w)
  layer.bias:set(b)
  close(layer(dc.tensor(X)):totable(), rows_of(X, 1e-5, true, w, b))
  for dtype, eps in pairs { f32 = 2 ^ -23, f64 = 2 ^ -52, bf16 = 2 ^ -23 } do -- PyTorch's
    local small = nn.RMSNorm(2, { affine = false })(dc.full(dtype .. "[1, 2]", 2 ^ -12))
    local want = 2 ^ -12 / math.sqrt(2 ^ -24 + eps)
    lu.assertAlmostEquals(small[1][1]:item(), want, dtype == "bf16" and 4e-3 or 1e-6, dtype)
  end
  local rms = nn.RMSNorm(3, { eps = 0.1 })
  rms.weight:set(w)
  close(rms(dc.tensor(X)):totable(), rows_of(X, 0.1, false, w))
  close(nn.rms_norm(dc.tensor(X), 3):totable(), rows_of(X, 1e-6, false))
end

function TestNorms:test_several_axes()
  local x = dc.randn("f32[4, 2, 3]", { seed = 1 })
  local flat = nn.layer_norm(x:reshape(4, 6), 6)
  close(nn.LayerNorm({ 2, 3 })(x):reshape(4, 6):totable(), flat:totable())
  lu.assertEquals(nn.LayerNorm({ 2, 3 }).weight.shape, { 2, 3 })
  lu.assertEquals(nn.LayerNorm(3)(x).shape, { 4, 2, 3 })
end

-- Large offsets cost no digits: squares are taken of centred values.
function TestNorms:test_far_from_zero()
  local row = { 10000, 10001, 10002 }
  close(nn.layer_norm(dc.tensor { row }, 3):totable(), { normal(row, 1e-5, true) }, 1e-4)
end

function TestNorms:test_gradients()
  local weight, step = { { 1, -2, 0.5 }, { 0.25, 3, 1 } }, 1e-5
  for _, case in ipairs { { nn.layer_norm, 1e-5, true }, { nn.rms_norm, 1e-6, false } } do
    local g = dc.fn("g(x: f32[2, 3], w: f32[2, 3]) -> f32[2, 3]", function(x, w)
      return dc.grad((case[1](x, 3) * w):sum(), x)
    end)
    local want = {}
    for r = 1, 2 do
      want[r] = {}
      for c = 1, 3 do
        local function at(d)
          local x = map(X, function(v) return v end)
          x[r][c] = x[r][c] + d
          local total = 0
          for k, v in ipairs(normal(x[r], case[2], case[3])) do
            total = total + v * weight[r][k]
          end
          return total
        end
        want[r][c] = (at(step) - at(-step)) / (2 * step)
      end
    end
    close(g(X, weight):totable(), want, 1e-4)
  end
end

function TestNorms:test_parameters()
  local function names(layer)
    local list = {}
    for i, p in ipairs(layer:named_parameters()) do
      list[i] = p[1]
    end
    return table.concat(list, " ")
  end
  lu.assertEquals(names(nn.LayerNorm(4)), "bias weight")
  lu.assertEquals(names(nn.LayerNorm(4, { bias = false })), "weight")
  lu.assertEquals(names(nn.LayerNorm(4, { affine = false })), "")
  lu.assertEquals(names(nn.RMSNorm(4)), "weight")
  lu.assertEquals(names(nn.RMSNorm(4, { affine = false })), "")
  lu.assertEquals(tostring(nn.LayerNorm { 2, 3 }), "nn.LayerNorm 2, 3")
end

function TestNorms:test_mistakes()
  local net = nn.Sequential { nn.LayerNorm(4) }
  local err = fails("layer_norm: the last axes are [4], x is f32[2, 3]", function() net(dc.zeros "f32[2, 3]") end)
  lu.assertEquals(err.path, "net.1 (nn.LayerNorm 4)")
  fails("rms_norm: the last axes are [2, 3], x is f32[3]", nn.rms_norm, dc.zeros "f32[3]", { 2, 3 })
  fails("nn.LayerNorm: the size of an axis is a positive integer, not nil", nn.LayerNorm)
  fails("nn.RMSNorm: the size of an axis is a positive integer, not nil", nn.RMSNorm, {})
  fails("eps is a number from 0, not -1", nn.LayerNorm, 3, { eps = -1 })
  fails("layer_norm: a tensor is needed, not a table", nn.layer_norm, {}, 3)
end

TestEmbedding = {}

function TestEmbedding:test_rows()
  local layer = nn.Embedding(4, 2)
  layer.weight:set { { 1, 2 }, { 3, 4 }, { 5, 6 }, { 7, 8 } }
  lu.assertEquals(layer(dc.tensor({ { 3, 0 }, { 0, 1 } }, "i32")):totable(),
    { { { 7, 8 }, { 1, 2 } }, { { 1, 2 }, { 3, 4 } } })
  lu.assertEquals(tostring(layer), "nn.Embedding 4 -> 2")
  local err = fails("index 4 outside 0..3", function() layer(dc.tensor({ 0, 4 }, "i32")) end)
  lu.assertEquals(err.path, "layer (nn.Embedding 4 -> 2)")
  fails("nn.Embedding: the size of a row is a positive integer", nn.Embedding, 3)
end

-- Rows that were read twice get both gradients, others none.
function TestEmbedding:test_gradient()
  local layer = nn.Embedding(3, 2)
  local f = dc.fn("f(i: i32[4], g: f32[4, 2]) -> f32[3, 2]", function(i, g)
    return dc.grad((layer(i) * g):sum(), layer.weight)
  end)
  lu.assertEquals(f({ 2, 0, 2, 2 }, { { 1, 2 }, { 3, 4 }, { 5, 6 }, { 7, 8 } }):totable(),
    { { 3, 4 }, { 0, 0 }, { 13, 16 } })
end

function TestEmbedding:test_starts_normal()
  dc.seed(2)
  local w = nn.Embedding(200, 50).weight
  lu.assertAlmostEquals(w:mean():item(), 0, 0.05)
  lu.assertAlmostEquals(w:std():item(), 1, 0.05)
end

TestNames = {}

-- A model in a global is called by its name, as one in a local; of several names by the first.
function TestNames:test_of_globals()
  local env = { dc = dc, nn = nn, pcall = pcall, tostring = tostring }
  local run = load([[
    net = nn.Sequential { nn.Linear(4, 8) }
    last, _ = net, net
    net:parameters()
    local ok, err = pcall(net, dc.ones "f32[3, 5]")
    return err.path
  ]], "=names", "t", env)
  lu.assertEquals(run(), "last.1 (nn.Linear 4 -> 8)")
end

TestSummary = {}

local Block = nn.class "Block"

function Block:init(n)
  self.inner, self.unused, self.count = nn.Linear(n, n), nn.Linear(3, 3), dc.state "i32[]"
end

function Block:forward(x, scale)
  self.count:set(self.count + 1)
  return x + self.inner(x) * (scale or 1)
end

function TestSummary:test_text()
  local block = Block(8)
  local net = nn.Sequential { nn.Flatten(), nn.Linear(12, 8), block, nn.Dropout(0.5), block, nn.Linear(8, 2) }
  net[2]:freeze()
  local lines = {}
  for line in (net:summary "f32[batch=5, 3, 4]" .. "\n"):gmatch "([^\n]*)\n" do
    lines[#lines + 1] = line:gsub("(%S)  +", "%1  ")
  end
  lu.assertEquals(lines, {
    "layer  output  parameters  bytes  operations  activations",
    "nn.Sequential  f32[5, 2]",
    "├─ 1  nn.Flatten  f32[5, 12]  240",
    "├─ 2  nn.Linear 12 -> 8  f32[5, 8]  104  416  1,000  160",
    "├─ 3  Block  f32[5, 8]  1  4  81  160",
    "│  └─ inner  nn.Linear 8 -> 8  f32[5, 8]  72  288  680  160",
    "├─ 4  nn.Dropout 0.5  f32[5, 8]  312  160",
    "├─ 3  Block  f32[5, 8]  81  160",
    "│  └─ inner  nn.Linear 8 -> 8  f32[5, 8]  680  160",
    "├─ 6  nn.Linear 8 -> 2  f32[5, 2]  18  72  170  40",
    "└─ 3.unused  nn.Linear 3 -> 3  not called  12  48",
    "102 trained, 105 not, 828 bytes",
    "3,004 operations, activations of 1,240 bytes",
  })
end

-- Without parameters a column is empty; names may be of any length.
function TestSummary:test_empty_and_wide_columns()
  lu.assertEquals(tostring(nn.Sequential { nn.ReLU(), nn.Tanh() }),
    "nn.Sequential\n  1  nn.ReLU\n  2  nn.Tanh\n0 trained, 0 bytes")
  local Wide = nn.class(("w"):rep(120))
  function Wide:init()
    self.inner = nn.Linear(2, 2)
  end
  function Wide:forward(x) return self.inner(x) end
  lu.assertStrContains(tostring(Wide()), ("w"):rep(120))
  lu.assertStrContains(Wide():summary "f32[2, 2]", ("w"):rep(120) .. "  f32[2, 2]")
end

function TestSummary:test_columns_stand_below_each_other()
  local width
  for line in nn.Sequential({ nn.Linear(1000, 2000), nn.ReLU() }):summary("f32[7, 1000]"):gmatch "[^\n]+" do
    local at = line:find "f32" or line:find "output"
    at = at and utf8.len(line, 1, at)
    width = width or at
    lu.assertTrue(at == width or line:find "trained" ~= nil or line:find "operations" ~= nil, line)
  end
end

-- A layer in a table of a layer is named by its path from there.
function TestSummary:test_layers_in_tables()
  local Stack = nn.class "Stack"
  function Stack:init() self.blocks = { nn.Linear(4, 4), { nn.Sequential { nn.ReLU() } } } end
  function Stack:forward(x) return self.blocks[2][1](self.blocks[1](x)) end
  local text = nn.Sequential({ Stack() }):summary "f32[2, 4]"
  lu.assertStrContains(text, "\n└─ 1  Stack ")
  lu.assertStrContains(text, "\n   ├─ blocks.1  nn.Linear 4 -> 4 ")
  lu.assertStrContains(text, "\n   └─ blocks.2.1  nn.Sequential ")
  lu.assertStrContains(text, "\n      └─ 1  nn.ReLU ")
end

-- Lines are drawn beside what follows in the same layer alone.
function TestSummary:test_lines_of_the_tree()
  local function inner() return nn.Sequential { nn.Linear(4, 4) } end
  local text = nn.Sequential({ nn.ReLU(), nn.Sequential { inner(), inner() } }):summary "f32[2, 4]"
  local tree = {}
  for line in text:gmatch "\n([^\n]-)%d  nn%.%w+" do
    tree[#tree + 1] = line
  end
  lu.assertEquals(tree, { "├─ ", "└─ ", "   ├─ ", "   │  └─ ", "   └─ ", "      └─ " })
end

function TestSummary:test_a_printed_layer_is_a_tree()
  local Stack = nn.class "Stack"
  function Stack:init()
    self.blocks = { nn.Linear(4, 4), { nn.Sequential { nn.ReLU() } } }
    self.tied = self.blocks[1]
    self.gain = dc.param "f32[4]"
  end
  lu.assertEquals(tostring(nn.Sequential { Stack(), nn.Linear(1000, 4) }), [[
nn.Sequential
  1  Stack                          4
    blocks.1  nn.Linear 4 -> 4     20
    blocks.2.1  nn.Sequential
      1  nn.ReLU
  2  nn.Linear 1000 -> 4        4,004
4,028 trained, 16,112 bytes]])
  lu.assertEquals(tostring(nn.Linear(4, 4)), "nn.Linear 4 -> 4")
  lu.assertEquals(tostring(nn.Sequential {}), "nn.Sequential")
end

function TestSummary:test_several_inputs_and_results()
  local Two = nn.class "Two"
  function Two:forward(x, y) return x * 2, { y } end
  lu.assertStrContains(Two():summary("f32[2]", dc.zeros "i32[3]"), "f32[2], {...}")
  lu.assertStrContains(Block(4):summary("f32[2, 4]", "f32[]"), "f32[2, 4]")
end

-- The numbers of a column, by the names of rows.
local function column(text, title)
  local lines, at = {}, nil
  for line in text:gmatch "[^\n]+" do
    if not at then
      local _, last = line:find(title, 1, true)
      at = last
    elseif line:find "trained" then
      break
    else
      local cut = utf8.len(line) >= at and line:sub(1, utf8.offset(line, at + 1) - 1) or ""
      lines[#lines + 1] = math.tointeger(tonumber(((cut:match "  ([%d,]+)$" or "0"):gsub(",", ""))))
    end
  end
  return lines
end

local input_device = dc.zeros("f32[1]").device

-- Operations are those of the kernels, where fusion neither repeats nor leaves out any.
function TestSummary:test_operations_are_those_of_kernels()
  local function compare(layer, input, wanted)
    local text = layer:summary(input)
    lu.assertEquals(math.tointeger(tonumber((text:match "([%d,]+) operations":gsub(",", "")))), wanted, text)
    local f = dc.fn(("f(x: %s) -> ()"):format(input), function(x) dc.print(layer(x)) end)
    local sum = 0
    for _, kernel in ipairs(f:kernels()) do
      sum = sum + kernel.flops
    end
    if #f:kernels() > 0 and input_device:find "^cpu" then -- others choose other kernels
      lu.assertEquals(sum, wanted)
    end
  end
  compare(nn.Linear(784, 128, { bias = false }), "f32[64, 784]", 2 * 64 * 784 * 128)
  compare(nn.Linear(784, 128), "f32[64, 784]", 2 * 64 * 784 * 128 + 64 * 128)
  compare(nn.Sequential { nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 8) }, "f32[4, 16]",
    2 * 4 * 16 * 32 + 2 * 4 * 32 + 2 * 4 * 32 * 8 + 4 * 8)
  compare(nn.Conv2d(8, 16, 3, { padding = 1, bias = false }), "f32[2, 8, 10, 10]", 2 * 2 * 16 * 100 * 9 * 8)
  compare(nn.Conv2d(8, 16, 3, { groups = 4, bias = false }), "f32[2, 8, 10, 10]", 2 * 2 * 16 * 64 * 9 * 2)
  compare(nn.Conv2d(8, 16, 3, { stride = 2 }), "f32[2, 8, 11, 11]", 2 * 2 * 16 * 25 * 9 * 8 + 2 * 16 * 25)
end

-- Of a size that is known at a call, at most.
function TestSummary:test_of_a_state_that_grows()
  local Seen = nn.class "Seen"
  function Seen:init() self.seen = dc.state "f32[0 <= t <= 512, 64]" end
  function Seen:forward(x)
    self.seen:set(dc.concat({ self.seen, x }, 1))
    return self.seen:exp()
  end
  local text = Seen():summary "f32[3, 64]"
  local last = column(text, "operations")[1]
  lu.assertTrue(last >= 512 * 64 and last < 20 * 515 * 64, text)
  lu.assertEquals(column(text, "activations")[1] % (64 * 4), 0)
end

-- A loop counts as often as it runs; what is computed again from the same values, once.
function TestSummary:test_operations_of_loops_and_repeats()
  local Twice = nn.class "Twice"
  function Twice:init() self.inner = nn.Linear(4, 4, { bias = false }) end
  function Twice:forward(x) return self.inner(x) + self.inner(x) end
  lu.assertEquals(column(Twice():summary "f32[2, 4]", "operations"), { 8, 64, 0 })
  local Loop = nn.class "Loop"
  function Loop:init() self.inner = nn.Linear(4, 4, { bias = false }) end
  function Loop:forward(x)
    local last = dc.scan(function(c, row) return self.inner(c):tanh() * row, c end, dc.ones "f32[1, 4]", x)
    return last
  end
  local a = column(Loop():summary "f32[3, 1, 4]", "operations")
  local b = column(Loop():summary "f32[6, 1, 4]", "operations")
  lu.assertEquals(b[1], 2 * a[1])
  lu.assertTrue(a[1] >= 3 * (32 + 4))
end

function TestSummary:test_is_folded_by_depth()
  local net = nn.Sequential { Block(4), nn.Sequential { nn.Linear(4, 4), nn.Sequential { nn.ReLU() } } }
  local whole = net:summary "f32[2, 4]"
  for depth = 0, 3 do
    local text = net:summary("f32[2, 4]", { depth = depth })
    local _, lines = text:gsub("\n", "")
    lu.assertEquals(lines, ({ [0] = 3, 6, 9, 10 })[depth]) -- and what was not called
    lu.assertEquals(text:match "[^\n]*$", whole:match "[^\n]*$")
    for _, title in ipairs { "parameters", "bytes", "operations", "activations" } do
      local sum, all = 0, 0
      for _, n in ipairs(column(text, title)) do
        sum = sum + n
      end
      for _, n in ipairs(column(whole, title)) do
        all = all + n
      end
      lu.assertEquals(sum, all, title)
    end
  end
  lu.assertStrContains(net:summary("f32[2, 4]", { depth = 1 }), "─ 2  nn.Sequential ...")
  fails("summary: depth is an integer from 0, not -1", net.summary, net, "f32[2, 4]", { depth = -1 })
  fails("summary: unknown option 'deep'", net.summary, net, "f32[2, 4]", { deep = 1 })
  fails("summary: the type of an input is needed", net.summary, net, { depth = 1 })
end

-- Nothing is compiled or computed, no cell changes, the generator stands where it stood.
function TestSummary:test_leaves_no_trace()
  local net = nn.Sequential { Block(4), nn.Dropout(0.5) }
  local before, generator = dc.stats(), dc.generator():totable()
  net:summary "f32[2, 4]"
  local after = dc.stats()
  for _, key in ipairs { "compiles", "launches", "calls" } do
    lu.assertEquals(after[key], before[key])
  end
  lu.assertEquals(net[1].count:item(), 0)
  lu.assertEquals(dc.generator():totable(), generator)
  lu.assertEquals(net(dc.zeros "f32[2, 4]").shape, { 2, 4 })
  lu.assertNil(rawget(net, "forward"))
  lu.assertNil(rawget(net[1].inner, "forward"))
end

function TestSummary:test_mistakes()
  local net = nn.Sequential { nn.Linear(4, 2) }
  local err = fails("matmul: inner dims differ", function() net:summary "f32[2, 5]" end)
  lu.assertEquals(err.path, "net.1 (nn.Linear 4 -> 2)")
  lu.assertNil(rawget(net[1], "forward"))
  fails("summary: the type of an input is needed", net.summary, net)
  fails("summary: input 1 is a number, not a type", net.summary, net, 4)
  fails("dim 'n' has no size", net.summary, net, "f32[n, 4]")
  fails("summary() is called for", dc.fn, "f() -> ()", function() net:summary "f32[2, 4]" end)
end

TestInit = {}

local function spread(t)
  return t:mean():item(), t:std():item(), t:abs():max():item()
end

function TestInit:test_uniform_and_normal()
  local mean, std, most = spread(nn.init.uniform("f32[200, 100]", { low = -2, high = 2, seed = 1 }))
  lu.assertAlmostEquals(mean, 0, 0.05)
  lu.assertAlmostEquals(std, 4 / math.sqrt(12), 0.02)
  lu.assertTrue(most <= 2)
  mean, std = spread(nn.init.normal("f32[200, 100]", { mean = 3, std = 0.5, seed = 1 }))
  lu.assertAlmostEquals(mean, 3, 0.02)
  lu.assertAlmostEquals(std, 0.5, 0.01)
end

function TestInit:test_plain_values()
  lu.assertEquals(nn.init.zeros "f32[2]":totable(), { 0, 0 })
  lu.assertEquals(nn.init.ones "f32[2]":totable(), { 1, 1 })
  lu.assertEquals(nn.init.constant("f32[2]", 0.5):totable(), { 0.5, 0.5 })
end

function TestInit:test_variances()
  local inputs, outputs = 300, 100
  local cases = {
    { nn.init.xavier_uniform, {}, 2 / (inputs + outputs), true },
    { nn.init.xavier_normal, { gain = "tanh" }, (5 / 3) ^ 2 * 2 / (inputs + outputs) },
    { nn.init.kaiming_uniform, {}, 2 / inputs, true },
    { nn.init.kaiming_uniform, { gain = "leaky_relu", slope = 5 ^ 0.5 }, 1 / (3 * inputs), true }, -- of nn.Linear
    { nn.init.kaiming_normal, { mode = "fan_out" }, 2 / outputs },
    { nn.init.kaiming_normal, { gain = 3 }, 9 / inputs },
    { nn.init.kaiming_normal, { gain = "selu" }, 9 / 16 / inputs },
  }
  for i, case in ipairs(cases) do
    case[2].seed = i
    local mean, std, most = spread(case[1]("f32[300, 100]", case[2]))
    local want = math.sqrt(case[3])
    lu.assertAlmostEquals(mean, 0, want * 0.03)
    lu.assertAlmostEquals(std, want, want * 0.02)
    lu.assertTrue(not case[4] or most <= want * math.sqrt(3) * 1.0001)
  end
end

function TestInit:test_windows_count()
  local _, std = spread(nn.init.kaiming_normal("f32[64, 32, 3, 3]", { seed = 1 })) -- [outputs, inputs, window]
  lu.assertAlmostEquals(std, math.sqrt(2 / (32 * 9)), 0.002)
  _, std = spread(nn.init.xavier_normal("f32[64, 32, 3, 3]", { seed = 1 }))
  lu.assertAlmostEquals(std, math.sqrt(2 / (96 * 9)), 0.001)
end

function TestInit:test_orthogonal()
  for _, shape in ipairs { { 40, 40 }, { 10, 30 }, { 30, 10 }, { 8, 2, 3 }, { 1, 5 }, { 4, 1 } } do
    local text = ("f32[%s]"):format(table.concat(shape, ", "))
    local q = nn.init.orthogonal(text, { seed = 3, gain = 2 })
    lu.assertEquals(q.shape, shape)
    q = q:reshape(shape[1], -1)
    q = q.shape[1] > q.shape[2] and q:transpose() or q
    local n = q.shape[1]
    local off = q:matmul(q:transpose()) - dc.eye(("f32[%d, %d]"):format(n, n)) * 4
    lu.assertTrue(off:abs():max():item() < 1e-5, text)
  end
end

function TestInit:test_orthogonal_in_other_dtypes()
  for dtype, tolerance in pairs { f64 = 1e-14, f16 = 4e-3 } do
    local q = nn.init.orthogonal(dtype .. "[16, 16]", { seed = 3 })
    lu.assertEquals(q.dtype, dtype)
    local off = q:cast "f64":matmul(q:cast "f64":transpose()) - dc.eye "f64[16, 16]"
    lu.assertTrue(off:abs():max():item() < tolerance, dtype)
  end
end

function TestInit:test_the_seed_tells()
  for _, name in ipairs { "uniform", "normal", "xavier_uniform", "xavier_normal", "kaiming_uniform", "kaiming_normal",
    "orthogonal" } do
    local f = nn.init[name]
    lu.assertEquals(f("f32[4, 4]", { seed = 5 }):totable(), f("f32[4, 4]", { seed = 5 }):totable())
    lu.assertNotEquals(f("f32[4, 4]", { seed = 5 }):totable(), f("f32[4, 4]", { seed = 6 }):totable())
    dc.seed(9)
    local first, second = f("f32[4, 4]"):totable(), f("f32[4, 4]"):totable()
    lu.assertNotEquals(first, second)
    dc.seed(9)
    lu.assertEquals(f("f32[4, 4]"):totable(), first)
  end
end

TestPaths = {}

-- The names that an error gives the layer, here a local of this name, and its weight.
local function named(layer)
  local _, err = pcall(layer, dc.ones "f32[1, 99]")
  return tostring(err):match "in +([^\n]*) %(nn%.Linear", tostring(err):match "parameter ([%w_.]+)"
end

function TestPaths:test_a_part_that_is_swapped_out_loses_its_name()
  local net = nn.Sequential { nn.Linear(4, 3), nn.Sequential { nn.Linear(3, 2) } }
  net(dc.ones "f32[1, 4]")
  local first, inner = net[1], net[2][1]
  local name, weight = named(inner)
  lu.assertEquals({ name, weight }, { "net.2.1", "net.2.1.weight" })
  net[2] = nn.Linear(3, 5)
  net[1] = nn.Linear(4, 3)
  name, weight = named(inner)
  lu.assertEquals({ name, weight }, { "layer", "layer.weight" })
  name, weight = named(first)
  lu.assertEquals({ name, weight }, { "layer", "layer.weight" })
  name, weight = named(net[2])
  lu.assertEquals({ name, weight }, { "net.2", "net.2.weight" })
end

function TestPaths:test_a_part_that_stands_elsewhere_too_is_named_for_that()
  local shared = nn.Linear(4, 4)
  local net = nn.Sequential { shared, nn.ReLU(), shared }
  net(dc.ones "f32[1, 4]")
  lu.assertEquals((named(shared)), "net.1")
  net[1] = nn.ReLU()
  lu.assertEquals((named(shared)), "net.3")
end

function TestInit:test_a_cell_stands_for_its_type()
  local layer = nn.Linear(6, 4)
  layer.weight:set(nn.init.orthogonal(layer.weight, { seed = 1 }))
  layer.bias:set(nn.init.zeros(layer.bias))
  lu.assertEquals(layer.bias:totable(), { 0, 0, 0, 0 })
  lu.assertAlmostEquals(layer.weight[{ {}, 1 }]:norm():item(), 1, 1e-5)
end

function TestInit:test_mistakes()
  fails("xavier_normal: f32[3] has no inputs and outputs", nn.init.xavier_normal, "f32[3]")
  fails("no gain for 'swish'", nn.init.kaiming_normal, "f32[3, 3]", { gain = "swish" })
  fails('mode is "fan_in" or "fan_out", not \'in\'', nn.init.kaiming_normal, "f32[3, 3]", { mode = "in" })
  fails("unknown option 'mode'", nn.init.xavier_normal, "f32[3, 3]", { mode = "fan_in" })
  fails("orthogonal: f32[3] has no rows and columns", nn.init.orthogonal, "f32[3]")
  fails("a type or a parameter is needed, not nil", nn.init.zeros)
  fails("deepc.nn.init has no 'he_normal'", function() return nn.init.he_normal end)
end
