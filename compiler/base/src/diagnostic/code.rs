//! The table of diagnostic codes: number, slug, default severity and a summary of one line.

use super::Severity;
use std::fmt;
use std::str::FromStr;

macro_rules! codes {
    ($($variant:ident $number:literal $slug:literal $severity:ident $summary:literal;)*) => {
        /// The kind of mistake that a diagnostic reports. Numbers and slugs are stable.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Code { $(#[doc = $summary] $variant),* }

        impl Code {
            /// All codes, in the order of their numbers.
            pub const ALL: &'static [Code] = &[$(Code::$variant),*];

            /// The number, of at most four digits: 501 for `RX0501`.
            pub const fn number(self) -> u16 { match self { $(Code::$variant => $number),* } }

            /// The slug, for example `call-tir-arg-mismatch`.
            pub const fn slug(self) -> &'static str { match self { $(Code::$variant => $slug),* } }

            /// The default severity.
            pub const fn severity(self) -> Severity { match self { $(Code::$variant => Severity::$severity),* } }

            /// The meaning of the code, in one line.
            pub const fn summary(self) -> &'static str { match self { $(Code::$variant => $summary),* } }
        }
    };
}

codes! {
    SettingsSyntax 1 "settings-syntax" Error "The settings file is not TOML.";
    UnknownSetting 2 "unknown-setting" Error "A key the settings file does not have.";
    InvalidSetting 3 "invalid-setting" Error "A value a setting does not take, or a setting that is missing.";
    OperatorDeclaration 4 "operator-declaration" Error "The declaration of an operator in `rx.toml` is not valid.";
    UnusedSuppression 51 "unused-suppression" Warning "A comment suppresses a diagnostic that is not there.";
    MalformedSuppression 52 "malformed-suppression" Warning "A comment for rx that cannot be read, or names no diagnostic.";
    BlanketSuppression 53 "blanket-suppression" Hint "A comment suppresses every diagnostic of its line and names none.";
    SyntaxError 101 "syntax-error" Error "The text is not TVMScript.";
    UnclosedBracket 102 "unclosed-bracket" Error "A bracket is never closed, or closed by another kind.";
    NestingTooDeep 103 "nesting-too-deep" Error "Brackets or blocks nest deeper than 256.";
    InvalidCharacter 104 "invalid-character" Error "A character that no token starts with.";
    UnclosedString 105 "unclosed-string" Error "A string literal is never closed.";
    BadIndentation 106 "bad-indentation" Error "A line is indented to no enclosing block.";
    UnsupportedConstruct 107 "unsupported-construct" Error "A Python construct that has no meaning at this place.";
    MissingReturn 108 "missing-return" Error "A Relax function ends without a return.";
    MissingElse 109 "missing-else" Error "An `if` in a Relax function needs both branches.";
    EmptyBlock 110 "empty-block" Error "A block has no statement.";
    BranchMismatch 111 "if-branch-mismatch" Error "The branches of an `if` end in different variables.";
    MisplacedStatement 112 "misplaced-statement" Error "A statement is in a place where it is not allowed.";
    InvalidEncoding 113 "invalid-encoding" Error "The file is not UTF-8.";
    MalformedMetadata 114 "malformed-metadata" Error "The metadata section cannot be read.";
    StatementTooLong 115 "statement-too-long" Error "A statement of more tokens than are read.";
    UndefinedName 201 "undefined-name" Error "A name is used and never defined.";
    UnknownOperator 202 "unknown-operator" Error "`R` or `T` has nothing of this name.";
    UndefinedSymbolicVar 203 "undefined-symbolic-var" Error "A symbolic dim is used before anything binds it.";
    DataflowVarEscapes 204 "dataflow-var-escapes" Error "A dataflow variable is used outside its block without `R.output`.";
    DuplicateDefinition 205 "duplicate-definition" Error "Two definitions share a name.";
    UnknownVDevice 206 "unknown-vdevice" Error "A virtual device the module does not declare.";
    UnknownConstant 207 "unknown-constant" Error "A constant the metadata section does not have.";
    CapturedPythonName 251 "captured-python-name" Warning "A name of the surrounding Python program; its value is not known here.";
    NoSchema 253 "no-schema" Info "An operator rx has no schema of; its annotation is trusted.";
    AnnotationShapeMismatch 301 "annotation-shape-mismatch" Error "An annotation contradicts the inferred shape.";
    ReturnShapeMismatch 302 "return-shape-mismatch" Error "The returned value contradicts the declared return type.";
    DtypeMismatch 303 "dtype-mismatch" Error "Dtypes that must agree do not.";
    TensorNdimMismatch 304 "tensor-ndim-mismatch" Error "A tensor has another number of dimensions than needed.";
    BroadcastMismatch 305 "broadcast-mismatch" Error "Shapes that do not broadcast.";
    MatmulReductionMismatch 306 "matmul-reduction-mismatch" Error "The reduction dims of a matmul differ.";
    ReshapeCountMismatch 307 "reshape-count-mismatch" Error "A reshape changes the number of elements.";
    ConcatShapeMismatch 308 "concat-shape-mismatch" Error "Concatenated tensors differ off the axis.";
    TupleIndexOutOfRange 309 "tuple-index-out-of-range" Error "A tuple has no such field.";
    MatchCastNeverMatches 310 "match-cast-never-matches" Error "A match_cast that fails for every value.";
    ArgumentType 311 "argument-type" Error "An operator's argument is of the wrong kind.";
    MalformedType 312 "malformed-type" Error "A type annotation cannot be read.";
    UnknownDtype 313 "unknown-dtype" Error "A dtype TVM does not know.";
    MissingAnnotation 314 "missing-annotation" Error "A parameter needs a type.";
    ShapeMismatch 315 "shape-mismatch" Error "Shapes that must agree do not.";
    NotCallable 316 "not-callable" Error "A value that is called is not a function.";
    NotATuple 317 "not-a-tuple" Error "A value that is indexed is not a tuple.";
    ConditionType 318 "condition-type" Error "The condition of an `if` or assertion is not a boolean scalar.";
    VDeviceMismatch 319 "vdevice-mismatch" Error "Operands that must live on one virtual device do not.";
    AssertionNeverHolds 320 "assertion-never-holds" Error "An assertion that fails for every value.";
    UnknownLayout 401 "unknown-layout" Error "A layout string with unknown or missing letters.";
    ConvInChannelsMismatch 402 "conv-in-channels-mismatch" Error "Data and weight disagree on the input channels.";
    ConvGroupsNotDivisible 403 "conv-groups-not-divisible" Error "Channels are not divisible by `groups`.";
    ConvOutputPaddingTooLarge 404 "conv-output-padding-too-large" Error "`output_padding` must be smaller than the stride.";
    ConvEmptyOutput 405 "conv-empty-output" Error "The window is larger than the padded input.";
    AttrOutOfRange 406 "attr-out-of-range" Error "An attribute's value is out of range.";
    AttrBadValue 407 "attr-bad-value" Error "An attribute's value is none of those allowed.";
    AttrType 408 "attr-type" Error "An attribute's value is of the wrong type.";
    AxisOutOfRange 409 "axis-out-of-range" Error "An axis the tensor does not have, or twice the same.";
    TakeAxisRequired 410 "take-axis-required" Error "`take` needs an axis unless the data has one dimension.";
    TakeNanNeedsFloat 411 "take-nan-needs-float" Error "`mode=\"nan\"` needs float data.";
    IndexDtype 412 "index-dtype" Error "Indices must be integers.";
    UnknownArgument 413 "unknown-argument" Error "A call passes an argument the operator does not have.";
    MissingArgument 414 "missing-argument" Error "A call leaves out an argument the operator needs.";
    TooManyArguments 415 "too-many-arguments" Error "A call passes more arguments than the operator has.";
    DuplicateArgument 416 "duplicate-argument" Error "A call passes an argument twice.";
    OperatorConstraint 417 "operator-constraint" Error "A constraint of a declared operator does not hold.";
    AttrNoEffect 452 "attr-no-effect" Hint "An attribute that changes nothing here.";
    CallTirArgMismatch 501 "call-tir-arg-mismatch" Error "An argument does not fit the prim_func's buffer.";
    CallTirOutputMismatch 502 "call-tir-output-mismatch" Error "`out_ty` does not fit the prim_func's output buffer.";
    CallTirArityMismatch 503 "call-tir-arity-mismatch" Error "Arguments and outputs do not match the prim_func's parameters in number.";
    CallTirSymbolConflict 504 "call-tir-symbol-conflict" Error "One symbol of the prim_func would have two values.";
    CallTirOutputNotWritten 505 "call-tir-output-not-written" Error "The prim_func never writes the buffer the call returns.";
    CallArgMismatch 511 "call-arg-mismatch" Error "An argument does not fit the callee's parameter.";
    CallArityMismatch 512 "call-arity-mismatch" Error "A call passes the wrong number of arguments.";
    CallTirSymbolUnproven 554 "call-tir-symbol-unproven" Warning "Two values of one symbol may differ; checked at run time.";
    TakeIndexOutOfBounds 601 "take-index-out-of-bounds" Error "An index is certainly out of bounds.";
    SliceOutOfBounds 602 "slice-out-of-bounds" Error "A slice promises to be in bounds and is not.";
    BufferIndexOutOfBounds 603 "buffer-index-out-of-bounds" Error "A prim_func accesses a buffer out of bounds.";
    TakeIndexMaybeOutOfBounds 651 "take-index-maybe-out-of-bounds" Warning "An index may be out of bounds.";
    SliceEndClamped 652 "slice-end-clamped" Hint "A slice's end lies past the axis and is clamped.";
    BufferIndexMaybeOutOfBounds 653 "buffer-index-maybe-out-of-bounds" Warning "A prim_func accesses a buffer out of bounds for some values of its symbols.";
    ImpureInDataflow 701 "impure-in-dataflow" Error "An impure call inside a dataflow block.";
    ImpureInPureFunction 702 "impure-in-pure-function" Error "An impure call inside a function declared pure.";
    NoLowering 801 "no-lowering" Error "rx cannot lower this.";
    RunFailed 802 "run-failed" Error "The program failed when it ran.";
    BadInput 803 "bad-input" Error "An argument does not fit its parameter, or is missing.";
    NumInputOutOfRange 901 "num-input-out-of-range" Error "`num_input` does not fit the parameters.";
    UntransformedParam 951 "untransformed-param" Warning "A raw weight reaches a parameter that expects a transformed one.";
    SignatureChanged 952 "signature-changed" Info "A pass changes a function's signature.";
    LayoutNotLegalized 1001 "layout-not-legalized" Warning "The chosen TVM lowers this operator in other layouts only.";
    OperatorNotLegalized 1002 "operator-not-legalized" Warning "The chosen TVM cannot lower this; its default pipeline stops at it.";
    ScheduleRuleFails 1003 "schedule-rule-fails" Warning "A schedule rule of the chosen TVM fails on this when it builds for CUDA.";
    TextNotParsed 1004 "text-not-parsed" Warning "The chosen TVM's parser does not read this text.";
    SymbolicVarRedeclared 1005 "symbolic-var-redeclared" Warning "A symbol of the file is declared again where the chosen TVM's parser refuses it.";
    OutdatedSpelling 1006 "outdated-spelling" Warning "A spelling that the chosen TVM does not read.";
    BlockRegionMismatch 1201 "block-region-mismatch" Warning "A block accesses more than its `T.reads` or `T.writes`.";
    ReductionWithoutInit 1251 "reduction-without-init" Warning "A reduction adds to memory without an initial value.";
    WriteRace 1252 "write-race" Warning "Iterations that may run at once write one element.";
    ShadowedLoopVariable 1253 "shadowed-loop-variable" Warning "A loop's variable hides that of a loop around it.";
    ReadBeforeWrite 1254 "read-before-write" Warning "A kernel reads a buffer that it allocates but has not written.";
}

impl Code {
    /// The index in [`Code::ALL`].
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Whether the user may change the severity or disable the code. Syntax errors must remain errors, because nothing
    /// is known about the text that could not be parsed.
    pub const fn is_choosable(self) -> bool {
        self.number() >= 50 && self.number() / 100 != 1
    }

    /// The address of the web page that explains the code.
    pub fn url(self) -> String {
        format!("{}/blob/main/docs/codes/{}.md", env!("CARGO_PKG_REPOSITORY"), self.to_string().to_lowercase())
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RX{:04}", self.number())
    }
}

/// The error for a text that is no code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseCodeError(pub String);

impl fmt::Display for ParseCodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no diagnostic is called `{}`", self.0)
    }
}

impl std::error::Error for ParseCodeError {}

impl FromStr for Code {
    type Err = ParseCodeError;

    /// Parses `RX0501` or `call-tir-arg-mismatch`.
    fn from_str(text: &str) -> Result<Code, ParseCodeError> {
        Code::ALL
            .iter()
            .copied()
            .find(|code| code.slug() == text || code.to_string() == text)
            .ok_or_else(|| ParseCodeError(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::Code;

    #[test]
    fn numbers_ascend_and_slugs_read_back() {
        assert!(Code::ALL.windows(2).all(|pair| pair[0].number() < pair[1].number()));
        for code in Code::ALL {
            assert_eq!(code.slug().parse(), Ok(*code));
            assert_eq!(code.to_string().parse(), Ok(*code));
        }
    }
}
