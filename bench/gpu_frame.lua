-- deepc's side of the benchmarks of GPUs (bench/gpu_frame.py): inputs by formula, many calls and one wait.
local dc = require "deepc"
package.path = (arg[0]:match "^(.*)/" or ".") .. "/?.lua;" .. package.path
local frame = require "frame"

local gpu = {}

-- Whole numbers of 16 bits, the same as hashed() of bench/gpu_frame.py.
local function hashed(shape, salt)
  local n = 1
  for _, size in ipairs(shape) do
    n = n * size
  end
  local h = dc.iota(("u32[%d]"):format(n)) * 2654435761 + (salt * 2654435769 & 0xffffffff)
  h = h ~ (h >> 15)
  h = h * 2246822519
  return ((h ~ (h >> 13)) >> 16):reshape(table.unpack(shape))
end

function gpu.inputs(case, copy)
  local found = {}
  for i, input in ipairs(case.inputs) do
    local name, shape, dtype, scale = table.unpack(input)
    local h = hashed(shape, i + 100 * (copy or 0))
    if dtype == "i32" or dtype == "u8" then
      found[name] = (h % scale):cast(dtype):clone()
    else
      local x = (h:cast "f32" / 32768 - 1) * scale
      found[name] = ((dtype == "f32" or dtype == "tf32") and x or x:cast(dtype)):clone()
    end
  end
  return found
end

-- Until a result is there: one number of it is read.
function gpu.wait(t)
  local first = {}
  for i = 1, #t.shape do
    first[i] = 1
  end
  return #first > 0 and t[first]:item() or t:item()
end

-- run(n) of f(inputs) -> results, the inputs in turn. Results are closed as soon as they are no longer needed.
function gpu.in_turn(case, f)
  local sets = {}
  for k = 0, case.copies - 1 do
    sets[k] = gpu.inputs(case, k)
  end
  return function(n)
    local last = {}
    for i = 0, n - 1 do
      for _, t in pairs(last) do t:close() end
      last = f(sets[i % case.copies])
    end
    gpu.wait(select(2, next(last)))
    return last
  end
end

-- What another benchmark's file prepares, with inputs by formula: bench/NAME.lua.
function gpu.other(name)
  frame.collecting = true
  local prepare = dofile((arg[0]:match "^(.*)/" or ".") .. "/" .. name .. ".lua")
  frame.collecting = false
  return prepare
end

-- run(n) that waits at its end.
function gpu.waited(run)
  return function(n)
    local results = run(n)
    gpu.wait(select(2, next(results)))
    return results
  end
end

-- Whether the kernels of a function use the instructions of tensor cores, as a note of the line.
function gpu.note_cores(f)
  for i = 1, #f:kernels() do
    if f:source(i, "text"):find "mma_m%d+n%d+k%d+_%w+%(v%d" then
      frame.note = ""
      return
    end
  end
  frame.note = "not yet on tensor cores"
end

function gpu.serve(prepare)
  return frame.serve(function(case)
    frame.note = ""
    collectgarbage() -- the case before
    collectgarbage()
    return prepare(case)
  end)
end

return gpu
