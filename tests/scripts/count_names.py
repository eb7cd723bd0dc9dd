#!/usr/bin/env python3
"""Counts how many functions use each name of `R`, `T` and `I`, and how many Relax functions use each dtype. Completion
ranks names by these counts.

usage: count_names.py FOLDER... > compiler/ide/src/completion/uses.txt

Reads the .rx and .py files of the folders, for example a collection of models and the Python tests of TVM. A function is
the text from one `def` to the next; it counts once for a name, however often it uses it.
"""

import collections
import pathlib
import re
import sys

NAME = re.compile(r"\b[RTI](?:\.[A-Za-z_]\w*)+")
DTYPE = re.compile(r'"((?:float|bfloat|int|uint|bool)[0-9]*(?:_e\dm\dfn?)?)"')
LEAST = 2


def main() -> None:
    counts: collections.Counter[str] = collections.Counter()
    for folder in sys.argv[1:]:
        for path in sorted(pathlib.Path(folder).rglob("*")):
            if path.suffix not in (".rx", ".py") or not path.is_file():
                continue
            text = path.read_text(encoding="utf-8", errors="replace")
            for function in re.split(r"^\s*def ", text, flags=re.M):
                counts.update(set(NAME.findall(function)))
                if "R.Tensor" in function:
                    counts.update(set(DTYPE.findall(function)))
    for name, count in sorted(counts.items()):
        if count >= LEAST:
            print(count, name)


main()
