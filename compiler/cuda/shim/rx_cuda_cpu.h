// Runs CUDA C on a CPU: the text is compiled as C++ after this header, unchanged, and linked with rx_cuda_cpu.cpp.
//
// One block runs at a time. Each of its threads is a fiber with a separate stack, which runs until it ends or waits: for the
// block at __syncthreads, for its warp at a shuffle or vote. So a kernel runs in one of the orders that a device may choose.
// A kernel whose result depends on the order has a race.
//
// Errors end the process with a message: a barrier that not all threads of a block reach, or reach at different places.
// Built with -fsanitize=address,undefined, accesses out of bounds end the process as well.
//
// This header is compiled with each text, rx_cuda_cpu.cpp only once. So the header has only declarations, templates and functions of
// one line, and includes no large header of the standard library.

#pragma once

#include <initializer_list>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <utility>

#define __global__
#define __device__
#define __host__
#define __constant__ static const
// Blocks run one after the other, so one copy is enough.
#define __shared__ static
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __grid_constant__
#define __align__(bytes) __attribute__((aligned(bytes)))

struct rx_cpu_index { unsigned x, y, z; };

// The thread that runs: its index and its number in the block.
struct rx_cpu_thread { rx_cpu_index index; unsigned number; };

extern rx_cpu_thread* rx_cpu_now;
extern rx_cpu_index rx_cpu_block, rx_cpu_block_extent, rx_cpu_grid_extent;

#define threadIdx (rx_cpu_now->index)
#define blockIdx rx_cpu_block
#define blockDim rx_cpu_block_extent
#define gridDim rx_cpu_grid_extent
static const int warpSize = 32;

// Dynamic shared memory. Its bytes are 0xff at the start of each block, so that elements that are not written are NaN.
extern unsigned char* rx_cpu_shared;
#define RX_SHARED(name) unsigned char* name = rx_cpu_shared

// Ends the process with a message.
[[noreturn]] void rx_cpu_die(const char* message);
// Ends the thread that runs; barriers do not wait for it.
void rx_cpu_exit_thread();

// Calls a kernel with arguments as the driver passes them: a pointer to each.
template <typename... A, size_t... I>
inline void rx_cpu_apply(void (*kernel)(A...), void** arguments, std::index_sequence<I...>) {
    kernel(*(A*)arguments[I]...);
}
template <typename... A>
inline void rx_cpu_apply(void (*kernel)(A...), void** arguments) {
    rx_cpu_apply(kernel, arguments, std::index_sequence_for<A...>());
}

// The kernels of the text, in order.
extern void (*const rx_cpu_kernels[])(void**);

// ---- barriers, shuffles, votes

void rx_cpu_wait_for_block(int line);
#define __syncthreads() rx_cpu_wait_for_block(__LINE__)
void __syncwarp(unsigned mask = 0xffffffffu);
inline void __threadfence() {}
inline void __threadfence_block() {}

// The values that the threads of the block have published, by number, and the number of threads.
extern uint64_t rx_cpu_values[1024];
extern unsigned rx_cpu_threads;

// Shuffle: publishes a value, synchronizes the warp, and returns the value of a lane.
template <typename T, typename Source>
inline T rx_cpu_exchange(unsigned mask, T value, Source source) {
    static_assert(sizeof(T) <= 8, "shuffles move up to 8 bytes");
    uint64_t& published = rx_cpu_values[rx_cpu_now->number];
    published = 0;
    memcpy(&published, &value, sizeof(T));
    __syncwarp(mask);
    unsigned first = rx_cpu_now->number & ~31u;
    int lane = source((int)(rx_cpu_now->number & 31u));
    T result = value;
    if (lane >= 0 && lane < 32 && first + lane < rx_cpu_threads)
        memcpy(&result, &rx_cpu_values[first + lane], sizeof(T));
    __syncwarp(mask);
    return result;
}
template <typename T>
inline T __shfl_sync(unsigned mask, T value, int from, int width = 32) {
    return rx_cpu_exchange(mask, value, [=](int lane) { return (lane & ~(width - 1)) | (from & (width - 1)); });
}
template <typename T>
inline T __shfl_xor_sync(unsigned mask, T value, int by, int width = 32) {
    return rx_cpu_exchange(mask, value, [=](int lane) { int to = lane ^ by; return to / width > lane / width ? lane : to; });
}
template <typename T>
inline T __shfl_down_sync(unsigned mask, T value, unsigned by, int width = 32) {
    return rx_cpu_exchange(mask, value, [=](int lane) { int to = lane + (int)by; return to / width != lane / width ? lane : to; });
}
template <typename T>
inline T __shfl_up_sync(unsigned mask, T value, unsigned by, int width = 32) {
    return rx_cpu_exchange(mask, value, [=](int lane) { return lane % width < (int)by ? lane : lane - (int)by; });
}
unsigned __ballot_sync(unsigned mask, int predicate);
inline int __any_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) != 0; }
inline int __all_sync(unsigned mask, int predicate) { return __ballot_sync(mask, !predicate) == 0; }

// ---- copies to shared memory, and matrices of a warp

void rx_cpu_copy16(void* to, const void* from);
void rx_cpu_copy_commit();
void rx_cpu_copy_wait(int left);

void rx_cpu_ldmatrix(unsigned* to, const void* line, bool transposed);

// The value that a lane of the same warp has published.
inline uint64_t rx_cpu_value_of(unsigned lane) { return rx_cpu_values[(rx_cpu_now->number & ~31u) + lane]; }

// Publishes a pointer of every lane to the others while all of them run `action`.
template <typename Action>
inline void rx_cpu_together(const void* pointer, Action action) {
    rx_cpu_values[rx_cpu_now->number] = (uint64_t)(uintptr_t)pointer;
    __syncwarp();
    action(rx_cpu_now->number & 31u);
    __syncwarp();
}

inline float rx_cpu_add(float a, float b) { return a + b; }
inline int rx_cpu_add(int a, int b) { return (int)((unsigned)a + (unsigned)b); }

// mma.sync of m16n8 and 32 bytes of K, with elements of BYTES bytes. Lanes with lane / 4 = i hold row i of A and column i of B.
template <int BYTES, typename T, typename OfA, typename OfB>
inline void rx_cpu_mma(T* sum, const unsigned* a, const unsigned* b, OfA of_a, OfB of_b) {
    const unsigned per = 4 / BYTES;
    struct Registers { const unsigned *a, *b; } own = {a, b};
    T result[4];
    rx_cpu_together(&own, [&](unsigned lane) {
        auto registers = [](unsigned of) { return (const Registers*)(uintptr_t)rx_cpu_value_of(of); };
        auto element = [=](unsigned word, unsigned at) { return word >> (at % per * BYTES * 8); };
        for (unsigned which = 0; which < 4; ++which) {
            unsigned row = lane / 4 + which / 2 * 8, column = lane % 4 * 2 + which % 2;
            T total = sum[which];
            for (unsigned k = 0; k < 8 * per; ++k) {
                unsigned owner = k / per % 4, high = k / per / 4;
                auto left = of_a(element(registers(row % 8 * 4 + owner)->a[row / 8 + high * 2], k));
                auto right = of_b(element(registers(column * 4 + owner)->b[high], k));
                total = rx_cpu_add(total, (T)left * (T)right);
            }
            result[which] = total;
        }
    });
    for (unsigned which = 0; which < 4; ++which) sum[which] = result[which];
}

// ---- atomics: plain accesses, since threads switch only where they wait

template <typename T, typename U> inline T atomicAdd(T* at, U value) { T old = *at; *at = old + (T)value; return old; }
template <typename T, typename U> inline T atomicSub(T* at, U value) { T old = *at; *at = old - (T)value; return old; }
template <typename T, typename U> inline T atomicExch(T* at, U value) { T old = *at; *at = (T)value; return old; }
template <typename T, typename U> inline T atomicMin(T* at, U value) { T old = *at; if ((T)value < old) *at = (T)value; return old; }
template <typename T, typename U> inline T atomicMax(T* at, U value) { T old = *at; if ((T)value > old) *at = (T)value; return old; }
template <typename T, typename U> inline T atomicAnd(T* at, U value) { T old = *at; *at = old & (T)value; return old; }
template <typename T, typename U> inline T atomicOr(T* at, U value) { T old = *at; *at = old | (T)value; return old; }
template <typename T, typename U> inline T atomicXor(T* at, U value) { T old = *at; *at = old ^ (T)value; return old; }
template <typename T, typename U, typename V>
inline T atomicCAS(T* at, U expected, V value) { T old = *at; if (old == (T)expected) *at = (T)value; return old; }

// ---- CUDA functions that C++ does not have

template <typename To, typename From> inline To rx_cpu_bits(From x) { To y; static_assert(sizeof(x) == sizeof(y), ""); memcpy(&y, &x, sizeof(y)); return y; }
inline float __int_as_float(int x) { return rx_cpu_bits<float>(x); }
inline int __float_as_int(float x) { return rx_cpu_bits<int>(x); }
inline float __uint_as_float(unsigned x) { return rx_cpu_bits<float>(x); }
inline unsigned __float_as_uint(float x) { return rx_cpu_bits<unsigned>(x); }
inline double __longlong_as_double(long long x) { return rx_cpu_bits<double>(x); }
inline long long __double_as_longlong(double x) { return rx_cpu_bits<long long>(x); }
inline int __clz(unsigned x) { return x ? __builtin_clz(x) : 32; }
inline int __clzll(unsigned long long x) { return x ? __builtin_clzll(x) : 64; }
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
inline double rsqrt(double x) { return 1.0 / sqrt(x); }
inline float __expf(float x) { return expf(x); }
inline float __logf(float x) { return logf(x); }
inline float __fdividef(float x, float y) { return x / y; }
inline float __fmul_rn(float x, float y) { return x * y; }
inline double __dmul_rn(double x, double y) { return x * y; }
template <typename T> inline T __ldg(const T* at) { return *at; }
#if !defined(__GLIBC__)
inline float exp10f(float x) { return powf(10.0f, x); }
inline double exp10(double x) { return pow(10.0, x); }
#endif

#include "rx_cuda_hopper.h"
