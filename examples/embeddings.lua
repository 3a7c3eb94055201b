-- Which of some sentences are about the same thing? Vectors of sentences by a BERT of sentence-transformers, and the
-- cosines of their angles.
--
-- The folder is that of sentence-transformers/all-MiniLM-L6-v2 at Hugging Face: config.json, model.safetensors.

local dc = require "deepc"
local models = require "deepc.models"

local options = dc.options({
  about = "Compares sentences by a model of sentence-transformers.",
  { "model", (os.getenv "HOME" or ".") .. "/.cache/models/minilm", "the folder of all-MiniLM-L6-v2", value = "FOLDER" },
})

-- Sentences, and their tokens by the vocabulary of the model.
local sentences = {
  { "A man is eating food.", { 101, 1037, 2158, 2003, 5983, 2833, 1012, 102 } },
  { "A man is eating a piece of bread.", { 101, 1037, 2158, 2003, 5983, 1037, 3538, 1997, 7852, 1012, 102 } },
  { "The girl is carrying a baby.", { 101, 1996, 2611, 2003, 4755, 1037, 3336, 1012, 102 } },
  { "A man is riding a horse.", { 101, 1037, 2158, 2003, 5559, 1037, 3586, 1012, 102 } },
  { "A woman is playing the violin.", { 101, 1037, 2450, 2003, 2652, 1996, 6710, 1012, 102 } },
  { "Someone plays a string instrument.", { 101, 2619, 3248, 1037, 5164, 6602, 1012, 102 } },
}

local ok, net = pcall(models.load, options.model)
if not ok and net.code == "DC0801" then
  dc.fail(("there is no model: %s"):format(net:match "[^\n]*"))
elseif not ok then
  error(net)
end

-- All sentences at once: behind the end of each come tokens that the mask leaves out.
local longest, tokens, real = 0, {}, {}
for _, sentence in ipairs(sentences) do
  longest = math.max(longest, #sentence[2])
end
for i, sentence in ipairs(sentences) do
  tokens[i], real[i] = {}, {}
  for k = 1, longest do
    tokens[i][k], real[i][k] = sentence[2][k] or 0, sentence[2][k] and 1 or 0
  end
end

local cosines = dc.fn("cosines(ids: i32[n <= 64, t <= 128], mask: i32[n, t]) -> f32[n, n]", function(ids, mask)
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
  print(("%-36s %.3f  %s"):format(sentences[i][1], row[best], sentences[best][1]))
end
