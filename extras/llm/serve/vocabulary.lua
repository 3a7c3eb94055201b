-- The bytes that tokens stand for, in order.

local _, core = ...

-- ---- bytes of a token ----

-- What byte a character of byte-level vocabularies stands for (Radford et al., 2019).
local function byte_characters()
  local map, other = {}, 0
  for b = 0, 255 do
    if b >= 33 and b <= 126 or b >= 161 and b <= 172 or b >= 174 then
      map[b] = b
    else
      map[256 + other], other = b, other + 1
    end
  end
  return map
end

local BYTES = byte_characters()

-- Bytes of a token whose text alone is no UTF-8: by its spelling, or nil.
local function spelled_bytes(spelling)
  local hex = spelling and spelling:match "^<0x(%x%x)>$"
  if hex then
    return string.char(tonumber(hex, 16))
  end
  if not utf8.len(spelling or "", 1, -1, true) then -- bytes of the file's own
    return nil
  end
  local parts = {}
  for _, code in utf8.codes(spelling or "\u{FFFD}", true) do
    if not BYTES[code] then
      return nil
    end
    parts[#parts + 1] = string.char(BYTES[code])
  end
  return table.concat(parts)
end

-- A token that others are decoded behind, and its text: decoders leave out a space in front of all.
local function anchor_of(tokenizer)
  for _, text in ipairs { "a", "to", "." } do
    local ok, ids = pcall(tokenizer.encode, tokenizer, text, { special = false })
    local id = ok and ids[#ids]
    if id and not core.tokenizer_is_special(tokenizer._c, id) then
      return id, core.tokenizer_decode(tokenizer._c, { id }, true)
    end
  end
end

-- Texts of all tokens by their ids, as they are behind the anchor, or as a text begins with them, where decoders may
-- leave out a space; "" for those that are none.
local function texts_of(tokenizer, anchor, before)
  local c, texts = tokenizer._c, {}
  for id = 0, #tokenizer - 1 do
    local text = ""
    if core.tokenizer_token(c, id) and not core.tokenizer_is_special(c, id) then
      text = core.tokenizer_decode(c, anchor and { anchor, id } or { id }, true)
      text = anchor and text:sub(1, #before) == before and text:sub(#before + 1) or text
      text = text:find("\u{FFFD}", 1, true) and spelled_bytes(core.tokenizer_token(c, id)) or text
    end
    texts[id] = text
  end
  return texts
end

-- ---- their order ----

-- Calls emit with each text of a list, in the order of bytes, and how many bytes it has in common with the one before.
-- All have `depth` bytes in common, the first has `shared` with the one before the list.
local function in_order(list, depth, shared, emit)
  while #list > 1 do
    local buckets, bytes = {}, {}
    for _, text in ipairs(list) do
      if #text == depth then
        emit(text, shared)
        shared = depth
      else
        local b = text:byte(depth + 1)
        if not buckets[b] then
          buckets[b], bytes[#bytes + 1] = {}, b
        end
        table.insert(buckets[b], text)
      end
    end
    table.sort(bytes)
    for i = 1, #bytes - 1 do
      in_order(buckets[bytes[i]], depth + 1, shared, emit)
      shared = depth
    end
    list, depth = buckets[bytes[#bytes]] or {}, depth + 1
  end
  if list[1] then
    emit(list[1], shared)
  end
end

-- A vocabulary of texts by their ids: different texts in order, the ids of each, how many bytes each has in common with
-- the one before.
local function ordered(of, size)
  local ids, list = {}, {}
  for id = 0, size - 1 do
    local text = of[id]
    if text ~= "" and not ids[text] then
      ids[text], list[#list + 1] = {}, text
    end
    table.insert(ids[text] or {}, id)
  end
  local v = { size = size, of = of, texts = {}, ids = {}, common = {} }
  in_order(list, 0, 0, function(text, shared)
    local i = #v.texts + 1
    v.texts[i], v.ids[i], v.common[i] = text, ids[text], shared
  end)
  return v
end

local known = setmetatable({}, { __mode = "k" })

-- The vocabularies of a tokenizer: [true] for the first token of a text, [false] for the others.
function core.vocabularies_of(tokenizer)
  if not known[tokenizer] then
    local size, same = #tokenizer, true
    local first, inner = texts_of(tokenizer), texts_of(tokenizer, anchor_of(tokenizer))
    for id = 0, size - 1 do
      same = same and first[id] == inner[id]
    end
    local v = ordered(inner, size)
    known[tokenizer] = { [false] = v, [true] = same and v or ordered(first, size) }
  end
  return known[tokenizer]
end
