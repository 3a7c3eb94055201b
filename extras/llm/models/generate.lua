-- models.generate: a prompt, and tokens after it.

local dc = require "deepc"
local models = require "deepc.models.base"
require "deepc.models.decoder"
require "deepc.models.sampling"
local _, core = ...

-- Numbers from 0 to below 1 by a seed (Steele, Lea and Flood, 2014), the same on every device.
local function uniform(seed)
  local state = seed
  return function()
    state = state + 0x9E3779B97F4A7C15
    local z = (state ~ (state >> 30)) * 0xBF58476D1CE4E5B9
    z = (z ~ (z >> 27)) * 0x94D049BB133111EB
    z = z ~ (z >> 31)
    return (z >> 40) / (1 << 24)
  end
end

core.uniform = uniform

local function read_stop(op, net, stop)
  local set, list = {}, stop
  if stop == nil then
    list = net.config.stop or {}
  elseif math.type(stop) == "integer" then
    list = { stop }
  end
  if type(list) ~= "table" or core.kind(list) then
    core.fail("ARG", op, ("stop is a token or a list of tokens, not %s"):format(core.shown(stop)))
  end
  for _, token in ipairs(list) do
    if math.type(token) ~= "integer" then
      core.fail("ARG", op, ("stop has %s; tokens are whole numbers"):format(core.shown(token)))
    end
    set[token] = true
  end
  return set
end

-- Lists of several lengths with padding in front of the shorter ones, and how much of it; nil where all are of one.
local function pad(ids)
  local longest, shortest, padding, lists = 0, math.huge, {}, {}
  for _, list in ipairs(ids) do
    if type(list) ~= "table" then
      return ids, nil
    end
    longest, shortest = math.max(longest, #list), math.min(shortest, #list)
  end
  if longest == shortest or shortest == 0 then
    return ids, nil
  end
  for i, list in ipairs(ids) do
    padding[i], lists[i] = longest - #list, {}
    for k = 1, longest do
      lists[i][k] = list[k - padding[i]] or list[1]
    end
  end
  return lists, padding
end

-- Prompts as a tensor, and whether it is one list of numbers.
local function read_prompt(op, ids)
  local single = type(ids) == "table" and not core.kind(ids) and type(ids[1]) ~= "table"
  if single and #ids == 0 then
    core.fail("ARG", op, "the prompt has no tokens")
  end
  local batch = not single and (core.kind(ids) and ids.shape[1] or type(ids) == "table" and #ids) or 1
  if core.kind(ids) and #ids.shape == 1 then
    ids, single, batch = ids:reshape(1, -1), true, 1
  end
  return core.read_token_ids(op, ids, batch), batch, single
end

-- What keys and values are kept as, by the option cache where that is no cache.
local function read_kept(op, net, cache)
  if cache == nil then
    return nil
  elseif type(cache) ~= "string" then
    core.fail("ARG", op, ('cache is one of net:cache, or "i8", "f16", "bf16" or "f32", not %s'):format(
      core.describe(cache)))
  elseif not net.config.head_dim then
    core.fail("ARG", op, ("cache is '%s': %s keeps something else than keys and values of tokens"):format(cache,
      net:describe()))
  end
  return core.read_kept_dtype(op, "cache", cache, net)
end

local OPTIONS = { "max", "temperature", "top_k", "top_p", "min_p", "repetition_penalty", "seed", "stop", "on_token",
  "cache" }

-- Adds chosen tokens to their texts; returns how many of these go on.
local function add(run, texts, over, tokens, i)
  local open = 0
  for row, token in ipairs(tokens) do
    over[row] = over[row] or run.stop[token] or false
    if not over[row] then
      if token < 0 then
        core.fail("ARG", "models.generate", core.nan_logits:format(i))
      end
      table.insert(texts[row], token)
      over[row] = run.on_token ~= nil and run.on_token(token, i, row) == false
    end
    open = open + (over[row] and 0 or 1)
  end
  return open
end

-- Tokens one after the other until all texts have ended, as a list for each text.
local function write(net, cache, logits, run)
  local texts, over, u = {}, {}, {}
  for row = 1, run.batch do
    texts[row] = {}
  end
  for i = 1, run.max do
    for row = 1, run.batch do
      u[row] = run.random()
    end
    local tokens = run.chooser.choose(logits, core.anywhere(dc.tensor(u)))
    if add(run, texts, over, tokens:totable(), i) == 0 or i == run.max then
      break
    end
    logits = net:step(tokens:reshape(run.batch, 1), cache)
  end
  return texts
end

---Writes on behind a prompt: the model reads it, and then one token after the other is chosen and read. The choice is
---the likeliest token unless there is a temperature.
---
---    local net = models.llama { vocab_size = 100, hidden_size = 16, intermediate_size = 32, num_hidden_layers = 1,
---      num_attention_heads = 2 }
---    local tokens = models.generate(net, { 3, 1, 4 }, { max = 20, temperature = 0.8, top_p = 0.95, seed = 1 })
---
---Options: max (128), how many tokens at most; temperature (0: the likeliest; 1 where one of the next three is given),
---which divides logits; top_k, that many likeliest tokens count; top_p, the likeliest whose probabilities sum to it
---(Holtzman et al., 2020); min_p, those with at least this part of the largest probability; repetition_penalty, by
---which logits of tokens of the prompt and of the text are made smaller (Keskar et al., 2019); seed, of the draws:
---without one they follow the generator of the script; stop, a token or a list of them that end the text and are not
---returned (eos_token_id of the config); on_token(token, i, row), called with each token, ends the text by returning
---false; cache, of net:cache, to go on where it ends, or what keys and values are kept as ("i8", "f16", "bf16", "f32";
---the model's own dtype): "i8" takes a quarter of the memory of f32, and less time behind many tokens.
---
---Errors: DC0101 for options and for what is no model that writes, where a cache has too little room, and where logits
---are NaN.
---@param net deepc.models.Decoder
---@param ids deepc.Tensor|integer[]|integer[][] a prompt, or several
---@param options? table see above
---@return integer[]|integer[][] # the tokens behind the prompt; a list for each of several
function models.generate(net, ids, options)
  local op = "models.generate"
  core.refuse_tracing(op)
  core.options(op, options, table.unpack(OPTIONS))
  options = options or {}
  if not core.is_layer(net) or not net.step or not net.cache then
    core.fail("ARG", op, ("a model that writes is needed, not %s"):format(core.describe(net)), "models.load(path)")
  elseif options.on_token ~= nil and not core.control_callable(options.on_token) then
    core.fail("ARG", op, "on_token is a function, not " .. core.describe(options.on_token))
  end
  local max = options.max or 128
  core.check_size(op, "max", max)
  local padding
  if type(ids) == "table" and not core.kind(ids) then
    ids, padding = pad(ids)
  end
  local prompt, batch, single = read_prompt(op, ids)
  local n = prompt.shape[2]
  local vocab = net.config.vocab_size
  local settings, stop = core.read_sampling(op, options, vocab), read_stop(op, net, options.stop)
  local cache = core.is_cache(options.cache) and options.cache
    or net:cache(n + max, { batch = batch, padded = padding and true, dtype = read_kept(op, net, options.cache) })
  local seed = options.seed
  if seed == nil then
    seed = settings.temperature > 0 and dc.randint("i32[]", { high = 1 << 30 }):item() or 0
  elseif math.type(seed) ~= "integer" then
    core.fail("ARG", op, ("seed is a whole number, not %s"):format(core.shown(seed)))
  end
  local chooser = core.sampler(settings, batch, vocab, net.dtype, core.device_of(net))
  chooser.read(prompt)
  local texts = write(net, cache, net:step(prompt, cache, padding and { padding = padding }),
    { batch = batch, max = max, stop = stop,
    chooser = chooser, random = uniform(seed), on_token = options.on_token })
  return single and texts[1] or texts
end
