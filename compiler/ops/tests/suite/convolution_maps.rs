//! Tests the index maps of convolutions by enumeration, for random convolutions of any rank, layout, groups and
//! direction: each access must have its buffer's rank, and each map must be a bijection onto its range.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use rx_base::name::name;
use rx_base::symbolic::Bounds;
use rx_base::{DType, Dim, Span};
use rx_ir::{Attr, Expr as IrExpr, ExprKind, StructInfo};
use rx_ops::compute::{Kernel, lower};
use rx_ops::{Arg, CallInfo};
use rx_tir::{Block, BufferId, Expr, IterKind, Stmt, VarId, evaluate_index};
use std::collections::{HashMap, HashSet};

/// A convolution with plain extents and the layouts of its operands.
#[derive(Clone, Debug)]
struct Convolution {
    transposed: bool,
    batch: i64,
    groups: i64,
    /// The number of channels per group.
    in_channels: i64,
    out_channels: i64,
    spatial: Vec<Axis>,
    data_layout: String,
    kernel_layout: String,
    out_layout: String,
    float16: bool,
}

#[derive(Clone, Debug)]
struct Axis {
    input: i64,
    kernel: i64,
    stride: i64,
    dilation: i64,
    before: i64,
    after: i64,
    output_padding: i64,
}

const SPATIAL: [&str; 3] = ["W", "HW", "DHW"];

fn axis() -> impl Strategy<Value = Axis> {
    (1i64..6, 1i64..4, 1i64..4, 1i64..3, 0i64..3, 0i64..3, 0i64..3).prop_map(
        |(input, kernel, stride, dilation, before, after, output_padding)| Axis {
            // The input is large enough for the kernel.
            input: input.max(dilation * (kernel - 1) + 1),
            kernel,
            stride,
            dilation,
            before,
            after,
            output_padding: output_padding.min(stride - 1),
        },
    )
}

/// Generates a permutation of the letters. For some of `splits`, a piece is split off and appended.
fn layout(letters: String, splits: Vec<(char, i64)>) -> impl Strategy<Value = String> {
    let pieces = proptest::sample::subsequence(splits.clone(), 0..=splits.len()).prop_shuffle();
    let letters: Vec<char> = letters.chars().collect();
    (Just(letters).prop_shuffle(), pieces, any::<bool>()).prop_map(|(letters, pieces, bracketed)| {
        let mut text: String = letters.into_iter().collect();
        let spelled: String =
            pieces.iter().map(|(letter, size)| format!("{size}{}", letter.to_ascii_lowercase())).collect();
        text.push_str(&if bracketed && pieces.len() > 1 { format!("[{spelled}]") } else { spelled });
        text
    })
}

fn convolution() -> impl Strategy<Value = Convolution> {
    let shape = (1usize..=3, any::<bool>(), 1i64..3, 1i64..4, 1i64..3, 1i64..3);
    shape.prop_flat_map(|(rank, transposed, batch, groups, ins, outs)| {
        // The channel counts are multiples of the pieces.
        let (in_channels, out_channels) = (ins * 2, outs * 3);
        let data = format!("NC{}", SPATIAL[rank - 1]);
        let kernel = format!("OI{}", SPATIAL[rank - 1]);
        (
            proptest::collection::vec(axis(), rank),
            layout(data.clone(), vec![('C', 2)]),
            layout(kernel, vec![('O', 3), ('I', 2)]),
            // A piece that does not divide its extent gives a padded result.
            layout(data, vec![('C', 4), ('W', 2)]),
            prop::bool::weighted(0.2),
        )
            .prop_map(move |(spatial, data_layout, kernel_layout, out_layout, float16)| Convolution {
                transposed,
                batch,
                groups,
                in_channels,
                out_channels,
                spatial,
                data_layout,
                kernel_layout,
                out_layout,
                float16,
            })
    })
}

/// Returns the physical shape of plain extents.
fn physical(layout: &str, letters: &str, extents: &[i64]) -> Vec<i64> {
    let mut shape: Vec<i64> = Vec::new();
    let mut order: Vec<char> = Vec::new();
    let (mut factor, mut group): (i64, Option<i64>) = (0, None);
    let mut factors = HashMap::new();
    for c in layout.chars() {
        match c {
            '[' => group = Some(1),
            ']' => shape.extend(group.take()),
            '0'..='9' => factor = factor * 10 + i64::from(c.to_digit(10).unwrap()),
            'a'..='z' => {
                factors.insert(c.to_ascii_uppercase(), factor);
                match &mut group {
                    Some(product) => *product *= factor,
                    None => shape.push(factor),
                }
                factor = 0;
            }
            letter => {
                order.push(letter);
                shape.push(extents[letters.find(letter).unwrap()]);
            }
        }
    }
    for (at, letter) in order.iter().enumerate() {
        let factor = factors.get(letter).copied().unwrap_or(1);
        shape[at] = (shape[at] + factor - 1) / factor;
    }
    shape
}

impl Convolution {
    fn letters(&self) -> [String; 2] {
        let spatial = SPATIAL[self.spatial.len() - 1];
        [format!("NC{spatial}"), format!("OI{spatial}")]
    }

    fn data_extents(&self) -> Vec<i64> {
        let spatial = self.spatial.iter().map(|axis| axis.input);
        [self.batch, self.groups * self.in_channels].into_iter().chain(spatial).collect()
    }

    fn kernel_extents(&self) -> Vec<i64> {
        let channels = match self.transposed {
            false => [self.groups * self.out_channels, self.in_channels],
            true => [self.out_channels, self.groups * self.in_channels],
        };
        channels.into_iter().chain(self.spatial.iter().map(|axis| axis.kernel)).collect()
    }

    /// Returns the lowered convolution, if the output is not empty.
    fn lower(&self) -> Option<Kernel> {
        let [data_letters, kernel_letters] = self.letters();
        let dtype = if self.float16 { DType::FLOAT16 } else { DType::FLOAT32 };
        let tensor = |shape: Vec<i64>| IrExpr {
            kind: ExprKind::Var(name("x")),
            ty: StructInfo::tensor(shape.into_iter().map(Dim::constant).collect::<Vec<_>>(), Some(dtype)),
            span: Span::new(0, 0),
        };
        let data = tensor(physical(&self.data_layout, &data_letters, &self.data_extents()));
        let weight = tensor(physical(&self.kernel_layout, &kernel_letters, &self.kernel_extents()));
        let list = |of: &dyn Fn(&Axis) -> i64| {
            Attr::List(self.spatial.iter().map(|axis| Attr::Int(Dim::constant(of(axis)))).collect())
        };
        let padding = self.spatial.iter().map(|axis| axis.before).chain(self.spatial.iter().map(|axis| axis.after));
        let attrs = [
            ("strides", list(&|axis| axis.stride)),
            ("dilation", list(&|axis| axis.dilation)),
            ("output_padding", list(&|axis| axis.output_padding)),
            ("padding", Attr::List(padding.map(|value| Attr::Int(Dim::constant(value))).collect())),
            ("groups", Attr::Int(Dim::constant(self.groups))),
            ("data_layout", Attr::Str(self.data_layout.as_str().into())),
            ("kernel_layout", Attr::Str(self.kernel_layout.as_str().into())),
            ("out_layout", Attr::Str(self.out_layout.as_str().into())),
        ];
        let transposed = if self.transposed { "_transpose" } else { "" };
        let schema = rx_ops::find(name(&format!("nn.conv{}d{transposed}", self.spatial.len()))).unwrap();
        let args: Vec<Arg<'_>> = schema
            .params
            .iter()
            .map(|param| match param.name {
                "data" => Arg::Operand(&data),
                "weight" => Arg::Operand(&weight),
                other => attrs.iter().find(|(name, _)| *name == other).map_or(Arg::Absent, |(_, attr)| Arg::Attr(attr)),
            })
            .collect();
        let bounds = Bounds::default();
        let call = CallInfo::new(schema, &args, &bounds);
        let result = (schema.infer)(&call).ok()?;
        Some(lower(&call, &result).unwrap())
    }
}

type Values = HashMap<VarId, i64>;

/// Returns all instances of a block, as the values of its axes.
fn instances(block: &Block, kinds: &[IterKind]) -> Vec<Values> {
    let mut instances = vec![Values::new()];
    for iter in block.iters.iter().filter(|iter| kinds.contains(&iter.kind)) {
        let extent = iter.extent.as_int().unwrap();
        instances = instances
            .into_iter()
            .flat_map(|values| {
                (0..extent).map(move |value| {
                    let mut values = values.clone();
                    values.insert(iter.var, value);
                    values
                })
            })
            .collect();
    }
    instances
}

fn value(expr: &Expr, values: &Values) -> i64 {
    evaluate_index(expr, &|var| values.get(&var).copied()).unwrap()
}

/// Returns the row-major position of an access. Panics if the access does not have the buffer's rank or is out of
/// range.
fn place(kernel: &Kernel, buffer: BufferId, indices: &[Expr], values: &Values) -> i64 {
    let shape = &kernel.func.buffer(buffer).shape;
    assert_eq!(indices.len(), shape.len(), "an access has its buffer's rank");
    indices.iter().zip(shape).fold(0, |place, (index, extent)| {
        let (index, extent) = (value(index, values), extent.as_int().unwrap());
        assert!((0..extent).contains(&index), "{index} is in range of {extent}");
        place * extent + index
    })
}

fn elements(kernel: &Kernel, buffer: BufferId) -> usize {
    kernel.func.buffer(buffer).shape.iter().map(|extent| extent.as_int().unwrap() as usize).product()
}

fn blocks(kernel: &Kernel) -> Vec<&Block> {
    let mut blocks = Vec::new();
    kernel.func.body.walk(&mut |stmt| {
        if let Stmt::Block(block) = stmt
            && !block.iters.is_empty()
        {
            blocks.push(&**block);
        }
    });
    blocks
}

fn store(block: &Block) -> (BufferId, &[Expr], &Expr) {
    match &block.body {
        Stmt::Store { buffer, indices, value, .. } => (*buffer, indices, value),
        other => panic!("a block stores one element, not {other:?}"),
    }
}

/// Checks that each block writes each element of its buffer exactly once.
fn check_stores(kernel: &Kernel) {
    for block in blocks(kernel) {
        let (buffer, indices, _) = store(block);
        let mut seen = HashSet::new();
        for values in instances(block, &[IterKind::Spatial]) {
            assert!(seen.insert(place(kernel, buffer, indices, &values)), "an element is stored once");
        }
        assert_eq!(seen.len(), elements(kernel, buffer), "every element is stored");
    }
}

/// Returns the indices of the load of a buffer in an expression, with the conditions under which it is evaluated.
fn load(expr: &Expr, wanted: BufferId) -> Option<(Vec<&Expr>, &[Expr])> {
    match expr {
        Expr::Load { buffer, indices, .. } if *buffer == wanted => Some((Vec::new(), indices)),
        Expr::Select { condition, then, .. } => {
            let (mut conditions, indices) = load(then, wanted)?;
            conditions.push(condition);
            Some((conditions, indices))
        }
        other => other.children().into_iter().find_map(|child| load(child, wanted)),
    }
}

/// Returns the blocks that are reductions.
fn sums(kernel: &Kernel) -> Vec<&Block> {
    blocks(kernel).into_iter().filter(|block| block.init.is_some()).collect()
}

fn check_loads(convolution: &Convolution, kernel: &Kernel) {
    let [reduction] = sums(kernel)[..] else { panic!("products are summed") };
    let params: Vec<BufferId> = kernel.func.buffer_params().collect();
    let (data, weight) = (params[0], params[1]);
    let (_, _, summed) = store(reduction);
    let (inside, data_indices) = load(summed, data).expect("the data is read");
    let (always, weight_indices) = load(summed, weight).expect("the weight is read");
    assert!(always.is_empty(), "the weight is read without condition");
    // The axes in order of roles: batch, group, output channel, output positions; then input channel and taps.
    let axes: Vec<VarId> = reduction.iters.iter().map(|iter| iter.var).collect();
    let rank = convolution.spatial.len();
    let (spatial, reduced) = axes.split_at(3 + rank);
    let mut weights: HashMap<Vec<i64>, i64> = HashMap::new();
    let mut elements_read: HashMap<Vec<i64>, i64> = HashMap::new();
    for values in instances(reduction, &[IterKind::Spatial, IterKind::Reduce]) {
        let of = |vars: &[VarId]| vars.iter().map(|var| values[var]).collect::<Vec<i64>>();
        let role = [of(&spatial[1..3]), of(reduced)].concat();
        let at = place(kernel, weight, weight_indices, &values);
        assert_eq!(*weights.entry(role).or_insert(at), at, "the weight depends on group, channels and taps only");
        let positions = std::iter::zip(&convolution.spatial, std::iter::zip(&spatial[3..], &reduced[1..]));
        let positions: Vec<Option<i64>> = positions
            .map(|(axis, (out, tap))| axis.position(convolution.transposed, values[out], values[tap]))
            .collect();
        let position: Option<Vec<i64>> = positions.into_iter().collect();
        let evaluated = inside.iter().all(|condition| value(condition, &values) != 0);
        assert_eq!(evaluated, position.is_some(), "data is read exactly where there is some");
        if let Some(position) = position {
            let channel = values[&spatial[1]] * convolution.in_channels + values[&reduced[0]];
            let plain = [vec![values[&spatial[0]], channel], position].concat();
            let at = place(kernel, data, data_indices, &values);
            assert_eq!(*elements_read.entry(plain).or_insert(at), at, "one coordinate is one element");
        }
    }
    let places: HashSet<i64> = weights.values().copied().collect();
    assert_eq!(places.len(), weights.len(), "different roles read different weights");
    assert_eq!(places.len(), elements(kernel, weight), "every weight is read");
    let places: HashSet<i64> = elements_read.values().copied().collect();
    assert_eq!(places.len(), elements_read.len(), "different coordinates read different elements");
}

/// Checks the same as [`check_loads`] for a transposed convolution whose products are stored and then gathered.
fn check_spread(convolution: &Convolution, kernel: &Kernel, products: &Block, gathered: &Block) {
    let params: Vec<BufferId> = kernel.func.buffer_params().collect();
    let (kept, _, product) = store(products);
    // The axes in order of roles: batch, group, output channel, taps, positions; then input channel.
    let axes: Vec<VarId> = products.iters.iter().map(|iter| iter.var).collect();
    let rank = convolution.spatial.len();
    let of = |vars: &[VarId], values: &Values| vars.iter().map(|var| values[var]).collect::<Vec<i64>>();
    let channel = |values: &Values| values[&axes[1]] * convolution.in_channels + values[&axes[3 + 2 * rank]];
    let data =
        |values: &Values| [vec![values[&axes[0]], channel(values)], of(&axes[3 + rank..3 + 2 * rank], values)].concat();
    let weight = |values: &Values| [vec![channel(values)], of(&axes[2..3 + rank], values)].concat();
    for (buffer, role) in [(params[0], &data as &dyn Fn(&Values) -> Vec<i64>), (params[1], &weight)] {
        let (always, indices) = load(product, buffer).expect("both factors are read");
        assert!(always.is_empty(), "both factors are read without condition");
        let mut read: HashMap<Vec<i64>, i64> = HashMap::new();
        for values in instances(products, &[IterKind::Spatial, IterKind::Reduce]) {
            let at = place(kernel, buffer, indices, &values);
            assert_eq!(*read.entry(role(&values)).or_insert(at), at, "one role is one element");
        }
        let places: HashSet<i64> = read.values().copied().collect();
        assert_eq!(places.len(), read.len(), "different roles read different elements");
        assert_eq!(places.len(), elements(kernel, buffer), "every element is read");
    }
    // Each output must gather the product of each tap that meets an input at this output, exactly once.
    let outputs: Vec<VarId> = gathered.iters[..3 + rank].iter().map(|iter| iter.var).collect();
    let (_, _, summed) = store(gathered);
    let (inside, indices) = load(summed, kept).expect("products are read");
    let mut met = HashSet::new();
    for values in instances(gathered, &[IterKind::Spatial, IterKind::Reduce]) {
        if inside.iter().any(|condition| value(condition, &values) == 0) {
            continue;
        }
        place(kernel, kept, indices, &values);
        let from: Vec<i64> = indices.iter().map(|index| value(index, &values)).collect();
        let out = of(&outputs, &values);
        assert_eq!(from[..3], out[..3], "batch, group and channel stay");
        let (taps, positions) = from[3..].split_at(rank);
        for (axis, ((out, tap), position)) in convolution.spatial.iter().zip(out[3..].iter().zip(taps).zip(positions)) {
            assert_eq!(axis.position(true, *out, *tap), Some(*position), "a product goes where its tap leads");
        }
        assert!(met.insert([&out[..], taps].concat()), "a product is gathered once");
    }
    let meetings = convolution.spatial.iter().zip(&gathered.iters[3..]).map(|(axis, iter)| {
        let pairs = (0..iter.extent.as_int().unwrap()).flat_map(|out| (0..axis.kernel).map(move |tap| (out, tap)));
        pairs.filter(|(out, tap)| axis.position(true, *out, *tap).is_some()).count()
    });
    let others: i64 = gathered.iters[..3].iter().map(|iter| iter.extent.as_int().unwrap()).product();
    assert_eq!(met.len(), others as usize * meetings.product::<usize>(), "every product is gathered");
}

impl Axis {
    /// Returns the position in the data at which an output meets a tap, if it is in bounds.
    fn position(&self, transposed: bool, out: i64, tap: i64) -> Option<i64> {
        let position = match transposed {
            false => out * self.stride + tap * self.dilation - self.before,
            true => {
                let spread = out + self.before - tap * self.dilation;
                if spread.rem_euclid(self.stride) != 0 {
                    return None;
                }
                spread.div_euclid(self.stride)
            }
        };
        (0..self.input).contains(&position).then_some(position)
    }
}

proptest! {
    // A fixed seed makes failures reproducible.
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, rng_seed: RngSeed::Fixed(17), ..ProptestConfig::default() })]

    #[test]
    fn index_maps_are_bijections(convolution in convolution()) {
        if let Some(kernel) = convolution.lower() {
            check_stores(&kernel);
            match sums(&kernel)[..] {
                [products, gathered] => check_spread(&convolution, &kernel, products, gathered),
                _ => check_loads(&convolution, &kernel),
            }
        }
    }
}
