//! Document links.

use crate::fixture::Fixture;
use rx_ide::MOST_LINKS;
use std::path::Path;

fn links(body: &str) -> Vec<(String, String)> {
    let fixture = Fixture::body(body);
    let text = fixture.text();
    let found = rx_ide::document_links(&fixture.view());
    found.into_iter().map(|link| (text[link.span.range()].to_owned(), link.target)).collect()
}

#[test]
fn operators_and_codes_lead_to_their_pages() {
    let found = links("# rx: ignore[RX0651, annotation-shape-mismatch]$0\ny = R.nn.relu(R.abs(x))\nreturn R.foo(y)");
    let words: Vec<&str> = found.iter().map(|(word, _)| word.as_str()).collect();
    assert_eq!(words, ["RX0651", "annotation-shape-mismatch", "R.nn.relu", "R.abs"]);
    assert!(found[0].1.ends_with("/docs/codes/rx0651.md") && found[2].1.ends_with("/docs/operators.md#rnnrelu"));
}

#[test]
fn number_of_links_is_limited() {
    assert_eq!(links(&format!("$0{}", "y = R.abs(x)\n".repeat(MOST_LINKS + 40))).len(), MOST_LINKS);
}

/// Anchors are derived from headings as on the web page: letters, digits and `_`, in lower case.
#[test]
fn every_operator_has_its_section() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/operators.md");
    let page = std::fs::read_to_string(path).expect("the page");
    let headings = page
        .lines()
        .filter_map(|line| line.trim_start_matches('#').strip_prefix(' ').filter(|_| line.starts_with('#')));
    let anchors: Vec<String> = headings
        .map(|heading| {
            heading.chars().filter(|it| it.is_alphanumeric() || *it == '_').collect::<String>().to_lowercase()
        })
        .collect();
    for schema in rx_ops::all() {
        let once = anchors.iter().filter(|anchor| **anchor == schema.anchor()).count();
        assert_eq!(once, 1, "{}", schema.name);
    }
}
