-- nn.calibrate: the scale of what goes into quantised layers, found by looking at some batches.

local dc = require "deepc"
local nn = require "deepc.nn.class"
require "deepc.nn.quantized"
local _, core = ...

local OP = "nn.calibrate"
local BINS = 2048
local LEAST = 2.0 ^ -126 -- a step has a reciprocal

-- ---- ranges ----
--
-- What each method makes of the sizes of numbers, batch after batch: a table with `range`.

local methods = {}

function methods.minmax(seen, largest)
  seen.range = math.max(seen.range or 0, largest)
end

function methods.moving_average(seen, largest, _, o)
  seen.range = seen.range and seen.range + o.averaging_constant * (largest - seen.range) or largest
end

-- Counts by size: bins are merged in pairs where numbers are beyond the last one.
local function count(seen, sizes, largest)
  seen.most, seen.counts, seen.total = seen.most or largest, seen.counts or {}, seen.total or 0
  if seen.most == 0 then
    seen.most = largest
  end
  while largest > seen.most do
    local merged = {}
    for i = 1, BINS // 2 do
      merged[i] = (seen.counts[2 * i - 1] or 0) + (seen.counts[2 * i] or 0)
    end
    seen.counts, seen.most = merged, 2 * seen.most
  end
  local counts = dc.histogram(sizes, BINS, { range = { 0, seen.most } }):totable()
  for i = 1, BINS do
    seen.counts[i] = (seen.counts[i] or 0) + counts[i]
    seen.total = seen.total + counts[i]
  end
end

function methods.percentile(seen, largest, sizes, o)
  seen.largest = math.max(seen.largest or 0, largest)
  if seen.largest == 0 then
    seen.range = 0
    return
  end
  count(seen, sizes, largest)
  local below, wanted = 0, o.percentile / 100 * seen.total
  for i = 1, BINS do
    below = below + seen.counts[i]
    if below >= wanted then
      seen.range = math.min(i * seen.most / BINS, seen.largest)
      return
    end
  end
  seen.range = seen.largest
end

-- ---- options ----

local function check_number(o, name, default, low, high)
  local v = o[name]
  if v ~= nil and (type(v) ~= "number" or not (v > low and v <= high)) then
    core.fail("ARG", OP, ("%s is a number above %g, %g at most, not %s"):format(name, low, high, core.shown(v)))
  end
  o[name] = v or default
end

local function read_options(options)
  core.options(OP, options, "method", "percentile", "averaging_constant", "call")
  local o = {}
  for name, value in pairs(options or {}) do
    o[name] = value
  end
  o.method = o.method or "minmax"
  if type(o.method) ~= "string" or not methods[o.method] then
    core.fail("ARG", OP, ('method is "minmax", "moving_average" or "percentile", not %s'):format(core.shown(o.method)))
  elseif o.call ~= nil and type(o.call) ~= "function" then
    core.fail("ARG", OP, ("call is a function of the network and what a batch has, not %s"):format(
      core.describe(o.call)))
  elseif o.percentile ~= nil and o.method ~= "percentile" then
    core.fail("ARG", OP, 'percentile is for method = "percentile"')
  elseif o.averaging_constant ~= nil and o.method ~= "moving_average" then
    core.fail("ARG", OP, 'averaging_constant is for method = "moving_average"')
  end
  check_number(o, "percentile", 99.99, 0, 100)
  check_number(o, "averaging_constant", 0.01, 0, 1)
  o.call = o.call or function(net, x) return net(x) end
  return o
end

-- Quantised layers of integers, in order, with their paths.
local function find_layers(net)
  local layers, paths, floats = {}, {}, nil
  local function add(layer, path)
    if not layer.activations then
      floats = path
    elseif not paths[layer] then
      layers[#layers + 1], paths[layer] = layer, path
    end
  end
  if getmetatable(net) == nn.QuantizedLinear then
    add(net, net:describe())
  end
  core.replace_layers(net, "", nn.QuantizedLinear, add, {})
  if #layers == 0 then
    core.fail("ARG", OP, ("%s has no quantised linear layer of integers"):format(net:describe()), floats
      and "floats of 8 bits multiply what goes in as it is"
      or 'nn.quantize(net, "q8_0", { activations = 8 }) makes them')
  end
  return layers, paths
end

-- ---- batches ----

-- Calls f with what each batch has: of a list of tensors, or of lists of them; or of what `for` takes.
local function each_batch(batches, f)
  if type(batches) == "table" and not core.kind(batches) and getmetatable(batches) == nil then
    for _, batch in ipairs(batches) do
      if core.kind(batch) then
        f(batch)
      elseif type(batch) == "table" and getmetatable(batch) == nil then
        f(table.unpack(batch))
      else
        core.fail("ARG", OP, "a batch is a tensor, or a list of what the network takes, not " .. core.describe(batch))
      end
    end
    return
  elseif core.kind(batches) or type(batches) ~= "function" and not (getmetatable(batches) or {}).__call then
    core.fail("ARG", OP, ("batches are a list of tensors, or what `for` takes, not %s"):format(
      core.describe(batches)), "{ x } is a list of one batch")
  end
  local function step(...)
    if ... == nil then
      return false
    end
    f(...)
    return true
  end
  while step(batches()) do end -- luacheck: ignore
end

local function observer(layers, paths, o, state)
  local known = {}
  for _, layer in ipairs(layers) do
    known[layer] = true
  end
  return function(layer, x)
    if not known[layer] then
      return
    elseif core.tracing() then
      core.fail("ARG", OP, ("'%s' is called inside a typed function, where nothing has a value"):format(paths[layer]),
        "call = a function that calls the layers themselves")
    end
    local sizes = x:cast "f32":abs():reshape(-1)
    local largest = sizes.shape[1] == 0 and 0 or sizes:max():item()
    if largest ~= largest or largest == math.huge then
      core.fail("ARG", OP, ("what goes into '%s' (%s) is not finite in batch %d"):format(paths[layer],
        layer:describe(), state.batch))
    end
    state.seen[layer] = state.seen[layer] or {}
    methods[o.method](state.seen[layer], largest, sizes, o)
  end
end

-- A variable to be closed would not do: a coroutine that dies of an error does not close it.
local function run(net, batches, o, observe, state)
  local before = core.observe
  core.observe = observe
  local ok, err = pcall(each_batch, batches, function(...)
    state.batch = state.batch + 1
    o.call(net, ...)
  end)
  core.observe = before
  if not ok then
    error(err, 0)
  end
end

---Static quantisation: fixes the scale of what goes into each nn.QuantizedLinear of integers, one for a layer, by
---calling a network with some batches. Without it each call finds a scale for each block of 32 numbers. What is
---beyond the range becomes its end; NaN stays. The scale is a state, input_scale, which is saved with the layer;
---nn.quantize(net, type, { static = true }) makes layers that such a file can be loaded into, whose results are NaN
---until then. Nothing has changed where there is an error.
---
---    local net = nn.Sequential { nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10) }
---    nn.quantize(net, "q8_0", { activations = 8 })
---    nn.calibrate(net, { dc.randn "f32[32, 64]", dc.randn "f32[32, 64]" })
---
---Batches are a list of tensors, or of lists of what the network takes; or what `for` takes, as set:batches gives it,
---of which the network gets the first value. It is called outside typed functions, in the mode that it is in: first
---net:eval().
---
---Options: method, what the range is of the sizes of numbers (as in ONNX Runtime and torch.ao.quantization): "minmax",
---the largest; "moving_average", the average of each batch's largest, in which a batch counts averaging_constant
---(0.01); "percentile", the size that percentile (99.99) of 100 numbers do not exceed, by a histogram. call, a function
---of the network and what a batch has, instead of net(x).
---
---Errors: DC0101 where there is no such layer, no batch, a layer that no batch reached, or one that only zeros reached;
---for NaN and infinity, naming the layer, and for layers called inside typed functions.
---@param net deepc.nn.Layer
---@param batches table|function
---@param options? { method?: string, percentile?: number, averaging_constant?: number, call?: function } "minmax"
---@return deepc.nn.Layer # net itself
function nn.calibrate(net, batches, options)
  core.check_layer(OP, net)
  core.refuse_inside(net, OP)
  local o = read_options(options)
  local layers, paths = find_layers(net)
  local state, unreached, zeros = { batch = 0, seen = {} }, {}, {}
  run(net, batches, o, observer(layers, paths, o, state), state)
  if state.batch == 0 then
    core.fail("ARG", OP, "there is no batch")
  end
  for _, layer in ipairs(layers) do
    local seen = state.seen[layer]
    if not seen then
      unreached[#unreached + 1] = paths[layer]
    elseif seen.range / (layer.activations == 8 and 127 or 127 * 256) < LEAST then
      zeros[#zeros + 1] = paths[layer]
    end
  end
  if #unreached > 0 then
    core.fail("ARG", OP, ("no batch reached %s"):format(core.quoted_names(unreached)),
      "call = a function that calls all of them")
  elseif #zeros > 0 then
    core.fail("ARG", OP, ("what goes into %s is 0 in all batches"):format(core.quoted_names(zeros)))
  end
  for _, layer in ipairs(layers) do
    core.make_static(layer, state.seen[layer].range / (layer.activations == 8 and 127 or 127 * 256))
  end
  return net
end

return nn
