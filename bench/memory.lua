-- deepc's side of bench/memory.py. Results are closed as soon as they are no longer needed.
local dc = require "deepc"
local optim = require "deepc.optim"
local frame = dofile((arg[0]:match "^(.*)/" or ".") .. "/frame.lua")

local function norm(x, w, b)
  local d = x - x:mean { axis = 2, keep = true }
  return d * ((d * d):mean { axis = 2, keep = true } + 1e-5):rsqrt() * w + b
end

-- Signatures with S for n x n numbers and R for a row of n, and what they compute.
local lines = {
  gelu = { "gelu(x: S) -> S", function(x) return (x * 1.1 + 0.1):gelu() * x end },
  softmax = { "softmax(x: S) -> S", function(x) return x:softmax(2) end },
  softmax_grad = { "softmax_grad(x: S, g: S) -> S", function(x, g)
    return dc.grad((x:softmax(2) * g):sum(), { x })[1]
  end },
  norm = { "norm(x: S, w: R, b: R) -> S", norm },
  norm_grad = { "norm_grad(x: S, w: R, b: R, g: S) -> S, R, R", function(x, w, b, g)
    return table.unpack(dc.grad((norm(x, w, b) * g):sum(), { x, w, b }))
  end },
  transpose = { "transpose(x: S) -> S", function(x) return x:transpose() end },
  sum_rows = { "sum_rows(x: S) -> R", function(x) return x:sum(2) end },
  sum_columns = { "sum_columns(x: S) -> R", function(x) return x:sum(1) end },
  sum = { "sum(x: S) -> f32[]", function(x) return x:sum() end },
  gather = { "gather(x: S, rows: I) -> S", function(x, rows) return x:take(rows, 1) end },
}

local function typed(case, text)
  local types = { S = ("f32[%d, %d]"):format(case.n, case.n), R = ("f32[%d]"):format(case.n),
                  I = ("i32[%d]"):format(case.n) }
  return (text:gsub("%f[%w][SRI]%f[%W]", types))
end

local function adam(case, inputs)
  local param = dc.param(typed(case, "S"))
  param:set(inputs.x)
  local opt = optim.Adam({ param }, { lr = 1e-3 })
  local step = dc.fn(typed(case, "adam(g: S)"), function(g) opt:apply { g } end)
  return function(n)
    for _ = 1, n do step(inputs.g) end
    return { a = param }
  end
end

local function close(results)
  for _, t in ipairs(results) do t:close() end
end

frame.serve(function(case, inputs)
  if case.line == "adam" then
    return adam(case, inputs)
  end
  local text, body = table.unpack(lines[case.line])
  local f = dc.fn(typed(case, text), body)
  local args, last = {}, {}
  for i, name in ipairs(case.args) do args[i] = inputs[name] end
  return function(n)
    for _ = 1, n do
      close(last)
      last = { f(table.unpack(args)) }
    end
    return { a = last[1], b = last[2], c = last[3] }
  end
end)
