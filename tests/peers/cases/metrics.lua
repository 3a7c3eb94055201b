-- Metrics beside scikit-learn's, of one batch and over several.
local metrics = require "deepc.metrics"

local f32 = { "f32" }

-- numpy = Python over arrays, sklearn.metrics as M.
local function python(text)
  return "import sklearn.metrics as M\nresult = " .. text
end

-- Three updates of a metric with parts of the rows.
local function over(metric, a, b, sizes)
  local from = 1
  for _, n in ipairs(sizes) do
    local rows = { from, from + n - 1 }
    metric:update(a[{ rows }], b[{ rows }])
    from = from + n
  end
  return metric
end

local PARTS = { 5, 1, 14 }

local labels = { "i32[20]", low = 0, high = 4 }
local classes = { { p = { "i32[20]", low = 0, high = 4 }, y = labels }, { p = { "i32[3]", values = { 0, 0, 2 } },
  y = { "i32[3]", values = { 0, 0, 0 } } } }
local binary = { s = { "f32[20]", low = 0, high = 1 }, y = { "i32[20]", low = 0, high = 2 } }
local ties = { s = { "f32[8]", values = { 0.5, 0.5, 0.25, 0.75, 0.75, 0.5, 0, 1 } },
  y = { "i32[8]", values = { 0, 1, 0, 1, 0, 1, 0, 1 } } }
local pair = { { p = "T[20]", y = "T[20]" } }

local list = {}

local function case(name, run, text, args, more)
  local c = { name, run = run, numpy = python(text), args = args, dtypes = f32 }
  for key, value in pairs(more or {}) do
    c[key] = value
  end
  list[#list + 1] = c
end

case("metrics.accuracy", function(a)
  return { metrics.accuracy(a.p, a.y), over(metrics.Accuracy(), a.p, a.y, #a.y > 3 and PARTS or { 3 }):result() }
end, "[np.float32(M.accuracy_score(y, p))] * 2", classes)

case("metrics.top_k_accuracy", function(a)
  return { metrics.top_k_accuracy(a.x, a.y, 2), over(metrics.Accuracy { top = 3 }, a.x, a.y, PARTS):result(),
    metrics.accuracy(a.x, a.y) }
end, "[np.float32(M.top_k_accuracy_score(y, x, k=k, labels=range(4))) for k in (2, 3, 1)]",
  { { x = "f32[20, 4]", y = labels } })

case("metrics.confusion_matrix", function(a)
  local m = metrics.ConfusionMatrix(4)
  return { metrics.confusion_matrix(a.p, a.y, 4), over(m, a.p, a.y, #a.y > 3 and PARTS or { 3 }):result() }
end, "[M.confusion_matrix(y, p, labels=range(4)).astype(np.int32)] * 2", classes)

for _, score in ipairs { { "precision", "precision_score" }, { "recall", "recall_score" }, { "f1", "f1_score" },
  { "iou", "jaccard_score" } } do
  local kind = score[1]
  case("metrics." .. kind, function(a)
    local m, results = over(metrics.ConfusionMatrix(4), a.p, a.y, #a.y > 3 and PARTS or { 3 }), {}
    for i, average in ipairs { "macro", "micro", "weighted" } do
      results[i] = metrics[kind](a.p, a.y, 4, { average = average })
      results[i + 3] = m[kind](m, average)
    end
    return results
  end, ("[np.float32(M.%s(y, p, average=a, zero_division=0)) for a in ('macro', 'micro', 'weighted')] * 2"):format(
    score[2]), classes)
  case("metrics." .. kind .. " binary", function(a)
    local p = a.s:gt(0.5):cast "i32"
    return { metrics[kind](p, a.y, 2, { average = "binary" }), metrics[kind](p, a.y, 2, { average = "none" }) }
  end, ("[np.float32(M.%s(y, s > 0.5, average=a)) for a in ('binary', None)]"):format(score[2]), { binary })
end

case("metrics.roc_auc", function(a)
  return { metrics.roc_auc(a.s, a.y) }
end, "np.float32(M.roc_auc_score(y, s))", { binary, ties })

case("metrics.average_precision", function(a)
  return { metrics.average_precision(a.s, a.y) }
end, "np.float32(M.average_precision_score(y, s))", { binary, ties })

case("metrics.AUC", function(a)
  local m = over(metrics.AUC { thresholds = 4 }, a.s, a.y, { 3, 5 })
  return { m:result(), m:average_precision() }
end, "[np.float32(f(y, np.minimum(s, 0.75))) for f in (M.roc_auc_score, M.average_precision_score)]", { ties })

for _, score in ipairs { { "mse", "MSE", "mean_squared_error" }, { "mae", "MAE", "mean_absolute_error" },
  { "r2", "R2", "r2_score" } } do
  case("metrics." .. score[1], function(a)
    return { metrics[score[1]](a.p, a.y), over(metrics[score[2]](), a.p, a.y, PARTS):result():cast(a.p.dtype) }
  end, ("[M.%s(y, p).astype(y.dtype) if hasattr(M.%s(y, p), 'astype') else np.array(M.%s(y, p), y.dtype)] * 2"):format(
    score[3], score[3], score[3]), pair,
    { dtypes = { "f32", "f64" }, tol = { f64 = 1e-6 } }) -- over batches sums are f32
end

case("metrics.perplexity", function(a)
  local p = over(metrics.Perplexity(), a.x, a.y, PARTS)
  return { metrics.perplexity(a.x, a.y), p:result() }
end, "[np.exp(np.float32(M.log_loss(y, scipy.special.softmax(x.astype(np.float64), -1), labels=range(4))))] * 2",
  { { x = "f32[20, 4]", y = labels } })

return list
