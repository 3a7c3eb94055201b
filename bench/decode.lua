-- deepc's side of bench/decode.py.
local models = require "deepc.models"
package.path = (arg[0]:match "^(.*)/" or ".") .. "/?.lua;" .. package.path
local frame = require "frame"

-- How the model of a file is loaded, by the form of its weights.
local LOAD = {
  f32 = function(file) return models.load(file) end,
  f16 = function(file) return models.load(file, { dtype = "f16" }) end,
  q8_0 = function(file) return models.load(file, { packed = true }) end,
  q4_1 = function(file) return models.load(file, { packed = true }) end,
  ["q8_0 + i8"] = function(file) return models.load(file, { packed = true, activations = 8 }) end,
  ["q4_1 + i8"] = function(file) return models.load(file, { packed = true, activations = 8 }) end,
}

local net, loaded -- of one form at a time

return frame.serve(function(case, inputs)
  if loaded ~= case.form then
    net, loaded = nil, nil
    collectgarbage()
    net, loaded = LOAD[case.form](case.file), case.form
  end
  local ids = inputs.ids:reshape(1, case.prompt)
  local cache = net:cache(2 * case.prompt)
  local logits
  if case.rule == "prompt" then
    return function(n)
      for _ = 1, n do
        logits = net:step(ids, cache:keep(0))
      end
      return { y = logits[1] }
    end
  end
  local tokens = {}
  for i = 1, case.prompt do
    tokens[i] = ids[{ {}, { i } }]:clone()
  end
  net:step(ids[{ {}, { 1, case.before } }], cache)
  return function(n)
    for _ = 1, n do
      if cache:length() == case.prompt then
        cache:keep(case.before)
      end
      logits = net:step(tokens[cache:length() + 1], cache)
    end
    return { y = logits[1] }
  end
end)
