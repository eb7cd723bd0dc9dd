//! By NVRTC, for the oldest and the newest architecture that is promised.

use rx_cuda::nvrtc::{NvrtcError, Output, compile, probe};

/// Whether NVRTC is there.
pub fn is_found() -> bool {
    match probe() {
        Ok(_) => true,
        Err(NvrtcError::NotFound(_)) => {
            println!("skipped: NVRTC not found");
            false
        }
        Err(error) => panic!("{error}"),
    }
}

/// Panics where a text does not compile.
pub fn compiles(text: &str) {
    for arch in [80, 90] {
        let cubin = compile(text, arch, Output::Cubin).unwrap_or_else(|error| panic!("sm_{arch}: {error}"));
        assert!(cubin.starts_with(b"\x7fELF"));
    }
}

#[test]
fn every_kernel_compiles_for_sm_80_and_sm_90() {
    if !is_found() {
        return;
    }
    let text = crate::source(&crate::made()).text;
    compiles(&text);
    let ptx = compile(&text, 80, Output::Ptx).unwrap_or_else(|error| panic!("{error}"));
    assert!(String::from_utf8_lossy(&ptx).contains(".target sm_80"));
}

#[test]
fn a_mistake_is_reported_with_its_line() {
    if !is_found() {
        return;
    }
    let error = compile("extern \"C\" __global__ void f(int* x) {\n    x[0] = y;\n}\n", 80, Output::Cubin);
    match error {
        Err(NvrtcError::Compile(log)) => assert!(log.contains("rx.cu(2): error"), "{log}"),
        other => panic!("{other:?}"),
    }
    assert_eq!(compile("\0", 80, Output::Ptx), Err(NvrtcError::ZeroByte));
}
