//! Suggestions of the form "did you mean …": the candidate nearest to a misspelt name.

use strsim::osa_distance;

/// Returns the candidate nearest to `wrong`, if at most a third of its characters differ, and not all.
///
/// The distance is Damerau–Levenshtein (optimal string alignment) over characters. Of equally near candidates, the
/// first is returned.
pub fn nearest<'a>(wrong: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let length = wrong.chars().count();
    let limit = (length / 3).max(1);
    let mut best: Option<(usize, &str)> = None;
    for candidate in candidates {
        if candidate.chars().count().abs_diff(length) > limit || candidate == wrong {
            continue;
        }
        let distance = osa_distance(wrong, candidate);
        if distance <= limit && distance < length && best.is_none_or(|(known, _)| distance < known) {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
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

    #[test]
    fn lengths_of_non_ascii_names_count_characters() {
        // One of three characters differs: within the limit of 1.
        assert_eq!(nearest("ééé", ["éé"]), Some("éé"));
        // Two of five characters differ. Nine bytes would allow three.
        assert_eq!(nearest("ééééa", ["éééxy"]), None);
        // The only character differs, so nothing is alike.
        assert_eq!(nearest("é", ["a"]), None);
    }
}
