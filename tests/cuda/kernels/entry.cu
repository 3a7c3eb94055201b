/*
 * The entry that the CUDA dialect writes: `base` is null, a parameter is an address, or with its lowest bit set that of
 * a word that holds it; `stop` is 0 or where an i32 is that ends the kernel. out[i] = x[i] * 2, f32.
 */
typedef unsigned char u8;
typedef unsigned long long u64;
#define INLINE static __device__ __forceinline__
INLINE u8 *at(u8 *base, u64 p) { return base + (p & 1 ? *(const u64 *)(base + (p - 1)) : p); }
extern "C" __global__ void __launch_bounds__(128) entry(u8 *const base, const u64 stop, const u64 p0, const u64 p1)
{
    if (stop != 0 && *(const int *)(base + stop) != 0)
        return;
    float *const out = (float *)at(base, p0);
    const float *const x = (const float *)at(base, p1);
    const unsigned i = blockIdx.x * 128 + threadIdx.x;
    out[i] = __fmul_rn(x[i], 2.0f);
}
