"""The command line behind scripts/cluster."""

import argparse
import os
import signal
import sys

from . import arguments, cluster, image, layout, network, parts, processes, store

ERRORS = (cluster.ClusterError, image.ImageError, layout.LayoutError, network.NetworkError, parts.PartsError, processes.ProcessError, store.StoreError)
EPILOG = """examples:
  scripts/cluster up                                 two nodes, in about ten seconds (the first time on a machine builds Kubernetes)
  eval "$(scripts/cluster env)"; kubectl get nodes   kubectl and helm of the same version, against it
  scripts/cluster cut node-2                         cuts a node off; heal brings it back
  scripts/cluster down"""


def say(line):
    print(line, file=sys.stderr, flush=True)


def known(name):
    found, value = store.load(name)
    if not found or not value.get("ready"):
        others = ", ".join(store.names())
        raise cluster.ClusterError(f"cluster {name} is not up{f' (these are: {others})' if others else ''}; "
                                   f"`scripts/cluster up --name {name}` brings it up")
    return found


def environment(found):
    lines = [f"export {name}='{value}'" for name, value in cluster.client_environment(found).items()]
    return "\n".join([*lines, f"export PATH='{parts.folder()}':\"$PATH\""])


def interrupt_once(number, _):
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):   # what follows is the clearing up
        signal.signal(ignored, signal.SIG_IGN)
    say(f"cluster: {signal.Signals(number).name}; taking everything down")
    sys.exit(128 + number)


def up(options):
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, interrupt_once)
    found = cluster.up(options.name, options.nodes, say, options.while_pid)
    name = "" if found.name == "dev" else f" --name {found.name}"
    print(f"cluster {found.name} is ready\n"
          f"  to use it in this shell  eval \"$(scripts/cluster env{name})\"\n"
          f"  anywhere else            KUBECONFIG={found.admin_kubeconfig}\n"
          f"  to take it down          scripts/cluster down{name}")


def down(options):
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    for name in store.names() if options.all else [options.name]:
        say(f"cluster {name}: " + ("everything is taken down" if cluster.down(name) else "there is nothing"))


def keep(options):
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    cluster.keep(options.name, options.while_pid)


def status(options):
    found = known(options.name)
    print(f"cluster {found.name}: {found.api_server}, logs in {found.logs}")
    for name, pid in cluster.status(found).items():
        print(f"  {name:28} {f'process {pid}' if pid else 'not running'}")


def load(options):
    found = known(options.name)
    for archive in options.archive:
        cluster.import_image(found, archive)
    if not options.archive:
        for name in cluster.load_product(found, options.build):
            print(name)


def plug(options, value):
    found = known(options.name)
    network.plug(found, found.node(options.node), value)


def node(options):
    found = known(options.name)
    command = arguments.enter(found.node(options.node), options.command or ["sh"])
    os.execvp(command[0], command)


def main():
    parser = argparse.ArgumentParser(prog="scripts/cluster", epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter,
                                     description="A real Kubernetes on this machine: a control plane and nodes with their own addresses. Needs root.")
    commands = parser.add_subparsers(dest="verb", required=True, metavar="COMMAND")

    def command(verb, what, action, named=True):
        sub = commands.add_parser(verb, help=what, description=what)
        if named:
            sub.add_argument("--name", default="dev", help="which cluster (default: dev)")
        sub.set_defaults(action=action)
        return sub

    sub = command("up", "brings a cluster up and says how to use it", up)
    sub.add_argument("--nodes", type=int, default=2, help=f"1 to {layout.MAX_NODES} (default: 2)")
    sub.add_argument("--while-pid", type=int, metavar="PID", help="takes it down by itself when that process has ended")
    sub = command("down", "takes everything of it away; also what a start that was killed left", down)
    sub.add_argument("--all", action="store_true", help="every cluster of this machine")
    command("status", "its address, and which of its processes run", status)
    command("env", "prints shell lines that point kubectl at it", lambda options: print(environment(known(options.name))))
    sub = command("start", "starts one of its processes again", lambda options: cluster.start(known(options.name), options.part))
    sub.add_argument("part", help="kube-apiserver, kubelet@node-1, ...: see status")
    sub = command("stop", "kills one of its processes (SIGKILL)", lambda options: cluster.stop(known(options.name), options.part))
    sub.add_argument("part", help="kube-apiserver, kubelet@node-1, ...: see status")
    sub = command("node", "runs a command in the namespaces of a node", node)
    sub.add_argument("node")
    sub.add_argument("command", nargs=argparse.REMAINDER)
    sub = command("cut", "cuts a node off: nothing comes from it or to it, and its processes go on",
                  lambda options: plug(options, False))
    sub.add_argument("node")
    sub = command("heal", "lets a node that was cut off back in", lambda options: plug(options, True))
    sub.add_argument("node")
    sub = command("load", "puts images on every node: docker-archive tars, or Paceline's own from a build", load)
    sub.add_argument("archive", nargs="*")
    sub.add_argument("--build", default="build/release", help="folder of the build whose programs go into paceline/runtime:dev and "
                     "paceline/controller:dev where no archive is named (default: build/release)")
    command("build", "builds the programs of Kubernetes, once for a machine", lambda options: print(parts.build(say)), named=False)
    command("go", "prints which Go builds them; status 1 where none is new enough",
            lambda options: print(parts.find_go() or sys.exit(1)), named=False)
    command("check", "says why this machine can't run one, with status 1; else nothing",
            lambda options: sys.exit(cluster.why_not() or 0), named=False)
    sub = command("keep", "waits for a process and takes the cluster down; up --while-pid starts it", keep)
    sub.add_argument("--while-pid", type=int, required=True)
    options = parser.parse_args()
    try:
        options.action(options)
    except ERRORS as error:
        sys.exit(f"cluster: {error}")


if __name__ == "__main__":
    main()
