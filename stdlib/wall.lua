-- The time of day, for what writes it into files. A script has it where its state has Lua's `os`: in a sandbox with a
-- clock alone. Times that are differences come from core.clock, which every script has.

local _, core = ...

-- Lua's own, as it was when the library was loaded: no variable of the script.
local os = rawget(_ENV, "os")
local time, date = os and os.time, os and os.date

-- Seconds since 1970; what needs them ("an event") is told where there is no clock.
function core.wall_time(op, what)
  if not time then
    core.fail("ARG", op, ("%s has the time of day, and there is no clock here"):format(what),
      "a sandbox has one where its host says so (dc_sandbox_options.clock, deepc sandbox --clock)")
  end
  return time()
end

-- As os.date; nil where there is no clock.
function core.wall_date(format)
  return date and date(format)
end
