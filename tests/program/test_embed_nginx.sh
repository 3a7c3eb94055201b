#!/bin/sh
# examples/hosts/nginx in the real server: two workers with a context each, requests in parallel, what is refused, a reload, the end.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/lib_embed.sh"
need_program nginx
modules=/usr/lib/nginx/modules
[ -z "$libraries" ] || modules=$unpacked$modules
[ -e "$modules/ngx_http_lua_module.so" ] || end_here "libnginx-mod-http-lua is not installed"
[ -n "$(command -v curl)" ] || end_here "curl is not installed"

mkdir "$dir/www"
cp examples/hosts/nginx/*.lua "$dir/www"
export DEEPC_LIB
DEEPC_LIB=$(cd "$(dirname "$DEEPC")" && pwd)/libdeepc.so
cat >"$dir/export.lua" <<'L'
local dc = require "deepc"
local values = dc.tensor { 10, 20, 30 }
dc.fn("f(x: f32[n, 2], k: i32[n]) -> f32[n, 2], bool[n]", function(x, k)
  return x:log() + values:gather(k, 1):reshape { dc.dim "n", 1 }, k:gt(0)
end):export(arg[1], { n = 1 }, { n = 4 })
local lists = dc.fn("lists(x: { f32[n] }) -> f32[n]", function(x) return #x == 2 and x[1] + x[2] or x[1] end)
lists { { 1 } }
lists { { 1 }, { 2 } }
lists:export(arg[2])
local w = dc.state("f64[64]", 0)
dc.fn("exact(x: f64[n], k: i64[]) -> f64[n], i64[]", function(x, k)
  if x.shape[1] == 1 then return x / 3, k + 9007199254740993 end
  w:set(w + x[1])
  return x + dc.loop(function(c) return c:lt(1e30) end, function(c) return c * 0.5 + w[1] end, x[1]), k
end):export(arg[3], { n = 1 }, { n = 2 })
L
run "$DEEPC" "$dir/export.lua" "$dir/www/model.dcfn" "$dir/lists.dcfn" "$dir/exact.dcfn"
check "a function is exported" test "$status" -eq 0

path=$unpacked/usr/share/lua/5.1/?.lua
sed -e "s|^include .*|load_module $modules/ndk_http_module.so; load_module $modules/ngx_http_lua_module.so; user root;|" \
    -e "s|listen .*|listen unix:$socket/http;|" -e "s|\?.lua;;|?.lua;$path;;|" \
    -e "s|^http {|http { lua_package_cpath '$unpacked/usr/lib/x86_64-linux-gnu/lua/5.1/?.so;;';|" \
    examples/hosts/nginx/nginx.conf >"$dir/www/nginx.conf"
[ "$(id -u)" -eq 0 ] || sed -i 's/user root;//' "$dir/www/nginx.conf"
begin env LD_LIBRARY_PATH="$libraries" "$program" -p "$dir/www/" -c nginx.conf -g 'daemon off;'
wait_for() { # wait_for TEXT: in an answer
    tries=0
    until post '{"x": [[1, 1]], "k": [0]}' && says "$1" || [ $tries -gt 200 ] || ! kill -0 "$pid"; do
        tries=$((tries + 1))
        sleep 0.05
    done
}
post() {
    run curl -s -m 20 -w ' %{http_code}' --unix-socket "$socket/http" http://host/run -d "$1"
}
refused() { # refused CODE WORDS BODY
    post "$3"
    check "$3: $1, $2" says "$2"
    check "$3: $1" says " $1"
}
wait_for ' 200'
check "one row" says '"results":[[[10,10]],[false]]'
post '{"k": [0, 1, 2, 0], "x": [[1, 1], [1, 1], [1, 1], [0, 1]]}'
check "four rows, one with an infinity" says '[[10,10],[20,20],[30,30],[null,10]],[false,true,true,false]'
refused 400 'the body is not JSON' '{"x": '
refused 400 'expected an object with the arguments' '3'
refused 400 'the argument k is missing' '{"x": [[1, 2]]}'
refused 400 'there is no argument z' '{"x": [[1, 2]], "k": [0], "z": 1}'
refused 400 'no variant of f(x: f32[n, 2]' '{"x": [[1, 2], [1, 2]], "k": [0, 1]}'
refused 400 'x[0][1]: expected f32, found two' '{"x": [[1, "two"]], "k": [0]}'
refused 400 'k[0]: 0.5 is no i32' '{"x": [[1, 2]], "k": [0.5]}'
refused 400 'k[0]: 3000000000 is no i32' '{"x": [[1, 2]], "k": [3000000000]}'
refused 400 'x[0][0]: 9.9999999999999997e+98 is no f32' '{"x": [[1e99, 2]], "k": [0]}'
refused 400 'x[3]: expected a list of 2, found one of 1' '{"x": [[1, 2], [1, 2], [1, 2], [1]], "k": [0, 0, 0, 0]}'
refused 400 'gather: index 5 outside 0..2' '{"x": [[1, 2]], "k": [5]}'
run curl -s -i --unix-socket "$socket/http" http://host/run
check "another method" says "405"
head -c 2000000 /dev/zero | tr '\0' 1 >"$dir/ones"
post "@$dir/ones"
check "too large a body" says " 413"

load() { # load REQUESTS: how many right answers
    curl -s -Z --no-progress-meter --parallel-max 8 --unix-socket "$socket/http" "http://host/run?[1-$1]" \
        -d '{"x": [[1, 1]], "k": [1]}' >"$dir/answers"
    grep -o '"worker":[0-9]*' "$dir/answers" >>"$dir/workers"
    grep -c '\[\[\[20,20\]\],\[true\]\]' "$dir/answers"
}
memory() {
    for worker in $(cat "/proc/$pid/task/$pid/children"); do cat "/proc/$worker/status"; done |
        awk '/^VmRSS/ { n += $2 } END { print n }'
}
check "requests in parallel" test "$(load 800)" -eq 800
check "two workers" test "$(wc -w <"/proc/$pid/task/$pid/children")" -eq 2
tries=0
until [ "$(sort -u "$dir/workers" | wc -l)" -ge 2 ] || [ $tries -gt 30 ]; do
    load 100 >/dev/null
    tries=$((tries + 1))
done
check "both answer" test "$(sort -u "$dir/workers" | wc -l)" -eq 2
before=$(memory)
check "many more" test "$(load 3000)" -eq 3000
check "which need no memory: $before KiB, then $(memory)" test "$(memory)" -le $((before + 2048)) # Lua collects now and then
kill -HUP "$pid" # workers end, others begin
sleep 0.3
check "after a reload" test "$(load 100)" -eq 100
finish QUIT
check "SIGQUIT ends it" test "$status" -eq 0
check "without a crash" sh -c "! grep -E 'exited on signal|alert|emerg' '$dir/host'"
mv "$dir/lists.dcfn" "$dir/www/model.dcfn"
begin env LD_LIBRARY_PATH="$libraries" "$program" -p "$dir/www/" -c nginx.conf -g 'daemon off;'
wait_for ' 503'
check "variants with more arguments than the first" says 'differ in more than sizes'
finish QUIT
mv "$dir/exact.dcfn" "$dir/www/model.dcfn"
sed -i 's/^worker_processes .*/worker_processes 1;/' "$dir/www/nginx.conf"
begin env LD_LIBRARY_PATH="$libraries" "$program" -p "$dir/www/" -c nginx.conf -g 'daemon off;'
wait_for ' 400'
post '{"x": [1], "k": 0}'
check "no digit is lost" says '{"results":[[0.33333333333333331],9007199254740993],'
refused 500 'ran longer' '{"x": [1, 2], "k": 0}'
refused 500 'half of a value' '{"x": [1, 2], "k": 0}'
refused 500 'ran longer' '{"x": [1, 2], "k": 0}'
finish QUIT
rm "$dir/www/model.dcfn"
begin env LD_LIBRARY_PATH="$libraries" "$program" -p "$dir/www/" -c nginx.conf -g 'daemon off;'
wait_for ' 503'
check "without its file it says so" says 'model.dcfn'
finish QUIT
closing
