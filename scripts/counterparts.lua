-- The tables of docs/coming-from.md, which stand between two comments there, from the rows of scripts/names/.
--
--   deepc scripts/counterparts.lua          writes the page again
--   deepc scripts/counterparts.lua list     names of PyTorch and JAX, one a line, for scripts/counterparts.py
--
-- Loaded with the argument "text" it returns the text that the page should have
-- (tests/lua/test_reference_counterparts.lua).

package.path = "./?.lua;" .. package.path
local counterparts = require "scripts.names"
local help = require "deepc.help"
local links = assert(loadfile "scripts/links.lua")("module")

local PAGE = "docs/coming-from.md"
local BEGIN, END = "<!-- tables: made by scripts/counterparts -->\n", "<!-- end of the tables -->\n"

-- Where a name stands in the reference: "reference/deepc.md#xsumaxes-dcsumx-axes".
local function places()
  local found = {}
  for _, e in ipairs(help.entries()) do
    if not e.is_module then
      local signature, also = help.signature(e)
      local heading = "`" .. table.concat({ signature, table.unpack(also) }, "` `") .. "`"
      local name = signature:match "^[^(]+"
      found[name] = found[name] or ("reference/%s.md#%s"):format(e.module, links.anchor(heading))
    end
  end
  return found
end

local function shown(name)
  return "`" .. name:gsub("^torch%.nn%.functional%.", "F."):gsub("^torch%.distributed%.", "dist.") .. "`"
end

local function cell(list)
  local out, any = {}, false
  for i, name in ipairs(list) do
    any = any or name ~= "-"
    out[i] = name == "-" and "-" or shown(name)
  end
  return any and table.concat(out, ", ") or ""
end

-- Only names of which there is one; where lists are pairs, a gap is shown as -.
local function table_row(row, place)
  local own = {}
  for i, name in ipairs(row.names) do
    own[i] = ("[`%s`](%s)"):format(name, assert(place[name], name))
  end
  return ("| %s | %s | %s | %s | %s |"):format(table.concat(own, ", "), cell(row.PyTorch), cell(row.JAX),
    cell(row.Torch7), row.note or "")
end

local function tables()
  local out, section, place = {}, nil, places()
  for _, row in ipairs(counterparts.rows()) do
    if row.section ~= section then
      section = row.section
      local head = { "", "### " .. section, "", "| deepc | PyTorch | JAX | Torch7 | |", "| --- | --- | --- | --- | --- |" }
      table.move(head, 1, #head, #out + 1, out)
    end
    out[#out + 1] = table_row(row, place)
  end
  return table.concat(out, "\n") .. "\n\n"
end

local function text_of(page)
  local first, last = page:find(BEGIN, 1, true), page:find(END, 1, true)
  assert(first and last, PAGE .. " has no place for the tables")
  return page:sub(1, first + #BEGIN - 1) .. tables() .. page:sub(last)
end

local function read_page()
  local f = assert(io.open(PAGE, "rb"))
  local text = f:read "a"
  f:close()
  return text
end

local what = ...
if what == "text" then
  return text_of(read_page())
elseif what == "list" then
  for _, row in ipairs(counterparts.rows()) do
    for _, system in ipairs { "PyTorch", "JAX" } do
      for _, name in ipairs(row[system]) do
        if name ~= "-" then
          print(counterparts.full(name))
        end
      end
    end
  end
else
  local text = text_of(read_page())
  local f = assert(io.open(PAGE, "wb"))
  f:write(text)
  f:close()
  print(PAGE)
end
