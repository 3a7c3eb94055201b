-- Losses: functions of what a network gives and what it should give.

local dc = require "deepc"
local nn = require "deepc.nn.class"
local _, core = ...

-- ---- losses ----

---The mean over rows of -log softmax(logits) at the label of the row.
---
---    nn.cross_entropy(dc.zeros "f32[2, 10]", dc.tensor({ 3, 7 }, "i32"))
---
---Errors: DC0202 for labels that are no integers, DC0301 for other shapes, DC0701 for a label outside.
---@param logits deepc.Tensor f32[rows, classes]
---@param labels deepc.Tensor integers[rows], 0 to classes - 1
---@return deepc.Tensor # f32[]
function nn.cross_entropy(logits, labels)
  local op = "cross_entropy"
  if not core.kind(logits) or not core.kind(labels) then
    core.fail("ARG", op, "logits and labels are tensors")
  end
  local function type_of(t)
    return ("%s[%s]"):format(t.dtype, table.concat(t.shape, ", "))
  end
  if not labels.dtype:match "^[iu]" then
    core.fail("DTYPE", op, ("labels are %s; class numbers are integers from 0"):format(type_of(labels)),
      ('dc.tensor(t, "i32[%s]")'):format(table.concat(labels.shape, ", ")), "labels", labels)
  end
  if #logits.shape ~= 2 or #labels.shape ~= 1 or #logits ~= #labels then
    core.fail("DIMS", op, ("logits are %s, labels %s; f32[rows, classes] and integers[rows] are needed")
      :format(type_of(logits), type_of(labels)), nil, "logits", logits, "labels", labels)
  end
  local rows, classes = logits:size(1), logits:size(2)
  core.check_class(labels, classes, op)
  local class = dc.iota(("i32[1, %d]"):format(classes), 2)
  local hit = class:eq(labels:cast("i32"):reshape(rows, 1))
  local loss = dc.where(hit, logits:log_softmax(2), 0):sum() * (-1 / rows)
  return loss
end
