-- A U-Net of diffusion models: what noise is in an image, at a time?

local dc = require "deepc"
local nn = require "deepc.nn"
local models = require "deepc.models.base"
local _, core = ...

-- ---- blocks ----

local Resnet = nn.class "models.UNetResnet"

function Resnet:init(b, c, inputs, outputs, scale)
  self.act, self.shift, self.scale, self.dropout = c.act, c.scale_shift, scale or 1, nn.Dropout(c.dropout)
  self.norm1 = b:made(nn.GroupNorm(c.groups, inputs, { eps = c.eps }))
  self.conv1 = b:conv(nn.Conv2d, inputs, outputs, 3, { padding = 1 })
  self.time_emb_proj = b:linear(c.time_size, (c.scale_shift and 2 or 1) * outputs)
  self.norm2 = b:made(nn.GroupNorm(c.groups, outputs, { eps = c.eps }))
  self.conv2 = b:conv(nn.Conv2d, outputs, outputs, 3, { padding = 1 })
  self.conv_shortcut = inputs ~= outputs and b:conv(nn.Conv2d, inputs, outputs, 1) or nil
end

function Resnet:forward(x, time)
  local by = self.time_emb_proj(self.act(time))
  by = by:reshape(by.shape[1], by.shape[2], 1, 1)
  local y = self.conv1(self.act(self.norm1(x)))
  if self.shift then
    local scale, shift = by:split(2, 2)
    y = self.norm2(y) * (scale + 1) + shift
  else
    y = self.norm2(y + by)
  end
  y = self.conv2(self.dropout(self.act(y)))
  return ((self.conv_shortcut and self.conv_shortcut(x) or x) + y) / self.scale
end

local Attention = nn.class "models.UNetAttention"

-- plain: without a norm.
function Attention:init(b, c, channels, scale, plain)
  self.heads, self.scale = channels // (c.head_size or channels), scale or 1
  self.group_norm = not plain and b:made(nn.GroupNorm(c.groups, channels, { eps = c.eps })) or nil
  self.to_q, self.to_k, self.to_v = b:linear(channels, channels), b:linear(channels, channels),
    b:linear(channels, channels)
  self.to_out = { b:linear(channels, channels) }
end

function Attention:forward(x)
  local b, channels, height, width = table.unpack(x.shape)
  local rows = (self.group_norm and self.group_norm(x) or x):reshape(b, channels, height * width):transpose(2, 3)
  local y = nn.scaled_dot_product_attention(core.to_heads(self.to_q(rows), self.heads),
    core.to_heads(self.to_k(rows), self.heads), core.to_heads(self.to_v(rows), self.heads))
  y = self.to_out[1](core.from_heads(y)):transpose(2, 3):reshape(b, channels, height, width)
  return (y + x) / self.scale
end

-- A half as large: by a stride, of images with margins on both sides or, where padding is 0, behind alone.
local Down = nn.class "models.UNetDownsample"

function Down:init(b, channels, padding)
  self.padding = padding
  self.conv = b:conv(nn.Conv2d, channels, channels, 3, { stride = 2, padding = padding })
end

function Down:forward(x)
  return self.conv(self.padding == 0 and x:pad { [3] = { 0, 1 }, [4] = { 0, 1 } } or x)
end

local Up = nn.class "models.UNetUpsample"

function Up:init(b, channels)
  self.conv = b:conv(nn.Conv2d, channels, channels, 3, { padding = 1 })
end

function Up:forward(x)
  return self.conv(nn.interpolate(x, { scale = 2, mode = "nearest" }))
end

local DownBlock = nn.class "models.UNetDownBlock"

function DownBlock:init(b, c, inputs, outputs, attends, last)
  local resnets, attentions = {}, {}
  for i = 1, c.layers_per_block do
    resnets[i] = Resnet(b, c, i == 1 and inputs or outputs, outputs)
    attentions[i] = attends and Attention(b, c, outputs) or nil
  end
  self.resnets, self.attentions = resnets, attends and attentions or nil
  self.downsamplers = not last and { Down(b, outputs, c.padding) } or nil
end

-- Appends what later blocks are given to `kept`.
function DownBlock:forward(x, time, kept)
  for i, resnet in ipairs(self.resnets) do
    x = resnet(x, time)
    x = self.attentions and self.attentions[i](x) or x
    kept[#kept + 1] = x
  end
  if self.downsamplers then
    x = self.downsamplers[1](x)
    kept[#kept + 1] = x
  end
  return x
end

local UpBlock = nn.class "models.UNetUpBlock"

function UpBlock:init(b, c, inputs, before, outputs, attends, last)
  local resnets, attentions, count = {}, {}, c.layers_per_block + 1
  for i = 1, count do
    local beside = i == count and inputs or outputs
    resnets[i] = Resnet(b, c, (i == 1 and before or outputs) + beside, outputs)
    attentions[i] = attends and Attention(b, c, outputs) or nil
  end
  self.resnets, self.attentions = resnets, attends and attentions or nil
  self.upsamplers = not last and { Up(b, outputs) } or nil
end

function UpBlock:forward(x, time, kept)
  for i, resnet in ipairs(self.resnets) do
    x = resnet(dc.concat({ x, table.remove(kept) }, 2), time)
    x = self.attentions and self.attentions[i](x) or x
  end
  return self.upsamplers and self.upsamplers[1](x) or x
end

-- ---- the model ----

---The noise in images at times of a diffusion (Ho et al., 2020), with the names of diffusers' UNet2DModel.
---
---    local noise = net(images, times)                     -- like images
---
---images are floats [batch, in_channels, height, width], whose height and width divide by 2 as often as there are
---blocks less one; times are numbers [batch]. Third, of a model with num_class_embeds, classes, integers [batch].
---@class deepc.models.UNet: deepc.nn.Layer
local UNet = nn.class "models.UNet"

function UNet:init(b, c)
  local sizes, n = c.channels, #c.channels
  self.config, self.act = c, c.act
  self.conv_in = b:conv(nn.Conv2d, c.inputs, sizes[1], 3, { padding = 1 })
  self.time_embedding = { linear_1 = b:linear(sizes[1], c.time_size), linear_2 = b:linear(c.time_size, c.time_size) }
  self.class_embedding = c.classes and b:embedding(c.classes, c.time_size) or nil
  local down, up = {}, {}
  for i = 1, n do
    down[i] = DownBlock(b, c, sizes[math.max(i - 1, 1)], sizes[i], c.down[i], i == n)
    local at = n + 1 - i
    up[i] = UpBlock(b, c, sizes[math.max(at - 1, 1)], sizes[math.min(at + 1, n)], sizes[at], c.up[i], i == n)
  end
  self.down_blocks, self.up_blocks = down, up
  self.mid_block = {
    resnets = { Resnet(b, c, sizes[n], sizes[n], c.mid_scale), Resnet(b, c, sizes[n], sizes[n], c.mid_scale) },
    attentions = c.mid_attends and { Attention(b, c, sizes[n], c.mid_scale, c.scale_shift) } or nil,
  }
  self.conv_norm_out = b:made(nn.GroupNorm(c.groups, sizes[1], { eps = c.eps }))
  self.conv_out = b:conv(nn.Conv2d, sizes[1], c.outputs, 3, { padding = 1 })
end

function UNet:describe()
  return "models.UNet " .. table.concat(self.config.channels, ", ")
end

-- Sines and cosines of times by waves of several lengths, [batch, size].
local function waves(c, times, dtype)
  local half, list = c.channels[1] // 2, {}
  for i = 1, half do
    list[i] = math.exp(-math.log(10000) * (i - 1) / (half - c.freq_shift))
  end
  local angle = times:cast("f32"):reshape(-1, 1) * core.anywhere(dc.tensor(list))
  local parts = c.cos_first and { angle:cos(), angle:sin() } or { angle:sin(), angle:cos() }
  return dc.concat(parts, 2):cast(dtype)
end

local function check_call(c, x, times)
  local op = "models.UNet"
  core.check_tensor(op, x, "images")
  core.check_tensor(op, times, "times")
  local shape, by = x.shape, 1 << (#c.channels - 1)
  if #shape ~= 4 or shape[2] ~= c.inputs or type(shape[3]) == "number" and shape[3] % by ~= 0
    or type(shape[4]) == "number" and shape[4] % by ~= 0 then
    core.fail("DIMS", op, ("images are %s[%s]; [batch, %d, height, width], multiples of %d, are needed"):format(x.dtype,
      core.sizes(shape), c.inputs, by), nil, "images", x)
  elseif #times.shape > 1 then
    core.fail("DIMS", op, ("times are %s[%s]; [batch] is needed"):format(times.dtype, core.sizes(times.shape)), nil,
      "times", times)
  end
end

function UNet:forward(x, times, classes)
  local c, parts = self.config, self.time_embedding
  check_call(c, x, times)
  if (classes ~= nil) ~= (self.class_embedding ~= nil) then
    core.fail("ARG", "models.UNet", self.class_embedding and "classes are needed, integers [batch]"
      or "the model has no classes")
  end
  local time = parts.linear_2(self.act(parts.linear_1(waves(c, times, x.dtype))))
  time = classes and time + self.class_embedding(classes) or time
  x = self.conv_in(c.centred and x * 2 - 1 or x)
  local kept = { x }
  for _, block in ipairs(self.down_blocks) do
    x = block(x, time, kept)
  end
  local mid = self.mid_block
  x = mid.resnets[1](x, time)
  x = mid.resnets[2](mid.attentions and mid.attentions[1](x) or x, time)
  for _, block in ipairs(self.up_blocks) do
    x = block(x, time, kept)
  end
  local y = self.conv_out(self.act(self.conv_norm_out(x)))
  return y
end

-- ---- configs ----

local DOWN = { DownBlock2D = false, AttnDownBlock2D = true }
local UP = { UpBlock2D = false, AttnUpBlock2D = true }

local function read_blocks(r, name, known, default, count)
  local list, attends = r:list(name) or default, {}
  if #list ~= count then
    r:refuse(name, list, ("%d types are needed, one for each of block_out_channels"):format(count))
  end
  for i, kind in ipairs(list) do
    if known[kind] == nil then
      r:refuse(("%s[%d]"):format(name, i - 1), kind, known == DOWN and "DownBlock2D and AttnDownBlock2D are known"
        or "UpBlock2D and AttnUpBlock2D are known")
    end
    attends[i] = known[kind]
  end
  return attends
end

local function read_channels(r)
  local list, channels = r:list "block_out_channels" or { 224, 448, 672, 896 }, {}
  for i, n in ipairs(list) do
    if math.type(n) ~= "integer" or n < 1 or n > 1 << 16 then
      r:refuse(("block_out_channels[%d]"):format(i - 1), n, "a number of channels is needed")
    end
    channels[i] = n
  end
  if #channels == 0 or #channels > 16 then
    r:refuse("block_out_channels", list, "1 to 16 numbers are needed")
  end
  return channels
end

---A U-Net by the names of diffusers' UNet2DModel, as of DDPM (Ho et al., 2020).
---
---    local net = models.unet { in_channels = 1, out_channels = 1, block_out_channels = { 8, 16 }, norm_num_groups = 4,
---      down_block_types = { "DownBlock2D", "AttnDownBlock2D" }, up_block_types = { "AttnUpBlock2D", "UpBlock2D" } }
---
---Fields besides: in_channels and out_channels (3), layers_per_block (2), norm_num_groups (32), norm_eps (1e-5), act_fn
---("silu"), attention_head_dim (8), downsample_padding (1), freq_shift (0), flip_sin_to_cos (true), center_input_sample
---(false), resnet_time_scale_shift ("default" or "scale_shift"), mid_block_scale_factor (1), add_attention (true),
---num_class_embeds, dropout (0).
---
---Errors: DC0101 for a field and for what the model cannot be.
---@param config table
---@param options? { dtype?: string } "f32", "f16" or "bf16"
---@return deepc.models.UNet
function models.unet(config, options)
  local op = "models.unet"
  local r = core.model_config(op, config)
  local channels = read_channels(r)
  local c = {
    channels = channels, inputs = r:size("in_channels", 3), outputs = r:size("out_channels", 3),
    layers_per_block = r:layers("layers_per_block", 2), groups = r:size("norm_num_groups", 32),
    eps = r:number("norm_eps", 1e-5, 0), act = r:choice("act_fn", "silu", core.model_activations),
    padding = r:number("downsample_padding", 1, 0), freq_shift = r:number("freq_shift", 0, 0),
    cos_first = r:flag("flip_sin_to_cos", true), centred = r:flag("center_input_sample", false),
    mid_scale = r:number("mid_block_scale_factor", 1, 1e-6), mid_attends = r:flag("add_attention", true),
    scale_shift = r:choice("resnet_time_scale_shift", "default", { default = false, scale_shift = true }),
    head_size = r:optional("attention_head_dim", 8), dropout = r:number("dropout", 0, 0),
    classes = config.num_class_embeds and r:number("num_class_embeds", nil, 1) or nil,
    time_size = r:size("time_embedding_dim", 4 * channels[1]),
  }
  c.down = read_blocks(r, "down_block_types", DOWN,
    { "DownBlock2D", "AttnDownBlock2D", "AttnDownBlock2D", "AttnDownBlock2D" }, #channels)
  c.up = read_blocks(r, "up_block_types", UP, { "AttnUpBlock2D", "AttnUpBlock2D", "AttnUpBlock2D", "UpBlock2D" },
    #channels)
  for name, wanted in pairs { time_embedding_type = "positional", mid_block_type = "UNetMidBlock2D",
    downsample_type = "conv", upsample_type = "conv" } do
    r:only(name, wanted, ("%s is known"):format(wanted))
  end
  r:only("class_embed_type", nil, "num_class_embeds alone is known")
  r:only("attn_norm_num_groups", nil, "norm_num_groups is that of all")
  for _, n in ipairs(channels) do
    r:divide("block_out_channels", n, c.groups)
  end
  local net = UNet(core.model_builder(op, options), c)
  return net
end

-- Names of earlier files.
local RENAMED = { query = "to_q", key = "to_k", value = "to_v", proj_attn = "to_out.0" }

core.model_types.UNet2DModel = {
  make = models.unet,
  rename = function(name)
    return (name:gsub("%.(%a+_?%a*)%.(%a+)$", function(part, what)
      return RENAMED[part] and name:find "attentions" and ("." .. RENAMED[part] .. "." .. what) or nil
    end))
  end,
}
