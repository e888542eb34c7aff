#include "tests/simulation/faults.h"

#include <algorithm>
#include <csignal>

namespace paceline::simulation {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

namespace {
constexpr char kJob[] = "default/sim";
}  // namespace

void Faults::strike(FaultKind kind) {
  if (world.over_) return;
  world.trace_.add("fault: ", name(kind));
  if (kind <= FaultKind::kEvictPod) return on_members(kind);
  if (kind <= FaultKind::kSlowNetwork) return on_nodes(kind);
  if (kind <= FaultKind::kListAgain) return on_controllers(kind);
  if (kind >= FaultKind::kSlowMember) return on_speed(kind);
  on_job(kind);
}

void Faults::on_members(FaultKind kind) {
  Dice& dice = world.dice_;
  std::vector<MemberProcess*> members = world.nodes_.alive();
  if (members.empty()) return;
  MemberProcess* const one = dice.one_of(members);
  const std::string pod = str_cat("default/", one->name());
  switch (kind) {
    case FaultKind::kKill: {
      world.nodes_.kill(*one, SIGKILL);
      MemberProcess* const other = dice.one_of(members);
      if (dice.chance(0.3))
        later(dice.between(milliseconds(0), milliseconds(5)),
              [w = &world, other] { w->nodes_.kill(*other, SIGKILL); });
      return;
    }
    case FaultKind::kKillAll:
      for (MemberProcess* const each : members) world.nodes_.kill(*each, SIGKILL);
      return;
    case FaultKind::kOutOfMemory:
      return world.nodes_.kill(*one, SIGKILL, "OOMKilled");
    case FaultKind::kFail:
      return one->fail();
    case FaultKind::kPause:
    case FaultKind::kFreeze: {
      one->pause();
      world.trace_.add(one->name(), " stands still");
      const Duration time = kind == FaultKind::kPause ? dice.between(milliseconds(50), seconds(2))
                                                      : dice.between(seconds(4), minutes(3));
      if (kind == FaultKind::kFreeze && dice.chance(0.5)) return;  // for good
      return later(time, [one] { one->resume(); });
    }
    case FaultKind::kHang:
      // Two that hang would not wait for each other.
      if (std::ranges::none_of(members, [](const MemberProcess* each) { return each->hangs(); })) one->hang();
      return;
    case FaultKind::kEvictPod:
      return world.api_.delete_pod(pod, one->environment().pod_uid, seconds(30), "EvictionByEvictionAPI")
          .status()
          .IgnoreError();
    default:
      return world.api_.delete_pod(pod, one->environment().pod_uid, seconds(dice.chance(0.3) ? 0 : 30))
          .status()
          .IgnoreError();
  }
}

void Faults::on_nodes(FaultKind kind) {
  Dice& dice = world.dice_;
  World* const w = &world;
  const Host node = static_cast<Host>(dice.between(0, world.nodes_.count() - 1));
  const Host other = static_cast<Host>(dice.between(0, world.nodes_.count() - 1));
  switch (kind) {
    case FaultKind::kLosePower:
    case FaultKind::kCutOffNode:
      world.nodes_.lose_node(node, kind == FaultKind::kLosePower);
      return later(
          dice.chance(0.5) ? dice.between(seconds(2), seconds(40)) : dice.between(minutes(1), minutes(10)),
          [w, node] { w->nodes_.return_node(node); });
    case FaultKind::kCutStream: {
      const bool up = dice.chance(0.7), down = !up || dice.chance(0.5);
      for (const auto& each : world.controllers_) {
        if (up) world.network_.cut(node, each->host());
        if (down) world.network_.cut(each->host(), node);
      }
      world.trace_.add("node ", node, " and the controllers: ", up ? "nothing passes up " : "",
                       down ? "nothing passes down" : "");
      return later(dice.between(milliseconds(200), seconds(30)), [w, node] {
        for (const auto& each : w->controllers_) {
          w->network_.heal(node, each->host());
          w->network_.heal(each->host(), node);
        }
      });
    }
    case FaultKind::kCutData:
      if (node == other) return;
      world.network_.cut(node, other);
      world.trace_.add("nothing passes from node ", node, " to node ", other);
      return later(dice.between(milliseconds(200), seconds(40)),
                   [w, node, other] { w->network_.heal(node, other); });
    default:
      world.network_.slow_down(dice.between(milliseconds(10), seconds(1)));
      return later(dice.between(seconds(1), seconds(20)), [w] { w->network_.slow_down({}); });
  }
}

void Faults::on_controllers(FaultKind kind) {
  Dice& dice = world.dice_;
  std::vector<ControllerProcess*> alive, leading;
  for (const auto& each : world.controllers_) {
    if (each->alive()) alive.push_back(each.get());
    if (each->alive() && each->leads()) leading.push_back(each.get());
  }
  if (alive.empty()) return;
  ControllerProcess* const one = dice.one_of(leading.empty() || dice.chance(0.1) ? alive : leading);
  switch (kind) {
    case FaultKind::kCrashController:
      return one->crash();
    case FaultKind::kCrashInPass:
      return one->crash_in(static_cast<int>(dice.between(1, 8)));
    case FaultKind::kPauseController:
      world.trace_.add(one->name(), " stands still");
      one->pause();
      world.network_.stands_still(one->process());
      return later(dice.chance(0.4) ? dice.between(milliseconds(100), seconds(8))
                                    : dice.between(seconds(9), seconds(60)),
                   [one] { one->resume(); });
    case FaultKind::kApiTrouble:
      one->trouble().fails = dice.chance(0.3) ? 1 : 0.4;
      one->trouble().loses_answer = 0.3;
      return later(dice.between(seconds(1), seconds(20)),
                   [one] { one->trouble().fails = one->trouble().loses_answer = 0; });
    case FaultKind::kLag:
      one->trouble().lag = dice.between(milliseconds(100), seconds(15));
      one->trouble().slow = dice.chance(0.5) ? dice.between(milliseconds(10), seconds(2)) : Duration::zero();
      return later(dice.between(seconds(5), minutes(1)),
                   [one] { one->trouble().lag = one->trouble().slow = {}; });
    default:
      return one->list_again();
  }
}

void Faults::on_job(FaultKind kind) {
  Dice& dice = world.dice_;
  World* const w = &world;
  switch (kind) {
    case FaultKind::kConflict:
      for (int i = 0; i < 20; ++i) {
        later(i * milliseconds(dice.between(10, 300)),
              [w] { w->api_.edit_job(kJob, [](reconcile::StoredJob&) {}); });
      }
      return;
    case FaultKind::kJumpClock:
      for (const auto& each : world.controllers_) each->jump(dice.between(-minutes(30), minutes(30)));
      return;
    case FaultKind::kResize: {
      const auto& worker = world.scenario_.job.job.spec.replica_specs.worker;
      if (!worker || !worker->max_replicas) return;
      const std::int64_t wanted = dice.between(worker->min_replicas.value_or(1), *worker->max_replicas);
      const std::int64_t chiefs = world.scenario_.job.job.spec.replica_specs.chief ? 1 : 0;
      world.checks_.may_have(wanted + chiefs, wanted + chiefs);
      world.trace_.add("the job is to have ", wanted, " workers");
      return world.api_.edit_job(kJob, [wanted](reconcile::StoredJob& job) {
        job.job.spec.replica_specs.worker->replicas = wanted;
        ++job.generation.value;
      });
    }
    case FaultKind::kSuspend: {
      const auto suspend = [w](bool suspended) {
        w->api_.edit_job(kJob, [suspended](reconcile::StoredJob& job) {
          job.job.spec.run_policy.suspend = suspended;
          ++job.generation.value;
        });
      };
      suspend(true);
      return later(dice.between(milliseconds(5), seconds(20)), [suspend] { suspend(false); });
    }
    default: {
      if (world.api_.job(kJob) == nullptr) return;
      world.api_.delete_job(kJob, "").IgnoreError();
      return later(dice.chance(0.5) ? Duration::zero() : dice.between(milliseconds(1), seconds(10)),
                   [w] { w->api_.create_job(w->scenario_.job).IgnoreError(); });
    }
  }
}

// For a while, or until all is mended.
void Faults::on_speed(FaultKind kind) {
  Dice& dice = world.dice_;
  World* const w = &world;
  const double factor =
      static_cast<double>(dice.chance(0.1) ? dice.between(40, 80) : dice.between(13, 40)) / 10;
  const Duration time = dice.chance(0.4) ? dice.between(seconds(5), minutes(1)) : minutes(60);
  if (kind == FaultKind::kSlowNode) {
    const auto node = static_cast<Host>(dice.between(0, world.nodes_.count() - 1));
    world.nodes_.slow_down(node, factor);
    world.trace_.add("node ", node, " is ", factor, " times as slow");
    return later(time, [w, node] { w->nodes_.slow_down(node, 1); });
  }
  const std::vector<MemberProcess*> members = world.nodes_.alive();
  if (members.empty()) return;
  MemberProcess* const one = dice.one_of(members);
  world.nodes_.slow_down(*one, factor);
  world.trace_.add(one->name(), " is ", factor, " times as slow");
  return later(time, [w, one] { w->nodes_.slow_down(*one, 1); });
}

}  // namespace paceline::simulation
