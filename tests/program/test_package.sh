#!/bin/sh
# scripts/package, out of what is built here: the .debs and the tarball, unpacked in a folder and used there. Whole systems
# with them installed are scripts/package-test.
. "$(dirname "$0")/lib.sh"
build=$(cd "$(dirname "$DEEPC")" && pwd)
cc=${CC:-cc}

run scripts/package --help
check "it tells what it makes" says "libdeepc0_0.1.0-1_amd64.deb"
run scripts/package everything
check "and knows no other packages" test $status -eq 1
run scripts/package --out
check "a folder is needed" warns "--out needs a folder"
run scripts/package --build "$dir" --out "$dir" tarball
check "a folder without a build is told" warns "$dir is no build of deepc"

if nm -D "$build/libdeepc.so" | grep -q '__[at]san_init'; then
    skip "an instrumented build is not packed"
    closing
    exit
fi
if ! command -v dpkg-shlibdeps >/dev/null; then
    skip "dpkg-dev is not installed"
    closing
    exit
fi
# With an index that lacks a file, that one is as those that examples leave where they are run.
packages=$dir/packages
stranger=
if index=$(git rev-parse --git-path index 2>/dev/null) && cp "$index" "$dir/index" &&
    GIT_INDEX_FILE=$dir/index git rm -q --cached examples/fit.lua; then
    stranger=examples/fit.lua
else
    skip "the sources are in no git repository"
fi
run env ${stranger:+"GIT_INDEX_FILE=$dir/index"} scripts/package --fast --build "$build" --out "$packages" deb tarball
check "packages are made" test $status -eq 0
check "what is not in git is told" warns "${stranger:+not in git, so not packed: $stranger}"
check "their sums are right" env -C "$packages" sha256sum --quiet -c SHA256SUMS

# ---- the .debs -----------------------------------------------------------------------------------

field() { # field PACKAGE FIELD
    dpkg-deb -f "$packages/$1"_0.1.0-1_amd64.deb "$2"
}
depends() { # depends PACKAGE TEXT
    field "$1" "${3:-Depends}" | grep -qF "$2"
}
for package in deepc libdeepc0 libdeepc-dev lua-deepc; do
    run dpkg-deb -x "$packages/${package}_0.1.0-1_amd64.deb" "$dir/root"
    check "$package can be unpacked" test $status -eq 0
    check "$package has a copyright" test -s "$dir/root/usr/share/doc/$package/copyright"
    check "$package has a changelog" test -s "$dir/root/usr/share/doc/$package/changelog.Debian.gz"
done
check "the program needs the C library" depends deepc "libc6 (>= "
check "and no Lua" sh -c "! dpkg-deb -f '$packages/deepc_0.1.0-1_amd64.deb' Depends | grep -q lua"
check "LLVM is recommended" depends deepc "libllvm19 | " Recommends
check "the module needs the library of its version" depends lua-deepc "libdeepc0 (= 0.1.0-1)"
check "so do the files to build with" depends libdeepc-dev "libdeepc0 (= 0.1.0-1)"
check "the editors' script can be run" test -x "$dir/root/usr/share/deepc/editors/vscode/pack"
check "Lua's copyright is there" grep -q 'Lua.org, PUC-Rio' "$dir/root/usr/share/doc/deepc/copyright"
check "it is in none" test -z "$stranger" -o ! -e "$dir/root/usr/share/doc/deepc/examples/fit.lua"
check "the others are" test -e "$dir/root/usr/share/doc/deepc/examples/gpt.lua"
lib=$(dirname "$(find "$dir/root" -name libdeepc.so)")
check "what is left over is in no package" test "$(find "$lib" -name 'deepc.so')" = "$lib/lua/5.4/deepc.so"

run env -C / "$dir/root/usr/bin/deepc" -e 'print(require("deepc").ones("f32[3]"):sum())'
check "the program runs" says 3.0
if command -v lua5.4 >/dev/null; then
    run env -C / -u LUA_INIT LUA_CPATH="$lib/lua/5.4/?.so" lua5.4 -e 'print(require("deepc").ones("f32[3]"):sum())'
    check "lua5.4 has the module" says 3.0
else
    skip "lua5.4 is not installed"
fi
"$dir/root/usr/bin/deepc" "$dir/root/usr/share/doc/deepc/examples/embed/policy.lua" "$dir/policy.dcfn"
run sh -c "export PKG_CONFIG_PATH='$lib/pkgconfig'; $cc '$dir/root/usr/share/doc/libdeepc-dev/examples/run_host.c' \
    -o '$dir/run_host' \$(pkg-config --cflags --libs deepc) -Wl,-rpath,'$lib'"
check "a host is built" test $status -eq 0
run "$dir/run_host" "$dir/policy.dcfn"
check "and runs" says "0.90  0.90  inside: 0.0"

# ---- the tarball ---------------------------------------------------------------------------------

mkdir "$dir/any where"
run tar -xzf "$packages/deepc-0.1.0-linux-x86_64.tar.gz" -C "$dir/any where"
there="$dir/any where/deepc-0.1.0-linux-x86_64"
run env -C / "$there/bin/deepc" -e 'print(require("deepc").ones("f32[3]"):sum())'
check "the program runs anywhere" says 3.0
if command -v lua5.4 >/dev/null; then
    module=$(find "$there" -name deepc.so)
    run env -C / -u LUA_INIT LUA_CPATH="${module%/*}/?.so" lua5.4 -e 'print(require("deepc").ones("f32[3]"):sum())'
    check "so does the module" says 3.0
fi
for notice in LICENSE NOTICE; do
    check "$notice is in it" test -s "$there/$notice"
done
check "the editors' script can be run" test -x "$there/share/deepc/editors/vscode/pack"
run scripts/package --out "$packages" rock
check "sums are those of all packages that are there" test "$(wc -l <"$packages/SHA256SUMS")" -eq 6
check "and right" env -C "$packages" sha256sum --quiet -c SHA256SUMS
check "its files are nobody's" sh -c "! tar -tvzf '$packages/deepc-0.1.0-linux-x86_64.tar.gz' | grep -v ' 0/0 '"
closing
