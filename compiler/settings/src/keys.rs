//! The table of keys of `rx.toml`.

/// A key of `rx.toml` or of a table in it.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// The name.
    pub name: &'static str,
    /// The type of the value.
    pub kind: Kind,
    /// Whether its table must have the key.
    pub required: bool,
    /// The documentation, a sentence or two of Markdown.
    pub doc: &'static str,
}

/// The type of a key's value.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// `true` or `false`.
    Bool,
    /// An array of path patterns.
    Patterns,
    /// A table from code selectors to severities.
    Severities,
    /// A version of TVM, such as `"0.27"`; [`rx_base::TvmVersion`] defines the valid ones.
    Version,
    /// An array of paths.
    Paths,
    /// A table from names to paths.
    NamedPaths,
    /// An integer of 0 or more.
    Natural,
    /// A table from names to integers of 0 or more.
    NamedNaturals,
    /// One of these words.
    Word(&'static [&'static str]),
    /// A table with these keys.
    Table(&'static [Key]),
    /// An array of tables with these keys.
    Tables(&'static [Key]),
    /// An array of tables that another crate parses.
    RawTables,
}

impl Kind {
    /// Describes the type of the value in words.
    pub const fn words(self) -> &'static str {
        match self {
            Kind::Bool => "`true` or `false`",
            Kind::Patterns | Kind::Paths => "an array of strings",
            Kind::Severities => "a table of severities",
            Kind::Version => "a version in a string, like `\"0.27\"`",
            Kind::NamedPaths => "a table of paths",
            Kind::Natural => "an integer of 0 or more",
            Kind::NamedNaturals => "a table of integers of 0 or more",
            Kind::Word(_) => "a word in a string",
            Kind::Table(_) => "a table",
            Kind::Tables(_) | Kind::RawTables => "an array of tables",
        }
    }
}

const fn key(name: &'static str, kind: Kind, doc: &'static str) -> Key {
    Key { name, kind, required: false, doc }
}

const SEVERITY: Key = key(
    "severity",
    Kind::Severities,
    "How serious each diagnostic is: `error`, `warning`, `info`, `hint` or `off`, by number (`RX0651`), name \
     (`slice-end-clamped`), the first digits of several (`RX06`), or `all`. The most specific selector applies, regardless of the order.",
);

/// The keys of `rx.toml`.
pub const KEYS: &[Key] = &[
    key(
        "include",
        Kind::Patterns,
        "The files to check in a folder, instead of `.rx` files and `.py` files with a Relax or TIR part. A file named \
         on the command line is always checked.",
    ),
    key(
        "exclude",
        Kind::Patterns,
        "Files and folders to skip in a search. A file named on the command line is checked nevertheless, unless \
         `--force-exclude` is given.",
    ),
    key("error-on-warning", Kind::Bool, "Whether `rxcheck` exits with 1 if there are warnings; default `false`."),
    key("hints", Kind::Bool, "Whether `rxcheck` prints hints in every format; default `false`."),
    SEVERITY,
    key("tvm", Kind::Table(TVM), "The version of TVM that builds the modules."),
    RUN_KEY,
    key(
        "overrides",
        Kind::Tables(OVERRIDES),
        "Settings of some files. If two tables set the same key, the later one applies.",
    ),
    key("ops", Kind::RawTables, "Declarations of additional operators."),
];

const TVM: &[Key] = &[key(
    "version",
    Kind::Version,
    "Also report constructs that this TVM cannot parse, lower or build (`RX10xx`), like `--tvm` on the command line.",
)];

const RUN_KEY: Key =
    key("run", Kind::Table(RUN), "Defaults of `rxrun`'s options; paths are relative to the folder of `rx.toml`.");

const RUN: &[Key] = &[
    key("inputs", Kind::Paths, "Files with values of parameters, by name: `.npz` or `.safetensors`. As `--inputs`."),
    key("input", Kind::NamedPaths, "The file of a parameter's value: `x = \"x.npy\"`. As `--input`."),
    key("seed", Kind::Natural, "The seed of the values of parameters that have no array. As `--seed`."),
    key("dims", Kind::NamedNaturals, "Values of symbolic dims: `n = 4`. As `--dim`."),
    key("device", Kind::Word(DEVICES), "The device to run on. As `--device`."),
];

/// The devices on which `rxrun` runs a program.
pub const DEVICES: &[&str] = &["auto", "cpu", "cuda", "interp", "cuda-sim"];

const OVERRIDES: &[Key] = &[
    Key {
        name: "files",
        kind: Kind::Patterns,
        required: true,
        doc: "The files that the table applies to, as in `include`.",
    },
    SEVERITY,
    RUN_KEY,
];
