#include "runtime/member/stream.h"

#include <grpcpp/grpcpp.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <utility>

#include "proto/paceline/v1/coordinator.grpc.pb.h"

// Sends come from outside of gRPC's reactions, so that the call is held (AddHold) until reading has ended and
// no send is under way. gRPC's Start* functions are called without our lock, their turn being reserved by a
// flag under it.

namespace paceline::member {

namespace {

constexpr int kMaxMessageBytes = 4 << 20;
constexpr char kCoordinatorName[] = "paceline-coordinator";
constexpr char kLeaderMetadata[] = "paceline-leader";
constexpr int kKeepaliveMs = 10'000;
// On this machine nothing gets lost on its way: who does not answer was stopped, and may go on.
constexpr Duration kStoppedLimit = std::chrono::seconds(5);

int milliseconds(Duration time) {
  return static_cast<int>(time / std::chrono::milliseconds(1));
}

bool is_this_machine(const std::string& address) {
  return address.starts_with("unix") || address.starts_with("127.");
}

std::shared_ptr<grpc::Channel> make_channel(const std::string& address, const std::string& authority,
                                            Duration connect_limit) {
  const Duration silence = is_this_machine(address) ? kStoppedLimit : kDeafLimit;
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL,
                   1);  // a new try is not held back by an earlier one's back-off
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, milliseconds(silence));  // TCP_USER_TIMEOUT, too
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, milliseconds(connect_limit));
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
  arguments.SetMaxSendMessageSize(kMaxMessageBytes);
  if (authority.empty())
    return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
  // Replicas are reached by a Service's name and by their own IPs; all have a certificate for this name.
  arguments.SetSslTargetNameOverride(kCoordinatorName);
  return grpc::CreateCustomChannel(address, grpc::SslCredentials({.pem_root_certs = authority}), arguments);
}

class GrpcStream final : public Stream,
                         public grpc::ClientBidiReactor<v1::MemberMessage, v1::CoordinatorMessage> {
 public:
  GrpcStream(const std::string& address, const Caller& caller, Handlers handlers, Duration connect_limit)
      : handlers_(std::move(handlers)),
        stub_(v1::Coordinator::NewStub(make_channel(address, caller.authority, connect_limit))) {
    {
      // Hands over what OnDone() reads: gRPC's own locks are invisible to ThreadSanitizer.
      const std::lock_guard lock(mutex_);
      context_.AddMetadata("authorization", "Bearer " + caller.token);
      context_.AddMetadata("paceline-job", caller.job);
      context_.AddMetadata("paceline-pod-uid", caller.pod_uid);
    }
    stub_->async()->Attach(&context_, this);
    AddHold();
    StartRead(&incoming_);
    StartCall();
  }

  ~GrpcStream() override {
    context_.TryCancel();
    std::unique_lock lock(mutex_);
    done_changed_.wait(lock, [this] { return done_; });
  }

  bool send(v1::MemberMessage message) override {
    {
      std::lock_guard lock(mutex_);
      if (reading_ended_ || half_closed_ || queue_.size() >= kMaxStreamQueue) return false;
      queue_.push_back(std::move(message));
    }
    pump();
    return true;
  }

  bool idle() const override {
    std::lock_guard lock(mutex_);
    return queue_.empty() && !busy_;
  }

  void half_close() override {
    {
      std::lock_guard lock(mutex_);
      half_closed_ = true;
    }
    pump();
  }

  void OnReadDone(bool ok) override {
    if (ok) {
      handlers_.message(incoming_);
      StartRead(&incoming_);
      return;
    }
    bool release = false;
    {
      std::lock_guard lock(mutex_);
      reading_ended_ = true;
      release = !busy_ && !std::exchange(released_, true);
    }
    if (release) RemoveHold();
  }

  void OnWriteDone(bool) override { turn_over(); }
  void OnWritesDoneDone(bool) override { turn_over(); }

  void OnDone(const grpc::Status& status) override {
    if (const std::string leader = named_leader(); handlers_.elsewhere && !leader.empty())
      handlers_.elsewhere(leader);
    handlers_.ended(absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message()));
    std::lock_guard lock(mutex_);
    done_ = true;
    done_changed_.notify_all();
  }

 private:
  std::string named_leader() {
    const std::lock_guard lock(mutex_);
    const auto& metadata = context_.GetServerTrailingMetadata();
    const auto leader = metadata.find(kLeaderMetadata);
    return leader == metadata.end() ? "" : std::string(leader->second.data(), leader->second.size());
  }

  void pump() {
    bool close = false;
    {
      std::lock_guard lock(mutex_);
      if (busy_ || reading_ended_) return;
      if (queue_.empty()) {
        if (!half_closed_ || std::exchange(told_, true)) return;
        close = true;
      } else {
        outgoing_ = std::move(queue_.front());
        queue_.pop_front();
      }
      busy_ = true;
    }
    if (close) {
      StartWritesDone();
    } else {
      StartWrite(&outgoing_);
    }
  }

  void turn_over() {
    bool release = false;
    {
      std::lock_guard lock(mutex_);
      busy_ = false;
      release = reading_ended_ && !std::exchange(released_, true);
    }
    if (release) {
      RemoveHold();
    } else {
      pump();
    }
  }

  const Handlers handlers_;
  std::unique_ptr<v1::Coordinator::Stub> stub_;
  grpc::ClientContext context_;
  v1::CoordinatorMessage incoming_;  // gRPC's while a read is under way
  v1::MemberMessage outgoing_;       // gRPC's while busy_

  mutable std::mutex mutex_;  // guards what follows
  std::deque<v1::MemberMessage> queue_;
  bool busy_ = false;         // a write or the half-close is under way
  bool half_closed_ = false;  // no more sends are taken
  bool told_ = false;         // the coordinator is being told so
  bool reading_ended_ = false;
  bool released_ = false;
  bool done_ = false;
  std::condition_variable done_changed_;
};

}  // namespace

std::unique_ptr<Stream> Stream::open(const std::string& address, const Caller& caller, Handlers handlers,
                                     Duration connect_limit) {
  return std::make_unique<GrpcStream>(address, caller, std::move(handlers), connect_limit);
}

}  // namespace paceline::member
