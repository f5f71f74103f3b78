/* Batch norms of (batch, channels, length): each channel sums over batch and length. */

#ifdef __CUDACC__
/* Where element i of a channel lies. The quotient from the reciprocal is right or one too small. */
INLINE i64 place_in_channel(u32 i, u32 reciprocal, u32 length, i64 channels, i64 c)
{
    u32 sample = __umulhi(i, reciprocal), rest = i - sample * length;
    if (rest >= length) sample++, rest -= length;
    return (sample * channels + c) * length + rest;
}
/* Eight elements at a time: a thread reads the next ones while it waits for the first. */
#define CHANNEL(at, c, clause)                                                                   \
    for (u32 reciprocal = 0xffffffffu / (u32)length, all = 1; all; all = 0)                      \
        _Pragma("unroll 8") for (u32 i = threadIdx.x; i < (u32)(batch * length); i += blockDim.x) \
            for (i64 at = place_in_channel(i, reciprocal, (u32)length, channels, c), once = 1;   \
                 once; once = 0)
#else
#define CHANNEL(at, c, clause)              \
    for (i64 b = 0; b < batch; b++)         \
        SIMD(clause)                        \
        for (i64 at = (b * channels + (c)) * length; at < (b * channels + (c) + 1) * length; at++)
#endif

/* A running statistic in float32: old (1 - momentum) + now momentum. */
INLINE float follow(float old, float now, double momentum)
{
    float old_part = old * (float)(1.0 - momentum), new_part = now * (float)momentum;
    return old_part + new_part;
}

KERNEL batch_norm(const float *RESTRICT x, const float *RESTRICT weight, const float *RESTRICT bias,
                  float *RESTRICT running_mean, float *RESTRICT running_var, float *RESTRICT y,
                  float *RESTRICT mean, float *RESTRICT scale, i64 batch, i64 channels, i64 length,
                  double momentum, double eps)
{
    double size = (double)(batch * length);
    ROWS(c, channels)
    {
        i64 top = 0;
        CHANNEL(at, c, reduction(max : top))
        {
            i64 bits = FLOAT_BITS(x[at]) & 0x7fffffff;
            top = LARGER(top, bits);
        }
        i64 e = float_exponent(MAX_OF_LANES(top));
        double up = power_of_two(SUM_BITS - e), sum = 0.0;
        CHANNEL(at, c, reduction(+ : sum)) sum += rint((double)x[at] * up);
        double centre = on_grid(SUM_OF_LANES(sum), e) / size;
        top = 0;
        CHANNEL(at, c, reduction(max : top))
        {
            double gap = (double)x[at] - centre;
            i64 bits = BITS_OF(gap * gap) & MAGNITUDE;
            top = LARGER(top, bits);
        }
        e = exponent_of(MAX_OF_LANES(top));
        up = power_of_two(SUM_BITS - e), sum = 0.0;
        CHANNEL(at, c, reduction(+ : sum))
        {
            double gap = (double)x[at] - centre;
            sum += rint(gap * gap * up);
        }
        double variance = on_grid(SUM_OF_LANES(sum), e) / size;
        float rounded = (float)centre, by = (float)(1.0 / root(variance + eps));
        CHANNEL(at, c, )
        {
            double v = ((double)x[at] - (double)rounded) * (double)by;
            if (weight) v = v * (double)weight[c];
            if (bias) v = v + (double)bias[c];
            y[at] = (float)v;
        }
        if (LEADER) {
            mean[c] = rounded, scale[c] = by;
            if (running_mean) running_mean[c] = follow(running_mean[c], rounded, momentum);
            double sample_variance = variance * size / (size > 2.0 ? size - 1.0 : 1.0);
            if (running_var) running_var[c] = follow(running_var[c], (float)sample_variance, momentum);
        }
    }
}

KERNEL batch_norm_backward(const float *RESTRICT grad, const float *RESTRICT x, const float *weight,
                           const float *mean, const float *scale, float *RESTRICT of_x,
                           float *of_weight, float *of_bias, i64 batch, i64 channels, i64 length)
{
    double size = (double)(batch * length);
    ROWS(c, channels)
    {
        double centre = mean[c], by = scale[c], factor = weight ? (double)weight[c] : 1.0;
        i64 top = 0, top_normed = 0, top_inner = 0, top_product = 0;
        CHANNEL(at, c, reduction(max : top, top_normed, top_inner, top_product))
        {
            double g = grad[at], inner = g * factor, normed = ((double)x[at] - centre) * by;
            i64 one = BITS_OF(g) & MAGNITUDE, two = BITS_OF(g * normed) & MAGNITUDE;
            i64 three = BITS_OF(inner) & MAGNITUDE, four = BITS_OF(inner * normed) & MAGNITUDE;
            top = LARGER(top, one);
            top_normed = LARGER(top_normed, two);
            top_inner = LARGER(top_inner, three);
            top_product = LARGER(top_product, four);
        }
        i64 e = exponent_of(MAX_OF_LANES(top)), e_normed = exponent_of(MAX_OF_LANES(top_normed));
        i64 e_inner = exponent_of(MAX_OF_LANES(top_inner)), e_product = exponent_of(MAX_OF_LANES(top_product));
        double up = power_of_two(SUM_BITS - e), up_normed = power_of_two(SUM_BITS - e_normed);
        double up_inner = power_of_two(SUM_BITS - e_inner);
        double up_product = power_of_two(SUM_BITS - e_product);
        double sum = 0.0, sum_normed = 0.0, sum_inner = 0.0, sum_product = 0.0;
        CHANNEL(at, c, reduction(+ : sum, sum_normed, sum_inner, sum_product))
        {
            double g = grad[at], inner = g * factor, normed = ((double)x[at] - centre) * by;
            sum += rint(g * up);
            sum_normed += rint(g * normed * up_normed);
            sum_inner += rint(inner * up_inner);
            sum_product += rint(inner * normed * up_product);
        }
        sum = on_grid(SUM_OF_LANES(sum), e), sum_normed = on_grid(SUM_OF_LANES(sum_normed), e_normed);
        double first = on_grid(SUM_OF_LANES(sum_inner), e_inner) / size;
        double second = on_grid(SUM_OF_LANES(sum_product), e_product) / size;
        CHANNEL(at, c, )
        {
            double inner = (double)grad[at] * factor, normed = ((double)x[at] - centre) * by;
            of_x[at] = (float)((inner - first - normed * second) * by);
        }
        if (LEADER) of_weight[c] = (float)sum_normed, of_bias[c] = (float)sum;
    }
}

/* The same with channels last in memory: (rows, channels), each channel a column. Sums go down the
 * columns as in column_sums.c; `tops` and `sums` hold one kind of sum after another. */

INLINE double centre_of(const i64 *tops, const double *sums, i64 c, double size)
{
    return on_grid(sums[c], float_exponent(tops[c])) / size;
}

KERNEL gap_maxima(const float *x, i64 *tops, const double *sums, i64 rows, i64 n)
{
    i64 outer = 1;
    TILES(t, ALL_TILES)
    {
        LAY_OUT(t, 0);
        i64 seen[TILE];
        double centre[TILE];
        for (i64 k = 0; k < width; k++)
            seen[k] = 0, centre[k] = centre_of(tops, sums, first + k, (double)rows);
        DOWN(r, rows)
        for (i64 k = 0; k < width; k++) {
            double gap = (double)x[base + r * n + k] - centre[k];
            i64 bits = BITS_OF(gap * gap) & MAGNITUDE;
            seen[k] = LARGER(seen[k], bits);
        }
        maxima_into(tops + n + first, seen, width);
    }
}

KERNEL gap_sums(const float *x, const i64 *tops, double *sums, i64 rows, i64 n)
{
    i64 outer = 1;
    TILES(t, ALL_TILES)
    {
        LAY_OUT(t, 0);
        double seen[TILE], centre[TILE], up[TILE];
        for (i64 k = 0; k < width; k++) {
            seen[k] = 0.0, centre[k] = centre_of(tops, sums, first + k, (double)rows);
            up[k] = power_of_two(SUM_BITS - exponent_of(tops[n + first + k]));
        }
        DOWN(r, rows)
        for (i64 k = 0; k < width; k++) {
            double gap = (double)x[base + r * n + k] - centre[k];
            seen[k] += rint(gap * gap * up[k]);
        }
        sums_into(sums + n + first, seen, width);
    }
}

KERNEL finish_channels(const i64 *tops, const double *sums, float *running_mean,
                       float *running_var, float *mean, float *scale, i64 rows, i64 n,
                       double momentum, double eps)
{
    double size = (double)rows;
    MAP(c, n)
    {
        double centre = centre_of(tops, sums, c, size);
        double variance = on_grid(sums[n + c], exponent_of(tops[n + c])) / size;
        mean[c] = (float)centre, scale[c] = (float)(1.0 / root(variance + eps));
        if (running_mean) running_mean[c] = follow(running_mean[c], (float)centre, momentum);
        double sample_variance = variance * size / (size > 2.0 ? size - 1.0 : 1.0);
        if (running_var) running_var[c] = follow(running_var[c], (float)sample_variance, momentum);
    }
}

KERNEL apply_channels(const float *x, const float *weight, const float *bias, const float *mean,
                      const float *scale, float *y, i64 rows, i64 n)
{
    ROWS(r, rows)
    {
        SIMD()
        LANES(c, n)
        {
            double v = ((double)x[r * n + c] - (double)mean[c]) * (double)scale[c];
            if (weight) v = v * (double)weight[c];
            if (bias) v = v + (double)bias[c];
            y[r * n + c] = (float)v;
        }
    }
}

KERNEL channel_maxima(const float *grad, const float *x, const float *weight, const float *mean,
                    const float *scale, i64 *tops, i64 rows, i64 n)
{
    i64 outer = 1;
    TILES(t, ALL_TILES)
    {
        LAY_OUT(t, 0);
        i64 seen[4][TILE];
        for (i64 k = 0; k < width; k++) seen[0][k] = seen[1][k] = seen[2][k] = seen[3][k] = 0;
        DOWN(r, rows)
        for (i64 k = 0; k < width; k++) {
            i64 c = first + k, at = base + r * n + k;
            double g = grad[at], inner = weight ? g * (double)weight[c] : g;
            double normed = ((double)x[at] - (double)mean[c]) * (double)scale[c];
            i64 one = BITS_OF(g) & MAGNITUDE, two = BITS_OF(g * normed) & MAGNITUDE;
            i64 three = BITS_OF(inner) & MAGNITUDE, four = BITS_OF(inner * normed) & MAGNITUDE;
            seen[0][k] = LARGER(seen[0][k], one);
            seen[1][k] = LARGER(seen[1][k], two);
            seen[2][k] = LARGER(seen[2][k], three);
            seen[3][k] = LARGER(seen[3][k], four);
        }
        for (int part = 0; part < 4; part++) maxima_into(tops + part * n + first, seen[part], width);
    }
}

KERNEL channel_sums(const float *grad, const float *x, const float *weight, const float *mean,
                    const float *scale, const i64 *tops, double *sums, i64 rows, i64 n)
{
    i64 outer = 1;
    TILES(t, ALL_TILES)
    {
        LAY_OUT(t, 0);
        double seen[4][TILE], up[4][TILE];
        for (int part = 0; part < 4; part++)
            for (i64 k = 0; k < width; k++) {
                seen[part][k] = 0.0;
                up[part][k] = power_of_two(SUM_BITS - exponent_of(tops[part * n + first + k]));
            }
        DOWN(r, rows)
        for (i64 k = 0; k < width; k++) {
            i64 c = first + k, at = base + r * n + k;
            double g = grad[at], inner = weight ? g * (double)weight[c] : g;
            double normed = ((double)x[at] - (double)mean[c]) * (double)scale[c];
            seen[0][k] += rint(g * up[0][k]);
            seen[1][k] += rint(g * normed * up[1][k]);
            seen[2][k] += rint(inner * up[2][k]);
            seen[3][k] += rint(inner * normed * up[3][k]);
        }
        for (int part = 0; part < 4; part++) sums_into(sums + part * n + first, seen[part], width);
    }
}

/* `sums` are scaled from their grids: of g, g normed, inner and inner normed. */
KERNEL apply_channel_grads(const float *grad, const float *x, const float *weight,
                           const float *mean, const float *scale, const double *sums, float *of_x,
                           i64 rows, i64 n)
{
    double size = (double)rows;
    ROWS(r, rows)
    {
        SIMD()
        LANES(c, n)
        {
            double g = grad[r * n + c], inner = weight ? g * (double)weight[c] : g;
            double by = scale[c], normed = ((double)x[r * n + c] - (double)mean[c]) * by;
            double first = sums[2 * n + c] / size, second = sums[3 * n + c] / size;
            of_x[r * n + c] = (float)((inner - first - normed * second) * by);
        }
    }
}
