"""What a job's policies mean on real pods: suspend, deadlines, restarts, clean-up; and what people see when pods can't start."""

import json
import signal

import unittest_report
from cluster_case import needs_cluster
from job_case import ENDLESS_STEPS, JOB_LABEL, SLOW, JobCase, endless, job
from machine import cluster


def trainer(spec=None, **container):
    """A pod template."""
    return {"spec": {**(spec or {}), "containers": [{"name": "trainer", **container}]}}


def listening(name, **keywords):
    """A job whose members are shells that end with code 0 when they are asked to."""
    listens = "trap 'exit 0' TERM; sleep 10000 & until grep -q ^sleep /proc/$!/cmdline; do :; done; echo ready; wait"
    program = {"name": "main", "image": "paceline/busybox:1", "command": ["sh", "-c", listens]}
    own = job(name, template={"spec": {"containers": [program]}}, **keywords)
    del own["spec"]["training"]
    return own


@needs_cluster
class PolicyTest(JobCase):
    def test_suspend_and_resume(self):
        """A job of a user of its own, whose images nobody writes to, saves as it leaves."""
        contained = {"readOnlyRootFilesystem": True, "runAsNonRoot": True, "runAsUser": 20000, "allowPrivilegeEscalation": False}
        self.apply(endless("pausing", template=trainer({"volumes": [self.kept_volume()]}, resources={"limits": {"cpu": "50m"}}, securityContext=contained),
                           runPolicy={"suspend": True}))
        self.wait_for("pausing", "Suspended")
        self.assertEqual(self.pods("pausing"), {})
        self.place("pausing", "node-2")   # as a queue that admits a job does
        self.suspend("pausing", "false")
        self.wait_for("pausing", "Running")
        self.assert_placed("pausing", "node-2")
        first = sorted(self.pods("pausing"))
        self.assertEqual(self.pods("pausing")[first[0]]["spec"]["containers"][0]["securityContext"], contained)
        # Before the first step there is nothing to save.
        self.wait_until("a step", lambda: "first step applied" in self.run_kubectl("logs", first[0]).stdout)
        self.suspend("pausing", "true")
        self.wait_for("pausing", "Suspended")
        self.wait_until("the pods' end", lambda: not self.pods("pausing"))
        self.assertEqual(self.condition("pausing", "Running")["status"], "False")
        saved = self.wait_until("what was saved on leaving", lambda: self.status("pausing").get("lastCheckpoint"))
        self.place("pausing", "node-1")
        self.suspend("pausing", "false")
        self.wait_for("pausing", "Running")
        self.assert_placed("pausing", "node-1")
        self.assertEqual(self.condition("pausing", "Suspended")["status"], "False")
        self.assertEqual(len({*first, *self.pods("pausing")}), 4)   # other names: another attempt
        self.assertRegex(saved, r"^/paceline/checkpoints/step-\d{9}$")
        self.assertEqual(self.status("pausing")["restarts"].get("total", 0), 0)

    def test_a_job_of_another_controller_is_left_alone(self):
        """As MultiKueue has them: suspended until another cluster runs the job, whose status it copies here. One can not be run."""
        one_file_of_two = {"data": {"format": "idx", "train": {"inputs": ["a", "b"], "labels": "c"}}}
        policy = {"suspend": True, "managedBy": "kueue.x-k8s.io/multikueue"}
        theirs = {"far": job("far", runPolicy=policy), "far-odd": job("far-odd", training=one_file_of_two, runPolicy=policy)}
        self.apply(*theirs.values())
        self.let_the_controller_pass("odd-1", one_file_of_two)
        for name in theirs:
            self.assertNotIn("status", self.get("tj", name))
        copied = {"phase": "Running", "conditions": [{"type": "Running", "status": "Unknown", "lastTransitionTime": "2026-01-02T03:04:05Z"}]}
        for name in theirs:
            self.kubectl("patch", "tj", name, "--subresource=status", "--type=merge", "-p", json.dumps({"status": copied}))
        before = {name: self.get("tj", name) for name in theirs}
        self.let_the_controller_pass("odd-2", one_file_of_two)
        for name, was in before.items():
            self.assertEqual(was["status"], copied)
            self.assertEqual(self.get("tj", name), was)   # its resourceVersion, too
            self.assertNotIn("finalizers", was["metadata"])
            self.assertEqual(self.get("events", "--field-selector", f"involvedObject.name={name}")["items"], [])
        self.assertEqual(self.children(), [])

    def test_conditions_of_others_are_theirs(self):
        self.apply(job("shared", workers=0, runPolicy={"suspend": True}))
        self.wait_for("shared", "Suspended")
        theirs = {"type": "QuotaReserved", "status": "Unknown", "reason": "Waiting", "message": "of 4 \u20ac", "weight": 3,
                  "lastTransitionTime": "2026-01-02T03:04:05Z"}
        kinds = [each["type"] for each in self.status("shared")["conditions"]]
        edit = [{"op": "add", "path": "/status/conditions/-", "value": theirs},
                {"op": "replace", "path": f"/status/conditions/{kinds.index('Suspended')}/status", "value": "Unknown"}]
        self.kubectl("patch", "tj", "shared", "--subresource=status", "--type=json", "-p", json.dumps(edit))
        self.wait_for("shared", "Suspended")   # this one is ours, and nobody else knows
        self.suspend("shared", "false")
        self.wait_for("shared", "Succeeded")
        self.assertEqual(self.condition("shared", "QuotaReserved"), theirs)
        fields = json.loads(self.kubectl("get", "tj", "shared", "-o", "json", "--show-managed-fields"))["metadata"]["managedFields"]
        owners = [each["manager"] for each in fields if '{\\"type\\":\\"QuotaReserved\\"}' in json.dumps(each)]
        self.assertEqual(len(owners), 1)
        self.assertNotIn("paceline-controller", owners)

    def let_the_controller_pass(self, name, training):
        """It has looked at a job that came last, and refused it."""
        self.apply(job(name, training=training))
        self.wait_for(name, "Failed")
        self.assertEqual(self.status(name)["reason"], "InvalidSpec")

    def place(self, name, node):
        edit = {"template": {"metadata": {"labels": {"placed-on": node}}, "spec": {"nodeSelector": {"kubernetes.io/hostname": node}}}}
        self.kubectl("patch", "tj", name, "--type=merge", "-p", json.dumps({"spec": {"replicaSpecs": {"chief": edit, "worker": edit}}}))

    def assert_placed(self, name, node):
        pods = self.pods(name).values()
        self.assertEqual([(pod["metadata"]["labels"].get("placed-on"), pod["spec"]["nodeName"]) for pod in pods], [(node, node)] * 2)

    def test_the_deadline_ends_a_job(self):
        self.apply(endless("late", runPolicy={"activeDeadlineSeconds": 1}))
        self.wait_for("late", "Failed")
        self.assertEqual(self.status("late")["reason"], "DeadlineExceeded")
        self.wait_until("the pods' end", lambda: not any(pod["status"]["phase"] == "Running" for pod in self.pods("late").values()))

    def test_finished_jobs_go_after_their_time_to_live(self):
        self.apply(job("brief", runPolicy={"ttlSecondsAfterFinished": 0}))
        self.wait_until("the job's end", lambda: not self.kubectl("get", "tj", "-o", "name"))
        self.wait_until("the children's end", lambda: not self.children())

    def test_clean_pod_policies(self):
        self.apply(*(job(policy.lower(), runPolicy={"cleanPodPolicy": policy}) for policy in ("All", "None", "Running")))
        for name in ("all", "none", "running"):
            self.wait_for(name, "Succeeded")
        self.wait_until("the pods' end", lambda: not self.pods("all"))
        # The job has succeeded when its members say so; kubelets see their ends a moment later.
        for name in ("none", "running"):
            self.wait_until(f"the ends of {name}", lambda: [pod["status"]["phase"] for pod in self.pods(name).values()] == ["Succeeded"] * 2)

    def test_clean_pod_policies_when_a_member_runs_on(self):
        """A chief fails beside a worker that would run for ever."""
        names = {policy: f"fails-{policy.lower()}" for policy in ("All", "None", "Running")}
        self.apply(*(listening(name, runPolicy={"cleanPodPolicy": policy}) for policy, name in names.items()))
        for name in names.values():
            self.wait_for(name, "Running")
            self.wait_until_it_listens(f"{name}-worker-0-0")
            self.end(f"{name}-chief-0-0", signal.SIGKILL)
            self.wait_for(name, "Failed")
        self.wait_until("the end of all pods", lambda: not self.pods(names["All"]))
        phases = lambda policy: {name: pod["status"]["phase"] for name, pod in self.pods(names[policy]).items()}
        self.wait_until("the end of the one that ran", lambda: phases("Running") == {"fails-running-chief-0-0": "Failed"})
        self.assertEqual(phases("None"), {"fails-none-chief-0-0": "Failed", "fails-none-worker-0-0": "Running"})
        self.assertNotIn("deletionTimestamp", self.pods(names["None"])["fails-none-worker-0-0"]["metadata"])

    def test_a_failing_job_restarts_up_to_its_limit(self):
        self.apply(job("wrong", restart="OnFailure", training={"data": {"format": "csv", "train": {"inputs": "data/none.csv"}, "testFraction": 0.2}},
                       runPolicy={"backoffLimit": 1}))
        self.wait_for("wrong", "Failed")
        status = self.status("wrong")
        self.assertEqual((status["reason"], status["restarts"]["total"]), ("BackoffLimitExceeded", 1))
        self.assertIn("open data/none.csv: No such file or directory", status["message"])

    def test_a_killed_member_is_named(self):
        self.apply(endless("struck"))
        self.wait_for("struck", "Running")
        self.kill_trainer("struck-worker-0-0", signal.SIGKILL)
        self.wait_for("struck", "Failed")
        message = self.status("struck")["message"]
        for words in ("worker-0", "struck-worker-0-0", "signal 9 (SIGKILL)"):
            self.assertIn(words, message)

    def test_children_that_are_deleted_come_back(self):
        self.apply(endless("whole", restart="OnFailure"))
        self.wait_for("whole", "Running")
        before = {pod["metadata"]["uid"] for pod in self.pods("whole").values()}
        self.kubectl("delete", "service/whole", self.secret("whole"))
        self.wait_until("the service again", lambda: "service/whole" in self.children())
        self.wait_until("the secret again", lambda: self.secret("whole") in self.children())
        self.assertEqual({pod["metadata"]["uid"] for pod in self.pods("whole").values()}, before)
        chief = self.pods("whole")["whole-chief-0-0"]["metadata"]["uid"]
        self.kubectl("delete", "pod/whole-worker-0-0", "--grace-period=1")
        self.wait_until("the next worker", lambda: sorted(self.pods("whole")) == ["whole-chief-0-0", "whole-worker-0-1"])
        self.wait_until("it to join", lambda: self.status("whole")["view"]["size"] == 2)
        self.assertEqual(self.pods("whole")["whole-chief-0-0"]["metadata"]["uid"], chief)
        self.assertEqual(self.status("whole")["restarts"]["byCause"], [{"role": "worker", "cause": "Deleted", "count": 1}])

    def test_a_pod_that_is_removed_by_force_is_not_made_again_where_nobody_is_replaced(self):
        self.apply(endless("torn"))
        self.wait_for("torn", "Running")
        self.kubectl("delete", "pod/torn-worker-0-0", "--grace-period=0", "--force")
        self.wait_for("torn", "Failed")
        self.assertNotIn("torn-worker-0-0", self.pods("torn"))
        self.assertIn("torn-worker-0-0", self.status("torn")["message"])

    def test_a_pod_that_is_deleted_when_its_work_is_done_is_not_missed(self):
        """By a user or a garbage collector, while the chief is still at its own."""
        for restart in ("Never", "OnFailure"):
            self.apply(listening(f"done-{restart.lower()}", restart=restart))
        for name in ("done-never", "done-onfailure"):
            self.wait_for(name, "Running")
            self.end_well(f"{name}-worker-0-0")
            self.wait_until("the controller to see it", lambda name=name: self.worker(name).get("succeeded") == 1)
            self.kubectl("delete", "pod", f"{name}-worker-0-0")
        self.apply(job("later", workers=0))   # whose pod the controller sees after those deletions
        self.wait_for("later", "Succeeded")
        self.wait_for_a_pass("done-never", "done-onfailure")
        self.kill_controllers(self.wait_until("a leader", lambda: self.leader()))   # the next one has only what the status keeps
        self.wait_for_a_pass("done-never", "done-onfailure")
        for name in ("done-never", "done-onfailure"):
            self.assertEqual(self.worker(name).get("succeeded"), 1)
            self.assertEqual(sorted(self.pods(name)), [f"{name}-chief-0-0"])
            self.assertEqual(self.status(name)["phase"], "Running")
            self.end_well(f"{name}-chief-0-0")
            self.wait_for(name, "Succeeded")
            self.assertEqual(self.status(name).get("restarts", {}).get("total", 0), 0)

    def end_well(self, pod):
        self.end(pod, signal.SIGTERM)
        self.wait_for_phase(pod, "Succeeded")

    def end(self, pod, number):
        self.wait_until_it_listens(pod)
        self.kill("sh", self.get("pod", pod)["metadata"]["uid"], number)

    def wait_until_it_listens(self, pod):
        """Before that a pod's first process hears of no SIGTERM."""
        self.wait_until("the program", lambda: "ready" in self.run_kubectl("logs", pod).stdout)

    def wait_for_a_pass(self, *names):
        """A controller that leads from now on has looked at these jobs: it says which edit it has seen."""
        for name in names:
            limit = self.get("tj", name)["spec"].get("runPolicy", {}).get("backoffLimit", 6)
            self.kubectl("patch", "tj", name, "--type=merge", "-p", json.dumps({"spec": {"runPolicy": {"backoffLimit": limit + 1}}}))
            edit = self.get("tj", name)["metadata"]["generation"]
            self.wait_until("the edit to be seen", lambda name=name, edit=edit: self.status(name).get("observedGeneration") == edit)

    def worker(self, name):
        return next(each for each in self.status(name)["replicaStatuses"] if each["role"] == "worker")

    def test_an_evicted_member_is_not_charged(self):
        self.apply(endless("moved", restart="OnFailure", runPolicy={"backoffLimit": 0}))
        self.wait_for("moved", "Running")
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "moved-chief-0-0", "namespace": self.namespace}}
        self.kubectl("create", "--raw", f"/api/v1/namespaces/{self.namespace}/pods/moved-chief-0-0/eviction", "-f", "-", text=json.dumps(eviction))
        self.wait_until("the next chief", lambda: sorted(self.pods("moved")) == ["moved-chief-0-1", "moved-worker-0-0"])
        self.wait_until("it to join", lambda: self.status("moved")["view"]["size"] == 2)
        self.assertEqual(self.status("moved")["restarts"]["byCause"], [{"role": "chief", "cause": "Evicted", "count": 1}])

    def test_a_preempted_member_is_not_charged(self):
        """Each node has one slot; a job of a higher priority takes one of the two that another holds."""
        slot = "example.org/slot"
        self.kubectl("create", "priorityclass", "urgent", "--value=1000")
        self.addCleanup(self.kubectl, "delete", "priorityclass", "urgent")
        for node in ("node-1", "node-2"):
            self.set_capacity(node, slot, "1")
            self.addCleanup(self.set_capacity, node, slot, None)
            self.wait_until("the slot", lambda node=node: self.get("node", node)["status"]["allocatable"].get(slot) == "1", 30)
        takes = trainer(resources={"limits": {"cpu": "50m", slot: "1"}})
        self.apply(endless("patient", restart="OnFailure", template=takes, runPolicy={"backoffLimit": 0}))
        self.wait_for("patient", "Running")
        self.apply(endless("hasty", workers=0, template=takes, runPolicy={"schedulingPolicy": {"priorityClass": "urgent"}}))
        self.wait_for("hasty", "Running")
        self.assertEqual(self.pods("hasty")["hasty-chief-0-0"]["spec"]["priorityClassName"], "urgent")
        self.wait_until("the reason", lambda: self.condition("patient", "Running")["reason"] == "Unschedulable")
        restarts = self.status("patient")["restarts"]["byCause"]
        self.assertEqual([(each["cause"], each["count"]) for each in restarts], [("Preempted", 1)])
        self.assertEqual(self.status("patient")["view"]["size"], 1, "the other one goes on")
        self.kubectl("delete", "tj/hasty", "--wait=false")
        self.wait_until("the member to be back", lambda: self.status("patient")["view"]["size"] == 2)

    def set_capacity(self, node, name, value):
        self.kubectl("patch", "node", node, "--subresource=status", "--type=merge", "-p", json.dumps({"status": {"capacity": {name: value}}}))

    def test_a_member_beyond_its_memory_is_told_apart(self):
        """Its weights alone are larger than its limit."""
        self.apply(job("hungry", workers=0, restart="OnFailure", template=trainer(resources={"limits": {"memory": "128Mi"}}),
                       training={"model": {"type": "mlp", "hidden": [8192, 8192], "classes": 10}}, runPolicy={"backoffLimit": 1}))
        self.wait_for("hungry", "Failed")
        status = self.status("hungry")
        self.assertEqual((status["reason"], status["restarts"]["byCause"]),
                         ("BackoffLimitExceeded", [{"role": "chief", "cause": "OOMKilled", "count": 1}]))
        fault = status["fault"]
        self.assertEqual((fault["pod"], fault["kind"], fault["signal"]), ("hungry-chief-0-1", "OutOfMemory", 9))

    def test_a_member_that_its_cpu_limit_holds_up_is_found_before_the_first_step_and_after(self):
        """The chief may use a tenth of what each worker may."""
        made = job("uneven", workers=2, training={"steps": ENDLESS_STEPS, "model": {"type": "mlp", "hidden": [256, 256], "classes": 10}},
                   preflight={"action": "Report"})
        for role, limit in (("chief", "40m"), ("worker", "400m")):
            made["spec"]["replicaSpecs"][role]["template"] = trainer(resources={"limits": {"cpu": limit}})
        self.apply(made)
        self.wait_for("uneven", "Straggling")
        # The kernel's word is a second old, and comes late from a member that hardly runs: the cause may be another one at first.
        found = self.wait_until("the one with its cause", lambda: [each for each in self.status("uneven").get("stragglers", [])
                                                                   if (each["kind"], each["cause"]) == ("Slow", "CpuQuota")])
        chief = self.pods("uneven")["uneven-chief-0-0"]
        self.assertEqual([each["pod"] for each in found], ["uneven-chief-0-0"])
        self.assertGreater(found[0]["factor"], 1.5)
        self.assertIn("uneven-chief-0-0", self.kubectl("get", "tj/uneven", "-o", "wide"))
        events = self.get("events", "--field-selector", "reason=StragglerDetected")["items"]
        self.assertTrue(any(event["type"] == "Warning" and event["involvedObject"]["name"] == "uneven" for event in events))
        tested = self.status("uneven")["preflight"]
        self.assertEqual((tested["outcome"], tested["members"]), ("Reported", 3))
        unfit = {each["pod"]: each for each in tested["unfit"]}   # both nodes are this machine's: its load may make any link slow
        self.assertEqual((unfit["uneven-chief-0-0"]["part"], unfit["uneven-chief-0-0"]["excluded"]), ("Compute", False))
        self.assertGreater(unfit["uneven-chief-0-0"]["factor"], 2)
        self.assertEqual(self.pods("uneven")["uneven-chief-0-0"]["metadata"]["uid"], chief["metadata"]["uid"])
        self.kubectl("delete", "tj/uneven", "--wait=false")

    def test_reason_that_pods_do_not_start_is_in_the_status(self):
        secret = {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "absent", "key": "k"}}}
        jobs = {
            "nowhere": (trainer({"nodeSelector": {"zone": "moon"}}), "Unschedulable", "didn't match Pod's node affinity/selector"),
            "imageless": (trainer(image="paceline/absent:1"), "ErrImagePull", "paceline/absent:1"),
            "keyless": (trainer(env=[secret]), "CreateContainerConfigError", 'secret "absent" not found'),
            "mountless": (trainer({"volumes": [{"name": "s", "secret": {"secretName": "absent"}}]},
                                  volumeMounts=[{"name": "s", "mountPath": "/secret"}]), "FailedMount", 'secret "absent" not found'),
            "diskless": (trainer({"volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "absent"}}]}), "Unschedulable",
                         'persistentvolumeclaim "absent" not found')}
        self.apply(*(job(name, workers=0, template=template) for name, (template, _, _) in jobs.items()))
        for name, (_, reason, words) in jobs.items():
            found = self.wait_until(f"{name}'s condition", lambda name=name, words=words: words in self.condition(name, "Running").get("message", "")
                                    and self.condition(name, "Running"), 30)
            self.assertEqual(found["status"], "False")
            self.assertIn(found["reason"], (reason, "ImagePullBackOff") if name == "imageless" else (reason,))
            self.assertIn(f"{name}-chief-0-0", found["message"])
        self.kubectl("create", "secret", "generic", "absent", "--from-literal=k=v")
        for name in ("keyless", "mountless"):
            self.wait_for(name, "Succeeded")

    def test_a_quota_is_waited_for(self):
        self.kubectl("create", "quota", "none", "--hard=pods=0")
        self.wait_until("the quota", lambda: self.get("quota", "none").get("status", {}).get("hard"))
        self.apply(job("waiting", workers=0))
        self.wait_until("the condition", lambda: "exceeded quota: none" in self.condition("waiting", "Running").get("message", ""), 30)
        self.kubectl("delete", "quota", "none")
        self.wait_for("waiting", "Succeeded")

    def test_refused_admission_is_in_the_status(self):
        enforce = "pod-security.kubernetes.io/enforce"
        self.kubectl("label", "namespace", self.namespace, f"{enforce}=restricted")
        # The API server admits by what it has seen of the namespace.
        self.wait_until("the refusal", lambda: "violates PodSecurity" in self.run_kubectl(
            "run", "any", "--image=paceline/busybox:1", "--dry-run=server").stderr)
        self.apply(job("barred", workers=0))
        self.wait_until("the condition", lambda: 'violates PodSecurity "restricted' in self.condition("barred", "Running").get("message", ""), 30)
        self.assertEqual(self.condition("barred", "Running")["reason"], "PodNotCreated")
        self.kubectl("label", "namespace", self.namespace, f"{enforce}-")
        self.wait_for("barred", "Succeeded")

    def test_a_tenant_without_rights_sees_nothing(self):
        self.apply(job("private", workers=0))
        self.wait_for("private", "Succeeded")
        for words in (("get", "tj"), ("get", "tj", "private"), ("get", "tj", "--all-namespaces"), ("get", "secrets"), ("delete", "tj", "private"),
                      ("logs", "private-chief-0-0"), ("patch", "tj", "private", "--type=merge", "-p={}")):
            result = self.run_kubectl("--as=mallory", *words)
            self.assertNotEqual(result.returncode, 0, words)
            self.assertIn('User "mallory" cannot', result.stderr)
            self.assertEqual(result.stdout, "")


@needs_cluster
class NodeTest(JobCase):
    def test_members_of_a_lost_node_start_again_elsewhere(self):
        apart = {"weight": 100, "podAffinityTerm": {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {JOB_LABEL: "apart"}}}}
        affinity = {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [apart]}}
        self.apply(endless("apart", restart="OnFailure", runPolicy={"backoffLimit": 0}, template={"spec": {**SLOW["spec"], "affinity": affinity}}))
        self.wait_for("apart", "Running")
        self.assertEqual({pod["spec"]["nodeName"] for pod in self.pods("apart").values()}, {"node-1", "node-2"})
        leader = self.in_system("get", "pod", self.leader(), "-o", "jsonpath={.spec.nodeName}").stdout
        lost = {"node-1": "node-2", "node-2": "node-1"}[leader]
        cluster.stop(self.layout, f"kubelet@{lost}")   # its containers go on, and nobody can end them
        self.addCleanup(self.kubectl, "wait", f"node/{lost}", "--for=condition=Ready", "--timeout=60s")
        self.addCleanup(cluster.start, self.layout, f"kubelet@{lost}")
        moved = self.wait_until("the next one", lambda: {"apart-chief-0-1", "apart-worker-0-1"} & set(self.pods("apart")))
        self.wait_until("it to join", lambda: self.status("apart")["view"]["size"] == 2)
        pods = self.pods("apart")
        self.assertEqual({pods[name]["spec"]["nodeName"] for name in moved}, {leader})
        self.assertEqual(self.status("apart")["restarts"]["attempt"] if "attempt" in self.status("apart")["restarts"] else 0, 0)
        restarts = self.status("apart")["restarts"]["byCause"]
        self.assertEqual([(each["cause"], each["count"]) for each in restarts], [("NodeLost", 1)])


if __name__ == "__main__":
    unittest_report.main("cluster_policy_test")
