-- deepc's side of bench/data.py.
local dc = require "deepc"
local data = require "deepc.data"
package.path = (arg[0]:match "^(.*)/" or ".") .. "/?.lua;" .. package.path
local frame = require "frame"

-- What is read once, and the sum of what was read.
local kinds = {
  csv = function(case)
    return function() return data.read_csv(case.file) end, function(t)
      local sum = 0
      for _, column in pairs(t) do
        sum = sum + column:abs():sum():item()
      end
      return sum
    end
  end,
  matrix = function(case)
    return function() return (data.read_csv(case.file, { matrix = true })) end,
      function(x) return x:abs():cast "f64":sum():item() end
  end,
  npy = function(case)
    return function() return data.read_npy(case.file) end, function(x) return x:abs():sum():item() end
  end,
  image = function(case)
    return function() return data.read_image(case.file) end, function(x) return x:cast "f64":sum():item() end
  end,
  table = function()
    local values = {}
    for i = 1, 1000000 do
      values[i] = (i - 1) * 0.5
    end
    return function() return dc.tensor(values) end, function(x) return x:cast "f64":sum():item() end
  end,
  batches = function(case)
    local files = {}
    for i = 1, case.images do
      files[i] = ("%s/%d.jpg"):format(case.folder, i - 1)
    end
    local set = data.set(data.images(files))
    return function()
      local sum = 0
      for x in set:batches { size = 16 } do
        sum = sum + x:cast "f64":sum():item()
      end
      return sum
    end, function(sum) return sum end
  end,
}

return frame.serve(function(case)
  local read, total = kinds[case.kind](case)
  return function(n)
    local last
    for _ = 1, n do
      last = read()
    end
    return { sum = dc.tensor { total(last) } }
  end
end)
