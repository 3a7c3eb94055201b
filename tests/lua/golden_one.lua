-- Runs one wrong program (tests/lua/golden.lua): prints its message, a line "--", and "usable" if the
-- context is still good for something afterwards, or why not. Arguments: its name, its path.
local name, path = ...

local file = assert(io.open(path, "rb"))
local text = file:read "a"
file:close()

-- Values are made into text, as print does, but the output has the message alone.
local env = setmetatable({
  print = function(...)
    for i = 1, select("#", ...) do
      tostring((select(i, ...)))
    end
  end,
}, { __index = _G })

local chunk, message = load(text, "@" .. name .. ".lua", "t", env)
local ok, err = pcall(chunk or error, not chunk and message or nil)
io.write(ok and "no error" or tostring(err), "\n--\n")

local fine, why = pcall(function()
  local dc = require "deepc"
  assert((dc.tensor { 1, 2, 3 } * 2):sum():item() == 12, "another sum")
  local w = dc.param("f32[3]", 2)
  local f = dc.fn("f(x: f32[3]) -> f32[], f32[3]", function(x)
    local y = (x * w * w):sum()
    return y, dc.grad(y, w)
  end)
  local y, g = f { 1, 2, 3 }
  assert(y:item() == 24 and g:totable()[2] == 8, "another gradient")
end)
io.write(fine and "usable" or tostring(why), "\n")
