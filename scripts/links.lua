-- Checks links: deepc scripts/links.lua FOLDER. Each link in the .md and .html files below the folder has to lead to a
-- file, and to a heading or an element of that file where it names one. Addresses with a scheme are not opened.
-- Prints what leads nowhere, then how many links there are; exit status 1 if there is something.
--
-- Loaded with the argument "module" it returns its functions and runs nothing (tests/lua/test_links.lua).

local links = {}

local function read(path)
  local f = io.open(path, "rb")
  local text = f and f:read "a" -- nothing for a folder
  if f then
    f:close()
  end
  return text
end

local function exists(path)
  local f = io.open(path, "rb")
  if f then
    f:close()
  end
  return f ~= nil
end

---"docs/errors/../types.md" as "docs/types.md"; what leaves the root begins with "..".
function links.join(folder, target)
  local parts = {}
  for part in (folder .. target):gmatch "[^/]+" do
    if part == ".." and #parts > 0 and parts[#parts] ~= ".." then
      parts[#parts] = nil
    elseif part ~= "." then
      parts[#parts + 1] = part
    end
  end
  return table.concat(parts, "/")
end

-- ---- markdown ----

-- Lines without what is code; a line of a fenced block is empty.
local function prose(text)
  local lines, fence, indented = {}, nil, false
  for line in (text .. "\n"):gmatch "([^\n]*)\n" do
    local mark = line:match "^%s*(```+)" or line:match "^%s*(~~~+)"
    if fence then
      fence = not (mark and #mark >= #fence and mark:sub(1, 1) == fence:sub(1, 1)) and fence or nil
      line = ""
    elseif mark then
      fence, line = mark, ""
    elseif line ~= "" then
      local begins = (lines[#lines] or "") == "" and not line:match "^%s+[-*%d]" -- a list goes on
      indented = line:match "^    " ~= nil and (indented or begins)
      line = indented and "" or line
    end
    lines[#lines + 1] = line
  end
  return lines
end

local function without_code(line)
  return (line:gsub("(`+)(.-)%1", ""))
end

---The anchor that GitHub gives a heading.
function links.anchor(heading)
  local text = heading:gsub("%s+#*%s*$", ""):gsub("!?%[([^%]]*)%]%([^)]*%)", "%1")
  return (text:lower():gsub("[^%w %-_\128-\255]", ""):gsub(" ", "-"))
end

-- Anchors of a page: of its headings, and those that are written as HTML.
local function markdown_anchors(text)
  local found, seen = {}, {}
  for _, line in ipairs(prose(text)) do
    local heading = line:match "^#+%s+(.*)$"
    if heading then
      local anchor = links.anchor(heading)
      local times = seen[anchor] or 0
      seen[anchor] = times + 1
      found[times == 0 and anchor or anchor .. "-" .. times] = true
    end
    for id in without_code(line):gmatch '<[^>]-%f[%w]id="([^"]+)"' do
      found[id] = true
    end
  end
  return found
end

-- What a line of Markdown links to.
local function markdown_targets(line)
  local list = {}
  line = without_code(line)
  for target in line:gmatch "%]%(%s*([^()%s]+)[^()]*%)" do
    list[#list + 1] = target:gsub("^<(.*)>$", "%1")
  end
  for target in line:gmatch '%f[%w]src="([^"]+)"' do
    list[#list + 1] = target
  end
  for target in line:gmatch '%f[%w]href="([^"]+)"' do
    list[#list + 1] = target
  end
  list[#list + 1] = line:match "^%[[^%]]+%]:%s+(%S+)"
  return list
end

-- ---- html ----

local entities = { amp = "&", lt = "<", gt = ">", quot = '"', ["#x27"] = "'", ["#39"] = "'", ["#34"] = '"' }

local function plain(text)
  return (text:gsub("&(#?%w+);", entities))
end

local function html_anchors(text)
  local found = { [""] = true, top = true }
  for id in text:gmatch '%sid="([^"]*)"' do
    found[plain(id)] = true
  end
  for name in text:gmatch '<a name="([^"]*)"' do
    found[plain(name)] = true
  end
  return found
end

local function html_targets(line)
  local list = {}
  for tag in line:gmatch "<%a[^>]*>" do
    for target in tag:gmatch '%s[hs][re][ec]f?="([^"]*)"' do
      list[#list + 1] = plain(target)
    end
  end
  return list
end

-- ---- both ----

local function lines_of(path, text)
  if path:match "%.md$" then
    return prose(text), markdown_targets
  end
  local lines = {}
  for line in (text:gsub("<script.->.-</script>", "") .. "\n"):gmatch "([^\n]*)\n" do
    lines[#lines + 1] = line
  end
  return lines, html_targets
end

local Checker = {}
Checker.__index = Checker

function Checker:anchors(path)
  if not self.known[path] then
    local text = read(self.root .. "/" .. path) or ""
    self.known[path] = path:match "%.md$" and markdown_anchors(text) or html_anchors(text)
  end
  return self.known[path]
end

local function decoded(target)
  return (target:gsub("%%(%x%x)", function(code) return string.char(tonumber(code, 16)) end))
end

-- What is wrong with a link of a page, or nil.
function Checker:wrong(path, target)
  local file, anchor = target:match "^([^#]*)#?(.*)$"
  file, anchor = decoded(file:gsub("%?.*$", "")), decoded(anchor)
  local to = file == "" and path or links.join(path:match "^(.*/)" or "", file)
  if file:sub(1, 1) == "/" then
    return "begins at the root of the file system"
  elseif to:sub(1, 2) == ".." or (self.inside and not self.inside(to)) then
    return "leads out of what is installed or shown together"
  elseif not exists(self.root .. "/" .. to) then
    return "no such file"
  elseif anchor ~= "" and to:match "%.md$" and not self:anchors(to)[anchor] then
    return "no such heading"
  elseif anchor ~= "" and to:match "%.html$" and not self:anchors(to)[anchor] then
    return "no such element"
  end
end

---Checks files; returns a list of what is wrong, "docs/types.md:12: gone.md: no such file", and the number of links.
---@param root string
---@param paths string[] below root
---@param inside? fun(path: string): boolean whether a link may lead there
---@return string[], integer
function links.check(root, paths, inside)
  local self = setmetatable({ root = root, known = {}, inside = inside }, Checker)
  local wrong, count = {}, 0
  for _, path in ipairs(paths) do
    local lines, targets_of = lines_of(path, assert(read(root .. "/" .. path), path))
    for number, line in ipairs(lines) do
      for _, target in ipairs(targets_of(line)) do
        if not target:match "^%a[%w+.-]*:" and not target:match "^//" then
          count = count + 1
          local reason = self:wrong(path, target)
          wrong[#wrong + 1] = reason and ("%s:%d: %s: %s"):format(path, number, target, reason)
        end
      end
    end
  end
  return wrong, count
end

---Files below a folder, sorted: those that `find` names with these arguments.
function links.find(root, arguments)
  local quoted = "'" .. root:gsub("'", "'\\''") .. "'"
  local list = {}
  local pipe = assert(io.popen(("cd %s && find . %s"):format(quoted, arguments)))
  for path in pipe:lines() do
    list[#list + 1] = path:gsub("^%./", "")
  end
  pipe:close()
  table.sort(list)
  return list
end

if ... == "module" then
  return links
end

local root = assert(arg[1], "usage: deepc scripts/links.lua FOLDER")
local wrong, count = links.check(root, links.find(root, "-name '*.md' -o -name '*.html'"))
for _, line in ipairs(wrong) do
  print(line)
end
print(("%d links, %d lead nowhere"):format(count, #wrong))
os.exit(#wrong == 0 and count > 0 and 0 or 1)
