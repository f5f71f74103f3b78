/* Elementwise functions of float32, computed in float64 and rounded once. */

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

/* Tensors that one launch changes: addresses and sizes travel as an argument, of 4 KB at most. */
#define MAX_ADAM_TENSORS 80
typedef struct {
    float *parameter, *average, *square;
    const float *grad, *step;
    i64 size;
} AdamTensor;
typedef struct {
    AdamTensor tensors[MAX_ADAM_TENSORS];
} AdamTensors;

/* base^t for a whole t below 2^24: a product for each bit, from the lowest up. */
INLINE double raise_to(double base, i64 t)
{
    double out = 1.0;
    for (int bit = 0; bit < STEP_BITS; bit++, base = base * base)
        if (t >> bit & 1) out = out * base;
    return out;
}

/* Adam's step on `count` tensors, each at its own number of steps. */
KERNEL adam(AdamTensors all, i64 count, const double *rate, double beta1, double beta2,
            double weight_decay, double eps, i64 decoupled)
{
    EACH(tensor, count)
    {
        /* Names of their own for what the loop reads: it is vectorized only then. */
        AdamTensor one = all.tensors[tensor];
        float *parameter = one.parameter, *average = one.average, *square = one.square;
        const float *grad = one.grad;
        i64 steps = (i64)one.step[0], elements = one.size;
        double size = rate[0] / (1.0 - raise_to(beta1, steps));
        double bias = root(1.0 - raise_to(beta2, steps));
        double kept = weight_decay != 0.0 && decoupled ? 1.0 - rate[0] * weight_decay : 1.0;
        double penalty = decoupled ? 0.0 : weight_decay;
        MAP(i, elements)
        {
            double g = grad[i], v = parameter[i];
            g = penalty != 0.0 ? g + v * penalty : g;
            v = v * kept;
            double second = g * g * (1.0 - beta2);
            float next = (float)((double)square[i] * beta2 + second);
            float mean = (float)((double)average[i] * beta1 + g * (1.0 - beta1));
            square[i] = next;
            average[i] = mean;
            double bottom = root((double)next) / bias + eps;
            parameter[i] = (float)(v - (double)mean * size / bottom);
        }
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
