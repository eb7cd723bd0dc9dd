#!/usr/bin/env python3
"""TVM's verdicts on texts: conformance_defects.py runs this with each of its `--tvm` interpreters.

    python tvm_verdicts.py < REQUESTS > VERDICTS

REQUESTS is a JSON list of objects with `text` and, where TVM's LiftTransformParams is to be compared, `lifted_from`: a program whose
functions after the pass should be those of `text`. VERDICTS is JSON: `tvm`, the version, and `verdicts`, for each request a list of the
reason why TVM refuses the text (null where it accepts) and whether the lifted functions are the same (null without a question).
"""

import json
import sys

import tvm_workers  # before tvm: it says so where there is none

import tvm
from tvm.relax.transform import LiftTransformParams
from tvm.script import from_source

SECONDS = 60
PER_CHILD = 20


def refusal(text):
    """Returns TVM's reason for rejecting a text, from its parser or its well-formedness check; None if it accepts it.
    """
    try:
        module = from_source(text, check_well_formed=False)
        verdict = tvm.relax.analysis.well_formed(module)  # since 0.27 this raises the reason
        return None if verdict is None or verdict else "not well-formed"
    except BaseException as error:  # TVM raises exceptions of any type
        return " ".join(str(error).split("--> <str>")[0].split())[:400] or type(error).__name__


def is_lifted(text, source):
    """Returns whether LiftTransformParams converts a program to the functions of a text."""
    made, wanted = LiftTransformParams()(from_source(source)), from_source(text, check_well_formed=False)
    try:
        for name in ("main", "main_transform_params"):
            tvm.ir.assert_structural_equal(made[name], wanted[name], map_free_vars=True)
    except Exception:  # the program cannot be compared, so the answer is no
        return False
    return True


def verdict(request):
    lifted = request.get("lifted_from")
    yield [refusal(request["text"]), is_lifted(request["text"], lifted) if lifted else None]


def main():
    """Reads the requests, asks TVM, prints the verdicts."""
    parts = tvm_workers.batches(json.load(sys.stdin), PER_CHILD)
    answers = tvm_workers.first(tvm_workers.asked(parts, verdict, SECONDS), ["TVM crashes", None])
    json.dump({"tvm": tvm.__version__, "verdicts": answers}, sys.stdout)


if __name__ == "__main__":
    main()
