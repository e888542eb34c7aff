#pragma once

// The model of nodes: their kubelets start and end the pods' processes and tell the API server of it, in
// their own time; the control plane gives up a node that is not heard of, and takes its pods.

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/simulation/api_server.h"
#include "tests/simulation/member_process.h"

namespace paceline::simulation {

class Nodes {
 public:
  // How a pod's process finds its coordinator.
  using OpenLink = std::function<std::shared_ptr<Link>(MemberProcess& member, const std::string& leader)>;

  Nodes(Surroundings around, Network& network, ApiServer& api, int count, OpenLink open);

  // Pods come to no node that they avoid, and rather not to those that they shun; and no more than `room` run
  // at once.
  void place_carefully(std::optional<int> room) {
    careful_ = true;
    room_ = room;
  }
  // The API server tells of every change.
  void on_change(const ApiServer::Change& change);
  const std::vector<std::unique_ptr<MemberProcess>>& members() const { return members_; }
  std::vector<MemberProcess*> alive() const;

  // --- faults
  void kill(MemberProcess& member, int signal, const std::string& reason = "Error");
  void lose_node(Host node, bool power);  // power: what ran there is gone; else it is cut off, and runs on
  void return_node(Host node);
  int count() const { return count_; }
  // One member, or all that are on a node and come there, take so many times as long for a step; 1: as ever.
  void slow_down(MemberProcess& member, double factor);
  void slow_down(Host node, double factor);
  void end_slowness();
  bool is_lost(Host node) const { return lost_.contains(node); }

 private:
  // A pod may run there now; nothing: it waits.
  std::optional<Host> choose_node(const cluster::Pod& pod);
  void start(const std::string& key, const std::string& uid);
  void ended(const std::string& key, const std::string& uid, std::optional<int> code,
             std::optional<int> signal, const std::string& reason);
  void end_by_force(MemberProcess& process);
  void end_deleted(const std::string& key, const std::string& uid);
  void report(const std::string& key, const std::string& uid, std::function<void(cluster::Pod&)> edit);
  void remove_later(const std::string& key, const std::string& uid);
  bool is_there(const std::string& key, const std::string& uid) const;
  MemberProcess* process_of(const std::string& uid) const;

  Surroundings around_;
  Network& network_;
  ApiServer& api_;
  const int count_;
  bool careful_ = false;
  std::optional<int> room_;
  std::map<Host, double> slow_;  // how many times as slow
  const OpenLink open_;
  VirtualClock clock_;
  std::vector<std::unique_ptr<MemberProcess>> members_;  // all that ever were
  std::map<std::string, MemberProcess*> by_uid_;
  std::map<std::string, Host> places_;    // of pods, by uid
  std::map<std::string, Duration> told_;  // SIGTERM and this grace, by uid
  std::map<Host, std::uint64_t> lost_;    // since which loss
  std::uint64_t losses_ = 0;
  std::map<Host, std::vector<Events::Action>>
      kept_;  // what a lost node's kubelet tells or does as it is back
};

}  // namespace paceline::simulation
