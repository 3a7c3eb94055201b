-- Optimisers: a matrix and a vector after 50 steps, beside torch.optim and, where it has none, beside the formulas of
-- the papers. The loss has curvatures that differ, so that each element goes its own way.
local dc = require "deepc"
local optim = require "deepc.optim"

local STEPS = 50

local function loss_of(a, x, b)
  return (a.scale * (x - a.centre) * (x - a.centre)):sum() / 2 + (b * 3):sin():sum() + (x:sum(1) * b):sum() / 10
end

local peer_loss = [[
def loss():
    return (scale * (w - centre) * (w - centre)).sum() / 2 + torch.sin(c * 3).sum() + (w.sum(0) * c).sum() / 10
]]

-- A typed function takes the steps.
local function train(make)
  return function(a)
    local x, b = dc.param(a.x, a.x), dc.param(a.b, a.b)
    local opt = make { x, b }
    local step = dc.fn("step()", function() opt:step(loss_of(a, x, b)) end)
    for _ = 1, STEPS do
      step()
    end
    return { x * 1, b * 1 }
  end
end

local args = { { x = "T[3, 4]", b = "T[4]", centre = "T[3, 4]", scale = { "T[3, 4]", low = 0.1, high = 3 } } }

-- Rounding of 50 steps adds up.
local tol = { f64 = 1e-11 }
-- torch.optim.NAdam keeps its product of momenta in f32, ASGD its rate, whatever its parameters are.
local kept_in_f32 = { tol = { f64 = 1e-8 } }

local function case(name, make, peer, more)
  local c = { name, run = train(make), args = args, grad = false, lazy_only = true, tol = tol,
    peer = peer_loss:gsub("^", "w, c = x.clone().requires_grad_(), b.clone().requires_grad_()\n") .. ([[
opt = %s
for i in range(%d):
    opt.zero_grad()
    loss().backward()
    opt.step()
result = w, c
]]):format(peer, STEPS) }
  for key, value in pairs(more or {}) do
    c[key] = value
  end
  return c
end

-- By update(p, g, memory, t), in Python's tensors.
local function formula(name, make, update, more)
  local c = case(name, make, "", more)
  c.peer = peer_loss:gsub("^", "w, c = x.clone().requires_grad_(), b.clone().requires_grad_()\n") .. update .. ([[

memory = {}, {}
for t in range(1, %d):
    g = torch.autograd.grad(loss(), (w, c))
    with torch.no_grad():
        for p, d, m in zip((w, c), g, memory):
            p.copy_(update(p, d, m, t))
result = w, c
]]):format(STEPS + 1)
  return c
end

local function class(name, options)
  return function(params) return optim[name](params, options) end
end

local lion = [[
def update(p, g, m, t):
    v = m.get("m", torch.zeros_like(p))
    m["m"] = 0.99 * v + 0.01 * g
    return p * (1 - 0.01 * 0.1) - 0.01 * torch.sign(0.9 * v + 0.1 * g)
]]

local lamb = [[
def update(p, g, m, t):
    m["m"] = 0.9 * m.get("m", 0) + 0.1 * g
    m["v"] = 0.999 * m.get("v", 0) + 0.001 * g * g
    u = m["m"] / (1 - 0.9 ** t) / (torch.sqrt(m["v"] / (1 - 0.999 ** t)) + 1e-6) + 0.1 * p
    return p - 0.02 * p.norm() / u.norm() * u
]]

-- torch.optim.Muon iterates in bf16; this is the same in the dtype of the parameter.
local muon = [[
def orthogonal(g):
    y = (g.T if g.shape[0] > g.shape[1] else g) / g.norm().clamp(min=1e-7)
    for _ in range(5):
        a = y @ y.T
        y = 3.4445 * y + (-4.7750 * a + 2.0315 * a @ a) @ y
    return y.T if g.shape[0] > g.shape[1] else y
def update(p, g, m, t):
    if p.ndim == 2:
        v = m["v"] = 0.95 * m.get("v", 0) + 0.05 * g
        return p * (1 - 0.02 * 0.1) - 0.02 * %s * orthogonal(0.95 * v + 0.05 * g)
    m["m"] = 0.9 * m.get("m", 0) + 0.1 * g
    m["v"] = 0.999 * m.get("v", 0) + 0.001 * g * g
    s = torch.sqrt(m["v"] / (1 - 0.999 ** t)) + 1e-8
    return p * (1 - 0.01 * 0.1) - 0.01 * m["m"] / (1 - 0.9 ** t) / s
]]

local list = {
  case("optim.SGD", class("SGD", { lr = 0.03 }), "torch.optim.SGD([w, c], lr=0.03)"),
  case("optim.SGD momentum", class("SGD", { lr = 0.03, momentum = 0.8, dampening = 0.3, weight_decay = 0.1 }),
    "torch.optim.SGD([w, c], lr=0.03, momentum=0.8, dampening=0.3, weight_decay=0.1)"),
  case("optim.SGD nesterov", class("SGD", { lr = 0.003, momentum = 0.9, nesterov = true, maximize = true,
    weight_decay = 0.1 }),
    "torch.optim.SGD([w, c], lr=0.003, momentum=0.9, nesterov=True, maximize=True, weight_decay=0.1)"),
  case("optim.Adam", class("Adam", { lr = 0.02 }), "torch.optim.Adam([w, c], lr=0.02)"),
  case("optim.Adam amsgrad", class("Adam", { lr = 0.02, beta1 = 0.8, beta2 = 0.9, eps = 1e-4, weight_decay = 0.1,
    amsgrad = true }),
    "torch.optim.Adam([w, c], lr=0.02, betas=(0.8, 0.9), eps=1e-4, weight_decay=0.1, amsgrad=True)"),
  case("optim.Adam decoupled", class("Adam", { lr = 0.02, weight_decay = 0.1, decoupled_weight_decay = true,
    maximize = true }),
    "torch.optim.Adam([w, c], lr=0.02, weight_decay=0.1, decoupled_weight_decay=True, maximize=True)"),
  case("optim.AdamW", class("AdamW", { lr = 0.02, weight_decay = 0.2, amsgrad = true }),
    "torch.optim.AdamW([w, c], lr=0.02, weight_decay=0.2, amsgrad=True)"),
  case("optim.Adamax", class("Adamax", { lr = 0.02, weight_decay = 0.1 }),
    "torch.optim.Adamax([w, c], lr=0.02, weight_decay=0.1)"),
  case("optim.NAdam", class("NAdam", { lr = 0.02, weight_decay = 0.1 }),
    "torch.optim.NAdam([w, c], lr=0.02, weight_decay=0.1)", kept_in_f32),
  case("optim.NAdam decoupled", class("NAdam", { lr = 0.02, weight_decay = 0.1, momentum_decay = 0.1,
    decoupled_weight_decay = true }),
    "torch.optim.NAdam([w, c], lr=0.02, weight_decay=0.1, momentum_decay=0.1, decoupled_weight_decay=True)",
    kept_in_f32),
  case("optim.RAdam", class("RAdam", { lr = 0.02, weight_decay = 0.1 }),
    "torch.optim.RAdam([w, c], lr=0.02, weight_decay=0.1)"),
  case("optim.RAdam decoupled", class("RAdam", { lr = 0.02, beta2 = 0.7, weight_decay = 0.1,
    decoupled_weight_decay = true }),
    "torch.optim.RAdam([w, c], lr=0.02, betas=(0.9, 0.7), weight_decay=0.1, decoupled_weight_decay=True)"),
  -- Near the minimum steps are lr / eps times the gradient: with a small eps they would grow, and roundings with them.
  case("optim.RMSprop", class("RMSprop", { lr = 0.01, alpha = 0.9, eps = 0.1, weight_decay = 0.1 }),
    "torch.optim.RMSprop([w, c], lr=0.01, alpha=0.9, eps=0.1, weight_decay=0.1)"),
  case("optim.RMSprop centered", class("RMSprop", { lr = 0.005, eps = 1e-3, momentum = 0.5, centered = true }),
    "torch.optim.RMSprop([w, c], lr=0.005, eps=1e-3, momentum=0.5, centered=True)"),
  case("optim.Adagrad", class("Adagrad", { lr = 0.1, lr_decay = 0.05, weight_decay = 0.1, initial = 0.2 }),
    "torch.optim.Adagrad([w, c], lr=0.1, lr_decay=0.05, weight_decay=0.1, initial_accumulator_value=0.2)"),
  case("optim.Adadelta", class("Adadelta", { lr = 2, rho = 0.8, weight_decay = 0.1 }),
    "torch.optim.Adadelta([w, c], lr=2, rho=0.8, weight_decay=0.1)"),
  case("optim.ASGD", class("ASGD", { lr = 0.05, lambd = 0.01, t0 = 20, weight_decay = 0.1 }),
    "torch.optim.ASGD([w, c], lr=0.05, lambd=0.01, t0=20, weight_decay=0.1)", kept_in_f32),
  formula("optim.Lion", class("Lion", { lr = 0.01, weight_decay = 0.1 }), lion),
  formula("optim.LAMB", class("LAMB", { lr = 0.02, weight_decay = 0.1 }), lamb),
  formula("optim.Muon", class("Muon", { lr = 0.02, adam_lr = 0.01 }), muon:format "1",
    { differs = "torch.optim.Muon iterates in bf16 and takes matrices alone" }),
  formula("optim.Muon match_rms_adamw", class("Muon", { lr = 0.02, adam_lr = 0.01, adjust = "match_rms_adamw" }),
    muon:format "0.2 * 4 ** 0.5", { differs = "as optim.Muon" }),
  case("optim groups", function(params)
    return optim.AdamW({ { params = { params[1] }, weight_decay = 0.3 }, { params = { params[2] }, lr = 0.05 } },
      { lr = 0.01, weight_decay = 0.1, clip_norm = 0.5 })
  end, [[torch.optim.AdamW([{"params": [w], "weight_decay": 0.3}, {"params": [c], "lr": 0.05}], lr=0.01,
    weight_decay=0.1)
opt.register_step_pre_hook(lambda *_: torch.nn.utils.clip_grad_norm_([w, c], 0.5) and None)]]),
  case("optim clip_value", class("SGD", { lr = 0.05, clip_value = 0.3 }), [[torch.optim.SGD([w, c], lr=0.05)
opt.register_step_pre_hook(lambda *_: torch.nn.utils.clip_grad_value_([w, c], 0.3))]]),
}

-- Rosenbrock's valley, with a chain of variables; five calls of ten iterations at most.
local function valley(x)
  local a, b = x[{ { 1, -2 } }], x[{ { 2, -1 } }]
  return (20 * (b - a * a) ^ 2 + (1 - a) ^ 2):sum()
end

local function lbfgs(name, options, python)
  list[#list + 1] = { name, grad = false, lazy_only = true, args = { { x = "T[6]" } },
    -- Points far along the valley depend on each rounding before.
    tol = { f32 = 5e-5, f64 = 1e-10 },
    run = function(a)
      local x = dc.param(a.x, a.x)
      local opt = optim.LBFGS({ x }, options)
      local objective = opt:objective(("objective() -> %s[]"):format(a.x.dtype), function() return valley(x) end)
      for i = 1, 5 do
        if i % 2 == 1 then
          opt:step(objective)
        else
          opt:step(function() return valley(x) end)
        end
      end
      return { x * 1 }
    end,
    peer = ([[
w = x.clone().requires_grad_()
opt = torch.optim.LBFGS([w], max_iter=10, %s)
def closure():
    opt.zero_grad()
    a, b = w[:-1], w[1:]
    loss = (20 * (b - a * a) ** 2 + (1 - a) ** 2).sum()
    loss.backward()
    return loss
for i in range(5):
    opt.step(closure)
result = w
]]):format(python) }
end

lbfgs("optim.LBFGS strong_wolfe", { max_iter = 10, history_size = 4, line_search = "strong_wolfe" },
  'history_size=4, line_search_fn="strong_wolfe"')
lbfgs("optim.LBFGS", { max_iter = 10, lr = 0.1, history_size = 3 }, "lr=0.1, history_size=3")

-- Averages of ten updates.
local function average(name, make, python)
  list[#list + 1] = { name, grad = false, args = { { x = "T[5]" } }, lazy_only = true,
    run = function(a)
      local x = dc.param(a.x, a.x)
      local averages = make { x }
      local update = dc.fn("update()", function()
        x:set(x * 0.9 + 0.1)
        averages:update()
      end)
      for _ = 1, 10 do
        update()
      end
      return averages:averaged(function() return { x * 1 } end)
    end,
    peer = ([[
net = torch.nn.ParameterList([torch.nn.Parameter(x.clone())])
averages = torch.optim.swa_utils.AveragedModel(net%s)
with torch.no_grad():
    for i in range(10):
        net[0].copy_(net[0] * 0.9 + 0.1)
        averages.update_parameters(net)
result = averages.module[0]
]]):format(python) }
end

average("optim.EMA", function(params) return optim.EMA(params, 0.8) end,
  ", multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.8)")
average("optim.EMA with a warm-up", function(params) return optim.EMA(params, 0.4, { warmup = true }) end,
  ", avg_fn=lambda a, p, n: a + (p - a) * (1 - min(0.4, (float(n) + 2) / (float(n) + 11)))")
average("optim.SWA", optim.SWA, "")

return list
