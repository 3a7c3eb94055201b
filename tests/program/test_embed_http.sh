#!/bin/sh
# examples/hosts/http: answers, alone and in batches; what it refuses and in which words; limits; a signal; its memory.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/lib_embed.sh"
need_built http_host

cat >"$dir/export.lua" <<'L'
local dc = require "deepc"
local table_of = dc.tensor { 10, 20, 30 }
dc.fn("f(x: f32[n, 2], k: i32[n]) -> f32[n, 2], bool[n]", function(x, k)
  return x * 2 + table_of:gather(k, 1):reshape { dc.dim "n", 1 }, k:gt(0)
end):export(arg[1], { n = 1 }, { n = 4 }, { n = 16 })
dc.fn("g(x: f64[n, m], y: u8[]) -> f64[]", function(x, y) return x:sum() + y:cast "f64" end)
  :export(arg[2], { n = 2, m = 3 }, { n = 1, m = 1 })
dc.fn("h(x: f16[2]) -> f16[2]", function(x) return x end):export(arg[3], {})
local lists = dc.fn("lists(x: { f32[n] }) -> f32[n]", function(x) return #x == 2 and x[1] + x[2] or x[1] end)
lists { { 1 } }
lists { { 1 }, { 2 } }
lists:export(arg[4])
local w = dc.state("f32[64]", 0)
dc.fn("torn(x: f32[]) -> f32[]", function(x)
  w:set(w + x)
  return dc.loop(function(c) return c:lt(1e30) end, function(c) return c * 0.5 + w[1] end, x)
end):export(arg[5], {})
L
run "$DEEPC" "$dir/export.lua" "$dir/f.dcfn" "$dir/g.dcfn" "$dir/h.dcfn" "$dir/lists.dcfn" "$dir/torn.dcfn"
check "functions are exported" test "$status" -eq 0

serve() { # serve OPTIONS... FILE
    begin "$host" --port=0 "$@"
    ready "listening on"
    url=http://127.0.0.1:$(sed -n 's/^listening on [0-9.]*:\([0-9]*\),.*/\1/p' "$dir/host")
}
post() { # post BODY [curl options]
    body=$1
    shift
    run curl -s -m 20 -w ' %{http_code}' "$url/run" -d "$body" "$@"
}
refused() { # refused CODE WORDS BODY
    post "$3"
    check "$3: $1, $2" says "{\"error\":\"$2"
    check "$3: $1" says " $1"
}
metric() { # metric NAME: its value
    curl -s "$url/metrics" | sed -n "s/^deepc_$1 //p"
}

# ---- one at a time ----

serve --wait-us=200000 "$dir/f.dcfn"
run curl -s "$url/health"
check "it is healthy" says ok
run curl -s "$url/model"
check "it says what it serves" says "f(x: f32[n, 2], k: i32[n]) -> f32[n, 2], bool[n]"
check "and for which sizes" says "variant 1: x 4 2"
post '{"x": [[1, 2.5]], "k": [0]}'
check "one row" says '{"results":[[[12,15]],[false]]}'
post '{"k": [0, 1, 2], "x": [[0, 0], [1, 1], [2, 2]]}'
check "three rows, of a variant of four" says '{"results":[[[10,10],[22,22],[34,34]],[false,true,true]]}'
check "and a code" says ' 200'
refused 400 "the body is not the JSON that is expected" '{"x": [[1, 2'
refused 400 "the body is not the JSON that is expected" ''
refused 400 "expected an object with the arguments, found a list" '[1]'
refused 400 "the argument k is missing" '{"x": [[1, 2]]}'
refused 400 "there is no argument z" '{"x": [[1, 2]], "k": [0], "z": 1}'
refused 400 'there is no argument a\"??\\' '{"x": [[1, 2]], "k": [0], "a\"\u00e9\\": 1}'
refused 400 "x[1]: expected a list of 2, found one of 1" '{"x": [[1, 2], [3]], "k": [0, 0]}'
refused 400 "x[0][1]: expected f32, found a string" '{"x": [[1, "2"]], "k": [0]}'
refused 400 "x[0][0]: 9.9999999999999997e+98 is no f32" '{"x": [[1e99, 2]], "k": [0]}'
refused 400 "k[0]: 0.5 is no i32" '{"x": [[1, 2]], "k": [0.5]}'
refused 400 "k[0]: 3000000000 is no i32" '{"x": [[1, 2]], "k": [3000000000]}'
refused 400 "k has 2 rows, x has 1" '{"x": [[1, 2]], "k": [0, 0]}'
refused 400 "x: expected a list of 1 to 16 rows, found an integer" '{"x": 3, "k": [0]}'
refused 400 "x: expected a list of 1 to 16 rows, found another number" '{"x": [], "k": []}'
refused 400 "gather: index 3 outside 0..2 of axis 1" '{"x": [[1, 2]], "k": [3]}'
run curl -s -i "$url/run"
check "another method" says "405"
check "which one" says "Allow: POST"
run curl -s -i "$url/run" -X OS
check "a part of its name is another one" says "405"
run curl -s -i "$url/nothing"
check "no such page" says "404"
head -c 2000000 /dev/zero | curl -s -i "$url/run" --data-binary @- >"$dir/large" 2>/dev/null
check "too large a body" grep -q ' 413 ' "$dir/large"
head -c 2000000 /dev/zero | curl -s -i "$url/run" -T - -X POST >"$dir/large" 2>/dev/null
check "too large a body of unknown length" grep -q ' 413 ' "$dir/large"
run curl -s -m 5 "$url/health"
check "it goes on" says ok

# ---- together ----

# Sixteen at once, one of them wrong in a way that shows in the call alone: it alone is refused.
i=0
while [ $i -lt 16 ]; do
    k=$((i % 3))
    [ $i -ne 9 ] || k=7
    [ $i -eq 0 ] || echo next
    printf 'url = %s/run\ndata = "{\\"x\\": [[%d, 1]], \\"k\\": [%d]}"\noutput = %s/a%d\n' "$url" $i $k "$dir" $i
    i=$((i + 1))
done >"$dir/sixteen"
calls=$(metric batch_rows_count)
run curl -s -Z --no-progress-meter --parallel-immediate --parallel-max 16 -K "$dir/sixteen"
same() {
    i=0
    while [ $i -lt 16 ]; do
        k=$((i % 3)) yes=true
        [ $k -gt 0 ] || yes=false
        expected="{\"results\":[[[$((2 * i + 10 + 10 * k)),$((2 + 10 + 10 * k))]],[$yes]]}"
        [ $i -eq 9 ] || [ "$(cat "$dir/a$i")" = "$expected" ] || { out="$i: $(cat "$dir/a$i"), not $expected"; return 1; }
        i=$((i + 1))
    done
    grep -q "gather: index 7 outside" "$dir/a9"
}
check "each gets its own answer" same
check "of a call for several" test $(($(metric batch_rows_count) - calls)) -lt 12
for name in 'request_seconds_count' 'requests_total{code="200"}' 'requests_total{code="400"}'; do
    check "$name is counted" test "$(metric "$name")" -gt 10
done

# ---- its memory ----

load() { # load REQUESTS
    curl -s -Z --no-progress-meter --parallel-max 8 "$url/run?[1-$1]" -d '{"x": [[1, 2.5]], "k": [0]}' | grep -o '12,15' | wc -l
}
n=4000 more=512
! grep -q __asan_init "$host" || n=300 more=8192 # the sanitizer keeps what is freed for a while; it looks for leaks itself
check "many requests" test "$(load "$n")" -eq "$n"
before=$(rss)
check "many more" test "$(load "$n")" -eq "$n"
after=$(rss)
check "which need no memory: $before KiB, then $after" test "$after" -le $((before + more))
finish
check "SIGTERM ends it" test "$status" -eq 0
check "in good order" says "ended"

# ---- a full queue, and the end while one is waiting ----

serve --wait-us=1000000 --queue=1 --timeout-ms=2000 "$dir/f.dcfn"
mkfifo "$dir/nothing"
exec 9<>"$dir/nothing"
curl -s -T - -X POST "$url/run" <"$dir/nothing" >/dev/null 2>&1 & # a client that sends nothing, so there could be more
slow=$!
while [ "$(metric requests_open)" -lt 2 ]; do sleep 0.02; done
curl -s "$url/run" -d '{"x": [[1, 1]], "k": [1]}' >"$dir/waits" &
waits=$!
while [ "$(metric queue_length)" -lt 1 ]; do sleep 0.02; done
refused 503 "too many requests are waiting" '{"x": [[1, 1]], "k": [1]}'
finish
wait $waits
check "who waited was answered" grep -q '22,22' "$dir/waits"
check "the other one not, and it ended" test "$status" -eq 0
kill $slow
wait $slow 2>/dev/null

# ---- functions without rows ----

serve "$dir/g.dcfn"
post '{"x": [[1, 2, 3], [4, 5, 6.5]], "y": 200}'
check "fixed sizes" says '{"results":[221.5]}'
post '{"x": [[1]], "y": 0}'
check "the other variant" says '{"results":[1]}'
refused 400 "no variant of the function has arguments of these sizes" '{"x": [[1, 2]], "y": 1}'
refused 400 "y: 256 is no u8" '{"x": [[1]], "y": 256}'
finish INT
check "SIGINT ends it, too" test "$status" -eq 0

# ---- a call that is ended while it writes a state ----

serve --timeout-ms=200 "$dir/torn.dcfn"
refused 504 "torn: ran longer than 200 ms" '{"x": 1}'
refused 503 "" '{"x": 1}'
check "a state is half written" says "half of a value"
run curl -s -w ' %{http_code}' "$url/health"
check "which is not healthy" says "start the server again
 503"
finish

# ---- what does not start ----

run "$host" --port=0 "$dir/h.dcfn"
check "types that are not served" warns "a float of 16 or 8 bits"
run "$host" --port=0 "$dir/lists.dcfn"
check "variants with more arguments than the first" warns "variants 0 and 1 of lists"
run "$host" --port=0 "$dir/export.lua"
check "a file that is none" warns "http_host: "
check "with a status" test "$status" -eq 1
run "$host" --batch=0 "$dir/f.dcfn"
check "an option out of range" warns "what is --batch=0?"
closing
