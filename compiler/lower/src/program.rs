//! The program representation that every device runs: procedures of instructions over registers, kernels, and
//! constants.

use crate::dynamic::DynamicCall;
use crate::loops::Loops;
use rustc_hash::FxHashMap;
use rx_base::{DType, Dim, Name};
use rx_ir::{Literal, Origin, StructInfo};
use rx_tir::PrimFunc;
use smallvec::SmallVec;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// A value of a procedure, by its number. No register is written twice on a path.
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

/// A piece of memory for kernel outputs, by its index in [`Procedure::storages`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StorageId(pub u32);

/// A lowered entry function, with all procedures, kernels and constants that it needs.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// The procedures; the first is the entry.
    pub procedures: Vec<Procedure>,
    /// The kernels.
    pub kernels: Vec<Kernel>,
    /// The tensor constants.
    pub constants: Vec<Constant>,
}

/// A kernel: a function of the loop-level IR whose parameters are input buffers, output buffers and scalars.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// The function.
    pub loops: Loops,
    /// The name. Until the last step of the pipeline it is the name of the function in `loops`. That step gives kernels
    /// with equal functions the same name, and kernels with different functions different names: the last component of
    /// the function's name, with a number if a procedure or an earlier kernel with another function has that name. For
    /// example, two different functions `nn.conv2d` become `conv2d` and `conv2d1`.
    pub name: Name,
    /// The Relax statements that the kernel computes: one before fusion, those of all merged kernels after it. Empty,
    /// for example, for a kernel that a step adds.
    pub origins: SmallVec<[Origin; 1]>,
    /// The number of leading buffer parameters that are inputs; the other buffer parameters are outputs.
    pub inputs: usize,
    /// Whether the kernel computes a fused chain of operators, such as attention. The device can schedule exactly this
    /// function as one kernel, so fusion merges no prologue into it.
    pub whole: bool,
}

impl Kernel {
    /// Creates a kernel. Its first `inputs` buffer parameters are inputs.
    pub(crate) fn new(loops: Loops, inputs: usize, origin: Option<Origin>) -> Kernel {
        Kernel { name: loops.name, loops, origins: origin.into_iter().collect(), inputs, whole: false }
    }

    /// Whether each output element is computed from the element of an input at the same indices ([`Loops::follows`]).
    pub(crate) fn follows(&self, input: usize) -> bool {
        self.loops.follows(input, self.inputs)
    }

    /// Returns the kernel with another function.
    pub(crate) fn with(&self, loops: Loops) -> Kernel {
        Kernel { name: loops.name, loops, ..self.clone() }
    }

    /// Returns the function with the kernel's name and source statements.
    pub fn func(&self) -> PrimFunc {
        PrimFunc { name: self.name, origins: self.origins.to_vec(), ..PrimFunc::clone(&self.loops) }
    }
}

/// A constant tensor of the program.
#[derive(Clone, Debug, PartialEq)]
pub enum Constant {
    /// A scalar: `R.const(1.0, "float32")`.
    Scalar(Literal, DType),
    /// The elements of a list, in row-major order: `R.const([1, 2])`.
    Elements {
        /// The elements.
        elements: Arc<[Literal]>,
        /// The shape. The product of its extents is the number of elements.
        shape: Vec<i64>,
        /// The element type.
        dtype: DType,
    },
    /// A constant in the metadata section of the module.
    Metadata {
        /// The key in the section.
        key: Name,
        /// The index under the key.
        index: u32,
    },
}

/// A Relax function as a list of instructions.
#[derive(Clone, Debug)]
pub struct Procedure {
    /// The name: that of the Relax function, or a new one if a step of lowering adds the procedure.
    pub name: Name,
    /// The parameters. They are the first registers, followed by the captured values of a closure.
    pub params: Vec<(Name, StructInfo)>,
    /// The number of leading parameters that are inputs; the others are weights. `None` if the function does not
    /// declare it.
    pub num_input: Option<i64>,
    /// Whether the result of a call is cached. A call with arguments identical to those of the cached call then returns
    /// it, without executing the code ([`rx_ir::function::ONCE`]).
    pub once: bool,
    /// The number of captured values, in a nested function. Their registers come after those of the parameters.
    pub captured: usize,
    /// The types of the registers, as far as they are known at compile time.
    pub types: Vec<StructInfo>,
    /// The type of the result.
    pub ret: StructInfo,
    /// Whether a call has no side effects.
    pub pure: bool,
    /// The instructions.
    pub code: Vec<Instruction>,
    /// The register that is returned.
    pub result: Register,
    /// The memory of kernel outputs: for each storage, the sizes of the outputs that share it. Their lifetimes do not
    /// overlap.
    pub storages: Vec<Vec<StorageSize>>,
}

/// The size of a tensor. A storage is as large as the largest tensor that uses it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StorageSize {
    /// The shape.
    pub shape: Arc<[Dim]>,
    /// The element type.
    pub dtype: DType,
}

/// An instruction, with the Relax statement that it comes from.
#[derive(Clone, Debug)]
pub struct Instruction {
    /// The statement, if there is one.
    pub origin: Option<Origin>,
    /// The operation.
    pub operation: Operation,
}

/// The registers of a kernel's input buffers.
pub type Inputs = SmallVec<[Register; 4]>;

/// The outputs of a kernel; most kernels have one.
pub type Outputs = SmallVec<[Output; 1]>;

/// The operation of an instruction.
#[derive(Clone, Debug)]
pub enum Operation {
    /// Runs a kernel.
    Kernel {
        /// The kernel.
        kernel: KernelId,
        /// The input buffers, in the order of the parameters.
        inputs: Inputs,
        /// The output buffers, in the order of the parameters.
        outputs: Outputs,
        /// The scalar arguments.
        scalars: Vec<Scalar>,
    },
    /// Views the tensor `from` under another shape with as many elements. No data is moved.
    View {
        /// The result.
        to: Register,
        /// The tensor.
        from: Register,
        /// The new shape.
        shape: Arc<[Dim]>,
    },
    /// Copies a value to another register. The data of tensors is shared, not copied.
    Copy {
        /// The result.
        to: Register,
        /// The value.
        from: Register,
    },
    /// Loads a constant.
    Constant {
        /// The result.
        to: Register,
        /// The constant.
        constant: ConstantId,
    },
    /// Makes a tuple.
    Tuple {
        /// The result.
        to: Register,
        /// Its fields.
        fields: Vec<Register>,
    },
    /// Reads a field of a tuple.
    Field {
        /// The result.
        to: Register,
        /// The tuple.
        from: Register,
        /// The index of the field.
        index: usize,
    },
    /// Makes a shape value.
    Shape {
        /// The result.
        to: Register,
        /// Its dims.
        dims: Vec<Dim>,
    },
    /// Makes a scalar (not a tensor).
    Scalar {
        /// The result.
        to: Register,
        /// Its value.
        value: Scalar,
    },
    /// Makes a string.
    String {
        /// The result.
        to: Register,
        /// Its text.
        value: Arc<str>,
    },
    /// Makes the null value.
    Null {
        /// The result.
        to: Register,
    },
    /// Computes an operator on the host from whole values, mainly one that cannot be expressed as loops.
    Host {
        /// The result.
        to: Register,
        /// The operator's name without `relax.`. The runtime has a function of this name.
        function: Name,
        /// One value for each parameter of the operator, attributes included. The operands of a variadic parameter are
        /// a tuple.
        arguments: Vec<Register>,
        /// Whether it has side effects, so that it may not be removed or reordered.
        effect: bool,
    },
    /// Calls an operator that is lowered at run time, when the types of the operands are known.
    Dynamic {
        /// The result.
        to: Register,
        /// The operator and its arguments.
        call: Arc<DynamicCall>,
        /// The operand registers. The call's arguments refer to them by index.
        operands: Vec<Register>,
    },
    /// Checks that a value has a type. Symbols of the type that have no value yet get theirs from the checked value.
    Match {
        /// The checked value.
        value: Register,
        /// The expected type.
        ty: StructInfo,
        /// A description of the value for the error message, such as ``parameter `x` ``.
        subject: String,
    },
    /// Reports to the observer of a run that a variable of the source is bound to a value. Only
    /// [`crate::lower_watched`] emits it.
    Bound {
        /// The variable.
        variable: Name,
        /// Its value.
        value: Register,
    },
    /// Runs the first of `arms` whose condition holds, otherwise `otherwise`. `to` gets the result of the branch that
    /// ran.
    If {
        /// For each arm: the code that computes the condition, the condition's register, and the branch.
        arms: Vec<(Vec<Instruction>, Register, Branch)>,
        /// The branch to run if no condition holds.
        otherwise: Branch,
        /// The result.
        to: Register,
    },
    /// Calls a procedure.
    Call {
        /// The result.
        to: Register,
        /// The procedure.
        procedure: ProcedureId,
        /// The arguments.
        arguments: Vec<Register>,
    },
    /// Makes a closure.
    Closure {
        /// The result.
        to: Register,
        /// The procedure.
        procedure: ProcedureId,
        /// The captured values, which are passed after the arguments.
        captured: Vec<Register>,
    },
    /// Calls a closure.
    CallClosure {
        /// The result.
        to: Register,
        /// The closure.
        closure: Register,
        /// The arguments.
        arguments: Vec<Register>,
    },
}

/// A branch of an `if`.
#[derive(Clone, Debug)]
pub struct Branch {
    /// The instructions.
    pub code: Vec<Instruction>,
    /// The register with the branch's result.
    pub result: Register,
}

/// A kernel's output.
#[derive(Clone, Debug)]
pub struct Output {
    /// The register that it defines.
    pub to: Register,
    /// The shape.
    pub shape: Arc<[Dim]>,
    /// The element type.
    pub dtype: DType,
    /// The storage that holds it. `None` means separate memory: the memory plan has not run, the kernel is in a branch,
    /// or the output may outlive the procedure or be read by other code (a call, a closure, a branch).
    pub storage: Option<StorageId>,
}

/// A scalar: an argument of a kernel, or the value of an [`Operation::Scalar`]. Floats are equal if their bits are.
#[derive(Clone, Debug)]
pub enum Scalar {
    /// An integer expression over the procedure's symbols.
    Int(Dim),
    /// A float.
    Float(f64),
    /// A Boolean.
    Bool(bool),
    /// The value of a register that holds a scalar or a tensor of one element.
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
    /// Returns a kernel.
    pub fn kernel(&self, id: KernelId) -> &Kernel {
        &self.kernels[id.0 as usize]
    }

    /// Groups the kernels by function. Returns for each kernel the index of its group, and the first kernel of each
    /// group.
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

    /// Adds a kernel, and returns its id.
    pub(crate) fn add_kernel(&mut self, kernel: Kernel) -> KernelId {
        self.kernels.push(kernel);
        KernelId(self.kernels.len() as u32 - 1)
    }

    /// Replaces the origins of kernels and instructions by `of`; those for which it returns `None` are removed.
    pub fn map_origins(&mut self, of: &dyn Fn(Origin) -> Option<Origin>) {
        for kernel in &mut self.kernels {
            kernel.origins = kernel.origins.iter().filter_map(|origin| of(*origin)).collect();
        }
        self.procedures.iter_mut().for_each(|procedure| map_origins(&mut procedure.code, of));
    }

    /// Returns a procedure.
    pub fn procedure(&self, id: ProcedureId) -> &Procedure {
        &self.procedures[id.0 as usize]
    }
}

/// Replaces the origins of instructions, branches included.
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
    /// Adds a register of type `ty`.
    pub(crate) fn add_register(&mut self, ty: StructInfo) -> Register {
        self.types.push(ty);
        Register(self.types.len() as u32 - 1)
    }

    /// Returns a procedure without instructions.
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
    /// Calls `visit` on every register that the operation reads, including the reads of its branches.
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

    /// Implements [`Operation::for_each_read`] for operations other than kernels and views.
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
    /// Calls `visit` on every register that the branch reads, and on its result.
    fn for_each_read(&self, visit: &mut impl FnMut(Register)) {
        self.code.iter().for_each(|inner| inner.operation.for_each_read(visit));
        visit(self.result);
    }
}
