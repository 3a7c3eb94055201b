-- dc.progress: a loop that shows on stderr how far it is; dc.metric. Their annotations are in api/scripts.lua.
--
-- On a terminal one line is drawn again and again, elsewhere lines follow each other, seldom. Metrics are
-- read from the device when a line is written and at no other time. A line that was begun is ended when
-- the loop is left, by whatever way: the fourth value that `for` receives is closed then. With DEEPC_LOG there
-- are lines in a file besides (runlog.lua).

local _, core = ...
require "deepc.operands"
local runlog = require "deepc.runlog"

local progress = {}

local OP = "progress"

-- Seconds between two lines.
local EVERY = { bar = 0.1, lines = 10 }

local shows = { auto = true, bar = true, lines = true, off = true }

local function fail(hint, text, ...)
  core.fail("ARG", OP, text:format(...), hint)
end

-- ---- texts ----

local function time_text(seconds)
  local s = math.floor(seconds + 0.5)
  if s >= 3600 then
    return ("%d:%02d:%02d"):format(s // 3600, s // 60 % 60, s % 60)
  end
  return ("%d:%02d"):format(s // 60, s % 60)
end

local function rate_text(rate)
  return core.number(rate >= 100 and "%.0f" or rate >= 10 and "%.1f" or "%.2f", rate)
end

local function read_value(name, value)
  if core.kind(value) then
    if #value:reshape(-1) ~= 1 then
      fail(":mean() of many", "metric '%s' is %s, not one number", tostring(name), core.describe(value))
    end
    value = value:item()
  end
  return value
end

local function value_text(value)
  if math.type(value) == "float" then
    return core.number("%.4g", value)
  end
  return tostring(value)
end

-- Names in order, and by name what is there now.
local function read_metrics(metrics)
  if type(metrics) == "function" then
    metrics = metrics()
  end
  local names, values = {}, {}
  for name in pairs(metrics or {}) do
    names[#names + 1] = name
  end
  table.sort(names, function(a, b) return tostring(a) < tostring(b) end)
  for _, name in ipairs(names) do
    values[name] = read_value(name, metrics[name])
  end
  return names, values
end

-- "accuracy 0.91  loss 0.2731", in the order of the names.
local function metrics_text(metrics)
  local names, values = read_metrics(metrics)
  local parts = {}
  for i, name in ipairs(names) do
    parts[i] = ("%s %s"):format(tostring(name), value_text(values[name]))
  end
  return table.concat(parts, "  ")
end

-- The width in columns of UTF-8 text, about: one for each character.
local function width_of(text)
  return utf8.len(text) or #text
end

local function cut(text, width)
  if width_of(text) <= width then
    return text
  end
  local at = utf8.len(text) and utf8.offset(text, width + 1) or width + 1
  return text:sub(1, at - 1)
end

core.progress_texts = { time = time_text, rate = rate_text, value = value_text, cut = cut }

-- ---- one loop ----

local Loop = {}
Loop.__index = Loop

-- Values per second, and the seconds that are left. The first value is left out if there are others: it
-- may have waited for a compilation.
function Loop:speed(now)
  local count, since = self.done, now - self.started
  if count > 1 and self.first and now > self.first then
    count, since = count - 1, now - self.first
  end
  local rate = since > 0 and count / since or 0
  local left = self.total and rate > 0 and (self.total - self.done) / rate or nil
  return rate, left
end

-- What stands before the bar and behind it.
function Loop:texts(now)
  local before, after = { self.title }, {}
  local rate, left = self:speed(now)
  before[#before + 1] = self.total and ("%d/%d"):format(self.done, self.total) or tostring(self.done)
  if self.total and self.total > 0 then
    before[#before + 1] = ("%3d%%"):format(self.done * 100 // self.total)
  end
  after[1] = time_text(now - self.started)
  if left and self.done < self.total then
    after[2] = "left " .. time_text(left)
  end
  if rate > 0 then
    after[#after + 1] = rate_text(rate * (self.size or 1)) .. (self.size and " items/s" or " it/s")
  end
  local metrics = metrics_text(self.metrics)
  after[#after + 1] = metrics ~= "" and metrics or nil
  return table.concat(before, "  "), table.concat(after, "  ")
end

function Loop:line(now, columns)
  local before, after = self:texts(now)
  local room = columns - width_of(before) - width_of(after) - 6
  if self.show == "bar" and self.total and self.total > 0 and room >= 10 then
    room = math.min(room, 40)
    local full = math.min(self.done * room // self.total, room)
    local bar = ("="):rep(full) .. (full < room and ">" or "") .. (" "):rep(room - full - 1)
    before = ("%s  [%s]"):format(before, bar)
  end
  return before .. "  " .. after
end

function Loop:write(text)
  local ok = self.out:write(text)
  if not ok then
    self.show = "off" -- the reader of stderr is gone
  end
end

function Loop:draw(now)
  self.drawn = now
  self.shown = self.done
  if self.show == "lines" then
    self:write(self:line(now, math.huge) .. "\n")
    return
  end
  local columns = core.terminal() or 80
  local text = cut(self:line(now, columns - 1), columns - 1)
  local before = math.min(self.width, columns - 1)
  self.width = width_of(text) -- first: Ctrl-C may end this function after it has written
  self:write("\r" .. text .. (" "):rep(before - self.width))
end

-- A line of DEEPC_LOG. Before the first value, and when an error has left the loop, metrics are not read; what is wrong
-- with them is told where they are shown, and never because there is a log.
function Loop:log(now, ended, broken)
  local rate, left = self:speed(now)
  local ok, _, values = false, nil, nil
  if self.done > 0 and not broken then
    ok, _, values = runlog.try(read_metrics, self.metrics)
  end
  self.logged = now
  self.number = runlog.loop(now, self.number, { title = type(self.title) == "string" and self.title or nil,
    done = self.done, total = self.total, size = self.size, seconds = now - self.started, rate = rate,
    left = not ended and left or nil, ended = ended }, ok and values or {})
end

-- Before the first value and after each. The clock is asked, nothing else happens until it is time for a line.
function Loop:tick()
  self.done = self.done + 1
  if self.show == "off" and not self.logs then
    return
  end
  local now = core.clock()
  if self.done == 1 then
    self.first = now
  end
  if self.show ~= "off" and now - self.drawn >= self.every then
    self:draw(now)
  end
  if self.logs and runlog.is_due(now, self.logged) then
    self:log(now)
  end
end

-- The last line; `broken` where an error left the loop, when nothing more is read.
function Loop:finish(broken)
  if self.over then
    return
  end
  self.over = true
  if self.logged then -- who follows the log knows of it
    self:log(core.clock(), true, broken)
  end
  if self.show ~= "off" and not broken and (self.shown ~= self.done or self.done == 0) then
    self:draw(core.clock())
  end
  if self.show == "bar" and self.width > 0 then
    self:write "\n"
  end
end

-- Begins, as often as a `for` does.
function Loop:begin(total)
  self:finish()
  self.total, self.over, self.done, self.shown, self.first, self.width = total, false, -1, nil, nil, 0
  self.started = core.clock()
  self.drawn = self.started
  self.logs, self.logged, self.number = runlog.on(), nil, nil
end

-- ---- what is looped over ----

local function callable(v)
  local mt = getmetatable(v)
  return type(v) == "function" or type(mt) == "table" and mt.__call ~= nil
end

local function count_to(n)
  return function(_, i)
    i = i + 1
    return i <= n and i or nil
  end, nil, 0
end

-- The values for `for`, how many there are, the rows of each.
local function read_source(source, ...)
  if math.type(source) == "integer" then
    local f, s, c = count_to(source)
    return { f, s, c }, math.max(source, 0)
  elseif callable(source) then
    local mt = getmetatable(source)
    return { source, ... }, type(mt) == "table" and mt.__len and #source or nil, (core.batch_sizes or {})[source]
  elseif type(source) == "table" then
    local f, s, c = ipairs(source)
    return { f, s, c }, #source
  end
  fail("for x, y in dc.progress(train:batches { size = 64 }) do", "an iterator, a list or a number is needed, not %s",
    source == nil and "nil" or "a " .. type(source))
end

local function check_count(key, value)
  if value ~= nil and (math.type(value) ~= "integer" or value < 0) then
    fail(nil, "%s is an integer from 0, not %s", key, core.shown(value))
  end
  return value
end

local function read_options(o)
  core.options(OP, o, "total", "size", "title", "metrics", "every", "show")
  o = o or {}
  check_count("total", o.total)
  check_count("size", o.size)
  local metrics, every = type(o.metrics), o.every
  if o.metrics ~= nil and metrics ~= "table" and metrics ~= "function" then
    fail("local shown = {}; dc.progress(..., { metrics = shown }); shown.loss = loss",
      "metrics are a table, or a function that returns one, not a %s", metrics)
  elseif every ~= nil and (type(every) ~= "number" or every ~= every or every < 0) then
    fail(nil, "every is a number of seconds from 0, not %s", core.shown(every))
  elseif o.show ~= nil and not shows[o.show] then
    fail(nil, 'show is "auto", "bar", "lines" or "off", not %s', core.shown(o.show))
  end
  return o
end

-- How it shows itself: what the call says, else the setting, else what stderr is. Of several ranks the first one does.
local function choose(show)
  show = show or "auto"
  if show == "auto" then
    show = shows[core.setting()] and core.setting() or "auto"
  end
  if core.checking() or not (io and io.stderr) or not core.speaks() then
    return "off"
  elseif show == "auto" then
    return core.terminal() and "bar" or "lines"
  end
  return show
end

-- Closes what the iterator gave to be closed, or the iterator itself.
local function close_source(values, err)
  for _, v in ipairs { values[4] or false, values[1] } do
    local mt = v and getmetatable(v)
    local close = type(mt) == "table" and mt.__close
    if close then
      close(v, err)
    end
  end
end

function progress.progress(source, ...)
  local more = table.pack(...)
  if more.n > 1 and (type(source) == "number" or type(source) == "table" and not getmetatable(source)) then
    core.fail("SURPLUS", OP, ("%d arguments given, at most 2 are taken"):format(more.n + 1))
  end
  local o = read_options(more.n <= 1 and more[1] or nil)
  local values, total, size
  if more.n > 1 then -- the values of an iterator such as pairs(t)
    values, total, size = read_source(source, ...)
  else
    values, total, size = read_source(source)
  end
  local show = choose(o.show)
  local loop = setmetatable({ size = o.size or size, title = o.title, metrics = o.metrics, show = show,
    every = o.every or EVERY[show], out = io and io.stderr, over = true }, Loop)
  loop:begin(o.total or total)

  local f, state, control, begun = values[1], values[2], values[3], false
  local function pass(first, ...)
    loop:tick()
    if first == nil then
      loop:finish()
      return nil
    end
    control = first
    return first, ...
  end
  local closer = setmetatable({}, {
    __close = function(_, err)
      loop:finish(err ~= nil)
      close_source(values, err)
    end,
  })
  return function(...)
    if begun and core.begins(...) then
      local _, again = read_source(source, table.unpack(more, 1, more.n > 1 and more.n or 0))
      control = values[3]
      loop:begin(o.total or again)
    end
    begun = true
    return pass(f(state, control))
  end, nil, nil, closer
end

function progress.metric(name, value)
  if type(name) ~= "string" or name == "" then
    core.fail("ARG", "metric", "the name of a metric is a text, not " .. core.shown(name), 'dc.metric("loss", loss)')
  end
  core.refuse_tracing("metric")
  local is_tensor = core.kind(value)
  if not is_tensor and type(value) ~= "number" then
    core.fail("ARG", "metric", ("metric '%s' is %s, not a number"):format(name, core.shown(value)))
  end
  if is_tensor then
    for _, size in ipairs(value.shape) do
      if size ~= 1 then
        core.fail("ARG", "metric", ("metric '%s' is %s, not one number"):format(name, core.describe(value)),
          ":mean() of many")
      end
    end
  end
  if not runlog.on() then
    return
  elseif runlog.metric_is_due(name) then
    runlog.metric(name, runlog.number_of(value))
  else
    runlog.later(name, value)
  end
end

return core.entries(progress)
