-- Networks for images beside torchvision and transformers (tests/peers/models). Those of torchvision that are too large
-- to be kept are compared by scripts/peers models.
local lu = require "luaunit"
local dc = require "deepc"
local nn = require "deepc.nn"
local optim = require "deepc.optim"
local models = require "deepc.models"
local check = require "tests.lua.check"

local fails = check.fails

TestModelsOfImages = {}

local cases = os.getenv "DEEPC_MODELS" or package.path:match "^(.-)/%.%./%?%.lua" .. "/peers/models/cases/"

local function near(got, want, tolerance, what)
  lu.assertEquals(got.shape, want.shape)
  local d = (got:cast "f32" - want):abs():max():item() / math.max(want:abs():max():item(), 1e-3)
  lu.assertTrue(d <= tolerance, ("%s: %g"):format(what, d))
end

-- A network with the weights of a case.
local function filled(net, name)
  dc.load(cases .. name .. "/model.safetensors", net, { first = 0, linear = "out, in" })
  return net:eval(), dc.load(cases .. name .. "/case.safetensors")
end

local of_torchvision = {
  resnet18 = function() return models.resnet { depth = 18, num_classes = 10 } end,
  resnet50 = function() return models.resnet { depth = 50, num_classes = 10 } end,
  resnext50 = function() return models.resnet { depth = 50, num_classes = 10, groups = 32, width_per_group = 4 } end,
  mobilenet_v2 = function() return models.mobilenet_v2 { num_classes = 10, width_mult = 0.5 } end,
  mobilenet_v3_small = function() return models.mobilenet_v3 { num_classes = 10, size = "small" } end,
  mobilenet_v3_large = function() return models.mobilenet_v3 { num_classes = 10 } end,
}

for name, make in pairs(of_torchvision) do
  TestModelsOfImages["test_" .. name] = function()
    local there = io.open(cases .. name .. "/model.safetensors")
    lu.skipIf(not there, "no weights: scripts/peers models makes them")
    there:close()
    local net, case = filled(make(), name)
    local f = dc.fn("f(x: f32[b <= 4, 3, 64, 64]) -> f32[b, 10]", function(x)
      local y = net(x)
      return y
    end)
    near(f(case.x), case.logits, 1e-5, name)
  end
end

function TestModelsOfImages:test_vision_transformer()
  local net, case = filled(models.vision_transformer { image_size = 16, patch_size = 8, num_layers = 2, num_heads = 2,
    hidden_dim = 16, mlp_dim = 24, num_classes = 5 }, "vision_transformer")
  near(net(case.x), case.logits, 1e-5, "logits")
  fails("images of 16 x 16 are needed", net, dc.ones "f32[1, 3, 16, 24]")
  fails("[batch, 3, height, width] is needed", net, dc.ones "f32[1, 1, 16, 16]")
end

function TestModelsOfImages:test_vit()
  local case = dc.load(cases .. "vit/case.safetensors")
  local net = models.load(cases .. "vit")
  local hidden, pooled = net(case.x)
  near(hidden, case.hidden, 1e-5, "hidden")
  near(pooled, case.pooled, 1e-5, "pooled")
  case = dc.load(cases .. "vit_classes/case.safetensors")
  net = models.load(cases .. "vit_classes")
  near(net(case.x), case.logits, 1e-5, "logits")
  near(models.load(cases .. "vit_classes", { dtype = "bf16" })(case.x:cast "bf16"), case.logits, 5e-2, "bf16")
end

function TestModelsOfImages:test_unet()
  local net, case = models.load(cases .. "unet"), dc.load(cases .. "unet/case.safetensors")
  near(net(case.x, case.times), case.y, 1e-5, "unet")
  fails("the model has no classes", net, case.x, case.times, dc.zeros "i32[2]")
  fails("[batch, 2, height, width], multiples of 2, are needed", net, dc.ones "f32[1, 2, 7, 8]", case.times)
  local f = dc.fn("f(x: f32[b <= 4, 2, 8, 16], times: i32[b]) -> f32[b, 1, 8, 16]", function(x, times)
    local y = net(x, times)
    return y
  end)
  near(f(case.x, case.times), case.y, 1e-5, "unet")
  net, case = models.load(cases .. "unet_ddpm"), dc.load(cases .. "unet_ddpm/case.safetensors")
  near(net(case.x, case.times, dc.tensor({ 4, 1 }, "i32")), case.y, 1e-5, "unet_ddpm")
  fails("classes are needed, integers [batch]", net, case.x, case.times)
  fails("config.down_block_types[1] is 'CrossAttnDownBlock2D'; DownBlock2D and AttnDownBlock2D are known", models.unet,
    { block_out_channels = { 32, 32 }, down_block_types = { "DownBlock2D", "CrossAttnDownBlock2D" } })
  fails("config.up_block_types is a table; 1 types are needed", models.unet, { block_out_channels = { 32 },
    down_block_types = { "DownBlock2D" }, up_block_types = {} })
end

-- The noise of some images is learned.
function TestModelsOfImages:test_train_unet()
  local net = models.load(cases .. "unet"):train()
  local x, noise = dc.randn("f32[4, 2, 8, 8]", { seed = 1 }), dc.randn("f32[4, 1, 8, 8]", { seed = 2 })
  local opt = optim.Adam(net:parameters(), { lr = 5e-3 })
  local step = dc.fn("step(images: f32[4, 2, 8, 8], times: i32[4]) -> f32[]", function(images, times)
    local loss = (net(images, times) - noise):square():mean()
    opt:step(loss)
    return loss
  end)
  local times = dc.tensor({ 1, 5, 100, 900 }, "i32")
  local first = step(x, times):item()
  for _ = 1, 15 do step(x, times) end
  lu.assertTrue(step(x, times):item() < 0.8 * first)
end

function TestModelsOfImages:test_speech()
  local net, case = filled(models.speech { mels = 10, channels = 3, hidden = 6, layers = 2, classes = 5 }, "speech")
  near(net(case.x), case.y, 1e-5, "speech")
  fails("features are f32[2, 4, 21]; [batch, 10, frames] is needed", net, dc.ones "f32[2, 4, 21]")
  local opt = optim.Adam(net:train():parameters(), { lr = 1e-2 })
  local step = dc.fn("step(x: f32[2, 10, t <= 32], lengths: i32[2], texts: i32[2, 3], counts: i32[2]) -> f32[]",
    function(x, lengths, texts, counts)
      local log_probs, moments = net(x, { lengths = lengths })
      local loss = nn.ctc_loss(log_probs, texts, moments, counts)
      opt:step(loss)
      return loss
    end)
  local function train() return step(case.x, { 21, 14 }, { { 1, 2, 3 }, { 4, 1, 0 } }, { 3, 2 }):item() end
  local first = train()
  for _ = 1, 20 do train() end
  lu.assertTrue(train() < 0.7 * first)
end

-- Small ones learn which images are which.
function TestModelsOfImages:test_train()
  dc.seed(1) -- whatever DEEPC_SEED is
  local nets = {
    models.resnet { depth = 18, num_classes = 2, width = 8 }, models.resnet { depth = 50, num_classes = 2, width = 4 },
    models.mobilenet_v2 { num_classes = 2, width_mult = 0.1, dropout = 0 },
    models.mobilenet_v3 { size = "small", num_classes = 2, width_mult = 0.1, dropout = 0 },
    models.vit { image_size = 32, patch_size = 8, hidden_size = 16, num_hidden_layers = 1, num_attention_heads = 2,
      intermediate_size = 16, num_labels = 2 },
  }
  local x, y = dc.randn("f32[8, 3, 32, 32]", { seed = 1 }), dc.iota "i32[8]" % 2
  x = x + (y:cast("f32") - 0.5):reshape(8, 1, 1, 1)
  for i, net in ipairs(nets) do
    local opt = optim.Adam(net:parameters(), { lr = 5e-4 }) -- small enough that no rounding decides
    local step = dc.fn("step(images: f32[8, 3, 32, 32], labels: i32[8]) -> f32[]", function(images, labels)
      local loss = nn.cross_entropy(net(images), labels)
      opt:step(loss)
      return loss
    end)
    local first = step(x, y):item()
    for _ = 1, 16 do step(x, y) end
    lu.assertTrue(step(x, y):item() < 0.7 * first, i)
  end
end

function TestModelsOfImages:test_mistakes()
  fails("config.depth is 20; 18, 34, 50, 101 and 152 are known", models.resnet, { depth = 20 })
  fails("config.size is 'tiny'; known are large, small", models.mobilenet_v3, { size = "tiny" })
  fails("image_size of 30 does not divide into 8", models.vit, { image_size = 30, patch_size = 8 })
  fails("config.num_classes is 0", models.mobilenet_v2, { num_classes = 0 })
end
