-- Recurrent networks over sequences: RNN, LSTM, GRU. dc.scan does the steps of cells.lua. What the inputs add to the
-- gates does not depend on the state: outside typed functions it is one product over all elements, and in compiled
-- loops one over as many as the caches hold.

local dc = require "deepc"
local nn = require "deepc.nn.class"
local _, core = ...

local kinds = core.recurrent

-- ---- making ----

-- Weights of layer k, from 0, of one direction.
local function suffix_of(k, backwards)
  return ("_l%d%s"):format(k, backwards and "_reverse" or "")
end

local function check_dropout(op, p)
  if p ~= nil and (type(p) ~= "number" or not (p >= 0 and p < 1)) then
    core.fail("ARG", op, ("dropout is a number from 0 to below 1, not %s"):format(core.shown(p)))
  end
end

local function is_on(op, options, key)
  return options[key] ~= nil and core.unless_false(op, options, key)
end

-- The size of h.
local function out_of(op, hidden, size)
  if size ~= nil then
    core.check_size(op, "proj_size", size)
    if size >= hidden then
      core.fail("ARG", op, ("proj_size is %d; less than the size of the state, %d, is needed"):format(size, hidden))
    end
  end
  return size or hidden
end

local function start(self, kind, op, inputs, hidden, options)
  options = options or {}
  kinds.check_options(self, op, inputs, hidden, options)
  local layers, bias = options.layers == nil and 1 or options.layers, core.unless_false(op, options, "bias")
  core.check_size(op, "the number of layers", layers)
  check_dropout(op, options.dropout)
  self.layers, self.out, self.dropout = layers, out_of(op, hidden, options.proj_size), options.dropout or 0
  self.bidirectional, self.batch_first = is_on(op, options, "bidirectional"), is_on(op, options, "batch_first")
  local directions = self.bidirectional and 2 or 1
  for k = 0, layers - 1 do
    local size = k == 0 and inputs or self.out * directions
    for d = 1, directions do
      kinds.add_weights(self, kind, suffix_of(k, d == 2), size, hidden, self.out, bias)
    end
  end
end

-- "nn.LSTM 8 -> 16, 2 layers, bidirectional"
local function describe(self, op)
  return ("%s %d -> %d%s%s%s"):format(op, self.inputs, self.hidden,
    self.layers > 1 and (", %d layers"):format(self.layers) or "", self.bidirectional and ", bidirectional" or "",
    self.out ~= self.hidden and (", projected to %d"):format(self.out) or "")
end

-- ---- one direction ----

-- A step where rows that have ended keep their state and give zeros.
local function masked_step(kind, w, lengths)
  return function(added, state, i)
    local next, live = kind.step(added, state, w), lengths:gt(i)
    if not kind.has_c then
      return dc.where(live, next, state), dc.where(live, next, 0)
    end
    return { h = dc.where(live, next.h, state.h), c = dc.where(live, next.c, state.c) }, dc.where(live, next.h, 0)
  end
end

local function plain_step(kind, w)
  return function(added, state)
    local next = kind.step(added, state, w)
    return next, kind.has_c and next.h or next
  end
end

-- The sizes of x as types say them, with names: { "time=20", "batch=16", "8" }.
local function dims_of(x)
  local dims = {}
  for dim in core.describe(x):match "%[(.*)%]$":gmatch " *([^,]+)" do
    dims[#dims + 1] = dim
  end
  return dims
end

-- What all elements of x add to the gates: one product of matrices.
local function add_all(self, x, suffix, bias)
  local all = self["weight_ih" .. suffix].shape[2]
  local added = kinds.add_inputs(self, x:reshape(#x * x.shape[2], x.shape[3]), suffix, bias)
  if core.is_size(#x) or core.is_size(x.shape[2]) then
    return (added:reshape(#x, x.shape[2], all))
  end
  local dims = dims_of(x)
  return (added:reshape(("[%s, %s, %d]"):format(dims[1], dims[2], all)))
end

-- y of all elements of x, and the last state.
local function go_along(self, kind, suffix, x, state, lengths, backwards)
  local w, bias = kinds.read_weights(self, kind, suffix)
  local step = lengths and masked_step(kind, w, lengths) or plain_step(kind, w)
  if #x == 0 then -- nothing tells the types of what is stacked
    return add_all(self, x, suffix, bias)[{ {}, {}, { 1, self.out } }], state
  end
  local tracing = core.tracing()
  local last, y = dc.scan(function(s, element, i)
    return step(tracing and kinds.add_inputs(self, element, suffix, bias) or element, s, i)
  end, state, tracing and x or add_all(self, x, suffix, bias), { reverse = backwards })
  return y, last
end

-- ---- all layers ----

-- Row k of the states that the network was given.
local function state_of(kind, state, k)
  return kind.has_c and { h = state.h[k], c = state.c[k] } or state[k]
end

local function stack_states(kind, list)
  if not kind.has_c then
    return (dc.stack(list, 1))
  end
  local h, c = {}, {}
  for k, state in ipairs(list) do
    h[k], c[k] = state.h, state.c
  end
  return { h = dc.stack(h, 1), c = dc.stack(c, 1) }
end

-- x is [time, batch, inputs], lengths [batch, 1]. What is behind a length counts nothing, nor in gradients of weights.
local function go_through(self, kind, x, state, lengths)
  local lasts, directions = {}, self.bidirectional and 2 or 1
  if lengths and #x ~= 0 then
    x = dc.where(dc.iota(#x):reshape(-1, 1, 1):lt(lengths), x, 0)
  end
  for k = 0, self.layers - 1 do
    local ys = {}
    for d = 1, directions do
      local row = k * directions + d
      ys[d], lasts[row] = go_along(self, kind, suffix_of(k, d == 2), x, state_of(kind, state, row), lengths, d == 2)
    end
    x = directions == 2 and dc.concat(ys, 3) or ys[1]
    if k < self.layers - 1 and self.training and self.dropout > 0 then
      x = core.drop(x, self.dropout)
    end
  end
  return x, stack_states(kind, lasts)
end

-- ---- arguments ----

local function fits(shape, inputs)
  return (#shape == 2 or #shape == 3) and shape[#shape] == inputs
end

-- As a column: one number for each row of x, which is [time, batch, inputs] now.
local function check_lengths(op, lengths, x, alone)
  if lengths == nil then
    return nil
  end
  core.check_tensor(op, lengths, "lengths")
  local shape = lengths.shape
  local text = ("%s[%s]"):format(lengths.dtype, core.sizes(shape))
  local counts = core.counts_of(lengths)
  if not counts then
    core.fail("DTYPE", op, ("lengths are %s; integers are needed"):format(text), ':cast "i32" converts', "lengths",
      lengths)
  elseif #shape ~= (alone and 0 or 1) or not alone and shape[1] ~= x.shape[2] then
    core.fail("DIMS", op, ("lengths are %s; %s[%s] is needed, a number for each row"):format(text, lengths.dtype,
      alone and "" or tostring(x.shape[2])), nil, "lengths", lengths, "x", x)
  end
  core.check_length(counts, x.shape[1], op)
  return (counts:reshape(x.shape[2], 1))
end

-- An axis of one row, where there is none, and it away again.
local function add_row(kind, state, k)
  if state == nil or not kind.has_c then
    return state and state:reshape(k, 1, -1)
  end
  return { h = state.h:reshape(k, 1, -1), c = state.c:reshape(k, 1, -1) }
end

local function drop_row(kind, state)
  if not kind.has_c then
    return (state[{ {}, 1 }])
  end
  return { h = state.h[{ {}, 1 }], c = state.c[{ {}, 1 }] }
end

-- The state as it is needed: checked, zeros where there is none.
local function begin(self, kind, op, x, state, alone)
  local rows = self.layers * (self.bidirectional and 2 or 1)
  local function type_of(size)
    if alone then
      return kinds.type(x, ("%s[%d, %d]"):format(x.dtype, rows, size), { rows, size })
    end
    return kinds.type(x, ("%s[%d, %s, %d]"):format(x.dtype, rows, dims_of(x)[2], size), { rows, x.shape[2], size })
  end
  state = kinds.check_state(op, kind, state, type_of(self.out), type_of(self.hidden))
  return alone and add_row(kind, state, rows) or state
end

local function run(self, kind, op, x, state, options)
  core.options(op, options, "lengths")
  local dtype = self.weight_ih_l0.dtype
  kinds.check_input(self, op, x, self.weight_ih_l0, fits, ("%s[%s, %d], or %s[time, %d],"):format(dtype,
    self.batch_first and "batch, time" or "time, batch", self.inputs, dtype, self.inputs))
  local alone = #x.shape == 2
  local turned = self.batch_first and not alone
  if alone then
    x = x:reshape(#x, 1, -1)
  elseif turned then
    x = x:transpose(1, 2)
  end
  local lengths = check_lengths(op, options and options.lengths, x, alone)
  local y, last = go_through(self, kind, x, begin(self, kind, op, x, state, alone), lengths)
  if alone then
    return y[{ {}, 1 }], drop_row(kind, last)
  end
  return turned and y:transpose(1, 2) or y, last
end

-- ---- recurrent layers ----

---A recurrent network: y, h = rnn(x, h, { lengths = n }). x is f32[time, batch, inputs], y what the last layer makes
---of it, f32[time, batch, hidden]: h = tanh(x · weight_ih + bias_ih + h · weight_hh + bias_hh), for one element of axis
---1 after the other. The state h is f32[layers, batch, hidden], zeros unless it is given; the last one comes back.
---Without an axis for the batch there is none in y and h either.
---
---    local rnn = nn.RNN(8, 16)
---    local y, h = rnn(dc.ones "f32[10, 4, 8]")
---    print(y[10]:eq(h[1]):all())
---
---`layers` of them are stacked, each on what the one below gives, with dropout between while training. With
---`bidirectional` each layer has a second network that goes from the last element to the first; y has both side by
---side, f32[time, batch, 2 * hidden], and h twice as many rows: of layer 1 forwards, of layer 1 backwards, of layer 2
---... With `batch_first` x and y are [batch, time, ...]; the state stays as it is.
---
---`lengths`, integers[batch], are numbers of elements: those behind leave the state of a row alone and give zeros in y,
---and the way back begins at the last one of each row.
---
---Parameters are called as in PyTorch, weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0, _l1 ..., _l0_reverse;
---matrices are [inputs, outputs] as those of nn.Linear, and dc.load turns those of PyTorch. All start uniform in
---[-1/sqrt(hidden), 1/sqrt(hidden)).
---
---Errors: DC0101 for options; when it is called, DC0301 for sizes, DC0202 for dtypes, DC0701 for lengths outside 0 to
---the number of elements.
---@class deepc.nn.RNN: deepc.nn.Layer
local RNN = nn.class "nn.RNN"
nn.RNN = RNN

---What recurrent layers are stacked with: 1, 0, false.
---@alias deepc.nn.StackOptions { layers?: integer, dropout?: number, bidirectional?: boolean }

---@param inputs integer the size of the last axis of x
---@param hidden integer the size of h
---@param options? deepc.nn.StackOptions|{ bias?: boolean, batch_first?: boolean, nonlinearity?: "tanh"|"relu" }
function RNN:init(inputs, hidden, options)
  core.options("nn.RNN", options, "layers", "bias", "dropout", "bidirectional", "batch_first", "nonlinearity")
  start(self, kinds.RNN, "nn.RNN", inputs, hidden, options)
end

function RNN:describe()
  return describe(self, "nn.RNN")
end

function RNN:forward(x, state, options)
  local y, last = run(self, kinds.RNN, "nn.RNN", x, state, options)
  return y, last
end

---A network of long short-term memory (Hochreiter and Schmidhuber, 1997; Gers, Schmidhuber and Cummins, 2000):
---y, state = lstm(x, state, { lengths = n }), as nn.RNN, and the state is a record of h and c.
---
---    local lstm = nn.LSTM(8, 16, { layers = 2 })
---    local y, state = lstm(dc.ones "f32[10, 4, 8]")
---    print(y.shape[3], state.c.shape[1])
---
---    i, f, g, o = parts of x · weight_ih + bias_ih + h · weight_hh + bias_hh
---    c = sigmoid(f) * c + sigmoid(i) * tanh(g)
---    h = sigmoid(o) * tanh(c)
---
---With `proj_size` h is multiplied by weight_hr, f32[hidden, proj_size], and has that size in y and in the state
---(Sak, Senior and Beaufays, 2014).
---
---Errors: those of nn.RNN.
---@class deepc.nn.LSTM: deepc.nn.Layer
local LSTM = nn.class "nn.LSTM"
nn.LSTM = LSTM

---@param inputs integer the size of the last axis of x
---@param hidden integer the size of h and c
---@param options? deepc.nn.StackOptions|{ bias?: boolean, batch_first?: boolean, proj_size?: integer }
function LSTM:init(inputs, hidden, options)
  core.options("nn.LSTM", options, "layers", "bias", "dropout", "bidirectional", "batch_first", "proj_size")
  start(self, kinds.LSTM, "nn.LSTM", inputs, hidden, options)
end

function LSTM:describe()
  return describe(self, "nn.LSTM")
end

function LSTM:forward(x, state, options)
  local y, last = run(self, kinds.LSTM, "nn.LSTM", x, state, options)
  return y, last
end

---A network of gated recurrent units (Cho et al., 2014): y, h = gru(x, h, { lengths = n }), as nn.RNN.
---
---    local gru = nn.GRU(8, 16, { bidirectional = true })
---    local y, h = gru(dc.ones "f32[10, 4, 8]")
---    print(y.shape[3], h.shape[1])
---
---    a, b = x · weight_ih + bias_ih, h · weight_hh + bias_hh, each of parts r, z, n
---    r, z = sigmoid(a.r + b.r), sigmoid(a.z + b.z)
---    n = tanh(a.n + r * b.n)
---    h = (1 - z) * n + z * h
---
---Errors: those of nn.RNN.
---@class deepc.nn.GRU: deepc.nn.Layer
local GRU = nn.class "nn.GRU"
nn.GRU = GRU

---@param inputs integer the size of the last axis of x
---@param hidden integer the size of h
---@param options? deepc.nn.StackOptions|{ bias?: boolean, batch_first?: boolean }
function GRU:init(inputs, hidden, options)
  core.options("nn.GRU", options, "layers", "bias", "dropout", "bidirectional", "batch_first")
  start(self, kinds.GRU, "nn.GRU", inputs, hidden, options)
end

function GRU:describe()
  return describe(self, "nn.GRU")
end

function GRU:forward(x, state, options)
  local y, last = run(self, kinds.GRU, "nn.GRU", x, state, options)
  return y, last
end
