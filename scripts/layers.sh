#!/bin/sh
# Checks the layering (ARCHITECTURE.md, "Who may include whom") and what goes with it. Every finding
# is one line; the closing line counts the rules.
cd "$(dirname "$0")/.." || exit 1

may() { # the rows are the architecture
    case $1 in
    core) echo "core" ;;
    jit) echo "jit core" ;;
    backends) echo "backends core" ;;
    formats) echo "formats core" ;;
    dsl) echo "dsl jit formats core" ;;
    vm) echo "vm dsl backends jit formats core" ;;
    esac
}

passed=0
failed=0
# rule NAME FINDINGS: a rule holds when nothing was found
rule() {
    if [ -z "$2" ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "$1:"
        echo "$2" | sed 's/^/    /'
    fi
}

sources() {
    find "$@" -name '*.[ch]' -o -name '*.def' | sort
}

for dir in core jit backends formats dsl vm; do
    allowed=$(may $dir | tr ' ' '|')
    rule "$dir includes only $(may $dir)" \
        "$(grep -nE '^ *# *include "' $(sources $dir) /dev/null | grep -vE "include \"($allowed)/")"
done

below='core jit backends formats'
rule "Lua headers only in dsl and vm" \
    "$(grep -nE '# *include [<"](lua|lauxlib|lualib|luaconf)\.h' $(sources $below) /dev/null)"
rule "no Lua headers in vm/deepc.h and the C API" \
    "$(grep -nE '# *include [<"](lua|lauxlib|lualib|luaconf)\.h' vm/deepc.h vm/api*.[ch] 2>/dev/null)"
rule "from outside, jit/jit.h is the whole of jit" \
    "$(grep -nE '# *include "jit/' $(sources dsl vm) /dev/null | grep -v 'jit/jit\.h"')"
rule "getenv only in core/base/opt.c" \
    "$(grep -nE '\bgetenv *\(' $(sources $below dsl vm) /dev/null | grep -v '^core/base/opt\.c:')"
rule "numbers are read by core/base/digits.c; floats by jit/flat/flat_print.c, and by core/base/number.c what it printed" \
    "$(grep -nE '\b(v?[fs]?scanf|strto(l|ul|ll|ull|imax|umax|d|f|ld)|ato(i|l|ll|f)) *\(' $(sources $below dsl vm) /dev/null |
        grep -vE '^core/base/number\.c:[0-9]+:.*strtod\(text, NULL\)')"
rule "no exit or abort outside core/base/job.c and vm/main.c" \
    "$(grep -nE '\b(abort|exit|_exit|quick_exit) *\(' $(sources $below dsl vm) /dev/null |
        grep -vE '^(core/base/job\.c|vm/main[a-z_]*\.c):')"
rule "printf to a stream only in core/base/job.c and the program" \
    "$(grep -nE '\b(printf|puts|putchar|perror|fputs|fprintf) *\(' $(sources $below dsl) /dev/null |
        grep -vE '^core/base/job\.c:')"
rule "every C file is listed in CMakeLists.txt" \
    "$(for f in $(find $below dsl vm -name '*.c'); do
        grep -qE "^ *$f *\)?\$" CMakeLists.txt || echo "$f"
    done)"
rule "header guards are named after their files" \
    "$(for f in $(find $below dsl vm -name '*.h'); do
        guard=DC_$(echo "$f" | tr 'a-z/.' 'A-Z__')
        grep -q "^#ifndef $guard\$" "$f" || echo "$f: $guard"
    done)"

echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
