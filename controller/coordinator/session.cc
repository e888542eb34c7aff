#include "controller/coordinator/session.h"

#include <utility>

#include "base/text.h"
#include "controller/coordinator/server.h"

namespace paceline::coordinator {

Session::Session(StreamId stream, std::shared_ptr<Job> job, std::function<void()> on_done, TimePoint opened)
    : stream_(stream), job_(std::move(job)), on_done_(std::move(on_done)), opened_(opened) {}

void Session::begin(std::shared_ptr<Session> self) {
  self_ = std::move(self);
  StartRead(&incoming_);
}

void Session::send(v1::CoordinatorMessage message) {
  {
    std::lock_guard lock(mutex_);
    if (finishing_) return;
    if (queue_.size() < kMaxQueuedMessages) {
      queue_.push_back(std::move(message));
    } else {
      queue_.clear();
      finishing_ = true;
      status_ = absl::ResourceExhaustedError(
          str_cat("the member does not read: ", kMaxQueuedMessages, " messages wait"));
    }
  }
  pump();
}

void Session::finish(absl::Status status) {
  {
    std::lock_guard lock(mutex_);
    if (std::exchange(finishing_, true)) return;
    status_ = std::move(status);
  }
  pump();
}

// One lock for the look and the end: a Hello that came in between would be taken, and its stream ended.
void Session::expect_hello(TimePoint now, Duration timeout) {
  {
    std::lock_guard lock(mutex_);
    if (greeted_ || now - opened_ <= timeout || std::exchange(finishing_, true)) return;
    status_ = absl::DeadlineExceededError(str_cat("no Hello within ", format_duration(timeout)));
  }
  pump();
}

// One write at a time; Finish after the last. Both are called without the lock, their turn being reserved
// under it.
void Session::pump() {
  bool end = false;
  absl::Status status;
  {
    std::lock_guard lock(mutex_);
    if (busy_ || finished_) return;
    if (!queue_.empty() && !cancelled_) {
      outgoing_ = std::move(queue_.front());
      queue_.pop_front();
      busy_ = true;
    } else if (finishing_) {
      end = finished_ = true;
      status = status_;
    } else {
      return;
    }
  }
  if (end) {
    Finish(grpc::Status(static_cast<grpc::StatusCode>(status.code()), std::string(status.message())));
  } else {
    StartWrite(&outgoing_);
  }
}

void Session::OnReadDone(bool ok) {
  bool first = false, cancelled = false;
  {
    std::lock_guard lock(mutex_);
    first = ok && !std::exchange(greeted_, true);
    cancelled = cancelled_;
    if (first && finishing_) return;  // a Hello that came too late: its stream ends, it is nobody's
  }
  if (!ok) {
    job_->feed(StreamEnded{stream_, cancelled ? "the connection broke" : "the member closed it"});
    return finish(absl::OkStatus());
  }
  if (!first) {
    job_->feed(Received{stream_, std::move(incoming_)});
  } else if (incoming_.has_hello()) {
    job_->attach(stream_, self_, incoming_.hello());
  } else {
    finish(absl::InvalidArgumentError("the first message of a stream must be a Hello"));
  }
  incoming_.Clear();
  StartRead(&incoming_);
}

void Session::OnWriteDone(bool ok) {
  {
    std::lock_guard lock(mutex_);
    busy_ = false;
    if (!ok) cancelled_ = true;
  }
  pump();
}

void Session::OnCancel() {
  {
    std::lock_guard lock(mutex_);
    cancelled_ = true;
  }
  job_->feed(StreamEnded{stream_, "the connection broke"});
  finish(absl::CancelledError("the connection broke"));
  pump();
}

void Session::OnDone() {
  job_->feed(StreamEnded{stream_, ""});
  on_done_();
  const auto last = std::move(self_);  // may be the end of this object
}

}  // namespace paceline::coordinator
