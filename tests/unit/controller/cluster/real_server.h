#pragma once

// KubeCluster on a real API server, with real kubelets: what the contract test runs against where
// PACELINE_CONTRACT_KUBECONFIG names a cluster whose nodes are processes of this machine and have the image
// paceline/busybox:1 (tests/cluster/contract_test.py). Its pods are in namespace default.

#include <signal.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>

#include "base/guarded.h"
#include "controller/cluster/kube/curl_transport.h"
#include "controller/cluster/kube/kube_cluster.h"

namespace paceline {

inline constexpr char kContractKubeconfig[] = "PACELINE_CONTRACT_KUBECONFIG";

class RealServer {
 public:
  RealServer() {
    const char* const file = std::getenv(kContractKubeconfig);
    PL_CHECK(file != nullptr, "it is asked for by this variable");
    const auto variable = [](const char*) { return std::optional<std::string>(); };
    const auto access =
        kube::find_access({.kubeconfig = file, .context = "", .variable = variable}, clock_, Logger::none());
    PL_CHECK(access.ok(), "the kubeconfig can be read");
    auto transport = kube::open_curl_transport(access->endpoint, access->credentials, Logger::none());
    PL_CHECK(transport.ok(), "its endpoint can be right");
    transport_ = *std::move(transport);
    api_ = std::make_unique<kube::ApiClient>(*transport_, clock_, 1);
    cluster_ = std::make_unique<kube::KubeCluster>(
        *api_, clock_, Logger::none(),
        kube::KubeClusterOptions{.ns = "default", .image = "paceline/busybox:1"});
    PL_CHECK(cluster_->wait_synced(std::chrono::seconds(60)).ok(), "the API server answers");
  }
  // The next test's pods have the same names.
  ~RealServer() {
    Guarded<int> calls(0);
    cluster_->watch([&](const std::string&) { ++*calls.lock(); });
    // Before it asks: what happens then is not missed.
    for (int seen = *calls.lock(); ask_all_to_end(); seen = *calls.lock()) {
      bool woken = false;
      (void)calls.lock_when([&](int count) { return count > seen; }, std::chrono::seconds(60), &woken);
      if (!woken) break;
    }
    cluster_->watch({});
  }
  kube::KubeCluster& cluster() { return *cluster_; }

  // To the shell that a pod's container began with.
  static void kill(const cluster::Pod& pod, int signal) {
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      const std::string pid = entry.path().filename();
      if (pid.find_first_not_of("0123456789") != std::string::npos) continue;
      if (text_of(entry.path() / "comm") != "sh\n") continue;
      if (text_of(entry.path() / "cgroup").find(pod.uid) == std::string::npos) continue;
      ::kill(static_cast<pid_t>(std::stol(pid)), signal);
    }
  }

 private:
  static std::string text_of(const std::filesystem::path& path) {
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  // Whether there are some.
  bool ask_all_to_end() {
    bool some = false;
    for (const char* job : {"job", "another"}) {
      const auto pods = cluster_->list_pods("default", job);
      PL_CHECK(pods.ok(), "they have been listed before");
      for (const cluster::Pod& pod : *pods) {
        some = true;
        if (!pod.deleting) (void)cluster_->delete_pod("default", pod.spec.name, pod.uid, {});
      }
    }
    return some;
  }

  SystemClock clock_;
  std::unique_ptr<kube::Transport> transport_;
  std::unique_ptr<kube::ApiClient> api_;
  std::unique_ptr<kube::KubeCluster> cluster_;
};

}  // namespace paceline
