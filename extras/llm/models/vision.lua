-- Networks for images by the names of torchvision: ResNet, MobileNet V2 and V3, vision transformers.

local dc = require "deepc"
local nn = require "deepc.nn"
local models = require "deepc.models.base"
local _, core = ...

-- What they have in common: classes from [batch, 3, height, width].
local function check_images(op, x, channels)
  core.check_tensor(op, x)
  if #x.shape ~= 4 or x.shape[2] ~= channels then
    core.fail("DIMS", op, ("x is %s[%s]; [batch, %d, height, width] is needed"):format(x.dtype, core.sizes(x.shape),
      channels), nil, "x", x)
  end
end

local function cast(net, op, options)
  core.options(op, options, "dtype")
  local dtype = core.model_builder(op, options).dtype
  return dtype == "f32" and net or net:cast(dtype)
end

-- ---- ResNet ----

local Block = nn.class "models.ResNetBlock"

-- c: bottleneck, groups, width_per_group.
function Block:init(inputs, planes, stride, c)
  local outputs = planes * (c.bottleneck and 4 or 1)
  if c.bottleneck then
    local width = planes * c.width_per_group // 64 * c.groups
    self.conv1, self.bn1 = nn.Conv2d(inputs, width, 1, { bias = false }), nn.BatchNorm2d(width)
    self.conv2 = nn.Conv2d(width, width, 3, { stride = stride, padding = 1, groups = c.groups, bias = false })
    self.bn2 = nn.BatchNorm2d(width)
    self.conv3, self.bn3 = nn.Conv2d(width, outputs, 1, { bias = false }), nn.BatchNorm2d(outputs)
  else
    self.conv1 = nn.Conv2d(inputs, planes, 3, { stride = stride, padding = 1, bias = false })
    self.bn1 = nn.BatchNorm2d(planes)
    self.conv2, self.bn2 = nn.Conv2d(planes, planes, 3, { padding = 1, bias = false }), nn.BatchNorm2d(planes)
  end
  if stride ~= 1 or inputs ~= outputs then
    self.downsample = nn.Sequential { nn.Conv2d(inputs, outputs, 1, { stride = stride, bias = false }),
      nn.BatchNorm2d(outputs) }
  end
end

function Block:forward(x)
  local y = self.bn2(self.conv2(self.bn1(self.conv1(x)):relu()))
  if self.conv3 then
    y = self.bn3(self.conv3(y:relu()))
  end
  return (y + (self.downsample and self.downsample(x) or x)):relu()
end

---Classes of images, by a residual network with the names of torchvision's.
---
---    local logits = net(images)                           -- [batch, num_classes]
---
---images are floats [batch, 3, height, width], normalised as the weights want it.
---@class deepc.models.ResNet: deepc.nn.Layer
local ResNet = nn.class "models.ResNet"

local DEPTHS = {
  [18] = { 2, 2, 2, 2 }, [34] = { 3, 4, 6, 3 }, [50] = { 3, 4, 6, 3 }, [101] = { 3, 4, 23, 3 }, [152] = { 3, 8, 36, 3 },
}

function ResNet:init(c)
  local inputs = c.width
  self.depth, self.channels = c.depth, c.channels
  self.conv1 = nn.Conv2d(c.channels, inputs, 7, { stride = 2, padding = 3, bias = false })
  self.bn1, self.maxpool = nn.BatchNorm2d(inputs), nn.MaxPool2d(3, { stride = 2, padding = 1 })
  for i, count in ipairs(DEPTHS[c.depth]) do
    local planes, blocks = c.width << (i - 1), {}
    for k = 1, count do
      blocks[k] = Block(inputs, planes, k == 1 and i > 1 and 2 or 1, c)
      inputs = planes * (c.bottleneck and 4 or 1)
    end
    self["layer" .. i] = nn.Sequential(blocks)
  end
  self.fc = nn.Linear(inputs, c.classes)
end

function ResNet:describe()
  return ("models.ResNet %d"):format(self.depth)
end

function ResNet:forward(x)
  check_images("models.ResNet", x, self.channels)
  x = self.maxpool(self.bn1(self.conv1(x)):relu())
  x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
  local y = self.fc(x:mean { 3, 4 })
  return y
end

---A residual network (He et al., 2016), as torchvision.models.resnet18 to resnet152; those with a bottleneck have the
---stride in their second convolution. ResNeXt and wide ones by groups and width_per_group (32, 4; 1, 128).
---
---    local net = models.resnet { depth = 18, num_classes = 10 }
---
---Fields of the config: depth (18, 34, 50, 101 or 152), num_classes (1000), groups (1), width_per_group (64), width
---(64, channels of the first convolution), num_channels (3).
---
---Weights of torchvision, in a safetensors file, are loaded by dc.load(path, net, { first = 0, linear = "out, in" }).
---
---Errors: DC0101 for a field.
---@param config table
---@param options? { dtype?: string } "f32", "f16" or "bf16"
---@return deepc.models.ResNet
function models.resnet(config, options)
  local op = "models.resnet"
  local r = core.model_config(op, config)
  local c = { depth = r:size "depth", classes = r:size("num_classes", 1000), groups = r:size("groups", 1),
    width_per_group = r:size("width_per_group", 64), width = r:size("width", 64), channels = r:size("num_channels", 3) }
  if not DEPTHS[c.depth] then
    r:refuse("depth", c.depth, "18, 34, 50, 101 and 152 are known")
  end
  c.bottleneck = c.depth >= 50
  if not c.bottleneck and (c.groups ~= 1 or c.width_per_group ~= 64) then
    r:refuse("groups", c.groups, "groups are of depths from 50 on")
  end
  local net = cast(ResNet(c), op, options)
  return net
end

-- ---- MobileNet ----

-- The multiple of 8 that is nearest, and not more than a tenth below.
local function rounded(v)
  local n = math.max(8, (v + 4) // 8 * 8)
  return math.tointeger(n < 0.9 * v and n + 8 or n)
end

-- A convolution, a norm and an activation, or none.
local function conv_norm(inputs, outputs, window, act, o)
  o = o or {}
  local list = {
    nn.Conv2d(inputs, outputs, window, { stride = o.stride, padding = (window - 1) // 2, groups = o.groups,
      bias = false }),
    nn.BatchNorm2d(outputs, { eps = o.eps, momentum = o.momentum }),
  }
  list[3] = act and act() or nil
  return nn.Sequential(list)
end

-- Channels weighed by what a small network makes of their means.
local Squeeze = nn.class "models.SqueezeExcitation"

function Squeeze:init(channels, squeezed)
  self.fc1, self.fc2 = nn.Conv2d(channels, squeezed, 1), nn.Conv2d(squeezed, channels, 1)
end

function Squeeze:forward(x)
  local scale = self.fc2(self.fc1(x:mean { axis = { 3, 4 }, keep = true }):relu())
  return nn.hardsigmoid(scale) * x
end

local Inverted = nn.class "models.InvertedResidual"

-- Its layers stand under a name, "conv" in V2 and "block" in V3.
function Inverted:init(name, list, added)
  self[name], self.part, self.added = nn.Sequential(list), name, added
end

function Inverted:forward(x)
  local y = self[self.part](x)
  return self.added and x + y or y
end

---Classes of images, by a small network with the names of torchvision's.
---@class deepc.models.MobileNet: deepc.nn.Layer
local MobileNet = nn.class "models.MobileNet"

function MobileNet:init(version, features, classifier)
  self.version, self.features, self.classifier = version, nn.Sequential(features), nn.Sequential(classifier)
end

function MobileNet:describe()
  return "models.MobileNet " .. self.version
end

function MobileNet:forward(x)
  check_images("models.MobileNet", x, 3)
  local y = self.classifier(self.features(x):mean { 3, 4 })
  return y
end

local function block_v2(inputs, outputs, stride, expand)
  local hidden, list = inputs * expand, {}
  if expand ~= 1 then
    list[1] = conv_norm(inputs, hidden, 1, nn.ReLU6)
  end
  list[#list + 1] = conv_norm(hidden, hidden, 3, nn.ReLU6, { stride = stride, groups = hidden })
  list[#list + 1] = nn.Conv2d(hidden, outputs, 1, { bias = false })
  list[#list + 1] = nn.BatchNorm2d(outputs)
  return Inverted("conv", list, stride == 1 and inputs == outputs)
end

local V2 = { -- expansion, channels, how many, stride
  { 1, 16, 1, 1 }, { 6, 24, 2, 2 }, { 6, 32, 3, 2 }, { 6, 64, 4, 2 }, { 6, 96, 3, 1 }, { 6, 160, 3, 2 },
    { 6, 320, 1, 1 },
}

---MobileNet V2 (Sandler et al., 2018), as torchvision.models.mobilenet_v2.
---
---    local net = models.mobilenet_v2 { num_classes = 10, width_mult = 0.5 }
---
---Fields of the config: num_classes (1000), width_mult (1), dropout (0.2). dc.load reads torchvision's weights as for
---models.resnet.
---
---Errors: DC0101 for a field.
---@param config? table
---@param options? { dtype?: string } "f32", "f16" or "bf16"
---@return deepc.models.MobileNet
function models.mobilenet_v2(config, options)
  local op = "models.mobilenet_v2"
  local r = core.model_config(op, config == nil and {} or config)
  local by, classes, dropout = r:number("width_mult", 1, 0.01), r:size("num_classes", 1000), r:number("dropout", 0.2, 0)
  local inputs = rounded(32 * by)
  local last = rounded(1280 * math.max(1, by))
  local features = { conv_norm(3, inputs, 3, nn.ReLU6, { stride = 2 }) }
  for _, row in ipairs(V2) do
    local outputs = rounded(row[2] * by)
    for i = 1, row[3] do
      features[#features + 1] = block_v2(inputs, outputs, i == 1 and row[4] or 1, row[1])
      inputs = outputs
    end
  end
  features[#features + 1] = conv_norm(inputs, last, 1, nn.ReLU6)
  local net = cast(MobileNet("V2", features, { nn.Dropout(dropout), nn.Linear(last, classes) }), op, options)
  return net
end

local V3 = { -- window, expanded channels, channels, weighed, hard swish, stride
  large = { last = 1280,
    { 3, 16, 16, false, false, 1 }, { 3, 64, 24, false, false, 2 }, { 3, 72, 24, false, false, 1 },
    { 5, 72, 40, true, false, 2 }, { 5, 120, 40, true, false, 1 }, { 5, 120, 40, true, false, 1 },
    { 3, 240, 80, false, true, 2 }, { 3, 200, 80, false, true, 1 }, { 3, 184, 80, false, true, 1 },
    { 3, 184, 80, false, true, 1 }, { 3, 480, 112, true, true, 1 }, { 3, 672, 112, true, true, 1 },
    { 5, 672, 160, true, true, 2 }, { 5, 960, 160, true, true, 1 }, { 5, 960, 160, true, true, 1 } },
  small = { last = 1024,
    { 3, 16, 16, true, false, 2 }, { 3, 72, 24, false, false, 2 }, { 3, 88, 24, false, false, 1 },
    { 5, 96, 40, true, true, 2 }, { 5, 240, 40, true, true, 1 }, { 5, 240, 40, true, true, 1 },
    { 5, 120, 48, true, true, 1 }, { 5, 144, 48, true, true, 1 }, { 5, 288, 96, true, true, 2 },
    { 5, 576, 96, true, true, 1 }, { 5, 576, 96, true, true, 1 } },
}

local NORM = { eps = 1e-3, momentum = 0.01 }

local function block_v3(inputs, row, by)
  local hidden, outputs, act = rounded(row[2] * by), rounded(row[3] * by), row[5] and nn.Hardswish or nn.ReLU
  local list = {}
  if hidden ~= inputs then
    list[1] = conv_norm(inputs, hidden, 1, act, NORM)
  end
  list[#list + 1] = conv_norm(hidden, hidden, row[1], act, { stride = row[6], groups = hidden, eps = 1e-3,
    momentum = 0.01 })
  if row[4] then
    list[#list + 1] = Squeeze(hidden, rounded(hidden // 4))
  end
  list[#list + 1] = conv_norm(hidden, outputs, 1, nil, NORM)
  return Inverted("block", list, row[6] == 1 and inputs == outputs), outputs
end

---MobileNet V3 (Howard et al., 2019), as torchvision.models.mobilenet_v3_large and mobilenet_v3_small.
---
---    local net = models.mobilenet_v3 { size = "small", num_classes = 10 }
---
---Fields of the config: size ("large" or "small"), num_classes (1000), width_mult (1), dropout (0.2). dc.load reads
---torchvision's weights as for models.resnet.
---
---Errors: DC0101 for a field.
---@param config? table
---@param options? { dtype?: string } "f32", "f16" or "bf16"
---@return deepc.models.MobileNet
function models.mobilenet_v3(config, options)
  local op = "models.mobilenet_v3"
  local r = core.model_config(op, config == nil and {} or config)
  local rows, name = r:choice("size", "large", V3)
  local by, classes, dropout = r:number("width_mult", 1, 0.01), r:size("num_classes", 1000), r:number("dropout", 0.2, 0)
  local inputs, last = rounded(16 * by), rounded(rows.last * by)
  local features = { conv_norm(3, inputs, 3, nn.Hardswish, { stride = 2, eps = 1e-3, momentum = 0.01 }) }
  for _, row in ipairs(rows) do
    features[#features + 1], inputs = block_v3(inputs, row, by)
  end
  features[#features + 1] = conv_norm(inputs, 6 * inputs, 1, nn.Hardswish, NORM)
  local net = cast(MobileNet("V3 " .. name, features, { nn.Linear(6 * inputs, last), nn.Hardswish(),
    nn.Dropout(dropout),
    nn.Linear(last, classes) }), op, options)
  return net
end

-- ---- vision transformers ----

local Encoder = nn.class "models.VisionEncoderBlock"

function Encoder:init(c)
  local n = c.hidden_dim
  self.ln_1, self.ln_2 = nn.LayerNorm(n, { eps = 1e-6 }), nn.LayerNorm(n, { eps = 1e-6 })
  self.self_attention = nn.MultiheadAttention(n, c.num_heads, { dropout = c.attention_dropout, batch_first = true })
  self.dropout = nn.Dropout(c.dropout)
  self.mlp = nn.Sequential { nn.Linear(n, c.mlp_dim), nn.GELU(), nn.Dropout(c.dropout), nn.Linear(c.mlp_dim, n),
    nn.Dropout(c.dropout) }
end

function Encoder:forward(x)
  x = x + self.dropout((self.self_attention(self.ln_1(x))))
  return x + self.mlp(self.ln_2(x))
end

---Classes of images, by a transformer over patches with the names of torchvision's VisionTransformer.
---@class deepc.models.VisionTransformer: deepc.nn.Layer
local VisionTransformer = nn.class "models.VisionTransformer"

function VisionTransformer:init(c)
  local n, patches = c.hidden_dim, (c.image_size // c.patch_size) ^ 2 // 1 | 0
  self.image_size, self.patch_size, self.size = c.image_size, c.patch_size, n
  self.conv_proj = nn.Conv2d(3, n, c.patch_size, { stride = c.patch_size })
  self.class_token = dc.param(("f32[1, 1, %d]"):format(n))
  local layers = {}
  for i = 1, c.num_layers do
    layers[("encoder_layer_%d"):format(i - 1)] = Encoder(c)
  end
  self.count = c.num_layers
  local positions = ("f32[1, %d, %d]"):format(patches + 1, n)
  self.encoder = { pos_embedding = dc.param(positions, dc.randn(positions, { std = 0.02 })), layers = layers,
    ln = nn.LayerNorm(n, { eps = 1e-6 }) }
  self.dropout, self.heads = nn.Dropout(c.dropout), { head = nn.Linear(n, c.num_classes) }
end

function VisionTransformer:describe()
  return ("models.VisionTransformer %d, %d layers"):format(self.size, self.count)
end

-- Vectors of patches, [batch, patches, size], of images of the one size that positions are for.
function core.patch_vectors(op, conv, x, channels, size)
  check_images(op, x, channels)
  local shape = x.shape
  if shape[3] ~= size[1] or shape[4] ~= size[2] then
    core.fail("DIMS", op, ("x is %s[%s]; images of %d x %d are needed"):format(x.dtype, core.sizes(shape), size[1],
      size[2]),
      nil, "x", x)
  end
  return conv(x):flatten(3):transpose(2, 3)
end

function VisionTransformer:forward(x)
  local size = { self.image_size, self.image_size }
  local patches = core.patch_vectors("models.VisionTransformer", self.conv_proj, x, 3, size)
  local y = dc.concat({ self.class_token:expand(x.shape[1], 1, self.size), patches }, 2)
  y = self.dropout(y + self.encoder.pos_embedding)
  for i = 1, self.count do
    y = self.encoder.layers[("encoder_layer_%d"):format(i - 1)](y)
  end
  y = self.heads.head(self.encoder.ln(y)[{ {}, 1 }])
  return y
end

---A vision transformer (Dosovitskiy et al., 2021) with the names of torchvision, as torchvision.models.vit_b_16 is
---{ image_size = 224, patch_size = 16, num_layers = 12, num_heads = 12, hidden_dim = 768, mlp_dim = 3072 }. models.vit
---is that of transformers.
---
---    local net = models.vision_transformer { image_size = 32, patch_size = 8, num_layers = 2, num_heads = 2,
---      hidden_dim = 16, mlp_dim = 32, num_classes = 10 }
---
---Fields of the config besides: num_classes (1000), dropout and attention_dropout (0).
---
---Errors: DC0101 for a field.
---@param config table
---@param options? { dtype?: string } "f32", "f16" or "bf16"
---@return deepc.models.VisionTransformer
function models.vision_transformer(config, options)
  local op = "models.vision_transformer"
  local r, c = core.model_config(op, config), {}
  for _, name in ipairs { "image_size", "patch_size", "num_layers", "num_heads", "hidden_dim", "mlp_dim" } do
    c[name] = name == "num_layers" and r:layers(name) or r:size(name)
  end
  c.num_classes, c.dropout = r:size("num_classes", 1000), r:number("dropout", 0, 0)
  c.attention_dropout = r:number("attention_dropout", 0, 0)
  r:divide("hidden_dim", c.hidden_dim, c.num_heads)
  r:divide("image_size", c.image_size, c.patch_size)
  local net = cast(VisionTransformer(c), op, options)
  return net
end
