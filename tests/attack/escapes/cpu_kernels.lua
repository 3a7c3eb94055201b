--- texts of kernels
local dc = require "deepc"
local f = dc.fn("f(x: f32[64]) -> f32[64]", function(x) return x:exp() * 2 end)
f(dc.ones "f32[64]")
for _, form in ipairs { "nest", "schedule", "flat", "text" } do
  local text = f:source(1, form)
  assert(not text:find(root, 1, true))
end
for _, form in ipairs { "../nest", "/etc/passwd", "", "\0", "nest\0", ("x"):rep(100000) } do
  refused(function() return f:source(1, form) end)
end
refused(function() return f:source(1 << 40, "text") end)
refused(function() return f:source(-1, "text") end)

--- an index outside its axis
local dc = require "deepc"
local f = dc.fn("f(x: f32[4], i: i32[2]) -> f32[2]", function(x, i) return x:take(i, 1) end)
for _, i in ipairs { { -1, 0 }, { 0, 4 }, { 1000000, 0 }, { -2147483648, 2147483647 } } do
  pcall(function() return f(dc.ones "f32[4]", dc.tensor(i, "i32[2]")):totable() end)
end

--- divisions and casts of everything
local dc = require "deepc"
local f = dc.fn("f(x: i32[4], y: i32[4]) -> i32[4]", function(x, y) return x // y + x % y end)
pcall(function()
  f(dc.tensor({ 1, -2147483648, 0, 5 }, "i32[4]"), dc.tensor({ 0, -1, 0, -1 }, "i32[4]")):totable()
end)
local g = dc.fn("g(x: f32[4]) -> i32[4]", function(x) return x:cast "i32" end)
pcall(function() g(dc.tensor { 1e30, -1e30, 0 / 0, 1 / 0 }):totable() end)

--- kernels, printing and the names of dims
local dc = require "deepc"
pcall(function()
  dc.fn('f(x: f32["; system(1); "=4]) -> f32[]', function(x) return x:sum() end)(dc.ones "f32[4]")
end)
pcall(function()
  dc.fn("f_system(x: f32[rm=4]) -> f32[]", function(x) return x:sum() end)(dc.ones "f32[4]")
end)
