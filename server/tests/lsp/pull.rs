//! Clients that pull diagnostics and settings.

use crate::client::{Client, change};
use serde_json::{Value, json};

const URI: &str = "file:///net.rx";
const MISMATCH: &str = "@R.function\ndef main(x: R.Tensor((2, 3), \"float32\"), y: R.Tensor((3, 3), \"float32\")):\n    \
                        z = R.add(x, y)\n    return z\n";

fn client() -> Client {
    let mut client = Client::start(&[]);
    let result = client.initialize(json!({
        "general": {"positionEncodings": ["utf-8"]},
        "textDocument": {"diagnostic": {"dynamicRegistration": true}},
        "workspace": {"configuration": true, "diagnostics": {"refreshSupport": true},
            "didChangeConfiguration": {"dynamicRegistration": true}},
    }));
    assert_eq!(result["capabilities"]["diagnosticProvider"]["identifier"], "rx");
    client
}

fn pull(client: &mut Client, previous: Option<&Value>) -> Value {
    let mut params = json!({"textDocument": {"uri": URI}});
    previous.into_iter().for_each(|id| params["previousResultId"] = id.clone());
    client.request("textDocument/diagnostic", params).expect("a report")
}

/// Responds to the server's request for settings.
fn configure(client: &mut Client, settings: Value) {
    let asked = client.message("workspace/configuration");
    assert_eq!(asked["params"], json!({"items": [{"section": "rx"}]}));
    client.respond(&asked["id"], json!([settings]));
}

#[test]
fn client_that_pulls_diagnostics_gets_none_published() {
    let mut client = client();
    configure(&mut client, Value::Null);
    client.open(URI, 1, MISMATCH);
    let first = pull(&mut client, None);
    assert_eq!(first["kind"], "full");
    assert_eq!(first["items"][0]["code"], "RX0305", "{first}");

    let same = pull(&mut client, Some(&first["resultId"]));
    assert_eq!(same, json!({"kind": "unchanged", "resultId": first["resultId"]}));

    client.change(URI, 2, json!([change((1, 54), (1, 55), "2")]));
    let fixed = pull(&mut client, Some(&first["resultId"]));
    assert_eq!((&fixed["kind"], &fixed["items"]), (&json!("full"), &json!([])), "{fixed}");

    client.close(URI);
    assert_eq!(pull(&mut client, Some(&fixed["resultId"])), json!({"kind": "full", "items": []}));
    assert_eq!(client.quit(), Some(0));
    assert!(client.unread().all(|message| message["method"] != "textDocument/publishDiagnostics"));
}

#[test]
fn settings_are_asked_for_again_when_they_change() {
    let mut client = client();
    let registered = client.message("client/registerCapability");
    assert_eq!(registered["params"]["registrations"][0]["method"], "workspace/didChangeConfiguration");
    configure(&mut client, json!({"check": {"ignore": []}}));
    client.open(URI, 1, MISMATCH);
    let before = pull(&mut client, None);
    assert_eq!(before["items"].as_array().map(Vec::len), Some(1));

    client.notify("workspace/didChangeConfiguration", json!({"settings": null}));
    configure(&mut client, json!({"check": {"ignore": ["RX03"]}}));
    let refresh = client.message("workspace/diagnostic/refresh");
    client.respond(&refresh["id"], Value::Null);
    let after = pull(&mut client, Some(&before["resultId"]));
    assert_eq!((&after["kind"], &after["items"]), (&json!("full"), &json!([])), "{after}");
    assert_eq!(client.quit(), Some(0));
}
