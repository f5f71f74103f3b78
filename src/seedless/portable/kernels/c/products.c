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

/* The windows of x, (samples, channels, height, width) with four strides, as the columns of a matrix:
 * (channels taps, samples rows columns), with zeros where a tap lies on the padding. */
KERNEL gather_windows(const float *x, float *out, i64 samples, i64 channels, i64 height, i64 width,
                      i64 sample_step, i64 channel_step, i64 height_step, i64 width_step, i64 rows,
                      i64 columns, i64 kernel_h, i64 kernel_w, i64 stride_h, i64 stride_w, i64 pad_h,
                      i64 pad_w, i64 gap_h, i64 gap_w)
{
    i64 taps = kernel_h * kernel_w, tiles = (columns + TILE - 1) / TILE;
    ROWS(r, channels *taps *samples)
    {
        i64 row = r / samples, sample = r - row * samples, channel = row / taps;
        i64 tap = row - channel * taps, tap_h = tap / kernel_w, tap_w = tap - tap_h * kernel_w;
        const float *from = x + sample * sample_step + channel * channel_step;
        float *to = out + r * rows * columns;
        LANES(part, rows *tiles)
        {
            i64 y = (u32)part / (u32)tiles, begin = (part - y * tiles) * TILE;
            i64 held = WIDTH_OF_TILE(begin, columns);
            i64 h = y * stride_h + tap_h * gap_h - pad_h, w = begin * stride_w + tap_w * gap_w - pad_w;
            i64 first = 0, last = h >= 0 && h < height ? held : 0;
            float *line = to + y * columns + begin;
            while (first < last && w + first * stride_w < 0) first++;
            while (last > first && w + (last - 1) * stride_w >= width) last--;
            for (i64 k = 0; k < first; k++) line[k] = 0.0f;
            for (i64 k = last; k < held; k++) line[k] = 0.0f;
            const float *begins = from + h * height_step + w * width_step;
            i64 step = stride_w * width_step;
            if (step == 1) {
                SIMD()
                for (i64 k = first; k < last; k++) line[k] = begins[k];
            } else {
                for (i64 k = first; k < last; k++) line[k] = begins[k * step];
            }
        }
    }
}

/* A transposed convolution in two dimensions. The product is (groups, m taps, samples positions)
 * on its grids, `high` + `low`; without `left` and `right`, it is scaled already. Each element of the
 * result, (samples, groups m, height, width), adds the taps that reach it, in order. A
 * convolution in one dimension has a height of one. */
KERNEL gather_taps(const double *high, const double *low, const i64 *left, const i64 *right,
                   float *out, i64 groups, i64 m, i64 samples, i64 height, i64 width,
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
            i64 held = WIDTH_OF_TILE(begin, width);
            for (i64 k = 0; k < held; k++) sum[k] = 0.0;
            for (i64 tap_h = 0; tap_h < kernel_h; tap_h++) {
                i64 y = h + pad_h - tap_h * gap_h;
                if (y < 0 || (stride_h != 1 && (u32)y % (u32)stride_h)) continue;
                y = stride_h == 1 ? y : (u32)y / (u32)stride_h;
                if (y >= rows) continue;
                i64 from = (sample * rows + y) * columns;
                const i64 *tops = right ? right + group * across + from : right;
                for (i64 tap_w = 0; tap_w < kernel_w; tap_w++) {
                    i64 row = first_row + tap_h * kernel_w + tap_w;
                    i64 at = group * plane + row * across + from;
                    double step = left ? step_of(left[group * m * taps + row]) : 1.0;
                    i64 shift = begin + pad_w - tap_w * gap_w;
                    if (stride_w == 1) {
                        i64 first = shift < 0 ? -shift : 0;
                        i64 last = columns - shift < held ? columns - shift : held;
                        SIMD()
                        for (i64 k = first; k < last; k++) {
                            double whole = low ? high[at + shift + k] + low[at + shift + k]
                                               : high[at + shift + k];
                            sum[k] += tops ? whole * step * step_of(tops[shift + k]) + 0.0 : whole;
                        }
                        continue;
                    }
                    for (i64 k = 0; k < held; k++) {
                        i64 x = shift + k;
                        if (x < 0 || (u32)x % (u32)stride_w) continue;
                        x = (u32)x / (u32)stride_w;
                        if (x >= columns) continue;
                        double whole = low ? high[at + x] + low[at + x] : high[at + x];
                        sum[k] += tops ? whole * step * step_of(tops[x]) + 0.0 : whole;
                    }
                }
            }
            float *to = out + (r * height + h) * width + begin;
            for (i64 k = 0; k < held; k++) to[k] = (float)sum[k];
        }
    }
}
