-- The language server (extras/editors/language/) between a host that answers as it should and a client that does not:
-- after any odd messages each request that is well formed is answered once, and nothing raises. Sessions of the real
-- program are in program/test_language_server.sh.
local lu = require "luaunit"
local json = require "deepc.json"

local SCRIPT = "local dc = require 'deepc'\nlocal x = dc.ones 'f32[2]'\nprint(x:sum())\n"

-- A server of its own, whose modules keep nothing of another one, and what it does to its host.
local function new_server()
  for _, name in ipairs { "server", "documents" } do
    package.loaded["deepc.language." .. name] = nil
  end
  local s = { sent = {}, logged = {}, started = {}, clock = 0 }
  local host = { library = "/nowhere", version = "1" }
  function host.send(text)
    s.sent[#s.sent + 1] = text
  end
  function host.start(id, ...)
    for i, kind in ipairs { "string", "string", "string", "table", "number", "number" } do
      assert(type((select(i, ...))) == kind)
    end
    if s.busy then
      return nil, s.why
    end
    s.started[#s.started + 1] = id
    return true
  end
  function host.stop(id)
    for i, other in ipairs(s.started) do
      if id == other then
        table.remove(s.started, i)
      end
    end
  end
  function host.alarm(ms)
    s.alarm = ms and s.clock + math.tointeger(ms)
  end
  function host.now()
    return s.clock
  end
  function host.exit(status)
    s.status = status
  end
  function host.log(text)
    s.logged[#s.logged + 1] = tostring(text)
  end
  s.handlers = require "deepc.language.server"(host)
  return s
end

local found = json.write { complete = true, problems = json.list {}, seen = json.list {} }

-- Time goes on: checks begin, and end with a result.
local function go_on(s, result, why)
  for _ = 1, 4 do
    s.clock = s.clock + 20000
    if s.alarm then
      s.alarm = nil
      s.handlers.wake()
    end
    local list = s.started
    s.started = {}
    for _, id in ipairs(list) do
      s.handlers.finished(id, result == nil and found or result or nil, why)
    end
  end
end

-- The answers of this id, as the text of the JSON: what stands there once.
local function answers(s, id)
  local n, last = 0, nil
  local key = '"id":' .. id .. ","
  for _, text in ipairs(s.sent) do
    if text:find(key, 1, true) and not text:find('"method":', 1, true) then
      n, last = n + 1, text
    end
  end
  return n, last
end

local INIT = '{"jsonrpc":"2.0","id":%s,"method":"initialize","params":{"capabilities":{}}}'

local function open(uri)
  return ('{"jsonrpc":"2.0","method":"textDocument/didOpen","params":{"textDocument":{"uri":"%s","version":1,'
    .. '"text":%s}}}'):format(uri, json.write(SCRIPT))
end

local function hover(id, uri)
  return ('{"jsonrpc":"2.0","id":%s,"method":"textDocument/hover","params":{"textDocument":{"uri":"%s"},'
    .. '"position":{"line":1,"character":7}}}'):format(id, uri)
end

-- The rest of a message.
local function M(rest)
  return '{"jsonrpc":"2.0",' .. rest .. "}"
end

-- What no client should send, each with the code of its answer: 0 for a result, nothing for none.
local odd = {
  { "null", -32600 }, { "5", -32600 }, { '"x"', -32600 }, { "true", -32600 }, { "[]", -32600 }, { "{}", -32600 },
  { "", -32700 }, { "{", -32700 }, { "nothing", -32700 }, { '{"id":1e999}', -32600 }, { "\xff\xfe", -32700 },
  { ("["):rep(5000), -32700 }, { ("["):rep(5000) .. ("]"):rep(5000), -32700 },
  { ('{"a":'):rep(60) .. "1" .. ("}"):rep(60), -32600 },
  { '[{"jsonrpc":"2.0","id":900,"method":"shutdown"},{"jsonrpc":"2.0","method":"exit"}]', -32600 },
  { M '"id":null,"method":"textDocument/hover"', -32600 },
  { M '"id":true,"method":"textDocument/hover"', -32600 },
  { M '"id":{},"method":"textDocument/hover"', -32600 },
  { M '"id":[1],"method":"textDocument/hover"', -32600 },
  { M '"id":900719925474099300,"method":"textDocument/hover"', -32600 },
  { M '"id":901,"method":5', -32600 }, { M '"id":902,"method":null', -32600 },
  { M '"id":903,"method":"textDocument/hover","params":5', -32602 },
  { M '"id":904,"method":"textDocument/hover","params":[]', -32602 },
  { M '"id":905,"method":"textDocument/hover","params":{"textDocument":[null]}', -32602 },
  { M '"id":906,"method":"textDocument/hover","params":{"textDocument":{"uri":{"a":[]}}}', -32602 },
  { M '"id":907,"method":"textDocument/completion","params":{"textDocument":{"uri":5},"position":7}', -32602 },
  { M '"id":908,"method":"textDocument/documentSymbol","params":{"textDocument":{"uri":null}}', -32602 },
  { M '"id":909,"method":"textDocument/documentSymbol","params":{"textDocument":{"uri":["x"]}}', -32602 },
  { M '"id":910,"method":"completionItem/resolve","params":[null,1]', 0 },
  { M '"id":911,"method":"completionItem/resolve","params":{"label":[null,{"a":[null,2]}]}', 0 },
  { M '"id":912,"method":"completionItem/resolve","params":{"label":"x","data":[null,1]}', 0 },
  { M '"id":913,"method":"no/such"', -32601 }, { M '"id":914,"method":"exit"', -32601 },
  { M '"id":915,"method":"textDocument/didOpen","params":{}', -32601 },
  { M '"id":1.5,"method":"no/such"', -32601 }, { M '"id":"","method":"no/such"', -32601 },
  { M '"id":"a\\u0000\\n\\u202e","method":"no/such"', -32601 },
  { M '"id":916,"method":"initialize"', -32600 },
  { M '"id":917,"result":null' }, { M '"id":918,"result":5' },
  { M '"id":919,"error":{}' },
  { M '"method":"no/such"' }, { M '"method":"textDocument/hover"' },
  { M '"method":"shutdown"' }, { M '"method":"initialize","params":5' },
  { M '"method":"$/cancelRequest"' }, { M '"method":"$/cancelRequest","params":{"id":77}' },
  { M '"method":"$/cancelRequest","params":{"id":{}}' },
  { M '"method":"$/cancelRequest","params":{"id":null}' },
  { M '"method":"$/cancelRequest","params":[5]' },
  { M '"method":"textDocument/didOpen"' },
  { M '"method":"textDocument/didOpen","params":{"textDocument":{"uri":5,"text":"x"}}' },
  { M '"method":"textDocument/didOpen","params":{"textDocument":{"uri":"","text":"require \'deepc\'"}}' },
  { M '"method":"textDocument/didOpen","params":{"textDocument":{"uri":"file:///a.lua","text":5}}' },
  { M('"method":"textDocument/didOpen","params":{"textDocument":{"uri":"file:///a.lua","version":[null,1],'
    .. '"text":"require \'deepc\'"}}') },
  { M('"method":"textDocument/didOpen","params":{"textDocument":{"uri":"file:///a.lua","version":{"a":[null,1]},'
    .. '"text":"no"}}') },
  { M('"method":"textDocument/didOpen","params":{"textDocument":{"uri":"file:///%00%ff/","text":'
    .. '"require \'deepc\'\\u0000"}}') },
  { M('"method":"textDocument/didOpen","params":{"textDocument":{"uri":"file:///","version":1.5,"text":'
    .. '"\\u0000\\ud83d\\ude00\\r\\n\\r"}}') },
  { M('"method":"textDocument/didChange","params":{"textDocument":{"uri":"file:///a.lua","version":"x"},'
    .. '"contentChanges":[{"text":"require \'deepc\' x"}]}') },
  { M('"method":"textDocument/didChange","params":{"textDocument":{"uri":"file:///a.lua"},'
    .. '"contentChanges":{"a":1}}') },
  { M('"method":"textDocument/didChange","params":{"textDocument":{"uri":"file:///none"},'
    .. '"contentChanges":[{"text":"x"}]}') },
  { M '"method":"textDocument/didSave","params":{"textDocument":5}' },
  { M '"method":"textDocument/didSave","params":{"textDocument":{"uri":"x"}}' },
  { M '"method":"textDocument/didClose","params":{"textDocument":{"uri":"x"}}' },
  { M '"method":"textDocument/didClose"' },
}

local next_id = 1000

-- Two requests, of which one waits for a check, the other does not.
local function well_formed(s, uri)
  next_id = next_id + 2
  s.handlers.receive(hover(next_id, uri))
  s.handlers.receive(('{"jsonrpc":"2.0","id":"n%d","method":"textDocument/documentSymbol","params":{"textDocument":'
    .. '{"uri":"%s"}}}'):format(next_id + 1, uri))
  return { ("%d"):format(next_id), ('"n%d"'):format(next_id + 1) }
end

local function check_answers(s, ids, about)
  for _, id in ipairs(ids) do
    local n, text = answers(s, id)
    lu.assertEquals(n, 1, about)
    lu.assertStrContains(text, '"result":', false, false, about)
  end
end

TestOdd = {}

function TestOdd:test_each_is_answered_and_what_follows_too()
  for _, one in ipairs(odd) do
    local message, code = one[1], one[2]
    local s = new_server()
    s.handlers.receive(INIT:format "1")
    s.handlers.receive(open "file:///w.lua")
    local waits = well_formed(s, "file:///w.lua")
    local before = #s.sent
    s.handlers.receive(message)
    lu.assertEquals(#s.sent - before, code and 1 or 0, message)
    if code and code ~= 0 then
      lu.assertStrContains(s.sent[#s.sent], '"code":' .. code, false, false, message)
    end
    local id = message:match '^{"jsonrpc":"2.0","id":(%d%d%d),' or message:match '"id":(1%.5),'
    if id and code then
      lu.assertEquals(answers(s, id), 1, message)
    end
    local after = well_formed(s, "file:///w.lua")
    go_on(s)
    check_answers(s, waits, message)
    check_answers(s, after, message)
    lu.assertEquals(answers(s, "900"), 0)
  end
end

function TestOdd:test_before_initialize_and_after_shutdown()
  for _, one in ipairs(odd) do
    local s = new_server()
    s.handlers.receive(one[1])
    s.handlers.receive(INIT:format '"first"')
    lu.assertEquals(answers(s, '"first"'), 1, one[1])
    s.handlers.receive(open "file:///w.lua")
    s.handlers.receive '{"jsonrpc":"2.0","id":2,"method":"shutdown"}'
    lu.assertEquals(answers(s, "2"), 1, one[1])
    s.handlers.receive(one[1])
    s.handlers.receive(hover(3, "file:///w.lua"))
    local n, text = answers(s, "3")
    lu.assertEquals(n, 1, one[1])
    lu.assertStrContains(text, '"code":-32600')
    s.handlers.receive '{"jsonrpc":"2.0","method":"exit"}'
    lu.assertEquals(s.status, 0)
  end
end

-- Those that wait are told when the check fails, whatever it has told, and with any version.
function TestOdd:test_a_check_that_tells_nonsense()
  for _, result in ipairs { "", "{", "5", "null", "[]", "{}", '{"problems":5}',
    '{"problems":[5,null,{}],"complete":true}',
    '{"problems":[{"file":5}],"complete":1}', '{"problems":[],"seen":5}', '{"problems":[],"complete":true,"seen":[5]}',
    '{"problems":[{"file":"w.lua","line":1e300,"message":"\\u0000\\u001b","severity":"?"}]}' } do
    local s = new_server()
    s.handlers.receive(INIT:format "1")
    s.handlers.receive(open "file:///w.lua")
    local waits = well_formed(s, "file:///w.lua")
    go_on(s, result)
    check_answers(s, waits, result)
    check_answers(s, well_formed(s, "file:///w.lua"), result)
  end
  for _, why in ipairs { false, "no memory" } do
    local s = new_server()
    s.busy, s.why = true, why or nil
    s.handlers.receive(INIT:format "1")
    s.handlers.receive(open "file:///w.lua")
    local waits = well_formed(s, "file:///w.lua")
    go_on(s)
    s.busy = false
    go_on(s)
    check_answers(s, waits, tostring(why))
  end
end

function TestOdd:test_ids_that_are_used_twice()
  local s = new_server()
  s.handlers.receive(INIT:format "1")
  s.handlers.receive(open "file:///w.lua")
  s.handlers.receive(hover(7, "file:///w.lua"))
  s.handlers.receive(hover(7, "file:///w.lua"))
  s.handlers.receive(hover('"7"', "file:///w.lua"))
  s.handlers.receive '{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":7}}'
  s.handlers.receive(open "file:///w.lua")
  go_on(s)
  lu.assertEquals(answers(s, "7"), 2)
  lu.assertEquals(answers(s, '"7"'), 1)
end

-- Any of them in any order.
function TestOdd:test_random_sessions()
  local seed = tonumber(os.getenv "DEEPC_TEST_SEED") or os.time()
  print("seed", seed)
  math.randomseed(seed)
  for round = 1, 60 do
    local s, ids = new_server(), {}
    s.handlers.receive(INIT:format "1")
    for _ = 1, 40 do
      local what = math.random(8)
      if what == 1 then
        s.handlers.receive(open(("file:///%s.lua"):format(math.random(2) == 1 and "a" or "w")))
      elseif what == 2 then
        go_on(s, ({ false, "{", found })[math.random(3)] or nil)
      elseif what <= 4 and s.opened then
        table.move(well_formed(s, "file:///w.lua"), 1, 2, #ids + 1, ids)
      else
        s.handlers.receive(odd[math.random(#odd)][1])
      end
      if not s.opened then
        s.opened = true
        s.handlers.receive(open "file:///w.lua")
      end
    end
    go_on(s)
    check_answers(s, ids, ("round %d of seed %d"):format(round, seed))
  end
end

