-- deepc's side of bench/embeddings.py.
local dc = require "deepc"
local models = require "deepc.models"
package.path = (arg[0]:match "^(.*)/" or ".") .. "/?.lua;" .. package.path
local frame = require "frame"

local net -- read once for all cases

return frame.serve(function(case, inputs)
  net = net or models.load(case.folder)
  local time = case.most > 0 and ("t <= %d"):format(case.most) or "t"
  local f = dc.fn(("embed(ids: i32[b, %s], mask: i32[b, t]) -> f32[b, h]"):format(time), function(ids, mask)
    local vectors = net:embed(ids, { mask = mask })
    return vectors
  end)
  return function(n)
    local y
    for _ = 1, n do
      y = f(inputs.ids, inputs.mask)
    end
    return { y = y }
  end
end)
