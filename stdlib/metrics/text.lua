-- Metrics of text: perplexity, and BLEU, which is computed by Lua over tables of tokens.

local nn = require "deepc.nn"
local metrics = require "deepc.metrics.class"
local _, core = ...

local class = core.metrics

-- ---- perplexity ----

local function loss_stats(logits, labels, options)
  local sum = nn.cross_entropy(logits, labels,
    { reduction = "sum", mask = options.mask, ignore_index = options.ignore_index })
  local kept = options.ignore_index and labels:ne(options.ignore_index)
  local mask = class.read_mask("perplexity", options.mask, labels, "labels")
  if kept and mask then
    kept = kept & mask
  end
  return { sum = sum.dtype == "f32" and sum or sum:cast "f32", count = class.count(labels, kept or mask) }
end

local function perplexity_of(sums)
  return (sums.sum / sums.count:cast "f32"):exp()
end

---exp of the mean cross entropy: over how many words a model is as unsure as over dice of so many sides.
---
---    metrics.perplexity(dc.zeros "f32[2, 10]", dc.tensor({ 3, 7 }, "i32"))
---
---Errors: as nn.cross_entropy.
---@param logits deepc.Tensor f32[..., classes]
---@param labels deepc.Tensor integers[...]
---@param options? { mask?: deepc.Tensor, ignore_index?: integer }
---@return deepc.Tensor # f32[]
function metrics.perplexity(logits, labels, options)
  options = class.options("perplexity", options, "mask", "ignore_index")
  return (perplexity_of(loss_stats(logits, labels, options)))
end

---metrics.perplexity over batches: exp of the mean over all words, not the mean of perplexities.
---
---    metrics.Perplexity()
---@class deepc.metrics.Perplexity: deepc.metrics.Metric
---@overload fun(): deepc.metrics.Perplexity
metrics.Perplexity = class.new { name = "metrics.Perplexity", sums = { { "sum", "f32[]" }, { "count", "i32[]" } },
  stats = function(_, logits, labels, options)
    return loss_stats(logits, labels, class.options("update", options, "mask", "ignore_index"))
  end,
  result = perplexity_of }

-- ---- BLEU ----

-- How often each sequence of n tokens occurs.
local function ngrams(tokens, n)
  local counts, total = {}, 0
  for i = 1, #tokens - n + 1 do
    local parts = {}
    for k = 1, n do
      local token = tokens[i + k - 1]
      parts[k] = math.type(token) == "float" and ("%.17g"):format(token) or tostring(token)
    end
    local key = table.concat(parts, "\0")
    counts[key], total = (counts[key] or 0) + 1, total + 1
  end
  return counts, total
end

-- Sequences of a candidate that references have, each as often as the reference that has it most often.
local function matches(candidate, references, n)
  local counts, total = ngrams(candidate, n)
  local most, found = {}, 0
  for _, reference in ipairs(references) do
    for key, count in pairs((ngrams(reference, n))) do
      most[key] = math.max(most[key] or 0, count)
    end
  end
  for key, count in pairs(counts) do
    found = found + math.min(count, most[key] or 0)
  end
  return found, total
end

-- The length of the reference that is closest to that of the candidate, the shorter of two.
local function closest(candidate, references)
  local best
  for _, reference in ipairs(references) do
    local n, off = #reference, math.abs(#reference - #candidate)
    local than = best and math.abs(best - #candidate)
    if not best or off < than or off == than and n < best then
      best = n
    end
  end
  return best
end

local function is_tokens(v)
  return type(v) == "table" and getmetatable(v) == nil and (#v == 0 or type(v[1]) ~= "table" and not core.kind(v[1]))
end

-- The references of a candidate: one text, or a list of them.
local function read_references(i, v)
  if is_tokens(v) and (#v > 0 or next(v) == nil) then
    return { v }
  elseif type(v) ~= "table" or #v == 0 then
    core.fail("ARG", "bleu", ("reference %d is %s; a table of tokens, or a list of these, is needed"):format(i,
      core.describe(v)))
  end
  for _, reference in ipairs(v) do
    if not is_tokens(reference) then
      core.fail("ARG", "bleu", ("reference %d has %s in it, no table of tokens"):format(i, core.describe(reference)))
    end
  end
  return v
end

local function check_bleu(candidates, references, options)
  core.options("bleu", options, "max_n", "smooth")
  local n = options and options.max_n or 4
  if type(candidates) ~= "table" or type(references) ~= "table" or core.kind(candidates) then
    core.fail("ARG", "bleu", "lists of texts are needed, tables of tokens: " .. core.describe(candidates) .. ", "
      .. core.describe(references), "x:totable() makes tables of a tensor")
  elseif #candidates ~= #references then
    core.fail("ARG", "bleu", ("%d candidates, references of %d"):format(#candidates, #references))
  elseif math.type(n) ~= "integer" or n < 1 then
    core.fail("ARG", "bleu", ("max_n is a positive integer, not %s"):format(core.shown(n)))
  end
  return n, options and options.smooth
end

---How much texts have in common with references (Papineni et al., 2002): the geometric mean of the parts of
---sequences of 1 to `max_n` tokens that a reference has, over all texts, times exp(1 - r / c) where texts are
---shorter than references. Tokens are strings or numbers. `smooth` adds 1 to counts of two tokens and more (Lin and
---Och, 2004), for single sentences. Computed by Lua.
---
---    metrics.bleu({ { "the", "cat", "sat" } }, { { "the", "cat", "sat", "down" } }, { max_n = 2 })
---
---Errors: DC0101 for what are no tables of tokens.
---@param candidates (string|integer)[][]
---@param references (string|integer)[][]|(string|integer)[][][] one for each candidate, or a list for each
---@param options? { max_n?: integer, smooth?: boolean } 4, false
---@return number # 0 to 1
---@return { precisions: number[], brevity_penalty: number, length: integer, reference_length: integer }
function metrics.bleu(candidates, references, options)
  local max_n, smooth = check_bleu(candidates, references, options)
  local found, total, length, wanted = {}, {}, 0, 0
  for n = 1, max_n do
    found[n], total[n] = 0, 0
  end
  for i, candidate in ipairs(candidates) do
    if not is_tokens(candidate) then
      core.fail("ARG", "bleu", ("candidate %d is %s, no table of tokens"):format(i, core.describe(candidate)))
    end
    local list = read_references(i, references[i])
    length, wanted = length + #candidate, wanted + closest(candidate, list)
    for n = 1, max_n do
      local a, b = matches(candidate, list, n)
      found[n], total[n] = found[n] + a, total[n] + b
    end
  end
  local precisions, sum = {}, 0
  for n = 1, max_n do
    local more = smooth and n > 1 and 1 or 0
    precisions[n] = total[n] + more > 0 and (found[n] + more) / (total[n] + more) or 0
    sum = sum + math.log(precisions[n]) / max_n
  end
  local penalty = length == 0 and 0 or length < wanted and math.exp(1 - wanted / length) or 1
  return penalty * math.exp(sum), { precisions = precisions, brevity_penalty = penalty, length = length,
    reference_length = wanted }
end
