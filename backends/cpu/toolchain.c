#include "backends/cpu/toolchain.h"

#include "backends/library.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

/* 19 is Debian's, and what tests run on; then newer ones, then older ones. */
const char *const dc_toolchain_llvm[] = {"libLLVM.so.19.1",
                                         "libLLVM-19.so.1",
                                         "libLLVM-19.so",
                                         "libLLVM.so.20.1",
                                         "libLLVM-20.so",
                                         "libLLVM.so.21.1",
                                         "libLLVM-21.so",
                                         "libLLVM.so.22.1",
                                         "libLLVM-22.so",
                                         "libLLVM.so.23.1",
                                         "libLLVM-23.so",
                                         "libLLVM.so.18.1",
                                         "libLLVM-18.so.1",
                                         "libLLVM-18.so",
                                         "libLLVM-17.so.1",
                                         "libLLVM-17.so",
                                         "libLLVM-16.so.1",
                                         "libLLVM-16.so",
                                         "libLLVM-15.so.1",
                                         "libLLVM-15.so",
                                         NULL};

static bool is_file(const char *path)
{
    struct stat s;
    return stat(path, &s) == 0 && S_ISREG(s.st_mode);
}

bool dc_toolchain_find_llvm(const char *wanted, char *path, size_t size)
{
    static const char *const nowhere[] = {NULL};
    if (wanted[0] == '\0')
        return dc_library_find(dc_toolchain_llvm, nowhere, path, size);
    const int n = snprintf(path, size, "%s", wanted);
    return strchr(wanted, '/') != NULL && (size_t)n < size && is_file(path);
}

bool dc_toolchain_find_program(const char *name, char *path, size_t size)
{
    const char *at = dc_opts_system("PATH");
    if (strchr(name, '/') != NULL)
        return (size_t)snprintf(path, size, "%s", name) < size && is_file(path);
    while (*at != '\0') {
        const size_t n = strcspn(at, ":");
        const int length = snprintf(path, size, "%.*s/%s", (int)n, at, name);
        if (n > 0 && length > 0 && (size_t)length < size && is_file(path))
            return true;
        at += n + (at[n] == ':');
    }
    return false;
}

void dc_toolchain_put_processor(dc_text *out)
{
#if defined(__x86_64__)
    unsigned a = 0, b = 0, c = 0, d = 0;
    __get_cpuid(1, &a, &b, &c, &d); /* b names the core we are on */
    dc_text_printf(out, "%x %x %x", a, c, d);
    for (unsigned leaf = 0; leaf < 2; leaf++) {
        a = b = c = d = 0;
        __get_cpuid_count(7, leaf, &a, &b, &c, &d);
        dc_text_printf(out, " %x %x %x %x", a, b, c, d);
    }
    a = b = c = d = 0;
    __get_cpuid(0x80000001, &a, &b, &c, &d);
    dc_text_printf(out, " %x %x\n", c, d);
#else
    dc_text_puts(out, "\n");
#endif
}
