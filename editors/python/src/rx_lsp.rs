//! `rx-lsp`, as packaged in the Python wheel.

fn main() {
    rx_server::main()
}
