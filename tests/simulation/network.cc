#include "tests/simulation/network.h"

namespace paceline::simulation {

namespace {
constexpr Duration kRetransmit = std::chrono::milliseconds(150);
}  // namespace

bool Network::reaches(Host from, Host to) const {
  return !cuts_.contains({from, to}) && (from == to || (!off_.contains(from) && !off_.contains(to)));
}

void Network::cut(Host from, Host to) {
  cuts_.insert({from, to});
  changed();
}

void Network::heal(Host from, Host to) {
  cuts_.erase({from, to});
  changed();
}

void Network::cut_off(Host host, bool off) {
  if (off) {
    off_.insert(host);
  } else {
    off_.erase(host);
  }
  changed();
}

void Network::heal_all() {
  cuts_.clear();
  slow_ = {};
  changed();
}

void Network::changed() {
  for (const auto& link : links()) link->check_cut();
  for (const auto& hears : on_cut_) hears();
}

void Network::stands_still(const Process& controller) {
  for (const auto& link : links()) link->check_answer(controller);
}

Duration Network::latency() {
  const Duration slow = slow_ > Duration::zero() ? dice_.between(Duration::zero(), slow_) : Duration::zero();
  return dice_.between(std::chrono::microseconds(100), std::chrono::milliseconds(2)) + slow;
}

std::shared_ptr<Link> Network::open(Process& member, Host node, Process& controller, Host host) {
  auto link = std::make_shared<Link>(*this, member, node, controller, host);
  std::erase_if(links_, [](const auto& each) { return each.expired(); });
  links_.push_back(link);
  link->check_cut();
  return link;
}

std::vector<std::shared_ptr<Link>> Network::links() {
  std::vector<std::shared_ptr<Link>> all;
  for (const auto& each : links_) {
    if (auto link = each.lock()) all.push_back(std::move(link));
  }
  return all;
}

template <typename T>
void Link::Way<T>::push(T item, Link& link) {
  TimePoint at = link.network_.events_.now() + link.network_.latency();
  if (!queue.empty()) at = std::max(at, queue.back().first);
  queue.emplace_back(at, std::move(item));
  if (!busy) move_on(link);
}

template <typename T>
void Link::Way<T>::move_on(Link& link) {
  busy = !queue.empty();
  if (!busy) return;
  link.network_.events_.at(queue.front().first, [this, self = link.shared_from_this()] {
    const bool passes = up ? self->network_.reaches(self->node_, self->host_)
                           : self->network_.reaches(self->host_, self->node_);
    if (!passes) {
      queue.front().first = self->network_.events_.now() + kRetransmit;
      return move_on(*self);
    }
    T item = std::move(queue.front().second);
    queue.pop_front();
    self->deliver(std::move(item));
    move_on(*self);
  });
}

void Link::send(v1::CoordinatorMessage message) {
  if (!finishing_ && !server_gone_) down_.push({.message = std::move(message)}, *this);
}

void Link::finish_to(absl::Status status, const std::string& leader) {
  if (std::exchange(finishing_, true) || server_gone_) return;
  down_.push({.ends = true, .status = std::move(status), .leader = leader}, *this);
}

// Messages to an end that is gone are dropped; those that a process sent before it ended still arrive.
void Link::deliver(Up item) {
  if (server_closed_ || server_gone_) return;
  if (item.closes) return close_server("the member closed it");
  controller_.soon([self = shared_from_this(), message = std::move(item.message)]() mutable {
    if (const auto open = std::exchange(self->on_open, nullptr)) open();
    if (!self->server_closed_ && self->on_received) self->on_received(std::move(message));
  });
}

void Link::deliver(Down item) {
  if (member_ended_ || member_gone_) return;
  if (item.ends) return end_member(item.status, item.leader);
  member_.soon([self = shared_from_this(), message = std::move(item.message)] {
    if (!self->member_ended_ && !self->member_gone_ && self->on_message) self->on_message(message);
  });
}

void Link::close_server(const std::string& why) {
  controller_.soon([self = shared_from_this(), why] {
    if (!std::exchange(self->server_closed_, true) && self->on_closed) self->on_closed(why);
  });
}

void Link::end_member(const absl::Status& status, const std::string& leader) {
  member_.soon([self = shared_from_this(), status, leader] {
    if (self->member_gone_ || std::exchange(self->member_ended_, true)) return;
    self->close_server("");  // gRPC is done with it
    if (self->on_ended) self->on_ended(status, leader);
  });
}

// The server's end hears of it as of a goodbye, or by its keep-alive where nothing passes.
void Link::drop() {
  if (std::exchange(member_gone_, true)) return;
  up_.push({{}, true}, *this);
  on_message = nullptr;
  on_ended = nullptr;
}

void Link::lose_server() {
  if (std::exchange(server_gone_, true)) return;
  on_open = nullptr;
  on_received = nullptr;
  on_closed = nullptr;
  down_.push({.ends = true, .status = absl::UnavailableError("the connection broke")}, *this);
}

void Link::check_answer(const Process& controller) {
  if (&controller != &controller_) return;
  const Duration patience = network_.keep_alive();
  network_.events_.after(patience, [self = shared_from_this(), patience] {
    if (self->controller_.paused_for() >= patience)
      self->end_member(absl::UnavailableError("nobody answers"), "");
  });
}

void Link::check_cut() {
  const auto is_cut = [this] { return !network_.reaches(node_, host_) || !network_.reaches(host_, node_); };
  if (!is_cut()) return;
  for (const bool server : {false, true}) {
    network_.events_.after(network_.keep_alive(), [self = shared_from_this(), is_cut, server] {
      if (!is_cut()) return;
      if (server) {
        if (self->server_gone_) return;
        self->close_server("the connection broke");
        self->finish_to(absl::UnavailableError("the connection broke"), "");  // it hears once it is reached
      } else if (!self->member_gone_) {
        self->end_member(absl::UnavailableError("the connection broke"), "");
      }
    });
  }
}

}  // namespace paceline::simulation
