-- The typed functions of a script, for tests/stablehlo/xla.py:
--
--   deepc tests/stablehlo/xla_example.lua FOLDER NUMBER SECONDS SCRIPT ARGUMENTS...
--
-- The script runs for at most so many seconds. Each function that it has called, with one set of sizes, is called once
-- more with inputs that are made up: floats from 0 to 1, integers 0. Files are numbered from NUMBER on; prints the next
-- one.
local dc = require "deepc"
local stablehlo = require "deepc.stablehlo"

local folder, number, seconds, script = arg[1], math.tointeger(arg[2]), tonumber(arg[3]), arg[4]
local write = dofile((arg[0]:match "^(.*)/" or ".") .. "/xla_files.lua")
local made, real, stop = {}, dc.fn, {}

dc.fn = function(...)
  local f = real(...)
  made[#made + 1] = f
  return f
end

rawset(_G, "arg", { [0] = script, table.unpack(arg, 5) })
local begun = dc.clock()
debug.sethook(function()
  if dc.clock() - begun > seconds then
    error(stop, 0)
  end
end, "", 10000)
local ok, err = pcall(assert(loadfile(script)))
debug.sethook()
if not ok and err ~= stop then
  io.stderr:write(("%s: %s\n"):format(script, err))
end

-- Puts x where a label says, "batch.x" or "xs[2]": in the lists and records of the arguments.
local function place(args, order, label, x)
  local name, rest = label:match "^([%w_]+)(.*)$"
  if not order[name] then
    order[name] = #order + 1
    order[#order + 1] = name
  end
  local at, key = args, order[name]
  for step in rest:gmatch "[.%[]([%w_]+)" do
    at[key] = at[key] or {}
    at, key = at[key], math.tointeger(step) or step
  end
  at[key] = x
end

local function make(a)
  local t = ("%s[%s]"):format(a.dtype, table.concat(a.shape, ", "))
  return a.dtype:find "^b?f%d" and dc.rand("f32" .. t:match "%[.*"):cast(a.dtype) or dc.zeros(t)
end

for _, f in ipairs(made) do
  local written, source, arguments = pcall(stablehlo.text, f)
  local name = ("%s, %s"):format(script, tostring(f):match "^[^(]*")
  if written then
    local flat, args, order = {}, {}, {}
    for i, a in ipairs(arguments) do
      if not a.value then
        flat[i] = make(a)
        place(args, order, a.name, flat[i])
      end
    end
    local fine, why = pcall(write, ("%s/%d"):format(folder, number), name, f, flat, args, 1e-5)
    number = fine and number + 1 or number
    if not fine then
      io.stderr:write(("%s: %s\n"):format(name, why))
    end
  else
    io.stderr:write(("%s: %s\n"):format(name, source))
  end
end
print(number)
