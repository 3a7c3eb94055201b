/*
 * d[16, 8] = a[16, K] * b[K, 8] by one instruction of a warp, each element put into its register as the PTX manual
 * has it: g is the lane's number in four, t its place there. KIND: 0 f16, 1 bf16, 2 tf32, 3 s8.
 */
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
#define KIND 0
#ifndef DEEPC_CUDA_HOST
#define INLINE static __device__ __forceinline__
#define MMA(name, T, letter, shape)                                                                         \
    INLINE void name(T *c, const u32 *a, const u32 *b)                                                      \
    {                                                                                                       \
        asm volatile("mma.sync.aligned." shape " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"     \
                     : letter(c[0]), letter(c[1]), letter(c[2]), letter(c[3])                               \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));                   \
    }
MMA(mma_m16n8k16_f16, float, "+f", "m16n8k16.row.col.f32.f16.f16.f32")
MMA(mma_m16n8k16_bf16, float, "+f", "m16n8k16.row.col.f32.bf16.bf16.f32")
MMA(mma_m16n8k8_tf32, float, "+f", "m16n8k8.row.col.f32.tf32.tf32.f32")
MMA(mma_m16n8k32_s8, int, "+r", "m16n8k32.row.col.s32.s8.s8.s32")
#endif
extern "C" __global__ void __launch_bounds__(32) fragments(u8 *p0, u8 *p1, u8 *p2)
{
    const int g = threadIdx.x / 4, t = threadIdx.x % 4;
    u32 a[4] = {0, 0, 0, 0}, b[2] = {0, 0};
#if KIND < 2
    const u16 *const x = (const u16 *)p1, *const y = (const u16 *)p2;
    float d[4] = {0, 0, 0, 0};
    for (int i = 0; i < 8; i++) {
        const int row = (i < 2 || (i >= 4 && i < 6)) ? g : g + 8, col = t * 2 + (i & 1) + (i >= 4 ? 8 : 0);
        a[i / 2] |= (u32)x[row * 16 + col] << 16 * (i & 1);
    }
    for (int i = 0; i < 4; i++) {
        const int row = t * 2 + (i & 1) + (i >= 2 ? 8 : 0);
        b[i / 2] |= (u32)y[row * 8 + g] << 16 * (i & 1);
    }
#if KIND == 0
    mma_m16n8k16_f16(d, a, b);
#else
    mma_m16n8k16_bf16(d, a, b);
#endif
#elif KIND == 2
    const u32 *const x = (const u32 *)p1, *const y = (const u32 *)p2;
    float d[4] = {0, 0, 0, 0};
    for (int i = 0; i < 4; i++)
        a[i] = x[(i % 2 == 0 ? g : g + 8) * 8 + (i < 2 ? t : t + 4)];
    for (int i = 0; i < 2; i++)
        b[i] = y[(i == 0 ? t : t + 4) * 8 + g];
    mma_m16n8k8_tf32(d, a, b);
#else
    const u8 *const x = (const u8 *)p1, *const y = (const u8 *)p2;
    int d[4] = {0, 0, 0, 0};
    for (int i = 0; i < 16; i++) {
        const int row = (i < 4 || (i >= 8 && i < 12)) ? g : g + 8, col = t * 4 + (i & 3) + (i >= 8 ? 16 : 0);
        a[i / 4] |= (u32)x[row * 32 + col] << 8 * (i & 3);
    }
    for (int i = 0; i < 8; i++) {
        const int row = t * 4 + (i & 3) + (i >= 4 ? 16 : 0);
        b[i / 4] |= (u32)y[row * 8 + g] << 8 * (i & 3);
    }
    mma_m16n8k32_s8(d, a, b);
#endif
    for (int i = 0; i < 4; i++) {
        const int row = i < 2 ? g : g + 8, col = t * 2 + (i & 1);
#if KIND == 3
        ((int *)p0)[row * 8 + col] = d[i];
#else
        ((float *)p0)[row * 8 + col] = d[i];
#endif
    }
}
