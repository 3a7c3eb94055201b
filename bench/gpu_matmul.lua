-- deepc's side of bench/gpu_matmul.py.
local dc = require "deepc"
local nn = require "deepc.nn"
package.path = (arg[0]:match "^(.*)/" or ".") .. "/?.lua;" .. package.path
local gpu = require "gpu_frame"

local function product(case)
  local d = case.dtype == "tf32" and "f32" or case.dtype -- DEEPC_MATH says the rest
  local text = ("product(a: %s[%d, %d], b: %s[%d, %d]) -> %s[%d, %d]"):format(d, case.m, case.k, d, case.k, case.n,
    d, case.m, case.n)
  local f = dc.fn(text, function(a, b) return a:matmul(b) end)
  return f, function(t) return { y = f(t.a, t.b) } end
end

local function convolution(case)
  local layer = nn.Conv2d(case.inputs_, case.outputs, case.window,
    { stride = case.stride, padding = case.window // 2, bias = false })
  layer.weight:set(gpu.inputs(case).w)
  local f = dc.fn(("conv(x: f32[%d, %d, %d, %d]) -> f32[%d, %d, %d, %d]"):format(case.batch, case.inputs_, case.from_,
    case.from_, case.batch, case.outputs, case.side, case.side), layer)
  return f, function(t) return { y = f(t.x) } end
end

gpu.serve(function(case)
  local f, call = (case.kind == "conv" and convolution or product)(case)
  local run = gpu.in_turn(case, call)
  if case.dtype ~= "f32" then
    run(1)
    gpu.note_cores(f)
  end
  return run
end)
