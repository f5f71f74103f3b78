/* Enough of CUDA to run kernels on a CPU, one thread after another: at a barrier, or at a shuffle, a
 * thread waits until all of its block, or of its warp, are there, and what some never reach ends the
 * process. The blocks follow one another. Two orders show where a barrier is missing: from the first
 * thread to the last, and backwards. Shared memory holds no zeros when a block begins, but NaNs. */
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
#define __shared__ static __attribute__((section("shared_memory")))

enum State { READY, AT_SHUFFLE, AT_BARRIER, OVER };
static ucontext_t scheduler, *current;
static State *states;
static unsigned running;

static void wait_as(State state)
{
    states[running] = state;
    swapcontext(current, &scheduler);
}
static void __syncthreads() { wait_as(AT_BARRIER); }

template <class T>
static T __shfl_xor_sync(unsigned, T value, int step)
{
    static T given[1024];
    unsigned me = threadIdx.y * blockDim.x + threadIdx.x;
    given[me] = value;
    wait_as(AT_SHUFFLE);
    T other = given[me ^ (unsigned)step];
    wait_as(AT_SHUFFLE);
    return other;
}

struct float2 {
    float x, y;
};
struct double2 {
    double x, y;
};

/* c += a b for a (16, 8), b (8, 8), c (16, 8), shared by a warp as PTX defines it for float64: with
 * group = lane / 4 and member = lane % 4, a thread holds of a the rows group and group + 8 of column
 * member, then of column member + 4; of b the rows member and member + 4 of column group; of c the
 * columns 2 member and 2 member + 1 of row group, then of row group + 8. */
static void multiply_tiles(double *c, const double *a, const double *b)
{
    static double left[32][16][8], right[32][8][8];
    unsigned me = threadIdx.y * blockDim.x + threadIdx.x, warp = me / 32;
    unsigned group = me % 32 / 4, member = me % 4;
    for (int i = 0; i < 4; i++) left[warp][group + i % 2 * 8][member + i / 2 * 4] = a[i];
    for (int i = 0; i < 2; i++) right[warp][member + i * 4][group] = b[i];
    wait_as(AT_SHUFFLE);
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 8; k++)
            c[i] += left[warp][group + i / 2 * 8][k] * right[warp][k][member * 2 + i % 2];
    wait_as(AT_SHUFFLE);
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
static unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((unsigned long long)a * b >> 32); }
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

/* The linker's names for the ends of that section. */
extern char __start_shared_memory[] __attribute__((visibility("hidden")));
extern char __stop_shared_memory[] __attribute__((visibility("hidden")));

static int is_backwards;
extern "C" void run_backwards(int backwards) { is_backwards = backwards; }

static void (*body)(void *);
static void *given_to_body;

static void enter()
{
    body(given_to_body);
    wait_as(OVER);
}

/* Let go on who waits for nobody any more; 0 where all are over. */
static int release(unsigned threads)
{
    unsigned there[4] = {0, 0, 0, 0}, released = 0;
    for (unsigned warp = 0; warp < threads; warp += 32) {
        unsigned end = warp + 32 < threads ? warp + 32 : threads, waiting = 0;
        for (unsigned t = warp; t < end; t++) waiting += states[t] == AT_SHUFFLE;
        if (waiting != 32) continue;
        for (unsigned t = warp; t < end; t++) states[t] = READY;
        released++;
    }
    if (released) return 1;
    for (unsigned t = 0; t < threads; t++) there[states[t]]++;
    if (there[OVER] == threads) return 0;
    if (there[AT_BARRIER] != threads) abort(); /* on a GPU they would wait for ever, or go wrong */
    for (unsigned t = 0; t < threads; t++) states[t] = READY;
    return 1;
}

/* Call a function once for every thread of every block, as a launch does. */
static void launch(unsigned across, unsigned down, unsigned wide, unsigned high, void (*f)(void *),
                   void *args)
{
    const unsigned threads = wide * high;
    const size_t room = 1 << 16;
    ucontext_t *contexts = (ucontext_t *)calloc(threads, sizeof(ucontext_t));
    char *stacks = (char *)malloc(threads * room);
    states = (State *)malloc(threads * sizeof(State));
    body = f, given_to_body = args;
    gridDim = {across, down, 1}, blockDim = {wide, high, 1};
    for (unsigned number = 0; number < across * down; number++) {
        unsigned block = is_backwards ? across * down - 1 - number : number;
        memset(__start_shared_memory, 0xff, __stop_shared_memory - __start_shared_memory);
        for (unsigned t = 0; t < threads; t++) {
            getcontext(&contexts[t]);
            contexts[t].uc_stack.ss_sp = stacks + t * room;
            contexts[t].uc_stack.ss_size = room;
            contexts[t].uc_link = &scheduler;
            makecontext(&contexts[t], enter, 0);
            states[t] = READY;
        }
        do {
            for (unsigned turn = 0; turn < threads; turn++) {
                unsigned t = is_backwards ? threads - 1 - turn : turn;
                if (states[t] != READY) continue;
                blockIdx = {block % across, block / across, 0}, threadIdx = {t % wide, t / wide, 0};
                current = &contexts[t], running = t;
                swapcontext(&scheduler, current);
            }
        } while (release(threads));
    }
    free(contexts), free(stacks), free(states);
}
