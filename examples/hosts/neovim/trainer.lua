-- Learns the text that it is given and completes words, for lua/deepc_complete.lua: a request is a line on stdin, with
-- bytes behind it where it says how many; an answer is a line on stdout. It ends with its input.
--
--     text BYTES             the text to learn, from now on
--     train MS               trains for so long         ->  trained STEPS LOSS
--     complete ID BYTES      the text before the cursor  ->  completion ID WORD WORD ...
--                            what could follow, the likeliest first
local dc, nn, optim = require "deepc", require "deepc.nn", require "deepc.optim"

local CONTEXT, BYTES, TEXT, BATCH = 16, 128, 1 << 16, 128

dc.seed(1)
local net = nn.Sequential {
  nn.Embedding(BYTES, 24), function(x) return x:reshape(-1, CONTEXT * 24) end,
  nn.Linear(CONTEXT * 24, 192), nn.ReLU(), nn.Linear(192, BYTES),
}
local opt = optim.Adam(net:parameters(), { lr = 2e-3 })
local text = dc.state(("i32[%d]"):format(TEXT))
local loss = dc.state "f32[]" -- a running mean

local step = dc.fn("step()", function()
  local start = (dc.rand(("f32[%d, 1]"):format(BATCH)) * (TEXT - CONTEXT - 1)):cast "i32"
  local seen = text:take(start + dc.iota(CONTEXT):reshape(1, CONTEXT), 1)
  local now = nn.cross_entropy(net(seen), text:take((start + CONTEXT):reshape(-1), 1))
  opt:step(now)
  loss:set(dc.where(loss:eq(0), now, loss * 0.95 + now * 0.05))
end)

local follow = dc.fn(("follow(seen: i32[1, %d]) -> f32[%d]"):format(CONTEXT, BYTES), function(seen)
  return net(seen):softmax(2):reshape(BYTES)
end)

local steps, known = 0, false

-- Bytes beyond ASCII are one. A short text is repeated, of a long one the last part counts.
local function learn(s)
  known = #s > 0
  if not known then return end
  s = s:sub(-TEXT)
  s = s:rep((TEXT + #s - 1) // #s):sub(1, TEXT)
  local list = {}
  for i = 1, TEXT do list[i] = math.min(s:byte(i), BYTES - 1) end
  text:set(dc.tensor(list, ("i32[%d]"):format(TEXT)))
end

local function train(ms)
  local until_ = dc.clock() + ms / 1000
  while known and dc.clock() < until_ do
    step()
    steps = steps + 1
    loss:item() -- the step has ended
  end
  return ("trained %d %.4f"):format(steps, loss:item())
end

local function probabilities(before)
  local seen = {}
  for i = 1, CONTEXT do seen[i] = math.min(before:byte(#before - CONTEXT + i) or 10, BYTES - 1) end
  return follow { seen }:totable()
end

local function is_word(byte)
  return string.char(byte):find "[%w_]" ~= nil
end

-- The likeliest bytes to the end of the word, behind the first one; and their probability.
local function word(before, byte, p)
  local out = string.char(byte)
  while #out < 32 do
    local all, best = probabilities(before .. out), 1
    for i = 2, BYTES do
      if all[i] > all[best] then best = i end
    end
    if not is_word(best - 1) then break end
    out, p = out .. string.char(best - 1), p * all[best]
  end
  return out, p
end

local function complete(id, before)
  local all, words = probabilities(before), {}
  for i = 1, BYTES do
    if is_word(i - 1) and all[i] > 0.02 then
      local w, p = word(before, i - 1, all[i])
      words[#words + 1] = { w = w, p = p }
    end
  end
  table.sort(words, function(a, b) return a.p > b.p end)
  local line = { "completion", id }
  for i = 1, math.min(#words, 5) do line[#line + 1] = words[i].w end
  return table.concat(line, " ")
end

local function answer(line)
  local n = line:match "^text (%d+)$"
  if n then return learn(io.read(tonumber(n)) or "") end
  local ms = line:match "^train (%d+)$"
  if ms then return train(tonumber(ms)) end
  local id, bytes = line:match "^complete (%d+) (%d+)$"
  if id then return complete(id, io.read(tonumber(bytes)) or "") end
  return "error what is '" .. line:sub(1, 40) .. "'?"
end

io.stdout:setvbuf "line"
for line in io.lines() do
  local reply = answer(line)
  if reply then print(reply) end
end
