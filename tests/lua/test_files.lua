-- dc.save and dc.load: tensors and models to safetensors files and back.
local lu = require "luaunit"
local dc = require "deepc"
local data = require "deepc.data"
local nn = require "deepc.nn"
local optim = require "deepc.optim"
local check = require "tests.lua.check"

local fails = check.fails

local dir

local function at(name)
  return dir .. "/" .. name
end

local function write(path, bytes)
  local f <close> = assert(io.open(path, "wb"))
  f:write(bytes)
end

local Base = {}

function Base:setUp()
  dir = os.tmpname()
  os.remove(dir)
  os.execute("mkdir " .. dir)
end

function Base:tearDown()
  os.execute("rm -rf " .. dir)
end

TestTensors = { setUp = Base.setUp, tearDown = Base.tearDown }

function TestTensors:test_there_and_back()
  local w = dc.param("f32[2, 3]", { { 1, 2, 3 }, { 4, 5, 6 } })
  dc.save(at "a", { w = w, list = { dc.tensor(7), { b = dc.tensor({ 1, 2 }, "i64") } }, lazy = w * 2 },
    { epoch = "5", by = "Zoë \"quoted\"\n" })
  local t, metadata = dc.load(at "a")
  local names = {}
  for name in pairs(t) do
    names[#names + 1] = name
  end
  table.sort(names)
  lu.assertEquals(names, { "lazy", "list.1", "list.2.b", "w" })
  lu.assertEquals(t.w:totable(), { { 1, 2, 3 }, { 4, 5, 6 } })
  lu.assertEquals(t.lazy:totable(), { { 2, 4, 6 }, { 8, 10, 12 } })
  lu.assertEquals(t["list.1"]:item(), 7)
  lu.assertEquals(t["list.2.b"].dtype, "i64")
  lu.assertEquals(t["list.2.b"]:totable(), { 1, 2 })
  lu.assertEquals(metadata, { epoch = "5", by = "Zoë \"quoted\"\n" })
end

-- A file begins with the length of its header: 640, 896, 1152 and 1408 are in bytes the first two of a pickle.
function TestTensors:test_headers_of_all_lengths()
  local header = '{"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'
  for n = 64, 2048, 8 do
    write(at "a", string.pack("<I8", n) .. header .. (" "):rep(n - #header) .. string.pack("<f", n))
    lu.assertEquals(dc.load(at "a").w:item(), n)
  end
end

function TestTensors:test_hints_for_files_of_other_programs()
  dc.save(at "a", { w = dc.ones "f32[3, 4]", h = dc.ones "f32[2]", i = dc.ones "i32[2]" })
  local function hint(into)
    local ok, err = pcall(dc.load, at "a", into, { partial = true })
    lu.assertFalse(ok)
    return err.hint
  end
  lu.assertStrContains(hint { w = dc.param "f32[4, 3]" }, "the file has it transposed, as PyTorch keeps matrices")
  lu.assertEquals(hint { h = dc.param "f16[2]" }, "{ cast = true } rounds what is narrower here")
  lu.assertStrContains(hint { i = dc.param "f32[2]" }, "cell:set(t:cast(cell.dtype))")
  lu.assertNil(hint { w = dc.param "f32[4, 4]" })
end

-- A file of another program: { name, dtype, shape, values } ..., as f32 whatever the dtype is called.
local function write_foreign(path, tensors, metadata)
  local head, bytes = {}, ""
  if metadata then
    head[1] = ('"__metadata__":{%s}'):format(metadata)
  end
  for _, t in ipairs(tensors) do
    local n = #bytes
    for _, v in ipairs(t[4]) do
      bytes = bytes .. ("<f"):pack(v)
    end
    head[#head + 1] = ('"%s":{"dtype":"%s","shape":[%s],"data_offsets":[%d,%d]}'):format(t[1], t[2],
      table.concat(t[3], ","), n, #bytes)
  end
  local text = "{" .. table.concat(head, ",") .. "}"
  write(path, ("<I8"):pack(#text) .. text .. bytes)
end

local SQUARE = { "1.weight", "F32", { 2, 2 }, { 1, 2, 3, 4 } } -- [out, in]: y1 = x1 + 2 x2, y2 = 3 x1 + 4 x2
local WIDE = { "2.weight", "F32", { 3, 2 }, { 1, 2, 3, 4, 5, 6 } }
local INPUT = dc.tensor { { 1, 10 } }

local function two_layers(outputs)
  return nn.Sequential { nn.Linear(2, 2, { bias = false }), nn.Linear(2, outputs, { bias = false }) }
end

-- Matrices that are turned in several bands of rows, the last one shorter; of all sizes of elements, and of blocks.
function TestTensors:test_turned_in_bands()
  for file, dtypes in pairs { ["t.safetensors"] = { "f16", "bf16", "f32", "f64" }, ["t.gguf"] = { "f32", "q8_0" } } do
    for _, dtype in ipairs(dtypes) do
      for _, sizes in ipairs { { 704, 323 }, { 32, 5000 }, { 150016, 2 } } do
        local layer = nn.Linear(sizes[1], sizes[2], { bias = false })
        local kept = dtype ~= "q8_0" and dtype or "f32"
        local there = dc.randn(("f32[%d, %d]"):format(sizes[2], sizes[1]), { seed = 4 })
        dc.save(at(file), { weight = kept == "f32" and there or there:cast(kept) }, nil,
          dtype == "q8_0" and { type = "q8_0" } or nil)
        layer:cast(kept)
        dc.load(at(file), layer, { linear = "out, in" })
        local want = dc.load(at(file)).weight:transpose()
        lu.assertTrue(layer.weight:eq(want):all():item(), ("%s %s %d"):format(file, dtype, sizes[1]))
      end
    end
  end
end

function TestTensors:test_square_weights_of_linear_layers_are_never_guessed()
  write_foreign(at "a", { SQUARE })
  local net = nn.Sequential { nn.Linear(2, 2, { bias = false }) }
  local before = net[1].weight:totable()
  fails("tensor '1.weight' is [2, 2]: a linear layer keeps [in, out] here, PyTorch [out, in]", dc.load, at "a", net)
  lu.assertEquals(net[1].weight:totable(), before)
  dc.load(at "a", net, { linear = "out, in" })
  lu.assertEquals(net(INPUT):totable(), { { 21, 43 } })
  dc.load(at "a", net, { linear = "in, out" })
  lu.assertEquals(net(INPUT):totable(), { { 31, 42 } })
  fails("linear is the string 'oi'", dc.load, at "a", net, { linear = "oi" })
  fails("linear is for loading into layers", dc.load, at "a", nil, { linear = "out, in" })
end

function TestTensors:test_other_weights_of_a_file_show_its_layout()
  local net = two_layers(3)
  write_foreign(at "a", { SQUARE, WIDE })
  dc.load(at "a", net)
  lu.assertEquals(net(INPUT):totable(), { { 21 + 86, 3 * 21 + 4 * 43, 5 * 21 + 6 * 43 } })
  write_foreign(at "b", { SQUARE, { "2.weight", "F32", { 2, 3 }, { 1, 3, 5, 2, 4, 6 } } })
  dc.load(at "b", net)
  lu.assertEquals(net(INPUT):totable(), { { 31 + 84, 3 * 31 + 4 * 42, 5 * 31 + 6 * 42 } })
  fails('tensor \'2.weight\' is [3, 2]: the other way round than linear = "in, out"', dc.load, at "a", net,
    { linear = "in, out" })
end

function TestTensors:test_a_square_weight_among_others_of_both_layouts()
  write_foreign(at "a", { SQUARE, WIDE, { "3.weight", "F32", { 3, 1 }, { 1, 1, 1 } } })
  local net = nn.Sequential { nn.Linear(2, 2, { bias = false }), nn.Linear(2, 3, { bias = false }),
    nn.Linear(3, 1, { bias = false }) }
  fails("the file has '3.weight' as [in, out], as it is here, and '2.weight' as [out, in]", dc.load, at "a", net)
end

function TestTensors:test_files_say_their_layout()
  local net, other = two_layers(2), two_layers(2)
  dc.save(at "a", net)
  dc.load(at "a", other) -- ours
  lu.assertEquals(other(INPUT):totable(), net(INPUT):totable())
  lu.assertEquals(select(2, dc.load(at "a")), {})
  write_foreign(at "b", { SQUARE, { "2.weight", "F32", { 2, 2 }, { 1, 0, 0, 1 } } }, '"deepc.linear":"out, in"')
  dc.load(at "b", other)
  lu.assertEquals(other(INPUT):totable(), { { 21, 43 } })
  dc.save(at "c", dc.load(at "b")) -- of tensors nothing is known
  fails("the file does not say which this is", dc.load, at "c", other)
end

function TestTensors:test_what_is_no_linear_layer_is_taken_as_it_is()
  write_foreign(at "a", { { "weight", "F32", { 2, 2 }, { 1, 2, 3, 4 } } })
  for _, layer in ipairs { nn.Embedding(2, 2), { weight = dc.param "f32[2, 2]" } } do
    dc.load(at "a", layer)
    lu.assertEquals(layer.weight:totable(), { { 1, 2 }, { 3, 4 } })
  end
end

function TestTensors:test_a_dtype_that_is_not_read_refuses_its_tensor_alone()
  write_foreign(at "a", { { "a", "F32", { 2 }, { 1, 2 } }, { "b", "F4", { 4 }, { 3 } } })
  local tensors, _, unread = dc.load(at "a")
  lu.assertEquals(tensors.a:totable(), { 1, 2 })
  lu.assertNil(tensors.b)
  lu.assertEquals(unread, { b = "F4" })
  local a, b = dc.param "f32[2]", dc.param "f32[4]"
  dc.load(at "a", { a = a }, { partial = true })
  lu.assertEquals(a:totable(), { 1, 2 })
  fails("tensor 'b' has dtype 'F4', which is not read", dc.load, at "a", { a = a, b = b })
end

function TestTensors:test_through_links()
  os.execute(("cd %s && mkdir far && ln -s far/b a && ln -s $PWD/a c"):format(dir))
  for step = 1, 2 do -- where the links lead to nothing, and to a file
    dc.save(at "c", { x = dc.tensor(step) })
    for _, name in ipairs { "a", "c", "far/b" } do
      lu.assertEquals(dc.load(at(name)).x:item(), step)
    end
    lu.assertTrue(os.execute(("test -L %s -a -L %s -a ! -L %s"):format(at "a", at "c", at "far/b")))
  end
end

function TestTensors:test_every_dtype()
  local saved = {}
  for dtype in ("bool i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64"):gmatch "%S+" do
    saved[dtype] = dc.randint("i32[3, 5]", { high = 2, seed = #dtype }):cast(dtype)
  end
  saved.none, saved.scalar = dc.zeros "f32[0, 4]", dc.tensor(1.5)
  dc.save(at "a", saved)
  local loaded = dc.load(at "a")
  for name, t in pairs(saved) do
    lu.assertEquals(loaded[name].dtype, t.dtype)
    lu.assertEquals(loaded[name].shape, t.shape)
    lu.assertEquals(loaded[name]:totable(), t:totable())
  end
  lu.assertEquals(loaded.scalar:item(), 1.5)
end

function TestTensors:test_equal_content_is_equal_bytes()
  local function content()
    local t = {}
    for i = 1, 20 do
      t["x" .. i * 7919 % 20] = dc.iota(("i32[%d]"):format(i * 7919 % 20 + 1))
    end
    return t
  end
  dc.save(at "a", content(), { one = "1", two = "2", three = "3" })
  dc.save(at "b", content(), { three = "3", two = "2", one = "1" })
  lu.assertTrue(check.read(at "a") == check.read(at "b"))
end

function TestTensors:test_what_has_no_place()
  local x = dc.zeros "f32[2]"
  fails("save: a path is needed, not nil", dc.save)
  fails("save: a layer, an optimiser or a table is needed, not nil", dc.save, at "a")
  fails("save: a tensor alone has no name\n  hint: { x = x } gives it one", dc.save, at "a", x)
  fails("save: 'b.1' is the string 'text'", dc.save, at "a", { b = { "text" } })
  fails("save: two values have the name 'a.b'", dc.save, at "a", { ["a.b"] = x, a = { b = x * 2 } })
  fails("save: metadata 'epoch' is the number 5", dc.save, at "a", { x = x }, { epoch = 5 })
  fails("names that begin with 'deepc.' are kept", dc.save, at "a", { x = x }, { ["deepc.x"] = "" })
  fails("a name or a text of metadata is not UTF-8", dc.save, at "a", { ["\xff"] = x })
  fails("a zero byte in the string", dc.save, at "a", { ["a\0b"] = x })
  fails("tensor '__metadata__' has a name that the format keeps", dc.save, at "a", { __metadata__ = x })
  local t = { x = x }
  t.t = t
  fails("the table 't' contains itself", dc.save, at "a", t)
  local closed = dc.zeros "f32[2]"
  debug.getmetatable(closed).__close(closed)
  fails("the tensor was closed", dc.save, at "a", { closed = closed })
  lu.assertNil(io.open(at "a"))
end

function TestTensors:test_inside_typed_functions()
  local function f(body)
    return dc.fn("f(x: f32[2]) -> f32[2]", body)
  end
  fails("dc.save is called while 'f' is traced", f, function(x)
    dc.save(at "a", { x = x })
    return x
  end)
  fails("dc.load is called while 'f' is traced", f, function(x)
    dc.load(at "a")
    return x
  end)
end

function TestTensors:test_a_failing_save_leaves_the_file()
  dc.save(at "a", { x = dc.iota(3) })
  local before = check.read(at "a")
  local err = fails("a/b: cannot be written: Not a directory", dc.save, at "a/b", { x = dc.iota(4) })
  lu.assertEquals(err.code, "DC0801")
  lu.assertStrMatches(err.at, ".*check.lua:%d+")
  fails("is a directory", dc.save, dir, { x = dc.iota(4) })
  lu.assertTrue(check.read(at "a") == before)
end

function TestTensors:test_files_that_are_none()
  lu.assertEquals(fails("/nonexistent/x: No such file", dc.load, "/nonexistent/x").code, "DC0801")
  write(at "a", "hello, this is text")
  local err = fails("a: not a safetensors file", dc.load, at "a")
  lu.assertEquals(err.code, "DC0802")
  lu.assertStrMatches(err.at, ".*check.lua:%d+")
  for begin, what in pairs { ["\x89HDF\r\n"] = "an HDF5 file", ["\x1f\x8b\8"] = "compressed by gzip" } do
    write(at "d", begin .. ("\1"):rep(100))
    fails("d: not a safetensors file but " .. what, dc.load, at "d")
  end
  dc.save(at "b", { x = dc.iota(100) })
  local bytes = check.read(at "b")
  write(at "c", bytes:sub(1, -2))
  fails("tensor 'x' has data_offsets", dc.load, at "c")
end

function TestTensors:test_nothing_is_left_of_a_failure()
  write(at "a", string.pack("<s8", '{"x":{"dtype":"F32","shape":[9],"data_offsets":[0,36]}}') .. "1234")
  collectgarbage()
  collectgarbage()
  local before = dc.stats().bytes_live
  for _ = 1, 100 do
    pcall(dc.load, at "a")
  end
  collectgarbage()
  collectgarbage()
  lu.assertEquals(dc.stats().bytes_live, before)
end

TestModels = { setUp = Base.setUp, tearDown = Base.tearDown }

local function mlp(hidden)
  return nn.Sequential { nn.Linear(4, hidden), nn.ReLU(), nn.Linear(hidden, 2) }
end

local function values(net)
  local list = {}
  for _, named in ipairs(net:named_cells()) do
    list[named[1]] = named[2]:totable()
  end
  return list
end

function TestModels:test_there_and_back()
  local a, b = mlp(3), mlp(3)
  dc.save(at "net", a, { note = "first" })
  lu.assertNotEquals(values(a), values(b))
  lu.assertEquals(dc.load(at "net", b), { note = "first" })
  lu.assertEquals(values(a), values(b))
  local t = dc.load(at "net")
  lu.assertEquals(t["3.bias"]:totable(), a[3].bias:totable())
end

function TestModels:test_holders_keep_what_they_had()
  local a, b = mlp(3), mlp(3)
  dc.save(at "net", a)
  local before = values(b)
  local lazy, copy = b[1].weight * 1, b[1].weight:clone()
  dc.load(at "net", b)
  lu.assertEquals(lazy:totable(), before["1.weight"])
  lu.assertEquals(copy:totable(), before["1.weight"])
  lu.assertEquals((b[1].weight * 1):totable(), a[1].weight:totable())
end

function TestModels:test_compiled_functions_see_what_was_loaded()
  local a, b = mlp(3), mlp(3)
  local ones = dc.ones "f32[1, 4]"
  local f = dc.fn("f(x: f32[1, 4]) -> f32[1, 2]", function(x)
    local y = b(x)
    return y
  end)
  local first = f(ones)
  dc.save(at "net", a)
  dc.load(at "net", b)
  lu.assertNotEquals(first:totable(), f(ones):totable())
  dc.save(at "again", b)
  lu.assertTrue(check.read(at "net") == check.read(at "again"))
end

local function unchanged(net, f)
  local before = values(net)
  f()
  lu.assertEquals(values(net), before)
end

function TestModels:test_other_sizes()
  local net = mlp(5)
  dc.save(at "net", mlp(3))
  unchanged(net, function()
    local err = fails("net: tensor '1.bias' is f32[3], the parameter f32[5]: axis 1: 3 against 5",
      dc.load, at "net", net)
    lu.assertEquals(err.code, "DC0804")
    lu.assertEquals(err.expected, "f32[5]")
    lu.assertEquals(err.got, "f32[3]")
    lu.assertStrMatches(err.at, ".*check.lua:%d+")
  end)
  dc.save(at "x", { x = dc.zeros "f16[2]" })
  fails("tensor 'x' is f16[2], the state bf16[2]: f16 against bf16", dc.load, at "x", { x = dc.state "bf16[2]" })
  fails("the state f16[2, 1]: 1 axes against 2", dc.load, at "x", { x = dc.state "f16[2, 1]" })
end

function TestModels:test_the_last_one_that_does_not_fit_changes_nothing()
  local saved = { a = dc.ones "f32[2]", b = dc.ones "f32[2]", z = dc.ones "f32[3]" }
  local cells = { a = dc.state "f32[2]", b = dc.state "f32[2]", z = dc.state "f32[2]" }
  dc.save(at "x", saved)
  fails("tensor 'z'", dc.load, at "x", cells)
  lu.assertEquals(cells.a:totable(), { 0, 0 })
end

function TestModels:test_other_names()
  local net = mlp(3)
  dc.save(at "net", { model = net })
  unchanged(net, function()
    local err = fails("net: has no tensor '1.bias', '1.weight', '3.bias' and 1 more; 'model.1.bias', "
      .. "'model.1.weight', 'model.3.bias' and 1 more have no place in what is loaded into", dc.load, at "net", net)
    lu.assertEquals(err.hint, "names in the file begin with 'model.'")
  end)
  dc.load(at "net", { model = net })
  dc.save(at "part", net)
  fails("the file has '1.bias'; it was saved of a part of this", dc.load, at "part", { model = net })
  dc.save(at "x", { wieght = dc.zeros "f32[2]" })
  fails("is 'wieght' meant?", dc.load, at "x", { weight = dc.state "f32[2]" })
  dc.save(at "x", { a = dc.zeros "f32[2]", b = dc.zeros "f32[2]" })
  fails("'b' has no place in what is loaded into", dc.load, at "x", { a = dc.state "f32[2]" })
  fails("'a' is a tensor, which does not change", dc.load, at "x", { a = dc.zeros "f32[2]" })
end

function TestModels:test_partial()
  dc.save(at "x", { a = dc.ones "f32[2]", b = dc.ones "f32[2]" }, { note = "n" })
  local cells = { a = dc.state "f32[2]", c = dc.state "f32[2]" }
  local metadata, missing = dc.load(at "x", cells, { partial = true })
  lu.assertEquals(metadata, { note = "n" })
  lu.assertEquals(missing, { "c" })
  lu.assertEquals(cells.a:totable(), { 1, 1 })
  fails("tensor 'a'", dc.load, at "x", { a = dc.state "f32[3]" }, { partial = true })
end

function TestModels:test_shared_cells_are_stored_once()
  local shared = dc.param("f32[2]", { 3, 4 })
  dc.save(at "x", { first = { w = shared }, second = { w = shared }, other = dc.param "f32[1]" })
  lu.assertStrContains(check.read(at "x"), '"deepc.alias:second.w":"first.w"')
  local t, metadata = dc.load(at "x")
  lu.assertEquals(t["second.w"]:totable(), { 3, 4 })
  lu.assertTrue(rawequal(t["second.w"], t["first.w"]))
  lu.assertEquals(metadata, {})
  local apart = { first = { w = dc.param "f32[2]" }, second = { w = dc.param "f32[2]" }, other = dc.param "f32[1]" }
  dc.load(at "x", apart)
  lu.assertEquals(apart.second.w:totable(), { 3, 4 })
  local again = dc.param "f32[2]"
  dc.load(at "x", { first = { w = again }, second = { w = again }, other = dc.param "f32[1]" })
  lu.assertEquals(again:totable(), { 3, 4 })
end

function TestModels:test_states_and_frozen_parameters_are_saved()
  local Counter = nn.class "Counter"
  function Counter:init()
    self.inner, self.seen = nn.Linear(2, 2), dc.state("i32[]", 7)
  end
  local a, b = Counter(), Counter()
  a:freeze()
  b.seen:set(0)
  dc.save(at "x", a)
  dc.load(at "x", b)
  lu.assertEquals(b.seen:item(), 7)
  lu.assertEquals(values(a), values(b))
end

-- A disk that fails half way: the cells say so, and can be loaded again.
function TestModels:test_a_file_that_is_cut_off_while_it_is_read()
  local cells = { a = dc.state("f32[2]", 1), b = dc.state("f32[2]", 1) }
  dc.save(at "x", { a = dc.zeros "f32[2]", b = dc.zeros "f32[2]" })
  local core
  local _, load = debug.getupvalue(package.loaded["deepc.load"].load, 2) -- behind its entry
  for i = 1, 10 do
    local name, value = debug.getupvalue(load, i)
    core = name == "core" and value or core
  end
  local bytes = check.read(at "x")
  local file <close> = core.file_open(at "x")
  write(at "x", bytes:sub(1, -5))
  fails("was changed while it was read", core.file_put, file, { "a", "b" }, { cells.a, cells.b })
  lu.assertEquals(cells.a:totable(), { 1, 1 })
  write(at "x", bytes)
  dc.load(at "x", cells)
  lu.assertEquals(cells.b:totable(), { 0, 0 })
end

TestCheckpoints = { setUp = Base.setUp, tearDown = Base.tearDown }

-- A run of so many steps, with dropout, a shuffled set and an optimiser that has moments.
local function new_run(path)
  dc.seed(3)
  local run = {}
  run.net = nn.Sequential { nn.Linear(3, 8), nn.Dropout(0.3), nn.ReLU(), nn.Linear(8, 2) }
  run.opt = optim.Adam(run.net:parameters(), { lr = 0.05 })
  run.set = data.set(dc.randn("f32[50, 3]", { seed = 2 }), dc.iota "i32[50]" % 2)
  run.step = dc.fn("step(x: f32[8, 3], y: i32[8]) -> f32[]", function(x, y)
    local loss = nn.cross_entropy(run.net(x), y)
    run.opt:step(loss)
    return loss
  end)
  run.ckpt = dc.checkpoint(path, { model = run.net, optimizer = run.opt, data = run.set })
  return run
end

-- Steps until `last`; the losses from there on, each exactly.
local function train(run, state, last, every)
  local log = {}
  for epoch = run.set.epoch + 1, 4 do
    for x, y in run.set:batches { size = 8, shuffle = true, last = "drop" } do
      state.step = state.step + 1
      log[#log + 1] = ("%d %a"):format(state.step, run.step(x, y):item())
      if state.step % every == 0 then
        run.ckpt:save(state)
      end
      if state.step == last then
        return log
      end
    end
    state.epoch = epoch
    run.ckpt:save(state)
  end
  return log
end

function TestCheckpoints:test_goes_on_with_the_same_bits()
  local whole = train(new_run(at "whole"), { step = 0 }, 24, 5)
  lu.assertEquals(#whole, 24)
  for _, stop in ipairs { 5, 6, 7, 12, 13, 20, 23 } do
    os.remove(at "cut")
    local log = train(new_run(at "cut"), { step = 0 }, stop, 5)
    local run = new_run(at "cut")
    dc.rand "f32[5]" -- the generator is somewhere else
    local state = run.ckpt:load()
    local rest = train(run, state, 24, 5)
    local from = math.tointeger(rest[1]:match "^%d+")
    lu.assertTrue(from <= stop + 1)
    for i = from, 24 do
      log[i] = rest[i - from + 1]
    end
    lu.assertEquals(log, whole, stop)
  end
end

function TestCheckpoints:test_values_come_back_exactly()
  local ckpt = dc.checkpoint(at "c", {})
  ckpt.path = {}
  lu.assertError(ckpt.load, ckpt)
  lu.assertError(ckpt.save, ckpt)
  ckpt.path = at "c"
  local kept = {
    i = 3, f = 3.0, third = 1 / 3, big = math.maxinteger, small = math.mininteger, inf = -math.huge,
    yes = true, no = false, text = 'a "text"\n5', empty = "", number = "5",
  }
  lu.assertNil(ckpt:load())
  ckpt:save(kept)
  local back = ckpt:load()
  lu.assertEquals(back, kept)
  lu.assertEquals(math.type(back.f), "float")
  lu.assertEquals(math.type(back.i), "integer")
  ckpt:save { nan = 0 / 0 }
  local nan = ckpt:load().nan
  lu.assertTrue(nan ~= nan)
  ckpt:save()
  lu.assertEquals(ckpt:load(), {})
end

function TestCheckpoints:test_equal_states_are_equal_bytes()
  local a, b = new_run(at "a"), new_run(at "b")
  a.ckpt:save { x = 1, y = 2 }
  b.ckpt:save { y = 2, x = 1 }
  lu.assertTrue(check.read(at "a") == check.read(at "b"))
end

function TestCheckpoints:test_what_does_not_fit_changes_nothing()
  local run = new_run(at "c")
  run.ckpt:save { step = 1 }
  local function against(pattern, parts, code)
    local position = run.set:position()
    unchanged(run.net, function()
      lu.assertEquals(fails(pattern, function()
        local ckpt = dc.checkpoint(at "c", parts)
        ckpt:load()
      end).code, code or "DC0804")
    end)
    lu.assertEquals(run.set:position(), position)
  end
  against("have no place in what is loaded into", { model = run.net, data = run.set })
  against("has the position of a data set 'data'", { model = run.net, optimizer = run.opt })
  against("has no position of 'test'", { model = run.net, optimizer = run.opt, test = run.set })
  local _, position = pcall(function() return run.set:position() end)
  lu.assertEquals(position.epoch, 0)
  for _ in run.set:batches { size = 10 } do
    run.ckpt:save()
  end
  against("'data' had 50 rows, not 49", { model = run.net, optimizer = run.opt,
    data = data.set(run.set.x:slice { [1] = { 1, 49 } }, run.set.y:slice { [1] = { 1, 49 } }) })
  dc.save(at "c", run.net)
  against("c: is no checkpoint", { model = run.net }, "DC0802")
end

function TestCheckpoints:test_damaged_metadata()
  local function damaged(pattern, metadata)
    write(at "c", string.pack("<s8", ('{"__metadata__":%s,"deepc.generator":{"dtype":"U32","shape":[4],'
      .. '"data_offsets":[0,16]}}'):format(metadata)) .. ("\0"):rep(16))
    local parts = { data = data.set(dc.iota(3), dc.iota(3)) }
    lu.assertEquals(fails(pattern, function()
      local ckpt = dc.checkpoint(at "c", parts)
      ckpt:load()
    end).code, "DC0802")
  end
  damaged("'deepc.value:step' is 'os.exit()'", '{"deepc.checkpoint":"1","deepc.value:step":"os.exit()"}')
  damaged("the position of 'data' is damaged", '{"deepc.checkpoint":"1","deepc.data:data:epoch":"1.5"}')
  damaged("is no checkpoint", '{"deepc.checkpoint":"2"}')
end

function TestCheckpoints:test_arguments()
  fails("a path is needed, not nil", dc.checkpoint)
  fails("a table of parts is needed, not nil", dc.checkpoint, at "c")
  fails("a table of parts is needed", dc.checkpoint, at "c", nn.ReLU())
  fails("'deepc.x' is no name for a part", dc.checkpoint, at "c", { ["deepc.x"] = nn.ReLU() })
  fails("'f' is a function", dc.checkpoint, at "c", { f = print })
  local ckpt = dc.checkpoint(at "c", {})
  fails("value 'x' is a table; numbers, booleans and texts are kept", ckpt.save, ckpt, { x = {} })
  local err = fails("value 'loss' is f32[]", ckpt.save, ckpt, { loss = dc.zeros "f32[]" })
  lu.assertEquals(err.hint, "x:item() gives a number")
end
