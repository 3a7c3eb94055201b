-- Steps of recurrent networks, and the cells that do one each.
--
-- A step is given what the inputs add to the gates, biases in it, and the state, and gives the next state. What the
-- inputs add does not depend on the state, so recurrent.lua computes it of all elements at once.

local dc = require "deepc"
local nn = require "deepc.nn.class"
local _, core = ...

-- ---- steps ----

-- What a step reads besides: the matrix for the state (hh), the one that makes h of it (hr), a bias that is added to
-- what the state gives to the last gate (inner), the function of nn.RNN (act).

local function rnn_step(added, h, w)
  return w.act(added + dc.matmul(h, w.hh))
end

local function lstm_step(added, state, w)
  local i, f, g, o = (added + dc.matmul(state.h, w.hh)):split(4, -1)
  local c = f:sigmoid() * state.c + i:sigmoid() * g:tanh()
  local h = o:sigmoid() * c:tanh()
  return { h = w.hr and dc.matmul(h, w.hr) or h, c = c }
end

local function gru_step(added, h, w)
  local add_r, add_z, add_n = added:split(3, -1)
  local r, z, n = dc.matmul(h, w.hh):split(3, -1)
  r, z = (add_r + r):sigmoid(), (add_z + z):sigmoid()
  n = (add_n + r * (w.inner and n + w.inner or n)):tanh()
  return n + z * (h - n)
end

-- A kind of network: the number of its gates, a step, and whether the state is a record of h and c.
local kinds = {
  RNN = { gates = 1, step = rnn_step },
  LSTM = { gates = 4, step = lstm_step, has_c = true },
  GRU = { gates = 3, step = gru_step, is_gru = true },
}
core.recurrent = kinds

local function relu(x) return (x:relu()) end

local function tanh(x) return (x:tanh()) end

-- ---- weights ----

-- Gives the layer its weights, whose names end in suffix. `out` is the size of h. [inputs, outputs] as nn.Linear.
function kinds.add_weights(layer, kind, suffix, inputs, hidden, out, bias)
  local bound, all = hidden ^ -0.5, kind.gates * hidden
  local function add(name, linear, sizes, ...)
    local type_text = sizes:format(...)
    local cell = dc.param(type_text, dc.rand(type_text, { low = -bound, high = bound }))
    core.is_linear[cell] = linear
    layer[name .. suffix] = cell
  end
  add("weight_ih", true, "f32[%d, %d]", inputs, all)
  add("weight_hh", true, "f32[%d, %d]", out, all)
  if bias then
    add("bias_ih", nil, "f32[%d]", all)
    add("bias_hh", nil, "f32[%d]", all)
  end
  if out ~= hidden then
    add("weight_hr", true, "f32[%d, %d]", hidden, out)
  end
end

-- What a step reads, and the bias that all inputs are given.
function kinds.read_weights(layer, kind, suffix)
  local ih, hh = layer["bias_ih" .. suffix], layer["bias_hh" .. suffix]
  local w = { hh = layer["weight_hh" .. suffix], hr = layer["weight_hr" .. suffix],
    act = layer.nonlinearity == "relu" and relu or tanh }
  if not hh then
    return w, ih
  elseif kind.is_gru then -- the last gate multiplies its bias
    local n = layer.hidden
    w.inner = hh[{ { 2 * n + 1, 3 * n } }]
    hh = hh[{ { 1, 2 * n } }]:pad { { 0, n } }
  end
  return w, ih and ih + hh or hh
end

-- What the inputs add to the gates.
function kinds.add_inputs(layer, x, suffix, bias)
  local added = dc.matmul(x, layer["weight_ih" .. suffix])
  return bias and added + bias or added
end

-- ---- checks ----

local function type_of(t)
  return ("%s[%s]"):format(t.dtype, core.sizes(t.shape))
end

function kinds.check_options(layer, op, inputs, hidden, options)
  core.check_size(op, "the number of inputs", inputs)
  core.check_size(op, "the size of the state", hidden)
  layer.inputs, layer.hidden = inputs, hidden
  local act = options and options.nonlinearity
  if act ~= nil and act ~= "tanh" and act ~= "relu" then
    core.fail("ARG", op, ('nonlinearity is "tanh" or "relu", not %s'):format(core.shown(act)))
  end
  layer.nonlinearity = act
end

-- Floats of the weights' type; `fits` says whether the sizes do, and `needed` which would.
function kinds.check_input(layer, op, x, weight, fits, needed)
  core.check_tensor(op, x, "x")
  if x.dtype ~= weight.dtype then
    core.fail("DTYPE", op, ("x is %s; %s is needed, as the weights are"):format(type_of(x), weight.dtype),
      (':cast "%s" converts'):format(weight.dtype), "x", x)
  elseif not fits(x.shape, layer.inputs) then
    core.fail("DIMS", op, ("x is %s; %s is needed"):format(type_of(x), needed), nil, "x", x)
  end
end

-- A type that is needed: its text, in which sizes have the names that they have in x, dtype and shape.
function kinds.type(x, text, shape)
  for _, n in ipairs(shape) do
    if core.is_size(n) then
      text = ("%s[%s]"):format(x.dtype, core.sizes(shape))
    end
  end
  return { text = text, dtype = x.dtype, shape = shape }
end

local function zeros(t)
  for _, n in ipairs(t.shape) do
    if core.is_size(n) then
      return dc.zeros(("%s[%s]"):format(t.dtype, ("1, "):rep(#t.shape - 1) .. "1")):expand(t.shape)
    end
  end
  return dc.zeros(t.text)
end

local function check_part(op, what, part, t)
  local needed = t.text:gsub("[%a_][%w_]*=", "")
  core.check_tensor(op, part, what)
  if type_of(part) ~= needed then
    core.fail(part.dtype ~= needed:match "^%w+" and "DTYPE" or "DIMS", op,
      ("%s is %s; %s is needed"):format(what, type_of(part), needed), nil, "state", part)
  end
end

-- The state that is given, or zeros: types are those of h and c.
function kinds.check_state(op, kind, state, h_type, c_type)
  if not kind.has_c then
    if state == nil then
      return zeros(h_type)
    end
    check_part(op, "the state", state, h_type)
    return state
  elseif state == nil then
    return { h = zeros(h_type), c = zeros(c_type) }
  elseif type(state) ~= "table" or getmetatable(state) ~= nil or state.h == nil or state.c == nil then
    core.fail("ARG", op, ("the state is %s; a record { h = %s, c = %s } is needed"):format(core.describe(state),
      h_type.text, c_type.text), "{ h = h, c = c }")
  end
  check_part(op, "state.h", state.h, h_type)
  check_part(op, "state.c", state.c, c_type)
  return state
end

-- ---- recurrent cells ----

local function start(layer, kind, op, inputs, hidden, options)
  kinds.check_options(layer, op, inputs, hidden, options)
  kinds.add_weights(layer, kind, "", inputs, hidden, hidden, core.unless_false(op, options, "bias"))
end

local function has_inputs(shape, inputs)
  return #shape > 0 and shape[#shape] == inputs
end

-- The sizes before the last one, with the names that they have.
local function leading(x)
  return core.describe(x):match "%[(.*)%]$":match "^(.*, )[^,]*$" or ""
end

local function step_once(layer, kind, op, x, state)
  local weight = layer.weight_ih
  kinds.check_input(layer, op, x, weight, has_inputs, ("%s[..., %d]"):format(weight.dtype, layer.inputs))
  local shape = x.shape
  shape[#shape] = layer.hidden
  local needed = kinds.type(x, ("%s[%s%d]"):format(x.dtype, leading(x), layer.hidden), shape)
  state = kinds.check_state(op, kind, state, needed, needed)
  local w, bias = kinds.read_weights(layer, kind, "")
  return kind.step(kinds.add_inputs(layer, x, "", bias), state, w)
end

local function describe(layer, op)
  return ("%s %d -> %d"):format(op, layer.inputs, layer.hidden)
end

---One step of nn.RNN: h = cell(x, h) for x[..., inputs] and h[..., hidden], which is zeros unless it is given.
---
---    local cell = nn.RNNCell(8, 16)
---    local h = dc.scan(function(h, x) h = cell(x, h); return h, h end, dc.zeros "f32[4, 16]", dc.ones "f32[10, 4, 8]")
---
---Its parameters are called as in PyTorch, weight_ih, weight_hh, bias_ih, bias_hh; matrices are [inputs, outputs].
---
---Errors: DC0101 for options; when it is called, DC0301 for sizes and DC0202 for dtypes.
---@class deepc.nn.RNNCell: deepc.nn.Layer
local RNNCell = nn.class "nn.RNNCell"
nn.RNNCell = RNNCell

---@param inputs integer
---@param hidden integer the size of h
---@param options? { bias?: boolean, nonlinearity?: "tanh"|"relu" } true, "tanh"
function RNNCell:init(inputs, hidden, options)
  core.options("nn.RNNCell", options, "bias", "nonlinearity")
  start(self, kinds.RNN, "nn.RNNCell", inputs, hidden, options)
end

function RNNCell:describe()
  return describe(self, "nn.RNNCell")
end

function RNNCell:forward(x, state)
  local h = step_once(self, kinds.RNN, "nn.RNNCell", x, state)
  return h
end

---One step of nn.LSTM: state = cell(x, state) for x[..., inputs] and a record of h[..., hidden] and c[..., hidden],
---zeros unless it is given. The gates stand in the weights as i, f, g, o.
---
---    local cell = nn.LSTMCell(8, 16)
---    local state = cell(dc.ones "f32[4, 8]")
---    state = cell(dc.ones "f32[4, 8]", state)
---    print(state.h)
---
---Errors: those of nn.RNNCell.
---@class deepc.nn.LSTMCell: deepc.nn.Layer
local LSTMCell = nn.class "nn.LSTMCell"
nn.LSTMCell = LSTMCell

---@param inputs integer
---@param hidden integer the size of h and c
---@param options? { bias?: boolean } true
function LSTMCell:init(inputs, hidden, options)
  core.options("nn.LSTMCell", options, "bias")
  start(self, kinds.LSTM, "nn.LSTMCell", inputs, hidden, options)
end

function LSTMCell:describe()
  return describe(self, "nn.LSTMCell")
end

function LSTMCell:forward(x, state)
  local next = step_once(self, kinds.LSTM, "nn.LSTMCell", x, state)
  return next
end

---One step of nn.GRU: h = cell(x, h), as nn.RNNCell. The gates stand in the weights as r, z, n.
---
---    local cell = nn.GRUCell(8, 16)
---    print(cell(dc.ones "f32[4, 8]"))
---
---Errors: those of nn.RNNCell.
---@class deepc.nn.GRUCell: deepc.nn.Layer
local GRUCell = nn.class "nn.GRUCell"
nn.GRUCell = GRUCell

---@param inputs integer
---@param hidden integer the size of h
---@param options? { bias?: boolean } true
function GRUCell:init(inputs, hidden, options)
  core.options("nn.GRUCell", options, "bias")
  start(self, kinds.GRU, "nn.GRUCell", inputs, hidden, options)
end

function GRUCell:describe()
  return describe(self, "nn.GRUCell")
end

function GRUCell:forward(x, state)
  local h = step_once(self, kinds.GRU, "nn.GRUCell", x, state)
  return h
end
