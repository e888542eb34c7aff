// Property: whatever is done to a valid file, parsing gives either a job, which prints and parses back, or
// errors at places in the text.

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/rng.h"
#include "base/text.h"
#include "controller/api/print.h"
#include "controller/api/training_spec.h"
#include "tests/support/paths.h"
#include "tests/unit/controller/api/job_text.h"

namespace paceline::api {
namespace {

constexpr int kRounds = 600;  // per seed

std::vector<std::string> seeds_of_mutation() {
  std::vector<std::string> texts{std::string(kGoodJob)};
  for (const char* name : {"fashion-allreduce", "digits-allreduce", "gpt-char"}) {
    texts.push_back(read_whole(str_cat(source_path("examples/"), name, ".yaml")));
  }
  return texts;
}

// Removes, repeats, or overwrites a piece, or puts a piece of YAML's syntax somewhere.
void mutate(std::string& text, Rng& rng) {
  static constexpr std::string_view kPieces[] = {
      "{",    "}",    "[",    "]",        ": ",          "\n",   "  ",  "- ",    "&a ",
      "*a",   "\"",   "'",    "#",        "|",           ">",    "? ",  "!!str", "---\n",
      "\t",   "\xff", "\0",   "\xc3\xa9", "1e400",       "-1",   "nan", "null",  ", ",
      "true", "~",    "<<: ", "type",     "replicas: 2", "\r\n", "%",   "@",     "\\"};
  const std::size_t at = rng.below(text.size() + 1);
  const std::size_t length = std::min<std::size_t>(rng.below(24), text.size() - at);
  switch (rng.below(4)) {
    case 0:
      text.erase(at, length);
      break;
    case 1:
      text.insert(at, text.substr(at, length));
      break;
    case 2:
      text.insert(rng.below(text.size() + 1), std::string(kPieces[rng.below(std::size(kPieces))]));
      break;
    default:
      text.replace(at, length, kPieces[rng.below(std::size(kPieces))]);
      break;
  }
}

void expect_place_in_text(const Diagnostic& d, const std::vector<std::size_t>& line_lengths,
                          const std::string& text) {
  ASSERT_GE(d.line, 1) << text;
  ASSERT_LE(static_cast<std::size_t>(d.line), line_lengths.size()) << message(d) << "\n" << text;
  ASSERT_GE(d.column, 1) << text;
  ASSERT_LE(static_cast<std::size_t>(d.column), line_lengths[d.line - 1] + 1) << message(d) << "\n" << text;
}

void check(const std::string& text) {
  const Parsed parsed = parse_training_job(text, "job.yaml");
  ASSERT_NE(parsed.job.has_value(), has_errors(parsed.diagnostics)) << text;
  std::vector<std::size_t> line_lengths{0};
  for (const char c : text) {
    if (c == '\n') {
      line_lengths.push_back(0);
    } else {
      ++line_lengths.back();
    }
  }
  for (const Diagnostic& d : parsed.diagnostics) {
    expect_place_in_text(d, line_lengths, text);
    ASSERT_FALSE(d.problem.empty()) << text;
  }
  ASSERT_TRUE(std::is_sorted(parsed.diagnostics.begin(), parsed.diagnostics.end(),
                             [](const Diagnostic& a, const Diagnostic& b) {
                               return a.line != b.line ? a.line < b.line : a.column < b.column;
                             }))
      << text;
  const std::string rendered = render_diagnostics(parsed.diagnostics, text);
  ASSERT_EQ(rendered.empty(), parsed.diagnostics.empty());
  if (!parsed.job) return;
  const std::string printed = print_yaml(*parsed.job);
  const Parsed again = parse_training_job(printed, "printed.yaml");
  ASSERT_TRUE(again.job.has_value()) << render_diagnostics(again.diagnostics, printed) << text;
  ASSERT_EQ(print_yaml(*again.job), printed) << text;
  ASSERT_TRUE(make_training_spec(*parsed.job, {.base_folder = "/jobs"}).ok()) << text;
}

class Mutation : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(Mutation, GivesAJobOrErrorsInTheText) {
  const std::vector<std::string> texts = seeds_of_mutation();
  Rng rng(GetParam(), 1);
  for (int round = 0; round < kRounds && !HasFatalFailure(); ++round) {
    SCOPED_TRACE(str_cat("seed ", GetParam(), ", round ", round));
    std::string text = texts[rng.below(texts.size())];
    const std::uint64_t mutations = 1 + rng.below(4);
    for (std::uint64_t i = 0; i < mutations; ++i) mutate(text, rng);
    check(text);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, Mutation, ::testing::Values(1, 2, 3));

}  // namespace
}  // namespace paceline::api
