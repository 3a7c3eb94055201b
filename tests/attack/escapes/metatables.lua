--- the metatable of strings
assert(getmetatable "" == false)
refused(function() setmetatable("", {}) end)
string.upper = function() return "poisoned" end
assert(("x"):upper() == "X")

--- the metatable of tensors, cells and functions
local dc = require "deepc"
local things = { dc.ones "f32[2]", dc.param("f32[2]", 1), dc.generator(),
  dc.fn("f(x: f32[2]) -> f32[2]", function(x) return x end) }
for _, thing in ipairs(things) do
  local meta = getmetatable(thing)
  assert(type(meta) ~= "table", "a metatable of the library")
  refused(function() setmetatable(thing, {}) end)
end

--- the metatable of errors
local dc = require "deepc"
local _, err = pcall(dc.ones, "f32[-1]")
local shown = tostring(err)
for key in pairs(getmetatable(err) or {}) do -- a stand-in, which nothing calls
  getmetatable(err)[key] = function() error "called" end
end
assert(tostring(err) == shown and #(err .. "") == #shown)
refused(function() setmetatable(err, { __tostring = function() error "called" end }) end)
rawset(err, "message", {})
rawset(err, "code", print)
assert(pcall(tostring, err) ~= nil)

--- an error whose fields are nonsense
--! an error value that is a table
local dc = require "deepc"
local _, err = pcall(dc.ones, "f32[-1]")
for key in pairs(err) do err[key] = {} end
error(err, 0)

--- an error value that runs when it is shown
--! an error value that is a table
error(setmetatable({}, {
  __tostring = function() error "called" end,
  __index = function() error "called" end,
  __name = ("x"):rep(1000),
}))

--- an error value that prints when it is shown
--! an error value that is a table
error(setmetatable({}, { __tostring = function() print "called" return "x" end }), 0)

--- an error message of a megabyte
--! xxxxxxxx
error(("x"):rep(1000000), 0)

--- an error without a value
--! an error value that is no text (nil)
error(nil)

--- a finalizer
refused(function() setmetatable({}, { __gc = function() print "ran" end }) end, "no __gc here")
refused(function() setmetatable({}, { __gc = true }) end, "no __gc here")

--- a finalizer that comes later
local meta = {}
for i = 1, 100 do
  local t = setmetatable({}, meta)
  t[1] = i
end
meta.__gc = function() print "ran" end
found = setmetatable({}, meta == nil and {} or { __index = meta })
collectgarbage()

--- a finalizer by other ways
local meta = setmetatable({}, { __index = function() return print end }) -- an inherited __gc is none
local t = setmetatable({}, meta)
rawset(meta, "__gc", print)
t = nil
collectgarbage()
assert(t == nil)

--- a variable to be closed when the state is
local co = coroutine.create(function()
  local x <close> = setmetatable({}, { __close = function() print "ran" end })
  coroutine.yield(x)
end)
coroutine.resume(co)
found = co

--- globals whose reading raises
setmetatable(_G, { __index = function(_, name) error("global " .. tostring(name), 0) end, __newindex = error })
local dc = require "deepc"
assert(dc.ones("f32[2]"):sum():item() == 2)
local nn = require "deepc.nn"
assert(nn.Linear(2, 2)(dc.ones "f32[1, 2]").shape[2] == 2)

--- globals that are gone
local all = _G
for name in pairs(all) do
  if name ~= "require" and name ~= "assert" then all[name] = nil end
end
local dc, nn = require "deepc", require "deepc.nn"
assert(nn.Linear(2, 2)(dc.ones "f32[1, 2]").shape[2] == 2)

--- the globals as a value
_G._G = nil
_G = setmetatable({}, { __index = _ENV })
assert(io == nil)

--- metamethods that never end by themselves
local t = setmetatable({}, {})
getmetatable(t).__index = t
refused(function() return t.x end, "loop")

--- protected metatables of the script's own
local t = setmetatable({}, { __metatable = "mine" })
assert(getmetatable(t) == "mine")
refused(function() setmetatable(t, {}) end, "protected metatable")
