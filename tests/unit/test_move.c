/*
 * Schedule moves (jit/moves/moves.def): where each applies, and why it is refused. After every move the
 * verifier and the interpreter of the nest form look at the kernel; results are those of the kernel
 * without moves, bit for bit, unless a move of the list may change the order of additions: then the
 * data are small integers, whose sums are exact in any order. What is refused changes nothing.
 *
 *   test_move [seed]    the seed of the random texts
 */
#define _POSIX_C_SOURCE 200809L

#include "tests/unit/move_run.h"

/* Splits "move; move" in place; NULL at the end. */
static char *next_move(char **list)
{
    char *at = *list;
    if (at == NULL)
        return NULL;
    char *end = strchr(at, ';');
    *list = end != NULL ? end + 1 : NULL;
    if (end != NULL)
        *end = '\0';
    return at;
}

/* Moves that apply ---------------------------------------------------------------------------- */

typedef struct list {
    const char *kernel, *moves, *has; /* a line that the text has in the end, or NULL */
} list;

/* Terms from x2[0] on add nothing: the test is on one factor, so the other has to be there. */
static const char limited[] =
    "kernel limited(out0: f32[480] out, x0: f32[384], x1: f32[320], x2: i32[1]) {\n"
    "  local acc: f32[1]\n"
    "  for m in 24\n"
    "    for n in 20\n"
    "      acc[0] = 0:f32\n"
    "      for k in 16 reduce\n"
    "        acc[0] add= mul(where(lt(cast.i32(i32(k)), x2[0]), x0[16*m + k], 0:f32), "
    "x1[20*k + n]) needed k < x2\n"
    "      out0[20*m + n] = acc[0] needed m < x2\n"
    "}\n";

/* Sums of rows, nothing of which is added from x2[0] on. */
#define SUMS(name, begin, end)                                                        \
    "kernel " name "(out0: f32[480] out, x0: f32[384], x1: f32[320], x2: i32[1]) {\n" \
    "  local acc: f32[480]\n"                                                         \
    "  for i in 24\n"                                                                 \
    "    for j in 20\n"                                                               \
    "      acc[20*i + j] = 1:f32" begin "\n"                                          \
    "  for k in 16 reduce\n"                                                          \
    "    for m in 24\n"                                                               \
    "      for n in 20\n"                                                             \
    "        acc[20*m + n] add= mul(x0[16*m + k], x1[20*k + n]) needed m < x2\n"      \
    "  for o in 24\n"                                                                 \
    "    for p in 20\n"                                                               \
    "      out0[20*o + p] = acc[20*o + p]" end "\n"                                   \
    "}\n"

/* They are needed by nobody, or as they are. */
static const char fewer[] = SUMS("fewer", " needed i < x2", " needed o < x2");
static const char kept[] = SUMS("kept", "", "");

static const list good[] = {
    {fewer, "split m 8; cache_write acc m.o",
     "acc[160*m.o + 20*acc.m.i2 + acc.n2] = acc.w[20*acc.m.i2 + acc.n2] needed "
     "8*m.o + acc.m.i2 < x2\n"},
    {kept, "split m 8; cache_write acc m.o",
     "acc[160*m.o + 20*acc.m.i2 + acc.n2] = acc.w[20*acc.m.i2 + acc.n2]\n"},
    {limited, "pack x0 n k", "x0.c[x0.k] = x0[16*m + x0.k] needed x0.k < x2\n"},
    {limited, "split k 4; cache_read x0 k.o",
     "x0.c[x0.k.i] = x0[16*m + 4*k.o + x0.k.i] needed "
     "4*k.o + x0.k.i < x2\n"},
    {limited, "pack x1 m n k", "x1.c[16*x1.n + x1.k] = x1[20*x1.k + x1.n]\n"},
    {product, "split m 5; split n 8; split k 3", "for m.o in 5"},
    {product, "split m 24; fuse m.o m.i", "for m.o.f in 24"},
    {product, "fuse m n; split m.f 32; grid m.f.o; block m.f.i", "for m.f.i in 32 block"},
    {product, "pad m 16; pad n 20; split m.p 8; pad k 5", "for n.p in 20"},
    {product, "split k 4; fuse k.o k.i", "for k.o.f in 16 reduce"},
    {product,
     "split n 8; split m 6; reorder n.o m.i; reorder n.o m.o; reorder k n.i; reorder k m.i; "
     "vectorize n.i; unroll m.i; grid n.o",
     "local acc: f32[48]"},
    {product, "reorder k n; reorder k m; reorder m k; reorder n k", "local acc: f32[480]"},
    {product, "split_full n 8; split_full m 8; reorder n.o m.i; reorder k n.i; reorder k m.i",
     "acc[8*m.i + n.i] = 0:f32"},
    {product, "split_full k 8; reorder k.o n; part n k.i; unroll n.x; cache_write acc k.o",
     "acc[n.x] = 0:f32"},
    {product, "reorder k n; part_after n k; unroll n.y", "for n.y in 20 unroll"},
    {product,
     "reorder k n; reorder k m; part_after n k; part_after m k; split n.y 4; reorder n.y.o m.y",
     "for n.y.o in 5"},
    {product, "fuse m n; split m.f 8; cache_read x0 m.f.o; cache_read x1 m.f.o; grid m.f.o",
     "local x0.c: f32["},
    {product, "split k 4; reorder k.o n; reorder_reduce k.i n", NULL},
    {product, "split k 4; reorder_reduce k.i k.o", NULL},
    {product, "split_reduce k 5; unroll k.j", NULL},
    {product, "cache_read x1 m; cache_read x0 m; grid m", "local x1.c: f32[320]"},
    {product, "pack x0 m", "x0.c[x0.k] = x0[16*m + x0.k]"},
    {product, "pack x1 m n k; pack x0 n k", "x1.c[16*x1.n + x1.k] = x1[20*x1.k + x1.n]"},
    {product, "cache_write out0 m; split out0.n 4; vectorize out0.n.i", "local out0.w: f32[20]"},
    {product, "cache_write out0 n; cache_write out0 m; unroll out0.n", "local out0.w2: f32[20]"},
    {product, "split m 8; cache_write out0 m.o; pad_rows out0.w 20; split n 4; grid m.o",
     "out0.w[21*m.i + 4*n.o + n.i]"},
    {product,
     "split n 7; split m 5; reorder n.o m.i; reorder k n.i; reorder k m.i; split k 4; "
     "cache_read x0 k.o; cache_read x1 k.o; cache_write out0 n.o; fuse m.o n.o; block m.i; "
     "block n.i; grid m.o.f",
     "group x0.c: f32[20]"},
    {product,
     "split n 4; split m 4; split k 4; reorder n.o m.i; reorder k.o n.i; reorder k.o m.i; "
     "tensorize m.i mma_4x4x4; grid m.o",
     "mma_4x4x4(acc[0 by 4, 1], x0[64*m.o + 4*k.o by 16, 1], x1[80*k.o + 4*n.o by 20, 1])"},
    {product,
     "split n 4; split m 8; split k 4; reorder n.o m.i; reorder k.o n.i; reorder k.o m.i; "
     "cache_read x0 k.o m.i k.i; pack x1 k.o k.i n.i; reorder n.i m.i; reorder m.i n.i",
     NULL},
    {map, "split j 4; vectorize j.i; split i 7; unroll i.i", "for j.i in 4 vector"},
    {map, "reorder j i; split j 2; fuse j.i i", NULL},
    {map, "cut j 16; cut i 5; split j.l 4; vectorize j.l.i; unroll j.h", "x0[22*j.h + i.h + 357]"},
    {product, "cut k 5; cut m 7; cut k.h 10; unroll k.l", "for k.h.h in 1 reduce"},
    {product, "cut n 19; split m 6; reorder k n.h; reorder n.l m.i; grid m.o", NULL},
    {seam, "cut j 3; grid i", "out0[10*i + j.h + 3] = x1[7*i + j.h]"},
    {seam, "cut i 2; cut j 5; split j.l 4; vectorize j.l.i; grid i.l i.h",
     "out0[10*i.h + j.h + 25] = x1[7*i.h + j.h + 16]"},
    {scatter, "ranges k 8; reorder k.r n; grid k.r", "for a.i in 8"},
    {scatter,
     "ranges k 4; reorder k.r n; split n 4; reorder a.i n.i; reorder k n.i; lane n.i; reorder n.o "
     "k.r; grid n.o",
     NULL},
    {scatter, "ranges k 1; reorder k.r n; block n; grid k.r", "for k.r in 10 grid"},
    {tested, "ranges k 4; reorder k.r n; grid k.r", "for k.r in 3 grid"},
    {updates, "cut i 40; split i.l 8; vectorize i.l.i; grid i.l.o i.h j", "for i.h in 8 grid"},
    {map, "cache_read x0 i; cache_write out1 i", "local x0.c2: f32[21]"},
    {map, "block j", "for j in 21 block"},
    {rows, "split_reduce k 8; split k.i 4; vectorize k.i.i; unroll k.i.o; unroll k.j; grid i",
     NULL},
    {rows, "split i 8; split_reduce k 8; grid i.o", NULL},
    {rows, "split k 16; subtotal k.o; split_reduce k.i 4; unroll k.i.j; grid i",
     "acc[0] add= acc.3[0]"},
    {together, "split k 8; subtotal k.o", "c[0] maximum= c.9[0]"},
    {together, "split k 8; subtotal k.o; reorder k.o i; reorder k.i i; unroll i",
     "local b.8: f32[10]"},
    {together, "split k 5; split k.i 2; subtotal k.o; subtotal k.i.o", NULL},
    {rows, "grid i; split_reduce k 8; reorder k.i k.o; lane k.i", "group acc.3: f32[8]"},
    {rows, "split i 8; reorder k i.i; block i.i; grid i.o", "thread acc: f32[8]"},
    {rows, "split i 8; reorder k i.i; block i.i; scope acc group; grid i.o", "group acc: f32[8]"},
    {rows, "split i 8; scope acc group; reorder k i.i; block i.i; grid i.o",
     "group acc: f32[8] fixed"},
    {centred, "cache_read x0 i; grid i", "e[n] = sub(x0.c[n], sum[0])"},
    {centred,
     "cache_read x0 i; scope x0.c group; split x0.k 4; split_reduce k 4; reorder k.i k.o; split "
     "k.o 2; subtotal k.o.o; "
     "split_reduce j 4; reorder j.i j.o; split n 4; split m 4; replicate i 4; lane x0.k.i; lane "
     "k.i; lane j.i; lane n.i; "
     "lane m.i; lane i.r; grid i",
     "group x0.c: f32[20] fixed"},
    {rows, "split i 4; split i.o 2; reorder k i.i; reorder k i.o.i; lane i.i; block i.o.i", NULL},
    {rows, "pad i 16; split i.p 16; grid i.p.o; block i.p.i", NULL},
    {rows, "pad i 4; split i.p 8; reorder k i.p.i; vectorize i.p.i; grid i.p.o", NULL},
    {window, "cache_read x0 x; split x 4", "local x0.c: f32[9]"},
    {window, "cache_read x0 y; cache_read x1 y; split y 3; grid y.o", "local x0.c: f32[108]"},
    {window, "window_read x0 x; split x 4", "local x0.w: f32[9]"},
    {window, "window_read x0 y; split x 4; split x0.1 8; vectorize x0.1.i; grid y",
     "local x0.w: f32[48]"},
    {window, "split y 5; window_read x0 y.o; window_read x1 y.o; grid y.o", "local x0.w: f32[112]"},
    {window, "split x 5; reorder v x.i; reorder u x.i; window_read x0 x.o; unroll x.i",
     "x0.w[7*v + x.i + u]"},
    {together, "split_reduce k 4; reorder k.i k.o; lane k.i", "maximum= c.9[k.j]"},
    {together, "split_reduce k 4; unroll k.j; vectorize k.i", NULL},
    {centred,
     "split_reduce k 4; reorder k.i k.o; split_reduce j 4; reorder j.i j.o; split n 4; reorder n.i "
     "n.o; split m 4; reorder m.i m.o; replicate i 4; lane k.i; lane j.i; lane n.i; lane m.i; lane "
     "i.r; grid i",
     "thread e: f32[20]"},
    {centred,
     "split_reduce k 16; reorder k.i k.o; split_reduce j 16; reorder j.i j.o; replicate i 16; lane "
     "k.i; lane j.i; lane i.r; grid i",
     "top[i.r] = maximum(top[i.r], sum.8[i.r])"},
    {rows, "split_reduce k 64; reorder k.i k.o; replicate i 64; lane k.i; lane i.r; grid i",
     "acc.4[i.r] add= acc.3[((i.r)%32) + 32]"},
    {rows,
     "split_reduce k 8; reorder k.i k.o; replicate i 8; lane k.i; lane i.r; split i 4; block i.i; "
     "grid i.o",
     "thread acc: f32[32]"},
    {product, "cache_read x1 m; pad_rows x1.c 16; cache_read x0 m; grid m", "local x1.c: f32[340]"},
    {product,
     "split n 4; split m 4; reorder n.o m.i; cache_read x1 n.o n.i k; pad_rows x1.c 16; block n.i",
     "x1.c[17*n.i + k]"},
    {window, "window_read x0 v; window_read x1 x; subtotal v", "local acc.6: f32[1]"},
    {window, "reorder v x; reorder v y; subtotal v; reorder u x; window_read x0 v", NULL},
    {window, "reorder v x; subtotal v; reorder u x; split x 4; vectorize x.i; grid y", NULL},
    {window, "cache_read x0 v; split_reduce u 2; fuse y x", NULL},
    {window, "split x 5; reorder v x.i; reorder u x.i; cache_read x0 x.o; unroll x.i", NULL},
    {window, "fuse v u; split_reduce v.f 4; fuse y x; grid y.f", NULL},
    {window, "reorder_reduce u v; reorder u x; reorder v x", NULL},
    {softmax, "grid i; block n; block m", "group e: f32[20]"},
    {softmax, "grid i; block n; block m; split_reduce k 4; lane k.i", NULL},
    {softmax, "grid i; split n 5; split m 5; block n.i; block m.i; scope e group",
     "group e: f32[20]"},
    {softmax, "split i 2; reorder k i.i; reorder n i.i; grid i.o; block i.i", NULL},
    {softmax, "cache_read e j; cache_read x0 n; cache_write out0 m", NULL},
    {updates, "grid i j", "for j in 15 grid"},
    {updates, "split i 16; vectorize i.i; grid i.o j", "for i.o in 3 grid"},
    {updates, "split j 4; block j.i; split i 8; block i.i; grid j.o i.o", NULL},
    {updates, "cache_read x0 j; split i 8; cache_read x0 i.o", NULL},
    {stages, "compute_at t c", "local t: f32[8]"},
    {stages, "split a 2; split c 2; compute_at t c.o; compute_at t c.i", NULL},
    {stages, "reorder b a; split c 2; vectorize d; unroll b", NULL},
    {gather, "split j 2; split i 5; unroll i.i", NULL},
    {gather, "cache_read x0 i; grid i; block j", NULL},
    {gather, "fuse i j; split i.f 6; block i.f.i", NULL},
    {tiled, "tensorize a mma_4x4x4; split n 2; fuse m n.o; grid m.f; unroll n.i", NULL},
    {tiled, "cache_read x0 k; pack x1 k c b; cache_write out0 n; tensorize a mma_4x4x4; grid m",
     NULL},
    {carried, "compute_at t c; unroll c", "local t: f32[4]"},
    {shifted, "lane i; lane j", "group a: f32[16]"},
    {product, "split n 32; cache_read x1 m k n.i n.o", "local x1.c: f32[512]"},
    {lanes, "lane i; lane j; lane l", "thread a: f32[32]"},
    {lanes, "split i 8; lane i.i; block i.o; split j 8; lane j.i; block j.o; lane l",
     "group a: f32[32]"},
    {softmax,
     "split n 4; vectorize n.i; split m 4; grid i; nontemporal out0; prefetch x0 i n.o 2; pipeline "
     "i",
     "for n.o in 5 prefetch x0 i 2"},
    {softmax, "grid i; pipeline i; nontemporal out0", "for i in 7 grid pipeline"},
    {softmax, "split n 4; vectorize n.i; prefetch x0 i i 1", "for i in 7 prefetch x0 i 1"},
    {gather, "pad j 4; vectorize j.p; grid i; prefetch x1 i i 1",
     "for i in 10 grid prefetch x1 i 1"},
    {product, "split n 4; reorder k n.i; vectorize n.i; prefetch x1 k k 1",
     "for k in 16 reduce prefetch x1 k 1"},
};

/* Names have no limit. */
static const list long_names[] = {
    {"kernel long(out0: f32[8] out) {\n  for abcdefghijklmnopqrstuv in 8\n"
     "    out0[abcdefghijklmnopqrstuv] = 1:f32\n}\n",
     "split abcdefghijklmnopqrstuv 2", "for abcdefghijklmnopqrstuv.i in 2"},
    {"kernel long(out0: f32[8] out, x_with_14_chars: f32[8]) {\n  for i in 8\n"
     "    out0[i] = x_with_14_chars[i]\n}\n",
     "cache_read x_with_14_chars i", "local x_with_14_chars.c: f32[1]"},
};

static void test_good(const list *l)
{
    dc_kernel *plain = parse(l->kernel), *k = parse(l->kernel);
    char *moves = strdup(l->moves), *rest = moves;
    bool exact = true;
    for (char *m; (m = next_move(&rest)) != NULL;) {
        dc_move parsed;
        const char *why = "";
        if (!CHECK(dc_move_parse(NULL, m, &parsed, &why)) ||
            !CHECK(dc_move_apply_text(k, m, &why))) {
            printf("    %s: %s\n", m, why);
            print_kernel(k);
            break;
        }
        exact = exact && !dc_move_reassociates(parsed.kind);
        if (!CHECK(equal_results(plain, k, 5, !exact)))
            break;
    }
    char *text = text_of(k);
    if (l->has != NULL && !CHECK(strstr(text, l->has) != NULL))
        printf("    no \"%s\" in\n%s", l->has, text);
    free(text);
    free(moves);
    dc_kernel_free(k);
    dc_kernel_free(plain);
}

/* Moves that are refused ---------------------------------------------------------------------- */

typedef struct refusal {
    const char *kernel, *before, *move, *why; /* a part of the reason */
} refusal;

static const char in_place[] = "kernel in_place(out0: f32[20] out, x0: f32[20]) {\n"
                               "  for i in 20\n    out0[i] = x0[i]\n}\n";

static const char chosen[] =
    "kernel chosen(out0: f32[35] out, x0: f32[5], x1: i32[5]) {\n  for i in 5\n"
    "    for n in 7\n      out0[7*i + n] = 0:f32\n"
    "    out0[7*i + int(minimum(maximum(x1[i], 0:i32), 6:i32))] = x0[i] "
    "if int(minimum(maximum(x1[i], -1:i32), 7:i32)) in 7\n}\n";

static const refusal bad[] = {
    /* of parsing */
    {product, "", "twist m", "there is no such move; there are: split split_full cut"},
    {product, "", "", "there is no such move"},
    {product, "", "split m", "it reads: split axis count"},
    {product, "", "split m 2 3", "it reads: split axis count"},
    {product, "", "grid", "it reads: grid axis axis..."},
    {product, "", "pack x0", "it reads: pack buffer axis axis"},
    {product, "", "reorder k", "it reads: reorder axis axis"},
    {product, "", "split m 0", "a count is a whole number"},
    {product, "", "split m -3", "letters, digits"},
    {product, "", "split m 1099511627777", "a count is a whole number"},
    {product, "", "split m 4x", "a count is a whole number"},
    {product, "", "scope acc shared", "a scope is local, thread or group"},
    {product, "", "tensorize m mma_3x3x3", "no such matrix instruction"},
    {product, "reorder k n", "tensorize m mma_f16", "three loops"},
    {product, "", "split m\001 4", "letters, digits"},
    {product, "", "split a234567890123456789012345 4",
     "there is no loop over a234567890123456789012345"},
    {product, "", "pack x0 m a b c d e f", "at most eight words"},
    /* of names */
    {product, "", "split z 4", "there is no loop over z"},
    {product, "split m 4", "split m 4", "there is no loop over m"},
    {product, "", "cache_read x9 m", "there is no buffer x9"},
    {product, "split m 4; split m.o 2", "split m.o 2", "there is no loop over m.o"},
    {"kernel named(out0: f32[16] out) {\n  for a in 8\n    for a.o in 2\n"
     "      out0[2*a + a.o] = 1:f32\n}\n",
     "", "split a 2", "there is an axis a.o already"},
    /* split, pad, fuse */
    {product, "unroll k", "split k 4", "split takes a serial axis, k is unrolled"},
    {product, "", "split m 2000000", "m has 24 iterations only"},
    {product, "grid m", "pad m 5", "pad takes a serial axis, m is the grid"},
    {product, "", "cut m 24", "m has 24 iterations only"},
    {product, "", "ranges k 4", "something else stands beside k"},
    {product, "", "ranges m 4", "m does not update what one loaded integer chooses"},
    {scatter, "", "ranges a 4", "something else stands beside a"},
    {scatter, "", "ranges k 10", "k updates 10 places only"},
    {scatter, "split a 5", "ranges k 5", "what stands before k does not fill what it updates"},
    {scatter, "ranges k 4", "ranges k 2", "k does not update what one loaded integer chooses"},
    {tested, "reorder k n; unroll k", "ranges k 2", "ranges takes a serial axis, k is unrolled"},
    {product, "unroll k", "cut k 4", "cut takes a serial axis, k is unrolled"},
    {seam, "cut i 2", "grid i.l", "i.h is a loop at the root too"},
    {gather, "", "split i 4", "only a divisor of 10 will do"},
    {gather, "", "pad i 4", "only a divisor of 10 will do"},
    {product, "", "fuse m k", "one of m and k is a reduction"},
    {product, "", "fuse n m", "m is not directly and alone inside n"},
    {map, "split i 2", "fuse i.o j", "j is not directly and alone inside i.o"},
    {product, "block m", "fuse m n", "fuse takes a serial axis, m is threads (a block)"},
    /* reorder */
    {product, "", "reorder m n", "m is not directly inside n"},
    {product, "split k 4", "reorder k.i k.o", "reorder_reduce allows that"},
    {stages, "", "reorder b s", "b is not directly inside s"},
    {softmax, "", "reorder k x", "there is no loop over x"},
    {"kernel carried(out0: f32[12] out, x0: f32[12]) {\n  local s: f32[1]\n  s[0] = 0:f32\n"
     "  for i in 3\n    for j in 4\n      s[0] = add(mul(s[0], 2:f32), x0[4*i + j])\n"
     "      & out0[4*i + j] = s[0]\n}\n",
     "", "reorder j i", "they meet in s"},
    {"kernel carried(out0: f32[13] inout) {\n  for i in 3\n    for j in 4\n"
     "      out0[4*i + j + 1] = add(out0[4*i + j], 1:f32)\n}\n",
     "", "reorder j i", "they meet in out0"},
    {"kernel nested(out0: f32[3] out, x0: f32[12]) {\n  local s: f32[1]\n  for i in 3\n"
     "    s[0] = 0:f32\n    for j in 2 reduce\n      s[0] add= 1:f32\n      for k in 2 reduce\n"
     "        s[0] add= x0[4*i + 2*j + k]\n    out0[i] = s[0]\n}\n",
     "", "reorder k j", "j is a reduction, which cannot be taken apart"},
    /* vectorize, unroll */
    {product, "", "vectorize n", "power of two, n has 20"},
    {product, "split m 4", "vectorize m.i", "there is a loop inside m.i"},
    {product, "split k 4", "vectorize k.i", "all lanes of k.i would store to one element of acc"},
    {"kernel shifted(out0: f32[9] inout) {\n  for i in 8\n"
     "    out0[i + 1] = add(out0[i], 1:f32)\n}\n",
     "", "vectorize i", "iterations of i depend on each other, they meet in out0"},
    {"kernel overlap(out0: f32[11] out) {\n  for i in 8\n    for j in 4\n"
     "      out0[i + j] = cast.f32(i32(i))\n}\n",
     "", "grid i", ""},
    {rows, "split k 37; split i 5", "unroll k.x", "there is no loop over k.x"},
    {"kernel wide(out0: f32[100] out) {\n  for i in 100\n    out0[i] = 1:f32\n}\n", "", "unroll i",
     "i has 100 iterations, at most 64 are unrolled"},
    /* grid */
    {product, "", "grid n", "n also stands inside another loop"},
    {map, "", "grid i", "there is more than loops at the root"},
    {updates, "", "grid i", "j is a loop at the root too: grid takes all of them"},
    {stages, "", "grid a c s", "there is more than loops at the root"},
    {"kernel total(out0: f32[1] inout, x0: f32[8]) {\n  for k in 8 reduce\n"
     "    out0[0] add= x0[k]\n}\n",
     "", "grid k", "k is a reduction, its iterations add up"},
    {"kernel two(out0: f32[8] out, out1: f32[8] out) {\n  for i in 8\n    out0[i] = 1:f32\n"
     "  for j in 8\n    out1[j] = add(out0[7 - j], 1:f32)\n}\n",
     "", "grid i j", "they meet in out0"},
    {"kernel shared(out0: f32[8] out, x0: f32[8]) {\n  local s: f32[1]\n  for i in 8\n"
     "    s[0] = x0[i] if i in 1\n    out0[i] = s[0]\n}\n",
     "", "grid i", "they meet in s"},
    /* block, lane, scope */
    {product, "", "block k", "k is a reduction, its iterations add up"},
    {stages, "", "block s", "they meet in run"},
    {"kernel wide(out0: f32[2000] out) {\n  for i in 2000\n    out0[i] = 1:f32\n}\n", "", "block i",
     "a group has 1 to 1024 threads, i has 2000 iterations"},
    {"kernel wide(out0: f32[2000] out) {\n  for i in 40\n    for j in 50\n"
     "      out0[50*i + j] = 1:f32\n}\n",
     "block j", "block i", "the group would have 2000 threads"},
    {product, "reorder k n; lane m", "lane n",
     "n is parallel inside m, whose iterations are lanes"},
    {softmax, "block n; block m", "block i",
     "beside parallel loops in the block i stand only loops"},
    {product, "grid m", "lane m", "lane takes a serial axis, m is the grid"},
    {product, "", "scope x0 group", "x0 is a parameter"},
    {softmax, "block n; block m", "scope e local", "more than one iteration of the parallel loops"},
    {softmax, "block n", "scope e thread", "not every access to e is to the row of its own thread"},
    /* cache_read, pack, cache_write */
    {product, "", "cache_read out0 m", "nothing inside m reads out0"},
    {updates, "", "cache_read p0 i", "iterations of i also store to p0"},
    {gather, "", "cache_read x1 i", "positions in x1 depend on integers that are loaded"},
    {product, "", "part m k", "loops over m all hold a loop over k, or none does"},
    {product, "", "part_after m k",
     "loops over m all come after the last loop over k, or none does"},
    {stages, "", "part_after s a",
     "loops over s all come after the last loop over a, or none does"},
    {product, "unroll k", "part_after k m", "part_after takes a serial axis, k is unrolled"},
    {product, "", "pack x1 m n", "the order leaves out k"},
    {product, "", "pack x1 m n m", "m is no dim of what is read of x1"},
    {product, "", "pack x1 m n k k", "k is no dim of what is read of x1"},
    {map, "split j 3", "vectorize j.i", "power of two"},
    {map, "split j 4; vectorize j.i", "cache_read x0 j.i", "j.i is vectorized"},
    {"kernel tested(out0: f32[4] out, x0: f32[4]) {\n  local s: f32[1]\n  for i in 4\n"
     "    s[0] = 0:f32\n    for j in 2 reduce\n      for k in 3 reduce\n"
     "        s[0] add= x0[2*k + i - 2] if i + 2*k - 2 in 4 && j + k in 3\n"
     "    out0[i] = s[0]\n}\n",
     "", "cache_read x1 i", "there is no buffer x1"},
    {"kernel tested(out0: f32[6] out, x0: f32[4]) {\n  for i in 2\n    for j in 3\n"
     "      for k in 3\n        out0[3*i + j] = x0[2*i + k if j + k in 3]\n}\n",
     "", "cache_read x0 i", "the copy would read outside of x0"},
    {product, "", "window_read out0 m", "out0 is no input"},
    {product, "split m 2", "window_read x0 m.z", "no loop"},
    {gather, "", "window_read x1 i", "positions in x1 are not linear in the axes inside"},
    {map, "split j 4; vectorize j.i", "window_read x0 j.i", "j.i is vectorized"},
    {"kernel holes(out0: f32[6] out, x0: f32[4]) {\n  local s: f32[1]\n  for i in 6\n"
     "    s[0] = 0:f32\n    for k in 2 reduce\n"
     "      s[0] add= x0[(i + k)/2 if (i + k)/2 in 4 && (i + k)%2 in 1]\n    out0[i] = s[0]\n}\n",
     "", "window_read x0 i", "positions in x0 are not linear in the axes inside"},
    {"kernel tested(out0: f32[6] out, x0: f32[4]) {\n  for i in 2\n    for j in 3\n"
     "      for k in 3\n        out0[3*i + j] = x0[2*i + k if j + k in 3]\n}\n",
     "", "window_read x0 i", "a test of x0 is along no dim"},
    {product, "", "cache_write x0 m", "nothing inside m stores to x0"},
    {"kernel twice(out0: f32[9] out) {\n  for i in 4\n    out0[2*i] = 1:f32\n"
     "    out0[2*i + 1] = 2:f32\n}\n",
     "", "cache_write out0 i", "out0 is used at more than one position"},
    {"kernel again(out0: f32[12] out) {\n  for i in 2\n    for j in 3\n      for l in 4\n"
     "        out0[i + 2*j + 2*l] = cast.f32(i32(j))\n}\n",
     "", "cache_write out0 i", ""},
    {"kernel some(out0: f32[8] inout, x0: f32[8]) {\n  for i in 2\n    for j in 4\n"
     "      out0[4*i + j] = add(out0[4*i + j], x0[j])\n}\n",
     "", "cache_write out0 i", "does not surely store what it reads"},
    {"kernel some(out0: f32[8] inout, x0: f32[8]) {\n  for i in 2\n    for j in 4\n"
     "      for k in 2\n        out0[4*i + j] = x0[j] if j + k in 4\n}\n",
     "", "cache_write out0 i", "stands under a test on another loop"},
    {"kernel some(out0: f32[8] inout, x0: f32[8]) {\n  for i in 2\n    for j in 4\n"
     "      out0[4*i + j] = x0[j] if j in 3\n      out0[4*i + j] = x0[j]\n}\n",
     "", "cache_write out0 i", "uses of out0 stand under different tests"},
    /* updates in place: out0 may be the memory of x0 */
    {in_place, "replicate i 4", "window_read x0 i.r",
     "x0 may be updated in place: an iteration of i.r would read what another one stores to out0"},
    {in_place, "replicate i 4; split i.r 2", "cache_read x0 i.r.o",
     "an iteration of i.r.o would read"},
    {in_place, "cache_write out0 i; replicate i 4", "compute_at out0.w i.r",
     "an iteration of i.r would read"},
    {in_place, "cache_read x0 i; split_full i 8; reorder i.i i.o", "window_read x0 i.i",
     "an iteration of i.i would read"},
    /* a load in a test stands under no other test */
    {chosen, "cache_read x1 i; split i 8", "lane i.i", "they meet in x1.c"},
    /* compute_at */
    {stages, "", "compute_at x0 c", "x0 is a parameter, not a local"},
    {stages, "", "compute_at t a", "nothing that fills t stands directly before a loop over a"},
    {stages, "", "compute_at run s", "run is also filled outside of loops"},
    {stages, "split c 2", "compute_at t c.o", "a, which fills t, has 6 iterations, c.o has 3"},
    {"kernel turned(out0: f32[16] out, x0: f32[16]) {\n  local t: f32[16]\n  for a in 4\n"
     "    for b in 4\n      t[4*a + b] = x0[4*a + b]\n  for c in 4\n    for d in 4\n"
     "      out0[4*c + d] = t[4*d + c]\n}\n",
     "", "compute_at t c", "an iteration of c does not keep to its own part of t"},
    {"kernel two(out0: f32[4] out, x0: f32[4]) {\n  local t: f32[4]\n  local u: f32[1]\n"
     "  u[0] = 0:f32\n  for a in 4\n    t[a] = add(x0[a], u[0])\n    & u[0] = x0[a]\n"
     "  for c in 4\n    out0[c] = add(t[c], u[0])\n}\n",
     "", "compute_at t c", "what fills t and c also meet in u"},
    {stages, "unroll a", "compute_at t c", "a, which fills t, is no serial loop"},
    {"kernel same(out0: f32[4] out, x0: f32[16]) {\n  local t: f32[4]\n  for a in 4\n"
     "    for c in 4\n      t[a] = x0[4*a + c]\n  for c in 4\n    out0[c] = t[c]\n}\n",
     "", "compute_at t c", "what fills t itself loops over c"},
    /* split_reduce */
    {product, "", "split_reduce m 4", "m is in no chain of reduction loops"},
    {product, "", "split_reduce k 1", "one partial sum is no split"},
    {product, "reorder k n", "split_reduce k 4", "the sum over k is not one element"},
    {"kernel mean(out0: f32[1] out, x0: f32[8]) {\n  out0[0] = 0:f32\n  for k in 8 reduce\n"
     "    out0[0] = add(mul(out0[0], 0.5:f32), x0[k])\n}\n",
     "", "split_reduce k 2", "in no chain of reduction loops with sums"},
    {"kernel parity(out0: i32[1] out, x0: i32[8]) {\n  out0[0] = 0:i32\n  for k in 8 reduce\n"
     "    out0[0] bit_xor= x0[k]\n}\n",
     "", "split_reduce k 2", "does not add up, multiply, or find a maximum or minimum"},
    {product, "unroll k", "split_reduce k 4", "split_reduce takes a serial axis, k is unrolled"},
    /* replicate, pad_rows */
    {softmax, "", "replicate i 12", "a power of two, or a multiple of 32"},
    {softmax, "", "replicate i 1", "a power of two, or a multiple of 32"},
    {softmax, "", "replicate i 2048", "a power of two, or a multiple of 32"},
    {softmax, "grid i", "replicate i 4", "replicate takes a serial axis, i is the grid"},
    {softmax, "", "replicate i 4", "top is set inside of a loop"},
    {softmax, "split_reduce k 8; split_reduce j 8", "replicate i 4", "top is set inside of a loop"},
    {"kernel mixed(out0: f32[8] out, x0: f32[8]) {\n  local s: f32[1]\n  for i in 8\n"
     "    s[0] = x0[i]\n    & out0[i] = 1:f32\n}\n",
     "", "replicate i 4", "stores a number of the row and another element"},
    {product, "", "swizzle x0 16", "x0 is a parameter"},
    {product, "cache_read x1 m", "swizzle x1.c 24",
     "rows of x1.c are swizzled that are a power of"},
    {product, "cache_read x1 m", "swizzle x1.c 8", "rows of x1.c are swizzled that are a power of"},
    {product, "", "swizzle_atoms x0 32", "x0 is a parameter"},
    {product, "cache_read x1 m", "swizzle_atoms x1.c 16", "x1.c has no 8 rows of 128 bytes"},
    {product, "", "swizzle acc 16", "acc has no rows of 16: it has 1 elements"},
    {lanes, "lane i; lane j; lane l", "swizzle a 16", "a has a row for each thread already"},
    {product, "", "stage x0 2", "x0 is not shared by the threads of a group"},
    {product, "cache_read x1 m", "stage x1.c 2", "x1.c is not shared by the threads of a group"},
    {product, "split k 4; cache_read x1 k.o; scope x1.c group", "stage x1.c 1",
     "there are 2 to 8 stages"},
    {product, "", "pad_rows x0 16", "x0 is a parameter"},
    {product, "", "pad_rows acc 2", "acc has no rows of 2: it has 1 elements"},
    {lanes, "lane i; lane j; lane l", "pad_rows a 4", "a has a row for each thread already"},
    /* subtotal */
    {product, "", "subtotal m", "m is no reduction loop"},
    {product, "", "subtotal k", "no reduction loop is inside k"},
    {"kernel running(out0: f32[1] out, out1: f32[1] out, x0: f32[8]) {\n  out0[0] = 0:f32\n"
     "  out1[0] = 0:f32\n  for k in 8 reduce\n    out0[0] add= x0[k]\n"
     "    out1[0] add= mul(out0[0], x0[k])\n}\n",
     "split k 4", "subtotal k.o", "depend on each other"},
    {"kernel running(out0: f32[1] inout, x0: f32[8]) {\n  for k in 8 reduce\n"
     "    out0[0] = add(mul(out0[0], 0.5:f32), x0[k])\n}\n",
     "split k 4", "subtotal k.o", "other things than sums stand inside k.i"},
    {"kernel parity(out0: i32[1] out, x0: i32[8]) {\n  out0[0] = 0:i32\n  for k in 8 reduce\n"
     "    out0[0] bit_xor= x0[k]\n}\n",
     "split k 4", "subtotal k.o", "does not add up, multiply, or find a maximum or minimum"},
    /* tensorize */
    {product, "", "tensorize m mma_4x4x4", "m is not the outermost of three loops"},
    {product, "reorder k n", "tensorize m mma_tf32",
     "mma_tf32 rounds, and the kernel does not say tf32"},
    {product, "reorder k n; reorder n k", "tensorize m mma_4x4x4", "three loops"},
    {product, "reorder k n", "tensorize m mma_4x4x4", "three loops"},
    {product, "split n 4; split m 2; split k 4; reorder n.o m.i; reorder k.o n.i; reorder k.o m.i",
     "tensorize m.i mma_4x4x4", "mma_4x4x4 wants a serial loop m of extent 4, m.i has 2"},
    {product,
     "split n 4; split m 4; split k 4; reorder n.o m.i; reorder k.o n.i; reorder k.o m.i; unroll "
     "k.i",
     "tensorize m.i mma_4x4x4", "wants a serial loop k of extent 4"},
    {product,
     "split n 4; pad m 16; split m.p 4; split k 4; reorder n.o m.p.i; reorder k.o n.i; "
     "reorder k.o m.p.i",
     "tensorize m.p.i mma_4x4x4", "under a test on the loops of the tile"},
    {product,
     "split n 4; split m 4; split k 4; reorder n.o m.i; reorder k.o n.i; reorder k.o m.i; "
     "cache_read x1 m; tensorize m.i mma_4x4x4",
     "cache_read x0 m.o", "a matrix instruction reads x0: cache before tensorize"},
    {"kernel sums(out0: f32[16] out, x0: f32[64]) {\n  for m in 4\n    for n in 4\n"
     "      for k in 4 reduce\n        out0[4*m + n] add= x0[16*m + 4*n + k]\n}\n",
     "", "tensorize m mma_4x4x4", "not c = c + a * b"},
    {"kernel cube(out0: f32[16] out, x0: f32[64], x1: f32[16]) {\n  for m in 4\n    for n in 4\n"
     "      for k in 4 reduce\n        out0[4*m + n] add= mul(x0[16*m + 4*n + k], x1[4*k + "
     "n])\n}\n",
     "", "tensorize m mma_4x4x4", "a is not linear in m and k alone"},
    {"kernel ints(out0: i32[16] out, x0: i32[16], x1: i32[16]) {\n  for m in 4\n    for n in 4\n"
     "      for k in 4 reduce\n        out0[4*m + n] add= mul(x0[4*m + k], x1[4*k + n])\n}\n",
     "", "tensorize m mma_4x4x4", "the assignment is no sum in the dtype of mma_4x4x4"},
    /* nontemporal, prefetch, pipeline */
    {softmax, "", "nontemporal x0", "x0 is no output that is only stored to"},
    {updates, "", "nontemporal p0", "p0 is no output that is only stored to"},
    {softmax, "", "nontemporal e", "e is no output that is only stored to"},
    {softmax, "", "nontemporal z", "there is no buffer z"},
    {softmax, "", "prefetch x0 i n", "it reads: prefetch buffer axis axis count"},
    {softmax, "", "prefetch x0 i z 1", "there is no loop over z"},
    {softmax, "", "prefetch x0 i n 3", "it prefetches into cache 1 or 2"},
    {softmax, "split n 4; vectorize n.i", "prefetch out0 i n.o 1",
     "out0 cannot be prefetched: it is no input"},
    {softmax, "split n 4; vectorize n.i", "prefetch x0 n.o i 1",
     "the second loop is not inside the first"},
    {softmax, "split n 4; vectorize n.i", "prefetch x0 n.o k 1",
     "the second loop is not inside the first"},
    {softmax, "split n 4; vectorize n.i", "prefetch x0 i n.i 1",
     "both loops are serial or the grid"},
    {softmax, "", "prefetch x0 i n 1",
     "it is not read there in vectors that are contiguous in memory"},
    {softmax, "split n 4; vectorize n.i; prefetch x0 i n.o 1", "prefetch x0 i n.o 2",
     "x0 is prefetched already"},
    {product, "split n 4; reorder k n.i; vectorize n.i", "prefetch x1 m k 1",
     "what is read there is the same in the next iteration"},
    {gather, "pad j 4; vectorize j.p", "prefetch x1 i i 1",
     "where the next iteration reads is only known of the grid"},
    {softmax, "", "pipeline i", "pipeline takes a loop of the grid, i is none"},
    {product, "grid m", "pipeline m",
     "m cannot be pipelined: its last part is no serial loop that stores results alone"},
    {softmax, "grid i; nontemporal out0", "split n 4",
     "split comes before moves of memory traffic"},
    {softmax, "grid i; pipeline i", "unroll n", "unroll comes before moves of memory traffic"},
};

static void test_bad(const refusal *r)
{
    dc_kernel *k = parse(r->kernel);
    char *moves = strdup(r->before), *rest = *moves != '\0' ? moves : NULL;
    const char *why = "";
    if (k == NULL) {
        free(moves);
        return;
    }
    for (char *m; (m = next_move(&rest)) != NULL;)
        dc_move_apply_text(k, m, &why);
    char *before = text_of(k);
    const uint32_t nmoves = k->moves.n;
    why = "";
    if (!CHECK(!dc_move_apply_text(k, r->move, &why)))
        print_kernel(k);
    if (!CHECK(*why != '\0' && strstr(why, r->why) != NULL))
        printf("    %s: \"%s\", not \"%s\"\n", r->move, why, r->why);
    char *after = text_of(k);
    CHECK_STR(after, before);
    CHECK_EQ(k->moves.n, nmoves);
    free(before);
    free(after);
    free(moves);
    dc_kernel_free(k);
}

/* Any text ------------------------------------------------------------------------------------ */

static void test_any_text(uint64_t seed)
{
    static const char *const words[] = {
        "split",    "reorder", "fuse",       "pad",       "grid",
        "block",    "scope",   "cache_read", "tensorize", "m",
        "n",        "k",       "x0",         "acc",       "4",
        "0",        "-1",      "local",      "\t",        "\n",
        "",         "..",      "\xff",       "%s",        "18446744073709551616",
        "mma_4x4x4"};
    rng r = {seed};
    for (int i = 0; i < 3000; i++) {
        char text[400];
        size_t n = 0;
        const int count = rng_below(&r, 11);
        for (int w = 0; w < count; w++) {
            const char *word = words[rng_below(&r, (int)DC_COUNTOF(words))];
            n += (size_t)snprintf(text + n, sizeof text - n, "%s%s", word,
                                  rng_below(&r, 6) ? " " : "");
        }
        if (n > 0 && rng_below(&r, 3) == 0)
            text[rng_below(&r, (int)n)] = (char)(1 + rng_below(&r, 255));
        text[n] = '\0';
        dc_move m;
        const char *why = NULL;
        const bool is = dc_move_parse(NULL, text, &m, &why);
        CHECK(is || (why != NULL && *why != '\0'));
        CHECK(!is || (m.kind < DC_MOVE__COUNT && m.naxis <= DC_MOVE_AXES));
    }
}

/* Stores to one buffer at places that are apart: compared each with each where they are not too many. */
static bool is_vectorized(int stores)
{
    const char *why = "";
    dc_text t = {0};
    dc_text_printf(&t, "kernel k(x: f32[16], y: f32[%d] out) {\n  for i in 16\n", 16 * stores);
    for (int n = 0; n < stores; n++)
        dc_text_printf(&t, "    %sy[i + %d] = x[i]\n", n > 0 ? "& " : "", 16 * n);
    dc_text_puts(&t, "}\n");
    dc_kernel *k = parse(t.s);
    const bool is = dc_move_apply_text(k, "vectorize i", &why);
    CHECK(is || strstr(why, "they meet in y") != NULL);
    dc_kernel_free(k);
    dc_text_free(&t);
    return is;
}

/* Two stores of each iteration, which stand `second` apart: in pairs, rows of four side by side. */
static bool are_apart(int second)
{
    const char *why = "";
    char text[256];
    snprintf(text, sizeof text,
             "kernel k(x: f32[16], y: f32[768] out) {\n  for i in 16\n"
             "    y[128*(i/4) + 2*(i%%4)] = x[i]\n    & y[128*(i/4) + 2*(i%%4) + %d] = x[i]\n}\n",
             second);
    dc_kernel *k = parse(text);
    const bool is = dc_move_apply_text(k, "vectorize i", &why);
    CHECK(is || strstr(why, "they meet in y") != NULL);
    dc_kernel_free(k);
    return is;
}

static void test_pairs(void)
{
    for (int second = 1; second < 256; second++) { /* does i at `second` meet another one? */
        bool meet = false;
        for (int i = 0; i < 16; i++)
            for (int n = 0; n < 16; n++)
                meet |=
                    i != n && 128 * (i / 4) + 2 * (i % 4) + second == 128 * (n / 4) + 2 * (n % 4);
        CHECK(!are_apart(second) || !meet);
        if (second == 1 || second == 8 || second == 9 ||
            second == 121) /* as transforms have them */
            CHECK(are_apart(second));
    }
}

static dc_status body(dc_job *j, void *arg)
{
    const uint64_t *seed = arg;
    DC_UNUSED(j);
    for (size_t i = 0; i < DC_COUNTOF(good); i++)
        test_good(&good[i]);
    for (size_t i = 0; i < DC_COUNTOF(long_names); i++)
        test_good(&long_names[i]);
    for (size_t i = 0; i < DC_COUNTOF(bad); i++)
        test_bad(&bad[i]);
    test_any_text(*seed);
    test_pairs();
    CHECK(is_vectorized(500));
    CHECK(!is_vectorized(4000)); /* a text of 100 KB, which took 8 s */
    return DC_OK;
}

int main(int argc, char **argv)
{
    uint64_t seed = rng_seed(argc, argv, 1);
    return run_moves(body, &seed);
}
