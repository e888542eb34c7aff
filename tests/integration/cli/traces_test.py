"""Recoveries as traces: `paceline run` sends them to a receiver of OTLP over HTTP."""

import os
import signal

import unittest_report
from cli_support import ENDLESS, SLOW, CliCase, job, member_of, until
from trace_receiver import TraceReceiver


class TracesTest(CliCase):
    def start_ring(self, **variables):
        text = job(members=3, steps=ENDLESS).replace("replicas: 2}", "replicas: 2, restartPolicy: OnFailure}")
        return self.start("run", self.write(text), environment=variables)

    def lose_worker(self):
        """Kills worker-0, once all train, and waits until another is in its place."""
        before = self.training("digits", 3)
        killed = member_of(before, "worker-0")["pid"]
        os.kill(killed, signal.SIGKILL)

        def again():
            status = self.status("digits")
            member = member_of(status, "worker-0") if status and status["step"] > before["step"] else {}
            return member.get("pid") not in (None, killed) and member["rank"] >= 0
        until(again, 60 * SLOW, "another worker-0 trains")

    @staticmethod
    def told(receiver):
        """The traces, once they tell that worker-0 left and came: in one where the view between the two took no step, else in one each, in any order."""
        traces = receiver.traces()
        told = {key for key in ("left", "came") for trace in traces if "worker-0" in trace.attributes[f"paceline.view.{key}"]}
        return traces if told == {"left", "came"} else None

    def test_a_lost_member_and_its_successor_are_traced(self):
        with TraceReceiver() as receiver:
            process = self.start_ring(OTEL_EXPORTER_OTLP_ENDPOINT=receiver.url, OTEL_EXPORTER_OTLP_HEADERS="key=a%20b")
            self.lose_worker()
            traces = until(lambda: self.told(receiver), 60 * SLOW, "who left and who came")
            self.stop(process)
        for trace in traces:
            self.assertEqual(trace.attributes["paceline.job"], "digits")
            self.assertEqual(len(trace.ids), len(trace.parts) + 1)
            self.assertEqual({part["parentSpanId"] for part in trace.parts}, {trace.root["spanId"]})
            self.assertEqual(len(trace.parts), 4 if trace.root["name"] == "recovery" else 3)
        self.assertIn("recovery", [trace.root["name"] for trace in traces])
        self.assertEqual({request.headers["key"] for request in receiver.requests}, {"a b"})

    def test_a_run_trains_on_where_nobody_takes_its_traces(self):
        with TraceReceiver(status=503) as receiver:
            process = self.start_ring(OTEL_EXPORTER_OTLP_ENDPOINT=receiver.url)
            self.lose_worker()
            self.stop(process)
        self.assertGreater(len(receiver.requests), 0)

    def test_wrong_variables_cost_the_traces_alone(self):
        process = self.start_ring(OTEL_EXPORTER_OTLP_ENDPOINT="collector:4318")
        self.training("digits", 3)
        process.send_signal(signal.SIGINT)
        output, _ = self.outcome(130, process, 20 * SLOW)
        self.assertIn("OTEL_EXPORTER_OTLP_ENDPOINT", output)


if __name__ == "__main__":
    unittest_report.main("traces_test")
