--- a pattern that tries too many ways
refused(function() string.find(("a"):rep(200), ("a-"):rep(12) .. "b") end, "takes too long")
refused(function() (("a"):rep(200)):match(("a-"):rep(12) .. "b") end, "takes too long")
refused(function() string.gsub(("a"):rep(200), ("a*"):rep(12) .. "b", "") end, "takes too long")

--- a pattern that calls itself
refused(function() string.find("x", ("("):rep(40) .. "x") end, "too many captures")
refused(function() string.find(("x"):rep(1000), ("x?"):rep(1000) .. ("x"):rep(1000)) end, "")
refused(function() string.match("x", "%") end, "malformed pattern")
refused(function() string.match("x", "[a") end, "malformed pattern")
refused(function() string.match("x", "%b") end, "malformed pattern")

--- nothing, very often
assert((""):rep(1 << 62) == "" and string.rep("", math.maxinteger, "") == "")

--- elements that are not there
refused(function() table.move({}, 1, 1 << 60, 2) end, "table.move")
refused(function() table.move({}, math.mininteger, math.maxinteger - 5, 2) end)
local sparse = {}
for i = 0, 62 do sparse[1 << i] = 1 end
pcall(table.insert, sparse, 1, 1)
pcall(table.remove, sparse, 1)
refused(function() table.concat({}, "", 1, 1 << 60) end, "table.concat")
pcall(table.sort, sparse)
refused(function() table.unpack({}, 1, 1e7) end, "too many results")
refused(function() return ("x"):byte(1, -1, 5) and select(-1e18, 1) end)

--- lengths that are made up
local long = setmetatable({}, { __len = function() return 1 << 60 end })
for _, f in ipairs { table.insert, table.remove, table.sort, table.concat } do
  refused(function() f(long, 1, 1) end, "__len")
end
pcall(table.unpack, long)

--- a length that changes between two looks
local n = 0
local t = setmetatable({}, { __len = function() n = n + 1 return n > 1 and 1 << 60 or 1 end })
refused(function() table.insert(t, 1, 1) end, "__len")
refused(function() table.remove(t, 1) end, "__len")

--- elements by a function in C
local t = setmetatable({}, { __index = rawlen })
refused(function() table.concat(t, "", 1, 1 << 40) end, "table.concat")

--- an order that is none
local t = {}
for i = 1, 1000 do t[i] = i end
pcall(table.sort, t, function() return true end)
pcall(table.sort, t, rawequal)
pcall(table.sort, t, function(a, b) t[a] = nil return a < b end)

--- nesting that the parser has to follow
for _, text in ipairs { "return " .. ("("):rep(100000), ("{"):rep(100000), ("do "):rep(100000),
  "return " .. ("- "):rep(100000) .. "1", "x = " .. ("function() "):rep(10000), ("a."):rep(100000),
  "return " .. ("1 .. "):rep(10000) .. "1", "goto x " .. ("::x::"):rep(10) } do
  local f = load(text)
  assert(f == nil)
end
load(("local a = 1 "):rep(300))
load("return " .. ("a,"):rep(300) .. "a")

--- a text that takes the parser long
refused(function() assert(load(("x = 1 "):rep(300000))) end, "at most 1048576")

--- recursion
local function f() return f() + 1 end
refused(f)
local function g() pcall(g) error "x" end
pcall(g)
refused(function() local function h(...) return 1 + h(...) end h(1, 2, 3) end)
local t = setmetatable({}, {})
getmetatable(t).__index = function(s, k) return s[k .. "x"] end
refused(function() return t.x end)

--- handlers of errors that raise
local function h() error "again" end
assert(xpcall(error, h) == false)
assert(xpcall(function() local function f() return f() + 1 end f() end, h) == false)

--- coroutines in coroutines
local function nest(n) return coroutine.wrap(function() return nest(n + 1) end)() end
refused(function() nest(1) end)
local co
co = coroutine.create(function() return coroutine.resume(co) end)
coroutine.resume(co)

--- coroutines that close each other
local before
for _ = 1, 16000 do
  local inner = before
  local co = coroutine.create(function()
    local _ <close> = setmetatable({}, { __close = function() return inner and assert(coroutine.close(inner)) end })
    coroutine.yield()
  end)
  coroutine.resume(co)
  before = co
end
local ok, err = coroutine.close(before)
assert(not ok and err:find "C stack overflow", err)
before = nil
local list = {}
for i = 1, 50 do
  list[i] = coroutine.create(function()
    local function close() return i > 1 and assert(coroutine.close(list[i - 1])) end
    local _ <close> = setmetatable({}, { __close = close })
    coroutine.yield()
  end)
  coroutine.resume(list[i])
end
assert(coroutine.close(list[50]) and coroutine.status(list[1]) == "dead")

--- the main coroutine
local main = coroutine.running()
refused(function() assert(coroutine.resume(main)) end)
refused(function() coroutine.close(main) end)
coroutine.wrap(function() refused(function() coroutine.close(main) end) end)()
refused(function() coroutine.yield() end, "outside a coroutine")

--- formats
refused(function() return ("%99999d"):format(1) end)
refused(function() return ("%.999f"):format(1) end)
refused(function() return ("%y"):format(1) end)
assert(#("%.99f"):format(1e308) > 300)
assert(#("%5.2s"):format("abc") == 5)
refused(function() return ("%q"):format({}) end)

--- packed texts
refused(function() return string.pack("i17", 1) end)
refused(function() return string.unpack("s8", "\255\255\255\255\255\255\255\127") end)
refused(function() return string.unpack("i4", "abcdefgh", 1 << 62) end)
refused(function() return string.packsize("!16" .. ("i16"):rep(1) .. "s") end)

--- the collector
for _, what in ipairs { "stop", "restart", "generational", "incremental", "setpause", "setstepmul", "isrunning" } do
  refused(function() collectgarbage(what, 1) end, "scripts have")
end
assert(collectgarbage() == 0 and collectgarbage "count" > 0)
collectgarbage "step"

--- the generator of numbers
refused(function() math.randomseed() end)
math.randomseed(5)
local a = math.random()
math.randomseed(5)
assert(a == math.random())
