#define _GNU_SOURCE /* MAP_ANONYMOUS */
#include "backends/cpu/loader.h"

#include <elf.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/*
 * The mapping, each part from a page border:
 *
 *   TEXT    executable sections, then stubs: a jump through the table below for each outside
 *           function that is called
 *   CONST   read-only sections, then the table of addresses (8 bytes per symbol that needs one)
 *   DATA    writable sections
 */
typedef enum part { TEXT, CONST, DATA, NPART } part;

enum { MAX_PART = 1 << 28, MAX_ALIGN = 4096, STUB = 8, SLOT = 8 };

static const int protection[NPART] = {
    [TEXT] = PROT_READ | PROT_EXEC, [CONST] = PROT_READ, [DATA] = PROT_READ | PROT_WRITE};

typedef void (*function)(void);

/*
 * What generated code may call: block operations LLVM forms from loops, rounding and multiply-add on
 * machines that have no instruction for them, the larger and the smaller of two f16 that it knows to
 * be numbers.
 */
static const struct outside {
    const char *name;
    function address;
} outsides[] = {
    {"memset", (function)memset},
    {"memcpy", (function)memcpy},
    {"memmove", (function)memmove},
    {"memcmp", (function)memcmp},
    {"floorf", (function)floorf},
    {"ceilf", (function)ceilf},
    {"truncf", (function)truncf},
    {"rintf", (function)rintf},
    {"nearbyintf", (function)nearbyintf},
    {"roundf", (function)roundf},
    {"fmaf", (function)fmaf},
    {"fmodf", (function)fmodf},
    {"fmaxf", (function)fmaxf},
    {"fminf", (function)fminf},
    {"floor", (function)floor},
    {"ceil", (function)ceil},
    {"trunc", (function)trunc},
    {"rint", (function)rint},
    {"fma", (function)fma},
    {"fmod", (function)fmod},
    {"fmax", (function)fmax},
    {"fmin", (function)fmin},
};

/* A section of the object that goes into the image. */
typedef struct placed {
    bool loaded;
    part part;
    size_t at; /* in the image, once laid out */
} placed;

/* A symbol that instructions reach through memory of ours. */
typedef struct linkage {
    bool slot, stub;
    size_t slot_at, stub_at;
} linkage;

typedef struct loading {
    dc_job *j;
    const unsigned char *object;
    size_t bytes;
    uint32_t nsection, nsymbol, strings; /* strings: section of the symbols' names */
    const Elf64_Shdr *section;           /* copies: the object may lie at any address */
    const Elf64_Sym *symbol;
    placed *place; /* per section */
    linkage *link; /* per symbol */
    size_t end[NPART], start[NPART];
    unsigned char *base;
} loading;

static dc_status damaged(const loading *l, const char *what)
{
    return dc_failf(l->j, DC_ERR_BUILD, "cpu", "the object of a kernel is damaged: %s", what);
}

static bool inside(size_t offset, size_t n, size_t bytes)
{
    return offset <= bytes && n <= bytes - offset;
}

/* A terminated name of string table `table`, or NULL. */
static const char *name_at(const loading *l, uint32_t table, uint32_t offset)
{
    const Elf64_Shdr *s = &l->section[table];
    if (s->sh_type != SHT_STRTAB || offset >= s->sh_size)
        return NULL;
    const char *name = (const char *)l->object + s->sh_offset + offset;
    return memchr(name, '\0', s->sh_size - offset) != NULL ? name : NULL;
}

/* --- reading the tables ------------------------------------------------------------------- */

static dc_status read_header(loading *l, Elf64_Ehdr *h)
{
    if (l->bytes < sizeof *h)
        return damaged(l, "it ends within its header");
    memcpy(h, l->object, sizeof *h);
    if (memcmp(h->e_ident, ELFMAG, SELFMAG) != 0)
        return damaged(l, "it is not ELF");
    if (h->e_ident[EI_CLASS] != ELFCLASS64 || h->e_ident[EI_DATA] != ELFDATA2LSB ||
        h->e_machine != EM_X86_64 || h->e_type != ET_REL)
        return damaged(l, "it is not a relocatable object for x86-64");
    if (h->e_shentsize != sizeof(Elf64_Shdr) || h->e_shnum == 0 ||
        !inside(h->e_shoff, (size_t)h->e_shnum * sizeof(Elf64_Shdr), l->bytes))
        return damaged(l, "its section table lies outside");
    if (h->e_shstrndx >= h->e_shnum)
        return damaged(l, "its sections have no names");
    return DC_OK;
}

static dc_status read_sections(loading *l, const Elf64_Ehdr *h)
{
    Elf64_Shdr *section = DC_NEW_ARRAY(&l->j->scratch, Elf64_Shdr, h->e_shnum);
    memcpy(section, l->object + h->e_shoff, h->e_shnum * sizeof *section);
    for (uint32_t i = 0; i < h->e_shnum; i++) {
        const Elf64_Shdr *s = &section[i];
        if (s->sh_type != SHT_NULL && s->sh_type != SHT_NOBITS &&
            !inside(s->sh_offset, s->sh_size, l->bytes))
            return damaged(l, "a section lies outside");
    }
    l->section = section;
    l->nsection = h->e_shnum;
    l->place = DC_NEW_ARRAY(&l->j->scratch, placed, h->e_shnum);
    return DC_OK;
}

static dc_status read_symbols(loading *l)
{
    const Elf64_Shdr *table = NULL;
    for (uint32_t i = 0; i < l->nsection; i++)
        if (l->section[i].sh_type == SHT_SYMTAB) {
            if (table != NULL)
                return damaged(l, "it has two symbol tables");
            table = &l->section[i];
        }
    if (table == NULL || table->sh_entsize != sizeof(Elf64_Sym) ||
        table->sh_size % sizeof(Elf64_Sym) != 0 || table->sh_link >= l->nsection)
        return damaged(l, "it has no symbol table");
    l->nsymbol = (uint32_t)(table->sh_size / sizeof(Elf64_Sym));
    l->strings = table->sh_link;
    Elf64_Sym *symbol = DC_NEW_ARRAY(&l->j->scratch, Elf64_Sym, l->nsymbol);
    memcpy(symbol, l->object + table->sh_offset, table->sh_size);
    l->symbol = symbol;
    l->link = DC_NEW_ARRAY(&l->j->scratch, linkage, l->nsymbol);
    return DC_OK;
}

/* --- layout ------------------------------------------------------------------------------- */

/* Kernels are never unwound through, so .eh_frame and its relocations stay behind. */
static bool wanted(const Elf64_Shdr *s, const char *name)
{
    return (s->sh_flags & SHF_ALLOC) != 0 && s->sh_size > 0 && s->sh_type != SHT_X86_64_UNWIND &&
           strcmp(name, ".eh_frame") != 0;
}

static part part_of(const Elf64_Shdr *s, const char *name)
{
    if ((s->sh_flags & SHF_EXECINSTR) != 0)
        return TEXT;
    if ((s->sh_flags & SHF_WRITE) == 0 || strncmp(name, ".data.rel.ro", 12) == 0)
        return CONST;
    return DATA;
}

/* Reserves `n` bytes at the end of a part; false when the image gets too large. */
static bool reserve_part(loading *l, part p, size_t n, size_t align, size_t *at)
{
    const size_t from = dc_align_up(l->end[p], align);
    if (n > MAX_PART || from > MAX_PART - n)
        return false;
    *at = from;
    l->end[p] = from + n;
    return true;
}

static dc_status place_sections(loading *l, uint32_t names)
{
    for (uint32_t i = 0; i < l->nsection; i++) {
        const Elf64_Shdr *s = &l->section[i];
        if ((s->sh_flags & SHF_ALLOC) == 0)
            continue;
        const char *name = name_at(l, names, s->sh_name);
        if (name == NULL)
            return damaged(l, "a section has no name");
        if (!wanted(s, name))
            continue;
        const size_t align = s->sh_addralign > 0 ? s->sh_addralign : 1;
        if ((s->sh_type != SHT_PROGBITS && s->sh_type != SHT_NOBITS) ||
            (s->sh_flags & SHF_TLS) != 0 ||
            (s->sh_flags & SHF_EXECINSTR && s->sh_flags & SHF_WRITE))
            return damaged(l, "a section is of an unknown kind");
        placed *p = &l->place[i];
        p->part = part_of(s, name);
        p->loaded = true;
        if (align > MAX_ALIGN || (align & (align - 1)) != 0 ||
            !reserve_part(l, p->part, s->sh_size, align, &p->at))
            return damaged(l, "a section is too large");
    }
    return DC_OK;
}

/* --- relocations -------------------------------------------------------------------------- */

/* Bytes a relocation writes; 0 for kinds that kernels have no use for. */
static size_t width_of(uint32_t type)
{
    switch (type) {
    case R_X86_64_64:
    case R_X86_64_PC64:
        return 8;
    case R_X86_64_PC32:
    case R_X86_64_PLT32:
    case R_X86_64_32:
    case R_X86_64_32S:
    case R_X86_64_GOTPCREL:
    case R_X86_64_GOTPCRELX:
    case R_X86_64_REX_GOTPCRELX:
        return 4;
    default:
        return 0;
    }
}

static bool through_slot(uint32_t type)
{
    return type == R_X86_64_GOTPCREL || type == R_X86_64_GOTPCRELX ||
           type == R_X86_64_REX_GOTPCRELX;
}

static function find_outside(const loading *l, const Elf64_Sym *s)
{
    const char *name = name_at(l, l->strings, s->st_name);
    for (size_t i = 0; name != NULL && i < DC_COUNTOF(outsides); i++)
        if (strcmp(name, outsides[i].name) == 0)
            return outsides[i].address;
    return NULL;
}

static dc_status check_symbol(const loading *l, const Elf64_Sym *s)
{
    if (s->st_shndx == SHN_UNDEF) {
        if (find_outside(l, s) != NULL)
            return DC_OK;
        const char *name = name_at(l, l->strings, s->st_name);
        return dc_failf(l->j, DC_ERR_BUILD, "cpu", "a kernel needs '%.60s', which is not there",
                        name != NULL ? name : "");
    }
    if (s->st_shndx >= l->nsection || !l->place[s->st_shndx].loaded)
        return damaged(l, "a symbol has no section");
    if (s->st_value > l->section[s->st_shndx].sh_size)
        return damaged(l, "a symbol lies outside its section");
    return DC_OK;
}

/* First walk: everything a relocation refers to is there, and gets the slot or stub it needs. */
static dc_status scan_one(loading *l, const Elf64_Shdr *target, const Elf64_Rela *r)
{
    const uint32_t type = ELF64_R_TYPE(r->r_info), at = ELF64_R_SYM(r->r_info);
    const size_t width = width_of(type);
    if (type == R_X86_64_NONE)
        return DC_OK;
    if (width == 0)
        return dc_failf(l->j, DC_ERR_BUILD, "cpu", "relocation %u of a kernel is unknown", type);
    if (at >= l->nsymbol || !inside(r->r_offset, width, target->sh_size))
        return damaged(l, "a relocation lies outside");
    const Elf64_Sym *s = &l->symbol[at];
    DC_TRY(check_symbol(l, s));
    linkage *k = &l->link[at];
    const bool far = s->st_shndx == SHN_UNDEF && type != R_X86_64_64;
    if ((through_slot(type) || far) && !k->slot) {
        k->slot = true;
        if (!reserve_part(l, CONST, SLOT, SLOT, &k->slot_at))
            return damaged(l, "it is too large");
    }
    if (far && !through_slot(type) && !k->stub) {
        k->stub = true;
        if (!reserve_part(l, TEXT, STUB, STUB, &k->stub_at))
            return damaged(l, "it is too large");
    }
    return DC_OK;
}

/* Where a symbol of the object ended up. */
static unsigned char *home_of(const loading *l, const Elf64_Sym *s)
{
    const placed *p = &l->place[s->st_shndx];
    return l->base + l->start[p->part] + p->at + s->st_value;
}

static uint64_t address_of(const loading *l, const Elf64_Sym *s)
{
    if (s->st_shndx == SHN_UNDEF)
        return (uint64_t)(uintptr_t)find_outside(l, s);
    return (uint64_t)(uintptr_t)home_of(l, s);
}

static bool fits_signed(uint64_t v)
{
    return v + 0x80000000u <= 0xffffffffu;
}

/* Second walk, after the copy: S + A - P of the ABI, where S may be a slot or a stub. */
static dc_status apply_one(loading *l, const placed *target, const Elf64_Rela *r)
{
    const uint32_t type = ELF64_R_TYPE(r->r_info);
    if (type == R_X86_64_NONE)
        return DC_OK;
    const uint32_t at = (uint32_t)ELF64_R_SYM(r->r_info);
    const linkage *k = &l->link[at];
    unsigned char *field = l->base + l->start[target->part] + target->at + r->r_offset;
    uint64_t v = address_of(l, &l->symbol[at]);
    bool fits = true;
    if (through_slot(type))
        v = (uint64_t)(uintptr_t)(l->base + l->start[CONST] + k->slot_at);
    else if (k->stub && type != R_X86_64_64)
        v = (uint64_t)(uintptr_t)(l->base + l->start[TEXT] + k->stub_at);
    v += (uint64_t)r->r_addend;
    if (type == R_X86_64_32)
        fits = v <= 0xffffffffu;
    else if (type == R_X86_64_32S)
        fits = fits_signed(v);
    else if (type != R_X86_64_64) {
        v -= (uint64_t)(uintptr_t)field;
        fits = type == R_X86_64_PC64 || fits_signed(v);
    }
    if (!fits)
        return damaged(l, "a relocation does not reach");
    memcpy(field, &v, width_of(type)); /* little-endian, as the object */
    return DC_OK;
}

typedef dc_status (*relocation_fn)(loading *l, uint32_t section, const Elf64_Rela *r);

static dc_status scan_in(loading *l, uint32_t section, const Elf64_Rela *r)
{
    return scan_one(l, &l->section[section], r);
}

static dc_status apply_in(loading *l, uint32_t section, const Elf64_Rela *r)
{
    return apply_one(l, &l->place[section], r);
}

static dc_status each_relocation(loading *l, relocation_fn visit)
{
    for (uint32_t i = 0; i < l->nsection; i++) {
        const Elf64_Shdr *s = &l->section[i];
        if (s->sh_type == SHT_REL)
            return damaged(l, "its relocations have no addends");
        if (s->sh_type != SHT_RELA)
            continue;
        if (s->sh_info >= l->nsection || s->sh_entsize != sizeof(Elf64_Rela) ||
            s->sh_size % sizeof(Elf64_Rela) != 0)
            return damaged(l, "its relocations are cut");
        const placed *target = &l->place[s->sh_info];
        if (!target->loaded)
            continue;
        if (l->section[s->sh_info].sh_type == SHT_NOBITS)
            return damaged(l, "it relocates empty memory");
        for (size_t k = 0; k < s->sh_size; k += sizeof(Elf64_Rela)) {
            Elf64_Rela r;
            memcpy(&r, l->object + s->sh_offset + k, sizeof r);
            DC_TRY(visit(l, s->sh_info, &r));
        }
    }
    return DC_OK;
}

/* --- the image ---------------------------------------------------------------------------- */

/* Turns ends of parts into page-aligned starts; returns the size of the mapping. */
static size_t lay_out(loading *l)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t at = 0;
    for (part p = TEXT; p < NPART; p++) {
        l->start[p] = at;
        at += dc_align_up(l->end[p], page);
    }
    return at;
}

static void copy_sections(loading *l)
{
    for (uint32_t i = 0; i < l->nsection; i++) {
        const placed *p = &l->place[i];
        if (p->loaded && l->section[i].sh_type != SHT_NOBITS)
            memcpy(l->base + l->start[p->part] + p->at, l->object + l->section[i].sh_offset,
                   l->section[i].sh_size);
    }
}

static void write_linkage(loading *l)
{
    for (uint32_t i = 0; i < l->nsymbol; i++) {
        const linkage *k = &l->link[i];
        if (!k->slot)
            continue;
        unsigned char *slot = l->base + l->start[CONST] + k->slot_at;
        const uint64_t address = address_of(l, &l->symbol[i]);
        memcpy(slot, &address, sizeof address);
        if (!k->stub)
            continue;
        unsigned char *stub = l->base + l->start[TEXT] + k->stub_at;
        const int32_t away = (int32_t)(slot - (stub + 6)); /* three parts: below 2 GiB */
        stub[0] = 0xff;                                    /* jmp *away(%rip) */
        stub[1] = 0x25;
        memcpy(stub + 2, &away, sizeof away);
    }
}

static bool protect(const loading *l, size_t bytes)
{
    for (part p = TEXT; p < NPART; p++) {
        const size_t end = p + 1 < NPART ? l->start[p + 1] : bytes;
        if (end > l->start[p] &&
            mprotect(l->base + l->start[p], end - l->start[p], protection[p]) != 0)
            return false;
    }
    return true;
}

static const Elf64_Sym *find_entry(const loading *l, const char *entry)
{
    for (uint32_t i = 0; i < l->nsymbol; i++) {
        const Elf64_Sym *s = &l->symbol[i];
        if (s->st_shndx == SHN_UNDEF || s->st_shndx >= l->nsection ||
            !l->place[s->st_shndx].loaded || l->place[s->st_shndx].part != TEXT ||
            s->st_value >= l->section[s->st_shndx].sh_size)
            continue;
        const char *name = name_at(l, l->strings, s->st_name);
        if (name != NULL && strcmp(name, entry) == 0)
            return s;
    }
    return NULL;
}

static dc_status write_image(loading *l, dc_image *image, const char *const *entry, uint32_t nentry)
{
    copy_sections(l);
    write_linkage(l);
    DC_TRY(each_relocation(l, apply_in));
    for (uint32_t i = 0; i < nentry; i++) {
        const Elf64_Sym *s = find_entry(l, entry[i]);
        if (s == NULL)
            return dc_failf(l->j, DC_ERR_BUILD, "cpu", "the object has no kernel '%.60s'",
                            entry[i]);
        image->entry[i] = home_of(l, s);
    }
    if (!protect(l, image->bytes))
        return dc_failf(l->j, DC_ERR_DEVICE, "cpu",
                        "the system does not allow memory to become executable");
    return DC_OK;
}

static dc_status read_object(loading *l)
{
    Elf64_Ehdr h = {0};
    DC_TRY(read_header(l, &h));
    DC_TRY(read_sections(l, &h));
    DC_TRY(read_symbols(l));
    DC_TRY(place_sections(l, h.e_shstrndx));
    return each_relocation(l, scan_in);
}

dc_status dc_loader_load(dc_job *j, const void *object, size_t bytes, const char *const *entry,
                         uint32_t nentry, dc_image **out)
{
    loading l = {.j = j, .object = object, .bytes = bytes};
    DC_TRY(read_object(&l));
    const size_t total = lay_out(&l);
    if (total == 0)
        return damaged(&l, "it holds no code");
    /* From here on nothing unwinds, so the image needs no place on the cleanup list. */
    dc_image *image = dc_xalloc(sizeof *image + nentry * sizeof image->entry[0]);
    image->bytes = total;
    image->nentry = nentry;
    if (!dc_heap_count(total, &image->heap)) {
        dc_xfree(image);
        return dc_fail_memory(j, total);
    }
    void *base = mmap(NULL, total, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED) {
        dc_heap_uncount(image->heap, total);
        dc_xfree(image);
        return dc_fail(j, DC_ERR_NOMEM, NULL);
    }
    image->base = l.base = base;
    const dc_status status = write_image(&l, image, entry, nentry);
    if (status != DC_OK) {
        dc_loader_unload(image);
        return status;
    }
    *out = image;
    return DC_OK;
}

void dc_loader_unload(dc_image *image)
{
    if (image == NULL)
        return;
    munmap(image->base, image->bytes);
    dc_heap_uncount(image->heap, image->bytes);
    dc_xfree(image);
}
