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

-- "What bounds what" has each resource of each place once.
function TestTrust.test_bounds_are_complete()
  local seen = {}
  local row = "\n| (%w+) | ([%w, ]+) | ([^|]+) | ([^|\n]+) |%f[\n]"
  for resource, of, bound, tests in read("docs/trust.md"):gmatch(row) do
    if resource ~= "resource" then
      lu.assertTrue(#bound > 0)
      for place in of:gmatch "%w+" do
        local key = resource .. " of " .. place
        lu.assertNil(seen[key], key)
        seen[key] = true
      end
      for path, name in tests:gmatch "([%w_/]+/[%w_/%.]+)%s*%(?([%w_]*)" do
        local text = read("tests/" .. path)
        lu.assertNotNil(text, path)
        if name ~= "" and text then lu.assertStrContains(text, name) end
      end
    end
  end
  for resource in ("time memory files descriptors threads processes sockets stack"):gmatch "%w+" do
    for place in ("scripts readers compilers kernels LAPACK servers"):gmatch "%w+" do
      local key = resource .. " of " .. place
      lu.assertTrue(seen[key], key)
    end
  end
end
