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
---@overload fun(...): ...
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
---@return deepc.nn.Layer # itself
function Layer:train() end

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
---@return any # of what it is called with
function Layer:forward() end

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
---@class deepc.nn.Linear: deepc.nn.Layer
---@overload fun(inputs: integer, outputs: integer, options?: { bias?: boolean }): deepc.nn.Linear
nn.Linear = {}

---The larger of x and 0.
---
---    nn.ReLU()
---@class deepc.nn.ReLU: deepc.nn.Layer
---@overload fun(): deepc.nn.ReLU
nn.ReLU = {}

---All axes from the second (or `from`) on become one.
---
---    nn.Flatten()
---@class deepc.nn.Flatten: deepc.nn.Layer
---@overload fun(from?: integer): deepc.nn.Flatten
nn.Flatten = {}

---While training, sets each element to 0 with probability p and multiplies the others by 1 / (1 - p), so
---that the expected value stays (Srivastava et al., 2014); in evaluation mode x itself. Draws from the
---generator, anew at each call of a typed function.
---
---    nn.Dropout(0.5)
---@class deepc.nn.Dropout: deepc.nn.Layer
---@overload fun(p?: number): deepc.nn.Dropout
nn.Dropout = {}

---Layers (or functions) one after the other.
---
---    nn.Sequential { nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10) }
---@class deepc.nn.Sequential: deepc.nn.Layer
---@overload fun(list: (deepc.nn.Layer|function)[]): deepc.nn.Sequential
nn.Sequential = {}

---How losses become one number. `mask` (bool) has the shape of the losses, or of their first axes; where
---it is false nothing counts, and the mean is over the rest: 0 if there is none.

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
---@param logits deepc.Tensor floats
---@param target deepc.Tensor of the same type, from 0 to 1
---@param options? { reduction?: "mean"|"sum"|"none", mask?: deepc.Tensor, pos_weight?: deepc.Operand }
---@return deepc.Tensor # a scalar
function nn.bce_with_logits(logits, target, options) end

---The mean of (prediction - target)^2 over elements.
---
---    nn.mse_loss(dc.tensor { 1, 2 }, dc.tensor { 1, 4 })
---@param prediction deepc.Tensor floats
---@param target deepc.Tensor of the same type
---@param options? deepc.nn.LossOptions
---@return deepc.Tensor # a scalar
function nn.mse_loss(prediction, target, options) end

---The mean of |prediction - target| over elements.
---
---    nn.l1_loss(dc.tensor { 1, 2 }, dc.tensor { 1, 4 })
---@param prediction deepc.Tensor floats
---@param target deepc.Tensor of the same type
---@param options? deepc.nn.LossOptions
---@return deepc.Tensor # a scalar
function nn.l1_loss(prediction, target, options) end

---The mean of a loss that is d^2 / 2 for distances d up to delta and delta (d - delta / 2) beyond: rows
---far off pull no harder than others (Huber, 1964).
---
---    nn.huber_loss(dc.tensor { 1, 2 }, dc.tensor { 1, 4 }, { delta = 0.5 })
---@param prediction deepc.Tensor floats
---@param target deepc.Tensor of the same type
---@param options? { reduction?: "mean"|"sum"|"none", mask?: deepc.Tensor, delta?: number } delta is 1
---@return deepc.Tensor # a scalar
function nn.huber_loss(prediction, target, options) end

return nn
