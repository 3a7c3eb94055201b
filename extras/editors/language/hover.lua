-- What is told of the name at a place, of the call around it, and where it is defined.

local help = require "deepc.help"
local known = require "deepc.language.known"
local text = require "deepc.language.text"

local hover = {}

-- Values that a check saw under a name: on this line, or near it; and whether it was the check before, since the last
-- one did not come so far.
local function values_of(doc, name, line, set)
  local result = doc.result
  if not result then
    return {}
  end
  local at, near = result:line_of(doc.lines, line)
  local found, older = result:lookup(name, at or near, set and at ~= nil), false
  if #found == 0 and result.older then
    at, near = result.older:line_of(doc.lines, line)
    found, older = result.older:lookup(name, at or near, set and at ~= nil), true
  end
  return found, older
end

---What a chain of names is: "deepc.nn" of a module, the value that was seen, nil.
---@return string? module
---@return table? value
function hover.owner(doc, chain, line)
  local value = values_of(doc, chain, line, false)[1]
  if value and value.kind == "module" then
    return value.text
  elseif value then
    return nil, value
  elseif not chain:find(".", 1, true) then
    return known.module_of(doc.text, chain)
  end
  local module, rest = chain:match "^([%w_]+)%.([%w_.]+)$" -- nn.init
  module = module and hover.owner(doc, module, line)
  return module and #known.members(module .. "." .. rest) > 0 and module .. "." .. rest or nil
end

---Members that the value before the sign has, lists of the most special ones first.
---@return deepc.language.Member[][]
function hover.members(doc, chain, sign, line)
  local module, value = nil, nil
  if chain then
    module, value = hover.owner(doc, chain, line)
  end
  local lists = {}
  if module then
    lists[1] = known.members(module)
  elseif value and value.kind == "tensor" then
    lists = { value.text:find " a " and known.members "Cell" or {}, known.members "Tensor" }
  elseif value and value.kind == "typed function" then
    lists[1] = known.members "Function"
  elseif value and value.class then
    for i, class in ipairs(known.classes(value.class)) do
      lists[i] = known.members(class)
    end
  elseif not value and sign == ":" then
    lists[1] = known.members "Tensor"
  end
  return lists, value
end

local function find_member(doc, name, line)
  if not name.sign then
    return nil
  end
  for _, list in ipairs((hover.members(doc, name.chain, name.sign, line))) do
    for _, m in ipairs(list) do
      if m.name == name.word then
        return m
      end
    end
  end
end

-- ---- texts ----

local function code(s)
  return "```lua\n" .. s .. "\n```"
end

local function plain(s)
  return "```text\n" .. s .. "\n```"
end

local function show_fields(value)
  local lines = {}
  for i, field in ipairs(value.fields or {}) do
    if i > 20 then
      lines[i] = "  ..."
      break
    elseif field[2] ~= "function" and not field[1]:find "^_" then
      lines[#lines + 1] = ("  .%s  %s"):format(field[1], field[2])
    end
  end
  return table.concat(lines, "\n")
end

local function show_value(name, value)
  if value.kind == "typed function" then
    local list = value.specialisations
    return code(value.text) .. (list and "\n\nspecialisations: " .. table.concat(list, "; ") or "")
  elseif value.kind == "table" then
    local fields = value.class and "" or show_fields(value)
    return plain(name .. ": " .. value.text .. (fields ~= "" and "\n" .. fields or ""))
  end
  return code(name .. ": " .. value.text)
end

-- Types of several specialisations, or of several rounds: each once.
local function show_values(name, values)
  local parts, types = {}, {}
  for _, v in ipairs(values) do
    if v.kind == "tensor" or v.kind == "plain" then
      types[#types + 1] = v.text
    elseif v.kind == "module" then
      parts[#parts + 1] = plain(known.about(v.text))
    else
      parts[#parts + 1] = show_value(name, v)
    end
  end
  if #types > 0 then
    table.insert(parts, 1, code(name .. ": " .. table.concat(types, "\n" .. (" "):rep(#name) .. "| ")))
  end
  return parts
end

---The text about the name at a byte of a line, in Markdown, and the name; nil: nothing is known.
---@return string?, deepc.language.Name?
function hover.text(doc, line, at)
  local s = doc.lines[line]
  local name = s and text.name_at(s, at)
  if not name then
    return nil
  end
  local parts = {}
  local of_module = name.sign == "." and name.chain and hover.owner(doc, name.chain, line)
  if not of_module and name.sign ~= ":" and not (name.sign == "." and not name.chain) then
    local values, older = values_of(doc, name.full, line, text.is_set(s, name))
    parts = show_values(name.full, values)
    parts[#parts + 1] = #parts > 0 and older and "*before the mistake; the check does not come so far now*" or nil
  end
  if #parts == 0 and not name.sign then
    local module = known.module_of(doc.text, name.word)
    parts[1] = module and plain(known.about(module))
  end
  local checked = doc.result and doc.result:line_of(doc.lines, line)
  if checked and name.sign then
    local given = show_values(name.word, doc.result:results_of(name.word, checked))
    table.move(given, 1, #given, #parts + 1, parts)
  end
  local member = find_member(doc, name, line)
  if member then
    parts[#parts + 1] = plain(help.text(member.entry))
  end
  if #parts > 0 then
    return table.concat(parts, "\n\n"), name
  end
end

---Where the library's annotations have the name: a file and a line from 1.
---@return string?, integer?
function hover.place(doc, line, at, folder)
  local s = doc.lines[line]
  local name = s and text.name_at(s, at)
  local member = name and find_member(doc, name, line)
  if member and folder then
    local path, l = known.place(folder, member.entry)
    return path, l
  end
end

-- ---- calls ----

-- The byte of the bracket that is open before `at`, and how many commas stand behind it.
local function open_call(s, at)
  local depth, commas = 0, 0
  for i = at - 1, 1, -1 do
    local c = s:sub(i, i)
    if c:find "[%)%]}]" then
      depth = depth + 1
    elseif c:find "[%(%[{]" then
      if depth == 0 then
        return c == "(" and i or nil, commas
      end
      depth = depth - 1
    elseif c == "," and depth == 0 then
      commas = commas + 1
    end
  end
end

---The member of the library that is called around the byte, and which argument stands there, from 0.
---@return deepc.language.Member?, integer?
function hover.call(doc, line, at)
  local s = doc.lines[line]
  local bracket, commas = nil, nil
  if s then
    bracket, commas = open_call(s, at)
  end
  local name = bracket and text.name_at(s, bracket)
  local member = name and find_member(doc, name, line)
  if member then
    return member, commas
  end
end

return hover
