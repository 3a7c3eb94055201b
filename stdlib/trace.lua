-- dc.trace of a path: what runs from when to when, as a file for Perfetto; dc.span: a part of it with a name. dc.trace
-- of a matrix is in arrange.lua. Their annotations are in api/scripts.lua.

local _, core = ...

local trace = {}

local SPANS = 1000000

local Recording = {}
Recording.__index = Recording

function Recording.__tostring(self)
  return self.open and ("trace to %s"):format(self.path) or ("trace in %s"):format(self.path)
end

local function write(self)
  self.open = false
  local path, spans, left_out = core.trace_stop()
  self.path, self.spans, self.left_out = path or self.path, spans, left_out -- nil where nothing is recorded
  if left_out > 0 then
    core.note(("%s has the first %d spans; %d more were left out: dc.trace(path, { spans = n }) keeps more"):format(
      path, spans, left_out))
  end
  return self.path
end

function Recording:stop()
  if getmetatable(self) ~= Recording then
    core.fail("ARG", "stop", "a trace is needed: local t = dc.trace(path); t:stop()")
  end
  if self.open then
    write(self)
  end
  return self.path
end

function Recording:__close()
  if self.open then
    write(self)
  end
end

local function record(path, options)
  if path == "" then
    core.fail("ARG", "trace", "the path is empty", 'dc.trace "run.json"')
  end
  local most = SPANS
  if options ~= nil then
    core.options("trace", options, "spans")
    most = options.spans or most
    if math.type(most) ~= "integer" or most < 1 then
      core.fail("ARG", "trace", ("spans is how many are kept, an integer from 1 on, not %s"):format(core.shown(most)))
    end
  end
  core.trace_start(path, most)
  local recording = setmetatable({ path = path, open = true }, Recording)
  return recording
end

core.record_trace = record

-- ---- spans ----

local Span = {}
Span.__index = Span

local function finish(self)
  if self.begun then
    core.span_end(self.begun, self.name)
    self.begun = false
  end
end

function Span:close()
  if getmetatable(self) ~= Span then
    core.fail("ARG", "close", "a span is needed: local s = dc.span(name); s:close()")
  end
  finish(self)
end

Span.__close = finish

function trace.span(name)
  if type(name) ~= "string" then
    core.fail("ARG", "span", ("a name is needed, not %s"):format(core.shown(name)),
      'local s <close> = dc.span "evaluation"')
  end
  local span = setmetatable({ name = name, begun = core.span_begin() or false }, Span)
  return span
end

return core.entries(trace)
