-- deepc's side of bench/compile.py: the sides of the other benchmarks, chosen by case.net.
package.path = (arg[0]:match "^(.*)/" or ".") .. "/?.lua;" .. package.path
local frame = require "frame"

frame.collecting = true
local prepare = { mlp = require "mlp", cnn = require "cnn", gpt = require "gpt" }
frame.collecting = false

frame.serve(function(case, inputs)
  return prepare[case.net](case, inputs)
end)
