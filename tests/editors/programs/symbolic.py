"""A layer with symbolic dims in Python: a run needs their values."""

from tvm.script import relax as R


@R.function
def main(x: R.Tensor(("n", 16), dtype="float32"), w: R.Tensor((16, "m"), dtype="float32")) -> R.Tensor(("n", "m"), dtype="float32"):
    with R.dataflow():
        logits = R.matmul(x, w)
        gv = R.nn.softmax(logits, axis=-1)
        R.output(gv)
    return gv
