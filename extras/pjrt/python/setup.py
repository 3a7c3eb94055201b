"""Builds libdeepc_pjrt.so out of the repository that this folder is in, or takes the one that DEEPC_PJRT_LIBRARY names."""

import os
import pathlib
import shutil
import subprocess

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

NAME = "libdeepc_pjrt.so"
ROOT = pathlib.Path(__file__).resolve().parents[3]


def build_library(folder):
    if "DEEPC_PJRT_LIBRARY" in os.environ:
        return pathlib.Path(os.environ["DEEPC_PJRT_LIBRARY"])
    subprocess.check_call(["cmake", "-S", str(ROOT), "-B", str(folder), "-DCMAKE_BUILD_TYPE=Release", "-DDEEPC_TESTS=OFF"])
    subprocess.check_call(["cmake", "--build", str(folder), "--target", "deepc_pjrt", "--parallel"])
    return folder / NAME


class BuildWithLibrary(build_py):
    def run(self):
        super().run()
        to = pathlib.Path(self.build_lib) / "jax_plugins" / "deepc"
        to.mkdir(parents=True, exist_ok=True)
        shutil.copy2(build_library(pathlib.Path(self.build_lib).resolve().parent / "cmake"), to / NAME)


class OfOnePlatform(Distribution):
    def has_ext_modules(self):
        return True


setup(cmdclass={"build_py": BuildWithLibrary}, distclass=OfOnePlatform)
