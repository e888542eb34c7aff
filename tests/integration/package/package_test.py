"""The Debian package: it is built, its files lie where they belong, and the installed command trains."""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import unittest_report

CPACK = sys.argv.pop(2)
BUILD = pathlib.Path(sys.argv.pop(1))


class PackageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="paceline-package-")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        subprocess.run([CPACK, "-G", "DEB", "--config", BUILD / "CPackConfig.cmake", "-B", cls.folder / "out"], check=True,
                       stdout=subprocess.DEVNULL)
        (cls.package,) = (cls.folder / "out").glob("*.deb")
        subprocess.run(["dpkg-deb", "-x", cls.package, cls.folder / "root"], check=True)
        cls.usr = cls.folder / "root/usr"

    def test_files_lie_where_they_belong(self):
        for file in ("bin/paceline", "bin/paceline-controller", "share/doc/Paceline/crds/trainingjobs.yaml",
                     "share/doc/Paceline/charts/paceline/files/trainingjobs.yaml", "libexec/paceline/paceline-worker", "libexec/paceline/paceline-pod",
                     "share/bash-completion/completions/paceline", "share/doc/Paceline/README.md",
                     "lib/x86_64-linux-gnu/cmake/Paceline/PacelineConfig.cmake"):
            self.assertTrue((self.usr / file).is_file() or (self.usr / file.replace("lib/x86_64-linux-gnu", "lib")).is_file(), file)

    def test_kubectl_finds_the_command_under_its_name(self):
        plugin = self.usr / "bin/kubectl-paceline"
        self.assertTrue(plugin.is_symlink())
        self.assertEqual(str(plugin.readlink()), "paceline")
        result = subprocess.run([plugin, "--help"], capture_output=True, text=True, timeout=60)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("kubectl paceline apply -f job.yaml", result.stdout)

    def test_it_names_the_libraries_that_it_needs(self):
        depends = subprocess.run(["dpkg-deb", "-f", self.package, "Depends"], check=True, capture_output=True, text=True).stdout
        for library in ("libgrpc++", "libprotobuf", "libdnnl", "libc6", "libcurl4", "libmicrohttpd"):
            self.assertIn(library, depends)

    def test_the_installed_command_trains(self):
        example = self.usr / "share/doc/Paceline/examples/digits-allreduce.yaml"
        result = subprocess.run([self.usr / "bin/paceline", "--state-dir", self.folder / "state", "run", example],
                                capture_output=True, text=True, timeout=120)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("target reached", result.stdout)


if __name__ == "__main__":
    if not shutil.which("dpkg-deb"):
        sys.exit("package_test: dpkg-deb is missing; scripts/setup runs on Debian, where it always is")
    unittest_report.main("package_test")
