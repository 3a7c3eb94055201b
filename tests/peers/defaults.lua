-- What layers, losses, optimisers, schedules and batches do unless told, beside the defaults of PyTorch, which
-- tables/defaults.txt has (scripts/peers defaults writes it, by inspect.signature).
--
-- A case runs something with options; for each default of its peers
--
--   without the option and with PyTorch's default it gives the same, bit by bit;
--   with another value something else, or an error: so the case would notice.
--
-- A case is { peers, run = function(o), and by the name of a parameter of the peer:
--   names     what the option is called here, in a list where one parameter is several options; { name, theirs = ours }
--             where values have other names (named below where all cases agree)
--   none      what None stands for there
--   with      further options that it needs to do anything
--   other     another value, where none can be made up
--   absent    what there is no option for here, "a b"
--   differs   { default of the option here, reason }: docs/coming-from.md has a row for each }
local dc = require "deepc"
local nn = require "deepc.nn"
local optim = require "deepc.optim"
local schedules = require "deepc.schedules"
local data = require "deepc.data"

local defaults = {}

-- Parameters that say where and how PyTorch computes, not what.
local elsewhere = {}
for name in ([[device dtype inplace size_average reduce generator foreach fused capturable differentiable last_epoch
  enabled out _weight _freeze _stacklevel sparse recompute_scale_factor enable_nested_tensor mask_check epoch optimizer
  num_workers sampler batch_sampler collate_fn pin_memory timeout worker_init_fn multiprocessing_context prefetch_factor
  persistent_workers pin_memory_device in_order scale_grad_by_freq norm_type]]):gmatch "[%w_]+" do
  elsewhere[name] = true
end

-- Parameters whose None is nothing given, as here.
local nothing = {}
for name in ([[weight bias pos_weight padding_idx max_norm divisor_override output_size kdim vdim custom_encoder
  custom_decoder size scale_factor attn_mask scale adjust_lr_fn min_value max_value total_steps epochs steps_per_epoch
  qconfig_spec mapping line_search_fn]]):gmatch "[%w_]+" do
  nothing[name] = true
end

local named = {
  negative_slope = "slope", lambd = "lambda", min_val = "low", max_val = "high", keepdim = "keep", dim = "axis",
  is_causal = "causal", dropout_p = "dropout", elementwise_affine = "affine", layer_norm_eps = "eps",
  dim_feedforward = "feedforward", betas = { "beta1", "beta2" }, gamma = "factor", eta_min = "final",
  num_encoder_layers = "encoder_layers", num_decoder_layers = "decoder_layers",
}

-- Axes count from 1 here.
local axis = { "axis", value = function(v) return v >= 0 and v + 1 or v end }

-- In the place of a value here that no option says.
local unset = {}

local cases = {}

local function case(peers, t)
  t.peers = {}
  for name in peers:gmatch "%S+" do
    t.peers[#t.peers + 1] = "torch." .. name
  end
  cases[#cases + 1] = t
end

-- Numbers of both signs and of some sizes.
local function x(...)
  return dc.randn(("f64[%s]"):format(table.concat({ ... }, ", ")), { seed = 7 }) * 2
end

local small = function(...) return x(...) * 1e-3 end

local images = { { 2, 4, 10 }, { 2, 4, 10, 8 }, { 2, 4, 10, 6, 8 } }

local function image(n)
  return x(table.unpack(images[n])):cast "f32"
end

-- ---- layers ----

case("nn.Flatten", { run = function(o) return nn.Flatten(o.axis)(x(2, 3, 4)) end, absent = "end_dim",
  names = { start_dim = axis } })
case("nn.Linear", { run = function(o) return nn.Linear(3, 4, o)(dc.ones "f32[2, 3]") end })
case("nn.Bilinear", { run = function(o) return nn.Bilinear(3, 2, 4, o)(dc.ones "f32[5, 3]", dc.ones "f32[5, 2]") end })
case("nn.Embedding", { run = function(o) return nn.Embedding(5, 4, o)(dc.iota "i32[5]") end })
case("nn.EmbeddingBag", { run = function(o) return nn.EmbeddingBag(5, 4, o)(dc.iota "i32[1, 5]") end,
  absent = "include_last_offset", other = { mode = "sum" } })
case("nn.Dropout nn.functional.dropout", { run = function(o) return nn.Dropout(o.p)(x(9, 9)) end, absent = "training" })
for n = 1, 3 do
  case(("nn.Dropout%dd"):format(n), { run = function(o) return nn[("Dropout%dd"):format(n)](o.p)(image(n)) end })
  case(("nn.Conv%dd"):format(n), { run = function(o) return nn[("Conv%dd"):format(n)](4, 4, 2, o)(image(n)) end,
    other = { groups = 2, padding_mode = "reflect" },
    with = { padding_mode = { padding = 1 } } })
  case(("nn.ConvTranspose%dd"):format(n), {
    run = function(o) return nn[("ConvTranspose%dd"):format(n)](4, 4, 2, o)(image(n)) end,
    other = { groups = 2 }, with = { output_padding = { stride = 2 } }, absent = "padding_mode" })
  case(("nn.MaxPool%dd"):format(n), { run = function(o) return { nn[("MaxPool%dd"):format(n)](2, o)(image(n)) } end,
    none = { stride = 2 }, with = { ceil_mode = { stride = 3 } } })
  case(("nn.AvgPool%dd"):format(n), { run = function(o) return nn[("AvgPool%dd"):format(n)](2, o)(image(n)) end,
    none = { stride = 2 }, names = { count_include_pad = "count_padding" },
    with = { ceil_mode = { stride = 3 }, count_include_pad = { padding = 1 } } })
  case(("nn.LPPool%dd"):format(n), { run = function(o) return nn[("LPPool%dd"):format(n)](2, 2, o)(image(n)) end,
    none = { stride = 2 }, with = { ceil_mode = { stride = 3 } } })
  case(("nn.AdaptiveMaxPool%dd"):format(n), {
    run = function(o) return nn[("AdaptiveMaxPool%dd"):format(n)](2, o)(image(n)) end, absent = "return_indices" })
  local function unpool(o)
    local y, at = dc[("max_pool%dd"):format(n)](image(n), 2, { return_indices = true })
    return nn[("max_unpool%dd"):format(n)](y, at, 2, o)
  end
  case(("nn.functional.max_unpool%dd nn.MaxUnpool%dd"):format(n, n), { run = unpool, none = { stride = 2 } })
  local function norm(class, running)
    return function(o)
      local layer = nn[class:format(n)](4, o)
      return { layer(image(n) * 1e-2), running and layer.running_mean or dc.ones "f32[]", layer.weight and 1 or 0,
        layer.running_mean and 1 or 0 }
    end
  end
  case(("nn.BatchNorm%dd"):format(n), { run = norm("BatchNorm%dd", true), absent = "bias" })
  case(("nn.InstanceNorm%dd"):format(n), { run = norm("InstanceNorm%dd", true), absent = "bias",
    with = { momentum = { track_running_stats = true } } })
end
case("nn.AlphaDropout", { run = function(o) return nn.AlphaDropout(o.p)(x(9, 9)) end })
for _, name in ipairs { "interpolate", "Upsample" } do
  case(name == "interpolate" and "nn.functional.interpolate" or "nn.Upsample", {
    run = function(o)
      o.size = { 13, 5 }
      return name == "interpolate" and nn.interpolate(image(2), o) or nn.Upsample(o)(image(2))
    end, other = { mode = "bilinear" }, none = { align_corners = false },
    with = { align_corners = { mode = "bilinear" } }, absent = "antialias" })
end
case("nn.functional.grid_sample", { run = function(o) return nn.grid_sample(image(2), image(2)[{ {}, {}, {}, { 1, 2 } }]
  [{ {}, {}, { 1, 5 } }] * 0.3, o) end, names = { padding_mode = "padding" }, none = { align_corners = false },
  other = { mode = "nearest", padding_mode = "border" } })
case("nn.functional.affine_grid", { run = function(o) return nn.affine_grid(x(2, 2, 3), { 2, 1, 4, 5 }, o) end,
  none = { align_corners = false } })
case("nn.functional.unfold", { run = function(o) return nn.unfold(image(2), 2, o) end })
case("nn.functional.fold", { run = function(o)
  return nn.fold(x(1, 4, 12), { 5 - ((o.stride or 1) - 1), 4 }, 2, o)
end })
case("nn.functional.normalize", { run = function(o)
  return nn.normalize(dc.concat({ small(3, 4) * 1e-10, x(3, 4) }, 1), o)
end,
  names = { dim = axis } })
case("nn.functional.cosine_similarity nn.CosineSimilarity", {
  run = function(o) return { nn.cosine_similarity(small(3, 3) * 1e-6, x(3, 3) * 1e-5, o),
    nn.CosineSimilarity(o)(small(3, 3) * 1e-6, x(3, 3) * 1e-5) } end, names = { dim = axis } })
case("nn.functional.pairwise_distance", { run = function(o) return nn.pairwise_distance(x(3, 4), small(3, 4), o) end })
case("nn.utils.parametrizations.weight_norm", { run = function(o)
  local layer = nn.weight_norm(nn.Conv2d(4, 4, 2), o)
  return { layer(image(2)), layer.weight_g or 0 }
end, absent = "name", names = { dim = axis } })
case("nn.utils.parametrizations.spectral_norm", { run = function(o)
  local layer = nn.spectral_norm(nn.Conv2d(4, 4, 2), o)
  return layer(image(2))
end, absent = "name dim", names = { n_power_iterations = "iterations" }, other = { eps = 100 } })

-- ---- activations ----

local function along(f, class)
  return function(o) return { f(x(3, 4, 6), o.axis), class(o.axis)(x(3, 4, 6)) } end
end

local last = "PyTorch deprecates to choose one by the rank"
for name, f in pairs { Softmax = dc.softmax, LogSoftmax = dc.log_softmax, Softmin = nn.softmin } do
  case("nn." .. name .. (name == "Softmin" and " nn.functional.softmin" or ""), {
    run = along(function(v, at) return f(v, at or -1) end, nn[name]), differs = { dim = { -1, last } } })
end
case("nn.LeakyReLU nn.functional.leaky_relu", {
  run = function(o) return { nn.leaky_relu(x(9), o.slope), nn.LeakyReLU(o.slope)(x(9)) } end })
case("nn.PReLU", { run = function(o) return nn.PReLU(o.count, { init = o.init }).weight end,
  names = { num_parameters = "count" }, other = { num_parameters = 4 } })
case("nn.RReLU", { run = function(o) return nn.RReLU(o.low, o.high)(x(9)) end,
  names = { lower = "low", upper = "high" } })
case("nn.ELU nn.functional.elu", { run = function(o) return { nn.elu(x(9), o.alpha), nn.ELU(o.alpha)(x(9)) } end })
case("nn.CELU nn.functional.celu", { run = function(o) return { nn.celu(x(9), o.alpha), nn.CELU(o.alpha)(x(9)) } end })
case("nn.GELU", { run = function(o) return { nn.GELU(o)(x(9)), x(9):gelu(o) } end, other = { approximate = "tanh" } })
case("nn.Softplus nn.functional.softplus", { run = function(o)
  local v = dc.tensor { -1, 1, 20.5, 30 }:cast "f64"
  return { nn.softplus(v, o.beta, o.threshold), nn.Softplus(o.beta, o.threshold)(v) }
end })
case("nn.Hardtanh nn.functional.hardtanh", { run = function(o)
  return { nn.hardtanh(x(30), o.low, o.high), nn.Hardtanh(o.low, o.high)(x(30)) }
end })
case("nn.Softshrink nn.functional.softshrink", { run = function(o)
  return { nn.softshrink(x(30), o.lambda), nn.Softshrink(o.lambda)(x(30)) }
end })
case("nn.Hardshrink nn.functional.hardshrink", { run = function(o)
  return { nn.hardshrink(x(30) * 0.3, o.lambda), nn.Hardshrink(o.lambda)(x(30) * 0.3) }
end })
case("nn.GLU nn.functional.glu", { run = function(o) return { nn.glu(x(4, 4), o.axis), nn.GLU(o.axis)(x(4, 4)) } end,
  other = { dim = 1 } })

-- ---- norms ----

case("nn.LayerNorm", { run = function(o)
  local layer = nn.LayerNorm(4, o)
  return { layer(small(3, 4):cast "f32"), layer.weight and 1 or 0, layer.bias and 1 or 0 }
end })
case("nn.functional.layer_norm", { run = function(o) return nn.layer_norm(small(3, 4), 4, o) end })
case("nn.RMSNorm", { run = function(o)
  local layer = nn.RMSNorm(4, o)
  return { layer(small(3, 4):cast "f32"), layer.weight and 1 or 0 }
end, none = { eps = 2 ^ -23 } })
case("nn.functional.rms_norm", { run = function(o) return nn.rms_norm(small(3, 4):cast "f32", 4, o) end,
  none = { eps = 2 ^ -23 } })
case("nn.GroupNorm", { run = function(o)
  local layer = nn.GroupNorm(2, 4, o)
  return { layer(image(1) * 1e-2), layer.weight and 1 or 0 }
end, absent = "bias" })
case("nn.functional.group_norm", { run = function(o) return nn.group_norm(image(1) * 1e-2, 2, o) end })
case("nn.LocalResponseNorm nn.functional.local_response_norm", { run = function(o)
  return { nn.local_response_norm(image(1) * 30, 2, o), nn.LocalResponseNorm(2, o)(image(1) * 30) }
end })

-- ---- recurrence and attention ----

for _, name in ipairs { "RNNCell", "LSTMCell", "GRUCell" } do
  case("nn." .. name, { run = function(o) return { nn[name](3, 4, o)(dc.ones "f32[2, 3]") } end,
    other = { nonlinearity = "relu" } })
end
for _, name in ipairs { "RNN", "LSTM", "GRU" } do
  case("nn." .. name, { run = function(o)
    local y, state = nn[name](3, 4, o)(dc.ones "f32[5, 2, 3]")
    return { y, state }
  end, names = { num_layers = "layers", proj_size = { "proj_size", [0] = unset } }, other = { nonlinearity = "relu" },
    with = { dropout = { layers = 2 } } })
end
case("nn.functional.scaled_dot_product_attention", { run = function(o)
  return nn.scaled_dot_product_attention(x(2, 4, 3, 5), x(2, 4, 3, 5), x(2, 4, 3, 5), o)
end, absent = "enable_gqa" })
case("nn.MultiheadAttention", { run = function(o) return nn.MultiheadAttention(4, 2, o)(dc.rand "f32[3, 2, 4]") end,
  absent = "add_bias_kv add_zero_attn" })
local layer_options = { other = { activation = "gelu" } }
case("nn.TransformerEncoderLayer", { run = function(o)
  return nn.TransformerEncoderLayer(4, 2, o)(dc.rand "f32[3, 2, 4]" * 1e-2)
end, other = layer_options.other })
case("nn.TransformerDecoderLayer", { run = function(o)
  return nn.TransformerDecoderLayer(4, 2, o)(dc.rand "f32[3, 2, 4]" * 1e-2, dc.rand "f32[5, 2, 4]")
end, other = layer_options.other })
for _, name in ipairs { "Encoder", "Decoder" } do
  case("nn.Transformer" .. name, { run = function(o)
    o.layers, o.feedforward = 1, 8
    local net, y = nn["Transformer" .. name](4, 2, o), dc.rand "f32[3, 2, 4]"
    return name == "Decoder" and net(y, dc.rand "f32[5, 2, 4]") or net(y)
  end, none = { norm = false } })
end
case("nn.Transformer", { run = function(o)
  local net = nn.Transformer(o.size or 16, o.heads or 2, { encoder_layers = o.encoder_layers, eps = o.eps,
    decoder_layers = o.decoder_layers, feedforward = o.feedforward, dropout = o.dropout, bias = o.bias,
    activation = o.activation, norm_first = o.norm_first, batch_first = o.batch_first })
  return { net(dc.rand "f32[3, 2, 16]" * 1e-2, dc.rand "f32[2, 2, 16]"), #net.encoder.layers, #net.decoder.layers }
end, other = layer_options.other, absent = "d_model nhead" })

-- ---- losses ----

-- What the labels are for which a row does not count.
local function with_label(f)
  return function(o)
    local label = o.label or 4
    o.label = nil
    return f(dc.tensor({ 0, 3, label, 1 }, "i32"), o)
  end
end

local signs = dc.tensor { 1, -1, 1 }:cast "f64"
local of_one = { reduction = "sum" } -- another reduction

local function loss(peers, f, t)
  t = t or {}
  case(peers, { run = f, other = t.other or of_one, with = t.with, differs = t.differs })
end

local function labels(...)
  return dc.tensor({ ... }, "i32")
end

local ignored = { other = of_one, with = { ignore_index = { label = -100 } },
  differs = { ignore_index = { "none", "a label that is no class is an error, unless it is said to mean something" } } }
loss("nn.functional.cross_entropy nn.CrossEntropyLoss", with_label(function(y, o)
  return nn.cross_entropy(x(4, 5), y, o)
end), ignored)
loss("nn.functional.nll_loss nn.NLLLoss", with_label(function(y, o)
  return nn.nll_loss(x(4, 5):log_softmax(-1), y, o)
end), ignored)
loss("nn.functional.binary_cross_entropy_with_logits nn.BCEWithLogitsLoss", function(o)
  return nn.bce_with_logits(x(9), x(9):sigmoid(), o)
end)
loss("nn.functional.binary_cross_entropy nn.BCELoss", function(o)
  return nn.bce_loss(x(9):sigmoid(), x(9):gt(0):cast "f64", o)
end)
loss("nn.functional.mse_loss nn.MSELoss", function(o) return nn.mse_loss(x(9), small(9), o) end)
loss("nn.functional.l1_loss nn.L1Loss", function(o) return nn.l1_loss(x(9), small(9), o) end)
loss("nn.functional.huber_loss", function(o) return nn.huber_loss(x(9), small(9), o) end)
loss("nn.functional.smooth_l1_loss", function(o) return nn.smooth_l1_loss(x(9), small(9), o) end)
loss("nn.functional.kl_div nn.KLDivLoss", function(o)
  return nn.kl_div(x(4, 5):log_softmax(-1), x(4, 5):sigmoid(), o)
end)
loss("nn.functional.poisson_nll_loss", function(o) return nn.poisson_nll_loss(x(9):abs() * 1e-6, x(9):abs(), o) end,
  { with = { eps = { log_input = false } } })
loss("nn.functional.gaussian_nll_loss", function(o)
  return nn.gaussian_nll_loss(x(9), small(9), x(9):abs() * 1e-6, o)
end)
loss("nn.functional.cosine_embedding_loss", function(o)
  return nn.cosine_embedding_loss(x(3, 4), x(3, 4) + 0.5, -signs, o)
end)
loss("nn.functional.triplet_margin_loss", function(o)
  return nn.triplet_margin_loss(x(3, 4), small(3, 4), x(3, 4) * 0.5 + 0.1, o)
end)
loss("nn.functional.margin_ranking_loss", function(o) return nn.margin_ranking_loss(x(3), x(3) * 0.9, signs, o) end)
loss("nn.functional.hinge_embedding_loss", function(o) return nn.hinge_embedding_loss(x(3) * 0.1, signs, o) end)
loss("nn.functional.soft_margin_loss", function(o) return nn.soft_margin_loss(x(3), signs, o) end)
loss("nn.functional.multi_margin_loss", function(o) return nn.multi_margin_loss(x(2, 4), labels(1, 3), o) end)
loss("nn.functional.multilabel_soft_margin_loss", function(o)
  return nn.multilabel_soft_margin_loss(x(2, 4), x(2, 4):gt(0):cast "f64", o)
end)
loss("nn.functional.multilabel_margin_loss", function(o)
  return nn.multilabel_margin_loss(x(2, 4), dc.tensor({ { 1, 2, -1, -1 }, { 0, -1, -1, -1 } }, "i32"), o)
end)
loss("nn.functional.ctc_loss nn.CTCLoss", function(o)
  local frames = o.frames or 6
  o.frames = nil
  return nn.ctc_loss(x(6, 2, 4):log_softmax(-1), dc.tensor({ { 1, 2, 3 }, { 3, 3, 3 } }, "i32"), labels(6, frames),
    labels(3, 3), o)
end, { other = { reduction = "sum" }, with = { zero_infinity = { frames = 4 } } })

-- ---- initial values ----

case("nn.init.uniform_", { run = function(o) return nn.init.uniform("f32[3, 4]", o) end,
  names = { a = "low", b = "high" } })
case("nn.init.normal_", { run = function(o) return nn.init.normal("f32[3, 4]", o) end })
for _, name in ipairs { "xavier_uniform", "xavier_normal", "orthogonal" } do
  case("nn.init." .. name .. "_", { run = function(o) return nn.init[name]("f32[3, 4]", o) end })
end
for _, name in ipairs { "kaiming_uniform", "kaiming_normal" } do
  case("nn.init." .. name .. "_", { run = function(o) return nn.init[name]("f32[3, 4]", o) end,
    names = { a = "slope", nonlinearity = "gain" },
    with = { a = { gain = "leaky_relu" }, nonlinearity = { slope = 0 } },
    other = { mode = "fan_out", nonlinearity = "tanh" } })
end

-- ---- optimisers ----

-- What some steps make of a parameter, of which one gradient is larger than the others and all are small.
local function steps(class, scale)
  return function(o)
    local p = dc.param("f64[2, 3]", x(2, 3) * 1e-4)
    local opt, states = class({ p }, o), {}
    local step = dc.fn("step(by: f64[])", function(by) opt:step((p * (x(2, 3) + by * 0.1) * by):sum()) end)
    for i = 1, 8 do
      step(dc.tensor(((i == 2 and 1 or 0.01) + i * 1e-4) * (scale or 1e-6)):cast "f64")
    end
    for _, row in ipairs(opt:named_cells()) do
      states[row[1]] = row[1]:match "^average" and row[2] or nil
    end
    return { p, states }
  end
end

local momentum = { momentum = 0.9 }
case("optim.SGD", { run = steps(optim.SGD), with = { dampening = momentum, nesterov = momentum } })
case("optim.ASGD", { run = steps(optim.ASGD), names = { lambd = "lambd" }, other = { t0 = 1 } })
case("optim.Adagrad", { run = steps(optim.Adagrad), names = { initial_accumulator_value = "initial" } })
case("optim.Adadelta", { run = steps(optim.Adadelta) })
case("optim.RMSprop", { run = steps(optim.RMSprop) })
for _, name in ipairs { "Adam", "AdamW", "Adamax", "NAdam", "RAdam" } do
  case("optim." .. name, { run = steps(optim[name]), with = { decoupled_weight_decay = { weight_decay = 0.1 } } })
end
case("optim.Muon", { run = steps(optim.Muon, 1e-8), absent = "ns_coefficients" })
case("optim.LBFGS", { run = function(o)
  local p = dc.param("f64[2]", dc.tensor { -1.2, 1 }:cast "f64")
  local opt = optim.LBFGS({ p }, o)
  return { opt.lr, opt.max_iter, opt.max_eval, opt.tolerance_grad, opt.tolerance_change, opt.history_size,
    opt.line_search or "none" }
end, none = { max_eval = 25 }, names = { line_search_fn = "line_search" }, absent = "maximize" })
case("optim.swa_utils.get_ema_multi_avg_fn", { run = function(o)
  local p = dc.param("f32[2]", dc.ones "f32[2]")
  return optim.EMA({ p }, o.decay).decay
end })
case("optim.swa_utils.AveragedModel", { run = function() return 0 end, absent = "avg_fn multi_avg_fn use_buffers" })
case("amp.GradScaler", { run = function(o)
  local p = dc.param("f32[]", dc.tensor(1))
  local opt, scaler = optim.Adam { p }, optim.GradScaler(o)
  local step = dc.fn("step(by: f32[])", function(by) scaler:step(opt, p * by) end)
  local list = { scaler.scale:item() }
  step(dc.tensor(math.huge))
  list[2] = scaler.scale:item()
  for _ = 1, 2000 do
    step(dc.tensor(1))
  end
  list[3] = scaler.scale:item()
  return list
end, names = { init_scale = "scale" } })

-- ---- learning rates ----

local function rates(make)
  return function(o)
    local f, list = make(o), {}
    for i = 1, 12 do
      list[i] = f(i)
    end
    return list
  end
end

case("optim.lr_scheduler.StepLR", { run = rates(function(o)
  return schedules.step { lr = 1, every = 3, factor = o.factor }
end) })
case("optim.lr_scheduler.MultiStepLR", { run = rates(function(o)
  return schedules.step { lr = 1, after = { 3, 5 }, factor = o.factor }
end) })
case("optim.lr_scheduler.LinearLR", { run = rates(function()
  return schedules.linear { from = 1, to = 0, steps = 5 }
end), absent = "start_factor end_factor total_iters" })
case("optim.lr_scheduler.CosineAnnealingLR", { run = rates(function(o)
  return schedules.cosine { lr = 1, steps = 10, final = o.final }
end) })
case("optim.lr_scheduler.PolynomialLR", { run = rates(function(o)
  return schedules.polynomial { lr = 1, steps = 10, power = o.power }
end), absent = "total_iters" })
case("optim.lr_scheduler.OneCycleLR", { run = rates(function(o)
  o.lr, o.steps = 1, 12
  return schedules.one_cycle(o)
end), names = { anneal_strategy = { "anneal", cos = "cosine" } },
  other = { anneal_strategy = "linear", pct_start = 0.6 },
  absent = "cycle_momentum base_momentum max_momentum" })
case("optim.lr_scheduler.ReduceLROnPlateau", { run = function(o)
  o.lr = 1
  local plateau, list = schedules.reduce_on_plateau(o), {}
  local function measure(what, times)
    for _ = 1, times or 1 do
      list[#list + 1] = plateau:step(what)
    end
  end
  measure(5, 30)
  measure(4, 11)
  measure(4 * (1 - 1.2e-4)) -- better by a part that is a little more than the threshold
  measure(3, 11)
  measure(3 - 2e-4) -- by more than the threshold, which is not so much of 3
  return list
end, names = { threshold_mode = { "absolute", rel = false, abs = true } }, absent = "eps",
  other = { mode = "max", threshold_mode = "abs" } })

-- ---- batches ----

case("utils.data.DataLoader", { run = function(o)
  local list = {}
  for batch in data.set(dc.iota "i32[7]"):batches { size = o.size, shuffle = o.shuffle, last = o.last, seed = 1 } do
    list[#list + 1] = batch:clone()
  end
  return list
end, names = { batch_size = "size", drop_last = { "last", [false] = "keep" } }, none = { shuffle = false },
  with = { batch_size = { last = "keep" }, shuffle = { size = 3, last = "keep" }, drop_last = { size = 3 } },
  differs = { batch_size = { "none", "a batch of one row is hardly ever meant: it is slow and learns otherwise" },
    drop_last = { "none", "an error where rows are left over, which says what can be done with them" } } })

-- ---- what PyTorch has ----

local sections = { Networks = true, Layers = true, Activations = true, Normalisation = true,
  ["Recurrence and attention"] = true, Losses = true, ["Initial values"] = true, Optimisers = true,
  ["Learning rates"] = true }

-- What computes nothing of its own, by what its name begins with.
local bare = { "torch.nn.Module", "torch.ao.", "torch.optim.Optimizer.", "torch.optim.swa_utils.AveragedModel.",
  "torch.dequantize", "torch.optim.lr_scheduler.ReduceLROnPlateau.", "torch.utils.data.Subset",
  "torch.utils.data.IterableDataset", "torch.utils.data.random_split", "torch.amp.GradScaler." }

local function is_bare(name)
  for _, begin in ipairs(bare) do
    if name:sub(1, #begin) == begin then
      return true
    end
  end
end

---What PyTorch calls the counterparts of layers, losses, optimisers, schedules and batches.
function defaults.peers()
  local names, seen = {}, {}
  for _, row in ipairs(require "scripts.names".rows()) do
    for _, name in ipairs(row.PyTorch) do
      if not seen[name] and name ~= "-" and not is_bare(name)
        and (sections[row.section] or name:match "^torch%.utils%.data%.") then
        names[#names + 1], seen[name] = name, true
      end
    end
  end
  return names
end

local words = { ["true"] = true, ["false"] = false }
local none = {}

local function value_of(text)
  local list = text:match "^%[(.*)%]$"
  if list then
    local values = {}
    for part in list:gmatch "[^,]+" do
      values[#values + 1] = value_of(part)
    end
    return values
  elseif text == "none" then
    return none
  elseif words[text] ~= nil then
    return words[text]
  end
  return tonumber(text) or text:match "^'(.*)'$" or text
end

---The rows of a table: name -> list of { parameter, default }.
function defaults.read(path)
  local rows = {}
  for line in io.lines(path) do
    local name, rest = line:match "^(torch%.%S+) (.*)$"
    if name then
      rows[name] = {}
      for key, text in rest:gmatch "(%S+)=(%S+)" do
        table.insert(rows[name], { key, value_of(text) })
      end
    end
  end
  return rows
end

-- ---- to compare ----

-- Everything of a result, as a text.
local function text_of(v)
  if type(v) == "userdata" then
    return ("%s[%s] %s"):format(v.dtype, table.concat(v.shape, ","), text_of(v:totable()))
  elseif math.type(v) == "float" then
    return ("%a"):format(v)
  elseif type(v) ~= "table" then
    return tostring(v)
  end
  local keys, parts = {}, {}
  for key in pairs(v) do
    keys[#keys + 1] = key
  end
  table.sort(keys, function(a, b) return tostring(a) < tostring(b) end)
  for i, key in ipairs(keys) do
    parts[i] = ("%s=%s"):format(key, text_of(v[key]))
  end
  return "{" .. table.concat(parts, " ") .. "}"
end

local function result_of(c, options, with)
  local o = {}
  for _, t in ipairs { with or {}, options } do
    for key, value in pairs(t) do
      o[key] = value
    end
  end
  dc.seed(1)
  local ok, result = pcall(function() return text_of(c.run(o)) end)
  return ok, ok and result or tostring(result)
end

-- Options here that say what a value of a parameter says there.
local function options_of(c, key, value)
  local name = c.names and c.names[key] or named[key] or key
  if type(name) == "string" then
    return { [name] = value }
  elseif type(value) == "table" then
    local o = {}
    for i, part in ipairs(name) do
      o[part] = value[i]
    end
    return o
  end
  local ours = value
  if name.value then
    ours = name.value(value)
  elseif name[value] ~= nil and value ~= 1 then
    ours = name[value]
  end
  return { [name[1]] = ours ~= unset and ours or nil }
end

local function is_in(text, word)
  return (" " .. (text or "") .. " "):find(" " .. word .. " ", 1, true) ~= nil
end

local function other_than(value)
  if type(value) == "boolean" then
    return not value
  elseif math.type(value) == "integer" then
    return value + 1
  elseif type(value) == "number" then
    return value == 0 and 0.25 or value * 1.5
  elseif type(value) == "table" then
    return { other_than(value[1]), table.unpack(value, 2) }
  end
end

-- What is wrong with one parameter, or nil; second whether it was compared.
local function compare_one(c, key, theirs)
  if theirs == none then
    theirs = c.none and c.none[key]
    if theirs == nil then
      return not (nothing[key] or elsewhere[key] or c.differs and c.differs[key] or is_in(c.absent, key))
        and "what does None stand for?" or nil
    end
  end
  if elsewhere[key] or is_in(c.absent, key) or c.differs and c.differs[key] and theirs == nil then
    return nil
  end
  local with, differs = c.with and c.with[key], c.differs and c.differs[key]
  local ok, own = result_of(c, {}, with)
  if not ok and not differs then
    return "without options: " .. own
  end
  local given, same = result_of(c, options_of(c, key, theirs), with)
  if not given then
    return ("of %s: %s"):format(text_of(theirs), same)
  elseif differs then
    return same == own and "does not differ, other than said" or nil, true
  elseif same ~= own then
    return ("%s there; something else is the default here"):format(text_of(theirs)), true
  end
  local other = c.other and c.other[key]
  if other == nil then
    other = other_than(theirs)
  end
  if other == nil then
    return "needs another value"
  end
  local there, changed = result_of(c, options_of(c, key, other), with)
  if there and changed == own then
    return ("%s instead of %s makes no difference: nothing is compared"):format(text_of(other), text_of(theirs))
  end
  return nil, true
end

---Every default in a table beside what is done here: lines that say what is wrong, and how many were compared.
function defaults.compare(rows)
  local wrong, count, known = {}, 0, {}
  for _, c in ipairs(cases) do
    for _, name in ipairs(c.peers) do
      known[name] = true
      for _, pair in ipairs(rows[name] or {}) do
        local line, compared = compare_one(c, pair[1], pair[2])
        count = count + (compared and 1 or 0)
        if line then
          wrong[#wrong + 1] = ("%s %s: %s"):format(name, pair[1], line)
        end
      end
    end
  end
  for name, list in pairs(rows) do
    local some = false
    for _, pair in ipairs(list) do
      some = some or not elsewhere[pair[1]]
    end
    if some and not known[name] then
      wrong[#wrong + 1] = name .. ": no case"
    end
  end
  table.sort(wrong)
  return wrong, count
end

---Defaults that differ on purpose: { name there, parameter, default here, reason }.
function defaults.differences()
  local list = {}
  for _, c in ipairs(cases) do
    for key, pair in pairs(c.differs or {}) do
      for _, name in ipairs(c.peers) do
        list[#list + 1] = { name, key, pair[1], pair[2] }
      end
    end
  end
  return list
end

return defaults
