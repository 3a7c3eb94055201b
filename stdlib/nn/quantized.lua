-- Linear layers and embeddings whose weights are quantised, and multiplied as they are: integers of 4 or 8 bits in
-- blocks with a scale, which lie in memory as formats/blocks.h says; or floats of 8 bits with a scale for each output,
-- which float8.lua multiplies.

local dc = require "deepc"
local nn = require "deepc.nn.class"
require "deepc.nn.layers"
require "deepc.nn.whole"
require "deepc.float8"
local _, core = ...

local float8 = core.float8

local LANES = 16

-- ---- matrices ----

-- How many rows and columns a layer has, and of integers what its blocks are like.
local function about(layer)
  local m = core.blocks_about(layer.format) or {}
  m.rows, m.columns = layer.outputs or layer.count, layer.inputs or layer.size
  return m
end

-- The cells of a layer, which begin with these values.
local function fill(layer, format, activations, words, scales, mins)
  layer.format, layer.words, layer.scales = format, dc.state(words), dc.state(scales)
  layer.mins = mins and dc.state(mins) or nil
  layer.activations = activations
  for _, cell in ipairs { layer.scales, layer.mins } do
    core.keeps_dtype[cell] = true
  end
end

-- The same of floats of 8 bits. Names are those of files: a scale of blocks is weight_scale_inv there.
local function fill_floats(layer, format, codes, scale)
  local shape = codes.shape
  local high = float8.shares(shape[1], shape[2], scale.shape)
  local name = high > 1 and high < shape[1] and "weight_scale_inv" or "weight_scale"
  layer.format, layer.weight, layer[name] = format, dc.state(codes), dc.state(scale)
  float8.of[layer.weight], core.keeps_dtype[layer[name]] = format, true
end

-- What float8.lua takes; nil: the layer has integers.
local function floats_of(layer)
  return float8.names[layer.format] and { type = layer.format, codes = layer.weight,
    scale = (layer.weight_scale or layer.weight_scale_inv):stop_gradient(), rows = layer.outputs or layer.count,
    columns = layer.inputs or layer.size }
end

-- In the place of rows: how many there are and of how many columns. The layer's cells get their values later.
local Unread = {}

-- scale: of floats of 8 bits, zeros of the type of theirs.
function core.unread_rows(rows, columns, scale)
  return setmetatable({ shape = { rows, columns }, scale = scale }, Unread)
end

-- Words, scales and mins for such rows: zeros that are computed only where they are read.
local function unread_blocks(format, shape)
  local m = core.blocks_about(format)
  local strips, parts = (shape[1] + LANES - 1) // LANES, shape[2] // m.block
  local scales = ("%s[%d, %d, %d]"):format(m.scale, strips, parts, LANES)
  return dc.zeros(("u32[%d, %d, %d, %d]"):format(strips, parts, m.words, LANES)), dc.zeros(scales),
    m.mins and dc.zeros(scales) or nil
end

-- x [rows, columns] times the matrix turned: f32[rows, rows of the matrix].
local function product(layer, x, step)
  local floats = floats_of(layer)
  if floats then
    return float8.product(floats, x)
  end
  local m = about(layer)
  return core.quantized_product(x, layer.words, layer.scales, layer.mins, m.rows, m.block, m.bits, m.zero,
    layer.activations, step)
end

-- Elements of words [n, blocks, words, lanes] with their scales and mins, [n, blocks, lanes]: f32[n, columns, lanes].
local function elements(m, words, scales, mins)
  return core.quantized_elements(words, scales, mins, m.bits, m.zero)
end

-- The whole matrix, f32[rows, columns].
local function dequantized(layer)
  local floats = floats_of(layer)
  if floats then
    return float8.matrix(floats)
  end
  local m = about(layer)
  local y = elements(m, layer.words, layer.scales, layer.mins):permute(1, 3, 2):reshape(-1, m.columns)
  return y.shape[1] == m.rows and y or y:slice { { 1, m.rows } }
end

-- Rows of the matrix by number, integers[n]: f32[n, columns].
local function rows_of(layer, positions)
  local floats = floats_of(layer)
  if floats then
    return float8.rows(floats, positions)
  end
  local m, n = about(layer), positions.shape[1]
  local strip, lane = positions // LANES, positions % LANES
  local function pick(cell)
    local part = cell:take(strip, 1)
    local sizes = { n }
    for _ = 2, #part.shape do
      sizes[#sizes + 1] = 1
    end
    return part:gather(lane:reshape(sizes), -1)
  end
  return elements(m, pick(layer.words), pick(layer.scales), layer.mins and pick(layer.mins)):reshape(n, m.columns)
end

-- Products outside typed functions, a typed function for each layer: its results carry no graph, so that nobody takes
-- what the integers leave of it for the gradient. `observed`: while what goes in is watched, to find a step.
local outside, observed = setmetatable({}, { __mode = "k" }), setmetatable({}, { __mode = "k" })

-- Inside, x [rows, columns] has the gradient of the dequantised matrix.
local function traced(layer, x, step)
  return dc.custom_grad(function(v) return product(layer, v, step) end,
    function(dy) return dy:matmul(dequantized(layer)) end)(x)
end

-- So many numbers of rows have a function of their own; others share one for each power of two.
local OWN_SIZES = 4

local function product_for(layer, rows, watched)
  local m = about(layer)
  return dc.fn(("quantized(x: f32[%s, %d]) -> f32[n, %d]"):format(rows, m.columns, m.rows),
    function(x) return traced(layer, x, not watched and layer.input_scale or nil) end)
end

local function product_of(layer, x)
  if core.tracing() then
    return traced(layer, x, layer.input_scale)
  end
  local watched, n = core.observe ~= nil, x.shape[1]
  local made = watched and observed or outside
  local own = made[layer]
  if not own then
    own = { sizes = {}, count = 0, bounded = {}, exact = product_for(layer, "n", watched) }
    made[layer] = own
  end
  if not own.sizes[n] and (own.count < OWN_SIZES or n == 0) then
    own.sizes[n], own.count = true, own.count + 1
  end
  if own.sizes[n] then
    return own.exact(x)
  end
  local most = 1
  while most < n do
    most = most * 2
  end
  own.bounded[most] = own.bounded[most] or product_for(layer, ("1 <= n <= %d"):format(most), watched)
  return own.bounded[most](x)
end

-- The product for any x of floats.
local function multiply(op, layer, x, bias)
  local m = about(layer)
  core.check_tensor(op, x)
  local sizes = x.shape
  if not core.is_float(x.dtype) then
    core.fail("DTYPE", op, ("x is %s; floats are needed"):format(x.dtype), nil, "x", x)
  elseif #sizes == 0 or sizes[#sizes] ~= m.columns then
    core.fail("DIMS", op, ("the last axis of x has to have %d elements, as rows of the matrix"):format(m.columns), nil,
      "x", x)
  end
  sizes[#sizes] = m.rows
  local y = product_of(layer, x:cast "f32":reshape(-1, m.columns)):reshape(sizes)
  y = bias and y + (bias.dtype == "f32" and bias or bias:cast "f32") or y
  return x.dtype == "f32" and y or y:cast(x.dtype)
end

-- ---- layers ----

local function check_type(op, type_name, columns, what)
  local known = type(type_name) == "string" and core.blocks_about(type_name) or nil
  if float8.names[type_name] then
    return
  elseif not known or not known.made then
    core.fail("ARG", op, ('weights become "q4_0", "q8_0", "f8_e4m3" or "f8_e5m2", not %s'):format(
      core.shown(type_name)))
  elseif columns % known.elements ~= 0 then
    core.fail("ARG", op, ("%s%d inputs are no multiple of %d, which a block of %s has"):format(what or "", columns,
      known.elements, type_name), what and "skip = a pattern of paths leaves layers as they are" or nil)
  end
end

-- Of a network, so that errors name the layer.
local function check_layer_type(op, path, layer, type_name)
  check_type(op, type_name, layer.inputs or layer.size, ("'%s' (%s): "):format(path, layer:describe()))
end

-- How many bits numbers of x have, where weights become a type, or nil: any.
function core.check_activations(op, bits, type_name)
  if bits ~= nil and float8.names[type_name] then
    core.fail("ARG", op, ("activations are bits of integers; floats of 8 bits, %s, multiply what goes in as it is")
      :format(core.shown(type_name)))
  elseif bits ~= nil and bits ~= 8 and bits ~= 16 then
    core.fail("ARG", op, ("activations are 8 or 16 bits, not %s"):format(core.shown(bits)))
  end
  return bits or 16
end

local function check_static(op, options, format)
  if options.static and float8.names[format] then
    core.fail("ARG", op, ("static is of integers; floats of 8 bits, %s, multiply what goes in as it is"):format(
      core.shown(format)))
  end
end

-- Codes, u8[rows, columns], with a scale; without one elements are what the codes say.
local function make_floats(op, layer, rows, format, scale)
  scale = scale or dc.ones "f32[]"
  if rows.dtype ~= "u8" or #rows.shape ~= 2 then
    core.fail("ARG", op, ("rows are %s[%s]; u8[rows, columns] is needed"):format(rows.dtype, core.sizes(rows.shape)))
  end
  core.check_tensor(op, scale)
  local n, columns = rows.shape[1], rows.shape[2]
  if not core.is_float(scale.dtype) or not float8.shares(n, columns, scale.shape) then
    core.fail("ARG", op, ("scale is %s[%s]; floats are needed: one, one for each of %d rows, or of blocks of 128 x 128")
      :format(scale.dtype, core.sizes(scale.shape), n))
  elseif format == "f8_e4m3" and (rows & 127):eq(127):any():item() then
    core.fail("ARG", op, "a weight is not finite")
  end
  fill_floats(layer, format, rows, scale)
  return n, columns
end

-- Rows as a file has them, u8[rows, bytes of a row], of any type that is multiplied: how many columns they have.
local function columns_of(op, rows, format)
  local known = type(format) == "string" and core.blocks_about(format) or nil
  if not known then
    core.fail("ARG", op, ("rows are of a packed type, not %s"):format(core.shown(format)),
      "dc.load tells the types of a file")
  elseif rows.dtype ~= "u8" or #rows.shape ~= 2 then
    core.fail("ARG", op, ("rows are %s[%s]; u8[rows, bytes] is needed"):format(rows.dtype, core.sizes(rows.shape)))
  elseif rows.shape[2] == 0 or rows.shape[2] % known.bytes ~= 0 then
    core.fail("ARG", op, ("rows of %d bytes are no blocks of %s, of %d bytes each"):format(rows.shape[2], format,
      known.bytes))
  end
  return rows.shape[2] // known.bytes * known.elements
end

-- Fills a layer with the blocks of the weights of another, or with rows of a file; returns rows and columns.
local function make(op, layer, class, from, format, options)
  if class == nn.Linear then
    core.options(op, options, "activations", "scale", "static")
    core.check_flags(op, options or {}, "static")
  else
    core.options(op, options, "activations", "scale")
  end
  local o, rows, columns = options or {}, from, nil
  local activations = core.check_activations(op, o.activations, format)
  check_static(op, o, format)
  if o.scale ~= nil and not (float8.names[format] and core.kind(from)) then
    core.fail("ARG", op, 'scale is for codes of "f8_e4m3" or "f8_e5m2", u8[rows, columns]')
  elseif getmetatable(from) == Unread then
    if from.scale then
      fill_floats(layer, format, dc.zeros(("u8[%d, %d]"):format(from.shape[1], from.shape[2])), from.scale)
    else
      fill(layer, format, activations, unread_blocks(format, from.shape))
    end
    return from.shape[1], from.shape[2]
  elseif core.kind(from) then
    core.refuse_tracing(op)
    if float8.names[format] then
      return make_floats(op, layer, from, format, o.scale)
    end
    columns = columns_of(op, from, format)
  elseif not core.is_layer(from) or getmetatable(from) ~= class then
    core.fail("ARG", op, ("an %s is needed, or u8[rows, bytes], not %s"):format(class == nn.Linear and "nn.Linear"
      or "nn.Embedding", core.describe(from)))
  else
    core.refuse_inside(from, op)
    local weight = class == nn.Linear and from.weight:transpose() or from.weight
    columns = weight.shape[2]
    check_type(op, format, columns)
    if float8.names[format] then
      fill_floats(layer, format, core.f8_pack(op, weight:cast "f32", format))
      return weight.shape[1], columns
    end
    rows = core.blocks_pack(op, weight:cast "f32", format)
  end
  fill(layer, format, activations, core.blocks_lay(op, rows, format))
  return rows.shape[1], columns
end

-- A scale for all that goes in, instead of one for each block of each row.
function core.make_static(layer, step)
  if layer.input_scale then
    layer.input_scale:set(dc.full("f32[]", step))
  else
    layer.input_scale, outside[layer] = dc.state(dc.full("f32[]", step)), nil
    core.keeps_dtype[layer.input_scale] = true
  end
end

---A linear layer with quantised weights: integers of 4 or 8 bits and a scale for each 32 inputs, in the types of GGUF.
---What goes in becomes integers of 16 bits, or of 8, with a scale for each block as well, and integers are multiplied:
---where the machine has instructions for it (vpdpbusd of AVX512-VNNI, dp4a) by these. The result is that of the
---dequantised weights within what rounding x changes: of the largest element of each block 0.002 %, with 8 bits 0.4 %,
---which takes half of the arithmetic. Weights are states, not trained; gradients of x, inside typed functions, are
---those of the dequantised weights.
---
---    local layer = nn.QuantizedLinear(nn.Linear(64, 10), "q8_0")
---    layer(dc.ones "f32[1, 64]")
---
---Instead of a layer it takes rows of a file, u8[outputs, bytes], which dc.load gives with packed = true: of q4_0,
---q4_1, q5_0, q5_1, q8_0, q4_k, q5_k or q6_k.
---
---"f8_e4m3" and "f8_e5m2" are floats of 8 bits (Micikevicius et al. 2022, FP8 Formats for Deep Learning,
---arXiv:2209.05433; OCP 8-bit Floating Point Specification), of any number of inputs, with an f32 scale for each output
---that makes its largest weight the largest number of the type, 448 or 57344. What goes in is multiplied as it is: the
---result is that of the dequantised weights. Of rows of them, u8[outputs, inputs], `scale` is a tensor: one number, one
---for each output, or one for each block of 128 x 128; 1 without.
---
---    nn.QuantizedLinear(dc.full("u8[10, 64]", 0x38), "f8_e4m3", { scale = dc.full("f32[10, 1]", 0.5) })
---
---Options: activations (16), 8 or 16 bits; scale; static (false): there is one scale for all that goes in, a state
---input_scale, which nn.calibrate or a file sets; results are NaN until then.
---
---Errors: DC0101 for another type than these, for inputs of "q4_0" and "q8_0" that are no multiple of 32, for weights
---that are not finite, and for a scale of other sizes; when it is called, DC0301 where sizes differ, DC0202 for
---integers.
---@class deepc.nn.QuantizedLinear: deepc.nn.Layer
local QuantizedLinear = nn.class "nn.QuantizedLinear"
nn.QuantizedLinear = QuantizedLinear

---@param layer deepc.nn.Linear|deepc.Tensor with its weights, or rows as dc.load gives them
---@param type string "q4_0", "q8_0", "f8_e4m3" or "f8_e5m2"; of rows their type
---@param options? { activations?: 8|16, scale?: deepc.Tensor, static?: boolean } 16
function QuantizedLinear:init(layer, type, options)
  self.outputs, self.inputs = make("nn.QuantizedLinear", self, nn.Linear, layer, type, options)
  if options and options.static then
    core.make_static(self, 0 / 0)
  end
  self.bias = core.is_layer(layer) and layer.bias or nil
end

function QuantizedLinear:describe()
  return ("nn.QuantizedLinear %d -> %d, %s%s"):format(self.inputs, self.outputs, self.format,
    self.input_scale and ", static" or "")
end

function QuantizedLinear:forward(x)
  if core.observe then -- of nn.calibrate
    core.observe(self, x)
  end
  local y = multiply("nn.QuantizedLinear", self, x, self.bias)
  return y
end

---The weights as floats, [inputs, outputs], as nn.Linear has them.
---
---    nn.QuantizedLinear(nn.Linear(64, 10), "q8_0"):dequantize()
---@return deepc.Tensor # f32
function QuantizedLinear:dequantize()
  return dequantized(self):transpose()
end

---An embedding with quantised rows, as nn.QuantizedLinear has them. `project` multiplies by them, for models whose
---embedding is their last layer, too.
---
---    local layer = nn.QuantizedEmbedding(nn.Embedding(100, 64), "q8_0")
---    layer(dc.tensor({ 1, 2 }, "i32"))
---
---Errors: as nn.QuantizedLinear; when it is called, DC0701 for an integer outside.
---@class deepc.nn.QuantizedEmbedding: deepc.nn.Layer
local QuantizedEmbedding = nn.class "nn.QuantizedEmbedding"
nn.QuantizedEmbedding = QuantizedEmbedding

---@param layer deepc.nn.Embedding|deepc.Tensor with its rows, or rows as dc.load gives them
---@param type string "q4_0", "q8_0", "f8_e4m3" or "f8_e5m2"; of rows their type
---@param options? { activations?: 8|16, scale?: deepc.Tensor } 16
function QuantizedEmbedding:init(layer, type, options)
  self.count, self.size = make("nn.QuantizedEmbedding", self, nn.Embedding, layer, type, options)
end

function QuantizedEmbedding:describe()
  return ("nn.QuantizedEmbedding %d -> %d, %s"):format(self.count, self.size, self.format)
end

function QuantizedEmbedding:forward(positions)
  local op = "nn.QuantizedEmbedding"
  core.check_tensor(op, positions)
  local sizes = positions.shape
  if not positions.dtype:match "^[iu]" then
    core.fail("DTYPE", op, ("positions are %s; integers are needed"):format(positions.dtype), nil, "positions",
      positions)
  end
  core.check_row(positions, self.count, op)
  local y = rows_of(self, positions:reshape(-1))
  sizes[#sizes + 1] = self.size
  return y:reshape(sizes)
end

---x times the rows turned: [..., count] of [..., size].
---
---    nn.QuantizedEmbedding(nn.Embedding(100, 64), "q8_0"):project(dc.ones "f32[1, 64]")
---
---Errors: DC0301 where sizes differ, DC0202 for integers.
---@param x deepc.Tensor
---@return deepc.Tensor
function QuantizedEmbedding:project(x)
  local y = multiply("nn.QuantizedEmbedding.project", self, x)
  return y
end

---The rows as floats, [count, size].
---
---    nn.QuantizedEmbedding(nn.Embedding(100, 64), "q8_0"):dequantize()
---@return deepc.Tensor # f32
function QuantizedEmbedding:dequantize()
  local y = dequantized(self)
  return y
end

core.method_entries(QuantizedLinear, "dequantize")
core.method_entries(QuantizedEmbedding, "project", "dequantize")

-- ---- networks ----

local function check_patterns(op, options)
  for _, key in ipairs { "only", "skip" } do
    if options[key] ~= nil and type(options[key]) ~= "string" then
      core.fail("ARG", op, ("%s is a pattern of paths, not %s"):format(key, core.shown(options[key])),
        'skip = "head$"')
    end
  end
  core.check_flags(op, options, "embeddings", "static")
end

---Puts nn.QuantizedLinear in the place of linear layers of a network, which keeps its own no longer: a layer that
---stands in several places is one layer afterwards, too. Nothing has changed where there is an error.
---
---    local net = nn.Sequential { nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10) }
---    nn.quantize(net, "q8_0", { skip = "^3$" })
---
---Options: only and skip, Lua patterns of paths of layers ("^model%.layers", "lm_head$"); embeddings (false; true:
---nn.Embedding becomes nn.QuantizedEmbedding, too); activations (16), 8 or 16 bits; static (false), for files of what
---nn.calibrate has seen.
---
---Errors: DC0101 for another type than "q4_0", "q8_0", "f8_e4m3" and "f8_e5m2", for a layer whose inputs are no
---multiple of 32 (of integers) or whose weights are not finite, for activations beside floats of 8 bits, and where
---there is no layer to quantise.
---@param net deepc.nn.Layer
---@param type "q4_0"|"q8_0"|"f8_e4m3"|"f8_e5m2"
---@param options? { only?: string, skip?: string, embeddings?: boolean, activations?: 8|16, static?: boolean }
---@return deepc.nn.Layer # net itself
function nn.quantize(net, type, options)
  local op = "nn.quantize"
  core.check_layer(op, net)
  core.refuse_inside(net, op)
  core.options(op, options, "only", "skip", "embeddings", "activations", "static")
  local o, made, count = options or {}, {}, 0
  check_patterns(op, o)
  local how = { activations = o.activations, static = o.static }
  core.check_activations(op, o.activations, type)
  check_static(op, o, type)
  local function visit(class, quantized_class)
    core.replace_layers(net, "", class, function(layer, path)
      if not made[layer] and (not o.only or path:find(o.only)) and not (o.skip and path:find(o.skip)) then
        check_layer_type(op, path, layer, type)
        made[layer], count = quantized_class(layer, type, quantized_class == QuantizedLinear and how
          or { activations = how.activations }), count + 1
      end
    end, {})
  end
  visit(nn.Linear, QuantizedLinear)
  if o.embeddings then
    visit(nn.Embedding, QuantizedEmbedding)
  end
  if count == 0 then
    core.fail("ARG", op, ("%s has no linear layer to quantise"):format(net:describe()), "print(net) shows its layers")
  end
  for _, class in ipairs { nn.Linear, nn.Embedding } do
    core.replace_layers(net, "", class, function(layer) return made[layer] end, {})
  end
  core.renew_paths(net)
  return net
end
