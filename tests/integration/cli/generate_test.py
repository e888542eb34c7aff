"""`paceline generate` as users see it: what small gpts have learnt, from a run, a checkpoint or a model; and what it refuses."""

import array
import json
import os
import pty
import re
import shutil
import signal
import subprocess
import unittest.mock

import unittest_report
from cli_support import ENDLESS, PACELINE, ROOT, SLOW, CliCase, job, until

LINE = "abcdefghijklmnopqrstuvwx\n"   # each letter says the next, at every position: 25 and 48 have no common divisor
GPT = """
apiVersion: paceline.dev/v1alpha1
kind: TrainingJob
metadata: {{name: {name}}}
spec:
  replicaSpecs: {{worker: {{}}}}
  training:
    model: {{type: gpt, layers: 1, heads: 2, width: 32, blockSize: 48, vocabularySize: {vocabulary}}}
    data: {data}
    optimizer: {{type: AdamW, learningRate: 0.01, clipNorm: 1}}
    precision: {precision}
    globalBatchSize: 8
    steps: {steps}
    seed: {seed}
  checkpoint: {{everySteps: 50}}
"""


class GenerateTest(CliCase):
    def train(self, name="letters", precision="FP32", steps=100, seed=1):
        text = self.write(LINE * 200, "letters.txt")
        path = self.write(GPT.format(name=name, vocabulary=256, data=f"{{format: text, train: {{inputs: {text}}}}}", precision=precision, steps=steps,
                                     seed=seed), f"{name}.yaml")
        self.ends(0, "run", path, "--output", "plain", timeout=120 * SLOW)
        return self.state / "runs" / name

    def train_on_numbers(self):
        (self.folder / "numbers.bin").write_bytes(array.array("H", list(range(300, 325)) * 200).tobytes())
        data = f"{{format: tokens, train: {{inputs: {self.folder}/numbers.bin}}}}"
        path = self.write(GPT.format(name="numbers", vocabulary=512, data=data, precision="FP32", steps=100, seed=1), "numbers.yaml")
        self.ends(0, "run", path, "--output", "plain", timeout=120 * SLOW)

    def generate(self, *arguments, stdin=None):
        result = self.ends(0, "generate", *arguments, stdin=stdin, timeout=60 * SLOW)
        self.errors = result.stderr
        return result.stdout

    def refused(self, code, words, *arguments, stdin=None):
        result = self.paceline("generate", *arguments, stdin=stdin, timeout=60 * SLOW)
        self.assertEqual((result.returncode, result.stdout), (code, ""), result.stderr)
        self.assertRegex(result.stderr, words)

    def test_text_goes_on_as_it_was_learnt(self):
        run = self.train()
        goes_on = LINE[2:] + LINE * 4
        self.assertEqual(self.generate("--prompt", "c", "--tokens", len(goes_on) - 1, "--temperature", "0"), goes_on)
        # No word of a GPU that is not there.
        self.assertRegex(self.errors, rf"goes on from {run}/model/model\.safetensors \(step 100\), computes (on processors with 1 thread|on GPU .*)\n$")
        # More than a block, where the window slides; from a file, from standard input, from token numbers, and from nothing.
        long = self.write(LINE * 4 + "abc", "prompt.txt")
        self.assertEqual(self.generate("letters", "--prompt-file", long, "--tokens", "75", "--temperature", "0"), LINE * 7 + "abc\n")
        self.assertEqual(self.generate("--prompt-file", "-", "--tokens", "3", "--temperature", "0", stdin="pq"), "pqrst\n")
        self.assertTrue(self.generate("--prompt", "-", "--tokens", "1", "--temperature", "0", stdin="pq").startswith("-"))
        self.assertEqual(self.generate("--prompt-tokens", "97,98", "--tokens", "2", "--top-k", "1"), "abcd\n")
        self.assertEqual(self.generate("--tokens", "5", "--temperature", "0"), "abcde\n")

    def test_a_terminal_is_told_that_it_is_read(self):
        self.train(steps=50)
        terminal, end = pty.openpty()
        self.addCleanup(os.close, terminal)
        process = self.start("generate", "--prompt-file", "-", "--tokens", "1", stdin=end)
        os.close(end)
        self.assertIn("reads the prompt from the terminal, until ctrl-D", process.stderr.readline())
        os.write(terminal, b"abc\n\x04")
        self.assertTrue(self.outcome(0, process, 60 * SLOW)[0].startswith("abc\n"))

    def test_a_seed_makes_the_same_and_samples_differ(self):
        self.train()
        hot = ("--prompt", "abc", "--tokens", "40", "--temperature", "4", "--json")
        first = json.loads(self.generate(*hot, "--samples", "2"))
        self.assertEqual(json.loads(self.generate(*hot))["samples"], first["samples"][:1])
        self.assertNotEqual(first["samples"][0], first["samples"][1])
        self.assertNotEqual(json.loads(self.generate(*hot, "--seed", "2"))["samples"], first["samples"][:1])
        self.assertEqual({key: first[key] for key in ("run", "job", "step", "seed", "temperature", "topK", "topP", "prompt", "promptTokens")},
                         dict(run="letters", job="letters", step=100, seed=1, temperature=4.0, topK=0, topP=1.0, prompt="abc", promptTokens=[97, 98, 99]))
        for sample in first["samples"]:
            self.assertEqual(len(sample["tokens"]), 40)
            self.assertEqual(bytes(sample["tokens"]).decode(errors="replace"), sample["text"])
        cold = ("--prompt", "a", "--tokens", "3", "--temperature", "0")
        self.assertEqual(self.generate(*cold, "--samples", "2"), "--- 1 of 2 ---\nabcd\n--- 2 of 2 ---\nabcd\n")
        self.assertEqual(self.generate("--prompt", "a", "--tokens", "3", "--temperature", "9", "--top-p", "0.01"), "abcd\n")

    def test_threads_are_chosen_and_make_the_same(self):
        self.train(steps=50)
        hot = ("--prompt", "abc", "--tokens", "40", "--temperature", "4", "--json")
        made = {}
        for arguments, threads in (((), "1 thread"), (("--threads", "1"), "1 thread"), (("--threads", "3"), "3 threads")):
            words = f"on processors with {threads}"
            with unittest.mock.patch.dict(os.environ, PACELINE_DEVICE="cpu"):
                made[arguments] = json.loads(self.generate(*hot, *arguments))
            self.assertTrue(self.errors.endswith(f"computes {words}\n"), self.errors)
            self.assertEqual(made[arguments].pop("device"), words)
        self.assertEqual(len({json.dumps(one) for one in made.values()}), 1)

    def test_token_files_are_numbers(self):
        self.train_on_numbers()
        cold = ("--tokens", "4", "--temperature", "0")
        self.assertEqual(self.generate("--prompt-tokens", "300,301", *cold), "300,301,302,303,304,305\n")
        self.assertEqual(self.generate("--prompt-file", "-", *cold, stdin="322\n323"), "322,323,324,300,301,302\n")
        self.assertEqual(json.loads(self.generate("--prompt-tokens", "310", *cold, "--json"))["samples"], [{"tokens": [311, 312, 313, 314]}])
        self.refused(2, "there is nothing to go on from: the job's data are token numbers")
        self.refused(2, "--prompt is text, and the job's data are token numbers", "--prompt", "300")
        self.refused(2, 'token 1: "512" is no whole number from 0 to 511', "--prompt-tokens", "300,512")

    def test_a_checkpoint_or_a_model_of_its_own(self):
        run = self.train()
        cold = ("--prompt", "ab", "--tokens", "2", "--temperature", "0")
        for arguments, path in ((("--checkpoint", run / "checkpoints"), "checkpoints/step-000000100"),
                                (("--checkpoint", f"{run}/checkpoints/step-000000050/"), "checkpoints/step-000000050"),
                                (("--checkpoint", run), "checkpoints/step-000000100"),
                                (("--model", f"{run}/"), "model/model.safetensors"),
                                (("--model", run / "model"), "model/model.safetensors"),
                                (("--model", run / "model/model.safetensors"), "model/model.safetensors")):
            self.assertEqual(self.generate(*arguments, *cold)[:2], "ab")
            self.assertIn(f"goes on from {run}/{path} (step ", self.errors)
        shutil.move(run / "model/model.safetensors", self.folder / "moved.safetensors")
        self.assertEqual(self.generate("--model", self.folder / "moved.safetensors", "--job", run / "job.yaml", *cold), "abcd\n")
        self.refused(2, "--model: there is no job.yaml of a run in .*say whose it is by --job FILE", "--model", self.folder / "moved.safetensors")
        # Without its model, a run's newest checkpoint.
        self.assertEqual(self.generate("letters", *cold), "abcd\n")
        self.assertIn("checkpoints/step-000000100 (step 100)", self.errors)
        state = run / "checkpoints/step-000000100/state.safetensors"
        with state.open("r+b") as file:
            file.seek(1000)
            file.write(b"damage")
        self.generate("letters", *cold)
        self.assertRegex(self.errors, r"a damaged checkpoint is passed over: step-000000100: state\.safetensors: .*\n.*step-000000050 \(step 50\)")
        self.refused(4, "step-000000100: state.safetensors: its checksum isn't the manifest's", "--checkpoint", state.parent)
        shutil.rmtree(run / "checkpoints/step-000000050")
        self.refused(4, "every checkpoint in .* is damaged", "letters")
        shutil.rmtree(run / "checkpoints")
        self.refused(3, r'run "letters" has no model and no checkpoint in \S+ \(step 100\)$', "letters")

    def test_missing_right_to_read_is_named(self):
        run = self.train(steps=50)
        step = run / "checkpoints/step-000000050"
        os.chmod(self.folder, 0o755)
        program = shutil.copy(PACELINE, self.folder)

        def nobody():
            if os.getuid() == 0:   # who may read all
                os.setgid(61184)
                os.setuid(61184)

        def refused(words, closed, *arguments):
            mode = closed.stat().st_mode
            closed.chmod(0)
            try:
                result = self.paceline("generate", *arguments, timeout=60 * SLOW, preexec_fn=nobody, program=program)
            finally:
                closed.chmod(mode)
            self.assertEqual((result.returncode, result.stdout), (4, ""), result.stderr)
            self.assertRegex(result.stderr, words)
        refused("look at .*/letters/job.yaml: Permission denied", run, "--checkpoint", run)
        refused("look at .*/letters/model: Permission denied", run, "--model", run / "model")
        refused("look at .*/step-000000050: Permission denied", step.parent, "--checkpoint", step)
        for closed in (step, step / "manifest.json"):
            refused("step-000000050 can't be read: .*Permission denied; --model .*/letters/model takes the run's model, which may be older",
                    closed, "letters")
        refused("checkpoints: Permission denied; --model ", step.parent, "letters")
        (run / "model/model.safetensors").unlink()
        refused("step-000000050 can't be read: .*Permission denied$", step / "state.safetensors", "letters")

    def test_a_damaged_checkpoint_does_not_hide_an_older_model(self):
        run = self.train(steps=50)
        model = (run / "model/model.safetensors").read_bytes()
        path = self.folder / "letters.yaml"
        path.write_text(path.read_text().replace("steps: 50", "steps: 100"))
        self.ends(0, "run", path, "--resume", "letters", "--output", "plain", timeout=120 * SLOW)
        newest = (run / "model/model.safetensors").read_bytes()
        (run / "model/model.safetensors").write_bytes(model)
        self.generate("letters", "--tokens", "1")
        self.assertIn("checkpoints/step-000000100 (step 100)", self.errors)
        with (run / "checkpoints/step-000000100/state.safetensors").open("r+b") as file:
            file.seek(1000)
            file.write(b"damage")
        self.generate("letters", "--tokens", "1")
        self.assertRegex(self.errors, r"a damaged checkpoint is passed over: step-000000100: .*\n.*goes on from \S+/model/model\.safetensors \(step 50\)")
        (run / "checkpoints/step-000000100/manifest.json").write_text("torn")
        for words in (r"step-000000100: manifest: not a JSON", r"every checkpoint in \S+ is damaged; .*; step-000000100: manifest: not a JSON"):
            self.generate("letters", "--tokens", "1")
            self.assertRegex(self.errors, rf"a damaged checkpoint is passed over: {words}.*\n.*goes on from \S+/model/model\.safetensors \(step 50\)")
            shutil.rmtree(run / "checkpoints/step-000000050", ignore_errors=True)
        (run / "model/model.safetensors").write_bytes(newest)
        self.generate("letters", "--tokens", "1")
        self.assertNotIn("passed over", self.errors, "the model is not older")

    def train_on(self, **fields):
        """Goes on until the test ends."""
        text = self.write(LINE * 200, "letters.txt")
        spec = GPT.format(name="letters", vocabulary=256, data=f"{{format: text, train: {{inputs: {text}}}}}", precision="FP32", steps=ENDLESS, seed=1)
        for found, instead in fields.items():
            self.assertIn(f"{found}: ", spec)
            spec = re.sub(rf"{found}: .*", instead, spec)
        process = self.start("run", self.write(spec), "--output", "plain")
        self.training("letters", 1)
        return process

    def test_a_run_that_goes_on(self):
        self.train_on()
        found = until(lambda: self.status("letters")["checkpoint"], 60 * SLOW, "there is a checkpoint")
        self.assertIn("/checkpoints/step-", found)
        self.assertEqual(len(self.generate("--prompt", "abc", "--tokens", "5", "--temperature", "0")), 9)
        self.assertRegex(self.errors, r"goes on from \S+/letters/checkpoints/step-\d+ \(step \d+\)")

    def test_a_run_that_has_saved_nothing(self):
        process = self.train_on(checkpoint="")
        self.refused(3, r"no checkpoint in \S+ yet \(step \d+\); its job has no spec\.checkpoint, and has saved nothing before its end: "
                     r"`checkpoint: \{everySteps: 250\}` below spec makes checkpoints", "letters")
        process.kill()   # what is stopped in order saves
        process.wait(20 * SLOW)
        self.refused(3, r"no checkpoint in \S+ \(step \d+\); its job has no spec\.checkpoint: `checkpoint: \{everySteps: 250\}` below", "letters")

    def test_a_run_whose_first_checkpoint_is_not_made_yet(self):
        self.train_on(checkpoint=f"checkpoint: {{everySteps: {ENDLESS}}}")
        self.refused(3, r"no checkpoint in \S+ yet \(step \d+\); one is made when spec\.checkpoint says so, and the model at the end", "letters")

    def test_the_example_makes_checkpoints(self):
        self.assertRegex((ROOT / "examples/gpt-char.yaml").read_text(), r"\n  checkpoint: \{everySteps: \d+\}")

    def test_wrong_argument_is_named(self):
        self.refused(3, "no runs in ")
        run = self.train(steps=50)
        other = self.train(name="other", steps=50, seed=2)
        empty = self.folder / "step-000000001"
        empty.mkdir()
        for code, words, *arguments in (
                (3, 'no run named "nobody"', "nobody"),
                (2, "the prompt is empty", "--prompt", ""),
                (2, "--model: it is empty", "--model", ""), (2, "--checkpoint: it is empty", "--checkpoint", ""), (2, "RUN: it is empty", ""),
                (2, "--prompt-file: it is empty", "letters", "--prompt-file", ""),
                (2, "one of --prompt, --prompt-file and --prompt-tokens", "--prompt", "a", "--prompt-tokens", "1"),
                (2, 'token 0: "256" is no whole number from 0 to 255', "--prompt-tokens", "256"),
                (3, "no-such-file", "--prompt-file", self.folder / "no-such-file"),
                (2, '"-1" is no number from 0 to', "--temperature=-1"), (2, '"hot" is no number', "--temperature", "hot"),
                (2, '"00.5" is no number from 0 to .*: it begins with a zero', "--temperature", "00.5"),
                (2, '"01" is no number above 0 and up to 1: it begins with a zero', "--top-p", "01"),
                (2, "the prompt's token 1: nothing stands before its comma", "--prompt-tokens", "1,,2"),
                (2, '"2" is no number above 0 and up to 1', "--top-p", "2"), (2, '"0" is no number above 0', "--top-p", "0"),
                (2, '--top-k: "-3" is no whole number from 0 to ', "--top-k=-3"), (2, '"1.5" is no whole number from 0 to ', "--top-k", "1.5"),
                (2, '--tokens: "010" is no whole number from 1 to 100000000: it begins with a zero', "--tokens", "010"),
                (2, '"0x10" is no whole number from ', "--top-k", "0x10"), (2, '"00" is no whole number from ', "--seed", "00"),
                (2, '"0" is no whole number from 1 to ', "--tokens", "0"), (2, '--samples: "0" is no', "--samples", "0"),
                (2, '--threads: "0" is no whole number from 1 to ', "--threads", "0"),
                (2, "no option --max-tokens; did you mean --tokens", "--max-tokens", "5"),
                (2, "no option --num-samples; did you mean --samples", "--num-samples=5"),
                (2, '"x" is no whole number', "--seed", "x"),
                (2, "no option --promt; did you mean --prompt", "--promt", "a"),
                (2, "--checkpoint or --model, not both", "--checkpoint", run / "checkpoints", "--model", run / "model"),
                (2, 'RUN "letters" says whose weights, and so does --model', "letters", "--model", run / "model"),
                (2, "--job says whose a --checkpoint or a --model is", "--job", run / "job.yaml"),
                (3, "--checkpoint: no such file: ", "--checkpoint", self.folder / "nowhere/step-000000001"),
                (3, "--checkpoint: no such file: ", "--checkpoint", run / "checkpoints/step-000000099", "--job", run / "job.yaml"),
                (3, "no complete checkpoint ", "--checkpoint", empty, "--job", run / "job.yaml"),
                (3, r"--model: no such file: .*nobody; of a run's newest weights give its name alone", "--model", run / "nobody"),
                (2, "step-000000050 was made with another model", "--checkpoint", run / "checkpoints", "--job", other / "job.yaml")):
            self.refused(code, words, *arguments)
        larger = self.write((run / "job.yaml").read_text().replace("vocabularySize: 256", "vocabularySize: 300"), "larger.yaml")
        self.refused(2, r"tensor 'tokens.weight' is \{256, 32\}, the job's model has \{300, 32\}: it is of another model",
                     "--model", run / "model", "--job", larger)
        path = self.write(job(members=1, steps=20))
        self.assertEqual(self.paceline("run", path).returncode, 0)
        self.refused(3, "--checkpoint: no such file: ", "--checkpoint", self.folder / "letters")   # with a job.yaml beside it
        self.refused(2, 'run "digits": its model is of type mlp; only what a gpt has learnt can be gone on with', "digits")
        # Without a name, the newest of a gpt; where there is none, it is said which was looked at.
        self.assertEqual(json.loads(self.generate("--tokens", "1", "--json"))["run"], "other")
        shutil.rmtree(run)
        shutil.rmtree(other)
        self.refused(3, 'no run in .* is of a gpt, nor is the newest, "digits"; only what a gpt')
        for name, value, words in (("DEVICE", "gpu", "auto, cpu, cuda, or cuda:N"), ("CUDA_GRAPHS", "no", "on or off")):
            process = self.start("generate", "letters", environment={f"PACELINE_{name}": value})
            self.assertRegex(self.outcome(2, process, 60 * SLOW)[1], f'PACELINE_{name} is "{value}"; it must be {words}')

    def test_it_ends_when_it_is_told_to_and_when_nobody_reads(self):
        self.train(steps=50)
        process = self.start("generate", "--tokens", "100000000")
        self.assertNotEqual(process.stdout.read(5), "", "it comes as it is made")
        process.send_signal(signal.SIGINT)
        self.assertTrue(self.outcome(130, process, 20 * SLOW)[0].endswith("\n"))
        process = self.start("generate", "--tokens", "100000000")
        self.assertNotEqual(process.stdout.read(5), "")
        process.stdout.close()
        self.assertEqual(process.wait(20 * SLOW), 0)
        for where, words in ((">/dev/full", "the output could not be written whole"), (">&-", "standard output is closed")):
            for json_too in ((), ("--json",)):
                command = [PACELINE, "--state-dir", self.state, "generate", "--tokens", "100", *json_too]
                lost = subprocess.run(["sh", "-c", f'exec "$@" {where}', "sh", *command], capture_output=True, text=True, timeout=60 * SLOW)
                self.assertEqual(lost.returncode, 4)
                self.assertIn(words, lost.stderr)

    def test_bf16_jobs_compute_in_bf16(self):
        self.train(precision="BF16")
        self.assertEqual(self.generate("--prompt", "c", "--tokens", "60", "--temperature", "0"), LINE[2:] + LINE + LINE[:13] + "\n")

    def test_it_does_not_begin_with_libraries_of_gpus(self):
        needed = subprocess.run(["ldd", PACELINE], capture_output=True, text=True, check=True).stdout
        self.assertIn("libc.so", needed)
        self.assertNotRegex(needed, r"libcuda|cublas|nccl|nvidia")


if __name__ == "__main__":
    unittest_report.main("generate_test")
