/* A matrix product as two kernels of a GPU: one finds the exponents of both operands' grids, and one
 * multiplies: operands are read as float32, rounded to their grids on
 * the way into shared memory, multiplied exactly by the float64 units for matrices, and the sums are
 * scaled and rounded once. A block of it computes SIDE x SIDE elements of the result, each of its four
 * warps a quarter. CPUs have cpu_product.c instead.
 *
 * Why it is exact: an operand is an integer of at most 23 bits, so CHUNK products add up to at most
 * 2^53, which float64 holds, in any order. After each CHUNK the sums are added to 64-bit integers.
 * A part of the summed axis has at most 2^16 elements, and its sums stay below 2^62. */

/* Scale the sum of integers of row `row` of batch m, column j, by the two steps of its grids, and
 * write it: to `whole` in float64, or to `out` in float32, placed as by `join_parts`, and with `bias`
 * one float32 addition more. */
INLINE void write_product(double v, double left, double right, i64 row, i64 j, const float *bias,
                          float *out, double *whole, i64 rows, i64 n, i64 inner)
{
    v = v * left * right + 0.0;
    if (whole) {
        whole[row * n + j] = v;
    } else {
        i64 sample = inner ? (u32)j / (u32)inner : 0;
        i64 to = inner ? (sample * rows + row) * inner + j - sample * inner : row * n + j;
        out[to] = bias ? bias[j] + (float)v : (float)v;
    }
}

/* Add the sums of all parts of the summed axis, (splits, batch, m, n), and write the products. */
KERNEL join_splits(const i64 *parts, const i64 *left, const i64 *right, const float *bias,
                   float *out, double *whole, i64 splits, i64 batch, i64 m, i64 n, i64 inner,
                   i64 left_matrix, i64 right_matrix)
{
    MAP(at, batch *m *n)
    {
        /* The exact sum is high 2^32 + low, and their addition rounds it once. */
        i64 high = 0, low = 0, row = at / n, b = row / m;
        for (i64 split = 0; split < splits; split++) {
            i64 v = parts[split * batch * m * n + at];
            high += v >> 32;
            low += v & 0xffffffffLL;
        }
        high += low >> 32;
        low &= 0xffffffffLL;
        i64 i = row - b * m, j = at - row * n;
        write_product((double)high * 4294967296.0 + (double)low,
                      step_of(left[b * left_matrix + i]), step_of(right[b * right_matrix + j]), row,
                      j, bias, out, whole, batch * m, n, inner);
    }
}

#ifdef __CUDACC__
#define LINE_WARPS 8 /* of a block that finds exponents */

/* Write the exponent of each of `lines` lines of `length` elements, in each of `parts` parts of its
 * length: (parts, batch, lines). Threads of a warp read a line where its elements are contiguous, and
 * 32 neighbouring lines otherwise. The largest of a line's parts is its exponent. */
INLINE void find_line_exponents(i64 block, const float *x, i64 *tops, i64 batch, i64 lines,
                                i64 length, i64 matrix, i64 line_step, i64 along, i64 parts)
{
    __shared__ u32 held[LINE_WARPS][32];
    int across = along == 1, tx = threadIdx.x, ty = threadIdx.y;
    i64 wide = across ? LINE_WARPS : 32, groups = (lines + wide - 1) / wide;
    i64 rest = block / groups, part = rest % parts, b = rest / parts;
    i64 line = block % groups * wide + (across ? ty : tx), size = (length + parts - 1) / parts;
    i64 end = (part + 1) * size < length ? (part + 1) * size : length;
    u32 top = 0;
    if (line < lines) {
        const float *from = x + b * matrix + line * line_step;
#pragma unroll 8
        for (i64 k = part * size + (across ? tx : ty); k < end; k += across ? 32 : LINE_WARPS) {
            u32 bits = FLOAT_MAGNITUDE(from[k * along]);
            top = LARGER(top, bits);
        }
    }
    held[ty][tx] = top;
    __syncthreads();
    /* One thread for each line joins what the others found. */
    if (line < lines && (across ? tx : ty) == 0) {
        for (int i = 1; i < (across ? 32 : LINE_WARPS); i++) {
            u32 other = across ? held[ty][i] : held[i][tx];
            top = LARGER(top, other);
        }
        tops[(part * batch + b) * lines + line] = float_exponent(top);
    }
}

/* The exponents of the rows of x and the columns of y; the first `blocks` blocks have those of x. */
extern "C" __global__ void __launch_bounds__(256)
product_exponents(const float *x, i64 *x_tops, i64 x_batch, i64 m, i64 length, i64 x_matrix, i64 x_row,
                  i64 x_along, i64 x_parts, const float *y, i64 *y_tops, i64 y_batch, i64 n,
                  i64 y_matrix, i64 y_along, i64 y_column, i64 y_parts, i64 blocks)
{
    if (blockIdx.x < blocks)
        find_line_exponents(blockIdx.x, x, x_tops, x_batch, m, length, x_matrix, x_row, x_along, x_parts);
    else
        find_line_exponents(blockIdx.x - blocks, y, y_tops, y_batch, n, length, y_matrix, y_column,
                            y_along, y_parts);
}

#define SIDE 64
#define SLAB 16                /* of the summed axis, in shared memory at a time */
#define CHUNK 128              /* after so many products float64 sums become integers */
#define PANEL (SIDE * 8 + 8)   /* eight of the summed axis for each of SIDE rows, and a gap */
#define OWN (SIDE * SLAB / 128) /* elements of each operand that one thread reads of a slab */

#ifdef __CUDA_ARCH__
/* c += a b for a (16, 8), b (8, 8), c (16, 8), shared by the threads of a warp as PTX defines it. */
INLINE void multiply_tiles(double *c, const double *a, const double *b)
{
#if __CUDA_ARCH__ >= 900
    asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
        : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b[0]), "d"(b[1]));
#else
    __trap(); /* `cuda.py` does not launch it on older devices */
#endif
}
#endif

/* Where element k of a slab's row lies: threads that read or write at one time use other banks. */
INLINE int place_in_slab(int row, int k)
{
    return (k >> 3) * PANEL + row * 8 + ((((k >> 1) ^ (row >> 1)) & 3) << 1) + (k & 1);
}

/* Round to the integer on its grid, as `round_on_grid` does. Two factors make the power of two,
 * which float32 alone may not hold; up to 2^23 adding 2^23 rounds to whole numbers. */
INLINE double round_in_slab(float value, float2 up)
{
    float scaled = value * up.x * up.y;
    float shift = copysignf((float)(1LL << PRODUCT_BITS), scaled);
    return (double)(scaled + shift - shift);
}

/* The two factors for an exponent. Rows that are not finite may have any integers: they give NaN. */
INLINE float2 find_factors(i64 exponent)
{
    exponent = exponent < -149 ? -149 : exponent > 128 ? 128 : exponent;
    int shift = (int)(PRODUCT_BITS - exponent), half = shift / 2;
    float2 up;
    up.x = FLOAT_FROM_BITS((u32)(half + 127) << 23);
    up.y = FLOAT_FROM_BITS((u32)(shift - half + 127) << 23);
    return up;
}

/* Read this thread's elements of a slab: one k, and every eighth row; zeros outside the matrix. */
INLINE void read_slab(float *read, const float *from, i64 down, int rows)
{
#pragma unroll
    for (int i = 0; i < OWN; i++, from += 8 * down) read[i] = i * 8 < rows ? *from : 0.0f;
}

INLINE void write_slab(double *slab, const float *read, const float2 *up, int row, int k)
{
#pragma unroll
    for (int i = 0; i < OWN; i++)
        slab[place_in_slab(row + i * 8, k)] = round_in_slab(read[i], up[row + i * 8]);
}

/* The product of x, (batch, m, length), and y, (batch, length, n), each with three strides. Part s of
 * `splits` of the summed axis begins at s `part`. `x_tops` are exponents, (x_parts, x_lines); the largest
 * of each line's parts is written to `left`, as is that of `y_tops` to `right`. With one split the result is written to `out` or
 * `whole`; otherwise sums of integers go to `parts`, (splits, batch, m, n), for `join_splits`. */
extern "C" __global__ void __launch_bounds__(128)
multiply_f32(const float *x, const float *y, const i64 *x_tops, const i64 *y_tops, i64 *left,
             i64 *right, const float *bias, float *out, double *whole, i64 *parts, i64 splits,
             i64 part, i64 batch, i64 m, i64 n, i64 length, i64 inner, i64 x_parts, i64 x_lines,
             i64 left_matrix, i64 y_parts, i64 y_lines, i64 right_matrix, i64 x_matrix, i64 x_row,
             i64 x_along, i64 y_matrix, i64 y_along, i64 y_column)
{
    __shared__ double2 slabs[2][2][PANEL]; /* two in turn, of both operands; pairs of k */
    __shared__ float2 up[2][SIDE];
    __shared__ double steps[2][SIDE];
    /* [Step 1] Find this block's part: neighbours share the longer operand's elements. */
    i64 high = (m + SIDE - 1) / SIDE, wide = (n + SIDE - 1) / SIDE, block = blockIdx.x;
    i64 tile = block % (high * wide), rest = block / (high * wide);
    i64 split = rest % splits, b = rest / splits;
    i64 first_row = (high <= wide ? tile % high : tile / wide) * SIDE;
    i64 first_column = (high <= wide ? tile / high : tile % wide) * SIDE;
    i64 begin = split * part, end = begin + part < length ? begin + part : length;
    /* [Step 2] Find the exponents of rows and columns, for `join_splits` too. */
    int t = threadIdx.x, lane = t % 32, warp = t / 32, is_right = t >= SIDE;
    i64 line = is_right ? first_column + t - SIDE : first_row + t;
    if (line < (is_right ? n : m)) {
        i64 at = b * (is_right ? right_matrix : left_matrix) + line;
        i64 lines = is_right ? y_lines : x_lines, top = LOWEST_EXPONENT;
        for (i64 i = 0; i < (is_right ? y_parts : x_parts); i++) {
            i64 other = (is_right ? y_tops : x_tops)[i * lines + at];
            top = LARGER(top, other);
        }
        up[is_right][t % SIDE] = find_factors(top);
        steps[is_right][t % SIDE] = step_of(top);
        (is_right ? right : left)[at] = top;
    }
    __syncthreads();
    /* [Step 3] Choose what this thread reads: neighbours read what is contiguous in memory. */
    int k_x = x_along == 1 ? t % SLAB : t / 8, row_x = x_along == 1 ? t / SLAB : t % 8;
    int k_y = y_along == 1 ? t % SLAB : t / 8, row_y = y_along == 1 ? t / SLAB : t % 8;
    int rows_x = (int)(m - first_row < SIDE ? m - first_row : SIDE) - row_x;
    int rows_y = (int)(n - first_column < SIDE ? n - first_column : SIDE) - row_y;
    int left_over = (int)(end - begin);
    x += b * x_matrix + (first_row + row_x) * x_row + (begin + k_x) * x_along;
    y += b * y_matrix + (first_column + row_y) * y_column + (begin + k_y) * y_along;
    float read_x[OWN], read_y[OWN];
    read_slab(read_x, x, x_row, k_x < left_over ? rows_x : 0);
    read_slab(read_y, y, y_column, k_y < left_over ? rows_y : 0);
    /* [Step 4] Multiply slab after slab, reading the next one meanwhile. */
    int group = lane / 4, member = lane % 4, row = warp / 2 * 32, column = warp % 2 * 32;
    double sums[2][4][4];
    i64 totals[2][4][4];
#pragma unroll
    for (int i = 0; i < 32; i++) sums[i / 16][i / 4 % 4][i % 4] = 0.0, totals[i / 16][i / 4 % 4][i % 4] = 0;
    int turn = 0, added = 0; /* which slab is written, and how many products the sums hold */
    for (; left_over > 0; left_over -= SLAB) {
        double2 *slab_x = slabs[turn][0], *slab_y = slabs[turn][1];
        write_slab((double *)slab_x, read_x, up[0], row_x, k_x);
        write_slab((double *)slab_y, read_y, up[1], row_y, k_y);
        __syncthreads();
        x += SLAB * x_along, y += SLAB * y_along;
        read_slab(read_x, x, x_row, k_x < left_over - SLAB ? rows_x : 0);
        read_slab(read_y, y, y_column, k_y < left_over - SLAB ? rows_y : 0);
#pragma unroll
        for (int k = 0; k < SLAB; k += 8) {
            /* The order of k within a slab is free: a thread takes a pair of neighbours. */
            double a[2][4], c[4][2];
#pragma unroll
            for (int i = 0; i < 4; i++) {
                double2 pair = slab_x[place_in_slab(row + i * 8 + group, k + member * 2) / 2];
                a[i / 2][i % 2] = pair.x, a[i / 2][i % 2 + 2] = pair.y;
                pair = slab_y[place_in_slab(column + i * 8 + group, k + member * 2) / 2];
                c[i][0] = pair.x, c[i][1] = pair.y;
            }
#pragma unroll
            for (int i = 0; i < 8; i++) multiply_tiles(sums[i / 4][i % 4], a[i / 4], c[i % 4]);
        }
        turn = 1 - turn, added += SLAB;
        if (added == CHUNK || left_over <= SLAB) {
            added = 0;
#pragma unroll
            for (int i = 0; i < 32; i++) {
                totals[i / 16][i / 4 % 4][i % 4] += (i64)sums[i / 16][i / 4 % 4][i % 4];
                sums[i / 16][i / 4 % 4][i % 4] = 0.0;
            }
        }
    }
    /* [Step 5] Write. */
#pragma unroll
    for (int i = 0; i < 32; i++) {
        i64 at_row = first_row + row + i / 16 * 16 + i % 4 / 2 * 8 + group;
        i64 at_column = first_column + column + i / 4 % 4 * 8 + member * 2 + i % 2;
        i64 total = totals[i / 16][i / 4 % 4][i % 4];
        if (at_row >= m || at_column >= n) continue;
        if (parts)
            parts[((split * batch + b) * m + at_row) * n + at_column] = total;
        else
            write_product((double)total, steps[0][at_row - first_row],
                          steps[1][at_column - first_column], b * m + at_row, at_column, bias, out,
                          whole, batch * m, n, inner);
    }
}
#endif
