/* Functions of whole rows of float32: (rows, n), contiguous. Each sum is exact: the largest
 * magnitude of the addends gives the grid, and the integers on it are added. */

/* An integer in the order of floats, all NaNs at the two ends, and the float it belongs to. */
INLINE u32 order_key(float x)
{
    u32 bits = FLOAT_BITS(x);
    return bits & 0x80000000 ? ~bits : bits | 0x80000000;
}
INLINE float from_order_key(u32 key)
{
    return FLOAT_FROM_BITS(key & 0x80000000 ? key & 0x7fffffff : ~key);
}

KERNEL layer_norm(const float *x, const float *weight, const float *bias, float *y, float *mean,
                  float *scale, i64 rows, i64 n, double eps)
{
    ROWS(r, rows)
    {
        const float *row = x + r * n;
        /* The largest and the smallest element give both grids: x - centre grows with x, and its square
         * with its magnitude, after rounding too. */
        u32 last = 0, first = 0;
        SIMD(reduction(max : last, first))
        LANES(j, n)
        {
            u32 key = order_key(row[j]), reversed = ~key;
            last = LARGER(last, key);
            first = LARGER(first, reversed);
        }
        float most = from_order_key((u32)MAX_OF_LANES(last));
        float least = from_order_key(~(u32)MAX_OF_LANES(first));
        i64 e = float_exponent(LARGER(FLOAT_MAGNITUDE(most), FLOAT_MAGNITUDE(least)));
        double up = power_of_two(SUM_BITS - e), sum = 0.0;
        SIMD(reduction(+ : sum))
        LANES(j, n) sum += rint((double)row[j] * up);
        double centre = on_grid(SUM_OF_LANES(sum), e) / (double)n;
        double above = (double)most - centre, below = (double)least - centre;
        e = exponent_of(LARGER(DOUBLE_MAGNITUDE(above * above), DOUBLE_MAGNITUDE(below * below)));
        up = power_of_two(SUM_BITS - e), sum = 0.0;
        SIMD(reduction(+ : sum))
        LANES(j, n)
        {
            double gap = (double)row[j] - centre;
            sum += rint(gap * gap * up);
        }
        double variance = on_grid(SUM_OF_LANES(sum), e) / (double)n;
        float rounded = (float)centre, by = (float)(1.0 / root(variance + eps));
        SIMD()
        LANES(j, n)
        {
            double v = ((double)row[j] - (double)rounded) * (double)by;
            if (weight) v = v * (double)weight[j];
            if (bias) v = v + (double)bias[j];
            y[r * n + j] = (float)v;
        }
        if (LEADER) mean[r] = rounded, scale[r] = by;
    }
}

KERNEL layer_norm_backward(const float *grad, const float *x, const float *mean, const float *scale,
                           const float *weight, float *out, i64 rows, i64 n)
{
    ROWS(r, rows)
    {
        const float *g = grad + r * n, *row = x + r * n;
        double centre = mean[r], by = scale[r];
        i64 top = 0, top_product = 0;
        SIMD(reduction(max : top, top_product))
        LANES(j, n)
        {
            double v = weight ? (double)g[j] * (double)weight[j] : (double)g[j];
            double product = v * (((double)row[j] - centre) * by);
            i64 bits = BITS_OF(v) & MAGNITUDE, more = BITS_OF(product) & MAGNITUDE;
            top = LARGER(top, bits);
            top_product = LARGER(top_product, more);
        }
        i64 e = exponent_of(MAX_OF_LANES(top)), e_product = exponent_of(MAX_OF_LANES(top_product));
        double up = power_of_two(SUM_BITS - e), up_product = power_of_two(SUM_BITS - e_product);
        double sum = 0.0, sum_product = 0.0;
        SIMD(reduction(+ : sum, sum_product))
        LANES(j, n)
        {
            double v = weight ? (double)g[j] * (double)weight[j] : (double)g[j];
            sum += rint(v * up);
            sum_product += rint(v * (((double)row[j] - centre) * by) * up_product);
        }
        double first = on_grid(SUM_OF_LANES(sum), e) / (double)n;
        double second = on_grid(SUM_OF_LANES(sum_product), e_product) / (double)n;
        SIMD()
        LANES(j, n)
        {
            double v = weight ? (double)g[j] * (double)weight[j] : (double)g[j];
            double normed = ((double)row[j] - centre) * by;
            out[r * n + j] = (float)((v - first - normed * second) * by);
        }
    }
}

/* `weights` is memory for the exponentials of each row. */
KERNEL softmax(const float *x, double *weights, float *y, i64 rows, i64 n)
{
    ROWS(r, rows)
    {
        const float *row = x + r * n;
        double *w = weights + r * n;
        /* Floats in the order of integers, a NaN above all: the largest, without branches. */
        i64 top = 0;
        SIMD(reduction(max : top))
        LANES(j, n)
        {
            i64 bits = FLOAT_BITS(row[j]);
            i64 key = (bits & 0x7fffffff) > 0x7f800000 ? 0x1ffffffffLL
                        : bits & 0x80000000              ? 0xffffffffLL - bits
                                                         : bits + 0x80000000LL;
            top = LARGER(top, key);
        }
        top = MAX_OF_LANES(top);
        float most = top > 0xffffffffLL  ? (float)NOT_A_NUMBER
                     : top < 0x80000000LL ? FLOAT_FROM_BITS((u32)(0xffffffffLL - top))
                                          : FLOAT_FROM_BITS((u32)(top - 0x80000000LL));
        double centre = (double)(most + 0.0f);
        top = 0;
        SIMD(reduction(max : top))
        LANES(j, n)
        {
            w[j] = exponential((double)row[j] - centre);
            i64 bits = BITS_OF(w[j]) & MAGNITUDE;
            top = LARGER(top, bits);
        }
        i64 e = exponent_of(MAX_OF_LANES(top));
        double up = power_of_two(SUM_BITS - e), sum = 0.0;
        SIMD(reduction(+ : sum))
        LANES(j, n) sum += rint(w[j] * up);
        double norm = on_grid(SUM_OF_LANES(sum), e);
        SIMD()
        LANES(j, n) y[r * n + j] = (float)(w[j] / norm);
    }
}

KERNEL softmax_backward(const float *grad, const float *y, float *out, i64 rows, i64 n)
{
    ROWS(r, rows)
    {
        const float *g = grad + r * n, *row = y + r * n;
        i64 top = 0;
        SIMD(reduction(max : top))
        LANES(j, n)
        {
            i64 bits = BITS_OF((double)g[j] * (double)row[j]) & MAGNITUDE;
            top = LARGER(top, bits);
        }
        i64 e = exponent_of(MAX_OF_LANES(top));
        double up = power_of_two(SUM_BITS - e), sum = 0.0;
        SIMD(reduction(+ : sum))
        LANES(j, n) sum += rint((double)g[j] * (double)row[j] * up);
        double whole = on_grid(SUM_OF_LANES(sum), e);
        SIMD()
        LANES(j, n)
        {
            double v = row[j], product = (double)g[j] * v;
            out[r * n + j] = (float)(product - v * whole);
        }
    }
}

/* The exponents of the grids of rows, which begin where `row_at` says. */

#define ROW_EXPONENTS(NAME, TYPE, MAGNITUDE_BITS, EXPONENT)                                       \
    KERNEL NAME(const TYPE *x, i64 *tops, i64 batch, i64 m, i64 n, i64 between, i64 down)    \
    {                                                                                        \
        ROWS(r, batch *m)                                                                    \
        {                                                                                    \
            const TYPE *row = x + row_at(r, m, between, down);                               \
            i64 top = 0;                                                                     \
            SIMD(reduction(max : top))                                                       \
            LANES(j, n) { i64 bits = MAGNITUDE_BITS(row[j]); top = LARGER(top, bits); }      \
            top = MAX_OF_LANES(top);                                                                  \
            if (LEADER) tops[r] = EXPONENT(top);                                             \
        }                                                                                    \
    }

ROW_EXPONENTS(row_exponents_f32, float, FLOAT_MAGNITUDE, float_exponent)
ROW_EXPONENTS(row_exponents_f64, double, DOUBLE_MAGNITUDE, exponent_of)
