--- package, and what it leads to
assert(package == nil and loadlib == nil)
refused(function() require "package" end, "module 'package' not found")

--- modules that the host has loaded
for _, name in ipairs { "io", "os", "debug", "package", "_G", "string", "coroutine" } do
  refused(function() require(name) end, "not found")
end

--- a library by its path
for _, name in ipairs { "/usr/lib/x86_64-linux-gnu/libc.so.6", "./evil", "evil.so/x", "a\\b", "a b" } do
  refused(function() require(name) end, "is no name of a module")
end

--- modules by slashes and dots
for _, name in ipairs { "../secret", "a/b", "a..b", ".a", "a.", "", "mod\0x", ("a"):rep(300), "deepc/../mod",
  "deepc..mod", "~/mod", "mod/", "..", "." } do
  refused(function() require(name) end, "is no name of a module")
end
assert(require "mod" == "mod")

--- a module of deepc that is none
refused(function() require "deepc.evil" end, "not found")
refused(function() require "deepc.meta" end, "not found")

--- files as code
assert(dofile == nil and loadfile == nil)
refused(function() require(root .. "/secret") end, "is no name of a module")

--- bytecode by load
local code = "\27Lua\x54\0\x19\x93\r\n\x1a\n\4\8\8"
local f, why = load(code)
assert(f == nil and why:find "binary", why)
f, why = load(code, "x", "b")
assert(f == nil and why, why)
f, why = load(code, "x", "bt")
assert(f == nil and why, why)

--- bytecode in pieces
local parts, i = { "\27", "Lua", "\x54\0\x19\x93" }, 0
local f, why = load(function()
  i = i + 1
  return parts[i]
end, "x", "b")
assert(f == nil and why, why)

--- bytecode through a coroutine
local f, why = coroutine.wrap(load)("\27Lua")
assert(f == nil and why:find "binary", why)

--- a function as bytecode
assert(string.dump == nil and ("x").dump == nil)

--- a chunk that claims to be a file of the host
local f = load("local t = nil\nreturn t.x", "@" .. root .. "/secret")
local text = refused(f)
assert(not text:find("secret:1: secret", 1, true))
local dc = require "deepc"
local g = load("local dc = ...\nlocal secret\nreturn dc.ones('f32[2]') + secret", "@" .. root .. "/secret")
assert(not refused(function() g(dc) end):find "'secret'")

--- a chunk that claims to be the library
local f = load("error 'where'", "=deepc/nn.lua")
assert(refused(f):find "^%(load%)")
f = load("error 'where'", "@deepc/nn.lua")
assert(refused(f):find "^%(load%)")

--- the host's globals by load
assert(load "return io, os, debug, package"() == nil)
assert(load("return _ENV", "x", "t")() == _G)
assert(load("return x", "x", "t", { x = 5 })() == 5)
assert(load("return io", "x", "t", _G)() == nil)

--- environments of functions
assert(getfenv == nil and setfenv == nil)
local function f()
  local _ENV = {}
  return io
end
assert(f() == nil)

--- a reader that is no function of the script's
for _, f in ipairs { string.char, utf8.char, collectgarbage, tostring, coroutine.running } do
  pcall(load, f)
end
refused(function() load(function() return {} end) end, "must return a string")

--- a reader without an end
refused(function() load(function() return "x = 1 " end) end, "more than 1048576 bytes")

--- debug, and what it gave
assert(debug == nil)
assert(not pcall(function() return debug.getregistry() end))

--- the upvalue of the host's function
assert(host_secret() == true)
for name, value in pairs(_G) do
  assert(value ~= "the host's", name)
end

--- the preload of other modules
local real, nn = require, nil
require = function() error "poisoned" end
nn = real "deepc.nn"
assert(nn.Linear(2, 2))
assert(real "mod" == "mod")
