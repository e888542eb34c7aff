"""Paceline's images: the Dockerfile says what is made without Docker, and a program needs nothing but what is in its image."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import unittest_report
from machine import image

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ["PACELINE_BINARY_DIR"])
SMALL = {stem: made for stem, made in image.IMAGES.items() if not made.wheels}
# Under NVIDIA's names, or the real ones: a folder with what pip installed from images/cuda-libraries.txt.
FAKES = {"libcublasLt.so.13": BUILD / "tests/support/fake_cublaslt/libpaceline_fake_cublaslt.so",
         "libnccl.so.2": BUILD / "tests/support/fake_nccl/libpaceline_fake_nccl.so"}
WHEELS = os.environ.get("PACELINE_TEST_CUDA_WHEELS")


class DockerfileTest(unittest.TestCase):
    def test_the_dockerfile_says_what_the_images_without_docker_say(self):
        text = (ROOT / "images/Dockerfile").read_text().replace("\\\n", " ")
        stages = {stage.split()[2]: stage for stage in re.split(r"^FROM ", text, flags=re.MULTILINE)[1:]}
        self.assertEqual(set(stages) - {"build", "build-cuda"}, set(image.IMAGES))
        for stem, made in image.IMAGES.items():
            builder, wheels = ("build-cuda", "--wheels /wheels ") if made.wheels else ("build", "")
            says = dict(re.findall(r"^(USER|WORKDIR|ENTRYPOINT|LABEL|ENV|COPY) +(.*)$", stages[stem], re.MULTILINE))
            self.assertEqual({"Entrypoint": json.loads(says["ENTRYPOINT"]), "User": says["USER"], "WorkingDir": says["WORKDIR"],
                              "Env": says["ENV"].split(), "Labels": dict(re.findall(r'(\S+)="([^"]*)"', says["LABEL"]))}, image.configuration(stem))
            self.assertEqual(says["COPY"], f"--from={builder} /image/{stem} /")
            self.assertIn(f"images/image_files.py {stem} {wheels}--out /image/{stem}", stages[builder])
            self.assertIn(made.program, re.search("^RUN (?:PACELINE_CUDA=ON )?scripts/build release (.*)$", stages[builder], re.MULTILINE)[1].split())
        self.assertRegex(stages["build-cuda"], r"pip install .*--require-hashes --target /wheels -r images/cuda-libraries.txt")

    def test_the_libraries_are_those_that_we_are_built_with(self):
        named = {file: dict(re.findall(r"^([a-z0-9-]+)==([0-9.]+)", (ROOT / file).read_text(), re.MULTILINE))
                 for file in ("images/cuda-libraries.txt", "cmake/cuda-header-wheels.txt")}
        shipped, built_with = named.values()
        self.assertEqual(len(shipped), 2)
        self.assertEqual(shipped, {name: built_with.get(name) for name in shipped})
        self.assertEqual(len(re.findall(r"^  --hash=sha256:[0-9a-f]{64}$", (ROOT / "images/cuda-libraries.txt").read_text(), re.MULTILINE)), 2)


class ImageFilesTest(unittest.TestCase):
    """The folder that the Dockerfile copies has what the archive for the test cluster has, and its program runs from there."""

    def test_the_program_runs_with_nothing_but_its_image(self):
        for stem, made in SMALL.items():
            with self.subTest(stem), tempfile.TemporaryDirectory() as folder:
                root = pathlib.Path(folder) / "root"
                image.layer(stem, BUILD).write_to(root)
                self.assertEqual({str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}, set(image.layer(stem, BUILD).files))
                self.assertEqual((root / "tmp").stat().st_mode & 0o7777, 0o1777)
                self.assertFalse((root / "bin/sh").exists())
                self.assertFalse([path for path in root.rglob("*") if path.is_file() and path.stat().st_mode & 0o6000])   # no setuid
                if os.getuid() == 0:
                    result = subprocess.run(["chroot", f"--userspec={image.NON_ROOT}:{image.NON_ROOT}", root, f"/usr/local/bin/{made.program}",
                                             "--version"], capture_output=True, text=True, timeout=60)
                    self.assertEqual(result.returncode, 0, result.stderr)
                    self.assertIn(image.version(), result.stdout)

    @unittest.skipUnless(BUILD.name == "release", "sanitizers and debug information are not small")
    def test_they_are_as_small_as_the_page_says(self):
        said = re.search(r"\((\d+), (\d+) and \d+ MB\)", (ROOT / "images/README.md").read_text())
        for stem, megabytes in zip(SMALL, said.groups()):
            size = sum(len(content) for _, content in image.layer(stem, BUILD).files.values()) / 1e6
            self.assertLess(size, 80, stem)
            self.assertLess(abs(size / int(megabytes) - 1), 0.15, f"{stem} is of {size:.0f} MB; images/README.md says {megabytes}")

    @unittest.skipUnless(WHEELS or all(path.exists() for path in FAKES.values()), "built without CUDA")
    def test_the_loader_finds_nvidias_libraries_in_the_image_for_gpus(self):
        made = image.IMAGES["runtime-cuda"]
        with tempfile.TemporaryDirectory() as folder:
            wheels, root = pathlib.Path(WHEELS or f"{folder}/wheels"), pathlib.Path(folder) / "root"
            if not WHEELS:
                for path in made.wheels:
                    (wheels / path).parent.mkdir(parents=True, exist_ok=True)
                    (wheels / path).symlink_to(FAKES[pathlib.Path(path).name])
                (wheels / "nvidia_cublas-13.dist-info/licenses").mkdir(parents=True)
                (wheels / "nvidia_cublas-13.dist-info/licenses/License.txt").write_text("a licence")
            image.layer("runtime-cuda", BUILD, wheels).write_to(root)
            self.assertTrue((root / "etc/debian_version").exists())
            self.assertTrue(list((root / "usr/share/doc").glob("nvidia_cublas-13*/License.txt")))
            if os.getuid() == 0 and BUILD.name == "release":   # sanitizers want to be loaded first
                names = [pathlib.Path(path).name for path in made.wheels]
                result = self.preloaded(root, names)
                self.assertEqual((result.returncode, result.stderr), (0, ""))
                self.assertIn(image.version(), result.stdout)
                next(root.rglob("libnccl.so.2")).unlink()
                self.assertIn("libnccl.so.2", self.preloaded(root, names).stderr)

    @staticmethod
    def preloaded(root, names):
        """The program with libraries that the loader finds by their names, as opening them at run time does; it complains of one that it can't load."""
        command = [shutil.which("chroot"), f"--userspec={image.NON_ROOT}:{image.NON_ROOT}", root, "/lib64/ld-linux-x86-64.so.2",
                   "--preload", " ".join(names), "/usr/local/bin/paceline-worker", "--version"]
        return subprocess.run(command, capture_output=True, text=True, timeout=60,
                              env=dict(pair.split("=", 1) for pair in image.configuration("runtime-cuda")["Env"]))

    def test_an_image_with_others_libraries_wants_their_folder(self):
        with self.assertRaisesRegex(image.ImageError, "--wheels says where pip put images/cuda-libraries.txt"):
            image.layer("runtime-cuda", BUILD)

    def test_a_folder_that_has_something_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "file").touch()
            with self.assertRaisesRegex(image.ImageError, "is not empty"):
                image.Layer().write_to(folder)


if __name__ == "__main__":
    unittest_report.main("cluster_images_test")
