#pragma once

// One Attach stream on the server: gRPC's reactor, with a bounded queue of what is to be sent. It keeps
// itself alive until gRPC is done with it.

#include <grpcpp/grpcpp.h>

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "absl/status/status.h"
#include "base/clock.h"
#include "controller/coordinator/job.h"

namespace paceline::coordinator {

class Session final : public Outlet,
                      public grpc::ServerBidiReactor<v1::MemberMessage, v1::CoordinatorMessage> {
 public:
  // `on_done`: gRPC is done with it; from one of gRPC's threads, without locks held.
  Session(StreamId stream, std::shared_ptr<Job> job, std::function<void()> on_done, TimePoint opened);
  // Begins reading. `self` is kept until gRPC is done.
  void begin(std::shared_ptr<Session> self);

  void send(v1::CoordinatorMessage message) override;
  void finish(absl::Status status) override;
  TimePoint opened() const { return opened_; }
  // Ends the stream where nobody has said Hello by now.
  void expect_hello(TimePoint now, Duration timeout);

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  void pump();

  const StreamId stream_;
  const std::shared_ptr<Job> job_;
  const std::function<void()> on_done_;
  const TimePoint opened_;
  std::shared_ptr<Session> self_;
  v1::MemberMessage incoming_;       // gRPC's while a read is under way
  v1::CoordinatorMessage outgoing_;  // gRPC's while busy_

  std::mutex mutex_;  // guards what follows
  std::deque<v1::CoordinatorMessage> queue_;
  bool greeted_ = false;    // Hello has come
  bool cancelled_ = false;  // the connection is gone
  bool busy_ = false;       // a write is under way
  bool finishing_ = false;  // no more sends are taken
  bool finished_ = false;   // Finish was called
  absl::Status status_;
};

}  // namespace paceline::coordinator
