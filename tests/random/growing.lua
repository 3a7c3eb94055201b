-- Random programs with states whose first axis grows: functions of several of them that add rows at either end, cut
-- windows, put, go through loops and branches, and call after call with arguments of random sizes. The same steps on
-- plain tables say what states and results are; a call that would leave a size out of its range, or a position that is
-- outside, is an error and changes nothing. Numbers are whole and small, so every device has to be exact.
--
--   deepc growing.lua [COUNT [SEED]]       COUNT (40) programs
local dc = require "deepc"

local count, seed = tonumber(arg[1] or 40), tonumber(arg[2] or 1)
local CALLS, STEPS = 6, 5

local function pick(list)
  return list[math.random(#list)]
end

local function chance(percent)
  return math.random(100) <= percent
end

-- ---- rows: a list of lists of numbers, each as long as a row has elements ----

local function map(rows, f)
  local out = {}
  for i, row in ipairs(rows) do
    out[i] = {}
    for k, v in ipairs(row) do
      out[i][k] = f(v)
    end
  end
  return out
end

local function part(rows, first, last)
  return map(table.move(rows, first, last, 1, {}), function(v) return v end)
end

local function join(...)
  local out = {}
  for _, rows in ipairs { ... } do
    table.move(rows, 1, #rows, #out + 1, out)
  end
  return part(out, 1, #out)
end

local function random_rows(n, width)
  local out = {}
  for i = 1, n do
    out[i] = {}
    for k = 1, width do
      out[i][k] = math.random(-3, 3)
    end
  end
  return out
end

local function sums(rows, width)
  local out = {}
  for k = 1, width do
    out[k] = 0
    for _, row in ipairs(rows) do
      out[k] = out[k] + row[k]
    end
  end
  return out
end

local function flat(t, out)
  out = out or {}
  if type(t) == "table" then
    for _, v in ipairs(t) do
      flat(v, out)
    end
  else
    out[#out + 1] = t
  end
  return out
end

-- ---- programs ----

-- { type of the axis, the other dims, width, dtype, least, most, most rows of the argument that goes with it }
local function random_state(i)
  local dims = pick { {}, { 1 }, { 3 }, { 16 }, { 33 }, { 2, 3 }, { 2, 16 }, { 64 } }
  local s = { i = i, least = pick { 0, 0, 1, 2 }, dims = dims }
  s.dtype = pick { "f32", "f32", "i32", "f16", "i8", "f64" }
  s.most = s.least + math.random(1, pick { 3, 10, 30 })
  s.width = 1
  for _, n in ipairs(dims) do
    s.width = s.width * n
  end
  s.tail = #dims > 0 and ", " .. table.concat(dims, ", ") or ""
  s.given = math.random(4)
  s.given_least = pick { 0, 1 }
  return s
end

local function type_of(s, first)
  return ("%s[%s%s]"):format(s.dtype, first, s.tail)
end

local function tensor(s, rows)
  return dc.tensor(flat(rows), ("%s[%d]"):format(s.dtype, #rows * s.width)):reshape(#rows, table.unpack(s.dims))
end

local function state_of(s)
  return dc.state(("%s[%d <= t <= %d%s]"):format(s.dtype, s.least, s.most, s.tail))
end

--[[
What a step does: known(s, lo, hi, c) gives the least and largest size afterwards, or nil where it may not stand here;
traced(cell, e, s, c) in the function; model(rows, e, s, c) on rows. c: a constant of the step; e: the arguments x
(rows), row, p (a position), q (positions of x), f (a flag).
]]
local steps = {
  append = {
    known = function(s, lo, hi) return lo + s.given_least, hi + s.given end,
    traced = function(cell, e) return dc.concat({ cell, e.x }, 1) end,
    model = function(rows, e) return join(rows, e.x) end,
  },
  append_two = {
    known = function(s, lo, hi) return lo + 2 * s.given_least, hi + 2 * s.given end,
    traced = function(cell, e) return dc.concat({ cell, e.x, e.x * -1 }, 1) end,
    model = function(rows, e) return join(rows, e.x, map(e.x, function(v) return -v end)) end,
  },
  prepend = {
    known = function(s, lo, hi) return lo + s.given_least, hi + s.given end,
    traced = function(cell, e) return dc.concat({ e.x, cell }, 1) end,
    model = function(rows, e) return join(e.x, rows) end,
  },
  double = {
    known = function(_, lo, hi) return 2 * lo, 2 * hi end,
    traced = function(cell) return dc.concat({ cell, cell * -1 }, 1) end,
    model = function(rows) return join(rows, map(rows, function(v) return -v end)) end,
  },
  append_own = { -- rows that are read from where others go
    known = function(_, lo, hi) if lo >= 1 then return lo + 1, hi + 1 end end,
    traced = function(cell) return dc.concat({ cell, cell[{ { -1, -1 } }] }, 1) end,
    model = function(rows) return join(rows, part(rows, #rows, #rows)) end,
  },
  last = {
    known = function(_, lo) if lo >= 1 then return 1, 1 end end,
    traced = function(cell) return cell[{ { -1, -1 } }] end,
    model = function(rows) return part(rows, #rows, #rows) end,
  },
  drop = {
    known = function(_, lo, hi) if lo >= 1 and hi >= 2 then return lo - 1, hi - 1 end end,
    traced = function(cell) return cell[{ { 2, -1 } }] end,
    model = function(rows) return part(rows, 2, #rows) end,
  },
  shift = {
    known = function(s, lo, hi)
      if s.given_least == 1 and lo >= 1 and hi >= 2 then return lo, hi + s.given - 1 end
    end,
    traced = function(cell, e) return dc.concat({ cell[{ { 2, -1 } }], e.x }, 1) end,
    model = function(rows, e) return join(part(rows, 2, #rows), e.x) end,
  },
  change = {
    known = function(_, lo, hi) return lo, hi end,
    traced = function(cell) return cell * -1 + 1 end,
    model = function(rows) return map(rows, function(v) return 1 - v end) end,
  },
  flip = {
    known = function(_, lo, hi) return lo, hi end,
    traced = function(cell) return cell:flip(1) end,
    model = function(rows)
      local out = {}
      for i = #rows, 1, -1 do
        out[#out + 1] = rows[i]
      end
      return part(out, 1, #out)
    end,
  },
  put = {
    known = function(_, lo, hi) if hi >= 1 then return lo, hi end end,
    traced = function(cell, e) return cell:put(e.p, e.row) end,
    model = function(rows, e)
      if e.p >= #rows then
        return nil, "outside"
      end
      local out = part(rows, 1, #rows)
      out[e.p + 1] = part({ e.row }, 1, 1)[1]
      return out
    end,
  },
  put_rows = {
    known = function(_, lo, hi) if hi >= 1 then return lo, hi end end,
    traced = function(cell, e) return cell:put(e.q, e.x) end,
    model = function(rows, e)
      local out = part(rows, 1, #rows)
      for i, at in ipairs(e.q) do
        if at >= #rows then
          return nil, "outside"
        end
        out[at + 1] = part(e.x, i, i)[1]
      end
      return out
    end,
  },
  put_first = {
    known = function(_, lo, hi) if lo >= 1 then return lo, hi end end,
    traced = function(cell, e) return cell:put({ 1 }, e.row) end,
    model = function(rows, e)
      local out = part(rows, 1, #rows)
      out[1] = part({ e.row }, 1, 1)[1]
      return out
    end,
  },
  take = {
    known = function(s) return s.given_least, s.given end,
    traced = function(_, e) return e.x + 1 end,
    model = function(_, e) return map(e.x, function(v) return v + 1 end) end,
  },
  fixed = {
    known = function(_, _, _, c) return c, c end,
    traced = function(_, _, s, c) return dc.full(type_of(s, c), 2) end,
    model = function(_, _, s, c) return map(random_rows(c, s.width), function() return 2 end) end,
  },
  loop = {
    known = function(_, lo, hi) return lo, hi end,
    effect = function(cell) dc.fori(3, function(_, a) cell:set(cell + 1) return a end, dc.zeros "f32[]") end,
    model = function(rows) return map(rows, function(v) return v + 3 end) end,
  },
  loop_put = {
    known = function(_, lo, hi) if lo >= 2 then return lo, hi end end,
    effect = function(cell, e)
      dc.fori(2, function(i, a) cell:set(cell:put(i, e.row)) return a end, dc.zeros "f32[]")
    end,
    model = function(rows, e)
      local out = part(rows, 1, #rows)
      out[1], out[2] = part({ e.row }, 1, 1)[1], part({ e.row }, 1, 1)[1]
      return out
    end,
  },
  branch = {
    known = function(_, lo, hi) return lo, hi end,
    effect = function(cell, e)
      dc.cond(e.f, function() cell:set(cell * -1) return dc.zeros "f32[]" end, function() return dc.ones "f32[]" end)
    end,
    model = function(rows, e) return e.f and map(rows, function(v) return -v end) or rows end,
  },
}
local names = {}
for name in pairs(steps) do
  names[#names + 1] = name
end
table.sort(names)

-- A list of { state, name of a step, constant, whether its sum is read behind it, and it before }.
local function random_program(states)
  local program, lo, hi, results = {}, {}, {}, #states
  for i, s in ipairs(states) do
    lo[i], hi[i] = s.least, s.most
  end
  for _ = 1, math.random(STEPS) do
    local i = math.random(#states)
    local s, name = states[i], chance(40) and "append" or pick(names)
    local c = math.random(s.least, s.most)
    local low, high = steps[name].known(s, lo[i], hi[i], c)
    if low ~= nil and low <= s.most and high >= s.least and high <= 150 then
      lo[i], hi[i] = low, high
      local read = results < 8 and chance(30)
      results = results + (read and 1 or 0)
      local keep = results < 8 and chance(15)
      results = results + (keep and 1 or 0)
      program[#program + 1] = { i = i, name = name, c = c, read = read, keep = keep }
    end
  end
  return program
end

local function make_function(states, cells, program)
  local parameters, results, arguments = {}, {}, {}
  for i, s in ipairs(states) do
    table.move({ "x" .. i, "row" .. i, "q" .. i }, 1, 3, 3 * i - 2, arguments)
    local first = ("%d <= n%d <= %d"):format(s.given_least, i, s.given)
    parameters[#parameters + 1] = ("x%d: %s"):format(i, type_of(s, first))
    parameters[#parameters + 1] = ("row%d: %s[%s]"):format(i, s.dtype, table.concat(s.dims, ", "))
    parameters[#parameters + 1] = ("q%d: i32[n%d]"):format(i, i)
  end
  parameters[#parameters + 1] = "p: i32[], f: bool[]"
  table.move({ "p", "f" }, 1, 2, #arguments + 1, arguments)
  for k, step in ipairs(program) do
    if step.keep then
      results[#results + 1] = type_of(states[step.i], "k" .. k)
    end
    if step.read then
      results[#results + 1] = ("%s[%s]"):format(states[step.i].dtype:find "^i" and "i64" or states[step.i].dtype,
        table.concat(states[step.i].dims, ", "))
    end
  end
  for i, s in ipairs(states) do
    results[#results + 1] = type_of(s, "m" .. i)
  end
  local function body(...)
    local given, out = { ... }, {}
    for _, step in ipairs(program) do
      local s, cell, does = states[step.i], cells[step.i], steps[step.name]
      local e = { x = given[3 * step.i - 2], row = given[3 * step.i - 1], q = given[3 * step.i],
        p = given[3 * #states + 1], f = given[3 * #states + 2] }
      if step.keep then
        out[#out + 1] = cell * 1
      end
      if does.effect then
        does.effect(cell, e)
      else
        cell:set(does.traced(cell, e, s, step.c))
      end
      if step.read then
        out[#out + 1] = cell:sum(1)
      end
    end
    for _, cell in ipairs(cells) do
      out[#out + 1] = cell * 1
    end
    return table.unpack(out)
  end
  local signature = ("f(%s) -> %s"):format(table.concat(parameters, ", "), table.concat(results, ", "))
  local words = table.concat(arguments, ", ")
  return dc.fn(signature, load(("local body = ... return function(%s) return body(%s) end"):format(words, words))(body))
end

-- New rows of each state and the results; or nil and what is wrong.
local function run_model(states, rows, program, given)
  local now, out = { table.unpack(rows) }, {}
  local wrong
  for _, step in ipairs(program) do
    local i, s = step.i, states[step.i]
    local e = { x = given[i].x, row = given[i].row, q = given[i].q, p = given.p, f = given.f }
    if step.keep then
      out[#out + 1] = now[i]
    end
    local new, why = steps[step.name].model(now[i], e, s, step.c)
    wrong = wrong or why
    now[i] = new or now[i]
    if step.read then
      out[#out + 1] = sums(now[i], s.width)
    end
  end
  for i, s in ipairs(states) do
    local is_set = false
    for _, step in ipairs(program) do
      is_set = is_set or step.i == i
    end
    if is_set and (#now[i] < s.least or #now[i] > s.most) then
      return nil, "is declared"
    end
    out[#out + 1] = now[i]
  end
  if wrong then
    return nil, wrong
  end
  return now, out
end

-- ---- comparing ----

local compared = 0

local function describe(states, program)
  local out = {}
  for i, s in ipairs(states) do
    local type = type_of(s, s.least .. " <= t <= " .. s.most)
    out[#out + 1] = ("state %d: %s, argument %d to %d"):format(i, type, s.given_least, s.given)
  end
  for _, step in ipairs(program) do
    local more = (step.keep and ", kept" or "") .. (step.read and ", read" or "")
    out[#out + 1] = ("  %d %s %d%s"):format(step.i, step.name, step.c, more)
  end
  return table.concat(out, "\n")
end

local function check_same(what, got, want)
  local a, b = flat(got), flat(want)
  for k = 1, math.max(#a, #b) do
    if a[k] ~= b[k] then
      error(("%s: element %d is %s, not %s"):format(what, k, tostring(a[k]), tostring(b[k])), 0)
    end
    compared = compared + 1
  end
end

local function check_states(when, cells, rows)
  for i, cell in ipairs(cells) do
    if #cell ~= #rows[i] then
      error(("%s: state %d has %d rows, not %d"):format(when, i, #cell, #rows[i]), 0)
    end
    check_same(when .. ": state " .. i, cell:totable(), rows[i])
  end
end

local function random_arguments(states)
  local given, list = { p = math.random(0, 3), f = chance(50) }, {}
  for i, s in ipairs(states) do
    local n, q = math.random(s.given_least, s.given), {}
    local at = { 0, 1, 2, 3, 4, 5 }
    for k = 1, n do
      q[k] = table.remove(at, math.random(chance(80) and math.min(n - k + 1, #at) or #at))
    end
    given[i] = { x = random_rows(n, s.width), row = random_rows(1, s.width)[1], q = q }
    list[#list + 1] = tensor(s, given[i].x)
    list[#list + 1] = dc.tensor(given[i].row, ("%s[%d]"):format(s.dtype, s.width)):reshape(table.unpack(s.dims))
    list[#list + 1] = dc.tensor(q, ("i32[%d]"):format(n))
  end
  list[#list + 1], list[#list + 2] = given.p, given.f
  return given, list
end

local refused, done = 0, 0

local function one_call(states, cells, rows, f, program, number)
  local when = "call " .. number
  local given, list = random_arguments(states)
  local want, out = run_model(states, rows, program, given)
  local held, was = {}, rows
  for i, cell in ipairs(cells) do
    held[i] = #cell > 0 and chance(50) and cell[{ { 1, -1 } }] or cell * 1
  end
  local got = table.pack(pcall(f, table.unpack(list)))
  if want == nil then
    if got[1] or not tostring(got[2]):find(out, 1, true) then
      error(("%s: an error with '%s' is expected, not %s"):format(when, out, tostring(got[2])), 0)
    end
    refused = refused + 1
  else
    if not got[1] then
      error(when .. ": " .. tostring(got[2]), 0)
    end
    done = done + 1
    rows = want
    for k, result in ipairs(out) do
      check_same(when .. ": result " .. k, got[k + 1]:totable(), result)
    end
  end
  check_states(when, cells, rows)
  for i, tensor_held in ipairs(held) do
    check_same(when .. ": what was read before", tensor_held:totable(), was[i])
  end
  return rows
end

local function one_program(number)
  local states, cells, rows, programs, f = {}, {}, {}, {}, {}
  for i = 1, math.random(3) do
    states[i] = random_state(i)
    cells[i] = state_of(states[i])
    rows[i] = map(random_rows(states[i].least, states[i].width), function() return 0 end)
  end
  for k = 1, 2 do
    programs[k] = random_program(states)
  end
  local k = 1
  local ok, err = pcall(function()
    for i = 1, 2 do
      k = i
      f[k] = make_function(states, cells, programs[k])
    end
    for call = 1, CALLS do
      k = math.random(2)
      if chance(25) then
        local i = math.random(#states)
        rows[i] = random_rows(math.random(states[i].least, states[i].most), states[i].width)
        cells[i]:set(tensor(states[i], rows[i]))
      end
      rows = one_call(states, cells, rows, f[k], programs[k], call)
    end
  end)
  if not ok then
    error(("program %d of seed %d: %s\n%s"):format(number, seed, err, describe(states, programs[k])), 0)
  end
end

for i = 1, count do
  math.randomseed(seed * 100000 + i)
  one_program(i)
end
print(("%d programs: %d calls, %d refused, %d elements compared"):format(count, done, refused, compared))
print(("%d passed, 0 failed"):format(compared)) -- a difference has ended the program with an error
