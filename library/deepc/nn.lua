---@meta deepc.nn

-- Made by scripts/reference from stdlib/nn/.

---Layers and losses.
---
---    local nn = require "deepc.nn"
---    local net = nn.Sequential { nn.Flatten(), nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10) }
---@class deepc.nn
local nn = {}

---A table of parameters, states and other layers. Calling it calls its :forward and tells errors where
---they happened: "net.2 (nn.Linear 784 -> 10)".
---@class deepc.nn.Layer
---@overload fun(...: any): any
local Layer = {}

---What stands for the layer in errors: "nn.Linear 784 -> 10".
---@return string
function Layer:describe() end

---The cells that are trained, in the order of their paths.
---@return deepc.Cell[]
function Layer:parameters() end

---The same with their paths, relative to this layer: a list of { path, cell }.
---@return table[]
function Layer:named_parameters() end

---Everything that is saved of it: parameters, frozen ones too, and states, in the order of their paths. A
---cell that stands in several places is listed once, under its first path; `also` has the others.
---
---    for _, named in ipairs(net:named_cells()) do print(named[1], named[2].dtype) end
---@return table[] # { path, cell, also = { path } }
function Layer:named_cells() end

---Training mode, in which every layer begins: dropout drops, `self.training` is true. For this layer and
---all below it. Typed functions that call it have a specialisation for each mode.
---
---Errors: DC0101 for what is no boolean.
---@param training? boolean true; false: evaluation mode, as :eval()
---@return deepc.nn.Layer # itself
function Layer:train(training) end

---Evaluation mode: dropout does nothing, `self.training` is false. For this layer and all below it.
---@return deepc.nn.Layer # itself
function Layer:eval() end

---Its parameters, and those of all layers below, are no longer trained: optimisers leave them as they are.
---@return deepc.nn.Layer # itself
function Layer:freeze() end

---Its parameters are trained again.
---@return deepc.nn.Layer # itself
function Layer:unfreeze() end

---What the layer computes; a class gives its own. Call the layer, not this.
---@param ... any
---@return any # of what it is called with
function Layer:forward(...) end

---A class of layers: give it :init(...) and :forward(...), then call it to make one.
---
---    local Block = nn.class "Block"
---    function Block:init(n) self.inner = nn.Linear(n, n) end
---    function Block:forward(x) return x + self.inner(x):relu() end
---@param name string what errors call it
---@return table # the class
function nn.class(name) end

---x:matmul(weight) + bias; weight is f32[inputs, outputs]. Both start uniform in
---[-1/sqrt(inputs), 1/sqrt(inputs)).
---
---    nn.Linear(784, 10)
---
---Errors: DC0101 for a size; when it is called, as x:matmul.
---@class deepc.nn.Linear: deepc.nn.Layer
---@overload fun(inputs: integer, outputs: integer, options?: { bias?: boolean }): deepc.nn.Linear
nn.Linear = {}

---All axes from the second (or `from`) on become one.
---
---    nn.Flatten()
---
---Errors: DC0103 for the axis, when it is called.
---@class deepc.nn.Flatten: deepc.nn.Layer
---@overload fun(from?: integer): deepc.nn.Flatten
nn.Flatten = {}

---While training, sets each element to 0 with probability p and multiplies the others by 1 / (1 - p), so
---that the expected value stays (Srivastava et al., 2014); in evaluation mode x itself. Draws from the
---generator, anew at each call of a typed function.
---
---    nn.Dropout(0.5)
---
---Errors: DC0101 for p.
---@class deepc.nn.Dropout: deepc.nn.Layer
---@overload fun(p?: number): deepc.nn.Dropout
nn.Dropout = {}

---A row of a table for each integer: f32[..., size] for integers[...]. The table starts normal, with a
---standard deviation of 1.
---
---    nn.Embedding(1000, 64)
---
---Errors: DC0701 for an integer outside 0..count-1, at run time.
---@class deepc.nn.Embedding: deepc.nn.Layer
---@overload fun(count: integer, size: integer): deepc.nn.Embedding
nn.Embedding = {}

---Layers (or functions) one after the other.
---
---    nn.Sequential { nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10) }
---
---Errors: DC0101 for a part that is no layer and no function.
---@class deepc.nn.Sequential: deepc.nn.Layer
---@overload fun(list: (deepc.nn.Layer|function)[]): deepc.nn.Sequential
nn.Sequential = {}

---x where it is above 0, slope * x elsewhere (Maas, Hannun and Ng, 2013).
---
---    nn.leaky_relu(dc.tensor { -1, 2 }, 0.1)
---@param x deepc.Tensor floats
---@param slope? number 0.01
---@return deepc.Tensor
function nn.leaky_relu(x, slope) end

---x where it is above 0, alpha (exp(x) - 1) elsewhere (Clevert, Unterthiner and Hochreiter, 2016).
---
---    nn.elu(dc.tensor { -1, 2 })
---@param x deepc.Tensor floats
---@param alpha? number 1
---@return deepc.Tensor
function nn.elu(x, alpha) end

---The larger of x and 0.
---
---    nn.ReLU()
---@class deepc.nn.ReLU: deepc.nn.Layer
---@overload fun(): deepc.nn.ReLU
nn.ReLU = {}

---x * sigmoid(x).
---
---    nn.SiLU()
---@class deepc.nn.SiLU: deepc.nn.Layer
---@overload fun(): deepc.nn.SiLU
nn.SiLU = {}

---The hyperbolic tangent.
---
---    nn.Tanh()
---@class deepc.nn.Tanh: deepc.nn.Layer
---@overload fun(): deepc.nn.Tanh
nn.Tanh = {}

---1 / (1 + exp(-x)).
---
---    nn.Sigmoid()
---@class deepc.nn.Sigmoid: deepc.nn.Layer
---@overload fun(): deepc.nn.Sigmoid
nn.Sigmoid = {}

---log(1 + exp(x)).
---
---    nn.Softplus()
---@class deepc.nn.Softplus: deepc.nn.Layer
---@overload fun(): deepc.nn.Softplus
nn.Softplus = {}

---x itself.
---
---    nn.Identity()
---@class deepc.nn.Identity: deepc.nn.Layer
---@overload fun(): deepc.nn.Identity
nn.Identity = {}

---x times the normal distribution function of x (Hendrycks and Gimpel, 2016); or, faster, with tanh in its
---place.
---
---    nn.GELU { approximate = "tanh" }
---@class deepc.nn.GELU: deepc.nn.Layer
---@overload fun(options?: { approximate?: "tanh"|"none" }): deepc.nn.GELU
nn.GELU = {}

---nn.leaky_relu.
---
---    nn.LeakyReLU(0.1)
---@class deepc.nn.LeakyReLU: deepc.nn.Layer
---@overload fun(slope?: number): deepc.nn.LeakyReLU
nn.LeakyReLU = {}

---nn.elu.
---
---    nn.ELU()
---@class deepc.nn.ELU: deepc.nn.Layer
---@overload fun(alpha?: number): deepc.nn.ELU
nn.ELU = {}

---exp(x) divided by its sum along an axis, the last one. nn.cross_entropy takes what comes before it.
---
---    nn.Softmax()
---@class deepc.nn.Softmax: deepc.nn.Layer
---@overload fun(axis?: deepc.Axis): deepc.nn.Softmax
nn.Softmax = {}

---The logarithm of softmax along an axis, the last one.
---
---    nn.LogSoftmax()
---@class deepc.nn.LogSoftmax: deepc.nn.Layer
---@overload fun(axis?: deepc.Axis): deepc.nn.LogSoftmax
nn.LogSoftmax = {}

---(x - mean) / sqrt(variance + eps) over the last axes, times weight, plus bias (Ba, Kiros and Hinton, 2016).
---
---    nn.layer_norm(dc.tensor { { 1, 2, 3 } }, 3)
---
---Errors: DC0301 where the last axes of x have other sizes.
---@param x deepc.Tensor floats
---@param sizes integer|integer[] of the last axes
---@param options? { weight?: deepc.Tensor, bias?: deepc.Tensor, eps?: number } eps is 1e-5
---@return deepc.Tensor
function nn.layer_norm(x, sizes, options) end

---x / sqrt(mean of squares + eps) over the last axes, times weight (Zhang and Sennrich, 2019).
---
---    nn.rms_norm(dc.tensor { { 1, 2, 3 } }, 3)
---
---Errors: DC0301 where the last axes of x have other sizes.
---@param x deepc.Tensor floats
---@param sizes integer|integer[] of the last axes
---@param options? { weight?: deepc.Tensor, eps?: number } eps is 1e-6
---@return deepc.Tensor
function nn.rms_norm(x, sizes, options) end

---nn.layer_norm over the last axes, with a weight that starts at 1 and a bias that starts at 0.
---
---    nn.LayerNorm(128)
---@class deepc.nn.LayerNorm: deepc.nn.Layer
---@overload fun(sizes: integer|integer[], options?: { eps?: number, affine?: boolean, bias?: boolean }): deepc.nn.LayerNorm
nn.LayerNorm = {}

---nn.rms_norm over the last axes, with a weight that starts at 1.
---
---    nn.RMSNorm(128)
---@class deepc.nn.RMSNorm: deepc.nn.Layer
---@overload fun(sizes: integer|integer[], options?: { eps?: number, affine?: boolean }): deepc.nn.RMSNorm
nn.RMSNorm = {}

---dc.conv2d(x, weight, options) + bias for x of [batch, inputs, height, width]; weight is
---f32[outputs, inputs / groups, height, width of the window]. Both start uniform in
---[-1/sqrt(n), 1/sqrt(n)) for n terms of a sum.
---
---    nn.Conv2d(1, 32, 3, { padding = 1 })
---
---Options: stride (1), padding (0; a number, a list of two, or "same"), dilation (1), groups (1), bias
---(true). Numbers are for both dims, lists have one for each.
---
---Errors: DC0101 for sizes and options; when it is called, as dc.conv2d.
---@class deepc.nn.Conv2d: deepc.nn.Layer
---@overload fun(inputs: integer, outputs: integer, window: integer|integer[], options?: table): deepc.nn.Conv2d
nn.Conv2d = {}

---The largest element of each window: dc.max_pool2d(x, window, options).
---
---    nn.MaxPool2d(2)
---
---Options: stride (that of the window), padding (0), dilation (1).
---
---Errors: DC0101 for options; when it is called, as dc.max_pool2d.
---@class deepc.nn.MaxPool2d: deepc.nn.Layer
---@overload fun(window: integer|integer[], options?: { stride?: integer|integer[], padding?: integer|integer[], dilation?: integer|integer[] }): deepc.nn.MaxPool2d
nn.MaxPool2d = {}

---The mean of each window: dc.avg_pool2d(x, window, options).
---
---    nn.AvgPool2d(2)
---
---Options: stride (that of the window), padding (0), count_padding (true: padding counts as zeros).
---
---Errors: DC0101 for options; when it is called, as dc.avg_pool2d.
---@class deepc.nn.AvgPool2d: deepc.nn.Layer
---@overload fun(window: integer|integer[], options?: { stride?: integer|integer[], padding?: integer|integer[], count_padding?: boolean }): deepc.nn.AvgPool2d
nn.AvgPool2d = {}

---Each channel brought to mean 0 and variance 1, then times weight plus bias, which are f32[channels]
---(Ioffe and Szegedy, 2015). While training by the mean and variance of the batch, which also move the
---states running_mean and running_var; in evaluation mode by those.
---
---    nn.BatchNorm2d(32)
---
---Options: momentum (0.1, how far a batch moves the running values), eps (1e-5), affine (true; false:
---no weight and no bias).
---
---Errors: DC0101 for options; when it is called, DC0301 where x is not [batch, channels, height, width].
---@class deepc.nn.BatchNorm2d: deepc.nn.Layer
---@overload fun(channels: integer, options?: { momentum?: number, eps?: number, affine?: boolean }): deepc.nn.BatchNorm2d
nn.BatchNorm2d = {}

---How losses become one number. `mask` has the shape of the losses, or of their first axes; where it is
---false, or 0, nothing counts, and the mean is over the rest: 0 if there is none.

---Those of cross_entropy besides.

---Of each row, -log softmax(logits) at its label, from 0; the mean over rows. Logits may have more axes:
---the last is the classes', the others are those of the labels.
---
---    nn.cross_entropy(dc.zeros "f32[2, 10]", dc.tensor({ 3, 7 }, "i32"))
---
---`label_smoothing` = e mixes the label with the uniform distribution, (1 - e) and e (Szegedy et al.,
---2016); `weight` has a factor for each class, by whose sum the mean divides; rows with the label
---`ignore_index` do not count.
---
---Errors: DC0202 for labels that are no integers, DC0301 for other shapes, DC0701 for a label outside.
---@param logits deepc.Tensor f32[rows, classes]
---@param labels deepc.Tensor integers[rows], 0 to classes - 1
---@param options? deepc.nn.LossOptions|deepc.nn.ClassOptions
---@return deepc.Tensor # f32[]
function nn.cross_entropy(logits, labels, options) end

---Binary cross entropy of probabilities sigmoid(logits): -y log(p) - (1 - y) log(1 - p), computed as
---max(x, 0) - x y + log(1 + exp(-|x|)), which neither overflows nor loses small numbers; the mean over
---elements. `pos_weight` multiplies the term of y = 1.
---
---    nn.bce_with_logits(dc.tensor { 2, -1 }, dc.tensor { 1, 0 })
---
---Errors: DC0202 where they are no floats of one dtype, DC0301 where shapes differ, or that of the mask;
---DC0101 for options.
---@param logits deepc.Tensor floats
---@param target deepc.Tensor of the same type, from 0 to 1
---@param options? { reduction?: "mean"|"sum"|"none", mask?: deepc.Tensor, pos_weight?: deepc.Operand }
---@return deepc.Tensor # a scalar
function nn.bce_with_logits(logits, target, options) end

---The mean of (prediction - target)^2 over elements.
---
---    nn.mse_loss(dc.tensor { 1, 2 }, dc.tensor { 1, 4 })
---
---Errors: DC0202 where they are no floats of one dtype, DC0301 where shapes differ, or that of the mask;
---DC0101 for options.
---@param prediction deepc.Tensor floats
---@param target deepc.Tensor of the same type
---@param options? deepc.nn.LossOptions
---@return deepc.Tensor # a scalar
function nn.mse_loss(prediction, target, options) end

---The mean of |prediction - target| over elements.
---
---    nn.l1_loss(dc.tensor { 1, 2 }, dc.tensor { 1, 4 })
---
---Errors: DC0202 where they are no floats of one dtype, DC0301 where shapes differ, or that of the mask;
---DC0101 for options.
---@param prediction deepc.Tensor floats
---@param target deepc.Tensor of the same type
---@param options? deepc.nn.LossOptions
---@return deepc.Tensor # a scalar
function nn.l1_loss(prediction, target, options) end

---The mean of a loss that is d^2 / 2 for distances d up to delta and delta (d - delta / 2) beyond: rows
---far off pull no harder than others (Huber, 1964).
---
---    nn.huber_loss(dc.tensor { 1, 2 }, dc.tensor { 1, 4 }, { delta = 0.5 })
---
---Errors: DC0202 where they are no floats of one dtype, DC0301 where shapes differ, or that of the mask;
---DC0101 for options.
---@param prediction deepc.Tensor floats
---@param target deepc.Tensor of the same type
---@param options? { reduction?: "mean"|"sum"|"none", mask?: deepc.Tensor, delta?: number } delta is 1
---@return deepc.Tensor # a scalar
function nn.huber_loss(prediction, target, options) end

---Numbers that parameters start with: tensors for dc.param, or for a cell that is there already.
---Deterministic by `seed`, else by the generator (dc.seed).
---
---    local w = dc.param("f32[784, 128]", nn.init.kaiming_normal "f32[784, 128]")
---    local linear = nn.Linear(784, 128)
---    linear.weight:set(nn.init.xavier_uniform(linear.weight))
---@class deepc.nn.init
nn.init = {}

---0 everywhere.
---
---    nn.init.zeros "f32[10]"
---@param type deepc.Type|deepc.Tensor
---@return deepc.Tensor
function nn.init.zeros(type) end

---1 everywhere.
---
---    nn.init.ones "f32[10]"
---@param type deepc.Type|deepc.Tensor
---@return deepc.Tensor
function nn.init.ones(type) end

---One value everywhere.
---
---    nn.init.constant("f32[10]", 0.1)
---@param type deepc.Type|deepc.Tensor
---@param value number
---@return deepc.Tensor
function nn.init.constant(type, value) end

---Uniform in [low, high).
---
---    nn.init.uniform("f32[784, 10]", { low = -0.1, high = 0.1 })
---
---Errors: DC0202 for a dtype that is no float, DC0101 for options.
---@param type deepc.Type|deepc.Tensor
---@param options? { low?: number, high?: number, seed?: integer } 0, 1
---@return deepc.Tensor
function nn.init.uniform(type, options) end

---Normal.
---
---    nn.init.normal("f32[784, 10]", { std = 0.02 })
---
---Errors: DC0202 for a dtype that is no float, DC0101 for options.
---@param type deepc.Type|deepc.Tensor
---@param options? { mean?: number, std?: number, seed?: integer } 0, 1
---@return deepc.Tensor
function nn.init.normal(type, options) end

---What makes good for an activation: linear and sigmoid 1, tanh 5/3, relu sqrt(2), leaky_relu
---sqrt(2 / (1 + slope^2)), selu 3/4.

---Uniform with the variance gain^2 * 2 / (inputs + outputs): that of values and that of gradients stay
---about the same from layer to layer (Glorot and Bengio, 2010). Weights of products are [inputs, outputs],
---those of convolutions [outputs, inputs, window ...].
---
---    nn.init.xavier_uniform("f32[784, 128]", { gain = "tanh" })
---
---Errors: DC0101 for fewer than two axes, and for options.
---@param type deepc.Type|deepc.Tensor
---@param options? { gain?: deepc.nn.Gain, slope?: number, seed?: integer } gain is 1
---@return deepc.Tensor
function nn.init.xavier_uniform(type, options) end

---Normal with the variance of xavier_uniform.
---
---    nn.init.xavier_normal "f32[784, 128]"
---
---Errors: DC0101 for fewer than two axes, and for options.
---@param type deepc.Type|deepc.Tensor
---@param options? { gain?: deepc.nn.Gain, slope?: number, seed?: integer } gain is 1
---@return deepc.Tensor
function nn.init.xavier_normal(type, options) end

---Uniform with the variance gain^2 / inputs, or outputs: what a rectifier halves, the gain makes good (He
---et al., 2015).
---
---    nn.init.kaiming_uniform("f32[784, 128]", { mode = "fan_out" })
---
---Errors: DC0101 for fewer than two axes, and for options.
---@param type deepc.Type|deepc.Tensor
---@param options? { gain?: deepc.nn.Gain, slope?: number, mode?: string, seed?: integer } "relu"; "fan_in" or "fan_out"
---@return deepc.Tensor
function nn.init.kaiming_uniform(type, options) end

---Normal with the variance of kaiming_uniform.
---
---    nn.init.kaiming_normal "f32[784, 128]"
---
---Errors: DC0101 for fewer than two axes, and for options.
---@param type deepc.Type|deepc.Tensor
---@param options? { gain?: deepc.nn.Gain, slope?: number, mode?: string, seed?: integer } "relu"; "fan_in" or "fan_out"
---@return deepc.Tensor
function nn.init.kaiming_normal(type, options) end

---Rows (or columns, whichever are fewer) that are orthogonal and of length gain (Saxe, McClelland and
---Ganguli, 2014); axes from the second on count as one. It is the orthogonal factor of a normal matrix,
---found by Newton's iteration for the polar decomposition: products alone.
---
---    nn.init.orthogonal "f32[128, 128]"
---
---Errors: DC0101 for fewer than two axes, and for options.
---@param type deepc.Type|deepc.Tensor
---@param options? { gain?: deepc.nn.Gain, slope?: number, seed?: integer } gain is 1
---@return deepc.Tensor
function nn.init.orthogonal(type, options) end

---A table of the layers in the order in which they are called for inputs of these types, with what they
---return and how many parameters and states of their own they have; below it the sums, each cell once. The
---network is traced; nothing is computed and no cell changes.
---
---    print(nn.Sequential({ nn.Linear(4, 8), nn.ReLU() }):summary "f32[2, 4]")
---
---Errors: whatever a call with such inputs would raise.
---@param ... deepc.Type of the inputs
---@return string
function Layer:summary(...) end

return nn
