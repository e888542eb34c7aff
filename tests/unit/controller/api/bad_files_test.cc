// Every file of bad/ is refused with exactly the diagnostics that it expects. They stand in the file's first
// lines, as
//   # expect 12:9 error: spec.training.steps: out of range: found 0; allowed: ...
// or, for files that cannot hold a comment, in NAME.expected beside it, without the "# expect ".

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "base/text.h"
#include "tests/support/paths.h"
#include "tests/unit/controller/api/job_text.h"

namespace paceline::api {
namespace {

const std::string kBadFolder = source_path("tests/unit/controller/api/bad");
constexpr std::string_view kMark = "# expect ";

std::vector<std::string> bad_files() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kBadFolder)) {
    if (entry.path().extension() != ".expected") names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string expected_of(const std::string& name, const std::string& text) {
  const std::string beside = str_cat(kBadFolder, "/", name, ".expected");
  if (std::filesystem::exists(beside)) return read_whole(beside);
  std::string expected;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line) && line.starts_with(kMark);) {
    expected += str_cat(line.substr(kMark.size()), "\n");
  }
  return expected;
}

std::string shown(const std::vector<Diagnostic>& diagnostics) {
  std::string text;
  for (const Diagnostic& d : diagnostics) {
    const char* severity = d.severity == Severity::kError ? "error" : "warning";
    text += str_cat(d.line, ":", d.column, " ", severity, ": ", message(d), "\n");
  }
  return text;
}

class BadFile : public ::testing::TestWithParam<std::string> {};

TEST_P(BadFile, IsRefusedWithItsDiagnostics) {
  const std::string text = read_whole(str_cat(kBadFolder, "/", GetParam()));
  const Parsed parsed = parse_training_job(text, GetParam());
  EXPECT_FALSE(parsed.job.has_value());
  EXPECT_TRUE(has_errors(parsed.diagnostics));
  EXPECT_EQ(shown(parsed.diagnostics), expected_of(GetParam(), text));
  for (const Diagnostic& d : parsed.diagnostics) EXPECT_EQ(d.file, GetParam());
}

INSTANTIATE_TEST_SUITE_P(All, BadFile, ::testing::ValuesIn(bad_files()), [](const auto& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
});

TEST(BadFiles, AreMany) {
  EXPECT_GE(bad_files().size(), 180u);
}

}  // namespace
}  // namespace paceline::api
