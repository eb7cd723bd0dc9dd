//! Checks functions that are divided into segments in different ways: the diagnostics are the same.

use rx_analysis::function::{FunctionMemo, Items, check_function};
use rx_analysis::signature::relax_header;
use rx_base::{Diagnostic, Name, Span};
use rx_context::{FileContext, ItemPlace};
use rx_ir::{Signature, Summary};
use rx_syntax::{Segment, Segments};
use std::sync::Arc;

/// A module without other items.
struct Alone;

impl Items for Alone {
    fn signature(&self, _name: Name) -> Option<Arc<Signature>> {
        None
    }

    fn summary(&self, _name: Name) -> Option<Arc<Summary>> {
        None
    }
}

const HEADER: &str = "@R.function(pure=False)
def main(x: R.Tensor((\"n\", 4), \"float32\"), c: R.Tensor((), \"bool\")) -> R.Tensor((\"n\", 5), \"float32\"):
";

/// The parts of a body, which may be separate segments. Each produces something that refers to an earlier one: a
/// label at a definition, a suggested name, or a bound.
const BODY: [&str; 21] = [
    "    a = t1\n",
    "    b1 = R.nn.relu(x)\n",
    "    b2: R.Tensor((\"m * 2\", 4), \"float32\") = R.nn.relu(x)\n",
    "    b3 = R.matmul(b2, b2)\n",
    "    R.func_attr({\"tir_var_upper_bound\": {\"n\": 8}})\n",
    "    if c:\n        R.func_attr({\"tir_var_lower_bound\": {\"n\": 2}})\n        d = x\n    else:\n        d = x\n",
    "    @R.function\n    def f(y: R.Tensor((2,))):\n        R.func_attr({\"tir_var_upper_bound\": {\"n\": 1}})\n        return y\n",
    "    e = R.strided_slice(x, [0], [0], [n * 0 + 2])\n",
    "    with R.dataflow():\n",
    "        lv = R.permute_dims(x)\n",
    "        gv = R.permute_dims(lv)\n",
    "        R.output(gv)\n",
    "    g = R.matmul(gv, gv)\n",
    "    h = lv\n",
    "    i = gvx\n",
    "    s0 = R.match_cast(t0, R.Tensor((\"p\", 4), \"float32\"))\n",
    "    s1 = R.match_cast(s0, R.Tensor((n, 4), \"float32\"))\n",
    "    R.assert_op(n == 8)\n",
    "    s2: R.Tensor((9, 4), \"float32\") = s0\n",
    "    j = x.q + R.zeros((\"k - x.w\", 2), \"float32\")\n",
    "    return b1\n",
];

/// A header that is indented less than the body, whose lines continue after it.
const ASTRAY: [&str; 4] = [
    "            a = R.nn.relu(x)\n        if c: else:\n",
    "            b = R.nn.relu(a)\n",
    "            d = R.nn.relu(b)\n",
    "            return d\n",
];

/// Returns the diagnostics of the function whose segments consist of `width` parts of `body` each, with spans in the
/// whole text.
fn check(body: &[&str], width: usize) -> Vec<Diagnostic<Span>> {
    let mut texts = vec![HEADER.to_owned()];
    texts.extend(body.chunks(width).map(|parts| parts.concat()));
    let segments: Segments = texts.iter().map(|text| Arc::new(Segment::new(text.as_str().into()))).collect();
    let file = Arc::new(FileContext::default());
    let header = relax_header(&segments[0], &file);
    let check = check_function(&segments, &header, &file, &Alone, &FunctionMemo::default());
    let place = |place: &ItemPlace| match place {
        ItemPlace::Segment(at, span) => {
            let before: usize = texts.iter().take(*at as usize).map(String::len).sum();
            Some(span.shift(before as u32))
        }
        ItemPlace::Item(..) | ItemPlace::Macro(_) => None,
    };
    let placed = |diagnostic: &Diagnostic<ItemPlace>| {
        diagnostic.map_places(place(&diagnostic.primary).unwrap_or_default(), place)
    };
    check.diagnostics.iter().map(placed).collect()
}

#[test]
fn segment_boundaries_do_not_change_results() {
    for body in [&BODY[..], &ASTRAY] {
        let whole = check(body, body.len());
        assert!(!whole.is_empty());
        for width in 1..body.len() {
            assert_eq!(check(body, width), whole, "segments of {width} parts");
        }
    }
}

#[test]
fn attribute_fixes_are_the_same_for_all_segment_boundaries() {
    let body = [
        "    k = R.zeros((1, 3, 8, 8), \"float32\")\n",
        "    w = R.zeros((4, 3, 3, 3), \"float32\")\n",
        "    lv: R.Tensor((1, 4, 6, 6), \"float32\") = R.nn.conv2d(k, w)\n",
        "    lv1 = R.nn.relu(lv)\n",
        "    gv: R.Tensor((1, 4, 8, 8), \"float32\") = R.nn.gelu(lv1)\n",
        "    return x\n",
    ];
    let whole = check(&body, body.len());
    let titles: Vec<&str> = whole.iter().flat_map(|it| &it.fixes).map(|fix| fix.title.as_str()).collect();
    assert!(titles.contains(&"use padding=[1, 1] in `lv`"), "{titles:?}");
    for width in 1..body.len() {
        assert_eq!(check(&body, width), whole, "segments of {width} parts");
    }
}

#[test]
fn attribute_fix_that_affects_too_many_segments_is_not_offered() {
    let is_offered = |uses: usize| {
        let mut body = vec![
            "    k = R.zeros((1, 3, 8, 8), \"float32\")\n",
            "    w = R.zeros((4, 3, 3, 3), \"float32\")\n",
            "    lv = R.nn.conv2d(k, w)\n",
            "    gv: R.Tensor((1, 4, 8, 8), \"float32\") = R.nn.gelu(lv)\n",
        ];
        body.extend(std::iter::repeat_n("    u = R.nn.relu(lv)\n", uses));
        body.push("    return x\n");
        let found = check(&body, 1);
        found.iter().flat_map(|it| &it.fixes).any(|fix| fix.title == "use padding=[1, 1] in `lv`")
    };
    assert!(is_offered(4));
    assert!(!is_offered(1024));
}

#[test]
fn labels_and_suggestions_use_preceding_statements() {
    let text = HEADER.to_owned() + &BODY.concat();
    let found = check(&BODY, 1);
    let label = |message: &str| {
        let diagnostic = found.iter().find(|diagnostic| diagnostic.message.contains(message));
        diagnostic
            .map_or(Vec::new(), |diagnostic| diagnostic.labels.iter().map(|label| &text[label.place.range()]).collect())
    };
    assert_eq!(label("declared to return"), ["R.Tensor((\"n\", 5), \"float32\")", "b1"]);
    let help = |message: &str| {
        found.iter().filter(|diagnostic| diagnostic.message.contains(message)).flat_map(|found| &found.help).collect()
    };
    let meant: Vec<&String> = help("`gvx` is not defined");
    assert_eq!(meant, ["did you mean `gv`?"]);
}
