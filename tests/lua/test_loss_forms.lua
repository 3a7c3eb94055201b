-- Losses of stdlib/nn/loss_forms.lua and ctc.lua beyond their values, which tests/peers/cases/losses.lua compares with
-- PyTorch's: masks, 16-bit floats, sizes with a bound, texts that do not fit, mistakes.
local lu = require "luaunit"
local dc = require "deepc"
local nn = require "deepc.nn"
local optim = require "deepc.optim"
local check = require "tests.lua.check"

local fails = check.fails

local function close(got, want, tolerance, what)
  if type(got) == "number" then
    got, want = { got }, { want }
  end
  check.close(got, want, tolerance, what)
end

TestLossForms = {}

local function randn(text, seed)
  return dc.randn(text, { seed = seed })
end

-- Rows outside the mask count neither in the sum nor in the mean.
function TestLossForms:test_masks()
  local x, y, labels = randn("f32[3, 4]", 1), randn("f32[3, 4]", 2):sigmoid(), dc.tensor({ 1, 3, 0 }, "i32")
  local mask, rows = dc.tensor({ true, false, true }, "bool"), dc.tensor({ 0, 2 }, "i32")
  local function some(t) return t:take(rows, 1) end
  for _, f in ipairs {
    function(a, _, l, o) return nn.nll_loss(a, l, o) end,
    function(a, _, l, o) return nn.multi_margin_loss(a, l, o) end,
    function(a, _, l, o) return nn.focal_loss(a, l, o) end,
    function(a, b, _, o) return nn.kl_div(a, b, o) end,
    function(a, b, _, o) return nn.multilabel_soft_margin_loss(a, b, o) end,
    function(a, b, _, o) return nn.cross_entropy(a, b, o) end,
  } do
    close(f(x, y, labels, { mask = mask }):item(), f(some(x), some(y), some(labels)):item(), 1e-6)
  end
end

-- Every loss that takes a mask, of a, b f32[rows, 4] and labels i32[rows].
local masked = {
  ["cross_entropy of probabilities"] = function(a, b, _, o) return nn.cross_entropy(a, b, o) end,
  ["focal_loss of classes"] = function(a, _, l, o) return nn.focal_loss(a, l, o) end,
  multilabel_margin_loss = function(a, _, l, o)
    return nn.multilabel_margin_loss(a, dc.stack({ l, l * 0 - 1, l, l }, 2), o)
  end,
  gaussian_nll_loss = function(a, b, _, o) return nn.gaussian_nll_loss(a, b, b + 1, o) end,
  cosine_embedding_loss = function(a, b, l, o) return nn.cosine_embedding_loss(a, b, l:minimum(1):cast "f32", o) end,
  triplet_margin_loss = function(a, b, _, o) return nn.triplet_margin_loss(a, b, b * 0.5, o) end,
  margin_ranking_loss = function(a, b, _, o) return nn.margin_ranking_loss(a, b, b, o) end,
  dice_loss = function(a, b, _, o) return nn.dice_loss(a:reshape(-1, 2, 2), b:reshape(-1, 2, 2), o) end,
  ctc_loss = function(a, _, l, o)
    return nn.ctc_loss(a:reshape(-1, 2, 2):transpose(1, 2), l:reshape(-1, 1), l * 0 + 2, l * 0 + 1, o)
  end,
}
for _, name in ipairs { "mse_loss", "l1_loss", "huber_loss", "smooth_l1_loss", "bce_with_logits", "bce_loss", "kl_div",
  "poisson_nll_loss", "soft_margin_loss", "multilabel_soft_margin_loss", "focal_loss", "hinge_embedding_loss" } do
  masked[name] = function(a, b, _, o) return nn[name](a, b, o) end
end
for _, name in ipairs { "cross_entropy", "nll_loss", "multi_margin_loss" } do
  masked[name] = function(a, _, l, o) return nn[name](a, l, o) end
end

-- Losses that are left out count nothing, whatever is there: the loss and its gradients are those of the other rows.
function TestLossForms:test_nothing_of_what_is_left_out()
  for name in pairs(nn) do
    lu.assertTrue(not name:match "_loss$" or masked[name] ~= nil, name)
  end
  local options = { mask = dc.tensor({ true, false, true }, "bool") }
  local a, b = randn("f32[2, 4]", 1):sigmoid(), randn("f32[2, 4]", 2):sigmoid()
  local labels, all_labels = dc.tensor({ 1, 0 }, "i32"), dc.tensor({ 1, 99, 0 }, "i32")
  local function with_row(t, x)
    return dc.concat { t[{ { 1, 1 } }], dc.full("f32[1, 4]", x), t[{ { 2, 2 } }] }
  end
  local function gradients(f, x, y, l, o)
    local loss = f(x, y, l, o)
    return { loss:reshape(1), dc.grad(loss, { x, y }, { unused = "zero" }) }
  end
  for name, f in pairs(masked) do
    local few = f == masked.ctc_loss and dc.tensor({ 1, 1 }, "i32") or labels
    local more = f == masked.ctc_loss and dc.tensor({ 1, 99, 1 }, "i32") or all_labels
    local want = gradients(f, a:watch(), b:watch(), few)
    for _, x in ipairs { 0 / 0, math.huge, -math.huge } do
      local got = gradients(f, with_row(a, x):watch(), with_row(b, x):watch(), more, options)
      close(got[1]:item(), want[1]:item(), 1e-6, name)
      for i = 1, 2 do
        close(got[2][i]:totable(), with_row(want[2][i], 0):totable(), 1e-6, name)
      end
    end
  end
end

-- Those whose gradients are written by hand inside typed functions.
function TestLossForms:test_nothing_of_what_is_left_out_compiled()
  local a, b = randn("f32[2, 4]", 1):sigmoid(), randn("f32[2, 4]", 2):sigmoid()
  local mask = dc.tensor({ true, true, false }, "bool")
  for _, name in ipairs { "bce_loss", "bce_with_logits", "huber_loss" } do
    local f = dc.fn("f(x: f32[n, 4], y: f32[n, 4], m: bool[n]) -> f32[], f32[n, 4], f32[n, 4]", function(x, y, m)
      local loss = nn[name](x, y, { mask = m })
      return loss, table.unpack(dc.grad(loss, { x, y }))
    end)
    local x, y = (a * 1):watch(), (b * 1):watch()
    local want = nn[name](x, y)
    local dx, dy = table.unpack(dc.grad(want, { x, y }))
    for _, v in ipairs { 0, 1, 0 / 0, math.huge, -math.huge } do
      local row = dc.full("f32[1, 4]", v)
      local loss, da, db = f(dc.concat { a, row }, dc.concat { b, row }, mask)
      close(loss:item(), want:item(), 1e-6, name)
      close(da:totable(), dc.concat({ dx, dc.zeros "f32[1, 4]" }):totable(), 1e-6, name)
      close(db:totable(), dc.concat({ dy, dc.zeros "f32[1, 4]" }):totable(), 1e-6, name)
    end
  end
end

-- So compiled, with a label that is ignored, and with the step that a NaN would have lost.
function TestLossForms:test_nothing_of_what_is_ignored()
  local w = dc.param("f32[3, 3]", dc.ones "f32[3, 3]")
  local sgd = optim.SGD({ w }, { lr = 1 })
  local step = dc.fn("step(x: f32[3, 3], y: i32[3]) -> f32[]", function(x, y)
    local loss = nn.cross_entropy(w + x, y, { ignore_index = -100 })
    sgd:step(loss)
    return loss
  end)
  local nan = 0 / 0
  close(step({ { 0, 0, 0 }, { nan, math.huge, 0 }, { 2, 2, 2 } }, { 0, -100, 1 }):item(), math.log(3), 1e-6)
  lu.assertEquals(w[2]:totable(), { 1, 1, 1 })
  close(w[1]:totable(), { 4 / 3, 5 / 6, 5 / 6 }, 1e-6)
end

-- Probabilities of 0 and 1: a loss of 100 at most, and a slope that is finite, as PyTorch's.
function TestLossForms:test_bce_at_the_ends()
  local p, t = dc.tensor({ 0, 1, 0, 1, 0.5, 0 }):watch(), dc.tensor({ 0, 1, 1, 0, 1, 0.25 }):watch()
  local loss = nn.bce_loss(p, t, { reduction = "none" })
  close(loss:totable(), { 0, 0, 100, 100, math.log(2), 25 }, 1e-5)
  local dp, dt = table.unpack(dc.grad(loss:sum(), { p, t }))
  lu.assertEquals((dp / 1e12):cast("f32"):round():totable(), { 0, 0, -1, 1, 0, 0 })
  close({ dp[5]:item(), dp[6]:item() / 1e12 }, { -2, -0.25 }, 1e-6)
  close(dt:totable(), { 100, -100, 100, -100, 0, 100 }, 1e-5)
  local x = dc.tensor({ -9, -3, 0, 2, 9 }):watch() -- through a sigmoid as of logits
  local y = dc.tensor { 1, 1, 0, 1, 0 }
  close(dc.grad(nn.bce_loss(x:sigmoid(), y), x):totable(), dc.grad(nn.bce_with_logits(x, y), x):totable(), 1e-6)
  local w = dc.param("f32[2]", { 30, 0.5 })
  local sgd = optim.SGD({ w }, { lr = 0.1 })
  dc.fn("step(target: f32[2]) -> f32[]", function(target)
    local value = nn.bce_loss(w:sigmoid(), target)
    sgd:step(value)
    return value
  end) { 1, 1 }
  close(w:totable(), { 30, 0.5189 }, 1e-4)
end

-- The same in a typed function, where the slope takes one division and no logarithm, and has a derivative in turn.
function TestLossForms:test_bce_compiled()
  local f = dc.fn("f(p: f32[5], t: f32[5]) -> f32[5], f32[5], f32[5]", function(p, t)
    local losses = nn.bce_loss(p, t, { reduction = "none" })
    return losses, table.unpack(dc.grad(losses:sum(), { p, t }))
  end)
  local loss, dp, dt = f({ 0, 1, 0, 1, 0.5 }, { 0, 1, 1, 0, 1 })
  close(loss:totable(), { 0, 0, 100, 100, math.log(2) }, 1e-5)
  close((dp * dc.tensor { 1, 1, 1e-12, 1e-12, 1 }):totable(), { 0, 0, -1, 1, -2 }, 1e-6)
  close(dt:totable(), { 100, -100, 100, -100, 0 }, 1e-5)
  local second = dc.fn("second(p: f32[2], t: f32[2]) -> f32[2]", function(p, t)
    return dc.grad(dc.grad(nn.bce_loss(p, t, { reduction = "sum" }), p):sum(), p)
  end)
  close(second({ 0.5, 0.25 }, { 1, 0 }):totable(), { 4, 1 / 0.75 ^ 2 }, 1e-5)
  local slope = dc.fn("slope(p: f32[5], t: f32[5]) -> f32[5]", function(p, t)
    return dc.grad(nn.bce_loss(p, t), p)
  end)
  slope({ 0, 1, 0, 1, 0.5 }, { 0, 1, 1, 0, 1 })
  for n in ipairs(slope:kernels()) do
    lu.assertNil(slope:source(n, "nest"):match "log")
  end
end

-- A probability of 0 counts nothing where the target is 0, too.
function TestLossForms:test_divergence_of_nothing()
  local inf = math.huge
  local p, t = dc.tensor({ -1, -2, -inf }):watch(), dc.tensor { 0, 1, 0 }
  for _, log_target in ipairs { false, true } do
    local loss = nn.kl_div(p, log_target and t:log() or t, { reduction = "sum", log_target = log_target })
    lu.assertEquals(loss:item(), 2)
    lu.assertEquals((dc.grad(loss, p) * 1):totable(), { 0, -1, 0 })
  end
end

-- f16 and bf16 are f32 on the way.
function TestLossForms:test_16_bits()
  local x, y, labels = randn("f32[3, 4]", 1):cast "bf16", randn("f32[3, 4]", 2):sigmoid():cast "bf16",
    dc.tensor({ 1, 3, 0 }, "i32")
  for name, f in pairs {
    nll = function(a) return nn.nll_loss(a, labels) end,
    focal = function(a, b) return nn.focal_loss(a, b) end,
    smooth = function(a, b) return nn.smooth_l1_loss(a, b) end,
    triplet = function(a, b) return nn.triplet_margin_loss(a, b, -b) end,
    cosine = function(a, b) return nn.cosine_similarity(a, b):sum() end,
    ctc = function(a) return nn.ctc_loss(a:log_softmax(-1), dc.tensor({ 1 }, "i32")) end,
    probabilities = function(a, b) return nn.cross_entropy(a, b) end,
  } do
    local got = f(x, y)
    lu.assertEquals(got.dtype, "bf16", name)
    close(got:item(), f(x:cast "f32", y:cast "f32"):item(), 2e-2, name)
  end
end

function TestLossForms:test_rows_of_any_number()
  local f = dc.fn("f(x: f32[b <= 4, 5], y: i32[b]) -> f32[], f32[], f32[]", function(x, y)
    return nn.nll_loss(x:log_softmax(-1), y), nn.focal_loss(x, y), nn.multi_margin_loss(x, y)
  end)
  local x, y = randn("f32[3, 5]", 1), dc.tensor({ 1, 4, 0 }, "i32")
  local a, b, c = f(x, y)
  close(a:item(), nn.cross_entropy(x, y):item(), 1e-6)
  close(b:item(), nn.focal_loss(x, y):item(), 1e-6)
  close(c:item(), nn.multi_margin_loss(x, y):item(), 1e-6)
end

function TestLossForms:test_mistakes()
  local x, labels = dc.zeros "f32[3, 4]", dc.tensor({ 1, 3, 0 }, "i32")
  fails("nll_loss: labels are f32[3]; class numbers are integers from 0", nn.nll_loss, x, dc.zeros "f32[3]")
  fails("kl_div: prediction is f32[3, 4], target f32[4]; losses do not stretch axes", nn.kl_div, x, dc.zeros "f32[4]")
  fails("reduction is \"mean\", \"sum\" or \"none\", not 'batchmean'", nn.mse_loss, x, x, { reduction = "batchmean" })
  fails("gaussian_nll_loss: variance is f32[1, 4], prediction f32[3, 4]", nn.gaussian_nll_loss, x, x,
    dc.zeros "f32[1, 4]")
  fails("multi_margin_loss: p is 1 or 2, not 3", nn.multi_margin_loss, x, labels, { p = 3 })
  fails("target is f32[4]; [3], one for each row of a, is needed", nn.cosine_embedding_loss, x, x, dc.zeros "f32[4]")
  fails("labels are f32[3, 4]; integers, -1 behind the last of a row, are needed", nn.multilabel_margin_loss, x, x)
  fails("alpha is a tensor of one number for each of 4 classes", nn.focal_loss, x, labels, { alpha = 0.5 })
  fails("ignore_index is for labels that are integers", nn.cross_entropy, x, x, { ignore_index = 1 })
  fails("dice_loss: probabilities are f32[3, 4]; [batch, classes, ...] is needed", nn.dice_loss, x, x)
end

TestCtc = {}

-- What is behind a sequence counts nothing, and a class that cannot be is no NaN.
function TestCtc:test_gradients_are_finite()
  local inf, nan = math.huge, 0 / 0
  local x = dc.tensor({ { { -inf, 0 } }, { { 0, -inf } }, { { nan, nan } } }):watch()
  local loss = nn.ctc_loss(x, dc.tensor({ { 1 } }, "i32"), dc.tensor({ 2 }, "i32"))
  close(loss:item(), 0, 1e-6)
  close(dc.grad(loss, x):totable(), { { { 0, -1 } }, { { -1, 0 } }, { { 0, 0 } } }, 1e-6)
end

-- The sum over all sequences of classes that make the text, in doubles.
local function by_hand(probs, text, blank)
  local total, time, classes = 0, #probs, #probs[1]
  local function go(t, p, path)
    if t > time then
      local last, out = nil, {}
      for _, c in ipairs(path) do
        if c ~= last and c ~= blank then out[#out + 1] = c end
        last = c
      end
      total = total + (table.concat(out, " ") == table.concat(text, " ") and p or 0)
      return
    end
    for c = 0, classes - 1 do
      path[t] = c
      go(t + 1, p * probs[t][c + 1], path)
    end
    path[t] = nil
  end
  go(1, 1, {})
  return -math.log(total)
end

function TestCtc:test_all_paths()
  local probs = randn("f64[4, 3]", 1):softmax(-1)
  for _, text in ipairs { { 1 }, { 1, 1 }, { 2, 1 }, { 1, 2, 1 } } do
    close(nn.ctc_loss(probs:log(), dc.tensor(text, "i32"), nil, nil, { reduction = "sum" }):item(),
      by_hand(probs:totable(), text, 0), 1e-12)
  end
  close(nn.ctc_loss(probs:log(), dc.zeros "i32[0]"):item(), by_hand(probs:totable(), {}, 0), 1e-12)
end

function TestCtc:test_texts_that_do_not_fit()
  local x = randn("f32[2, 1, 3]", 1):watch()
  local text = dc.tensor({ { 1, 1 } }, "i32") -- needs a blank between
  local loss = nn.ctc_loss(x:log_softmax(-1), text)
  lu.assertEquals(loss:item(), math.huge)
  lu.assertTrue(dc.grad(loss, x):eq(0):all():item())
  lu.assertEquals(nn.ctc_loss(x:log_softmax(-1), text, nil, nil, { zero_infinity = true }):item(), 0)
end

-- In a step of training over sequences of any length.
function TestCtc:test_in_a_step()
  local net = nn.Linear(3, 4)
  local f = dc.fn("f(x: f32[t <= 8, 2, 3], y: i32[2, 3], n: i32[2], m: i32[2]) -> f32[], f32[3, 4]", function(x, y,
    n, m)
    local loss = nn.ctc_loss(net(x):log_softmax(-1), y, n, m)
    return loss, dc.grad(loss, net.weight)
  end)
  local x, y = randn("f32[6, 2, 3]", 1), dc.tensor({ { 1, 2, 3 }, { 3, 0, 0 } }, "i32")
  local n, m = dc.tensor({ 6, 4 }, "i32"), dc.tensor({ 3, 1 }, "i32")
  local loss, g = f(x, y, n, m)
  local want = nn.ctc_loss(net(x):log_softmax(-1), y, n, m)
  close(loss:item(), want:item(), 1e-5)
  close(g:totable(), dc.grad(want, net.weight):totable(), 1e-4)
end

function TestCtc:test_mistakes()
  local x, y = dc.zeros "f32[5, 2, 4]", dc.zeros "i32[2, 3]"
  fails("targets are i32[6]; texts in rows, [batch, length], are needed", nn.ctc_loss, x, dc.zeros "i32[6]")
  fails("targets are f32[2, 3]; integers are needed", nn.ctc_loss, x, dc.zeros "f32[2, 3]")
  fails("targets are i32[3, 3]; [2, 3] is needed, for log_probs of f32[5, 2, 4]", nn.ctc_loss, x, dc.zeros "i32[3, 3]")
  fails("blank is 4; the classes are 0 to 3", nn.ctc_loss, x, y, nil, nil, { blank = 4 })
  fails("length 6 outside 0..5", function()
    nn.ctc_loss(x, y, dc.tensor({ 6, 1 }, "i32")):item()
  end)
  fails("class 4 outside 0..3", function() nn.ctc_loss(x, dc.full("i32[2, 3]", 4)):item() end)
end
