//! The programs in `tests/operators/programs` compute the values of NumPy, as computed by the reference
//! `tests/scripts/operator_values_programs.py`.

use crate::common::Text;
use rx_tensor::{Tensor, compare, npz};
use std::collections::HashMap;
use std::path::Path;

/// Runs `main` on the interpreter and on the CPU with the inputs in the program's file of values, and compares the
/// results.
fn check(program: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/operators/programs");
    let text = std::fs::read_to_string(folder.join(program).with_extension("rx")).expect("a program");
    let read = npz::read(&folder.join(program).with_extension("npz")).expect("its values");
    let mut arrays: HashMap<String, Tensor> = read.into_iter().collect();
    let text = Text::new(&text);
    let function = text.0.function(text.0.first_module(text.1), text.entry()).expect("`main`");
    let inputs: Vec<Tensor> = function
        .params
        .iter()
        .map(|(param, _)| arrays.remove(param.as_str()).unwrap_or_else(|| panic!("no array for {param}")))
        .collect();
    let (results, _) = text.results(&inputs);
    assert_eq!(results.len(), arrays.len(), "{program}: results");
    for (at, result) in results.iter().enumerate() {
        let wanted = &arrays[&format!("out{at}")];
        assert_eq!(result.dtype(), wanted.dtype(), "{program}: the dtype of result {at}");
        let compared = compare(result, wanted, 1e-6, 1e-6).unwrap_or_else(|error| panic!("{program}: {at}: {error}"));
        assert!(compared.ok, "{program}: result {at}: {compared}");
    }
}

macro_rules! programs {
    ($($program:ident)*) => {
        $(#[test]
        fn $program() {
            check(stringify!($program));
        })*

        /// Checks that every program of the folder has a test.
        #[test]
        fn all_programs_are_run() {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/operators/programs");
            let paths = std::fs::read_dir(folder).expect("the folder").map(|entry| entry.expect("an entry").path());
            let texts = paths.filter(|path| path.extension().is_some_and(|extension| extension == "rx"));
            let mut names: Vec<String> =
                texts.map(|path| path.file_stem().expect("a name").to_string_lossy().into_owned()).collect();
            names.sort();
            assert_eq!(names, [$(stringify!($program)),*]);
        }
    };
}
programs! { calls closures devices effects inspect memory workers }
