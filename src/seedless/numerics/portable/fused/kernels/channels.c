/* Batch norms: (batch, channels, length), each channel a sum over batch and length. */

#ifdef __CUDACC__
#define CHANNEL(at, c, clause)                                                             \
    for (u32 i = threadIdx.x; i < (u32)(batch * length); i += blockDim.x)                  \
        for (i64 at = ((i64)(i / (u32)length) * channels + (c)) * length + i % (u32)length, \
                 once = 1; once; once = 0)
#else
#define CHANNEL(at, c, clause)              \
    for (i64 b = 0; b < batch; b++)         \
        SIMD(clause)                        \
        for (i64 at = (b * channels + (c)) * length; at < (b * channels + (c) + 1) * length; at++)
#endif

/* A running statistic in float32: old (1 - momentum) + now momentum. */
INLINE float follow(float old, float now, double momentum)
{
    float kept = old * (float)(1.0 - momentum), more = now * (float)momentum;
    return kept + more;
}

KERNEL batch_norm(const float *x, const float *weight, const float *bias, float *running_mean,
                  float *running_var, float *y, float *mean, float *scale, i64 batch, i64 channels,
                  i64 length, double momentum, double eps)
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
        i64 e = float_exponent(TOP(top));
        double up = power_of_two(SUM_BITS - e), sum = 0.0;
        CHANNEL(at, c, reduction(+ : sum)) sum += rint((double)x[at] * up);
        double centre = on_grid(ADD(sum), e) / size;
        top = 0;
        CHANNEL(at, c, reduction(max : top))
        {
            double gap = (double)x[at] - centre;
            i64 bits = BITS_OF(gap * gap) & MAGNITUDE;
            top = LARGER(top, bits);
        }
        e = exponent_of(TOP(top));
        up = power_of_two(SUM_BITS - e), sum = 0.0;
        CHANNEL(at, c, reduction(+ : sum))
        {
            double gap = (double)x[at] - centre;
            sum += rint(gap * gap * up);
        }
        double variance = on_grid(ADD(sum), e) / size;
        float kept = (float)centre, by = (float)(1.0 / root(variance + eps));
        CHANNEL(at, c, )
        {
            double v = ((double)x[at] - (double)kept) * (double)by;
            if (weight) v = v * (double)weight[c];
            if (bias) v = v + (double)bias[c];
            y[at] = (float)v;
        }
        if (LEADER) {
            mean[c] = kept, scale[c] = by;
            if (running_mean) running_mean[c] = follow(running_mean[c], kept, momentum);
            double spread = variance * size / (size > 2.0 ? size - 1.0 : 1.0);
            if (running_var) running_var[c] = follow(running_var[c], (float)spread, momentum);
        }
    }
}

KERNEL batch_norm_backward(const float *grad, const float *x, const float *weight,
                           const float *mean, const float *scale, float *of_x, float *of_weight,
                           float *of_bias, i64 batch, i64 channels, i64 length)
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
        i64 e = exponent_of(TOP(top)), e_normed = exponent_of(TOP(top_normed));
        i64 e_inner = exponent_of(TOP(top_inner)), e_product = exponent_of(TOP(top_product));
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
        sum = on_grid(ADD(sum), e), sum_normed = on_grid(ADD(sum_normed), e_normed);
        double first = on_grid(ADD(sum_inner), e_inner) / size;
        double second = on_grid(ADD(sum_product), e_product) / size;
        CHANNEL(at, c, )
        {
            double inner = (double)grad[at] * factor, normed = ((double)x[at] - centre) * by;
            of_x[at] = (float)((inner - first - normed * second) * by);
        }
        if (LEADER) of_weight[c] = (float)sum_normed, of_bias[c] = (float)sum;
    }
}
