--- reading what lies outside, there or not
local dc, data, nn = require "deepc", require "deepc.data", require "deepc.nn"
local function without(text, path)
  local from, to = text:find(path .. ":", 1, true)
  return text:sub(1, from - 1) .. text:sub(to)
end
local readers = {
  load = function(path) dc.load(path) end,
  into = function(path) dc.load(path, nn.Linear(2, 2)) end,
  checkpoint = function(path) dc.checkpoint(path, { m = nn.Linear(2, 2) }):load() end,
  idx = function(path) data.idx(path) end,
  csv = function(path) data.read_csv(path) end,
  npy = function(path) data.read_npy(path) end,
  npz = function(path) data.read_npz(path) end,
  bytes = function(path) data.read_bytes(path, "u8") end,
  image = function(path) data.read_image(path) end,
  wav = function(path) data.read_wav(path) end,
  sound = function(path) data.read_sound(path) end,
  rows = function(path) data.rows(path) end,
  raw = function(path) data.rows(path, { type = "u8[1]" }) end,
  files = function(path) data.files(path) end,
  classes = function(path) data.class_files(path) end,
}
for name, read in pairs(readers) do
  for _, pair in ipairs { { "/etc/passwd", "/etc/nothing" }, { root .. "/secret", root .. "/nothing" },
    { "/", "/nothing/at/all" }, { "/proc/self/environ", "/proc/self/nothing" }, { root, root .. "x" },
    { root .. "/in/up/secret", root .. "/in/up/nothing" }, { "/dev/zero", "/dev/nothing" },
    { root .. "/out/link", root .. "/out/nothing" } } do
    local there = refused(function() read(pair[1]) end, "DC0805")
    local none = refused(function() read(pair[2]) end, "DC0805")
    local a, b = without(there, pair[1]), without(none, pair[2])
    assert(a == b, name .. "\n" .. a .. "\n" .. b)
  end
end

--- files of a batch that lie outside, read on other threads
local dc, data = require "deepc", require "deepc.data"
for _, path in ipairs { "/etc/passwd", root .. "/secret", root .. "/in/link" } do
  local list = { path, path, path, path }
  for _, rows in ipairs { data.images(list, { size = { 2, 2 }, channels = 1 }),
    (data.sounds(list, { frames = 2, channels = 1, rate = 8000 })) } do
    refused(function() for _ in data.set(rows):batches { size = 2 } do end end, "DC0805")
  end
end

--- the network, and folders for what comes from it
local data = require "deepc.data"
refused(function() data.fetch("http://127.0.0.1:9/x", { cache = root .. "/out" }) end, "DC0805")
refused(function() data.fetch("https://localhost/x", { cache = root .. "/out" }) end, "DC0805")
refused(function() data.fetch "https://localhost/x" end, "DC0805")
refused(function() data.fetch("file:///etc/passwd", { cache = root }) end, "DC0805")
refused(function() data.fetch("file:///etc/passwd", { cache = "/tmp" }) end, "DC0805")

--- writing tables, arrays, images and sounds elsewhere
local dc, data = require "deepc", require "deepc.data"
for _, path in ipairs { "/tmp/x", root .. "/x", root .. "/in/x", root .. "/out/../x" } do
  refused(function() data.write_csv(path, { x = dc.iota(2) }) end, "DC0805")
  refused(function() data.write_npy(path, dc.iota(2)) end, "DC0805")
  refused(function() data.write_npz(path, { x = dc.iota(2) }) end, "DC0805")
  refused(function() data.write_image(path .. ".png", dc.zeros "u8[2, 2]") end, "DC0805")
  refused(function() data.write_wav(path, dc.zeros "f32[2]", 8000) end, "DC0805")
end

--- data sets elsewhere
local data = require "deepc.data"
for _, dir in ipairs { root, root .. "/nothing", "/usr/share/datasets/fashion-mnist", "/etc", ".." } do
  refused(function() data.fashion_mnist { dir = dir } end, "DC0805")
end

--- up and down again
local dc = require "deepc"
for _, path in ipairs { "/in/../secret", "/in/../../etc/passwd", "/in/./../secret", "/in//..//secret",
  "/in/plain/../../secret", "/in/..", "/in/../in/plain", "/in/none/../../secret" } do
  refused(function() dc.load(root .. path) end, "DC0805")
  refused(function() dc.save(root .. path, { w = dc.ones "f32[1]" }) end, "DC0805")
end

--- links that lead out
local dc, data, plot = require "deepc", require "deepc.data", require "deepc.plot"
refused(function() dc.load(root .. "/in/link") end, "symbolic link")
refused(function() data.idx(root .. "/in/link") end, "symbolic link")
refused(function() dc.load(root .. "/in/up/secret") end, "symbolic link")
refused(function() dc.checkpoint(root .. "/in/up/nothing", {}):load() end, "symbolic link")
refused(function() dc.save(root .. "/out/link", { w = dc.ones "f32[1]" }) end, "symbolic link")
refused(function() plot.lines(root .. "/out/dangling", { { y = { 1, 2 } } }) end)

--- listing folders: links in them are left out, and lead nowhere
local data = require "deepc.data"
for _, path in ipairs(data.files(root .. "/in", "*", { recursive = true })) do
  assert(not path:find "link" and not path:find "/up", path)
end
refused(function() data.files(root .. "/in/up") end, "symbolic link")
refused(function() data.files(root .. "/in/..") end, "DC0805")
refused(function() data.files "." end, "DC0805")

--- writing through a link to nothing
local dc = require "deepc"
refused(function() dc.save(root .. "/out/dangling", { w = dc.ones "f32[1]" }) end, "symbolic link")

--- a zero byte in a path
local dc, data, plot = require "deepc", require "deepc.data", require "deepc.plot"
local f = dc.fn("f(x: f32[2]) -> f32[2]", function(x) return x end)
for _, path in ipairs { root .. "/in/plain\0", root .. "/secret\0" .. root .. "/in/plain", "\0", "/etc/passwd\0.st" } do
  refused(function() dc.load(path) end)
  refused(function() data.idx(path) end)
  refused(function() dc.save(path, { w = dc.ones "f32[1]" }) end)
  refused(function() dc.checkpoint(path, {}):load() end)
  refused(function() f:export(path, {}) end)
  refused(function() plot.lines(path, { { y = { 1, 2 } } }) end)
end

--- paths that are no texts
local dc, data = require "deepc", require "deepc.data"
local liar = setmetatable({}, { __tostring = function() return "/etc/passwd" end, __name = "string" })
for _, path in ipairs { liar, 5, true, print, {}, dc.ones "f32[2]" } do
  refused(function() dc.load(path) end)
  refused(function() data.idx(path) end)
  refused(function() dc.save(path, { w = dc.ones "f32[1]" }) end)
  refused(function() dc.checkpoint(path, {}) end)
end

--- a checkpoint whose path is changed afterwards
local dc = require "deepc"
local ckpt = dc.checkpoint(root .. "/out/c", {})
for _, path in ipairs { root .. "/secret", "/etc/passwd", {}, 5, "x\0y", setmetatable({}, { __tostring = tostring }) } do
  ckpt.path = path
  refused(function() ckpt:save() end)
  refused(function() ckpt:load() end)
end

--- paths without an end
local dc = require "deepc"
for _, path in ipairs { ("/x"):rep(500000), root .. "/in/" .. ("x"):rep(300), root .. "/in" .. ("/."):rep(100000),
  root .. "/in/" .. ("../"):rep(10000), root .. "/in/" .. ("/"):rep(100000) .. "plain" .. ("/x"):rep(1000) } do
  refused(function() dc.load(path) end)
  refused(function() dc.save(path, { w = dc.ones "f32[1]" }) end)
end

--- writing where one may read, and reading where one may write
local dc, plot = require "deepc", require "deepc.plot"
refused(function() dc.save(root .. "/in/plain", { w = dc.ones "f32[1]" }) end, "DC0805")
refused(function() plot.lines(root .. "/in/x.svg", { { y = { 1, 2 } } }) end, "DC0805")
refused(function() plot.lines(root .. "/in/x.png", { { y = { 1, 2 } } }) end, "DC0805")
dc.save(root .. "/out/w", { w = dc.ones "f32[1]" })
refused(function() dc.load(root .. "/out/w") end, "DC0805")

--- functions to elsewhere
local dc = require "deepc"
local f = dc.fn("f(x: f32[2]) -> f32[2]", function(x) return x end)
f(dc.ones "f32[2]")
for _, path in ipairs { root .. "/policy.dcfn", root .. "/secret", "/tmp/deepc-escaped.dcfn", "escaped.dcfn",
  root .. "/in/f.dcfn", "/dev/stdout", "/proc/self/fd/1" } do
  refused(function() f:export(path) end, "DC0805")
end

--- slashes at the end
local dc = require "deepc"
refused(function() dc.load(root .. "/in/plain/") end, "is no name of a file")
refused(function() dc.save(root .. "/out/x/", { w = dc.ones "f32[1]" }) end, "is no name of a file")
refused(function() dc.load(root .. "/in/") end)

--- what is no file
local dc, data = require "deepc", require "deepc.data"
refused(function() dc.load(root .. "/in/pipe") end, "not a regular file")
refused(function() data.idx(root .. "/in/pipe") end, "not a regular file")
refused(function() dc.load(root .. "/in") end, "is a directory")

--- relative paths
local dc = require "deepc"
for _, path in ipairs { "CMakeLists.txt", "./README.md", "nothing", ".", "", "~", "$HOME/x", "tests/t.h" } do
  refused(function() dc.load(path) end, "DC0805")
end

--- other spellings
local dc = require "deepc"
for _, path in ipairs { "file:///etc/passwd", "//etc/passwd", "/./etc/passwd", "/etc//passwd", "http://x/y",
  "\\etc\\passwd", "C:\\x", "/ETC/PASSWD", " /etc/passwd", "/etc/passwd ", "|cat /etc/passwd", "%2fetc%2fpasswd" } do
  refused(function() dc.load(path) end, "DC0805")
end

--- what a damaged file says
local dc, data = require "deepc", require "deepc.data"
assert(not refused(function() dc.load(root .. "/in/plain") end):find "secret")
refused(function() data.idx(root .. "/in/plain") end)

--- what is left behind where writing fails
local dc = require "deepc"
dc.save(root .. "/out/kept", { w = dc.ones "f32[1]" })
pcall(function() dc.save(root .. "/out/kept", setmetatable({}, { __pairs = function() error "x" end })) end)
pcall(function() dc.save(root .. "/out/kept", { w = dc.ones "f32[1]", x = print }) end)

--- names of tensors as paths
local dc = require "deepc"
for _, name in ipairs { "../x", "/etc/passwd", "deepc.alias:x", "", "__metadata__", "\0", ("x"):rep(100000) } do
  pcall(function() dc.save(root .. "/out/w", { [name] = dc.ones "f32[1]" }) end)
  pcall(function() dc.save(root .. "/out/w", { w = dc.ones "f32[1]" }, { [name] = "x" }) end)
end
