-- Activations that are smooth, and gates: one half of x opens or closes the other.

local dc = require "deepc"
local nn = require "deepc.nn.class"
local _, core = ...

local check_number = core.check_number

-- ---- smooth activations ----

---x times tanh(softplus(x)) (Misra, 2019). torch.nn.functional.mish.
---
---    nn.mish(dc.tensor { -1, 2 })
---@param x deepc.Tensor floats
---@return deepc.Tensor
function nn.mish(x)
  core.check_tensor("mish", x)
  local narrow, wide = core.in_f32(x)
  local y = narrow(wide * wide:softplus():tanh())
  return y
end

local not_above = core.not_above_zero

-- Klambauer et al., 2017: the fixed point of mean 0 and variance 1.
local SELU_ALPHA, SELU_SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946

---scale * x where it is above 0, scale * alpha * (exp(x) - 1) elsewhere, with the two numbers that bring activations to
---mean 0 and variance 1 (Klambauer et al., 2017). torch.nn.functional.selu.
---
---    nn.selu(dc.tensor { -1, 2 })
---@param x deepc.Tensor floats
---@return deepc.Tensor
function nn.selu(x)
  core.check_tensor("selu", x)
  local narrow, wide = core.in_f32(x)
  local y = narrow(dc.where(wide:gt(0), wide * SELU_SCALE, not_above(wide):expm1() * (SELU_SCALE * SELU_ALPHA)))
  return y
end

---x where it is above 0, alpha * (exp(x / alpha) - 1) elsewhere (Barron, 2017). torch.nn.functional.celu.
---
---    nn.celu(dc.tensor { -1, 2 }, 0.5)
---
---Errors: DC0101 for an alpha of 0.
---@param x deepc.Tensor floats
---@param alpha? number 1
---@return deepc.Tensor
function nn.celu(x, alpha)
  alpha = alpha or 1
  core.check_tensor("celu", x)
  check_number("celu", "alpha", alpha)
  if alpha == 0 then
    core.fail("ARG", "celu", "alpha is a number other than 0")
  end
  local narrow, wide = core.in_f32(x)
  local y = narrow(dc.where(wide:gt(0), wide, (not_above(wide) * (1 / alpha)):expm1() * alpha))
  return y
end

---log(1 + exp(beta * x)) / beta; x itself where beta * x is above the threshold. torch.nn.functional.softplus;
---x:softplus() is that of beta 1, without a threshold.
---
---    nn.softplus(dc.tensor { -1, 2 }, 2)
---
---Errors: DC0101 for a beta of 0.
---@param x deepc.Tensor floats
---@param beta? number 1
---@param threshold? number 20
---@return deepc.Tensor
function nn.softplus(x, beta, threshold)
  beta, threshold = beta or 1, threshold or 20
  core.check_tensor("softplus", x)
  check_number("softplus", "beta", beta)
  check_number("softplus", "threshold", threshold)
  if beta == 0 then
    core.fail("ARG", "softplus", "beta is a number other than 0")
  end
  local narrow, wide = core.in_f32(x)
  local scaled = beta == 1 and wide or wide * beta
  local bent = beta == 1 and scaled:softplus() or scaled:softplus() * (1 / beta)
  local y = narrow(dc.where(scaled:gt(threshold), wide, bent))
  return y
end

---x / (1 + |x|). torch.nn.functional.softsign.
---
---    nn.softsign(dc.tensor { -1, 2 })
---@param x deepc.Tensor floats
---@return deepc.Tensor
function nn.softsign(x)
  core.check_tensor("softsign", x)
  local narrow, wide = core.in_f32(x)
  local y = narrow(wide / (wide:abs() + 1))
  return y
end

---x - tanh(x). torch.nn.functional.tanhshrink.
---
---    nn.tanhshrink(dc.tensor { -1, 2 })
---@param x deepc.Tensor floats
---@return deepc.Tensor
function nn.tanhshrink(x)
  core.check_tensor("tanhshrink", x)
  local narrow, wide = core.in_f32(x)
  local y = narrow(wide - wide:tanh())
  return y
end

---The logarithm of sigmoid(x), without overflow. torch.nn.functional.logsigmoid.
---
---    nn.log_sigmoid(dc.tensor { -100, 2 })
---@param x deepc.Tensor floats
---@return deepc.Tensor
function nn.log_sigmoid(x)
  core.check_tensor("log_sigmoid", x)
  local narrow, wide = core.in_f32(x)
  local y = narrow(-(-wide):softplus())
  return y
end

---nn.mish.
---
---    nn.Mish()
---@class deepc.nn.Mish: deepc.nn.Layer
nn.Mish = core.activation_class("nn.Mish", nn.mish)

---nn.selu.
---
---    nn.SELU()
---@class deepc.nn.SELU: deepc.nn.Layer
nn.SELU = core.activation_class("nn.SELU", nn.selu)

---nn.celu.
---
---    nn.CELU(0.5)
---@class deepc.nn.CELU: deepc.nn.Layer
---@overload fun(alpha?: number): deepc.nn.CELU
nn.CELU = core.activation_class("nn.CELU", nn.celu, { { "alpha", 1 } })

---nn.softplus.
---
---    nn.Softplus(2)
---@class deepc.nn.Softplus: deepc.nn.Layer
---@overload fun(beta?: number, threshold?: number): deepc.nn.Softplus
nn.Softplus = core.activation_class("nn.Softplus", nn.softplus, { { "beta", 1 }, { "threshold", 20 } })

---nn.softsign.
---
---    nn.Softsign()
---@class deepc.nn.Softsign: deepc.nn.Layer
nn.Softsign = core.activation_class("nn.Softsign", nn.softsign)

---nn.tanhshrink.
---
---    nn.Tanhshrink()
---@class deepc.nn.Tanhshrink: deepc.nn.Layer
nn.Tanhshrink = core.activation_class("nn.Tanhshrink", nn.tanhshrink)

---nn.log_sigmoid.
---
---    nn.LogSigmoid()
---@class deepc.nn.LogSigmoid: deepc.nn.Layer
nn.LogSigmoid = core.activation_class("nn.LogSigmoid", nn.log_sigmoid)

-- ---- gates ----

-- Both halves of x along an axis; the second one as a gate.
local function gated(op, x, axis, gate)
  core.check_tensor(op, x)
  axis = axis or -1
  local n = x:size(axis)
  if not core.is_size(n) and n % 2 ~= 0 then
    core.fail("DIMS", op, ("axis %s of %s[%s] has %d elements, which make no two halves"):format(axis, x.dtype,
      core.sizes(x.shape), n), nil, "x", x)
  end
  local narrow, wide = core.in_f32(x)
  local a, b = wide:split(2, axis)
  return narrow(a * gate(b))
end

---The first half of x along an axis times sigmoid of the second (Dauphin et al., 2017). torch.nn.functional.glu.
---
---    nn.glu(dc.tensor { 1, 2, 0, 0 })
---
---Errors: DC0301 where the axis has an odd size, DC0103 for the axis.
---@param x deepc.Tensor floats
---@param axis? deepc.Axis the last one
---@return deepc.Tensor
function nn.glu(x, axis)
  local y = gated("glu", x, axis, dc.sigmoid)
  return y
end

---The first half of x along an axis times gelu of the second (Shazeer, 2020).
---
---    nn.geglu(dc.tensor { 1, 2, 0.5, -1 })
---
---Errors: DC0301 where the axis has an odd size, DC0103 for the axis.
---@param x deepc.Tensor floats
---@param axis? deepc.Axis the last one
---@return deepc.Tensor
function nn.geglu(x, axis)
  local y = gated("geglu", x, axis, dc.gelu)
  return y
end

---The first half of x along an axis times silu of the second (Shazeer, 2020).
---
---    nn.swiglu(dc.tensor { 1, 2, 0.5, -1 })
---
---Errors: DC0301 where the axis has an odd size, DC0103 for the axis.
---@param x deepc.Tensor floats
---@param axis? deepc.Axis the last one
---@return deepc.Tensor
function nn.swiglu(x, axis)
  local y = gated("swiglu", x, axis, dc.silu)
  return y
end

---exp(-x) divided by its sum along an axis. torch.nn.functional.softmin.
---
---    nn.softmin(dc.tensor { 1, 2, 3 })
---@param x deepc.Tensor floats
---@param axis? deepc.Axis the last one
---@return deepc.Tensor
function nn.softmin(x, axis)
  core.check_tensor("softmin", x)
  local y = dc.softmax(-x, axis or -1)
  return y
end

---nn.glu along an axis, the last one.
---
---    nn.GLU()
---@class deepc.nn.GLU: deepc.nn.Layer
---@overload fun(axis?: deepc.Axis): deepc.nn.GLU
nn.GLU = nn.class "nn.GLU"
core.along_axis(nn.GLU, nn.glu)

---nn.geglu along an axis, the last one.
---
---    nn.GEGLU()
---@class deepc.nn.GEGLU: deepc.nn.Layer
---@overload fun(axis?: deepc.Axis): deepc.nn.GEGLU
nn.GEGLU = nn.class "nn.GEGLU"
core.along_axis(nn.GEGLU, nn.geglu)

---nn.swiglu along an axis, the last one.
---
---    nn.SwiGLU()
---@class deepc.nn.SwiGLU: deepc.nn.Layer
---@overload fun(axis?: deepc.Axis): deepc.nn.SwiGLU
nn.SwiGLU = nn.class "nn.SwiGLU"
core.along_axis(nn.SwiGLU, nn.swiglu)

---nn.softmin along an axis, the last one.
---
---    nn.Softmin()
---@class deepc.nn.Softmin: deepc.nn.Layer
---@overload fun(axis?: deepc.Axis): deepc.nn.Softmin
nn.Softmin = nn.class "nn.Softmin"
core.along_axis(nn.Softmin, nn.softmin)

---softmax over the channels of images, [batch, channels, height, width].
---
---    nn.Softmax2d()
---@class deepc.nn.Softmax2d: deepc.nn.Layer
nn.Softmax2d = core.activation_class("nn.Softmax2d", function(x)
  core.check_tensor("nn.Softmax2d", x)
  if #x.shape ~= 4 and #x.shape ~= 3 then
    core.fail("DIMS", "nn.Softmax2d", ("x is %s[%s]; [batch, channels, height, width] is needed"):format(x.dtype,
      core.sizes(x.shape)), nil, "x", x)
  end
  local y = dc.softmax(x, -3)
  return y
end)
