// The functions of rx_cuda_hopper.h: barriers in shared memory (mbarrier), tile copies (TMA) and pending products (wgmma).

// ---- barriers in shared memory

struct rx_cpu_phases { const void* at; int arrivals, left; long long bytes; unsigned phase; };

static std::vector<rx_cpu_phases> rx_cpu_barriers;
// Whether there are initialized barriers that are not visible to copies yet.
static bool rx_cpu_barriers_are_new = false;

static rx_cpu_phases& rx_cpu_phases_of(const void* barrier) {
    for (rx_cpu_phases& phases : rx_cpu_barriers)
        if (phases.at == barrier) return phases;
    rx_cpu_die("a barrier in shared memory that was not initialised");
}
void rx_cpu_barrier_init(const void* barrier, int arrivals) {
    if ((uintptr_t)barrier % 8) rx_cpu_die("a barrier that does not begin at a multiple of 8 bytes");
    const unsigned char* at = (const unsigned char*)barrier;
    if (at < rx_cpu_shared || at + 8 > rx_cpu_shared + rx_cpu_shared_bytes) rx_cpu_die("a barrier outside shared memory");
    rx_cpu_barriers.push_back({barrier, arrivals, arrivals, 0, 0});
    rx_cpu_barriers_are_new = true;
}
void rx_cpu_fence_barrier_init() { rx_cpu_barriers_are_new = false; }
static void rx_cpu_end_phase(rx_cpu_phases& phases) {
    if (phases.left || phases.bytes) return;
    ++phases.phase;
    phases.left = phases.arrivals;
}
void rx_cpu_barrier_arrive(const void* barrier, int bytes) {
    rx_cpu_phases& phases = rx_cpu_phases_of(barrier);
    if (!phases.left) rx_cpu_die("more threads arrive at a barrier than its phase counts");
    phases.bytes += bytes;
    --phases.left;
    rx_cpu_end_phase(phases);
}
static bool rx_cpu_phase_has_ended(const void* barrier, unsigned parity) {
    return (rx_cpu_phases_of(barrier).phase & 1) != parity;
}
void rx_cpu_barrier_wait(const void* barrier, unsigned parity) {
    if (parity > 1) rx_cpu_die("a parity is 0 or 1");
    if (rx_cpu_phase_has_ended(barrier, parity)) return;
    rx_cpu_running().barrier = barrier;
    rx_cpu_running().parity = parity;
    rx_cpu_wait(RX_CPU_PHASE, 0);
}

// ---- TMA copies

struct rx_cpu_tile { unsigned char* to; rx_cpu_tensor_map map; long long at[5]; const void* barrier; };

static std::vector<rx_cpu_tile> rx_cpu_tiles;

static void rx_cpu_tile_arrives(const rx_cpu_tile& tile) {
    const rx_cpu_tensor_map& map = tile.map;
    size_t elements = 1, bytes = map.element_bytes;
    for (uint32_t axis = 0; axis < map.rank; ++axis) elements *= map.tile[axis];
    for (size_t element = 0; element < elements; ++element) {
        size_t rest = element;
        const char* from = map.from;
        bool inside = true;
        for (uint32_t axis = 0; axis < map.rank; ++axis) {
            long long place = tile.at[axis] + (long long)(rest % map.tile[axis]);
            rest /= map.tile[axis];
            inside = inside && place >= 0 && (uint64_t)place < map.extents[axis];
            from += place * (long long)map.strides[axis];
        }
        uintptr_t at = (uintptr_t)(tile.to + element * bytes);
        at ^= (at >> 7 & 7) << 4;
        if (inside) memcpy((void*)at, from, bytes);
        else memset((void*)at, 0, bytes);
    }
    rx_cpu_phases& phases = rx_cpu_phases_of(tile.barrier);
    phases.bytes -= (long long)(elements * bytes);
    rx_cpu_end_phase(phases);
}

void rx_cpu_tma_load(void* to, const rx_cpu_tensor_map& map, const void* barrier, std::initializer_list<int> places) {
    if (places.size() != map.rank) rx_cpu_die("a copy with another number of axes than its tensor has");
    if ((uintptr_t)to % 128) rx_cpu_die("a tile that does not begin at a multiple of 128 bytes");
    if ((uintptr_t)map.from % 16) rx_cpu_die("a tensor that does not begin at a multiple of 16 bytes");
    if (map.tile[0] * map.element_bytes != 128) rx_cpu_die("a tile whose lines are not 128 bytes long");
    for (uint32_t axis = 1; axis < map.rank; ++axis)
        if (map.strides[axis] % 16) rx_cpu_die("a stride that is no multiple of 16 bytes");
    if (rx_cpu_barriers_are_new) rx_cpu_die("a copy to a barrier that was initialised and not fenced");
    rx_cpu_phases_of(barrier);
    rx_cpu_tile tile = {(unsigned char*)to, map, {}, barrier};
    size_t axis = 0;
    for (int place : places) tile.at[axis++] = place;
    if (rx_cpu_copies_at_once()) rx_cpu_tile_arrives(tile);
    else rx_cpu_tiles.push_back(tile);
}

// Lets one pending copy arrive, if there is any. The choice is arbitrary, as on a device.
static bool rx_cpu_deliver() {
    if (rx_cpu_tiles.empty()) return false;
    size_t number = (size_t)rx_cpu_place(0, rx_cpu_tiles.size());
    rx_cpu_tile tile = rx_cpu_tiles[number];
    rx_cpu_tiles.erase(rx_cpu_tiles.begin() + (long)number);
    rx_cpu_tile_arrives(tile);
    return true;
}

// ---- wgmma

// For each chunk of shared memory that cp.async wrote without a fence.proxy.async since: the thread's number plus 1, otherwise 0.
static std::vector<unsigned> rx_cpu_hidden;

static void rx_cpu_thread_wrote(const void* chunk) {
    size_t at = (size_t)((const unsigned char*)chunk - rx_cpu_shared) / 16;
    if ((const unsigned char*)chunk >= rx_cpu_shared && at < rx_cpu_hidden.size()) rx_cpu_hidden[at] = rx_cpu_now->number + 1;
}
void rx_cpu_fence_async_proxy() {
    for (unsigned& chunk : rx_cpu_hidden)
        if (chunk == rx_cpu_now->number + 1) chunk = 0;
}
unsigned rx_cpu_shared_address(const void* at) {
    ptrdiff_t offset = (const unsigned char*)at - rx_cpu_shared;
    if (offset < 0 || (size_t)offset >= rx_cpu_shared_bytes) rx_cpu_die("a matrix outside shared memory");
    return (unsigned)offset;
}

unsigned rx_cpu_element(unsigned bytes, bool lines_together, uint64_t matrix, unsigned line, unsigned k) {
    const size_t start = (matrix & 0x3fff) << 4, leading = (matrix >> 16 & 0x3fff) << 4, stride = (matrix >> 32 & 0x3fff) << 4;
    size_t at = lines_together
        ? start + line / (128 / bytes) * leading + k / 8 * stride + k % 8 * 128 + line % (128 / bytes) * bytes
        : start + line / 8 * stride + line % 8 * 128 + k * bytes;
    at ^= (at >> 7 & 7) << 4;
    if (at + bytes > rx_cpu_shared_bytes) rx_cpu_die("a matrix that ends outside shared memory");
    if (rx_cpu_hidden[at / 16]) rx_cpu_die("a product reads cp.async data without fence.proxy.async");
    unsigned bits = 0;
    memcpy(&bits, rx_cpu_shared + at, bytes);
    return bits;
}

void rx_cpu_wgmma_fence() {
    __syncwarp();
    rx_cpu_running().may_multiply = true;
}
void rx_cpu_wgmma_commit() { ++rx_cpu_running().product_groups; }

static std::vector<uint32_t>* rx_cpu_sums_of(void* at) {
    for (rx_cpu_sums& sums : rx_cpu_running().sums)
        if (sums.at == at) return &sums.values;
    return nullptr;
}

// The value of pending sums: a NaN, and an unlikely integer.
static const uint32_t rx_cpu_unknown = 0x7fbadbad;

void rx_cpu_product_begins(void* sums, size_t words, uint64_t a, uint64_t b, rx_cpu_part* part) {
    std::unique_ptr<rx_cpu_part> owned(part);
    for (uint64_t matrix : {a, b}) {
        if (matrix >> 62 != 1) rx_cpu_die("a matrix that is not permuted in lines of 128 bytes");
        if (matrix >> 49 & 7) rx_cpu_die("a matrix with a base offset");
    }
    rx_cpu_fiber& own = rx_cpu_running();
    if (!own.may_multiply) rx_cpu_die("a product whose sums were touched since the last wgmma.fence");
    if (rx_cpu_sums_of(sums)) {
        for (size_t word = 0; word < words; ++word)
            if (memcmp((char*)sums + word * 4, &rx_cpu_unknown, 4)) rx_cpu_die("sums were written while products add to them");
    } else {
        rx_cpu_sums fresh = {sums, std::vector<uint32_t>(words)};
        memcpy(fresh.values.data(), sums, words * 4);
        own.sums.push_back(fresh);
        for (size_t word = 0; word < words; ++word) memcpy((char*)sums + word * 4, &rx_cpu_unknown, 4);
    }
    own.products.push_back({sums, std::move(owned), own.product_groups});
}

void rx_cpu_wgmma_wait(int left) {
    rx_cpu_fiber& own = rx_cpu_running();
    size_t kept = 0;
    for (size_t at = 0; at < own.products.size(); ++at) {
        rx_cpu_product& product = own.products[at];
        if (product.group >= own.product_groups - left) {
            if (kept != at) own.products[kept] = std::move(product);
            ++kept;
            continue;
        }
        product.part->add(rx_cpu_sums_of(product.sums)->data());
    }
    own.products.resize(kept);
    // Sums without pending products become visible to the thread.
    for (size_t at = own.sums.size(); at-- > 0;) {
        rx_cpu_sums& sums = own.sums[at];
        bool goes_on = false;
        for (const rx_cpu_product& product : own.products) goes_on |= product.sums == sums.at;
        if (goes_on) continue;
        memcpy(sums.at, sums.values.data(), sums.values.size() * 4);
        own.sums.erase(own.sums.begin() + (long)at);
        own.may_multiply = false;
    }
    // wgmma.wait_group is warp-synchronous.
    __syncwarp();
}

// ---- blocks

static void rx_cpu_block_begins() {
    rx_cpu_barriers.clear();
    rx_cpu_barriers_are_new = false;
    rx_cpu_tiles.clear();
    rx_cpu_hidden.assign(rx_cpu_shared_bytes / 16 + 1, 0);
}
static void rx_cpu_block_ends(unsigned threads) {
    if (!rx_cpu_tiles.empty()) rx_cpu_die("a block ended before its copies arrived");
    for (unsigned at = 0; at < threads; ++at)
        if (!rx_cpu_fibers[at].products.empty()) rx_cpu_die("a thread ended before its products did");
}
