-- Metrics; values are compared with scikit-learn's in tests/peers.
local lu = require "luaunit"
local dc = require "deepc"
local nn = require "deepc.nn"
local metrics = require "deepc.metrics"
local check = require "tests.lua.check"

local fails = check.fails

TestOverBatches = {}

-- In a typed function with a bounded batch; a mask leaves out the rows that fill it up.
function TestOverBatches:test_in_a_step()
  local net = nn.Linear(3, 4)
  local all = { metrics.Accuracy(), metrics.Accuracy { top = 2 }, metrics.ConfusionMatrix(4), metrics.Perplexity() }
  local loss = metrics.Mean()
  local step = dc.fn("step(x: f32[batch <= 8, 3], y: i32[batch], m: f32[batch])", function(x, y, m)
    local logits = net(x)
    for _, metric in ipairs(all) do
      metric:update(logits, y, { mask = m })
    end
    loss:update(nn.cross_entropy(logits, y, { mask = m }))
  end)
  local x, y = dc.randn("f32[13, 3]", { seed = 1 }), dc.randint("i32[13]", { high = 4, seed = 2 })
  step(x[{ { 1, 8 } }], y[{ { 1, 8 } }], dc.ones "f32[8]")
  local filled = dc.concat({ x[{ { 9, 13 } }], dc.zeros "f32[2, 3]" }, 1)
  step(filled, dc.concat({ y[{ { 9, 13 } }], dc.zeros "i32[2]" }, 1), { 1, 1, 1, 1, 1, 0, 0 })
  local logits = net(x)
  check.close({ all[1]:result():item(), all[2]:result():item(), all[3]:accuracy():item(), all[4]:result():item() },
    { metrics.accuracy(logits, y):item(), metrics.top_k_accuracy(logits, y, 2):item(),
      metrics.accuracy(logits, y):item(), metrics.perplexity(logits, y):item() }, 1e-5)
  lu.assertEquals(all[3]:result():totable(), metrics.confusion_matrix(logits, y, 4):totable())
  lu.assertEquals(#step:info(), 1)
  all[1]:reset()
  lu.assertTrue(all[1]:result():isnan():item())
end

-- A million small losses beside a large one: what rounding takes is kept.
function TestOverBatches:test_sums_keep_what_rounding_takes()
  local mean = metrics.Mean()
  local add = dc.fn("add(x: f32[])", function(x)
    dc.fori(1000, function(_, c)
      mean:update(x)
      return c
    end, 0)
  end)
  mean:update(dc.tensor(2 ^ 26))
  for _ = 1, 5 do
    add(1)
  end
  lu.assertEquals((mean:result() * 5001):item(), 2 ^ 26 + 5000)
end

function TestOverBatches:test_means()
  local mean, running = metrics.Mean(), metrics.RunningAverage(0.5)
  mean:update(dc.tensor { 1, 2 })
  mean:update(dc.tensor({ 9, 5 }, "i32"), nil, { mask = dc.tensor({ true, false }, "bool") })
  lu.assertEquals(mean:result():item(), 4)
  running:update(dc.tensor(4))
  lu.assertEquals(running:result():item(), 4)
  running:update(dc.tensor(1))
  lu.assertAlmostEquals(running:result():item(), (4 * 0.25 + 1 * 0.5) / 0.75, 1e-6)
end

-- Means far from 0, in which sums of squares would cancel.
function TestOverBatches:test_r2_far_from_zero()
  local r2, t = metrics.R2(), dc.iota("f32[40]") + 10000
  local p = t + dc.randn("f32[40]", { seed = 3 })
  for i = 1, 40, 8 do
    r2:update(p[{ { i, i + 7 } }], t[{ { i, i + 7 } }])
  end
  lu.assertAlmostEquals(r2:result():item(), metrics.r2(p, t):item(), 1e-4)
end

function TestOverBatches:test_saved()
  local a, path = metrics.ConfusionMatrix(3), os.tmpname()
  a:update(dc.tensor({ 0, 1, 2 }, "i32"), dc.tensor({ 0, 2, 2 }, "i32"))
  dc.save(path, { m = a, mean = metrics.Mean() })
  local b = metrics.ConfusionMatrix(3)
  dc.load(path, { m = b, mean = metrics.Mean() })
  os.remove(path)
  lu.assertEquals(b:result():totable(), a:result():totable())
end

TestValues = {}

function TestValues:test_shapes_and_dtypes()
  local y = dc.tensor({ { 0, 1 }, { 2, 1 } }, "u8")
  local logits = y:cast("i32"):one_hot(3):cast "bf16"
  lu.assertEquals(metrics.accuracy(logits, y):item(), 1)
  lu.assertEquals(metrics.iou(logits, y, 3):item(), 1)
  lu.assertEquals(metrics.top_k_accuracy(logits, y, 1):item(), 1)
  lu.assertEquals(metrics.mse(dc.tensor({ 1, 2 }, "f16"), dc.tensor({ 1, 4 }, "f16")):item(), 2)
  lu.assertTrue(metrics.accuracy(dc.zeros "i32[0]", dc.zeros "i32[0]"):isnan():item())
  lu.assertEquals(metrics.roc_auc(dc.tensor { 1, 2 }, dc.tensor({ false, true }, "bool")):item(), 1)
  lu.assertTrue(metrics.roc_auc(dc.tensor { 1, 2 }, dc.tensor({ 1, 1 }, "i32")):isnan():item())
  local masked = { mask = dc.tensor { 1, 1, 0 } }
  local scores, labels = dc.tensor { 0.3, 0.6, 0.1 }, dc.tensor({ 0, 1, 1 }, "i32")
  lu.assertEquals(metrics.roc_auc(scores, labels, masked):item(), 1)
  lu.assertEquals(metrics.average_precision(scores, labels, masked):item(), 1)
  local bounded = dc.fn("bounded(s: f32[n <= 5], l: i32[n]) -> f32[], f32[]", function(s, l)
    return metrics.roc_auc(s, l), metrics.average_precision(s, l)
  end)
  local area, precision = bounded(scores, labels)
  lu.assertEquals(area:item(), 0.5)
  lu.assertAlmostEquals(precision:item(), (1 + 2 / 3) / 2, 1e-6)
end

-- The first example of the paper, and whole texts by its formula.
function TestValues:test_bleu()
  local function words(text)
    local list = {}
    for word in text:gmatch "%S+" do
      list[#list + 1] = word
    end
    return list
  end
  local _, about = metrics.bleu({ words "the the the the the the the" },
    { { words "the cat is on the mat", words "there is a cat on the mat" } }, { max_n = 2 })
  check.close(about.precisions, { 2 / 7, 0 })
  lu.assertEquals({ about.length, about.reference_length }, { 7, 7 })
  local score, more = metrics.bleu({ words "the cat sat on mat", { 1, 2, 3 } },
    { words "the cat sat on the mat", { 1, 2, 3, 4 } }, { max_n = 3 })
  check.close(more.precisions, { 8 / 8, 5 / 6, 3 / 4 })
  lu.assertAlmostEquals(more.brevity_penalty, math.exp(1 - 10 / 8), 1e-12)
  lu.assertAlmostEquals(score, math.exp(1 - 10 / 8) * (5 / 6 * 3 / 4) ^ (1 / 3), 1e-12)
  lu.assertEquals((metrics.bleu({ words "a b c d" }, { words "a b c d" })), 1)
  lu.assertEquals((metrics.bleu({ words "x y z w" }, { words "a b c d" })), 0)
  lu.assertAlmostEquals(metrics.bleu({ words "a b" }, { words "a c" }, { max_n = 2, smooth = true }),
    (1 / 2 * 1 / 2) ^ 0.5, 1e-12)
end

function TestValues:test_mistakes()
  local y = dc.tensor({ 0, 1 }, "i32")
  fails("accuracy: predictions are f32[2, 3], labels i32[3]", metrics.accuracy, dc.zeros "f32[2, 3]", dc.iota(3))
  fails('x:gt(0.5):cast "i32" makes classes of probabilities', metrics.accuracy, dc.zeros "f32[2]", y)
  fails("accuracy: labels are f32[2]; class numbers are integers", metrics.accuracy, dc.zeros "f32[2, 3]",
    dc.ones "f32[2]")
  fails("top_k_accuracy: top is 4, there are 3 classes", metrics.top_k_accuracy, dc.zeros "f32[2, 3]", y, 4)
  fails("class 1 outside 0..0", function() return metrics.confusion_matrix(y, y, 1):item() end)
  fails("confusion_matrix: mask is f32[3], labels i32[2]", metrics.confusion_matrix, y, y, 2,
    { mask = dc.ones "f32[3]" })
  fails('precision: average is "macro"', metrics.precision, y, y, 2, { average = "mean" })
  fails('f1: average = "binary" is of class 1 of 2, there are 3', metrics.f1, y, y, 3, { average = "binary" })
  fails("mse: predictions are f32[2], targets i32[2]", metrics.mse, dc.ones "f32[2]", y)
  fails("mae: predictions are f32[2], targets f32[2, 1]", metrics.mae, dc.ones "f32[2]", dc.ones "f32[2, 1]")
  fails("scores[{ {}, 2 }] are those of class 1", metrics.roc_auc, dc.ones "f32[2, 2]", y)
  fails("roc_auc: labels are f32[2]; they are 0 or 1", metrics.roc_auc, dc.ones "f32[2]", dc.ones "f32[2]")
  fails("class 2 outside 0..1", function() return metrics.roc_auc(dc.ones "f32[2]", y + 1):item() end)
  fails("metrics.AUC: thresholds is an integer from 2, not 1", metrics.AUC, { thresholds = 1 })
  fails("bleu: 1 candidates, references of 2", metrics.bleu, { {} }, { {}, {} })
  fails("bleu: candidate 1 is the string 'a b', no table of tokens", metrics.bleu, { "a b" }, { { "a" } })
  fails("update: a running average takes one number", metrics.RunningAverage().update, metrics.RunningAverage(), y)
  fails("metrics.Accuracy: unknown option 'k'", metrics.Accuracy, { k = 3 })
  fails("metrics.Mean has no setting 'x'", function() metrics.Mean().x = 3 end)
  fails("result: a metric is needed, not nil", metrics.Mean().result)
end
