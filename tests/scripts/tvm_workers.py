"""Runs TVM in child processes, since it may crash or hang: a failure then affects only one text.

If apache-tvm is missing, importing this module prints a message and ends the program with success.
"""

import json
import os
import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

os.environ.setdefault("TVM_NUM_THREADS", "1")
try:
    import tvm  # noqa: F401: children are forked with TVM loaded
except ImportError:
    print("skipped: apache-tvm is not installed")
    sys.exit(0)

FORKS = threading.Lock()


def batches(items, size):
    """Splits items into lists of limited length."""
    items = list(items)
    return [items[start : start + size] for start in range(0, len(items), size)]


def asked(some, answer, seconds, jobs=1):
    """Calls `answer(item)` for every item of some batches, in order; yields pairs of its values and how it ended.

    Values pass through JSON. The end is "" if it succeeded, otherwise the exception, "out of time" after the time limit,
    or "signal N"; values yielded before that are kept. Each batch has a separate process, whose output is discarded, and a new
    one after a crash; `jobs` of them run at once.
    """
    # Threads suffice, since they only wait for the processes.
    with ThreadPoolExecutor(jobs) as pool:
        for found in pool.map(lambda items: list(_batch(items, answer, seconds)), some):
            yield from found


def first(found, otherwise):
    """Returns for each pair of `asked` its single value, or `otherwise` if the child yielded none."""
    return [said[0] if said else otherwise for said, _ in found]


def _batch(items, answer, seconds):
    """Does the work of `asked` for one batch."""
    done = 0
    while done < len(items):
        reader, child = _fork(items[done:], answer, seconds)
        said = []
        with os.fdopen(reader, encoding="utf-8") as lines:
            for kind, value in (json.loads(line) for line in lines if line.endswith("\n")):
                if kind == "value":
                    said.append(value)
                else:
                    yield said, value
                    said, done = [], done + 1
        _, status = os.waitpid(child, 0)
        if done < len(items):
            yield said, _died_of(status)
            done += 1


def _died_of(status):
    """Describes how a child ended that had not finished its work."""
    if not os.WIFSIGNALED(status):
        return "the process ended"
    number = os.WTERMSIG(status)
    return "out of time" if number == signal.SIGALRM else f"signal {number}"


def _fork(items, answer, seconds):
    """Starts a child; returns the pipe to read from, and its process id."""
    with FORKS:  # A child that another thread forks at the same time would keep the pipe open.
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                _work(items, answer, seconds, writer)
            finally:
                os._exit(0)
        os.close(writer)
    return reader, child


def _work(items, answer, seconds, writer):
    """Runs in the child: writes a line for each value, and one for each finished item."""
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)

    def send(kind, value):
        left = (json.dumps([kind, value]) + "\n").encode()
        while left:
            left = left[os.write(writer, left) :]

    for item in items:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        end = ""
        try:
            for value in answer(item):
                send("value", value)
        except Exception as error:  # any exception of TVM
            end = f"{type(error).__name__}: {error}"
        send("end", end)
