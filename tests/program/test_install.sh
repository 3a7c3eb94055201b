#!/bin/sh
# What `cmake --install` puts into a prefix: it needs nothing of the build, the stock lua5.4 finds the module,
# hosts in C are built against it with one line and with CMake, and run.
. "$(dirname "$0")/lib.sh"

root=$PWD
build=$(cd "$(dirname "$DEEPC")" && pwd)
prefix=$dir/prefix
cc=${CC:-cc}
strict='-Wall -Wextra -pedantic -Werror'

# Hosts of an instrumented library are instrumented, too.
sanitize=
for kind in address thread; do
    ! nm -D "$build/libdeepc.so" | grep -q "__[at]san_init" ||
        case $kind in
        address) nm -D "$build/libdeepc.so" | grep -q __asan_init && sanitize=-fsanitize=address,undefined ;;
        thread) nm -D "$build/libdeepc.so" | grep -q __tsan_init && sanitize=-fsanitize=thread ;;
        esac
done

install() { # install PREFIX [DESTDIR]
    run env DESTDIR="${2:-}" cmake --install "$build" --prefix "$1"
}
files() { # files FOLDER -- sorted, relative
    (cd "$1" && find . -type f -o -type l) | sort
}

# ---- what is installed ----

install "$prefix"
check "cmake --install works" test $status -eq 0
libdir=$(dirname "$(find "$prefix" -name libdeepc.so)")
luadir=$libdir/lua/5.4
for file in bin/deepc include/deepc.h share/deepc/library/deepc.lua share/doc/deepc/docs/embedding.md \
    share/doc/deepc/examples/embed/README.md; do
    check "$file is installed" test -f "$prefix/$file"
done
for file in libdeepc.so lua/5.4/deepc.so pkgconfig/deepc.pc pkgconfig/deepc-lua.pc cmake/deepc/deepcConfig.cmake; do
    check "$file is installed" test -f "$libdir/$file"
done
sort "$build/install_manifest.txt" | sed "s,^$prefix,.," >"$dir/manifest"
files "$prefix" >"$dir/installed"
check "install_manifest.txt names every file" cmp "$dir/manifest" "$dir/installed"

# Texts and binaries name neither the source nor the build (assertions of a development build name files, relative).
no_paths() {
    ! grep -rlF -e "$root" -e "$build" "$prefix/include" "$libdir/pkgconfig" "$libdir/cmake" &&
        ! readelf -d "$luadir/deepc.so" "$libdir/libdeepc.so" "$prefix/bin/deepc" |
            grep -E 'R(UN)?PATH' | grep -vF '[$ORIGIN:$ORIGIN/../..]'
}
check "nothing installed refers to the build" no_paths

install /opt/deepc "$dir/stage"
files "$dir/stage/opt/deepc" >"$dir/staged"
check "DESTDIR stages the same files" cmp "$dir/staged" "$dir/installed"

# Moved as a whole it works from there; and the build is out of the way for what follows.
mv "$prefix" "$dir/moved"
prefix=$dir/moved
libdir=$(dirname "$(find "$prefix" -name libdeepc.so)")
luadir=$libdir/lua/5.4

run "$prefix/bin/deepc" -e 'print(require("deepc")._VERSION)'
check "the program runs" says 0.1.0

# A start opens and begins nothing that the script does not need.
run "$prefix/bin/deepc" -e 'local dc = require "deepc"; local a = dc.ones "f32[3]" + 1; print(a[1])
    for line in io.lines "/proc/self/status" do print((line:gsub("%s+", " "))) end
    for line in io.lines "/proc/self/maps" do print(line) end'
check "a small script runs" says "2.0"
check "on one thread" says "Threads: 1
"
check "without a compiler" sh -c "! grep -qiE 'llvm|opencl' '$dir/out'"

# ---- the stock interpreter ----

stock() { # stock [VARIABLE=VALUE...] CODE
    run env -u LUA_PATH -u LUA_INIT "$@"
}
version='print(require("deepc")._VERSION)'
if [ -n "$sanitize" ]; then
    skip "an instrumented module does not load into the stock lua5.4"
elif ! command -v lua5.4 >/dev/null; then
    skip "lua5.4 is not installed"
else
    stock LUA_CPATH="$luadir/?.so" lua5.4 -e "$version"
    check "lua5.4 requires deepc" says 0.1.0
    stock LUA_CPATH="$luadir/?.so" lua5.4 -e 'local nn = require "deepc.nn"; local dc = require "deepc"
        print(nn.Linear(3, 2)(dc.ones "f32[4, 3]").shape[2], (dc.iota "f32[4]" * 2):sum())'
    check "and computes" says "2	12"
    # A prefix of Debian's lua5.4 needs no variable: the module is where package.cpath looks.
    cpath=$(env -u LUA_CPATH lua5.4 -e 'print(package.cpath)')
    check "package.cpath has the default prefix" sh -c "case '$cpath' in */usr/local/lib/lua/5.4/?.so*) ;; *) false ;; esac"
    grep -q '^CMAKE_INSTALL_PREFIX:PATH=/usr/local$' "$build/CMakeCache.txt" &&
        check "the default prefix puts it there" test "${luadir#"$prefix"}" = /lib/lua/5.4
    if [ -w /usr/local/lib ] && [ ! -e /usr/local/lib/lua/5.4/deepc.so ] && command -v unshare >/dev/null &&
        unshare -m true 2>/dev/null; then
        mkdir -p /usr/local/lib/lua
        run unshare -m sh -c "mount --bind '$prefix' /usr/local && env -u LUA_CPATH -u LUA_PATH lua5.4 -e '$version'"
        check "lua5.4 finds it in /usr/local as it is" says 0.1.0
    else
        skip "/usr/local cannot be stood in for"
    fi
fi

# ---- the header ----

printf '#include <deepc.h>\nint main(void) { dc_config c = DC_CONFIG_INIT; return c.size == 0; }\n' >"$dir/h.c"
cp "$dir/h.c" "$dir/h.cc"
run $cc -std=c11 $strict -I "$prefix/include" -fsyntax-only "$dir/h.c"
check "deepc.h is C11" test $status -eq 0
if command -v c++ >/dev/null; then
    run c++ -std=c++17 $strict -I "$prefix/include" -fsyntax-only "$dir/h.cc"
    check "deepc.h is C++17" test $status -eq 0
else
    skip "there is no C++ compiler"
fi

# ---- hosts ----

export PKG_CONFIG_PATH="$libdir/pkgconfig"
check "pkg-config knows the version" test "$(pkg-config --modversion deepc)" = 0.1.0

run $cc -std=c11 $strict $sanitize examples/embed/train_host.c -o "$dir/train_host" \
    $(pkg-config --cflags --libs deepc-lua lua5.4) -Wl,-rpath,"$libdir"
check "the host with Lua is built with one line" test $status -eq 0
run env -C / "$dir/train_host"
check "it runs" test $status -eq 0
check "it trains" says "after 500 steps 0.00"

run $cc -std=c11 $strict $sanitize examples/embed/ranks_host.c -o "$dir/ranks_host" \
    $(pkg-config --cflags --libs deepc-lua lua5.4) -pthread -Wl,-rpath,"$libdir"
check "the host whose threads are ranks is built with one line" test $status -eq 0
run env -C / DEEPC_THREADS=1 "$dir/ranks_host" cpu cpu cpu
check "it trains" says "3 ranks: loss "
check "to the end" says "after 500 steps 0.00"
run env -C / "$dir/ranks_host" cpu nowhere
check "a rank that is not there is told" warns "rank 1: no device is called 'nowhere'"
check "and the other one does not wait for it for ever" test $status -eq 1

run $cc -std=c11 $strict $sanitize examples/embed/sandbox_host.c -o "$dir/sandbox_host" \
    $(pkg-config --cflags --libs deepc-lua lua5.4) -Wl,-rpath,"$libdir"
check "the host of others' scripts is built with one line" test $status -eq 0
echo 'print(io, require "deepc".ones("f32[3]"):sum())' >"$dir/script.lua"
run env -C / "$dir/sandbox_host" "$dir/script.lua"
check "it runs them" says "nil	3"
echo 'require "deepc".save("x", { x = require "deepc".ones "f32[3]" })' >"$dir/script.lua"
run env -C "$dir" "$dir/sandbox_host" "$dir/script.lua" "$dir"
check "and they write nothing" test $status -eq 1 -a ! -e "$dir/x"

run $cc -std=c11 $strict $sanitize examples/embed/run_host.c -o "$dir/run_host" \
    $(pkg-config --cflags --libs deepc) -Wl,-rpath,"$libdir"
check "the host without Lua is built with one line" test $status -eq 0
check "and does not need Lua" sh -c "! ldd '$dir/run_host' | grep -q lua"
run "$prefix/bin/deepc" examples/embed/policy.lua "$dir/policy.dcfn"
check "a function is exported" test $status -eq 0 -a -s "$dir/policy.dcfn"
run env -C / "$dir/run_host" "$dir/policy.dcfn"
check "it is called" test $status -eq 0
check "and knows in from out" says "0.90  0.90  inside: 0.0"
check "and what does not fit is told" says "no variant for arguments (f32[3, 2]); it was exported for (f32[1, 2]), (f32[4, 2])"
check "all memory is given back" says ", 0 bytes are left"

# On the stand-in for CUDA's driver (tests/cuda), and with its header.
if [ ! -e "$build/tests/cuda/lib/libcuda.so.1" ]; then
    skip "no stand-in for CUDA's driver is built"
elif [ -n "$sanitize" ]; then
    skip "the stand-in for CUDA is not instrumented"
else
    mkdir "$dir/cuda"
    {
        echo "#include \"$root/tests/cuda/cuda_driver.h\""
        for name in cuCtxPushCurrent cuMemAlloc cuMemFree cuStreamDestroy cuMemcpyHtoDAsync cuMemcpyDtoHAsync \
            cuDevicePrimaryCtxRelease; do
            echo "#define $name ${name}_v2" # as in CUDA's own
        done
    } >"$dir/cuda/cuda.h"
    run $cc -std=c11 $strict -I "$dir/cuda" examples/embed/device_host.c -o "$dir/device_host" \
        $(pkg-config --cflags --libs deepc) -L"$build/tests/cuda/lib" -l:libcuda.so.1 -Wl,-rpath,"$libdir"
    check "the host with a GPU is built with one line" test $status -eq 0
    for streams in late random; do
        run env LD_LIBRARY_PATH="$build/tests/cuda/lib" DEEPC_NVRTC="$build/tests/cuda/lib/libnvrtc.so.13" DEEPC_CACHE=off \
            CUDA_STANDIN_STREAMS=$streams "$dir/device_host" "$dir/policy.dcfn"
        check "its points stay on the device" test $status -eq 0
        check "and it knows in from out" says "0.90  0.90  inside: 0.0"
    done
fi

run cmake -S examples/embed -B "$dir/hosts" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_C_FLAGS="$sanitize"
check "find_package finds deepc" test $status -eq 0
run cmake --build "$dir/hosts"
check "the hosts are built with CMake" test $status -eq 0
run "$dir/hosts/train_host"
check "the host with Lua runs" says "after 500 steps 0.00"
run "$dir/hosts/run_host" "$dir/policy.dcfn"
check "the host without Lua runs" test $status -eq 0

# Those of examples/hosts, with libraries of the system or of build/hosts.
export PKG_CONFIG_PATH="$libdir/pkgconfig:$root/build/hosts/usr/lib/x86_64-linux-gnu/pkgconfig"
if pkg-config --exists libmicrohttpd jansson; then
    run $cc -std=gnu11 $strict $sanitize examples/hosts/http/*.c -o "$dir/http_host" \
        $(pkg-config --cflags --libs deepc libmicrohttpd jansson) -pthread -lm
    check "the HTTP server is built with one line" test $status -eq 0
else
    skip "libmicrohttpd-dev or libjansson-dev is not installed"
fi
if pkg-config --exists sdl2; then
    sdl=$(pkg-config --variable=includedir sdl2)/$($cc -print-multiarch) # where Debian has SDL_config.h
    run $cc -std=gnu11 $strict $sanitize examples/hosts/game/*.c -o "$dir/game" -isystem "$sdl" \
        $(pkg-config --cflags --libs deepc-lua lua5.4 sdl2) -lm
    check "the game is built with one line" test $status -eq 0
else
    skip "libsdl2-dev is not installed"
fi
run $cc -std=gnu11 $strict $sanitize -shared -fPIC examples/hosts/redis/*.c -o "$dir/deepc_redis.so" \
    $(pkg-config --cflags --libs deepc) -pthread
check "the Redis module is built with one line" test $status -eq 0

# ---- the manual ----

work=$dir/work
mkdir -p "$work/build" "$work/bin" "$dir/home"
ln -s "$build" "$work/build/release"
cp examples/embed/*.c examples/embed/*.lua "$work"
printf '#!/bin/sh\nexec %s %s "$@"\n' "$(command -v $cc)" "$sanitize" >"$work/bin/cc"
chmod +x "$work/bin/cc"
page() { # page NAME [PATTERN...]
    name=$1
    shift
    run env -C "$work" -u LUA_PATH -u LUA_CPATH -u LUA_INIT HOME="$dir/home" PATH="$work/bin:$prefix/bin:$PATH" \
        "$DEEPC" "$root/tests/program/console.lua" "$root/docs/$name.md" "$@"
    check "the commands of docs/$name.md print what it says" test $status -eq 0
}
stock=
{ [ -z "$sanitize" ] && command -v lua5.4 >/dev/null; } || stock=' lua5%.4 '
page installing ${stock:+"$stock"}
check "they are some" says " commands, 0 differ"
page embedding
check "they are eight" says "8 commands, 0 differ"

run "$prefix/bin/deepc" scripts/links.lua "$prefix/share/doc/deepc"
check "links of the installed manual lead somewhere" says " links, 0 lead nowhere"

# ---- the tutorial, with the files that are installed ----

# scripts/run builds the program alone; what is installed is more.
built_first() {
    awk '/^cmake --build --preset release -j( |$)/ { built = 1 } /cmake --install build\/release/ && !built { exit 1 }
        END { if (!built) exit 1 }' "docs/$1.md"
}
check "the tutorial builds what it installs" built_first tutorial
check "so does installing.md" built_first installing

tutorial() { # the server answers a request: tutorial PORT
    bash -c "exec 3<>/dev/tcp/127.0.0.1/$1 && { printf 'POST / HTTP/1.1\r\nContent-Length: 784\r\n\r\n'
        cat boot.raw; } >&3 && cat <&3" 2>/dev/null
}
images=/usr/share/datasets/fashion-mnist
if [ ! -e $images/train-images-idx3-ubyte.gz ]; then
    skip "dataset-fashion-mnist is not installed: the tutorial's network is not trained"
else
    cp "$prefix"/share/doc/deepc/examples/tutorial/* "$work"
    rm "$work/README.md"
    run env -C "$work" "$prefix/bin/deepc" train.lua --images 4000 --epochs 3
    check "the tutorial's network is trained" says "epoch 3  loss 0."
    check "and tells clothes apart" grep -qE 'epoch 3 .* accuracy 0\.[78]' "$dir/out"
    run env -C "$work" "$prefix/bin/deepc" train.lua --images 4000 --epochs 4
    check "it goes on where it ended" sh -c "grep -q 'epoch 4' '$dir/out' && ! grep -q 'epoch 3' '$dir/out'"
    page tutorial
    check "they are five" says "5 commands, 0 differ"
    port=$((20000 + $$ % 20000))
    (cd "$work" && exec env "LD_LIBRARY_PATH=$libdir" ./server clothes.dcfn $port) 2>"$dir/server" &
    server=$!
    tries=0
    answer=
    while [ -z "$answer" ] && [ $tries -lt 100 ]; do
        answer=$(cd "$work" && tutorial $port)
        tries=$((tries + 1))
        [ -n "$answer" ] || sleep 0.1
    done
    kill $server 2>/dev/null
    check "the server tells what it is shown" sh -c "echo '$answer' | grep -q '^ankle boot 0'"
fi

# ---- and away again ----

install "$dir/again"
run sh -c "xargs rm <'$build/install_manifest.txt'"
check "install_manifest.txt is a list to uninstall by" test -z "$(find "$dir/again" -type f -o -type l)"
closing
