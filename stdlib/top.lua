-- deepc top FILE: shows what a script appends to FILE, as DEEPC_LOG tells it to (runlog.lua), like tail -f.
--
-- The file is of others: what is no JSON is told as such, and texts of it are escaped where they are shown.

local dc = require "deepc"
local _, core = ...
require "deepc.progress"
local runlog = require "deepc.runlog"
local try, is_interrupt = runlog.try, runlog.is_interrupt

local texts, foreign = core.progress_texts, core.foreign

local top = {}

local CHUNK = 1 << 16
local TAIL = 1 << 20 -- of a long file, where it begins; of a line, how long it may be
local HEAD = 256 -- bytes by which a file is known
local LOOPS, METRICS = 8, 64 -- of more, the last ones, the first ones

-- ---- what is known ----

local function new_run()
  return { loops = {}, names = {}, metrics = {}, bad = 0 }
end

local function number(v)
  return type(v) == "number" and v >= 0 and v < 1e15 and v or nil
end

-- Loops in the order of their numbers. Those that ended before this line are of the past.
local function take_loop(run, r)
  local kept = { number(r.loop) and r }
  for _, loop in ipairs(run.loops) do
    if loop.loop ~= r.loop and not loop.ended then
      kept[#kept + 1] = loop
    end
  end
  table.sort(kept, function(a, b) return a.loop < b.loop end)
  run.loops = kept
  if #kept > LOOPS then
    table.remove(kept, 1)
  end
end

local function take_metrics(run, values)
  for name, v in pairs(values) do
    name = tostring(name)
    local known = run.metrics[name] ~= nil
    if not known and #run.names < METRICS then
      known = true
      run.names[#run.names + 1] = name
      table.sort(run.names)
    end
    run.metrics[name] = known and v or nil
  end
end

-- A line of the file: of a run that begins, of a loop, of an epoch, with metrics.
local function take(run, line)
  local fine, r = try(core.json_read, "top", "line", line)
  if not fine or type(r) ~= "table" then
    run.bad, run.worst = run.bad + 1, line
    return run
  elseif type(r.run) == "string" then
    run = new_run()
    run.name, run.device, run.begun = r.run, r.device, number(r.time)
  end
  if number(r.loop) or number(r.epoch) then
    take_loop(run, r)
    run.epoch, run.step = number(r.epoch) or run.epoch, number(r.step) or run.step
  end
  if type(r.metrics) == "table" then
    take_metrics(run, r.metrics)
  end
  run.time = number(r.time) or run.time
  return run
end

-- ---- the file ----

local function follow(path)
  return { path = path, run = new_run(), at = 0, head = "", rest = "", cut = false }
end

local function take_chunk(file, chunk)
  file.at = file.at + #chunk
  local text, from = file.rest .. chunk, 1
  local stop = text:find("\n", 1, true)
  while stop do
    local line = text:sub(from, stop - 1)
    if not file.cut and line:find "%S" then
      file.run = take(file.run, line)
    end
    file.cut, from = false, stop + 1
    stop = text:find("\n", from, true)
  end
  file.rest = text:sub(from) -- no whole line yet
  if #file.rest > TAIL then
    file.run.bad, file.run.worst = file.run.bad + 1, file.rest:sub(1, 99)
    file.rest, file.cut = "", true
  end
end

-- Another file may stand there by now, or this one been cut: then it is read from its beginning.
local function begin(file, f, size)
  f:seek("set", 0)
  local head = f:read(HEAD) or ""
  if size < file.at or head:sub(1, #file.head) ~= file.head then
    file.run, file.at, file.rest, file.cut = new_run(), 0, "", false
  end
  file.head = head
  if file.at == 0 and size > TAIL then
    file.at, file.cut = size - TAIL, true
  end
  f:seek("set", file.at)
end

-- Reads what is new. True where something was.
local function look(file)
  local f, why = io.open(file.path, "rb")
  local size = f and f:seek "end"
  if not size or size == math.maxinteger then -- a folder says that
    file.why = not f and why or ("%s: no file that can be followed"):format(file.path)
    return false
  end
  local here <close>, before = f, file.at -- luacheck: ignore here
  file.why = nil
  begin(file, f, size)
  for chunk in function() return f:read(CHUNK) end do
    take_chunk(file, chunk)
  end
  return file.at ~= before
end

-- ---- what is shown ----

-- A value out of the file.
local function shown(v)
  return foreign(type(v) == "string" and v or type(v) == "table" and "?" or texts.value(v))
end

local function loop_text(r)
  local done, total = number(r.done) or 0, number(r.total)
  local parts = { type(r.title) == "string" and shown(r.title) or "loop" }
  parts[#parts + 1] = total and ("%.0f/%.0f"):format(done, total) or ("%.0f"):format(done)
  if total and total > 0 then
    parts[#parts + 1] = ("%3.0f%%"):format(done * 100 // total)
  end
  parts[#parts + 1] = texts.time(number(r.seconds) or 0)
  parts[#parts + 1] = r.ended and "ended" or number(r.left) and "left " .. texts.time(r.left) or nil
  if number(r.rate) and r.rate > 0 then
    local size = number(r.size)
    parts[#parts + 1] = texts.rate(r.rate * (size or 1)) .. (size and " items/s" or " it/s")
  end
  return table.concat(parts, "  ")
end

local function head_text(run)
  local parts, now = { "deepc top" }, os.time()
  if run.name then
    parts[2], parts[3] = shown(run.name), run.device and shown(run.device)
  end
  if run.begun and run.time then
    parts[#parts + 1] = "up " .. texts.time(math.max(run.time - run.begun, 0))
  end
  if run.time and now - run.time >= 3 then
    parts[#parts + 1] = ("nothing new for %s"):format(texts.time(now - run.time))
  end
  return table.concat(parts, "  ")
end

-- `form` is that of a metric.
local function lines_of(file, form)
  local run, out = file.run, {}
  out[1] = head_text(run)
  for _, r in ipairs(run.loops) do
    out[#out + 1] = loop_text(r)
  end
  if run.epoch then
    out[#out + 1] = ("epoch %.0f done%s"):format(run.epoch, run.step and (", step %.0f"):format(run.step) or "")
  end
  for _, name in ipairs(run.names) do
    out[#out + 1] = form:format(shown(name), shown(run.metrics[name]))
  end
  if run.bad > 0 then
    out[#out + 1] = ("%d %s no JSON, the last one: %s"):format(run.bad, run.bad == 1 and "line is" or "lines are",
      foreign(run.worst:sub(1, 60)))
  end
  out[#out + 1] = file.why and foreign(file.why) or nil
  return out
end

-- In place of the `before` lines that were drawn last. Returns how many they are now.
local function draw(file, before)
  local columns, rows = core.screen()
  local out = lines_of(file, "%-24s %s")
  local n = math.min(#out, rows - 1)
  local parts = { before > 0 and ("\27[%dA"):format(before) or "" }
  for i = 1, n do
    parts[#parts + 1] = texts.cut(out[i], columns - 1) .. "\27[K\n"
  end
  parts[#parts + 1] = "\27[J"
  return io.stdout:write(table.concat(parts)) and io.stdout:flush() and n
end

-- Until nobody reads it.
local function watch(file, seconds)
  local drawn = core.screen() and 0
  repeat
    local new, written = look(file), true
    if drawn then
      drawn = draw(file, drawn)
      written = drawn
    elseif new then
      written = io.stdout:write(table.concat(lines_of(file, "%s %s"), "  "), "\n") and io.stdout:flush()
    end
    core.sleep(seconds)
  until not written
end

-- ---- the command line ----

function top.top(words)
  if not (io and io.open and io.stdout and os) then
    dc.fail "top: Lua's io and os are needed, which a sandbox does not have"
  end
  local o, paths = dc.options({ rest = "[FILE]",
    about = "Follows what a script appends to FILE, as DEEPC_LOG=FILE deepc train.lua does. Without FILE, the one that"
      .. " DEEPC_LOG names.",
    { "once", false, "one look, as it is now" },
    { "every", 1.0, "seconds from one look to the next", min = 0.1, max = 86400 } }, words)
  local path = paths[1] or core.run_log()
  if #paths > 1 or not path then
    dc.fail "top: one file is needed, which a script writes: DEEPC_LOG=run.log deepc train.lua, then deepc top run.log"
  end
  local file = follow(path)
  if not o.once then
    local fine, err = pcall(watch, file, o.every)
    return not fine and not is_interrupt(err) and error(err, 0) or nil
  end
  look(file)
  if file.why then
    dc.fail("top: " .. file.why)
  end
  print(table.concat(lines_of(file, "%-24s %s"), "\n"))
end

return top
