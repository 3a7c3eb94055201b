-- Losses of stdlib/nn/loss_forms.lua and ctc.lua beyond their values, which tests/peers/cases/losses.lua compares with
-- PyTorch's: masks, 16-bit floats, sizes with a bound, texts that do not fit, mistakes.
local lu = require "luaunit"
local dc = require "deepc"
local nn = require "deepc.nn"
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
