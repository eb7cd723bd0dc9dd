//! Programs: what a device runs.

use crate::dynamic::DynamicCall;
use crate::loops::Loops;
use rustc_hash::FxHashMap;
use rx_base::{DType, Dim, Name};
use rx_ir::{Literal, Origin, StructInfo};
use rx_tir::PrimFunc;
use smallvec::SmallVec;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// A value of a procedure, by number. Each is written once on every way through the procedure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Register(pub u32);

/// A kernel, by its index in [`Program::kernels`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KernelId(pub u32);

/// A procedure, by its index in [`Program::procedures`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProcedureId(pub u32);

/// A constant, by its index in [`Program::constants`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConstantId(pub u32);

/// A piece of a procedure's memory, by its index in [`Procedure::storages`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StorageId(pub u32);

/// An entry function made into procedures and kernels.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// The entry is the first.
    pub procedures: Vec<Procedure>,
    /// What computes.
    pub kernels: Vec<Kernel>,
    /// Tensors that stand in the program.
    pub constants: Vec<Constant>,
}

/// A function of the loop-level IR: input buffers, output buffers, scalars.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// The function, which kernels that do the same share.
    pub loops: Loops,
    /// Its name in the program: the function's, with a number where others have the same.
    pub name: Name,
    /// The Relax statements that it computes: one before fusion.
    pub origins: SmallVec<[Origin; 1]>,
    /// How many of its buffer parameters are inputs; the others are outputs.
    pub inputs: usize,
    /// Whether the device schedules it as it is: no step joins anything to it.
    pub whole: bool,
}

impl Kernel {
    /// A kernel of a statement, whose first `inputs` buffer parameters are inputs.
    pub(crate) fn new(loops: Loops, inputs: usize, origin: Option<Origin>) -> Kernel {
        Kernel { name: loops.name, loops, origins: origin.into_iter().collect(), inputs, whole: false }
    }

    /// Whether it makes each element of its outputs from the element of an input at the same place ([`Loops::follows`]).
    pub(crate) fn follows(&self, input: usize) -> bool {
        self.loops.follows(input, self.inputs)
    }

    /// The same with another function.
    pub(crate) fn with(&self, loops: Loops) -> Kernel {
        Kernel { name: loops.name, loops, ..self.clone() }
    }

    /// The function under the kernel's name, with the statements that it computes.
    pub fn func(&self) -> PrimFunc {
        PrimFunc { name: self.name, origins: self.origins.to_vec(), ..PrimFunc::clone(&self.loops) }
    }
}

/// A tensor that stands in the program.
#[derive(Clone, Debug, PartialEq)]
pub enum Constant {
    /// A scalar: `R.const(1.0, "float32")`.
    Scalar(Literal, DType),
    /// The elements of a list, row-major: `R.const([1, 2])`.
    Elements {
        /// The elements.
        elements: Arc<[Literal]>,
        /// The extents; their product is the number of elements.
        shape: Vec<i64>,
        /// The element type.
        dtype: DType,
    },
    /// A constant of the metadata section.
    Metadata {
        /// Its key.
        key: Name,
        /// Its index under the key.
        index: u32,
    },
}

/// A Relax function as instructions.
#[derive(Clone, Debug)]
pub struct Procedure {
    /// The function's name.
    pub name: Name,
    /// Parameters, which are the first registers; what a closure captured comes behind them.
    pub params: Vec<(Name, StructInfo)>,
    /// How many leading parameters are inputs and no weights, where the function says so.
    pub num_input: Option<i64>,
    /// Whether its result is kept for the next call with the very same arguments ([`rx_ir::function::ONCE`]).
    pub once: bool,
    /// How many registers follow the parameters because the function is nested and sees its surroundings.
    pub captured: usize,
    /// The types of the registers, as far as they are known before the program runs.
    pub types: Vec<StructInfo>,
    /// The type of the result.
    pub ret: StructInfo,
    /// Whether a call has no effect but its value.
    pub pure: bool,
    /// What it does.
    pub code: Vec<Instruction>,
    /// What it returns.
    pub result: Register,
    /// The memory of kernels' outputs: sizes in bytes. Outputs whose lifetimes do not meet share one.
    pub storages: Vec<Vec<StorageSize>>,
}

/// The bytes of a tensor: a storage is as large as the largest of those that use it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StorageSize {
    /// The extents.
    pub shape: Arc<[Dim]>,
    /// The element type.
    pub dtype: DType,
}

/// An instruction and the Relax statement it comes from.
#[derive(Clone, Debug)]
pub struct Instruction {
    /// Where it comes from, where that is a statement.
    pub origin: Option<Origin>,
    /// What it does.
    pub operation: Operation,
}

/// The input buffers of a kernel.
pub type Inputs = SmallVec<[Register; 4]>;

/// The output buffers of a kernel: of most kernels one.
pub type Outputs = SmallVec<[Output; 1]>;

/// What an instruction does.
#[derive(Clone, Debug)]
pub enum Operation {
    /// Runs a kernel.
    Kernel {
        /// Which.
        kernel: KernelId,
        /// Its input buffers.
        inputs: Inputs,
        /// Its output buffers.
        outputs: Outputs,
        /// Its scalars.
        scalars: Vec<Scalar>,
    },
    /// The tensor `from` under another shape of as many elements.
    View {
        /// The result.
        to: Register,
        /// The tensor.
        from: Register,
        /// The new extents.
        shape: Arc<[Dim]>,
    },
    /// The same value.
    Copy {
        /// The result.
        to: Register,
        /// The value.
        from: Register,
    },
    /// A constant.
    Constant {
        /// The result.
        to: Register,
        /// Which.
        constant: ConstantId,
    },
    /// A tuple.
    Tuple {
        /// The result.
        to: Register,
        /// Its fields.
        fields: Vec<Register>,
    },
    /// A field of a tuple.
    Field {
        /// The result.
        to: Register,
        /// The tuple.
        from: Register,
        /// Which.
        index: usize,
    },
    /// A shape.
    Shape {
        /// The result.
        to: Register,
        /// Its dims.
        dims: Vec<Dim>,
    },
    /// A scalar that is no tensor.
    Scalar {
        /// The result.
        to: Register,
        /// Its value.
        value: Scalar,
    },
    /// A string.
    String {
        /// The result.
        to: Register,
        /// Its text.
        value: Arc<str>,
    },
    /// The value that stands for nothing.
    Null {
        /// The result.
        to: Register,
    },
    /// Computes on the host, from whole values: what loops cannot.
    Host {
        /// The result.
        to: Register,
        /// The operator, by its name without `relax.`; the runtime has a function of this name.
        function: Name,
        /// One value per parameter of the operator, attributes too; those of a variadic parameter are a tuple.
        arguments: Vec<Register>,
        /// Whether it does something besides: it is not left out, and keeps its place among the others.
        effect: bool,
    },
    /// Calls an operator whose result's type is found out then.
    Dynamic {
        /// The result.
        to: Register,
        /// The operator and its arguments.
        call: Arc<DynamicCall>,
        /// The operands that are no literals.
        operands: Vec<Register>,
    },
    /// Checks that the value is of the type; symbols of the type that have no value yet get theirs from it.
    Match {
        /// The value.
        value: Register,
        /// The type.
        ty: StructInfo,
        /// What the value is, for the message: ``parameter `x` ``.
        what: String,
    },
    /// Says that a variable of the text is bound to the value: for those who watch a run. Only [`crate::lower_watched`] writes it.
    Bound {
        /// The variable.
        variable: Name,
        /// Its value.
        value: Register,
    },
    /// Runs the first of `arms` whose condition holds, else `otherwise`; then `to` is the register it ends in.
    If {
        /// Code that computes a condition, the condition, and what is done.
        arms: Vec<(Vec<Instruction>, Register, Branch)>,
        /// What is done where no condition holds.
        otherwise: Branch,
        /// The result.
        to: Register,
    },
    /// Calls a procedure.
    Call {
        /// The result.
        to: Register,
        /// Which.
        procedure: ProcedureId,
        /// Arguments, and what a nested function sees of its surroundings.
        arguments: Vec<Register>,
    },
    /// A function as a value.
    Closure {
        /// The result.
        to: Register,
        /// Which.
        procedure: ProcedureId,
        /// The values of its last registers.
        captured: Vec<Register>,
    },
    /// Calls a function value.
    CallClosure {
        /// The result.
        to: Register,
        /// The function value.
        closure: Register,
        /// Its arguments.
        arguments: Vec<Register>,
    },
}

/// A branch of an `if`: code and the register it ends in.
#[derive(Clone, Debug)]
pub struct Branch {
    /// What is done.
    pub code: Vec<Instruction>,
    /// What it ends in.
    pub result: Register,
}

/// A kernel's output.
#[derive(Clone, Debug)]
pub struct Output {
    /// The result.
    pub to: Register,
    /// Its extents.
    pub shape: Arc<[Dim]>,
    /// Its element type.
    pub dtype: DType,
    /// Its memory; none has memory of its own: it may outlive the procedure.
    pub storage: Option<StorageId>,
}

/// A scalar argument of a kernel. Floats are compared by their bits.
#[derive(Clone, Debug)]
pub enum Scalar {
    /// An integer over the procedure's symbols.
    Int(Dim),
    /// A float.
    Float(f64),
    /// A truth value.
    Bool(bool),
    /// The value of a register that is a scalar, or a tensor of one element.
    Register(Register),
}

impl PartialEq for Scalar {
    fn eq(&self, other: &Scalar) -> bool {
        match (self, other) {
            (Scalar::Int(a), Scalar::Int(b)) => a == b,
            (Scalar::Float(a), Scalar::Float(b)) => a.to_bits() == b.to_bits(),
            (Scalar::Bool(a), Scalar::Bool(b)) => a == b,
            (Scalar::Register(a), Scalar::Register(b)) => a == b,
            (Scalar::Int(_) | Scalar::Float(_) | Scalar::Bool(_) | Scalar::Register(_), _) => false,
        }
    }
}

impl Eq for Scalar {}

impl Hash for Scalar {
    fn hash<H: Hasher>(&self, state: &mut H) {
        std::mem::discriminant(self).hash(state);
        match self {
            Scalar::Int(value) => value.hash(state),
            Scalar::Float(value) => value.to_bits().hash(state),
            Scalar::Bool(value) => value.hash(state),
            Scalar::Register(register) => register.hash(state),
        }
    }
}

impl Program {
    /// The kernel.
    pub fn kernel(&self, id: KernelId) -> &Kernel {
        &self.kernels[id.0 as usize]
    }

    /// The kernels that differ, each the first of those that do the same; and for each kernel which of them it is.
    pub fn distinct(&self) -> (Vec<usize>, Vec<&Kernel>) {
        let mut kernels: Vec<&Kernel> = Vec::new();
        let mut known: FxHashMap<&Loops, usize> = FxHashMap::default();
        let index = self.kernels.iter().map(|kernel| {
            *known.entry(&kernel.loops).or_insert_with(|| {
                kernels.push(kernel);
                kernels.len() - 1
            })
        });
        (index.collect(), kernels)
    }

    /// Adds a kernel.
    pub(crate) fn add_kernel(&mut self, kernel: Kernel) -> KernelId {
        self.kernels.push(kernel);
        KernelId(self.kernels.len() as u32 - 1)
    }

    /// Gives kernels and instructions the origins that `of` says; where it says none, they have none.
    pub fn map_origins(&mut self, of: &dyn Fn(Origin) -> Option<Origin>) {
        for kernel in &mut self.kernels {
            kernel.origins = kernel.origins.iter().filter_map(|origin| of(*origin)).collect();
        }
        self.procedures.iter_mut().for_each(|procedure| map_origins(&mut procedure.code, of));
    }

    /// The procedure.
    pub fn procedure(&self, id: ProcedureId) -> &Procedure {
        &self.procedures[id.0 as usize]
    }
}

fn map_origins(code: &mut [Instruction], of: &dyn Fn(Origin) -> Option<Origin>) {
    for instruction in code {
        instruction.origin = instruction.origin.and_then(of);
        if let Operation::If { arms, otherwise, .. } = &mut instruction.operation {
            for (condition, _, branch) in arms {
                map_origins(condition, of);
                map_origins(&mut branch.code, of);
            }
            map_origins(&mut otherwise.code, of);
        }
    }
}

impl Procedure {
    /// A new register for values of this type.
    pub(crate) fn add_register(&mut self, ty: StructInfo) -> Register {
        self.types.push(ty);
        Register(self.types.len() as u32 - 1)
    }

    /// A procedure without instructions.
    pub(crate) fn empty() -> Procedure {
        Procedure {
            name: Default::default(),
            params: Vec::new(),
            num_input: None,
            once: false,
            captured: 0,
            types: Vec::new(),
            ret: StructInfo::Object,
            pure: true,
            code: Vec::new(),
            result: Register(0),
            storages: Vec::new(),
        }
    }
}

impl Operation {
    /// Calls `visit` on every register it reads, those of its branches included.
    #[inline]
    pub fn for_each_read(&self, visit: &mut impl FnMut(Register)) {
        match self {
            Operation::Kernel { inputs, scalars, .. } => {
                inputs.iter().for_each(|input| visit(*input));
                for scalar in scalars {
                    if let Scalar::Register(register) = scalar {
                        visit(*register);
                    }
                }
            }
            Operation::View { from, .. } => visit(*from),
            other => other.for_each_other_read(visit),
        }
    }

    /// As [`Operation::for_each_read`], of what is neither a kernel nor a view.
    fn for_each_other_read(&self, visit: &mut dyn FnMut(Register)) {
        let visit = &mut |register| visit(register);
        match self {
            Operation::Copy { from, .. } | Operation::Field { from, .. } => visit(*from),
            Operation::Tuple { fields, .. } => fields.iter().for_each(|field| visit(*field)),
            Operation::Match { value, .. } | Operation::Bound { value, .. } => visit(*value),
            Operation::Scalar { value: Scalar::Register(register), .. } => visit(*register),
            Operation::Call { arguments, .. }
            | Operation::Host { arguments, .. }
            | Operation::Dynamic { operands: arguments, .. }
            | Operation::Closure { captured: arguments, .. } => {
                arguments.iter().for_each(|argument| visit(*argument));
            }
            Operation::CallClosure { closure, arguments, .. } => {
                visit(*closure);
                arguments.iter().for_each(|argument| visit(*argument));
            }
            Operation::If { arms, otherwise, .. } => {
                for (code, condition, branch) in arms {
                    code.iter().for_each(|inner| inner.operation.for_each_read(visit));
                    visit(*condition);
                    branch.for_each_read(visit);
                }
                otherwise.for_each_read(visit);
            }
            Operation::Kernel { .. }
            | Operation::View { .. }
            | Operation::Constant { .. }
            | Operation::Null { .. }
            | Operation::Shape { .. }
            | Operation::String { .. }
            | Operation::Scalar { .. } => {}
        }
    }
}

impl Branch {
    fn for_each_read(&self, visit: &mut impl FnMut(Register)) {
        self.code.iter().for_each(|inner| inner.operation.for_each_read(visit));
        visit(self.result);
    }
}
