--- every function that is reached from the globals and the modules, with values of every kind
local pcall, tostring, type, next, pairs = pcall, tostring, type, next, pairs
local dc = require "deepc"
local nn, optim, data = require "deepc.nn", require "deepc.optim", require "deepc.data"
local function raise() error({}, 0) end
local raising = setmetatable({}, { __index = raise, __newindex = raise, __len = raise, __call = raise,
  __tostring = raise, __pairs = raise, __eq = raise, __lt = raise, __add = raise, __concat = raise, __close = raise })
local w, traced, closed = dc.param("f32[2]", 1), {}, dc.ones "f32[2]"
closed:close()
local f = dc.fn("f(x: f32[n]) -> f32[n]", function(x)
  traced[1] = x
  return x * 2
end)
f { 1, 2 }
local cyclic = { 1 }
cyclic[2] = cyclic
local values = { n = 36, nil, true, 0, 1, -1, 2, 0.5, 0 / 0, 1 / 0, math.maxinteger, "", "x", "f32[2]", "i -> i",
  "../x", root .. "/secret", "%s%n%5000d", "a\0b", {}, { 1, 2 }, cyclic, { w }, raising, raise, error,
  coroutine.create(raise), dc.ones "f32[2]", dc.ones "f32[2]" * 2, w, closed, f, f:start { 1, 2 }, dc.scope(),
  nn.Linear(2, 2), optim.SGD { w }, data.set(dc.ones "f32[4, 2]", dc.ones "f32[4]") }
values.n = values.n + 1
values[values.n] = traced[1]

local found, seen = {}, { [values] = true, [raising] = true, [raise] = true, [_G] = true }
if table.move then seen[table.move] = true end -- of a range without end
for _, library in pairs { coroutine, error } do seen[library] = true end
local function visit(v, receiver)
  if v == nil or seen[v] then return end
  if type(v) == "function" then
    seen[v] = true
    found[#found + 1] = { v, receiver }
  elseif type(v) == "table" then
    seen[v] = true
    for _, field in next, v do visit(field, v) end
    local meta = getmetatable(v)
    if type(meta) == "table" then visit(meta, v) end
  end
end
for _, name in pairs { "", ".nn", ".optim", ".data", ".schedules", ".plot" } do visit(require("deepc" .. name)) end
for _, v in next, _G do visit(v) end
for i = 1, values.n do visit(values[i]) end
for name in ("sum mean reshape permute take put pad split cat set close item totable cast softmax max argmax sort flip "
  .. "info explain kernels source plan start check export poll result keep"):gmatch "%a+" do
  for _, v in pairs { values[27], w, f, values[32], values[33] } do
    local ok, method = pcall(function() return v[name] end)
    if ok then visit(method, v) end
  end
end
local state = 1
local function any()
  state = (state * 6364136223846793005 + 1442695040888963407) & math.maxinteger
  return values[1 + (state >> 33) % values.n]
end
assert(#found > 200, #found)
local calls, messages = 0, 0
local function call(...)
  local ok, err = pcall(...)
  calls = calls + 1
  if ok then return end
  messages = messages + 1
  local said, text = pcall(tostring, err)
  assert(not said or not text:find("broken promise", 1, true), text)
end
for i = 1, #found do
  local g, receiver = found[i][1], found[i][2]
  local function with(...)
    call(g, ...)
    if receiver ~= nil then call(g, receiver, ...) end
  end
  for k = 1, values.n do coroutine.wrap(with)(values[k]) end
  for _ = 1, 20 do coroutine.wrap(with)(any(), any(), any()) end
end
assert(messages > calls // 2 and messages < calls, messages .. " of " .. calls)
assert(dc.ones("f32[2]"):sum():item() == 2)
