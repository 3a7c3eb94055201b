-- Weights of floats of 8 bits: their numbers beside what the specification says, products beside sums in f64, scales of
-- every kind, files in the forms that others write, models, mistakes.
-- luacheck: ignore 431
local lu = require "luaunit"
local dc = require "deepc"
local nn = require "deepc.nn"
local check = require "tests.lua.check"

local fails = check.fails

TestFloat8 = {}

local TYPES = { "f8_e4m3", "f8_e5m2" }

local function random(type, seed)
  return dc.randn(type, { seed = seed })
end

local function near(got, want, tolerance, what)
  local d, most = (got:cast "f64" - want:cast "f64"):abs():max():item(), want:abs():max():item()
  lu.assertTrue(d <= tolerance * math.max(most, 1e-30), ("%s: off by %g of %g"):format(what, d, most))
end

-- The number of a code, nil for NaN, by the specification.
local function number(type, code)
  local bits, bias = type == "f8_e4m3" and 3 or 2, type == "f8_e4m3" and 7 or 15
  local sign, e, m = code > 127 and -1 or 1, (code & 127) >> bits, code & (1 << bits) - 1
  if type == "f8_e4m3" and code & 127 == 127 or type == "f8_e5m2" and e == 31 and m > 0 then
    return nil
  elseif type == "f8_e5m2" and e == 31 then
    return sign * math.huge
  end
  return sign * (e > 0 and (1 << bits | m) * 2.0 ^ (e - bias - bits) or m * 2.0 ^ (1 - bias - bits))
end

-- A file of safetensors: { name, dtype, sizes, bytes } each.
local function write(path, tensors)
  local head, data, at = {}, {}, 0
  for i, t in ipairs(tensors) do
    head[i] = ('"%s":{"dtype":"%s","shape":[%s],"data_offsets":[%d,%d]}'):format(t[1], t[2], t[3], at, at + #t[4])
    data[i], at = t[4], at + #t[4]
  end
  local f <close> = assert(io.open(path, "wb"))
  f:write(string.pack("<s8", "{" .. table.concat(head, ",") .. "}"), table.concat(data))
end

local function bytes(n, seed, most)
  local list, state = {}, seed
  for i = 1, n do
    state = (state * 1103515245 + 12345) & 0x7fffffff
    local code = state >> 16 & 255
    list[i] = string.char(code & 127 <= most and code or code & 0x80)
  end
  return table.concat(list)
end

local function floats(list)
  return ("<" .. ("f"):rep(#list)):pack(table.unpack(list))
end

-- ---- numbers ----

function TestFloat8:test_all_codes()
  local codes = dc.iota(256):cast "u8":reshape(256, 1)
  local special = { [0x38] = { 1.0, 0.5 }, [0x01] = { 0.001953125, 0.0000152587890625 }, [0xfe] = { -448.0 },
    [0x7b] = { 352.0, 57344.0 }, [0x80] = { -0.0, -0.0 } }
  for k, type in ipairs(TYPES) do
    local finite = dc.where((codes & 127):eq(127), 0, codes)
    local rows = nn.QuantizedEmbedding(finite, type):dequantize():totable()
    for code = 0, 255 do
      local got, want = rows[code + 1][1], code & 127 ~= 127 and number(type, code) or nil
      if code & 127 ~= 127 then
        lu.assertTrue(got == want or want == nil and got ~= got, ("%s %d: %s"):format(type, code, got))
      end
      if special[code] and special[code][k] then
        lu.assertEquals(got, special[code][k])
      end
    end
  end
end

function TestFloat8:test_half_float()
  local x = dc.tensor({ 0x3c00, 0xc000, 0x0001, 0x7bff, 0x8000, 0x7c00, 0x03ff }, "u16")
  local want = { 1, -2, 2.0 ^ -24, 65504, -0.0, math.huge, 1023 * 2.0 ^ -24 }
  lu.assertEquals(x:half_float():totable(), want)
  lu.assertEquals(dc.half_float(x).dtype, "f32")
  local all = dc.iota(65536):cast "u16"
  local f = dc.fn("f(x: u16[65536]) -> f32[65536]", function(x) return x:half_float() end)
  local got, back = f(all), f(all):cast "f16":cast "f32"
  lu.assertTrue((got:eq(back) | got:ne(got)):all():item())
  lu.assertEquals(got:ne(got):cast "i32":sum():item(), 2 * 1023)
  -- a scalar that a comparison gives, as LLVM sees it
  local one = dc.fn("one(x: f32[1]) -> f32[1]", function(x) return x:ne(0):cast("u16"):half_float() end)
  lu.assertEquals({ one(dc.ones "f32[1]"):item(), one(dc.zeros "f32[1]"):item() }, { 2.0 ^ -24, 0 })
  fails("half_float: i32[2]: u16 is needed", dc.half_float, dc.ones "i32[2]")
end

-- Rows whose largest number is that of the type have the scale 1, so that elements are what they are rounded to.
function TestFloat8:test_rounding()
  local layer = nn.Embedding(5, 6)
  local want = { f8_e4m3 = { 448, 1, 1.125, -0.3125, 0.00390625, 0 },
    f8_e5m2 = { 57344, 1, 1, -0.3125, 0.0029296875, 0 } }
  for _, type in ipairs(TYPES) do
    local most = want[type][1]
    layer.weight:set(dc.tensor { { most, 1, 1.1, -0.3, 0.0029296875, 1e-9 }, { 0, 0, 0, 0, 0, 0 },
      { most, most - 1, -most, 2, 3, 4 }, { 1e-43, 0, 0, 0, 0, 0 }, { 1e38, -1e38, 0, 0, 0, 5 } })
    local q = nn.QuantizedEmbedding(layer, type)
    local got = q:dequantize():totable()
    lu.assertEquals(got[1], want[type])
    lu.assertEquals(got[2], { 0, 0, 0, 0, 0, 0 })
    lu.assertEquals(got[3], { most, most, -most, 2, 3, 4 })
    lu.assertEquals(q.weight_scale:totable()[2], { 1 })
    lu.assertAlmostEquals(got[5][1] / 1e38, 1, 1e-6)
    lu.assertTrue(got[4][1] >= 0 and got[4][1] < 1e-38)
  end
end

-- ---- products ----

local function check_product(type, m, k, n, scale, seed)
  local layer = nn.Linear(k, n)
  layer.weight:set(random(("f32[%d, %d]"):format(k, n), seed))
  local q = nn.QuantizedLinear(layer, type)
  if scale then
    q = nn.QuantizedLinear(q.weight + 0, type, { scale = scale })
    q.bias = layer.bias
  end
  local x = random(("f32[%d, %d]"):format(m, k), seed + 1)
  local want = x:cast "f64":matmul(q:dequantize():cast "f64") + layer.bias:cast "f64"
  local what = ("%s, %d x %d x %d"):format(type, m, k, n)
  local f = dc.fn(("f(x: f32[m, %d]) -> f32[m, %d]"):format(k, n), function(x) return q(x) end)
  near(f(x), want, 2e-6, what)
  near(q(x), want, 2e-6, what .. ", outside")
end

function TestFloat8:test_products()
  local seed = 1
  for _, type in ipairs(TYPES) do
    for _, m in ipairs { 1, 2, 5, 33 } do
      for _, kn in ipairs { { 1, 1 }, { 32, 16 }, { 50, 7 }, { 300, 140 } } do
        check_product(type, m, kn[1], kn[2], nil, seed)
        seed = seed + 2
      end
    end
  end
end

function TestFloat8:test_scales()
  local function scale(sizes, seed)
    return dc.rand(("f32[%s]"):format(sizes), { seed = seed }) + 0.1
  end
  for i, sizes in ipairs { "", "1", "1, 1", "140", "140, 1", "2, 3" } do
    check_product("f8_e4m3", 3, 300, 140, scale(sizes, i), i)
  end
  for i, kn in ipairs { { 256, 128, "1, 2" }, { 256, 130, "2, 2" }, { 384, 1, "1, 3" }, { 129, 129, "2, 2" } } do
    check_product("f8_e5m2", 1, kn[1], kn[2], scale(kn[3], i), i)
    check_product("f8_e4m3", 4, kn[1], kn[2], scale(kn[3], i):cast "bf16", i)
  end
  local block = dc.tensor { { 2, 4 } }
  local rows = nn.QuantizedLinear(dc.full("u8[3, 200]", 0x38), "f8_e4m3", { scale = block }):dequantize()
  lu.assertEquals(rows:slice { { 127, 130 }, { 1, 1 } }:reshape(4):totable(), { 2, 2, 4, 4 })
end

-- Kernels read codes: neither a call nor an instance has the numbers.
function TestFloat8:test_nothing_is_unpacked_into_memory()
  for _, type in ipairs(TYPES) do
    for _, kn in ipairs { { 96, 40 }, { 640, 512 } } do
      local q = nn.QuantizedLinear(nn.Linear(kn[1], kn[2]), type)
      local f = dc.fn(("f(x: f32[1, %d]) -> f32[1, %d]"):format(kn[1], kn[2]), function(x) return q(x) end)
      f(dc.ones(("f32[1, %d]"):format(kn[1])))
      local info = f:info()[1]
      lu.assertEquals(info.derived or 0, 0)
      lu.assertEquals(info.arena or 0, 0)
    end
  end
end

function TestFloat8:test_other_shapes_and_dtypes()
  local layer = nn.Linear(48, 10)
  local q = nn.QuantizedLinear(layer, "f8_e4m3")
  lu.assertEquals(tostring(q), "nn.QuantizedLinear 48 -> 10, f8_e4m3")
  local x = random("f32[2, 3, 48]", 5)
  local flat = q(x:reshape(6, 48))
  near(q(x), flat:reshape(2, 3, 10), 1e-6, "three axes")
  near(q(x[{ 1, 1 }]), flat[1], 1e-6, "one axis")
  for _, dtype in ipairs { "f16", "bf16", "f64" } do
    local y = q(x:cast(dtype))
    lu.assertEquals(y.dtype, dtype)
    near(y, layer(x), 0.1, dtype)
  end
  local mapped = dc.vmap(function(v) return q(v) end)
  local f = dc.fn("f(x: f32[2, 3, 48]) -> f32[2, 3, 10]", function(x) return mapped(x) end)
  near(f(x), q(x), 1e-6, "vmap")
  local net = nn.Sequential { q }
  net:cast "bf16"
  lu.assertEquals({ net[1].weight.dtype, net[1].weight_scale.dtype }, { "u8", "f32" })
end

function TestFloat8:test_gradients_are_those_of_the_weights()
  for _, type in ipairs(TYPES) do
    local q = nn.QuantizedLinear(nn.Linear(50, 20), type)
    local x, g = random("f32[5, 50]", 7), random("f32[5, 20]", 8)
    local f = dc.fn("f(x: f32[5, 50], g: f32[5, 20]) -> f32[5, 50]", function(x, g)
      return dc.grad((q(x) * g):sum(), x)
    end)
    near(f(x, g), g:matmul(q:dequantize():transpose()), 1e-5, "dx")
  end
end

function TestFloat8:test_rows()
  local table_of = nn.Embedding(37, 130)
  for _, scale in ipairs { "f32[]", "f32[37]", "f32[37, 1]", "f32[1, 2]" } do
    local made = nn.QuantizedEmbedding(table_of, "f8_e4m3")
    local q = nn.QuantizedEmbedding(made.weight + 0, "f8_e4m3", { scale = dc.rand(scale, { seed = 1 }) })
    local all, ids = q:dequantize(), dc.tensor({ { 0, 36 }, { 17, 16 } }, "i32")
    lu.assertEquals(q(ids):totable(), all:take(ids, 1):totable())
    local x = random("f32[3, 130]", 3)
    near(q:project(x), x:cast "f64":matmul(all:cast "f64":transpose()), 2e-6, "project")
  end
  near(nn.QuantizedEmbedding(table_of, "f8_e4m3"):dequantize(), table_of.weight, 0.05, "rows")
end

-- ---- files ----

-- A linear layer 5 -> 3 as files have it, and its weights [3, 5] as floats.
local CODES = "\x38\x40\xb8\x01\x7e" .. "\x30\x00\x80\xfe\x08" .. "\x39\x3a\x3b\x3c\x3d"
local function values(scale)
  local rows = {}
  for r = 1, 3 do
    rows[r] = {}
    for c = 1, 5 do
      rows[r][c] = number("f8_e4m3", CODES:byte(5 * r + c - 5)) * scale[r]
    end
  end
  return rows
end

function TestFloat8:test_scales_of_files_are_applied()
  local path = os.tmpname() .. ".safetensors"
  local function file(...)
    write(path, { { "weight", "F8_E4M3", "3,5", CODES }, ... })
  end
  local function loaded(options)
    local layer = nn.Linear(5, 3, { bias = false })
    dc.load(path, layer, options)
    return layer.weight:transpose():totable()
  end
  file()
  lu.assertEquals(loaded(), values { 1, 1, 1 })
  file { "weight_scale", "F32", "", floats { 0.5 } }
  lu.assertEquals(loaded(), values { 0.5, 0.5, 0.5 })
  lu.assertEquals(loaded { partial = true }, values { 0.5, 0.5, 0.5 })
  lu.assertEquals(loaded { only = { "weight" } }, values { 0.5, 0.5, 0.5 })
  file({ "weight_scale", "F32", "3,1", floats { 0.5, 2, 3 } }, { "input_scale", "F32", "1", floats { 7 } })
  lu.assertEquals(loaded(), values { 0.5, 2, 3 })
  file { "weight_scale_inv", "F32", "1,1", floats { 3 } }
  lu.assertEquals(loaded(), values { 3, 3, 3 })
  file { "weight_scale", "F32", "2", floats { 1, 2 } }
  fails("'weight_scale' is f32[2], no scale of 'weight', 3 x 5", loaded)
  file { "weight_scale", "I32", "3", floats { 1, 2, 3 } }
  fails("'weight_scale' is i32[3], no scale of 'weight', 3 x 5", loaded)
  file { "weight_shift", "F32", "", floats { 0.5 } }
  fails("'weight_shift' has no place", loaded)
  os.remove(path)
end

-- Without cells tensors are as they stand in the file, and a note says so; deepc convert applies scales.
function TestFloat8:test_files_become_others()
  local path = os.tmpname() .. ".safetensors"
  write(path, { { "weight", "F8_E4M3", "3,5", CODES }, { "weight_scale", "F32", "3,1", floats { 0.5, 2, 3 } },
    { "input_scale", "F32", "1", floats { 7 } } })
  lu.assertEquals(dc.load(path, nil, { cast = true }).weight:totable(), values { 1, 1, 1 })
  require("deepc.tensor_tool").convert { path, path .. "2" }
  local all = dc.load(path .. "2")
  lu.assertEquals(all.weight:totable(), values { 0.5, 2, 3 })
  lu.assertNil(all.weight_scale)
  lu.assertNil(all.input_scale)
  os.remove(path)
  os.remove(path .. "2")
end

function TestFloat8:test_files_of_layers()
  local path = os.tmpname() .. ".safetensors"
  local net = nn.Sequential { nn.Linear(50, 20), nn.ReLU(), nn.Linear(20, 20), nn.Embedding(4, 6) }
  nn.quantize(net, "f8_e4m3", { skip = "^3$" })
  nn.quantize(net, "f8_e5m2", { embeddings = true })
  dc.save(path, net)
  local there = dc.load(path)
  lu.assertEquals({ there["1.weight"].dtype, there["3.weight"].dtype, there["4.weight"].dtype },
    { "f8e4m3fn", "f8e5m2", "f8e5m2" })
  local other = nn.Sequential { nn.Linear(50, 20), nn.ReLU(), nn.Linear(20, 20), nn.Embedding(4, 6) }
  local plain = nn.Sequential { nn.Linear(50, 20), nn.ReLU(), nn.Linear(20, 20), nn.Embedding(4, 6) }
  nn.quantize(other, "f8_e4m3", { skip = "^3$" })
  nn.quantize(other, "f8_e5m2", { embeddings = true })
  dc.load(path, other)
  dc.load(path, plain)
  for _, i in ipairs { 1, 3, 4 } do
    lu.assertEquals(other[i].weight:totable(), net[i].weight:totable())
    lu.assertEquals(other[i].weight_scale:totable(), net[i].weight_scale:totable())
    lu.assertEquals(plain[i].weight:totable(), net[i]:dequantize():totable())
  end
  local point = dc.checkpoint(path .. "2", { net = net })
  point:save {}
  net[1].weight:set(net[1].weight * 0)
  point:load()
  lu.assertEquals(net[1].weight:totable(), other[1].weight:totable())
  os.remove(path .. "2")
  local wrong = nn.Sequential { nn.Linear(50, 20), nn.ReLU(), nn.Linear(20, 20), nn.Embedding(4, 6) }
  nn.quantize(wrong, "f8_e5m2", { embeddings = true })
  fails("tensor '1.weight' is f8e4m3fn[20, 50], the state u8[20, 50]: f8e4m3fn against u8", dc.load, path, wrong)
  write(path, { { "weight", "F8_E4M3", "1,3", "\x38\x7f\x38" }, { "weight_scale", "F32", "", floats { 1 } } })
  local layer = nn.QuantizedLinear(dc.zeros "u8[1, 3]", "f8_e4m3")
  fails("element 1 of tensor 'weight' is NaN, and weights that are multiplied as they are have to be numbers", dc.load,
    path, layer)
  write(path, { { "weight", "F8_E4M3", "1,3", "\x38\x38\x38" }, { "weight_scale_inv", "F32", "", floats { 1 } } })
  fails("has no tensor 'weight_scale'", dc.load, path, layer)
  fails("'weight' has the scale 'weight_scale_inv', which is read nowhere", dc.load, path, layer, { partial = true })
  os.remove(path)
end

-- ---- models ----

local CONFIG = [[{"model_type": "llama", "vocab_size": 40, "hidden_size": 136, "intermediate_size": 260,
  "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 64,
  "tie_word_embeddings": true%s}]]

-- A folder with a model whose linear layers are floats of 8 bits with such scales.
local function make_folder(kind, quantization)
  local models = require "deepc.models"
  local path = os.tmpname()
  os.remove(path)
  assert(os.execute("mkdir '" .. path .. "'"))
  local function text(name, s)
    local f <close> = assert(io.open(path .. "/" .. name, "wb"))
    f:write(s)
  end
  local config = { vocab_size = 40, hidden_size = 136, intermediate_size = 260, num_hidden_layers = 2,
    num_attention_heads = 4, num_key_value_heads = 2, max_position_embeddings = 64, tie_word_embeddings = true }
  local tensors, seed = {}, 0
  for _, named in ipairs(models.llama(config):named_parameters()) do
    local name = ("." .. named[1]):gsub("%.(%d+)%f[.]", function(n) return (".%d"):format(n - 1) end):sub(2)
    local value = named[2]
    seed = seed + 1
    if name:find "_proj" then
      local columns, rows = value.shape[1], value.shape[2]
      local n = kind == "block" and (rows + 127) // 128 * ((columns + 127) // 128) or kind == "row" and rows or 1
      local scale = {}
      for i = 1, n do scale[i] = 0.001 * (1 + i % 5) end
      tensors[#tensors + 1] = { name, "F8_E4M3", ("%d,%d"):format(rows, columns), bytes(rows * columns, seed, 0x50) }
      tensors[#tensors + 1] = { name .. (kind == "block" and "_scale_inv" or "_scale"), "F32", kind == "block"
        and ("%d,%d"):format((rows + 127) // 128, (columns + 127) // 128) or kind == "row" and rows .. ",1" or "",
        floats(scale) }
    else
      local sizes = table.concat(value.shape, ",")
      local list = value:reshape(-1):totable()
      tensors[#tensors + 1] = { name, "F32", sizes, floats(table.move(list, 1, math.min(#list, 200), 1, {})) }
      for at = 201, #list, 200 do
        tensors[#tensors][4] = tensors[#tensors][4] .. floats(table.move(list, at, math.min(at + 199, #list), 1, {}))
      end
    end
  end
  write(path .. "/model.safetensors", tensors)
  text("config.json", CONFIG:format(quantization and ', "quantization_config": ' .. quantization or ""))
  return path, function() os.execute("rm -r '" .. path .. "'") end
end

local QUANTIZATION = { tensor = '{"quant_method": "fp8"}',
  row = '{"quant_method": "compressed-tensors", "format": "float-quantized"}',
  block = '{"quant_method": "fp8", "fmt": "e4m3", "weight_block_size": [128, 128]}' }

function TestFloat8:test_models()
  local models = require "deepc.models"
  local ids = dc.randint("i32[1, 9]", { high = 40, seed = 4 })
  for _, kind in ipairs { "tensor", "row", "block" } do
    local path, remove = make_folder(kind, QUANTIZATION[kind])
    local floats, packed = models.load(path), models.load(path, { packed = true })
    lu.assertEquals(tostring(packed.model.layers[1].mlp.up_proj), "nn.QuantizedLinear 136 -> 260, f8_e4m3")
    near(packed.model.layers[2].mlp.down_proj:dequantize(), floats.model.layers[2].mlp.down_proj.weight, 1e-7, kind)
    lu.assertTrue(floats.model.layers[2].mlp.down_proj.weight:abs():max():item() < 0.2) -- the scale is applied
    local function logits(model)
      return dc.fn("f(ids: i32[1, n]) -> f32[1, n, 40]", function(ids) return model(ids) end)(ids)
    end
    near(logits(packed), logits(floats), 1e-5, kind)
    near(packed:step({ 3, 1, 4 }, packed:cache(16)), floats:step({ 3, 1, 4 }, floats:cache(16)), 1e-5, "a step")
    remove()
  end
  local path, remove = make_folder("row", '{"quant_method": "fp8", "weight_block_size": [64, 64]}')
  fails("the config has a quantization_config", models.load, path)
  remove()
end

-- ---- mistakes ----

function TestFloat8:test_mistakes()
  local layer = nn.Linear(48, 10)
  fails('activations are bits of integers; floats of 8 bits, \'f8_e4m3\', multiply what goes in as it is',
    nn.QuantizedLinear, layer, "f8_e4m3", { activations = 8 })
  fails("floats of 8 bits, 'f8_e5m2', multiply", nn.quantize, nn.Sequential { layer }, "f8_e5m2", { activations = 16 })
  fails('scale is for codes of "f8_e4m3" or "f8_e5m2"', nn.QuantizedLinear, layer, "f8_e4m3",
    { scale = dc.ones "f32[]" })
  fails('scale is for codes of "f8_e4m3" or "f8_e5m2"', nn.QuantizedLinear, dc.zeros "u8[2, 34]", "q8_0",
    { scale = dc.ones "f32[]" })
  fails("scale is f32[3]; floats are needed: one, one for each of 2 rows, or of blocks of 128 x 128",
    nn.QuantizedLinear, dc.zeros "u8[2, 34]", "f8_e4m3", { scale = dc.ones "f32[3]" })
  fails("scale is i32[2]", nn.QuantizedLinear, dc.zeros "u8[2, 34]", "f8_e4m3", { scale = dc.ones "i32[2]" })
  fails("rows are f32[2, 34]; u8[rows, columns] is needed", nn.QuantizedLinear, dc.zeros "f32[2, 34]", "f8_e4m3")
  fails("a weight is not finite", nn.QuantizedLinear, dc.full("u8[2, 3]", 255), "f8_e4m3")
  local q = nn.QuantizedLinear(layer, "f8_e4m3")
  fails("the last axis of x has to have 48 elements", q, dc.ones "f32[2, 32]")
  fails("x is i32; floats are needed", q, dc.ones "i32[2, 48]")
  layer.weight:set(layer.weight * (0 / 0))
  fails("a weight is not finite", nn.QuantizedLinear, layer, "f8_e4m3")
  fails('weights become "q4_0", "q8_0", "f8_e4m3" or "f8_e5m2", not \'f8\'', nn.QuantizedLinear, layer, "f8")
end
