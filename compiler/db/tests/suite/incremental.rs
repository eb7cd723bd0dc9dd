//! Property tests of incremental checking: after any edits, diagnostics and types equal those of a new workspace with
//! the same text.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use rx_db::{FileKind, Workspace};

/// Small programs that together contain most constructs.
const TEXTS: &[&str] = &[
    include_str!("../../../../examples/convnet.rx"),
    include_str!("../../../../examples/transformer_block.rx"),
    include_str!("../../../../examples/conv_relu_mismatch.rx"),
    include_str!("../../../../examples/prim_func.rx"),
    include_str!("../../../../examples/handwritten.rx"),
    include_str!("../../../../examples/classic_spelling.rx"),
    include_str!("../texts/branches.rx"),
    include_str!("../texts/many_bindings.rx"),
    include_str!("../texts/values.rx"),
    include_str!("../texts/facts.rx"),
    include_str!("../texts/suppressed.rx"),
];

/// An edit at a place chosen by a number.
#[derive(Clone, Debug)]
enum Edit {
    /// Inserts text.
    Insert(usize, &'static str),
    /// Deletes some characters.
    Delete(usize, usize),
    /// Deletes a line.
    DeleteLine(usize),
    /// Duplicates a line, so that its names are defined twice.
    RepeatLine(usize),
    /// Moves a line after another.
    MoveLine(usize, usize),
    /// Replaces a digit, which changes a dim.
    Digit(usize, char),
    /// Undoes the last edit.
    Undo,
}

fn edit() -> impl Strategy<Value = Edit> {
    let pieces = prop::sample::select(vec![
        "(",
        ")",
        "[",
        "]",
        "\"",
        "\"\"\"",
        "\n",
        " ",
        "    ",
        "x",
        "7",
        ",",
        ":",
        "=",
        "#",
        "@",
        "\\",
        "é",
        "R.",
        "cls.",
        "        return gv\n",
        "    @R.function\n",
        "\n\n",
        "T.int64()",
        "with R.dataflow():\n",
        "else:\n",
        "lv",
        "  # rx: ignore[RX0201]",
        "# rx: ignore\n",
    ]);
    prop_oneof![
        4 => (any::<usize>(), pieces).prop_map(|(at, piece)| Edit::Insert(at, piece)),
        3 => (any::<usize>(), 1..12usize).prop_map(|(at, count)| Edit::Delete(at, count)),
        1 => any::<usize>().prop_map(Edit::DeleteLine),
        1 => any::<usize>().prop_map(Edit::RepeatLine),
        1 => (any::<usize>(), any::<usize>()).prop_map(|(from, to)| Edit::MoveLine(from, to)),
        3 => (any::<usize>(), prop::sample::select(vec!['1', '2', '4', '9'])).prop_map(|(at, digit)| Edit::Digit(at, digit)),
        2 => Just(Edit::Undo),
    ]
}

/// Returns the byte range that an edit replaces, and its replacement.
fn replacement(text: &str, edit: &Edit) -> Option<(std::ops::Range<usize>, String)> {
    let place = |at: usize| {
        let mut at = at % (text.len() + 1);
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        at
    };
    let lines: Vec<(usize, usize)> = text
        .split_inclusive('\n')
        .scan(0, |start, line| {
            let range = (*start, *start + line.len());
            *start = range.1;
            Some(range)
        })
        .collect();
    let line = |at: usize| lines.get(at % lines.len().max(1)).copied();
    Some(match edit {
        Edit::Insert(at, piece) => (place(*at)..place(*at), (*piece).to_owned()),
        Edit::Delete(at, count) => {
            let start = place(*at);
            let end = text[start..].char_indices().nth(*count).map_or(text.len(), |(offset, _)| start + offset);
            (start..end, String::new())
        }
        Edit::DeleteLine(at) => {
            let (start, end) = line(*at)?;
            (start..end, String::new())
        }
        Edit::RepeatLine(at) => {
            let (start, end) = line(*at)?;
            (start..start, text[start..end].to_owned())
        }
        Edit::MoveLine(from, to) => {
            let ((a, b), (c, _)) = (line(*from)?, line(*to)?);
            match c >= b {
                true => (a..c, format!("{}{}", &text[b..c], &text[a..b])),
                false => (c..b, format!("{}{}", &text[a..b], &text[c..a])),
            }
        }
        Edit::Digit(at, digit) => {
            let start = place(*at);
            let offset = text[start..].find(|c: char| c.is_ascii_digit())?;
            (start + offset..start + offset + 1, digit.to_string())
        }
        Edit::Undo => return None,
    })
}

fn assert_like_scratch(workspace: &Workspace, file: rx_db::FileId, text: &str) {
    assert_eq!(workspace.document(file).text(), text);
    let mut fresh = Workspace::new();
    let scratch = fresh.add(text, FileKind::Rx);
    assert_eq!(workspace.diagnostics(file), fresh.diagnostics(scratch), "diagnostics of:\n{text}");
    assert_eq!(workspace.types(file), fresh.types(scratch), "types of:\n{text}");
}

fn seed() -> RngSeed {
    let wanted = std::env::var("PROPTEST_RNG_SEED").ok().and_then(|text| text.parse().ok());
    RngSeed::Fixed(wanted.unwrap_or(20))
}

proptest! {
    // Each run makes the same edits; set `PROPTEST_RNG_SEED` and `PROPTEST_CASES` to try others.
    #![proptest_config(ProptestConfig {
        max_shrink_iters: 400,
        failure_persistence: None,
        rng_seed: seed(),
        ..ProptestConfig::default()
    })]

    #[test]
    fn edits_give_the_results_of_a_fresh_check(which in 0..TEXTS.len(), edits in prop::collection::vec(edit(), 1..14)) {
        let mut text = TEXTS[which].to_owned();
        let mut workspace = Workspace::new();
        let file = workspace.add(&text, FileKind::Rx);
        workspace.diagnostics(file);
        let mut history: Vec<String> = Vec::new();
        for edit in &edits {
            let (range, new) = match replacement(&text, edit) {
                Some(change) => change,
                None => match history.pop() {
                    Some(before) => (0..text.len(), before),
                    None => continue,
                },
            };
            if !matches!(edit, Edit::Undo) {
                history.push(text.clone());
            }
            workspace.edit(file, range.clone(), &new);
            text.replace_range(range, &new);
            assert_like_scratch(&workspace, file, &text);
        }
    }
}

/// Returns a workspace with a function whose body is `lines` bindings, long enough for several segments.
fn long_function(lines: usize) -> (Workspace, rx_db::FileId, String) {
    let mut text = "@R.function\ndef main(x: R.Tensor((2, 3), \"float32\")):\n    lv0 = R.nn.relu(x)\n".to_owned();
    for at in 1..lines {
        text += &format!("    lv{at} = R.add(lv{}, x)\n", at - 1);
    }
    text += &format!("    return lv{}\n", lines - 1);
    let mut workspace = Workspace::new();
    let file = workspace.add(&text, FileKind::Rx);
    assert_like_scratch(&workspace, file, &text);
    (workspace, file, text)
}

/// Replaces the only occurrence of `old`, in the workspace and in `text`.
fn replace(workspace: &mut Workspace, file: rx_db::FileId, text: &mut String, old: &str, new: &str) {
    let places: Vec<usize> = text.match_indices(old).map(|(at, _)| at).collect();
    let [at] = places[..] else { panic!("{} occurrences of {old:?}", places.len()) };
    workspace.edit(file, at..at + old.len(), new);
    text.replace_range(at..at + old.len(), new);
    assert_like_scratch(workspace, file, text);
}

#[test]
fn numbered_name_in_a_middle_segment_is_reported_until_it_is_removed() {
    let (mut workspace, file, mut text) = long_function(200);
    let reported = |workspace: &Workspace| -> Vec<usize> {
        let found = workspace.diagnostics(file);
        let own = found.iter().filter(|diagnostic| diagnostic.message.starts_with("`0_bias` is no name"));
        own.map(|diagnostic| diagnostic.primary.start as usize).collect()
    };
    let places = |text: &str| -> Vec<usize> { text.match_indices("0_bias").map(|(at, _)| at).collect() };
    let pasted: String = (0..100).map(|at| format!("    a{at} = R.nn.relu(lv0)\n")).collect();
    let edits = [
        ("R.add(lv120, x)", "R.add(0_bias, x)".to_owned()),
        // More segments before the name, then fewer.
        ("    lv40 = ", format!("{pasted}    lv40 = ")),
        (pasted.as_str(), String::new()),
        ("0_bias", "lv120".to_owned()),
        // Also in the header.
        ("(x: R", "(0_bias: R.Tensor((3,), \"float32\"), x: R".to_owned()),
        ("0_bias", "bias".to_owned()),
    ];
    for (old, new) in edits {
        replace(&mut workspace, file, &mut text, old, &new);
        assert_eq!(reported(&workspace), places(&text), "after the edit of {old:?}");
    }
}

#[test]
fn definitions_after_inserted_and_deleted_segments_are_found() {
    let (mut workspace, file, mut text) = long_function(200);
    let pasted: String = (0..100).map(|at| format!("    lv{} = R.zeros((2, {at}), \"float32\")\n", 100 + at)).collect();
    let edits = [
        // Other definitions of names that are defined and used later.
        ("    lv40 = ", format!("{pasted}    lv40 = ")),
        ("R.add(lv60, x)", "R.add(lv150, x)".to_owned()),
        ("R.add(lv197, x)", "R.add(lv61, x)".to_owned()),
        ("R.add(lv61, x)\n    lv199", "R.add(missing, x)\n    lv199".to_owned()),
        (pasted.as_str(), String::new()),
        ("R.add(lv70, x)", "R.add(lv69, x)".to_owned()),
        ("R.add(missing, x)", "R.add(lv71, x)".to_owned()),
    ];
    for (old, new) in edits {
        replace(&mut workspace, file, &mut text, old, &new);
    }
}

#[test]
fn function_that_is_added_after_its_call_has_an_inferred_type() {
    let main = concat!(
        "    @R.function\n",
        "    def main(x: R.Tensor((2, 3), \"float32\")):\n",
        "        cls = Module\n",
        "        z = cls.helper(x)\n",
        "        return z\n",
    );
    let helper = concat!(
        "    @R.function\n",
        "    def helper(y: R.Tensor((2, 3), \"float32\")):\n",
        "        return R.permute_dims(y)\n",
    );
    let mut text = format!("@I.ir_module\nclass Module:\n{main}");
    let mut workspace = Workspace::new();
    let file = workspace.add(&text, FileKind::Rx);
    assert_like_scratch(&workspace, file, &text);
    let edits = [
        ("class Module:\n", format!("class Module:\n{helper}"), true),
        ("def helper", "def other".to_owned(), false),
        ("def other", "def helper".to_owned(), true),
        (helper, String::new(), false),
    ];
    for (old, new, is_known) in edits {
        replace(&mut workspace, file, &mut text, old, &new);
        let types = workspace.types(file);
        let known = types.iter().any(|row| row.name == "z" && row.struct_info.contains("(3, 2)"));
        assert_eq!(known, is_known, "after the edit of {old:?}");
    }
}

/// The reused inputs of a removed file must contain nothing that a later file could see.
#[test]
fn inputs_of_a_removed_file_are_used_again() {
    let mut workspace = Workspace::new();
    for text in TEXTS.iter().cycle().take(3 * TEXTS.len()) {
        let file = workspace.add(text, FileKind::Rx);
        assert_like_scratch(&workspace, file, text);
        workspace.remove(file);
        assert!(workspace.diagnostics(file).is_empty());
    }
}
