// Workers and servers as real processes, some of which are killed.

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <string>
#include <vector>

#include "base/status.h"
#include "runtime/collective/fault.h"
#include "runtime/pserver/client.h"
#include "runtime/pserver/server.h"
#include "tests/integration/collective/rank_processes.h"

namespace paceline::pserver {
namespace {

using collective::receive_all;
using collective::send_all;
using collective::TransportKind;

constexpr int kWorkers = 2, kServers = 2;  // ranks 0 and 1, and 2 and 3
constexpr std::size_t kElements = 100'000;

// What a process tells the test: that it is under way, then how it ended.
struct Report {
  std::int32_t under_way = 0;
  std::int32_t code = 0;
  std::int32_t blamed = -1;
  float value = 0;  // worker 0: of all its weights, -1 where they differ
  char text[480] = {};
};

v1::ParameterServerSpec mode_of(v1::ParameterServerSpec::Synchronization synchronization) {
  v1::ParameterServerSpec mode;
  mode.set_synchronization(synchronization);
  mode.set_workers(kWorkers);
  mode.set_servers(kServers);
  mode.set_gradients_per_step(kWorkers);
  mode.set_units_per_step(kWorkers);
  return mode;
}

struct Job {
  TransportKind transport;
  v1::ParameterServerSpec::Synchronization synchronization;
  Step steps;
  bool held = false;  // a worker that is under way goes on when it is told
};

class Processes : public collective::RankProcesses {
 public:
  explicit Processes(const Job& job)
      : RankProcesses(kWorkers + kServers, [&](int rank, int socket) { member(job, rank, socket); }) {}

  void kill(int r) const { signal(r, SIGKILL); }
  void go_on(int r) const { EXPECT_TRUE(send_all(socket(r), "", 1)); }
  Report report(int r) const { return RankProcesses::report<Report>(r); }

 private:
  static void member(const Job& job, int rank, int socket) {
    Report report;
    const absl::Status status = [&]() -> absl::Status {
      SystemClock clock;
      const auto soon = [&] { return Deadline::after(clock.now(), std::chrono::seconds(60)); };
      collective::FabricOptions options;
      options.arena_bytes = std::size_t{64} << 20;
      PL_ASSIGN_OR_RETURN(auto fabric, collective::Fabric::create(options, clock));
      PL_ASSIGN_OR_RETURN(
          const collective::Group group,
          collective::meet(*fabric, job.transport, rank, {"worker-0", "worker-1", "ps-0", "ps-1"}, socket));
      const ClientOptions shape{kWorkers, kServers, 64 << 10};
      if (rank >= kWorkers) {
        ServerOptions server_options;
        server_options.shape = shape;
        server_options.optimizer.set_learning_rate(1);
        server_options.units_per_step = kWorkers;
        server_options.holds = holds_of(mode_of(job.synchronization));
        server_options.policy = [&](const PolicyStart& start) {
          return make_policy(mode_of(job.synchronization), start);
        };
        PL_ASSIGN_OR_RETURN(auto server, Server::connect(*fabric, group, server_options, clock, soon()));
        return server->run(soon());
      }
      PL_ASSIGN_OR_RETURN(auto memory, fabric->arena().allocate(kElements * sizeof(float)));
      const std::span<float> gradient(reinterpret_cast<float*>(memory.data()), kElements);
      std::vector<float> weights(kElements);
      tensor::ParameterLayout layout{.parameters = {}, .elements = kElements, .trained_elements = kElements};
      layout.parameters.push_back({.name = "w", .dims = {}, .offset = 0, .count = kElements, .decay = false});
      PL_ASSIGN_OR_RETURN(auto client,
                          Client::connect(*fabric, group, shape, layout, weights, gradient, clock, soon()));
      if (rank == 0) {
        InitialState state;
        const std::vector<float> zeros(kElements);
        state.weights = zeros;
        state.start.total_steps = job.steps;
        PL_RETURN_IF_ERROR(client->initialize(state, soon()));
      }
      for (int k = 0;; ++k) {
        PL_ASSIGN_OR_RETURN(const TurnResult turn, client->wait_turn(soon()));
        if (turn.finished) break;
        if (k == 20) {
          Report under_way;
          under_way.under_way = 1;
          if (!send_all(socket, &under_way, sizeof(under_way))) return collective::test_is_gone();
          char go = 0;
          if (job.held && !receive_all(socket, &go, 1)) return collective::test_is_gone();
        }
        std::fill(gradient.begin(), gradient.end(), -1.0F);
        PL_RETURN_IF_ERROR(client->push(kElements / 2, kElements));
        PL_RETURN_IF_ERROR(client->push(0, kElements / 2));
        PL_RETURN_IF_ERROR(client->commit({1, 1, {}}));
      }
      const bool whole =
          std::count(weights.begin(), weights.end(), weights[0]) == static_cast<std::ptrdiff_t>(kElements);
      report.value = whole ? weights[0] : -1;
      return client->leave();
    }();
    report.code = static_cast<std::int32_t>(status.code());
    report.blamed = collective::faulty_rank(status).value_or(-1);
    std::strncpy(report.text, std::string(status.message()).c_str(), sizeof(report.text) - 1);
    (void)send_all(socket, &report, sizeof(report));
  }
};

class PsProcesses : public ::testing::TestWithParam<TransportKind> {};
INSTANTIATE_TEST_SUITE_P(Media, PsProcesses,
                         ::testing::Values(TransportKind::kSharedMemory, TransportKind::kTcp),
                         [](const auto& info) {
                           return info.param == TransportKind::kTcp ? "Tcp" : "SharedMemory";
                         });

constexpr Step kForEver = 1'000'000'000;

// The first of them is the sequencer.
TEST_P(PsProcesses, AKilledServerIsNamedByAll) {
  for (const int killed : {2, 3}) {
    Processes all({GetParam(), v1::ParameterServerSpec::SYNCHRONOUS, kForEver});
    for (int w = 0; w < kWorkers; ++w) EXPECT_EQ(all.report(w).under_way, 1);
    all.kill(killed);
    for (const int rank : {0, 1, 5 - killed}) {
      const Report report = all.report(rank);
      EXPECT_EQ(report.code, static_cast<int>(absl::StatusCode::kUnavailable)) << report.text;
      EXPECT_EQ(report.blamed, killed) << report.text;
      if (killed == 3) {
        EXPECT_NE(std::string(report.text).find("ps-1"), std::string::npos) << report.text;
      }
    }
  }
}

TEST_P(PsProcesses, TheOthersFinishWithoutAKilledWorker) {
  constexpr Step kSteps = 1000;
  Processes all({GetParam(), v1::ParameterServerSpec::ASYNCHRONOUS, kSteps, /*held=*/true});
  for (const int w : {0, 1}) EXPECT_EQ(all.report(w).under_way, 1);
  all.go_on(1);
  all.kill(1);
  all.go_on(0);
  for (const int rank : {0, 2, 3}) {
    const Report report = all.report(rank);
    EXPECT_EQ(report.code, 0) << report.text;
    if (rank == 0) {
      EXPECT_EQ(report.value, static_cast<float>(kSteps * kWorkers)) << "every unit once, everywhere";
    }
  }
}

}  // namespace
}  // namespace paceline::pserver
