--- the environment
assert(os == nil)
for name, value in pairs(require "deepc".stats()) do
  assert(type(value) ~= "string" or not value:find "secret", name)
end

--- the clock
assert(os == nil)

--- printing past the host
assert(io == nil and warn == nil)
print "to the host"
require "deepc".print "to the host"
for _, show in ipairs { "bar", "lines", "auto" } do
  for _ in require "deepc".progress(3, { show = show, every = 0 }) do end
end

--- a stream of one's own
io = { stderr = { write = function(self) return self end } }
require "deepc".ones "f32[1]":item()
for _ in require "deepc".progress(2) do end

--- print that is something else
local dc = require "deepc"
local texts = {}
print = function(...) texts[#texts + 1] = ... end
dc.print "x"
assert(#texts == 1)
print = nil
pcall(dc.print, "x")
print = 5
pcall(dc.print, "x")

--- devices by name
local dc = require "deepc"
for _, device in ipairs { "cpu:cc", "opencl:0", "sim:cuda", "/tmp/evil.so" } do
  refused(function() dc.zeros("f32[2]", { device = device }) end)
  refused(function() dc.fn("f(x: f32[2]) -> f32[2]", { device = device }, function(x) return x end) end)
end
assert(dc.stats().device == "eval")

--- settings by fields
local dc = require "deepc"
pcall(function() dc.DEEPC_DEVICE = "cpu:cc" end)
DEEPC_DEVICE, DEEPC_DUMP, DEEPC_CACHE = "cpu:cc", root, root
dc.fn("f(x: f32[2]) -> f32[2]", function(x) return x * 2 end)(dc.ones "f32[2]")

--- exits
assert(os == nil and exit == nil)
pcall(function() require "deepc".options({ { "x", 1, "text" } }, { "--help" }) end)

--- arguments of the program
local dc = require "deepc"
assert(arg == nil)
pcall(function() dc.options({ { "x", 1, "text" } }, { "--help" }) end)

--- paths of the host in messages
local dc = require "deepc"
local _, err = pcall(dc.ones, "f32[-1]")
for key, value in pairs(err) do
  if type(value) == "string" then
    assert(not value:find("/", 1, true) or not value:find(root, 1, true), key .. value)
  end
end
assert(not err.traceback:find("escapes.c", 1, true) and not err.traceback:find("the host's", 1, true))

--- pages and sources
local ok, help = pcall(require, "deepc.help")
if ok then
  for _, f in pairs(help) do
    pcall(f, root .. "/secret")
    pcall(f, "/etc/passwd")
  end
end

--- a neighbour's globals
found = "by a neighbour"
math.floor = nil
require "deepc".ones = nil

--- the random numbers of others
local dc = require "deepc"
math.randomseed(1)
dc.generator():set(dc.generator():clone())

--- the host's registry by names
for _, name in ipairs { "host.secret", "deepc.context", "deepc.module", "deepc.globals", "_LOADED", "_PRELOAD" } do
  assert(_G[name] == nil)
  refused(function() require(name) end)
end

--- a userdata in the wrong place
local dc = require "deepc"
local x, f = dc.ones "f32[2]", dc.fn("f(x: f32[2]) -> f32[2]", function(x) return x end)
for _, call in ipairs { function() return f.explain(x) end, function() return x.sum(f) end, function() f(f) end,
  function() return f:start(x).poll(x) end, function() dc.scope(x, f) end } do
  pcall(call)
end
