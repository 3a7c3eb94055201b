#define _GNU_SOURCE /* dlinfo */
#include "backends/library.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static bool is_file(const char *path)
{
    struct stat s;
    return stat(path, &s) == 0 && S_ISREG(s.st_mode);
}

static bool is_in(const char *folder, const char *name, char *path, size_t size)
{
    const int n = snprintf(path, size, "%s/%s", folder, name);
    return n > 0 && (size_t)n < size && is_file(path);
}

/* The folders of the loader; NULL: they are not to be had. `room` keeps them. */
static const Dl_serinfo *loader_folders(char *room, size_t size)
{
    Dl_serinfo *dirs = (Dl_serinfo *)(void *)room;
    void *self = dlopen(NULL, RTLD_LAZY);
    if (self == NULL)
        return NULL;
    const bool known = dlinfo(self, RTLD_DI_SERINFOSIZE, dirs) == 0 && dirs->dls_size <= size &&
                       dlinfo(self, RTLD_DI_SERINFO, dirs) == 0;
    dlclose(self);
    return known ? dirs : NULL;
}

bool dc_library_find(const char *const *name, const char *const *folder, char *path, size_t size)
{
    _Alignas(Dl_serinfo) char room[4096];
    const Dl_serinfo *dirs = loader_folders(room, sizeof room);
    for (size_t i = 0; name[i] != NULL; i++) {
        for (unsigned k = 0; dirs != NULL && k < dirs->dls_cnt; k++)
            if (is_in(dirs->dls_serpath[k].dls_name, name[i], path, size))
                return true;
        for (size_t k = 0; folder[k] != NULL; k++)
            if (is_in(folder[k], name[i], path, size))
                return true;
    }
    return false;
}

bool dc_library_put_id(const char *path, dc_text *out)
{
    struct stat s;
    if (stat(path, &s) != 0)
        return false;
    dc_text_printf(out, "%s %" PRId64 " %" PRId64 ".%09ld\n", path, (int64_t)s.st_size,
                   (int64_t)s.st_mtim.tv_sec, s.st_mtim.tv_nsec);
    return true;
}

void *dc_library_open(const char *name, int flags, char *why, size_t size)
{
    void *handle = dlopen(name, RTLD_LOCAL | flags);
    const char *text = handle == NULL ? dlerror() : NULL;
    if (handle == NULL)
        snprintf(why, size, "%s", text != NULL ? text : name);
    return handle;
}

void dc_library_close(void **handle)
{
    if (*handle != NULL)
        dlclose(*handle);
    *handle = NULL;
}

const char *dc_library_resolve(void *handle, const dc_library_symbol *symbol, size_t n, void *table)
{
    const char *missing = NULL;
    for (size_t i = 0; i < n; i++) {
        void *p = dlsym(handle, symbol[i].name);
        memcpy((char *)table + symbol[i].offset, &p, sizeof p);
        if (p == NULL && !symbol[i].optional && missing == NULL)
            missing = symbol[i].name;
    }
    return missing;
}
