//! Translates a loop-level function to a [`Program`]: resolves names, separates integer from float expressions, and
//! checks the function's invariants.

use crate::error::RunError;
use crate::intrinsics;
use crate::program::{Access, BlockStep, CheckedIndex, Float, FloatBinary, Int, IntBinary, IntCompare, IntOp};
use crate::program::{Program, SiteId, Step};
use rx_base::DType;
use rx_tensor::{Element, float_of_int, int_of_float};
use rx_tir::{BinaryOp, Block, BufferId, Expr, Intrinsic, IterKind, Param, PrimFunc, Site, Stmt, UnaryOp, VarId};

/// The maximal nesting of statements and expressions, such that recursion fits the stack of a thread with 2 MiB.
const DEEPEST: usize = 1500;

pub(crate) struct Compiler<'f> {
    func: &'f PrimFunc,
    sites: Vec<Site>,
    used: Vec<bool>,
    /// The place of each variable's value. A block axis that is bound to a plain loop variable has the place of the loop
    /// variable: for example `vi` in `vi = T.axis.spatial(n, i)`.
    places: Vec<Place>,
    depth: usize,
}

/// The place of a variable's value.
#[derive(Clone, Copy)]
enum Place {
    Slot(usize),
    /// The only value of a loop variable: 0 in `for k in range(1)`.
    Constant(i64),
}

type Result<T> = std::result::Result<T, RunError>;

impl<'f> Compiler<'f> {
    pub(crate) fn new(func: &'f PrimFunc) -> Compiler<'f> {
        let places = (0..func.vars.len()).map(Place::Slot).collect();
        let used = vec![false; func.buffers.len()];
        Compiler { func, sites: Vec::new(), used, places, depth: 0 }
    }

    pub(crate) fn program(mut self) -> Result<Program> {
        for param in &self.func.params {
            match *param {
                Param::Buffer(buffer) if buffer.0 as usize >= self.func.buffers.len() => {
                    return Err(self.malformed("a buffer is not in its table"));
                }
                Param::Buffer(_) | Param::Handle(_) => {}
                Param::Scalar(var) => drop(self.place(var)?),
            }
        }
        self.set_site(Site { origin: None, operator: self.func.name });
        let body = self.step(&self.func.body)?;
        let tables = PrimFunc {
            name: self.func.name,
            params: self.func.params.clone(),
            symbols: self.func.symbols.clone(),
            vars: self.func.vars.clone(),
            buffers: self.func.buffers.clone(),
            body: Stmt::nothing(),
            origins: self.func.origins.clone(),
        };
        Ok(Program { func: tables, body, sites: self.sites, used: self.used })
    }

    fn malformed(&self, reason: &'static str) -> RunError {
        RunError::Malformed { func: self.func.name, reason }
    }

    /// Sets the site of the code that is compiled next.
    fn set_site(&mut self, site: Site) {
        if self.sites.last() != Some(&site) {
            self.sites.push(site);
        }
    }

    fn site(&self) -> SiteId {
        self.sites.len().saturating_sub(1) as SiteId
    }

    /// Runs `compile` one nesting level deeper, or fails if that is too deep.
    fn nested<T>(&mut self, compile: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth >= DEEPEST {
            return Err(RunError::TooDeep);
        }
        self.depth += 1;
        let compiled = compile(self);
        self.depth -= 1;
        compiled
    }

    fn element(&self, dtype: DType) -> Result<Element> {
        Element::of(dtype).ok_or(RunError::UnsupportedDType(dtype))
    }

    /// Returns the place of a variable's value.
    fn place(&self, var: VarId) -> Result<Place> {
        let place = self.places.get(var.0 as usize).copied();
        place.ok_or_else(|| self.malformed("a variable is not in its table"))
    }

    /// Returns the place and dtype of a variable.
    fn typed_place(&self, var: VarId) -> Result<(Place, Element)> {
        let place = self.place(var)?;
        Ok((place, self.element(self.func.var(var).dtype)?))
    }

    /// Returns the slot and dtype of a variable that a statement binds. A variable that is bound once more gets its own
    /// slot.
    fn bound_var(&mut self, var: VarId) -> Result<(usize, Element)> {
        let (_, element) = self.typed_place(var)?;
        let slot = var.0 as usize;
        self.places[slot] = Place::Slot(slot);
        Ok((slot, element))
    }

    /// Returns the slot and dtype of the variable of a loop or axis, which must be an integer.
    fn int_var(&mut self, var: VarId) -> Result<(usize, Element)> {
        match self.bound_var(var)? {
            (_, element) if element.is_float() => Err(self.malformed("a loop's or axis's variable is a float")),
            typed => Ok(typed),
        }
    }

    fn buffer(&mut self, buffer: BufferId) -> Result<usize> {
        let index = buffer.0 as usize;
        match self.used.get_mut(index) {
            Some(used) => *used = true,
            None => return Err(self.malformed("a buffer is not in its table")),
        }
        self.element(self.func.buffer(buffer).dtype)?;
        Ok(index)
    }

    fn access(&mut self, buffer: BufferId, indices: &[Expr]) -> Result<Access> {
        let index = self.buffer(buffer)?;
        if self.func.buffer(buffer).shape.len() != indices.len() {
            return Err(self.malformed("an access has not one index per dim"));
        }
        let indices = indices.iter().map(|index| self.int(index)).collect::<Result<_>>()?;
        Ok(Access { buffer: index, indices, site: self.site() })
    }

    fn step(&mut self, stmt: &Stmt) -> Result<Step> {
        self.nested(|compiler| compiler.step_of(stmt))
    }

    fn step_of(&mut self, stmt: &Stmt) -> Result<Step> {
        // Of the statements, only stores and assertions have sites. Use the first one inside the statement for the
        // other expressions in it.
        if let Some(site) = stmt.first_site() {
            self.set_site(site);
        }
        Ok(match stmt {
            Stmt::Seq(steps) => Step::Seq(steps.iter().map(|step| self.step(step)).collect::<Result<_>>()?),
            Stmt::For { var, start, extent, body, .. } => {
                let (var, element) = self.int_var(*var)?;
                let (start, extent) = (self.int(start)?, self.int(extent)?);
                if let (Int::Constant(start), Int::Constant(1)) = (&start, &extent) {
                    self.places[var] = Place::Constant(element.wrap(*start));
                    return Ok(Step::Once(Box::new(self.step(body)?)));
                }
                Step::For { var, element, start, extent, body: Box::new(self.step(body)?) }
            }
            Stmt::Block(block) => Step::Block(Box::new(self.block(block)?)),
            Stmt::Store { buffer, indices, value, .. } => {
                let access = Box::new(self.access(*buffer, indices)?);
                match self.element(self.func.buffer(*buffer).dtype)?.is_float() {
                    true => Step::StoreFloat(access, self.float(value)?),
                    false => Step::StoreInt(access, self.int(value)?),
                }
            }
            Stmt::Let { var, value, body } => {
                let (var, element) = self.bound_var(*var)?;
                if element.is_float() {
                    let value = self.float(value)?;
                    Step::LetFloat { var, value, body: Box::new(self.step(body)?) }
                } else {
                    let value = self.int(value)?;
                    Step::LetInt { var, value, body: Box::new(self.step(body)?) }
                }
            }
            Stmt::If { condition, then, otherwise } => Step::If {
                condition: self.condition(condition)?,
                then: Box::new(self.step(then)?),
                otherwise: match otherwise {
                    Some(otherwise) => Some(Box::new(self.step(otherwise)?)),
                    None => None,
                },
            },
            Stmt::While { condition, body } => {
                Step::While { condition: self.condition(condition)?, body: Box::new(self.step(body)?) }
            }
            Stmt::Assert { condition, message, .. } => {
                Step::Assert { condition: self.condition(condition)?, message: *message, site: self.site() }
            }
            Stmt::Evaluate(value) => match self.element(value.dtype())?.is_float() {
                true => Step::EvaluateFloat(self.float(value)?),
                false => Step::EvaluateInt(self.int(value)?),
            },
        })
    }

    fn block(&mut self, block: &Block) -> Result<BlockStep> {
        let mut bindings = Vec::with_capacity(block.iters.len());
        let mut firsts = Vec::new();
        for iter in &block.iters {
            let (var, element) = self.int_var(iter.var)?;
            match self.alias(element, &iter.binding)? {
                // Most axes are bound to a plain loop variable, which does not change while the block runs: share its
                // place.
                Some(place) => self.places[var] = place,
                None => bindings.push((var, self.int(&iter.binding)?)),
            }
            if iter.kind == IterKind::Reduce && block.init.is_some() {
                match (self.int_at(self.places[var]), self.int(&iter.start)?) {
                    (Int::Constant(value), Int::Constant(first)) if value == first => {}
                    first => firsts.push(first),
                }
            }
        }
        let predicate = match &block.predicate {
            Some(predicate) => Some(self.condition(predicate)?),
            None => None,
        };
        let init = match &block.init {
            Some(init) => Some((firsts, self.step(init)?)),
            None => None,
        };
        let body = self.step(&block.body)?;
        // Buffers that are never accessed need no memory.
        let used = |buffer: &BufferId| self.used.get(buffer.0 as usize).copied().unwrap_or(false);
        let allocations = block.allocations.iter().filter(|buffer| used(buffer)).map(|buffer| buffer.0 as usize);
        let allocations = allocations.collect();
        Ok(BlockStep { bindings, predicate, allocations, init, body })
    }

    /// Returns the value at a place.
    fn int_at(&self, place: Place) -> Int {
        match place {
            Place::Slot(slot) => Int::Var(slot),
            Place::Constant(value) => Int::Constant(value),
        }
    }

    /// Returns the place of a variable if the expression is just a variable of this dtype.
    fn alias(&self, element: Element, expr: &Expr) -> Result<Option<Place>> {
        match expr {
            Expr::Var { var, .. } => {
                let (place, its) = self.typed_place(*var)?;
                Ok((its == element).then_some(place))
            }
            _ => Ok(None),
        }
    }

    /// Compiles a condition. A number is true if it is not 0.
    fn condition(&mut self, expr: &Expr) -> Result<Int> {
        match self.element(expr.dtype())?.is_float() {
            true => Ok(Int::FromFloat(Element::Bool, Box::new(self.float(expr)?))),
            false => self.int(expr),
        }
    }

    fn int(&mut self, expr: &Expr) -> Result<Int> {
        self.nested(|compiler| compiler.int_of(expr))
    }

    fn int_of(&mut self, expr: &Expr) -> Result<Int> {
        let element = self.element(expr.dtype())?;
        if element.is_float() {
            return Ok(Int::FromFloat(Element::I64, Box::new(self.float(expr)?)));
        }
        Ok(match expr {
            Expr::Int { value, .. } => Int::Constant(element.wrap(*value)),
            Expr::Float { value, .. } => Int::Constant(int_of_float(*value, element)),
            Expr::Var { var, .. } => match self.typed_place(*var)? {
                (place, element) if !element.is_float() => self.int_at(place),
                _ => return Err(self.malformed("a variable has not its table's dtype")),
            },
            Expr::Load { buffer, indices, .. } => Int::Load(Box::new(self.access(*buffer, indices)?)),
            Expr::Cast { value, .. } => self.cast_to_int(element, value)?,
            Expr::Unary { op, value } => {
                let value = Box::new(self.int(value)?);
                match op {
                    UnaryOp::Neg => Int::Unary(i64::wrapping_neg, element, value),
                    UnaryOp::BitNot if element != Element::Bool => Int::Unary(|x| !x, element, value),
                    UnaryOp::Not | UnaryOp::BitNot => Int::Not(value),
                }
            }
            Expr::Binary { op: BinaryOp::And, left, right } => {
                Int::And(Box::new((self.condition(left)?, self.condition(right)?)))
            }
            Expr::Binary { op: BinaryOp::Or, left, right } => {
                Int::Or(Box::new((self.condition(left)?, self.condition(right)?)))
            }
            Expr::Binary { op, left, right } => self.int_binary(IntOp::Binary(*op), element, left, right)?,
            Expr::Compare { op, left, right } => {
                let (a, b) = (self.element(left.dtype())?, self.element(right.dtype())?);
                if a.is_float() || b.is_float() {
                    Int::CompareFloat(Box::new((*op, self.float(left)?, self.float(right)?)))
                } else {
                    let (left, right) = (self.int(left)?, self.int(right)?);
                    Int::Compare(Box::new(IntCompare { op: *op, unsigned: a == Element::U64, left, right }))
                }
            }
            Expr::Select { condition, then, otherwise } => {
                Int::Select(Box::new((self.condition(condition)?, self.int(then)?, self.int(otherwise)?)))
            }
            Expr::Call { function, args, .. } => self.int_call(*function, element, args)?,
            Expr::Checked { index, extent, buffer, axis, site } => {
                self.set_site(*site);
                let (index, extent) = (self.int(index)?, self.int(extent)?);
                if buffer.0 as usize >= self.func.buffers.len() {
                    return Err(self.malformed("a buffer is not in its table"));
                }
                let (buffer, axis) = (buffer.0 as usize, *axis as usize);
                Int::Checked(Box::new(CheckedIndex { index, extent, buffer, axis, site: self.site() }))
            }
        })
    }

    fn cast_to_int(&mut self, element: Element, value: &Expr) -> Result<Int> {
        let from = self.element(value.dtype())?;
        Ok(match from.is_float() {
            true => Int::FromFloat(element, Box::new(self.float(value)?)),
            false if from == element => self.int(value)?,
            false => Int::Wrap(element, Box::new(self.int(value)?)),
        })
    }

    fn int_binary(&mut self, op: IntOp, element: Element, left: &Expr, right: &Expr) -> Result<Int> {
        Ok(match (op, self.int(left)?, self.int(right)?) {
            // The offset in a window of one element is 0.
            (IntOp::Binary(BinaryOp::Add), value, Int::Constant(0)) => value,
            (op, left, right) => Int::Binary(Box::new(IntBinary { op, element, left, right, site: self.site() })),
        })
    }

    fn int_call(&mut self, function: Intrinsic, element: Element, args: &[Expr]) -> Result<Int> {
        let (first, second) = self.arguments(function, args)?;
        let from = self.element(first.dtype())?;
        if function == Intrinsic::Reinterpret {
            return Ok(match from.is_float() {
                true => Int::FloatBits(from, element, Box::new(self.float(first)?)),
                false => Int::Wrap(element, Box::new(self.int(first)?)),
            });
        }
        if let Some(test) = intrinsics::test(function)
            && from.is_float()
        {
            return Ok(Int::TestFloat(test, Box::new(self.float(first)?)));
        }
        if !from.is_float() {
            if let Some(apply) = intrinsics::of_int(function, from) {
                return Ok(Int::Unary(apply, element, Box::new(self.int(first)?)));
            }
            match (function, second) {
                (Intrinsic::Fmod, Some(second)) => {
                    return self.int_binary(IntOp::Binary(BinaryOp::TruncMod), element, first, second);
                }
                (Intrinsic::Pow, Some(second)) => return self.int_binary(IntOp::Pow, element, first, second),
                _ => {}
            }
        }
        // The remaining intrinsics are float functions: compute in `f64` and convert the result to an integer.
        Ok(Int::FromFloat(element, Box::new(self.float_call(function, Element::F64, args)?)))
    }

    fn float(&mut self, expr: &Expr) -> Result<Float> {
        self.nested(|compiler| compiler.float_of(expr))
    }

    fn float_of(&mut self, expr: &Expr) -> Result<Float> {
        let element = self.element(expr.dtype())?;
        if !element.is_float() {
            return Ok(Float::FromInt(element, Element::F64, Box::new(self.int(expr)?)));
        }
        Ok(match expr {
            Expr::Float { value, .. } => Float::Constant(element.round(*value)),
            Expr::Int { value, .. } => Float::Constant(float_of_int(*value, Element::I64, element)),
            Expr::Var { var, .. } => match self.typed_place(*var)? {
                (Place::Slot(var), element) if element.is_float() => Float::Var(var),
                _ => return Err(self.malformed("a variable has not its table's dtype")),
            },
            Expr::Load { buffer, indices, .. } => Float::Load(Box::new(self.access(*buffer, indices)?)),
            Expr::Cast { value, .. } => match self.element(value.dtype())? {
                from if !from.is_float() => Float::FromInt(from, element, Box::new(self.int(value)?)),
                from if from == element => self.float(value)?,
                _ => Float::Round(element, Box::new(self.float(value)?)),
            },
            Expr::Unary { op: UnaryOp::Neg, value } => Float::Negate(Box::new(self.float(value)?)),
            Expr::Unary { .. } => return Err(self.malformed("a float has no bits or truth")),
            Expr::Binary { op, left, right } => {
                let (left, right) = (self.float(left)?, self.float(right)?);
                Float::Binary(Box::new(FloatBinary { op: *op, element, left, right }))
            }
            Expr::Select { condition, then, otherwise } => {
                Float::Select(Box::new((self.condition(condition)?, self.float(then)?, self.float(otherwise)?)))
            }
            Expr::Call { function, args, .. } => self.float_call(*function, element, args)?,
            Expr::Compare { .. } | Expr::Checked { .. } => {
                return Err(self.malformed("an index or comparison is a float"));
            }
        })
    }

    fn float_call(&mut self, function: Intrinsic, element: Element, args: &[Expr]) -> Result<Float> {
        let (first, second) = self.arguments(function, args)?;
        if function == Intrinsic::Reinterpret {
            let from = self.element(first.dtype())?;
            let bits = match from.is_float() {
                true => Int::FloatBits(from, Element::U64, Box::new(self.float(first)?)),
                false => self.int(first)?,
            };
            return Ok(Float::FromBits(element, Box::new(bits)));
        }
        if let Some(apply) = intrinsics::of_one(function) {
            return Ok(Float::Call1(apply, element, Box::new(self.float(first)?)));
        }
        let Some(second) = second else {
            // The remaining unary intrinsics are predicates and integer functions: convert their result to a float.
            let value = self.int_call_of_integer(function, args)?;
            return Ok(Float::FromInt(Element::I64, element, Box::new(value)));
        };
        if function == Intrinsic::Ldexp {
            return Ok(Float::Ldexp(element, Box::new((self.float(first)?, self.int(second)?))));
        }
        let pair = Box::new((self.float(first)?, self.float(second)?));
        match (function, intrinsics::of_two(function)) {
            (_, Some(apply)) => Ok(Float::Call2(apply, element, pair)),
            (Intrinsic::NextAfter, _) => Ok(Float::NextAfter(element, pair)),
            _ => Err(self.malformed("an intrinsic has no meaning for floats")),
        }
    }

    /// Compiles a call of an intrinsic that returns an integer for every argument: `isnan`, `clz`, `popcount`.
    fn int_call_of_integer(&mut self, function: Intrinsic, args: &[Expr]) -> Result<Int> {
        let (first, _) = self.arguments(function, args)?;
        let from = self.element(first.dtype())?;
        match (intrinsics::test(function), intrinsics::of_int(function, from)) {
            (Some(test), _) => Ok(Int::TestFloat(test, Box::new(self.float(first)?))),
            (_, Some(apply)) if !from.is_float() => Ok(Int::Unary(apply, Element::I64, Box::new(self.int(first)?))),
            _ => Err(self.malformed("an intrinsic has no meaning for floats")),
        }
    }

    /// Returns the first argument, and the second if the intrinsic is binary.
    fn arguments<'e>(&self, function: Intrinsic, args: &'e [Expr]) -> Result<(&'e Expr, Option<&'e Expr>)> {
        match (function.arity(), args) {
            (1, [first]) => Ok((first, None)),
            (2, [first, second]) => Ok((first, Some(second))),
            _ => Err(self.malformed("an intrinsic has another number of arguments")),
        }
    }
}
