//! Reads declarations, allocations and views of buffers.

use super::value::{Source, Value, View};
use super::{Outcome, Reader};
use rx_base::diagnostic::Severity;
use rx_base::edit_distance::nearest;
use rx_base::{Code, DType, Diagnostic, Name, counted};
use rx_context::mistakes::suggest_in_place;
use rx_syntax::ast::{Argument, Expr as Tree, ExprKind};
use rx_syntax::{At, Cursor};
use rx_tir::{Buffer, BufferId, Expr, Fragment, Scope};
use std::rc::Rc;

/// The arguments of `T.Buffer(…)` and similar functions.
pub(super) struct Declaration {
    shape: Vec<Expr>,
    dtype: DType,
    strides: Option<Vec<Expr>>,
    /// The number of elements before the first; `None` for 0 or if any number matches.
    offset: Option<Expr>,
    scope: Scope,
    /// The argument `data`, usually the memory of another buffer or a handle.
    data: Option<Value>,
}

impl Declaration {
    /// Converts it to a buffer of the IR.
    pub(super) fn into_buffer(self, name: Name) -> Buffer {
        Buffer { name, dtype: self.dtype, shape: self.shape, strides: self.strides, order: None, scope: self.scope }
    }
}

impl Reader<'_> {
    /// Reads the arguments `(shape, dtype, data, strides, elem_offset, byte_offset, scope, …)`. The dtype defaults to
    /// `float32`, the layout to dense.
    pub(super) fn declaration(&mut self, at: At<'_>, arguments: &[&Argument]) -> Outcome<Declaration> {
        const ORDER: [&str; 6] = ["shape", "dtype", "data", "strides", "elem_offset", "byte_offset"];
        let mut declared = Declaration {
            shape: Vec::new(),
            dtype: DType::FLOAT32,
            strides: None,
            offset: None,
            scope: Scope::Global,
            data: None,
        };
        let mut has_shape = false;
        for (position, argument) in arguments.iter().enumerate() {
            let value = &argument.value;
            let keyword = match argument.keyword {
                Some(keyword) => at.cursor.text(keyword),
                // The scope is the third argument of `T.alloc_buffer(shape, dtype, scope)`. `T.match_buffer` (after its
                // source) and `T.sblock_alloc_buffer` have no `byte_offset`, so it is the sixth there.
                None if matches!(position, 2 | 5 | 6) && matches!(value.kind, ExprKind::String) => "scope",
                None => ORDER.get(position).copied().unwrap_or_default(),
            };
            if matches!(value.kind, ExprKind::None) {
                continue;
            }
            match keyword {
                "shape" | "extents" => {
                    declared.shape = self.dims(at.cursor, value)?;
                    has_shape = true;
                }
                "dtype" => declared.dtype = self.dtype(at.cursor, value)?,
                "data" => declared.data = Some(self.value(at.cursor, value)?),
                "strides" => {
                    let strides = self.dims(at.cursor, value)?;
                    declared.strides = (!strides.is_empty()).then_some(strides);
                }
                "elem_offset" => declared.offset = self.offset(at.cursor, value)?,
                "byte_offset" if self.offset(at.cursor, value)?.is_some() => {
                    return self.unsupported(at.cursor.at(value.tokens), "a buffer with `byte_offset`");
                }
                "scope" | "storage_scope" => declared.scope = self.scope(at.cursor, value)?,
                // Other arguments, such as `align`, are ignored.
                _ => {}
            }
        }
        if !has_shape {
            return self.mistake(at, Code::MissingArgument, "a buffer requires a shape");
        }
        let dims = declared.shape.len();
        if let Some(strides) = declared.strides.as_ref().filter(|strides| strides.len() != dims) {
            let count = strides.len();
            declared.strides = None;
            self.other_strides(at, count, dims)?;
        }
        Ok(declared)
    }

    /// Handles a number of strides that differs from the number of dims. TVM accepts the declaration but fails to
    /// build a function that accesses the buffer, so a trace gets a warning and a lowering stops.
    fn other_strides(&mut self, at: At<'_>, strides: usize, dims: usize) -> Outcome<()> {
        let (strides, dims) = (counted(strides, "stride"), counted(dims, "dim"));
        if !self.is_tracing() {
            return self.unsupported(at, &format!("a buffer with {strides} for {dims}"));
        }
        let message = format!("the buffer has {strides} for {dims}");
        let mut found = Diagnostic::new(Code::ShapeMismatch, self.place(at), message)
            .with_note("TVM fails to build a function that accesses such a buffer")
            .with_help("write a stride for each dim, or no strides");
        found.severity = Severity::Warning;
        self.keep_certain(found);
        Ok(())
    }

    /// Reads a shape: a list of integers, or a single integer. A string is an integer expression in quotes.
    pub(super) fn dims(&mut self, cursor: Cursor<'_>, tree: &Tree) -> Outcome<Vec<Expr>> {
        let items: Vec<&Tree> = match &tree.kind {
            ExprKind::Tuple(items) | ExprKind::List(items) => items.iter().collect(),
            _ => vec![tree],
        };
        let mut dims = Vec::with_capacity(items.len());
        for item in items {
            if let Some(text) = cursor.string_value(item) {
                dims.push(self.quoted_dim(cursor.at(item.tokens), &text)?);
                continue;
            }
            for value in self.value(cursor, item)?.into_items() {
                let scalar = self.scalar(cursor.at(item.tokens), value)?;
                dims.push(self.integer(cursor.at(item.tokens), scalar)?);
            }
        }
        Ok(dims)
    }

    /// Reads a dtype: a string, `T.float32` or `A.dtype`.
    pub(super) fn dtype(&mut self, cursor: Cursor<'_>, tree: &Tree) -> Outcome<DType> {
        let value = self.value(cursor, tree)?;
        let dtype = match &value {
            Value::DType(dtype) => Some(*dtype),
            Value::Text(text) => DType::parse(text),
            _ => None,
        };
        match dtype {
            Some(dtype) if dtype.lanes != 1 => self.unsupported(cursor.at(tree.tokens), &format!("vectors of {dtype}")),
            Some(dtype) => Ok(dtype),
            None => {
                let near = match &value {
                    Value::Text(text) => nearest(text, DType::USUAL).map(|near| format!("\"{near}\"")),
                    _ => None,
                };
                let place = self.place(cursor.at(tree.tokens));
                let mistake = Diagnostic::new(Code::UnknownDtype, place, "this is not a dtype");
                Err(Box::new(suggest_in_place(mistake, near.as_deref())))
            }
        }
    }

    fn scope(&mut self, cursor: Cursor<'_>, tree: &Tree) -> Outcome<Scope> {
        let Some(text) = cursor.string_value(tree) else {
            return self.unsupported(cursor.at(tree.tokens), "this storage scope");
        };
        match &*text {
            "" | "global" | "global.vtcm" => Ok(Scope::Global),
            "shared" | "shared.dyn" => Ok(Scope::Shared),
            "local" => Ok(Scope::Local),
            other if other.starts_with("wmma.") => {
                match Fragment::ALL.into_iter().find(|fragment| fragment.scope() == other) {
                    Some(fragment) => Ok(Scope::Fragment(fragment)),
                    None => self.unsupported(cursor.at(tree.tokens), &format!("the storage scope \"{other}\"")),
                }
            }
            other => self.unsupported(cursor.at(tree.tokens), &format!("the storage scope \"{other}\"")),
        }
    }

    /// Returns the offset of a buffer in its memory, in elements; `None` for zero. A string, or a variable that nothing
    /// binds, matches any offset, which also is `None`.
    fn offset(&mut self, cursor: Cursor<'_>, tree: &Tree) -> Outcome<Option<Expr>> {
        if cursor.string_value(tree).is_some() {
            return Ok(None);
        }
        let offset = self.integer_of(cursor, tree)?;
        Ok(match &offset {
            Expr::Var { var, .. } if self.symbols.contains(var) => None,
            offset if offset.as_int() == Some(0) => None,
            _ => Some(offset),
        })
    }

    /// Checks that the declaration of a parameter does not set an offset other than 0.
    pub(super) fn no_offset(&self, at: At<'_>, declared: &Declaration) -> Outcome<()> {
        match declared.offset {
            None => Ok(()),
            Some(_) => self.unsupported(at, "a parameter with `elem_offset`"),
        }
    }

    /// Reads `T.match_buffer(a, …)` of a handle, a buffer or a region.
    pub(super) fn match_buffer(&mut self, at: At<'_>, name: Name, arguments: &[Argument]) -> Outcome<Value> {
        let Some((source, rest)) = arguments.split_first() else {
            return self.mistake(at, Code::MissingArgument, "`T.match_buffer` requires a handle, a buffer or a region");
        };
        let rest: Vec<&Argument> = rest.iter().collect();
        if let ExprKind::Subscript { value, index } = &source.value.kind
            && let Value::Buffer(of) = self.value(at.cursor, value)?
        {
            return self.match_region(at, of, index, &rest);
        }
        match self.value(at.cursor, &source.value)? {
            Value::Handle(handle) => {
                let declared = self.declaration(at, &rest)?;
                self.open_handle(at, name, handle, declared)
            }
            Value::Buffer(of) => {
                let declared = self.declaration(at, &rest)?;
                self.flat(at, of, declared)
            }
            _ => self.unsupported(at.cursor.at(source.value.tokens), "`T.match_buffer` of this"),
        }
    }

    fn open_handle(&mut self, at: At<'_>, name: Name, handle: Name, declared: Declaration) -> Outcome<Value> {
        self.no_offset(at, &declared)?;
        match self.handles.get(&handle).copied().flatten() {
            // The handle was opened before, so this is a view of the same memory.
            Some(buffer) => {
                let of = Rc::new(View::of_buffer(&self.func, buffer));
                self.flat(at, of, declared)
            }
            None => {
                let buffer = self.func.add_buffer(declared.into_buffer(name));
                self.note_declared(at, buffer);
                self.handles.insert(handle, Some(buffer));
                Ok(Value::Buffer(Rc::new(View::of_buffer(&self.func, buffer))))
            }
        }
    }

    /// Returns a view of a region, whose first element is the first one of the region. If the view has fewer dims than
    /// the region, they correspond to the last dims of the region, and the index of each other dim is fixed at the
    /// region's start. For example, element `[j]` of the view `T.match_buffer(A[i, 0:16], (16,))` is `A[i, j]`.
    fn match_region(&mut self, at: At<'_>, of: Rc<View>, index: &Tree, rest: &[&Argument]) -> Outcome<Value> {
        let mut mins = Vec::new();
        let items = super::expr::index_items(index);
        for item in &items {
            mins.push(match &item.kind {
                ExprKind::Slice { lower: Some(lower), .. } => self.integer_of(at.cursor, lower)?,
                ExprKind::Slice { lower: None, .. } => Expr::int(0).cast(DType::INT32),
                _ => self.integer_of(at.cursor, item)?,
            });
        }
        // The region determines the strides and the offset, so these arguments are not needed.
        let reported: Vec<&Argument> = rest
            .iter()
            .copied()
            .filter(|argument| {
                !argument.keyword.is_some_and(|word| matches!(at.cursor.text(word), "strides" | "elem_offset"))
            })
            .collect();
        let declared = self.declaration(at, &reported)?;
        if items.len() == 1 && of.shape.is_empty() {
            mins.clear();
        }
        if mins.len() != of.shape.len() || declared.shape.len() > mins.len() {
            let message = format!("the region has {}; the buffer has {}", counted(mins.len(), "dim"), of.shape.len());
            return self.mistake(at, Code::TensorNdimMismatch, message);
        }
        self.same_elements(at, &of, declared.dtype)?;
        let source = Source::Region { of, mins };
        Ok(Value::Buffer(Rc::new(View { shape: declared.shape, dtype: declared.dtype, source })))
    }

    fn same_elements(&self, at: At<'_>, of: &View, dtype: DType) -> Outcome<()> {
        match of.dtype == dtype {
            true => Ok(()),
            false => self.unsupported(at, &format!("a view of {} memory as {dtype}", of.dtype)),
        }
    }

    /// Returns a view of the memory of a dense buffer with the declared shape, offset and strides and the same dtype.
    /// The number of elements may differ and is not checked.
    fn flat(&mut self, at: At<'_>, of: Rc<View>, declared: Declaration) -> Outcome<Value> {
        self.same_elements(at, &of, declared.dtype)?;
        match &of.source {
            Source::Buffer(buffer) if self.func.buffer(*buffer).strides.is_none() => {}
            Source::Flat { offset: None, strides: None, .. } => {}
            _ => return self.unsupported(at, "a view of a buffer that is not dense"),
        }
        let Declaration { shape, dtype, strides, offset, .. } = declared;
        Ok(Value::Buffer(Rc::new(View { shape, dtype, source: Source::Flat { of, offset, strides } })))
    }

    /// Reads `T.decl_buffer(…)` or `T.Buffer(…)` in a body. If the argument `data` is a buffer or a pointer, the result
    /// is a view of its memory. If `data` is a handle without a buffer, the call declares the handle's buffer; if the
    /// handle has a buffer, the result is a view of it. Without `data` the result is a new buffer.
    pub(super) fn decl_buffer(&mut self, at: At<'_>, name: Name, arguments: &[Argument]) -> Outcome<Value> {
        let arguments: Vec<&Argument> = arguments.iter().collect();
        let mut declared = self.declaration(at, &arguments)?;
        match declared.data.take() {
            None => Ok(self.allocated(at, name, declared)),
            Some(Value::Pointer(of) | Value::Buffer(of)) => self.flat(at, of, declared),
            Some(Value::Handle(handle)) => self.open_handle(at, name, handle, declared),
            Some(_) => self.unsupported(at, "a buffer over this memory"),
        }
    }

    /// Reads `T.alloc_buffer(…)` and similar calls; `scope` overrides the storage scope.
    pub(super) fn alloc_buffer(
        &mut self,
        at: At<'_>,
        name: Name,
        scope: Option<Scope>,
        arguments: &[Argument],
    ) -> Outcome<Value> {
        let arguments: Vec<&Argument> = arguments.iter().collect();
        let mut declared = self.declaration(at, &arguments)?;
        if let Some(scope) = scope {
            declared.scope = scope;
        }
        Ok(self.allocated(at, name, declared))
    }

    /// Reads `T.allocate([n], "float32", "global")`: memory, for example for a `T.decl_buffer`.
    pub(super) fn allocate(&mut self, at: At<'_>, name: Name, arguments: &[Argument]) -> Outcome<Value> {
        match self.alloc_buffer(at, name, None, arguments)? {
            Value::Buffer(view) => Ok(Value::Pointer(view)),
            other => Ok(other),
        }
    }

    fn allocated(&mut self, at: At<'_>, name: Name, declared: Declaration) -> Value {
        let buffer = self.func.add_buffer(declared.into_buffer(name));
        self.note_declared(at, buffer);
        self.keep(buffer);
        Value::Buffer(Rc::new(View::of_buffer(&self.func, buffer)))
    }

    /// Returns the tensor of a buffer, of a pointer to its memory, or of a cell. `subject` describes the use, for the
    /// error message.
    pub(super) fn memory(&self, at: At<'_>, value: Value, subject: &str) -> Outcome<Rc<View>> {
        match value {
            Value::Buffer(view) | Value::Pointer(view) => Ok(view),
            Value::Cell(cell) => Ok(Rc::new(View::of_buffer(&self.func, cell))),
            other => self.unsupported(at, &format!("{subject} {}", super::constant::describe(&other))),
        }
    }

    /// Adds a buffer to the allocations of the current body.
    fn keep(&mut self, buffer: BufferId) {
        if let Some(body) = self.allocations.last_mut() {
            body.push(buffer);
        }
        self.note(|_| super::trace::Event::Allocate(buffer));
    }

    /// Creates the one-element buffer of a variable that is stored to.
    pub(super) fn cell(&mut self, name: Name, dtype: DType) -> BufferId {
        let buffer = self.func.add_cell(name, dtype);
        self.keep(buffer);
        buffer
    }

    /// Reads `A.view(n, m)`: the same memory with another shape.
    pub(super) fn view(&mut self, at: At<'_>, of: Rc<View>, arguments: &[Argument]) -> Outcome<Value> {
        let mut shape = Vec::new();
        for argument in arguments {
            if argument.keyword.is_some() {
                return self.unsupported(at, "a view with a layout");
            }
            if matches!(argument.value.kind, ExprKind::String) {
                return self.unsupported(at, "a view with another dtype");
            }
            shape.extend(self.dims(at.cursor, &argument.value)?);
        }
        let dtype = of.dtype;
        let declared = Declaration { shape, dtype, strides: None, offset: None, scope: Scope::Global, data: None };
        self.flat(at, of, declared)
    }
}
