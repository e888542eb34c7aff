"""A build is configured where there is none, and anew where another CUDA toolkit, or perhaps a peer of the benchmarks, is there."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Writes down that it was called, and what CMake would leave.
CMAKE = """#!/bin/sh
case "$1" in
  --build) echo build >>calls ;;
  --preset)
    echo configure >>calls
    mkdir -p build/release
    touch build/release/build.ninja
    wanted=AUTO
    case "$3" in -DPACELINE_CUDA=*) wanted=${3#*=} ;; esac
    { echo "PACELINE_CUDA:STRING=$wanted"; echo "PACELINE_CUDA_CONFIGURED:INTERNAL=$(scripts/cuda-toolkit)"; } >build/release/CMakeCache.txt ;;
esac
"""
FILES = {"bin/cmake": CMAKE, "toolkit/bin/nvcc": "#!/bin/sh\necho 'Cuda compilation tools, release 13.0, V13.0.88'\n"}
COPIED = ("scripts/build", "scripts/cuda-toolkit", "cmake/cuda-wheels.txt", "cmake/cuda-header-wheels.txt")


# As much of the project as the programs of benchmarks/allreduce need to be configured.
PROJECT = f"""cmake_minimum_required(VERSION 3.25)
project(peers LANGUAGES CXX)
find_package(Threads REQUIRED)
function(paceline_program)
endfunction()
add_subdirectory({ROOT}/benchmarks/allreduce_programs programs)
"""
PACKAGES = "/var/lib/dpkg/status"


@unittest.skipUnless(os.path.exists(PACKAGES), "no Debian")
class PeersTest(unittest.TestCase):
    def test_a_build_that_lacks_a_peer_looks_again_when_packages_change(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)

            def configure():
                subprocess.run(["cmake", "-G", "Ninja", "-S", root, "-B", root / "build", f"-DCMAKE_PREFIX_PATH={root}",
                                "-DCMAKE_DISABLE_FIND_PACKAGE_MPI=ON"], capture_output=True, check=True, timeout=60)
                return (root / "build/build.ninja").read_text()
            (root / "CMakeLists.txt").write_text(PROJECT)
            self.assertIn(PACKAGES, configure())
            for file in ("include/gloo/allreduce.h", "lib/libgloo.so"):
                (root / file).parent.mkdir(parents=True)
                (root / file).touch()
            self.assertIn("bench_allreduce_gloo", configure())


@unittest.skipIf(os.path.isdir("/usr/local/cuda"), "this machine has a toolkit of its own")
class BuildTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        for path, text in FILES.items():
            (self.root / path).parent.mkdir(parents=True, exist_ok=True)
            (self.root / path).write_text(text)
            (self.root / path).chmod(0o755)
        for path in COPIED:
            (self.root / path).parent.mkdir(exist_ok=True)
            shutil.copy(ROOT / path, self.root / path)

    def build(self, **environment):
        """What it calls CMake for."""
        keep = {name: value for name, value in os.environ.items() if name not in ("CUDA_HOME", "PACELINE_CUDA")}
        (self.root / "calls").write_text("")
        result = subprocess.run([self.root / "scripts/build", "release", "x"], capture_output=True, text=True, check=True, timeout=60,
                                env=keep | {"PATH": f"{self.root}/bin:{os.environ['PATH']}", "XDG_CACHE_HOME": str(self.root / "cache")} | environment)
        return (self.root / "calls").read_text().split(), result.stdout

    def add_toolkit(self, nccl=22807):
        for header in ("cuda.h", "cublasLt.h", "nccl.h", "nvml.h"):
            (self.root / "toolkit/include").mkdir(exist_ok=True)
            (self.root / "toolkit/include" / header).write_text(f"#define NCCL_VERSION_CODE {nccl}\n")

    def test_a_toolkit_that_has_come_and_one_that_has_gone(self):
        there = {"CUDA_HOME": str(self.root / "toolkit")}
        self.assertEqual(self.build(**there), (["configure", "build"], ""))
        self.assertEqual(self.build(**there)[0], ["build"])
        self.add_toolkit(nccl=22806)
        self.assertEqual(self.build(**there)[0], ["build"], "that NCCL lacks a call")
        self.add_toolkit()
        calls, said = self.build(**there)
        self.assertEqual(calls, ["configure", "build"])
        self.assertEqual(said, f"build: configures anew, with {self.root}/toolkit\n")
        self.assertEqual(self.build(**there), (["build"], ""))
        self.assertEqual(self.build(), (["configure", "build"], "build: configures anew, with no CUDA toolkit\n"))

    def test_a_build_without_cuda_stays_one(self):
        self.build(PACELINE_CUDA="OFF")
        self.add_toolkit()
        self.assertEqual(self.build(CUDA_HOME=str(self.root / "toolkit"))[0], ["build"])


if __name__ == "__main__":
    unittest.main()
