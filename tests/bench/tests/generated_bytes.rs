//! Tests that the output of the generators never changes, so that figures measured on it stay comparable over time. The
//! lengths and hashes are those of the generators from which these were ported.

use rx_bench::generate::{Kind, Language, Scale, network, scale};

/// Returns the length and the 64-bit FNV-1a hash.
fn fingerprint(text: &str) -> (usize, u64) {
    let hash = text
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    (text.len(), hash)
}

#[test]
fn one_large_function() {
    assert_eq!(fingerprint(&scale(&Scale::new(100_000))), (14_887_572, 0x5a46_3086_3887_c739));
}

#[test]
fn a_thousand_functions() {
    assert_eq!(fingerprint(&scale(&Scale::new(100_000).split(1000))), (16_838_096, 0x6b32_ee5d_c7ae_2e70));
}

#[test]
fn functions_called_from_main() {
    let options = Scale { functions: 7, ..Scale::new(3000) };
    assert_eq!(fingerprint(&scale(&options)), (662_358, 0x0e71_2265_5486_0987));
}

#[test]
fn symbolic_dims() {
    let options = Scale { symbolic: true, ..Scale::new(2000) };
    assert_eq!(fingerprint(&scale(&options)), (287_723, 0xa5c7_d0c9_2d6b_c83a));
    let options = Scale { kind: Kind::Transformer, functions: 3, ..options };
    assert_eq!(fingerprint(&scale(&options)), (304_094, 0xf333_ecb5_e816_2259));
}

#[test]
fn at_least_one_layer() {
    let options = Scale { kind: Kind::Resnet, ..Scale::new(1) };
    let text = scale(&options);
    assert_eq!(fingerprint(&text), (3284, 0x1a19_c1ed_d901_0732));
    assert!(text.contains("def main(x: R.Tensor((1, 16, 16, 16), dtype=\"float32\"), w0_a: "), "{text}");
}

#[test]
fn a_chain_of_convolutions() {
    assert_eq!(fingerprint(&network(1000, Language::Relax)), (102_853, 0x60b6_cc34_8ce6_8a19));
}
