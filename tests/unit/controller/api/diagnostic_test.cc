#include "controller/api/diagnostic.h"

#include <gtest/gtest.h>

#include "tests/unit/controller/api/job_text.h"

namespace paceline::api {
namespace {

TEST(RenderDiagnostics, LooksAsCompilersDo) {
  const std::string text = with(with(kGoodJob, "learningRate", "learningRat"), "steps: 100", "steps: 0");
  EXPECT_EQ(
      render_diagnostics(parse_training_job(text, "job.yaml").diagnostics, text),
      R"(job.yaml:15:28: error: spec.training.optimizer.learningRat: unknown field; did you mean "learningRate"?
   15 |     optimizer: {type: SGD, learningRat: 0.1}
      |                            ^
job.yaml:17:12: error: spec.training.steps: out of range: found 0; allowed: 1 to 1000000000000
   17 |     steps: 0
      |            ^
2 errors
)");
}

TEST(RenderDiagnostics, NothingForNothing) {
  EXPECT_EQ(render_diagnostics({}, "a: 1\n"), "");
}

TEST(RenderDiagnostics, CountsErrorsAndWarnings) {
  Diagnostic error{.file = "f", .line = 1, .column = 1, .problem = "wrong"}, warning = error;
  warning.severity = Severity::kWarning;
  EXPECT_TRUE(render_diagnostics({error}, "x").ends_with("\n1 error\n"));
  EXPECT_TRUE(render_diagnostics({warning}, "x").ends_with("\n1 warning\n"));
  EXPECT_TRUE(render_diagnostics({error, error, warning}, "x").ends_with("\n2 errors, 1 warning\n"));
  EXPECT_TRUE(has_errors({warning, error}));
  EXPECT_FALSE(has_errors({warning}));
}

TEST(RenderDiagnostics, CaretStandsUnderItsCharacter) {
  Diagnostic d{.file = "f", .line = 1, .column = 5, .problem = "wrong"};
  EXPECT_EQ(render_diagnostics({d}, "\xc3\xa9\xc3\xa9x\n"),
            "f:1:5: error: wrong\n    1 | ééx\n      |   ^\n1 error\n");
  d.column = 3;
  EXPECT_EQ(render_diagnostics({d}, "\t\tx\r\n"),
            "f:1:3: error: wrong\n    1 | \t\tx\n      | \t\t^\n1 error\n");
}

TEST(RenderDiagnostics, LongLinesAreCutAroundTheColumn) {
  const std::string text = std::string(5000, 'a') + "X" + std::string(5000, 'b');
  const std::string out =
      render_diagnostics({{.file = "f", .line = 1, .column = 5001, .problem = "wrong"}}, text);
  EXPECT_LT(out.size(), 500u);
  EXPECT_NE(out.find("aaaX"), std::string::npos);
}

TEST(RenderDiagnostics, NothingReachesTheTerminalRaw) {
  const std::string text = "a: \x1b[31m\xff\xe2\x80\xae\n";  // the last turns the text's direction
  const std::string out =
      render_diagnostics({{.file = "f", .line = 1, .column = 4, .problem = "wrong \x1b[0m"}}, text);
  EXPECT_EQ(out.find('\x1b'), std::string::npos);
  EXPECT_EQ(out.find('\xe2'), std::string::npos);
  EXPECT_EQ(out.find('\xff'), std::string::npos);
}

TEST(RenderDiagnostics, PlacesOutsideTheTextShowNoLine) {
  EXPECT_EQ(render_diagnostics({{.file = "f", .line = 9, .column = 9, .problem = "wrong"}}, "a\n"),
            "f:9:9: error: wrong\n1 error\n");
  EXPECT_EQ(render_diagnostics({{.file = "f", .line = 1, .column = 99, .problem = "wrong"}}, "a\n"),
            "f:1:99: error: wrong\n    1 | a\n      |  ^\n1 error\n");
}

}  // namespace
}  // namespace paceline::api
