-- deepc's side of bench/gpu_cnn.py.
package.path = (arg[0]:match "^(.*)/" or ".") .. "/?.lua;" .. package.path
local gpu = require "gpu_frame"
local prepare = { cnn = gpu.other "cnn", resnet = gpu.other "resnet" }

gpu.serve(function(case)
  return gpu.waited(prepare[case.kind](case, gpu.inputs(case)))
end)
