#!/bin/sh
# The prompt: sessions at a pseudo-terminal (pty.c), and the same on a pipe.
. "$(dirname "$0")/lib.sh"
: "${DEEPC_PTY:?the program that types}"

HOME=$dir TERM=xterm
export HOME TERM
unset XDG_STATE_HOME DEEPC_HISTORY NO_COLOR
ASAN_OPTIONS=${ASAN_OPTIONS:-}:fast_unwind_on_malloc=0:malloc_context_size=8 # to see those of libedit
export ASAN_OPTIONS

session() { # session SENTENCE ARGS... <STEPS
    what=$1
    shift
    run "$DEEPC_PTY" "$DEEPC" "$@"
    check "$what" test "$status" -eq 0
}

session "values are printed, the last one is _" <<'EOT'
expect Ctrl-D to leave
prompt >
line 20 + 22
expect 42
prompt >
line _ * 2, "two"
expect 84
expect two
prompt >
line { b = { 1, 2 }, 7, a = "x" }
expect { 7, a = "x", b = { 1, 2 } }
prompt >
line dc.tensor { 1, 2 } * 2
expect 2.0  4.0
expect f32[2]
prompt >
line x = 5
prompt >
line x
expect 5
prompt >
send \x04
end 0
EOT

session "a piece of several lines" <<'EOT'
prompt >
line function double(n)
prompt >>
line   return 2 * n
prompt >>
line end
prompt >
line double(
prompt >>
line 21)
expect 42
prompt >
line "begun" ..
prompt >>
send \x03
prompt >
line double(4)
expect 8
prompt >
line :quit
end 0
EOT

session "completion of globals, fields, methods and commands" <<'EOT'
prompt >
send string.for\t
expect string.format
send ("%d", 7)\n
expect 7
prompt >
line t = { inner = { wanted = 11 }, other = 1 }
prompt >
send t.in\t
expect t.inner
send .wa\t
expect .wanted
send \n
expect 11
prompt >
line x = dc.tensor { 1, 2, 3 }
prompt >
send x:tota\t
expect x:totable
send ()\n
expect { 1.0, 2.0, 3.0 }
prompt >
send dc.iot\t
expect dc.iota
send (3)\n
expect i32[3]
prompt >
line net = nn.Linear(2, 3)
prompt >
send net:param\t
expect net:parameters
send ()\n
expect f32[2, 3]
prompt >
send net.wei\t
expect net.weight
send .sha\t
expect .shape
send [2]\n
expect 3
prompt >
line opt = optim.Adam(net:parameters(), { lr = 0.5 })
prompt >
send opt:st\t
expect opt:step
send \x03
prompt >
send x.\t
expect shape
send \x15x.\t
expect dtype
send dty\t
expect dtype
send \n
expect f32
prompt >
send :ty\t
expect :type
send  x\n
expect f32[3]
prompt >
send \x04
end 0
EOT

session "commands" <<'EOT'
prompt >
line :help
expect :source   F [N [FORM]]
prompt >
line :help view
expect view: here :reshape
prompt >
line :help lstm
expect nn.LSTM(inputs, hidden, options?)
prompt >
line :help no_such_thing
expect nothing is known of that name
prompt >
line :help tensor
expect dc.tensor
prompt >
line :type { 1, x = 2 }
expect table, 1 elements and 1 fields
prompt >
line :type 3
expect integer
prompt >
line w = dc.param("f32[4, 4]", dc.ones "f32[4, 4]")
prompt >
line :type w
expect f32[4, 4]   a parameter
prompt >
line f = dc.fn("f(x: f32[4, 4]) -> f32[4, 4]", function(x) return x:matmul(w):exp() end)
prompt >
line :type f
expect f(x: f32[4, 4]) -> f32[4, 4]
prompt >
line :time f(w)
expect first
expect median of
prompt >
line :explain f
expect 1 specialisation
expect per call
expect stdin:1
prompt >
line :kernels f
expect GFLOP/s     GB/s  peak
expect %
expect stdin:1
prompt >
line h = dc.fn("h(x: f32[n <= 64]) -> f32[]", function(x) return x:sum() end)
prompt >
line h(dc.ones "f32[3]"):item()
expect 3
prompt >
line :kernels h
expect     -        -     -
prompt >
line :source f 1 flat
expect : stdin:1
expect f32
prompt >
line :source f 9
expect no kernel 9
prompt >
line :plan f
expect result 1 <-
prompt >
line :mem
expect tensors and cells
prompt >
line :explain 5
expect that is no typed function
prompt >
line :explain DC0301
expect dims that do not fit
prompt >
line :quit
end 0
EOT

session "errors are printed and the session goes on" <<'EOT'
prompt >
line x = = 1
expect stdin:1: unexpected symbol near '='
prompt >
line error "oops"
expect stdin:1: oops
absent traceback
line local function f() error "deep" end f() return 1
expect stdin:1: deep
expect in local 'f'
prompt >
line dc.zeros "f32[2]" + dc.zeros "f32[3]"
expect add: axis 1: 2 against 3
expect [DC0301; deepc explain DC0301]
prompt >
line :nothing
expect no command ':nothing'
expect :help
prompt >
line 1 + 1
expect 2
prompt >
send \x04
end 0
EOT

session "Ctrl-C ends Lua, in coroutines too, and where errors are caught" <<'EOT'
prompt >
line kept = 17
prompt >
line while true do end
pause 300
send \x03
within 20000 interrupted
prompt >
line while true do pcall(function() while true do end end) end
pause 300
send \x03
pause 300
send \x03
within 20000 interrupted
prompt >
line coroutine.wrap(function() while true do end end)()
pause 300
send \x03
within 20000 interrupted
prompt >
line coroutine.resume(coroutine.create(function() while true do pcall(function() while true do end end) end end))
pause 300
send \x03
pause 300
send \x03
prompt >
line pcall(string.rep, 1)
expect false
prompt >
line kept
expect 17
prompt >
send \x04
end 0
EOT

session "Ctrl-C ends a long graph between two kernels" <<'EOT'
prompt >
line function chain(x) for _ = 1, 2000 do x = x:matmul(x) * 1e-3 end return x end
prompt >
line f = dc.fn("f(x: f32[800, 800]) -> f32[800, 800]", chain)
prompt >
line x = dc.ones "f32[800, 800]"
prompt >
line y = f(x)
pause 3000
send \x03
within 20000 interrupted
prompt >
line x:sum()
expect 640000.0
prompt >
send \x04
end 0
EOT

session "Ctrl-C ends a write for which the terminal has no room" <<'EOT'
prompt >
line for i = 1, 20000 do io.write("\n") end
hold 1000
send \x03
within 20000 interrupted
prompt >
line 40 + 2
expect 42
prompt >
send \x04
end 0
EOT

session "history comes back after a restart, several lines as one" <<'EOT'
prompt >
line for i = 1, 2 do
prompt >>
line print("line " .. i)
prompt >>
line end
expect line 2
prompt >
line 6 * 7
expect 42
prompt >
send \x04
end 0
EOT
session "history after a restart" <<'EOT'
prompt >
send \x10
expect 6 * 7
send \x10
expect for i = 1, 2 do
expect print("line " .. i)
expect end
send \n
expect line 1
expect line 2
prompt >
send \x04
end 0
EOT
check "the history is for its owner alone" test "$(stat -c %a "$dir/.deepc_history")" = 600
check "and has a line for each piece" grep -q 'for i = 1, 2 do\\nprint' "$dir/.deepc_history"

rm -f "$dir/.deepc_history"
DEEPC_HISTORY=off
export DEEPC_HISTORY
session "no history is kept where none is wanted" <<'EOT'
prompt >
line 6 * 7
expect 42
prompt >
send \x04
end 0
EOT
check "there is no file" test ! -e "$dir/.deepc_history"

session "errors are red on a terminal" <<'EOT'
prompt >
line error "oops"
raw \e[31mstdin:1: oops\e[0m
prompt >
send \x04
end 0
EOT
NO_COLOR=1
export NO_COLOR
session "and not with NO_COLOR" <<'EOT'
prompt >
line error "oops"
raw \x0astdin:1: oops
prompt >
send \x04
end 0
EOT
unset NO_COLOR

session "the prompt after a script and -e" -i -e 'early = 3' <<'EOT'
prompt >
line early
expect 3
prompt >
send \x04
end 0
EOT

# ---- on a pipe

printf '1 + 1\nfor i = 1, 2 do\nprint(i)\nend\nerror "oops"\n:type dc.zeros "f32[2]"\n"last"\n' >"$dir/in"
piped() {
    "$DEEPC" -i <"$dir/in"
}
run piped
check "on a pipe values are printed, without signs" test "$out" = "2
1
2
f32[2]
last"
check "and errors" test "$err" = "stdin:1: oops"
check "the status is 0" test "$status" -eq 0

printf 'for i = 1, 50000 do io.write("line ", i, "\\n") end\nprint "after"\n' >"$dir/in"
mkfifo "$dir/slow"
stopped() { # a write to the pipe waits when the signal comes
    "$DEEPC" -i <"$dir/in" >"$dir/slow" &
    { read -r line; echo "$line"; sleep 2; kill -INT $!; sleep 2; cat; } <"$dir/slow" # from the first line on
    wait $!
}
run stopped
check "a write that SIGINT ended is no failure of stdout" test "$status" -eq 0
check "its piece ends there" warns "stdin:1: interrupted"
check "and what comes next is written" test "$(tail -c 6 "$dir/out")" = after
full() {
    "$DEEPC" -i <"$dir/in" >/dev/full
}
run full
check "output that finds no room is one" test "$status" -eq 1

printf 'print(1 + 1)\nprint "two"\n' >"$dir/in"
script() {
    "$DEEPC" <"$dir/in"
}
run script
check "without -i a pipe is a script" test "$out" = "2
two"
echo 'x = = 1' >"$dir/in"
run script
check "with a script's status" test "$status" -eq 1

# ---- words that other prompts know, and locals

printf 'local a = 1\nlocal b = 2\nhelp relu\nhelp\nquit\nprint "not reached"\n' >"$dir/in"
piped() {
    "$DEEPC" -i <"$dir/in"
}
run piped
check "help NAME tells of a name" says "The larger of x and 0"
check "help lists the commands" says ":explain"
check "quit leaves" test "$(grep -c 'not reached' "$dir/out")" -eq 0
check "a local that is gone is told once" test "$(grep -c 'a local ends with the piece' "$dir/err")" -eq 1
printf 'help = 7\nhelp\nexit()\nprint "not reached"\n' >"$dir/in"
run piped
check "a global of that name is itself" test "$out" = 7

# ---- a script and Ctrl-C

cat >"$dir/long.lua" <<'EOT'
io.stdout:write "ready\n"
io.stdout:flush()
while true do end
EOT
session "Ctrl-C ends a script with an error" "$dir/long.lua" <<'EOT'
expect ready
send \x03
within 20000 interrupted
end 1
EOT
closing
