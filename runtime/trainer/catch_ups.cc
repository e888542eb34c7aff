#include "runtime/trainer/catch_ups.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/status.h"
#include "runtime/trainer/limits.h"
#include "runtime/trainer/view_group.h"

namespace paceline::trainer {

CatchUps::CatchUps(member::Membership& membership, collective::Fabric& fabric, const Clock& clock,
                   const Logger& logger)
    : membership_(membership), fabric_(fabric), clock_(clock), logger_(logger) {}

void CatchUps::offer(Replica* newcomer) {
  state_.lock()->newcomer = newcomer;
}

void CatchUps::begin(const v1::CatchUp& catch_up) {
  auto group = group_of(catch_up.group(), membership_.member_id(), membership_.welcome());
  if (!group.ok()) return logger_.warning(str_cat("no catch-up: ", group.status().message()));
  const Generation generation = group->generation;
  if (group->rank == 0) return receive(*std::move(group));
  if (generation != membership_.newest_view()) return;
  auto sender = std::make_unique<catch_up::StateSender>(fabric_, clock_, *std::move(group));
  state_.lock()->sending.push_back({generation, std::move(sender)});
}

void CatchUps::receive(collective::Group group) {
  const Generation generation = group.generation;
  const auto on_news = [this, generation](const absl::Status& status) {
    membership_.report_caught_up(generation, std::string(status.message()));
  };
  std::shared_ptr<catch_up::StateReceiver> before;
  bool ready = false;
  {
    auto state = state_.lock();
    if (state->receiver != nullptr && state->receiver->generation() == generation) return;  // told again
    ready = state->newcomer != nullptr;
    if (ready) before = std::move(state->receiver);
  }
  if (!ready) return on_news(absl::FailedPreconditionError("it is not ready for the state"));
  before.reset();  // it writes no more to where the next one does
  auto state = state_.lock();
  if (state->newcomer == nullptr) return;  // it has entered a view meanwhile
  state->receiver = std::make_shared<catch_up::StateReceiver>(fabric_, clock_, std::move(group),
                                                              state->newcomer->learned(), on_news);
}

void CatchUps::cancel() {
  const std::shared_ptr<catch_up::StateReceiver> receiver = state_.lock()->receiver;
  if (receiver != nullptr) receiver->cancel();
}

std::optional<bool> CatchUps::enter(Generation view) {
  std::shared_ptr<catch_up::StateReceiver> receiver;
  Replica* newcomer = nullptr;
  {
    auto state = state_.lock();
    newcomer = std::exchange(state->newcomer, nullptr);
    receiver = state->receiver;
    if (receiver != nullptr) state->entering = view;
  }
  if (receiver == nullptr) return std::nullopt;
  close_earlier(membership_.newest_view());  // it may have come before
  const auto learned = receiver->finish(Deadline::after(clock_.now(), kLoadLimit));
  {
    auto state = state_.lock();
    state->entering.reset();
    state->receiver.reset();
  }
  if (!learned.ok()) {
    logger_.info(str_cat("has not caught up: ", learned.status().message()));
    return false;
  }
  newcomer->set_learned(*learned);
  logger_.info(str_cat("caught up with step ", learned->step,
                       " while the others trained: ", receiver->bytes_received(), " bytes"));
  return true;
}

void CatchUps::close_earlier(Generation newest) {
  std::shared_ptr<catch_up::StateReceiver> receiver;
  {
    auto state = state_.lock();
    if (state->entering && *state->entering < newest) receiver = state->receiver;
  }
  if (receiver != nullptr) receiver->cancel();
}

void CatchUps::step_applied(Replica& replica, bool last) {
  auto state = state_.lock();
  if (state->sending.empty()) return;
  if (replica.on_device() != nullptr) {
    for (const Sending& each : state->sending) each.sender->refuse();
    return;
  }
  const catch_up::StateView view = replica.shared();
  for (const Sending& each : state->sending) {
    if (last) {
      each.sender->end(view, replica.last_update());
    } else {
      each.sender->lend(view, replica.last_update());
    }
  }
  lent_ = !last;
}

void CatchUps::take_back() {
  if (!std::exchange(lent_, false)) return;
  auto state = state_.lock();
  for (const Sending& each : state->sending) each.sender->take_back();
}

void CatchUps::leave(Generation before) {
  std::vector<Sending> gone;  // ends without the lock
  auto state = state_.lock();
  const auto first = std::stable_partition(state->sending.begin(), state->sending.end(),
                                           [&](const Sending& each) { return each.generation >= before; });
  std::move(first, state->sending.end(), std::back_inserter(gone));
  state->sending.erase(first, state->sending.end());
  for (const Sending& each : gone) {
    if (const absl::Status status = each.sender->status(); !status.ok())
      logger_.info(str_cat("a newcomer was not given the state: ", status.message()));
  }
}

}  // namespace paceline::trainer
