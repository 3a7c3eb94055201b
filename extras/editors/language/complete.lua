-- What may be written at a place: names of modules behind require, members behind a dot or a colon.

local help = require "deepc.help"
local hover = require "deepc.language.hover"
local text = require "deepc.language.text"

local complete = {}

local KINDS = { method = 2, ["function"] = 3, field = 5, class = 7, module = 9, property = 10 }

local function kind_of(member, sign)
  if member.entry.kind == "class" then
    return KINDS.class
  end
  return sign == ":" and KINDS.method or KINDS["function"]
end

-- Behind a colon stand methods: of a class those that are written with one.
local function fits(member, sign)
  local method = member.signature:find "^[%w_]+:" ~= nil
  return method == (sign == ":")
end

local function add_members(items, seen, list, sign)
  for _, m in ipairs(list) do
    if not seen[m.name] and m.name:find "^[%a_][%w_]*$" and fits(m, sign) then
      seen[m.name] = true
      items[#items + 1] = {
        label = m.name, kind = kind_of(m, sign), detail = m.signature,
        data = { m.entry.module, m.entry.owner or "", m.entry.name },
      }
    end
  end
end

-- Fields of a value that the check has seen.
local function add_fields(items, seen, value, sign)
  for _, field in ipairs(value and value.fields or {}) do
    local callable = field[2] == "function"
    if not seen[field[1]] and not field[1]:find "^_" and (sign == "." or callable) then
      seen[field[1]] = true
      items[#items + 1] = {
        label = field[1], kind = callable and KINDS.method or KINDS.field, detail = field[2],
      }
    end
  end
end

local function tensor_fields(items, value, sign)
  if value and value.kind == "tensor" and sign == "." then
    items[#items + 1] = { label = "shape", kind = KINDS.property, detail = "integer[]" }
    items[#items + 1] = { label = "dtype", kind = KINDS.property, detail = value.text:match "^%w+" }
  end
end

local function modules(begin)
  local items = {}
  for _, name in ipairs(help.modules()) do
    if name:sub(1, #begin) == begin then
      items[#items + 1] = { label = name, kind = KINDS.module }
    end
  end
  return items
end

---Items of the protocol for what stands before byte `at` of a line; and the byte from which they stand for it, where
---that is no begin of a word.
---@return table[], integer?
function complete.items(doc, line, at)
  local before = (doc.lines[line] or ""):sub(math.max(1, at - text.NEAR), at - 1)
  local begin = before:match "require%s*%(?%s*[\"']([%w_.]*)$"
  if begin then
    return modules(begin), at - #begin
  end
  local chain, sign = before:match "([%a_][%w_.]*)%s*([.:])[%w_]*$"
  sign = sign or before:match "[%)%]}\"']%s*([.:])[%w_]*$" or before:match "^%s*([.:])[%w_]*$"
  local items, seen = {}, {}
  if not sign or before:find "%.%.[%w_]*$" then
    return items
  end
  local lists, value = hover.members(doc, chain, sign, line)
  tensor_fields(items, value, sign)
  for _, list in ipairs(lists) do
    add_members(items, seen, list, sign)
  end
  add_fields(items, seen, value, sign)
  return items
end

---The item with its text.
function complete.resolve(item)
  local at = item.data
  if type(at) == "table" then
    for _, e in ipairs(help.entries()) do
      if e.module == at[1] and (e.owner or "") == at[2] and e.name == at[3] then
        item.documentation = { kind = "markdown", value = "```text\n" .. help.text(e) .. "\n```" }
        break
      end
    end
  end
  return item
end

return complete
