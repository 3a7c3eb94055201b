-- deepc's side of bench/indexing.py.
local dc = require "deepc"
local frame = dofile((arg[0]:match "^(.*)/" or ".") .. "/frame.lua")

-- The signature of each line and what it computes.
local lines = {
  gather1 = { "f(x: f32[N, N], i: i32[N, N]) -> f32[N, N]", function(x, i) return x:gather(i, 1) end },
  gather2 = { "f(x: f32[N, N], i: i32[N, N]) -> f32[N, N]", function(x, i) return x:gather(i, 2) end },
  gradient1 = { "f(x: f32[N, N], i: i32[N, N]) -> f32[N, N]",
    function(x, i) return dc.grad((x:gather(i, 1) * x):sum(), x) end },
  gradient2 = { "f(x: f32[N, N], i: i32[N, N]) -> f32[N, N]",
    function(x, i) return dc.grad((x:gather(i, 2) * x):sum(), x) end },
  scatter_add = { "f(x: f32[M], i: i32[N], v: f32[N]) -> f32[M]", function(x, i, v) return x:scatter_add(i, v, 1) end },
  scatter_max = { "f(x: f32[M], i: i32[N], v: f32[N]) -> f32[M]",
    function(x, i, v) return x:scatter(i, v, 1, { reduce = "max" }) end },
  rows = { "f(x: f32[M, 64], i: i32[N], v: f32[N, 64]) -> f32[M, 64]", function(x, i, v) return x:index_add(i, v) end },
  matrix = { "f(x: f32[M, 64], i: i32[N, 64], v: f32[N, 64]) -> f32[M, 64]",
    function(x, i, v) return x:scatter_add(i, v, 1) end },
  bincount = { "f(i: i32[N]) -> i32[M]", function(i, case) return i:bincount { bins = case.m } end },
  histogram = { "f(x: f32[N]) -> i32[M]", function(x, case) return (x:histogram(case.m, { range = { -3, 3 } })) end },
  searchsorted = { "f(s: f32[M], v: f32[N]) -> i32[N]", function(s, v) return s:searchsorted(v) end },
  compact = { "f(x: f32[N]) -> f32[N]", function(x) return (x:compact(x:gt(0))) end },
}

frame.serve(function(case, inputs)
  local text, body = table.unpack(lines[case.line])
  text = text:gsub("%f[%w]N%f[%W]", case.n):gsub("%f[%w]M%f[%W]", case.m)
  local args = {}
  for name in text:match "%((.-)%) %->":gmatch "(%w+):" do
    args[#args + 1] = name == "i" and inputs.j and (inputs.i + inputs.j):clone() or inputs[name]
  end
  local f = dc.fn(text, case.line == "bincount" and function(i) return body(i, case) end
    or case.line == "histogram" and function(x) return body(x, case) end or body)
  return function(n)
    local y
    for _ = 1, n do
      y = f(table.unpack(args))
    end
    return { y = y }
  end
end)
