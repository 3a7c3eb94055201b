-- Links in the texts of the repository: to files, to headings, to pictures (scripts/links.lua). The manual and the
-- examples are installed without the rest, so their links stay among themselves. The menu of the manual has every page.
local lu = require "luaunit"
local links = assert(loadfile "scripts/links.lua")("module")

local function in_manual(path)
  return path:match "^docs/" or path:match "^examples/"
end

local function write(path, text)
  local f = assert(io.open(path, "wb"))
  f:write(text)
  f:close()
end

local function read(path)
  local f = assert(io.open(path, "rb"))
  local text = f:read "a"
  f:close()
  return text
end

TestLinks = {}

function TestLinks:test_texts_of_the_repository()
  local paths = links.find(".", "-name '*.md' -not -path './build*' -not -path './.*'")
  local wrong, count = links.check(".", paths)
  lu.assertEquals(table.concat(wrong, "\n"), "")
  lu.assertTrue(#paths > 150 and count > 300, count)
end

function TestLinks:test_manual_and_examples_are_enough_for_each_other()
  local wrong, count = links.check(".", links.find(".", "-path './docs/*.md' -o -path './examples/*.md'"), in_manual)
  lu.assertEquals(table.concat(wrong, "\n"), "")
  lu.assertTrue(count > 200, count)
end

-- docs/language.md and the indices of the reference and of errors name every page.
function TestLinks:test_every_page_is_in_the_menu()
  local language, count = read "docs/language.md", 0
  for _, path in ipairs(links.find("docs", "-maxdepth 1 -name '*.md'")) do
    if path ~= "language.md" then
      lu.assertTrue(language:find("(" .. path .. ")", 1, true) ~= nil, path)
      count = count + 1
    end
  end
  for _, folder in ipairs { "errors", "reference" } do
    local index = read("docs/" .. folder .. "/README.md")
    for _, path in ipairs(links.find("docs/" .. folder, "-name '*.md'")) do
      if path ~= "README.md" then
        lu.assertTrue(index:find("(" .. path .. ")", 1, true) ~= nil, folder .. "/" .. path)
        count = count + 1
      end
    end
  end
  lu.assertTrue(count > 100, count)
end

TestChecker = {}

function TestChecker:setUp()
  self.folder = os.tmpname()
  os.remove(self.folder)
  assert(os.execute("mkdir -p " .. self.folder .. "/a"))
end

function TestChecker:tearDown()
  os.execute("rm -rf " .. self.folder)
end

function TestChecker:check(files, inside)
  for path, text in pairs(files) do
    write(self.folder .. "/" .. path, text)
  end
  local wrong, count = links.check(self.folder, links.find(self.folder, "-name '*.md' -o -name '*.html'"), inside)
  return table.concat(wrong, "\n"), count
end

function TestChecker:test_what_is_there_is_no_finding()
  local text, count = self:check {
    ["one.md"] = "# One, `two` (3)\n\n## Again\n## Again\n\n[a](a/two.md#here) [b](#one-two-3) [c](#again-1)\n" ..
      "![p](p.svg) <img src=\"p.svg\"> [d](https://example.org/x) [e](a)\n\n[r]: a/two.md\n",
    ["a/two.md"] = "# Here\n\n[up](../one.md), `[no](code)`\n\n    [no](indented)\n\n```\n[no](fenced)\n```\n",
    ["p.svg"] = "",
  }
  lu.assertEquals(text, "")
  lu.assertEquals(count, 8)
end

function TestChecker:test_what_leads_nowhere_is_told()
  local text, count = self:check {
    ["one.md"] = "# One\n\n[a](gone.md) [b](#two)\n[c](a/two.md#gone)\n[d](../out.md) [e](/etc/passwd)\n[f](p.svg)\n",
    ["a/two.md"] = "# Two\n\n[up](../one.md#one)\n",
    ["a/three.md"] = "```\n[no](fenced)\n```\n[r]: gone\n",
  }
  lu.assertEquals(text, table.concat({
    "a/three.md:4: gone: no such file",
    "one.md:3: gone.md: no such file",
    "one.md:3: #two: no such heading",
    "one.md:4: a/two.md#gone: no such heading",
    "one.md:5: ../out.md: leads out of what is installed or shown together",
    "one.md:5: /etc/passwd: begins at the root of the file system",
    "one.md:6: p.svg: no such file",
  }, "\n"))
  lu.assertEquals(count, 8)
end

function TestChecker:test_links_stay_inside()
  local text = self:check({ ["one.md"] = "[a](a/two.md)\n", ["a/two.md"] = "# Two\n" }, function(path)
    return path == "one.md"
  end)
  lu.assertEquals(text, "one.md:1: a/two.md: leads out of what is installed or shown together")
end

function TestChecker:test_html()
  local text, count = self:check {
    ["one.html"] = '<html id="all"><a class="x" href="a/two.html#h&amp;1">a</a>' ..
      '<script>"<a href=\\"no\\">"</script>\n' ..
      '<a href="#all">b</a><a href="#">c</a><a href="#none">d</a> <img alt="x" src="gone.svg?v=1"/>' ..
      '<a href="mailto:x">e</a>',
    ["a/two.html"] = '<p id="h&amp;1"></p><a href="../one.html#top">up</a>',
  }
  lu.assertEquals(text, "one.html:2: #none: no such element\none.html:2: gone.svg?v=1: no such file")
  lu.assertEquals(count, 6)
end
