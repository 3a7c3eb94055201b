/* out[4] = sums of the rows of x[4, 1000], f32, by 128 threads: partial sums, theirs by 8, the last. */
typedef unsigned char u8;
extern "C" __global__ void __launch_bounds__(128) total(u8 *p0, u8 *p1)
{
    float *const out = (float *)p0;
    const float *const x = (const float *)p1 + blockIdx.x * 1000;
    __shared__ float part[128];
    __shared__ float few[8];
    const unsigned t = threadIdx.x;
    part[t] = 0;
    for (unsigned i = t; i < 1000; i += 128)
        part[t] = __fadd_rn(part[t], x[i]);
    __syncthreads();
    if (t < 8) {
        float sum = 0;
        for (unsigned i = 0; i < 16; i++)
            sum = __fadd_rn(sum, part[t + i * 8]);
        few[t] = sum;
    }
    __syncthreads(); /* of all */
    if (t == 0) {
        float sum = 0;
        for (unsigned i = 0; i < 8; i++)
            sum = __fadd_rn(sum, few[i]);
        out[blockIdx.x] = sum;
    }
}
