// A small driver: a process that runs the kernels of the table rx_cpu_kernels by commands on its standard input. Numbers are
// little-endian.
//
//   1 id:u32 bytes:u64 data    a buffer with contents
//   2 id:u32 bytes:u64         a buffer without contents: every byte is 0xff, so that floats that are not written are NaN
//   3 kernel:u32 grid:3*u32 block:3*u32 shared:u32 count:u32 (1 id:u64 | 0 value:u64 | 2 tensor)*   a launch
//                              tensor: id:u64 offset:u64 bytes:u32 rank:u32 extents:rank*u64 strides:rank*u64 tile:rank*u32
//   4 id:u32                   writes the buffer's bytes to the output
//   5 id:u32                   frees a buffer
//   6 order:u32 seed:u64       the order of blocks and threads of later launches
//   7                          flushes the output

#include <map>

static bool rx_cpu_read(void* into, size_t bytes) { return fread(into, 1, bytes, stdin) == bytes; }

template <typename T> static T rx_cpu_get() {
    T value;
    if (!rx_cpu_read(&value, sizeof(value))) rx_cpu_die("the input ends too early");
    return value;
}

struct rx_cpu_buffer { char* data; size_t bytes; };

int main() {
    std::map<uint32_t, rx_cpu_buffer> buffers;
    uint8_t command;
    while (rx_cpu_read(&command, 1)) {
        if (command == 1 || command == 2) {
            uint32_t id = rx_cpu_get<uint32_t>();
            size_t bytes = (size_t)rx_cpu_get<uint64_t>();
            // Exactly its size, so that the sanitizer detects accesses past the end.
            char* data = (char*)malloc(bytes);
            if (!data && bytes) rx_cpu_die("no memory for a buffer");
            if (command == 2) memset(data, 0xff, bytes);
            else if (bytes && !rx_cpu_read(data, bytes)) rx_cpu_die("the input ends too early");
            buffers[id] = {data, bytes};
        } else if (command == 3) {
            uint32_t kernel = rx_cpu_get<uint32_t>();
            uint32_t shape[7];
            for (uint32_t& extent : shape) extent = rx_cpu_get<uint32_t>();
            rx_cpu_index grid = {shape[0], shape[1], shape[2]}, block = {shape[3], shape[4], shape[5]};
            uint32_t count = rx_cpu_get<uint32_t>();
            std::vector<uint64_t> values(count);
            std::vector<void*> arguments(count);
            std::vector<rx_cpu_tensor_map> maps(count);
            for (uint32_t at = 0; at < count; ++at) {
                uint8_t is_buffer = rx_cpu_get<uint8_t>();
                if (is_buffer == 2) {
                    rx_cpu_tensor_map& map = maps[at];
                    map = {};
                    map.from = buffers[(uint32_t)rx_cpu_get<uint64_t>()].data;
                    map.from += rx_cpu_get<uint64_t>();
                    map.element_bytes = rx_cpu_get<uint32_t>();
                    map.rank = rx_cpu_get<uint32_t>();
                    if (map.rank > 5) rx_cpu_die("a tensor map has more than 5 axes");
                    for (uint32_t axis = 0; axis < map.rank; ++axis) map.extents[axis] = rx_cpu_get<uint64_t>();
                    for (uint32_t axis = 0; axis < map.rank; ++axis) map.strides[axis] = rx_cpu_get<uint64_t>();
                    for (uint32_t axis = 0; axis < map.rank; ++axis) map.tile[axis] = rx_cpu_get<uint32_t>();
                    arguments[at] = &map;
                    continue;
                }
                values[at] = rx_cpu_get<uint64_t>();
                if (is_buffer) values[at] = (uint64_t)buffers[(uint32_t)values[at]].data;
                arguments[at] = &values[at];
            }
            rx_cpu_launch(rx_cpu_kernels[kernel], grid, block, shape[6], arguments.data());
        } else if (command == 4) {
            rx_cpu_buffer buffer = buffers[rx_cpu_get<uint32_t>()];
            if (buffer.bytes && fwrite(buffer.data, 1, buffer.bytes, stdout) != buffer.bytes) rx_cpu_die("the output is closed");
        } else if (command == 5) {
            uint32_t id = rx_cpu_get<uint32_t>();
            free(buffers[id].data);
            buffers.erase(id);
        } else if (command == 6) {
            rx_cpu_order = (int)rx_cpu_get<uint32_t>();
            rx_cpu_seed = rx_cpu_get<uint64_t>();
        } else if (command == 7) {
            if (fflush(stdout)) rx_cpu_die("the output is closed");
        } else {
            rx_cpu_die("no such command");
        }
    }
    fflush(stdout);
    return 0;
}
