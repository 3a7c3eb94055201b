/* x[1000] += 1 in place, u8: neighbours of one word belong to different threads; its last element by one atomic. */
typedef unsigned char u8;
extern "C" __global__ void __launch_bounds__(128) bytes(u8 *p0, u8 *p1)
{
    const unsigned i = blockIdx.x * 128 + threadIdx.x;
    if (i < 1000)
        p0[i] = (u8)(p1[i] + p0[i]);
    if (i < 999 && threadIdx.x % 4 != 3)
        p0[i + 1000] = p0[i]; /* own byte */
    atomicAdd((unsigned *)(p0 + 2000), 1u);
}
