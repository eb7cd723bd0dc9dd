//! Frequencies of names in programs. Of the completions with the same relevance, frequent names come first: `softmax`
//! before `softplus`.

use std::collections::HashMap;
use std::sync::LazyLock;

/// For each name (`R.nn.conv2d`, `T.grid`) and dtype (`float32`), the number of functions that use it in models and in
/// TVM's own tests. `tests/scripts/count_names.py` writes the file.
static USES: LazyLock<HashMap<&'static str, u32>> = LazyLock::new(|| {
    let lines = include_str!("uses.txt").lines();
    lines
        .filter_map(|line| line.split_once(' '))
        .filter_map(|(count, name)| Some((name, count.parse().ok()?)))
        .collect()
});

/// For each namespace (`R.nn`), the number of uses of its most frequent member.
static MOST: LazyLock<HashMap<&'static str, u32>> = LazyLock::new(|| {
    let mut most: HashMap<&str, u32> = HashMap::new();
    for (name, count) in &*USES {
        for (dot, _) in name.match_indices('.') {
            let known = most.entry(name.get(..dot).unwrap_or_default()).or_default();
            *known = (*known).max(*count);
        }
    }
    most
});

/// Returns the rank of a name: the lower, the more frequent.
pub(super) fn rank(name: &str) -> u32 {
    u32::MAX - USES.get(name).copied().unwrap_or_default()
}

/// Returns the rank of a namespace such as `R.nn`. Operators that are a quarter as frequent as its most frequent member
/// come first.
pub(super) fn rank_of_namespace(namespace: &str) -> u32 {
    u32::MAX - MOST.get(namespace).copied().unwrap_or_default() / 4
}

/// Returns the usual dtypes, the most frequent first.
pub(super) fn dtypes() -> Vec<String> {
    let mut all = rx_base::DType::USUAL;
    all.sort_by_key(|dtype| rank(dtype));
    all.map(str::to_owned).into()
}
