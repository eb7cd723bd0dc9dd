//! Test files with a cursor.

use rx_base::fix::{Edit, apply};
use rx_db::{FileId, FileKind, FileView, Workspace};

/// A workspace of one file, and the position of `$0` in its text.
pub struct Fixture {
    /// The workspace.
    pub workspace: Workspace,
    /// Its file.
    pub file: FileId,
    /// The position of the cursor, in bytes.
    pub cursor: usize,
}

impl Fixture {
    /// Creates a file with `text`, in which `$0` marks the cursor.
    pub fn new(text: &str) -> Fixture {
        Fixture::of_kind(text, FileKind::Rx)
    }

    /// As [`Fixture::new`], for any kind of file.
    pub fn of_kind(text: &str, kind: FileKind) -> Fixture {
        let cursor = text.find("$0").expect("the text has a cursor");
        let text = text.replacen("$0", "", 1);
        let mut workspace = Workspace::new();
        let file = workspace.add(&text, kind);
        Fixture { workspace, file, cursor }
    }

    /// Creates a file with a Relax function whose body is `lines`, in a module with a prim_func `relu`.
    pub fn body(lines: &str) -> Fixture {
        Fixture::new(&in_module(lines))
    }

    /// Creates a file with a text without a cursor.
    pub fn of(text: &str, kind: FileKind) -> Fixture {
        let mut workspace = Workspace::new();
        let file = workspace.add(text, kind);
        Fixture { workspace, file, cursor: 0 }
    }

    /// Returns the file's text.
    pub fn text(&self) -> String {
        self.workspace.document(self.file).text()
    }

    /// Returns the view of the file.
    pub fn view(&self) -> FileView<'_> {
        self.workspace.view(self.file).expect("the file is there")
    }

    /// Returns the text with edits applied.
    pub fn applied(&self, edits: &[Edit]) -> String {
        apply(&self.workspace.document(self.file).text(), edits)
    }
}

/// Returns the text of the module of [`Fixture::body`].
pub fn in_module(lines: &str) -> String {
    let body: String = lines.lines().map(|line| format!("        {line}\n")).collect();
    format!("{MODULE}{body}")
}

const MODULE: &str = r#"n = TypeVar("n")
@I.ir_module
class Module:
    @T.prim_func
    def relu(x: T.Buffer((4, 8), "float32"), y: T.Buffer((4, 8), "float32")):
        for i, j in T.grid(4, 8):
            with T.sblock("relu"):
                vi, vj = T.axis.remap("SS", [i, j])
                y[vi, vj] = T.max(x[vi, vj], T.float32(0))

    @R.function
    def main(x: R.Tensor((1, 3, 224, 224), "float32"), w: R.Tensor((64, 3, 7, 7), "float32"), s: R.Tensor((n, 8), "float16")):
        cls = Module
"#;

/// Returns `text` with these edits applied, which must not overlap.
pub fn edited(text: &str, edits: &[(rx_base::Span, String)]) -> String {
    let mut edits = edits.to_vec();
    edits.sort_by_key(|(span, _)| span.start);
    let mut edited = text.to_owned();
    for (span, new) in edits.into_iter().rev() {
        edited.replace_range(span.range(), &new);
    }
    edited
}

/// A xorshift generator, so that every run has the same texts.
pub struct Random(pub u64);

impl Random {
    /// Returns a number below `bound`; 0 if that is 0.
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound.max(1) as u64) as usize
    }
}
