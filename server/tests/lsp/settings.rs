//! `rx.toml` in sessions: the nearest file applies, it is read again when it changes, and while it has errors, its last
//! valid settings apply.

use crate::client::Client;
use serde_json::{Value, json};
use std::fs;
use tempfile::TempDir;

/// A text with an operator that rx does not know and with syntax that TVM 0.27 rejects.
const TEXT: &str = "@R.function
def main(x: R.Tensor((\"n\", 6), \"float32\")):
    y = R.my.halve(x)
    z = R.add(y, R.const(\"-inf\", \"float32\"))
    return z
";

const OPERATOR: &str = "[[ops]]\nname = 'my.halve'\nargs = [{ name = 'x', type = 'R.Tensor((\"n\", \"m\"), dtype=\"d\")' }]\n\
                        result = 'R.Tensor((\"n\", \"m // 2\"), dtype=\"d\")'\n";

struct Project {
    folder: TempDir,
    client: Client,
}

impl Project {
    fn new(settings: &str) -> Project {
        let folder = TempDir::new().expect("a temporary folder");
        fs::create_dir(folder.path().join("nets")).expect("a folder");
        let project = Project { folder, client: Client::initialized("utf-8") };
        project.write(settings);
        project
    }

    fn uri(&self, path: &str) -> String {
        let path = self.folder.path().join(path).to_string_lossy().replace('\\', "/");
        format!("file:///{}", path.trim_start_matches('/'))
    }

    fn write(&self, settings: &str) {
        fs::write(self.folder.path().join("rx.toml"), settings).expect("a file");
    }

    /// Writes new settings and sends the notification of the client's file watcher.
    fn rewrite(&mut self, settings: &str) {
        self.write(settings);
        let changes = json!({"changes": [{"uri": self.uri("rx.toml"), "type": 2}]});
        self.client.notify("workspace/didChangeWatchedFiles", changes);
    }

    fn open(&mut self, path: &str, version: i32) -> Vec<String> {
        let uri = self.uri(path);
        self.client.open(&uri, version, TEXT);
        self.codes(path, version)
    }

    /// Waits for the diagnostics of a version and returns their codes and severities.
    fn codes(&mut self, path: &str, version: i32) -> Vec<String> {
        let uri = self.uri(path);
        let shown = self.client.diagnostics(&uri, Some(version));
        let code = |it: &Value| format!("{} {}", it["code"].as_str().unwrap_or_default(), it["severity"]);
        shown.iter().map(code).collect()
    }

    fn reported(&mut self) -> String {
        let params = self.client.message("window/showMessage")["params"].clone();
        assert_eq!(params["type"], 1);
        params["message"].as_str().expect("a message").replace(&*self.folder.path().to_string_lossy(), "")
    }
}

#[test]
fn severities_operators_and_the_tvm_are_those_of_the_nearest_file() {
    let mut project = Project::new("[severity]\nRX0053 = 'hint'\n");
    let [unknown] = &project.open("nets/a.rx", 1)[..] else { panic!("one diagnostic") };
    let (code, severity) = unknown.split_once(' ').expect("a code");
    assert_ne!(severity, "1");
    // A severity is raised, a code is turned off, an operator is declared. Each change applies without an edit.
    project.rewrite(&format!("[severity]\n{code} = 'error'\n"));
    assert_eq!(project.codes("nets/a.rx", 1), [format!("{code} 1")]);
    project.rewrite(&format!("[[overrides]]\nfiles = ['nets/*.rx']\nseverity = {{ {code} = 'off' }}\n"));
    assert_eq!(project.codes("nets/a.rx", 1), [""; 0]);
    assert_eq!(project.open("b.rx", 1), std::slice::from_ref(unknown));
    project.rewrite(OPERATOR);
    assert_eq!((project.codes("nets/a.rx", 1), project.codes("b.rx", 1)), (vec![], vec![]));
    let position = json!({"textDocument": {"uri": project.uri("b.rx")}, "position": {"line": 3, "character": 4}});
    let hover = project.client.request("textDocument/hover", position).expect("a hover");
    assert!(hover["contents"]["value"].as_str().is_some_and(|text| text.contains("(n, 3)")), "{hover}");
    project.rewrite(&format!("{OPERATOR}[tvm]\nversion = '0.27'\n"));
    let limits = project.codes("nets/a.rx", 1);
    assert!(!limits.is_empty() && limits.iter().all(|code| code.starts_with("RX10")), "{limits:?}");
    // A new settings file that is nearer to one of the two documents.
    fs::write(project.folder.path().join("nets/rx.toml"), "").expect("a file");
    let changes = json!({"changes": [{"uri": project.uri("nets/rx.toml"), "type": 1}]});
    project.client.notify("workspace/didChangeWatchedFiles", changes);
    assert_eq!(project.codes("nets/a.rx", 1), std::slice::from_ref(unknown));
    assert_eq!(project.client.quit(), Some(0));
}

#[test]
fn last_valid_settings_hold_while_the_file_is_invalid() {
    let mut project = Project::new(OPERATOR);
    assert_eq!(project.open("a.rx", 1), [""; 0]);
    project.rewrite(&format!("{OPERATOR}[severty]\n[tvm]\nversion = 27\n"));
    assert_eq!(
        project.reported(),
        "/rx.toml:5: rx.toml has no key `severty` (and 1 more); until it is fixed, the previous settings apply"
    );
    assert_eq!(project.codes("a.rx", 1), [""; 0]);
    // The error is shown once, even if another document is opened.
    assert_eq!(project.open("b.rx", 1), [""; 0]);
    project.rewrite(&OPERATOR.replace("// 2", "//"));
    let reported = project.reported();
    assert!(reported.starts_with("/rx.toml:4: "), "of the operator, not of the message: {reported}");
    project.rewrite("");
    assert_eq!(project.codes("a.rx", 1).len(), 0, "of the wrong file");
    assert_eq!(project.codes("a.rx", 1).len(), 1, "of the empty one");
    assert_eq!(project.client.quit(), Some(0));
}

#[test]
fn settings_file_that_was_never_valid_is_ignored() {
    let mut project = Project::new("severity = 1\n");
    assert_eq!(project.open("a.rx", 1).len(), 1);
    let reported = project.reported();
    assert!(reported.ends_with("; until it is fixed, files are checked without rx.toml"), "{reported}");
    // A document that is not a file on disk has no settings.
    project.client.open("untitled:net", 1, TEXT);
    assert_eq!(project.client.diagnostics("untitled:net", Some(1)).len(), 1);
    assert_eq!(project.client.quit(), Some(0));
}

#[test]
fn capable_clients_are_asked_to_watch_files() {
    let mut client = Client::start(&[]);
    client.initialize(json!({"workspace": {"didChangeWatchedFiles": {"dynamicRegistration": true}}}));
    let asked = client.message("client/registerCapability");
    let registration = &asked["params"]["registrations"][0];
    assert_eq!(registration["method"], "workspace/didChangeWatchedFiles");
    assert_eq!(registration["registerOptions"]["watchers"][0]["globPattern"], "**/rx.toml");
    client.respond(&asked["id"], Value::Null);
    assert_eq!(client.quit(), Some(0));
}

#[test]
fn codes_may_be_chosen_in_the_editor() {
    let mut client = Client::start(&[]);
    let options = |ignore: &str| json!({"check": {"ignore": [ignore]}});
    client.initialize_with(json!({}), options("all"));
    client.open("untitled:net", 1, TEXT);
    assert_eq!(client.diagnostics("untitled:net", Some(1)), Vec::<Value>::new());
    client.notify("workspace/didChangeConfiguration", json!({"settings": options("nothing")}));
    let reported = client.message("window/showMessage")["params"]["message"].clone();
    assert_eq!(reported, "setting rx.check: no diagnostic is called `nothing`");
    assert_eq!(client.diagnostics("untitled:net", Some(1)).len(), 1);
    assert_eq!(client.quit(), Some(0));
}
