/* What comes before and after a matrix product: operands are rounded to their grids, and the
 * result is scaled from them. */

INLINE double round_on_grid(double value, i64 exponent, i64 bits)
{
    return rint(value * power_of_two(bits - exponent));
}

/* Write an integer; with `low`, its upper part, a multiple of 2^HALF_BITS, and the rest. */
INLINE void put(double v, double *q, double *low, i64 at)
{
    if (low) {
        double upper = v + HALF_SHIFT - HALF_SHIFT;
        low[at] = v - upper;
        v = upper;
    }
    q[at] = v;
}

/* Round x, (batch, m, n) with rows as `row_at` says, to its grids; the result is contiguous. Element
 * j of row r has the exponent tops[FIRST + J]: of the rows, (batch, m), or the columns, (batch, n). */
#define ROUND_TO_GRIDS(NAME, TYPE, FIRST, J)                                                 \
    KERNEL NAME(const TYPE *x, const i64 *tops, double *q, double *low, i64 batch, i64 m,    \
                i64 n, i64 between, i64 down, i64 bits)                                      \
    {                                                                                        \
        ROWS(r, batch *m)                                                                    \
        {                                                                                    \
            const TYPE *row = x + row_at(r, m, between, down);                               \
            const i64 *top = tops + (FIRST);                                                 \
            SIMD()                                                                           \
            LANES(j, n) put(round_on_grid((double)row[j], top[J], bits), q, low, r * n + j); \
        }                                                                                    \
    }

ROUND_TO_GRIDS(round_rows_f32, float, r, 0)
ROUND_TO_GRIDS(round_rows_f64, double, r, 0)
ROUND_TO_GRIDS(round_columns_f32, float, row_at(r, m, n, 0), j)
ROUND_TO_GRIDS(round_columns_f64, double, row_at(r, m, n, 0), j)

/* Split a chunk's exact product in two and add the parts to those of the chunks before. */
KERNEL add_chunk(const double *product, double *high, double *low, i64 n)
{
    MAP(i, n)
    {
        double upper = product[i] + CHUNK_SHIFT - CHUNK_SHIFT;
        high[i] += upper;
        low[i] += product[i] - upper;
    }
}

/* Round matrices (batch, m, length), with strides `between` and `down`, to (batch, chunks, m, size),
 * each chunk contiguous; the last one is filled up with zeros. */
KERNEL chunk_rows(const float *x, const i64 *tops, double *q, i64 batch, i64 m, i64 length,
                  i64 between, i64 down, i64 chunks, i64 size)
{
    ROWS(r, batch *m)
    {
        double up = power_of_two(PRODUCT_BITS - tops[r]);
        const float *row = x + r / m * between + r % m * down;
        for (i64 chunk = 0; chunk < chunks; chunk++) {
            double *to = q + ((r / m * chunks + chunk) * m + r % m) * size;
            const float *from = row + chunk * size;
            i64 held = length - chunk * size;
            held = held < 0 ? 0 : held < size ? held : size;
            SIMD()
            LANES(j, held) to[j] = rint((double)from[j] * up);
            LANES(j, size - held) to[held + j] = 0.0;
        }
    }
}

/* Round matrices (batch, length, n), with one grid for each column, to (batch, padded, n). */
KERNEL chunk_columns(const float *x, const i64 *tops, double *q, i64 batch, i64 length, i64 n,
                     i64 between, i64 down, i64 padded)
{
    ROWS(r, batch *padded)
    {
        i64 b = r / padded, k = r % padded;
        const float *row = x + b * between + k * down;
        double *to = q + r * n;
        if (k < length) {
            SIMD()
            LANES(j, n) to[j] = round_on_grid((double)row[j], tops[b * n + j], PRODUCT_BITS);
        } else {
            LANES(j, n) to[j] = 0.0;
        }
    }
}

INLINE double step_of(i64 top)
{
    return top == HIGHEST_EXPONENT ? NOT_A_NUMBER : power_of_two(top - PRODUCT_BITS);
}

/* Scale (batch, m, n) from the grids of its rows and columns to float32. With `inner`, columns are
 * (samples, inner) and the result is (samples, batch m, inner): a convolution's. */
KERNEL join_parts(const double *high, const double *low, const i64 *left, const i64 *right, float *out,
            i64 batch, i64 m, i64 n, i64 inner)
{
    ROWS(r, batch *m)
    {
        const i64 *columns = right + row_at(r, m, n, 0);
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

/* The exact sum of the products of chunks, at a stride of `apart`, rounded once. */
INLINE double add_chunks(const double *first, i64 chunks, i64 apart)
{
    double high = 0.0, low = 0.0;
    for (i64 chunk = 0; chunk < chunks; chunk++) {
        double v = first[chunk * apart];
        double upper = v + CHUNK_SHIFT - CHUNK_SHIFT;
        high += upper;
        low += v - upper;
    }
    return high + low;
}

/* Add the products of chunks (batch, chunks, m, n) and scale them to float32, as `join_parts` does.
 * They are the rows from `row` on and the columns from `column` on of a result of `height` rows and
 * `width` columns. `left` and `right` are the exponents of these rows and columns. */
KERNEL join_chunks(const double *products, const i64 *left, const i64 *right, float *out, i64 batch,
                   i64 chunks, i64 row, i64 m, i64 height, i64 column, i64 n, i64 width, i64 inner)
{
    ROWS(r, batch *m)
    {
        i64 b = r / m, at = b * height + row + r % m;
        const double *first = products + (b * chunks * m + r % m) * n;
        double step = step_of(left[r]);
        SIMD()
        LANES(j, n)
        {
            double v = add_chunks(first + j, chunks, m * n);
            i64 sample = inner ? (u32)(column + j) / (u32)inner : 0;
            i64 to = inner ? (sample * batch * height + at) * inner + column + j - sample * inner
                           : at * width + column + j;
            out[to] = (float)(v * step * step_of(right[b * n + j]) + 0.0);
        }
    }
}

/* A transposed convolution in two dimensions. The product is (groups, m taps, samples positions)
 * on its grids, `high` + `low`, or (groups, chunks, m taps, samples positions) in chunks. Each element
 * of the result, (samples, groups m, height, width), adds the taps that reach it, in order. A
 * convolution in one dimension has a height of one. */
KERNEL gather_taps(const double *high, const double *low, const i64 *left, const i64 *right,
                   float *out, i64 chunks, i64 groups, i64 m, i64 samples, i64 height, i64 width,
                   i64 rows, i64 columns, i64 kernel_h, i64 kernel_w, i64 stride_h, i64 stride_w,
                   i64 pad_h, i64 pad_w, i64 gap_h, i64 gap_w)
{
    i64 taps = kernel_h * kernel_w, across = samples * rows * columns, plane = m * taps * across;
    i64 tiles = (width + TILE - 1) / TILE;
    ROWS(r, samples *groups *m)
    {
        i64 sample = r / (groups * m), channel = r - sample * groups * m, group = channel / m;
        i64 first_row = (channel - group * m) * taps;
        LANES(part, height *tiles)
        {
            double sum[TILE];
            i64 h = (u32)part / (u32)tiles, begin = (part - h * tiles) * TILE;
            i64 held = width - begin < TILE ? width - begin : TILE;
            for (i64 k = 0; k < held; k++) sum[k] = 0.0;
            for (i64 tap_h = 0; tap_h < kernel_h; tap_h++) {
                i64 y = h + pad_h - tap_h * gap_h;
                if (y < 0 || (stride_h != 1 && (u32)y % (u32)stride_h)) continue;
                y = stride_h == 1 ? y : (u32)y / (u32)stride_h;
                if (y >= rows) continue;
                i64 from = (sample * rows + y) * columns;
                const i64 *tops = right + group * across + from;
                for (i64 tap_w = 0; tap_w < kernel_w; tap_w++) {
                    i64 row = first_row + tap_h * kernel_w + tap_w;
                    i64 at = group * (chunks ? chunks : 1) * plane + row * across + from;
                    double step = step_of(left[group * m * taps + row]);
                    for (i64 k = 0; k < held; k++) {
                        i64 x = begin + k + pad_w - tap_w * gap_w;
                        if (stride_w != 1) {
                            if (x < 0 || (u32)x % (u32)stride_w) continue;
                            x = (u32)x / (u32)stride_w;
                        }
                        if (x < 0 || x >= columns) continue;
                        double v = chunks ? add_chunks(high + at + x, chunks, plane)
                                   : low  ? high[at + x] + low[at + x]
                                          : high[at + x];
                        sum[k] += v * step * step_of(tops[x]) + 0.0;
                    }
                }
            }
            float *to = out + (r * height + h) * width + begin;
            for (i64 k = 0; k < held; k++) to[k] = (float)sum[k];
        }
    }
}
