-- dc.autocast: a function whose products are computed in 16 bits. Its annotation is in api/functions.lua.

local _, core = ...

local autocast = {}

local names = { bf16 = "bf16", f16 = "f16", f32 = false }

local function callable(v)
  local mt = getmetatable(v)
  return type(v) == "function" or type(mt) == "table" and mt.__call ~= nil or type(v) == "userdata" and not core.kind(v)
end

function autocast.autocast(dtype, f)
  if names[dtype] == nil then
    core.fail("ARG", "autocast", ('the dtype is "bf16", "f16" or "f32", not %s'):format(core.shown(dtype)),
      'dc.autocast("bf16", net)')
  elseif not callable(f) then
    core.fail("ARG", "autocast", ("a function or a layer is needed, not %s"):format(core.describe(f)),
      'dc.autocast("bf16", net)')
  end
  return core.entries({ call = function(...)
    local was = core.autocast(names[dtype])
    local back <close> = setmetatable({}, { __close = function() core.autocast(was) end }) -- luacheck: ignore
    return f(...)
  end }).call
end

return core.entries(autocast)
