//! Operators on tensors that are not of neural networks in particular.

