// Ranks as real processes: they exchange, are killed, are frozen, and are many.

#include <gtest/gtest.h>

#include <csignal>
#include <cstring>
#include <string>

#include "base/status.h"
#include "tests/integration/collective/rank_processes.h"

namespace paceline::collective {
namespace {

constexpr std::size_t kReportBytes = 512;

// What a rank tells the test when it is done, or when it is under way.
struct Report {
  std::uint32_t under_way = 0;
  std::int32_t code = 0;
  std::int64_t at_ns = 0;  // the machine's monotonic clock, the same in all processes
  std::uint64_t bytes_sent = 0, operations = 0;
  char text[kReportBytes - 40] = {};
};

using Body = absl::Status (*)(Communicator&, const Clock&, int socket);

class Processes : public RankProcesses {
 public:
  Processes(TransportKind transport, int ranks, Body body)
      : RankProcesses(ranks, [&](int rank, int socket) { member(transport, rank, ranks, socket, body); }) {}

  Report report(int r) const { return RankProcesses::report<Report>(r); }

 private:
  static void member(TransportKind transport, int rank, int ranks, int socket, Body body) {
    SystemClock clock;
    Report report;
    const absl::Status status = [&]() -> absl::Status {
      FabricOptions options;
      options.arena_bytes = std::size_t{64} << 20;
      PL_ASSIGN_OR_RETURN(auto fabric, Fabric::create(options, clock));
      std::vector<std::string> names;
      for (int r = 0; r < ranks; ++r) names.push_back("worker-" + std::to_string(r));
      PL_ASSIGN_OR_RETURN(const Group group, meet(*fabric, transport, rank, names, socket));
      PL_ASSIGN_OR_RETURN(auto communicator,
                          fabric->connect(group, Deadline::after(clock.now(), std::chrono::seconds(60))));
      const absl::Status result = body(*communicator, clock, socket);
      report.at_ns = clock.now().time_since_epoch().count();
      report.bytes_sent = communicator->counters().bytes_sent;
      report.operations = communicator->counters().operations;
      return result;
    }();
    report.code = static_cast<std::int32_t>(status.code());
    std::strncpy(report.text, std::string(status.message()).c_str(), sizeof(report.text) - 1);
    (void)send_all(socket, &report, sizeof(report));
  }
};

// Sums until something goes wrong; says once that it is under way.
template <int kDeadlineMs>
absl::Status sum_for_ever(Communicator& communicator, const Clock& clock, int socket) {
  std::vector<float> data(5'000);
  for (int step = 0;; ++step) {
    std::fill(data.begin(), data.end(), 1.0f);
    PL_RETURN_IF_ERROR(
        communicator.all_reduce(data.data(), data.size(), DType::kF32, ReduceOp::kSum,
                                Deadline::after(clock.now(), std::chrono::milliseconds(kDeadlineMs))));
    if (data[0] != static_cast<float>(communicator.world_size())) return absl::InternalError("a wrong sum");
    if (step == 20) {
      Report report;
      report.under_way = 1;
      if (!send_all(socket, &report, sizeof(report))) return test_is_gone();
    }
  }
}

absl::Status a_hundred_sums(Communicator& communicator, const Clock& clock, int) {
  std::vector<double> data(777);
  for (int step = 0; step < 100; ++step) {
    std::fill(data.begin(), data.end(), communicator.rank() + 1.0);
    PL_RETURN_IF_ERROR(communicator.all_reduce(data.data(), data.size(), DType::kF64, ReduceOp::kSum,
                                               Deadline::after(clock.now(), std::chrono::seconds(60))));
    const double n = communicator.world_size();
    if (data[776] != n * (n + 1) / 2) return absl::InternalError("a wrong sum");
  }
  return absl::OkStatus();
}

absl::Status one_large_ring(Communicator& communicator, const Clock& clock, int) {
  std::vector<float> data(250'000, 1.0f);
  return communicator.all_reduce(data.data(), data.size(), DType::kF32, ReduceOp::kSum,
                                 Deadline::after(clock.now(), std::chrono::seconds(60)), Algorithm::kRing);
}

class CollectiveProcesses : public ::testing::TestWithParam<TransportKind> {};

TEST_P(CollectiveProcesses, SixteenOnWhateverCoresThereAre) {
  Processes processes(GetParam(), 16, a_hundred_sums);
  for (int r = 0; r < 16; ++r) {
    const Report report = processes.report(r);
    EXPECT_EQ(report.code, 0) << report.text;
    EXPECT_EQ(report.operations, 100u);
  }
}

TEST_P(CollectiveProcesses, RingSendsTheOptimum) {
  Processes processes(GetParam(), 4, one_large_ring);
  const double optimum = 2.0 * 3 / 4 * 250'000 * 4;
  for (int r = 0; r < 4; ++r) {
    const Report report = processes.report(r);
    EXPECT_EQ(report.code, 0) << report.text;
    EXPECT_NEAR(static_cast<double>(report.bytes_sent), optimum, 0.005 * optimum);
  }
}

TEST_P(CollectiveProcesses, TheKilledRankIsNamedAtOnce) {
  Processes processes(GetParam(), 4, sum_for_ever<30'000>);
  for (int r = 0; r < 4; ++r) ASSERT_EQ(processes.report(r).under_way, 1u);
  SystemClock clock;
  const std::int64_t killed_at = clock.now().time_since_epoch().count();
  processes.signal(2, SIGKILL);
  std::int64_t slowest = 0;
  for (int r : {0, 1, 3}) {
    const Report report = processes.report(r);
    EXPECT_EQ(report.code, static_cast<int>(absl::StatusCode::kUnavailable)) << report.text;
    EXPECT_NE(std::string(report.text).find("rank 2 (worker-2)"), std::string::npos) << report.text;
    slowest = std::max(slowest, report.at_ns - killed_at);
  }
  RecordProperty("noticed_us", std::to_string(slowest / 1000));
  EXPECT_LT(slowest, 1'000'000'000) << "ns";
}

TEST_P(CollectiveProcesses, TheFrozenRankIsNamedAtTheDeadline) {
  Processes processes(GetParam(), 3, sum_for_ever<1'500>);
  for (int r = 0; r < 3; ++r) ASSERT_EQ(processes.report(r).under_way, 1u);
  processes.signal(1, SIGSTOP);
  for (int r : {0, 2}) {
    const Report report = processes.report(r);
    EXPECT_EQ(report.code, static_cast<int>(absl::StatusCode::kDeadlineExceeded)) << report.text;
    EXPECT_NE(std::string(report.text).find("rank 1 (worker-1)"), std::string::npos) << report.text;
  }
}

INSTANTIATE_TEST_SUITE_P(Transports, CollectiveProcesses,
                         ::testing::Values(TransportKind::kSharedMemory, TransportKind::kTcp),
                         [](const auto& param) {
                           return param.param == TransportKind::kTcp ? "Tcp" : "SharedMemory";
                         });

}  // namespace
}  // namespace paceline::collective
