-- Mistakes that are easily made, and the sentence that each of them gets: the first line, without place.
local lu = require "luaunit"
local dc = require "deepc"
local nn = require "deepc.nn"
local optim = require "deepc.optim"
local data = require "deepc.data"

local env = { dc = dc, nn = nn, optim = optim, data = data, require = require, pcall = pcall, table = table }

-- What the script raises, without "mistake:1: ".
local function sentence(script)
  local chunk = assert(load(script, "=mistake", "t", env))
  local ok, err = pcall(chunk)
  lu.assertFalse(ok, script)
  local place, first = tostring(err):match "^(mistake:%d+): ([^\n]*)"
  lu.assertNotNil(place, script .. ": " .. tostring(err))
  return first
end

local function check(list)
  for _, row in ipairs(list) do
    lu.assertEquals(sentence(row[1]), row[2], row[1])
  end
end

TestMistakes = {}

function TestMistakes:test_tensors()
  check {
    { "local _ = dc.zeros 'f32[2]\0junk'", "zeros: a zero byte in the string 'f32[2]'" },
    { "local _ = dc.zeros 'f32[ü=2]'", "zeros: type 'f32[ü=2]': a size expected, not 'ü'" },
    { "local _ = dc.tensor { dc.ones 'f32[]' }", "tensor: a number is needed at [1], not f32[]" },
    { "local _ = dc.zeros('f32[0]'):argmax(1)", "argmax: axis 1 of f32[0] has no elements" },
    { "local _ = dc.ones('f32[6]'):reshape(4, -1)",
      "reshape: 6 elements are no multiple of 4, the product of the other sizes" },
    { "local _ = dc.ones('f32[0]'):reshape(0, -1)", "reshape: -1 beside a size of 0 could be any size" },
    { "local _ = dc.iota('f32[a=2]', 'b')", "iota: no axis of f32[a=2] is called 'b'" },
    { "local _ = dc.where(1, dc.ones 'f32[2]', 0)", "where: 1 does not fit bool" },
    { "local t = dc.ones 'f32[]'; t:close(); local _ = dc.tensor { t }",
      "tensor: a number is needed at [1], not a closed tensor" },
  }
  lu.assertEquals(dc.iota("i32[a=2, 2]", "a"):totable(), { { 0, 0 }, { 1, 1 } })
  lu.assertEquals((dc.ones "f32[a=2]":reshape "[b=2]"):size "b", 2)
end

function TestMistakes:test_typed_functions()
  check {
    { "dc.fn('f(x: f32[2]) -> ()\0junk', function(x) end)", "fn: a zero byte in the string 'f(x: f32[2]) -> ()'" },
    { "dc.fn('f(x: f32[2]) -> ()', function(...) end)",
      "f: the function takes '...'; its parameters are those of its signature" },
    { "dc.fn('f(x: f32[2]) -> f32[2]', function(x) x:close() return x end)",
      "f: result 1 is a closed tensor, declared f32[2]" },
    { "dc.fn('f(x: f32[2])', function(x) return x, x, x, x, x, x, x, x, x end)",
      "f: 9 results returned, 8 is the most" },
    { "dc.fn('f(x: f32[n])', function(x) return x end, nil, { limit = 0 })", "fn: limit is at least 1" },
    { "dc.fn('f(x: f32[n])', function(x) return x end, nil, { limit = 0 / 0 })", "fn: limit is at least 1" },
    { "local f = dc.fn('f(x: f32[n])', function(x) return x end, nil, { limit = 1 }) f { 1 } f { 1, 2 }",
      "f: 1 specialisations are compiled, which is its limit; the next one: n 1 -> 2" },
  }
end

function TestMistakes:test_numbers_as_results_of_an_inlined_function()
  local inner = dc.fn("inner(x: f32[2]) -> f32[]", function(x) return #x end)
  local outer = dc.fn("outer(x: f32[2]) -> f32[]", function(x) return inner(x):sqrt() end)
  lu.assertAlmostEquals(outer { 1, 1 }:item(), 2 ^ 0.5, 1e-6)
end

function TestMistakes:test_layers()
  check {
    { "local _ = nn.Linear(2, 1, { bais = false })", "nn.Linear: unknown option 'bais'; known are bias" },
    { "local _ = nn.Linear(2, 1, false)", "nn.Linear: options are a table, not false" },
    { "local l = nn.Linear(2, 1); local _ = l(nil)", "matmul: a tensor is needed, not nil" },
    { "local l = nn.Linear(2, 1); local _ = l { 1, 2 }", "matmul: a tensor is needed, not a table" },
    { "local l = nn.ReLU(); local _ = l()", "relu: a tensor or a number is needed, not nil" },
    { "local l = nn.Flatten(); local _ = l {}", "nn.Flatten: a tensor is needed, not a table" },
    { "local l = nn.Dropout(0.5); local _ = l { 1, 2 }", "nn.Dropout: a tensor is needed, not a table" },
    { "local l = nn.Dropout(0.5); local _ = l(dc.ones 'i32[3]')", "nn.Dropout: x is i32[3]; floats are needed" },
    { "local l = nn.Dropout(0.5):eval(); local _ = l(dc.ones 'i32[3]')", "nn.Dropout: x is i32[3]; floats are needed" },
    { "local _ = nn.Linear(3, 2):cuda()", "nn.Linear 3 -> 2 has no 'cuda'" },
    { "local l = nn.Linear(3, 2); l.weight = dc.zeros 'f32[3, 2]'",
      "l.weight is a parameter; f32[3, 2] cannot take its place" },
    { "local l = nn.Linear(3, 2); l._gain = dc.param 'f32[]'",
      "l._gain: what begins with '_' is no part of a layer, so it would not be trained or saved" },
    { "local _ = nn.class {}", "nn.class: a name is needed, not a table" },
    { "local l = nn.Linear(1, 1); local _ = dc.grad(l(dc.ones 'f32[1]'):sum(), l)",
      "grad: a list of parameters is needed, not an nn.Linear" },
    { "local l = nn.Linear(3, 2); l.bias = 0", "l.bias is a parameter; the number 0 cannot take its place" },
    { "local l = nn.class 'Net'(); local _ = l(1)", "Net: the class has no :forward" },
    { "local _ = nn.Sequential { nn.ReLU(), nil, nn.ReLU() }", "nn.Sequential: part 2 is nil, not a layer" },
    { "local _ = nn.Sequential { nn.ReLU }", "nn.Sequential: part 1 is the class nn.ReLU, not a layer" },
    { "local _ = nn.Sequential { first = nn.ReLU() }", "nn.Sequential: part 'first' has a name; parts are in order" },
    { "local _ = nn.Mamba(5)", "deepc.nn has no 'Mamba'" },
    { "local _ = optim.Ftrl", "deepc.optim has no 'Ftrl'" },
    { "local _ = data.cifar100()", "deepc.data has no 'cifar100'" },
    { "local _ = nn.mse_loss(dc.ones 'f32[3]', 0)", "mse_loss: target: a tensor is needed, not the number 0" },
    { "local _ = nn.mse_loss(nn.ReLU(), dc.ones 'f32[3]')",
      "mse_loss: prediction: a tensor is needed, not an nn.ReLU" },
    { "local _ = nn.cross_entropy(dc.ones 'f32[2, 3]', { 0, 1 })",
      "cross_entropy: labels: a tensor is needed, not a table" },
    { "dc.save(nn.Linear(1, 1), 'a')", "save: a path is needed, not an nn.Linear" },
    { "dc.checkpoint('a', { m = nn.Linear(1, 1) }).save { step = 1 }", "save: a checkpoint is needed, not a table" },
    { "dc.checkpoint('a', { m = nn.Linear(1, 1) }):save { loss = dc.ones 'f32[]' }",
      "save: value 'loss' is f32[]; numbers, booleans and texts are kept" },
    { "local _ = data.set({ 1 }, dc.ones 'f32[1]')", "data.set: x: a tensor is needed, not a table" },
    { "local _ = data.set(dc.ones 'f32[1]', dc.param 'f32[1]')", "data.set: y: a tensor is needed, not a cell" },
    { "local _ = data.set(dc.ones 'f32[]', dc.ones 'f32[]')", "data.set: x is f32[], which has no rows" },
    { "local s = data.set(dc.ones 'f32[4]', dc.ones 'f32[4]'); s:batches { size = 2, shuffle = 7 }",
      "batches: shuffle is true or false, not the number 7" },
    { "local s = data.set(dc.ones 'f32[4]', dc.ones 'f32[4]'); s.batches { size = 2 }",
      "batches: a set is needed, not a table" },
  }
end

-- The sentence of a hint, of the error that the script raises.
local function hint(script)
  local _, err = pcall(assert(load(script, "=mistake", "t", env)))
  return err.hint
end

function TestMistakes:test_hints_of_the_library()
  lu.assertEquals(hint "local _ = nn.CrossEntropyLoss()", "nn.cross_entropy(logits, labels)")
  lu.assertEquals(hint "local _ = nn.SpatialConvolution(1, 2, 3)", "nn.Conv2d(inputs, outputs, window)")
  lu.assertEquals(hint "local _ = nn.ReLu()", "is 'ReLU' meant?")
  lu.assertEquals(hint "local _ = nn.max_pool2d_with_indices()", "dc.max_pool2d(x, window, { return_indices = true })")
  lu.assertEquals(hint "local _ = dc.svd()", 'linalg.svd, of require "deepc.linalg"')
  lu.assertEquals(hint "local _ = dc.ones('f32[2, 2]'):det()", 'linalg.det(x), of require "deepc.linalg"')
  lu.assertEquals(hint "local _ = require('deepc.fft').dctn", "fft.dct along one axis after the other")
  lu.assertEquals(hint "local _ = nn.ReLU():zeroGradParameters()",
    "gradients are not kept: opt:step(loss) takes them anew")
  lu.assertEquals(hint "local l = nn.Linear(1, 1); l.weight = dc.ones 'f32[1, 1]'",
    ".weight:set(value) changes its value; another dc.param or dc.state may take its place")
  lu.assertEquals(hint "local _ = nn.cross_entropy(dc.ones 'f32[2, 3]', dc.ones 'f64[2, 3]')",
    "labels:argmax(-1) gives the numbers of classes, of a row for each")
  lu.assertEquals(hint "local _ = nn.cross_entropy(dc.ones 'f32[2, 3]', dc.ones 'i32[2, 1]')", "labels:reshape(2)")
  lu.assertEquals(hint "local _ = nn.cross_entropy(dc.ones 'i32[2]', dc.ones 'f32[2, 3]')",
    "logits come first: nn.cross_entropy(logits, labels)")
  lu.assertEquals(hint "local _ = require('deepc.schedules').OneCycleLR", "schedules.one_cycle { lr, steps }")
  lu.assertEquals(hint "local _ = require('deepc.metrics').f1_score", "metrics.f1(predicted, labels, classes)")
  lu.assertEquals(hint "optim.SGD({ dc.param 'f32[]' }, 0.1)", "optim.SGD(params, { lr = 0.1 })")
  lu.assertEquals(hint "dc.fn('f() -> f32[2]', function() return nn.Linear(1, 2)(dc.ones 'f32[1]') end)",
    "a cell begins with a value; then cell:set(x), which may be inside. Layers are made before the function")
  lu.assertEquals(hint "optim.SGD({ dc.param 'f32[]' }):zero_grad()",
    "gradients are not kept: opt:step(loss) takes them anew")
  lu.assertEquals(hint "optim.SGD({ dc.param 'f32[]' }).lr = function(step) return 1 / step end",
    "a schedule gives a number for each step: opt.lr = schedule(step)")
end

-- Each gets the colon, and what it was called with changes nothing.
function TestMistakes:test_methods_called_with_a_dot()
  local function colon(before, script, text)
    local err = select(2, pcall(assert(load(before .. "; local _ = " .. script, "=mistake", "t", env))))
    lu.assertEquals(err.code, "DC0101", script .. ": " .. tostring(err))
    lu.assertEquals(err.hint, "with a colon: " .. text, script)
  end
  local net = "local net, x = nn.Sequential { nn.Linear(4, 2), nn.ReLU() }, dc.ones 'f32[3, 4]'"
  local forward = "net:forward(x), or net(x), which tells errors where they happened"
  colon(net, "net.forward(x)", forward)
  colon(net, "net[2].forward(x)", forward)
  colon(net, "net[1].forward()", forward)
  colon("local B = nn.class 'B'; function B:forward(x) return x end; local b = B()", "b.forward(dc.ones 'f32[]')",
    forward)
  for _, name in ipairs { "parameters", "named_cells", "train", "eval", "freeze", "summary" } do
    colon(net, ("net.%s()"):format(name), ("net:%s()"):format(name))
  end
  local opt = "local opt = optim.SGD { dc.param 'f32[]' }"
  for _, name in ipairs { "step", "apply", "named_cells" } do
    colon(opt, ("opt.%s(dc.ones 'f32[]')"):format(name), ("opt:%s(...)"):format(name))
  end
  local set = "local set = data.set(dc.ones 'f32[4]', dc.ones 'f32[4]')"
  colon(set, "set.batches { size = 2 }", "set:batches(options)")
  colon(set, "set.position()", "set:position()")
  colon(set, "set.restore(set:position())", "set:restore(position)")
  local x = "local x = dc.ones 'f32[3]'"
  colon(x, "x.sum()", "x:sum()")
  colon(x, "x.item(1)", "x:item()")
  colon(x, "x.close()", "x:close()")
  colon(x, "x.cast 'f64'", "x:cast()")
  colon(x, "x.add(x)", "x:add(y)")
  local f = "local f = dc.fn('f(x: f32[3]) -> f32[3]', function(x) return x + 1 end)"
  local err = select(2, pcall(assert(load(f .. " f.explain()", "=mistake", "t", env))))
  lu.assertEquals(err.message:match "^[^\n]*", "mistake:1: a typed function is needed, not nil")
  lu.assertEquals(err.hint, "its methods have a colon: f:explain()")
  err = select(2, pcall(assert(load("local p = dc.param 'f32[3]'; p.set(dc.ones 'f32[3]')", "=mistake", "t", env))))
  lu.assertEquals({ err.code, err.hint }, { "DC0206", "with a colon: p:set(value); cells have :set" })
end

-- The parent's :forward, called for a layer of another class; and one that is replaced later.
function TestMistakes:test_forward_of_a_parent()
  local parent, child = nn.class "Parent", nn.class "Child"
  function parent:forward(x) return x * self.factor end
  function child:forward(x) return parent.forward(self, x) + 1 end
  local layer = child()
  layer.factor = 3
  lu.assertEquals(layer(dc.ones "f32[]"):item(), 4)
  lu.assertEquals(layer:forward(dc.ones "f32[]"):item(), 4)
  function child:forward(x) return parent.forward(self, x) + 2 end
  lu.assertEquals(layer:forward(dc.ones "f32[]"):item(), 5)
  layer.forward = function(_, x) return x end
  lu.assertEquals(layer(dc.ones "f32[]"):item(), 1)
end

function TestMistakes:test_optimisers()
  check {
    { "optim.SGD(nn.Sequential { nn.Linear(1, 1) })",
      "optim.SGD: a list of parameters is needed, not an nn.Sequential" },
    { "optim.SGD(nn.Linear(1, 1):freeze():parameters())", "optim.SGD: the list of parameters is empty" },
    { "local p = dc.param 'f32[]'; local opt = optim.SGD { p }; opt.step(p * p)",
      "step: an optimiser is needed, not f32[]" },
    { "local p = dc.param 'f32[2]'; optim.SGD({ p }):apply { dc.ones 'f32[1]' }",
      "apply: gradient 1 is f32[1], its parameter f32[2]" },
    { "local p = dc.param 'f32[2]'; optim.SGD({ p }):apply {}", "apply: 0 gradients for 1 parameter" },
    { "local p = dc.param 'f32[]'; local opt = optim.SGD { p }; opt:step()",
      "step: the loss is needed, a tensor, not nil" },
    { "local p = dc.param 'f32[]'; local opt, l = optim.SGD { p }, p * p; opt:step(l); opt:step(l)",
      "step: optim.SGD has taken a step with this loss before" },
    { "local p = dc.param 'f32[]'; local opt = optim.SGD { p }; "
      .. "dc.fn('f() -> ()', function() local l = p * p; opt:step(l); opt:step(l) end)",
      "step: optim.SGD has taken a step with this loss before" },
  }
  check {
    { "local p = dc.param 'f32[]'; local _ = optim.SGD({ p, p })",
      "optim.SGD: numbers 1 and 2 of the list are the same parameter" },
    { "local p = dc.param 'f32[]'; local _ = optim.SGD({ p }, { lr = 'x' })",
      "optim.SGD: lr is a number or a scalar, not the string 'x'" },
    { "local p = dc.param 'f32[]'; local _ = optim.SGD({ p }, 0.1)",
      "optim.SGD: options are a table, not the number 0.1" },
    { "local p = dc.param 'f32[]'; local o = optim.SGD { p }; o.lr = nil",
      "optim.SGD: lr is a number or a scalar, not nil" },
    { "local p = dc.param 'f32[]'; local o = optim.SGD { p }; " ..
      "dc.fn('f(lr: f32[]) -> ()', function(lr) o:step(p * p, lr) end)",
      "step: options are a table, not f32[]" },
    { "local a, b = dc.param 'f32[]', dc.param 'f32[]'; optim.SGD({ a, nil, b }):apply {}",
      "optim.SGD: number 2 of the list is nil, no parameter" },
    { "local _ = optim.SGD({ dc.param 'f32[]' }, { lr = 1 / 0 })",
      "optim.SGD: lr is inf; it is 0 or more, and finite" },
    { "local p = dc.param 'f32[]'; optim.SGD({ p }):step(p * p, { lr = 0 / 0 })", "step: lr is nan; it is 0 or more" },
    { "local p = dc.param 'f32[]'; optim.SGD({ p }):step(p * p, { lr = '1' })",
      "step: lr is a number or a scalar, not the string '1'" },
  }
end

-- What is no number, no flag, no list is told as what it is.
function TestMistakes:test_settings_of_layers()
  check {
    { "local _ = nn.Linear('3', 4)", "nn.Linear: the number of inputs is a positive integer, not '3'" },
    { "local _ = nn:Linear(3, 4)", "nn.Linear: the module is given as the first argument" },
    { "local _ = nn.Linear(3, 4, { bias = 'no' })", "nn.Linear: bias is true or false, not 'no'" },
    { "local _ = nn.LayerNorm(3, { affine = 0 })", "nn.LayerNorm: affine is true or false, not 0" },
    { "local _ = nn.Conv2d(1, 8)", "nn.Conv2d: the window is an integer from 1 on, or a list of two, not nil" },
    { "local _ = nn.Conv2d(1, 8, 3, { padding = 'full' })",
      "nn.Conv2d: padding is an integer from 0 on, or a list of two, not 'full'" },
    { "local _ = nn.BatchNorm2d(3, { momentum = 2 })", "nn.BatchNorm2d: momentum is a number from 0 to 1, not 2" },
    { "local _ = nn.BatchNorm2d(3, { eps = 0 / 0 })", "nn.BatchNorm2d: eps is a number from 0 on, not nan" },
    { "local _ = nn.init.orthogonal 'i32[3, 3]'", "orthogonal: i32[3, 3]: a float is needed" },
    { "local net = nn.Linear(3, 4); net:to 'f64'", "to: the name of a device is needed, not 'f64'" },
    { "local net = nn.Sequential {}; net:add(nn.ReLU())", "nn.Sequential has no 'add'" },
  }
end

-- A schedule is the library's as well: also where it is called last, the line is the script's.
function TestMistakes:test_schedules()
  check {
    { "local s = require 'deepc.schedules'; return s.constant(1)(0)", "constant: steps are integers from 1, not 0" },
    { "local s = require 'deepc.schedules'; return s.warmup(3, s.constant(1))('2')",
      "warmup: steps are integers from 1, not '2'" },
  }
end

function TestMistakes:test_charts()
  check { { "require 'deepc.plot'.lines('/tmp/a.svg', { y = { 1, 2 } })",
    "plot.lines: series are a list, not one series" } }
end

function TestMistakes:test_data()
  local set = "local s = data.set(dc.ones 'f32[4]', dc.ones 'f32[4]'); "
  check {
    { set .. "s:batches { size = 2, shuffle = true, seed = 'x' }", "batches: seed is an integer, not 'x'" },
    { set .. "s:batches { size = 2, shuffle = true, epoch = 1.5 }", "batches: epoch is an integer, not 1.5" },
    { set .. "s:batches { sise = 2 }", "batches: unknown option 'sise'; known are size, shuffle, seed, epoch, last, " ..
      "weights, balance, draws, replacement, group, map, over" },
    { "data.fashion_mnist '/tmp'", "fashion_mnist: options are a table, not the string '/tmp'" },
    { "data.fashion_mnist { path = '/tmp' }", "fashion_mnist: unknown option 'path'; known are dir" },
  }
end
