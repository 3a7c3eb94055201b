-- Which pages of a pool are free, how many texts use each, and what the others still hold: whole pages whose tokens are
-- known are found again by texts that begin with them.
--
-- A page is known by its tokens and by the page before it, so a chain of pages is a beginning of a text. Numbers of
-- what pages hold are never used twice: a chain whose first page was given away is not found.

local _, core = ...

local Book = {}
Book.__index = Book

-- Pages 1 to count - 1, of `size` tokens; reuse: whether contents are kept for other texts.
function core.new_book(count, size, reuse)
  local free = {}
  for page = count - 1, 1, -1 do
    free[#free + 1] = page
  end
  return setmetatable({ size = size, reuse = reuse, free = free, users = {}, contents = {}, keys = {}, found = {},
    written = {}, made = 0, idle = 0, after = { [0] = 0 }, before = { [0] = 0 } }, Book)
end

-- ---- pages that nobody uses, whose contents are known: a ring, the one that was used last at its end ----

local function unlink(self, page)
  local a, b = self.before[page], self.after[page]
  self.after[a], self.before[b] = b, a
  self.before[page], self.after[page] = nil, nil
  self.idle = self.idle - 1
end

local function append(self, page)
  local last = self.before[0]
  self.after[last], self.before[page] = page, last
  self.after[page], self.before[0] = 0, page
  self.idle = self.idle + 1
end

-- ---- users ----

-- How many pages can be taken.
function Book:left()
  return #self.free + self.idle
end

-- A page for one text, and whether it holds what another wrote; nil where all are in use.
function Book:take()
  local page = table.remove(self.free)
  if not page and self.idle > 0 then
    page = self.after[0]
    unlink(self, page)
    self.found[self.keys[page]], self.keys[page], self.contents[page] = nil, nil, nil
  end
  if not page then
    return nil
  end
  local written = self.written[page] == true
  self.users[page], self.written[page] = 1, true
  return page, written
end

-- One more text uses a page whose contents are known.
function Book:share(page)
  local users = self.users[page]
  if not users then
    unlink(self, page)
  end
  self.users[page] = (users or 0) + 1
end

-- How many of these pages nobody uses.
function Book:count_idle(pages)
  local n = 0
  for _, page in ipairs(pages) do
    n = n + (self.users[page] and 0 or 1)
  end
  return n
end

function Book:release(page)
  local users = self.users[page] - 1
  self.users[page] = users > 0 and users or nil
  if users == 0 and self.contents[page] then
    append(self, page)
  elseif users == 0 then
    self.free[#self.free + 1] = page
  end
end

-- ---- contents ----

local function key_of(self, content, tokens, first)
  return content .. ":" .. table.concat(tokens, ",", first, first + self.size - 1)
end

-- Known pages that hold a text from token `first` on, behind those of `content`, up to token `last` at most; the number
-- of what the last one holds.
function Book:find(content, tokens, first, last)
  local pages = {}
  for at = first, last - self.size + 1, self.size do
    local page = self.found[key_of(self, content, tokens, at)]
    if not page then
      break
    end
    pages[#pages + 1], content = page, self.contents[page]
  end
  return pages, content
end

-- A page holds the tokens from `first` on, behind those of `content`; the number of what it holds, which is that of
-- another page where one holds the same.
function Book:know(page, content, tokens, first)
  if not self.reuse then
    return 0
  end
  local key = key_of(self, content, tokens, first)
  local same = self.found[key]
  if same then
    return self.contents[same]
  end
  self.made = self.made + 1
  self.found[key], self.keys[page], self.contents[page] = page, key, self.made
  return self.made
end
