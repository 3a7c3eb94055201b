-- Logs of numbers by name: CSV and JSON lines. Each knows how long its file is, so that a run that goes on can cut it.

local _, core = ...
local json = require "deepc.json"

local logs = {}
core.logs = logs

local function number_text(x)
  if math.type(x) == "integer" then
    return ("%d"):format(x)
  end
  return core.number("%.9g", x)
end

-- JSON has no infinities and no NaN: texts, as JavaScript and Python's json read neither otherwise.
local function json_text(x)
  if type(x) == "number" and x == x and x > -math.huge and x < math.huge then
    return number_text(x)
  elseif type(x) == "boolean" then
    return tostring(x)
  end
  return json.text(x ~= x and "nan" or x == math.huge and "inf" or x == -math.huge and "-inf" or x)
end

local function csv(x)
  local text = type(x) == "number" and number_text(x) or tostring(x)
  return text:find '[,"\n\r]' and '"' .. text:gsub('"', '""') .. '"' or text
end

local Log = {}
Log.__index = Log

-- kind is "csv" or "jsonl". `keep` bytes of what is there stay; of a CSV file the names of columns are its first line.
function logs.open(op, kind, path, keep)
  if type(path) ~= "string" then
    core.fail("ARG", op, ("%s is the name of a file, not %s"):format(kind, core.describe(path)))
  end
  local self = setmetatable({ op = op, kind = kind, path = path, size = keep or 0 }, Log)
  core.append_file(op, path, self.size > 0 and core.file_exists(op, path) and self.size or 0, "")
  return self
end

-- names: of the columns, in order. A CSV file has those of its first row.
function Log:write(names, row)
  local parts = {}
  if self.kind == "jsonl" then
    for _, name in ipairs(names) do
      if row[name] ~= nil then
        parts[#parts + 1] = json.text(name) .. ": " .. json_text(row[name])
      end
    end
    self.size = core.append_file(self.op, self.path, self.size, "{" .. table.concat(parts, ", ") .. "}\n")
    return
  end
  local head = ""
  if self.size == 0 then
    local columns = {}
    for i, name in ipairs(names) do
      columns[i] = csv(name)
    end
    head = table.concat(columns, ",") .. "\n"
  end
  for i, name in ipairs(names) do
    parts[i] = row[name] ~= nil and csv(row[name]) or ""
  end
  self.size = core.append_file(self.op, self.path, self.size, head .. table.concat(parts, ",") .. "\n")
end

return logs
