// Every file of good/ is accepted without a word. tests/cluster/crd_test.py holds the API server to the same.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "base/text.h"
#include "tests/support/paths.h"
#include "tests/unit/controller/api/job_text.h"

namespace paceline::api {
namespace {

const std::string kGoodFolder = PACELINE_SOURCE_DIR "/tests/unit/controller/api/good";

std::vector<std::string> good_files() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kGoodFolder))
    names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

class GoodFile : public ::testing::TestWithParam<std::string> {};

TEST_P(GoodFile, IsAccepted) {
  const std::string text = read_whole(str_cat(kGoodFolder, "/", GetParam(), ".yaml"));
  const Parsed parsed = parse_training_job(text, GetParam());
  EXPECT_TRUE(parsed.job.has_value());
  EXPECT_EQ(render_diagnostics(parsed.diagnostics, text), "");
}

INSTANTIATE_TEST_SUITE_P(All, GoodFile, ::testing::ValuesIn(good_files()),
                         [](const auto& info) { return info.param; });

TEST(GoodFolder, TheTrainerIsTheContainerOfThatNameElseTheFirst) {
  const auto worker = [](const char* name) {
    return *parse_good(read_whole(str_cat(kGoodFolder, "/", name, ".yaml"))).spec.replica_specs.worker;
  };
  EXPECT_EQ(worker("custom").container->command.at(0), "./moons");
  EXPECT_EQ(worker("custom").container_index, 1u);
  EXPECT_EQ(worker("template").container->name, "logs");
  EXPECT_EQ(worker("template").container->env.size(), 2u);
  EXPECT_EQ(worker("own_program").container->name, "trainer");
}

TEST(GoodFolder, WithoutTrainingThereIsNone) {
  const TrainingJob job = parse_good(read_whole(kGoodFolder + "/own_program.yaml"));
  EXPECT_FALSE(job.spec.training.has_value());
  EXPECT_EQ(member_count(job), 3);
  EXPECT_EQ(job.spec.replica_specs.ps->replicas, 2);
  EXPECT_EQ(job.spec.replica_specs.evaluator->restart_policy, RestartPolicy::kAlways);
}

}  // namespace
}  // namespace paceline::api
