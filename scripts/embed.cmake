# Turns the Lua files of stdlib/ into one C file with their bytes (interface: dsl/stdlib.h).
#
#   cmake -DROOT=stdlib -DLIST=file -DOUT=stdlib.c -P scripts/embed.cmake
#
# LIST holds the paths below ROOT, separated by semicolons. The module's name comes from the path:
# nn.lua and nn/init.lua are deepc.nn, nn/conv.lua is deepc.nn.conv.
file(READ "${LIST}" files)
set(arrays "")
set(rows "")
set(count 0)
foreach(path IN LISTS files)
    file(READ "${ROOT}/${path}" hex HEX)
    string(LENGTH "${hex}" digits)
    math(EXPR size "${digits} / 2")
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
    string(REPLACE "0x0a," "0x0a,\n" bytes "${bytes}") # one line of Lua, one line of C
    string(REGEX REPLACE "\\.lua$" "" module "${path}")
    string(REGEX REPLACE "/init$" "" module "${module}")
    string(REPLACE "/" "." module "deepc.${module}")
    string(APPEND arrays "static const unsigned char text_${count}[] = {\n${bytes}0x00};\n\n")
    string(APPEND rows "    {\"${module}\", \"=deepc/${path}\", text_${count}, ${size}},\n")
    math(EXPR count "${count} + 1")
endforeach()
file(WRITE "${OUT}" "/* Made by scripts/embed.cmake from stdlib/. */
#include \"dsl/stdlib.h\"

${arrays}const struct dc_stdlib_module dc_stdlib_modules[] = {
${rows}    {0, 0, 0, 0},
};
const size_t dc_stdlib_count = ${count};
")
