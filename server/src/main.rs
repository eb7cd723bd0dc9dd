//! The `rx-lsp` binary.

fn main() {
    rx_server::main()
}
