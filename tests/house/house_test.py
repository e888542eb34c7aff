"""The house checks find what they are for: each is run on a small tree with one breach, and on one without."""

import pathlib
import subprocess
import tempfile
import unittest

import house


def check(name, files):
    with tempfile.TemporaryDirectory() as folder:
        for path, text in files.items():
            target = pathlib.Path(folder) / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
        subprocess.run(["git", "init", "-q", folder], check=True)
        tree = house.House(folder)
        getattr(tree, name)()
        return tree.breaches


class HouseTest(unittest.TestCase):
    def test_include_that_the_table_forbids(self):
        self.assertEqual(len(check("includes", {"runtime/data/a.cc": '#include "controller/api/types.h"\n'})), 1)
        self.assertEqual(len(check("includes", {"base/a.cc": '#include "runtime/data/dataset.h"\n'})), 1)
        self.assertEqual(len(check("includes", {"base/a.cc": '#include "b.h"\n'})), 1)

    def test_include_that_the_table_allows(self):
        self.assertEqual(check("includes", {"runtime/data/a.cc": '#include "base/rng.h"\n#include <map>\n'}), [])

    def test_folder_without_a_row(self):
        self.assertEqual(len(check("includes", {"runtime/unknown/a.cc": "\n"})), 1)

    def test_impure_include_in_a_pure_file(self):
        breaches = check("purity", {"controller/plan/a.cc": "#include <thread>\nauto t = std::chrono::steady_clock::now();\n"})
        self.assertEqual(sum(b.startswith("controller/plan/a.cc:") for b in breaches), 2)

    def test_function_of_two_files_of_a_library(self):
        one = "namespace {\n\nint f(int x) {\n}\n\n}  // namespace\n"
        self.assertEqual(len(check("unnamed", {"base/a.cc": one, "base/b.cc": one})), 2)
        self.assertEqual(check("unnamed", {"base/a.cc": one, "base/b.cc": "int f(long x) {\n", "cli/c.cc": one}), [])

    def test_source_that_nothing_builds(self):
        self.assertEqual(len(check("registered", {"base/CMakeLists.txt": "x(SOURCES b.cc)", "base/a.cc": ""})), 1)
        self.assertEqual(check("registered", {"base/CMakeLists.txt": "x(SOURCES a.cc)", "base/a.cc": ""}), [])
        self.assertEqual(check("registered", {"cmake/X.cmake": "x(${CMAKE_SOURCE_DIR}/cmake/a.cc)", "cmake/a.cc": ""}), [])

    def test_file_that_is_too_long(self):
        self.assertEqual(len(check("sizes", {"base/a.cc": "\n" * 900})), 1)

    def test_pure_source_without_a_test(self):
        pure = {"controller/plan/a.h": "", "controller/plan/a.cc": '#include "controller/plan/a.h"\n', "cli/b.cc": '#include "controller/plan/a.h"\n'}
        self.assertEqual(len(check("mirror", pure)), 1)
        self.assertEqual(check("mirror", pure | {"tests/unit/controller/plan/a_test.cc": '#include "controller/plan/a.h"\n'}), [])

    def test_dead_link(self):
        self.assertEqual(len(check("links", {"docs/a.md": "[b](b.md) [c](../README.md#x)"})), 2)
        self.assertEqual(len(check("links", {"docs/a.md": "`base/b.h`"})), 1)
        self.assertEqual(check("links", {"docs/a.md": "`base/b.h` `b.h`", "base/b.h": ""}), [])
        self.assertEqual(check("links", {"docs/a.md": "[b](b.md)", "docs/b.md": "[w](https://example.org/x)"}), [])

    def test_line_of_a_document_that_is_too_long(self):
        long = "a word " * 30 + "\n"
        self.assertEqual(len(check("prose", {"docs/a.md": long, "README.md": "| " + 2 * long, "tests/a/README.md": long})), 3)
        self.assertEqual(check("prose", {"docs/a.md": "```\n" + long + "```\n| " + long, "tests/a.md": long}), [])

    def test_document_that_names_a_test_that_is_not_there(self):
        document = {"docs/a.md": "`ATest.B`, `test_c`, `other.Thing` and `Other.thing`"}
        self.assertEqual(len(check("named_tests", document)), 2)
        self.assertEqual(check("named_tests", document | {"tests/a_test.cc": "TEST_F(ATest, B) {", "tests/b.py": "    def test_c(self):"}), [])

    def test_comment_that_opens_without_a_subject(self):
        self.assertEqual(len(check("language", {"base/a.h": "// What it is.\nint a;\n  // Of all.\n", "base/b.py": "# Where it is.\n"})), 3)
        self.assertEqual(check("language", {"base/a.h": "// The file says\n// what it is.\nint a;  // Of all.\n// Whatsoever.\n"}), [])

    def test_name_that_does_not_say_the_behaviour(self):
        names = {"tests/a_test.cc": "TEST(A, WhatIsLeft) {\nTYPED_TEST(A, NobodyComes) {\n", "tests/a.py": "    def test_2_who_leaves(self):\n"}
        self.assertEqual(len(check("language", names)), 3)
        self.assertEqual(check("language", {"tests/a_test.cc": "TEST_F(A, Whatsoever) {\nTEST(What, IsLeft) {\n"}), [])

    def test_expectation_of_a_sentence(self):
        self.assertEqual(len(check("language", {"tests/a_test.cc": 'HasSubstr("this is a "\n    "sentence")\n'})), 1)
        self.assertEqual(check("language", {"tests/a_test.cc": 'HasSubstr("two or three")\nHasSubstr(name)\n'}), [])

    def test_breaches_from_before_may_only_become_fewer(self):
        comment, known = "// What it is.\n", "base: a.h 1/0/0  b.h 0/0/2\n"
        self.assertEqual(check("language", {"base/a.h": comment, house.KNOWN: known}), [])
        self.assertEqual(len(check("language", {"base/a.h": f"{comment}\n{comment}", house.KNOWN: known})), 2)
        self.assertEqual(len(check("language", {"base/b.h": comment, house.KNOWN: known})), 1)

    def test_code_that_searches_in_a_message(self):
        def breaches(line):
            return len(check("messages", {"base/a.cc": line + "\n"}))

        for line in ('if (status.message().find("x") != npos)', "const auto at = job.status.message.find(name);", "evidence.ends_with(told)",
                     'absl::StrContains(compiled.message(), "x")', 'std::strstr(error.c_str(), "x")'):
            self.assertEqual(breaches(line), 1, line)
        for line in (r"message.substr(0, message.find('\n'));", "text.find(x);", "// message.find(x)", 'EndsWith(name, ".txt")'):
            self.assertEqual(breaches(line), 0, line)
        self.assertEqual(check("messages", {"tests/unit/a_test.cc": 'message.find("x")'}), [])

    def test_banned_words(self):
        self.assertEqual(len(check("words", {"base/a.cc": "// TO" + "DO: later\n"})), 1)


if __name__ == "__main__":
    unittest.main()
