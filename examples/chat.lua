-- A chat with a model of the family of Llama, in a .gguf file or a folder of Hugging Face.
--
--     deepc examples/chat.lua SmolLM2-135M-Instruct.Q4_1.gguf "What is the capital of France?"
--
-- The model is a .gguf file, or a folder with tokenizer.json. Without a question it asks for one after the other, and
-- the model knows what was said before.

local dc = require "deepc"
local models = require "deepc.models"
local tokenizers = require "deepc.tokenizers"

local options, words = dc.options({
  about = "Answers questions.",
  rest = "MODEL [QUESTION]",
  { "system", "", "what the model is told about itself" },
  { "room", 2048, "tokens of the whole chat, at most", min = 16 },
  { "max", 256, "tokens of an answer, at most", min = 1 },
  { "temperature", 0.0, "0: the likeliest token; more: drawn", min = 0 },
  { "top-p", 0.95, "the likeliest tokens whose probabilities sum to it are drawn", min = 0, max = 1 },
  { "weights", "packed", "quantised weights of a .gguf file: multiplied as they are, or as floats",
    choices = { "packed", "floats" } },
  { "dtype", "f32", "what it computes in", choices = { "f32", "f16", "bf16" } },
})

local path = table.remove(words, 1)
if not path then
  dc.fail("a model is needed: a .gguf file, or a folder with tokenizer.json")
end
local tok
if path:find "%.gguf$" then
  local _, metadata = dc.load(path, nil, { only = {} })
  tok = tokenizers.from_gguf(metadata)
else
  tok = tokenizers.load(path)
end
local net = models.load(path, { dtype = options.dtype, packed = options.weights == "packed" })
local cache = net:cache(options.room)
local messages = options.system ~= "" and { { role = "system", content = options.system } } or {}

-- The chat so far as ids. What the cache has is the beginning of it, as long as nothing before has changed.
local known = {}

local function answer(question)
  messages[#messages + 1] = { role = "user", content = question }
  local ids = tok:encode(tok:chat(messages, { add_generation_prompt = true }), { special = false })
  local same = 0
  while same < cache:length() and same < #ids - 1 and ids[same + 1] == known[same + 1] do
    same = same + 1
  end
  cache:keep(same)
  if #ids + options.max > options.room then
    dc.fail(("the chat has %d tokens; there is room for %d (--room)"):format(#ids, options.room))
  end
  local stream, parts = tok:stream(), {}
  local new = models.generate(net, { table.unpack(ids, same + 1) }, {
    cache = cache, max = options.max, temperature = options.temperature, top_p = options.top_p, stop = tok.eos,
    on_token = function(token)
      parts[#parts + 1] = stream:put(token)
      io.write(parts[#parts])
      io.flush()
    end,
  })
  parts[#parts + 1] = stream:finish()
  print(parts[#parts])
  messages[#messages + 1] = { role = "assistant", content = table.concat(parts) }
  known = table.move(new, 1, #new, #ids + 1, ids)
end

if #words > 0 then
  answer(table.concat(words, " "))
else
  io.write "> "
  for line in io.lines() do
    answer(line)
    io.write "> "
  end
end
