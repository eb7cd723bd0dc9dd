//! "Did you mean …": the nearest of some names.

/// The candidate nearest to `wrong`, if it is near enough to be meant: at most a third of its letters differ, and not all.
///
/// Distance is Damerau–Levenshtein (optimal string alignment) over bytes; ties go to the earlier candidate.
pub fn nearest<'a>(wrong: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (wrong.len() / 3).max(1);
    let mut best: Option<(usize, &str)> = None;
    for candidate in candidates {
        if candidate.len().abs_diff(wrong.len()) > limit || candidate == wrong {
            continue;
        }
        let distance = distance(wrong.as_bytes(), candidate.as_bytes());
        if distance <= limit && distance < wrong.len() && best.is_none_or(|(known, _)| distance < known) {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// Optimal string alignment distance: insertions, deletions, substitutions and swaps of neighbours.
fn distance(a: &[u8], b: &[u8]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut previous: Vec<usize> = (0..=b.len()).collect();
    for (i, &x) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, &y) in b.iter().enumerate() {
            let mut cost = (previous[j] + usize::from(x != y)).min(previous[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && x == b[j - 1] && a[i - 1] == y {
                cost = cost.min(before[j - 1] + 1);
            }
            row.push(cost);
        }
        before = std::mem::replace(&mut previous, row);
    }
    previous[b.len()]
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn the_nearest_name_is_found_and_far_names_are_not() {
        assert_eq!(nearest("rellu", ["gelu", "relu", "selu"]), Some("relu"));
        assert_eq!(nearest("axes", ["axis", "keepdims"]), Some("axis"));
        assert_eq!(nearest("foo", ["matmul", "permute_dims"]), None);
    }
}
