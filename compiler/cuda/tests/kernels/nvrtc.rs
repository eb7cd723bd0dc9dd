//! Compiles kernels with NVRTC, for `sm_80` and `sm_90a`.

use crate::case::Case;
use rx_cuda::CudaSource;
use rx_cuda::images::{self, ImageCache, resources};
use rx_cuda::nvrtc::{NvrtcError, Output, compile, probe};
use std::collections::BTreeMap;

/// Whether NVRTC is found.
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

/// Panics unless a text compiles for both `sm_80` and `sm_90a`.
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
fn every_kernel_can_be_launched_and_no_template_spills() {
    if is_found() {
        keeps_in_registers(&crate::source(&crate::made()));
    }
}

/// Checks the machine code: every kernel can be launched with its threads and shared memory, and only kernels of the
/// fallback rule spill registers.
pub fn keeps_in_registers(source: &CudaSource) {
    let mut wrong = Vec::new();
    for arch in [80, 90] {
        let images = images::compile(source, arch, &ImageCache::nothing(), &mut |_, _| ());
        let images = images.unwrap_or_else(|error| panic!("sm_{arch}: {error}"));
        let needs: BTreeMap<_, _> = images.iter().flat_map(|image| resources::of(&image.code)).collect();
        for kernel in source.functions.iter().flat_map(|function| &function.kernels) {
            let Some(needs) = needs.get(&kernel.name) else {
                wrong.push(format!("{} has no machine code", kernel.name));
                continue;
            };
            let full = needs.occupancy(arch, kernel.shape.block_threads(), kernel.shape.shared_bytes);
            if full.is_none_or(|full| full.blocks == 0) {
                wrong.push(format!("sm_{arch}: {} cannot be launched: {needs}", kernel.name));
            }
            let rule =
                source.choices.iter().find(|choice| choice.kernels.contains(&kernel.name)).map(|choice| choice.rule);
            if rule != Some("fallback") && needs.spills > 0 {
                wrong.push(format!("sm_{arch}: {} of {rule:?}: {needs}", kernel.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Panics if a kernel of the cases does not compile or uses local memory. Prints the resource usage of each.
pub fn have_no_stack(cases: &[Case]) {
    if !is_found() {
        return;
    }
    let source = crate::source(cases);
    for arch in [80, 90] {
        let cubin = compile(&source.text, arch, Output::Cubin).unwrap_or_else(|error| panic!("sm_{arch}: {error}"));
        let needs: BTreeMap<_, _> = resources::of(&cubin).into_iter().collect();
        for (function, case) in source.functions.iter().zip(cases) {
            for kernel in &function.kernels {
                let found = needs.get(&kernel.name).unwrap_or_else(|| panic!("{}", kernel.name));
                println!("sm_{arch} {:60} {:28} {found:?}", case.name, kernel.name);
                assert_eq!(found.local_bytes, 0, "{}: {}", case.name, kernel.name);
            }
        }
    }
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
