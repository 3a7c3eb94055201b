/*
 * Loads and stores in LLVM IR (jit/render/llvm_memory.h). A byte other than 0 reads as true.
 */
#include "jit/render/llvm_memory.h"

#include "jit/render/llvm_gather.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { LINE = 64 }; /* bytes of the cache's */

static void put_address(dc_llvm_text *r, dc_fv v, bool inside)
{
    const dc_finst *i = dc_lltext_at(r, v);
    dc_llvm_text_line(r, "%%v%u.p = getelementptr%s %s, ptr %%b%u, %T", v,
                      inside ? " inbounds" : "", dc_llvm_text_scalar(r, i->type, true), i->buf,
                      i->in[0]);
}

/* Bytes of memory to bool and back; other types are the same in both. */
static void put_from_memory(dc_llvm_text *r, dc_fv v)
{
    const dc_finst *i = dc_lltext_at(r, v);
    if (i->type == DC_BOOL)
        dc_llvm_text_line(r, "%%v%u = icmp ne %s %%v%u.b, %s", v,
                          dc_llvm_text_memory_type(r, i->type, i->lanes).s, v,
                          i->lanes > 1 ? "zeroinitializer" : "0");
}

/* Name of the value to store, as it is in memory. */
static dc_llname put_to_memory(dc_llvm_text *r, dc_fv v)
{
    const dc_finst *i = dc_lltext_at(r, v);
    dc_llname s;
    if (i->type == DC_BOOL)
        dc_llvm_text_line(r, "%%v%u.b = zext %T to %s", v, i->in[1],
                          dc_llvm_text_memory_type(r, i->type, i->lanes).s);
    snprintf(s.s, DC_LLNAME, "%%v%" PRIu32 ".b", v);
    return s;
}

/* Suffix of the name that the raw load goes to. */
static const char *raw(const dc_finst *i)
{
    return i->type == DC_BOOL ? ".b" : "";
}

static dc_llname mask_text(int lanes)
{
    return dc_llvm_text_spread("i1", lanes);
}

static void put_mask(dc_llvm_text *r, dc_fv mask, int lanes)
{
    dc_text_printf(r->out, "%s ", mask_text(lanes).s);
    if (mask != 0) {
        dc_llvm_text_value(r, mask);
        return;
    }
    dc_text_puts(r->out, "<");
    for (int n = 0; n < lanes; n++)
        dc_text_puts(r->out, n > 0 ? ", i1 true" : "i1 true");
    dc_text_puts(r->out, ">");
}

/* Types of a masked access, as they are written and as they stand in the name of what does it. */
typedef struct masked {
    dc_llname type, address, mangled, mangled_address;
} masked;

static masked masked_of(dc_llvm_text *r, const dc_finst *i)
{
    const char *scalar = dc_llvm_text_scalar(r, i->type, true);
    const int addresses = i->op == DC_K_GATHER || i->op == DC_K_SCATTER ? i->lanes : 1;
    return (masked){.type = dc_llvm_text_spread(scalar, i->lanes),
                    .address = dc_llvm_text_spread("ptr", addresses),
                    .mangled = dc_llvm_text_mangled(scalar, i->lanes),
                    .mangled_address = dc_llvm_text_mangled("ptr", addresses)};
}

/* masked.load or masked.gather: the address is %v.p, one or one by lane. */
static void put_masked_load(dc_llvm_text *r, dc_fv v, const char *what, const char *address)
{
    const dc_finst *i = dc_lltext_at(r, v);
    const masked m = masked_of(r, i);
    dc_text_printf(r->out, "  %%v%" PRIu32 "%s = call %s @llvm.masked.%s.%s.%s(%s %s, i32 %d, ", v,
                   raw(i), m.type.s, what, m.mangled.s, m.mangled_address.s, m.address.s, address,
                   i->align);
    put_mask(r, i->in[1], i->lanes);
    dc_text_printf(r->out, ", %s zeroinitializer)\n", m.type.s);
    dc_llvm_text_declare(r, "%s @llvm.masked.%s.%s.%s(%s, i32, %s, %s)", m.type.s, what,
                         m.mangled.s, m.mangled_address.s, m.address.s, mask_text(i->lanes).s,
                         m.type.s);
}

static void put_masked_store(dc_llvm_text *r, dc_fv v, const char *what, const char *address)
{
    const dc_finst *i = dc_lltext_at(r, v);
    const masked m = masked_of(r, i);
    const dc_llname value = put_to_memory(r, v);
    dc_text_printf(r->out, "  call void @llvm.masked.%s.%s.%s(%s ", what, m.mangled.s,
                   m.mangled_address.s, m.type.s);
    if (i->type == DC_BOOL)
        dc_text_puts(r->out, value.s);
    else
        dc_llvm_text_value(r, i->in[1]);
    dc_text_printf(r->out, ", %s %s, i32 %d, ", m.address.s, address, i->align);
    put_mask(r, i->in[2], i->lanes);
    dc_text_puts(r->out, ")\n");
    dc_llvm_text_declare(r, "void @llvm.masked.%s.%s.%s(%s, %s, i32, %s)", what, m.mangled.s,
                         m.mangled_address.s, m.type.s, m.address.s, mask_text(i->lanes).s);
}

static void put_strided_store(dc_llvm_text *r, dc_fv v)
{
    const dc_finst *i = dc_lltext_at(r, v);
    const char *scalar = dc_llvm_text_scalar(r, i->type, true);
    const dc_llname t = dc_llvm_text_spread(scalar, i->lanes), value = put_to_memory(r, v);
    put_address(r, v, true);
    for (int n = 0; n < i->lanes; n++) {
        if (i->type == DC_BOOL)
            dc_llvm_text_line(r, "%%v%u.e%d = extractelement %s %s, i32 %d", v, n, t.s, value.s, n);
        else
            dc_llvm_text_line(r, "%%v%u.e%d = extractelement %T, i32 %d", v, n, i->in[1], n);
        dc_llvm_text_line(r, "%%v%u.p%d = getelementptr inbounds %s, ptr %%v%u.p, i64 %l", v, n,
                          scalar, v, (int64_t)i->imm * n);
        dc_llvm_text_line(r, "store %s %%v%u.e%d, ptr %%v%u.p%d, align %d", scalar, v, n, v, n,
                          (int)dc_dtype_size((dc_dtype)i->type));
    }
}

/*
 * Of one lane: element 0 is read instead, in order not to branch, and not used. Another thread may
 * be writing it; what is undefined then is the value alone.
 */
static void put_load_if(dc_llvm_text *r, dc_fv v)
{
    const dc_finst *i = dc_lltext_at(r, v);
    const char *type = dc_llvm_text_scalar(r, i->type, true),
               *index = dc_llvm_text_scalar(r, DC_INDEX, true);
    dc_llvm_text_line(r, "%%v%u.i = select %T, %T, %s 0", v, i->in[1], i->in[0], index);
    dc_llvm_text_line(r, "%%v%u.p = getelementptr inbounds %s, ptr %%b%u, %s %%v%u.i", v, type,
                      i->buf, index, v);
    dc_llvm_text_line(r, "%%v%u.r = load %s, ptr %%v%u.p, align %d", v, type, v, (int)i->align);
    dc_llvm_text_line(r, "%%v%u%s = select %T, %s %%v%u.r, %s zeroinitializer", v, raw(i), i->in[1],
                      type, v, type);
    put_from_memory(r, v);
}

/* The lines of the cache from the element on that the load names; past the end of a buffer that does nothing. */
static void put_prefetch(dc_llvm_text *r, dc_fv v)
{
    enum { LOCALITY_L1 = 3, LOCALITY_L2 = 2 };
    const dc_finst *i = dc_lltext_at(r, v);
    const int64_t bytes = i->lanes * (int64_t)dc_dtype_size((dc_dtype)i->type);
    const int locality = r->f->buf.at[i->buf].prefetch == 1 ? LOCALITY_L1 : LOCALITY_L2;
    dc_llvm_text_line(r, "%%v%u.n = getelementptr %s, ptr %%b%u, %T", v,
                      dc_llvm_text_scalar(r, i->type, true), i->buf, i->in[2]);
    for (int64_t at = 0; at < bytes; at += LINE) {
        dc_llvm_text_line(r, "%%v%u.a%l = getelementptr i8, ptr %%v%u.n, i64 %l", v, at, v, at);
        dc_llvm_text_line(r, "call void @llvm.prefetch.p0(ptr %%v%u.a%l, i32 0, i32 %d, i32 1)", v,
                          at, locality);
    }
    dc_llvm_text_declare(r, "void @llvm.prefetch.p0(ptr, i32, i32, i32)");
}

static void put_load(dc_llvm_text *r, dc_fv v)
{
    const dc_finst *i = dc_lltext_at(r, v);
    char address[DC_LLNAME];
    if (i->lanes > 1 && i->imm != 1) {
        if (!dc_llvm_gather_put(r, v, raw(i)))
            DC_BUG("%s: a step of lanes that are not known", r->f->name);
        put_from_memory(r, v);
        return;
    }
    if (i->lanes == 1 && i->in[1] != 0) {
        put_load_if(r, v);
        return;
    }
    snprintf(address, sizeof address, "%%v%" PRIu32 ".p", v);
    put_address(r, v, i->in[1] == 0);
    if (i->in[1] != 0)
        put_masked_load(r, v, "load", address);
    else
        dc_llvm_text_line(r, "%%v%u%s = load %s, ptr %s, align %d", v, raw(i),
                          dc_llvm_text_memory_type(r, i->type, i->lanes).s, address, (int)i->align);
    put_from_memory(r, v);
    if (i->in[2] != 0)
        put_prefetch(r, v);
}

/*
 * The hint becomes an instruction for whole vectors at their own alignment: code generation has nothing for the
 * others. What is wider than a register is stored in several.
 */
static bool is_nontemporal(const dc_llvm_text *r, const dc_finst *i)
{
    const int bytes = i->lanes * (int)dc_dtype_size((dc_dtype)i->type);
    const int whole = bytes < r->vector_bytes ? bytes : r->vector_bytes;
    return r->f->buf.at[i->buf].nontemporal && i->lanes > 1 && whole >= 16 && i->align >= whole;
}

static void put_store(dc_llvm_text *r, dc_fv v)
{
    const dc_finst *i = dc_lltext_at(r, v);
    char address[DC_LLNAME];
    if (i->lanes > 1 && i->imm != 1) {
        put_strided_store(r, v);
        return;
    }
    snprintf(address, sizeof address, "%%v%" PRIu32 ".p", v);
    put_address(r, v, i->in[2] == 0);
    if (i->in[2] != 0) {
        put_masked_store(r, v, "store", address);
    } else if (i->type == DC_BOOL) {
        const dc_llname value = put_to_memory(r, v);
        dc_llvm_text_line(r, "store %s %s, ptr %s, align %d",
                          dc_llvm_text_memory_type(r, i->type, i->lanes).s, value.s, address,
                          (int)i->align);
    } else {
        dc_llvm_text_line(r, "store %T, ptr %s, align %d%s", i->in[1], address, (int)i->align,
                          is_nontemporal(r, i) ? ", !nontemporal !0" : "");
    }
}

/* One address by lane. */
static void put_spread(dc_llvm_text *r, dc_fv v)
{
    char address[DC_LLNAME];
    const dc_finst *i = dc_lltext_at(r, v);
    if (i->op == DC_K_GATHER && dc_llvm_gather_put(r, v, raw(i))) {
        put_from_memory(r, v);
        return;
    }
    snprintf(address, sizeof address, "%%v%" PRIu32 ".p", v);
    put_address(r, v, false);
    if (i->op == DC_K_GATHER) {
        put_masked_load(r, v, "gather", address);
        put_from_memory(r, v);
    } else {
        put_masked_store(r, v, "scatter", address);
    }
}

void dc_llvm_memory_put(dc_llvm_text *r, dc_fv v)
{
    switch ((int)dc_lltext_at(r, v)->op) {
    case DC_K_LOAD:
        put_load(r, v);
        return;
    case DC_K_STORE:
        put_store(r, v);
        return;
    }
    put_spread(r, v);
}
