#define _GNU_SOURCE /* dlinfo */
#include "backends/cpu/toolchain.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <link.h>
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

/* DIR/NAME, the first DIR of the list that has it. */
static bool find_in(const Dl_serinfo *dirs, const char *name, char *path, size_t size)
{
    for (unsigned i = 0; i < dirs->dls_cnt; i++) {
        const int n = snprintf(path, size, "%s/%s", dirs->dls_serpath[i].dls_name, name);
        if (n > 0 && (size_t)n < size && is_file(path))
            return true;
    }
    return false;
}

/* Where the loader looks, but for what /etc/ld.so.conf adds. */
static bool find_library(char *path, size_t size)
{
    _Alignas(Dl_serinfo) char room[4096];
    Dl_serinfo *dirs = (Dl_serinfo *)(void *)room;
    bool found = false;
    void *self = dlopen(NULL, RTLD_LAZY);
    if (self == NULL)
        return false;
    if (dlinfo(self, RTLD_DI_SERINFOSIZE, dirs) == 0 && dirs->dls_size <= sizeof room &&
        dlinfo(self, RTLD_DI_SERINFO, dirs) == 0)
        for (size_t i = 0; dc_toolchain_llvm[i] != NULL && !found; i++)
            found = find_in(dirs, dc_toolchain_llvm[i], path, size);
    dlclose(self);
    return found;
}

bool dc_toolchain_find_llvm(const char *wanted, char *path, size_t size)
{
    if (wanted[0] == '\0')
        return find_library(path, size);
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

bool dc_toolchain_put(const char *path, dc_text *out)
{
    struct stat s;
    if (stat(path, &s) != 0)
        return false;
    dc_text_printf(out, "%s %" PRId64 " %" PRId64 ".%09ld\n", path, (int64_t)s.st_size,
                   (int64_t)s.st_mtim.tv_sec, s.st_mtim.tv_nsec);
    return true;
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
