#!/bin/sh
# The man page and what shells complete: made out of what the program prints (scripts/shell_files.lua), and tried in the shells
# that are installed.
. "$(dirname "$0")/lib.sh"
files=$(cd "$(dirname "$DEEPC")" && pwd)/shell
mkdir "$dir/bin" "$dir/here"
ln -s "$(cd "$(dirname "$DEEPC")" && pwd)/deepc" "$dir/bin/deepc"
PATH=$dir/bin:$PATH
echo 'print(1)' >"$dir/here/train.lua"

# ---- the page ------------------------------------------------------------------------------------

page=$files/deepc.1
named() { # named WORD: as the page writes it
    grep -qF -e "$(printf '%s' "$1" | sed 's/-/\\-/g')" "$page"
}
for word in $("$DEEPC" --help | sed -n 's/^  \(-[^ ]*\|[a-z][a-z]*\) .*/\1/p'); do
    check "the page has $word" named ".B $word"
done
for word in $("$DEEPC" --options | grep -o '^[A-Z][A-Z_]*'); do
    check "the page has $word" grep -q "^\.B $word\$" "$page"
done
if command -v mandoc >/dev/null; then
    check "mandoc finds nothing wrong" mandoc -Tlint -Werror "$page"
elif command -v man >/dev/null; then
    run env LC_ALL=C MANWIDTH=80 man --warnings -l "$page"
    check "man finds nothing wrong" test -z "$err"
else
    skip "neither mandoc nor man is installed"
fi

# ---- bash ----------------------------------------------------------------------------------------

if command -v bash >/dev/null; then
    bash_gives() { # bash_gives WORD: what completes the words in $words is, or has, WORD
        run env -C "$dir/here" bash --norc -c '. "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _deepc
            printf "%s\n" "${COMPREPLY[@]}"' bash "$files/deepc.bash" "$@"
    }
    bash_gives deepc doct
    check "bash: a command" test "$out" = doctor
    bash_gives deepc --dev
    check "bash: an option" test "$out" = --devices
    bash_gives deepc doctor --d
    check "bash: an option of a command" test "$out" = --device
    bash_gives deepc explain DC030
    check "bash: a code" says DC0301
    bash_gives deepc tr
    check "bash: a file" says train.lua
    bash_gives deepc check tr
    check "bash: a file for a command" test "$out" = train.lua
    bash_gives deepc -l deepc.opt
    check "bash: a module" test "$out" = deepc.optim
    bash_gives deepc doctor --device ev
    check "bash: a device" test "$out" = eval
else
    skip "bash is not installed"
fi

# ---- fish ----------------------------------------------------------------------------------------

if command -v fish >/dev/null; then
    fish_gives() { # fish_gives LINE
        run env -C "$dir/here" HOME="$dir" XDG_CONFIG_HOME="$dir" XDG_DATA_HOME="$dir" fish --no-config -c \
            "source '$files/deepc.fish'; complete -C '$1'"
    }
    fish_gives "deepc doct"
    check "fish: a command" says "doctor	"
    fish_gives "deepc --dev"
    check "fish: an option" says "--devices	"
    fish_gives "deepc doctor --d"
    check "fish: an option of a command" says "--device"
    fish_gives "deepc explain DC030"
    check "fish: a code" says DC0301
    fish_gives "deepc check tr"
    check "fish: a file for a command" says train.lua
    fish_gives "deepc doctor --device ev"
    check "fish: a device" says eval
else
    skip "fish is not installed"
fi

# ---- zsh, which completes at a terminal alone ------------------------------------------------------

if command -v zsh >/dev/null; then
    mkdir "$dir/zsh"
    cp "$files/_deepc" "$dir/zsh/"
    printf 'PS1="ready> "\nfpath=(%s $fpath)\nautoload -U compinit\ncompinit -u -D\ncd %s\nunsetopt beep\n' \
        "$dir/zsh" "$dir/here" >"$dir/zsh/.zshrc"
    zsh_shows() { # zsh_shows TYPED SHOWN: behind Tab
        printf 'expect ready>\nsend %s\\t\nexpect %s\n' "$1" "$2" >"$dir/steps"
        ZDOTDIR=$dir/zsh TERM=xterm "$DEEPC_PTY" "$(command -v zsh)" -i <"$dir/steps" >"$dir/out" 2>&1
    }
    check "zsh: a command" zsh_shows "deepc doct" "deepc doctor"
    check "zsh: an option" zsh_shows "deepc --dev" "deepc --devices"
    check "zsh: an option of a command" zsh_shows "deepc doctor --d" "deepc doctor --device"
    check "zsh: a file for a command" zsh_shows "deepc check tr" "deepc check train.lua"
    check "zsh: a device" zsh_shows "deepc doctor --device ev" "--device eval"
else
    skip "zsh is not installed"
fi
closing
