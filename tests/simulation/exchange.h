#pragma once

// The model of the data links: communicators of one view each. An operation is over for a member in its own
// time once all members have entered it; a member that goes away, or closes its end, breaks it for those for
// whom it is not over by then: so some may have a step, and others not.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "runtime/trainer/state_source.h"
#include "runtime/trainer/step_machine.h"
#include "tests/simulation/network.h"

namespace paceline::simulation {

// A member's part of an operation.
struct Part {
  std::string what;  // "step 12": the same on all
  trainer::Held held;
  std::uint64_t sum = 0, weights = 0;
  Step step = 0;
  trainer::Agreement wishes;
};

class Communicator : public std::enable_shared_from_this<Communicator> {
 public:
  // `parts`: of all ranks. An error names the rank that is at fault, or -1.
  using Done = std::function<void(const absl::Status& error, int faulty, const std::vector<Part>& parts)>;

  Communicator(Events& events, Dice& dice, Network& network, Trace& trace, std::string name, std::size_t size)
      : events_(events), dice_(dice), network_(network), trace_(trace), name_(std::move(name)), ends_(size) {}

  void join(int rank, Process& process, Host node);
  // One at a time for each rank. Over after `limit` at the latest.
  void enter(int rank, Part part, Duration limit, Done done);
  // The end of this rank is closed: what it waits for fails at once, and for the others soon. `in_order`:
  // what it has sent still arrives.
  void close(int rank, const absl::Status& why, bool in_order);
  // Links that nothing passes break in time.
  void check_cut();

 private:
  struct End {
    Process* process = nullptr;
    Host node = 0;
    std::size_t entered = 0, over = 0;  // operations
    absl::Status closed;
    int faulty = -1;
    Done done;
  };
  void complete(int rank, std::size_t number);
  bool is_cut(int a, int b) const;
  void finish(int rank, const absl::Status& error);
  void break_end(int rank, int faulty, Duration wait, std::size_t from);

  Events& events_;
  Dice& dice_;
  Network& network_;
  Trace& trace_;
  const std::string name_;
  std::vector<End> ends_;
  std::map<std::size_t, std::vector<std::optional<Part>>> operations_;
};

class Exchange {
 public:
  Exchange(Events& events, Dice dice, Network& network, Trace& trace)
      : events_(events), dice_(dice), network_(network), trace_(trace) {
    network_.on_cut([this] {
      for (const auto& [_, each] : communicators_) each->check_cut();
    });
  }
  // Members that agree on all of `name` share one.
  std::shared_ptr<Communicator> connect(const std::string& name, std::size_t size) {
    auto& there = communicators_[name];
    if (there == nullptr)
      there = std::make_shared<Communicator>(events_, dice_, network_, trace_, name, size);
    return there;
  }

 private:
  Events& events_;
  Dice dice_;
  Network& network_;
  Trace& trace_;
  std::map<std::string, std::shared_ptr<Communicator>> communicators_;
};

}  // namespace paceline::simulation
