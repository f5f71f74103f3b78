/* Kernels of portable ops, compiled twice from this one text: by a C compiler for the CPU and by
 * NVRTC for CUDA, both without contraction. Law: what is written here is what is computed: IEEE
 * +, -, *, / of float64, one after another, and sums of integers that no order can change.
 * `source.py` writes the constants and tables (PER_LN2, POWERS, ...) in front.
 *
 * MAP(i, n)      loops over every i below n
 * EACH(i, n)     loops over tensors; inside, MAP loops over the elements of one
 * ROWS(r, n)     loops over every row; inside, LANES(j, m) loops over its elements. SUM_OF_LANES
 *                and MAX_OF_LANES join what the lanes (the threads of a row) computed. On a GPU a
 *                row is computed by a block, or by one of several warps of a block
 * TILES(t, n)    columns, in column_sums.c
 */
#ifdef __CUDACC__
typedef long long i64;
typedef unsigned int u32;
#define INLINE static __device__ __forceinline__
#define KERNEL extern "C" __global__ void __launch_bounds__(512)
#define TABLE static __device__ const
#define SIMD(clause)
#define RESTRICT __restrict__
#define MAP(i, n)                                                                    \
    for (i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x; i < (n);               \
         i += (i64)gridDim.x * blockDim.x)
#define EACH(i, n) for (i64 i = blockIdx.y; i < (n); i += gridDim.y)
#define ROWS(r, n)                                                                   \
    for (i64 r = blockIdx.x * (i64)blockDim.y + threadIdx.y; r < (n);               \
         r += (i64)gridDim.x * blockDim.y)
#define LANES(j, n) for (i64 j = threadIdx.x; j < (n); j += blockDim.x)
#define LEADER (threadIdx.x == 0)
#define BITS_OF(x) __double_as_longlong(x)
#define FROM_BITS(b) __longlong_as_double(b)
#define FLOAT_BITS(x) ((u32)__float_as_int(x))
#define FLOAT_FROM_BITS(b) __int_as_float((int)(b))

INLINE double SUM_OF_LANES(double value)
{
    __shared__ double seen[32];
    for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffu, value, step);
    if (blockDim.x == 32) return value;
    __syncthreads();
    if (threadIdx.x % 32 == 0) seen[threadIdx.x / 32] = value;
    __syncthreads();
    value = 0.0;
    for (int warp = 0; warp < (int)(blockDim.x + 31) / 32; warp++) value += seen[warp];
    return value;
}

INLINE i64 MAX_OF_LANES(i64 value)
{
    __shared__ i64 seen[32];
    for (int step = 16; step > 0; step /= 2) {
        i64 other = __shfl_xor_sync(0xffffffffu, value, step);
        value = other > value ? other : value;
    }
    if (blockDim.x == 32) return value;
    __syncthreads();
    if (threadIdx.x % 32 == 0) seen[threadIdx.x / 32] = value;
    __syncthreads();
    value = 0;
    for (int warp = 0; warp < (int)(blockDim.x + 31) / 32; warp++)
        value = seen[warp] > value ? seen[warp] : value;
    return value;
}
#else
#include <math.h>
#include <stdint.h>
#include <string.h>
typedef int64_t i64;
typedef uint32_t u32;
#define INLINE static inline
#define KERNEL void
#define TABLE static const
#define DO(text) _Pragma(#text)
#define SIMD(clause) DO(omp simd clause)
#define RESTRICT restrict
#define MAP(i, n)                                              \
    DO(omp parallel for simd schedule(static) if ((n) > 16384)) \
    for (i64 i = 0; i < (n); i++)
#define EACH(i, n) for (i64 i = 0; i < (n); i++)
#define ROWS(r, n)                                       \
    DO(omp parallel for schedule(static) if ((n) > 15)) \
    for (i64 r = 0; r < (n); r++)
#define LANES(j, n) for (i64 j = 0; j < (n); j++)
#define LEADER 1
#define SUM_OF_LANES(value) (value)
#define MAX_OF_LANES(value) (value)

/* A value of one type with the bits of another: C has no other defined way to do it. */
#define REINTERPRET(NAME, FROM, TO)     \
    INLINE TO NAME(FROM value)          \
    {                                   \
        TO result;                      \
        memcpy(&result, &value, sizeof result); \
        return result;                  \
    }
REINTERPRET(BITS_OF, double, i64)
REINTERPRET(FROM_BITS, i64, double)
REINTERPRET(FLOAT_BITS, float, u32)
REINTERPRET(FLOAT_FROM_BITS, u32, float)
#endif

#define MAGNITUDE 0x7fffffffffffffffLL
#define FLOAT_MAGNITUDE(x) (FLOAT_BITS(x) & 0x7fffffff)
#define DOUBLE_MAGNITUDE(x) (BITS_OF(x) & MAGNITUDE)
#define LARGER(a, b) ((a) > (b) ? (a) : (b))

/* Return the index at which row r of matrices (batch, m, n) begins; `down` is the stride of rows,
 * `between` that of matrices. */
INLINE i64 row_at(i64 r, i64 m, i64 between, i64 down)
{
    i64 matrix = (u32)r / (u32)m;
    return matrix * between + (r - matrix * m) * down;
}
