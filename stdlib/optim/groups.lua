-- Groups of parameters by their paths.

local optim = require "deepc.optim.class"
local _, core = ...

local plain = core.optim.plain

local function check_rule(op, i, rule)
  if not plain(rule) then
    core.fail("ARG", op, ("rule %d is %s, not a table"):format(i, core.describe(rule)), '{ "bias$", weight_decay = 0 }')
  elseif rule[1] == nil then
    core.fail("ARG", op, ("rule %d has no pattern"):format(i), '{ "bias$", weight_decay = 0 }')
  end
  for _, pattern in ipairs(rule) do
    if type(pattern) ~= "string" or not pcall(string.find, "", pattern) then
      core.fail("ARG", op, ("rule %d: %s is no pattern of Lua"):format(i, core.shown(pattern)))
    end
  end
end

-- The number of the first rule with a pattern in a path; nil if there is none.
local function rule_of(rules, path, met)
  for i, rule in ipairs(rules) do
    for k, pattern in ipairs(rule) do
      if path:find(pattern) then
        met[i][k] = true
        return i
      end
    end
  end
end

---Groups of the parameters of a layer by patterns of Lua in their paths, for an optimiser: each parameter
---is in the group of the first rule that has a pattern found in its path, with the settings of that rule;
---those that are left are a last group, with the settings of the optimiser.
---
---    optim.AdamW(optim.groups(net, { { "bias$", weight_decay = 0 } }), { lr = 1e-3 })
---
---Errors: DC0101 for what is no rule, and for a pattern that is in no path.
---@param net deepc.nn.Layer
---@param rules table[] { pattern, ..., setting = value }
---@return deepc.optim.Group[]
function optim.groups(net, rules)
  local op = "groups"
  if type(net) ~= "table" or type(net.named_parameters) ~= "function" then
    core.fail("ARG", op, "a layer is needed, not " .. core.describe(net), "optim.groups(net, { { pattern, ... } })")
  elseif not plain(rules) then
    core.fail("ARG", op, "a list of rules is needed, not " .. core.describe(rules), '{ { "bias$", weight_decay = 0 } }')
  end
  local groups, met = {}, {}
  for i = 1, #rules + 1 do
    local rule, paths = rules[i], {}
    groups[i], met[i] = { params = {} }, {}
    core.paths_of[groups[i].params] = paths
    if rule ~= nil then
      check_rule(op, i, rule)
      for key, value in pairs(rule) do
        groups[i][key] = math.type(key) ~= "integer" and value or nil
      end
    end
  end
  local named = net:named_parameters()
  for _, entry in ipairs(named) do
    local params = groups[rule_of(rules, entry[1], met) or #groups].params
    params[#params + 1], core.paths_of[params][entry[2]] = entry[2], entry[1]
  end
  local kept = {}
  for i, group in ipairs(groups) do
    for k, pattern in ipairs(rules[i] or {}) do
      if not met[i][k] then
        core.fail("ARG", op, ("no parameter's path has '%s' in it%s"):format(pattern,
          i > 1 and ", or earlier rules take them" or ""), named[1] and ("one is called '%s'"):format(named[1][1]))
      end
    end
    kept[#kept + 1] = #group.params > 0 and group or nil
  end
  return kept
end
