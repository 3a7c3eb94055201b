-- Neovim and deepc's language server: diagnostics while typing, types on hover, completion. docs/editors.md.
--
-- Put this file into ~/.config/nvim/plugin/, or run it from init.lua with dofile. It works with Neovim 0.7 and later.

local settings = {
  name = "deepc",
  cmd = { vim.g.deepc_program or "deepc", "language-server" },
  init_options = vim.g.deepc_options or vim.empty_dict(), -- { seconds = 5, memory = 2048, delay = 100, arguments = {} }
}

-- The folder that scripts run in: where .git is, else that of the file.
local function find_root(path)
  local folder = vim.fn.fnamemodify(path, ":p:h")
  local git = vim.fn.finddir(".git", vim.fn.escape(folder, " ;,") .. ";")
  return git ~= "" and vim.fn.fnamemodify(git, ":p:h:h") or folder
end

local function on_attach(_, buffer)
  vim.bo[buffer].omnifunc = "v:lua.vim.lsp.omnifunc" -- completion by CTRL-X CTRL-O
  vim.keymap.set("n", "K", vim.lsp.buf.hover, { buffer = buffer })
  vim.keymap.set("n", "gd", vim.lsp.buf.definition, { buffer = buffer })
end

local clients = {} -- Neovim before 0.8: by folder

local function attach(buffer)
  local path = vim.api.nvim_buf_get_name(buffer)
  if path == "" or vim.bo[buffer].buftype ~= "" then
    return
  end
  local config = vim.tbl_extend("force", settings, { root_dir = find_root(path), on_attach = on_attach })
  if vim.lsp.start then
    vim.lsp.start(config, { bufnr = buffer })
    return
  end
  config.on_exit = function()
    clients[config.root_dir] = nil
  end
  clients[config.root_dir] = clients[config.root_dir] or vim.lsp.start_client(config)
  vim.lsp.buf_attach_client(buffer, clients[config.root_dir])
end

vim.api.nvim_create_autocmd("FileType", {
  pattern = "lua",
  callback = function(event)
    attach(event.buf)
  end,
})
