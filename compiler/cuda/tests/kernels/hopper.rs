//! Matrix products on `sm_90a`: a warpgroup multiplies (`wgmma`) tiles that are loaded by TMA or by all threads.

use crate::case::Case;
use crate::convolutions::large as large_convolution;
use crate::products::{Behind, Product, product};
use rx_base::name::name;
use rx_base::{DType, Dim};
use rx_cuda::device::Device;
use rx_cuda::device::mock_driver::MockDriver;
use rx_cuda::images::Image;
use rx_cuda::images::resources::of as resources;
use rx_cuda::nvrtc::{Output, compile_and_tell};
use rx_cuda::rules::Target;
use rx_cuda::sass::{self, SassError};
use rx_tir::{BinaryOp, Expr, KernelBuilder};

const F16: DType = DType::FLOAT16;
const BF16: DType = DType::BFLOAT16;
const F32: DType = DType::FLOAT32;
const I8: DType = DType::INT8;
const U8: DType = DType::UINT8;
const I32: DType = DType::INT32;

/// Returns the target of an H100 with this number of multiprocessors.
pub fn hopper(units: u32) -> Target {
    Target { arch: 90, units, ..Target::default() }
}

/// Returns the product with both operands contiguous along the summed axis (K-major).
fn along_sums(product: Product) -> Product {
    Product { transposed: [false, true], ..product }
}

/// Returns products whose operands are dense views, so that TMA can load their tiles.
fn copied() -> Vec<Case> {
    let mut cases = Vec::new();
    for (how, transposed) in [
        ("k, n", [false, false]),
        ("n, k", [false, true]),
        ("k, n and A as k, m", [true, false]),
        ("n, k and A as k, m", [true, true]),
    ] {
        let of = |product: Product| Product { transposed, ..product };
        let wide = of(product(BF16, F32, [120, 504, 200]));
        cases.push(wide.case(&format!("B as {how}, wide tiles"), [120, 504, 200]));
        let narrow = Product { behind: Behind::BiasAndRelu, ..of(product(F16, F32, [128, 128, 64])) };
        cases.push(narrow.case(&format!("B as {how}, one tile"), [128, 128, 64]));
    }
    let batched = Product { batch: 3, behind: Behind::Cast, ..product(F16, F32, [64, 120, 72]) };
    cases.push(batched.case("a batch, rounded behind the sum", [64, 120, 72]));
    let rows_known_later = Product { m: 0, ..product(BF16, F32, [0, 248, 120]) };
    cases.push(rows_known_later.case("rows known later", [250, 248, 120]));
    cases.push(rows_known_later.case("no rows", [0, 248, 120]));
    let sums_known_later = Product { transposed: [true, false], k: 0, ..product(BF16, F32, [128, 128, 0]) };
    cases.push(sums_known_later.case("sums known later", [128, 128, 70]));
    cases.push(sums_known_later.case("sums of nothing", [128, 128, 0]));
    let behind = Product { behind: Behind::GeluAndResidual, ..product(F16, F16, [128, 128, 56]) };
    cases.push(behind.case("gelu and a residual, a sum shorter than a tile", [128, 128, 56]));
    cases.push(rows_of_two_axes(60));
    cases.push(heads_between_rows_and_sums());
    for (text, a, sum) in [("int8", I8, I32), ("uint8", U8, I32)] {
        let one = along_sums(product(a, sum, [125, 250, 272]));
        cases.push(one.case(&format!("{text}, ragged"), [125, 250, 272]));
    }
    cases
}

/// Returns `out[b, s, n] = Σ x[b, s, k] w[k, n]`, where the extent of `s` is a symbol: `b` and `s` are one axis of
/// memory.
fn rows_of_two_axes(rows: i64) -> Case {
    let mut builder = KernelBuilder::new(name("linear"));
    let (s, known) = (Dim::symbol(name("s")), |size: i64| Dim::from(size));
    let x = builder.param("x", &[known(2), s.clone(), known(72)], BF16);
    let w = builder.param("w", &[known(72), known(248)], BF16);
    let out = builder.param("out", &[known(2), s, known(248)], F32);
    let extents = builder.shape(out);
    builder.reduce(out, &extents, &[Expr::int(72)], Expr::number(0.0, F32), BinaryOp::Add, |builder, at, k| {
        let left = builder.load(x, &[at[0].clone(), at[1].clone(), k[0].clone()]);
        let right = builder.load(w, &[k[0].clone(), at[2].clone()]);
        (at.to_vec(), left.cast(F32) * right.cast(F32))
    });
    Case::new("rows of two axes", builder.finish(), &[&[2, rows, 72], &[72, 248], &[2, rows, 248]]).within(1e-4)
}

/// Returns `out[m, n] = Σ max(a[m, k], 0) b[k, n]`: one operand is computed, so TMA cannot load it.
fn with_a_computed_operand() -> Case {
    let mut builder = KernelBuilder::new(name("activated"));
    let dims = |sizes: [i64; 2]| sizes.map(Dim::from);
    let a = builder.param("a", &dims([128, 128]), BF16);
    let b = builder.param("b", &dims([128, 120]), BF16);
    let out = builder.param("out", &dims([128, 120]), F32);
    let extents = builder.shape(out);
    builder.reduce(out, &extents, &[Expr::int(128)], Expr::number(0.0, F32), BinaryOp::Add, |builder, at, k| {
        let left = builder.load(a, &[at[0].clone(), k[0].clone()]).max(Expr::number(0.0, BF16));
        let right = builder.load(b, &[k[0].clone(), at[1].clone()]);
        (at.to_vec(), left.cast(F32) * right.cast(F32))
    });
    Case::new("a factor that is computed", builder.finish(), &[&[128, 128], &[128, 120], &[128, 120]]).within(1e-4)
}

/// Returns `out[m, n] = Σ x[8 m + k] w[k, n]`: the rows of the first operand overlap.
fn windows() -> Case {
    let mut builder = KernelBuilder::new(name("frames"));
    let x = builder.param("x", &[Dim::from(8 * 127 + 64)], F16);
    let w = builder.param("w", &[Dim::from(64), Dim::from(128)], F16);
    let out = builder.param("out", &[Dim::from(128), Dim::from(128)], F32);
    let extents = builder.shape(out);
    builder.reduce(out, &extents, &[Expr::int(64)], Expr::number(0.0, F32), BinaryOp::Add, |builder, at, k| {
        let left = builder.load(x, &[at[0].clone() * Expr::int(8) + k[0].clone()]);
        let right = builder.load(w, &[k[0].clone(), at[1].clone()]);
        (at.to_vec(), left.cast(F32) * right.cast(F32))
    });
    Case::new("windows that overlap", builder.finish(), &[&[8 * 127 + 64], &[64, 128], &[128, 128]]).within(1e-4)
}

/// Returns `out[b, h, s, t] = Σ q[b, s, h, d] k[b, t, h, d]`: the batch axes `b` and `h` of the operands are not
/// adjacent in memory.
fn heads_between_rows_and_sums() -> Case {
    let mut builder = KernelBuilder::new(name("scores"));
    let dims = |sizes: [i64; 4]| sizes.map(Dim::from);
    let q = builder.param("q", &dims([2, 128, 3, 40]), F16);
    let k = builder.param("k", &dims([2, 120, 3, 40]), F16);
    let out = builder.param("out", &dims([2, 3, 128, 120]), F32);
    let extents = builder.shape(out);
    builder.reduce(out, &extents, &[Expr::int(40)], Expr::number(0.0, F32), BinaryOp::Add, |builder, at, d| {
        let place = |row: usize| [at[0].clone(), at[row].clone(), at[1].clone(), d[0].clone()];
        let (left, right) = (builder.load(q, &place(2)), builder.load(k, &place(3)));
        (at.to_vec(), left.cast(F32) * right.cast(F32))
    });
    let shapes: [&[i64]; 3] = [&[2, 128, 3, 40], &[2, 120, 3, 40], &[2, 3, 128, 120]];
    Case::new("heads between rows and sums", builder.finish(), &shapes).within(1e-4)
}

/// Returns the products whose tiles TMA loads, then those whose tiles all threads load.
pub fn cases() -> Vec<Case> {
    copied().into_iter().chain(brought()).collect()
}

/// Returns a product of `float32`, for targets on which tensor cores multiply it as tf32.
pub(crate) fn of_tf32() -> Vec<Case> {
    vec![along_sums(product(F32, F32, [125, 250, 100])).case("tf32", [125, 250, 100]).within(1e-2)]
}

/// Returns products with one tile and a long sum.
pub(crate) fn in_parts() -> Vec<Case> {
    let product = product(BF16, F32, [64, 128, 1928]);
    let of = |behind: Behind| Product { behind, ..product }.case("long sums", [64, 128, 1928]);
    vec![of(Behind::Nothing), of(Behind::BiasAndRelu)]
}

/// Returns the rules' remarks on the cases, for a target.
fn notes(cases: &[Case], target: &Target) -> Vec<String> {
    crate::source_for(cases, target).choices.into_iter().map(|choice| choice.note).collect()
}

/// For the kernels of [`texts`], the compiler's log reports no serialized `wgmma` and no ignored `setmaxnreg`, no
/// register is spilled, and, if a disassembler is found, the machine code has the expected instructions.
#[test]
fn machine_code_has_the_expected_instructions_and_no_spills() {
    if !crate::nvrtc::is_found() {
        return;
    }
    let mut wrong = Vec::new();
    for (kernel, text, is_copied) in texts() {
        let (cubin, log) =
            compile_and_tell(&text, 90, Output::Cubin).unwrap_or_else(|error| panic!("{kernel}: {error}"));
        let needs = resources(&cubin)[&kernel];
        println!("{kernel}: {needs}");
        if log.contains("wgmma") || log.contains("warpgroup") || log.contains("setmaxnreg") {
            wrong.push(format!("{kernel}: {log}"));
        }
        if needs.spills > 0 || needs.local_bytes > 0 {
            wrong.push(format!("{kernel}: {needs}"));
        }
        match sass::disassemble(&cubin) {
            Ok(code) => {
                let code = &code[&kernel];
                let wanted = |name: &str| code.contains(name);
                if !(wanted("GMMA.64x") && wanted("UTMALDG") == is_copied) {
                    wrong.push(format!("{kernel}: no wgmma, or tiles are copied otherwise than was meant"));
                }
            }
            Err(SassError::NotFound(_)) => println!("skipped: no disassembler"),
            Err(error) => panic!("{error}"),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Returns the name of the first kernel of each case, the source text, and whether TMA must load the kernel's tiles.
fn texts() -> Vec<(String, String, bool)> {
    let mut all = Vec::new();
    let tf32 = Target { tf32: true, ..hopper(1) };
    let groups = [
        (copied(), hopper(1), true),
        (brought(), hopper(1), false),
        (of_tf32(), tf32, true),
        (in_parts(), hopper(4), true),
    ];
    for (cases, target, is_copied) in groups {
        for case in &cases {
            let source = crate::source_for(std::slice::from_ref(case), &target);
            all.push((source.functions[0].kernels[0].name.clone(), source.text, is_copied));
        }
    }
    all
}

#[test]
#[ignore = "sweep: .ci/full"]
fn tma_tiles_agree_in_every_order() {
    for note in notes(&copied(), &hopper(1)) {
        assert!(note.contains("wgmma") && note.contains("TMA copies"), "{note}");
    }
    crate::simulated::agree_for(&copied(), &hopper(1));
}

/// Returns products with an operand that is no dense view, so that threads must load the tiles: rows that need not
/// begin at multiples of 16 bytes (a symbolic or odd length), a convolution, computed values, and windows that overlap.
fn brought() -> Vec<Case> {
    let mut cases = Vec::new();
    for (how, transposed) in [("k, n", [false, false]), ("n, k and A as k, m", [true, true])] {
        for [n, k] in [[248, 104], [250, 104], [248, 127], [250, 127]] {
            let one = Product { transposed, n: 0, ..product(BF16, F32, [125, 0, k]) };
            cases.push(one.case(&format!("{n} columns known later, B as {how}, {k} summed values"), [125, n, k]));
        }
    }
    cases.push(along_sums(product(I8, I32, [125, 250, 127])).case("int8, unaligned", [125, 250, 127]));
    cases.push(large_convolution(BF16, F32));
    cases.push(with_a_computed_operand());
    cases.push(windows());
    cases
}

#[test]
#[ignore = "sweep: .ci/full"]
fn every_product_agrees_on_a_hopper_device() {
    let mut cases = crate::products::cases();
    cases.extend(crate::products::narrow_cases());
    crate::simulated::agree_for(&cases, &hopper(1));
}

#[test]
fn float32_is_multiplied_as_tf32_where_the_target_lets_it() {
    let target = Target { tf32: true, ..hopper(1) };
    let cases = of_tf32();
    for note in notes(&cases, &target) {
        assert!(note.contains("wgmma m64k8 of tf32") && note.contains("TMA copies"), "{note}");
    }
    crate::simulated::agree_for(&cases, &target);
}

/// The launch passes tensor maps for the tensors of the call, here of `x` and `w`, with their extents and boxes,
/// innermost first. For example, `72 x 120 by 64 x 128` describes 120 rows of 72 elements, in boxes of 128 rows of 64.
#[test]
fn launch_passes_tensor_maps_of_the_call() {
    let mock_driver = MockDriver::default();
    let device = Device::of(mock_driver.clone());
    let case = rows_of_two_axes(60);
    let source = crate::source_for(std::slice::from_ref(&case), &hopper(1));
    let image = Image { code: Vec::new(), kernels: vec![(0, 0)], was_kept: false };
    let module = device.load_images(source, &[image]).unwrap_or_else(|error| panic!("{error}"));
    let launches = |rows: i64| {
        let case = rows_of_two_axes(rows);
        let buffers: Vec<_> =
            case.bytes().into_iter().map(|bytes| device.upload(bytes).expect("memory of the host")).collect();
        let passed: Vec<_> = buffers.iter().collect();
        module.launch(0, &passed, &case.values()).unwrap_or_else(|error| panic!("{error}"));
        module.finish().unwrap_or_else(|error| panic!("{error}"));
        mock_driver.calls().into_iter().filter(|call| call.starts_with("launch")).collect::<Vec<_>>()
    };
    assert_eq!(launches(60), ["launch linear_kernel, 72 x 120 by 64 x 128, 248 x 72 by 64 x 64"]);
    assert_eq!(launches(7), ["launch linear_kernel, 72 x 14 by 64 x 128, 248 x 72 by 64 x 64"]);
}

#[test]
fn other_devices_multiply_by_mma_sync() {
    for arch in [80, 89, 100, 120] {
        for note in notes(&copied(), &Target { arch, ..hopper(1) }) {
            assert!(note.contains("mma.sync"), "sm_{arch}: {note}");
        }
    }
}

#[test]
fn long_sums_of_few_tiles_are_cut_into_parts() {
    let cases = in_parts();
    for note in notes(&cases, &hopper(4)) {
        assert!(note.contains("wgmma") && note.contains("split-K into 4 slices"), "{note}");
    }
    crate::simulated::agree_for(&cases, &hopper(4));
}

#[test]
fn tiles_loaded_by_threads_agree_in_every_order() {
    let cases = brought();
    for note in notes(&cases, &hopper(1)) {
        assert!(note.contains("wgmma") && !note.contains("TMA copies"), "{note}");
    }
    crate::simulated::agree_for(&cases, &hopper(1));
}
