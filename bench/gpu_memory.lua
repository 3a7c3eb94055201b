-- deepc's side of bench/gpu_memory.py.
local dc = require "deepc"
local nn = require "deepc.nn"
local optim = require "deepc.optim"
package.path = (arg[0]:match "^(.*)/" or ".") .. "/?.lua;" .. package.path
local gpu = require "gpu_frame"

local function norm(x, w, b)
  local d = x - x:mean { axis = 2, keep = true }
  return d * ((d * d):mean { axis = 2, keep = true } + 1e-5):rsqrt() * w + b
end

local function map(x) return (x * 1.1 + 0.1):gelu() * x end

-- Signatures with S for rows x columns numbers, R for a row, C for a column, N for whole ones, and what they compute.
local lines = {
  map = { "map(x: S) -> S", map },
  ["map f16"] = { "map(x: S) -> S", map },
  softmax = { "softmax(x: S) -> S", function(x) return x:softmax(2) end },
  softmax_grad = { "softmax_grad(x: S, g: S) -> S", function(x, g)
    return dc.grad((x:softmax(2) * g):sum(), { x })[1]
  end },
  norm = { "norm(x: S, w: R, b: R) -> S", norm },
  norm_grad = { "norm_grad(x: S, w: R, b: R, g: S) -> S, R, R", function(x, w, b, g)
    return table.unpack(dc.grad((norm(x, w, b) * g):sum(), { x, w, b }))
  end },
  transpose = { "transpose(x: S) -> T", function(x) return x:transpose() end },
  ["transpose heads"] = { "heads(x: S) -> H", function(x, case)
    return x:reshape(case.rows // 16, 16, 16, case.columns // 16):transpose(2, 3)
  end },
  sum_rows = { "sum_rows(x: S) -> C", function(x) return x:sum(2) end },
  sum_columns = { "sum_columns(x: S) -> R", function(x) return x:sum(1) end },
  sum = { "sum(x: S) -> f32[]", function(x) return x:sum() end },
  gather = { "gather(x: S, rows: N) -> S", function(x, rows) return x:take(rows, 1) end },
  scatter = { "scatter(g: S, rows: N) -> S", function(g, rows)
    local x = g * 0
    return dc.grad((x:take(rows, 1) * g):sum(), { x })[1]
  end },
  entropy = { "entropy(x: S, y: N) -> S", function(x, y)
    return dc.grad(nn.cross_entropy(x, y), { x })[1]
  end },
}

local function typed(case, text)
  local d, r, c = case.dtype, case.rows, case.columns
  local types = { S = ("%s[%d, %d]"):format(d, r, c), T = ("%s[%d, %d]"):format(d, c, r), R = ("f32[%d]"):format(c),
    C = ("f32[%d]"):format(r), N = ("i32[%d]"):format(r),
    H = ("%s[%d, 16, 16, %d]"):format(d, r // 16, c // 16) }
  return (text:gsub("%f[%w][STRCNH]%f[%W]", types))
end

-- A function of as many gradients: its parameters have to be named.
local function adam(case)
  local inputs, params, grads = gpu.inputs(case), {}, {}
  local names, types = {}, {}
  for i = 1, case.count do
    params[i], grads[i] = dc.param(inputs["p" .. i - 1]), inputs["g" .. i - 1]
    names[i] = "g" .. i
    types[i] = ("g%d: f32[%d]"):format(i, case.size)
  end
  local opt = optim.Adam(params, { lr = 1e-3 })
  local body = ("local opt = ...; return function(%s) opt:apply { %s } end"):gsub("%%s", table.concat(names, ", "))
  local step = dc.fn(("adam(%s) -> ()"):format(table.concat(types, ", ")), assert(load(body))(opt))
  return gpu.waited(function(n)
    for _ = 1, n do step(table.unpack(grads)) end
    return { a = params[case.count] }
  end)
end

gpu.serve(function(case)
  if case.line == "adam" then
    return adam(case)
  end
  local text, body = table.unpack(lines[case.line])
  local f = dc.fn(typed(case, text), case.line == "transpose heads" and function(x) return body(x, case) end or body)
  return gpu.in_turn(case, function(t)
    local args = {}
    for i, name in ipairs(case.args) do args[i] = t[name] end
    local a, b, c = f(table.unpack(args))
    return { a = a, b = b, c = c }
  end)
end)
