#!/bin/sh
# Checks the layering (ARCHITECTURE.md, "Who may include whom") and what goes with it: layers.sh [BUILD]. With a build
# folder also that calls go the way includes do. Every finding is one line; the closing line counts the rules.
build=${1:+$(cd "$1" && pwd)}
cd "$(dirname "$0")/.." || exit 1

# The rows are the architecture: what the files of a folder may include and call. Folders stand above what they use.
may() {
    graph="core/ir core/autodiff core/build core/transform core/signature"
    core="core/base core/world $graph core/host core/eval core/runtime"
    case $1 in
    core/base) echo "core/base" ;;
    core/world) echo "core/base core/world" ;;
    core/ir) echo "core/base core/world core/ir" ;;
    core/autodiff) echo "core/base core/world core/ir core/autodiff" ;;
    core/build) echo "core/base core/world core/ir core/autodiff core/build" ;;
    core/transform) echo "core/base core/world core/ir core/transform" ;;
    core/signature) echo "core/base core/world core/ir core/signature" ;;
    core/host) echo "core/base core/world core/ir core/host" ;;
    core/eval) echo "core/base core/world core/ir core/host core/eval" ;;
    core/runtime) echo "$core" ;;
    jit/base) echo "$core jit/base" ;;
    jit/nest) echo "$core jit/base jit/nest" ;;
    jit/moves) echo "$core jit/nest jit/moves" ;;
    jit/schedule) echo "$core jit/base jit/nest jit/moves jit/schedule" ;;
    jit/rewrite) echo "$core jit/base jit/rewrite" ;;
    jit/fuse) echo "$core jit/base jit/rewrite jit/fuse" ;;
    jit/lower) echo "$core jit/base jit/nest jit/fuse jit/lower" ;;
    jit/flat) echo "$core jit/nest jit/flat" ;;
    jit/render) echo "$core jit/flat jit/render" ;;
    jit/sim) echo "$core jit/flat jit/sim" ;;
    jit/plan) echo "$core jit/base jit/nest jit/fuse jit/plan" ;;
    jit/cache) echo "$core jit/flat jit/cache" ;;
    jit/exec) echo "$core jit/base jit/plan jit/cache jit/exec" ;;
    jit/compile | jit/tune | jit) echo "$core jit/[a-z]*" ;;
    backends) echo "$core backends" ;;
    formats) echo "$core formats" ;;
    dsl/base) echo "$core jit formats dsl/base" ;;
    dsl/ops) echo "$core jit formats dsl/base dsl/ops" ;;
    dsl/control) echo "$core jit formats dsl/base dsl/ops dsl/control" ;;
    dsl/fn) echo "$core jit formats dsl/base dsl/ops dsl/fn" ;;
    dsl/modules) echo "$core jit formats dsl/base dsl/ops dsl/fn dsl/modules" ;;
    dsl) echo "$core jit formats dsl dsl/base dsl/ops dsl/control dsl/fn dsl/modules" ;;
    vm) echo "$core jit formats backends dsl vm" ;;
    vm/program) echo "$core jit formats backends dsl vm vm/program" ;;
    extras) echo "$core jit formats dsl dsl/base dsl/fn vm vm/program extras" ;;
    esac
}

folders=$(may core/runtime)
for dir in jit/*/ jit backends formats dsl/*/ dsl vm/program vm extras; do
    folders="$folders ${dir%/}"
done

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

files_of() { # of a folder with rows for its subfolders its own files alone
    case $1 in
    jit | dsl | vm | core/* | jit/* | dsl/* | vm/*) ls "$1"/*.[ch] "$1"/*.def 2>/dev/null ;;
    *) sources "$1" ;;
    esac
}

for dir in $folders; do
    allowed=$(may "$dir" | tr ' ' '|')
    [ -n "$allowed" ] || allowed=none
    rule "$dir includes only $(may "$dir")" \
        "$(grep -nE '^ *# *include "' $(files_of "$dir") /dev/null | grep -vE "include \"($allowed)/")"
done

# "caller callee name": calls between files of objects in the build, by folder
calls() {
    find "$build" -path '*.dir/*' -name '*.c.o' | grep -E '\.dir/(core|jit|backends|formats|dsl|vm|extras)/' | sort |
        while read -r object; do # those whose sources are still there
            source=${object##*.dir/}
            [ -f "${source%.o}" ] && echo "$object"
        done | xargs nm -A | sed -E 's,^[^:]*\.dir/,,' | awk '
        { sub(/\.c\.o:/, " "); file = $1; folder = file; sub(/\/[^\/]*$/, "", folder) }
        folder ~ /^(backends|formats|extras)\// { sub(/\/.*/, "", folder) }
        $(NF - 1) ~ /^[TDBR]$/ { home[$NF] = folder }
        $(NF - 1) == "U" { use[folder " " $NF] = 1 }
        END {
            for (u in use) {
                split(u, p, " ")
                if (p[2] ~ /^dc_extra(s|_commands|_options)$/) # tables of the build, declared where they are read
                    continue
                if (p[2] in home && home[p[2]] != p[1])
                    print p[1], home[p[2]], p[2]
            }
        }' | sort
}

if [ -n "$build" ]; then
    calls >"$build/calls.txt"
    rule "calls between folders were found" "$([ "$(wc -l <"$build/calls.txt")" -gt 500 ] || echo "too few")"
    for dir in $folders; do
        allowed=$(may "$dir" | tr ' ' '|')
        rule "$dir calls only $(may "$dir")" \
            "$(grep "^$dir " "$build/calls.txt" | grep -vE "^[^ ]+ ($allowed)[/ ]")"
    done
fi

below='core jit backends formats'
rule "nobody uses the program, but what stands beside the runtime: vm/program" \
    "$(grep -nE '# *include "vm/program/' $(sources $below dsl vm) /dev/null | grep -v '^vm/program/'
    [ -z "$build" ] || grep -E '^[^ ]+ vm/program ' "$build/calls.txt" | grep -v '^extras ')"
rule "nobody uses what stands beside: extras, but by the tables of dsl/extras.h and vm/program/extras.h" \
    "$(grep -nE '# *include "extras/' $(sources $below dsl vm) /dev/null
    [ -z "$build" ] || grep -E '^[^ ]+ extras ' "$build/calls.txt")"
rule "Lua headers only in dsl, vm and extras" \
    "$(grep -nE '# *include [<"](lua|lauxlib|lualib|luaconf)\.h' $(sources $below) /dev/null)"
rule "no Lua headers in vm/deepc.h and the C API" \
    "$(grep -nE '# *include [<"](lua|lauxlib|lualib|luaconf)\.h' vm/deepc.h vm/api*.[ch] 2>/dev/null)"
rule "from outside, jit/jit.h is the whole of jit" \
    "$(grep -nE '# *include "jit/' $(sources dsl vm extras) /dev/null | grep -v 'jit/jit\.h"')"
rule "getenv only in core/base/opt.c" \
    "$(grep -nE '\bgetenv *\(' $(sources $below dsl vm extras) /dev/null | grep -v '^core/base/opt\.c:')"
rule "numbers are read by core/base/digits.c; floats by jit/flat/flat_print.c, and by core/base/number.c what it printed" \
    "$(grep -nE '\b(v?[fs]?scanf|strto(l|ul|ll|ull|imax|umax|d|f|ld)|ato(i|l|ll|f)) *\(' $(sources $below dsl vm extras) /dev/null |
        grep -vE '^core/base/number\.c:[0-9]+:.*strtod\(text, NULL\)')"
rule "no exit or abort outside core/base/job.c and, in vm/program, main.c, launched.c, ranks_main.c and the children of extras/editors/language_check.c" \
    "$(grep -nE '\b(abort|exit|_exit|quick_exit) *\(' $(sources $below dsl vm extras) /dev/null |
        grep -vE '^(core/base/job\.c|vm/program/(main|launched|ranks_main)\.c|extras/editors/language_check\.c):')"
rule "printf to a stream only in core/base/job.c and the program" \
    "$(grep -nE '\b(printf|puts|putchar|perror|fputs|fprintf) *\(' $(sources $below dsl) /dev/null |
        grep -vE '^core/base/job\.c:')"
rule "places that PCRE2 gives are read by read_places of extras/llm/tokenizer/regex.c" \
    "$(grep -n 'ovector' $(sources $below dsl vm extras) /dev/null | grep -v '^extras/llm/tokenizer/regex\.c:'
    grep -nE '\bplace\[' extras/llm/tokenizer/regex.c | grep -vE '\*(from|to) = f->place')"
rule "every C file is listed in CMakeLists.txt" \
    "$(for f in $(find $below dsl vm extras -name '*.c'); do
        grep -qE "^ *$f *\)?\$" CMakeLists.txt || echo "$f"
    done)"
rule "header guards are named after their files" \
    "$(for f in $(find $below dsl vm extras -name '*.h'); do
        guard=DC_$(echo "$f" | tr 'a-z/.' 'A-Z__')
        grep -q "^#ifndef $guard\$" "$f" || echo "$f: $guard"
    done)"

echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
