-- Hyperparameters: the summaries of TensorBoard's plugin for them (tensorboard/plugins/hparams/*.proto).

local _, core = ...
local wire = require "deepc.tensorboard.wire"

local int, bytes, double, entry = wire.int, wire.bytes, wire.double, wire.entry
local Writer, check, summary = core.tensorboard.Writer, core.tensorboard.check, core.tensorboard.summary

-- google.protobuf.Value, and the number of the type in the plugin.
local function value_of(v)
  if type(v) == "boolean" then
    return int(4, v and 1 or 0), 2
  elseif type(v) == "number" then
    return double(2, v + 0.0), 3
  end
  return bytes(3, v), 1
end

local function sorted(t)
  local names = {}
  for name in pairs(t) do
    names[#names + 1] = name
  end
  table.sort(names)
  return names
end

-- A summary whose metadata belong to the plugin, without a value of its own.
local function put(self, tag, field, body)
  local content = field and bytes(field, body) or body
  summary(self, 0, "_hparams_/" .. tag, bytes(9, bytes(1, bytes(1, "hparams") .. bytes(2, content))))
end

local function check_settings(op, settings)
  if type(settings) ~= "table" then
    core.fail("ARG", op, "settings by name are needed, not " .. core.describe(settings), "log:hparams { lr = 1e-3 }")
  end
  for name, v in pairs(settings) do
    if type(name) ~= "string" then
      core.fail("ARG", op, ("the name of a setting is a text, not %s"):format(core.describe(name)))
    elseif type(v) ~= "number" and type(v) ~= "string" and type(v) ~= "boolean" then
      core.fail("ARG", op, ("setting '%s' is a number, a text or a boolean, not %s"):format(name, core.describe(v)))
    elseif not utf8.len(name) or type(v) == "string" and not utf8.len(v) then
      core.fail("ARG", op, "a setting is not UTF-8")
    end
  end
end

local function check_tags(op, tags)
  if type(tags) ~= "table" then
    core.fail("ARG", op, "metrics are a list of tags, not " .. core.describe(tags), '{ "loss", "eval.accuracy" }')
  end
  for i, tag in ipairs(tags) do
    if type(tag) ~= "string" then
      core.fail("ARG", op, ("metric %d is a tag, not %s"):format(i, core.describe(tag)))
    end
  end
end

---The hyperparameters of the run, and which scalars tell how good it is: a table of runs in TensorBoard's page HPARAMS.
---
---    log:hparams({ lr = 1e-3, optimizer = "AdamW" }, { "loss" })
---
---Errors: DC0101 for other values.
---@param settings table<string, number|string|boolean>
---@param metrics? string[] tags of scalars
function Writer:hparams(settings, metrics)
  local op = "hparams"
  check(op, self, false)
  check_settings(op, settings)
  metrics = metrics or {}
  check_tags(op, metrics)
  local infos, values = {}, {}
  for _, name in ipairs(sorted(settings)) do
    local value, kind = value_of(settings[name])
    infos[#infos + 1] = bytes(4, bytes(1, name) .. int(4, kind))
    values[#values + 1] = entry(1, name, value)
  end
  for _, tag in ipairs(metrics) do
    infos[#infos + 1] = bytes(5, bytes(1, bytes(2, tag)))
  end
  put(self, "experiment", 2, table.concat(infos))
  put(self, "session_start_info", 3, table.concat(values) .. double(5, core.wall_time(op, "a session") + 0.0))
end

return core.tensorboard
