//! Tests of operators that a project declares.

use rx_base::Code;
use rx_db::{FileKind, Operators, Workspace, declared_operators};
use std::path::Path;
use std::sync::Arc;

const TEXT: &str = "@R.function
def main(x: R.Tensor((\"n\", 6), \"float32\")):
    y = R.my.halve(x, axis=1)
    return y
";

fn operators(result: &str) -> Arc<Operators> {
    let text = format!(
        "[[ops]]\nname = \"my.halve\"\ndoc = \"Keeps every other column.\"\nargs = [{{ name = \"x\", \
         type = 'R.Tensor((\"n\", \"m\"), dtype=\"d\")' }}]\nattrs = [{{ name = \"axis\", type = \"int\", default = 0, \
         doc = \"Which\" }}]\nwhere = \"m % 2 == 0\"\nresult = '{result}'\n"
    );
    let (settings, mistakes) = rx_settings::read(&text, Path::new("/"));
    assert_eq!(mistakes, []);
    let (operators, mistakes) = declared_operators(&settings.ops);
    assert_eq!(mistakes, []);
    Arc::new(operators)
}

fn returned(workspace: &Workspace, file: rx_db::FileId) -> String {
    workspace.types(file).last().map(|row| row.struct_info.clone()).unwrap_or_default()
}

#[test]
fn operator_declarations_decide_diagnostics_and_types() {
    let mut workspace = Workspace::new();
    let file = workspace.add(TEXT, FileKind::Rx);
    let codes = |workspace: &Workspace| workspace.diagnostics(file).iter().map(|it| it.code).collect::<Vec<_>>();
    assert_eq!(codes(&workspace), [Code::NoSchema]);

    workspace.set_operators(file, operators("R.Tensor((\"n\", \"m // 2\"), dtype=\"d\")"));
    assert_eq!(codes(&workspace), []);
    assert_eq!(returned(&workspace, file), "R.Tensor((n, 3), dtype=\"float32\")");

    workspace.set_operators(file, operators("R.Tensor((\"m\",), dtype=\"int8\")"));
    assert_eq!(returned(&workspace, file), "R.Tensor((6,), dtype=\"int8\")");

    let six = TEXT.find('6').unwrap_or_default();
    workspace.edit(file, six..six + 1, "7");
    assert_eq!(codes(&workspace), [Code::OperatorConstraint]);

    workspace.set_operators(file, Arc::default());
    assert_eq!(codes(&workspace), [Code::NoSchema]);
}

#[test]
fn the_same_declarations_are_one_value() {
    let (one, other) = (operators("R.Tensor"), operators("R.Tensor"));
    assert_eq!(one, other);
    assert_ne!(one, operators("R.Any"));
}
