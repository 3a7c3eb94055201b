#!/bin/sh
# luacheck over the Lua code of the repository (.luacheckrc); one check per file, all by one process.
cd "$(dirname "$0")/.." || exit 1
if ! command -v luacheck >/dev/null 2>&1; then
    echo "skip: luacheck is not installed (Debian: lua-check)"
    exit 77
fi
# tests/attack/escapes is full of attempts, many to a file
files=$(find stdlib extras examples bench tests -name '*.lua' -not -path 'tests/attack/escapes/*' | sort)
# shellcheck disable=SC2086
out=$(luacheck --quiet --no-color $files)
status=$?
all=$(echo "$files" | wc -l)
failed=$(echo "$out" | grep -c '^Checking ')
if [ $status -ne 0 ]; then
    echo "$out"
    [ "$failed" -gt 0 ] || failed=1
fi
echo "$((all - failed)) passed, $failed failed"
[ "$failed" -eq 0 ]
