-- L-BFGS: directions from the last changes of the gradient, steps by a line search on the host.
--
-- Parameters, gradients, directions are one vector each. The history is a ring of rows in two states, which one typed
-- function changes and reads, however many rows there are. The host reads three numbers for each evaluation.

local dc = require "deepc"
local optim = require "deepc.optim.class"
local _, core = ...

local class = core.optim

local OP = "optim.LBFGS"
local SEARCH = 25 -- evaluations of a line search, whatever max_eval leaves: PyTorch's max_ls

---L-BFGS (Nocedal, 1980; Liu and Nocedal, 1989) for losses that are the same at each evaluation: whole data
---sets, small problems. As torch.optim.LBFGS: `step` takes up to `max_iter` iterations, none after `max_eval`
---evaluations (1.25 max_iter unless given), and ends before where no element of the gradient is
---above `tolerance_grad`, or step or loss change by less than `tolerance_change`. `history_size` is the number
---of changes that are kept. `line_search = "strong_wolfe"` looks for steps that satisfy the strong Wolfe
---conditions, with up to 25 evaluations for each; without one all steps are `lr`.
---
---    optim.LBFGS(net:parameters(), { line_search = "strong_wolfe" })
---@class deepc.optim.LBFGS
---@field lr deepc.Cell 1
---@field params deepc.Cell[]
---@field max_iter integer 20
---@field max_eval integer
---@field tolerance_grad number 1e-7
---@field tolerance_change number 1e-9
---@field history_size integer 100
---@field line_search "strong_wolfe"?
---@overload fun(params: deepc.Cell[], options?: table<string, number|string>): deepc.optim.LBFGS
local LBFGS = {}

---A loss and its gradient as a vector: what opt:objective makes.
---@class deepc.optim.Objective
local Objective = { __name = "deepc.optim.Objective" }

local function check_self(op, self)
  if type(self) ~= "table" or not rawget(self, "_own") or not rawget(self, "_own").rows then
    core.fail("ARG", op, "an optim.LBFGS is needed, not " .. core.describe(self),
      ("with a colon: opt:%s(...)"):format(op))
  end
  return rawget(self, "_own")
end

-- ---- vectors ----

local function flatten(list)
  local parts = {}
  for i, x in ipairs(list) do
    parts[i] = x:reshape(-1)
  end
  return (#parts == 1 and parts[1] or dc.concat(parts, 1))
end

-- The gradient of a loss by all parameters, zeros for frozen ones.
local function gradient(own, loss)
  local trained, index, list = {}, {}, {}
  for i, p in ipairs(own.params) do
    list[i] = dc.zeros(p)
    if core.kind(p) == "param" then
      trained[#trained + 1], index[#index + 1] = p, i
    end
  end
  if #trained == 0 then
    core.fail("ARG", "step", "every parameter is frozen", "net:unfreeze()")
  end
  for k, g in ipairs(dc.grad(loss, trained)) do
    list[index[k]] = g
  end
  return flatten(list)
end

local function check_loss(own, loss)
  if not core.kind(loss) then
    core.fail("ARG", "step", "the function returns " .. core.describe(loss) .. ", the loss is needed",
      "opt:step(function() return nn.mse_loss(net(x), y) end)")
  elseif loss.dtype ~= own.dtype then
    core.fail("DTYPE", "step", ("the loss is %s, the parameters are %s"):format(core.describe(loss), own.dtype),
      ('loss:cast "%s"'):format(own.dtype), "loss", loss)
  end
  return loss
end

-- ---- typed functions ----

-- The direction for gradient g, and { g . d, max |d|, sum |g| }. The recursion over the history goes from its newest
-- row to the oldest, and back.
local function make_direction(own)
  local t = ("%s[%d]"):format(own.dtype, own.size)
  local rows, s, y, rho = own.rows, own.steps, own.changes, own.rho
  return dc.fn(("direction(g: %s) -> %s[3]"):format(t, own.dtype), function(g)
    local change, step = g - own.before, own.d * own.t
    local product = (change * step):sum()
    local kept = product:gt(1e-10)
    local head = own.head
    s:set(s:put(head, dc.where(kept, step, s:take(head))))
    y:set(y:put(head, dc.where(kept, change, y:take(head))))
    rho:set(rho:put(head, dc.where(kept, 1 / dc.where(kept, product, 1), rho:take(head))))
    local scale = dc.where(kept, product / dc.where(kept, (change * change):sum(), 1), own.scale)
    local last = head
    local after = dc.where(kept, (head + 1) % rows, head)
    local count = dc.where(kept, (own.count + 1):minimum(rows), own.count)
    local newest = dc.where(kept, last, (last + (rows - 1)) % rows)
    own.head:set(after)
    own.count:set(count)
    own.scale:set(scale)

    local down = dc.fori(count, function(i, c)
      local k = (newest - i + rows) % rows
      local a = rho:take(k) * (s:take(k) * c.q):sum()
      return { q = c.q - a * y:take(k), a = c.a:put(k, a) }
    end, { q = -g, a = dc.zeros(rho) })
    local d = dc.fori(count, function(i, r)
      local k = (newest - (count - 1 - i) + rows) % rows
      local b = rho:take(k) * (y:take(k) * r):sum()
      return r + s:take(k) * (down.a:take(k) - b)
    end, down.q * scale)
    own.before:set(g)
    own.d:set(d)
    own.iterations:set(own.iterations + 1)
    return dc.stack { (g * d):sum(), d:abs():max(), g:abs():sum() }
  end)
end

local function make_functions(own)
  own.direction = make_direction(own)
  own.begin = dc.fn("begin()", function() own.start:set(flatten(own.params)) end)
  own.move = dc.fn(("move(t: %s[])"):format(own.dtype), function(t)
    local x, at = own.start + own.d * t, 0
    for _, p in ipairs(own.params) do
      local n = #p:reshape(-1)
      p:set(x[{ { at + 1, at + n } }]:reshape(p.shape))
      at = at + n
    end
    own.t:set(t)
  end)
  own.measure = dc.fn(("measure(g: %s[%d]) -> %s[2]"):format(own.dtype, own.size, own.dtype), function(g)
    return dc.stack { (g * own.d):sum(), g:abs():max() }
  end)
end

-- ---- making one ----

local defaults = { lr = 1, max_iter = 20, max_eval = 25, tolerance_grad = 1e-7, tolerance_change = 1e-9,
  history_size = 100 }

local function check_options(options)
  core.options(OP, options, "lr", "max_iter", "max_eval", "tolerance_grad", "tolerance_change", "history_size",
    "line_search")
  local o = {}
  for key, value in pairs(defaults) do
    o[key] = options and options[key] or value
  end
  o.max_eval = options and options.max_eval or o.max_iter * 5 // 4
  for _, key in ipairs { "max_iter", "max_eval", "history_size" } do
    if math.type(o[key]) ~= "integer" or o[key] < 1 then
      core.fail("ARG", OP, ("%s is a positive integer, not %s"):format(key, core.shown(o[key])))
    end
  end
  for _, key in ipairs { "tolerance_grad", "tolerance_change" } do
    if type(o[key]) ~= "number" or o[key] ~= o[key] or o[key] < 0 then
      core.fail("ARG", OP, ("%s is a number from 0, not %s"):format(key, core.shown(o[key])))
    end
  end
  class.check_setting(OP, "lr", o.lr)
  o.line_search = options and options.line_search
  if o.line_search ~= nil and o.line_search ~= "strong_wolfe" then
    core.fail("ARG", OP, ('line_search is "strong_wolfe", not %s'):format(core.shown(o.line_search)))
  end
  return o
end

local function check_params(params)
  if class.plain(params) and class.plain(params[1]) then
    core.fail("ARG", OP, "groups are not taken: all parameters have one direction", OP .. "(net:parameters())")
  end
  class.check_params(OP, params, "")
  for i, p in ipairs(params) do
    if p.dtype ~= params[1].dtype or p.dtype ~= "f32" and p.dtype ~= "f64" then
      core.fail("DTYPE", OP, ("parameter %d is %s; all are f32, or all f64"):format(i, core.describe(p)), nil,
        "parameter", p)
    end
  end
end

local meta = { __name = OP, _versioned = true }

local function new(params, options)
  check_params(params)
  local o = check_options(options)
  local own = { name = "lbfgs", params = params, dtype = params[1].dtype, cells = {}, rows = o.history_size,
    options = o, size = 0 }
  for _, p in ipairs(params) do
    own.size = own.size + #p:reshape(-1)
  end
  local vector, matrix = ("%s[%d]"):format(own.dtype, own.size), ("%s[%d, %d]"):format(own.dtype, own.rows, own.size)
  local function state(field, name, t, init)
    own[field] = class.new_state(own, name, "lbfgs." .. name, t, init)
  end
  state("lr", "lr", own.dtype .. "[]", o.lr)
  state("d", "direction", vector)
  state("before", "gradient", vector)
  state("steps", "steps", matrix)
  state("changes", "changes", matrix)
  state("rho", "rho", ("%s[%d]"):format(own.dtype, own.rows))
  state("scale", "scale", own.dtype .. "[]", 1)
  state("t", "rate", own.dtype .. "[]")
  state("count", "count", "i32[]")
  state("head", "head", "i32[]")
  state("iterations", "iterations", "i32[]")
  own.start = dc.state(vector, 0, { device = params[1].device })
  make_functions(own)
  return setmetatable({ _own = own }, meta)
end

function meta.__index(self, key)
  local own = rawget(self, "_own")
  if key == "lr" or key == "params" then
    return own[key]
  end
  local v = own.options[key]
  if v == nil then
    v = LBFGS[key]
  end
  return v
end

function meta.__newindex(self, key, value)
  local own = rawget(self, "_own")
  if key ~= "lr" then
    core.fail("FIELD", nil, ("%s has no setting '%s' to assign"):format(OP, tostring(key)), "opt.lr is one")
  end
  class.check_setting(OP, key, value)
  own.lr:set(value)
end

function meta.__tostring()
  return OP
end

-- ---- steps ----

---A typed function for :step whose arguments change from step to step: it returns the loss, and its gradient
---is computed beside it, compiled once.
---
---    local f = opt:objective("f(x: f32[n, 2]) -> f32[]", function(x) return net(x):square():mean() end)
---
---Errors: as dc.fn.
---@param signature string
---@param body fun(...: any): deepc.Tensor
---@return deepc.optim.Objective
function LBFGS:objective(signature, body)
  local own = check_self("objective", self)
  if type(signature) ~= "string" then
    core.fail("ARG", "objective", "a signature is needed, not " .. core.describe(signature),
      'opt:objective("loss(x: f32[n]) -> f32[]", function(x) ... end)')
  end
  local inner = dc.fn(signature, body)
  local names = {}
  local parameters = signature:match "^[^(]*(%b())"
  for name in (parameters:sub(2, -2):gsub("%b{}", ""):gsub("%b[]", "") .. ","):gmatch "%s*([%a_][%w_]*)%s*%??[^,]*," do
    names[#names + 1] = name
  end
  local call = load(("local inner, done = ... return function(%s) return done(inner(%s)) end"):format(
    table.concat(names, ", "), table.concat(names, ", ")), "=deepc/objective", "t", {})(inner, function(loss)
    check_loss(own, loss)
    return loss, gradient(own, loss)
  end)
  local outer = signature:gsub("%->.*$", "") .. (" -> %s[], %s[%d]"):format(own.dtype, own.dtype, own.size)
  return setmetatable({ call = dc.fn(outer, call), own = own }, Objective)
end

-- The loss and gradient where the parameters are now.
local function evaluate(own, f, ...)
  if getmetatable(f) == Objective then
    return f.call(...)
  end
  local loss = check_loss(own, f(...))
  return loss, gradient(own, loss)
end

local function check_function(own, f)
  if getmetatable(f) == Objective then
    if f.own ~= own then
      core.fail("ARG", "step", "the objective is of another optimiser")
    end
  elseif type(f) ~= "function" then
    core.fail("ARG", "step", "a function that returns the loss is needed, not " .. core.describe(f),
      type(f) == "userdata" and not core.kind(f) and "opt:objective(signature, body) makes a typed one"
      or "opt:step(function() return nn.mse_loss(net(x), y) end)")
  end
end

---Takes up to max_iter iterations. f(...) returns the loss for the parameters as they are: a function of Lua,
---evaluated lazily, or what opt:objective made. Outside typed functions.
---
---    opt:step(function() return nn.mse_loss(net(x), y) end)
---
---Errors: DC0101 for what is no function, DC0502 where its loss is the result of a typed function.
---@param f (fun(...: any): deepc.Tensor)|deepc.optim.Objective
---@param ... any what it is called with
---@return deepc.Tensor # the loss before the step
function LBFGS:step(f, ...)
  local own = check_self("step", self)
  core.refuse_tracing("opt:step of optim.LBFGS")
  check_function(own, f)
  local o, args, lr = own.options, table.pack(...), own.lr:item()
  local evaluations = 0

  -- The point at a step t along the direction.
  local function at(t)
    own.move(t)
    local loss, g = evaluate(own, f, table.unpack(args, 1, args.n))
    local measured = own.measure(g):totable()
    evaluations = evaluations + 1
    return { t = t, loss = loss:item(), slope = measured[1], largest = measured[2], g = g }
  end

  own.begin()
  local first, g = evaluate(own, f, table.unpack(args, 1, args.n))
  evaluations = 1
  local now = { t = 0, loss = first:item(), g = g, largest = g:abs():max():item() }
  for iteration = 1, o.max_iter do
    if now.largest <= o.tolerance_grad then
      break
    end
    own.begin()
    local slope, size, sum = table.unpack(own.direction(now.g):totable())
    if slope > -o.tolerance_change then
      break
    end
    local before, t = { t = 0, loss = now.loss, slope = slope, g = now.g, largest = now.largest }, lr
    if own.iterations:item() == 1 then
      t = math.min(1, 1 / sum) * lr
    end
    if o.line_search then
      now = class.search(at, before, t, SEARCH, size, o.tolerance_change)
      own.move(now.t)
    elseif iteration < o.max_iter then
      now = at(t)
    else
      own.move(t)
      break
    end
    if evaluations >= o.max_eval or now.t * size <= o.tolerance_change
      or math.abs(now.loss - before.loss) < o.tolerance_change then
      break
    end
  end
  return first
end

---Everything that is saved of it: the rate, the direction, the history.
---
---    for _, named in ipairs(opt:named_cells()) do print(named[1], named[2].dtype) end
---@return table[] # { name, cell }
function LBFGS:named_cells()
  local own = check_self("named_cells", self)
  local list = {}
  for i, entry in ipairs(own.cells) do
    list[i] = { entry[1], entry[2] }
  end
  return list
end

setmetatable(LBFGS, { __call = function(_, params, options)
  return new(params, options)
end })

optim.LBFGS = LBFGS
