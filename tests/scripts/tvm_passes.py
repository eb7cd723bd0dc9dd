#!/usr/bin/env python3
"""Tests that rxcheck accepts the modules that TVM's passes print.

    tvm_passes.py RXCHECK CASES [--keep FOLDER] [--jobs N] [--only PASS] [--every N] [--allow N]

Reads the modules of CASES/modules.jsonl, and one module for each call of CASES/op_inference.jsonl, runs each of the pipelines below
over them, prints the results, and asks rxcheck. Where it reports an error, TVM is asked whether it accepts the same text. Prints
the errors and warnings by code, those in texts that TVM accepts first; exit 1 if there are more than ALLOW of them. FOLDER keeps the
texts. Passes run in child processes, since TVM can crash. Needs apache-tvm 0.27; says so and succeeds without it.
"""

import argparse
import collections
import functools
import hashlib
import json
import pathlib
import re
import sys
import tempfile

import rx_diagnostics
import tvm_workers  # before tvm: it says so where there is none

import tvm
from tvm import relax
from tvm.script import from_source

MODULES_PER_CHILD = 40
SECONDS_PER_MODULE = 40


@functools.cache
def pipelines():
    """Returns lists of passes by the name of their purpose."""
    t = relax.transform
    lowered = [t.LegalizeOps(), t.AnnotateTIROpPattern()]
    fused = [*lowered, t.FoldConstant(), t.FuseOps(), t.FuseTIR(), t.DeadCodeElimination()]
    planned = [t.RewriteDataflowReshape(), t.ToNonDataflow(), t.RemovePurityChecking(), t.CallTIRRewrite(), t.StaticPlanBlockMemory()]
    low = [t.LowerAllocTensor(), t.KillAfterLastUse(), t.LowerRuntimeBuiltin(), t.ComputePrimValue(), t.VMShapeLower()]
    convs = {"relax.nn.conv2d": ["NHWC", "OHWI"], "relax.nn.conv1d": ["NWC", "OWI"], "relax.nn.conv2d_transpose": ["NHWC", "IHWO"]}
    blocked = {"relax.nn.conv2d": ["NCHW4c", "OIHW4o"]}
    return {
        "Normalize": [t.Normalize(), t.NormalizeGlobalVar(), t.CanonicalizeBindings()],
        "ConvertToDataflow": [t.ConvertToDataflow(1), t.EliminateCommonSubexpr(), t.DeadCodeElimination()],
        "Inference": [t.DecomposeOpsForInference(), t.FoldConstant(), t.DeadCodeElimination()],
        "Training": [t.DecomposeOpsForTraining(), t.LegalizeOps()],
        "LegalizeOps": lowered,
        "FuseOps": [*lowered, t.FuseOps()],
        "FuseTIR": fused,
        "CallTIRRewrite": [*fused, t.ToNonDataflow(), t.RemovePurityChecking(), t.CallTIRRewrite()],
        "StaticPlanBlockMemory": [*fused, *planned],
        "InplaceCalls": [*lowered, t.DataflowUseInplaceCalls()],
        "VMLowering": [*fused, *planned, *low],
        "VMBuiltinLower": [*lowered, *planned, *low, t.VMBuiltinLower(), t.AttachGlobalSymbol()],
        "CUDAGraph": [*fused, *planned, t.RewriteCUDAGraph()],
        "ConvertLayout": [t.ConvertLayout(convs), t.Normalize(), t.CanonicalizeBindings()],
        "ConvertLayoutLegal": [t.ConvertLayout(convs), *fused],
        "ConvertLayoutBlocked": [t.ConvertLayout(blocked), *lowered],
        "ToMixedPrecision": [t.ToMixedPrecision("float16")],
        "ToMixedPrecisionLegal": [t.ToMixedPrecision("float32"), *fused],
        "Lift": [t.ConvertToDataflow(1), t.LiftTransformParams()],
        "LiftShared": [t.LiftTransformParams(shared_transform=True), t.LegalizeOps()],
        "Lazy": [t.LiftTransformParams(), t.BundleModelParams()],
        "LazyTransform": [t.LiftTransformParams(), t.LazyTransformParams()],
        "BundleModelParams": [t.BundleModelParams()],
        "LazyInOut": [t.LazyGetInput(), t.LazySetOutput()],
        "LambdaLift": [t.LambdaLift(), t.InlinePrivateFunctions()],
        "Rewrites": [
            t.AdjustMatmulOrder(), t.ExpandMatmulOfSum(), t.CombineParallelMatmul(), t.ReorderTakeAfterMatmul(), t.RemoveRedundantReshape(),
            t.ReorderPermuteDimsAfterConcat(), t.FastMathTransform(), t.DeadCodeElimination(),
        ],
        "Unused": [t.RemoveUnusedParameters(), t.RemoveUnusedOutputs(), t.TopologicalSort("depth-first", "from-inputs")],
        "Gradient": [t.Gradient("main")],
        "GradientLegal": [t.Gradient("main"), t.LegalizeOps(), t.FuseOps(), t.FuseTIR()],
        "zero": [relax.get_pipeline("zero")],
        "default_build": [relax.get_pipeline("default_build")],
    }  # fmt: skip


def printed(text, only):
    """Returns the results of the pipelines for a text, with their names, as far as they accept it."""
    chosen = {name: passes for name, passes in pipelines().items() if only in name}
    for name, passes in chosen.items():
        try:
            module = from_source(text, check_well_formed=False)
            if isinstance(module, relax.Function):
                module = tvm.IRModule({str((module.attrs or {}).get("global_symbol", "main")): module})
            if not isinstance(module, tvm.IRModule):
                return
            with tvm.target.Target("llvm"), tvm.transform.PassContext(opt_level=3):
                for one in passes:
                    module = one(module)
            yield name, module.script(show_meta=True)
        except Exception:  # TVM raises exceptions of any type: the pass does not apply to this module
            continue


def accepted(text):
    """Whether TVM reads a text and finds it well-formed."""
    try:
        from_source(text, check_well_formed=True)
        yield True
    except BaseException:  # TVM raises exceptions of any type
        yield False


def inputs(cases):
    """Yields ids and texts of the initial modules."""
    for line in open(cases / "modules.jsonl", encoding="utf-8"):
        row = json.loads(line)
        if row.get("well_formed") and row.get("roundtrip") and row["kind"] != "prim_func":
            yield row["id"], row.get("text_meta") or row["text"]
    for line in open(cases / "op_inference.jsonl", encoding="utf-8"):
        row = json.loads(line)
        if not row.get("negative") and not row.get("needs_meta"):
            yield row["id"], row["text_bare"]


def texts(rows, only, jobs, folder):
    """Writes the results of the pipelines to the folder, each text once."""
    parts = tvm_workers.batches(rows, MODULES_PER_CHILD)
    answers = tvm_workers.asked(parts, lambda row: printed(row[1], only), SECONDS_PER_MODULE, jobs)
    seen = set()
    for (identity, _), (results, _) in zip(rows, answers, strict=True):
        for name, text in results:
            key = hashlib.sha256(text.encode()).hexdigest()
            if key not in seen:
                seen.add(key)
                (folder / f"{identity}.{name}.rx").write_text(text, encoding="utf-8")
    return len(seen)


def main():
    """Prints the modules, checks them and reports."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rxcheck")
    parser.add_argument("cases", type=pathlib.Path)
    parser.add_argument("--keep", type=pathlib.Path, help="keep the texts in this folder; texts that are there already are used")
    parser.add_argument("--jobs", type=int, default=2, help="processes that run passes")
    parser.add_argument("--only", default="", help="only pipelines whose name holds this")
    parser.add_argument("--every", type=int, default=1, help="take every Nth module")
    parser.add_argument("--show", type=int, default=3, help="places to show of each kind")
    parser.add_argument("--allow", type=int, default=0, help="errors in texts that TVM accepts")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = args.keep or pathlib.Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        if not any(folder.iterdir()):
            rows = list(dict.fromkeys(inputs(args.cases)))[:: args.every]
            print(f"{len(rows)} modules, {texts(rows, args.only, args.jobs, folder)} texts", flush=True)
        found = rx_diagnostics.by_file(args.rxcheck, [folder])
        wrong = [file for file, rows in found.items() if rx_diagnostics.errors(rows)]
        asked = [pathlib.Path(file).read_text(encoding="utf-8") for file in wrong]
        verdicts = tvm_workers.first(tvm_workers.asked([asked], accepted, SECONDS_PER_MODULE), False)
        verdict = dict(zip(wrong, verdicts, strict=True))
    counts = collections.defaultdict(list)
    for file, rows in found.items():
        for row in rows:
            kind = "TVM accepts" if verdict.get(file) else "TVM refuses" if file in verdict else "no error"
            message = re.sub(r"`[^`]*`|\d+", "…", row["message"])[:100]
            counts[kind, row["severity"], row["code"], message].append(f"{pathlib.Path(file).name}:{row['line']}: {row['message']}")
    for (kind, severity, code, message), places in sorted(counts.items(), key=lambda item: (item[0][:3], -len(item[1]))):
        print(f"{len(places):5}  {kind}: {severity} {code} {message}")
        for place in places[: args.show]:
            print(f"           {place[:240]}")
    errors = sum(bool(verdict.get(file)) for file in wrong)
    print(f"{errors} texts with an error that TVM accepts, {len(wrong) - errors} that it refuses")
    return 1 if errors > args.allow else 0


if __name__ == "__main__":
    sys.exit(main())
