#!/bin/sh
# examples/hosts/neovim in the real editor, without a screen: a buffer is learned in the background, completion, status, a changed buffer,
# errors; the child ends with the editor, in whatever way.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/lib_embed.sh"
need_program nvim
plugin=$PWD/examples/hosts/neovim
program_of_deepc=$(cd "$(dirname "$DEEPC")" && pwd)/$(basename "$DEEPC")
export HOME="$dir" XDG_CONFIG_HOME="$dir" XDG_DATA_HOME="$dir" XDG_STATE_HOME="$dir" XDG_CACHE_HOME="$dir"
[ -z "$libraries" ] || export VIMRUNTIME="$unpacked/usr/share/nvim/runtime"

i=0
while [ $i -lt 40 ]; do
    echo "local function forward(weights) return compute(weights, $i) end"
    i=$((i + 1))
done >"$dir/learned.lua"

cat >"$dir/drive.lua" <<'L'
local out = io.open(vim.env.OUT, "w")
local function tell(...)
  out:write(table.concat(vim.tbl_map(tostring, { ... }), " "), "\n")
  out:flush()
end
local deepc = require "deepc_complete"
tell("before", deepc.status())
tell("started", deepc.start { program = vim.env.PROGRAM, slice = 40, pause = 1 })
tell("pid", deepc.info().pid)
local began = vim.loop.hrtime()
vim.wait(30000, function() return deepc.info().loss ~= nil end, 2)
local first = deepc.info().loss
tell(("first loss %.2f after %.0f ms"):format(first, (vim.loop.hrtime() - began) / 1e6))
vim.wait(30000, function() return deepc.info().loss < 0.1 end, 2)
tell("fell", deepc.info().loss < 0.1 and first > 0.2)
tell("status", deepc.status())
deepc.window()
tell("windows", #vim.api.nvim_list_wins(), vim.api.nvim_buf_line_count(vim.api.nvim_win_get_buf(vim.api.nvim_list_wins()[2])))
deepc.close_window()
if vim.env.HOW == "sleep" then vim.wait(60000) end
vim.o.completefunc = "v:lua.require'deepc_complete'.complete"
vim.api.nvim_feedkeys(vim.api.nvim_replace_termcodes("Golocal func<C-X><C-U><Esc>", true, false, true), "tx", false)
tell("completed", vim.api.nvim_get_current_line())
vim.api.nvim_feedkeys(vim.api.nvim_replace_termcodes("ocompute(wei<C-X><C-U><Esc>", true, false, true), "tx", false)
tell("completed", vim.api.nvim_get_current_line())
for _ = 1, 3 do vim.cmd "doautocmd TextChanged" end
vim.wait(1100)
vim.cmd "doautocmd TextChanged"
local steps = deepc.info().steps
vim.wait(30000, function() return deepc.info().steps > steps end, 2)
tell("goes on", deepc.info().steps > steps)
deepc.stop()
tell("off", deepc.status())
tell("no program", deepc.start { program = "/nothing/deepc" })
tell("started", deepc.start { program = vim.env.PROGRAM, wait = 1, slice = 20, pause = 1 })
tell("pid", deepc.info().pid)
tell("too late", #deepc.complete(0, "func"))
for _ = 1, 2 do -- its answer comes between two slices
  local done = deepc.info().steps
  vim.wait(30000, function() return deepc.info().steps > done end, 2)
end
tell("kept", tostring(deepc.info().answer))
out:close()
vim.cmd "qall!"
L
edit() { # edit HOW
    begin env LD_LIBRARY_PATH="$libraries" OUT="$dir/told" HOW="$1" PROGRAM="$program_of_deepc" "$program" --headless -u NONE -n \
        --cmd "set runtimepath+=$plugin" "$dir/learned.lua" -c "luafile $dir/drive.lua"
}
told() { # told TEXT
    check "it tells: $1" grep -qF "$1" "$dir/told"
}
ends() { # ends PID: within a while
    tries=0
    while kill -0 "$1" 2>/dev/null && [ $tries -lt 200 ]; do
        sleep 0.02
        tries=$((tries + 1))
    done
    ! kill -0 "$1" 2>/dev/null
}

edit quit
status=0
wait "$pid" || status=$?
pid=
out=$(cat "$dir/told") err=$(cat "$dir/host")
check "the editor ends well" test "$status" -eq 0
told "before deepc: off"
told "started true"
told "fell true"
grep "first loss" "$dir/told"
check "the status has the loss" grep -qE '^status deepc: loss 0\.[01][0-9], [0-9]+ steps' "$dir/told"
told "windows 2 2"
told "completed local function"
told "completed compute(weights"
told "goes on true"
told "off deepc: off"
told "no program false"
told "too late 0"
told "kept nil"
for child in $(sed -n 's/^pid //p' "$dir/told"); do
    check "its child ends" ends "$child"
done
check "two of them there were" test "$(grep -c '^pid ' "$dir/told")" -eq 2

edit sleep
tries=0
until grep -q '^windows' "$dir/told" && [ "$(grep -c pid "$dir/told")" -eq 1 ] || [ $tries -gt 600 ]; do
    sleep 0.05
    tries=$((tries + 1))
done
child=$(sed -n 's/^pid //p' "$dir/told")
check "the child runs" kill -0 "$child"
kill -9 "$pid"
wait "$pid" 2>/dev/null
pid=
check "it ends where the editor is killed" ends "$child"

run sh -c "printf 'train 1\nnonsense\ntext 3\nabctrain 5\n' | '$DEEPC' '$plugin/trainer.lua'"
check "without a text it trains nothing" says "trained 0 "
check "what it does not know is told" says "error what is 'nonsense'?"
check "and it goes on" says "trained "
closing
