-- Learning rates of 60 steps beside torch.optim.lr_scheduler.
local dc = require "deepc"
local schedules = require "deepc.schedules"

local STEPS = 60

local function case(name, rate, python)
  return { name, dtypes = { "f64" }, grad = false, args = { {} }, lazy_only = true,
    run = function()
      local list = {}
      for i = 1, STEPS do
        list[i] = rate(i)
      end
      return dc.tensor(list, "f64")
    end,
    peer = ([[
p = torch.nn.Parameter(torch.zeros(1))
opt = torch.optim.SGD([p], lr=0.5)
S = torch.optim.lr_scheduler
schedule = %s
rates = []
for i in range(%d):
    rates.append(opt.param_groups[0]["lr"])
    opt.step()
    schedule.step()
result = torch.tensor(rates, dtype=torch.float64)
]]):format(python, STEPS) }
end

-- A measure for each step: down, then noise.
local function measure(i)
  return i < 8 and 5 - 0.5 * i or 1 + 0.3 * math.cos(7 * i)
end

local function plateau(name, options, python)
  local c = case(name, nil, "S.ReduceLROnPlateau(opt, " .. python .. ")")
  c.peer = "import math\n" .. c.peer:gsub("schedule%.step%(%)",
    "k = i + 1; schedule.step(5 - 0.5 * k if k < 8 else 1 + 0.3 * math.cos(7 * k))")
  c.run = function()
    local p, list = schedules.reduce_on_plateau(options), {}
    for i = 1, STEPS do
      list[i] = p.lr
      p:step(options.mode == "max" and measure(i) or measure(i))
    end
    return dc.tensor(list, "f64")
  end
  return c
end

local half = schedules.constant(0.5)

return {
  case("schedules.step", schedules.step { lr = 0.5, every = 7, factor = 0.3 }, "S.StepLR(opt, 7, gamma=0.3)"),
  case("schedules.step after", schedules.step { lr = 0.5, after = { 5, 20 } }, "S.MultiStepLR(opt, [5, 20])"),
  case("schedules.exponential", schedules.exponential { lr = 0.5, factor = 0.9 }, "S.ExponentialLR(opt, 0.9)"),
  case("schedules.linear", schedules.linear { from = 0.1, to = 0.5, steps = 9 },
    "S.LinearLR(opt, start_factor=0.2, total_iters=9)"),
  case("schedules.polynomial", schedules.polynomial { lr = 0.5, steps = 40, power = 2.5 },
    "S.PolynomialLR(opt, total_iters=40, power=2.5)"),
  case("schedules.cosine", schedules.cosine { lr = 0.5, steps = 59, final = 0.1 },
    "S.CosineAnnealingLR(opt, 59, eta_min=0.1)"),
  case("schedules.cosine restart", schedules.cosine { lr = 0.5, steps = 13, restart = true, final = 0.01 },
    "S.CosineAnnealingWarmRestarts(opt, 13, eta_min=0.01)"),
  case("schedules.cosine grow", schedules.cosine { lr = 0.5, steps = 6, restart = true, grow = 2 },
    "S.CosineAnnealingWarmRestarts(opt, 6, T_mult=2)"),
  case("schedules.one_cycle", schedules.one_cycle { lr = 0.5, steps = 61 }, "S.OneCycleLR(opt, 0.5, total_steps=61)"),
  case("schedules.one_cycle linear", schedules.one_cycle { lr = 0.5, steps = 61, pct_start = 0.25, anneal = "linear",
    div_factor = 10, final_div_factor = 50, three_phase = true },
    'S.OneCycleLR(opt, 0.5, total_steps=61, pct_start=0.25, anneal_strategy="linear", div_factor=10,\n' ..
    "    final_div_factor=50, three_phase=True)"),
  case("schedules.sequence", schedules.sequence { { 4, schedules.constant(0.05) }, { 20,
    schedules.exponential { lr = 0.5, factor = 0.8 } }, schedules.step { lr = 0.5, every = 10 } },
    "S.SequentialLR(opt, [S.ConstantLR(opt, 0.1, 1000), S.ExponentialLR(opt, 0.8), S.StepLR(opt, 10)], [4, 24])"),
  case("schedules.chained", schedules.chained { half, schedules.sequence { { 4, schedules.constant(0.1) },
    schedules.constant(1) }, schedules.exponential { lr = 1, factor = 0.9 } },
    "S.ChainedScheduler([S.ConstantLR(opt, 0.1, 4), S.ExponentialLR(opt, 0.9)])"),
  plateau("schedules.reduce_on_plateau", { lr = 0.5, factor = 0.7, patience = 2, cooldown = 3, min_lr = 0.05 },
    "factor=0.7, patience=2, cooldown=3, min_lr=0.05"),
  plateau("schedules.reduce_on_plateau max", { lr = 0.5, patience = 4, factor = 0.5, mode = "max", absolute = true,
    threshold = 0.01 }, 'mode="max", factor=0.5, patience=4, threshold=0.01, threshold_mode="abs"'),
}
