/*
 * c[64, 64] f32 = a[64, 128] * b[128, 64], f16 on tensor cores: tiles of k 32 deep come by cp.async into a ring of
 * STAGES; rows are swizzled by 16 bytes, so that ldmatrix has no bank conflicts.
 */
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
#ifndef DEEPC_CUDA_HOST
#define INLINE static __device__ __forceinline__
INLINE u32 shared_address(const void *p) { return (u32)__cvta_generic_to_shared(p); }
INLINE void cp_async16(void *to, const void *from)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(to)), "l"(from) : "memory");
}
#define cp_async_commit() asm volatile("cp.async.commit_group;" ::: "memory")
#define cp_async_wait(n)  asm volatile("cp.async.wait_group %0;" ::"n"(n) : "memory")
INLINE void ldmatrix_x4(u32 *d, const void *p)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3]) : "r"(shared_address(p)) : "memory");
}
INLINE void ldmatrix_x2_trans(u32 *d, const void *p)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];"
                 : "=r"(d[0]), "=r"(d[1]) : "r"(shared_address(p)) : "memory");
}
INLINE void mma_m16n8k16_f16(float *c, const u32 *a, const u32 *b)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
#endif
#define STAGES 3
#define STEPS 4
/* where 8 numbers of row r are: 4 of these to a row of a, 8 to a row of b */
#define AT_A(r, c) (((r) * 4 + ((c) ^ (((r) >> 1) & 3))) * 8)
#define AT_B(r, c) (((r) * 8 + ((c) ^ ((r) & 7))) * 8)
extern "C" __global__ void __launch_bounds__(128) gemm(u8 *p0, u8 *p1, u8 *p2)
{
    float *const out = (float *)p0;
    const u16 *const a = (const u16 *)p1, *const b = (const u16 *)p2;
    __shared__ __align__(128) u16 sa[STAGES][64 * 32];
    __shared__ __align__(128) u16 sb[STAGES][32 * 64];
    const int t = threadIdx.x, warp = t / 32, lane = t % 32;
    float acc[8][4];
    for (int i = 0; i < 8; i++)
        for (int j = 0; j < 4; j++)
            acc[i][j] = 0;
    int next = 0;
#define FETCH()                                                                                   \
    do {                                                                                          \
        if (next < STEPS) {                                                                       \
            const int s_ = next % STAGES;                                                         \
            for (int i = t; i < 256; i += 128)                                                    \
                cp_async16(&sa[s_][AT_A(i / 4, i % 4)], &a[i / 4 * 128 + next * 32 + i % 4 * 8]); \
            for (int i = t; i < 256; i += 128)                                                    \
                cp_async16(&sb[s_][AT_B(i / 8, i % 8)], &b[(next * 32 + i / 8) * 64 + i % 8 * 8]); \
        }                                                                                         \
        next++;                                                                                   \
        cp_async_commit();                                                                        \
    } while (0)
    for (int s = 0; s < STAGES - 1; s++)
        FETCH();
    for (int step = 0; step < STEPS; step++) {
        cp_async_wait(STAGES - 2);
        __syncthreads(); /* of the stage */
        FETCH();
        const int s = step % STAGES;
        for (int kk = 0; kk < 2; kk++) {
            u32 fa[4];
            ldmatrix_x4(fa, &sa[s][AT_A(warp * 16 + lane % 16, kk * 2 + lane / 16)]);
            for (int n = 0; n < 8; n++) {
                u32 fb[2];
                ldmatrix_x2_trans(fb, &sb[s][AT_B(kk * 16 + lane % 16, n)]);
                mma_m16n8k16_f16(acc[n], fa, fb);
            }
        }
    }
    for (int n = 0; n < 8; n++)
        for (int h = 0; h < 2; h++)
            *(float2 *)&out[(warp * 16 + lane / 4 + 8 * h) * 64 + n * 8 + lane % 4 * 2] =
                make_float2(acc[n][2 * h], acc[n][2 * h + 1]);
}
