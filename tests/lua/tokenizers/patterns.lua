-- Where regular expressions cut texts, beside where the Python package cuts them: patterns.lua FILE, of
-- scripts/tokenizer_peers.py patterns. Tells what differs, and how many expressions are refused.
local data = require "deepc.data"
local tokenizers = require "deepc.tokenizers"

local function quoted(s)
  return '"' .. s:gsub('[%c"\\]', function(c) return ("\\u%04x"):format(c:byte()) end) .. '"'
end

local function cuts(tok, text)
  local _, at = tok:encode(text, { offsets = true })
  local h = 0
  for _, p in ipairs(at) do
    h = (h * 31 + p[1] - 1) % 2 ^ 32 // 1 | 0
    h = (h * 31 + p[2]) % 2 ^ 32 // 1 | 0
  end
  return #at, h
end

-- same, differ, refused; differences are told by `tell`.
local function compare(path, tell)
  local bytes, at, first = data.read_text(path), 1, nil
  local file = os.tmpname() .. ".json"
  local before, tok, same, differ, refused = nil, nil, 0, 0, 0
  while at <= #bytes do
    local pattern, text, n, h
    pattern, text, n, h, at = ("<s4s4I4I4"):unpack(bytes, at)
    first = first or text
    if pattern ~= before then
      before = pattern
      local f <close> = assert(io.open(file, "w"))
      f:write('{"pre_tokenizer": {"type": "Split", "behavior": "Isolated", "pattern": {"Regex": ', quoted(pattern),
        '}}, "model": {"type": "WordLevel", "unk_token": "?", "vocab": {"?": 0}}}')
      f:close()
      local ok, t = pcall(tokenizers.load, file)
      tok = ok and t or nil
      if not ok then
        refused = refused + 1
        if not tostring(t):find("are not known", 1, true) and not tostring(t):find("is not known", 1, true) then
          tell(pattern, tostring(t))
        end
      end
    end
    if tok then
      local ok, pieces, hash = pcall(cuts, tok, text == "" and first or text)
      if ok and pieces == n and hash == h then
        same = same + 1
      else
        differ = differ + 1
        tell(pattern, ("%q: %s pieces, %d expected"):format(#text < 100 and text or "", pieces, n))
      end
    end
  end
  os.remove(file)
  return same, differ, refused
end

if arg[0]:match "patterns%.lua$" then
  print(("%d same, %d differ, %d refused"):format(compare(arg[1], print)))
end
return compare
