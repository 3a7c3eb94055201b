-- deepc's side of bench/gpu_mlp.py.
package.path = (arg[0]:match "^(.*)/" or ".") .. "/?.lua;" .. package.path
local gpu = require "gpu_frame"
local prepare = gpu.other "mlp"

gpu.serve(function(case)
  return gpu.waited(prepare(case, gpu.inputs(case)))
end)
