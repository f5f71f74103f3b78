/* The functions of exact/elementary.py, operation by operation; erf is in gelu.c. */

INLINE double exponential(double x)
{
    double rest = x < -700.0 ? -700.0 : x > 700.0 ? 700.0 : x;
    double steps = rint(rest * PER_LN2);
    rest = rest - steps * STEP_HIGH;
    rest = rest - steps * STEP_LOW;
    /* The integer is read from the sum's low bits; a NaN counts as no step. */
    i64 n = BITS_OF((steps == steps ? steps : 0.0) + 0x1.8p52) - BITS_OF(0x1.8p52);
    double out = rest * EXP_6 + EXP_5;
    out = out * rest + EXP_4;
    out = out * rest + EXP_3;
    out = out * rest + EXP_2;
    out = out * rest + EXP_1;
    out = out * rest + EXP_0;
    out = out * POWERS[n & 63];
    return out * FROM_BITS(((n >> 6) + 1023) << 52);
}

INLINE double logistic(double x) { return 1.0 / (exponential(-x) + 1.0); }

INLINE double root(double x)
{
    double guess = FROM_BITS((BITS_OF(x) >> 1) + HALF_BIAS);
    guess = (guess + x / guess) * 0.5;
    guess = (guess + x / guess) * 0.5;
    guess = (guess + x / guess) * 0.5;
    guess = (guess + x / guess) * 0.5;
    double out = x == 0.0 || x == INFINITE ? x : guess;
    return x < 0.0 ? NOT_A_NUMBER : out;
}

/* Rounding to a power-of-two grid, as in exact/rounding_grid.py. */

INLINE i64 exponent_of(i64 magnitude_bits)
{
    i64 exponent = (magnitude_bits >> 52) - 1022;
    return exponent < LOWEST_EXPONENT ? LOWEST_EXPONENT : exponent > HIGHEST_EXPONENT ? HIGHEST_EXPONENT : exponent;
}

INLINE i64 float_exponent(i64 magnitude_bits)
{
    return exponent_of(BITS_OF((double)FLOAT_FROM_BITS((u32)magnitude_bits)));
}

INLINE double power_of_two(i64 exponent) { return FROM_BITS((exponent + 1023) << 52); }

/* An exact sum of integers, scaled from its grid; a sum of negative zeros alone is zero. */
INLINE double on_grid(double sum, i64 exponent) { return sum * power_of_two(exponent - SUM_BITS) + 0.0; }
