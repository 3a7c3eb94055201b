-- Training loops, and what they write. The files of train/ add to this table.

---Training: a loop with evaluation, checkpoints and logs, and files for TensorBoard.
---
---    local train = require "deepc.train"
---@class deepc.train
local train = {}

return train
