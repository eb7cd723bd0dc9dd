//! The templates of products, attention, convolutions and windows: the resources that each needs, and the printed text
//! of some.

use crate::case::Case;
use crate::products::{Behind, Product, product};
use crate::small_device;
use expect_test::expect_file;
use rx_base::DType;
use rx_cuda::images::resources::of as resources;
use rx_cuda::nvrtc::{Output, compile, probe};
use rx_cuda::rules::Target;
use std::fmt::Write as _;
use std::path::Path;

/// A template, represented by a kernel that is made from it.
struct Template {
    name: &'static str,
    case: Case,
    target: Target,
    /// For the table's operations per byte: the rows and columns that a warp (for `wgmma` a warpgroup) multiplies, and
    /// the bytes of an element in shared memory. `None` if the table does not state them.
    warp: Option<[i64; 3]>,
    /// The instruction that its PTX must contain.
    instruction: &'static str,
}

fn templates() -> Vec<Template> {
    const F32: DType = DType::FLOAT32;
    let (f16, bf16, int8, int32, f64) = (DType::FLOAT16, DType::BFLOAT16, DType::INT8, DType::INT32, DType::FLOAT64);
    let of = |name, product: Product, warp, instruction| {
        let case = product.case(name, [product.m.max(1), product.n, product.k]);
        Template { name, case, target: small_device(), warp, instruction }
    };
    let cast = |product: Product| Product { behind: Behind::Cast, ..product };
    let by_columns = |product: Product| Product { transposed: [false, true], ..product };
    let cube = |dtype, sum, size: i64| product(dtype, sum, [size; 3]);
    let tensor = |name, product: Product, warp, instruction| of(name, product, Some(warp), instruction);
    let mut tf32 = tensor("tf32, large", cube(F32, F32, 256), [64, 32, 4], "mma.sync.aligned.m16n8k8.row.col.f32.tf32");
    tf32.target.tf32 = true;
    let (of_f16, of_bf16) = ("mma.sync.aligned.m16n8k16.row.col.f32.f16", "mma.sync.aligned.m16n8k16.row.col.f32.bf16");
    let mut templates = vec![
        of("float32, large", cube(F32, F32, 256), Some([16, 128, 4]), "fma.rn.f32"),
        of("float32, rows known later", product(F32, F32, [0, 256, 256]), Some([16, 128, 4]), "fma.rn.f32"),
        of("float32, middle", cube(F32, F32, 64), Some([8, 64, 4]), "fma.rn.f32"),
        of("float32, small", cube(F32, F32, 32), Some([16, 32, 4]), "fma.rn.f32"),
        of("float64", cube(f64, f64, 64), Some([8, 64, 8]), "fma.rn.f64"),
        tensor("float16, large", cast(cube(f16, F32, 256)), [64, 32, 2], of_f16),
        tensor("bfloat16, large", cast(cube(bf16, F32, 256)), [64, 32, 2], of_bf16),
        tensor("bfloat16, large, B as n, k", by_columns(cast(cube(bf16, F32, 256))), [64, 32, 2], of_bf16),
        tensor("bfloat16, rows known later", cast(product(bf16, F32, [0, 256, 256])), [64, 32, 2], of_bf16),
        tensor("bfloat16, middle", cast(cube(bf16, F32, 64)), [32, 32, 2], of_bf16),
        tensor("bfloat16, small", cast(product(bf16, F32, [32, 64, 128])), [32, 16, 2], of_bf16),
        tensor(
            "int8, large, B as n, k",
            by_columns(cube(int8, int32, 256)),
            [64, 32, 1],
            "mma.sync.aligned.m16n8k32.row.col.s32.s8",
        ),
        tf32,
        of("float32, one row, B as n, k", by_columns(product(F32, F32, [1, 4096, 1024])), None, "ld.global"),
        of("bfloat16, one row, B as n, k", by_columns(cast(product(bf16, F32, [1, 4096, 1024]))), None, "ld.global"),
        of("bfloat16, one row, B as k, n", cast(product(bf16, F32, [1, 4096, 1024])), None, "ld.global"),
    ];
    let hopper = |mut template: Template| {
        template.target.arch = 90;
        template
    };
    let of_hopper = "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16";
    let mut tf32 = hopper(tensor(
        "sm_90a: tf32, large, B as n, k",
        by_columns(cube(F32, F32, 256)),
        [64, 256, 4],
        "wgmma.mma_async.sync.aligned.m64n256k8.f32.tf32",
    ));
    tf32.target.tf32 = true;
    templates.extend([
        hopper(tensor("sm_90a: bfloat16, large", cast(cube(bf16, F32, 256)), [64, 256, 2], of_hopper)),
        hopper(tensor(
            "sm_90a: bfloat16, large, B as n, k",
            by_columns(cast(cube(bf16, F32, 256))),
            [64, 256, 2],
            of_hopper,
        )),
        hopper(tensor(
            "sm_90a: bfloat16, rows known later",
            cast(product(bf16, F32, [0, 256, 256])),
            [64, 256, 2],
            of_hopper,
        )),
        hopper(tensor(
            "sm_90a: float16, middle",
            cast(product(f16, F32, [128, 128, 256])),
            [64, 128, 2],
            "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16",
        )),
        hopper(tensor(
            "sm_90a: float16, small",
            cast(product(f16, F32, [64, 128, 256])),
            [64, 128, 2],
            "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16",
        )),
        hopper(tensor(
            "sm_90a: int8, large, B as n, k",
            by_columns(cube(int8, int32, 256)),
            [64, 256, 1],
            "wgmma.mma_async.sync.aligned.m64n256k32.s32.s8",
        )),
        tf32,
        Template {
            name: "sm_90a: bfloat16, convolution",
            case: crate::convolutions::large(bf16, F32),
            target: Target { arch: 90, ..small_device() },
            warp: Some([64, 128, 2]),
            instruction: "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16",
        },
    ]);
    templates.extend(crate::attention::templates().into_iter().map(|(name, case)| Template {
        name,
        case,
        target: Target::default(),
        warp: None,
        instruction: match () {
            () if name.contains("bfloat16") => of_bf16,
            () if name.contains("float16") => of_f16,
            () => "fma.rn.f32",
        },
    }));
    templates.extend(crate::convolutions::templates().into_iter().map(|(name, case)| Template {
        name,
        case,
        target: small_device(),
        warp: None,
        instruction: if name.contains("bfloat16") { of_bf16 } else { "fma.rn.f32" },
    }));
    templates.extend(crate::windows::templates().into_iter().map(|(name, case)| Template {
        name,
        case,
        target: small_device(),
        warp: None,
        instruction: if name.contains("maxima") { "max" } else { "fma.rn.f32" },
    }));
    templates
}

const HEAD: &str = "\
# Templates of matrix products, windows and attention in CUDA

Written by `UPDATE_EXPECT=1 cargo test -p rx-cuda --test kernels templates`, from machine code. No device was asked: blocks per
multiprocessor follow from registers, shared memory and threads; operations per byte count what a warp multiplies for each
byte that it reads from shared memory. Registers are for sm_80 / sm_90a.
";

/// Returns one line of the table.
fn line(template: &Template) -> String {
    let source = crate::source_for(std::slice::from_ref(&template.case), &template.target);
    let (kernel, choice) = (&source.functions[0].kernels[0], &source.choices[0]);
    let (threads, shared) = (kernel.shape.block_threads(), kernel.shape.shared_bytes);
    let ptx = compile(&source.text, template.target.arch, Output::Ptx)
        .unwrap_or_else(|error| panic!("{}: {error}", template.name));
    let ptx = String::from_utf8_lossy(&ptx).into_owned();
    assert!(ptx.contains(template.instruction), "{}: no {}", template.name, template.instruction);
    let needs = [80, 90].map(|arch| {
        if arch < template.target.arch {
            return ("-".to_owned(), "-".to_owned());
        }
        let cubin = compile(&source.text, arch, Output::Cubin).unwrap_or_else(|error| panic!("sm_{arch}: {error}"));
        let found = resources(&cubin)[&kernel.name];
        assert_eq!(found.local_bytes, 0, "{}: registers that do not fit", template.name);
        let blocks = found.occupancy(arch, threads, shared).map_or(0, |fit| fit.blocks);
        (found.registers.to_string(), blocks.to_string())
    });
    let per_byte = template.warp.map_or("-".to_owned(), |[rows, columns, bytes]| {
        format!("{:.1}", (2 * rows * columns) as f64 / ((rows + columns) * bytes) as f64)
    });
    let [(old, on_old), (new, on_new)] = needs;
    let how = choice.note.split(';').next().unwrap_or_default();
    format!(
        "| {} | {} | {how} | {threads} | {old} / {new} | {shared} | {on_old} / {on_new} | {per_byte} |",
        template.name, choice.rule
    )
}

#[test]
fn templates_fit_registers_and_the_table_is_fresh() {
    if !crate::nvrtc::is_found() {
        return;
    }
    let (major, minor) = probe().unwrap_or_else(|error| panic!("{error}"));
    let mut text = format!("{HEAD}\nNVRTC {major}.{minor}.\n\n");
    text.push_str("| template | rule | tiles | threads | registers | shared bytes | blocks per multiprocessor | operations per byte |\n");
    text.push_str("|---|---|---|---:|---:|---:|---:|---:|\n");
    for template in templates() {
        let _ = writeln!(text, "{}", line(&template));
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/cuda-templates.md");
    let known = std::fs::read_to_string(&path).unwrap_or_default();
    // Another compiler version may allocate other registers.
    if std::env::var_os("UPDATE_EXPECT").is_some() || known.contains(&format!("NVRTC {major}.{minor}.")) {
        expect_file![path].assert_eq(&text);
    }
}

/// Returns the machine (SASS) instruction for a PTX instruction.
fn of_machine(instruction: &str) -> &'static str {
    match instruction {
        _ if instruction.starts_with("wgmma") => "GMMA",
        _ if instruction.contains(".s8") => "IMMA",
        _ if instruction.starts_with("mma") => "HMMA",
        "fma.rn.f64" => "DFMA",
        "fma.rn.f32" => "FFMA",
        // A maximum that propagates NaN is a comparison and a selection.
        "max" => "FSETP",
        _ => "LDG",
    }
}

/// If a disassembler is found, the machine code has the instruction that a template is for, and loads 16 bytes at once
/// if its schedule remark says so.
#[test]
fn machine_code_has_the_instructions_of_its_template() {
    if !crate::nvrtc::is_found() {
        return;
    }
    if let Err(missing) = rx_cuda::sass::probe() {
        println!("skipped: {missing}");
        return;
    }
    let (mut wrong, mut wide) = (Vec::new(), 0);
    for template in templates() {
        let source = crate::source_for(std::slice::from_ref(&template.case), &template.target);
        let (kernel, note) = (&source.functions[0].kernels[0].name, &source.choices[0].note);
        for arch in [80, 90].into_iter().filter(|arch| *arch >= template.target.arch) {
            let cubin = compile(&source.text, arch, Output::Cubin).unwrap_or_else(|error| panic!("sm_{arch}: {error}"));
            let code = rx_cuda::sass::disassemble(&cubin).unwrap_or_else(|error| panic!("{error}"));
            let code = &code[kernel];
            let instruction = of_machine(template.instruction);
            if !code.contains(instruction) {
                wrong.push(format!("{} on sm_{arch}: no {instruction}", template.name));
            }
            let reads_wide =
                code.lines().any(|line| line.contains("LDG") && line.contains(".128") || line.contains("UTMALDG"));
            if note.contains("16-byte") && !reads_wide {
                wrong.push(format!("{} on sm_{arch}: nothing is read by 16 bytes", template.name));
            }
            wide += usize::from(reads_wide);
        }
    }
    println!("{wide} kernels read 16 bytes at once");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(wide > 20, "{wide}");
}

#[test]
fn text_of_a_product_matches_the_golden_file() {
    for (name, template) in [
        ("gemm", "bfloat16, large"),
        ("gemm_threads", "float32, middle"),
        ("gemm_hopper", "sm_90a: bfloat16, large"),
        ("gemv", "bfloat16, one row, B as n, k"),
        ("attention", "attention, bfloat16, rows of 64"),
        ("attention_threads", "attention, float32, rows of 64"),
    ] {
        let templates = templates();
        let template =
            templates.iter().find(|one| one.name == template).unwrap_or_else(|| panic!("no template {template}"));
        reads_like(name, template);
    }
}

fn reads_like(name: &str, template: &Template) {
    let source = rx_cuda::listing(&[&template.case.func], &template.target);
    let text = source.functions[0].as_ref().unwrap_or_else(|error| panic!("{error}"));
    is_written(name, text);
}

#[test]
fn text_of_windows_matches_the_golden_file() {
    for template in templates() {
        match template.name {
            "3 x 3, 64 to 64, 56" => reads_like("convolution", &template),
            "depthwise 3 x 3, float32" => reads_like("window", &template),
            "depthwise 3 x 3, bfloat16, channels last" => reads_like("window_channels", &template),
            _ => {}
        }
    }
}

/// Compares a kernel's text with `golden/NAME.cu`. `UPDATE_EXPECT=1` rewrites the file.
pub fn is_written(name: &str, text: &str) {
    expect_file![format!("golden/{name}.cu")].assert_eq(text);
}
