#include "controller/api/training_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.h"
#include "tests/support/paths.h"
#include "tests/unit/controller/api/job_text.h"

namespace paceline::api {
namespace {

using ::testing::ElementsAre;

const RunPaths kPaths{.base_folder = "/home/me/jobs",
                      .checkpoint_directory = "/runs/x/checkpoints",
                      .model_directory = "/runs/x/model"};

v1::TrainingSpec spec_of(std::string_view text, const RunPaths& paths = kPaths) {
  const auto spec = make_training_spec(parse_good(text), paths);
  EXPECT_TRUE(spec.ok()) << std::string(spec.status().message());
  return spec.value_or(v1::TrainingSpec{});
}

TEST(TrainingSpec, OfTheFashionExample) {
  const auto spec = spec_of(read_whole(source_path("examples/fashion-allreduce.yaml")));
  ASSERT_TRUE(spec.model().has_cnn());
  EXPECT_THAT(spec.model().cnn().channels(), ElementsAre(16, 32));
  EXPECT_THAT(spec.model().cnn().hidden(), ElementsAre(128));
  EXPECT_EQ(spec.model().cnn().kernel_size(), 3);
  EXPECT_EQ(spec.model().cnn().classes(), 10);
  EXPECT_EQ(spec.model().cnn().activation(), v1::ACTIVATION_RELU);
  EXPECT_EQ(spec.data().format(), v1::DataSpec::IDX);
  EXPECT_EQ(spec.data().train().inputs(0), "/usr/share/datasets/fashion-mnist/train-images-idx3-ubyte.gz");
  EXPECT_EQ(spec.data().test().labels(0), "/usr/share/datasets/fashion-mnist/t10k-labels-idx1-ubyte.gz");
  EXPECT_EQ(spec.data().normalization().mean(), 0.286);
  EXPECT_EQ(spec.optimizer().type(), v1::OptimizerSpec::SGD);
  EXPECT_EQ(spec.optimizer().momentum(), 0.9);
  EXPECT_EQ(spec.global_batch_size(), 128);
  EXPECT_EQ(spec.steps(), 0);
  EXPECT_GT(spec.epochs(), 0);
  EXPECT_EQ(spec.target().metric(), "accuracy");
  EXPECT_EQ(spec.target().value(), 0.9);
  EXPECT_EQ(spec.evaluation().every_epochs(), 0.5);
  EXPECT_EQ(spec.exchange().bucket_bytes(), 1 << 20);
  EXPECT_EQ(spec.exchange().timeout_ms(), 30'000);
  EXPECT_TRUE(spec.exchange().overlap());
  EXPECT_EQ(spec.checkpoint().directory(), "/runs/x/checkpoints");
  EXPECT_EQ(spec.checkpoint().model_directory(), "/runs/x/model");
  EXPECT_FALSE(spec.checkpoint().resume());
}

TEST(TrainingSpec, OfTheOtherExamples) {
  const auto digits =
      spec_of(read_whole(source_path("examples/digits-allreduce.yaml")), {.base_folder = "/repo/examples"});
  ASSERT_TRUE(digits.model().has_mlp());
  EXPECT_EQ(digits.data().format(), v1::DataSpec::CSV);
  EXPECT_EQ(digits.data().train().inputs(0), "/repo/examples/data/digits.csv.gz");
  EXPECT_EQ(digits.data().test_fraction(), 0.2);
  EXPECT_FALSE(digits.data().has_test());
  EXPECT_EQ(digits.data().label_column(), -1);
  const auto gpt = spec_of(read_whole(source_path("examples/gpt-char.yaml")));
  ASSERT_TRUE(gpt.model().has_gpt());
  EXPECT_EQ(gpt.model().gpt().vocabulary_size(), 256);
  EXPECT_EQ(gpt.data().format(), v1::DataSpec::TEXT);
  EXPECT_EQ(gpt.optimizer().type(), v1::OptimizerSpec::ADAMW);
  EXPECT_EQ(gpt.optimizer().schedule().type(), v1::ScheduleSpec::COSINE);
  EXPECT_FALSE(gpt.has_target());
}

TEST(TrainingSpec, OfMemory) {
  EXPECT_FALSE(spec_of(kGoodJob).recompute_activations());
  EXPECT_EQ(spec_of(kGoodJob).micro_batch_size(), 0);
  const auto spec = spec_of(read_whole(source_path("tests/unit/controller/api/good/everything.yaml")));
  EXPECT_TRUE(spec.recompute_activations());
  EXPECT_EQ(spec.micro_batch_size(), 16);
}

TEST(TrainingSpec, OfParameterServers) {
  EXPECT_FALSE(spec_of(kGoodJob).has_parameter_server());
  TrainingJob job = parse_good(kGoodJob);
  job.spec.strategy.type = StrategyType::kParameterServer;
  job.spec.strategy.backup_workers = 1;
  job.spec.strategy.parameter_server.timeout_seconds = 1.5;
  job.spec.strategy.parameter_server.transport = Transport::kTcp;
  job.spec.replica_specs.ps = ReplicaSpec{.replicas = 2};
  const auto of = [&] { return make_training_spec(job, kPaths)->parameter_server(); };
  EXPECT_EQ(of().synchronization(), v1::ParameterServerSpec::SYNCHRONOUS);
  EXPECT_EQ(of().workers(), 4);
  EXPECT_EQ(of().servers(), 2);
  EXPECT_EQ(of().gradients_per_step(), 3);
  EXPECT_EQ(of().units_per_step(), 3);
  EXPECT_EQ(of().staleness(), 0);
  EXPECT_EQ(of().transport(), v1::ExchangeSpec::TCP);
  EXPECT_TRUE(of().overlap());
  EXPECT_EQ(of().slice_bytes(), 1 << 20);
  EXPECT_EQ(of().timeout_ms(), 1500);
  job.spec.strategy.backup_workers = 0;
  EXPECT_EQ(of().gradients_per_step(), 4);
  job.spec.strategy.parameter_server.gradients_per_step = 2;
  EXPECT_EQ(of().gradients_per_step(), 2);
  EXPECT_EQ(of().units_per_step(), 4) << "the others' samples are left out";
  job.spec.strategy.synchronization = Synchronization::kBoundedStaleness;
  job.spec.strategy.parameter_server.staleness = 3;
  EXPECT_EQ(of().synchronization(), v1::ParameterServerSpec::BOUNDED_STALENESS);
  EXPECT_EQ(of().staleness(), 3);
  job.spec.strategy.synchronization = Synchronization::kAsynchronous;
  job.spec.strategy.parameter_server.delay_compensation = 0.04;
  EXPECT_EQ(of().synchronization(), v1::ParameterServerSpec::ASYNCHRONOUS);
  EXPECT_EQ(of().staleness(), 0);
  EXPECT_EQ(of().delay_compensation(), 0.04);
}

const std::string kWideAndDeep = source_path("tests/unit/controller/api/good/wide_and_deep.yaml");

TEST(TrainingSpec, OfWideAndDeep) {
  const auto spec = spec_of(read_whole(kWideAndDeep));
  ASSERT_TRUE(spec.model().has_wide_and_deep());
  const v1::WideAndDeepSpec& model = spec.model().wide_and_deep();
  EXPECT_EQ(model.embedding(), 16);
  EXPECT_THAT(model.hidden(), ElementsAre(64, 32));
  EXPECT_EQ(model.activation(), v1::ACTIVATION_TANH);
  ASSERT_EQ(model.crosses_size(), 2);
  EXPECT_THAT(model.crosses(1).fields(), ElementsAre(0, 2, 3));
  EXPECT_EQ(spec.data().format(), v1::DataSpec::CLICKS);
  EXPECT_FALSE(spec.data().has_train());
  const v1::ClicksSpec& clicks = spec.data().clicks();
  EXPECT_EQ(clicks.samples(), 1'000'000);
  EXPECT_THAT(clicks.vocabularies(), ElementsAre(100, 1000, 10'000, std::int64_t{1} << 31));
  EXPECT_EQ(clicks.exponent(), 1.2);
  EXPECT_EQ(clicks.click_rate(), 0.05);
  EXPECT_EQ(clicks.signal(), 0.5);
  EXPECT_EQ(clicks.interaction(), 2);
  EXPECT_EQ(clicks.seed(), 7u);
  EXPECT_EQ(spec.target().metric(), "auc");
  EXPECT_EQ(spec.target().value(), 0.7);
  ASSERT_EQ(spec.parameter_server().tables_size(), 2);
  const v1::TableSpec &wide = spec.parameter_server().tables(0), &deep = spec.parameter_server().tables(1);
  EXPECT_EQ(wide.name(), "wide");
  EXPECT_EQ(wide.max_rows(), 100'000);
  EXPECT_EQ(wide.evict(), v1::TableSpec::LEAST_FREQUENT);
  EXPECT_EQ(wide.optimizer().type(), v1::RowOptimizerSpec::FTRL);
  EXPECT_EQ(wide.optimizer().learning_rate(), 0.2);
  EXPECT_EQ(wide.optimizer().beta(), 0.5);
  EXPECT_EQ(wide.optimizer().l1(), 0.001);
  EXPECT_EQ(wide.optimizer().l2(), 0.01);
  EXPECT_EQ(deep.name(), "deep");
  EXPECT_EQ(deep.max_rows(), 50'000);
  EXPECT_EQ(deep.evict(), v1::TableSpec::LEAST_RECENT);
  EXPECT_EQ(deep.optimizer().type(), v1::RowOptimizerSpec::ADAM);
  EXPECT_EQ(deep.optimizer().beta1(), 0.8);
  EXPECT_EQ(deep.optimizer().beta2(), 0.99);
  EXPECT_EQ(deep.optimizer().epsilon(), 1e-6);
}

TEST(TrainingSpec, TablesAreTrainedAsInThePaperWhereNothingIsSaid) {
  const auto spec =
      spec_of(read_whole(source_path("tests/unit/controller/api/good/wide_and_deep_custom_data.yaml")));
  ASSERT_EQ(spec.parameter_server().tables_size(), 2);
  const v1::TableSpec &wide = spec.parameter_server().tables(0), &deep = spec.parameter_server().tables(1);
  EXPECT_EQ(wide.optimizer().type(), v1::RowOptimizerSpec::FTRL);
  EXPECT_GT(wide.optimizer().learning_rate(), 0);
  EXPECT_GT(wide.optimizer().beta(), 0);
  EXPECT_EQ(deep.optimizer().type(), v1::RowOptimizerSpec::ADAGRAD);
  EXPECT_GT(deep.optimizer().learning_rate(), 0);
  EXPECT_EQ(deep.optimizer().epsilon(), 1e-10);
  EXPECT_EQ(wide.max_rows(), 0);
  EXPECT_FALSE(spec_of(read_whole(source_path("tests/unit/controller/api/good/servers.yaml")))
                   .parameter_server()
                   .tables_size() > 0);
}

TEST(TrainingSpec, AdagradHasAnEpsilonOfItsOwn) {
  const std::string text = with(kGoodJob, "type: SGD", "type: Adagrad");
  EXPECT_EQ(spec_of(text).optimizer().type(), v1::OptimizerSpec::ADAGRAD);
  EXPECT_EQ(spec_of(text).optimizer().epsilon(), 1e-10);
  EXPECT_EQ(spec_of(with(text, "learningRate", "epsilon: 0.5, learningRate")).optimizer().epsilon(), 0.5);
  EXPECT_EQ(spec_of(with(kGoodJob, "type: SGD", "type: Adam")).optimizer().epsilon(), 1e-8);
}

// The names of `count` values are the message's, whose first is `first`.
template <typename Ours, typename Theirs>
void expect_same_names(int count, int first = 0) {
  for (int i = 0; i < count; ++i) {
    std::string ours, theirs;
    for (const char* c = name(static_cast<Ours>(i)); *c != '\0'; ++c)
      ours += static_cast<char>(std::toupper(*c));
    for (const char c : google::protobuf::GetEnumDescriptor<Theirs>()->FindValueByNumber(first + i)->name()) {
      if (c != '_') theirs += c;
    }
    EXPECT_TRUE(theirs.ends_with(ours)) << ours << " " << theirs;
  }
}

// The casts between them rely on it.
TEST(TrainingSpec, EnumerationsAreInTheSameOrder) {
  expect_same_names<DataFormat, v1::DataSpec::Format>(8, 1);
  expect_same_names<OptimizerType, v1::OptimizerSpec::Type>(4);
  expect_same_names<RowOptimizerType, v1::RowOptimizerSpec::Type>(4);
  expect_same_names<Eviction, v1::TableSpec::Eviction>(2);
  expect_same_names<Activation, v1::Activation>(3);
  expect_same_names<ScheduleType, v1::ScheduleSpec::Type>(3);
  expect_same_names<Separator, v1::DataSpec::Separator>(3);
  expect_same_names<Transport, v1::ExchangeSpec::Transport>(3);
  expect_same_names<Algorithm, v1::ExchangeSpec::Algorithm>(5);
  expect_same_names<TokenType, v1::DataSpec::TokenType>(2);
  expect_same_names<Precision, v1::Precision>(2);
}

TEST(TrainingSpec, CheckpointLocation) {
  const auto directory = [](std::string_view location) {
    return spec_of(str_cat(kGoodJob, "  checkpoint: {location: \"", location, "\"}\n"))
        .checkpoint()
        .directory();
  };
  EXPECT_EQ(directory("file:///data/my%20run"), "/data/my run");
  EXPECT_EQ(directory("/data/run"), "/data/run");
  EXPECT_EQ(directory("checkpoints"), "/home/me/jobs/checkpoints");
  EXPECT_EQ(directory("../x"), "/home/me/x");
}

TEST(TrainingSpec, Locations) {
  for (const char* bad : {"", "s3://b/k", "http://x/y", "file://host/x", "file://", "file:///a%2",
                          "file:///a%zz", "file:///a%00"}) {
    EXPECT_EQ(location_path(bad).status().code(), absl::StatusCode::kInvalidArgument) << bad;
  }
  EXPECT_EQ(*location_path("file:///a%41"), "/aA");
  EXPECT_EQ(*location_path("a%41"), "a%41") << "a path is taken as it stands";
}

TEST(TrainingSpec, Paths) {
  EXPECT_EQ(resolve_path("/a/b", "c/d"), "/a/b/c/d");
  EXPECT_EQ(resolve_path("/a/b", "../c"), "/a/c");
  EXPECT_EQ(resolve_path("/a/b", "./c/./d/"), "/a/b/c/d");
  EXPECT_EQ(resolve_path("/a/b", "/c//d"), "/c/d");
  EXPECT_EQ(resolve_path("/a", "../../.."), "/");
  EXPECT_EQ(resolve_path("", "data/../x"), "data/../x") << "relative to a folder that is not known here";
  EXPECT_EQ(resolve_path("", "/c/../d"), "/d");
}

TEST(TrainingSpec, BaseFolderIsAbsolute) {
  EXPECT_EQ(make_training_spec(parse_good(kGoodJob), {.base_folder = "jobs"}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(TrainingSpec, ResumeAndLength) {
  RunPaths paths = kPaths;
  paths.resume = true;
  const auto spec = spec_of(kGoodJob, paths);
  EXPECT_TRUE(spec.checkpoint().resume());
  EXPECT_EQ(spec.steps(), 100);
  EXPECT_EQ(spec.epochs(), 0);
}

}  // namespace
}  // namespace paceline::api
