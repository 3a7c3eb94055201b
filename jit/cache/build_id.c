/* The note NT_GNU_BUILD_ID of the program or library that this code is in (jit/cache/build_id.h). */
#define _GNU_SOURCE /* dl_iterate_phdr */
#include "jit/cache/build_id.h"

#include <elf.h>
#include <link.h>
#include <string.h>

typedef struct search {
    dc_text *out;
    bool found;
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
static bool put_note(const char *at, size_t n, dc_text *out)
{
    ElfW(Nhdr) h;
    while (n >= sizeof h) {
        memcpy(&h, at, sizeof h);
        const size_t name = sizeof h, bytes = name + dc_align_up(h.n_namesz, 4);
        const size_t end = bytes + dc_align_up(h.n_descsz, 4);
        if (end > n)
            return false;
        if (h.n_type == NT_GNU_BUILD_ID && h.n_namesz == 4 && memcmp(at + name, "GNU", 4) == 0) {
            for (size_t i = 0; i < h.n_descsz; i++)
                dc_text_printf(out, "%02x", (unsigned char)at[bytes + i]);
            return h.n_descsz > 0;
        }
        at += end;
        n -= end;
    }
    return false;
}

static int see(struct dl_phdr_info *o, size_t size, void *arg)
{
    search *s = arg;
    DC_UNUSED(size);
    if (!contains(o, (uintptr_t)&here))
        return 0;
    for (int i = 0; i < o->dlpi_phnum && !s->found; i++) {
        const ElfW(Phdr) *h = &o->dlpi_phdr[i];
        if (h->p_type == PT_NOTE)
            s->found = put_note((const char *)(o->dlpi_addr + h->p_vaddr), h->p_memsz, s->out);
    }
    return 1;
}

bool dc_build_id_put(dc_text *out)
{
    search s = {.out = out};
    dl_iterate_phdr(see, &s);
    return s.found;
}
