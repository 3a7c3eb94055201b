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

---The mean over rows of -log softmax(logits) at the label of the row.
---
---    nn.cross_entropy(dc.zeros "f32[2, 10]", dc.tensor({ 3, 7 }, "i32"))
---
---Errors: DC0202 for labels that are no integers, DC0301 for other shapes, DC0701 for a label outside.
---@param logits deepc.Tensor f32[rows, classes]
---@param labels deepc.Tensor integers[rows], 0 to classes - 1
---@return deepc.Tensor # f32[]
function nn.cross_entropy(logits, labels) end

return nn
