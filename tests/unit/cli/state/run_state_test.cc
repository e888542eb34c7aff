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
  state.step = 12;
  state.total_steps = 100;
  state.loss = 0.25;
  state.bytes_exchanged = 1ull << 40;
  state.gradients = StepGradients{.counted = 2, .workers = 3, .samples = 42.5, .batch = 64};
  state.members.push_back(
      {.pod = "digits-chief-0-0",
       .name = "chief-0",
       .pid = 42,
       .phase = "Training",
       .step = 12,
       .wait_ms = 0.5,
       .staleness =
           StalenessState{
               .applied = 9, .dropped = 2, .max = 3, .mean = 0.5, .wait_seconds = 1.5, .histogram = {4, 5}},
       .gpu = GpuState{.name = "H200",
                       .index = 3,
                       .uuid = "GPU-4b1d5d31",
                       .compute_ms = 41.25,
                       .update_ms = 1.5,
                       .utilization = 0.5,
                       .memory_utilization = 0.25,
                       .memory_used_mib = 61'234,
                       .memory_total_mib = 143'771,
                       .sm_clock_mhz = 1,
                       .most_sm_clock_mhz = 2,
                       .memory_clock_mhz = 3,
                       .most_memory_clock_mhz = 3202,
                       .temperature_celsius = -4,
                       .power_watts = 5.5,
                       .slowdowns = {"power cap"},
                       .uncorrected_ecc_errors = 6,
                       .xids = 7,
                       .last_xid = 79}});
  state.members.push_back({.name = "ps-0",
                           .server = ServerState{.load = 0.25,
                                                 .bytes_per_second = 1e6,
                                                 .queue = 1,
                                                 .updates = 7,
                                                 .rows = 2,
                                                 .row_bytes = 640,
                                                 .rows_evicted = 5,
                                                 .hottest = {{"users", 77, 1203}}}});
  return state;
}

TEST(RunStateTest, JsonRoundTrip) {
  const std::string text = to_json(example());
  const auto parsed = parse_run_state(text);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(to_json(*parsed), text);
  ASSERT_EQ(parsed->members.size(), 2u);
  EXPECT_EQ(parsed->members[0].staleness->histogram, (std::vector<std::int64_t>{4, 5}));
  const GpuState& gpu = parsed->members[0].gpu.value();
  EXPECT_EQ(gpu.name, "H200");
  EXPECT_EQ(gpu.index, 3);
  EXPECT_EQ(gpu.uuid, "GPU-4b1d5d31");
  EXPECT_EQ(gpu.temperature_celsius, -4);
  EXPECT_EQ(gpu.slowdowns, std::vector<std::string>{"power cap"});
  EXPECT_EQ(gpu.last_xid, 79);
  EXPECT_FALSE(gpu.power_limit_watts || gpu.corrected_ecc_errors || gpu.pcie_replays);
  EXPECT_FALSE(parsed->members[1].gpu.has_value());
  ASSERT_TRUE(parsed->gradients.has_value());
  EXPECT_EQ(parsed->gradients->counted, 2);
  EXPECT_EQ(parsed->gradients->workers, 3);
  EXPECT_EQ(parsed->gradients->samples, 42.5);
  EXPECT_EQ(parsed->gradients->batch, 64);
  EXPECT_FALSE(parse_run_state(to_json(RunState()))->gradients.has_value());
  EXPECT_FALSE(parsed->members[0].server.has_value());
  EXPECT_EQ(parsed->members[1].server->hottest.at(0).id, 77u);
  EXPECT_EQ(parsed->members[1].server->row_bytes, 640);
  EXPECT_EQ(parsed->members[1].server->rows_evicted, 5);
  EXPECT_FALSE(parsed->auc.has_value());
  EXPECT_EQ(parsed->loss, 0.25);
  EXPECT_FALSE(parsed->accuracy.has_value());
}

TEST(RunStateTest, BytesThatAreNoUtf8AreWrittenAsReplacementCharacters) {
  RunState state = example();
  state.message = "bad \xff byte";
  EXPECT_TRUE(parse_run_state(to_json(state)).ok());
}

TEST(RunStateTest, RefusesWhatItDidNotWrite) {
  for (const char* text :
       {"", "{", "[]", "3", R"({"step": "x"})", R"({"members": [1]})", R"({"loss": {}})",
        R"({"gradients": {"counted": "x"}})", R"({"members": [{"server": {"queue": "x"}}]})"}) {
    EXPECT_EQ(parse_run_state(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
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
