//! Code without checks runs only on arguments for which all checks passed.

use rx_base::name::name;
use rx_base::{DType, Dim};
use rx_cpu::{Arguments, CheckCost, RunError};
use rx_tir::{KernelBuilder, PrimFunc};
use std::time::Duration;

/// `y[i] = x[index[i]]` for `n` elements.
fn gather(n: i64) -> PrimFunc {
    let mut builder = KernelBuilder::new(name("gather"));
    let shape = [Dim::constant(n)];
    let [x, y] = ["x", "y"].map(|text| builder.param(text, &shape, DType::FLOAT32));
    let index = builder.param("index", &shape, DType::INT64);
    builder.compute(y, |builder, axes| builder.load(x, &[builder.load(index, axes)]));
    builder.finish()
}

fn arguments(indices: [i64; 4]) -> Vec<Vec<u8>> {
    let floats = [1f32, 2.0, 3.0, 4.0].into_iter().flat_map(f32::to_ne_bytes).collect();
    vec![floats, vec![0; 16], indices.into_iter().flat_map(i64::to_ne_bytes).collect()]
}

#[test]
fn each_iteration_is_timed_with_and_without_checks() {
    let cost = CheckCost::of(&gather(4)).expect("it compiles");
    assert_eq!(cost.checks(), 1);
    let buffers = arguments([3, 0, 0, 1]);
    let arguments = Arguments { buffers: &buffers, shapes: &[&[4][..]; 3], scalars: &[] };
    // A clock that advances by one second at each call.
    let clock = std::cell::Cell::new(Duration::ZERO);
    let ask = || clock.replace(clock.get() + Duration::from_secs(1));
    let times = cost.measure(&arguments, 3, &ask).expect("all indices are in range");
    assert_eq!(times, [[Duration::from_secs(1); 2]; 3]);
}

#[test]
fn failing_check_prevents_the_unchecked_run() {
    let cost = CheckCost::of(&gather(4)).expect("it compiles");
    let buffers = arguments([3, 0, 1 << 40, 1]);
    let arguments = Arguments { buffers: &buffers, shapes: &[&[4][..]; 3], scalars: &[] };
    let failed = cost.measure(&arguments, 3, &|| Duration::ZERO);
    assert!(matches!(failed, Err(RunError::OutOfBounds { index: 1_099_511_627_776, extent: 4, .. })), "{failed:?}");
}
