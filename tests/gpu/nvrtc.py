"""Prints the path of an NVRTC library that a package of this Python (such as torch) contains. Exits with 1 if there is none.

usage: nvrtc.py [DRIVER]      DRIVER is the driver's major version: older ones cannot load the output of NVRTC 13.
"""

import pathlib
import sys

# The first driver version for CUDA 13.
FIRST_OF_13 = 580


def main() -> int:
    driver = sys.argv[1] if len(sys.argv) > 1 else ""
    is_old = driver.isdigit() and int(driver) < FIRST_OF_13
    for version in ["12"] if is_old else ["12", "13"]:
        for folder in map(pathlib.Path, sys.path):
            for library in sorted(folder.glob(f"nvidia/*/lib/libnvrtc.so.{version}")):
                print(library)
                return 0
    return 1


sys.exit(main())
