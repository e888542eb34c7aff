#include "controller/traces/exporter.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "base/hex.h"
#include "base/random.h"
#include "base/status.h"
#include "base/text.h"
#include "controller/cluster/kube/credentials.h"
#include "controller/cluster/kube/curl_transport.h"

namespace paceline::traces {

namespace {

constexpr std::size_t kMostAnswer = 64 << 10;
constexpr int kRequestTimeout = 408, kTooMany = 429;  // as OTLP says: these and 5xx are to be tried again

bool is_for_later(int status) {
  return status >= 500 || status == kRequestTimeout || status == kTooMany;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Exporter>> Exporter::from_environment(const Variables& variable,
                                                                     const Clock& clock, Logger log) {
  PL_ASSIGN_OR_RETURN(std::optional<Settings> settings, settings_of(variable));
  if (!settings) return nullptr;
  PL_ASSIGN_OR_RETURN(
      auto transport,
      kube::open_curl_transport({.server = settings->server},
                                kube::fixed_credentials({.headers = settings->headers}), Logger::none()));
  return std::make_unique<Exporter>(*std::move(settings), std::move(transport), clock, std::move(log));
}

Exporter::Exporter(Settings settings, std::unique_ptr<kube::Transport> transport, const Clock& clock,
                   Logger log)
    : settings_(std::move(settings)),
      transport_(std::move(transport)),
      clock_(clock),
      log_(std::move(log)),
      thread_([this] { run(); }) {}

Exporter::~Exporter() {
  state_.lock()->ends = true;
}

void Exporter::add(std::string ns, std::string job, std::string uid, const api::ViewChange& change) {
  Recovery recovery{std::move(ns), std::move(job),    std::move(uid),
                    change,        clock_.wall_now(), hex(random_bytes(kIdBytes))};
  auto state = state_.lock();
  if (state->waiting.size() >= kMostWaiting) {
    ++state->left_out;
    return;
  }
  state->waiting.push_back(std::move(recovery));
}

void Exporter::run() {
  std::vector<Recovery> taken;
  bool ends = false;
  while (!ends) {
    {
      // While one batch could not be sent, the next waits with it.
      auto state = taken.empty()
                       ? state_.lock_when([](const State& s) { return s.ends || !s.waiting.empty(); },
                                          std::chrono::hours(1))
                       : state_.lock_when([](const State& s) { return s.ends; }, kPause);
      ends = state->ends;
      if (taken.empty() || ends)
        std::ranges::move(std::exchange(state->waiting, {}), std::back_inserter(taken));
    }
    if (!taken.empty() && send(taken)) taken.clear();
  }
}

bool Exporter::send(const std::vector<Recovery>& recoveries) {
  const auto answer = transport_->call({.method = kube::Method::kPost,
                                        .path = settings_.path,
                                        .content_type = "application/json",
                                        .body = export_request(recoveries, settings_.service),
                                        .timeout = kTry,
                                        .max_response_bytes = kMostAnswer});
  if (!answer.ok()) {
    tell(std::string(answer.status().message()));
    return false;
  }
  if (answer->status / 100 == 2) {
    if (!told_.empty()) log_.info("traces are taken again", {{"reason", "Traces"}});
    told_.clear();
    const std::size_t left_out = std::exchange(state_.lock()->left_out, 0);
    if (left_out > 0)
      log_.warning("recoveries are left out of the traces: too many waited",
                   {{"reason", "Traces"}, {"leftOut", str_cat(left_out)}});
    return true;
  }
  tell(str_cat(settings_.server, settings_.path, " answers ", answer->status, " ",
               answer->body.substr(0, 200)));
  return !is_for_later(answer->status);
}

void Exporter::tell(const std::string& trouble) {
  if (trouble == told_) return;
  told_ = trouble;
  log_.warning(str_cat("traces can't be sent: ", trouble), {{"reason", "Traces"}});
}

}  // namespace paceline::traces
