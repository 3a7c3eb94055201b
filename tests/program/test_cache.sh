#!/bin/sh
# The cache on disk: what a second process finds there, and what it does not trust.
. "$(dirname "$0")/lib.sh"
export DEEPC_CACHE="$dir/cache" DEEPC_DEVICE=cpu

cat >"$dir/step.lua" <<'EOT'
local dc = require "deepc"
local nn = require "deepc.nn"
local optim = require "deepc.optim"
local net = nn.Sequential { nn.Linear(20, 30), nn.ReLU(), nn.Linear(30, 10) }
local opt = optim.Adam(net:parameters())
local step = dc.fn("step(x: f32[16, 20], y: i32[16]) -> f32[]", function(x, y)
  local loss = nn.cross_entropy(net(x), y)
  opt:step(loss)
  return loss
end)
local x, y = dc.randn("f32[16, 20]", { seed = 1 }), dc.iota "i32[16]" % 10
for _ = 1, 3 do
  print(("%a"):format(step(x, y):item()))
end
local s, llvm = dc.stats(), "compiler not opened"
for line in io.lines "/proc/self/maps" do
  if line:find "libLLVM" then
    llvm = "compiler opened"
  end
end
io.stderr:write(("kernels: %d compiled, %d from disk, %s\n"):format(s.kernels, s.kernels_cached, llvm))
if s.fallbacks > 0 then
  io.stderr:write "interpreted\n"
end
EOT

# Two kernels may be one text, so that the second is found as soon as the first is written: what was not
# there before a run is told exactly by one that compiles and writes nothing.
finds_nothing() {
    (run env DEEPC_COMPILE=cache "$@" && warns "kernels: 0 compiled, 0 from disk")
}
compiles() {
    test "$(sed -n 's/^kernels: \([0-9]*\) compiled, .*/\1/p' "$dir/err")" -gt 3
}

run "$DEEPC" "$dir/step.lua"
if warns interpreted; then
    skip "no LLVM here"
    closing
    exit
fi
cold=$out
check "a cold start compiles" compiles
check "and opens the compiler" warns ", compiler opened"
check "the folder is private" test "$(stat -c %a "$dir/cache")" = 700
check "nothing half written is left" test -z "$(ls "$dir/cache" | grep new-)"
entries=$(ls "$dir/cache" | wc -l)
check "there are entries" test "$entries" -gt 3
check "which are private" test -z "$(find "$dir/cache" -type f ! -perm 600)"

run "$DEEPC" "$dir/step.lua"
check "a warm start does not, and opens no compiler" warns "kernels: 0 compiled"
check "nor opens a compiler" warns "compiler not opened"
check "with the same bits" test "$out" = "$cold"

run env DEEPC_LLVM=/nonexistent "$DEEPC" "$dir/step.lua"
check "without a compiler it serves as well" warns "kernels: 0 compiled"
check "nothing is interpreted" sh -c "! grep -q interpreted '$dir/err'"
check "with the same bits, too" test "$out" = "$cold"
library=$("$DEEPC" --devices | sed -n 's/.*, \(\/[^ ]*libLLVM[^ ;]*\);.*/\1/p' | head -n 1)
ln -s "$library" "$dir/other.so"
check "what another compiler made is not used" finds_nothing DEEPC_LLVM="$dir/other.so" "$DEEPC" "$dir/step.lua"

run env DEEPC_SKIP=cache "$DEEPC" "$dir/step.lua"
check "DEEPC_SKIP=cache compiles" warns ", 0 from disk"
run env DEEPC_CACHE=off "$DEEPC" "$dir/step.lua"
check "DEEPC_CACHE=off too" warns ", 0 from disk"
check "with the same bits, again" test "$out" = "$cold"
check "nothing here is for another target" finds_nothing DEEPC_DEVICE=cpu:baseline "$DEEPC" "$dir/step.lua"
run env DEEPC_DEVICE=cpu:baseline "$DEEPC" "$dir/step.lua"
check "which compiles its own" compiles
run env DEEPC_DEBUG=cache "$DEEPC" "$dir/step.lua"
check "the channel tells" warns ".dco: found"
check "the function is found whole" warns "[cache] step: found whole, "

# Lines are those of the script at hand, not of the one that made the entry; another build of deepc does not use it.
cat "$dir/step.lua" >"$dir/lines.lua"
echo 'print(step:explain())' >>"$dir/lines.lua"
(echo '-- a line' && cat "$dir/lines.lua") >"$dir/moved.lua"
run env DEEPC_CACHE=off "$DEEPC" "$dir/moved.lua"
moved=$out
run env DEEPC_DEBUG=cache "$DEEPC" "$dir/moved.lua"
check "a script with another line above finds it whole" warns "[cache] step: found whole, "
check "and tells its own lines" test "$out" = "$moved"
run env DEEPC_DEBUG=cache,plan "$DEEPC" "$dir/step.lua"
check "who wants to see the stages gets them run" test "$(grep -c 'step: found whole' "$dir/err")" -eq 0
if command -v readelf >/dev/null; then
    at=$(readelf -SW "$DEEPC" | sed -n 's/.*build-id *NOTE *[0-9a-f]* *\([0-9a-f]*\).*/\1/p')
    cp "$DEEPC" "$dir/rebuilt"
    printf 'xxxx' | dd of="$dir/rebuilt" bs=1 seek=$((0x$at + 20)) conv=notrunc 2>/dev/null
    run env DEEPC_DEBUG=cache "$dir/rebuilt" "$dir/step.lua"
    check "another build does not take it" test "$(grep -c 'step: found whole' "$dir/err")" -eq 0
    check "but its kernels" warns "kernels: 0 compiled"
    check "with the same bits" test "$out" = "$cold"
else
    skip "no readelf to tell builds apart"
fi

for file in "$dir/cache"/*.dco; do
    printf 'x' | dd of="$file" bs=1 seek=100 conv=notrunc 2>/dev/null
done
check "damaged entries are not used" finds_nothing "$DEEPC" "$dir/step.lua"
run "$DEEPC" "$dir/step.lua"
check "but compiled anew" compiles
check "with the right result" test "$out" = "$cold"
run "$DEEPC" "$dir/step.lua"
check "and replaced" warns "kernels: 0 compiled"
mkdir -m 700 "$dir/other"
for file in "$dir/cache"/*.dco; do
    mv "$file" "$dir/other"
    ln -s "$dir/other/$(basename "$file")" "$file"
done
check "links are not followed" finds_nothing "$DEEPC" "$dir/step.lua"
run "$DEEPC" "$dir/step.lua"
check "but kernels compiled anew" compiles
check "and links replaced" test "$(find "$dir/cache" -type f | wc -l)" -eq "$entries"
find "$dir/cache" -type f -exec chmod 644 {} +
check "nor are entries used that others can read" finds_nothing "$DEEPC" "$dir/step.lua"
run "$DEEPC" "$dir/step.lua"
check "they are compiled anew, too" compiles

chmod 755 "$dir/cache"
run "$DEEPC" "$dir/step.lua"
check "a folder that others can read is not used" warns ", 0 from disk"
check "a note says so" warns "[note] cache: $dir/cache is not used: others can look into it (mode 755 instead of 700)"
check "once" test "$(grep -c 'is not used' "$dir/err")" -eq 1
check "the result is right" test "$out" = "$cold"
run "$DEEPC" cache
check "deepc cache says so, too" test "$status" -eq 1
chmod 700 "$dir/cache"
if [ "$(id -u)" -eq 0 ]; then
    chown 12345 "$dir/cache"
    run "$DEEPC" "$dir/step.lua"
    check "nor one of another user" warns "is not used: it belongs to another user"
    chown 0 "$dir/cache"
else
    skip "only root can give a folder to another user"
fi

run "$DEEPC" cache
check "deepc cache counts" says "$dir/cache: $(ls "$dir/cache" | wc -l) programs, "
run "$DEEPC" cache --clear
check "--clear removes" says "$dir/cache: 0 programs, 0.0 MiB"
check "all" test -z "$(ls "$dir/cache")"
run "$DEEPC" cache --nonsense
check "an unknown option is refused" test "$status" -eq 1

# Several processes at once, in a new folder
for i in 1 2 3 4; do
    DEEPC_CACHE="$dir/race" "$DEEPC" "$dir/step.lua" >"$dir/race.$i" 2>/dev/null &
done
wait
for i in 1 2 3 4; do
    check "process $i of several has the right result" test "$(cat "$dir/race.$i")" = "$cold"
done
DEEPC_CACHE="$dir/race" run "$DEEPC" "$dir/step.lua"
check "what they wrote is whole" warns "kernels: 0 compiled"

# Killed at any moment, most of them while kernels are compiled and written
for i in 1 2 3 4 5 6; do
    DEEPC_CACHE="$dir/killed" "$DEEPC" "$dir/step.lua" >/dev/null 2>&1 &
    sleep "0.$((i * 7))"
    kill -9 $! 2>/dev/null
    wait $! 2>/dev/null
    DEEPC_CACHE="$dir/killed" run "$DEEPC" "$dir/step.lua"
    check "the result after a kill, $i" test "$out" = "$cold"
    rm -f "$dir/killed"/*"$i".dco
done

# Where it is by default
run env -u DEEPC_CACHE HOME="$dir/home" XDG_CACHE_HOME="$dir/xdg" "$DEEPC" "$dir/step.lua"
check "XDG_CACHE_HOME/deepc" test -d "$dir/xdg/deepc"
run env -u DEEPC_CACHE -u XDG_CACHE_HOME HOME="$dir/home" "$DEEPC" "$dir/step.lua"
check "HOME/.cache/deepc" test -d "$dir/home/.cache/deepc"
run env -u DEEPC_CACHE -u XDG_CACHE_HOME -u HOME "$DEEPC" "$dir/step.lua"
check "nowhere without a home" test "$out" = "$cold"
check "which is not worth a word" test "$(grep -c note "$dir/err")" -eq 0
run env DEEPC_CACHE=/proc/nowhere/deepc "$DEEPC" "$dir/step.lua"
check "where nothing can be made, nothing is" test "$out" = "$cold"
run env DEEPC_CACHE_SIZE=0 "$DEEPC" "$dir/step.lua"
check "a size of 0 is a mistake" warns "DEEPC_CACHE_SIZE"

# The other compiler
run env DEEPC_DEVICE=cpu:cc DEEPC_COMPILE=now "$DEEPC" "$dir/step.lua"
if warns interpreted; then
    skip "no C compiler here"
else
    compiled=$out
    check "cpu:cc compiles, too" compiles
    run env DEEPC_DEVICE=cpu:cc DEEPC_COMPILE=now "$DEEPC" "$dir/step.lua"
    check "and finds it again" warns "kernels: 0 compiled"
    check "with the same bits as before" test "$out" = "$compiled"
    check "not for other options" finds_nothing DEEPC_DEVICE=cpu:cc DEEPC_CC="cc -O1" "$DEEPC" "$dir/step.lua"
    run env DEEPC_DEVICE=cpu:cc DEEPC_COMPILE=now DEEPC_CC="cc -O1" "$DEEPC" "$dir/step.lua"
    check "which are another program" compiles
fi
closing
