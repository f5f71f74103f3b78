/* Enough of CUDA to run kernels on a CPU, one thread after another: a barrier hands over to the
 * next thread of the block, and the blocks follow one another. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

struct Place {
    unsigned x, y, z;
};
static Place threadIdx, blockIdx, blockDim, gridDim;

#define __device__
#define __launch_bounds__(threads)
#define __forceinline__ inline
#define __shared__ static

static ucontext_t scheduler, *current;
static void __syncthreads() { swapcontext(current, &scheduler); }

template <class T>
static T __shfl_xor_sync(unsigned, T value, int step)
{
    static T given[1024];
    unsigned me = threadIdx.y * blockDim.x + threadIdx.x;
    given[me] = value;
    __syncthreads();
    T other = given[me ^ (unsigned)step];
    __syncthreads();
    return other;
}

static long long atomicMax(long long *place, long long value)
{
    long long before = *place;
    if (value > before) *place = value;
    return before;
}
static double atomicAdd(double *place, double value)
{
    double before = *place;
    *place = before + value;
    return before;
}
static long long __double_as_longlong(double x)
{
    long long bits;
    memcpy(&bits, &x, 8);
    return bits;
}
static double __longlong_as_double(long long bits)
{
    double x;
    memcpy(&x, &bits, 8);
    return x;
}
static int __float_as_int(float x)
{
    int bits;
    memcpy(&bits, &x, 4);
    return bits;
}
static float __int_as_float(int bits)
{
    float x;
    memcpy(&x, &bits, 4);
    return x;
}

static void (*body)(void *);
static void *given_to_body;
static int *over, running;

static void enter()
{
    body(given_to_body);
    over[running] = 1;
    swapcontext(current, &scheduler);
}

/* Call a function once for every thread of every block, as a launch does. */
static void launch(unsigned across, unsigned down, unsigned wide, unsigned high, void (*f)(void *),
                   void *args)
{
    const unsigned threads = wide * high;
    const size_t room = 1 << 16;
    ucontext_t *contexts = (ucontext_t *)calloc(threads, sizeof(ucontext_t));
    char *stacks = (char *)malloc(threads * room);
    over = (int *)malloc(threads * sizeof(int));
    body = f, given_to_body = args;
    gridDim = {across, down, 1}, blockDim = {wide, high, 1};
    for (unsigned block = 0; block < across * down; block++) {
        for (unsigned t = 0; t < threads; t++) {
            getcontext(&contexts[t]);
            contexts[t].uc_stack.ss_sp = stacks + t * room;
            contexts[t].uc_stack.ss_size = room;
            contexts[t].uc_link = &scheduler;
            makecontext(&contexts[t], enter, 0);
            over[t] = 0;
        }
        for (unsigned left = threads; left > 0;) {
            left = 0;
            for (unsigned t = 0; t < threads; t++) {
                if (over[t]) continue;
                blockIdx = {block % across, block / across, 0}, threadIdx = {t % wide, t / wide, 0};
                current = &contexts[t], running = (int)t;
                swapcontext(&scheduler, current);
                left += !over[t];
            }
        }
    }
    free(contexts), free(stacks), free(over);
}
