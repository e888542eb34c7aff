#include "runtime/member/outbox.h"

#include <utility>

#include "base/check.h"

namespace paceline::member {

const v1::Heartbeat& Heartbeats::next(std::uint64_t taken) {
  if (number() <= taken) return newest();
  progress_.refresh(&beat_);
  return beat_;
}

const v1::Heartbeat& Heartbeats::newest() {
  const std::uint64_t last = number();
  progress_.collect(&beat_);
  beat_.set_number(last + 1);
  return beat_;
}

void Reports::add(v1::MemberMessage report) {
  const bool fault = report.has_peer_fault();
  if (fault ? faults_ >= kMostFaults : reports_.size() - faults_ >= kMostOthers) return;
  faults_ += fault ? 1 : 0;
  reports_.push_back({std::move(report), 0});
}

const v1::MemberMessage* Reports::next() const {
  return sent_ < reports_.size() ? &reports_[sent_].message : nullptr;
}

void Reports::sent(std::uint64_t last) {
  PL_CHECK(sent_ < reports_.size(), "there was one to send");
  reports_[sent_++].after = last;
}

void Reports::taken(std::uint64_t heartbeat) {
  for (; sent_ > 0 && reports_.front().after < heartbeat; --sent_) {
    faults_ -= reports_.front().message.has_peer_fault() ? 1 : 0;
    reports_.pop_front();
  }
}

}  // namespace paceline::member
