"""Recipes for the operators of neural networks, images and vision; see inference_recipes.py."""

from inference_calls import dims_text, quote, some

# Convolutions and pooling.

LETTERS = {1: "W", 2: "HW", 3: "DHW"}


def spatial(d, rank, of=(1, 1, 2, 3)):
    r = d.rng.random()
    if r < 0.4:
        return d.one(*of)
    return [d.one(*of) for _ in range(rank if not d.slip() else rank + d.one(-1, 1, 3) or 4)]


def padding(d, rank):
    r = d.rng.random()
    if r < 0.35:
        return d.one(0, 1, 2)
    return [d.one(0, 0, 1, 2, 3) for _ in range(d.one(rank, 2 * rank, 1) if not d.slip() else rank + 1)]


def layout_of(d, rank, names, split_=""):
    """Returns a layout; occasionally with its letters permuted, or blocked."""
    plain = names + LETTERS[rank]
    r = d.rng.random()
    if r < 0.6:
        return plain
    if r < 0.8:
        return names[0] + LETTERS[rank] + names[1:] if names == "NC" else LETTERS[rank] + d.one("IO", "OI")
    if r < 0.92:
        return f"{plain}{d.one(2, 4, 16)}{names[1].lower()}"
    return plain if not d.slip(2) else d.one("NCWH", "XYZ", "NHW", "", plain + "C", "OIHW", "NCHW4", plain.lower(), plain + "4d")


def arranged(d, layout, extents):
    """Returns dims in the order of a layout; blocked letters take their factor."""
    dims, at = [], 0
    while at < len(layout):
        digits = ""
        while at < len(layout) and layout[at].isdigit():
            digits += layout[at]
            at += 1
        if at < len(layout):
            dims.append(digits if digits else extents.get(layout[at], "3"))
            at += 1
    return dims


def conv(rank, transposed=False):
    def recipe(d):
        groups = d.one(1, 1, 1, 2, 4) if not d.slip(0.5) else d.one(0, -1, 3)
        c, o = d.one((str(4 * d.one(1, 2, 4)), str(4 * d.one(1, 2, 3))), (d.dim(), d.dim()))
        inner = c if groups < 2 or transposed else str(int(c) // groups) if c.isdigit() else c
        static = d.chance(0.6)
        places = {letter: str(d.one(7, 8, 16, 28)) if static else d.dim() for letter in LETTERS[rank]}
        kernel = {letter: str(d.one(1, 3, 3, 5)) if d.chance(0.9) else d.dim() for letter in LETTERS[rank]}
        data_layout, kernel_layout = layout_of(d, rank, "NC"), layout_of(d, rank, "IO" if transposed else "OI")
        out = (str(int(o) // groups) if o.isdigit() and groups > 0 else o) if transposed else o
        blocks = {"c": "4", "i": "4", "o": "4", "n": "2"}
        data = arranged(d, data_layout, {"N": d.dim(), "C": c, **places, **blocks})
        weight = arranged(d, kernel_layout, {"O": out, "I": c if transposed else inner, **kernel, **blocks})
        dtype = d.float()
        named = {"strides": spatial(d, rank), "padding": padding(d, rank), "dilation": spatial(d, rank, (1, 1, 2))}
        if transposed:
            named["output_padding"] = spatial(d, rank, (0, 0, 1)) if d.chance(0.5) else 0
        named |= {"groups": groups, "data_layout": quote(data_layout), "kernel_layout": quote(kernel_layout)}
        if d.chance(0.3):
            named["out_layout"] = d.one(None, quote(layout_of(d, rank, "NC")))
        if d.chance(0.3):
            named["out_dtype"] = d.one(None, quote(d.any_dtype()))
        return [d.tensor(data, dtype), d.tensor(weight, dtype)], some(d, named)

    return recipe


def pooled(d, rank):
    static = d.chance(0.6)
    places = {letter: str(d.one(7, 8, 16, 28)) if static else d.dim() for letter in LETTERS[rank]}
    layout = layout_of(d, rank, "NC")
    return layout, arranged(d, layout, {"N": d.dim(), "C": d.one("4", "8", "3", "m"), "c": "4", **places})


def pool(rank):
    def recipe(d):
        layout, dims = pooled(d, rank)
        named = {
            "pool_size": spatial(d, rank),
            "strides": spatial(d, rank),
            "padding": padding(d, rank),
            "dilation": spatial(d, rank, (1, 1, 2)),
        }
        named |= {"ceil_mode": d.boolean(), "count_include_pad": d.boolean(), "layout": quote(layout)}
        if d.chance(0.3):
            named["out_layout"] = d.one(None, quote(layout_of(d, rank, "NC")))
        return [d.tensor(dims, d.float())], named

    return recipe


def pool_backward(d):
    layout, dims = pooled(d, 2)
    named = {"pool_size": [2, 2], "strides": [2, 2], "padding": [0, 0, 0, 0], "layout": quote(layout)}
    return [d.tensor(dims), d.tensor(dims)], named


def adaptive_pool(rank):
    def recipe(d):
        layout, dims = pooled(d, rank)
        named = {
            "output_size": d.one(None, 1, 7, [d.one(1, 2, 7) for _ in range(rank if not d.slip() else rank + 1)]),
            "layout": quote(layout),
        }
        if d.chance(0.3):
            named["out_layout"] = d.one(None, quote(layout_of(d, rank, "NC")))
        return [d.tensor(dims, d.float())], named

    return recipe


# Other operators of nn.


def softmax(d):
    dims = d.dims(1)
    return [d.tensor(dims, d.float())], {"axis": d.axis(len(dims))}


def normalized(d, params, low=1):
    """Returns data, parameters over some axes, and the axes."""
    dims = d.dims(low)
    axes = sorted({d.rng.randrange(len(dims)) for _ in range(d.one(1, 1, 2))})
    dtype = d.float()
    data = d.tensor(dims, dtype)
    rest = [d.tensor([dims[at] for at in axes], dtype) for _ in range(params)]
    axes = [at - len(dims) if d.chance(0.4) else at for at in axes]
    if d.slip():
        axes.append(d.axis(len(dims)))
    return data, rest, axes, dims, dtype


def layer_norm(d):
    data, rest, axes, _, _ = normalized(d, 2)
    return [data, *rest], {"axes": axes if len(axes) > 1 or d.chance(0.5) else axes[0]}


def rms_norm(d):
    data, rest, axes, _, _ = normalized(d, 1)
    return [data, *rest], {"axes": axes}


def group_norm(d):
    dims = d.dims(2)
    at = d.rng.randrange(len(dims))
    dims[at] = d.one("4", "8", "12", dims[at])
    dtype = d.float()
    args = [d.tensor(dims, dtype), d.tensor([dims[at]], dtype), d.tensor([dims[at]], dtype)]
    axes = [x for x in range(1, len(dims)) if x != at]
    return args, {
        "num_groups": d.one(1, 2, 4, 3, 0),
        "channel_axis": at if not d.slip() else d.axis(len(dims)),
        "axes": axes if not d.slip() else d.axes(len(dims)),
        "epsilon": 1e-5,
    }


def instance_norm(d):
    args, named = group_norm(d)
    named.pop("num_groups")
    return args, named


def batch_norm(d):
    dims = d.dims(1)
    axis = d.axis(len(dims))
    channel = dims[axis] if -len(dims) <= axis < len(dims) else "3"
    dtype = d.float()
    return [d.tensor(dims, dtype), *(d.tensor([channel], dtype) for _ in range(4))], {"axis": axis}


def dropout(d):
    return [d.tensor(d.dims(), d.float())], {"rate": d.one(0.5, 0.1, 0.0)}


def cross_entropy(d):
    dims = d.dims(1, 2)
    return [d.tensor(dims), d.tensor(dims)], {}


def nll_operands(d):
    n, c = d.dim(), d.dim()
    places = d.dims(0, 2)
    if d.chance(0.15):
        return [c], [], c
    return [n, c, *places], [n, *places], c


def nll_loss(d):
    predictions, targets, c = nll_operands(d)
    dtype = d.float()
    args = [d.tensor(predictions, dtype), d.tensor(targets, d.one("int64", "int32"))]
    if d.chance(0.7):
        args.append(d.tensor([c], dtype))
    return args, {
        "reduction": d.one('"mean"', '"sum"', '"none"', '"mean"' if not d.slip(4) else '"foo"'),
        "ignore_index": d.one(-100, 0),
    }


def nll_backward(d):
    args, named = nll_loss(d)
    return [d.tensor(d.one([], d.dims(0, 2))), *args], named


def pad(d):
    dims = d.dims(1)
    widths = [d.one(0, 0, 1, 2) for _ in range(2 * len(dims) if not d.slip() else 2 * len(dims) + d.one(-1, 2))]
    return [d.tensor(dims)], {
        "pad_width": widths,
        "pad_mode": d.one('"constant"', '"reflect"', '"replicate"', '"circular"'),
        "pad_value": 0.0,
    }


def pixel_shuffle(d):
    factor = d.one(1, 2, 2, 3, 0, -1)
    dims = d.dims(0, 2) + [d.one("4", "8", "9", "16", "n * 4", "n"), d.dim(), d.dim()]
    return [d.tensor(dims)], {"upscale_factor": factor}


def prelu(d):
    dims = d.dims(1)
    axis = d.axis(len(dims))
    channel = dims[axis] if -len(dims) <= axis < len(dims) else "3"
    return [d.tensor(dims), d.tensor(d.one([channel], [channel], ["1"]))], {"axis": axis}


def attention(d):
    b, s, h, k, e, v = (d.dim() for _ in range(6))
    dtype = d.one("float32", "float16")
    args = [d.tensor([b, s, h, e], dtype), d.tensor([b, k, h, e], dtype), d.tensor([b, k, h, v], dtype)]
    if d.chance(0.4):
        args.append(d.tensor(d.one([b, h, s, k], ["1", h, s, k], [b, "1", s, k], [b, h, "1", k], [b, s, k]), dtype))
    return args, some(d, {"scale": d.one(None, "0.1"), "causal_mask": d.one(None, '"TopLeft"', '"BottomRight"')})


def attention_var_len(d):
    b, s, h, k, e = (d.dim() for _ in range(5))
    dtype = "float16"
    args = [d.tensor([b, s, h, e], dtype), d.tensor([b, k, h, e], dtype), d.tensor([b, k, h, e], dtype)]
    args += [d.tensor([d.dim()], "int32"), d.tensor([], "int32")]
    if d.chance(0.6):
        args += [d.tensor([d.dim()], "int32"), d.tensor([], "int32")]
    return args, {}


# Images, vision.


def resize(rank):
    def recipe(d):
        layout = layout_of(d, rank, "NC")
        places = {letter: d.dim() for letter in LETTERS[rank]}
        dims = arranged(d, layout, {"N": d.dim(), "C": d.one("3", "8", "m"), "c": "4", **places})
        size = d.one(d.shape([d.dim() for _ in range(rank)]), "28", "n", dims_text([d.dim() for _ in range(rank)], str))
        named = {
            "layout": quote(layout),
            "method": d.one('"linear"', '"cubic"', '"nearest_neighbor"'),
            "out_dtype": d.one(None, None, '"float16"'),
        }
        return [d.tensor(dims, d.float()), size], some(d, named) | {"layout": quote(layout)}

    return recipe


def grid_sample(d):
    layout = d.one("NCHW", "NCHW", "NHWC", "NCDHW")
    rank = len(layout) - 2
    n = d.dim()
    dims = arranged(d, layout, {"N": n, "C": "3", **{letter: d.dim() for letter in LETTERS[rank]}})
    grid = d.one([n, str(rank), *(d.dim() for _ in range(rank))], [n, *(d.dim() for _ in range(rank)), str(rank)])
    return [d.tensor(dims), d.tensor(grid)], {
        "layout": quote(layout),
        "method": d.one('"bilinear"', '"nearest"', '"bicubic"'),
        "padding_mode": d.one('"zeros"', '"border"', '"reflection"'),
    }


def affine_grid(d):
    rank = d.one(2, 2, 3)
    n = d.dim()
    size = d.one(d.shape([d.dim() for _ in range(rank)]), "16", dims_text([d.dim() for _ in range(rank)], str))
    return [d.tensor([n, str(rank), str(rank + 1)]), size], some(d, {"align_corners": d.boolean()})


def roi(align):
    def recipe(d):
        layout = d.one("NCHW", "NCHW", "NHWC") if align or d.slip() else "NCHW"
        dims = arranged(d, layout, {"N": d.dim(), "C": d.dim(), "H": d.dim(), "W": d.dim()})
        dtype = d.float()
        named = {
            "pooled_size": d.one([7, 7], 7, [7, 5], (3, 3), [7] if d.slip() else 5),
            "spatial_scale": d.one(1.0, 0.5),
            "layout": quote(layout),
        }
        if align:
            named |= {"sample_ratio": d.one(-1, 2), "aligned": d.boolean(), "mode": d.one('"avg"', '"max"')}
        return [d.tensor(dims, dtype), d.tensor([d.dim(), "5"], dtype)], named

    return recipe


def get_valid_counts(d):
    dims = [d.dim(), d.dim(), d.one("6", "5", "k")]
    return [d.tensor(dims)], {"score_threshold": 0.5, "id_index": d.one(0, -1, 0, 7), "score_index": d.one(1, 1, 0, 6)}


def nms(d):
    b, a = d.dim(), d.dim()
    named = {
        "max_output_size": d.one(-1, 10),
        "return_indices": d.boolean(),
        "coord_start": d.one(2, 2, 1, 3),
        "score_index": d.one(1, 0, 6),
        "id_index": d.one(0, -1, 6),
        "soft_nms_sigma": d.one(0.0, 0.5),
        "force_suppress": d.boolean(),
        "top_k": d.one(-1, 5),
    }
    return [d.tensor([b, a, d.one("6", "6", "5", "k")]), d.tensor([b], "int32"), d.tensor([b, a], "int32")], some(d, named)


def class_nms(d):
    b, c, s = d.dim(), d.dim(), d.dim()
    args = [
        d.tensor([b, s, "4"]),
        d.tensor([b, c, s]),
        d.one('R.const(10, "int64")', d.tensor([], "int64")),
        'R.const(0.5, "float32")',
        'R.const(0.1, "float32")',
    ]
    return args, some(d, {"output_format": d.one('"onnx"', '"tensorflow"')})


def multibox(d):
    b, c, n = d.one(("2", "3", "5"), (d.dim(), d.dim(), d.dim()))
    loc = str(int(n) * 4) if n.isdigit() else f"({n}) * 4" if d.chance(0.5) else "k"
    return [d.tensor([b, c, n]), d.tensor([b, loc]), d.tensor(["1", n, "4"])], some(
        d, {"variances": d.one([0.1, 0.1, 0.2, 0.2], [1.0, 1.0]), "clip": d.boolean()}
    )


NN = {
    **{f"nn.conv{rank}d": conv(rank) for rank in (1, 2, 3)},
    **{f"nn.conv{rank}d_transpose": conv(rank, True) for rank in (1, 2, 3)},
    **{f"nn.{kind}_pool{rank}d": pool(rank) for kind in ("max", "avg") for rank in (1, 2, 3)},
    **{f"nn.adaptive_avg_pool{rank}d": adaptive_pool(rank) for rank in (1, 2, 3)},
    "grad.avg_pool2d_backward": pool_backward,
    "grad.max_pool2d_backward": pool_backward,
    "nn.softmax": softmax,
    "nn.log_softmax": softmax,
    "nn.layer_norm": layer_norm,
    "nn.rms_norm": rms_norm,
    "nn.group_norm": group_norm,
    "nn.instance_norm": instance_norm,
    "nn.batch_norm": batch_norm,
    "nn.dropout": dropout,
    "nn.cross_entropy_with_logits": cross_entropy,
    "nn.nll_loss": nll_loss,
    "grad.nll_loss_backward": nll_backward,
    "nn.pad": pad,
    "nn.pixel_shuffle": pixel_shuffle,
    "nn.prelu": prelu,
    "nn.attention": attention,
    "nn.attention_bias": attention,
    "nn.attention_var_len": attention_var_len,
    "image.resize2d": resize(2),
    "image.resize3d": resize(3),
    "image.grid_sample": grid_sample,
    "image.affine_grid": affine_grid,
    "vision.roi_align": roi(True),
    "vision.roi_pool": roi(False),
    "vision.get_valid_counts": get_valid_counts,
    "vision.non_max_suppression": nms,
    "vision.all_class_non_max_suppression": class_nms,
    "vision.multibox_transform_loc": multibox,
}
