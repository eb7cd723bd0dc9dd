//! Printing of functions as TVMScript, in the syntax of TVM 0.27.
//!
//! The printed text reads back as the same function, up to the names and numbering of variables and buffers. For that,
//! constants carry their dtypes wherever Python would give them another one, and names are made unique in their scopes.
//! Index checks ([`Expr::Checked`]) and source positions are not printed, and a layout permutation only as a comment.

mod expr;
mod names;
mod stmt;

use crate::expr::Expr;
use crate::func::{BufferId, Param, PrimFunc, Scope, VarId};
use crate::stmt::{Block, Stmt};
use names::Names;
use rustc_hash::FxHashMap;
use std::ops::Range;

/// The properties of a printed function other than its parameters and body.
#[derive(Clone, Copy, Debug)]
pub struct Header<'a> {
    /// The function's name. It is printed as a Python identifier: `nn.sum` as `nn_sum`.
    pub name: &'a str,
    /// Whether only the function's module may call it.
    pub private: bool,
    /// The dictionary of its `T.func_attr`, in Python syntax; empty for none.
    pub attributes: &'a str,
}

/// Prints a function: `@T.prim_func(private=True, s_tir=True)`, then `def …`, ending with a line break.
///
/// A buffer parameter whose shape or strides mention symbols is printed as a `T.handle` with `T.match_buffer`.
pub fn script(func: &PrimFunc) -> String {
    script_with(func, &Header { name: &func.name, private: true, attributes: "{\"tirx.noalias\": True}" })
}

/// The printed text of a function, which can be given any name.
#[derive(Clone, Debug)]
pub struct Script {
    text: String,
    /// The byte range of the name in the text.
    name: Range<usize>,
}

impl Script {
    /// Prints the function as [`script`] does.
    pub fn of(func: &PrimFunc) -> Script {
        let text = script(func);
        // The name follows the decorator's line.
        let start = text.find("\ndef ").map_or(0, |line| line + "\ndef ".len());
        let length = text.get(start..).and_then(|rest| rest.find('(')).unwrap_or(0);
        Script { text, name: start..start + length }
    }

    /// Returns the text with this name for the function, printed as a Python identifier.
    pub fn named(&self, name: &str) -> String {
        let (before, after) = (&self.text[..self.name.start], &self.text[self.name.end..]);
        format!("{before}{}{after}", names::identifier(name, "main"))
    }
}

/// Prints as [`script`] does, with the given header.
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

/// The state of printing a function.
struct Printer<'f> {
    func: &'f PrimFunc,
    out: String,
    indent: usize,
    names: Names,
    /// The names of the variables and buffers that are defined so far.
    vars: FxHashMap<VarId, String>,
    buffers: FxHashMap<BufferId, String>,
    /// The start and extent of each loop that is printed so far.
    ranges: FxHashMap<VarId, (&'f Expr, &'f Expr)>,
}

impl<'f> Printer<'f> {
    /// Prints a line at the current indentation.
    fn line(&mut self, text: &str) {
        self.out.push_str(&"    ".repeat(self.indent));
        self.out.push_str(text);
        self.out.push('\n');
    }

    /// Prints the lines of a body one level deeper, in a new scope of names.
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
        // The handles, with the buffers that they are matched to.
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
            // The root block, which allocates the function's buffers, is printed as a comment, as in TVM. If its body
            // is another such block, both are printed like other blocks.
            Stmt::Block(root) if is_root(root) && !matches!(&root.body, Stmt::Block(inner) if is_root(inner)) => {
                self.line("# with T.sblock(\"root\"):");
                self.allocations(root);
                self.body(&root.body);
            }
            body => self.body(body),
        }
        self.indent -= 1;
    }

    /// Prints a comment if a buffer's layout is permuted.
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

    /// Returns the arguments of a declaration: `(n, T.int64(4)), "float32", scope="local"`. Extents and strides that
    /// mention one of `later` are in quotes, since those variables are parameters further right.
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

/// Whether the block is a root block with buffers.
fn is_root(block: &Block) -> bool {
    block.is_root() && !block.allocations.is_empty()
}

/// Formats a Python tuple: `()`, `(a,)`, `(a, b)`.
fn tuple(items: Vec<String>) -> String {
    match &items[..] {
        [only] => format!("({only},)"),
        items => format!("({})", items.join(", ")),
    }
}

/// Formats a Python string literal.
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
