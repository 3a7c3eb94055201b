-- What is written at the end of a script at the latest: the program calls this module there, and in os.exit.

local _, core = ...

local open = setmetatable({}, { __mode = "k" })
local lost -- what failed where nobody could be told

-- Unless v is gone by then, write(v) is called at the end; what it raises ends the program with 1.
function core.at_end(v, write)
  open[v] = write
end

-- Something could not be written, in a finalizer.
function core.lost(err)
  lost = lost or err
  core.note(tostring(err))
end

return function()
  local first = lost
  lost = nil
  for v, write in pairs(open) do
    open[v] = nil
    local ok, err = pcall(write, v)
    if not ok then
      first = first or err
    end
  end
  if first then
    error(first, 0)
  end
end
