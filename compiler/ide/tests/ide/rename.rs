use crate::fixture::{Fixture, edited};
use crate::texts::texts;
use rx_db::{Document, FileKind};
use rx_ide::{prepare_rename, rename, symbol_at};
use rx_syntax::TokenKind;
use std::collections::BTreeSet;

/// Returns the text after the symbol at the cursor is renamed, or the reason why it cannot be.
fn renamed(text: &str, new: &str) -> Result<String, String> {
    let fixture = Fixture::new(text);
    let edits = rename(&fixture.view(), fixture.cursor, new)?;
    Ok(edited(&fixture.text(), &edits))
}

#[test]
fn names_in_strings_are_edited_in_place() {
    let text = "@R.function\r\ndef f(x: R.Tensor((\"é\", r'é*2', \"2*\" \"é\", \"\\x32 * é\"))):\r\n    return R.shape([$0é])\r\n";
    let expected =
        "@R.function\r\ndef f(x: R.Tensor((\"m\", r'm*2', \"2*\" \"m\", \"2 * m\"))):\r\n    return R.shape([m])\r\n";
    assert_eq!(renamed(text, "m").as_deref(), Ok(expected));
}

const MODULE: &str = "from tvm.script import relax as R
import numpy as np
@I.ir_module
class Module:
    @R.function
    def f(a: R.Tensor((\"n\",))):
        b = R.abs(a)
        b = R.add(b, a)
        return b
    @R.function
    def g(a: R.Any):
        return Module.f(a)
";

#[test]
fn a_rename_is_refused_with_a_reason() {
    let refused = |place: &str, new: &str| {
        let text = MODULE.replacen(place, &format!("$0{place}"), 1);
        renamed(&text, new).expect_err("it is refused")
    };
    assert_eq!(
        refused("a: R.Tensor", "return"),
        "`return` is not a valid name: use letters, digits and `_`, do not begin with a digit, and do not use a keyword"
    );
    assert_eq!(
        refused("a: R.Tensor", "1a"),
        "`1a` is not a valid name: use letters, digits and `_`, do not begin with a digit, and do not use a keyword"
    );
    assert_eq!(refused("a: R.Tensor", "b"), "`b` is already used: the rename would change the meaning of line 8");
    assert_eq!(refused("a: R.Tensor", "R"), "`R` is a namespace of TVMScript");
    assert_eq!(refused("a: R.Tensor", "n"), "`n` is already used: the rename would change the meaning of line 6");
    assert_eq!(refused("R.function", "S"), "`R` is a namespace of TVMScript, whose name is defined by TVM");
    assert_eq!(refused("np", "numpy"), "`np` is a Python name: rx cannot find all its uses");
    assert_eq!(refused("abs", "neg"), "there is no name here that can be changed");
    assert_eq!(refused("f(a: R.Tensor", "g"), "`g` is already used: the rename would change the meaning of line 11");
}

#[test]
fn rename_to_a_name_unused_after_the_binding_is_allowed() {
    let text = MODULE.replacen("b = R.add", "$0b = R.add", 1);
    // The parameter is not used after this binding.
    assert_eq!(renamed(&text, "a"), Ok(MODULE.replace("b = R.add", "a = R.add").replace("return b", "return a")));
    let text = MODULE.replacen("Module:", "$0Module:", 1);
    assert_eq!(renamed(&text, "Net"), Ok(MODULE.replace("Module", "Net")));
    assert_eq!(
        prepare_rename(&Fixture::new(&text).view(), text.find("$0").expect("a cursor"))
            .map(|(_, name)| name.to_string()),
        Ok("Module".into())
    );
}

#[test]
fn rename_of_a_name_that_a_macro_captures_is_refused() {
    let text = "@T.macro(hygienic=False)
def clear(i):
    A[i] = T.float32(0)
@T.prim_func
def f($0A: T.Buffer((8,), \"float32\"), B: T.Buffer((8,), \"float32\")):
    clear(0)
@T.prim_func
def g(A: T.Buffer((8,), \"float32\")):
    A[0] = T.float32(0)
";
    let refused = Err("the name in line 3 belongs to the macro `clear`, which resolves it at its call site".to_owned());
    assert_eq!(renamed(text, "C"), refused);
    let text = text.replace("$0", "");
    assert_eq!(renamed(&text.replace(" B:", " $0B:"), "A"), refused);
    assert!(renamed(&text.replace(" B:", " $0B:"), "C").is_ok());
    assert!(renamed(&text.replace("g(A", "g($0A"), "C").is_ok());
    // A parameter of the macro is local to it.
    let expected = text.replace("clear(i)", "clear(k)").replace("A[i]", "A[k]");
    assert_eq!(renamed(&text.replace("clear(i)", "clear($0i)"), "k"), Ok(expected));
}

#[test]
fn function_used_by_python_is_not_renamed() {
    let text = "@R.function\ndef f(x: R.Any):\n    return x\n\nprint(f)\n";
    let fixture = Fixture::of(text, FileKind::Python);
    let refused = rename(&fixture.view(), text.find("f(x").expect("a function"), "g");
    assert_eq!(refused, Err("`f` is used by Python code in line 5, which rx does not analyze".to_owned()));
    assert!(rename(&fixture.view(), text.find("x:").expect("a parameter"), "g").is_ok());
}

/// Diagnostics about names themselves: a name that hides another, and the special names `main` and
/// `main_transform_params` of TVM.
const OF_NAMES: [&str; 3] = ["RX1253", "RX0205", "RX0951"];

/// Returns the diagnostic codes with their lines.
fn codes(text: &str, kind: FileKind) -> Vec<(String, u32)> {
    let fixture = Fixture::of(text, kind);
    let found = fixture.workspace.diagnostics(fixture.file);
    let line = |offset: u32| fixture.view().document().line_column(offset as usize, rx_db::Encoding::Utf8).0;
    let mut codes: Vec<_> = found.iter().map(|found| (found.code.to_string(), line(found.primary.start))).collect();
    codes.retain(|(code, _)| !OF_NAMES.contains(&code.as_str()));
    codes.sort();
    codes
}

/// Returns the positions of the names of a text, in code and in strings.
fn places(text: &str, kind: FileKind) -> Vec<usize> {
    let document = Document::new(text, kind);
    let mut places = Vec::new();
    for (at, item) in document.items().iter().enumerate() {
        for (number, segment) in item.segments.iter().enumerate() {
            let tokens = &segment.tree().tokens;
            for token in 0..tokens.len() {
                let start =
                    document.segment_start(at, number) + tokens.span(token).map_or(0, |span| span.start as usize);
                match tokens.kind(token) {
                    Some(TokenKind::String) => places.push(start + 1),
                    Some(kind) if kind.is_name() => places.push(start),
                    _ => {}
                }
            }
        }
    }
    places
}

#[test]
fn a_renamed_text_means_the_same_and_can_be_renamed_back() {
    const FRESH: &str = "fresh_name";
    let (mut renames, mut wrong) = (0, Vec::new());
    for (source, kind, text) in texts() {
        if text.len() > 20_000 {
            continue;
        }
        let fixture = Fixture::of(&text, kind);
        let before = codes(&text, kind);
        let mut done = BTreeSet::new();
        for place in places(&text, kind) {
            let Some(symbol) = symbol_at(&fixture.view(), place) else { continue };
            // A name that starts with a digit is an error, which any new name fixes.
            if symbol.name.starts_with(|first: char| first.is_ascii_digit()) {
                continue;
            }
            if !done.insert(symbol.occurrences.first().map(|found| (found.span.start, found.span.end))) {
                continue;
            }
            let Ok(edits) = rename(&fixture.view(), place, FRESH) else { continue };
            renames += 1;
            let after = edited(&text, &edits);
            let found = codes(&after, kind);
            if found != before {
                wrong.push(format!("{source}: `{}` at {place}: {before:?} became {found:?}", symbol.name));
                continue;
            }
            let renamed = Fixture::of(&after, kind);
            let first = edits.iter().map(|(span, _)| span.start as usize).min().unwrap_or(place);
            let back = rename(&renamed.view(), first, &symbol.name);
            let back = back.map(|edits| edited(&after, &edits));
            // Some texts use a namespace's name for a variable, so renaming back to it is refused.
            let reserved = back.as_ref().is_err_and(|why| why.contains("namespace"));
            if !reserved && back.as_deref() != Ok(&text) {
                wrong.push(format!("{source}: `{}` at {place} does not come back: {:?}", symbol.name, back.err()));
            }
        }
    }
    assert!(renames > 500, "{renames} symbols");
    assert!(wrong.is_empty(), "{} of {renames}:\n{}", wrong.len(), wrong.join("\n"));
}
