//! The integration tests of `rx-ops`: one module per subject, linked into one program.

mod choices;
mod convolution_maps;
mod coverage;
mod values;
mod values_nn;
mod values_tensor;
