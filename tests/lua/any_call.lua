-- Calls every public function and method with values of every kind:
--
--   deepc tests/lua/any_call.lua SEED TIMES PAIRS [SHARE [LOG]]
--
-- What they are is found here, so a new one is called by existing: with no argument and with every fourth value, with
-- PAIRS (1 or 0) every fortieth one with two values, TIMES times with random ones, and as often while a typed
-- function is traced; which, the seed says. SHARE is 0 or 1: every second function alone. Each call ends with a
-- result or a message. With LOG, the name of a file, each call is written there before it is made: the last line
-- tells of a crash.
local dc = require "deepc"
local help = require "deepc.help"

local seed, times = math.tointeger(tonumber(arg[1])) or 1, math.tointeger(tonumber(arg[2])) or 40
local pairs_too = arg[3] ~= "0"
local share = math.tointeger(tonumber(arg[4])) -- 0 or 1: every second function
local log = arg[5] and assert(io.open(arg[5], "w"))
if log then log:setvbuf "no" end

-- ---- values ----------------------------------------------------------------------------------

local function raising(message)
  local function f() error(message or {}, 0) end
  return setmetatable({}, { __index = f, __newindex = f, __len = f, __call = f, __tostring = f, __pairs = f,
    __eq = f, __lt = f, __le = f, __add = f, __mul = f, __concat = f, __unm = f, __close = f, __name = "Raising" })
end

local function make_values()
  local nn, optim, data = require "deepc.nn", require "deepc.optim", require "deepc.data"
  local cyclic = { 1 }
  cyclic[2], cyclic.x = cyclic, cyclic
  local closed = dc.ones "f32[2]"
  closed:close()
  local traced = {}
  local f = dc.fn("f(x: f32[n]) -> f32[n]", function(x) table.insert(traced, x) return x * 2 end)
  local job, scope = f:start { 1, 2 }, dc.scope()
  scope:close()
  local _, err = pcall(function() return dc.ones "f32[2]" + dc.ones "f32[3]" end)
  local loan
  for x in data.set(dc.ones "f32[4, 2]", dc.ones "f32[4]"):batches { size = 2 } do loan = loan or x end
  local dead = coroutine.create(function() end)
  coroutine.resume(dead)
  local w = dc.param("f32[2]", 1)
  -- name, value; the first of them stand for all in pairs
  return {
    { "nil", nil }, { "true", true }, { "0", 0 }, { "1", 1 }, { "-1", -1 }, { "maxinteger", math.maxinteger },
    { "0.5", 0.5 }, { "nan", 0 / 0 }, { "''", "" }, { "'x'", "x" }, { "'f32[2]'", "f32[2]" }, { "{}", {} },
    { "{1,2}", { 1, 2 } }, { "raising", raising "raised" }, { "function", function(...) return ... end },
    { "io.stderr", io.stderr }, { "tensor", dc.tensor { 1, 2 } }, { "lazy", dc.tensor { 1, 2 } * 2 }, { "param", w },
    { "closed", closed }, { "fn", f }, { "layer", nn.Linear(2, 2) },
    few = 22,
    { "false", false }, { "2", 2 }, { "mininteger", math.mininteger }, { "2^31", 1 << 31 }, { "2^53", 1 << 53 },
    { "inf", math.huge }, { "-inf", -math.huge }, { "1e308", 1e308 }, { "-0.0", -0.0 }, { "'a\\0b'", "a\0b" },
    { "long", ("x"):rep(100000) }, { "brackets", ("("):rep(1000) }, { "'%s%n'", "%s%n%5000d" },
    { "utf8", "\xff\xfe" },
    { "'i -> i'", "i -> i" }, { "'f32[n]'", "f32[n]" }, { "'g(x)'", "g(x: f32[2]) -> f32[2]" },
    { "'f32[2^62]'", "f32[4611686018427387904, 4]" }, { "ragged", { { 1, 2 }, { 3 } } }, { "cyclic", cyclic },
    { "{tensor}", { dc.ones "f32[2]", dc.ones "f32[2]" } }, { "{param}", { w } },
    { "{axis}", { axis = 1, keep = true } },
    { "{n=max}", { n = math.maxinteger, size = math.maxinteger, lr = 0 / 0 } }, { "raising {}", raising() },
    { "endless", setmetatable({}, { __len = function() return math.maxinteger end,
      __index = function() return 1 end }) },
    { "callable", setmetatable({}, { __call = function(_, ...) return ... end }) }, { "error", error },
    { "yield", coroutine.yield }, { "thread", coroutine.create(function() coroutine.yield() end) }, { "dead", dead },
    { "matrix", dc.ones "f32[2, 2]" }, { "scalar", dc.tensor(3) }, { "i32", dc.tensor({ 1, 2 }, "i32[2]") },
    { "bool", dc.tensor({ true, false }, "bool[2]") }, { "named", dc.ones "f32[batch=2, 3]" },
    { "complex", dc.complex(dc.ones "f32[2]", dc.ones "f32[2]") },
    { "state", dc.state("i32[2]", 1) },
    { "empty", pcall(dc.zeros, "f32[0]") and dc.zeros "f32[0]" or {} }, { "traced", traced[1] }, { "loan", loan },
    { "job", job }, { "scope", scope }, { "static", dc.static(2) }, { "err", err }, { "optimizer", optim.SGD { w } },
    { "lbfgs", optim.LBFGS { w } }, { "average", optim.EMA { w } },
    { "set", data.set(dc.iota(2), dc.iota(2)) }, { "checkpoint", dc.checkpoint("x", { w = w }) },
    { "dc", dc }, { "nn", nn },
    { "progress", dc.progress }, { "_G", _G }, { "class", nn.Linear },
  }
end

-- ---- what is called --------------------------------------------------------------------------

-- Values whose methods are called.
local ours = {}
for name in ("tensor lazy param closed traced loan fn layer job scope static err optimizer lbfgs average set " ..
  "checkpoint class"):gmatch "%a+" do
  ours[name] = true
end

-- The names in a table, in an order that is the same in each run.
local function names(t)
  local list = {}
  for key in next, t do
    if type(key) == "string" then list[#list + 1] = key end
  end
  table.sort(list)
  return list
end

-- Every function that is reached from the modules and from one object of each kind, through fields, metatables
-- and the names that annotations know.
local function find_functions(values)
  local found, seen, methods, is_value = {}, {}, {}, {}
  local skip = { [error] = true, [coroutine.yield] = true, [_G] = true, [package.loaded] = true, [values] = true }
  for _, library in pairs { string, table, math, utf8, os, io, coroutine, debug, package, _G } do
    if type(library) == "table" then
      skip[library] = true
      for _, v in pairs(library) do skip[v] = true end
    end
  end
  for _, e in ipairs(help.entries()) do
    if e.is_method then methods[e.name] = true end
  end
  methods = names(methods)
  for _, e in ipairs(values) do
    if ours[e[1]] and e[2] ~= nil then is_value[e[2]] = true end
  end
  local function visit(name, v, receiver)
    local kind = type(v)
    if v == nil or skip[v] or seen[v] or #name > 60 then return end
    if kind == "function" then
      seen[v] = true
      found[#found + 1] = { name = name, call = v, receiver = receiver }
    elseif kind == "table" or kind == "userdata" then
      seen[v] = true
      local mt = debug.getmetatable(v)
      if mt and rawget(mt, "__name") == "Raising" then return end
      if mt and mt.__call then found[#found + 1] = { name = name .. "()", call = v } end
      -- methods behind an __index that is a function; each name that is not there is an error, which takes long
      for _, key in ipairs((kind == "userdata" or mt and is_value[v]) and methods or {}) do
        local ok, field = pcall(function() return v[key] end)
        if ok and type(field) == "function" then visit(name .. ":" .. key, field, v) end
      end
      if kind == "table" then
        for _, key in ipairs(names(v)) do visit(name .. "." .. key, rawget(v, key), v) end
      end
      visit(name .. "#", mt, v)
    end
  end
  for _, name in ipairs(names(package.preload)) do -- not what public modules are put together from
    if name == "deepc.help" or name:match "^deepc" and help.sources(name) then
      visit(name, require(name))
    end
  end
  for _, e in ipairs(values) do
    if ours[e[1]] then visit(e[1], e[2]) end
  end
  table.sort(found, function(a, b) return a.name < b.name end)
  return found
end

-- ---- calls -----------------------------------------------------------------------------------

local pcall, tostring = pcall, tostring
local calls, failures = 0, 0

local function check_message(name, message)
  local ok, text = pcall(tostring, message)
  if ok and (text:find("broken promise", 1, true) or text:find("DC09", 1, true)) then
    io.stdout:write("bug: ", name, ": ", text, "\n")
    os.exit(1)
  end
end

-- What a script's own metamethods keep busy forever is ended as an interruption would.
local function too_long() error("too long", 0) end

local direct = false

local function call(f, label, ...)
  if log then log:write(f.name, "(", label, ")\n") end
  calls = calls + 1
  if direct then
    local ok, message = pcall(f.call, ...)
    if not ok then check_message(f.name, message) end
    return
  end
  local thread = coroutine.create(function(...) return f.call(...) end) -- so that a yield ends a call
  debug.sethook(thread, too_long, "", 100000)
  local ok, message = coroutine.resume(thread, ...)
  if not ok then
    failures = failures + 1
    check_message(f.name, message)
  end
  coroutine.close(thread)
end

local values = make_values()
local n = 0
for i in pairs(values) do n = math.max(n, math.tointeger(i) or 0) end
local functions = find_functions(values)
local state = seed
local function random(m)
  state = (state * 6364136223846793005 + 1442695040888963407) & math.maxinteger
  return 1 + (state >> 33) % m
end

local function call_one(f, first)
  call(f, "")
  if f.receiver ~= nil then call(f, "self", f.receiver) end
  for a = first, n, 4 do
    call(f, values[a][1], values[a][2])
    if f.receiver ~= nil then call(f, "self, " .. values[a][1], f.receiver, values[a][2]) end
  end
end

local function call_two(f)
  for a = 1, values.few do
    for b = 1, values.few do
      local x, y = values[a], values[b]
      if f.receiver == nil then call(f, x[1] .. ", " .. y[1], x[2], y[2])
      else call(f, "self, " .. x[1] .. ", " .. y[1], f.receiver, x[2], y[2]) end
    end
  end
end

local function call_random(f)
  for _ = 1, times do
    local count, label, args = 2 + random(4), {}, {}
    for i = 1, count do
      local e = values[random(n)]
      label[i], args[i] = e[1], e[2]
    end
    if f.receiver ~= nil and random(2) == 1 then label[1], args[1] = "self", f.receiver end
    call(f, table.concat(label, ", "), table.unpack(args, 1, count))
  end
end

-- The same while a typed function is traced, whose arguments are among the values.
local function call_traced(f)
  direct = true
  pcall(dc.fn, "t(x: f32[2], m: f32[2, 2]) -> f32[2]", function(x, m)
    values[n + 1], values[n + 2] = { "x", x }, { "m", m }
    n = n + 2
    debug.sethook(too_long, "", 1000000)
    pcall(call_random, f)
    debug.sethook()
    n = n - 2
    return x
  end)
  direct = false
end

print = function() end -- luacheck: ignore
local left_out = {
  doctor = true, -- starts a process for each device, each time
  top = true, -- follows a file for ever
  trace = true, -- writes when the program ends: where a later call has made a folder, that fails
}
-- Networks of the sizes that papers give, where an empty table is a configuration: half of the time of all calls.
local large = { gpt2 = true, mamba = true, unet = true, vit = true, whisper = true }

local called = 0
for i, f in ipairs(functions) do
  if share and i % 2 ~= share then goto continue end
  called = called + 1
  if large[f.name:match "^deepc%.models%..-(%w+)$"] then goto continue end -- deepc.models.base.unet, too
  if left_out[f.name:match "^deepc%.%w+%.(%w+)$"] then goto continue end
  call_one(f, 1 + (i + seed) % 4)
  if pairs_too and (i + seed) % 40 == 0 then call_two(f) end
  call_random(f)
  call_traced(f)
  ::continue::
end
assert(dc.ones("f32[2]"):sum():item() == 2, "the context goes on")
io.stdout:write(("%d functions, %d calls, %d messages\n"):format(called, calls, failures))
