# Turns files into one C file with their bytes:
#
#   cmake -DROOT=stdlib -DLIST=file -DOUT=stdlib.c -DSYMBOL=dc_stdlib_modules -DKIND=modules -P scripts/embed.cmake
#
# LIST holds the paths below ROOT, separated by semicolons. KIND: modules (in Lua; interface: dsl/stdlib.h), pages (about
# errors; vm/program/pages.h), viz (files of a page; extras/viz/viz_files.h). A module's name comes from its path: nn.lua
# and nn/init.lua are deepc.nn, nn/conv.lua is deepc.nn.conv. A page is called as its file is. Behind the last row of the
# array SYMBOL stands one of zeros.
file(READ "${LIST}" files)
set(arrays "#pragma GCC diagnostic ignored \"-Woverlength-strings\"\n")
set(rows "")
set(count 0)
foreach(path IN LISTS files)
    file(SIZE "${ROOT}/${path}" size)
    file(READ "${ROOT}/${path}" text)
    string(LENGTH "${text}" length)
    if(NOT length EQUAL size) # a zero byte
        message(FATAL_ERROR "${ROOT}/${path} is no text")
    endif()
    # One line of the file, one line of C. Two question marks could begin a trigraph.
    string(REPLACE "\\" "\\\\" text "${text}")
    string(REPLACE "\"" "\\\"" text "${text}")
    string(REPLACE "?" "\\?" text "${text}")
    string(REPLACE "\n" "\\n\"\n\"" text "${text}")
    string(REGEX REPLACE "\\.(lua|md)$" "" name "${path}")
    set(array "text_${count}")
    if(KIND STREQUAL "modules")
        string(REGEX REPLACE "/init$" "" name "${name}")
        string(REPLACE "/" "." name "deepc.${name}")
        set(row "\"${name}\", \"=deepc/${path}\", ${array}")
    else()
        set(row "\"${name}\", (const char *)${array}")
    endif()
    string(APPEND arrays "static const unsigned char ${array}[] =\n\"${text}\";\n\n")
    string(APPEND rows "    {${row}, ${size}},\n")
    math(EXPR count "${count} + 1")
endforeach()
set(type_modules "dsl/stdlib.h" "dc_stdlib_module" "{0, 0, 0, 0}")
set(type_pages "vm/program/pages.h" "dc_page" "{0, 0, 0}")
set(type_viz "extras/viz/viz_files.h" "dc_viz_file" "{0, 0, 0}")
list(GET type_${KIND} 0 header)
list(GET type_${KIND} 1 struct)
list(GET type_${KIND} 2 zeros)
file(WRITE "${OUT}" "/* Made by scripts/embed.cmake. */
#include \"${header}\"

extern const struct ${struct} ${SYMBOL}[];
${arrays}const struct ${struct} ${SYMBOL}[] = {
${rows}    ${zeros},
};
")
