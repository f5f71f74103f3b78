/* What cpu_product.c multiplies: the exponents of operands, and operands on their grids, packed for the
 * processor's vectors. */

#ifndef __CUDACC__
/* VECTOR: doubles that one instruction computes. A tile has TILE_ROWS rows and up to TILE_VECTORS
 * vectors of columns: its sums fill the registers. MULTIPLY_ADD(a, x, sum): a number a, vectors x, sum. */
#define TILE_VECTORS 3
#if defined(__AVX512F__)
#include <immintrin.h>
#define VECTOR 8
#define TILE_ROWS 8
typedef __m512d Vector;
#define LOAD(p) _mm512_loadu_pd(p)
#define STORE(p, v) _mm512_storeu_pd(p, v)
#define MULTIPLY_ADD(a, x, sum) _mm512_fmadd_pd(_mm512_set1_pd(a), x, sum)
#elif defined(__AVX2__) && defined(__FMA__)
#include <immintrin.h>
#define VECTOR 4
#define TILE_ROWS 4
typedef __m256d Vector;
#define LOAD(p) _mm256_loadu_pd(p)
#define STORE(p, v) _mm256_storeu_pd(p, v)
#define MULTIPLY_ADD(a, x, sum) _mm256_fmadd_pd(_mm256_set1_pd(a), x, sum)
#elif defined(__aarch64__)
#include <arm_neon.h>
#define VECTOR 2
#define TILE_ROWS 8
typedef float64x2_t Vector;
#define LOAD(p) vld1q_f64(p)
#define STORE(p, v) vst1q_f64(p, v)
#define MULTIPLY_ADD(a, x, sum) vfmaq_n_f64(sum, x, a)
#else /* two operations, of which the first is exact */
#define VECTOR 2
#define TILE_ROWS 4
typedef double Vector __attribute__((vector_size(16), aligned(8), may_alias));
#define LOAD(p) (*(const Vector *)(p))
#define STORE(p, v) (*(Vector *)(p) = (v))
#define MULTIPLY_ADD(a, x, sum) ((sum) + (a) * (x))
#endif
#define TILE_COLUMNS (TILE_VECTORS * VECTOR)
#define CHUNK 128
#define BLOCK_ROWS 192    /* of the result that are computed at a time: both operands' chunks and */
#define BLOCK_COLUMNS 192 /* the sums stay in a core's cache; multiples of a tile's sides */
#define LINES 256         /* whose exponents are found at a time */
#define ALWAYS_INLINE static inline __attribute__((always_inline))

/* An operand of a product: `lines`, rows of the left one or columns of the right one, each with an
 * exponent in `tops`; with the strides of matrices, of lines, and along a line. */
typedef struct {
    const float *values;
    i64 *tops;
    i64 lines, length, matrix, step, along;
} LinesOf;

/* Each thread's block of the operands, packed, and of the sums in two parts. */
static _Thread_local _Alignas(64) double packed_left[BLOCK_ROWS * CHUNK];
static _Thread_local _Alignas(64) double packed_right[BLOCK_COLUMNS * CHUNK];
static _Thread_local _Alignas(64) double sums_high[BLOCK_ROWS * BLOCK_COLUMNS];
static _Thread_local _Alignas(64) double sums_low[BLOCK_ROWS * BLOCK_COLUMNS];

/* Write the exponents of `count` lines, at most LINES, from x on. */
INLINE void find_exponents_of(const float *x, i64 *tops, i64 count, i64 length, i64 step, i64 along)
{
    u32 seen[LINES];
    if (step == 1 && along != 1) { /* neighbouring lines are contiguous */
        for (i64 k = 0; k < count; k++) seen[k] = 0;
        for (i64 i = 0; i < length; i++) {
            const float *at = x + i * along;
            SIMD()
            for (i64 k = 0; k < count; k++) {
                u32 bits = FLOAT_MAGNITUDE(at[k]);
                seen[k] = LARGER(seen[k], bits);
            }
        }
    } else {
        for (i64 k = 0; k < count; k++) {
            const float *at = x + k * step;
            u32 top = 0;
            if (along == 1) {
                SIMD(reduction(max : top))
                for (i64 i = 0; i < length; i++) {
                    u32 bits = FLOAT_MAGNITUDE(at[i]);
                    top = LARGER(top, bits);
                }
            } else {
                for (i64 i = 0; i < length; i++) {
                    u32 bits = FLOAT_MAGNITUDE(at[i * along]);
                    top = LARGER(top, bits);
                }
            }
            seen[k] = top;
        }
    }
    for (i64 k = 0; k < count; k++) tops[k] = float_exponent(seen[k]);
}

/* Write the exponents of all lines of all matrices; of one where they are the same memory. */
static void find_all_exponents(LinesOf of, i64 batch)
{
    i64 parts = (of.lines + LINES - 1) / LINES, matrices = of.matrix ? batch : 1;
    DO(omp parallel for schedule(static) if (matrices * parts > 1 && matrices * of.lines * of.length > 65536))
    for (i64 part = 0; part < matrices * parts; part++) {
        i64 b = part / parts, first = part % parts * LINES;
        i64 count = of.lines - first < LINES ? of.lines - first : LINES;
        find_exponents_of(of.values + b * of.matrix + first * of.step, of.tops + b * of.lines + first,
                          count, of.length, of.step, of.along);
    }
}

/* Round `length` elements of each of `count` lines to grids: q = rint(x up), one after another, each
 * line's at a distance of CHUNK. */
INLINE void pack_lines(const float *x, const double *up, double *q, i64 count, i64 length, i64 step,
                       i64 along)
{
    for (i64 i = 0; i < count; i++) {
        const float *line = x + i * step;
        double by = up[i], *to = q + i * CHUNK;
        if (along == 1) {
            SIMD()
            for (i64 k = 0; k < length; k++) to[k] = rint((double)line[k] * by);
        } else {
            for (i64 k = 0; k < length; k++) to[k] = rint((double)line[k * along] * by);
        }
    }
}

/* The same for up to `side` neighbouring lines at a time: element k of them all, then k + 1. Strips of
 * `side` lines follow one another, and the last may be narrower, a multiple of `least`. */
INLINE void pack_strips(const float *x, const double *up, double *q, i64 count, i64 length, i64 step,
                        i64 along, i64 side, i64 least)
{
    double lines[VECTOR * CHUNK];
    for (i64 first = 0; first < count; first += side) {
        i64 held = count - first < side ? count - first : side;
        i64 width = held == side ? side : (held + least - 1) / least * least;
        const float *from = x + first * step;
        double *to = q + first * CHUNK;
        if (step == 1 && held == side) {
            for (i64 k = 0; k < length; k++) {
                SIMD()
                for (i64 i = 0; i < side; i++)
                    to[k * side + i] = rint((double)from[k * along + i] * up[first + i]);
            }
        } else if (step == 1) {
            for (i64 k = 0; k < length; k++)
                for (i64 i = 0; i < held; i++)
                    to[k * width + i] = rint((double)from[k * along + i] * up[first + i]);
        } else { /* the lines one by one, some at a time, then across */
            for (i64 i = 0; i < held; i += VECTOR) {
                i64 some = held - i < VECTOR ? held - i : VECTOR;
                pack_lines(from + i * step, up + first + i, lines, some, length, step, along);
                for (i64 k = 0; k < length; k++)
                    for (i64 j = 0; j < some; j++) to[k * width + i + j] = lines[j * CHUNK + k];
            }
        }
    }
}
#endif
