#include "runtime/trainer/table_specs.h"

#include <gtest/gtest.h>

#include "tests/support/click_model.h"

namespace paceline::trainer {
namespace {

using pserver::sparse::Initializer;
using pserver::sparse::RowBound;
using pserver::sparse::RowOptimizer;
using pserver::sparse::TableSpec;

TEST(TableSpecs, TheModelSaysWhatThereIsAndTheJobHowItIsTrained) {
  v1::TrainingSpec spec = click_spec(10, 32, 2, 1);
  spec.mutable_parameter_server()->mutable_tables(0)->set_max_rows(1000);
  spec.mutable_parameter_server()->mutable_tables(0)->set_evict(v1::TableSpec::LEAST_FREQUENT);
  const std::vector<TableSpec> tables = table_specs(spec);
  ASSERT_EQ(tables.size(), 2u);
  const TableSpec &wide = tables[0], &deep = tables[1];
  EXPECT_EQ(wide.name, "wide");
  EXPECT_EQ(wide.dim, 1u);
  EXPECT_EQ(wide.initializer.kind, Initializer::Kind::kZero);
  EXPECT_EQ(wide.optimizer.kind, RowOptimizer::Kind::kFtrl);
  EXPECT_EQ(wide.optimizer.learning_rate, 0.5);
  EXPECT_EQ(wide.bound, (RowBound{1000, RowBound::Evict::kLeastFrequent}));
  EXPECT_EQ(deep.name, "deep");
  EXPECT_EQ(deep.dim, 2u);
  EXPECT_EQ(deep.initializer.kind, Initializer::Kind::kUniform);
  EXPECT_FLOAT_EQ(static_cast<float>(deep.initializer.scale), 0.05F);
  EXPECT_EQ(deep.optimizer.kind, RowOptimizer::Kind::kAdam);
  EXPECT_EQ(deep.optimizer.beta2, 0.99);
  EXPECT_EQ(deep.bound, RowBound{});
  EXPECT_TRUE(pserver::sparse::check(tables).ok());
}

TEST(TableSpecs, RowsBeginAsTheJobsSeedSaysInEachTableDifferently) {
  v1::TrainingSpec spec = click_spec(10, 32, 2, 1);
  const auto tables = table_specs(spec);
  EXPECT_NE(tables[0].seed, tables[1].seed);
  spec.set_steps(20);
  EXPECT_EQ(table_specs(spec), tables);
  spec.set_seed(spec.seed() + 1);
  EXPECT_NE(table_specs(spec)[1].seed, tables[1].seed);
}

TEST(TableSpecs, AModelWithoutTablesHasNoneAndOneThatTheJobDoesNotNameIsRefused) {
  EXPECT_TRUE(table_specs(step_spec(10, 32)).empty());
  v1::TrainingSpec spec = click_spec(10, 32, 2, 1);
  spec.mutable_parameter_server()->mutable_tables(1)->set_name("other");
  EXPECT_EQ(pserver::sparse::check(table_specs(spec)).message(),
            "table deep: learningRate is 0 and must be finite and above 0");
}

}  // namespace
}  // namespace paceline::trainer
