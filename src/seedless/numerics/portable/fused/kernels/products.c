/* What surrounds a matrix product: operands on their grids, and the result off them. */

/* Integers of `bits` bits; with `low`, their upper parts and the rest of HALF bits. */
INLINE double place_on(double value, i64 exponent, i64 bits)
{
    return rint(value * power_of_two(bits - exponent));
}

/* x is (rows, n) in rows of `stride`; tops one for each row. */
#define PLACE_ROWS(NAME, TYPE)                                                               \
    KERNEL NAME(const TYPE *x, const i64 *tops, double *q, double *low, i64 rows, i64 n,     \
                i64 stride, i64 bits)                                                        \
    {                                                                                        \
        ROWS(r, rows)                                                                        \
        {                                                                                    \
            i64 top = tops[r];                                                               \
            SIMD()                                                                           \
            LANES(j, n)                                                                      \
            {                                                                                \
                double v = place_on((double)x[r * stride + j], top, bits);                   \
                if (low) {                                                                   \
                    double upper = v + HALF_SHIELD - HALF_SHIELD;                            \
                    low[r * n + j] = v - upper;                                              \
                    v = upper;                                                               \
                }                                                                            \
                q[r * n + j] = v;                                                            \
            }                                                                                \
        }                                                                                    \
    }

/* x is (outer, rows, n), a matrix every `stride` elements; tops (outer, n), one a column. */
#define PLACE_COLUMNS(NAME, TYPE)                                                            \
    KERNEL NAME(const TYPE *x, const i64 *tops, double *q, double *low, i64 outer, i64 rows, \
                i64 n, i64 stride, i64 bits)                                                 \
    {                                                                                        \
        ROWS(r, outer *rows)                                                                 \
        {                                                                                    \
            const i64 *top = tops + r / rows * n;                                            \
            const TYPE *row = x + r / rows * stride + r % rows * n;                          \
            SIMD()                                                                           \
            LANES(j, n)                                                                      \
            {                                                                                \
                double v = place_on((double)row[j], top[j], bits);                           \
                if (low) {                                                                   \
                    double upper = v + HALF_SHIELD - HALF_SHIELD;                            \
                    low[r * n + j] = v - upper;                                              \
                    v = upper;                                                               \
                }                                                                            \
                q[r * n + j] = v;                                                            \
            }                                                                                \
        }                                                                                    \
    }

PLACE_ROWS(place_rows_f32, float)
PLACE_ROWS(place_rows_f64, double)
PLACE_COLUMNS(place_columns_f32, float)
PLACE_COLUMNS(place_columns_f64, double)

/* A chunk's exact product, cut in two and added to what the chunks before left. */
KERNEL add_chunk(const double *product, double *high, double *low, i64 n)
{
    MAP(i, n)
    {
        double upper = product[i] + CHUNK_SHIELD - CHUNK_SHIELD;
        high[i] += upper;
        low[i] += product[i] - upper;
    }
}

INLINE double step_of(i64 top)
{
    return top == HIGHEST ? NOT_A_NUMBER : power_of_two(top - PRODUCT_BITS);
}

/* (batch, m, n) off the grids of its rows and columns, in float32. With `inner`, columns are
 * (samples, inner) and the result is (samples, batch m, inner): a convolution's. */
KERNEL join(const double *high, const double *low, const i64 *left, const i64 *right, float *out,
            i64 batch, i64 m, i64 n, i64 inner)
{
    ROWS(r, batch *m)
    {
        const i64 *columns = right + r / m * n;
        double step = step_of(left[r]);
        const double *a = high + r * n, *b = low + r * n;
        if (inner == 0) {
            SIMD()
            LANES(j, n)
            {
                double v = low ? a[j] + b[j] : a[j];
                out[r * n + j] = (float)(v * step * step_of(columns[j]) + 0.0);
            }
        } else {
            LANES(j, n)
            {
                double v = low ? a[j] + b[j] : a[j];
                i64 sample = (u32)j / (u32)inner;
                out[(sample * batch * m + r) * inner + j - sample * inner] =
                    (float)(v * step * step_of(columns[j]) + 0.0);
            }
        }
    }
}

/* A transposed convolution in two dimensions. The product is (groups, m taps, samples positions)
 * on its grids; each place of (samples, groups m, height, width) adds the taps that lead to it, in
 * order. One dimension is a height of one. */
KERNEL gather_taps(const double *high, const double *low, const i64 *left, const i64 *right,
                   float *out, i64 groups, i64 m, i64 samples, i64 height, i64 width, i64 rows,
                   i64 columns, i64 kernel_h, i64 kernel_w, i64 stride_h, i64 stride_w, i64 pad_h,
                   i64 pad_w, i64 gap_h, i64 gap_w)
{
    i64 places = rows * columns, taps = kernel_h * kernel_w, across = samples * places;
    MAP(i, samples *groups *m *height *width)
    {
        i64 w = i % width, h = i / width % height, channel = i / (width * height) % (groups * m);
        i64 sample = i / (width * height * groups * m), group = channel / m;
        double sum = 0.0;
        for (i64 tap = 0; tap < taps; tap++) {
            i64 y = h + pad_h - tap / kernel_w * gap_h, x = w + pad_w - tap % kernel_w * gap_w;
            if (y < 0 || x < 0 || y % stride_h || x % stride_w) continue;
            y /= stride_h, x /= stride_w;
            if (y >= rows || x >= columns) continue;
            i64 row = channel * taps + tap, column = sample * places + y * columns + x;
            i64 at = row * across + column;
            double v = low ? high[at] + low[at] : high[at];
            sum += v * step_of(left[row]) * step_of(right[group * across + column]) + 0.0;
        }
        out[i] = (float)sum;
    }
}
