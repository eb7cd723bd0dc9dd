//! Chooses the module of a file that is run or transformed: the requested one, otherwise the only plausible one.

use rx_base::Name;
use rx_db::{FileId, FunctionKind, FunctionRow, ModuleId, ModuleRow, OUTSIDE, Workspace};
use std::fmt;

/// The function that is run if none is requested.
pub const MAIN: &str = "main";

/// The reason why no module is chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unchosen {
    /// The file has no module of this name.
    Unknown {
        /// The requested name.
        wanted: String,
        /// The modules of the file.
        known: Vec<ModuleRow>,
    },
    /// Several modules are plausible.
    Several {
        /// The property that they share.
        common: Common,
        /// The modules.
        candidates: Vec<ModuleRow>,
    },
}

/// A property that several modules share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Common {
    /// The name of their class.
    Class(String),
    /// Each has a function of this name.
    Function(String),
    /// None has a function of this name.
    NoFunction(String),
}

impl Unchosen {
    /// Returns the modules from which to choose.
    pub fn modules(&self) -> &[ModuleRow] {
        match self {
            Unchosen::Unknown { known, .. } => known,
            Unchosen::Several { candidates, .. } => candidates,
        }
    }
}

impl fmt::Display for Unchosen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let listed = |rows: &[ModuleRow]| rows.iter().map(described).collect::<Vec<_>>().join(", ");
        match self {
            Unchosen::Unknown { wanted, known } if known.is_empty() => {
                write!(f, "there is no module `{wanted}`: the file has no module")
            }
            Unchosen::Unknown { wanted, known } => {
                write!(f, "there is no module `{wanted}`; there is {}", listed(known))
            }
            Unchosen::Several { common, candidates } => {
                match common {
                    Common::Class(class) => write!(f, "several modules are called `{class}`")?,
                    Common::Function(function) => write!(f, "several modules have a function `{function}`")?,
                    Common::NoFunction(function) => write!(f, "no module has a function `{function}`")?,
                }
                write!(f, "; choose one with --module: {}", listed(candidates))
            }
        }
    }
}

/// Describes a module for a list in a message.
fn described(row: &ModuleRow) -> String {
    let ModuleRow { label, line, .. } = row;
    match &**label {
        OUTSIDE => format!("`{OUTSIDE}` (the functions outside of modules)"),
        label if label.contains('#') => format!("`{label}` (line {line})"),
        label => format!("`{label}`"),
    }
}

/// Chooses a module: the one called `wanted`, otherwise the only one. If there are several, chooses the only one that
/// has a Relax function `entry` (or `main`); if none has, the only one that has any function of this name; if none has
/// and no `entry` is given, the only one that has a public Relax function. Functions outside of classes count as a
/// module, but a class takes precedence.
///
/// # Errors
/// Returns an error if there is no module called `wanted`, or if several are plausible.
pub fn choose(
    workspace: &Workspace,
    file: FileId,
    wanted: Option<&str>,
    entry: Option<&str>,
) -> Result<ModuleId, Unchosen> {
    let chosen = |row: &ModuleRow| ModuleId { file, module: row.module };
    let rows = workspace.modules(file);
    if let Some(wanted) = wanted {
        return called(&rows, wanted).map(|row| chosen(&row));
    }
    if rows.len() <= 1 {
        return Ok(rows.first().map_or(ModuleId { file, module: None }, chosen));
    }
    let functions = workspace.functions(file);
    let entry_name = entry.unwrap_or(MAIN);
    let has = |row: &ModuleRow, is_it: &dyn Fn(&FunctionRow) -> bool| {
        functions.iter().any(|function| function.module == row.module && is_it(function))
    };
    let is_entry = |function: &FunctionRow| function.name.as_str() == entry_name;
    let is_relax = |function: &FunctionRow| function.kind == FunctionKind::Relax;
    let is_public_relax = |function: &FunctionRow| is_relax(function) && !function.private && entry.is_none();
    let tiers: [&dyn Fn(&FunctionRow) -> bool; 3] =
        [&|function| is_entry(function) && is_relax(function), &is_entry, &is_public_relax];
    for (tier, is_it) in tiers.into_iter().enumerate() {
        let having: Vec<ModuleRow> = rows.iter().filter(|row| has(row, is_it)).cloned().collect();
        if let Some(only) = only(&having) {
            return Ok(chosen(only));
        }
        if !having.is_empty() {
            let function = entry_name.to_owned();
            let common = if tier < 2 { Common::Function(function) } else { Common::NoFunction(function) };
            return Err(Unchosen::Several { common, candidates: having });
        }
    }
    match only(&rows) {
        Some(only) => Ok(chosen(only)),
        None => Err(Unchosen::Several { common: Common::NoFunction(entry_name.to_owned()), candidates: rows }),
    }
}

/// Returns the only class among the modules, or the first module if there is no class.
fn only(rows: &[ModuleRow]) -> Option<&ModuleRow> {
    let mut classes = rows.iter().filter(|row| row.module.is_some());
    match (classes.next(), classes.next()) {
        (Some(only), None) => Some(only),
        (None, _) => rows.first(),
        _ => None,
    }
}

/// Returns the module with this label. A class whose name is unique has its name as label; otherwise its name gives an
/// error that lists the candidates.
fn called(rows: &[ModuleRow], wanted: &str) -> Result<ModuleRow, Unchosen> {
    if let Some(row) = rows.iter().find(|row| row.label == wanted) {
        return Ok(row.clone());
    }
    let is_it = |row: &&ModuleRow| row.class.is_some_and(|class: Name| class.as_str() == wanted);
    let candidates: Vec<ModuleRow> = rows.iter().filter(is_it).cloned().collect();
    match candidates.is_empty() {
        true => Err(Unchosen::Unknown { wanted: wanted.to_owned(), known: rows.to_vec() }),
        false => Err(Unchosen::Several { common: Common::Class(wanted.to_owned()), candidates }),
    }
}

#[cfg(test)]
mod tests {
    use super::choose;
    use rx_db::{FileKind, Workspace};

    const HEAD: &str =
        "from tvm.script import ir as I\nfrom tvm.script import relax as R\nfrom tvm.script import tirx as T\n";

    fn class(name: &str, function: &str) -> String {
        let function: String = function.lines().map(|line| format!("    {line}\n")).collect();
        format!("@I.ir_module\nclass {name}:\n{function}")
    }

    fn relax(name: &str) -> String {
        format!("@R.function\ndef {name}(x: R.Tensor((2,), \"float32\")):\n    return x\n")
    }

    fn prim(name: &str) -> String {
        format!("@T.prim_func\ndef {name}(a: T.Buffer((2,), \"float32\")):\n    a[0] = a[1]\n")
    }

    /// Returns the label of the chosen module, or the error message.
    fn chosen(parts: &[String], module: Option<&str>, entry: Option<&str>) -> String {
        let mut workspace = Workspace::new();
        let file = workspace.add(&format!("{HEAD}{}", parts.concat()), FileKind::Rx);
        match choose(&workspace, file, module, entry) {
            Ok(id) => {
                let row = workspace.modules(file).into_iter().find(|row| row.module == id.module);
                row.map_or_else(|| "nothing".to_owned(), |row| row.label)
            }
            Err(why) => why.to_string(),
        }
    }

    #[test]
    fn the_only_module_is_chosen_whatever_it_has() {
        assert_eq!(chosen(&[], None, None), "nothing");
        assert_eq!(chosen(&[relax("f")], None, None), "-");
        assert_eq!(chosen(&[class("A", &prim("f"))], None, None), "A");
        assert_eq!(chosen(&[class("A", &relax("f")), relax("g")], None, None), "A");
        assert_eq!(chosen(&[class("A", &relax("main")), relax("main")], None, None), "A");
    }

    #[test]
    fn of_several_modules_the_one_with_the_entry_is_chosen() {
        let (a, b) = (class("A", &relax("f")), class("B", &relax("main")));
        assert_eq!(chosen(&[a.clone(), b.clone()], None, None), "B");
        assert_eq!(chosen(&[a.clone(), b.clone()], None, Some("f")), "A");
        assert_eq!(chosen(&[a, b.clone(), relax("main")], None, None), "B");
        assert_eq!(chosen(&[class("A", &prim("f")), relax("main")], None, None), "-");
        assert_eq!(chosen(&[class("A", &prim("main")), b], None, None), "B");
        assert_eq!(chosen(&[class("A", &prim("f")), class("B", &relax("g"))], None, None), "B");
        assert_eq!(chosen(&[class("A", &prim("f")), class("B", &relax("g"))], None, Some("f")), "A");
    }

    #[test]
    fn several_candidates_are_listed() {
        let (a, b) = (class("A", &relax("main")), class("B", &relax("main")));
        let several = "several modules have a function `main`; choose one with --module: `A`, `B`";
        assert_eq!(chosen(&[a.clone(), b.clone()], None, None), several);
        assert_eq!(chosen(&[a.clone(), b.clone()], Some("B"), None), "B");
        let none = "no module has a function `f`; choose one with --module: `A`, `B`";
        assert_eq!(chosen(&[a.clone(), b.clone()], None, Some("f")), none);
        let several =
            "several modules have a function `main`; choose one with --module: `A#1` (line 5), `A#2` (line 10)";
        assert_eq!(chosen(&[a.clone(), a.clone()], None, None), several);
        let several = "several modules are called `A`; choose one with --module: `A#1` (line 5), `A#2` (line 10)";
        assert_eq!(chosen(&[a.clone(), a.clone()], Some("A"), None), several);
        assert_eq!(chosen(&[a.clone(), a.clone()], Some("A#2"), None), "A#2");
        assert_eq!(chosen(&[a.clone(), b], Some("C"), None), "there is no module `C`; there is `A`, `B`");
        assert_eq!(
            chosen(&[relax("main")], Some("C"), None),
            "there is no module `C`; there is `-` (the functions outside of modules)"
        );
        assert_eq!(chosen(&[a, relax("main")], Some("-"), None), "-");
    }
}
