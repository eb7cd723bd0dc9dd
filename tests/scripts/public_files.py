#!/usr/bin/env python3
"""Groups rxcheck's diagnostics of public TVMScript files by kind, and compares them with TVM's verdicts.

    public_files.py FOLDER [--rxcheck target/release/rxcheck] [--tvm PYTHON]... [--verdicts FOLDER] [--only TEXT] [--show N] [--jobs N]

FOLDER contains a folder for each repository. Files named .py, .rx, .tvmscript and .txt that contain a decorator of TVMScript are each
checked alone. A kind is a code and a message without its names and numbers; each is printed with its number of diagnostics, files and
repositories, and a place.

Each PYTHON has a separate apache-tvm, which decides which definitions it accepts (`public_verdicts.py`); the verdicts are cached in
the folder `--verdicts`. Errors inside definitions that one of them accepts are listed by kind. Kinds in the table "Public files" of
docs/findings.md are explained there and counted separately. Exit status 1: other errors on what a TVM accepts, or a run of rxcheck that crashed
or took longer than 10 seconds for a file.
"""

import argparse
import collections
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import rx_diagnostics
from script_regions import shape_of

HERE = pathlib.Path(__file__).resolve().parent
FINDINGS = HERE.parent.parent / "docs/findings.md"
SUFFIXES = {".py", ".rx", ".tvmscript", ".txt"}
SCRIPT = re.compile(rb"^\s*@(?:I|R|T|Tx|tvm\.script|relax|tir|tirx|script)\.(?:ir_module|function|prim_func)\b|^\s*@ir_module", re.MULTILINE)
SECONDS_PER_FILE = 10
FILES_PER_RUN = 50


def files_of(folder, only):
    """Returns the files with TVMScript in a folder."""
    for path in sorted(folder.rglob("*")):
        if path.suffix in SUFFIXES and path.is_file() and only in str(path) and SCRIPT.search(path.read_bytes()):
            yield path


def checked(rxcheck, paths):
    """Returns rows by path, and failed runs as pairs of a path and a description."""
    found, failed = collections.defaultdict(list), []
    todo = [paths[start : start + FILES_PER_RUN] for start in range(0, len(paths), FILES_PER_RUN)]
    while todo:
        some = todo.pop()
        how = None
        try:
            done = subprocess.run(
                [rxcheck, "--format", "json", "--isolated", *some],
                capture_output=True, text=True, check=False, timeout=SECONDS_PER_FILE * len(some),
            )
            if done.returncode not in (0, 1):
                how = f"exit status {done.returncode}: {done.stderr.strip()[-200:]}"
        except subprocess.TimeoutExpired:
            how = "out of time"
        if how is None:
            for row in map(json.loads, done.stdout.splitlines()):
                found[row["file"]].append(row)
        elif len(some) == 1:
            failed.append((some[0], how))
        else:
            todo += [[path] for path in some]
    return found, failed


def as_rx(path, folder):
    """Returns the path to pass to rxcheck: a text file is copied as `.rx`."""
    if path.suffix != ".txt":
        return str(path)
    copy = pathlib.Path(folder, *path.parts[1:]).with_suffix(".rx")
    copy.parent.mkdir(parents=True, exist_ok=True)
    copy.write_bytes(path.read_bytes())
    return str(copy)


def verdicts(python, paths, kept):
    """Returns the definitions by path with the verdicts of the TVM of `python`; reuses those in the file `kept`."""
    known = json.loads(kept.read_text()) if kept and kept.exists() else {"tvm": "", "files": {}}
    new = [path for path in paths if path not in known["files"]]
    if new:
        done = subprocess.run(
            [python, HERE / "public_verdicts.py"], input="\n".join(new), capture_output=True, text=True, check=False
        )
        if done.returncode or not done.stdout.startswith("{"):
            sys.exit(f"{python}: {done.stdout.strip()[-200:]} {done.stderr.strip()[-400:]}")
        said = json.loads(done.stdout)
        known = {"tvm": said["tvm"], "files": known["files"] | said["files"]}
        if kept:
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.write_text(json.dumps(known))
    return known


def argued():
    """Returns the kinds of the table in docs/findings.md, with rows `| RX0000 | how the message starts | reason |`."""
    rows = re.findall(r"^\| (RX\d{4}) \| (.*?) \| .* \|$", FINDINGS.read_text(encoding="utf-8"), re.MULTILINE)
    return [(code, shape_of(start)) for code, start in rows]


def is_argued(kind, rows):
    """Returns whether a row of `argued` has this code and shape."""
    return any(kind[0] == code and kind[1].startswith(start) for code, start in rows)


def kind_of(row):
    """Returns a diagnostic's code and the shape of its message."""
    return row["code"], shape_of(row["message"])


def table(title, rows, repository, show, marked=()):
    """Prints kinds, largest first; `rows` are pairs of a path and a diagnostic."""
    kinds = collections.defaultdict(list)
    for path, row in rows:
        kinds[(row["severity"], *kind_of(row))].append((path, row))
    files = {path for path, _ in rows}
    print(f"\n## {title}: {len(rows)} in {len(files)} files\n")
    for (severity, code, shape), some in sorted(kinds.items(), key=lambda item: -len(item[1])):
        places = {path for path, _ in some}
        repositories = {repository(path) for path in places}
        note = " (argued)" if is_argued((code, shape), marked) else ""
        print(f"{len(some):6} in {len(places)} files, {len(repositories)} repositories: {severity} {code} {shape}{note}")
        for path, row in some[:: max(1, len(some) // show)][:show]:
            print(f"           {path}:{row['line']}:{row['column']}: {row['message']}")


def main():
    """Checks the files, asks the TVMs, reports."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--rxcheck", default="target/release/rxcheck")
    parser.add_argument("--tvm", action="append", default=[], help="a Python with apache-tvm")
    parser.add_argument("--verdicts", type=pathlib.Path, help="a folder that keeps what the TVMs say")
    parser.add_argument("--only", default="", help="only files whose path holds this text")
    parser.add_argument("--show", type=int, default=1, help="places to show of each kind")
    options = parser.parse_args()
    paths = list(files_of(options.folder, options.only))
    if not paths:
        print(f"skipped: no TVMScript under {options.folder}")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        given = {as_rx(path, folder): str(path) for path in paths}
        found, failed = checked(options.rxcheck, list(given))
    rows = [(given[path], row) for path, some in found.items() for row in some]

    def repository(path):
        return pathlib.Path(path).relative_to(options.folder).parts[0]

    print(f"{len(paths)} files of {len({repository(path) for path in map(str, paths)})} repositories; {len(rows)} diagnostics")
    for path, how in failed:
        print(f"FAILED {path}: {how}")
    accepted = collections.defaultdict(set)  # by path the lines of definitions that one of the TVMs accepts
    for python in options.tvm:
        kept = options.verdicts and options.verdicts / f"{python.strip('/').replace('/', '_')}.json"
        said = verdicts(python, list(map(str, paths)), kept)
        total, good = 0, 0
        for path, definitions in said["files"].items():
            for first, last, reason in definitions:
                total += 1
                good += reason is None
                if reason is None:
                    accepted[path].update(range(first, last + 1))
        print(f"TVM {said['tvm']} accepts {good} of {total} definitions")
    marked = argued()
    wrong = [(path, row) for path, row in rows if row["severity"] == "error" and row["line"] in accepted[path]]
    if options.tvm:
        table("errors on what a TVM accepts", wrong, repository, max(options.show, 3), marked)
    for severity in ("error", "warning", "hint", "info"):
        some = [(path, row) for path, row in rows if row["severity"] == severity]
        if some:
            table(f"{severity}s", some, repository, options.show)
    return 1 if failed or any(not is_argued(kind_of(row), marked) for _, row in wrong) else 0


if __name__ == "__main__":
    sys.exit(main())
