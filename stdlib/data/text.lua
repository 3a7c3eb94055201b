-- Texts as numbers.

local data = require "deepc.data.set"
local dc = require "deepc"
local _, core = ...

---The text of a file; unpacked where it is gzipped.
---
---    data.read_text "shakespeare.txt"
---
---Errors: DC0801 where it cannot be read.
---@param path string
---@return string
function data.read_text(path)
  if type(path) ~= "string" then
    core.fail("ARG", "read_text", "a path is needed, not " .. core.describe(path))
  end
  if core.absent("read_text", path) then -- as good as any, for deepc check
    return ("The quick brown fox jumps over the lazy dog.\n"):rep(2000)
  end
  local text = core.read_file("read_text", path)
  return text
end

---Words or characters and their numbers, from 0. `#vocabulary` is how many there are.
---@class deepc.data.Vocabulary
---@field words string[] by their number, from 0: words[1] has the number 0
---@field unknown? integer the number of all others
local Vocabulary = {}
Vocabulary.__index = Vocabulary

-- The pieces of a text: words between blanks, characters of UTF-8, or bytes.
local splits = {}

function splits.words(text)
  return text:gmatch "%S+"
end

function splits.characters(text)
  if not utf8.len(text) then
    core.fail("ARG", "Vocabulary", 'the text is not UTF-8: characters are not known', 'split = "bytes" takes any text')
  end
  return text:gmatch(utf8.charpattern)
end

function splits.bytes(text)
  return text:gmatch "."
end

local function pieces(vocabulary, what)
  if type(what) == "string" then
    return vocabulary._split(what)
  elseif type(what) ~= "table" or core.kind(what) then
    core.fail("ARG", "encode", "a text or a list of words is needed, not " .. core.describe(what))
  end
  local i = 0
  return function()
    i = i + 1
    local word = what[i]
    if word ~= nil and type(word) ~= "string" then
      core.fail("ARG", "encode", ("word %d is %s"):format(i, core.describe(word)))
    end
    return word
  end
end

local function check_vocabulary(op, v)
  if getmetatable(v) ~= Vocabulary then
    core.fail("ARG", op, "a vocabulary is needed, not " .. core.describe(v),
      ("with a colon: vocabulary:%s(...)"):format(op))
  end
end

-- Words by how often they occur, then by their bytes.
local function ranked(counts, least, most)
  local list = {}
  for word, n in pairs(counts) do
    if n >= least then
      list[#list + 1] = word
    end
  end
  table.sort(list, function(a, b)
    if counts[a] ~= counts[b] then
      return counts[a] > counts[b]
    end
    return a < b
  end)
  for i = #list, (most or #list) + 1, -1 do
    list[i] = nil
  end
  return list
end

---A vocabulary of a text, or of a list of words (torchtext.vocab.build_vocab_from_iterator): words between blanks,
---characters or bytes, those that occur often first, then in the order of the alphabet. `least` leaves out what
---occurs less often, `most` all but so many; `special` words come before the others; `unknown`, the word for all
---that is left out.
---
---    data.Vocabulary "to be or not to be"
---    data.Vocabulary("to be or not to be", { split = "characters" })
---    data.Vocabulary("to be or not to be", { least = 2, special = { "<pad>" }, unknown = "<unk>" })
---
---Errors: DC0101 for options.
---@param text string|string[]
---@param options? { split?: string, least?: integer, most?: integer, special?: string[], unknown?: string }
---@return deepc.data.Vocabulary
function data.Vocabulary(text, options)
  core.options("Vocabulary", options, "split", "least", "most", "special", "unknown")
  options = options or {}
  local split = splits[options.split or "words"]
  if not split then
    core.fail("ARG", "Vocabulary", ('split is "words", "characters" or "bytes", not %s'):format(
      core.shown(options.split)))
  elseif options.unknown ~= nil and type(options.unknown) ~= "string" then
    core.fail("ARG", "Vocabulary", "unknown is a word, not " .. core.describe(options.unknown))
  elseif options.special ~= nil and type(options.special) ~= "table" then
    core.fail("ARG", "Vocabulary", "special is a list of words, not " .. core.describe(options.special))
  end
  core.check_integer("Vocabulary", options, "least", 1)
  core.check_integer("Vocabulary", options, "most", 1)
  local v = setmetatable({ words = {}, _number = {}, _split = split, _join = options.split and options.split ~= "words"
    and "" or " " }, Vocabulary)
  local counts = {}
  for word in pieces(v, text) do
    counts[word] = (counts[word] or 0) + 1
  end
  local function add(word)
    if not v._number[word] then
      v.words[#v.words + 1] = word
      v._number[word] = #v.words - 1
    end
  end
  for _, word in ipairs(options.special or {}) do
    if type(word) ~= "string" then
      core.fail("ARG", "Vocabulary", "special is a list of words, not of " .. core.describe(word))
    end
    add(word)
  end
  if options.unknown then
    add(options.unknown)
    v.unknown = v._number[options.unknown]
  end
  for _, word in ipairs(ranked(counts, options.least or 1, options.most)) do
    add(word)
  end
  return v
end

function Vocabulary:__len()
  return #self.words
end

---The number of a word, or nil; of those that are left out `unknown`.
---
---    data.Vocabulary("to be or not to be"):number "be"
---@param word string
---@return integer?
function Vocabulary:number(word)
  check_vocabulary("number", self)
  return self._number[word] or self.unknown
end

---The numbers of a text's words, or of a list of words, i32[n].
---
---    data.Vocabulary("to be or not to be"):encode "not to be"
---
---Errors: DC0101 for a word that it does not have, where there is no `unknown`.
---@param text string|string[]
---@return deepc.Tensor
function Vocabulary:encode(text)
  check_vocabulary("encode", self)
  local numbers, n, number, unknown = {}, 0, self._number, self.unknown
  for word in pieces(self, text) do
    local i = number[word] or unknown
    if not i then
      core.fail("ARG", "encode", ("word %d, %s, is not in the vocabulary"):format(n + 1, core.shown(word)),
        'unknown = "<unk>" gives all others a number')
    end
    n = n + 1
    numbers[n] = i
  end
  local t = n > 0 and dc.tensor(numbers, "i32") or dc.zeros "i32[0]"
  return t
end

---The text of numbers: words with blanks between them, characters without.
---
---    data.Vocabulary("to be or not to be"):decode(dc.tensor({ 0, 1 }, "i32"))
---
---Errors: DC0101 for a number that no word has.
---@param numbers deepc.Tensor|integer[]
---@return string
function Vocabulary:decode(numbers)
  check_vocabulary("decode", self)
  local list = core.kind(numbers) == "tensor" and numbers:flatten():totable() or numbers
  if type(list) ~= "table" then
    core.fail("ARG", "decode", "numbers are a tensor or a list, not " .. core.describe(numbers))
  end
  local words = {}
  for i, k in ipairs(list) do
    words[i] = math.type(k) == "integer" and self.words[k + 1]
      or core.fail("ARG", "decode", ("no word has the number %s: they are 0 to %d"):format(core.shown(k), #self - 1))
  end
  return table.concat(words, self._join)
end

core.entries(Vocabulary)
