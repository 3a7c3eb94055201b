-- Weights by name: of a file, or of several that an index names, into the cells of a model. Names, sizes and dtypes are
-- all compared before a cell is set.

local dc = require "deepc"
local nn = require "deepc.nn"
require "deepc.operands"
local _, core = ...

local float8 = core.float8

local weights = {}

-- ---- sources ----

local LONGEST = 4096 -- values of lists in metadata that are looked at: one for each layer, no vocabulary

-- An open file: its path, names of its tensors, in order and as keys, and metadata. Closing it closes the file.
local Source = {}
Source.__index = Source

function Source:__close()
  local _ <close> = self.file
end

local function open(op, path)
  local source = setmetatable({ op = op, path = path, has = {} }, Source)
  source.file = core.file_open(path)
  source.names, source.metadata = core.file_list(source.file, LONGEST)
  for _, name in ipairs(source.names) do
    source.has[name] = true
  end
  source.scales = float8.scales(source.file, source.has)
  source.beside = float8.beside(source.file, source.has, source.scales)
  return source
end

-- Names of weights in folders, the first that there is.
local NAMES = { "model.safetensors", "model.safetensors.index.json", "diffusion_pytorch_model.safetensors",
  "diffusion_pytorch_model.safetensors.index.json", "pytorch_model.bin" }

-- The tensors of a folder of Hugging Face, or of a file.
function weights.open(op, path)
  if path:find "%.safetensors$" or path:find "%.gguf$" then
    return open(op, path)
  end
  for _, name in ipairs(NAMES) do
    local at = ("%s/%s"):format(path, name)
    if core.file_exists(op, at) then
      return open(op, at)
    end
  end
  core.fail("FILE", op, ("%s: has neither model.safetensors nor model.safetensors.index.json"):format(path))
end

-- ---- matching ----

local function matches(name, patterns)
  for _, pattern in ipairs(patterns or {}) do
    if name:find(pattern) then
      return true
    end
  end
  return false
end

-- Paths count parts of lists from 1, files from 0.
local function name_there(path)
  return (("." .. path):gsub("%.(%d+)%f[.\0]", function(n) return (".%d"):format(tonumber(n) - 1) end):sub(2))
end

local function quoted(names)
  table.sort(names)
  return core.quoted_names(names)
end

-- The file's names of tensors by what the model calls them.
local function rename(source, rules)
  local named, prefix, prefixed = {}, rules.prefix, false
  for _, name in ipairs(source.names) do
    prefixed = prefixed or prefix and name:sub(1, #prefix) == prefix
  end
  for _, name in ipairs(source.names) do
    local ours = prefixed and name:sub(1, #prefix) == prefix and name:sub(#prefix + 1) or name
    if rules.rename then
      ours = rules.rename(ours)
    end
    if ours and named[ours] then
      core.fail("MISFIT", source.op, ("%s: '%s' and '%s' are both '%s'"):format(source.path, named[ours], name, ours))
    elseif ours then
      named[ours] = name
    end
  end
  return named
end

-- Which tensor each cell gets, as { from, cell, name }; fails where a cell has none or a tensor no place.
local function match(source, net, rules)
  local there = rules.there and function(path) return rules.there(name_there(path)) end or name_there
  local named, found, used, missing, unexpected = rename(source, rules), {}, {}, {}, {}
  for _, entry in ipairs(net:named_cells()) do
    local from
    for i = 0, #(entry.also or {}) do
      local name = there(i == 0 and entry[1] or entry.also[i])
      from, used[name] = from or named[name], true
    end
    local name = there(entry[1])
    if from then
      found[#found + 1] = { from = from, cell = entry[2], name = name }
    elseif not matches(name, rules.optional) then
      missing[#missing + 1] = name
    end
  end
  for name, from in pairs(named) do
    if not used[name] and not matches(name, rules.ignored) and not source.beside[from] then
      unexpected[#unexpected + 1] = name
    end
  end
  if #missing > 0 then
    core.fail("MISFIT", source.op, ("%s: has no tensor %s"):format(source.path, quoted(missing)),
      #unexpected > 0 and ("it has %s"):format(quoted(unexpected)) or nil)
  elseif #unexpected > 0 then
    core.fail("MISFIT", source.op, ("%s: %s %s no place in %s"):format(source.path, quoted(unexpected),
      #unexpected == 1 and "has" or "have", net:describe()))
  end
  return found
end

-- Whether the tensor is the weight of a linear layer that lies the other way round.
local function is_turned(source, pair, rules)
  if not core.is_linear[pair.cell] then
    return false
  end
  local said = source.metadata["deepc.linear:" .. pair.from] or source.metadata["deepc.linear"]
  return (said or rules.linear or "out, in") == "out, in"
end

local function check_pair(source, pair)
  local kind, shape, _, dtype, packed = core.file_about(source.file, pair.from)
  local cell, what = pair.cell, ("%s: tensor '%s'"):format(source.path, pair.from)
  local want, fits = cell.shape, true
  for i = 1, math.max(#want, #shape) do
    fits = fits and shape[pair.turned and #want == 2 and 3 - i or i] == want[i]
  end
  if not dtype and not packed then
    core.fail("MISFIT", source.op, ("%s has dtype '%s', which is not read"):format(what, kind))
  elseif not fits then
    core.fail("MISFIT", source.op, ("%s is [%s], %s of the model [%s]%s"):format(what, table.concat(shape, ", "),
      pair.name, table.concat(want, ", "), pair.turned and " turned" or ""), "config and weights are of one model")
  elseif dtype ~= cell.dtype and not (core.is_float(dtype or "f32") and core.is_float(cell.dtype)) then
    core.fail("MISFIT", source.op, ("%s is %s, the model has %s"):format(what, dtype, cell.dtype))
  elseif source.scales[pair.from] then
    float8.check_scale(source.op, source.path, source.file, pair.from, source.scales[pair.from])
  end
end

local function take(source, name)
  return core.file_take(source.file, { name }, { false })[1]
end

-- Cells whose tensors are changed on the way.
local function adapt(source, pair, rules)
  local value, scale = core.file_take(source.file, { pair.from }, { "f32" })[1], source.scales[pair.from]
  value = rules.adapt(pair.name, scale and float8.scaled(value, take(source, scale)) or value)
  value = pair.turned and value:transpose() or value
  pair.cell:set(pair.cell.dtype == "f32" and value or value:cast(pair.cell.dtype))
end

-- Zeros of the type of a scale; 1 where there is none.
local function unread_scale(source, name)
  if not name then
    return dc.ones "f32[]"
  end
  local _, shape, _, dtype = core.file_about(source.file, name)
  return dc.zeros(("%s[%s]"):format(dtype, table.concat(shape, ", ")))
end

-- Layers whose weights stay packed, in place of those with cells of floats; what they are read into goes into `list`.
local function replace_packed(source, net, packed, activations, list)
  local function swap(quantized)
    return function(layer)
      local pair = packed[rawget(core.fields_of(layer), "weight")]
      if pair then
        local shape, float = core.file_shape(source.file, pair.from), float8.names[pair.packed] ~= nil
        local scale = float and source.scales[pair.from]
        local made = quantized(core.unread_rows(shape[1], shape[2], float and unread_scale(source, scale)), pair.packed,
          { activations = not float and activations or nil })
        made.bias = layer.bias
        if float then
          list:add(pair.from, made.weight, pair.packed)
        end
        if scale then
          list:add(scale, made.weight_scale or made.weight_scale_inv, false)
        end
        for _, part in ipairs { "words", "scales", "mins" } do
          if made[part] then
            list:add(pair.from, made[part], part)
          end
        end
        return made
      end
    end
  end
  core.replace_layers(net, "", nn.Linear, swap(nn.QuantizedLinear), {})
  core.replace_layers(net, "", nn.Embedding, swap(nn.QuantizedEmbedding), {})
  core.renew_paths(net)
end

-- What is read together: names in the file, cells and how they get it (core.file_put).
local List = {}
List.__index = List

local function new_list()
  return setmetatable({ from = {}, cells = {}, forms = {} }, List)
end

function List:add(from, cell, form)
  local n = #self.from + 1
  self.from[n], self.cells[n], self.forms[n] = from, cell, form
end

-- Whether a tensor of the file is multiplied as it is there: a matrix of a linear layer or an embedding.
local function stays_packed(source, pair)
  local _, shape, _, _, packed = core.file_about(source.file, pair.from)
  pair.packed = packed
  return packed and (core.blocks_about(packed) or float8.names[packed]) and #shape == 2
    and (pair.turned or pair.embedding)
end

-- Sets the cells of a model. rules: prefix, which names may have; rename(name), nil for what is left out; ignored and
-- optional, patterns of names without a place and of cells that may stay; linear, "in, out" where matrices lie as here;
-- there(name), what a cell of that path, counted from 0, is called; adapt(name, value), another value, of names that
-- match the pattern adapted. packed: quantised weights stay as they are in the file, with that many bits
-- for activations. later: another thread reads what needs no adapting, and closes the file.
function weights.fill(source, net, rules, packed, later)
  local found, stays, scaled, embeddings, list = match(source, net, rules), {}, {}, {}, new_list()
  core.each_layer(net, function(layer)
    if getmetatable(layer) == nn.Embedding then
      embeddings[layer.weight] = true
    end
  end)
  for _, pair in ipairs(found) do
    pair.turned, pair.embedding = is_turned(source, pair, rules), embeddings[pair.cell]
    check_pair(source, pair)
  end
  for _, pair in ipairs(found) do
    if packed and stays_packed(source, pair) then
      stays[pair.cell] = pair
    elseif rules.adapted and pair.name:find(rules.adapted) then
      adapt(source, pair, rules)
    else
      list:add(pair.from, pair.cell, pair.turned)
      local scale = source.scales[pair.from]
      scaled[#scaled + 1] = scale and { cell = pair.cell, turned = pair.turned, scale = take(source, scale) }
    end
  end
  if next(stays) then
    replace_packed(source, net, stays, packed, list)
  end
  core.file_put(source.file, list.from, list.cells, list.forms, true, nil, nil, later)
  for _, each in ipairs(scaled) do
    float8.scale_cell(each.cell, each.turned, each.scale)
  end
end

return weights
