"""benchmarks/recorded_trace.py: recordings of runs, and what a rule's calls come to."""

import json
import unittest

import recorded_trace as traces
import unittest_report


def label(member="worker-1", from_step=100):
    return dict(fault="reader", member=member, fromStep=from_step)


def call(step, member, slow=True, finding=""):
    return dict(step=step, member=member, finding=finding, slow=slow)


class Tenths:
    """Ten steps a second."""
    def at(self, step):
        return step / 10


class RecordedTraceTest(unittest.TestCase):
    def test_recording_has_label_and_steps(self):
        step = dict(type="memberStep", member="worker-1", step=7, inputMs=1.23456, computeMs=0, stepMs=5, leftOutMs=0.5)
        lines = [dict(type="view", generation=1, members=["worker-1"]), dict(type="step", step=1, loss=2, timeSeconds=0.5), step,
                 dict(type="step", step=2, loss=2, timeSeconds=0.55), dict(type="evaluation", step=2), dict(type="step", step=3, loss=2, timeSeconds=0.61)]
        data = traces.pack(label(), "".join(json.dumps(line) + "\n" for line in lines) + '{"type":"memb')
        self.assertEqual(data, traces.pack(label(), "".join(json.dumps(line) + "\n" for line in lines)))   # a line that is torn is left out
        told, text = traces.unpack(data)
        self.assertEqual(told, label())
        self.assertEqual([json.loads(line) for line in text.splitlines()],
                         [lines[0], dict(type="step", step=1, timeSeconds=0.5),
                          dict(type="memberStep", member="worker-1", step=7, inputMs=1.235, leftOutMs=0.5), dict(type="step", step=3, timeSeconds=0.61)])
        with self.assertRaises(ValueError):
            traces.unpack(traces.gzip.compress(b'{"type":"view"}\n'))

    def test_clock_goes_evenly_between_recorded_steps(self):
        clock = traces.Clock('{"type":"step","step":10,"timeSeconds":1}\n{"type":"memberStep","step":11}\n{"type":"step","step":20,"timeSeconds":3}\n')
        self.assertEqual([clock.at(step) for step in (1, 10, 15, 20, 30)], [1, 1, 2, 3, 3])

    def test_excess_is_of_own_times_while_the_fault_lasts(self):
        def line(member, step, compute):
            return json.dumps(dict(type="memberStep", member=member, step=step, computeMs=compute, waitMs=99), separators=(",", ":")) + "\n"
        text = "".join(line(f"worker-{member}", step, 30 if member == 1 and step >= 100 else 10) for step in (50, 100, 101) for member in range(3))
        self.assertEqual(traces.excess(label(), text), 3)
        self.assertIsNone(traces.excess(label(None, None), text))

    def test_slow_member_counts_from_the_faults_begin(self):
        found = traces.judge(label(), [call(119, "worker-1")], Tenths())
        self.assertEqual((found["steps"], found["seconds"], found["falseAlarms"]), (20, 2.0, 0))
        early = traces.judge(label(), [call(50, "worker-1"), call(60, "worker-1", slow=False)], Tenths())
        self.assertEqual((early["steps"], early["falseAlarms"]), (None, 1))

    def test_member_that_is_called_slow_beside_another_is_not_alone(self):
        calls = [call(110, "worker-0"), call(110, "worker-1"), call(130, "worker-0", slow=False), call(140, "worker-0")]
        found = traces.judge(label(), calls, Tenths())
        self.assertEqual((found["steps"], found["falseAlarms"]), (31, 2))

    def test_each_call_of_a_clean_run_is_a_false_alarm(self):
        found = traces.judge(label(None, None), [call(10, "worker-0"), call(20, "worker-0", slow=False), call(30, "worker-0")], Tenths())
        self.assertEqual((found["steps"], found["falseAlarms"]), (None, 2))

    def test_other_findings_call_nobody_slow(self):
        found = traces.judge(label(None, None), [call(10, "", finding="AllSlow"), call(20, "", slow=False, finding="AllSlow")], Tenths())
        self.assertEqual((found["falseAlarms"], found["others"]), (0, {"AllSlow": 1}))


if __name__ == "__main__":
    unittest_report.main("benchmarks_recorded_trace_test")
