//! Generates the helpers for tensor-core products: for each pair of operand types one helper for a warp (`mma.sync`),
//! and two for a warpgroup (`wgmma`), of 128 and of 256 columns.
//!
//! On a CPU the headers `rx_cuda_cpu.h` and `rx_cuda_hopper.h` implement these instructions as the PTX ISA describes
//! them.

use super::Helper;

/// The PTX types of the operands A and B.
const FACTORS: [[&str; 2]; 7] =
    [["f16", "f16"], ["bf16", "bf16"], ["tf32", "tf32"], ["s8", "s8"], ["s8", "u8"], ["u8", "s8"], ["u8", "u8"]];

/// A helper whose text is generated.
pub(super) struct Product {
    name: String,
    needs: Vec<&'static str>,
    text: String,
}

impl Product {
    pub(super) fn helper(&self) -> Helper<'_> {
        Helper { name: &self.name, needs: &self.needs, text: &self.text }
    }
}

/// Returns the helpers for products of one warp (`mma.sync`): 16 rows by 8 columns.
pub(super) fn of_one_warp() -> Vec<Product> {
    FACTORS.into_iter().map(mma).collect()
}

/// Returns the helpers for products of a warpgroup (`wgmma`): 64 rows by 128 and by 256 columns.
pub(super) fn of_four_warps() -> Vec<Product> {
    FACTORS.into_iter().flat_map(|factors| [128, 256].map(|columns| wgmma(factors, columns))).collect()
}

fn mma(factors @ [a, b]: [&'static str; 2]) -> Product {
    let Kind { suffix, bytes, sum: [sum, ctype, constraint], helper } = Kind::of(factors);
    let name = format!("rx_mma_{suffix}");
    let k = 32 / bytes;
    let elements = if sum == "s32" { "8-bit integers".to_owned() } else { format!("elements of {}", c_name(a)) };
    let [read_a, read_b] = factors.map(|factor| match factor {
        "tf32" => "[](unsigned x) { return __uint_as_float(x); }",
        other => read(other),
    });
    let text = format!(
        r#"// sum += a * b, of 16 x {k} and {k} x 8 {elements}.
static __device__ __forceinline__ void {name}({ctype}* sum, const unsigned* a, const unsigned* b) {{
#ifdef __CUDA_ARCH__
    asm volatile("mma.sync.aligned.m16n8k{k}.row.col.{sum}.{a}.{b}.{sum} {{%0, %1, %2, %3}}, {{%4, %5, %6, %7}}, {{%8, %9}}, {{%0, %1, %2, %3}};"
        : {constraint}(sum[0]), {constraint}(sum[1]), {constraint}(sum[2]), {constraint}(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
    rx_cpu_mma<{bytes}>(sum, a, b, {read_a}, {read_b});
#endif
}}
"#
    );
    Product { name, needs: helper.into_iter().collect(), text }
}

fn wgmma(factors @ [a, b]: [&'static str; 2], columns: usize) -> Product {
    let Kind { suffix, bytes, sum: [sum, ctype, constraint], helper } = Kind::of(factors);
    let name = format!("rx_wgmma_{suffix}_{columns}");
    let k = 32 / bytes;
    let elements = if a == b { c_name(a).to_owned() } else { format!("{} and {}", c_name(a), c_name(b)) };
    // The first operands of the instruction are the registers of the sums. The matrix descriptors and the scale of the
    // sums follow; then, for floats, the signs of A and B, and for 16-bit floats also their orders.
    let registers = columns / 2;
    let signs = if sum == "s32" { "" } else { ", 1, 1" };
    let orders = if bytes == 2 { format!(", %{}, %{}", registers + 2, registers + 3) } else { String::new() };
    let (at_a, at_b) = (registers, registers + 1);
    let sums: Vec<String> = (0..columns / 8).step_by(16).map(|at| format!("RX_SUMS_16({constraint}, {at})")).collect();
    let sums = sums.join(", ");
    let [read_a, read_b] = factors.map(read);
    let text = format!(
        r#"// sums += a * b, of 64 x {k} and {k} x {columns} elements of {elements}; a and b are matrix descriptors.
template <int A_BY_ROWS, int B_BY_COLUMNS>
static __device__ __forceinline__ void {name}({ctype} (*sums)[4], unsigned long long a, unsigned long long b) {{
#ifdef __CUDA_ARCH__
    asm volatile("wgmma.mma_async.sync.aligned.m64n{columns}k{k}.{sum}.{a}.{b} {{" RX_REGISTERS_{registers} "}}, %{at_a}, %{at_b}, 1{signs}{orders};"
        : {sums}
        : "l"(a), "l"(b), "n"(A_BY_ROWS), "n"(B_BY_COLUMNS));
#else
    rx_cpu_wgmma<{columns}, {bytes}, A_BY_ROWS, B_BY_COLUMNS>(sums, a, b, {read_a}, {read_b});
#endif
}}
"#
    );
    Product { name, needs: ["rx_wgmma"].into_iter().chain(helper).collect(), text }
}

/// The properties of a pair of operand types that `mma` and `wgmma` need.
struct Kind {
    /// The part of the helper's name for the operand types.
    suffix: String,
    /// The size of an element, in bytes.
    bytes: usize,
    /// The PTX type of the sums, their C type, and the constraint of their registers in inline assembly.
    sum: [&'static str; 3],
    /// The helper that defines the type of the elements, if there is one.
    helper: Option<&'static str>,
}

impl Kind {
    fn of([a, b]: [&'static str; 2]) -> Kind {
        let of_floats = ["f32", "float", "\"+f\""];
        let (bytes, helper) = match a {
            "f16" => (2, Some("rx_f16")),
            "bf16" => (2, Some("rx_bf16")),
            "tf32" => (4, None),
            _ => return Kind { suffix: format!("{a}_{b}"), bytes: 1, sum: ["s32", "int", "\"+r\""], helper: None },
        };
        Kind { suffix: a.to_owned(), bytes, sum: of_floats, helper }
    }
}

/// Returns the name of a PTX operand type for comments in the text.
fn c_name(factor: &str) -> &str {
    match factor {
        "f16" => "float16",
        "bf16" => "bfloat16",
        "s8" => "int8",
        "u8" => "uint8",
        other => other,
    }
}

/// Returns a C++ lambda that decodes an element from its bits, for `rx_cpu_mma` and `rx_cpu_wgmma`. The lambda for
/// `tf32` is only for `rx_cpu_wgmma`: it truncates a `float` to 10 fraction bits.
fn read(factor: &str) -> &'static str {
    match factor {
        "f16" => "[](unsigned x) { return rx_f16_to_float(rx_f16{(unsigned short)x}); }",
        "bf16" => "[](unsigned x) { return rx_bf16_to_float(rx_bf16{(unsigned short)x}); }",
        "s8" => "[](unsigned x) { return (int)(signed char)x; }",
        "u8" => "[](unsigned x) { return (int)(x & 0xffu); }",
        _ => "[](unsigned x) { return __uint_as_float(x & 0xffffe000u); }",
    }
}
