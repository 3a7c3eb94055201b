-- deepc's side of bench/slices.py.
local dc = require "deepc"
local frame = dofile((arg[0]:match "^(.*)/" or ".") .. "/frame.lua")

local function steps(x, T)
  local h = x[{ {}, 1 }]
  for i = 1, T do
    h = (h + x[{ {}, i }]):tanh()
  end
  return h
end

local function windows(x, T)
  local loss = 0
  for i = 1, T - 2 do
    loss = loss + x[{ {}, { i, i + 2 } }]:tanh():sum()
  end
  return loss
end

local function pieces(x, T)
  local p = {}
  for i = 1, T do
    p[i] = x[{ {}, T + 1 - i }] * 2 + 1
  end
  return p
end

-- Results of T steps, and what they compute.
local lines = {
  forward = { "16, 64", steps },
  gradient = { "16, T, 64", function(x, T) return dc.grad(steps(x, T):sum(), x) end },
  concat = { "16, N", function(x, T) return dc.concat(pieces(x, T), 2) end },
  stack = { "16, T, 64", function(x, T) return dc.stack(pieces(x, T), 2) end },
  windows = { "16, T, 64", function(x, T) return dc.grad(windows(x, T), x) end },
}

frame.serve(function(case, inputs)
  local T = case.steps
  local result, body = table.unpack(lines[case.line])
  result = result:gsub("T", T):gsub("N", math.tointeger(64 * T))
  local f = dc.fn(("f(x: f32[16, %d, 64]) -> f32[%s]"):format(T, result), function(x) return body(x, T) end)
  return function(n)
    local y
    for _ = 1, n do
      y = f(inputs.x)
    end
    return { y = y }
  end
end)
