# Turns files into one C file with their bytes: the Lua files of stdlib/ (interface: dsl/stdlib.h),
# with -DPAGES=1 the pages about errors of docs/errors/ (interface: vm/program/pages.h), with -DVIZ=1 the files of
# viz/ (interface: dsl/modules/viz_files.h).
#
#   cmake -DROOT=stdlib -DLIST=file -DOUT=stdlib.c [-DPAGES=1|-DVIZ=1] -P scripts/embed.cmake
#
# LIST holds the paths below ROOT, separated by semicolons. A module's name comes from its path:
# nn.lua and nn/init.lua are deepc.nn, nn/conv.lua is deepc.nn.conv. A page is called as its file is.
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
    string(REGEX REPLACE "\\.(lua|md)$" "" module "${path}")
    string(REGEX REPLACE "/init$" "" module "${module}")
    string(REPLACE "/" "." module "deepc.${module}")
    if(PAGES)
        string(REGEX REPLACE "^deepc\\." "" module "${module}")
    endif()
    string(APPEND arrays "static const unsigned char text_${count}[] =\n\"${text}\";\n\n")
    if(PAGES)
        string(APPEND rows "    {\"${module}\", (const char *)text_${count}, ${size}},\n")
    elseif(VIZ)
        string(APPEND rows "    {\"${path}\", (const char *)text_${count}, ${size}},\n")
    else()
        string(APPEND rows "    {\"${module}\", \"=deepc/${path}\", text_${count}, ${size}},\n")
    endif()
    math(EXPR count "${count} + 1")
endforeach()
if(PAGES)
    file(WRITE "${OUT}" "/* Made by scripts/embed.cmake from docs/errors/. */
#include \"vm/program/pages.h\"

${arrays}const struct dc_page dc_pages[] = {
${rows}    {0, 0, 0},
};
const size_t dc_pages_count = ${count};
")
    return()
endif()
if(VIZ)
    file(WRITE "${OUT}" "/* Made by scripts/embed.cmake from viz/. */
#include \"dsl/modules/viz_files.h\"

${arrays}const struct dc_viz_file dc_viz_files[] = {
${rows}    {0, 0, 0},
};
const size_t dc_viz_file_count = ${count};
")
    return()
endif()
file(WRITE "${OUT}" "/* Made by scripts/embed.cmake from stdlib/. */
#include \"dsl/stdlib.h\"

${arrays}const struct dc_stdlib_module dc_stdlib_modules[] = {
${rows}    {0, 0, 0, 0},
};
const size_t dc_stdlib_count = ${count};
")
