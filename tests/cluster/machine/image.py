"""Container images without a Docker engine: a docker-archive tar of one layer, the same bytes for the same files."""

import hashlib
import io
import json
import pathlib
import re
import subprocess
import tarfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
NON_ROOT = 65532
EXAMPLES = "/usr/share/paceline/examples"   # the working folder of Paceline's own images


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

    def program(self, source, path):
        self.file(source, path, 0o755)
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

    def to_tar(self):
        folders = dict(self.folders)
        for path in (*self.files, *self.links, *self.folders):
            for parent in pathlib.PurePosixPath(path).parents:
                if str(parent) != ".":
                    folders.setdefault(str(parent), 0o755)
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as tar:
            for path in sorted({*folders, *self.files, *self.links}):
                entry = tarfile.TarInfo(path)
                if path in folders:
                    entry.type, entry.mode = tarfile.DIRTYPE, folders[path]
                    tar.addfile(entry)
                elif path in self.links:
                    entry.type, entry.linkname = tarfile.SYMTYPE, self.links[path]
                    tar.addfile(entry)
                else:
                    entry.mode, content = self.files[path]
                    entry.size = len(content)
                    tar.addfile(entry, io.BytesIO(content))
        return buffer.getvalue()


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


def write(out, name, layer, entrypoint=(), user="", folder="/"):
    """A docker-archive: what `docker save` writes and `ctr image import` reads."""
    content = layer.to_tar()
    identity = hashlib.sha256(content).hexdigest()
    config = json.dumps({
        "architecture": "amd64", "os": "linux", "rootfs": {"type": "layers", "diff_ids": [f"sha256:{identity}"]},
        "config": {"Entrypoint": list(entrypoint), "User": str(user), "Env": ["PATH=/usr/local/bin:/usr/bin:/bin"],
                   "WorkingDir": folder}}).encode()
    config_name = f"{hashlib.sha256(config).hexdigest()}.json"
    manifest = json.dumps([{"Config": config_name, "RepoTags": [name], "Layers": [f"{identity}/layer.tar"]}]).encode()
    out = pathlib.Path(out)
    out.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(out, "w", format=tarfile.USTAR_FORMAT) as archive:
        for path, data in ((config_name, config), (f"{identity}/layer.tar", content), ("manifest.json", manifest)):
            entry = tarfile.TarInfo(path)
            entry.size, entry.mode = len(data), 0o644
            archive.addfile(entry, io.BytesIO(data))
    return out


# What follows returns functions that write one image to a given file.

def pause(program, name):
    layer = Layer()
    layer.file(program, "/pause", 0o755)
    return lambda out: write(out, name, layer, ["/pause"], NON_ROOT)


def busybox(program="/bin/busybox", name="paceline/busybox:1"):
    """A shell, wget, nc, httpd and the like, for tests; and getent, since a static busybox cannot resolve names."""
    layer = Layer()
    layer.program(program, "/bin/busybox")
    layer.program("/usr/bin/getent", "/usr/bin/getent")
    applets = subprocess.run([program, "--list"], capture_output=True, text=True, check=True, timeout=30).stdout.split()
    for applet in applets:
        if applet not in ("busybox", "getent"):
            layer.link(f"/bin/{applet}", "busybox")
    layer.user()
    return lambda out: write(out, name, layer, [], NON_ROOT)


def product(build):
    """stem -> image, of those of Paceline's programs that this build has: paceline/runtime:dev and paceline/controller:dev."""
    programs = {"runtime": "paceline-worker", "controller": "paceline-controller"}
    return {stem: of_program(build, stem, program) for stem, program in programs.items() if (pathlib.Path(build) / "bin" / program).exists()}


def of_program(build, stem, program):
    layer = Layer()
    layer.program(pathlib.Path(build) / "bin" / program, f"/usr/local/bin/{program}")
    if stem == "runtime":
        layer.copy(ROOT / "examples/data", f"{EXAMPLES}/data")   # what the examples' relative paths mean
    layer.folder(EXAMPLES)
    layer.user()
    return lambda out: write(out, f"paceline/{stem}:dev", layer, [f"/usr/local/bin/{program}"], NON_ROOT, EXAMPLES)
