#include "cli/view/gpus_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace paceline::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

constexpr int kWide = 250, kHigh = 20;

GpuTelemetry gpu() {
  return {.name = "NVIDIA H200",
          .compute_ms = 41.25,
          .update_ms = 1.5,
          .utilization = 0.93,
          .memory_utilization = 0.41,
          .memory_used_mib = 61'234,
          .memory_total_mib = 143'771,
          .sm_clock_mhz = 1755,
          .most_sm_clock_mhz = 1980,
          .memory_clock_mhz = 3201,
          .most_memory_clock_mhz = 3202,
          .temperature_celsius = 54,
          .power_watts = 612.4,
          .power_limit_watts = 700,
          .slowdowns = {"power cap", "thermal (software)"},
          .corrected_ecc_errors = 7,
          .uncorrected_ecc_errors = 1,
          .pcie_replays = 3,
          .xids = 2,
          .last_xid = 79};
}

RunState state_of(std::vector<std::optional<GpuTelemetry>> gpus) {
  RunState state;
  for (std::size_t i = 0; i < gpus.size(); ++i)
    state.members.push_back(
        {.index = static_cast<std::int64_t>(i), .telemetry = {.gpu = std::move(gpus[i])}});
  return state;
}

TEST(GpusViewTest, SaysHowEachIs) {
  EXPECT_THAT(
      render_gpus(state_of({gpu(), std::nullopt, GpuTelemetry{.name = "Other"}}), Terminal{}, kWide, kHigh),
      ElementsAre("",
                  "GPU OF    INDEX  GPU          UUID  COMPUTE ms  UPDATE ms  LOAD  MEM LOAD                "
                  "MiB          SM "
                  "MHz         MEM MHz  HEAT     POWER W  SLOWED BY                      ERRORS",
                  "worker-0      -  NVIDIA H200  -          41.25       1.50  93 %      41 %  61,234 of "
                  "143,771  1,755 of "
                  "1,980  3,201 of 3,202  54 C  612 of 700  power cap, thermal (software)  2 Xids (79), 1 "
                  "uncorrected ECC, 3 PCIe replays",
                  "worker-2      -  Other        -              -          -     -         -                 "
                  " -             "
                  "  -               -     -           -  -                              -"));
}

TEST(GpusViewTest, SaysWhichEachIsWhereOneTells) {
  GpuTelemetry one = gpu(), other{.name = "Other"};
  one.index = 1;
  one.uuid = "GPU-4b1d5d31";
  const auto lines = render_gpus(state_of({one, other}), Terminal{}, kWide, kHigh);
  ASSERT_THAT(lines, SizeIs(4));
  EXPECT_THAT(lines[1], StartsWith("GPU OF    INDEX  GPU          UUID          COMPUTE ms"));
  EXPECT_THAT(lines[2], StartsWith("worker-0      1  NVIDIA H200  GPU-4b1d5d31       41.25"));
  EXPECT_THAT(lines[3], StartsWith("worker-1      -  Other        -                      -"));
  const auto narrow = render_gpus(state_of({one}), Terminal{}, 160, kHigh);
  EXPECT_THAT(narrow[1], Not(HasSubstr("UUID")));
  EXPECT_THAT(narrow[1], HasSubstr("INDEX")) << "it is short";
}

TEST(GpusViewTest, OfOneErrorThereIsOne) {
  GpuTelemetry one;
  one.xids = 1;
  one.last_xid = 31;
  one.pcie_replays = 1;
  EXPECT_THAT(render_gpus(state_of({one}), Terminal{}, kWide, kHigh).back(),
              HasSubstr("1 Xid (31), 1 PCIe replay"));
}

TEST(GpusViewTest, WhatSlowsAGpuStaysLongest) {
  const auto lines = render_gpus(state_of({gpu()}), Terminal{}, 60, kHigh);
  ASSERT_THAT(lines, SizeIs(3));
  EXPECT_THAT(lines[1], HasSubstr("SLOWED BY"));
  EXPECT_THAT(lines[1], Not(HasSubstr("MEM LOAD")));
}

TEST(GpusViewTest, IsNoHigherThanItsRoom) {
  const RunState state = state_of(std::vector<std::optional<GpuTelemetry>>(9, gpu()));
  EXPECT_THAT(render_gpus(state, Terminal{}, kWide, 5), SizeIs(5));
  EXPECT_THAT(render_gpus(state, Terminal{}, kWide, 2), IsEmpty());
  EXPECT_THAT(render_gpus(state_of({std::nullopt}), Terminal{}, kWide, kHigh), IsEmpty());
}

}  // namespace
}  // namespace paceline::cli
