//! Tests that an edited document equals a new document of the same text, except for the places where segments are cut.

use rx_syntax::ast::StatementTree;
use rx_syntax::document::Point;
use rx_syntax::{Document, Encoding, FileKind, Item, ItemKind};
use std::ops::Range;

/// A small xorshift random number generator, so that a failure can be reproduced from its seed.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit.max(1) as u64) as usize
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }
}

/// Generates a module in TVM's printed form: prelude, global infos, prim_funcs, functions with dataflow blocks and
/// branches.
fn module(functions: usize, bindings: usize) -> String {
    let mut text =
        "# from tvm.script import relax as R\n\nn = TypeVar(\"n\")\n@I.ir_module\nclass Module:\n".to_owned();
    text += "    I.module_attrs({\"a\": 1})\n    f = R.ExternFunc(\"f\")\n";
    for function in 0..functions {
        if function % 3 == 1 {
            text +=
                &format!("    @T.prim_func(private=True)\n    def prim{function}(A: T.Buffer((4,), \"float32\")):\n");
            text +=
                "        # with T.sblock(\"root\"):\n        for i in range(4):\n            with T.sblock(\"b\"):\n";
            text += "                vi = T.axis.spatial(4, i)\n                A[vi] = T.float32(0)\n\n";
            continue;
        }
        text += &format!(
            "    @R.function\n    def main{function}(x: R.Tensor((n, 4), dtype=\"float32\"), y: R.Any) -> R.Any:\n"
        );
        text += "        cls = Module\n        with R.dataflow():\n";
        for binding in 0..bindings {
            text += &format!(
                "            lv{binding}: R.Tensor((n, 4), dtype=\"float32\") = R.add(x, R.const(1.0, \"float32\"))\n"
            );
        }
        text += "            gv = lv0\n            R.output(gv)\n        if y:\n            a = gv\n        else:\n";
        text += "            a = R.nn.relu(\n                gv,\n            )\n        return a\n\n";
    }
    text
}

const SNIPPETS: &[&str] = &[
    "(",
    ")",
    "[",
    "\"",
    "'",
    "\"\"\"",
    "#",
    "\n",
    "\n\n",
    "\r\n",
    "\r",
    "\\",
    "\\\n",
    ":",
    "=",
    ",",
    "    ",
    "        ",
    "\t",
    "é",
    "中",
    "\u{feff}",
    "@R.function\n",
    "    @R.function\n",
    "    def f(x):\n",
    "def g():\n    return 1\n",
    "        with R.dataflow():\n",
    "            lv = R.add(x, x)\n",
    "        return x\n",
    "    x = 1\n",
    "class Other:\n",
    "@I.ir_module\nclass M2:\n",
    "        if c:\n            y = 1\n        else:\n            y = 2\n",
    "    @T.prim_func\n",
    "from tvm.script import relax as rx\n",
    "@rx.function\n",
    "m = TypeVar(\"m\")\n",
    "pass",
    "def h():",
    "        x: R.Tensor((\n",
];

/// Changes a text at random places, usually whole lines.
fn random_edit(random: &mut Random, text: &str) -> (Range<usize>, String) {
    let starts: Vec<usize> = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
    let line = random.below(starts.len());
    let start = starts[line];
    let line_end = |line: usize| starts.get(line + 1).copied().unwrap_or(text.len());
    match random.below(7) {
        0 => (start..line_end(line), String::new()),
        1 => (start..start, random.pick(SNIPPETS).to_owned()),
        2 => (start..line_end((line + random.below(60)).min(starts.len() - 1)), String::new()),
        3 => (start..start, text[start..line_end((line + random.below(80)).min(starts.len() - 1))].to_owned()),
        4 => {
            let at = text.floor_char_boundary(random.below(text.len() + 1));
            (at..at, random.pick(SNIPPETS).to_owned())
        }
        5 => {
            let at = text.floor_char_boundary(random.below(text.len() + 1));
            (at..text.floor_char_boundary((at + random.below(12)).min(text.len())), random.pick(SNIPPETS).to_owned())
        }
        _ => {
            let at = text.floor_char_boundary(random.below(text.len() + 1));
            (at..text.floor_char_boundary((at + 1 + random.below(3)).min(text.len())), String::new())
        }
    }
}

/// A statement's offset in its item, its column, whether it is inline, its text and its tree.
type Seen<'a> = (usize, u32, bool, &'a str, &'a StatementTree);

/// Returns all observable properties of an item except the segment cuts: its head, its statements and its indentation
/// errors.
fn seen(item: &Item) -> (String, Vec<Seen<'_>>, Vec<(usize, String)>) {
    let head = format!("{:?} {} {:?} {:?}", item.kind, item.indent, item.name, item.module);
    let mut statements = Vec::new();
    // The statements of foreign code are never parsed.
    let read = if item.kind == ItemKind::Foreign { 0 } else { item.segments.len() };
    for (index, segment) in item.segments.iter().enumerate().take(read) {
        let start = item.segment_start(index);
        for statement in &segment.tree().statements {
            let text = &segment.text()[statement.span.range()];
            let place = start + statement.span.start as usize;
            statements.push((place, statement.indent, statement.inline, text, &*statement.tree));
        }
    }
    let errors = item.indentation_diagnostics();
    let errors =
        errors.map(|(segment, error)| (item.segment_start(segment) + error.primary.start as usize, error.message));
    (head, statements, errors.collect())
}

fn assert_like_new(document: &Document, text: &str, kind: FileKind, seed: u64, step: usize) {
    assert_eq!(document.text(), text, "seed {seed}, step {step}");
    let new = Document::new(text, kind);
    let sizes =
        |document: &Document| document.items().iter().map(|i| (i.kind, i.indent, i.byte_len())).collect::<Vec<_>>();
    assert_eq!(sizes(document), sizes(&new), "seed {seed}, step {step}: item borders in\n{text}");
    for (item, (old, new)) in document.items().iter().zip(new.items()).enumerate() {
        assert_eq!(seen(old), seen(new), "seed {seed}, step {step}, item {item}");
    }
    for offset in [0, text.len() / 3, text.len() / 2, text.len()] {
        for encoding in [Encoding::Utf8, Encoding::Utf16, Encoding::Utf32] {
            assert_eq!(
                document.line_column(offset, encoding),
                new.line_column(offset, encoding),
                "seed {seed}, step {step}"
            );
        }
    }
}

/// Runs the test with as many seeds as `RX_SEEDS` specifies, by default 40, starting with `first`.
fn run(kind: FileKind, first: u64, steps: usize) {
    let seeds = std::env::var("RX_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(40);
    for seed in first..first + seeds {
        let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        let mut text = module(1 + random.below(6), 1 + random.below(120));
        if kind == FileKind::Python {
            text = format!(
                "import tvm\nfrom tvm.script import ir as I, relax as R\n\ndef test():\n    x = 1\n\n{text}\nif x:\n    y = 2\n"
            );
        }
        let mut document = Document::new(&text, kind);
        let mut undo: Vec<(Range<usize>, String)> = Vec::new();
        for step in 0..steps {
            let (range, new) = match undo.pop().filter(|_| random.below(3) == 0) {
                Some(back) => back,
                None => random_edit(&mut random, &text),
            };
            undo.clear();
            undo.push((range.start..range.start + new.len(), text[range.clone()].to_owned()));
            let before = document.items().to_vec();
            let edit = document.edit(range.clone(), &new);
            text.replace_range(range, &new);
            assert_like_new(&document, &text, kind, seed, step);
            let kept = |items: &[Item], range: Range<usize>| {
                items[range].iter().map(|item| item.segments.address()).collect::<Vec<_>>()
            };
            let items = document.items();
            assert_eq!(kept(&before, 0..edit.old.start), kept(items, 0..edit.new.start), "seed {seed}, step {step}");
            let (old, new) = (edit.old.end..before.len(), edit.new.end..items.len());
            assert_eq!(kept(&before, old), kept(items, new), "seed {seed}, step {step}");
        }
    }
}

#[test]
fn an_edited_script_is_like_a_new_one() {
    run(FileKind::Rx, 1, 40);
}

#[test]
fn edited_python_is_like_new() {
    run(FileKind::Python, 1_000_000, 40);
}

/// Returns a position near a byte of a document; sometimes one that is outside the document.
fn point(random: &mut Random, document: &Document, at: usize, encoding: Encoding) -> Point {
    let (line, column) = document.line_column(at, encoding);
    match random.below(40) {
        0 => (line, column + 1000),
        1 => (line + 100_000, column),
        2 => (u32::MAX, u32::MAX),
        _ => (line, column),
    }
}

#[test]
fn joined_changes_equal_consecutive_changes() {
    let seeds: u64 = std::env::var("RX_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(300);
    let (mut changes_made, mut edits_made) = (0, 0);
    for seed in 1..=seeds {
        let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        let text = module(1 + random.below(3), 1 + random.below(60));
        let text = if random.below(4) == 0 { text.replace('\n', random.pick(&["\r\n", "\r"])) } else { text };
        let encoding = [Encoding::Utf8, Encoding::Utf16, Encoding::Utf32][random.below(3)];
        let mut single = Document::new(&text, FileKind::Rx);
        let mut joined = single.clone();
        let mut changes = Vec::new();
        let mut last = random.below(text.len());
        for _ in 0..1 + random.below(12) {
            let text = single.text();
            let (range, new) = match random.below(3) {
                0 => random_edit(&mut random, &text),
                _ => {
                    let at = text.floor_char_boundary(last.min(text.len()));
                    let end = text.floor_char_boundary((at + random.below(90) * random.below(2)).min(text.len()));
                    (at..end, random.pick(SNIPPETS).to_owned())
                }
            };
            last = range.start + new.len();
            let start = point(&mut random, &single, range.start, encoding);
            let end = point(&mut random, &single, range.end, encoding);
            let offset = |(line, column): Point| single.offset_of(line, column, encoding);
            let range = offset(start)..offset(end).max(offset(start));
            single.edit(range, &new);
            changes.push((start, end, new));
        }
        let mut rest = &changes[..];
        while let Some(edit) = joined.join(rest.iter().map(|(start, end, new)| (*start, *end, &**new)), encoding) {
            joined.edit(edit.range, &edit.text);
            rest = &rest[edit.count..];
            edits_made += 1;
        }
        changes_made += changes.len();
        assert_eq!(joined.text(), single.text(), "seed {seed}: {changes:?}");
    }
    assert!(edits_made * 2 < changes_made, "{changes_made} changes are {edits_made} edits");
}

#[test]
fn changes_far_apart_are_edits_of_their_own() {
    let text = module(1, 4000);
    let document = Document::new(&text, FileKind::Rx);
    let change = |line: u32| ((line, 0), (line, 0), "x");
    let edit = document.join([change(20), change(21), change(3000)], Encoding::Utf16).expect("INVARIANT: changes");
    assert_eq!(edit.count, 2);
    let alone = document.join([change(3000)], Encoding::Utf16).expect("INVARIANT: changes");
    assert_eq!((alone.range.len(), alone.text.as_str(), alone.count), (0, "x", 1));
    assert_eq!(document.join([], Encoding::Utf16), None);
}

#[test]
fn an_edit_in_a_body_touches_one_segment() {
    let text = module(3, 4000);
    let mut document = Document::new(&text, FileKind::Rx);
    let at = text.find("lv2000:").expect("INVARIANT: the module has 4000 bindings");
    let before = document.items().to_vec();
    let edit = document.edit(at..at + 2, "xy");
    assert_eq!(edit.old.len(), 1);
    assert_eq!(edit.old, edit.new);
    let (old, new) = (&before[edit.old.start], &document.items()[edit.new.start]);
    assert_eq!(old.segments.len(), new.segments.len());
    let changed = old.segments.iter().zip(new.segments.iter()).filter(|(old, new)| !std::sync::Arc::ptr_eq(old, new));
    assert_eq!(changed.count(), 1);
}
