#!/bin/sh
# luacheck over the Lua code of the repository (.luacheckrc); one check per file.
cd "$(dirname "$0")/.." || exit 1
if ! command -v luacheck >/dev/null 2>&1; then
    echo "skip: luacheck is not installed (Debian: lua-check)"
    exit 77
fi
passed=0
failed=0
# tests/mistakes is full of mistakes, tests/attack/escapes of attempts, many to a file
for file in $(find stdlib examples bench tests -name '*.lua' -not -path 'tests/mistakes/*' -not -path 'tests/attack/escapes/*' | sort); do
    if out=$(luacheck --quiet --no-color "$file"); then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "$out"
    fi
done
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
