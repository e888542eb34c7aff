#include "tests/simulation/nodes.h"

#include <algorithm>
#include <csignal>
#include <utility>

namespace paceline::simulation {

using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {
constexpr Duration kUnheard = seconds(45);     // until the control plane gives a node up
constexpr Duration kTolerated = seconds(300);  // and until it takes its pods
}  // namespace

Nodes::Nodes(Surroundings around, Network& network, ApiServer& api, int count, OpenLink open)
    : around_(around),
      network_(network),
      api_(api),
      count_(count),
      open_(std::move(open)),
      clock_(around.events) {}

bool Nodes::is_there(const std::string& key, const std::string& uid) const {
  const cluster::Pod* const pod = api_.pod(key);
  return pod != nullptr && pod->uid == uid;
}

MemberProcess* Nodes::process_of(const std::string& uid) const {
  const auto found = by_uid_.find(uid);
  return found == by_uid_.end() ? nullptr : found->second;
}

std::vector<MemberProcess*> Nodes::alive() const {
  std::vector<MemberProcess*> alive;
  for (const auto& each : members_) {
    if (each->alive()) alive.push_back(each.get());
  }
  return alive;
}

void Nodes::on_change(const ApiServer::Change& change) {
  if (change.kind != ApiServer::Kind::kPod || change.removed) return;
  const cluster::Pod& pod = *change.pod;
  const std::string key = change.key, uid = pod.uid;
  if (places_.try_emplace(uid, -1).second) {
    // Scheduling, the image, the container.
    const Duration wait = around_.dice.chance(0.05) ? around_.dice.between(seconds(10), seconds(60))
                                                    : around_.dice.between(milliseconds(300), seconds(4));
    return around_.events.after(wait, [this, key, uid] { start(key, uid); });
  }
  if (pod.deleting)
    around_.events.after(around_.dice.between(milliseconds(5), milliseconds(500)),
                         [this, key, uid] { end_deleted(key, uid); });
}

std::optional<Host> Nodes::choose_node(const cluster::Pod& pod) {
  std::vector<Host> ready, better;
  for (Host node = 0; node < count_; ++node) {
    const std::string name = str_cat("node-", node);
    if (lost_.contains(node) || (careful_ && pod.spec.avoid_host == name)) continue;
    ready.push_back(node);
    if (std::ranges::find(pod.spec.shunned_hosts, name) == pod.spec.shunned_hosts.end())
      better.push_back(node);
  }
  if (ready.empty() || (room_ && static_cast<int>(alive().size()) >= *room_)) return std::nullopt;
  return around_.dice.one_of(careful_ && !better.empty() ? better : ready);
}

void Nodes::start(const std::string& key, const std::string& uid) {
  if (!is_there(key, uid)) return;
  const cluster::Pod& pod = *api_.pod(key);
  if (pod.deleting) return;
  const std::optional<Host> chosen = choose_node(pod);
  if (!chosen) return around_.events.after(seconds(2), [this, key, uid] { start(key, uid); });
  const Host node = *chosen;
  places_[uid] = node;
  std::map<std::string, std::string> variables = pod.spec.env;
  variables["PACELINE_POD_UID"] = uid;
  auto environment = member::parse_environment(variables);
  if (!environment.ok()) {
    around_.trace.fail("a pod's environment is whole", std::string(environment.status().message()));
    return;
  }
  auto made = std::make_unique<MemberProcess>(
      around_, *std::move(environment), pod.spec.job_uid, node,
      [this, uid](const std::string& leader) { return open_(*by_uid_.at(uid), leader); },
      [this, key, uid](int code) { ended(key, uid, code, std::nullopt, code == 0 ? "Completed" : "Error"); });
  MemberProcess* const member = by_uid_[uid] = made.get();
  members_.push_back(std::move(made));
  around_.trace.add(member->name(), " (", uid, ") starts on node ", node);
  if (slow_.contains(node)) member->slow_down(slow_.at(node));
  member->start();
  report(key, uid, [this, node](cluster::Pod& running) {
    if (running.ended()) return;
    running.phase = cluster::PodPhase::kRunning;
    running.host = str_cat("node-", node);
    running.started = clock_.wall_now();
  });
}

// A kubelet that is cut off tells when it is back.
void Nodes::report(const std::string& key, const std::string& uid, std::function<void(cluster::Pod&)> edit) {
  const Host node = places_.at(uid);
  Events::Action tell = [this, key, uid, node, edit = std::move(edit)] {
    const auto apply = [this, key, uid, edit] {
      if (is_there(key, uid)) api_.edit_pod(key, edit);
    };
    if (lost_.contains(node)) {
      kept_[node].emplace_back(apply);
    } else {
      apply();
    }
  };
  around_.events.after(around_.dice.between(milliseconds(20), milliseconds(1500)), std::move(tell));
}

void Nodes::ended(const std::string& key, const std::string& uid, std::optional<int> code,
                  std::optional<int> signal, const std::string& reason) {
  const WallTime finished = clock_.wall_now();
  report(key, uid, [=](cluster::Pod& pod) {
    if (pod.ended()) return;
    pod.phase = code == 0 ? cluster::PodPhase::kSucceeded : cluster::PodPhase::kFailed;
    pod.exit_code = code;
    pod.signal = signal;
    if (!pod.deleting || pod.reason.empty()) pod.reason = reason;
    pod.node_not_ready = false;
    pod.finished = finished;
  });
  if (is_there(key, uid) && api_.pod(key)->deleting) remove_later(key, uid);
}

void Nodes::end_deleted(const std::string& key, const std::string& uid) {
  if (!is_there(key, uid)) return;
  const Host node = places_.at(uid);
  if (lost_.contains(node)) {
    kept_[node].emplace_back([this, key, uid] { end_deleted(key, uid); });
    return;
  }
  const Duration grace = api_.grace(key);
  const auto known = told_.find(uid);
  if (known != told_.end() && known->second <= grace) return;
  told_[uid] = grace;
  MemberProcess* const process = process_of(uid);
  if (process == nullptr || !process->alive()) return remove_later(key, uid);
  process->ask_to_stop();
  around_.events.after(grace, [this, process] { end_by_force(*process); });
}

void Nodes::end_by_force(MemberProcess& process) {
  if (!lost_.contains(process.node())) return kill(process, SIGKILL);
  kept_[process.node()].emplace_back([this, one = &process] { end_by_force(*one); });
}

void Nodes::remove_later(const std::string& key, const std::string& uid) {
  const Host node = places_.at(uid);
  around_.events.after(around_.dice.between(milliseconds(1600), seconds(3)), [this, key, uid, node] {
    if (!is_there(key, uid)) return;
    if (lost_.contains(node)) {
      kept_[node].emplace_back([this, key, uid] { remove_later(key, uid); });
    } else {
      api_.remove_pod(key);
    }
  });
}

void Nodes::kill(MemberProcess& member, int signal, const std::string& reason) {
  if (!member.alive()) return;
  around_.trace.add(member.name(), " is killed by signal ", signal, " at step ", member.step());
  member.kill();
  ended(member.pod_key(), member.environment().pod_uid, std::nullopt, signal, reason);
}

void Nodes::slow_down(MemberProcess& member, double factor) {
  const auto of_node = slow_.find(member.node());
  member.slow_down(std::max(factor, of_node == slow_.end() ? 1 : of_node->second));
}

void Nodes::slow_down(Host node, double factor) {
  slow_[node] = factor;
  for (MemberProcess* const each : alive()) {
    if (each->node() == node) each->slow_down(factor);
  }
}

void Nodes::end_slowness() {
  for (Host node = 0; node < count_; ++node) slow_down(node, 1);
}

void Nodes::lose_node(Host node, bool power) {
  if (lost_.contains(node)) return;
  const std::uint64_t loss = lost_[node] = ++losses_;
  around_.trace.add("node ", node, power ? " loses power" : " is cut off");
  network_.cut_off(node, true);
  if (power) {
    for (MemberProcess* const each : alive()) {
      if (each->node() == node) kill(*each, SIGKILL);
    }
  }
  const auto still = [this, node, loss] { return lost_.contains(node) && lost_.at(node) == loss; };
  const auto on_pods = [this, node](const auto& action) {
    for (const cluster::Pod* const pod : api_.pods()) {
      if (process_of(pod->uid) != nullptr && places_.at(pod->uid) == node)
        action(str_cat(pod->spec.ns, "/", pod->spec.name));
    }
  };
  around_.events.after(kUnheard, [this, still, on_pods, node] {
    if (!still()) return;
    around_.trace.add("node ", node, " is given up");
    on_pods([this](const std::string& key) {
      api_.edit_pod(key,
                    [](cluster::Pod& pod) { pod.node_not_ready = pod.phase == cluster::PodPhase::kRunning; });
    });
    around_.events.after(kTolerated, [this, still, on_pods] {
      if (!still()) return;
      on_pods([this](const std::string& key) {
        api_.delete_pod(key, "", seconds(30), "DeletionByTaintManager").IgnoreError();
      });
    });
  });
}

void Nodes::return_node(Host node) {
  if (lost_.erase(node) == 0) return;
  around_.trace.add("node ", node, " is back");
  network_.cut_off(node, false);
  for (const cluster::Pod* const pod : api_.pods()) {
    if (process_of(pod->uid) == nullptr || places_.at(pod->uid) != node || !pod->node_not_ready) continue;
    api_.edit_pod(str_cat(pod->spec.ns, "/", pod->spec.name),
                  [](cluster::Pod& back) { back.node_not_ready = false; });
  }
  for (const Events::Action& action : std::exchange(kept_[node], {})) {
    around_.events.after(around_.dice.between(milliseconds(100), seconds(2)), action);
  }
}

}  // namespace paceline::simulation
