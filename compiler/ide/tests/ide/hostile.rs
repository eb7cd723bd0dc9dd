//! Every request at many positions of broken and unusual texts: each returns, and no result contains a position outside
//! the text.

use crate::fixture::{Fixture, Random};
use crate::texts::texts;
use rx_base::Span;
use rx_db::FileKind;

const ODD: [&str; 16] = [
    "",
    "\n",
    "\u{feff}",
    "é",
    "R.",
    "cls.",
    "def",
    "@R.function\ndef",
    "class M:\n",
    "if x:\n",
    "\"",
    "'''é\n",
    "(\r\n",
    "f = lambda é: é.é\n",
    "@R.function\ndef f(x: R.Tensor((\"\\N{BULLET}\", \"n\" 'm', r\"n\\\"))):\n    \u{2028}n = x\r    if n: n = 1; x = n\r\n    else: n\n  é\n",
    "with a as b, c as (d, *e): b\nfor x, in y: x\n@R.function\ndef g(g, g, *, g=g):\n\tg.g.g[g] = g = g\n",
];

/// Makes every request at an offset and checks the positions in the results.
fn ask(fixture: &Fixture, text: &str, offset: usize) {
    let view = fixture.view();
    let whole = |span: Span| assert!(text.get(span.range()).is_some(), "{span:?} is no place of {text:?}");
    rx_ide::hover(&view, offset).into_iter().for_each(|hover| whole(hover.span));
    rx_ide::definition(&view, offset).into_iter().for_each(|found| found.targets.into_iter().for_each(whole));
    rx_ide::references(&view, offset, true).into_iter().for_each(whole);
    rx_ide::highlights(&view, offset).into_iter().for_each(|(span, _)| whole(span));
    rx_ide::prepare_rename(&view, offset).into_iter().for_each(|(span, _)| whole(span));
    rx_ide::rename(&view, offset, "renamed").into_iter().flatten().for_each(|(span, _)| whole(span));
    rx_ide::selections(&view, offset).into_iter().for_each(whole);
    let calls = rx_ide::incoming(&view, offset).into_iter().chain(rx_ide::outgoing(&view, offset));
    calls.flat_map(|call| call.places).for_each(whole);
    for node in
        rx_ide::graph(&view, offset, &fixture.workspace.diagnostics(fixture.file)).into_iter().flat_map(|it| it.nodes)
    {
        whole(node.span);
    }
    let mut check = |_: &str| rx_ide::Checked::default();
    for end in [offset, text.len()] {
        let range = Span::new(offset.min(end) as u32, end as u32);
        rx_ide::refactorings(&view, range, &[], &|_| true, &mut check);
    }
    rx_ide::function_at(&view, offset).into_iter().for_each(|function| whole(function.selection));
}

/// Makes every request about a whole text.
fn ask_whole(fixture: &Fixture, text: &str) {
    let view = fixture.view();
    let whole = |span: Span| assert!(text.get(span.range()).is_some(), "{span:?} is no place of {text:?}");
    let mut left = rx_ide::outline(&view);
    while let Some(part) = left.pop() {
        whole(part.span);
        assert!(part.span.start <= part.selection.start && part.selection.end <= part.span.end, "{part:?}");
        whole(part.selection);
        left.extend(part.children);
    }
    rx_ide::document_links(&view).into_iter().for_each(|link| whole(link.span));
    rx_ide::folds(&view).into_iter().for_each(|fold| whole(fold.span));
    let mut start = 0;
    for key in rx_ide::item_keys(&view).iter().flat_map(rx_ide::ItemKey::segments) {
        let mut last = 0;
        for word in key.words() {
            whole(word.span.shift(start));
            assert!(last <= word.span.start, "{word:?} stands over another in {text:?}");
            last = word.span.end;
        }
        start += key.segment().text().len() as u32;
    }
}

fn ask_everywhere(text: &str, step: usize) {
    for kind in [FileKind::Rx, FileKind::Python] {
        let fixture = Fixture::of(text, kind);
        ask_whole(&fixture, text);
        (0..=text.len() + 1).step_by(step).for_each(|offset| ask(&fixture, text, offset));
    }
}

#[test]
fn odd_texts() {
    for text in ODD {
        ask_everywhere(text, 1);
        ask_everywhere(&format!("@R.function\ndef f(x: R.Any):\n    {text}\n    return x\n"), 1);
    }
}

#[test]
fn texts_that_were_cut_and_mixed() {
    let mut random = Random(11);
    for (_, _, text) in texts().into_iter().filter(|(_, _, text)| text.len() < 12_000) {
        let from = text.floor_char_boundary(random.below(text.len()));
        let to = text.floor_char_boundary((from + random.below(60)).min(text.len())).max(from);
        let mixed = format!("{}{}{}", &text[..from], ODD[random.below(ODD.len())], &text[to..]);
        ask_everywhere(&mixed, 1 + mixed.len() / 24);
    }
}
