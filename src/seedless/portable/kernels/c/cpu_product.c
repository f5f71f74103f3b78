/* A matrix product on a CPU in one call: the exponents of both operands' grids are found, float32
 * operands are rounded to them where they are packed for the processor's vectors, multiplied
 * exactly, and the sums are scaled and rounded once. GPUs have fused_product.c instead.
 *
 * Why it is exact: an operand is an integer of at most 23 bits, so CHUNK products add up to at most
 * 2^53, which float64 holds, in any order and with any fusing: here alone a multiply and an add may be
 * one instruction. Chunks are added in two parts, as by `add_chunk`. So vectors of any width, and
 * blocks of any size, give the same bits. */

#ifndef __CUDACC__
/* Multiply TILE_ROWS rows of a chunk by `vectors` vectors of columns: `row` and `next` are the
 * distances of rows and of their elements in a. All but a, b and `length` are constants where it is used. */
ALWAYS_INLINE void multiply_tile(const double *a, i64 row, i64 next, const double *b, i64 vectors,
                                 i64 length, double *tile)
{
    Vector sums[TILE_ROWS][TILE_VECTORS], columns[TILE_VECTORS];
    const double zeros[VECTOR] = {0.0};
    for (i64 i = 0; i < TILE_ROWS; i++)
        for (i64 v = 0; v < vectors; v++) sums[i][v] = LOAD(zeros);
    for (i64 k = 0; k < length; k++) {
        for (i64 v = 0; v < vectors; v++) columns[v] = LOAD(b + (k * vectors + v) * VECTOR);
        for (i64 i = 0; i < TILE_ROWS; i++)
            for (i64 v = 0; v < vectors; v++)
                sums[i][v] = MULTIPLY_ADD(a[i * row + k * next], columns[v], sums[i][v]);
    }
    for (i64 i = 0; i < TILE_ROWS; i++)
        for (i64 v = 0; v < vectors; v++) STORE(tile + i * TILE_COLUMNS + v * VECTOR, sums[i][v]);
}

static void multiply_strips(const double *a, int by_line, const double *b, i64 vectors, i64 length,
                            double *tile)
{
    if (by_line && vectors == 3) multiply_tile(a, CHUNK, 1, b, 3, length, tile);
    else if (by_line && vectors == 2) multiply_tile(a, CHUNK, 1, b, 2, length, tile);
    else if (by_line) multiply_tile(a, CHUNK, 1, b, 1, length, tile);
    else if (vectors == 3) multiply_tile(a, 1, TILE_ROWS, b, 3, length, tile);
    else if (vectors == 2) multiply_tile(a, 1, TILE_ROWS, b, 2, length, tile);
    else multiply_tile(a, 1, TILE_ROWS, b, 1, length, tile);
}

/* Add a tile of a chunk's exact sums to those of the chunks before, split as by `add_chunk`. */
INLINE void add_tile(const double *tile, double *high, double *low, i64 width, int is_first, int is_only)
{
    for (i64 i = 0; i < TILE_ROWS; i++) {
        const double *from = tile + i * TILE_COLUMNS;
        double *to = high + i * BLOCK_COLUMNS, *rest = low + i * BLOCK_COLUMNS;
        if (is_only) {
            for (i64 j = 0; j < width; j++) to[j] = from[j];
        } else if (is_first) {
            SIMD()
            for (i64 j = 0; j < width; j++) {
                to[j] = from[j] + CHUNK_SHIFT - CHUNK_SHIFT;
                rest[j] = from[j] - to[j];
            }
        } else {
            SIMD()
            for (i64 j = 0; j < width; j++) {
                double upper = from[j] + CHUNK_SHIFT - CHUNK_SHIFT;
                to[j] += upper;
                rest[j] += from[j] - upper;
            }
        }
    }
}

/* Write the exact sums of a block of m rows and n columns to `sums_high` and, unless they have one
 * chunk, `sums_low`. x and y are the operands' first elements. */
static void multiply_block(LinesOf left, LinesOf right, const float *x, const float *y,
                           const double *up_left, const double *up_right, i64 m, i64 n)
{
    double tile[TILE_ROWS * TILE_COLUMNS];
    int by_line = left.step != 1 || left.along == 1;
    for (i64 begin = 0; begin < left.length; begin += CHUNK) {
        i64 length = left.length - begin < CHUNK ? left.length - begin : CHUNK;
        /* [Step 1] Round and pack a chunk of both operands. */
        if (by_line)
            pack_lines(x + begin * left.along, up_left, packed_left, m, length, left.step, left.along);
        else
            pack_strips(x + begin * left.along, up_left, packed_left, m, length, 1, left.along,
                        TILE_ROWS, TILE_ROWS);
        pack_strips(y + begin * right.along, up_right, packed_right, n, length, right.step,
                    right.along, TILE_COLUMNS, VECTOR);
        /* [Step 2] Multiply tile by tile, and add. What lies beyond the edges is not read. */
        for (i64 j = 0; j < n; j += TILE_COLUMNS) {
            i64 vectors = n - j < TILE_COLUMNS ? (n - j + VECTOR - 1) / VECTOR : TILE_VECTORS;
            for (i64 i = 0; i < m; i += TILE_ROWS) {
                multiply_strips(packed_left + i * CHUNK, by_line, packed_right + j * CHUNK, vectors,
                                length, tile);
                add_tile(tile, sums_high + i * BLOCK_COLUMNS + j, sums_low + i * BLOCK_COLUMNS + j,
                         vectors * VECTOR, begin == 0, left.length <= CHUNK);
            }
        }
    }
}

/* Scale row `i` of a block, n elements, from its grids, and write it: to `whole`, or rounded to `out`,
 * from column `column` of row `row` of all `rows` on, placed as by `join_parts`. */
INLINE void write_row(i64 i, i64 n, int is_only, double left, const double *right, const float *bias,
                      float *out, double *whole, i64 row, i64 rows, i64 column, i64 width, i64 inner)
{
    double *high = sums_high + i * BLOCK_COLUMNS, *low = sums_low + i * BLOCK_COLUMNS;
    float rounded[BLOCK_COLUMNS];
    if (!is_only) {
        SIMD()
        for (i64 j = 0; j < n; j++) high[j] += low[j];
    }
    if (whole) {
        double *to = whole + row * width + column;
        SIMD()
        for (i64 j = 0; j < n; j++) to[j] = high[j] * left * right[j] + 0.0;
        return;
    }
    SIMD()
    for (i64 j = 0; j < n; j++) rounded[j] = (float)(high[j] * left * right[j] + 0.0);
    if (bias)
        for (i64 j = 0; j < n; j++) rounded[j] = bias[column + j] + rounded[j];
    for (i64 k = 0; k < n;) { /* what lies in one row, or one sample, at a time */
        i64 j = column + k, sample = inner ? j / inner : 0;
        float *to = inner ? out + (sample * rows + row) * inner + j - sample * inner
                          : out + row * width + j;
        i64 room = inner ? (sample + 1) * inner - j : n;
        i64 count = room < n - k ? room : n - k;
        memcpy(to, rounded + k, count * sizeof(float));
        k += count;
    }
}

/* Return the side of equal blocks, at most `most` and a multiple of `unit`, that cover `size`. */
INLINE i64 divide_evenly(i64 size, i64 most, i64 unit)
{
    i64 blocks = (size + most - 1) / most, side = (size + blocks - 1) / blocks;
    return (side + unit - 1) / unit * unit;
}

/* Multiply (batch, m, length) by (batch, length, n), each with three strides. The result is `whole` in
 * float64, or `out` in float32: (batch, m, n), or with `inner` (samples, batch m, inner) of columns
 * (samples, inner); `bias` is added to each of its rows. `tops` is memory for all exponents; `blocks`
 * is how many blocks are wanted at least, for threads that share them. */
KERNEL multiply_on_cpu(const float *x, const float *y, const float *bias, float *out, double *whole,
                       i64 *tops, i64 batch, i64 m, i64 length, i64 n, i64 inner, i64 left_matrix,
                       i64 left_row, i64 left_along, i64 right_matrix, i64 right_along,
                       i64 right_column, i64 blocks)
{
    LinesOf left = {x, tops, m, length, left_matrix, left_row, left_along};
    LinesOf right = {y, tops + batch * m, n, length, right_matrix, right_column, right_along};
    find_all_exponents(left, batch);
    find_all_exponents(right, batch);
    i64 height = divide_evenly(m, BLOCK_ROWS, TILE_ROWS);
    i64 width = divide_evenly(n, BLOCK_COLUMNS, TILE_COLUMNS);
    while (batch * ((m + height - 1) / height) * ((n + width - 1) / width) < blocks) {
        if (height > width && height > 2 * TILE_ROWS) height = divide_evenly(height, height / 2, TILE_ROWS);
        else if (width > 2 * TILE_COLUMNS) width = divide_evenly(width, width / 2, TILE_COLUMNS);
        else break;
    }
    i64 down = (m + height - 1) / height, across = (n + width - 1) / width;
    DO(omp parallel for schedule(dynamic) if (blocks > 1))
    for (i64 block = 0; block < batch * down * across; block++) {
        i64 b = block / (down * across), i = block / across % down * height, j = block % across * width;
        i64 rows = m - i < height ? m - i : height, columns = n - j < width ? n - j : width;
        const i64 *of_rows = left.tops + (left_matrix ? b * m : 0) + i;
        const i64 *of_columns = right.tops + (right_matrix ? b * n : 0) + j;
        double up_left[BLOCK_ROWS], up_right[BLOCK_COLUMNS], steps[BLOCK_COLUMNS];
        for (i64 k = 0; k < rows; k++) up_left[k] = power_of_two(PRODUCT_BITS - of_rows[k]);
        for (i64 k = 0; k < columns; k++) {
            up_right[k] = power_of_two(PRODUCT_BITS - of_columns[k]);
            steps[k] = step_of(of_columns[k]);
        }
        multiply_block(left, right, x + b * left_matrix + i * left_row,
                       y + b * right_matrix + j * right_column, up_left, up_right, rows, columns);
        for (i64 k = 0; k < rows; k++)
            write_row(k, columns, length <= CHUNK, step_of(of_rows[k]), steps, bias, out, whole,
                      b * m + i + k, batch * m, j, n, inner);
    }
}
#endif
