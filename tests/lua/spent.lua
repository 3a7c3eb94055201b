-- local spent = require "tests.lua.spent": what changes in dc.stats() while f runs.
local dc = require "deepc"

return function(f)
  local before = dc.stats()
  f()
  local after = dc.stats()
  for k, v in pairs(before) do
    after[k] = type(v) == "number" and after[k] - v or nil
  end
  return after
end
