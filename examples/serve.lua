-- Answers the lines of its input, several at once, with a model of the family of Llama.
--
--     deepc examples/serve.lua SmolLM2-135M-Instruct.Q4_1.gguf < questions.txt
--
-- The model is a .gguf file, or a folder with tokenizer.json. Each answer is printed when it is there.

local dc = require "deepc"
local models = require "deepc.models"
local serve = require "deepc.serve"
local tokenizers = require "deepc.tokenizers"

local options, words = dc.options({
  about = "Answers the lines of its input.",
  rest = "MODEL",
  { "slots", 8, "answers that are written at once", min = 1 },
  { "context", 1024, "tokens of a question and its answer, at most", min = 16 },
  { "max", 128, "tokens of an answer, at most", min = 1 },
  { "temperature", 0.0, "0: the likeliest token; more: drawn", min = 0 },
})

local path = words[1] or dc.fail("a model is needed: a .gguf file, or a folder with tokenizer.json")
local tok
if path:find "%.gguf$" then
  tok = tokenizers.from_gguf(select(2, dc.load(path, nil, { only = {} })))
else
  tok = tokenizers.load(path)
end
local server = serve.new(models.load(path), tok, { slots = options.slots, context = options.context,
  tokens = options.slots * options.context })

local count, from = 0, os.time()
for line in io.lines() do
  local text = tok:chat({ { role = "user", content = line } }, { add_generation_prompt = true })
  server:submit {
    prompt = tok:encode(text, { special = false }), max_tokens = options.max, temperature = options.temperature,
    on_done = function(request)
      count = count + #request.ids
      print(("> %s\n%s\n"):format(line, request:text()))
    end,
  }
end
server:run()
print(("%d tokens in %d s"):format(count, os.time() - from))
