#!/usr/bin/env python3
"""Creates the packages of one platform from built programs: the archive and the VS Code extension.

usage: make.py --programs FOLDER --out FOLDER [--target TRIPLE] [--strict]

FOLDER of --programs has rxcheck, rxfmt, rxopt, rxrun and rx-lsp, as `cargo build --release --bins` leaves them in target/release.
--out receives

    rx-VERSION-TRIPLE.tar.gz      (.zip for Windows) with the programs, licences, README, manual pages and shell completions
    rx-relax-PLATFORM-VERSION.vsix    with the extension and the programs it starts

The target is the host by default; another one only names the files, nothing is cross-compiled. The extension needs node 22 and
`npm ci` in editors/vscode; if they are missing, it is skipped with a message, or with --strict that is an error. RX_EDITORS may name the
folder that tests/editors/install.sh filled; its node is used then. The Python wheel is built by tests/scripts/wheel.sh.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = ["rxcheck", "rxfmt", "rxopt", "rxrun", "rx-lsp"]

# VS Code's name of each platform that a package is made for.
PLATFORMS = {
    "x86_64-unknown-linux-gnu": "linux-x64",
    "aarch64-unknown-linux-gnu": "linux-arm64",
    "x86_64-apple-darwin": "darwin-x64",
    "aarch64-apple-darwin": "darwin-arm64",
    "x86_64-pc-windows-msvc": "win32-x64",
}

# File names under which each shell finds completions.
COMPLETIONS = {"bash": "{}.bash", "zsh": "_{}", "fish": "{}.fish", "elvish": "{}.elv", "powershell": "_{}.ps1"}


def main():
    parser = argparse.ArgumentParser(usage="make.py --programs FOLDER --out FOLDER [--target TRIPLE] [--strict]")
    parser.add_argument("--programs", required=True, type=Path)
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("--target")
    parser.add_argument("--strict", action="store_true")
    options = parser.parse_args()
    target = options.target or host()
    version = workspace_version()
    options.out.mkdir(parents=True, exist_ok=True)
    out = options.out.resolve()
    with tempfile.TemporaryDirectory() as scratch:
        name = f"rx-{version}-{target}"
        programs = Path(scratch) / "programs"
        stage_programs(options.programs, programs, target)
        folder = Path(scratch) / name
        stage_archive(programs, folder)
        print_file(pack(folder, out, target))
        reason = extension(programs, target, out / f"rx-relax-{PLATFORMS.get(target)}-{version}.vsix")
    if reason is not None:
        print(f"skipped: vsix: {reason}")
        if options.strict:
            sys.exit(1)


def host():
    """Returns the target triple of the installed Rust."""
    lines = subprocess.run(["rustc", "-vV"], check=True, capture_output=True, text=True).stdout
    return re.search(r"^host: (.+)$", lines, re.MULTILINE).group(1)


def workspace_version():
    """Returns the version in Cargo.toml that all packages of the workspace share."""
    manifest = (ROOT / "Cargo.toml").read_text(encoding="utf-8")
    return re.search(r'^\[workspace\.package\]\nversion = "([^"]+)"$', manifest, re.MULTILINE).group(1)


def stage_programs(source, folder, target):
    """Copies the programs without their symbols."""
    folder.mkdir()
    ending = ".exe" if "windows" in target else ""
    for program in PROGRAMS:
        built = source / (program + ending)
        if not built.is_file():
            sys.exit(f"make.py: {built} is not there; `cargo build --release --bins` makes it")
        shutil.copy(built, folder)
    # Cargo strips the release profile, not the dev profile. Elsewhere than on Linux the copies stay as they are: on macOS
    # stripping would invalidate their signatures.
    if "linux" in target and shutil.which("strip"):
        subprocess.run(["strip", *sorted(folder.iterdir())], check=True)


def stage_archive(programs, folder):
    """Fills the folder for the archive. The programs are at its top level, where `cargo binstall` looks for them."""
    shutil.copytree(programs, folder)
    for name in ["LICENSE-APACHE", "LICENSE-MIT", "README.md"]:
        shutil.copy(ROOT / name, folder)
    shutil.copytree(ROOT / "docs" / "man", folder / "man")
    completions = folder / "completions"
    completions.mkdir()
    for program in sorted(programs.iterdir()):
        for shell, name in COMPLETIONS.items():
            # A program without the option fails: it has no completions.
            run = subprocess.run([program, "--completions", shell], stdin=subprocess.DEVNULL, capture_output=True)
            if run.returncode == 0:
                (completions / name.format(program.stem)).write_bytes(run.stdout)
    assert any(completions.iterdir()), "rxcheck printed no completions"


def pack(folder, out, target):
    """Writes the folder as an archive in the format that its platform unpacks without further tools."""
    if "windows" in target:
        archive = out / f"{folder.name}.zip"
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
            for path in sorted(folder.rglob("*")):
                file.write(path, path.relative_to(folder.parent))
        return archive

    def without_owner(entry):
        entry.uid = entry.gid = 0
        entry.uname = entry.gname = "root"
        entry.mode = 0o755 if entry.isdir() or entry.mode & 0o100 else 0o644
        return entry

    archive = out / f"{folder.name}.tar.gz"
    with tarfile.open(archive, "w:gz", compresslevel=6) as file:
        file.add(folder, folder.name, filter=without_owner)
    return archive


def extension(programs, target, vsix):
    """Packages the VS Code extension with the programs; returns why it is skipped, or None."""
    if target not in PLATFORMS:
        return f"VS Code has no platform for {target}"
    editors = os.environ.get("RX_EDITORS")
    path = os.environ.get("PATH", "")
    if editors:
        path = f"{Path(editors).resolve() / 'bin'}{os.pathsep}{path}"
    node = shutil.which("node", path=path)
    if node is None or shutil.which("npm", path=path) is None:
        return "node and npm are not installed"
    version = subprocess.run([node, "--version"], check=True, capture_output=True, text=True).stdout.strip()
    if int(version[1:].split(".")[0]) < 22:
        return f"node is {version}, 22 or later is needed"
    folder = ROOT / "editors" / "vscode"
    if not (folder / "node_modules" / "@vscode" / "vsce").is_dir():
        return "`npm ci` has not been run in editors/vscode"
    command = [node, "scripts/package.mjs", "--binaries", programs, "--target", PLATFORMS[target], "--out", vsix]
    # vsce starts npm, which must find the same node.
    run = subprocess.run(
        command, cwd=folder, env={**os.environ, "PATH": path}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if run.returncode != 0:
        sys.exit(f"make.py: the extension cannot be packaged:\n{run.stdout}")
    print_file(vsix)
    return None


def print_file(path):
    print(f"made {path.name}, {path.stat().st_size / 2**20:.1f} MiB")


if __name__ == "__main__":
    main()
