//! Tests that an incremental parse after edits gives the same tree as a fresh parse.

use rx_bench::generate::{Scale, scale};
use rx_grammar_tests::edits::{EDITS, LINES};
use rx_grammar_tests::{edit, folder, parser, workspace};
use tree_sitter::{Node, Tree};

/// A pseudorandom number generator with a fixed sequence.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % bound.max(1)
    }
}

/// The texts that are inserted.
const TYPED: [&str; 24] = [
    " ",
    "\n",
    "x",
    "(",
    ")",
    "[",
    "]",
    "\"",
    "'",
    "\"\"\"",
    ":",
    ",",
    "=",
    "#",
    "    ",
    "\t",
    "if x:\n",
    "else:\n",
    "def f(x):\n",
    "@",
    "\\",
    "é",
    "R.",
    "1",
];

/// Returns every node with its range.
fn describe(tree: &Tree) -> Vec<(String, std::ops::Range<usize>, bool)> {
    let mut nodes = Vec::new();
    let mut cursor = tree.walk();
    loop {
        let node: Node<'_> = cursor.node();
        nodes.push((node.kind().to_owned(), node.byte_range(), node.is_missing()));
        if cursor.goto_first_child() || cursor.goto_next_sibling() {
            continue;
        }
        loop {
            if !cursor.goto_parent() {
                return nodes;
            }
            if cursor.goto_next_sibling() {
                break;
            }
        }
    }
}

/// Makes `edits` edits of the text. If the edited text has no errors, the incremental and the fresh tree must be equal.
/// A tree with an error may differ: error recovery chooses among equal repairs, depending on the nodes that could be
/// reused.
fn check(name: &str, text: &str, edits: usize, random: &mut Random) -> usize {
    let mut parser = parser().expect("INVARIANT: the committed parser is of this library's version");
    let mut text = text.to_owned();
    let mut tree = parser.parse(&text, None).expect("INVARIANT: no time limit is set");
    let mut compared = 0;
    let mut undo: Option<(usize, usize, String)> = None;
    for step in 0..edits {
        let (at, old, new) = match undo.take() {
            Some(undo) => undo,
            None => {
                let mut at = random.below(text.len() + 1);
                while !text.is_char_boundary(at) {
                    at -= 1;
                }
                let mut end = (at + [0, 0, 1, 4, 30][random.below(5)]).min(text.len());
                while !text.is_char_boundary(end) {
                    end += 1;
                }
                let new = if end > at && random.below(2) == 0 { "" } else { TYPED[random.below(TYPED.len())] };
                undo = Some((at, new.len(), text.get(at..end).unwrap_or_default().to_owned()));
                (at, end - at, new.to_owned())
            }
        };
        edit(&mut text, &mut tree, at, old, &new);
        tree = parser.parse(&text, Some(&tree)).expect("INVARIANT: no time limit is set");
        let fresh = parser.parse(&text, None).expect("INVARIANT: no time limit is set");
        if !fresh.root_node().has_error() {
            compared += 1;
            assert_eq!(describe(&tree), describe(&fresh), "{name}, edit {step}: {new:?} at {at}\n{text}");
        }
        // Every seventh edit is kept.
        if step % 7 == 6 && !fresh.root_node().has_error() {
            undo = None;
        }
    }
    compared
}

#[test]
fn incremental_trees_equal_fresh_trees() {
    let mut random = Random(7);
    let mut compared = 0;
    for path in rx_tests::cases::files(&workspace().join("examples"), "rx") {
        let text = std::fs::read_to_string(&path).expect("INVARIANT: the file was just listed");
        if text.len() < 8_000 {
            compared += check(&path.display().to_string(), &text, 100, &mut random);
        }
    }
    for path in rx_tests::cases::files(&folder().join("test/corpus"), "txt") {
        let text = std::fs::read_to_string(&path).expect("INVARIANT: the file was just listed");
        compared += check(&path.display().to_string(), &text, 100, &mut random);
    }
    // These programs are long enough that lists are divided at two levels.
    compared += check("one function", &scale(&Scale::new(600)), 16, &mut random);
    compared += check("many functions", &scale(&Scale::new(600).split(60)), 16, &mut random);
    println!("{compared} trees compared");
    assert!(compared > 200, "most edits are taken back");
}

#[test]
fn lines_that_are_all_alike_are_read() {
    let text = "@R.function\ndef f(x):\n".to_owned() + &"    R.print(x)\n".repeat(3_000);
    let mut random = Random(3);
    assert!(check("alike", &text, 6, &mut random) > 0);
}

/// Compares trees; reports the first difference.
fn same(
    left: &[(String, std::ops::Range<usize>, bool)],
    right: &[(String, std::ops::Range<usize>, bool)],
    title: &str,
) {
    let differing = left.iter().zip(right).find(|(left, right)| left != right);
    assert!(differing.is_none() && left.len() == right.len(), "{title}: {differing:?}");
}

#[test]
fn edits_at_every_kind_of_line_are_read_anew() {
    every_edit(&[scale(&Scale::new(8)), scale(&Scale::new(24).split(6))], &[0]);
}

#[test]
#[ignore = "sweep: .ci/full"]
fn edits_at_every_kind_of_line_at_more_places_are_read_anew() {
    every_edit(&[scale(&Scale::new(20)), scale(&Scale::new(60).split(6))], &[0, 60]);
}

/// Makes every edit of the benchmark at every kind of line and undoes it. The tree must then be that of the original
/// text; and if the edited text has no errors, its tree must be that of a fresh parse. The lines are the first ones after
/// each of `shares`, in percent of the text.
fn every_edit(texts: &[String], shares: &[usize]) {
    let mut compared = 0;
    for text in texts {
        let mut parser = parser().expect("INVARIANT: the committed parser is of this library's version");
        let mut parse =
            |text: &str, old: Option<&Tree>| parser.parse(text, old).expect("INVARIANT: no time limit is set");
        let unedited = parse(text, None);
        let original = describe(&unedited);
        for ((title, make), (line, find)) in EDITS.iter().flat_map(|edit| LINES.iter().map(move |line| (edit, line))) {
            for share in shares {
                let Some(change) = find(text, text.len() / 100 * share).and_then(|line| make(text, line)) else {
                    continue;
                };
                let mut tree = unedited.clone();
                let mut edited = text.clone();
                edit(&mut edited, &mut tree, change.at, change.old, change.new);
                tree = parse(&edited, Some(&tree));
                let fresh = parse(&edited, None);
                if !fresh.root_node().has_error() {
                    compared += 1;
                    same(&describe(&tree), &describe(&fresh), &format!("{title}, {line}, byte {}", change.at));
                }
                let old = text.get(change.at..change.at + change.old).unwrap_or_default();
                edit(&mut edited, &mut tree, change.at, change.new.len(), old);
                tree = parse(&edited, Some(&tree));
                same(&describe(&tree), &original, &format!("{title}, {line}, byte {}, taken back", change.at));
            }
        }
    }
    println!("{compared} trees compared");
    assert!(compared > 200, "many edits leave a text without errors");
}

/// The scanner looks ahead to find the intended column of a line. The text that it looks at, including strings, must be
/// parsed normally afterwards. Here a header is too long for the look-ahead, below a misplaced class line, decorator or
/// keyword.
#[test]
fn header_beyond_the_lookahead_stays_a_header() {
    let parameters = (0..3_000).map(|at| format!("w{at}: R.Tensor((4,), dtype=\"float32\"), "));
    let parameters: String = parameters.collect();
    let body = format!("def main({parameters}x: R.Tensor((4,), \"float32\")):\n        return x\n");
    let mut parser = parser().expect("INVARIANT: the committed parser is of this library's version");
    let slipped = [
        format!("class Module:    @R.function\n    {body}"),
        format!("class Module:\n    @R.function\n   {body}"),
        format!("class Module:\n    @R.function\n     {body}"),
        format!("class Module:\n   @R.function\n    {body}"),
    ];
    for text in slipped {
        let tree = parser.parse(&text, None).expect("INVARIANT: no time limit is set");
        let count = |wanted: &str| describe(&tree).iter().filter(|(kind, ..)| kind == wanted).count();
        let start: String = text.chars().take(60).collect();
        assert_eq!(
            (count("ERROR"), count("typed_parameter"), count("string"), count("return_statement")),
            (0, 3_001, 3_001, 1),
            "{start}"
        );
    }
}
