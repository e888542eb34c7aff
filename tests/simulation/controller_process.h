#pragma once

// A controller's process: the real reconciler, coordinators, queue and election, over a model of its
// connection to the API server. Its watches lag, its calls take time, fail, or work and lose their answer; it
// may end in any call of a pass, and stand still in one.
//
// While a call takes time the world goes on in it, so that what happens then happens in the middle of a pass.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "controller/cluster/kube/object_store.h"
#include "controller/lease/election_core.h"
#include "controller/queue/work_queue.h"
#include "controller/reconcile/coordinators.h"
#include "controller/reconcile/reconciler.h"
#include "runtime/member/environment.h"
#include "tests/simulation/api_server.h"
#include "tests/simulation/network.h"

namespace paceline::simulation {

// How badly the API server serves this controller now.
struct ApiTrouble {
  double fails = 0, loses_answer = 0;  // of its calls
  Duration lag{};                      // of its watches, at most
  Duration slow{};                     // of its calls, at most
};

class ControllerProcess {
 public:
  struct World {
    Events& events;
    Dice& dice;
    Trace& trace;
    ApiServer& api;
    Network& network;
    std::function<bool()> over;  // nobody needs to go on
  };
  ControllerProcess(World world, int number);
  ~ControllerProcess();

  void start();
  void attach(const std::shared_ptr<Link>& link, const member::Environment& environment);
  void crash();
  // In the `calls`th call from now, before it or behind it.
  void crash_in(int calls) { crash_in_ = calls; }
  void pause() { process_.pause(); }
  void resume() { process_.resume(); }
  void jump(Duration by) { clock_.jump(by); }
  // Its watches break and begin anew. (Lists are never older than what was written: plan.h asks for it, and
  // the API server's are so.)
  void list_again();
  ApiTrouble& trouble() { return trouble_; }

  Process& process() { return process_; }
  bool alive() const { return process_.alive(); }
  bool leads() const { return reconciler_ != nullptr; }
  std::string describe(const std::string& key);  // what its coordinator knows, for people
  bool is_working() const { return working_; }
  const std::string& name() const { return name_; }
  Host host() const { return host_; }

 private:
  class Server;
  // Its coordinators' decisions, for the trace.
  class Narrator final : public coordinator::RunObserver {
   public:
    explicit Narrator(ControllerProcess& owner) : owner_(owner) {}
    void on_reason(std::string_view reason) override;

   private:
    ControllerProcess& owner_;
  };
  class SeenCluster;
  class SeenJobs;
  template <typename T>
  struct Cached {
    std::string key, job_key, resource_version;
    std::shared_ptr<const T> value;
    bool operator==(const Cached& other) const { return resource_version == other.resource_version; }
  };
  using Pods = kube::ObjectStore<Cached<cluster::Pod>>;
  using Jobs = kube::ObjectStore<Cached<reconcile::StoredJob>>;

  void elect();
  void after_lease(const absl::Status& status, std::optional<lease::Seen> seen, bool wrote);
  void lead();
  void lose(const std::string& why);
  void tick();
  void list(ApiServer::Kind kind, std::size_t count);
  void on_change(std::size_t number);
  void apply(std::size_t number);
  void publish(const kube::ObjectSink::Keys& keys);
  template <typename Answer>
  Answer call(const char* what, const std::function<Answer()>& work);
  void wait(Duration most);

  World world_;
  const std::string name_;
  const Host host_;
  Process process_;
  VirtualClock clock_;
  ApiTrouble trouble_;
  lease::ElectionCore election_;
  Pods pods_;
  Jobs jobs_;
  std::uint64_t round_ = 0;
  struct Watch {
    std::uint64_t epoch = 0;
    std::size_t next = 0;  // the first change that is not seen yet
    TimePoint last{};
  };
  Watch watches_[2];
  bool synced_ = false, working_ = false, told_leading_ = false;
  std::optional<int> crash_in_;
  Narrator narrator_{*this};
  std::unique_ptr<SeenCluster> cluster_;
  std::unique_ptr<SeenJobs> seen_jobs_;
  queue::WorkQueue queue_;
  Server* server_ = nullptr;
  std::unique_ptr<reconcile::Coordinators> coordinators_;
  std::unique_ptr<reconcile::Reconciler> reconciler_;
};

}  // namespace paceline::simulation
