-- The reader of StableHLO's text: the form of what it gives, and the errors of what is broken.
local lu = require "luaunit"
local text = require "deepc.stablehlo.text"

TestStablehloText = {}

local function f32(...) return { kind = "tensor", element = "f32", dtype = "f32", shape = { ... } } end

local function i64(...) return { kind = "tensor", element = "i64", dtype = "i64", shape = { ... } } end

local bool = { kind = "tensor", element = "i1", dtype = "bool", shape = {} }

-- The operations of a function with these lines.
local function ops(body)
  return text.read("func.func @main() {\n" .. body .. "\nreturn\n}", "t.mlir").functions.main.body.ops
end

local function first(body)
  return ops(body)[1]
end

-- The value of a constant, without its mark.
local function constant(literal)
  local a = first("%0 = stablehlo.constant " .. literal).attributes.value
  lu.assertTrue(a.dense)
  return a
end

local function message(source)
  local ok, e = pcall(text.read, source, "t.mlir")
  lu.assertFalse(ok)
  return e
end

local function in_body(line)
  return message("func.func @main() {\n  " .. line .. "\n  return\n}")
end

function TestStablehloText:test_functions_of_a_module()
  local m = text.read([[
// A comment.
module @net attributes {mhlo.num_replicas = 1 : i32, a, "b c" = [1, 2.5, "x\0Ay"]} {
  func.func public @main(%x: tensor<2x?xf32> {tf.aliasing_output = 0 : i32} loc("x")) -> (tensor<2x?xf32> {j.r = ""}) {
    %0 = call @f(%x) : (tensor<2x?xf32>) -> tensor<2x?xf32> loc("call"(#loc))
    return %0 : tensor<2x?xf32>
  }
  func.func private @f(tensor<2x?xf32>) -> tensor<2x?xf32>
}
#loc = loc(unknown)
]], "net.mlir")
  lu.assertEquals(m.order, { "main", "f" })
  lu.assertEquals(m.attributes, { ["mhlo.num_replicas"] = 1, a = true, ["b c"] = { 1, 2.5, "x\ny" } })
  local main, t = m.functions.main, f32(2, -1)
  lu.assertEquals(main.args, { { name = "%x", type = t, attributes = { ["tf.aliasing_output"] = 0 } } })
  lu.assertEquals(main.results, { { type = t, attributes = { ["j.r"] = "" } } })
  lu.assertEquals({ main.line, main.column, main.private }, { 3, 3, false })
  lu.assertEquals(main.body.args, { { name = "%x", type = t } })
  lu.assertEquals(main.body.ops[1], { name = "func.call", operands = { "%x" }, results = { "%0" },
    operand_types = { t }, types = { t }, attributes = { callee = { symbol = "f" } }, regions = {}, line = 4,
    column = 5, where = '"call"(#loc)' })
  lu.assertEquals(main.body.ops[2].name, "func.return")
  lu.assertTrue(m.functions.f.private)
  lu.assertNil(m.functions.f.body)
end

function TestStablehloText:test_generic_module()
  local m = text.read([[
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<f32>) -> tensor<f32>, sym_name = "g", sym_visibility = "private"}> ({
  ^bb0(%arg0: tensor<f32>):
    "func.return"(%arg0) : (tensor<f32>) -> ()
  }) : () -> ()
}) {k = 1 : i64} : () -> ()
]], "g.mlir")
  local g = m.functions.g
  lu.assertEquals(m.attributes, { k = 1 })
  lu.assertEquals(g.args, { { name = "%arg0", type = f32(), attributes = {} } })
  lu.assertEquals(g.results, { { type = f32(), attributes = {} } })
  lu.assertTrue(g.private)
  lu.assertEquals(g.body.ops[1].operands, { "%arg0" })
end

function TestStablehloText:test_keywords_get_generic_names()
  local function attributes(line) return first("%0 = stablehlo." .. line).attributes end
  local fn = " : (tensor<4x4xf32>, tensor<f32>) -> tensor<4x4xf32>"
  local one = " : (tensor<4x4xf32>) -> tensor<4x4xf32>"
  lu.assertEquals(attributes("broadcast_in_dim %a, dims = [0, 1]" .. one), { broadcast_dimensions = { 0, 1 } })
  lu.assertEquals(attributes("transpose %a, dims = [1, 0]" .. one), { permutation = { 1, 0 } })
  lu.assertEquals(attributes "reverse %a, dims = [1] : tensor<4x4xf32>", { dimensions = { 1 } })
  lu.assertEquals(attributes("slice %a [0:4, 1:4:2]" .. one),
    { start_indices = { 0, 1 }, limit_indices = { 4, 4 }, strides = { 1, 2 } })
  lu.assertEquals(attributes("pad %a, %v, low = [1, -1], high = [0, 0], interior = [0, 2]" .. fn),
    { edge_padding_low = { 1, -1 }, edge_padding_high = { 0, 0 }, interior_padding = { 0, 2 } })
  lu.assertEquals(attributes("fft %a, type =  RFFT, length = [4]" .. one), { fft_type = "RFFT", fft_length = { 4 } })
  lu.assertEquals(attributes "reduce_precision %a, format = e5m10 : tensor<f32>",
    { exponent_bits = 5, mantissa_bits = 10 })
  lu.assertEquals(attributes "iota dim = 1 : tensor<4x4xf32>", { iota_dimension = 1 })
  lu.assertEquals(attributes("get_tuple_element %a[3]" .. one), { index = 3 })
  lu.assertEquals(attributes("custom_call @\"a.b\"(%a, %b) {api_version = 4 : i32}" .. fn),
    { call_target_name = "a.b", api_version = 4 })
  local composite = 'composite "n.s" %a {decomposition = @f, composite_attributes = {k = 2 : i64}}'
  lu.assertEquals(attributes(composite .. one),
    { name = "n.s", decomposition = { symbol = "f" }, composite_attributes = { k = 2 } })
end

function TestStablehloText:test_types_of_short_forms()
  local select = first "%0 = stablehlo.select %p, %a, %b : tensor<i1>, tensor<2xf32>"
  lu.assertEquals(select.operand_types, { bool, f32(2), f32(2) })
  lu.assertEquals(select.types, { f32(2) })
  local complex = first "%0 = stablehlo.complex %a, %b : tensor<2xcomplex<f32>>"
  lu.assertEquals(complex.operand_types, { f32(2), f32(2) })
  lu.assertEquals(complex.types[1].dtype, "c64")
  local compare = first "%0 = stablehlo.compare  LT, %a, %b,  FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>"
  lu.assertEquals(compare.attributes, { comparison_direction = "LT", compare_type = "FLOAT" })
  local next_after = first "%0 = chlo.next_after %a, %b : tensor<f32>, tensor<f32> -> tensor<f32>"
  lu.assertEquals(next_after.operand_types, { f32(), f32() })
  local top_k = first "%0:2 = chlo.top_k(%a#0, k = 8) : tensor<9xf32> -> (tensor<8xf32>, tensor<8xi64>)"
  lu.assertEquals({ top_k.operands, top_k.results, top_k.attributes }, { { "%a" }, { "%0", "%0#1" }, { k = 8 } })
  lu.assertEquals(top_k.types, { f32(8), i64(8) })
  local barrier = ops [[
stablehlo.optimization_barrier()
%1:2 = stablehlo.optimization_barrier %a, %b : tensor<f32>, tensor<i64>]]
  lu.assertEquals(barrier[1].operands, {})
  lu.assertEquals(barrier[2].types, { f32(), i64() })
end

function TestStablehloText:test_convolution()
  local pretty = first [=[
%0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f],
  window = {stride = [2], pad = [[3, -3]], rhs_dilate = [4], reverse = [1]}
  {batch_group_count = 1 : i64, precision_config = [#stablehlo<precision HIGH>]}
  : (tensor<1x9x1xf32>, tensor<3x1x1xf32>) -> tensor<1x1x1xf32>]=]
  local numbers = { lhs = { "b", 0, "f" }, rhs = { 0, "i", "o" }, out = { "b", 0, "f" } }
  lu.assertEquals(pretty.operands, { "%x", "%k" })
  lu.assertEquals(pretty.attributes, { dimension_numbers = numbers, window_strides = { 2 }, padding = { { 3, -3 } },
    rhs_dilation = { 4 }, window_reversal = { true }, batch_group_count = 1, precision_config = { "HIGH" } })
  local generic = first [[
%0 = "stablehlo.convolution"(%x, %k) <{dimension_numbers = #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>,
  padding = dense<2> : tensor<1x2xi64>, window_strides = array<i64: 5>, window_reversal = dense<false> : tensor<1xi1>,
  rhs_dilation = dense<[4]> : tensor<1xi64>}> : (tensor<1x9x1xf32>, tensor<3x1x1xf32>) -> tensor<1x1x1xf32>]]
  lu.assertEquals(generic.attributes, { dimension_numbers = numbers, padding = { { 2, 2 } }, window_strides = { 5 },
    window_reversal = { false }, rhs_dilation = { 4 } })
end

function TestStablehloText:test_dimension_numbers()
  local fn = "(tensor<4xf32>, tensor<4xf32>) -> tensor<f32>"
  local dot = first("%0 = stablehlo.dot_general %a, %b, contracting_dims = [0] x [0], "
    .. "precision = [DEFAULT, HIGH] : " .. fn)
  lu.assertEquals(dot.attributes, { precision_config = { "DEFAULT", "HIGH" }, dot_dimension_numbers = {
    lhs_batching_dimensions = {}, rhs_batching_dimensions = {}, lhs_contracting_dimensions = { 0 },
    rhs_contracting_dimensions = { 0 } } })
  local gather = first([[%0 = "stablehlo.gather"(%a, %b) {dimension_numbers = #stablehlo.gather<
    collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1,>, slice_sizes = array<i64: 1>} : ]] .. fn)
  lu.assertEquals(gather.attributes, { slice_sizes = { 1 }, dimension_numbers = { offset_dims = {},
    collapsed_slice_dims = { 0 }, operand_batching_dims = {}, start_indices_batching_dims = {},
    start_index_map = { 0 }, index_vector_dim = 1 } })
  local scatter = first([[%0 = "stablehlo.scatter"(%a, %b) {
    scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1]>} : ]] .. fn)
  lu.assertEquals(scatter.attributes.scatter_dimension_numbers, { update_window_dims = { 1 }, inserted_window_dims = {},
    input_batching_dims = {}, scatter_indices_batching_dims = {}, scatter_dims_to_operand_dims = {},
    index_vector_dim = 0 })
end

function TestStablehloText:test_reduce()
  local compact = first [[
%0 = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [1]
  : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>]]
  lu.assertEquals(compact.operands, { "%a", "%z" })
  lu.assertEquals(compact.attributes, { dimensions = { 1 } })
  local region = compact.regions[1]
  lu.assertEquals(region.args, { { name = "%lhs", type = f32() }, { name = "%rhs", type = f32() } })
  lu.assertEquals(region.ops[1].name, "stablehlo.add")
  lu.assertEquals({ region.ops[2].name, region.ops[2].operands }, { "stablehlo.return", region.ops[1].results })
  local two = first [[
%0:2 = stablehlo.reduce(%a init: %y), (%b init: %z) across dimensions = [0]
  : (tensor<2xf32>, tensor<2xi64>, tensor<f32>, tensor<i64>) -> (tensor<f32>, tensor<i64>)
  reducer(%p: tensor<f32>, %q: tensor<f32>) (%r: tensor<i64>, %s: tensor<i64>) {
    stablehlo.return %q, %s : tensor<f32>, tensor<i64>
  }]]
  lu.assertEquals(two.operands, { "%a", "%b", "%y", "%z" })
  lu.assertEquals(two.results, { "%0", "%0#1" })
  lu.assertEquals(two.regions[1].args, { { name = "%p", type = f32() }, { name = "%r", type = i64() },
    { name = "%q", type = f32() }, { name = "%s", type = i64() } })
end

function TestStablehloText:test_regions()
  local loop = first [[
%0:2 = stablehlo.while(%i = %a, %x = %b#1) : tensor<i64>, tensor<f32> attributes {n = 1 : i64}
cond { stablehlo.return %p : tensor<i1> } do { stablehlo.return %i, %x : tensor<i64>, tensor<f32> }]]
  lu.assertEquals({ loop.operands, loop.results, loop.attributes }, { { "%a", "%b#1" }, { "%0", "%0#1" }, { n = 1 } })
  for i = 1, 2 do
    lu.assertEquals(loop.regions[i].args, { { name = "%i", type = i64() }, { name = "%x", type = f32() } })
    lu.assertEquals(loop.regions[i].ops[1].name, "stablehlo.return")
  end
  local sort = first [[
%0 = "stablehlo.sort"(%a) <{dimension = 0 : i64, is_stable = true}> ({
^bb0(%x: tensor<f32>, %y: tensor<f32>):
  stablehlo.return %p : tensor<i1>
}) : (tensor<4xf32>) -> tensor<4xf32>]]
  lu.assertEquals(sort.attributes, { dimension = 0, is_stable = true })
  lu.assertEquals(sort.regions[1].args, { { name = "%x", type = f32() }, { name = "%y", type = f32() } })
  local scan = first [[
%0:2 = chlo.scan(%a) inits(%b) dimension=0 attributes {is_reverse = true} {
^bb0(%x: tensor<f32>, %y: tensor<f32>):
  stablehlo.return %x, %y : tensor<f32>, tensor<f32>
} : (tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<f32>)]]
  lu.assertEquals(scan.attributes, { dimension = 0, is_reverse = true, operandSegmentSizes = { 1, 1 } })
  lu.assertEquals(#scan.regions[1].args, 2)
end

function TestStablehloText:test_dense_values()
  lu.assertEquals(constant "dense<1.5> : tensor<9007199254740992xf32>".splat, 1.5)
  lu.assertEquals(constant "dense<[[1, -2], [0x7F, 4]]> : tensor<2x2xi64>".values, { 1, -2, 127, 4 })
  lu.assertEquals(constant "dense<[18446744073709551615, 7]> : tensor<2xui64>".values, { -1, 7 })
  lu.assertEquals(constant "dense<0xFFFFFFFF> : tensor<i32>".splat, -1)
  lu.assertEquals(constant "dense<[true, false]> : tensor<2xi1>".values, { true, false })
  lu.assertEquals(constant "dense<[0xFF800000, 1.0e-3]> : tensor<2xf32>".values, { { bits = 0xFF800000 }, 0.001 })
  lu.assertEquals(constant "dense<(1.0, 0x7FC00000)> : tensor<3xcomplex<f32>>".splat, { 1.0, { bits = 0x7FC00000 } })
  lu.assertEquals(constant "dense<> : tensor<0x2xf32>".values, {})
  lu.assertEquals(1 / constant "dense<-0> : tensor<f32>".splat, -math.huge)
end

function TestStablehloText:test_dense_bytes()
  lu.assertEquals(constant 'dense<"0x0000803f000000C0"> : tensor<2xf32>'.bytes, string.pack("<ff", 1, -2))
  lu.assertEquals(constant 'dense<"0x0000803F"> : tensor<9xf32>'.splat, { bits = 0x3F800000 })
  lu.assertEquals(constant 'dense<"0xFEFF"> : tensor<5xi16>'.splat, -2)
  local whole = "\1\0\1\1\0\0\0\0\0\1"
  lu.assertEquals(constant 'dense<"0x0D02"> : tensor<10xi1>'.bytes, whole)
  lu.assertEquals(constant 'dense<"0x01000101000000000001"> : tensor<10xi1>'.bytes, whole)
  lu.assertEquals(#constant 'dense<"0x000000000000000000000000000000FF"> : tensor<2xcomplex<f32>>'.bytes, 16)
end

function TestStablehloText:test_resources()
  local m = text.read([[
func.func @main() {
  %0 = stablehlo.constant dense_resource<w> : tensor<2xi16>
  %1 = stablehlo.constant dense_resource<__elided__> : tensor<2xi16>
  return
}
{-#
  dialect_resources: { builtin: { w: "0x0800000001000200" } }
#-}
]], "r.mlir")
  local list = m.functions.main.body.ops
  lu.assertEquals(list[1].attributes.value.bytes, "\1\0\2\0")
  lu.assertNil(list[1].attributes.value.elided)
  local t = { kind = "tensor", element = "i16", dtype = "i16", shape = { 2 } }
  lu.assertEquals(list[2].attributes.value, { dense = true, type = t, elided = true, resource = "__elided__" })
end

function TestStablehloText:test_attributes()
  local a = first [["x.y"() {a = true, b = unit, c = @f, d = i32, e = array<i1: true, false>, f = 0x3F800000 : f32,
    g = #other.thing<[<"a">] -> b>, h = #stablehlo<comparison_direction LT>, i = -9223372036854775808 : i64,
    j = #stablehlo.channel_handle<handle = 1, type = 2>, k = (i32) -> i64, l = array<i64>} : () -> ()]].attributes
  local i32 = { kind = "other", text = "i32" }
  lu.assertEquals(a, { a = true, b = true, c = { symbol = "f" }, d = { type = i32 }, e = { true, false }, f = 1.0,
    g = { opaque = '#other.thing<[<"a">] -> b>' }, h = "LT", i = math.mininteger, j = { handle = 1, type = 2 },
    k = { type = { kind = "function", inputs = { i32 }, results = { { kind = "other", text = "i64" } } } }, l = {} })
end

function TestStablehloText:test_aliases()
  local m = text.read([[
!t = tensor<2x!e>
func.func @main(%x: !t) -> !t {
  %0 = "x.y"(%x) {a = #a, b = #a} : (!t) -> !t loc(#loc1)
  return %0 : !t
}
#a = [#b, 2]
#b = {c = 1}
#loc1 = loc("x.py":1:2)
!e = f32
]], "a.mlir")
  local main = m.functions.main
  lu.assertEquals(main.args[1].type, f32(2))
  lu.assertEquals(main.body.ops[1].attributes, { a = { { c = 1 }, 2 }, b = { { c = 1 }, 2 } })
  lu.assertEquals(main.body.ops[1].where, '"x.py":1:2')
  lu.assertEquals(message "#a = [#a]", "t.mlir:1:7: #a is defined by itself")
  local lines = {}
  for i = 1, 40 do
    lines[i] = ("#a%d = [#a%d, #a%d]"):format(i, i + 1, i + 1)
  end
  lines[41] = "#a41 = 1"
  lu.assertStrContains(message(table.concat(lines, "\n")), "this file unfolds to too much")
end

function TestStablehloText:test_other_types()
  local op = first [["x.y"(%a, %b, %c) : (tensor<2x!quant.uniform<i8:f32, 0.1:-30>>, !stablehlo.token,
    tuple<f32, tensor<?xi4, #stablehlo.bounds<4>>>) -> ()]]
  lu.assertEquals(op.operand_types, { { kind = "tensor", element = "!quant.uniform<i8:f32, 0.1:-30>", shape = { 2 } },
    { kind = "token" }, { kind = "tuple", types = { { kind = "other", text = "f32" },
      { kind = "tensor", element = "i4", shape = { -1 }, encoding = { bounds = { 4 } } } } } })
end

function TestStablehloText:test_split()
  local parts = text.split "func.func private @a()\n// -----\nfunc.func private @b()\n\n// -----\n// nothing\n"
  lu.assertEquals(#parts, 3)
  lu.assertEquals(text.read(parts[1], "s").order, { "a" })
  lu.assertEquals(text.read(parts[2], "s").order, { "b" })
  lu.assertEquals(text.read(parts[3], "s").order, {})
end

function TestStablehloText:test_errors()
  lu.assertEquals(in_body "%0 = stablehlo.abs %a : }", "t.mlir:2:27: a type is needed, not '}'")
  lu.assertEquals(in_body "%0 = stablehlo.abs %a", "t.mlir:3:3: ':' is needed, not 'return'")
  lu.assertEquals(in_body "%0 = abs %a : f32", "t.mlir:2:8: an operation is needed, not 'abs'")
  lu.assertEquals(in_body "%0:2 = stablehlo.abs %a : f32", "t.mlir:2:3: stablehlo.abs has 1 results, and 2 are named")
  lu.assertEquals(in_body '%0 = "x.y"(%a) : () -> f32', "t.mlir:2:3: x.y has 1 operands, and types of 0")
  lu.assertEquals(in_body "%0 = stablehlo.constant dense<300> : tensor<i8>",
    "t.mlir:2:33: '300' is not an element of type i8")
  lu.assertEquals(in_body "%0 = stablehlo.constant dense<[[1], [2, 3]]> : tensor<2x1xi8>",
    "t.mlir:2:39: this list has 2 elements, and others 1")
  lu.assertEquals(in_body "%0 = stablehlo.constant dense<[1, 2]> : tensor<3xi8>",
    "t.mlir:2:33: the lists of this constant do not have the sizes of its type")
  lu.assertEquals(in_body '%0 = stablehlo.constant dense<"0x00"> : tensor<3xi16>',
    "t.mlir:2:33: 1 bytes do not fit the type of this constant")
  lu.assertEquals(in_body "%0 = stablehlo.iota dim = 0 : tensor<9007199254740993xf32>",
    "t.mlir:2:40: this tensor has more than 2^53 elements")
  lu.assertEquals(in_body '"x.y"() {a = "b\n"} : () -> ()', "t.mlir:2:16: this string has no end")
  lu.assertEquals(in_body "%0 = stablehlo.iota dim = 0 : !t", "t.mlir:2:33: !t is not defined")
  lu.assertEquals(message "func.func @f() {\n", "t.mlir:2:1: '}' is needed, not the end")
  lu.assertEquals(message "func.func private @f()\nfunc.func private @f()",
    "t.mlir:2:1: the function @f is defined twice")
  lu.assertEquals(message "\1", "t.mlir:1:1: a function or a module is needed, not the byte 0x01")
end

function TestStablehloText:test_depth()
  local deep = "this is nested more than 100 deep"
  for _, source in ipairs { ("module {"):rep(101), "module attributes " .. ("{a = "):rep(1000),
    "!t = " .. ("tuple<"):rep(1000), "#a = " .. ("["):rep(1000), "func.func @f() loc" .. ("("):rep(1000),
    "func.func @f() {" .. ('"x.y"() ({'):rep(1000), "{-# a: " .. ("{a: "):rep(1000),
    "#a = dense<" .. ("["):rep(1000) } do
    lu.assertStrContains(message(source), deep)
  end
  lu.assertEquals(#text.read("!t = " .. ("tuple<"):rep(90) .. "f32" .. (">"):rep(90), "t").order, 0)
end

local whole = [[
!t = tensor<2xf32>
module @m attributes {a = #b} {
  func.func @main(%x: !t loc("x")) -> (!t {k = [1, 2]}) {
    %c = stablehlo.constant dense<[1.0, 0x7FC00000]> : tensor<2xf32>
    %0:2 = stablehlo.while(%i = %x, %j = %c) : !t, !t cond { stablehlo.return %p : tensor<i1> } do {
      %1 = stablehlo.reduce(%i init: %j) applies stablehlo.add across dimensions = [0] : (!t, !t) -> !t
      stablehlo.return %1, %j : !t, !t
    }
    %2 = stablehlo.convolution(%0, %c) dim_numbers = [b, f]x[i, o]->[b, f], window = {} : (!t, !t) -> !t loc(#loc)
    %3 = "stablehlo.gather"(%2) <{n = #stablehlo.gather<offset_dims = [0]>}> : (!t) -> !t
    %4 = stablehlo.slice %3 [0:1:2] : (!t) -> !t
    %5 = stablehlo.constant dense_resource<w> : !t
    return %4 : !t
  }
}
#b = dense<"0x0102"> : tensor<2xi8>
#loc = loc("y"("z"))
{-# dialect_resources: { builtin: { w: "0x080000000000000000000000" } } #-}
]]

-- Whatever is cut off or changed, there is a module or an error with a place.
function TestStablehloText:test_broken_text()
  local function try(source)
    local ok, e = pcall(text.read, source, "t.mlir")
    if not ok then
      lu.assertEquals(type(e), "string")
      lu.assertStrMatches(e, "^t%.mlir:%d+:%d+: .*$")
    end
    return ok
  end
  lu.assertTrue(try(whole))
  local seed = 1
  local function random(n)
    seed = (seed * 1103515245 + 12345) & 0x7FFFFFFF
    return (seed >> 8) % n + 1
  end
  for at = 1, #whole do
    try(whole:sub(1, at))
    local mark = random(96)
    try(whole:sub(1, at - 1) .. string.char(mark + 31) .. whole:sub(at + random(3) - 1))
  end
end
