//! Procedures that call each other, on a stack of rx's own: the host's is needed for none of them.
//!
//! A call whose result is the caller's own is a *tail call*: the caller ends before the callee begins, so that a loop written as
//! recursion (TVM's importers write `WHILE` so) needs the memory of one iteration. Other calls wait in memory, and end with an error
//! where that is used up ([`room`](super::room)).

use super::room::{Held, Room};
use super::{Executor, Frame, Watch};
use crate::backend::Backend;
use crate::error::RunError;
use crate::memory::Memory;
use crate::types::{Symbols, bind};
use crate::value::Value;
use rx_ir::{Origin, PrimInfo, StructInfo};
use rx_lower::program::Branch;
use rx_lower::{Instruction, Operation, Procedure, ProcedureId, Program, Register};

/// A call that is to be made.
pub(super) struct Request<M> {
    pub(super) procedure: ProcedureId,
    pub(super) arguments: Vec<Value<M>>,
    /// Symbols that have their values from where the function was made.
    pub(super) symbols: Symbols,
    /// The caller's register for the result.
    pub(super) to: Register,
    /// Where it is called.
    pub(super) origin: Option<Origin>,
}

/// A procedure that runs, or waits for one that it called.
struct Activation<'p, B: Backend> {
    id: ProcedureId,
    procedure: &'p Procedure,
    frame: Frame<B>,
    /// The code under way, innermost last.
    blocks: Vec<Block<'p>>,
    /// The statement under way.
    at: Option<Origin>,
    /// The call that it answers.
    called_at: Option<Origin>,
    to: Register,
    /// The arguments, where the result is kept for them.
    given: Option<Vec<Value<B::Memory>>>,
    /// The memory that it holds while it waits.
    held: Held,
}

/// Code that is run, and what is done after it.
struct Block<'p> {
    code: &'p [Instruction],
    then: Then<'p>,
    /// The statement it belongs to.
    origin: Option<Origin>,
}

#[derive(Clone, Copy)]
enum Then<'p> {
    /// The procedure ends.
    Return,
    /// The code computed the condition of the first arm.
    Decide { arms: &'p [Arm], otherwise: &'p Branch, to: Register },
    /// The code was a branch, whose result is the result of the `if`.
    Assign { from: Register, to: Register },
}

type Arm = (Vec<Instruction>, Register, Branch);

/// What ends a stretch of one procedure's code.
enum Event<M> {
    Call(Request<M>),
    Return(Value<M>),
}

/// All activations, the running one last.
struct Calls<'p, B: Backend> {
    stack: Vec<Activation<'p, B>>,
    room: Room,
}

impl<B: Backend> Executor<B> {
    /// Calls a procedure, and runs whatever that calls.
    pub(super) fn call(
        &mut self,
        request: Request<B::Memory>,
        watch: &mut Watch<'_>,
    ) -> Result<Value<B::Memory>, RunError> {
        let program = self.program.clone();
        let mut calls = Calls { stack: Vec::new(), room: Room::default() };
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

    /// Runs until the first activation has returned.
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
            calls.room.give_back(std::mem::take(&mut caller.held));
            caller.frame.registers[to.0 as usize] = value;
        }
    }

    /// Begins a call; gives the result where it is known already.
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
            calls.room.take(caller.held, depth, procedure.name).map_err(|error| error.at(origin))?;
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

    /// Gives the frame's memory to the next call of its procedure.
    fn recycle(&mut self, ended: Activation<'_, B>) {
        self.idle[ended.id.0 as usize].push(ended.frame.storages);
    }

    /// Runs the procedure until it calls another or returns.
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
            self.budget.take_rounds(1)?;
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
                        return Err(RunError::other("what is called is no function"));
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

/// The symbols that a nested function has from its surroundings. A scalar parameter is a symbol of its own function; where that calls
/// itself, each call has its own.
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

/// The code that computes the next condition, or the last branch.
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
    /// Whether the procedure does nothing after this but return the register, under whatever names.
    fn returns(&self, register: Register) -> bool {
        // A result that is kept has to come back.
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

    /// The host's memory that it holds.
    fn weight(&self, is_host: bool) -> Held {
        let frame = &self.frame;
        // A value in a register mostly has an allocation of this size beside it.
        let register = size_of::<Value<B::Memory>>() + 64;
        let own = size_of::<Self>()
            + frame.registers.len() * register
            + frame.symbols.len() * 2 * size_of::<(rx_base::Name, i64)>()
            + self.blocks.capacity() * size_of::<Block<'_>>();
        Held { registers: own as u64, tensors: if is_host { frame.bytes } else { 0 } }
    }

    /// The error, said of where the procedure was, or was called.
    fn place(&self, error: RunError) -> RunError {
        let around = self.blocks.iter().rev().fold(error.at(self.at), |error, block| error.at(block.origin));
        around.at(self.called_at)
    }
}
