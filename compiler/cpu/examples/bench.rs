//! Measures the time of typical kernels: `cargo run --release -p rx-cpu --example bench`. An argument selects the
//! kernels whose title contains it; `--listing` prints their code instead.
//!
//! The output begins with the host's speed of copying memory.

use rx_base::name::name;
use rx_base::{DType, Dim};
use rx_cpu::{Argument, CpuModule, Scratch};
use rx_tir::builder::in_range;
use rx_tir::{BinaryOp, BufferId, Expr, Intrinsic, KernelBuilder, PrimFunc};
use std::time::{Duration, Instant};

const FLOAT: DType = DType::FLOAT32;

fn number(value: f64) -> Expr {
    Expr::number(value, FLOAT)
}

fn dims(extents: &[i64]) -> Vec<Dim> {
    extents.iter().map(|extent| Dim::from(*extent)).collect()
}

/// A kernel, with estimates of the bytes that a call moves and of the operations that it computes (0: no estimate).
struct Case {
    title: String,
    func: PrimFunc,
    bytes: f64,
    operations: f64,
}

fn builder(title: &str) -> KernelBuilder {
    KernelBuilder::new(name(title))
}

/// `gelu(x) * y + b`, `gelu` by `erf`.
fn chain(n: i64) -> Case {
    let mut builder = builder("chain");
    let [x, y, b, z] = ["x", "y", "b", "z"].map(|text| builder.param(text, &dims(&[n]), FLOAT));
    builder.compute(z, |builder, axes| {
        let [x, y, b] = [x, y, b].map(|buffer| builder.load(buffer, axes));
        let erf = Expr::call(Intrinsic::Erf, vec![x.clone() * number(std::f64::consts::FRAC_1_SQRT_2)]);
        x * number(0.5) * (erf + number(1.0)) * y + b
    });
    Case { title: format!("gelu(x)·y+b, {n}"), func: builder.finish(), bytes: 16.0 * n as f64, operations: 0.0 }
}

/// `x * y + b`.
fn simple(n: i64) -> Case {
    let mut builder = builder("simple");
    let [x, y, b, z] = ["x", "y", "b", "z"].map(|text| builder.param(text, &dims(&[n]), FLOAT));
    builder.compute(z, |builder, axes| builder.load(x, axes) * builder.load(y, axes) + builder.load(b, axes));
    Case { title: format!("x·y+b, {n}"), func: builder.finish(), bytes: 16.0 * n as f64, operations: 2.0 * n as f64 }
}

/// `out[row] = initial op value(row, 0) op value(row, 1) op …`.
fn reduce_rows(
    builder: &mut KernelBuilder,
    out: BufferId,
    [rows, columns]: [i64; 2],
    op: BinaryOp,
    initial: f64,
    value: impl FnOnce(&mut KernelBuilder, [Expr; 2]) -> Expr,
) {
    builder.reduce(out, &[Expr::int(rows)], &[Expr::int(columns)], number(initial), op, |builder, axes, reduced| {
        (axes.to_vec(), value(builder, [axes[0].clone(), reduced[0].clone()]))
    });
}

fn softmax(rows: i64, columns: i64) -> Case {
    let mut builder = builder("softmax");
    let shape = dims(&[rows, columns]);
    let [x, y] = ["x", "y"].map(|text| builder.param(text, &shape, FLOAT));
    let [largest, sums] = ["largest", "sums"].map(|text| builder.temporary(text, &shape[..1], FLOAT));
    let powers = builder.temporary("powers", &shape, FLOAT);
    let size = [rows, columns];
    reduce_rows(&mut builder, largest, size, BinaryOp::Max, f64::from(f32::MIN), |builder, at| builder.load(x, &at));
    builder.compute(powers, |builder, axes| {
        Expr::call(Intrinsic::Exp, vec![builder.load(x, axes) - builder.load(largest, &axes[..1])])
    });
    reduce_rows(&mut builder, sums, size, BinaryOp::Add, 0.0, |builder, at| builder.load(powers, &at));
    builder.compute(y, |builder, axes| builder.load(powers, axes) / builder.load(sums, &axes[..1]));
    let bytes = (8 * rows * columns) as f64;
    Case { title: format!("softmax, {rows}×{columns}"), func: builder.finish(), bytes, operations: 0.0 }
}

fn layer_norm(rows: i64, columns: i64) -> Case {
    let mut builder = builder("layer_norm");
    let shape = dims(&[rows, columns]);
    let x = builder.param("x", &shape, FLOAT);
    let [gamma, beta] = ["gamma", "beta"].map(|text| builder.param(text, &shape[1..], FLOAT));
    let y = builder.param("y", &shape, FLOAT);
    let [sums, squares] = ["sums", "squares"].map(|text| builder.temporary(text, &shape[..1], FLOAT));
    let size = [rows, columns];
    reduce_rows(&mut builder, sums, size, BinaryOp::Add, 0.0, |builder, at| builder.load(x, &at));
    reduce_rows(&mut builder, squares, size, BinaryOp::Add, 0.0, |builder, at| {
        let x = builder.load(x, &at);
        x.clone() * x
    });
    builder.compute(y, |builder, axes| {
        let count = number(1.0 / columns as f64);
        let mean = builder.load(sums, &axes[..1]) * count.clone();
        let variance = builder.load(squares, &axes[..1]) * count - mean.clone() * mean.clone();
        let scale = Expr::call(Intrinsic::Rsqrt, vec![variance + number(1e-5)]);
        let normal = (builder.load(x, axes) - mean) * scale;
        normal * builder.load(gamma, &axes[1..]) + builder.load(beta, &axes[1..])
    });
    let bytes = (8 * rows * columns) as f64;
    Case { title: format!("layer_norm, {rows}×{columns}"), func: builder.finish(), bytes, operations: 0.0 }
}

/// A 3×3 window with padding 1 on each channel of an image: max pooling, or a depthwise convolution if `weighted`.
fn window(channels: i64, size: i64, stride: i64, weighted: bool) -> Case {
    let out = (size - 1) / stride + 1;
    let mut builder = builder("window");
    let x = builder.param("x", &dims(&[channels, size, size]), FLOAT);
    let w = builder.param("w", &dims(&[channels, 3, 3]), FLOAT);
    let y = builder.param("y", &dims(&[channels, out, out]), FLOAT);
    let extents = builder.shape(y);
    let (op, initial) = if weighted { (BinaryOp::Add, 0.0) } else { (BinaryOp::Max, f64::from(f32::MIN)) };
    let window = [Expr::int(3), Expr::int(3)];
    builder.reduce(y, &extents, &window, number(initial), op, |builder, axes, reduced| {
        let at = [0, 1].map(|axis| axes[axis + 1].clone() * Expr::int(stride) + reduced[axis].clone() - Expr::int(1));
        let inside = at.clone().map(|at| in_range(at, Expr::int(0), Expr::int(size)));
        let [row, column] = at;
        let value = builder.load(x, &[axes[0].clone(), row, column]);
        let weight = builder.load(w, &[axes[0].clone(), reduced[0].clone(), reduced[1].clone()]);
        let [rows, columns] = inside;
        let value = Expr::select(rows.and(columns), value, number(initial));
        (axes.to_vec(), if weighted { value * weight } else { value })
    });
    let title = format!("{} 3×3/{stride}, {channels}×{size}²", if weighted { "depthwise" } else { "max_pool" });
    let bytes = (4 * channels * (size * size + out * out)) as f64;
    Case { title, func: builder.finish(), bytes, operations: (18 * channels * out * out) as f64 }
}

/// A matrix product. If `transposed`, the right factor is stored transposed.
fn product(m: i64, n: i64, k: i64, transposed: bool) -> Case {
    let mut builder = builder("matmul");
    let a = builder.param("a", &dims(&[m, k]), FLOAT);
    let b = builder.param("b", &dims(&if transposed { [n, k] } else { [k, n] }), FLOAT);
    let c = builder.param("c", &dims(&[m, n]), FLOAT);
    let extents = builder.shape(c);
    builder.reduce(c, &extents, &[Expr::int(k)], number(0.0), BinaryOp::Add, |builder, axes, reduced| {
        let left = builder.load(a, &[axes[0].clone(), reduced[0].clone()]);
        let mut at = [reduced[0].clone(), axes[1].clone()];
        if transposed {
            at.swap(0, 1);
        }
        let right = builder.load(b, &at);
        (axes.to_vec(), left * right)
    });
    let bytes = (4 * (m * k + k * n + m * n)) as f64;
    let mark = if transposed { "ᵀ" } else { "" };
    Case {
        title: format!("matmul, {m}×{n}×{k}{mark}"),
        func: builder.finish(),
        bytes,
        operations: (2 * m * n * k) as f64,
    }
}

/// A convolution of a `size²` image from `channels` to `out` channels: a kernel of `kernel²`, padding `kernel / 2`.
fn convolution(channels: i64, out: i64, size: i64, kernel: i64, stride: i64) -> Case {
    let (padding, result) = (kernel / 2, (size - 1) / stride + 1);
    let mut builder = builder("conv2d");
    let x = builder.param("x", &dims(&[1, channels, size, size]), FLOAT);
    let w = builder.param("w", &dims(&[out, channels, kernel, kernel]), FLOAT);
    let y = builder.param("y", &dims(&[1, out, result, result]), FLOAT);
    let extents = builder.shape(y);
    let window = [Expr::int(channels), Expr::int(kernel), Expr::int(kernel)];
    builder.reduce(y, &extents, &window, number(0.0), BinaryOp::Add, |builder, axes, reduced| {
        let at = [0, 1]
            .map(|axis| axes[axis + 2].clone() * Expr::int(stride) + reduced[axis + 1].clone() - Expr::int(padding));
        let [rows, columns] = at.clone().map(|at| in_range(at, Expr::int(0), Expr::int(size)));
        let [row, column] = at;
        let element = builder.load(x, &[axes[0].clone(), reduced[0].clone(), row, column]);
        let element = if padding == 0 { element } else { Expr::select(rows.and(columns), element, number(0.0)) };
        let weight = [axes[1].clone(), reduced[0].clone(), reduced[1].clone(), reduced[2].clone()];
        (axes.to_vec(), element * builder.load(w, &weight))
    });
    let bytes = (4 * (channels * size * size + out * result * result)) as f64;
    let operations = (2 * out * channels * kernel * kernel * result * result) as f64;
    let title = format!("conv {kernel}×{kernel}/{stride}, {channels}→{out}, {size}²");
    Case { title, func: builder.finish(), bytes, operations }
}

/// Returns the CPU time of this thread if the system reports it, otherwise the time since `since`.
fn running(since: Instant) -> Duration {
    let reported = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanoseconds = reported.as_deref().and_then(|text| text.split_whitespace().next()?.parse().ok());
    nanoseconds.map_or_else(|| since.elapsed(), Duration::from_nanos)
}

/// Returns the mean time of a call in seconds, measured by [`running`]. The first call is not measured.
fn mean(mut call: impl FnMut()) -> f64 {
    call();
    let begin = Instant::now();
    let before = running(begin);
    let mut calls = 0u32;
    loop {
        let batch = Instant::now();
        while batch.elapsed() < Duration::from_millis(20) {
            call();
            calls += 1;
        }
        let spent = running(begin).saturating_sub(before);
        if spent > Duration::from_millis(400) || begin.elapsed() > Duration::from_secs(8) {
            return spent.as_secs_f64() / f64::from(calls);
        }
    }
}

fn time(case: &Case) -> Result<(), Box<dyn std::error::Error>> {
    if std::env::args().any(|argument| argument == "--listing") {
        println!("; {}\n{}", case.title, CpuModule::listing(&case.func)?);
        return Ok(());
    }
    let begin = Instant::now();
    let module = CpuModule::compile(&[&case.func])?;
    let built = begin.elapsed();
    let kernel = module.kernel(0)?;
    let buffers: Vec<BufferId> = case.func.buffer_params().collect();
    let shapes: Vec<Vec<i64>> = buffers
        .iter()
        .map(|buffer| case.func.buffer(*buffer).shape.iter().filter_map(Expr::as_int).collect())
        .collect();
    let shapes: Vec<&[i64]> = shapes.iter().map(Vec::as_slice).collect();
    let mut memory: Vec<Vec<u8>> = shapes
        .iter()
        .map(|shape| {
            let count = shape.iter().product::<i64>();
            (0..count).flat_map(|at| ((at * 7919 % 1000) as f32 / 1000.0).to_ne_bytes()).collect()
        })
        .collect();
    let mut scratch = Scratch::default();
    let mut failed = None;
    let seconds = mean(|| {
        let mut arguments: Vec<Argument<'_>> = memory.iter_mut().map(|bytes| Argument::Write(bytes)).collect();
        failed = kernel.run(&mut arguments, &shapes, &[], &mut scratch).err().or(failed.take());
    });
    if let Some(error) = failed {
        return Err(error.into());
    }
    println!(
        "{:<28} {:>10.1} µs {:>7.1} GB/s {:>7.1} GFLOP/s   build {:>6.2} ms",
        case.title,
        seconds * 1e6,
        case.bytes / seconds / 1e9,
        case.operations / seconds / 1e9,
        built.as_secs_f64() * 1e3,
    );
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for megabytes in [0.03, 64.0] {
        let count = (megabytes * 1e6) as usize / 2;
        let (from, mut to) = (vec![1u8; count], vec![0u8; count]);
        let seconds = mean(|| to.copy_from_slice(std::hint::black_box(&from)));
        println!("copy of {count} bytes: {:.1} GB/s read and written", 2.0 * count as f64 / seconds / 1e9);
    }
    let cases = [
        simple(8192),
        simple(4 << 20),
        chain(8192),
        chain(4 << 20),
        softmax(12 * 197, 197),
        layer_norm(128, 768),
        window(64, 112, 2, false),
        window(64, 56, 1, true),
        window(64, 112, 2, true),
        window(960, 7, 1, true),
        product(1024, 1024, 1024, false),
        product(64, 12544, 147, false),
        product(2, 1024, 256, false),
        product(2, 1024, 256, true),
        product(8, 1024, 256, true),
        product(16, 1024, 256, true),
        product(24, 1024, 256, true),
        product(1, 1000, 1280, true),
        product(4, 1024, 1024, false),
        product(2, 4096, 4096, false),
        product(1, 4096, 4096, false),
        product(4096, 1, 4096, false),
        convolution(3, 64, 224, 7, 2),
        convolution(64, 64, 56, 3, 1),
        convolution(512, 512, 7, 3, 1),
        convolution(64, 128, 56, 1, 2),
    ];
    let wanted = std::env::args().skip(1).find(|argument| !argument.starts_with("--"));
    let wanted = |case: &&Case| wanted.as_ref().is_none_or(|wanted| case.title.contains(wanted));
    cases.iter().filter(wanted).try_for_each(time)
}
