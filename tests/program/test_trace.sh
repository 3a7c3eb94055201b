#!/bin/sh
# deepc --trace, and dc.trace in scripts that end in every way.
. "$(dirname "$0")/lib.sh"
keep_kernels

cat >"$dir/a.lua" <<'LUA'
local dc = require "deepc"
local f = dc.fn("f(x: f32[64]) -> f32[64]", function(x) return (x * 2):exp() end)
for _ = 1, 3 do f(dc.ones "f32[64]") end
if arg[1] == "exit" then os.exit(tonumber(arg[2])) end
if arg[1] == "error" then error "on purpose" end
LUA

cat >"$dir/look.lua" <<'LUA'
local check = require "tests.lua.check"
local seen, threads = {}, 0
for _, e in ipairs(check.json(check.read(arg[1])).traceEvents) do
  seen[e.name] = e
  threads = threads + (e.name == "thread_name" and 1 or 0)
end
for i = 2, #arg do
  assert(seen[arg[i]], arg[i] .. " is not there")
end
assert(threads >= 1)
LUA
here=$(cd "$(dirname "$0")/../.." && pwd)
has() {
    DEEPC_CACHE=off LUA_PATH="$here/?.lua;/usr/share/lua/5.4/?.lua;;" "$DEEPC" "$dir/look.lua" "$@"
}

run "$DEEPC" --trace "$dir/run.json" "$dir/a.lua"
check "a script is recorded" [ "$status" -eq 0 ]
check "with its calls" has "$dir/run.json" "f #1" "f #3" "trace f" process_name memory

run "$DEEPC" --trace "$dir/exit.json" "$dir/a.lua" exit 7
check "os.exit keeps its status" [ "$status" -eq 7 ]
check "and the file is written" has "$dir/exit.json" "f #3"
run "$DEEPC" --trace "$dir/error.json" "$dir/a.lua" error
check "an error is told" warns "on purpose"
check "with status 1" [ "$status" -eq 1 ]
check "and the file is written" has "$dir/error.json" "f #3"

cat >"$dir/short.lua" <<'LUA'
local dc = require "deepc"
recording = dc.trace(arg[1], { spans = 3 })
for _ = 1, 9 do dc.span "a":close() end
LUA
run "$DEEPC" "$dir/short.lua" "$dir/short.json"
check "one that the end of the script ends tells what is left out" \
    warns "short.json has the first 3 spans; 6 more were left out: dc.trace(path, { spans = n }) keeps more"

run "$DEEPC" --trace "$dir/run.json.gz" "$dir/a.lua"
gzip -dc "$dir/run.json.gz" >"$dir/unpacked.json"
check "a file that ends with .gz is compressed" has "$dir/unpacked.json" "f #2"

run "$DEEPC" --trace "$dir/none/run.json" "$dir/a.lua"
check "a file that cannot be written is told before anything runs" warns "none/run.json"
check "with status 1" [ "$status" -eq 1 ]
run "$DEEPC" --trace
check "a missing name is told" warns "--trace needs an argument"
DEEPC_ALLOW=compute run "$DEEPC" --trace "$dir/not.json" "$dir/a.lua"
check "who may only compute writes no file" [ "$status" -eq 1 ]
check "there is none" [ ! -e "$dir/not.json" ]

cat >"$dir/ranks.lua" <<'LUA'
local dc = require "deepc"
dc.mesh { data = 2 }
local f = dc.fn("f(x: f32[8]) -> f32[8]", function(x) return dc.all_reduce(x, { over = "data" }) end)
for _ = 1, 3 do f(dc.ones "f32[8]") end
LUA
run "$DEEPC" --ranks 2 --trace "$dir/r.json" "$dir/ranks.lua"
check "ranks write a file each" [ "$status" -eq 0 ]
check "of rank 0" has "$dir/r.0.json" "f #3" all_reduce
check "of rank 1" has "$dir/r.1.json" "f #3" all_reduce
check "no other" [ ! -e "$dir/r.json" ]

closing
