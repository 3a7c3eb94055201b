-- deepc.tensorboard: files as a reader of another make finds them: records with their CRCs, messages by their fields.
-- program/test_tensorboard.sh has TensorBoard itself read such files.
local lu = require "luaunit"
local dc = require "deepc"
local nn = require "deepc.nn"
local optim = require "deepc.optim"
local data = require "deepc.data"
local tensorboard = require "deepc.tensorboard"
local check = require "tests.lua.check"

local fails = check.fails

-- ---- a reader ----

-- CRC-32C, of which 0xE3069283 of "123456789" is known.
local function crc32c(text)
  local c = 0xffffffff
  for i = 1, #text do
    c = c ~ text:byte(i)
    for _ = 1, 8 do
      c = c & 1 == 1 and (c >> 1) ~ 0x82F63B78 or c >> 1
    end
  end
  return c ~ 0xffffffff
end

local function masked(text)
  local c = crc32c(text)
  return ((c >> 15 | c << 17) + 0xa282ead8) & 0xffffffff
end

local function records(path)
  local text, at, list = check.read(path), 1, {}
  while at <= #text do
    local n, crc = string.unpack("<I8I4", text, at)
    lu.assertEquals(crc, masked(text:sub(at, at + 7)))
    local body = text:sub(at + 12, at + 11 + n)
    lu.assertEquals(string.unpack("<I4", text, at + 12 + n), masked(body))
    list[#list + 1], at = body, at + 16 + n
  end
  return list
end

local function varint(text, at)
  local n, shift = 0, 0
  repeat
    local byte = text:byte(at)
    n, shift, at = n | (byte & 0x7f) << shift, shift + 7, at + 1
  until byte < 0x80
  return n, at
end

-- A message as lists of values by the number of the field: integers, floats, texts.
local function message(text)
  local at, fields = 1, {}
  while at <= #text do
    local key, value
    key, at = varint(text, at)
    local kind = key & 7
    if kind == 0 then
      value, at = varint(text, at)
    elseif kind == 1 then
      value, at = string.unpack("<d", text, at)
    elseif kind == 5 then
      value, at = string.unpack("<f", text, at)
    else
      lu.assertEquals(kind, 2)
      local n
      n, at = varint(text, at)
      lu.assertTrue(at + n <= #text + 1)
      value, at = text:sub(at, at + n - 1), at + n
    end
    local list = fields[key >> 3] or {}
    fields[key >> 3], list[#list + 1] = list, value
  end
  return fields
end

local function doubles(text)
  local list = {}
  for i = 1, #text, 8 do
    list[#list + 1] = string.unpack("<d", text, i)
  end
  return list
end

-- The values of summaries: { step, tag, fields }, in their order; other events.
local function events(path)
  local values, others, last = {}, {}, 0
  for _, body in ipairs(records(path)) do
    local event = message(body)
    lu.assertTrue(event[1][1] >= last and math.abs(event[1][1] - os.time()) < 600)
    last = event[1][1]
    if event[5] then
      for _, v in ipairs(message(event[5][1])[1]) do
        local fields = message(v)
        values[#values + 1] = { step = event[2][1], tag = fields[1][1], fields = fields }
      end
    else
      others[#others + 1] = event
    end
  end
  return values, others
end

-- ---- tests ----

TestWriter = {}

function TestWriter:setUp()
  self.folder = os.tmpname()
  os.remove(self.folder)
  self.log = tensorboard.writer(self.folder)
end

function TestWriter:tearDown()
  os.execute("rm -r '" .. self.folder .. "'")
end

function TestWriter:read()
  self.log:close()
  local values, others = events(self.log.path)
  return values, others
end

function TestWriter:test_scalars()
  lu.assertEquals(crc32c "123456789", 0xE3069283)
  self.log:scalar("loss", 1.5, 300)
  self.log:scalar("loss", dc.tensor(2), -1)
  self.log:scalar("l", 1 / 0)
  local values, others = self:read()
  lu.assertEquals(others[1][3], { "brain.Event:2" })
  lu.assertEquals({ values[1].step, values[1].tag, values[1].fields[2] }, { 300, "loss", { 1.5 } })
  lu.assertEquals({ values[2].step, values[2].fields[2] }, { -1, { 2.0 } })
  lu.assertEquals({ values[3].step, values[3].fields[2] }, { 0, { 1 / 0 } })
end

function TestWriter:test_purge()
  local log <close> = tensorboard.writer(self.folder, { purge_step = 3 })
  local _, others = events(log.path)
  lu.assertEquals({ others[2][2], message(others[2][7][1])[1] }, { { 3 }, { 1 } })
  lu.assertNotEquals(log.path, self.log.path)
end

function TestWriter:test_scalars_of_one_chart()
  self.log:scalars("both", { train = 1, test = dc.tensor(2) }, 4)
  self.log:scalars("both", { train = 3 }, 5)
  self.log:close()
  for name, wanted in pairs { train = { { 4, 1.0 }, { 5, 3.0 } }, test = { { 4, 2.0 } } } do
    local list = {}
    for file in io.popen("ls " .. self.folder .. "/" .. name):lines() do
      for i, v in ipairs((events(self.folder .. "/" .. name .. "/" .. file))) do
        list[i] = { v.step, v.fields[2][1] }
      end
    end
    lu.assertEquals(list, wanted)
  end
  fails("a name has letters", function() self:setUp() self.log:scalars("x", { ["../up"] = 1 }, 1) end)
end

local function histogram(v)
  local h = message(v.fields[5][1])
  return { h[1][1], h[2][1], h[3][1], h[4][1], h[5][1] }, doubles(h[6][1]), doubles(h[7][1])
end

function TestWriter:test_histograms()
  lu.assertEquals(self.log:histogram("h", { 1, 2, 3, 4 }, 5, { bins = 3 }), 0)
  lu.assertEquals(self.log:histogram("i", dc.tensor({ 7, 7, 7 }, "i32[3]"), 5, { bins = 2 }), 0)
  lu.assertEquals(self.log:histogram("bad", dc.tensor { 1, 0 / 0, 1 / 0, -1 / 0, 2 }, 5, { bins = 2 }), 3)
  lu.assertEquals(self.log:histogram("none", dc.zeros "f32[0]", 5, { bins = 2 }), 0)
  lu.assertEquals(self.log:histogram("huge", dc.tensor({ -1.7e308, 1.7e308, 0 }, "f64[3]"), 5, { bins = 2 }), 0)
  local p = dc.param("bf16[2]", dc.tensor({ 1, 2 }, "bf16[2]"))
  lu.assertEquals(self.log:histogram("p", p, 5, { bins = 1 }), 0)
  local x = dc.randn("f32[1000]", { seed = 1 })
  self.log:histogram("x", x, 6)
  local v = self:read()
  lu.assertEquals({ histogram(v[1]) }, { { 1.0, 4.0, 4.0, 10.0, 30.0 }, { 2.0, 3.0, 4.0 }, { 1.0, 1.0, 2.0 } })
  lu.assertEquals({ histogram(v[2]) }, { { 7.0, 7.0, 3.0, 21.0, 147.0 }, { 7.0, 7.0 }, { 3.0, 0.0 } })
  lu.assertEquals({ histogram(v[3]) }, { { 1.0, 2.0, 2.0, 3.0, 5.0 }, { 1.5, 2.0 }, { 1.0, 1.0 } })
  lu.assertEquals({ v[4].tag, v[4].fields[2] }, { "bad/not_finite", { 3.0 } })
  lu.assertEquals(histogram(v[5]), { 0.0, 0.0, 0.0, 0.0, 0.0 })
  local _, limits, counts = histogram(v[6])
  lu.assertEquals({ limits, counts }, { { 0.0, 1.7e308 }, { 1.0, 2.0 } })
  lu.assertEquals(histogram(v[7]), { 1.0, 2.0, 2.0, 3.0, 5.0 })
  local _, edges, got = histogram(v[8])
  local wanted, all = dc.histogram(x, 64), 0
  for i = 1, 64 do
    all = all + got[i]
    lu.assertTrue(math.abs(got[i] - wanted[i]:item()) <= 1) -- whose edges are of f32
  end
  lu.assertEquals({ all, #edges, edges[64] }, { 1000.0, 64, x:max():item() })
end

-- The pixels of an image, by the decoder of data.read_image: rows of lists.
function TestWriter:pixels(v)
  local m = message(v.fields[4][1])
  local path = self.folder .. "/image.png"
  local f <close> = io.open(path, "wb")
  f:write(m[4][1])
  f:flush()
  local image = data.read_image(path)
  lu.assertEquals({ m[1][1], m[2][1], m[3][1] }, image.shape)
  return image:totable()
end

function TestWriter:test_images()
  local grey = dc.tensor { { 0, 0.5 }, { 1, 0.2 } }
  local colours = dc.iota(12):cast("u8"):reshape(2, 2, 3)
  self.log:image("grey", grey, 1)
  self.log:image("colours", colours, 1)
  self.log:image("first", colours:permute(3, 1, 2), 1)
  self.log:image("alpha", dc.iota(16):cast("u8"):reshape(2, 2, 4), 1)
  self.log:image("grid", dc.iota(12):cast("u8"):reshape(3, 2, 2), 1, { layout = "NHW", columns = 2 })
  self.log:image("bool", dc.tensor({ { true, false } }, "bool[1, 2]"), 1)
  self.log:image("bad", dc.tensor { { 0 / 0, 1 / 0 }, { -1 / 0, 0.5 } }, 1)
  self.log:image("range", dc.tensor { { -2, 2 } }, 1, { range = "auto" })
  self.log:image("cut", dc.tensor { { -2, 2 } }, 1)
  self.log:image("i32", dc.tensor({ { 0, 100, 200 } }, "i32[1, 3]"), 1, { range = { 0, 200 } })
  local v = self:read()
  lu.assertEquals(self:pixels(v[1]), { { { 0 }, { 128 } }, { { 255 }, { 51 } } })
  lu.assertEquals(self:pixels(v[2]), { { { 0, 1, 2 }, { 3, 4, 5 } }, { { 6, 7, 8 }, { 9, 10, 11 } } })
  lu.assertEquals(self:pixels(v[3]), self:pixels(v[2]))
  lu.assertEquals(self:pixels(v[4])[2][2], { 12, 13, 14, 15 })
  local rows = {}
  for i, row in ipairs(self:pixels(v[5])) do
    rows[i] = {}
    for k, pixel in ipairs(row) do
      rows[i][k] = pixel[1]
    end
  end
  lu.assertEquals(rows, { { 0, 1, 0, 0, 4, 5 }, { 2, 3, 0, 0, 6, 7 }, { 0, 0, 0, 0, 0, 0 }, { 0, 0, 0, 0, 0, 0 },
    { 8, 9, 0, 0, 0, 0 }, { 10, 11, 0, 0, 0, 0 } })
  lu.assertEquals(self:pixels(v[6]), { { { 255 }, { 0 } } })
  lu.assertEquals(self:pixels(v[7]),
    { { { 255, 0, 255 }, { 255, 0, 0 } }, { { 0, 0, 255 }, { 128, 128, 128 } } })
  lu.assertEquals(self:pixels(v[8]), { { { 0 }, { 255 } } })
  lu.assertEquals(self:pixels(v[9]), { { { 0 }, { 255 } } })
  lu.assertEquals(self:pixels(v[10]), { { { 0 }, { 128 }, { 255 } } })
end

function TestWriter:test_texts()
  self.log:text("notes", "äöü", 9)
  local v = self:read()[1]
  lu.assertEquals(message(message(v.fields[9][1])[1][1])[1], { "text" })
  lu.assertEquals({ message(v.fields[8][1])[1], message(v.fields[8][1])[8] }, { { 7 }, { "äöü" } })
end

function TestWriter:test_hyperparameters()
  self.log:hparams({ lr = 0.5, fast = true, name = "x" }, { "loss" })
  local v = self:read()
  local function content(i)
    local plugin = message(message(v[i].fields[9][1])[1][1])
    lu.assertEquals(plugin[1], { "hparams" })
    return message(plugin[2][1])
  end
  lu.assertEquals({ v[1].tag, v[2].tag }, { "_hparams_/experiment", "_hparams_/session_start_info" })
  lu.assertEquals(message(message(content(1)[2][1])[5][1])[1], { "\x12\x04loss" })
  local start, settings = message(content(2)[3][1]), {}
  for i, entry in ipairs(start[1]) do
    entry = message(entry)
    settings[i] = { entry[1][1], message(entry[2][1]) }
  end
  lu.assertEquals(settings, { { "fast", { [4] = { 1 } } }, { "lr", { [2] = { 0.5 } } }, { "name", { [3] = { "x" } } } })
end

-- Nodes of a GraphDef by name: { op, inputs, attr }.
local function graph_of(others)
  local nodes, count = {}, 0
  for _, event in ipairs(others) do
    for _, text in ipairs(event[4] and message(event[4][1])[1] or {}) do
      local n = message(text)
      local node = { op = n[2][1], inputs = n[3] or {}, attr = {} }
      for _, entry in ipairs(n[5]) do
        entry = message(entry)
        node.attr[entry[1][1]] = message(entry[2][1])
      end
      lu.assertNil(nodes[n[1][1]])
      nodes[n[1][1]], count = node, count + 1
    end
  end
  for _, node in pairs(nodes) do
    for _, input in ipairs(node.inputs) do
      lu.assertNotNil(nodes[input:gsub("^%^", "")], input)
    end
  end
  return nodes, count
end

function TestWriter:test_graphs()
  local net = nn.Sequential { nn.Linear(4, 8), nn.ReLU(), nn.Residual(nn.Linear(8, 8)) }
  local opt = optim.Adam(net:parameters(), { lr = 1e-3 })
  local step = dc.fn("step(x: f32[batch, 4]) -> f32[]", function(x)
    local loss = net(x):square():mean()
    opt:step(loss)
    return loss
  end)
  fails("graph: 'step' has not been traced", self.log.graph, self.log, step)
  step(dc.ones "f32[16, 4]")
  step(dc.ones "f32[2, 4]")
  fails("graph: no specialisation 3; 'step' has 2", self.log.graph, self.log, step, { specialisation = 3 })
  self.log:graph(step, { specialisation = 1 })
  local _, others = self:read()
  local g, count = graph_of(others)
  lu.assertTrue(count > 100)
  lu.assertEquals(g.x.op, "Placeholder")
  lu.assertEquals(g["net/1[Linear]/weight"].op, "Variable")
  lu.assertEquals(g["net/1[Linear]/dot"].inputs, { "x", "net/1[Linear]/weight" })
  lu.assertEquals(g["net/1[Linear]/dot"].attr.type[2], { "f32[16, 8]" })
  lu.assertEquals(g["net/1[Linear]/dot"].attr.operations[2], { "1024" })
  lu.assertStrContains(g["net/1[Linear]/dot"].attr.where[2][1], "test_tensorboard.lua:")
  lu.assertEquals(g["net/3[Residual]/layer[Linear]/weight"].op, "Variable")
  lu.assertEquals(g["net/3[Residual]/add"].op, "add")
  lu.assertNotNil(g["adam/m.net.1.weight"])
  lu.assertEquals(g["results/result_1"].op, "Result")
  lu.assertNotNil(g["results/set_net.1.weight"])
end

function TestWriter:test_graphs_of_loops()
  local f = dc.fn("f(x: f32[6, 4]) -> f32[4]", function(x)
    local sum = dc.scan(function(c, row) return dc.cond(c:sum():gt(0), function() return c + row end,
      function() return c end), c end, dc.zeros "f32[4]", x)
    return sum
  end)
  self.log:graph(f)
  local _, others = self:read()
  local g, loop = graph_of(others), nil
  for _, node in pairs(g) do
    loop = node.op == "loop" and node or loop
  end
  lu.assertStrContains(table.concat(loop.inputs, " "), "loop_body/")
  local bodies = {}
  for name in pairs(g) do
    local body = name:match "branch_%a+/"
    bodies[body or "none"] = true
  end
  lu.assertTrue(bodies["branch_true/"])
end

-- What waits is written when there is much of it, and when nothing refers to the writer; folders in folders.
function TestWriter:test_waits()
  self.log:scalar("x", 1, 1)
  lu.assertEquals(#(events(self.log.path)), 0)
  self.log:flush()
  lu.assertEquals(#(events(self.log.path)), 1)
  for i = 1, 64 do
    self.log:scalar("x", 1, i)
  end
  lu.assertEquals(#(events(self.log.path)), 65)
  local real = self.log.path -- what could not be written waits
  self.log:scalar("x", 1, 65)
  self.log.path = self.folder .. "/none/file"
  lu.assertErrorMsgContains("cannot be written", self.log.flush, self.log)
  self.log.path = real
  self.log:flush()
  lu.assertEquals(#(events(real)), 66)
  local deep = self.folder .. "/a//b/c"
  local path
  do
    local log = tensorboard.writer(deep)
    log:scalar("x", 1, 1)
    path = log.path
  end
  collectgarbage()
  lu.assertEquals(#(events(path)), 1)
end

function TestWriter:test_mistakes()
  local log = self.log
  fails("scalar: a number is needed, not nil", log.scalar, log, "x", nil, 1)
  fails("scalar: step is an integer, not 1.5", log.scalar, log, "x", 1, 1.5)
  fails("scalar: a tag is needed, not the number 1", log.scalar, log, 1, 1, 1)
  fails("scalar: a tag is needed, not an empty text", log.scalar, log, "", 1, 1)
  fails("scalar: the tag is not UTF-8", log.scalar, log, "\xff", 1, 1)
  fails("scalar: a writer is needed, not the string 'x'", log.scalar, "x", 1, 1)
  fails("scalars: numbers by name are needed, not the number 1", log.scalars, log, "x", 1, 1)
  fails("histogram: a tensor or a list of numbers is needed, not nil", log.histogram, log, "x", nil, 1)
  fails("histogram: value 2 of the list is the string 'a', no number", log.histogram, log, "x", { 1, "a" }, 1)
  fails("histogram: real numbers are needed, not c64", log.histogram, log, "x", dc.zeros "c64[2]", 1)
  fails("histogram: bins is a positive integer, not 0", log.histogram, log, "x", { 1 }, 1, { bins = 0 })
  fails("image: an image is needed, a tensor, not nil", log.image, log, "x", nil, 1)
  fails("image: no axis of f32[2, 5, 5] can be channels", log.image, log, "x", dc.zeros "f32[2, 5, 5]", 1)
  fails("image: the channels of f32[3, 5, 3] may be two axes", log.image, log, "x", dc.zeros "f32[3, 5, 3]", 1)
  fails("image: an image without pixels: f32[0, 3]", log.image, log, "x", dc.zeros "f32[0, 3]", 1)
  fails("image: pixels are u8, bool, or floats from 0 to 1, not i32", log.image, log, "x", dc.zeros "i32[2, 2]", 1)
  fails("image: layout = \"CHW\" is for 3 axes, the image is f32[2, 2]", log.image, log, "x", dc.zeros "f32[2, 2]", 1,
    { layout = "CHW" })
  fails("image: layout is \"HW\"", log.image, log, "x", dc.zeros "f32[2, 2]", 1, { layout = "hw" })
  fails("image: an image has 1, 3 or 4 channels, not 2", log.image, log, "x", dc.zeros "f32[5, 5, 2]", 1,
    { layout = "HWC" })
  fails("image: range is { low, high }", log.image, log, "x", dc.zeros "f32[2, 2]", 1, { range = { 2, 1 } })
  fails("image: an image is [h, w]", log.image, log, "x", dc.zeros "f32[2]", 1)
  fails("text: a text is needed, not the number 1", log.text, log, "x", 1, 1)
  fails("hparams: setting 'a' is a number, a text or a boolean, not a table", log.hparams, log, { a = {} })
  fails("graph: a typed function is needed", log.graph, log, print)
  fails("tensorboard.writer: the name of a folder is needed, not nil", tensorboard.writer)
  fails("/dev/null: is no folder and cannot be made", tensorboard.writer, "/dev/null/there")
  fails("scalar is called while 'f' is traced", function()
    dc.fn("f(x: f32[]) -> f32[]", function(x)
      log:scalar("x", 1, 1)
      return x
    end)
  end)
  lu.assertEquals(#self:read(), 0) -- nothing was half written
  fails("scalar: the writer is closed", log.scalar, log, "x", 1, 1)
end
