-- Wrong programs say what they are expected to say, to the letter, and leave the context usable.
-- scripts/golden writes the expected texts again, for review.
local lu = require "luaunit"
local golden = require "tests.lua.golden"

TestGolden = {}

for _, name in ipairs(golden.names()) do
  TestGolden["test_" .. name] = function()
    lu.skipIf(golden.pending[name], golden.pending[name])
    local text, state = golden.run(name)
    lu.assertEquals(text, golden.expected(name))
    lu.assertEquals(state, "usable")
  end
end

TestAll = {}

-- At least three programs for each class of codes that scripts can reach.
function TestAll:test_every_class()
  local count = {}
  for _, name in ipairs(golden.names()) do
    local class = (golden.expected(name) or ""):match "DC(%d%d)%d%d"
    lu.assertNotNil(class, name)
    count[class] = (count[class] or 0) + 1
  end
  for class = 1, 8 do
    lu.assertTrue((count[("%02d"):format(class)] or 0) >= 3, ("class %02d"):format(class))
  end
end
