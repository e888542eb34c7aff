#include "controller/cluster/kube/curl_transport.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <optional>
#include <set>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/guarded.h"
#include "base/status.h"
#include "controller/cluster/kube/curl_exchange.h"

// Idea: callers build their curl handle, queue it, and sleep until it is done; one thread runs all handles on
// one multi handle, so connections are shared without locks. Deadlines are kept here and not by curl, whose
// own don't run while a handle waits for a connection.

namespace paceline::kube {

namespace {

constexpr Duration kLongestTimeout = std::chrono::hours(24);
constexpr Duration kLongestPoll = std::chrono::minutes(1);
// While calls are in flight. curl 7.88 may read one stream's bytes while it serves another of the same
// connection, and not look at the first again before something else happens.
constexpr Duration kBusyPoll = std::chrono::milliseconds(10);
constexpr int kMaxRestarts = 10;  // of a call that met connections on their way out, one after another
constexpr std::size_t kMaxSpareHandles = kMaxCallsInFlight;
constexpr std::size_t kMaxSpareStreams = 8;

int poll_ms(Duration time) {
  return static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(std::min(time, kLongestPoll)).count());
}

struct Call {
  Call(CurlEasy easy, const CurlTarget& target, const Request& request, IdentityPtr identity, Deadline by)
      : exchange(std::move(easy), target, request, std::move(identity), nullptr), deadline(by) {}
  CurlExchange exchange;
  const Deadline deadline;
  bool in_flight = false;  // this and the next: the serving thread's
  int restarts = 0;
  Guarded<std::optional<absl::StatusOr<Response>>> result;
};

class CurlTransport final : public Transport {
 public:
  CurlTransport(CurlTarget target, std::shared_ptr<Credentials> credentials, CurlMulti multi)
      : target_(std::move(target)), credentials_(std::move(credentials)), multi_(std::move(multi)) {
    ::curl_multi_setopt(multi_.get(), CURLMOPT_MAXCONNECTS, static_cast<long>(kMaxCallsInFlight));
    thread_ = std::jthread([this](std::stop_token stop) { serve(stop); });
  }

  ~CurlTransport() override {
    thread_.request_stop();
    ::curl_multi_wakeup(multi_.get());
    thread_.join();
    PL_CHECK(queue_.lock()->empty(), "calls must have returned before their transport is destroyed");
  }

  absl::StatusOr<Response> call(const Request& request) override {
    const Deadline deadline = Deadline::after(clock_.now(), std::min(request.timeout, kLongestTimeout));
    return with_identity(
        deadline, {}, [&](IdentityPtr identity) { return call_as(request, std::move(identity), deadline); });
  }

  absl::StatusOr<Response> stream(const Request& request,
                                  const std::function<bool(std::string_view)>& on_bytes,
                                  std::stop_token stop) override {
    const Duration silence = std::min(request.timeout, kLongestTimeout);
    return with_identity(Deadline::after(clock_.now(), silence), stop, [&](IdentityPtr identity) {
      return stream_as(request, std::move(identity), on_bytes, silence, stop);
    });
  }

 private:
  // Sends by `send`, and once more if the server refuses the credentials and others can be had.
  template <typename Send>
  absl::StatusOr<Response> with_identity(Deadline deadline, const std::stop_token& stop, Send send) {
    PL_ASSIGN_OR_RETURN(IdentityPtr identity, credentials_->get(deadline, stop));
    absl::StatusOr<Response> response = send(identity);
    if (!response.ok() || response->status != 401) return response;
    credentials_->refused(*identity);
    PL_ASSIGN_OR_RETURN(IdentityPtr fresh, credentials_->get(deadline, stop));
    if (fresh->number == identity->number) return response;
    return send(std::move(fresh));
  }

  absl::StatusOr<Response> call_as(const Request& request, IdentityPtr identity, Deadline deadline) {
    Call call(spare_handle(), target_, request, std::move(identity), deadline);
    PL_RETURN_IF_ERROR(call.exchange.prepare());
    bool wake = false;
    {
      auto queue = queue_.lock();
      wake = queue->empty();
      queue->push_back(&call);
    }
    if (wake) ::curl_multi_wakeup(multi_.get());
    absl::StatusOr<Response> response = absl::InternalError("unset");
    for (bool done = false; !done;) {
      // The serving thread keeps the deadline, and must have let go of `call` before this returns.
      auto result =
          call.result.lock_when([](const auto& r) { return r.has_value(); }, kLongestTimeout, &done);
      if (done) response = std::move(**result);
    }
    auto spare = spare_.lock();
    if (spare->size() < kMaxSpareHandles) spare->push_back(call.exchange.release());
    return response;
  }

  CurlEasy spare_handle() {
    auto spare = spare_.lock();
    if (spare->empty()) return nullptr;
    CurlEasy easy = std::move(spare->back());
    spare->pop_back();
    return easy;
  }

  absl::StatusOr<Response> stream_as(const Request& request, IdentityPtr identity,
                                     const std::function<bool(std::string_view)>& on_bytes, Duration silence,
                                     const std::stop_token& stop) {
    CurlExchange exchange(nullptr, target_, request, std::move(identity), on_bytes);
    CurlMulti multi = spare_multi();
    if (multi == nullptr) return absl::ResourceExhaustedError("curl_multi_init: no memory");
    PL_RETURN_IF_ERROR(exchange.prepare());
    absl::StatusOr<Response> response = absl::InternalError("unset");
    {
      const std::stop_callback wake(stop, [&] { ::curl_multi_wakeup(multi.get()); });
      ::curl_multi_add_handle(multi.get(), exchange.easy());
      response = run_stream(multi.get(), exchange, request, silence, stop);
      ::curl_multi_remove_handle(multi.get(), exchange.easy());
    }
    if (response.ok()) keep(std::move(multi));
    return response;
  }

  // With the connection of a stream that has ended, where there is one.
  CurlMulti spare_multi() {
    auto spare = spare_multis_.lock();
    if (spare->empty()) return CurlMulti(::curl_multi_init());
    CurlMulti multi = std::move(spare->back());
    spare->pop_back();
    return multi;
  }

  void keep(CurlMulti multi) {
    auto spare = spare_multis_.lock();
    if (spare->size() < kMaxSpareStreams) spare->push_back(std::move(multi));
  }

  absl::StatusOr<Response> run_stream(CURLM* multi, CurlExchange& exchange, const Request& request,
                                      Duration silence, const std::stop_token& stop) {
    const TimePoint begin = clock_.now();
    while (true) {
      int running = 0, left = 0;
      ::curl_multi_perform(multi, &running);
      if (stop.stop_requested()) return absl::CancelledError(str_cat(exchange.what(), ": cancelled"));
      if (const CURLMsg* message = ::curl_multi_info_read(multi, &left); message != nullptr)
        return exchange.finish(message->data.result);
      const TimePoint now = clock_.now();
      Duration remaining = Deadline::after(exchange.heard_at(), silence).remaining(now);
      if (remaining == Duration::zero()) {
        return absl::DeadlineExceededError(
            str_cat(exchange.what(), ": nothing came for ", format_duration(request.timeout)));
      }
      const Duration total = exchange.is_refusal() ? request.timeout : request.total;
      if (total > Duration::zero()) {
        const Duration left_of_all = Deadline::after(begin, std::min(total, kLongestTimeout)).remaining(now);
        if (left_of_all == Duration::zero()) {
          return absl::DeadlineExceededError(
              str_cat(exchange.what(), ": no whole answer within ", format_duration(total)));
        }
        remaining = std::min(remaining, left_of_all);
      }
      ::curl_multi_poll(multi, nullptr, 0, poll_ms(remaining), nullptr);
    }
  }

  // The serving thread's.
  void serve(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      {
        auto queue = queue_.lock();
        for (Call* call : *queue) {
          waiting_.push_back(call);
          deadlines_.emplace(call->deadline.at(), call);
        }
        queue->clear();
      }
      start_waiting();
      int running = 0;
      ::curl_multi_perform(multi_.get(), &running);
      end_finished();
      end_expired();
      if (in_flight_ < kMaxCallsInFlight && !waiting_.empty()) continue;
      Duration wait = in_flight_ > 0 ? kBusyPoll : kLongestPoll;
      if (!deadlines_.empty())
        wait = std::min(wait, Deadline(deadlines_.begin()->first).remaining(clock_.now()));
      ::curl_multi_poll(multi_.get(), nullptr, 0, poll_ms(wait), nullptr);
    }
  }

  void start_waiting() {
    while (in_flight_ < kMaxCallsInFlight && !waiting_.empty()) {
      Call* call = waiting_.front();
      waiting_.pop_front();
      call->in_flight = true;
      ++in_flight_;
      by_handle_.emplace(call->exchange.easy(), call);
      ::curl_multi_add_handle(multi_.get(), call->exchange.easy());
    }
  }

  void end_finished() {
    int left = 0;
    while (const CURLMsg* message = ::curl_multi_info_read(multi_.get(), &left)) {
      if (message->msg != CURLMSG_DONE) continue;
      const CURLcode code = message->data.result;
      Call* call = by_handle_.at(message->easy_handle);
      if (call->restarts < kMaxRestarts && call->exchange.met_closing_connection(code)) {
        ++call->restarts;
        ::curl_multi_remove_handle(multi_.get(), call->exchange.easy());
        ::curl_multi_add_handle(multi_.get(), call->exchange.easy());
        continue;
      }
      end(call, [&] { return call->exchange.finish(code); });
    }
  }

  void end_expired() {
    const TimePoint now = clock_.now();
    while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
      Call* call = deadlines_.begin()->second;
      end(call, [&]() -> absl::StatusOr<Response> {
        return absl::DeadlineExceededError(
            str_cat(call->exchange.what(), ": no whole answer by the deadline"));
      });
    }
  }

  // `call` is its caller's again, and gone, when this returns.
  template <typename MakeResult>
  void end(Call* call, MakeResult make_result) {
    deadlines_.erase({call->deadline.at(), call});
    absl::StatusOr<Response> result = make_result();
    if (call->in_flight) {
      ::curl_multi_remove_handle(multi_.get(), call->exchange.easy());
      by_handle_.erase(call->exchange.easy());
      --in_flight_;
    } else {
      waiting_.erase(std::find(waiting_.begin(), waiting_.end(), call));
    }
    *call->result.lock() = std::move(result);
  }

  const CurlTarget target_;
  const std::shared_ptr<Credentials> credentials_;
  const SystemClock clock_;
  const CurlMulti multi_;  // the serving thread's, but for curl_multi_wakeup
  Guarded<std::vector<Call*>> queue_;
  Guarded<std::vector<CurlEasy>> spare_;
  Guarded<std::vector<CurlMulti>> spare_multis_;  // of streams; each with at most one connection
  // The serving thread's.
  std::deque<Call*> waiting_;
  std::set<std::pair<TimePoint, Call*>> deadlines_;  // waiting and in flight
  std::unordered_map<CURL*, Call*> by_handle_;
  int in_flight_ = 0;
  std::jthread thread_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Transport>> open_curl_transport(const Endpoint& endpoint,
                                                               std::shared_ptr<Credentials> credentials,
                                                               Logger logger) {
  static const CURLcode initialised = ::curl_global_init(CURL_GLOBAL_DEFAULT);
  if (initialised != CURLE_OK)
    return absl::InternalError(str_cat("curl_global_init: ", ::curl_easy_strerror(initialised)));
  PL_ASSIGN_OR_RETURN(CurlTarget target, curl_target(endpoint));
  CurlMulti multi(::curl_multi_init());
  if (multi == nullptr) return absl::ResourceExhaustedError("curl_multi_init: no memory");
  if (endpoint.insecure_skip_tls_verify) {
    logger.warning(str_cat(
        endpoint.server,
        ": insecure-skip-tls-verify: the server's certificate is not checked; anybody between can read and "
        "change what is said"));
  }
  return std::make_unique<CurlTransport>(std::move(target), std::move(credentials), std::move(multi));
}

}  // namespace paceline::kube
