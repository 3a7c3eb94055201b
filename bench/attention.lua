-- deepc's side of bench/attention.py.
local dc = require "deepc"
local nn = require "deepc.nn"
package.path = (arg[0]:match "^(.*)/" or ".") .. "/?.lua;" .. package.path
local frame = require "frame"

local function type_of(case, heads, time)
  return ("f32[%d, %d, %d, %d]"):format(case.batch, heads, time, case.d)
end

return frame.serve(function(case, inputs)
  local type_q, type_kv = type_of(case, case.heads, case.t), type_of(case, case.kv, case.s)
  local options = { causal = case.causal, enable_gqa = case.kv ~= case.heads }
  local takes = ("q: %s, k: %s, v: %s"):format(type_q, type_kv, type_kv)
  local function attend(q, k, v) -- luacheck: ignore 431
    return nn.scaled_dot_product_attention(q, k, v, options)
  end
  if case.rule == "both" then
    local gives = ("%s, %s, %s"):format(type_q, type_kv, type_kv)
    local f = dc.fn(("both(%s) -> %s"):format(takes, gives), function(q, k, v) -- luacheck: ignore 431
      return table.unpack(dc.grad(attend(q, k, v):square():mean(), { q, k, v }))
    end)
    return function(n)
      local dq, dk, dv
      for _ = 1, n do
        dq, dk, dv = f(inputs.q, inputs.k, inputs.v)
      end
      return { dq = dq, dk = dk, dv = dv }
    end
  end
  local f = dc.fn(("forward(%s) -> %s"):format(takes, type_q), attend)
  return function(n)
    local y
    for _ = 1, n do
      y = f(inputs.q, inputs.k, inputs.v)
    end
    return { y = y }
  end
end)
