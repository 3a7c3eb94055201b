-- Typed functions as programs of StableHLO, read again by deepc: equal results, of each operation that can be written.
local lu = require "luaunit"
local dc = require "deepc"
local nn = require "deepc.nn"
local optim = require "deepc.optim"
local linalg = require "deepc.linalg"
local stablehlo = require "deepc.stablehlo"
local write = require "deepc.stablehlo.write"

local root = package.path:match "^(.-)/%.%./%?%.lua" .. "/stablehlo"

local compare = dofile(root .. "/again.lua").compare

TestStablehloOut = {}

function TestStablehloOut:test_each_operation_is_read_again()
  local used, rows = {}, write.rows
  for name, row in pairs(rows) do
    rows[name] = function(...)
      used[name] = true
      return row(...)
    end
  end
  for _, case in ipairs(dofile(root .. "/cases.lua")) do
    case.f(table.unpack(case.args))
    compare(case.name, case.f, case.args, case.near)
  end
  local missing = {}
  for name in pairs(rows) do
    missing[#missing + 1] = not used[name] and name or nil
  end
  table.sort(missing)
  lu.assertEquals(table.concat(missing, " "), "custom_grad hole reshard")
end

-- ---- the program -----------------------------------------------------------------------------------

local function lines_of(source, pattern)
  local list = {}
  for line in source:gmatch "[^\n]+" do
    list[#list + 1] = line:find(pattern) and line or nil
  end
  return list
end

function TestStablehloOut:test_a_step_of_training()
  local net = nn.Sequential { nn.Linear(4, 3) }
  local opt = optim.SGD(net:parameters(), { lr = 0.1 })
  local step = dc.fn("step(x: f32[n, 4], y: i32[n]) -> f32[]", function(x, y)
    local loss = nn.cross_entropy(net(x), y)
    opt:step(loss)
    return loss
  end)
  local x, y = dc.rand "f32[2, 4]", dc.tensor({ 0, 2 }, "i32[2]")
  step(x, y)
  local source, arguments, results = compare("step", step, { x, y }, 1e-6)
  local what = {}
  for i, a in ipairs(arguments) do
    what[i] = ("%s %s %s"):format(a.role, a.name, a.dtype)
  end
  lu.assertEquals({ what[1], what[2] }, { "argument x f32", "argument y i32" })
  lu.assertItemsEquals({ what[3], what[4] }, { "parameter net.1.weight f32", "parameter net.1.bias f32" })
  lu.assertEquals(results[1].argument, nil)
  local replaced = { results[2].argument, results[3].argument }
  table.sort(replaced)
  lu.assertEquals(replaced, { 3, 4 })
  lu.assertEquals(#lines_of(source, "tf.aliasing_output = 1 : i32.*tf.aliasing_output = 2 : i32"), 1)
  lu.assertStrContains(source, 'loc("x")')
  lu.assertStrContains(source, 'jax.result_info = "net.1.weight"')
  lu.assertStrContains(source, 'test_stablehlo_out.lua":')
  lu.assertEquals(stablehlo.text(step), source)
end

function TestStablehloOut:test_what_is_constant()
  local w, c, n = dc.param(dc.tensor { 1, 2 }), dc.tensor { 3, 4 }, dc.state "f32[]"
  local f = dc.fn("f(x: f32[2]) -> f32[2]", function(x)
    n:set(n + 1)
    return x * w + c
  end)
  local function roles(options)
    local _, arguments = compare("f", f, { dc.tensor { 5, 6 } }, 0, nil, options)
    local list = {}
    for i, a in ipairs(arguments) do
      list[i] = a.role
    end
    table.sort(list)
    return table.concat(list, " ")
  end
  lu.assertEquals(roles(), "argument parameter state")
  lu.assertEquals(roles { parameters = "constants" }, "argument state")
  lu.assertEquals(roles { captured = "arguments" }, "argument captured parameter state")
  lu.assertEquals(roles { parameters = "constants", captured = "arguments" }, "argument captured state")
  local places = stablehlo.text(f, nil, { places = false })
  lu.assertNotStrContains(places, "loc(")
end

function TestStablehloOut:test_records_and_lists()
  local f = dc.fn("f(p: {w: f32[2], b: f32[]}, xs: {f32[2]}) -> f32[2], {s: f32[]}", function(p, xs)
    return p.w * xs[1] + p.b * xs[2], { s = p.w:sum() }
  end)
  local p, xs = { w = dc.tensor { 1, 2 }, b = dc.tensor(3) }, { dc.tensor { 4, 5 }, dc.tensor { 6, 7 } }
  f(p, xs)
  local source, arguments = stablehlo.text(f)
  local names = {}
  for i, a in ipairs(arguments) do
    names[i] = a.name
  end
  lu.assertEquals(names, { "p.w", "p.b", "xs[1]", "xs[2]" })
  lu.assertEquals(#lines_of(source, "@main%(%%p.w: tensor<2xf32> .*%%xs_1: tensor<2xf32>"), 1)
  local y, s = stablehlo.load(source)(p.w, p.b, xs[1], xs[2])
  lu.assertEquals({ y:totable(), s:item() }, { { 22, 31 }, 3 })
end

function TestStablehloOut:test_names_differ()
  local a, b = dc.state(dc.tensor(1)), dc.state(dc.tensor(2))
  local f = dc.fn("f(state: f32[]) -> f32[]", function(state)
    b:set(b + state)
    return a + b
  end)
  f(3)
  local _, arguments, results = compare("f", f, { dc.tensor(3) }, 0)
  local names = {}
  for i, x in ipairs(arguments) do
    names[i] = x.name
  end
  table.sort(names)
  lu.assertEquals(#names, 3)
  lu.assertTrue(names[1] ~= names[2] and names[2] ~= names[3], table.concat(names, " "))
  lu.assertEquals(results[2].name, arguments[results[2].argument].name)
end

function TestStablehloOut:test_complex_states()
  local z = dc.state(dc.complex(dc.tensor { 1, 2 }, dc.tensor { 3, 4 }))
  local f = dc.fn("f(x: c64[2]) -> f32[2]", function(x)
    z:set(z * x)
    return z:abs()
  end)
  local x = dc.complex(dc.tensor { 0, 1 }, dc.tensor { 2, -1 })
  f(x)
  local _, arguments = compare("f", f, { x }, 1e-6)
  lu.assertEquals({ arguments[1].dtype, arguments[2].dtype, arguments[2].shape }, { "c64", "c64", { 2 } })
  compare("f", f, { x }, 1e-6, nil, { parameters = "constants" })
end

-- Values that ranks share are no part of a program of one rank.
function TestStablehloOut:test_what_ranks_share()
  dc.mesh { data = 1 }
  local f = dc.fn("f(x: f32[n @ data]) -> f32[n @ data]", function(x) return x * 2 end)
  lu.assertErrorMsgContains("a program of one rank is written, and ranks share what 'f' computes", stablehlo.text, f,
    { n = 2 })
end

function TestStablehloOut:test_precision()
  local f = dc.fn("f(x: f32[2, 3], y: f32[3, 2]) -> f32[2, 2]", function(x, y) return x:matmul(y) end)
  local args = { dc.rand "f32[2, 3]", dc.rand "f32[3, 2]" }
  local source = compare("f", f, args, 1e-6, nil, { precision = "highest" })
  lu.assertStrContains(source, "[#stablehlo<precision HIGHEST>, #stablehlo<precision HIGHEST>]")
  lu.assertNotStrContains(stablehlo.text(f), "precision")
end

-- What calls print and what they check of their data is no part of a program.
function TestStablehloOut:test_what_is_left_out()
  local f = dc.fn("f(x: f32[3], i: i32[2]) -> f32[2]", function(x, i)
    dc.print("x", x)
    return x:take(i, 1)
  end)
  local _, arguments, results = stablehlo.text(f)
  lu.assertEquals({ #arguments, #results }, { 2, 1 })
end

function TestStablehloOut:test_inside_a_typed_function()
  local f = dc.fn("f(x: f32[3]) -> f32[3]", function(x) return x end)
  local g = dc.fn("g(x: f32[n]) -> f32[n]", function(x)
    stablehlo.text(f)
    return x
  end)
  lu.assertErrorMsgContains("stablehlo.text", g, dc.rand "f32[3]")
end

function TestStablehloOut:test_sizes()
  local f = dc.fn("f(x: f32[n]) -> f32[]", function(x) return x:sum() end)
  lu.assertErrorMsgContains("'f' was compiled for no sizes yet: its sizes, { batch = 1 }, say which is meant",
    stablehlo.text, f)
  lu.assertStrContains(stablehlo.text(f, { n = 3 }), "tensor<3xf32>")
  lu.assertStrContains(stablehlo.text(f), "tensor<3xf32>")
  lu.assertStrContains(stablehlo.text(f, { n = 5 }), "tensor<5xf32>")
  lu.assertErrorMsgContains("'f' was compiled for several sizes", stablehlo.text, f)
  local bounded = dc.fn("g(x: f32[n <= 8]) -> f32[]", function(x) return x:sum() end)
  bounded(dc.rand "f32[3]")
  lu.assertErrorMsgContains("files hold functions of fixed sizes; f:export(path, { n = 64 })", stablehlo.text, bounded)
  lu.assertStrContains(stablehlo.text(bounded, { n = 4 }), "tensor<4xf32>")
end

function TestStablehloOut:test_what_has_no_operation()
  local f = dc.fn("f(a: f32[3, 3]) -> f32[3]", function(a) return (linalg.eigh(a)) end)
  lu.assertErrorMsgContains("StableHLO has no operation for 'eigh'", stablehlo.text, f)
  lu.assertErrorMsgContains("test_stablehlo_out.lua:", stablehlo.text, f)
end

function TestStablehloOut:test_options()
  local f = dc.fn("f(x: f32[2]) -> f32[2]", function(x) return x end)
  lu.assertErrorMsgContains('parameters is one of "arguments", "constants", not \'inline\'', stablehlo.text, f, nil,
    { parameters = "inline" })
  lu.assertErrorMsgContains('precision is one of "default", "high", "highest", not 3', stablehlo.text, f, nil,
    { precision = 3 })
  lu.assertErrorMsgContains("unknown option 'lines'", stablehlo.text, f, nil, { lines = false })
end

-- Elements that are no numbers of the text: packed booleans, patterns, what has no elements.
function TestStablehloOut:test_constants()
  for n = 1, 17 do
    local list = {}
    for i = 1, n do
      list[i] = i * 7 % 3 == 0
    end
    local mask = dc.tensor(list, ("bool[%d]"):format(n))
    local f = dc.fn(("f(x: bool[%d]) -> bool[%d]"):format(n, n), function(x) return x & mask end)
    f(mask)
    for _, source in ipairs { (stablehlo.text(f)), (stablehlo.bytecode(f)) } do
      lu.assertEquals(stablehlo.load(source)(dc.ones(("i32[%d]"):format(n)):eq(1)):totable(), list)
    end
  end
  local none, z = dc.zeros "f32[0, 3]", dc.complex(dc.tensor { 1, 0 }, dc.tensor { 2, 3 })
  local short = dc.tensor({ 1, -2, 0.5 }, "f8e4m3fn[3]")
  local large = dc.tensor({ 1, 2, 3 }, "u64[3]") - dc.tensor({ 2, 2, 2 }, "u64[3]")
  local f = dc.fn("f() -> f32[0, 3], f8e4m3fn[3], c64[2], u64[3], bf16[2], f64[]", function()
    return none, short, z, large, dc.full("bf16[2]", 1.5), dc.full("f64[]", 1 / 3)
  end)
  f()
  compare("constants", f, {}, 0)
end

-- ---- files -----------------------------------------------------------------------------------------

function TestStablehloOut:test_files()
  local path = os.tmpname() .. ".mlir"
  local f = dc.fn("f(x: f32[n]) -> f32[n]", function(x) return x * 2 end)
  f:export(path, { n = 3 })
  lu.assertEquals(stablehlo.load(path)({ 1, 2, 3 }):totable(), { 2, 4, 6 })
  local arguments, results = stablehlo.export(f, path, { n = 2 }, { places = false })
  lu.assertEquals({ arguments[1].name, results[1].name }, { "x", "result1" })
  lu.assertEquals(stablehlo.load(path)({ 1, 2 }):totable(), { 2, 4 })
  os.remove(path)
  path = path .. "bc"
  f:export(path, { n = 3 }, { places = false })
  lu.assertEquals(stablehlo.load(path)({ 1, 2, 3 }):totable(), { 2, 4, 6 })
  os.remove(path)
  local none = dc.fn("f(a: f32[3, 3]) -> f32[3]", function(a) return (linalg.eigh(a)) end)
  lu.assertErrorMsgContains("no operation for 'eigh'", none.export, none, path)
  lu.assertNil(io.open(path))
  lu.assertErrorMsgContains("DC0801", f.export, f, "/nowhere/at/all.mlir", { n = 3 })
end
