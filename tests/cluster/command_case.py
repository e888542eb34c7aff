"""The paceline command against the program's cluster: run to its end, or followed line by line."""

import os
import pathlib
import re
import subprocess
import tempfile
import threading

from machine import cluster

PACELINE = pathlib.Path(os.environ["PACELINE_BINARY_DIR"]) / "bin/paceline"
COMMAND_SECONDS = 60


class CommandCase:
    """Beside ClusterCase, or what derives from it. The command's home is a folder of the test's own."""

    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory(prefix="paceline-cluster-cli-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def environment(self):
        return dict(os.environ, **cluster.client_environment(self.layout), HOME=str(self.folder))

    def run_paceline(self, *arguments, text=None, program=PACELINE, ns=True):
        command = [program, *map(str, arguments), *(["-n", self.namespace] if ns else [])]
        return subprocess.run(command, input=text, capture_output=True, text=True, timeout=COMMAND_SECONDS, env=self.environment(),
                              stdin=subprocess.DEVNULL if text is None else None)

    def paceline(self, *arguments, **keywords):
        result = self.run_paceline(*arguments, **keywords)
        self.assertEqual(result.returncode, 0, f"paceline {' '.join(map(str, arguments))}: {result.stderr}{result.stdout}")
        return result.stdout

    def refused(self, code, words, *arguments, **keywords):
        result = self.run_paceline(*arguments, **keywords)
        self.assertEqual((result.returncode, result.stdout), (code, ""), result.stderr)
        self.assertRegex(result.stderr, words)

    def start(self, *arguments):
        """A command that follows; it is ended with the test."""
        process = subprocess.Popen([PACELINE, *arguments, "-n", self.namespace], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, env=self.environment())
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def read_until(self, process, words):
        heard = ""
        late = threading.Timer(COMMAND_SECONDS, process.kill)   # its output ends then
        late.start()
        try:
            for line in process.stdout:
                heard += line
                if re.search(words, line):
                    return heard
        finally:
            late.cancel()
        self.fail(f"no {words!r} within {COMMAND_SECONDS} s in:\n{heard}{process.stderr.read()}")
