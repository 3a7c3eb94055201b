-- Writes what is made of the annotations in stdlib/ and extras/: the pages of docs/reference/; with `library DIR`, DIR for
-- editors. Run by scripts/reference; a test compares (tests/lua/test_reference.lua).
--
-- Loaded with the argument "texts" it returns them, by path, and writes nothing.

local help = require "deepc.help"

local NOTE = "Made by scripts/reference from "

local sources = {
  deepc = "stdlib/api/", ["deepc.nn"] = "stdlib/nn/", ["deepc.models"] = "extras/llm/models/",
  ["deepc.plot"] = "extras/plot/plot.lua", ["deepc.serve"] = "extras/llm/serve.lua",
  ["deepc.signal"] = "extras/signal/signal.lua", ["deepc.stablehlo"] = "extras/stablehlo/stablehlo.lua",
  ["deepc.tokenizers"] = "extras/llm/tokenizers.lua",
  ["deepc.viz"] = "extras/viz/viz.lua",
}

local function source_of(module)
  return sources[module] or ("stdlib/%s.lua"):format(module:match "[%w_]+$")
end

-- ---- pages ----

local function code(text)
  return "`" .. text .. "`"
end

local function plain_type(text)
  return (text:gsub("deepc%.([%w_.]+)", "%1"))
end

local function item(name, type_text, text)
  return ("- %s: %s%s"):format(name, code(plain_type(type_text)), text ~= "" and ", " .. text or "")
end

local function add_list(out, e)
  local list = {}
  for _, p in ipairs(#e.params > 0 and e.params or e.overload or {}) do
    list[#list + 1] = item(code(p.name .. (p.optional and "?" or "")), p.type, p.text)
  end
  for _, p in ipairs(e.fields) do
    list[#list + 1] = p.name ~= "[any]" and item(code("." .. p.name), p.type, p.text) or nil
  end
  for _, r in ipairs(e.returns) do
    list[#list + 1] = item("returns", r.type, r.text)
  end
  if e.kind == "alias" then
    list[1] = item("is", e.type, "")
  end
  if #list > 0 then
    out[#out + 1] = ""
    table.move(list, 1, #list, #out + 1, out)
  end
end

local function add_entry(out, e)
  local signature, also = help.signature(e)
  local names = { code(signature) }
  for i, text in ipairs(also) do
    names[i + 1] = code(text)
  end
  out[#out + 1] = ""
  out[#out + 1] = "### " .. table.concat(names, " ")
  out[#out + 1] = ""
  table.move(e.doc, 1, #e.doc, #out + 1, out)
  add_list(out, e)
end

local function page(module, entries)
  local out = { "# " .. module }
  local section
  for _, e in ipairs(entries) do
    if e.is_module then
      out[#out + 1] = ""
      table.move(e.doc, 1, #e.doc, #out + 1, out)
    else
      if e.section ~= section then
        section = e.section
        out[#out + 1] = ""
        out[#out + 1] = "## " .. section:sub(1, 1):upper() .. section:sub(2)
      end
      add_entry(out, e)
    end
  end
  out[#out + 1] = ""
  out[#out + 1] = ("<!-- %s%s -->"):format(NOTE, source_of(module))
  return table.concat(out, "\n") .. "\n"
end

local function index(modules)
  local out = {
    "# Reference",
    "",
    "Every public name, with its types. `:help NAME` at the prompt and `require \"deepc.help\"(name)` show",
    "the same; editors that know LuaCATS (the Lua language server) read share/deepc/library of an installation.",
    "",
  }
  for _, module in ipairs(modules) do
    out[#out + 1] = ("- [%s](%s.md)"):format(module, module)
  end
  out[#out + 1] = ""
  out[#out + 1] = ("<!-- %sstdlib/ -->"):format(NOTE)
  return table.concat(out, "\n") .. "\n"
end

-- ---- stubs ----

local function read_file(path)
  local f = assert(io.open(path, "rb"))
  local text = f:read "a"
  f:close()
  return text
end

local function add_tags(out, e)
  for _, p in ipairs(e.params) do
    local text = ("---@param %s%s %s %s"):format(p.name, p.optional and "?" or "", p.type, p.text)
    out[#out + 1] = (text:gsub("%s+$", ""))
  end
  for _, r in ipairs(e.returns) do
    out[#out + 1] = "---@return " .. r.type .. (r.text ~= "" and " # " .. r.text or "")
  end
end

local function params_of(e)
  local list = {}
  for i, p in ipairs(e.params) do
    list[i] = p.name
  end
  return table.concat(list, ", ")
end

-- fun(a: A, b?: B): C, of a constructor
local function maker(e, class)
  local list = {}
  for i, p in ipairs(#e.params > 0 and e.params or e.overload or {}) do
    list[i] = ("%s%s: %s"):format(p.name, p.optional and "?" or "", p.type)
  end
  return ("---@overload fun(%s): %s"):format(table.concat(list, ", "), class)
end

local function add_class(out, e)
  local class = e.is_module and e.module or "deepc." .. e.name
  out[#out + 1] = "---@class " .. class .. (e.parent ~= "" and ": " .. e.parent or "")
  for _, p in ipairs(e.fields) do
    out[#out + 1] = ("---@field %s%s %s %s"):format(p.name, p.optional and "?" or "", p.type, p.text):gsub("%s+$", "")
  end
  if e.exported and e.name:match "%u[%w_]*$" then
    out[#out + 1] = maker(e, class)
  elseif e.overload then
    out[#out + 1] = "---@overload fun(...: any): any"
  end
  local name = e.name:match "[%w_]+$"
  out[#out + 1] = e.exported and e.name .. " = {}" or ("local %s = {}"):format(name)
end

local function stub(module, entries)
  local out = { "---@meta " .. module, "", ("-- %s%s."):format(NOTE, source_of(module)) }
  local name = module:match "[%w_]+$"
  for _, e in ipairs(entries) do
    out[#out + 1] = ""
    for _, line in ipairs(e.doc) do
      out[#out + 1] = "---" .. line
    end
    if e.kind == "class" then
      add_class(out, e)
    elseif e.kind == "function" then
      add_tags(out, e)
      local inner = e.owner:match "%.%l[%w_]*$" -- nn.init
      local owner = (e.owner == name or inner) and e.owner or e.owner:match "[%w_]+$"
      out[#out + 1] = ("function %s%s%s(%s) end"):format(owner, e.is_method and ":" or ".", e.name, params_of(e))
    end
  end
  out[#out + 1] = ""
  out[#out + 1] = "return " .. name
  return table.concat(out, "\n") .. "\n"
end

-- The annotations of deepc are stubs already: those of the first source, then of the others what
-- follows their heads.
local function stub_of_C()
  local out = {}
  for i, source in ipairs(help.sources "deepc") do
    local text = read_file(("stdlib/%s.lua"):format(source:gsub("^deepc%.", ""):gsub("%.", "/")))
    out[i] = i == 1 and text or text:sub(text:find("-- ---- ", 1, true), -1)
  end
  return table.concat(out, "\n") .. "\nreturn dc\n"
end

-- ---- all of it ----

local function entries_of(module)
  local list = {}
  for _, e in ipairs(help.entries()) do
    list[#list + 1] = e.module == module and e or nil
  end
  return list
end

local function pages()
  local list = { ["docs/reference/README.md"] = index(help.modules()) }
  for _, module in ipairs(help.modules()) do
    list[("docs/reference/%s.md"):format(module)] = page(module, entries_of(module))
  end
  return list
end

local function stubs(folder)
  local list = { [folder .. "/deepc.lua"] = stub_of_C() }
  for _, module in ipairs(help.modules()) do
    if module ~= "deepc" then
      list[("%s/%s.lua"):format(folder, (module:gsub("%.", "/")))] = stub(module, entries_of(module))
    end
  end
  return list
end

local what, folder = ...
if what == "texts" then
  return pages()
end

for path, text in pairs(what == "library" and stubs(folder) or pages()) do
  local f = assert(io.open(path, "wb"))
  f:write(text)
  f:close()
  print(path)
end
