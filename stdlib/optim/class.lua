-- What optimisers are made of: parameters in groups, settings, states, a step.
--
-- Settings and states are cells, so that a new rate compiles nothing and checkpoints have all there is. A
-- setting that a group does not give is the optimiser's, one cell for all. Scalars that parameters share -
-- rates, corrections of the bias - are made once a step for each group; an update is element-wise over its
-- parameter where the method allows it, so that it and its moments are one kernel.

local dc = require "deepc"
local _, core = ...

---Optimisers.
---
---    local optim = require "deepc.optim"
---@class deepc.optim
local optim = {}

-- What the other files need; no part of the module.
local class = {}
core.optim = class

---What the optimisers have in common. Their settings are fields, states that may be assigned:
---`opt.lr = 1e-4` acts at the next call, nothing is compiled again. Each takes these besides its own:
---`weight_decay`; `clip_norm` scales all gradients so that the norm of all together is at most that
---(Pascanu, Mikolov and Bengio, 2013; torch.nn.utils.clip_grad_norm_); `clip_value` bounds every element,
---before that (clip_grad_value_); `clip_adaptive` bounds the norm of the gradient of each unit by so many
---times that of its weights (Brock et al., 2021); `accumulate` = n adds up the gradients of n steps and
---updates with their mean in each n-th; `maximize = true` climbs. What is not given when the optimiser is
---made costs nothing and cannot be assigned later.
---
---`shard = "data"`: the ranks along that axis of the mesh share the states between them, each keeps and updates a part
---(ZeRO, stage 1: Rajbhandari and others, 2020). States of parameters in parts are in the same parts.
---
---Groups have settings of their own: `optim.SGD({ { params = a }, { params = b, lr = 1e-3 } }, { lr = 1e-2 })`.
---What a group does not give is the optimiser's; `lr_scale` of a group multiplies the rate that it has.
---`clip_norm`, `clip_value`, `clip_adaptive` and `accumulate` are of all groups together.
---@class deepc.optim.Optimizer
---@field params deepc.Cell[]
---@field groups deepc.optim.Group[] settings as fields: opt.groups[2].lr = 1e-4
---@field lr deepc.Cell
---@field weight_decay deepc.Cell none
---@field clip_norm deepc.Cell none
---@field clip_value deepc.Cell none
---@field clip_adaptive deepc.Cell none
---@field accumulate deepc.Cell none
---@field maximize boolean false
local methods = {}
class.methods = methods

---Some parameters of an optimiser, with settings of their own.
---@alias deepc.optim.Group { params: deepc.Cell[], lr?: deepc.Cell, lr_scale?: deepc.Cell }

-- Settings of the optimiser as a whole, not of groups.
local whole = { clip_norm = true, clip_value = true, clip_adaptive = true, accumulate = true }

-- ---- parameters ----

local function plain(v)
  return type(v) == "table" and not core.kind(v) and getmetatable(v) == nil
end

local function check_params(op, params, where)
  if not plain(params) then
    core.fail("ARG", op, ("%sa list of parameters is needed, not %s"):format(where, core.describe(params)),
      op .. "(net:parameters())")
  elseif #params == 0 then
    core.fail("ARG", op, where .. "the list of parameters is empty",
      "net:parameters() lists those of a layer; none if it is frozen, see net:unfreeze()")
  end
  for i = 1, #params do
    local p = params[i]
    if core.kind(p) ~= "param" then
      core.fail("ARG", op, ("%snumber %d of the list is %s, no parameter"):format(where, i, core.describe(p)),
        "dc.param makes one")
    end
  end
end

-- What was given as a list of groups, each with its `params`.
local function read_groups(op, params)
  if not plain(params) or not plain(params[1]) then
    check_params(op, params, "")
    return { { params = params } }, false
  end
  for i, group in ipairs(params) do
    if not plain(group) then
      core.fail("ARG", op, ("group %d is %s, not a table"):format(i, core.describe(group)),
        op .. "({ { params = a:parameters() }, { params = b:parameters(), lr = 1e-3 } })")
    elseif group.params == nil then
      core.fail("ARG", op, ("group %d has no params"):format(i), core.kind(group[2])
        and "net:parameters() lists parameters; net:named_parameters() pairs of names and these"
        or "{ params = net:parameters(), lr = 1e-3 }")
    end
    check_params(op, group.params, ("group %d: "):format(i))
  end
  return params, true
end

-- All parameters of the groups in order, the number of the group of each, their paths by parameter.
local function flatten(op, groups)
  local params, group_of, paths, seen = {}, {}, {}, {}
  for g, group in ipairs(groups) do
    local known = core.paths_of and core.paths_of[group.params] or {}
    for i, p in ipairs(group.params) do
      if seen[p] and #groups == 1 then
        core.fail("ARG", op, ("numbers %d and %d of the list are the same parameter"):format(seen[p], i))
      elseif seen[p] then
        core.fail("ARG", op, ("number %d of group %d is a parameter of group %d"):format(i, g, group_of[seen[p]]))
      end
      params[#params + 1], group_of[#group_of + 1] = p, g
      paths[p], seen[p] = known[p], #groups == 1 and i or #params
    end
  end
  return params, group_of, paths
end

-- ---- settings ----

-- Factors of moving averages.
local below_one = { momentum = true, beta1 = true, beta2 = true, alpha = true, rho = true }

local function check_setting(op, key, value)
  if type(value) ~= "number" and not core.kind(value) then
    core.fail("ARG", op, ("%s is a number or a scalar, not %s"):format(key, core.describe(value)),
      type(value) == "function" and ("a schedule gives a number for each step: opt.%s = schedule(step)"):format(key)
      or nil)
  elseif key == "accumulate" and type(value) == "number" and (not math.tointeger(value) or value < 1) then
    core.fail("ARG", op, ("accumulate is %s; it is a number of steps, 1 or more"):format(core.shown(value)))
  elseif type(value) == "number" and not (value >= 0 and value < (below_one[key] and 1 or math.huge)) then
    core.fail("ARG", op, ("%s is %s; it is 0 or more%s"):format(key, core.shown(value),
      below_one[key] and ", and below 1" or value > 0 and ", and finite" or ""))
  end
end

-- A state of the optimiser, on the device of the parameter that it is for, or of the first one. `name` is that of the
-- part in what is saved, `label` what errors call it.
local function new_state(own, name, label, type_text, init, of)
  local cell = dc.state(type_text, init, { device = (of or own.params[1]).device })
  core.label(cell, label)
  own.cells[#own.cells + 1] = { name, cell }
  return cell
end

-- Computed in: updates of 16-bit parameters and their moments are f32, those of complex numbers their parts'.
local function working_dtype(p)
  return (p.dtype == "f64" or p.dtype == "c128") and "f64" or "f32"
end

local function is_complex(x)
  return x.dtype == "c64" or x.dtype == "c128"
end

-- Complex numbers as the real ones that they are: an axis of 2 at the end.
local function parts(x)
  return is_complex(x) and x:view_as_real() or x
end

-- The type of a state with a number for each of a parameter's: in parts as that is, and along one more axis of the
-- mesh, where there is an axis that the ranks can share (Rajbhandari and others, ZeRO, 2020).
local function type_of(p, shard)
  local sizes, _, split = core.cell_split(p)
  local dims = {}
  for k, size in ipairs(sizes or p.shape) do
    local axes = split and table.concat(split[k], "+") or ""
    if shard and axes == "" and size > 0 and size % core.mesh_size(shard) == 0 then
      axes, shard = shard, nil
    end
    dims[k] = axes == "" and tostring(size) or ("%d @ %s"):format(size, axes)
  end
  dims[#dims + 1] = is_complex(p) and "2" or nil
  return ("%s[%s]"):format(working_dtype(p), table.concat(dims, ", "))
end

-- One state for every parameter, named after it; false where wanted(group, p) is. It begins with init(group), or 0.
local function like(own, name, wanted, init)
  local list, taken = {}, {}
  for i, p in ipairs(own.params) do
    local label = core.label(p) or tostring(i)
    local path = own.paths[p] or label
    path = taken[path] and tostring(i) or path -- of a list put together from several
    taken[path] = true
    local group = own.groups[own.group_of[i]]
    if wanted and not wanted(group, p) then
      list[i] = false
    else
      list[i] = new_state(own, ("%s.%s"):format(name, path), ("%s.%s.%s"):format(own.name, name, label),
        type_of(p, own.shard), init and init(group), p)
    end
  end
  return list
end

local function scalar(own, name, init)
  return new_state(own, name, ("%s.%s"):format(own.name, name), own.dtype .. "[]", init)
end

local function sorted(...)
  local list = {}
  for _, set in ipairs { ... } do
    for key in pairs(set) do
      list[#list + 1] = key
    end
  end
  table.sort(list)
  return list
end

-- Names of PyTorch's that are called otherwise.
local renamed = {
  learning_rate = "lr = 1e-3",
  betas = "beta1 = 0.9, beta2 = 0.999", initial_accumulator_value = "initial = 0.1",
  adjust_lr_fn = 'adjust = "match_rms_adamw"',
}

local function check_names(op, given, known)
  for key in pairs(given or {}) do
    if not known[key] then
      core.fail("ARG", op, ("unknown option '%s'; known are %s"):format(tostring(key),
        table.concat(sorted(known), ", ")), renamed[key] or core.near(known, tostring(key)))
    end
  end
end

-- What is given of them by a group or the optimiser, as states and flags of `to`.
local function read_settings(own, op, given, spec, to, name)
  local default = to == own
  for _, key in ipairs(spec.settings) do
    local v = given[key]
    if v == nil and default then
      v = spec.defaults[key]
    end
    if v ~= nil and not (default and own.everywhere[key]) then
      check_setting(op, key, v)
      if spec.defaults[key] or v ~= 0 or not default then
        to.hyper[key] = new_state(own, name .. key, ("%s.%s%s"):format(own.name, name, key),
          key == "accumulate" and "i32[]" or own.dtype .. "[]", v)
      end
    end
  end
  for key, choices in pairs(spec.flags) do
    local v = given[key]
    if v ~= nil and choices == true and type(v) ~= "boolean" then
      core.fail("ARG", op, ("%s is true or false, not %s"):format(key, core.shown(v)))
    elseif v ~= nil and choices ~= true and not choices(v) then
      core.fail("ARG", op, ("%s is %s"):format(key, core.shown(v)), spec.about[key])
    end
    if v ~= nil or default then
      rawset(to.flag, key, v)
    end
  end
end

-- The settings that every group has of its own are not the optimiser's.
local function own_everywhere(groups, several)
  local everywhere = {}
  for key in pairs(several and groups[1] or {}) do
    everywhere[key] = true
    for _, group in ipairs(groups) do
      everywhere[key] = everywhere[key] and group[key] ~= nil or nil
    end
  end
  return everywhere
end

local function read_options(own, op, options, spec, groups, several)
  if type(options) == "number" then
    core.fail("ARG", op, ("options are a table, not %s"):format(core.describe(options)),
      ("%s(params, { lr = %s })"):format(op, options))
  elseif options ~= nil and not plain(options) then
    core.fail("ARG", op, ("options are a table, not %s"):format(core.describe(options)))
  end
  check_names(op, options, spec.known)
  own.everywhere = own_everywhere(groups, several)
  for key in pairs(options or {}) do
    if own.everywhere[key] then
      core.fail("ARG", op, ("%s is given, and by each group besides"):format(key), "leave one of them out")
    end
  end
  read_settings(own, op, options or {}, spec, own, "")
  own.shard = options and options.shard
  if own.shard ~= nil then
    core.mesh_size(own.shard) -- the mesh has it
  end
  own.groups = {}
  for i, given in ipairs(groups) do
    local group = { params = given.params, own = {},
      hyper = setmetatable({}, { __index = own.hyper }), flag = setmetatable({}, { __index = own.flag }) }
    if several then
      local name = ("%s: group %d"):format(op, i)
      check_names(name, given, spec.known_of_group)
      for key in pairs(whole) do
        if given[key] ~= nil then
          core.fail("ARG", name, key .. " is of all groups together", ("%s(groups, { %s = ... })"):format(op, key))
        end
      end
      read_settings(own, name, given, spec, group, ("groups.%d."):format(i))
      if given.lr_scale ~= nil then
        check_setting(name, "lr_scale", given.lr_scale)
        group.hyper.lr_scale = scalar(own, ("groups.%d.lr_scale"):format(i), given.lr_scale)
      end
    end
    own.groups[i] = group
  end
end

-- ---- how scripts see it ----

-- What stands in a hint for a setting that was not given.
local example = { momentum = "0.9", weight_decay = "1e-2", accumulate = "4" }

-- What optimisers have elsewhere.
local elsewhere = {
  add_param_group = "groups are given when it is made: optim.SGD({ { params = a }, { params = b, lr = 1e-3 } })",
  backward = "opt:step(loss) takes the gradients and updates the parameters",
  load_state_dict = "dc.load(path, opt)",
  param_groups = "opt.groups, opt.groups[1].lr",
  state_dict = "opt:named_cells(); dc.save(path, opt)",
  zero_grad = "gradients are not kept: opt:step(loss) takes them anew",
}

-- A group: its parameters and the settings that it has, its own or the optimiser's.
local function group_view(own, name, i, chosen)
  local group = own.groups[i]
  local text = ("%s: group %d"):format(name, i)
  local function missing(key)
    core.fail("FIELD", nil, ("%s has no '%s' of its own"):format(text, tostring(key)),
      own.hyper[key] and ("opt.%s is that of all groups that have none of their own"):format(key)
      or chosen[key] and ("{ params = ..., %s = %s } when it is made"):format(key, example[key] or "1") or nil)
  end
  return setmetatable({}, {
    __name = text,
    __index = function(_, key)
      if key == "params" then
        return group.params
      end
      local v = group.hyper[key]
      if v == nil then
        v = group.flag[key]
      end
      return v
    end,
    __newindex = function(_, key, value)
      local cell = rawget(group.hyper, key) or #own.groups == 1 and own.hyper[key] or missing(key)
      check_setting(text, key, value)
      cell:set(value)
    end,
    __tostring = function() return text end,
  })
end

-- Settings are fields. Its parts are in a table of their own (_own), so that assigning opt.lr reaches
-- __newindex.
local function new_meta(name, own_class, settings, chosen)
  local hint = "its settings are " .. table.concat(settings, ", ")
  local meta = { __name = name, _class = own_class, _versioned = true }

  local function missing(self, key, text, instead)
    if rawget(self, "_own").everywhere[key] then
      core.fail("FIELD", nil, ("each group of %s has a setting '%s' of its own"):format(name, key),
        ("opt.groups[1].%s"):format(key))
    elseif chosen[key] then
      core.fail("FIELD", nil, ("%s was made without %s"):format(name, key),
        ("%s(params, { %s = %s })"):format(name, key, example[key] or "1"))
    end
    core.fail("FIELD", nil, ("%s has no %s'%s'"):format(name, text, tostring(key)), instead or hint)
  end

  function meta.__index(self, key)
    local own = rawget(self, "_own")
    local v = own.hyper[key]
    if v == nil then
      v = own_class[key]
    end
    if v == nil and key == "params" then
      return own.params
    elseif v == nil and key == "groups" then
      local list = {}
      for i = 1, #own.groups do
        list[i] = group_view(own, name, i, chosen)
      end
      return list
    elseif v == nil then
      missing(self, key, "", elsewhere[key])
    end
    return v
  end

  function meta.__newindex(self, key, value)
    local cell = rawget(self, "_own").hyper[key] or missing(self, key, "setting ")
    check_setting(name, key, value)
    cell:set(value)
  end

  function meta.__tostring()
    return name
  end

  return meta
end

-- ---- classes ----

-- A class of optimisers: `spec` has its `name`, `defaults` of settings that are always there, a set of
-- `chosen` ones that are there where they are given, and not 0, and `flags`, true or what tells whether a
-- value is one, with a hint in `about`. A class has
--
--   _init(own)                       makes its states; own.counts = true: s.t is the number of the step
--   _share(own, s, flag, group)      adds to s, the scalars of a step of a group
--   _update(own, i, x, g, s, flag)   sets the states of parameter i, now x, with gradient g; its new value
--   _decays(flag)                    what weight decay is taken from: "gradient" unless there is one, "parameter";
--                                    nothing where _update does it
--
-- `settings` of those that are not given are nil in s.
function class.new(spec)
  local name, new = spec.name, {}
  spec.chosen, spec.flags, spec.about = spec.chosen or {}, spec.flags or {}, spec.about or {}
  spec.flags.maximize = true
  for key in pairs(whole) do
    spec.chosen[key] = true
  end
  spec.chosen.weight_decay = not spec.defaults.weight_decay or nil
  spec.settings = sorted(spec.defaults, spec.chosen)
  spec.known, spec.known_of_group = {}, { params = true, lr_scale = true }
  for _, key in ipairs(sorted(spec.defaults, spec.chosen, spec.flags)) do
    spec.known[key], spec.known_of_group[key] = true, true
  end
  spec.known.shard = true
  new._decays = function() return "gradient" end
  local meta = new_meta(name, new, spec.settings, spec.chosen)
  return setmetatable(new, {
    __index = methods,
    __call = function(_, params, options)
      local groups, several = read_groups(name, params)
      local own = { name = name:match("[^.]+$"):lower(), cells = {}, hyper = {}, flag = {}, dtype = "f32",
        last = setmetatable({}, { __mode = "v" }) }
      own.params, own.group_of, own.paths = flatten(name, groups)
      own.params = #groups == 1 and groups[1].params or own.params
      core.optimised(own.params)
      for _, p in ipairs(own.params) do
        own.dtype = working_dtype(p) == "f64" and "f64" or own.dtype
      end
      read_options(own, name, options, spec, groups, several)
      new._init(own)
      if own.counts then
        own.count = new_state(own, "step", own.name .. ".step", "i32[]")
      end
      if own.hyper.accumulate then
        own.sums = like(own, "sum")
        own.summed = new_state(own, "summed", own.name .. ".summed", "i32[]")
      end
      return setmetatable({ _own = own }, meta)
    end,
  })
end

-- ---- for the other files ----

function class.check_self(op, self)
  if type(self) ~= "table" or not rawget(self, "_own") then
    core.fail("ARG", op, "an optimiser is needed, not " .. core.describe(self),
      ("with a colon: opt:%s(...)"):format(op))
  end
end

-- x in another dtype, if it is another one.
function class.as(x, dtype)
  if type(x) == "number" or x.dtype == dtype then
    return x
  end
  return (x:cast(dtype))
end


class.like, class.scalar, class.new_state, class.plain = like, scalar, new_state, plain
class.check_params, class.check_setting, class.working_dtype = check_params, check_setting, working_dtype
class.parts, class.is_complex, class.type_of = parts, is_complex, type_of

-- A parameter's new value, out of what it was updated in.
function class.value_of(p, x)
  return is_complex(p) and x:view_as_complex() or class.as(x, p.dtype)
end

-- The least numbers that are not denormal.
local least = { f32 = 2.0 ^ -126, f64 = 2.0 ^ -1022 }

-- Sets a moving average to x, or to 0 where x is denormal. Where gradients stop, as those of a unit that a ReLU has
-- shut off, an average shrinks by a factor in each step; rounding would keep it at the least denormal number for ever,
-- and an operation with one takes a hundred times as long on many processors.
function class.keep(own, cell, x)
  own.set(cell, dc.where(x:abs():lt(least[x.dtype]), 0, x))
end

function class.nothing() end

-- 1 - beta^t. From beta^t close to 1 the difference would lose its digits.
function class.correction(beta, t)
  return -(beta:maximum(1e-30):log() * t):expm1()
end

return optim
