"""benchmarks/iperf.py: what is read of iperf3's report."""

import unittest

import iperf
import unittest_report


class IperfTest(unittest.TestCase):
    def test_rate_is_what_the_server_received(self):
        end = {"sum_sent": {"bits_per_second": 9e9}, "sum_received": {"bits_per_second": 8e9}}
        self.assertEqual(iperf.rate({"start": {}, "intervals": [], "end": end}), 1e9)

    def test_an_error_of_iperf3_is_told(self):
        with self.assertRaisesRegex(ValueError, "iperf3: unable to connect to server"):
            iperf.rate({"start": {}, "intervals": [], "end": {}, "error": "unable to connect to server"})


if __name__ == "__main__":
    unittest_report.main("benchmarks_iperf_test")
