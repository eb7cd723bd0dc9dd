//! The attention kernels of KV caches, in which threads wait for each other and bring values together by themselves
//! (`paged_attention`, written by tests/scripts/paged_attention.py), against those that do the same on one thread.

use crate::case::Case;
use crate::script;
use rx_base::DType;
use rx_tensor::{Scalar, Tensor, random};
use rx_tir::{Param, PrimFunc};

/// Files with a kernel for one thread beside the one for many.
const PAIRS: &[(&str, &str)] = &[
    ("decode", include_str!("paged_attention/decode.py")),
    ("decode of float32", include_str!("paged_attention/decode_float32.py")),
    ("decode in a window", include_str!("paged_attention/decode_sliding.py")),
    ("prefill", include_str!("paged_attention/prefill.py")),
    ("prefill in a window", include_str!("paged_attention/prefill_sliding.py")),
    ("ragged", include_str!("paged_attention/ragged.py")),
    ("tree", include_str!("paged_attention/tree.py")),
    ("paged tree", include_str!("paged_attention/tree_paged.py")),
];

const SEQUENCE: &str = include_str!("paged_attention/sequence.py");
const LATENT: &str = include_str!("paged_attention/mla.py");

const PAGE: i64 = 16;
const HEADS: i64 = 4;

/// The sequences of a batch: how many queries each has, and how many keys.
struct Batch {
    queries: Vec<i64>,
    keys: Vec<i64>,
    causal: i64,
    rotary: i64,
}

/// A length that is no multiple of a tile, one that a tile is longer than, one of nothing before its own queries.
fn batches() -> [Batch; 2] {
    [
        Batch { queries: vec![3, 35, 1], keys: vec![40, 70, 5], causal: 1, rotary: 0 },
        Batch { queries: vec![17, 2], keys: vec![17, 33], causal: 0, rotary: 1 },
    ]
}

fn ints(shape: &[i64], values: impl IntoIterator<Item = i64>) -> Tensor {
    let mut tensor = Tensor::zeros(DType::INT32, shape).expect("a small tensor");
    values.into_iter().enumerate().for_each(|(at, value)| tensor.set(at, Scalar::Int(value)));
    tensor
}

/// Where each begins among all of them, and where the last one ends.
fn starts(lengths: impl IntoIterator<Item = i64>) -> Vec<i64> {
    let mut all = vec![0];
    lengths.into_iter().for_each(|length| all.push(all[all.len() - 1] + length));
    all
}

impl Batch {
    /// The same where all keys are the queries' own.
    fn of_itself(mut self) -> Batch {
        self.keys = self.queries.clone();
        self
    }

    /// The pages of each.
    fn pages(&self) -> Vec<i64> {
        self.keys.iter().map(|keys| (keys + PAGE - 1) / PAGE).collect()
    }

    /// The value of a buffer of this name: floats are drawn, integers say how the batch lies in memory.
    fn buffer(&self, name: &str, dtype: DType, dims: &[Option<i64>], is_decode: bool) -> Tensor {
        let count = self.keys.len() as i64;
        let rows = if is_decode { count } else { self.queries.iter().sum() };
        let all_pages: i64 = self.pages().iter().sum();
        let last = self.keys.iter().map(|keys| (keys - 1) % PAGE + 1);
        match name {
            "q_indptr" => ints(&[count + 1], starts(self.queries.clone())),
            "kv_indptr" => ints(&[count + 1], starts(self.keys.clone())),
            "page_indptr" | "page_table_indptr" => ints(&[count + 1], starts(self.pages())),
            // In an order of their own, one of them unused.
            "page_values" | "page_table_values" => ints(&[all_pages], (0..all_pages).map(|at| all_pages - at)),
            // Used slots of the last page; where the window begins; how many of the first keys stay.
            "length_info" if dims.len() == 2 => {
                ints(&[3, count], last.chain((0..count).map(|at| 2 + at)).chain((0..count).map(|at| at % 2)))
            }
            "length_info" => ints(&[count], last),
            "k_rope_pos_offset" => ints(&[count], (0..count).map(|at| at * 3)),
            "q_rope_position" => ints(&[rows], (0..rows).map(|at| at % 11)),
            // The queries of each are a tree: each node's own number, and where its descendants end.
            "mn_indptr" | "tree_order_indptr" => ints(&[count + 1], starts(self.queries.clone())),
            "mask" | "tree_order" => {
                let nodes = self.queries.iter().flat_map(|queries| {
                    (0..*queries).flat_map(move |at| [at, if at % 3 == 0 { *queries } else { at + 1 }])
                });
                // Rows of a tile that no query has are looked up as well; TVM's kernels read there behind the end.
                ints(&[rows + 64, 2], nodes)
            }
            _ => {
                let first = match name {
                    "pages" => all_pages + 1,
                    "k" | "v" => self.keys.iter().sum(),
                    _ => rows,
                };
                let shape: Vec<i64> = dims.iter().map(|dim| dim.unwrap_or(first)).collect();
                random::draw(11, name.bytes().map(u64::from).sum(), dtype, &shape, None).expect("a small tensor")
            }
        }
    }

    /// A kernel of a cache with this batch.
    fn case(&self, title: &str, func: PrimFunc) -> Case {
        let is_decode = title.starts_with("decode");
        let (mut arguments, mut scalars) = (Vec::new(), Vec::new());
        for param in &func.params {
            match param {
                Param::Buffer(id) => {
                    let buffer = func.buffer(*id);
                    let dims: Vec<Option<i64>> = buffer.shape.iter().map(|dim| dim.as_int()).collect();
                    arguments.push(self.buffer(&buffer.name, buffer.dtype, &dims, is_decode));
                }
                Param::Scalar(var) => scalars.push(match func.var(*var).name.as_str() {
                    "causal" => Scalar::Int(self.causal),
                    "rotary_mode" => Scalar::Int(self.rotary),
                    "rope_scale" => Scalar::Float(1.0),
                    "rope_theta" => Scalar::Float(10000.0),
                    _ => Scalar::Float(0.25),
                }),
                Param::Handle(_) => {}
            }
        }
        let tolerance =
            if func.buffer_params().any(|id| func.buffer(id).dtype == DType::FLOAT16) { 4e-3 } else { 1e-4 };
        let name = format!("{title} of {:?}", self.queries);
        Case { name, func, arguments, scalars, tolerance }
    }
}

fn named(text: &str, label: &str) -> PrimFunc {
    script::read_module(text).into_iter().find(|func| *func.name == *label).expect("the function")
}

/// By many threads, and by one.
pub(crate) fn pairs() -> Vec<(Case, Case)> {
    let mut all = Vec::new();
    for (title, text) in PAIRS {
        for batch in batches() {
            let batch = match *title {
                "tree" => batch.of_itself(),
                "paged tree" => Batch { rotary: 0, ..batch },
                _ => batch,
            };
            all.push((batch.case(title, named(text, "scheduled")), batch.case(title, named(text, "plain"))));
        }
    }
    all
}

/// The kernels that stand alone.
pub(crate) fn alone() -> Vec<Case> {
    let [batch, _] = batches();
    let shapes: [&[i64]; 5] = [&[2, 37, 4, 32], &[2, 45, 2, 32], &[2, 45, 2, 32], &[2, 37, 4, 32], &[2, 37, 4]];
    let sequence = Case::new("sequence", named(SEQUENCE, "scheduled"), &shapes).within(1e-4);
    vec![sequence, batch.case("latent", named(LATENT, "scheduled"))]
}

#[test]
fn each_keeps_its_own_threads() {
    let many = pairs().into_iter().map(|(many, _)| many);
    for case in many.chain(alone()) {
        let source = crate::source(std::slice::from_ref(&case));
        let rules: Vec<&str> = source.choices.iter().map(|choice| choice.rule).collect();
        // What a kernel asserts stands in front.
        let is_kept = matches!(rules[..], ["threads"] | ["fallback", "threads"]);
        assert!(is_kept, "{}: {:?}", case.name, source.choices);
    }
}

#[test]
fn each_does_what_one_thread_does() {
    for (many, one) in &pairs() {
        let expected = one.expected();
        let actual = many.expected().unwrap_or_else(|failure| panic!("{}: {failure:?}", many.name));
        let actual = actual.iter().map(|tensor| tensor.bytes().to_vec()).collect();
        many.compare_all(Ok(&actual), &expected).unwrap_or_else(|error| panic!("{error}"));
    }
}

/// What queries see of keys and values: element, weight (base 2, with the scale in it).
struct Attention<'c> {
    query: &'c dyn Fn(usize) -> f64,
    key: &'c dyn Fn(usize, usize) -> f64,
    value: &'c dyn Fn(usize, usize) -> f64,
    dims: [usize; 2],
    keys: usize,
    scale: f64,
}

impl Attention<'_> {
    /// The result, and the logarithm (base 2) of the sum.
    fn result(&self) -> (Vec<f64>, f64) {
        let score =
            |at: usize| (0..self.dims[0]).map(|d| (self.query)(d) * (self.key)(at, d)).sum::<f64>() * self.scale;
        let scores: Vec<f64> = (0..self.keys).map(score).collect();
        let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = scores.iter().map(|score| (score - most).exp()).sum();
        let part = |at: usize, d: usize| (scores[at] - most).exp() * (self.value)(at, d);
        let weighted = |d: usize| (0..self.keys).map(|at| part(at, d)).sum::<f64>();
        let result = (0..self.dims[1]).map(|d| weighted(d) / sum).collect();
        (result, (most + sum.ln()) / std::f64::consts::LN_2)
    }
}

fn at(tensor: &Tensor, index: usize) -> f64 {
    tensor.get(index).map_or(f64::NAN, Scalar::as_float)
}

fn close(case: &Case, what: &str, actual: f64, expected: f64) {
    let near = (actual - expected).abs() <= case.tolerance * (1.0 + expected.abs());
    assert!(near, "{}: {what} is {actual}, not {expected}", case.name);
}

#[test]
fn a_sequence_attends_to_what_is_before_it() {
    let case = &alone()[0];
    let results = case.expected().unwrap_or_else(|failure| panic!("{failure:?}"));
    let (q, k, v) = (&case.arguments[0], &case.arguments[1], &case.arguments[2]);
    for (batch, row, head) in [(0, 0, 0), (0, 36, 3), (1, 20, 2), (1, 31, 1), (1, 32, 1)] {
        let of = (batch * 37 + row) * 4 + head;
        let (result, log) = Attention {
            query: &|d| at(q, of * 32 + d),
            key: &|key, d| at(k, ((batch * 45 + key) * 2 + head / 2) * 32 + d),
            value: &|key, d| at(v, ((batch * 45 + key) * 2 + head / 2) * 32 + d),
            dims: [32, 32],
            keys: 45 - 37 + row + 1,
            scale: 0.25,
        }
        .result();
        result
            .iter()
            .enumerate()
            .for_each(|(d, value)| close(case, "an element", at(&results[3], of * 32 + d), *value));
        close(case, "a logarithm", at(&results[4], of), log);
    }
}

#[test]
fn latent_pages_are_keys_and_values() {
    let case = &alone()[1];
    let [batch, _] = batches();
    let results = case.expected().unwrap_or_else(|failure| panic!("{failure:?}"));
    let (q, pages, pages_of) = (&case.arguments[0], &case.arguments[2], &case.arguments[4]);
    let (first_row, first_page) = (starts(batch.queries.clone()), starts(batch.pages()));
    for (sequence, row, head) in [(0usize, 0i64, 0i64), (0, 2, 3), (1, 34, 1), (1, 16, 2), (2, 0, 3)] {
        let of = ((first_row[sequence] + row) * HEADS + head) as usize;
        let element = |key: usize, d: usize| {
            let page = at(pages_of, first_page[sequence] as usize + key / 16) as usize;
            at(pages, (page * 16 + key % 16) * 80 + d)
        };
        let (keys, queries) = (batch.keys[sequence], batch.queries[sequence]);
        let (result, log) = Attention {
            query: &|d| at(q, of * 80 + d),
            key: &element,
            value: &element,
            dims: [80, 64],
            keys: (keys - queries + row + 1) as usize,
            scale: 0.25,
        }
        .result();
        result
            .iter()
            .enumerate()
            .for_each(|(d, value)| close(case, "an element", at(&results[6], of * 64 + d), *value));
        close(case, "a logarithm", at(&results[7], of), log);
    }
}

#[test]
#[ignore = "sweep: .ci/full"]
fn kernels_do_what_the_interpreter_does() {
    let many = pairs().into_iter().map(|(many, _)| many);
    crate::simulated::agree(&many.chain(alone()).collect::<Vec<_>>());
}

#[test]
fn each_compiles_and_keeps_its_values_in_registers() {
    crate::nvrtc::have_no_stack(&alone());
    if crate::nvrtc::is_found() {
        // Sines of large angles have a stack.
        let many: Vec<Case> = pairs().into_iter().step_by(2).map(|(many, _)| many).collect();
        crate::nvrtc::keeps_in_registers(&crate::source(&many));
    }
}
