#!/bin/sh
# deepc language-server in editors: Neovim without a screen, the extension for VS Code in a stand-in for its interface.
. "$(dirname "$0")/lib.sh"
case $DEEPC in
/*) ;;
*) DEEPC=$PWD/$DEEPC ;;
esac
top=$PWD
unset DEEPC_DEVICE
cat >"$dir/wrong.lua" <<'EOF'
local dc = require "deepc"
local w = dc.param("f32[784, 10]", dc.zeros "f32[784, 10]")
local f = dc.fn("f(x: f32[32, 28, 28]) -> f32[32, 10]", function(x)
  return x:matmul(w)
end)
EOF

# Of the system, or of build/hosts (want_hosts of scripts/setup.sh).
hosts=$top/build/hosts/usr
nvim=$(command -v nvim || echo "$hosts/bin/nvim")
neovim() {
    case $nvim in
    "$hosts"/*) set -- VIMRUNTIME="$hosts/share/nvim/runtime" LD_LIBRARY_PATH="$hosts/lib/x86_64-linux-gnu" "$nvim" "$@" ;;
    *) set -- "$nvim" "$@" ;;
    esac
    env HOME="$dir" XDG_STATE_HOME="$dir" timeout 100 env "$@"
}

if [ -x "$nvim" ]; then
    run neovim --headless -u NONE --cmd "let g:deepc_program = '$DEEPC'" \
        --cmd 'filetype on' --cmd "luafile $top/extras/editors/neovim/deepc.lua" "$dir/wrong.lua" -c "luafile $top/tests/program/neovim.lua"
    check "Neovim: it ends" test "$status" -eq 0
    check "Neovim: a diagnostic" says "diagnostic  4  11  deepc  matmul: inner dims differ: axis 3 = 28 against axis 1 = 784
diagnostics  1"
    check "Neovim: it goes with the mistake" says "
diagnostics  0
hover"
    check "Neovim: the type of a local" says "hover  \`\`\`lua y: f32[32, 10] \`\`\`"
    check "Neovim: an operation" says "hover  \`\`\`lua matmul: f32[32, 10] \`\`\`  \`\`\`text x:matmul(b, options?)"
    check "Neovim: a mistake in Lua" says "  deepc  <name> expected near 'end'"
    check "Neovim: completion" says "completion  x:sum(axes?)"
    check "Neovim: its completion asks the server" says "omnifunc  v:lua.vim.lsp.omnifunc"
else
    skip "Neovim is not installed"
fi

if command -v node >/dev/null 2>&1; then
    run timeout 100 node tests/program/vscode.js "$top/extras/editors/vscode/extension.js" "$DEEPC" "$dir/wrong.lua"
    check "VS Code's extension: it ends" test "$status" -eq 0
    check "VS Code's extension: what it shows" test "$out" = 'diagnostic  4  11  0  DC0301  matmul: inner dims differ: axis 3 = 28 against axis 1 = 784
diagnostics  1
diagnostics  0
hover  ```lua y: f32[32, 10] ```
diagnostic  6  0  0  syntax  <name> expected near '"'end'"'
diagnostics  1
completion  x:sum(axes?)  1
resolved  x:sum(axes?)   dc.sum(x, axes?)
signature  dc.param(type, init?, options?)  0
diagnostic  6  0  0  syntax  <name> expected near '"'end'"'
diagnostics  1
diagnostics  0
log  deepc language-server: it ended (0)
log  deepc language-server: it ended (0)'
    run timeout 20 node tests/program/vscode.js "$top/extras/editors/vscode/extension.js" "$dir/no program" "$dir/wrong.lua"
    check "VS Code's extension: without the program" says "error  deepc: spawn $dir/no program ENOENT; the setting deepc.program names the program"
else
    skip "Node.js is not installed, in which the extension for VS Code is tested"
fi
closing
