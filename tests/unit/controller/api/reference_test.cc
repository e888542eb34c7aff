// docs/trainingjob.md holds the table of fields as the code has it. After a change of the fields:
//   PACELINE_UPDATE_DOCS=1 build/release/tests/controller_api_test --gtest_filter='Reference.*'

#include "controller/api/reference.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "tests/support/paths.h"
#include "tests/unit/controller/api/job_text.h"

namespace paceline::api {
namespace {

constexpr std::string_view kBegin = "<!-- fields: begin -->\n", kEnd = "<!-- fields: end -->\n";
const std::string kPage = source_path("docs/trainingjob.md");

TEST(Reference, PageHoldsTheFieldsAsTheyAre) {
  std::string page = read_whole(kPage);
  const std::size_t begin = page.find(kBegin), end = page.find(kEnd);
  ASSERT_NE(begin, std::string::npos);
  ASSERT_NE(end, std::string::npos);
  const std::size_t start = begin + kBegin.size();
  if (std::getenv("PACELINE_UPDATE_DOCS") != nullptr) {
    page.replace(start, end - start, field_reference());
    std::ofstream(kPage, std::ios::binary) << page;
    return;
  }
  EXPECT_EQ(page.substr(start, end - start), field_reference());
}

TEST(Reference, FindsFieldsWithOneHome) {
  EXPECT_EQ(path_of_field("learningRate"), "spec.training.optimizer.learningRate");
  EXPECT_EQ(path_of_field("LEARNINGRATE"), "spec.training.optimizer.learningRate");
  EXPECT_EQ(path_of_field("everySteps"), "") << "of evaluation, and of checkpoint";
  EXPECT_EQ(path_of_field("nowhere"), "");
}

TEST(Reference, EveryFieldSaysWhatItMeans) {
  EXPECT_EQ(field_reference().find("|  |\n"), std::string::npos);
}

}  // namespace
}  // namespace paceline::api
