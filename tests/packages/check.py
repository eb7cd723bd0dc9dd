#!/usr/bin/env python3
"""Tests each package, from installing its file to the first diagnostic and the first run, in an otherwise empty environment.

usage: check.py [--glibc VERSION] [--strict] FILE…

FILE is an archive (.tar.gz, .zip), a Python wheel (.whl) or a VS Code extension (.vsix), made for this machine:

- an archive is unpacked into an empty root that contains only the C library besides; its five programs run there;
- a wheel is installed into a new virtual environment; its five programs run with that `PATH` and an empty `HOME`;
- an extension is unpacked into an empty folder; its rx-lsp publishes a diagnostic and runs a program by the bundled rxrun.

On Linux the newest glibc symbol that a program needs is printed; with --glibc one newer than VERSION is an error, and so is a wheel
that pip installs only where glibc is newer. Other systems have no empty root: there the archive's programs run with an empty
environment. If a tool is missing on Linux, or Python cannot create virtual environments, that part prints `skipped: archive: why` or
`skipped: wheel: why`; with --strict that is an error.
"""

import argparse
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import venv
import xml.etree.ElementTree
import zipfile
from pathlib import Path

from make import PLATFORMS, PROGRAMS, ROOT
from session import Server, first_diagnostic, first_run

EXAMPLES = ROOT / "examples"
MISTAKE = "conv_relu_mismatch.rx"
FIXED = "conv_relu_fixed.rx"
FORMATTED = "convnet.rx"

# Libraries that every glibc system has. libgcc_s unwinds Rust's panics.
SYSTEM_LIBRARIES = r"(libc|libm|libdl|librt|libpthread|libgcc_s|ld-linux-[\w-]+)\.so\.\d+"

WINDOWS = sys.platform == "win32"
LINUX = sys.platform == "linux"
ENDING = ".exe" if WINDOWS else ""

# Reasons why a part was skipped.
skips = []


class Place:
    """An environment for running programs: the command prefix, their paths, their environment variables, and the
    examples' paths inside it."""

    def __init__(self, programs, examples, path, enter=(), cwd=None, home=None):
        self.programs, self.examples, self.enter, self.cwd = programs, examples, list(enter), cwd
        self.env = {"PATH": str(path)}
        if home is not None:
            self.env["HOME"] = str(home)
        if WINDOWS:
            self.env["SYSTEMROOT"] = os.environ["SYSTEMROOT"]

    def command(self, program, *arguments):
        return [*self.enter, f"{self.programs}/{program}{ENDING}", *arguments]

    def example(self, name):
        return f"{self.examples}/{name}"

    def run(self, program, *arguments, status, output):
        """Runs a program and requires its exit status and a text in its output."""
        command = self.command(program, *arguments)
        run = subprocess.run(command, cwd=self.cwd, env=self.env, stdin=subprocess.DEVNULL, capture_output=True, timeout=300)
        stdout, stderr = (stream.decode("utf-8", "replace") for stream in (run.stdout, run.stderr))
        report = f"{program} {' '.join(arguments)}: status {run.returncode}\n{stdout}{stderr}"
        assert run.returncode == status, f"expected status {status} of {report}"
        assert output in stdout, f"expected `{output}` from {report}"

    def serve(self):
        """Runs rx-lsp: the first diagnostic of a program, then a run with the rxrun of the same place."""
        base = Path(self.examples).as_uri()
        with Server(self.command("rx-lsp"), cwd=self.cwd, env=self.env) as server:
            first_diagnostic(server, f"{base}/{MISTAKE}", (EXAMPLES / MISTAKE).read_text(encoding="utf-8"), "RX0501")
            first_run(server, f"{base}/{FIXED}", (EXAMPLES / FIXED).read_text(encoding="utf-8"))

    def five_programs(self):
        self.run("rxcheck", self.example(MISTAKE), status=1, output="error[RX0501")
        self.run("rxfmt", "--check", self.example(FORMATTED), status=0, output="")
        self.run("rxopt", self.example(FORMATTED), "--pass", "DeadCodeElimination", status=0, output="@R.function")
        self.run("rxrun", self.example(FIXED), status=0, output="out0: float32 (1, 16, 14, 14)")
        self.serve()


def main():
    parser = argparse.ArgumentParser(usage="check.py [--glibc VERSION] [--strict] FILE…")
    parser.add_argument("--glibc")
    parser.add_argument("--strict", action="store_true")
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    options = parser.parse_args()
    for file in options.files:
        check = next((kinds[ending] for ending in kinds if file.name.endswith(ending)), None)
        if check is None or not file.is_file():
            parser.error(f"{file} is no archive, wheel or extension")
        start = time.monotonic()
        with tempfile.TemporaryDirectory() as scratch:
            # Programs started in an empty root by another user must be able to enter it.
            os.chmod(scratch, 0o755)
            try:
                report = check(file.resolve(), Path(scratch), options.glibc)
            except AssertionError as error:
                sys.exit(f"packages: {file.name}: {error}")
        if report is not None:
            print(f"{file.name}: {report}, {time.monotonic() - start:.1f} s", flush=True)
    if options.strict and skips:
        sys.exit("packages: a skipped part is an error with --strict")


def skip(kind, reason):
    print(f"skipped: {kind}: {reason}", flush=True)
    skips.append(reason)


# Archives


def check_archive(file, scratch, glibc):
    root = scratch / "root"
    root.mkdir()
    if file.suffix == ".zip":
        with zipfile.ZipFile(file) as archive:
            archive.extractall(root)
    else:
        with tarfile.open(file) as archive:
            # Python 3.12 and 3.13 warn without a filter; early 3.9 to 3.11 have none.
            archive.extractall(root, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    name = file.name.removesuffix(".zip").removesuffix(".tar.gz")
    assert [path.name for path in root.iterdir()] == [name], f"the archive has other entries than the folder {name}"
    folder = root / name
    wanted = [*(program + ENDING for program in PROGRAMS), "LICENSE-APACHE", "LICENSE-MIT", "README.md", "completions", "man"]
    found = sorted(path.name for path in folder.iterdir())
    assert found == sorted(wanted), f"the archive has {found}; expected {sorted(wanted)}"
    for entry in ["man/rxcheck.1", "completions/rxcheck.bash", "completions/_rxcheck"]:
        assert (folder / entry).is_file(), f"the archive has no {entry}"
    symbols = check_linkage(folder, PROGRAMS, glibc)

    examples = root / "examples"
    examples.mkdir()
    for example in [MISTAKE, FIXED, FORMATTED]:
        shutil.copy(EXAMPLES / example, examples)
    enter = empty_root(root, folder)
    if enter is None:
        # The root folder is that of the system, but `PATH` contains only the programs.
        Place(folder, examples, folder, cwd=scratch).five_programs()
        return f"five programs in an empty environment{symbols}"
    Place(f"/{name}", "/examples", f"/{name}", enter=enter).five_programs()
    return f"five programs in an empty root{symbols}"


def empty_root(root, folder):
    """Puts the C library into the root and returns the command that starts programs there, or None where there is none."""
    if not LINUX:
        return None
    for library in sorted(set().union(*(libraries(folder / program) for program in PROGRAMS))):
        copy = root / library.relative_to("/")
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(library, copy)
    tools = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    chroot, unshare = shutil.which("chroot", path=tools), shutil.which("unshare", path=tools)
    if chroot is None:
        skip("archive", "no chroot")
        return None
    commands = [[chroot, str(root)]]
    if os.geteuid() != 0:
        commands = [[unshare, "--user", "--map-root-user", *commands[0]]] if unshare else []
    reason = "neither root nor unshare"
    for command in commands:
        run = subprocess.run([*command, f"/{folder.name}/rxcheck", "--version"], capture_output=True, text=True)
        if run.returncode == 0:
            return command
        reason = run.stderr.strip()
    skip("archive", f"no empty root: {reason}; its programs run in an empty environment")
    return None


def libraries(program):
    """The dynamic loader and the libraries that it loads for a program."""
    # Containers for building set LD_LIBRARY_PATH, which the empty root has not.
    env = {name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH"}
    lines = subprocess.run(["ldd", program], check=True, capture_output=True, text=True, env=env).stdout
    return {Path(path) for path in re.findall(r"^\s*(?:\S+ => )?(/\S+) \(0x", lines, re.MULTILINE)}


# Linkage


def check_linkage(folder, programs, glibc):
    """Requires that the programs need only libraries of every glibc system, and no symbol newer than `glibc`.

    Returns the newest symbol version as an addition to the report."""
    if not LINUX:
        return ""
    if shutil.which("readelf") is None:
        skip("glibc symbols", "no readelf")
        return ""
    newest = (0,)
    for program in programs:
        needed, version = linkage(folder / program)
        foreign = [library for library in needed if not re.fullmatch(SYSTEM_LIBRARIES, library)]
        assert not foreign, f"{program} needs {', '.join(foreign)}, which not every system has"
        assert glibc is None or version <= parts(glibc), f"{program} needs glibc {dotted(version)}; {glibc} is the newest allowed"
        newest = max(newest, version)
    return f", newest glibc symbol {dotted(newest)}"


def linkage(program):
    """Returns the libraries that a program needs, and the newest glibc version whose symbols it needs."""

    def readelf(option):
        return subprocess.run(
            ["readelf", "--wide", option, program], check=True, capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"}
        ).stdout

    needed = re.findall(r"\(NEEDED\)\s+Shared library: \[(.+?)\]", readelf("--dynamic"))
    # A weak need is only a warning of the loader.
    versions = re.findall(r"Name: GLIBC_([\d.]+)\s+Flags: none", readelf("--version-info"))
    assert versions, f"readelf shows no symbol version of glibc in {program.name}"
    return needed, max(map(parts, versions))


def parts(version):
    return tuple(map(int, version.split(".")))


def dotted(version):
    return ".".join(map(str, version))


# Wheels


def check_wheel(file, scratch, glibc):
    with zipfile.ZipFile(file) as wheel:
        scripts = sorted(Path(name).name for name in wheel.namelist() if ".data/scripts/" in name)
    wanted = sorted(program + ENDING for program in PROGRAMS)
    assert scripts == wanted, f"the wheel has the programs {scripts}; expected {wanted}"
    if LINUX and glibc is not None:
        # A file name may have several tags; pip accepts the wheel if it accepts one of them.
        tags = [tag.replace("_", ".") for tag in re.findall(r"manylinux_(\d+_\d+)_", file.name)]
        assert tags, "the wheel's name has no manylinux tag"
        oldest = min(tags, key=parts)
        assert parts(oldest) <= parts(glibc), f"pip installs the wheel where glibc is {oldest} or later; {glibc} is the newest allowed"

    home = scratch / "home"
    home.mkdir()
    try:
        # `venv` cannot be created without `ensurepip`, which some systems package separately.
        venv.create(scratch / "venv", with_pip=True)
    except subprocess.CalledProcessError:
        skip("wheel", "python3 makes no virtual environments (package python3-venv)")
        return None
    programs = scratch / "venv" / ("Scripts" if WINDOWS else "bin")
    install = [programs / f"python{ENDING}", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index", file]
    run = subprocess.run(install, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert run.returncode == 0, f"pip cannot install the wheel:\n{run.stdout}"
    symbols = check_linkage(programs, PROGRAMS, glibc)
    Place(programs, EXAMPLES, programs, cwd=home, home=home).five_programs()
    return f"five programs in a new virtual environment{symbols}"


# Extensions


def check_extension(file, scratch, glibc):
    folder = scratch / "extension"
    with zipfile.ZipFile(file) as archive:
        archive.extractall(folder)
        # `extractall` loses the file modes.
        for entry in archive.infolist():
            if not WINDOWS and entry.filename.startswith("extension/server/"):
                assert entry.external_attr >> 16 & 0o100, f"{entry.filename} is not executable"
                (folder / entry.filename).chmod(0o755)
    manifest = json.loads((folder / "extension" / "package.json").read_text(encoding="utf-8"))
    assert (folder / "extension" / manifest["main"]).is_file(), f"the extension has no {manifest['main']}"
    identity = xml.etree.ElementTree.parse(folder / "extension.vsixmanifest").find("{*}Metadata/{*}Identity")
    platforms = [name for triple, name in PLATFORMS.items() if is_this_machine(triple)]
    found = identity.get("TargetPlatform")
    assert found in platforms, f"the extension is for {found}; this machine is {' or '.join(platforms)}"
    assert identity.get("Version") == manifest["version"], f"the extension has two versions, {identity.get('Version')} and {manifest['version']}"
    server = folder / "extension" / "server"
    bundled = ["rx-lsp", "rxcheck", "rxrun"]
    names = sorted(path.name for path in server.iterdir())
    assert names == [program + ENDING for program in bundled], f"the extension has the programs {names}; expected {bundled}"
    symbols = check_linkage(server, bundled, glibc)

    # rxrun is not in `PATH`, so rx-lsp must find the one in its own folder.
    empty = scratch / "empty"
    empty.mkdir()
    place = Place(server, EXAMPLES, empty, cwd=empty, home=empty)
    place.run("rxcheck", place.example(MISTAKE), status=1, output="error[RX0501")
    place.serve()
    return f"bundled rx-lsp and rxrun, for {found}{symbols}"


def is_this_machine(triple):
    machine = {"AMD64": "x86_64", "arm64": "aarch64"}.get(platform.machine(), platform.machine())
    system = {"linux": "linux", "darwin": "darwin", "win32": "windows"}.get(sys.platform)
    return triple.startswith(machine) and system is not None and system in triple


kinds = {".tar.gz": check_archive, ".zip": check_archive, ".whl": check_wheel, ".vsix": check_extension}

if __name__ == "__main__":
    main()
