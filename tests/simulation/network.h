#pragma once

// The model of the network: who reaches whom, and the Attach streams between members and controllers. A
// stream loses and reorders nothing: what can't pass waits, and a stream that is cut for long breaks, at each
// end in its own time. Each direction between two ends is cut by itself.

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "controller/coordinator/job.h"
#include "proto/paceline/v1/coordinator.pb.h"
#include "tests/simulation/trace.h"

namespace paceline::simulation {

using Host = int;  // nodes from 0, controllers from kControllers
inline constexpr Host kControllers = 100;

class Link;

class Network {
 public:
  Network(Events& events, Dice dice) : events_(events), dice_(dice) {}

  bool reaches(Host from, Host to) const;
  void cut(Host from, Host to);
  void heal(Host from, Host to);
  // All that goes in and out.
  void cut_off(Host host, bool off);
  void heal_all();
  // Messages take longer from now on; zero: as ever.
  void slow_down(Duration by) { slow_ = by; }
  Duration latency();
  // A controller stands still: it answers its members' keep-alive no more.
  void stands_still(const Process& controller);
  // When an end notices that a stream is cut, or that nobody answers.
  Duration keep_alive() { return dice_.between(std::chrono::seconds(5), std::chrono::seconds(12)); }
  // Hears of every change of who reaches whom.
  void on_cut(std::function<void()> hears) { on_cut_.push_back(std::move(hears)); }

  std::shared_ptr<Link> open(Process& member, Host node, Process& controller, Host host);
  std::vector<std::shared_ptr<Link>> links();

 private:
  friend class Link;
  void changed();

  Events& events_;
  Dice dice_;
  Duration slow_{};
  std::set<std::pair<Host, Host>> cuts_;
  std::set<Host> off_;
  std::vector<std::weak_ptr<Link>> links_;
  std::vector<std::function<void()>> on_cut_;
};

// One Attach stream. The member's end sends up, the server's end down; each hears in its own process.
class Link final : public coordinator::Outlet, public std::enable_shared_from_this<Link> {
 public:
  Link(Network& network, Process& member, Host node, Process& controller, Host host)
      : network_(network), member_(member), controller_(controller), node_(node), host_(host) {}

  // --- the member's end
  std::function<void(const v1::CoordinatorMessage&)> on_message;
  std::function<void(const absl::Status&, const std::string& leader)> on_ended;
  void send_up(v1::MemberMessage message) { up_.push({std::move(message), false}, *this); }
  void half_close() { up_.push({{}, true}, *this); }
  // The member's process is gone, or has let go of the stream.
  void drop();

  void check_answer(const Process& controller);

  // --- the server's end
  std::function<void()> on_open;  // once, before the first message
  std::function<void(v1::MemberMessage)> on_received;
  std::function<void(const std::string& why)> on_closed;  // no more comes from the member
  void send(v1::CoordinatorMessage message) override;
  void finish(absl::Status status) override { finish_to(std::move(status), ""); }
  void finish_to(absl::Status status, const std::string& leader);
  // The controller's process is gone.
  void lose_server();

  // Both ends notice in time that nothing passes.
  void check_cut();
  Host node() const { return node_; }
  Host host() const { return host_; }

 private:
  template <typename T>
  struct Way {
    void push(T item, Link& link);
    void move_on(Link& link);
    bool up = false;
    std::deque<std::pair<TimePoint, T>> queue;
    bool busy = false;
  };
  struct Up {
    v1::MemberMessage message;
    bool closes = false;
  };
  struct Down {
    v1::CoordinatorMessage message;
    bool ends = false;
    absl::Status status;
    std::string leader;
  };
  void deliver(Up item);
  void deliver(Down item);
  void close_server(const std::string& why);
  void end_member(const absl::Status& status, const std::string& leader);

  Network& network_;
  Process& member_;
  Process& controller_;
  const Host node_, host_;
  Way<Up> up_{.up = true};
  Way<Down> down_;
  bool finishing_ = false, member_ended_ = false, server_closed_ = false, member_gone_ = false,
       server_gone_ = false;
};

}  // namespace paceline::simulation
