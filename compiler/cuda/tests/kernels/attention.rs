//! Attention: the operators' cases, and functions built by hand with other masks, layouts and dtypes.

use crate::case::Case;
use rx_base::name::name;
use rx_base::{DType, Dim};
use rx_cuda::nvrtc::{Output, compile};
use rx_cuda::rules::Target;
use rx_tir::{BinaryOp, BufferId, Expr, Intrinsic, KernelBuilder};

const F32: DType = DType::FLOAT32;
const F16: DType = DType::FLOAT16;
const BF16: DType = DType::BFLOAT16;

/// The mask: the keys that a query attends to.
#[derive(Clone, Copy, PartialEq)]
enum Seen {
    Everything,
    /// The keys up to the query's own position.
    FromStart,
    /// The keys up to the query's own position, where the last query is at the last key.
    FromEnd,
    /// A sliding window: as [`Seen::FromEnd`], but only this many keys, those nearest to the query's own position.
    Window(i64),
    /// All keys for even queries, and none for odd ones. The softmax of this case is 0 for a row without keys.
    NotAll,
    /// The keys from the query's own position on. The mask is additive: it adds a finite number near the lowest to the
    /// scores of the other keys.
    FromOwn,
}

/// Attention of `[batch, length, heads, element]` or `[batch, heads, length, element]`. A length of 0 is a symbol.
#[derive(Clone, Copy)]
struct Attention {
    dtype: DType,
    batch: i64,
    heads: i64,
    key_heads: i64,
    queries: i64,
    keys: i64,
    depth: i64,
    width: i64,
    heads_first: bool,
    /// Whether the last two axes of the keys are swapped. With `heads_first` the layout is then
    /// `[batch, heads, element, length]`.
    transposed_keys: bool,
    has_bias: bool,
    seen: Seen,
    /// Whether the scores after the product and the softmax are computed in the dtype of the operands, otherwise in
    /// `float32`. If so, the scaled scores have a separate buffer.
    by_steps: bool,
    /// Whether elementwise statements are inlined into their consumers (`rx_loops::inline`).
    inlined: bool,
}

const PLAIN: Attention = Attention {
    dtype: F32,
    batch: 2,
    heads: 2,
    key_heads: 2,
    queries: 0,
    keys: 0,
    depth: 32,
    width: 32,
    heads_first: false,
    transposed_keys: false,
    has_bias: false,
    seen: Seen::Everything,
    by_steps: false,
    inlined: false,
};

impl Attention {
    fn length(known: i64, symbol: &str) -> Dim {
        if known == 0 { Dim::symbol(name(symbol)) } else { Dim::from(known) }
    }

    fn laid_out<T: Clone>(&self, [batch, length, head, element]: [T; 4]) -> [T; 4] {
        match self.heads_first {
            true => [batch, head, length, element],
            false => [batch, length, head, element],
        }
    }

    fn keys_laid_out<T: Clone>(&self, place: [T; 4]) -> [T; 4] {
        let [a, b, c, d] = self.laid_out(place);
        if self.transposed_keys { [a, b, d, c] } else { [a, b, c, d] }
    }

    /// Returns the case of a call with these numbers of queries and keys.
    fn case(self, text: &str, [queries, keys]: [i64; 2]) -> Case {
        let (q, k) = (Attention::length(self.queries, "q"), Attention::length(self.keys, "k"));
        let dim = |value: i64| Dim::from(value);
        let mut builder = KernelBuilder::new(name("attention"));
        let shape = |of: [Dim; 4], keys: bool| if keys { self.keys_laid_out(of) } else { self.laid_out(of) };
        let query = shape([dim(self.batch), q.clone(), dim(self.heads), dim(self.depth)], false);
        let key = shape([dim(self.batch), k.clone(), dim(self.key_heads), dim(self.depth)], true);
        let value = self.laid_out([dim(self.batch), k.clone(), dim(self.key_heads), dim(self.width)]);
        let out = self.laid_out([dim(self.batch), q.clone(), dim(self.heads), dim(self.width)]);
        let operands = [("query", &query), ("key", &key), ("value", &value)]
            .map(|(text, shape)| builder.param(text, shape, self.dtype));
        let bias =
            self.has_bias.then(|| builder.param("bias", &[dim(self.batch), dim(1), q.clone(), k.clone()], self.dtype));
        let result = builder.param("out", &out, self.dtype);
        let weighted = self.weighted(&mut builder, (operands, bias), ([&q, &k], &out));
        builder.compute(result, |builder, at| builder.load(weighted, at).cast(self.dtype));
        let lengths = |shape: &[Dim]| -> Vec<i64> {
            let of = |symbol: rx_base::Name| Some(Dim::constant(if symbol == name("q") { queries } else { keys }));
            shape.iter().map(|dim| dim.substitute(&of).as_constant().expect("a length")).collect()
        };
        let mut shapes: Vec<Vec<i64>> = [&query, &key, &value].into_iter().map(|shape| lengths(shape)).collect();
        if self.has_bias {
            shapes.push(lengths(&[dim(self.batch), dim(1), q, k]));
        }
        shapes.push(lengths(&out));
        let shapes: Vec<&[i64]> = shapes.iter().map(Vec::as_slice).collect();
        let mut func = rx_loops::simplify(&builder.finish());
        if self.inlined {
            func = rx_loops::simplify(&rx_loops::inline(&func));
        }
        let (func, _) = rx_loops::guards(&func);
        let case = Case::new(text, func, &shapes);
        case.within(if self.dtype == F32 { 1e-4 } else { 2e-2 })
    }

    fn weighted(
        self,
        builder: &mut KernelBuilder,
        (operands, bias): ([BufferId; 3], Option<BufferId>),
        ([q, k], out): ([&Dim; 2], &[Dim; 4]),
    ) -> BufferId {
        let [query, key, value] = operands;
        let dtype = if self.by_steps { self.dtype } else { F32 };
        let shape = [Dim::from(self.batch), Dim::from(self.heads), q.clone(), k.clone()];
        let group = Expr::int(self.heads / self.key_heads);
        let number = |value: f64| Expr::number(value, dtype);
        let lowest = Expr::Float { value: f64::NEG_INFINITY, dtype };
        let product = builder.temporary("product", &shape, F32);
        let extents = builder.shape(product);
        let keys = [extents[3].clone()];
        builder.reduce(
            product,
            &extents,
            &[Expr::int(self.depth)],
            Expr::number(0.0, F32),
            BinaryOp::Add,
            |builder, at, d| {
                let of_query = self.laid_out([at[0].clone(), at[2].clone(), at[1].clone(), d[0].clone()]);
                let head = at[1].clone().floor_div(group.clone());
                let of_key = self.keys_laid_out([at[0].clone(), at[3].clone(), head, d[0].clone()]);
                (at.to_vec(), builder.load(query, &of_query).cast(F32) * builder.load(key, &of_key).cast(F32))
            },
        );
        let mut score = product;
        if self.by_steps {
            let scaled = builder.temporary("scaled", &shape, dtype);
            builder.compute(scaled, |builder, at| builder.load(product, at).cast(dtype) * number(0.25));
            score = scaled;
        }
        let masked = builder.temporary("score", &shape, dtype);
        builder.compute(masked, |builder, at| {
            let mut value = builder.load(score, at);
            if !self.by_steps {
                value = value * number(0.25);
            }
            if let Some(bias) = bias {
                let place = [at[0].clone(), Expr::int(0), at[2].clone(), at[3].clone()];
                value = value + builder.load(bias, &place).cast(dtype);
            }
            if self.seen == Seen::FromOwn {
                let seen = at[3].clone().ge(at[2].clone());
                return value + Expr::select(seen, number(0.0), number(if dtype == F16 { -65504.0 } else { -3.38e38 }));
            }
            let lengths = [builder.dim(q), builder.dim(k)];
            Expr::select(self.sees(at, lengths), value, lowest.clone())
        });
        let max = builder.temporary("max", &shape[..3], dtype);
        builder.reduce(max, &extents[..3], &keys, lowest.clone(), BinaryOp::Max, |builder, at, k| {
            (at.to_vec(), builder.load(masked, &[at, k].concat()))
        });
        let is_safe = self.seen == Seen::NotAll;
        let exp = builder.temporary("exp", &shape, dtype);
        builder.compute(exp, |builder, at| {
            let max = builder.load(max, &at[..3]);
            let max = if is_safe { Expr::select(max.clone().eq(lowest), number(0.0), max) } else { max };
            Expr::call(Intrinsic::Exp, vec![builder.load(masked, at) - max])
        });
        let sum = builder.temporary("sum", &shape[..3], dtype);
        builder.reduce(sum, &extents[..3], &keys, number(0.0), BinaryOp::Add, |builder, at, k| {
            (at.to_vec(), builder.load(exp, &[at, k].concat()))
        });
        let weighted = builder.temporary("weighted", out, dtype);
        let extents = builder.shape(weighted);
        builder.reduce(weighted, &extents, &keys, number(0.0), BinaryOp::Add, |builder, at, k| {
            // The permutation of the layout is its own inverse.
            let [batch, row, head, element] = self.laid_out([0, 1, 2, 3].map(|axis: usize| at[axis].clone()));
            let at_row = [batch.clone(), head.clone(), row];
            let (exp, sum) = (builder.load(exp, &[&at_row[..], k].concat()), builder.load(sum, &at_row));
            let quotient = exp / sum.clone();
            let weight = if is_safe { Expr::select(sum.eq(number(0.0)), number(0.0), quotient) } else { quotient };
            let place = self.laid_out([batch, k[0].clone(), head.floor_div(group), element]);
            (at.to_vec(), weight * builder.load(value, &place).cast(dtype))
        });
        weighted
    }

    fn sees(&self, at: &[Expr], [queries, keys]: [Expr; 2]) -> Expr {
        let (row, key) = (at[2].clone(), at[3].clone());
        let own = row.clone() + (keys - queries);
        match self.seen {
            Seen::Everything | Seen::FromOwn => Expr::bool(true),
            Seen::FromStart => row.ge(key),
            Seen::FromEnd => own.ge(key),
            Seen::Window(window) => own.clone().ge(key.clone()).and((own - key).lt(Expr::int(window))),
            Seen::NotAll => row.floor_mod(Expr::int(2)).eq(Expr::int(0)),
        }
    }
}

pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (text, dtype) in [("float32", F32), ("float16", F16), ("bfloat16", BF16)] {
        let plain = Attention { dtype, ..PLAIN };
        let mut add = |title: &str, attention: Attention, lengths: [i64; 2]| {
            cases.push(attention.case(&format!("{title}, {text}"), lengths));
        };
        add("attention of any lengths", plain, [37, 75]);
        add("attention of known lengths", Attention { queries: 64, keys: 128, ..plain }, [64, 128]);
        add("heads first", Attention { heads_first: true, ..plain }, [19, 70]);
        add("transposed keys", Attention { heads_first: true, transposed_keys: true, ..plain }, [19, 21]);
        add("grouped heads", Attention { heads: 4, batch: 1, ..plain }, [33, 40]);
        add("one head of keys", Attention { heads: 3, key_heads: 1, ..plain }, [9, 40]);
        add("with a bias", Attention { has_bias: true, ..plain }, [17, 66]);
        add("causal from the start", Attention { seen: Seen::FromStart, ..plain }, [70, 70]);
        add("causal from the end", Attention { seen: Seen::FromEnd, ..plain }, [40, 75]);
        add("a window", Attention { seen: Seen::Window(5), ..plain }, [70, 70]);
        add("queries that see no key", Attention { seen: Seen::NotAll, ..plain }, [9, 20]);
        add("a mask that is added", Attention { seen: Seen::FromOwn, ..plain }, [70, 70]);
        add("with steps put together", Attention { inlined: true, seen: Seen::FromEnd, ..plain }, [20, 41]);
        add("by steps", Attention { by_steps: true, batch: 1, ..plain }, [20, 13]);
        add("uneven rows", Attention { depth: 20, width: 12, batch: 1, ..plain }, [18, 19]);
        add("rows of 80", Attention { depth: 80, width: 40, batch: 1, ..plain }, [18, 19]);
        add("long rows", Attention { depth: 128, width: 128, batch: 1, heads: 1, key_heads: 1, ..plain }, [35, 70]);
        add(
            "the longest rows",
            Attention { depth: 256, width: 256, batch: 1, heads: 1, key_heads: 1, ..plain },
            [20, 35],
        );
        let decode = Attention { queries: 1, heads: 4, batch: 1, ..plain };
        add("one query of many keys", decode, [1, 600]);
        add("one query of a part of keys", decode, [1, 3]);
        add("one query of no keys", decode, [1, 0]);
        add("one query that sees some keys", Attention { has_bias: true, seen: Seen::Window(300), ..decode }, [1, 700]);
        add("few queries that see no key", Attention { queries: 3, seen: Seen::NotAll, ..decode }, [3, 520]);
        add("no keys", plain, [3, 0]);
        add("no queries", plain, [0, 3]);
        add("one key", plain, [1, 1]);
    }
    cases
}

#[test]
#[ignore = "sweep: .ci/full"]
fn attention_agrees_with_the_interpreter_in_every_order() {
    crate::simulated::agree(&cases());
}

/// Returns the cases of the operators `nn.attention…` in `tests/operators`.
fn of_operators() -> Vec<Case> {
    let families = crate::operators::families().into_iter();
    families.flat_map(|(_, cases)| cases).filter(|case| case.name.contains("nn.attention")).collect()
}

#[test]
fn attention_of_operators_is_taken_and_agrees() {
    let cases = of_operators();
    let source = crate::source(&cases);
    for (at, case) in cases.iter().enumerate() {
        let mut choices = source.choices.iter().filter(|one| one.function == at);
        assert!(choices.any(|one| one.rule == "attention"), "{}: {choices:#?}", case.name);
    }
    crate::simulated::agree(&cases);
}

/// Returns cases of attention, each with its name, for the table of templates.
pub fn templates() -> Vec<(&'static str, Case)> {
    let of = |name, attention: Attention| {
        let attention = Attention { batch: 1, heads: 32, key_heads: 8, ..attention };
        (name, attention.case(name, [1, 1]))
    };
    let rows = |dtype, size| Attention { dtype, depth: size, width: size, seen: Seen::FromEnd, ..PLAIN };
    let decode = |dtype| Attention { queries: 1, ..rows(dtype, 128) };
    vec![
        of("attention, float32, rows of 64", rows(F32, 64)),
        of("attention, float32, rows of 128", rows(F32, 128)),
        of("attention, float32, rows of 256", rows(F32, 256)),
        of("attention, float32, one query", decode(F32)),
        of("attention, float16, rows of 64", rows(F16, 64)),
        of("attention, bfloat16, rows of 64", rows(BF16, 64)),
        of("attention, bfloat16, rows of 128", rows(BF16, 128)),
        of("attention, bfloat16, rows of 256", rows(BF16, 256)),
        of("attention, bfloat16, one query", decode(BF16)),
    ]
}

/// Returns a matrix product without a softmax.
fn product_alone() -> Case {
    let mut builder = KernelBuilder::new(name("matmul"));
    let [a, b, out] = ["a", "b", "out"].map(|text| builder.param(text, &[Dim::from(8), Dim::from(8)], F32));
    let extents = [Expr::int(8), Expr::int(8)];
    builder.reduce(out, &extents, &extents[..1], Expr::number(0.0, F32), BinaryOp::Add, |builder, at, k| {
        let a = builder.load(a, &[at[0].clone(), k[0].clone()]);
        (at.to_vec(), a * builder.load(b, &[k[0].clone(), at[1].clone()]))
    });
    Case::new("a product alone", builder.finish(), &[&[8, 8], &[8, 8], &[8, 8]])
}

#[test]
fn product_alone_is_declined_by_the_attention_rule() {
    let source = crate::source(&[product_alone()]);
    let declined = source.choices[0].declined.iter().find(|(rule, _)| *rule == "attention");
    assert_eq!(
        declined.map(|(_, why)| why.as_str()),
        Some("requires another statement; found the end of the function")
    );
}

#[test]
fn attention_is_scheduled_by_the_rule() {
    crate::are_taken_by("attention", &cases(), &Target::default());
}

/// Devices of compute capability 8.6, 8.9 and 12.0 have 99 KiB of shared memory for a block. A kernel with static
/// shared memory, which is padded to 1 KiB, has 98 KiB left for dynamic shared memory.
#[test]
fn tiles_fit_the_memory_of_smaller_devices() {
    let long = |seen| Attention { depth: 256, width: 256, batch: 1, heads: 1, key_heads: 1, seen, ..PLAIN };
    let half = Attention { dtype: F16, ..long(Seen::FromEnd) };
    let cases = [long(Seen::Everything), long(Seen::FromEnd), half].map(|one| one.case("long rows", [40, 70]));
    for arch in [86, 89, 120] {
        let target = Target { arch, units: 1, ..Target::default() };
        crate::are_taken_by("attention", &cases, &target);
        let source = crate::source_for(&cases, &target);
        let kernels = source.functions.iter().flat_map(|function| &function.kernels);
        let most = kernels.map(|kernel| kernel.shape.shared_bytes).max();
        assert!(most.is_some_and(|most| most <= 98 << 10), "sm_{arch}: {most:?}");
    }
    crate::simulated::agree_for(&cases, &Target { arch: 86, units: 1, ..Target::default() });
}

#[test]
fn attention_compiles_for_sm_80_and_sm_90_and_fits_registers() {
    if !crate::nvrtc::is_found() {
        return;
    }
    let source = crate::source(&cases());
    for arch in [80, 90] {
        let cubin = compile(&source.text, arch, Output::Cubin).unwrap_or_else(|error| panic!("sm_{arch}: {error}"));
        for (kernel, needs) in rx_cuda::images::resources::of(&cubin) {
            assert!(needs.local_bytes == 0, "{kernel}: {} bytes of registers do not fit", needs.local_bytes);
        }
    }
}
