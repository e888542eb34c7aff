"""Random faults on a ring of real pods, from a seed: what scripts/chaos --cluster does, and a suite for a few rounds.

A round is one TrainingJob. Its members are slow until all that its seed has in store for it has happened and has been mended; then it must be whole again,
and end with the model of a run that nobody disturbs. Its folder, which all nodes see, is the job's storage."""

import contextlib
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import chaos_checks as checks
from chaos_checks import Broken
from cluster_case import REASON
from job_case import CONTROLLERS, HOME, JOB_LABEL, SLOW
from machine import api, cluster, network, parts, processes
from ring_case import RingCase

# Members with SLOW's share of a processor do 100 to 200 a second, also one that is alone.
STEPS, BATCH = 5000, 600
BEGIN_SECONDS, MEND_SECONDS, END_SECONDS, DELETE_SECONDS = 90, 150, 150, 90
# Members train on while they can't be reached for so long.
SHORT_CUT = 1.5
WHY = (Broken, AssertionError, processes.ProcessError, network.NetworkError, cluster.ClusterError, subprocess.TimeoutExpired)


def idle(seconds):
    end = time.monotonic() + seconds
    processes.wait_until("time to pass", seconds + 10, lambda: time.monotonic() >= end)


def ending(status):
    return status.get("phase") in ("Succeeded", "Failed")


class Logs:
    """What each member has written, by pod and uid. Files are opened when they are seen first: they are read also when their pod is gone."""

    def __init__(self, layout, namespace, name):
        self.folders = [node.folder / "var-log/pods" for node in layout.nodes]
        self.pattern, self.files = f"{namespace}_{name}-*_*/trainer/*.log", {}

    def look(self):
        for folder in self.folders:
            with contextlib.suppress(OSError):   # a pod goes meanwhile
                for path in folder.glob(self.pattern):
                    if path not in self.files:
                        self.files[path] = open(path)

    def texts(self):
        found = {}
        for path, file in self.files.items():
            _, pod, uid = path.parts[-3].split("_")
            file.seek(0)
            found[pod, uid] = "".join(line.split(" ", 3)[-1] for line in file)
        return found

    def close(self):
        for file in self.files.values():
            file.close()


class Round:
    def __init__(self, case, name, rng):
        self.case, self.name, self.rng, self.layout = case, name, rng, case.layout
        self.server, self.folder = api.Api(case.layout), pathlib.Path(tempfile.mkdtemp(prefix=f"paceline-{name}-"))
        self.storage = self.folder / "storage"
        self.storage.mkdir()
        for folder in (self.folder, self.storage):
            folder.chmod(0o777)   # members are nobody in particular
        self.logs = Logs(case.layout, case.namespace, name)
        self.told, self.undoing, self.seen, self.attempts, self.lives = [], [], {}, {}, {}
        # How often something happened to a place that may cost it its pod; places of which nobody can say; and whether two controllers may be at work.
        self.hits, self.loose, self.simple, self.may_part = {}, set(), True, False
        self.frozen, self.struck = set(), set()   # places; uids of pods to which something happened that costs them their place
        workers = rng.randint(1, 3)
        self.places = ["chief-0", *(f"worker-{index}" for index in range(workers))]
        self.wanted, self.most = list(self.places), workers + 1
        self.mending = 0.0   # until it was whole again when all was mended

    def say(self, what):
        self.told.append(what)

    # ---- what is seen

    def pods(self):
        """Those that there are; what was known before where nobody answers."""
        found = self.server.get(f"/api/v1/namespaces/{self.case.namespace}/pods?labelSelector={JOB_LABEL}%3D{self.name}")
        if found is not None:
            self.seen = {pod["metadata"]["name"]: pod for pod in found["items"]}
            for name, pod in self.seen.items():
                variables = pod["spec"]["containers"][0].get("env", [])
                self.attempts[name] = next((each["value"] for each in variables if each["name"] == "PACELINE_ATTEMPT"), "0")
                restarts = sum(each["restartCount"] for each in pod["status"].get("containerStatuses", []))
                self.lives.setdefault(name, set()).add((pod["metadata"]["uid"], restarts))
        self.logs.look()
        return self.seen

    def status(self):
        found = self.server.get(f"/apis/paceline.dev/v1alpha1/namespaces/{self.case.namespace}/trainingjobs/{self.name}")
        return (found or {}).get("status", {})

    def place_of(self, pod):
        return pod[len(self.name) + 1:].rsplit("-", 1)[0]

    def newest(self, place):
        """The place's pod, unless it is to go, of those that were seen last."""
        found = [pod for pod in self.seen if self.place_of(pod) == place]
        pod = max(found, key=lambda each: int(each.rsplit("-", 1)[1]), default=None)
        return None if pod is None or "deletionTimestamp" in self.seen[pod]["metadata"] else pod

    def places_on(self, *nodes):
        return {self.place_of(pod) for pod, value in self.pods().items() if value["spec"].get("nodeName") in nodes}

    def pace(self, seconds):
        """Lets time pass, in which what is due is mended."""
        end = time.monotonic() + seconds

        def look():
            self.pods()
            for undone in [each for each in self.undoing if each[0] <= time.monotonic()]:
                self.undoing.remove(undone)
                undone[1]()
            return time.monotonic() >= end
        processes.wait_until("time to pass", seconds + MEND_SECONDS, look)

    def later(self, seconds, undo):
        self.undoing.append((time.monotonic() + seconds, undo))

    def mend(self):
        self.pace(max((at - time.monotonic() for at, _ in self.undoing), default=0))

    def mend_now(self):
        while self.undoing:
            with contextlib.suppress(*WHY):
                self.undoing.pop()[1]()

    # ---- what is done to members

    def some(self, most):
        return self.rng.sample(self.places, min(len(self.places), self.rng.randint(1, most)))

    def signal(self, place, number):
        """A signal for the place's trainer; False where it has none."""
        self.pods()
        pod = self.newest(place)
        pids = self.case.processes_in("paceline-worker", self.seen[pod]["metadata"]["uid"]) if pod else set()
        return any([processes.send(pid, number, lambda p: "paceline-worker" in processes.command_line(p)[0]) for pid in pids])

    def hit(self, place):
        self.hits[place] = self.hits.get(place, 0) + 1
        if pod := self.newest(place):
            self.struck.add(self.seen[pod]["metadata"]["uid"])

    def kill(self):
        victims = self.some(2)
        self.say(f"kills {', '.join(victims)}")
        for place in victims:
            if self.signal(place, signal.SIGKILL):
                self.hit(place)

    def freeze(self):
        place = self.rng.choice(self.places)
        self.say(f"freezes {place}")
        if self.signal(place, signal.SIGSTOP):
            self.hit(place)
            self.frozen.add(place)

    def pause(self):
        place, seconds = self.rng.choice(self.places), self.rng.uniform(0.1, 2)
        self.say(f"pauses {place} for {seconds:.1f} s")
        self.signal(place, signal.SIGSTOP)
        idle(seconds)
        self.signal(place, signal.SIGCONT)

    def delete(self, *how):
        place = self.rng.choice(self.places)
        self.say(f"deletes {place}{' by force' if how else ''}")
        self.pods()
        if pod := self.newest(place):
            self.hit(place)
            self.case.run_kubectl("delete", "pod", pod, "--wait=false", *how)

    def delete_by_force(self):
        self.delete("--grace-period=0", "--force")

    def scale(self):
        workers = self.rng.randint(1, self.most)
        self.say(f"scales to {workers} workers")
        self.wanted = ["chief-0", *(f"worker-{index}" for index in range(workers))]
        self.loose.update(f"worker-{index}" for index in range(workers, self.most))
        self.case.run_kubectl("scale", f"tj/{self.name}", f"--replicas={workers}")

    def suspend(self):
        self.say("suspends and resumes")
        self.loose.update(self.places)
        self.case.suspend(self.name, "true")
        processes.wait_until(f"{self.name} to be suspended", MEND_SECONDS, lambda: self.status().get("phase") in ("Suspended", "Succeeded", "Failed"))
        self.case.suspend(self.name, "false")

    # ---- what is done to nodes

    def node(self):
        return self.rng.choice(self.layout.nodes)

    def disturb_nodes(self, *nodes):
        """Members on these nodes may be lost, and who was lost before may come to one of them."""
        self.loose |= self.places_on(*(node.name for node in nodes))
        self.simple = False

    def cut_nodes(self, *nodes):
        """The same, and anybody where the leader is on one of them: it hears nobody else."""
        self.disturb_nodes(*nodes)
        if self.leaders_node() in {node.name for node in nodes}:
            self.loose.update(self.places)
            self.may_part = True

    def undo(self, seconds, how):
        """Later; but at once after a time that is so short that nobody may be lost."""
        if seconds == SHORT_CUT:
            idle(seconds)
            how()
        else:
            self.later(seconds, how)

    def leaders_node(self):
        pod = self.server.get(f"/api/v1/namespaces/{HOME}/pods/{self.case.leader()}") or {}
        return pod.get("spec", {}).get("nodeName")

    def cut(self):
        node, seconds = self.node(), self.rng.choice([SHORT_CUT, 4, 8, 20, 45])
        self.say(f"cuts {node.name} off for {seconds} s")
        if seconds > SHORT_CUT:
            self.cut_nodes(node)
        self.case.plug(node.name, False)
        self.undo(seconds, lambda: self.case.plug(node.name, True))

    def part(self):
        """Two nodes reach everybody but each other's pods."""
        one, other, seconds = *self.rng.sample(self.layout.nodes, 2), self.rng.choice([SHORT_CUT, 8, 20])
        self.say(f"cuts {one.name} off from {other.name} for {seconds} s")
        if seconds > SHORT_CUT:
            self.cut_nodes(one, other)
        network.run(network.in_namespace(one.network, ["ip", "route", "replace", "blackhole", other.pods]))
        back = ["ip", "route", "replace", other.pods, "via", other.address, "dev", "eth0"]
        self.undo(seconds, lambda: network.run(network.in_namespace(one.network, back)))

    def kill_kubelet(self):
        """Pods are evicted 36 s after their kubelet's last word."""
        node, seconds = self.node(), self.rng.choice([0, 5, 25])
        self.say(f"kills the kubelet of {node.name}, for {seconds} s")
        part = f"kubelet@{node.name}"
        self.simple = False
        if cluster.find(self.layout, part):
            cluster.stop(self.layout, part)
        self.later(seconds, lambda: cluster.find(self.layout, part) or cluster.start(self.layout, part))

    def kill_kubelet_and_members(self):
        self.kill_kubelet()
        self.kill()

    def drain(self):
        node, seconds, whole = self.node(), self.rng.choice([5, 15, 25]), self.rng.random() < 0.5
        self.say(f"drains {node.name} {'' if whole else 'of the members '}for {seconds} s")
        self.disturb_nodes(node)
        words = ["drain", node.name, "--ignore-daemonsets", "--delete-emptydir-data", "--force", "--timeout=60s"]
        words += [] if whole else [f"--pod-selector={JOB_LABEL}={self.name}"]
        drains = subprocess.Popen([parts.program("kubectl"), *words], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                  env=cluster.client_environment(self.layout))

        def undo():
            drains.kill()
            drains.wait()
            self.case.kubectl("uncordon", node.name)
        self.later(seconds, undo)

    # ---- what is done to the control plane

    def signal_controllers(self, pods, number):
        for pod in pods:
            found = self.server.get(f"/api/v1/namespaces/{HOME}/pods/{pod}") if pod else None
            for pid in self.case.processes_in("paceline-controller", found["metadata"]["uid"]) if found else ():
                processes.send(pid, number, lambda p: "paceline-controller" in processes.command_line(p)[0])

    def kill_leader(self):
        self.say("kills the leader")
        self.signal_controllers([self.case.leader()], signal.SIGKILL)

    def kill_leader_and_members(self):
        self.kill_leader()
        self.kill()

    def kill_controllers(self):
        self.say("kills all controllers")
        self.signal_controllers(self.case.controllers(), signal.SIGKILL)

    def freeze_leader(self):
        """For longer than its lease: another one leads when it goes on."""
        leader = self.case.leader()
        self.say("freezes the leader for 12 s")
        self.may_part = True
        self.signal_controllers([leader], signal.SIGSTOP)
        self.later(12, lambda: self.signal_controllers([leader], signal.SIGCONT))

    def kill_api_server(self):
        seconds = self.rng.choice([0, 3, 8])
        self.say(f"kills the API server, for {seconds} s")
        cluster.stop(self.layout, "kube-apiserver")
        idle(seconds)
        cluster.start(self.layout, "kube-apiserver")
        processes.wait_until("the API server again", MEND_SECONDS, lambda: self.server.call("GET", "/readyz")[0] == 200)

    FAULTS = ([kill] * 3 + [freeze] * 2 + [pause] + [delete] * 3 + [delete_by_force] + [scale] * 2 + [cut] * 3 + [part] * 2 + [kill_kubelet] * 2
              + [kill_kubelet_and_members] + [drain] * 2 + [kill_leader] * 2 + [kill_leader_and_members] * 2
              + [suspend, kill_controllers, freeze_leader, kill_api_server])

    # ---- the round

    def begin(self):
        mount = {"spec": {**SLOW["spec"], "volumes": [{"name": "paceline", "hostPath": {"path": str(self.storage), "type": "Directory"}}]}}
        made = checks.job(len(self.places) - 1, self.most, checks.training(STEPS, BATCH))
        made["metadata"]["name"] = self.name
        for role in made["spec"]["replicaSpecs"].values():
            role["template"] = mount
        self.case.apply(made)
        if self.rng.random() < 0.2:
            self.say("before all train")
        else:
            processes.wait_until(f"{self.name} to train", BEGIN_SECONDS, self.is_whole)

    def is_whole(self):
        """Each place's newest pod runs, and trains in the view, and nothing happened to it; or the job has ended."""
        self.pods()
        status, newest = self.status(), {self.newest(place) for place in self.wanted}
        if ending(status):
            return True
        if None in newest or any(self.seen[pod]["status"]["phase"] != "Running" or self.seen[pod]["metadata"]["uid"] in self.struck for pod in newest):
            return False
        members = {member["pod"] for member in status.get("members", []) if member.get("rank", -1) >= 0}
        return members == newest and status.get("view", {}).get("size") == len(newest)

    def disturb(self):
        for number in range(self.rng.randint(1, 4)):
            pause, fault = self.rng.choice([0.0, self.rng.uniform(0, 6)]), self.rng.choice(self.FAULTS)
            self.pace(pause if number else self.rng.uniform(0, 2))
            if not ending(self.status()):
                fault(self)

    def end(self):
        """Its end, as its status has it."""
        self.mend()
        begin = time.monotonic()
        processes.wait_until(f"{self.name} to be whole again", MEND_SECONDS, self.is_whole, lambda: json.dumps(self.status()))
        self.mending = time.monotonic() - begin
        self.case.unthrottle(self.name)

        def look():
            self.pods()
            status = self.status()
            return status if ending(status) else None
        return processes.wait_until(f"{self.name} to end", END_SECONDS, look, lambda: json.dumps(self.status()))

    def check(self, status, reference):
        """How far its model is from the reference."""
        step = status.get("progress", {}).get("step")
        if (status["phase"], step) != ("Succeeded", STEPS):
            raise Broken(f"it ends as {status['phase']} at step {step} of {STEPS}: {status.get('message')}")
        numbers = {}
        for pod in self.attempts:
            place = self.place_of(pod)
            numbers[place] = max(numbers.get(place, 0), int(pod.rsplit("-", 1)[1]))
        for place, number in numbers.items():
            hits = self.hits.get(place, 0)
            if place not in self.loose and (hits == 0 or self.simple) and number > hits:
                raise Broken(f"{place} has been started again {number} times, and lost {hits} times")
        texts, views = self.logs.texts(), 0
        for pod, lives in self.lives.items():   # one that goes while nobody leads, before it trains, is made anew
            trained = [uid for uid, _ in lives if checks.VIEW.search(texts.get((pod, uid), ""))]
            touched = self.place_of(pod) in self.loose or self.hits.get(self.place_of(pod), 0) > 0
            if any(restarts for _, restarts in lives) or len(trained) > 1 or (len(lives) > 1 and not touched):
                raise Broken(f"{pod} has had more than one life (uid, restarts): {sorted(lives)}")
        restarts = status.get("restarts", {})
        for each in restarts.get("replacements", []):   # the job may end before a place's next pod is made
            place = f"{each['role']}-{each.get('index', 0)}"
            numbers[place] = max(numbers.get(place, 0), restarts.get("attempt", 0) + each.get("count", 0))
        if restarts.get("total", 0) > sum(numbers.values()):
            raise Broken(f"{restarts['total']} restarts are counted, and pods' numbers are {numbers}")
        for attempt in set(self.attempts.values()):
            logs = {f"{pod} {uid[:8]}": text for (pod, uid), text in texts.items() if self.attempts.get(pod) == attempt}
            views += checks.check_logs(logs, self.may_part)
        if views == 0:
            raise Broken("its members' logs tell of no view")
        models = list((self.storage / "model").glob("*.safetensors"))
        if len(models) != 1:
            raise Broken(f"its models are {models}")
        return checks.check_model(checks.weights_of(models[0]), reference)

    def delete_job(self):
        """A kubelet that stops a container with its pod's own grace, of minutes, takes no shorter one later (kubernetes#113606). So members that are
        frozen, and whose pods are to go, go on, and find that they have been asked to end."""
        for place in self.frozen:
            for pod, value in self.pods().items():
                if self.place_of(pod) == place and "deletionTimestamp" in value["metadata"]:
                    for pid in self.case.processes_in("paceline-worker", value["metadata"]["uid"]):
                        processes.send(pid, signal.SIGCONT, lambda p: "paceline-worker" in processes.command_line(p)[0])
        uids = {pod["metadata"]["uid"] for pod in self.pods().values()} | {uid for _, uid in self.logs.texts()}
        self.case.kubectl("delete", f"tj/{self.name}", f"--timeout={DELETE_SECONDS}s")
        ours = lambda: [each for each in self.case.children() if f"/{self.name}-" in each or each.endswith(f"/{self.name}")]   # noqa: E731
        processes.wait_until("all of it to go", DELETE_SECONDS, lambda: not ours(), lambda: str(ours()))
        left = {uid: pids for uid in uids if (pids := self.case.processes_in("paceline-worker", uid))}
        if left:
            raise Broken(f"processes are left, by their pods: {left}")

    def keep(self):
        """What is there of a round that failed, for people."""
        for (pod, uid), text in self.logs.texts().items():
            (self.folder / f"{pod}-{uid[:8]}.log").write_text(text)
        (self.folder / "objects.txt").write_text(self.case.job_story())
        (self.folder / "job.json").write_text(json.dumps(self.status(), indent=1))
        (self.folder / "pods.json").write_text(json.dumps(self.pods(), indent=1))
        says = self.case.in_system("logs", "-l", CONTROLLERS, "--prefix", "--tail=400").stdout
        earlier = self.case.in_system("logs", "-l", CONTROLLERS, "--prefix", "--tail=400", "--previous").stdout
        (self.folder / "controllers.log").write_text(earlier + says)


class ChaosCase(RingCase):
    def controllers(self):
        return self.in_system("get", "pods", "-l", CONTROLLERS, "-o", "jsonpath={.items[*].metadata.name}").stdout.split()

    def settle(self):
        """All nodes are ready, and so are two controllers; those whose container was killed, and would be started later and later, are replaced."""
        self.kubectl("wait", "node", "--all", "--for=condition=Ready", "--timeout=90s", seconds=120)
        for line in self.in_system("get", "pods", "-l", CONTROLLERS, "-o", "jsonpath={range .items[*]}{.metadata.name} "
                                   "{.status.containerStatuses[0].restartCount}{\"\\n\"}{end}").stdout.splitlines():
            if not line.endswith(" 0"):
                self.in_system("delete", "pod", line.split()[0], "--grace-period=1", "--wait=false")
        self.scale_controllers(2)

    def one_round(self, seed, number, reference):
        """Prints what was done, and returns whether all was well."""
        trial = Round(self, f"chaos-{number}", random.Random(f"{seed}/{number}"))
        begin, why = time.monotonic(), None
        try:
            trial.begin()
            trial.disturb()
            apart = trial.check(trial.end(), reference)
            trial.delete_job()
        except WHY as error:
            why = f"{type(error).__name__}: {error}"
            trial.keep()
        finally:
            trial.mend_now()
            trial.logs.close()
        if why:
            self.run_kubectl("delete", f"tj/{trial.name}", "--ignore-not-found", "--wait=false")
        try:
            self.settle()
        except WHY as error:
            why = why or f"afterwards: {type(error).__name__}: {error}"
        print(f"round {number}: {len(trial.places)} members: {'; '.join(trial.told)}: {why or f'good, {apart:.1e} apart'} "
              f"({time.monotonic() - begin:.0f} s; {trial.mending:.0f} s until it was whole again)", flush=True)
        if why:
            print(f"  its files: {trial.folder}; again: scripts/chaos --cluster --seed {seed} --round {number}", flush=True)
        else:
            shutil.rmtree(trial.folder)
        return why is None


class Chaos(ChaosCase):
    """Its rounds are no tests, but their set-up and their waits are the same."""
    node_count = 3

    def rounds(self):
        pass


def undisturbed():
    """The model after a run on this machine."""
    paceline = pathlib.Path(os.environ["PACELINE_BINARY_DIR"]) / "bin/paceline"
    return checks.undisturbed(paceline, checks.job(1, 1, checks.training(STEPS, BATCH, checks.DIGITS)))


def run(seed, numbers):
    """How many of these rounds are good."""
    if REASON:
        sys.exit(f"chaos: no cluster here: {REASON}")
    reference = undisturbed()
    try:
        Chaos.setUpClass()
        case = Chaos("rounds")
        case.setUp()
        return sum(case.one_round(seed, number, reference) for number in numbers)
    finally:
        unittest.doModuleCleanups()
