/* The note NT_GNU_BUILD_ID of the program or library that this code is in (jit/cache/build_id.h). */
#define _GNU_SOURCE /* dl_iterate_phdr */
#include "jit/cache/build_id.h"

#include <elf.h>
#include <link.h>
#include <string.h>

/* The loader holds a lock while it is searched, so that nothing there may unwind: what is found is printed afterwards. */
typedef struct search {
    const unsigned char *id;
    size_t bytes; /* 0: none */
} search;

static const char here = 0; /* an address inside */

static bool contains(const struct dl_phdr_info *o, uintptr_t address)
{
    for (int i = 0; i < o->dlpi_phnum; i++) {
        const ElfW(Phdr) *h = &o->dlpi_phdr[i];
        if (h->p_type == PT_LOAD && address - o->dlpi_addr - h->p_vaddr < h->p_memsz)
            return true;
    }
    return false;
}

/* Notes are a header, a name and bytes, each part from a multiple of four. */
static void find_id(const char *at, size_t n, search *s)
{
    ElfW(Nhdr) h;
    while (n >= sizeof h) {
        memcpy(&h, at, sizeof h);
        const size_t name = sizeof h, bytes = name + dc_align_up(h.n_namesz, 4);
        const size_t end = bytes + dc_align_up(h.n_descsz, 4);
        if (end > n)
            return;
        if (h.n_type == NT_GNU_BUILD_ID && h.n_namesz == 4 && memcmp(at + name, "GNU", 4) == 0) {
            *s = (search){(const unsigned char *)at + bytes, h.n_descsz};
            return;
        }
        at += end;
        n -= end;
    }
}

static int see(struct dl_phdr_info *o, size_t size, void *arg)
{
    search *s = arg;
    DC_UNUSED(size);
    if (!contains(o, (uintptr_t)&here))
        return 0;
    for (int i = 0; i < o->dlpi_phnum && s->bytes == 0; i++) {
        const ElfW(Phdr) *h = &o->dlpi_phdr[i];
        if (h->p_type == PT_NOTE)
            find_id((const char *)(o->dlpi_addr + h->p_vaddr), h->p_memsz, s);
    }
    return 1;
}

bool dc_build_id_put(dc_text *out)
{
    search s = {0};
    dl_iterate_phdr(see, &s);
    for (size_t i = 0; i < s.bytes; i++)
        dc_text_printf(out, "%02x", s.id[i]);
    return s.bytes > 0;
}
