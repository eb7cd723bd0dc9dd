"""Writes TVM's attention kernels for KV caches: each GPU kernel with the CPU kernel that computes the same.

    python paged_attention.py FOLDER

MLC-LLM's libraries use them. The threads of a block iterate over the pages of a cache together, with barriers
(`T.tvm_storage_sync`) and all-reduces (`T.tvm_thread_allreduce`). The results are in compiler/cuda/tests/kernels/paged_attention.
Kernels without a CPU counterpart are written alone.
"""

import importlib
import pathlib
import sys

import tvm
from tvm.relax.frontend.nn.llm import _decode_kernels as decode
from tvm.relax.frontend.nn.llm import _prefill_kernels as prefill
from tvm.target import Target

# The package also has a function of the same name, so import the module by its path.
tree = importlib.import_module("tvm.relax.frontend.nn.llm.tree_attn")

TARGET = Target(
    {
        "kind": "cuda",
        "arch": "sm_80",
        "max_threads_per_block": 1024,
        "max_shared_memory_per_block": 49152,
        "thread_warp_size": 32,
    }
)

HEADS, QUERIES = 2, 4


def kernels():
    """Yields name, GPU kernel, and CPU kernel if there is one."""
    rope, dim = {}, 32
    for sliding in (False, True):
        name = "_sliding" if sliding else ""
        args = (HEADS, QUERIES, dim, "float16", sliding, rope)
        yield f"decode{name}", decode._attention_decode(*args, TARGET), decode._attention_decode_cpu(*args)
        yield f"prefill{name}", prefill._attention_prefill(*args, TARGET), prefill._attention_prefill_cpu(*args)
    args = (HEADS, QUERIES, 64, "float32", False, rope)
    yield "decode_float32", decode._attention_decode(*args, TARGET), decode._attention_decode_cpu(*args)
    args = (HEADS, QUERIES, dim, dim, "float16", rope)
    yield "ragged", prefill._attention_prefill_ragged(*args, TARGET), prefill._attention_prefill_ragged_cpu(*args)
    args = (HEADS, QUERIES, dim, "float16", rope)
    yield "tree", tree.tree_attn(*args, TARGET), tree.tree_attn_cpu(*args)
    paged = tree.tree_attn_with_paged_kv_cache, tree.tree_attn_with_paged_kv_cache_cpu
    yield "tree_paged", paged[0](*args, TARGET), paged[1](*args)
    yield "sequence", prefill._attention_sequence_prefill(HEADS, QUERIES, 32, "float32", TARGET, 1, 0.25), None
    yield "mla", prefill._attention_prefill_mla(QUERIES, 64, 16, "float16", False, TARGET), None


def main(folder):
    for name, threads, plain in kernels():
        both = {"scheduled": threads.with_attr("global_symbol", "scheduled")}
        if plain is not None:
            both["plain"] = plain.with_attr("global_symbol", "plain")
        # TVM's CPU kernels read past the end of a buffer of one element.
        text = tvm.IRModule(both).script().replace("scale_O[d_idx]", "scale_O[0]")
        (pathlib.Path(folder) / f"{name}.py").write_text(text + "\n")


main(sys.argv[1])
