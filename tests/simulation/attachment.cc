#include "tests/simulation/attachment.h"

#include <algorithm>
#include <utility>

#include "controller/coordinator/core.h"

namespace paceline::simulation {

namespace {
constexpr Duration kFirstInterval = std::chrono::milliseconds(200);
constexpr Duration kFirstBackoff = std::chrono::milliseconds(20),
                   kLastBackoff = std::chrono::milliseconds(500);
constexpr Duration kConnectLimit = std::chrono::seconds(2);
constexpr Duration kGoodbyeLimit = std::chrono::seconds(2), kTakenLimit = std::chrono::seconds(20);
std::vector<std::string> members_of(const v1::View& view) {
  std::vector<std::string> members;
  for (const v1::ViewMember& each : view.members()) members.push_back(each.member_id());
  return members;
}
}  // namespace

Attachment::Attachment(member::Environment environment, Process& process, const Clock& clock, Dice& dice,
                       Open open, std::function<void()> on_change)
    : environment_(std::move(environment)),
      member_id_(environment_.member_id()),
      process_(process),
      clock_(clock),
      dice_(dice),
      open_(std::move(open)),
      on_change_(std::move(on_change)),
      progress_(&clock),
      next_beat_(clock.now()) {}

void Attachment::pump() {
  if (goodbye_sent_) return;
  const TimePoint now = clock_.now();
  if (std::exchange(stream_ended_, false)) {
    line_ = Line::kDown;
    const bool told = leader_.empty() && !told_leader_.empty();
    leader_ = told ? std::exchange(told_leader_, "") : "";
    if (told) next_try_ = now;
  }
  if (line_ != Line::kUp && status_.ok()) reconnect(now);
  if (line_ == Line::kUp) {
    down_since_.reset();
    backoff_ = kFirstBackoff;
    send_reports();
    send_heartbeat(now);
  }
  Duration wait = std::min(kFirstInterval, interval_);
  if (line_ == Line::kUp) wait = std::min(wait, next_beat_ - now);
  if (line_ == Line::kDown && status_.ok()) wait = std::min(wait, next_try_ - now);
  const std::uint64_t number = ++pumps_;
  process_.after(std::max(wait, Duration(std::chrono::milliseconds(1))), [this, number] {
    if (number == pumps_) pump();
  });
}

void Attachment::reconnect(TimePoint now) {
  if (!down_since_) {
    down_since_ = next_try_ = now;
    backoff_ = kFirstBackoff;
  }
  if (now - *down_since_ > reattach_limit_ && welcomed_)
    return end(absl::UnavailableError("the coordinator is gone for too long"));
  if (now < next_try_ || line_ != Line::kDown) return;
  next_try_ = now + dice_.between(backoff_ / 2, backoff_);
  backoff_ = std::min(2 * backoff_, kLastBackoff);
  if (link_) link_->drop();
  line_ = Line::kOpening;
  reports_.new_stream();
  link_ = open_(leader_);
  const std::shared_ptr<Link> link = link_;
  if (link == nullptr) {
    process_.after(dice_.between(std::chrono::milliseconds(1), std::chrono::milliseconds(20)), [this] {
      stream_ended_ = true;
      pump();
    });
    return;
  }
  link->on_message = [this](const v1::CoordinatorMessage& message) { on_message(message); };
  link->on_ended = [this](const absl::Status&, const std::string& leader) {
    stream_ended_ = true;
    told_leader_ = leader;
    if (goodbye_sent_) return over(true);
    pump();
  };
  process_.after(kConnectLimit, [this, link] {
    if (link != link_ || line_ != Line::kOpening) return;
    link->drop();
    stream_ended_ = true;
    pump();
  });
  link->send_up(hello());
}

v1::MemberMessage Attachment::hello() const {
  v1::MemberMessage message;
  v1::Hello& hello = *message.mutable_hello();
  hello.set_protocol_version(coordinator::kProtocolVersion);
  hello.set_member_id(member_id_);
  hello.set_job(environment_.job);
  hello.set_role(static_cast<v1::RoleKind>(environment_.role));
  hello.set_index(static_cast<std::uint32_t>(environment_.index));
  hello.set_pod(environment_.pod);
  hello.set_attempt(environment_.attempt);
  hello.set_incarnation(environment_.incarnation);
  hello.set_catches_up(true);
  hello.set_answers_preflight(true);
  hello.set_speaks_tls(true);
  hello.set_known_generation(view_.generation());
  for (int rank = 0; rank < view_.members_size(); ++rank) {
    if (view_.members(rank).member_id() != member_id_) continue;
    hello.set_held_generation(view_.generation());
    hello.set_held_size(static_cast<std::uint32_t>(view_.members_size()));
    hello.set_held_rank(static_cast<std::uint32_t>(rank));
    hello.set_held_share(view_.members(rank).share());
  }
  return message;
}

void Attachment::on_message(const v1::CoordinatorMessage& message) {
  switch (message.kind_case()) {
    case v1::CoordinatorMessage::kWelcome:
      line_ = Line::kUp;
      interval_ = std::chrono::milliseconds(message.welcome().heartbeat_interval_ms());
      if (message.welcome().reattach_limit_ms() > 0)
        reattach_limit_ = std::chrono::milliseconds(message.welcome().reattach_limit_ms());
      if (!std::exchange(welcomed_, true)) welcome_ = message.welcome();
      break;
    case v1::CoordinatorMessage::kView:
      if (message.view().generation() > view_.generation()) {
        view_ = message.view();
        viewed_by_ = link_->host();
      } else if (message.view().generation() == view_.generation()) {
        contradicted_ |= members_of(message.view()) != members_of(view_);
      }
      break;
    case v1::CoordinatorMessage::kCatchUp:
      catch_up(message.catch_up().group());
      break;
    case v1::CoordinatorMessage::kPreflight:
      check(message.preflight());
      break;
    case v1::CoordinatorMessage::kDrain:
      draining_ = std::max(draining_, message.drain().generation());
      break;
    case v1::CoordinatorMessage::kSave:
      break;
    case v1::CoordinatorMessage::kTaken:
      taken_ = std::max(taken_, message.taken().heartbeat());
      reports_.taken(message.taken().heartbeat());
      return;
    case v1::CoordinatorMessage::kEvict:
      to_save_ |= message.evict().save() && status_.ok();
      return end(message.evict().job_finished() ? absl::CancelledError(message.evict().reason())
                 : message.evict().discard()    ? absl::DataLossError(message.evict().reason())
                                                : absl::AbortedError(message.evict().reason()));
    case v1::CoordinatorMessage::KIND_NOT_SET:
      break;
  }
  if (leaving_) try_to_leave();
  pump();
  on_change_();
}

// The state itself goes with the next view's exchange: here it takes time, and may go wrong.
void Attachment::catch_up(const v1::View& group) {
  if (group.members_size() < 2 || group.members(0).member_id() != member_id_) return;
  v1::MemberMessage message;
  message.mutable_caught_up()->set_generation(group.generation());
  if (dice_.chance(0.2)) message.mutable_caught_up()->set_error("a source is gone");
  const auto wait = std::chrono::milliseconds(dice_.between(1, 3000));
  process_.after(wait, [this, message = std::move(message)] {
    reports_.add(message);
    pump();
  });
}

// The tests take time, and some members are bad in one of them, or do not answer.
void Attachment::check(const v1::Preflight& word) {
  if (dice_.chance(0.02)) return;
  const auto figure = [this] {
    const bool bad = dice_.chance(0.1);
    return static_cast<double>(bad ? dice_.between(30, 100) : dice_.between(10, 12)) / 1000;
  };
  v1::MemberMessage message;
  v1::PreflightResult& result = *message.mutable_preflight();
  result.set_number(word.number());
  result.set_compute_seconds(figure());
  if (word.has_group()) result.set_link_seconds(figure());
  const auto wait = std::chrono::milliseconds(dice_.between(300, 3000));
  process_.after(wait, [this, message = std::move(message)] {
    reports_.add(message);
    pump();
  });
}

void Attachment::end(absl::Status status) {
  if (!status_.ok()) return;
  status_ = std::move(status);
  if (leaving_) try_to_leave();
  on_change_();
}

void Attachment::send_reports() {
  while (const v1::MemberMessage* const next = reports_.next()) {
    link_->send_up(*next);
    reports_.sent(heartbeats_.number());
  }
}

void Attachment::send_heartbeat(TimePoint now) {
  if (now < next_beat_) return;
  next_beat_ += interval_ * ((now - next_beat_) / interval_ + 1);
  v1::MemberMessage message;
  *message.mutable_heartbeat() = heartbeats_.next(taken_);
  link_->send_up(std::move(message));
}

void Attachment::report_peer_fault(std::uint64_t generation, Step step, const std::string& peer,
                                   const std::string& why) {
  v1::MemberMessage message;
  v1::PeerFault& fault = *message.mutable_peer_fault();
  fault.set_generation(generation);
  fault.set_step(step);
  fault.set_peer_member_id(peer);
  fault.set_reason(why);
  reports_.add(std::move(message));
  pump();
}

void Attachment::report_checkpoint(const v1::CheckpointResult& result) {
  v1::MemberMessage message;
  *message.mutable_checkpoint() = result;
  reports_.add(std::move(message));
  pump();
}

void Attachment::leave(v1::Leaving leaving, std::function<void(bool)> done) {
  leaving_ = std::move(leaving);
  left_ = std::move(done);
  process_.after(kGoodbyeLimit, [this] {
    if (!goodbye_sent_) over(false);
  });
  try_to_leave();
}

void Attachment::try_to_leave() {
  if (goodbye_sent_ || !left_) return;
  const bool up = line_ == Line::kUp && !stream_ended_;
  if (!up) {
    if (!status_.ok()) over(false);
    return;
  }
  goodbye_sent_ = true;
  send_reports();
  const auto send = [this](const v1::Heartbeat& heartbeat) {
    v1::MemberMessage message;
    *message.mutable_heartbeat() = heartbeat;
    link_->send_up(std::move(message));
  };
  const bool repeats = heartbeats_.number() > taken_;
  send(heartbeats_.next(taken_));
  if (repeats) send(heartbeats_.newest());
  while (progress_.evaluations_wait()) send(heartbeats_.newest());
  v1::MemberMessage goodbye;
  *goodbye.mutable_leaving() = *leaving_;
  link_->send_up(std::move(goodbye));
  link_->half_close();
  process_.after(kTakenLimit, [this] { over(false); });
}

void Attachment::over(bool told) {
  if (const auto left = std::exchange(left_, nullptr)) left(told);
}

}  // namespace paceline::simulation
