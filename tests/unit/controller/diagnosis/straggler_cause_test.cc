#include "controller/diagnosis/straggler_cause.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

namespace paceline::diagnosis {
namespace {

using api::StragglerCause;

MemberTelemetry quiet() {
  MemberTelemetry member;
  member.kernel = KernelTelemetry{.cpu = 1,
                                  .throttled = 0,
                                  .run_delay = 0.02,
                                  .cpu_pressure = 0.1,
                                  .memory_pressure = 0,
                                  .io_pressure = 0.01,
                                  .major_faults = 0,
                                  .read_bytes = 1e6,
                                  .retransmits = 0,
                                  .timer_delay_ms = 0.1};
  member.gpu = GpuTelemetry{};
  member.gpu->sm_clock_mhz = 1900;
  member.gpu->most_sm_clock_mhz = 1980;
  return member;
}

StragglerCause cause_of(const MemberTelemetry& own, const MemberTelemetry& others,
                        const char* part = "compute") {
  const std::vector<const MemberTelemetry*> three = {&others, &others, &others};
  api::Straggler straggler{.part = part};
  find_cause(own, three, straggler);
  EXPECT_EQ(straggler.evidence.empty(), straggler.cause == StragglerCause::kUnknown);
  return straggler.cause;
}

TEST(StragglerCauseTest, FigureFarAboveTheOthersIsTheCause) {
  const struct {
    std::string name;
    std::function<void(MemberTelemetry&)> change;
    StragglerCause in_compute, in_input;
  } cases[] = {
      {"nothing", [](MemberTelemetry&) {}, StragglerCause::kUnknown, StragglerCause::kInput},
      {"quota", [](MemberTelemetry& m) { m.kernel->throttled = 0.46; }, StragglerCause::kCpuQuota,
       StragglerCause::kCpuQuota},
      {"quota, and others use the rest",
       [](MemberTelemetry& m) { m.kernel->throttled = m.kernel->run_delay = 0.4; }, StragglerCause::kCpuQuota,
       StragglerCause::kCpuQuota},
      {"contention", [](MemberTelemetry& m) { m.kernel->run_delay = 0.3; }, StragglerCause::kCpuContention,
       StragglerCause::kCpuContention},
      {"memory", [](MemberTelemetry& m) { m.kernel->memory_pressure = 0.2; }, StragglerCause::kMemoryPressure,
       StragglerCause::kMemoryPressure},
      {"faults", [](MemberTelemetry& m) { m.kernel->major_faults = 400; }, StragglerCause::kMemoryPressure,
       StragglerCause::kMemoryPressure},
      {"stopped beside others' work",
       [](MemberTelemetry& m) {
         m.kernel->run_delay = 0.9;
         m.kernel->timer_delay_ms = 14;
       },
       StragglerCause::kStopped, StragglerCause::kStopped},
      {"stopped", [](MemberTelemetry& m) { m.kernel->timer_delay_ms = 21; }, StragglerCause::kStopped,
       StragglerCause::kStopped},
      {"storage", [](MemberTelemetry& m) { m.kernel->io_pressure = 0.5; }, StragglerCause::kUnknown,
       StragglerCause::kStorage},
      {"a hot GPU",
       [](MemberTelemetry& m) {
         m.gpu->sm_clock_mhz = 1200;
         m.gpu->slowdowns = {"thermal"};
         m.kernel->run_delay = 0.3;
       },
       StragglerCause::kGpuSlowdown, StragglerCause::kGpuSlowdown},
  };
  for (const auto& each : cases) {
    SCOPED_TRACE(each.name);
    MemberTelemetry own = quiet();
    each.change(own);
    EXPECT_EQ(cause_of(own, quiet()), each.in_compute);
    EXPECT_EQ(cause_of(own, quiet(), "input"), each.in_input);
    EXPECT_EQ(cause_of(own, own), StragglerCause::kUnknown) << "the others are no better off";
  }
}

TEST(StragglerCauseTest, MemberThatTellsNothingHasNoCause) {
  EXPECT_EQ(cause_of({}, quiet()), StragglerCause::kUnknown);
  EXPECT_EQ(cause_of({}, {}, "input"), StragglerCause::kInput);
}

}  // namespace
}  // namespace paceline::diagnosis
