#include "runtime/checkpoint/spec_hash.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

namespace paceline::checkpoint {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

v1::TrainingSpec some_spec() {
  v1::TrainingSpec spec;
  spec.mutable_model()->mutable_mlp()->add_hidden(32);
  spec.mutable_optimizer()->set_type(v1::OptimizerSpec::SGD);
  spec.set_global_batch_size(64);
  spec.set_seed(1);
  spec.set_steps(5);
  return spec;
}

v1::TrainingSpec with_table(v1::TrainingSpec spec, v1::RowOptimizerSpec::Type type) {
  v1::TableSpec& table = *spec.mutable_parameter_server()->add_tables();
  table.set_name("wide");
  table.mutable_optimizer()->set_type(type);
  return spec;
}

TEST(SpecHash, ChangesWithWhatACheckpointDependsOnAndNamesIt) {
  struct Case {
    const char* field;
    std::function<void(v1::TrainingSpec&)> change;
  };
  const v1::TrainingSpec spec = some_spec();
  EXPECT_EQ(spec_hash(spec).size(), 16u);
  for (const Case& c : std::initializer_list<Case>{
           {"spec.training.model", [](auto& s) { s.mutable_model()->mutable_mlp()->set_hidden(0, 33); }},
           {"spec.training.optimizer.type",
            [](auto& s) { s.mutable_optimizer()->set_type(v1::OptimizerSpec::ADAM); }},
           {"spec.training.globalBatchSize", [](auto& s) { s.set_global_batch_size(65); }},
           {"spec.training.seed", [](auto& s) { s.set_seed(6); }},
           {"spec.training.precision", [](auto& s) { s.set_precision(v1::PRECISION_BF16); }},
           {"spec.training.model.tables", [](auto& s) { s = with_table(s, v1::RowOptimizerSpec::FTRL); }},
       }) {
    v1::TrainingSpec other = spec;
    c.change(other);
    EXPECT_NE(spec_hash(spec), spec_hash(other)) << c.field;
    EXPECT_THAT(essential_differences(spec, other), ElementsAre(c.field));
  }
}

TEST(SpecHash, ChangesWithNothingElse) {
  const v1::TrainingSpec spec = some_spec();
  v1::TrainingSpec other = spec;
  other.set_steps(50);
  other.mutable_checkpoint()->set_directory("/elsewhere");
  other.mutable_optimizer()->set_learning_rate(1);
  EXPECT_EQ(spec_hash(spec), spec_hash(other));
  EXPECT_THAT(essential_differences(spec, other), IsEmpty());
  other.mutable_parameter_server()->set_servers(3);
  EXPECT_EQ(spec_hash(spec), spec_hash(other)) << "servers without tables";
}

// The hash of what was saved before must stay what it is.
TEST(SpecHash, FieldThatDecidesTheTensorsIsNamed) {
  v1::TrainingSpec spec = some_spec();
  spec.mutable_optimizer()->set_type(v1::OptimizerSpec::SGD);
  spec.mutable_optimizer()->set_momentum(0);
  spec.mutable_data()->mutable_clicks()->add_vocabularies(100);
  v1::TrainingSpec other = spec;
  other.mutable_optimizer()->set_momentum(0.5);
  EXPECT_EQ(spec_hash(spec), spec_hash(other));
  EXPECT_THAT(essential_differences(spec, other), ElementsAre("spec.training.optimizer.momentum"));
  EXPECT_THAT(essential_differences(other, spec), ElementsAre("spec.training.optimizer.momentum"));
  spec.mutable_optimizer()->set_momentum(0.9);
  spec.mutable_optimizer()->set_nesterov(true);
  EXPECT_THAT(essential_differences(spec, other), IsEmpty()) << "how much of it may change";
  other.mutable_data()->mutable_clicks()->set_vocabularies(0, 200);
  EXPECT_THAT(essential_differences(spec, other), IsEmpty()) << "and how many values a field has";
  other.mutable_data()->mutable_clicks()->add_vocabularies(10);
  EXPECT_THAT(essential_differences(spec, other), ElementsAre("spec.training.data.clicks.vocabularies"));
}

// Else a model would read other numbers than it was trained on.
TEST(SpecHash, NormalizationOfTheInputsIsNamed) {
  v1::TrainingSpec spec = some_spec();
  spec.mutable_data()->mutable_normalization()->set_scale(1);
  for (const auto& change : std::initializer_list<std::function<void(v1::Normalization&)>>{
           [](auto& n) { n.set_scale(0.5); }, [](auto& n) { n.set_mean(3); },
           [](auto& n) { n.set_deviation(2); }}) {
    v1::TrainingSpec other = spec;
    change(*other.mutable_data()->mutable_normalization());
    EXPECT_EQ(spec_hash(spec), spec_hash(other));
    EXPECT_THAT(essential_differences(spec, other), ElementsAre("spec.training.data.normalize"));
  }
}

// Else a resumed training would train on what it is evaluated on.
TEST(SpecHash, FieldThatDecidesTheHeldOutSamplesIsNamed) {
  v1::TrainingSpec spec = some_spec();
  spec.mutable_data()->set_test_fraction(0.2);
  spec.mutable_data()->mutable_train()->add_inputs("a.csv");
  struct Case {
    const char* field;
    std::function<void(v1::DataSpec&)> change;
  };
  for (const Case& c : std::initializer_list<Case>{
           {"spec.training.data.testFraction", [](auto& d) { d.set_test_fraction(0.5); }},
           {"spec.training.data.testFraction", [](auto& d) { d.set_test_fraction(0); }},
           {"spec.training.data.train.inputs", [](auto& d) { d.mutable_train()->set_inputs(0, "b.csv"); }},
           {"spec.training.data.train.inputs", [](auto& d) { d.mutable_train()->add_inputs("b.csv"); }},
           {"spec.training.data.header", [](auto& d) { d.set_header(true); }},
           {"spec.training.data.clicks.samples", [](auto& d) { d.mutable_clicks()->set_samples(9); }},
       }) {
    v1::TrainingSpec other = spec;
    c.change(*other.mutable_data());
    EXPECT_EQ(spec_hash(spec), spec_hash(other)) << c.field;
    EXPECT_THAT(essential_differences(spec, other), ElementsAre(c.field));
  }
  spec.mutable_data()->set_test_fraction(0);
  v1::TrainingSpec other = spec;
  other.mutable_data()->mutable_train()->set_inputs(0, "b.csv");
  other.mutable_data()->mutable_test()->add_inputs("test.csv");
  EXPECT_THAT(essential_differences(spec, other), IsEmpty()) << "nothing of it is held out";
}

TEST(SpecHash, OfATableTheKindOfOptimizerCounts) {
  const v1::TrainingSpec ftrl = with_table(some_spec(), v1::RowOptimizerSpec::FTRL);
  v1::TrainingSpec other = ftrl;
  other.mutable_parameter_server()->mutable_tables(0)->mutable_optimizer()->set_learning_rate(2);
  other.mutable_parameter_server()->mutable_tables(0)->set_max_rows(1000);
  other.mutable_parameter_server()->set_servers(2);
  EXPECT_EQ(spec_hash(ftrl), spec_hash(other));
  EXPECT_THAT(essential_differences(ftrl, other), IsEmpty());
  other.mutable_parameter_server()->mutable_tables(0)->mutable_optimizer()->set_type(
      v1::RowOptimizerSpec::SGD);
  EXPECT_NE(spec_hash(ftrl), spec_hash(other));
  EXPECT_THAT(essential_differences(ftrl, other), ElementsAre("spec.training.model.tables"));
}

// Checkpoints of earlier builds are to be found again.
TEST(SpecHash, StaysWhatItWas) {
  EXPECT_EQ(spec_hash(some_spec()), "90fd5f44a805df94");
}

}  // namespace
}  // namespace paceline::checkpoint
