"""Runs rxcheck and returns its diagnostics as rows of `--format json`."""

import collections
import json
import pathlib
import subprocess
import tempfile

FILES_PER_RUN = 500


def rows(rxcheck, *arguments):
    """Returns the rows of one run. Raises if rxcheck fails; errors in the checked texts are not failures."""
    command = [str(part) for part in (rxcheck, "--format", "json", *arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise RuntimeError(f"rxcheck ended with {done.returncode}: {done.stderr[:2000]}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def by_file(rxcheck, paths, *options):
    """Returns the diagnostics of files, or of a folder's files, by path."""
    found = collections.defaultdict(list)
    for start in range(0, len(paths), FILES_PER_RUN):
        for row in rows(rxcheck, *options, *paths[start : start + FILES_PER_RUN]):
            found[row["file"]].append(row)
    return found


def of_texts(rxcheck, texts, *options):
    """Returns the diagnostics of each text, checked alone."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [pathlib.Path(folder, f"{number}.rx") for number in range(len(texts))]
        for path, text in zip(paths, texts, strict=True):
            path.write_text(text, encoding="utf-8")
        found = by_file(rxcheck, [folder], "--isolated", *options)
    return [found[str(path)] for path in paths]


def errors(some):
    """Returns the rows of severity error."""
    return [row for row in some if row["severity"] == "error"]
