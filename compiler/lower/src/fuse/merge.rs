//! Merges a producer kernel and its consumer into one kernel.
//!
//! ```text
//! def add(a, b, out): out[i] = a[i] + b[i]              def fused_add_relu(a, b, y):
//! def relu(x, y): y[i] = max(x[i], 0)            →          t = alloc_buffer(...)
//!                                                           t[i] = a[i] + b[i]
//!                                                           y[i] = max(t[i], 0)
//! ```
//!
//! Requires that only the consumer reads the producer's outputs, or that the producer's instruction is kept for the
//! other readers. Guarantees that the merged kernel has the consumer's outputs; the producer's outputs are temporaries,
//! which later passes usually inline. Two inputs in the same register, or two equal scalar arguments, usually become
//! one parameter.
//!
//! Reference: TVM's `src/relax/transform/fuse_tir.cc`.

use super::{Context, MAX_BUFFERS, MAX_NESTS};
use crate::loops::Loops;
use crate::program::{Inputs, Instruction, Kernel, Operation, Program, Register, Scalar};
use rx_base::Name;
use rx_base::name::name;
use rx_tir::func::{BufferId, Param, PrimFunc, VarId};
use rx_tir::rewrite::import;
use rx_tir::{Expr, Stmt};
use smallvec::SmallVec;

/// Returns the instruction that computes the consumer's outputs from the inputs of both kernels. Returns `None` where
/// one of the two instructions is no kernel call, where the merged kernel would have more than [`MAX_BUFFERS`] buffer
/// parameters or [`MAX_NESTS`] nests, or where a symbol would no longer be an extent of a parameter.
pub(super) fn merge(
    producer: &Instruction,
    consumer: &Instruction,
    program: &mut Program,
    context: &Context<'_>,
) -> Option<Instruction> {
    let (first, second) = (kernel_of(producer, program)?, kernel_of(consumer, program)?);
    let mut registers = Registers::default();
    let pair = Pair { producer: registers.part(producer, first)?, consumer: registers.part(consumer, second)? };
    let merged = context.queries.merge(&pair)?;
    let origins = first.origins.iter().chain(&second.origins).copied().collect();
    let kernel = Kernel { origins, ..Kernel::new(merged.loops.clone(), merged.inputs.len(), None) };
    let kernel = program.add_kernel(kernel);
    let inputs = merged.inputs.iter().map(|register| registers.own(*register)).collect();
    let scalars = merged.scalars.iter().map(|scalar| registers.own_scalar(scalar)).collect();
    let Operation::Kernel { outputs, .. } = &consumer.operation else { return None };
    let operation = Operation::Kernel { kernel, inputs, outputs: outputs.clone(), scalars };
    Some(Instruction { origin: consumer.origin.or(producer.origin), operation })
}

/// Returns the kernel that an instruction calls.
fn kernel_of<'p>(instruction: &Instruction, program: &'p Program) -> Option<&'p Kernel> {
    match &instruction.operation {
        Operation::Kernel { kernel, .. } => Some(program.kernel(*kernel)),
        _ => None,
    }
}

/// The registers of a pair, numbered in the order of their first use. So the [`Pair`], a key of the cache, does not
/// depend on the numbers of the program's registers.
#[derive(Default)]
struct Registers(SmallVec<[Register; 16]>);

impl Registers {
    /// Returns the number of a register, and assigns one on its first use.
    fn number(&mut self, own: Register) -> Register {
        let at = self.0.iter().position(|known| *known == own).unwrap_or_else(|| {
            self.0.push(own);
            self.0.len() - 1
        });
        Register(at as u32)
    }

    /// Returns the program's register for a local number.
    fn own(&self, number: Register) -> Register {
        self.0[number.0 as usize]
    }

    fn own_scalar(&self, scalar: &Scalar) -> Scalar {
        match scalar {
            Scalar::Register(number) => Scalar::Register(self.own(*number)),
            other => other.clone(),
        }
    }

    /// Describes a kernel call by numbered registers.
    fn part(&mut self, instruction: &Instruction, kernel: &Kernel) -> Option<Part> {
        let Operation::Kernel { inputs, outputs, scalars, .. } = &instruction.operation else { return None };
        Some(Part {
            loops: kernel.loops.clone(),
            inputs: inputs.iter().map(|register| self.number(*register)).collect(),
            outputs: outputs.iter().map(|output| self.number(output.to)).collect(),
            scalars: scalars
                .iter()
                .map(|scalar| match scalar {
                    Scalar::Register(register) => Scalar::Register(self.number(*register)),
                    other => other.clone(),
                })
                .collect(),
        })
    }
}

/// A producer and a consumer to merge: the key of the query cache.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Pair {
    producer: Part,
    consumer: Part,
}

/// A kernel's function and the arguments of its call, with the registers numbered by [`Registers`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Part {
    loops: Loops,
    inputs: SmallVec<[Register; 8]>,
    outputs: SmallVec<[Register; 2]>,
    scalars: Vec<Scalar>,
}

/// The merged kernel of a pair, with the arguments to pass: registers are numbers, as in the pair.
#[derive(Clone, Debug)]
pub struct Merged {
    loops: Loops,
    inputs: Inputs,
    scalars: Vec<Scalar>,
}

impl Pair {
    /// Merges the two functions. Returns `None` where that is not possible, or where the result would be too large.
    pub fn merged(&self) -> Option<Merged> {
        let Pair { producer: first, consumer: second } = self;
        if nests(&first.loops.body) + nests(&second.loops.body) > MAX_NESTS {
            return None;
        }
        let mut joined = Joined::new(joined_name(first.loops.name, second.loops.name));
        for part in [first, second] {
            for (register, buffer) in part.inputs.iter().zip(part.loops.buffer_params()) {
                if !first.outputs.contains(register) {
                    joined.input(*register, part, buffer);
                }
            }
        }
        let inputs = joined.inputs.len();
        if inputs + second.outputs.len() > MAX_BUFFERS {
            return None;
        }
        let before = joined.body_of(first, &first.outputs, &[]);
        let intermediates: Vec<(Register, BufferId)> = joined.temporaries.clone();
        let mut outputs = Vec::new();
        for (output, buffer) in second.outputs.iter().zip(second.loops.buffer_params().skip(second.inputs.len())) {
            outputs.push((*output, joined.own(second, buffer)));
        }
        joined.written = outputs;
        let after = joined.body_of(second, &[], &intermediates);
        let scalars = joined.finish(vec![before, after])?;
        let registers = joined.inputs.iter().map(|(register, _)| *register).collect();
        Some(Merged { loops: Loops::ordered(joined.func, inputs), inputs: registers, scalars })
    }
}

/// Counts the statements of a body, each loop nest as one, looking through blocks that only allocate buffers.
fn nests(stmt: &Stmt) -> usize {
    match stmt {
        Stmt::Seq(statements) => statements.iter().map(nests).sum(),
        Stmt::Block(block) if block.only_holds() => nests(&block.body),
        _ => 1,
    }
}

/// The merged function under construction. Its buffer parameters and the producer's outputs are listed with their
/// numbered registers.
struct Joined {
    func: PrimFunc,
    /// The input parameters.
    inputs: Vec<(Register, BufferId)>,
    /// The outputs of the producer, which are temporaries of the merged function.
    temporaries: Vec<(Register, BufferId)>,
    /// The output parameters.
    written: Vec<(Register, BufferId)>,
    /// The scalar parameters, with their arguments.
    scalars: Vec<(Scalar, VarId)>,
    /// Buffers whose extents still refer to the variables of a source function, with the address of the [`Part`] that
    /// they come from. The address, not the function, identifies the source: both kernels may share one function.
    foreign: Vec<(BufferId, usize)>,
}

impl Joined {
    fn new(name: Name) -> Joined {
        Joined {
            func: PrimFunc::new(name),
            inputs: Vec::new(),
            temporaries: Vec::new(),
            written: Vec::new(),
            scalars: Vec::new(),
            foreign: Vec::new(),
        }
    }

    /// Adds an input parameter for `register`, unless the register has one with the same dtype and rank already. Its
    /// extents are translated in [`Joined::adopt`].
    fn input(&mut self, register: Register, from: &Part, buffer: BufferId) {
        let same = |(known, own): &&(Register, BufferId)| {
            let own = self.func.buffer(*own);
            *known == register
                && own.dtype == from.loops.buffer(buffer).dtype
                && own.shape.len() == from.loops.buffer(buffer).shape.len()
        };
        if self.inputs.iter().find(same).is_none() {
            let own = self.own(from, buffer);
            self.inputs.push((register, own));
        }
    }

    /// Copies a buffer of `from` into the merged function. Its extents are translated in [`Joined::adopt`].
    fn own(&mut self, from: &Part, buffer: BufferId) -> BufferId {
        let own = self.func.add_buffer(from.loops.buffer(buffer).clone());
        self.foreign.push((own, std::ptr::from_ref(from).addr()));
        own
    }

    /// Imports the body of one part into the merged function. `makes` are the outputs that become temporaries; `reads`
    /// are the temporaries that replace inputs.
    fn body_of(&mut self, part: &Part, makes: &[Register], reads: &[(Register, BufferId)]) -> Stmt {
        let params: Vec<BufferId> = part.loops.buffer_params().collect();
        for (output, buffer) in makes.iter().zip(params.iter().skip(part.inputs.len())) {
            let own = self.own(part, *buffer);
            self.temporaries.push((*output, own));
        }
        let scalars: Vec<(VarId, Expr)> = part
            .loops
            .scalar_params()
            .zip(&part.scalars)
            .map(|(var, scalar)| (var, self.scalar(&part.loops, var, scalar)))
            .collect();
        let registers = part.inputs.iter().chain(&part.outputs).copied();
        let known: Vec<(BufferId, BufferId)> = params
            .iter()
            .zip(registers)
            .filter_map(|(buffer, register)| Some((*buffer, self.buffer_of(register, reads)?)))
            .collect();
        let first_var = self.func.vars.len();
        let body = import(
            &mut self.func,
            &part.loops,
            &|buffer| known.iter().find(|(theirs, _)| *theirs == buffer).map(|(_, own)| *own),
            &|var| scalars.iter().find(|(theirs, _)| *theirs == var).map(|(_, value)| value.clone()),
        );
        self.adopt(part, first_var, &scalars);
        body
    }

    /// Returns the merged function's buffer for a register.
    fn buffer_of(&self, register: Register, reads: &[(Register, BufferId)]) -> Option<BufferId> {
        let all = reads.iter().chain(&self.temporaries).chain(&self.written).chain(&self.inputs);
        all.into_iter().find(|(known, _)| *known == register).map(|(_, buffer)| *buffer)
    }

    /// Translates the extents, strides and symbols that came from `part` to variables of the merged function. `import`
    /// has added the part's variables, except those of `scalars`, in order, beginning at `first_var`.
    fn adopt(&mut self, part: &Part, first_var: usize, scalars: &[(VarId, Expr)]) {
        let mut renamed: Vec<Expr> = Vec::with_capacity(part.loops.vars.len());
        let mut next = first_var;
        for at in 0..part.loops.vars.len() {
            let value = scalars.iter().find(|(var, _)| var.0 as usize == at).map(|(_, value)| value.clone());
            renamed.push(value.unwrap_or_else(|| {
                next += 1;
                self.func.var_expr(VarId(next as u32 - 1))
            }));
        }
        let own = |expr: &Expr| rx_tir::rewrite::substitute(expr, &|var| renamed.get(var.0 as usize).cloned());
        let source = std::ptr::from_ref(part).addr();
        for (buffer, from) in std::mem::take(&mut self.foreign) {
            if from != source {
                self.foreign.push((buffer, from));
                continue;
            }
            let buffer = &mut self.func.buffers[buffer.0 as usize];
            buffer.shape = buffer.shape.iter().map(own).collect();
            buffer.strides = buffer.strides.take().map(|strides| strides.iter().map(own).collect());
        }
        for symbol in &part.loops.symbols {
            if let Some(Expr::Var { var, .. }) = renamed.get(symbol.0 as usize) {
                self.func.symbols.push(*var);
            }
        }
    }

    /// Returns the scalar parameter for an argument. Equal arguments of equal dtype share a parameter.
    fn scalar(&mut self, from: &PrimFunc, var: VarId, scalar: &Scalar) -> Expr {
        let theirs = *from.var(var);
        let known =
            self.scalars.iter().find(|(known, own)| known == scalar && self.func.var(*own).dtype == theirs.dtype);
        let own = match known {
            Some((_, own)) => *own,
            None => {
                let own = self.func.add_var(theirs.name, theirs.dtype);
                self.scalars.push((scalar.clone(), own));
                own
            }
        };
        self.func.var_expr(own)
    }

    /// Sets the parameters and the body. Returns the arguments of the scalar parameters, in order. Returns `None` where
    /// a symbol is not an extent of a parameter any more.
    fn finish(&mut self, body: Vec<Stmt>) -> Option<Vec<Scalar>> {
        let buffers = self.inputs.iter().chain(&self.written).map(|(_, buffer)| Param::Buffer(*buffer));
        let scalars = self.scalars.iter().map(|(_, var)| Param::Scalar(*var));
        self.func.params = buffers.chain(scalars).collect();
        if !self.func.symbols.iter().all(|symbol| self.func.is_parameter_extent(*symbol)) {
            return None;
        }
        let temporaries = self.temporaries.iter().map(|(_, buffer)| *buffer).collect();
        self.func.body = Stmt::with_buffers(temporaries, Stmt::seq(body));
        Some(self.scalars.iter().map(|(scalar, _)| scalar.clone()).collect())
    }
}

/// Returns the name of the merged kernel, such as `fused_add_relu`, truncated to 80 characters. If the first kernel has
/// no name, the second name is kept.
fn joined_name(first: Name, second: Name) -> Name {
    if first.is_empty() {
        return second;
    }
    let short = |name: Name| name.rsplit('.').next().unwrap_or_default().trim_start_matches("fused_").to_owned();
    let joined = format!("fused_{}_{}", short(first), short(second));
    let cut = joined.char_indices().nth(80).map_or(joined.len(), |(at, _)| at);
    name(&joined[..cut])
}
