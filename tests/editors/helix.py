"""Drives Helix with editors/helix/languages.toml in an emulated terminal, and reads its screen. Writes a line per feature to $RX_REPORT.

usage: helix.py HX        with pyte
"""

import fcntl
import json
import os
import pathlib
import pty
import select
import struct
import sys
import termios
import time

import pyte

WAIT = 60
ROWS, COLUMNS = 40, 160

# The kitty encoding of Escape: after the bare character the next key would count as Alt+key.
ESCAPE = "\x1b[27u"

work = pathlib.Path(os.environ["RX_WORK"])
report = open(os.environ["RX_REPORT"], "w")


class Screen(pyte.Screen):
    """pyte's screen, ignoring private queries (escape sequences that begin with `?`), which pyte does not know."""

    def report_device_status(self, mode, **_):
        super().report_device_status(mode)

    def report_device_attributes(self, mode=0, **_):
        super().report_device_attributes(mode)


class Terminal:
    def __init__(self, command):
        self.screen = Screen(COLUMNS, ROWS)
        self.stream = pyte.ByteStream(self.screen)
        self.child, self.file = pty.fork()
        if self.child == 0:
            os.execvpe(command[0], command, {**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor"})
        self.screen.write_process_input = self.type
        fcntl.ioctl(self.file, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))

    def shown(self):
        return "\n".join(self.screen.display)

    def until(self, condition, what):
        """Reads output until the screen, or another condition, is as wanted."""
        end = time.monotonic() + WAIT
        while not condition():
            left = end - time.monotonic()
            assert left > 0, f"did not come: {what}; the screen shows: {self.shown().strip()}"
            if select.select([self.file], [], [], min(left, 0.1))[0]:
                try:
                    self.stream.feed(os.read(self.file, 1 << 16))
                except OSError:
                    assert condition(), f"helix ended before: {what}"
                    return

    def until_shown(self, text):
        self.until(lambda: text in self.shown(), text)

    def type(self, keys):
        os.write(self.file, keys.encode())


def feature(name, check):
    try:
        check()
        report.write(f"ok {name}\n")
    except AssertionError as problem:
        report.write(f"not ok {name}: {' '.join(str(problem).split())}\n")
    report.flush()


def attach():
    helix.until_shown("conv = R.nn.conv2d")


def diagnostics():
    # Line 8 has the mistake: Helix shows the message of the cursor's line next to it.
    helix.type("8G")
    helix.until_shown("axis 2 is 112")


def hover():
    helix.type(ESCAPE + "gg/conv =\r")
    helix.type(" k")
    helix.until_shown("(1, 64, 112, 112)")
    helix.type(ESCAPE)


def run():
    helix.type(ESCAPE + ":lsp-workspace-command rx.run\r")
    helix.until(lambda: any(end in helix.shown() for end in [" ran in ", "was not run"]), "the end of the run")


config = pathlib.Path(os.environ["XDG_CONFIG_HOME"]) / "helix"
config.mkdir(parents=True)
languages = (pathlib.Path(__file__).parent / "../../editors/helix/languages.toml").read_text()
# The configuration that the README describes.
arguments = json.dumps(os.environ.get("RX_RUN_ARGUMENTS", "").split())
(config / "languages.toml").write_text(
    languages.replace("[language-server.rx]", f"[language-server.rx]\nconfig = {{ run = {{ arguments = {arguments} }} }}")
)
(config / "config.toml").write_text('[editor]\nend-of-line-diagnostics = "hint"\n')

helix = Terminal([sys.argv[1], str(work / "conv_relu.rx")])
feature("attach", attach)
feature("diagnostics", diagnostics)
feature("hover", hover)
feature("run", run)


def end():
    helix.type(ESCAPE + ":quit!\r")
    assert os.waitpid(helix.child, 0)[1] == 0, "helix did not end well"


feature("end", end)
report.close()
