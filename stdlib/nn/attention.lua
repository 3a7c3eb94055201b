-- Attention: queries that look at keys and mix values; heads of it with weights of their own.

local dc = require "deepc"
local nn = require "deepc.nn.class"
local _, core = ...

-- What a score becomes that does not count. Finite, so that a row in which none counts is no NaN.
local NEVER = -1e30

local function type_of(t)
  return ("%s[%s]"):format(t.dtype, core.sizes(t.shape))
end

-- ---- the function ----

local function check_operands(op, q, k, v)
  core.check_tensor(op, q, "q")
  core.check_tensor(op, k, "k")
  core.check_tensor(op, v, "v")
  local a, b, c = q.shape, k.shape, v.shape
  if not core.is_float(q.dtype) or q.dtype ~= k.dtype or q.dtype ~= v.dtype then
    core.fail("DTYPE", op, ("q is %s, k %s, v %s; floats of one dtype are needed"):format(type_of(q), type_of(k),
      type_of(v)), nil, "q", q, "k", k, "v", v)
  elseif #a < 2 or #b < 2 or #c < 2 then
    core.fail("DIMS", op, ("q is %s, k %s, v %s; [..., time, features] is needed"):format(type_of(q), type_of(k),
      type_of(v)), nil, "q", q, "k", k, "v", v)
  elseif a[#a] ~= b[#b] then
    core.fail("DIMS", op, ("features differ: q is %s, k %s"):format(type_of(q), type_of(k)), nil, "q", q, "k", k)
  elseif b[#b - 1] ~= c[#c - 1] then
    core.fail("DIMS", op, ("times differ: k is %s, v %s"):format(type_of(k), type_of(v)), nil, "k", k, "v", v)
  end
end

local function check_mask(op, mask, dtype, times)
  core.check_tensor(op, mask, "mask")
  if mask.dtype ~= "bool" and mask.dtype ~= dtype then
    core.fail("DTYPE", op, ("mask is %s; bools, true where a key counts, or %s, which is added, are needed"):format(
      type_of(mask), dtype), nil, "mask", mask)
  end
  local shape = mask.shape
  for i = 1, math.min(#shape, 2) do
    local size, want = shape[#shape + 1 - i], times[3 - i]
    if size ~= 1 and size ~= want then
      core.fail("DIMS", op, ("mask is %s, scores are [..., %s]"):format(type_of(mask), core.sizes(times)), nil, "mask",
        mask)
    end
  end
end

-- From so many queries on, each head of q reads the keys by itself, and attention is one kernel.
local MANY = 16

local function check_heads(op, q, k, v)
  local a, b, c = q.shape, k.shape, v.shape
  local n = #a
  if n < 3 or #b ~= n or #c ~= n or b[n - 2] ~= c[n - 2] or a[n - 2] % b[n - 2] ~= 0 then
    core.fail("DIMS", op, ("heads of q are no multiple of those of k and v: q is %s, k %s, v %s"):format(type_of(q),
      type_of(k), type_of(v)), nil, "q", q, "k", k, "v", v)
  end
end

-- A tensor [..., heads, time, n], a head each for so many of q.
local function repeated(x, each)
  local shape = { table.unpack(x.shape) }
  local n = #shape
  table.insert(shape, n - 1, 1)
  x = x:reshape(shape)
  shape[n - 1] = each
  x = x:expand(shape)
  table.remove(shape, n - 1)
  shape[n - 2] = shape[n - 2] * each
  return x:reshape(shape)
end

-- Heads of k each for several of q: q with those of one key side by side along the time.
local function join_heads(q, k)
  local joined = { table.unpack(q.shape) }
  local n = #joined
  local heads = k.shape[n - 2]
  joined[n - 2], joined[n - 1] = heads, joined[n - 1] * (joined[n - 2] // heads)
  return q:reshape(joined)
end

-- A tensor [..., heads of k, times of several heads, n] as [..., heads of q, time, n].
local function part_heads(y, q)
  local shape, last = { table.unpack(q.shape) }, y.shape
  shape[#shape] = last[#last]
  return y:reshape(shape)
end

-- Scores with what does not count at NEVER; and where a row has anything that counts, or nil where all have.
local function masked(score, mask, causal)
  local shape = score.shape
  local t, s = shape[#shape - 1], shape[#shape]
  local before = causal and dc.iota(s):reshape(1, -1):le(dc.iota(t):reshape(-1, 1))
  if not mask then
    return before and dc.where(before, score, -math.huge) or score, nil -- each row has one that counts
  elseif mask.dtype == "bool" then
    local counts = before and mask & before or mask
    return dc.where(counts, score, NEVER), counts:any { axis = -1, keep = true }
  end
  local counts = mask:gt(-math.huge)
  counts = before and counts & before or counts
  return dc.where(counts, score + mask, NEVER), counts:any { axis = -1, keep = true }
end

-- The result and the weights, both as f32 where q is a float of 16 bits.
local function attend(op, q, k, v, o)
  check_operands(op, q, k, v)
  local shape, mask = q.shape, o.mask
  if mask ~= nil then
    check_mask(op, mask, q.dtype, { shape[#shape - 1], k.shape[#shape - (#shape - #k.shape) - 1] })
  end
  local narrow, wide, keys, values, bias = core.in_f32(q, k, v, mask)
  local grouped = o.enable_gqa and q.shape[#shape - 2] ~= k.shape[#k.shape - 2]
  if grouped then
    check_heads(op, q, k, v)
    local times, each = shape[#shape - 1], shape[#shape - 2] // k.shape[#shape - 2]
    if math.type(times) == "integer" and times >= MANY then
      keys, values, grouped = repeated(keys, each), repeated(values, each), false
    end
  end
  local queries = grouped and join_heads(wide, keys) or wide
  local score = (queries * (o.scale or shape[#shape] ^ -0.5)):matmul(keys:transpose())
  score = grouped and part_heads(score, wide) or score
  local some
  score, some = masked(score, bias, o.causal)
  local weights = score:softmax(-1)
  weights = some and dc.where(some, weights, 0) or weights
  local dropped = o.dropout and o.dropout > 0 and core.drop(weights, o.dropout) or weights
  local y = (grouped and join_heads(dropped, keys) or dropped):matmul(values)
  return narrow, grouped and part_heads(y, wide) or y, weights
end

---softmax(q k^T * scale) v over the last two axes (Vaswani et al., 2017): each query, a row of q, is given a mean of
---the rows of v, by how well it fits the rows of k. q is [..., t, d], k [..., s, d], v [..., s, e], the result [...,
---t, e]. torch.nn.functional.scaled_dot_product_attention.
---
---    nn.scaled_dot_product_attention(dc.ones "f32[2, 4, 8]", dc.ones "f32[2, 6, 8]", dc.ones "f32[2, 6, 3]")
---
---Options: mask, bool[..., t, s], true where a key counts, or floats that are added to the scores; causal (false; true:
---key j counts for query i where j <= i), scale (1 / sqrt(d)), dropout (0, of the weights), enable_gqa (false; true:
---axis -3 are heads, and each of k and v serves as many of q as there are more of them (Ainslie et al., 2023)). A
---query for which no key counts is given zeros.
---
---Errors: DC0301 where sizes differ, DC0202 for dtypes, DC0101 for options.
---@param q deepc.Tensor floats
---@param k deepc.Tensor
---@param v deepc.Tensor
---@param options? table see above
---@return deepc.Tensor
function nn.scaled_dot_product_attention(q, k, v, options)
  local op = "scaled_dot_product_attention"
  core.options(op, options, "mask", "causal", "scale", "dropout", "enable_gqa")
  options = options or {}
  core.check_flags(op, options, "causal", "enable_gqa")
  if options.scale ~= nil then
    core.check_number(op, "scale", options.scale)
  end
  core.check_probability(op, "dropout", options.dropout)
  local narrow, y = attend(op, q, k, v, options)
  y = narrow(y)
  return y
end

-- ---- the layer ----

---Attention in heads (Vaswani et al., 2017): q, k and v are multiplied by matrices, cut into heads, each attended by
---itself, and what they give is multiplied by a last matrix. With k and v left out q attends to itself.
---
---    local attention = nn.MultiheadAttention(64, 8, { batch_first = true })
---    attention(dc.ones "f32[2, 10, 64]", nil, nil, { causal = true })
---
---y, weights = layer(q, k, v, options): q is [time, batch, size], k [times, batch, k_size], v [times, batch, v_size], y
---like q; without an axis for the batch there is none. Options of a call: mask, as of
---nn.scaled_dot_product_attention, that is true where a key counts, for [batch, heads, t, s] or its last axes; causal;
---key_padding_mask, bool[batch, s], true where a key is padding and does not count; need_weights (false; true: the
---second result, [batch, t, s], mean of the heads), average_weights (true; false: [batch, heads, t, s]).
---
---Options of the layer: bias (true), dropout (0, of the weights while training), kv_heads (as many as heads; fewer
---serve several of q each), k_size and v_size (size), batch_first (false; true: [batch, time, size]). Parameters have
---PyTorch's names, and are [inputs, outputs]; PyTorch's attn_mask of bools is the other way round.
---
---Errors: DC0101 for sizes and options; when it is called, DC0301 where sizes differ.
---@class deepc.nn.MultiheadAttention: deepc.nn.Layer
local MultiheadAttention = nn.class "nn.MultiheadAttention"
nn.MultiheadAttention = MultiheadAttention

local function linear_weight(inputs, outputs)
  local text = ("f32[%d, %d]"):format(inputs, outputs)
  local cell = dc.param(text, nn.init.xavier_uniform(text))
  core.is_linear[cell] = true
  return cell
end

---@param size integer of q and of the result, a multiple of heads
---@param heads integer
---@param options? table see above
function MultiheadAttention:init(size, heads, options)
  local op = "nn.MultiheadAttention"
  core.check_size(op, "the size", size)
  core.check_size(op, "the number of heads", heads)
  core.options(op, options, "bias", "dropout", "kv_heads", "k_size", "v_size", "batch_first")
  options = options or {}
  core.check_flags(op, options, "batch_first")
  core.check_probability(op, "dropout", options.dropout)
  local kv_heads, k_size, v_size = options.kv_heads or heads, options.k_size or size, options.v_size or size
  core.check_size(op, "kv_heads", kv_heads)
  core.check_size(op, "k_size", k_size)
  core.check_size(op, "v_size", v_size)
  if size % heads ~= 0 then
    core.fail("ARG", op, ("a size of %d does not divide into %d heads"):format(size, heads))
  elseif heads % kv_heads ~= 0 then
    core.fail("ARG", op, ("%d heads are no multiple of %d kv_heads"):format(heads, kv_heads))
  end
  local shared = size // heads * kv_heads
  self.size, self.heads, self.kv_heads, self.k_size, self.v_size = size, heads, kv_heads, k_size, v_size
  self.dropout, self.batch_first = options.dropout or 0, options.batch_first or false
  if k_size == size and v_size == size then
    self.in_proj_weight = linear_weight(size, size + 2 * shared)
  else
    self.q_proj_weight = linear_weight(size, size)
    self.k_proj_weight = linear_weight(k_size, shared)
    self.v_proj_weight = linear_weight(v_size, shared)
  end
  local bias = core.unless_false(op, options, "bias")
  if bias then
    self.in_proj_bias = dc.param(("f32[%d]"):format(size + 2 * shared))
  end
  self.out_proj = nn.Linear(size, size, { bias = bias })
  if bias then
    self.out_proj.bias:set(dc.zeros(self.out_proj.bias))
  end
end

function MultiheadAttention:describe()
  local kv = self.kv_heads ~= self.heads and (" (%d of k and v)"):format(self.kv_heads) or ""
  return ("nn.MultiheadAttention %d, %d heads%s"):format(self.size, self.heads, kv)
end

-- Columns of the projection: q, k and v as ranges.
local function ranges(layer)
  local n, m = layer.size, layer.size // layer.heads * layer.kv_heads
  return { { 1, n }, { n + 1, n + m }, { n + m + 1, n + 2 * m } }
end

-- x through columns first to last, of the parts that are together.
local function project(layer, x, columns, apart)
  local weight = apart and layer[apart] or layer.in_proj_weight
  local whole = columns[1] == 1 and columns[2] == weight:size(2) or apart
  local y = x:matmul(whole and weight or weight[{ {}, columns }])
  if layer.in_proj_bias then
    local all = columns[1] == 1 and columns[2] == #layer.in_proj_bias
    y = y + (all and layer.in_proj_bias or layer.in_proj_bias[{ columns }])
  end
  return y
end

-- Projected q, k and v, by as few products as there are different operands.
local function projections(layer, q, k, v)
  local columns = ranges(layer)
  local widths = {}
  for i, range in ipairs(columns) do
    widths[i] = range[2] - range[1] + 1
  end
  if layer.q_proj_weight then
    return project(layer, q, columns[1], "q_proj_weight"), project(layer, k, columns[2], "k_proj_weight"),
      project(layer, v, columns[3], "v_proj_weight")
  elseif rawequal(q, k) and rawequal(k, v) then
    return project(layer, q, { 1, columns[3][2] }):split(widths, -1)
  elseif rawequal(k, v) then
    local both = project(layer, k, { columns[2][1], columns[3][2] })
    return project(layer, q, columns[1]), both:split(2, -1)
  end
  return project(layer, q, columns[1]), project(layer, k, columns[2]), project(layer, v, columns[3])
end

local function check_input(layer, what, x, size, batched)
  local op = "nn.MultiheadAttention"
  core.check_tensor(op, x, what)
  local shape = x.shape
  if #shape ~= (batched and 3 or 2) or shape[#shape] ~= size then
    local needed = not batched and "[time, %d]" or layer.batch_first and "[batch, time, %d]" or "[time, batch, %d]"
    core.fail("DIMS", op, ("%s is %s; %s is needed"):format(what, type_of(x), needed:format(size)), nil, what, x)
  end
end

-- [batch, time, size] of what the layer is given.
local function batch_in_front(layer, x, batched)
  if not batched then
    return x:reshape(1, table.unpack(x.shape))
  end
  return layer.batch_first and x or x:transpose(1, 2)
end

-- The mask of keys and that of scores as one.
local function join_masks(o, dtype, k)
  local padding, mask = o.key_padding_mask, o.mask
  if padding == nil then
    return mask
  end
  local op = "nn.MultiheadAttention"
  core.check_tensor(op, padding, "key_padding_mask")
  local shape, batch, s = padding.shape, k.shape[1], k.shape[2]
  if padding.dtype ~= "bool" and padding.dtype ~= dtype then
    core.fail("DTYPE", op, ("key_padding_mask is %s; bool[batch, time of k], true where a key is padding, is needed")
      :format(type_of(padding)), nil, "key_padding_mask", padding)
  elseif #shape == 1 and batch == 1 and shape[1] == s then
    shape = { 1, s }
  end
  if #shape ~= 2 or shape[1] ~= batch or shape[2] ~= s then
    core.fail("DIMS", op, ("key_padding_mask is %s; [%s, %s] is needed"):format(type_of(padding), batch, s), nil,
      "key_padding_mask", padding)
  end
  padding = padding:reshape(shape[1], 1, 1, shape[2])
  local bools = padding.dtype == "bool"
  local counts = bools and ~padding or padding
  if mask == nil then
    return counts
  elseif bools == (mask.dtype == "bool") then
    return bools and mask & counts or mask + counts
  end
  local flags, added = bools and counts or mask, bools and mask or padding
  return dc.where(flags, added, -math.huge)
end

local function heads_of(x, n)
  local shape = x.shape
  return x:reshape(shape[1], shape[2], n, shape[3] // n):transpose(2, 3)
end

function MultiheadAttention:forward(q, k, v, options)
  local op = "nn.MultiheadAttention"
  if type(options) == "table" and options.attn_mask ~= nil then
    core.fail("ARG", op, "there is no option 'attn_mask'",
      "mask: true where a key counts, which is the other way round than attn_mask of bools: mask = ~attn_mask")
  end
  core.options(op, options, "mask", "causal", "key_padding_mask", "need_weights", "average_weights")
  options = options or {}
  core.check_flags(op, options, "causal", "need_weights", "average_weights")
  core.check_tensor(op, q, "q")
  k = k == nil and q or k
  v = v == nil and k or v
  local batched = #q.shape ~= 2
  check_input(self, "q", q, self.size, batched)
  check_input(self, "k", k, self.k_size, batched)
  check_input(self, "v", v, self.v_size, batched)
  local one, two = rawequal(q, k) and rawequal(k, v), rawequal(k, v)
  q = batch_in_front(self, q, batched)
  k = one and q or batch_in_front(self, k, batched)
  v = two and k or batch_in_front(self, v, batched)
  local mask = join_masks(options, q.dtype, k)
  local pq, pk, pv = projections(self, q, k, v)
  local shape = q.shape
  local narrow, y, weights = attend(op, heads_of(pq, self.heads), heads_of(pk, self.kv_heads),
    heads_of(pv, self.kv_heads), { mask = mask, causal = options.causal, dropout = self.training and self.dropout or 0,
      enable_gqa = true })
  y = self.out_proj(narrow(y):transpose(2, 3):reshape(shape))
  if not batched then
    y = y:reshape(shape[2], shape[3])
  elseif not self.batch_first then
    y = y:transpose(1, 2)
  end
  if not options.need_weights then
    return y
  end
  weights = narrow(options.average_weights == false and weights or weights:mean(2))
  return y, batched and weights or weights[1]
end
