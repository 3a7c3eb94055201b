-- Vocabularies, files by URL, sets that others publish.
local lu = require "luaunit"
local dc = require "deepc"
local data = require "deepc.data"
local check = require "tests.lua.check"
local program = require "tests.lua.program"

local fails = check.fails

local function write(path, bytes)
  local f = assert(io.open(path, "wb"))
  f:write(bytes)
  assert(f:close())
end

TestVocabulary = {}

function TestVocabulary:test_words()
  local v = data.Vocabulary "to be or not to be"
  lu.assertEquals(v.words, { "be", "to", "not", "or" })
  lu.assertEquals(#v, 4)
  lu.assertEquals(v:encode("not to  be\n"):totable(), { 2, 1, 0 })
  lu.assertEquals(v:encode({ "or" }).dtype, "i32")
  lu.assertEquals(v:encode("").shape, { 0 })
  lu.assertEquals(v:decode(v:encode "to be or not"), "to be or not")
  lu.assertNil(v:number "x")
  fails("word 2, 'x', is not in the vocabulary", v.encode, v, "to x")
  fails("no word has the number 4: they are 0 to 3", v.decode, v, { 4 })
end

function TestVocabulary:test_left_out()
  local v = data.Vocabulary("a a a b b c", { least = 2, special = { "<pad>" }, unknown = "<unk>" })
  lu.assertEquals(v.words, { "<pad>", "<unk>", "a", "b" })
  lu.assertEquals(v:encode("b c"):totable(), { 3, 1 })
  lu.assertEquals(data.Vocabulary("a a b b b", { most = 1 }).words, { "b" })
  fails('split is "words", "characters" or "bytes", not \'lines\'', data.Vocabulary, "x", { split = "lines" })
end

function TestVocabulary:test_characters()
  local v = data.Vocabulary("äbä", { split = "characters" })
  lu.assertEquals(v.words, { "ä", "b" })
  lu.assertEquals(v:decode(v:encode "bä"), "bä")
  fails("the text is not UTF-8", data.Vocabulary, "\xff", { split = "characters" })
  lu.assertEquals(#data.Vocabulary("\xff\0", { split = "bytes" }), 2)
end

TestFetch = {}

function TestFetch:setUp()
  self.path = os.tmpname()
  self.folder = self.path .. ".d"
  os.execute("mkdir " .. self.folder)
end

function TestFetch:tearDown()
  os.execute("rm -rf " .. self.path .. " " .. self.folder)
end

local digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" -- of "abc", FIPS 180-4

function TestFetch:test_files()
  write(self.path, "abc")
  local url = "file://" .. self.path
  local path = data.fetch(url, { cache = self.folder })
  lu.assertEquals(data.read_text(path), "abc")
  lu.assertEquals(data.fetch(url, { cache = self.folder, sha256 = digest:upper() }), path)
  write(self.path, "abd")
  lu.assertEquals(data.read_text(data.fetch(url, { cache = self.folder })), "abc") -- it is there
  write(path, "damaged")
  fails("its SHA-256 is", data.fetch, url, { cache = self.folder, sha256 = digest })
  lu.assertEquals(data.read_text(path), "damaged") -- what fails leaves what was there
  write(self.path, "abc")
  lu.assertEquals(data.read_text(data.fetch(url, { cache = self.folder, sha256 = digest })), "abc")
  lu.assertEquals(data.fetch(url, { cache = self.folder, name = "x.txt" }), self.folder .. "/x.txt")
end

-- The folder is made, with those above it; dc.load takes the URL itself.
function TestFetch:test_new_folders_and_load()
  write(self.path, "abc")
  local folder = self.folder .. "/new/inner"
  lu.assertStrContains(data.fetch("file://" .. self.path, { cache = folder, name = "x" }), "/new/inner/x")
  os.remove(folder .. "/x")
  os.remove(folder)
  os.remove(self.folder .. "/new")
  local file = os.tmpname() .. ".safetensors"
  dc.save(file, { w = dc.ones "f32[3]" })
  local path = data.fetch("file://" .. file)
  lu.assertEquals(dc.load("file://" .. file).w.shape, { 3 })
  os.remove(path)
  os.remove(file)
end

function TestFetch:test_errors()
  fails("a URL is needed, not the string '/tmp/x'", data.fetch, "/tmp/x")
  fails("a URL begins with https://, http:// or file://", data.fetch, "ftp://x/y", { cache = self.folder })
  fails("sha256 is 64 hexadecimal digits", data.fetch, "file:///x", { sha256 = "12" })
  fails("name is that of a file, not '../x'", data.fetch, "file:///x", { name = "../x" })
  lu.assertEquals(fails("No such file", data.fetch, "file:///nonexistent/x", { cache = self.folder }).code, "DC0801")
  local ok = os.execute("DEEPC_ALLOW=compute " .. program.quote(program.path) .. [[ -e '
    local ok, err = pcall(require "deepc.data".fetch, "file:///etc/hostname", { cache = "/tmp" })
    os.exit(not ok and err.code == "DC0805")' >/dev/null]])
  lu.assertTrue(ok)
end

-- Three answers: a file, a redirection to it, an error.
local server = [[
import http.server, sys
class H(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/moved":
            self.send_response(302); self.send_header("Location", "/there"); self.end_headers(); return
        self.send_response(200 if self.path == "/there" else 404)
        self.send_header("Content-Length", "3"); self.end_headers(); self.wfile.write(b"abc")
    def log_message(self, *a): pass
s = http.server.HTTPServer(("127.0.0.1", 0), H); s.timeout = 20
print(s.server_address[1], flush=True)
for _ in range(4): s.handle_request()
]]

function TestFetch:test_http()
  if not os.execute "python3 -c 'import http.server' 2>/dev/null" then
    return lu.skip "python3 is not installed: no HTTP server to fetch from"
  end
  write(self.path, server)
  local pipe <close> = assert(io.popen("exec env -u http_proxy python3 " .. self.path))
  local base = "http://127.0.0.1:" .. pipe:read "l"
  local ok, err = pcall(data.fetch, base .. "/there", { cache = self.folder, sha256 = digest })
  if not ok and tostring(err):find "libcurl4" then
    for _ = 1, 4 do
      os.execute("exec 3<>/dev/tcp/127.0.0.1/" .. base:match "%d+$")
    end
    return lu.skip "libcurl is not installed (Debian: libcurl4)"
  end
  lu.assertTrue(ok, tostring(err))
  lu.assertEquals(data.read_text(err), "abc")
  lu.assertEquals(data.read_text(data.fetch(base .. "/moved", { cache = self.folder })), "abc")
  fails("cannot be fetched: The requested URL returned error: 404", data.fetch, base .. "/none",
    { cache = self.folder })
end

TestPublished = {}
TestPublished.setUp, TestPublished.tearDown = TestFetch.setUp, TestFetch.tearDown

function TestPublished:test_cifar10()
  local record = "\7" .. ("\1"):rep(1024) .. ("\2"):rep(1024) .. ("\3"):rep(1024)
  write(self.path, record .. "\9" .. ("\4"):rep(3072))
  local set = data.cifar10 { self.path, self.path }
  lu.assertEquals(#set, 4)
  for x, y in set:batches { size = 2 } do
    lu.assertEquals(x.shape, { 2, 32, 32, 3 })
    lu.assertEquals(x[{ 1, 5, 6 }]:totable(), { 1, 2, 3 })
    lu.assertEquals(y:totable(), { 7, 9 })
  end
  write(self.path, record .. "x")
  fails("3074 bytes are no whole number of records of 3073", data.cifar10, self.path)
end

function TestPublished:test_mnist()
  write(self.path, string.pack(">I4I4I4I4", 0x803, 2, 2, 2) .. "\1\2\3\4\5\6\7\8")
  write(self.folder .. "/labels", string.pack(">I4I4", 0x801, 2) .. "\3\4")
  local set = data.mnist(self.path, self.folder .. "/labels")
  lu.assertEquals(set.x[2]:totable(), { { 5, 6 }, { 7, 8 } })
  lu.assertEquals(set.y.dtype, "i32")
end
