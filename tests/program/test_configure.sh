#!/bin/sh
# The build says which package is missing: CMake where pkg-config knows no Lua.
. "$(dirname "$0")/lib.sh"

if ! command -v cmake >/dev/null; then
    skip "no cmake here"
    closing
    exit
fi
mkdir "$dir/none"
run env PKG_CONFIG_LIBDIR="$dir/none" PKG_CONFIG_PATH= cmake -S . -B "$dir/build"
check "without Lua there is no build" test "$status" -ne 0
check "the package is named" warns "apt-get install liblua5.4-dev"
closing
