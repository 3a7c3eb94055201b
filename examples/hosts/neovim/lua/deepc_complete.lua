-- Completion by a small network that learns the open buffers while they are edited. The network is in a child process,
-- `deepc trainer.lua`, which trains for a moment whenever it is told to; the editor never waits for that.
--
--     require("deepc_complete").start { program = "deepc" }
--     :set completefunc=v:lua.require'deepc_complete'.complete     then CTRL-X CTRL-U
--     :set statusline=%f\ %{v:lua.require'deepc_complete'.status()}
-- luacheck: globals vim
local M = {}

local defaults = {
  program = "deepc",  -- of deepc
  slice = 80,         -- milliseconds of training at once,
  pause = 40,         -- and between two of them
  steps = 4000,       -- then it rests until a buffer changes
  wait = 1000,        -- most milliseconds that a completion may take
  bytes = 1024 * 1024, -- most text of a buffer
}

local trainer = debug.getinfo(1, "S").source:sub(2):gsub("lua/[^/]*$", "") .. "trainer.lua"

local state = { losses = {}, steps = 0, text_at = 0, asked = 0 }

local function say(words)
  vim.schedule(function() vim.api.nvim_err_writeln("deepc: " .. words) end)
end

local function send(line, bytes)
  if state.job then vim.fn.chansend(state.job, line .. "\n" .. (bytes or "")) end
end

-- ---- what it learns ----

local function text_of_buffers()
  local parts = {}
  for _, b in ipairs(vim.api.nvim_list_bufs()) do
    if vim.api.nvim_buf_is_loaded(b) and vim.bo[b].buftype == "" and
      vim.api.nvim_buf_get_offset(b, vim.api.nvim_buf_line_count(b)) <= state.options.bytes then
      parts[#parts + 1] = table.concat(vim.api.nvim_buf_get_lines(b, 0, -1, false), "\n")
    end
  end
  return table.concat(parts, "\n") .. "\n"
end

local function send_text()
  local text = text_of_buffers()
  if text:find "%S" then send(("text %d"):format(#text), text) end
  state.text_at = state.steps
end

local function train()
  if not state.job or state.training then return end
  if state.steps - state.text_at >= state.options.steps then return end -- rests
  state.training = true
  send(("train %d"):format(state.options.slice))
end

-- A change is learned a second after the last one.
local function on_change()
  if state.timer then state.timer:stop() end
  state.timer = vim.defer_fn(function()
    state.timer = nil
    if not state.job then return end
    send_text()
    train()
  end, 1000)
end

-- ---- what it answers ----

local function on_line(line)
  local steps, loss = line:match "^trained (%d+) (%S+)$"
  if steps then
    state.steps, state.loss, state.training = tonumber(steps), tonumber(loss), false
    table.insert(state.losses, state.loss)
    if #state.losses > 60 then table.remove(state.losses, 1) end
    vim.schedule(function() vim.cmd "redrawstatus" end)
    if state.float then M.window() end
    vim.defer_fn(train, state.options.pause)
    return
  end
  local id, words = line:match "^completion (%d+)(.*)$"
  if id then -- one that comes too late is wanted no more
    if tonumber(id) == state.waiting then state.answer = vim.split(vim.trim(words), " ", { trimempty = true }) end
  elseif line ~= "" then
    say(line)
  end
end

-- Chunks of output are lists of lines, whose first continues the last one before.
local function on_output(_, data)
  data[1] = (state.rest or "") .. data[1]
  state.rest = table.remove(data)
  for _, line in ipairs(data) do on_line(line) end
end

-- ---- for users ----

function M.start(options)
  M.stop()
  state.options = vim.tbl_extend("force", defaults, options or {})
  state.rest, state.training, state.losses = nil, false, {}
  state.steps, state.text_at, state.loss = 0, 0, nil
  local job
  local ok, result = pcall(vim.fn.jobstart, { state.options.program, trainer }, {
    on_stdout = on_output,
    on_stderr = function(_, data)
      local words = vim.trim(table.concat(data, "\n"))
      if words ~= "" then say(words) end
    end,
    on_exit = function(_, code)
      if state.job ~= job then return end
      state.job = nil
      if code ~= 0 and code ~= 143 then say("the trainer ended with status " .. code) end
    end,
  })
  if not ok or result <= 0 then
    say("cannot start " .. state.options.program)
    return false
  end
  job = result
  state.job = job
  local group = vim.api.nvim_create_augroup("deepc_complete", {})
  vim.api.nvim_create_autocmd({ "BufReadPost", "TextChanged", "TextChangedI" }, { group = group, callback = on_change })
  vim.api.nvim_create_autocmd("VimLeavePre", { group = group, callback = M.stop })
  send_text()
  train()
  return true
end

function M.stop()
  local job = state.job
  state.job = nil
  pcall(vim.api.nvim_del_augroup_by_name, "deepc_complete")
  if job then vim.fn.jobstop(job) end
end

-- For 'completefunc'.
function M.complete(findstart, base)
  local at = vim.api.nvim_win_get_cursor(0)
  local row, line = at[1], vim.api.nvim_get_current_line():sub(1, at[2])
  if findstart == 1 then return #line - #line:match "[%w_]*$" end
  if not state.job then return {} end
  local before = vim.api.nvim_buf_get_lines(0, math.max(0, row - 3), row - 1, false)
  before[#before + 1] = line -- in which vim has removed the base
  local text = table.concat(before, "\n") .. base
  state.asked = state.asked + 1
  local id = state.asked
  state.waiting, state.answer = id, nil
  send(("complete %d %d"):format(id, #text), text)
  vim.wait(state.options.wait, function() return state.answer ~= nil or not state.job end, 5)
  local words, answer = {}, state.answer
  state.waiting, state.answer = nil, nil
  for _, rest in ipairs(answer or {}) do words[#words + 1] = { word = base .. rest, menu = "[deepc]" } end
  return words
end

-- For 'statusline'.
function M.status()
  if not state.job then return "deepc: off" end
  if not state.loss then return "deepc: ..." end
  local resting = state.steps - state.text_at >= state.options.steps and ", rests" or ""
  return ("deepc: loss %.2f, %d steps%s"):format(state.loss, state.steps, resting)
end

-- A floating window with the losses of the last minute, or renews it.
function M.window()
  local bars = { "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" }
  local most, line = 1e-6, {}
  for _, loss in ipairs(state.losses) do most = math.max(most, loss) end
  for i, loss in ipairs(state.losses) do line[i] = bars[1 + math.floor(7 * loss / most)] end
  local lines = { M.status(), table.concat(line) }
  if not (state.float and vim.api.nvim_win_is_valid(state.float)) then
    state.buffer = vim.api.nvim_create_buf(false, true)
    state.float = vim.api.nvim_open_win(state.buffer, false, {
      relative = "editor", anchor = "NE", row = 0, col = vim.o.columns, width = 62, height = 2, style = "minimal",
      border = "single", focusable = false,
    })
  end
  vim.api.nvim_buf_set_lines(state.buffer, 0, -1, false, lines)
end

function M.close_window()
  if state.float and vim.api.nvim_win_is_valid(state.float) then vim.api.nvim_win_close(state.float, true) end
  state.float = nil
end

-- What there is, for scripts: the child's process id, steps, losses, words that wait for their completion.
function M.info()
  return { pid = state.job and vim.fn.jobpid(state.job), steps = state.steps, loss = state.loss, losses = state.losses,
    answer = state.answer }
end

return M
