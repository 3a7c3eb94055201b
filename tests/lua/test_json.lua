-- JSON that is written (stdlib/json.lua): for programs and pages, and as Python writes it.
local lu = require "luaunit"
local json = require "deepc.json"

TestJson = {}

function TestJson:test_for_pages()
  lu.assertEquals(json.write { b = { 1, 2.5, 0 / 0, -math.huge }, a = 3.0, [2] = true, c = json.null },
    '{"2":true,"a":3,"b":[1,2.5,null,null],"c":null}')
  lu.assertEquals(json.write "</script>&\xff\127\n\0\"\\é", [["\u003c/script>\u0026]] .. "\u{FFFD}"
    .. [[\u007f\n\u0000\"\\é"]])
  lu.assertEquals(json.write { {}, json.list {} }, "[{},[]]")
  lu.assertEquals(json.write({ {}, { a = {} } }, "list"), '[[],{"a":[]}]')
end

function TestJson:test_as_python_writes_it()
  lu.assertEquals(json.python { b = { 1, 0.1, 1e300, 3.0, 0 / 0, math.huge }, a = json.empty, c = {}, d = "<é\127\b" },
    '{"a": [], "b": [1, 0.1, 1e+300, 3.0, NaN, Infinity], "c": {}, "d": "<é\127\\b"}')
  lu.assertEquals(json.python({ a = { 1, { b = false } }, c = {} }, nil, 1),
    '{\n "a": [\n  1,\n  {\n   "b": false\n  }\n ],\n "c": {}\n}')
end

function TestJson:test_what_json_has_not()
  local ring = {}
  ring[1] = ring
  lu.assertErrorMsgContains("nested more than 64 deep", json.write, ring)
  lu.assertErrorMsgContains("a function", json.python, { print })
end
