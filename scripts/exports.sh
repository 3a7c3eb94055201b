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

in_library() {
    echo "$of_library" | grep -qx "$1@@DEEPC_1"
}

in_module() {
    echo "$of_deepc" | grep -qx "$1"
}

of_module=$(grep -o '^ *dc_[a-z0-9_]*;' vm/module.map | tr -d ' ;') # those that need Lua
for name in $of_public; do
    if echo "$of_module" | grep -qx "$name"; then
        check "deepc.so exports $name" in_module $name
    else
        check "libdeepc.so exports $name as DEEPC_1" in_library $name
    fi
done

only_public() {
    for name in $(echo "$of_library" | sed -n 's/@@DEEPC_1$//p'); do
        echo "$of_public" | grep -qx "$name" || [ "$name" = DEEPC_1 ] || { echo "$name"; return 1; }
    done
}
only_prefixed() {
    ! exported "$lib" | grep -vE '^(dc_[a-z0-9_]+@@DEEPC_(1|PRIVATE)|DEEPC_(1|PRIVATE)(@@.*)?)$'
}
openers() { # files of stdlib/ that can be required
    grep -rL --include='*.lua' '^---@meta' stdlib | sed -E 's,^stdlib/,luaopen_deepc_,; s,(/init)?\.lua$,,' | tr / _
}
module_names() {
    [ "$of_deepc" = "$({ echo "$of_module"; echo luaopen_deepc; openers; } | sort)" ]
}
no_liblua() {
    ! readelf -d "$1" | grep -q 'NEEDED.*liblua'
}
program_lua() {
    for name in lua_newstate lua_callk luaL_newstate luaL_checkudata luaopen_base; do
        exported "$program" | grep -qx $name || return 1
    done
}
check "DEEPC_1 holds only names of vm/deepc.h" only_public
check "libdeepc.so exports only dc_ names" only_prefixed
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
