# For scripts/run and scripts/test: installs what is missing, configures, builds, quietly.
# Sourced with `root` set; long output goes to build/*.log and is shown on failure.

cpus=$(nproc 2>/dev/null || echo 2)

say() {
    echo "$*" >&2
}

# quiet LOG COMMAND...: the output goes to build/LOG.log, whose end is shown on failure
quiet() {
    log=$root/build/$1.log
    shift
    mkdir -p "$root/build"
    "$@" >"$log" 2>&1 && return 0
    say "failed: $*"
    grep -nE 'error|Error|warning|undefined|E:' "$log" | head -n 30 >&2
    say "---- end of $log"
    tail -n 30 "$log" >&2
    exit 1
}

missing=
# need PACKAGE TEST...: the package is wanted if the test fails
need() {
    package=$1
    shift
    "$@" >/dev/null 2>&1 || missing="$missing $package"
}

have_llvm() {
    for so in /usr/lib/*/libLLVM.so.19.1 /usr/lib/*/libLLVM-1[5-9].so* /usr/lib/*/libLLVM.so.[12]*; do
        [ -e "$so" ] && return 0
    done
    return 1
}

have_opencl() {
    for so in /usr/lib/*/libOpenCL.so.1; do
        [ -e "$so" ] && return 0
    done
    return 1
}

have_jpeg() {
    for so in /usr/lib/*/libturbojpeg.so.0; do
        [ -e "$so" ] && return 0
    done
    return 1
}

have_sndfile() {
    for so in /usr/lib/*/libsndfile.so.1; do
        [ -e "$so" ] && return 0
    done
    return 1
}

have_curl() {
    for so in /usr/lib/*/libcurl.so.4; do
        [ -e "$so" ] && return 0
    done
    return 1
}

have_lapack() {
    for so in /usr/lib/*/libopenblas.so.0 /usr/lib/*/liblapack.so.3; do
        [ -e "$so" ] && return 0
    done
    return 1
}

have_fuzzer() {
    command -v clang-14 || return 1
    for a in /usr/lib/llvm-14/lib/clang/*/lib/linux/libclang_rt.fuzzer-*.a; do
        [ -e "$a" ] && return 0
    done
    return 1
}

need_build() {
    need gcc command -v gcc
    need libc6-dev test -e /usr/include/stdio.h
    need make command -v make
    need cmake command -v cmake
    need pkg-config command -v pkg-config
    need liblua5.4-dev test -e /usr/include/lua5.4/lua.h
    need zlib1g-dev test -e /usr/include/zlib.h
    need libedit-dev test -e /usr/include/histedit.h
    need libllvm19 have_llvm
}

need_tests() {
    need ninja-build command -v ninja
    need lua5.4 command -v lua5.4
    need lua-unit test -e /usr/share/lua/5.4/luaunit.lua
    need lua-check command -v luacheck
    need valgrind command -v valgrind
    need libpng-dev test -e /usr/include/png.h
    need libturbojpeg0 have_jpeg
    need libsndfile1 have_sndfile
    need libcurl4 have_curl
    need ocl-icd-libopencl1 have_opencl
    need libopenblas0-serial have_lapack
    need pocl-opencl-icd test -e /etc/OpenCL/vendors/pocl.icd
    need g++ command -v g++
    need openmpi-bin command -v mpirun.openmpi
    need mpich command -v mpirun.mpich
    need iproute2 command -v tc
    need dpkg-dev command -v dpkg-shlibdeps
}

need_data() {
    need dataset-fashion-mnist test -e /usr/share/datasets/fashion-mnist/train-images-idx3-ubyte.gz
}

# What some examples learn from, 190 MB. Their tests are skipped where it cannot be installed.
want_examples() {
    missing=
    need opencv-doc test -e /usr/share/doc/opencv-doc/examples/data/digits.png
    need bible-kjv command -v bible
    for voice in en es fr it ru; do
        need "asterisk-core-sounds-$voice-wav" sh -c "ls -d /usr/share/asterisk/sounds/${voice}_*"
    done
    if [ -n "$missing" ] && ! (install_missing) 2>/dev/null; then
        say "not installed, so some examples are not tested:$missing"
    fi
    missing=
}

# The programs and libraries of examples/hosts, 15 MB. They are unpacked into build/hosts, not installed: packages of servers
# start them. What cannot be had is a test that is skipped. Packages are listed with what they need that Debian's base system
# and the packages above do not have.
want_hosts() {
    [ -x /usr/bin/apt-get ] && [ "$(dpkg --print-architecture)" = amd64 ] || return 0
    hosts=$root/build/hosts
    missing=
    need curl command -v curl
    need libsdl2-2.0-0 test -e /usr/lib/x86_64-linux-gnu/libSDL2-2.0.so.0
    [ -z "$missing" ] || (install_missing) 2>/dev/null || say "not installed, so some of examples/hosts are not tested:$missing"
    missing=
    # The game is linked with the libraries that SDL needs, which the package of the system brings.
    [ ! -e /usr/lib/x86_64-linux-gnu/libSDL2-2.0.so.0 ] || unpack game libsdl2-dev libsdl2-2.0-0
    unpack http libmicrohttpd-dev libmicrohttpd12 libjansson-dev libjansson4
    unpack redis redis-server redis-tools libjemalloc2 liblzf1
    unpack nginx nginx libnginx-mod-http-lua libnginx-mod-http-ndk lua-resty-core lua-resty-lrucache lua-cjson libpcre3 \
        libluajit2-5.1-2 libluajit2-5.1-common
    unpack neovim neovim neovim-runtime lua-luv libluajit2-5.1-2 libluajit2-5.1-common libmsgpackc2 libtermkey1 \
        libtree-sitter0 libunibilium4 libuv1 libvterm0
}

# unpack NAME PACKAGE...: into build/hosts; whole, or not at all
unpack() {
    name=$1
    shift
    [ ! -e "$hosts/$name" ] || return 0
    rm -rf "$hosts/debs"
    mkdir -p "$hosts/debs"
    (cd "$hosts/debs" && { apt-get download -q "$@" || { $(as_root) apt-get update -q && apt-get download -q "$@"; } } &&
        for deb in *.deb; do dpkg-deb -x "$deb" "$hosts" || exit 1; done) >"$root/build/hosts.log" 2>&1 || {
        say "not to be had, so examples/hosts/$name is not tested: $*"
        return 0
    }
    find "$hosts/usr/lib" -name '*.pc' -exec sed -i "s,=/usr,=$hosts/usr," {} +
    rm -rf "$hosts/debs"
    : >"$hosts/$name"
}

as_root() {
    [ "$(id -u)" -eq 0 ] || echo sudo
}

# What tests/program/test_viz.sh opens pages with, 64 MB to fetch. The test is skipped where it cannot be installed.
want_browser() {
    missing=
    need chromium-headless-shell sh -c 'command -v chromium-headless-shell || command -v chromium || command -v google-chrome'
    if [ -n "$missing" ] && ! (install_missing) 2>/dev/null; then
        say "not installed, so no page is opened in a browser:$missing"
    fi
    missing=
}

install_missing() {
    [ -n "$missing" ] || return 0
    if ! command -v apt-get >/dev/null 2>&1; then
        say "missing, named as in Debian:$missing"
        exit 1
    fi
    say "installing with apt-get:$missing"
    sudo=$(as_root)
    quiet apt-update $sudo apt-get update
    # shellcheck disable=SC2086
    quiet apt-install $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y \
        --no-install-recommends $missing
    missing=
}

# build PRESET [cmake options]: everything of a preset; build_target PRESET TARGET...
# A new folder is built by ninja where it is installed: for two hundred programs make starts thousands of processes.
configure() {
    preset=$1
    shift
    [ -e "$root/build/$preset/CMakeCache.txt" ] || ! command -v ninja >/dev/null 2>&1 || set -- -G Ninja "$@"
    quiet "$preset-configure" env -C "$root" cmake --preset "$preset" "$@"
}

build() {
    preset=$1
    shift
    say "building build/$preset"
    quiet "$preset-build" env -C "$root" cmake --build --preset "$preset" -j "$cpus" "$@"
}
