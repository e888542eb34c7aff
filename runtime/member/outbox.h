#pragma once

// What a member has told its coordinator and must not be lost when a stream breaks with it under way, or a
// new coordinator takes over: it is kept until the coordinator says Taken (docs/protocol.md), and sent again
// on the next stream. Plain values; the caller guards them.

#include <cstdint>
#include <deque>

#include "proto/paceline/v1/coordinator.pb.h"
#include "runtime/member/progress.h"

namespace paceline::member {

// Heartbeats, one after the other: the next one's records stay on the board until the last one's are taken.
class Heartbeats {
 public:
  explicit Heartbeats(Progress& progress) : progress_(progress) {}

  // What to send now: what is new since the last heartbeat if that one is taken, else what that one brought,
  // under its number. Either way with the values of now. The thread that collects.
  const v1::Heartbeat& next(std::uint64_t taken);
  // What is new, whether or not the last one is taken: for a goodbye, after next().
  const v1::Heartbeat& newest();
  // Of the last heartbeat, from 1; 0: there was none.
  std::uint64_t number() const { return beat_.number(); }

 private:
  Progress& progress_;
  v1::Heartbeat beat_;
};

// Reports (faults, checkpoints), in order. They bear no numbers of their own: a report has arrived when a
// heartbeat was taken that first went out after it, on the same stream.
class Reports {
 public:
  // Beyond these a report is dropped. Of faults a server has one for each worker that it lost its link to,
  // and the coordinator counts them.
  static constexpr std::size_t kMostFaults = 1024, kMostOthers = 64;

  void add(v1::MemberMessage report);
  // The first that this stream has not carried yet; null: none.
  const v1::MemberMessage* next() const;
  // next() was sent when heartbeat `last` was the last one that had gone out.
  void sent(std::uint64_t last);
  void taken(std::uint64_t heartbeat);
  void new_stream() { sent_ = 0; }

 private:
  struct Report {
    v1::MemberMessage message;
    std::uint64_t after = 0;
  };
  std::deque<Report> reports_;
  std::size_t faults_ = 0;  // among them
  std::size_t sent_ = 0;    // the first of them, on this stream
};

}  // namespace paceline::member
