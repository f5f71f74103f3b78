/* Sums down the columns of (outer, rows, n), in two passes: the largest magnitude of each column,
 * then the integers on its grid. A column may be shared by blocks of a GPU, which join what they
 * found by atomic operations: on integers these know no order. */

#ifdef __CUDACC__
#define TILE 1
#define TILES(t, n)                                                                  \
    for (i64 t = blockIdx.x * (i64)blockDim.x + threadIdx.x; t < (n);               \
         t += (i64)gridDim.x * blockDim.x)
#define DOWN(r, rows) for (i64 r = blockIdx.y; r < (rows); r += gridDim.y)
#define TOP_INTO(place, value) atomicMax(place, value)
#define ADD_INTO(place, value) atomicAdd(place, value)
#else
#define TILE 64
#define TILES(t, n)                                     \
    DO(omp parallel for schedule(static) if ((n) > 1)) \
    for (i64 t = 0; t < (n); t++)
#define DOWN(r, rows) for (i64 r = 0; r < (rows); r++)
#define TOP_INTO(place, value) *(place) = LARGER(*(place), value)
#define ADD_INTO(place, value) *(place) += (value)
#endif

/* Tile t of (outer, rows, n): from column `first`, `width` columns, in memory from `base`. */
#define LAY_OUT(t)                                                     \
    i64 across = (n + TILE - 1) / TILE, begin = (t) % across * TILE;   \
    i64 width = n - begin < TILE ? n - begin : TILE;                   \
    i64 first = (t) / across * n + begin, base = (t) / across * rows * n + begin
#define ALL_TILES (outer * ((n + TILE - 1) / TILE))

#define COLUMN_TOPS(NAME, TYPE, MAGNITUDE_BITS)                                         \
    KERNEL NAME(const TYPE *x, i64 *tops, i64 outer, i64 rows, i64 n)                   \
    {                                                                                   \
        TILES(t, ALL_TILES)                                                             \
        {                                                                               \
            LAY_OUT(t);                                                                 \
            i64 seen[TILE];                                                             \
            for (i64 k = 0; k < width; k++) seen[k] = 0;                                \
            DOWN(r, rows)                                                               \
            for (i64 k = 0; k < width; k++) {                                           \
                i64 bits = MAGNITUDE_BITS(x[base + r * n + k]);                         \
                seen[k] = LARGER(seen[k], bits);                                        \
            }                                                                           \
            for (i64 k = 0; k < width; k++) TOP_INTO(tops + first + k, seen[k]);        \
        }                                                                               \
    }

#define COLUMN_SUMS(NAME, TYPE, EXPONENT)                                               \
    KERNEL NAME(const TYPE *x, const i64 *tops, double *sums, i64 outer, i64 rows, i64 n) \
    {                                                                                   \
        TILES(t, ALL_TILES)                                                             \
        {                                                                               \
            LAY_OUT(t);                                                                 \
            double seen[TILE], up[TILE];                                                \
            for (i64 k = 0; k < width; k++) {                                           \
                seen[k] = 0.0;                                                          \
                up[k] = power_of_two(SUM_BITS - EXPONENT(tops[first + k]));             \
            }                                                                           \
            DOWN(r, rows)                                                               \
            for (i64 k = 0; k < width; k++)                                             \
                seen[k] += rint((double)x[base + r * n + k] * up[k]);                   \
            for (i64 k = 0; k < width; k++) ADD_INTO(sums + first + k, seen[k]);        \
        }                                                                               \
    }

#define FLOAT_MAGNITUDE(x) (FLOAT_BITS(x) & 0x7fffffff)
#define DOUBLE_MAGNITUDE(x) (BITS_OF(x) & MAGNITUDE)

COLUMN_TOPS(column_tops_f32, float, FLOAT_MAGNITUDE)
COLUMN_TOPS(column_tops_f64, double, DOUBLE_MAGNITUDE)
COLUMN_SUMS(column_sums_f32, float, float_exponent)
COLUMN_SUMS(column_sums_f64, double, exponent_of)

/* The largest magnitudes become exponents, and sums of integers what they stand for. */

KERNEL exponents_f32(i64 *tops, i64 n) { MAP(i, n) tops[i] = float_exponent(tops[i]); }
KERNEL exponents_f64(i64 *tops, i64 n) { MAP(i, n) tops[i] = exponent_of(tops[i]); }

KERNEL finish_f32(double *sums, const i64 *tops, i64 n)
{
    MAP(i, n) sums[i] = on_grid(sums[i], float_exponent(tops[i]));
}

KERNEL finish_f64(double *sums, const i64 *tops, i64 n)
{
    MAP(i, n) sums[i] = on_grid(sums[i], exponent_of(tops[i]));
}

/* The gradients of a layer norm's weight, g (x - mean) scale, and bias, g, down the columns. */

KERNEL norm_tops(const float *grad, const float *x, const float *mean, const float *scale,
                 i64 *tops, i64 rows, i64 n)
{
    i64 outer = 1;
    TILES(t, ALL_TILES)
    {
        LAY_OUT(t);
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
        for (i64 k = 0; k < width; k++) {
            TOP_INTO(tops + first + k, of_weight[k]);
            TOP_INTO(tops + n + first + k, of_bias[k]);
        }
    }
}

KERNEL norm_sums(const float *grad, const float *x, const float *mean, const float *scale,
                 const i64 *tops, double *sums, i64 rows, i64 n)
{
    i64 outer = 1;
    TILES(t, ALL_TILES)
    {
        LAY_OUT(t);
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
        for (i64 k = 0; k < width; k++) {
            ADD_INTO(sums + first + k, of_weight[k]);
            ADD_INTO(sums + n + first + k, of_bias[k]);
        }
    }
}
