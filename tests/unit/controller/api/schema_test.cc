// crds/trainingjobs.yaml is what the fields and the rules make it. After a change of them:
//   PACELINE_UPDATE_DOCS=1 build/release/tests/controller_api_test --gtest_filter='CustomResource.*'

#include "controller/api/schema.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "base/text.h"
#include "controller/api/types.h"
#include "tests/support/paths.h"
#include "tests/unit/controller/api/job_text.h"

namespace paceline::api {
namespace {

const std::string kFile = source_path("crds/trainingjobs.yaml");

TEST(CustomResource, FileHoldsTheFieldsAsTheyAre) {
  if (std::getenv("PACELINE_UPDATE_DOCS") != nullptr) {
    std::ofstream(kFile, std::ios::binary) << custom_resource_definition();
    return;
  }
  EXPECT_EQ(read_whole(kFile), custom_resource_definition());
}

TEST(CustomResource, NamesTheConditionsThatAreOurs) {
  const std::string definition = custom_resource_definition();
  std::string types;
  for (const char* type : kConditionTypes) types += str_cat(types.empty() ? "" : ", ", type);
  EXPECT_NE(definition.find(types + "; as of any object."), std::string::npos) << types;
}

// kubectl keeps what it applied in an annotation, and all annotations together have 256 KiB.
TEST(CustomResource, IsBelow120KB) {
  EXPECT_LT(custom_resource_definition().size(), 120'000u);
}

}  // namespace
}  // namespace paceline::api
