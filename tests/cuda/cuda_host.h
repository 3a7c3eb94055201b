/*
 * CUDA C++ as C++ of the host, for g++ and clang++ on x86-64: what a text for NVRTC that includes no
 * header may use. Put in front of the text with -include. A thread of CUDA is a fiber of the engine
 * (engine.h), which runs the blocks of a grid one after the other. No system header is included, so
 * that a kernel compiles in some 30 ms.
 *
 * Instructions that CUDA C++ has no function for are named functions in the prelude of the CUDA
 * dialect, with PTX in them; where DEEPC_CUDA_HOST is defined they are those at the end of this file.
 */
#ifndef DC_TESTS_CUDA_CUDA_HOST_H
#define DC_TESTS_CUDA_CUDA_HOST_H
#define DEEPC_CUDA_HOST 1
#pragma GCC diagnostic ignored "-Wunknown-pragmas"

#include "kernel_abi.h"

/* clang-format off */
extern "C" const kernel_runtime *kernel_rt __attribute__((visibility("hidden")));

/* Qualifiers -------------------------------------------------------------------------------- */

#define __global__
#define __device__
#define __host__
#define __constant__ static const
#define __grid_constant__
#define __grid_constant__
#define __forceinline__       inline __attribute__((always_inline))
#define __noinline__          __attribute__((noinline))
#define __align__(n)          __attribute__((aligned(n)))
#define __launch_bounds__(...)
#define __restrict__          __restrict
/* Of all blocks in one place: the engine fills it with 0xff before each block and knows its bounds. */
#define __shared__            static __attribute__((section("cuda_shared"), aligned(16)))
/* extern __shared__ T name[] has no meaning here. */
#define SHARED_DYNAMIC(name)  unsigned char *const name = (unsigned char *)kernel_rt->dynamic

#define threadIdx (kernel_rt->now->thread)
#define blockIdx  (*kernel_rt->block)
#define blockDim  (*kernel_rt->threads)
#define gridDim   (*kernel_rt->grid)
#define warpSize  32

/* Barriers and exchange in a warp ----------------------------------------------------------- */

#define HOST_INLINE static __forceinline__

HOST_INLINE unsigned host_mask(unsigned m = 0xffffffffu) { return m; }
#define __syncthreads()       kernel_rt->barrier(__LINE__)
#define __syncwarp(...)       kernel_rt->warp_barrier(host_mask(__VA_ARGS__), __LINE__)
#define __threadfence()       ((void)0)
#define __threadfence_block() ((void)0)
#define __trap()              kernel_rt->trap(__LINE__)

/* Every lane of the mask gives its value, and gets that of `lane`. */
template <class T> HOST_INLINE T host_exchange(unsigned mask, T v, int lane, int line, bool own)
{
    static_assert(sizeof(T) <= 8, "a shuffle moves up to 8 bytes");
    unsigned long long bits = 0;
    __builtin_memcpy(&bits, &v, sizeof v);
    bits = kernel_rt->exchange(mask, bits, own ? (int)(kernel_rt->now->number & 31) : lane, line);
    T r;
    __builtin_memcpy(&r, &bits, sizeof r);
    return r;
}
HOST_INLINE int host_lane() { return (int)(kernel_rt->now->number & 31); }
template <class T> HOST_INLINE T host_shfl(int line, unsigned mask, T v, int lane, int w = 32)
{
    return host_exchange(mask, v, (host_lane() & ~(w - 1)) | (lane & (w - 1)), line, false);
}
template <class T> HOST_INLINE T host_shfl_xor(int line, unsigned mask, T v, int x, int w = 32)
{
    const int to = host_lane() ^ x;
    return host_exchange(mask, v, to & 31, line, (to & ~(w - 1)) > (host_lane() & ~(w - 1)));
}
template <class T> HOST_INLINE T host_shfl_down(int line, unsigned mask, T v, int d, int w = 32)
{
    const int to = host_lane() + d;
    return host_exchange(mask, v, to & 31, line, (to & ~(w - 1)) != (host_lane() & ~(w - 1)));
}
template <class T> HOST_INLINE T host_shfl_up(int line, unsigned mask, T v, int d, int w = 32)
{
    const int to = host_lane() - d;
    return host_exchange(mask, v, to & 31, line, to < (host_lane() & ~(w - 1)));
}
#define __shfl_sync(...)      host_shfl(__LINE__, __VA_ARGS__)
#define __shfl_xor_sync(...)  host_shfl_xor(__LINE__, __VA_ARGS__)
#define __shfl_down_sync(...) host_shfl_down(__LINE__, __VA_ARGS__)
#define __shfl_up_sync(...)   host_shfl_up(__LINE__, __VA_ARGS__)
#define __ballot_sync(m, p)   kernel_rt->ballot(m, (p) ? 1 : 0, __LINE__)
#define __any_sync(m, p)      (kernel_rt->ballot(m, (p) ? 1 : 0, __LINE__) != 0)
#define __all_sync(m, p)      (kernel_rt->ballot(m, (p) ? 0 : 1, __LINE__) == 0)

/* Arithmetic: with -ffp-contract=off each operator rounds by itself -------------------------- */

HOST_INLINE float __fadd_rn(float a, float b) { return a + b; }
HOST_INLINE float __fsub_rn(float a, float b) { return a - b; }
HOST_INLINE float __fmul_rn(float a, float b) { return a * b; }
HOST_INLINE float __fdiv_rn(float a, float b) { return a / b; }
HOST_INLINE float __frcp_rn(float a) { return 1.0f / a; }
HOST_INLINE float __fsqrt_rn(float a) { return __builtin_sqrtf(a); }
HOST_INLINE float __fmaf_rn(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
HOST_INLINE double __dadd_rn(double a, double b) { return a + b; }
HOST_INLINE double __dsub_rn(double a, double b) { return a - b; }
HOST_INLINE double __dmul_rn(double a, double b) { return a * b; }
HOST_INLINE double __fma_rn(double a, double b, double c) { return __builtin_fma(a, b, c); }
HOST_INLINE float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
HOST_INLINE double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
HOST_INLINE float fmaf(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
HOST_INLINE float sqrt(float a) { return __builtin_sqrtf(a); }
HOST_INLINE double sqrt(double a) { return __builtin_sqrt(a); }
HOST_INLINE float sqrtf(float a) { return __builtin_sqrtf(a); }
HOST_INLINE float fabsf(float a) { return __builtin_fabsf(a); }
HOST_INLINE float fminf(float a, float b) { return __builtin_fminf(a, b); }
HOST_INLINE float fmaxf(float a, float b) { return __builtin_fmaxf(a, b); }

template <class A, class B> HOST_INLINE A host_bits(B b)
{
    static_assert(sizeof(A) == sizeof(B), "a pattern keeps its size");
    A a;
    __builtin_memcpy(&a, &b, sizeof a);
    return a;
}
#define __uint_as_float(x)      host_bits<float>((unsigned)(x))
#define __int_as_float(x)       host_bits<float>((int)(x))
#define __float_as_uint(x)      host_bits<unsigned>((float)(x))
#define __float_as_int(x)       host_bits<int>((float)(x))
#define __longlong_as_double(x) host_bits<double>((long long)(x))
#define __double_as_longlong(x) host_bits<long long>((double)(x))
HOST_INLINE int __popc(unsigned x) { return __builtin_popcount(x); }
HOST_INLINE int __clz(int x) { return x == 0 ? 32 : __builtin_clz((unsigned)x); }
HOST_INLINE int __ffs(int x) { return __builtin_ffs(x); }
HOST_INLINE unsigned __umulhi(unsigned a, unsigned b)
{
    return (unsigned)((unsigned long long)a * b >> 32);
}
HOST_INLINE unsigned long long __umul64hi(unsigned long long a, unsigned long long b)
{
    return (unsigned long long)((unsigned __int128)a * b >> 64);
}

/* Vectors ----------------------------------------------------------------------------------- */

/* A whole vector is one access, as on the device: parts alone would be one for each. */
#define HOST_WHOLE(N, T, n, bytes, ...)                                                 \
    typedef T host_##N __attribute__((vector_size(bytes), aligned(bytes > 16 ? 16 : bytes), may_alias)); \
    struct __align__(bytes > 16 ? 16 : bytes) N {                                       \
        T __VA_ARGS__;                                                                  \
        N() = default;                                                                  \
        N(const N &o) { *this = o; }                                                    \
        __forceinline__ N &operator=(const N &o)                                        \
        {                                                                               \
            *(host_##N *)this = *(const host_##N *)&o;                                  \
            return *this;                                                               \
        }                                                                               \
        HOST_FROM_##n(N, T)                                                             \
    };                                                                                  \
    HOST_MAKE_##n(N, T)
#define HOST_FROM_2(N, T) N(T a, T b) { *(host_##N *)this = (host_##N){a, b}; }
#define HOST_FROM_4(N, T) N(T a, T b, T c, T d) { *(host_##N *)this = (host_##N){a, b, c, d}; }
#define HOST_MAKE_2(N, T) HOST_INLINE N make_##N(T a, T b) { return N(a, b); }
#define HOST_MAKE_4(N, T) HOST_INLINE N make_##N(T a, T b, T c, T d) { return N(a, b, c, d); }
#define HOST_VECTOR(T, N2, N4)                 \
    HOST_WHOLE(N2, T, 2, 2 * sizeof(T), x, y)  \
    HOST_WHOLE(N4, T, 4, 4 * sizeof(T), x, y, z, w)
HOST_VECTOR(float, float2, float4)
HOST_VECTOR(int, int2, int4)
HOST_VECTOR(unsigned, uint2, uint4)
HOST_VECTOR(short, short2, short4)
HOST_VECTOR(unsigned short, ushort2, ushort4)
HOST_VECTOR(signed char, char2, char4)
HOST_VECTOR(unsigned char, uchar2, uchar4)
HOST_VECTOR(long long, longlong2, longlong4)
HOST_VECTOR(unsigned long long, ulonglong2, ulonglong4)
HOST_VECTOR(double, double2, double4)
template <class T> HOST_INLINE T __ldg(const T *p) { return *p; }

/* Atomics: fibers change at barriers alone, so plain code is atomic -------------------------- */

#define HOST_UNSEEN static __noinline__ __attribute__((no_sanitize("thread")))
#define HOST_ATOMIC(name, expr)                                                     \
    template <class T> HOST_UNSEEN T name(T *p, decltype(T() + T()) v)              \
    {                                                                               \
        kernel_rt->atomic(p, sizeof *p, __builtin_return_address(0));               \
        const T old = *(volatile T *)p;                                             \
        *(volatile T *)p = (T)(expr);                                               \
        return old;                                                                 \
    }
HOST_ATOMIC(atomicAdd, old + v)
HOST_ATOMIC(atomicMax, old > (T)v ? old : v)
HOST_ATOMIC(atomicMin, old < (T)v ? old : v)
HOST_ATOMIC(atomicExch, v)
HOST_ATOMIC(atomicOr, old | v)
HOST_ATOMIC(atomicAnd, old & v)
template <class T> HOST_UNSEEN T atomicCAS(T *p, T want, T v)
{
    kernel_rt->atomic(p, sizeof *p, __builtin_return_address(0));
    const T old = *(volatile T *)p;
    if (old == want)
        *(volatile T *)p = v;
    return old;
}

/* What the prelude of the dialect writes as PTX ---------------------------------------------- */

/* Numbers of 16 bits as patterns, to the nearest, ties to even; NaN is one pattern, whatever it was. */
typedef float host_v4f __attribute__((vector_size(16)));
typedef short host_v8h __attribute__((vector_size(16)));
HOST_INLINE unsigned short f16_of_f32(float x)
{
    return x != x ? 0x7fff
                  : (unsigned short)((host_v8h)__builtin_ia32_vcvtps2ph((host_v4f){x}, 0))[0];
}
HOST_INLINE float f32_of_f16(unsigned short x)
{
    return (x & 0x7fff) > 0x7c00 ? host_bits<float>(0x7fffffffu)
                                 : ((host_v4f)__builtin_ia32_vcvtph2ps((host_v8h){(short)x}))[0];
}
HOST_INLINE float f32_of_bf16(unsigned short x) { return host_bits<float>((unsigned)x << 16); }
HOST_INLINE unsigned short bf16_of_f32(float x)
{
    const unsigned b = host_bits<unsigned>(x);
    return x != x ? 0x7fff : (unsigned short)((b + 0x7fff + (b >> 16 & 1)) >> 16);
}
/* cvt.rna.tf32: to the nearest, ties away from zero; 10 bits of the mantissa stay. */
HOST_INLINE unsigned tf32_of_f32(float x)
{
    const unsigned b = host_bits<unsigned>(x);
    return x != x ? 0x7fffffff : (b & 0x7f800000) == 0x7f800000 ? b : (b + 0x1000) & ~0x1fffu;
}

/* Copies that end at the wait, or at any time before it, as the engine likes. */
#define cp_async4(to, from)           kernel_rt->copy_async(to, from, 4, 4, __LINE__)
#define cp_async8(to, from)           kernel_rt->copy_async(to, from, 8, 8, __LINE__)
#define cp_async16(to, from)          kernel_rt->copy_async(to, from, 16, 16, __LINE__)
#define cp_async4_zfill(to, from, n)  kernel_rt->copy_async(to, from, 4, n, __LINE__)
#define cp_async8_zfill(to, from, n)  kernel_rt->copy_async(to, from, 8, n, __LINE__)
#define cp_async16_zfill(to, from, n) kernel_rt->copy_async(to, from, 16, n, __LINE__)
#define cp_async_commit()             kernel_rt->copy_commit()
#define cp_async_wait(n)              kernel_rt->copy_wait(n)

/* Matrix instructions: d, a, b, c are the registers of this lane, as PTX lays out the fragments; c += a * b. */
#define ldmatrix_x1(d, p)             kernel_rt->ldmatrix(d, p, 1, 0, __LINE__)
#define ldmatrix_x2(d, p)             kernel_rt->ldmatrix(d, p, 2, 0, __LINE__)
#define ldmatrix_x4(d, p)             kernel_rt->ldmatrix(d, p, 4, 0, __LINE__)
#define ldmatrix_x1_trans(d, p)       kernel_rt->ldmatrix(d, p, 1, 1, __LINE__)
#define ldmatrix_x2_trans(d, p)       kernel_rt->ldmatrix(d, p, 2, 1, __LINE__)
#define ldmatrix_x4_trans(d, p)       kernel_rt->ldmatrix(d, p, 4, 1, __LINE__)
#define mma_m16n8k16_f16(c, a, b)     kernel_rt->mma(c, a, b, c, MMA_M16N8K16_F16, __LINE__)
#define mma_m16n8k16_bf16(c, a, b)    kernel_rt->mma(c, a, b, c, MMA_M16N8K16_BF16, __LINE__)
#define mma_m16n8k8_tf32(c, a, b)     kernel_rt->mma(c, a, b, c, MMA_M16N8K8_TF32, __LINE__)
#define mma_m16n8k32_s8(c, a, b)      kernel_rt->mma(c, a, b, c, MMA_M16N8K32_S8, __LINE__)

/* Products that four warps begin together: sm_90a. Descriptors are of matrices swizzled by 128 bytes. */
HOST_INLINE unsigned long long matrix_descriptor(const void *p, unsigned leading, unsigned stride)
{
    return (unsigned long long)(kernel_rt->shared_address(p) >> 4 & 0x3fff) |
           (unsigned long long)(leading >> 4) << 16 | (unsigned long long)(stride >> 4) << 32 | 1ull << 62;
}
#define HOST_KIND_f16  MMA_M16N8K16_F16
#define HOST_KIND_bf16 MMA_M16N8K16_BF16
HOST_INLINE void host_wgmma(int line, unsigned n, unsigned kind, unsigned turned_a, unsigned turned_b,
                            float *c, unsigned long long a, unsigned long long b)
{
    const wgmma_operands of = {a, b, n, kind, turned_a, turned_b};
    kernel_rt->wgmma(c, &of, line);
}
#define HOST_WGMMA(n, type, ta, tb, c, a, b) host_wgmma(__LINE__, n, HOST_KIND_##type, ta, tb, c, a, b)
#define wgmma(n, type, ta, tb, c, a, b) HOST_WGMMA(n, type, ta, tb, c, a, b)
#define wgmma_fence()                 kernel_rt->wgmma_fence(__LINE__)
#define wgmma_commit()                kernel_rt->wgmma_commit(__LINE__)
#define wgmma_wait(left, n, c)        kernel_rt->wgmma_wait(left, __LINE__)
#define fence_async_proxy()           kernel_rt->async_proxy()

/* Entries: void kernel_entry_NAME(void **arguments), and what its parameters are ------------- */

template <unsigned... I> struct host_indices {};
template <unsigned N, unsigned... I> struct host_upto : host_upto<N - 1, N - 1, I...> {};
template <unsigned... I> struct host_upto<0, I...> { typedef host_indices<I...> type; };
template <class... P, unsigned... I>
HOST_INLINE void host_apply(void (*k)(P...), void **a, host_indices<I...>)
{
    (void)a;
    k(*(P *)a[I]...);
}
template <class... P> HOST_INLINE void host_call(void (*k)(P...), void **a)
{
    host_apply(k, a, typename host_upto<sizeof...(P)>::type());
}
template <class... P> constexpr kernel_info host_info_of(void (*)(P...), unsigned threads)
{
    return kernel_info{sizeof...(P), threads, {(unsigned)sizeof(P)...}};
}
#define HOST_VISIBLE extern "C" __attribute__((visibility("default")))
#define HOST_ENTRY(name, most)                                                      \
    HOST_VISIBLE void kernel_entry_##name(void **a) { host_call(name, a); }         \
    HOST_VISIBLE const kernel_info kernel_info_##name = host_info_of(name, most);
#endif
