-- Rotary positions as configs of Hugging Face describe them: frequencies, and how contexts are made longer.

local dc = require "deepc"
require "deepc.models.base"
local _, core = ...

-- ---- frequencies ----

local makers = {}

local function plain(size, base)
  local list = {}
  for i = 1, size // 2 do
    list[i] = base ^ (-2 * (i - 1) / size)
  end
  return list
end

makers.default = function(_, size, base)
  return plain(size, base)
end

-- Positions divided by a factor (Chen et al., 2023).
makers.linear = function(r, size, base)
  local list, factor = plain(size, base), r:positive "factor"
  for i, f in ipairs(list) do
    list[i] = f / factor
  end
  return list
end

-- Each wave divided by a factor of its own.
makers.factors = function(r, size, base)
  local list, factors = plain(size, base), r:list "factors" or {}
  if #factors ~= #list then
    core.fail("ARG", r.op, ("%d factors of waves, %d are needed"):format(#factors, #list))
  end
  for i, f in ipairs(list) do
    list[i] = f / factors[i]
  end
  return list
end

-- Slow waves divided, fast ones kept, those between mixed (Llama 3.1).
makers.llama3 = function(r, size, base)
  local list, factor = plain(size, base), r:positive "factor"
  local low, high = r:positive "low_freq_factor", r:positive "high_freq_factor"
  local length = r:positive "original_max_position_embeddings"
  for i, f in ipairs(list) do
    local wave = 2 * math.pi / f
    if wave > length / low then
      list[i] = f / factor
    elseif wave >= length / high then
      local smooth = (length / wave - low) / (high - low)
      list[i] = (1 - smooth) * f / factor + smooth * f
    end
  end
  return list
end

local function magnitude(factor, by)
  return factor <= 1 and 1 or 0.1 * by * math.log(factor) + 1
end

-- Waves mixed by how often they turn within the length that was trained (Peng et al., 2023); what turns is scaled, too.
makers.yarn = function(r, size, base, most)
  local list, factor = plain(size, base), r:positive "factor"
  local length = r:number("original_max_position_embeddings", most, 1)
  local scale = r:number("attention_factor", nil, 0)
  local by, by_all = r:number("mscale", nil, 0), r:number("mscale_all_dim", nil, 0)
  if scale == nil then
    local both = by and by_all and by ~= 0 and by_all ~= 0
    scale = both and magnitude(factor, by) / magnitude(factor, by_all) or magnitude(factor, 1)
  end
  local function dim_of(turns)
    return size * math.log(length / (turns * 2 * math.pi)) / (2 * math.log(base))
  end
  local low, high = dim_of(r:number("beta_fast", 32, 0)), dim_of(r:number("beta_slow", 1, 0))
  if r:flag("truncate", true) then
    low, high = math.floor(low), math.ceil(high)
  end
  low, high = math.max(low, 0), math.min(high, size - 1)
  high = low == high and high + 0.001 or high
  for i, f in ipairs(list) do
    local slow = math.min(math.max((i - 1 - low) / (high - low), 0), 1)
    list[i] = f / factor * slow + f * (1 - slow)
  end
  return list, scale
end

-- What turns features of a head: { size, frequencies, scale, interleaved }. fields: rope_type, rope_theta and what that
-- type needs; most: the config's max_position_embeddings.
function core.read_rope(op, fields, head_dim, most)
  local r = core.model_config(op, fields)
  local base = r:number("rope_theta", 10000, 1e-6)
  local maker = r:choice("rope_type|type", "default", makers)
  local part = r:number("partial_rotary_factor", 1, 0)
  local size = math.floor(head_dim * part)
  if size < 2 or size % 2 ~= 0 or size > head_dim then
    core.fail("ARG", op, ("%d of %d features of a head are turned; an even number of them is needed"):format(size,
      head_dim))
  end
  local list, scale = maker(r, size, base, most)
  return { size = size, frequencies = list, scale = scale or 1, interleaved = r:flag("interleaved", false) }
end

-- ---- turning ----

-- Cosines and sines of positions, integers [time] or [batch, time]: f32[time, 1, size / 2], or a batch of such.
function core.rope_waves(rope, positions)
  local n, batch = #rope.frequencies, #positions.shape == 2
  local places = batch and positions:reshape(positions.shape[1], -1, 1, 1) or positions:reshape(-1, 1, 1)
  local angle = places:cast "f32" * core.anywhere(dc.tensor(rope.frequencies, ("f32[%d]"):format(n)))
  local c, s = angle:cos(), angle:sin()
  if rope.scale ~= 1 then
    c, s = c * rope.scale, s * rope.scale
  end
  return { cos = c, sin = s, rope = rope }
end

-- x, [batch, time, heads, features], turned. Features side by side come out as halves, like the others: scores of
-- queries and keys that are turned alike are the same in any order, and pairs are written one number at a time.
function core.turn(x, waves)
  local rope, c, s = waves.rope, waves.cos, waves.sin
  local narrow, wide = core.in_f32(x)
  local shape, rest = wide.shape, nil
  local size = rope.size
  if size < shape[4] then
    wide, rest = wide:split({ size, shape[4] - size }, -1)
  end
  local a, b
  if rope.interleaved then
    local two = wide:reshape(shape[1], shape[2], shape[3], size // 2, 2)
    a, b = two[{ {}, {}, {}, {}, 1 }], two[{ {}, {}, {}, {}, 2 }]
  else
    a, b = wide:split(2, -1)
  end
  return narrow(dc.concat({ a * c - b * s, b * c + a * s, rest }, -1))
end
