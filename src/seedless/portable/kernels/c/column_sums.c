/* Sums down the columns of (outer, rows, n), in two passes: first the largest magnitude of each
 * column, then the sum of the integers on its grid. Blocks of a GPU may share a column; they join
 * their results by atomic operations, whose order does not matter for integers. */

#ifdef __CUDACC__
#define COLUMN_THREADS 16 /* the most threads of a block that share a column, of 32 columns */
#define TILE 1
#define WIDTH_OF_TILE(begin, n) 1 /* said as a number: what a thread holds then stays in registers */
#define TILES(t, n) /* all threads of a block loop equally often: they wait for one another */ \
    for (i64 t = blockIdx.x * (i64)blockDim.x + threadIdx.x; t - threadIdx.x < (n);           \
         t += (i64)gridDim.x * blockDim.x)
#define DOWN(r, rows) /* four rows at a time: a thread reads on while it waits for the first */ \
    _Pragma("unroll 4") for (i64 r = blockIdx.y * (i64)blockDim.y + threadIdx.y; r < (rows);    \
                             r += (i64)gridDim.y * blockDim.y)

/* Join what the threads of a block found for a column, then write it by one atomic operation. */
#define INTO(NAME, TYPE, JOIN, ATOMIC)                                                  \
    INLINE void NAME(TYPE *target, const TYPE *seen, i64 width)                          \
    {                                                                                   \
        __shared__ TYPE held[COLUMN_THREADS][32];                                                 \
        if (width) held[threadIdx.y][threadIdx.x] = *seen;                              \
        __syncthreads();                                                                \
        if (width && threadIdx.y == 0) {                                                \
            TYPE all = held[0][threadIdx.x];                                            \
            for (u32 y = 1; y < blockDim.y; y++) all = JOIN(all, held[y][threadIdx.x]); \
            ATOMIC(target, all);                                                         \
        }                                                                               \
        __syncthreads();                                                                \
    }
#define PLUS(a, b) ((a) + (b))
INTO(maxima_into, i64, LARGER, atomicMax)
INTO(sums_into, double, PLUS, atomicAdd)
#else
#define TILE 64
#define WIDTH_OF_TILE(begin, n) ((n) - (begin) < TILE ? (n) - (begin) : TILE)
#define TILES(t, n)                                    \
    DO(omp parallel for schedule(static) if ((n) > 1)) \
    for (i64 t = 0; t < (n); t++)
#define DOWN(r, rows) for (i64 r = 0; r < (rows); r++)

INLINE void maxima_into(i64 *target, const i64 *seen, i64 width)
{
    for (i64 k = 0; k < width; k++) target[k] = LARGER(target[k], seen[k]);
}
INLINE void sums_into(double *target, const double *seen, i64 width)
{
    for (i64 k = 0; k < width; k++) target[k] += seen[k];
}
#endif

/* Tile t of (outer, rows, n), matrices `between` one another: from column `first`, `width` columns,
 * none for a thread that has no tile; in memory from `base`. */
#define LAY_OUT(t, between)                                                 \
    i64 across = (n + TILE - 1) / TILE, matrix = (u32)(t) / (u32)across;    \
    i64 begin = ((t) - matrix * across) * TILE;                             \
    i64 width = (t) >= ALL_TILES ? 0 : WIDTH_OF_TILE(begin, n);             \
    i64 first = matrix * n + begin, base = matrix * (between) + begin
#define ALL_TILES (outer * ((n + TILE - 1) / TILE))

#define COLUMN_MAXIMA(NAME, TYPE, MAGNITUDE_BITS)                                    \
    KERNEL NAME(const TYPE *x, i64 *tops, i64 outer, i64 rows, i64 n, i64 between, \
                i64 down)                                                          \
    {                                                                              \
        TILES(t, ALL_TILES)                                                        \
        {                                                                          \
            LAY_OUT(t, between);                                                   \
            i64 seen[TILE];                                                        \
            for (i64 k = 0; k < width; k++) seen[k] = 0;                           \
            DOWN(r, rows)                                                          \
            for (i64 k = 0; k < width; k++) {                                      \
                i64 bits = MAGNITUDE_BITS(x[base + r * down + k]);                 \
                seen[k] = LARGER(seen[k], bits);                                   \
            }                                                                      \
            maxima_into(tops + first, seen, width);                                  \
        }                                                                          \
    }

#define COLUMN_SUMS(NAME, TYPE, EXPONENT)                                                 \
    KERNEL NAME(const TYPE *x, const i64 *tops, double *sums, i64 outer, i64 rows, i64 n, \
                i64 between, i64 down)                                                    \
    {                                                                                     \
        TILES(t, ALL_TILES)                                                               \
        {                                                                                 \
            LAY_OUT(t, between);                                                          \
            double seen[TILE], up[TILE];                                                  \
            for (i64 k = 0; k < width; k++) {                                             \
                seen[k] = 0.0;                                                            \
                up[k] = power_of_two(SUM_BITS - EXPONENT(tops[first + k]));               \
            }                                                                             \
            DOWN(r, rows)                                                                 \
            for (i64 k = 0; k < width; k++)                                               \
                seen[k] += rint((double)x[base + r * down + k] * up[k]);                  \
            sums_into(sums + first, seen, width);                                         \
        }                                                                                 \
    }

COLUMN_MAXIMA(column_maxima_f32, float, FLOAT_MAGNITUDE)
COLUMN_MAXIMA(column_maxima_f64, double, DOUBLE_MAGNITUDE)
COLUMN_SUMS(column_sums_f32, float, float_exponent)
COLUMN_SUMS(column_sums_f64, double, exponent_of)

/* Turn the largest magnitudes into exponents, and sums of integers into values. */

KERNEL exponents_f32(i64 *tops, i64 n) { MAP(i, n) tops[i] = float_exponent(tops[i]); }
KERNEL exponents_f64(i64 *tops, i64 n) { MAP(i, n) tops[i] = exponent_of(tops[i]); }

/* To `out` rounded to float32 where there is one, otherwise in place. */
#define SCALE_SUMS(NAME, EXPONENT)                                     \
    KERNEL NAME(double *sums, const i64 *tops, float *out, i64 n)      \
    {                                                                  \
        MAP(i, n)                                                      \
        {                                                              \
            double v = on_grid(sums[i], EXPONENT(tops[i]));            \
            if (out) out[i] = (float)v;                                \
            else sums[i] = v;                                          \
        }                                                              \
    }

SCALE_SUMS(scale_sums_f32, float_exponent)
SCALE_SUMS(scale_sums_f64, exponent_of)

/* The gradients of a layer norm's weight, g (x - mean) scale, and bias, g, down the columns. */

KERNEL norm_maxima(const float *grad, const float *x, const float *mean, const float *scale,
                 i64 *tops, i64 rows, i64 n)
{
    i64 outer = 1;
    TILES(t, ALL_TILES)
    {
        LAY_OUT(t, 0);
        i64 of_weight[TILE], of_bias[TILE];
        for (i64 k = 0; k < width; k++) of_weight[k] = of_bias[k] = 0;
        DOWN(r, rows)
        for (i64 k = 0; k < width; k++) {
            double g = grad[base + r * n + k];
            double normed = ((double)x[base + r * n + k] - (double)mean[r]) * (double)scale[r];
            i64 bits = BITS_OF(g * normed) & MAGNITUDE, more = BITS_OF(g) & MAGNITUDE;
            of_weight[k] = LARGER(of_weight[k], bits);
            of_bias[k] = LARGER(of_bias[k], more);
        }
        maxima_into(tops + first, of_weight, width);
        maxima_into(tops + n + first, of_bias, width);
    }
}

KERNEL norm_sums(const float *grad, const float *x, const float *mean, const float *scale,
                 const i64 *tops, double *sums, i64 rows, i64 n)
{
    i64 outer = 1;
    TILES(t, ALL_TILES)
    {
        LAY_OUT(t, 0);
        double of_weight[TILE], of_bias[TILE], up[TILE], up_bias[TILE];
        for (i64 k = 0; k < width; k++) {
            of_weight[k] = of_bias[k] = 0.0;
            up[k] = power_of_two(SUM_BITS - exponent_of(tops[first + k]));
            up_bias[k] = power_of_two(SUM_BITS - exponent_of(tops[n + first + k]));
        }
        DOWN(r, rows)
        for (i64 k = 0; k < width; k++) {
            double g = grad[base + r * n + k];
            double normed = ((double)x[base + r * n + k] - (double)mean[r]) * (double)scale[r];
            of_weight[k] += rint(g * normed * up[k]);
            of_bias[k] += rint(g * up_bias[k]);
        }
        sums_into(sums + first, of_weight, width);
        sums_into(sums + n + first, of_bias, width);
    }
}
