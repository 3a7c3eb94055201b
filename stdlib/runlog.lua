-- DEEPC_LOG=FILE: how far loops are, and numbers of the script, appended to FILE as lines of JSON (docs/monitoring.md).
--
-- It never ends a script: where the file cannot be written a note says so, once, and nothing more is written. Each line
-- is written whole, by itself, and the file is open only meanwhile: who follows it sees no halves, and one that is
-- renamed or removed begins anew. Of several ranks the first one writes. In a sandbox the file is one like others.

local _, core = ...

local runlog = {}

-- Seconds between two lines of one loop, or with one metric.
runlog.every = 1

local json, failed -- of the first line; why nothing is written any more
local loops, last_loop = 0, -math.huge -- how many have a number; when one wrote a line
local told = {} -- when, by the name of a metric
local late, ending = {}, nil -- values that are not written yet, by name; what the end of the script knows of them

-- Is there a file, and does this rank write it?
function runlog.on()
  return core.run_log() ~= nil and not failed and core.speaks()
end

-- Ctrl-C, or a host that stops its script.
function runlog.is_interrupt(err)
  return type(err) == "table" and err.code == "DC0708"
end

-- As pcall, but interrupts go on.
function runlog.try(f, ...)
  local results = table.pack(pcall(f, ...))
  if not results[1] and runlog.is_interrupt(results[2]) then
    error(results[2], 0)
  end
  return table.unpack(results, 1, results.n)
end
local try = runlog.try

local function append(record)
  record.time = os and os.time and os.time() or nil
  core.append_file("DEEPC_LOG", core.run_log(), -1, json.write(record) .. "\n")
end

local function write(record)
  if failed then
    return
  end
  local ok, err = true, nil
  if not json then
    json = require "deepc.json"
    local name = type(arg) == "table" and type(arg[0]) == "string" and arg[0] or nil
    ok, err = try(append, { run = name or "", device = require "deepc".stats().device })
  end
  if ok then
    ok, err = try(append, record)
  end
  if not ok then
    failed = true
    local text = type(err) == "table" and err.message or tostring(err)
    core.note("DEEPC_LOG: nothing is written any more: " .. text:match "^[^\n]*")
  end
end

-- Values of scripts have texts of their own, which may raise.
local function text_of(v)
  local ok, text = pcall(tostring, v)
  return ok and text or type(v)
end

-- JSON has no infinities and no NaN: texts, as in the logs of train.fit.
local function plain(v)
  if type(v) == "boolean" or type(v) == "number" and v == v and v ~= math.huge and v ~= -math.huge then
    return v
  elseif type(v) == "number" then
    return v ~= v and "nan" or v > 0 and "inf" or "-inf"
  end
  return text_of(v)
end

-- values by name, or nothing where there are none.
local function plain_values(values)
  local out = {}
  for name, v in pairs(values) do
    out[text_of(name)] = plain(v)
  end
  return next(out) ~= nil and out or nil
end

-- Is it time for a line of a loop? `own`: when it wrote its last one, or nil. So short loops, of which many run in a
-- second, do not fill the file.
function runlog.is_due(now, own)
  return now - (own or last_loop) >= runlog.every
end

-- A line of a loop, whose number is `number`, or the next one. Returns it.
function runlog.loop(now, number, record, metrics)
  last_loop = now
  if not number then
    loops = loops + 1
    number = loops
  end
  record.loop, record.metrics = number, plain_values(metrics)
  write(record)
  return number
end

-- The numbers of an epoch: always a line of its own.
function runlog.epoch(row)
  local values = {}
  for name, v in pairs(row) do
    values[name] = name ~= "epoch" and name ~= "step" and v or nil
  end
  write { epoch = row.epoch, step = row.step, metrics = plain_values(values) }
end

-- Is it time for a line with this metric?
function runlog.metric_is_due(name)
  return core.clock() - (told[name] or -math.huge) >= runlog.every
end

-- A number, or that in a tensor of one element; true and false are 1 and 0.
function runlog.number_of(value)
  local v = value
  if core.kind(value) then
    v = value:item()
  end
  return type(v) == "boolean" and (v and 1 or 0) or v
end

function runlog.metric(name, value)
  told[name] = core.clock()
  late[name] = nil
  write { metrics = { [name] = plain(value) } }
end

local function write_late()
  local values, list = {}, late
  late, ending = {}, nil
  for name, value in pairs(list) do
    local ok, v = try(runlog.number_of, value)
    values[name] = ok and v or nil
    if not ok then
      core.note(("DEEPC_LOG: the last value of metric '%s': %s"):format(text_of(name), text_of(v):match "^[^\n]*"))
    end
  end
  if next(values) ~= nil then
    write { metrics = plain_values(values) }
  end
end

-- A value that is not due: written at the end of the script, unless another one follows.
function runlog.later(name, value)
  if not ending then
    require "deepc.ending"
    ending = {}
    core.at_end(ending, write_late)
  end
  late[name] = value
end

return runlog
