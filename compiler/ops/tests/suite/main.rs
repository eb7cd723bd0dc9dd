//! The integration tests of `rx-ops`: one module a subject, one program to link.

mod choices;
mod convolution_maps;
mod coverage;
mod values;
mod values_nn;
mod values_tensor;
