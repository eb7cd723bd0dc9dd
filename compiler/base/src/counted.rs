//! Formatting of counts and alternatives for messages.

/// Formats a count with its noun: `1 dimension`, `3 dimensions`. The plural of `axis` is `axes`, of `index` `indices`.
pub fn counted(count: usize, one: &str) -> String {
    let many = match one {
        "axis" => "axes".to_owned(),
        "index" => "indices".to_owned(),
        _ => format!("{one}s"),
    };
    format!("{count} {}", if count == 1 { one } else { &many })
}

/// Formats alternatives: `1, 2 or 4`.
pub fn one_of(choices: &[String]) -> String {
    match choices {
        [] => String::new(),
        [one] => one.clone(),
        [others @ .., last] => format!("{} or {last}", others.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::{counted, one_of};

    #[test]
    fn numbers_in_words() {
        assert_eq!([counted(0, "field"), counted(1, "axis"), counted(2, "axis")], ["0 fields", "1 axis", "2 axes"]);
        assert_eq!(one_of(&["1".into(), "2".into(), "4".into()]), "1, 2 or 4");
    }
}
