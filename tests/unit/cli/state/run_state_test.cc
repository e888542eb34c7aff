#include "cli/state/run_state.h"

#include <gtest/gtest.h>

#include "base/rng.h"

namespace paceline::cli {
namespace {

RunState example() {
  RunState state;
  state.name = "digits-2";
  state.job = "digits";
  state.phase = "Running";
  state.progress.step = 12;
  state.progress.total_steps = 100;
  state.progress.loss = 0.25;
  state.bytes_exchanged = 1ull << 40;
  state.gradients = StepGradients{.counted = 2, .workers = 3, .samples = 42.5, .batch = 64};
  state.members.push_back(
      {.role = Role::kChief, .pod = "digits-chief-0-0", .pid = 42, .phase = "Training", .step = 12});
  state.members.push_back({.role = Role::kServer, .host = "node-1"});
  state.members[0].telemetry.wait_ms = 0.5;
  state.members[0].telemetry.gpu = GpuTelemetry{.name = "H200", .index = 3, .power_watts = 5.5};
  state.members[1].telemetry.server =
      ServerTelemetry{.load = 0.25, .queue = 1, .hottest = {{"users", ~0ULL, 1203}}};
  return state;
}

TEST(RunStateTest, JsonRoundTrip) {
  const std::string text = to_json(example());
  const auto parsed = parse_run_state(text);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(to_json(*parsed), text);
  ASSERT_EQ(parsed->members.size(), 2u);
  for (const std::size_t i : {0, 1}) EXPECT_EQ(parsed->members[i].telemetry, example().members[i].telemetry);
  ASSERT_TRUE(parsed->gradients.has_value());
  EXPECT_EQ(parsed->gradients->counted, 2);
  EXPECT_EQ(parsed->gradients->workers, 3);
  EXPECT_EQ(parsed->gradients->samples, 42.5);
  EXPECT_EQ(parsed->gradients->batch, 64);
  EXPECT_FALSE(parse_run_state(to_json(RunState()))->gradients.has_value());
  EXPECT_FALSE(parsed->progress.test_auc.has_value());
  EXPECT_EQ(parsed->progress.loss, 0.25);
  EXPECT_FALSE(parsed->progress.test_accuracy.has_value());
}

TEST(RunStateTest, BytesThatAreNoUtf8AreWrittenAsReplacementCharacters) {
  RunState state = example();
  state.message = "bad \xff byte";
  EXPECT_TRUE(parse_run_state(to_json(state)).ok());
}

TEST(RunStateTest, OnlyAnObjectIsTaken) {
  for (const char* text : {"", "{", "[]", "3"})
    EXPECT_EQ(parse_run_state(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
  const auto odd =
      parse_run_state(R"({"step": "x", "loss": {}, "members": [1], "gradients": 7, "samples": 5})");
  ASSERT_TRUE(odd.ok()) << odd.status();
  EXPECT_EQ(odd->progress.step, 0);
  EXPECT_EQ(odd->samples, 5);
}

TEST(RunStateTest, AnyMutationParsesOrIsRefused) {
  const std::uint64_t seed = 7;
  SCOPED_TRACE(seed);
  Rng rng(seed, 0);
  const std::string text = to_json(example());
  for (int i = 0; i < 2000; ++i) {
    std::string mutated = text;
    for (std::uint64_t k = rng.below(4) + 1; k > 0; --k)
      mutated[rng.below(mutated.size())] = static_cast<char>(rng.below(256));
    (void)parse_run_state(mutated);
    (void)parse_run_state(mutated.substr(0, rng.below(mutated.size())));
  }
}

}  // namespace
}  // namespace paceline::cli
