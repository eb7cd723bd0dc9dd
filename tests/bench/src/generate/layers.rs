//! The two kinds of layers of generated programs: residual blocks and transformer layers.

use super::function::{Function, tensor};

const CHANNELS: usize = 16;
const IMAGE: usize = 16;
const WIDTH: usize = 64;
const HEADS: usize = 4;
const HEAD_WIDTH: usize = WIDTH / HEADS;

/// The type of the values between residual blocks.
pub(super) fn image_type() -> String {
    tensor(&[1, CHANNELS, IMAGE, IMAGE])
}

/// The type of the values between transformer layers, for a batch and a sequence length (numbers or names).
pub(super) fn sequence_type(batch: &str, length: &str) -> String {
    tensor(&[batch, length, &WIDTH.to_string()])
}

/// Adds a residual block: convolution and batch norm twice, a projected shortcut, and a few elementwise bindings; 15
/// bindings in all.
pub(super) fn residual_block(f: &mut Function, x: &str, index: usize) -> String {
    let image = image_type();
    let a = convolution(f, x, index, 3, "a");
    let a = f.bind(&image, &format!("R.nn.relu({a})"));
    let b = convolution(f, &a, index, 3, "b");
    let shortcut = convolution(f, x, index, 1, "s");
    let y = f.bind(&image, &format!("R.add({b}, {shortcut})"));
    let y = f.bind(&image, &format!("R.nn.relu({y})"));
    let z = f.bind(&image, &format!("R.multiply({y}, R.const(0.5, \"float32\"))"));
    let z = f.bind(&image, &format!("R.add({z}, R.const(0.25, \"float32\"))"));
    f.bind(&image, &format!("R.tanh({z})"))
}

/// Adds a convolution, a batch norm, and the field of its result that is used.
fn convolution(f: &mut Function, x: &str, index: usize, kernel: usize, tag: &str) -> String {
    let (image, channels) = (image_type(), tensor(&[CHANNELS]));
    let weight = f.param(format!("w{index}_{tag}"), tensor(&[CHANNELS, CHANNELS, kernel, kernel]));
    let statistics = ["g", "b", "m", "v"].map(|name| f.param(format!("{name}{index}_{tag}"), channels.clone()));
    let pad = kernel / 2;
    let convolved = f.bind(
        &image,
        &format!(
            "R.nn.conv2d({x}, {weight}, strides=[1, 1], padding=[{pad}, {pad}, {pad}, {pad}], dilation=[1, 1], groups=1, \
             data_layout=\"NCHW\", kernel_layout=\"OIHW\", out_layout=\"NCHW\", out_dtype=\"float32\")"
        ),
    );
    let normalized = f.bind(
        &format!("R.Tuple({image}, {channels}, {channels})"),
        &format!(
            "R.nn.batch_norm({convolved}, {}, axis=1, epsilon=1.0000000000000001e-05, center=True, scale=True, \
             momentum=0.10000000000000001, training=False)",
            statistics.join(", ")
        ),
    );
    f.bind(&image, &format!("{normalized}[0]"))
}

/// Adds attention and a two-layer MLP, each with layer norm before and a residual addition after.
pub(super) fn transformer_layer(f: &mut Function, x: &str, index: usize, batch: &str, length: &str) -> String {
    let ty = sequence_type(batch, length);
    let normalized = layer_norm(f, x, index, "n1", &ty);
    let attended = attention(f, &normalized, index, batch, length);
    let projected = linear(f, &attended, index, "o", (WIDTH, WIDTH), &ty);
    let x = f.bind(&ty, &format!("R.add({x}, {projected})"));
    let normalized = layer_norm(f, &x, index, "n2", &ty);
    let wide_type = tensor(&[batch, length, &(2 * WIDTH).to_string()]);
    let wide = linear(f, &normalized, index, "f1", (2 * WIDTH, WIDTH), &wide_type);
    let wide = f.bind(&wide_type, &format!("R.nn.gelu({wide})"));
    let narrow = linear(f, &wide, index, "f2", (WIDTH, 2 * WIDTH), &ty);
    f.bind(&ty, &format!("R.add({x}, {narrow})"))
}

fn layer_norm(f: &mut Function, x: &str, index: usize, tag: &str, ty: &str) -> String {
    let scale = f.param(format!("g{index}_{tag}"), tensor(&[WIDTH]));
    let shift = f.param(format!("h{index}_{tag}"), tensor(&[WIDTH]));
    let attributes = "axes=[-1], epsilon=1.0000000000000001e-05, center=True, scale=True";
    f.bind(ty, &format!("R.nn.layer_norm({x}, {scale}, {shift}, {attributes})"))
}

/// Adds `x` times the transposed weight of shape `(outputs, inputs)`, plus a bias.
fn linear(f: &mut Function, x: &str, index: usize, tag: &str, shape: (usize, usize), ty: &str) -> String {
    let (outputs, inputs) = shape;
    let weight = f.param(format!("w{index}_{tag}"), tensor(&[outputs, inputs]));
    let bias = f.param(format!("b{index}_{tag}"), tensor(&[outputs]));
    let transposed = f.bind(&tensor(&[inputs, outputs]), &format!("R.permute_dims({weight}, axes=[1, 0])"));
    let product = matmul(f, x, &transposed, ty);
    f.bind(ty, &format!("R.add({bias}, {product})"))
}

fn matmul(f: &mut Function, a: &str, b: &str, ty: &str) -> String {
    f.bind(ty, &format!("R.matmul({a}, {b}, out_dtype=\"float32\")"))
}

fn attention(f: &mut Function, x: &str, index: usize, batch: &str, length: &str) -> String {
    let (heads, head_width) = (HEADS.to_string(), HEAD_WIDTH.to_string());
    let ty = sequence_type(batch, length);
    let split = tensor(&[batch, length, &heads, &head_width]);
    let by_head = tensor(&[batch, &heads, length, &head_width]);
    let [query, key, value] = ["q", "k", "v"].map(|tag| {
        let y = linear(f, x, index, tag, (WIDTH, WIDTH), &ty);
        let y = f.bind(&split, &format!("R.reshape({y}, R.shape([{batch}, {length}, {heads}, {head_width}]))"));
        f.bind(&by_head, &format!("R.permute_dims({y}, axes=[0, 2, 1, 3])"))
    });
    let key_type = tensor(&[batch, &heads, &head_width, length]);
    let key = f.bind(&key_type, &format!("R.permute_dims({key}, axes=[0, 1, 3, 2])"));
    let scores_type = tensor(&[batch, &heads, length, length]);
    let scores = matmul(f, &query, &key, &scores_type);
    // 0.25 is 1 / sqrt(HEAD_WIDTH).
    let scores = f.bind(&scores_type, &format!("R.multiply({scores}, R.const(0.25, \"float32\"))"));
    let weights = f.bind(&scores_type, &format!("R.nn.softmax({scores}, axis=-1)"));
    let mixed = matmul(f, &weights, &value, &by_head);
    let mixed = f.bind(&split, &format!("R.permute_dims({mixed}, axes=[0, 2, 1, 3])"));
    f.bind(&ty, &format!("R.reshape({mixed}, R.shape([{batch}, {length}, {WIDTH}]))"))
}
