"""unittest programs that report like GoogleTest's, so that run_tests.py counts their single cases.

A test file ends with `unittest_report.main("name_of_the_ctest_entry")`. Where GTEST_OUTPUT says json:FOLDER/, a report is written there.
"""

import json
import os
import pathlib
import sys
import unittest


class Result(unittest.TextTestResult):
    def __init__(self, *arguments, **keywords):
        super().__init__(*arguments, **keywords)
        self.cases = []

    def addSuccess(self, test):
        super().addSuccess(test)
        self.cases.append({"name": test._testMethodName, "status": "RUN", "result": "COMPLETED"})

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.cases.append({"name": f"{getattr(test, '_testMethodName', test)} ({reason})", "status": "RUN", "result": "SKIPPED"})

    def addFailure(self, test, error):
        super().addFailure(test, error)
        self.cases.append({"name": str(test), "status": "RUN", "result": "COMPLETED", "failures": [{}]})

    def addError(self, test, error):
        super().addError(test, error)
        self.cases.append({"name": str(test), "status": "RUN", "result": "COMPLETED", "failures": [{}]})


def main(name):
    program = unittest.main(exit=False, testRunner=unittest.TextTestRunner(resultclass=Result, verbosity=2))
    output = os.environ.get("GTEST_OUTPUT", "")
    if output.startswith("json:"):
        report = {"testsuites": [{"name": name, "testsuite": program.result.cases}]}
        (pathlib.Path(output[5:]) / f"{name}.json").write_text(json.dumps(report))
    sys.exit(0 if program.result.wasSuccessful() else 1)
