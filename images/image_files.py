#!/usr/bin/env python3
"""What is in Paceline's images, for everybody who makes them: images/Dockerfile, and tests/cluster/machine without Docker.

    python3 images/image_files.py controller --build build/release --out FOLDER    writes the image's files into a folder
    python3 images/image_files.py runtime-cuda --wheels WHEELS --out FOLDER        WHEELS: where pip put images/cuda-libraries.txt
"""

import argparse
import dataclasses
import pathlib
import re
import shutil
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
NON_ROOT = 65532
PATH = "/usr/local/bin:/usr/bin:/bin"
EXAMPLES = "/usr/share/paceline/examples"
SYSTEM_LIBRARIES = "/usr/lib/x86_64-linux-gnu"   # where Debian's loader looks by itself


@dataclasses.dataclass(frozen=True)
class Image:
    program: str            # of build/PRESET/bin; the image's entry point in /usr/local/bin
    title: str
    folder: str = "/"       # what relative paths mean
    copies: tuple = ()      # (path in the repository, path in the image)
    wheels: tuple = ()      # libraries of others, by their path in the folder with the wheels (images/cuda-libraries.txt)
    environment: tuple = ()
    licenses: str = "Apache-2.0"


EXAMPLES_DATA = (("examples/data", f"{EXAMPLES}/data"),)
IMAGES = {
    "controller": Image("paceline-controller", "Paceline's controller"),
    "runtime": Image("paceline-worker", "Paceline's trainer", EXAMPLES, EXAMPLES_DATA),
    # The driver's libraries are the node's. What puts them into a container (NVIDIA's container toolkit, GKE's device plug-in) goes by these
    # variables, and by whether this is a Debian; the folders are theirs where they go by neither.
    "runtime-cuda": Image("paceline-worker", "Paceline's trainer for NVIDIA GPUs", EXAMPLES, EXAMPLES_DATA,
                          ("nvidia/cu13/lib/libcublasLt.so.13", "nvidia/nccl/lib/libnccl.so.2"),
                          ("NVIDIA_VISIBLE_DEVICES=all", "NVIDIA_DRIVER_CAPABILITIES=compute,utility",
                           "LD_LIBRARY_PATH=/usr/local/nvidia/lib64:/usr/lib64"),
                          "Apache-2.0 AND LicenseRef-NVIDIA"),
}


class ImageError(Exception):
    pass


class Layer:
    """Files by their path in the image."""

    def __init__(self):
        self.files = {}      # "usr/bin/x" -> (mode, bytes)
        self.links = {}      # "bin/sh" -> target
        self.folders = {}    # "tmp" -> mode

    def text(self, path, content, mode=0o644):
        self.files[clean(path)] = (mode, content.encode())

    def file(self, source, path, mode=None):
        source = pathlib.Path(source)
        if not source.is_file():
            raise ImageError(f"{source}: no such file")
        self.files[clean(path)] = (mode or (0o755 if source.stat().st_mode & 0o111 else 0o644), source.read_bytes())

    def copy(self, source, path):
        source = pathlib.Path(source)
        if not source.is_dir():
            return self.file(source, path)
        for entry in sorted(source.rglob("*")):
            if entry.is_file():
                self.file(entry, f"{path}/{entry.relative_to(source)}")

    def program(self, source, path, strip=False):
        """With every shared library that it loads; stripped of symbols where that is asked for and can be done."""
        self.file(source, path, 0o755)
        if strip and shutil.which("strip"):
            with tempfile.TemporaryDirectory() as folder:
                stripped = pathlib.Path(folder) / "program"
                subprocess.run(["strip", "-o", stripped, source], check=True, timeout=60)
                self.file(stripped, path, 0o755)
        for library in libraries(source):
            self.file(library, library, 0o755)

    def library(self, source):
        """One that is opened at run time, where the loader finds it, with those that it loads."""
        self.file(source, f"{SYSTEM_LIBRARIES}/{pathlib.Path(source).name}", 0o755)
        for library in libraries(source):
            self.file(library, library, 0o755)

    def link(self, path, target):
        self.links[clean(path)] = target

    def folder(self, path, mode=0o755):
        self.folders[clean(path)] = mode

    def user(self, name="paceline", uid=NON_ROOT):
        self.text("/etc/passwd", f"root:x:0:0:root:/:/bin/false\n{name}:x:{uid}:{uid}:{name}:/:/bin/false\n")
        self.text("/etc/group", f"root:x:0:\n{name}:x:{uid}:\n")
        self.folder("/tmp", 0o1777)

    def all_folders(self):
        """Path -> mode, those above files and links among them."""
        folders = dict(self.folders)
        for path in (*self.files, *self.links, *self.folders):
            for parent in pathlib.PurePosixPath(path).parents:
                if str(parent) != ".":
                    folders.setdefault(str(parent), 0o755)
        return folders

    def write_to(self, out):
        """Into a folder that is empty or not there yet."""
        out = pathlib.Path(out)
        if out.exists() and any(out.iterdir()):
            raise ImageError(f"{out}: is not empty")
        out.mkdir(parents=True, exist_ok=True)
        for path in sorted(self.all_folders()):
            (out / path).mkdir()
        for path, (mode, content) in self.files.items():
            (out / path).write_bytes(content)
            (out / path).chmod(mode)
        for path, target in self.links.items():
            (out / path).symlink_to(target)
        for path, mode in self.all_folders().items():
            (out / path).chmod(mode)


def clean(path):
    return str(path).strip("/")


def libraries(program):
    """The shared libraries that a program loads, the loader among them; none for a static one."""
    result = subprocess.run(["ldd", str(program)], capture_output=True, text=True, timeout=30)
    if result.returncode != 0:
        if "not a dynamic executable" in result.stderr + result.stdout:
            return []
        raise ImageError(f"ldd {program}: {result.stderr.strip()}")
    return parse_ldd(program, result.stdout)


def parse_ldd(program, text):
    found = []
    for line in text.splitlines():
        if "not found" in line:
            raise ImageError(f"{program} needs a library that is not there: {line.strip()}")
        match = re.match(r"\s*(?:\S+ => )?(/\S+) \(0x", line)
        if match:
            found.append(match[1])
    return found


def layer(stem, build, wheels=None):
    """All that is in an image, from a build's folder, and for runtime-cuda from the folder with NVIDIA's wheels."""
    image, made = IMAGES[stem], Layer()
    if image.wheels:
        if wheels is None:
            raise ImageError(f"{stem} has libraries of NVIDIA's: --wheels says where pip put images/cuda-libraries.txt")
        for library in image.wheels:
            made.library(pathlib.Path(wheels) / library)
        for text in sorted(pathlib.Path(wheels).glob("*.dist-info/licenses/*")):
            made.file(text, f"/usr/share/doc/{text.parents[1].stem}/{text.name}", 0o644)
        made.text("/etc/debian_version", "12\n")
    made.program(pathlib.Path(build) / "bin" / image.program, f"/usr/local/bin/{image.program}", strip=True)
    for source, target in image.copies:
        made.copy(ROOT / source, target)
    if clean(image.folder):
        made.folder(image.folder)
    made.user()
    return made


def version():
    return re.search(r"^project\(Paceline VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text(), re.MULTILINE)[1]


def configuration(stem):
    """What a container runtime is told about the image: as a Dockerfile says it, in the names of the image format."""
    image = IMAGES[stem]
    return {"Entrypoint": [f"/usr/local/bin/{image.program}"], "User": f"{NON_ROOT}:{NON_ROOT}", "Env": [f"PATH={PATH}", *image.environment],
            "WorkingDir": image.folder,
            "Labels": {"org.opencontainers.image.title": image.title, "org.opencontainers.image.version": version(),
                       "org.opencontainers.image.licenses": image.licenses}}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("image", choices=IMAGES)
    parser.add_argument("--build", default=str(ROOT / "build/release"), help="folder of the build (default: build/release)")
    parser.add_argument("--wheels", help="folder with what pip installed from images/cuda-libraries.txt (runtime-cuda)")
    parser.add_argument("--out", required=True, help="where to; a folder that is empty or not there yet")
    options = parser.parse_args()
    try:
        layer(options.image, options.build, options.wheels).write_to(options.out)
    except ImageError as error:
        raise SystemExit(f"image_files: {error}") from None


if __name__ == "__main__":
    main()
