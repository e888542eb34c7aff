#include "runtime/pserver/sparse/table_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

namespace paceline::pserver::sparse {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TableSpec good() {
  TableSpec spec;
  spec.name = "ads";
  spec.dim = 8;
  spec.optimizer.learning_rate = 0.1;
  return spec;
}

TEST(TableSpec, InvalidSettingIsRefusedByName) {
  struct Case {
    std::function<void(TableSpec&)> spoil;
    const char* says;
  };
  const Case cases[] = {
      {[](TableSpec& s) { s.name = ""; }, "a table's name is ''"},
      {[](TableSpec& s) { s.name = "a/b"; }, "a table's name is 'a/b'"},
      {[](TableSpec& s) { s.name = std::string(65, 'a'); }, "1 to 64 letters"},
      {[](TableSpec& s) { s.dim = 0; }, "dim is 0 and must be 1 to 4096"},
      {[](TableSpec& s) { s.dim = 4097; }, "dim is 4097"},
      {[](TableSpec& s) { s.optimizer.learning_rate = 0; }, "learningRate is 0"},
      {[](TableSpec& s) { s.optimizer.learning_rate = std::nan(""); }, "learningRate is nan"},
      {[](TableSpec& s) { s.optimizer.momentum = 1; }, "momentum is 1"},
      {[](TableSpec& s) { s.initializer.scale = -1; }, "scale is -1"},
      {[](TableSpec& s) { s.initializer.kind = static_cast<Initializer::Kind>(9); }, "initializer is 9"},
      {[](TableSpec& s) { s.optimizer.kind = static_cast<RowOptimizer::Kind>(4); }, "optimizer is 4"},
      {[](TableSpec& s) { s.bound.evict = static_cast<RowBound::Evict>(2); }, "evict is 2"},
      {[](TableSpec& s) {
         s.optimizer.kind = RowOptimizer::Kind::kAdam;
         s.optimizer.beta2 = 1;
       },
       "beta2 is 1"},
      {[](TableSpec& s) {
         s.optimizer.kind = RowOptimizer::Kind::kAdagrad;
         s.optimizer.epsilon = 1e-60;
       },
       "epsilon is 1e-60"},
      {[](TableSpec& s) {
         s.optimizer.kind = RowOptimizer::Kind::kFtrl;
         s.optimizer.l1 = -0.5;
       },
       "l1 is -0.5"},
      {[](TableSpec& s) {
         s.optimizer.kind = RowOptimizer::Kind::kFtrl;
         s.optimizer.beta = 0;
       },
       "beta is 0"},
  };
  EXPECT_TRUE(check(good()).ok()) << check(good());
  for (const Case& each : cases) {
    TableSpec spec = good();
    each.spoil(spec);
    const absl::Status status = check(spec);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << each.says;
    EXPECT_THAT(std::string(status.message()), HasSubstr(each.says));
  }
}

TEST(TableSpec, NamesAreUniqueAndTablesAreFew) {
  std::vector<TableSpec> specs = {good(), good()};
  EXPECT_THAT(std::string(check(specs).message()), HasSubstr("two sparse tables are named ads"));
  specs[1].name = "users";
  EXPECT_TRUE(check(specs).ok());
  specs.resize(kMaxTables + 1);
  EXPECT_THAT(std::string(check(specs).message()), HasSubstr("at most 64"));
}

TEST(TableSpec, StateHasNames) {
  RowOptimizer rule;
  EXPECT_THAT(state_names(rule), ElementsAre());
  rule.momentum = 0.9;
  EXPECT_THAT(state_names(rule), ElementsAre("momentum"));
  rule.kind = RowOptimizer::Kind::kAdagrad;
  EXPECT_THAT(state_names(rule), ElementsAre("sum"));
  rule.kind = RowOptimizer::Kind::kAdam;
  EXPECT_THAT(state_names(rule), ElementsAre("exp_avg", "exp_avg_sq"));
  rule.kind = RowOptimizer::Kind::kFtrl;
  EXPECT_THAT(state_names(rule), ElementsAre("z", "n"));
}

}  // namespace
}  // namespace paceline::pserver::sparse
