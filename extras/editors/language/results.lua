-- What a check found, and what is known of the values of its script: types by line and name (vm/program/check_types.h).

local text = require "deepc.language.text"

local results = {}

---@class deepc.language.Result
---@field lines string[] of the script that was checked
---@field complete boolean did the script come to its end?
---@field older deepc.language.Result? of a script that did not, what an earlier check knew
local Result = {}
Result.__index = Result

-- Of a list of { line, name, ... } those of each name by line.
local function by_name(list, see)
  local names = {}
  for _, row in ipairs(list) do
    local lines = names[row[2]] or {}
    names[row[2]] = lines
    local at = lines[row[1]] or { [0] = {}, [1] = {} }
    lines[row[1]] = at
    see(at, row)
  end
  return names
end

---found: the result as the process wrote it, script: its text
---@return deepc.language.Result
function results.new(found, script)
  local self = setmetatable({
    problems = found.problems, complete = found.complete, values = found.values or {},
    script = script, lines = text.lines(script), functions = text.functions(script),
  }, Result)
  self.seen = by_name(found.seen or {}, function(at, row)
    table.insert(at[row[3]], row[4])
  end)
  self.made = by_name(found.made or {}, function(at, row)
    table.insert(at[1], row[3])
  end)
  return self
end

-- The line of the checked script that this one of the document is; nil: it has changed since. And one near it.
function Result:line_of(lines, line)
  if self.lines == lines then
    return line, line
  end
  local old, same = #self.lines, 0
  while same < old and same < #lines and self.lines[same + 1] == lines[same + 1] do
    same = same + 1
  end
  if line <= same then
    return line, line
  end
  local behind = 0
  while behind < old - same and behind < #lines - same and self.lines[old - behind] == lines[#lines - behind] do
    behind = behind + 1
  end
  if line > #lines - behind then
    return line + old - #lines, line + old - #lines
  end
  return nil, math.max(1, math.min(line, old - behind))
end

-- The functions around a line, the innermost first, and the script as a whole.
local function scopes(self, line)
  local found = {}
  for _, f in ipairs(self.functions) do
    if f[1] <= line and line <= f[2] then
      table.insert(found, 1, f)
    end
  end
  found[#found + 1] = { 1, math.huge }
  return found
end

-- The last line of the statement that begins on this one, as far as brackets and lines that go on tell.
local function end_of_statement(lines, line)
  local depth = 0
  for at = line, #lines do
    local code = lines[at]:gsub("%b\"\"", ""):gsub("%b''", ""):gsub("%-%-.*", "")
    local _, opened = code:gsub("[%(%[{]", "")
    local _, closed = code:gsub("[%)%]}]", "")
    depth = depth + opened - closed
    local next_line = lines[at + 1]
    local goes_on = next_line and next_line:find "^%s*[:.+*/%-]" and not next_line:find "^%s*%-%-"
    if depth <= 0 and not goes_on then
      return at
    end
  end
  return #lines
end

-- In a scope: what stood nearest before the line, else what came next.
local function nearest(at, scope, line)
  local before, after
  for l in pairs(at) do
    if l >= scope[1] and l <= scope[2] then
      if l <= line and (not before or l > before) then
        before = l
      elseif l > line and (not after or l < after) then
        after = l
      end
    end
  end
  if before then
    local there = at[before]
    return #there[1] > 0 and there[1] or there[0]
  elseif after then
    local there = at[after]
    return #there[0] > 0 and there[0] or there[1]
  end
end

-- What a name was set to on a line: as it was seen when the line was left, else by the first line behind the statement.
local function set_on(self, at, line)
  if at[line] and #at[line][1] > 0 then
    return at[line][1]
  end
  local stop, first = end_of_statement(self.lines, line), nil
  local scope = scopes(self, line)[1]
  for l, there in pairs(at) do
    if l > stop and l <= scope[2] and #there[0] > 0 and (not first or l < first) then
      first = l
    end
  end
  return first and at[first][0]
end

-- A name may stand on a line several times.
local function each_once(self, ids)
  local list, seen = {}, {}
  for _, id in ipairs(ids) do
    if not seen[id] then
      seen[id], list[#list + 1] = true, self.values[id]
    end
  end
  return list
end

---The values of a name on a line of the checked script: what it was set to there, or what it was when it was read.
---@return table[]
function Result:lookup(name, line, set)
  local at = self.seen[name]
  local there = at and at[line]
  local ids
  if at and set then
    ids = set_on(self, at, line)
  elseif there then
    ids = #there[0] > 0 and there[0] or there[1]
  elseif at then
    for _, scope in ipairs(scopes(self, line)) do
      ids = ids or nearest(at, scope, line)
    end
  end
  return each_once(self, ids or {})
end

---What operations of this name on the line gave.
---@return table[]
function Result:results_of(op, line)
  local at = self.made[op]
  return each_once(self, at and at[line] and at[line][1] or {})
end

return results
