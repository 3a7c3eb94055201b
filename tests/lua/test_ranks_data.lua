-- Data sets and files of ranks, where there is one: dc.mesh { data = 1 }. With more: tests/program/test_ranks_*.sh.

local lu = require "luaunit"
local check = require "tests.lua.check"
local dc = require "deepc"
local data = require "deepc.data"

dc.mesh { data = 1 }

TestBatches = {}

local function batches_of(options)
  local list = {}
  for x in data.set(dc.iota(10)):batches(options) do
    list[#list + 1] = table.concat(x:totable(), " ")
  end
  return list
end

function TestBatches:test_one_rank_has_whole_batches()
  local whole = batches_of { size = 3, last = "keep", shuffle = true, seed = 1, over = false }
  lu.assertEquals(#whole, 4)
  lu.assertEquals(batches_of { size = 3, last = "keep", shuffle = true, seed = 1 }, whole)
  lu.assertEquals(batches_of { size = 3, last = "keep", shuffle = true, seed = 1, over = "data" }, whole)
end

function TestBatches:test_axes_that_are_not_there()
  check.fails("the mesh has no axis 'model', it has data", batches_of, { size = 5, over = "model" })
  check.fails("over names an axis of the mesh, not the number 1", batches_of, { size = 5, over = 1 })
end

function TestBatches:test_streams()
  local function rows()
    local i = 0
    return function()
      i = i + 1
      return i <= 7 and i or nil
    end
  end
  local sums = {}
  for x in data.stream(rows):batches { size = 3, over = "data" } do
    sums[#sums + 1] = x:sum():item()
  end
  lu.assertEquals(sums, { 6, 15, 7 })
end

-- ---- sets of files ----

TestSets = {}

function TestSets:setUp()
  self.folder = os.tmpname()
  os.remove(self.folder)
  assert(os.execute("mkdir " .. self.folder))
end

function TestSets:tearDown()
  os.execute("rm -r " .. self.folder)
end

-- A set as ranks write it: wholes are sizes by name, parts tensors by name, each in a file of its own.
function TestSets:write(wholes, parts)
  local about, map, number = { '"deepc.ranks": "2"' }, {}, 0
  for name, sizes in pairs(wholes) do
    about[#about + 1] = ('"deepc.whole:%s": "%s"'):format(name, sizes)
  end
  for name, x in pairs(parts) do
    number = number + 1
    dc.save(("%s/%d.safetensors"):format(self.folder, number), { [name] = x })
    map[#map + 1] = ('"%s": "%d.safetensors"'):format(name, number)
  end
  local f <close> = assert(io.open(self.folder .. "/m.index.json", "w"))
  f:write(('{ "metadata": { %s }, "weight_map": { %s } }'):format(table.concat(about, ", "), table.concat(map, ", ")))
  return self.folder .. "/m"
end

-- Every way to cut small values along their axes.
function TestSets:test_parts_become_wholes()
  for _, cut in ipairs { { 1, 1, 1 }, { 2, 1, 1 }, { 1, 3, 1 }, { 1, 1, 2 }, { 4, 1, 2 }, { 2, 3, 2 }, { 4, 3, 4 } } do
    local x, parts, size = dc.iota("i64[48]"):reshape { 4, 3, 4 }, {}, { 4 // cut[1], 3 // cut[2], 4 // cut[3] }
    for a = 0, 3, size[1] do
      for b = 0, 2, size[2] do
        for c = 0, 3, size[3] do
          parts[("x.y@%d,%d,%d"):format(a, b, c)] = x[{ { a + 1, a + size[1] }, { b + 1, b + size[2] },
            { c + 1, c + size[3] } }]
        end
      end
    end
    local path = self:write({ ["x.y"] = "4,3,4" }, parts)
    lu.assertEquals(dc.load(path)["x.y"]:totable(), x:totable())
    local into = { x = { y = dc.state "i64[4, 3, 4]" } }
    dc.load(path, into)
    lu.assertTrue(into.x.y:eq(x):all():item())
  end
end

function TestSets:test_long_rows()
  local x = dc.rand("f32[3, 700000]", { seed = 1 })
  local path = self:write({ x = "3,700000" }, { ["x@0,0"] = x[{ {}, { 1, 350000 } }], ["x@0,350000"] =
    x[{ {}, { 350001, 700000 } }] })
  lu.assertTrue(dc.load(path).x:eq(x):all():item())
end

function TestSets:test_what_is_refused()
  local x, bytes = dc.ones "f32[2, 2]", dc.ones "u8[2, 2]"
  for _, case in ipairs {
    { "4,2", { ["x@0,0"] = x }, "'x' is [4,2], of which the part '@2,0' is missing" },
    { "4,4", { ["x@0,0"] = x, ["x@2,0"] = x, ["x@2,2"] = x }, "'x' is [4,4], of which the part '@0,2' is missing" },
    { "4,2", { y = x }, "'x' is [4,2], of which there is no part" },
    { "4,2", { ["x@0,0"] = x, ["x@1,0"] = x }, "'x' is [4,2], of which 'x@1,0' is no part" },
    { "4,2", { ["x@0,0"] = x, ["x@4,0"] = x }, "'x' is [4,2], of which 'x@4,0' is no part" },
    { "4,2", { ["x@0"] = x }, "'x' is [4,2], of which 'x@0' is no part" },
    { "4,2", { ["x@0,-2"] = x }, "'x' is [4,2], of which 'x@0,-2' is no part" },
    { "4,2", { ["x@0,0"] = x, ["x@2,0"] = bytes }, "parts of 'x' are of different types or sizes" },
    { "4,2", { ["x@0,0"] = x, ["x@2,0"] = dc.ones "f32[1, 2]" }, "parts of 'x' are of different types or sizes" },
    { "4;2", { ["x@0,0"] = x }, "index: the sizes of 'x' are '4;2'" },
    { "4,2,", { ["x@0,0"] = x }, "index: the sizes of 'x' are '4,2,'" },
    { "9223372036854775807,9223372036854775807", { ["x@0,0"] = dc.ones "f32[1, 1]" }, "of which 'x@0,0' is no part" },
  } do
    check.fails(case[3], dc.load, self:write({ x = case[1] }, case[2]))
  end
end

function TestSets:test_names_with_an_at_sign_are_names()
  local path = self:write({}, { ["x@0"] = dc.ones "f32[2]", ["y@z"] = dc.ones "f32[3]" })
  lu.assertEquals(dc.load(path)["x@0"]:totable(), { 1, 1 })
end

function TestSets:test_one_process_replaces_a_set()
  local path = self:write({ x = "4" }, { ["x@0"] = dc.ones "f32[2]", ["x@2"] = dc.ones "f32[2]" })
  lu.assertEquals(dc.load(path).x:totable(), { 1, 1, 1, 1 })
  dc.save(path, { x = dc.zeros "f32[4]" })
  lu.assertEquals(dc.load(path).x:totable(), { 0, 0, 0, 0 })
  lu.assertNil(io.open(path .. ".index.json"))
  lu.assertNotNil(io.open(self.folder .. "/1.safetensors")) -- no name of a file of ranks
end

function TestSets:test_pieces_replace_a_set()
  local path, values = self.folder .. "/m.safetensors.index.json", { a = dc.ones "f32[100]", b = dc.zeros "f32[100]" }
  dc.save(path, values, nil, { pieces = 400 })
  local text = check.read(path)
  local f <close> = assert(io.open(path, "w"))
  f:write((text:gsub('"total_size": 800', '"total_size": 800, "deepc.ranks": "2"')))
  f:close()
  dc.save(path, values, nil, { pieces = 400 })
  lu.assertEquals(check.read(path), text)
  lu.assertEquals(dc.load(path).a:sum():item(), 100)
end

function TestSets:test_cells_in_one_part()
  local cells = { w = dc.param("f32[4 @ data, 2]", dc.ones "f32[4, 2]") }
  local path, plain = self.folder .. "/a", self.folder .. "/b"
  dc.save(path, cells)
  dc.save(plain, { w = dc.param("f32[4, 2]", dc.ones "f32[4, 2]") })
  lu.assertEquals(check.read(path), check.read(plain))
  local into = { w = dc.param "f32[4 @ data, 2]" }
  dc.load(path, into)
  lu.assertEquals(into.w:sum():item(), 8)
  dc.save(path, cells, nil, { alone = true })
  lu.assertEquals(check.read(path), check.read(plain))
  check.fails("alone is true or false, not the number 1", dc.save, path, cells, nil, { alone = 1 })
end
