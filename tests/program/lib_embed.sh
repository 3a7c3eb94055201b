# For tests/program/test_embed_*.sh, which run the hosts of examples/hosts; sourced after lib.sh.
#
#   need_built FILE     $host: a program or module that the build made of examples/hosts; without it the test ends here
#   need_program NAME   $program: of the system, or of build/hosts (want_hosts of scripts/setup.sh), likewise
#   in_unpacked COMMAND...   with the libraries that came with it; not behind begin, where it is env LD_LIBRARY_PATH="$libraries"
#   begin COMMAND...    starts it in the background, its output in $dir/host, its number in $pid
#   ready PATTERN       waits until that output has a line with PATTERN
#   finish [SIGNAL]     ends it; its status in $status
#   rss                 memory of it, KiB

unpacked=$PWD/build/hosts
pid=
socket=$(mktemp -d /tmp/deepc-XXXXXX) # a short path, for sockets
trap '[ -z "$pid" ] || kill -9 "$pid" 2>/dev/null; rm -rf "$dir" "$socket"' EXIT

end_here() {
    skip "$1"
    closing
    exit
}

need_built() {
    host=$(cd "$(dirname "$DEEPC")" && pwd)/examples/hosts/$1
    [ -e "$host" ] || end_here "$1 is not built: its library is not installed"
    [ -n "$(command -v curl)" ] || end_here "curl is not installed"
}

need_program() {
    libraries=$unpacked/usr/lib/x86_64-linux-gnu:$unpacked/lib/x86_64-linux-gnu
    for program in "$unpacked/usr/bin/$1" "$unpacked/usr/sbin/$1"; do
        [ ! -x "$program" ] || return 0
    done
    libraries=
    program=$(command -v "$1" || echo "/usr/sbin/$1")
    [ ! -x "$program" ] || return 0
    end_here "$1 is not installed"
}

# in_unpacked COMMAND...: with the libraries that came with the last program that was needed
in_unpacked() {
    env LD_LIBRARY_PATH="$libraries" "$@"
}

begin() {
    : >"$dir/host"
    "$@" >"$dir/host" 2>&1 &
    pid=$!
}

ready() {
    tries=0
    until grep -q "$1" "$dir/host"; do
        tries=$((tries + 1))
        [ $tries -lt 600 ] && kill -0 "$pid" 2>/dev/null || break
        sleep 0.05
    done
    check "the host says $1" grep -q "$1" "$dir/host"
}

finish() {
    kill "-${1:-TERM}" "$pid"
    status=0
    wait "$pid" || status=$?
    pid=
    out=$(cat "$dir/host")
}

rss() {
    sed -n 's/^VmRSS:[^0-9]*\([0-9]*\).*/\1/p' "/proc/$pid/status"
}
