-- Names of PyTorch, JAX and Torch7 beside ours (scripts/names/): ours exist, all that should be there is, the
-- page is up to date and what it says of differences is so. scripts/counterparts --check asks the packages for theirs.
local lu = require "luaunit"
local dc = require "deepc"
local help = require "deepc.help"
local counterparts = require "scripts.names"
local lapack = require "tests.lua.lapack"

-- Modules whose every function and class has a row.
local covered = {
  deepc = true, ["deepc.nn"] = true, ["deepc.optim"] = true, ["deepc.schedules"] = true, ["deepc.fft"] = true,
  ["deepc.signal"] = true, ["deepc.linalg"] = true, ["deepc.random"] = true, ["deepc.data"] = true,
  ["deepc.metrics"] = true,
}

-- "x:sum", as rows have it.
local function key_of(e)
  return (help.signature(e):match "^[^(]+")
end

local function in_rows()
  local found = {}
  for _, row in ipairs(counterparts.rows()) do
    for _, name in ipairs(row.names) do
      found[name] = (found[name] or 0) + 1
    end
  end
  return found
end

local function read(path)
  local f = assert(io.open(path, "rb"))
  local text = f:read "a"
  f:close()
  return text
end

TestCounterparts = {}

function TestCounterparts:test_our_names_exist_and_stand_once()
  local known, count = {}, 0
  for _, e in ipairs(help.entries()) do
    known[key_of(e)] = true
  end
  for name, times in pairs(in_rows()) do
    lu.assertTrue(known[name], name .. " is no name of deepc.help")
    lu.assertEquals(times, 1, name)
    count = count + 1
  end
  lu.assertTrue(count > 550, count)
end

function TestCounterparts:test_every_name_has_a_row()
  local rows, missing = in_rows(), {}
  for _, e in ipairs(help.entries()) do
    local public = e.kind == "function" or (e.exported and e.name:match "%.%u[%w_]*$")
    if public and not e.is_module and covered[e.module] and not rows[key_of(e)] then
      missing[#missing + 1] = key_of(e)
    end
  end
  lu.assertEquals(table.concat(missing, ", "), "",
    "give them a row in scripts/names/, with - where there is no counterpart, and run scripts/counterparts")
end

function TestCounterparts:test_lists_are_pairs_or_for_all()
  for _, row in ipairs(counterparts.rows()) do
    local names = table.concat(row.names, ", ")
    for _, system in ipairs(counterparts.systems) do
      local list = row[system]
      for _, peer in ipairs(list) do
        lu.assertTrue(peer == "-" or peer:match "^%a[%w_.]*$" ~= nil, names .. ": " .. peer)
        lu.assertTrue(peer ~= "-" or #list == 1 or #list == #row.names, ("%s: - among %d names"):format(names, #list))
      end
    end
  end
end

function TestCounterparts:test_the_page_is_up_to_date()
  local text = assert(loadfile "scripts/counterparts.lua")("text")
  lu.assertTrue(text == read "docs/coming-from.md", "docs/coming-from.md is not what scripts/counterparts writes")
end

-- The first table of the page: code of deepc and what it gives.
function TestCounterparts:test_differences_are_so()
  local x, y, count = dc.arange(6):reshape(2, 3):cast "f32", dc.tensor({ 0, 2 }, "i32"), 0
  local env = { x = x, y = y, dc = dc }
  for _, name in ipairs { "nn", "linalg", "random", "signal" } do env[name] = require("deepc." .. name) end
  for code, gives in read("docs/coming-from.md"):gmatch "\n| [^|]* | [^|]* | [^|]* | `([^`|]*)` | `([^`|]*)` |" do
    if not (lapack.missing and code:find "linalg%.") then
      local value = assert(load("return " .. code, "=" .. code, "t", env))()
      lu.assertEquals(tostring(value), gives, code)
      count = count + 1
    end
  end
  lu.assertTrue(count >= 15, count)
  lu.assertErrorMsgContains("dtypes differ", function() return x * y end)
  lu.assertErrorMsgContains("0.5 does not fit i32", function() return y + 0.5 end)
end

TestFinding = {}

function TestFinding:test_help_answers()
  lu.assertEquals(help "torch.nn.Linear",
    "torch.nn.Linear: docs/coming-from.md tells what it is called here. Of this word:\n\n" .. help "nn.Linear")
  lu.assertStrContains(help "torch.Tensor.view()", "view: here :reshape")
  lu.assertEquals(help "nn.Linear", help "Linear") -- ours first
  lu.assertEquals(help "torch.nope", "torch.nope: docs/coming-from.md tells what it is called here")
  lu.assertNil(help "nope.sum")
end
