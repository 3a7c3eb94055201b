-- What a typed function captured and what becomes of it: every change is noticed or has no effect.
local lu = require "luaunit"
local dc = require "deepc"
local nn = require "deepc.nn"
local optim = require "deepc.optim"
local check = require "tests.lua.check"

local fails = check.fails

local function count(name)
  return dc.stats()[name]
end

-- Calls f until it looks at fields of tables again.
local function until_looked(f, ...)
  for _ = 1, 17 do
    f(...)
  end
end

TestLocals = {}

function TestLocals:test_a_number_that_changes_the_graph()
  local k = 2
  local f = dc.fn("f(x: f32[]) -> f32[]", function(x) return x * k end)
  lu.assertEquals(f(3):item(), 6)
  k = 5
  fails("captured local 'k' changed from 2 to 5 and changes the graph of 'f'", f, 3)
  fails("hint: argument k: f32[], or dc.static", f, 3)
  k = 2
  lu.assertEquals(f(3):item(), 6)
end

function TestLocals:test_one_that_does_not()
  local k, said = 2, {}
  local f = dc.fn("f(x: f32[]) -> f32[]", function(x)
    said[1] = k
    return x * 2
  end)
  lu.assertEquals(said[1], 2)
  f(3)
  f(3)
  local before = dc.stats()
  for i = 1, 5 do
    k = i + 10
    lu.assertEquals(f(i):item(), 2 * i)
  end
  local after = dc.stats()
  lu.assertEquals(after.traces, before.traces + 5)
  lu.assertEquals(after.compiles, before.compiles)
  lu.assertEquals(after.kernels, before.kernels)
end

function TestLocals:test_strings_booleans_and_their_kind()
  local act, on = "relu", true
  local f = dc.fn("f(x: f32[]) -> f32[]", function(x)
    if on then x = x + 1 end
    return x[act](x)
  end)
  lu.assertEquals(f(-3):item(), 0)
  act = "neg"
  fails("captured local 'act' changed from 'relu' to 'neg'", f, -3)
  act, on = "relu", false
  fails("captured local 'on' changed from true to false", f, -3)
end

function TestLocals:test_of_functions_called_inside()
  local k = 2
  local function scale(x) return x * k end
  local function twice(x) return scale(scale(x)) end
  local f = dc.fn("f(x: f32[]) -> f32[]", function(x) return twice(x) end)
  lu.assertEquals(f(3):item(), 12)
  k = 3
  fails("captured local 'k' changed from 2 to 3", f, 3)
end

function TestLocals:test_of_a_typed_function_called_inside()
  local k = 2
  local inner = dc.fn("inner(x: f32[n]) -> f32[n]", function(x) return x * k end)
  local outer = dc.fn("outer(x: f32[2]) -> f32[2]", function(x) return inner(x) + 1 end)
  lu.assertEquals(outer({ 1, 2 }):totable(), { 3, 5 })
  k = 3
  fails("captured local 'k' changed from 2 to 3 and changes the graph of 'outer'", outer, { 1, 2 })
end

function TestLocals:test_a_tensor_that_is_replaced()
  local w = dc.tensor { 1, 2 }
  local f = dc.fn("f(x: f32[2]) -> f32[2]", function(x) return x * w end)
  lu.assertEquals(f({ 3, 4 }):totable(), { 3, 8 })
  w = dc.tensor { 5, 6 }
  fails("captured tensor 'w' was replaced after 'f' was traced", f, { 3, 4 })
  fails('hint: pass it as an argument, or w = dc.state("f32[2]")', f, { 3, 4 })
end

function TestLocals:test_assigned_while_tracing()
  local total = dc.tensor(0)
  fails("captured local 'total' is assigned while 'step' is traced, which happens once", dc.fn,
    "step(x: f32[]) -> f32[]", function(x)
      total = total + x
      return total
    end)
end

function TestLocals:test_locals_of_the_trace_itself_are_free()
  local function sum_to(n)
    local total = 0
    local function add(i) total = total + i end
    for i = 1, n do add(i) end
    return total
  end
  local f = dc.fn("f(x: f32[]) -> f32[]", function(x)
    local y = x
    local function grow() y = y * 2 end
    for _ = 1, 3 do grow() end
    return y + sum_to(4)
  end)
  lu.assertEquals(f(1):item(), 18)
  lu.assertEquals(f(1):item(), 18)
end

function TestLocals:test_counters()
  local n = 0
  local function count_up()
    n = n + 1
    return n
  end
  fails("captured local 'n' is assigned while 'f' is traced", dc.fn, "f(x: f32[]) -> f32[]", function(x)
    return x * count_up()
  end)
end

TestFields = {}

function TestFields:test_a_number_in_a_table()
  local cfg = { lr = 0.5, deep = { er = { k = 1 } } }
  local f = dc.fn("f(x: f32[]) -> f32[]", function(x) return x * cfg.lr * cfg.deep.er.k end)
  lu.assertEquals(f(2):item(), 1)
  cfg.lr = 0.25
  fails("captured field 'cfg.lr' changed from 0.5 to 0.25 and changes the graph of 'f'", until_looked, f, 2)
  cfg.lr, cfg.deep.er.k = 0.5, 3
  fails("captured field 'cfg.deep.er.k' changed from 1 to 3", until_looked, f, 2)
end

function TestFields:test_the_second_call_finds_counters()
  local cfg = { n = 0 }
  local f = dc.fn("f(x: f32[]) -> f32[]", function(x)
    cfg.n = cfg.n + 1
    return x * cfg.n
  end)
  lu.assertEquals(f(2):item(), 2)
  fails("captured field 'cfg.n' changed from 1 to 2 and changes the graph of 'f'", f, 2)
end

function TestFields:test_an_unrelated_change_compiles_nothing()
  local cfg = { lr = 0.5, epoch = 1, name = "a" }
  local f = dc.fn("f(x: f32[]) -> f32[]", function(x) return x * cfg.lr end)
  until_looked(f, 2)
  local before = dc.stats()
  for i = 1, 40 do
    cfg.epoch, cfg.name, cfg["new" .. i] = i, "b" .. i, i
    lu.assertEquals(f(2):item(), 1)
  end
  local after = dc.stats()
  lu.assertEquals(after.compiles, before.compiles)
  lu.assertEquals(after.kernels, before.kernels)
  lu.assertTrue(after.traces - before.traces <= 4)
end

function TestFields:test_a_tensor_in_a_table()
  local state = { h = dc.zeros "f32[2]" }
  local rnn = dc.fn("rnn(x: f32[2]) -> f32[2]", function(x) return x + state.h end)
  state.h = rnn { 1, 2 }
  fails("captured tensor 'state.h' was replaced after 'rnn' was traced", rnn, { 1, 2 })
  fails('h = dc.state("f32[2]")', rnn, { 1, 2 })
end

function TestFields:test_one_that_was_not_there()
  local cfg = {}
  local f = dc.fn("f(x: f32[]) -> f32[]", function(x) return cfg.k and x * cfg.k or x end)
  lu.assertEquals(f(2):item(), 2)
  cfg.k = 3
  fails("a field of captured 'cfg' was added or removed and changes the graph of 'f'", until_looked, f, 2)
end

function TestFields:test_globals()
  rawset(_G, "GUARDED", 2)
  local f = dc.fn("f(x: f32[]) -> f32[]", function(x) return x * rawget(_G, "GUARDED") end)
  lu.assertEquals(f(3):item(), 6)
  rawset(_G, "GUARDED", 4)
  fails("captured global 'GUARDED' changed from 2 to 4", until_looked, f, 3)
  rawset(_G, "GUARDED", nil)
end

-- No call uses what a field of a table held before.
TestEachCall = {}

function TestEachCall:test_a_field_at_the_very_next_call()
  local cfg = { lr = 0.5, deep = { er = { k = 1 } }, list = { 2, 3 } }
  local f = dc.fn("f(x: f32[]) -> f32[]", function(x)
    return x * cfg.lr * cfg.deep.er.k * cfg.list[#cfg.list]
  end)
  for _ = 1, 3 do lu.assertEquals(f(2):item(), 3) end
  cfg.lr = 0.25
  fails("captured field 'cfg.lr' changed from 0.5 to 0.25 and changes the graph of 'f'", f, 2)
  cfg.lr, cfg.deep.er.k = 0.5, 3
  fails("captured field 'cfg.deep.er.k' changed from 1 to 3", f, 2)
  cfg.deep.er.k, cfg.list[3] = 1, 5
  fails("a field of captured 'cfg.list' was added or removed and changes the graph of 'f'", f, 2)
  cfg.list[3] = nil
  lu.assertEquals(f(2):item(), 3)
  cfg.list[2] = nil
  fails("captured field 'cfg.list[2]' changed from 3 to nil", f, 2)
  cfg.list = { 2, 3 } -- another table with the same fields
  lu.assertEquals(f(2):item(), 3)
  cfg.list[2] = 4
  fails("captured field 'cfg.list[2]' changed from 3 to 4", f, 2)
end

function TestEachCall:test_a_local_that_is_another_table()
  local cfg = { k = 2 }
  local f = dc.fn("f(x: f32[]) -> f32[]", function(x) return x * cfg.k end)
  lu.assertEquals(f(1):item(), 2)
  f(1)
  cfg = { k = 2 }
  lu.assertEquals(f(1):item(), 2)
  cfg.k = 3 -- of the new one
  fails("captured field 'cfg.k' changed from 2 to 3", f, 1)
end

function TestEachCall:test_kinds_of_values()
  local cfg = { n = 2, nan = 0 / 0, zero = 0.0, on = false, text = "a", none = nil }
  local f = dc.fn("f(x: f32[]) -> f32[]", function(x)
    local k = #tostring(cfg.n) + (cfg.nan == cfg.nan and 10 or 0) + (1 / cfg.zero > 0 and 0 or 20)
    return x * (k + (cfg.on and 40 or 0) + (cfg.none and 80 or 0) + #cfg.text)
  end)
  for _ = 1, 3 do lu.assertEquals(f(1):item(), 2) end
  local traces = count "traces"
  for _ = 1, 40 do lu.assertEquals(f(1):item(), 2) end
  lu.assertEquals(count "traces", traces) -- nan is what it was
  for key, value in pairs { n = 2.0, nan = 1, zero = -0.0, on = true, text = ("a"):rep(3), none = true } do
    local was = cfg[key]
    cfg[key] = value
    fails("changes the graph of 'f'", f, 1)
    cfg[key] = was
    lu.assertEquals(f(1):item(), 2)
  end
  cfg.text = ("a"):rep(60):sub(1, 1) -- an equal text
  lu.assertEquals(f(1):item(), 2)
  cfg.text = ("long"):rep(30)
  fails("changes the graph of 'f'", f, 1)
end

function TestEachCall:test_functions_in_tables()
  local lib = { act = function(x) return x * 2 end }
  local f = dc.fn("f(x: f32[]) -> f32[]", function(x) return lib.act(x) end)
  lu.assertEquals(f(1):item(), 2)
  function lib.act(x) return x * 3 end
  fails("captured field 'lib.act' changed from another function to another function", f, 1)
end

function TestEachCall:test_globals_that_are_named()
  rawset(_G, "NAMED", 2)
  rawset(_G, "TABLE", { k = 1 })
  local f = assert(load [[
    local dc = ...
    return dc.fn("f(x: f32[]) -> f32[]", function(x) return x * NAMED * TABLE.k * (rawget(_G, "OTHER") or 1) end)
  ]])(dc)
  for _ = 1, 3 do lu.assertEquals(f(3):item(), 6) end
  rawset(_G, "NAMED", 4)
  fails("captured global 'NAMED' changed from 2 to 4", f, 3)
  rawset(_G, "NAMED", 2)
  rawget(_G, "TABLE").k = 3
  fails("captured field 'TABLE.k' changed from 1 to 3", f, 3)
  rawget(_G, "TABLE").k = 1
  lu.assertEquals(f(3):item(), 6)
  rawset(_G, "OTHER", 5)
  fails("a field of captured '_G' was added or removed", f, 3)
  rawset(_G, "OTHER", nil)
  local traces = count "traces"
  for i = 1, 15 do
    rawset(_G, "UNRELATED" .. i, i)
    lu.assertEquals(f(3):item(), 6)
  end
  lu.assertTrue(count "traces" - traces <= 1) -- what nothing names is looked at in one call of sixteen
  for i = 1, 15 do rawset(_G, "UNRELATED" .. i, nil) end
  rawset(_G, "NAMED", nil)
  rawset(_G, "TABLE", nil)
end

function TestEachCall:test_a_module_of_the_script()
  package.loaded["tests.a_module"] = { k = 2 }
  local m = require "tests.a_module"
  local f = dc.fn("f(x: f32[]) -> f32[]", function(x) return x * m.k end)
  lu.assertEquals(f(3):item(), 6)
  m.k = 3
  fails("captured field 'm.k' changed from 2 to 3", f, 3)
  package.loaded["tests.a_module"] = nil
end

function TestEachCall:test_a_counter_that_nothing_names()
  local cfg, said = { k = 2, epoch = 0, log = {} }, {}
  local f = dc.fn("f(x: f32[]) -> f32[]", function(x) return x * cfg.k end)
  for _ = 1, 3 do f(1) end
  local before = count "traces"
  for i = 1, 200 do
    cfg.epoch = i
    cfg.log[#cfg.log + 1] = i
    said[i] = f(1):item()
  end
  lu.assertTrue(count "traces" - before <= 8, count "traces" - before)
  lu.assertEquals(said[200], 2)
  cfg.k = 3 -- in the same table
  fails("captured field 'cfg.k' changed from 2 to 3", f, 1)
end

function TestEachCall:test_a_counter_that_is_named()
  local cfg = { epoch = 0 }
  local f = dc.fn("f(x: f32[]) -> f32[]", function(x)
    if cfg.epoch > 50 then return x * 2 end
    return x
  end)
  for i = 1, 50 do
    cfg.epoch = i
    lu.assertEquals(f(1):item(), 1)
  end
  cfg.epoch = 51
  fails("captured field 'cfg.epoch' changed from 50 to 51", f, 1)
end

function TestEachCall:test_keys_that_are_gone_over()
  local scales = { a = 1, b = 1 }
  local f = dc.fn("f(x: f32[]) -> f32[]", function(x)
    for _, v in pairs(scales) do
      if v > 3 then x = x * v end
    end
    return x
  end)
  for i = 1, 3 do
    scales.a = i
    lu.assertEquals(f(1):item(), 1)
  end
  scales.a = 4
  fails("captured field 'scales.a' changed from 3 to 4", f, 1)
end

function TestEachCall:test_more_fields_than_that()
  local list = {}
  for i = 1, 300 do list[i] = 1 end
  local small = { k = 2 }
  local f = dc.fn("f(x: f32[]) -> f32[]", function(x) return x * list[7] * small.k end)
  for _ = 1, 3 do f(1) end
  small.k = 3
  fails("captured field 'small.k' changed from 2 to 3", f, 1)
  small.k = 2
  list[7] = 5
  fails("captured field 'list[7]' changed from 1 to 5", until_looked, f, 1)
end

-- Tables with a metatable: raw fields, the class, the classes above.
TestObjects = {}

local function class(above)
  local c = setmetatable({}, { __index = above })
  c.__index = c
  return c
end

function TestObjects:test_a_field_of_an_object()
  local Point = class()
  local o = setmetatable({ k = 1 }, Point)
  local f = dc.fn("f(x: f32[]) -> f32[]", function(x) return x * o.k end)
  for _ = 1, 3 do lu.assertEquals(f(2):item(), 2) end
  o.k = 5
  fails("captured field 'o.k' changed from 1 to 5 and changes the graph of 'f'", f, 2)
  o.k = 1
  lu.assertEquals(f(2):item(), 2)
end

function TestObjects:test_self_of_a_method()
  local Model = class()
  function Model.new(k)
    local model = setmetatable({ k = k, calls = 0 }, Model)
    model.f = dc.fn("f(x: f32[]) -> f32[]", function(x) return model:scale(x) end)
    return model
  end
  function Model:scale(x) return x * self.k end
  function Model:run(x)
    self.calls = self.calls + 1
    return self.f(x):item()
  end
  local m = Model.new(2)
  local before = count "traces"
  for i = 1, 300 do
    lu.assertEquals(m:run(i), 2 * i)
  end
  lu.assertTrue(count "traces" - before <= 8, count "traces" - before)
  m.k = 3
  fails("captured field 'model.k' changed from 2 to 3", m.run, m, 1)
end

function TestObjects:test_fields_of_the_class_and_above()
  local Base = class()
  Base.k, Base.deep = 2, 7
  local Derived = class(Base)
  local o = setmetatable({}, Derived)
  local f = dc.fn("f(x: f32[]) -> f32[]", function(x) return x * o.k * o.deep end)
  for _ = 1, 3 do lu.assertEquals(f(1):item(), 14) end
  Base.k = 3
  fails("captured field 'o.k' changed from 2 to 3", f, 1)
  Base.k, Derived.k = 2, 4
  fails("a field of captured 'o' was added or removed", f, 1)
  Derived.k = nil
  o.k = 5
  fails("a field of captured 'o' was added or removed", f, 1)
  o.k = nil
  lu.assertEquals(f(1):item(), 14)
end

function TestObjects:test_another_class()
  local A, B = class(), class()
  function A.scale(_, x) return x * 2 end
  function B.scale(_, x) return x * 3 end
  local o = setmetatable({}, A)
  local f = dc.fn("f(x: f32[]) -> f32[]", function(x) return o:scale(x) end)
  for _ = 1, 3 do lu.assertEquals(f(1):item(), 2) end
  setmetatable(o, B)
  fails("the metatable of captured 'o' changed and changes the graph of 'f'", f, 1)
  setmetatable(o, A)
  function A.scale(_, x) return x * 4 end
  fails("captured field 'o.scale' changed from another function to another function", f, 1)
end

function TestObjects:test_objects_in_tables_and_in_themselves()
  local o = setmetatable({ list = { setmetatable({ k = 2 }, class()) } }, class())
  o.itself = o
  local f = dc.fn("f(x: f32[]) -> f32[]", function(x) return x * o.itself.list[1].k end)
  for _ = 1, 3 do lu.assertEquals(f(1):item(), 2) end
  o.list[1].k = 6
  fails("captured field 'o.list[1].k' changed from 2 to 6", f, 1)
end

function TestObjects:test_one_as_a_static_argument()
  local o = setmetatable({ k = 2 }, class())
  local f = dc.fn("f(x: f32[], o) -> f32[]", function(x, o) return x * o.k end) -- luacheck: ignore 431
  for _ = 1, 3 do lu.assertEquals(f(1, o):item(), 2) end
  o.k = 3
  fails("captured field 'o.k' changed from 2 to 3", f, 1, o)
end

function TestObjects:test_weak_tables_keep_nothing_alive()
  local cache = setmetatable({ {} }, { __mode = "v" })
  local f = dc.fn("f(x: f32[]) -> f32[]", function(x) return cache and x end)
  f(1)
  collectgarbage()
  collectgarbage()
  lu.assertNil(cache[1])
end

function TestObjects:test_a_class_of_layers()
  local Scale = nn.class "Scale"
  Scale.k = 2
  function Scale:init() self._private_k, self.object = 1, setmetatable({ k = 1 }, class()) end
  function Scale:forward(x) return x * self.k * self._private_k * self.object.k end
  local layer = Scale()
  local f = dc.fn("f(x: f32[]) -> f32[]", function(x) return layer(x) end)
  for _ = 1, 3 do lu.assertEquals(f(1):item(), 2) end
  Scale.k = 3
  fails("changed from 2 to 3", f, 1)
  Scale.k = 2
  layer._private_k = 5
  fails("captured field 'layer._private_k' changed from 1 to 5", f, 1)
  layer._private_k = 1
  layer.object.k = 5
  fails("captured field 'layer.object.k' changed from 1 to 5", f, 1)
  lu.assertEquals(#layer:named_cells(), 0)
end

TestForbidden = {}

function TestForbidden:test_calls_whose_values_differ()
  local names = { ["math.random"] = math.random, ["os.time"] = os.time, ["os.clock"] = os.clock,
    ["io.read"] = io.read }
  for name, fn in pairs(names) do
    fails(name .. " is called while 'f' is traced, which happens once", dc.fn, "f(x: f32[]) -> f32[]",
      function(x)
        local v = fn()
        return x * v
      end)
  end
end

function TestForbidden:test_a_choice_that_nothing_explains()
  local next_number = coroutine.wrap(function()
    for i = 1, math.huge do coroutine.yield(i) end
  end)
  local f = dc.fn("f(x: f32[]) -> f32[]", function(x) return x * next_number() end)
  f(1)
  fails("two traces of 'f' differ, first at ", f, 1)
end

function TestForbidden:test_coroutines_that_end_inside()
  local f = dc.fn("f(x: f32[]) -> f32[]", function(x)
    local parts = coroutine.wrap(function()
      coroutine.yield(x * 2)
      coroutine.yield(x * 3)
    end)
    return parts() + parts()
  end)
  lu.assertEquals(f(2):item(), 10)
  lu.assertEquals(f(2):item(), 10)
end

TestStatics = {}

function TestStatics:test_each_value_is_a_specialisation()
  local k = dc.static(2)
  local f = dc.fn("f(x: f32[]) -> f32[]", function(x) return x * k.value end)
  lu.assertEquals(f(3):item(), 6)
  k.value = 5
  lu.assertEquals(f(3):item(), 15)
  local before = count "traces"
  for i = 1, 6 do
    k.value = i % 2 == 0 and 2 or 5
    lu.assertEquals(f(3):item(), i % 2 == 0 and 6 or 15)
  end
  lu.assertTrue(count "traces" - before <= 2) -- the second calls
  lu.assertEquals(#f:info(), 2)
  lu.assertEquals(tostring(k), "static 2")
end

function TestStatics:test_errors()
  local k = dc.static "a"
  fails("a static value has no 'val'", function() return k.val end)
  fails("a tensor is no static value", dc.static, dc.zeros "f32[2]")
  fails("a static value is assigned while 'f' is traced", dc.fn, "f(x: f32[]) -> f32[]", function(x)
    k.value = "b"
    return x
  end)
end

function TestStatics:test_static_parameters()
  local f = dc.fn("f(x: f32[], n, mode) -> f32[]", function(x, n, mode)
    for _ = 1, n do x = x * 2 end
    return mode == "neg" and -x or x
  end)
  lu.assertEquals(f(1, 3, "pos"):item(), 8)
  lu.assertEquals(f(1, 3, "neg"):item(), -8)
  lu.assertEquals(f(1, 0, nil):item(), 1)
  lu.assertEquals(f(1, 3, "pos"):item(), 8)
  lu.assertEquals(#f:info(), 3)
end

function TestStatics:test_2_and_2_0_are_two()
  local f = dc.fn("f(x: f32[], k) -> f32[]", function(x, k) return x * #tostring(k) end)
  lu.assertEquals(f(1, 2):item(), 1)
  lu.assertEquals(f(1, 2.0):item(), 3)
  lu.assertEquals(f(1, 2):item(), 1)
  lu.assertEquals(f(1, 0 / 0):item(), #tostring(0 / 0))
  local s = dc.static(2)
  local g = dc.fn("g(x: f32[]) -> f32[]", function(x) return x * #tostring(s.value) end)
  lu.assertEquals(g(1):item(), 1)
  s.value = 2.0
  lu.assertEquals(g(1):item(), 3)
end

TestLayers = {}

local function make()
  dc.seed(1)
  return nn.Sequential { nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2) }
end

function TestLayers:test_an_added_layer()
  local net = make()
  local f = dc.fn("f(x: f32[1, 4]) -> f32[1, 2]", function(x) return net(x) end)
  local x = dc.ones "f32[1, 4]"
  local a = f(x):totable()
  f(x)
  net[4] = nn.class "Twice" ()
  getmetatable(net[4]).forward = function(_, y) return y * 2 end
  local b = f(x):totable()
  lu.assertAlmostEquals(b[1][1], 2 * a[1][1], 1e-6)
  net[4] = nil
  lu.assertEquals(f(x):totable(), a)
end

function TestLayers:test_a_replaced_parameter()
  local net = make()
  local f = dc.fn("f(x: f32[1, 4]) -> f32[1, 2]", function(x) return net(x) end)
  local x = dc.ones "f32[1, 4]"
  f(x)
  f(x)
  net[3].weight = dc.param("f32[3, 2]", 0)
  net[3].bias:set { 7, 8 }
  lu.assertEquals(f(x):totable(), { { 7, 8 } })
  net[3].bias:set { 9, 10 } -- a value is no such change
  local traces = count "compiles"
  lu.assertEquals(f(x):totable(), { { 9, 10 } })
  lu.assertEquals(count "compiles", traces)
end

function TestLayers:test_training_and_evaluation()
  local Noise = nn.class "Noise"
  function Noise:forward(x) return self.training and x * 3 or x end
  local net = nn.Sequential { Noise() }
  local f = dc.fn("f(x: f32[]) -> f32[]", function(x) return net(x) end)
  lu.assertTrue(net[1].training)
  lu.assertEquals(f(1):item(), 3)
  net:eval()
  lu.assertFalse(net[1].training)
  lu.assertEquals(f(1):item(), 1)
  local before = count "compiles"
  for _ = 1, 4 do
    net:train()
    lu.assertEquals(f(1):item(), 3)
    net:eval()
    lu.assertEquals(f(1):item(), 1)
  end
  lu.assertEquals(count "compiles", before)
  lu.assertEquals(#f:info(), 2)
  fails("eval() is called for", dc.fn, "g(x: f32[]) -> f32[]", function(x)
    net:eval()
    return net(x)
  end)
end

function TestLayers:test_a_setting_of_a_layer()
  local Scale = nn.class "Scale"
  function Scale:init(k) self.k = k end
  function Scale:forward(x) return x * self.k end
  local layer = Scale(2)
  local f = dc.fn("f(x: f32[]) -> f32[]", function(x) return layer(x) end)
  lu.assertEquals(f(1):item(), 2)
  layer.k = 5
  lu.assertEquals(f(1):item(), 5)
end

function TestLayers:test_a_list_of_layers()
  local Stack = nn.class "Stack"
  function Stack:init() self.blocks = { nn.Linear(2, 2), nn.Linear(2, 2) } end
  function Stack:forward(x)
    for _, block in ipairs(self.blocks) do x = block(x) end
    return x
  end
  local net = Stack()
  lu.assertEquals(#net:parameters(), 4)
  local f = dc.fn("f(x: f32[1, 2]) -> f32[1, 2]", function(x) return net(x) end)
  until_looked(f, { { 1, 2 } })
  net.blocks[3] = nn.Linear(2, 2)
  fails("a field of captured 'net.blocks' was added or removed", until_looked, f, { { 1, 2 } })
  net.blocks = { net.blocks[1] } -- through the layer: another structure
  lu.assertEquals(f({ { 1, 2 } }).shape, { 1, 2 })
end

function TestLayers:test_freezing()
  local net = make()
  local opt = optim.SGD(net:parameters(), { lr = 0.1 })
  local step = dc.fn("step(x: f32[1, 4]) -> f32[]", function(x)
    local loss = net(x):sum()
    opt:step(loss)
    return loss
  end)
  local x = dc.ones "f32[1, 4]"
  net[1]:freeze()
  lu.assertEquals(#net:parameters(), 2)
  local w1, w3 = net[1].weight:totable(), net[3].weight:totable()
  step(x)
  lu.assertEquals(net[1].weight:totable(), w1)
  lu.assertNotEquals(net[3].weight:totable(), w3)
  net[1]:unfreeze()
  step(x)
  lu.assertNotEquals(net[1].weight:totable(), w1)
  lu.assertEquals(#net:parameters(), 4)
end

TestCellsMadeInside = {}

function TestCellsMadeInside:test_they_are_found_again()
  local f = dc.fn("f(x: f32[n]) -> f32[]", function(x)
    local total = dc.state "f32[]"
    total:set(total + x:sum())
    return total
  end)
  lu.assertEquals(f({ 1 }):item(), 1)
  lu.assertEquals(f({ 2 }):item(), 3)
  lu.assertEquals(f({ 1, 1 }):item(), 5) -- another specialisation, the same cell
  lu.assertEquals(f({ 1 }):item(), 6)
end

function TestCellsMadeInside:test_a_trace_that_raises_leaves_none()
  local before = count "bytes_live"
  for _ = 1, 3 do
    fails("stop", dc.fn, "f(x: f32[2]) -> f32[]", function(x)
      local total = dc.state "f32[1000]"
      total:set(total + x:sum())
      error "stop"
    end)
  end
  collectgarbage()
  collectgarbage()
  lu.assertEquals(count "bytes_live", before)
end

TestDeadCoroutines = {}

-- Lua closes nothing in a coroutine that an error ends.
function TestDeadCoroutines:test_a_trace_ends_with_its_coroutine()
  local function die(body)
    local f = dc.fn("f(x: f32[n]) -> f32[n]", body)
    local ok, err = coroutine.resume(coroutine.create(function() f { 1, 2 } end))
    lu.assertFalse(ok)
    return tostring(err)
  end
  lu.assertStrContains(die(function(x)
    coroutine.yield()
    return x
  end), "coroutine.yield out of 'f'")
  collectgarbage()
  collectgarbage()
  lu.assertEquals((dc.ones "f32[2]" + 1):totable(), { 2, 2 })
  lu.assertStrContains(die(function(x) return x:matmul(x, 3, x.nothing) end), "has no 'nothing'")
  local g = dc.fn("g(x: f32[n]) -> f32[n]", function(x) return x * 2 end)
  lu.assertEquals(g({ 1, 2 }):totable(), { 2, 4 })
  lu.assertEquals(dc.tensor({ 1, 2 }):sum():item(), 3)
end

function TestDeadCoroutines:test_a_call_inside_ends_with_its_coroutine()
  local inner = dc.fn("inner(x: f32[m]) -> f32[m]", function(x)
    error("stop" .. #x)
  end)
  local sizes = {}
  local f = dc.fn("f(x: f32[n]) -> f32[n]", function(x)
    sizes[1] = coroutine.resume(coroutine.create(function() inner(x) end))
    collectgarbage()
    collectgarbage()
    return x * dc.dim "n"
  end)
  lu.assertEquals(f({ 1, 2 }):totable(), { 2, 4 })
  lu.assertFalse(sizes[1])
end

TestNotes = {}

function TestNotes:test_what_a_specialisation_differs_in()
  local f = dc.fn("f(x: f32[n], k, m?: f32[], xs: {f32[]}) -> f32[n]", function(x, k, m, xs)
    for _, y in ipairs(xs) do x = x + y end
    return m and x * k + m or x * k
  end)
  local x = dc.ones "f32[2]"
  f(x, 2, nil, {})
  f(x, 3, nil, {})
  f(x, 3, 1, {})
  f(x, 3, 1, { 1, 2 })
  f(dc.ones "f32[4]", 3, 1, { 1, 2 })
  f(dc.ones "f32[4]", 3, nil, { 1, 2 })
  f(x, 2, nil, {})
  f(dc.ones "f32[4]", 3, nil, { 1 }) -- the nearest of all, whichever was called last
  local text = f:explain()
  for _, why in ipairs { "length of list xs 2 -> 1", "k 2 -> 3", "m is given now", "length of list xs 0 -> 2",
    "n 2 -> 4" } do
    lu.assertStrContains(text, why)
  end
end

TestStaticArguments = {}

function TestStaticArguments:test_what_a_table_holds_is_guarded()
  local o = { k = 2 }
  local f = dc.fn("f(x: f32[], o) -> f32[]", function(x, o) return x * o.k end) -- luacheck: ignore 431
  lu.assertEquals(f(1, o):item(), 2)
  o.k = 3
  fails("captured field 'o.k' changed from 2 to 3 and changes the graph of 'f'", until_looked, f, 1, o)
end

function TestStaticArguments:test_what_a_function_captured_is_guarded()
  local k = 2
  local function scale(x) return x * k end
  local f = dc.fn("f(x: f32[], act) -> f32[]", function(x, act) return act(x) end)
  lu.assertEquals(f(1, scale):item(), 2)
  k = 3
  fails("captured local 'k' changed from 2 to 3 and changes the graph of 'f'", f, 1, scale)
end
