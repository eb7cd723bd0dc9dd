//! Fuzz target: edits an open document.

use rx_db::{Document, FileId, FileKind, Workspace};
use std::ops::Range;

/// The texts to which edits are applied.
pub const STARTS: [&str; 6] = [
    include_str!("../../../examples/convnet.rx"),
    include_str!("../../../examples/handwritten.rx"),
    include_str!("../../../examples/conv_relu_mismatch.rx"),
    include_str!("../../../examples/transformer_block.rx"),
    include_str!("../seeds/calls.rx"),
    include_str!("../seeds/branches.rx"),
];

/// Texts that edits insert, besides pieces of the document itself.
const SNIPPETS: [&str; 50] = [
    "(",
    ")",
    "[",
    "]",
    "\"",
    "\"\"\"",
    "#",
    "\n",
    "\r\n",
    "\r",
    "\\\n",
    ":",
    "=",
    ",",
    "    ",
    "\t",
    "é",
    "\u{feff}",
    "n",
    "m",
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
    "n = TypeVar(\"n\")\n",
    "        n = T.int64()\n",
    "R.Tensor((n, m), dtype=\"float32\")",
    "R.Tensor((2, 3), dtype=\"float16\")",
    "            R.output(gv)\n",
    "        cls = Module\n",
    "cls.a(x)",
    "cls.f(x)",
    "cls.g(x)",
    "R.match_cast(x, R.Tensor((n, 4)))",
    "        n = R.match_cast(x, R.Tensor((m, 4)))\n",
    "        R.assert_op(n == 4)\n",
    "        R.func_attr({\"relax.force_pure\": True})\n",
    "            x = R.add(x, x)\n",
    "x",
    "lv",
    " -> R.Any",
];

/// The most edits of one run.
const MOST_EDITS: usize = 24;

/// Applies edits. The first byte of `data` chooses a text; each edit is decoded from seven bytes. After the edits,
/// diagnostics and types must equal those of a new workspace with the same text.
pub fn run(data: &[u8]) {
    let Some((first, mut rest)) = data.split_first() else { return };
    let kind = if first & 0x80 == 0 { FileKind::Rx } else { FileKind::Python };
    let mut text = STARTS[usize::from(first & 0x7f) % STARTS.len()].to_owned();
    let mut workspace = Workspace::new();
    let file = workspace.add(&text, kind);
    for _ in 0..MOST_EDITS {
        let Some((edit, after)) = rest.split_first_chunk::<7>() else { return };
        rest = after;
        let (range, new) = decode(edit, &text);
        workspace.edit(file, range.clone(), &new);
        text.replace_range(range, &new);
        // Skip some comparisons, so that the workspace has several edits to process at once.
        if edit[0] & 0x40 == 0 {
            assert_like_new(&workspace, file, &text, kind);
        }
    }
    assert_like_new(&workspace, file, &text, kind);
}

/// Decodes an edit of `text`: the range to replace, and the new text. For example, `[0, 0x80, 0, 0, 0, 0, 0]` inserts
/// the first snippet, `(`, in the middle of the text, and `[3, 0, 0, 0, 0, 0, 0]` deletes the first line.
fn decode(edit: &[u8; 7], text: &str) -> (Range<usize>, String) {
    let [kind, place_high, place_low, length, from_high, from_low, snippet] = edit.map(usize::from);
    let at = |high: usize, low: usize| text.floor_char_boundary((high << 8 | low) * text.len() / 0x10000);
    let line =
        |offset: usize| text.get(..offset).and_then(|before| before.rfind('\n')).map_or(0, |newline| newline + 1);
    let after = |offset: usize, bytes: usize| text.floor_char_boundary((offset + bytes).min(text.len()));
    let line_after = |offset: usize| {
        text.get(offset..).and_then(|rest| rest.find('\n')).map_or(text.len(), |newline| offset + newline + 1)
    };
    let place = at(place_high, place_low);
    let from = at(from_high, from_low);
    let snippet = || SNIPPETS[snippet % SNIPPETS.len()].to_owned();
    let piece = |range: Range<usize>| text.get(range).unwrap_or_default().to_owned();
    match kind % 8 {
        0 => (place..place, snippet()),
        1 => (place..after(place, length % 16), snippet()),
        2 => (place..after(place, length), String::new()),
        3 => (line(place)..line_after(place), String::new()),
        4 => (line(place)..line(place), snippet()),
        5 => (line(place)..line(place), piece(line(from)..line_after(after(from, 8 * length)))),
        6 => (place..after(place, length % 8), piece(from..after(from, length % 8))),
        _ => (line(place)..line_after(after(place, 8 * length)), piece(line(from)..line_after(from))),
    }
}

fn assert_like_new(workspace: &Workspace, file: FileId, text: &str, kind: FileKind) {
    assert_eq!(workspace.document(file).text(), text, "text is lost");
    let mut fresh = Workspace::new();
    let new = fresh.add(text, kind);
    let items = |document: &Document| -> Vec<_> {
        document.items().iter().map(|item| (item.kind, item.name, item.module, item.byte_len())).collect()
    };
    assert_eq!(items(workspace.document(file)), items(fresh.document(new)), "items of\n{text}");
    let (have, want) = (workspace.diagnostics(file), fresh.diagnostics(new));
    if have != want {
        let differs =
            have.iter().zip(&want).position(|(have, want)| have != want).unwrap_or(have.len().min(want.len()));
        panic!(
            "diagnostic {differs} is\n{:#?}\na new workspace says\n{:#?}\nof\n{text}",
            have.get(differs),
            want.get(differs)
        );
    }
    let (have, want) = (workspace.types(file), fresh.types(new));
    if have != want {
        let differs =
            have.iter().zip(&want).position(|(have, want)| have != want).unwrap_or(have.len().min(want.len()));
        panic!(
            "type {differs} is\n{:#?}\na new workspace says\n{:#?}\nof\n{text}",
            have.get(differs),
            want.get(differs)
        );
    }
}
