#!/bin/sh
# :show at a pseudo-terminal (pty.c): asking for Sixel, colours, what an answer that does not come costs; on a pipe.
. "$(dirname "$0")/lib.sh"
: "${DEEPC_PTY:?the program that types}"

HOME=$dir TERM=xterm COLORTERM=truecolor LANG=C.UTF-8
export HOME TERM COLORTERM LANG
unset XDG_STATE_HOME DEEPC_HISTORY NO_COLOR LC_ALL LC_CTYPE DEEPC_SHOW
ASAN_OPTIONS=${ASAN_OPTIONS:-}:fast_unwind_on_malloc=0:malloc_context_size=8
export ASAN_OPTIONS

session() { # session SENTENCE <STEPS
    run "$DEEPC_PTY" "$DEEPC"
    check "$1" test "$status" -eq 0
}

session "a terminal that answers with Sixel gets it, and is asked once" <<'EOT'
prompt >
line x = dc.tensor { { 0, 1 }, { 1, 0 } }
prompt >
line :show x
raw \e[c
send \e[?64;1;4;22c
raw \eP0;1q"1;1;256;256
raw f32[2, 2]   0 to 1
prompt >
line :show x
raw \eP0;1q
raw f32[2, 2]
prompt >
line 40 + 2
expect 42
prompt >
send \x04
end 0
EOT

session "one without Sixel gets half blocks" <<'EOT'
prompt >
line :show dc.tensor { { 0, 1 }, { 1, 0 } }
raw \e[c
send \e[?62;22c
raw \e[38;2;0;0;0;48;2;0;0;0m
raw f32[2, 2]   0 to 1
prompt >
line :show hist dc.tensor { { 0, 1 }, { 1, 0 } }
expect █
expect mean 0.5
prompt >
line hist = dc.tensor { 1, 2 }
prompt >
line :show hist
expect f32[2]
prompt >
line :show line hist * 2
expect 4 │
prompt >
line :show image hist
expect show: an image is [h, w]
prompt >
line :show 5
expect show: a tensor is needed, not the number 5
prompt >
line :show
expect needs an expression
prompt >
send \x04
end 0
EOT

session "one that does not answer is not waited for long" <<'EOT'
prompt >
line :show dc.tensor { { 0, 1 } }
within 2000 f32[1, 2]   0 to 1
prompt >
send \x04
end 0
EOT

run "$DEEPC_PTY" /bin/sh -c 'set -m; "$DEEPC" -e "require \"deepc\".show(require \"deepc\".tensor { { 0, 1 } })" & wait; exit 3' <<'EOT'
expect f32[1, 2]   0 to 1
end 3
EOT
check "in the background nothing is asked, and nothing stops" test "$status" -eq 0

TERM=xterm-256color
unset COLORTERM
session "of 256 colours" <<'EOT'
prompt >
line :show dc.tensor { { 0, 1 } }
raw \e[c
send \e[?1;2c
raw \e[38;5;16;
raw f32[1, 2]
prompt >
send \x04
end 0
EOT

DEEPC_SHOW=blocks
export DEEPC_SHOW
session "DEEPC_SHOW decides, and nothing is asked" <<'EOT'
prompt >
line :show dc.tensor { { 0, 1 } }
raw \e[38;5;16;
prompt >
send \x04
end 0
EOT

run env DEEPC_SHOW=kitty "$DEEPC" -e 'print(1)'
check "another word is an error" warns "DEEPC_SHOW"
unset DEEPC_SHOW

NO_COLOR=1
export NO_COLOR
session "without colours: characters" <<'EOT'
prompt >
line :show dc.tensor { { 0, 1 }, { 1, 0 } }
expect @@@@
expect f32[2, 2]   0 to 1
prompt >
send \x04
end 0
EOT
unset NO_COLOR

run sh -c 'echo ":show dc.tensor { { 0, 1 }, { 1, 0 } }" | "$DEEPC" -i'
check "on a pipe" says "@@@@"
check "without sequences" test "$(printf %s "$out" | tr -dc '\033')" = ""
closing
