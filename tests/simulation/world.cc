#include "tests/simulation/world.h"

#include <algorithm>
#include <csignal>
#include <utility>

#include "controller/plan/elastic.h"
#include "controller/plan/plan.h"
#include "tests/simulation/faults.h"

namespace paceline::simulation {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

namespace {
constexpr char kKey[] = "default/sim";
constexpr Duration kLately = seconds(40);  // whoever was out of reach may have been given up
constexpr Duration kTidyUp = minutes(8);   // after the end of the job, for whatever is left
}  // namespace

World::World(std::uint64_t seed, bool prints)
    : scenario_(seed),
      dice_(seed, 2),
      trace_(events_, prints),
      network_(events_, Dice(seed, 3)),
      exchange_(events_, Dice(seed, 4), network_, trace_),
      storage_(scenario_.keeps_checkpoints),
      checks_(trace_, scenario_.training, api_, scenario_.harmless, scenario_.keeps_checkpoints),
      nodes_({events_, dice_, trace_, exchange_, storage_, checks_, scenario_.training}, network_, api_,
             scenario_.nodes,
             [this](MemberProcess& member, const std::string& leader) { return open(member, leader); }) {
  if (scenario_.has_slow) nodes_.place_carefully(scenario_.room);
  checks_.know_members(nodes_.members());
  checks_.know_reach([this](Host node) { return events_.now() - unreached_[node] > kLately; });
  const api::TrainingJob& job = scenario_.job.job;
  const std::int64_t all = api::trainer_count(job);
  checks_.may_have(plan::is_elastic(job) ? std::min<std::int64_t>(all, plan::min_trainers(job)) : all, all);
  api_.watch([this](std::size_t number) { on_change(api_.change(number)); });
}

Outcome World::run() {
  trace_.add("a job of ", api::trainer_count(scenario_.job.job), " that train, for ",
             scenario_.training.plan.total_steps, " steps; ",
             scenario_.must_succeed ? "it must succeed" : "it may fail");
  for (int i = 0; i < scenario_.controllers; ++i) start_controller();
  events_.after(milliseconds(dice_.between(0, 1000)), [this] {
    if (!api_.create_job(scenario_.job).ok()) trace_.fail("the world begins", "there is a job already");
  });
  for (const Fault& fault : scenario_.faults) {
    events_.after(fault.at, [this, kind = fault.kind] { Faults{*this}.strike(kind); });
  }
  events_.after(scenario_.calm_after, [this] { mend(); });
  events_.after(seconds(1), [this] { look(); });
  const TimePoint end = events_.now() + scenario_.calm_after + kPatience;
  while (!over() && events_.run_next(end)) {
  }
  if (!over()) {
    for (const auto& each : controllers_) trace_.add(each->describe(kKey));
    for (const MemberProcess* const each : nodes_.alive()) trace_.add(each->describe());
  }
  if (!over())
    trace_.fail("the job ends", "it has not, ", format_duration(kPatience), " after the last fault");
  return {.failure = trace_.failure(),
          .trace = {trace_.lines().begin(), trace_.lines().end()},
          .events = events_.count(),
          .handovers = checks_.handovers().counts(),
          .shares_set = checks_.shares().changes(),
          .time = events_.elapsed()};
}

void World::on_change(const ApiServer::Change& change) {
  const int handovers = checks_.handovers().counts().begun;
  checks_.on_change(change);
  if (!calm_ && checks_.handovers().counts().begun > handovers) {
    for (const Fault& fault : scenario_.beside_handover)
      events_.after(fault.at, [this, kind = fault.kind] {
        if (!calm_) Faults{*this}.strike(kind);
      });
  }
  nodes_.on_change(change);
  if (change.kind == ApiServer::Kind::kJob && !change.removed) return;
  events_.after(dice_.between(milliseconds(500), seconds(5)), [this] { collect_garbage(); });
}

void World::collect_garbage() {
  const reconcile::StoredJob* const job = api_.job(kKey);
  for (const cluster::Pod* const pod : api_.pods()) {
    const bool owned = job != nullptr && pod->spec.job_uid == job->uid;
    if (!owned && !pod->deleting)
      api_.delete_pod(str_cat(pod->spec.ns, "/", pod->spec.name), pod->uid, seconds(30)).IgnoreError();
  }
}

std::shared_ptr<Link> World::open(MemberProcess& member, const std::string& leader) {
  std::vector<ControllerProcess*> there;
  for (const auto& each : controllers_) {
    if (each->alive() && (leader.empty() || each->name() == leader)) there.push_back(each.get());
  }
  if (there.empty()) return nullptr;
  ControllerProcess* const controller = dice_.one_of(there);
  member.tries(!controller->process().paused());
  auto link = network_.open(member.process(), member.node(), controller->process(), controller->host());
  link->on_open = [controller, weak = std::weak_ptr<Link>(link), environment = member.environment()] {
    if (const auto open = weak.lock()) controller->attach(open, environment);
  };
  return link;
}

void World::start_controller() {
  controllers_.push_back(std::make_unique<ControllerProcess>(
      ControllerProcess::World{events_, dice_, trace_, api_, network_, [this] { return over(); }},
      static_cast<int>(controllers_.size())));
  controllers_.back()->start();
}

void World::mend() {
  trace_.add("all is mended");
  calm_ = events_.now();
  network_.heal_all();
  for (Host node = 0; node < nodes_.count(); ++node) nodes_.return_node(node);
  const auto alive = nodes_.alive();
  for (MemberProcess* const each : alive) each->recover(alive.size() == 1);
  nodes_.end_slowness();
  for (const auto& each : controllers_) {
    each->resume();
    each->trouble() = {};
  }
  api_.edit_job(kKey, [](reconcile::StoredJob& job) {
    if (std::exchange(job.job.spec.run_policy.suspend, false)) ++job.generation.value;
  });
}

bool World::is_reached(Host node) {
  const auto reaches = [&](const auto& each) {
    return each->alive() && network_.reaches(node, each->host()) && network_.reaches(each->host(), node);
  };
  return std::ranges::any_of(controllers_, reaches);
}

void World::look() {
  for (Host node = 0; node < nodes_.count(); ++node) {
    if (!is_reached(node)) unreached_[node] = events_.now();
  }
  int controllers = 0;
  for (const auto& each : controllers_) controllers += each->alive() ? 1 : 0;
  // The Deployment of the controller starts another one.
  for (; controllers < scenario_.controllers; ++controllers) {
    events_.after(dice_.between(milliseconds(500), seconds(6)), [this] {
      int there = 0;
      for (const auto& each : controllers_) there += each->alive() ? 1 : 0;
      if (there < scenario_.controllers) start_controller();
    });
  }
  const reconcile::StoredJob* const job = api_.job(kKey);
  const bool ended = job != nullptr && plan::is_terminal(job->job.status.phase);
  if (!ended) ended_.reset();
  if (ended && !ended_) {
    ended_ = events_.now();
    if (scenario_.must_succeed && job->job.status.phase != api::Phase::kSucceeded)
      trace_.fail("the job succeeds", job->job.status.reason, ": ", job->job.status.message);
  }
  const auto alive = nodes_.alive();
  const bool disturbed = scenario_.faults.empty() || events_.elapsed() > scenario_.faults.back().at;
  const bool left = !alive.empty() || checks_.is_something_left();
  if (ended && !left && disturbed) over_ = true;
  if (ended && left && calm_ && events_.now() - *ended_ > kTidyUp &&
      events_.elapsed() - scenario_.calm_after > kTidyUp) {
    checks_.at_end({alive.begin(), alive.end()});
  }
  if (calm_ || scenario_.undisturbed) checks_.at_calm(events_.now(), calm_.value_or(TimePoint()));
  events_.after(seconds(1), [this] { look(); });
}

}  // namespace paceline::simulation
