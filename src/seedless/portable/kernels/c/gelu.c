/* erf, as in exact/elementary.py operation by operation, and the activation that needs it.
 *
 * erf is a polynomial around the nearest centre, with coefficients from a table. Where a processor looks
 * up one element at a time, these loads take most of the time. So a CPU computes LOOKUPS elements at a
 * time: it loads all coefficients of each one's centre at once, and transposes them. */

/* Write how far x is from its centre, and return the table's row of the centre. */
INLINE i64 find_centre(double x, double *rest)
{
    double held = x < -ERF_EDGE ? -ERF_EDGE : x > ERF_EDGE ? ERF_EDGE : x;
    double centre = rint(held * ERF_STEP);
    *rest = held - centre * (1.0 / ERF_STEP);
    /* The integer is read from the sum's low bits; a NaN counts as the centre 0. */
    return BITS_OF((centre == centre ? centre : 0.0) + 0x1.8p52) - BITS_OF(0x1.8p52) + ERF_ROWS;
}

INLINE double gelu_of(double v, double erf) { return (erf + 1.0) * 0.5 * v; }

INLINE double gelu_gradient(double grad, double v, double erf)
{
    double slope = exponential(v * v * -0.5) * ROOT_2_PER_PI;
    return (erf + 1.0 + slope * v) * 0.5 * grad;
}

#ifdef __CUDACC__
INLINE double error_function(double x)
{
    double rest;
    const double *terms = ERF + find_centre(x, &rest) * ERF_STRIDE;
    double out = terms[ERF_DEGREE];
    for (int power = ERF_DEGREE - 1; power >= 0; power--) out = out * rest + terms[power];
    return out;
}

KERNEL gelu(const float *x, float *y, i64 n)
{
    MAP(i, n)
    {
        double v = x[i];
        y[i] = (float)gelu_of(v, error_function(v * ROOT_HALF));
    }
}

KERNEL gelu_backward(const float *grad, const float *x, float *out, i64 n)
{
    MAP(i, n)
    {
        double v = x[i];
        out[i] = (float)gelu_gradient((double)grad[i], v, error_function(v * ROOT_HALF));
    }
}
#else
#ifdef __AVX2__
#include <immintrin.h>
#endif
#define LOOKUPS 32

/* Write the coefficients of each row: (ERF_STRIDE, LOOKUPS) from (LOOKUPS, ERF_STRIDE). */
INLINE void look_up_terms(const i64 *rows, double *terms)
{
#ifdef __AVX2__
    for (i64 k = 0; k < LOOKUPS; k += 4) {
        for (i64 power = 0; power < ERF_STRIDE; power += 4) {
            __m256d a = _mm256_loadu_pd(ERF + rows[k] * ERF_STRIDE + power);
            __m256d b = _mm256_loadu_pd(ERF + rows[k + 1] * ERF_STRIDE + power);
            __m256d c = _mm256_loadu_pd(ERF + rows[k + 2] * ERF_STRIDE + power);
            __m256d d = _mm256_loadu_pd(ERF + rows[k + 3] * ERF_STRIDE + power);
            __m256d even_ab = _mm256_unpacklo_pd(a, b), odd_ab = _mm256_unpackhi_pd(a, b);
            __m256d even_cd = _mm256_unpacklo_pd(c, d), odd_cd = _mm256_unpackhi_pd(c, d);
            double *to = terms + power * LOOKUPS + k;
            _mm256_storeu_pd(to, _mm256_permute2f128_pd(even_ab, even_cd, 0x20));
            _mm256_storeu_pd(to + LOOKUPS, _mm256_permute2f128_pd(odd_ab, odd_cd, 0x20));
            _mm256_storeu_pd(to + 2 * LOOKUPS, _mm256_permute2f128_pd(even_ab, even_cd, 0x31));
            _mm256_storeu_pd(to + 3 * LOOKUPS, _mm256_permute2f128_pd(odd_ab, odd_cd, 0x31));
        }
    }
#else
    for (i64 k = 0; k < LOOKUPS; k++)
        for (i64 power = 0; power <= ERF_DEGREE; power++)
            terms[power * LOOKUPS + k] = ERF[rows[k] * ERF_STRIDE + power];
#endif
}

/* Write v = x, zeros after `count` elements, and erf(v / sqrt(2)), LOOKUPS of each. */
INLINE void error_functions(const float *x, i64 count, double *v, double *erf)
{
    i64 rows[LOOKUPS];
    double rest[LOOKUPS], terms[ERF_STRIDE * LOOKUPS];
    if (count == LOOKUPS) {
        SIMD()
        for (i64 k = 0; k < LOOKUPS; k++) v[k] = (double)x[k];
    } else {
        for (i64 k = 0; k < LOOKUPS; k++) v[k] = k < count ? (double)x[k] : 0.0;
    }
    SIMD()
    for (i64 k = 0; k < LOOKUPS; k++) rows[k] = find_centre(v[k] * ROOT_HALF, rest + k);
    look_up_terms(rows, terms);
    SIMD()
    for (i64 k = 0; k < LOOKUPS; k++) {
        double out = terms[ERF_DEGREE * LOOKUPS + k];
        for (int power = ERF_DEGREE - 1; power >= 0; power--)
            out = out * rest[k] + terms[power * LOOKUPS + k];
        erf[k] = out;
    }
}

#define LOOKUP_BLOCKS(first, n)                                  \
    DO(omp parallel for schedule(static) if ((n) > 16384))        \
    for (i64 first = 0; first < (n); first += LOOKUPS)

KERNEL gelu(const float *x, float *y, i64 n)
{
    LOOKUP_BLOCKS(first, n)
    {
        double v[LOOKUPS], erf[LOOKUPS];
        i64 count = n - first < LOOKUPS ? n - first : LOOKUPS;
        float out[LOOKUPS];
        error_functions(x + first, count, v, erf);
        SIMD()
        for (i64 k = 0; k < LOOKUPS; k++) out[k] = (float)gelu_of(v[k], erf[k]);
        for (i64 k = 0; k < count; k++) y[first + k] = out[k];
    }
}

KERNEL gelu_backward(const float *grad, const float *x, float *out, i64 n)
{
    LOOKUP_BLOCKS(first, n)
    {
        double v[LOOKUPS], erf[LOOKUPS];
        i64 count = n - first < LOOKUPS ? n - first : LOOKUPS;
        error_functions(x + first, count, v, erf);
        SIMD()
        for (i64 k = 0; k < count; k++)
            out[first + k] = (float)gelu_gradient((double)grad[first + k], v[k], erf[k]);
    }
}
#endif
