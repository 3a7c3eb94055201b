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
