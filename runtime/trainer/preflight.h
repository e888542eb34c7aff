#pragma once

// A member's part in the check before the first step (spec.preflight): the same work on each member's device,
// and an all-reduce between two members at a time. docs/protocol.md has the messages.
//
// Links are made by a fabric of its own, with small memory, so that nothing of the check is left in the
// training's: not a connection, not a generation, not a byte of registered memory. The first message of a
// check makes it, and it goes with this object.
//
// answer() is the training thread's; cancel() and supersede() may be called from any thread.

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "base/clock.h"
#include "base/guarded.h"
#include "proto/paceline/v1/coordinator.pb.h"
#include "runtime/collective/fabric.h"
#include "runtime/trainer/workload.h"

namespace paceline::trainer {

struct PreflightOptions {
  Duration compute = std::chrono::milliseconds(300);  // that the test of computing takes
  Duration most_compute = std::chrono::seconds(8);    // of one unit of it
  Duration most_link = std::chrono::seconds(8);       // for the links of one message, with the wait for peers
};

class Preflight {
 public:
  // `over`: nobody waits for the answer any more. All outlive it.
  Preflight(const std::string& member_id, const v1::Welcome& welcome, collective::Fabric& training,
            const Workload& workload, const Clock& clock, std::function<bool()> over,
            PreflightOptions options = {});

  // Takes the time that the tests take, and seconds at most. What could not be done is 0, and `error` says
  // why.
  v1::PreflightResult answer(const v1::Preflight& word);
  // A test of links that is under way ends with this, for good.
  void cancel(const absl::Status& why);
  // The tests for messages before this one end, too: nobody waits for their answers any more.
  void supersede(std::uint64_t number);

  // An all-reduce of so many bytes so many times, after one that is not timed. What is told of a link are
  // four times of those, the first quartile: a process that has to wait for a processor is no slow link.
  static constexpr std::size_t kLinkBytes = std::size_t{2} << 20;
  static constexpr std::size_t kLinkTimes = 16, kTold = 4;

 private:
  struct Links {
    std::shared_ptr<collective::Fabric> fabric;
    std::shared_ptr<collective::Communicator> communicator;  // under way; null: none
    std::uint64_t number = 0;                                // of the message that it is for
    std::uint64_t newest = 0;                                // tests for messages before that are over
    absl::Status cancelled;

    absl::Status may_test(std::uint64_t message) const;
  };
  absl::StatusOr<double> compute(std::uint64_t message);
  absl::Status open();
  absl::StatusOr<double> test_links(const v1::Preflight& word);
  absl::StatusOr<double> test_link(const collective::Group& group, std::uint64_t message, Deadline deadline);

  const std::string& member_id_;
  const v1::Welcome& welcome_;
  collective::Fabric& training_;
  const Workload& workload_;
  const Clock& clock_;
  const std::function<bool()> over_;
  const PreflightOptions options_;
  std::span<std::byte> memory_;  // of the fabric's arena
  Guarded<Links> links_;
};

}  // namespace paceline::trainer
