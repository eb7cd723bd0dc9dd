//! `rx.graph`, and document links to web pages.

use crate::client::Client;
use serde_json::{Value, json};

const URI: &str = "file:///net.rx";

const NET: &str = "@R.function
def main(x: R.Tensor((2, 4), \"float32\")):
    with R.dataflow():
        𝔶 = R.nn.relu(x)  # rx: ignore[RX0651]
        R.output(𝔶)
    z = R.nn.relo(𝔶)
    return z
";

fn graph(client: &mut Client, line: u32) -> Result<Value, Value> {
    let arguments = json!([URI, {"line": line, "character": 0}]);
    client.request("workspace/executeCommand", json!({"command": "rx.graph", "arguments": arguments}))
}

fn range(line: u32, start: u32, end: u32) -> Value {
    json!({"start": {"line": line, "character": start}, "end": {"line": line, "character": end}})
}

#[test]
fn graph_of_a_function_is_answered() {
    for (encoding, width) in [("utf-8", 4), ("utf-16", 2), ("utf-32", 1)] {
        let mut client = Client::initialized(encoding);
        client.open(URI, 1, NET);
        let found = graph(&mut client, 3).expect("an answer");
        assert_eq!((&found["function"], &found["whole"], &found["hidden"]), (&json!("main"), &json!(true), &json!(0)));
        assert_eq!(found["range"], range(1, 4, 8));
        let relu = json!({
            "id": 1, "kind": "operator", "label": "nn.relu", "name": "𝔶", "range": range(3, 8, 8 + width),
            "structInfo": "R.Tensor((2, 4), dtype=\"float32\")", "errors": 0, "warnings": 0, "notes": [],
            "cost": "8 operations, 64 B moved", "block": "dataflow",
        });
        assert_eq!(found["nodes"][1], relu);
        let wrong = &found["nodes"][2];
        assert_eq!((&wrong["name"], &wrong["errors"], &wrong["structInfo"]), (&json!("z"), &json!(1), &Value::Null));
        assert!(wrong["notes"][0].as_str().is_some_and(|note| note.contains("relo")), "{wrong}");
        let edges = json!([
            {"from": 0, "to": 1, "label": "(2, 4) float32"},
            {"from": 1, "to": 2, "label": null},
            {"from": 2, "to": 3, "label": null},
        ]);
        assert_eq!(found["edges"], edges);
        client.change(URI, 2, json!([{"text": "x = 1\n"}]));
        assert_eq!(graph(&mut client, 0), Ok(Value::Null));
        assert!(
            client.request("workspace/executeCommand", json!({"command": "rx.graph", "arguments": [URI]})).is_err()
        );
        assert_eq!(client.quit(), Some(0));
    }
}

#[test]
fn operators_and_codes_are_links() {
    let mut client = Client::initialized("utf-16");
    client.open(URI, 1, NET);
    let found = client.request("textDocument/documentLink", json!({"textDocument": {"uri": URI}})).expect("links");
    let links = found.as_array().expect("a list");
    let places: Vec<&Value> = links.iter().map(|link| &link["range"]).collect();
    assert_eq!(places, [&range(3, 13, 22), &range(3, 40, 46)]);
    assert!(links[0]["target"].as_str().is_some_and(|target| target.ends_with("docs/operators.md#rnnrelu")));
    assert!(links[1]["target"].as_str().is_some_and(|target| target.ends_with("docs/codes/rx0651.md")));
    assert_eq!(client.quit(), Some(0));
}
