#!/usr/bin/env bash
# Fetches NVRTC, pinned, as a Python wheel and unpacks its libraries. The last line printed is the path for RX_NVRTC.
#
# usage: tests/scripts/fetch_nvrtc.sh [FOLDER]      FOLDER is target/nvrtc by default
set -euo pipefail
wheel=nvidia-cuda-nvrtc-cu12==12.9.86
folder=${1:-$(dirname "$0")/../../target/nvrtc}
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
library=$folder/nvidia/cuda_nvrtc/lib/libnvrtc.so.12
if [[ ! -e $library ]]; then
    python3 -m pip download --quiet --no-deps --only-binary :all: --dest "$folder" "$wheel" >&2
    # The variants without the name's ending .so.12 are another build of the same, and large.
    python3 - "$folder" >&2 <<'PYTHON'
import pathlib, sys, zipfile
folder = pathlib.Path(sys.argv[1])
for wheel in folder.glob("nvidia_cuda_nvrtc_cu12-*.whl"):
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder, [name for name in archive.namelist() if "/lib/libnvrtc" in name and ".alt." not in name])
    wheel.unlink()
PYTHON
fi
echo "$library"
