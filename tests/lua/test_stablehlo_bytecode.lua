-- MLIR bytecode (stdlib/stablehlo/bytecode.lua): what portable artifacts hold, in the form of the reader of text, and
-- what is broken.
local lu = require "luaunit"
local bytecode = require "deepc.stablehlo.bytecode"

TestStablehloBytecode = {}

local letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

local function base64(text)
  local bits, held = 0, 0
  local out = {}
  for letter in text:gmatch "[%w+/]" do
    held = (held << 6 | letters:find(letter, 1, true) - 1) & 0xFFFF
    bits = bits + 6
    if bits >= 8 then
      bits = bits - 8
      out[#out + 1] = string.char(held >> bits & 0xFF)
    end
  end
  return table.concat(out)
end

-- StableHLO 1.17.0 (container of version 6), with the places of a file named "-":
--   func.func @main(%a: tensor<2x3xf32> {jax.arg = "a"}, %b: tensor<3xf32>) -> (tensor<2xf32> {jax.out = 1 : i32}) {
--     %zero = stablehlo.constant dense<0.0> : tensor<f32>
--     %mask = stablehlo.constant dense<[true, false, true]> : tensor<3xi1>
--     %c = stablehlo.constant dense<[1.0, -2.5, 0.0]> : tensor<3xf32>
--     %d = stablehlo.select %mask, %b, %c : tensor<3xi1>, tensor<3xf32>
--     %e = stablehlo.broadcast_in_dim %d, dims = [1] : (tensor<3xf32>) -> tensor<2x3xf32>
--     %f = func.call @twice(%e) : (tensor<2x3xf32>) -> tensor<2x3xf32>
--     %g = stablehlo.exponential %a : tensor<2x3xf32>
--     %h = stablehlo.add %f, %g : tensor<2x3xf32>
--     %r = stablehlo.reduce(%h init: %zero) applies stablehlo.add across dimensions = [1]
--       : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
--     return %r : tensor<2xf32>
--   }
--   func.func private @twice(%a: tensor<2x3xf32>) -> tensor<2x3xf32> {
--     %b = stablehlo.add %a, %a : tensor<2x3xf32>
--     return %b : tensor<2x3xf32>
--   }
local sums = base64 [[
TUzvUg1TdGFibGVITE9fdjEuMTcuMAABJQUBBRUBAwsDEw8TFxsfIycrLwN7UxkBJwsTExMTExMTExMTExMTExMTExMDLQsLLxMTCwsLCw8TCw8LCwsLHx
M/FwsDGRcTDwcTExsHFwcTBwIWAwUZFwEXMRcBAQEXAQUDFwEfAxcBHzUXASERFwEjBxcBBSMXAQVtFwEHFxcBCRcXAQsRFwENERcBDxEXARERFwETERcB
FREXARsHAwEdGx8VEQEAAAAAAAAAAwUvNQ0DMTMdHR0fDQEjDQMDOw0DPT8dIRMPBR0jHSUjER0nHwUJAAAAAB8LAwUfAxkAAIA/AAAgwAAAAAApAQEBUS
cBKQUJDQcpAw0HKQEHCSkDCQcpAw0TEQUBAwMJGxEDAQMBASkDBRcdBGYCBQFQBQEHBEICAwEJCVAHAwcE1wMXKwUDEQcTAAdCFQUDBQdCFwcDCwdCGQkD
AwsGGwMDBwcDCQ1GHQsDAQMLD0YfDQMBAw0RRiEPAwEDAQMGIwMBBQ8RE1YDCwMJBRMFBwQtAwcLBQsDCwMAAwYDAwUFAQMFBAMDBQUEJQMVCVAJEQcEKQ
MFCwMDCwADBg0DAQUBAQUEDwMDBgMBBQEA1gIpEQMLEQURDQUVHxEpFREZFQ8PCxFidWlsdGluAHZobG8AbW9kdWxlAGFkZF92MQByZXR1cm5fdjEAY29u
c3RhbnRfdjEAZnVuY192MQBzZWxlY3RfdjEAYnJvYWRjYXN0X2luX2RpbV92MQBjYWxsX3YxAGV4cG9uZW50aWFsX3YyAHJlZHVjZV92MQAtAHR3aWNlAG
pheC5hcmcAYQBqYXgub3V0AG1haW4AAHByaXZhdGUACDkTBQEBCy03OUFDA0kDSwNNAysDKQNPCydFJylH
]]

-- StableHLO 0.9.0 (container of version 0):
--   func.func @main(%x: tensor<1x8x8x3xf32>, %w: tensor<3x3x3x4xf32>, %m: tensor<4x5xf32>) -> tensor<1x5xf32> {
--     %y = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
--       window = {stride = [2, 2], pad = [[0, 1], [0, 1]]} {feature_group_count = 1 : i64, batch_group_count = 1 : i64}
--       : (tensor<1x8x8x3xf32>, tensor<3x3x3x4xf32>) -> tensor<1x4x4x4xf32>
--     %z = stablehlo.slice %y [0:1, 1:2, 0:4:4, 0:4] : (tensor<1x4x4x4xf32>) -> tensor<1x1x1x4xf32>
--     %v = stablehlo.reshape %z : (tensor<1x1x1x4xf32>) -> tensor<1x4xf32>
--     %d = stablehlo.dot_general %v, %m, contracting_dims = [1] x [0], precision = [HIGHEST, DEFAULT]
--       : (tensor<1x4xf32>, tensor<4x5xf32>) -> tensor<1x5xf32>
--     return %d : tensor<1x5xf32>
--   }
local layers = base64 [[
TUzvUgFTdGFibGVITE9fdjAuOS4wAAEdBQEDAQMFAw0HCQsNDxEDp3UjAUUHCzMLCwsLC5MLCwsLCwsLCwsLCwsLCwsLIwsLCzMLCwsLAzEPCwsPD08vDw
sLCw9PjxMTL4+Pjy8TCy8DIwcHExMfHxcXEx8fFxMHHxcTAkoHHwUTAwsHSQlVC0kNVw9ZBRUFFwUZBRsFHQMjE0sVSxdNGUUbTx1bH0UhXSNRJU0nRSlP
K18DYS1RL2MxZQUfBSEFIwUlBScFKQUrBS0FLwUxBTMFNQU3BTkFOwU9Awc1ZzdpOWsFPwVBBUMDCz1TP20Db0FTQ3MFRQVHBUkFSxMBDRcBAwETAQUTAQ
EfBSEBAAAAAAAAAAIAAAAAAAAAHwURAQAAAAAAAAAfIQEjEx1NHU8TAQkfBSEAAAAAAAAAAAEAAAAAAAAAHxdBAAAAAAAAAAABAAAAAAAAAAAAAAAAAAAA
AQAAAAAAAAADBUdHHxkDAB8FEQIAAAAAAAAAHwdBAQAAAAAAAAACAAAAAAAAAAQAAAAAAAAABAAAAAAAAAAfB0EAAAAAAAAAAAEAAAAAAAAAAAAAAAAAAA
AAAAAAAAAAAB8HQQEAAAAAAAAAAQAAAAAAAAAEAAAAAAAAAAEAAAAAAAAAHxERAQAAAAAAAAADBXFHFwUfEREAAAAAAAAAAB0JKQMJASkDEQEpCQUhIQ0D
KQkNDQ0RAykFERUDKQUFFQMpAwUBEQcJCw0DDykJBREREQMpBQkJASkDCRsBKQkFBQURAykFBREDKQMBAQR7BQEQAQcDAQUDEQEFBwMPFwcJAQsBDQEFBw
ERAxUFAQMHBwEzAx0DBwkGAQMfAwkLBwE7Aw8FCwUNBAEDDQYDAQUBALYKUQMLNzE3MREdHR8hGxE1My8bNUE/MzEtKSUfExUdFSMVHxcTHxEPCxFidWls
dGluAHZobG8AbW9kdWxlAGZ1bmNfdjEAY29udm9sdXRpb25fdjEAc2xpY2VfdjEAcmVzaGFwZV92MQBkb3RfZ2VuZXJhbF92MQByZXR1cm5fdjEAcHJlY2
lzaW9uX2NvbmZpZwBhcmdfYXR0cnMAZnVuY3Rpb25fdHlwZQByZXNfYXR0cnMAc3ltX25hbWUAc3ltX3Zpc2liaWxpdHkAYmF0Y2hfZ3JvdXBfY291bnQA
ZmVhdHVyZV9ncm91cF9jb3VudABpbnB1dF9iYXRjaF9kaW1lbnNpb24AaW5wdXRfZmVhdHVyZV9kaW1lbnNpb24AaW5wdXRfc3BhdGlhbF9kaW1lbnNpb2
5zAGtlcm5lbF9pbnB1dF9mZWF0dXJlX2RpbWVuc2lvbgBrZXJuZWxfb3V0cHV0X2ZlYXR1cmVfZGltZW5zaW9uAGtlcm5lbF9zcGF0aWFsX2RpbWVuc2lv
bnMAbGhzX2RpbGF0aW9uAG91dHB1dF9iYXRjaF9kaW1lbnNpb24Ab3V0cHV0X2ZlYXR1cmVfZGltZW5zaW9uAG91dHB1dF9zcGF0aWFsX2RpbWVuc2lvbn
MAcGFkZGluZwByaHNfZGlsYXRpb24Ad2luZG93X3JldmVyc2FsAHdpbmRvd19zdHJpZGVzAGxpbWl0X2luZGljZXMAc3RhcnRfaW5kaWNlcwBzdHJpZGVz
AGxoc19iYXRjaGluZ19kaW1lbnNpb25zAGxoc19jb250cmFjdGluZ19kaW1lbnNpb25zAHJoc19iYXRjaGluZ19kaW1lbnNpb25zAHJoc19jb250cmFjdG
luZ19kaW1lbnNpb25zAG1haW4AAA==
]]

-- StableHLO 1.0.0 (container of version 6):
--   func.func @main(%t: tensor<7x3xf64>, %i: tensor<2x1xi32>, %p: tensor<i1>) -> (tensor<2x3xf64>, tensor<ui8>) {
--     %n = stablehlo.constant dense<200> : tensor<ui8>
--     %g = "stablehlo.gather"(%t, %i) {dimension_numbers = #stablehlo.gather<offset_dims = [1],
--       collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 3>,
--       indices_are_sorted = true} : (tensor<7x3xf64>, tensor<2x1xi32>) -> tensor<2x3xf64>
--     %a:2 = "stablehlo.if"(%p) ({
--       stablehlo.return %g, %n : tensor<2x3xf64>, tensor<ui8>
--     }, {
--       %s = stablehlo.negate %g : tensor<2x3xf64>
--       stablehlo.return %s, %n : tensor<2x3xf64>, tensor<ui8>
--     }) : (tensor<i1>) -> (tensor<2x3xf64>, tensor<ui8>)
--     %b:2 = stablehlo.while(%u = %a#0, %v = %a#1) : tensor<2x3xf64>, tensor<ui8>
--       cond {
--         %l = stablehlo.compare LT, %v, %v, UNSIGNED : (tensor<ui8>, tensor<ui8>) -> tensor<i1>
--         stablehlo.return %l : tensor<i1>
--       } do {
--         stablehlo.return %u, %v : tensor<2x3xf64>, tensor<ui8>
--       }
--     return %b#0, %b#1 : tensor<2x3xf64>, tensor<ui8>
--   }
local control = base64 [[
TUzvUg1TdGFibGVITE9fdjEuMC4wAAEjBQEFEwEDCwMRDxMXGx8jJysDRRsbAQMHAxkLLwsLCxMPCy9PCwsDGxcPDwcXBxcTIwcHBxMC0x8DAR8PEQAAAA
AAAAAAIxEdFx0ZHwMDyBMHBQUDHw8RAQAAAAAAAAAfGSEBAAAAAAAAAAMAAAAAAAAACQkHCykFCQ0LKQEXKQEVHSkFHQ0LCykFCQUTKQMFBxEHCQ0FBQED
GwEhKQMJBwQKAgUBUAEBBwT1AwEFBVABAwcE4QMTFwcRGQkAB0IBBQMDCWYBBwMBBQEDCQMBCxYBBQEDAwUJAwEFAwQBBQkHAwMJEQYBAwEDCQMEAQUTBw
0WAQUBAwULDQsERQMHCwUBBQAPRgEJAwUFAwMDBAEDBQMFBwUBBQADBAEFAQMDBAEFDxEGAwEFAQDpGwMLFRcTDRUZERUPCxFidWlsdGluAHZobG8AbW9k
dWxlAHJldHVybl92MQBmdW5jX3YxAGNvbnN0YW50X3YxAGdhdGhlcl92MQBpZl92MQB3aGlsZV92MQBjb21wYXJlX3YxAG5lZ2F0ZV92MQBtYWluAAAILQ
sFAQELAwcDCQsDDQ0FDxETFQUFFxk=
]]

local function type_text(t)
  if t.kind ~= "tensor" then
    return t.text or t.kind
  end
  return ("%s[%s]"):format(t.dtype or t.element, table.concat(t.shape, ","))
end

local function types_text(list)
  local parts = {}
  for i, t in ipairs(list) do
    parts[i] = type_text(t)
  end
  return #list > 0 and table.concat(parts, " ") or "()"
end

local function scalar_text(v)
  if math.type(v) == "float" then
    return ("%g"):format(v)
  end
  return type(v) == "string" and ("%q"):format(v) or tostring(v)
end

local function fields_text(v, text_of)
  local names = {}
  for name in pairs(v) do
    names[#names + 1] = name
  end
  table.sort(names)
  for i, name in ipairs(names) do
    names[i] = ("%s=%s"):format(name, text_of(v[name]))
  end
  return "{" .. table.concat(names, " ") .. "}"
end

-- An attribute as text: lists in brackets, tables with their fields in order.
local function text_of(v)
  if type(v) ~= "table" then
    return scalar_text(v)
  elseif v.dense then
    return ("%s %s"):format(type_text(v.type), text_of(v.splat ~= nil and v.splat or v.values or v.bytes))
  elseif #v == 0 and next(v) ~= nil then
    return fields_text(v, text_of)
  end
  local parts = {}
  for i, one in ipairs(v) do
    parts[i] = text_of(one)
  end
  return "[" .. table.concat(parts, ",") .. "]"
end

local function op_line(op)
  local attributes = next(op.attributes) and " " .. text_of(op.attributes) or ""
  return ("%s = %s(%s)%s: %s -> %s"):format(table.concat(op.results, ","), op.name, table.concat(op.operands, ","),
    attributes, types_text(op.operand_types), types_text(op.types))
end

local function add_region(lines, region, indent)
  for _, a in ipairs(region.args) do
    lines[#lines + 1] = indent .. a.name .. ": " .. type_text(a.type)
  end
  for _, op in ipairs(region.ops) do
    lines[#lines + 1] = indent .. op_line(op)
    for _, inner in ipairs(op.regions) do
      lines[#lines + 1] = indent .. "{"
      add_region(lines, inner, indent .. "  ")
      lines[#lines + 1] = indent .. "}"
    end
  end
end

local function function_text(f)
  local lines = {}
  add_region(lines, f.body, "")
  return table.concat(lines, "\n")
end

-- Compares what a function holds with lines, of which long ones are continued after a backslash.
local function assert_function(f, expected)
  lu.assertEquals(function_text(f), (expected:gsub("\\\n%s*", ""):gsub("\n$", "")))
end

function TestStablehloBytecode:test_is()
  lu.assertTrue(bytecode.is(sums))
  lu.assertFalse(bytecode.is "ML\xEF")
  lu.assertFalse(bytecode.is "module {}")
end

function TestStablehloBytecode:test_sums()
  local m = bytecode.read(sums, "sums")
  lu.assertEquals(m.order, { "main", "twice" })
  assert_function(m.functions.main, [[
%0: f32[2,3]
%1: f32[3]
%2 = stablehlo.constant() {value=f32[] 0}: () -> f32[]
%3 = stablehlo.constant() {value=bool[3] "\1\0\1"}: () -> bool[3]
%4 = stablehlo.constant() {value=f32[3] ]] .. ("%q"):format("\0\0\x80?\0\0 \xC0\0\0\0\0") .. [[}: () -> f32[3]
%5 = stablehlo.select(%3,%1,%4): bool[3] f32[3] f32[3] -> f32[3]
%6 = stablehlo.broadcast_in_dim(%5) {broadcast_dimensions=[1]}: f32[3] -> f32[2,3]
%7 = func.call(%6) {callee={symbol="twice"}}: f32[2,3] -> f32[2,3]
%8 = stablehlo.exponential(%0): f32[2,3] -> f32[2,3]
%9 = stablehlo.add(%7,%8): f32[2,3] f32[2,3] -> f32[2,3]
%10 = stablehlo.reduce(%9,%2) {dimensions=[1]}: f32[2,3] f32[] -> f32[2]
{
  %11: f32[]
  %12: f32[]
  %13 = stablehlo.add(%11,%12): f32[] f32[] -> f32[]
   = stablehlo.return(%13): f32[] -> ()
}
 = func.return(%10): f32[2] -> ()
]])
end

function TestStablehloBytecode:test_functions()
  local m = bytecode.read(sums, "sums")
  local main, twice = m.functions.main, m.functions.twice
  lu.assertEquals({ main.private, twice.private }, { false, true })
  lu.assertEquals(main.args[1].attributes, { ["jax.arg"] = "a" })
  lu.assertEquals(main.args[2], { name = "%1", type = main.body.args[2].type, attributes = {} })
  lu.assertEquals(main.results[1].attributes, { ["jax.out"] = 1 })
  lu.assertEquals(main.results[1].type, { kind = "tensor", element = "f32", dtype = "f32", shape = { 2 } })
  lu.assertEquals({ main.body.ops[4].where, main.body.ops[4].line }, { "-:6:8", 0 })
  assert_function(twice, [[
%0: f32[2,3]
%1 = stablehlo.add(%0,%0): f32[2,3] f32[2,3] -> f32[2,3]
 = func.return(%1): f32[2,3] -> ()
]])
end

function TestStablehloBytecode:test_layers()
  assert_function(bytecode.read(layers, "layers").functions.main, [=[
%0: f32[1,8,8,3]
%1: f32[3,3,3,4]
%2: f32[4,5]
%3 = stablehlo.convolution(%0,%1) {batch_group_count=1 dimension_numbers={lhs=["b",0,1,"f"] out=["b",0,1,"f"] \
  rhs=[0,1,"i","o"]} feature_group_count=1 padding=[[0,1],[0,1]] window_strides=[2,2]}: \
  f32[1,8,8,3] f32[3,3,3,4] -> f32[1,4,4,4]
%4 = stablehlo.slice(%3) {limit_indices=[1,2,4,4] start_indices=[0,1,0,0] strides=[1,1,4,1]}: \
  f32[1,4,4,4] -> f32[1,1,1,4]
%5 = stablehlo.reshape(%4): f32[1,1,1,4] -> f32[1,4]
%6 = stablehlo.dot_general(%5,%2) {dot_dimension_numbers={lhs_batching_dimensions=[] \
  lhs_contracting_dimensions=[1] rhs_batching_dimensions=[] rhs_contracting_dimensions=[0]} \
  precision_config=["HIGHEST","DEFAULT"]}: f32[1,4] f32[4,5] -> f32[1,5]
 = func.return(%6): f32[1,5] -> ()
]=])
end

function TestStablehloBytecode:test_control()
  assert_function(bytecode.read(control, "control").functions.main, [[
%0: f64[7,3]
%1: i32[2,1]
%2: bool[]
%3 = stablehlo.constant() {value=u8[] 200}: () -> u8[]
%4 = stablehlo.gather(%0,%1) {dimension_numbers={collapsed_slice_dims=[0] index_vector_dim=1 offset_dims=[1] \
  operand_batching_dims=[] start_index_map=[0] start_indices_batching_dims=[]} indices_are_sorted=true \
  slice_sizes=[1,3]}: f64[7,3] i32[2,1] -> f64[2,3]
%5,%6 = stablehlo.if(%2): bool[] -> f64[2,3] u8[]
{
   = stablehlo.return(%4,%3): f64[2,3] u8[] -> ()
}
{
  %7 = stablehlo.negate(%4): f64[2,3] -> f64[2,3]
   = stablehlo.return(%7,%3): f64[2,3] u8[] -> ()
}
%8,%9 = stablehlo.while(%5,%6): f64[2,3] u8[] -> f64[2,3] u8[]
{
  %10: f64[2,3]
  %11: u8[]
  %12 = stablehlo.compare(%11,%11) {compare_type="UNSIGNED" comparison_direction="LT"}: u8[] u8[] -> bool[]
   = stablehlo.return(%12): bool[] -> ()
}
{
  %13: f64[2,3]
  %14: u8[]
   = stablehlo.return(%13,%14): f64[2,3] u8[] -> ()
}
 = func.return(%8,%9): f64[2,3] u8[] -> ()
]])
end

-- A small writer, for files that no other one makes.

local function varint(v)
  return v < 128 and string.char(v << 1 | 1) or "\0" .. string.pack("<i8", v)
end

local function counted(list)
  return varint(#list) .. table.concat(list)
end

local function numbers(...)
  local list = {}
  for i, v in ipairs { ... } do
    list[i] = varint(v)
  end
  return table.concat(list)
end

local function section(id, data)
  return string.char(id) .. varint(#data) .. data
end

local function strings(list)
  local lengths, data = {}, {}
  for i, s in ipairs(list) do
    table.insert(lengths, 1, varint(#s + 1))
    data[i] = s .. "\0"
  end
  return counted(lengths) .. table.concat(data)
end

-- The sizes of entries that have codes of vhlo.
local function group(list)
  local sizes = {}
  for i, entry in ipairs(list) do
    sizes[i] = varint(#entry << 1 | 1)
  end
  return numbers(0, #list) .. table.concat(sizes)
end

local function op_names(n)
  local list = {}
  for i = 1, n do
    list[i] = varint(i + 2 << 1 | 1)
  end
  return counted(list)
end

-- A file of one function @f without arguments, of the operations `ops` (their bytes); operation 0 is "func_v1", the
-- next one is named `name`. Attribute 0 is the name "f", 1 the function's type, 2 "", 3 [], the others are those of the
-- file; type 0 is that of the function, type 1 i32, type 2 tensor<i32>. Property 0 is the function's.
local function made(file)
  local attributes = { numbers(14, 1), numbers(17, 0), numbers(14, 2), numbers(1, 0),
    table.unpack(file.attributes or {}) }
  local types = { numbers(8, 0, 0), numbers(13), numbers(20, 0, 1), file.type }
  local body = numbers(1, file.values or 0, #file.ops << 1) .. table.concat(file.ops)
  local properties = { numbers(5, 3, 1, 3, 0, 2), file.property and varint(#file.property) .. file.property }
  return "ML\xEFR" .. varint(6) .. "by hand\0" .. section(0, strings { "vhlo", "f", "", "func_v1", file.name })
    .. section(1, numbers(1, 0 << 1, 2, 0) .. op_names(2))
    .. section(2, table.concat(attributes) .. table.concat(types))
    .. section(3, numbers(#attributes, #types) .. group(attributes) .. group(types))
    .. section(4, numbers(1 << 1, 0) .. "\x50" .. numbers(2, 0, 1 << 1 | 1) .. section(4, body))
    .. section(8, counted(properties))
end

-- An operation of the name of made() with property 1 and a result of a type.
local function made_op(t)
  return numbers(1) .. "\x42" .. numbers(2, 1, 1, t)
end

-- A file with one such operation.
local function one_op(name, property, attributes, t)
  return made { name = name, property = property, attributes = attributes, type = t, values = 1,
    ops = { made_op(t and 3 or 2) } }
end

local function first_op(data)
  return op_line(bytecode.read(data, "made").functions.f.body.ops[1])
end

function TestStablehloBytecode:test_versions_that_are_not_known()
  lu.assertEquals(first_op(one_op("iota_v3", numbers(4), { numbers(9, 1, 2) })),
    "%0 = stablehlo.iota() {iota_dimension=1}: () -> i32[]")
  lu.assertEquals(first_op(one_op("grow_v1", numbers(4, 0), { numbers(9, 1, 3) })),
    '%0 = stablehlo.grow() {properties=[-2,"f"]}: () -> i32[]')
end

local function broken(message, data)
  lu.assertErrorMsgContains(message, bytecode.read, data, "made")
end

function TestStablehloBytecode:test_codes_that_are_not_known()
  broken("attribute code 99 of the dialect vhlo is not known", one_op("iota_v1", numbers(4), { numbers(99) }))
  broken("type code 77 of the dialect vhlo is not known", one_op("iota_v1", numbers(2), {}, numbers(77)))
  broken("stablehlo.iota has 2 properties", one_op("iota_v1", numbers(2, 2)))
end

function TestStablehloBytecode:test_nests()
  broken("an attribute that contains itself",
    one_op("grow_v1", numbers(4), { numbers(1, 1, 5), numbers(1, 2, 2, 4) }))
  local deep, wide = {}, {}
  for i = 1, 110 do
    local inner = i < 110 and i + 4 or 3
    deep[i] = numbers(1, 1, inner)
    wide[i] = numbers(1, 2, i < 60 and inner or 3, i < 60 and inner or 3)
  end
  broken("attributes nest deeper than 100", one_op("grow_v1", numbers(4), deep))
  broken("unfolds to far more than its size", one_op("grow_v1", numbers(4), wide))
end

function TestStablehloBytecode:test_regions_nest()
  local op = numbers(1) .. "\0" .. numbers(2)
  for _ = 1, 120 do
    op = numbers(1) .. "\x10" .. numbers(2, 1 << 1, 1, 0, 1 << 1) .. op
  end
  broken("regions nest deeper than 100", made { name = "grow_v1", ops = { op } })
end

-- A splat of 2^40 integers that is to be a list, and a list of 10,000 that 10,000 operations share.
function TestStablehloBytecode:test_no_more_than_the_size()
  broken("unfolds to far more than its size", one_op("reverse_v1", numbers(4), { numbers(15, 3, 4) .. "\1\0\0\0" },
    numbers(20, 1, 1 << 41, 1)))
  local many = {}
  for i = 1, 10000 do
    many[i] = made_op(2)
  end
  local data = made { name = "reverse_v1", property = numbers(4), type = numbers(20, 1, 20000, 1), values = 10000,
    attributes = { numbers(15, 3, 40000) .. ("\1\0\0\0"):rep(10000) }, ops = many }
  local ops = bytecode.read(data, "made").functions.f.body.ops
  lu.assertEquals({ #ops, #ops[1].attributes.dimensions }, { 10000, 10000 })
  lu.assertTrue(rawequal(ops[1].attributes.dimensions, ops[10000].attributes.dimensions))
end

local function check_broken(data, what)
  local started = os.clock()
  local ok, e = pcall(bytecode.read, data, "broken")
  local seconds = os.clock() - started
  if not ok then
    lu.assertEquals(type(e), "string", what)
    lu.assertStrContains(e, "^broken: byte %d+: .", true, what)
  end
  lu.assertTrue(seconds < 0.1, what .. ": seconds")
  return ok
end

function TestStablehloBytecode:test_cut_off()
  for name, data in pairs { sums = sums, layers = layers, control = control } do
    for n = 0, #data - 1 do
      lu.assertFalse(check_broken(data:sub(1, n), ("%s of %d bytes"):format(name, n)))
    end
  end
end

function TestStablehloBytecode:test_changed()
  local files = { sums, layers, control }
  local state = 1
  local function random(n)
    state = state * 6364136223846793005 + 1442695040888963407
    return (state >> 33) % n + 1
  end
  for i = 1, 2000 do
    local data = files[random(3)]
    local at, byte = random(#data), random(256) - 1
    check_broken(data:sub(1, at - 1) .. string.char(byte) .. data:sub(at + 1), ("change %d"):format(i))
  end
end
