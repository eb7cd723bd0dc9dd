//! Tensor-core matrices: fragments that the threads of a warp fill, load, multiply and store together (TVM:
//! `tvm_fill_fragment`, `tvm_load_matrix_sync`, `tvm_mma_sync`, `tvm_store_matrix_sync`; CUDA C++ Programming Guide,
//! "Warp Matrix Functions").
//!
//! Each operation becomes a loop nest over the elements of the fragments' buffers. A warp performs it once, so in a
//! loop over `threadIdx.x` with more than one thread, only every 32nd thread executes the nest:
//!
//! ```text
//! T.tvm_mma_sync(C.data, 0, A.data, 0, B.data, 0, C.data, 0)
//!
//! ->  if threadIdx.x % 32 == 0:
//!         for i, j, k in T.grid(16, 16, 16):
//!             C[i, j] = C[i, j] + A[i, k] * B[k, j]
//! ```
//!
//! Requires constant fragment sizes of at most 256, buffers in a `wmma.*` scope, and usually dense matrices in memory.
//! Guarantees the same results as the hardware operation up to rounding. The hardware's assignment of elements to
//! registers is not observable, so elements keep the layout of the declared buffer.

use super::statement::Step;
use super::value::{Source, Value, View};
use super::{Outcome, Reader};
use rx_base::name::name;
use rx_base::{Code, DType};
use rx_syntax::ast::{Argument, Expr as Tree, ExprKind};
use rx_syntax::{At, Cursor};
use rx_tir::{BufferId, Expr, Fragment, LoopKind, Scope, Stmt, VarId, WARP};
use std::rc::Rc;

/// The name under which scopes hold the index of the thread.
const LANE: &str = "threadIdx.x";

/// The shape of a matrix product: `accumulator[m, n] += matrix_a[m, k] · matrix_b[k, n]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    m: i64,
    n: i64,
    k: i64,
}

impl Shape {
    /// Returns the numbers of rows and columns of an operand of the product.
    fn of(self, place: Fragment) -> (i64, i64) {
        match place {
            Fragment::MatrixA => (self.m, self.k),
            Fragment::MatrixB => (self.k, self.n),
            Fragment::Accumulator => (self.m, self.n),
        }
    }
}

/// A matrix: a view whose last two dims are its rows and columns, or its columns and rows.
struct Matrix {
    view: Rc<View>,
    /// Whether the view's last two dims are columns, then rows.
    is_transposed: bool,
}

impl Matrix {
    fn new(view: Rc<View>, is_transposed: bool) -> Matrix {
        Matrix { view, is_transposed }
    }

    /// Returns the buffer and the indices of the element at a row and column. Leading dims of the view have index 0.
    fn element(&self, row: &Expr, column: &Expr) -> (BufferId, Vec<Expr>) {
        let in_front = self.view.shape.len().saturating_sub(2);
        let zeros = (0..in_front).map(|_| row.dtype()).map(|dtype| Expr::Int { value: 0, dtype });
        let [first, second] = if self.is_transposed { [column, row] } else { [row, column] };
        self.view.element(zeros.chain([first.clone(), second.clone()]).collect())
    }
}

impl Reader<'_> {
    /// Reads a matrix operation of a warp; `member` is its name in `T`.
    pub(super) fn warp_matrix(&mut self, at: At<'_>, member: &str, arguments: &[Argument]) -> Outcome<Step> {
        if self.is_tracing() {
            // The checks do not model matrix operations of warps.
            return self.unsupported(at, &format!("`T.{member}` in a check"));
        }
        let trees: Vec<&Tree> = arguments.iter().map(|argument| &argument.value).collect();
        let done = match (member, &trees[..]) {
            ("tvm_fill_fragment", [data, m, n, k, index, value]) => {
                let shape = self.fragment_shape(at.cursor, [m, n, k])?;
                self.fill_fragment(at.cursor, shape, (data, index), value)
            }
            ("tvm_load_matrix_sync" | "tvm_store_matrix_sync", [data, m, n, k, index, pointer, stride, order]) => {
                let shape = self.fragment_shape(at.cursor, [m, n, k])?;
                let is_load = member == "tvm_load_matrix_sync";
                self.move_fragment(at.cursor, shape, (data, index), (pointer, stride, order), is_load)
            }
            ("tvm_mma_sync", [d, of_d, a, of_a, b, of_b, c, of_c]) => {
                self.multiply_fragments(at, [(d, of_d), (a, of_a), (b, of_b), (c, of_c)])
            }
            _ => {
                let wanted = match member {
                    "tvm_fill_fragment" => "a fragment, m, n, k, its number and a value",
                    "tvm_mma_sync" => "four fragments with their numbers",
                    _ => "a fragment, m, n, k, its number, a pointer, a stride and an order",
                };
                let message = format!("`T.{member}` takes {wanted}");
                return self.mistake(at, Code::MissingArgument, message);
            }
        }?;
        Ok(Step::Done(self.by_first_lane(done)))
    }

    /// Records the thread index at the start of a loop over `threadIdx.x`, unless its extent is the constant 1, for
    /// operations on fragments.
    pub(super) fn enter_threads(&mut self, kind: LoopKind, extent: &Expr, value: &Expr) {
        if matches!(kind, LoopKind::ThreadBinding(tag) if *tag == *LANE) && extent.as_int() != Some(1) {
            self.bind(name(LANE), Value::Expr(value.clone()));
        }
    }

    /// Records a block axis as the thread index if it is bound to the thread index.
    pub(super) fn enter_axis(&mut self, binding: &Expr, value: &Expr) {
        if matches!(self.lookup(name(LANE)), Some(Value::Expr(lane)) if lane == binding) {
            self.bind(name(LANE), Value::Expr(value.clone()));
        }
    }

    /// Restricts an operation of a warp to its first lane, if a thread index is recorded.
    fn by_first_lane(&self, done: Stmt) -> Stmt {
        let Some(Value::Expr(lane)) = self.lookup(name(LANE)) else { return done };
        let number = |value| Expr::Int { value, dtype: lane.dtype() };
        let condition = lane.clone().floor_mod(number(WARP)).eq(number(0));
        Stmt::when(condition, done)
    }

    fn fragment_shape(&mut self, cursor: Cursor<'_>, trees: [&Tree; 3]) -> Outcome<Shape> {
        let mut known = [0; 3];
        for (extent, tree) in known.iter_mut().zip(trees) {
            let value = self.integer_of(cursor, tree)?.as_int().filter(|value| (1..=256).contains(value));
            let Some(value) = value else {
                return self.unsupported(cursor.at(tree.tokens), "fragments whose size is not a constant up to 256");
            };
            *extent = value;
        }
        let [m, n, k] = known;
        Ok(Shape { m, n, k })
    }

    /// Returns the fragment with the number `index` in the buffer of `data`, its operand role and its dtype. If `data`
    /// is a box of a buffer and the text of `index` contains `.elem_offset`, the fragment is the box itself.
    fn fragment(
        &mut self,
        cursor: Cursor<'_>,
        (data, index): (&Tree, &Tree),
        shape: Shape,
    ) -> Outcome<(Matrix, Fragment, DType)> {
        let view = self.memory_of(cursor, data)?;
        let root = view.root();
        let Scope::Fragment(place) = self.func.buffer(root).scope else {
            let message = "this is not a fragment: its storage scope is not one of `wmma.*`";
            return self.mistake(cursor.at(data.tokens), Code::ArgumentType, message);
        };
        self.fragments.insert(root, shape);
        let (rows, columns) = shape.of(place);
        let dtype = view.dtype;
        // For a view of one fragment, the index computes the fragment's number in the buffer from the view's offset. An
        // example is `C.elem_offset // C.strides[0] // 16 * …` for the view `C`. The number is not needed, since the
        // view itself is the fragment.
        if matches!(view.source, Source::Region { .. }) && cursor.source(index.tokens).contains(".elem_offset") {
            let dims: Vec<Option<i64>> = view.shape.iter().rev().take(2).map(Expr::as_int).collect();
            return match dims[..] {
                [Some(last), Some(before)] if (before, last) == (rows, columns) => {
                    Ok((Matrix::new(view, false), place, dtype))
                }
                [Some(last), Some(before)] if (last, before) == (rows, columns) => {
                    Ok((Matrix::new(view, true), place, dtype))
                }
                _ => {
                    let message =
                        format!("the fragment has {rows} x {columns} elements, but its view has another shape");
                    self.mistake(cursor.at(data.tokens), Code::ShapeMismatch, message)
                }
            };
        }
        let number = self.integer_of(cursor, index)?;
        let whole = Rc::new(View::of_buffer(&self.func, root));
        let matrix = match tile(&whole, &number, (rows, columns)) {
            Some(tile) => tile,
            // Fragments that are not known to tile the buffer are stored consecutively.
            None => flat(&whole, scaled(&number, rows * columns), int(columns, number.dtype()), dtype),
        };
        Ok((Matrix::new(Rc::new(matrix), false), place, dtype))
    }

    fn memory_of(&mut self, cursor: Cursor<'_>, data: &Tree) -> Outcome<Rc<View>> {
        let value = self.value(cursor, data)?;
        self.memory(cursor.at(data.tokens), value, "a matrix in")
    }

    fn fill_fragment(&mut self, cursor: Cursor<'_>, shape: Shape, of: (&Tree, &Tree), value: &Tree) -> Outcome<Stmt> {
        let (matrix, place, dtype) = self.fragment(cursor, of, shape)?;
        let value = self.scalar_of(cursor, value)?.cast(dtype);
        let (rows, columns) = shape.of(place);
        let [i, j] = self.counters(["i", "j"]);
        let store = self.store_at(matrix.element(&self.func.var_expr(i), &self.func.var_expr(j)), value);
        Ok(nest([(i, rows), (j, columns)], store))
    }

    /// Copies between a fragment and a matrix in memory. `stride` is the distance in elements between rows, or
    /// between columns if the order is "col_major".
    fn move_fragment(
        &mut self,
        cursor: Cursor<'_>,
        shape: Shape,
        of: (&Tree, &Tree),
        (pointer, stride, order): (&Tree, &Tree, &Tree),
        is_load: bool,
    ) -> Outcome<Stmt> {
        let by_columns = match cursor.string_value(order).as_deref() {
            Some("row_major") => false,
            Some("col_major") => true,
            _ => {
                let message = "the order of a matrix must be \"row_major\" or \"col_major\"";
                return self.mistake(cursor.at(order.tokens), Code::AttrBadValue, message);
            }
        };
        let (fragment, place, dtype) = self.fragment(cursor, of, shape)?;
        let memory = self.matrix_at(cursor, pointer, stride)?;
        if memory.dtype != dtype {
            let message = format!("the fragment has dtype {dtype}, but the memory has dtype {}", memory.dtype);
            return self.mistake(cursor.at(pointer.tokens), Code::DtypeMismatch, message);
        }
        let memory = Matrix::new(memory, by_columns);
        let (rows, columns) = shape.of(place);
        let [i, j] = self.counters(["i", "j"]);
        let (row, column) = (self.func.var_expr(i), self.func.var_expr(j));
        let (to, from) = if is_load { (&fragment, &memory) } else { (&memory, &fragment) };
        let (buffer, indices) = from.element(&row, &column);
        let value = self.func.load(buffer, indices);
        let store = self.store_at(to.element(&row, &column), value);
        Ok(nest([(i, rows), (j, columns)], store))
    }

    fn multiply_fragments(&mut self, at: At<'_>, of: [(&Tree, &Tree); 4]) -> Outcome<Stmt> {
        // The shape is known from an earlier operation on one of the fragments.
        let mut shape = None;
        for (data, _) in of {
            let root = self.memory_of(at.cursor, data)?.root();
            shape = shape.or_else(|| self.fragments.get(&root).copied());
        }
        let Some(shape) = shape else {
            let message =
                "`T.tvm_mma_sync` requires fragments of known shape, but none of these is filled or loaded before";
            return self.mistake(at, Code::MisplacedStatement, message);
        };
        let mut matrices = Vec::with_capacity(of.len());
        let places = [Fragment::Accumulator, Fragment::MatrixA, Fragment::MatrixB, Fragment::Accumulator];
        for (one, wanted) in of.into_iter().zip(places) {
            let (matrix, place, dtype) = self.fragment(at.cursor, one, shape)?;
            if place != wanted {
                let message = format!(
                    "`T.tvm_mma_sync` requires a fragment of `{}`; found one of `{}`",
                    wanted.scope(),
                    place.scope()
                );
                return self.mistake(at.cursor.at(one.0.tokens), Code::ArgumentType, message);
            }
            matrices.push((matrix, dtype));
        }
        let [(d, sum), (a, _), (b, _), (c, _)] = &matrices[..] else { return Ok(Stmt::nothing()) };
        let vars = self.counters(["i", "j", "k"]);
        let [i, j, k] = vars.map(|var| self.func.var_expr(var));
        let load = |(buffer, indices)| self.func.load(buffer, indices).cast(*sum);
        let product = load(a.element(&i, &k)) * load(b.element(&k, &j));
        let (to, before) = (d.element(&i, &j), c.element(&i, &j));
        let added = self.store_at(to.clone(), load(to.clone()) + product);
        let [of_i, of_j, of_k] = vars;
        let multiply = nest([(of_i, shape.m), (of_j, shape.n), (of_k, shape.k)], added);
        if to == before {
            return Ok(multiply);
        }
        let begin = nest([(of_i, shape.m), (of_j, shape.n)], self.store_at(to, load(before)));
        Ok(Stmt::seq([begin, multiply]))
    }

    /// Returns the matrix at a pointer; `stride` is the distance in elements between indices of its first dim (rows, or
    /// columns if it is column-major).
    fn matrix_at(&mut self, cursor: Cursor<'_>, pointer: &Tree, stride: &Tree) -> Outcome<Rc<View>> {
        let (view, offset) = match &pointer.kind {
            ExprKind::Call { callee, arguments } => {
                let arguments: Vec<&Tree> = arguments.iter().map(|argument| &argument.value).collect();
                match (self.tir_member(cursor, callee), &callee.kind, &arguments[..]) {
                    (Some("tvm_access_ptr"), _, [_, data, offset, ..]) => {
                        (self.memory_of(cursor, data)?, Some(*offset))
                    }
                    (Some("address_of"), _, [of]) => return self.matrix_from(cursor, of, stride),
                    (None, ExprKind::Attribute { value, name }, _) if cursor.text(*name) == "access_ptr" => {
                        (self.memory_of(cursor, value)?, None)
                    }
                    _ => return self.unsupported(cursor.at(pointer.tokens), "a matrix at this pointer"),
                }
            }
            _ => (self.memory_of(cursor, pointer)?, None),
        };
        let starts = offset.is_none_or(|offset| cursor.path(offset.tokens).ends_with(".elem_offset"));
        if starts && view.shape.len() >= 2 && cursor.source(stride.tokens).contains(".strides[") {
            return Ok(view);
        }
        let begin = match offset {
            Some(offset) => self.integer_of(cursor, offset)?,
            None => view.offset(),
        };
        let stride = self.integer_of(cursor, stride)?;
        let whole = self.whole(cursor.at(pointer.tokens), view)?;
        Ok(Rc::new(flat(&whole, begin, stride, whole.dtype)))
    }

    /// Returns the dense view in which the offset of a matrix counts: for a box the whole underlying buffer, otherwise
    /// the view itself.
    fn whole(&self, at: At<'_>, view: Rc<View>) -> Outcome<Rc<View>> {
        let is_dense = match &view.source {
            Source::Flat { strides, .. } => strides.is_none(),
            Source::Buffer(_) | Source::Region { .. } => self.func.buffer(view.root()).strides.is_none(),
        };
        match (is_dense, &view.source) {
            (false, _) => self.unsupported(at, "a matrix in a buffer that is not dense"),
            (true, Source::Region { .. }) => Ok(Rc::new(View::of_buffer(&self.func, view.root()))),
            (true, _) => Ok(view),
        }
    }

    /// Returns the matrix whose first element is `A[…]`.
    fn matrix_from(&mut self, cursor: Cursor<'_>, first: &Tree, stride: &Tree) -> Outcome<Rc<View>> {
        let ExprKind::Subscript { value, index } = &first.kind else {
            return self.unsupported(cursor.at(first.tokens), "the address of this expression");
        };
        let view = self.memory_of(cursor, value)?;
        let indices = self.indices(cursor.at(first.tokens), &view, index)?;
        let begin = view.position(super::expr::exprs(indices));
        let stride = self.integer_of(cursor, stride)?;
        let whole = self.whole(cursor.at(first.tokens), view)?;
        Ok(Rc::new(flat(&whole, begin, stride, whole.dtype)))
    }

    fn counters<const N: usize>(&mut self, names: [&str; N]) -> [VarId; N] {
        names.map(|label| self.func.add_var(name(label), DType::INT32))
    }

    fn store_at(&self, (buffer, indices): (BufferId, Vec<Expr>), value: Expr) -> Stmt {
        Stmt::Store { buffer, indices, value, site: self.site() }
    }
}

/// Returns the fragment with an index in a matrix that is tiled by fragments, in row-major order; `None` unless the
/// fragments are known to tile it. For example, a 32 x 32 matrix has four fragments of 16 x 16; number 2 begins at row
/// 16, column 0.
fn tile(whole: &Rc<View>, number: &Expr, (rows, columns): (i64, i64)) -> Option<View> {
    let [in_front @ .., of_rows, of_columns] = &whole.shape[..] else { return None };
    let (of_rows, of_columns) = (of_rows.as_int()?, of_columns.as_int()?);
    let is_one = in_front.iter().all(|extent| extent.as_int() == Some(1));
    if !is_one || of_rows % rows != 0 || of_columns % columns != 0 || of_columns == 0 {
        return None;
    }
    let dtype = number.dtype();
    let along = of_columns / columns;
    let (row, column) = match number.as_int() {
        Some(number) => (int(number.div_euclid(along), dtype), int(number.rem_euclid(along), dtype)),
        None => (number.clone().floor_div(int(along, dtype)), number.clone().floor_mod(int(along, dtype))),
    };
    let zeros = in_front.iter().map(|_| int(0, dtype));
    let mins = zeros.chain([scaled(&row, rows), scaled(&column, columns)]).collect();
    let shape = vec![int(rows, DType::INT32), int(columns, DType::INT32)];
    Some(View { shape, dtype: whole.dtype, source: Source::Region { of: whole.clone(), mins } })
}

/// Returns the matrix at an offset in memory; `stride` is that of its first dim. Its shape is set to zero, since its
/// accesses do not use it.
fn flat(of: &Rc<View>, offset: Expr, stride: Expr, dtype: DType) -> View {
    let strides = Some(vec![stride, int(1, DType::INT32)]);
    let shape = vec![int(0, DType::INT32), int(0, DType::INT32)];
    View { shape, dtype, source: Source::Flat { of: of.clone(), offset: Some(offset), strides } }
}

fn int(value: i64, dtype: DType) -> Expr {
    Expr::Int { value, dtype }
}

fn scaled(number: &Expr, by: i64) -> Expr {
    match number.as_int() {
        Some(value) => int(value.saturating_mul(by), number.dtype()),
        None => number.clone() * int(by, number.dtype()),
    }
}

fn nest<const N: usize>(loops: [(VarId, i64); N], body: Stmt) -> Stmt {
    loops.into_iter().rev().fold(body, |body, (var, extent)| Stmt::For {
        var,
        start: int(0, DType::INT32),
        extent: int(extent, DType::INT32),
        kind: LoopKind::Serial,
        body: Box::new(body),
    })
}
