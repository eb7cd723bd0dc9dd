import tvm
from tvm.script import relax as rx, tir as T

SIZE = 4
text = """
@rx.function
"""

def build(flag):
    @rx.function
    def f(x: rx.Tensor((SIZE, "n"), "float32")):
        y = rx.nn.softmax(x, axis=1)
        return y

    if flag:
        @T.prim_func
        def g(A: T.Buffer((4,), "float32")):
            T.evaluate(0)
    return f, [i for i in range(3)], lambda a: a

@tvm.script.ir_module
class M(Base):
    I.module_attrs({"a": 1})
    I.module_global_infos({"vdevice": [I.vdevice({"kind": "llvm"}, 0, "global")]})
    @rx.function
    def main(x: rx.Tensor((1,), "float32", "llvm:0")) -> rx.Tuple(rx.Tensor, rx.Callable((rx.Object,), rx.Object)):
        return x
