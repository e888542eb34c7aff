#include "controller/cluster/kube/credentials.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "base/file.h"
#include "base/guarded.h"
#include "base/status.h"

namespace paceline::kube {

namespace {

constexpr std::size_t kMaxTokenBytes = 1u << 20;
constexpr Duration kLongestExpiryMargin = std::chrono::seconds(30);

IdentityPtr make_identity(const FixedIdentity& rest, std::string_view token) {
  Identity identity;
  identity.headers = rest.headers;
  identity.certificate_pem = rest.certificate_pem;
  identity.key_pem = rest.key_pem;
  if (!token.empty()) identity.headers.emplace_back("Authorization", str_cat("Bearer ", token));
  return numbered(std::move(identity));
}

class FixedCredentials final : public Credentials {
 public:
  explicit FixedCredentials(const FixedIdentity& identity) : identity_(make_identity(identity, "")) {}
  absl::StatusOr<IdentityPtr> get(Deadline, std::stop_token) override { return identity_; }
  void refused(const Identity&) override {}

 private:
  const IdentityPtr identity_;
};

absl::StatusOr<std::string> read_token(const std::string& path) {
  auto text = read_file(path, kMaxTokenBytes);
  if (!text.ok()) {
    return absl::UnauthenticatedError(str_cat("token file ", text.status().message()));
  }
  const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; };
  while (!text->empty() && blank(text->back())) text->pop_back();
  text->erase(text->begin(), std::find_if_not(text->begin(), text->end(), blank));
  if (text->empty()) return absl::UnauthenticatedError(str_cat("token file ", path, ": is empty"));
  if (std::any_of(text->begin(), text->end(), [](char c) { return static_cast<unsigned char>(c) <= ' '; })) {
    return absl::UnauthenticatedError(
        str_cat("token file ", path, ": holds more than one word; a bearer token is one"));
  }
  return text;
}

class TokenFileCredentials final : public Credentials {
 public:
  TokenFileCredentials(std::string path, FixedIdentity rest, const Clock& clock, Logger logger)
      : path_(std::move(path)), rest_(std::move(rest)), clock_(clock), logger_(std::move(logger)) {}

  absl::StatusOr<IdentityPtr> get(Deadline, std::stop_token) override {
    const TimePoint now = clock_.now();
    {
      auto state = state_.lock();
      const Duration age = now - state->read_at;
      if (state->identity != nullptr && age < (state->refused ? kLeastTimeBetweenFetches : kTokenFileAge))
        return state->identity;
    }
    absl::StatusOr<std::string> token = read_token(path_);
    IdentityPtr kept;
    {
      auto state = state_.lock();
      state->read_at = now;
      if (token.ok()) {
        state->refused = false;
        if (state->identity == nullptr || *token != state->token) {
          state->token = *token;
          state->identity = make_identity(rest_, *token);
        }
        return state->identity;
      }
      kept = state->identity;
    }
    if (kept == nullptr) return token.status();
    logger_.warning(str_cat(token.status().message(), "; the token read before is used on"));
    return kept;
  }

  void refused(const Identity& identity) override {
    auto state = state_.lock();
    if (state->identity != nullptr && state->identity->number == identity.number) state->refused = true;
  }

 private:
  struct State {
    IdentityPtr identity;
    std::string token;
    TimePoint read_at;
    bool refused = false;
  };
  const std::string path_;
  const FixedIdentity rest_;
  const Clock& clock_;
  const Logger logger_;
  Guarded<State> state_;
};

class ExecCredentials final : public Credentials {
 public:
  ExecCredentials(RunPlugin run, FixedIdentity rest, const Clock& clock)
      : run_(std::move(run)), rest_(std::move(rest)), clock_(clock) {}

  absl::StatusOr<IdentityPtr> get(Deadline deadline, std::stop_token stop) override {
    const std::stop_callback wake(stop, [this] { state_.lock(); });
    bool asked = false;
    while (true) {
      const TimePoint now = clock_.now();
      std::jthread finished;  // joined after the lock is released
      {
        auto state = state_.lock();
        if (!state->running) {
          // A caller who waited for a run takes its result, whatever the clock says by now.
          if (state->identity != nullptr && (asked || !stale(*state, now))) return state->identity;
          if (!state->failure.ok() && (asked || now < state->fetched_at + kLeastTimeBetweenFetches))
            return state->failure;
          finished = std::move(state->thread);
          state->running = true;
          state->thread = std::jthread([this](std::stop_token ended) { fetch(ended); });
        }
      }
      asked = true;
      if (stop.stop_requested())
        return absl::CancelledError("waiting for a credential plug-in was cancelled");
      bool done = false;
      state_.lock_when([&](const State& s) { return !s.running || stop.stop_requested(); },
                       deadline.remaining(clock_.now()), &done);
      if (stop.stop_requested())
        return absl::CancelledError("waiting for a credential plug-in was cancelled");
      if (!done) return absl::DeadlineExceededError("the credential plug-in has not answered yet");
    }
  }

  void refused(const Identity& identity) override {
    auto state = state_.lock();
    if (state->identity != nullptr && state->identity->number == identity.number) state->refused = true;
  }

 private:
  struct State {
    IdentityPtr identity;
    absl::Status failure;
    TimePoint fetched_at;
    std::optional<TimePoint> stale_at;
    bool refused = false;
    bool running = false;
    std::jthread thread;  // last: ended first
  };

  static bool stale(const State& state, TimePoint now) {
    if (state.refused && now >= state.fetched_at + kLeastTimeBetweenFetches) return true;
    return state.stale_at.has_value() && now >= *state.stale_at;
  }

  void fetch(std::stop_token ended) {
    absl::StatusOr<ExecCredential> credential = run_(ended);
    const TimePoint now = clock_.now();
    const WallTime wall_now = clock_.wall_now();
    auto state = state_.lock();
    state->running = false;
    state->fetched_at = now;
    state->failure = credential.status();
    state->identity = nullptr;
    state->refused = false;
    state->stale_at.reset();
    if (!credential.ok()) return;
    FixedIdentity rest = rest_;
    if (!credential->certificate_pem.empty()) {
      rest.certificate_pem = credential->certificate_pem;
      rest.key_pem = credential->key_pem;
    }
    state->identity = make_identity(rest, credential->token);
    if (credential->expires.has_value()) {
      const Duration left = std::max<Duration>(*credential->expires - wall_now, Duration::zero());
      // Not before kLeastTimeBetweenFetches either: a plug-in that prints expired tokens is no reason to
      // spin.
      state->stale_at = now + std::max<Duration>(left - std::min<Duration>(left / 4, kLongestExpiryMargin),
                                                 kLeastTimeBetweenFetches);
    }
  }

  const RunPlugin run_;
  const FixedIdentity rest_;
  const Clock& clock_;
  Guarded<State> state_;
};

}  // namespace

IdentityPtr numbered(Identity identity) {
  static std::atomic<std::uint64_t> last{0};
  identity.number = ++last;
  return std::make_shared<const Identity>(std::move(identity));
}

std::unique_ptr<Credentials> fixed_credentials(FixedIdentity identity) {
  return std::make_unique<FixedCredentials>(identity);
}

std::unique_ptr<Credentials> token_file_credentials(std::string path, FixedIdentity rest, const Clock& clock,
                                                    Logger logger) {
  return std::make_unique<TokenFileCredentials>(std::move(path), std::move(rest), clock, std::move(logger));
}

std::unique_ptr<Credentials> exec_credentials(RunPlugin run, FixedIdentity rest, const Clock& clock) {
  return std::make_unique<ExecCredentials>(std::move(run), std::move(rest), clock);
}

}  // namespace paceline::kube
