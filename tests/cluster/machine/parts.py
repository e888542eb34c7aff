"""The programs of the cluster: built from the Go module beside this folder, once for every state of that module.

They lie in a cache folder named by the hash of the module's files, outside the tree. Two builds at once: the second waits for the first.
"""

import fcntl
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import time

MODULE = pathlib.Path(__file__).resolve().parents[1] / "kubernetes"
KUBERNETES = "v1.34.4"
PACKAGES = {   # program -> package
    "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
    "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
    "kube-scheduler": "k8s.io/kubernetes/cmd/kube-scheduler",
    "kube-proxy": "k8s.io/kubernetes/cmd/kube-proxy",
    "kubelet": "k8s.io/kubernetes/cmd/kubelet",
    "kubectl": "k8s.io/kubernetes/cmd/kubectl",
    "helm": "helm.sh/helm/v3/cmd/helm",
    "kwok": "sigs.k8s.io/kwok/cmd/kwok",
    "coredns": "./coredns",
    "pause": "./pause",
}
GO_WANTED = (1, 24)
BUILD_MINUTES = 45
REPORT_SECONDS = 60


class PartsError(Exception):
    pass


def cache_folder():
    return pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "paceline"


def module_hash(module=MODULE):
    """Of the names and contents of everything that goes into the build."""
    digest = hashlib.sha256()
    files = [path for path in module.rglob("*") if path.is_file() and (path.suffix == ".go" or path.name in ("go.mod", "go.sum"))]
    for path in sorted(files):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(module)} {len(content)}\n".encode() + content)
    digest.update(" ".join(build_arguments("out")).encode())
    return digest.hexdigest()[:16]


def folder():
    return cache_folder() / f"kubernetes-{module_hash()}"


def program(name):
    return folder() / name


def are_built():
    return all(program(name).exists() for name in PACKAGES)


def build_arguments(out):
    version = "k8s.io/component-base/version.git"
    major, minor, _ = KUBERNETES[1:].split(".")
    stamps = f"-X {version}Version={KUBERNETES} -X {version}Major={major} -X {version}Minor={minor}"
    return ["build", "-trimpath", "-buildvcs=false", "-gcflags=all=-dwarf=false", "-ldflags", f"-s -w {stamps}", "-o", f"{out}/", *PACKAGES.values()]


def parse_go_version(text):
    """`go1.24.3` -> (1, 24); None for anything else."""
    match = re.match(r"go(\d+)\.(\d+)", text)
    return (int(match[1]), int(match[2])) if match else None


def find_go():
    """The first Go that is new enough, or None."""
    for candidate in (shutil.which("go"), "/usr/local/go/bin/go", str(cache_folder() / "go/bin/go")):
        if not candidate or not os.access(candidate, os.X_OK):
            continue
        result = subprocess.run([candidate, "env", "GOVERSION"], capture_output=True, text=True, timeout=30)
        version = parse_go_version(result.stdout.strip())
        if version and version >= GO_WANTED:
            return candidate
    return None


def build(say=print):
    """Builds what is missing; returns the folder."""
    target = folder()
    if are_built():
        return target
    go = find_go()
    if not go:
        raise PartsError(f"building the cluster's programs needs Go {GO_WANTED[0]}.{GO_WANTED[1]} or newer; "
                         "scripts/setup --cluster gets it; or install it from https://go.dev/dl into /usr/local/go")
    target.parent.mkdir(parents=True, exist_ok=True)
    with open(target.with_name(target.name + ".lock"), "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("cluster: another run builds the programs; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)   # as long as the other holds it, and its build has a deadline
        if not are_built():
            compile_into(go, target, say)
    return target


def compile_into(go, target, say):
    partial = target.with_name(target.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    say(f"cluster: building {len(PACKAGES)} programs of Kubernetes {KUBERNETES} into {target}; once per machine, about 10 minutes on 2 cores")
    began = time.monotonic()
    log = target.with_name(target.name + ".log")
    with open(log, "w") as output:
        process = subprocess.Popen([go, *build_arguments(partial)], cwd=MODULE, stdin=subprocess.DEVNULL, stdout=output,
                                   stderr=subprocess.STDOUT, env=dict(os.environ, CGO_ENABLED="0", GOFLAGS="-mod=readonly", GOWORK="off", GOGC="400"))
        try:
            while process.poll() is None:
                try:
                    process.wait(REPORT_SECONDS)
                except subprocess.TimeoutExpired:
                    minutes = (time.monotonic() - began) / 60
                    if minutes > BUILD_MINUTES:
                        raise PartsError(f"go build took more than {BUILD_MINUTES} minutes; see {log}") from None
                    say(f"cluster: still building, {minutes:.0f} min")
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait()
    if process.returncode != 0:
        raise PartsError(f"go build failed with status {process.returncode}; the end of {log}:\n{log.read_text()[-2000:]}")
    shutil.rmtree(target, ignore_errors=True)
    partial.rename(target)
    log.unlink()
    say(f"cluster: built in {time.monotonic() - began:.0f} s")
