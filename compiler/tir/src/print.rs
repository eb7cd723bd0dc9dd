//! Functions as TVMScript, in TVM 0.27's spelling.
//!
//! What is printed reads back as the same function up to ids: constants carry their dtypes wherever Python would give them
//! another, and names are made unique in their scopes. Checks of indices ([`Expr::Checked`]) are not printed; where
//! statements came from is not either.

mod expr;
mod names;
mod stmt;

use crate::expr::Expr;
use crate::func::{BufferId, Param, PrimFunc, Scope, VarId};
use crate::stmt::{Block, Stmt};
use names::Names;
use rustc_hash::FxHashMap;
use std::ops::Range;

/// What a function says of itself beside its loops.
#[derive(Clone, Copy, Debug)]
pub struct Header<'a> {
    /// Its name.
    pub name: &'a str,
    /// Whether only its module may call it.
    pub private: bool,
    /// The dictionary of its `T.func_attr`, as Python writes it; none where it is empty.
    pub attributes: &'a str,
}

/// The function's text: `@T.prim_func(private=True, s_tir=True)`, `def …`, ending in a line break.
///
/// Buffers whose shapes mention variables that no parameter passes are handles, opened in the body.
pub fn script(func: &PrimFunc) -> String {
    script_with(func, &Header { name: &func.name, private: true, attributes: "{\"tirx.noalias\": True}" })
}

/// A function's text, to be given under any name.
#[derive(Clone, Debug)]
pub struct Script {
    text: String,
    /// The bytes of its name.
    name: Range<usize>,
}

impl Script {
    /// As [`script`] prints it.
    pub fn of(func: &PrimFunc) -> Script {
        let text = script(func);
        // The name follows the decorator's line.
        let start = text.find("\ndef ").map_or(0, |line| line + "\ndef ".len());
        let length = text.get(start..).and_then(|rest| rest.find('(')).unwrap_or(0);
        Script { text, name: start..start + length }
    }

    /// The text of the function under this name.
    pub fn named(&self, name: &str) -> String {
        let (before, after) = (&self.text[..self.name.start], &self.text[self.name.end..]);
        format!("{before}{}{after}", names::identifier(name, "main"))
    }
}

/// As [`script`], with what `header` says.
pub fn script_with(func: &PrimFunc, header: &Header<'_>) -> String {
    let mut printer = Printer {
        func,
        out: String::new(),
        indent: 0,
        names: Names::default(),
        vars: FxHashMap::default(),
        buffers: FxHashMap::default(),
        ranges: FxHashMap::default(),
    };
    printer.function(header);
    printer.out
}

/// A function on its way to text.
struct Printer<'f> {
    func: &'f PrimFunc,
    out: String,
    indent: usize,
    names: Names,
    /// The names variables and buffers have in the scopes that are open.
    vars: FxHashMap<VarId, String>,
    buffers: FxHashMap<BufferId, String>,
    /// First values and extents of the loops around.
    ranges: FxHashMap<VarId, (&'f Expr, &'f Expr)>,
}

impl<'f> Printer<'f> {
    /// Adds a line at the current indentation.
    fn line(&mut self, text: &str) {
        self.out.push_str(&"    ".repeat(self.indent));
        self.out.push_str(text);
        self.out.push('\n');
    }

    /// Prints a block's lines one level deeper, in a scope of names of its own.
    fn indented(&mut self, print: impl FnOnce(&mut Self)) {
        self.indent += 1;
        let mark = self.names.mark();
        print(self);
        self.names.release(mark);
        self.indent -= 1;
    }

    fn define_var(&mut self, var: VarId) -> String {
        let wanted = self.func.vars.get(var.0 as usize).map_or("v", |var| var.name.as_str());
        let name = self.names.define(wanted, "v");
        self.vars.insert(var, name.clone());
        name
    }

    fn define_buffer(&mut self, buffer: BufferId) -> String {
        let wanted = self.func.buffers.get(buffer.0 as usize).map_or("buffer", |buffer| buffer.name.as_str());
        let name = self.names.define(wanted, "buffer");
        self.buffers.insert(buffer, name.clone());
        name
    }

    fn function(&mut self, header: &Header<'_>) {
        let private = if header.private { "private=True, " } else { "" };
        self.line(&format!("@T.prim_func({private}s_tir=True)"));
        let func = self.func;
        let own = names::identifier(header.name, "main");
        for param in &func.params {
            match param {
                Param::Buffer(buffer) => drop(self.define_buffer(*buffer)),
                Param::Scalar(var) => drop(self.define_var(*var)),
                Param::Handle(_) => {}
            }
        }
        for symbol in &func.symbols {
            self.define_var(*symbol);
        }
        let mut params = Vec::with_capacity(func.params.len());
        // Handles, and the buffers that they are opened as.
        let mut handles = Vec::new();
        for (at, param) in func.params.iter().enumerate() {
            params.push(match param {
                Param::Scalar(var) => format!("{}: T.{}", self.var(*var), func.var(*var).dtype),
                Param::Handle(handle) => format!("{}: T.handle", self.names.define(handle.as_str(), "handle")),
                Param::Buffer(buffer) if self.mentions_symbols(*buffer) => {
                    let handle = self.names.define(&format!("var_{}", self.buffer(*buffer)), "handle");
                    let param = format!("{handle}: T.handle");
                    handles.push((*buffer, handle));
                    param
                }
                Param::Buffer(buffer) => {
                    let later: Vec<VarId> = func.params[at..].iter().filter_map(scalar).collect();
                    format!("{}: T.Buffer({})", self.buffer(*buffer), self.declaration(*buffer, &later))
                }
            });
        }
        self.line(&format!("def {own}({}):", params.join(", ")));
        self.indent += 1;
        for symbol in &func.symbols {
            let line = format!("{} = T.{}()", self.var(*symbol), func.var(*symbol).dtype);
            self.line(&line);
        }
        for (buffer, handle) in handles {
            let line = format!("{} = T.match_buffer({handle}, {})", self.buffer(buffer), self.declaration(buffer, &[]));
            self.line(&line);
        }
        if !header.attributes.is_empty() {
            self.line(&format!("T.func_attr({})", header.attributes));
        }
        for buffer in func.buffer_params() {
            self.say_order(buffer);
        }
        match &func.body {
            // The block that holds the function's buffers is not written, as in TVM.
            Stmt::Block(root) if is_root(root) && !matches!(&root.body, Stmt::Block(inner) if is_root(inner)) => {
                self.line("# with T.sblock(\"root\"):");
                self.allocations(root);
                self.body(&root.body);
            }
            body => self.body(body),
        }
        self.indent -= 1;
    }

    /// A comment where a buffer's axes are not in the tensor's order.
    fn say_order(&mut self, buffer: BufferId) {
        if let Some(note) = self.func.buffer(buffer).order_note() {
            self.line(&format!("# {} {note}", self.buffer(buffer)));
        }
    }

    fn mentions_symbols(&self, buffer: BufferId) -> bool {
        let buffer = self.func.buffer(buffer);
        let mentions = |expr: &Expr| self.func.symbols.iter().any(|symbol| expr.uses(*symbol));
        buffer.shape.iter().any(mentions) || buffer.strides.iter().flatten().any(mentions)
    }

    /// `(n, T.int64(4)), "float32", scope="local"`; dims that mention one of `later` are in quotes.
    fn declaration(&self, id: BufferId, later: &[VarId]) -> String {
        let buffer = self.func.buffer(id);
        let dim = |expr: &Expr| {
            let text = self.expr(expr);
            if later.iter().any(|var| expr.uses(*var)) { quoted(&text) } else { text }
        };
        let mut text = format!("{}, \"{}\"", tuple(buffer.shape.iter().map(dim).collect()), buffer.dtype);
        if let Some(strides) = &buffer.strides {
            text += &format!(", strides={}", tuple(strides.iter().map(dim).collect()));
        }
        let scope = match buffer.scope {
            Scope::Global => "",
            Scope::Shared => "shared",
            Scope::Local => "local",
            Scope::Fragment(of) => of.scope(),
        };
        if !scope.is_empty() {
            text += &format!(", scope=\"{scope}\"");
        }
        text
    }

    fn allocations(&mut self, block: &Block) {
        for buffer in &block.allocations {
            let declared = self.declaration(*buffer, &[]);
            let line = format!("{} = T.sblock_alloc_buffer({declared})", self.define_buffer(*buffer));
            self.line(&line);
            self.say_order(*buffer);
        }
    }

    fn var(&self, var: VarId) -> &str {
        self.vars.get(&var).map_or("undefined", String::as_str)
    }

    fn buffer(&self, buffer: BufferId) -> &str {
        self.buffers.get(&buffer).map_or("undefined", String::as_str)
    }
}

fn scalar(param: &Param) -> Option<VarId> {
    match param {
        Param::Scalar(var) => Some(*var),
        Param::Buffer(_) | Param::Handle(_) => None,
    }
}

/// Whether it is the block that a function's buffers live in.
fn is_root(block: &Block) -> bool {
    block.is_root() && !block.allocations.is_empty()
}

/// `()`, `(a,)`, `(a, b)`.
fn tuple(items: Vec<String>) -> String {
    match &items[..] {
        [only] => format!("({only},)"),
        items => format!("({})", items.join(", ")),
    }
}

/// A string literal.
fn quoted(text: &str) -> String {
    let mut literal = String::from("\"");
    for character in text.chars() {
        match character {
            '"' => literal.push_str("\\\""),
            '\\' => literal.push_str("\\\\"),
            '\n' => literal.push_str("\\n"),
            '\r' => literal.push_str("\\r"),
            '\t' => literal.push_str("\\t"),
            control if control.is_control() => literal.push_str(&format!("\\u{:04x}", u32::from(control))),
            other => literal.push(other),
        }
    }
    literal.push('"');
    literal
}

#[cfg(test)]
mod tests;
