-- Recurrent networks: beside their cells stepped by hand, beside numbers of PyTorch, and in training.
local lu = require "luaunit"
local dc = require "deepc"
local nn = require "deepc.nn"
local optim = require "deepc.optim"
local check = require "tests.lua.check"

local fails, close = check.fails, check.close

local function draw(seed, ...)
  return dc.randn(("f32[%s]"):format(table.concat({ ... }, ", ")), { seed = seed })
end

local function flat(x)
  return x:reshape(-1):totable()
end

local function parts_of(kind, state)
  return kind == "LSTM" and { state.h, state.c } or { state }
end

-- A typed function and the body itself: what works in one works in the other.
local function both(signature, body)
  return { dc.fn(signature, body), body }
end

local kinds = { "RNN", "LSTM", "GRU" }

-- ---- weights ----

TestWeights = {}

function TestWeights:test_names_and_sizes_are_those_of_pytorch_turned()
  local net = nn.LSTM(3, 5, { layers = 2, bidirectional = true, proj_size = 4 })
  local found = {}
  for _, named in ipairs(net:named_parameters()) do
    found[named[1]] = table.concat(named[2].shape, " ")
  end
  local want = {}
  for _, way in ipairs { "", "_reverse" } do
    want["weight_ih_l0" .. way], want["weight_ih_l1" .. way] = "3 20", "8 20"
    for _, layer in ipairs { "_l0", "_l1" } do
      want["weight_hh" .. layer .. way], want["weight_hr" .. layer .. way] = "4 20", "5 4"
      want["bias_ih" .. layer .. way], want["bias_hh" .. layer .. way] = "20", "20"
    end
  end
  lu.assertEquals(found, want)
  lu.assertEquals(tostring(net), "nn.LSTM 3 -> 5, 2 layers, bidirectional, projected to 4")
end

function TestWeights:test_gates()
  lu.assertEquals(nn.RNN(3, 5).weight_hh_l0.shape, { 5, 5 })
  lu.assertEquals(nn.GRU(3, 5).weight_ih_l0.shape, { 3, 15 })
  lu.assertEquals(nn.LSTMCell(3, 5).weight_ih.shape, { 3, 20 })
  lu.assertEquals(nn.GRUCell(3, 5).bias_hh.shape, { 15 })
  lu.assertEquals(#nn.GRU(3, 5, { bias = false }):parameters(), 2)
  lu.assertEquals(#nn.RNNCell(3, 5, { bias = false }):parameters(), 2)
end

function TestWeights:test_they_start_uniform()
  dc.seed(1)
  local w = nn.LSTM(50, 100).weight_ih_l0
  lu.assertTrue(w:max():item() < 0.1 and w:min():item() >= -0.1)
  lu.assertAlmostEquals((w * w):mean():item(), 0.01 / 3, 0.0003)
end

function TestWeights:test_files_of_pytorch_are_turned()
  local path, net = os.tmpname(), nn.GRU(2, 3)
  dc.save(path, { weight_ih_l0 = draw(1, 9, 2), weight_hh_l0 = draw(2, 9, 3), bias_ih_l0 = draw(3, 9),
    bias_hh_l0 = draw(4, 9) })
  dc.load(path, net)
  os.remove(path)
  lu.assertEquals(net.weight_hh_l0:totable(), draw(2, 9, 3):transpose():totable())
end

-- ---- beside PyTorch ----

--[[ What PyTorch 2.15 gives:

    import torch
    from torch.nn.utils.rnn import pack_padded_sequence as pack, pad_packed_sequence as unpack
    def fill(*sizes, start=0):
        n = torch.Size(sizes).numel()
        return (torch.sin(torch.arange(start, start + n, dtype=torch.float64)) / 2).float().reshape(sizes)
    for kind, options in (("RNN", dict(nonlinearity="relu")), ("LSTM", dict(proj_size=2)), ("GRU", {})):
        net = getattr(torch.nn, kind)(2, 3, num_layers=2, bidirectional=True, **options)
        for i, (name, p) in enumerate(sorted(net.named_parameters())):
            p.data = fill(*reversed(p.shape), start=i).t() if p.dim() == 2 else fill(*p.shape, start=i)
            p.data = p.data.contiguous()
        x, n = fill(3, 2, 2, start=50).requires_grad_(), torch.tensor([3, 1])
        y, last = net(pack(x, n, enforce_sorted=False))
        y = unpack(y, total_length=3)[0]
        (y * y).sum().backward()
        print(kind, y, last, x.grad, net.bias_hh_l1_reverse.grad)
--]]
local pytorch = {
  RNN = {
    options = { nonlinearity = "relu" },
    y = { 0.326739, 0.383452, 0.087621, 0.210319, 0, 0, 0.527954, 0.561894, 0.079231, 0.561894, 0.079231, 0,
      0.484603, 0.522402, 0.079907, 0.346271, 0, 0, 0, 0, 0, 0, 0, 0, 0.387114, 0.451294, 0.100556, 0.473256,
      0.090718, 0, 0, 0, 0, 0, 0, 0 },
    h = { 0, 0.131112, 0.349624, 0, 0.016413, 0.464121, 0, 0.111158, 0.214435, 0.016413, 0.464121, 0.485118,
      0.387114, 0.451294, 0.100556, 0.527954, 0.561894, 0.079231, 0.210319, 0, 0, 0.561894, 0.079231, 0 },
    x = { 0.462417, -0.400508, 0.369977, -0.436294, 0.453828, -0.392075, 0, 0, 0.474921, -0.461949, 0, 0 },
    bias = { 2.732053, 0.578746, 0 },
  },
  LSTM = {
    options = { proj_size = 2 },
    y = { 0.000174, -0.022811, -0.003065, -0.102174, 0.001659, -0.021971, 0.004307, -0.058522, 0.000083, -0.028895,
      0.001492, -0.088422, 0, 0, 0, 0, 0.003294, -0.029145, 0.005807, -0.060922, 0, 0, 0, 0 },
    h = { -0.022624, -0.104883, -0.024022, -0.036249, -0.056901, -0.114053, -0.067207, -0.074901, 0.003294, -0.029145,
      0.001659, -0.021971, -0.003065, -0.102174, 0.004307, -0.058522 },
    c = { -0.304518, -0.194099, 0.113175, -0.137202, -0.163875, -0.048185, -0.154420, 0.214258, 0.377482, -0.163875,
      -0.048185, 0.184894, 0.286304, 0.451863, 0.219212, 0.169836, 0.283226, 0.127091, 0.462113, 0.249310, -0.172335,
      0.283226, 0.127091, -0.094648 },
    x = { 0.000809, -0.000319, 0.000259, -0.000291, 0.002498, 0.000686, 0, 0, 0.001074, -0.000573, 0, 0 },
    bias = { 0.004102, 0.008195, 0.012232, 0.001535, 0.002733, 0.003613, 0.017422, 0.062311, -0.085346, 0.007530,
      0.010578, 0.009723 },
  },
  GRU = {
    options = {},
    y = { 0.073838, 0.253739, 0.187460, 0.372343, 0.330293, 0.045388, 0.051643, 0.275970, 0.225089, 0.275970, 0.225089,
      0.032165, 0.126140, 0.394611, 0.299484, 0.375171, 0.317249, 0.040995, 0, 0, 0, 0, 0, 0, 0.106140, 0.429516,
      0.363746, 0.275427, 0.234590, 0.040460, 0, 0, 0, 0, 0, 0 },
    h = { -0.253958, -0.238397, 0.107889, -0.151942, -0.128937, 0.117647, -0.255140, -0.003273, 0.247551, -0.128937,
      0.117647, 0.260508, 0.106140, 0.429516, 0.363746, 0.051643, 0.275970, 0.225089, 0.372343, 0.330293, 0.045388,
      0.275970, 0.225089, 0.032165 },
    x = { 0.237503, -0.246703, 0.184406, -0.178355, 0.462658, -0.418894, 0, 0, 0.323368, -0.353710, 0, 0 },
    bias = { 0.057469, -0.111622, -0.000724, -0.149362, -0.215427, 0.001616, 0.883824, 0.870292, 0.004510 },
  },
}

TestPyTorch = {}

local function fill(shape, start)
  local n, numbers = 1, {}
  for _, size in ipairs(shape) do
    n = n * size
  end
  for k = 1, n do
    numbers[k] = math.sin(start + k - 1) / 2
  end
  return dc.tensor(numbers):reshape(shape)
end

function TestPyTorch:test_numbers()
  for _, kind in ipairs(kinds) do
    local want = pytorch[kind]
    want.options.layers, want.options.bidirectional = 2, true
    local net = nn[kind](2, 3, want.options)
    for i, named in ipairs(net:named_parameters()) do
      named[2]:set(fill(named[2].shape, i - 1))
    end
    local run = both("run(x: f32[t, b, 2], n: i32[b])", function(x, n)
      local y, last = net(x, nil, { lengths = n })
      local grads = dc.grad((y * y):sum(), { x, net.bias_hh_l1_reverse })
      return y, grads[1], grads[2], table.unpack(parts_of(kind, last))
    end)
    for _, f in ipairs(run) do
      local y, gx, gb, h, c = f(fill({ 3, 2, 2 }, 50), dc.tensor({ 3, 1 }, "i32"))
      close(flat(y), want.y, 2e-6, kind .. " y")
      close(flat(h), want.h, 2e-6, kind .. " h")
      close(flat(gx), want.x, 2e-6, kind .. " gradient of x")
      close(flat(gb), want.bias, 2e-6, kind .. " gradient of a bias")
      if c then
        close(flat(c), want.c, 2e-6, kind .. " c")
      end
    end
  end
end

-- What is behind a length counts nothing, in the gradients of weights either.
function TestPyTorch:test_behind_a_length()
  local nan = 0 / 0
  for _, kind in ipairs(kinds) do
    local net = nn[kind](2, 3, { batch_first = true, bidirectional = true })
    local run = both("run(x: f32[b, t, 2], n: i32[b])", function(x, n)
      local y = net(x, nil, { lengths = n })
      return y, table.unpack(dc.grad((y * y):sum(), { x, net.weight_ih_l0, net.weight_hh_l0_reverse }))
    end)
    for _, f in ipairs(run) do
      local n, good = dc.tensor({ 3, 1 }, "i32"), fill({ 2, 3, 2 }, 50)
      local bad = dc.where(dc.iota(3):lt(n:reshape(-1, 1)):reshape(2, 3, 1), good, nan)
      local want, got = { f(good, n) }, { f(bad, n) }
      for i = 1, 4 do
        lu.assertEquals(flat(got[i]), flat(want[i]), kind)
      end
    end
  end
end

-- ---- beside cells ----

TestCells = {}

-- A cell with the weights of a layer of a network.
local function cell_of(kind, net, suffix)
  local cell = nn[kind .. "Cell"](net["weight_ih" .. suffix].shape[1], net.hidden, { bias = net.bias_ih_l0 ~= nil,
    nonlinearity = net.nonlinearity })
  for _, name in ipairs { "weight_ih", "weight_hh", "bias_ih", "bias_hh" } do
    cell[name] = net[name .. suffix]
  end
  return cell
end

-- y and the last state of one direction, by a loop of Lua; lengths is a list of Lua's integers.
local function step_by_hand(kind, cell, x, state, lengths, backwards)
  local list, n = {}, #x
  for k = 1, n do
    local t = backwards and n + 1 - k or k
    local next = cell(x[t], state)
    local h = kind == "LSTM" and next.h or next
    if lengths then
      local rows = {}
      for i, length in ipairs(lengths) do
        rows[i] = { t <= length }
      end
      local live = dc.tensor(rows, "bool")
      local function keep(a, b) return (dc.where(live, a, b)) end
      next = kind == "LSTM" and { h = keep(next.h, state.h), c = keep(next.c, state.c) } or keep(next, state)
      h = keep(h, dc.zeros(h))
    end
    state, list[t] = next, h
  end
  return dc.stack(list, 1), state
end

-- Cells for all layers of a network and both directions.
local function cells_of(kind, net)
  local cells = {}
  for k = 0, net.layers - 1 do
    for _, way in ipairs(net.bidirectional and { "", "_reverse" } or { "" }) do
      cells[#cells + 1] = cell_of(kind, net, ("_l%d%s"):format(k, way))
    end
  end
  return cells
end

-- The same as net(x, nil, { lengths = lengths }).
local function by_hand(kind, net, x, lengths, cells)
  local rows = {}
  for _ = 1, net.layers do
    local ys = {}
    for d = 1, net.bidirectional and 2 or 1 do
      local zeros = dc.zeros(("f32[%d, %d]"):format(x.shape[2], net.hidden))
      local state = kind == "LSTM" and { h = zeros, c = zeros } or zeros
      ys[d], rows[#rows + 1] = step_by_hand(kind, cells[#rows + 1], x, state, lengths, d == 2)
    end
    x = #ys == 2 and dc.concat(ys, 3) or ys[1]
  end
  return x, rows
end

local variants = {
  {}, { layers = 3, bias = false }, { bidirectional = true }, { layers = 2, bidirectional = true },
}

local function compare(kind, options, numbers)
  local net = nn[kind](3, 4, options)
  local x = draw(1, 5, 2, 3)
  local n = numbers and dc.tensor(numbers, "i32[2]")
  local want, rows = by_hand(kind, net, x, numbers, cells_of(kind, net))
  local run = both("run(v: f32[5, 2, 3], lengths?: i32[2])", function(v, lengths)
    local y, last = net(v, nil, lengths and { lengths = lengths })
    return y, table.unpack(parts_of(kind, last))
  end)
  for _, f in ipairs(run) do
    local y, h, c = f(x, n)
    close(flat(y), flat(want), 1e-6, kind)
    for k, row in ipairs(rows) do
      local parts = parts_of(kind, row)
      close(flat(h[k]), flat(parts[1]), 1e-6, kind)
      if c then
        close(flat(c[k]), flat(parts[2]), 1e-6, kind)
      end
    end
  end
end

function TestCells:test_networks_are_cells_stepped_by_hand()
  for _, kind in ipairs(kinds) do
    for _, options in ipairs(variants) do
      compare(kind, options)
    end
  end
  compare("RNN", { nonlinearity = "relu", layers = 2 })
end

function TestCells:test_lengths()
  for _, kind in ipairs(kinds) do
    for _, options in ipairs(variants) do
      compare(kind, options, { 2, 5 })
    end
    compare(kind, { bidirectional = true }, { 0, 3 })
  end
end

function TestCells:test_one_step_in_numbers()
  local rnn = nn.RNNCell(1, 1)
  rnn.weight_ih:set(2)
  rnn.weight_hh:set(3)
  rnn.bias_ih:set(0.25)
  rnn.bias_hh:set(-0.5)
  lu.assertAlmostEquals(rnn(dc.tensor { 0.1 }, dc.tensor { 0.2 }):item(), 0.5005202, 1e-6)
  local sigmoid = function(v) return 1 / (1 + math.exp(-v)) end
  local tanh = function(v) return 2 * sigmoid(2 * v) - 1 end
  local lstm = nn.LSTMCell(1, 1, { bias = false })
  lstm.weight_ih:set { { 0.1, 0.2, 0.3, 0.4 } }
  lstm.weight_hh:set { { 0.5, 0.6, 0.7, 0.8 } }
  local next = lstm(dc.tensor { 1 }, { h = dc.tensor { 2 }, c = dc.tensor { 3 } })
  local c = sigmoid(1.4) * 3 + sigmoid(1.1) * tanh(1.7)
  lu.assertAlmostEquals(next.c:item(), c, 1e-6)
  lu.assertAlmostEquals(next.h:item(), sigmoid(2) * tanh(c), 1e-6)
  local gru = nn.GRUCell(1, 1)
  gru.weight_ih:set { { 0.1, 0.2, 0.3 } }
  gru.weight_hh:set { { 0.4, 0.5, 0.6 } }
  gru.bias_ih:set { 1, 2, 3 }
  gru.bias_hh:set { -1, -2, -4 }
  local r, z = sigmoid(0.1 + 0.8), sigmoid(0.2 + 1)
  local n = tanh(3.3 + r * (1.2 - 4))
  lu.assertAlmostEquals(gru(dc.tensor { 1 }, dc.tensor { 2 }):item(), (1 - z) * n + z * 2, 1e-6)
end

function TestCells:test_a_cell_in_a_scan()
  local cell = nn.LSTMCell(3, 4)
  local net = nn.LSTM(3, 4)
  for _, name in ipairs { "weight_ih", "weight_hh", "bias_ih", "bias_hh" } do
    net[name .. "_l0"]:set(cell[name])
  end
  local f = dc.fn("f(x: f32[t, b, 3]) -> f32[t, b, 4]", function(x)
    local zeros = dc.zeros(("f32[%d, 4]"):format(dc.dim "b"))
    local _, y = dc.scan(function(state, element)
      state = cell(element, state)
      return state, state.h
    end, { h = zeros, c = zeros }, x)
    return y
  end)
  local x = draw(1, 6, 2, 3)
  close(flat(f(x)), flat((net(x))), 1e-6)
end

function TestCells:test_any_leading_axes_and_zeros()
  for _, kind in ipairs(kinds) do
    local cell = nn[kind .. "Cell"](3, 4)
    local x = draw(1, 2, 5, 3)
    local h = parts_of(kind, cell(x))[1]
    lu.assertEquals(h.shape, { 2, 5, 4 })
    close(flat(h[2][3]), flat(parts_of(kind, cell(x[2][3]))[1]), 1e-6)
  end
end

-- ---- sequences ----

TestSequences = {}

function TestSequences:test_rows_of_other_lengths_do_not_disturb_each_other()
  for _, kind in ipairs(kinds) do
    local net = nn[kind](3, 4, { layers = 2, bidirectional = true })
    local x, lengths = draw(1, 6, 3, 3), { 6, 1, 4 }
    local y, last = net(x, nil, { lengths = dc.tensor(lengths, "i32") })
    for row, n in ipairs(lengths) do
      local alone, its = net(x[{ { 1, n }, row }])
      close(flat(y[{ { 1, n }, row }]), flat(alone), 1e-6)
      lu.assertEquals(n == 6 or y[{ { n + 1, 6 }, row }]:eq(0):all():item(), true)
      for k, part in ipairs(parts_of(kind, last)) do
        close(flat(part[{ {}, row }]), flat(parts_of(kind, its)[k]), 1e-6)
      end
    end
  end
end

function TestSequences:test_lengths_of_any_integer_dtype()
  for _, kind in ipairs(kinds) do
    local net = nn[kind](3, 4)
    local x = draw(1, 6, 2, 3)
    local want = flat((net(x, nil, { lengths = dc.tensor({ 5, 2 }, "i32") })))
    for _, dtype in ipairs { "i8", "u8", "i16", "u16", "u32", "i64", "u64" } do
      close(flat((net(x, nil, { lengths = dc.tensor({ 5, 2 }, dtype) }))), want, 1e-6)
    end
    for _, wrong in ipairs { 1 << 32, (1 << 32) + 2, -1 } do -- in 32 bits two of them were right
      lu.assertErrorMsgContains("DC0701", function()
        return net(x, nil, { lengths = dc.tensor({ 5, wrong }, "i64") })[1]:sum():item()
      end)
    end
    lu.assertErrorMsgContains("integers are needed", net, x, nil, { lengths = dc.tensor({ 5, 2 }, "f32") })
  end
end

function TestSequences:test_without_a_batch()
  for _, kind in ipairs(kinds) do
    local net = nn[kind](3, 4, { layers = 2 })
    local x = draw(1, 5, 1, 3)
    local y, last = net(x)
    local alone, its = net(x[{ {}, 1 }])
    lu.assertEquals(alone.shape, { 5, 4 })
    lu.assertEquals(parts_of(kind, its)[1].shape, { 2, 4 })
    close(flat(alone), flat(y), 1e-6)
    close(flat(parts_of(kind, its)[1]), flat(parts_of(kind, last)[1]), 1e-6)
    local short = net(x[{ {}, 1 }], its, { lengths = dc.tensor(2, "i32[]") })
    close(flat(short[{ { 1, 2 } }]), flat((net(x[{ { 1, 2 }, 1 }], its))), 1e-6)
  end
end

function TestSequences:test_batch_first()
  for _, kind in ipairs(kinds) do
    dc.seed(3)
    local net = nn[kind](3, 4, { bidirectional = true })
    dc.seed(3)
    local turned = nn[kind](3, 4, { bidirectional = true, batch_first = true })
    local x, lengths = draw(1, 5, 2, 3), { lengths = dc.tensor({ 5, 3 }, "i32") }
    local y, last = net(x, nil, lengths)
    local other, same = turned(x:transpose(1, 2), nil, lengths)
    close(flat(other:transpose(1, 2)), flat(y), 1e-6)
    close(flat(parts_of(kind, same)[1]), flat(parts_of(kind, last)[1]), 1e-6)
    lu.assertEquals(turned(x[{ {}, 1 }]).shape, { 5, 8 })
  end
end

function TestSequences:test_states_go_on()
  for _, kind in ipairs(kinds) do
    local net = nn[kind](3, 4, { layers = 2 })
    local run = dc.fn("run(x: f32[t, b, 3])", function(x)
      local y, last = net(x)
      return y, table.unpack(parts_of(kind, last))
    end)
    local on = both("on(x: f32[t, b, 3], h: f32[2, b, d], c?: f32[2, b, d])", function(x, h, c)
      local y, last = net(x, kind == "LSTM" and { h = h, c = c } or h)
      return y, table.unpack(parts_of(kind, last))
    end)
    local x = draw(1, 7, 2, 3)
    local whole, end_h = run(x)
    local first, h, c = run(x[{ { 1, 3 } }])
    for _, f in ipairs(on) do
      local second, last = f(x[{ { 4, 7 } }], h, c)
      close(flat(dc.concat({ first, second }, 1)), flat(whole), 1e-6)
      close(flat(last), flat(end_h), 1e-6)
    end
  end
end

function TestSequences:test_names_of_dims_stay()
  local net = nn.GRU(3, 4, { layers = 2, bidirectional = true })
  local f = dc.fn("f(x: f32[t, b, d], n: i32[b]) -> f32[t, b, 8], f32[4, b, 4]", function(x, n)
    return net(x, nil, { lengths = n })
  end)
  local y, h = f(dc.ones "f32[time=5, row=2, channel=3]", dc.tensor({ 1, 2 }, "i32"))
  lu.assertEquals({ y:size "time", y:size "row", h:size "row" }, { 5, 2, 2 })
  y, h = net(dc.ones "f32[time=5, row=2, channel=3]")
  lu.assertEquals({ y:size "time", y:size "row", h:size "row" }, { 5, 2, 2 })
end

function TestSequences:test_no_elements()
  for _, kind in ipairs(kinds) do
    local net = nn[kind](3, 4, { layers = 2, bidirectional = true })
    for _, f in ipairs(both("f(x: f32[t, 2, 3])", function(x)
      local y, last = net(x)
      return y, parts_of(kind, last)[1]
    end)) do
      local y, h = f(dc.zeros "f32[0, 2, 3]")
      lu.assertEquals(y.shape, { 0, 2, 8 })
      lu.assertEquals(flat(h), flat(dc.zeros "f32[4, 2, 4]"))
    end
  end
end

function TestSequences:test_dropout_is_between_layers_while_training()
  dc.seed(1)
  local net = nn.GRU(3, 64, { layers = 2, dropout = 0.5 })
  local f = dc.fn("f(x: f32[4, 2, 3]) -> f32[4, 2, 64]", function(x) return (net(x)) end)
  local x = draw(1, 4, 2, 3)
  local a, b = f(x):clone(), f(x):clone()
  lu.assertFalse(a:eq(b):all():item())
  net:eval()
  local plain = f(x):clone()
  lu.assertTrue(plain:eq(f(x)):all():item())
  dc.seed(1)
  local other = nn.GRU(3, 64, { layers = 2 })
  close(flat((other(x))), flat(plain), 1e-6)
  local one = nn.GRU(3, 4, { dropout = 0.9 }) -- there is nothing between
  lu.assertTrue(one(x):eq((one(x))):all():item())
end

function TestSequences:test_a_part_of_networks()
  local Reader = nn.class "Reader"
  function Reader:init()
    self.rnn, self.out = nn.LSTM(3, 4), nn.Linear(4, 2)
  end
  function Reader:forward(x)
    local y = self.rnn(x)
    return self.out(y[-1])
  end
  local net = Reader()
  lu.assertEquals(net:named_parameters()[4][1], "rnn.bias_ih_l0")
  lu.assertEquals(net(draw(1, 5, 2, 3)).shape, { 2, 2 })
  lu.assertStrContains(net:summary "f32[5, 2, 3]", "nn.LSTM 3 -> 4")
end

-- Stacks so large that the loop goes by chunks (jit/rewrite/loop_split.c), forward and backward, beside three thirds.
function TestSequences:test_many_elements()
  if dc.stats().device:match "^sim" then
    lu.skip("20 seconds of simulation, of kernels that other tests simulate")
  end
  for name, net in pairs { lstm = nn.LSTM(32, 32), gru = nn.GRU(24, 32) } do
    local inputs, whole = net.inputs, name == "lstm" and 144 or 198
    local third = whole // 3
    local function gradients(y)
      local loss = (y * y):mean()
      return dc.grad(loss, net.weight_ih_l0), dc.grad(loss, net.weight_hh_l0)
    end
    local types = ("(x: f32[%d, 128, %d]) -> f32[%d, 128, 32], f32[%d, %d], f32[32, %d]"):format(whole, inputs, whole,
      inputs, net.weight_ih_l0.shape[2], net.weight_ih_l0.shape[2])
    local all = dc.fn("all" .. types, function(x)
      local y = net(x)
      return y, gradients(y)
    end)
    local thirds = dc.fn("thirds" .. types, function(x)
      local first, state = net(x[{ { 1, third } }])
      local second, last = net(x[{ { third + 1, 2 * third } }], state)
      local y = dc.concat({ first, second, (net(x[{ { 2 * third + 1, -1 } }], last)) }, 1)
      return y, gradients(y)
    end)
    local x = dc.randn(("f32[%d, 128, %d]"):format(whole, inputs))
    local got, want = { all(x) }, { thirds(x) }
    for k = 1, 3 do
      local worst = want[k]:abs():max():item()
      lu.assertTrue(worst > 0)
      lu.assertAlmostEquals((got[k] - want[k]):abs():max():item() / worst, 0, 1e-5, name .. k)
    end
  end
end

-- Matrices so large that loops have them in panels (jit/rewrite/loop_panels.c), forward and backward.
function TestSequences:test_large_matrices()
  local w = dc.param("f32[256, 512]", dc.randn "f32[256, 512]" * 0.05)
  local function step(h)
    local y = h:matmul(w)
    return (y[{ {}, { 1, 256 } }] + y[{ {}, { 257, 512 } }]):tanh()
  end
  local all = dc.fn("all(h: f32[16, 256]) -> f32[16, 256], f32[256, 512]", function(h)
    local last = dc.fori(20, function(_, s) return step(s) end, h)
    return last, dc.grad(last:sum(), w)
  end)
  local written = dc.fn("written(h: f32[16, 256]) -> f32[16, 256], f32[256, 512]", function(h)
    local last = h
    for _ = 1, 20 do
      last = step(last)
    end
    return last, dc.grad(last:sum(), w)
  end)
  local x = dc.randn "f32[16, 256]"
  local y, dw = all(x)
  local y2, dw2 = written(x)
  lu.assertAlmostEquals((y - y2):abs():max():item(), 0, 1e-5)
  lu.assertAlmostEquals((dw - dw2):abs():max():item() / dw2:abs():max():item(), 0, 1e-5)
end

-- ---- gradients ----

TestGradients = {}

local function parameters_with(net, x)
  local list = net:parameters()
  table.insert(list, 1, x)
  return list
end

local function flatten(grads)
  local list = {}
  for i, g in ipairs(grads) do
    list[i] = g:reshape(-1)
  end
  return dc.concat(list, 1)
end

function TestGradients:test_as_those_of_the_loop_written_out()
  for _, kind in ipairs(kinds) do
    for _, lengths in ipairs { false, { 2, 4 } } do
      local net = nn[kind](3, 4, { layers = 2, bidirectional = true })
      local weight, cells = draw(5, 4, 2, 8), cells_of(kind, net)
      local a = both("a(x: f32[4, 2, 3])", function(x)
        local y, last = net(x, nil, lengths and { lengths = dc.tensor(lengths, "i32") } or nil)
        local loss = (y * y * weight):sum() + (parts_of(kind, last)[1] ^ 3):sum()
        return flatten(dc.grad(loss, parameters_with(net, x)))
      end)
      local b = dc.fn("b(x: f32[4, 2, 3])", function(x)
        local y, rows = by_hand(kind, net, x, lengths, cells)
        local loss = (y * y * weight):sum()
        for _, row in ipairs(rows) do
          loss = loss + (parts_of(kind, row)[1] ^ 3):sum()
        end
        return flatten(dc.grad(loss, parameters_with(net, x)))
      end)
      local x = draw(1, 4, 2, 3)
      local want = b(x)
      local most = want:abs():max():item()
      for _, f in ipairs(a) do
        close(flat(f(x)), flat(want), 2e-6 * most, kind)
      end
    end
  end
end

function TestGradients:test_central_differences()
  for _, kind in ipairs(kinds) do
    local net = nn[kind](2, 3, kind == "LSTM" and { proj_size = 2 } or {})
    local loss = dc.fn("loss(x: f32[4, 2, 2]) -> f32[]", function(x)
      local y = net(x, nil, { lengths = dc.tensor({ 4, 2 }, "i32") })
      return (y * y):sum()
    end)
    local grad = dc.fn("grad(x: f32[4, 2, 2]) -> f32[4, 2, 2]", function(x)
      return dc.grad(loss(x), x)
    end)
    local x, at = draw(1, 4, 2, 2), { 1, 4, 6, 7, 13 }
    local got, numbers = flat(grad(x)), flat(x)
    for _, k in ipairs(at) do
      local function moved(by)
        local list = table.move(numbers, 1, #numbers, 1, {})
        list[k] = list[k] + by
        return loss(dc.tensor(list):reshape(4, 2, 2)):item()
      end
      lu.assertAlmostEquals(got[k], (moved(0.01) - moved(-0.01)) / 0.02, 2e-4, kind)
    end
    lu.assertEquals({ got[15], got[16] }, { 0, 0 }) -- behind the end of row 2
  end
end

-- ---- training ----

TestTraining = {}

-- The class is whether the first or the last number of a sequence is larger.
function TestTraining:test_a_small_lstm_learns()
  dc.seed(2)
  local Net = nn.class "Net"
  function Net:init()
    self.rnn, self.out = nn.LSTM(1, 12), nn.Linear(12, 2)
  end
  function Net:forward(x)
    local _, last = self.rnn(x)
    return self.out(last.h[1])
  end
  local net = Net()
  local opt = optim.Adam(net:parameters(), { lr = 2e-2 })
  local data = draw(7, 8, 64, 1)
  local classes = data[1]:gt(data[8]):cast "i32":reshape(64)
  local step = dc.fn("step(x: f32[8, 64, 1], y: i32[64]) -> f32[]", function(x, y)
    local loss = nn.cross_entropy(net(x), y)
    opt:step(loss)
    return loss
  end)
  local first = step(data, classes):item()
  local last
  for _ = 1, 150 do
    last = step(data, classes)
  end
  lu.assertTrue(first > 0.5)
  lu.assertTrue(last:item() < 0.15, tostring(last))
end

function TestTraining:test_outside_typed_functions()
  dc.seed(2)
  local net = nn.GRU(2, 8)
  local opt = optim.SGD(net:parameters(), { lr = 0.5 })
  local x = draw(1, 3, 4, 2)
  local losses = {}
  for k = 1, 12 do
    local y = net(x)
    local loss = ((y[-1] - 0.5) ^ 2):mean()
    opt:step(loss)
    losses[k] = loss:item()
  end
  lu.assertTrue(losses[12] < 0.6 * losses[1])
end

-- ---- mistakes ----

TestMistakes = {}

function TestMistakes:test_options()
  fails("nn.LSTM: the number of inputs is a positive integer, not nil", nn.LSTM)
  fails("nn.GRU: the size of the state is a positive integer, not 0", nn.GRU, 3, 0)
  fails("nn.RNN: the number of layers is a positive integer, not false", nn.RNN, 3, 4, { layers = false })
  fails("nn.RNN: dropout is a number from 0 to below 1, not 1", nn.RNN, 3, 4, { dropout = 1 })
  fails('nn.RNN: nonlinearity is "tanh" or "relu", not \'gelu\'', nn.RNN, 3, 4, { nonlinearity = "gelu" })
  fails("nn.RNNCell", nn.RNNCell, 3, 4, { layers = 2 })
  fails("nn.LSTM: proj_size is 4; less than the size of the state, 4, is needed", nn.LSTM, 3, 4, { proj_size = 4 })
  fails("nn.LSTM: proj_size is a positive integer, not 0", nn.LSTM, 3, 4, { proj_size = 0 })
  fails("nn.LSTM: bidirectional is true or false, not 2", nn.LSTM, 3, 4, { bidirectional = 2 })
  fails("proj_size", nn.GRU, 3, 4, { proj_size = 2 })
end

function TestMistakes:test_sizes()
  local reader = nn.Sequential { nn.LSTM(3, 4, { layers = 2 }) }
  local err = fails("nn.LSTM: x is f32[5, 2, 4]; f32[time, batch, 3], or f32[time, 3], is needed", function()
    reader(dc.zeros "f32[5, 2, 4]")
  end)
  lu.assertStrContains(tostring(err), "in     reader.1 (nn.LSTM 3 -> 4, 2 layers)")
  local lstm, gru = nn.LSTM(3, 4, { layers = 2 }), nn.GRU(3, 4, { batch_first = true })
  local x, z = dc.zeros "f32[5, 2, 3]", dc.zeros "f32[2, 2, 4]"
  fails("nn.GRU: x is f32[3]; f32[batch, time, 3], or f32[time, 3], is needed", gru, dc.zeros "f32[3]")
  fails("nn.GRU: x is i32[5, 2, 3]; f32 is needed, as the weights are", gru, dc.zeros "i32[5, 2, 3]")
  fails("nn.LSTM: x: a tensor is needed, not nil", lstm)
  fails("nn.LSTM: the state is f32[2, 2, 4]; a record { h = f32[2, 2, 4], c = f32[2, 2, 4] } is needed", lstm, x, z)
  fails("nn.LSTM: state.c is f32[1, 2, 4]; f32[2, 2, 4] is needed", lstm, x, { h = z, c = dc.zeros "f32[1, 2, 4]" })
  fails("nn.GRU: the state is f32[2, 2, 4]; f32[1, 5, 4] is needed", gru, x, z)
  fails("nn.GRU: the state: a tensor is needed, not a table", gru, x, { h = z })
  fails("nn.GRU: the state is f32[1, 2, 4]; f32[1, 4] is needed", gru, x[1], dc.zeros "f32[1, 2, 4]")
  fails("nn.LSTM: lengths are i32[3]; i32[2] is needed, a number for each row", lstm, x, nil,
    { lengths = dc.tensor({ 1, 2, 3 }, "i32") })
  fails("nn.LSTM: lengths are f32[2]; integers are needed", lstm, x, nil, { lengths = dc.tensor { 1, 2 } })
  fails("nn.LSTM: length 6 outside 0..5 at row 1", lstm, x, nil, { lengths = dc.tensor({ 6, 2 }, "i32") })
  fails("nn.LSTM: length -1 outside 0..5 at row 2", lstm, x, nil, { lengths = dc.tensor({ 5, -1 }, "i32") })
  fails("length", lstm, x, nil, { length = 3 })
  fails("nn.LSTMCell: x is f32[2, 4]; f32[..., 3] is needed", nn.LSTMCell(3, 4), dc.zeros "f32[2, 4]")
  fails("nn.GRUCell: the state is f32[3, 4]; f32[2, 4] is needed", nn.GRUCell(3, 4), dc.zeros "f32[2, 3]",
    dc.zeros "f32[3, 4]")
  local f = dc.fn("f(v: f32[5, 2, 3], n: i32[2]) -> f32[5, 2, 4]", function(v, n)
    return (lstm(v, nil, { lengths = n }))
  end)
  fails("nn.LSTM: length 7 outside 0..5 at row 2", function()
    f(x, dc.tensor({ 5, 7 }, "i32")):sum():item()
  end)
end
