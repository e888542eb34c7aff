"""scripts/gpu-suite refuses what it can't do before it builds anything, and leaves a whole bundle or none."""

import os
import pathlib
import re
import resource
import shutil
import stat
import subprocess
import tarfile
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = (ROOT / "scripts/gpu-suite").read_text()
VERSION = re.search(r"==(\S+)", (ROOT / "cmake/cuda-sanitizer-wheels.txt").read_text())[1]
CALLED = '#!/bin/sh\necho "${0##*/}" >>calls\n'


class OptionsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name) / "tree"
        self.out = pathlib.Path(folder.name) / "out"
        self.out.mkdir()
        for path in ("scripts/gpu-suite", "scripts/cuda-sanitizer", "cmake/cuda-sanitizer-wheels.txt", *self.words("files")):
            self.copy(ROOT / path, path)
        for path in self.words("programs"):   # any program that needs a library is as good
            self.copy(shutil.which("ls"), f"build/release/{path}")
        for path in ("scripts/setup", "scripts/build"):
            self.write(path, CALLED)
        for path in ("bin/compute-sanitizer", "lib/libsanitizer.so"):   # it is in the cache
            self.write(f"cache/paceline/compute-sanitizer-{VERSION}/{path}", "")

    @staticmethod
    def words(name):
        """The list of that name in the script."""
        return re.search(rf"^{name}=\(([^)]*)\)", SCRIPT, re.MULTILINE)[1].split()

    def copy(self, source, path):
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, self.root / path)

    def write(self, path, text):
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)
        (self.root / path).chmod(0o755)

    def suite(self, *options, limit=None, umask=-1):
        self.calls = ""
        (self.root / "calls").unlink(missing_ok=True)
        result = subprocess.run([self.root / "scripts/gpu-suite", *options], capture_output=True, text=True, timeout=120, umask=umask,
                                preexec_fn=limit and (lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))),
                                env=dict(os.environ, PATH=f"{self.root}/bin:{os.environ['PATH']}", XDG_CACHE_HOME=str(self.root / "cache")))
        if (self.root / "calls").exists():
            self.calls = (self.root / "calls").read_text()
        return result

    def refused(self, words, *options, limit=None):
        result = self.suite(*options, limit=limit)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertRegex(result.stderr, words)
        self.assertEqual(self.calls, "", "nothing is built")
        self.assertEqual(list(self.out.iterdir()), [])

    def test_wrong_option_is_named_before_the_build(self):
        self.refused(r"gpu-suite: error: argument --only: invalid choice: 'nonsense' \(choose from '?kernels'?, .*sanitizers'?\)",
                     "--emulated", "--only", "nonsense")
        self.refused("--json .*/nowhere/r.json: there is no folder .*/nowhere", "--emulated", "--json", self.out / "nowhere/r.json")
        self.refused("--json .*/out: it is there, and no regular file", "--emulated", "--json", self.out)
        self.refused("--json /dev/full: it is there, and no regular file", "--emulated", "--json", "/dev/full")
        self.refused("--python nowhere: no such program", "--emulated", "--python", "nowhere")
        self.refused("--python /dev/null: no such program", "--emulated", "--python", "/dev/null")
        self.refused("--bundle .*/out: it is a folder; name a file in it", "--bundle", self.out)
        self.refused("--bundle .*: there is no folder .*/nowhere", "--bundle", self.out / "nowhere/b.tar.xz")
        self.refused("--bundle /dev/full: it is there, and no regular file", "--bundle", "/dev/full")
        self.refused(r"--bundle .*: its disk has no room for a bundle \(\d+ MiB\)", "--bundle", self.out / "b.tar.xz", limit=1 << 20)

    def run_suite(self, *options):
        return subprocess.run(["python3", ROOT / "tests/gpu/suite.py", "--programs", self.root / "build/release", "--root", self.root, *options],
                              capture_output=True, text=True, timeout=120)

    def test_rounds_are_within_what_is_allowed(self):
        for text in ("0", "-1", "10001", "010", "1.5", ""):
            result = self.run_suite("--check", f"--rounds={text}")
            self.assertEqual(result.returncode, 2, text)
            self.assertIn(f"argument --rounds: '{text}' is no whole number from 1 to 10000\n", result.stderr)
        for text in ("1", "10000"):
            self.assertEqual(self.run_suite("--check", "--rounds", text).returncode, 0)

    def test_parts_that_are_named_one_by_one_are_all_run(self):
        output = self.run_suite("--emulated", "--only", "nccl", "--only", "kernels").stdout
        self.assertEqual(re.findall(r"^(\w+) .* passed .* failed", output, re.MULTILINE), ["kernels", "nccl"])

    def test_a_bundle_comes_whole(self):
        bundle = self.out / "b.tar.xz"
        bundle.write_text("an older one")
        result = self.suite("--bundle", bundle, umask=0o022)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(self.calls.split(), ["setup", "build"])
        self.assertEqual(list(self.out.iterdir()), [bundle])
        self.assertEqual(stat.S_IMODE(bundle.stat().st_mode), 0o644)
        with tarfile.open(bundle) as packed:
            names = packed.getnames()
        for path in ("run", "sanitizer/bin/compute-sanitizer", *self.words("files"), *self.words("programs")):
            self.assertIn(f"paceline-gpu-suite/{path}", names)
        self.assertEqual(self.suite("--bundle", bundle, umask=0o077).returncode, 0)
        self.assertEqual(stat.S_IMODE(bundle.stat().st_mode), 0o600)

    def test_a_bundle_that_can_not_be_written_whole_leaves_what_was_there(self):
        self.write("bin/tar", '#!/bin/sh\nfor a; do case "$a" in */b.tar.xz.partial.*) echo half >"$a" ;; esac; done\n'
                              'echo "tar: No space left on device" >&2\nexit 2\n')
        bundle = self.out / "b.tar.xz"
        bundle.write_text("an older one")
        result = self.suite("--bundle", bundle)
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertRegex(result.stderr, "No space left on device\ngpu-suite: --bundle .*/b.tar.xz: it could not be written whole")
        self.assertEqual([path.name for path in self.out.iterdir()], ["b.tar.xz"])
        self.assertEqual(bundle.read_text(), "an older one")


if __name__ == "__main__":
    unittest.main()
