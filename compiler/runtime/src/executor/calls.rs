//! Calls between procedures, on an explicit stack instead of the native one, so that recursion cannot overflow the
//! native stack.
//!
//! A call whose result is the caller's result is a *tail call*, unless the caller's result is to be cached: the
//! caller's activation is removed before the callee's is created. A loop that is written as recursion (TVM's importers
//! translate `WHILE` this way) therefore needs the memory of one iteration only. The other callers stay suspended in
//! memory; a call fails if they hold too much of it ([`suspended`](super::suspended)).

use super::suspended::{Held, SuspendedMemory};
use super::{Executor, Frame, Watch};
use crate::backend::Backend;
use crate::error::RunError;
use crate::fuel::PER_INSTRUCTION;
use crate::memory::Memory;
use crate::types::{Symbols, bind};
use crate::value::Value;
use rx_ir::{Origin, PrimInfo, StructInfo};
use rx_lower::program::Branch;
use rx_lower::{Instruction, Operation, Procedure, ProcedureId, Program, Register};

/// A call to be made.
pub(super) struct Request<M> {
    pub(super) procedure: ProcedureId,
    pub(super) arguments: Vec<Value<M>>,
    /// Values of symbolic variables that do not follow from the arguments: those of the scope in which the callee's
    /// closure was created, or those that [`Executor::run`] gets.
    pub(super) symbols: Symbols,
    /// The caller's register that receives the result.
    pub(super) to: Register,
    /// The statement that makes the call.
    pub(super) origin: Option<Origin>,
}

/// A procedure on the stack: it is running, or suspended by a call.
struct Activation<'p, B: Backend> {
    id: ProcedureId,
    procedure: &'p Procedure,
    frame: Frame<B>,
    /// The nested blocks of instructions that are being executed, innermost last.
    blocks: Vec<Block<'p>>,
    /// The statement that is being executed.
    at: Option<Origin>,
    /// The statement that called this procedure.
    called_at: Option<Origin>,
    to: Register,
    /// The arguments, if the result is to be cached for them ([`Procedure::once`]).
    given: Option<Vec<Value<B::Memory>>>,
    /// The memory that the activation holds while it is suspended.
    held: Held,
}

/// The instructions of a block that are still to be executed, and the action that follows them.
struct Block<'p> {
    code: &'p [Instruction],
    then: Then<'p>,
    /// The statement that the block belongs to.
    origin: Option<Origin>,
}

#[derive(Clone, Copy)]
enum Then<'p> {
    /// Return from the procedure.
    Return,
    /// Test the condition of the first arm, which the block computed.
    Decide { arms: &'p [Arm], otherwise: &'p Branch, to: Register },
    /// Assign the result of the branch, which the block computed, to the register of the `if`.
    Assign { from: Register, to: Register },
}

type Arm = (Vec<Instruction>, Register, Branch);

/// The reason why [`Executor::advance`] stopped.
enum Event<M> {
    Call(Request<M>),
    Return(Value<M>),
}

/// The call stack, the running activation last.
struct Calls<'p, B: Backend> {
    stack: Vec<Activation<'p, B>>,
    suspended: SuspendedMemory,
}

impl<B: Backend> Executor<B> {
    /// Calls a procedure and runs it to its end, with all calls that it makes.
    pub(super) fn call(
        &mut self,
        request: Request<B::Memory>,
        watch: &mut Watch<'_>,
    ) -> Result<Value<B::Memory>, RunError> {
        let program = self.program.clone();
        let mut calls = Calls { stack: Vec::new(), suspended: SuspendedMemory::default() };
        let result = match self.enter(&program, request, &mut calls) {
            Ok(None) => self.drive(&program, &mut calls, watch),
            Ok(Some(known)) => Ok(known),
            Err(error) => Err(error),
        };
        result.map_err(|mut error| {
            for activation in calls.stack.drain(..).rev() {
                error = activation.place(error);
                self.recycle(activation);
            }
            error
        })
    }

    /// Runs until the bottom activation of the stack returns.
    fn drive<'p>(
        &mut self,
        program: &'p Program,
        calls: &mut Calls<'p, B>,
        watch: &mut Watch<'_>,
    ) -> Result<Value<B::Memory>, RunError> {
        loop {
            let Some(top) = calls.stack.last_mut() else { return Err(RunError::other("the program has ended")) };
            let (to, value) = match self.advance(top, watch)? {
                Event::Call(mut request) => {
                    if top.returns(request.to) {
                        request.origin = request.origin.or(top.called_at);
                        request.to = top.to;
                        let ended = calls.stack.pop();
                        ended.into_iter().for_each(|ended| self.recycle(ended));
                    }
                    let to = request.to;
                    match self.enter(program, request, calls)? {
                        None => continue,
                        Some(known) => (to, known),
                    }
                }
                Event::Return(value) => {
                    let Some(mut ended) = calls.stack.pop() else { return Ok(value) };
                    if let Some(given) = ended.given.take() {
                        self.kept.keep(ended.id, given, &value);
                    }
                    let to = ended.to;
                    self.recycle(ended);
                    (to, value)
                }
            };
            let Some(caller) = calls.stack.last_mut() else { return Ok(value) };
            calls.suspended.give_back(std::mem::take(&mut caller.held));
            caller.frame.registers[to.0 as usize] = value;
        }
    }

    /// Pushes an activation for a call. Returns the result instead if it is cached.
    fn enter<'p>(
        &mut self,
        program: &'p Program,
        request: Request<B::Memory>,
        calls: &mut Calls<'p, B>,
    ) -> Result<Option<Value<B::Memory>>, RunError> {
        let Request { procedure: id, arguments, mut symbols, to, origin } = request;
        let procedure = program.procedure(id);
        if arguments.len() != procedure.params.len() + procedure.captured {
            let message = format!("`{}` was called with {} arguments", procedure.name, arguments.len());
            return Err(RunError::other(message).at(origin));
        }
        if let Some(known) = procedure.once.then(|| self.kept.of(id, &arguments)).flatten() {
            return Ok(Some(known));
        }
        let depth = calls.stack.len();
        if let Some(caller) = calls.stack.last_mut() {
            caller.held = caller.weight(B::Memory::IS_HOST);
            calls.suspended.take(caller.held, depth, procedure.name).map_err(|error| error.at(origin))?;
        }
        for (argument, (_, ty)) in arguments.iter().zip(&procedure.params) {
            bind(argument, ty, &mut symbols);
        }
        let given = procedure.once.then(|| arguments.clone());
        let mut registers = arguments;
        registers.resize_with(procedure.types.len(), || Value::Unset);
        let storages = match self.idle[id.0 as usize].pop() {
            Some(storages) => storages,
            None => self.storages(procedure, &symbols).map_err(|error| error.at(origin))?,
        };
        let bytes = storages.iter().flatten().map(|(_, size)| *size as u64).sum();
        calls.stack.push(Activation {
            id,
            procedure,
            frame: Frame { registers, symbols, storages, bytes },
            blocks: vec![Block { code: &procedure.code, then: Then::Return, origin: None }],
            at: None,
            called_at: origin,
            to,
            given,
            held: Held::default(),
        });
        Ok(None)
    }

    /// Keeps the frame's memory for the next call of the same procedure.
    fn recycle(&mut self, ended: Activation<'_, B>) {
        self.idle[ended.id.0 as usize].push(ended.frame.storages);
    }

    /// Runs the top activation until it makes a call or returns.
    fn advance(&mut self, top: &mut Activation<'_, B>, watch: &mut Watch<'_>) -> Result<Event<B::Memory>, RunError> {
        loop {
            let Some(block) = top.blocks.last_mut() else { return Err(RunError::other("the procedure has ended")) };
            let Some((instruction, rest)) = block.code.split_first() else {
                let (then, origin) = (block.then, block.origin);
                top.at = origin;
                match then {
                    Then::Return => return Ok(Event::Return(top.frame.get(top.procedure.result).clone())),
                    Then::Assign { from, to } => {
                        top.blocks.pop();
                        top.frame.registers[to.0 as usize] = top.frame.get(from).clone();
                    }
                    Then::Decide { arms, otherwise, to } => {
                        let next = match arms {
                            [(_, condition, branch), ..]
                                if self.truth(top.frame.get(*condition).clone(), &top.frame)? =>
                            {
                                branch_block(branch, to, origin)
                            }
                            [_, rest @ ..] => decision(rest, otherwise, to, origin),
                            [] => branch_block(otherwise, to, origin),
                        };
                        top.blocks.pop();
                        top.blocks.push(next);
                    }
                }
                continue;
            };
            block.code = rest;
            top.at = instruction.origin;
            self.fuel.take_iterations(PER_INSTRUCTION)?;
            let frame = &mut top.frame;
            match &instruction.operation {
                Operation::If { arms, otherwise, to } => {
                    top.blocks.push(decision(arms, otherwise, *to, instruction.origin));
                }
                Operation::Call { to, procedure, arguments } => {
                    let arguments = arguments.iter().map(|argument| frame.get(*argument).clone()).collect();
                    let (procedure, to, origin) = (*procedure, *to, instruction.origin);
                    let symbols = Symbols::default();
                    return Ok(Event::Call(Request { procedure, arguments, symbols, to, origin }));
                }
                Operation::CallClosure { to, closure, arguments } => {
                    let Value::Closure(closure) = frame.get(*closure) else {
                        return Err(RunError::other("the called value is not a function"));
                    };
                    let arguments = arguments.iter().map(|argument| frame.get(*argument).clone());
                    let arguments = arguments.chain(closure.captured.iter().cloned()).collect();
                    let symbols = seen(self.program.procedure(closure.procedure), &closure.symbols);
                    let (procedure, to, origin) = (closure.procedure, *to, instruction.origin);
                    return Ok(Event::Call(Request { procedure, arguments, symbols, to, origin }));
                }
                _ => self.instruction(instruction, top.procedure, frame, watch)?,
            }
        }
    }
}

/// Returns the symbols that a nested function inherits from its enclosing scope. The function's scalar parameters are
/// removed: they are its own symbols, and in a recursive call their values differ from those in `around`.
fn seen(procedure: &Procedure, around: &Symbols) -> Symbols {
    let mut symbols = around.clone();
    for (_, ty) in &procedure.params {
        if let StructInfo::Prim(PrimInfo { value: Some(value), .. }) = ty
            && let Some(symbol) = value.as_symbol()
        {
            symbols.remove(&symbol);
        }
    }
    symbols
}

/// Returns the block that computes the condition of the first arm, or the `else` branch if no arm is left.
fn decision<'p>(arms: &'p [Arm], otherwise: &'p Branch, to: Register, origin: Option<Origin>) -> Block<'p> {
    match arms.first() {
        Some((code, ..)) => Block { code, then: Then::Decide { arms, otherwise, to }, origin },
        None => branch_block(otherwise, to, origin),
    }
}

fn branch_block<'p>(branch: &'p Branch, to: Register, origin: Option<Origin>) -> Block<'p> {
    Block { code: &branch.code, then: Then::Assign { from: branch.result, to }, origin }
}

impl<B: Backend> Activation<'_, B> {
    /// Whether the rest of the procedure only returns the register, possibly after copies: that is, whether the call is
    /// a tail call.
    fn returns(&self, register: Register) -> bool {
        // A result that is to be cached must return to this activation, so this is not a tail call.
        if self.given.is_some() {
            return false;
        }
        let mut wanted = register;
        for block in self.blocks.iter().rev() {
            for instruction in block.code {
                match instruction.operation {
                    Operation::Copy { to, from } if from == wanted => wanted = to,
                    _ => return false,
                }
            }
            match block.then {
                Then::Return => return self.procedure.result == wanted,
                Then::Assign { from, to } if from == wanted => wanted = to,
                Then::Assign { .. } | Then::Decide { .. } => return false,
            }
        }
        false
    }

    /// Estimates the host memory that the activation holds, in bytes. `is_host` is whether its tensors are there, too.
    fn weight(&self, is_host: bool) -> Held {
        let frame = &self.frame;
        // Most register values own a heap allocation; assume 64 bytes for it.
        let register = size_of::<Value<B::Memory>>() + 64;
        let own = size_of::<Self>()
            + frame.registers.len() * register
            + frame.symbols.len() * 2 * size_of::<(rx_base::Name, i64)>()
            + self.blocks.capacity() * size_of::<Block<'_>>();
        Held { registers: own as u64, tensors: if is_host { frame.bytes } else { 0 } }
    }

    /// Sets the origin of an error that has none: the current statement, the enclosing blocks' statement or the calling
    /// statement.
    fn place(&self, error: RunError) -> RunError {
        let around = self.blocks.iter().rev().fold(error.at(self.at), |error, block| error.at(block.origin));
        around.at(self.called_at)
    }
}
