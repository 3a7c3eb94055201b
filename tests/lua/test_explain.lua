-- The pages about errors: one for each code, and each of them true. Their examples are run here.
local lu = require "luaunit"
local read = require("tests.lua.check").read
local lapack = require "tests.lua.lapack"

local program = arg[-1]
local folder = "docs/errors/"

-- "DC0301" -> "dims that do not fit", as `deepc explain` lists them.
local function codes()
  local p = assert(io.popen(("'%s' explain"):format(program)))
  local title, order = {}, {}
  for line in p:lines() do
    local code, text = line:match "^(DC%d%d%d%d) +(.*)$"
    if code then
      title[code] = text
      order[#order + 1] = code
    end
  end
  p:close()
  return order, title
end

-- The parts of a page by their headings.
local function parts(page)
  local part, name = {}, nil
  for line in page:gmatch "([^\n]*)\n" do
    local heading = line:match "^## (.*)$"
    if heading then
      name = heading
      part[name] = ""
    elseif name then
      part[name] = part[name] .. line .. "\n"
    end
  end
  return part
end

local function block(text, language)
  return text and text:match("```" .. language .. "\n(.-)```")
end

local function run(code)
  local chunk = assert(load(code, "@example.lua"))
  local print_was = print
  rawset(_G, "print", function(...)
    for _, v in ipairs { ... } do
      tostring(v)
    end
  end)
  local ok, err = pcall(chunk)
  rawset(_G, "print", print_was)
  collectgarbage()
  return ok, err
end

-- What `deepc check` says of it; codes from DC0901 on are found in no other way.
local function check(code)
  local folder_name = os.tmpname()
  os.remove(folder_name)
  assert(os.execute(("mkdir '%s'"):format(folder_name)))
  local f = assert(io.open(folder_name .. "/example.lua", "w"))
  f:write(code)
  f:close()
  local there = program:sub(1, 1) == "/" and "" or io.popen("pwd"):read "l" .. "/"
  local p = assert(io.popen(("cd '%s' && '%s%s' check example.lua"):format(folder_name, there, program)))
  local text = p:read "a"
  p:close()
  os.remove(folder_name .. "/example.lua")
  os.remove(folder_name)
  return text
end

-- Its example needs LAPACK, which is not there.
local function is_left_out(code)
  return code == "DC0703" and lapack.missing ~= nil
end

local function is_lint(code)
  return code:match "^DC09" ~= nil
end

TestPages = {}

function TestPages:test_every_code_has_a_page_and_every_page_a_code()
  local order, title = codes()
  lu.assertTrue(#order > 30)
  for _, code in ipairs(order) do
    lu.assertNotEquals(title[code], "(no page)", code)
    lu.assertStrMatches(read(folder .. code .. ".md"):match "^[^\n]*", "# " .. code .. ": .+")
  end
  local p = assert(io.popen("ls " .. folder))
  for name in p:lines() do
    if name ~= "README.md" then
      lu.assertNotNil(title[name:match "^(DC%d%d%d%d)%.md$"], name)
    end
  end
  p:close()
end

function TestPages:test_the_index_names_them_all()
  local order, title = codes()
  local lines = {}
  for line in read(folder .. "README.md"):gmatch "[^\n]+" do
    local code, file, text = line:match "^| %[(DC%d+)%]%((DC%d+%.md)%) | (.*) |$"
    if code then
      lu.assertEquals(file, code .. ".md")
      lines[#lines + 1] = code
      lu.assertEquals(text, title[code])
    end
  end
  lu.assertEquals(lines, order)
end

function TestPages:test_sections()
  for _, code in ipairs((codes())) do
    local part = parts(read(folder .. code .. ".md"))
    for _, name in ipairs { "What it means", "Example", "Mend" } do
      lu.assertNotNil(part[name], code .. " has no section " .. name)
      lu.assertStrMatches(part[name], "%s*%S.*", nil, nil, code)
    end
    local example = part.Example
    local reason = example:match "\nNot run: ([^\n]+)%.\n"
    if reason then
      lu.assertNil(block(example, "text"), code)
      lu.assertTrue((block(example, "lua") or block(example, "sh")) ~= nil, code)
      lu.assertTrue((block(part.Mend, "lua") or block(part.Mend, "sh")) ~= nil, code)
    else
      lu.assertNotNil(block(example, "lua"), code)
      lu.assertNotNil(block(example, "text"), code)
      lu.assertNotNil(block(part.Mend, "lua"), code)
    end
  end
end

function TestPages:test_examples_fail_as_the_page_says()
  local count = 0
  for _, code in ipairs((codes())) do
    local example = parts(read(folder .. code .. ".md")).Example
    local text = block(example, "text")
    if text and is_lint(code) then
      lu.assertEquals(check(block(example, "lua")), text)
    elseif text and not is_left_out(code) then
      local ok, err = run(block(example, "lua"))
      lu.assertFalse(ok, code)
      local got = tostring(err):gsub("/tmp/lua_%w+", function(path) -- os.tmpname's
        os.remove(path)
        return "/tmp/file"
      end)
      lu.assertEquals(got .. "\n", text)
      lu.assertStrContains(text, code)
      count = count + 1
    end
  end
  lu.assertTrue(count >= 30)
end

function TestPages:test_mends_do_not_fail()
  for _, code in ipairs((codes())) do
    local part = parts(read(folder .. code .. ".md"))
    if is_lint(code) then
      lu.assertEquals(check(block(part.Mend, "lua")), "")
    elseif block(part.Example, "text") and not is_left_out(code) then
      local ok, err = run(block(part.Mend, "lua"))
      lu.assertTrue(ok, code .. ": " .. tostring(err))
    end
  end
end

function TestPages:test_explain_prints_the_page()
  for _, word in ipairs { "DC0301", "dc0301", "0301", "301" } do
    local p = assert(io.popen(("'%s' explain %s"):format(program, word)))
    lu.assertEquals(p:read "a", read(folder .. "DC0301.md"))
    p:close()
  end
end
