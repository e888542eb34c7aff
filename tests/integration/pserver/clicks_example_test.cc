// What examples/clicks-ps.yaml and docs/parameter-servers.md say of the best AUC there is.

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/file.h"
#include "controller/api/parse.h"
#include "controller/api/training_spec.h"
#include "runtime/data/clicks.h"
#include "tests/support/paths.h"

namespace paceline {
namespace {

constexpr std::int64_t kDraws = std::int64_t{1} << 19;

std::string read(const std::string& path) {
  const auto text = read_file(source_path(path), 1 << 20);
  EXPECT_TRUE(text.ok()) << text.status();
  return text.value_or("");
}

// The number behind `words` in `text`; 0: it lacks them.
double number_after(const std::string& text, const std::string& words) {
  const std::size_t at = text.find(words);
  return at == std::string::npos ? 0 : std::strtod(text.c_str() + at + words.size(), nullptr);
}

TEST(ClicksExample, TheBestAucIsTheOneThatIsSaid) {
  const std::string text = read("examples/clicks-ps.yaml");
  const auto parsed = api::parse_training_job(text, "clicks-ps.yaml");
  ASSERT_TRUE(parsed.job.has_value());
  const auto spec = api::make_training_spec(*parsed.job, {});
  ASSERT_TRUE(spec.ok()) << spec.status();
  const auto clicks = data::ClickLog::make(spec->data().clicks());
  ASSERT_TRUE(clicks.ok()) << clicks.status();
  const data::ExpectedAuc best = (*clicks)->bayes_auc(kDraws);
  EXPECT_NEAR(number_after(text, "with an AUC of "), best.value, 0.001);
  EXPECT_NEAR(number_after(read("docs/parameter-servers.md"), "Bayes-optimal AUC is "), best.value, 0.001);
  const double target = spec->target().value();
  EXPECT_LT(target, best.value);
  EXPECT_GT(target, best.value - 0.025) << "near it";
}

}  // namespace
}  // namespace paceline
