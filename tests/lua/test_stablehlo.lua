-- Programs of StableHLO as typed functions: one of each kind of operation, inside and outside of typed functions,
-- with what they mean written out in numbers or in operations of deepc.
local lu = require "luaunit"
local dc = require "deepc"
local stablehlo = require "deepc.stablehlo"
local text = require "deepc.stablehlo.text"
local translate = require "deepc.stablehlo.translate"

-- A program of one function: its arguments and results as text, its lines.
local function program(args, results, body)
  return ("func.func @main(%s) -> (%s) {\n%s\n}"):format(args, results, body)
end

local function values(x)
  return #x.shape == 0 and x:item() or x:totable()
end

-- The results, which typed functions and lazy code agree in.
local function run(source, ...)
  local f = stablehlo.load(source)
  local module = text.read(source, "test")
  local args = table.pack(...)
  for i, a in ipairs(module.functions.main.args) do
    args[i] = dc.tensor(args[i], ("%s[%s]"):format(a.type.dtype, table.concat(a.type.shape, ", ")))
  end
  local compiled, lazy = { f(table.unpack(args, 1, args.n)) }, { translate.call(module, module.functions.main, args) }
  lu.assertEquals(#compiled, #lazy)
  for i, x in ipairs(compiled) do
    lu.assertEquals(tostring(lazy[i]), tostring(x))
    compiled[i] = values(x)
  end
  return table.unpack(compiled)
end

-- One operation in generic or pretty form, of arguments %a, %b ... of these types.
local function one(op, types, result, ...)
  local args = {}
  for i, t in ipairs(types) do
    args[i] = ("%%%s: tensor<%s>"):format(("abcdef"):sub(i, i), t)
  end
  return run(program(table.concat(args, ", "), ("tensor<%s>"):format(result),
    ("  %%r = %s\n  return %%r : tensor<%s>"):format(op, result)), ...)
end

TestStablehlo = {}

function TestStablehlo:test_integers()
  lu.assertEquals(one("stablehlo.divide %a, %b : tensor<4xi32>", { "4xi32", "4xi32" }, "4xi32", { -7, 7, -7, 9 },
    { 2, 2, -2, 4 }), { -3, 3, 3, 2 })
  lu.assertEquals(one("stablehlo.remainder %a, %b : tensor<3xi32>", { "3xi32", "3xi32" }, "3xi32", { -7, 7, -7 },
    { 2, -2, -2 }), { -1, 1, -1 })
  lu.assertEquals(one("stablehlo.shift_right_logical %a, %b : tensor<2xi32>", { "2xi32", "2xi32" }, "2xi32", { -1, 8 },
    { 28, 1 }), { 15, 4 })
  lu.assertEquals(one("stablehlo.power %a, %b : tensor<3xi32>", { "3xi32", "3xi32" }, "3xi32",
    { 3, 2, -2 }, { 4, 10, 3 }),
    { 81, 1024, -8 })
  lu.assertEquals(one("stablehlo.add %a, %b : tensor<2xi1>", { "2xi1", "2xi1" }, "2xi1",
    { true, false }, { true, false }),
    { true, false })
  lu.assertEquals(one("stablehlo.add %a, %b : tensor<1xui8>", { "1xui8", "1xui8" }, "1xui8", { 200 }, { 100 }), { 44 })
end

function TestStablehlo:test_floats()
  lu.assertEquals(one("stablehlo.round_nearest_afz %a : tensor<5xf32>", { "5xf32" }, "5xf32",
    { 2.5, -2.5, 0.49999997, 3.4, -0.5 }), { 3, -3, 0, 3, -1 })
  lu.assertEquals(one("stablehlo.clamp %a, %b, %c : tensor<3xf32>", { "3xf32", "3xf32", "3xf32" }, "3xf32", { 0, 0, 0 },
    { -1, 0.5, 7 }, { 1, 1, 1 }), { 0, 0.5, 1 })
  lu.assertEquals(one("stablehlo.compare LE, %a, %b, FLOAT : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xi1>",
    { "2xf32", "2xf32" }, "2xi1", { 1, 3 }, { 1, 2 }), { true, false })
  lu.assertEquals(one("stablehlo.convert %a : (tensor<3xf32>) -> tensor<3xi1>", { "3xf32" }, "3xi1", { 0, 0.5, -2 }),
    { false, true, true })
end

function TestStablehlo:test_constants()
  local function constant(literal, t)
    return values(stablehlo.load(program("", "tensor<" .. t .. ">",
      ("  %%r = stablehlo.constant dense<%s> : tensor<%s>\n  return %%r : tensor<%s>"):format(literal, t, t)))())
  end
  lu.assertEquals(constant("[1, -2, 0xFF]", "3xi8"), { 1, -2, -1 })
  lu.assertEquals(constant("[0x3F800000, 0xFF800000, 0.5]", "3xf32"), { 1, -math.huge, 0.5 })
  lu.assertEquals(constant("[0x3F80, 0x4000]", "2xbf16"), { 1, 2 })
  lu.assertEquals(constant('"0x0000803F00000040"', "2xf32"), { 1, 2 })
  lu.assertEquals(constant("[true, false]", "2xi1"), { true, false })
  lu.assertEquals(constant("0xFF800000", "f32"), -math.huge)
  lu.assertEquals(constant("7", "2x2xi64"), { { 7, 7 }, { 7, 7 } })
  lu.assertEquals(constant("[(1.0, 2.0), (3.0, -1.0)]", "2xcomplex<f32>"), { { 1, 2 }, { 3, -1 } })
  local large = stablehlo.load(program("", "tensor<1xui64>",
    "  %r = stablehlo.constant dense<18446744073709551615> : tensor<1xui64>\n  return %r : tensor<1xui64>"))
  lu.assertStrContains(tostring(large()), "18446744073709551615")
end

function TestStablehlo:test_movement()
  local x = { { 1, 2, 3 }, { 4, 5, 6 } }
  lu.assertEquals(one("stablehlo.transpose %a, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>", { "2x3xf32" },
    "3x2xf32", x), { { 1, 4 }, { 2, 5 }, { 3, 6 } })
  lu.assertEquals(one("stablehlo.slice %a [0:2, 0:3:2] : (tensor<2x3xf32>) -> tensor<2x2xf32>", { "2x3xf32" },
    "2x2xf32", x),
    { { 1, 3 }, { 4, 6 } })
  lu.assertEquals(one("stablehlo.reverse %a, dims = [1] : tensor<2x3xf32>", { "2x3xf32" }, "2x3xf32", x),
    { { 3, 2, 1 }, { 6, 5, 4 } })
  lu.assertEquals(one("stablehlo.broadcast_in_dim %a, dims = [1] : (tensor<2xf32>) -> tensor<3x2xf32>", { "2xf32" },
    "3x2xf32", { 8, 9 }), { { 8, 9 }, { 8, 9 }, { 8, 9 } })
  lu.assertEquals(one("stablehlo.concatenate %a, %b, dim = 0 : (tensor<2xf32>, tensor<1xf32>) -> tensor<3xf32>",
    { "2xf32", "1xf32" }, "3xf32", { 1, 2 }, { 3 }), { 1, 2, 3 })
  lu.assertEquals(one("stablehlo.pad %a, %b, low = [1], high = [-1], interior = [1] : " ..
    "(tensor<3xf32>, tensor<f32>) -> tensor<5xf32>",
    { "3xf32", "f32" }, "5xf32", { 1, 2, 3 }, 9), { 9, 1, 9, 2, 9 })
  lu.assertEquals(one("stablehlo.iota dim = 1 : tensor<2x3xi32>", {}, "2x3xi32"), { { 0, 1, 2 }, { 0, 1, 2 } })
end

-- What is put round the elements is known when the function is called.
function TestStablehlo:test_pad_with_data()
  local op = "stablehlo.pad %%a, %%b, low = [1], high = [0], interior = [1] : "
    .. "(tensor<2x%s>, tensor<%s>) -> tensor<4x%s>"
  lu.assertEquals(one(op:format("i1", "i1", "i1"), { "2xi1", "i1" }, "4xi1", { true, false }, true),
    { true, true, true, false })
  lu.assertEquals(one(op:format("f32", "f32", "f32"), { "2xf32", "f32" }, "4xf32", { 1, 2 }, 7), { 7, 1, 7, 2 })
end

function TestStablehlo:test_parts_at_places()
  lu.assertEquals(one("stablehlo.dynamic_slice %a, %b, sizes = [2] : (tensor<5xf32>, tensor<i32>) -> tensor<2xf32>",
    { "5xf32", "i32" }, "2xf32", { 1, 2, 3, 4, 5 }, 9), { 4, 5 })
  lu.assertEquals(one("stablehlo.dynamic_update_slice %a, %b, %c : " ..
    "(tensor<4xf32>, tensor<2xf32>, tensor<i32>) -> tensor<4xf32>",
    { "4xf32", "2xf32", "i32" }, "4xf32", { 1, 2, 3, 4 }, { 8, 9 }, 1), { 1, 8, 9, 4 })
end

function TestStablehlo:test_gather()
  local rows = [["stablehlo.gather"(%a, %b) <{dimension_numbers = #stablehlo.gather<offset_dims = [1],
    collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 2>}>
    : (tensor<3x2xf32>, tensor<4x1xi32>) -> tensor<4x2xf32>]]
  lu.assertEquals(one(rows, { "3x2xf32", "4x1xi32" }, "4x2xf32", { { 1, 2 }, { 3, 4 }, { 5, 6 } },
    { { 2 }, { 0 }, { 7 }, { -1 } }),
    { { 5, 6 }, { 1, 2 }, { 5, 6 }, { 1, 2 } })
  local windows = [["stablehlo.gather"(%a, %b) <{dimension_numbers = #stablehlo.gather<offset_dims = [0, 1],
    start_index_map = [1, 0]>, slice_sizes = array<i64: 2, 1>}> : (tensor<3x2xf32>, tensor<2xi32>) -> tensor<2x1xf32>]]
  lu.assertEquals(one(windows, { "3x2xf32", "2xi32" }, "2x1xf32", { { 1, 2 }, { 3, 4 }, { 5, 6 } }, { 1, 5 }),
    { { 4 }, { 6 } })
end

local scatter = [["stablehlo.scatter"(%%a, %%b, %%c) <{scatter_dimension_numbers = #stablehlo.scatter<
  inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%%x: tensor<f32>, %%y: tensor<f32>):
    %s
  }) : (tensor<4xf32>, tensor<3x1xi32>, tensor<3xf32>) -> tensor<4xf32>]]

function TestStablehlo:test_scatter()
  local types, x, i, u = { "4xf32", "3x1xi32", "3xf32" }, { 1, 2, 3, 4 }, { { 1 }, { 1 }, { 9 } }, { 5, 7, 100 }
  for body, want in pairs {
    ["%z = stablehlo.add %x, %y : tensor<f32>\nstablehlo.return %z : tensor<f32>"] = { 1, 14, 3, 4 },
    ["stablehlo.return %y : tensor<f32>"] = { 1, 7, 3, 4 },
    ["%z = stablehlo.subtract %x, %y : tensor<f32>\nstablehlo.return %z : tensor<f32>"] = { 1, -10, 3, 4 },
    ["%w = stablehlo.multiply %x, %y : tensor<f32>\n%z = stablehlo.subtract %w, %y : tensor<f32>\n" ..
      "stablehlo.return %z : tensor<f32>"] = { 1, 28, 3, 4 }, -- ((2 * 5 - 5) * 7 - 7)
  } do
    lu.assertEquals(one(scatter:format(body), types, "4xf32", x, i, u), want)
  end
end

-- Rows along an axis in the middle, whose windows come in another order; what is outside is left out.
function TestStablehlo:test_scatter_rows()
  local function rows(index, body, outside)
    return one(([["stablehlo.scatter"(%%a, %%b, %%c) ({
      ^bb0(%%p: tensor<f32>, %%q: tensor<f32>):
        %%s = stablehlo.%s %%p, %%q : tensor<f32>
        stablehlo.return %%s : tensor<f32>
      }) {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0, 2], inserted_window_dims = [1],
        scatter_dims_to_operand_dims = [1], index_vector_dim = 1>, indices_are_sorted = false, unique_indices = false} :
        (tensor<2x3x2xf32>, tensor<3x1x%s>, tensor<2x3x2xf32>) -> tensor<2x3x2xf32>]]):format(body, index),
      { "2x3x2xf32", "3x1x" .. index, "2x3x2xf32" }, "2x3x2xf32",
      { { { 1, 1 }, { 1, 1 }, { 1, 1 } }, { { 1, 1 }, { 1, 1 }, { 1, 1 } } },
      { { 2 }, { outside }, { 2 } }, { { { 1, 2 }, { 3, 4 }, { 5, 6 } }, { { 7, 8 }, { 9, 10 }, { 11, 12 } } })
  end
  for _, index in ipairs { "i32", "i64", "i8" } do
    lu.assertEquals(rows(index, "add", -1), { { { 1, 1 }, { 1, 1 }, { 7, 9 } }, { { 1, 1 }, { 1, 1 }, { 19, 21 } } })
    lu.assertEquals(rows(index, "maximum", 3),
      { { { 1, 1 }, { 1, 1 }, { 5, 6 } }, { { 1, 1 }, { 1, 1 }, { 11, 12 } } })
  end
  lu.assertEquals(rows("ui32", "multiply", 4294967295),
    { { { 1, 1 }, { 1, 1 }, { 5, 12 } }, { { 1, 1 }, { 1, 1 }, { 77, 96 } } })
end

function TestStablehlo:test_reduce()
  lu.assertEquals(one("stablehlo.reduce(%a init: %b) applies stablehlo.maximum across dimensions = [1] : " ..
    "(tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>", { "2x3xf32", "f32" }, "2xf32",
    { { 1, 5, 2 }, { -1, -2, -3 } }, 0),
    { 5, 0 })
  local value, place = run(program("%a: tensor<5xf32>, %i: tensor<5xi32>", "tensor<f32>, tensor<i32>", [[
  %c = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %d = stablehlo.constant dense<0> : tensor<i32>
  %1:2 = stablehlo.reduce(%a init: %c), (%i init: %d) across dimensions = [0]
   : (tensor<5xf32>, tensor<5xi32>, tensor<f32>, tensor<i32>) -> (tensor<f32>, tensor<i32>)
   reducer(%p: tensor<f32>, %q: tensor<f32>) (%k: tensor<i32>, %l: tensor<i32>)  {
    %g = stablehlo.compare GT, %p, %q, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %v = stablehlo.select %g, %p, %q : tensor<i1>, tensor<f32>
    %w = stablehlo.select %g, %k, %l : tensor<i1>, tensor<i32>
    stablehlo.return %v, %w : tensor<f32>, tensor<i32>
  }
  return %1#0, %1#1 : tensor<f32>, tensor<i32>]]), { 1, 9, 3, 7, 2 }, { 0, 1, 2, 3, 4 })
  lu.assertEquals({ value, place }, { 9, 1 })
end

-- Subtraction is no sum: the order of the elements is kept.
function TestStablehlo:test_reduce_keeps_the_order()
  lu.assertEquals(one([[stablehlo.reduce(%a init: %b) across dimensions = [0]
   : (tensor<3xf32>, tensor<f32>) -> tensor<f32>
   reducer(%x: tensor<f32>, %y: tensor<f32>) {
    %z = stablehlo.add %y, %y : tensor<f32>
    %w = stablehlo.subtract %z, %y : tensor<f32>
    stablehlo.return %w : tensor<f32>
  }]], { "3xf32", "f32" }, "f32", { 4, 5, 6 }, 0), 6)
end

function TestStablehlo:test_windows()
  local pool = [=["stablehlo.reduce_window"(%%a, %%b) <{window_dimensions = array<i64: 2>,
    window_strides = array<i64: %d>,
    padding = dense<[[%s]]> : tensor<1x2xi64>}> ({
    ^bb0(%%x: tensor<f32>, %%y: tensor<f32>):
      %%z = stablehlo.%s %%x, %%y : tensor<f32>
      stablehlo.return %%z : tensor<f32>
    }) : (tensor<4xf32>, tensor<f32>) -> tensor<%dxf32>]=]
  lu.assertEquals(one(pool:format(2, "0, 0", "maximum", 2), { "4xf32", "f32" }, "2xf32", { 1, 4, 3, 2 }, -1), { 4, 3 })
  lu.assertEquals(one(pool:format(1, "1, 0", "add", 4), { "4xf32", "f32" }, "4xf32", { 1, 4, 3, 2 }, 0), { 1, 5, 7, 5 })
  lu.assertEquals(one([["stablehlo.select_and_scatter"(%a, %b, %c) <{window_dimensions = array<i64: 2>,
    window_strides = array<i64: 2>}> ({
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %z = stablehlo.compare GE, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %z : tensor<i1>
    }, {
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %z = stablehlo.add %x, %y : tensor<f32>
      stablehlo.return %z : tensor<f32>
    }) : (tensor<4xf32>, tensor<2xf32>, tensor<f32>) -> tensor<4xf32>]], { "4xf32", "2xf32", "f32" },
    "4xf32", { 1, 4, 3, 2 },
    { 10, 20 }, 0), { 0, 10, 20, 0 })
end

-- Everything up to each element, forwards and backwards, by a body of several operations.
function TestStablehlo:test_running_windows()
  local function running(padding, n)
    return stablehlo.load(program(("%%x: tensor<%dxf32>"):format(n), ("tensor<%dxf32>"):format(n), ([=[
      %%zero = stablehlo.constant dense<0.0> : tensor<f32>
      %%r = "stablehlo.reduce_window"(%%x, %%zero) <{window_dimensions = array<i64: N>,
        padding = dense<[[%s]]> : tensor<1x2xi64>}> ({
      ^bb0(%%a: tensor<f32>, %%b: tensor<f32>):
        %%1 = stablehlo.multiply %%a, %%b : tensor<f32>
        %%2 = stablehlo.add %%a, %%b : tensor<f32>
        %%3 = stablehlo.add %%1, %%2 : tensor<f32>
        stablehlo.return %%3 : tensor<f32>
      }) : (tensor<Nxf32>, tensor<f32>) -> tensor<Nxf32>
      return %%r : tensor<Nxf32>]=]):format(padding):gsub("N", n)))
  end
  for _, n in ipairs { 8, 20, 5000 } do -- (1 + a) (1 + b) - 1
    local x = (dc.iota(n):cast "f32"):sin() / 100
    local want = (x + 1):cumprod(1) - 1
    lu.assertTrue((running(("%d, 0"):format(n - 1), n)(x) - want):abs():max():item() < 1e-4, n)
    want = (x + 1):flip(1):cumprod(1):flip(1) - 1
    lu.assertTrue((running(("0, %d"):format(n - 1), n)(x) - want):abs():max():item() < 1e-4, n)
  end
end

function TestStablehlo:test_convolution()
  local x, w = { { { 1 }, { 2 }, { 3 }, { 4 } } }, { { { 1 } }, { { 10 } } }
  lu.assertEquals(one("stablehlo.convolution(%a, %b) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], " ..
    "window = {stride = [1], pad = [[1, 0]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : " ..
    "(tensor<1x4x1xf32>, tensor<2x1x1xf32>) -> tensor<1x4x1xf32>", { "1x4x1xf32", "2x1x1xf32" }, "1x4x1xf32", x, w),
    { { { 10 }, { 21 }, { 32 }, { 43 } } })
  lu.assertEquals(one("stablehlo.convolution(%a, %b) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], " ..
    "window = {lhs_dilate = [2], reverse = [true]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : " ..
    "(tensor<1x4x1xf32>, tensor<2x1x1xf32>) -> tensor<1x6x1xf32>", { "1x4x1xf32", "2x1x1xf32" }, "1x6x1xf32", x, w),
    { { { 10 }, { 2 }, { 20 }, { 3 }, { 30 }, { 4 } } })
end

function TestStablehlo:test_dot()
  lu.assertEquals(one("stablehlo.dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [2] x [1] : " ..
    "(tensor<2x1x2xi8>, tensor<2x2x1xi8>) -> tensor<2x1x1xi32>", { "2x1x2xi8", "2x2x1xi8" }, "2x1x1xi32",
    { { { 100, 100 } }, { { 1, 2 } } }, { { { 100 }, { 100 } }, { { 3 }, { 4 } } }), { { { 20000 } }, { { 11 } } })
end

local sort = [["stablehlo.sort"(%%a, %%b) <{dimension = 0 : i64, is_stable = true}> ({
  ^bb0(%%p: tensor<f32>, %%q: tensor<f32>, %%k: tensor<i32>, %%l: tensor<i32>):
    %s
    stablehlo.return %%r : tensor<i1>
  }) : (tensor<4xf32>, tensor<4xi32>) -> (tensor<4xf32>, tensor<4xi32>)]]

function TestStablehlo:test_sort()
  for body, want in pairs {
    ["%r = stablehlo.compare LT, %p, %q : (tensor<f32>, tensor<f32>) -> tensor<i1>"] =
      { { 1, 2, 2, 3 }, { 7, 5, 8, 6 } },
    ["%r = stablehlo.compare GT, %p, %q : (tensor<f32>, tensor<f32>) -> tensor<i1>"] =
      { { 3, 2, 2, 1 }, { 6, 5, 8, 7 } },
    ["%m = stablehlo.negate %p : tensor<f32>\n%n = stablehlo.negate %q : tensor<f32>\n" ..
      "%r = stablehlo.compare LT, %m, %n : (tensor<f32>, tensor<f32>) -> tensor<i1>"] =
      { { 3, 2, 2, 1 }, { 6, 5, 8, 7 } },
    -- Equal ones by the second, descending.
    ["%s = stablehlo.compare LT, %p, %q : (tensor<f32>, tensor<f32>) -> tensor<i1>\n" ..
      "%t = stablehlo.compare EQ, %p, %q : (tensor<f32>, tensor<f32>) -> tensor<i1>\n" ..
      "%u = stablehlo.compare GT, %k, %l : (tensor<i32>, tensor<i32>) -> tensor<i1>\n" ..
      "%v = stablehlo.and %t, %u : tensor<i1>\n%r = stablehlo.or %s, %v : tensor<i1>"] =
      { { 1, 2, 2, 3 }, { 7, 8, 5, 6 } },
  } do
    local source = program("%a: tensor<4xf32>, %b: tensor<4xi32>", "tensor<4xf32>, tensor<4xi32>",
      "%1:2 = " .. sort:format(body) .. "\nreturn %1#0, %1#1 : tensor<4xf32>, tensor<4xi32>")
    lu.assertEquals({ run(source, { 2, 3, 1, 2 }, { 5, 6, 7, 8 }) }, want)
  end
end

-- -0 is below 0 in total order, of what the comparator computes, too; constants that differ are no key.
-- JAX's comparator of floats, whose constants stand outside: one key, however long the axis.
function TestStablehlo:test_sort_with_constants_outside()
  local f = stablehlo.load(program("%x: tensor<5000xf32>", "tensor<5000xf32>", [[
    %nan = stablehlo.constant dense<0x7FC00000> : tensor<f32>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %r = "stablehlo.sort"(%x) <{dimension = 0 : i64, is_stable = true}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %1 = stablehlo.compare EQ, %a, %zero, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %2 = stablehlo.select %1, %zero, %a : tensor<i1>, tensor<f32>
      %3 = stablehlo.compare NE, %a, %a, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %4 = stablehlo.select %3, %nan, %2 : tensor<i1>, tensor<f32>
      %5 = stablehlo.compare EQ, %b, %zero, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %6 = stablehlo.select %5, %zero, %b : tensor<i1>, tensor<f32>
      %7 = stablehlo.compare NE, %b, %b, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %8 = stablehlo.select %7, %nan, %6 : tensor<i1>, tensor<f32>
      %9 = stablehlo.compare LT, %4, %8, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %9 : tensor<i1>
    }) : (tensor<5000xf32>) -> tensor<5000xf32>
    return %r : tensor<5000xf32>]]))
  local x = (dc.iota(5000):cast "f32" * 37):sin()
  lu.assertTrue(f(x):eq(x:sort()):all():item())
end

-- Two keys, the second one descending; where "equal" is said of something else there are no keys, but ranks.
function TestStablehlo:test_sort_by_two_keys()
  local function sorted(equal, n)
    return stablehlo.load(program(("%%x: tensor<%dxi32>, %%y: tensor<%dxf32>"):format(n, n),
      ("tensor<%dxi32>, tensor<%dxf32>"):format(n, n), ([[
      %%r:2 = "stablehlo.sort"(%%x, %%y) <{dimension = 0 : i64, is_stable = true}> ({
      ^bb0(%%a: tensor<i32>, %%b: tensor<i32>, %%c: tensor<f32>, %%d: tensor<f32>):
        %%1 = stablehlo.compare GT, %%c, %%d, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
        %%2 = stablehlo.compare %s : (tensor<i32>, tensor<i32>) -> tensor<i1>
        %%3 = stablehlo.and %%2, %%1 : tensor<i1>
        %%4 = stablehlo.compare LT, %%a, %%b, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
        %%5 = stablehlo.or %%4, %%3 : tensor<i1>
        stablehlo.return %%5 : tensor<i1>
      }) : (tensor<Nxi32>, tensor<Nxf32>) -> (tensor<Nxi32>, tensor<Nxf32>)
      return %%r#0, %%r#1 : tensor<Nxi32>, tensor<Nxf32>]]):format(equal):gsub("N", n)))
  end
  local x, y = sorted("EQ, %a, %b, SIGNED", 5)({ 2, 1, 2, 1, 2 }, { 1, 5, 3, 6, 2 })
  lu.assertEquals({ x:totable(), y:totable() }, { { 1, 1, 2, 2, 2 }, { 6, 5, 3, 2, 1 } })
  x, y = sorted("EQ, %a, %a, SIGNED", 3)({ 3, 2, 1 }, { 1, 2, 3 })
  lu.assertEquals(#x:totable() + #y:totable(), 6)
  local f = sorted("EQ, %a, %b, SIGNED", 6000)
  x = f((dc.iota(6000) * 7) % 13, (dc.iota(6000):cast "f32"):sin())
  lu.assertTrue(x:slice { { 2, 6000 } }:ge(x:slice { { 1, 5999 } }):all():item())
end

function TestStablehlo:test_sort_in_total_order()
  for body, want in pairs {
    ["%m = stablehlo.negate %p : tensor<f32>\n%n = stablehlo.negate %q : tensor<f32>\n" ..
      "%r = stablehlo.compare LT, %m, %n, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>"] = { 8, 6, 5, 7 },
    ["%r = stablehlo.compare LT, %p, %q, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>"] = { 7, 5, 6, 8 },
    ["%c = stablehlo.constant dense<0.0> : tensor<f32>\n%d = stablehlo.constant dense<-5.0> : tensor<f32>\n" ..
      "%m = stablehlo.maximum %p, %c : tensor<f32>\n%n = stablehlo.maximum %q, %d : tensor<f32>\n" ..
      "%s = stablehlo.compare LT, %m, %n : (tensor<f32>, tensor<f32>) -> tensor<i1>\n" ..
      "%t = stablehlo.compare LT, %k, %l : (tensor<i32>, tensor<i32>) -> tensor<i1>\n" ..
      "%u = stablehlo.xor %s, %s : tensor<i1>\n%r = stablehlo.or %u, %t : tensor<i1>"] = { 5, 6, 7, 8 },
  } do
    local source = program("%a: tensor<4xf32>, %b: tensor<4xi32>", "tensor<4xi32>",
      "%1:2 = " .. sort:format(body) .. "\nreturn %1#1 : tensor<4xi32>")
    lu.assertEquals(run(source, { -0.0, 0.0, -3, 2 }, { 5, 6, 7, 8 }), want)
  end
end

-- Indices whose dtype does not hold the size of the axis.
function TestStablehlo:test_short_indices()
  lu.assertEquals(one("stablehlo.dynamic_slice %a, %b, sizes = [2] : (tensor<300xf32>, tensor<i8>) -> tensor<2xf32>",
    { "300xf32", "i8" }, "2xf32", dc.iota("f32[300]"):totable(), 100), { 100, 101 })
  lu.assertEquals(one([["stablehlo.gather"(%a, %b) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0],
    start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1>}>
    : (tensor<300xf32>, tensor<2x1xi8>) -> tensor<2xf32>]], { "300xf32", "2x1xi8" }, "2xf32",
    dc.iota("f32[300]"):totable(), { { 127 }, { -3 } }), { 127, 0 })
end

function TestStablehlo:test_control()
  lu.assertEquals({ run(program("%n: tensor<i32>", "tensor<i32>, tensor<i32>", [[
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %r:2 = stablehlo.while(%i = %zero, %sum = %zero) : tensor<i32>, tensor<i32>
  cond {
    %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %s = func.call @next(%sum, %i) : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %j = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %j, %s : tensor<i32>, tensor<i32>
  }
  return %r#0, %r#1 : tensor<i32>, tensor<i32>]]) .. [[

func.func private @next(%sum: tensor<i32>, %i: tensor<i32>) -> tensor<i32> {
  %0 = stablehlo.add %sum, %i : tensor<i32>
  return %0 : tensor<i32>
}]], 5) }, { 5, 10 })
  local case = program("%k: tensor<i32>, %x: tensor<f32>", "tensor<f32>", [[
  %r = "stablehlo.case"(%k) ({
    %0 = stablehlo.negate %x : tensor<f32>
    stablehlo.return %0 : tensor<f32>
  }, {
    %0 = stablehlo.add %x, %x : tensor<f32>
    stablehlo.return %0 : tensor<f32>
  }) : (tensor<i32>) -> tensor<f32>
  return %r : tensor<f32>]])
  for k, want in pairs { [0] = -3, [1] = 6, [2] = 6, [-1] = 6 } do -- what is outside takes the last one
    lu.assertEquals(run(case, k, 3), want)
  end
end

function TestStablehlo:test_gradients()
  local f = stablehlo.load(program("%w: tensor<2x3xf32>, %x: tensor<3xf32>", "tensor<f32>", [[
  %0 = stablehlo.dot_general %w, %x, contracting_dims = [1] x [0] : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2xf32>
  %1 = stablehlo.tanh %0 : tensor<2xf32>
  %c = stablehlo.constant dense<0.0> : tensor<f32>
  %2 = stablehlo.reduce(%1 init: %c) applies stablehlo.add across dimensions = [0]
    : (tensor<2xf32>, tensor<f32>) -> tensor<f32>
  return %2 : tensor<f32>]]))
  local w, v = dc.param(dc.tensor { { 0.1, 0.2, 0.3 }, { -0.3, 0.1, 0.2 } }), dc.tensor { 1, 2, 3 }
  local g = dc.fn("g(x: f32[3]) -> f32[2, 3]", function(x)
    return dc.grad(f(w, x), w)
  end)
  lu.assertTrue(g(v):allclose(dc.grad(w:matmul(v):tanh():sum(), w)))
end

function TestStablehlo:test_parameters_and_custom_calls()
  local source = program("%x: tensor<2xf32>", "tensor<2xf32>", [[
  %w = stablehlo.constant dense<[3.0, 4.0]> : tensor<2xf32>
  %0 = stablehlo.custom_call @twice(%x) {api_version = 4 : i32} : (tensor<2xf32>) -> tensor<2xf32>
  %1 = stablehlo.multiply %0, %w : tensor<2xf32>
  return %1 : tensor<2xf32>]])
  local f, parameters = stablehlo.load(source, { parameters = 2, custom = { twice = function(_, x) return x * 2 end } })
  lu.assertEquals(f({ 1, 1 }):totable(), { 6, 8 })
  lu.assertEquals(#parameters, 1)
  parameters[1]:set { 1, 1 }
  lu.assertEquals(f({ 1, 1 }):totable(), { 2, 2 })
  lu.assertErrorMsgContains("there is no function for the target 'twice'", function()
    stablehlo.load(source)({ 1, 1 })
  end)
end

-- As cmath of Python has them, on both sides of the branch cuts too.
function TestStablehlo:test_inverses_of_complex_numbers()
  local cases = {
    { "asin", { 2, 0.5 }, { 1.2930420702, 1.3618009009 } }, { "asin", { 3, -0.0 }, { 1.5707963268, -1.7627471740 } },
    { "acos", { 2, 0.5 }, { 0.2777542566, -1.3618009009 } }, { "acos", { -3, 0.0 }, { 3.1415926536, -1.7627471740 } },
    { "acosh", { -2, 0.5 }, { 1.3618009009, 2.8638383970 } }, { "acosh", { 0.5, -0.0 }, { 0, -1.0471975512 } },
    { "asinh", { 0, 2 }, { 1.3169578969, 1.5707963268 } }, { "asinh", { -1, 2 }, { -1.4693517444, 1.0634400236 } },
    { "atan", { 0.5, 2 }, { 1.4215468610, 0.5003700001 } }, { "atan", { 1e-5, 1e-5 }, { 1e-5, 1e-5 } },
    { "atanh", { 0.5, 2 }, { 0.0964156202, 1.1265564408 } }, { "atanh", { 2, -0.0 }, { 0.5493061443, -1.5707963268 } },
  }
  for _, case in ipairs(cases) do
    local name, z, want = table.unpack(case)
    for _, t in ipairs { "f32", "f64" } do
      local f = stablehlo.load(program(("%%a: tensor<%s>, %%b: tensor<%s>"):format(t, t),
        ("tensor<%s>, tensor<%s>"):format(t, t), ([[%%z = stablehlo.complex %%a, %%b : tensor<complex<T>>
        %%w = chlo.%s %%z : tensor<complex<T>> -> tensor<complex<T>>
        %%u = stablehlo.real %%w : (tensor<complex<T>>) -> tensor<T>
        %%v = stablehlo.imag %%w : (tensor<complex<T>>) -> tensor<T>
        return %%u, %%v : tensor<T>, tensor<T>]]):format(name):gsub("%f[%w]T%f[%W]", t)))
      local re, im = f(table.unpack(z))
      lu.assertAlmostEquals(re:item(), want[1], 3e-7)
      lu.assertAlmostEquals(im:item(), want[2], 3e-7)
    end
  end
end

-- Bits that XLA's CPU gave (jax.lax.rng_bit_generator, jaxlib 0.10.2).
function TestStablehlo:test_rng_bit_generator()
  local function bits(algorithm, words, t, second)
    local state = {}
    for i = 1, words do
      state[i] = i == 2 and second or (2 * i - 1) | 2 * i << 32
    end
    local after, x = run(program(("%%b: tensor<%dxi64>"):format(words),
      ("tensor<%dxui64>, tensor<%s>"):format(words, t),
      ([[%%a = stablehlo.bitcast_convert %%b : (tensor<%dxi64>) -> tensor<%dxui64>
      %%s, %%r = stablehlo.rng_bit_generator %%a, algorithm = %s : (tensor<%dxui64>)
        -> (tensor<%dxui64>, tensor<%s>)
      return %%s, %%r : tensor<%dxui64>, tensor<%s>
      ]]):format(words, words, algorithm, words, words, t, words, t)), state)
    return x, after
  end
  local x, after = bits("DEFAULT", 2, "5xui32")
  lu.assertEquals(x, { 512747620, 1298009047, 1267190206, 761827841, 1383286907 })
  lu.assertEquals(after, { 1 | 2 << 32, 5 | 4 << 32 })
  x, after = bits("PHILOX", 3, "5xui16")
  lu.assertEquals(x, { 55964, 65356, 11722, 31993, 5524 })
  lu.assertEquals(after, { 1 | 2 << 32, 5 | 4 << 32, 5 | 6 << 32 })
  x, after = bits("DEFAULT", 3, "4xui32", -1) -- the counter carries
  lu.assertEquals(x, { 3734424041, 892305209, 4060539962, 3257851489 })
  lu.assertEquals(after, { 1 | 2 << 32, 0, 6 | 6 << 32 })
  x, after = bits("THREE_FRY", 2, "3x5xui32")
  lu.assertEquals(x, { { 1576285164, 2249660814, 740599976, 2425682526, 2436392515 },
    { 1335360347, 2260235687, 3981753173, 3953550934, 3812192618 },
    { 2959620048, 1759477693, 3014899208, 3167314751, 1878941568 } })
  lu.assertEquals(after, { 1 | 2 << 32, 12 | 4 << 32 })
end

-- Complex triangular systems: the product with the triangle gives the right side back.
function TestStablehlo:test_complex_triangular_solve()
  local function solve(lower, transpose, left)
    return stablehlo.load(program("%a: tensor<3x3xcomplex<f32>>, %b: tensor<3x3xcomplex<f32>>",
      "tensor<3x3xcomplex<f32>>", ([[
      %%r = "stablehlo.triangular_solve"(%%a, %%b) {left_side = %s, lower = %s, unit_diagonal = false,
        transpose_a = #stablehlo<transpose %s>} :
        (tensor<3x3xcomplex<f32>>, tensor<3x3xcomplex<f32>>) -> tensor<3x3xcomplex<f32>>
      return %%r : tensor<3x3xcomplex<f32>>]]):format(left, lower, transpose)))
  end
  local a = dc.complex(dc.tensor { { 2, 1, 4 }, { 1, 3, -1 }, { 5, 1, 2 } }, dc.tensor { { 1, 2, 0 }, { -1, 1, 1 },
    { 0, 3, 2 } })
  local b = dc.complex(dc.tensor { { 1, 2, 3 }, { 4, 5, 6 }, { 7, 8, 10 } }, dc.tensor { { 0, 1, 0 }, { 1, 0, 2 },
    { 0, 0, 1 } })
  local function triangle(lower)
    local part = lower and dc.tril or dc.triu
    return dc.complex(part(a:real()), part(a:imag()))
  end
  for _, lower in ipairs { true, false } do
    local t = triangle(lower)
    local forms = { NO_TRANSPOSE = t, TRANSPOSE = t:transpose(), ADJOINT = t:transpose():conj() }
    for name, m in pairs(forms) do
      local x = solve(lower, name, true)(a, b)
      lu.assertTrue((m:matmul(x) - b):abs():max():item() < 1e-5, name)
      x = solve(lower, name, false)(a, b)
      lu.assertTrue((x:matmul(m) - b):abs():max():item() < 1e-5, name)
    end
  end
end

-- The plugin for JAX calls these; a custom call that only keeps its operand alive is left out.
function TestStablehlo:test_calls_of_the_plugin()
  local x = { { 2, 1 }, { 1, 3 } }
  local function call(name, results, config)
    return ("%%r:%d = stablehlo.custom_call @deepc.%s(%%a) {api_version = 4 : i32, mhlo.backend_config = {%s}} : "
      .. "(tensor<2x2xf32>) -> (%s)"):format(select(2, results:gsub("tensor", "")), name, config, results)
  end
  local v, w = run(program("%a: tensor<2x2xf32>", "tensor<2x2xf32>, tensor<2xf32>",
    call("eigh", "tensor<2x2xf32>, tensor<2xf32>", "lower = 1 : i64")
    .. "\nreturn %r#0, %r#1 : tensor<2x2xf32>, tensor<2xf32>"), x)
  lu.assertAlmostEquals(w[1], 1.381966, 1e-5)
  lu.assertAlmostEquals(v[1][1] * w[1], 2 * v[1][1] + v[2][1], 1e-5)
  local s, u, vh = run(program("%a: tensor<2x2xf32>", "tensor<2xf32>, tensor<2x2xf32>, tensor<2x2xf32>",
    call("svd", "tensor<2xf32>, tensor<2x2xf32>, tensor<2x2xf32>", "vectors = 1 : i64, full = 0 : i64")
    .. "\nreturn %r#0, %r#1, %r#2 : tensor<2xf32>, tensor<2x2xf32>, tensor<2x2xf32>"), x)
  lu.assertAlmostEquals(s[1], 3.618034, 1e-5)
  lu.assertAlmostEquals(u[1][1] * s[1] * vh[1][1] + u[1][2] * s[2] * vh[2][1], 2, 1e-5)
  local q, r = run(program("%a: tensor<2x2xf32>", "tensor<2x2xf32>, tensor<2x2xf32>",
    call("qr", "tensor<2x2xf32>, tensor<2x2xf32>", "full = 1 : i64")
    .. "\nreturn %r#0, %r#1 : tensor<2x2xf32>, tensor<2x2xf32>"), x)
  lu.assertAlmostEquals(q[2][1] * r[1][1], 1, 1e-5)
  local f, rows = run(program("%a: tensor<2x2xf32>", "tensor<2x2xf32>, tensor<2xi32>",
    "stablehlo.custom_call @dce_sink(%a) {has_side_effect = true} : (tensor<2x2xf32>) -> ()\n"
    .. call("lu", "tensor<2x2xf32>, tensor<2xi32>", "") .. "\nreturn %r#0, %r#1 : tensor<2x2xf32>, tensor<2xi32>"), x)
  lu.assertEquals({ f[1][1], f[2][1], f[2][2], rows }, { 2, 0.5, 2.5, { 0, 1 } })
end

function TestStablehlo:test_cholesky_of_jax()
  lu.assertEquals(run(program("%a: tensor<2x2xf32>", "tensor<2x2xf32>", [[
  %0:2 = stablehlo.custom_call @lapack_spotrf_ffi(%a) {mhlo.backend_config = {uplo = 76 : ui8}}
    : (tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<i32>)
  return %0#0 : tensor<2x2xf32>]]), { { 4, 2 }, { 2, 10 } }), { { 2, 0 }, { 1, 3 } })
end

-- A typed function has at most 32 parameters and 8 results.
function TestStablehlo:test_many_arguments_and_results()
  local args, names, types, given = {}, {}, {}, {}
  for i = 0, 39 do
    args[i + 1], names[i + 1], types[i + 1] = ("%%arg%d: tensor<f32>"):format(i), "%arg" .. i, "tensor<f32>"
    given["arg" .. i] = i
  end
  local f = stablehlo.load(program(table.concat(args, ", "), table.concat(types, ", "),
    ("  return %s : %s"):format(table.concat(names, ", "), table.concat(types, ", "))))
  local out = f(given)
  lu.assertEquals({ out.result1:item(), out.result40:item() }, { 0, 39 })
end

function TestStablehlo:test_no_results()
  local f = stablehlo.load "func.func @main(%x: tensor<2xf32>) { return }"
  lu.assertEquals(select("#", f { 1, 2 }), 0)
end

function TestStablehlo:test_names_of_arguments_that_are_alike()
  local f = stablehlo.load(program("%_x: tensor<f32>, %x: tensor<f32>, %_x_1: tensor<f32>", "tensor<f32>, tensor<f32>",
    "  return %_x, %_x_1 : tensor<f32>, tensor<f32>"))
  local a, b = f(1, 2, 3)
  lu.assertEquals({ a:item(), b:item() }, { 1, 3 })
end

function TestStablehlo:test_errors()
  local function fails(message, ...)
    local ok, err = pcall(stablehlo.load, ...)
    lu.assertFalse(ok)
    lu.assertStrContains(tostring(err), message)
  end
  local plain = program("%x: tensor<2xf32>", "tensor<2xf32>", "  return %x : tensor<2xf32>")
  fails("a program or the name of its file is needed, not", 7)
  fails("nowhere.mlir", "nowhere.mlir")
  local f = dc.fn("f(x: f32[2]) -> f32[2]", function(x) return x:exp() end)
  local artifact = stablehlo.read((stablehlo.bytecode(f)))
  artifact.functions.main.body.ops[1].name = "foo.bar" -- artifacts say from which line an operation is
  fails("test_stablehlo.lua:", artifact)
  fails("has no function @other; it has @main", plain, { entry = "other" })
  fails("stablehlo:2:1: foo.bar: this operation is not supported", program("", "",
    "%0 = foo.bar : tensor<f32>\nreturn"))
  fails("element type i4 is not supported", program("%x: tensor<2xi4>", "tensor<2xi4>", "return %x : tensor<2xi4>"))
  fails("a size that is not known is not supported", program("%x: tensor<?xf32>", "tensor<?xf32>",
    "return %x : tensor<?xf32>"))
  fails("stablehlo:2:3: stablehlo.negate: result 1 is f32[2], and f32[3] is declared", program("%x: tensor<2xf32>",
    "tensor<3xf32>", "  %0 = stablehlo.negate %x : (tensor<2xf32>) -> tensor<3xf32>\n  return %0 : tensor<3xf32>"))
  fails("stablehlo:2:3: stablehlo.add: add: axis 1: 2 against 3", program("%x: tensor<2xf32>, %y: tensor<3xf32>",
    "tensor<2xf32>", "  %0 = stablehlo.add %x, %y : (tensor<2xf32>, tensor<3xf32>) -> tensor<2xf32>\n" ..
    "  return %0 : tensor<2xf32>"))
  fails("stablehlo:2:3: stablehlo.transpose: its operands or attributes are not those of this operation",
    program("%x: tensor<2xf32>", "tensor<2xf32>", "  %0 = stablehlo.transpose %x : tensor<2xf32>\n" ..
    "  return %0 : tensor<2xf32>"))
  fails("functions call each other without an end", "func.func @main(%x: tensor<f32>) -> tensor<f32> {\n" ..
    "  %0 = call @main(%x) : (tensor<f32>) -> tensor<f32>\n  return %0 : tensor<f32>\n}")
end
