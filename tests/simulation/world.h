#pragma once

// One seed's world: a job, a cluster with its controllers, nodes and network, and what happens to them. The
// real controller and the real parts of a member act in it (controller_process.h, member_process.h); all else
// is modelled.
//
// Faults come while the job trains, and end; then all is mended, and the job must end within kPatience: with
// success where its policies allow that.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/simulation/checks.h"
#include "tests/simulation/controller_process.h"
#include "tests/simulation/nodes.h"
#include "tests/simulation/scenario.h"
#include "tests/simulation/storage.h"

namespace paceline::simulation {

struct Outcome {
  std::optional<std::string> failure;  // of a check
  std::vector<std::string> trace;      // its last lines
  std::uint64_t events = 0;
  HandoverChecks::Counts handovers;
  int shares_set = 0;  // anew, of the same members
  Duration time{};     // virtual
};

class World {
 public:
  static constexpr Duration kPatience =
      std::chrono::minutes(40);  // for the end, once nothing disturbs any more

  World(std::uint64_t seed, bool prints);
  Outcome run();

 private:
  friend struct Faults;
  void on_change(const ApiServer::Change& change);
  std::shared_ptr<Link> open(MemberProcess& member, const std::string& leader);
  void collect_garbage();
  void start_controller();
  void mend();
  void look();                 // every second
  bool is_reached(Host node);  // by a controller
  bool over() const { return over_ || trace_.failure().has_value(); }

  const Scenario scenario_;
  Events events_;
  Dice dice_;
  Trace trace_;
  ApiServer api_;
  Network network_;
  Exchange exchange_;
  Storage storage_;
  Checks checks_;
  Nodes nodes_;
  std::vector<std::unique_ptr<ControllerProcess>> controllers_;  // all that ever were
  int replicas_ = 1;                                             // of the controller
  std::map<Host, TimePoint> unreached_;                          // when it was last found so
  std::optional<TimePoint> calm_;                                // since when nothing disturbs any more
  bool over_ = false;
  std::optional<TimePoint> ended_;  // when the status said so
};

}  // namespace paceline::simulation
