"""What every Cluster keeps (tests/unit/controller/cluster/contract_test.cc), kept by KubeCluster on a real API server with real kubelets."""

import os
import pathlib
import re
import subprocess

import unittest_report
from cluster_case import ClusterCase, needs_cluster
from machine import cluster

PROGRAM = pathlib.Path(os.environ["PACELINE_BINARY_DIR"]) / "tests/controller_cluster_test"
SECONDS = 600


@needs_cluster
class ContractTest(ClusterCase):
    def test_a_real_cluster_keeps_the_contract(self):
        self.kubectl("wait", "--namespace=default", "--for=create", "serviceaccount/default", "--timeout=30s")
        environment = cluster.client_environment(self.layout)
        result = subprocess.run([PROGRAM, "--gtest_filter=*/RealServer"], capture_output=True, text=True, timeout=SECONDS, stdin=subprocess.DEVNULL,
                                env=dict(os.environ, **environment, PACELINE_CONTRACT_KUBECONFIG=environment["KUBECONFIG"]))
        story = self.run_kubectl("--namespace=default", "get", "pods,events", "-o", "wide").stdout
        self.assertEqual(result.returncode, 0, f"{result.stdout[-8000:]}{result.stderr[-2000:]}{story}")
        passed = re.search(r"PASSED +\] (\d+) tests", result.stdout)
        self.assertGreaterEqual(int(passed[1]), 15, result.stdout[-2000:])


if __name__ == "__main__":
    unittest_report.main("cluster_contract_test")
