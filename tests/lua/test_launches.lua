-- How many launches known graphs are: what fusion and bundles do now, and beside it the number that
-- data flow would allow (every value that is needed whole before the next can begin ends a launch).
-- A change here is either an improvement or a mistake; write the new number down on purpose.
local lu = require "luaunit"
local dc = require "deepc"
local nn = require "deepc.nn"
local optim = require "deepc.optim"
local program = require "tests.lua.program"

local device = os.getenv "DEEPC_DEVICE" or "cpu"
local on_eval = device == "eval"
-- Where a launch is one kernel, and where it is groups of threads, and small kernels are joined.
local alone = device:find "opencl:%d" or (os.getenv "DEEPC_SKIP" or ""):find "bundle"
local groups = not alone and (device:find "cuda" or device == "sim:opencl")

local function launches(f)
  local info = f:info()
  lu.assertEquals(#info, 1)
  return info[1].launches
end

-- found: launches now; allowed: by data flow; kernels: launches where each is one kernel, if they are more; joined:
-- where kernels of thread groups are joined, by device
local function check(f, found, allowed, kernels, joined)
  if on_eval then
    lu.skip "the interpreter launches nothing"
  end
  if groups and kernels then
    lu.assertEquals(launches(f), joined and joined[device] or launches(f))
    lu.assertTrue(launches(f) <= kernels)
    return
  end
  lu.assertEquals(launches(f), alone and kernels or found)
  lu.assertTrue(allowed <= found)
end

TestLaunches = {}

function TestLaunches:test_element_wise_chain()
  local f = dc.fn("chain(x: f32[64, 100], y: f32[64, 100]) -> f32[64, 100]", function(x, y)
    return (x * y + x):tanh():exp() - y:sigmoid()
  end)
  f(dc.ones "f32[64, 100]", dc.ones "f32[64, 100]")
  check(f, 1, 1)
end

-- Of each layer convolution, bias and relu in one; nothing between the layers; the sum. The weights in the order
-- that vectors need are kept.
function TestLaunches:test_convolutions()
  local a, b = nn.Conv2d(1, 8, 3, { padding = 1 }), nn.Conv2d(8, 8, 3, { padding = 1 })
  local net = nn.Sequential { a, nn.ReLU(), b, nn.ReLU() }
  local f = dc.fn("f(x: f32[2, 1, 12, 12]) -> f32[]", function(x) return net(x):sum() end)
  f(dc.ones "f32[2, 1, 12, 12]")
  check(f, 3, 3)
end

-- Where each channel is by itself, images of the caller are turned round first, once for the forward pass and for
-- the gradient of the kernel, which then go along channels.
function TestLaunches:test_convolution_of_each_channel()
  local net = nn.Conv2d(8, 8, 3, { padding = 1, groups = 8 })
  local opt = optim.SGD(net:parameters(), { lr = 0.1 })
  local step = dc.fn("step(x: f32[2, 8, 6, 5]) -> f32[]", function(x)
    local loss = net(x):square():mean()
    opt:step(loss)
    return loss
  end)
  step(dc.ones "f32[2, 8, 6, 5]")
  if on_eval then
    lu.skip "the interpreter launches nothing"
  end
  local _, turned = step:plan():gsub("E_2_6_5_8 ", "")
  lu.assertEquals(turned, 1)
end

function TestLaunches:test_softmax()
  local f = dc.fn("softmax(x: f32[64, 1000]) -> f32[64, 1000]", function(x)
    return x:softmax(2)
  end)
  f(dc.ones "f32[64, 1000]")
  check(f, 1, 1)
end

function TestLaunches:test_layer_norm()
  local f = dc.fn("layer_norm(x: f32[64, 512], w: f32[512], b: f32[512]) -> f32[64, 512]", function(x, w, b)
    local mean = x:mean(2):reshape "[64, 1]"
    local centred = x - mean
    local variance = (centred * centred):mean(2):reshape "[64, 1]"
    return centred / (variance + 1e-5):sqrt() * w + b
  end)
  f(dc.ones "f32[64, 512]", dc.ones "f32[512]", dc.zeros "f32[512]")
  check(f, 1, 1)
end

-- The gradients, of little: one kernel for rows, one for the sums over all of them.
function TestLaunches:test_gradients_of_layer_norm()
  local f = dc.fn([[back(x: f32[64, 100], w: f32[100], b: f32[100], dy: f32[64, 100])
                    -> f32[64, 100], f32[100], f32[100] ]], function(x, w, b, dy)
    local centred = x - x:mean { axis = 2, keep = true }
    local variance = (centred * centred):mean { axis = 2, keep = true }
    local y = centred * (variance + 1e-5):rsqrt() * w + b
    local g = dc.grad((y * dy):sum(), { x, w, b })
    return g[1], g[2], g[3]
  end)
  f(dc.zeros "f32[64, 100]", dc.zeros "f32[100]", dc.zeros "f32[100]", dc.ones "f32[64, 100]")
  check(f, 2, 2)
end

-- Of much: the rows' kernel adds up the sums of bands, then both are added up as one launch. The values are those
-- of the sums by themselves.
function TestLaunches:test_large_gradients_of_norms()
  if alone or groups then
    lu.skip "groups of threads go by rows and by columns in kernels of their own"
  end
  for _, centred in ipairs { true, false } do
    local given = { dc.randn "f32[1024, 1024]", dc.randn "f32[1024]", dc.randn "f32[1024]", dc.randn "f32[1024, 1024]" }
    local function normalized(v)
      local d = centred and v - v:mean { axis = 2, keep = true } or v
      return d * ((d * d):mean { axis = 2, keep = true } + 1e-5):rsqrt()
    end
    local text = "(x: f32[1024, 1024], w: f32[1024], b: f32[1024], dy: f32[1024, 1024]) -> "
    local back = dc.fn("back" .. text .. "f32[1024, 1024], f32[1024], f32[1024]", function(x, w, b, dy)
      return table.unpack(dc.grad(((normalized(x) * w + b) * dy):sum(), { x, w, b }))
    end)
    local scaled = dc.fn("scaled(x: f32[1024, 1024], dy: f32[1024, 1024]) -> f32[1024, 1024]",
      function(x, dy) return normalized(x) * dy end)
    local columns = dc.fn("columns(x: f32[1024, 1024]) -> f32[1024]", function(x) return x:sum(1) end)
    local _, dw, db = back(table.unpack(given))
    local function same(got, want)
      lu.assertTrue(((got - want):abs():max() / want:abs():max()):item() < 1e-5)
    end
    same(dw, columns(scaled(given[1], given[4])))
    same(db, columns(given[4]))
    check(back, 2, 2)
  end
end

-- Sums of few terms, of which there are so many that nobody has to be given a part: as attention of one token has them.
function TestLaunches:test_short_sums_of_many_columns()
  local f = dc.fn("sums(x: f32[600, 64, 32], y: f32[3, 1, 64, 1]) -> f32[3, 600, 32]", function(x, y)
    return (x * y):sum(3)
  end)
  f(dc.ones "f32[600, 64, 32]", dc.ones "f32[3, 1, 64, 1]")
  check(f, 1, 1)
end

-- A matrix of integers that is changed where it stands is a factor as it is, whatever its dims are called.
function TestLaunches:test_factors_that_are_changed_in_place()
  if on_eval or groups then
    lu.skip "thread groups take floats"
  end
  local cells = dc.state "i8[4, 64, 32]"
  local f = dc.fn("change(x: f32[48, 64], row: i8[1, 64, 32], at: i32[1]) -> f32[48, 128]", function(x, row, at)
    cells:set(cells:put(at, row, 1))
    return x:matmul(cells:permute(2, 1, 3):reshape(64, 128):cast "f32")
  end)
  f(dc.ones "f32[48, 64]", dc.ones "i8[1, 64, 32]", dc.zeros "i32[1]")
  check(f, 4, 4) -- two of them look at the number of the row
end

-- Pages that integers choose are read where they are by the sums over them; one kernel looks at the integers before.
function TestLaunches:test_sums_of_pages_that_are_chosen()
  if on_eval or groups then
    lu.skip "thread groups store them"
  end
  local cells = dc.state "i8[40, 64, 16]"
  local f = dc.fn("sums(x: f32[3, 1, 64, 1], pages: i32[20]) -> f32[3, 20, 16]", function(x, pages)
    return (x * cells:take(pages, 1):cast "f32"):sum(3)
  end)
  f(dc.ones "f32[3, 1, 64, 1]", dc.iota(20))
  check(f, 2, 2)
end

function TestLaunches:test_root_mean_square_norm()
  local f = dc.fn("rms(x: f32[64, 100], w: f32[100]) -> f32[64, 100]", function(x, w)
    return x * ((x * x):mean { axis = 2, keep = true } + 1e-5):rsqrt() * w
  end)
  f(dc.ones "f32[64, 100]", dc.ones "f32[100]")
  check(f, 1, 1)
end

-- Maximum, sum, gradient and what the loss needs of a row; the sum of losses. Beside each a half of the check
-- of labels.
function TestLaunches:test_gradient_of_cross_entropy()
  local x = dc.param "f32[64, 10]"
  local f = dc.fn("loss(y: i32[64]) -> f32[], f32[64, 10]", function(y)
    local loss = nn.cross_entropy(x, y)
    return loss, dc.grad(loss, x)
  end)
  f(dc.ones "i32[64]")
  check(f, 2, 2, 4)
end

-- The loss, which reads what the updates overwrite, in two stages, beside them the powers of the decay and
-- all updates but that of the tensor that the last sum reads; this one. Launches are brought nearer to each other where
-- what lies between them stays in L2, so the machine is said.
local adam = [[
  local dc, optim = require "deepc", require "deepc.optim"
  local shapes = { "f32[784, 128]", "f32[128]", "f32[128, 64]", "f32[64]", "f32[64, 10]", "f32[10]" }
  local params = {}
  for i, shape in ipairs(shapes) do
    params[i] = dc.param(shape)
  end
  local opt = optim.Adam(params)
  local f = dc.fn("update(lr: f32[]) -> f32[]", function(lr)
    local loss
    for _, p in ipairs(params) do
      local term = (p * p):sum()
      loss = loss and loss + term or term
    end
    opt:step(loss, { lr = lr })
    return loss
  end)
  f(1e-3)
  return f
]]

function TestLaunches:test_adam_over_six_tensors()
  if not device:find "^cpu" then
    return check(assert(load(adam))(), 3, 3, 13, { ["sim:cuda"] = 8, ["sim:opencl"] = 6 })
  end
  local path = program.script("local f = (function() " .. adam .. " end)()\nprint(f:info()[1].launches)")
  for l2, found in pairs { ["2M"] = 3, ["1M"] = 3, ["512K"] = 5, ["256K"] = 5 } do
    local machine = ("DEEPC_MACHINE=l2=%s,l3=8M,cores=2"):format(l2)
    lu.assertEquals(program.run(program.quote(path), machine), ("%d\n"):format(alone and 13 or found), machine)
  end
  os.remove(path)
end

function TestLaunches:test_step_of_the_example()
  local net = nn.Sequential {
    nn.Flatten(),
    nn.Linear(784, 128),
    nn.ReLU(),
    nn.Linear(128, 64),
    nn.ReLU(),
    nn.Linear(64, 10),
  }
  local opt = optim.Adam(net:parameters())
  local f = dc.fn("step(x: u8[64, 28, 28], y: i32[64], lr: f32[]) -> f32[]", function(x, y, lr)
    local loss = nn.cross_entropy(net(x:cast "f32" / 255), y)
    opt:step(loss, { lr = lr })
    return loss
  end)
  f(dc.zeros "u8[64, 28, 28]", dc.zeros "i32[64]", 1e-3)
  -- Pixels; three products forward; the rows' softmax; two products for the gradients of activations; those
  -- of weights. All else is beside them: the check of labels, the sum of losses, the gradients of biases,
  -- updates, which are inside the gradients. Allowed: softmax with the product before it, and pixels read
  -- as bytes twice
  check(f, 8, 6, 17, { ["sim:cuda"] = 16, ["sim:opencl"] = 14 })
end
