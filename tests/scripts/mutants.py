#!/usr/bin/env python3
"""Runs every tool on mutated programs: no tool may crash or hang, and formatting may not change a diagnostic.

    mutants.py BIN [--cases FOLDER] [--count 4000] [--seed 0] [--seconds 2] [--jobs 2] [--keep FOLDER] [--tool NAME]...

BIN is a folder with the binaries. Programs are the texts of the .jsonl files under FOLDER (`RX_CASES` by default), its models, and the
programs of tests/mdtest. A mutant is a program with one to three changes, drawn by the seed: tokens left out, doubled, swapped or
replaced by another of the program; other numbers, dtypes and strings; lines left out, doubled, swapped, or spliced in from another
program; a text cut off. The tools, with the accepted exit statuses and the requirements:

    rxcheck   exit status 0 or 1
    rxfmt     0 or 2; if it formats, rxcheck must report the same before and after, apart from positions
    rxopt     the default pipeline: 0, 1 or 2
    tir, cpu, cuda    `rxrun --emit`: 0, 1 or 2

Each must finish within --seconds per text (a debug build needs more, about ten). A violation is printed with a file that shows it, which
`--keep` keeps. Exit status 1 if there was one.
"""

import argparse
import collections
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TOKEN = re.compile(r'"[^"\n]*"|\d+\.\d+(?:e-?\d+)?|\d+|[A-Za-z_]\w*|\*\*|//|->|[<>=!]=|\S')
DTYPES = "bool int4 int8 int32 int64 uint8 uint32 float16 float32 float64 bfloat16 float8_e4m3fn handle void int8x4 zzz".split()
NUMBERS = "0 1 -1 2 7 16 255 256 65536 2147483647 2147483648 4294967296 9223372036854775807 9223372036854775808 1e400 0.5 -0.0 1e-320".split()
LONGEST = 30_000
RUNS = {"rxopt": (0, 1, 2), "tir": (0, 1, 2), "cpu": (0, 1, 2), "cuda": (0, 1, 2)}
TOOLS = ("rxcheck", "rxfmt", *RUNS)
BATCH = 100


def programs(cases):
    """Returns the texts to mutate."""
    for path in sorted(cases.glob("cases/**/*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            text = json.loads(line).get("text")
            if isinstance(text, str) and len(text) < LONGEST:
                yield text
    for path in sorted(cases.glob("models/*.rx")):
        text = path.read_text(encoding="utf-8")
        if len(text) < LONGEST:
            yield text
    for path in sorted((ROOT / "tests/mdtest").glob("*.md")):
        yield from re.findall(r"^```rx[^\n]*\n(.*?)^```", path.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def change_token(rng, line, other):
    """Returns a line with a token left out, doubled, swapped, replaced or changed."""
    tokens = list(TOKEN.finditer(line))
    if not tokens:
        return line
    token = rng.choice(tokens)
    before, text, after = line[: token.start()], token.group(), line[token.end() :]
    how = rng.randrange(6)
    if how == 0:
        return before + after
    if how == 1:
        return before + text + " " + text + after
    if how == 2:
        second = rng.choice(tokens)
        low, high = sorted((token, second), key=lambda it: it.start())
        if low.end() > high.start():
            return line
        return line[: low.start()] + high.group() + line[low.end() : high.start()] + low.group() + line[high.end() :]
    if how == 3:
        found = TOKEN.findall(other)
        return before + (rng.choice(found) if found else text) + after
    if text[0].isdigit():
        return before + rng.choice([*NUMBERS, str(rng.randrange(1 << 20))]) + after
    if text[0] == '"':
        return before + '"' + rng.choice([*DTYPES, "", "n", "n + 1", "\\x", "NCHW", "NHWC4c"]) + '"' + after
    if text in DTYPES:
        return before + rng.choice(DTYPES) + after
    return before + after


def change(rng, lines, others):
    """Returns a list of lines with one change."""
    at = rng.randrange(len(lines))
    how = rng.choices(["token", "drop", "double", "swap", "splice", "cut", "indent"], [70, 6, 6, 6, 6, 3, 3])[0]
    if how == "token":
        return [*lines[:at], change_token(rng, lines[at], rng.choice(lines)), *lines[at + 1 :]]
    if how == "drop":
        return lines[:at] + lines[at + 1 :]
    if how == "double":
        return lines[: at + 1] + lines[at:]
    if how == "swap":
        second = rng.randrange(len(lines))
        new = list(lines)
        new[at], new[second] = new[second], new[at]
        return new
    if how == "splice":
        other = rng.choice(others).split("\n")
        start = rng.randrange(len(other))
        return lines[:at] + other[start : start + rng.randint(1, 4)] + lines[at:]
    if how == "cut":
        return [*lines[:at], lines[at][: rng.randint(0, len(lines[at]))]]
    return [*lines[:at], " " * rng.randrange(9) + lines[at].lstrip(), *lines[at + 1 :]]


def mutant(rng, texts):
    """Returns a mutated program."""
    lines = rng.choice(texts).split("\n")
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        lines = change(rng, lines, texts) or [""]
    return "\n".join(lines)


class Tools:
    """The binaries, with the accepted results of each."""

    def __init__(self, folder, seconds):
        self.folder, self.seconds = folder, seconds

    def run(self, name, *arguments, texts=1):
        """Runs a tool; returns its exit status (or a word if it took too long or was killed) and its output."""
        command = [str(self.folder / name), *map(str, arguments)]
        try:
            done = subprocess.run(command, capture_output=True, check=False, timeout=self.seconds * texts, stdin=subprocess.DEVNULL)
        except subprocess.TimeoutExpired:
            return "out of time", ""
        said = done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
        if done.returncode < 0 or done.returncode > 2:
            return f"exit status {done.returncode}: {said[1].strip()[-300:]}", ""
        return done.returncode, said[0]

    def checked(self, paths):
        """Returns the codes and messages that rxcheck reports by path, and failed runs by path."""
        found, failed = {str(path): [] for path in paths}, {}
        status, said = self.run("rxcheck", "--isolated", "--format", "json", *paths, texts=len(paths))
        if status in (0, 1):
            for row in map(json.loads, said.splitlines()):
                found[row["file"]].append((row["code"], row["severity"], plain(row["message"])))
        elif len(paths) == 1:
            failed[str(paths[0])] = f"rxcheck: {status}"
        else:
            for path in paths:
                one, bad = self.checked([path])
                found |= one
                failed |= bad
        return {path: sorted(rows) for path, rows in found.items()}, failed

    def formatted(self, paths, before):
        """Returns failures of rxfmt, and diagnostics that it changes, by path."""
        failed, changed = {}, []
        for path in paths:
            copy = path.with_suffix(".formatted.rx")
            copy.write_bytes(path.read_bytes())
            status, _ = self.run("rxfmt", copy)
            if status not in (0, 2):
                failed[str(path)] = f"rxfmt: {status}"
            elif status == 0 and copy.read_bytes() != path.read_bytes():
                changed.append(copy)
        after, worse = self.checked(changed) if changed else ({}, {})
        for copy in changed:
            path = str(copy).replace(".formatted.rx", ".rx")
            if str(copy) in worse:
                failed[path] = f"formatted: {worse[str(copy)]}"
            elif after[str(copy)] != before[path]:
                gone = [row for row in before[path] if row not in after[str(copy)]]
                new = [row for row in after[str(copy)] if row not in before[path]]
                failed[path] = f"rxfmt changes diagnostics: gone {gone[:2]}, new {new[:2]}"
        return failed

    def executed(self, tool, path):
        """Returns how a run of rxopt or rxrun fails; None if it succeeds."""
        if tool == "rxopt":
            status, _ = self.run("rxopt", path, "--pipeline", "default")
        else:
            status, _ = self.run("rxrun", path, "--emit", tool)
        return None if status in RUNS[tool] else f"{tool}: {status}"


def plain(message):
    """Returns a message without the layout of the text it quotes."""
    return re.sub(r"[\s'\"]+", "", message)


def batch(tools, wanted, folder, texts):
    """Runs one batch; returns its failures as pairs of a text and a description, and the number of runs by tool and
    outcome."""
    paths = []
    for number, text in enumerate(texts):
        path = folder / f"{number:04}.rx"
        path.write_text(text, encoding="utf-8", errors="replace")
        paths.append(path)
    counts = collections.Counter()
    before, failed = tools.checked(paths)
    counts["rxcheck", "errors"] = sum(any(row[1] == "error" for row in rows) for rows in before.values())
    counts["rxcheck", "clean"] = len(paths) - counts["rxcheck", "errors"]
    failures = [(path, how) for path, how in failed.items()]
    if "rxfmt" in wanted:
        failures += tools.formatted([path for path in paths if str(path) not in failed], before).items()
        counts["rxfmt", "texts"] = len(paths)
    # For most mutants the other tools stop at errors, so run them only on a sample.
    for tool in (tool for tool in RUNS if tool in wanted):
        for number, path in enumerate(paths):
            is_wrong = any(row[1] == "error" for row in before[str(path)])
            if str(path) in failed or (is_wrong and number % 10):
                continue
            how = tools.executed(tool, path)
            counts[tool, "failed" if how else "with errors" if is_wrong else "clean"] += 1
            if how:
                failures.append((str(path), how))
    return [(pathlib.Path(path).read_text(encoding="utf-8"), how) for path, how in failures], counts


def main():
    """Draws the mutants, runs the tools, reports."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", type=pathlib.Path)
    parser.add_argument("--cases", type=pathlib.Path, default=os.environ.get("RX_CASES"))
    parser.add_argument("--count", type=int, default=4000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--keep", type=pathlib.Path, help="a folder for the texts that show a failure")
    parser.add_argument("--tool", action="append", choices=TOOLS, help="only this tool")
    options = parser.parse_args()
    rng = random.Random(options.seed)
    texts = list(programs(options.cases)) if options.cases else list(programs(pathlib.Path("/nowhere")))
    mutants = [mutant(rng, texts) for _ in range(options.count)]
    tools, wanted = Tools(options.bin.resolve(), options.seconds), options.tool or TOOLS
    start = time.monotonic()

    def run(some):
        with tempfile.TemporaryDirectory() as folder:
            return batch(tools, wanted, pathlib.Path(folder), some)

    failures, counts, done = [], collections.Counter(), 0
    with ThreadPoolExecutor(options.jobs) as pool:  # Threads suffice, since they only wait for the tools.
        for found, counted in pool.map(run, [mutants[at : at + BATCH] for at in range(0, len(mutants), BATCH)]):
            for text, how in found:
                print(f"FAILED {how}", flush=True)
                if options.keep:
                    options.keep.mkdir(parents=True, exist_ok=True)
                    (options.keep / f"{len(failures):04}.rx").write_text(f"# {how}\n".replace("\n", " ")[:300] + "\n" + text)
                failures.append(how)
            counts += counted
            done += 1
            print(f"\r{min(done * BATCH, len(mutants))} of {len(mutants)}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    for (tool, what), number in sorted(counts.items()):
        print(f"{tool}: {number} {what}")
    print(f"{len(mutants)} mutants of {len(texts)} programs, {len(failures)} failures, {time.monotonic() - start:.0f} s")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
