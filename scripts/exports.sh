#!/bin/sh
# What leaves the three artefacts: exports.sh LIBDEEPC.SO DEEPC.SO DEEPC
cd "$(dirname "$0")/.." || exit 1
lib=$1 module=$2 program=$3
passed=0
failed=0

check() { # check SENTENCE COMMAND...
    sentence=$1
    shift
    if "$@"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "not so: $sentence"
    fi
}

exported() {
    nm -D --defined-only "$1" | awk '{print $3}' | sort
}

public() { # functions declared in deepc.h
    sed -e 's,//.*,,' vm/deepc.h | tr '\n' ' ' | sed -e 's,/\*[^*]*\*\+\([^/*][^*]*\*\+\)*/, ,g' |
        grep -oE '\bdc_[a-z0-9_]+ *\(' | tr -d ' (' | sort -u
}

of_public=$(public)
of_library=$(exported "$lib")
of_deepc=$(exported "$module")

level=$(sed -n 's/^#define DC_API_LEVEL //p' vm/deepc.h)
version=$(sed -n 's/^#define DC_VERSION "\(.*\)"/\1/p' vm/deepc.h)
private="DEEPC_PRIVATE_$version"
soname=$(readelf -d "$lib" | sed -n 's/.*SONAME.*\[\(.*\)\]/\1/p')

# The level that a name came with: N of NAME@@DEEPC_N; empty: it is not there, or has no such version
level_in() { # level_in EXPORTED NAME
    echo "$1" | sed -n "s/^$2@@DEEPC_\([1-9][0-9]*\)\$/\1/p"
}
in_reach() { # in_reach EXPORTED NAME: it came with a level that there is
    of=$(level_in "$1" "$2")
    [ -n "$of" ] && [ "$of" -le "$level" ]
}

of_module=$(grep -o '^ *dc_[a-z0-9_]*;' vm/module.map | tr -d ' ;') # those that need Lua
for name in $of_public; do
    if echo "$of_module" | grep -qx "$name"; then
        check "deepc.so exports $name as DEEPC_N, N at most $level" in_reach "$of_deepc" $name
    else
        check "libdeepc.so exports $name as DEEPC_N, N at most $level" in_reach "$of_library" $name
    fi
done

levels() { # those that have names
    echo "$of_library
$of_deepc" | sed -n 's/^dc_.*@@DEEPC_\([1-9][0-9]*\)$/\1/p' | sort -nu
}
newest_is_level() {
    [ "$(levels | tail -n 1)" = "$level" ]
}
each_builds_on() { # DEEPC_N names DEEPC_N-1, so that who has one has all before
    for map in vm/libdeepc.map vm/module.map; do
        awk -v map=$map '/^DEEPC_[0-9]+ \{/ { open = substr($1, 7) }
            open && /^}/ { want = open > 1 ? "} DEEPC_" open - 1 ";" : "};"
                if ($0 != want) { print map ": DEEPC_" open " ends with " $0; bad = 1 }
                open = 0 }
            END { exit bad }' $map || return 1
    done
}
only_public() {
    for name in $(echo "$of_library" | sed -n 's/@@DEEPC_[1-9][0-9]*$//p'); do
        case $name in DEEPC_*) continue ;; esac
        echo "$of_public" | grep -qx "$name" || { echo "$name"; return 1; }
    done
}
only_prefixed() {
    ! echo "$of_library" | grep -vE "^(dc_[a-z0-9_]+@@(DEEPC_[1-9][0-9]*|$private)|(DEEPC_[1-9][0-9]*|$private)(@@.*)?)\$"
}
asks_same_build() {
    objdump -p "$module" | grep -q " $private\$"
}
openers() { # files of stdlib/ and extras/ that can be required
    grep -rL --include='*.lua' '^---@meta' stdlib extras/*/ | grep -v '^extras/editors/neovim/' |
        sed -E 's,^(stdlib|extras/[a-z]+)/+,luaopen_deepc_,; s,(/init)?\.lua$,,' | tr / _
}
module_names() {
    [ "$(echo "$of_deepc" | sed 's/@@.*//' | grep -v '^DEEPC_' | sort)" = "$({ echo "$of_module"; echo luaopen_deepc; openers; } | sort)" ]
}
no_liblua() {
    ! readelf -d "$1" | grep -q 'NEEDED.*liblua'
}
program_lua() {
    for name in lua_newstate lua_callk luaL_newstate luaL_checkudata luaopen_base; do
        exported "$program" | grep -qx $name || return 1
    done
}
check "DEEPC_N hold only names of vm/deepc.h" only_public
check "libdeepc.so exports only dc_ names, with versions" only_prefixed
check "the newest DEEPC_N is DC_API_LEVEL" newest_is_level
check "each DEEPC_N builds on the one before" each_builds_on
check "the SONAME is libdeepc.so.N" expr "$soname" : 'libdeepc\.so\.[0-9][0-9]*$'
check "deepc.so asks for that SONAME" sh -c "readelf -d '$module' | grep -qF 'NEEDED)             Shared library: [$soname]'"
check "deepc.so asks for the private names of its own version" asks_same_build
check "deepc.so exports what vm/module.map names and the ways of require alone" module_names
check "deepc.so is not linked to liblua" no_liblua "$module"
check "libdeepc.so is not linked to liblua" no_liblua "$lib"
check "deepc exports Lua's interface" program_lua
check "deepc is not linked to liblua" no_liblua "$program"

# An instrumented module does not load into a program that is not.
if readelf -d "$module" | grep -q 'NEEDED.*libasan'; then
    :
elif command -v lua5.4 >/dev/null 2>&1; then
    stock() {
        LUA_CPATH="$(dirname "$module")/?.so" LUA_INIT= lua5.4 -e \
            'local dc = require "deepc"; assert(type(dc) == "table"); assert(dc == require "deepc")'
    }
    check "lua5.4 requires deepc.so" stock
else
    echo "skip: lua5.4 is not installed, deepc.so was not loaded into it"
fi

echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
