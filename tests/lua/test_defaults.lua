-- What is done unless told, beside the defaults of PyTorch (tests/peers/defaults.lua).
local lu = require "luaunit"
local defaults = require "tests.peers.defaults"

TestDefaults = {}

local root = package.path:match "^(.-)/%.%./%?%.lua" .. "/peers"

function TestDefaults:test_every_default_is_that_of_pytorch_or_differs_on_purpose()
  local wrong, count = defaults.compare(defaults.read(root .. "/tables/defaults.txt"))
  lu.assertEquals(table.concat(wrong, "\n"), "")
  lu.assertTrue(count > 390, ("only %d defaults were compared"):format(count))
end

function TestDefaults:test_a_default_that_differs_is_found()
  local rows = { ["torch.nn.LayerNorm"] = { { "eps", 1e-6 }, { "bias", true } },
    ["torch.nn.Softplus"] = { { "beta", 1 } },
    ["torch.nn.Unknown"] = { { "p", 1 } }, ["torch.nn.Dropout"] = { { "q", 0.5 } } }
  local text = table.concat((defaults.compare(rows)), "\n")
  lu.assertStrContains(text, "torch.nn.Dropout q: ")
  lu.assertStrContains(text, "torch.nn.LayerNorm eps: 0x1.0c6f7a0b5ed8dp-20 there; something else is the default here\n"
    .. "torch.nn.Unknown: no case")
end

-- Each difference is a row of a table in docs/coming-from.md.
function TestDefaults:test_differences_are_in_the_docs()
  local f <close> = assert(io.open(root .. "/../../docs/coming-from.md"))
  local text = f:read "a"
  local list = defaults.differences()
  lu.assertTrue(#list > 0)
  for _, d in ipairs(list) do
    local _, count = text:gsub(("\n| [^\n]*`%s`[^\n]* | `%s` | [^\n]*%s"):format((d[1]:gsub("%p", "%%%0")), d[2],
      (d[4]:gsub("%p", "%%%0"))), "")
    lu.assertEquals(count, 1, ("%s %s: %s"):format(d[1], d[2], d[4]))
  end
end
