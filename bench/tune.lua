-- What dc.tune finds: kernels and steps of the other benchmarks, tuned beside the rules.
--
--   scripts/bench tune [--seconds 8] [--rounds 21] [--case TEXT]
--
-- Each case is two equal functions, compiled before anything is tuned; one of them is. Then both are called in turns,
-- so many times that a turn takes some 20 ms. A line: milliseconds of a call's kernels by the rules and tuned (medians
-- over the rounds), the ratio, what the search itself said, kernels with another schedule, schedules tried, seconds.
-- Geometric means of the ratios come last; that of the cases which keep their schedules tells how noisy the machine
-- is. DEEPC_CACHE should be off: scripts/bench sees to that.
local dc = require "deepc"
local nn, optim = require "deepc.nn", require "deepc.optim"

local options = { seconds = 8, rounds = 21, case = "" }
for i = 1, #arg, 2 do
  local name = arg[i]:match "^%-%-(%w+)$"
  assert(name and options[name] and arg[i + 1], "usage: scripts/bench tune [--seconds N] [--rounds N] [--case TEXT]")
  options[name] = math.type(options[name]) and assert(tonumber(arg[i + 1])) or arg[i + 1]
end

-- ---- cases -----------------------------------------------------------------------------------

local function of(signature, body)
  return function()
    local args = {}
    for type in signature:gmatch ": ([^%->(]-%])" do args[#args + 1] = dc.rand(type) end
    return dc.fn("f" .. signature, body), args
  end
end

local function product(m, k, n)
  return of(("(a: f32[%d, %d], b: f32[%d, %d]) -> f32[%d, %d]"):format(m, k, k, n, m, n),
    function(a, b) return a:matmul(b) end)
end

local function turned(m, k, n)
  return of(("(a: f32[%d, %d], b: f32[%d, %d]) -> f32[%d, %d]"):format(m, k, n, k, m, n),
    function(a, b) return a:matmul(b:transpose()) end)
end

local function conv(b, size, from, to)
  return of(("(a: f32[%d, %d, %d, %d], w: f32[%d, %d, 3, 3])"):format(b, from, size, size, to, from),
    function(a, w) return dc.conv2d(a, w, { padding = 1 }) end)
end

local function training(batch, sizes)
  return function()
    local layers = {}
    for i = 2, #sizes do
      layers[#layers + 1] = nn.Linear(sizes[i - 1], sizes[i])
      if i < #sizes then layers[#layers + 1] = nn.ReLU() end
    end
    local net = nn.Sequential(layers)
    local opt = optim.Adam(net:parameters(), { lr = 1e-3 })
    local step = dc.fn(("step(x: f32[%d, %d], y: i32[%d]) -> f32[]"):format(batch, sizes[1], batch), function(x, y)
      local loss = nn.cross_entropy(net(x), y)
      opt:step(loss)
      return loss
    end)
    return step, { dc.rand(("f32[%d, %d]"):format(batch, sizes[1])),
      dc.iota(("i32[%d]"):format(batch)) % sizes[#sizes] }
  end
end

local cases = {
  { "product 64 x 784 x 128", product(64, 784, 128) },
  { "product 100 x 300 x 50", product(100, 300, 50) },
  { "product 256 x 256 x 256", product(256, 256, 256) },
  { "product 512 x 512 x 512", product(512, 512, 512) },
  { "product 1024 x 1024 x 1024", product(1024, 1024, 1024) },
  { "product 37 x 512 x 384", product(37, 512, 384) },
  { "product 8 x 1024 x 1024", product(8, 1024, 1024) },
  { "product 1000 x 64 x 1000", product(1000, 64, 1000) },
  { "product by rows 256 x 256 x 256", turned(256, 256, 256) },
  { "product by rows 8 x 1024 x 1024", turned(8, 1024, 1024) },
  { "conv 32 x 28 x 28, 1 to 32", conv(32, 28, 1, 32) },
  { "conv 16 x 16 x 16, 64 to 64", conv(16, 16, 64, 64) },
  { "sum of rows 512 x 1024", of("(a: f32[512, 1024])", function(a) return a:sum(2) end) },
  { "sum of columns 512 x 1024", of("(a: f32[512, 1024])", function(a) return a:sum(1) end) },
  { "softmax 512 x 1024", of("(a: f32[512, 1024])", function(a) return a:softmax(2) end) },
  { "layer norm 512 x 768", of("(a: f32[512, 768])", function(a) return nn.layer_norm(a, 768) end) },
  { "gelu 2^18", of("(a: f32[262144])", function(a) return a:gelu() end) },
  { "transpose 1024 x 1000", of("(a: f32[1024, 1000])", function(a) return a:transpose() + 1 end) },
  { "step of an MLP, 64 x 784-128-10", training(64, { 784, 128, 10 }) },
  { "step of an MLP, 256 x 784-512-512-10", training(256, { 784, 512, 512, 10 }) },
}

-- ---- measuring -------------------------------------------------------------------------------

-- Milliseconds that the kernels of f took so far, since it was first asked.
local function spent(f)
  local ms = 0
  for _, k in ipairs(f:kernels()) do ms = ms + k.ms end
  return ms
end

-- Of a call: its kernels, without what is between them.
local function turn(f, args, calls)
  local before, last = spent(f), nil
  for _ = 1, calls do
    if last then last:close() end
    last = f(table.unpack(args))
  end
  last:close()
  return (spent(f) - before) / calls
end

local function median(list)
  table.sort(list)
  return list[(#list + 1) // 2]
end

local function compare(rules, tuned, args_rules, args_tuned)
  local calls = math.max(1, math.min(2000, math.floor(20 / turn(rules, args_rules, 3))))
  local a, b = {}, {}
  turn(tuned, args_tuned, calls)
  for i = 1, options.rounds do
    local first = i % 2 == 0
    if first then a[i] = turn(rules, args_rules, calls) end
    b[i] = turn(tuned, args_tuned, calls)
    if not first then a[i] = turn(rules, args_rules, calls) end
  end
  return median(a), median(b)
end

print(("%-38s %10s %10s %7s %7s  %s"):format("", "rules ms", "tuned ms", "ratio", "search", "kernels, tried, seconds"))
local changed, kept = { log = 0, n = 0 }, { log = 0, n = 0 }
for _, case in ipairs(cases) do
  if case[1]:find(options.case, 1, true) then
    local rules, args_rules = case[2]()
    local tuned, args_tuned = case[2]()
    rules(table.unpack(args_rules))
    tuned(table.unpack(args_tuned))
    local rows = dc.tune(tuned, { seconds = options.seconds })
    local before, after, found, tried = 0, 0, 0, 0
    for _, k in ipairs(rows) do
      before, after = before + k.rules_ms * k.launches, after + k.best_ms * k.launches
      found, tried = found + (k.tuned and 1 or 0), tried + k.tried
    end
    local a, b = compare(rules, tuned, args_rules, args_tuned)
    local mean = found > 0 and changed or kept
    mean.log, mean.n = mean.log + math.log(a / b), mean.n + 1
    print(("%-38s %10.4f %10.4f %7.3f %7.3f  %d of %d, %d, %.1f"):format(case[1], a, b, a / b,
      before / after, found, #rows, tried, rows.seconds))
    io.stdout:flush()
    dc.tune(tuned, { forget = true }) -- the next case begins with the rules
  end
end
local function tell(what, mean)
  if mean.n > 0 then print(("geometric mean of %d cases%s: %.3f"):format(mean.n, what, math.exp(mean.log / mean.n))) end
end
tell("", { log = changed.log + kept.log, n = changed.n + kept.n })
tell(" with other schedules", changed)
tell(" whose schedules stay", kept)
