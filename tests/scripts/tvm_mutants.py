#!/usr/bin/env python3
"""Changes one token or line of a correct program at random, and reports mutants that only one of TVM and rxcheck rejects.

    tvm_mutants.py RXCHECK CASES [--count N] [--seed N] [--show N] [--kind KIND]...

Programs are the rows of CASES/modules.jsonl that TVM reads back and finds well-formed. A mutant is one of N (default 500) drawn
by the seed (default 0): another number, name, string or flag; an argument left out, doubled or swapped with its neighbour; a line left
out, doubled, or swapped with the next. TVM judges each in a child that may crash. A disagreement is one of

    missed          TVM rejects, rx has no error
    elsewhere       both reject; rx has no error on the changed lines, nor on the line that TVM names
    rx rejects      TVM accepts, rx has an error

The last is often right: TVM compares neither returns nor symbols. See docs/findings.md. Needs apache-tvm 0.27; says so and succeeds
without it.
"""

import argparse
import collections
import json
import pathlib
import random
import re

import rx_diagnostics
import tvm_workers  # before tvm: it says so where there is none

from tvm.script import from_source

SECONDS = 60
TOKEN = re.compile(r'"[^"\n]*"|\d+\.\d+(?:e-?\d+)?|\d+|[A-Za-z_]\w*|[\[\](){},]|\S')
KEYWORDS = set("class def with return if else for in import from as pass and or not I R T Module cls self int64 True False None".split())


def body_lines(lines):
    """Returns the lines that may be changed: no imports, no comments, not the metadata."""
    return [
        at
        for at, line in enumerate(lines)
        if line.strip() and not re.match(r"\s*(#|import |from |metadata|@I\.|class )", line) and len(line) < 2000
    ]


def other_number(rng, text):
    value = float(text) if "." in text else int(text)
    return str(rng.choice([value + 1, max(value - 1, 0), value * 2, 0, 1, 7, -value if value else -1, 99]))


def argument_spans(line):
    """Returns the spans of arguments: the texts between commas inside one pair of brackets."""
    found, stack = [], []
    for token in TOKEN.finditer(line):
        text = token.group()
        if text in "([{":
            stack.append([token.end()])
        elif text == "," and stack:
            stack[-1] += [token.start(), token.end()]
        elif text in ")]}" and stack:
            cuts = [*stack.pop(), token.start()]
            spans = [span for span in zip(cuts[::2], cuts[1::2], strict=True) if line[slice(*span)].strip()]
            if spans:
                found.append(spans)
    return found


def change_token(rng, lines, at, names):
    """Changes a number, name, string or flag."""
    line = lines[at]
    tokens = [t for t in TOKEN.finditer(line) if re.match(r'[\w"]', t.group()) and t.group() not in KEYWORDS - {"True", "False", "None"}]
    if not tokens:
        return None
    token = rng.choice(tokens)
    text = token.group()
    if text in ("True", "False"):
        kind, new = "flag", "False" if text == "True" else "True"
    elif text == "None":
        kind, new = "none", rng.choice(["0", "-1", '"float32"', "[1]"])
    elif text[0] == '"':
        kind, new = "string", rng.choice(['"zzz"', '"int32"', '"float16"', '"NHWC"', '""', *names["strings"]])
    elif text[0].isdigit():
        kind, new = "number", other_number(rng, text)
    else:
        same = [n for n in names["names"] if n != text]
        kind, new = "name", rng.choice([text + "_zz", rng.choice(same) if same else "zz"])
    return kind, [*lines[:at], line[: token.start()] + new + line[token.end() :], *lines[at + 1 :]], [at]


def change_argument(rng, lines, at, _names):
    """Leaves out an argument, doubles it, or swaps it with the next."""
    line = lines[at]
    groups = argument_spans(line)
    if not groups:
        return None
    spans = rng.choice(groups)
    which = rng.randrange(len(spans))
    start, end = spans[which]
    kind = rng.choice(["drop argument", "double argument", "swap arguments"])
    if kind == "swap arguments":
        if which + 1 == len(spans):
            return None
        low, high = spans[which + 1]
        new = line[:start] + line[low:high].strip() + ", " + line[start:end].strip() + line[high:]
    elif kind == "double argument":
        new = line[:end] + ", " + line[start:end].strip() + line[end:]
    else:
        end += line[end : end + 1] == ","
        new = line[:start] + line[end:]
    return kind, [*lines[:at], new, *lines[at + 1 :]], [at]


def change_line(rng, lines, at, _names):
    """Leaves out a line, doubles it, or swaps it with the next."""
    kind = rng.choice(["drop line", "double line", "swap lines"])
    indent = re.match(r"\s*", lines[at]).group()
    if kind == "drop line":
        return kind, [*lines[:at], indent + "pass" if indent else "", *lines[at + 1 :]], None
    if kind == "double line":
        return kind, [*lines[:at], lines[at], *lines[at:]], None
    if at + 1 == len(lines) or re.match(r"\s*", lines[at + 1]).group() != indent:
        return None
    return kind, [*lines[:at], lines[at + 1], lines[at], *lines[at + 2 :]], None


def mutant(rng, text):
    """Returns a mutant: its kind, its text, and the changed lines (`None`: an error anywhere counts)."""
    lines = text.split("\n")
    names = {"names": sorted(set(re.findall(r"[A-Za-z_]\w*", text)) - KEYWORDS), "strings": re.findall(r'"[^"\n]*"', text)[:20]}
    while True:
        how = rng.choices([change_token, change_argument, change_line], [6, 3, 2])[0]
        found = how(rng, lines, rng.choice(body_lines(lines)), names)
        if found and found[1] != lines:
            at = found[2] and found[2][0]
            return found[0], "\n".join(found[1]), None if at is not None and re.match(r"\s*def |.*TypeVar", lines[at]) else found[2]


def rejection(text):
    """Returns TVM's reason for rejecting a text; `None` if it accepts it."""
    try:
        from_source(text)
        yield None
    except Exception as error:  # TVM rejects texts with exceptions of any type
        yield str(error)


def verdict(tvm_says, errors, changed):
    """Returns the kind of a disagreement, if there is one."""
    if tvm_says is None:
        return "rx rejects" if errors else None
    if not errors:
        return "missed"
    named = re.search(r"--> <str>:(\d+):", tvm_says)
    right = {at + 1 for at in changed or []} | ({int(named.group(1))} if named else set())
    return None if changed is None or any(row["line"] in right for row in errors) else "elsewhere"


def main():
    """Draws the mutants, asks both, reports."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rxcheck")
    parser.add_argument("cases", type=pathlib.Path)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--show", type=int, default=40, help="disagreements shown of each kind")
    parser.add_argument("--kind", action="append", help="only these kinds of program: module, relax_function, prim_func")
    options = parser.parse_args()
    rng = random.Random(options.seed)
    rows = [json.loads(line) for line in (options.cases / "modules.jsonl").open()]
    rows = [row for row in rows if row.get("roundtrip") and row.get("well_formed") and "metadata[" not in row["text"] and (not options.kind or row["kind"] in options.kind)]
    drawn = [(row["id"], *mutant(rng, row["text"])) for row in rng.choices(rows, k=options.count)]
    texts = [text for _, _, text, _ in drawn]
    by_tvm = tvm_workers.first(tvm_workers.asked([texts], rejection, SECONDS), "crash")
    by_rx = map(rx_diagnostics.errors, rx_diagnostics.of_texts(options.rxcheck, texts))
    found = collections.defaultdict(list)
    for (base, kind, text, changed), tvm_says, errors in zip(drawn, by_tvm, by_rx, strict=True):
        what = verdict(tvm_says, errors, changed)
        if what:
            found[what].append((base, kind, text, changed, tvm_says, errors))
    originals = {row["id"]: row["text"].split("\n") for row in rows}
    for what, cases in sorted(found.items()):
        for base, kind, text, changed, tvm_says, errors in cases[: options.show]:
            print(f"## {what}: {kind} of {base}")
            lines, old = text.split("\n"), originals[base]
            at = changed[0] if changed else next((i for i, (a, b) in enumerate(zip(lines, old)) if a != b), 0)
            print(f"  {at + 1}: {old[at].strip()[:400]}\n   -> {lines[at].strip()[:400]}")
            print(f"  tvm {None if tvm_says is None else ' '.join(re.sub(r'[ ^]{4,}', ' ', tvm_says).split())[-300:]}")
            print(*(f"  rx {row['line']}: [{row['name']}] {row['message'][:200]}\n" for row in errors[:3]), sep="", end="")
    print(f"{len(drawn)} mutants; {({what: len(cases) for what, cases in found.items()})}")


if __name__ == "__main__":
    main()
