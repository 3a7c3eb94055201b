-- f:report(): what a typed function is, as one table; f:explain(), f:plan() and f:kernels() are read from it.

local _, core = ...

local report = {}

function report.report(f, form)
  if form ~= nil and form ~= "json" then
    core.fail("ARG", "report", ('the form is "json", or none for a table, not %s'):format(core.shown(form)))
  end
  local table = core.function_report(f, "compiled")
  return form and require("deepc.json").write(table, "list") or table
end

-- Kernels of all specialisations, numbered through them.
function report.kernels(f)
  local list = {}
  for number, s in ipairs(core.function_report(f, nil, nil, true).specialisations) do
    for _, kernel in ipairs(s.kernels or {}) do
      kernel.specialisation = number
      list[#list + 1] = kernel
    end
  end
  return list
end

-- ---- texts ----

local Text = {}
Text.__index = Text

function Text:line(format, ...)
  self[#self + 1] = format:format(...)
end

local function new_text()
  return setmetatable({}, Text)
end

local function plural(n, word, ending)
  return ("%d %s%s"):format(n, word, n == 1 and "" or ending or "s")
end

local function behind(where)
  return where and "   " .. where or ""
end

-- ---- memory ----

local function cell_name(p)
  return p.name or (p.role == "parameter" and "a parameter" or "a state")
end

local function put_cells(out, s)
  local in_place = {}
  for _, p in ipairs(s.parameters) do
    if p.set == "in place" then
      in_place[#in_place + 1] = cell_name(p) .. (p.in_part and " (what changes alone)" or "")
    end
  end
  if in_place[1] then
    out:line("     set in place  %s", table.concat(in_place, ", "))
  end
  for _, p in ipairs(s.parameters) do
    if p.set and p.set ~= "in place" then
      out:line("     set by a copy %s: %s", cell_name(p), p.set)
    end
  end
  for _, p in ipairs(s.parameters) do
    if p.laid_out then
      out:line("     laid out      %s as %s, as it is read", cell_name(p), p.laid_out)
    end
  end
end

local function put_memory(out, s)
  out:line("     temporaries   %s%s", core.bytes_text(s.arena),
    s.arena > s.least and (", of which %s are in use at once"):format(core.bytes_text(s.least)) or "")
  put_cells(out, s)
end

local function put_derived(out, s)
  local n = #s.derived
  if n == 0 then
    return
  end
  out:line("     derived       %s, %s, kept from call to call; computed in %s when what they are made of has changed",
    plural(n, "value"), core.bytes_text(s.derived_bytes), plural(s.prologue_launches, "launch", "es"))
  for i, x in ipairs(s.derived) do
    out:line("       %d. %s %s%s", i, x.op, x.type, behind(x.where))
  end
end

-- ---- what was decided ----

local function put_exchanges(out, s)
  local all = 0
  for _, x in ipairs(s.exchanges) do
    out:line("     exchanged     %s %s over %s, %s%s%s%s", x.op, x.type, table.concat(x.over, "+"),
      core.bytes_text(x.bytes), x.times > 1 and (" %d times"):format(x.times) or "",
      x.written and "" or ", not written", behind(x.where))
    all = all + x.bytes * x.times
  end
  if s.exchanges[1] then
    out:line("     given         %s to other ranks in a call", core.bytes_text(all))
  end
end

-- "stored  exp f32[64, 10] for 2 kernels: 5.0 KiB moved, not 10240 operations more", or without a choice
-- "stored  matmul f32[64, 10]: operand of a contraction".
local function reason(c)
  if not c.times then
    return c.why
  end
  local operations, moved = core.number("%.0f", c.operations), core.bytes_text(c.bytes)
  if c.stored then
    return ("%s moved, not %s operations more"):format(moved, operations)
  end
  return ("%s operations more, not %s moved%s"):format(operations, moved, c.why and "; " .. c.why or "")
end

local function put_choices(out, s)
  for _, c in ipairs(s.choices) do
    out:line("     %-13s %s %s%s: %s%s", c.stored and "stored" or "recomputed", c.op, c.type,
      c.times and (" for %d %s"):format(c.times, c.times_of) or "", reason(c), behind(c.where))
  end
end

local function put_loops(out, s)
  for _, l in ipairs(s.loops) do
    local count = l.iterations and (l.may_end and "at most " or "") .. plural(l.iterations, "iteration")
    local kept = l.kept > 0
      and (", of a gradient: reads %s that the forward pass keeps"):format(core.bytes_text(l.kept))
    out:line("     loop          %s%s%s", count or "as many iterations as it takes", kept or "", behind(l.where))
  end
end

local function put_kernels(out, s, first)
  for i, k in ipairs(s.kernels) do
    local once = k.launches == 0 and k.prologue > 0
    out:line("     %3d  %-20s %3d %s  %s MFLOP  %s MB %s%s%s", first + i - 1, k.name,
      once and k.prologue or k.launches, once and "at times" or "per call", core.number("%9.3g", k.flops / 1e6),
      core.number("%9.3g", k.bytes / 1e6), k.lines ~= "" and " " .. k.lines or "",
      k.gain and ("  schedule: tuned, %s times as fast as the rules'"):format(core.number("%.2f", k.gain)) or "",
      k.idle and ("  %s for more threads"):format(plural(k.idle, "work item")) or "")
  end
end

-- ---- the order of commands ----

local function binds(writes, reads)
  return table.concat(writes, ", ") .. (#reads > 0 and " <- " or "") .. table.concat(reads, ", ")
end

local counted = { launch = true, host = true, loop = true }

local function put_command(out, c, prefix)
  local lines = #c.lines > 0 and "   " .. table.concat(c.lines, " ") or ""
  out:line("%s%-20s %8s  %s%s", prefix, c.label or "", counted[c.kind] and ("%d"):format(c.grid) or "",
    c.joined and "" or binds(c.writes, c.reads), lines)
  for _, part in ipairs(c.joined or {}) do
    out:line("   +  %-20s %8s  %s", part.name, "", binds(part.writes, part.reads))
  end
end

-- A bundle has one number, its launches stand below each other. Two blanks for each loop or branch around a command.
local function put_commands(out, s)
  local number, inside, around = 0, 0, {} -- launches to come of a bundle; where loops and branches end
  for i, c in ipairs(s.commands) do
    local before = s.commands[i - 1]
    if s.commands[1].prologue and (i == 1 or before.prologue and not c.prologue) then
      out:line(i == 1 and "      when what it reads has changed:" or "      at each call:")
    end
    while around[1] and around[#around] < i do
      table.remove(around)
    end
    if c.kind == "bundle" then
      inside, number = c.body, number + 1
    else
      local follows = inside > 0 and before.kind ~= "bundle"
      number = inside > 0 and number or number + 1
      put_command(out, c, (follows and "   +  " or ("%4d  "):format(number)) .. ("  "):rep(#around))
      inside = math.max(0, inside - 1)
      if c.kind == "loop" or c.kind == "branch" then
        around[#around + 1] = i + c.body + c.otherwise
      end
    end
  end
end

-- ---- pages ----

local function explain(out, s, first)
  if s.several_devices then
    out:line("     computes on   %s", s.device)
  end
  if s.interpreted then
    out:line("     run by the reference interpreter%s",
      s.without_compiler and "" or ", since a compiler failed (see the notes)")
  else
    out:line("     per call      %d launches of %d kernels, %d copies", s.launches, #s.kernels, s.copies)
    put_memory(out, s)
    put_exchanges(out, s)
    put_derived(out, s)
    put_choices(out, s)
  end
  put_loops(out, s)
  if s.captured[1] then
    out:line("     captured      %s", table.concat(s.captured, ", "))
  end
  if s.watched ~= "" then
    out:line("     watched       %s", s.watched)
  end
  put_kernels(out, s, first)
end

local function plan(out, s)
  put_commands(out, s)
  put_memory(out, s)
end

-- A text with a part for each specialisation; names of layers, cells and files in it may have any characters.
local function page(f, part)
  local r, out, first = core.function_report(f), new_text(), 1
  local n = #r.specialisations
  out:line("%s", r.heading)
  out:line("  %s, at most %d%s", plural(n, "specialisation"), r.limit,
    n == 0 and "; one is made at the first call" or "")
  for i, s in ipairs(r.specialisations) do
    out:line("\n  %d. %s   %s%s", i, s.sizes, plural(s.calls, "call"),
      s.made_for and "   made for " .. s.made_for or "")
    if s.refused then
      out:line("     refused       %s", s.refused)
    elseif s.kernels then
      part(out, s, first)
      first = first + #s.kernels
    end
  end
  return core.foreign(table.concat(out, "\n"), true)
end

function report.explain(f)
  return page(f, explain)
end

function report.plan(f)
  return page(f, plan)
end

return report
