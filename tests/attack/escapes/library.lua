--- Lua's libraries, changed before the library uses them
math.floor, math.max, math.min, math.huge, math.type = nil, nil, nil, nil, nil
string.format, string.sub, string.gsub, string.rep = nil, nil, nil, nil
table.concat, table.unpack, table.insert, table.pack = nil, nil, nil, nil
local dc, nn, optim, data = require "deepc", require "deepc.nn", require "deepc.optim", require "deepc.data"
local net = nn.Sequential { nn.Linear(2, 4), nn.ReLU(), nn.Linear(4, 1) }
local opt = optim.Adam(net:parameters(), { lr = 0.1 })
local step = dc.fn("step(x: f32[4, 2]) -> f32[]", function(x)
  local loss = net(x):square():mean()
  opt:step(loss)
  return loss
end)
local x = dc.ones "f32[4, 2]"
local first = step(x):item()
for _ in dc.progress(5) do step(x) end
assert(step(x):item() <= first)
for b in data.set(x, x):batches { size = 2 } do assert(b.shape[1] == 2) end

--- the base functions, changed before the library uses them
local keep, require = { pcall = pcall, assert = assert }, require
pcall, assert, type, tostring, pairs, ipairs, next, select = nil, nil, nil, nil, nil, nil, nil, nil
setmetatable, getmetatable, rawget, rawset, error, tonumber = nil, nil, nil, nil, nil, nil
local dc, nn, plot = require "deepc", require "deepc.nn", require "deepc.plot"
keep.assert(nn.Linear(2, 3)(dc.ones "f32[1, 2]").shape[2] == 3)
plot.lines(root .. "/out/x.svg", { { y = { 1, 2, 3 } } })

--- functions of the library that are handed the library's tables
local seen = {}
local real = setmetatable
setmetatable = function(t, meta) seen[#seen + 1] = t return real(t, meta) end
local dc, nn = require "deepc", require "deepc.nn"
nn.Sequential { nn.Linear(2, 2) }
dc.checkpoint(root .. "/in/plain", {})
assert(#seen == 0, "the library calls what a script put in a global")

--- the module itself
local dc = require "deepc"
rawset(dc, "ones", nil)
dc.zeros, dc.load, dc.fn = nil, nil, nil
for name in pairs(dc) do dc[name] = error end
local nn = require "deepc.nn"
for name in pairs(nn) do nn[name] = nil end
setmetatable(dc, { __index = function() error "poisoned" end })

--- prototypes of layers
local dc, nn = require "deepc", require "deepc.nn"
local net = nn.Linear(2, 2)
local class = getmetatable(net)
if type(class) == "table" then
  for name in pairs(class) do class[name] = nil end
end
pcall(function() return net(dc.ones "f32[1, 2]") end)

--- the internals of the library
local dc = require "deepc"
for _, name in ipairs { "core", "internals", "file_put", "file_open", "source", "write_file", "near" } do
  local ok, value = pcall(function() return dc[name] end)
  assert(not ok or value == nil, name)
end

--- objects of the library with other fields
local dc, nn, optim, data = require "deepc", require "deepc.nn", require "deepc.optim", require "deepc.data"
local set = data.set(dc.ones "f32[4, 2]", dc.ones "f32[4]")
for _, object in ipairs { nn.Linear(2, 2), optim.SGD({ dc.param("f32[2]", 1) }, { lr = 0.1 }), set,
  set:batches { size = 2 }, dc.checkpoint(root .. "/out/c", { w = nn.Linear(2, 2) }) } do
  if type(object) == "table" then
    local keys = {}
    for key in pairs(object) do keys[#keys + 1] = key end
    for _, key in ipairs(keys) do
      for _, value in ipairs { false, 5, "x", {}, print, 1 / 0 } do
        local before = rawget(object, key)
        pcall(rawset, object, key, value)
        for _, name in ipairs { "load", "save", "step", "batches", "parameters", "position", "train" } do
          pcall(function() return object[name](object, {}) end)
        end
        pcall(rawset, object, key, before)
      end
    end
  end
end

--- methods with another self
local dc, data = require "deepc", require "deepc.data"
local x, y = dc.ones "f32[2]", dc.ones "f32[2]"
local ckpt = dc.checkpoint(root .. "/out/c", {})
for _, self in ipairs { {}, "x", 5, x, print, ckpt, setmetatable({}, { __index = x }) } do
  for _, f in ipairs { x.sum, x.item, x.totable, ckpt.load, data.set(y, y).batches, x.close } do
    pcall(f, self)
    pcall(f, self, self, self)
  end
end

--- arguments of every function of the module
local dc = require "deepc"
local odd = { nil, false, 0, -1, 1e308, 0 / 0, math.mininteger, "", "\0", ("x"):rep(10000), {}, print,
  coroutine.create(print), dc.ones "f32[2]", dc.param("f32[2]", 1), { 1, 2, { 3 } } }
for name, f in pairs(dc) do
  if type(f) == "function" and name ~= "print" then
    for i = 1, 16 do
      pcall(f, odd[i])
      pcall(f, odd[i], odd[16 - i])
      pcall(f, dc.ones "f32[2]", odd[i], odd[i])
    end
  end
end

--- methods of every tensor
local dc = require "deepc"
local odd = { nil, false, 0, -1, 1e308, 0 / 0, math.mininteger, "", "\0", ("x"):rep(10000), {}, print,
  coroutine.create(print), dc.ones "f32[2]", dc.param("f32[2]", 1), { 1, 2, { 3 } } }
local names = { "sum", "mean", "max", "reshape", "permute", "expand", "slice", "flip", "pad", "cast", "gather", "put",
  "set", "item", "totable", "clone", "transpose", "softmax", "rename", "cumsum", "argmax", "sort", "matmul", "dot" }
for _, name in ipairs(names) do
  for i = 1, 16 do
    local x = dc.ones "f32[2, 3]"
    pcall(function() return x[name](x, odd[i]) end)
    pcall(function() return x[name](x, odd[i], odd[17 - i]) end)
    pcall(function() return x[odd[i]] end)
  end
end

--- tables as tensors whose reading runs code
local dc = require "deepc"
local t = setmetatable({}, { __len = function() return 1e15 end, __index = function(_, i) return i end })
pcall(dc.tensor, t)
local self = {}
self[1] = self
refused(function() dc.tensor(self) end)
local sparse = {}
for i = 0, 62 do sparse[1 << i] = 1 end
pcall(dc.tensor, sparse)
local growing = {}
for i = 1, 4 do
  growing[i] = setmetatable({}, { __index = function() growing[#growing + 1] = { 1 } return 1 end })
end
pcall(dc.tensor, growing)
