"""Builds the extensions; everything that is static stands in pyproject.toml.

`TILING_DEBUG=1` turns bounds checks on, `TILING_NATIVE=1` compiles for the processor at hand (never for wheels).
"""

import os

from Cython.Build import cythonize
from setuptools import Extension, setup

DEBUG = os.environ.get("TILING_DEBUG") == "1"
FLAGS = os.environ.get("TILING_CFLAGS", "").split()
# gcc turns loops that fill several short columns into calls of memset and memcpy, which costs them half their speed.
FAST = ["-O3", "-fno-tree-loop-distribution", "-fno-tree-loop-distribute-patterns"]
COMPILE = (["-O1", "-g"] if DEBUG else FAST) if os.name != "nt" else []
if os.environ.get("TILING_NATIVE") == "1":
    COMPILE.append("-march=native")
BUILD_DIR = os.path.join("build", "cython-debug" if DEBUG else "cython")

extensions = cythonize(
    [
        Extension("tiling.*", ["src_cython/tiling/*.pyx"], extra_compile_args=COMPILE + FLAGS, extra_link_args=FLAGS),
        Extension(
            "tiling._cyutility",
            ["src_cython/tiling/_cyutility.c"],
            extra_compile_args=COMPILE + FLAGS,
            extra_link_args=FLAGS,
        ),
    ],
    include_path=["src_cython"],
    build_dir=BUILD_DIR,
    shared_utility_qualified_name="tiling._cyutility",
    compiler_directives={
        "language_level": 3,
        "boundscheck": DEBUG,
        "initializedcheck": DEBUG,
        "wraparound": False,
        "cdivision": True,
        "freethreading_compatible": True,
    },
)

setup(ext_modules=extensions, options={"build_ext": {"parallel": os.cpu_count()}})
