-- Files of folders: their order, patterns, links; sets of images whose classes are folders.
local lu = require "luaunit"
local dc = require "deepc"
local data = require "deepc.data"
local check = require "tests.lua.check"

local fails = check.fails

TestFolders = {}

-- Makes files, each with the folders on its way; names of folders end in a slash.
local function make(root, names)
  for _, name in ipairs(names) do
    local folder = name:match "^(.*)/[^/]*$"
    if folder then
      os.execute(("mkdir -p '%s/%s'"):format(root, folder))
    end
    if name:sub(-1) ~= "/" then
      assert(io.open(root .. "/" .. name, "w")):close()
    end
  end
end

function TestFolders:setUp()
  self.root = os.tmpname()
  os.remove(self.root)
  os.execute("mkdir " .. self.root)
end

function TestFolders:tearDown()
  os.execute("rm -r " .. self.root)
end

-- The paths without the folder in front.
function TestFolders:below(...)
  local names = data.files(self.root, ...)
  for i, path in ipairs(names) do
    lu.assertEquals(path:sub(1, #self.root + 1), self.root .. "/")
    names[i] = path:sub(#self.root + 2)
  end
  return table.concat(names, " ")
end

function TestFolders:test_files()
  make(self.root, { "b.wav", "a10.wav", "a9.wav", "B.wav", "a.txt", ".hidden.wav", "sub/c.wav", "sub/deep/d.wav",
    ".git/e.wav", "empty/" })
  lu.assertEquals(self:below(), "B.wav a.txt a10.wav a9.wav b.wav")
  lu.assertEquals(self:below "*.wav", "B.wav a10.wav a9.wav b.wav")
  lu.assertEquals(self:below "a?.*", "a9.wav")
  lu.assertEquals(self:below { "*.txt", "[A-Z]*" }, "B.wav a.txt")
  lu.assertEquals(self:below ".*", ".hidden.wav")
  local all = "B.wav a10.wav a9.wav b.wav sub/c.wav sub/deep/d.wav"
  lu.assertEquals(self:below("*.wav", { recursive = true }), all)
  lu.assertEquals(self:below("*.wav", { recursive = false }), "B.wav a10.wav a9.wav b.wav")
  lu.assertEquals(data.files(self.root .. "//", "b*"), { self.root .. "/b.wav" })
end

-- Folders in the order of their names among those of files: as sorted(pathlib.Path.rglob()) has them.
function TestFolders:test_order_of_folders()
  make(self.root, { "a/1", "a-b/1", "a.txt", "a0", "b/1" })
  lu.assertEquals(self:below("*", { recursive = true }), "a/1 a-b/1 a.txt a0 b/1")
end

function TestFolders:test_links()
  make(self.root, { "sub/c.wav", "other/d.wav" })
  os.execute(("cd %s && ln -s ../other sub/link && ln -s .. sub/up && ln -s nothing gone.wav"):format(self.root))
  lu.assertEquals(self:below("*.wav", { recursive = true }), "gone.wav other/d.wav sub/c.wav")
end

function TestFolders:test_mistakes()
  make(self.root, { "a.wav", "sub/c.wav" })
  local err = fails("files: " .. self.root .. ": no file in it has the form *.png, *.jpg", data.files, self.root,
    { "*.png", "*.jpg" })
  lu.assertEquals(err.code, "DC0801")
  lu.assertStrContains(tostring(err), "{ recursive = true } looks into the folders in it")
  fails("no file below it has the form *.png", data.files, self.root, "*.png", { recursive = true })
  lu.assertEquals(fails("/none: No such file or directory", data.files, self.root .. "/none").code, "DC0801")
  fails("a.wav: Not a directory", data.files, self.root .. "/a.wav")
  fails("the path of a folder is needed, not nil", data.files)
  fails("the path of a folder is needed, not the string ''", data.files, "")
  fails('a pattern is a text such as "*.png", not the number 3', data.files, self.root, 3)
  fails('a pattern is a text such as "*.png", not ', data.files, self.root, { "*.png", "" })
  fails('a pattern is a text such as "*.png", not nil', data.files, self.root, { nil, "*.wav" })
  fails("one of 2000 bytes", data.files, self.root, ("a"):rep(2000))
  fails("a list of patterns is empty", data.files, self.root, {})
  fails("the pattern '*/c.wav' is one of paths", data.files, self.root, "*/c.wav")
  fails("recursive is true or false, not the string 'yes'", data.files, self.root, "*", { recursive = "yes" })
  fails("unknown option 'recurse'", data.files, self.root, "*", { recurse = true })
end

function TestFolders:test_unreadable()
  make(self.root, { "sub/c.wav" })
  os.execute("chmod 0 " .. self.root .. "/sub")
  local ok, err = pcall(data.files, self.root, "*", { recursive = true })
  os.execute("chmod 700 " .. self.root .. "/sub")
  if ok then
    return lu.skip "the user may read everything"
  end
  lu.assertStrContains(tostring(err), "/sub: Permission denied")
end

function TestFolders:test_classes()
  make(self.root, { "b/1.wav", "a/2.wav", "a/x/1.wav", "a/note.txt", "readme.wav", ".git/x.wav" })
  local paths, labels, classes = data.class_files(self.root, "*.wav")
  lu.assertEquals(classes, { "a", "b" })
  lu.assertEquals(labels.dtype, "i32")
  lu.assertEquals(labels:totable(), { 0, 0, 1 })
  lu.assertEquals(paths, { self.root .. "/a/2.wav", self.root .. "/a/x/1.wav", self.root .. "/b/1.wav" })
  make(self.root, { "c/" })
  lu.assertEquals(fails("class_files: " .. self.root .. "/c: no file below it has the form *.wav", data.class_files,
    self.root, "*.wav").code, "DC0801")
  lu.assertEquals(fails("there is no folder in it, and each is a class", data.class_files, self.root .. "/b").code,
    "DC0801")
end

function TestFolders:test_images_of_classes()
  make(self.root, { "dog/", "cat/kitten/", "cat/readme.txt" })
  for i, name in ipairs { "dog/1.PNG", "cat/2.png", "cat/kitten/3.png" } do
    local path = self.root .. "/" .. name
    data.write_image(path .. ".png", dc.full("u8[4, 4]", i * 10))
    os.rename(path .. ".png", path)
  end
  local set, classes = data.image_folder(self.root)
  lu.assertEquals(classes, { "cat", "dog" })
  lu.assertEquals(#set, 3)
  for x, y in set:batches { size = 3 } do
    lu.assertEquals(x.shape, { 3, 4, 4, 1 })
    lu.assertEquals(x[{ {}, 1, 1, 1 }]:totable(), { 20, 30, 10 })
    lu.assertEquals(y:totable(), { 0, 0, 1 })
  end
  local small = data.image_folder(self.root, { size = { 2, 2 }, fit = "stretch", channels = 3 })
  lu.assertEquals(small.x.shape, { 3, 2, 2, 3 })
  fails("/dog: no file below it has the form *.png", data.image_folder, self.root, { pattern = "*.png" })
  fails('fit is "exact", "stretch" or "crop"', data.image_folder, self.root, { fit = "squeeze" })
  fails("unknown option 'labels'", data.image_folder, self.root, { labels = {} })
end
