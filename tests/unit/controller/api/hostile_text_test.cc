// Texts made to exhaust a parser, too large to keep as files: each is refused with one diagnostic that names
// the limit, or is harmless.

#include <gtest/gtest.h>

#include "base/text.h"
#include "tests/unit/controller/api/job_text.h"

namespace paceline::api {
namespace {

std::string repeat(std::string_view piece, std::size_t times) {
  std::string text;
  text.reserve(piece.size() * times);
  for (std::size_t i = 0; i < times; ++i) text += piece;
  return text;
}

struct HostileCase {
  const char* name;
  std::string text;
  const char* problem;  // part of the only diagnostic
};

class HostileText : public ::testing::TestWithParam<HostileCase> {};

TEST_P(HostileText, IsRefusedWithOneDiagnostic) {
  const Parsed parsed = parse_training_job(GetParam().text, "job.yaml");
  EXPECT_FALSE(parsed.job.has_value());
  ASSERT_EQ(parsed.diagnostics.size(), 1u);
  EXPECT_NE(message(parsed.diagnostics[0]).find(GetParam().problem), std::string::npos)
      << message(parsed.diagnostics[0]);
  EXPECT_LT(render_diagnostics(parsed.diagnostics, GetParam().text).size(), 2000u);
}

constexpr std::size_t kMega = 1 << 20;
constexpr std::size_t kLine = kMaxLineBytes - 16;

INSTANTIATE_TEST_SUITE_P(
    All, HostileText,
    ::testing::Values(
        HostileCase{"TenMegabytes", repeat("# x\n", 10 * kMega / 4), "the file is too large"},
        HostileCase{"TenMegabytesOfBrackets", repeat("[", 10 * kMega), "the file is too large"},
        HostileCase{"OneByteTooMany", repeat("\n", kMaxFileBytes + 1), "the file is too large"},
        HostileCase{"OneMegabyteOfNewlines", repeat("\n", kMaxFileBytes), "holds no TrainingJob"},
        HostileCase{"OneMegabyteOfBracketLines", repeat("[\n", kMega / 2), "too many"},
        HostileCase{"OneMegabyteOfBraceLines", repeat("{a:\n", kMega / 4), "too many"},
        HostileCase{"LongLine", repeat("x", kMaxLineBytes + 1), "the line is too long"},
        HostileCase{"LineOfBrackets", repeat("[", kLine), "too many"},
        HostileCase{"LineOfBraces", repeat("{", kLine), "too many"},
        HostileCase{"BracketsUpToTheLimit", repeat("[\n", kMaxFlowMarks), "nested too deeply"},
        HostileCase{"LineOfDashes", repeat("- ", kLine / 2), "nested too deeply"},
        HostileCase{"LineOfQuestions", repeat("? ", kLine / 2), "nested too deeply"},
        HostileCase{"LineOfAnchors", repeat("&a ", kLine / 3), "not YAML"},
        HostileCase{"LineOfTags", repeat("!a ", kLine / 3), "not YAML"},
        HostileCase{"LineOfColons", repeat(":", kLine) + " x", "not YAML"},
        HostileCase{"ManyItems", "[\n" + repeat("x,\n", kMaxNodes + 10) + "]\n", "the file holds too much"},
        HostileCase{"ManyItemsInOneLine", "[" + repeat("x,", kMaxNodes + 10) + "]\n",
                    "the file holds too much"},
        HostileCase{"ManyDocuments", repeat("---\n", kMega / 4), "the file holds too much"},
        HostileCase{"OpenQuoteToTheEnd", "a: \"" + repeat("x\n", kMega / 4), "a quoted text without an end"}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(HostileText, AliasesUpToTheLimitAreFine) {
  const std::string aliased =
      with(with(kGoodJob, "chief: {replicas: 1}", "chief: &role {replicas: 1}"), "{replicas: 3}", "*role");
  EXPECT_EQ(member_count(parse_good(aliased)), 2);
}

TEST(HostileText, AliasesDoNotMakeATemplateOfManyMegabytes) {
  const std::string pod = str_cat("{metadata: {annotations: {a: &a \"", std::string(50'000, 'x'),
                                  "\", b: [*a, *a, *a]}}, spec: {containers: [{image: i}]}}");
  const Parsed parsed = parse_training_job(
      with(kGoodJob, "{replicas: 3}", str_cat("{replicas: 3, template: ", pod, "}")), "job.yaml");
  ASSERT_EQ(parsed.diagnostics.size(), 1u);
  EXPECT_EQ(message(parsed.diagnostics[0]),
            "spec.replicaSpecs.worker.template: too large; allowed: at most 61440 bytes");
}

TEST(HostileText, ListsTheFirstHundredErrorsAndCountsTheRest) {
  std::string text(kGoodJob);
  for (int i = 0; i < 300; ++i) text += str_cat("zz", i, ": 1\n");
  const Parsed parsed = parse_training_job(text, "job.yaml");
  ASSERT_EQ(parsed.diagnostics.size(), kMaxDiagnostics + 1);
  EXPECT_EQ(message(parsed.diagnostics.back()), "and 200 more like these");
}

}  // namespace
}  // namespace paceline::api
