/* out[i] = x[reversed], f32, 16384 numbers in dynamic shared memory of 64 KiB: float4 at a time. */
typedef unsigned char u8;
#ifndef DEEPC_CUDA_HOST
#define SHARED_DYNAMIC(name) extern __shared__ __align__(128) u8 name[]
#endif
extern "C" __global__ void __launch_bounds__(256) dynamic(u8 *p0, u8 *p1)
{
    SHARED_DYNAMIC(bytes);
    float *const s = (float *)bytes;
    const float4 *const x = (const float4 *)p1;
    for (unsigned i = threadIdx.x; i < 4096; i += 256)
        *(float4 *)&s[4 * i] = x[i];
    __syncthreads();
    for (unsigned i = threadIdx.x; i < 4096; i += 256)
        ((float4 *)p0)[i] = make_float4(s[16383 - 4 * i], s[16382 - 4 * i], s[16381 - 4 * i], s[16380 - 4 * i]);
}
