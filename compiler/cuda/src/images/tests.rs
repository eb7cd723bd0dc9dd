use super::{ImageCache, compile, key, with_all_registers};
use crate::nvrtc::{NvrtcError, probe};
use crate::printer::module;
use crate::rules::Target;
use crate::source::CudaSource;
use rx_base::name::name;
use rx_base::{DType, Dim};
use rx_tir::{Expr, KernelBuilder, PrimFunc};
use std::path::PathBuf;

/// Returns a kernel function `out = x + number`.
fn add(number: usize) -> PrimFunc {
    let mut builder = KernelBuilder::new(name(&format!("add_{number}")));
    let dims = [Dim::symbol(name("n"))];
    let x = builder.param("x", &dims, DType::FLOAT32);
    let out = builder.param("out", &dims, DType::FLOAT32);
    builder.compute(out, |builder, at| builder.load(x, at) + Expr::number(number as f64, DType::FLOAT32));
    builder.finish()
}

fn source(count: usize) -> CudaSource {
    let funcs: Vec<PrimFunc> = (0..count).map(add).collect();
    let source = module(&funcs.iter().collect::<Vec<_>>(), &Target::default());
    source.unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn parts_hold_every_kernel_once_after_the_helpers() {
    let source = source(200);
    let parts = source.parts();
    assert!(parts.len() > 1 && parts.len() < 20, "{}", parts.len());
    let mut kernels = Vec::new();
    for part in &parts {
        assert!(part.text.starts_with("// CUDA C by rx"));
        assert_eq!(part.text.matches("__global__").count(), part.kernels.len());
        for (function, kernel) in &part.kernels {
            assert!(part.text.contains(&format!(" {}(", source.functions[*function].kernels[*kernel].name)));
        }
        kernels.extend(part.kernels.iter().map(|(function, _)| *function));
    }
    assert_eq!(kernels, (0..200).collect::<Vec<_>>());
}

#[test]
fn image_key_depends_on_all_inputs() {
    let keys = [key("a", 80, (12, 8)), key("b", 80, (12, 8)), key("a", 90, (12, 8)), key("a", 80, (13, 0))];
    assert!(keys.iter().enumerate().all(|(at, one)| !keys[..at].contains(one)), "{keys:?}");
}

/// Returns the path of a folder that only the test `name` uses. Creates no folder.
fn folder(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("rx-images-{name}-{}", std::process::id()))
}

#[test]
fn cached_images_are_reused_and_corrupt_ones_recompiled() {
    match probe() {
        Ok(_) => {}
        Err(NvrtcError::NotFound(_)) => {
            println!("skipped: NVRTC not found");
            return;
        }
        Err(error) => panic!("{error}"),
    }
    let (source, folder) = (source(120), folder("kept"));
    let kept = ImageCache::within(folder.clone());
    let mut reported = Vec::new();
    let mut images = |kept: &ImageCache| {
        reported.clear();
        let images = compile(&source, 80, kept, &mut |done, of| reported.push((done, of)));
        images.unwrap_or_else(|error| panic!("{error}"))
    };
    let first = images(&kept);
    assert!(first.len() > 1 && first.iter().all(|image| !image.was_kept && image.code.starts_with(b"\x7fELF")));
    let again = images(&kept);
    assert!(again.iter().all(|image| image.was_kept));
    assert!(first.iter().zip(&again).all(|(a, b)| a.code == b.code && a.kernels == b.kernels));
    for file in super::files_of(&folder) {
        std::fs::write(file.2, b"\x7fELF").expect("a file of this test");
    }
    assert_eq!(images(&kept), first);
    assert!(images(&ImageCache::nothing()).iter().all(|image| !image.was_kept));
    let count = reported.len();
    assert_eq!(reported, (1..=count).map(|done| (done, count)).collect::<Vec<_>>());
    std::fs::remove_dir_all(folder).expect("a folder of this test");
}

#[test]
fn only_spilling_kernels_get_a_block_count_of_one() {
    let text = "__global__ void __launch_bounds__(256) a(float* x) {}\n__global__ void __launch_bounds__(128, 2) b(int y) {}\n\
                __global__ void __launch_bounds__(64) c(\n    float* x) {}\n";
    let names = ["b", "c"].map(|name| (name.to_owned(), 1)).into();
    let wanted = text.replace("__launch_bounds__(64)", "__launch_bounds__(64, 1)");
    assert_eq!(with_all_registers(text, &names), wanted, "b says itself how many");
    assert_eq!(with_all_registers(text, &Default::default()), text);
}

#[test]
fn unwritable_cache_folder_is_ignored() {
    let kept = ImageCache::within(PathBuf::from("/dev/null/images"));
    kept.put("key", b"code");
    kept.trim();
    assert_eq!(kept.get("key"), None);
}

#[test]
fn kernel_that_nvrtc_refuses_is_reported_and_others_compile() {
    if probe().is_err() {
        println!("skipped: NVRTC not found");
        return;
    }
    let funcs: Vec<PrimFunc> = (0..3).map(add).collect();
    let mut listing = crate::printer::listing(&funcs.iter().collect::<Vec<_>>(), &Target::default());
    if let Some(Ok(text)) = listing.functions.get_mut(1) {
        text.push_str("no C\n");
    }
    let needs = listing.resources(80, &ImageCache::nothing()).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(needs.kernels.keys().collect::<Vec<_>>(), ["add_0_kernel", "add_2_kernel"]);
    assert_eq!(needs.refused.keys().collect::<Vec<_>>(), [&1]);
}
