/* out[64, 64] = x[64, 64] transposed, f32: tiles of 32 x 32 through shared memory, rows of PITCH numbers. */
typedef unsigned char u8;
#define PITCH 33
extern "C" __global__ void __launch_bounds__(256) turn(u8 *p0, u8 *p1)
{
    float *const out = (float *)p0;
    const float *const x = (const float *)p1;
    __shared__ float s[32 * PITCH];
    const unsigned col = threadIdx.x % 32, row = threadIdx.x / 32;
    const unsigned r0 = blockIdx.x / 2 * 32, c0 = blockIdx.x % 2 * 32;
    for (unsigned r = row; r < 32; r += 8)
        s[r * PITCH + col] = x[(r0 + r) * 64 + c0 + col];
    __syncthreads();
    for (unsigned r = row; r < 32; r += 8)
        out[(c0 + r) * 64 + r0 + col] = s[col * PITCH + r];
}
