"""Converts the texts of models to another batch size or dtype: the texts that the exporter would have written.

Annotations of bindings are left out, since rx infers them from the parameters and from the shapes in calls.
"""

import re

DTYPES = {"float32": "float32", "tf32": "float32", "bfloat16": "bfloat16", "float16": "float16"}


def variant(text: str, batch: int, dtype: str) -> str:
    """Returns the text for a batch size and a dtype; the original text if both are the original ones."""
    if batch != 1:
        text = batched(text, batch)
    element = DTYPES[dtype]
    return text if element == "float32" else text.replace('"float32"', f'"{element}"')


def batched(text: str, batch: int) -> str:
    """Converts the text of a model of batch 1 to another batch size."""
    lines = []
    for line in text.splitlines():
        if line.lstrip().startswith("def "):
            # The first parameter is the input; the types of bindings and results are inferred.
            line = re.sub(r"(R\.Tensor\(\()1,", rf"\g<1>{batch},", line, count=1)
            line = re.sub(r"\) -> .*:$", "):", line)
        else:
            line = re.sub(r"^(\s*\w+): R\.(?:Tensor|Tuple|Shape)\(.*?\) = (?=R\.|\w)", r"\1 = ", line)
            line = re.sub(r"(R\.shape\(\[)1,", rf"\g<1>{batch},", line)
        lines.append(line)
    return "\n".join(lines) + "\n"
