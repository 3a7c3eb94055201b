#!/bin/sh
# Small limits of the process: of address space, threads, descriptors, files, the stack. Everything computes what it
# should, with a note where something is done in another way, or ends with a sentence; nothing crashes and no half
# file stays.
. "$(dirname "$0")/lib.sh"

cat >"$dir/sum.lua" <<'EOT2'
local dc = require "deepc"
local f = dc.fn("f(x: f32[200000]) -> f32[]", function(x) return (x * 2):sum() end)
print(f(dc.ones "f32[200000]"):item())
EOT2

limited() { # limited LIMIT VALUE COMMAND..., with no descriptors but the first three
    limit=$1 value=$2
    shift 2
    run sh -c "exec 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-; ulimit $limit $value && exec \"\$@\"" sh "$@"
}

# Sanitizers reserve address space of their own.
if ! limited -v 400000 "$DEEPC" -e 'print(1)' && [ "$status" -ne 0 ] || [ "$out" != 1 ]; then
    echo "skipped: no limit of address space under this build"
else
    for kib in 60000 100000 150000 180000 190000 200000 250000 300000 400000; do
        limited -v $kib env DEEPC_CACHE=off DEEPC_THREADS=2 "$DEEPC" "$dir/sum.lua"
        check "with $kib KiB of address space it computes" test "$status:$out" = 0:400000.0
    done
    limited -v 150000 env DEEPC_CACHE=off "$DEEPC" "$dir/sum.lua"
    check "it says what LLVM lacks" warns "MiB of address space"
    check "and what to do" warns "(DEEPC_COMPILE=cache or off)"
    check "not that it is not installed" test "${err#*no LLVM library}" = "$err"
fi

for n in 4 5 6 8; do
    limited -n $n env DEEPC_CACHE=off DEEPC_THREADS=2 "$DEEPC" "$dir/sum.lua"
    check "with $n descriptors it computes or says why not" \
        test "$status:$out" = 0:400000.0 -o "$status" -eq 1 -a -n "$err"
done

for kib in 1024 2048; do
    limited -s $kib env DEEPC_CACHE=off DEEPC_THREADS=2 "$DEEPC" "$dir/sum.lua"
    check "with $kib KiB of stack it computes" test "$status:$out" = 0:400000.0
done

# Files of at most one block; what writes more is told so, by an error and not by a signal.
cat >"$dir/save.lua" <<'EOT2'
local dc = require "deepc"
local x = dc.ones "f32[100000]"
print(pcall(dc.save, arg[1] .. "/x.st", { x = x }))
EOT2
mkdir "$dir/small"
run sh -c 'trap "" XFSZ; ulimit -f 1 && exec "$@"' sh env DEEPC_CACHE="$dir/small/cache" "$DEEPC" "$dir/save.lua" "$dir/small"
check "a file that becomes too large is an error" says "File too large"
check "and nothing is left of it" test -z "$(find "$dir/small" -name '*x.st*')"
run sh -c 'trap "" XFSZ; ulimit -f 1 && exec "$@"' sh env DEEPC_CACHE="$dir/small/cache" "$DEEPC" "$dir/sum.lua"
check "without room for the cache it computes" test "$status:$out" = 0:400000.0
run env DEEPC_CACHE="$dir/small/cache" "$DEEPC" "$dir/sum.lua"
check "and what is in the cache then does no harm" test "$status:$out" = 0:400000.0

chmod 500 "$dir/small"
if [ "$(id -u)" -ne 0 ]; then
    run "$DEEPC" "$dir/save.lua" "$dir/small"
    check "a folder that may not be written is an error" says "Permission denied"
fi
chmod 700 "$dir/small"
closing
