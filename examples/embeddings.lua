-- Which of some sentences are about the same thing? Vectors of sentences by a BERT of sentence-transformers, and the
-- cosines of their angles.
--
-- The folder is that of sentence-transformers/all-MiniLM-L6-v2 at Hugging Face: config.json, model.safetensors,
-- tokenizer.json.

local dc = require "deepc"
local models = require "deepc.models"
local tokenizers = require "deepc.tokenizers"

local options, sentences = dc.options({
  about = "Compares sentences by a model of sentence-transformers.",
  rest = "[SENTENCE...]",
  { "model", (os.getenv "HOME" or ".") .. "/.cache/models/minilm", "the folder of all-MiniLM-L6-v2", value = "FOLDER" },
})
if #sentences < 2 then
  sentences = { "A man is eating food.", "A man is eating a piece of bread.", "The girl is carrying a baby.",
    "A man is riding a horse.", "A woman is playing the violin.", "Someone plays a string instrument." }
end

local ok, net = pcall(models.load, options.model)
if not ok and net.code == "DC0801" then
  dc.fail(("there is no model: %s"):format(net:match "[^\n]*"))
elseif not ok then
  error(net)
end

-- All sentences at once: behind the end of each come tokens that the mask leaves out.
local tokens, real = tokenizers.load(options.model):encode_batch(sentences, { max = 128 })

local cosines = dc.fn("cosines(ids: i32[n, t], mask: bool[n, t]) -> f32[n, n]", function(ids, mask)
  local vectors = net:embed(ids, { mask = mask })
  return vectors:matmul(vectors:transpose())
end)

for i, row in ipairs(cosines(tokens, real):totable()) do
  local best
  for k, cosine in ipairs(row) do
    if k ~= i and (not best or cosine > row[best]) then
      best = k
    end
  end
  print(("%-36s %.3f  %s"):format(sentences[i], row[best], sentences[best]))
end
