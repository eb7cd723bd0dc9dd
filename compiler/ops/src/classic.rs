//! Parameter names and orders of TVM 0.13 to 0.25 that differ from the current schemas.

/// Renamed parameters: operator, old name, current name.
const NAMES: &[(&str, &str, &str)] = &[
    ("call_tir", "func", "gvar"),
    ("call_py_func", "func_name", "py_func_name"),
    ("dist.annotate_sharding", "input", "value"),
    ("dist.redistribute", "input", "value"),
    ("vm.alloc_storage", "size", "shape"),
];

/// Operators whose positional parameters were in another order. They can be distinguished because a string and a number
/// have changed places.
const ORDERS: &[(&str, &[&str])] = &[
    // Until 0.19.
    ("nn.pad", &["data", "pad_width", "pad_value", "pad_mode"]),
];

/// Returns the current name of the parameter of `operator` that was called `written`; other names are returned
/// unchanged.
pub fn parameter<'w>(operator: &str, written: &'w str) -> &'w str {
    let is_old = |(of, old, _): &&(&str, &str, &'static str)| *of == operator && *old == written;
    NAMES.iter().find(is_old).map_or(written, |(_, _, name)| name)
}

/// Returns the old order of the parameters of `operator`, if it differs.
pub fn order(operator: &str) -> Option<&'static [&'static str]> {
    ORDERS.iter().find(|(of, _)| *of == operator).map(|(_, order)| *order)
}

#[cfg(test)]
mod tests {
    use super::{NAMES, ORDERS, order, parameter};
    use crate::find;
    use rx_base::name::name;

    #[test]
    fn parameter_old_name_is_todays() {
        assert_eq!(parameter("call_tir", "func"), "gvar");
        assert_eq!(parameter("call_tir", "args"), "args");
        assert_eq!(parameter("add", "func"), "func");
    }

    #[test]
    fn tables_name_parameters_that_exist() {
        let has = |operator: &str, param: &str| {
            find(name(operator)).is_some_and(|schema| schema.params.iter().any(|it| it.name == param))
        };
        assert!(NAMES.iter().all(|(operator, old, new)| has(operator, new) && !has(operator, old)));
        assert!(ORDERS.iter().all(|(operator, params)| params.iter().all(|param| has(operator, param))));
        assert_eq!(order("nn.pad").map(<[&str]>::len), Some(4));
    }
}
