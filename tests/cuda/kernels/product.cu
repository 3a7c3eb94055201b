/* c[32, 32] = a[32, 32] * b[32, 32], f32: a block of 64 threads for 8 x 8 of c, k in steps of 8. */
typedef unsigned char u8;
extern "C" __global__ void __launch_bounds__(64) product(u8 *p0, u8 *p1, u8 *p2)
{
    float *const c = (float *)p0;
    const float *const a = (const float *)p1, *const b = (const float *)p2;
    __shared__ float sa[64];
    __shared__ float sb[64];
    const unsigned row = threadIdx.x / 8, col = threadIdx.x % 8;
    const unsigned row0 = blockIdx.x / 4 * 8, col0 = blockIdx.x % 4 * 8;
    float sum = 0;
    for (unsigned k0 = 0; k0 < 32; k0 += 8) {
        sa[threadIdx.x] = a[(row0 + row) * 32 + k0 + col];
        sb[threadIdx.x] = b[(k0 + row) * 32 + col0 + col];
        __syncthreads(); /* first */
        for (unsigned k = 0; k < 8; k++)
            sum = __fadd_rn(sum, __fmul_rn(sa[row * 8 + k], sb[k * 8 + col]));
        __syncthreads(); /* second */
    }
    c[(row0 + row) * 32 + col0 + col] = sum;
}
