/* Elementwise functions of float32, computed in float64 and rounded once. */

KERNEL gelu(const float *x, float *y, i64 n)
{
    MAP(i, n)
    {
        double v = x[i];
        y[i] = (float)((error_function(v * ROOT_HALF) + 1.0) * 0.5 * v);
    }
}

KERNEL gelu_backward(const float *grad, const float *x, float *out, i64 n)
{
    MAP(i, n)
    {
        double v = x[i];
        double s = error_function(v * ROOT_HALF);
        double slope = exponential(v * v * -0.5) * ROOT_2_PER_PI;
        out[i] = (float)((s + 1.0 + slope * v) * 0.5 * (double)grad[i]);
    }
}

KERNEL silu(const float *x, float *y, i64 n)
{
    MAP(i, n)
    {
        double v = x[i];
        y[i] = (float)(v * logistic(v));
    }
}

KERNEL silu_backward(const float *grad, const float *x, float *out, i64 n)
{
    MAP(i, n)
    {
        double v = x[i], s = logistic(v);
        out[i] = (float)((double)grad[i] * (s * (v * (1.0 - s) + 1.0)));
    }
}

KERNEL sigmoid(const float *x, float *y, i64 n)
{
    MAP(i, n) y[i] = (float)logistic((double)x[i]);
}

KERNEL exponentials(const float *x, float *y, i64 n)
{
    MAP(i, n) y[i] = (float)exponential((double)x[i]);
}

KERNEL relu(const float *x, float *y, i64 n)
{
    MAP(i, n) y[i] = x[i] <= 0.0f ? 0.0f : x[i];
}

KERNEL relu_backward(const float *grad, const float *x, float *out, i64 n)
{
    MAP(i, n) out[i] = x[i] <= 0.0f ? 0.0f : grad[i];
}

/* Adam's step on one tensor. `size` is the rate over its bias correction, `bias` the root of the
 * correction of the squares. */
KERNEL adam(float *p, const float *grad, float *average, float *square, const double *rate,
            const double *size, const double *bias, i64 n, double beta1, double beta2,
            double weight_decay, double eps, i64 decoupled)
{
    MAP(i, n)
    {
        double g = grad[i], v = p[i];
        if (weight_decay != 0.0 && decoupled)
            v = v * (1.0 - rate[0] * weight_decay);
        else if (weight_decay != 0.0)
            g = g + v * weight_decay;
        double second = g * g * (1.0 - beta2);
        float next = (float)((double)square[i] * beta2 + second);
        float mean = (float)((double)average[i] * beta1 + g * (1.0 - beta1));
        square[i] = next;
        average[i] = mean;
        double bottom = root((double)next) / bias[0] + eps;
        p[i] = (float)(v - (double)mean * size[0] / bottom);
    }
}

/* A step of gradient descent on one tensor; without momentum there is no `buffer`. */
KERNEL sgd(float *p, const float *grad, float *buffer, const double *rate, i64 n,
           double weight_decay, double momentum, double dampening, i64 nesterov, i64 maximize,
           i64 first)
{
    MAP(i, n)
    {
        double v = p[i], g = maximize ? -(double)grad[i] : (double)grad[i];
        if (weight_decay != 0.0) g = g + v * weight_decay;
        if (buffer) {
            double old = (double)buffer[i] * momentum;
            float rounded = (float)(first ? g : old + g * (1.0 - dampening));
            buffer[i] = rounded;
            g = nesterov ? g + (double)rounded * momentum : (double)rounded;
        }
        p[i] = (float)(v - g * rate[0]);
    }
}
