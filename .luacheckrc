-- Settings of luacheck (scripts/luacheck.sh).
std = "lua54"
max_line_length = 120
cache = false
self = false -- methods need not use self

files["tests/"] = {
  ignore = { "1../[Tt]est.*" }, -- LuaUnit finds tests by their global names
}

files["extras/editors/neovim/"] = {
  globals = { "vim" },
}
files["tests/program/neovim.lua"] = {
  globals = { "vim" },
}

files["library/"] = {
  ignore = { "211", "212", "241", "631" },
}
files["stdlib/api/"] = {
  ignore = { "211", "212", "241" }, -- stubs: nothing is used
}
