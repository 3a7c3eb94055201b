-- docs/trust.md: each promise names tests, and these exist, the functions in brackets too.
local lu = require "luaunit"

local root = arg[0]:match "^(.*)/tests/[^/]*$" or "."

local function read(path)
  local f = io.open(root .. "/" .. path)
  if not f then return nil end
  local text = f:read "a"
  f:close()
  return text
end

TestTrust = {}

function TestTrust.test_each_promise_has_a_test()
  local rows = 0
  local held = false -- in a table of promises
  for line in assert(read "docs/trust.md"):gmatch "[^\n]*" do
    local promise, tests = line:match "^| (.+) | (.*) |$"
    if not promise then
      held = false
    elseif promise == "promise" then
      held = true
    elseif held and promise ~= "---" and not promise:find "^Not promised" then
      local found = 0
      for path, name in tests:gmatch "([%w_/]+/[%w_/%.]+)%s*%(?([%w_]*)" do
        local full = path:find "^scripts/" and path or "tests/" .. path
        local text = read(full)
        lu.assertNotNil(text, promise .. ": " .. full)
        if name ~= "" and text then lu.assertStrContains(text, name) end
        found = found + 1
      end
      lu.assertTrue(found > 0, promise)
      rows = rows + 1
    end
  end
  lu.assertTrue(rows > 35, rows)
end
