--- a string that doubles
for _ = 1, 3 do
  refused(function()
    local s = "x"
    while true do s = s .. s end
  end, "not enough memory")
end
assert(#("x"):rep(1000000) == 1000000)

--- a string at once
refused(function() return ("x"):rep(1 << 40) end)
refused(function() return ("x"):rep(1 << 30) end, "not enough memory")
refused(function() return ("x"):rep(1000, ("y"):rep(100000)) end, "not enough memory")
refused(function() return string.pack("c2147483647", "") end, "not enough memory")
refused(function() return (("x"):rep(1000000)):gsub("x", ("y"):rep(1000)) end, "not enough memory")

--- tables
refused(function()
  local t = {}
  for i = 1, 1e9 do t[i] = {} end
end, "not enough memory")
refused(function()
  local t = {}
  for i = 1, 1e9 do t["k" .. i] = i end
end, "not enough memory")
assert(#table.pack(1, 2, 3) == 3)

--- coroutines
refused(function()
  local t = {}
  for i = 1, 1e9 do
    t[i] = coroutine.create(print)
    coroutine.resume(t[i])
  end
end, "not enough memory")

--- closures and texts of code
refused(function()
  local t = {}
  for i = 1, 1e9 do t[i] = load("return " .. i) end
end, "not enough memory")

--- memory that is asked for again and again
local caught = 0
for _ = 1, 6 do
  local ok = pcall(function()
    local t = {}
    for i = 1, 1e9 do t[i] = ("x"):rep(1000) .. i end
  end)
  caught = caught + (ok and 0 or 1)
end
assert(caught == 6)
assert(require "deepc".ones("f32[2]"):sum():item() == 2)

--- the library while there is no memory
local dc, nn = require "deepc", require "deepc.nn"
local hold = {}
local function fill() for i = 1, 1e9 do hold[i] = ("x"):rep(100) .. i end end
local function use()
  for _ = 1, 100 do
    pcall(function() return nn.Linear(2, 2)(dc.ones "f32[1, 2]") end)
    pcall(dc.ones, "f32[-1]")
    pcall(require, "deepc.plot")
    pcall(function() return dc.fn("f(x: f32[2]) -> f32[2]", function(x) return x * 2 end)(dc.ones "f32[2]") end)
  end
end
pcall(fill)
for free = 1, 40 do
  for i = 1, free * 20 do hold[i] = nil end
  pcall(use)
end
hold = nil
collectgarbage()
use()
assert(dc.ones("f32[2]"):sum():item() == 2 and hold == nil)

--- tensors
local dc = require "deepc"
refused(function()
  local t = {}
  for i = 1, 1e6 do t[i] = dc.iota "f32[1000, 100]" + i t[i]:item() end
end)
local t = {}
refused(function()
  for i = 1, 1e6 do t[i] = dc.param("f32[1000, 1000]", i) t[i]:totable() end
end)
t = nil
collectgarbage()
assert(dc.ones("f32[1000]"):sum():item() == 1000 and t == nil)

--- shapes that no memory holds
local dc = require "deepc"
for _, shape in ipairs { "f32[1000000000, 1000000000]", "f32[9223372036854775807]", "f64[4611686018427387904, 2]",
  "f32[99999999999999999999]", "u8[100000000000]", "f32[-5]", "f32[" .. ("2,"):rep(40) .. "2]",
  "f32[" .. ("("):rep(100000) .. "2]", "f32[" .. ("9"):rep(100000) .. "]" } do
  refused(function() return dc.ones(shape):sum():item() end)
  refused(function() return dc.rand(shape):sum():item() end)
  refused(function() return dc.param(shape, 1):totable() end)
end

--- shapes by operations
local dc = require "deepc"
refused(function() return dc.ones("f32[1]"):expand(1 << 62):sum():item() end)
refused(function() return dc.ones("f32[1, 1]"):expand(1 << 31, 1 << 31):sum():item() end)
refused(function() return dc.ones("f32[4]"):reshape(1 << 62, 4) end)
refused(function() return dc.iota("i64[100000]"):reshape(100000, 1):expand(100000, 100000):totable() end)
refused(function()
  local x = dc.ones "f32[1000]"
  for _ = 1, 60 do x = dc.concat({ x, x }, 1) end
  return x:sum():item()
end)

--- operations of a function without an end
local dc = require "deepc"
pcall(function()
  return dc.fn("f(x: f32[1]) -> f32[1]", function(x)
    for i = 1, 300000 do x = x + i end
    return x
  end)
end)

--- lazy operations without an end
local dc = require "deepc"
local x = dc.ones "f32[4]"
for i = 1, 20000 do x = x * 1.0001 + i % 3 end
pcall(function() return x:sum():item() end)
local w = dc.param("f32[4]", 1)
refused(function()
  local y = w
  for _ = 1, 20000 do y = y * 1.0001 end
  return y:sum():item()
end)

--- names without an end
local dc = require "deepc"
pcall(function()
  for i = 1, 30000 do
    dc.ones("f32[2]"):rename { ("name" .. i) .. ("x"):rep(50) }
  end
end)

--- signatures without an end
local dc = require "deepc"
for _, text in ipairs { "f(" .. ("x: f32[2], "):rep(50000) .. "y: f32[2]) -> f32[]", "f(x: " .. ("{"):rep(100000),
  "f(x: f32[" .. ("(n+"):rep(100000) .. "1]) -> f32[]", "f(x: f32[" .. ("n*"):rep(50000) .. "n]) -> f32[]",
  ("f"):rep(1000000), "f(x: f32[" .. ("-"):rep(100000) .. "n]) -> f32[]" } do
  pcall(function() return dc.fn(text, function(x) return x end)(dc.ones "f32[2]") end)
end

--- functions without an end
local dc = require "deepc"
local keep = {}
pcall(function()
  for i = 1, 400 do
    keep[i] = dc.fn("f(x: f32[n]) -> f32[n]", function(x) return x + i end)
    keep[i](dc.ones("f32[" .. i .. "]"))
  end
end)

--- metadata of a file
local dc = require "deepc"
pcall(function()
  local texts = {}
  for i = 1, 20000 do texts["key" .. i] = ("v"):rep(100) end
  dc.save(root .. "/out/meta", { w = dc.ones "f32[1]" }, texts)
end)

--- letters of an einsum
local dc = require "deepc"
local x = dc.ones "f32[2, 2]"
pcall(dc.einsum, ("a"):rep(100000) .. "->", x)
pcall(dc.einsum, "a b, " .. ("b c, "):rep(10000) .. "->", x, x)
