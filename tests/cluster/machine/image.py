"""Container images without a Docker engine: a docker-archive tar of one layer, the same bytes for the same files.

What is in Paceline's own images stands in images/image_files.py, which images/Dockerfile uses too.
"""

import hashlib
import io
import json
import pathlib
import subprocess
import sys
import tarfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "images"))

from image_files import (  # noqa: E402,F401
    IMAGES, NON_ROOT, PATH, ImageError, Layer, clean, configuration, layer, libraries, parse_ldd, version)


def to_tar(files):
    """The bytes of a Layer as a tar archive."""
    folders = files.all_folders()
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for path in sorted({*folders, *files.files, *files.links}):
            entry = tarfile.TarInfo(path)
            if path in folders:
                entry.type, entry.mode = tarfile.DIRTYPE, folders[path]
                tar.addfile(entry)
            elif path in files.links:
                entry.type, entry.linkname = tarfile.SYMTYPE, files.links[path]
                tar.addfile(entry)
            else:
                entry.mode, content = files.files[path]
                entry.size = len(content)
                tar.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


def simple(entrypoint=(), user="", folder="/"):
    """The configuration of an image that has little to say."""
    return {"Entrypoint": list(entrypoint), "User": str(user), "Env": [f"PATH={PATH}"], "WorkingDir": folder}


def write(out, name, files, config):
    """A docker-archive: what `docker save` writes and `ctr image import` reads."""
    content = to_tar(files)
    identity = hashlib.sha256(content).hexdigest()
    config = json.dumps({"architecture": "amd64", "os": "linux", "rootfs": {"type": "layers", "diff_ids": [f"sha256:{identity}"]},
                         "config": config}).encode()
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
    files = Layer()
    files.file(program, "/pause", 0o755)
    return lambda out: write(out, name, files, simple(["/pause"], NON_ROOT))


def busybox(program="/bin/busybox", name="paceline/busybox:1"):
    """A shell, wget, nc, httpd and the like, for tests; and getent, since a static busybox cannot resolve names."""
    files = Layer()
    files.program(program, "/bin/busybox")
    files.program("/usr/bin/getent", "/usr/bin/getent")
    applets = subprocess.run([program, "--list"], capture_output=True, text=True, check=True, timeout=30).stdout.split()
    for applet in applets:
        if applet not in ("busybox", "getent"):
            files.link(f"/bin/{applet}", "busybox")
    files.user()
    return lambda out: write(out, name, files, simple([], NON_ROOT))


def product(build):
    """stem -> image, of those of Paceline's programs that this build has: paceline/runtime:dev and paceline/controller:dev."""
    return {stem: of_program(build, stem) for stem, image in IMAGES.items()
            if not image.wheels and (pathlib.Path(build) / "bin" / image.program).exists()}


def of_program(build, stem):
    files = layer(stem, build)
    return lambda out: write(out, f"paceline/{stem}:dev", files, configuration(stem))
