-- Names of others - out of files, of files, of the environment, in messages - through every reader and command that
-- reports them: what would steer a terminal or turn the direction of a text reaches neither errors nor notes nor the
-- output of the program (core/base/shown.h). The names here would colour a line at most.
local lu = require "luaunit"
local dc = require "deepc"
local data = require "deepc.data"
local models = require "deepc.models"
local tokenizers = require "deepc.tokenizers"
local program = require "tests.lua.program"

-- Of files whose texts are UTF-8; of files that may have any bytes.
local NAME = "n\27[31m\u{202E}\u{2066}\u{9b}m\n\127é"
local RAW = "n\27[31m\u{202E}\n\xff\x9bm"
local JSON = '"n\\u001b[31m\\u202e\\u2066\\u009bm\\n\\u007fé"'

local dir

local function at(name)
  return dir .. "/" .. name
end

local function write(name, bytes)
  local f <close> = assert(io.open(at(name), "wb"))
  f:write(bytes)
  return at(name)
end

-- Nothing that steers, and the name all the same.
local function check_text(text, about, escape)
  lu.assertNotNil(utf8.len(text), ("%s: %q"):format(about, text))
  for _, code in utf8.codes(text) do
    local bad = code < 32 and code ~= 10 and code ~= 9 or code >= 127 and code < 160 or code == 0x200e or code == 0x200f
      or code >= 0x2028 and code <= 0x202e or code >= 0x2066 and code <= 0x2069
    lu.assertFalse(bad, ("%s: U+%04X in %q"):format(about, code, text))
  end
  lu.assertStrContains(text, escape or "n\\x1b[31m", false, false, about)
end

-- Every text of the error.
local function check_error(about, f, ...)
  local ok, err = pcall(f, ...)
  lu.assertFalse(ok, about)
  check_text(tostring(err), about)
  lu.assertNil(tostring(err):match "%[31m[^\n]*\n[^ ]", about) -- the name's own line feed
  for _, field in ipairs { "at", "op", "path", "hint", "dims", "expected", "got" } do
    local text = type(err) == "table" and rawget(err, field)
    if text then
      check_text(text, about .. " " .. field, "")
    end
  end
end

local function safetensors(header, bytes)
  return string.pack("<s8", header) .. (bytes or "")
end

local function zip(name, bytes)
  local crc = 0xffffffff
  for i = 1, #bytes do
    crc = crc ~ bytes:byte(i)
    for _ = 1, 8 do
      crc = crc >> 1 ~ (crc & 1) * 0xedb88320
    end
  end
  local common = string.pack("<I2I2I2I2I2I4I4I4I2I2", 20, 0, 0, 0, 0x21, ~crc & 0xffffffff, #bytes, #bytes, #name, 0)
  local head = "PK\3\4" .. common .. name
  local directory = "PK\1\2" .. string.pack("<I2", 20) .. common .. string.pack("<I2I2I2I4I4", 0, 0, 0, 0, 0) .. name
  return head .. bytes .. directory
    .. "PK\5\6" .. string.pack("<I2I2I2I2I4I4I2", 0, 0, 1, 1, #directory, #head + #bytes, 0)
end

local function text(s)
  return string.pack("<s8", s)
end

local function gguf(entries, tensors)
  return "GGUF" .. string.pack("<I4I8I8", 3, #tensors, #entries) .. table.concat(entries) .. table.concat(tensors)
end

local function pickled(rest)
  return zip("a/data.pkl", "\x80\2" .. rest .. ".")
end

local function loading(name, bytes, ...)
  return { name, function(...)
    dc.load(write("file", bytes), ...)
  end, ... }
end

local cells = { ["n"] = dc.param "f32[2]" }

TestForeign = {}

function TestForeign:setUp()
  dir = os.tmpname()
  os.remove(dir)
  os.execute("mkdir " .. dir)
end

function TestForeign:tearDown()
  os.execute("rm -rf " .. dir)
end

local function reading(f, name, bytes)
  return function()
    f(write(name, bytes or ""))
  end
end

local function cases()
  return {
    loading("safetensors, offsets", safetensors('{' .. JSON .. ':{"dtype":"F32","shape":[2],"data_offsets":[0,9]}}')),
    loading("safetensors, dtype", safetensors('{"x":{"dtype":' .. JSON .. ',"shape":[2],"data_offsets":[0,8]}}',
      ("\0"):rep(8)), { ["x"] = dc.param "f32[2]" }),
    loading("safetensors, twice", safetensors('{"__metadata__":{' .. JSON .. ':"",' .. JSON .. ':""}}')),
    loading("safetensors, other cells", safetensors('{' .. JSON .. ':{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}',
      ("\0"):rep(8)), cells),
    loading("GGUF, metadata", gguf({ text(NAME) .. string.pack("<I4", 99) }, {})),
    loading("GGUF, bool", gguf({ text(NAME) .. string.pack("<I4B", 7, 9) }, {})),
    loading("GGUF, axes", gguf({}, { text(NAME) .. string.pack("<I4", 99) })),
    loading("GGUF, offset", gguf({}, { text(NAME) .. string.pack("<I4I8I4I8", 1, 2, 0, 7) })),
    loading("PyTorch, class", pickled("cn\27[31m\u{202e}\nx\n)R")),
    loading("PyTorch, key", pickled("}(X" .. string.pack("<s4", NAME) .. "ctorch._utils\n_rebuild_tensor_v2\n)Ru")),
    loading("npz, no array", zip(RAW .. ".npy", "no")),
    loading("index", '{"weight_map":{' .. JSON .. ':' .. JSON .. '}}'),
    { "a file's name", function() dc.load(write(RAW, "no tensors")) end },
    { "csv, column", reading(function(path) data.read_csv(path, { types = { [RAW:gsub("\n", "")] = "f32" } }) end,
      "x.csv", RAW:gsub("\n", "") .. "\nno\n") },
    { "csv, value", reading(function(path) data.read_csv(path, { types = { x = "f32" } }) end, "x.csv",
      "x\n" .. RAW:gsub("\n", "") .. "\n") },
    { "csv, path", function() data.read_csv(at(RAW .. "/none")) end },
    { "idx, path", reading(data.idx, RAW, "no") },
    { "npy, path", reading(data.read_npy, RAW, "no") },
    { "npz, path", reading(data.read_npz, RAW, "no") },
    { "image, path", reading(data.read_image, RAW, "no") },
    { "wav, path", reading(data.read_wav, RAW, "no") },
    { "text, path", function() data.read_text(at(RAW .. "/none")) end },
    { "load, path", reading(dc.load, RAW, "no") },
    { "save, path", function() dc.save(at(RAW) .. "/x", { x = dc.ones "f32[1]" }) end },
    { "checkpoint, path", reading(function(path) dc.checkpoint(path, cells):load() end, RAW, "no") },
    { "trace, path", function() dc.trace(at(RAW) .. "/x") end },
    { "tensorboard, path", function() require "deepc.tensorboard".writer(write(RAW, "")) end },
    { "csv out, path", function() data.write_csv(at(RAW) .. "/x", { x = dc.ones "f32[1]" }) end },
    { "image folder", function()
      os.execute("mkdir -p " .. program.quote(at(RAW .. "d")))
      write(RAW .. "d/x.png", "no")
      for _ in data.set(data.images(data.files(at(RAW .. "d"), "*.png"))):batches { size = 1 } do end
    end },
    { "tokenizer, kind", reading(tokenizers.load, "tokenizer.json", '{"model":{"type":' .. JSON .. '}}') },
    { "tokenizer, normalizer", reading(tokenizers.load, "tokenizer.json",
      '{"model":{"type":"BPE","vocab":{},"merges":[]},"normalizer":{"type":' .. JSON .. '}}') },
    { "tokenizer, merges", reading(tokenizers.load, "tokenizer.json",
      '{"model":{"type":"BPE","vocab":{},"merges":[' .. JSON .. ']}}') },
    { "tokenizer, path", reading(tokenizers.load, RAW, "{") },
    { "template", function()
      tokenizers.load { vocab = { "[UNK]" }, kind = "bert" }:chat({ { role = "user", content = "" } },
        { template = "{{ raise_exception('" .. NAME .. "') }}" })
    end },
    { "template, filter", function()
      tokenizers.load { vocab = { "[UNK]" }, kind = "bert" }:chat({ { role = NAME, content = "" } },
        { template = "{{ raise_exception(messages[0].role) }}" })
    end },
    { "model, kind", function()
      write("config.json", '{"model_type":' .. JSON .. ',"architectures":[' .. JSON .. ']}')
      models.load(dir)
    end },
    { "a function's file", function()
      local f = dc.fn("f(x: f32[2]) -> f32[2]", function(x) return x end)
      f:export(at(RAW) .. "/x", {})
    end },
    { "a device", function() dc.ones "f32[2]":to "n\27[31m\u{202e}" end },
    { "a signature", function() dc.fn("f(x: f32[n\27[31m\u{202e}])", print) end },
    { "a dim", function() dc.ones "f32[2]":rename { ["n\27[31m\u{202e}"] = "y" } end },
    { "a field", function() return dc["n\27[31m\u{202e}"] end },
    { "an option", function() data.read_csv("x", { ["n\27[31m\u{202e}"] = 1 }) end },
    { "a value", function() dc.ones(NAME) end },
  }
end

function TestForeign:test_errors_of_readers()
  for _, one in ipairs(cases()) do
    check_error(one[1], table.unpack(one, 2))
  end
end

-- A name of a thousand bytes leaves the sentence whole.
function TestForeign:test_long_names_are_shortened()
  for _, piece in ipairs { "x", "\\u001b", "\\u202e", "é" } do
    write("long", safetensors('{"' .. piece:rep(1000) .. '":{"dtype":"F32","shape":[2],"data_offsets":[0,9]}}'))
    local ok, err = pcall(dc.load, at "long")
    lu.assertFalse(ok)
    lu.assertStrContains(tostring(err), "...' has data_offsets 0 to 9")
    check_text(tostring(err), piece, "...")
  end
end

-- What a script raises and prints is its own.
function TestForeign:test_a_scripts_own_texts_stay()
  local ok, err = pcall(error, "a\27[31mb")
  lu.assertEquals({ ok, err }, { false, "a\27[31mb" })
  lu.assertEquals(program.run "-e 'print(\"a\\27[31mb\")'", "a\27[31mb\n")
end

-- The program's own output and notes.
function TestForeign:test_commands()
  local tensor = ':{"dtype":"F32","shape":[2],"data_offsets":[0,8]}'
  local file = program.quote(write("ok", safetensors('{"__metadata__":{' .. JSON .. ':' .. JSON .. '},' .. JSON
    .. tensor .. '}', ("\0"):rep(8))))
  local odd = program.quote(write("odd", safetensors('{' .. JSON
    .. ':{"dtype":"F8_E8M0","shape":[2],"data_offsets":[0,2]}}', "\0\0")))
  local gg = program.quote(write("gg", gguf({ text(NAME) .. string.pack("<I4", 8) .. text(NAME),
    text(NAME .. "2") .. string.pack("<I4I4I8", 9, 8, 1) .. text(NAME) }, {})))
  local named = program.quote(write(RAW .. ".safetensors", safetensors("{}")))
  local script = program.quote(write(RAW .. ".lua", "error 'here'"))
  local hostile = program.quote(RAW)
  local notes = program.quote(write("notes.lua", ("require 'deepc'.load(%q)"):format(at "odd")))
  local bug = program.quote(write("bug", "deepc bug 1\nname " .. RAW:gsub("\n", "") .. "\n"))
  for _, line in ipairs { "inspect " .. file, "inspect " .. gg, "inspect " .. named, "inspect " .. odd,
    notes, script, "check " .. script, "sandbox " .. script, hostile, "--" .. hostile,
    "--replay " .. hostile, "kernel " .. hostile, "explain " .. hostile, "plan --mesh data=2 " .. hostile,
    "dot " .. hostile, "top --once " .. hostile, "convert " .. file .. " " .. named .. "/x",
    "--ranks " .. hostile .. " x", "--viz " .. named .. "/x -e ''", "--trace " .. named .. "/x -e ''",
    "sandbox --read=" .. hostile .. " x",
    "-e 'error(\"n\\27[31m\")'" } do
    check_text(program.run(line), line)
  end
  check_text(program.run("--replay " .. bug), "replay", "")
  local computes = program.quote(write("computes.lua", "local dc = require 'deepc'\n"
    .. "local f = dc.fn('f(x: f32[2]) -> f32[2]', function(x) return x + 1 end)\nprint(f(dc.ones 'f32[2]'))"))
  for _, setting in ipairs { "DEEPC_DEVICE", "DEEPC_THREADS", "DEEPC_DEBUG", "DEEPC_LLVM", "DEEPC_CACHE",
    "DEEPC_LOG", "DEEPC_SCHEDULE", "DEEPC_OPENCL", "DEEPC_CUDA", "DEEPC_CC" } do
    local folder = setting == "DEEPC_CACHE" and dir .. "/" or "" -- which is made
    for _, line in ipairs { "--options", "--devices", "cache", computes } do
      check_text(program.run(line, setting .. "=" .. program.quote(folder .. "n\27[31m\u{202e}\xff")),
        setting .. " " .. line, "")
    end
  end
end

-- Functions whose file, layers, class and tables have such names.
local FUNCTIONS = [=[
local dc = require "deepc"
local nn = require "deepc.nn"
local K = "n\27[31m\u{202e}"
local Scale = nn.class(K)
function Scale:init()
  self.w = dc.param "f32[3]"
end
function Scale:forward(x)
  return x * self.w
end
net = nn.Sequential { nn.Linear(4, 3) }
net[K] = Scale()
t = { [K] = K, K }
f = dc.fn("f(x: f32[2, 4]) -> f32[2, 3]", function(x)
  return net[K](net[1](x))
end)
f(dc.ones "f32[2, 4]"):totable()
]=]

function TestForeign:test_texts_about_functions()
  local shown = load(FUNCTIONS .. [=[
    return { explain = f:explain(), plan = f:plan(), net = tostring(net), class = tostring(net[K]),
      summary = net:summary "f32[2, 4]" }
  ]=], "@functions.lua", "t", setmetatable({}, { __index = _G }))()
  for name, said in pairs(shown) do
    check_text(said, name, name == "explain" and "functions.lua" or "n\\x1b[31m")
  end
end

-- A label of Graphviz has the codes of such a name: \\ is a backslash.
function TestForeign:test_graphs()
  local path = program.quote(write(RAW .. ".lua", FUNCTIONS))
  for _, by in ipairs { "layer", "group" } do
    local said, status = program.run("dot --by " .. by .. " " .. path)
    lu.assertEquals(status, 0, said)
    check_text(said, by, "n\\\\x1b[31m\\\\u{202e}")
    for label in said:gmatch '"([^"]*)"' do
      lu.assertNil(label:gsub("\\[\\n]", ""):find "[\\\n]", label)
    end
  end
end

-- What is asked at the prompt, and values that are printed there.
function TestForeign:test_prompt()
  local path = program.quote(write(RAW .. ".lua", FUNCTIONS))
  for _, line in ipairs { ":kernels f", ":explain f", ":plan f", "t", "t[1]", "net", ":type net", "error(t[1])" } do
    local said = program.run("-i " .. path, "printf '%s\n' " .. program.quote(line) .. " |")
    check_text(said, line, line ~= ":type net" and "n\\x1b[31m" or "nn.")
  end
  local said = program.run("-i " .. path, "echo ':kernels f' |")
  lu.assertStrContains(said, "n\\x1b[31m\\u{202e}\\n\\xff\\x9bm.lua:")
end

-- As JSON the name is the same, in codes.
function TestForeign:test_json()
  local path = program.quote(write(RAW:gsub("\n", "") .. ".lua", "local x = 1\nprint(n\u{202e})"))
  check_text(program.run("check --json " .. path), "check", "n\\u001b[31m\\u202e")
end

-- Texts of kernels have no such names.
function TestForeign:test_kernels()
  for _, form in ipairs { "nest", "schedule", "flat", "text" } do
    for _, kernel in ipairs { "kernel n\27[31m (out0: f32[6] out) {\n}\n",
      "kernel n (out0: f32[6] out) {\n  for n\27[31m in 6\n}\n", "kernel n () {\n  n\u{202e}\n" } do
      local said, status = program.run("kernel --form " .. form .. " " .. program.quote(write("kernel", kernel)))
      lu.assertEquals(status, 1)
      check_text(said, kernel, "kernel: line ")
    end
  end
end

-- A file of a typed function, for hosts, in which every name has become such a one.
function TestForeign:test_function_files()
  local w = dc.param("f32[2]", dc.ones "f32[2]")
  local f = dc.fn("f(x: f32[2]) -> f32[2]", function(x)
    return x * w
  end)
  f:export(at "f", {})
  local file <close> = assert(io.open(at "f", "rb"))
  local bytes = file:read "a"
  local header, behind = string.unpack("<s8", bytes)
  local hostile, count = header:gsub("parameter", JSON:sub(2, -2))
  lu.assertEquals(count, 2, header)
  write("g", safetensors(hostile, bytes:sub(behind)))
  check_text(program.run("inspect " .. at "g"), "inspect")
end
