#include "controller/coordinator/server.h"

#include <grpc/support/time.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/hash/hash.h"
#include "base/status.h"
#include "controller/coordinator/session.h"
#include "proto/paceline/v1/coordinator.grpc.pb.h"

namespace paceline::coordinator {

namespace {

constexpr std::size_t kMinTokenBytes = 16;
constexpr char kLeaderMetadata[] = "paceline-leader";
constexpr char kJobMetadata[] = "paceline-job", kPodUidMetadata[] = "paceline-pod-uid";
constexpr std::size_t kQuotaBytes = std::size_t{1} << 30;  // 64 KiB for each of kMaxSessions
constexpr int kKeepaliveMs = 5'000;
constexpr int kKeepaliveTimeoutMs = 5'000;
constexpr int kMinPingIntervalMs = 1'000;
constexpr int kShutdownMs = 500;

// Takes the same time wherever the first difference is.
bool equal_in_constant_time(std::string_view a, std::string_view b) {
  unsigned difference = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference |=
        static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b.empty() ? 0 : b[i % b.size()]);
  }
  return difference == 0;
}

std::string metadata_of(const grpc::CallbackServerContext& context, const char* name) {
  const auto it = context.client_metadata().find(name);
  return it == context.client_metadata().end() ? "" : std::string(it->second.data(), it->second.size());
}

std::string bearer_token(const grpc::CallbackServerContext& context) {
  constexpr std::string_view kPrefix = "Bearer ";
  const std::string value = metadata_of(context, "authorization");
  return value.compare(0, kPrefix.size(), kPrefix) == 0 ? value.substr(kPrefix.size()) : "";
}

// Ends a stream before it began.
class Refusal final : public grpc::ServerBidiReactor<v1::MemberMessage, v1::CoordinatorMessage> {
 public:
  explicit Refusal(const grpc::Status& status) { Finish(status); }
  void OnDone() override { delete this; }
};

class ServerImpl final : public Server, public v1::Coordinator::CallbackService {
 public:
  ServerImpl(const ServerOptions& options, const Clock& clock) : options_(options), clock_(clock) {
    if (!options.serves) leader_.emplace();
  }
  ~ServerImpl() override { shutdown(); }

  absl::Status listen();
  const std::string& address() const override { return address_; }
  absl::StatusOr<std::shared_ptr<Job>> add_job(JobConfig config) override;
  void serve() override {
    const std::lock_guard lock(mutex_);
    leader_.reset();
  }
  void redirect(std::string leader) override {
    const std::lock_guard lock(mutex_);
    leader_ = std::move(leader);
  }
  void shutdown() override;

  grpc::ServerBidiReactor<v1::MemberMessage, v1::CoordinatorMessage>* Attach(
      grpc::CallbackServerContext* context) override;

 private:
  void tick(const std::stop_token& stop);
  void session_done(StreamId stream);
  void remove_job(const Job& job);
  std::shared_ptr<Job> job_of(const std::string& token);

  const ServerOptions options_;
  const Clock& clock_;
  std::string address_;
  std::unique_ptr<grpc::Server> server_;

  std::mutex mutex_;                                               // guards what follows
  std::map<std::string, std::shared_ptr<Job>, std::less<>> jobs_;  // by name
  // The same by their tokens' hash, which is this process's own: its bits tell nobody a token's.
  std::unordered_multimap<std::size_t, std::shared_ptr<Job>> by_token_;
  std::map<StreamId, std::shared_ptr<Session>> sessions_;
  std::set<StreamId> awaited_;         // of sessions_: those whose Hello has not been asked after yet
  std::optional<std::string> leader_;  // who leads, instead of this one
  std::uint64_t streams_ = 0;
  bool down_ = false;

  std::condition_variable_any wake_;
  std::jthread ticker_;
};

constexpr unsigned kLookAtFilesSeconds = 1;

std::shared_ptr<grpc::ServerCredentials> credentials_of(const ServerOptions& options) {
  namespace tls = grpc::experimental;
  if (options.certificate_file.empty()) return grpc::InsecureServerCredentials();
  return tls::TlsServerCredentials([&] {
    tls::TlsServerCredentialsOptions all(std::make_shared<tls::FileWatcherCertificateProvider>(
        options.key_file, options.certificate_file, kLookAtFilesSeconds));
    all.watch_identity_key_cert_pairs();
    all.set_cert_request_type(GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE);
    return all;
  }());
}

absl::Status ServerImpl::listen() {
  grpc::ServerBuilder builder;
  grpc::ResourceQuota quota("coordinator");
  quota.Resize(kQuotaBytes);
  builder.SetResourceQuota(quota);
  builder.SetMaxReceiveMessageSize(kMaxMessageBytes);
  builder.SetMaxSendMessageSize(kMaxMessageBytes);
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, kMinPingIntervalMs);
  int port = 0;
  builder.AddListeningPort(options_.listen, credentials_of(options_), &port);
  builder.RegisterService(this);
  server_ = builder.BuildAndStart();
  if (server_ == nullptr || port == 0) {
    return absl::UnavailableError(
        str_cat("cannot listen on ", options_.listen, ": is the address taken, or not this machine's?"));
  }
  address_ = options_.listen;
  if (options_.listen.rfind("unix", 0) != 0) {
    address_ = str_cat(options_.listen.substr(0, options_.listen.rfind(':') + 1), port);
  }
  ticker_ = std::jthread([this](std::stop_token stop) { tick(stop); });
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<Job>> ServerImpl::add_job(JobConfig config) {
  PL_RETURN_IF_ERROR(with_context(validate(config.core), str_cat("job ", config.core.job)));
  if (config.token.size() < kMinTokenBytes) {
    return absl::InvalidArgumentError(
        str_cat("job ", config.core.job, ": a token needs at least ", kMinTokenBytes, " characters"));
  }
  auto job = std::make_shared<Job>(std::move(config), clock_, [this](const Job& gone) { remove_job(gone); });
  std::lock_guard lock(mutex_);
  if (jobs_.contains(job->name()) || job_of(job->token()) != nullptr) {
    return absl::AlreadyExistsError(str_cat("job ", job->name(), " or its token is there already"));
  }
  jobs_.emplace(job->name(), job);
  by_token_.emplace(absl::HashOf(job->token()), job);
  return std::shared_ptr<Job>(job.get(), [job](Job*) { job->close(); });
}

void ServerImpl::remove_job(const Job& job) {
  std::lock_guard lock(mutex_);
  std::erase_if(jobs_, [&](const auto& each) { return each.second.get() == &job; });
  std::erase_if(by_token_, [&](const auto& each) { return each.second.get() == &job; });
}

std::shared_ptr<Job> ServerImpl::job_of(const std::string& token) {
  const auto [begin, end] = by_token_.equal_range(absl::HashOf(token));
  for (auto each = begin; each != end; ++each) {
    if (equal_in_constant_time(each->second->token(), token)) return each->second;
  }
  return nullptr;
}

grpc::ServerBidiReactor<v1::MemberMessage, v1::CoordinatorMessage>* ServerImpl::Attach(
    grpc::CallbackServerContext* context) {
  const std::string token = bearer_token(*context);
  std::shared_ptr<Session> session;
  std::shared_ptr<Job> named;  // by a stream that has the token of none
  {
    std::lock_guard lock(mutex_);
    if (down_) return new Refusal(grpc::Status(grpc::StatusCode::UNAVAILABLE, "the coordinator shuts down"));
    if (leader_) {
      if (!leader_->empty()) context->AddTrailingMetadata(kLeaderMetadata, *leader_);
      return new Refusal(grpc::Status(grpc::StatusCode::UNAVAILABLE,
                                      str_cat("this replica does not lead; the leader is ",
                                              leader_->empty() ? "not known yet" : *leader_)));
    }
    const std::shared_ptr<Job> job = job_of(token);
    if (job == nullptr) {
      const auto found = jobs_.find(metadata_of(*context, kJobMetadata));
      if (found != jobs_.end()) named = found->second;
    } else if (sessions_.size() >= kMaxSessions) {
      return new Refusal(grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED,
                                      str_cat(kMaxSessions, " streams are open already")));
    } else {
      const StreamId stream{++streams_};
      session = std::make_shared<Session>(
          stream, job, [this, stream] { session_done(stream); }, clock_.now());
      sessions_[stream] = session;
      awaited_.insert(stream);
    }
  }
  if (session == nullptr) {
    if (named) named->feed(Refused{metadata_of(*context, kPodUidMetadata)});
    // A controller that has just begun does not know all jobs yet: their members try again.
    return new Refusal(grpc::Status(
        grpc::StatusCode::UNAVAILABLE,
        named ? str_cat("job ", named->name(), " has another token") : "no job here has this token"));
  }
  session->begin(session);
  return session.get();
}

void ServerImpl::session_done(StreamId stream) {
  std::shared_ptr<Session> last;  // let go of without the lock
  {
    std::lock_guard lock(mutex_);
    const auto it = sessions_.find(stream);
    if (it == sessions_.end()) return;
    last = std::move(it->second);
    sessions_.erase(it);
    awaited_.erase(stream);
    wake_.notify_all();
  }
}

void ServerImpl::tick(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    std::vector<std::shared_ptr<Job>> jobs;
    std::vector<std::shared_ptr<Session>> sessions;
    {
      std::unique_lock lock(mutex_);
      wake_.wait_for(lock, stop, options_.tick, [] { return false; });
      const TimePoint now = clock_.now();
      for (const auto& [_, job] : jobs_) {
        if (job->due() <= now) jobs.push_back(job);
      }
      // In the order in which they began.
      while (!awaited_.empty()) {
        const std::shared_ptr<Session>& session = sessions_.at(*awaited_.begin());
        if (now - session->opened() <= options_.hello_timeout) break;
        sessions.push_back(session);
        awaited_.erase(awaited_.begin());
      }
    }
    for (const auto& job : jobs) job->feed(Tick{});
    for (const auto& session : sessions) session->expect_hello(clock_.now(), options_.hello_timeout);
  }
}

void ServerImpl::shutdown() {
  std::vector<std::shared_ptr<Session>> sessions;
  {
    std::lock_guard lock(mutex_);
    if (std::exchange(down_, true)) return;
    for (const auto& [_, session] : sessions_) sessions.push_back(session);
  }
  if (ticker_.joinable()) {
    ticker_.request_stop();
    ticker_.join();
  }
  for (const auto& session : sessions) session->finish(absl::UnavailableError("the coordinator shuts down"));
  sessions.clear();
  if (server_ == nullptr) return;
  server_->Shutdown(
      gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_millis(kShutdownMs, GPR_TIMESPAN)));
  {
    std::unique_lock lock(mutex_);
    wake_.wait_for(lock, std::chrono::milliseconds(kShutdownMs), [this] { return sessions_.empty(); });
  }
  server_.reset();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Server>> Server::start(const ServerOptions& options, const Clock& clock) {
  if (options.tick <= Duration::zero() || options.hello_timeout <= Duration::zero()) {
    return absl::InvalidArgumentError("the tick and the time for a Hello must be positive");
  }
  auto server = std::make_unique<ServerImpl>(options, clock);
  PL_RETURN_IF_ERROR(server->listen());
  return server;
}

}  // namespace paceline::coordinator
