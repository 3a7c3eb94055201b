/*
 * A cubin is an ELF file of 64 bits. Section .text.NAME is the code of a kernel, .nv.shared.NAME its arrays in shared
 * memory, .nv.info a list of attributes, of which some name a symbol, that of a kernel, and a number: its
 * registers, the bytes of its stack.
 */
#include "tests/cuda/cubin.h"

#include <elf.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum {
    FORMAT_NONE = 1,
    FORMAT_BYTE,
    FORMAT_HALF,
    FORMAT_SIZED, /* the two bytes after the attribute are a size, the value follows */
    FRAME_SIZE = 0x11,
    REGISTERS = 0x2f,
    RESERVED = 1024 /* bytes of shared memory that each block takes from sm_80 on */
};

typedef struct image {
    const unsigned char *at;
    size_t n;
    Elf64_Ehdr head;
} image;

static bool get(const image *x, uint64_t from, void *out, size_t n)
{
    if (from > x->n || n > x->n - from)
        return false;
    memcpy(out, x->at + from, n);
    return true;
}

static bool section(const image *x, unsigned i, Elf64_Shdr *out)
{
    return i < x->head.e_shnum && x->head.e_shoff < x->n &&
           get(x, x->head.e_shoff + (uint64_t)i * sizeof *out, out, sizeof *out);
}

/* Is the text at `offset` of a table of names `name`? */
static bool named(const image *x, const Elf64_Shdr *names, uint64_t offset, const char *name)
{
    const size_t n = strlen(name) + 1;
    return names->sh_offset < x->n && offset < x->n && names->sh_offset + offset < x->n &&
           n <= x->n - (names->sh_offset + offset) &&
           memcmp(x->at + names->sh_offset + offset, name, n) == 0;
}

static bool section_named(const image *x, const char *prefix, const char *name, Elf64_Shdr *out)
{
    char whole[256];
    Elf64_Shdr names;
    if ((size_t)snprintf(whole, sizeof whole, "%s%s", prefix, name) >= sizeof whole ||
        !section(x, x->head.e_shstrndx, &names))
        return false;
    for (unsigned i = 1; section(x, i, out); i++)
        if (named(x, &names, out->sh_name, whole))
            return true;
    return false;
}

/* Is symbol number `i` the kernel? */
static bool symbol_is(const image *x, uint32_t i, const char *name)
{
    Elf64_Shdr symbols, names;
    Elf64_Sym s;
    return section_named(x, ".symtab", "", &symbols) && section(x, symbols.sh_link, &names) &&
           symbols.sh_offset < x->n &&
           get(x, symbols.sh_offset + (uint64_t)i * sizeof s, &s, sizeof s) &&
           named(x, &names, s.st_name, name);
}

/* An attribute of the kernel, among those that stand for the whole image. */
static bool attribute(const image *x, unsigned which, const char *name, uint32_t *out)
{
    Elf64_Shdr info;
    if (!section_named(x, ".nv.info", "", &info) || info.sh_offset > x->n ||
        info.sh_size > x->n - info.sh_offset)
        return false;
    const uint64_t end = info.sh_offset + info.sh_size;
    uint64_t at = info.sh_offset;
    for (unsigned char head[4]; at + sizeof head <= end && get(x, at, head, sizeof head);) {
        const unsigned size = head[0] == FORMAT_SIZED ? head[2] | head[3] << 8 : 0;
        uint32_t value[2];
        if (head[0] < FORMAT_NONE || head[0] > FORMAT_SIZED)
            return false;
        if (head[0] == FORMAT_SIZED && head[1] == which && size >= sizeof value &&
            get(x, at + 4, value, sizeof value) && symbol_is(x, value[0], name)) {
            *out = value[1];
            return true;
        }
        at += sizeof head + size;
    }
    return false;
}

bool cubin_find(const void *bytes, size_t n, const char *name, cubin_kernel *out)
{
    image x = {.at = bytes, .n = n};
    Elf64_Shdr text, shared, reserved;
    uint32_t registers, frame;
    if (!get(&x, 0, &x.head, sizeof x.head) || memcmp(x.head.e_ident, ELFMAG, SELFMAG) != 0 ||
        x.head.e_ident[EI_CLASS] != ELFCLASS64 || x.head.e_shentsize != sizeof text ||
        !section_named(&x, ".text.", name, &text) || !attribute(&x, REGISTERS, name, &registers) ||
        !attribute(&x, FRAME_SIZE, name, &frame))
        return false;
    out->registers = (int)registers;
    out->local = frame;
    out->shared = section_named(&x, ".nv.shared.", name, &shared) ? shared.sh_size : 0;
    /* From sm_90 on the section begins with what is reserved. */
    if (out->shared >= RESERVED && section_named(&x, ".nv.shared.reserved.0", "", &reserved))
        out->shared -= RESERVED;
    return true;
}

/* Multiprocessors ------------------------------------------------------------------------------- */

typedef struct machine {
    int sm, warps, blocks;
    size_t shared;
} machine;

static const machine machines[] = {
    {70, 64, 32, 96 << 10},  {75, 32, 16, 64 << 10},  {80, 64, 32, 164 << 10},
    {86, 48, 16, 100 << 10}, {89, 48, 24, 100 << 10}, {90, 64, 32, 228 << 10},
};

static const machine *machine_of(int sm)
{
    const machine *m = machines;
    for (size_t i = 0; i < sizeof machines / sizeof *machines; i++)
        if (machines[i].sm <= sm)
            m = &machines[i];
    return m;
}

int cubin_warps(int sm)
{
    return machine_of(sm)->warps;
}

static size_t rounded(size_t n, size_t unit)
{
    return (n + unit - 1) / unit * unit;
}

int cubin_blocks(int sm, const cubin_kernel *k, int threads, size_t dynamic)
{
    enum { LANES = 32, FILE_SIZE = 65536, REGISTER_UNIT = 256, SHARED_UNIT = 128, PARTS = 4 };
    const machine *m = machine_of(sm);
    const int warps = (threads + LANES - 1) / LANES;
    int most = m->blocks;
    if (m->warps / warps < most)
        most = m->warps / warps;
    if (k->registers > 0) { /* each of four parts has its own registers */
        const int each = (int)rounded((size_t)k->registers * LANES, REGISTER_UNIT);
        const int fit = FILE_SIZE / PARTS / each * PARTS / warps;
        most = fit < most ? fit : most;
    }
    const size_t shared =
        rounded(k->shared + dynamic + (sm >= 80 ? (size_t)RESERVED : 0), SHARED_UNIT);
    if (shared > 0 && (int)(m->shared / shared) < most)
        most = (int)(m->shared / shared);
    return most;
}
