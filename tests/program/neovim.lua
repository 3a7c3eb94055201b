-- Run by `nvim --headless` in wrong.lua with extras/editors/neovim/deepc.lua: what a user sees, a line for each thing.

local patience = 20000
local function say(...)
  io.stdout:write(table.concat({ ... }, "  "), "\n")
end

local function diagnostics(n)
  vim.wait(patience, function()
    return #vim.diagnostic.get(0) == n
  end, 20)
  for _, d in ipairs(vim.diagnostic.get(0)) do
    say("diagnostic", d.lnum + 1, d.col, d.source, d.message:match "^[^\n]*")
  end
  say("diagnostics", #vim.diagnostic.get(0))
end

-- The answer of the server about the place of the cursor.
local function ask(method, line, column)
  vim.api.nvim_win_set_cursor(0, { line, column })
  local answers = vim.lsp.buf_request_sync(0, method, vim.lsp.util.make_position_params(0, "utf-16"), patience)
  local _, answer = next(answers or {})
  return answer and answer.result
end

local function hover(line, column)
  local result = ask("textDocument/hover", line, column)
  say("hover", result and (result.contents.value:gsub("\n", " ")) or "nothing")
end

diagnostics(1)
vim.api.nvim_buf_set_lines(0, 3, 4, true, { "  local y = x:flatten(2):matmul(w)", "  return y" })
diagnostics(0)
vim.wait(300)
hover(4, 8)
hover(4, 26)
vim.api.nvim_buf_set_lines(0, 4, 5, true, { "  return y:" })
diagnostics(1)
vim.o.virtualedit = "onemore" -- the cursor behind the line, as while it is typed
local found = {}
for _, item in ipairs(ask("textDocument/completion", 5, 11) or {}) do
  found[item.label] = item.detail
end
say("completion", found.sum or "nothing")
say("omnifunc", vim.bo.omnifunc)
vim.lsp.stop_client(vim.lsp.get_active_clients())
vim.cmd "qa!"
