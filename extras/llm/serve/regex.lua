-- Regular expressions as machines that read bytes: a pattern in UTF-8 becomes a graph of byte ranges (Thompson, 1968),
-- whose sets of places are the states of the machine, made when they are reached.

local _, core = ...

local MOST_NODES = 50000
local MOST_DEPTH = 200
local MOST_STATES = 20000 -- that are kept

-- ---- patterns ----

local Parser = {}
Parser.__index = Parser

function Parser:fail(text)
  core.fail("ARG", self.op, ("pattern %s, character %d: %s"):format(core.shown(self.pattern),
    math.min(self.at, #self.chars + 1), text))
end

function Parser:peek()
  return self.chars[self.at]
end

function Parser:next()
  local c = self.chars[self.at]
  self.at = self.at + 1
  return c
end

function Parser:accept(c)
  if self:peek() == c then
    self.at = self.at + 1
    return true
  end
end

local LAST = 0x10FFFF

-- Ranges that a set does not have.
local function complement(ranges)
  table.sort(ranges, function(a, b) return a[1] < b[1] end)
  local rest, from = {}, 0
  for _, r in ipairs(ranges) do
    if r[1] > from then
      rest[#rest + 1] = { from, r[1] - 1 }
    end
    from = math.max(from, r[2] + 1)
  end
  if from <= LAST then
    rest[#rest + 1] = { from, LAST }
  end
  return rest
end

local CLASSES = {
  d = { { 48, 57 } },
  w = { { 48, 57 }, { 65, 90 }, { 95, 95 }, { 97, 122 } },
  s = { { 9, 13 }, { 32, 32 } },
}
for _, name in ipairs { "d", "w", "s" } do
  CLASSES[name:upper()] = complement { table.unpack(CLASSES[name]) }
end

local CONTROLS = { n = 10, r = 13, t = 9, f = 12, v = 11 }

-- What stands behind a backslash: a list of ranges.
function Parser:escape()
  local c = self:next()
  if not c then
    self:fail "it ends in a backslash"
  elseif CLASSES[c] then
    return CLASSES[c]
  elseif CONTROLS[c] then
    return { { CONTROLS[c], CONTROLS[c] } }
  elseif c == "x" or c == "u" then
    local n = c == "x" and 2 or 4
    local digits = table.concat(self.chars, "", self.at, math.min(self.at + n - 1, #self.chars))
    if not digits:match("^" .. ("%x"):rep(n) .. "$") then
      self:fail(("%d hexadecimal digits are needed behind \\%s"):format(n, c))
    end
    self.at = self.at + n
    return { { tonumber(digits, 16), tonumber(digits, 16) } }
  elseif c:match "^%w$" then
    self.at = self.at - 1
    self:fail(("\\%s is not known"):format(c))
  end
  return { { utf8.codepoint(c), utf8.codepoint(c) } }
end

-- One character of a set, or a class; the code where it is one.
function Parser:member()
  local c = self:next()
  if not c then
    self:fail "a ']' is missing"
  elseif c == "\\" then
    local ranges = self:escape()
    return ranges, #ranges == 1 and ranges[1][1] == ranges[1][2] and ranges[1][1] or nil
  end
  return { { utf8.codepoint(c), utf8.codepoint(c) } }, utf8.codepoint(c)
end

function Parser:set()
  local negated, ranges, first = self:accept "^", {}, true
  while first or self:peek() ~= "]" do
    local members, low = self:member()
    first = false
    if low and self:peek() == "-" and self.chars[self.at + 1] ~= "]" then
      self.at = self.at + 1
      local _, high = self:member()
      if not high or high < low then
        self:fail "a range begins behind its end"
      end
      members = { { low, high } }
    end
    table.move(members, 1, #members, #ranges + 1, ranges)
  end
  self.at = self.at + 1
  return { kind = "set", ranges = negated and complement(ranges) or ranges }
end

-- One thing without what repeats it.
function Parser:atom(depth)
  local c = self:next()
  if c == "(" then
    if self:accept "?" and not self:accept ":" then
      self:fail "of groups with a '?', (?:...) alone is known"
    end
    local inner = self:alternatives(depth + 1)
    if not self:accept ")" then
      self:fail "a ')' is missing"
    end
    return inner
  elseif c == "[" then
    return self:set()
  elseif c == "." then
    return { kind = "set", ranges = complement { { 10, 10 } } }
  elseif c == "\\" then
    return { kind = "set", ranges = self:escape() }
  elseif c == "*" or c == "+" or c == "?" then
    self.at = self.at - 1
    self:fail(("nothing is there for '%s' to repeat"):format(c))
  elseif c == "^" or c == "$" then
    self.at = self.at - 1
    self:fail(("'%s' inside of a pattern; the whole text matches"):format(c))
  end
  local code = utf8.codepoint(c)
  return { kind = "set", ranges = { { code, code } } }
end

-- {m}, {m,} and {m,n} behind the brace.
function Parser:counts()
  local from = self.at
  while self:peek() and self:peek() ~= "}" do
    self.at = self.at + 1
  end
  local text = table.concat(self.chars, "", from, self.at - 1)
  local low, comma, high = text:match "^(%d+)(,?)(%d*)$"
  low, high = tonumber(low), tonumber(high)
  if not self:accept "}" then
    self:fail "a '}' is missing"
  elseif not low or low > MOST_NODES or high and (high < low or high > MOST_NODES) then
    self:fail(("{%s} is no number of times"):format(text))
  end
  return low, comma == "" and low or high
end

function Parser:item(depth)
  local x = self:atom(depth)
  while true do
    local low, high
    if self:accept "*" then
      low = 0
    elseif self:accept "+" then
      low = 1
    elseif self:accept "?" then
      low, high = 0, 1
    elseif self:accept "{" then
      low, high = self:counts()
    else
      return x
    end
    self:accept "?" -- the same texts match
    x = { kind = "times", of = x, low = low, high = high }
  end
end

function Parser:sequence(depth)
  local list = {}
  while self:peek() and self:peek() ~= "|" and self:peek() ~= ")" do
    list[#list + 1] = self:item(depth)
  end
  return { kind = "sequence", list = list }
end

function Parser:alternatives(depth)
  if depth > MOST_DEPTH then
    self:fail(("more than %d groups in each other"):format(MOST_DEPTH))
  end
  local list = { self:sequence(depth) }
  while self:accept "|" do
    list[#list + 1] = self:sequence(depth)
  end
  return #list == 1 and list[1] or { kind = "either", list = list }
end

-- The tree of a pattern: { kind = "set", ranges }, "sequence" and "either" with a list, "times" with of, low and high.
function core.regex_tree(op, pattern)
  if type(pattern) ~= "string" or not utf8.len(pattern) then
    core.fail("ARG", op, "a pattern is a text in UTF-8, not " .. core.describe(pattern))
  end
  local chars = {}
  for _, code in utf8.codes(pattern) do
    chars[#chars + 1] = utf8.char(code)
  end
  local parser = setmetatable({ op = op, pattern = pattern, chars = chars, at = chars[1] == "^" and 2 or 1 }, Parser)
  local backslashes = pattern:match "(\\*)%$$"
  if backslashes and #backslashes % 2 == 0 then
    chars[#chars] = nil
  end
  local tree = parser:alternatives(0)
  if parser:peek() then
    parser:fail "a ')' without its '('"
  end
  return tree
end

-- ---- graphs ----

-- Calls emit with the bounds of each byte, for sequences that are the characters low to high together: { low, high } of
-- the first byte, of the second ...
local function bytes_of(low, high, emit)
  for _, last in ipairs { 0x7F, 0x7FF, 0xD7FF, 0xDFFF, 0xFFFF } do
    if low <= last and last < high then
      bytes_of(low, last, emit)
      bytes_of(last + 1, high, emit)
      return
    end
  end
  if low >= 0xD800 and high <= 0xDFFF then -- halves of characters
    return
  end
  for i = 1, low > 0xFFFF and 3 or low > 0x7FF and 2 or low > 0x7F and 1 or 0 do
    local m = (1 << 6 * i) - 1
    if low & ~m ~= high & ~m then
      if low & m ~= 0 then
        bytes_of(low, low | m, emit)
        bytes_of((low | m) + 1, high, emit)
        return
      elseif high & m ~= m then
        bytes_of(low, (high & ~m) - 1, emit)
        bytes_of(high & ~m, high, emit)
        return
      end
    end
  end
  local a, b, list = utf8.char(low), utf8.char(high), {}
  for i = 1, #a do
    list[i] = { a:byte(i), b:byte(i) }
  end
  emit(list)
end

local Graph = {}
Graph.__index = Graph

-- A node: { low, high, next } reads a byte, { ways = { ... } } goes on in each of them, {} is the end.
function Graph:add(node)
  if #self.nodes >= MOST_NODES then
    core.fail("ARG", self.op, ("the %s is too large: more than %d bytes and branches"):format(self.what, MOST_NODES))
  end
  self.nodes[#self.nodes + 1] = node
  return #self.nodes
end

local makers = {}

-- The node that a tree begins at, where `next` follows.
function Graph:make(tree, next)
  return makers[tree.kind](self, tree, next)
end

function makers.set(g, tree, next)
  local ways = {}
  for _, r in ipairs(tree.ranges) do
    bytes_of(r[1], r[2], function(list)
      local at = next
      for i = #list, 1, -1 do
        at = g:add { list[i][1], list[i][2], at }
      end
      ways[#ways + 1] = at
    end)
  end
  return #ways == 1 and ways[1] or g:add { ways = ways }
end

function makers.sequence(g, tree, next)
  for i = #tree.list, 1, -1 do
    next = g:make(tree.list[i], next)
  end
  return next
end

function makers.either(g, tree, next)
  local ways = {}
  for i, x in ipairs(tree.list) do
    ways[i] = g:make(x, next)
  end
  return g:add { ways = ways }
end

function makers.times(g, tree, next)
  if not tree.high then
    local loop = { ways = {} }
    local at = g:add(loop)
    loop.ways[1], loop.ways[2] = g:make(tree.of, at), next
    next = at
  else
    local last = next
    for _ = tree.low + 1, tree.high do
      next = g:add { ways = { g:make(tree.of, next), last } }
    end
  end
  for _ = 1, tree.low do
    local at = g:make(tree.of, next)
    if at == next then -- nothing, any number of times
      break
    end
    next = at
  end
  return next
end

-- ---- machines ----

local Machine = {}
Machine.__index = Machine

-- The state of all nodes that are reached from some without reading.
function Machine:state(starts)
  local seen, list, open, ended = {}, {}, starts, false
  while #open > 0 do
    local at = table.remove(open)
    if not seen[at] then
      seen[at] = true
      local node = self.nodes[at]
      if node.ways then
        for _, way in ipairs(node.ways) do
          open[#open + 1] = way
        end
      elseif node[1] then
        list[#list + 1] = at
      else
        ended = true
      end
    end
  end
  table.sort(list)
  local key = table.concat(list, ",") .. (ended and "." or "")
  local state = self.states[key]
  if not state then
    if self.count >= MOST_STATES then
      self.states, self.count = {}, 0
    end
    state = { list = list, ended = ended, next = {} }
    self.states[key], self.count = state, self.count + 1
  end
  return state
end

-- The state behind a byte; nil where none may stand there.
function Machine:step(state, byte)
  local next = state.next[byte]
  if next == nil then
    local starts = {}
    for _, at in ipairs(state.list) do
      local node = self.nodes[at]
      if byte >= node[1] and byte <= node[2] then
        starts[#starts + 1] = node[3]
      end
    end
    next = #starts > 0 and self:state(starts) or false
    state.next[byte] = next
  end
  return next or nil
end

-- Whether a text may end here.
function Machine:accepts(state)
  return state.ended
end

-- Whether nothing may follow.
function Machine:is_last(state)
  return state.ended and #state.list == 0
end

-- The machine of a tree, which is of a pattern or of what else.
function core.tree_machine(op, what, tree)
  local graph = setmetatable({ nodes = { {} }, op = op, what = what }, Graph)
  local first = graph:make(tree, 1)
  local machine = setmetatable({ nodes = graph.nodes, states = {}, count = 0 }, Machine)
  machine.start = machine:state { first }
  return machine
end
