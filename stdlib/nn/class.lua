-- What layers are made of. A layer is a table with a class; calling it calls its :forward and tells errors
-- where they happened ("net.2 (nn.Linear 784 -> 10)").
--
-- A layer's parameters are its fields: cells, other layers, plain tables of these. They are listed by
-- path, integer keys as numbers before names; each cell once, under its first path.

local _, core = ...
require "deepc.operands"

---Layers and losses.
---
---    local nn = require "deepc.nn"
---    local net = nn.Sequential { nn.Flatten(), nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10) }
---@class deepc.nn
local nn = {}

---A table of parameters, states and other layers. Calling it calls its :forward and tells errors where
---they happened: "net.2 (nn.Linear 784 -> 10)".
---@class deepc.nn.Layer
---@overload fun(...: any): any
local Layer = {}

-- A layer keeps its fields in a table of their own (_own), so that every assignment reaches
-- __newindex: another part or another setting is another structure, and with it another specialisation
-- of the typed functions that call the layer. What they compare is one static value (_state): structure,
-- mode, frozen or not.

-- True for weights of linear layers, [inputs, outputs], which files of other programs have the other way round; false
-- for matrices that all have alike.
core.is_linear = setmetatable({}, { __mode = "k" })

-- ---- paths ----

local function is_layer(v)
  local mt = type(v) == "table" and getmetatable(v)
  return mt and mt._is_layer == true
end
core.is_layer = is_layer

local function before(a, b)
  if type(a) ~= type(b) then
    return type(a) == "number"
  end
  return a < b
end

local function own(layer)
  return rawget(layer, "_own")
end

-- The fields of a layer, or a plain table itself.
local function fields_of(t)
  return is_layer(t) and own(t) or t
end

local UNDERSCORE = ("_"):byte()

-- The keys under which parts may stand, in order.
local function part_keys(t)
  local keys, names, numbers = {}, 0, 0
  for k, v in next, t do
    local kind = type(v)
    if kind == "table" or kind == "userdata" then
      if type(k) == "string" and k:byte() ~= UNDERSCORE then
        names = names + 1
        keys[names + numbers] = k
      elseif math.type(k) == "integer" then
        numbers = numbers + 1
        keys[names + numbers] = k
      end
    end
  end
  if names > 0 and numbers > 0 then
    table.sort(keys, before)
  elseif names > 1 or numbers > 1 then
    table.sort(keys)
  end
  return keys
end

-- Calls see(part, path) for the layers and cells below t, each once.
local function walk(t, path, see, seen)
  t = fields_of(t)
  for _, key in ipairs(part_keys(t)) do
    local part, at = rawget(t, key), path .. "." .. key
    local kind = core.kind(part)
    if not seen[part] and (kind == "param" or kind == "state") then
      seen[part] = true
      see(part, at)
    elseif not seen[part] and type(part) == "table" and (is_layer(part) or not getmetatable(part)) then
      seen[part] = true
      if is_layer(part) then
        see(part, at)
      end
      walk(part, at, see, seen)
    end
  end
end

-- Calls see(cell, path) for every cell below t under each of its paths.
local function walk_cells(t, path, see, above)
  t = fields_of(t)
  for _, key in ipairs(part_keys(t)) do
    local part, at = rawget(t, key), path .. "." .. key
    local kind = core.kind(part)
    if kind == "param" or kind == "state" then
      see(part, at)
    elseif type(part) == "table" and not above[part] and (is_layer(part) or not getmetatable(part)) then
      above[part] = true
      walk_cells(part, at, see, above)
      above[part] = nil
    end
  end
end

local function short_name(layer)
  return (getmetatable(layer).__name:gsub("^.*%.", ""))
end

-- What stands behind the path of a cell whose place another one has taken, for who still trains it.
local REPLACED = " (replaced)"

-- Gives the layer and everything below it the path that errors show; the first one stays.
local function assign_paths(layer, root)
  rawset(layer, "_path", root)
  walk(layer, root, function(part, path)
    if is_layer(part) then
      rawset(part, "_path", rawget(part, "_path") or path)
    elseif (core.label(part) or REPLACED):sub(-#REPLACED) == REPLACED then
      core.label(part, path)
    end
  end, { [layer] = true })
end

-- What stood at this place of a layer has its path no more.
local function forget_paths(part, at)
  local function forget(p)
    if is_layer(p) then
      local path = rawget(p, "_path")
      if path and (path == at or path:sub(1, #at + 1) == at .. ".") then
        rawset(p, "_path", nil)
      end
    elseif core.kind(p) == "param" or core.kind(p) == "state" then
      local label = core.label(p)
      if label and (label == at or label:sub(1, #at + 1) == at .. ".") then
        core.label(p, label .. REPLACED)
      end
    end
  end
  forget(part)
  if type(part) == "table" and (is_layer(part) or not getmetatable(part)) then
    walk(part, at, forget, { [part] = true })
  end
end

-- The layer that a part is in, itself or in plain tables of it. Neither is kept alive by the other.
local above = setmetatable({}, { __mode = "kv" })

-- What stands below the layer is in it, up to other layers. One that was called by itself before gets another path.
local function adopt(layer, t, seen)
  for _, part in next, t do
    if is_layer(part) then
      if not above[part] and rawget(part, "_path") and part ~= layer then
        forget_paths(part, rawget(part, "_path"))
      end
      above[part] = layer
    elseif type(part) == "table" and not getmetatable(part) and not seen[part] then
      seen[part] = true
      adopt(layer, part, seen)
    end
  end
end

-- A part that is called by itself has its path in the whole network.
local function root_of(layer)
  local seen = {}
  while above[layer] and not seen[layer] do
    seen[layer] = true
    layer = above[layer]
  end
  return layer
end

local function path_of(layer)
  if not rawget(layer, "_path") then
    local root = root_of(layer)
    assign_paths(root, rawget(root, "_path") or core.name_of(root) or short_name(root))
  end
  if not rawget(layer, "_path") then -- it is in the network no more
    assign_paths(layer, core.name_of(layer) or short_name(layer))
  end
  return rawget(layer, "_path")
end

-- ---- structure and mode ----

local function mode_of(layer)
  return ("%s%s, structure %d"):format(rawget(layer, "_eval") and "eval" or "train",
    rawget(layer, "_frozen") and ", frozen" or "", rawget(layer, "_structure") or 1)
end

-- The state has changed: the static object gets the new value, which guards compare.
local function tell(layer)
  local state = rawget(layer, "_state")
  if state then
    state.value = mode_of(layer)
  end
end

-- A typed function that is being traced depends on the layer as it is.
local function depend(layer)
  local state = rawget(layer, "_state")
  if not state then
    state = core.static(mode_of(layer), path_of(layer))
    rawset(layer, "_state", state)
  end
  for key, v in next, own(layer) do
    if type(v) == "table" and not is_layer(v) then
      core.watch(v, ("%s.%s"):format(path_of(layer), tostring(key)))
    end
  end
  if rawget(layer, "_private") then
    core.watch(rawget(layer, "_private"), path_of(layer))
  end
  core.watch(getmetatable(layer), path_of(layer))
  return state.value
end

local function text_of(layer)
  if core.tracing() then
    depend(layer)
  end
  return ("%s (%s)"):format(path_of(layer), layer:describe())
end

-- A parameter whose place a tensor takes would never be trained or saved again.
local function refuse_tensor(layer, key, value)
  core.fail("ARG", nil, ("%s.%s is a %s; %s cannot take its place"):format(path_of(layer), key,
    core.kind(own(layer)[key]) == "param" and "parameter" or "state", core.describe(value)),
    (".%s:set(value) changes its value; another dc.param or dc.state may take its place"):format(key))
end

-- Is the value a cell or a layer, or a plain table that holds one?
local function has_parts(value)
  local kind, found = core.kind(value), false
  if kind == "param" or kind == "state" or is_layer(value) then
    return true
  elseif kind == nil and type(value) == "table" and not getmetatable(value) then
    walk(value, "", function() found = true end, { [value] = true })
  end
  return found
end

-- The layer has other parts, or other settings.
local function restructure(layer)
  if rawget(layer, "_state") and not core.tracing() then
    rawset(layer, "_structure", (rawget(layer, "_structure") or 1) + 1)
    tell(layer)
    assign_paths(layer, path_of(layer))
  end
end

-- What begins with '_' may change without being another structure; typed functions compare it at each call.
local function assign_private(layer, key, value)
  local private = rawget(layer, "_private")
  if not private then
    private = {}
    rawset(layer, "_private", private)
    restructure(layer)
    if core.tracing() then
      core.watch(private, path_of(layer))
    end
  end
  private[key] = value
end

local function assign(layer, key, value)
  local fields = own(layer)
  if type(key) == "string" and key:sub(1, 1) == "_" then
    if has_parts(value) then
      core.fail("ARG", nil, ("%s.%s: what begins with '_' is no part of a layer, so it would not be trained or saved")
        :format(path_of(layer), key), ("self.%s = ..."):format(key:gsub("^_+", "")))
    end
    return assign_private(layer, key, value)
  end
  if key == "training" and type(value) == "boolean" then
    core.fail("ARG", nil, ("%s.training is read, not assigned"):format(path_of(layer)),
      (value and "net:train()" or "net:eval()") .. " switches it and all layers below")
  end
  local cell = core.kind(fields[key])
  if cell and cell ~= "tensor" and (core.kind(value) == "tensor" or type(value) == "number") then
    refuse_tensor(layer, key, value)
  end
  local before_it = fields[key]
  local changed = not rawequal(before_it, value)
  fields[key] = value
  if changed and before_it ~= nil and rawget(layer, "_path") then
    forget_paths(before_it, ("%s.%s"):format(layer._path, tostring(key)))
    assign_paths(layer, layer._path)
  end
  if changed then
    adopt(layer, { value }, {})
    restructure(layer)
  end
end

-- Calls set(layer) for it and every layer below.
local function each_layer(layer, set)
  set(layer)
  walk(layer, "", function(part)
    if is_layer(part) then
      set(part)
    end
  end, { [layer] = true })
  return layer
end

local function check_self(op, self)
  if not is_layer(self) then
    core.fail("ARG", op, "a layer is needed, not " .. core.describe(self), ("with a colon: net:%s()"):format(op))
  end
end

local function refuse_inside(layer, what)
  if core.tracing() then
    core.fail("ASSIGNED", nil, ("%s is called for %s while a typed function is traced, which happens once")
      :format(what, path_of(layer)), "call it outside, before the function")
  end
end

-- ---- classes ----

---What stands for the layer in errors: "nn.Linear 784 -> 10".
---@return string
function Layer:describe()
  check_self("describe", self)
  return getmetatable(self).__name
end

-- For a list of parameters, the path of each below the layer that gave it: optimisers name their states so.
core.paths_of = setmetatable({}, { __mode = "k" })

-- Whether the options of parameters(), freeze() and unfreeze() choose a path.
local function chooser(op, options)
  core.options(op, options, "match", "except")
  for _, key in ipairs { "match", "except" } do
    local pattern = options and options[key]
    if pattern ~= nil and (type(pattern) ~= "string" or not pcall(string.find, "", pattern)) then
      core.fail("ARG", op, ("%s is a pattern of Lua for paths, not %s"):format(key, core.shown(pattern)),
        'match = "^encoder%."')
    end
  end
  local match, except = options and options.match, options and options.except
  return function(path)
    return (not match or path:find(match) ~= nil) and not (except and path:find(except))
  end
end

-- Layers of the script's classes whose fields were looked at.
local looked_at = setmetatable({}, { __mode = "k" })

-- A float as a field of a layer that is no cell is never trained, nor saved, which is told once.
local function note_tensors(layer)
  if looked_at[layer] or getmetatable(layer).__name:find "%." then -- those of the library know what they do
    return
  end
  looked_at[layer] = true
  for _, key in ipairs(part_keys(own(layer))) do
    local v = own(layer)[key]
    if core.kind(v) == "tensor" and (core.is_float(v.dtype) or core.is_complex(v.dtype)) then
      core.note(("%s.%s is a tensor, neither trained nor saved: dc.param(value) is trained, dc.state(value) is saved")
        :format(path_of(layer), key))
    end
  end
end

-- A pattern that finds nothing is a mistake.
local function refuse_no_match(op, layer, options)
  local named = layer:named_cells()
  core.fail("ARG", op, ("no parameter of %s has a path that %s"):format(path_of(layer),
    options.match and ("matches '%s'"):format(options.match) or ("does not match '%s'"):format(options.except)),
    named[1] and ("paths are like '%s'"):format(named[#named][1]) or nil)
end

---The cells that are trained, in the order of their paths.
---
---    net:parameters { match = "weight$", except = "^1%." }
---
---Options: match, a pattern of Lua that paths have to match (string.find), except, one that they must not match. So an
---optimiser, or a setting of one, has a group of parameters.
---
---Errors: DC0101 where no parameter is left by a pattern.
---@param options? { match?: string, except?: string }
---@return deepc.Cell[]
function Layer:parameters(options)
  check_self("parameters", self)
  local list, paths, chosen = {}, {}, chooser("parameters", options)
  assign_paths(self, path_of(self))
  core.each_layer(self, note_tensors)
  for _, named in ipairs(self:named_parameters()) do
    if chosen(named[1]) then
      list[#list + 1], paths[named[2]] = named[2], named[1]
    end
  end
  if #list == 0 and options and (options.match or options.except) then
    refuse_no_match("parameters", self, options)
  end
  core.paths_of[list] = paths
  return list
end

---The same with their paths, relative to this layer: a list of { path, cell }.
---@return table[]
function Layer:named_parameters()
  check_self("named_parameters", self)
  local list = {}
  walk(self, "", function(part, path)
    if core.kind(part) == "param" then
      list[#list + 1] = { path:sub(2), part }
    end
  end, { [self] = true })
  return list
end

---Everything that is saved of it: parameters, frozen ones too, and states, in the order of their paths. A
---cell that stands in several places is listed once, under its first path; `also` has the others.
---
---    for _, named in ipairs(net:named_cells()) do print(named[1], named[2].dtype) end
---@return table[] # { path, cell, also = { path } }
function Layer:named_cells()
  check_self("named_cells", self)
  local list, entry_of = {}, {}
  walk_cells(self, "", function(cell, path)
    local entry = entry_of[cell]
    if entry then
      entry.also = entry.also or {}
      table.insert(entry.also, path:sub(2))
    else
      entry = { path:sub(2), cell }
      entry_of[cell] = entry
      list[#list + 1] = entry
    end
  end, { [self] = true })
  return list
end

local function set_mode(layer, what, eval)
  check_self(what, layer)
  refuse_inside(layer, what .. "()")
  return each_layer(layer, function(l)
    rawset(l, "_eval", eval)
    tell(l)
  end)
end

---Training mode, in which every layer begins: dropout drops, `self.training` is true. For this layer and
---all below it. Typed functions that call it have a specialisation for each mode.
---
---Errors: DC0101 for what is no boolean.
---@param training? boolean true; false: evaluation mode, as :eval()
---@return deepc.nn.Layer # itself
function Layer:train(training)
  check_self("train", self)
  if training ~= nil and type(training) ~= "boolean" then
    core.fail("ARG", "train", "true or false is taken, not " .. core.describe(training),
      "net:train() or net:train(true), net:eval() or net:train(false)")
  end
  return set_mode(self, "train", training == false or nil)
end

---Evaluation mode: dropout does nothing, `self.training` is false. For this layer and all below it.
---@return deepc.nn.Layer # itself
function Layer:eval()
  return set_mode(self, "eval", true)
end

-- Of the parameters that options choose by their paths. Every layer is another structure, since which of them it holds
-- is not looked for.
local function set_some_frozen(layer, what, frozen, options)
  local chosen, count = chooser(what, options), 0
  walk(layer, "", function(part, path)
    if not is_layer(part) and core.cell_kind(part) == "param" and chosen(path:sub(2)) then
      core.trainable(part, not frozen)
      count = count + 1
    end
  end, { [layer] = true })
  if count == 0 then
    refuse_no_match(what, layer, options)
  end
  return each_layer(layer, restructure)
end

local function set_frozen(layer, what, frozen, options)
  check_self(what, layer)
  refuse_inside(layer, what .. "()")
  if options ~= nil then
    return set_some_frozen(layer, what, frozen, options)
  end
  walk(layer, "", function(part)
    if not is_layer(part) then
      core.trainable(part, not frozen)
    end
  end, { [layer] = true })
  return each_layer(layer, function(l)
    rawset(l, "_frozen", frozen)
    tell(l)
  end)
end

---Its parameters, and those of all layers below, are no longer trained: optimisers leave them as they are. With
---patterns of Lua those alone whose paths match one, or do not match the other.
---
---    nn.Sequential({ nn.Linear(4, 4), nn.Linear(4, 2) }):freeze { match = "^1%." }
---
---Errors: DC0101 where a pattern chooses nothing.
---@param options? { match?: string, except?: string }
---@return deepc.nn.Layer # itself
function Layer:freeze(options)
  return set_frozen(self, "freeze", true, options)
end

---Its parameters are trained again, or those that patterns choose, as for :freeze.
---@param options? { match?: string, except?: string }
---@return deepc.nn.Layer # itself
function Layer:unfreeze(options)
  return set_frozen(self, "unfreeze", nil, options)
end

---What the layer computes; a class gives its own. Call the layer, not this.
---@param ... any
---@return any # of what it is called with
function Layer:forward(...) -- luacheck: ignore
  core.fail("ARG", getmetatable(self).__name, "the class has no :forward")
end

-- Asked for what no layer has.
setmetatable(Layer, { __index = function(_, key)
  if key == "new" then
    core.fail("ARG", nil, "a class has no 'new'", "a class is called: Net(...), which calls its :init(...)")
  end
end })

local call = core.layer(text_of)

-- The class's :forward as its layers give it: told from a call with a dot, whose first argument is no layer.
local function forward_of(class, forward)
  local entry = rawget(class, "_forward")
  if not entry or entry.of ~= forward then
    entry = { of = forward, checked = function(self, ...)
      if not is_layer(self) then
        core.fail("ARG", "forward", "a layer is needed, not " .. core.describe(self),
          "with a colon: net:forward(x), or net(x), which tells errors where they happened")
      end
      return forward(self, ...)
    end }
    rawset(class, "_forward", entry)
  end
  return entry.checked
end

-- Methods that layers have elsewhere.
local elsewhere = {
  add = "net[#net + 1] = layer; nn.Sequential { ... } takes all of them",
  backward = "opt:step(loss) takes the gradients, or dc.grad(loss, params)",
  compile = "optim.Adam(net:parameters()), of require \"deepc.optim\"; a step is a typed function, dc.fn",
  fit = "train.fit, of require \"deepc.train\"",
  predict = "net(x), after net:eval()",
  children = "parts are fields: net[1], net.inner; net:named_parameters() lists cells",
  cuda = ":to \"cuda:0\"; deepc --devices lists what there is",
  double = ":cast \"f64\" of the layer converts its parameters",
  half = ":cast \"f16\" of the layer converts its parameters",
  bfloat16 = ":cast \"bf16\" of the layer converts its parameters",
  evaluate = ":eval()",
  float = ":cast \"f32\" of the layer converts its parameters",
  getParameters = ":parameters()",
  load_state_dict = "dc.load(path, net)",
  modules = "parts are fields: net[1], net.inner; net:named_parameters() lists cells",
  requires_grad_ = ":freeze() and :unfreeze()",
  state_dict = ":named_cells(); dc.save(path, net)",
  updateParameters = "opt:step(loss), of require \"deepc.optim\"",
  zeroGradParameters = "gradients are not kept: opt:step(loss) takes them anew",
  zero_grad = "gradients are not kept: opt:step(loss) takes them anew",
}

---A class of layers: give it :init(...) and :forward(...), then call it to make one.
---
---    local Block = nn.class "Block"
---    function Block:init(n) self.inner = nn.Linear(n, n) end
---    function Block:forward(x) return x + self.inner(x):relu() end
---@param name string what errors call it
---@return table # the class
function nn.class(name)
  if type(name) ~= "string" then
    core.fail("ARG", "nn.class", "a name is needed, not " .. core.describe(name), 'nn.class "Block"')
  end
  local class = {
    __name = name,
    __call = call,
    __tostring = function(self)
      return Layer.__tostring(self)
    end,
    __newindex = assign,
    __len = function(self)
      return #own(self)
    end,
    __pairs = function(self)
      return next, own(self)
    end,
    _is_layer = true,
    _versioned = true, -- guards leave its layers out
  }
  function class.__index(self, key)
    local v = own(self)[key]
    if v == nil and rawget(self, "_private") then
      v = rawget(self, "_private")[key]
    end
    if v ~= nil then
      return v
    end
    local computed = rawget(self, "_computed")
    if computed and computed[key] then
      return computed[key](self)
    end
    if key == "training" then
      if core.tracing() then
        depend(self)
      end
      return not rawget(self, "_eval")
    end
    v = class[key]
    if key == "forward" and type(v) == "function" then
      return forward_of(class, v)
    end
    if v == nil and elsewhere[key] then
      core.fail("FIELD", nil, ("%s has no '%s'"):format(self:describe(), key), elsewhere[key])
    end
    return v
  end
  return setmetatable(class, {
    __index = Layer,
    __call = function(c, ...)
      if rawequal((...), nn) then
        core.fail("ARG", c.__name, "the module is given as the first argument",
          ("with a dot, not a colon: %s(...)"):format(c.__name))
      end
      local layer = setmetatable({ _own = {} }, c)
      if c.init then
        c.init(layer, ...)
      elseif (...) ~= nil then
        local n = select("#", ...)
        core.fail("SURPLUS", c.__name, ("%d argument%s given, none is taken"):format(n, n == 1 and "" or "s"),
          "the class has no :init")
      end
      adopt(layer, own(layer), {}) -- tables that were filled after they became fields, too
      return layer
    end,
  })
end

-- What the other files need.

core.Layer, core.walk, core.refuse_inside, core.check_layer = Layer, walk, refuse_inside, check_self
core.fields_of, core.part_keys, core.restructure, core.forget_paths = fields_of, part_keys, restructure, forget_paths
core.path_of, core.assign_paths, core.each_layer = path_of, assign_paths, each_layer

-- Options that are true or false, or left out.
function core.check_flags(op, options, ...)
  for _, key in ipairs { ... } do
    if options[key] ~= nil and type(options[key]) ~= "boolean" then
      core.fail("ARG", op, ("%s is true or false, not %s"):format(key, core.shown(options[key])))
    end
  end
end

-- Of elements that are dropped; or left out.
function core.check_probability(op, what, p)
  if p ~= nil and (type(p) ~= "number" or not (p >= 0 and p < 1)) then
    core.fail("ARG", op, ("%s is a number from 0 to below 1, not %s"):format(what, core.shown(p)),
      type(p) == "table" and not core.kind(p) and type(p[what]) == "number" and ("%s(%s)"):format(op, p[what]) or nil)
  end
end

return nn
