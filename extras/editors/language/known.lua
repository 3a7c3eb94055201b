-- What is known of the library's names: the entries of deepc.help by the class or module that they belong to, and where
-- the annotations have them.

local help = require "deepc.help"

local known = {}

---@class deepc.language.Member
---@field name string
---@field entry deepc.help.Entry
---@field signature string

local members -- by "dc", "nn", "Tensor", "nn.Layer"

local function add(owner, name, entry)
  local list = members[owner] or {}
  members[owner] = list
  local signature, also = help.signature(entry)
  for _, other in ipairs(also) do -- of a method that is a function, too, the form that is asked for
    local is_method = other:find "^[%w_]+:" ~= nil
    if other:find("[.:]" .. name .. "%f[^%w_]") and is_method == (owner == "Tensor") then
      signature = other
    end
  end
  list[#list + 1] = { name = name, entry = entry, signature = signature }
end

local function build()
  members = {}
  for _, e in ipairs(help.entries()) do
    if e.kind == "function" then
      add(e.owner, e.name, e)
      for _, other in ipairs(e.also) do
        add(other.owner, other.name, e)
      end
    elseif e.kind == "class" and e.exported and not e.is_module then
      local owner, name = e.name:match "^([%w_]+)%.([%w_]+)$"
      add(owner or "dc", name or e.name, e)
    end
  end
end

---What belongs to a module ("deepc.nn") or a class ("Tensor", "nn.Linear"), in the order of the annotations.
---@return deepc.language.Member[]
function known.members(owner)
  if not members then
    build()
  end
  return members[owner == "deepc" and "dc" or owner:gsub("^deepc%.", "")] or {}
end

---@return deepc.language.Member?
function known.member(owner, name)
  for _, m in ipairs(known.members(owner)) do
    if m.name == name then
      return m
    end
  end
end

-- Classes that a table or a userdata of this name has the methods of, the most special first.
function known.classes(name)
  local list = { name }
  for _, e in ipairs(help.entries()) do
    if e.kind == "class" and e.name == name and e.parent and e.parent ~= "" then
      list[#list + 1] = e.parent:gsub("^deepc%.", "")
    end
  end
  if name:find "^nn%." or #known.members(name) == 0 then
    list[#list + 1] = "nn.Layer"
  elseif name:find "^optim%." then
    list[#list + 1] = "optim.Optimizer"
  end
  return list
end

-- ---- modules ----

---The module that a variable is: local nn, optim = require "deepc.nn", require "deepc.optim". nil: none.
---@param script string
---@return string?
function known.module_of(script, variable)
  for names, values in script:gmatch "%f[%w_]local%s+([%w_,%s]-)%s*=%s*(require[^\n]*)" do
    local list = {}
    for module in values:gmatch "require%s*%(?%s*[\"']([%w_.]+)[\"']" do
      list[#list + 1] = module
    end
    local i = 0
    for name in names:gmatch "[%a_][%w_]*" do
      i = i + 1
      if name == variable and list[i] and list[i]:find "^deepc%f[.\0]" then
        return list[i]
      end
    end
  end
end

---The text about a module: "deepc.nn".
function known.about(module)
  for _, e in ipairs(help.entries()) do
    if e.is_module and e.module == module then
      return help.text(e)
    end
  end
  return "module " .. module
end

---Does a script use the library? Others are not looked at.
function known.concerns(script)
  return script:find "require%s*%(?%s*[\"']deepc%f[.\"']" ~= nil
end

-- ---- where it stands ----

-- Lines of a file of the folder of annotations.
local function read(path)
  local lines, file = {}, io.open(path)
  for line in file and file:lines() or function() end do
    lines[#lines + 1] = line
  end
  if file then
    file:close()
  end
  return lines
end

---The file and the line of an entry's annotation in that folder, from 1; nil: there is none.
---@param folder string
---@param entry deepc.help.Entry
---@return string?, integer?
function known.place(folder, entry)
  local path = folder .. "/" .. entry.module:gsub("%.", "/") .. ".lua"
  local short = entry.owner and entry.owner:match "[%w_]+$"
  for i, line in ipairs(read(path)) do
    local owner, name = line:match "^function ([%w_.]+)[.:]([%w_]+)%("
    local class = line:match "^%-%-%-@class deepc%.([%w_.]+)"
    if name == entry.name and owner:match "[%w_]+$" == short or entry.kind == "class" and class == entry.name then
      return path, i
    end
  end
end

return known
