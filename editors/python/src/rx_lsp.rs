//! `rx-lsp`, as the wheel carries it.

fn main() {
    rx_server::main()
}
