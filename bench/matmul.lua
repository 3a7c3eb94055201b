-- deepc's side of bench/matmul.py. Results are closed as soon as they are no longer needed: those of a run by the next.
local dc = require "deepc"
local frame = dofile((arg[0]:match "^(.*)/" or ".") .. "/frame.lua")

local function shape(case, rows, columns, turned)
  local text = turned and ("%d, %d"):format(columns, rows) or ("%d, %d"):format(rows, columns)
  return ("f32[%s%s]"):format(case.batch > 1 and case.batch .. ", " or "", text)
end

local function turn(t, turned)
  return turned and t:transpose() or t
end

frame.serve(function(case, inputs)
  local left, right = case.turned:find "a" ~= nil, case.turned:find "b" ~= nil
  local function product(a, b)
    local y = turn(a, left)
    for _ = 1, case.chain do
      y = y:matmul(turn(b, right))
    end
    return y
  end
  local text = ("product(a: %s, b: %s%%s) -> %s"):format(shape(case, case.m, case.k, left),
    shape(case, case.k, case.n, right), shape(case, case.m, case.n))
  local f = not case.gelu and dc.fn(text:format "", product)
    or dc.fn(text:format((", c: f32[%d]"):format(case.n)), function(a, b, c)
      return (product(a, b) + c):gelu()
    end)
  local args = { inputs.a, inputs.b, inputs.c }
  local last
  return function(n)
    for _ = 1, n do
      if last then last:close() end
      last = f(table.unpack(args))
    end
    return { y = last }
  end
end)
