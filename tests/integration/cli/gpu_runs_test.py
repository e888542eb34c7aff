"""Runs on GPUs as users see them, on the GPU of the tests: libraries under NVIDIA's names, in a folder that members look in first. With
PACELINE_TEST_GPU=real, on this machine's own (scripts/gpu-suite)."""

import json
import os
import pathlib
import re
import subprocess
import unittest

import unittest_report
from cli_support import ENDLESS, ROOT, SLOW, CliCase, job, until

REAL = os.environ.get("PACELINE_TEST_GPU") == "real"
LIBRARIES = {} if REAL else {"libcuda.so.1": os.environ["PACELINE_FAKE_CUDA"], "libcublasLt.so.13": os.environ["PACELINE_FAKE_CUBLASLT"],
                             "libnvidia-ml.so.1": os.environ["PACELINE_FAKE_NVML"], "libnccl.so.2": os.environ["PACELINE_FAKE_NCCL"]}
GPU = "computes for default/digits on GPU 0 of 1: " + ("NVIDIA" if REAL else "Fake H200, 1024 MiB")
emulated_only = unittest.skipIf(REAL, "a test of the emulated GPU")
CHECKPOINTS = "  checkpoint: {everySteps: 20}\n"
GPT = """
apiVersion: paceline.dev/v1alpha1
kind: TrainingJob
metadata: {{name: gpt}}
spec:
  replicaSpecs: {{chief: {{}}, worker: {{}}}}
  training:
    model: {{type: gpt, layers: 1, heads: 2, width: 16, blockSize: 16, vocabularySize: 256}}
    data: {{format: text, train: {{inputs: {text}}}, testFraction: 0.1}}
    optimizer: {{type: AdamW, learningRate: 0.01, clipNorm: 1}}
    precision: {precision}
    globalBatchSize: 4
    steps: 20
    evaluation: {{everySteps: 20, batchSize: 8}}
"""


class GpuRunsTest(CliCase):
    def setUp(self):
        super().setUp()
        self.libraries = self.folder / "libraries"
        self.libraries.mkdir()
        for name, path in LIBRARIES.items():
            (self.libraries / name).symlink_to(path)

    def start_on(self, device, *arguments, **variables):
        """A command whose PACELINE_DEVICE is `device`."""
        environment = {"PACELINE_DEVICE": device} | variables | ({} if REAL else {"LD_LIBRARY_PATH": str(self.libraries)})
        return self.start(*arguments, environment=environment)

    def run_on(self, device, path, *arguments, code=None, **variables):
        """A run's last event. `code`: of its end; None: any."""
        process = self.start_on(device, "run", path, "--output", "json", *arguments, **variables)
        self.out, self.errors = process.communicate(timeout=600)
        self.code = process.returncode
        self.assertIn(code, (None, self.code), self.errors)
        return json.loads(self.out.splitlines()[-1]) if self.out else None

    def logs(self, run="digits"):
        return "".join(path.read_text() for path in sorted((self.state / "runs" / run / "logs").iterdir()))

    def same(self, one, other, tolerance):
        self.assertEqual((one["phase"], one["step"]), ("Succeeded", other["step"]), self.errors)
        self.assertAlmostEqual(one["loss"] / other["loss"], 1, delta=tolerance)

    def test_explain_says_that_members_take_a_gpu(self):
        self.assertIn("computes on a GPU where there is one that can be used, ", self.paceline("explain", self.write(job())).stdout)

    def test_members_share_a_gpu_and_learn_what_they_learn_without(self):
        path = self.write(job(members=4, steps=40))
        without = self.run_on("cpu", path, "--name", "without")
        self.assertNotIn(" GPU ", self.logs("without"))
        self.assertEqual(without["device"], "processors")
        on_gpu = self.run_on("auto", path)
        self.assertRegex(on_gpu["device"], "NVIDIA" if REAL else "^Fake H200$")
        self.assertIn(f'"computes on {on_gpu["device"]}"', self.out)
        self.assertRegex(self.paceline("describe", "digits").stdout, rf"computed on +{on_gpu['device']}\n")
        self.same(on_gpu, without, 1e-4)
        self.assertEqual(self.logs().count(GPU), 4)
        self.assertEqual(self.logs().count("gradients go by way of the hosts' memory: "), 4)
        self.nothing_left()

    @emulated_only
    def test_each_of_several_gpus_has_a_member(self):
        (self.libraries / "libnccl.so.2").unlink()
        self.run_on("cuda", self.write(job(members=4, steps=4)), FAKE_CUDA_DEVICES="4", code=0)
        logs = {path.name.split(".")[0]: path.read_text() for path in (self.state / "runs/digits/logs").iterdir()}
        taken = sorted(re.search(r"on GPU (\d) of 4", text).group(1) for text in logs.values())
        self.assertEqual(taken, list("0123"), logs)
        told = [member["gpu"] for member in self.status("digits")["members"]]
        self.assertEqual([gpu["index"] for gpu in told], [0, 1, 2, 3])
        for member, gpu in zip(self.status("digits")["members"], told):
            self.assertIn(f", {gpu['uuid']}\n", logs[member["pod"]])
        self.assertNotIn("the same device", "".join(logs.values()))
        lacking = r"(?m)^.*warning .*gradients go by way of the hosts' memory: NCCL can't be used: .*; install NCCL"
        for text in logs.values():
            self.assertEqual(len(re.findall(lacking, text)), 1, text)

    # The NCCL of the tests is one process's, and refuses the ids of another.
    @emulated_only
    def test_gradients_go_by_way_of_the_hosts_when_nccl_does_not_open(self):
        path = self.write(job(members=2, steps=40))
        without = self.run_on("cpu", path, "--name", "without")
        self.same(self.run_on("cuda", path, FAKE_CUDA_DEVICES="2"), without, 1e-4)
        self.assertEqual(self.code, 0, self.errors)
        way = r"warning +\S+: gradients go by way of the hosts' memory: "
        self.assertRegex(self.logs(), way + r"rank 1 \(worker-0\) could not open what sends them from device to device; its log says why\n")
        self.assertRegex(self.logs(), way + r"NCCL's communicator could not be opened: rank 1: ncclCommInitRankScalable: .*; "
                         r"NCCL_DEBUG=INFO in the members' environment makes NCCL say more in their logs, ")

    @emulated_only
    def test_passes_without_room_end_the_job_before_the_first_step_with_advice(self):
        # 1.5 million weights, 24 MiB with gradient and Adam's state; a sample's activations are some 100 KiB.
        text = job(members=1, steps=1).replace("[32]", "[20000]").replace("testFraction: 0.2", "testFraction: 0.6")
        text = text.replace("type: SGD, learningRate: 0.1, momentum: 0.9", "type: Adam, learningRate: 0.001")

        def run(name, batch, **rows):
            sizes = f"evaluation: {{everySteps: 100, batchSize: {rows['evaluation']}}}"
            if "micro" in rows:
                sizes += f"\n    microBatchSize: {rows['micro']}"
            path = self.write(text.replace("evaluation: {everySteps: 100}", sizes).replace("globalBatchSize: 64", f"globalBatchSize: {batch}"))
            self.run_on("cuda", path, "--name", name, FAKE_CUDA_MEMORY_MIB="48")
            return self.code, self.errors + self.logs(name)

        def told(name, field, what, *args, **rows):
            code, said = run(name, *args, **rows)
            self.assertEqual(code, 1, said)
            found = re.search(rf"{what} finds no room [^\n]* about (\d+) may fit; set training\.{field} to what fits", said)
            self.assertTrue(found, said)
            return int(found.group(1)) * 9 // 10

        fits = told("many", "evaluation.batchSize", "evaluation", 8, evaluation=1000)
        self.assertLess(1, fits)
        code, said = run("fits", 8, evaluation=fits)
        self.assertEqual(code, 0, said)
        code, said = run("more", 8, evaluation=fits * 11 // 9)
        self.assertEqual(code, 1, said)
        self.assertRegex(said, "finds? no room")
        micro = told("both", "microBatchSize", "training", 256, evaluation=1000)
        fits = told("micro", "evaluation.batchSize", "evaluation", 256, evaluation=1000, micro=micro)
        code, said = run("small-passes", 256, evaluation=fits, micro=micro)
        self.assertEqual(code, 0, said)
        self.run_on("cuda", self.write(job(members=1, steps=20)), "--name", "small")
        self.assertRegex(self.logs("small"), r"memory of the device: 1 MiB for weights, gradient and optimizer state, 1 MiB for activations, "
                         r".*\d+ of 1024 MiB are left; \d+ MiB were free when this member began")

    @emulated_only
    def test_bf16_weights_are_not_counted_twice(self):
        # 5.25 million weights: 50 MiB with gradient and bf16 weights, 60 if those were counted twice.
        text = job(members=1, steps=1)
        for was, now in (("[32]", "[70000]"), (", momentum: 0.9", ""), (", testFraction: 0.2", ""), ("    evaluation: {everySteps: 100}\n", ""),
                         ("globalBatchSize: 64", "globalBatchSize: 4\n    precision: BF16")):
            self.assertIn(was, text)
            text = text.replace(was, now)
        self.run_on("cuda", self.write(text), FAKE_CUDA_MEMORY_MIB="60", code=0)
        self.assertRegex(self.logs(), r"11 MiB for weights as bf16")

    @emulated_only
    def test_a_state_that_finds_no_room_is_told_by_name_with_what_helps(self):
        wide = job(members=1, steps=20).replace("everySteps: 100", "everySteps: 100, batchSize: 1").replace("type: SGD, learningRate: 0.1, momentum: 0.9",
                                                                                                            "type: AdamW, learningRate: 0.1")
        self.run_on("cuda", self.write(wide.replace("[32]", "[1000000]")), code=1)
        self.assertRegex(self.errors, r"weights, gradient and optimizer state find no room in the device's memory \(out of memory\): they need 1145 MiB "
                         r"\(287 MiB for weights, 287 MiB for the gradient, 573 MiB for AdamW's state\), and \d+ of its 1024 MiB are free for them, "
                         r"beside 32 for the driver; 1024 MiB were free when this member began; take a GPU with more memory, "
                         r"a smaller model or an optimizer with less state \(SGD without momentum keeps none: 573 MiB\)")
        self.assertRegex(self.logs(), r"error +chief-0: fails: weights, gradient and optimizer state find no room")
        self.assertNotIn("batchSize", self.errors)
        self.run_on("cuda", self.write(wide.replace("[32]", "[1000000, 300]")), "--name", "larger")
        self.assertRegex(self.errors, r"weights find no room in the device's memory \(out of memory\): they need 1\d\d\d MiB")
        self.assertNotIn("atchSize", self.errors)

    def test_without_cuda_graphs_a_run_is_the_same_bits(self):
        for members in (1, 2):
            path = self.write(job(members=members, steps=20))
            # A driver that refuses them is the emulated one.
            ways = {"with": {}, "off": {"PACELINE_CUDA_GRAPHS": "off"}} | ({} if REAL else {"refused": {"FAKE_CUDA_REFUSES": "cuStreamBeginCapture_v2"}})
            runs = {way: self.run_on("cuda", path, "--name", f"{way}-{members}", **variables) for way, variables in ways.items()}
            weights = {way: pathlib.Path(run["model"]).read_bytes() for way, run in runs.items()}
            for way in ways:
                self.assertEqual((runs[way]["phase"], runs[way]["loss"], runs[way]["testAccuracy"]),
                                 ("Succeeded", runs["with"]["loss"], runs["with"]["testAccuracy"]), way)
                self.assertEqual(weights[way], weights["with"], way)
                logs = self.logs(f"{way}-{members}")
                self.assertEqual(logs.count("; kernels are launched one by one (PACELINE_CUDA_GRAPHS=off)"), members if way == "off" else 0, logs)
                refused = logs.count("passes are not kept as CUDA graphs, and each of their kernels is launched: cuStreamBeginCapture: ")
                self.assertEqual(refused, members if way == "refused" else 0, logs)

    @emulated_only
    def test_why_gradients_go_by_way_of_the_host_is_said(self):
        path = self.write(job(members=2, steps=20))
        self.run_on("cuda", path)
        shared = "by way of the hosts' memory: rank 0 and rank 1 have the same device, and each needs one of its own"
        self.assertEqual(self.logs().count(shared), 2)
        (self.libraries / "libnccl.so.2").unlink()
        (self.libraries / "libnvidia-ml.so.1").unlink()
        self.run_on("cuda", path, "--name", "without")
        self.assertEqual(self.logs("without").count(shared), 2)
        self.assertNotIn("NCCL", self.logs("without"))  # which would not help
        self.assertRegex(self.logs("without"), "nothing tells how the GPU is: ")
        self.assertEqual(set(self.status("without")["members"][0]["gpu"]),
                         {"name", "index", "uuid", "computeMs", "updateMs"})
        self.run_on("cuda", self.write(job(members=1, steps=20)), "--name", "alone")
        self.assertNotIn("gradients go", self.logs("alone"))
        on_processors = "{replicas: 1, template: {spec: {containers: [{name: trainer, env: [{name: PACELINE_DEVICE, value: cpu}]}]}}}"
        self.run_on("cuda", self.write(job(members=2, steps=20).replace("{replicas: 1}", on_processors)), "--name", "mixed", code=0)
        self.assertEqual(self.logs("mixed").count("gradients go by way of the hosts' memory, and the optimizer's steps are the hosts': "
                                                  "rank 1 computes on processors\n"), 1)

    def test_members_tell_how_their_gpu_is(self):
        self.run_on("cuda", self.write(job(members=2, steps=20)))
        for member in self.status("digits")["members"]:
            self.assertGreater(member["gpu"]["smClockMhz"], 0)
            self.assertLess(member["gpu"]["powerWatts"], 2000)
            self.assertLess(0, member["gpu"]["memoryUsedMib"])
            self.assertLess(member["gpu"]["memoryUsedMib"], member["gpu"]["memoryTotalMib"])
            self.assertGreater(member["gpu"]["computeMs"], member["gpu"]["updateMs"])
            self.assertGreater(member["gpu"]["updateMs"], 0)
        self.run_on("cpu", self.write(job(members=2, steps=20)), "--name", "without")
        self.assertNotIn("gpu", self.status("without")["members"][0])

    def test_an_evaluator_tells_how_its_gpu_is(self):
        # On processors those who train: then the GPU in the status is the evaluator's.
        on_processors = "chief: {template: {spec: {containers: [{name: trainer, env: [{name: PACELINE_DEVICE, value: cpu}]}]}}}\n    evaluator: {}"
        text = job(members=1, steps=ENDLESS, extra="  checkpoint: {everySteps: 100000}\n").replace("chief: {}", on_processors)
        process = self.start_on("cuda", "run", self.write(text))
        self.training("digits", 2)
        members = until(lambda: [m for m in self.status("digits")["members"] if m.get("gpu")], 60 * SLOW, "the evaluator's GPU")
        self.assertEqual([m["role"] for m in members], ["evaluator"])
        gpu = members[0]["gpu"]
        name = gpu["name"]
        self.assertGreater(gpu["smClockMhz"], 0)
        self.assertNotIn("computeMs", gpu)  # it takes no steps
        until(lambda: self.status("digits").get("device") == f"processors (1 member), {name} (1 member)", 20 * SLOW, "where they compute")
        for words in (("top", "digits", "--once"), ("describe", "digits")):
            self.assertRegex(self.paceline(*words).stdout, rf"\n *GPU OF +INDEX +GPU .*\n *evaluator-0 +0 +{name} ")
        process.terminate()
        process.wait(60)

    @emulated_only
    def test_gpu_evidence_is_shown(self):
        process = self.start_on("cuda", "run", self.write(job(members=2, steps=ENDLESS)))
        self.training("digits", 2)
        until(lambda: all({"computeMs", "updateMs"} <= set(m.get("gpu", {})) for m in self.status("digits")["members"]), 20 * SLOW,
              "both tell their times")
        for words in (("top", "digits", "--once"), ("describe", "digits")):
            text = self.paceline(*words).stdout
            self.assertRegex(text, r"GPU OF +INDEX +GPU +UUID +COMPUTE ms +UPDATE ms +LOAD +MEM LOAD +MiB +SM MHz +MEM MHz +HEAT +POWER W "
                                   r"+SLOWED BY +ERRORS")
            self.assertRegex(text, r"worker-0 +0 +Fake H200 +GPU-[0-9a-f-]{36} +\d+\.\d\d +\d+\.\d\d +93 % +41 % +61,234 of 143,771 "
                                   r"+1,755 of 1,980 +3,201 of 3,202 +54 C +612 of 700 +- +2 PCIe replays")
        process.terminate()
        process.wait(60)

    def test_a_run_moves_between_gpu_and_processors_at_a_checkpoint(self):
        whole = self.run_on("cpu", self.write(job(steps=60, extra=CHECKPOINTS)), "--name", "whole")
        for devices in (("cuda", "cpu", "cuda:0"), ("cpu", "cuda", "cpu")):
            name = "-".join(devices).replace(":", "")
            for i, device in enumerate(devices):
                path = self.write(job(steps=20 * (i + 1), extra=CHECKPOINTS))
                last = self.run_on(device, path, *(["--resume", name] if i else ["--name", name]))
                if i:
                    self.assertIn(f"computes on {last['device']}; before it was resumed, on {before}", self.out)
                before = last["device"]
                self.assertEqual(self.code, 0, self.errors)
            self.same(last, whole, 1e-4)

    def test_workers_of_parameter_servers_compute_on_a_gpu(self):
        text = job(members=3, steps=40).replace("{allReduce: {transport: Auto}}", "{type: ParameterServer}")
        path = self.write(text.replace("    worker:", "    ps: {}\n    worker:"))
        without = self.run_on("cpu", path, "--name", "without")
        self.same(self.run_on("auto", path), without, 1e-4)
        self.assertEqual(self.logs().count("on GPU 0 of 1"), 3)
        self.assertEqual(self.logs().count("by way of the host's memory to the parameter servers"), 3)
        self.assertNotIn("to the parameter servers", self.logs("without"))

    # bf16: activations are rounded to 8 bits on the GPU, and on processors the operands of products alone.
    def test_a_gpt_learns_the_same_in_either_precision(self):
        text = self.write("To be, or not to be, that is the question. " * 40, "text.txt")
        for precision, tolerance in (("FP32", 1e-4), ("BF16", 0.02)):
            path = self.write(GPT.format(text=text, precision=precision))
            without = self.run_on("cpu", path, "--name", f"without-{precision.lower()}")
            on_gpu = self.run_on("cuda", path, "--name", f"gpu-{precision.lower()}")
            self.same(on_gpu, without, tolerance)
            self.assertLess(on_gpu["loss"], 5.3)   # ln 256 is 5.55

    def test_sizes_that_tensor_cores_do_badly_with_are_warned_of_once(self):
        text = self.write("To be, or not to be, that is the question. " * 40, "text.txt")
        said = "training.model.vocabularySize is 257 (the next is 264): products in bf16 are slower on a GPU"
        for name, device, precision, times in (("bf16", "cuda", "BF16", 1), ("fp32", "cuda", "FP32", 0), ("cpu", "cpu", "BF16", 0)):
            path = self.write(GPT.format(text=text, precision=precision).replace("vocabularySize: 256", "vocabularySize: 257"))
            self.assertEqual(self.run_on(device, path, "--name", name)["phase"], "Succeeded", self.errors)
            self.assertEqual(self.logs(name).count(said), times, self.logs(name))

    # Letters that say the next, at every position (25 and 16 have no common divisor): the likeliest is far from the others, in bf16, too.
    def test_a_gpt_goes_on_with_the_same_text(self):
        line = "abcdefghijklmnopqrstuvwx\n"
        text = self.write(line * 100, "text.txt")
        for precision in ("FP32", "BF16"):
            name = f"gpt-{precision.lower()}"
            path = self.write(GPT.format(text=text, precision=precision).replace("steps: 20\n", "steps: 400\n"))
            self.assertEqual(self.run_on("cpu", path, "--name", name)["phase"], "Succeeded", self.errors)
            for device, words in (("cpu", r"on processors with \d+ thread"), ("cuda", r"on GPU 0 of 1: "), ("auto", r"on GPU 0 of 1: ")):
                process = self.start_on(device, "generate", name, "--prompt", "def", "--tokens", "36", "--temperature", "0")
                out, errors = self.outcome(0, process, 600)
                self.assertEqual(out, line[3:] + line[:17] + "\n", errors)
                self.assertRegex(errors, "computes " + words)

    @emulated_only
    def test_generate_refuses_a_gpu_that_is_not_there(self):
        text = self.write("To be, or not to be. " * 40, "text.txt")
        self.run_on("cpu", self.write(GPT.format(text=text, precision="FP32")))
        _, errors = self.outcome(2, self.start_on("cuda:7", "generate"), 600)
        self.assertRegex(errors, "PACELINE_DEVICE asks for a GPU: GPU 7 is asked for, and this process sees 1 GPU")

    @emulated_only
    def test_generate_says_what_helps_where_a_gpu_has_no_room(self):
        text = self.write("To be, or not to be. " * 40, "text.txt")
        self.run_on("cpu", self.write(GPT.format(text=text, precision="FP32").replace("width: 16", "width: 512")))
        out, errors = self.outcome(4, self.start_on("cuda", "generate", FAKE_CUDA_MEMORY_MIB="10"), 600)
        self.assertEqual(out, "")
        self.assertRegex(errors, r"out of memory: the weights need 1\d MiB, and GPU 0 .* are free; PACELINE_DEVICE=cpu computes on the processors")

    @unittest.skipUnless(os.path.isdir("/usr/share/common-licenses"), "Debian's licence texts are not here")
    def test_the_example_of_gpus_trains_on_data_made_as_it_says(self):
        example = (ROOT / "examples/gpt2-gpu.yaml").read_text()
        commands = re.findall(r"^#   (.*iconv.*)$", example, re.MULTILINE)
        subprocess.run(["bash", "-ec", "\n".join(commands)], cwd=self.folder, check=True, timeout=60)
        os.truncate(self.folder / "data/val.bin", 2 * 257)
        small = example.replace("/paceline/", f"{self.folder}/")
        for field, number in dict(layers=1, heads=2, width=16, blockSize=16, vocabularySize=256, globalBatchSize=8, microBatchSize=1, warmupSteps=5,
                                  steps=20, learningRate=0.01).items():
            small, count = re.subn(rf"\b{field}: [0-9.]+", f"{field}: {number}", small)
            self.assertEqual(count, 1, field)
        small, count = re.subn(r"everySteps: \d+", "everySteps: 10", small)
        self.assertEqual(count, 2)
        last = self.run_on("cuda", self.write(small))
        self.assertEqual((last["phase"], last["step"]), ("Succeeded", 20), self.errors)
        self.assertLess(last["loss"], 5.3)   # ln 256 is 5.55
        self.assertEqual(self.logs("gpt2").count("on GPU 0 of 1"), 4)
        self.assertTrue(any((self.folder / "checkpoints").iterdir()))

    @emulated_only
    def test_a_gpu_that_is_asked_for_must_be_there(self):
        path = self.write(job(steps=20))
        self.run_on("cuda:7", path, code=1)
        self.assertRegex(self.errors, "PACELINE_DEVICE asks for a GPU: GPU 7 is asked for, and this process sees 1 GPU, numbered from 0; "
                                      "mend that, or set PACELINE_DEVICE=cpu")
        (self.libraries / "libcuda.so.1").unlink()
        (self.libraries / "libcuda.so.1").write_text("no library")
        self.run_on("cuda", path, "--name", "broken", code=1)
        self.assertRegex(self.errors, "PACELINE_DEVICE asks for a GPU: no NVIDIA driver can be used: .*; install driver 580 or newer; mend that")

    @emulated_only
    def test_a_gpu_that_cannot_be_used_is_warned_of(self):
        (self.libraries / "libcublasLt.so.13").unlink()
        for name in ("missing", "broken"):
            if name == "broken":
                (self.libraries / "libcublasLt.so.13").write_text("no library")
            last = self.run_on("auto", self.write(job(steps=20)), "--name", name)
            self.assertEqual(last["phase"], "Succeeded", self.errors)
            self.assertRegex(self.logs(name), r"warning .*there is a GPU that can't be used: NVIDIA's matrix products can't be used: .*"
                                              r"install the CUDA 13 toolkit, or the wheel nvidia-cublas with its folder in LD_LIBRARY_PATH")
            self.assertRegex(self.logs(name), r"computes for default/digits on processors with \d+ threads?")


if __name__ == "__main__":
    unittest_report.main("gpu_runs_test")
