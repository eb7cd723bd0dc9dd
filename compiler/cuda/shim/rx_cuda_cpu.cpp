// The runtime of rx_cuda_cpu.h: fibers, blocks, barriers and copies. rx_cuda_cpu.cpp is compiled as one file with rx_cuda_hopper.cpp
// and rx_cuda_cpu_main.cpp, which it includes at its end.

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <sys/mman.h>
#include <vector>

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

#if defined(__SANITIZE_ADDRESS__)
#define RX_CPU_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define RX_CPU_ASAN 1
#endif
#endif
#ifdef RX_CPU_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

#include "rx_cuda_cpu.h"

// A pending cp.async of 16 bytes, and the number of groups committed before it.
struct rx_cpu_copy { void* to; const void* from; int group; };

// A pending wgmma: the sums, the part of the thread, and the number of groups committed before it.
struct rx_cpu_product { void* sums; std::unique_ptr<rx_cpu_part> part; int group; };

// Sums of pending products: their values, which the thread cannot see yet.
struct rx_cpu_sums { void* at; std::vector<uint32_t> values; };

// ---- fibers

enum rx_cpu_state { RX_CPU_NEW, RX_CPU_READY, RX_CPU_BLOCK, RX_CPU_WARP, RX_CPU_PHASE, RX_CPU_DONE };

struct rx_cpu_fiber : rx_cpu_thread {
    rx_cpu_state state = RX_CPU_NEW;
    void* stack = nullptr;
#if defined(__x86_64__)
    void* pointer = nullptr;
#else
    ucontext_t context;
#endif
#ifdef RX_CPU_ASAN
    void* fake = nullptr;
#endif
    // The line at which it waits, and the mask of lanes it waits for.
    int line = 0;
    unsigned mask = 0;
    // Whether a failed check ended it; barriers do not wait for such threads.
    bool failed = false;
    // Its pending copies, and the number of groups it committed.
    std::vector<rx_cpu_copy> copies;
    int copy_groups = 0;
    // The mbarrier it waits for, and the parity of the phase.
    const void* barrier = nullptr;
    unsigned parity = 0;
    // Its part of pending products, their sums, the number of groups it committed, and whether wgmma.fence allows more products.
    std::vector<rx_cpu_product> products;
    std::vector<rx_cpu_sums> sums;
    int product_groups = 0;
    bool may_multiply = false;

    rx_cpu_fiber() : rx_cpu_thread{{0, 0, 0}, 0} {}
};

static const size_t rx_cpu_stack_bytes = 1 << 20;
static rx_cpu_fiber rx_cpu_main;
static std::vector<rx_cpu_fiber> rx_cpu_fibers;
static std::vector<void*> rx_cpu_stacks;
static void (*rx_cpu_kernel)(void**);
static void** rx_cpu_arguments;

rx_cpu_thread* rx_cpu_now = &rx_cpu_main;
rx_cpu_index rx_cpu_block, rx_cpu_block_extent, rx_cpu_grid_extent;
uint64_t rx_cpu_values[1024];
unsigned rx_cpu_threads = 0;
unsigned char* rx_cpu_shared = nullptr;
static size_t rx_cpu_shared_bytes = 0;

static rx_cpu_fiber& rx_cpu_running() { return *static_cast<rx_cpu_fiber*>(rx_cpu_now); }

void rx_cpu_die(const char* message) {
    fprintf(stderr, "rx_cuda_cpu: block %u, thread %u: %s\n", rx_cpu_block.x, rx_cpu_now->number, message);
    fflush(stderr);
    _Exit(3);
}

#if defined(__x86_64__)
// Saves the callee-saved registers on the old stack, and restores them from the new one.
extern "C" void rx_cpu_swap(void** from, void* to);
__asm__(R"(
.text
.type rx_cpu_swap, @function
rx_cpu_swap:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
.size rx_cpu_swap, .-rx_cpu_swap
)");
#endif

static void rx_cpu_switch(rx_cpu_fiber* to) {
    rx_cpu_fiber* from = &rx_cpu_running();
    rx_cpu_now = to;
#ifdef RX_CPU_ASAN
    // A fiber that has ended releases its shadow stack.
    void** fake = from->state == RX_CPU_DONE ? nullptr : &from->fake;
    __sanitizer_start_switch_fiber(fake, to->stack, to->stack ? rx_cpu_stack_bytes : 0);
#endif
#if defined(__x86_64__)
    rx_cpu_swap(&from->pointer, to->pointer);
#else
    swapcontext(&from->context, &to->context);
#endif
#ifdef RX_CPU_ASAN
    // Execution is back in `from`, from any fiber.
    const void* bottom;
    size_t size;
    __sanitizer_finish_switch_fiber(from->fake, &bottom, &size);
#endif
}

void rx_cpu_exit_thread() {
    rx_cpu_running().failed = true;
    rx_cpu_running().state = RX_CPU_DONE;
    rx_cpu_switch(&rx_cpu_main);
}

#ifdef RX_CPU_ASAN
static const void* rx_cpu_main_bottom;
static size_t rx_cpu_main_size;
#endif

static void rx_cpu_entry() {
#ifdef RX_CPU_ASAN
    __sanitizer_finish_switch_fiber(nullptr, &rx_cpu_main_bottom, &rx_cpu_main_size);
    rx_cpu_main.stack = nullptr;
#endif
    rx_cpu_kernel(rx_cpu_arguments);
    rx_cpu_running().state = RX_CPU_DONE;
    rx_cpu_switch(&rx_cpu_main);
    abort();
}

static void rx_cpu_start(rx_cpu_fiber* fiber) {
    if (rx_cpu_stacks.empty()) {
        void* stack = mmap(nullptr, rx_cpu_stack_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (stack == MAP_FAILED) rx_cpu_die("no memory for a thread's stack");
        rx_cpu_stacks.push_back(stack);
    }
    fiber->stack = rx_cpu_stacks.back();
    rx_cpu_stacks.pop_back();
    fiber->state = RX_CPU_READY;
#ifdef RX_CPU_ASAN
    // The previous thread on this stack never returned from its last call, so its frames are still poisoned.
    __asan_unpoison_memory_region(fiber->stack, rx_cpu_stack_bytes);
#endif
#if defined(__x86_64__)
    // rx_cpu_swap returns into the entry, so its stack must be as after a call: 8 bytes off a multiple of 16.
    void** top = (void**)((char*)fiber->stack + rx_cpu_stack_bytes);
    *--top = nullptr;
    *--top = (void*)rx_cpu_entry;
    for (int saved = 0; saved < 6; ++saved) *--top = nullptr;
    fiber->pointer = top;
#else
    getcontext(&fiber->context);
    fiber->context.uc_stack.ss_sp = fiber->stack;
    fiber->context.uc_stack.ss_size = rx_cpu_stack_bytes;
    fiber->context.uc_link = nullptr;
    makecontext(&fiber->context, rx_cpu_entry, 0);
#endif
}

// ---- order

// The order of blocks and of threads in a block. 0: ascending, 1: descending, 2: shuffled by the seed.
static int rx_cpu_order = 0;
static uint64_t rx_cpu_seed = 1;

static uint64_t rx_cpu_mix(uint64_t x) {
    x += 0x9e3779b97f4a7c15ULL;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
    return x ^ x >> 31;
}

// Copies arrive as late as possible, or in descending order at once; a device may do either.
static bool rx_cpu_copies_at_once() { return rx_cpu_order == 1; }

// The element at position `place` of the order of `count` elements.
static uint64_t rx_cpu_place(uint64_t place, uint64_t count) {
    if (rx_cpu_order == 1) return count - 1 - place;
    if (rx_cpu_order == 0 || count < 2) return place;
    // A factor that is coprime to `count` gives a permutation.
    uint64_t factor = rx_cpu_mix(rx_cpu_seed) % count | 1;
    for (;; ++factor) {
        uint64_t a = factor, b = count;
        while (b) { uint64_t rest = a % b; a = b; b = rest; }
        if (a == 1) break;
    }
    uint64_t offset = rx_cpu_mix(rx_cpu_seed + 1) % count;
    return (uint64_t)(((unsigned __int128)place * factor + offset) % count);
}

// ---- blocks

// Defined in rx_cuda_hopper.cpp: mbarriers, and copies that arrive at them.
static bool rx_cpu_phase_has_ended(const void* barrier, unsigned parity);
static bool rx_cpu_deliver();
static void rx_cpu_block_begins();
static void rx_cpu_thread_wrote(const void* chunk);
static void rx_cpu_block_ends(unsigned threads);

// Releases the threads of a warp that all wait for each other, and those of the block if all wait.
static bool rx_cpu_release(unsigned threads) {
    bool released = false;
    for (unsigned first = 0; first < threads; first += 32) {
        unsigned waiting = 0, needed = 0;
        unsigned lanes = threads - first < 32 ? threads - first : 32;
        for (unsigned lane = 0; lane < lanes; ++lane) {
            rx_cpu_fiber& fiber = rx_cpu_fibers[first + lane];
            if (fiber.state != RX_CPU_WARP) continue;
            waiting |= 1u << lane;
            needed |= fiber.mask;
        }
        if (!waiting) continue;
        for (unsigned lane = 0; lane < lanes; ++lane)
            if (rx_cpu_fibers[first + lane].state == RX_CPU_DONE) needed &= ~(1u << lane);
        if (lanes < 32) needed &= (1u << lanes) - 1;
        if ((needed & ~waiting) != 0) continue;
        for (unsigned lane = 0; lane < lanes; ++lane)
            if (waiting >> lane & 1) rx_cpu_fibers[first + lane].state = RX_CPU_READY;
        released = true;
    }
    bool in_phase = false;
    for (unsigned at = 0; at < threads; ++at) {
        rx_cpu_fiber& fiber = rx_cpu_fibers[at];
        if (fiber.state != RX_CPU_PHASE) continue;
        in_phase = true;
        if (!rx_cpu_phase_has_ended(fiber.barrier, fiber.parity)) continue;
        fiber.state = RX_CPU_READY;
        released = true;
    }
    if (released) return true;
    if (in_phase) {
        // No thread can continue, so a copy arrives now, as late as possible.
        if (rx_cpu_deliver()) return true;
        rx_cpu_die("threads wait for a phase of a barrier that never ends");
    }
    int line = 0;
    bool ended = false;
    for (unsigned at = 0; at < threads; ++at) {
        rx_cpu_fiber& fiber = rx_cpu_fibers[at];
        if (fiber.state == RX_CPU_DONE) { ended |= !fiber.failed; continue; }
        if (fiber.state != RX_CPU_BLOCK) rx_cpu_die("threads of a warp wait for one that does not come");
        if (line && fiber.line != line) rx_cpu_die("threads wait at different barriers");
        line = fiber.line;
    }
    if (!line) return false;
    if (ended) rx_cpu_die("a thread ended before a barrier that others wait at");
    for (unsigned at = 0; at < threads; ++at)
        if (rx_cpu_fibers[at].state == RX_CPU_BLOCK) rx_cpu_fibers[at].state = RX_CPU_READY;
    return true;
}

static void rx_cpu_run_block(unsigned threads) {
    rx_cpu_block_begins();
    rx_cpu_threads = threads;
    memset(rx_cpu_values, 0, sizeof(rx_cpu_values));
    for (unsigned at = 0; at < threads; ++at) {
        rx_cpu_fiber& fiber = rx_cpu_fibers[at];
        fiber = rx_cpu_fiber();
        fiber.number = at;
        fiber.index.x = at % rx_cpu_block_extent.x;
        fiber.index.y = at / rx_cpu_block_extent.x % rx_cpu_block_extent.y;
        fiber.index.z = at / (rx_cpu_block_extent.x * rx_cpu_block_extent.y);
    }
    do {
        for (unsigned place = 0; place < threads; ++place) {
            rx_cpu_fiber* fiber = &rx_cpu_fibers[rx_cpu_place(place, threads)];
            if (fiber->state == RX_CPU_NEW) rx_cpu_start(fiber);
            if (fiber->state != RX_CPU_READY) continue;
            rx_cpu_switch(fiber);
            if (fiber->state == RX_CPU_DONE && fiber->stack) {
                rx_cpu_stacks.push_back(fiber->stack);
                fiber->stack = nullptr;
            }
        }
    } while (rx_cpu_release(threads));
    rx_cpu_block_ends(threads);
}

static void rx_cpu_launch(void (*kernel)(void**), rx_cpu_index grid, rx_cpu_index block, size_t shared, void** arguments) {
    if (block.x > 1024 || block.y > 1024 || block.z > 64) rx_cpu_die("a block has more threads along an axis than a device");
    unsigned threads = block.x * block.y * block.z;
    if (threads > 1024) rx_cpu_die("a block has more threads than a device");
    if (shared > 227 * 1024) rx_cpu_die("a block has more shared memory than a device");
    uint64_t blocks = (uint64_t)grid.x * grid.y * grid.z;
    if (rx_cpu_fibers.size() < threads) rx_cpu_fibers.resize(threads);
    rx_cpu_kernel = kernel;
    rx_cpu_arguments = arguments;
    rx_cpu_grid_extent = grid;
    rx_cpu_block_extent = block;
    // Exactly the size of the launch, so that the sanitizer detects accesses past the end.
    void* bytes = nullptr;
    if (posix_memalign(&bytes, 1024, shared ? shared : 1)) rx_cpu_die("no shared memory");
    rx_cpu_shared = (unsigned char*)bytes;
    rx_cpu_shared_bytes = shared;
    for (uint64_t place = 0; place < blocks; ++place) {
        memset(rx_cpu_shared, 0xff, shared);
        uint64_t at = rx_cpu_place(place, blocks);
        rx_cpu_block = {(unsigned)(at % grid.x), (unsigned)(at / grid.x % grid.y), (unsigned)(at / grid.x / grid.y)};
        rx_cpu_run_block(threads);
    }
    free(rx_cpu_shared);
}

// ---- barriers and votes

static void rx_cpu_wait(rx_cpu_state state, int line) {
    rx_cpu_running().line = line;
    rx_cpu_running().state = state;
    rx_cpu_switch(&rx_cpu_main);
}

void rx_cpu_wait_for_block(int line) { rx_cpu_wait(RX_CPU_BLOCK, line); }

void __syncwarp(unsigned mask) {
    rx_cpu_running().mask = mask;
    rx_cpu_wait(RX_CPU_WARP, 0);
}

unsigned __ballot_sync(unsigned mask, int predicate) {
    rx_cpu_values[rx_cpu_now->number] = predicate != 0;
    __syncwarp(mask);
    unsigned first = rx_cpu_now->number & ~31u, result = 0;
    for (unsigned lane = 0; lane < 32 && first + lane < rx_cpu_threads; ++lane)
        if (mask >> lane & 1 && rx_cpu_fibers[first + lane].state != RX_CPU_DONE) result |= (unsigned)rx_cpu_values[first + lane] << lane;
    __syncwarp(mask);
    return result;
}

// ---- copies to shared memory

static void rx_cpu_copy_arrives(void* to, const void* from) {
    if (from) memcpy(to, from, 16);
    else memset(to, 0, 16);
    rx_cpu_thread_wrote(to);
}
void rx_cpu_copy16(void* to, const void* from) {
    if (((uintptr_t)to | (uintptr_t)from) % 16) rx_cpu_die("a copy of 16 bytes that does not begin at a multiple of them");
    if (rx_cpu_copies_at_once()) rx_cpu_copy_arrives(to, from);
    else rx_cpu_running().copies.push_back({to, from, rx_cpu_running().copy_groups});
}
void rx_cpu_copy_commit() { ++rx_cpu_running().copy_groups; }
void rx_cpu_copy_wait(int left) {
    std::vector<rx_cpu_copy>& copies = rx_cpu_running().copies;
    size_t kept = 0;
    for (const rx_cpu_copy& copy : copies) {
        if (copy.group >= rx_cpu_running().copy_groups - left) {
            copies[kept++] = copy;
            continue;
        }
        rx_cpu_copy_arrives(copy.to, copy.from);
    }
    copies.resize(kept);
}

// ---- matrices of a warp, in the register layout of the PTX ISA

void rx_cpu_ldmatrix(unsigned* to, const void* line, bool transposed) {
    if ((uintptr_t)line % 16) rx_cpu_die("a line of a matrix that does not begin at a multiple of 16 bytes");
    rx_cpu_together(line, [=](unsigned lane) {
        for (unsigned matrix = 0; matrix < 4; ++matrix) {
            auto line_of = [=](unsigned at) { return (const char*)(uintptr_t)rx_cpu_value_of(matrix * 8 + at); };
            if (!transposed) {
                memcpy(&to[matrix], line_of(lane / 4) + lane % 4 * 4, 4);
            } else {
                for (unsigned half = 0; half < 2; ++half)
                    memcpy((char*)&to[matrix] + half * 2, line_of(lane % 4 * 2 + half) + lane / 4 * 2, 2);
            }
        }
    });
}

#include "rx_cuda_hopper.cpp"
#include "rx_cuda_cpu_main.cpp"
