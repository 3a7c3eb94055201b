-- What the machine does at its best: GFLOP/s of a product of 1024 x 1024, GB/s of adding 1 to 32 MiB, which do not fit
-- into caches. 0, 0 where these are not one kernel each. Its functions count as never called afterwards.

local _, core = ...

local dc = require "deepc"

local RUNS, SECONDS = 40, 0.6 -- at most; the first runs touch memory for the first time

-- 1e9 operations or bytes a second of one call. Kernels are timed from the first f:kernels() on.
local function rate(f, x, what)
  local before = f:kernels()[1].ms
  f(x)
  local kernel = f:kernels()[1]
  local ms = kernel.ms - before
  return ms > 0 and kernel[what] / ms / 1e6 or 0
end

local function measure(product, stream, inputs)
  if #product:kernels() ~= 1 or #stream:kernels() ~= 1 then
    return 0, 0
  end
  local a, b = inputs()
  local gflops, gbs = 0, 0
  local start = core.clock()
  for i = 1, RUNS do
    gflops, gbs = math.max(gflops, rate(product, a, "flops")), math.max(gbs, rate(stream, b, "bytes"))
    if i > 5 and core.clock() - start > SECONDS then
      break
    end
  end
  return gflops, gbs
end

---@return number gflops
---@return number gbs
return function()
  local product = dc.fn("peak(a: f32[1024, 1024]) -> f32[1024, 1024]", function(a)
    return a:matmul(a)
  end)
  local stream = dc.fn("stream(a: f32[8388608]) -> f32[8388608]", function(a)
    return a + 1
  end)
  -- Operations outside typed functions may be those of the script.
  local inputs = dc.fn("inputs() -> f32[1024, 1024], f32[8388608]", function()
    return dc.ones "f32[1024, 1024]", dc.ones "f32[8388608]"
  end)
  local ok, gflops, gbs = pcall(measure, product, stream, inputs)
  core.report_forget(product, stream, inputs)
  if not ok then
    error(gflops, 0)
  end
  return gflops, gbs
end
