-- deepc's side of bench/stablehlo.py.
local stablehlo = require "deepc.stablehlo"
local frame = dofile((arg[0]:match "^(.*)/" or ".") .. "/frame.lua")

frame.serve(function(case, inputs)
  local step = stablehlo.load(case.program)
  local first = {}
  while inputs["p" .. #first] do
    first[#first + 1] = inputs["p" .. #first]
  end
  return function(n)
    local k, results = #first, first
    local loss
    for _ = 1, n do
      local args = table.move(results, 1, k, 1, {})
      args[k + 1], args[k + 2] = inputs.x, inputs.y
      results = { step(table.unpack(args)) }
      loss = table.remove(results, 1)
    end
    return { loss = loss }
  end
end)
