//! Edits as editors apply them: after characters of several widths, in every position encoding and with both line ends.
//! Each edit yields the expected text, and the server finds no errors in that text.

use crate::client::Client;
use crate::text::{ENCODINGS, apply, range};
use serde_json::{Value, json};

const URI: &str = "file:///net.rx";

/// An editor with one document.
struct Editor {
    client: Client,
    encoding: &'static str,
    line_end: &'static str,
    text: String,
    version: i32,
    diagnostics: Vec<Value>,
}

/// Runs `work` in an editor of every position encoding and line end. Texts are written with `\n` here.
fn everywhere(text: &str, work: impl Fn(&mut Editor)) {
    for encoding in ENCODINGS {
        for line_end in ["\n", "\r\n"] {
            let client = Client::initialized(encoding);
            let mut editor =
                Editor { client, encoding, line_end, text: String::new(), version: 0, diagnostics: Vec::new() };
            editor.client.open(URI, 0, "");
            editor.rewrite(&text.replace('\n', line_end));
            work(&mut editor);
            assert_eq!(editor.client.quit(), Some(0));
        }
    }
}

impl Editor {
    fn rewrite(&mut self, text: &str) {
        (self.text, self.version) = (text.to_owned(), self.version + 1);
        self.client.change(URI, self.version, json!([{"text": text}]));
        self.diagnostics = self.client.diagnostics(URI, Some(self.version));
    }

    /// Returns the range of the first occurrence of `part` in the text.
    fn range(&self, part: &str) -> Value {
        let part = part.replace('\n', self.line_end);
        let at = self.text.find(&part).expect("a part of the text");
        range(&self.text, at..at + part.len(), self.encoding)
    }

    fn whole(&self) -> Value {
        range(&self.text, 0..self.text.len(), self.encoding)
    }

    fn ask(&mut self, method: &str, mut params: Value) -> Value {
        params["textDocument"] = json!({"uri": URI});
        self.client.request(method, params).unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    /// Returns the edits of the code action with this title, requested by its kind.
    fn action(&mut self, range: Value, kind: &str, title: &str) -> Value {
        let context = json!({"diagnostics": [], "only": [kind]});
        let found = self.ask("textDocument/codeAction", json!({"range": range, "context": context}));
        let titled = found.as_array().expect("actions").iter().find(|it| it["title"] == title);
        let action = titled.unwrap_or_else(|| panic!("no {title} in {found}")).clone();
        match action["edit"].is_null() {
            false => self.edits_of(&action["edit"]),
            true => {
                let resolved = self.client.request("codeAction/resolve", action).expect("resolved");
                self.edits_of(&resolved["edit"])
            }
        }
    }

    /// Returns the edits of a workspace edit, which must change only this document in its current version.
    fn edits_of(&self, edit: &Value) -> Value {
        let changes = edit["documentChanges"].as_array().expect("changes");
        assert_eq!(changes.len(), 1);
        assert_eq!(changes[0]["textDocument"], json!({"uri": URI, "version": self.version}));
        changes[0]["edits"].clone()
    }

    /// Returns the text with the edits applied.
    fn with(&self, edits: &Value) -> String {
        apply(&self.text, edits, self.encoding)
    }

    /// Checks that the edits yield the text `expected` and that the server finds no errors in it.
    fn becomes(&mut self, edits: &Value, expected: &str) {
        let (before, after) = (self.text.clone(), self.with(edits));
        let about = format!("{}, {:?}", self.encoding, self.line_end);
        assert_eq!(after, expected.replace('\n', self.line_end), "{about}");
        self.rewrite(&after);
        assert_eq!(self.diagnostics, Vec::<Value>::new(), "{about}");
        self.rewrite(&before);
    }
}

const MISSPELT: &str = "@R.function
def main(x: R.Tensor((2, 3), \"float32\")):
    𝔶 = x; s = (R.str(\"🦀é\"), R.nn.rellu(𝔶))
    return s
";

/// The statement of [`MISSPELT`] split into two lines. The first line cannot hold a comment.
const CONTINUED: &str = "    𝔶 = x; s = (R.str(\"🦀é\"), R.nn.rellu \\\n        (𝔶))\n";

const UNDECLARED: &str = "@R.function
def main(x: R.Tensor((\"𝔫\", 3), \"float32\")):
    𝔶 = R.match_cast(x, R.Tensor((𝔪, 3), \"float32\"))
    return 𝔶
";

const SUM: &str = "@T.prim_func
def total(A: T.Buffer((8, 16), \"float32\"), B: T.Buffer((8,), \"float32\")):
    for i, k in T.grid(8, 16):
        with T.sblock(\"🦀\"):
            vi, 𝔳 = T.axis.remap(\"SR\", [i, k])
            B[vi] = B[vi] + A[vi, 𝔳]
";

#[test]
fn fixes_remove_their_mistakes() {
    let continued = MISSPELT.replace("    𝔶 = x; s = (R.str(\"🦀é\"), R.nn.rellu(𝔶))\n", CONTINUED);
    let ignored = format!("    # rx: ignore[RX0202]\n{CONTINUED}");
    let cases = [
        (MISSPELT, "Change to R.nn.relu", MISSPELT.replace("rellu", "relu")),
        (MISSPELT, "Ignore RX0202 here", MISSPELT.replace("(𝔶))\n", "(𝔶))  # rx: ignore[RX0202]\n")),
        (&continued, "Ignore RX0202 here", continued.replace(CONTINUED, &ignored)),
        (UNDECLARED, "Declare `𝔪 = T.int64()`", UNDECLARED.replace("    𝔶 =", "    𝔪 = T.int64()\n    𝔶 =")),
        (
            SUM,
            "Begin with T.float32(0)",
            SUM.replace(
                "            B[vi] =",
                "            with T.init():\n                B[vi] = T.float32(0)\n            B[vi] =",
            ),
        ),
    ];
    for (text, title, expected) in cases {
        everywhere(text, |editor| {
            let [mistake] = &editor.diagnostics[..] else { panic!("one mistake: {:?}", editor.diagnostics) };
            let (range, fixes) = (mistake["range"].clone(), mistake["data"]["fixes"].clone());
            let edits = editor.action(range, "quickfix", title);
            editor.becomes(&edits, &expected);
            // The fixes in the `data` of the diagnostic are the same.
            let fixes = fixes.as_array().cloned().unwrap_or_default();
            let same = fixes.iter().find(|fix| fix["title"].as_str().is_some_and(|it| it[1..] == title[1..]));
            assert_eq!(same.is_none(), title.starts_with("Ignore"), "{fixes:?}");
            same.into_iter().for_each(|fix| editor.becomes(&fix["edits"], &expected));
        });
    }
}

#[test]
fn all_is_fixed_at_once() {
    let text = "@R.function
def main(x: R.Tensor((4), \"float32\")):
    s = R.str(\"🦀\"); R.nn.relu(x)
    _ = R.print(s, x)
    𝔶 = R.add(x, x)  # é
    return 𝔶
";
    let expected = "@R.function(pure=False)
def main(x: R.Tensor((4,), \"float32\")):
    s = R.str(\"🦀\"); _ = R.nn.relu(x)
    _ = R.print(s, x)
    𝔶 = R.add(x, x)  # é
    return 𝔶
";
    everywhere(text, |editor| {
        assert!(editor.diagnostics.len() > 1);
        let edits = editor.action(editor.whole(), "source.fixAll", "Apply all safe fixes");
        editor.becomes(&edits, expected);
    });
}

const PLAIN: &str = "@R.function
def main(x: R.Tensor((\"𝔫\", 4), \"float32\"), w: R.Tensor((4, 8), \"float32\")):
    𝔫 = T.int64()
    𝔰é = R.abs(x); 𝔶 = R.matmul(𝔰é, w); z = R.add(𝔶, 𝔶)
    return z
";

/// Returns [`PLAIN`] with the inferred types of `main`'s variables written out.
fn annotated() -> String {
    PLAIN
        .replace("𝔶 =", "𝔶: R.Tensor((𝔫, 8), dtype=\"float32\") =")
        .replace("z =", "z: R.Tensor((𝔫, 8), dtype=\"float32\") =")
        .replace("𝔰é =", "𝔰é: R.Tensor((𝔫, 4), dtype=\"float32\") =")
}

#[test]
fn types_are_written_where_they_belong() {
    everywhere(PLAIN, |editor| {
        let ret = annotated().replace(")):", ")) -> R.Tensor((\"𝔫\", 8), dtype=\"float32\"):");
        let all = editor.action(editor.whole(), "source.annotate", "Write all inferred types");
        editor.becomes(&all, &ret);
        let one = editor.action(editor.range("z ="), "refactor.rewrite", "Write the inferred types of `main`");
        editor.becomes(&one, &ret);
        let ask = json!({"command": "rx.annotate", "arguments": [URI]});
        let ask = editor.client.ask("workspace/executeCommand", ask);
        let request = editor.client.message("workspace/applyEdit");
        let written = editor.edits_of(&request["params"]["edit"]);
        editor.becomes(&written, &ret);
        editor.client.respond(&request["id"], json!({"applied": true}));
        assert_eq!(
            editor.client.answer(ask).expect("an answer")["edits"].as_u64(),
            Some(written.as_array().expect("edits").len() as u64)
        );
        // The edits of inlay hints can be applied one by one or all together.
        let hints = editor.ask("textDocument/inlayHint", json!({"range": editor.whole()}));
        let hints = hints.as_array().expect("hints");
        let edits = |hint: &Value| hint["textEdits"].as_array().cloned().unwrap_or_default();
        let of_z = hints.iter().find(|hint| editor.with(&hint["textEdits"]).contains("z: R.Tensor")).expect("a hint");
        let alone = PLAIN.replace("z =", "z: R.Tensor((𝔫, 8), dtype=\"float32\") =");
        editor.becomes(&of_z["textEdits"], &alone);
        editor.becomes(&hints.iter().flat_map(edits).collect(), &ret);
    });
}

/// A function that takes prepared weights, together with the function that prepares them.
const LIFTED: &str = "\
# 𝔶é
@I.ir_module
class Module:
    @R.function
    def main_transform_params(weights: R.Tuple(R.Tensor((8,), \"float32\"))):
        𝔴 = weights[0]
        return (R.add(𝔴, 𝔴),)

    @R.function
    def main(x: R.Tensor((8,), \"float32\"), 𝔴: R.Tensor((8,), \"float32\")):
        R.func_attr({\"num_input\": 1})
        z = R.add(x, 𝔴)
        return z
";

#[test]
fn a_function_stays_callable_with_raw_weights() {
    everywhere(LIFTED, |editor| {
        let title = "Make `main` take raw weights, and prepare them once";
        let edits = editor.action(editor.range("main(x"), "refactor.rewrite", title);
        let head = "def main_prepared_transform_params(weights: R.Tuple(R.Tensor((8,), \"float32\"))):
        R.func_attr({\"rx.once\": True})";
        let renamed = LIFTED
            .replace("def main_transform_params(weights: R.Tuple(R.Tensor((8,), \"float32\"))):", head)
            .replace("def main(", "def main_prepared(");
        let entry = "
    @R.function
    def main(x: R.Tensor((8,), dtype=\"float32\"), 𝔴: R.Tensor((8,), dtype=\"float32\")) -> R.Tensor((8,), dtype=\"float32\"):
        cls = Module
        R.func_attr({\"num_input\": 1, \"rx.raw_entry\": True})
        prepared: R.Tuple(R.Tensor((8,), dtype=\"float32\")) = cls.main_prepared_transform_params((𝔴,))
        𝔴_1: R.Tensor((8,), dtype=\"float32\") = prepared[0]
        result: R.Tensor((8,), dtype=\"float32\") = cls.main_prepared(x, 𝔴_1)
        return result
";
        editor.becomes(&edits, &format!("{renamed}{entry}"));
    });
}

#[test]
fn a_name_changes_wherever_it_is_the_same_name() {
    let cases = [
        ("𝔶 =", "fresh", PLAIN.replace('𝔶', "fresh")),
        ("z\n", "𝔷", PLAIN.replace("z =", "𝔷 =").replace("return z", "return 𝔷")),
        ("𝔫", "rows", PLAIN.replace('𝔫', "rows")),
        ("main", "𝔪ain", PLAIN.replace("main", "𝔪ain")),
    ];
    everywhere(PLAIN, |editor| {
        for (at, new, expected) in &cases {
            let position = editor.range(at)["start"].clone();
            let renamed = editor.ask("textDocument/rename", json!({"position": position, "newName": new}));
            let edits = editor.edits_of(&renamed);
            editor.becomes(&edits, expected);
        }
    });
}

#[test]
fn texts_are_formatted_whole_or_in_part() {
    let text = "@R.function
def main(x: R.Tensor((\"𝔫\", 4), \"float32\"), w: R.Tensor((4, 8), \"float32\")):
    𝔫 = T.int64()
    s = R.str(\"🦀é\");   𝔶 = R.matmul(x,w)  # 🦀
    q=R.str( \"𝔶\" );  z  =  R.add( 𝔶,𝔶 )
    return z
";
    let expected = "@R.function
def main(x: R.Tensor((\"𝔫\", 4), \"float32\"), w: R.Tensor((4, 8), \"float32\")):
    𝔫 = T.int64()
    s = R.str(\"🦀é\")
    𝔶 = R.matmul(x, w)  # 🦀
    q = R.str(\"𝔶\")
    z = R.add(𝔶, 𝔶)
    return z
";
    let options = json!({"tabSize": 4, "insertSpaces": true});
    everywhere(text, |editor| {
        let edits = editor.ask("textDocument/formatting", json!({"options": options}));
        editor.becomes(&edits, expected);
    });
    let lines = PLAIN.replace("; ", "\n    ");
    let sloppy = lines.replace("(𝔰é, w)", "( 𝔰é,w )").replace("(𝔶, 𝔶)", "( 𝔶,𝔶 )");
    everywhere(&sloppy, |editor| {
        let part = editor.range("𝔶 = R.matmul( 𝔰é,w )");
        let edits = editor.ask("textDocument/rangeFormatting", json!({"options": options, "range": part}));
        editor.becomes(&edits, &lines.replace("(𝔶, 𝔶)", "( 𝔶,𝔶 )"));
    });
}

#[test]
fn mixed_line_ends_become_those_of_the_first_line() {
    let options = json!({"tabSize": 4, "insertSpaces": true});
    for encoding in ENCODINGS {
        for (first, other) in [("\r\n", "\n"), ("\n", "\r\n")] {
            let mut client = Client::initialized(encoding);
            let text = PLAIN.replace("; ", "\n    ").replace('\n', other).replacen(other, first, 1);
            client.open(URI, 1, &text);
            let params = json!({"textDocument": {"uri": URI}, "options": options});
            let edits = client.request("textDocument/formatting", params).expect("edits");
            let formatted = apply(&text, &edits, encoding);
            assert_eq!(formatted, PLAIN.replace("; ", "\n    ").replace('\n', first), "{encoding}");
            assert_eq!(client.quit(), Some(0));
        }
    }
}
