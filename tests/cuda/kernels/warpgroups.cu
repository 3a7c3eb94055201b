/*
 * c[128, 128] f32 = a * b, sums of 256, 16-bit floats on the tensor cores of sm_90a: two groups of four warps with 64 rows
 * each. Tiles of k 64 deep come by cp.async into a ring of STAGES; the products of a step go on while the next copies
 * begin. KIND 0: f16, a[m][k], b[n][k]; 1: bf16, a[m][k], b[k][n]; 2: f16, a[k][m], b[k][n].
 */
#define KIND 0
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
#if KIND == 1
#define TYPE bf16
#else
#define TYPE f16
#endif
#define TURNED_A (KIND == 2)
#define TURNED_B (KIND >= 1)
#ifndef DEEPC_CUDA_HOST
#define INLINE static __device__ __forceinline__
#define SHARED_DYNAMIC(name) extern __shared__ __align__(1024) u8 name[]
INLINE u32 shared_address(const void *p) { return (u32)__cvta_generic_to_shared(p); }
INLINE void cp_async16(void *to, const void *from)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(to)), "l"(from) : "memory");
}
#define cp_async_commit() asm volatile("cp.async.commit_group;" ::: "memory")
#define cp_async_wait(n)  asm volatile("cp.async.wait_group %0;" ::"n"(n) : "memory")
#define fence_async_proxy() asm volatile("fence.proxy.async.shared::cta;" ::: "memory")
#define wgmma_fence()     asm volatile("wgmma.fence.sync.aligned;" ::: "memory")
#define wgmma_commit()    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory")
#define wgmma_wait(left, n, c)                                                          \
    do {                                                                                \
        asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(left) : "memory");       \
        _Pragma("unroll") for (int l_ = 0; l_ < n; l_++) asm volatile("" : "+f"((c)[l_])::"memory"); \
    } while (0)
INLINE u64 matrix_descriptor(const void *p, u32 leading, u32 stride)
{
    return (u64)(shared_address(p) >> 4 & 0x3fff) | (u64)(leading >> 4) << 16 | (u64)(stride >> 4) << 32 | 1ull << 62;
}
#define R10(d) "%" #d "0,%" #d "1,%" #d "2,%" #d "3,%" #d "4,%" #d "5,%" #d "6,%" #d "7,%" #d "8,%" #d "9,"
#define C4(i) "+f"(c[i]), "+f"(c[i + 1]), "+f"(c[i + 2]), "+f"(c[i + 3])
#define C16(i) C4(i), C4(i + 4), C4(i + 8), C4(i + 12)
#define WGMMA(type, a_k, b_k)                                                           \
    INLINE void wgmma_n128_##type##_##a_k##b_k(float *c, u64 a, u64 b)                  \
    {                                                                                   \
        asm volatile("{.reg .pred p; setp.ne.b32 p, 1, 0;"                              \
                     "wgmma.mma_async.sync.aligned.m64n128k16.f32." #type "." #type " {" \
                     R10() R10(1) R10(2) R10(3) R10(4) R10(5) "%60,%61,%62,%63}, %64, %65, p, 1, 1, " #a_k ", " #b_k ";}" \
                     : C16(0), C16(16), C16(32), C16(48) : "l"(a), "l"(b) : "memory");  \
    }
WGMMA(f16, 0, 0)
WGMMA(bf16, 0, 1)
WGMMA(f16, 1, 1)
#define wgmma_(n, type, a_k, b_k, c, a, b) wgmma_n##n##_##type##_##a_k##b_k(c, a, b)
#define wgmma(n, type, a_k, b_k, c, a, b) wgmma_(n, type, a_k, b_k, c, a, b)
#endif
#define STAGES 3
#define STEPS 4
/*
 * Byte of 16-byte piece c of row r of a tile of 128: rows of k are 128 bytes; rows of m or n are 256, whose halves lie behind
 * each other. Pieces stand at c ^ r % 8.
 */
#define AT_K(r, c)  ((r) * 128 + (((c) ^ ((r) & 7)) * 16))
#define AT_MN(r, c) ((c) / 8 * 8192 + (r) * 128 + ((((c) & 7) ^ ((r) & 7)) * 16))
#define LEADING     8192 /* from one half of a row to the other */
#if KIND == 2
#define FILL_A(i)  cp_async16(to + AT_MN(i / 16, i % 16), &a[(at + i / 16) * 128 + i % 16 * 8])
#define PART_A(kk) matrix_descriptor(tile + group * LEADING + kk * 2048, LEADING, 1024)
#else
#define FILL_A(i)  cp_async16(to + AT_K(i / 8, i % 8), &a[i / 8 * 256 + at + i % 8 * 8])
#define PART_A(kk) matrix_descriptor(tile + group * 8192 + kk * 32, 16, 1024)
#endif
#if KIND >= 1
#define FILL_B(i)  cp_async16(to + 16384 + AT_MN(i / 16, i % 16), &b[(at + i / 16) * 128 + i % 16 * 8])
#define PART_B(kk) matrix_descriptor(tile + 16384 + kk * 2048, LEADING, 1024)
#else
#define FILL_B(i)  cp_async16(to + 16384 + AT_K(i / 8, i % 8), &b[i / 8 * 256 + at + i % 8 * 8])
#define PART_B(kk) matrix_descriptor(tile + 16384 + kk * 32, 16, 1024)
#endif
#if KIND == 2
#define MULTIPLY(kk) wgmma(128, f16, 1, 1, acc, PART_A(kk), PART_B(kk))
#elif KIND == 1
#define MULTIPLY(kk) wgmma(128, bf16, 0, 1, acc, PART_A(kk), PART_B(kk))
#else
#define MULTIPLY(kk) wgmma(128, f16, 0, 0, acc, PART_A(kk), PART_B(kk))
#endif
#define FETCH(step)                            \
    do {                                       \
        if (step < STEPS) {                    \
            const int at = (step) * 64;        \
            u8 *const to = shared + (step) % STAGES * 32768; \
            for (int i = t; i < 1024; i += 256) \
                FILL_A(i);                     \
            for (int i = t; i < 1024; i += 256) \
                FILL_B(i);                     \
        }                                      \
        cp_async_commit();                     \
    } while (0)
extern "C" __global__ void __launch_bounds__(256) warpgroups(u8 *p0, u8 *p1, u8 *p2)
{
    SHARED_DYNAMIC(shared);
    float *const out = (float *)p0;
    const u16 *const a = (const u16 *)p1, *const b = (const u16 *)p2;
    const int t = threadIdx.x, group = t / 128, warp = t / 32, lane = t % 32;
    float acc[64];
#pragma unroll
    for (int i = 0; i < 64; i++)
        acc[i] = 0;
    for (int s = 0; s < STAGES - 2; s++)
        FETCH(s);
    for (int step = 0; step < STEPS; step++) {
        cp_async_wait(STAGES - 3);
        fence_async_proxy();
        __syncthreads(); /* of the stage */
        FETCH(step + STAGES - 2); /* where all have done the step before the last one */
        const u8 *const tile = shared + step % STAGES * 32768;
        wgmma_fence();
        MULTIPLY(0);
        MULTIPLY(1);
        MULTIPLY(2);
        MULTIPLY(3);
        wgmma_commit();
        wgmma_wait(1, 64, acc);
    }
    wgmma_wait(0, 64, acc); /* of all */
#pragma unroll
    for (int n = 0; n < 16; n++)
#pragma unroll
        for (int h = 0; h < 2; h++)
            *(float2 *)&out[(warp * 16 + lane / 4 + 8 * h) * 128 + n * 8 + lane % 4 * 2] =
                make_float2(acc[4 * n + 2 * h], acc[4 * n + 2 * h + 1]);
}
