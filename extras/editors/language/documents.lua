-- Documents of an editor: their texts, checks of them, what these found.
--
-- A change of the text ends the check that runs; the next one begins when nothing has been typed for a moment. At most
-- one runs for a document.

local core = select(2, ...)
local known = require "deepc.language.known"
local results = require "deepc.language.results"
local text = require "deepc.language.text"

local documents = {}

---@class deepc.language.Document
---@field uri string
---@field text string
---@field lines string[]
---@field version integer?
---@field result deepc.language.Result? of the last check that told something of values
---@field running integer? the number of its check
---@field due integer? when the next one begins, ms
---@field waiting table[] requests that are answered after the first check

local open, by_number, number, host, on_checked = {}, {}, 0, nil, nil

-- What the client may set: initializationOptions of `initialize`.
documents.settings = { seconds = 5, memory = 2048, delay = 100, arguments = {} }
documents.root = nil -- a folder

function documents.init(functions, checked)
  host, on_checked = functions, checked
end

-- ---- names ----

---@return string? # the path of a file: URI
function documents.path(uri)
  local path = uri:match "^file://[^/]*(/.*)$"
  return path and (path:gsub("%%(%x%x)", function(digits)
    return string.char(tonumber(digits, 16))
  end))
end

function documents.uri(path)
  return "file://" .. path:gsub("[^%w%-._~/]", function(c)
    return ("%%%02X"):format(c:byte())
  end)
end

-- Where a script runs, and what it is called there: in the folder that is open, as it would be run.
local function place(doc)
  local path, root = documents.path(doc.uri), documents.root
  if not path then
    return root or "/", doc.uri:match "[^/:]+$" or "script"
  elseif root and path:sub(1, #root + 1) == root .. "/" then
    return root, path:sub(#root + 2)
  end
  local folder, name = path:match "^(.*)/([^/]*)$"
  return folder ~= "" and folder or "/", name
end

---The URI of a file that a check of the document names.
function documents.uri_of(doc, name)
  if name == doc.name then
    return doc.uri
  end
  return documents.uri(name:sub(1, 1) == "/" and name or doc.folder .. "/" .. name:gsub("^%./", ""))
end

-- ---- checks ----

-- The next moment at which a check is due.
local function set_alarm()
  local next_due
  for _, doc in pairs(open) do
    if doc.due and (not next_due or doc.due < next_due) then
      next_due = doc.due
    end
  end
  host.alarm(next_due and math.max(0, next_due - host.now()))
end

local function stop(doc)
  if doc.running then
    host.stop(doc.running)
    by_number[doc.running] = nil
    doc.running = nil
  end
end

local function start(doc)
  local settings = documents.settings
  doc.due = nil
  if not known.concerns(doc.text) or doc.text:find "\0" then
    on_checked(doc, nil, nil)
    return
  end
  doc.folder, doc.name = place(doc)
  number = number + 1
  local fine, why = host.start(number, doc.name, doc.folder, doc.text, settings.arguments,
    settings.seconds * 1000 // 1, settings.memory // 1)
  if fine then
    doc.running, by_number[number] = number, doc
  elseif why then
    on_checked(doc, nil, "no process could be made: " .. why)
  else -- all are busy
    doc.due = host.now() + 50
  end
end

---A moment has come.
function documents.wake()
  local now = host.now()
  for _, doc in pairs(open) do
    if doc.due and doc.due <= now then
      start(doc)
    end
  end
  set_alarm()
end

local function read_result(doc, json)
  local found = json and core.json_read("language-server", "result", json)
  if not found then
    return nil
  elseif type(found) ~= "table" or type(found.problems) ~= "table" or type(found.seen or {}) ~= "table" then
    error "no result"
  end
  if found.complete or #found.problems == 0 or #(found.seen or {}) > 0 then
    local old, result = doc.result, results.new(found, doc.text)
    result.lines = doc.lines -- the same table: lines are those of the document
    if not found.complete and old then -- what stands behind the place where it stopped is known from before
      result.older = old.complete and old or old.older or old
    end
    doc.result = result
  end
  return found
end

---A check has ended: with its result as JSON, or why it has none.
function documents.finished(id, json, why)
  local doc = by_number[id]
  by_number[id] = nil
  if not doc then
    return
  end
  doc.running = nil
  local fine, found = pcall(read_result, doc, json)
  if fine then
    on_checked(doc, found, why)
  else
    on_checked(doc, nil, "what it told cannot be read")
  end
end

-- ---- what an editor does ----

function documents.get(uri)
  return open[uri]
end

local function set_text(doc, s, version, delay)
  doc.text, doc.lines, doc.version = s, text.lines(s), version
  stop(doc)
  doc.due = host.now() + delay
  set_alarm()
end

function documents.open(uri, s, version)
  local before = open[uri]
  if before then
    stop(before)
  end
  open[uri] = { uri = uri, waiting = before and before.waiting or {}, published = before and before.published }
  set_text(open[uri], s, version, 0)
end

function documents.change(uri, s, version)
  local doc = open[uri]
  if doc and s ~= doc.text then
    set_text(doc, s, version, documents.settings.delay)
  elseif doc then
    doc.version = version
  end
end

---Saved: what it requires may have changed, too.
function documents.recheck()
  for _, doc in pairs(open) do
    stop(doc)
    doc.due = host.now()
  end
  set_alarm()
end

---@return deepc.language.Document? # the one that was open
function documents.close(uri)
  local doc = open[uri]
  if doc then
    stop(doc)
    open[uri] = nil
    set_alarm()
  end
  return doc
end

return documents
