#!/bin/sh
# examples/hosts/redis in the real server: what a function gives through it, what is refused in which words, Redis goes on meanwhile,
# keys are kept over a restart, memory is given back.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/lib_embed.sh"
need_built deepc_redis.so
need_program redis-server
server=$program
need_program redis-cli
cli=$program

cat >"$dir/export.lua" <<'L'
local dc = require "deepc"
local values = dc.tensor { 10, 20, 30 }
dc.fn("f(x: f32[n, 2], k: i32[n]) -> f32[n, 2], bool[n]", function(x, k)
  return x * 2 + values:gather(k, 1):reshape { dc.dim "n", 1 }, k:gt(0)
end):export(arg[1] .. "/f.dcfn", { n = 1 }, { n = 4 })
local weights = dc.param("f32[128, 128]", dc.full("f32[128, 128]", 0.01))
dc.fn("slow(x: f32[128, 128]) -> f32[128, 128]", function(x)
  return dc.loop(function(c) return c:max():lt(10) end, function(c) return (c:matmul(weights)):tanh() end, x)
end):export(arg[1] .. "/slow.dcfn", {})
dc.fn("half(x: f16[n]) -> f16[n]", function(x) return x * 2 end):export(arg[1] .. "/half.dcfn", { n = 2 })
dc.fn("same(x: f64[n, m]) -> f64[n, m]", function(x) return x end)
  :export(arg[1] .. "/same.dcfn", { n = 2, m = 3 }, { n = 3, m = 2 })
local much = dc.param("f32[4000, 4000]", dc.zeros "f32[4000, 4000]")
dc.fn("much() -> f32[]", function() return much:sum() end):export(arg[1] .. "/much.dcfn", {})
local lists = dc.fn("lists(x: { f32[n] }) -> f32[n]", function(x) return #x == 2 and x[1] + x[2] or x[1] end)
lists { { 1 } }
lists { { 1 }, { 2 } }
lists:export(arg[1] .. "/lists.dcfn")
local w = dc.state("f32[64]", 0)
dc.fn("torn(x: f32[]) -> f32[]", function(x)
  w:set(w + x)
  return dc.loop(function(c) return c:lt(1e30) end, function(c) return c * 0.5 + w[1] end, x)
end):export(arg[1] .. "/torn.dcfn", {})
L
run "$DEEPC" "$dir/export.lua" "$dir"
check "functions are exported" test "$status" -eq 0

start() { # start MODULE ARGUMENTS...
    begin env LD_LIBRARY_PATH="$libraries" "$server" --port 0 --unixsocket "$socket/redis" --dir "$dir" --save '' --enable-debug-command yes \
        --loadmodule "$host" "$@"
    tries=0
    until [ "$(r PING 2>/dev/null)" = PONG ] || [ $tries -gt 300 ]; do
        sleep 0.03
        tries=$((tries + 1))
    done
    check "the server runs" test "$(r PING)" = PONG
}
r() {
    in_unpacked "$cli" -s "$socket/redis" --no-raw "$@"
}
answers() { # answers TEXT COMMAND...
    expected=$1
    shift
    run r "$@"
    check "$*: $expected" says "$expected"
}

start MEMORY 48 TIMEOUT 1500 QUEUE 1
answers OK DEEPC.LOAD f "$dir/f.dcfn"
answers 'x: f32[4, 2] k: i32[4] -> f32[4, 2] bool[4]' DEEPC.INFO f
answers '1) "12 15"' DEEPC.RUN f "1 2.5" 0
answers '2) "0 1 1 1"' DEEPC.RUN f "1,2.5, 1 1, 1 1, 1 1" "0 1 2 2"
answers 'deepc-fcn' TYPE f
printf 'DEEPC.RUN f BYTES "\\x00\\x00\\x80?\\x00\\x00\\x00@" "\\x01\\x00\\x00\\x00"\n' >"$dir/bytes"
run in_unpacked "$cli" -s "$socket/redis" --no-raw <"$dir/bytes"
check "bytes: 22 and 24 as f32" says '1) "\x00\x00\xb0A\x00\x00\xc0A"'
check "and true" says '2) "\x01"'

# ---- what is refused ----

answers 'ERR gather: index 5 outside 0..2 of axis 1' DEEPC.RUN f "1 2" 5
answers 'wants 2 inputs' DEEPC.RUN f "1 2"
answers 'no variant of f(x: f32[n, 2], k: i32[n])' DEEPC.RUN f "1 2 3" 1
answers "ERR x: 'two' is no f32" DEEPC.RUN f "1 two" 1
answers "ERR k: '0.5' is no i32" DEEPC.RUN f "1 2" 0.5
answers "ERR k: '3000000000' is no i32" DEEPC.RUN f "1 2" 3000000000
answers 'ERR there are variants 0 to 1' DEEPC.RUN f VARIANT 2 "1 2" 0
answers '1) "10 10"' DEEPC.RUN f VARIANT 0 "0 0" 0
answers 'ERR there is no such key' DEEPC.RUN nothing 1
answers OK SET text 1
answers WRONGTYPE DEEPC.RUN text 1
answers WRONGTYPE DEEPC.LOAD text "$dir/f.dcfn"
answers 'not a safetensors file' DEEPC.LOAD bad "$dir/export.lua"
answers '(nil)' GET bad
answers 'has to be absolute' DEEPC.LOAD bad f.dcfn
answers "wrong number of arguments" DEEPC.LOAD bad
answers 'the limit is 48.0 MiB' DEEPC.LOAD much "$dir/much.dcfn"
answers 'variants 0 and 1 of lists(x: {f32[n]}) -> f32[n] differ' DEEPC.LOAD lists "$dir/lists.dcfn"
answers OK DEEPC.LOAD half "$dir/half.dcfn"
answers 'f16, which has no text' DEEPC.RUN half "1 2"
answers OK DEEPC.LOAD same "$dir/same.dcfn"
answers 'fit variants 0 and 1: VARIANT n says which' DEEPC.RUN same "1 2 3 4 5 6"
answers '"1 2 3 4 5 6"' DEEPC.RUN same VARIANT 1 "1 2 3 4 5 6"
printf 'MULTI\nDEEPC.RUN f "1 2" 1\nEXEC\n' >"$dir/multi"
run in_unpacked "$cli" -s "$socket/redis" <"$dir/multi"
check "in a transaction" says "ERR not inside MULTI or a script"

# ---- Redis goes on ----

answers OK DEEPC.LOAD slow "$dir/slow.dcfn"
"$DEEPC" -e 'print(("1 "):rep(128 * 128))' | tr -d '\n' >"$dir/ones"
for i in 1 2 3 4 5 6; do # one is computed, one waits, the others are refused
    in_unpacked "$cli" -s "$socket/redis" -x DEEPC.RUN slow <"$dir/ones" >"$dir/slow$i" 2>&1 &
done
count() {
    cat "$dir"/slow* | grep -c "$1"
}
tries=0
until [ "$(count 'too many calls are waiting')" -eq 4 ] || [ $tries -gt 200 ]; do
    sleep 0.01
    tries=$((tries + 1))
done
check "too many calls are refused" test "$(count 'too many calls are waiting')" -eq 4
check "PING" test "$(r PING)" = PONG
check "is answered while a call goes on" test "$(count 'ran longer')" -eq 0
answers '(integer) 1' DEL slow
tries=0
until [ "$(count 'longer than 1500 ms')" -eq 2 ] || [ $tries -gt 200 ]; do
    sleep 0.05
    tries=$((tries + 1))
done
check "a call has a time limit" test "$(count 'ran longer than 1500 ms')" -ge 1
check "so has its waiting" test "$(count 'longer than 1500 ms')" -eq 2
answers '1) "22 24"' DEEPC.RUN f "1 2" 1

# ---- what is kept ----

load() {
    i=0
    while [ $i -lt 500 ]; do
        echo 'DEEPC.RUN f "1 2" 1'
        i=$((i + 1))
    done | in_unpacked "$cli" -s "$socket/redis" | grep -c '^22 24$'
}
check "500 calls" test "$(load)" -eq 500
before=$(rss)
check "500 more" test "$(load)" -eq 500
check "need no memory: $before KiB, then $(rss)" test "$(rss)" -le $((before + 512))
answers OK SAVE
r SHUTDOWN NOSAVE
status=0
wait "$pid" || status=$?
check "it ends well" test "$status" -eq 0
start MEMORY 48 INPUTS 1 TIMEOUT 300
head -c 1500000 /dev/zero | tr '\0' 1 >"$dir/long"
run in_unpacked "$cli" -s "$socket/redis" -x DEEPC.RUN f 1 <"$dir/long"
check "inputs have a limit" says "ERR the inputs that wait have too many bytes"
answers 'wrong number of arguments' DEEPC.RUN f 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20
answers '1) "22 24"' DEEPC.RUN f "1 2" 1
answers OK DEEPC.LOAD torn "$dir/torn.dcfn"
answers 'ran longer than 300 ms' DEEPC.RUN torn 1
answers 'half of a value' DEEPC.RUN torn 1
answers 'ran longer than 300 ms' DEEPC.RUN torn 1
rm "$dir/f.dcfn"
answers OK DEBUG RELOAD
answers 'f.dcfn' DEEPC.RUN f "1 2" 1
answers '(integer) 1' DEL f
finish
check "SIGTERM ends it" test "$status" -eq 0
run in_unpacked "$server" --port 0 --unixsocket "$socket/redis" --loadmodule "$host" SPEED 3
check "a setting that there is not" sh -c "grep -q 'what is SPEED' '$dir/out' '$dir/err'"
closing
