-- deepc's side of bench/order.py.
local dc = require "deepc"
local frame = dofile((arg[0]:match "^(.*)/" or ".") .. "/frame.lua")

local lines = {
  sort = function(x) return (x:sort(-1)) end,
  argsort = function(x) return x:argsort(-1) end,
  top_k = function(x) return (x:top_k(10, { axis = -1 })) end,
  cumsum = function(x) return x:cumsum(-1) end,
  cumprod = function(x) return x:cumprod(-1) end,
  cummax = function(x) return x:cummax(-1) end,
  median = function(x) return x:median(-1) end,
  unique = function(x) return (x:round():unique { bound = 64 }) end,
}

frame.serve(function(case, inputs)
  local f = dc.fn(("f(x: f32[%d, %d])"):format(case.m, case.n), function(x)
    return lines[case.line](case.line == "unique" and x:reshape(-1) or x)
  end)
  return function(n)
    local y
    for _ = 1, n do
      y = f(inputs.x)
    end
    return { y = y }
  end
end)
