//! Descriptions of tensors: dtype, shape and statistics, as text and as JSON.

use rx_base::DType;
use rx_tensor::{Stats, Tensor};
use serde_json::{Value, json};

/// The dtype, shape and statistics of a tensor.
#[derive(Clone, Debug)]
pub struct Described {
    pub dtype: DType,
    pub shape: Vec<i64>,
    pub stats: Stats,
}

impl Described {
    pub fn of(tensor: &Tensor) -> Described {
        Described { dtype: tensor.dtype(), shape: tensor.shape().to_vec(), stats: Stats::of(tensor) }
    }

    /// Formats the shape as Python does: `(1, 10)`, `(3,)`, `()`.
    pub fn shape(&self) -> String {
        let comma = if self.shape.len() == 1 { "," } else { "" };
        format!("({}{comma})", dims(&self.shape))
    }

    /// Formats one line: `out0: float32 (1, 10)  min -1.5  mean 0.1  max 2.5  nan 0`.
    pub fn line(&self, name: &str) -> String {
        let Stats { min, mean, max, nan_count } = self.stats;
        let (dtype, shape) = (self.dtype, self.shape());
        format!("{name}: {dtype} {shape}  min {min:.6}  mean {mean:.6}  max {max:.6}  nan {nan_count}")
    }

    /// Returns the fields of a JSON event that describes a tensor.
    pub fn fields(&self, name: &str) -> Value {
        json!({
            "name": name,
            "dtype": self.dtype.to_string(),
            "shape": self.shape,
            "min": self.stats.min,
            "mean": self.stats.mean,
            "max": self.stats.max,
            "nan": self.stats.nan_count,
        })
    }
}

/// Formats dims: `1, 10`.
pub fn dims(shape: &[i64]) -> String {
    shape.iter().map(i64::to_string).collect::<Vec<_>>().join(", ")
}
