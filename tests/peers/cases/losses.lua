-- Losses of deepc.nn beside those of torch.nn.functional.
local nn = require "deepc.nn"

local cases = {}

local function add(case)
  cases[#cases + 1] = case
end

-- The three reductions of a loss; `call` and `peer` take the reduction as their last option.
local function loss(name, call, peer, ...)
  add { name, run = function(a)
    return { call(a, "mean"), call(a, "sum"), call(a, "none") }
  end, peer = ("r = lambda how: %s\nresult = (r('mean'), r('sum'), r('none'))"):format(peer), args = { ... } }
end

-- A loss of a prediction x and a target y.
local function pairwise(name, options, peer, ...)
  loss(name .. (next(options) and ", options" or ""), function(a, how)
    local o = { reduction = how }
    for key, value in pairs(options) do o[key] = value end
    return nn[name](a.x, a.y, o)
  end, peer, ...)
end

-- ---- numbers ----

local TWO = { x = "T[3, 4]", y = "T[3, 4]" }
local SIGNS = { "T[3, 4]", values = { { 1, -1, 1, 1 }, { -1, -1, 1, -1 }, { 1, 1, -1, 1 } }, grad = false }
local SIGNED = { x = "T[3, 4]", y = SIGNS }
local PROBS = { "T[3, 4]", low = 0.05, high = 0.95 }

pairwise("mse_loss", {}, "F.mse_loss(x, y, reduction=how)", TWO)
pairwise("l1_loss", {}, "F.l1_loss(x, y, reduction=how)", TWO)
pairwise("huber_loss", { delta = 0.7 }, "F.huber_loss(x, y, how, 0.7)", TWO)
pairwise("smooth_l1_loss", {}, "F.smooth_l1_loss(x, y, reduction=how)", TWO)
pairwise("smooth_l1_loss", { beta = 0.5 }, "F.smooth_l1_loss(x, y, reduction=how, beta=0.5)", TWO)
pairwise("bce_loss", {}, "F.binary_cross_entropy(x, y, reduction=how)", { x = PROBS, y = PROBS })
pairwise("bce_with_logits", {}, "F.binary_cross_entropy_with_logits(x, y, reduction=how)", { x = "T[3, 4]", y = PROBS })
loss("bce_with_logits, pos_weight", function(a, how)
  return nn.bce_with_logits(a.x, a.y, { pos_weight = a.w, reduction = how })
end, "F.binary_cross_entropy_with_logits(x, y, pos_weight=w, reduction=how)",
  { x = "T[3, 4]", y = PROBS, w = { "T[4]", low = 0.5, high = 3, grad = false } })
pairwise("kl_div", {}, "F.kl_div(x, y, reduction=how)", { x = "T[3, 4]", y = PROBS },
  { x = "T[2]", y = { "T[2]", values = { 0, 1 }, grad = false } })
pairwise("kl_div", { log_target = true }, "F.kl_div(x, y, reduction=how, log_target=True)", TWO)
add { "kl_div, batchmean", run = function(a) return nn.kl_div(a.x, a.y, { reduction = "batchmean" }) end,
  peer = "F.kl_div(x, y, reduction='batchmean')", args = { { x = "T[3, 4]", y = PROBS } } }
pairwise("poisson_nll_loss", {}, "F.poisson_nll_loss(x, y, reduction=how)", TWO)
pairwise("poisson_nll_loss", { log_input = false, full = true },
  "F.poisson_nll_loss(x, y, log_input=False, full=True, reduction=how)",
  { x = PROBS, y = { "T[3, 4]", low = 0, high = 5, grad = false } })
loss("gaussian_nll_loss", function(a, how) return nn.gaussian_nll_loss(a.x, a.y, a.v, { reduction = how,
  full = true }) end,
  "F.gaussian_nll_loss(x, y, v, full=True, reduction=how)", { x = "T[3, 4]", y = "T[3, 4]", v = PROBS },
  { x = "T[3, 4]", y = "T[3, 4]", v = { "T[3, 1]", low = 0.1, high = 2 } },
  { x = "T[2]", y = "T[2]", v = { "T[2]", values = { 0, 1e-9 } } })
cases[#cases].tol = { f32 = 1e-3 } -- of the last arguments, divided by 1e-12

-- ---- pairs and triples ----

add { "nn.CosineSimilarity", run = function(a)
  return { nn.CosineSimilarity()(a.x, a.y), nn.CosineSimilarity({ axis = 1, eps = 0.5 })(a.x, a.y) }
end, peer = "(F.cosine_similarity(x, y), F.cosine_similarity(x, y, 0, 0.5))", args = { TWO } }
local ROWS = { "T[3]", values = { 1, -1, -1 }, grad = false }
for _, margin in ipairs { 0, -0.5 } do
  loss("cosine_embedding_loss, " .. margin, function(a, how)
    return nn.cosine_embedding_loss(a.x, a.y, a.t, { margin = margin, reduction = how })
  end, ("F.cosine_embedding_loss(x, y, t, margin=%s, reduction=how)"):format(margin),
    { x = "T[3, 4]", y = "T[3, 4]", t = ROWS })
end
local THREE = { x = "T[3, 4]", y = "T[3, 4]", z = "T[3, 4]" }
loss("triplet_margin_loss", function(a, how) return nn.triplet_margin_loss(a.x, a.y, a.z, { reduction = how }) end,
  "F.triplet_margin_loss(x, y, z, reduction=how)", THREE)
loss("triplet_margin_loss, options", function(a, how)
  return nn.triplet_margin_loss(a.x, a.y, a.z, { reduction = how, margin = 2, p = 3, swap = true })
end, "F.triplet_margin_loss(x, y, z, margin=2, p=3, swap=True, reduction=how)", THREE)
loss("margin_ranking_loss", function(a, how)
  return nn.margin_ranking_loss(a.x, a.y, a.t, { reduction = how, margin = 0.3 })
end, "F.margin_ranking_loss(x, y, t, margin=0.3, reduction=how)", { x = "T[3, 4]", y = "T[3, 4]", t = SIGNS })
pairwise("hinge_embedding_loss", { margin = 0.5 }, "F.hinge_embedding_loss(x, y, margin=0.5, reduction=how)", SIGNED)
pairwise("soft_margin_loss", {}, "F.soft_margin_loss(x, y, reduction=how)", SIGNED)

-- ---- classes ----

local LABELS = { x = "T[4, 5]", y = { "i64[4]", high = 5 } }
local WEIGHED = { x = "T[4, 5]", y = { "i64[4]", values = { 1, 2, 4, 2 } }, w = { "T[5]", low = 0.5, high = 2,
  grad = false } }

local function of_classes(name, options, peer, ...)
  loss(name, function(a, how)
    local o = { reduction = how, weight = a.w }
    for key, value in pairs(options) do o[key] = value end
    return nn[name:match "^[%w_]+"](a.x, a.y, o)
  end, peer, ...)
end

of_classes("nll_loss", {}, "F.nll_loss(x, y, reduction=how)", LABELS)
of_classes("nll_loss, options", { ignore_index = 2 }, "F.nll_loss(x, y, w, ignore_index=2, reduction=how)", WEIGHED)
of_classes("cross_entropy", {}, "F.cross_entropy(x, y, reduction=how)", LABELS)
of_classes("cross_entropy, options", { ignore_index = 2, label_smoothing = 0.2 },
  "F.cross_entropy(x, y, w, ignore_index=2, label_smoothing=0.2, reduction=how)", WEIGHED)
of_classes("cross_entropy, probabilities", { label_smoothing = 0.1 },
  "F.cross_entropy(x, y, w, label_smoothing=0.1, reduction=how)",
  { x = "T[3, 4]", y = PROBS, w = { "T[4]", low = 0.5, high = 2, grad = false } })
of_classes("multi_margin_loss", {}, "F.multi_margin_loss(x, y, reduction=how)", LABELS)
of_classes("multi_margin_loss, options", { p = 2, margin = 0.5 },
  "F.multi_margin_loss(x, y, 2, 0.5, w, reduction=how)", WEIGHED)
of_classes("multilabel_margin_loss", {}, "F.multilabel_margin_loss(x, y, reduction=how)",
  { x = "T[3, 4]", y = { "i64[3, 4]", values = { { 3, 0, -1, 1 }, { -1, 2, 2, 2 }, { 0, 1, 2, 3 } } } })
of_classes("multilabel_soft_margin_loss", {}, "F.multilabel_soft_margin_loss(x, y, w, reduction=how)",
  { x = "T[3, 4]", y = PROBS, w = { "T[4]", low = 0.5, high = 2, grad = false } })

-- ---- focal and dice, as formulas ----

loss("focal_loss", function(a, how) return nn.focal_loss(a.x, a.y, { reduction = how, gamma = 1.5 }) end,
  "(lambda v: v if how == 'none' else getattr(v, how)())" ..
  "((1 - F.softmax(x, -1).gather(-1, y[:, None])[:, 0]) ** 1.5 * " ..
  "F.cross_entropy(x, y, reduction='none'))", LABELS)
loss("focal_loss, binary", function(a, how) return nn.focal_loss(a.x, a.y, { reduction = how, alpha = 0.25 }) end,
  "(lambda v: v if how == 'none' else getattr(v, how)())((y * 0.25 + (1 - y) * 0.75) * " ..
  "(1 - (y * x.sigmoid() + (1 - y) * (1 - x.sigmoid()))) ** 2 * " ..
  "F.binary_cross_entropy_with_logits(x, y, reduction='none'))",
  { x = "T[3, 4]", y = { "T[3, 4]", values = { { 1, 0, 1, 1 }, { 0, 0, 1, 0 }, { 1, 1, 0, 1 } }, grad = false } })
loss("dice_loss", function(a, how) return nn.dice_loss(a.x, a.y, { reduction = how, squared = true }) end,
  "(lambda v: v if how == 'none' else getattr(v, how)())(1 - (2 * (x * y).sum((2, 3)) + 1) / " ..
  "((x * x + y * y).sum((2, 3)) + 1))", { x = { "T[2, 3, 2, 2]", low = 0, high = 1 }, y = { "T[2, 3, 2, 2]", low = 0,
    high = 1 } })

-- ---- texts in sequences; gradients pass a log_softmax, behind which PyTorch's are gradients ----

local CTC = { x = "T[6, 3, 4]", y = { "i64[3, 3]", values = { { 1, 2, 3 }, { 2, 2, 1 }, { 3, 9, 9 } } },
  n = { "i64[3]", values = { 6, 6, 4 } }, m = { "i64[3]", values = { 3, 2, 1 } } }
loss("ctc_loss", function(a, how) return nn.ctc_loss(a.x:log_softmax(-1), a.y, a.n, a.m, { reduction = how }) end,
  "F.ctc_loss(x.log_softmax(-1), y.clamp(max=3), n, m, reduction=how)", CTC)
cases[#cases].tol = { f32 = 1e-5 } -- sums of six logarithms
loss("ctc_loss, blank", function(a, how)
  return nn.ctc_loss(a.x:log_softmax(-1), a.y, nil, a.m, { reduction = how, blank = 3, zero_infinity = true })
end, "F.ctc_loss(x.log_softmax(-1), y, torch.tensor([4, 4, 4]), m, 3, how, True)", -- the first text does not fit
  { x = "T[4, 3, 4]", y = { "i64[3, 3]", values = { { 1, 1, 1 }, { 2, 1, 0 }, { 0, 1, 2 } } },
    m = { "i64[3]", values = { 3, 0, 2 } } })
cases[#cases].tol = { f32 = 1e-5 }
add { "ctc_loss, one", run = function(a) return nn.ctc_loss(a.x:log_softmax(-1), a.y) end, tol = { f32 = 1e-5 },
  peer = "F.ctc_loss(x.log_softmax(-1), y, torch.tensor(5), torch.tensor(2))",
  args = { { x = "T[5, 4]", y = { "i64[2]", values = { 1, 2 } } } } }

return cases
