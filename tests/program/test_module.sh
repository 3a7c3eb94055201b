#!/bin/sh
# The module in the stock lua5.4, its whole life: the end of a script, os.exit with and without closing the state, an error,
# with whatever is under way. Each ends with the status that Lua's manual says, soon, and says nothing else.
. "$(dirname "$0")/lib.sh"

module=$(cd "$(dirname "$DEEPC")" && pwd)
if ! command -v lua5.4 >/dev/null; then
    skip "lua5.4 is not installed"
    closing
    exit
fi
preload=
if nm -D "$module/deepc.so" | grep -q '__tsan_init'; then
    skip "a module with the thread sanitizer does not load into the stock lua5.4"
    closing
    exit
elif nm -D "$module/deepc.so" | grep -q '__asan_init'; then
    # What os.exit leaves alone is no leak of ours.
    preload="LD_PRELOAD=$(cc -print-file-name=libasan.so) ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0"
fi

stock() { # CODE: its status in $status
    # shellcheck disable=SC2086
    run env -u LUA_PATH -u LUA_INIT LUA_CPATH="$module/?.so" $preload timeout 120 lua5.4 -e "dc = require 'deepc' $1"
}

is_quiet() { # STATUS
    [ "$status" -eq "$1" ] && [ -z "$err" ]
}

f="f = dc.fn('f(x: f32[64]) -> f32[64]', function(x) return dc.exp(x) * 2 end) x = dc.ones 'f32[64]'"
compiling="for i = 1, 4 do dc.fn('g(x: f32[64]) -> f32[64]', function(x) for k = 1, i do x = dc.sin(x) end return x end) end"
reading="it = require 'deepc.data'.set(dc.ones 'f32[4096, 8]', dc.ones 'f32[4096]'):batches { size = 16 } it()"

# What is under way where it ends.
for state in "" "$f f(x):sum():item()" "$f" "$compiling" "$reading" "y = dc.ones 'f32[3]' + 1" \
    "co = coroutine.wrap(function() local y <close> = dc.ones 'f32[3]' coroutine.yield() end) co()" \
    "setmetatable({}, { __gc = function() return dc.ones 'f32[3]':sum():item() end })"; do
    stock "$state"
    check "the end: $state" is_quiet 0
    for close in "" ", true" ", false"; do
        stock "$state os.exit(3$close)"
        check "os.exit(3$close): $state" is_quiet 3
    done
    stock "$state error 'out of luck'"
    check "an error: $state" [ "$status" -eq 1 ]
    check "says so: $state" warns "out of luck"
done

# Where it ends.
for close in "" ", true"; do
    stock "$f coroutine.wrap(function() f(x) os.exit(4$close) end)()"
    check "in a coroutine$close" is_quiet 4
    stock "dc.fn('g(x: f32[]) -> f32[]', function(x) os.exit(5$close) end)(1)"
    check "in the body of a typed function$close" is_quiet 5
    stock "$f table.sort({ 3, 1, 2 }, function(a, b) f(x) os.exit(6$close) end)"
    check "in a function called back$close" is_quiet 6
    stock "local c <close> = setmetatable({}, { __close = function() os.exit(7$close) end }) $f f(x)"
    check "in __close$close" is_quiet 7
    stock "require 'deepc.data'.stream(function() os.exit(8$close) end):batches { size = 2 }() os.exit(9)"
    check "in a source of data$close" [ "$status" -eq 8 ]
done

# As long as there is something of it, it stays; then it goes, and comes again.
stock "$f local y = f(x) package.loaded.deepc = nil dc = nil collectgarbage() collectgarbage()
    print(y:sum():item() > 340, require 'deepc'.ones 'f32[3]':sum():item())"
check "it is required again" is_quiet 0
check "and what was made before goes on" says "true	3"

closing
