-- The Language Server Protocol 3.17: messages in, answers and diagnostics out. language_server.c reads and writes
-- them, and runs checks.
--
-- A host's functions: send(text), start(id, file, folder, text, arguments, ms), stop(id), alarm(ms), now(),
-- exit(status), log(text); library: the folder of annotations, version.

local core = select(2, ...)
local complete = require "deepc.language.complete"
local documents = require "deepc.language.documents"
local hover = require "deepc.language.hover"
local help = require "deepc.help"
local json = require "deepc.json"
local text = require "deepc.language.text"

local PARSE, INVALID, UNKNOWN, PARAMS, INTERNAL = -32700, -32600, -32601, -32602, -32603
local NOT_INITIALIZED, CANCELLED = -32002, -32800
local LARGE = 1 << 20 -- bytes of a message after which memory is tidied up

local host
local client = { utf16 = true, related = false }
local state = "new" -- "ready", "shut down"

-- ---- messages ----

local function send(message)
  message.jsonrpc = "2.0"
  host.send(json.write(message))
end

local function answer(id, result)
  send { id = id, result = result == nil and json.null or result }
end

local function refuse(id, code, message)
  send { id = id == nil and json.null or id, error = { code = code, message = message } }
end

local function notify(method, params)
  send { method = method, params = params }
end

-- Raised by handlers for what a client gave.
local function fail(message)
  error { code = PARAMS, message = message }
end

-- ---- places ----

local function character(line, at)
  return text.character(line, at, client.utf16)
end

local function range(lines, line, from, to)
  local s = lines[line] or ""
  return {
    start = { line = line - 1, character = character(s, from) },
    ["end"] = { line = line - 1, character = character(s, to) },
  }
end

-- A line without its blanks.
local function whole_line(lines, line)
  line = math.max(1, math.min(line, #lines))
  local from, to = lines[line]:match "^%s*()", lines[line]:match "^.*%S()" or 1
  return range(lines, line, math.min(from, to), to)
end

-- The document of a request, the line and the byte.
local function place(params)
  local at = params.position
  local doc = type(params.textDocument) == "table" and documents.get(params.textDocument.uri)
  if not doc then
    fail "textDocument is none that is open"
  elseif type(at) ~= "table" or math.type(at.line) ~= "integer" or math.type(at.character) ~= "integer" or at.line < 0
    or at.character < 0 then
    fail "position is no line and character"
  end
  local line = at.line + 1
  return doc, line, text.byte(doc.lines[line] or "", at.character, client.utf16)
end

-- ---- diagnostics ----

local severities = { error = 1, warning = 2, note = 3 }

local function place_of(doc, p)
  if p.file ~= doc.name or not p.line then
    return whole_line(doc.lines, 1)
  elseif p.column and p.line <= #doc.lines then
    return range(doc.lines, p.line, p.column, p.end_column)
  end
  return whole_line(doc.lines, p.line)
end

-- Lines that operands come from: as places where the client shows them, else in the text.
local function related(doc, p, lines)
  local list = json.list {}
  for _, r in ipairs(p.related or {}) do
    if r.file and client.related then
      local zero = { line = r.line - 1, character = 0 }
      local at = r.file == doc.name and whole_line(doc.lines, r.line) or { start = zero, ["end"] = zero }
      list[#list + 1] = { message = r.message, location = { uri = documents.uri_of(doc, r.file), range = at } }
    else
      lines[#lines + 1] = "  " .. r.message
    end
  end
  return #list > 0 and list or nil
end

local function diagnostic(doc, p)
  local elsewhere = p.file ~= doc.name and p.file .. (p.line and ":" .. p.line or "") .. ": " or ""
  local lines = { elsewhere .. p.message }
  local d = { range = place_of(doc, p), severity = severities[p.severity], source = "deepc", code = p.code }
  d.relatedInformation = related(doc, p, lines)
  if p.layer then
    lines[#lines + 1] = "  in " .. p.layer
  end
  if p.hint then
    lines[#lines + 1] = "  hint: " .. p.hint
  end
  d.message = table.concat(lines, "\n")
  return d
end

local function publish(doc, list)
  notify("textDocument/publishDiagnostics", { uri = doc.uri, version = doc.version, diagnostics = json.list(list) })
end

local answer_waiting

local function diagnostics(doc, problems)
  local list = {}
  for i, p in ipairs(problems) do
    list[i] = diagnostic(doc, p)
  end
  return list
end

-- found: nil where the script was not checked, or its check told nothing (why). Whatever it is, requests that wait for
-- it are answered.
local function checked(doc, found, why)
  local fine, list = pcall(diagnostics, doc, found and found.problems or {})
  if not fine then
    list, why = {}, "what it told cannot be read"
  end
  if why then
    list[1] = {
      range = whole_line(doc.lines, 1), severity = 2, source = "deepc",
      message = "deepc could not check this script: " .. why,
    }
  end
  if #list > 0 or found or doc.published then
    publish(doc, list)
    doc.published = true
  end
  doc.checked = true
  answer_waiting(doc)
end

-- ---- requests ----

local requests = {}

local capabilities = {
  textDocumentSync = { openClose = true, change = 1, save = true },
  hoverProvider = true,
  completionProvider = { triggerCharacters = { ".", ":" }, resolveProvider = true },
  signatureHelpProvider = { triggerCharacters = { "(", "," } },
  definitionProvider = true,
  documentSymbolProvider = true,
}

local function read_settings(options)
  local settings = documents.settings
  if type(options) ~= "table" then
    return
  end
  for name, bounds in pairs { seconds = { 0.1, 600 }, memory = { 100, 1 << 20 }, delay = { 0, 10000 } } do
    local value = options[name]
    if type(value) == "number" and value >= bounds[1] and value <= bounds[2] then
      settings[name] = name == "delay" and math.floor(value) or value
    elseif value ~= nil then
      host.log(("initializationOptions: %s is a number from %s to %s"):format(name, bounds[1], bounds[2]))
    end
  end
  if type(options.arguments) == "table" then
    settings.arguments = {}
    for i, a in ipairs(options.arguments) do
      settings.arguments[i] = tostring(a)
    end
  end
end

local function get(t, ...)
  for _, key in ipairs { ... } do
    t = type(t) == "table" and t[key] or nil
  end
  return t
end

function requests.initialize(params)
  local folder = get(params, "workspaceFolders", 1, "uri") or get(params, "rootUri")
  documents.root = type(folder) == "string" and documents.path(folder) or nil
  documents.root = documents.root and documents.root:gsub("(.)/+$", "%1")
  for _, encoding in ipairs(get(params, "capabilities", "general", "positionEncodings") or {}) do
    client.utf16 = client.utf16 and encoding ~= "utf-8"
  end
  client.related = get(params, "capabilities", "textDocument", "publishDiagnostics", "relatedInformation") == true
  read_settings(get(params, "initializationOptions"))
  capabilities.positionEncoding = client.utf16 and "utf-16" or "utf-8"
  state = "ready"
  return { capabilities = capabilities, serverInfo = { name = "deepc", version = host.version } }
end

function requests.shutdown()
  state = "shut down"
end

requests["textDocument/hover"] = function(params)
  local doc, line, at = place(params)
  local value, name = hover.text(doc, line, at)
  return value and {
    contents = { kind = "markdown", value = value }, range = range(doc.lines, line, name.from, name.to + 1),
  }
end

requests["textDocument/completion"] = function(params)
  local doc, line, at = place(params)
  local items, from = complete.items(doc, line, at)
  for _, item in ipairs(from and items or {}) do
    item.textEdit = { range = range(doc.lines, line, from, at), newText = item.label }
  end
  return json.list(items)
end

requests["completionItem/resolve"] = function(params)
  return complete.resolve(params)
end

requests["textDocument/signatureHelp"] = function(params)
  local doc, line, at = place(params)
  local member, argument = hover.call(doc, line, at)
  if not member then
    return nil
  end
  local parameters = json.list {}
  for word in (member.signature:match "%((.*)%)$" or ""):gmatch "[^,%s]+" do
    parameters[#parameters + 1] = { label = word }
  end
  return {
    signatures = { {
      label = member.signature, parameters = parameters,
      documentation = { kind = "markdown", value = "```text\n" .. help.text(member.entry) .. "\n```" },
    } },
    activeSignature = 0, activeParameter = argument,
  }
end

requests["textDocument/definition"] = function(params)
  local doc, line, at = place(params)
  local path, l = hover.place(doc, line, at, host.library)
  if path then
    local start = { line = l - 1, character = 0 }
    return { uri = documents.uri(path), range = { start = start, ["end"] = start } }
  end
end

-- Functions and typed functions, classes of layers.
requests["textDocument/documentSymbol"] = function(params)
  local doc = type(params.textDocument) == "table" and documents.get(params.textDocument.uri)
    or fail "textDocument is none that is open"
  local list = json.list {}
  for line, s in ipairs(doc.lines) do
    local name = s:match "^%s*local%s+function%s+([%w_]+)" or s:match "^%s*function%s+([%w_.:]+)"
    local typed = s:match "^%s*local%s+([%w_]+)%s*=%s*[%w_]+%.fn%f[%W]"
    local class = s:match "^%s*local%s+([%w_]+)%s*=%s*[%w_]+%.class%f[%W]"
    if name or typed or class then
      local r = whole_line(doc.lines, line)
      list[#list + 1] = { name = name or typed or class, kind = class and 5 or 12, range = r, selectionRange = r }
    end
  end
  return list
end

-- ---- notifications ----

local notifications = {}

function notifications.exit()
  host.exit(state == "shut down" and 0 or 1)
end

local function document_of(params)
  local d = params.textDocument
  if type(d) ~= "table" or type(d.uri) ~= "string" then
    fail "textDocument has no uri"
  elseif d.version ~= nil and math.type(d.version) ~= "integer" then
    fail "version is no integer"
  end
  return d
end

notifications["textDocument/didOpen"] = function(params)
  local d = document_of(params)
  if type(d.text) ~= "string" then
    fail "textDocument has no text"
  end
  documents.open(d.uri, d.text, d.version)
end

notifications["textDocument/didChange"] = function(params)
  local d, changes = document_of(params), params.contentChanges
  local last = type(changes) == "table" and changes[#changes]
  if type(last) ~= "table" or type(last.text) ~= "string" or last.range then
    fail "contentChanges are no whole text"
  end
  documents.change(d.uri, last.text, d.version)
end

notifications["textDocument/didSave"] = function(params)
  document_of(params)
  documents.recheck()
end

-- Requests that wait for the first check, by number.
local waiting = {}

local function cancel(request, message)
  if not request.cancelled then
    waiting[request.id], request.cancelled = nil, true
    refuse(request.id, CANCELLED, message)
  end
end

notifications["textDocument/didClose"] = function(params)
  local doc = documents.close(document_of(params).uri)
  if doc then
    for _, request in ipairs(doc.waiting) do
      cancel(request, "the document was closed")
    end
    publish(doc, {})
  end
end

notifications["$/cancelRequest"] = function(params)
  local request = waiting[params.id]
  if request then
    cancel(request, "cancelled")
  end
end

-- ---- the way of a message ----

local ask_values = { ["textDocument/hover"] = true, ["textDocument/completion"] = true }

local function reply(request)
  answer(request.id, requests[request.method](request.params))
end

-- Answers it once: the last thing that can fail is to write the result.
local function run(request)
  local fine, result = pcall(reply, request)
  if fine then
    return
  elseif type(result) == "table" and result.code == PARAMS then
    refuse(request.id, PARAMS, result.message)
  else
    host.log(request.method .. ": " .. tostring(result))
    refuse(request.id, INTERNAL, tostring(result))
  end
end

function answer_waiting(doc)
  local list = doc.waiting
  doc.waiting = {}
  for _, request in ipairs(list) do
    if not request.cancelled then
      waiting[request.id] = nil
      run(request)
    end
  end
end

-- What asks for values before the first check has ended waits for it.
local function ask(request)
  local uri = get(request.params, "textDocument", "uri")
  local doc = ask_values[request.method] and uri and documents.get(uri)
  if doc and not doc.checked and (doc.running or doc.due) then
    table.insert(doc.waiting, request)
    waiting[request.id] = request
  else
    run(request)
  end
end

local function receive_request(m)
  if state == "new" and m.method ~= "initialize" then
    refuse(m.id, NOT_INITIALIZED, "initialize comes first")
  elseif state == "shut down" or m.method == "initialize" and state ~= "new" then
    refuse(m.id, INVALID, m.method .. " cannot come now")
  elseif not requests[m.method] then
    refuse(m.id, UNKNOWN, ("no method '%s'"):format(m.method))
  elseif m.params ~= nil and type(m.params) ~= "table" then
    refuse(m.id, PARAMS, "params are no object")
  else
    ask { id = m.id, method = m.method, params = m.params or {} }
  end
end

local function receive_notification(m)
  local handle = notifications[m.method]
  if not handle or state ~= "ready" and m.method ~= "exit" then
    return
  end
  local fine, err = pcall(handle, type(m.params) == "table" and m.params or {})
  if not fine then
    host.log(("%s: %s"):format(m.method, type(err) == "table" and err.message or tostring(err)))
  end
end

-- One that comes back as it is: doubles have no more whole numbers.
local function is_id(id)
  return type(id) == "string" or type(id) == "number" and math.abs(id) <= 1 << 53
end

-- A value that is null is as good as none, but for an id.
local function without_nulls(t)
  for key, v in pairs(t) do
    if v == json.null then
      t[key] = nil
    elseif type(v) == "table" then
      without_nulls(v)
    end
  end
  return t
end

local handlers = {}

function handlers.receive(s)
  local fine, m = pcall(core.json_read, "language-server", "a message", s, json.null)
  if not fine then
    refuse(nil, PARSE, m.message and tostring(m.message):match "^[^\n]*" or "no JSON")
  elseif type(m) ~= "table" or type(m.method) ~= "string" then
    if type(m) ~= "table" or m.result == nil and m.error == nil then -- answers are to nothing that was asked
      refuse(type(m) == "table" and is_id(m.id) and m.id or nil, INVALID, "no request")
    end
  elseif m.id == nil then
    receive_notification(without_nulls(m))
  elseif not is_id(m.id) then
    refuse(nil, INVALID, "id is no string and no number that an answer can have")
  else
    receive_request(without_nulls(m))
  end
  if #s > LARGE then
    collectgarbage()
  end
end

-- What was no message.
function handlers.refuse(why)
  refuse(nil, PARSE, "left out: " .. why)
end

handlers.finished, handlers.wake = documents.finished, documents.wake

return function(functions)
  host = functions
  documents.init(functions, checked)
  return handlers
end
